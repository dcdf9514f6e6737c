//! The queues of keys on which somebody waits: how a state moves from its slot into one, and back.

use super::places::Spread;
use super::slot::Found;
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

/// What came of the wish to use a queue.
enum Visited<'a, A: FieldLaw + Queued> {
    Yes(Visit<'a, Table<A>>),
    /// Somebody else changed the word or the quota: look again.
    Changed,
    /// There is no state to move into a queue.
    Nowhere,
}
