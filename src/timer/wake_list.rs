//! Wakers collected under a lock, to be called after it.

use smallvec::SmallVec;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Wakers to call once the lock under which they were collected is free.
#[derive(Debug, Default)]
pub(crate) struct WakeList(SmallVec<[Waker; 16]>);

impl WakeList {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn push(&mut self, waker: Waker) {
        self.0.push(waker);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Calls every waker in order. A panic of one of them ends here, after the panic hook has reported it: it must keep
    /// neither the others from being woken nor the caller from what it is about to learn.
    pub(crate) fn wake_all(self) {
        for waker in self.0 {
            contained(|| waker.wake());
        }
    }
}

/// Runs code of an executor, which may panic.
pub(crate) fn contained(call: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(call)) {
        // Not dropped: a value made for the purpose could panic again.
        std::mem::forget(panic);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timer::test_wakers::{Count, PanicOnWake};

    #[test]
    fn a_waker_that_panics_does_not_keep_the_others_from_being_woken() {
        let count = Count::new();
        let mut list = WakeList::new();
        list.push(count.waker());
        list.push(PanicOnWake::waker());
        list.push(count.waker());
        list.push(PanicOnWake::waker());
        list.push(count.waker());
        list.wake_all();
        assert_eq!(count.get(), 3);
    }
}
