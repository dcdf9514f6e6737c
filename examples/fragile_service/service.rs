//! The service without its HTTP: it stands or lies down, and remembers what arrived.

use std::time::Duration;

use crate::law::{Judge, Law};

/// How long the service lies down after a fall.
const DOWN: Duration = Duration::from_secs(1);

/// What the service says to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Status 200.
    Served,
    /// Status 503: this call made the service fall over, or came while it lay down.
    Down,
}

/// What the service has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) served: u64,
    pub(crate) refused: u64,
    pub(crate) falls: u64,
}

/// A service that falls over when its [`Law`] is broken.
///
/// A fall wipes the slate: calls that come while it lies down are not judged and do not keep it down, and once up again it
/// judges afresh.
#[derive(Debug)]
pub(crate) struct Service {
    law: Law,
    judge: Judge,
    up_again: Duration,
    tally: Tally,
    arrivals: Vec<Duration>,
}

impl Service {
    /// Opens a service that stands.
    pub(crate) fn new(law: Law) -> Self {
        let up_again = Duration::ZERO;
        Self { law, judge: Judge::new(law), up_again, tally: Tally::default(), arrivals: Vec::new() }
    }

    /// Answers a call that arrived at `at`. Calls are to be handed in in the order of their times.
    pub(crate) fn answer(&mut self, at: Duration) -> Answer {
        self.arrivals.push(at);
        if at >= self.up_again && self.judge.keeps(at) {
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

    /// Returns the counts so far.
    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    /// Returns the times of all calls so far, refused ones included.
    pub(crate) fn arrivals(&self) -> &[Duration] {
        &self.arrivals
    }
}

#[cfg(test)]
mod tests {
    use super::Answer::{Down, Served};
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
        assert_eq!(service.tally(), Tally { served: 3, refused: 3, falls: 1 });
        assert_eq!(service.arrivals().len(), 6);
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
        assert_eq!(service.tally(), Tally { served: 1_000, refused: 0, falls: 0 });
    }
}
