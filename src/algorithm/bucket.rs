//! The token bucket: GCRA in one word.

use std::time::Duration;

use super::gcra::{self, Left, Rate, Ticks};
use super::pause::{self, NothingToChange, granted, in_force};
use super::{Algorithm, AnyQuota, Policing, sealed};
use crate::cell::{Cell, Next, Version};
use crate::interval::Interval;
use crate::quota::Quota;
use crate::refused::Refused;
use crate::snapshot::Snapshot;
use crate::time::Nanos;

/// The law of [`TokenBucket`](crate::TokenBucket): in every span of length W at most `burst + rate * W` permits.
///
/// It is kept by the generic cell rate algorithm (ITU-T I.371): one theoretical arrival time in one atomic word.
#[derive(Debug)]
pub struct Gcra {
    pub(crate) cell: Cell<Rate>,
}

impl Algorithm for Gcra {}
impl Policing for Gcra {}
impl AnyQuota for Gcra {}

impl sealed::Algorithm for Gcra {
    fn start(quota: Quota, initial: Option<u64>, max_pause: Duration, now: impl FnOnce() -> Nanos) -> Self {
        let burst = quota.policing_burst();
        let interval = Interval::fit(&quota, burst, burst);
        let (rate, tat, since) = match initial {
            None => (Rate::new(interval, burst), 0, Nanos::ZERO),
            Some(permits) => {
                let now = now();
                let (rate, tat) = Left::permits(permits, now).start(interval, burst);
                (rate, tat, now)
            }
        };
        Self { cell: Cell::new(quota, &rate, gcra::first_field(tat), since, max_pause) }
    }

    fn peek(&self, n: u64, now: Nanos) -> Result<(), Refused> {
        pause::look(&self.cell, |rate, tat| match rate.admit(tat, now, n) {
            None if n > 0 => Err(rate.refusal(tat, now, n)),
            _ => Ok(()),
        })
    }

    fn snapshot(&self, now: Nanos) -> Snapshot {
        pause::look(&self.cell, |rate, tat| rate.snapshot(tat, now))
    }

    fn set_quota(&self, quota: Quota, now: Nanos) {
        let burst = quota.policing_burst();
        let interval = Interval::fit(&quota, burst, burst);
        self.change(now, Some(quota), |left, Version { record: rate, .. }| {
            Some(if rate.is_held(now) {
                left.start_at(rate.origin, now, interval, burst)
            } else {
                left.start(interval, burst)
            })
        });
    }

    fn pause_until(&self, end: Nanos, now: Nanos) {
        self.change(now, None, |left, Version { record: rate, max_pause, .. }| {
            let nothing_to_end = end <= now && !rate.is_held(now);
            let end = end.min(now.saturating_add(max_pause));
            (!nothing_to_end).then(|| left.start_at(end, now, rate.interval, rate.burst()))
        });
    }

    fn quota(&self) -> Quota {
        self.cell.quota()
    }

    fn largest(quota: &Quota) -> u64 {
        if quota.is_unlimited() { u64::MAX } else { quota.policing_burst() }
    }

    fn copied(&self) -> Self {
        Self { cell: self.cell.copied(|_, _| ()) }
    }

    fn rests_from(&self) -> Option<Nanos> {
        pause::look(&self.cell, Rate::rest)
    }
}

impl sealed::Policing for Gcra {
    #[inline]
    fn try_acquire(&self, n: u64, now: Nanos) -> Result<(), Refused> {
        if n == 0 {
            return Ok(());
        }
        // The usual yes. It stands by itself so that nothing is spilled to the stack before the exchange, which would wait
        // for it.
        let (word, rate) = pause::load(&self.cell);
        if let Some(time) = rate.admit_in_64_bits(word.field(), now, n) {
            if time != word.field() && self.cell.exchange(word, granted(word, &rate, time)).is_ok() {
                return Ok(());
            }
        }
        self.try_acquire_slow(n, now)
    }

    fn acquire_up_to(&self, n: u64, now: Nanos) -> u64 {
        self.take(now, |rate, tat| n.min(rate.remaining(tat, now))).unwrap_or(0)
    }

    fn refund(&self, n: u64, now: Nanos) {
        self.lower(|rate, tat| rate.refunded(tat, now, n));
    }

    fn reset(&self, now: Nanos) {
        self.lower(|rate, tat| rate.filled(tat, now));
    }
}

impl Gcra {
    /// Every other answer, and another try after a lost race.
    #[inline(never)]
    fn try_acquire_slow(&self, n: u64, now: Nanos) -> Result<(), Refused> {
        self.take(now, |_, _| n).map(drop)
    }

    /// Takes the `amount` that the bucket as it stands is asked for, which is told its quota and its TAT. Nothing is refused.
    #[inline]
    fn take(&self, now: Nanos, amount: impl Fn(&Rate, u64) -> u64) -> Result<u64, Refused> {
        loop {
            let (word, rate) = pause::load(&self.cell);
            let n = amount(&rate, word.field());
            match admit(&rate, word.field(), now, n).map(gcra::field) {
                Some(Some(time)) => {
                    let next = granted(word, &rate, time);
                    // Unlimited costs nothing, and writes nothing.
                    let done =
                        if next == word { self.cell.still(word) } else { self.cell.exchange(word, next).is_ok() };
                    if done {
                        return Ok(n);
                    }
                }
                Some(None) => return self.take_and_rebase(now, amount),
                None => {
                    if self.cell.still(word) {
                        return Err(rate.refusal(word.field(), now, n));
                    }
                }
            }
        }
    }

    /// Grants and moves the origin in one exchange, so that the move changes no answer.
    #[cold]
    fn take_and_rebase(&self, now: Nanos, amount: impl Fn(&Rate, u64) -> u64) -> Result<u64, Refused> {
        let mut n = 0;
        self.cell.replace(|Version { word, record: rate, since, .. }| {
            let rate = in_force(word, rate);
            n = amount(&rate, word.field());
            let tat = admit(&rate, word.field(), now, n).ok_or_else(|| rate.refusal(word.field(), now, n))?;
            let (rate, tat) = rate.rebased(tat, now);
            let word = word.with_field(gcra::first_field(tat)).with_behind(false);
            Ok(Next { quota: None, record: rate, word, since })
        })?;
        Ok(n)
    }

    /// Lets `permits` be left at `now`, whatever was.
    pub(crate) fn set_left(&self, permits: u64, now: Nanos) {
        self.change(now, None, |_, Version { record: rate, .. }| {
            let left = Left::permits(permits, now);
            let (interval, burst) = (rate.interval, rate.burst());
            Some(if rate.is_held(now) {
                left.start_at(rate.origin, now, interval, burst)
            } else {
                left.start(interval, burst)
            })
        });
    }

    /// Moves the TAT back, and the origin with it where that comes to lie before it.
    fn lower(&self, lowered: impl Fn(&Rate, u64) -> Ticks) {
        loop {
            let (word, rate) = pause::load(&self.cell);
            let done = match u64::try_from(lowered(&rate, word.field())) {
                Ok(time) if time == word.field() => self.cell.still(word),
                Ok(time) => self.cell.exchange(word, word.with_field(time)).is_ok(),
                Err(_) => {
                    let moved = self.cell.replace(|Version { word, record: rate, since, .. }| {
                        let rate = in_force(word, rate);
                        let tat = lowered(&rate, word.field());
                        if tat >= 0 {
                            return Err(NothingToChange);
                        }
                        let (rate, tat) = rate.rebased_back(tat);
                        Ok(Next { quota: None, record: rate, word: word.with_field(gcra::first_field(tat)), since })
                    });
                    moved.is_ok()
                }
            };
            if done {
                return;
            }
        }
    }

    /// Starts another version with what is left of this one, unless `start` sees nothing to change.
    fn change(&self, now: Nanos, quota: Option<Quota>, start: impl Fn(Left, Version<Rate>) -> Option<(Rate, Ticks)>) {
        let changed = self.cell.replace(|version| {
            let Version { word, since, .. } = version;
            let rate = in_force(word, version.record);
            let version = Version { record: rate, ..version };
            let left = rate.left(word.field(), now, rate.capacity, since);
            let (next, tat) = start(left, version).ok_or(NothingToChange)?;
            let word = word.with_field(gcra::first_field(tat)).with_behind(false);
            Ok(Next { quota, record: next, word, since: left.since() })
        });
        // Nothing to change is what was asked for too.
        let (Ok(()) | Err(NothingToChange)) = changed;
    }
}

/// The TAT after a grant of `n`; `None` if the bucket does not hold as many, or if that is nothing.
#[inline]
fn admit(rate: &Rate, tat: u64, now: Nanos, n: u64) -> Option<Ticks> {
    if n > 0 { rate.admit(tat, now, n) } else { None }
}
