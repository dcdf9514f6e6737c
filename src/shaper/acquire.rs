//! Waiting as a future: thin over the queue.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use pin_project_lite::pin_project;

use super::Shaper;
use super::line::Key;
use super::pace::Waitable;
use super::permit::{OwnedPermit, Permit};
use super::queue::{Entered, Grant, Step};
use crate::algorithm::Gcra;
use crate::refused::Refused;
use crate::time::Nanos;
use crate::timer::Sleep;

pin_project! {
    /// Waits for permits in first-come order. Returned by [`Shaper::acquire`] and its relatives.
    ///
    /// It does nothing until it is polled, and has its place in line from the first poll. Polled again after it was ready, it
    /// asks for another permit.
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time. Dropped in line, it leaves no trace: those behind move up. Dropped after its permit was
    /// granted and before it was polled again, the permit goes to the next in line, unless a later one has left already; then
    /// it counts as used, since another departure in its place would be one too many in that interval.
    #[must_use = "futures do nothing unless awaited"]
    pub struct Acquire<'a, A = Gcra>
    where
        A: Waitable,
    {
        ticket: Ticket<&'a Shaper<A>, A>,
        #[pin]
        sleep: Sleep,
    }
}

pin_project! {
    /// An [`Acquire`] that keeps the shaper alive itself. Returned by [`Shaper::acquire_owned`] and its relatives.
    ///
    /// # Cancel safety
    ///
    /// As [`Acquire`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct AcquireOwned<A = Gcra>
    where
        A: Waitable,
    {
        ticket: Ticket<Arc<Shaper<A>>, A>,
        #[pin]
        sleep: Sleep,
    }
}

impl<'a, A: Waitable> Acquire<'a, A> {
    pub(super) fn new(shaper: &'a Shaper<A>, n: u64) -> Self {
        Self { ticket: Ticket::new(shaper, n, None), sleep: Sleep::new() }
    }

    /// Sets a time limit, counted from the first poll. See [`Shaper::acquire_within`].
    pub fn within(mut self, limit: Duration) -> Self {
        self.ticket.limit = Some(limit);
        self
    }
}

impl<A: Waitable> AcquireOwned<A> {
    pub(super) fn new(shaper: Arc<Shaper<A>>, n: u64) -> Self {
        Self { ticket: Ticket::new(shaper, n, None), sleep: Sleep::new() }
    }

    /// Sets a time limit, counted from the first poll. See [`Shaper::acquire_within`].
    pub fn within(mut self, limit: Duration) -> Self {
        self.ticket.limit = Some(limit);
        self
    }
}

impl<'a, A: Waitable> Future for Acquire<'a, A> {
    type Output = Result<Permit<'a, A>, Refused>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        this.ticket.poll(this.sleep, cx).map_ok(|grant| Permit::new(this.ticket.shaper, grant))
    }
}

impl<A: Waitable> Future for AcquireOwned<A> {
    type Output = Result<OwnedPermit<A>, Refused>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        this.ticket.poll(this.sleep, cx).map_ok(|grant| OwnedPermit::new(Arc::clone(&this.ticket.shaper), grant))
    }
}

/// A request and its place. Dropping it gives the place up.
pub(super) struct Ticket<S: Deref<Target = Shaper<A>>, A: Waitable> {
    pub(super) shaper: S,
    n: u64,
    limit: Option<Duration>,
    stage: Stage,
}

#[derive(Clone, Copy)]
pub(super) enum Stage {
    /// Not polled yet, or answered: the next poll asks.
    Asks,
    /// In line until that instant, or until woken.
    Waits(Key, Nanos),
    /// Granted; a task may have to yield to the runtime before it is told.
    Holds(Grant),
}

impl<S: Deref<Target = Shaper<A>>, A: Waitable> Ticket<S, A> {
    pub(super) fn new(shaper: S, n: u64, limit: Option<Duration>) -> Self {
        Self { shaper, n, limit, stage: Stage::Asks }
    }

    fn poll(&mut self, mut sleep: Pin<&mut Sleep>, cx: &mut Context<'_>) -> Poll<Result<Grant, Refused>> {
        loop {
            // State first and the timer after it: what is due is granted however the timer fares.
            match self.look(|| cx.waker().clone()) {
                Ok(Stage::Holds(grant)) => {
                    ready!(yield_now_and_then(cx));
                    self.end();
                    return Poll::Ready(Ok(grant));
                }
                Ok(Stage::Waits(_, until)) => ready!(sleep.as_mut().poll_until(&self.shaper.timer, until, cx)),
                Ok(Stage::Asks) => {}
                Err(refused) => {
                    self.end();
                    return Poll::Ready(Err(refused));
                }
            }
        }
    }

    /// Asks the queue what there is to know. Takes a waker only if that is more than a permit that is free.
    pub(super) fn look(&mut self, waker: impl FnOnce() -> Waker) -> Result<Stage, Refused> {
        let Shaper { queue, timer } = &*self.shaper;
        self.stage = match self.stage {
            Stage::Holds(grant) => Stage::Holds(grant),
            Stage::Asks => {
                let now = timer.now();
                if let Some(grant) = queue.pass(self.n, now) {
                    Stage::Holds(grant)
                } else {
                    let deadline = self.limit.map(|limit| now.saturating_add(limit));
                    match queue.enter(self.n, now, deadline, waker())? {
                        Entered::Granted(grant) => Stage::Holds(grant),
                        Entered::Waits(key, until) => Stage::Waits(key, until),
                    }
                }
            }
            Stage::Waits(key, _) => match queue.step(key, timer.now(), waker()) {
                Step::Granted(grant) => Stage::Holds(grant),
                Step::Wait(until) => Stage::Waits(key, until),
                Step::Refused(refused) => return Err(refused),
            },
        };
        Ok(self.stage)
    }

    /// Its answer has been collected.
    pub(super) fn end(&mut self) {
        self.stage = Stage::Asks;
    }
}

impl<S: Deref<Target = Shaper<A>>, A: Waitable> Drop for Ticket<S, A> {
    fn drop(&mut self) {
        let Shaper { queue, timer } = &*self.shaper;
        match self.stage {
            Stage::Asks => {}
            Stage::Waits(key, _) => queue.leave(key, timer.now()),
            Stage::Holds(grant) => queue.give_back(grant, timer.now()),
        }
    }
}

/// Pending once in a while, so that a loop over a shaper with permits free does not keep the runtime's thread to itself.
#[cfg(feature = "tokio")]
fn yield_now_and_then(cx: &mut Context<'_>) -> Poll<()> {
    tokio::task::coop::poll_proceed(cx).map(|budget| budget.made_progress())
}

#[cfg(not(feature = "tokio"))]
fn yield_now_and_then(_: &mut Context<'_>) -> Poll<()> {
    Poll::Ready(())
}

impl<A: Waitable> fmt::Debug for Acquire<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire").field("permits", &self.ticket.n).finish_non_exhaustive()
    }
}

impl<A: Waitable> fmt::Debug for AcquireOwned<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcquireOwned").field("permits", &self.ticket.n).finish_non_exhaustive()
    }
}
