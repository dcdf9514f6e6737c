//! Some order of the calls explains all answers.

use std::sync::Arc;
use std::time::Duration;

use shuttle::rand::rngs::ThreadRng;
use shuttle::rand::{Rng, thread_rng};

use crate::reference::order::{drive, explains, still_waiting};
use crate::reference::{Law, Op, line, real};
use crate::run::{check, pick, run};

/// Checks three threads that make the calls in `threads`.
fn explain(law: Law, catch_up: Duration, threads: Vec<Vec<Op>>) {
    let subject = Arc::new(real::Line::new(law, catch_up, usize::MAX));
    let end = threads.iter().flatten().map(Op::now).max().unwrap_or(0);
    let seen = run(&subject, threads);
    let told = still_waiting(seen.iter().flatten());
    let ends = drive(&mut &*subject, told.clone(), end);
    let start = line::Line::new(law, catch_up, usize::MAX);
    let fits = |mut line: line::Line| drive(&mut line, told.clone(), end) == ends;
    assert!(explains(&start, &seen, &fits), "no order explains {law:?} {catch_up:?} {seen:#?} ending in {ends:?}");
}

/// The calls of a caller who may wait: it asks for a place, looks after it, leaves it or gives its permit back.
fn caller(random: &mut ThreadRng, who: usize, calls: usize) -> Vec<Op> {
    let mut now = random.gen_range(0..30);
    (0..calls)
        .map(|call| {
            now = (now + random.gen_range(0..12u64)).saturating_sub(3);
            let n = pick(random, &[1, 1, 1, 2, 3]);
            match random.gen_range(0..if call == 0 { 3 } else { 7 }) {
                _ if call == 0 => Op::Enter { who, n, now, deadline: pick(random, &[u64::MAX, u64::MAX, now + 15]) },
                0 => Op::Try { n, now },
                1 => Op::SetQuota { law: pick(random, &LAWS), now },
                2 => Op::Close { now },
                3 | 4 => Op::Step { who, now },
                5 => Op::Leave { who, now },
                _ => Op::GiveBack { who, now },
            }
        })
        .collect()
}

const LAWS: [Law; 4] = [Law::new(10, 1), Law::new(10, 3), Law::new(100, 1).permits(3), Law::new(5, 2).permits(3)];

#[test]
fn some_order_explains_what_callers_of_a_line_see() {
    check(5_000, || {
        let mut random = thread_rng();
        let law = pick(&mut random, &LAWS);
        let catch_up = Duration::from_nanos(pick(&mut random, &[0, 15]));
        let threads = (0..3).map(|who| caller(&mut random, who, 3)).collect();
        explain(law, catch_up, threads);
    });
}

#[test]
fn a_large_request_is_judged_by_one_quota() {
    check(20_000, || {
        let law = Law::new(10, 1);
        let threads =
            vec![vec![Op::Try { n: 3, now: 10 }], vec![Op::SetQuota { law: Law::new(1_000, 1).permits(3), now: 10 }]];
        explain(law, Duration::ZERO, threads);
    });
}
