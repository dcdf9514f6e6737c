//! The most that a law can have granted, kept beside a limiter whose quota changes.

use std::time::Duration;

use tollgate::{Nanos, Quota};

/// What a permit is counted in. So a rate a second, a minute or an hour brings a whole number of units a nanosecond.
const PERMIT: u128 = 3_600 * 1_000_000_000;

/// The most permits that can have been granted since the start.
///
/// A limiter starts with some permits; time brings further ones at the rate, except in a pause; refunds bring others. Nothing
/// else does: a change of the quota carries what is left. So the sum of those is what can have been granted.
///
/// A change takes effect at some instant between two readings of the limiter's clock. In between, the faster rate counts.
#[derive(Debug)]
pub(crate) struct Allowance {
    units: u128,
    /// Units a nanosecond.
    rate: u128,
    at: Nanos,
    /// Nothing accrues before that.
    held_until: Nanos,
}

impl Allowance {
    /// Starts with `permits` at `now`.
    pub(crate) fn new(permits: u64, quota: Quota, now: Nanos) -> Self {
        Self { units: u128::from(permits) * PERMIT, rate: rate(quota), at: now, held_until: Nanos::ZERO }
    }

    /// Takes note of permits that were added.
    pub(crate) fn add(&mut self, permits: u64) {
        self.units += u128::from(permits) * PERMIT;
    }

    /// Takes note of a new quota, set between `before` and `after`.
    pub(crate) fn set_quota(&mut self, quota: Quota, before: Nanos, after: Nanos) {
        self.accrue(before);
        let next = rate(quota);
        self.rate = self.rate.max(next);
        self.accrue(after);
        self.rate = next;
    }

    /// Takes note of a pause of `span` that was set between `before` and `after`, instead of any other.
    pub(crate) fn pause(&mut self, span: Duration, before: Nanos, after: Nanos) {
        self.resume(before, after);
        self.held_until = before.saturating_add(span);
    }

    /// Takes note that a pause was ended between `before` and `after`.
    pub(crate) fn resume(&mut self, before: Nanos, after: Nanos) {
        self.accrue(before);
        self.held_until = Nanos::ZERO;
        self.accrue(after);
    }

    /// The most that can have been granted until `now`.
    pub(crate) fn most(&mut self, now: Nanos) -> u128 {
        self.accrue(now);
        self.units / PERMIT
    }

    fn accrue(&mut self, now: Nanos) {
        let span = now.saturating_since(self.at.max(self.held_until));
        self.units += self.rate * span.as_nanos();
        self.at = self.at.max(now);
    }
}

fn rate(quota: Quota) -> u128 {
    assert!(!quota.is_unlimited() && 3_600 % quota.period().as_secs() == 0, "no whole number: {quota:?}");
    u128::from(quota.permits()) * 3_600 / u128::from(quota.period().as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Nanos {
        Nanos::from_millis(milliseconds)
    }

    #[test]
    fn time_brings_the_rate_and_the_faster_one_while_it_changes() {
        let mut allowance = Allowance::new(5, Quota::per_second(10), at(1_000));
        assert_eq!(allowance.most(at(1_099)), 5);
        assert_eq!(allowance.most(at(1_100)), 6);
        allowance.set_quota(Quota::per_second(100), at(2_000), at(2_100)); // 5 + 10 + 10
        assert_eq!(allowance.most(at(2_100)), 25);
        allowance.set_quota(Quota::per_hour(1), at(2_200), at(2_300)); // 10 + 10
        assert_eq!(allowance.most(at(3_000_000)), 45);
        assert_eq!(allowance.most(at(3_602_300)), 46);
    }

    #[test]
    fn a_pause_brings_nothing_from_after_it_was_set_to_the_earliest_end() {
        let mut allowance = Allowance::new(0, Quota::per_second(100), at(0));
        allowance.pause(Duration::from_millis(500), at(100), at(110)); // 11, until 600
        assert_eq!(allowance.most(at(600)), 11);
        assert_eq!(allowance.most(at(700)), 21);
        allowance.pause(Duration::from_secs(9), at(700), at(700));
        allowance.add(3);
        allowance.resume(at(800), at(820)); // 2
        assert_eq!(allowance.most(at(900)), 34);
        allowance.pause(Duration::from_millis(100), at(900), at(900));
        allowance.pause(Duration::from_millis(10), at(950), at(970)); // 2, until 960
        assert_eq!(allowance.most(at(1_000)), 39);
    }
}
