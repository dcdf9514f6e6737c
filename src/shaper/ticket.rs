//! A request and its place in line: what futures and threads that wait have in common.

use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use super::line::Key;
use super::pace::Law;
use super::queue::{Entered, Grant, Queue, Step};
use crate::refused::Refused;
use crate::time::Nanos;

/// Where tickets are drawn: a queue, and a clock by which those who wait sleep.
pub(crate) trait Desk {
    type Law: Law;
    type Sleep;

    fn queue(&self) -> &Queue<Self::Law>;

    fn now(&self) -> Nanos;

    /// Is ready when the desk's clock has reached `until`, else wakes the task when it does. [`Nanos::MAX`] is never reached.
    fn poll_until(&self, sleep: Pin<&mut Self::Sleep>, until: Nanos, cx: &mut Context<'_>) -> Poll<()>;
}

/// A request and its place. Dropping it gives the place up.
pub(crate) struct Ticket<D: Desk> {
    pub(super) desk: D,
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

impl<D: Desk> Ticket<D> {
    pub(crate) fn new(desk: D, n: u64, limit: Option<Duration>) -> Self {
        Self { desk, n, limit, stage: Stage::Asks }
    }

    pub(super) fn permits(&self) -> u64 {
        self.n
    }

    /// Sets a time limit, counted from the first look.
    pub(super) fn set_limit(&mut self, limit: Duration) {
        self.limit = Some(limit);
    }

    pub(crate) fn poll(&mut self, mut sleep: Pin<&mut D::Sleep>, cx: &mut Context<'_>) -> Poll<Result<Grant, Refused>> {
        loop {
            // State first and the timer after it: what is due is granted however the timer fares.
            match self.look(|| cx.waker().clone()) {
                Ok(Stage::Holds(grant)) => {
                    ready!(yield_now_and_then(cx));
                    self.end();
                    return Poll::Ready(Ok(grant));
                }
                Ok(Stage::Waits(_, until)) => ready!(self.desk.poll_until(sleep.as_mut(), until, cx)),
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
        let (queue, now) = (self.desk.queue(), || self.desk.now());
        self.stage = match self.stage {
            Stage::Holds(grant) => Stage::Holds(grant),
            Stage::Asks => {
                let now = now();
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
            Stage::Waits(key, _) => match queue.step(key, now(), waker()) {
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

impl<D: Desk> Drop for Ticket<D> {
    fn drop(&mut self) {
        let (queue, now) = (self.desk.queue(), || self.desk.now());
        match self.stage {
            Stage::Asks => {}
            Stage::Waits(key, _) => queue.leave(key, now()),
            Stage::Holds(grant) => queue.give_back(grant, now()),
        }
    }
}

/// Pending once in a while, so that a loop over permits that are free does not keep the runtime's thread to itself.
#[cfg(feature = "tokio")]
pub(crate) fn yield_now_and_then(cx: &mut Context<'_>) -> Poll<()> {
    tokio::task::coop::poll_proceed(cx).map(|budget| budget.made_progress())
}

#[cfg(not(feature = "tokio"))]
pub(crate) fn yield_now_and_then(_: &mut Context<'_>) -> Poll<()> {
    Poll::Ready(())
}
