//! Wakers collected under a lock, to be called after it.

use smallvec::SmallVec;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
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

    /// Calls every waker in order. If some panic, the others are called all the same, and the first panic goes on at the
    /// end; on a thread that is unwinding already it ends here, since a second one would abort the process.
    pub(crate) fn wake_all(self) {
        let mut first_panic = None;
        for waker in self.0 {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
                first_panic.get_or_insert(panic);
            }
        }
        if let Some(panic) = first_panic {
            if !std::thread::panicking() {
                resume_unwind(panic);
            }
        }
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
        let panic = catch_unwind(AssertUnwindSafe(|| list.wake_all())).unwrap_err();
        assert_eq!(count.get(), 3);
        assert_eq!(panic.downcast_ref(), Some(&"woken"));
    }

    #[test]
    fn a_panic_while_unwinding_does_not_abort() {
        struct WakeOnDrop(Option<WakeList>);
        impl Drop for WakeOnDrop {
            fn drop(&mut self) {
                self.0.take().unwrap().wake_all();
            }
        }
        let mut list = WakeList::new();
        list.push(PanicOnWake::waker());
        let guard = WakeOnDrop(Some(list));
        let panic = catch_unwind(AssertUnwindSafe(move || {
            let _guard = guard;
            resume_unwind(Box::new("outer"));
        }));
        assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"outer"));
    }
}
