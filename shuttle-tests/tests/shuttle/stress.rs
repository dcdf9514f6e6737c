//! Many threads on one word, and many callers in one line.

use std::sync::Arc;

use shuttle::rand::{Rng, thread_rng};

use crate::broken::{line, word};
use crate::reference::order::{drive, still_waiting};
use crate::reference::real::{self, Subject};
use crate::reference::{Law, Op, Outcome};
use crate::run::{check, pick, run};

const LAW: Law = Law::new(10, 5);

fn granted<'a>(calls: impl IntoIterator<Item = &'a (Op, Outcome)>) -> impl Iterator<Item = u64> {
    let granted = calls.into_iter().filter(|(_, outcome)| *outcome == Outcome::Granted);
    let n = granted.filter_map(|(op, _)| match *op {
        Op::Try { n, .. } | Op::Enter { n, .. } => Some(n),
        _ => None,
    });
    n.collect::<Vec<_>>().into_iter()
}

fn left(subject: &impl Subject) -> u64 {
    match subject.call(Op::Look { now: 0 }) {
        Outcome::Seen { remaining, .. } => remaining,
        other => panic!("{other:?} is no look"),
    }
}

/// At one instant the burst is shared out: what is granted and what is left are the burst, and who was refused asked for more
/// than is left.
fn share_out<S: Subject>(subject: S) {
    let subject = Arc::new(subject);
    let mut random = thread_rng();
    let threads = random.gen_range(4..=8);
    let mut request = || Op::Try { n: pick(&mut random, &[1, 1, 2, 3]), now: 0 };
    let seen = run(&subject, (0..threads).map(|_| vec![request(), request()]).collect());
    let (granted, left) = (granted(seen.iter().flatten()).sum::<u64>(), left(&*subject));
    assert_eq!(granted + left, LAW.burst, "permits were made or lost: {seen:?}");
    for (op, outcome) in seen.iter().flatten() {
        let Op::Try { n, .. } = *op else { continue };
        assert!(*outcome == Outcome::Granted || n > left, "{op:?} was refused, and {left} are left: {seen:?}");
    }
}

/// Changes of the rate and pauses carry every permit.
fn share_out_through_changes() {
    let subject = Arc::new(real::Bucket::new(LAW));
    let mut threads = vec![vec![Op::Try { n: 1, now: 0 }, Op::Try { n: 2, now: 0 }]; 4];
    let (slower, faster) = (Law::new(30, LAW.burst), Law::new(2, LAW.burst));
    threads.push([slower, faster, LAW, slower].map(|law| Op::SetQuota { law, now: 0 }).to_vec());
    threads.push([9, 0, 5, 0].map(|end| Op::Pause { end, now: 0 }).to_vec());
    let seen = run(&subject, threads);
    let (granted, left) = (granted(seen.iter().flatten()).sum::<u64>(), left(&*subject));
    assert_eq!(granted + left, LAW.burst, "permits were made or lost: {seen:?}");
}

/// All ask at one instant and some leave again. As many as the burst go at once, the others one an interval.
fn queue_up<S: Subject>(subject: S, law: Law) {
    let subject = Arc::new(subject);
    let mut random = thread_rng();
    let callers = random.gen_range(4..=8);
    let mut calls = |who| {
        let mut calls = vec![Op::Enter { who, n: 1, now: 0, deadline: u64::MAX }];
        match random.gen_range(0..4) {
            0 => calls.push(Op::Leave { who, now: 0 }),
            1 => calls.push(Op::Step { who, now: 0 }),
            2 => calls.push(Op::Try { n: 1, now: 0 }),
            _ => {}
        }
        calls
    };
    let seen = run(&subject, (0..callers).map(&mut calls).collect());
    let at_once = granted(seen.iter().flatten()).count();
    assert_eq!(u64::try_from(at_once).unwrap(), law.burst, "of {callers}: {seen:?}");
    let told = still_waiting(seen.iter().flatten());
    let mut ends = drive(&mut &*subject, told.clone(), 0);
    ends.pop();
    let slots: Vec<u64> = (1..=told.len()).map(|slot| slot as u64 * law.interval).collect();
    assert_eq!(ends.iter().map(|end| end.0).collect::<Vec<_>>(), slots, "{seen:?} end in {ends:?}");
    assert!(ends.iter().all(|end| end.2 == Outcome::Granted), "{seen:?} end in {ends:?}");
}

#[test]
fn many_threads_share_a_burst_out() {
    check(4_000, || share_out(real::Bucket::new(LAW)));
}

#[test]
fn many_threads_share_a_burst_out_through_changes() {
    check(4_000, share_out_through_changes);
}

#[test]
fn many_callers_leave_one_an_interval() {
    for law in [Law::new(10, 1), Law::new(10, 3)] {
        check(3_000, move || queue_up(real::Line::new(law, std::time::Duration::ZERO, usize::MAX), law));
    }
}

#[test]
fn without_a_flaw_nothing_is_found() {
    check(2_000, || share_out(word::Word::new(word::Flaw::Nothing, LAW)));
    check(2_000, || queue_up(line::Line::new(line::Flaw::Nothing, Law::new(10, 1)), Law::new(10, 1)));
}

#[test]
#[should_panic(expected = "permits were made or lost")]
fn a_lost_update_is_found() {
    check(2_000, || share_out(word::Word::new(word::Flaw::LoadAndStore, LAW)));
}

#[test]
#[should_panic(expected = "end in")]
fn who_is_not_woken_is_found() {
    check(2_000, || queue_up(line::Line::new(line::Flaw::NoWakeUp, Law::new(10, 1)), Law::new(10, 1)));
}
