//! Threads at a token bucket.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use tollgate::{Clock, Quota, StdClock, TokenBucket};

use crate::Run;
use crate::allowance::Allowance;
use crate::director::{Bucket, Director, FASTEST, MOST_BURST, MOST_N, QUOTAS};
use crate::ledger::Ledger;
use crate::rest;
use crate::violation::{Violation, same};

const THREADS: u64 = 3;

/// One thread makes all the changes, so the bound is near.
pub(crate) fn orderly(run: &Arc<Run>) -> Result<String, Violation> {
    let (bucket, ledger, mut rng) = (TokenBucket::with_clock(FASTEST, StdClock), &run.bucket, Rng::with_seed(run.seed));
    let mut director = Director::new(&bucket, ledger, FASTEST, MOST_BURST);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let (bucket, rng) = (&bucket, rng.fork());
            scope.spawn(move || hammer(bucket, ledger, rng, run, false));
        }
        while !run.is_over() {
            thread::sleep(Duration::from_micros(rng.u64(..5_000)));
            director.change(&mut rng);
            director.check().inspect_err(|_| run.break_off())?;
        }
        Ok(())
    })?;
    director.check()?;
    ledger.close()?;
    let summary = ledger.summary(director.most());
    at_rest(&bucket)?;
    Ok(summary)
}

/// All threads make changes, also at once, none to a quota faster than the first. That is the bound.
pub(crate) fn wild(run: &Arc<Run>) -> Result<String, Violation> {
    let (bucket, ledger) = (TokenBucket::with_clock(FASTEST, StdClock), &run.wild);
    let mut rng = Rng::with_seed(run.seed ^ 1);
    let now = || bucket.clock().now();
    let mut allowance = Allowance::new(MOST_BURST, FASTEST, now());
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let (bucket, rng) = (&bucket, rng.fork());
            scope.spawn(move || hammer(bucket, ledger, rng, run, true));
        }
        while !run.is_over() {
            thread::sleep(Duration::from_millis(1));
            ledger.check(&mut allowance, now).inspect_err(|_| run.break_off())?;
        }
        Ok(())
    })?;
    ledger.check(&mut allowance, now)?;
    ledger.close()?;
    let summary = ledger.summary(allowance.most(now()));
    at_rest(&bucket)?;
    Ok(summary)
}

/// Asks in every way there is, in bursts.
fn hammer(bucket: &Bucket, ledger: &Ledger, mut rng: Rng, run: &Run, changes: bool) {
    while !run.is_over() {
        for _ in 0..rng.u32(..2_000) {
            let (request, n) = (ledger.ask(), rng.u64(1..=MOST_N));
            let taken = match rng.u8(..4) {
                0 => bucket.acquire_up_to(n),
                1 => bucket.try_acquire().map_or(0, |()| 1),
                _ => bucket.try_acquire_n(n).map_or(0, |()| n),
            };
            match taken {
                0 => request.refused(),
                _ if rng.u8(..8) == 0 => request.given_back(taken, || bucket.refund(taken)),
                _ => request.granted(taken),
            }
        }
        if changes {
            match rng.u8(..4) {
                0 => bucket.pause_for(Duration::from_micros(rng.u64(..2_000))),
                1 => bucket.resume(),
                _ => bucket.set_quota(QUOTAS[rng.usize(..QUOTAS.len())]),
            }
        }
        // Refused at once, it would ask millions of times a second; the other parts want to run too.
        thread::sleep(Duration::from_micros(rng.u64(..1_000)));
    }
}

/// Finds what a bucket holds when nobody asks any more.
fn at_rest(bucket: &Bucket) -> Result<(), Violation> {
    bucket.resume();
    bucket.set_quota(Quota::per_second(0).burst(10));
    bucket.reset();
    same("a bucket that was filled holds", bucket.acquire_up_to(u64::MAX), 10)?;
    bucket.refund(3);
    same("after 3 were given back it holds", bucket.acquire_up_to(u64::MAX), 3)?;
    rest::carries_what_is_left(bucket, |bucket, n| bucket.acquire_up_to(n))?;
    rest::grants_exactly_what_is_there(bucket, |bucket| bucket.try_acquire().is_ok())?;
    rest::fills_at_the_rate(bucket, |bucket| bucket.acquire_up_to(u64::MAX))
}
