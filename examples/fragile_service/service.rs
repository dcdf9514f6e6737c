//! The service without its HTTP: it stands or lies down, and remembers what arrived.

use std::time::Duration;

use crate::law::{Judge, Law};

/// How long the service lies down after a fall.
const DOWN: Duration = Duration::from_secs(1);

/// How long the service asks to be left in peace: the `Retry-After` of its 429.
pub(crate) const PEACE: Duration = Duration::from_secs(1);

/// What the service says to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Status 200.
    Served,
    /// Status 429: nobody is to call for the time of [`PEACE`].
    AsksForPeace,
    /// Status 503: this call made the service fall over, or came while it lay down.
    Down,
}

/// A call and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// When it arrived, counted from the opening of the service.
    pub(crate) at: Duration,
    pub(crate) answer: Answer,
}

/// What the service has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) served: u64,
    pub(crate) refused: u64,
    pub(crate) falls: u64,
    /// How often it asked for peace; such a call counts as refused too.
    pub(crate) asked: u64,
}

/// A service that falls over when its [`Law`] is broken.
///
/// A fall wipes the slate: calls that come while it lies down are not judged and do not keep it down, and once up again it
/// judges afresh.
///
/// If it is to [ask for peace](Self::asking_for_peace), it does so once. From that call until the time of [`PEACE`] is over, a
/// second law holds besides the first, for the calls of that time alone. It leaves room for calls that were under way and for
/// the moment until all have heard of it; a call beyond that makes the service fall over like any other call too many.
#[derive(Debug)]
pub(crate) struct Service {
    law: Law,
    judge: Judge,
    up_again: Duration,
    tally: Tally,
    calls: Vec<Call>,
    peace: Peace,
}

/// Whether the service wants to be left alone.
#[derive(Debug)]
enum Peace {
    /// It does not ask.
    Unwanted,
    /// It asks the first one that calls from then on, and will judge the others by this law.
    Wanted(Duration, Law),
    /// It has asked, and judges who calls before that time.
    Asked(Duration, Judge),
}

impl Service {
    /// Opens a service that stands.
    pub(crate) fn new(law: Law) -> Self {
        let (up_again, peace) = (Duration::ZERO, Peace::Unwanted);
        Self { law, judge: Judge::new(law), up_again, tally: Tally::default(), calls: Vec::new(), peace }
    }

    /// Lets it ask for peace once, with the first call from `at` on. Then `law` says what it bears until it has had its peace.
    pub(crate) fn asking_for_peace(self, at: Duration, law: Law) -> Self {
        Self { peace: Peace::Wanted(at, law), ..self }
    }

    /// Answers a call that arrived at `at`. Calls are to be handed in in the order of their times.
    pub(crate) fn answer(&mut self, at: Duration) -> Answer {
        let answer = self.decide(at);
        self.calls.push(Call { at, answer });
        answer
    }

    fn decide(&mut self, at: Duration) -> Answer {
        if at >= self.up_again && self.judge.keeps(at) && self.is_left_in_peace(at) {
            if self.asks_for_peace(at) {
                self.tally.asked += 1;
                self.tally.refused += 1;
                return Answer::AsksForPeace;
            }
            self.tally.served += 1;
            return Answer::Served;
        }
        if at >= self.up_again {
            self.tally.falls += 1;
            self.up_again = at.saturating_add(DOWN);
            self.judge = Judge::new(self.law);
        }
        self.tally.refused += 1;
        Answer::Down
    }

    /// Judges a call that may come while it wants peace.
    fn is_left_in_peace(&mut self, at: Duration) -> bool {
        match &mut self.peace {
            Peace::Asked(until, judge) if at < *until => judge.keeps(at),
            _ => true,
        }
    }

    /// Says whether this call is the one to be asked.
    fn asks_for_peace(&mut self, at: Duration) -> bool {
        match self.peace {
            Peace::Wanted(from, law) if at >= from => {
                self.peace = Peace::Asked(at.saturating_add(PEACE), Judge::new(law));
                true
            }
            _ => false,
        }
    }

    /// Returns the counts so far.
    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    /// Returns all calls so far, refused ones included, in the order of their arrival.
    pub(crate) fn calls(&self) -> &[Call] {
        &self.calls
    }
}

#[cfg(test)]
mod tests {
    use super::Answer::{AsksForPeace, Down, Served};
    use super::*;

    /// Two calls at one instant, then one a second.
    fn fragile() -> Service {
        Service::new(Law::new(1, 2, Duration::ZERO))
    }

    #[test]
    fn a_call_too_many_makes_it_fall_over_for_a_second() {
        let mut service = fragile();
        let answers = [0, 0, 10, 500, 1_009, 1_010].map(|at| service.answer(Duration::from_millis(at)));
        assert_eq!(answers, [Served, Served, Down, Down, Down, Served]);
        assert_eq!(service.tally(), Tally { served: 3, refused: 3, falls: 1, asked: 0 });
        let last = Call { at: Duration::from_millis(1_010), answer: Served };
        assert_eq!((service.calls().len(), service.calls()[5]), (6, last));
    }

    #[test]
    fn it_judges_afresh_once_it_is_up_again() {
        let mut service = fragile();
        let answers =
            [0, 0, 0, 999, 1_000, 1_000, 1_001, 2_000, 2_001].map(|at| service.answer(Duration::from_millis(at)));
        assert_eq!(answers, [Served, Served, Down, Down, Served, Served, Down, Down, Served]);
        assert_eq!(service.tally().falls, 2);
    }

    #[test]
    fn it_stands_as_long_as_the_law_is_kept() {
        let mut service = fragile();
        assert!((0..1_000).all(|at| service.answer(Duration::from_secs(at)) == Served));
        assert_eq!(service.tally(), Tally { served: 1_000, refused: 0, falls: 0, asked: 0 });
    }

    #[test]
    fn it_asks_for_peace_once_and_bears_so_many_calls_until_it_had_it() {
        for (last, answer) in [(1_499, Down), (1_500, Served)] {
            // 100 calls at one instant; two while it wants peace
            let service = Service::new(Law::new(1, 100, Duration::ZERO));
            let mut service = service.asking_for_peace(Duration::from_millis(500), Law::new(0, 2, Duration::ZERO));
            let answers = [499, 500, 500, 900, last].map(|at| service.answer(Duration::from_millis(at)));
            assert_eq!(answers, [Served, AsksForPeace, Served, Served, answer], "{last} ms");
            assert_eq!((service.tally().asked, service.tally().falls), (1, u64::from(answer == Down)));
        }
    }
}
