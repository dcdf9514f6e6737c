//! Waiting as a thread: the same line as the futures', without a runtime.

use std::cell::Cell;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

use super::Shaper;
use super::pace::Waitable;
use super::permit::Permit;
use super::queue::Grant;
use super::ticket::{Stage, Ticket};
use crate::refused::Refused;
use crate::sync::{Condvar, Mutex, thread_local};
use crate::timer::Sleep;

/// Waits on this thread.
#[inline]
pub(super) fn acquire<A: Waitable>(
    shaper: &Shaper<A>,
    n: u64,
    limit: Option<Duration>,
) -> Result<Permit<'_, A>, Refused> {
    // A free permit needs nothing of what a wait needs.
    match shaper.queue.pass(n, shaper.timer.now()) {
        Some(grant) => Ok(Permit::new(shaper, grant)),
        None => acquire_slow(shaper, n, limit),
    }
}

#[cold]
fn acquire_slow<A: Waitable>(shaper: &Shaper<A>, n: u64, limit: Option<Duration>) -> Result<Permit<'_, A>, Refused> {
    let mut ticket = Ticket::new(shaper, n, limit);
    let answer = wait(&mut ticket);
    ticket.end();
    answer.map(|grant| Permit::new(shaper, grant))
}

fn wait<A: Waitable>(ticket: &mut Ticket<&Shaper<A>>) -> Result<Grant, Refused> {
    let mut bed = None;
    let mut sleep = pin!(Sleep::new());
    // The instant for which it has slept in full, if that was not enough.
    let mut slept_for = None;
    loop {
        // As a future does when it is polled. Woken for no reason, it looks and sleeps on.
        match ticket.look(|| bed.get_or_insert_with(Bed::of_this_thread).waker())? {
            Stage::Holds(grant) => return Ok(grant),
            Stage::Asks => {}
            Stage::Waits(_, until) => {
                let (bed, in_vain) = (bed.get_or_insert_with(Bed::of_this_thread), slept_for == Some(until));
                let rest = sleep.as_mut().rest_until(&ticket.desk.timer, until, in_vain, &bed.waker());
                slept_for = (!bed.parker.park(rest)).then_some(until);
            }
        }
    }
}

/// Where a thread sleeps until it is woken.
///
/// `std::thread::park` would do but for its token, which belongs to the whole thread: a wait would take one that was meant for
/// somebody else on this thread, who would then sleep for ever.
///
/// # No wake-up is lost
///
/// The waker is in the line before the thread sleeps. `woken` is set and read under the lock: If the waker comes first, the
/// thread sees it and does not sleep. If the thread comes first, it sleeps, and is notified.
#[derive(Debug, Default)]
struct Parker {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Parker {
    /// Sleeps until woken, but no longer than that. True if it was woken since the last sleep; it may end for no reason too.
    fn park(&self, longest: Duration) -> bool {
        let mut woken = self.woken.lock();
        if !*woken && longest > Duration::ZERO {
            self.changed.wait_for(&mut woken, longest);
        }
        std::mem::take(&mut *woken)
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        *self.woken.lock() = true;
        self.changed.notify_one();
    }
}

/// The parker of a thread, for one wait.
struct Bed {
    parker: Arc<Parker>,
}

thread_local! {
    /// Kept for the next wait on this thread. Away while one is under way, so that one inside it, in the waker of a task say,
    /// takes another and does not hear what was meant for this one.
    static SPARE: Cell<Option<Arc<Parker>>> = Cell::default();
}

impl Bed {
    fn of_this_thread() -> Self {
        // A thread that is ending has no memory left, and makes one for this wait.
        let spare = SPARE.try_with(Cell::take).ok().flatten();
        Self { parker: spare.unwrap_or_default() }
    }

    fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.parker))
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        // One that was woken after its wait was over ends the first sleep of the next, which then looks once more.
        let _ = SPARE.try_with(|spare| spare.set(Some(Arc::clone(&self.parker))));
    }
}
