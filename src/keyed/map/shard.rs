//! One shard of a map: the keys whose fingerprints fall into it. It is under a lock, and knows of no other shard.

use std::collections::BTreeSet;
use std::time::Duration;

use slab::Slab;

use super::fingerprints::{self, Fingerprints};
use crate::algorithm::Algorithm;
use crate::keyed::law::Asked;
use crate::keyed::waiting::{Home, KeyQueue, Queued, Queues, Visit, Whose};
use crate::quota::Quota;
use crate::time::Nanos;

/// How many slots of a shard a change of the quota goes through under one lock.
const STRETCH: usize = 256;

/// The keys of a shard, each with a law of its own.
pub(super) struct Shard<A: Queued> {
    slots: Fingerprints,
    entries: Slab<Entry<A>>,
    /// Each entry by the instant that it was listed with. No entry rests earlier; it may rest later, since grants list nothing anew.
    by_rest: BTreeSet<(Nanos, usize)>,
    /// The latest instant from which on an entry that was removed is at rest.
    horizon: Nanos,
    /// The quota of keys for which the caller named none.
    quota: Quota,
    /// How many entries were removed and not told yet.
    removed: usize,
    /// The laws of the keys on which somebody waits.
    queues: Queues<A::Queue>,
}

/// The law of a key is not here, but in a queue.
pub(super) struct InQueue;

/// A key that is in debt, or was when it was last looked at.
#[derive(Debug)]
struct Entry<A> {
    fingerprint: u64,
    /// The quota that the caller named for the key; that of the map if `None`.
    plan: Option<Quota>,
    listed: Nanos,
    /// By itself on the heap, so that a shard that grows moves little, and one that empties keeps little. `None` while it is in a
    /// queue.
    law: Option<Box<A>>,
}

impl<A: Algorithm> Entry<A> {
    fn law(&self) -> Result<&A, InQueue> {
        self.law.as_deref().ok_or(InQueue)
    }

    /// See [`rest`]. As long as it is in a queue, it does not rest.
    fn rest(&self) -> Nanos {
        self.law().map_or(Nanos::MAX, rest)
    }

    fn is_at_rest(&self, now: Nanos) -> bool {
        is_over(self.rest(), now)
    }
}

/// The first instant from which on a law is at rest. [`Nanos::MAX`] stands for never.
pub(super) fn rest<A: Algorithm>(law: &A) -> Nanos {
    #[cfg(test)]
    super::tests::count_look();
    law.rests_from().unwrap_or(Nanos::MAX)
}

/// Whether what rests from `rest` on is at rest at `now`.
pub(super) fn is_over(rest: Nanos, now: Nanos) -> bool {
    rest <= now && rest < Nanos::MAX
}

impl<A: Algorithm + Queued> Shard<A> {
    pub(super) fn new(quota: Quota) -> Self {
        Self {
            slots: Fingerprints::default(),
            entries: Slab::new(),
            by_rest: BTreeSet::new(),
            horizon: Nanos::ZERO,
            quota,
            removed: 0,
            queues: Queues::default(),
        }
    }

    fn entry(&self, key: &Asked) -> Option<&Entry<A>> {
        self.entries.get(*self.slots.get(&key.fingerprint)?)
    }

    /// The law of a key, if it is known under the plan that it is asked with.
    #[inline]
    pub(super) fn get(&self, key: &Asked) -> Option<Result<&A, InQueue>> {
        self.entry(key).filter(|entry| entry.plan == key.quota).map(Entry::law)
    }

    /// The law of a key, wherever it is. It must not be changed while it is in a queue.
    pub(super) fn find(&self, key: &Asked, whose: Whose) -> Option<&A> {
        self.entry(key).and_then(|entry| entry.law().ok()).or_else(|| Some(self.queues.get(whose)?.law()))
    }

    /// Whether a key has a law, under whatever plan.
    pub(super) fn knows(&self, key: &Asked) -> bool {
        self.slots.contains_key(&key.fingerprint)
    }

    /// The law of a key, brought under the plan that it is asked with. `None` if it has none: one that is at rest when its plan
    /// changes starts anew.
    pub(super) fn bring(&mut self, key: &Asked, now: Nanos) -> Option<Result<&A, InQueue>> {
        let slot = *self.slots.get(&key.fingerprint)?;
        let quota = self.quota_of(key);
        let entry = self.entries.get_mut(slot)?;
        // The plan of a queue is changed by whoever joins it.
        if entry.plan != key.quota && entry.law.is_some() {
            entry.plan = key.quota;
            self.set_quota_of(slot, quota, now)?;
        }
        self.entries.get(slot).map(Entry::law)
    }

    /// The quota of a key that has no law.
    pub(super) fn quota_of(&self, key: &Asked) -> Quota {
        key.quota.unwrap_or(self.quota)
    }

    /// The quota of the map.
    pub(super) fn quota(&self) -> Quota {
        self.quota
    }

    /// The time at which a key without a law is judged: it may be one that was removed, and its caller's clock behind.
    pub(super) fn judged(&self, now: Nanos) -> Nanos {
        now.max(self.horizon)
    }

    /// A new law for a key.
    pub(super) fn start(&self, key: &Asked) -> A {
        A::start(self.quota_of(key), None, Duration::MAX, || Nanos::ZERO)
    }

    /// Keeps the law of a key that has none here.
    pub(super) fn insert(&mut self, key: &Asked, law: A) {
        let listed = rest(&law);
        let vacant = self.entries.vacant_entry();
        let slot = vacant.key();
        self.slots.insert(key.fingerprint, slot);
        self.by_rest.insert((listed, slot));
        vacant.insert(Entry { fingerprint: key.fingerprint, plan: key.quota, listed, law: Some(Box::new(law)) });
    }

    fn remove(&mut self, slot: usize) {
        if let Some(entry) = self.entries.try_remove(slot) {
            self.horizon = self.horizon.max(entry.law.as_deref().map_or(Nanos::ZERO, A::horizon));
            self.slots.remove(&entry.fingerprint);
            self.by_rest.remove(&(entry.listed, slot));
            self.removed = self.removed.saturating_add(1);
        }
    }

    /// How many entries were removed since this was last asked.
    pub(super) fn take_removed(&mut self) -> usize {
        std::mem::take(&mut self.removed)
    }

    /// The instant before which none of the entries rests, as far as they are listed; [`Nanos::MAX`] if there is none.
    pub(super) fn first_listed(&self) -> Nanos {
        self.by_rest.first().map_or(Nanos::MAX, |(listed, _)| *listed)
    }

    /// Whether the entry that is listed first rests no later than that, so that it is the very first.
    pub(super) fn is_first_true(&self) -> bool {
        let first = self.by_rest.first().and_then(|(listed, slot)| Some((*listed, self.entries.get(*slot)?)));
        first.is_none_or(|(listed, entry)| entry.rest() <= listed)
    }

    /// Lists an entry with the instant at which it rests.
    fn list(&mut self, slot: usize) {
        if let Some(entry) = self.entries.get_mut(slot) {
            let listed = entry.rest();
            if listed != entry.listed {
                self.by_rest.remove(&(entry.listed, slot));
                self.by_rest.insert((listed, slot));
                entry.listed = listed;
            }
        }
    }

    /// Lists the entry of a key whose debt became less.
    pub(super) fn list_key(&mut self, key: &Asked) {
        if let Some(slot) = self.slots.get(&key.fingerprint) {
            self.list(*slot);
        }
    }

    /// Whether the entry of a key rests earlier than it is listed.
    pub(super) fn rests_before_listed(&self, key: &Asked) -> bool {
        self.entry(key).is_some_and(|entry| entry.rest() < entry.listed)
    }

    /// Looks at the `most` entries that are listed first, as far as they may be at rest at `now`: removes those that are, and lists
    /// the others anew.
    pub(super) fn evict(&mut self, most: usize, now: Nanos) {
        for _ in 0..most {
            let Some((_, slot)) = self.by_rest.first().filter(|(listed, _)| is_over(*listed, now)).copied() else {
                return;
            };
            if self.entries.get(slot).is_some_and(|entry| entry.is_at_rest(now)) {
                self.remove(slot);
            } else {
                self.list(slot);
            }
        }
    }

    /// Lists the entry that is listed first anew.
    pub(super) fn list_first(&mut self) {
        if let Some((_, slot)) = self.by_rest.first().copied() {
            self.list(slot);
        }
    }

    /// Sets the quota of the map, for the keys that have it: those of a stretch of slots from `first` on. Tells where to go on.
    pub(super) fn set_quota(&mut self, quota: Quota, now: Nanos, first: usize) -> Option<usize> {
        self.quota = quota;
        let end = first.saturating_add(STRETCH);
        for slot in first..end.min(self.entries.capacity()) {
            if self.entries.get(slot).is_some_and(|entry| entry.plan.is_none()) {
                self.set_quota_of(slot, quota, now);
            }
        }
        (end < self.entries.capacity()).then_some(end)
    }

    /// Changes the quota of an entry, as one of a limiter that has no keys, unless it is in a queue. `None` if it is at rest: then it
    /// is removed.
    fn set_quota_of(&mut self, slot: usize, quota: Quota, now: Nanos) -> Option<()> {
        let entry = self.entries.get(slot)?;
        let Some(law) = entry.law.as_ref().filter(|law| law.quota() != quota) else { return Some(()) };
        if entry.is_at_rest(now) {
            self.remove(slot);
            return None;
        }
        law.set_quota(quota, now);
        self.list(slot);
        Some(())
    }

    /// Lets the caller use the queue of a key, if it has one. He tells it the quota that it ought to have then.
    pub(super) fn join<'a, H: Home<Queue = A::Queue>>(
        &mut self,
        home: &'a H,
        (key, whose): (&Asked, Whose),
    ) -> Option<Visit<'a, H>> {
        let visit = self.queues.join(home, whose)?;
        if let Some(entry) = self.slots.get(&key.fingerprint).and_then(|slot| self.entries.get_mut(*slot)) {
            entry.plan = key.quota;
        }
        Some(visit)
    }

    /// Lets the caller use all queues.
    pub(super) fn join_all<'a, H: Home<Queue = A::Queue>>(&mut self, home: &'a H) -> Vec<(Whose, Visit<'a, H>)> {
        self.queues.join_all(home)
    }

    /// The same, and if it has none, its law moves into one. `None` if it has no law.
    pub(super) fn visit<'a, H: Home<Queue = A::Queue>>(
        &mut self,
        home: &'a H,
        (key, whose): (&Asked, Whose),
        queue: impl FnOnce(A) -> A::Queue,
    ) -> Option<Visit<'a, H>> {
        let entry = self.entries.get_mut(*self.slots.get(&key.fingerprint)?)?;
        match entry.law.take() {
            Some(law) => {
                entry.plan = key.quota;
                Some(self.queues.open(home, whose, queue(*law)))
            }
            None => self.join(home, (key, whose)),
        }
    }

    /// Lets a user of a queue go. The last one moves the law back.
    pub(super) fn leave(&mut self, key: &Asked, whose: Whose) {
        self.queues.leave(whose);
        if self.queues.unused(whose).is_none() {
            return;
        }
        let Some(slot) = self.slots.get(&key.fingerprint).copied() else { return };
        if let Some(entry) = self.entries.get_mut(slot) {
            entry.law = self.queues.close(whose).map(|queue| Box::new(queue.into_law()));
        }
        self.list(slot);
    }

    /// The quota that a key with a law ought to have.
    pub(super) fn quota_to_have(&self, key: &Asked) -> Option<Quota> {
        self.entry(key).map(|entry| entry.plan.unwrap_or(self.quota))
    }

    /// How many keys are not at rest at `now`.
    pub(super) fn busy(&self, now: Nanos) -> usize {
        self.entries.iter().filter(|(_, entry)| !entry.is_at_rest(now)).count()
    }

    /// The bytes that are allocated. A node of the tree takes 192 bytes and holds five entries or more, and there is one above for
    /// six or more of them.
    pub(super) fn allocated(&self) -> usize {
        let boxed = |law: &A| size_of::<A>().saturating_add(law.allocated());
        let laws = self.entries.iter().filter_map(|(_, entry)| entry.law().ok()).map(boxed).sum::<usize>();
        let queued = |queue: &A::Queue| size_of_val(queue).saturating_add(queue.law().allocated());
        let queues = self.queues.iter().map(queued).sum::<usize>();
        let nodes = self.by_rest.len().div_ceil(5).saturating_mul(192 + 288 / 6);
        let slots = self.entries.capacity().saturating_mul(size_of::<Entry<A>>().saturating_add(size_of::<usize>()));
        laws.saturating_add(queues)
            .saturating_add(nodes)
            .saturating_add(slots)
            .saturating_add(fingerprints::allocated(&self.slots))
    }
}
