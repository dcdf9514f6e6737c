//! The window laws: index and counts in one word.

use std::time::Duration;

use super::pause::{self, NothingToChange, granted, in_force};
use super::window::{Kind, Windows};
use super::{Algorithm, Policing, sealed};
use crate::cell::{Cell, Next, Version};
use crate::quota::Quota;
use crate::refused::Refused;
use crate::snapshot::Snapshot;
use crate::time::Nanos;

/// A law that counts whole windows, and is kept in one word. What `K` says makes it one or the other.
#[derive(Debug)]
pub struct Windowed<K: Kind> {
    pub(crate) cell: Cell<Windows<K>>,
}

impl<K: Kind> Algorithm for Windowed<K> {}
impl<K: Kind> Policing for Windowed<K> {}

impl<K: Kind> sealed::Algorithm for Windowed<K> {
    fn start(quota: Quota, initial: Option<u64>, max_pause: Duration, now: impl FnOnce() -> Nanos) -> Self {
        let windows = Windows::new(&quota);
        let (windows, field, since) = match initial {
            None => (windows, 0, Nanos::ZERO),
            Some(permits) => {
                let now = now();
                let (windows, field) = windows.start_at(windows.all_but(permits, now), now, now);
                (windows, field, now)
            }
        };
        Self { cell: Cell::new(quota, &windows, field, since, max_pause) }
    }

    fn peek(&self, n: u64, now: Nanos) -> Result<(), Refused> {
        pause::look(&self.cell, |windows, field| match windows.admit(field, now, n) {
            None if n > 0 => Err(windows.refusal(field, now, n)),
            _ => Ok(()),
        })
    }

    fn snapshot(&self, now: Nanos) -> Snapshot {
        pause::look(&self.cell, |windows, field| windows.snapshot(field, now))
    }

    fn set_quota(&self, quota: Quota, now: Nanos) {
        pause::change(&self.cell, |Version { word, record: windows, since, .. }| {
            let (next, field, since) = windows.changed(word.field(), &quota, now, since);
            Ok(Next { quota: Some(quota), record: next, word: word.with_field(field), since })
        });
    }

    fn pause_until(&self, end: Nanos, now: Nanos) {
        pause::change(&self.cell, |Version { word, record: windows, since, max_pause }| {
            if end <= now && !windows.is_held(now) {
                return Err(NothingToChange);
            }
            let left = windows.left(word.field(), now, since);
            let (next, field) = windows.start_at(left, end.min(now.saturating_add(max_pause)), now);
            Ok(Next { quota: None, record: next, word: word.with_field(field), since: left.since() })
        });
    }

    fn quota(&self) -> Quota {
        self.cell.quota()
    }

    fn largest(quota: &Quota) -> u64 {
        Windows::<K>::new(quota).limit()
    }

    fn copied(&self) -> Self {
        Self { cell: self.cell.copied(|_, _| ()) }
    }

    fn horizon(&self) -> Nanos {
        u64::try_from(pause::look(&self.cell, Windows::horizon)).map_or(Nanos::MAX, Nanos::new)
    }

    fn rests_from(&self) -> Option<Nanos> {
        let faded = pause::look(&self.cell, Windows::faded);
        u64::try_from(faded).ok().map(Nanos::new)
    }
}

impl<K: Kind> sealed::Policing for Windowed<K> {
    #[inline]
    fn try_acquire(&self, n: u64, now: Nanos) -> Result<(), Refused> {
        if n == 0 {
            return Ok(());
        }
        // The usual yes, which stands by itself as in the bucket.
        let (word, windows) = pause::load(&self.cell);
        if let Some(field) = windows.admit_in_64_bits(word.field(), now, n) {
            if self.cell.exchange(word, word.with_field(field)).is_ok() {
                return Ok(());
            }
        }
        self.take(now, |_, _| n).map(drop)
    }

    fn acquire_up_to(&self, n: u64, now: Nanos) -> u64 {
        self.take(now, |windows, field| n.min(windows.remaining(field, now))).unwrap_or(0)
    }

    fn refund(&self, n: u64, now: Nanos) {
        self.lower(|windows, field| windows.refunded(field, now, n));
    }

    fn reset(&self, _now: Nanos) {
        self.lower(Windows::emptied);
    }
}

impl<K: Kind> Windowed<K> {
    /// Takes the `amount` that the windows as they stand are asked for, which is told their version and their field.
    #[inline(never)]
    fn take(&self, now: Nanos, amount: impl Fn(&Windows<K>, u64) -> u64) -> Result<u64, Refused> {
        loop {
            let (word, windows) = pause::load(&self.cell);
            let n = amount(&windows, word.field());
            let next = match windows.admit(word.field(), now, n).filter(|_| n > 0) {
                // Nothing is taken of what is unlimited, and nothing if nothing is asked for.
                Some(_) if windows.unlimited => granted(word, &windows, word.field()),
                Some(counts) => match windows.field(&counts) {
                    Some(field) => granted(word, &windows, field),
                    None => return self.take_and_rebase(now, amount),
                },
                None if n == 0 => word,
                None if self.cell.still(word) => return Err(windows.refusal(word.field(), now, n)),
                None => continue,
            };
            let done = if next == word { self.cell.still(word) } else { self.cell.exchange(word, next).is_ok() };
            if done {
                return Ok(n);
            }
        }
    }

    /// Grants and moves the origin in one exchange, so that the move changes no answer.
    #[cold]
    fn take_and_rebase(&self, now: Nanos, amount: impl Fn(&Windows<K>, u64) -> u64) -> Result<u64, Refused> {
        let mut n = 0;
        self.cell.replace(|Version { word, record, since, .. }| {
            let windows = in_force(word, record);
            n = amount(&windows, word.field());
            let counts = windows.admit(word.field(), now, n).filter(|_| n > 0);
            let counts = counts.ok_or_else(|| windows.refusal(word.field(), now, n))?;
            let (windows, field) = Windows { held: false, ..windows }.rebased(&counts);
            Ok(Next { quota: None, record: windows, word: word.with_field(field).with_behind(false), since })
        })?;
        Ok(n)
    }

    /// Takes permits out of the counts, which opens no window and takes no lock.
    fn lower(&self, lowered: impl Fn(&Windows<K>, u64) -> u64) {
        loop {
            let (word, windows) = pause::load(&self.cell);
            let next = word.with_field(lowered(&windows, word.field()));
            let done = if next == word { self.cell.still(word) } else { self.cell.exchange(word, next).is_ok() };
            if done {
                return;
            }
        }
    }
}
