//! A token bucket of which the arrival time and the end of a pause are one atomic, and the quota two more.

use super::checked::atomic::{AtomicU64, Ordering::SeqCst};
use crate::reference::bucket::Bucket;
use crate::reference::real::Subject;
use crate::reference::{Law, Op, Outcome, Reference};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Nothing, while the quota stays: shows that the flaw is what turns a check red.
    Nothing,
    /// A grant is a load and a store.
    LoadAndStore,
    /// One permit more than the burst.
    OneTooMany,
    /// A refused request is charged and paid back.
    ChargesBeforeItAsks,
    /// Permits given back are a load and a store.
    RefundByStore,
    /// What is there is looked up, and taken whatever happened since.
    TakesWhatItSaw,
    /// A reset is refunds of one permit each.
    ResetsOneByOne,
    /// A pause is a load and a store.
    PauseByStore,
    /// The quota is read beside the word, which does not say under which one it was written.
    QuotaWithoutVersion,
}

/// What the word holds above the end of a pause.
const TAT: u64 = 1 << 16;

pub(crate) struct Word {
    flaw: Flaw,
    word: AtomicU64,
    interval: AtomicU64,
    burst: AtomicU64,
}

impl Word {
    pub(crate) fn new(flaw: Flaw, law: Law) -> Self {
        let (interval, burst) = (AtomicU64::new(law.interval), AtomicU64::new(law.burst));
        Self { flaw, word: AtomicU64::new(0), interval, burst }
    }

    /// The quota, read without looking again.
    fn law(&self) -> Law {
        match self.flaw {
            Flaw::QuotaWithoutVersion => Law::new(self.interval.load(SeqCst), self.burst.load(SeqCst)),
            _ => {
                Law::new(self.interval.load(SeqCst), self.burst.load(SeqCst) + u64::from(self.flaw == Flaw::OneTooMany))
            }
        }
    }

    fn bucket(&self, word: u64) -> Bucket {
        Bucket::at(self.law(), word / TAT).held_until(word % TAT)
    }

    fn word(bucket: &Bucket) -> u64 {
        bucket.tat() * TAT + bucket.end_of_pause()
    }

    fn replace(&self, by_store: bool, seen: u64, next: u64) -> bool {
        if by_store {
            self.word.store(next, SeqCst);
            return true;
        }
        seen == next || self.word.compare_exchange(seen, next, SeqCst, SeqCst).is_ok()
    }

    /// Makes a call on the reference as it stands, and puts what that leaves in place.
    fn exchange(&self, op: Op, by_store: bool) -> Outcome {
        loop {
            let seen = self.word.load(SeqCst);
            let mut bucket = self.bucket(seen);
            let outcome = bucket.call(op).outcome();
            if self.replace(by_store, seen, Self::word(&bucket)) {
                return outcome;
            }
        }
    }
}

impl Subject for Word {
    fn call(&self, op: Op) -> Outcome {
        match op {
            Op::Try { n, .. } if self.flaw == Flaw::ChargesBeforeItAsks => {
                let cost = n * self.interval.load(SeqCst) * TAT;
                let before = self.word.fetch_add(cost, SeqCst);
                let outcome = self.bucket(before).call(op).outcome();
                if outcome != Outcome::Granted {
                    self.word.fetch_sub(cost, SeqCst);
                }
                outcome
            }
            Op::UpTo { n, now } if self.flaw == Flaw::TakesWhatItSaw => {
                let seen = self.bucket(self.word.load(SeqCst)).call(Op::UpTo { n, now }).outcome();
                if let Outcome::Took(n) = seen {
                    self.word.fetch_add(n * self.interval.load(SeqCst) * TAT, SeqCst);
                }
                seen
            }
            Op::Reset { now } if self.flaw == Flaw::ResetsOneByOne => {
                for _ in 0..self.burst.load(SeqCst) {
                    self.exchange(Op::Refund { n: 1, now }, false);
                }
                Outcome::Done
            }
            Op::UpTo { .. } | Op::Reset { .. } => self.exchange(op, false),
            Op::Try { .. } => self.exchange(op, self.flaw == Flaw::LoadAndStore),
            Op::Refund { .. } => self.exchange(op, self.flaw == Flaw::RefundByStore),
            Op::Pause { .. } => self.exchange(op, self.flaw == Flaw::PauseByStore),
            Op::SetQuota { law, .. } => {
                let mut bucket = self.bucket(self.word.load(SeqCst));
                bucket.call(op);
                self.interval.store(law.interval, SeqCst);
                self.burst.store(law.burst, SeqCst);
                self.word.store(Self::word(&bucket), SeqCst);
                Outcome::Done
            }
            op => self.bucket(self.word.load(SeqCst)).call(op).outcome(),
        }
    }
}
