//! When permits leave: the law of the shaper on one word, pure arithmetic.
//!
//! n permits leave when min(n, burst) are there, and the rest is paid afterwards. The schedule is *anchored*: a permit that
//! a timer delivers late does not move it, so the configured rate is the rate that is delivered. What lateness may be made
//! up for is bounded by `catch_up`, a time, since lateness belongs to timers and schedulers and not to T.
//!
//! Every grant starts from a base of at least `now - catch_up`, hence the law: in every span W at most
//! `max(burst, largest n) + catch_up/T + rate*W`. A base before `now` is given only to those who waited, and to those who
//! come while the schedule is still `behind`; so after it has caught up, idling gains nothing.
#![expect(clippy::arithmetic_side_effects, reason = "ticks, bounded as in algorithm::gcra")]

use std::time::Duration;

use crate::algorithm::gcra::{Rate, Ticks};
use crate::interval::FIELD_BITS;
use crate::time::Nanos;
use crate::word::Word;

/// One version of the quota, as the queue sees it at one instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    rate: Rate,
    now: Nanos,
    at: Ticks,
    catch_up: Duration,
}

impl Pace {
    #[inline]
    pub(crate) fn new(rate: Rate, now: Nanos, catch_up: Duration) -> Self {
        Self { rate, now, at: rate.at(now), catch_up }
    }

    /// The tick before which lateness is not made up for.
    fn floor(&self) -> Ticks {
        // A quarter of the time field is the most that can be: a quarter of a second for the finest unit.
        let floor = self.rate.at(self.now.saturating_sub(self.catch_up)).max(self.at - (1 << (FIELD_BITS - 2)));
        self.not_before_the_end_of_a_pause(floor)
    }

    fn not_before_the_end_of_a_pause(&self, tick: Ticks) -> Ticks {
        if self.rate.held { tick.max(0) } else { tick }
    }

    /// Whether a pause lasts.
    pub(crate) fn is_held(&self) -> bool {
        self.is_held_at(self.now)
    }

    /// Whether this pause lasts at another instant.
    pub(crate) fn is_held_at(&self, instant: Nanos) -> bool {
        self.rate.is_held(instant)
    }

    /// Whether the end of the time field is so near that the origin must move before anything is granted.
    #[inline]
    pub(crate) fn must_rebase(&self) -> bool {
        // One less than half of the field: a start may be rounded up by a tick.
        self.at >= (1 << (FIELD_BITS - 1)) - 1
    }

    /// The same quota with an origin near `now`, and the TAT in its ticks.
    pub(crate) fn rebased(&self, tat: u64) -> (Rate, Ticks) {
        // No base lies as far back, see `floor`.
        self.rate.rebased(Ticks::from(tat).max(self.at - (1 << (FIELD_BITS - 2))), self.now)
    }

    /// Whether a pause has ended and the version still tells of it.
    #[inline]
    pub(crate) fn is_past_a_pause(&self) -> bool {
        self.rate.held && !self.is_held()
    }

    /// The tick from which a request of `n` may leave, if the TAT is `tat` when its turn comes.
    #[inline]
    pub(crate) fn slot(&self, tat: Ticks, n: u64) -> Ticks {
        let capacity = Ticks::from(self.rate.capacity);
        self.not_before_the_end_of_a_pause(tat - (capacity - self.rate.cost(n).min(capacity)))
    }

    /// Whether that tick has come.
    #[inline]
    pub(crate) fn is_due(&self, slot: Ticks) -> bool {
        slot <= self.at && !self.is_held()
    }

    /// Whether it came so long ago that nobody can have waited for it: timers are not as late as that.
    pub(crate) fn is_overdue(&self, slot: Ticks) -> bool {
        slot < self.floor()
    }

    /// The TAT after `ahead` more permits.
    pub(crate) fn after(&self, tat: Ticks, ahead: u128) -> Ticks {
        // Beyond 2^120 ticks every instant is Nanos::MAX.
        let ahead = Ticks::try_from(ahead).unwrap_or(Ticks::MAX).saturating_mul(Ticks::from(self.rate.interval.ticks));
        tat + ahead.min(1 << 120)
    }

    /// A request that meets nobody waiting: the TAT after its grant and whether the schedule is still behind, or `None` if
    /// it has to wait.
    #[inline]
    pub(crate) fn pass(&self, word: Word, n: u64) -> Option<(Ticks, bool)> {
        let tat = Ticks::from(word.field());
        if !self.is_due(self.slot(tat, n)) {
            return None;
        }
        let late = word.is_behind() && tat >= self.floor();
        let base = if tat > self.at || late { tat } else { self.rate.starts_at(self.now) };
        let next = base + self.rate.cost(n);
        Some((next, late && next <= self.at))
    }

    /// The TAT after the head of the line, whose slot has come, leaves. It waited, so time before `now` is lateness.
    pub(crate) fn depart(&self, tat: Ticks, n: u64) -> Ticks {
        tat.max(self.floor()) + self.rate.cost(n)
    }

    /// Whether the schedule is behind the clock when the TAT is `tat`.
    pub(crate) fn is_behind(&self, tat: Ticks) -> bool {
        tat <= self.at
    }

    /// The TAT as if a grant of `n`, the last one, had not been made.
    pub(crate) fn without(&self, tat: u64, n: u64) -> u64 {
        u64::try_from(Ticks::from(tat) - self.rate.cost(n)).unwrap_or(0)
    }

    /// The whole permits that are there now.
    pub(crate) fn remaining(&self, tat: u64) -> u64 {
        self.rate.remaining(tat, self.now)
    }

    /// The time from now to a slot; `None` if it never comes.
    pub(crate) fn wait(&self, slot: Ticks) -> Option<Duration> {
        self.rate.until(slot, self.now)
    }

    /// The instant of a slot; `Nanos::MAX` if it never comes.
    pub(crate) fn instant(&self, slot: Ticks) -> Nanos {
        self.rate.instant(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Interval;
    use crate::quota::Quota;

    #[test]
    fn lateness_is_made_up_for_by_a_quarter_of_the_field_at_most() {
        let quota = Quota::new(1, Duration::from_nanos(10)).unwrap();
        let rate = Rate { origin: Nanos::new(1 << 58), ..Rate::new(Interval::fit(&quota, 1, 1), 1) };
        let pace = Pace::new(rate, Nanos::new((1 << 58) + 5), Duration::MAX);
        let floor = 5 - (1 << 57);
        assert_eq!([floor - 1, floor].map(|slot| pace.is_overdue(slot)), [true, false]);
        assert_eq!([0, 5].map(|slot| pace.is_overdue(slot)), [false, false]);
    }

    #[test]
    fn an_origin_that_moves_keeps_lateness_up_to_a_quarter_of_the_field() {
        let quota = Quota::new(1, Duration::from_nanos(10)).unwrap();
        let now = Nanos::new(1 << 58);
        let pace = Pace::new(Rate::new(Interval::fit(&quota, 1, 1), 1), now, Duration::MAX);
        assert!(pace.must_rebase());
        let behind = |tat| {
            let (rate, tat) = pace.rebased(tat);
            assert!(!Pace::new(rate, now, Duration::MAX).must_rebase() && tat >= 0);
            rate.at(now) - tat
        };
        let quarter = 1 << 57;
        assert_eq!(behind(now.get() + 7), -7);
        assert_eq!([1, quarter, quarter + 1].map(|late| behind(now.get() - late)), [1, 1 << 57, 1 << 57]);
        assert_eq!(behind(0), 1 << 57);
    }

    #[test]
    fn a_start_is_rounded_up_to_a_long_tick_even_where_the_schedule_has_just_been_caught_up() {
        let quota = Quota::new(1, Duration::from_secs(1 << 33)).unwrap();
        let rate = Rate::new(Interval::fit(&quota, 1, 1), 1);
        let tick = 1 << rate.interval.shift;
        assert!(rate.interval.round_up && tick > 1);
        let word = Word::default().with_field(5);
        let next =
            |now| Pace::new(rate, Nanos::new(now), Duration::ZERO).pass(word, 1).map(|(tat, _)| tat - rate.cost(1));
        assert_eq!([5 * tick - 1, 5 * tick, 5 * tick + 1].map(next), [None, Some(5), Some(6)]);
    }
}
