//! The crate's limiter and queue, as something that answers the same calls.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};
use std::time::Duration;

use tollgate::model::{Answer, Permit, Place, Shaping};
use tollgate::{Gcra, Refused, TokenBucket, Waitable};

use super::order::Drive;
use super::{Law, Op, Outcome};

/// Something that threads share and that answers calls.
pub(crate) trait Subject: Send + Sync + 'static {
    fn call(&self, op: Op) -> Outcome;

    /// Whether `who` was woken since it was asked last.
    fn woken(&self, _who: usize) -> bool {
        false
    }
}

impl<S: Subject> Drive for &S {
    fn answer(&mut self, op: Op) -> Outcome {
        self.call(op)
    }

    fn alarm(&mut self, who: usize, told: u64) -> u64 {
        if self.woken(who) { 0 } else { told }
    }
}

pub(crate) struct Bucket(TokenBucket);

impl Bucket {
    pub(crate) fn new(law: Law) -> Self {
        Self(TokenBucket::new(law.quota()))
    }
}

pub(crate) fn granted<T>(answer: Result<T, Refused>) -> Outcome {
    answer.map_or_else(Outcome::Refused, |_| Outcome::Granted)
}

impl Subject for Bucket {
    fn call(&self, op: Op) -> Outcome {
        match op {
            Op::Try { n, now } => granted(self.0.try_acquire_n_at(n, now)),
            Op::Peek { n, now } => granted(self.0.peek_at(n, now)),
            Op::Look { now } => {
                let seen = self.0.snapshot_at(now);
                Outcome::Seen {
                    limit: seen.limit,
                    remaining: seen.remaining,
                    retry_after: seen.retry_after.unwrap(),
                    reset_after: seen.reset_after.unwrap(),
                }
            }
            Op::SetQuota { law, now } => {
                self.0.set_quota_at(law.quota(), now);
                Outcome::Done
            }
            Op::Refund { n, now } => {
                self.0.refund_at(n, now);
                Outcome::Done
            }
            Op::Reset { now } => {
                self.0.reset_at(now);
                Outcome::Done
            }
            Op::UpTo { n, now } => Outcome::Took(self.0.acquire_up_to_at(n, now)),
            Op::Pause { end, now } => {
                self.0.pause_until_at(end, now);
                Outcome::Done
            }
            _ => panic!("{op:?} is not for a bucket"),
        }
    }
}

/// How many requests may wait in a model.
pub(crate) const CLIENTS: usize = 8;

/// A queue, and what its callers hold.
pub(crate) struct Line<A = Gcra> {
    shaping: Shaping<A>,
    clients: [Client; CLIENTS],
}

/// One who waits, or holds a permit. Its locks are no steps of a model, since one thread at a time acts for it.
#[derive(Default)]
struct Client {
    place: Mutex<Option<Place>>,
    permit: Mutex<Option<Permit>>,
    flag: Arc<Flag>,
}

/// A waker that notes that it was called.
#[derive(Default)]
pub(crate) struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Flag {
    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::SeqCst)
    }
}

impl Line {
    pub(crate) fn new(law: Law, catch_up: Duration, places: usize) -> Self {
        Self::of(Shaping::bounded(law.quota(), catch_up, places))
    }
}

impl<A> Line<A> {
    /// A queue in front of any law.
    pub(crate) fn of(shaping: Shaping<A>) -> Self {
        Self { shaping, clients: std::array::from_fn(|_| Client::default()) }
    }
}

impl Client {
    fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.flag))
    }

    fn learn(&self, answer: Answer) -> Outcome {
        match answer {
            Answer::Granted(permit) => {
                put(&self.permit, Some(permit));
                put(&self.place, None);
                Outcome::Granted
            }
            Answer::Refused(refused) => {
                put(&self.place, None);
                Outcome::Refused(refused)
            }
            Answer::Waits(place, until) => {
                put(&self.place, Some(place));
                Outcome::Waits(until.get())
            }
        }
    }
}

fn put<T>(slot: &Mutex<Option<T>>, value: Option<T>) {
    *slot.lock().unwrap_or_else(PoisonError::into_inner) = value;
}

fn take<T>(slot: &Mutex<Option<T>>) -> Option<T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl<A: Waitable + Send + Sync + 'static> Subject for Line<A> {
    fn call(&self, op: Op) -> Outcome {
        match op {
            Op::Try { n, now } => match self.shaping.try_acquire(n, now) {
                Answer::Granted(_) => return Outcome::Granted,
                Answer::Refused(refused) => return Outcome::Refused(refused),
                Answer::Waits(..) => panic!("a try does not wait"),
            },
            Op::Enter { who, n, now, deadline } => {
                let client = &self.clients[who];
                return client.learn(self.shaping.enter(n, now, deadline, client.waker()));
            }
            Op::Step { who, now } => {
                let client = &self.clients[who];
                if let Some(place) = take(&client.place) {
                    return client.learn(self.shaping.step(place, now, client.waker()));
                }
            }
            Op::Leave { who, now } => {
                if let Some(place) = take(&self.clients[who].place) {
                    self.shaping.leave(place, now);
                }
            }
            Op::GiveBack { who, now } => {
                if let Some(permit) = take(&self.clients[who].permit) {
                    self.shaping.give_back(permit, now);
                }
            }
            Op::SetQuota { law, now } => self.shaping.set_quota(law.quota(), now),
            Op::Refund { n, now } => self.shaping.refund(n, now),
            Op::Reset { now } => self.shaping.reset(now),
            Op::UpTo { n, now } => return Outcome::Took(self.shaping.acquire_up_to(n, now).permits()),
            Op::Pause { end, now } => self.shaping.pause_until(end, now),
            Op::Estimate { n, now } => return Outcome::Wait(self.shaping.estimated_wait(n, now)),
            Op::Waiting { now } => return Outcome::Waiting(self.shaping.waiting(now)),
            Op::Close { now } => self.shaping.close(now),
            Op::Peek { .. } | Op::Look { .. } => panic!("{op:?} is not for a line"),
        }
        Outcome::Done
    }

    fn woken(&self, who: usize) -> bool {
        self.clients[who].flag.take()
    }
}
