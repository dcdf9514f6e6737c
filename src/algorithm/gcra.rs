//! The generic cell rate algorithm: pure arithmetic on whole ticks, no atomics and no clock.
//!
//! One number is the whole bucket: the *theoretical arrival time* (TAT), the instant at which it would be full again. A
//! request of n at `now` starts from base = max(TAT, now) and is admitted if base + n*T <= now + burst*T, where T is the
//! emission interval; the sum is the new TAT (ITU-T Recommendation I.371, annex A, the virtual scheduling form; burst*T is
//! its T + tau). From this follows the law, for grants in the order in which they took effect and any times:
//! `n_i*T + ... + n_j*T <= burst*T + (now_j - now_i)`, since each grant puts TAT at least n*T beyond both the old TAT and
//! `now`, and never beyond `now + burst*T`.
//!
//! # Bounds
//!
//! Ticks are `i128` here. A time of 64 bits times at most 2^30 ticks a nanosecond stays below 2^94, n*T below 2^64 * 2^58,
//! and a TAT in a word below 2^59, so that no sum or product below can leave 127 bits.
#![expect(clippy::arithmetic_side_effects, reason = "bounded, see the module's docs")]

use std::time::Duration;

use crate::interval::{FIELD_BITS, Interval};
use crate::refused::Refused;
use crate::snapshot::Snapshot;
use crate::time::{Nanos, span};

/// Ticks of one version of the quota, since its origin. Negative before it.
pub(crate) type Ticks = i128;

/// One version of a quota as its words count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    pub(crate) interval: Interval,
    /// burst * T: the debt at which nothing is left.
    pub(crate) capacity: u64,
    /// Where the ticks are counted from.
    pub(crate) origin: Nanos,
    /// Whether nothing is admitted before the origin: it is the end of a pause.
    pub(crate) held: bool,
}

/// What is left of one version of a quota when another follows it: permits and the instant, both as exact fractions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    /// What is left, in ticks of the old quota; negative if more is owed than the bucket holds.
    ticks: Ticks,
    /// T of the old quota.
    cost: u64,
    /// The instant from which the new quota counts, whole nanoseconds.
    since: Nanos,
    /// The rest of that instant: `rest / per` of a nanosecond.
    rest: u64,
    per: u64,
}

impl Rate {
    /// A full bucket at time 0.
    pub(crate) fn new(interval: Interval, burst: u64) -> Self {
        // `Interval::fit` has bounded the product.
        Self { interval, capacity: interval.ticks.saturating_mul(burst), origin: Nanos::ZERO, held: false }
    }

    /// The tick that `now` lies in.
    #[inline]
    pub(crate) fn at(&self, now: Nanos) -> Ticks {
        match now.get().checked_sub(self.origin.get()) {
            Some(since) => (Ticks::from(since) * Ticks::from(self.interval.mul)) >> self.interval.shift,
            None => {
                let before = Ticks::from(self.origin.get()) - Ticks::from(now.get());
                (-before * Ticks::from(self.interval.mul)) >> self.interval.shift
            }
        }
    }

    /// The tick from which a grant from rest at `now` counts. See [`Interval::round_up`].
    #[inline]
    pub(crate) fn starts_at(&self, now: Nanos) -> Ticks {
        let floor = self.at(now);
        let since = Ticks::from(now.get()) - Ticks::from(self.origin.get());
        let up = self.interval.round_up && self.interval.shift > 0 && since != floor << self.interval.shift;
        floor + Ticks::from(up)
    }

    /// Whether a pause lasts at `now`.
    #[inline]
    pub(crate) fn is_held(&self, now: Nanos) -> bool {
        self.held && now < self.origin
    }

    /// n*T.
    #[inline]
    pub(crate) fn cost(&self, n: u64) -> Ticks {
        Ticks::from(n) * Ticks::from(self.interval.ticks)
    }

    /// The TAT after a grant of `n` at `now`, or `None` if the bucket does not hold as many.
    #[inline]
    pub(crate) fn admit(&self, tat: u64, now: Nanos, n: u64) -> Option<Ticks> {
        let (tat, cost, at) = (Ticks::from(tat), self.cost(n), self.at(now));
        if self.is_held(now) || tat.max(at) + cost > at + Ticks::from(self.capacity) {
            return None;
        }
        Some(tat.max(self.starts_at(now)) + cost)
    }

    /// The usual grant as a word holds it, in machine words. `None` says nothing: it may be refused, or not fit.
    #[inline]
    pub(crate) fn admit_in_64_bits(&self, tat: u64, now: Nanos, n: u64) -> Option<u64> {
        if self.interval.shift > 0 {
            return None;
        }
        // During a pause, which ends at the origin, nothing is left of this.
        let since = now.get().checked_sub(self.origin.get())?;
        // A branch that is foreseen costs nothing, a multiplication on the way from the clock does.
        let at = if self.interval.mul == 1 { since } else { since.checked_mul(self.interval.mul.into())? };
        let next = tat.max(at).checked_add(n.checked_mul(self.interval.ticks)?)?;
        (next <= FIELD_END && next <= at.checked_add(self.capacity)?).then_some(next)
    }

    /// What to answer where [`admit`](Self::admit) gave `None`.
    #[cold]
    pub(crate) fn refusal(&self, tat: u64, now: Nanos, n: u64) -> Refused {
        let capacity = self.burst();
        if n > capacity {
            return Refused::ExceedsCapacity { asked: n, capacity };
        }
        let remaining = self.remaining(tat, now);
        // From here on n*T <= capacity, so the bucket must be in debt: it will do when that has fallen to capacity - n*T.
        match self.until(Ticks::from(tat) + self.cost(n) - Ticks::from(self.capacity), now) {
            Some(retry_after) if self.is_held(now) => Refused::Paused { asked: n, retry_after },
            Some(retry_after) => Refused::TooSoon { asked: n, remaining, retry_after },
            None => Refused::Never { asked: n, remaining },
        }
    }

    /// The largest n that would be admitted at `now`.
    #[inline]
    pub(crate) fn remaining(&self, tat: u64, now: Nanos) -> u64 {
        if self.is_held(now) {
            return 0;
        }
        let debt = (Ticks::from(tat) - self.at(now)).max(0);
        let left = u64::try_from(Ticks::from(self.capacity) - debt).unwrap_or(0);
        left.checked_div(self.interval.ticks).unwrap_or(u64::MAX)
    }

    /// The TAT after `n` permits were given back: at most full.
    pub(crate) fn refunded(&self, tat: u64, now: Nanos, n: u64) -> Ticks {
        (Ticks::from(tat) - self.cost(n)).max(self.filled(tat, now))
    }

    /// The TAT after all permits were given back, however many that are by a clock that was set back.
    pub(crate) fn filled(&self, tat: u64, now: Nanos) -> Ticks {
        let full = if self.is_held(now) { 0 } else { self.at(now) };
        full.min(tat.into())
    }

    /// The same quota with its ticks counted from before the origin, if `tat` lies before it: a clock that was set back.
    pub(crate) fn rebased_back(&self, tat: Ticks) -> (Self, Ticks) {
        if tat >= 0 {
            return (*self, tat);
        }
        let (mul, shift) = (Ticks::from(self.interval.mul), self.interval.shift);
        let nanos = (tat << shift).checked_div_euclid(mul).unwrap_or(0).max(-Ticks::from(self.origin.get()));
        let origin = u64::try_from(Ticks::from(self.origin.get()) + nanos).map_or(Nanos::ZERO, Nanos::new);
        (Self { origin, ..*self }, (tat - ((nanos * mul) >> shift)).max(0))
    }

    /// The burst; everything if unlimited.
    pub(crate) fn burst(&self) -> u64 {
        self.capacity.checked_div(self.interval.ticks).unwrap_or(u64::MAX)
    }

    /// The time from `now` to the first nanosecond that lies in tick `tick` or later; `None` if time brings no ticks.
    /// [`Duration::MAX`] stands for more than that.
    #[inline]
    pub(crate) fn until(&self, tick: Ticks, now: Nanos) -> Option<Duration> {
        // During a pause ticks are counted from its end, and nothing is there before.
        let tick = if self.is_held(now) { tick.max(0) } else { tick };
        if self.is_held(now) && tick == 0 {
            return Some(self.origin.saturating_since(now));
        }
        // What costs nothing is there at any time.
        if tick <= self.at(now) || self.interval.ticks == 0 {
            return Some(Duration::ZERO);
        }
        if self.interval.mul == 0 {
            return None;
        }
        let Some(wait) = self.nanos_at(tick).map(|at| at - Ticks::from(now.get())) else { return Some(Duration::MAX) };
        Some(span(u128::try_from(wait).unwrap_or(0)))
    }

    /// The first nanosecond that lies in tick `tick` or later; `None` if it is beyond 127 bits, or time brings no ticks. What lies
    /// that far in the past is 0.
    #[inline]
    pub(crate) fn nanos_at(&self, tick: Ticks) -> Option<Ticks> {
        let shift = u32::from(self.interval.shift);
        // A tick is below 2^124 in size here, see the bounds; only a shift can leave the range.
        if shift > 0 && tick.unsigned_abs().leading_zeros() <= shift + 2 {
            return (tick < 0).then_some(0);
        }
        let (ticks, mul) = (tick << shift, self.interval.mul);
        // In 64 bits where that will do, which is several times as fast.
        let whole = match u64::try_from(ticks) {
            Ok(ticks) => Ticks::from(ticks.checked_div(mul.into())?) + Ticks::from(ticks.checked_rem(mul.into())? > 0),
            Err(_) => {
                let mul = Ticks::from(mul);
                ticks.checked_div_euclid(mul)? + Ticks::from(ticks.checked_rem_euclid(mul)? > 0)
            }
        };
        Some(Ticks::from(self.origin.get()).saturating_add(whole))
    }

    /// The first instant that lies in tick `tick` or later: [`Nanos::MAX`] if it is never, or beyond 584 years.
    pub(crate) fn instant(&self, tick: Ticks) -> Nanos {
        if tick <= 0 && self.interval.mul == 0 {
            return if self.held { self.origin } else { Nanos::ZERO };
        }
        self.nanos_at(tick).map_or(Nanos::MAX, |at| Nanos::new(u64::try_from(at.max(0)).unwrap_or(u64::MAX)))
    }

    /// The first instant from which on the bucket is full; `None` if it never is, within 584 years.
    pub(crate) fn rest(&self, tat: u64) -> Option<Nanos> {
        let since_zero = self.until(tat.into(), Nanos::ZERO)?;
        u64::try_from(since_zero.as_nanos()).ok().map(Nanos::new)
    }

    /// The bucket at `now`, for a look.
    pub(crate) fn snapshot(&self, tat: u64, now: Nanos) -> Snapshot {
        let limit = self.burst();
        let until = |n| self.until(Ticks::from(tat) + self.cost(n) - Ticks::from(self.capacity), now);
        Snapshot {
            limit,
            remaining: self.remaining(tat, now),
            retry_after: if limit == 0 { None } else { until(1) },
            reset_after: until(limit),
        }
    }

    /// The same quota with its ticks counted from `now`, or from `first` if that is earlier, and `tat` in those ticks.
    ///
    /// Needed when the end of the time field comes near: at most once in nine years for whole nanoseconds, once a second for
    /// the finest unit.
    pub(crate) fn rebased(&self, tat: Ticks, now: Nanos) -> (Self, Ticks) {
        let first = self.at(now).min(tat).max(0);
        let shift = self.interval.shift;
        let (mul, first_ns) = (Ticks::from(self.interval.mul), first << shift);
        // A whole number of ticks and of nanoseconds, so that no instant moves.
        let nanos = first_ns.checked_div(mul).unwrap_or(0);
        let moved = (nanos * mul) >> shift;
        let origin = Ticks::from(self.origin.get()) + nanos;
        let origin = u64::try_from(origin).map_or(Nanos::MAX, Nanos::new);
        (Self { origin, held: false, ..*self }, tat - moved)
    }

    /// What is left at `now`, to be carried to another version. `deepest` is the deepest debt that this quota allows, in
    /// ticks: the capacity, or more where a queue lets large requests pay afterwards. `since` is when this version began.
    ///
    /// The instant is `max(now, tat - deepest)`, not `now`: a clock that was set back would otherwise be given the time
    /// between twice. Where TAT does not tell of time, without a rate and during a pause, it is `max(now, since)`.
    pub(crate) fn left(&self, tat: u64, now: Nanos, deepest: u64, since: Nanos) -> Left {
        let (tat, capacity) = (Ticks::from(tat), Ticks::from(self.capacity));
        let whole = |since, ticks| Left { ticks, cost: self.interval.ticks.max(1), since, rest: 0, per: 1 };
        if self.interval.ticks == 0 {
            // Unlimited leaves nothing.
            return whole(now.max(since), 0);
        }
        if self.interval.mul == 0 || self.is_held(now) {
            return whole(now.max(since), capacity - tat);
        }
        let (at, earliest) = (self.at(now), tat - Ticks::from(deepest));
        if at >= earliest {
            return whole(now, capacity - (tat - at).max(0));
        }
        // A grant was made at that tick, so it is a time of 64 bits; it may lie before the origin.
        let ticks = earliest << self.interval.shift;
        let mul = Ticks::from(self.interval.mul);
        let nanos = Ticks::from(self.origin.get()) + ticks.div_euclid(mul);
        Left {
            ticks: capacity - Ticks::from(deepest),
            cost: self.interval.ticks,
            since: u64::try_from(nanos.max(0)).map_or(Nanos::MAX, Nanos::new),
            rest: u64::try_from(ticks.rem_euclid(mul)).unwrap_or(0),
            per: u64::from(self.interval.mul),
        }
    }
}

impl Left {
    /// `permits` that are there at `now`.
    pub(crate) fn permits(permits: u64, now: Nanos) -> Self {
        Self { ticks: Ticks::from(permits), cost: 1, since: now, rest: 0, per: 1 }
    }

    /// The same at another instant: that of another clock.
    pub(crate) fn at(&self, now: Nanos) -> Self {
        Self { since: now, rest: 0, ..*self }
    }

    /// The debt, in permits rounded up, with which a quota of `burst` would start: never more than `burst` where no more is
    /// owed than the old bucket held.
    pub(crate) fn debt(&self, burst: u64) -> u64 {
        let owed = Ticks::from(burst) * Ticks::from(self.cost) - self.ticks;
        let cost = Ticks::from(self.cost);
        u64::try_from((owed.max(0) + cost - 1) / cost).unwrap_or(u64::MAX)
    }

    /// The instant from which the next version counts, rounded up to a nanosecond.
    pub(crate) fn since(&self) -> Nanos {
        self.since.saturating_add(Duration::from_nanos(u64::from(self.rest > 0)))
    }

    /// Starts a version at the end of a pause, unless that has come: what is left stays left until then.
    pub(crate) fn start_at(&self, end: Nanos, now: Nanos, interval: Interval, burst: u64) -> (Rate, Ticks) {
        if end <= now {
            return self.start(interval, burst);
        }
        // By a clock that was set back the version may count from later than the end.
        let end = end.max(self.since());
        let (rate, tat) = self.at(end).start(interval, burst);
        (Rate { held: true, ..rate }, tat)
    }

    /// Starts a version with what is left of the one before: what is left stays left, cut to the new burst, the fraction
    /// accrued included. The new TAT is rounded up to a whole tick, once.
    pub(crate) fn start(&self, interval: Interval, burst: u64) -> (Rate, Ticks) {
        // Without a rate no time tells the unit; that of the version before keeps a fraction of a permit exactly, if it fits.
        let ticks = if interval.mul == 0 { interval.ticks.min(self.cost) } else { interval.ticks };
        let interval = Interval { ticks, ..interval };
        let rate = Rate { origin: self.since, ..Rate::new(interval, burst) };
        (rate, self.arrival(&rate))
    }

    /// The TAT of a version `rate` that has what is left of the one before: cut to the burst, and rounded up to a whole tick, once.
    /// Its origin is the instant of which that is left, or earlier.
    pub(crate) fn arrival(&self, rate: &Rate) -> Ticks {
        let Interval { mul, shift, .. } = rate.interval;
        // The instant is a = (after + rest / per) * mul / 2^shift ticks after the origin; what is left is b = left * T' / T.
        // TAT = ceil(a + capacity - b), or ceil(a) if b is cut to the capacity.
        let (per, old_cost, shift) = (Ticks::from(self.per), Ticks::from(self.cost), u32::from(shift));
        let after = Ticks::from(self.since.get().saturating_sub(rate.origin.get()));
        let (whole, rest) = if shift == 0 {
            let instant = (after * per + Ticks::from(self.rest)) * Ticks::from(mul);
            (instant / per, instant % per)
        } else {
            let whole = after >> shift;
            // Such a tick has no parts: `mul` is 1.
            (whole, (after - (whole << shift)) * per + Ticks::from(self.rest))
        };
        if self.ticks >= Ticks::from(rate.burst()) * old_cost {
            return whole + Ticks::from(rest > 0);
        }
        let left = self.ticks * rate.cost(1);
        let (left_whole, left_rest) = (left.div_euclid(old_cost), left.rem_euclid(old_cost));
        // The fractions rest / (per * 2^shift) and left_rest / old_cost decide on the last tick. Where that can't be told in 127
        // bits, it is another one.
        let unit = 1i128.checked_shl(shift).filter(|unit| *unit > 0).unwrap_or(Ticks::MAX);
        let fades = (left_rest * per).saturating_mul(unit);
        let up = rest.checked_mul(old_cost).is_none_or(|rest| rest > fades);
        whole + Ticks::from(rate.capacity) - left_whole + Ticks::from(up)
    }
}

/// The TAT as the time field of a word holds it; `None` if it has left the field and the origin must move.
#[inline]
pub(crate) fn field(tat: Ticks) -> Option<u64> {
    u64::try_from(tat).ok().filter(|time| *time <= FIELD_END)
}

/// The TAT of a version that begins, or of a grant whose origin is near, which lies in the field: the unit was chosen for it.
pub(crate) fn first_field(tat: Ticks) -> u64 {
    field(tat).unwrap_or(FIELD_END)
}

/// The largest field.
pub(crate) const FIELD_END: u64 = (1 << FIELD_BITS) - 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quota::Quota;

    fn rate(permits: u64, period: Duration, burst: u64) -> Rate {
        let quota = Quota::new(permits, period).unwrap();
        Rate::new(Interval::fit(&quota, burst, burst), burst)
    }

    /// The law itself: what was granted, and whether another grant would keep it, whatever the order of times.
    struct Law {
        interval: Ticks,
        burst: Ticks,
        grants: Vec<(Ticks, Ticks)>,
    }

    impl Law {
        fn admits(&self, now: u64, n: u64) -> bool {
            let (mut sum, now) = (Ticks::from(n), Ticks::from(now));
            let lawful = |sum: Ticks, then: Ticks| sum * self.interval <= self.burst * self.interval + (now - then);
            lawful(sum, now)
                && self.grants.iter().rev().all(|&(then, n)| {
                    sum += n;
                    lawful(sum, then)
                })
        }
    }

    #[test]
    fn every_short_sequence_is_answered_as_the_law_says() {
        let requests: Vec<(u64, u64)> = (0..6).flat_map(|now| (1..3).map(move |n| (now, n))).collect();
        for (interval, burst) in [(1, 1), (2, 1), (2, 2), (3, 2), (2, 3)] {
            let rate = rate(1, Duration::from_nanos(interval), burst);
            let mut sequence = [0; 4];
            loop {
                let mut law = Law { interval: interval.into(), burst: burst.into(), grants: Vec::new() };
                let mut tat = 0;
                for &index in &sequence {
                    let (now, n) = requests[index];
                    let granted = rate.admit(tat, Nanos::new(now), n).and_then(field);
                    assert_eq!(granted.is_some(), law.admits(now, n), "T {interval} burst {burst}: {sequence:?}");
                    assert_eq!(rate.admit_in_64_bits(tat, Nanos::new(now), n), granted);
                    if let Some(next) = granted {
                        tat = next;
                        law.grants.push((now.into(), n.into()));
                    }
                }
                let Some(digit) = sequence.iter().position(|&digit| digit + 1 < requests.len()) else { break };
                sequence[..digit].fill(0);
                sequence[digit] += 1;
            }
        }
    }

    #[test]
    fn a_wait_ends_at_the_first_nanosecond_that_admits() {
        for (permits, period, burst) in
            [(3, 1_000_000_000, 3), (7, 1_000_000_000, 1), (980_000_000, 10_000_000_000, 5), (1, 1 << 62, 1)]
        {
            let rate = rate(permits, Duration::from_nanos(period), burst);
            let now = Nanos::new(12_345);
            let full = field(rate.admit(0, now, burst).unwrap()).unwrap();
            for n in 1..=burst {
                let wait = rate.refusal(full, now, n).retry_after().unwrap();
                let then = now.saturating_add(wait);
                assert!(rate.admit(full, then, n).is_some(), "{permits} per {period} ns, {n} after {wait:?}");
                assert!(rate.admit(full, Nanos::new(then.get() - 1), n).is_none(), "{n} before {wait:?}");
            }
        }
    }

    #[test]
    fn a_moved_origin_changes_no_answer() {
        let rate = rate(2004, Duration::from_secs(1), 7);
        let now = Nanos::from_secs(1_200_000); // beyond the field of 2^59 ticks of 1/501 ns
        let tat = rate.admit(0, now, 3).unwrap();
        assert_eq!(field(tat), None);
        let (moved, tat_moved) = rate.rebased(tat, now);
        let tat_moved = field(tat_moved).unwrap();
        for later in [0, 1, 499_001, 499_002, 1_000_000_000] {
            let then = Nanos::new(now.get() + later);
            for n in 1..=7 {
                let (before, after) = (tat.max(rate.at(then)) + rate.cost(n), moved.admit(tat_moved, then, n));
                let lawful = before <= rate.at(then) + Ticks::from(rate.capacity);
                assert_eq!(after.is_some(), lawful, "{n} after {later} ns");
                assert_eq!(after.map(|after| after - tat_moved as Ticks), lawful.then(|| before - tat));
            }
        }
    }

    #[test]
    fn the_same_quota_carries_to_itself_and_a_clock_set_back_mints_nothing() {
        for (permits, burst) in [(1, 3), (3, 3), (7, 2)] {
            let rate = rate(permits, Duration::from_nanos(30), burst);
            for tat in [0, 95, 110, 125, 130] {
                for now in [0, 50, 100, 200] {
                    let left = rate.left(tat, Nanos::new(now), rate.capacity, Nanos::ZERO);
                    let (next, next_tat) = left.start(rate.interval, burst);
                    let next_tat = field(next_tat).unwrap();
                    for then in [now, 100, 130, 300] {
                        let then = Nanos::new(then.max(now));
                        let (carried, kept) = (next.remaining(next_tat, then), rate.remaining(tat, then));
                        assert!(carried <= kept, "permits were minted: TAT {tat}, changed at {now}, seen at {then:?}");
                        let set_back = Ticks::from(tat) - Ticks::from(rate.capacity) > rate.at(Nanos::new(now));
                        assert!(set_back || carried == kept, "lost: TAT {tat}, changed at {now}, seen at {then:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_owed_is_told_in_whole_permits() {
        let rate = rate(1, Duration::from_nanos(10), 3);
        let debt = |tat, burst| rate.left(tat, Nanos::new(20), 90, Nanos::ZERO).debt(burst);
        // 25 ticks of the capacity of 30 are left, then 30, then 7 more than that are owed.
        assert_eq!([0, 2, 3].map(|burst| debt(25, burst)), [0, 0, 1]);
        assert_eq!([0, 3, 4].map(|burst| debt(20, burst)), [0, 0, 1]);
        assert_eq!([0, 3, u64::MAX].map(|burst| debt(57, burst)), [1, 4, u64::MAX]);
    }

    #[test]
    fn the_first_arrival_time_is_rounded_up_once() {
        // The instant is half a nanosecond after 7, a tick a third of one: 1.5 ticks.
        let interval = Interval { mul: 3, shift: 0, ticks: 10, round_up: false };
        let start = |ticks, burst| {
            let left = Left { ticks, cost: 100, since: Nanos::new(7), rest: 1, per: 2 };
            left.start(interval, burst).1
        };
        // 1.5 ticks, and the burst of 10 less a tenth of what is left.
        assert_eq!([0, 1, 4, 5, 6, 15, 16, 99].map(|ticks| start(ticks, 1)), [12, 12, 12, 11, 11, 10, 10, 2]);
        assert_eq!([(100, 1), (101, 1), (0, 0)].map(|(ticks, burst)| start(ticks, burst)), [2, 2, 2]);
        assert_eq!(start(-1, 0), 2);
        assert_eq!(start(-6, 0), 3);
    }

    #[test]
    fn an_instant_too_far_to_be_told_is_the_end_of_time_or_its_start() {
        // The longest tick that a quota takes.
        let rate = rate(1, Duration::MAX, 1);
        let shift = u32::from(rate.interval.shift);
        let far = 1 << (125 - shift);
        assert_eq!([far, -far].map(|tick| rate.nanos_at(tick)), [None, Some(0)]);
        assert_eq!([far / 2, -far / 2].map(|tick| rate.nanos_at(tick)), [Some(1 << 124), Some(-1 << 124)]);
    }
}
