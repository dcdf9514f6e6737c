//! Some order of the calls explains all answers of a queue, and how those end who are left in it.

use std::sync::Arc;
use std::time::Duration;

use shuttle::rand::rngs::ThreadRng;
use shuttle::rand::{Rng, thread_rng};

use crate::broken::line::{Flaw, Line};
use crate::reference::order::{drive, explains, still_waiting};
use crate::reference::real::Subject;
use crate::reference::{Law, Op, Reference, line, real};
use crate::run::{check, pick, run};

/// Checks threads that make the calls in `threads`.
fn explain<S: Subject>(subject: S, start: line::Line, threads: Vec<Vec<Op>>) {
    let subject = Arc::new(subject);
    let end = threads.iter().flatten().map(Op::now).max().unwrap_or(0);
    let seen = run(&subject, threads);
    let told = still_waiting(seen.iter().flatten());
    let ends = drive(&mut &*subject, told.clone(), end);
    let fits = |mut line: line::Line| drive(&mut line, told.clone(), end) == ends;
    assert!(explains(&start, &seen, &fits), "no order explains {start:?} {seen:?} ending in {ends:?}");
}

fn explain_real(law: Law, catch_up: Duration, threads: Vec<Vec<Op>>) {
    let real = real::Line::new(law, catch_up, usize::MAX);
    explain(real, line::Line::new(law, catch_up, usize::MAX), threads);
}

const LAWS: [Law; 4] = [Law::new(10, 1), Law::new(10, 3), Law::new(100, 1).permits(3), Law::new(5, 2).permits(3)];

/// Three calls of a caller who waits, and then asks again or changes something by `next`.
fn caller(random: &mut ThreadRng, who: usize, next: fn(&mut ThreadRng, usize, u64) -> Op) -> Vec<Op> {
    let mut now = random.gen_range(0..30);
    let n = pick(random, &[1, 1, 1, 2, 3]);
    let mut calls = vec![Op::Enter { who, n, now, deadline: pick(random, &[u64::MAX, u64::MAX, now + 15]) }];
    for _ in 0..2 {
        now = (now + random.gen_range(0..12)).saturating_sub(3);
        calls.push(next(random, who, now));
    }
    calls
}

/// What a caller may do who waits or holds a permit.
fn waits(random: &mut ThreadRng, who: usize, now: u64) -> Op {
    let n = pick(random, &[1, 1, 2, 3]);
    match random.gen_range(0..11) {
        0 => Op::Try { n, now },
        1 => Op::SetQuota { law: pick(random, &LAWS), now },
        2 => Op::Close { now },
        3 => Op::Pause { end: pick(random, &[0, now + 5, now + 30]), now },
        4 | 5 => Op::Step { who, now },
        6 => Op::Leave { who, now },
        7 => Op::UpTo { n, now },
        8 => Op::Estimate { n, now },
        9 => Op::Waiting { now },
        _ => Op::GiveBack { who, now },
    }
}

/// The same with refunds by number and resets. After one, a later grant can look like an earlier one, so nothing else is given back.
fn refunds(random: &mut ThreadRng, who: usize, now: u64) -> Op {
    match waits(random, who, now) {
        Op::Leave { .. } => Op::Refund { n: pick(random, &[1, 2]), now },
        Op::GiveBack { .. } => Op::Reset { now },
        op => op,
    }
}

#[test]
fn some_order_explains_what_callers_of_a_line_see() {
    check(10_000, || {
        let mut random = thread_rng();
        let (law, catch_up) = (pick(&mut random, &LAWS), Duration::from_nanos(pick(&mut random, &[0, 15])));
        explain_real(law, catch_up, (0..3).map(|who| caller(&mut random, who, waits)).collect());
    });
}

#[test]
fn some_order_explains_refunds() {
    check(6_000, || {
        let mut random = thread_rng();
        let law = pick(&mut random, &LAWS);
        explain_real(law, Duration::ZERO, (0..3).map(|who| caller(&mut random, who, refunds)).collect());
    });
}

#[test]
fn a_large_request_is_judged_by_one_quota() {
    check(5_000, || {
        let grant = vec![Op::Try { n: 3, now: 10 }];
        let change = vec![Op::SetQuota { law: Law::new(1_000, 1).permits(3), now: 10 }];
        explain_real(Law::new(10, 1), Duration::ZERO, vec![grant, change]);
    });
}

/// Through as many changes as it takes until one is written over the first quota.
#[test]
fn what_is_taken_is_by_one_quota() {
    check(5_000, || {
        let (law, before) = (Law::new(1_000, 3), Op::Try { n: 1, now: 10 });
        let real = real::Line::new(law, Duration::ZERO, usize::MAX);
        let mut start = line::Line::new(law, Duration::ZERO, usize::MAX);
        assert!(start.call(before).allows(&real.call(before)));
        let changes = vec![Op::SetQuota { law: Law::new(10, 3), now: 10 }; 8];
        explain(real, start, vec![vec![Op::UpTo { n: 3, now: 10 }], changes]);
    });
}

/// The calls that the queue knows that is wrong on purpose.
fn simple(random: &mut ThreadRng, who: usize) -> Vec<Op> {
    let mut now = random.gen_range(0..12);
    let mut calls = vec![Op::Enter { who, n: 1, now, deadline: u64::MAX }];
    for _ in 0..2 {
        now += random.gen_range(0..12);
        calls.push(match random.gen_range(0..12) {
            11 => Op::GiveBack { who, now },
            10 => Op::UpTo { n: 1, now },
            0..=3 => Op::Try { n: 1, now },
            4..=6 => Op::Step { who, now },
            7..=8 => Op::Leave { who, now },
            _ => Op::Close { now },
        });
    }
    calls
}

/// The same with resets. That queue would not give a grant back that was made before one.
fn resets(random: &mut ThreadRng, who: usize) -> Vec<Op> {
    let mut calls = simple(random, who);
    for call in &mut calls {
        if let Op::Leave { now, .. } | Op::GiveBack { now, .. } = *call {
            *call = Op::Reset { now };
        }
    }
    calls
}

fn explain_broken(flaw: Flaw, calls: fn(&mut ThreadRng, usize) -> Vec<Op>) {
    check(5_000, move || {
        let law = Law::new(10, 1);
        let threads = (0..3).map(|who| calls(&mut thread_rng(), who)).collect();
        explain(Line::new(flaw, law), line::Line::new(law, Duration::ZERO, usize::MAX), threads);
    });
}

#[test]
fn some_order_explains_a_line_without_a_flaw() {
    explain_broken(Flaw::Nothing, simple);
    explain_broken(Flaw::Nothing, resets);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_bit_that_is_stored_is_found() {
    explain_broken(Flaw::BitByStore, simple);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_slot_that_was_looked_up_before_the_lock_is_found() {
    explain_broken(Flaw::LooksBeforeTheLock, simple);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_grant_that_is_given_back_after_a_later_one_is_found() {
    explain_broken(Flaw::AlwaysTakesBack, simple);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_permit_in_hand_that_is_given_back_after_a_later_grant_is_found() {
    explain_broken(Flaw::AlwaysGivesBack, simple);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_closed_line_that_is_not_drained_is_found() {
    explain_broken(Flaw::ClosesWithoutDraining, simple);
}

#[test]
#[should_panic(expected = "no order explains")]
fn what_is_taken_from_those_who_wait_is_found() {
    explain_broken(Flaw::TakesFromThoseWhoWait, simple);
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_reset_that_does_not_reach_the_line_is_found() {
    explain_broken(Flaw::ResetsTheWordAlone, resets);
}
