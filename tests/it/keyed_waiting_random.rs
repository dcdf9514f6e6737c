//! Random lives of a key on which callers wait, compared with a shaper over a limiter: the same requests leave at the same instants
//! and are told the same, although the state of the key moves into a queue and back all the time.

use std::fmt::Debug;
use std::future::Future;
use std::task::Poll;
use std::time::Duration;

use tollgate::{
    FixedWindow, Keyed, ManualClock, Quota, Refused, Shaper, SlidingCounter, SlidingLog, TokenBucket, WhenFull,
};

use crate::quota;
use crate::tasks::{Random, Task};

/// What becomes of a request that is polled once.
fn look<T: Debug>(task: &mut Task<impl Future<Output = Result<T, Refused>>>) -> Poll<Result<(), Refused>> {
    task.poll().map_ok(drop)
}

macro_rules! lives {
    ($($law:ident: $limiter:expr, $table:expr, $quotas:expr;)*) => {$(
        #[test]
        #[allow(clippy::let_unit_value, reason = "some laws take every quota")]
        fn $law() {
            let quotas: Vec<Quota> = $quotas;
            for seed in 0..60 {
                let mut random = Random::new(seed);
                let (clock, quota) = (ManualClock::new(), quotas[0]);
                let keyed = $table(quota).clock(clock.clone()).build().unwrap();
                let shaper = Shaper::over($limiter(quota, clock.clone()))
                    .catch_up(Duration::ZERO)
                    .clock(clock.clone())
                    .build();
                let (period, most) = (quota.period(), quota.permits().max(4));
                let key = random.below(5);
                let mut line = Vec::new();
                for step in 0..400 {
                    let n = 1 + random.below(most + 1) / (1 + random.below(4));
                    match random.below(12) {
                        0..=2 => {
                            let limit = random.once_in(3).then(|| period / 4 * u32::try_from(random.below(9)).unwrap());
                            let limit = limit.unwrap_or(Duration::MAX);
                            let (mut one, mut other) =
                                (Task::new(keyed.acquire_n_within(&key, n, limit)), Task::new(shaper.acquire_n_within(n, limit)));
                            let (answer, expected) = (look(&mut one), look(&mut other));
                            assert_eq!(answer, expected, "seed {seed}, step {step}");
                            if answer.is_pending() {
                                line.push((one, other));
                            }
                        }
                        3..=4 if !line.is_empty() => {
                            let of = random.index(line.len());
                            let (one, other) = &mut line[of];
                            assert_eq!(one.wakes(), other.wakes(), "seed {seed}, step {step}");
                            let (answer, expected) = (look(one), look(other));
                            assert_eq!(answer, expected, "seed {seed}, step {step}");
                            if answer.is_ready() {
                                line.remove(of);
                            }
                        }
                        5 if !line.is_empty() => drop(line.remove(random.index(line.len()))),
                        6 => assert_eq!(
                            keyed.try_acquire_n(&key, n),
                            shaper.try_acquire_n(n).map(drop),
                            "seed {seed}, step {step}"
                        ),
                        // Of keys without a place nothing is given back.
                        7 if keyed.max_keys() > 0 && random.once_in(3) => {
                            keyed.refund(&key, n);
                            shaper.refund(n);
                        }
                        7 if keyed.max_keys() > 0 && random.once_in(8) => {
                            keyed.reset(&key);
                            shaper.reset();
                        }
                        8 if random.once_in(4) => {
                            let quota = random.pick(&quotas);
                            // The same again tells a queue nothing, while it times those in the line of a shaper anew.
                            if quota != keyed.quota() {
                                keyed.set_quota(quota).unwrap();
                                let _ = shaper.set_quota(quota);
                            }
                        }
                        9 if keyed.max_keys() > 0 => {
                            let _ = keyed.try_acquire(&(key + 5));
                            let _ = Task::new(keyed.acquire(&(key + 10))).poll();
                        }
                        10 if random.once_in(8) => line.clear(),
                        _ => clock.advance(period / 4 * u32::try_from(random.below(4)).unwrap() + Duration::from_nanos(random.below(3))),
                    }
                    assert_eq!(keyed.waiting(&key), shaper.waiting(), "seed {seed}, step {step}");
                    let n = 1 + random.below(most);
                    let told = keyed.peek(&key, n).map_or_else(|refused| refused.retry_after(), |()| Some(Duration::ZERO));
                    assert_eq!(told, shaper.estimated_wait(n), "seed {seed}, step {step}, {n}");
                }
            }
        }
    )*};
}

/// A queue in which nobody waits, since the one who did has not collected his permit, answers as the law alone does.
macro_rules! looks {
    ($($law:ident: $limiter:expr, $table:expr, $quotas:expr;)*) => {$(
        #[test]
        fn $law() {
            for (seed, quota) in (0..).zip($quotas.into_iter().cycle().take(40)).filter(|(_, quota)| quota.permits() > 0) {
                let mut random = Random::new(seed);
                let clock = ManualClock::new();
                let keyed = $table(quota).clock(clock.clone()).build().unwrap();
                let limiter = $limiter(quota, clock.clone());
                let most = limiter.snapshot().limit;
                keyed.try_acquire_n(&1, most).unwrap();
                limiter.try_acquire_n(most).unwrap();
                let _granted = Task::in_line(keyed.acquire(&1));
                clock.advance(quota.period() * 3);
                assert_eq!((keyed.waiting(&1), limiter.try_acquire()), (0, Ok(())));
                for step in 0..200 {
                    let n = 1 + random.below(most + 1);
                    match random.below(4) {
                        0 => clock.advance(quota.period() / 8 * u32::try_from(random.below(6)).unwrap()),
                        1 if random.once_in(4) => {
                            keyed.refund(&1, n);
                            limiter.refund(n);
                        }
                        _ => assert_eq!(keyed.try_acquire_n(&1, n), limiter.try_acquire_n(n), "seed {seed}, step {step}"),
                    }
                    assert_eq!(keyed.snapshot(&1), limiter.snapshot(), "seed {seed}, step {step}");
                    assert_eq!(keyed.peek(&1, n), limiter.peek(n), "seed {seed}, step {step}");
                }
            }
        }
    )*};
}

const WINDOW: Duration = Duration::from_nanos(1_000);

fn windows() -> Vec<Quota> {
    vec![quota(4, WINDOW, 4), quota(3, WINDOW, 3), quota(9, WINDOW, 9), quota(1, WINDOW, 1)]
}

fn buckets() -> Vec<Quota> {
    vec![quota(1, WINDOW, 4), quota(1, 3 * WINDOW, 4), quota(1, WINDOW / 7, 4), quota(0, WINDOW, 4)]
}

lives! {
    a_token_bucket: TokenBucket::with_clock, Keyed::<u64>::token_bucket, buckets();
    a_token_bucket_that_all_share: TokenBucket::with_clock,
        |quota| Keyed::<u64>::token_bucket(quota).max_keys(0).when_full(WhenFull::Share), buckets();
    a_token_bucket_in_a_map: TokenBucket::with_clock,
        |quota| Keyed::<u64>::token_bucket(quota).quota_for(|_: &u64| None::<Quota>), buckets();
    a_fixed_window: FixedWindow::with_clock, Keyed::<u64>::fixed_window, windows();
    a_sliding_counter: |quota, clock| SlidingCounter::with_clock(quota, clock).unwrap(),
        Keyed::<u64>::sliding_counter, windows();
    a_sliding_log: |quota, clock| SlidingLog::with_clock(quota, clock).unwrap(), Keyed::<u64>::sliding_log, windows();
}

looks! {
    a_bucket_without_waiters: TokenBucket::with_clock, Keyed::<u64>::token_bucket, buckets();
    a_window_without_waiters: FixedWindow::with_clock, Keyed::<u64>::fixed_window, windows();
    a_counter_without_waiters: |quota, clock| SlidingCounter::with_clock(quota, clock).unwrap(),
        Keyed::<u64>::sliding_counter, windows();
    a_log_without_waiters: |quota, clock| SlidingLog::with_clock(quota, clock).unwrap(),
        Keyed::<u64>::sliding_log, windows();
}
