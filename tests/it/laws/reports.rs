//! What went wrong in other limiters, by public report: each window law must do better.
//!
//! A limiter is asked in the crate's own words by `Limited`, so that one test covers all laws.

use std::time::Duration;

use tollgate::{FixedWindow, ManualClock, Nanos, Quota, Refused, SlidingCounter, SlidingLog, TokenBucket};

use super::reference::duration;
use crate::tasks::Random;
use crate::{DAY, HOUR, MINUTE, NANOSECOND, SECOND, YEAR, quota};

/// A limiter of any law.
struct Limited {
    name: &'static str,
    asked: Box<dyn Fn(u64, Nanos) -> Result<(), Refused>>,
    left: Box<dyn Fn(Nanos) -> u64>,
}

impl Limited {
    fn n(&self, n: u64, now: impl Into<Nanos>) -> Result<(), Refused> {
        (self.asked)(n, now.into())
    }

    fn one(&self, now: impl Into<Nanos>) -> Result<(), Refused> {
        self.n(1, now)
    }

    fn left(&self, now: impl Into<Nanos>) -> u64 {
        (self.left)(now.into())
    }
}

macro_rules! limited {
    ($name:literal, $limiter:expr) => {{
        let limiter = std::sync::Arc::new($limiter);
        let other = std::sync::Arc::clone(&limiter);
        Limited {
            name: $name,
            asked: Box::new(move |n, now| limiter.try_acquire_n_at(n, now)),
            left: Box::new(move |now| other.available_at(now)),
        }
    }};
}

fn fixed(limit: u64, window: Duration) -> FixedWindow<ManualClock> {
    FixedWindow::with_clock(windows(limit, window), ManualClock::new())
}

fn log(limit: u64, window: Duration) -> SlidingLog<ManualClock> {
    SlidingLog::with_clock(windows(limit, window), ManualClock::new()).unwrap()
}

fn counter(limit: u64, window: Duration) -> SlidingCounter<ManualClock> {
    SlidingCounter::with_clock(windows(limit, window), ManualClock::new()).unwrap()
}

fn windows(limit: u64, window: Duration) -> Quota {
    Quota::new(limit, window).unwrap()
}

fn every_law(limit: u64, window: Duration) -> Vec<Limited> {
    vec![
        limited!("fixed window", fixed(limit, window)),
        limited!("sliding log", log(limit, window)),
        limited!("sliding counter", counter(limit, window)),
    ]
}

fn at(seconds: u64) -> Nanos {
    Nanos::from_secs(seconds)
}

/// bucket4j/bucket4j#51
#[test]
fn a_large_limit_is_whole_again_after_any_idle_time() {
    for idle in [SECOND + SECOND, HOUR, 12 * HOUR, 30 * DAY, YEAR, 100 * YEAR] {
        for (law, limit) in [
            (limited!("fixed window", fixed(10_000_000, SECOND)), 10_000_000),
            (limited!("sliding log", log(1_000_000, SECOND)), 1_000_000),
            (limited!("sliding counter", counter(10_000_000, SECOND)), 10_000_000),
        ] {
            law.n(limit, at(0)).unwrap();
            assert_eq!(law.left(at(0)), 0, "{}", law.name);
            law.one(idle).unwrap();
            assert_eq!(law.left(idle), limit - 1, "{} after {idle:?}", law.name);
            law.n(limit - 1, idle).unwrap();
            law.one(idle).unwrap_err();
        }
    }
}

/// bucket4j/bucket4j#51, with the largest limit that each law takes
#[test]
fn the_largest_limit_does_not_overflow() {
    for (law, limit) in [
        (limited!("fixed window", fixed(Quota::MAX_BURST, SECOND)), Quota::MAX_BURST),
        (limited!("sliding log", log(SlidingLog::MAX_LIMIT, SECOND)), SlidingLog::MAX_LIMIT),
        (limited!("sliding counter", counter(SlidingCounter::MAX_LIMIT, SECOND)), SlidingCounter::MAX_LIMIT),
    ] {
        for now in [Duration::ZERO, 12 * HOUR, 100 * YEAR] {
            law.n(limit, now).unwrap();
            assert_eq!(law.left(now), 0, "{} at {now:?}", law.name);
            law.one(now).unwrap_err();
        }
    }
}

/// golang/go#56287, golang/go#71360, tikv/pd#10744
#[test]
fn a_clock_that_steps_to_and_fro_opens_no_window_again() {
    for law in every_law(10, 10 * SECOND) {
        law.n(10, at(1_000)).unwrap();
        let admitted = (0..1_000).flat_map(|_| [999, 1_000]).filter(|second| law.one(at(*second)).is_ok()).count();
        assert_eq!(admitted, 0, "{}", law.name);
    }
}

/// apache/shenyu#6754
#[test]
fn the_first_request_after_an_entry_has_aged_out_is_admitted() {
    let log = log(3, 10 * SECOND);
    for second in [0, 1, 2] {
        log.try_acquire_at(at(second)).unwrap();
    }
    assert_eq!(log.try_acquire_at(at(5)).unwrap_err().retry_after(), Some(5 * SECOND));
    log.try_acquire_at(10 * SECOND - NANOSECOND).unwrap_err();
    log.try_acquire_at(at(10)).unwrap();
    let half = Duration::from_millis(500);
    assert_eq!(log.try_acquire_at(10 * SECOND + half).unwrap_err().retry_after(), Some(half));
    log.try_acquire_at(at(11)).unwrap();
    log.try_acquire_at(at(100)).unwrap();
    assert_eq!(log.available_at(at(100)), 2);
}

/// apache/shenyu#6754: ten thousand steps beside a list of all times, for each limit.
#[test]
fn the_log_admits_what_a_list_of_all_times_admits() {
    for limit in 1..=5 {
        let mut random = Random::new(limit);
        let log = log(limit, Duration::from_nanos(10));
        let mut admitted: Vec<u64> = Vec::new();
        let mut now = 0;
        for _ in 0..10_000 {
            now += random.below(8);
            let n = 1 + random.below(limit);
            let in_span = admitted.iter().rev().take_while(|then| *then + 10 > now).count();
            let fits = in_span as u64 + n <= limit;
            assert_eq!(log.try_acquire_n_at(n, now).is_ok(), fits, "limit {limit}, {n} at {now}");
            if fits {
                admitted.extend((0..n).map(|_| now));
            }
        }
        assert!(admitted.len() > 1_000);
    }
}

/// express-rate-limit/express-rate-limit#194, #93, #207: windows are aligned, so the wait does not depend on other traffic.
#[test]
fn the_wait_for_the_next_window_does_not_depend_on_another_limiter() {
    for beside in [true, false] {
        let [a, b] = [(); 2].map(|()| fixed(5, 180 * SECOND));
        let blocked = |limiter: &FixedWindow<_>, second| {
            limiter.try_acquire_n_at(5, at(second)).unwrap();
            limiter.try_acquire_at(at(second)).unwrap_err().retry_after().unwrap()
        };
        if beside {
            assert_eq!(blocked(&a, 0), 180 * SECOND);
        }
        assert_eq!(blocked(&b, 179), SECOND);
        if beside {
            a.try_acquire_at(at(180)).unwrap();
        }
        b.try_acquire_at(180 * SECOND - NANOSECOND).unwrap_err();
        b.try_acquire_at(at(180)).unwrap();
    }
}

/// upstash/ratelimit-js PR 61
#[test]
fn the_counter_weighs_the_window_before_and_no_older_one() {
    let after_66 = || {
        let counter = counter(100, MINUTE);
        counter.try_acquire_n_at(50, at(30)).unwrap();
        for _ in 0..10 {
            counter.try_acquire_at(at(66)).unwrap();
        }
        // 100 - 50 * 0.9 - 10
        assert_eq!(counter.available_at(at(66)), 45);
        counter
    };
    let admitted = |counter: &SlidingCounter<_>, tries, second| {
        (0..tries).filter(|_| counter.try_acquire_at(at(second)).is_ok()).count()
    };
    assert_eq!(admitted(&after_66(), 60, 66), 45);
    for (second, expected) in [(120, 45), (150, 72), (300, 100)] {
        let counter = after_66();
        assert_eq!(admitted(&counter, 60, 66), 45);
        assert_eq!(admitted(&counter, 200, second), expected, "at {second} s");
    }
}

/// upstash/ratelimit-js PR 161, rcarmo/piclaw PR 105, mennanov/limiters#110
#[test]
fn a_refused_request_uses_nothing() {
    let mut laws = every_law(10, MINUTE);
    laws.push(limited!("token bucket", TokenBucket::with_clock(quota(10, MINUTE, 10), ManualClock::new())));
    for law in laws {
        law.n(8, at(0)).unwrap();
        law.n(5, at(0)).unwrap_err();
        assert_eq!(law.left(at(0)), 2, "{}", law.name);
        assert_eq!([(); 3].map(|()| law.one(at(0)).is_ok()), [true, true, false], "{}", law.name);
    }
}

/// upstash/ratelimit-js PR 161
#[test]
fn who_asks_again_and_again_is_not_locked_out_for_longer() {
    for law in [limited!("fixed window", fixed(5, MINUTE)), limited!("sliding log", log(5, MINUTE))] {
        law.n(5, at(0)).unwrap();
        for second in 1..60 {
            let refused = law.one(at(second)).unwrap_err();
            assert_eq!(refused.retry_after(), Some(Duration::from_secs(60 - second)), "{}", law.name);
        }
        law.one(at(60)).unwrap();
    }
    // The counter still weighs all five when the next window begins: one fits when a fifth of it is over.
    let counter = limited!("sliding counter", counter(5, MINUTE));
    counter.n(5, at(0)).unwrap();
    for second in 1..72 {
        let refused = counter.one(at(second)).unwrap_err();
        assert_eq!(refused.retry_after(), Some(Duration::from_secs(72 - second)));
    }
    counter.one(at(72)).unwrap();
}

/// bucket4j/bucket4j#220, redis/redis PR 15113
#[test]
fn more_than_the_limit_is_refused_for_good_and_uses_nothing() {
    for law in every_law(3, 2 * SECOND) {
        for n in [4, u64::MAX] {
            let refused = law.n(n, at(0)).unwrap_err();
            assert_eq!(refused, Refused::ExceedsCapacity { asked: n, capacity: 3 }, "{}", law.name);
            assert_eq!(refused.retry_after(), None);
        }
        law.n(3, at(0)).unwrap();
    }
}

/// golang/go#47221
#[test]
fn a_limit_of_nothing_admits_nothing_and_promises_nothing() {
    for law in every_law(0, SECOND) {
        for second in [0, 1, 1_000_000] {
            assert_eq!(law.one(at(second)), Err(Refused::ExceedsCapacity { asked: 1, capacity: 0 }), "{}", law.name);
            law.n(0, at(second)).unwrap();
        }
    }
}

/// Across the seam of two windows twice the limit passes a counter nearly, and never quite; the log holds it.
#[test]
fn the_error_of_the_counter_is_less_than_the_limit_and_comes_near() {
    let (limit, window) = (1_000, SECOND);
    let counter = counter(limit, window);
    let late = window - NANOSECOND;
    counter.try_acquire_n_at(limit, late).unwrap();
    // Just before all of the window before is out of the span.
    let end = late + window - NANOSECOND;
    let more = counter.acquire_up_to_at(limit, end);
    assert!(more < limit && more > limit - 2, "{more}");
    // previous * elapsed / W
    let elapsed = (end - window).as_nanos();
    assert_eq!(u128::from(more), u128::from(limit) * elapsed / window.as_nanos());
    let log = log(limit, window);
    log.try_acquire_n_at(limit, late).unwrap();
    assert_eq!(log.acquire_up_to_at(limit, end), 0);
}

/// A wait beyond the end of a `u64` of nanoseconds is told in full.
#[test]
fn windows_of_any_length_tell_waits_in_full() {
    for window in [NANOSECOND, SECOND, Duration::from_nanos(u64::MAX), 10_000 * YEAR, Duration::MAX] {
        for law in every_law(2, window) {
            law.n(2, Nanos::from(0)).unwrap();
            let wait = law.one(Nanos::from(0)).unwrap_err().retry_after().unwrap();
            // One of two is out when half of the next window is over.
            let half_more = if law.name == "sliding counter" { window.as_nanos().div_ceil(2) } else { 0 };
            assert_eq!(wait, duration(window.as_nanos() + half_more), "{} of {window:?}", law.name);
        }
    }
}

/// A pause that begins, by a clock that was set back, before an earlier one had does not make the log's time run ahead.
#[test]
fn a_pause_by_a_clock_that_was_set_back_brings_no_permit_forward() {
    let log = log(1, MINUTE);
    log.pause_until_at(at(100), at(0));
    log.try_acquire_at(at(125)).unwrap();
    log.pause_until_at(at(10), at(0));
    log.try_acquire_at(at(126)).unwrap_err();
    log.try_acquire_at(at(184)).unwrap_err();
    log.try_acquire_at(at(225)).unwrap();
}
