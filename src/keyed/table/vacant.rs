//! Which slot a newcomer takes, and how.

use super::Table;
use super::places::{Line, Spread};
use super::slot::Slot;
use super::state::State;
use crate::algorithm::field::FieldLaw;
use crate::keyed::waiting::Queued;
use crate::sync::Ordering;
use crate::time::Nanos;

/// Where a newcomer may go.
pub(super) enum Place<'a> {
    /// The slot is marked, and the caller's to write.
    Marked(&'a Slot, State),
    /// All are busy; the first of them is at rest then, if it ever is.
    Nowhere(Option<Nanos>),
}

impl<A: FieldLaw + Queued> Table<A> {
    /// Marks a slot for a newcomer who holds the lock of his stripe.
    pub(super) fn take_over(&self, key: Spread, now: Nanos) -> Place<'_> {
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
    pub(super) fn free(&self, key: Spread, now: Nanos) -> Option<Vacant<'_>> {
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
    pub(super) fn earliest(&self, key: Spread) -> Option<Nanos> {
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

    /// Whether a newcomer would find a slot.
    pub(super) fn has_room(&self, fingerprint: u64, now: Nanos) -> bool {
        self.free(Spread::of(fingerprint), self.no_earlier_than_horizon(now)).is_some()
    }
}

/// A slot that may be taken over.
#[derive(Clone, Copy)]
pub(super) struct Vacant<'a> {
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
pub(super) const ENOUGH: usize = if cfg!(any(tollgate_loom, tollgate_shuttle)) { 2 } else { 3 };

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
