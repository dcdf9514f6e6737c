//! What changes under those who wait: the quota, pauses, permits given back by number, the origin.
//!
//! Each is a version of the quota, made under both locks: the queue's, so that who waits is timed anew in the same step, and the
//! cell's, so that versions follow each other.

use std::convert::Infallible;

use super::{Guarded, Queue};
use crate::cell::{Next, Version};
use crate::quota::Quota;
use crate::refused::Refused;
use crate::shaper::pace::{Change, Law, Pace, Settings};
use crate::shaper::wakers::Wakers;
use crate::sync::Ordering;
use crate::time::Nanos;
use crate::word::Word;

impl<A: Law> Queue<A> {
    /// Changes the quota. It carries permits, not time; who waits is timed anew, and ends if it asks for too much now.
    pub(crate) fn set_quota(&self, quota: Quota, now: Nanos) {
        self.follow(|| Some(quota), now);
    }

    /// The same to a quota that is told under the lock, so that of several that change what is told the last one stays. Nothing
    /// changes if none is told.
    pub(crate) fn follow(&self, quota: impl FnOnce() -> Option<Quota>, now: Nanos) {
        self.locked(now, |guarded, wakers| {
            let Some(quota) = quota() else { return };
            let first = self.carry(guarded, quota, now, now);
            let capacity = self.largest(first);
            guarded.line.refuse(|n| (n > capacity).then_some(Refused::ExceedsCapacity { asked: n, capacity }), wakers);
            self.retime(guarded, now, wakers);
        });
    }

    /// A queue in front of a law that answered by another clock, or other settings: what was left at `from` is left at `to`.
    pub(crate) fn over(law: A, settings: Settings, from: Nanos, to: Nanos) -> Self {
        let queue = Self::new(law, settings);
        let mut guarded = queue.guarded.lock();
        if queue.law.cell().load().0.is_behind() {
            // Something was granted since the pause has ended, says a limiter by this.
            queue.change(&mut guarded, |version| (queue.law.resumed(version), None));
        }
        queue.carry(&mut guarded, queue.quota(), from, to);
        guarded.carried = None;
        drop(guarded);
        queue
    }

    /// Holds everybody until `end`; ends a pause if that is not after `now`. What was left is left at `end`.
    pub(crate) fn pause_until(&self, end: Nanos, now: Nanos) {
        self.locked(now, |guarded, wakers| {
            if end <= now && !self.look(guarded, now).1.is_held() {
                return;
            }
            let end = end.min(now.saturating_add(self.settings.max_pause));
            let deepest = guarded.deepest;
            self.restart(guarded, now, |version| (self.law.paused(version, end, now, deepest), None));
            self.retime(guarded, now, wakers);
        });
    }

    /// Gives `n` permits back, at most to the full burst.
    pub(crate) fn refund(&self, n: u64, now: Nanos) {
        if n == 0 {
            return;
        }
        self.give(now, |version| self.law.refunded(version, n, now));
    }

    /// Gives back all that was taken.
    pub(crate) fn reset(&self, now: Nanos) {
        self.give(now, |version| self.law.filled(version, now));
    }

    fn give(&self, now: Nanos, next: impl Fn(&Version<A::Record>) -> Next<A::Record>) {
        self.locked(now, |guarded, wakers| {
            // A version of its own, so that no later grant is taken for one that left the same word before.
            self.change(guarded, |version| (next(version), None));
            // Who stands further back finds out when he comes to the front.
            self.grant_due(guarded, now, wakers);
        });
    }

    /// Starts a version of `quota` with what was left at `from`, as of `to`. Returns its first word.
    fn carry(&self, guarded: &mut Guarded, quota: Quota, from: Nanos, to: Nanos) -> Word {
        let change = Change { quota, from, to, deepest: guarded.deepest, settings: &self.settings };
        self.restart(guarded, from, |version| {
            let (next, largest) = self.law.changed(version, &change);
            (next, Some(largest))
        })
    }

    /// Starts another version with what is left of this one; with another quota, its largest n too. Returns its first word.
    fn restart(
        &self,
        guarded: &mut Guarded,
        now: Nanos,
        next: impl Fn(&Version<A::Record>) -> (Next<A::Record>, Option<u64>),
    ) -> Word {
        let (word, pace) = self.look(guarded, now);
        let first = self.change(guarded, next);
        if !pace.counts_in_full(word) {
            guarded.carried = None;
        }
        // Of the word that began it: the one that stands may tell of a later grant.
        guarded.deepest = A::deepest(&self.law.cell().record(first), self.largest(first), first);
        first
    }

    /// After a change: grants what is due now, and wakes those whose turn has come nearer. What moved back wakes nobody; each
    /// finds out when its timer ends.
    fn retime(&self, guarded: &mut Guarded, now: Nanos, wakers: &mut Wakers) {
        self.grant_due(guarded, now, wakers);
        let (word, pace) = self.look(guarded, now);
        guarded.line.wake_late(wakers, |ahead, n| pace.instant(pace.slot_behind(word, ahead, n)));
    }

    /// Starts a new version, perhaps with another largest n, and keeps the words between which it changed. Returns its first.
    pub(super) fn change(
        &self,
        guarded: &mut Guarded,
        next: impl Fn(&Version<A::Record>) -> (Next<A::Record>, Option<u64>),
    ) -> Word {
        let (mut number, mut last, mut first) = (0, Word::default(), Word::default());
        let Ok(()) = self.law.cell().replace(|version| {
            let (next, largest) = next(&version);
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
