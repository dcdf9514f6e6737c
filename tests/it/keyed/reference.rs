//! A table of keys, written as naively as it can be: a map of limiters, each the reference of its law, and one caller.
//!
//! What a table says differently from so many limiters is all here, in [`Keys`]:
//!
//! - A quota counts for all keys from one instant, which is never before that of the quota before. A key at rest then has the new burst or limit at once,
//!   and a time before that instant (of windows: before the window that it lies in) counts as it.
//! - Under no limit at all no key takes anything.
//! - Where so many keys are busy as there are places, a newcomer is refused, or shares one state with all others. Who
//!   finds a place later begins with that state.

use std::collections::HashMap;
use std::time::Duration;

use tollgate::{Refused, WhenFull};

use super::tables::Setup;
use crate::differential::Bucket;
use crate::laws::reference::{Counts, Reference as WindowReference};
use crate::reference::{self, Answer, No, Reference as BucketReference, Spec, View};

/// One key's limiter.
pub(crate) trait Single: Bucket + Clone {
    fn at_rest(spec: Spec) -> Self;

    /// Whether nothing that was taken counts at `now`, nor after it.
    fn rests_at(&self, now: u64) -> bool;

    /// The time after which that is so, if it is not at `now`; `None` if it is at no time.
    fn rest_after(&self, now: u64) -> Option<Duration>;

    /// From now on no time counts before the window, if there are any, that `since` lies in.
    fn begin_at(&mut self, since: u64);
}

fn new(spec: Spec) -> reference::Setup {
    reference::Setup { spec, initial: None, max_pause: Duration::ZERO, built: 0 }
}

impl Single for BucketReference {
    fn at_rest(spec: Spec) -> Self {
        Self::new(new(spec))
    }

    fn rests_at(&self, now: u64) -> bool {
        self.is_full(now)
    }

    fn rest_after(&self, now: u64) -> Option<Duration> {
        let after = self.snapshot(now).reset_after?;
        u64::try_from(after.as_nanos()).ok().filter(|after| now.checked_add(*after).is_some())?;
        Some(after)
    }

    fn begin_at(&mut self, _: u64) {}
}

impl<L: Counts> Single for WindowReference<L> {
    fn at_rest(spec: Spec) -> Self {
        Self::new(new(spec))
    }

    fn rests_at(&self, now: u64) -> bool {
        self.counted(now) == 0
    }

    fn rest_after(&self, now: u64) -> Option<Duration> {
        let (mut busy, mut rests) = (now, u64::MAX);
        if !self.rests_at(rests) {
            return None;
        }
        while rests - busy > 1 {
            let middle = busy + (rests - busy) / 2;
            if self.rests_at(middle) { rests = middle } else { busy = middle }
        }
        Some(Duration::from_nanos(rests - now))
    }

    fn begin_at(&mut self, since: u64) {
        self.open(since);
    }
}

/// What a call is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Answer(Answer),
    NoRoom(Option<Duration>),
}

pub(crate) fn told(given: Result<(), Refused>) -> Told {
    match given {
        Err(Refused::NoRoom { retry_after, .. }) => Told::NoRoom(retry_after),
        other => Told::Answer(reference::answer(other)),
    }
}

/// The sequential table.
#[derive(Clone, Debug)]
pub(crate) struct Keys<R> {
    spec: Spec,
    /// From when the quota counts.
    since: u64,
    keys: HashMap<u64, R>,
    /// How many keys may be busy.
    places: usize,
    /// The state of those that find no place.
    shared: Option<R>,
    /// The key that has no place now, and so begins with that.
    begins: Option<u64>,
}

impl<R: Single> Keys<R> {
    pub(crate) fn new(spec: Spec, places: usize, setup: Setup) -> Self {
        let shared = (setup.when_full == WhenFull::Share).then(|| R::at_rest(spec));
        Self { spec, since: 0, keys: HashMap::new(), places, shared, begins: None }
    }

    /// What `now` counts as for a limiter.
    fn judged(&self, single: &R, now: u64) -> u64 {
        if single.rests_at(self.since) { now.max(self.since) } else { now }
    }

    fn key(&self, key: u64) -> R {
        let shared = self.shared.as_ref().filter(|_| self.begins == Some(key));
        shared.or_else(|| self.keys.get(&key)).cloned().unwrap_or_else(|| R::at_rest(self.spec))
    }

    fn has_busy(&self, key: u64, now: u64) -> bool {
        self.keys.get(&key).is_some_and(|single| self.is_busy(single, now))
    }

    /// Whether a key at rest still has its place is up to the table, which is seen saying so before the key is asked. One that never
    /// had one begins with what is left of the shared state.
    pub(crate) fn settle(&mut self, key: u64, now: u64, seen: View) {
        self.begins = None;
        let shares = self.shared.as_ref().is_some_and(|shared| self.is_busy(shared, now));
        if shares && !self.has_busy(key, now) && (!self.keys.contains_key(&key) || seen != self.snapshot(key, now)) {
            self.begins = Some(key);
        }
    }

    pub(crate) fn len(&self, now: u64) -> usize {
        self.keys.values().filter(|single| self.is_busy(single, now)).count()
    }

    fn is_busy(&self, single: &R, now: u64) -> bool {
        !single.rests_at(now.max(self.since))
    }

    /// Whether the key is at rest and all places are taken.
    fn is_shut_out(&self, key: u64, now: u64) -> bool {
        !self.has_busy(key, now) && self.len(now) >= self.places
    }

    /// Who answers a request of a key, and at which time.
    fn who(&self, key: u64, n: u64, now: u64) -> Result<(R, u64, bool), Told> {
        let mut single = self.key(key);
        let at = self.judged(&single, now);
        if n == 0 || single.peek(n, at).is_err() || self.spec == Spec::Unlimited || !self.is_shut_out(key, now) {
            return Ok((single, at, false));
        }
        let Some(shared) = &self.shared else { return Err(Told::NoRoom(self.first_rest(now))) };
        Ok((shared.clone(), self.judged(shared, now), true))
    }

    pub(crate) fn try_acquire_n(&mut self, key: u64, n: u64, now: u64) -> Told {
        let (mut single, at, shares) = match self.who(key, n, now) {
            Ok(who) => who,
            Err(told) => return told,
        };
        let answer = single.try_acquire_n(n, at);
        if shares {
            self.shared = Some(single);
        } else if answer.is_ok() && n > 0 {
            self.keys.insert(key, single);
        }
        Told::Answer(answer)
    }

    pub(crate) fn peek(&self, key: u64, n: u64, now: u64) -> Told {
        self.who(key, n, now).map_or_else(|told| told, |(mut single, at, _)| Told::Answer(single.peek(n, at)))
    }

    pub(crate) fn available(&self, key: u64, now: u64) -> u64 {
        let mut single = self.key(key);
        single.available(self.judged(&single, now))
    }

    pub(crate) fn snapshot(&self, key: u64, now: u64) -> View {
        let mut single = self.key(key);
        single.snapshot(self.judged(&single, now))
    }

    pub(crate) fn refund(&mut self, key: u64, n: u64, now: u64) {
        let at = self.judged(&self.key(key), now);
        self.keys.get_mut(&key).into_iter().for_each(|single| single.refund(n, at));
    }

    pub(crate) fn reset(&mut self, key: u64, now: u64) {
        let at = self.judged(&self.key(key), now);
        self.keys.get_mut(&key).into_iter().for_each(|single| single.reset(at));
    }

    pub(crate) fn set_quota(&mut self, spec: Spec, now: u64) {
        let at = now.max(self.since);
        let before = std::mem::replace(&mut self.spec, spec);
        let all_rest = before == Spec::Unlimited || spec == Spec::Unlimited;
        for single in self.keys.values_mut().chain(&mut self.shared) {
            if all_rest || single.rests_at(at) {
                *single = R::at_rest(spec);
            } else {
                single.set_quota(spec, at);
                single.begin_at(at);
            }
        }
        self.since = at;
    }

    /// The time until the first of the busy keys is at rest.
    fn first_rest(&self, now: u64) -> Option<Duration> {
        self.keys.values().filter(|single| self.is_busy(single, now)).filter_map(|single| single.rest_after(now)).min()
    }
}

/// The time that a refusal tells.
pub(crate) fn wait(told: Told) -> Option<Duration> {
    match told {
        Told::Answer(answer) => answer.err().and_then(No::retry_after),
        Told::NoRoom(retry_after) => retry_after,
    }
}
