//! What callers wait for before each call. This is the part to copy.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use tokio::time::timeout;
use tollgate::{Quota, Refused, Shaper};

/// The time that the shaper makes good for when timers fire late. It is the default; the law of the service counts on it.
pub(crate) const CATCH_UP: Duration = Duration::from_millis(5);

/// The longest `Retry-After` that is believed: a service that is out of its mind must not stop its callers for a year.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// No caller in a hurry waits longer than this.
const MOST_PATIENCE: Duration = Duration::from_secs(1);

/// The pace at which a caller calls.
#[derive(Clone)]
pub(crate) enum Pace {
    /// As fast as answers come.
    Unlimited,
    /// As the shaper, which all callers share, grants it.
    Shaped(Arc<Shaper>),
    /// The same for a caller that has no time.
    Hurried(Hurried),
}

/// Why there is no permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPermit {
    /// The shaper refused it.
    Refused(Refused),
    /// The caller dropped its wait.
    GaveUp,
}

impl Pace {
    /// Grants `rate` calls a second to all tasks together, evenly spaced, first come first served.
    pub(crate) fn shaped(rate: u64) -> Self {
        Self::Shaped(shaper(rate))
    }

    /// The same, to `tasks` callers that have no time. Their limits and moods follow from `seed`.
    pub(crate) fn hurried(rate: u64, tasks: u64, seed: u64) -> Self {
        // With all of them in line the last one waits tasks / rate. A limit is as often shorter as it is longer.
        let patience = Duration::from_secs(2 * tasks).div_f64(rate as f64).min(MOST_PATIENCE);
        Self::Hurried(Hurried { shaper: shaper(rate), patience, rng: Rng::with_seed(seed) })
    }

    /// Returns the pace of one more caller: the same shaper, and a mind of its own.
    pub(crate) fn for_another(&mut self) -> Self {
        match self {
            Self::Hurried(hurried) => Self::Hurried(Hurried { rng: hurried.rng.fork(), ..hurried.clone() }),
            shared => shared.clone(),
        }
    }

    /// Waits until the next call may be made.
    pub(crate) async fn permit(&mut self) -> Result<(), NoPermit> {
        match self {
            Self::Unlimited => Ok(()),
            Self::Shaped(shaper) => {
                let _permit = shaper.acquire().await.map_err(NoPermit::Refused)?;
                Ok(())
            }
            Self::Hurried(hurried) => hurried.permit().await,
        }
    }

    /// Obeys a `Retry-After`: holds all callers for that long.
    pub(crate) fn pause_for(&self, span: Duration) {
        match self {
            Self::Unlimited => {}
            Self::Shaped(shaper) | Self::Hurried(Hurried { shaper, .. }) => shaper.pause_for(span),
        }
    }
}

fn shaper(rate: u64) -> Arc<Shaper> {
    Arc::new(Shaper::builder(Quota::per_second(rate)).catch_up(CATCH_UP).max_pause(MAX_PAUSE).build())
}

/// Waits with a random limit each time, and sometimes gives up before it is over.
#[derive(Clone)]
pub(crate) struct Hurried {
    shaper: Arc<Shaper>,
    patience: Duration,
    rng: Rng,
}

impl Hurried {
    async fn permit(&mut self) -> Result<(), NoPermit> {
        let limit = self.patience.mul_f64(self.rng.f64());
        let wait = self.shaper.acquire_within(limit);
        let answer = if self.rng.u8(..) < 64 {
            // One in four loses interest. A wait may be dropped at any moment: it leaves no hole and no debt.
            timeout(limit.mul_f64(self.rng.f64()), wait).await.map_err(|_| NoPermit::GaveUp)?
        } else {
            wait.await
        };
        let _permit = answer.map_err(NoPermit::Refused)?;
        Ok(())
    }
}
