//! A table of keys: a slot that changes its owner, a key that is first seen, a quota that changes for all.
//!
//! Each program runs on the crate's table and on one that is wrong in one way, and must find that.

mod first_sight;
mod give_back;
mod horizon;
mod quota;
mod take_over;
mod walk;

use std::sync::Arc;

use tollgate::WhenFull;

use crate::broken::table::{self, Flaw};
use crate::program::model;
use crate::reference::Op::{self, Look, Refund, Reset, SetQuota, Try};
use crate::reference::keys::{ADA, ALI, AMY, ANN, AVA, BAY, BEA, BIX, Call, Key, Keys, Real, Table, explains};
use crate::reference::{Law, Outcome};

const fn on(key: Key, op: Op) -> Call {
    Call { key, op }
}

const fn take(key: Key, now: u64) -> Call {
    on(key, Try { n: 1, now })
}

const fn look(key: Key, now: u64) -> Call {
    on(key, Look { now })
}

const fn refund(key: Key, now: u64) -> Call {
    on(key, Refund { n: 1, now })
}

const fn reset(key: Key, now: u64) -> Call {
    on(key, Reset { now })
}

const fn quota(law: Law, now: u64) -> Call {
    on(ANN, SetQuota { law, now })
}

/// A table in which all places are taken, at a burst of two: the first at rest from 10 on, the others from 20 on.
fn full<const THREADS: usize>(threads: [&[Call]; THREADS], after: &[Call]) -> Program {
    let others = [ADA, AMY, BEA, AVA, ALI, BAY, BIX].map(|key| on(key, TWO));
    let before: Vec<_> = std::iter::once(take(ANN, 0)).chain(others).collect();
    Program::new(Law::new(10, 2), &before, threads, after)
}

const TWO: Op = Try { n: 2, now: 0 };

/// What is asked before the threads start, by each of them, and after they have ended.
#[derive(Clone, Debug)]
struct Program {
    law: Law,
    when_full: WhenFull,
    before: Vec<Call>,
    threads: Vec<Vec<Call>>,
    after: Vec<Call>,
}

impl Program {
    fn new<const THREADS: usize>(law: Law, before: &[Call], threads: [&[Call]; THREADS], after: &[Call]) -> Self {
        let (before, after) = (before.to_vec(), after.to_vec());
        Self { law, when_full: WhenFull::Refuse, before, threads: threads.map(<[Call]>::to_vec).to_vec(), after }
    }

    fn shared(self) -> Self {
        Self { when_full: WhenFull::Share, ..self }
    }

    /// Checks the crate's table.
    fn check(self) {
        self.check_as(Real::new);
    }

    /// Checks a table that is wrong, or right if the flaw is none.
    fn check_broken(self, flaw: Flaw) {
        self.check_as(move |law, when_full| table::Broken::new(flaw, law, when_full));
    }

    /// Checks that the table that `make` makes answers as a table would, and is left as one would be. As other programs do, with
    /// each of the threads as the first in turn.
    fn check_as<T: Table>(self, make: impl Fn(Law, WhenFull) -> T + Send + Sync + 'static) {
        let make = Arc::new(make);
        let explore = |first| {
            let (mut program, make) = (self.clone(), Arc::clone(&make));
            program.threads.rotate_left(first);
            model(move || program.run(make(program.law, program.when_full)))
        };
        let schedules: usize = (0..self.threads.len()).map(explore).sum();
        assert!(schedules > self.threads.len(), "the threads of this model never meet");
    }

    fn run(&self, table: impl Table) {
        let table = Arc::new(table);
        let before = ask(&*table, &self.before);
        let (first, others) = self.threads.split_first().expect("a program has threads");
        let others: Vec<_> = others
            .iter()
            .map(|calls| {
                let (table, calls) = (Arc::clone(&table), calls.clone());
                loom::thread::spawn(move || ask(&*table, &calls))
            })
            .collect();
        let mut seen = vec![ask(&*table, first)];
        seen.extend(others.into_iter().map(|thread| thread.join().unwrap()));
        let after = ask(&*table, &self.after);
        let start = Keys::new(self.law, self.when_full);
        let is_explained = explains(start, &before, &seen, &after);
        assert!(is_explained, "no order explains {:#?}{:#?}{:#?}", Calls(&[before]), Calls(&seen), Calls(&[after]));
    }
}

fn ask(table: &impl Table, calls: &[Call]) -> Vec<(Call, Outcome)> {
    calls.iter().map(|call| (*call, table.call(*call))).collect()
}

/// Prints calls a line each.
struct Calls<'a>(&'a [Vec<(Call, Outcome)>]);

impl std::fmt::Debug for Calls<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (thread, calls) in self.0.iter().enumerate() {
            for (Call { key, op }, outcome) in calls {
                writeln!(f, "thread {thread}: {op:?} of {} -> {outcome:?}", key.fingerprint)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
