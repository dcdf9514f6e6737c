//! When permits leave that a window law counts: as soon as it admits them.
//!
//! There is no schedule that could be late. A permit that a timer delivers late is granted when it is delivered, and counts in the
//! window of that instant; lateness costs nothing else, and nothing is made up for.
//!
//! Who stands further back is told the earliest window that his permits can fall in, as if those ahead were taken one by one:
//! exact for a fixed window if they are, too early if large requests leave room that they don't fit in, or if the count slides.

use std::time::Duration;

use super::{Change, Law, Pace, Settings, Waitable};
use crate::algorithm::window::{Kind, Windows};
use crate::algorithm::windowed::Windowed;
use crate::cell::{Cell, Next, Version};
use crate::quota::Quota;
use crate::time::{Nanos, span};
use crate::word::Word;

impl<K: Kind> Waitable for Windowed<K> {}

impl<K: Kind> Law for Windowed<K> {
    type Record = Windows<K>;
    type Pace<'a>
        = WindowPace<K>
    where
        K: 'a;

    #[inline]
    fn cell(&self) -> &Cell<Windows<K>> {
        &self.cell
    }

    #[inline]
    fn pace(&self, _: Word, windows: Windows<K>, now: Nanos, settings: &Settings) -> WindowPace<K> {
        WindowPace { windows, now, catch_up: settings.catch_up }
    }

    fn largest(quota: &Quota, settings: &Settings) -> u64 {
        Windows::<K>::new(quota).limit().min(settings.max_n.said())
    }

    fn changed(&self, version: &Version<Windows<K>>, change: &Change<'_>) -> (Next<Windows<K>>, u64) {
        let &Version { word, record: windows, since, .. } = version;
        let &Change { quota, from, to, settings, .. } = change;
        let (record, field, since) = if from == to {
            windows.changed(word.field(), &quota, to, since)
        } else {
            // The windows of another clock: what still counts is counted in the one that `to` lies in.
            let left = windows.left(word.field(), from, since).at(to);
            let end = if windows.is_held(from) { to.saturating_add(windows.end.saturating_since(from)) } else { to };
            let (next, field) = Windows::new(&quota).start_at(left, end, to);
            (next, field, to)
        };
        (begin(version, Some(quota), record, field, since), Self::largest(&quota, settings))
    }

    fn paused(&self, version: &Version<Windows<K>>, end: Nanos, now: Nanos, _deepest: u64) -> Next<Windows<K>> {
        let &Version { word, record: windows, since, max_pause } = version;
        let left = windows.left(word.field(), now, since);
        let (record, field) = windows.start_at(left, end.min(now.saturating_add(max_pause)), now);
        begin(version, None, record, field, left.since())
    }

    fn refunded(&self, version: &Version<Windows<K>>, n: u64, now: Nanos) -> Next<Windows<K>> {
        let &Version { word, record, since, .. } = version;
        begin(version, None, record, record.refunded(word.field(), now, n), since)
    }

    fn rebased(&self, version: &Version<Windows<K>>, now: Nanos, _: &Settings) -> Next<Windows<K>> {
        let &Version { word, record: windows, since, .. } = version;
        let (record, field) = windows.rebased(&windows.counts_at(word.field(), now));
        begin(version, None, record, field, since)
    }

    fn resumed(&self, version: &Version<Windows<K>>) -> Next<Windows<K>> {
        let &Version { word, record, since, .. } = version;
        begin(version, None, Windows { held: false, ..record }, word.field(), since)
    }
}

fn begin<K: Kind>(
    version: &Version<Windows<K>>,
    quota: Option<Quota>,
    record: Windows<K>,
    field: u64,
    since: Nanos,
) -> Next<Windows<K>> {
    Next { quota, record, word: version.word.with_field(field).with_behind(false), since }
}

/// One version of a window law's quota, as the queue sees it at one instant.
#[derive(Clone, Copy, Debug)]
pub struct WindowPace<K> {
    windows: Windows<K>,
    now: Nanos,
    catch_up: Duration,
}

impl<K: Kind> Pace for WindowPace<K> {
    type Record = Windows<K>;

    /// Nanoseconds since the clock's origin.
    type Slot = u128;

    #[inline]
    fn is_held_at(&self, instant: Nanos) -> bool {
        self.windows.is_held(instant)
    }

    #[inline]
    fn is_held(&self) -> bool {
        self.is_held_at(self.now)
    }

    #[inline]
    fn is_past_a_pause(&self) -> bool {
        self.windows.held && !self.is_held()
    }

    #[inline]
    fn must_rebase(&self) -> bool {
        self.windows.is_beyond(self.now)
    }

    fn counts_in_full(&self, word: Word) -> bool {
        self.is_held() || self.windows.is_current(word.field(), self.now)
    }

    #[inline]
    fn slot(&self, word: Word, n: u64) -> u128 {
        self.windows.slot(word.field(), n)
    }

    #[inline]
    fn slot_behind(&self, word: Word, ahead: u128, n: u64) -> u128 {
        if ahead == 0 { self.slot(word, n) } else { self.windows.slot_behind(word.field(), self.now, ahead, n) }
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
        let Some(field) = self.windows.admit_in_64_bits(word.field(), self.now, n) else { return self.admit(word, n) };
        Some(word.with_field(field))
    }

    fn depart(&self, word: Word, n: u64) -> Word {
        // It is due, so it is admitted.
        self.admit(word, n).unwrap_or(word)
    }

    fn is_behind(&self, _: Word) -> bool {
        false
    }

    fn without(&self, word: Word, n: u64, _behind: bool) -> Word {
        word.with_field(self.windows.lowered(word.field(), n))
    }

    #[inline]
    fn remaining(&self, word: Word) -> u64 {
        self.windows.remaining(word.field(), self.now)
    }
}

impl<K: Kind> WindowPace<K> {
    fn admit(&self, word: Word, n: u64) -> Option<Word> {
        let counts = self.windows.admit(word.field(), self.now, n)?;
        if self.windows.unlimited {
            Some(word)
        } else {
            self.windows.field(&counts).map(|field| word.with_field(field))
        }
    }
}
