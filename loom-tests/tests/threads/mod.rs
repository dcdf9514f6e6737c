//! Small programs of threads that wait in a shaper: each must end, and no permit be lost or doubled.
//!
//! Time is moved by hand in them and starts at 0; a permit leaves every 10 ns, and the first is taken.

mod broken;
mod real;

use std::sync::Arc;
use std::time::Duration;

use tollgate::{Quota, Refused};

#[cfg(tollgate_loom)]
use loom::{sync as checked, thread};
#[cfg(tollgate_shuttle)]
use shuttle::{sync as checked, thread};

pub(crate) use broken::{Broken, Flaw};
pub(crate) use real::Real;

/// Something in which threads wait.
pub(crate) trait Waits: Send + Sync + 'static {
    fn acquire(&self, limit: Option<Duration>) -> Result<(), Refused>;
    fn try_acquire(&self) -> bool;
    fn refund(&self);
    fn set_quota(&self, quota: Quota);
    fn close(&self);
    fn now(&self) -> u64;
    fn set_now(&self, now: u64);
}

const INTERVAL: u64 = 10;

pub(crate) fn quota() -> Quota {
    every(INTERVAL)
}

fn every(nanos: u64) -> Quota {
    Quota::every(Duration::from_nanos(nanos)).unwrap()
}

/// Starts a thread that waits for one permit.
fn waiter(waits: &Arc<impl Waits>, limit: Option<Duration>) -> thread::JoinHandle<Result<(), Refused>> {
    let waits = Arc::clone(waits);
    thread::spawn(move || waits.acquire(limit))
}

fn taken<W: Waits>(waits: W) -> Arc<W> {
    assert!(waits.try_acquire());
    Arc::new(waits)
}

/// The clock comes to the slot while a thread goes to sleep until then.
pub(crate) fn the_time_comes(waits: impl Waits) {
    let waits = taken(waits);
    let sleeper = waiter(&waits, None);
    waits.set_now(INTERVAL);
    assert_eq!(sleeper.join().unwrap(), Ok(()));
    assert!(!waits.try_acquire(), "a permit was made");
}

/// The permit comes from another thread, and no time passes.
pub(crate) fn another_gives(waits: impl Waits) {
    let waits = taken(waits);
    let sleeper = waiter(&waits, None);
    waits.refund();
    assert_eq!(sleeper.join().unwrap(), Ok(()));
    assert!(!waits.try_acquire(), "a permit was made");
}

/// A thread that would wait for ever is let go by the next quota.
pub(crate) fn the_quota_changes(waits: impl Waits) {
    let waits = taken(waits);
    waits.set_quota(Quota::per_second(0).burst(1));
    let sleeper = waiter(&waits, None);
    waits.set_quota(Quota::UNLIMITED);
    assert_eq!(sleeper.join().unwrap(), Ok(()));
}

/// The end reaches a thread that goes to sleep.
pub(crate) fn the_end_comes(waits: impl Waits) {
    let waits = taken(waits);
    let sleeper = waiter(&waits, None);
    waits.close();
    assert_eq!(sleeper.join().unwrap(), Err(Refused::Closed));
}

/// A permit comes, and then the end: of two who wait one at most is granted, and both end.
pub(crate) fn a_permit_and_the_end_come(waits: impl Waits) {
    let waits = taken(waits);
    let sleepers = [waiter(&waits, None), waiter(&waits, None)];
    waits.refund();
    waits.close();
    let answers = sleepers.map(|sleeper| sleeper.join().unwrap());
    assert!(answers != [Ok(()); 2], "a permit was made");
    assert!(answers.iter().all(|answer| matches!(answer, Ok(()) | Err(Refused::Closed))), "{answers:?}");
}

/// Two sleep: the slot of one comes, and a change lets the other go.
pub(crate) fn two_sleep(waits: impl Waits) {
    let waits = taken(waits);
    let sleepers = [waiter(&waits, None), waiter(&waits, None)];
    waits.set_now(INTERVAL);
    waits.set_quota(Quota::UNLIMITED);
    assert_eq!(sleepers.map(|sleeper| sleeper.join().unwrap()), [Ok(()); 2]);
}

/// A thread waits twice, and a wake-up of its first wait may come when the second has begun.
pub(crate) fn one_sleeps_twice(waits: impl Waits) {
    let waits = taken(waits);
    let sleeper = {
        let waits = Arc::clone(&waits);
        thread::spawn(move || {
            assert_eq!(waits.acquire(None), Ok(()));
            assert_eq!(waits.acquire(None), Ok(()));
            assert!(waits.now() >= INTERVAL, "a permit was made");
        })
    };
    // Both the refund and the clock may wake the first wait. If both come before it, the second ends with the change.
    waits.refund();
    waits.set_now(INTERVAL);
    waits.set_quota(Quota::UNLIMITED);
    sleeper.join().unwrap();
}

/// The permit comes as a thread gives up at its deadline: it is granted, or the permit is there for the next.
pub(crate) fn one_gives_up(waits: impl Waits) {
    let waits = taken(waits);
    let sleeper = waiter(&waits, Some(Duration::from_nanos(INTERVAL)));
    // Its place moves beyond its deadline, if it has come.
    waits.set_quota(every(100 * INTERVAL));
    waits.set_now(INTERVAL);
    waits.refund();
    let granted = sleeper.join().unwrap().is_ok();
    assert_eq!(u32::from(granted) + u32::from(waits.try_acquire()), 1, "a permit was made or lost");
}
