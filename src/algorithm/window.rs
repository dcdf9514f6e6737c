//! Counts of whole windows: pure arithmetic in exact integers, no atomics and no clock.
//!
//! Windows are `[k*W, (k+1)*W)`, counted from the clock's origin. The state is the number of a window, what was granted in it,
//! and for a law that slides what was granted in the window before. With e the time since the window began, n more are
//! admitted if
//!
//! `previous*(W-e) + (current+n)*W <= limit*W`
//!
//! A law that does not slide has no previous count, and is left with `current+n <= limit`. A time before the window counts as its
//! start, so that a clock that was set back opens no window a second time.
//!
//! # Bounds
//!
//! W is below 2^94 ns. What a law that slides multiplies it with is below 2^29, see [`Kind::MAX_LIMIT`]. Where a version is read
//! while it is rewritten its fields do not fit each other, so all that could leave 128 bits saturates: nobody believes it.

use std::marker::PhantomData;
use std::time::Duration;

use crate::interval::FIELD_BITS;
use crate::quota::Quota;
use crate::refused::Refused;
use crate::snapshot::Snapshot;
use crate::time::{Nanos, span};

/// What the window laws differ in.
pub trait Kind: Copy + PartialEq + std::fmt::Debug {
    /// Whether the window before still counts, by the share of it that the last W reaches.
    const SLIDES: bool;
    /// The largest limit. A larger one is refused before it comes here, or counts as this.
    const MAX_LIMIT: u64;
}

/// One version of a quota as a window law counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows<K> {
    /// W in nanoseconds.
    pub(crate) length: u128,
    pub(crate) limit: u64,
    /// The start of the window with the index 0.
    pub(crate) origin: u64,
    /// The width of a count in the field.
    pub(crate) bits: u32,
    /// Whether everything is admitted, and nothing counted.
    pub(crate) unlimited: bool,
    /// Whether nothing is admitted before `end`.
    pub(crate) held: bool,
    /// For a version of a table of keys, which holds nobody, it is when the version began.
    pub(crate) end: Nanos,
    pub(crate) kind: PhantomData<K>,
}

/// What a field holds, and when its window began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    start: u128,
    index: u128,
    previous: u64,
    current: u64,
}

/// What is left of one version when another follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    /// What still counts, rounded up; `None` if nothing is left, however much the next version allows.
    counted: Option<u64>,
    /// The instant from which the next version counts.
    since: Nanos,
}

impl Left {
    pub(crate) fn since(&self) -> Nanos {
        self.since
    }

    /// The same at another instant: that of another clock.
    pub(crate) fn at(&self, now: Nanos) -> Self {
        Self { since: now, ..*self }
    }
}

impl<K: Kind> Windows<K> {
    /// Empty windows, the first one from time 0.
    pub(crate) fn new(quota: &Quota) -> Self {
        let limit = if quota.is_unlimited() { 0 } else { quota.permits().min(K::MAX_LIMIT) };
        Self {
            length: quota.period().as_nanos(),
            limit,
            origin: 0,
            bits: width(limit),
            unlimited: quota.is_unlimited(),
            held: false,
            end: Nanos::ZERO,
            kind: PhantomData,
        }
    }

    /// All but `permits` of the limit, at `now`.
    pub(crate) fn all_but(&self, permits: u64, now: Nanos) -> Left {
        Left { counted: (!self.unlimited).then(|| self.limit.saturating_sub(permits)), since: now }
    }

    /// How many counts a field holds.
    const COUNTS: u32 = if K::SLIDES { 2 } else { 1 };

    /// The part of a field that holds one count.
    #[inline]
    fn mask(&self) -> u64 {
        1u64.wrapping_shl(self.bits).wrapping_sub(1)
    }

    #[inline]
    fn current(&self, field: u64) -> u64 {
        field & self.mask()
    }

    #[inline]
    fn previous(&self, field: u64) -> u64 {
        if K::SLIDES { field.wrapping_shr(self.bits) & self.mask() } else { 0 }
    }

    #[inline]
    fn index(&self, field: u64) -> u64 {
        field.checked_shr(Self::COUNTS.wrapping_mul(self.bits)).unwrap_or(0)
    }

    /// The field after the usual grant, in the window that it names, in machine words. `None` says nothing: it may be refused, or
    /// another window's.
    #[inline]
    pub(crate) fn admit_in_64_bits(&self, field: u64, now: Nanos, n: u64) -> Option<u64> {
        if self.held || self.unlimited {
            return None;
        }
        let length = u64::try_from(self.length).ok()?;
        let start = self.index(field).checked_mul(length)?.checked_add(self.origin)?;
        let rest = length.checked_sub(now.get().saturating_sub(start)).filter(|rest| *rest > 0)?;
        let room = self.limit.checked_sub(self.current(field))?.checked_sub(n)?;
        if K::SLIDES {
            let previous = u128::from(self.previous(field));
            // Two machine words at most, so neither product leaves 128 bits.
            if previous.wrapping_mul(rest.into()) > u128::from(room).wrapping_mul(length.into()) {
                return None;
            }
        }
        field.checked_add(n).filter(|field| *field <= FIELD_END)
    }

    /// What a field holds, before any time passes.
    fn counts(&self, field: u64) -> Counts {
        let index = u128::from(self.index(field));
        Counts {
            start: index.saturating_mul(self.length).saturating_add(self.origin.into()),
            index,
            previous: self.previous(field),
            current: self.current(field),
        }
    }

    /// How many windows after the counted one `now` lies in.
    fn windows_to(&self, counts: &Counts, now: Nanos) -> u128 {
        u128::from(now.get()).saturating_sub(counts.start).checked_div(self.length).unwrap_or(0)
    }

    /// What counts at `now`: of the window that it lies in, or of a later one that was opened before.
    pub(crate) fn counts_at(&self, field: u64, now: Nanos) -> Counts {
        let counts = self.counts(field);
        match self.windows_to(&counts, now) {
            0 => counts,
            steps => Counts {
                start: counts.start.saturating_add(steps.saturating_mul(self.length)),
                index: counts.index.saturating_add(steps),
                previous: if K::SLIDES && steps == 1 { counts.current } else { 0 },
                current: 0,
            },
        }
    }

    /// The field that holds `counts`; `None` if the index has left it, and the origin must move.
    pub(crate) fn field(&self, counts: &Counts) -> Option<u64> {
        let room = FIELD_BITS.checked_sub(Self::COUNTS.wrapping_mul(self.bits))?;
        if counts.index.checked_shr(room)? > 0 {
            return None;
        }
        let index = u64::try_from(counts.index).ok()?.wrapping_shl(Self::COUNTS.wrapping_mul(self.bits));
        let previous = if K::SLIDES { counts.previous.wrapping_shl(self.bits) } else { 0 };
        // Counts that do not fit are not of this version.
        Some(index | previous | counts.current).filter(|field| *field <= FIELD_END)
    }

    /// The time since the window of `counts` began.
    fn elapsed(&self, counts: &Counts, now: Nanos) -> u128 {
        u128::from(now.get()).saturating_sub(counts.start)
    }

    /// What counts of the window before, times W.
    fn weighted(&self, counts: &Counts, elapsed: u128) -> u128 {
        u128::from(counts.previous).saturating_mul(self.length.saturating_sub(elapsed))
    }

    /// What counts at `now`, rounded up to whole permits.
    fn estimate(&self, counts: &Counts, now: Nanos) -> u64 {
        if counts.previous == 0 {
            return counts.current;
        }
        let weighted = self.weighted(counts, self.elapsed(counts, now));
        let whole = weighted.checked_div(self.length).unwrap_or(0);
        let part = weighted.checked_rem(self.length).unwrap_or(0) > 0;
        u64::try_from(whole).unwrap_or(u64::MAX).saturating_add(part.into()).saturating_add(counts.current)
    }

    /// Whether a pause lasts at `now`.
    pub(crate) fn is_held(&self, now: Nanos) -> bool {
        self.held && now < self.end
    }

    /// The counts after a grant of `n` at `now`, or `None` if the law does not admit as many.
    pub(crate) fn admit(&self, field: u64, now: Nanos, n: u64) -> Option<Counts> {
        let counts = self.counts_at(field, now);
        if self.is_held(now) {
            return None;
        }
        if self.unlimited {
            return Some(counts);
        }
        let room = self.limit.checked_sub(counts.current)?.checked_sub(n)?;
        let weighted = if K::SLIDES { self.weighted(&counts, self.elapsed(&counts, now)) } else { 0 };
        let lawful = weighted == 0 || weighted <= u128::from(room).saturating_mul(self.length);
        lawful.then(|| Counts { current: counts.current.saturating_add(n), ..counts })
    }

    /// What to answer where [`admit`](Self::admit) gave `None`.
    #[cold]
    pub(crate) fn refusal(&self, field: u64, now: Nanos, n: u64) -> Refused {
        if n > self.limit() {
            return Refused::ExceedsCapacity { asked: n, capacity: self.limit };
        }
        let retry_after = self.wait(field, now, n);
        if self.is_held(now) {
            Refused::Paused { asked: n, retry_after }
        } else {
            Refused::TooSoon { asked: n, remaining: self.remaining(field, now), retry_after }
        }
    }

    /// The most that can be admitted at once; everything if unlimited.
    pub(crate) fn limit(&self) -> u64 {
        if self.unlimited { u64::MAX } else { self.limit }
    }

    /// The largest n that would be admitted at `now`.
    pub(crate) fn remaining(&self, field: u64, now: Nanos) -> u64 {
        if self.is_held(now) {
            return 0;
        }
        if self.unlimited {
            return u64::MAX;
        }
        self.limit.saturating_sub(self.estimate(&self.counts_at(field, now), now))
    }

    /// The time until `n`, at most the limit, are admitted.
    fn wait(&self, field: u64, now: Nanos, n: u64) -> Duration {
        let from = if self.is_held(now) { self.end } else { now };
        let instant = if self.unlimited || n == 0 { from.get().into() } else { self.first_admitting(field, from, n) };
        span(instant.saturating_sub(now.get().into()))
    }

    /// The first instant from `now` on at which `n`, at most the limit, are admitted.
    fn first_admitting(&self, field: u64, now: Nanos, n: u64) -> u128 {
        let counts = self.counts_at(field, now);
        if let Some(room) = self.limit.checked_sub(counts.current).and_then(|room| room.checked_sub(n)) {
            let (first, elapsed) = (self.first_with_room(counts.previous, room), self.elapsed(&counts, now));
            if first <= elapsed {
                return now.get().into();
            }
            if first < self.length {
                return counts.start.saturating_add(first);
            }
        }
        // In the next window this one is the one before; in the one after that nothing counts.
        let room = self.limit.saturating_sub(n);
        let first = if K::SLIDES { self.first_with_room(counts.current, room) } else { 0 };
        counts.start.saturating_add(self.length).saturating_add(first)
    }

    /// The first time since a window began, at most W, at which what counts of `previous` leaves no less than `room`.
    fn first_with_room(&self, previous: u64, room: u64) -> u128 {
        // previous*(W-e) <= room*W, that is W-e <= room*W/previous.
        match u128::from(room).saturating_mul(self.length).checked_div(previous.into()) {
            Some(rest) => self.length.saturating_sub(rest),
            None => 0,
        }
    }

    /// The first instant at which `n` are admitted, at most the limit; the past if they have been since before the window began.
    pub(crate) fn slot(&self, field: u64, n: u64) -> u128 {
        let first = if self.unlimited { 0 } else { self.first_admitting(field, Nanos::ZERO, n) };
        first.max(self.end_of_pause())
    }

    /// An instant before which `n` can't be admitted behind `ahead` others that are granted from `now` on: no window takes more
    /// than the limit, and this one no more than it has left. With single permits that do not slide it is the very instant.
    pub(crate) fn slot_behind(&self, field: u64, now: Nanos, ahead: u128, n: u64) -> u128 {
        if self.unlimited {
            return self.end_of_pause();
        }
        let from = if self.is_held(now) { self.end } else { now };
        let counts = self.counts_at(field, from);
        let (room, all) = (u128::from(self.limit.saturating_sub(counts.current)), ahead.saturating_add(n.into()));
        let Some(beyond) = all.checked_sub(room).filter(|beyond| *beyond > 0) else {
            let room = u64::try_from(room.saturating_sub(all)).unwrap_or(u64::MAX);
            return counts.start.saturating_add(self.first_with_room(counts.previous, room)).max(self.end_of_pause());
        };
        let windows = beyond.div_ceil(u128::from(self.limit).max(1));
        let start = counts.start.saturating_add(windows.saturating_mul(self.length));
        if !K::SLIDES || windows > 1 {
            return start;
        }
        // In the next one, this one slides out.
        let room = u64::try_from(u128::from(self.limit).saturating_sub(beyond)).unwrap_or(u64::MAX);
        start.saturating_add(self.first_with_room(counts.current, room))
    }

    /// The instant before which nothing is admitted.
    fn end_of_pause(&self) -> u128 {
        if self.held { self.end.get().into() } else { 0 }
    }

    /// Whether the index of the window that `now` lies in does not fit the field.
    #[inline]
    pub(crate) fn is_beyond(&self, now: Nanos) -> bool {
        let room = FIELD_BITS.saturating_sub(Self::COUNTS.wrapping_mul(self.bits));
        let since = u128::from(now.get().saturating_sub(self.origin));
        // An index has `room` bits, if that many windows are not longer than any time.
        room <= self.length.leading_zeros() && since >= self.length.wrapping_shl(room)
    }

    /// Whether the window that `field` counts is the one that `now` lies in, or a later one.
    pub(crate) fn is_current(&self, field: u64, now: Nanos) -> bool {
        self.windows_to(&self.counts(field), now) == 0
    }

    /// The field with `n` less in the window that it counts.
    pub(crate) fn lowered(&self, field: u64, n: u64) -> u64 {
        field.saturating_sub(self.current(field).min(n))
    }

    /// The windows at `now`, for a look.
    pub(crate) fn snapshot(&self, field: u64, now: Nanos) -> Snapshot {
        let none = self.limit == 0 && !self.unlimited;
        Snapshot {
            limit: self.limit(),
            remaining: self.remaining(field, now),
            retry_after: (!none).then(|| self.wait(field, now, 1)),
            reset_after: Some(self.wait(field, now, self.limit)),
        }
    }

    /// The field after `n` permits that still count were given back: the latest first.
    pub(crate) fn refunded(&self, field: u64, now: Nanos, n: u64) -> u64 {
        let counts = self.counts(field);
        let steps = if self.is_held(now) { 0 } else { self.windows_to(&counts, now) };
        let current = match steps {
            0 => counts.current.min(n),
            1 if K::SLIDES => counts.current.min(n),
            _ => 0,
        };
        let previous = if steps == 0 { counts.previous.min(n.saturating_sub(current)) } else { 0 };
        field.saturating_sub(current).saturating_sub(if K::SLIDES { previous.wrapping_shl(self.bits) } else { 0 })
    }

    /// The field of the same window with nothing counted.
    pub(crate) fn emptied(&self, field: u64) -> u64 {
        let counts = Self::COUNTS.wrapping_mul(self.bits);
        self.index(field).checked_shl(counts).unwrap_or(0)
    }

    /// The same version with the index counted from the window of `counts`, and its first field.
    ///
    /// Needed when the index is used up: the wider the counts, the sooner.
    pub(crate) fn rebased(&self, counts: &Counts) -> (Self, u64) {
        self.opened(counts.start, counts.previous, counts.current)
    }

    /// What is left at `now`, to be carried to another version. `since` is when this one began.
    pub(crate) fn left(&self, field: u64, now: Nanos, since: Nanos) -> Left {
        if self.unlimited {
            return Left { counted: None, since: now.max(since) };
        }
        if self.is_held(now) {
            // Nothing has passed since the pause began, and nothing of it counts from before.
            return Left { counted: Some(self.estimate(&self.counts(field), self.end)), since: now.max(since) };
        }
        let counts = self.counts_at(field, now);
        let start = u64::try_from(counts.start).map_or(Nanos::MAX, Nanos::new);
        Left { counted: Some(self.estimate(&counts, now)), since: now.max(start) }
    }

    /// The version, its field and its `since` after a change of the quota at `now`.
    pub(crate) fn changed(&self, field: u64, quota: &Quota, now: Nanos, since: Nanos) -> (Self, u64, Nanos) {
        if let Some((next, field)) = self.limited(field, quota) {
            return (next, field, since);
        }
        let left = self.left(field, now, since);
        let end = if self.is_held(now) { self.end } else { now };
        let (next, field) = Self::new(quota).start_at(left, end, now);
        (next, field, left.since())
    }

    /// The same windows under another limit: the counts stay. `None` if they are not the same windows.
    pub(crate) fn limited(&self, field: u64, quota: &Quota) -> Option<(Self, u64)> {
        let next = Self::new(quota);
        if next.length != self.length || next.unlimited != self.unlimited {
            return None;
        }
        let counts = self.counts(field);
        Some(Self { limit: next.limit, ..*self }.opened(counts.start, counts.previous, counts.current))
    }

    /// Starts a version with what is left of another, held until `end` if that is after `now`: the window that begins it has
    /// what is left counted.
    pub(crate) fn start_at(&self, left: Left, end: Nanos, now: Nanos) -> (Self, u64) {
        let held = end > now;
        let first = u128::from(if held { end.max(left.since) } else { left.since }.get());
        let start = first.saturating_sub(first.checked_rem(self.length).unwrap_or(0));
        let counted = if self.unlimited { 0 } else { left.counted.unwrap_or(self.limit) };
        Self { held, end: if held { end } else { Nanos::ZERO }, ..*self }.opened(start, 0, counted.min(K::MAX_LIMIT))
    }

    /// The version of a table of keys that begins at `since`, with its index counted from the window of that instant.
    ///
    /// Its counts are as wide as those that were granted under `before` and still count, so that another limit keeps them. Two
    /// windows after `before` began those that it found have faded, by all clocks that are less than a minute apart.
    pub(crate) fn for_table(quota: &Quota, since: Nanos, before: Option<&Self>) -> Self {
        let next = Self::new(quota);
        let at = u128::from(since.get());
        let start = at.saturating_sub(at.checked_rem(next.length).unwrap_or(0));
        let found = before.map_or(0, |before| {
            let faded = before.length.saturating_mul(2).saturating_add(before.end.get().into()).saturating_add(MINUTE);
            if before.unlimited || next.unlimited {
                0
            } else if at >= faded {
                width(before.limit)
            } else {
                before.bits
            }
        });
        let origin = u64::try_from(start).unwrap_or(u64::MAX);
        Self { origin, bits: next.bits.max(found), end: since, ..next }
    }

    /// The first instant from which on nothing of `field` counts; 0 if nothing does at any time.
    pub(crate) fn faded(&self, field: u64) -> u128 {
        let counts = self.counts(field);
        let windows = match (counts.previous, counts.current) {
            _ if self.unlimited => return 0,
            (0, 0) => return 0,
            (_, 0) => 1,
            _ => u128::from(Self::COUNTS),
        };
        counts.start.saturating_add(self.length.saturating_mul(windows))
    }

    /// The instant by which it was at rest by every clock. What was given back in a later window than the first still counted in
    /// one before, by a clock that is behind.
    pub(crate) fn horizon(&self, field: u64) -> u128 {
        let begun = if self.unlimited || field == 0 { 0 } else { self.counts(field).start };
        begun.max(self.faded(field))
    }

    /// The field under `next`, a version of a table, that carries what still counts when that begins. Another limit keeps the counts;
    /// another window length counts in its first window what still counted. [`FIELD_END`] if it does not fit.
    pub(crate) fn carried(&self, field: u64, next: &Self) -> u64 {
        if next.unlimited || self.faded(field) <= next.end.get().into() {
            return 0;
        }
        let counts = if self.length == next.length {
            self.counts_at(field, Nanos::new(next.origin))
        } else {
            let counts = self.counts_at(field, next.end);
            Counts {
                start: counts.start.saturating_sub(counts.start.checked_rem(next.length).unwrap_or(0)),
                index: 0,
                previous: 0,
                current: self.estimate(&counts, next.end),
            }
        };
        let most = next.mask();
        // That of its origin if it began before.
        let index = counts.start.saturating_sub(next.origin.into()).checked_div(next.length).unwrap_or(0);
        let counts = if counts.current.max(counts.previous) > most {
            // By a clock that was set back more may count than any limit let pass. What is too much for a count is more than the
            // limit for a window more, too.
            Counts { index: index.saturating_add(1), previous: most, current: most, ..counts }
        } else {
            Counts { index, ..counts }
        };
        next.field(&counts).unwrap_or(FIELD_END)
    }

    /// The same version with the index counted from the window that begins at `start`, and its first field.
    fn opened(&self, start: u128, previous: u64, current: u64) -> (Self, u64) {
        let bits = width(self.limit.max(previous).max(current));
        let next = Self { origin: u64::try_from(start).unwrap_or(u64::MAX), bits, ..*self };
        // No count is above the largest limit, and two as wide as that fit.
        (next, next.field(&Counts { start, index: 0, previous, current }).unwrap_or(FIELD_END))
    }
}

const FIELD_END: u64 = (1 << FIELD_BITS) - 1;

/// In nanoseconds.
const MINUTE: u128 = 60_000_000_000;

/// The bits that counts up to `most` need.
const fn width(most: u64) -> u32 {
    u64::BITS.wrapping_sub(most.leading_zeros())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::algorithm::fixed_window::Fixed;
    use crate::algorithm::sliding_counter::Sliding;

    /// What the law knows of a grant: the time at which it counts, and how many permits.
    #[derive(Debug)]
    pub(in crate::algorithm) struct Grant {
        pub(in crate::algorithm) at: u64,
        pub(in crate::algorithm) n: u64,
    }

    fn windows<K: Kind>(limit: u64, length: Duration) -> Windows<K> {
        Windows::new(&Quota::new(limit, length).unwrap())
    }

    /// The field after a grant; the origin moves with it where it must.
    fn granted<K: Kind>(windows: &mut Windows<K>, field: u64, now: u64, n: u64) -> Option<u64> {
        let counts = windows.admit(field, now.into(), n)?;
        Some(windows.field(&counts).unwrap_or_else(|| {
            let (moved, field) = windows.rebased(&counts);
            *windows = moved;
            field
        }))
    }

    /// Compares every sequence of a few requests with `law`, which says of the grants before whether it admits n more, and at
    /// which time it counts them. What remains and the waits follow from it.
    pub(in crate::algorithm) fn every_short_sequence<K: Kind>(
        law: impl Fn(u64, u64, &[Grant], u64, u64) -> (bool, u64),
    ) {
        for (length, limit) in [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (3, 3), (5, 4)] {
            let law = |grants: &[Grant], now, n| law(length, limit, grants, now, n);
            next_request(&law, windows::<K>(limit, Duration::from_nanos(length)), 0, &mut Vec::new(), 4);
        }
    }

    fn next_request<K: Kind>(
        law: &impl Fn(&[Grant], u64, u64) -> (bool, u64),
        windows: Windows<K>,
        field: u64,
        grants: &mut Vec<Grant>,
        left: u32,
    ) {
        for (now, n) in (0..7).flat_map(|now| (1..3).map(move |n| (now, n))).filter(|_| left > 0) {
            let (mut after, mut next) = (windows, field);
            let admits = |now, n| n <= windows.limit && law(grants, now, n).0;
            let context = || format!("{n} at {now} after {grants:?}, {windows:?}");
            let most = (1..=windows.limit).take_while(|&n| admits(now, n)).count() as u64;
            assert_eq!(windows.remaining(field, now.into()), most, "{}", context());
            let quick = windows.admit_in_64_bits(field, now.into(), n);
            let mut grant = None;
            match granted(&mut after, field, now, n) {
                Some(granted) => {
                    assert!(admits(now, n), "granted: {}", context());
                    let in_place = windows.windows_to(&windows.counts(field), now.into()) == 0;
                    assert_eq!(quick, in_place.then_some(granted), "{}", context());
                    grant = Some(Grant { at: law(grants, now, n).1, n });
                    next = granted;
                }
                None => {
                    assert!(!admits(now, n) && quick.is_none(), "refused: {}", context());
                    match windows.refusal(field, now.into(), n) {
                        Refused::TooSoon { remaining, retry_after, .. } => {
                            let due = (now..).find(|&now| admits(now, n)).unwrap();
                            assert_eq!(
                                (remaining, retry_after),
                                (most, Duration::from_nanos(due - now)),
                                "{}",
                                context()
                            );
                        }
                        refused => {
                            assert_eq!(refused, Refused::ExceedsCapacity { asked: n, capacity: windows.limit });
                            assert!(n > windows.limit);
                        }
                    }
                }
            }
            let before = grants.len();
            grants.extend(grant);
            next_request(law, after, next, grants, left - 1);
            grants.truncate(before);
        }
    }

    /// The longest windows, the largest limits and the last instants: nothing wraps, and nothing is admitted twice.
    fn extremes<K: Kind>() {
        let lengths = [Duration::from_nanos(1), Duration::from_secs(1), Duration::from_nanos(u64::MAX), Duration::MAX];
        for length in lengths {
            for limit in [0, 1, K::MAX_LIMIT - 1, K::MAX_LIMIT] {
                for now in [0, 1, u64::MAX - 1, u64::MAX] {
                    let (mut windows, mut field) = (windows::<K>(limit, length), 0);
                    for n in [limit / 2, limit - limit / 2] {
                        field = granted(&mut windows, field, now, n).unwrap();
                    }
                    assert_eq!(windows.admit(field, now.into(), 1), None, "{limit} per {length:?} at {now}");
                    assert_eq!(windows.remaining(field, now.into()), 0);
                    if limit > 0 {
                        let next = (u128::from(now) / length.as_nanos() + 1) * length.as_nanos();
                        let fades = if K::SLIDES { length.as_nanos().div_ceil(limit.into()) } else { 0 };
                        let wait = windows.wait(field, now.into(), 1);
                        assert_eq!(wait, span(next + fades - u128::from(now)), "{limit} per {length:?} at {now}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_extremes_of_a_fixed_window_are_exact() {
        extremes::<Fixed>();
    }

    #[test]
    fn the_extremes_of_a_sliding_counter_are_exact() {
        extremes::<Sliding>();
    }

    /// An index of one bit is used up with every second window.
    #[test]
    fn a_moved_origin_changes_no_answer() {
        let small = windows::<Sliding>(100, Duration::from_nanos(10));
        let large = Windows { bits: 29, ..small };
        let (mut a, mut b) = ((small, 0), (large, 0));
        for now in (0..200).map(|step| step * 3) {
            for n in [40, 7] {
                let (before, after) = (granted(&mut a.0, a.1, now, n), granted(&mut b.0, b.1, now, n));
                assert_eq!(before.is_some(), after.is_some(), "{n} at {now}");
                (a.1, b.1) = (before.unwrap_or(a.1), after.unwrap_or(b.1));
                assert_eq!(a.0.remaining(a.1, now.into()), b.0.remaining(b.1, now.into()));
            }
        }
        assert!(a.0.origin == 0 && b.0.origin > 0);
    }
}
