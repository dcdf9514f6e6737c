//! A budget for each key: what one table of keys promises.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tollgate::{Keyed, KeyedError, ManualClock, Nanos, Quota, Refused, WhenFull};

mod differential;
mod edges;
mod panics;
mod queues;
mod reference;
mod reports;
mod tables;
mod threads;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn each_key_has_a_budget_of_its_own() {
    let table = Keyed::<String>::token_bucket(Quota::per_second(1).burst(2)).build().unwrap();
    for key in ["ann", "bob"] {
        assert_eq!([0; 3].map(|now| table.try_acquire_at(key, now).is_ok()), [true, true, false], "{key}");
    }
    assert_eq!(table.try_acquire_at("ann", SECOND), Ok(()));
    assert_eq!((table.available_at("ann", SECOND), table.available_at("bob", SECOND)), (0, 1));
}

#[test]
fn keys_are_looked_up_as_what_they_borrow_as() {
    let clock = ManualClock::new();
    let of_strings = Keyed::<String>::token_bucket(Quota::per_hour(3)).clock(clock.clone()).build().unwrap();
    of_strings.try_acquire("ann").unwrap();
    of_strings.try_acquire(&"ann".to_owned()).unwrap();
    assert_eq!(of_strings.available("ann"), 1);
    let of_names = Keyed::<str>::token_bucket(Quota::per_hour(3)).clock(clock.clone()).build().unwrap();
    of_names.try_acquire(String::from("ann").as_str()).unwrap();
    assert_eq!(of_names.available("ann"), 2);
    let of_pairs = Keyed::<(u64, IpAddr)>::token_bucket(Quota::per_hour(3)).clock(clock.clone()).build().unwrap();
    of_pairs.try_acquire(&(7, IpAddr::V4(Ipv4Addr::LOCALHOST))).unwrap();
    assert_eq!(of_pairs.len(), 1);
}

#[test]
fn a_key_at_rest_takes_no_place() {
    let table = Keyed::<u64>::token_bucket(Quota::per_second(10).burst(10)).max_keys(1_000).build().unwrap();
    for round in 0..100 {
        let now = Nanos::from_secs(round);
        for key in 0..1_000 {
            table.try_acquire_at(&(round * 1_000 + key), now).unwrap();
        }
        assert_eq!(table.len_at(now), 1_000);
    }
    assert_eq!(table.len_at(Nanos::from_secs(1_000)), 0);
}

#[test]
fn a_newcomer_without_a_place_is_refused_or_shares_one() {
    let quota = Quota::per_hour(1).burst(2);
    let strict = Keyed::<u64>::token_bucket(quota).max_keys(10).build().unwrap();
    let admitted: HashSet<u64> = (0..1_000).filter(|key| strict.try_acquire_at(key, 0).is_ok()).collect();
    assert!((10..100).contains(&admitted.len()), "{}", admitted.len());
    for key in 0..1_000 {
        let known = admitted.contains(&key);
        let hour = Some(Duration::from_secs(3_600));
        let no_room = Err(Refused::NoRoom { max_keys: 10, retry_after: hour });
        assert_eq!(strict.peek_at(&key, 1, 0), if known { Ok(()) } else { no_room }, "{key}");
        assert!(known || strict.try_acquire_at(&key, 0) == no_room, "{key}");
    }

    let shared = Keyed::<u64>::token_bucket(quota).max_keys(10).when_full(WhenFull::Share).build().unwrap();
    let admitted = (0..1_000).filter(|key| shared.try_acquire_at(key, 0).is_ok()).count();
    assert!((12..102).contains(&admitted), "{admitted}");
}

#[test]
fn a_table_of_any_size_is_built_or_says_why_not() {
    let sized = |keys| Keyed::<u64>::token_bucket(Quota::per_hour(1)).max_keys(keys).build();
    assert!(matches!(sized(0).unwrap().try_acquire(&1), Err(Refused::NoRoom { max_keys: 0, retry_after: None })));
    // At an instant that no time field holds either.
    assert!(matches!(
        sized(0).unwrap().peek_at(&1, 1, u64::MAX),
        Err(Refused::NoRoom { max_keys: 0, retry_after: None })
    ));
    for keys in 1..50 {
        let table = sized(keys).unwrap();
        assert_eq!(table.max_keys(), keys);
        table.try_acquire(&1).unwrap();
    }
    let error = sized(usize::MAX).unwrap_err();
    assert_eq!(error, KeyedError::TooManyKeys { asked: usize::MAX, most: 1 << 28 });
    assert_eq!(error.to_string(), format!("{} busy keys: a table takes at most 268435456", usize::MAX));
    for (keys, when_full) in
        [100_000, 1_000_000].into_iter().flat_map(|keys| [(keys, WhenFull::Refuse), (keys, WhenFull::Share)])
    {
        let table = Keyed::<u64>::token_bucket(Quota::per_hour(1)).max_keys(keys).when_full(when_full).build().unwrap();
        assert!(table.memory() <= 32 * keys, "{} for {keys}, {when_full:?}", table.memory());
    }
}

#[test]
fn a_change_of_the_quota_reaches_all_keys_and_carries_what_they_owe() {
    let table = Keyed::<u64>::token_bucket(Quota::per_second(100).burst(10)).build().unwrap();
    table.try_acquire_n_at(&1, 5, 0).unwrap();
    for change in 0..40 {
        table.set_quota_at(Quota::per_second(1 + change % 2).burst(10), 0).unwrap();
        assert_eq!(table.available_at(&1, 0), 5, "{change}");
        assert_eq!(table.available_at(&2, 0), 10);
        assert!(table.try_acquire_n_at(&1, 6, 0).is_err());
    }
}

#[test]
fn windows_are_the_same_for_all_keys() {
    // express-rate-limit/express-rate-limit#194: one key's reset must not clear another's.
    for other_rolls in [false, true] {
        let table = Keyed::<str>::fixed_window(Quota::new(5, 180 * SECOND).unwrap()).build().unwrap();
        assert_eq!((0..6).filter(|_| table.try_acquire_at("a", 0).is_ok()).count(), 5);
        assert_eq!((0..5).filter(|_| table.try_acquire_at("b", 179 * SECOND).is_ok()).count(), 5);
        let refused = table.try_acquire_at("b", 179 * SECOND).unwrap_err();
        assert_eq!(refused.retry_after(), Some(SECOND));
        if other_rolls {
            table.try_acquire_at("a", 180 * SECOND).unwrap();
        }
        assert!(table.try_acquire_at("b", 180 * SECOND - Duration::from_nanos(1)).is_err());
        assert_eq!(table.try_acquire_at("b", 180 * SECOND), Ok(()));
    }
}

#[test]
fn every_law_is_kept_by_key() {
    let quota = Quota::per_second(2);
    let log = Keyed::<str>::sliding_log(quota).build().unwrap();
    let counter = Keyed::<str>::sliding_counter(quota).build().unwrap();
    for key in ["a", "b"] {
        assert_eq!([0, 0, 0, 1].map(|s| log.try_acquire_at(key, s * SECOND).is_ok()), [true, true, false, true]);
        assert_eq!([0, 0, 0, 1].map(|s| counter.try_acquire_at(key, s * SECOND).is_ok()), [true, true, false, false]);
    }
    let queue = Keyed::<str>::leaky_queue(quota).build().unwrap();
    for key in ["a", "b"] {
        let told = [(); 3].map(|()| queue.schedule_at(key, SECOND).ok());
        assert_eq!(told, [Some(Nanos::from_millis(1_000)), Some(Nanos::from_millis(1_500)), None]);
    }
}

#[test]
fn a_plan_that_changes_carries_permits() {
    let gold = Arc::new(AtomicBool::new(true));
    let plan = Arc::clone(&gold);
    let quota = move |_: &str| Quota::per_second(if plan.load(Ordering::Relaxed) { 100 } else { 1 }).burst(10);
    let table = Keyed::<str>::token_bucket(Quota::UNLIMITED).quota_for(quota).build().unwrap();
    table.try_acquire_n_at("a", 5, 0).unwrap();
    gold.store(false, Ordering::Relaxed);
    assert_eq!(table.available_at("a", 0), 5);
    assert!(table.try_acquire_n_at("a", 6, 0).is_err());
    gold.store(true, Ordering::Relaxed);
    assert_eq!(table.available_at("a", SECOND), 6);
}

#[test]
fn who_shared_a_place_does_not_get_the_burst_again_in_one_of_his_own() {
    let table = Keyed::<u64>::token_bucket(Quota::per_second(1).burst(2)).max_keys(1).when_full(WhenFull::Share);
    let table = table.build().unwrap();
    // Busy until 1 s, then the places are free again.
    let full = (0..100).filter(|key| table.try_acquire_at(key, 0).is_ok()).count() as u64;
    assert!(table.try_acquire_at(&full, 0).is_err());
    table.try_acquire_n_at(&full, 1, SECOND).unwrap();
    assert!(table.try_acquire_at(&full, SECOND).is_err());
    assert_eq!(table.available_at(&full, SECOND), 0);
    assert_eq!(table.available_at(&full, 3 * SECOND), 2);
}

/// Takes 10, gives one of a later instant back, loses its place to others, and comes again by a clock that is behind.
macro_rules! comes_back_behind {
    ($table:expr) => {{
        let (table, early, late) = ($table.max_keys(1).build().unwrap(), Nanos::from_secs(1), Nanos::from_secs(2));
        table.try_acquire_n_at(&0, 10, early).unwrap();
        for key in 0..1_000 {
            // Who finds no room has taken nothing, and those who do leave their places as they came.
            if table.try_acquire_at(&key, late).is_ok() {
                table.refund_at(&key, 1, late);
            }
        }
        // It may have all that is there in the later window, and not once more what it had in the earlier one.
        table.try_acquire_n_at(&0, 10, early).unwrap();
        assert!(table.try_acquire_at(&0, early).is_err());
        assert!(table.try_acquire_at(&0, late).is_err());
    }};
}

#[test]
fn a_key_that_gave_back_and_lost_its_place_gets_nothing_twice_by_a_clock_behind() {
    let quota = Quota::per_second(10).burst(10);
    let own = move |_: &u64| quota;
    comes_back_behind!(Keyed::<u64>::fixed_window(quota));
    comes_back_behind!(Keyed::<u64>::sliding_log(quota));
    comes_back_behind!(Keyed::<u64>::fixed_window(quota).quota_for(own));
    comes_back_behind!(Keyed::<u64>::sliding_log(quota).quota_for(own));
}

/// Takes a number for its own hash.
#[derive(Default)]
struct Itself(u64);

impl Hasher for Itself {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are numbers")
    }
}

#[test]
fn as_many_keys_as_were_promised_find_a_place() {
    let mut random = fastrand::Rng::with_seed(1);
    for (size, tables) in [(10, 1_000), (100, 100), (3_000, 10), (100_000, 1)] {
        for _ in 0..tables {
            let table = Keyed::<u64>::token_bucket(Quota::per_hour(1)).max_keys(size);
            let table = table.hasher(BuildHasherDefault::<Itself>::default()).build().unwrap();
            for count in 0..size {
                assert_eq!(table.try_acquire_at(&random.u64(..), 0), Ok(()), "after {count} of {size}");
            }
            assert_eq!(table.len_at(0), size);
        }
    }
}

#[test]
fn a_peek_by_a_clock_that_is_behind_tells_what_those_who_share_are_answered() {
    let quota = Quota::per_second(1).burst(1);
    let table = Keyed::<u64>::token_bucket(quota).max_keys(1).when_full(WhenFull::Share).build().unwrap();
    // A table for one key has two pairs of lines.
    (0..16).for_each(|key| table.try_acquire_at(&key, 0).unwrap());
    table.try_acquire_at(&1_000, 0).unwrap();
    (16..32).for_each(|key| table.try_acquire_at(&key, 10 * SECOND).unwrap());
    // A newcomer is judged at a second, when others lost their places; what is shared is judged now.
    let told = table.peek_at(&2_000, 1, SECOND / 2);
    assert_eq!(told.unwrap_err().retry_after(), Some(SECOND / 2));
    assert_eq!(table.try_acquire_at(&2_000, SECOND / 2), told);
}
