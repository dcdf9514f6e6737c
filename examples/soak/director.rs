//! Changes of a limiter while others use it, and the books of what they allow.

use std::time::Duration;

use fastrand::Rng;
use tollgate::{Clock, Nanos, Quota, Shaper, StdClock, TokenBucket};

use crate::allowance::Allowance;
use crate::ledger::Ledger;
use crate::violation::Violation;

/// The bucket of the soak. On a clock that is in order between threads by the word of the operating system.
pub(crate) type Bucket = TokenBucket<StdClock>;

/// The largest burst that is set.
pub(crate) const MOST_BURST: u64 = 64;
/// The largest n that is asked for.
pub(crate) const MOST_N: u64 = 8;

/// What the shapers of the soak make good for. Much, so that a machine that is late does not keep them far below their bound. The
/// bound needs nothing for it: counted from the start, it is a part of the time that went by.
pub(crate) const CATCH_UP: Duration = Duration::from_millis(200);

/// The quotas that come and go.
pub(crate) const QUOTAS: [Quota; 6] = [
    Quota::per_second(0).burst(4),
    Quota::per_second(3),
    Quota::per_second(1_000).burst(16),
    Quota::per_minute(70_000).burst(30),
    Quota::per_second(20_000).burst(1),
    FASTEST,
];

/// The fastest of them.
pub(crate) const FASTEST: Quota = Quota::per_second(100_000).burst(MOST_BURST);

/// What can be changed while others use it.
pub(crate) trait Limited {
    fn now(&self) -> Nanos;
    fn set_quota(&self, quota: Quota);
    fn pause_for(&self, span: Duration);
    fn resume(&self);
    fn refund(&self, n: u64);
    fn reset(&self);
}

impl Limited for Shaper {
    fn now(&self) -> Nanos {
        self.now()
    }
    fn set_quota(&self, quota: Quota) {
        self.set_quota(quota);
    }
    fn pause_for(&self, span: Duration) {
        self.pause_for(span);
    }
    fn resume(&self) {
        self.resume();
    }
    fn refund(&self, n: u64) {
        self.refund(n);
    }
    fn reset(&self) {
        self.reset();
    }
}

impl Limited for Bucket {
    fn now(&self) -> Nanos {
        self.clock().now()
    }
    fn set_quota(&self, quota: Quota) {
        self.set_quota(quota);
    }
    fn pause_for(&self, span: Duration) {
        self.pause_for(span);
    }
    fn resume(&self) {
        self.resume();
    }
    fn refund(&self, n: u64) {
        self.refund(n);
    }
    fn reset(&self) {
        self.reset();
    }
}

/// The only one to change a limiter, who therefore knows what it allows.
#[derive(Debug)]
pub(crate) struct Director<'a, L> {
    limiter: &'a L,
    ledger: &'a Ledger,
    allowance: Allowance,
}

impl<'a, L: Limited> Director<'a, L> {
    /// Takes over a limiter that nobody has used, has `quota`, and may hold `permits` or lend them.
    pub(crate) fn new(limiter: &'a L, ledger: &'a Ledger, quota: Quota, permits: u64) -> Self {
        Self { limiter, ledger, allowance: Allowance::new(permits, quota, limiter.now()) }
    }

    /// Changes something at random.
    pub(crate) fn change(&mut self, rng: &mut Rng) {
        match rng.u8(..40) {
            0..20 => self.set_quota(QUOTAS[rng.usize(..QUOTAS.len())]),
            20..28 => self.pause_for(Duration::from_micros(rng.u64(..10_000))),
            28..35 => self.resume(),
            35..39 => self.refund(rng.u64(..MOST_N)),
            // Seldom: what it really added is not known.
            _ => self.reset(),
        }
    }

    pub(crate) fn set_quota(&mut self, quota: Quota) {
        let before = self.limiter.now();
        self.limiter.set_quota(quota);
        self.allowance.set_quota(quota, before, self.limiter.now());
    }

    pub(crate) fn pause_for(&mut self, span: Duration) {
        let before = self.limiter.now();
        self.limiter.pause_for(span);
        self.allowance.pause(span, before, self.limiter.now());
    }

    pub(crate) fn resume(&mut self) {
        let before = self.limiter.now();
        self.limiter.resume();
        self.allowance.resume(before, self.limiter.now());
    }

    pub(crate) fn refund(&mut self, n: u64) {
        self.allowance.add(n);
        self.limiter.refund(n);
    }

    fn reset(&mut self) {
        // What was owed is forgiven.
        self.allowance.add(MOST_BURST + MOST_N);
        self.limiter.reset();
    }

    /// Finds permits beyond the law.
    pub(crate) fn check(&mut self) -> Result<(), Violation> {
        self.ledger.check(&mut self.allowance, || self.limiter.now())
    }

    /// The most that can have been granted so far, without what came back.
    pub(crate) fn most(&mut self) -> u128 {
        self.allowance.most(self.limiter.now())
    }
}
