//! The slot table: the states of all keys, 16 bytes each, for the laws whose state is one field.
//!
//! A key is known by its fingerprint alone. A key at rest (nothing taken that still counts) is as good as one that was never seen, so
//! its slot may be taken over in place: nothing sweeps, nothing is evicted that still owes, nothing is allocated after
//! construction.
//!
//! # How it works
//!
//! - **A known key** takes no lock: load the word, then the tag, then the current version; decide; exchange the word. The
//!   exchange proves all that was read (see [`State`] and [`Versions`]). A no writes nothing; it is confirmed by a second look.
//! - **First sight** takes the lock of the key's stripe and looks again, so that threads that see a key first at the same instant
//!   make one state. Then it takes a slot that is empty or whose owner is at rest: word to *mark* by exchange, tag, word. Whoever
//!   meets the mark goes the slow way.
//! - **Placement**: see [`places`]. There are two slots for each of `max_keys`.
//!
//! # Invariants
//!
//! 1. A key has one slot at most: slots are given under the stripe lock, after a look at all places where the key may be.
//! 2. A slot whose key still owes is never taken over: the exchange to the mark fails if the word has changed since it was seen at
//!    rest, and a word at rest by the taker's clock is at rest for all from then on, since [`horizon`](Table::horizon) is raised
//!    to that instant before, and a key without a slot is judged at the horizon at the earliest.
//! 3. Only the marker writes a marked slot, and it holds a stripe lock while it does.
//!
//! # Ordering
//!
//! Words and tags are stored with `Release` and loaded with `Acquire`, the tag before the word by those who write and after it by
//! those who read: a tag that is read after the word is the word's own, or the word has changed and the exchange fails. The horizon
//! is raised before the mark is set, so whoever finds his slot taken sees it.
#![expect(private_bounds, reason = "public by name only")]

mod places;
mod state;
mod versions;

use std::fmt;

use crossbeam_utils::CachePadded;

use self::places::{Line, Pair, Places, Spread};
use self::state::State;
use self::versions::Versions;
use super::law::{Asked, Police, Schedule, Store};
use super::{KeyedError, WhenFull};
use crate::algorithm::field::{Admission, FieldLaw};
use crate::algorithm::{LeakyQueueLaw, Policing};
use crate::quota::Quota;
use crate::refused::Refused;
use crate::snapshot::Snapshot;
use crate::sync::{AtomicU64, Mutex, Ordering};
use crate::time::Nanos;

/// Keys that are first seen at the same time seldom share one of so many locks.
const MOST_STRIPES: usize = if cfg!(any(tollgate_loom, tollgate_shuttle)) { 2 } else { 64 };

/// The states of keys under one law.
pub struct Table<A: FieldLaw> {
    places: Places,
    stripes: Box<[CachePadded<Mutex<()>>]>,
    versions: Versions<A>,
    /// An instant by which every key that has lost its slot was at rest.
    horizon: AtomicU64,
    /// The state of all keys that found no place, if they may share one.
    shared: Option<CachePadded<Slot>>,
    max_keys: usize,
}

/// A place for the state of one key.
#[derive(Debug, Default)]
struct Slot {
    word: AtomicU64,
    /// The fingerprint of the key.
    tag: AtomicU64,
}

/// Where a key was found.
enum Found<'a> {
    Slot(&'a Slot, State),
    /// Nowhere, or its slot is being taken over.
    Nowhere,
}

/// Where a newcomer may go.
enum Place<'a> {
    /// The slot is marked, and the caller's to write.
    Marked(&'a Slot, State),
    /// All are busy; the first of them is at rest then, if it ever is.
    Nowhere(Option<Nanos>),
}

impl Slot {
    #[inline]
    fn load(&self) -> State {
        // Acquire: see the module.
        State::from_bits(self.word.load(Ordering::Acquire))
    }

    #[inline]
    fn tag(&self) -> u64 {
        // Acquire: see the module.
        self.tag.load(Ordering::Acquire)
    }

    /// Whether the word is still `seen`, so that what was read since is true.
    #[inline]
    fn still(&self, seen: State) -> bool {
        self.load() == seen
    }

    /// Replaces `seen` by `next`, if that is still the word. Else what the word is instead.
    #[inline]
    fn exchange(&self, seen: State, next: State) -> Result<(), State> {
        // AcqRel and Acquire: see the module.
        match self.word.compare_exchange(seen.bits(), next.bits(), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(()),
            Err(word) => Err(State::from_bits(word)),
        }
    }

    /// Writes a slot that the caller has marked.
    fn settle(&self, fingerprint: u64, word: State) {
        // Release: see the module. Nobody else writes a marked slot.
        self.tag.store(fingerprint, Ordering::Release);
        self.word.store(word.bits(), Ordering::Release);
    }
}

impl Line {
    /// The slot of a key in this line.
    #[inline]
    fn find(&self, fingerprint: u64) -> Option<(&Slot, State)> {
        // Tags before words only to pass over the slots of others, all four at once: nobody can foretell which it is.
        let mut matching = 0u32;
        for (index, slot) in self.0.iter().enumerate() {
            matching |= u32::from(slot.tag() == fingerprint) << index;
        }
        while matching != 0 {
            let Some(slot) = self.0.get(matching.trailing_zeros() as usize) else { break };
            let word = slot.load();
            if word.is_key() && slot.tag() == fingerprint {
                return Some((slot, word));
            }
            matching &= matching.wrapping_sub(1);
        }
        None
    }

    /// The same, for a line where it will seldom be.
    fn find_rarely(&self, fingerprint: u64) -> Option<(&Slot, State)> {
        self.0.iter().filter(|slot| slot.tag() == fingerprint).find_map(|slot| {
            let word = slot.load();
            (word.is_key() && slot.tag() == fingerprint).then_some((slot, word))
        })
    }
}

impl<A: FieldLaw> Table<A> {
    /// The most keys that a table takes: 2^28, in 8 GiB.
    pub(super) const MOST_KEYS: usize = 1 << 28;

    /// A table for `max_keys` busy keys.
    pub(super) fn new(quota: Quota, max_keys: usize, when_full: WhenFull) -> Result<Self, KeyedError> {
        if max_keys > Self::MOST_KEYS {
            return Err(KeyedError::TooManyKeys { asked: max_keys, most: Self::MOST_KEYS });
        }
        // Two slots for each key. What else a large table takes comes out of that.
        let all = max_keys.saturating_mul(2).div_ceil(Pair::SLOTS);
        let stripes = all.next_power_of_two().min(MOST_STRIPES);
        let each = size_of::<Pair>().saturating_add(size_of::<CachePadded<Mutex<()>>>());
        let fixed = size_of::<Self>().saturating_add(stripes.saturating_mul(each)).div_ceil(size_of::<Pair>());
        let pairs = all.saturating_sub(fixed.min(all.div_ceil(16).saturating_sub(1)));
        Ok(Self {
            places: Places::new(pairs, stripes)?,
            stripes: boxed(stripes, CachePadded::default)?,
            versions: Versions::new(quota),
            horizon: AtomicU64::new(0),
            shared: (when_full == WhenFull::Share).then(|| {
                CachePadded::new(Slot { word: AtomicU64::new(State::first().bits()), tag: AtomicU64::new(0) })
            }),
            max_keys,
        })
    }

    /// Takes `n` permits of a key, now or not at all. Says from which state.
    #[inline]
    pub(super) fn take(&self, key: Asked, n: u64, now: Nanos) -> Result<Taken<A>, Refused> {
        let found = self.find(key.fingerprint);
        if let Found::Slot(slot, word) = found {
            if let Some(taken) = self.take_usually(key.fingerprint, slot, word, n, now) {
                return Ok(taken);
            }
        }
        self.take_slow(key.fingerprint, found, n, now)
    }

    /// The usual yes: from the slot of a key, under the current version. `None` says nothing.
    #[inline]
    fn take_usually(&self, fingerprint: u64, slot: &Slot, word: State, n: u64, now: Nanos) -> Option<Taken<A>> {
        let mut word = word;
        loop {
            // After the word: see `Versions`.
            let version = self.versions.current();
            if word.version() != version {
                return None;
            }
            let (record, field) = (self.versions.record(version), word.field());
            let next = A::admit_in_64_bits(&record, field, now, n)?;
            if next == field {
                // An exchange of a word for itself would prove nothing.
                return None;
            }
            match slot.exchange(word, word.with_key(version, next)) {
                Ok(()) => return Some(Taken { record, field, at: now }),
                // At once, while the line is here. The tag after the word, as always.
                Err(other) if slot.tag() == fingerprint => word = other,
                Err(_) => return None,
            }
        }
    }

    #[inline(never)]
    fn take_slow(&self, fingerprint: u64, found: Found<'_>, n: u64, now: Nanos) -> Result<Taken<A>, Refused> {
        let mut found = found;
        loop {
            let decision = match found {
                Found::Slot(slot, word) if slot.still(word) => self.decide(slot, word, n, now),
                Found::Slot(..) => Decision::Lost,
                Found::Nowhere => self.first_sight(fingerprint, n, now),
            };
            match decision {
                Decision::Done(answer) => return answer,
                Decision::Lost => {}
                // With no lock held, since the walk takes them all.
                Decision::Beyond(seen, at) => self.versions.move_origin(seen, at, |current| self.walk(current)),
            }
            found = self.find(fingerprint);
        }
    }

    /// Takes permits of the key of a slot, whose word was seen.
    fn decide(&self, slot: &Slot, word: State, n: u64, now: Nanos) -> Decision<A> {
        let version = self.versions.current();
        let (record, field) = (self.versions.record(version), self.versions.field(word, version));
        let (next, answer) = match A::admit(&record, field, now, n) {
            Admission::Granted(next) => (word.with_key(version, next), Ok(Taken { record, field, at: now })),
            Admission::Beyond => return Decision::Beyond(version, now),
            Admission::Refused(refused) => (word, Err(refused)),
        };
        // A no writes nothing, and what costs nothing neither.
        let done = if next == word { slot.still(word) } else { slot.exchange(word, next).is_ok() };
        if done { Decision::Done(answer) } else { Decision::Lost }
    }

    /// Takes permits of a key that seems to have no slot.
    fn first_sight(&self, fingerprint: u64, n: u64, now: Nanos) -> Decision<A> {
        let key = Spread::of(fingerprint);
        let _stripe = self.stripes[self.places.stripe(key)].lock();
        if let Found::Slot(slot, word) = self.find(fingerprint) {
            return self.decide(slot, word, n, now);
        }
        let at = self.no_earlier_than_horizon(now);
        // A set that is read under a stripe lock is not rewritten meanwhile: that needs a walk.
        let version = self.versions.current();
        let record = self.versions.record(version);
        let usual = A::admit_in_64_bits(&record, 0, at, n).map(Admission::Granted);
        let field = match usual.unwrap_or_else(|| A::admit(&record, 0, at, n)) {
            Admission::Granted(field) => field,
            Admission::Beyond => return Decision::Beyond(version, at),
            Admission::Refused(refused) => return Decision::Done(Err(refused)),
        };
        if field > 0 {
            match self.take_over(key, at) {
                Place::Marked(slot, mark) => slot.settle(fingerprint, mark.with_key(version, field)),
                Place::Nowhere(earliest) => {
                    return match &self.shared {
                        Some(shared) => self.decide(shared, shared.load(), n, now),
                        None => Decision::Done(Err(self.no_room(earliest, now))),
                    };
                }
            }
        }
        Decision::Done(Ok(Taken { record, field: 0, at }))
    }

    /// Marks a slot for a newcomer who holds the lock of his stripe.
    fn take_over(&self, key: Spread, now: Nanos) -> Place<'_> {
        loop {
            let Some(Vacant { slot, word, rest }) = self.free(key, now) else {
                return Place::Nowhere(self.earliest(key));
            };
            self.raise_horizon(rest);
            if slot.exchange(word, word.marked()).is_ok() {
                return Place::Marked(slot, word.marked());
            }
        }
    }

    /// The slot that a newcomer should take: see [`places`].
    fn free(&self, key: Spread, now: Nanos) -> Option<Vacant<'_>> {
        let home = Free::of(self, self.places.home(key), now);
        let chosen = if home.slots >= ENOUGH {
            home
        } else {
            let far = Free::of(self, self.places.far(key), now);
            if far.slots > home.slots { far } else { home }
        };
        chosen.first.or_else(|| Free::of(self, self.places.spare(key), now).first)
    }

    /// The first instant at which a key is at rest that is where `key` may be.
    #[cold]
    fn earliest(&self, key: Spread) -> Option<Nanos> {
        let rest = |slot: &Slot| {
            let word = slot.load();
            let version = self.versions.current();
            let field = word.is_key().then(|| self.versions.field(word, version))?;
            A::rest(&self.versions.record(version), field)
        };
        self.places.all(key).flat_map(|line| &line.0).filter_map(rest).min()
    }

    /// Lets no key without a slot be judged before `rest`.
    fn raise_horizon(&self, rest: Nanos) {
        // Acquire: one that is as high was raised by somebody else, and must be seen by whoever sees what comes next.
        if self.horizon.load(Ordering::Acquire) < rest.get() {
            // AcqRel: before the mark, see the module.
            self.horizon.fetch_max(rest.get(), Ordering::AcqRel);
        }
    }

    /// Tells what a request of `n` would be answered.
    pub(super) fn look_for(&self, key: Asked, n: u64, now: Nanos) -> Result<(), Refused> {
        if n == 0 {
            return Ok(());
        }
        let fingerprint = key.fingerprint;
        self.look(fingerprint, now, |record, field, at, known| match A::admit(record, field, at, n) {
            Admission::Refused(refused) => Err(refused),
            Admission::Granted(next) if next > 0 && !known => self.room(fingerprint, n, at),
            Admission::Granted(_) | Admission::Beyond => Ok(()),
        })
    }

    /// Whether a newcomer would find a place.
    fn room(&self, fingerprint: u64, n: u64, now: Nanos) -> Result<(), Refused> {
        let key = Spread::of(fingerprint);
        if self.free(key, now).is_some() {
            return Ok(());
        }
        let Some(shared) = &self.shared else { return Err(self.no_room(self.earliest(key), now)) };
        self.look_at(shared, shared.load(), |record, field| match A::admit(record, field, now, n) {
            Admission::Refused(refused) => Err(refused),
            Admission::Granted(_) | Admission::Beyond => Ok(()),
        })
        .unwrap_or(Ok(()))
    }

    /// Answers from one consistent reading of a key's state, without a write. The answer is told whether the key is known, and the
    /// time at which it is judged.
    fn look<T>(&self, fingerprint: u64, now: Nanos, answer: impl Fn(&A::Record, u64, Nanos, bool) -> T) -> T {
        loop {
            // Before the search: a key that was placed after it may be older than the version that is read then.
            let version = self.versions.current();
            match self.find(fingerprint) {
                Found::Slot(slot, word) => {
                    if let Some(answer) = self.look_at(slot, word, |record, field| answer(record, field, now, true)) {
                        return answer;
                    }
                }
                Found::Nowhere => {
                    let at = self.no_earlier_than_horizon(now);
                    let answer = answer(&self.versions.record(version), 0, at, false);
                    if self.versions.current() == version {
                        return answer;
                    }
                }
            }
        }
    }

    /// The same from a slot whose word was seen; `None` if it has changed.
    fn look_at<T>(&self, slot: &Slot, word: State, answer: impl Fn(&A::Record, u64) -> T) -> Option<T> {
        let version = self.versions.current();
        let answer = answer(&self.versions.record(version), self.versions.field(word, version));
        slot.still(word).then_some(answer)
    }

    /// Gives permits of a key back. One without a slot has taken none that still count.
    fn lower(&self, fingerprint: u64, lowered: impl Fn(&A::Record, u64) -> u64) {
        while let Found::Slot(slot, word) = self.find(fingerprint) {
            let version = self.versions.current();
            let (record, field) = (self.versions.record(version), self.versions.field(word, version));
            let next = word.with_key(version, lowered(&record, field));
            let done = if next == word { slot.still(word) } else { slot.exchange(word, next).is_ok() };
            if done {
                return;
            }
        }
    }

    /// Brings every word forward to the version that is current, before its successor takes a number that words may still name.
    fn walk(&self, current: usize) {
        // With all of them nobody is between a mark and the word that follows it. A decision without a lock that is under way fails,
        // or has changed the word to this version already.
        let _all: Vec<_> = self.stripes.iter().map(|stripe| stripe.lock()).collect();
        for slot in self.slots() {
            loop {
                let word = slot.load();
                if !word.is_key() || word.version() == current {
                    break;
                }
                if slot.exchange(word, word.with_key(current, self.versions.field(word, current))).is_ok() {
                    break;
                }
            }
        }
    }

    fn slots(&self) -> impl Iterator<Item = &Slot> {
        let shared = self.shared.iter().map(|shared| &**shared);
        self.places.slots().chain(shared)
    }

    /// A refusal for want of a slot.
    fn no_room(&self, earliest: Option<Nanos>, now: Nanos) -> Refused {
        let retry_after = earliest.map(|earliest| earliest.saturating_since(now));
        Refused::NoRoom { max_keys: self.max_keys, retry_after }
    }

    /// When a key without a slot is judged: see the invariants.
    fn no_earlier_than_horizon(&self, now: Nanos) -> Nanos {
        // Acquire: pairs with the raise in `take_over`.
        now.max(Nanos::new(self.horizon.load(Ordering::Acquire)))
    }

    /// The slot of a key.
    #[inline]
    fn find(&self, fingerprint: u64) -> Found<'_> {
        let key = Spread::of(fingerprint);
        let home = self.places.home(key);
        if let Some((slot, word)) = home.and_then(|[line, _]| line.find(fingerprint)) {
            return Found::Slot(slot, word);
        }
        self.find_elsewhere(fingerprint, key)
    }

    #[inline(never)]
    fn find_elsewhere(&self, fingerprint: u64, key: Spread) -> Found<'_> {
        if let Some([_, next_door]) = self.places.home(key) {
            if let Some((slot, word)) = next_door.find_rarely(fingerprint) {
                return Found::Slot(slot, word);
            }
        }
        if let Some([far, next]) = self.places.far(key) {
            if let Some((slot, word)) = far.find_rarely(fingerprint).or_else(|| next.find_rarely(fingerprint)) {
                return Found::Slot(slot, word);
            }
        }
        if let Some([spare, next]) = self.places.spare(key) {
            if let Some((slot, word)) = spare.find_rarely(fingerprint).or_else(|| next.find_rarely(fingerprint)) {
                return Found::Slot(slot, word);
            }
        }
        Found::Nowhere
    }
}

impl<A: FieldLaw> Store for Table<A> {
    fn peek(&self, key: Asked, n: u64, now: Nanos) -> Result<(), Refused> {
        self.look_for(key, n, now)
    }

    fn snapshot(&self, key: Asked, now: Nanos) -> Snapshot {
        self.look(key.fingerprint, now, |record, field, at, _| A::snapshot_of(record, field, at))
    }

    fn set_quota(&self, quota: Quota, now: Nanos) {
        self.versions.set_quota(quota, now, |current| self.walk(current));
    }

    fn quota(&self) -> Quota {
        self.versions.quota()
    }

    fn len(&self, now: Nanos) -> usize {
        let busy = |slot: &&Slot| loop {
            let word = slot.load();
            if !word.is_key() {
                return false;
            }
            if let Some(rest) = self.look_at(slot, word, |record, field| A::is_at_rest(record, field, now)) {
                return !rest;
            }
        };
        self.places.slots().filter(busy).count()
    }

    fn max_keys(&self) -> usize {
        self.max_keys
    }

    fn memory(&self) -> usize {
        size_of::<Self>().saturating_add(self.places.memory()).saturating_add(size_of_val(&*self.stripes))
    }
}

impl<A: FieldLaw + Policing> Police for Table<A> {
    #[inline]
    fn try_acquire(&self, key: Asked, n: u64, now: Nanos) -> Result<(), Refused> {
        if n == 0 {
            return Ok(());
        }
        // As `take`, whose answer is larger.
        let found = self.find(key.fingerprint);
        if let Found::Slot(slot, word) = found {
            if self.take_usually(key.fingerprint, slot, word, n, now).is_some() {
                return Ok(());
            }
        }
        self.take_slow(key.fingerprint, found, n, now).map(drop)
    }

    fn refund(&self, key: Asked, n: u64, now: Nanos) {
        self.lower(key.fingerprint, |record, field| A::refunded(record, field, now, n));
    }

    fn reset(&self, key: Asked, now: Nanos) {
        self.lower(key.fingerprint, |record, field| A::emptied(record, field, now));
    }
}

impl Schedule for Table<LeakyQueueLaw> {
    fn schedule(&self, key: Asked, n: u64, now: Nanos) -> Result<Nanos, Refused> {
        let start = |record: &_, field, at| LeakyQueueLaw::start_of(record, field, at);
        if n == 0 {
            return Ok(self.look(key.fingerprint, now, |record, field, at, _| start(record, field, at)));
        }
        self.take(key, n, now).map(|taken| start(&taken.record, taken.field, taken.at))
    }
}

/// From which state permits were taken, and when.
pub(super) struct Taken<A: FieldLaw> {
    pub(super) record: A::Record,
    pub(super) field: u64,
    pub(super) at: Nanos,
}

/// What came of a decision.
enum Decision<A: FieldLaw> {
    Done(Result<Taken<A>, Refused>),
    /// Somebody else changed the word: look again.
    Lost,
    /// The field of that version can't hold what is lawful at that instant: the origin must move.
    Beyond(usize, Nanos),
}

/// A slot that may be taken over.
#[derive(Clone, Copy)]
struct Vacant<'a> {
    slot: &'a Slot,
    word: State,
    /// Since when its key is at rest.
    rest: Nanos,
}

/// What a newcomer may take of two lines.
struct Free<'a> {
    /// How many slots. No more than [`ENOUGH`] are counted.
    slots: usize,
    first: Option<Vacant<'a>>,
}

/// How many slots must be free at home for a newcomer not to look further.
const ENOUGH: usize = 3;

impl<'a> Free<'a> {
    fn of<A: FieldLaw>(table: &Table<A>, lines: Option<[&'a Line; 2]>, now: Nanos) -> Self {
        let mut free = Self { slots: 0, first: None };
        for line in lines.into_iter().flatten() {
            let words = line.0.each_ref().map(Slot::load);
            // After the words. One that is replaced meanwhile can't be taken over.
            let version = table.versions.current();
            let record = table.versions.record(version);
            for (slot, word) in line.0.iter().zip(words) {
                let field = if word.is_key() { table.versions.field(word, version) } else { 0 };
                if !word.is_empty() && (!word.is_key() || !A::is_at_rest(&record, field, now)) {
                    continue;
                }
                if free.first.is_none() {
                    // None is not possible: then it would not be at rest.
                    free.first = Some(Vacant { slot, word, rest: A::rest(&record, field).unwrap_or(now) });
                }
                free.slots = free.slots.saturating_add(1);
                if free.slots == ENOUGH {
                    return free;
                }
            }
        }
        free
    }
}

/// So many of them, or an error if there is no memory for as many.
fn boxed<T>(count: usize, new: impl FnMut() -> T) -> Result<Box<[T]>, KeyedError> {
    let mut items = Vec::new();
    let bytes = count.saturating_mul(size_of::<T>());
    items.try_reserve_exact(count).map_err(|_| KeyedError::OutOfMemory { bytes })?;
    items.extend(std::iter::repeat_with(new).take(count));
    Ok(items.into_boxed_slice())
}

impl<A: FieldLaw> fmt::Debug for Table<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("max_keys", &self.max_keys).finish_non_exhaustive()
    }
}
