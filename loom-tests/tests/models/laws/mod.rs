//! The other laws, one call after the other, the crate's own, and some that are wrong on purpose.

#[cfg(tollgate_loom)]
pub(crate) mod flawed;
pub(crate) mod log;
pub(crate) mod queue;
pub(crate) mod window;

use tollgate::{FixedWindow, Limiter, Policing, Quota, Refused, SlidingCounter, SlidingLog};

use crate::reference::real::{Subject, granted};
use crate::reference::{Law, Op, Outcome};

/// `limit` per `length`, of which it is a divisor.
pub(crate) fn law(limit: u64, length: u64) -> Law {
    assert_eq!(length % limit, 0);
    Law::new(length / limit, 0).permits(limit)
}

pub(crate) fn length(law: Law) -> i128 {
    i128::from(law.interval) * i128::from(law.permits)
}

/// The wait that a request of `n` at `now` is told: found by trying.
pub(crate) fn first(now: u64, admits: impl Fn(u64) -> bool) -> std::time::Duration {
    let due = (now..now + 1_000).find(|&time| admits(time)).expect("some time");
    std::time::Duration::from_nanos(due - now)
}

pub(crate) struct Fixed(FixedWindow);

impl Fixed {
    pub(crate) fn new(law: Law) -> Self {
        Self(FixedWindow::new(law.quota()))
    }
}

pub(crate) struct Counter(SlidingCounter);

impl Counter {
    pub(crate) fn new(law: Law) -> Self {
        Self(SlidingCounter::new(law.quota()).unwrap())
    }
}

pub(crate) struct Log(SlidingLog);

impl Log {
    pub(crate) fn new(law: Law) -> Self {
        Self(SlidingLog::new(law.quota()).unwrap())
    }
}

impl Subject for Fixed {
    fn call(&self, op: Op) -> Outcome {
        call(&self.0, op, |quota, now| self.0.set_quota_at(quota, now))
    }
}

impl Subject for Counter {
    fn call(&self, op: Op) -> Outcome {
        call(&self.0, op, |quota, now| self.0.set_quota_at(quota, now).unwrap())
    }
}

impl Subject for Log {
    fn call(&self, op: Op) -> Outcome {
        call(&self.0, op, |quota, now| self.0.set_quota_at(quota, now).unwrap())
    }
}

fn call<A: Policing>(limiter: &Limiter<A>, op: Op, set_quota: impl Fn(Quota, u64)) -> Outcome {
    match op {
        Op::Try { n, now } => return granted(limiter.try_acquire_n_at(n, now)),
        Op::UpTo { n, now } => return Outcome::Took(limiter.acquire_up_to_at(n, now)),
        Op::Peek { n, now } => return granted(limiter.peek_at(n, now)),
        Op::Look { now } => {
            let seen = limiter.snapshot_at(now);
            return Outcome::Seen {
                limit: seen.limit,
                remaining: seen.remaining,
                retry_after: seen.retry_after.unwrap(),
                reset_after: seen.reset_after.unwrap(),
            };
        }
        Op::SetQuota { law, now } => set_quota(law.quota(), now),
        Op::Refund { n, now } => limiter.refund_at(n, now),
        Op::Reset { now } => limiter.reset_at(now),
        Op::Pause { end, now } => limiter.pause_until_at(end, now),
        _ => panic!("{op:?} is not for a limiter"),
    }
    Outcome::Done
}

/// What refuses: whether a request is admitted now, and how much is left.
pub(crate) trait Judge {
    fn law(&self) -> Law;
    fn is_held(&self, now: u64) -> bool;
    fn remaining(&self, now: u64) -> u64;

    fn admits(&self, n: u64, now: u64) -> bool {
        n <= self.remaining(now)
    }

    fn wait(&self, n: u64, now: u64) -> std::time::Duration {
        first(now, |time| self.admits(n, time))
    }

    fn judge(&self, n: u64, now: u64) -> Outcome {
        if n == 0 || self.admits(n, now) {
            return Outcome::Granted;
        }
        let capacity = self.law().permits;
        Outcome::Refused(if n > capacity {
            Refused::ExceedsCapacity { asked: n, capacity }
        } else if self.is_held(now) {
            Refused::Paused { asked: n, retry_after: self.wait(n, now) }
        } else {
            Refused::TooSoon { asked: n, remaining: self.remaining(now), retry_after: self.wait(n, now) }
        })
    }

    fn look(&self, now: u64) -> Outcome {
        let limit = self.law().permits;
        Outcome::Seen {
            limit,
            remaining: self.remaining(now),
            retry_after: self.wait(1, now),
            reset_after: self.wait(limit, now),
        }
    }
}
