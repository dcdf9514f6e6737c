//! The one place that chooses between the real primitives and those of a model checker.
//!
//! All state that threads share on a decision or in the queue goes through here, so that loom and shuttle see every
//! step. The checkers' types are bent to parking_lot's signatures, never the other way round.

#[cfg(not(any(tollgate_loom, tollgate_shuttle)))]
mod real {
    pub(crate) use parking_lot::Mutex;
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
}

#[cfg(not(any(tollgate_loom, tollgate_shuttle)))]
pub(crate) use real::*;

#[cfg(tollgate_loom)]
use loom::sync as checked;
#[cfg(tollgate_shuttle)]
use shuttle::sync as checked;

#[cfg(any(tollgate_loom, tollgate_shuttle))]
mod modelled {
    use super::checked;

    use checked::MutexGuard;
    pub(crate) use checked::atomic::{AtomicBool, AtomicU64, Ordering};

    /// A mutex with parking_lot's `lock`: no poisoning.
    #[derive(Debug)]
    pub(crate) struct Mutex<T>(checked::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(checked::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
        }
    }
}

#[cfg(any(tollgate_loom, tollgate_shuttle))]
pub(crate) use modelled::*;
