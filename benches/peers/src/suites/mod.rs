//! What is measured, a suite a file. Each hands out its cases one by one, as soon as they are done.

pub(crate) mod decisions;
pub(crate) mod faults;
pub(crate) mod keyed;
pub(crate) mod keys;
pub(crate) mod pacing;
pub(crate) mod waiters;
pub(crate) mod waiting;

use std::io;

use crate::record::Case;

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    Full,
    /// Within 50 seconds.
    Quick,
    /// Just enough to run every line.
    #[cfg(test)]
    Tiny,
}

impl Size {
    /// What goes with this size.
    pub(crate) fn choose<T>(self, full: T, quick: T, _tiny: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
            #[cfg(test)]
            Self::Tiny => _tiny,
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
