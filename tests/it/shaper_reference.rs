//! The law of the shaper in its plainest form, to compare with: whole nanoseconds, a vector of those who wait, no word.

use std::time::Duration;

use tollgate::{Nanos, Quota, Refused};

/// A quota whose interval is a whole number of nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) interval: i128,
    pub(crate) burst: i128,
    pub(crate) largest: u64,
}

impl Rate {
    /// `permits` per `permits` intervals.
    pub(crate) fn new(interval: u64, permits: u64, burst: u64, max_n: Option<u64>) -> (Quota, Self) {
        let period = Duration::from_nanos(interval * permits);
        let quota = Quota::new(permits, period).expect("the period is not zero").burst(burst);
        let largest = max_n.unwrap_or(burst.max(permits));
        (quota, Self { interval: interval.into(), burst: burst.into(), largest })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Granted,
    Waits,
    Refused(Refused),
}

/// A grant as it took effect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    pub(crate) who: usize,
    pub(crate) n: u64,
    pub(crate) now: Nanos,
    /// How many changes there were before.
    pub(crate) changes: usize,
    /// Whether the schedule was behind before.
    behind: bool,
}

#[derive(Debug)]
struct Waiting {
    who: usize,
    n: u64,
    deadline: Option<i128>,
}

#[derive(Debug)]
pub(crate) struct Reference {
    rate: Rate,
    catch_up: i128,
    places: usize,
    /// The instant at which the bucket is full again.
    tat: i128,
    behind: bool,
    /// Where the time of the current version is counted from: it is never fuller than full then.
    origin: i128,
    /// When it was set.
    since: i128,
    /// What was owed then.
    owed: i128,
    /// The end of the last pause: no slot and no base lies before it.
    end: Option<i128>,
    longest_pause: i128,
    line: Vec<Waiting>,
    /// Who was answered and has not looked yet.
    answers: Vec<(usize, u64, Option<Refused>)>,
    /// The grants that may still be given back, the last one first in turn.
    returnable: Vec<usize>,
    departures: Vec<Departure>,
    changes: usize,
    closed: bool,
}

fn nanos(at: Nanos) -> i128 {
    at.get().into()
}

impl Reference {
    pub(crate) fn new(rate: Rate, catch_up: u64, places: usize, longest_pause: Duration) -> Self {
        Self {
            rate,
            catch_up: catch_up.into(),
            places,
            tat: 0,
            behind: false,
            origin: 0,
            since: 0,
            owed: 0,
            end: None,
            longest_pause: i128::try_from(longest_pause.as_nanos()).expect("fits"),
            line: Vec::new(),
            answers: Vec::new(),
            returnable: Vec::new(),
            departures: Vec::new(),
            changes: 0,
            closed: false,
        }
    }

    /// What has left and was not given back, in order.
    pub(crate) fn departures(&self) -> &[Departure] {
        &self.departures
    }

    /// How often the quota, the pause or what was left was changed.
    pub(crate) fn changes(&self) -> usize {
        self.changes
    }

    /// Who waits or has an answer that he has not seen.
    pub(crate) fn unanswered(&self) -> (Vec<usize>, Vec<usize>) {
        (self.line.iter().map(|waiting| waiting.who).collect(), self.answers.iter().map(|answer| answer.0).collect())
    }

    pub(crate) fn head_is_due(&self, now: Nanos) -> bool {
        self.line.first().is_some_and(|head| self.slot(self.tat, head.n) <= nanos(now))
    }

    /// n permits leave when min(n, burst) are there, and not in a pause.
    fn slot(&self, tat: i128, n: u64) -> i128 {
        self.after_pause(tat - (self.rate.burst - self.rate.burst.min(n.into())) * self.rate.interval)
    }

    fn after_pause(&self, at: i128) -> i128 {
        self.end.map_or(at, |end| at.max(end))
    }

    /// The tick before which lateness is not made up for.
    fn floor(&self, now: Nanos) -> i128 {
        self.after_pause(nanos(now) - self.catch_up)
    }

    fn is_paused_at(&self, at: i128) -> bool {
        self.end.is_some_and(|end| at < end)
    }

    /// The slot behind all who wait.
    fn slot_behind(&self, n: u64) -> i128 {
        let weight: i128 = self.line.iter().map(|waiting| i128::from(waiting.n)).sum();
        self.slot(self.tat + weight * self.rate.interval, n)
    }

    fn wait(slot: i128, now: Nanos) -> Duration {
        Duration::from_nanos(u64::try_from((slot - nanos(now)).max(0)).expect("fits"))
    }

    fn depart(&mut self, who: usize, n: u64, base: i128, now: Nanos) {
        if base != self.tat {
            // Time has made good for those before.
            self.returnable.clear();
        }
        self.tat = base + i128::from(n) * self.rate.interval;
        self.returnable.push(who);
        self.departures.push(Departure { who, n, now, changes: self.changes, behind: self.behind });
    }

    /// Grants all slots that are due, in order.
    fn advance(&mut self, now: Nanos) {
        while self.head_is_due(now) {
            let Waiting { who, n, deadline } = self.line.remove(0);
            if deadline.is_some_and(|deadline| deadline < self.slot(self.tat, n)) {
                self.answers.push((who, n, Some(Refused::DeadlineTooSoon { wait: Duration::ZERO })));
                continue;
            }
            // They waited, so what lies before now is lateness.
            self.depart(who, n, self.tat.max(self.floor(now)), now);
            self.behind = self.tat <= nanos(now);
            self.answers.push((who, n, None));
        }
        if self.end.is_some_and(|end| end <= nanos(now)) {
            // It is over for good, even if the clock is set back.
            self.end = None;
            let behind = self.behind;
            self.change();
            self.behind = behind;
        }
    }

    /// Without a wait: granted, or why it would be refused even if it wanted to wait.
    fn pass(&mut self, who: usize, n: u64, now: Nanos) -> Option<Outcome> {
        if n == 0 && !self.closed {
            return Some(Outcome::Granted);
        }
        self.advance(now);
        if self.closed {
            return Some(Outcome::Refused(Refused::Closed));
        }
        if n > self.rate.largest {
            return Some(Outcome::Refused(Refused::ExceedsCapacity { asked: n, capacity: self.rate.largest }));
        }
        let at = nanos(now);
        if !self.line.is_empty() || self.slot(self.tat, n) > at {
            return None;
        }
        let late = self.behind && self.tat >= self.floor(now);
        let base = if self.tat > at || late { self.tat } else { at };
        self.depart(who, n, base, now);
        self.behind = late && self.tat <= at;
        Some(Outcome::Granted)
    }

    pub(crate) fn try_acquire(&mut self, who: usize, n: u64, now: Nanos) -> Outcome {
        if let Some(outcome) = self.pass(who, n, now) {
            return outcome;
        }
        let retry_after = Self::wait(self.slot_behind(n), now);
        Outcome::Refused(if self.is_paused_at(nanos(now)) {
            Refused::Paused { asked: n, retry_after }
        } else {
            Refused::TooSoon { asked: n, remaining: self.remaining(now), retry_after }
        })
    }

    /// The whole permits that are there for a newcomer.
    fn remaining(&self, now: Nanos) -> u64 {
        if !self.line.is_empty() || self.closed || self.is_paused_at(nanos(now)) {
            return 0;
        }
        let left = self.rate.burst * self.rate.interval - (self.tat - nanos(now)).max(0);
        u64::try_from(left.max(0) / self.rate.interval).expect("fits")
    }

    /// How many of `n` are taken. If that is nothing though nobody waits, nothing happens.
    pub(crate) fn acquire_up_to(&mut self, who: usize, n: u64, now: Nanos) -> u64 {
        if !self.line.is_empty() || self.closed {
            self.advance(now);
        }
        let n = n.min(self.remaining(now)).min(self.rate.largest);
        if n > 0 {
            assert_eq!(self.pass(who, n, now), Some(Outcome::Granted));
        }
        n
    }

    /// The first poll.
    pub(crate) fn ask(&mut self, who: usize, n: u64, limit: Option<Duration>, now: Nanos) -> Outcome {
        if let Some(outcome) = self.pass(who, n, now) {
            return outcome;
        }
        let slot = self.slot_behind(n);
        let deadline = limit.map(|limit| nanos(now) + i128::try_from(limit.as_nanos()).expect("fits"));
        if let Some(deadline) = deadline.filter(|deadline| *deadline < slot) {
            return Outcome::Refused(self.too_late(n, deadline, Self::wait(slot, now)));
        }
        if self.line.len() >= self.places {
            let estimated_wait = Some(Self::wait(slot, now));
            return Outcome::Refused(Refused::QueueFull { waiting: self.line.len(), estimated_wait });
        }
        self.line.push(Waiting { who, n, deadline });
        Outcome::Waits
    }

    fn too_late(&self, n: u64, deadline: i128, wait: Duration) -> Refused {
        if self.is_paused_at(deadline) {
            Refused::Paused { asked: n, retry_after: wait }
        } else {
            Refused::DeadlineTooSoon { wait }
        }
    }

    /// A later poll.
    pub(crate) fn look(&mut self, who: usize, now: Nanos) -> Outcome {
        self.advance(now);
        if let Some(place) = self.answers.iter().position(|answer| answer.0 == who) {
            return match self.answers.remove(place) {
                (_, _, Some(refused)) => Outcome::Refused(refused),
                _ => {
                    // Collected late: the schedule is behind, if nobody left since.
                    let departure = self.departures.iter().rfind(|departure| departure.who == who);
                    let is_last = self.returnable.last() == Some(&who)
                        && departure.is_some_and(|departure| departure.changes == self.changes);
                    self.behind |= self.line.is_empty() && is_last && self.tat <= nanos(now);
                    Outcome::Granted
                }
            };
        }
        let place = self.line.iter().position(|waiting| waiting.who == who).expect("in line");
        if let Some(deadline) = self.line[place].deadline.filter(|deadline| *deadline <= nanos(now)) {
            let n = self.line.remove(place).n;
            // How long it would have been is an upper bound, and not compared.
            let refused = self.too_late(n, deadline, Duration::ZERO);
            self.advance(now);
            return Outcome::Refused(refused);
        }
        Outcome::Waits
    }

    /// A wait is dropped.
    pub(crate) fn leave(&mut self, who: usize, now: Nanos) {
        self.advance(now);
        self.line.retain(|waiting| waiting.who != who);
        if let Some(place) = self.answers.iter().position(|answer| answer.0 == who) {
            if let (_, n, None) = self.answers.remove(place) {
                self.take_back(who, n, now);
            }
        }
        self.advance(now);
    }

    /// A permit is given back.
    pub(crate) fn give_back(&mut self, who: usize, n: u64, now: Nanos) {
        self.advance(now);
        self.take_back(who, n, now);
        self.advance(now);
    }

    /// Only the last grant can be; any other counts as used.
    fn take_back(&mut self, who: usize, n: u64, now: Nanos) {
        if self.returnable.last() == Some(&who) {
            self.returnable.pop();
            let taken_back = self.departures.iter().position(|departure| departure.who == who);
            let was_behind = taken_back.is_some_and(|place| self.departures.remove(place).behind);
            self.tat = (self.tat - i128::from(n) * self.rate.interval).max(self.origin);
            self.behind = was_behind && self.tat <= nanos(now);
        }
    }

    /// Changes the quota, or tells that the carried permits are no whole number of nanoseconds under it.
    pub(crate) fn set_quota(&mut self, rate: Rate, now: Nanos) -> bool {
        // What is due is granted before; tried on what would be left then.
        self.advance(now);
        let Rate { interval, burst, .. } = self.rate;
        let (start, debt) = self.carried(now);
        let left = burst * interval - debt;
        let debt = if left >= rate.burst * interval {
            0
        } else {
            if left * rate.interval % interval != 0 {
                return false;
            }
            rate.burst * rate.interval - left * rate.interval / interval
        };
        self.rate = rate;
        self.restart(start, debt, self.end.unwrap_or(0), now);
        let capacity = rate.largest;
        let (stay, gone) = std::mem::take(&mut self.line).into_iter().partition(|waiting| waiting.n <= capacity);
        self.line = stay;
        let exceeds =
            |ended: Waiting| (ended.who, ended.n, Some(Refused::ExceedsCapacity { asked: ended.n, capacity }));
        self.answers.extend(Vec::into_iter(gone).map(exceeds));
        self.advance(now);
        true
    }

    /// From when what is left counts, and what is owed then.
    fn carried(&self, now: Nanos) -> (i128, i128) {
        if let Some(end) = self.end.filter(|_| self.is_paused_at(nanos(now))) {
            // Nothing accrues before the end.
            return (nanos(now).max(self.since), self.tat - end);
        }
        let Rate { interval, burst, largest } = self.rate;
        let deepest = (burst.max(largest.into()) * interval).max(self.owed);
        let start = nanos(now).max(self.tat - deepest);
        (start, (self.tat - start).max(0))
    }

    /// What was owed at `start` is owed at `end`, until which nobody leaves.
    fn restart(&mut self, start: i128, debt: i128, end: i128, now: Nanos) {
        // By a clock that was set back it may count from later than the end.
        self.origin = start.max(end);
        self.end = (end > nanos(now)).then_some(self.origin);
        self.tat = self.origin + debt;
        (self.since, self.owed) = (start, debt);
        self.change();
    }

    /// Only the last grant before a change is known not to have a later one.
    fn change(&mut self) {
        self.behind = false;
        self.changes += 1;
        self.returnable = self.returnable.last().copied().into_iter().collect();
    }

    /// Pauses, or ends a pause.
    pub(crate) fn pause_until(&mut self, end: Nanos, now: Nanos) {
        self.advance(now);
        if end <= now && !self.is_paused_at(nanos(now)) {
            return;
        }
        let (start, debt) = self.carried(now);
        self.restart(start, debt, nanos(end).min(nanos(now) + self.longest_pause), now);
        self.advance(now);
    }

    /// `u64::MAX` fills the bucket.
    pub(crate) fn refund(&mut self, n: u64, now: Nanos) {
        if n > 0 {
            self.advance(now);
            let refunded = self.tat - i128::from(n) * self.rate.interval;
            let full = if self.is_paused_at(nanos(now)) { self.origin } else { nanos(now) };
            self.tat = refunded.max(full).min(self.tat);
            self.origin = self.origin.min(self.tat);
            self.change();
            self.advance(now);
        }
    }

    pub(crate) fn waiting(&mut self, now: Nanos) -> usize {
        self.advance(now);
        self.line.len()
    }

    pub(crate) fn estimated_wait(&mut self, n: u64, now: Nanos) -> Option<Duration> {
        self.advance(now);
        match n {
            _ if self.closed => None,
            0 => Some(Duration::ZERO),
            _ if n > self.rate.largest => None,
            _ => Some(Self::wait(self.slot_behind(n), now)),
        }
    }

    pub(crate) fn close(&mut self, now: Nanos) {
        self.advance(now);
        self.closed = true;
        self.answers.extend(self.line.drain(..).map(|waiting| (waiting.who, waiting.n, Some(Refused::Closed))));
    }
}
