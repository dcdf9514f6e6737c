//! Wakers that are due, collected under the lock and called after it.

use std::task::Waker;

use smallvec::SmallVec;

use crate::timer::{WakeList, contained};

/// What is to be done with wakers once no lock is held, since it runs code of the executor.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    due: WakeList,
    spent: SmallVec<[Waker; 2]>,
}

impl Wakers {
    /// To be called.
    pub(crate) fn wake(&mut self, waker: Option<Waker>) {
        if let Some(waker) = waker {
            self.due.push(waker);
        }
    }

    /// To be dropped without a call.
    pub(crate) fn discard(&mut self, waker: Option<Waker>) {
        self.spent.extend(waker);
    }

    /// Calls those that are due, in order, and drops the others. A panic of one ends with it: the caller is about to learn of
    /// its own permit, which must not be lost to another task's waker.
    pub(crate) fn call(self) {
        self.due.wake_all();
        for waker in self.spent {
            contained(|| drop(waker));
        }
    }
}
