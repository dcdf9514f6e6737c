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
#![expect(private_bounds, private_interfaces, reason = "public by name only")]

mod places;
mod queues;
mod slot;
mod state;
mod vacant;
mod versions;

use std::fmt;

use crossbeam_utils::CachePadded;
use smallvec::SmallVec;

use self::places::{Pair, Places, Spread};
use self::slot::{Found, Slot};
use self::state::State;
use self::vacant::{ENOUGH, Place};
use self::versions::Versions;
use super::law::{Asked, Police, Schedule, Store};
use super::waiting::{Home, KeyQueue, Queued, Queues, Whose};
use super::{KeyedError, WhenFull};
use crate::algorithm::LeakyQueueLaw;
use crate::algorithm::field::{Admission, FieldLaw};
use crate::quota::Quota;
use crate::refused::Refused;
use crate::shaper::pace::Waitable;
use crate::snapshot::Snapshot;
use crate::sync::{AtomicU64, Mutex, Ordering};
use crate::time::Nanos;

/// Keys that are first seen at the same time seldom share one of so many locks.
const MOST_STRIPES: usize = if cfg!(any(tollgate_loom, tollgate_shuttle)) { 2 } else { 64 };

/// The states of keys under one law.
pub struct Table<A: FieldLaw + Queued> {
    places: Places,
    /// The last one is that of what keys without a place share, if they may. It comes after that of a key.
    stripes: Box<[Stripe<A>]>,
    versions: Versions<A>,
    /// An instant by which every key that has lost its slot was at rest.
    horizon: AtomicU64,
    /// The state of all keys that found no place, if they may share one.
    shared: Option<CachePadded<Slot>>,
    max_keys: usize,
}

/// The lock of a part of the keys, and the queues of those that have one.
type Stripe<A> = CachePadded<Mutex<Queues<<A as Queued>::Queue>>>;

impl<A: FieldLaw + Queued> Table<A> {
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
        let locks = stripes.saturating_add(usize::from(when_full == WhenFull::Share));
        let fixed = size_of::<Self>()
            .saturating_add(stripes.saturating_mul(size_of::<Pair>()))
            .saturating_add(locks.saturating_mul(size_of::<Stripe<A>>()))
            .div_ceil(size_of::<Pair>());
        let pairs = all.saturating_sub(fixed.min(all.div_ceil(16).saturating_sub(1)));
        Ok(Self {
            places: Places::new(pairs, stripes)?,
            stripes: boxed(locks, CachePadded::default)?,
            versions: Versions::new(quota),
            horizon: AtomicU64::new(0),
            shared: (when_full == WhenFull::Share).then(|| {
                CachePadded::new(Slot { word: AtomicU64::new(State::first().bits()), tag: AtomicU64::new(0) })
            }),
            max_keys,
        })
    }

    /// Takes `n` permits of a key, now or not at all, unless its state is in a queue. Says from which state.
    #[inline]
    fn take(&self, key: Asked, n: u64, now: Nanos) -> Result<Result<Taken<A>, Refused>, Whose> {
        let found = self.find(key.fingerprint);
        if let Found::Slot(slot, word) = found {
            if let Some(taken) = self.take_usually(key.fingerprint, slot, word, n, now) {
                return Ok(Ok(taken));
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
    fn take_slow(
        &self,
        fingerprint: u64,
        found: Found<'_>,
        n: u64,
        now: Nanos,
    ) -> Result<Result<Taken<A>, Refused>, Whose> {
        let mut found = found;
        loop {
            let decision = match found {
                Found::Slot(slot, word) if slot.still(word) => self.decide(slot, word, n, now),
                Found::Slot(..) => Decision::Lost,
                Found::Waited(..) => Decision::Waited(Whose::Key(fingerprint)),
                Found::Nowhere => self.first_sight(fingerprint, n, now),
            };
            match decision {
                Decision::Done(answer) => return Ok(answer),
                Decision::Lost => {}
                // With no lock held, since the walk takes them all.
                Decision::Beyond(seen, at) => self.versions.move_origin(seen, at, |current| self.walk(current)),
                Decision::Waited(whose) => return Err(whose),
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
        match self.find(fingerprint) {
            Found::Slot(slot, word) => return self.decide(slot, word, n, now),
            Found::Waited(..) => return Decision::Waited(Whose::Key(fingerprint)),
            Found::Nowhere => {}
        }
        let at = self.no_earlier_than_horizon(now);
        let (version, field) = match self.beginning(key, at) {
            Ok(begun) => begun,
            Err(whose) => return Decision::Waited(whose),
        };
        // A set that is read under a stripe lock is not rewritten meanwhile: that needs a walk.
        let record = self.versions.record(version);
        let usual = A::admit_in_64_bits(&record, field, at, n).map(Admission::Granted);
        let next = match usual.unwrap_or_else(|| A::admit(&record, field, at, n)) {
            Admission::Granted(next) => next,
            Admission::Beyond => return Decision::Beyond(version, at),
            Admission::Refused(refused) => return Decision::Done(Err(refused)),
        };
        if next != field {
            match self.take_over(key, at) {
                Place::Marked(slot, mark) => slot.settle(fingerprint, mark.with_key(version, next)),
                Place::Nowhere(earliest) => {
                    let Some(shared) = &self.shared else { return Decision::Done(Err(self.no_room(earliest, now))) };
                    return match shared.found() {
                        Found::Slot(shared, word) => self.decide(shared, word, n, now),
                        Found::Waited(..) | Found::Nowhere => Decision::Waited(Whose::Shared),
                    };
                }
            }
        }
        Decision::Done(Ok(Taken { record, field, at }))
    }

    /// The field with which a newcomer begins who is judged at `at`, and its version: that which keys without a place share, since it
    /// may be he who took of it. Others who wait for that are ahead of him only where there is no place.
    fn beginning(&self, key: Spread, at: Nanos) -> Result<(usize, u64), Whose> {
        let Some(shared) = &self.shared else { return Ok((self.versions.current(), 0)) };
        let begun = |word| {
            let version = self.versions.current();
            (version, self.versions.field(word, version))
        };
        if let Found::Slot(_, word) = shared.found() {
            return Ok(begun(word));
        }
        if self.free(key, at).is_none() {
            return Err(Whose::Shared);
        }
        let queues = self.queues(Whose::Shared).lock();
        match shared.found() {
            Found::Slot(_, word) => Ok(begun(word)),
            Found::Waited(..) | Found::Nowhere => {
                queues.get(Whose::Shared).and_then(|queue| self.field_of(queue).ok()).ok_or(Whose::Shared)
            }
        }
    }

    /// Tells what a request of `n` would be answered, unless the state is in a queue.
    fn look_for(&self, key: Asked, n: u64, now: Nanos) -> Result<Result<(), Refused>, Whose> {
        if n == 0 {
            return Ok(Ok(()));
        }
        let fingerprint = key.fingerprint;
        let answer = self.look(fingerprint, now, |record, field, at, known| match A::admit(record, field, at, n) {
            Admission::Refused(refused) => Ok(Err(refused)),
            Admission::Granted(next) if known || next == field => Ok(Ok(())),
            Admission::Beyond if known => Ok(Ok(())),
            Admission::Granted(_) | Admission::Beyond => self.room(fingerprint, n, now, at),
        });
        answer.and_then(|answer| answer)
    }

    /// Whether a newcomer who is judged at `at` would find a place, and what he would be answered at `now` if not.
    fn room(&self, fingerprint: u64, n: u64, now: Nanos, at: Nanos) -> Result<Result<(), Refused>, Whose> {
        let key = Spread::of(fingerprint);
        if self.free(key, at).is_some() {
            return Ok(Ok(()));
        }
        let Some(shared) = &self.shared else { return Ok(Err(self.no_room(self.earliest(key), now))) };
        loop {
            let Found::Slot(shared, word) = shared.found() else { return Err(Whose::Shared) };
            let answer = self.look_at(shared, word, |record, field| match A::admit(record, field, now, n) {
                Admission::Refused(refused) => Err(refused),
                Admission::Granted(_) | Admission::Beyond => Ok(()),
            });
            if let Some(answer) = answer {
                return Ok(answer);
            }
        }
    }

    /// Answers from one consistent reading of a key's state, without a write, unless that is in a queue. The answer is told whether
    /// the key is known, and the time at which it is judged.
    fn look<T>(
        &self,
        fingerprint: u64,
        now: Nanos,
        answer: impl Fn(&A::Record, u64, Nanos, bool) -> T,
    ) -> Result<T, Whose> {
        loop {
            // Before the search: a key that was placed after it may be older than the version that is read then.
            let version = self.versions.current();
            match self.find(fingerprint) {
                Found::Slot(slot, word) => {
                    if let Some(answer) = self.look_at(slot, word, |record, field| answer(record, field, now, true)) {
                        return Ok(answer);
                    }
                }
                Found::Waited(..) => return Err(Whose::Key(fingerprint)),
                Found::Nowhere => {
                    let at = self.no_earlier_than_horizon(now);
                    let (begun, field) = self.beginning(Spread::of(fingerprint), at)?;
                    let answer = answer(&self.versions.record(begun), field, at, false);
                    if begun == version && self.versions.current() == version {
                        return Ok(answer);
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

    /// Gives permits of a key back, unless its state is in a queue. One without a slot has taken none that still count.
    fn lower(&self, fingerprint: u64, lowered: impl Fn(&A::Record, u64) -> u64) -> Result<(), Whose> {
        loop {
            let (slot, word) = match self.find(fingerprint) {
                Found::Slot(slot, word) => (slot, word),
                Found::Waited(..) => return Err(Whose::Key(fingerprint)),
                Found::Nowhere => return Ok(()),
            };
            let version = self.versions.current();
            let (record, field) = (self.versions.record(version), self.versions.field(word, version));
            let next = word.with_key(version, lowered(&record, field));
            let done = if next == word { slot.still(word) } else { slot.exchange(word, next).is_ok() };
            if done {
                return Ok(());
            }
        }
    }

    /// Brings every word forward to the version that is current, before its successor takes a number that words may still name.
    fn walk(&self, current: usize) {
        // With all of them nobody is between a mark and the word that follows it. A decision without a lock that is under way fails,
        // or has changed the word to this version already.
        let _all: SmallVec<[_; MOST_STRIPES + 1]> = self.stripes.iter().map(|stripe| stripe.lock()).collect();
        for slot in self.slots() {
            loop {
                let word = slot.load();
                if !word.is_key()
                    || slot.exchange(word, word.walked(current, self.versions.field(word, current))).is_ok()
                {
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
        // Relaxed: whoever has lost his slot has seen the mark, or what is written after it, with Acquire.
        now.max(Nanos::new(self.horizon.load(Ordering::Relaxed)))
    }

    /// The slot of a key.
    #[inline]
    fn find(&self, fingerprint: u64) -> Found<'_> {
        let key = Spread::of(fingerprint);
        let home = self.places.home(key).and_then(|[line, _]| line.find(fingerprint));
        home.unwrap_or_else(|| self.find_elsewhere(fingerprint, key))
    }

    #[inline(never)]
    fn find_elsewhere(&self, fingerprint: u64, key: Spread) -> Found<'_> {
        let Some([home, next_door]) = self.places.home(key) else { return Found::Nowhere };
        // A slot that was used is never empty again. So if so many are, there was always room enough, and nobody had to go further.
        let at_home = home.empty();
        if at_home >= ENOUGH {
            return Found::Nowhere;
        }
        if let Some(found) = next_door.find_rarely(fingerprint) {
            return found;
        }
        if at_home.saturating_add(next_door.empty()) >= ENOUGH {
            return Found::Nowhere;
        }
        let [far, spare] = [self.places.far(key), self.places.spare(key)];
        let mut others = far.iter().flatten().chain(spare.iter().flatten());
        others.find_map(|line| line.find_rarely(fingerprint)).unwrap_or(Found::Nowhere)
    }
}

impl<A: FieldLaw + Queued> Store for Table<A> {
    fn peek(&self, key: Asked, n: u64, now: Nanos) -> Result<(), Refused> {
        self.ask(None, now, || self.look_for(key, n, now), |queue| queue.peek(n, now))
    }

    fn snapshot(&self, key: Asked, now: Nanos) -> Snapshot {
        let look = |record: &A::Record, field, at, _| A::snapshot_of(record, field, at);
        self.ask(None, now, || self.look(key.fingerprint, now, look), |queue| queue.snapshot(now))
    }

    fn set_quota(&self, quota: Quota, now: Nanos) {
        self.versions.set_quota(quota, now, |current| self.walk(current));
        for stripe in &self.stripes {
            // A queue that is begun later begins with this quota.
            let queues = stripe.lock().join_all(self);
            for (_, queue) in queues {
                queue.follow(|| Some(self.quota()), now);
            }
        }
    }

    fn quota(&self) -> Quota {
        self.versions.quota()
    }

    fn len(&self, now: Nanos) -> usize {
        let busy = |slot: &&Slot| loop {
            let word = slot.load();
            if !word.is_key() {
                return word.is_waited();
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
        let queues =
            self.stripes.iter().map(|stripe| stripe.lock().iter().map(size_of_val).sum::<usize>()).sum::<usize>();
        size_of::<Self>()
            .saturating_add(self.places.memory())
            .saturating_add(size_of_val(&*self.stripes))
            .saturating_add(queues)
    }
}

impl<A: FieldLaw + Waitable> Police for Table<A> {
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
        let slot =
            || self.take_slow(key.fingerprint, self.find(key.fingerprint), n, now).map(|answer| answer.map(drop));
        self.ask(None, now, slot, |queue| queue.try_acquire(n, now).map(drop))
    }

    fn refund(&self, key: Asked, n: u64, now: Nanos) {
        let refunded = |record: &_, field| <A as FieldLaw>::refunded(record, field, now, n);
        self.ask(None, now, || self.lower(key.fingerprint, refunded), |queue| queue.refund(n, now));
    }

    fn reset(&self, key: Asked, now: Nanos) {
        let emptied = |record: &_, field| A::emptied(record, field, now);
        self.ask(None, now, || self.lower(key.fingerprint, emptied), |queue| queue.reset(now));
    }
}

impl Schedule for Table<LeakyQueueLaw> {
    fn schedule(&self, key: Asked, n: u64, now: Nanos) -> Result<Nanos, Refused> {
        let start = |record: &_, field, at| LeakyQueueLaw::start_of(record, field, at);
        let slot = || {
            if n == 0 {
                return self.look(key.fingerprint, now, |record, field, at, _| start(record, field, at)).map(Ok);
            }
            self.take(key, n, now).map(|answer| answer.map(|taken| start(&taken.record, taken.field, taken.at)))
        };
        self.ask(None, now, slot, |queue| match *queue {})
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
    /// The state is in a queue.
    Waited(Whose),
}

/// So many of them, or an error if there is no memory for as many.
fn boxed<T>(count: usize, new: impl FnMut() -> T) -> Result<Box<[T]>, KeyedError> {
    let mut items = Vec::new();
    let bytes = count.saturating_mul(size_of::<T>());
    items.try_reserve_exact(count).map_err(|_| KeyedError::OutOfMemory { bytes })?;
    items.extend(std::iter::repeat_with(new).take(count));
    Ok(items.into_boxed_slice())
}

impl<A: FieldLaw + Queued> fmt::Debug for Table<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("max_keys", &self.max_keys).finish_non_exhaustive()
    }
}
