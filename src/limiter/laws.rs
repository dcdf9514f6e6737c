//! The laws by name.

use super::Limiter;
use crate::algorithm::{FixedWindowLaw, Gcra, LeakyQueueLaw, SlidingCounterLaw, SlidingLogLaw};
use crate::clock::DefaultClock;

/// The token bucket, kept by GCRA: in every span of length W at most `burst + rate * W` permits pass.
///
/// GCRA, the generic cell rate algorithm, keeps one number: the time at which the bucket will be full again. It starts full,
/// refills continuously and never holds more than its burst.
///
/// Methods: see [`Limiter`].
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Quota, TokenBucket};
///
/// let api = TokenBucket::new(Quota::per_second(100).burst(2));
/// assert!(api.try_acquire_at(0).is_ok());
/// assert!(api.try_acquire_at(0).is_ok());
/// let refused = api.try_acquire_at(0).unwrap_err();
/// assert_eq!(refused.retry_after(), Some(Duration::from_millis(10)));
/// assert!(api.try_acquire_at(Duration::from_millis(10)).is_ok());
/// ```
///
/// # Mind the burst
///
/// With `Quota::per_minute(5)` five pass at once and five more come back within the minute, ten in the first
/// sixty seconds. `Quota::per_minute(4).burst(1)` lets at most five pass in any minute.
///
/// The law holds exactly, with T as it is kept, for any interleaving of threads and any times that they give: for grants in
/// the order in which they took effect, `n_i*T + ... + n_j*T <= burst*T + (now_j - now_i)`.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Quota, TokenBucket};
///
/// let bucket = TokenBucket::new(Quota::per_second(10).burst(2));
/// let admitted = [0, 0, 0, 100, 100].map(|ms| bucket.try_acquire_at(Duration::from_millis(ms)).is_ok());
/// assert_eq!(admitted, [true, true, false, true, false]);
/// ```
pub type TokenBucket<C = DefaultClock> = Limiter<Gcra, C>;

/// The leaky bucket as a meter: it leaks at the rate, each permit adds one, and what would overflow the burst is refused.
///
/// These are the decisions of the [`TokenBucket`], so it is another name for it. The leaky bucket as a *queue*, from which calls
/// leave at an even pace, is the [`Shaper`](crate::Shaper), which makes callers wait, and the [`LeakyQueue`], which tells them when.
pub type LeakyBucket<C = DefaultClock> = TokenBucket<C>;

/// The leaky bucket as a queue that tells when: each request is given the time at which it should start, one per T.
///
/// `start = max(now, free_at)`, then `free_at = start + n*T` (Turner 1986; the virtual scheduling form of ITU-T I.371). A request
/// is refused if the backlog `(free_at - now) / T`, a fraction, is the capacity or more; of n, if that with its first n - 1 is. The
/// capacity is the quota's burst, by default the permits per period.
///
/// # Examples
///
/// Two per second, and a backlog of at most five, the one that starts now included:
///
/// ```
/// use std::time::Duration;
/// use tollgate::{LeakyQueue, Nanos, Quota};
///
/// let queue = LeakyQueue::new(Quota::per_second(2).burst(5));
/// let told: Vec<_> = (0..6).map(|_| queue.schedule_at(Duration::from_secs(20)).ok()).collect();
/// let start = |ms| Some(Nanos::from_millis(ms));
/// assert_eq!(told, [start(20_000), start(20_500), start(21_000), start(21_500), start(22_000), None]);
/// let refused = queue.schedule_at(Duration::from_secs(20)).unwrap_err();
/// assert_eq!(refused.retry_after(), Some(Duration::from_nanos(1)));
/// assert_eq!(queue.schedule_at(Duration::from_millis(20_500)).ok(), start(22_500));
/// ```
///
/// The wait that a refusal tells ends a nanosecond after the place is free: a backlog of the whole capacity is one too many.
///
/// How long to wait for a start that was told:
///
/// ```
/// use tollgate::{Clock, LeakyQueue, Quota};
///
/// let queue = LeakyQueue::new(Quota::per_second(1_000).burst(5));
/// let start = queue.schedule()?;
/// std::thread::sleep(start.saturating_since(queue.clock().now()));
/// # Ok::<(), tollgate::Refused>(())
/// ```
///
/// # This one or a Shaper
///
/// Prefer a [`Shaper`](crate::Shaper): it does the waiting too. A caller that gives up leaves no hole, they leave in order,
/// and a change of the quota reaches those who wait. A start that this queue told stands, whether somebody uses it or not. It
/// is for those who have a queue or a timer of their own, or only compute, as a simulation does.
///
/// # What it has not
///
/// - No `try_acquire`: an admission without its start says nothing. No `acquire_up_to`, for the same reason.
/// - No `refund` and no `reset`: another start in the place of one that was told would be one departure too many.
///
/// # Changes
///
/// - `set_quota` keeps `free_at`, since starts that were told stand. What comes after is a T of the new quota apart, and the
///   backlog is counted in the new T. A rate of 0 serves one more at most, and a T of the quota after it follows; under
///   [`Quota::UNLIMITED`](crate::Quota::UNLIMITED) all start when what was told before is done.
/// - A pause tells nobody a start before its end, and keeps the backlog: `free_at` moves by as much. It does not move what
///   was told before.
///
/// # Exactness and cost
///
/// As for the [`TokenBucket`], whose word it is: T is an exact fraction, a start is an exchange. The capacity is at most one less
/// than [`Quota::MAX_BURST`](crate::Quota::MAX_BURST); a larger one counts as that, and at a rate of 0 more than 1 as 1.
pub type LeakyQueue<C = DefaultClock> = Limiter<LeakyQueueLaw, C>;

/// The fixed window: at most `limit` permits in each window `[k*W, (k+1)*W)`, counted from the clock's origin.
///
/// The limit is the quota's permits and W its period; a burst has no meaning here and is not looked at. One count that starts
/// anew with every window is the simplest law, and easy to explain to those who are limited: "1,000 per hour, and the next
/// window starts in ...". Windows begin at whole multiples of W since the clock's origin, the same for all limiters on a clock.
///
/// Methods: see [`Limiter`].
///
/// # Hours of the wall clock
///
/// The origin of the [`DefaultClock`] has nothing to do with the time of day. For windows that begin with the hour, in UTC, give it
/// a clock of your own:
///
/// ```
/// use std::time::SystemTime;
/// use tollgate::{Clock, FixedWindow, Nanos, Quota};
///
/// struct Unix;
///
/// impl Clock for Unix {
///     fn now(&self) -> Nanos {
///         SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().into()
///     }
/// }
///
/// let limiter = FixedWindow::with_clock(Quota::per_hour(1_000), Unix);
/// limiter.try_acquire()?;
/// # Ok::<(), tollgate::Refused>(())
/// ```
///
/// # When not to use it
///
/// Never where the limit must hold in *every* span, as for logins: twice the limit passes across the seam between two windows.
/// Five per ten seconds let these ten pass within three seconds:
///
/// ```
/// use std::time::Duration;
/// use tollgate::{FixedWindow, Quota};
///
/// let limiter = FixedWindow::new(Quota::new(5, Duration::from_secs(10))?);
/// for ms in [8_000, 8_500, 9_000, 9_200, 9_500, 10_000, 10_200, 10_400, 10_600, 10_800] {
///     assert!(limiter.try_acquire_at(Duration::from_millis(ms)).is_ok());
/// }
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
///
/// A [`SlidingLog`] holds in every span, and so do a [`TokenBucket`] with a small burst, and a [`SlidingCounter`] within its error.
///
/// # Exactness
///
/// A time in an older window than the newest that something was granted in counts as the start of that window, so a clock that
/// is set back opens no window again. W may be any span. A limit above [`Quota::MAX_BURST`](crate::Quota::MAX_BURST) counts as that.
///
/// A pause shifts the count: the window in which it ends starts with what was taken in the one in which it began.
///
/// # Cost
///
/// A grant is one exchange, without a division unless it is the first in its window. The word holds the count, in as many bits as
/// the limit needs, and the number of the window in the rest of 59 bits. When that is used up the next grant takes a lock to count
/// windows from there: for 1,000 per second after 17 million years, for limits around 2^57 every second window.
pub type FixedWindow<C = DefaultClock> = Limiter<FixedWindowLaw, C>;

/// The sliding counter: the count of this window, plus the share of the window before that the last W still reaches.
///
/// A request of n, a time e after its window began, is admitted if `previous*(W-e) + (current+n)*W <= limit*W`, compared in exact
/// integers. It smooths the seam of the [`FixedWindow`] for the price of a second count, for limits up to 2^28; CDNs
/// count like this ("How we built rate limiting capable of scaling to millions of domains", Cloudflare, 2017). The limit is the
/// quota's permits and W its period; a burst has no meaning here and is not looked at.
///
/// Methods: see [`Limiter`]. [`Snapshot::reset_after`](crate::Snapshot::reset_after) may be up to two windows: until
/// neither of the two counts.
///
/// # Examples
///
/// Ten per minute, with eight in the first minute and three in the second so far: a quarter into it the estimate is
/// 8 * 0.75 + 3 = 9, and one is left.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Quota, SlidingCounter};
///
/// let limiter = SlidingCounter::new(Quota::per_minute(10))?;
/// limiter.try_acquire_n_at(8, Duration::from_secs(30)).unwrap();
/// limiter.try_acquire_n_at(3, Duration::from_secs(75)).unwrap();
/// assert_eq!(limiter.available_at(Duration::from_secs(75)), 1);
/// assert_eq!(limiter.available_at(Duration::from_secs(90)), 3); // 8 * 0.5 + 3 = 7
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
///
/// # How far off it is
///
/// It takes the window before as spread evenly. Where that was not so, a span of W may hold up to `previous * e/W` permits more
/// than the estimate says, or `previous * (W-e)/W` fewer: in any span of W always less than twice the limit passes, and in a
/// window at most the limit. Where a limit must hold exactly, take a [`SlidingLog`] or a
/// [`TokenBucket`] with a small burst.
///
/// # Largest limit
///
/// Both counts and the number of the window are in one word, so that every decision is one exchange. The limit is at most
/// [`MAX_LIMIT`](SlidingCounter::MAX_LIMIT), 2^28 permits; above, [`QuotaError`](crate::QuotaError) says so.
///
/// # Exactness
///
/// A time in an older window than the newest that something was granted in counts as the start of that window. A pause shifts what
/// was taken: the window in which it ends starts with the estimate at its begin, rounded up, and nothing before it.
///
/// # Cost
///
/// A grant is one exchange, without a division unless it is the first in its window. When the number of the window has used up
/// its bits, the next grant takes a lock to count windows from there: for 10,000,000 per day after 5 years, for
/// 10,000,000 per second after half an hour, for the largest limit every second window.
pub type SlidingCounter<C = DefaultClock> = Limiter<SlidingCounterLaw, C>;

/// The sliding log: at most `limit` permits in every half-open span `(t-W, t]`, exactly.
///
/// It keeps the time of every permit that still counts, as a queue of timestamps does, and is the law for logins and whatever must
/// never see the limit passed. The limit is the quota's permits and W its period; a burst has no meaning here and is not looked at.
///
/// Methods: see [`Limiter`].
///
/// # Examples
///
/// Five per ten seconds, asked across the seam at which a [`FixedWindow`] lets ten pass:
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Quota, Refused, SlidingLog};
///
/// let limiter = SlidingLog::new(Quota::new(5, Duration::from_secs(10))?)?;
/// for ms in [8_000, 8_500, 9_000, 9_200, 9_500] {
///     assert!(limiter.try_acquire_at(Duration::from_millis(ms)).is_ok());
/// }
/// let refused = limiter.try_acquire_at(Duration::from_secs(10)).unwrap_err();
/// assert_eq!(refused.retry_after(), Some(Duration::from_secs(8)));
/// assert!(limiter.try_acquire_at(Duration::from_secs(18)).is_ok());
/// # Ok::<(), tollgate::QuotaError>(())
/// ```
///
/// # Memory, and when not to use it
///
/// A ring of times is allocated once, and anew only for a larger limit: 16 bytes for each permit of the limit, up to the next
/// power of two, and 1.3 KB. That is 16 MiB for the largest limit, [`MAX_LIMIT`](SlidingLog::MAX_LIMIT), 2^20 permits; above,
/// [`QuotaError`](crate::QuotaError) says so. Smaller rings of before are kept, so that a limit which rose may take twice as much,
/// and one which fell gives nothing back. For large limits a [`SlidingCounter`] needs one word, and a [`TokenBucket`] with a
/// small burst is as exact.
///
/// # Exactness
///
/// A time earlier than the last one that something was granted at counts as that one. During a pause the log's time stands
/// still: what counts when it begins counts when it ends. With another window length all that still counts is as if taken now.
/// Permits that are given back are the newest.
///
/// # Cost
///
/// A refusal of one permit is loads and takes no lock; one of more looks for what remains, in a binary search. A grant takes a short
/// lock, never across code of the caller, and writes n times.
pub type SlidingLog<C = DefaultClock> = Limiter<SlidingLogLaw, C>;
