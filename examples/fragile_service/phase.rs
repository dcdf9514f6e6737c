//! A phase: so many tasks call a fresh service for so long, at one pace.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::args::Args;
use crate::client::{self, Mishaps};
use crate::failure::Failure;
use crate::law::Law;
use crate::pace::{CATCH_UP, Pace};
use crate::progress::{Progress, STEP, STEPS};
use crate::report::{self, Outcome};
use crate::server::{Host, Server};
use crate::service::{Call, PEACE, Service};

/// What the limits and moods of the callers in a hurry follow from.
const SEED: u64 = 1;

/// The phases of a run. A further one needs a variant here and, if its callers behave in a new way, a [`Pace`] of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing holds the callers back.
    Unlimited,
    /// The callers share one shaper.
    Shaped,
    /// They share one, have no time, and the service asks for peace midway.
    Deadlines,
}

impl Phase {
    /// The phases in the order in which they run.
    pub(crate) const ALL: [Self; 3] = [Self::Unlimited, Self::Shaped, Self::Deadlines];

    /// Returns the name under which the phase is reported.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unlimited => "unlimited",
            Self::Shaped => "shaped",
            Self::Deadlines => "deadlines",
        }
    }

    /// Returns whether the phase went as it must.
    pub(crate) fn passed(self, outcome: &Outcome) -> bool {
        match self {
            // Whether it falls over depends on how fast the machine is.
            Self::Unlimited => true,
            Self::Shaped => outcome.stood() && outcome.served_any(),
            Self::Deadlines => outcome.stood() && outcome.served_any() && outcome.asked_for_peace(),
        }
    }

    /// Returns how long the phase lasts if phases last `seconds`: the time of peace comes on top.
    pub(crate) const fn seconds(self, seconds: u64) -> u64 {
        match self {
            Self::Unlimited | Self::Shaped => seconds,
            Self::Deadlines => seconds + PEACE.as_secs(),
        }
    }

    fn pace(self, args: &Args) -> Pace {
        match self {
            Self::Unlimited => Pace::Unlimited,
            Self::Shaped => Pace::shaped(args.rate),
            Self::Deadlines => Pace::hurried(args.rate, args.tasks, SEED),
        }
    }

    fn service(self, args: &Args) -> Service {
        let service = Service::new(law(args));
        match self {
            Self::Unlimited | Self::Shaped => service,
            Self::Deadlines => service.asking_for_peace(Duration::from_secs(args.seconds) / 2, law_of_peace(args)),
        }
    }

    /// Runs the phase, shows how it goes, and returns what came of it and every call.
    pub(crate) async fn run(self, args: &Args) -> Result<(Outcome, Vec<Call>), Failure> {
        let host = Host::open(self.service(args));
        let server = Server::start(Arc::clone(&host)).await.map_err(Failure::Listen)?;
        let address = server.address();

        // All connect before the first one calls.
        let mut streams = Vec::new();
        for _ in 0..args.tasks {
            streams.push(client::connect(address).await.map_err(|error| Failure::Connect(address, error))?);
        }
        let mut pace = self.pace(args);
        let mishaps = Arc::new(Mishaps::default());
        let mut callers = JoinSet::new();
        for stream in streams {
            callers.spawn(client::call(address, stream, pace.for_another(), Arc::clone(&mishaps)));
        }

        let progress = Progress::new(self.name(), self.seconds(args.seconds));
        let mut next = Instant::now();
        for step in 1..=self.seconds(args.seconds) * STEPS {
            next += STEP;
            sleep_until(next).await;
            progress.show(step, host.tally());
        }
        drop(progress);
        callers.abort_all();
        while let Some(ended) = callers.join_next().await {
            match ended {
                Err(error) if error.is_panic() => return Err(Failure::Caller(error)),
                _ => {}
            }
        }

        let outcome = Outcome::new(self.name(), args.rate, &host.arrivals(), host.tally(), &mishaps);
        if self == Self::Unlimited && outcome.stood() {
            report::say("the service stood: this machine cannot call it faster than its law; try a lower --rate");
        }
        if self == Self::Deadlines {
            report::say(&format!(
                "{:<9}       asked for peace: {}, permits refused: {}, waits dropped: {}",
                self.name(),
                host.tally().asked,
                mishaps.refusals(),
                mishaps.given_up(),
            ));
        }
        Ok((outcome, host.calls()))
    }
}

/// The law of the service; `main.rs` says why it is this one.
pub(crate) fn law(args: &Args) -> Law {
    Law::new(args.rate, args.tasks + 1, CATCH_UP)
}

/// What the service bears while it wants peace; `main.rs` says why it is this.
fn law_of_peace(args: &Args) -> Law {
    let until_heard = PEACE / 2;
    Law::new(0, args.tasks + 1, Duration::ZERO).and_once(args.rate, CATCH_UP + until_heard)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::Tally;

    #[test]
    fn a_shaped_phase_passes_if_calls_were_served_and_the_service_stood() {
        for (served, falls, passed) in [(1, 0, true), (1, 1, false), (0, 0, false)] {
            let tally = Tally { served, falls, ..Tally::default() };
            let outcome = Outcome::new("", 1, &[], tally, &Mishaps::default());
            assert_eq!(Phase::Shaped.passed(&outcome), passed, "{tally:?}");
            assert!(Phase::Unlimited.passed(&outcome));
            assert!(!Phase::Deadlines.passed(&outcome), "it did not ask for peace");
            let outcome = Outcome::new("", 1, &[], Tally { asked: 1, ..tally }, &Mishaps::default());
            assert_eq!(Phase::Deadlines.passed(&outcome), passed, "{tally:?}");
        }
    }
}
