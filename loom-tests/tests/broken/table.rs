//! A table of keys, as the crate's keeps them.

use tollgate::{Refused, WhenFull};

use super::checked::Mutex;
use super::checked::atomic::{AtomicU64, Ordering::SeqCst};
use crate::reference::keys::{Call, Key, MAX_KEYS, Owed, SLOTS, Table, Version, groups};
use crate::reference::{Law, Op, Outcome};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Nothing: shows that the flaw is what turns a check red.
    Nothing,
    /// The tag is read before the word, and not after it.
    TagBeforeWord,
    /// The tag of a newcomer is written into a slot that is still its last owner's.
    NoMark,
    /// A newcomer's word is written before its tag.
    WordBeforeTag,
    /// A slot is marked by a store, over a charge of its owner.
    MarksByStore,
    /// The word of a newcomer can be that of the last owner.
    NoGeneration,
    /// A key that has lost its slot is new by any clock.
    NoHorizon,
    /// The horizon is raised after the mark is set.
    HorizonAfterMark,
    /// What was not found without the lock is not looked for under it.
    NoSecondLook,
    /// Who meets no slot of his own, all being busy, takes one.
    TakesABusySlot,
    /// The current version is read before the word.
    VersionBeforeWord,
    /// A version is named before it is written.
    NamesBeforeItWrites,
    /// A version is written over one that words name.
    NoWalk,
    /// The walk passes over slots that are being taken over.
    WalkTakesNoLocks,
    /// The walk writes a word over one that it has not seen.
    WalksByStore,
    /// The word of the next version can be that of an old one with the same number.
    WalkKeepsGeneration,
    /// A refusal does not look whether the word is still the word.
    RefusesWithoutLookingAgain,
    /// Neither does a look.
    LooksOnce,
    /// The version by which a key without a slot is told is read after it was not found.
    LooksForTheVersionLast,
    /// Permits given back are a load and a store.
    RefundByStore,
    /// A reset empties the slot.
    ResetByStore,
}

/// `version:4 | generation:1 | what is owed:59`.
const GENERATION: u64 = 1 << 59;
const OWED: u64 = GENERATION - 1;
const EMPTY: u64 = 0;
const MARK: u64 = 1;

/// Numbered from 1.
const VERSIONS: u64 = 15;

#[derive(Clone, Copy, PartialEq)]
struct Word(u64);

impl Word {
    fn version(self) -> u64 {
        self.0 >> 60
    }

    fn is_key(self) -> bool {
        self.version() > 0
    }

    fn owed(self) -> Owed {
        Some(self.0 & OWED).filter(|owed| *owed > 0)
    }

    fn with(self, version: u64, owed: Owed) -> Self {
        Self(version << 60 | self.0 & GENERATION | owed.unwrap_or(0))
    }

    fn turned(self) -> Self {
        Self(self.0 ^ GENERATION)
    }
}

struct Slot {
    word: AtomicU64,
    tag: AtomicU64,
}

impl Slot {
    fn new(word: u64) -> Self {
        Self { word: AtomicU64::new(word), tag: AtomicU64::new(0) }
    }

    fn load(&self) -> Word {
        Word(self.word.load(SeqCst))
    }

    fn exchange(&self, seen: Word, next: Word) -> bool {
        self.word.compare_exchange(seen.0, next.0, SeqCst, SeqCst).is_ok()
    }
}

/// A version as atomics: T, the burst, and since when.
type Set = [AtomicU64; 3];

fn set(Version { law, since }: Version) -> Set {
    [law.interval, law.burst, since].map(AtomicU64::new)
}

fn write(set: &Set, Version { law, since }: Version) {
    set[0].store(law.interval, SeqCst);
    set[1].store(law.burst, SeqCst);
    set[2].store(since, SeqCst);
}

struct Setter {
    since: u64,
    changes: u64,
}

pub(crate) struct Broken {
    flaw: Flaw,
    slots: [Vec<Slot>; 3],
    shared: Option<Slot>,
    stripes: [Mutex<()>; 2],
    current: AtomicU64,
    sets: [Set; 16],
    setter: Mutex<Setter>,
    horizon: AtomicU64,
}

impl Broken {
    pub(crate) fn new(flaw: Flaw, law: Law, when_full: WhenFull) -> Self {
        let version = Version { law, since: 0 };
        let sets = std::array::from_fn(|_| set(version));
        Self {
            flaw,
            slots: SLOTS.map(|count| (0..count).map(|_| Slot::new(EMPTY)).collect()),
            shared: (when_full == WhenFull::Share).then(|| Slot::new(1 << 60)),
            stripes: [Mutex::new(()), Mutex::new(())],
            current: AtomicU64::new(1),
            sets,
            setter: Mutex::new(Setter { since: 0, changes: 0 }),
            horizon: AtomicU64::new(0),
        }
    }

    fn is(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    fn current(&self) -> u64 {
        self.current.load(SeqCst)
    }

    fn version(&self, number: u64) -> Version {
        let [interval, burst, since] = &self.sets[usize::try_from(number).unwrap()];
        Version { law: Law::new(interval.load(SeqCst), burst.load(SeqCst)), since: since.load(SeqCst) }
    }

    /// What is owed under the version `current`.
    fn owed(&self, word: Word, current: u64) -> Owed {
        let (mut number, mut owed) = (word.version(), word.owed());
        while number != current {
            let next = number % VERSIONS + 1;
            owed = self.version(number).carry(owed, self.version(next));
            number = next;
        }
        owed
    }

    fn places(&self, key: Key) -> impl Iterator<Item = &Slot> {
        groups(key).into_iter().flat_map(|group| &self.slots[group])
    }

    /// The state with which a newcomer begins.
    fn beginning(&self) -> Option<Word> {
        self.shared.as_ref().map(Slot::load)
    }

    fn find(&self, key: Key) -> Option<(&Slot, Word)> {
        self.places(key).find_map(|slot| {
            let early = self.is(Flaw::TagBeforeWord).then(|| slot.tag.load(SeqCst));
            let word = slot.load();
            let tag = early.unwrap_or_else(|| slot.tag.load(SeqCst));
            (word.is_key() && tag == key.fingerprint).then_some((slot, word))
        })
    }

    fn take(&self, key: Key, n: u64, now: u64) -> Outcome {
        loop {
            let early = self.is(Flaw::VersionBeforeWord).then(|| self.current());
            let answer = match self.find(key) {
                Some((slot, word)) => self.decide(slot, word, early, n, now),
                None => self.first_sight(key, n, now),
            };
            if let Some(outcome) = answer {
                return outcome;
            }
        }
    }

    /// `None` if the word has changed.
    fn decide(&self, slot: &Slot, word: Word, early: Option<u64>, n: u64, now: u64) -> Option<Outcome> {
        let number = early.unwrap_or_else(|| self.current());
        let (outcome, owed) = self.version(number).admit(self.owed(word, number), n, now);
        let done = match outcome {
            Outcome::Granted => slot.exchange(word, word.with(number, owed)),
            _ => self.is(Flaw::RefusesWithoutLookingAgain) || slot.load() == word,
        };
        done.then_some(outcome)
    }

    fn first_sight(&self, key: Key, n: u64, now: u64) -> Option<Outcome> {
        let _stripe = self.stripes[key.stripe].lock().unwrap();
        if !self.is(Flaw::NoSecondLook) {
            if let Some((slot, word)) = self.find(key) {
                return self.decide(slot, word, None, n, now);
            }
        }
        let at = if self.is(Flaw::NoHorizon) { now } else { now.max(self.horizon.load(SeqCst)) };
        let before = self.beginning();
        let number = self.current();
        let before = before.and_then(|word| self.owed(word, number));
        let (outcome, owed) = self.version(number).admit(before, n, at);
        if outcome != Outcome::Granted {
            return Some(outcome);
        }
        loop {
            let rest = |word: Word| word.is_key().then(|| self.owed(word, self.current()).unwrap_or(0));
            let seen = self.places(key).map(|slot| (slot, slot.load()));
            let places: Vec<_> = seen.map(|(slot, word)| (slot, word, rest(word))).collect();
            let free =
                |word: Word, rest: Option<u64>| word.0 & !GENERATION == EMPTY || rest.is_some_and(|rest| rest <= at);
            let place = places.iter().find(|(_, word, rest)| free(*word, *rest) || self.is(Flaw::TakesABusySlot));
            let Some(&(slot, word, rest)) = place else {
                if let Some(shared) = &self.shared {
                    return self.decide(shared, shared.load(), None, n, now);
                }
                let retry_after = places.iter().filter_map(|(_, _, rest)| *rest).min();
                let retry_after = retry_after.map(|rest| std::time::Duration::from_nanos(rest.saturating_sub(now)));
                return Some(Outcome::Refused(Refused::NoRoom { max_keys: MAX_KEYS, retry_after }));
            };
            if self.take_over(slot, word, rest.unwrap_or(0), key, |slot| slot.with(number, owed)) {
                return Some(Outcome::Granted);
            }
        }
    }

    /// Writes a newcomer into a slot whose word was seen; false if that has changed.
    fn take_over(&self, slot: &Slot, word: Word, rest: u64, key: Key, newcomer: impl Fn(Word) -> Word) -> bool {
        let turned = if self.is(Flaw::NoGeneration) { word } else { word.turned() };
        let tag = || slot.tag.store(key.fingerprint, SeqCst);
        let raise = || self.horizon.fetch_max(rest, SeqCst);
        if self.is(Flaw::NoMark) {
            raise();
            tag();
            return slot.exchange(word, newcomer(turned));
        }
        if self.is(Flaw::WordBeforeTag) {
            raise();
            let done = slot.exchange(word, newcomer(turned));
            if done {
                tag();
            }
            return done;
        }
        if !self.is(Flaw::HorizonAfterMark) {
            raise();
        }
        let mark = Word(turned.0 & GENERATION | MARK);
        if self.is(Flaw::MarksByStore) {
            slot.word.store(mark.0, SeqCst);
        } else if !slot.exchange(word, mark) {
            return false;
        }
        if self.is(Flaw::HorizonAfterMark) {
            raise();
        }
        tag();
        slot.word.store(newcomer(mark).0, SeqCst);
        true
    }

    fn look(&self, key: Key, now: u64) -> Outcome {
        loop {
            let first = self.current();
            match self.find(key) {
                Some((slot, word)) => {
                    let number = self.current();
                    let outcome = self.version(number).look(self.owed(word, number), now);
                    if self.is(Flaw::LooksOnce) || slot.load() == word {
                        return outcome;
                    }
                }
                None => {
                    let number = if self.is(Flaw::LooksForTheVersionLast) { self.current() } else { first };
                    let before = self.beginning().and_then(|word| self.owed(word, number));
                    let outcome = self.version(number).look(before, now.max(self.horizon.load(SeqCst)));
                    if self.current() == number {
                        return outcome;
                    }
                }
            }
        }
    }

    fn lower(&self, key: Key, op: Op, by_store: bool) -> Outcome {
        while let Some((slot, word)) = self.find(key) {
            let number = self.current();
            let next = word.with(number, self.version(number).lower(self.owed(word, number), op));
            if by_store {
                slot.word.store(next.0, SeqCst);
                break;
            }
            if slot.exchange(word, next) {
                break;
            }
        }
        Outcome::Done
    }

    fn set_quota(&self, law: Law, now: u64) -> Outcome {
        let mut setter = self.setter.lock().unwrap();
        let current = self.current();
        if setter.changes == VERSIONS - 1 {
            if !self.is(Flaw::NoWalk) {
                self.walk(current);
            }
            setter.changes = 0;
        }
        setter.changes += 1;
        setter.since = setter.since.max(now);
        let next = current % VERSIONS + 1;
        let version = Version { law, since: setter.since };
        let write = || write(&self.sets[usize::try_from(next).unwrap()], version);
        if self.is(Flaw::NamesBeforeItWrites) {
            self.current.store(next, SeqCst);
            write();
        } else {
            write();
            self.current.store(next, SeqCst);
        }
        Outcome::Done
    }

    fn walk(&self, current: u64) {
        let locks = !self.is(Flaw::WalkTakesNoLocks);
        let _all: Vec<_> = self.stripes.iter().filter(|_| locks).map(|stripe| stripe.lock().unwrap()).collect();
        for slot in self.slots.iter().flatten().chain(&self.shared) {
            loop {
                let word = slot.load();
                if !word.is_key() {
                    break;
                }
                let next = word.with(current, self.owed(word, current));
                let next = if self.is(Flaw::WalkKeepsGeneration) { next } else { next.turned() };
                if self.is(Flaw::WalksByStore) {
                    slot.word.store(next.0, SeqCst);
                    break;
                }
                if slot.exchange(word, next) {
                    break;
                }
            }
        }
    }
}

impl Table for Broken {
    fn call(&self, Call { key, op }: Call) -> Outcome {
        match op {
            Op::Try { n, now } => self.take(key, n, now),
            Op::Look { now } => self.look(key, now),
            Op::Refund { .. } => self.lower(key, op, self.is(Flaw::RefundByStore)),
            Op::Reset { .. } => self.lower(key, op, self.is(Flaw::ResetByStore)),
            Op::SetQuota { law, now } => self.set_quota(law, now),
            _ => panic!("{op:?} is not for this table"),
        }
    }
}
