//! tollgate: an in-process rate limiter.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod algorithm;
mod cell;
mod clock;
mod interval;
mod limiter;
#[cfg(tollgate_model)]
pub mod model;
mod quota;
mod refused;
mod shaper;
mod snapshot;
mod sync;
mod time;
mod timer;
mod word;

pub use algorithm::{Algorithm, Gcra};
#[cfg(feature = "tokio")]
pub use clock::TokioClock;
pub use clock::{Clock, DefaultClock, ManualClock, StdClock};
pub use limiter::{LeakyBucket, Limiter, LimiterBuilder, TokenBucket};
pub use quota::{Quota, QuotaError};
pub use refused::Refused;
pub use shaper::{Acquire, AcquireOwned, OwnedPermit, Permit, Shaper, ShaperBuilder};
pub use snapshot::Snapshot;
pub use time::Nanos;
