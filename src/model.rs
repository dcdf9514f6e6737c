//! What the model checkers drive: the queue of a shaper with the time given, and without its futures.
//!
//! Only the loom and shuttle flavours have this module. The limiter needs none: its public methods take the time.

use std::task::Waker;
use std::time::Duration;

use crate::algorithm::Gcra;
use crate::clock::Clock;
use crate::limiter::Limiter;
use crate::quota::Quota;
use crate::refused::Refused;
use crate::shaper::line::Key;
use crate::shaper::pace::{MaxN, Settings, UnsaidBurst, Waitable};
use crate::shaper::queue::{Entered, Grant, Queue, Step};
use crate::time::Nanos;

/// A queue in front of a law's word.
#[derive(Debug)]
pub struct Shaping<A = Gcra>(Queue<A>);

/// A grant, of as many permits as it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit(Grant);

impl Permit {
    /// How many permits it is, perhaps none.
    #[must_use]
    pub fn permits(&self) -> u64 {
        self.0.permits()
    }
}

/// A place in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(Key);

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Granted; the place, if there was one, is given up.
    Granted(Permit),
    /// Refused; the place, if there was one, is given up.
    Refused(Refused),
    /// In line: ask again at that instant, or when woken.
    Waits(Place, Nanos),
}

impl Shaping {
    /// A queue without bound at rest.
    #[must_use]
    pub fn new(quota: Quota, catch_up: Duration) -> Self {
        Self::bounded(quota, catch_up, usize::MAX)
    }

    /// A queue for `places` waiters.
    #[must_use]
    pub fn bounded(quota: Quota, catch_up: Duration, places: usize) -> Self {
        let settings =
            Settings { places, max_n: MaxN::Unsaid, catch_up, max_pause: Duration::MAX, unsaid: UnsaidBurst::One };
        Self(Queue::new(Gcra::for_queue(quota, &settings, None, Nanos::ZERO), settings))
    }
}

impl<A: Waitable> Shaping<A> {
    /// A queue in front of a limiter's law, whose clock goes on, for `places` waiters.
    pub fn over<C: Clock>(limiter: Limiter<A, C>, places: usize) -> Self {
        let (law, clock) = limiter.into_parts();
        let settings = Settings {
            places,
            max_n: MaxN::Unsaid,
            catch_up: Duration::ZERO,
            max_pause: Duration::MAX,
            unsaid: UnsaidBurst::Period,
        };
        Self(Queue::over(law, settings, clock.now(), clock.now()))
    }

    /// A request that does not wait.
    pub fn try_acquire(&self, n: u64, now: u64) -> Answer {
        self.0.try_acquire(n, now.into()).map_or_else(Answer::Refused, |grant| Answer::Granted(Permit(grant)))
    }

    /// What is there, `n` at most, without a wait.
    #[must_use]
    pub fn acquire_up_to(&self, n: u64, now: u64) -> Permit {
        Permit(self.0.acquire_up_to(n, now.into()))
    }

    /// A request as a future makes it on its first poll: past the line if nobody waits, else into it. A deadline of `u64::MAX` is
    /// none.
    pub fn enter(&self, n: u64, now: u64, deadline: u64, waker: Waker) -> Answer {
        if let Some(grant) = self.0.pass(n, now.into()) {
            return Answer::Granted(Permit(grant));
        }
        match self.0.enter(n, now.into(), (deadline != u64::MAX).then_some(deadline.into()), waker) {
            Ok(Entered::Granted(grant)) => Answer::Granted(Permit(grant)),
            Ok(Entered::Waits(key, until)) => Answer::Waits(Place(key), until),
            Err(refused) => Answer::Refused(refused),
        }
    }

    /// A later poll.
    pub fn step(&self, place: Place, now: u64, waker: Waker) -> Answer {
        match self.0.step(place.0, now.into(), waker) {
            Step::Granted(grant) => Answer::Granted(Permit(grant)),
            Step::Refused(refused) => Answer::Refused(refused),
            Step::Wait(until) => Answer::Waits(place, until),
        }
    }

    /// The drop of a future that has a place.
    pub fn leave(&self, place: Place, now: u64) {
        self.0.leave(place.0, now.into());
    }

    /// A permit that was not used.
    pub fn give_back(&self, permit: Permit, now: u64) {
        self.0.give_back(permit.0, now.into());
    }

    /// A change of the quota.
    pub fn set_quota(&self, quota: Quota, now: u64) {
        self.0.set_quota(quota, now.into());
    }

    /// A pause, or the end of one if `end` is not after `now`.
    pub fn pause_until(&self, end: u64, now: u64) {
        self.0.pause_until(end.into(), now.into());
    }

    /// Permits given back.
    pub fn refund(&self, n: u64, now: u64) {
        self.0.refund(n, now.into());
    }

    /// All permits given back.
    pub fn reset(&self, now: u64) {
        self.0.reset(now.into());
    }

    /// The end of all waits.
    pub fn close(&self, now: u64) {
        self.0.close(now.into());
    }

    /// How many wait, after what is due has been granted.
    pub fn waiting(&self, now: u64) -> usize {
        self.0.waiting(now.into())
    }

    /// The time until a request that enters the line now would be granted.
    pub fn estimated_wait(&self, n: u64, now: u64) -> Option<Duration> {
        self.0.estimated_wait(n, now.into())
    }
}
