//! The store of laws that are more than one word, and of laws whose keys have quotas of their own: a law for each key, in shards.
//!
//! A shard is a map under a lock. A key that is known takes the lock for reading, and its law decides as it does without
//! keys. Whatever changes the map takes it for writing: the first sight of a key, another plan, a change of the quota.
//!
//! # Room
//!
//! A key at rest is as good as one that was never seen, so its entry can go at any time; a key in debt keeps it. Each shard lists its
//! entries by the instant from which on they are at rest. Grants list nothing anew, they only make that instant later: so an
//! entry is listed too early at worst, and is listed anew when it comes first. Each first sight looks at the few that are
//! listed first, and if the map is full, at those that are listed first of all shards. So no call goes through the map to make
//! room, and each look that finds nothing is paid for by a grant before.
//!
//! # Clocks that are behind
//!
//! A removed entry was at rest at the time of the call that removed it. To a caller whose clock is behind it would be in debt still,
//! so a shard remembers the latest instant from which on one that was removed is at rest, and judges a key that it does not know at
//! that instant at the earliest.
//!
//! # Locks
//!
//! A call holds the lock of one shard at a time, and that of the shared law besides, which comes last and under which no other is
//! taken. A change of the quota holds the lock of setters, and takes the shards one after the other. Below all of them are the
//! locks inside of laws. A queue, whose lock comes before all of these, is called with none of them held. So locks are taken in one order, and nobody waits in a circle. Nothing of the caller's runs under any: the
//! key is hashed, its quota told and the clock read before.
#![expect(private_bounds, private_interfaces, reason = "public by name only")]

mod fingerprints;
mod shard;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crossbeam_utils::CachePadded;

use super::law::{Asked, Police, Schedule, Store, Wait};
use super::waiting::{Home, KeyQueue, Queued, Visit, Whose};
use super::{KeyedError, WhenFull};
use crate::algorithm::{Algorithm, LeakyQueueLaw, sealed};
use crate::quota::Quota;
use crate::refused::Refused;
use crate::shaper::pace::{Settings, Waitable};
use crate::shaper::queue::Queue;
use crate::snapshot::Snapshot;
use crate::sync::{AtomicU64, AtomicUsize, Mutex, Ordering, RwLock, parallelism};
use crate::time::Nanos;
use shard::{InQueue, Shard, is_over, rest};

/// Shards for each thread that runs at once: so many that two seldom meet.
const SHARDS_PER_THREAD: usize = 16;

/// How many entries each first sight looks at, to remove those at rest.
const LOOKS: usize = 3;

/// Laws by key.
pub struct Map<A: Queued> {
    shards: Box<[CachePadded<Guarded<A>>]>,
    /// The shard of the one law that keys share for which there is no room; none if they are refused.
    shared: Option<CachePadded<Guarded<A>>>,
    /// How many entries were ever given a place, and how many have left it: `max_keys` fewer at most. Both wrap.
    given: CachePadded<AtomicUsize>,
    left: CachePadded<AtomicUsize>,
    max_keys: usize,
    /// Held while the quota is set: one setter at a time.
    setter: Mutex<()>,
}

/// A shard, and what is known of it without its lock.
struct Guarded<A: Queued> {
    shard: RwLock<Shard<A>>,
    /// Where the shard's list of entries by rest begins; or earlier, while one is being added. Written under the lock.
    first_listed: AtomicU64,
}

/// The key under which the shared law stands in its shard.
const SHARED: Asked = Asked { fingerprint: 0, quota: None };

impl<A: Algorithm + Queued> Guarded<A> {
    fn new(quota: Quota) -> CachePadded<Self> {
        let shard = Shard::new(quota);
        let first_listed = AtomicU64::new(shard.first_listed().get());
        CachePadded::new(Self { shard: RwLock::new(shard), first_listed })
    }

    /// Changes the shard, and counts the entries that leave it in `left`, if their places are counted.
    fn change<R>(&self, left: Option<&AtomicUsize>, change: impl FnOnce(&mut Shard<A>) -> R) -> R {
        let mut shard = self.shard.write();
        let changed = change(&mut shard);
        let removed = shard.take_removed();
        if let Some(left) = left.filter(|_| removed > 0) {
            // Relaxed: published by the store below.
            left.fetch_add(removed, Ordering::Relaxed);
        }
        // Release: pairs with the Acquire in `Map::first_to_rest`. Who finds an entry gone finds that it has left, too.
        self.first_listed.store(shard.first_listed().get(), Ordering::Release);
        changed
    }
}

impl<A: Algorithm + Queued> Map<A> {
    /// An empty map of `quota`.
    pub(super) fn new(quota: Quota, max_keys: usize, when_full: WhenFull) -> Result<Self, KeyedError> {
        Ok(Self::with_shards(parallelism().saturating_mul(SHARDS_PER_THREAD), quota, max_keys, when_full))
    }

    /// The same with so many shards: a power of two, `max_keys` at most.
    fn with_shards(shards: usize, quota: Quota, max_keys: usize, when_full: WhenFull) -> Self {
        let shards = 1 << shards.min(max_keys).max(1).ilog2();
        Self {
            shards: (0..shards).map(|_| Guarded::new(quota)).collect(),
            shared: (when_full == WhenFull::Share).then(|| Guarded::new(quota)),
            given: CachePadded::new(AtomicUsize::new(0)),
            left: CachePadded::new(AtomicUsize::new(0)),
            max_keys,
            setter: Mutex::new(()),
        }
    }

    /// The shard of a key, and the key with a fingerprint that is spread. The lowest and the highest bits of that are for the map in
    /// the shard, so the shard itself is chosen by some between.
    #[inline]
    fn place(&self, key: Asked) -> (&Guarded<A>, Asked) {
        let fingerprint = fingerprints::mixed(key.fingerprint);
        (self.shard_of(fingerprint), Asked { fingerprint, ..key })
    }

    /// The shard of a fingerprint that is spread.
    #[inline]
    fn shard_of(&self, fingerprint: u64) -> &Guarded<A> {
        let mask = self.shards.len().wrapping_sub(1);
        &self.shards[usize::try_from(fingerprint >> 32).unwrap_or(0) & mask]
    }

    /// The shard in which a queue is, and the key under which it stands there.
    fn place_of(&self, whose: Whose, plan: Option<Quota>) -> Option<(&Guarded<A>, Asked)> {
        match whose {
            Whose::Key(fingerprint) => Some((self.shard_of(fingerprint), Asked { fingerprint, quota: plan })),
            Whose::Shared => self.shared.as_deref().map(|shared| (shared, SHARED)),
        }
    }

    /// Changes a shard of keys.
    fn change<R>(&self, guarded: &Guarded<A>, change: impl FnOnce(&mut Shard<A>) -> R) -> R {
        guarded.change(Some(&self.left), change)
    }

    /// Asks the law of a key for `n`, unless it is in a queue.
    #[inline]
    fn ask_law<R>(
        &self,
        key: Asked,
        n: u64,
        now: Nanos,
        ask: impl Fn(&A, Nanos) -> Result<R, Refused>,
    ) -> Result<Result<R, Refused>, Whose> {
        let (guarded, key) = self.place(key);
        if let Some(law) = guarded.shard.read().get(&key) {
            return law.map(|law| ask(law, now)).map_err(|InQueue| Whose::Key(key.fingerprint));
        }
        self.ask_slow(guarded, &key, n, now, ask)
    }

    /// The same of a key that was not known, or not under this plan.
    #[cold]
    fn ask_slow<R>(
        &self,
        guarded: &Guarded<A>,
        key: &Asked,
        n: u64,
        now: Nanos,
        ask: impl Fn(&A, Nanos) -> Result<R, Refused>,
    ) -> Result<Result<R, Refused>, Whose> {
        let mut full = if self.is_full() { self.make_room(now).err() } else { None };
        loop {
            let answer = self.change(guarded, |shard| {
                if let Some(law) = shard.bring(key, now) {
                    return Some(law.map(|law| ask(law, now)).map_err(|InQueue| Whose::Key(key.fingerprint)));
                }
                if let Err(refused) = at_rest::<A>(&shard.quota_of(key), n) {
                    return Some(Ok(Err(refused)));
                }
                if n == 0 || shard.quota_of(key).is_unlimited() {
                    // Nothing is taken, so that there is nothing to keep.
                    return Some(Ok(ask(&shard.start(key), now)));
                }
                if !self.is_full() {
                    let at = shard.judged(now);
                    let (shared, at) = self.debt_of_shared(&shard.quota_of(key), at);
                    let law = shared.unwrap_or_else(|| shard.start(key));
                    let answer = ask(&law, at);
                    if answer.is_err() {
                        return Some(Ok(answer));
                    }
                    if self.reserve(guarded, &law) {
                        shard.insert(key, law);
                        shard.evict(LOOKS, now);
                        return Some(Ok(answer));
                    }
                }
                full.map(|no_room| self.share(no_room, now, &ask))
            });
            match answer {
                Some(answer) => return answer,
                None => full = self.make_room(now).err(),
            }
        }
    }

    /// Looks at the law of a key, unless it is in a queue. If it has none, tells the quota that it would have.
    fn look<R>(&self, key: Asked, now: Nanos, look: impl Fn(&A) -> R) -> Result<Result<R, Quota>, Whose> {
        let (guarded, key) = self.place(key);
        let look =
            |law: Result<&A, InQueue>| law.map(|law| Ok(look(law))).map_err(|InQueue| Whose::Key(key.fingerprint));
        {
            let shard = guarded.shard.read();
            if let Some(law) = shard.get(&key) {
                return look(law);
            }
            if !shard.knows(&key) {
                return Ok(Err(shard.quota_of(&key)));
            }
        }
        self.change(guarded, |shard| {
            let quota = shard.quota_of(&key);
            shard.bring(&key, now).map_or(Ok(Err(quota)), look)
        })
    }

    /// Lowers the debt of a key, unless it is in a queue. One that has no law has none.
    fn lower(&self, key: Asked, now: Nanos, lower: impl Fn(&A)) -> Result<(), Whose> {
        if self.look(key, now, lower)?.is_ok() {
            let (guarded, key) = self.place(key);
            let rests_earlier = guarded.shard.read().rests_before_listed(&key);
            if rests_earlier {
                self.change(guarded, |shard| shard.list_key(&key));
            }
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        // Relaxed: see `room`.
        self.is_full_after(self.left.load(Ordering::Relaxed))
    }

    /// Whether there is no place, if `left` was the number of those that have left theirs.
    fn is_full_after(&self, left: usize) -> bool {
        // Acquire: pairs with the Release in `reserve`.
        self.given.load(Ordering::Acquire).wrapping_sub(left) >= self.max_keys
    }

    /// Takes the place of one more entry, if there is one.
    fn reserve(&self, guarded: &Guarded<A>, law: &A) -> bool {
        // Relaxed: before the place is taken. Who finds the map full because of it finds also when this one rests.
        guarded.first_listed.fetch_min(rest(law).get(), Ordering::Relaxed);
        // Relaxed: if more have left by now, there is room besides.
        let left = self.left.load(Ordering::Relaxed);
        let one_more = |given: usize| (given.wrapping_sub(left) < self.max_keys).then(|| given.wrapping_add(1));
        // Release: pairs with the Acquire in `is_full_after`. Relaxed: nothing rests on what was read.
        self.given.fetch_update(Ordering::Release, Ordering::Relaxed, one_more).is_ok()
    }

    /// Sees to it that there is room for a key, if there can be.
    fn make_room(&self, now: Nanos) -> Result<(), Refused> {
        while let Some(guarded) = self.room(now)? {
            self.change(guarded, |shard| shard.evict(1, now));
        }
        Ok(())
    }

    /// Whether there is room for a key at `now`: if not without removing one, then the shard that holds one at rest.
    fn room(&self, now: Nanos) -> Result<Option<&Guarded<A>>, Refused> {
        loop {
            // Relaxed: at worst an older number, by which the map seems full.
            let left = self.left.load(Ordering::Relaxed);
            if !self.is_full_after(left) {
                return Ok(None);
            }
            match self.first_to_rest() {
                Some((guarded, at)) if is_over(at, now) => return Ok(Some(guarded)),
                // If one left while we looked, its place may be free; or another's, who came too late to be seen. Relaxed: it comes
                // after the Acquire of what was looked at.
                first if self.left.load(Ordering::Relaxed) == left => {
                    let retry_after = first.map(|(_, at)| at.saturating_since(now));
                    return Err(Refused::NoRoom { max_keys: self.max_keys, retry_after });
                }
                _ => {}
            }
        }
    }

    /// The shard whose entry is the first to rest, and when it does. `None` if none ever does.
    fn first_to_rest(&self) -> Option<(&Guarded<A>, Nanos)> {
        loop {
            // Acquire: pairs with the Release in `Guarded::change`.
            let listed = |guarded: &CachePadded<Guarded<A>>| guarded.first_listed.load(Ordering::Acquire);
            let (first, guarded) =
                self.shards.iter().map(|guarded| (listed(guarded), guarded)).min_by_key(|(first, _)| *first)?;
            let (at, is_true) = {
                let shard = guarded.shard.read();
                (shard.first_listed(), shard.is_first_true())
            };
            if !is_true {
                self.change(guarded, Shard::list_first);
            } else if at.get() <= first {
                return (at < Nanos::MAX).then_some((guarded, at));
            }
        }
    }

    /// The answer to a key that has no place: that of the law which all such keys share, unless it is in a queue; or `no_room` if
    /// there is none.
    fn share<R>(
        &self,
        no_room: Refused,
        now: Nanos,
        ask: impl Fn(&A, Nanos) -> Result<R, Refused>,
    ) -> Result<Result<R, Refused>, Whose> {
        let Some(shared) = &self.shared else { return Ok(Err(no_room)) };
        // It may be more than this law ever admits at once, but less than that of the key does.
        let ask = |law: &A, at| {
            ask(law, at)
                .map_err(|refused| if let Refused::ExceedsCapacity { .. } = refused { no_room } else { refused })
        };
        let known = |law: Result<&A, InQueue>| law.map(|law| ask(law, now)).map_err(|InQueue| Whose::Shared);
        if let Some(law) = shared.shard.read().get(&SHARED) {
            return known(law);
        }
        // Its place is none of those for keys.
        shared.change(None, |shard| {
            if let Some(law) = shard.bring(&SHARED, now) {
                return known(law);
            }
            let (law, at) = (shard.start(&SHARED), shard.judged(now));
            let answer = ask(&law, at);
            shard.insert(&SHARED, law);
            Ok(answer)
        })
    }

    /// Whether somebody waits for what newcomers share.
    fn is_shared_in_queue(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| matches!(shared.shard.read().get(&SHARED), Some(Err(InQueue))))
    }

    /// The law that newcomers share if it is in debt, under `quota`, and the time at which a key is judged that is given a law of its own:
    /// it may have been one of those who shared, so it begins with what they owe.
    fn debt_of_shared(&self, quota: &Quota, now: Nanos) -> (Option<A>, Nanos) {
        let Some(shared) = &self.shared else { return (None, now) };
        let shard = shared.shard.read();
        let now = shard.judged(now);
        let law = shard.find(&SHARED, Whose::Shared).filter(|law| !is_over(rest(*law), now));
        let law = law.map(A::copied).inspect(|law| {
            if law.quota() != *quota {
                law.set_quota(*quota, now);
            }
        });
        (law, now)
    }

    /// Looks at what a key that is new would be given, where that is not a law at rest.
    fn newcomer<R>(&self, key: Asked, quota: &Quota, now: Nanos, look: impl FnOnce(&A, Nanos) -> R) -> Option<R> {
        let (guarded, _) = self.place(key);
        let at = guarded.shard.read().judged(now);
        let (law, at) = self.debt_of_shared(quota, at);
        law.map(|law| look(&law, at))
    }
}

impl<A: Algorithm + Queued> Map<A> {
    /// Tells what a request would be answered, unless the law is in a queue.
    fn look_for(&self, key: Asked, n: u64, now: Nanos) -> Result<Result<(), Refused>, Whose> {
        let quota = match self.look(key, now, |law| law.peek(n, now))? {
            Ok(known) => return Ok(known),
            Err(quota) => quota,
        };
        if let Err(refused) = at_rest::<A>(&quota, n) {
            return Ok(Err(refused));
        }
        if n == 0 || quota.is_unlimited() {
            return Ok(Ok(()));
        }
        match self.room(now) {
            Err(no_room) => self.share(no_room, now, |law, at| law.peek(n, at)),
            Ok(_) => Ok(self.newcomer(key, &quota, now, |law, at| law.peek(n, at)).unwrap_or(Ok(()))),
        }
    }

    /// What a queue refuses a key. It may be the one that all share, see [`share`](Self::share).
    fn or_no_room(&self, refused: Refused, key: Asked, n: u64, now: Nanos) -> Refused {
        let own = || key.quota.unwrap_or_else(|| self.quota());
        match refused {
            Refused::ExceedsCapacity { .. } if at_rest::<A>(&own(), n).is_ok() => {
                self.room(now).err().unwrap_or(refused)
            }
            _ => refused,
        }
    }

    /// What is there of a key that has no law, unless it would share one that is in a queue.
    fn unknown(&self, key: Asked, quota: Quota, now: Nanos) -> Result<Snapshot, Whose> {
        let limit = A::largest(&quota);
        let zero = Some(Duration::ZERO);
        let at_rest = Snapshot { limit, remaining: limit, retry_after: zero.filter(|_| limit > 0), reset_after: zero };
        if limit == 0 || quota.is_unlimited() {
            return Ok(at_rest);
        }
        if self.is_shared_in_queue() && self.room(now).is_err() {
            return Err(Whose::Shared);
        }
        Ok(self.newcomer(key, &quota, now, A::snapshot).unwrap_or(at_rest))
    }

    /// Changes the quota of all laws that are not in queues, and lets the caller use those queues.
    fn set_quota_of_laws(&self, quota: Quota, now: Nanos) -> Vec<(Whose, Visit<'_, Self>)> {
        let _one_at_a_time = self.setter.lock();
        let mut queues = Vec::new();
        // Whoever comes to a shard after the quota has begins with the new quota; whoever came before is found there. A queue is
        // joined in the same step, so that it does not end before it is told.
        for guarded in &self.shards {
            let mut next = self.change(guarded, |shard| {
                queues.extend(shard.join_all(self));
                shard.set_quota(quota, now, 0)
            });
            while let Some(first) = next {
                next = self.change(guarded, |shard| shard.set_quota(quota, now, first));
            }
        }
        if let Some(shared) = &self.shared {
            shared.change(None, |shard| {
                queues.extend(shard.join_all(self));
                shard.set_quota(quota, now, 0)
            });
        }
        queues
    }

    /// Lets the queue have the quota that its key ought to have. With no lock held, since it calls wakers.
    fn tell(&self, queue: &A::Queue, whose: Whose, now: Nanos) {
        let Some((guarded, key)) = self.place_of(whose, None) else { return };
        let quota = || guarded.shard.read().quota_to_have(&key);
        if quota() != Some(queue.quota()) {
            queue.follow(quota, now);
        }
    }
}

impl<A: Algorithm + Queued> Home for Map<A> {
    type Queue = A::Queue;

    fn join(&self, whose: Whose, plan: Option<Quota>, now: Nanos) -> Option<Visit<'_, Self>> {
        let (guarded, key) = self.place_of(whose, plan)?;
        let visit = guarded.shard.write().join(self, (&key, whose))?;
        self.tell(&visit, whose, now);
        Some(visit)
    }

    fn leave(&self, whose: Whose) {
        match whose {
            Whose::Key(_) => {
                if let Some((guarded, key)) = self.place_of(whose, None) {
                    self.change(guarded, |shard| shard.leave(&key, whose));
                }
            }
            Whose::Shared => {
                if let Some(shared) = &self.shared {
                    shared.change(None, |shard| shard.leave(&SHARED, whose));
                }
            }
        }
    }
}

impl<A: Algorithm + Queued> Store for Map<A> {
    fn peek(&self, key: Asked, n: u64, now: Nanos) -> Result<(), Refused> {
        let queue = |queue: &A::Queue| queue.peek(n, now).map_err(|refused| self.or_no_room(refused, key, n, now));
        self.ask(key.quota, now, || self.look_for(key, n, now), queue)
    }

    fn snapshot(&self, key: Asked, now: Nanos) -> Snapshot {
        let look = || match self.look(key, now, |law| law.snapshot(now))? {
            Ok(known) => Ok(known),
            Err(quota) => self.unknown(key, quota, now),
        };
        self.ask(key.quota, now, look, |queue| queue.snapshot(now))
    }

    fn set_quota(&self, quota: Quota, now: Nanos) {
        for (whose, queue) in self.set_quota_of_laws(quota, now) {
            self.tell(&queue, whose, now);
        }
    }

    fn quota(&self) -> Quota {
        // The first shard has it first.
        self.shards[0].shard.read().quota()
    }

    fn len(&self, now: Nanos) -> usize {
        self.shards.iter().map(|guarded| guarded.shard.read().busy(now)).sum()
    }

    fn max_keys(&self) -> usize {
        self.max_keys
    }

    fn memory(&self) -> usize {
        let guarded = self.shards.iter().chain(&self.shared);
        let allocated = guarded.map(|guarded| guarded.shard.read().allocated()).sum::<usize>();
        size_of::<Self>().saturating_add(size_of_val(&*self.shards)).saturating_add(allocated)
    }
}

impl<A: Waitable> Police for Map<A> {
    fn try_acquire(&self, key: Asked, n: u64, now: Nanos) -> Result<(), Refused> {
        if n == 0 {
            return Ok(());
        }
        let law = || self.ask_law(key, n, now, |law, at| law.try_acquire(n, at));
        let queue = |queue: &Queue<A>| {
            queue.try_acquire(n, now).map(drop).map_err(|refused| self.or_no_room(refused, key, n, now))
        };
        self.ask(key.quota, now, law, queue)
    }

    fn refund(&self, key: Asked, n: u64, now: Nanos) {
        self.ask(key.quota, now, || self.lower(key, now, |law| law.refund(n, now)), |queue| queue.refund(n, now));
    }

    fn reset(&self, key: Asked, now: Nanos) {
        self.ask(key.quota, now, || self.lower(key, now, |law| law.reset(now)), |queue| queue.reset(now));
    }
}

impl<A: Waitable> Wait for Map<A> {
    type Law = A;

    fn visit(&self, key: Asked, now: Nanos, places: usize) -> Option<Visit<'_, Self>> {
        let begin = |law| Queue::new(law, Settings::of_key(places));
        let (guarded, key) = self.place(key);
        let whose = Whose::Key(key.fingerprint);
        let own = guarded.shard.write().visit(self, (&key, whose), begin);
        let (visit, whose) = match own {
            Some(visit) => (visit, whose),
            // It owes what those do who shared a place, so it takes one of its own with that.
            None if self.room(now).is_ok() => {
                let visit = self.change(guarded, |shard| {
                    let (law, _) = self.debt_of_shared(&shard.quota_of(&key), shard.judged(now));
                    let law = law.filter(|law| !shard.knows(&key) && self.reserve(guarded, law))?;
                    shard.insert(&key, law);
                    shard.visit(self, (&key, whose), begin)
                });
                (visit?, whose)
            }
            None => {
                let visit = self.shared.as_ref()?.shard.write().visit(self, (&SHARED, Whose::Shared), begin)?;
                (visit, Whose::Shared)
            }
        };
        self.tell(&visit, whose, now);
        Some(visit)
    }

    fn waiting(&self, key: Asked, now: Nanos) -> usize {
        let whose = match self.look(key, now, |_| ()) {
            Err(whose) => whose,
            Ok(Err(_)) if self.shared.is_some() && self.room(now).is_err() => Whose::Shared,
            Ok(_) => return 0,
        };
        self.join(whose, key.quota, now).map_or(0, |queue| queue.waiting(now))
    }
}

impl Schedule for Map<LeakyQueueLaw> {
    fn schedule(&self, key: Asked, n: u64, now: Nanos) -> Result<Nanos, Refused> {
        let law = || self.ask_law(key, n, now, |law, at| law.schedule(n, at));
        self.ask(key.quota, now, law, |queue| match *queue {})
    }
}

/// What a law at rest answers to `n`.
fn at_rest<A: sealed::Algorithm>(quota: &Quota, n: u64) -> Result<(), Refused> {
    let capacity = A::largest(quota);
    if n > capacity { Err(Refused::ExceedsCapacity { asked: n, capacity }) } else { Ok(()) }
}
