//! What the queue asks of a law: when permits leave. One file a law.
#![expect(private_bounds, private_interfaces, reason = "sealed: the traits are public by name only")]

mod bucket;
mod log;
mod windows;

use std::time::Duration;

use crate::algorithm::Policing;
use crate::cell::{Cell, Next, Record, Version};
use crate::quota::Quota;
use crate::time::Nanos;
use crate::word::Word;

/// A law that can be waited for: those that are [`Policing`](crate::Policing). See [`Shaper::over`](crate::Shaper::over). Sealed: the crate's own laws implement it, and
/// nothing else can.
pub trait Waitable: Policing + Law {}

/// What does not change over the life of a queue.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many may wait.
    pub(crate) places: usize,
    /// The largest n of one request.
    pub(crate) max_n: MaxN,
    /// How far a late schedule may be caught up.
    pub(crate) catch_up: Duration,
    /// The longest pause.
    pub(crate) max_pause: Duration,
    /// Which burst a quota has that does not say one.
    pub(crate) unsaid: UnsaidBurst,
}

impl Settings {
    /// For the queue of one key, in which at most so many wait: it admits what a try would, and makes up for nothing.
    pub(crate) const fn of_key(places: usize) -> Self {
        Self {
            places,
            max_n: MaxN::Burst,
            catch_up: Duration::ZERO,
            max_pause: Duration::MAX,
            unsaid: UnsaidBurst::Period,
        }
    }
}

/// The largest n of one request. Under a law of windows it is the limit at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MaxN {
    /// The larger of the burst and the permits per period.
    Unsaid,
    /// So many, beyond the burst too.
    Said(u64),
    /// The burst, as for a limiter.
    Burst,
}

impl MaxN {
    /// The number that was said; no bound else.
    fn said(self) -> u64 {
        if let Self::Said(n) = self { n } else { u64::MAX }
    }
}

/// The burst of a quota that does not say one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnsaidBurst {
    /// 1: for a shaper made from a quota.
    One,
    /// The permits per period: for a limiter, and for a shaper over one.
    Period,
}

/// A change of the quota, or the way from a limiter's clock to a shaper's.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    pub(crate) quota: Quota,
    /// The instant of which what is left is carried.
    pub(crate) from: Nanos,
    /// The instant, perhaps of another clock, at which it is left.
    pub(crate) to: Nanos,
    /// See [`Law::deepest`].
    pub(crate) deepest: u64,
    pub(crate) settings: &'a Settings,
}

/// A law's state, as the queue in front of it uses it.
///
/// The queue owns it, and knows the order of those who wait; the law says what may pass. Changes that are not grants are
/// versions of the quota: each function that makes one gets the version that stands and is called again if that changes.
pub trait Law: Sized {
    /// One version of the quota.
    type Record: Record;

    /// One version of the quota, seen at one instant.
    type Pace<'a>: Pace<Record = Self::Record>
    where
        Self: 'a;

    /// The word and its versions.
    fn cell(&self) -> &Cell<Self::Record>;

    /// The version of `word` at `now`.
    fn pace(&self, word: Word, record: Self::Record, now: Nanos, settings: &Settings) -> Self::Pace<'_>;

    /// Replaces `seen` by `next`, or gives the word that stands there instead. All words that the queue writes go through here,
    /// or are versions.
    #[inline]
    fn exchange(&self, _pace: &Self::Pace<'_>, seen: Word, next: Word) -> Result<(), Word> {
        self.cell().exchange(seen, next)
    }

    /// The largest request.
    fn largest(quota: &Quota, settings: &Settings) -> u64;

    /// How far beyond empty a version may be, in the law's own measure, whose largest request is `largest` and which began with
    /// `first`. Nothing for a law that admits nothing before it is there.
    fn deepest(_record: &Self::Record, _largest: u64, _first: Word) -> u64 {
        0
    }

    /// The version that follows a change, and its largest request.
    fn changed(&self, version: &Version<Self::Record>, change: &Change<'_>) -> (Next<Self::Record>, u64);

    /// The version that holds everybody until `end`, or that ends a pause if `end` is not after `now`.
    fn paused(&self, version: &Version<Self::Record>, end: Nanos, now: Nanos, deepest: u64) -> Next<Self::Record>;

    /// The version that follows when `n` permits are given back.
    fn refunded(&self, version: &Version<Self::Record>, n: u64, now: Nanos) -> Next<Self::Record>;

    /// The version that follows when all is given back. No law but the bucket's can owe more than 2^64 permits.
    fn filled(&self, version: &Version<Self::Record>, now: Nanos) -> Next<Self::Record> {
        self.refunded(version, u64::MAX, now)
    }

    /// The same version with room for what is granted at `now`. See [`Pace::must_rebase`].
    fn rebased(&self, version: &Version<Self::Record>, now: Nanos, settings: &Settings) -> Next<Self::Record>;

    /// The same version without a pause, which is past.
    fn resumed(&self, version: &Version<Self::Record>) -> Next<Self::Record>;
}

/// One version of the quota, seen at one instant.
pub trait Pace: Copy {
    type Record;

    /// When a request may leave, in the law's own measure.
    type Slot: Copy;

    /// Whether a pause lasts at that instant.
    fn is_held_at(&self, instant: Nanos) -> bool;

    /// Whether a pause lasts.
    fn is_held(&self) -> bool;

    /// Whether a pause has ended and the version still tells of it.
    fn is_past_a_pause(&self) -> bool;

    /// Whether what is granted now might not fit the word, so that the origin must move first.
    fn must_rebase(&self) -> bool;

    /// Whether the last grant that `word` tells of still counts as what it was, so that it could be taken back after another
    /// version has begun now.
    fn counts_in_full(&self, word: Word) -> bool;

    /// From when a request of `n` may leave if it is the next one. It does not depend on `now`.
    fn slot(&self, word: Word, n: u64) -> Self::Slot;

    /// From when it may leave behind `ahead` more permits: never later than it can, since it is then that it asks again.
    fn slot_behind(&self, word: Word, ahead: u128, n: u64) -> Self::Slot;

    /// Whether a slot has come.
    fn is_due(&self, slot: Self::Slot) -> bool;

    /// Whether it came so long ago that nobody can have waited for it: timers are not as late as that.
    fn is_overdue(&self, slot: Self::Slot) -> bool;

    /// The time from now to a slot; `None` if it never comes.
    fn wait(&self, slot: Self::Slot) -> Option<Duration>;

    /// The instant of a slot; `Nanos::MAX` if it never comes.
    fn instant(&self, slot: Self::Slot) -> Nanos;

    /// The word after a request of `n` that meets nobody waiting, or `None` if it has to wait.
    fn pass(&self, word: Word, n: u64) -> Option<Word>;

    /// The word after the head of the line, whose slot has come, leaves. It waited.
    fn depart(&self, word: Word, n: u64) -> Word;

    /// Whether the schedule is behind the clock, and may catch up. Never for a law without one.
    fn is_behind(&self, word: Word) -> bool;

    /// The word as if the last grant, of `n`, had not been made; `behind` is whether the schedule was behind before it.
    fn without(&self, word: Word, n: u64, behind: bool) -> Word;

    /// The whole permits that are there now.
    fn remaining(&self, word: Word) -> u64;
}
