//! Waiting as a future: thin over the queue.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;

use super::Shaper;
use super::pace::Waitable;
use super::permit::{OwnedPermit, Permit};
use super::queue::Queue;
use super::ticket::{Desk, Ticket};
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
        ticket: Ticket<&'a Shaper<A>>,
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
        ticket: Ticket<Arc<Shaper<A>>>,
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
        self.ticket.set_limit(limit);
        self
    }
}

impl<A: Waitable> AcquireOwned<A> {
    pub(super) fn new(shaper: Arc<Shaper<A>>, n: u64) -> Self {
        Self { ticket: Ticket::new(shaper, n, None), sleep: Sleep::new() }
    }

    /// Sets a time limit, counted from the first poll. See [`Shaper::acquire_within`].
    pub fn within(mut self, limit: Duration) -> Self {
        self.ticket.set_limit(limit);
        self
    }
}

impl<'a, A: Waitable> Future for Acquire<'a, A> {
    type Output = Result<Permit<'a, A>, Refused>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        this.ticket.poll(this.sleep, cx).map_ok(|grant| Permit::new(this.ticket.desk, grant))
    }
}

impl<A: Waitable> Future for AcquireOwned<A> {
    type Output = Result<OwnedPermit<A>, Refused>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        this.ticket.poll(this.sleep, cx).map_ok(|grant| OwnedPermit::new(Arc::clone(&this.ticket.desk), grant))
    }
}

/// A shaper, borrowed or shared.
impl<S: Deref<Target = Shaper<A>>, A: Waitable> Desk for S {
    type Law = A;
    type Sleep = Sleep;

    fn queue(&self) -> &Queue<A> {
        &self.queue
    }

    fn now(&self) -> Nanos {
        self.timer.now()
    }

    fn poll_until(&self, sleep: Pin<&mut Sleep>, until: Nanos, cx: &mut Context<'_>) -> Poll<()> {
        sleep.poll_until(&self.timer, until, cx)
    }
}

impl<A: Waitable> fmt::Debug for Acquire<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire").field("permits", &self.ticket.permits()).finish_non_exhaustive()
    }
}

impl<A: Waitable> fmt::Debug for AcquireOwned<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcquireOwned").field("permits", &self.ticket.permits()).finish_non_exhaustive()
    }
}
