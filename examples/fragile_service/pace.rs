//! What callers wait for before each call. This is the part to copy.

use std::sync::Arc;
use std::time::Duration;

use tollgate::{Quota, Refused, Shaper};

/// The time that the shaper makes good for when timers fire late. It is the default; the law of the service counts on it.
pub(crate) const CATCH_UP: Duration = Duration::from_millis(5);

/// The pace at which tasks call.
#[derive(Clone)]
pub(crate) enum Pace {
    /// As fast as answers come.
    Unlimited,
    /// As the shaper, which all tasks share, grants it.
    Shaped(Arc<Shaper>),
}

impl Pace {
    /// Grants `rate` calls a second to all tasks together, evenly spaced, first come first served.
    pub(crate) fn shaped(rate: u64) -> Self {
        Self::Shaped(Arc::new(Shaper::builder(Quota::per_second(rate)).catch_up(CATCH_UP).build()))
    }

    /// Waits until the next call may be made.
    pub(crate) async fn permit(&self) -> Result<(), Refused> {
        match self {
            Self::Unlimited => {}
            Self::Shaped(shaper) => {
                let _permit = shaper.acquire().await?;
            }
        }
        Ok(())
    }
}
