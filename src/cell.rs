//! The atomic cell: one word, and the ring of quotas that its versions name.

use std::time::Duration;

use crossbeam_utils::CachePadded;

use crate::quota::Quota;
use crate::sync::{AtomicU64, Mutex, Ordering};
use crate::time::Nanos;
use crate::word::{VERSIONS, Word};

/// One version of a quota, as a law counts it.
pub(crate) trait Record: Copy {
    /// The atomics in which a version is kept.
    type Set: Default;

    /// Writes every field with `Release`: pairs with the Acquire in [`load`](Self::load); see [`Cell`].
    fn store(&self, set: &Self::Set);

    /// Reads every field with `Acquire`. The fields may be of several versions, if a setter rewrites them meanwhile: nobody
    /// believes those, but reading them must not fail.
    fn load(set: &Self::Set) -> Self;
}

/// A word that is only ever exchanged, together with the quota under which it was written.
///
/// The word names a version, and each version has a set of its own in a ring. A set is written before a word names it, by
/// one setter at a time, who holds the lock. Whoever decides loads the word, reads the set of its version and exchanges the
/// word. Nobody waits for a setter: until its exchange, the old version counts.
///
/// # Why a decision never mixes two quotas
///
/// A set is rewritten only after the word has left its version, for the lap after.
/// - A grant: if the exchange succeeds, the word was never replaced between load and exchange, so its set was not rewritten
///   between them either, and what was read is that version's quota.
/// - A refusal or a look writes nothing, so it loads the word once more ([`still`](Self::still)). If a rewritten field was
///   read, the word that was replaced before the rewriting is seen replaced.
///
/// What remains possible: a thread that sleeps between its load and its exchange through exactly 8 changes of the quota (or
/// a multiple), and finds the very same field in the word, charges one request by the quota that it read before.
///
/// # Ordering
///
/// - The exchange is `AcqRel` and loads of the word are `Acquire`: whoever sees a version sees its set as it was written
///   before, and a setter that saw a grant rewrites no set that this grant still reads.
/// - Fields of a set are stored with `Release` and loaded with `Acquire`: who reads a rewritten field also sees the word
///   replaced, when it looks again.
pub(crate) struct Cell<R: Record> {
    hot: CachePadded<Hot>,
    sets: [R::Set; VERSIONS],
}

/// What is written: by itself on its cache lines, so that grants don't take the sets or a neighbour along.
struct Hot {
    word: AtomicU64,
    /// The version that the word names, as a rule. Of no consequence: it only lets the processor fetch the set without waiting
    /// for the word. So it is no state that a model checker must see.
    guess: std::sync::atomic::AtomicUsize,
    setter: Mutex<Current>,
}

/// What setters leave for the next one.
#[derive(Clone, Copy, Debug)]
struct Current {
    quota: Quota,
    since: Nanos,
    max_pause: Duration,
}

/// The version that stands: what a setter makes the next one from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version<R> {
    pub(crate) word: Word,
    pub(crate) record: R,
    /// The instant from which it counts.
    pub(crate) since: Nanos,
    /// The longest pause that may be set.
    pub(crate) max_pause: Duration,
}

/// The version that a setter makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next<R> {
    /// The quota, if it is another one.
    pub(crate) quota: Option<Quota>,
    pub(crate) record: R,
    /// The word, whose version is set by [`Cell::replace`].
    pub(crate) word: Word,
    pub(crate) since: Nanos,
}

impl<R: Record> Cell<R> {
    /// A cell of `quota`, kept as `record`, whose word holds `field`.
    pub(crate) fn new(quota: Quota, record: &R, field: u64, since: Nanos, max_pause: Duration) -> Self {
        let sets: [R::Set; VERSIONS] = std::array::from_fn(|_| R::Set::default());
        record.store(&sets[0]);
        let word = AtomicU64::new(Word::default().with_field(field).bits());
        Self {
            hot: CachePadded::new(Hot {
                word,
                guess: 0.into(),
                setter: Mutex::new(Current { quota, since, max_pause }),
            }),
            sets,
        }
    }

    /// The same state in a cell of its own: of a limiter that was never paused. `see` sees it while no version follows, and no word
    /// that is exchanged under the lock.
    pub(crate) fn copied(&self, see: impl FnOnce(Word, &R)) -> Self {
        let current = self.hot.setter.lock();
        let (word, record) = self.load();
        see(word, &record);
        Self::new(current.quota, &record, word.field(), current.since, current.max_pause)
    }

    /// The word and its quota. The quota is the word's own if [`exchange`](Self::exchange) succeeds or
    /// [`still`](Self::still) says yes afterwards.
    #[inline]
    pub(crate) fn load(&self) -> (Word, R) {
        // Relaxed: a guess.
        let guess = self.hot.guess.load(Ordering::Relaxed);
        // Acquire: see the type.
        let word = Word::from_bits(self.hot.word.load(Ordering::Acquire));
        let record = if guess == word.version() { R::load(&self.sets[guess % VERSIONS]) } else { self.record(word) };
        (word, record)
    }

    /// The quota of a word that was just seen.
    #[cold]
    pub(crate) fn record(&self, word: Word) -> R {
        R::load(&self.sets[word.version()])
    }

    /// Whether `word` is still the word, so that what was read of its quota since is true.
    #[inline]
    pub(crate) fn still(&self, word: Word) -> bool {
        // Acquire: a field read before this load stays before it.
        self.hot.word.load(Ordering::Acquire) == word.bits()
    }

    /// Replaces `seen` by `next`, or gives the word that stands there instead.
    #[inline]
    pub(crate) fn exchange(&self, seen: Word, next: Word) -> Result<(), Word> {
        // AcqRel, Acquire: see the type.
        match self.hot.word.compare_exchange(seen.bits(), next.bits(), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(()),
            Err(actual) => Err(Word::from_bits(actual)),
        }
    }

    /// Starts a new version: `next` makes it from the one that stands, again if the word changes meanwhile. If `next` gives an
    /// error, nothing changes.
    pub(crate) fn replace<E>(&self, mut next: impl FnMut(Version<R>) -> Result<Next<R>, E>) -> Result<(), E> {
        // One setter at a time: while the lock is held the version stays, and only its field and flags may change.
        let mut current = self.hot.setter.lock();
        let (mut word, record) = self.load();
        loop {
            let next = next(Version { word, record, since: current.since, max_pause: current.max_pause })?;
            next.record.store(&self.sets[word.next_version()]);
            match self.exchange(word, next.word.with_next_version()) {
                Ok(()) => {
                    // Relaxed: a guess.
                    self.hot.guess.store(word.next_version(), Ordering::Relaxed);
                    current.quota = next.quota.unwrap_or(current.quota);
                    current.since = next.since;
                    return Ok(());
                }
                Err(actual) => word = actual,
            }
        }
    }

    /// Replaces the word under the lock of the setters, for a law that keeps more than the word and writes that first. If all its
    /// exchanges are made here or by [`replace`](Self::replace), `next` is called once. If it gives an error, nothing changes.
    pub(crate) fn exchange_locked<E>(&self, mut next: impl FnMut(Word) -> Result<Word, E>) -> Result<(), E> {
        let _current = self.hot.setter.lock();
        // Acquire: see the type.
        let mut word = Word::from_bits(self.hot.word.load(Ordering::Acquire));
        loop {
            match self.exchange(word, next(word)?) {
                Ok(()) => return Ok(()),
                Err(actual) => word = actual,
            }
        }
    }

    /// The quota that was set last.
    pub(crate) fn quota(&self) -> Quota {
        self.hot.setter.lock().quota
    }
}

impl<R: Record + std::fmt::Debug> std::fmt::Debug for Cell<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (word, record) = self.load();
        f.debug_struct("Cell").field("word", &word).field("record", &record).finish_non_exhaustive()
    }
}
