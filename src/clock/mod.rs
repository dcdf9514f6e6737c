//! The clocks: what time it is, and nothing else.

mod coarse;
mod default;
mod manual;
mod std;
#[cfg(feature = "tokio")]
mod tokio;

pub use self::coarse::CoarseClock;
pub use self::default::DefaultClock;
pub use self::manual::ManualClock;
pub use self::std::StdClock;
#[cfg(feature = "tokio")]
pub use self::tokio::TokioClock;

use crate::time::Nanos;
use ::std::sync::Arc;

/// Tells the time.
///
/// The origin is the clock's own business, only differences count. A clock should not go back; if it does, nothing is
/// admitted twice and nothing panics, but waits become longer by the step.
///
/// # Examples
///
/// ```
/// use tollgate::{Clock, Nanos};
///
/// /// Seconds of video already played: a clock that stands still while the player is paused.
/// struct Playback(u64);
///
/// impl Clock for Playback {
///     fn now(&self) -> Nanos {
///         Nanos::from_secs(self.0)
///     }
/// }
///
/// assert_eq!(Playback(2).now(), Nanos::from_secs(2));
/// ```
pub trait Clock {
    /// Returns the time that has passed since the clock's origin.
    fn now(&self) -> Nanos;

    /// The [`ManualClock`] that this one reads, if it is one or stands for one: moving that wakes the waits that are due on this.
    /// `None`, which is the default, for a clock that moves by itself: waits on it rest for as long as there is to wait, and then
    /// look again.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Clock, DefaultClock, ManualClock, Nanos};
    ///
    /// /// The clock of an application, which its tests move by hand.
    /// enum AppClock {
    ///     Real,
    ///     Test(ManualClock),
    /// }
    ///
    /// impl Clock for AppClock {
    ///     fn now(&self) -> Nanos {
    ///         match self {
    ///             Self::Real => DefaultClock.now(),
    ///             Self::Test(clock) => clock.now(),
    ///         }
    ///     }
    ///
    ///     fn manual(&self) -> Option<&ManualClock> {
    ///         match self {
    ///             Self::Real => None,
    ///             Self::Test(clock) => Some(clock),
    ///         }
    ///     }
    /// }
    /// # assert!(AppClock::Real.manual().is_none() && AppClock::Real.now() < Nanos::MAX);
    /// # assert_eq!(AppClock::Test(ManualClock::new()).now(), Nanos::ZERO);
    /// # assert!(AppClock::Test(ManualClock::new()).manual().is_some());
    /// ```
    fn manual(&self) -> Option<&ManualClock> {
        None
    }
}

impl<C: Clock + ?Sized> Clock for &C {
    fn now(&self) -> Nanos {
        (**self).now()
    }

    fn manual(&self) -> Option<&ManualClock> {
        (**self).manual()
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Nanos {
        (**self).now()
    }

    fn manual(&self) -> Option<&ManualClock> {
        (**self).manual()
    }
}

impl<C: Clock + ?Sized> Clock for Box<C> {
    fn now(&self) -> Nanos {
        (**self).now()
    }

    fn manual(&self) -> Option<&ManualClock> {
        (**self).manual()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_and_boxes_of_a_clock_are_clocks() {
        fn read(clock: impl Clock) -> Nanos {
            assert_eq!(clock.manual().map(ManualClock::now), Some(clock.now()));
            clock.now()
        }
        let clock = ManualClock::at(Nanos::new(7));
        assert_eq!(read(&clock), Nanos::new(7));
        assert_eq!(read(Arc::new(clock.clone())), Nanos::new(7));
        assert_eq!(read(Box::new(clock.clone())), Nanos::new(7));
        assert_eq!(read(Box::new(clock) as Box<dyn Clock>), Nanos::new(7));
    }
}
