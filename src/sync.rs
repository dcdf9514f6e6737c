//! The one place that chooses between the real primitives and those of a model checker.
//!
//! All state that threads share on a decision or in the queue, and all by which they wait, goes through here, so that loom and
//! shuttle see every step. The checkers' types are bent to parking_lot's signatures, never the other way round.

#[cfg(not(any(tollgate_loom, tollgate_shuttle)))]
mod real {
    pub(crate) use parking_lot::{Condvar, Mutex};
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    pub(crate) use std::thread_local;
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

    pub(crate) use checked::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::ops::{Deref, DerefMut};
    use std::sync::PoisonError;
    use std::time::Duration;

    #[cfg(tollgate_loom)]
    pub(crate) use loom::thread_local;
    #[cfg(tollgate_shuttle)]
    pub(crate) use shuttle::thread_local;

    /// A mutex with parking_lot's `lock`: no poisoning.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(checked::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(checked::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            MutexGuard(Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)))
        }
    }

    /// Holds a lock. Empty only inside [`Condvar::wait_for`].
    pub(crate) struct MutexGuard<'a, T>(Option<checked::MutexGuard<'a, T>>);

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            self.0.as_deref().expect("held")
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.0.as_deref_mut().expect("held")
        }
    }

    /// A condition variable with parking_lot's `wait_for`.
    #[derive(Debug, Default)]
    pub(crate) struct Condvar(checked::Condvar);

    impl Condvar {
        /// Waits for a notification alone: no time passes in a model.
        pub(crate) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _longest: Duration) {
            let held = guard.0.take().expect("held");
            guard.0 = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
        }

        pub(crate) fn notify_one(&self) {
            self.0.notify_one();
        }
    }
}

#[cfg(any(tollgate_loom, tollgate_shuttle))]
pub(crate) use modelled::*;
