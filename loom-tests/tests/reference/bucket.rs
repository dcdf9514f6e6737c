//! The token bucket, one call after the other.

use tollgate::Refused;

use super::{Expected, Law, Op, Outcome, Reference, nanos};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bucket {
    law: Law,
    tat: i128,
}

impl Bucket {
    pub(crate) fn new(law: Law) -> Self {
        Self { law, tat: 0 }
    }

    fn debt(&self, now: u64) -> i128 {
        (self.tat - i128::from(now)).max(0)
    }

    fn remaining(&self, now: u64) -> u64 {
        u64::try_from((self.law.capacity() - self.debt(now)).max(0)).unwrap() / self.law.interval
    }

    fn decide(&self, n: u64, now: u64) -> Result<i128, Refused> {
        let (cost, capacity) = (self.law.cost(n), self.law.capacity());
        if n == 0 {
            return Ok(self.tat);
        }
        if n > self.law.burst {
            return Err(Refused::ExceedsCapacity { asked: n, capacity: self.law.burst });
        }
        let excess = self.debt(now) + cost - capacity;
        if excess > 0 {
            let remaining = self.remaining(now);
            return Err(Refused::TooSoon { asked: n, remaining, retry_after: nanos(excess) });
        }
        Ok(self.tat.max(i128::from(now)) + cost)
    }
}

impl Reference for Bucket {
    fn call(&mut self, op: Op) -> Expected {
        Expected::exactly(match op {
            Op::Try { n, now } => match self.decide(n, now) {
                Ok(tat) => {
                    self.tat = tat;
                    Outcome::Granted
                }
                Err(refused) => Outcome::Refused(refused),
            },
            Op::Peek { n, now } => self.decide(n, now).map_or_else(Outcome::Refused, |_| Outcome::Granted),
            Op::Look { now } => Outcome::Seen {
                limit: self.law.burst,
                remaining: self.remaining(now),
                retry_after: nanos(self.debt(now) + self.law.cost(1) - self.law.capacity()),
                reset_after: nanos(self.debt(now)),
            },
            Op::SetQuota { law, now } => {
                (self.tat, _) = self.law.carry(law, self.tat, now, self.law.capacity());
                self.law = law;
                Outcome::Done
            }
            _ => panic!("{op:?} is not for a bucket"),
        })
    }
}
