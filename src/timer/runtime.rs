//! A sleep on the timer of the tokio runtime in which it is polled.

use crate::clock::TokioClock;
use crate::time::Nanos;
use pin_project_lite::pin_project;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::{Handle, Id};
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until};

pin_project! {
    /// A tokio sleep that is made when it is first needed, and made anew in another runtime.
    #[project = Projected]
    #[derive(Debug)]
    pub(super) enum RuntimeSleep {
        Unarmed,
        /// The runtime has no timers, or none any more.
        Without { runtime: Id },
        Armed {
            runtime: Id,
            // What the sleep is set to; `None` once it has elapsed.
            at: Option<Nanos>,
            #[pin]
            sleep: Sleep,
        },
    }
}

/// The longest wait for an instant that the platform can't represent; after it the caller sets the sleep again.
const FAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

thread_local! {
    /// The last runtime without timers that was met on this thread, so that not every wait has to find it out.
    static WITHOUT_TIMERS: Cell<Option<Id>> = const { Cell::new(None) };
}

impl RuntimeSleep {
    /// Waits for `at` on [`TokioClock`] with the timer of the current runtime; `None` if there is no such timer.
    ///
    /// `Ready` means that the timer has elapsed. Whether `at` is there is for the caller to see.
    pub(super) fn poll(mut self: Pin<&mut Self>, at: Nanos, cx: &mut Context<'_>) -> Option<Poll<()>> {
        let Ok(handle) = Handle::try_current() else {
            self.set(Self::Unarmed);
            return None;
        };
        let current = handle.id();
        if self.runtime() != Some(current) {
            self.set(Self::new_in(current, at));
        }
        let Projected::Armed { at: set_to, mut sleep, .. } = self.as_mut().project() else {
            return None;
        };
        let polled = contained(|| {
            if *set_to != Some(at) {
                sleep.as_mut().reset(deadline(at));
                *set_to = Some(at);
            }
            sleep.poll(cx)
        });
        match polled {
            Some(Poll::Ready(())) => *set_to = None,
            Some(Poll::Pending) => {}
            // The runtime has been shut down while its handle is still the current one.
            None => self.set(Self::Without { runtime: current }),
        }
        polled
    }

    fn new_in(runtime: Id, at: Nanos) -> Self {
        // A thread that is ending has no memory left; it finds out anew.
        if WITHOUT_TIMERS.try_with(Cell::get) == Ok(Some(runtime)) {
            return Self::Without { runtime };
        }
        match contained(|| sleep_until(deadline(at))) {
            Some(sleep) => Self::Armed { runtime, at: Some(at), sleep },
            None => {
                let _ = WITHOUT_TIMERS.try_with(|last| last.set(Some(runtime)));
                Self::Without { runtime }
            }
        }
    }

    fn runtime(&self) -> Option<Id> {
        match self {
            Self::Unarmed => None,
            Self::Without { runtime } | Self::Armed { runtime, .. } => Some(*runtime),
        }
    }
}

/// Polls for a thread that blocks in a task, without taking from the task's budget: a timer that finds it spent is not set, but
/// asks to be polled again once the task has yielded, and such a thread can't yield.
pub(super) fn poll_without_budget(
    mut poll: impl FnMut(&mut Context<'_>) -> Option<Poll<()>>,
    cx: &mut Context<'_>,
) -> Option<Poll<()>> {
    let poll = poll_fn(|cx| poll(cx).map_or(Poll::Ready(None), |poll| poll.map(Some)));
    match pin!(unconstrained(poll)).poll(cx) {
        Poll::Ready(ready) => ready.map(Poll::Ready),
        Poll::Pending => Some(Poll::Pending),
    }
}

fn deadline(at: Nanos) -> Instant {
    TokioClock::instant(at).unwrap_or_else(|| {
        let now = Instant::now();
        now.checked_add(FAR).unwrap_or(now)
    })
}

/// Calls `call` and returns its result, or `None` if it panicked.
///
/// tokio tells by a panic alone that a runtime was built without timers (when a sleep is made) or has been shut down (when it
/// is polled); there is no way to ask. The panic hook sees that panic. Where panics abort, such a runtime can't be waited in.
fn contained<R>(call: impl FnOnce() -> R) -> Option<R> {
    catch_unwind(AssertUnwindSafe(call)).ok()
}
