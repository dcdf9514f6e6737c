//! The token bucket, one call after the other.

use tollgate::Refused;

use super::{Expected, Law, Op, Outcome, Reference, Standing, instant};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bucket {
    law: Law,
    standing: Standing,
}

impl Bucket {
    pub(crate) fn new(law: Law) -> Self {
        Self { law, standing: Standing::default() }
    }

    /// A bucket that will be full at `tat`.
    pub(crate) fn at(law: Law, tat: u64) -> Self {
        Self { law, standing: Standing { tat: tat.into(), ..Standing::default() } }
    }

    pub(crate) fn tat(&self) -> u64 {
        instant(self.standing.tat)
    }

    /// The same bucket in a pause until `end`; in none if that is 0.
    pub(crate) fn held_until(mut self, end: u64) -> Self {
        self.standing.pause = (end > 0).then_some(end);
        self
    }

    pub(crate) fn end_of_pause(&self) -> u64 {
        self.standing.pause.unwrap_or(0)
    }

    fn decide(&self, n: u64, now: u64) -> Result<i128, Refused> {
        let (standing, cost) = (&self.standing, self.law.cost(n));
        if n == 0 {
            return Ok(standing.tat);
        }
        if n > self.law.burst {
            return Err(Refused::ExceedsCapacity { asked: n, capacity: self.law.burst });
        }
        if standing.is_held(now) || standing.debt(now) + cost > self.law.capacity() {
            let retry_after = standing.until(standing.tat + cost - self.law.capacity(), now);
            return Err(match standing.remaining(self.law, now) {
                _ if standing.is_held(now) => Refused::Paused { asked: n, retry_after },
                remaining => Refused::TooSoon { asked: n, remaining, retry_after },
            });
        }
        Ok(standing.tat.max(i128::from(now)) + cost)
    }

    fn change(&mut self, law: Law, now: u64, end: Option<u64>) {
        self.standing = self.standing.carry(self.law, law, now, self.law.capacity(), end);
        self.law = law;
    }
}

impl Reference for Bucket {
    fn call(&mut self, op: Op) -> Expected {
        let (law, standing) = (self.law, self.standing);
        let mut outcome = Outcome::Done;
        match op {
            Op::Try { n, now } => {
                outcome = match self.decide(n, now) {
                    Ok(tat) => {
                        self.standing.tat = tat;
                        if n > 0 {
                            self.standing.forget_a_past_pause(now);
                        }
                        Outcome::Granted
                    }
                    Err(refused) => Outcome::Refused(refused),
                }
            }
            Op::Peek { n, now } => outcome = self.decide(n, now).map_or_else(Outcome::Refused, |_| Outcome::Granted),
            Op::Look { now } => {
                outcome = Outcome::Seen {
                    limit: law.burst,
                    remaining: standing.remaining(law, now),
                    retry_after: standing.until(standing.tat + law.cost(1) - law.capacity(), now),
                    reset_after: standing.until(standing.tat, now),
                }
            }
            Op::SetQuota { law, now } => self.change(law, now, standing.goes_on(now)),
            Op::Pause { end, now } if standing.is_news(end, now) => self.change(law, now, Some(end)),
            Op::Pause { .. } => {}
            Op::Refund { n, now } => self.standing.refund(law, n, now),
            Op::Reset { now } => self.standing.refund(law, u64::MAX, now),
            Op::UpTo { n, now } => {
                let n = n.min(standing.remaining(law, now));
                self.call(Op::Try { n, now });
                outcome = Outcome::Took(n);
            }
            _ => panic!("{op:?} is not for a bucket"),
        }
        Expected::exactly(outcome)
    }
}
