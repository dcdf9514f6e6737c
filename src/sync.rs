//! The one place that chooses between the real primitives and those of a model checker.
//!
//! All state that threads share on a decision or in the queue, and all by which they wait, goes through here, so that loom and
//! shuttle see every step. The checkers' types are bent to parking_lot's signatures, never the other way round.

#[cfg(not(any(tollgate_loom, tollgate_shuttle)))]
mod real {
    pub(crate) use parking_lot::{Condvar, Mutex, RwLock};
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
    pub(crate) use std::thread_local;

    /// How many threads run at once.
    pub(crate) fn parallelism() -> usize {
        std::thread::available_parallelism().map_or(1, Into::into)
    }
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

    pub(crate) use checked::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
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

    /// A lock for one writer or many readers, without poisoning.
    #[derive(Debug, Default)]
    pub(crate) struct RwLock<T>(checked::RwLock<T>);

    impl<T> RwLock<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(checked::RwLock::new(value))
        }

        pub(crate) fn read(&self) -> checked::RwLockReadGuard<'_, T> {
            self.0.read().unwrap_or_else(PoisonError::into_inner)
        }

        pub(crate) fn write(&self) -> checked::RwLockWriteGuard<'_, T> {
            self.0.write().unwrap_or_else(PoisonError::into_inner)
        }
    }

    /// The least at which state is spread over several locks.
    pub(crate) fn parallelism() -> usize {
        1
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
