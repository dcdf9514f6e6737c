//! The shaper, one call after the other.

use std::collections::BTreeMap;
use std::time::Duration;

use tollgate::Refused;

use super::order::Drive;
use super::{Expected, Law, Op, Outcome, Reference, Standing, instant, nanos};

/// A queue in front of a bucket that lets large requests pay afterwards.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Line {
    law: Law,
    catch_up: u64,
    places: usize,
    standing: Standing,
    /// What was owed when the law took effect.
    owed: i128,
    behind: bool,
    closed: bool,
    waiting: Vec<Waiter>,
    /// Whether anybody ever waited.
    waited: bool,
    /// Answers that have not been collected.
    settled: BTreeMap<usize, Settled>,
    /// Permits that were collected, by their number.
    held: BTreeMap<usize, u64>,
    /// The grants that stand and can still be undone, the last one at the end: those of this quota, and the last before it.
    grants: Vec<Grant>,
    next_grant: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Waiter {
    who: usize,
    n: u64,
    deadline: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Grant {
    number: u64,
    n: u64,
    /// The TAT right after it. Any other says that a later grant was made, from an idle start if that was undone.
    after: i128,
    /// Whether the quota has changed since.
    carried: bool,
    /// Whether the schedule was behind before.
    behind: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Settled {
    Granted(u64),
    Exceeds { asked: u64, capacity: u64 },
    Late,
    Closed,
}

impl Line {
    pub(crate) fn new(law: Law, catch_up: Duration, places: usize) -> Self {
        Self {
            law,
            catch_up: u64::try_from(catch_up.as_nanos()).unwrap(),
            places,
            standing: Standing::default(),
            owed: 0,
            behind: false,
            closed: false,
            waiting: Vec::new(),
            waited: false,
            settled: BTreeMap::new(),
            held: BTreeMap::new(),
            grants: Vec::new(),
            next_grant: 0,
        }
    }

    /// When a request of `n` may leave that has `ahead` permits before it.
    fn slot(&self, ahead: u64, n: u64) -> i128 {
        let capacity = self.law.capacity();
        let slot = self.standing.tat + self.law.cost(ahead) - (capacity - self.law.cost(n).min(capacity));
        self.not_before_the_end_of_a_pause(slot)
    }

    fn weight(&self) -> u64 {
        self.waiting.iter().map(|waiter| waiter.n).sum()
    }

    fn floor(&self, now: u64) -> i128 {
        self.not_before_the_end_of_a_pause(now.saturating_sub(self.catch_up).into())
    }

    fn not_before_the_end_of_a_pause(&self, instant: i128) -> i128 {
        self.standing.pause.map_or(instant, |end| instant.max(end.into()))
    }

    fn grant(&mut self, n: u64, behind: bool) -> u64 {
        let number = self.next_grant;
        self.next_grant += 1;
        self.grants.push(Grant { number, n, after: self.standing.tat, carried: false, behind });
        number
    }

    fn advance(&mut self, now: u64) {
        self.give_what_is_due(now);
        let last = self.last();
        if self.standing.forget_a_past_pause(now) {
            self.keep_only(last);
        }
    }

    /// Gives what is due, in order.
    fn give_what_is_due(&mut self, now: u64) {
        while let Some(&Waiter { who, n, deadline }) = self.waiting.first() {
            let slot = self.slot(0, n);
            if slot > now.into() {
                return;
            }
            self.waiting.remove(0);
            let settled = if deadline < instant(slot) {
                Settled::Late
            } else {
                self.standing.tat = self.standing.tat.max(self.floor(now)) + self.law.cost(n);
                let behind = std::mem::replace(&mut self.behind, self.standing.tat <= now.into());
                Settled::Granted(self.grant(n, behind))
            };
            self.settled.insert(who, settled);
        }
    }

    /// A newcomer: granted, refused, or `None` if it has to wait.
    fn arrive(&mut self, n: u64, now: u64) -> Option<Result<u64, Refused>> {
        self.advance(now);
        if self.closed {
            return Some(Err(Refused::Closed));
        }
        if n > self.law.largest() {
            return Some(Err(Refused::ExceedsCapacity { asked: n, capacity: self.law.largest() }));
        }
        if !self.waiting.is_empty() || self.slot(0, n) > now.into() {
            return None;
        }
        let late = self.behind && self.standing.tat >= self.floor(now);
        let base = if late { self.standing.tat } else { self.standing.tat.max(now.into()) };
        self.standing.tat = base + self.law.cost(n);
        let behind = std::mem::replace(&mut self.behind, late && self.standing.tat <= now.into());
        Some(Ok(self.grant(n, behind)))
    }

    /// The last grant, if nothing was granted since.
    fn last(&self) -> Option<Grant> {
        self.grants.last().copied().filter(|last| last.after == self.standing.tat)
    }

    fn undo(&mut self, number: u64, now: u64) {
        if let Some(Grant { n, behind, .. }) = self.last().filter(|last| last.number == number) {
            self.grants.pop();
            self.standing.tat = (self.standing.tat - self.law.cost(n)).max(self.standing.origin());
            self.behind = behind && self.standing.tat <= now.into();
        }
    }

    fn try_acquire(&mut self, n: u64, now: u64) -> Expected {
        match self.arrive(n, now) {
            Some(Ok(_)) => Expected::exactly(Outcome::Granted),
            Some(Err(refused)) => Expected::exactly(Outcome::Refused(refused)),
            None => {
                let waits = !self.waiting.is_empty();
                let retry_after = nanos(self.slot(self.weight(), n) - i128::from(now));
                let remaining = if waits { 0 } else { self.standing.remaining(self.law, now) };
                let refused = match self.standing.is_held(now) {
                    true => Refused::Paused { asked: n, retry_after },
                    false => Refused::TooSoon { asked: n, remaining, retry_after },
                };
                // How much waits is an estimate for whoever does not take the lock, and may come while a change that ends the
                // waits is under way.
                Expected { outcome: Outcome::Refused(refused), exact: !self.waited }
            }
        }
    }

    fn enter(&mut self, who: usize, n: u64, now: u64, deadline: u64) -> Outcome {
        match self.arrive(n, now) {
            Some(Ok(number)) => {
                self.held.insert(who, number);
                return Outcome::Granted;
            }
            Some(Err(refused)) => return Outcome::Refused(refused),
            None => {}
        }
        let slot = self.slot(self.weight(), n);
        let wait = nanos(slot - i128::from(now));
        if deadline < instant(slot) {
            return Outcome::Refused(self.too_late(n, wait, deadline));
        }
        if self.waiting.len() >= self.places {
            let waiting = self.waiting.len();
            return Outcome::Refused(Refused::QueueFull { waiting, estimated_wait: Some(wait) });
        }
        self.waited = true;
        self.waiting.push(Waiter { who, n, deadline });
        Outcome::Waits(instant(slot).min(deadline))
    }

    fn step(&mut self, who: usize, now: u64) -> Expected {
        if !self.has_place(who) {
            return Expected::exactly(Outcome::Done);
        }
        self.advance(now);
        if let Some(settled) = self.settled.remove(&who) {
            return Expected::exactly(match settled {
                Settled::Granted(number) => {
                    self.collect(who, number, now);
                    Outcome::Granted
                }
                Settled::Exceeds { asked, capacity } => Outcome::Refused(Refused::ExceedsCapacity { asked, capacity }),
                Settled::Late => Outcome::Refused(Refused::DeadlineTooSoon { wait: Duration::ZERO }),
                Settled::Closed => Outcome::Refused(Refused::Closed),
            });
        }
        let (position, slot) = self.place(who).expect("who is not settled waits");
        let Waiter { n, deadline, .. } = self.waiting[position];
        if now < deadline {
            // Behind the first two it is an upper bound, until places that were given up have moved to the front.
            return Expected { outcome: Outcome::Waits(instant(slot).min(deadline)), exact: position < 2 };
        }
        let refused = self.too_late(n, nanos(slot - i128::from(now)), deadline);
        self.waiting.remove(position);
        self.advance(now);
        Expected { outcome: Outcome::Refused(refused), exact: position < 2 }
    }

    /// The refusal of a request whose slot, after `wait`, lies beyond its deadline.
    fn too_late(&self, n: u64, wait: Duration, deadline: u64) -> Refused {
        match self.standing.is_held(deadline) {
            true => Refused::Paused { asked: n, retry_after: wait },
            false => Refused::DeadlineTooSoon { wait },
        }
    }

    /// A permit that is collected after the next slot has come leaves the schedule behind, if it was the last.
    fn collect(&mut self, who: usize, number: u64, now: u64) {
        self.held.insert(who, number);
        let last = self.last().is_some_and(|last| last.number == number && !last.carried);
        if last && self.waiting.is_empty() && !self.closed && self.standing.tat <= now.into() {
            self.behind = true;
        }
    }

    /// Whether `who` has asked and has not been answered.
    fn has_place(&self, who: usize) -> bool {
        self.settled.contains_key(&who) || self.place(who).is_some()
    }

    /// The place of one in line, and its slot.
    fn place(&self, who: usize) -> Option<(usize, i128)> {
        let position = self.waiting.iter().position(|waiter| waiter.who == who)?;
        let ahead = self.waiting[..position].iter().map(|waiter| waiter.n).sum();
        Some((position, self.slot(ahead, self.waiting[position].n)))
    }

    fn leave(&mut self, who: usize, now: u64) {
        if !self.has_place(who) {
            return;
        }
        self.advance(now);
        self.waiting.retain(|waiter| waiter.who != who);
        if let Some(Settled::Granted(number)) = self.settled.remove(&who) {
            self.undo(number, now);
        }
        self.advance(now);
    }

    fn give_back(&mut self, who: usize, now: u64) {
        if let Some(number) = self.held.remove(&who) {
            self.advance(now);
            self.undo(number, now);
            self.advance(now);
        }
    }

    /// Goes on under `law`, held until `end`.
    fn change(&mut self, law: Law, now: u64, end: Option<u64>) {
        let deepest = self.law.cost(self.law.largest()).max(self.law.capacity()).max(self.owed);
        let last = self.last();
        self.standing = self.standing.carry(self.law, law, now, deepest, end);
        self.law = law;
        self.owed = self.standing.tat - self.standing.origin();
        self.behind = false;
        self.keep_only(last);
    }

    /// Of the grants so far only the last one may still be undone.
    fn keep_only(&mut self, last: Option<Grant>) {
        let after = self.standing.tat;
        self.grants = last.map(|last| Grant { after, carried: true, ..last }).into_iter().collect();
    }

    fn set_quota(&mut self, law: Law, now: u64) {
        self.advance(now);
        self.change(law, now, self.standing.goes_on(now));
        let capacity = law.largest();
        self.waiting.retain(|&Waiter { who, n, .. }| {
            if n > capacity {
                self.settled.insert(who, Settled::Exceeds { asked: n, capacity });
            }
            n <= capacity
        });
        self.advance(now);
    }

    fn pause(&mut self, end: u64, now: u64) {
        self.advance(now);
        if self.standing.is_news(end, now) {
            self.change(self.law, now, Some(end));
            self.advance(now);
        }
    }

    fn refund(&mut self, n: u64, now: u64) {
        self.advance(now);
        if n > 0 {
            let last = self.last();
            self.standing.refund(self.law, n, now);
            self.behind = false;
            self.keep_only(last);
        }
        self.advance(now);
    }

    /// Takes what is there, unless somebody waits. Where that is nothing, nothing happens.
    fn up_to(&mut self, n: u64, now: u64) -> u64 {
        if !self.waiting.is_empty() {
            self.advance(now);
        }
        let none = self.closed || !self.waiting.is_empty();
        let there = if none { 0 } else { self.standing.remaining(self.law, now).min(self.law.largest()) };
        let n = n.min(there);
        if n > 0 {
            assert!(matches!(self.arrive(n, now), Some(Ok(_))), "what is there passes");
        }
        n
    }

    fn close(&mut self, now: u64) {
        self.advance(now);
        self.closed = true;
        self.settled.extend(self.waiting.drain(..).map(|waiter| (waiter.who, Settled::Closed)));
    }

    fn estimate(&mut self, n: u64, now: u64) -> Option<Duration> {
        self.advance(now);
        let never = self.closed || n > self.law.largest();
        (!never).then(|| nanos(self.slot(self.weight(), n) - i128::from(now)))
    }
}

impl Reference for Line {
    fn call(&mut self, op: Op) -> Expected {
        let outcome = match op {
            Op::Try { n, now } => return self.try_acquire(n, now),
            Op::Step { who, now } => return self.step(who, now),
            Op::Enter { who, n, now, deadline } => self.enter(who, n, now, deadline),
            Op::Estimate { n, now } => Outcome::Wait(self.estimate(n, now)),
            Op::UpTo { n, now } => Outcome::Took(self.up_to(n, now)),
            Op::Waiting { now } => {
                self.advance(now);
                Outcome::Waiting(self.waiting.len())
            }
            Op::Leave { who, now } => {
                self.leave(who, now);
                Outcome::Done
            }
            Op::GiveBack { who, now } => {
                self.give_back(who, now);
                Outcome::Done
            }
            Op::SetQuota { law, now } => {
                self.set_quota(law, now);
                Outcome::Done
            }
            Op::Pause { end, now } => {
                self.pause(end, now);
                Outcome::Done
            }
            Op::Refund { n, now } => {
                self.refund(n, now);
                Outcome::Done
            }
            Op::Reset { now } => {
                self.refund(u64::MAX, now);
                Outcome::Done
            }
            Op::Close { now } => {
                self.close(now);
                Outcome::Done
            }
            Op::Peek { .. } | Op::Look { .. } => panic!("{op:?} is not for a line"),
        };
        Expected::exactly(outcome)
    }

    /// Whoever takes the lock gives what is due first, and callers that take no lock see that.
    fn begin(&mut self, op: Op) -> bool {
        let before = self.clone();
        self.advance(op.now());
        *self != before
    }
}

impl Drive for Line {
    fn answer(&mut self, op: Op) -> Outcome {
        self.call(op).outcome
    }

    fn alarm(&mut self, who: usize, _: u64) -> u64 {
        // An ideal timer: it always knows the slot, and rings at once when there is an answer.
        self.place(who).map_or(0, |(position, slot)| instant(slot).min(self.waiting[position].deadline))
    }
}
