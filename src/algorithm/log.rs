//! The log of grants: which of them still count, and when the next fits. Exact integers, no clock.
//!
//! Grants are numbered: the one at *position* p is the p-th permit that was ever granted, and the head is the next position. Times
//! never go back from one position to the next, since a call that comes with an earlier time counts as made at the last one.
//! So n more fit if, and only if, the permit at position `head + n - 1 - limit` is out of the last W: with the n, exactly
//! `limit` follow it.
//!
//! Times are the log's own: it stands still during a pause, so that what counts when one begins counts when it ends. Own time is the
//! clock's less an offset, which belongs to the version.
//!
//! # Bounds
//!
//! W is below 2^94 ns and a time below 2^64. Where a version is read while it is rewritten its fields do not fit each other, so all
//! that could overflow saturates: nobody believes it.

use std::time::Duration;

use super::ring::{MOST, Ring, Rings};
use super::sliding_log::FIELD_END;
use crate::quota::Quota;
use crate::refused::Refused;
use crate::snapshot::Snapshot;
use crate::time::{Nanos, span};

/// One version of a quota as a log counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    /// W in nanoseconds.
    pub(crate) length: u128,
    pub(crate) limit: u64,
    /// The size of the ring that holds the times.
    pub(crate) ring: u8,
    /// Whether everything is admitted, and nothing kept.
    pub(crate) unlimited: bool,
    /// Whether nothing is admitted before `end`.
    pub(crate) held: bool,
    pub(crate) end: Nanos,
    /// By how much the log's own time is behind the clock.
    pub(crate) offset: u64,
    /// The first position that counts.
    pub(crate) from: u64,
    /// The own time as of which older permits count.
    pub(crate) as_of: u64,
    /// The own time that was used last when the version began: nothing counts as earlier.
    pub(crate) used: u64,
}

impl Log {
    /// An empty log.
    pub(crate) fn new(quota: &Quota) -> Self {
        let limit = if quota.is_unlimited() { 0 } else { quota.permits().min(MOST) };
        Self {
            length: quota.period().as_nanos(),
            limit,
            ring: Rings::size(limit),
            unlimited: quota.is_unlimited(),
            held: false,
            end: Nanos::ZERO,
            offset: 0,
            from: 0,
            as_of: 0,
            used: 0,
        }
    }

    /// The most that can be admitted at once; everything if unlimited.
    pub(crate) fn largest(&self) -> u64 {
        if self.unlimited { u64::MAX } else { self.limit }
    }

    /// Whether a pause lasts at `now`.
    #[inline]
    pub(crate) fn is_held(&self, now: Nanos) -> bool {
        self.held && now < self.end
    }

    /// The instant before which nothing is admitted.
    fn end_of_pause(&self) -> u128 {
        if self.held { self.end.get().into() } else { 0 }
    }

    /// The log's own time at `now`. It stands still during a pause.
    #[inline]
    fn own(&self, now: Nanos) -> u64 {
        let now = if self.is_held(now) { self.end } else { now };
        now.get().saturating_sub(self.offset)
    }

    /// The same log held until `end`, unless that is not after `now`. Own time goes on at `end`, or at `since` if that is later.
    fn held_until(&self, end: Nanos, now: Nanos, since: Nanos) -> Self {
        let goes_on = end.max(since);
        Self { held: end > now, end, offset: goes_on.get().saturating_sub(self.own(now)), ..*self }
    }
}

/// A log as a word and its version tell it: with its head and its times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken<'a> {
    pub(crate) log: Log,
    pub(crate) head: u64,
    pub(crate) ring: &'a Ring,
}

impl Taken<'_> {
    /// The own time as of which the permit at `position` counts.
    #[inline]
    fn time(&self, position: u64) -> u64 {
        self.ring.time(position).max(self.log.as_of)
    }

    /// The own time that was used last.
    #[inline]
    pub(crate) fn used(&self) -> u64 {
        match self.head.checked_sub(1) {
            Some(last) if last >= self.log.from => self.time(last).max(self.log.used),
            _ => self.log.used,
        }
    }

    /// The own time at which a call at `now` counts.
    #[inline]
    pub(crate) fn at(&self, now: Nanos) -> u64 {
        self.log.own(now).max(self.used())
    }

    /// The same log held until `end`, unless that is not after `now`, and from when it counts; `since` is from when this one does.
    pub(crate) fn held_until(&self, end: Nanos, now: Nanos, since: Nanos) -> (Log, Nanos) {
        // By a clock that was set back it ends no earlier than it began, else own time would gain on the clock.
        let since = if self.log.is_held(now) { since.max(now) } else { now.max(self.log.offset.into()) };
        (Log { used: self.at(now), ..self.log.held_until(end, now, since) }, since)
    }

    /// The log and its head after the newest `n` that still count were given back.
    pub(crate) fn refunded(&self, n: u64, now: Nanos) -> (Log, u64) {
        let (given, used) = (n.min(self.counted(self.at(now))), self.used());
        let from = self.head.saturating_sub(self.counted(used));
        (Log { from, used, ..self.log }, self.head.saturating_sub(given))
    }

    /// The log with positions counted from a smaller number, and its head. Every time keeps its place.
    pub(crate) fn renumbered(&self) -> (Log, u64) {
        let laps = self.ring.len().wrapping_sub(1);
        let head = (self.head & laps).saturating_add(self.ring.len());
        let from = head.saturating_sub(self.counted(self.used()));
        (Log { from, used: self.used(), ..self.log }, head)
    }

    /// Whether the positions are nearly used up.
    #[inline]
    pub(crate) fn must_renumber(&self) -> bool {
        self.head >= FIELD_END.wrapping_sub(MOST)
    }

    /// The same log on another clock, on which it is `to` where it was `now` on this one; its times are written anew. What was
    /// taken longer ago than that clock tells counts as taken at its origin.
    pub(crate) fn moved(&self, now: Nanos, to: Nanos) -> Log {
        let at = self.at(now);
        let moved = |time: u64| to.get().saturating_sub(at.saturating_sub(time));
        let first = self.log.from.max(self.head.saturating_sub(self.ring.half()));
        (first..self.head).for_each(|position| self.ring.write(position, moved(self.time(position))));
        let rest = if self.log.is_held(now) { self.log.end.saturating_since(now) } else { Duration::ZERO };
        let here = Log { offset: 0, as_of: moved(self.log.as_of), used: to.get(), held: false, ..self.log };
        here.held_until(to.saturating_add(rest), to, to)
    }

    /// The own time of a position that counts, when a grant that the word does not tell of yet counts as made at `at`.
    fn time_or(&self, position: u64, at: u64) -> u64 {
        if position < self.head { self.time(position) } else { at }
    }

    /// The first instant at which `n` more are admitted once the head is `head`: the past if they are at any time. `n` is the limit
    /// at most, and the permits beyond the own head were granted at `now`.
    pub(crate) fn slot(&self, head: u64, n: u64, now: Nanos) -> u128 {
        let leaves = head.saturating_add(n).checked_sub(1).and_then(|last| last.checked_sub(self.log.limit));
        let room = match leaves.filter(|leaves| *leaves >= self.log.from && !self.log.unlimited) {
            Some(leaves) => u128::from(self.time_or(leaves, self.at(now))).saturating_add(self.log.length),
            None => 0,
        };
        let used = if head > self.head { self.at(now) } else { self.used() };
        let first = if room <= used.into() { 0 } else { room.saturating_add(self.log.offset.into()) };
        first.max(self.log.end_of_pause())
    }

    /// An instant before which `n` can't be admitted behind `ahead` others that are granted from `now` on, as if all were single
    /// permits: then it is the very instant, since each of them leaves W after the one that was `limit` before it.
    pub(crate) fn slot_behind(&self, head: u64, ahead: u128, n: u64, now: Nanos) -> u128 {
        if self.log.unlimited {
            return self.log.end_of_pause();
        }
        let at = self.at(now);
        let (last, limit) = (ahead.saturating_add(n.into()).saturating_sub(1), u128::from(self.log.limit).max(1));
        let (laps, place) = (last.checked_div(limit).unwrap_or(0), last.checked_rem(limit).unwrap_or(0));
        let position = u64::try_from(place).unwrap_or(0).saturating_add(head).checked_sub(self.log.limit);
        let room = match position.filter(|position| *position >= self.log.from) {
            Some(position) => u128::from(self.time_or(position, at)).saturating_add(self.log.length),
            None => 0,
        };
        let first = room.max(at.into()).saturating_add(laps.saturating_mul(self.log.length));
        first.saturating_add(self.log.offset.into()).max(self.log.end_of_pause())
    }

    /// When `n` more fit, in own time; `None` if they do at any time. `n` is the limit at most.
    #[inline]
    fn room_for(&self, n: u64) -> Option<u128> {
        let leaves = self.head.saturating_add(n).checked_sub(1)?.checked_sub(self.log.limit)?;
        (leaves >= self.log.from).then(|| u128::from(self.time(leaves)).saturating_add(self.log.length))
    }

    /// Whether `n` more are admitted at `now`.
    #[inline]
    pub(crate) fn admits(&self, n: u64, now: Nanos) -> bool {
        if self.log.is_held(now) {
            return false;
        }
        self.log.unlimited
            || n <= self.log.limit && self.room_for(n).is_none_or(|room| room <= u128::from(self.at(now)))
    }

    /// How many permits count at the own time `at`.
    pub(crate) fn counted(&self, at: u64) -> u64 {
        // No more than half of a ring ever counts. The times are in order, so half of them are looked at at most once.
        let (mut low, mut high) = (self.log.from.max(self.head.saturating_sub(self.ring.half())), self.head);
        while low < high {
            let middle = low.midpoint(high);
            if u128::from(self.time(middle)).saturating_add(self.log.length) <= u128::from(at) {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        self.head.saturating_sub(low)
    }

    /// The most that can be admitted at once; everything if unlimited.
    fn limit(&self) -> u64 {
        self.log.largest()
    }

    /// The largest n that would be admitted at `now`.
    pub(crate) fn remaining(&self, now: Nanos) -> u64 {
        if self.log.is_held(now) {
            return 0;
        }
        if self.log.unlimited {
            return u64::MAX;
        }
        self.log.limit.saturating_sub(self.counted(self.at(now)))
    }

    /// The time until `n`, at most the limit, are admitted.
    fn wait(&self, n: u64, now: Nanos) -> Duration {
        let from = if self.log.is_held(now) { self.log.end } else { now };
        let from_ns = u128::from(from.get());
        let instant = match self.room_for(n) {
            Some(room) if !self.log.unlimited && n > 0 && room > u128::from(self.at(from)) => {
                room.saturating_add(self.log.offset.into()).max(from_ns)
            }
            _ => from_ns,
        };
        span(instant.saturating_sub(now.get().into()))
    }

    /// What to answer where [`admits`](Self::admits) says no.
    #[cold]
    pub(crate) fn refusal(&self, n: u64, now: Nanos) -> Refused {
        if n > self.limit() {
            return Refused::ExceedsCapacity { asked: n, capacity: self.log.limit };
        }
        let retry_after = self.wait(n, now);
        if self.log.is_held(now) {
            return Refused::Paused { asked: n, retry_after };
        }
        // Where not even one fits there is nothing to search for.
        let remaining = if n == 1 { 0 } else { self.remaining(now) };
        Refused::TooSoon { asked: n, remaining, retry_after }
    }

    /// The first instant from which on nothing counts; `None` if that is beyond 584 years.
    pub(crate) fn rest(&self) -> Option<Nanos> {
        let last = self.head.checked_sub(1).filter(|last| *last >= self.log.from && !self.log.unlimited);
        let Some(last) = last else { return Some(Nanos::ZERO) };
        let own = u128::from(self.time(last)).saturating_add(self.log.length);
        u64::try_from(own.saturating_add(self.log.offset.into())).ok().map(Nanos::new)
    }

    /// The instant by which it was at rest by every clock. Where permits were given back, those before them may have counted until
    /// the time that was used last.
    pub(crate) fn horizon(&self) -> Nanos {
        let used = if self.log.unlimited { 0 } else { self.used() };
        self.rest().unwrap_or(Nanos::MAX).max(Nanos::new(used.saturating_add(self.log.offset)))
    }

    /// The log at `now`, for a look.
    pub(crate) fn snapshot(&self, now: Nanos) -> Snapshot {
        let limit = self.limit();
        Snapshot {
            limit,
            remaining: self.remaining(now),
            retry_after: (limit > 0).then(|| self.wait(1, now)),
            reset_after: Some(self.wait(self.log.limit, now)),
        }
    }
}
