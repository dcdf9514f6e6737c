//! The leaky bucket as a queue that tells when: GCRA with room for one permit more, less a tick.

use std::time::Duration;

use super::gcra::{self, Rate, Ticks};
use super::pause::{self, NothingToChange, granted, in_force};
use super::{Algorithm, AnyQuota, sealed};
use crate::cell::{Cell, Next, Version};
use crate::interval::Interval;
use crate::quota::Quota;
use crate::refused::Refused;
use crate::snapshot::Snapshot;
use crate::time::Nanos;

/// The law of [`LeakyQueue`](crate::LeakyQueue): one start per T, for at most `capacity` that have not begun.
///
/// A request is refused if the backlog is the capacity or more: `(free_at - now) / T >= capacity`, where `free_at` is when all
/// that was told before will be done. With `free_at` as the arrival time of the generic cell rate algorithm that is a bucket of
/// `(capacity + 1) * T` less a tick.
#[derive(Debug)]
pub struct LeakyQueueLaw {
    pub(crate) cell: Cell<Rate>,
}

impl Algorithm for LeakyQueueLaw {}
impl AnyQuota for LeakyQueueLaw {}

impl sealed::Algorithm for LeakyQueueLaw {
    fn start(quota: Quota, initial: Option<u64>, max_pause: Duration, now: impl FnOnce() -> Nanos) -> Self {
        let rate = idle(&quota, Nanos::ZERO);
        let (rate, free_at, since) = match initial {
            None => (rate, 0, Nanos::ZERO),
            Some(places) => {
                let now = now();
                (Rate { origin: now, ..rate }, rate.cost(rate.burst().saturating_sub(places)), now)
            }
        };
        Self { cell: Cell::new(quota, &rate, gcra::first_field(free_at), since, max_pause) }
    }

    fn peek(&self, n: u64, now: Nanos) -> Result<(), Refused> {
        pause::look(&self.cell, |rate, free_at| match admit(rate, free_at, now, n) {
            None if n > 0 => Err(rate.refusal(free_at, now, n)),
            _ => Ok(()),
        })
    }

    fn snapshot(&self, now: Nanos) -> Snapshot {
        pause::look(&self.cell, |rate, free_at| rate.snapshot(free_at, now))
    }

    fn set_quota(&self, quota: Quota, now: Nanos) {
        pause::change(&self.cell, |Version { word, record: rate, since, .. }| {
            let next = idle(&quota, rate.origin);
            let (record, field, since) = if next.interval == rate.interval {
                // Nothing moves, not by a rounding either.
                (Rate { capacity: next.capacity, ..rate }, word.field(), since)
            } else {
                let served = rate.interval.mul == 0 && word.field() > 0;
                let told = free_from(&rate, word.field());
                let waits = backlog_ns(&rate, word.field());
                let pause = rate.is_held(now).then_some(rate.origin);
                // A rate of 0 serves nobody after those who were told a start. The one whom it served takes a T of what follows.
                let never = quota.permits() == 0 && if pause.is_some() { waits > 0 } else { told > now };
                let taken = if served || never { next.interval.ticks } else { 0 };
                let (record, field, since) = match pause {
                    Some(end) => hold(next, end, ticks_of(&next, waits).saturating_add(taken.into()), told, since),
                    None => (Rate { origin: told, ..next }, taken, told),
                };
                (record, field.max(taken), since)
            };
            Ok(Next { quota: Some(quota), record, word: word.with_field(field), since })
        });
    }

    fn pause_until(&self, end: Nanos, now: Nanos) {
        pause::change(&self.cell, |Version { word, record: rate, since, max_pause }| {
            let held = rate.is_held(now);
            if end <= now && !held {
                return Err(NothingToChange);
            }
            let told = free_from(&rate, word.field());
            let served = if rate.interval.mul == 0 { word.field().min(rate.interval.ticks) } else { 0 };
            // By a clock that was set back no start may come before those that were told.
            let (since, backlog) = if held {
                (since, word.field().into())
            } else if rate.interval.mul == 0 {
                let since = if served > 0 { now } else { now.max(rate.origin) };
                (since, Ticks::from(served).saturating_add(told.get().saturating_sub(since.get()).into()))
            } else {
                (now, Ticks::from(word.field()).saturating_sub(rate.at(now)).max(0))
            };
            let (record, field, since) = if end > now {
                let end = end.min(now.saturating_add(max_pause)).max(since);
                hold(rate, end, backlog, told, since)
            } else {
                (Rate { origin: now.max(since), held: false, ..rate }, gcra::first_field(backlog), since)
            };
            Ok(Next { quota: None, record, word: word.with_field(field.max(served)), since })
        });
    }

    fn quota(&self) -> Quota {
        self.cell.quota()
    }

    fn largest(quota: &Quota) -> u64 {
        idle(quota, Nanos::ZERO).burst()
    }

    fn copied(&self) -> Self {
        Self { cell: self.cell.copied(|_, _| ()) }
    }

    fn rests_from(&self) -> Option<Nanos> {
        pause::look(&self.cell, |rate, free_at| {
            let served = rate.interval.mul == 0 && free_at > 0;
            Some(free_from(rate, free_at)).filter(|at| !served && *at < Nanos::MAX)
        })
    }
}

impl LeakyQueueLaw {
    /// The start of a request of `n` that comes at `now`.
    pub(crate) fn schedule(&self, n: u64, now: Nanos) -> Result<Nanos, Refused> {
        if n == 0 {
            return Ok(pause::look(&self.cell, |rate, free_at| start(rate, free_at, now)));
        }
        loop {
            let (word, rate) = pause::load(&self.cell);
            match admit(&rate, word.field(), now, n).map(gcra::field) {
                Some(Some(free_at)) => {
                    let next = granted(word, &rate, free_at);
                    // Unlimited costs nothing, and writes nothing.
                    let done =
                        if next == word { self.cell.still(word) } else { self.cell.exchange(word, next).is_ok() };
                    if done {
                        return Ok(start(&rate, word.field(), now));
                    }
                }
                Some(None) => return self.schedule_and_rebase(n, now),
                None => {
                    if self.cell.still(word) {
                        return Err(rate.refusal(word.field(), now, n));
                    }
                }
            }
        }
    }

    /// Tells a start and moves the origin in one exchange, so that the move changes no answer.
    #[cold]
    fn schedule_and_rebase(&self, n: u64, now: Nanos) -> Result<Nanos, Refused> {
        let mut told = now;
        self.cell.replace(|Version { word, record, since, .. }| {
            let rate = in_force(word, record);
            let free_at = admit(&rate, word.field(), now, n).ok_or_else(|| rate.refusal(word.field(), now, n))?;
            told = start(&rate, word.field(), now);
            let (rate, free_at) = if rate.interval.mul == 0 {
                (Rate { origin: told, held: false, ..rate }, rate.cost(n))
            } else {
                rate.rebased(free_at, now)
            };
            let word = word.with_field(gcra::first_field(free_at)).with_behind(false);
            Ok(Next { quota: None, record: rate, word, since })
        })?;
        Ok(told)
    }
}

/// A queue of `quota` whose server is free from `origin` on.
fn idle(quota: &Quota, origin: Nanos) -> Rate {
    idle_in(quota, origin, Interval::fit)
}

/// The same in the unit that `fit` chooses.
pub(crate) fn idle_in(quota: &Quota, origin: Nanos, fit: impl Fn(&Quota, u64, u64) -> Interval) -> Rate {
    // The debt may be one permit more than the burst, so that is one less than elsewhere. A rate of 0 serves one and no other.
    let most = if quota.permits() == 0 { 1 } else { Quota::MAX_BURST.saturating_sub(1) };
    let burst = quota.policing_burst().min(most);
    let span = burst.saturating_add(1);
    let interval = fit(quota, burst, span);
    // `Interval::fit` has bounded the product.
    let capacity = interval.ticks.saturating_mul(span).saturating_sub(1);
    if quota.is_unlimited() {
        // Those who were told before wait on, in nanoseconds.
        return Rate { interval: Interval { mul: 1, ..interval }, capacity: u64::MAX, origin, held: false };
    }
    Rate { interval, capacity, origin, held: false }
}

/// When the server is free after `n` more that come at `now`; `None` if there is no room for them. Where nothing is limited they
/// take no time. At a rate of 0 it is never free again, and what is kept beyond T is how long after the origin the one starts.
#[inline]
pub(crate) fn admit(rate: &Rate, free_at: u64, now: Nanos, n: u64) -> Option<Ticks> {
    if rate.interval.ticks == 0 {
        return (!rate.is_held(now)).then_some(free_at.into());
    }
    let next = rate.admit(free_at, now, n)?;
    Some(if rate.interval.mul == 0 {
        next.saturating_add(now.get().saturating_sub(rate.origin.get()).into())
    } else {
        next
    })
}

/// When a request starts that comes at `now`: at once, or when all that was told before is done, rounded up to a nanosecond.
pub(crate) fn start(rate: &Rate, free_at: u64, now: Nanos) -> Nanos {
    now.max(free_from(rate, free_at))
}

/// The instant at which all that was told is done. At a rate of 0, that from which one is served, or at which he starts.
pub(crate) fn free_from(rate: &Rate, free_at: u64) -> Nanos {
    if rate.interval.mul == 0 {
        rate.origin.saturating_add(Duration::from_nanos(free_at.saturating_sub(rate.interval.ticks)))
    } else {
        rate.instant(free_at.into())
    }
}

/// How long after the origin that is, in nanoseconds, rounded up: also beyond the end of the clock, for a pause that lasts until
/// then may be shortened.
fn backlog_ns(rate: &Rate, free_at: u64) -> Ticks {
    if rate.interval.mul == 0 {
        return free_at.saturating_sub(rate.interval.ticks).into();
    }
    let origin = Ticks::from(rate.origin.get());
    rate.nanos_at(free_at.into()).unwrap_or(Ticks::MAX).saturating_sub(origin)
}

/// So many nanoseconds in ticks of `rate`, rounded up; where time brings none they are what is kept.
fn ticks_of(rate: &Rate, nanos: Ticks) -> Ticks {
    if rate.interval.mul == 0 {
        return nanos;
    }
    let (parts, shift) = (nanos.saturating_mul(rate.interval.mul.into()), u32::from(rate.interval.shift));
    let whole = parts.checked_shr(shift).unwrap_or(0);
    whole.saturating_add(Ticks::from(whole.checked_shl(shift).is_some_and(|whole| whole < parts)))
}

/// `rate` in a pause until `end` with `backlog` left then, of starts told `until` then. Where that does not fit a word, the pause
/// lasts until all of them are done.
fn hold(rate: Rate, end: Nanos, backlog: Ticks, until: Nanos, since: Nanos) -> (Rate, u64, Nanos) {
    match gcra::field(backlog) {
        Some(field) => (Rate { origin: end, held: true, ..rate }, field, since),
        None => (Rate { origin: end.max(until), held: true, ..rate }, 0, since.max(until)),
    }
}
