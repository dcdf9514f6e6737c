//! The clock of limiters that are given none.

use super::Clock;
use crate::time::Nanos;

/// The fastest monotonic clock that the build offers; what limiters use when they are given none.
///
/// With the feature `quanta` (on by default) it reads the processor's time stamp counter, or the operating system's
/// monotonic clock on machines without a usable one. Without the feature it is the same as [`StdClock`](super::StdClock).
///
/// All values in a process share one origin, the first use of the clock in the process. With the counter, that first use
/// also measures the counter's speed, which takes between one and some 20 ms, and at most 200 ms: read the clock once at
/// start-up where the first decision must be quick. That measurement is off by some millionths; where a quota must hold to the
/// second over days, [`StdClock`](super::StdClock) is the better clock. The time never lies before the origin. It does not go
/// back on one processor core; between cores it is as monotonic as the machine's counters are.
///
/// # Examples
///
/// ```
/// use tollgate::{Clock, DefaultClock};
///
/// let before = DefaultClock.now();
/// assert!(DefaultClock.now() >= before);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct DefaultClock;

impl Clock for DefaultClock {
    #[inline]
    fn now(&self) -> Nanos {
        source::now()
    }
}

#[cfg(feature = "quanta")]
mod source {
    use crate::time::Nanos;
    use std::sync::LazyLock;

    /// The counter and its reading at the clock's origin.
    struct Origin {
        counter: quanta::Clock,
        raw: u64,
    }

    static ORIGIN: LazyLock<Origin> = LazyLock::new(|| {
        let counter = quanta::Clock::new();
        let raw = counter.raw();
        Origin { counter, raw }
    });

    #[inline]
    pub(super) fn now() -> Nanos {
        let Origin { counter, raw } = &*ORIGIN;
        // A counter that reads below the origin, on another core, counts as the origin.
        Nanos::new(counter.delta_as_nanos(*raw, counter.raw()))
    }
}

#[cfg(not(feature = "quanta"))]
mod source {
    use crate::clock::{Clock, StdClock};
    use crate::time::Nanos;

    #[inline]
    pub(super) fn now() -> Nanos {
        StdClock.now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_does_not_go_back() {
        let mut last = DefaultClock.now();
        for _ in 0..10_000 {
            let now = DefaultClock.now();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn all_values_share_the_origin() {
        let first = DefaultClock.now();
        let elsewhere = std::thread::spawn(|| DefaultClock.now()).join().unwrap();
        // Two origins would be apart by the time between the two first uses at least, and this one started at zero.
        assert!(elsewhere >= first);
        assert!(DefaultClock.now() >= elsewhere);
    }

    #[test]
    fn it_takes_no_room() {
        assert_eq!(size_of::<DefaultClock>(), 0);
    }
}
