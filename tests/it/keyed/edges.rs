//! Tables of any size, under any quota, by any hasher and at any time.

use std::time::Duration;

use tollgate::{FixedWindow, KeyedError, ManualClock, Quota, Refused, SlidingCounter, TokenBucket, WhenFull};

use super::tables::{Hash, LAWS, Law, PLACES, Setup, Shape, Store, all_laws};
use crate::{DAY, HOUR, NANOSECOND, SECOND, YEAR, quota};

fn at(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).expect("within 584 years")
}

#[test]
fn a_table_without_places_admits_nobody_and_tells_no_wait() {
    for law in all_laws() {
        let setup = Setup::new(quota(5, HOUR, 5)).max_keys(0);
        let table = law.table(setup);
        let no_room = Err(Refused::NoRoom { max_keys: 0, retry_after: None });
        for now in [0, 1, u64::MAX] {
            assert_eq!((table.try_at(7, now), table.peek_at(7, 1, now)), (no_room, no_room), "{law:?}");
            assert_eq!(table.try_n_at(7, 6, now), Err(Refused::ExceedsCapacity { asked: 6, capacity: 5 }), "{law:?}");
            assert_eq!(table.len_at(now), 0, "{law:?}");
        }
        table.set_quota_at(quota(9, HOUR, 9), 1);
        assert_eq!(table.try_at(7, 2), no_room, "{law:?}");
        // Or all keys share one budget.
        let table = law.table(Setup { when_full: WhenFull::Share, ..setup });
        let granted = (0..20).filter(|key| table.takes_at(*key, 0)).count();
        assert_eq!(granted, 5, "{law:?}");
    }
}

#[test]
fn slots_have_a_largest_number_and_a_map_takes_places_as_keys_come() {
    for law in all_laws() {
        let most = law.build(Setup::new(quota(5, HOUR, 5)).max_keys(usize::MAX));
        match law.store {
            Store::Slots => {
                assert_eq!(most, Err(KeyedError::TooManyKeys { asked: usize::MAX, most: 1 << 28 }), "{law:?}");
            }
            Store::Map => assert_eq!(most, Ok(()), "{law:?}"),
        }
    }
}

#[test]
fn a_table_for_few_keys_has_a_place_for_each_of_them() {
    for law in all_laws() {
        for max_keys in 1..40 {
            for hash in [Hash::Spread, Hash::Identity, Hash::High] {
                let table = law.table(Setup::new(quota(1, HOUR, 1)).max_keys(max_keys).hash(hash));
                let keys = u64::try_from(max_keys).unwrap();
                assert!((0..keys).all(|key| table.takes_at(key, 0)), "{law:?}, {max_keys} by {hash:?}");
                assert!((0..keys).all(|key| !table.takes_at(key, 0)), "{law:?}, {max_keys} by {hash:?}");
                assert_eq!(table.len_at(0), max_keys, "{law:?} by {hash:?}");
            }
        }
    }
}

#[test]
fn a_table_can_be_filled_whatever_the_hasher_spreads() {
    const KEYS: usize = 10_000;
    for law in all_laws() {
        for hash in [Hash::Spread, Hash::Identity, Hash::High] {
            let table = law.table(Setup::new(quota(1, HOUR, 1)).max_keys(KEYS).hash(hash));
            // One newcomer in 100,000 finds no place at the very end.
            let refused = (0..KEYS as u64).filter(|key| !table.takes_at(*key, 0)).count();
            assert!(refused <= 1, "{law:?} by {hash:?}: {refused}");
            assert_eq!(table.len_at(0), KEYS - refused, "{law:?} by {hash:?}");
        }
    }
}

#[test]
fn keys_with_one_fingerprint_are_one_key() {
    for law in all_laws() {
        let table = law.table(Setup::new(quota(5, HOUR, 5)).hash(Hash::Constant));
        assert_eq!((0..100).filter(|key| table.takes_at(*key, 0)).count(), 5, "{law:?}");
        assert_eq!(table.len_at(0), 1, "{law:?}");
        // 64 fingerprints in all.
        let table = law.table(Setup::new(quota(5, HOUR, 5)).hash(Hash::Bits(6)));
        assert_eq!((0..10_000).filter(|key| table.takes_at(*key, 0)).count(), 5 * 64, "{law:?}");
        assert_eq!(table.len_at(0), 64, "{law:?}");
    }
}

#[test]
fn the_fingerprint_of_an_empty_slot_is_a_key_as_any_other() {
    for law in all_laws() {
        // Slots begin with a tag of 0, which is what this key hashes to.
        let table = law.table(Setup::new(quota(2, HOUR, 2)).hash(Hash::Identity));
        assert_eq!((table.available_at(0, 0), table.len_at(0)), (2, 0), "{law:?}");
        table.refund_at(0, 1, 0);
        table.reset_at(0, 0);
        assert_eq!([0; 3].map(|now| table.takes_at(0, now)), [true, true, false], "{law:?}");
    }
}

/// Quotas of every size, that a law takes.
fn extremes(law: Law) -> impl Iterator<Item = Quota> {
    let most = match law.shape {
        Shape::Counter => 1 << 28,
        Shape::Log => 1 << 12,
        _ => u64::MAX,
    };
    let periods = [NANOSECOND, SECOND, YEAR, 10_000 * YEAR, Duration::from_nanos(u64::MAX), Duration::MAX];
    let counts = [0, 1, 2, 3, 1_000_003, Quota::MAX_BURST - 1, Quota::MAX_BURST, u64::MAX];
    let rates = periods.into_iter().flat_map(move |period| counts.map(|permits| (permits.min(most), period)));
    // A burst means nothing to a window.
    let bursts = if law.is_bucket() { &counts[..] } else { &counts[..1] }.to_vec();
    rates.flat_map(move |(permits, period)| bursts.clone().into_iter().map(move |burst| quota(permits, period, burst)))
}

#[test]
fn a_key_under_any_quota_has_exactly_its_burst_at_any_time() {
    for law in LAWS {
        for quota in extremes(law) {
            for now in [0, 1, 1_700_000_000_000_000_000, u64::MAX - 1, u64::MAX] {
                let table = law.table(Setup::new(quota).max_keys(8).built(now));
                let all = table.snapshot(7).remaining;
                let said = || format!("{law:?} under {quota:?} at {now}");
                assert_eq!(all, table.snapshot(7).limit, "{}", said());
                if all > 0 {
                    assert_eq!(table.try_n(7, all), Ok(()), "{}", said());
                    assert_eq!(table.available(7), 0, "{}", said());
                }
                // A single permit of so long an interval that times are coarse was taken as if at the end of one.
                if all > 1 {
                    table.refund(7, all);
                    assert_eq!(table.available(7), all, "{}", said());
                    assert_eq!(table.try_n(7, all), Ok(()), "{}", said());
                }
                assert!(table.try_n(7, 1).is_err(), "{}", said());
                if let Some(more) = all.checked_add(1) {
                    let beyond = Refused::ExceedsCapacity { asked: more, capacity: all };
                    assert_eq!(table.try_n(7, more), Err(beyond), "{}", said());
                }
                table.set_quota(Quota::UNLIMITED);
                assert_eq!(table.try_n(7, u64::MAX), Ok(()), "{}", said());
                table.set_quota(quota);
                assert_eq!(table.available(7), all, "{}", said());
            }
        }
    }
}

#[test]
fn changes_between_any_quotas_at_any_time_give_no_key_more_than_its_burst() {
    let mut random = fastrand::Rng::with_seed(1);
    for law in LAWS {
        let quotas: Vec<Quota> = extremes(law).collect();
        for _ in 0..if cfg!(debug_assertions) { 100 } else { 1_000 } {
            let table = law.table(Setup::new(quotas[random.usize(..quotas.len())]).max_keys(8));
            for step in 0..40 {
                let now = random.u64(..) >> random.u32(0..64);
                table.set_quota_at(quotas[random.usize(..quotas.len())], now);
                let key = random.u64(..3);
                let snapshot = table.snapshot_at(key, now);
                assert!(snapshot.remaining <= snapshot.limit, "{law:?}, step {step}: {snapshot:?}");
                let n = snapshot.remaining.min(random.u64(..) >> random.u32(1..64));
                if n < u64::MAX {
                    assert_eq!(table.try_n_at(key, n, now), Ok(()), "{law:?}, step {step}: {snapshot:?}");
                    let left = table.available_at(key, now);
                    assert!(
                        left <= snapshot.remaining - n || snapshot.remaining == u64::MAX,
                        "{law:?}, step {step}: {left}"
                    );
                }
                let later = random.u64(..) >> random.u32(0..64);
                table.refund_at(key, random.u64(..) >> random.u32(0..64), later);
                assert!(table.len_at(later) <= 3);
            }
        }
    }
}

#[test]
fn a_clock_that_goes_back_by_years_mints_nothing_and_loses_nothing() {
    for law in LAWS {
        let (then, now) = (at(10 * YEAR), at(40 * YEAR));
        let table = law.table(Setup::new(quota(5, HOUR, 5)));
        assert_eq!(table.try_n_at(7, 5, now), Ok(()), "{law:?}");
        // Before, the key is in debt for as much longer.
        let wait = table.try_at(7, then).unwrap_err().retry_after().unwrap();
        assert_eq!(at(wait), now - then + law.first_back(at(HOUR), 5), "{law:?}");
        assert!(!table.takes_at(7, now), "{law:?}");
        // A key that was not there is not held up by one that was.
        assert_eq!(table.try_n_at(8, 5, then), Ok(()), "{law:?}");
        assert!(!table.takes_at(8, then), "{law:?}");
        let due = now + law.first_back(at(HOUR), 5);
        assert!(!table.takes_at(7, due - 1), "{law:?}");
        assert!(table.takes_at(7, due), "{law:?}");
    }
}

#[test]
fn a_key_that_lost_its_place_has_nothing_twice_by_a_clock_that_is_behind() {
    for law in LAWS {
        let table = law.small(Setup::new(quota(4, 4 * SECOND, 4)));
        let (now, others) = (at(100 * SECOND), 100..100 + PLACES as u64);
        assert_eq!(table.try_n_at(7, 4, now), Ok(()), "{law:?}");
        // All places are taken by others, once the key is at rest.
        let later = now + law.all_back(at(4 * SECOND));
        assert!(others.clone().all(|key| table.try_n_at(key, 4, later).is_ok()), "{law:?}");
        assert_eq!(table.len_at(later), PLACES, "{law:?}");
        // To a clock that is behind it is gone as well; it has not all that it had then, but a place only where there is one.
        assert!(matches!(table.try_at(7, now), Err(Refused::NoRoom { .. })), "{law:?}");
        others.for_each(|key| table.reset_at(key, now));
        assert_eq!(table.try_n_at(7, 4, now), Ok(()), "{law:?}");
        // That counts as when it was at rest.
        assert!(!table.takes_at(7, later - 1 + law.first_back(at(4 * SECOND), 4)), "{law:?}");
        assert!(table.takes_at(7, later + law.first_back(at(4 * SECOND), 4)), "{law:?}");
    }
}

#[test]
fn it_does_not_matter_when_a_key_meets_the_quotas_that_were_set() {
    // Keys meet the changes one by one, or many at once, and some none before the last.
    let quotas = [quota(10, SECOND, 10), quota(30, SECOND, 10), quota(10, 3 * SECOND, 10), quota(7, 10 * SECOND, 10)];
    for law in LAWS {
        let table = law.table(Setup::new(quotas[0]));
        for key in 0..20 {
            // Enough that none is at rest before the end.
            assert_eq!(table.try_n_at(key, 9, 0), Ok(()), "{law:?}");
        }
        for change in 1..=40_u64 {
            let now = change * 1_000_000;
            table.set_quota_at(quotas[usize::try_from(change % 4).unwrap()], now);
            for key in (1..20).filter(|key| change % key == 0) {
                // Takes nothing, but writes the key.
                if table.try_n_at(key, 1, now).is_ok() {
                    table.refund_at(key, 1, now);
                }
            }
        }
        let now = 41_000_000;
        let untouched = table.snapshot_at(0, now);
        for key in 1..20 {
            let touched = table.snapshot_at(key, now);
            assert_eq!((touched.limit, touched.remaining), (untouched.limit, untouched.remaining), "{law:?}, {key}");
        }
    }
}

/// A limiter beside a table.
enum Alone {
    Bucket(TokenBucket<ManualClock>),
    Fixed(FixedWindow<ManualClock>),
    Counter(SlidingCounter<ManualClock>),
}

impl Alone {
    fn new(law: Law, quota: Quota) -> Self {
        let clock = ManualClock::new();
        match law.shape {
            Shape::Bucket => Self::Bucket(TokenBucket::with_clock(quota, clock)),
            Shape::Fixed => Self::Fixed(FixedWindow::with_clock(quota, clock)),
            Shape::Counter => Self::Counter(SlidingCounter::with_clock(quota, clock).unwrap()),
            other => panic!("{other:?} is not kept in slots"),
        }
    }

    fn try_n_at(&self, n: u64, now: u64) -> Result<(), Refused> {
        match self {
            Self::Bucket(alone) => alone.try_acquire_n_at(n, now),
            Self::Fixed(alone) => alone.try_acquire_n_at(n, now),
            Self::Counter(alone) => alone.try_acquire_n_at(n, now),
        }
    }

    fn snapshot_at(&self, now: u64) -> tollgate::Snapshot {
        match self {
            Self::Bucket(alone) => alone.snapshot_at(now),
            Self::Fixed(alone) => alone.snapshot_at(now),
            Self::Counter(alone) => alone.snapshot_at(now),
        }
    }
}

#[test]
fn an_origin_that_moves_again_and_again_changes_no_answer() {
    for law in LAWS.into_iter().filter(|law| law.store == Store::Slots) {
        // The field ends after 52 days, or has but one bit for the number of a window.
        let (quota, far) = match law.shape {
            Shape::Bucket => (quota(127, SECOND, 10_000_000), 60 * DAY),
            Shape::Fixed => (quota(1 << 57, HOUR, 1), 2 * HOUR),
            _ => (quota(1 << 28, HOUR, 1), 2 * HOUR),
        };
        let mut random = fastrand::Rng::with_seed(2);
        let table = law.small(Setup::new(quota));
        let alone: Vec<Alone> = (0..6).map(|_| Alone::new(law, quota)).collect();
        let limit = table.snapshot_at(0, 0).limit;
        let mut now = 0;
        for step in 0..400 {
            now += at(match random.u8(..8) {
                0 => far,
                1..=4 => Duration::ZERO,
                _ => 10 * SECOND + HOUR * random.u32(..3) / 2,
            });
            let key = random.usize(..alone.len());
            let n = random.u64(1..=limit / 2);
            let (got, want) = (table.try_n_at(key as u64, n, now), alone[key].try_n_at(n, now));
            assert_eq!(got, want, "{law:?}, step {step}: {n} of {key} at {now}");
            for (key, alone) in (0..).zip(&alone) {
                assert_eq!(table.snapshot_at(key, now), alone.snapshot_at(now), "{law:?}, step {step}: {key} at {now}");
            }
        }
        assert!(now > 15 * at(far), "the origin has moved that often");
    }
}
