//! Histories of a bucket are linearizable: each call takes effect at some instant between its start and its answer, as the
//! sequential bucket says.

use std::sync::{Arc, Mutex};

use shuttle::rand::rngs::ThreadRng;
use shuttle::rand::{Rng, thread_rng};
use todc_utils::linearizability::WGLChecker;
use todc_utils::linearizability::history::{Action, History};
use todc_utils::specifications::Specification;

use crate::broken::word::{Flaw, Word};
use crate::reference::bucket::Bucket;
use crate::reference::real::{self, Subject};
use crate::reference::{Law, Op, Outcome, Reference};
use crate::run::{check, pick};

const LAW: Law = Law::new(10, 3);
const OTHERS: [Law; 4] = [LAW, Law::new(30, 3), Law::new(4, 5), Law::new(7, 1)];

/// The sequential bucket, as the checker asks for it: a call, and its answer once there is one.
struct Spec;

impl Specification for Spec {
    type State = Bucket;
    type Operation = (Op, Option<Outcome>);

    fn init() -> Bucket {
        Bucket::new(LAW)
    }

    fn apply((op, seen): &Self::Operation, bucket: &Bucket) -> (bool, Bucket) {
        let mut after = bucket.clone();
        let expected = after.call(*op);
        match seen.is_some_and(|seen| expected.allows(&seen)) {
            true => (true, after),
            false => (false, bucket.clone()),
        }
    }
}

/// Any call of a bucket, at a time around the others'.
fn any(random: &mut ThreadRng) -> Op {
    let (n, now) = (pick(random, &[0, 1, 1, 2, 3, 4]), random.gen_range(0..40));
    match random.gen_range(0..13) {
        0..=3 => Op::Try { n, now },
        4 => Op::Peek { n, now },
        5 => Op::Look { now },
        6 => Op::Refund { n, now },
        7 => Op::SetQuota { law: pick(random, &OTHERS), now },
        8 | 9 => Op::UpTo { n, now },
        10 => Op::Reset { now },
        11 => Op::Pause { end: now + random.gen_range(1..40), now },
        _ => Op::Pause { end: now, now },
    }
}

/// Requests, looks and refunds, as a limiter without quotas and pauses knows them.
fn plain(random: &mut ThreadRng) -> Op {
    loop {
        let op = any(random);
        if !matches!(op, Op::SetQuota { .. } | Op::Pause { .. }) {
            return op;
        }
    }
}

/// Three threads make three calls each.
fn linearizable<S: Subject>(subject: S, call: fn(&mut ThreadRng) -> Op) {
    let subject = Arc::new(subject);
    // A lock of std's is no step of the schedule.
    let history = Arc::new(Mutex::new(Vec::new()));
    let threads: Vec<_> = (0..3)
        .map(|thread| {
            let (subject, history) = (Arc::clone(&subject), Arc::clone(&history));
            let calls: Vec<Op> = (0..3).map(|_| call(&mut thread_rng())).collect();
            shuttle::thread::spawn(move || {
                for op in calls {
                    history.lock().unwrap().push((thread, Action::Call((op, None))));
                    let seen = subject.call(op);
                    history.lock().unwrap().push((thread, Action::Response((op, Some(seen)))));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let actions = history.lock().unwrap().clone();
    let lines: String = actions.iter().map(|action| format!("\n{action:?}")).collect();
    assert!(WGLChecker::<Spec>::is_linearizable(History::from_actions(actions)), "not linearizable: {lines}");
}

#[test]
fn histories_of_a_bucket_are_linearizable() {
    check(20_000, || linearizable(real::Bucket::new(LAW), any));
}

#[test]
fn histories_without_a_flaw_are_linearizable() {
    check(4_000, || linearizable(Word::new(Flaw::Nothing, LAW), plain));
}

/// Requests, looks and changes of the quota.
fn quotas(random: &mut ThreadRng) -> Op {
    loop {
        let op = any(random);
        if !matches!(op, Op::Refund { .. } | Op::Reset { .. } | Op::Pause { .. }) {
            return op;
        }
    }
}

#[test]
#[should_panic(expected = "not linearizable")]
fn a_quota_without_its_version_is_found() {
    check(10_000, || linearizable(Word::new(Flaw::QuotaWithoutVersion, LAW), quotas));
}

#[test]
#[should_panic(expected = "not linearizable")]
fn a_lost_update_is_found() {
    check(10_000, || linearizable(Word::new(Flaw::LoadAndStore, LAW), plain));
}

#[test]
#[should_panic(expected = "not linearizable")]
fn one_permit_too_many_is_found() {
    check(10_000, || linearizable(Word::new(Flaw::OneTooMany, LAW), plain));
}

#[test]
#[should_panic(expected = "not linearizable")]
fn a_refund_by_store_is_found() {
    check(10_000, || linearizable(Word::new(Flaw::RefundByStore, LAW), plain));
}

#[test]
#[should_panic(expected = "not linearizable")]
fn a_reset_in_several_steps_is_found() {
    check(10_000, || linearizable(Word::new(Flaw::ResetsOneByOne, LAW), plain));
}

#[test]
#[should_panic(expected = "not linearizable")]
fn what_is_taken_whatever_happened_since_is_found() {
    check(10_000, || linearizable(Word::new(Flaw::TakesWhatItSaw, LAW), plain));
}

#[test]
#[should_panic(expected = "not linearizable")]
fn a_charge_that_is_paid_back_is_found() {
    check(10_000, || linearizable(Word::new(Flaw::ChargesBeforeItAsks, LAW), plain));
}
