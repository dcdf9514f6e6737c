//! Many threads that ask for few keys, wait for them and give up, while the quota changes: states move into queues and back.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use shuttle::rand::thread_rng;
use tollgate::{Keyed, ManualClock, Nanos, Quota, Refused, WhenFull};

use crate::run::{check, pick};

const BURST: u64 = 3;
const INTERVAL: u64 = 10;

/// What a thread does with a key.
#[derive(Clone, Copy, Debug)]
enum Call {
    Try,
    /// Asks, and gives up at once if it has to wait.
    Ask,
    /// Asks, and stays in line until the thread ends.
    Wait,
    Look,
    SetQuota(u64),
    Advance,
}

fn quota(interval: u64) -> Quota {
    Quota::new(1, Duration::from_nanos(interval)).unwrap().burst(BURST)
}

fn poll(wait: &mut Pin<Box<impl Future<Output = Result<(), Refused>>>>) -> bool {
    matches!(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(())))
}

fn program(advances: bool) -> Vec<Vec<(u64, Call)>> {
    let mut random = thread_rng();
    let mut call = || {
        let mut calls = vec![Call::Try, Call::Ask, Call::Wait, Call::Wait, Call::Look];
        calls.extend(if advances { [Call::Advance; 2] } else { [Call::SetQuota(INTERVAL), Call::SetQuota(25)] });
        (pick(&mut random, &[1, 1, 2]), pick(&mut random, &calls))
    };
    (0..4).map(|_| (0..4).map(|_| call()).collect()).collect()
}

/// Runs the threads on a table, and tells what was granted of each of the keys 1 and 2.
macro_rules! run {
    ($table:expr, $clock:expr, $threads:expr) => {{
        let handles: Vec<_> = $threads
            .into_iter()
            .map(|calls| {
                let (table, clock) = (Arc::clone(&$table), $clock.clone());
                shuttle::thread::spawn(move || {
                    let (mut granted, mut line) = ([0; 3], Vec::new());
                    for (key, call) in calls {
                        let count = &mut granted[usize::try_from(key).unwrap()];
                        match call {
                            Call::Try => *count += u64::from(table.try_acquire(&key).is_ok()),
                            Call::Ask => *count += u64::from(poll(&mut Box::pin(table.acquire(&key)))),
                            Call::Wait => {
                                let mut wait = Box::pin(table.acquire(&key));
                                if poll(&mut wait) {
                                    *count += 1;
                                } else {
                                    line.push((key, wait));
                                }
                            }
                            Call::Look => _ = (table.snapshot(&key), table.len(), table.waiting(&key), table.memory()),
                            Call::SetQuota(interval) => table.set_quota(quota(interval)).unwrap(),
                            Call::Advance => clock.advance(Duration::from_nanos(INTERVAL)),
                        }
                    }
                    for (key, mut wait) in line {
                        granted[usize::try_from(key).unwrap()] += u64::from(poll(&mut wait));
                    }
                    granted
                })
            })
            .collect();
        let granted: Vec<[u64; 3]> = handles.into_iter().map(|thread| thread.join().unwrap()).collect();
        [1, 2].map(|key| granted.iter().map(|granted| granted[key]).sum::<u64>())
    }};
}

macro_rules! stores {
    ($($store:ident: $configure:expr, shared $shared:expr;)*) => {$(
        mod $store {
            use super::*;

            /// At one instant the burst is shared out, whatever rates come and go.
            #[test]
            fn at_one_instant_every_permit_is_granted_or_left() {
                check(1_500, || {
                    let clock = ManualClock::new();
                    let table = Arc::new($configure(Keyed::<u64>::token_bucket(quota(INTERVAL))).clock(clock.clone()).build().unwrap());
                    let memory = table.memory();
                    let granted = run!(table, clock, program(false));
                    let left = [1, 2].map(|key| (1..=BURST).rev().find(|n| table.peek(&key, *n).is_ok()).unwrap_or(0));
                    if $shared {
                        assert_eq!(granted[0] + granted[1] + left[0], BURST);
                    } else {
                        assert_eq!([granted[0] + left[0], granted[1] + left[1]], [BURST; 2]);
                    }
                    assert_eq!([1, 2].map(|key| table.waiting(&key)), [0, 0]);
                    // No queue is left. A map has its keys besides.
                    assert!(table.memory() == memory || table.max_keys() > 8);
                });
            }

            /// As time passes no more comes than the law allows, and what was left in line by those who gave up is there again.
            #[test]
            fn as_time_passes_no_permit_comes_before_its_time() {
                check(1_500, || {
                    let clock = ManualClock::new();
                    let table = Arc::new($configure(Keyed::<u64>::token_bucket(quota(INTERVAL))).clock(clock.clone()).build().unwrap());
                    let granted = run!(table, clock, program(true));
                    let passed = clock.now().saturating_since(Nanos::ZERO);
                    let most = BURST + u64::try_from(passed.as_nanos()).unwrap() / INTERVAL;
                    assert!(granted.iter().all(|granted| *granted <= most), "{granted:?} after {passed:?}");
                    assert!(!$shared || granted[0] + granted[1] <= most, "{granted:?} after {passed:?}");
                    clock.advance(Duration::from_nanos(BURST * INTERVAL));
                    for key in [1, 2] {
                        assert_eq!((table.waiting(&key), table.peek(&key, BURST)), (0, Ok(())));
                    }
                });
            }
        }
    )*};
}

stores! {
    slots: |builder: tollgate::KeyedBuilder<u64>| builder.max_keys(8), shared false;
    one_slot_for_all: |builder: tollgate::KeyedBuilder<u64>| builder.max_keys(0).when_full(WhenFull::Share), shared true;
    map: |builder: tollgate::KeyedBuilder<u64>| builder.quota_for(|_| None::<Quota>), shared false;
}
