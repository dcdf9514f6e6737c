//! When permits leave that a sliding log keeps: as soon as it admits them.
//!
//! As over the other window laws there is no schedule that could be late: a permit that a timer delivers late counts from when it
//! is delivered. Who stands further back is told the instant at which he leaves if all ahead of him are single permits; with
//! larger ones, which leave together, he may be told too early.

use std::time::Duration;

use super::{Change, Law, Pace, Settings, Waitable};
use crate::algorithm::SlidingLogLaw;
use crate::algorithm::log::{Log, Taken};
use crate::cell::{Cell, Next, Version};
use crate::quota::Quota;
use crate::time::{Nanos, span};
use crate::word::Word;

impl Waitable for SlidingLogLaw {}

impl Law for SlidingLogLaw {
    type Record = Log;
    type Pace<'a> = LogPace<'a>;

    #[inline]
    fn cell(&self) -> &Cell<Log> {
        &self.cell
    }

    #[inline]
    fn pace(&self, word: Word, log: Log, now: Nanos, settings: &Settings) -> LogPace<'_> {
        LogPace { taken: self.read(word, log), now, catch_up: settings.catch_up }
    }

    /// The times are written first, under the lock that every exchange takes, so that none fails after it.
    fn exchange(&self, pace: &LogPace<'_>, seen: Word, next: Word) -> Result<(), Word> {
        let LogPace { taken, now, .. } = pace;
        self.cell.exchange_locked(|word| {
            // A word tells how many were granted and not when: since it was seen, one may have been taken back and granted anew.
            let granted = next.field().saturating_sub(seen.field());
            if word != seen || granted > 0 && !taken.admits(granted, *now) {
                return Err(word);
            }
            let at = taken.at(*now);
            (seen.field()..next.field()).for_each(|position| taken.ring.write(position, at));
            Ok(next)
        })
    }

    fn largest(quota: &Quota, settings: &Settings) -> u64 {
        Log::new(quota).largest().min(settings.max_n.said())
    }

    fn changed(&self, version: &Version<Log>, change: &Change<'_>) -> (Next<Log>, u64) {
        let &Change { quota, from, to, settings, .. } = change;
        let taken = self.read(version.word, version.record);
        let (mut record, head, mut since) = self.with_quota(&taken, &quota, from, version.since);
        let word = version.word.with_field(head).with_behind(false);
        if from != to {
            (record, since) = (self.read(word, record).moved(from, to), to);
        }
        (Next { quota: Some(quota), record, word, since }, Self::largest(&quota, settings))
    }

    fn paused(&self, version: &Version<Log>, end: Nanos, now: Nanos, _deepest: u64) -> Next<Log> {
        let taken = self.read(version.word, version.record);
        let end = end.min(now.saturating_add(version.max_pause));
        let (record, since) = taken.held_until(end, now, version.since);
        Next { since, ..begin(version, (record, taken.head)) }
    }

    fn refunded(&self, version: &Version<Log>, n: u64, now: Nanos) -> Next<Log> {
        begin(version, self.read(version.word, version.record).refunded(n, now))
    }

    fn rebased(&self, version: &Version<Log>, _: Nanos, _: &Settings) -> Next<Log> {
        begin(version, self.read(version.word, version.record).renumbered())
    }

    fn resumed(&self, version: &Version<Log>) -> Next<Log> {
        begin(version, (Log { held: false, ..version.record }, version.word.field()))
    }
}

impl SlidingLogLaw {
    /// What a word and its version tell, of no meaning if they are not of one version.
    #[inline]
    fn read(&self, word: Word, log: Log) -> Taken<'_> {
        Taken { log, head: word.field(), ring: self.rings.get_or_none(log.ring) }
    }
}

fn begin(version: &Version<Log>, (record, head): (Log, u64)) -> Next<Log> {
    Next { quota: None, record, word: version.word.with_field(head).with_behind(false), since: version.since }
}

/// One version of a log's quota, as the queue sees it at one instant.
#[derive(Clone, Copy, Debug)]
pub struct LogPace<'a> {
    taken: Taken<'a>,
    now: Nanos,
    catch_up: Duration,
}

impl Pace for LogPace<'_> {
    type Record = Log;

    /// Nanoseconds since the clock's origin.
    type Slot = u128;

    #[inline]
    fn is_held_at(&self, instant: Nanos) -> bool {
        self.taken.log.is_held(instant)
    }

    #[inline]
    fn is_held(&self) -> bool {
        self.is_held_at(self.now)
    }

    #[inline]
    fn is_past_a_pause(&self) -> bool {
        self.taken.log.held && !self.is_held()
    }

    #[inline]
    fn must_rebase(&self) -> bool {
        self.taken.must_renumber()
    }

    fn counts_in_full(&self, _: Word) -> bool {
        // It is the newest in the log, for as long as anything counts.
        true
    }

    #[inline]
    fn slot(&self, word: Word, n: u64) -> u128 {
        self.taken.slot(word.field(), n, self.now)
    }

    #[inline]
    fn slot_behind(&self, word: Word, ahead: u128, n: u64) -> u128 {
        if ahead == 0 { self.slot(word, n) } else { self.taken.slot_behind(word.field(), ahead, n, self.now) }
    }

    #[inline]
    fn is_due(&self, slot: u128) -> bool {
        slot <= self.now.get().into() && !self.is_held()
    }

    fn is_overdue(&self, slot: u128) -> bool {
        slot < self.now.saturating_sub(self.catch_up).get().into()
    }

    #[inline]
    fn wait(&self, slot: u128) -> Option<Duration> {
        Some(span(slot.saturating_sub(self.now.get().into())))
    }

    fn instant(&self, slot: u128) -> Nanos {
        u64::try_from(slot).map_or(Nanos::MAX, Nanos::new)
    }

    #[inline]
    fn pass(&self, word: Word, n: u64) -> Option<Word> {
        self.taken.admits(n, self.now).then(|| self.depart(word, n))
    }

    #[inline]
    fn depart(&self, word: Word, n: u64) -> Word {
        // There is room for the largest request, see `must_rebase`.
        if self.taken.log.unlimited { word } else { word.with_field(word.field().saturating_add(n)) }
    }

    fn is_behind(&self, _: Word) -> bool {
        false
    }

    fn without(&self, word: Word, n: u64, _behind: bool) -> Word {
        let head = word.field();
        // No further than what counts: what is before it counts no more, and would count anew.
        word.with_field(head.saturating_sub(n).max(self.taken.log.from.min(head)))
    }

    #[inline]
    fn remaining(&self, _: Word) -> u64 {
        self.taken.remaining(self.now)
    }
}
