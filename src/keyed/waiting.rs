//! Waiting per key: a key on which somebody waits *is* a queue for that time.
//!
//! Its state moves into a [`Queue`] when the first one has to wait, and back when nobody uses the queue any more: those who wait, and
//! calls on the key that are under way. So calls that don't wait can't overtake, and a key on which nobody waits costs nothing.
//!
//! # No state is lost, and none is there twice
//!
//! A store keeps the queues under locks of its own, those under which it lets newcomers in. Under such a lock
//! - the state is moved into the queue, by an exchange that fails if it has changed since it was read;
//! - users are counted: whoever finds the queue becomes one of them in the same step ([`Visit`]);
//! - the last one who goes moves the state back. If a newcomer comes first, he keeps the queue; if he comes second, he finds the
//!   state where it was before.
//!
//! # Locks
//!
//! A queue calls wakers, which may call anything, so nobody calls a queue while he holds a lock of a store. A change of the quota
//! therefore tells the queues one by one, each as a visitor, and a queue asks the store for the quota under its own lock: whichever of
//! two changes comes last tells the later quota.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use crate::algorithm::LeakyQueueLaw;
use crate::quota::Quota;
use crate::refused::Refused;
use crate::shaper::pace::{Law, Waitable};
use crate::shaper::queue::Queue;
use crate::snapshot::Snapshot;
use crate::time::Nanos;

/// A law, and in what its keys wait.
pub(crate) trait Queued: Sized {
    type Queue: KeyQueue<Law = Self>;
}

/// What every call on a key may ask of its queue.
pub(crate) trait KeyQueue {
    type Law;

    fn peek(&self, n: u64, now: Nanos) -> Result<(), Refused>;
    fn snapshot(&self, now: Nanos) -> Snapshot;
    /// Changes the quota, to one that is told under the queue's lock.
    fn follow(&self, quota: impl FnOnce() -> Option<Quota>, now: Nanos);
    fn quota(&self) -> Quota;
    fn law(&self) -> &Self::Law;
    fn into_law(self) -> Self::Law;
    /// See [`Queue::latest`].
    fn latest(&self) -> Nanos;
}

impl<A: Waitable> Queued for A {
    type Queue = Queue<A>;
}

impl<A: Law> KeyQueue for Queue<A> {
    type Law = A;

    fn peek(&self, n: u64, now: Nanos) -> Result<(), Refused> {
        self.peek(n, now)
    }

    fn snapshot(&self, now: Nanos) -> Snapshot {
        self.snapshot(now)
    }

    fn follow(&self, quota: impl FnOnce() -> Option<Quota>, now: Nanos) {
        // The same again would change nothing but, perhaps, the unit.
        self.follow(|| quota().filter(|quota| *quota != self.quota()), now);
    }

    fn quota(&self) -> Quota {
        self.quota()
    }

    fn law(&self) -> &A {
        self.law()
    }

    fn into_law(self) -> A {
        self.into_law()
    }

    fn latest(&self) -> Nanos {
        self.latest()
    }
}

/// The queue of a law under which nobody waits: there is none.
#[derive(Debug)]
pub(crate) enum NoQueue {}

impl Queued for LeakyQueueLaw {
    type Queue = NoQueue;
}

impl KeyQueue for NoQueue {
    type Law = LeakyQueueLaw;

    fn peek(&self, _: u64, _: Nanos) -> Result<(), Refused> {
        match *self {}
    }

    fn snapshot(&self, _: Nanos) -> Snapshot {
        match *self {}
    }

    fn follow(&self, _: impl FnOnce() -> Option<Quota>, _: Nanos) {
        match *self {}
    }

    fn quota(&self) -> Quota {
        match *self {}
    }

    fn law(&self) -> &LeakyQueueLaw {
        match *self {}
    }

    fn into_law(self) -> LeakyQueueLaw {
        match self {}
    }

    fn latest(&self) -> Nanos {
        match *self {}
    }
}

/// Whose state a queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Whose {
    /// That of the key with this fingerprint.
    Key(u64),
    /// That of all keys without a place.
    Shared,
}

/// A store whose keys may have queues.
pub(crate) trait Home: Sized {
    type Queue;

    /// Lets the caller use a queue, if there is one, with the quota that he names for the key.
    fn join(&self, whose: Whose, plan: Option<Quota>, now: Nanos) -> Option<Visit<'_, Self>>;

    /// Lets a user of a queue go; the last one takes the state back.
    fn leave(&self, whose: Whose);

    /// Asks where the state is: the store, which says if it is in a queue, or that queue.
    #[inline]
    fn ask<R>(
        &self,
        plan: Option<Quota>,
        now: Nanos,
        store: impl Fn() -> Result<R, Whose>,
        queue: impl Fn(&Self::Queue) -> R,
    ) -> R {
        loop {
            match store() {
                Ok(answer) => return answer,
                Err(whose) => {
                    // If the queue is there no more, the store has the state back.
                    if let Some(visit) = self.join(whose, plan, now) {
                        return queue(&visit);
                    }
                }
            }
        }
    }
}

/// The queues under one lock of a store, and how many use each.
#[derive(Debug)]
pub(super) struct Queues<Q>(BTreeMap<Whose, Used<Q>>);

#[derive(Debug)]
struct Used<Q> {
    queue: Arc<Q>,
    users: usize,
}

impl<Q> Default for Queues<Q> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<Q> Queues<Q> {
    /// Lets one more use a queue, if there is one. The visit must not end under the lock of the queues.
    pub(super) fn join<'a, H: Home<Queue = Q>>(&mut self, home: &'a H, whose: Whose) -> Option<Visit<'a, H>> {
        let used = self.0.get_mut(&whose)?;
        // Fewer than there are futures and threads.
        used.users = used.users.saturating_add(1);
        Some(Visit { queue: Arc::clone(&used.queue), _seat: Seat { home, whose } })
    }

    /// Begins a queue where there is none, for its first user. The visit must not end under the lock of the queues.
    pub(super) fn open<'a, H: Home<Queue = Q>>(&mut self, home: &'a H, whose: Whose, queue: Q) -> Visit<'a, H> {
        let queue = Arc::new(queue);
        self.0.insert(whose, Used { queue: Arc::clone(&queue), users: 1 });
        Visit { queue, _seat: Seat { home, whose } }
    }

    /// Lets all be used by one more.
    pub(super) fn join_all<'a, H: Home<Queue = Q>>(&mut self, home: &'a H) -> Vec<(Whose, Visit<'a, H>)> {
        let all: Vec<_> = self.0.keys().copied().collect();
        all.into_iter().filter_map(|whose| Some((whose, self.join(home, whose)?))).collect()
    }

    /// One user goes.
    pub(super) fn leave(&mut self, whose: Whose) {
        if let Some(used) = self.0.get_mut(&whose) {
            used.users = used.users.saturating_sub(1);
        }
    }

    /// A queue that nobody uses.
    pub(super) fn unused(&self, whose: Whose) -> Option<&Q> {
        self.0.get(&whose).filter(|used| used.users == 0).map(|used| &*used.queue)
    }

    /// Ends a queue that nobody uses.
    pub(super) fn close(&mut self, whose: Whose) -> Option<Q> {
        let Used { queue, .. } = self.0.remove(&whose)?;
        match Arc::try_unwrap(queue) {
            Ok(queue) => Some(queue),
            // Somebody does: see `Visit`.
            Err(queue) => {
                self.0.insert(whose, Used { queue, users: 0 });
                None
            }
        }
    }

    /// A queue, to be looked at.
    pub(super) fn get(&self, whose: Whose) -> Option<&Q> {
        self.0.get(&whose).map(|used| &*used.queue)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Q> {
        self.0.values().map(|used| &*used.queue)
    }
}

/// The use of a queue: as long as there is one, the state stays in it.
pub(crate) struct Visit<'a, H: Home> {
    // Dropped before the seat is given up, so that a queue without users is its store's alone.
    queue: Arc<H::Queue>,
    _seat: Seat<'a, H>,
}

impl<H: Home> Deref for Visit<'_, H> {
    type Target = H::Queue;

    fn deref(&self) -> &H::Queue {
        &self.queue
    }
}

/// One user of a queue, until it is dropped.
struct Seat<'a, H: Home> {
    home: &'a H,
    whose: Whose,
}

impl<H: Home> Drop for Seat<'_, H> {
    fn drop(&mut self) {
        self.home.leave(self.whose);
    }
}
