//! What users of other keyed limiters have reported, under every law.

use std::time::Duration;

use tollgate::{Quota, Refused};

use super::tables::{Hash, LAWS, Law, PLACES, Setup, Shape, Store, Table};
use crate::{DAY, HOUR, NANOSECOND, SECOND, YEAR, quota};

/// A second, an hour and so on as a time.
fn at(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).expect("within 584 years")
}

const S: u64 = 1_000_000_000;

/// A wait told is exact: refused a nanosecond before it is over, and granted when it is.
fn granted_after_exactly(table: &dyn Table, key: u64, n: u64, now: u64, wait: Duration) {
    let due = now + at(wait);
    assert!(table.peek_at(key, n, due - 1).is_err(), "a nanosecond less is enough");
    assert_eq!(table.peek_at(key, n, due), Ok(()));
}

// bucket4j/bucket4j#51
#[test]
fn a_large_budget_of_a_key_survives_any_idle_time() {
    for law in LAWS {
        // The largest log is smaller.
        let many = if law.shape == Shape::Log { 1_000_000 } else { 10_000_000 };
        let table = law.table(Setup::new(quota(many, SECOND, many)));
        for key in [0, 1] {
            assert_eq!(table.try_n_at(key, many, 0), Ok(()), "{law:?}");
        }
        let mut now = at(HOUR) * 12;
        assert_eq!(table.try_at(0, now), Ok(()), "{law:?}");
        assert_eq!(table.available_at(0, now), many - 1, "{law:?}");
        // Two windows on nothing counts, of a sliding counter neither.
        for idle in [2 * SECOND, HOUR, 30 * DAY, YEAR, 100 * YEAR] {
            now += at(idle);
            assert_eq!(table.available_at(1, now), many, "{law:?} after {idle:?}");
            assert_eq!(table.try_n_at(1, many, now), Ok(()), "{law:?} after {idle:?}");
            assert_eq!(table.available_at(1, now), 0, "{law:?} after {idle:?}");
        }
    }
}

// golang/go#56287, golang/go#71360, tikv/pd#10744
#[test]
fn a_clock_that_steps_back_and_forth_mints_nothing_for_a_key() {
    for law in LAWS {
        // Once alone, and once where every place is wanted by others.
        for others in [0, 30] {
            let table = law.small(Setup::new(quota(10, 10 * SECOND, 10)).built(1_000 * S));
            assert_eq!(table.try_n(7, 10), Ok(()));
            for step in 0..1_000 {
                for now in [999, 1_000] {
                    table.clock().set(now * S);
                    assert!(table.try_n(7, 1).is_err(), "{law:?} at {now}, step {step}");
                    for other in 0..others {
                        let _ = table.try_n(100 + other, 1);
                    }
                }
            }
            let due = 1_000 * S + law.first_back(10 * S, 10);
            assert!(!table.takes_at(7, due - 1), "{law:?}");
            assert!(table.takes_at(7, due), "{law:?}");
            assert_eq!(table.available_at(7, due), law.back_at_once(10) - 1, "{law:?}");
        }
    }
}

// express-rate-limit/express-rate-limit#194, #93, #207
#[test]
fn a_window_that_ends_for_one_key_frees_no_other_before_its_own_ends() {
    let fixed = law(Shape::Fixed);
    for beside in [false, true] {
        let table = fixed.table(Setup::new(quota(5, 180 * SECOND, 5)));
        let (a, b) = (1, 2);
        if beside {
            assert_eq!([0; 6].map(|now| table.takes_at(a, now)), [true, true, true, true, true, false]);
        }
        assert!((0..5).all(|_| table.takes_at(b, 179 * S)));
        let refused = table.try_at(b, 179 * S).unwrap_err();
        // Windows are the same for all keys.
        assert_eq!(refused.retry_after(), Some(SECOND), "beside another: {beside}");
        if beside {
            assert_eq!(table.try_at(a, 180 * S), Ok(()));
        }
        assert!(!table.takes_at(b, 180 * S - 1));
        assert!(table.takes_at(b, 180 * S));
    }
}

// The whole kind behind express-rate-limit/express-rate-limit#194
#[test]
fn nothing_that_happens_to_other_keys_is_seen_by_a_key() {
    for law in LAWS {
        let alone = answers(law, |_, _, _| {});
        let beside = answers(law, |table, round, now| {
            let other = 100 + round % 40;
            match round % 5 {
                0 => _ = table.try_n_at(other, 3, now),
                1 => table.reset_at(other, now + 5 * S),
                2 => table.refund_at(other, 100, now),
                3 => _ = table.try_n_at(other, u64::MAX, now),
                _ => _ = table.try_at(other, now.saturating_sub(20 * S)),
            }
        });
        assert_eq!(alone, beside, "{law:?}");
    }
}

/// What one key is answered, with `others` before each call. The table is small.
fn answers(law: Law, others: impl Fn(&dyn Table, u64, u64)) -> Vec<(Result<(), Refused>, u64)> {
    let table = law.small(Setup::new(quota(4, 4 * SECOND, 4)));
    // The key is busy from the start, so it has a place whatever the others do.
    assert_eq!(table.try_n_at(7, 3, 0), Ok(()));
    let answer = |round: u64| {
        let now = round * S / 3;
        others(&*table, round, now);
        match round % 11 {
            4 => table.refund_at(7, 1, now),
            9 => assert!(table.try_n_at(7, 5, now).is_err()),
            _ => {}
        }
        (table.try_n_at(7, 1 + round % 2, now), table.available_at(7, now))
    };
    (1..200).map(answer).collect()
}

// upstash/ratelimit-js PR 161, rcarmo/piclaw PR 105, mennanov/limiters#110
#[test]
fn a_refused_request_uses_nothing_of_a_keys_budget() {
    for law in LAWS {
        let table = law.table(Setup::new(quota(10, 10 * SECOND, 10)));
        assert_eq!(table.try_n_at(7, 8, 0), Ok(()));
        assert!(table.try_n_at(7, 5, 0).is_err());
        assert_eq!(table.available_at(7, 0), 2, "{law:?}");
        assert_eq!([0; 3].map(|now| table.takes_at(7, now)), [true, true, false], "{law:?}");
    }
}

// The same: each refusal must not make the wait longer.
#[test]
fn a_key_that_keeps_asking_waits_no_longer_than_one_that_does_not() {
    for law in LAWS {
        let table = law.table(Setup::new(quota(5, 60 * SECOND, 5)));
        assert_eq!(table.try_n_at(7, 5, 0), Ok(()));
        let due = law.first_back(60, 5);
        for second in 1..due {
            let refused = table.try_at(7, second * S).unwrap_err();
            assert_eq!(refused.retry_after(), Some(Duration::from_secs(due - second)), "{law:?} at {second}");
        }
        assert_eq!(table.try_at(7, due * S), Ok(()), "{law:?}");
    }
}

// benwis/tower-governor#65, hashicorp/boundary PR 4094, balena-io/open-balena-api PR 1472
#[test]
fn the_wait_of_a_key_is_exact_and_its_seconds_are_rounded_up() {
    for law in LAWS {
        let table = law.table(Setup::new(quota(5, SECOND, 1)));
        let taken = if law.is_bucket() { 1 } else { 5 };
        assert_eq!(table.try_n_at(7, taken, 0), Ok(()));
        let refused = table.try_at(7, 0).unwrap_err();
        let wait = law.first_back(1_000, 5);
        assert_eq!(refused.retry_after(), Some(Duration::from_millis(wait)), "{law:?}");
        assert_eq!(refused.retry_after_secs(), Some(if wait > 1_000 { 2 } else { 1 }), "{law:?}");
        granted_after_exactly(&*table, 7, 1, 0, Duration::from_millis(wait));
    }
    let wait = |retry_after| Refused::NoRoom { max_keys: 5, retry_after }.retry_after_secs();
    let waits = [NANOSECOND, SECOND, SECOND + NANOSECOND, Duration::from_millis(59_900)];
    assert_eq!(waits.map(|told| wait(Some(told))), [1, 1, 2, 60].map(Some));
    assert_eq!(wait(None), None, "never");
}

// The same for who finds no place.
#[test]
fn the_wait_for_a_place_is_exact() {
    for law in LAWS {
        let table = law.small(Setup::new(quota(2, 10 * SECOND, 2)));
        let due = law.all_back(10 * S);
        // All of its permits, so that every key is busy for as long.
        let all = (0..100).map(|key| (key, table.try_n_at(key, 2, key)));
        let (key, refused) =
            all.into_iter().find_map(|(key, told)| Some((key, told.err()?))).expect("one finds no place");
        // What was taken first is back first.
        let wait = Duration::from_nanos(due - key);
        assert_eq!(refused, Refused::NoRoom { max_keys: law.few_keys(), retry_after: Some(wait) }, "{law:?}");
        granted_after_exactly(&*table, key, 2, key, wait);
        assert_eq!(table.try_n_at(key, 2, due), Ok(()), "{law:?}");
    }
}

// bucket4j/bucket4j#220, redis/redis PR 15113
#[test]
fn more_than_a_key_can_ever_have_is_refused_without_a_wait_and_uses_nothing() {
    for law in LAWS {
        let table = law.table(Setup::new(quota(3, 2 * SECOND, 3)));
        for asked in [4, 5, u64::MAX] {
            let beyond = Refused::ExceedsCapacity { asked, capacity: 3 };
            assert_eq!(table.try_n_at(7, asked, 0), Err(beyond), "{law:?}");
            assert_eq!(table.peek_at(7, asked, 0), Err(beyond), "{law:?}");
            assert_eq!(beyond.retry_after(), None);
        }
        assert_eq!(table.len_at(0), 0, "{law:?}");
        assert_eq!(table.try_n_at(7, 3, 0), Ok(()), "{law:?}");
        // Asked of a busy key it is no other answer.
        assert_eq!(table.try_n_at(7, 4, 0), Err(Refused::ExceedsCapacity { asked: 4, capacity: 3 }), "{law:?}");
    }
}

// golang/go#47221
#[test]
fn at_rate_zero_a_key_has_its_burst_and_nothing_after_it() {
    for law in LAWS {
        let table = law.table(Setup::new(quota(0, SECOND, 1)));
        let granted = (0..1_000).filter(|step| table.takes_at(7, step * 3_600 * S / 1_000)).count();
        assert_eq!(granted, usize::from(law.is_bucket()), "{law:?}");
        let never = if law.is_bucket() {
            Refused::Never { asked: 1, remaining: 0 }
        } else {
            Refused::ExceedsCapacity { asked: 1, capacity: 0 }
        };
        assert_eq!(table.try_at(7, at(HOUR)), Err(never), "{law:?}");
        table.set_quota_at(quota(1, SECOND, 1), at(HOUR));
        assert_eq!(table.takes_at(7, at(HOUR)), !law.is_bucket(), "{law:?}");
        assert_eq!(table.takes_at(7, at(HOUR) + S), law.shape != Shape::Counter, "{law:?}");
    }
}

// golang/go#16854, golang/go#47221
#[test]
fn a_key_without_a_limit_has_everything_and_takes_no_place() {
    for law in LAWS {
        let table = law.table(Setup::new(Quota::UNLIMITED).max_keys(1));
        for key in 0..100 {
            assert_eq!(table.try_n_at(key, u64::from(u32::MAX), 0), Ok(()), "{law:?}");
            assert_eq!(table.try_n_at(key, u64::MAX, key), Ok(()), "{law:?}");
            assert_eq!(table.available_at(key, 0), u64::MAX, "{law:?}");
        }
        assert_eq!(table.len_at(0), 0, "{law:?}");
    }
}

// golang/go#47221
#[test]
fn nothing_asked_is_granted_uses_nothing_and_takes_no_place() {
    for law in LAWS {
        for max_keys in [0, 1, 1_000] {
            let table = law.table(Setup::new(quota(2, HOUR, 2)).max_keys(max_keys));
            assert_eq!(table.try_n_at(7, 0, 0), Ok(()), "{law:?}");
            assert_eq!(table.peek_at(7, 0, 0), Ok(()), "{law:?}");
            assert_eq!((table.available_at(7, 0), table.len_at(0)), (2, 0), "{law:?}");
            if max_keys > 0 {
                table.try_n_at(7, 2, 0).unwrap();
                assert_eq!((table.try_n_at(7, 0, 0), table.peek_at(7, 0, 0)), (Ok(()), Ok(())), "{law:?}");
                assert_eq!((table.available_at(7, 0), table.len_at(0)), (0, 1), "{law:?}");
            }
        }
        let table = law.table(Setup::new(quota(0, HOUR, 0)));
        assert_eq!(table.try_n_at(7, 0, 0), Ok(()), "{law:?}");
    }
}

// SGrondin/bottleneck#185
#[test]
fn the_same_quota_set_again_and_again_neither_stops_a_key_nor_gives_it_anything() {
    for law in LAWS {
        let same = quota(5, 5 * SECOND, 5);
        let table = law.table(Setup::new(same));
        table.try_n_at(7, 5, 0).unwrap();
        let due = law.first_back(5 * S, 5);
        for now in (0..due).step_by(10_000_000) {
            table.set_quota_at(same, now);
            assert!(!table.takes_at(7, now), "{law:?}");
        }
        assert!(!table.takes_at(7, due - 1), "{law:?}");
        table.set_quota_at(same, due);
        assert!(table.takes_at(7, due), "{law:?}");
        assert_eq!(table.available_at(7, due), law.back_at_once(5) - 1, "{law:?}");
    }
}

// SGrondin/bottleneck#185
#[test]
fn another_quota_leaves_a_busy_key_what_it_had() {
    for law in LAWS {
        let table = law.table(Setup::new(quota(10, SECOND, 10)));
        table.try_n_at(7, 5, 0).unwrap();
        // A rate a hundred times as slow, or a window as many times as long.
        table.set_quota_at(quota(10, 100 * SECOND, 10), 0);
        assert_eq!(table.available_at(7, 0), 5, "{law:?}");
        assert!(table.try_n_at(7, 6, 0).is_err(), "{law:?}");
        assert_eq!(table.available_at(7, S), 5, "the old rate gives nothing any more: {law:?}");
    }
}

// SGrondin/bottleneck#185
#[test]
fn a_larger_budget_is_there_at_once_for_a_key_at_rest_and_fills_up_for_a_busy_one() {
    for law in LAWS {
        let table = law.table(Setup::new(quota(5, 5 * SECOND, 5)));
        table.try_n_at(7, 1, 0).unwrap();
        table.set_quota_at(quota(10, 5 * SECOND, 10), 0);
        assert_eq!(table.available_at(8, 0), 10, "{law:?}");
        // Of a bucket what is left stays left; of a window what was taken stays taken.
        assert_eq!(table.available_at(7, 0), if law.is_bucket() { 4 } else { 9 }, "{law:?}");
        assert_eq!(table.available_at(7, 10 * S), 10, "{law:?}");
    }
}

// SGrondin/bottleneck#185
#[test]
fn a_smaller_budget_cuts_what_a_key_has() {
    for law in LAWS {
        let table = law.table(Setup::new(quota(10, 10 * SECOND, 10)));
        table.try_n_at(7, 2, 0).unwrap();
        table.set_quota_at(quota(3, 10 * SECOND, 3), 0);
        assert_eq!(table.available_at(8, 0), 3, "{law:?}");
        assert_eq!(table.available_at(7, 0), if law.is_bucket() { 3 } else { 1 }, "{law:?}");
    }
}

// librefang/librefang#3668, boinkor-net/governor#171
#[test]
fn a_million_keys_seen_once_leave_nothing_behind() {
    for law in LAWS {
        let keys = match law.store {
            Store::Slots if cfg!(debug_assertions) => 50_000,
            Store::Slots => 1_000_000,
            Store::Map => 5_000,
        };
        let table = law.table(Setup::new(quota(10, SECOND, 10)).max_keys(usize::try_from(keys).unwrap()));
        let empty = table.memory();
        assert!((0..keys).all(|key| table.takes_at(key, 0)), "{law:?}");
        assert_eq!(table.len_at(0) as u64, keys, "{law:?}");
        let full = table.memory();
        let later = 10 * S;
        for call in 0..keys {
            assert_eq!(table.takes_at(0, later), call < 10, "{law:?}");
        }
        assert_eq!(table.len_at(later), 1, "no sweep is needed: {law:?}");
        // As many others find room.
        assert!((keys..2 * keys - 1).all(|key| table.takes_at(key, later)), "{law:?}");
        match law.store {
            Store::Slots => assert_eq!([full, table.memory()], [empty; 2], "{law:?}"),
            Store::Map => assert!(table.memory() <= full / 10 * 11, "{law:?}: {full}, then {}", table.memory()),
        }
    }
}

// LemmyNet/lemmy PR 4560
#[test]
fn a_busy_key_keeps_its_debt_however_many_others_want_its_place() {
    for law in LAWS {
        let table = law.small(Setup::new(quota(3, 180 * SECOND, 3)));
        let (a, b) = (1, 2);
        table.try_n_at(a, 3, 0).unwrap();
        table.try_n_at(b, 1, 0).unwrap();
        let flood = |now| assert!((1_000..2_000).filter(|key| table.takes_at(*key, now)).count() < PLACES);
        flood(0);
        assert!(!table.takes_at(a, S), "{law:?}");
        flood(S);
        let due = law.first_back(180 * S, 3);
        flood(due - 1);
        assert!(!table.takes_at(a, due - 1), "{law:?}");
        // One of the three, not all, where they come back one by one.
        let granted = (0..4).filter(|_| table.takes_at(a, due)).count();
        assert_eq!(granted as u64, law.back_at_once(3), "{law:?}");
        let rest = 1_000 * S;
        assert_eq!(table.len_at(rest), 0, "{law:?}");
        assert_eq!([rest; 4].map(|now| table.takes_at(a, now)), [true, true, true, false], "{law:?}");
    }
}

// LemmyNet/lemmy PR 4560: keys that share whatever a table divides keys by.
#[test]
fn keys_that_fall_together_keep_their_debts() {
    for law in LAWS {
        for hash in [Hash::Identity, Hash::High, Hash::Spread] {
            let table = law.table(Setup::new(quota(2, HOUR, 2)).max_keys(1_000).hash(hash));
            assert!((0..500).all(|key| table.try_n_at(key, 2, 0).is_ok()), "{law:?} by {hash:?}");
            assert!((0..500).all(|key| table.try_at(key, 1).is_err()), "{law:?} by {hash:?}");
            assert_eq!(table.len_at(1), 500, "{law:?} by {hash:?}");
        }
    }
}

fn law(shape: Shape) -> Law {
    LAWS.into_iter().find(|law| law.shape == shape).expect("there is one")
}
