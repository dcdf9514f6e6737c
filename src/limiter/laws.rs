//! The laws by name.

use super::Limiter;
use crate::algorithm::Gcra;
use crate::clock::DefaultClock;

/// The token bucket, kept by GCRA: in every span of length W at most `burst + rate * W` permits pass.
///
/// GCRA, the generic cell rate algorithm, keeps one number: the time at which the bucket will be full again. It starts full,
/// refills continuously and never holds more than its burst. See [`Limiter`] for what can be asked of it.
///
/// Mind the burst: with `Quota::per_minute(5)` five pass at once and five more come back within the minute, ten in the first
/// sixty seconds. `Quota::per_minute(4).burst(1)` lets at most five pass in any minute.
///
/// The law holds exactly, with T as it is kept, for any interleaving of threads and any times that they give: for grants in
/// the order in which they took effect, `n_i*T + ... + n_j*T <= burst*T + (now_j - now_i)`.
pub type TokenBucket<C = DefaultClock> = Limiter<Gcra, C>;

/// The leaky bucket as a meter: it leaks at the rate, each permit adds one, and what would overflow the burst is refused.
///
/// These are the decisions of the [`TokenBucket`], so it is another name for it. The leaky bucket as a *queue*, which makes
/// callers wait and lets them leave at an even pace, is the [`Shaper`](crate::Shaper).
pub type LeakyBucket<C = DefaultClock> = TokenBucket<C>;
