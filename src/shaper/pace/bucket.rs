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

use super::{Change, Law, MaxN, Pace, Settings, UnsaidBurst, Waitable};
use crate::algorithm::Gcra;
use crate::algorithm::gcra::{self, Left, Rate, Ticks};
use crate::cell::{Cell, Next, Version};
use crate::interval::{FIELD_BITS, Interval};
use crate::quota::Quota;
use crate::time::Nanos;
use crate::word::Word;

impl Waitable for Gcra {}

impl Law for Gcra {
    type Record = Rate;
    type Pace<'a> = BucketPace;

    #[inline]
    fn cell(&self) -> &Cell<Rate> {
        &self.cell
    }

    #[inline]
    fn pace(&self, _: Word, rate: Rate, now: Nanos, settings: &Settings) -> BucketPace {
        BucketPace::new(rate, now, settings.catch_up)
    }

    fn largest(quota: &Quota, settings: &Settings) -> u64 {
        fit(quota, settings, 0).1
    }

    /// In ticks: of the capacity, the largest request, or what was owed at the beginning.
    fn deepest(rate: &Rate, largest: u64, first: Word) -> u64 {
        u64::try_from(rate.cost(largest)).unwrap_or(u64::MAX).max(rate.capacity).max(first.field())
    }

    fn changed(&self, version: &Version<Rate>, change: &Change<'_>) -> (Next<Rate>, u64) {
        let &Version { word, record: rate, since, .. } = version;
        let &Change { quota, from, to, deepest, settings } = change;
        let burst = settings.burst(&quota);
        let left = rate.left(word.field(), from, deepest, since);
        // What is owed for large requests is paid under the new quota, and must fit its word.
        let (interval, largest) = fit(&quota, settings, left.debt(burst));
        // On another clock, only spans mean what they did.
        let left = if from == to { left } else { left.at(to) };
        let started = if rate.is_held(from) {
            let end = if from == to { rate.origin } else { to.saturating_add(rate.origin.saturating_since(from)) };
            left.start_at(end, to, interval, burst)
        } else {
            left.start(interval, burst)
        };
        (begin(version, Some(quota), started, left.since()), largest)
    }

    fn paused(&self, version: &Version<Rate>, end: Nanos, now: Nanos, deepest: u64) -> Next<Rate> {
        let &Version { word, record: rate, since, max_pause } = version;
        let left = rate.left(word.field(), now, deepest, since);
        let end = end.min(now.saturating_add(max_pause));
        begin(version, None, left.start_at(end, now, rate.interval, rate.burst()), left.since())
    }

    fn refunded(&self, version: &Version<Rate>, n: u64, now: Nanos) -> Next<Rate> {
        let &Version { word, record: rate, since, .. } = version;
        begin(version, None, rate.rebased_back(rate.refunded(word.field(), now, n)), since)
    }

    fn filled(&self, version: &Version<Rate>, now: Nanos) -> Next<Rate> {
        let &Version { word, record: rate, since, .. } = version;
        begin(version, None, rate.rebased_back(rate.filled(word.field(), now)), since)
    }

    fn rebased(&self, version: &Version<Rate>, now: Nanos, settings: &Settings) -> Next<Rate> {
        let &Version { word, record: rate, since, .. } = version;
        let (record, tat) = self.pace(word, rate, now, settings).rebased(word.field());
        Next { quota: None, record, word: word.with_field(gcra::first_field(tat)), since }
    }

    fn resumed(&self, version: &Version<Rate>) -> Next<Rate> {
        let &Version { word, record: rate, since, .. } = version;
        Next { quota: None, record: Rate { held: false, ..rate }, word, since }
    }
}

impl Gcra {
    /// The bucket of a shaper that is made from a quota: `initial` permits are there at `now`, the whole burst if `None`.
    pub(crate) fn for_queue(quota: Quota, settings: &Settings, initial: Option<u64>, now: Nanos) -> Self {
        let burst = settings.burst(&quota);
        let (interval, _) = fit(&quota, settings, 0);
        let (rate, tat, since) = match initial {
            None => (Rate::new(interval, burst), 0, Nanos::ZERO),
            Some(permits) => {
                let (rate, tat) = Left::permits(permits, now).start(interval, burst);
                (rate, tat, now)
            }
        };
        Self { cell: Cell::new(quota, &rate, gcra::first_field(tat), since, Duration::MAX) }
    }
}

/// The version that begins with `rate` and a TAT, and is not behind.
fn begin(version: &Version<Rate>, quota: Option<Quota>, (record, tat): (Rate, Ticks), since: Nanos) -> Next<Rate> {
    let word = version.word.with_field(gcra::first_field(tat)).with_behind(false);
    Next { quota, record, word, since }
}

impl Settings {
    fn burst(&self, quota: &Quota) -> u64 {
        match self.unsaid {
            UnsaidBurst::One => quota.shaping_burst(),
            UnsaidBurst::Period => quota.policing_burst(),
        }
    }
}

/// The unit for `quota`, if up to `owed` permits are carried into it, and its largest request.
///
/// The unit is chosen for the burst and not for the largest request, so that a generous `max_n` does not cost exactness; what
/// the word can't hold as a debt in that unit is too large.
fn fit(quota: &Quota, settings: &Settings, owed: u64) -> (Interval, u64) {
    let burst = settings.burst(quota);
    if quota.is_unlimited() {
        return (Interval::fit(quota, burst, burst), settings.max_n.said());
    }
    let wanted = match settings.max_n {
        MaxN::Unsaid => burst.max(quota.permits()),
        MaxN::Said(n) => n,
        MaxN::Burst => burst,
    };
    // At rate 0 nothing is exact or not, and who waits for more than the burst stays.
    let span = if quota.permits() == 0 { burst.max(wanted) } else { burst };
    let interval = Interval::fit(quota, burst, span.max(owed).min(Quota::MAX_BURST));
    (interval, if burst == 0 { 0 } else { wanted.min(interval.most()) })
}

/// One version of a bucket's quota, as the queue sees it at one instant.
#[derive(Clone, Copy, Debug)]
pub struct BucketPace {
    rate: Rate,
    now: Nanos,
    at: Ticks,
    catch_up: Duration,
}

impl BucketPace {
    #[inline]
    fn new(rate: Rate, now: Nanos, catch_up: Duration) -> Self {
        Self { rate, now, at: rate.at(now), catch_up }
    }

    /// The tick before which lateness is not made up for.
    #[inline]
    fn floor(&self) -> Ticks {
        // A quarter of the time field is the most that can be: a quarter of a second for the finest unit.
        let floor = self.rate.at(self.now.saturating_sub(self.catch_up)).max(self.at - (1 << (FIELD_BITS - 2)));
        self.not_before_the_end_of_a_pause(floor)
    }

    #[inline]
    fn not_before_the_end_of_a_pause(&self, tick: Ticks) -> Ticks {
        if self.rate.held { tick.max(0) } else { tick }
    }

    /// The same quota with an origin near `now`, and the TAT in its ticks.
    fn rebased(&self, tat: u64) -> (Rate, Ticks) {
        // No base lies as far back, see `floor`.
        self.rate.rebased(Ticks::from(tat).max(self.at - (1 << (FIELD_BITS - 2))), self.now)
    }

    /// The tick from which a request of `n` may leave, if the TAT is `tat` when its turn comes.
    #[inline]
    fn tick(&self, tat: Ticks, n: u64) -> Ticks {
        let capacity = Ticks::from(self.rate.capacity);
        self.not_before_the_end_of_a_pause(tat - (capacity - self.rate.cost(n).min(capacity)))
    }
}

impl Pace for BucketPace {
    type Record = Rate;
    type Slot = Ticks;

    #[inline]
    fn is_held_at(&self, instant: Nanos) -> bool {
        self.rate.is_held(instant)
    }

    #[inline]
    fn is_held(&self) -> bool {
        self.is_held_at(self.now)
    }

    #[inline]
    fn is_past_a_pause(&self) -> bool {
        self.rate.held && !self.is_held()
    }

    #[inline]
    fn must_rebase(&self) -> bool {
        // One less than half of the field: a start may be rounded up by a tick.
        self.at >= (1 << (FIELD_BITS - 1)) - 1
    }

    fn counts_in_full(&self, _: Word) -> bool {
        // A debt, which is carried as it is.
        true
    }

    #[inline]
    fn slot(&self, word: Word, n: u64) -> Ticks {
        self.tick(word.field().into(), n)
    }

    #[inline]
    fn slot_behind(&self, word: Word, ahead: u128, n: u64) -> Ticks {
        // Beyond 2^120 ticks every instant is Nanos::MAX.
        let ahead = Ticks::try_from(ahead).unwrap_or(Ticks::MAX).saturating_mul(Ticks::from(self.rate.interval.ticks));
        self.tick(Ticks::from(word.field()) + ahead.min(1 << 120), n)
    }

    #[inline]
    fn is_due(&self, slot: Ticks) -> bool {
        slot <= self.at && !self.is_held()
    }

    fn is_overdue(&self, slot: Ticks) -> bool {
        slot < self.floor()
    }

    #[inline]
    fn wait(&self, slot: Ticks) -> Option<Duration> {
        self.rate.until(slot, self.now)
    }

    fn instant(&self, slot: Ticks) -> Nanos {
        self.rate.instant(slot)
    }

    #[inline]
    fn pass(&self, word: Word, n: u64) -> Option<Word> {
        let tat = Ticks::from(word.field());
        if !self.is_due(self.tick(tat, n)) {
            return None;
        }
        let late = word.is_behind() && tat >= self.floor();
        let base = if tat > self.at || late { tat } else { self.rate.starts_at(self.now) };
        let next = base + self.rate.cost(n);
        Some(word.with_field(gcra::first_field(next)).with_behind(late && next <= self.at))
    }

    fn depart(&self, word: Word, n: u64) -> Word {
        // It waited, so time before `now` is lateness.
        let tat = Ticks::from(word.field()).max(self.floor()) + self.rate.cost(n);
        word.with_field(gcra::first_field(tat)).with_behind(tat <= self.at)
    }

    fn is_behind(&self, word: Word) -> bool {
        Ticks::from(word.field()) <= self.at
    }

    fn without(&self, word: Word, n: u64, behind: bool) -> Word {
        let tat = u64::try_from(Ticks::from(word.field()) - self.rate.cost(n)).unwrap_or(0);
        word.with_field(tat).with_behind(behind && Ticks::from(tat) <= self.at)
    }

    #[inline]
    fn remaining(&self, word: Word) -> u64 {
        self.rate.remaining(word.field(), self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_made_up_for_by_a_quarter_of_the_field_at_most() {
        let quota = Quota::new(1, Duration::from_nanos(10)).unwrap();
        let rate = Rate { origin: Nanos::new(1 << 58), ..Rate::new(Interval::fit(&quota, 1, 1), 1) };
        let pace = BucketPace::new(rate, Nanos::new((1 << 58) + 5), Duration::MAX);
        let floor = 5 - (1 << 57);
        assert_eq!([floor - 1, floor].map(|slot| pace.is_overdue(slot)), [true, false]);
        assert_eq!([0, 5].map(|slot| pace.is_overdue(slot)), [false, false]);
    }

    #[test]
    fn an_origin_that_moves_keeps_lateness_up_to_a_quarter_of_the_field() {
        let quota = Quota::new(1, Duration::from_nanos(10)).unwrap();
        let now = Nanos::new(1 << 58);
        let pace = BucketPace::new(Rate::new(Interval::fit(&quota, 1, 1), 1), now, Duration::MAX);
        assert!(pace.must_rebase());
        let behind = |tat| {
            let (rate, tat) = pace.rebased(tat);
            assert!(!BucketPace::new(rate, now, Duration::MAX).must_rebase() && tat >= 0);
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
        let next = |now| {
            let next = BucketPace::new(rate, Nanos::new(now), Duration::ZERO).pass(word, 1)?;
            Some(Ticks::from(next.field()) - rate.cost(1))
        };
        assert_eq!([5 * tick - 1, 5 * tick, 5 * tick + 1].map(next), [None, Some(5), Some(6)]);
    }
}
