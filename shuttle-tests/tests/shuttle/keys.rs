//! Some order of the calls explains all answers of a table of keys, and a frozen thread keeps nobody from a key that is known.

use std::sync::Arc;

use shuttle::rand::rngs::ThreadRng;
use shuttle::rand::{Rng, thread_rng};
use tollgate::WhenFull;

use crate::broken::table::{Broken, Flaw};
use crate::freeze::stuck_in;
use crate::reference::keys::{
    ABE, ADA, ALI, AMY, ANN, AVA, BAY, BEA, BEN, BIX, BOB, Call, Key, Keys, Real, Table, explains,
};
use crate::reference::{Law, Op, Outcome};
use crate::run::{check, pick, report};

const LAW: Law = Law::new(10, 2);
const OTHERS: [Law; 4] = [LAW, Law::new(20, 2), Law::new(5, 4), Law::new(10, 1)];

/// A call of any kind, for one of these keys, at a time at which some are at rest and others are not.
fn any(random: &mut ThreadRng, keys: &[Key], changes: bool) -> Call {
    let (key, now) = (pick(random, keys), random.gen_range(0..40));
    let op = match random.gen_range(0..12) {
        0..=5 => Op::Try { n: pick(random, &[1, 1, 2]), now },
        6 | 7 => Op::Look { now },
        8 => Op::Refund { n: 1, now },
        9 => Op::Reset { now },
        _ if changes => Op::SetQuota { law: pick(random, &OTHERS), now },
        _ => Op::Try { n: 1, now },
    };
    Call { key, op }
}

fn ask(table: &impl Table, calls: Vec<Call>) -> Vec<(Call, Outcome)> {
    calls.into_iter().map(|call| (call, table.call(call))).collect()
}

/// Three threads make three calls each, in a table in which some keys are known, after so many changes of the quota.
fn explain<T: Table>(make: fn(Flaw, Law, WhenFull) -> T, flaw: Flaw, keys: &[Key], changes: Option<usize>) {
    let mut random = thread_rng();
    let when_full = pick(&mut random, &[WhenFull::Refuse, WhenFull::Share]);
    let table = Arc::new(make(flaw, LAW, when_full));
    let mut calls =
        |count: usize| -> Vec<Call> { (0..count).map(|_| any(&mut random, keys, changes.is_some())).collect() };
    let mut first = calls(if keys.len() > FEW.len() { 16 } else { 4 });
    first.extend(
        (0..changes.unwrap_or(0))
            .map(|change| Call { key: ANN, op: Op::SetQuota { law: OTHERS[change % OTHERS.len()], now: 0 } }),
    );
    let threads = [calls(3), calls(3), calls(3)];
    let before = ask(&*table, first);
    let threads = threads.map(|calls| {
        let table = Arc::clone(&table);
        shuttle::thread::spawn(move || ask(&*table, calls))
    });
    let seen: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let looks = keys.iter().map(|key| Call { key: *key, op: Op::Look { now: 20 } }).collect();
    let last = ask(&*table, looks);
    let is_explained = explains(Keys::new(LAW, when_full), &before, &seen, &last);
    let lines = |calls: &[(Call, Outcome)]| -> String {
        calls.iter().map(|(Call { key, op }, outcome)| format!("\n{} {op:?} {outcome:?}", key.fingerprint)).collect()
    };
    let threads: String = seen.iter().map(|calls| lines(calls) + "\n").collect();
    assert!(is_explained, "no order explains {when_full:?} {}\n{threads}{}", lines(&before), lines(&last));
}

/// The crate's table has no flaw.
fn real(_: Flaw, law: Law, when_full: WhenFull) -> Real {
    Real::new(law, when_full)
}

fn broken(flaw: Flaw, law: Law, when_full: WhenFull) -> Broken {
    Broken::new(flaw, law, when_full)
}

const FEW: [Key; 3] = [ANN, ADA, BOB];
const MANY: [Key; 11] = [ANN, ADA, AMY, ABE, AVA, ALI, BOB, BEA, BEN, BAY, BIX];

#[test]
fn some_order_explains_what_is_told_of_few_keys() {
    check(1_500, || explain(real, Flaw::Nothing, &FEW, None));
}

#[test]
fn some_order_explains_what_is_told_of_more_keys_than_there_is_room_for() {
    check(60, || explain(real, Flaw::Nothing, &MANY, None));
}

#[test]
fn some_order_explains_changes_of_the_quota_of_all_keys() {
    check(600, || explain(real, Flaw::Nothing, &FEW, Some(0)));
    check(30, || explain(real, Flaw::Nothing, &MANY, Some(0)));
}

#[test]
fn some_order_explains_a_walk() {
    check(300, || explain(real, Flaw::Nothing, &FEW, Some(13)));
    check(30, || explain(real, Flaw::Nothing, &MANY, Some(14)));
}

#[test]
fn some_order_explains_a_table_without_a_flaw() {
    check(400, || explain(broken, Flaw::Nothing, &FEW, None));
    check(100, || explain(broken, Flaw::Nothing, &FEW, Some(14)));
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_tag_that_is_read_before_the_word_is_found() {
    check(4_000, || explain(broken, Flaw::TagBeforeWord, &FEW, None));
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_first_sight_without_a_second_look_is_found() {
    check(4_000, || explain(broken, Flaw::NoSecondLook, &FEW, None));
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_slot_that_is_taken_by_a_store_is_found() {
    check(4_000, || explain(broken, Flaw::MarksByStore, &FEW, None));
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_table_without_a_horizon_is_found() {
    check(4_000, || explain(broken, Flaw::NoHorizon, &FEW, None));
}

#[test]
#[should_panic(expected = "no order explains")]
fn a_walk_that_is_a_load_and_a_store_is_found() {
    check(4_000, || explain(broken, Flaw::WalksByStore, &FEW, Some(14)));
}

const fn on(key: Key, op: Op) -> Call {
    Call { key, op }
}

#[test]
fn a_known_key_is_answered_while_a_thread_is_frozen() {
    let decisions = [
        on(ANN, Op::Try { n: 1, now: 12 }),
        on(ANN, Op::Look { now: 12 }),
        on(ANN, Op::Refund { n: 1, now: 15 }),
        on(ANN, Op::Try { n: 2, now: 20 }),
        on(ANN, Op::Reset { now: 18 }),
        on(ANN, Op::Try { n: 1, now: 20 }),
    ];
    let change = on(ANN, Op::SetQuota { law: Law::new(11, 2), now: 0 });
    // The last is the first change that needs a walk.
    let victims: [(usize, &[Call]); 4] = [
        (0, &[on(ADA, Op::Try { n: 1, now: 12 }), on(BOB, Op::Try { n: 1, now: 12 })]),
        (0, &[on(ANN, Op::Try { n: 1, now: 12 }), on(ANN, Op::Reset { now: 12 })]),
        (0, &[change, on(ANN, Op::Try { n: 1, now: 12 })]),
        (14, &[change]),
    ];
    report(|| {
        for (changes, victim) in victims {
            let make = move || {
                let table = Real::new(LAW, WhenFull::Refuse);
                table.call(on(ANN, Op::Try { n: 1, now: 100 }));
                for _ in 0..changes {
                    table.call(change);
                }
                table
            };
            assert_eq!(stuck_in(make, Real::call, victim, &decisions), 0, "beside {victim:?}");
        }
    });
}

#[test]
fn a_newcomer_behind_a_frozen_one_is_found() {
    let newcomers = [on(ADA, Op::Try { n: 1, now: 12 })];
    let stuck =
        stuck_in(|| Real::new(LAW, WhenFull::Refuse), Real::call, &[on(ANN, Op::Try { n: 1, now: 12 })], &newcomers);
    assert!(stuck > 0, "no newcomer ever waited for the frozen thread");
}
