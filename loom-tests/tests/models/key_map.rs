//! The map that gives each key a law of its own: places that few keys take from each other, and what is set for all.
//!
//! Laws are windows of ten nanoseconds: what is taken from 0 on is at rest at 10.

use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::time::Duration;

use loom::thread;
use tollgate::{FixedWindowLaw, Keyed, KeyedBuilder, PerKey, Quota, Refused, StdClock, WhenFull};

use crate::program::model;

const LENGTH: u64 = 10;

/// Where there are two shards, it is in the one where 1, 2 and 3 are not.
const IN_THE_OTHER: u8 = 4;

/// Keys are their own fingerprints, so that every run is the same.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0 << 8 | u64::from(*byte));
    }
}

type Law = PerKey<FixedWindowLaw>;
type Map = Keyed<u8, Law, StdClock, BuildHasherDefault<AsItIs>>;

fn quota(limit: u64) -> Quota {
    Quota::new(limit, Duration::from_nanos(LENGTH)).unwrap()
}

fn builder(limit: u64, max_keys: usize) -> KeyedBuilder<u8, Law, StdClock, BuildHasherDefault<AsItIs>> {
    let builder = Keyed::<u8>::fixed_window(quota(limit)).max_keys(max_keys).clock(StdClock);
    builder.hasher(BuildHasherDefault::default()).quota_for(|_| None)
}

fn map(limit: u64, max_keys: usize) -> Arc<Map> {
    Arc::new(builder(limit, max_keys).build().unwrap())
}

/// Runs both, and tells what they tell. If `turned`, the other runs in loom's main thread: loom may miss an order in which the one
/// is done before the other begins, and its first schedule is such an order.
fn beside<R: 'static>(
    map: &Arc<Map>,
    turned: bool,
    one: impl FnOnce(&Map) -> R + 'static,
    other: impl FnOnce(&Map) -> R + 'static,
) -> (R, R) {
    let shared = Arc::clone(map);
    if turned {
        let one = thread::spawn(move || one(&shared));
        let other = other(map);
        (one.join().unwrap(), other)
    } else {
        let other = thread::spawn(move || other(&shared));
        let one = one(map);
        (one, other.join().unwrap())
    }
}

/// Explores a program, in both ways.
fn check(program: impl Fn(bool) + Send + Sync + Copy + 'static) {
    for turned in [false, true] {
        model(move || program(turned));
    }
}

fn no_room(wait: u64) -> Result<(), Refused> {
    Err(Refused::NoRoom { max_keys: 1, retry_after: Some(Duration::from_nanos(wait)) })
}

#[test]
fn threads_that_see_a_key_first_make_one_law() {
    check(|turned| {
        let map = map(1, 1);
        let (one, other) = beside(&map, turned, |map| map.try_acquire_at(&1, 0), |map| map.try_acquire_at(&1, 0));
        assert!(one.is_ok() != other.is_ok(), "{one:?}, {other:?}");
        assert!(matches!(one.and(other), Err(Refused::TooSoon { .. })), "{one:?}, {other:?}");
        assert_eq!(map.len_at(0), 1);
    });
}

/// The only place is that of a key at rest. Whoever does not get it finds the other there, and when that one rests.
#[test]
fn a_place_goes_to_one_of_two_newcomers() {
    check(|turned| {
        let map = map(1, 1);
        map.try_acquire_at(&1, 0).unwrap();
        let (one, other) = beside(&map, turned, |map| map.try_acquire_at(&2, 13), |map| map.try_acquire_at(&3, 13));
        assert!([(Ok(()), no_room(7)), (no_room(7), Ok(()))].contains(&(one, other)), "{one:?}, {other:?}");
        assert_eq!(map.len_at(13), 1);
    });
}

/// The same while a busy key, which rests later, is all that there is to see between the key that leaves and the one that comes.
#[test]
fn who_looks_between_one_that_leaves_and_one_that_comes_looks_again() {
    check(|turned| {
        let map = map(1, 2);
        map.try_acquire_at(&1, 0).unwrap();
        map.try_acquire_at(&IN_THE_OTHER, 25).unwrap();
        let (one, other) = beside(&map, turned, |map| map.try_acquire_at(&2, 13), |map| map.try_acquire_at(&3, 13));
        let refused = Err(Refused::NoRoom { max_keys: 2, retry_after: Some(Duration::from_nanos(7)) });
        assert!([(Ok(()), refused), (refused, Ok(()))].contains(&(one, other)), "{one:?}, {other:?}");
    });
}

/// The same of a place that was never taken, and in two shards.
#[test]
fn the_last_place_goes_to_one_of_two_newcomers() {
    check(|turned| {
        let map = map(1, 2);
        map.try_acquire_at(&1, 12).unwrap();
        let (one, other) =
            beside(&map, turned, |map| map.try_acquire_at(&2, 3), |map| map.try_acquire_at(&IN_THE_OTHER, 3));
        let refused = Err(Refused::NoRoom { max_keys: 2, retry_after: Some(Duration::from_nanos(7)) });
        assert!([(Ok(()), refused), (refused, Ok(()))].contains(&(one, other)), "{one:?}, {other:?}");
        assert_eq!(map.len_at(3), 2);
    });
}

/// One of the keys is listed too early, and is listed anew by one of two newcomers while the other looks.
#[test]
fn a_newcomer_is_told_the_first_to_rest_of_all() {
    check(|turned| {
        let map = map(2, 2);
        map.try_acquire_at(&1, 0).unwrap();
        map.try_acquire_at(&1, 25).unwrap();
        map.try_acquire_at(&IN_THE_OTHER, 12).unwrap();
        let told = beside(&map, turned, |map| map.try_acquire_at(&2, 15), |map| map.try_acquire_at(&3, 15));
        let refused = Err(Refused::NoRoom { max_keys: 2, retry_after: Some(Duration::from_nanos(5)) });
        assert_eq!(told, (refused, refused));
    });
}

/// A key at rest comes back as its place is wanted.
#[test]
fn a_key_that_comes_back_keeps_its_place_or_has_lost_it() {
    check(|turned| {
        let map = map(2, 1);
        map.try_acquire_n_at(&1, 2, 0).unwrap();
        let (back, newcomer) = beside(&map, turned, |map| map.try_acquire_at(&1, 10), |map| map.try_acquire_at(&2, 10));
        assert!([(Ok(()), no_room(10)), (no_room(10), Ok(()))].contains(&(back, newcomer)), "{back:?}, {newcomer:?}");
        let left = map.available_at(&1, 10);
        assert_eq!(left, if back.is_ok() { 1 } else { 2 });
    });
}

/// By the clock of the one the key is at rest and goes, by that of the other it owes.
#[test]
fn a_clock_that_is_behind_has_nothing_twice() {
    check(|turned| {
        let map = map(1, 1);
        map.try_acquire_at(&1, 0).unwrap();
        let comes_and_goes = |map: &Map| {
            let answer = map.try_acquire_at(&2, 10);
            map.reset_at(&2, 10);
            answer
        };
        let (newcomer, behind) = beside(&map, turned, comes_and_goes, |map| map.try_acquire_at(&1, 5));
        // What it is given then is of the window that begins at 10.
        assert!(newcomer.is_ok() || behind.is_ok());
        assert!(behind.is_err() || map.try_acquire_at(&1, 19).is_err());
    });
}

#[test]
fn who_gives_back_makes_room() {
    check(|turned| {
        let map = map(2, 1);
        map.try_acquire_at(&1, 0).unwrap();
        let give_back = |map: &Map| {
            map.refund_at(&1, 1, 5);
            Ok(())
        };
        let (newcomer, _) = beside(&map, turned, |map| map.try_acquire_at(&2, 5), give_back);
        assert!([Ok(()), no_room(5)].contains(&newcomer), "{newcomer:?}");
        let again = map.try_acquire_at(&3, 5);
        assert_eq!(again, if newcomer.is_ok() { no_room(5) } else { Ok(()) });
    });
}

#[test]
fn a_change_of_the_quota_leaves_no_newcomer_behind() {
    check(|turned| {
        let map = map(5, 2);
        let change = |map: &Map| map.set_quota_at(quota(3), 0).unwrap();
        let first_sight = |map: &Map| map.try_acquire_at(&1, 0).unwrap();
        beside(&map, turned, change, first_sight);
        assert_eq!(map.available_at(&1, 0), 2);
        assert_eq!(map.quota(), quota(3));
    });
}

#[test]
fn all_keys_have_the_quota_that_was_set_last() {
    check(|turned| {
        let map = map(5, 2);
        map.try_acquire_at(&1, 0).unwrap();
        map.try_acquire_at(&IN_THE_OTHER, 0).unwrap();
        let change = |limit| move |map: &Map| map.set_quota_at(quota(limit), 0).unwrap();
        beside(&map, turned, change(3), change(8));
        let limit = map.quota().permits();
        assert_eq!([1, IN_THE_OTHER].map(|key| map.snapshot_at(&key, 0).limit), [limit; 2]);
        assert_eq!([1, IN_THE_OTHER].map(|key| map.available_at(&key, 0)), [limit - 1; 2]);
    });
}

/// Whoever shares, and has a place of his own at the same time, has not both limits.
#[test]
fn who_shares_has_not_a_limit_of_his_own_besides() {
    check(|turned| {
        let map = Arc::new(builder(2, 1).when_full(WhenFull::Share).build().unwrap());
        map.try_acquire_at(&1, 0).unwrap();
        let both = |map: &Map| (0..2).filter(|_| map.try_acquire_at(&2, 5).is_ok()).count();
        let leaves = |map: &Map| {
            map.reset_at(&1, 5);
            0
        };
        let (before, _) = beside(&map, turned, both, leaves);
        assert_eq!(before, 2);
        assert!(map.try_acquire_at(&2, 5).is_err());
    });
}
