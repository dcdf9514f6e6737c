//! What a limiter holds when nobody asks any more.

use std::thread;
use std::time::Duration;

use tollgate::Quota;

use crate::allowance::Allowance;
use crate::director::Limited;
use crate::violation::{Violation, same};

const THERE: u64 = 20_000;

/// Fills a limiter that nothing flows into, and lets threads take one by one until none is left.
pub(crate) fn grants_exactly_what_is_there<L: Limited + Sync>(
    limiter: &L,
    take: impl Fn(&L) -> bool + Copy + Send,
) -> Result<(), Violation> {
    limiter.set_quota(Quota::per_second(0).burst(THERE));
    limiter.reset();
    let taken = thread::scope(|scope| {
        let threads: Vec<_> =
            (0..4).map(|_| scope.spawn(move || (0..).take_while(|_: &u64| take(limiter)).count())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum::<usize>()
    });
    same("permits that threads took until none was left", u64::try_from(taken).unwrap_or(u64::MAX), THERE)
}

/// Leaves a few permits in a limiter that nothing flows into, and finds as many under other quotas.
pub(crate) fn carries_what_is_left<L: Limited>(limiter: &L, take: impl Fn(&L, u64) -> u64) -> Result<(), Violation> {
    limiter.set_quota(Quota::per_second(0).burst(10));
    limiter.reset();
    take(limiter, 6);
    for burst in [50, 5, 10] {
        limiter.set_quota(Quota::per_second(0).burst(burst));
    }
    same("after changes of the quota it holds", take(limiter, u64::MAX), 4)
}

/// Empties a limiter, lets it fill for a moment, and finds what it holds between what its clock says before and after.
pub(crate) fn fills_at_the_rate<L: Limited>(limiter: &L, take_all: impl Fn(&L) -> u64) -> Result<(), Violation> {
    let quota = Quota::per_second(1_000_000).burst(1_000_000_000);
    limiter.set_quota(quota);
    let first = limiter.now();
    take_all(limiter);
    let empty = limiter.now();
    thread::sleep(Duration::from_millis(20));
    let before = limiter.now();
    let taken = u128::from(take_all(limiter));
    let after = limiter.now();

    let least = Allowance::new(0, quota, empty).most(before);
    // The part of a permit that was there at first may have become a whole one.
    let most = Allowance::new(1, quota, first).most(after);
    if (least..=most).contains(&taken) {
        return Ok(());
    }
    Err(Violation::new(format!("an empty limiter was left to fill and held {taken}, expected {least} to {most}")))
}
