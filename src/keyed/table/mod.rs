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
mod state;
mod versions;

use std::fmt;

use crossbeam_utils::CachePadded;
use smallvec::SmallVec;

use self::places::{Line, Pair, Places, Spread};
use self::state::State;
use self::versions::Versions;
use super::law::{Asked, Police, Schedule, Store, Wait};
use super::waiting::{Home, KeyQueue, Queued, Queues, Visit, Whose};
use super::{KeyedError, WhenFull};
use crate::algorithm::LeakyQueueLaw;
use crate::algorithm::field::{Admission, FieldLaw};
use crate::algorithm::gcra::FIELD_END;
use crate::quota::Quota;
use crate::refused::Refused;
use crate::shaper::pace::{Settings, Waitable};
use crate::shaper::queue::Queue;
use crate::snapshot::Snapshot;
use crate::sync::{AtomicU64, Mutex, Ordering};
use crate::time::Nanos;

/// Keys that are first seen at the same time seldom share one of so many locks.
const MOST_STRIPES: usize = if cfg!(any(tollgate_loom, tollgate_shuttle)) { 2 } else { 64 };

/// The states of keys under one law.
pub struct Table<A: FieldLaw + Queued> {
    places: Places,
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
    /// The slot says that the state is in a queue.
    Waited(&'a Slot, State),
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
        // Release and Acquire: see the module. What was exchanged had been loaded with Acquire before.
        match self.word.compare_exchange(seen.bits(), next.bits(), Ordering::Release, Ordering::Acquire) {
            Ok(_) => Ok(()),
            Err(word) => Err(State::from_bits(word)),
        }
    }

    /// The slot as that of a key, if it is that one's.
    #[inline]
    fn found_by(&self, fingerprint: u64) -> Option<Found<'_>> {
        let word = self.load();
        let found = if word.is_key() { Found::Slot(self, word) } else { Found::Waited(self, word) };
        ((word.is_key() || word.is_waited()) && self.tag() == fingerprint).then_some(found)
    }

    /// The slot as that of a key that is known to have it.
    fn found(&self) -> Found<'_> {
        match self.load() {
            word if word.is_key() => Found::Slot(self, word),
            word => Found::Waited(self, word),
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
    fn find(&self, fingerprint: u64) -> Option<Found<'_>> {
        // Tags before words only to pass over the slots of others, all four at once: nobody can foretell which it is.
        let mut matching = 0u32;
        for (index, slot) in self.0.iter().enumerate() {
            matching |= u32::from(slot.tag() == fingerprint) << index;
        }
        while matching != 0 {
            let found = self.0.get(matching.trailing_zeros() as usize).and_then(|slot| slot.found_by(fingerprint));
            if found.is_some() {
                return found;
            }
            matching &= matching.wrapping_sub(1);
        }
        None
    }

    /// How many slots were never used.
    fn empty(&self) -> usize {
        self.0.iter().filter(|slot| slot.load().is_empty()).count()
    }

    /// The slot of a key in this line, where it will seldom be.
    fn find_rarely(&self, fingerprint: u64) -> Option<Found<'_>> {
        self.0.iter().filter(|slot| slot.tag() == fingerprint).find_map(|slot| slot.found_by(fingerprint))
    }
}

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
        let each = size_of::<Pair>().saturating_add(size_of::<Stripe<A>>());
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
        let before = match self.beginning() {
            Ok(word) => word,
            Err(whose) => return Decision::Waited(whose),
        };
        // A set that is read under a stripe lock is not rewritten meanwhile: that needs a walk.
        let version = self.versions.current();
        let record = self.versions.record(version);
        let field = before.map_or(0, |word| self.versions.field(word, version));
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

    /// The state with which a newcomer begins: that which keys without a place share, if there is one, since it may be he who took
    /// of it. `None` is at rest.
    fn beginning(&self) -> Result<Option<State>, Whose> {
        match self.shared.as_ref().map(|shared| shared.found()) {
            None => Ok(None),
            Some(Found::Slot(_, word)) => Ok(Some(word)),
            Some(Found::Waited(..) | Found::Nowhere) => Err(Whose::Shared),
        }
    }

    /// Marks a slot for a newcomer who holds the lock of his stripe.
    fn take_over(&self, key: Spread, now: Nanos) -> Place<'_> {
        loop {
            let Some(Vacant { slot, word, horizon }) = self.free(key, now) else {
                return Place::Nowhere(self.earliest(key));
            };
            self.raise_horizon(horizon);
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
        // Relaxed: whoever sees the mark, or what is written after it, sees the horizon as it is now or later.
        if self.horizon.load(Ordering::Relaxed) < rest.get() {
            self.horizon.fetch_max(rest.get(), Ordering::Relaxed);
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
            Admission::Granted(_) | Admission::Beyond => self.room(fingerprint, n, at),
        });
        answer.and_then(|answer| answer)
    }

    /// Whether a newcomer would find a place, and what he would be answered.
    fn room(&self, fingerprint: u64, n: u64, now: Nanos) -> Result<Result<(), Refused>, Whose> {
        let key = Spread::of(fingerprint);
        if self.free(key, now).is_some() {
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
                    let before = self.beginning()?;
                    let field = before.map_or(0, |word| self.versions.field(word, version));
                    let answer = answer(&self.versions.record(version), field, at, false);
                    if self.versions.current() == version {
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

    /// The lock of a queue.
    fn queues(&self, whose: Whose) -> &Stripe<A> {
        match whose {
            Whose::Key(fingerprint) => &self.stripes[self.places.stripe(Spread::of(fingerprint))],
            Whose::Shared => &self.stripes[0],
        }
    }

    /// Moves the state of a queue that nobody uses back into its slot. If it does not fit the version that is current, says which that
    /// is, and the instant to which the origin must move.
    fn retire(&self, whose: Whose, queues: &mut Queues<A::Queue>) -> Result<(), (usize, Nanos)> {
        let Some(queue) = queues.unused(whose) else { return Ok(()) };
        let found = match whose {
            Whose::Key(fingerprint) => self.find(fingerprint),
            Whose::Shared => self.shared.as_ref().map_or(Found::Nowhere, |shared| shared.found()),
        };
        if let Found::Waited(slot, word) = found {
            // A set that is read under a stripe lock is not rewritten meanwhile.
            let version = self.versions.current();
            let (next, (record, field)) = (self.versions.record(version), queue.law().state());
            // Under the same version nothing has changed, not even what a key at rest tells to clocks that are behind.
            let carried = if record == next { field } else { A::carried(&record, field, &next) };
            if carried == FIELD_END {
                return Err((version, queue.latest()));
            }
            // Nobody else writes the word of a waited key, which needs this lock.
            let _ = slot.exchange(word, word.with_key(version, carried));
        }
        queues.close(whose);
        Ok(())
    }

    /// Brings every word forward to the version that is current, before its successor takes a number that words may still name.
    fn walk(&self, current: usize) {
        // With all of them nobody is between a mark and the word that follows it. A decision without a lock that is under way fails,
        // or has changed the word to this version already.
        let _all: SmallVec<[_; MOST_STRIPES]> = self.stripes.iter().map(|stripe| stripe.lock()).collect();
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

    /// Whether a newcomer would find a slot.
    fn has_room(&self, fingerprint: u64, now: Nanos) -> bool {
        self.free(Spread::of(fingerprint), now).is_some()
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
        if let Some(found) = next_door.find_rarely(fingerprint) {
            return found;
        }
        // A slot that was used is never empty again. So there was always room enough at home, and nobody had to go far.
        if home.empty().saturating_add(next_door.empty()) >= ENOUGH {
            return Found::Nowhere;
        }
        let [far, spare] = [self.places.far(key), self.places.spare(key)];
        let mut others = far.iter().flatten().chain(spare.iter().flatten());
        others.find_map(|line| line.find_rarely(fingerprint)).unwrap_or(Found::Nowhere)
    }
}

impl<A: FieldLaw + Waitable> Table<A> {
    /// Lets the caller use the queue of a state that is `found` under its lock, which moves there if it is in a slot.
    fn visit_found<'a>(&'a self, whose: Whose, places: usize, found: impl FnOnce() -> Found<'a>) -> Visited<'a, A> {
        let (version, quota) = self.versions.in_force();
        let mut queues = self.queues(whose).lock();
        match found() {
            Found::Waited(..) => queues.join(self, whose).map_or(Visited::Changed, Visited::Yes),
            Found::Nowhere => Visited::Nowhere,
            // The version after the word, as always; a change from here on finds the queue.
            Found::Slot(slot, word)
                if self.versions.current() == version && slot.exchange(word, word.waited()).is_ok() =>
            {
                let law = A::law(quota, &self.versions.record(version), self.versions.field(word, version));
                Visited::Yes(queues.open(self, whose, Queue::new(law, Settings::of_key(places))))
            }
            Found::Slot(..) => Visited::Changed,
        }
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

impl<A: FieldLaw + Waitable> Wait for Table<A> {
    type Law = A;

    fn visit(&self, key: Asked, now: Nanos, places: usize) -> Option<Visit<'_, Self>> {
        let own = Whose::Key(key.fingerprint);
        loop {
            match self.visit_found(own, places, || self.find(key.fingerprint)) {
                Visited::Yes(visit) => return Some(visit),
                Visited::Changed => {}
                Visited::Nowhere => break,
            }
        }
        let shared = self.shared.as_ref()?;
        let at = self.no_earlier_than_horizon(now);
        if let Found::Slot(slot, word) = shared.found() {
            let rests = self.look_at(slot, word, |record, field| A::is_at_rest(record, field, at));
            if rests.unwrap_or(false) && self.has_room(key.fingerprint, now) {
                return None;
            }
        }
        loop {
            match self.visit_found(Whose::Shared, places, || shared.found()) {
                Visited::Yes(visit) => return Some(visit),
                Visited::Changed => {}
                Visited::Nowhere => return None,
            }
        }
    }

    fn waiting(&self, key: Asked, now: Nanos) -> usize {
        let whose = match self.find(key.fingerprint) {
            Found::Slot(..) => return 0,
            Found::Waited(..) => Whose::Key(key.fingerprint),
            Found::Nowhere if self.shared.is_none() => return 0,
            Found::Nowhere => Whose::Shared,
        };
        self.join(whose, None, now).map_or(0, |queue| queue.waiting(now))
    }
}

impl<A: FieldLaw + Queued> Home for Table<A> {
    type Queue = A::Queue;

    fn join(&self, whose: Whose, _: Option<Quota>, _: Nanos) -> Option<Visit<'_, Self>> {
        self.queues(whose).lock().join(self, whose)
    }

    fn leave(&self, whose: Whose) {
        let mut queues = self.queues(whose).lock();
        queues.leave(whose);
        while let Err((version, at)) = self.retire(whose, &mut queues) {
            // With no lock held, since the walk takes them all.
            drop(queues);
            self.versions.move_origin(version, at, |current| self.walk(current));
            queues = self.queues(whose).lock();
        }
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

/// What came of the wish to use a queue.
enum Visited<'a, A: FieldLaw + Queued> {
    Yes(Visit<'a, Table<A>>),
    /// Somebody else changed the word or the quota: look again.
    Changed,
    /// There is no state to move into a queue.
    Nowhere,
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

/// A slot that may be taken over.
#[derive(Clone, Copy)]
struct Vacant<'a> {
    slot: &'a Slot,
    word: State,
    /// By when its key was at rest, by every clock.
    horizon: Nanos,
}

/// What a newcomer may take of two lines.
struct Free<'a> {
    /// How many slots. No more than [`ENOUGH`] are counted.
    slots: usize,
    first: Option<Vacant<'a>>,
}

/// How many slots must be free at home for a newcomer not to look further. A model's pair has two.
const ENOUGH: usize = if cfg!(any(tollgate_loom, tollgate_shuttle)) { 2 } else { 3 };

impl<'a> Free<'a> {
    fn of<A: FieldLaw + Queued>(table: &Table<A>, lines: Option<[&'a Line; 2]>, now: Nanos) -> Self {
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
                    let horizon = if word.is_key() { <A as FieldLaw>::horizon(&record, field) } else { Nanos::ZERO };
                    free.first = Some(Vacant { slot, word, horizon });
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

impl<A: FieldLaw + Queued> fmt::Debug for Table<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("max_keys", &self.max_keys).finish_non_exhaustive()
    }
}
