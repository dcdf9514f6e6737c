//! The answer that is not a permit.

use std::fmt;
use std::time::Duration;

/// Why a request was not admitted, and when to come back.
///
/// It is a small `Copy` value that implements [`std::error::Error`]; [`Display`](fmt::Display) says the numbers. A refused
/// request has changed nothing.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Quota, Refused, TokenBucket};
///
/// let bucket = TokenBucket::new(Quota::per_second(5).burst(1));
/// bucket.try_acquire_at(0)?;
///
/// let refused = bucket.try_acquire_at(0).unwrap_err();
/// assert_eq!(refused.retry_after(), Some(Duration::from_millis(200)));
/// assert_eq!(refused.retry_after_secs(), Some(1)); // for an HTTP Retry-After header
///
/// let refused = bucket.try_acquire_n_at(2, 0).unwrap_err();
/// assert_eq!(refused, Refused::ExceedsCapacity { asked: 2, capacity: 1 });
/// assert_eq!(refused.retry_after(), None);
/// # Ok::<(), Refused>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// Not enough permits yet.
    TooSoon {
        /// The permits that were asked for.
        asked: u64,
        /// The most that would have been admitted at that instant; 0 while others wait in line.
        remaining: u64,
        /// The time until as many are there. With nobody else asking, the request is admitted after exactly this time and
        /// not a nanosecond before.
        retry_after: Duration,
    },
    /// More permits than can ever be admitted at once under this quota. Waiting does not help; ask for fewer.
    ExceedsCapacity {
        /// The permits that were asked for.
        asked: u64,
        /// The most that can be asked for.
        capacity: u64,
    },
    /// The rate is 0 and not enough permits are left. Only a change of the quota can help.
    Never {
        /// The permits that were asked for.
        asked: u64,
        /// The permits that are left; 0 while others wait in line or a pause lasts.
        remaining: u64,
    },
    /// A pause lasts: nothing is admitted before its end.
    Paused {
        /// The permits that were asked for.
        asked: u64,
        /// The time until as many are there: until the end of the pause, or longer if too few were left when it began. For a
        /// request with a deadline, the wait that it would have been.
        retry_after: Duration,
    },
    /// As many callers wait already as the queue was built for.
    QueueFull {
        /// The callers that wait.
        waiting: usize,
        /// The time after which this request would have been granted behind them; `None` if never at this quota.
        estimated_wait: Option<Duration>,
    },
    /// The place in line lies beyond the deadline. Answered on arrival; or at the deadline, if the place moved back later.
    DeadlineTooSoon {
        /// The wait that it would have been; zero if the slot had come and gone when the answer was found.
        wait: Duration,
    },
    /// The shaper was closed.
    Closed,
    /// A [`Keyed`](crate::Keyed) has no place for a new key: all that it might take are those of busy keys.
    NoRoom {
        /// The busy keys for which the table was built.
        max_keys: usize,
        /// The time until the first of those keys is at rest, if it takes nothing more; `None` if never, or if somebody waits on each of
        /// them.
        retry_after: Option<Duration>,
    },
}

impl Refused {
    /// The time after which it is worth asking again, never too early. `None` if no time helps: closed, exceeds capacity,
    /// never. For a full queue and a deadline too soon it is the wait that this request would have had; with luck an earlier one
    /// is admitted too.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match *self {
            Self::TooSoon { retry_after, .. } | Self::Paused { retry_after, .. } => Some(retry_after),
            Self::QueueFull { estimated_wait: wait, .. } | Self::NoRoom { retry_after: wait, .. } => wait,
            Self::DeadlineTooSoon { wait } => Some(wait),
            Self::ExceedsCapacity { .. } | Self::Never { .. } | Self::Closed => None,
        }
    }

    /// [`retry_after`](Self::retry_after) in whole seconds for a `Retry-After` header: rounded up, never 0, so that a client
    /// that waits this long is never early.
    #[must_use]
    pub const fn retry_after_secs(&self) -> Option<u64> {
        let Some(wait) = self.retry_after() else { return None };
        let secs = wait.as_secs().saturating_add((wait.subsec_nanos() > 0) as u64);
        Some(if secs == 0 { 1 } else { secs })
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooSoon { asked, remaining, retry_after } => {
                write!(f, "too soon: {asked} asked, {remaining} left, retry after {retry_after:?}")
            }
            Self::ExceedsCapacity { asked, capacity } => {
                write!(f, "exceeds capacity: {asked} asked, at most {capacity} can be admitted at once")
            }
            Self::Never { asked, remaining } => {
                write!(f, "never at this quota: {asked} asked, {remaining} left and the rate is 0")
            }
            Self::Paused { asked, retry_after } => {
                write!(f, "paused: {asked} asked, retry after {retry_after:?}")
            }
            Self::QueueFull { waiting, estimated_wait: Some(wait) } => {
                write!(f, "queue full: {waiting} waiting, estimated wait {wait:?}")
            }
            Self::QueueFull { waiting, estimated_wait: None } => {
                write!(f, "queue full: {waiting} waiting, and no end in sight at this quota")
            }
            Self::DeadlineTooSoon { wait } => write!(f, "deadline too soon: the wait would be {wait:?}"),
            Self::Closed => write!(f, "closed"),
            Self::NoRoom { max_keys, retry_after: Some(wait) } => {
                write!(f, "no room for a new key beside {max_keys} busy ones, retry after {wait:?}")
            }
            Self::NoRoom { max_keys, retry_after: None } => {
                write!(f, "no room for a new key beside {max_keys} busy ones, none of which will be at rest")
            }
        }
    }
}

impl std::error::Error for Refused {}
