//! What is measured, a suite a file. Each hands out its cases one by one, as soon as they are done.

pub(crate) mod decisions;
pub(crate) mod faults;
pub(crate) mod keyed;
pub(crate) mod keys;
pub(crate) mod pacing;
pub(crate) mod waiters;
pub(crate) mod waiting;

use std::io;
use std::time::{Duration, Instant};

use crate::record::Case;

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    Full,
    /// In little time: nothing is measured any more at that instant.
    Quick {
        until: Instant,
    },
    /// Just enough to run every line.
    #[cfg(test)]
    Tiny,
}

impl Size {
    /// A suite that begins now and ends within 50 seconds.
    pub(crate) fn quick() -> Self {
        Self::Quick { until: Instant::now() + Duration::from_secs(45) }
    }

    pub(crate) fn is_quick(self) -> bool {
        matches!(self, Self::Quick { .. })
    }

    /// What goes with this size.
    pub(crate) fn choose<T>(self, full: T, quick: T, _tiny: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick { .. } => quick,
            #[cfg(test)]
            Self::Tiny => _tiny,
        }
    }

    /// How long a measurement that begins now may take, at most `most`.
    pub(crate) fn limit(self, most: Duration) -> Duration {
        match self {
            Self::Quick { until } => most.min(until.saturating_duration_since(Instant::now())),
            _ => most,
        }
    }
}

/// Takes each case as soon as it is done.
pub(crate) type Emit<'a> = &'a mut dyn FnMut(Case) -> io::Result<()>;

/// All cases of a suite in its smallest size.
#[cfg(test)]
pub(crate) fn tiny(run: impl FnOnce(Size, Emit<'_>) -> io::Result<()>) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut keep = |case| {
        cases.push(case);
        Ok(())
    };
    run(Size::Tiny, &mut keep).expect("nothing is written");
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quick_measurement_has_the_rest_of_the_time_at_most() {
        let (short, long) = (Duration::from_millis(1), Duration::from_secs(3_600));
        assert_eq!((Size::Full.limit(long), Size::quick().limit(short)), (long, short));
        assert!(Size::quick().limit(long) <= Duration::from_secs(45));
        assert_eq!(Size::Quick { until: Instant::now() }.limit(long), Duration::ZERO);
    }
}
