//! Waiting on a key: its state moves into a queue and back while others ask for it. None is lost, and none is there twice.

use std::future::Future;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use loom::thread;
use tollgate::{Keyed, ManualClock, Quota, Refused, WhenFull};

use crate::program::model;

/// Hashes are the same in every run of a model.
type Hasher = BuildHasherDefault<DefaultHasher>;

fn quota(interval: u64, burst: u64) -> Quota {
    Quota::new(1, Duration::from_nanos(interval)).unwrap().burst(burst)
}

/// Polls once: `None` if it waits.
fn poll(wait: &mut Pin<Box<impl Future<Output = Result<(), Refused>>>>) -> Option<Result<(), Refused>> {
    match wait.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        std::task::Poll::Ready(answer) => Some(answer),
        std::task::Poll::Pending => None,
    }
}

/// The most that would be granted now.
macro_rules! left {
    ($table:expr) => {
        (1..=2).rev().find(|n| $table.peek(&1, *n).is_ok()).unwrap_or(0)
    };
}

/// A model on a bucket in a slot of its own, in the slot that all share, and in a map.
macro_rules! model {
    ($(#[doc = $doc:literal])* fn $name:ident($quota:expr, |$table:ident, $clock:ident| $body:block)) => {
        $(#[doc = $doc])*
        mod $name {
            use super::*;

            #[test]
            fn in_a_slot() {
                model(|| run_in(|builder| builder.max_keys(2)));
            }

            #[test]
            fn in_the_slot_of_all() {
                model(|| run_in(|builder| builder.max_keys(0).when_full(WhenFull::Share)));
            }

            fn run_in(
                configure: impl FnOnce(tollgate::KeyedBuilder<u64>) -> tollgate::KeyedBuilder<u64>,
            ) {
                let $clock = ManualClock::new();
                let builder = configure(Keyed::<u64>::token_bucket($quota));
                let $table = Arc::new(builder.hasher(Hasher::default()).clock($clock.clone()).build().unwrap());
                $body
            }

            #[test]
            fn in_a_map() {
                model(|| {
                    let $clock = ManualClock::new();
                    let builder = Keyed::<u64>::token_bucket($quota).quota_for(|_| None::<Quota>);
                    let $table = Arc::new(builder.hasher(Hasher::default()).clock($clock.clone()).build().unwrap());
                    $body
                });
            }
        }
    };
}

model! {
    /// The last one who waits gives up while another begins to wait, or to try.
    fn one_gives_up_as_another_comes(quota(10, 1), |table, clock| {
        table.try_acquire(&1).unwrap();
        let memory = table.memory();
        let gives_up = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                let mut wait = Box::pin(table.acquire(&1));
                assert_eq!(poll(&mut wait), None);
            })
        };
        let mut wait = Box::pin(table.acquire(&1));
        assert_eq!(poll(&mut wait), None);
        assert!(table.try_acquire(&1).is_err());
        gives_up.join().unwrap();
        assert_eq!(table.waiting(&1), 1);
        clock.set(9_u64);
        assert_eq!(poll(&mut wait), None);
        clock.set(10_u64);
        assert_eq!(poll(&mut wait), Some(Ok(())));
        assert_eq!((table.waiting(&1), left!(table), table.memory()), (0, 0, memory));
        clock.set(20_u64);
        assert_eq!(left!(table), 1);
    })
}

model! {
    /// A permit is left, and two ask for it who would wait.
    fn two_ask_for_the_last_permit(quota(10, 2), |table, clock| {
        table.try_acquire(&1).unwrap();
        let asks = {
            let table = Arc::clone(&table);
            thread::spawn(move || poll(&mut Box::pin(table.acquire(&1))))
        };
        let mut wait = Box::pin(table.acquire(&1));
        let here = poll(&mut wait);
        let there = asks.join().unwrap();
        // The other gives up at once if it has to wait, and leaves what it was granted meanwhile.
        assert_eq!([here, there].iter().filter(|answer| **answer == Some(Ok(()))).count(), 1);
        assert_eq!(left!(table), 0);
        clock.set(10_u64);
        if here.is_none() {
            assert_eq!(poll(&mut wait), Some(Ok(())));
            assert_eq!(left!(table), 0);
        }
        assert_eq!(table.waiting(&1), 0);
        clock.set(30_u64);
        assert_eq!(left!(table), 2);
    })
}

model! {
    /// A slot comes, to the one who waits; somebody else tries, and perhaps finds the state back in its place.
    fn who_tries_meets_the_one_who_leaves(quota(10, 1), |table, clock| {
        table.try_acquire(&1).unwrap();
        let mut wait = Box::pin(table.acquire(&1));
        assert_eq!(poll(&mut wait), None);
        clock.set(10_u64);
        let tries = {
            let table = Arc::clone(&table);
            thread::spawn(move || table.try_acquire(&1).is_ok())
        };
        assert_eq!(poll(&mut wait), Some(Ok(())));
        assert!(!tries.join().unwrap());
        clock.set(19_u64);
        assert_eq!(left!(table), 0);
        clock.set(20_u64);
        assert!(table.try_acquire(&1).is_ok());
    })
}

model! {
    /// The quota changes as the state moves into a queue, and out of it.
    fn the_quota_changes_as_one_comes_and_gives_up(quota(10, 1), |table, clock| {
        table.try_acquire(&1).unwrap();
        clock.set(5_u64);
        let changes = {
            let table = Arc::clone(&table);
            thread::spawn(move || table.set_quota(quota(100, 1)).unwrap())
        };
        assert_eq!(poll(&mut Box::pin(table.acquire(&1))), None);
        changes.join().unwrap();
        // Half a permit has accrued.
        clock.set(54_u64);
        assert_eq!(left!(table), 0);
        clock.set(55_u64);
        assert!(table.try_acquire(&1).is_ok());
        clock.set(154_u64);
        assert_eq!(left!(table), 0);
        clock.set(155_u64);
        assert_eq!(left!(table), 1);
    })
}

model! {
    /// Whoever waits when two have changed the quota is timed by the later one.
    fn two_change_the_quota_of_one_who_waits(quota(10, 1), |table, clock| {
        table.try_acquire(&1).unwrap();
        let mut wait = Box::pin(table.acquire(&1));
        assert_eq!(poll(&mut wait), None);
        let changes = {
            let table = Arc::clone(&table);
            thread::spawn(move || table.set_quota(quota(20, 1)).unwrap())
        };
        table.set_quota(quota(40, 1)).unwrap();
        changes.join().unwrap();
        let interval = u64::try_from(table.quota().period().as_nanos()).unwrap();
        clock.set(interval - 1);
        assert_eq!(poll(&mut wait), None);
        clock.set(interval);
        assert_eq!(poll(&mut wait), Some(Ok(())));
        clock.set(2 * interval - 1);
        assert_eq!(left!(table), 0);
        clock.set(2 * interval);
        assert_eq!(left!(table), 1);
    })
}

model! {
    /// Permits are given back as one comes and gives up.
    fn a_permit_is_given_back_as_one_comes(quota(10, 2), |table, clock| {
        table.try_acquire_n(&1, 2).unwrap();
        let gives = {
            let table = Arc::clone(&table);
            thread::spawn(move || table.refund(&1, 1))
        };
        let granted = poll(&mut Box::pin(table.acquire(&1))).is_some();
        gives.join().unwrap();
        // Of keys without a place nothing is given back.
        let given_back = u64::from(table.max_keys() > 0);
        assert_eq!(left!(table), given_back - u64::from(granted));
        clock.set(10_u64);
        assert_eq!((left!(table), table.waiting(&1)), (1 + given_back - u64::from(granted), 0));
    })
}

model! {
    /// Whoever comes as the quota changes is timed by the new one.
    fn the_quota_changes_as_one_comes_who_stays(quota(10, 1), |table, clock| {
        table.try_acquire(&1).unwrap();
        clock.set(5_u64);
        let changes = {
            let table = Arc::clone(&table);
            thread::spawn(move || table.set_quota(quota(100, 1)).unwrap())
        };
        let mut wait = Box::pin(table.acquire(&1));
        assert_eq!(poll(&mut wait), None);
        changes.join().unwrap();
        clock.set(54_u64);
        assert_eq!(poll(&mut wait), None);
        clock.set(55_u64);
        assert_eq!(poll(&mut wait), Some(Ok(())));
        clock.set(154_u64);
        assert_eq!(left!(table), 0);
        clock.set(155_u64);
        assert_eq!(left!(table), 1);
    })
}

/// The last one who waits for what is shared gives up while a newcomer takes a place of his own with what that owes.
#[test]
fn a_newcomer_takes_a_place_as_what_is_shared_leaves_its_queue() {
    model(|| {
        let clock = ManualClock::new();
        let builder = Keyed::<u64>::token_bucket(quota(10, 1)).max_keys(1).when_full(WhenFull::Share);
        let table = Arc::new(builder.hasher(Hasher::default()).clock(clock.clone()).build().unwrap());
        (0..4).for_each(|key| table.try_acquire(&key).unwrap());
        clock.set(5_u64);
        let memory = table.memory();
        table.try_acquire(&10).unwrap();
        let mut shares = {
            let table = Arc::clone(&table);
            Box::pin(async move { table.acquire(&11).await })
        };
        assert_eq!(poll(&mut shares), None);
        clock.set(10_u64);
        assert_eq!(table.len(), 0);
        let gives_up = thread::spawn(move || drop(shares));
        let mut wait = Box::pin(table.acquire(&20));
        assert_eq!(poll(&mut wait), None);
        assert!(table.try_acquire(&20).is_err());
        gives_up.join().unwrap();
        assert_eq!((table.waiting(&20), table.len()), (1, 1));
        clock.set(15_u64);
        assert_eq!(poll(&mut wait), Some(Ok(())));
        assert_eq!((table.waiting(&20), table.available(&20), table.memory()), (0, 0, memory));
    });
}
