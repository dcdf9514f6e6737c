//! What changes under those who wait: the quota, pauses, permits given back by number, the origin.
//!
//! Each is a version of the quota, made under both locks: the queue's, so that who waits is timed anew in the same step, and the
//! cell's, so that versions follow each other.

use std::convert::Infallible;

use super::{Guarded, Queue, deepest};
use crate::algorithm::gcra::{self, Left, Rate, Ticks};
use crate::cell::{Next, Version};
use crate::quota::Quota;
use crate::refused::Refused;
use crate::shaper::wakers::Wakers;
use crate::sync::Ordering;
use crate::time::Nanos;
use crate::word::Word;

impl Queue {
    /// Changes the quota. It carries permits, not time; who waits is timed anew, and ends if it asks for too much now.
    pub(crate) fn set_quota(&self, quota: Quota, now: Nanos) {
        let burst = quota.shaping_burst();
        self.locked(now, |guarded, wakers| {
            let first = self.restart(guarded, now, Some(quota), |left, Version { record: rate, .. }| {
                // What is owed for large requests is paid under the new quota, and must fit its word.
                let (interval, largest) = self.settings.fit(&quota, left.debt(burst));
                let (rate, tat) = if rate.is_held(now) {
                    left.start_at(rate.origin, now, interval, burst)
                } else {
                    left.start(interval, burst)
                };
                (rate, tat, Some(largest))
            });
            let capacity = self.largest(first);
            guarded.line.refuse(|n| (n > capacity).then_some(Refused::ExceedsCapacity { asked: n, capacity }), wakers);
            self.retime(guarded, now, wakers);
        });
    }

    /// Holds everybody until `end`; ends a pause if that is not after `now`. What was left is left at `end`.
    pub(crate) fn pause_until(&self, end: Nanos, now: Nanos) {
        self.locked(now, |guarded, wakers| {
            if end <= now && !self.look(guarded, now).1.is_held() {
                return;
            }
            self.restart(guarded, now, None, |left, Version { record: rate, max_pause, .. }| {
                let end = end.min(now.saturating_add(max_pause));
                let (rate, tat) = left.start_at(end, now, rate.interval, rate.burst());
                (rate, tat, None)
            });
            self.retime(guarded, now, wakers);
        });
    }

    /// Gives `n` permits back, at most to the full burst.
    pub(crate) fn refund(&self, n: u64, now: Nanos) {
        if n == 0 {
            return;
        }
        self.locked(now, |guarded, wakers| {
            // A version of its own, so that no later grant is taken for one that left the same word before.
            self.change(guarded, |Version { word, record: rate, since, .. }| {
                let (rate, tat) = rate.rebased_back(rate.refunded(word.field(), now, n));
                let word = word.with_field(gcra::first_field(tat)).with_behind(false);
                (Next { quota: None, record: rate, word, since }, None)
            });
            // Who stands further back finds out when he comes to the front.
            self.grant_due(guarded, now, wakers);
        });
    }

    /// Starts another version with what is left of this one; with another quota, its largest n too. Returns its first word.
    fn restart(
        &self,
        guarded: &mut Guarded,
        now: Nanos,
        quota: Option<Quota>,
        start: impl Fn(Left, Version<Rate>) -> (Rate, Ticks, Option<u64>),
    ) -> Word {
        let deepest_before = guarded.deepest;
        let first = self.change(guarded, |version @ Version { word, record: rate, since, .. }| {
            let left = rate.left(word.field(), now, deepest_before, since);
            let (next, tat, largest) = start(left, version);
            let word = word.with_field(gcra::first_field(tat)).with_behind(false);
            (Next { quota, record: next, word, since: left.since() }, largest)
        });
        // Of the word that began it: the one that stands may tell of a later grant.
        guarded.deepest = deepest(&self.cell.record(first), self.largest(first), first.field());
        first
    }

    /// After a change: grants what is due now, and wakes those whose turn has come nearer. What moved back wakes nobody; each
    /// finds out when its timer ends.
    fn retime(&self, guarded: &mut Guarded, now: Nanos, wakers: &mut Wakers) {
        self.grant_due(guarded, now, wakers);
        let (word, pace) = self.look(guarded, now);
        guarded.line.wake_late(wakers, |ahead, n| pace.instant(pace.slot(pace.after(word.field().into(), ahead), n)));
    }

    /// Starts a new version, perhaps with another largest n, and keeps the words between which it changed. Returns its first.
    pub(super) fn change(
        &self,
        guarded: &mut Guarded,
        next: impl Fn(Version<Rate>) -> (Next<Rate>, Option<u64>),
    ) -> Word {
        let (mut number, mut last, mut first) = (0, Word::default(), Word::default());
        let Ok(()) = self.cell.replace(|version| {
            let (next, largest) = next(version);
            (last, first) = (version.word, next.word.with_next_version());
            number = self.change_of(last);
            let kept = &self.versions[first.version()];
            // Release: pairs with the Acquire in `largest` and `change_of`.
            kept.largest.store(largest.unwrap_or_else(|| self.largest(last)), Ordering::Release);
            kept.change.store(number.saturating_add(1), Ordering::Release);
            Ok::<_, Infallible>(next)
        });
        guarded.carried = match guarded.carried {
            Some((change, granted, now)) if last.same_field(now) => Some((change, granted, first)),
            _ => Some((number, last, first)),
        };
        first
    }
}
