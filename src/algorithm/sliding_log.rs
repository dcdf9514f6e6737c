//! The sliding log: the time of every permit that still counts.

use std::time::Duration;

use super::log::{Log, Taken};
use super::pause::{self, NothingToChange, granted, in_force};
use super::ring::{MOST, Ring, Rings};
use super::{Algorithm, Policing, sealed};
use crate::cell::{Cell, Next, Version};
use crate::interval::FIELD_BITS;
use crate::quota::{Quota, QuotaError};
use crate::refused::Refused;
use crate::snapshot::Snapshot;
use crate::time::Nanos;
use crate::word::Word;

/// The law of [`SlidingLog`](crate::SlidingLog): at most `limit` in every half-open span `(t-W, t]`.
///
/// The word holds the number of permits ever granted, and a ring the time of each of the last. A grant writes its times, and then
/// the word that says so, so whatever the word says is there to be read. All who write hold the lock of the cell, so that no
/// exchange fails after times were written; who is refused only reads.
#[derive(Debug)]
pub struct SlidingLogLaw {
    pub(crate) cell: Cell<Log>,
    pub(crate) rings: Rings,
}

impl Algorithm for SlidingLogLaw {}
impl Policing for SlidingLogLaw {}

impl sealed::Algorithm for SlidingLogLaw {
    fn start(quota: Quota, initial: Option<u64>, max_pause: Duration, now: impl FnOnce() -> Nanos) -> Self {
        let (rings, log) = (Rings::default(), Log::new(&quota));
        rings.open(log.ring);
        let (log, head) = match initial {
            None => (log, 0),
            Some(permits) => {
                let now = now().get();
                (Log { as_of: now, used: now, ..log }, log.limit.saturating_sub(permits))
            }
        };
        Self { cell: Cell::new(quota, &log, head, Nanos::ZERO, max_pause), rings }
    }

    fn peek(&self, n: u64, now: Nanos) -> Result<(), Refused> {
        self.look(|taken| if n == 0 || taken.admits(n, now) { Ok(()) } else { Err(taken.refusal(n, now)) })
    }

    fn snapshot(&self, now: Nanos) -> Snapshot {
        self.look(|taken| taken.snapshot(now))
    }

    fn set_quota(&self, quota: Quota, now: Nanos) {
        // Rings only grow. One that will be needed is made before the lock is taken, so that no grant waits for the memory.
        let size = Log::new(&quota).ring;
        if size > pause::load(&self.cell).1.ring {
            self.rings.open(size);
        }
        self.change(|Version { word, since, .. }, taken| {
            let (record, head, since) = self.with_quota(taken, &quota, now, since);
            Ok(Next { quota: Some(quota), record, word: word.with_field(head), since })
        });
    }

    fn pause_until(&self, end: Nanos, now: Nanos) {
        self.change(|Version { word, since, max_pause, .. }, taken| {
            if end <= now && !taken.log.is_held(now) {
                return Err(NothingToChange);
            }
            let (record, since) = taken.held_until(end.min(now.saturating_add(max_pause)), now, since);
            Ok(Next { quota: None, record, word, since })
        });
    }

    fn quota(&self) -> Quota {
        self.cell.quota()
    }

    fn largest(quota: &Quota) -> u64 {
        Log::new(quota).largest()
    }

    fn copied(&self) -> Self {
        let rings = Rings::default();
        // Whoever writes times holds the lock of the cell.
        let cell = self.cell.copied(|word, log| {
            if let (Some(from), Some(to)) = (self.rings.get(log.ring), rings.open(log.ring)) {
                from.copy_to(to, word.field());
            }
        });
        Self { cell, rings }
    }

    fn horizon(&self) -> Nanos {
        self.look(|taken| taken.horizon())
    }

    fn rests_from(&self) -> Option<Nanos> {
        self.look(|taken| taken.rest())
    }

    fn allocated(&self) -> usize {
        self.rings.allocated()
    }
}

impl sealed::Policing for SlidingLogLaw {
    fn try_acquire(&self, n: u64, now: Nanos) -> Result<(), Refused> {
        if n == 0 { Ok(()) } else { self.take(now, |_| n).map(drop) }
    }

    fn acquire_up_to(&self, n: u64, now: Nanos) -> u64 {
        self.take(now, |taken| n.min(taken.remaining(now))).unwrap_or(0)
    }

    fn refund(&self, n: u64, now: Nanos) {
        self.change(|Version { word, since, .. }, taken| {
            let (record, head) = taken.refunded(n, now);
            if head == taken.head {
                return Err(NothingToChange);
            }
            Ok(Next { quota: None, record, word: word.with_field(head), since })
        });
    }

    fn reset(&self, _now: Nanos) {
        self.change(|Version { word, since, .. }, taken| {
            let record = Log { from: 0, used: taken.used(), ..taken.log };
            Ok(Next { quota: None, record, word: word.with_field(0), since })
        });
    }
}

impl SlidingLogLaw {
    pub(crate) const MAX_LIMIT: u64 = MOST;

    pub(crate) fn check(quota: &Quota) -> Result<(), QuotaError> {
        let (asked, most) = (quota.permits(), Self::MAX_LIMIT);
        if asked > most && !quota.is_unlimited() {
            return Err(QuotaError::BeyondSlidingLog { asked, most });
        }
        Ok(())
    }

    /// Takes the `amount` that the log as it stands is asked for. Nothing is refused.
    fn take(&self, now: Nanos, amount: impl Fn(&Taken<'_>) -> u64) -> Result<u64, Refused> {
        loop {
            let (seen, log) = pause::load(&self.cell);
            let found = self.decide(seen, log, now, &amount);
            match found {
                Err(Some(refused)) if self.cell.still(seen) => return Err(refused),
                // Unlimited keeps nothing, and writes nothing.
                Ok(grant) if grant.next == seen && self.cell.still(seen) => return Ok(grant.n),
                _ => {}
            }
            let mut n = 0;
            let done = self.cell.exchange_locked(|word| {
                // What was found without the lock holds under it, if the word is the same.
                let grant = if word == seen {
                    found
                } else {
                    self.decide(word, in_force(word, self.cell.record(word)), now, &amount)
                }?;
                grant.positions().for_each(|position| grant.ring.write(position, grant.at));
                n = grant.n;
                Ok(grant.next)
            });
            match done {
                Ok(()) => return Ok(n),
                Err(Some(refused)) => return Err(refused),
                Err(None) => self.renumber(),
            }
        }
    }

    /// What a grant writes, or why there is none. `None` is no reason to refuse: the field is used up, or what was read is not of
    /// one version.
    #[inline]
    fn decide(
        &self,
        word: Word,
        log: Log,
        now: Nanos,
        amount: impl Fn(&Taken<'_>) -> u64,
    ) -> Result<Grant<'_>, Option<Refused>> {
        let taken = self.taken(word, log).ok_or(None)?;
        let n = amount(&taken);
        if n == 0 || !taken.admits(n, now) {
            return Err(Some(taken.refusal(n, now)));
        }
        let head = if log.unlimited { taken.head } else { taken.head.saturating_add(n) };
        if head > FIELD_END {
            return Err(None);
        }
        let next = granted(word, &log, head);
        Ok(Grant { n, first: taken.head, at: taken.at(now), ring: taken.ring, next })
    }

    /// Counts positions from a smaller number, when the field is used up. Every time keeps its place.
    #[cold]
    fn renumber(&self) {
        self.change(|Version { word, since, .. }, taken| {
            let (record, head) = taken.renumbered();
            Ok(Next { quota: None, record, word: word.with_field(head), since })
        });
    }

    /// The version, its head, and from when it counts, after a change of the quota at `now`.
    pub(crate) fn with_quota(&self, taken: &Taken<'_>, quota: &Quota, now: Nanos, since: Nanos) -> (Log, u64, Nanos) {
        let next = Log::new(quota);
        let Taken { log, head, ring } = *taken;
        let size = next.ring.max(log.ring);
        if size > log.ring {
            if let Some(larger) = self.rings.open(size) {
                ring.copy_to(larger, head);
            }
        }
        // The next version, with the pause and the own time of this one.
        let next = Log { limit: next.limit, length: next.length, unlimited: next.unlimited, ring: size, ..log };
        if next.length == log.length && next.unlimited == log.unlimited {
            // What counts no more may be gone from the ring where the limit is larger; it never counts again.
            let from = head.saturating_sub(taken.counted(taken.used()));
            return (Log { from, ..next }, head, since);
        }
        // All that still counts is as if taken now, so that its times are of no account. After no limit at all nothing is left.
        let at = taken.at(now);
        let counted = if log.unlimited { next.limit } else { taken.counted(at) };
        // A pause that is over is not taken along.
        let held = log.is_held(now);
        let since = if held { since.max(now) } else { now };
        (Log { from: 0, as_of: at, used: at, held, ..next }, counted, since)
    }

    /// What a word and its version tell. `None` if they are not of one version.
    #[inline]
    pub(crate) fn taken(&self, word: Word, log: Log) -> Option<Taken<'_>> {
        Some(Taken { log, head: word.field(), ring: self.rings.get(log.ring)? })
    }

    /// Answers from one consistent reading, without a write.
    fn look<T>(&self, answer: impl Fn(&Taken<'_>) -> T) -> T {
        loop {
            let (word, log) = pause::load(&self.cell);
            let answer = self.taken(word, log).map(|taken| answer(&taken));
            if let (Some(answer), true) = (answer, self.cell.still(word)) {
                return answer;
            }
        }
    }

    /// Starts another version, unless there is nothing to change.
    fn change(&self, next: impl Fn(Version<Log>, &Taken<'_>) -> Result<Next<Log>, NothingToChange>) {
        pause::change(&self.cell, |version| {
            let taken = self.taken(version.word, version.record).ok_or(NothingToChange)?;
            next(version, &taken)
        });
    }
}

/// What a grant writes.
#[derive(Clone, Copy)]
struct Grant<'a> {
    n: u64,
    /// The first of its positions.
    first: u64,
    /// The own time at which it counts.
    at: u64,
    ring: &'a Ring,
    next: Word,
}

impl Grant<'_> {
    fn positions(&self) -> std::ops::Range<u64> {
        self.first..self.next.field()
    }
}

pub(super) const FIELD_END: u64 = (1 << FIELD_BITS) - 1;

#[cfg(test)]
mod tests {
    use super::sealed::{Algorithm as _, Policing as _};
    use super::*;

    #[test]
    fn a_larger_ring_is_made_before_the_lock_is_taken() {
        let quota = |limit| Quota::new(limit, Duration::from_secs(1)).unwrap();
        let law = SlidingLogLaw::start(quota(1), None, Duration::MAX, || Nanos::ZERO);
        std::thread::scope(|scope| {
            let unchanged = law.cell.exchange_locked(|_| {
                scope.spawn(|| law.set_quota(quota(1_000), Nanos::ZERO));
                while law.rings.get(Rings::size(1_000)).is_none() {
                    std::thread::yield_now();
                }
                Err(())
            });
            assert_eq!(unchanged, Err(()));
        });
        assert_eq!(law.quota(), quota(1_000));
    }

    #[test]
    fn positions_that_are_used_up_are_numbered_anew_and_nothing_is_forgotten() {
        let quota = Quota::new(3, Duration::from_nanos(10)).unwrap();
        for left in 0..4 {
            let law = SlidingLogLaw::start(quota, None, Duration::MAX, || Nanos::ZERO);
            law.change(|Version { word, .. }, taken| {
                let head = FIELD_END - left;
                Ok(Next {
                    quota: None,
                    record: Log { from: head, ..taken.log },
                    word: word.with_field(head),
                    since: Nanos::ZERO,
                })
            });
            for (now, there, asked) in [(0, 3, 2), (5, 1, 1), (9, 0, 0), (10, 2, 2), (14, 0, 0), (15, 1, 1), (20, 2, 2)]
            {
                let now = Nanos::new(now);
                assert_eq!(law.snapshot(now).remaining, there, "{left} left at {now}");
                assert_eq!(law.try_acquire(asked, now), Ok(()));
                assert!(law.try_acquire(there - asked + 1, now).is_err());
            }
        }
    }
}
