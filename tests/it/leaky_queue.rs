//! The leaky bucket as a queue that tells when.

use std::time::Duration;

use tollgate::{LeakyQueue, ManualClock, Nanos, Quota, Refused};

use crate::{DAY, HOUR, MINUTE, NANOSECOND, SECOND, YEAR, quota};

const MS: Duration = Duration::from_millis(1);

fn queue(permits: u64, period: Duration, capacity: u64) -> LeakyQueue {
    LeakyQueue::new(quota(permits, period, capacity))
}

fn at(time: Duration) -> Result<Nanos, Refused> {
    Ok(time.into())
}

/// The law as it is printed, in units of 1/den nanoseconds in which T is a whole number.
struct Printed {
    free_at: u128,
    gap: u128,
    den: u128,
    capacity: u128,
}

impl Printed {
    fn schedule(&mut self, now: u64, n: u64) -> Option<u64> {
        let (now, n) = (u128::from(now) * self.den, u128::from(n));
        let backlog = self.free_at.saturating_sub(now) + (n - 1) * self.gap;
        if backlog >= self.capacity * self.gap {
            return None;
        }
        let start = now.max(self.free_at);
        self.free_at = start + n * self.gap;
        Some(u64::try_from(start.div_ceil(self.den)).unwrap())
    }
}

#[test]
fn starts_and_refusals_are_those_of_the_law_in_print() {
    for (permits, period, capacity, den) in
        [(2, 1_000, 5, 1), (3, 1_000, 3, 3), (7, 30, 1, 7), (7, 1, 4, 7), (1, 10, 2, 1)]
    {
        let queue = queue(permits, Duration::from_nanos(period), capacity);
        let gap = u128::from(period) * den / u128::from(permits);
        let mut law = Printed { free_at: 0, gap, den, capacity: capacity.into() };
        let mut random = fastrand::Rng::with_seed(permits * period);
        let mut now = 0;
        for _ in 0..20_000 {
            now += random.u64(0..=period / permits + 2);
            let asked_at = now.saturating_sub(if random.u8(..8) == 0 { random.u64(0..=period) } else { 0 });
            let n = random.u64(1..=capacity);
            let before = queue.snapshot_at(asked_at);
            let told = queue.schedule_n_at(n, asked_at);
            assert_eq!(told.ok().map(Nanos::get), law.schedule(asked_at, n), "{n} at {asked_at}");
            assert_eq!(told.is_ok(), n <= before.remaining, "{before:?}");
            if let Err(refused) = told {
                let due = asked_at + u64::try_from(refused.retry_after().unwrap().as_nanos()).unwrap();
                assert!(queue.peek_at(n, due).is_ok() && queue.peek_at(n, due - 1).is_err(), "{refused}");
            }
        }
    }
}

// bucket4j/bucket4j#51
#[test]
fn a_long_idle_time_overflows_nothing_and_saves_nothing_up() {
    let most = 10_000_000;
    for idle in [2 * SECOND, HOUR, 12 * HOUR, 30 * DAY, YEAR, 100 * YEAR] {
        let queue = queue(most, SECOND, most);
        assert_eq!(queue.schedule_n_at(most, 0), at(Duration::ZERO));
        assert_eq!(queue.available_at(0), 0);
        assert_eq!(queue.schedule_at(idle), at(idle));
        assert_eq!(queue.available_at(idle), most - 1, "after {idle:?}");
        assert_eq!(queue.schedule_n_at(most - 1, idle), at(idle + Duration::from_nanos(100)));
        assert!(queue.schedule_at(idle).is_err(), "after {idle:?}");
    }
}

// golang/go#56287
#[test]
fn a_clock_that_steps_back_and_forth_starts_nobody() {
    let queue = queue(1, SECOND, 10);
    assert_eq!(queue.schedule_n_at(10, 1_000 * SECOND), at(1_000 * SECOND));
    for _ in 0..1_000 {
        assert!(queue.schedule_at(999 * SECOND).is_err());
        assert!(queue.schedule_at(1_000 * SECOND).is_err());
    }
    assert_eq!(queue.schedule_at(1_001 * SECOND), at(1_010 * SECOND));
    assert!(queue.schedule_at(1_001 * SECOND).is_err());
}

// upstash/ratelimit-js PR 161
#[test]
fn a_refused_request_takes_no_place() {
    let queue = queue(5, MINUTE, 5);
    assert_eq!(queue.schedule_n_at(4, 0), at(Duration::ZERO));
    assert!(queue.schedule_n_at(3, 0).is_err());
    assert_eq!(queue.available_at(0), 1);
    assert_eq!(queue.schedule_at(0), at(48 * SECOND));
    // Asked for again and again it comes no later. Five fit as soon as the backlog is less than one.
    for second in 0..=48 {
        let refused = queue.schedule_n_at(5, second * SECOND).unwrap_err();
        assert_eq!(refused.retry_after(), Some((48 - second) * SECOND + NANOSECOND));
    }
    assert_eq!(queue.schedule_n_at(5, 48 * SECOND + NANOSECOND), at(MINUTE));
}

// bucket4j/bucket4j#220
#[test]
fn more_than_the_capacity_is_refused_at_once_and_nothing_is_free() {
    let queue = queue(2, SECOND, 3);
    assert_eq!(queue.schedule_n_at(4, 0), Err(Refused::ExceedsCapacity { asked: 4, capacity: 3 }));
    assert_eq!(queue.schedule_n_at(3, 0), at(Duration::ZERO));
    assert_eq!(queue.schedule_n_at(0, 0), at(1_500 * MS));
    assert_eq!(queue.available_at(0), 0);
    let seen = queue.snapshot_at(0);
    assert_eq!((seen.limit, seen.remaining), (3, 0));
    // The backlog is a fraction: a nanosecond after it was the capacity there is room for one more.
    assert_eq!(seen.retry_after, Some(NANOSECOND));
    assert_eq!(seen.reset_after, Some(SECOND + NANOSECOND));
    assert_eq!(
        LeakyQueue::new(quota(2, SECOND, 0)).schedule_at(0),
        Err(Refused::ExceedsCapacity { asked: 1, capacity: 0 })
    );
}

#[test]
fn a_pause_tells_no_start_before_its_end_and_keeps_the_backlog() {
    let queue = queue(2, SECOND, 5);
    assert_eq!(queue.schedule_n_at(3, SECOND), at(SECOND));
    queue.pause_until_at(10 * SECOND, 1_500 * MS); // one second of the backlog is left
    assert_eq!(queue.schedule_at(9 * SECOND), Err(Refused::Paused { asked: 1, retry_after: SECOND }));
    assert_eq!(queue.schedule_n_at(0, 9 * SECOND), at(11 * SECOND));
    assert_eq!(queue.schedule_at(10 * SECOND), at(11 * SECOND));
    // It stays past though the clock is set back.
    assert_eq!(queue.schedule_at(9_600 * MS), at(11_500 * MS));
}

#[test]
fn a_pause_is_shortened_and_ended() {
    let queue = queue(2, SECOND, 5);
    assert_eq!(queue.schedule_n_at(3, SECOND), at(SECOND));
    queue.pause_until_at(DAY, 2 * SECOND);
    queue.pause_until_at(MINUTE, 3 * SECOND);
    queue.resume_at(20 * SECOND);
    assert_eq!(queue.schedule_at(20 * SECOND), at(20_500 * MS));
    // By a clock that was set back no start comes before those that were told.
    queue.pause_until_at(MINUTE, 30 * SECOND);
    queue.resume_at(10 * SECOND);
    assert_eq!(queue.schedule_n_at(0, 10 * SECOND), at(30 * SECOND));
}

#[test]
fn another_quota_keeps_the_starts_that_were_told() {
    let queue = queue(2, SECOND, 5);
    assert_eq!(queue.schedule_n_at(4, 0), at(Duration::ZERO));
    queue.set_quota_at(quota(10, SECOND, 5), 0);
    // The backlog of two seconds is twenty of the new intervals.
    assert_eq!(
        queue.schedule_at(0),
        Err(Refused::TooSoon { asked: 1, remaining: 0, retry_after: 1_500 * MS + NANOSECOND })
    );
    assert_eq!(queue.schedule_at(1_600 * MS), at(2 * SECOND));
    assert_eq!(
        queue.schedule_at(1_600 * MS),
        Err(Refused::TooSoon { asked: 1, remaining: 0, retry_after: NANOSECOND })
    );
    queue.set_quota_at(quota(1, SECOND, 5), 2 * SECOND);
    assert_eq!(queue.schedule_at(2 * SECOND), at(2_100 * MS));
    assert_eq!(queue.schedule_at(2 * SECOND), at(3_100 * MS));
}

#[test]
fn the_same_quota_again_changes_nothing() {
    let queue = queue(3, SECOND, 5);
    assert_eq!(queue.schedule_n_at(4, 0), at(Duration::ZERO));
    for ms in 0..100 {
        queue.set_quota_at(quota(3, SECOND, 5), ms * MS);
    }
    assert_eq!(queue.schedule_n_at(2, 100 * MS), at(Duration::from_nanos(1_333_333_334)));
    assert_eq!(queue.schedule_n_at(1, SECOND), at(2 * SECOND));
}

#[test]
fn a_backlog_that_is_longer_than_the_new_field_is_kept() {
    let queue = queue(1, DAY, 1_000);
    assert_eq!(queue.schedule_n_at(1_000, 0), at(Duration::ZERO));
    queue.set_quota_at(Quota::per_second(2004).burst(5), 0);
    assert_eq!(queue.schedule_n_at(0, 0), at(1_000 * DAY));
    queue.pause_until_at(2 * DAY, DAY);
    assert_eq!(queue.schedule_n_at(0, DAY), at(1_000 * DAY));
    queue.set_quota_at(Quota::per_second(501).burst(5), DAY);
    queue.resume_at(DAY);
    assert_eq!(queue.schedule_n_at(0, DAY), at(1_000 * DAY));
    assert_eq!(queue.schedule_at(1_000 * DAY), at(1_000 * DAY));
}

#[test]
fn a_quota_that_changes_in_a_pause_without_end_keeps_the_backlog() {
    for (between, start) in [(quota(4, SECOND, 9), 2), (quota(0, SECOND, 9), 2), (Quota::UNLIMITED, 2)] {
        let queue = queue(2, SECOND, 5);
        assert_eq!(queue.schedule_n_at(4, 0), at(Duration::ZERO));
        queue.pause_until_at(Nanos::MAX, 0);
        queue.set_quota_at(between, SECOND);
        queue.set_quota_at(quota(2, SECOND, 5), SECOND);
        queue.resume_at(SECOND);
        assert!(queue.schedule_n_at(0, SECOND).unwrap() >= Nanos::from_secs(1 + start), "{between:?}");
    }
}

#[test]
fn a_quota_may_change_during_a_pause() {
    let queue = queue(2, SECOND, 5);
    assert_eq!(queue.schedule_n_at(3, SECOND), at(SECOND));
    queue.pause_until_at(10 * SECOND, 1_500 * MS);
    queue.set_quota_at(quota(4, SECOND, 9), 5 * SECOND);
    assert_eq!(queue.schedule_at(9 * SECOND), Err(Refused::Paused { asked: 1, retry_after: SECOND }));
    assert_eq!(queue.schedule_n_at(2, 10 * SECOND), at(11 * SECOND));
    assert_eq!(queue.schedule_at(10 * SECOND), at(11_500 * MS));
}

#[test]
fn a_rate_of_nothing_serves_one_and_no_other() {
    let queue = queue(0, SECOND, 5);
    assert_eq!(queue.schedule_n_at(2, 0), Err(Refused::ExceedsCapacity { asked: 2, capacity: 1 }));
    assert_eq!(queue.schedule_at(SECOND), at(SECOND));
    assert_eq!(queue.schedule_at(YEAR), Err(Refused::Never { asked: 1, remaining: 0 }));
    queue.set_quota_at(quota(1, SECOND, 5), MINUTE);
    assert_eq!(queue.schedule_at(MINUTE), at(MINUTE));
    // Who was told a start is served; nobody is after him.
    queue.set_quota_at(quota(0, SECOND, 5), MINUTE);
    assert_eq!(queue.schedule_at(DAY), Err(Refused::Never { asked: 1, remaining: 0 }));
    queue.set_quota_at(quota(1, SECOND, 5), MINUTE);
    assert!(queue.schedule_at(MINUTE).unwrap() >= Nanos::from(MINUTE + 2 * SECOND));
}

#[test]
fn after_the_one_of_a_rate_of_nothing_comes_an_interval_of_the_next_quota() {
    for (start, changed) in [(MINUTE, MINUTE), (MINUTE, SECOND), (100 * YEAR, SECOND), (100 * YEAR, 100 * YEAR)] {
        let queue = queue(0, SECOND, 5);
        assert_eq!(queue.schedule_at(start), at(start));
        queue.set_quota_at(quota(1, SECOND, 5), changed);
        assert_eq!(queue.schedule_n_at(0, 0), at(start + SECOND), "served at {start:?}, changed at {changed:?}");
    }
    // In a pause, which begins before the start that was told by a clock that was set back.
    for resumed in [false, true] {
        let queue = queue(0, SECOND, 5);
        assert_eq!(queue.schedule_at(MINUTE), at(MINUTE));
        queue.pause_until_at(40 * SECOND, 30 * SECOND);
        queue.set_quota_at(quota(1, SECOND, 1_000), 35 * SECOND);
        if resumed {
            queue.resume_at(30 * SECOND);
        }
        let start = if resumed { MINUTE + SECOND } else { MINUTE + 11 * SECOND };
        assert_eq!(queue.schedule_at(40 * SECOND), at(start));
    }
}

#[test]
fn unlimited_starts_all_when_what_was_told_before_is_done() {
    let queue = queue(1, SECOND, 5);
    assert_eq!(queue.schedule_n_at(3, 0), at(Duration::ZERO));
    queue.set_quota_at(Quota::UNLIMITED, 0);
    assert_eq!(queue.schedule_n_at(u64::MAX, SECOND), at(3 * SECOND));
    assert_eq!(queue.schedule_at(5 * SECOND), at(5 * SECOND));
    queue.set_quota_at(quota(1, SECOND, 5), 5 * SECOND);
    assert_eq!(queue.schedule_at(5 * SECOND), at(5 * SECOND));
    assert_eq!(queue.schedule_at(5 * SECOND), at(6 * SECOND));
}

#[test]
fn a_pause_without_a_limit_ends_when_told_and_keeps_the_backlog() {
    let queue = queue(1, SECOND, 5);
    assert_eq!(queue.schedule_n_at(3, 0), at(Duration::ZERO));
    queue.set_quota_at(Quota::UNLIMITED, 0);
    queue.pause_until_at(2 * SECOND, SECOND); // two seconds of the backlog are left
    assert_eq!(queue.schedule_at(1_500 * MS), Err(Refused::Paused { asked: 1, retry_after: 500 * MS }));
    assert_eq!(queue.schedule_n_at(7, 2 * SECOND), at(4 * SECOND));
    queue.set_quota_at(quota(1, SECOND, 5), 2 * SECOND);
    assert_eq!(queue.schedule_at(2 * SECOND), at(4 * SECOND));
    assert_eq!(queue.schedule_at(2 * SECOND), at(5 * SECOND));
}

#[test]
fn no_start_is_told_before_the_end_of_a_pause_under_the_quota_before() {
    for before in [quota(1, SECOND, 5), quota(0, SECOND, 5), Quota::UNLIMITED] {
        let queue = LeakyQueue::new(before);
        queue.pause_until_at(20 * SECOND, 10 * SECOND);
        queue.set_quota_at(quota(2, SECOND, 20), 25 * SECOND);
        // By a clock that was set back.
        assert_eq!(queue.schedule_at(15 * SECOND), at(20 * SECOND), "{before:?}");
    }
}

#[test]
fn no_limit_is_none_at_any_time_even_if_those_before_wait_beyond_the_end_of_the_clock() {
    let queue = queue(1, SECOND, 5);
    assert_eq!(queue.schedule_n_at(5, u64::MAX - 9_000_000_000), Ok(Nanos::new(u64::MAX - 9_000_000_000)));
    queue.set_quota_at(Quota::UNLIMITED, u64::MAX - 9_000_000_000);
    queue.pause_until_at(u64::MAX, u64::MAX - 9_000_000_000);
    for now in [u64::MAX, 0, u64::MAX - 1] {
        assert_eq!(queue.schedule_at(now), Ok(Nanos::MAX));
        let seen = queue.snapshot_at(now);
        assert_eq!((seen.remaining, seen.retry_after), (u64::MAX, Some(Duration::ZERO)));
    }
}

#[test]
fn a_queue_may_begin_with_a_backlog() {
    let clock = ManualClock::at(MINUTE);
    let queue = LeakyQueue::builder(quota(1, SECOND, 5)).initial(2).clock(clock).build();
    assert_eq!(queue.available(), 2);
    assert_eq!(queue.schedule(), at(MINUTE + 3 * SECOND));
}

#[test]
fn the_end_of_the_clock_is_no_end_of_the_queue() {
    let queue = queue(1, 400 * YEAR, 3);
    let last = Nanos::MAX.get() - 1;
    assert_eq!(queue.schedule_at(last), Ok(Nanos::new(last)));
    assert_eq!(queue.schedule_at(last), Ok(Nanos::MAX));
    let fast = LeakyQueue::new(Quota::per_second(2004).burst(u64::MAX));
    assert_eq!(fast.schedule_at(last), Ok(Nanos::new(last)));
    assert_eq!(fast.snapshot_at(last).limit, Quota::MAX_BURST - 1);
}
