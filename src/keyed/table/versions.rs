//! The quotas of a table: the one in force, and those under which older words were written.

use super::state::{State, VERSIONS};
use crate::algorithm::field::FieldLaw;
use crate::cell::Record;
use crate::quota::Quota;
use crate::sync::{AtomicU64, Mutex, Ordering};
use crate::time::Nanos;

/// How many changes may follow each other before every word has to be brought forward: then no word names a version whose number
/// is about to be used again.
const MOST_CHANGES: usize = VERSIONS - 1;

/// A set for each number, and one that is never used.
const SETS: usize = VERSIONS + 1;

/// The versions of one quota, as a law counts it.
///
/// A word names the version under which it was written. `set_quota` writes the next set and makes it the current one, whatever the
/// number of keys: a word is brought forward, version by version, when it is next met.
///
/// # Why a decision never mixes two quotas
///
/// Whoever decides loads the word first and the current version after it. If the exchange succeeds, nobody has changed the word
/// since, so the decision counts as made when the current version was read. (The other way round, the word could be of a later
/// version than the one that was read before.) A set is rewritten only after the table was walked, which changes every word: to
/// the current version, and to the other generation, since the next version may have the number of the one that the word named
/// before. What remains possible is said at [`State`].
///
/// # Ordering
///
/// As in [`Cell`](crate::cell::Cell): fields of a set are stored with `Release` and loaded with `Acquire`, a set is written before
/// `current` names it, with `Release`, which pairs with the `Acquire` of those who read it.
pub(super) struct Versions<A: FieldLaw> {
    current: AtomicU64,
    sets: [<A::Record as Record>::Set; SETS],
    setter: Mutex<Setter>,
}

/// What setters leave for the next one.
#[derive(Debug)]
pub(super) struct Setter {
    quota: Quota,
    /// The instant from which it counts: that of no version is before that of the one before.
    since: Nanos,
    /// How many changes there were since every word was brought forward.
    changes: usize,
}

impl<A: FieldLaw> Versions<A> {
    pub(super) fn new(quota: Quota) -> Self {
        let sets: [_; SETS] = std::array::from_fn(|_| Default::default());
        A::version(&quota, Nanos::ZERO, None).store(&sets[1]);
        Self { current: AtomicU64::new(1), sets, setter: Mutex::new(Setter { quota, since: Nanos::ZERO, changes: 0 }) }
    }

    /// The current version. To be loaded after the word that is to be brought forward to it.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a number up to 15")]
    pub(super) fn current(&self) -> usize {
        // Acquire: see the type.
        self.current.load(Ordering::Acquire) as usize
    }

    /// The quota of a version that was seen current. It is that version's own if a word of it, or one before, is confirmed after.
    #[inline]
    pub(super) fn record(&self, version: usize) -> A::Record {
        A::Record::load(&self.sets[version % SETS])
    }

    /// The field of `word`, which is a key's, under the version `current`.
    #[inline]
    pub(super) fn field(&self, word: State, current: usize) -> u64 {
        if word.version() == current { word.field() } else { self.brought_forward(word, current) }
    }

    #[cold]
    fn brought_forward(&self, word: State, current: usize) -> u64 {
        let (mut version, mut field) = (word.version(), word.field());
        let mut record = self.record(version);
        while version != current {
            version = next(version);
            let following = self.record(version);
            field = A::carried(&record, field, &following);
            record = following;
        }
        field
    }

    pub(super) fn quota(&self) -> Quota {
        self.setter.lock().quota
    }

    /// The current version and its quota. Not to be asked for under a stripe lock: see `advance`.
    pub(super) fn in_force(&self) -> (usize, Quota) {
        let setter = self.setter.lock();
        (self.current(), setter.quota)
    }

    /// Starts a version of `quota` as of `now`. If the numbers are used up, `walk` brings every word forward to the version that is
    /// current until then.
    pub(super) fn set_quota(&self, quota: Quota, now: Nanos, walk: impl FnOnce(usize)) {
        let mut setter = self.setter.lock();
        setter.quota = quota;
        self.advance(&mut setter, now, walk);
    }

    /// Starts a version of the same quota whose origin is `now`, unless somebody has started one since `seen` was current.
    #[cold]
    pub(super) fn move_origin(&self, seen: usize, now: Nanos, walk: impl FnOnce(usize)) {
        let mut setter = self.setter.lock();
        if self.current() == seen {
            self.advance(&mut setter, now, walk);
        }
    }

    fn advance(&self, setter: &mut Setter, now: Nanos, walk: impl FnOnce(usize)) {
        let current = self.current();
        if setter.changes == MOST_CHANGES {
            walk(current);
            setter.changes = 0;
        }
        setter.changes = setter.changes.saturating_add(1);
        setter.since = setter.since.max(now);
        A::version(&setter.quota, setter.since, Some(&self.record(current))).store(&self.sets[next(current)]);
        // Release: see the type.
        self.current.store(next(current) as u64, Ordering::Release);
    }
}

/// The number of the version after that one.
fn next(version: usize) -> usize {
    if version < VERSIONS { version.saturating_add(1) } else { 1 }
}
