//! Wakers for the tests of the timers.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Wake, Waker};
use std::thread::Thread;

/// Counts how often its wakers were woken.
pub(crate) struct Count(AtomicUsize);

impl Count {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(AtomicUsize::new(0)))
    }

    pub(crate) fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::clone(self))
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Notes the names of its wakers in the order in which they were woken.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<&'static str>>>);

impl Log {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn waker(&self, name: &'static str) -> Waker {
        struct Named(Log, &'static str);
        impl Wake for Named {
            fn wake(self: Arc<Self>) {
                self.0.0.lock().push(self.1);
            }
        }
        Waker::from(Arc::new(Named(self.clone(), name)))
    }

    pub(crate) fn get(&self) -> Vec<&'static str> {
        self.0.lock().clone()
    }
}

/// Panics when woken, without a word on the terminal.
pub(crate) struct PanicOnWake;

impl PanicOnWake {
    pub(crate) fn waker() -> Waker {
        Waker::from(Arc::new(Self))
    }
}

impl Wake for PanicOnWake {
    fn wake(self: Arc<Self>) {
        std::panic::resume_unwind(Box::new("woken"));
    }
}

/// Lets the thread that made it wait for its wakers.
pub(crate) struct Unpark {
    thread: Thread,
    woken: AtomicBool,
}

impl Unpark {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { thread: std::thread::current(), woken: AtomicBool::new(false) })
    }

    pub(crate) fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::clone(self))
    }

    /// Waits until a waker was woken since the last wait.
    pub(crate) fn wait(&self) {
        while !self.woken.swap(false, Ordering::Acquire) {
            std::thread::park();
        }
    }
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}
