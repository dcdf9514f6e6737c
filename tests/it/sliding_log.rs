//! The sliding log, against a list of everything that was granted.

use std::time::Duration;

use tollgate::{ManualClock, Nanos, Quota, QuotaError, Refused, SlidingLog};

use crate::{DAY, NANOSECOND, SECOND, YEAR, quota};

fn log(limit: u64, length: Duration) -> SlidingLog {
    SlidingLog::new(quota(limit, length, 0)).unwrap()
}

fn too_soon(asked: u64, remaining: u64, retry_after: Duration) -> Result<(), Refused> {
    Err(Refused::TooSoon { asked, remaining, retry_after })
}

/// Every permit that was granted, at the time at which it counts.
struct List {
    limit: usize,
    length: u64,
    times: Vec<u64>,
    used: u64,
}

impl List {
    fn count(&self, now: u64) -> usize {
        let now = now.max(self.used);
        self.times.iter().filter(|&&time| time + self.length > now).count()
    }

    fn remaining(&self, now: u64) -> usize {
        self.limit.saturating_sub(self.count(now))
    }

    fn grant(&mut self, n: usize, now: u64) {
        self.used = self.used.max(now);
        self.times.extend(std::iter::repeat_n(self.used, n));
    }
}

#[test]
fn every_answer_is_that_of_a_list_of_all_grants() {
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..300 {
        let (limit, length) = (random.usize(1..=5), random.u64(1..=20));
        let mut list = List { limit, length, times: Vec::new(), used: 0 };
        let log = log(limit as u64, Duration::from_nanos(length));
        let mut now = 0;
        for _ in 0..200 {
            now += random.u64(0..=length / 2 + 1);
            let asked_at = now.saturating_sub(if random.u8(..5) == 0 { random.u64(0..=length) } else { 0 });
            let remaining = list.remaining(asked_at);
            assert_eq!(log.available_at(asked_at), remaining as u64, "round {round}");
            match random.u8(..12) {
                0 => {
                    let n = random.usize(0..=6);
                    log.refund_at(n as u64, asked_at);
                    let given = n.min(list.count(asked_at));
                    list.times.truncate(list.times.len() - given);
                }
                1 => {
                    list.limit = if random.bool() { random.usize(0..=12) } else { list.limit };
                    let next = Quota::new(list.limit as u64, Duration::from_nanos(list.length)).unwrap();
                    log.set_quota_at(next, asked_at).unwrap();
                }
                2 if random.u8(..4) == 0 => {
                    let left = list.count(asked_at);
                    list.length = (list.length + random.u64(0..19)) % 20 + 1;
                    list.times.clear();
                    list.grant(left, asked_at);
                    let next = Quota::new(list.limit as u64, Duration::from_nanos(list.length)).unwrap();
                    log.set_quota_at(next, asked_at).unwrap();
                }
                3 if random.u8(..4) == 0 => {
                    log.reset_at(asked_at);
                    list.times.clear();
                }
                _ => {
                    let n = random.usize(1..=4);
                    let answer = log.try_acquire_n_at(n as u64, asked_at);
                    assert_eq!(log.peek_at(0, asked_at), Ok(()));
                    match answer {
                        Ok(()) => {
                            assert!(n <= remaining, "round {round}: granted {n} of {remaining}");
                            list.grant(n, asked_at);
                        }
                        Err(Refused::ExceedsCapacity { .. }) => assert!(n > list.limit),
                        Err(refused) => {
                            assert!(remaining < n && n <= list.limit, "round {round}: refused {n} of {remaining}");
                            let due = (asked_at..).find(|&time| list.remaining(time) >= n).unwrap();
                            let wait = Duration::from_nanos(due - asked_at);
                            assert_eq!(Err(refused), too_soon(n as u64, remaining as u64, wait), "round {round}");
                        }
                    }
                }
            }
        }
    }
}

/// As reported of another limiter: apache/shenyu#6754.
#[test]
fn an_entry_leaves_at_the_edge_of_the_window() {
    let log = log(3, 10 * SECOND);
    for secs in 0..3 {
        assert_eq!(log.try_acquire_at(secs * SECOND), Ok(()));
    }
    assert_eq!(log.try_acquire_at(5 * SECOND), too_soon(1, 0, 5 * SECOND));
    assert_eq!(log.try_acquire_at(10 * SECOND - NANOSECOND), too_soon(1, 0, NANOSECOND));
    assert_eq!(log.try_acquire_at(10 * SECOND), Ok(()));
    assert_eq!(log.try_acquire_at(Duration::from_millis(10_500)), too_soon(1, 0, Duration::from_millis(500)));
    assert_eq!(log.try_acquire_at(11 * SECOND), Ok(()));
    assert_eq!(log.try_acquire_at(100 * SECOND), Ok(()));
    assert_eq!(log.available_at(100 * SECOND), 2);
}

#[test]
fn what_counts_when_a_pause_begins_counts_when_it_ends() {
    let log = log(3, 10 * SECOND);
    assert_eq!(log.try_acquire_n_at(2, SECOND), Ok(()));
    assert_eq!(log.try_acquire_at(4 * SECOND), Ok(()));
    log.pause_until_at(20 * SECOND, 6 * SECOND);
    assert_eq!(log.available_at(19 * SECOND), 0);
    // The first two have five seconds to go when it ends.
    assert_eq!(log.try_acquire_at(19 * SECOND), Err(Refused::Paused { asked: 1, retry_after: 6 * SECOND }));
    assert_eq!(log.try_acquire_at(20 * SECOND), too_soon(1, 0, 5 * SECOND));
    assert_eq!(log.snapshot_at(20 * SECOND).reset_after, Some(8 * SECOND));
    assert_eq!(log.try_acquire_n_at(2, 25 * SECOND), Ok(()));
    assert_eq!(log.try_acquire_at(25 * SECOND), too_soon(1, 0, 3 * SECOND));
    // It stays past though the clock is set back.
    assert_eq!(log.try_acquire_at(10 * SECOND), too_soon(1, 0, 18 * SECOND));
    log.pause_until_at(DAY, 26 * SECOND);
    log.pause_until_at(40 * SECOND, 27 * SECOND);
    log.resume_at(36 * SECOND);
    assert_eq!(log.try_acquire_at(36 * SECOND), too_soon(1, 0, 2 * SECOND));
    assert_eq!(log.try_acquire_at(38 * SECOND), Ok(()));
}

#[test]
fn a_larger_limit_keeps_the_times_in_a_larger_ring() {
    let log = log(2, 10 * SECOND);
    for secs in [0, 10, 11, 20, 22] {
        assert_eq!(log.try_acquire_at(secs * SECOND), Ok(()));
    }
    assert_eq!(log.try_acquire_at(25 * SECOND), too_soon(1, 0, 5 * SECOND));
    log.set_quota_at(quota(1_000, 10 * SECOND, 0), 25 * SECOND).unwrap();
    assert_eq!(log.available_at(25 * SECOND), 998);
    assert_eq!(log.available_at(30 * SECOND), 999);
    assert_eq!(log.try_acquire_n_at(1_000, 31 * SECOND), too_soon(1_000, 999, SECOND));
    assert_eq!(log.try_acquire_n_at(1_000, 32 * SECOND), Ok(()));
    log.set_quota_at(quota(1, 10 * SECOND, 0), 33 * SECOND).unwrap();
    assert_eq!(log.try_acquire_at(41 * SECOND), too_soon(1, 0, SECOND));
    assert_eq!(log.try_acquire_at(42 * SECOND), Ok(()));
}

#[test]
fn unlimited_admits_all_and_leaves_nothing() {
    let log = log(5, 10 * SECOND);
    log.set_quota_at(Quota::UNLIMITED, SECOND).unwrap();
    assert_eq!(log.try_acquire_n_at(u64::MAX, SECOND), Ok(()));
    log.pause_until_at(3 * SECOND, 2 * SECOND);
    assert_eq!(log.try_acquire_at(2 * SECOND), Err(Refused::Paused { asked: 1, retry_after: SECOND }));
    assert_eq!(log.try_acquire_at(3 * SECOND), Ok(()));
    assert_eq!(log.try_acquire_at(2 * SECOND), Ok(()));
    log.set_quota_at(quota(7, 10 * SECOND, 0), 14 * SECOND).unwrap();
    assert_eq!(log.try_acquire_at(14 * SECOND), too_soon(1, 0, 10 * SECOND));
    assert_eq!(log.available_at(24 * SECOND), 7);
}

#[test]
fn a_log_may_start_with_less() {
    let clock = ManualClock::at(Nanos::from_secs(1_700_000_005));
    let log = SlidingLog::builder(quota(5, 10 * SECOND, 0)).initial(2).clock(clock.clone()).build().unwrap();
    assert_eq!(log.available(), 2);
    clock.advance(10 * SECOND);
    assert_eq!(log.available(), 5);
}

#[test]
fn the_extremes_are_exact() {
    for length in [NANOSECOND, SECOND, Duration::from_nanos(u64::MAX), Duration::MAX] {
        for now in [0, 1, u64::MAX - 1, u64::MAX] {
            let log = log(3, length);
            assert_eq!(log.try_acquire_n_at(3, now), Ok(()));
            assert_eq!(log.try_acquire_at(now), too_soon(1, 0, length));
            assert_eq!(
                log.try_acquire_at(now.saturating_sub(5)),
                too_soon(1, 0, length.saturating_add(Duration::from_nanos(now.min(5))))
            );
            assert_eq!(log.try_acquire_n_at(4, now), Err(Refused::ExceedsCapacity { asked: 4, capacity: 3 }));
        }
    }
    let nothing = log(0, SECOND);
    assert_eq!(nothing.try_acquire_at(0), Err(Refused::ExceedsCapacity { asked: 1, capacity: 0 }));
    assert_eq!((nothing.try_acquire_n_at(0, 0), nothing.snapshot_at(0).retry_after), (Ok(()), None));
}

#[test]
fn a_limit_too_large_for_a_log_is_told_and_changes_nothing() {
    let most = SlidingLog::MAX_LIMIT;
    let beyond = QuotaError::BeyondSlidingLog { asked: most + 1, most };
    assert_eq!(SlidingLog::new(Quota::per_day(most + 1)).unwrap_err(), beyond);
    assert_eq!(SlidingLog::builder(Quota::per_day(most + 1)).build().unwrap_err(), beyond);
    let log = SlidingLog::new(Quota::per_day(most)).unwrap();
    assert_eq!(log.try_acquire_n_at(most, 0), Ok(()));
    assert_eq!(log.try_acquire_at(DAY - NANOSECOND), too_soon(1, 0, NANOSECOND));
    assert_eq!(log.set_quota_at(Quota::per_day(most + 1), 0), Err(beyond));
    assert_eq!(log.quota(), Quota::per_day(most));
    assert_eq!(log.try_acquire_n_at(most, DAY), Ok(()));
    assert!(beyond.to_string().contains("1048576") && beyond.to_string().contains("SlidingCounter"));
    assert_eq!(log.set_quota_at(Quota::UNLIMITED, YEAR), Ok(()));
}

#[test]
fn a_log_takes_what_the_docs_say() {
    assert!(size_of::<SlidingLog>() <= 1_300, "{}", size_of::<SlidingLog>());
}
