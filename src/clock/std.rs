//! The operating system's monotonic clock.

use super::Clock;
use crate::time::Nanos;
use std::sync::LazyLock;
use std::time::Instant;

static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The monotonic clock of the standard library, [`std::time::Instant`].
///
/// All values in a process share one origin, the first use of the clock in the process. The time never goes back.
///
/// # Examples
///
/// ```
/// use tollgate::{Clock, StdClock};
///
/// let before = StdClock.now();
/// assert!(StdClock.now() >= before);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct StdClock;

impl Clock for StdClock {
    #[inline]
    fn now(&self) -> Nanos {
        // The origin first: its first reading must not be later than the one that asked for it.
        let origin = *ORIGIN;
        Nanos::from(Instant::now().saturating_duration_since(origin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_does_not_go_back() {
        let mut last = StdClock.now();
        for _ in 0..10_000 {
            let now = StdClock.now();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn it_takes_no_room() {
        assert_eq!(size_of::<StdClock>(), 0);
    }
}
