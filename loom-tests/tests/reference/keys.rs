//! A table of buckets by key, one call after the other.
//!
//! Where a newcomer goes is up to the table: each place where it may go is tried. It begins with what those owe who share a state.
//! Its coming is several steps: it sees a slot that it could take, the horizon rises to where that is at rest, and maybe in vain, the
//! last owner of a slot goes, and it is there. Or it sees that there is none, and takes of what is shared. What it saw may be old by
//! then. A change of the quota touches no key, so a call that is under way may be judged by the quota before, as long as its key was
//! not written by a newer one: by one quota, and by none that is older than what its thread has seen.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use tollgate::{Gcra, Keyed, Refused, WhenFull};

use super::bucket::Bucket;
use super::real::granted;
use super::{Law, Op, Outcome, Reference, nanos};

/// A key, and which of the two stripes it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) fingerprint: u64,
    pub(crate) stripe: usize,
}

/// A key of the first stripe if its name begins with A, and of the second with B. All are at home in the first line.
const fn key(fingerprint: u64, stripe: usize) -> Key {
    Key { fingerprint, stripe }
}

pub(crate) const ANN: Key = key(12, 0);
pub(crate) const ADA: Key = key(22, 0);
pub(crate) const AMY: Key = key(27, 0);
pub(crate) const ABE: Key = key(47, 0);
pub(crate) const AVA: Key = key(49, 0);
pub(crate) const ALI: Key = key(58, 0);
pub(crate) const BOB: Key = key(1, 1);
pub(crate) const BEA: Key = key(6, 1);
pub(crate) const BEN: Key = key(10, 1);
pub(crate) const BAY: Key = key(11, 1);
pub(crate) const BIX: Key = key(28, 1);

/// What is asked of a table. The key does not matter to a change of the quota.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) key: Key,
    pub(crate) op: Op,
}

/// What each thread asked and was answered, in its order.
pub(crate) type Seen = Vec<Vec<(Call, Outcome)>>;

/// The keys for which the table of a model is made: it has four slots for all, and two spare ones for those of each stripe.
pub(crate) const MAX_KEYS: usize = 2;
pub(crate) const SLOTS: [usize; 3] = [4, 2, 2];

/// The groups of slots in which a key may be.
pub(crate) fn groups(key: Key) -> [usize; 2] {
    [0, 1 + key.stripe]
}

/// A table that threads share.
pub(crate) trait Table: Send + Sync + 'static {
    fn call(&self, call: Call) -> Outcome;
}

/// The crate's table.
pub(crate) struct Real(Keyed<u64, Gcra, tollgate::DefaultClock, BuildHasherDefault<Itself>>);

/// Hashes a number to itself.
#[derive(Default)]
pub(crate) struct Itself(u64);

impl Hasher for Itself {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        panic!("keys are numbers");
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

impl Real {
    pub(crate) fn new(law: Law, when_full: WhenFull) -> Self {
        let builder = Keyed::<u64>::token_bucket(law.quota()).max_keys(MAX_KEYS).when_full(when_full);
        Self(builder.hasher(BuildHasherDefault::default()).build().unwrap())
    }
}

impl Table for Real {
    fn call(&self, Call { key, op }: Call) -> Outcome {
        let (table, key) = (&self.0, &key.fingerprint);
        match op {
            Op::Try { n, now } => return granted(table.try_acquire_n_at(key, n, now)),
            Op::Look { now } => {
                let seen = table.snapshot_at(key, now);
                return Outcome::Seen {
                    limit: seen.limit,
                    remaining: seen.remaining,
                    retry_after: seen.retry_after.unwrap(),
                    reset_after: seen.reset_after.unwrap(),
                };
            }
            Op::Refund { n, now } => table.refund_at(key, n, now),
            Op::Reset { now } => table.reset_at(key, now),
            Op::SetQuota { law, now } => table.set_quota_at(law.quota(), now).unwrap(),
            _ => panic!("{op:?} is not for a table"),
        }
        Outcome::Done
    }
}

/// A quota for all keys, and since when it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Version {
    pub(crate) law: Law,
    pub(crate) since: u64,
}

/// What a key owes: when its bucket is full again, or nothing by any clock.
pub(crate) type Owed = Option<u64>;

impl Version {
    fn call(self, owed: Owed, op: Op) -> (Outcome, Owed) {
        let mut bucket = Bucket::at(self.law, owed.unwrap_or(0));
        let outcome = bucket.call(op).outcome();
        // Nothing is owed from before the quota.
        (outcome, Some(bucket.tat()).filter(|tat| *tat > self.since))
    }

    /// A key at rest has the whole burst from when the quota counts.
    fn judged(self, owed: Owed, now: u64) -> u64 {
        if owed.is_some() { now } else { now.max(self.since) }
    }

    pub(crate) fn admit(self, owed: Owed, n: u64, now: u64) -> (Outcome, Owed) {
        self.call(owed, Op::Try { n, now: self.judged(owed, now) })
    }

    pub(crate) fn look(self, owed: Owed, now: u64) -> Outcome {
        self.call(owed, Op::Look { now: self.judged(owed, now) }).0
    }

    pub(crate) fn lower(self, owed: Owed, op: Op) -> Owed {
        owed.and_then(|_| self.call(owed, op).1)
    }

    /// What is left stays left, and what is at rest stays at rest.
    pub(crate) fn carry(self, owed: Owed, next: Self) -> Owed {
        let tat = owed.filter(|tat| *tat > next.since)?;
        let mut bucket = Bucket::at(self.law, tat);
        bucket.call(Op::SetQuota { law: next.law, now: next.since });
        Some(bucket.tat()).filter(|tat| *tat > next.since)
    }
}

/// The state of a key as it was written: under which version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct State {
    version: usize,
    owed: Owed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Keys {
    versions: Vec<Version>,
    /// In order within each group, since one is as good as another.
    slots: [Vec<Slot>; 3],
    horizon: u64,
    shared: Option<State>,
}

/// What a call for a key without a slot has seen.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Begun {
    horizon: u64,
    /// With what a newcomer begins, if there are some who share a state.
    shared: Option<State>,
}

/// What becomes of a call.
enum Next {
    /// It takes effect, with this answer.
    Done(Outcome, Keys),
    /// It has a slot of a group for a newcomer, whose last owner is gone.
    Marked(usize, State, Keys),
    /// It has seen a slot that it could take from then on, and is about to raise the horizon for it. It may not get that slot.
    Saw(u64),
    /// It has found no slot, and is about to ask of what is shared.
    Full,
}

/// What is in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Slot {
    Empty,
    Marked,
    Of(Key, State),
}

impl Keys {
    pub(crate) fn new(law: Law, when_full: WhenFull) -> Self {
        let shared = (when_full == WhenFull::Share).then_some(State { version: 0, owed: None });
        Self {
            versions: vec![Version { law, since: 0 }],
            slots: SLOTS.map(|count| vec![Slot::Empty; count]),
            horizon: 0,
            shared,
        }
    }

    fn current(&self) -> usize {
        self.versions.len() - 1
    }

    fn begin(&self) -> Begun {
        Begun { horizon: self.horizon, shared: self.shared }
    }

    /// The slot of a key, and its group.
    fn slot(&self, key: Key) -> Option<(usize, Slot, State)> {
        groups(key).into_iter().find_map(|group| {
            self.slots[group].iter().find_map(|slot| match slot {
                Slot::Of(owner, state) if *owner == key => Some((group, *slot, *state)),
                _ => None,
            })
        })
    }

    fn carried(&self, state: State, version: usize) -> Owed {
        let steps = self.versions[state.version..=version].windows(2);
        steps.fold(state.owed, |owed, step| step[0].carry(owed, step[1]))
    }

    /// The same with another slot in place of one of a group.
    fn with(&self, group: usize, old: Slot, new: Slot) -> Self {
        let mut after = self.clone();
        let slots = &mut after.slots[group];
        let index = slots.iter().position(|slot| *slot == old).expect("one of the group");
        slots[index] = new;
        slots.sort_unstable();
        after
    }

    /// The same with a newcomer in a slot that is marked.
    fn settle(&self, group: usize, key: Key, newcomer: State) -> Self {
        self.with(group, Slot::Marked, Slot::Of(key, newcomer))
    }

    /// What may become of a call now, by that version and, if its key has no slot, what it has seen.
    fn next(&self, Call { key, op }: Call, version: usize, begun: Begun) -> Vec<Next> {
        if let Op::SetQuota { law, now } = op {
            let mut after = self.clone();
            after.versions.push(Version { law, since: now.max(self.versions[self.current()].since) });
            return vec![Next::Done(Outcome::Done, after)];
        }
        let known = self.slot(key);
        let state = known.map(|(_, _, state)| state).or(begun.shared);
        if state.is_some_and(|state| state.version > version) {
            return Vec::new();
        }
        let (law, owed) = (self.versions[version], state.and_then(|state| self.carried(state, version)));
        let at = |now: u64| if known.is_some() { now } else { now.max(begun.horizon) };
        let told = |outcome| vec![Next::Done(outcome, self.clone())];
        let written = |outcome, owed| match known {
            Some((group, slot, _)) => {
                vec![Next::Done(outcome, self.with(group, slot, Slot::Of(key, State { version, owed })))]
            }
            None => told(outcome),
        };
        match op {
            Op::Refund { .. } | Op::Reset { .. } => written(Outcome::Done, law.lower(owed, op)),
            Op::Look { now } => told(law.look(owed, at(now))),
            Op::Try { n: 0, .. } => told(Outcome::Granted),
            Op::Try { n, now } => match law.admit(owed, n, at(now)) {
                (Outcome::Granted, owed) if known.is_none() => {
                    let by = |other| self.place(other, key, State { version, owed }, now, at(now));
                    (version..=self.current()).flat_map(by).collect()
                }
                (Outcome::Granted, owed) => written(Outcome::Granted, owed),
                (outcome, _) => told(outcome),
            },
            _ => panic!("{op:?} is not for a table"),
        }
    }

    /// A newcomer marks a slot that may be taken, or there is none.
    fn place(&self, version: usize, key: Key, newcomer: State, now: u64, at: u64) -> Vec<Next> {
        let slots = groups(key).into_iter().flat_map(|group| self.slots[group].iter().map(move |slot| (group, *slot)));
        let rest = |(group, slot)| match slot {
            Slot::Empty => Some((group, slot, 0)),
            Slot::Marked => None,
            Slot::Of(_, state) => Some((group, slot, self.carried(state, version.max(state.version)).unwrap_or(0))),
        };
        let mut rests: Vec<_> = slots.filter_map(rest).collect();
        rests.dedup();
        let free = rests.iter().filter(|(_, _, rest)| *rest <= at);
        let marked: Vec<_> = free
            .flat_map(|&(group, slot, rest)| {
                let mut raised = self.clone();
                raised.horizon = raised.horizon.max(rest);
                let marked = Next::Marked(group, newcomer, raised.with(group, slot, Slot::Marked));
                std::iter::once(marked).chain((rest > self.horizon).then_some(Next::Saw(rest)))
            })
            .collect();
        if !marked.is_empty() {
            return marked;
        }
        if self.shared.is_some() {
            return vec![Next::Full];
        }
        let earliest = rests.into_iter().map(|(_, _, rest)| rest).min();
        let retry_after = earliest.map(|rest| nanos(i128::from(rest) - i128::from(now)));
        let refused = Refused::NoRoom { max_keys: MAX_KEYS, retry_after };
        vec![Next::Done(Outcome::Refused(refused), self.clone())]
    }

    /// What may become now of a call that has found no slot, where those who have none share a state.
    fn share(&self, op: Op, version: usize) -> Vec<(Outcome, Self)> {
        let (Some(shared), Op::Try { n, now }) = (self.shared, op) else { panic!("{op:?} does not share") };
        let by = |version: usize| {
            let (outcome, owed) = self.versions[version].admit(self.carried(shared, version), n, now);
            let mut after = self.clone();
            if outcome == Outcome::Granted {
                after.shared = Some(State { version, owed });
            }
            (outcome, after)
        };
        (version.max(shared.version)..=self.current()).map(by).collect()
    }
}

/// What is there after calls one after the other that had these answers: nothing if they can't have had them.
fn after(state: Keys, calls: &[(Call, Outcome)]) -> Vec<Keys> {
    calls.iter().fold(vec![state], |states, (call, outcome)| {
        let mut next: Vec<Keys> = Vec::new();
        for state in states {
            for step in state.next(*call, state.current(), state.begin()) {
                let ends = match step {
                    Next::Done(told, after) => vec![(told, after)],
                    Next::Marked(group, newcomer, after) => {
                        vec![(Outcome::Granted, after.settle(group, call.key, newcomer))]
                    }
                    Next::Full => state.share(call.op, state.current()),
                    Next::Saw(_) => Vec::new(),
                };
                for (told, after) in ends {
                    if told == *outcome && !next.contains(&after) {
                        next.push(after);
                    }
                }
            }
        }
        next
    })
}

/// Whether the calls `before`, those of each thread in some order that keeps its own, and the calls `last` could have had these
/// answers.
pub(crate) fn explains(start: Keys, before: &[(Call, Outcome)], seen: &Seen, last: &[(Call, Outcome)]) -> bool {
    let mut search = Search { last, in_vain: HashSet::new() };
    after(start, before).into_iter().any(|start| {
        let thread = |calls| Thread { calls, way: Way::Ahead, version: start.current() };
        search.from(&start, &seen.iter().map(|calls| thread(calls)).collect::<Vec<_>>())
    })
}

/// The calls of a thread that have not taken effect yet, how far the first of them is, and the newest version it has seen.
#[derive(Clone, Copy)]
struct Thread<'a> {
    calls: &'a [(Call, Outcome)],
    way: Way,
    version: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Way {
    Ahead,
    /// Its key has no slot.
    Begun(Begun),
    /// And it has seen one that it could take from that instant on.
    Saw(Begun, u64),
    /// And there is none for it.
    Full,
    /// It has marked a slot of that group, and is about to write this.
    Marked(usize, State),
}

/// What each thread has left to do: how many calls, how far the first is, and the newest version it has seen.
type Left = Vec<(usize, Way, usize)>;

struct Search<'a> {
    last: &'a [(Call, Outcome)],
    /// From where nothing was found.
    in_vain: HashSet<(Keys, Left)>,
}

impl Search<'_> {
    fn from(&mut self, state: &Keys, threads: &[Thread<'_>]) -> bool {
        if threads.iter().all(|thread| thread.calls.is_empty()) {
            return !after(state.clone(), self.last).is_empty();
        }
        let left = threads.iter().map(|thread| (thread.calls.len(), thread.way, thread.version)).collect();
        let place = (state.clone(), left);
        if self.in_vain.contains(&place) {
            return false;
        }
        let found = (0..threads.len()).any(|index| self.step(state, threads, index));
        if !found {
            self.in_vain.insert(place);
        }
        found
    }

    /// Whether it is explained by a step of this thread.
    fn step(&mut self, state: &Keys, threads: &[Thread<'_>], index: usize) -> bool {
        let Thread { calls, way, version } = threads[index];
        let Some(((call, outcome), rest)) = calls.split_first() else { return false };
        let mut then = |state: &Keys, calls, way, version| {
            let mut next = threads.to_vec();
            next[index] = Thread { calls, way, version };
            self.from(state, &next)
        };
        let is_known = state.slot(call.key).is_some();
        let begun = match way {
            Way::Ahead => state.begin(),
            // Nobody else has placed that key meanwhile.
            Way::Begun(_) | Way::Saw(..) | Way::Full | Way::Marked(..) if is_known => return false,
            Way::Begun(begun) => begun,
            Way::Saw(begun, rest) => {
                let mut raised = state.clone();
                raised.horizon = raised.horizon.max(rest);
                return then(&raised, calls, Way::Begun(begun), version);
            }
            Way::Full => {
                let mut ends = state.share(call.op, version).into_iter();
                return ends.any(|(told, after)| is(told, *outcome) && then(&after, rest, Way::Ahead, version));
            }
            Way::Marked(group, newcomer) => {
                return then(&state.settle(group, call.key, newcomer), rest, Way::Ahead, version);
            }
        };
        let found = (version..=state.current()).any(|version| {
            state.next(*call, version, begun).into_iter().any(|next| match next {
                Next::Done(told, after) => {
                    let version = if matches!(call.op, Op::SetQuota { .. }) { after.current() } else { version };
                    is(told, *outcome) && then(&after, rest, Way::Ahead, version)
                }
                Next::Marked(group, newcomer, after) => {
                    *outcome == Outcome::Granted && then(&after, calls, Way::Marked(group, newcomer), version)
                }
                Next::Saw(rest) => then(state, calls, Way::Saw(begun, rest), version),
                Next::Full => then(state, calls, Way::Full, version),
            })
        });
        let may_see_more = matches!(call.op, Op::Try { .. }) && matches!(way, Way::Ahead) && !is_known;
        let alone = threads.iter().filter(|thread| !thread.calls.is_empty()).count() == 1;
        found || may_see_more && !alone && then(state, calls, Way::Begun(begun), version)
    }
}

/// Whether an answer is the one that was expected. How long a newcomer has to wait for a place is an estimate while others move.
fn is(expected: Outcome, told: Outcome) -> bool {
    let no_room = |outcome| matches!(outcome, Outcome::Refused(Refused::NoRoom { .. }));
    expected == told || no_room(expected) && no_room(told)
}
