//! The queues of keys on which somebody waits: how a state moves from its slot into one, and back.

use super::places::Spread;
use super::slot::Found;
use super::vacant::Place;
use super::{Stripe, Table};
use crate::algorithm::field::FieldLaw;
use crate::algorithm::gcra::FIELD_END;
use crate::keyed::law::{Asked, Wait};
use crate::keyed::waiting::{Home, KeyQueue, Queued, Queues, Visit, Whose};
use crate::quota::Quota;
use crate::shaper::pace::{Settings, Waitable};
use crate::shaper::queue::Queue;
use crate::time::Nanos;

impl<A: FieldLaw + Queued> Table<A> {
    /// The lock of a queue.
    pub(super) fn queues(&self, whose: Whose) -> &Stripe<A> {
        match whose {
            Whose::Key(fingerprint) => &self.stripes[self.places.stripe(Spread::of(fingerprint))],
            Whose::Shared => &self.stripes[self.stripes.len().saturating_sub(1)],
        }
    }

    /// Moves the state of a queue that nobody uses back into its slot. If it does not fit the version that is current, says which that
    /// is, and the instant to which the origin must move, unless that `has_moved`: then a clock that was set back since has told it,
    /// and it is cut, as that of a key in a slot is.
    fn retire(&self, whose: Whose, queues: &mut Queues<A::Queue>, has_moved: bool) -> Result<(), (usize, Nanos)> {
        let Some(queue) = queues.unused(whose) else { return Ok(()) };
        let found = match whose {
            Whose::Key(fingerprint) => self.find(fingerprint),
            Whose::Shared => self.shared.as_ref().map_or(Found::Nowhere, |shared| shared.found()),
        };
        if let Found::Waited(slot, word) = found {
            let (version, field) = match self.field_of(queue) {
                Err((version, _)) if !has_moved => return Err((version, queue.latest())),
                Ok(field) | Err(field) => field,
            };
            // Nobody else writes the word of a waited key, which needs this lock.
            let _ = slot.exchange(word, word.with_key(version, field));
        }
        queues.close(whose);
        Ok(())
    }

    /// The version that is current, and the field of a state that is in a queue under it; an error if that is cut, since it does not
    /// fit. Under the lock of the queue, so that no set that is read is rewritten meanwhile.
    pub(super) fn field_of(&self, queue: &A::Queue) -> Result<(usize, u64), (usize, u64)> {
        let version = self.versions.current();
        let (next, (record, field)) = (self.versions.record(version), queue.law().state());
        // Under the same version nothing has changed, not even what a key at rest tells to clocks that are behind.
        if record == next {
            return Ok((version, field));
        }
        match A::carried(&record, field, &next) {
            FIELD_END => Err((version, FIELD_END)),
            carried => Ok((version, carried)),
        }
    }

    /// Gives a newcomer a place who owes what those do who share one.
    fn settle_debtor(&self, fingerprint: u64, now: Nanos) -> Settled {
        let key = Spread::of(fingerprint);
        let _stripe = self.stripes[self.places.stripe(key)].lock();
        if !matches!(self.find(fingerprint), Found::Nowhere) {
            return Settled::Yes;
        }
        let at = self.no_earlier_than_horizon(now);
        let Ok((version, field)) = self.beginning(key, at) else { return Settled::NoRoom };
        if A::is_at_rest(&self.versions.record(version), field, at) {
            return if self.free(key, at).is_some() { Settled::OwesNothing } else { Settled::NoRoom };
        }
        match self.take_over(key, at) {
            Place::Marked(slot, mark) => slot.settle(fingerprint, mark.with_key(version, field)),
            Place::Nowhere(_) => return Settled::NoRoom,
        }
        Settled::Yes
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

impl<A: FieldLaw + Waitable> Wait for Table<A> {
    type Law = A;

    fn visit(&self, key: Asked, now: Nanos, places: usize) -> Option<Visit<'_, Self>> {
        let own = Whose::Key(key.fingerprint);
        loop {
            match self.visit_found(own, places, || self.find(key.fingerprint)) {
                Visited::Yes(visit) => return Some(visit),
                Visited::Changed => {}
                Visited::Nowhere => {
                    self.shared.as_ref()?;
                    match self.settle_debtor(key.fingerprint, now) {
                        Settled::Yes => {}
                        Settled::OwesNothing => return None,
                        Settled::NoRoom => break,
                    }
                }
            }
        }
        let shared = self.shared.as_ref()?;
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
            Found::Nowhere if self.shared.is_some() && !self.has_room(key.fingerprint, now) => Whose::Shared,
            Found::Nowhere => return 0,
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
        if let Err((version, at)) = self.retire(whose, &mut queues, false) {
            // With no lock held, since the walk takes them all.
            drop(queues);
            self.versions.move_origin(version, at, |current| self.walk(current));
            let _fits = self.retire(whose, &mut self.queues(whose).lock(), true);
        }
    }
}

/// What came of the wish for a place with a debt.
enum Settled {
    Yes,
    /// There is no debt.
    OwesNothing,
    NoRoom,
}

/// What came of the wish to use a queue.
enum Visited<'a, A: FieldLaw + Queued> {
    Yes(Visit<'a, Table<A>>),
    /// Somebody else changed the word or the quota: look again.
    Changed,
    /// There is no state to move into a queue.
    Nowhere,
}
