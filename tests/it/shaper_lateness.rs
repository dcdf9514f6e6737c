//! On pace: what a timer is late is made up for once, within `catch_up`, and idling saves nothing up.

use std::time::Duration;

use tollgate::{ManualClock, Quota, Shaper};

use crate::tasks::{Crowd, Random, Task, assert_law, by_hand, by_hand_with};
use crate::{HOUR, MILLISECOND, NANOSECOND, SECOND, quota};

/// How many pass at this instant.
fn pass(shaper: &Shaper) -> usize {
    std::iter::repeat_with(|| shaper.try_acquire()).take_while(Result::is_ok).count()
}

/// A shaper of 1,000 a second whose first waiter, due at 1 ms, has collected its permit at 5 ms, four late.
fn four_late(catch_up: Duration) -> (ManualClock, Shaper) {
    let (clock, shaper) = by_hand_with(Quota::per_second(1000), |builder| builder.catch_up(catch_up));
    assert_eq!(pass(&shaper), 1);
    let mut late = Task::in_line(shaper.acquire());
    clock.set(5 * MILLISECOND);
    assert!(late.leaves());
    drop(late);
    (clock, shaper)
}

#[test]
fn lateness_is_made_up_for_once() {
    let (clock, shaper) = four_late(5 * MILLISECOND);
    // The slots of 2, 3, 4 and 5 ms have gone by.
    assert_eq!(pass(&shaper), 4);
    clock.advance(MILLISECOND - NANOSECOND);
    assert_eq!(pass(&shaper), 0);
    clock.advance(NANOSECOND);
    assert_eq!(pass(&shaper), 1);
}

#[test]
fn lateness_beyond_catch_up_is_lost() {
    for (catch_up_us, passes) in [(0, 0), (500, 0), (1000, 1), (2000, 2), (3999, 3), (4000, 4), (9000, 4)] {
        let (_clock, shaper) = four_late(Duration::from_micros(catch_up_us));
        assert_eq!(pass(&shaper), passes, "catch_up {catch_up_us} us");
    }
}

#[test]
fn idle_spells_after_lateness_gain_nothing() {
    // 0.5, 0.9, 1.1 and 2 times the last lateness, after it was made up for.
    for spell_us in [2000, 3600, 4400, 8000] {
        let (clock, shaper) = four_late(5 * MILLISECOND);
        assert_eq!(pass(&shaper), 4);
        for _ in 0..10 {
            clock.advance(MILLISECOND + Duration::from_micros(spell_us));
            assert_eq!(pass(&shaper), 1, "idle for {spell_us} us");
            assert_eq!(shaper.estimated_wait(1), Some(MILLISECOND));
        }
    }
}

#[test]
fn idle_spells_after_lateness_below_the_interval_gain_nothing() {
    // T = 10 ms; the waiter of 10 ms collects at 14 ms. The next slot is at 20 ms, as if nothing had been late.
    for spell_us in [2000, 3600, 4400, 8000] {
        let (clock, shaper) = by_hand(Quota::per_second(100));
        assert_eq!(pass(&shaper), 1);
        let mut late = Task::in_line(shaper.acquire());
        clock.set(14 * MILLISECOND);
        assert!(late.leaves());
        assert_eq!(shaper.estimated_wait(1), Some(6 * MILLISECOND));
        clock.set(20 * MILLISECOND + Duration::from_micros(spell_us));
        assert_eq!(pass(&shaper), 1);
        assert_eq!(shaper.estimated_wait(1), Some(10 * MILLISECOND));
    }
}

#[test]
fn who_idles_while_behind_gains_no_more_than_catch_up() {
    // Behind by the slots of 2 ms and later; whatever comes of idling then, no more than 5 ms are ever made up for.
    for idle_us in 0..12_000 {
        let (clock, shaper) = four_late(5 * MILLISECOND);
        clock.advance(Duration::from_micros(idle_us));
        let passes = pass(&shaper);
        if idle_us > 2000 {
            assert_eq!(passes, 1, "the slot of 2 ms is out of reach after {idle_us} us");
        }
        assert!(passes <= 6);
    }
}

#[test]
fn idling_without_lateness_gains_nothing() {
    for idle in [MILLISECOND, 3 * MILLISECOND, 5 * MILLISECOND, SECOND, HOUR] {
        let (clock, shaper) = by_hand(Quota::per_second(1000));
        let mut waiter = Task::new(shaper.acquire());
        assert!(waiter.leaves());
        let mut waiter = Task::in_line(shaper.acquire());
        clock.advance(MILLISECOND);
        assert!(waiter.leaves());
        clock.advance(MILLISECOND + idle);
        assert_eq!(pass(&shaper), 1);
    }
}

#[test]
fn a_permit_collected_late_leaves_the_schedule_behind() {
    let (clock, shaper) = by_hand(Quota::per_second(1000));
    assert_eq!(pass(&shaper), 1);
    let mut late = Task::in_line(shaper.acquire());
    // Granted in time by a look at the shaper; its task runs four milliseconds later.
    clock.set(MILLISECOND);
    assert_eq!(shaper.waiting(), 0);
    clock.set(5 * MILLISECOND);
    assert!(late.leaves());
    assert_eq!(pass(&shaper), 4);
    assert_eq!(shaper.estimated_wait(1), Some(MILLISECOND));
}

#[test]
fn a_permit_collected_late_after_another_grant_does_not() {
    let (clock, shaper) = by_hand(Quota::per_second(1000));
    assert_eq!(pass(&shaper), 1);
    let mut late = Task::in_line(shaper.acquire());
    clock.set(MILLISECOND);
    assert_eq!(shaper.waiting(), 0);
    clock.set(4 * MILLISECOND);
    assert_eq!(pass(&shaper), 1);
    clock.set(8 * MILLISECOND);
    assert!(late.leaves());
    assert_eq!(pass(&shaper), 1);
}

#[test]
fn a_clock_that_jumps_over_fifty_waiters_keeps_law_and_order() {
    for (catch_up, at_once) in [
        (Duration::ZERO, 1),
        (5 * MILLISECOND, 1),
        (100 * MILLISECOND, 2),
        (150 * MILLISECOND, 2),
        (SECOND, 11),
        (HOUR, 50),
    ] {
        let rate = Quota::per_second(10);
        let (clock, shaper) = by_hand_with(rate, |builder| builder.catch_up(catch_up));
        let mut crowd = Crowd::default();
        for _ in 0..51 {
            crowd.push(shaper.acquire());
        }
        assert_eq!(crowd.granted(), [0]);
        clock.set(10 * SECOND);
        let mut left = crowd.granted();
        assert_eq!(left, (1..=at_once).collect::<Vec<_>>());
        let mut trace: Vec<_> = left.iter().map(|_| (clock.now(), 1)).collect();
        trace.insert(0, (tollgate::Nanos::ZERO, 1));
        while left.len() < 50 {
            clock.advance(MILLISECOND);
            for of in crowd.granted() {
                left.push(of);
                trace.push((clock.now(), 1));
            }
        }
        assert_eq!(left, (1..51).collect::<Vec<_>>());
        assert_law(&trace, rate, 1, catch_up);
        // One poll in vain each, at most.
        assert!(crowd.polls() <= 3 * 51, "{} polls", crowd.polls());
    }
}

#[test]
fn a_clock_that_jumps_at_random_keeps_law_and_order() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let burst = random.pick(&[1, 1, 3, 10]);
        let rate = quota(random.pick(&[1, 3, 10, 7]), random.pick(&[MILLISECOND, 10 * MILLISECOND]), burst);
        let catch_up = random.pick(&[Duration::ZERO, 5 * MILLISECOND, 50 * MILLISECOND, HOUR]);
        let (clock, shaper) = by_hand_with(rate, |builder| builder.catch_up(catch_up).max_n(5));
        let (mut crowd, mut asked, mut trace, mut left) = (Crowd::default(), Vec::new(), Vec::new(), Vec::new());
        for _ in 0..200 {
            for _ in 0..random.below(4) {
                asked.push(1 + random.below(5));
                crowd.push(shaper.acquire_n(asked[asked.len() - 1]));
            }
            // Granted in order; who was woken first of those granted at one instant depends on when each last looked.
            let mut granted = crowd.granted();
            granted.sort_unstable();
            for of in granted {
                trace.push((clock.now(), asked[of]));
                left.push(of);
            }
            let span = random.pick(&[1, 100, 3_000, 40_000]);
            clock.advance(Duration::from_micros(random.below(span)));
        }
        assert_eq!(left, (0..left.len()).collect::<Vec<_>>(), "seed {seed}");
        assert!(left.len() >= 5, "seed {seed}");
        assert_law(&trace, rate, burst, catch_up);
    }
}

#[test]
fn a_timer_that_is_late_every_time_delivers_the_full_rate() {
    // Late by up to 4 ms at each wait, as on a busy machine: 1,000 permits take a second, and the last is late itself.
    for (rate, tasks) in [(100, 1), (1000, 1), (5000, 1), (1000, 20), (5000, 20)] {
        let mut random = Random::new(rate);
        let (clock, shaper) = by_hand(Quota::per_second(rate));
        let mut crowd = Crowd::default();
        for _ in 0..tasks {
            crowd.push(shaper.acquire());
        }
        let mut left = 0;
        let mut trace = Vec::new();
        while left < 10 * rate {
            let answers = crowd.run();
            if answers.is_empty() {
                clock.advance(Duration::from_micros(1 + random.below(4000)));
            }
            for (_, answer) in answers {
                assert!(answer.is_ok());
                left += 1;
                trace.push((clock.now(), 1));
                crowd.push(shaper.acquire());
            }
        }
        assert_law(&trace, Quota::per_second(rate), 1, 5 * MILLISECOND);
        let took = clock.now().get();
        assert!(took.abs_diff(10_000_000_000) <= 14_000_000, "{rate} a second, {tasks} tasks: {took} ns");
    }
}

#[test]
fn without_catch_up_the_distance_is_strict() {
    // T = 1.5 ms on a clock of whole milliseconds.
    let left = |catch_up| {
        let (clock, shaper) =
            by_hand_with(Quota::new(2, 3 * MILLISECOND).unwrap(), |builder| builder.catch_up(catch_up));
        let mut crowd = Crowd::default();
        for _ in 0..6 {
            crowd.push(shaper.acquire());
        }
        crowd.granted_while(&clock, MILLISECOND, 12).into_iter().map(|(_, at)| at).collect::<Vec<_>>()
    };
    assert_eq!(left(Duration::ZERO), [0, 2, 4, 6, 8, 10]);
    assert_eq!(left(5 * MILLISECOND), [0, 2, 3, 5, 6, 8]);
}

#[test]
fn a_permit_given_back_leaves_the_lateness_that_it_found() {
    let (_clock, shaper) = four_late(5 * MILLISECOND);
    shaper.try_acquire().unwrap().give_back();
    assert_eq!(pass(&shaper), 4);
}

#[cfg(feature = "tokio")]
mod paused {
    use super::*;
    use crate::DAY;
    use crate::tasks::Record;
    use std::sync::Arc;

    // uber-go/ratelimit#119.
    #[tokio::test(start_paused = true)]
    async fn after_a_pause_of_any_length_the_pace_is_the_same() {
        for idle in [2 * SECOND, 10 * SECOND, HOUR, 30 * DAY] {
            for burst in [1, 2] {
                let shaper = Shaper::new(quota(1, SECOND, burst));
                let record = Record::begin();
                assert!(shaper.acquire().await.is_ok());
                tokio::time::sleep(idle).await;
                let resumed = record.now();
                for place in 0..24 {
                    assert!(shaper.acquire().await.is_ok());
                    let seconds: u64 = if burst == 1 { place } else { place.saturating_sub(1) };
                    assert_eq!(record.now() - resumed, 1000 * seconds, "burst {burst}, idle {idle:?}");
                }
            }
        }
    }

    // alibaba/Sentinel#1615.
    #[tokio::test(start_paused = true)]
    async fn five_thousand_a_second_take_their_time_though_the_timer_ticks_in_milliseconds() {
        let shaper = Shaper::new(Quota::per_second(5000));
        let record = Record::begin();
        for _ in 0..50_000 {
            assert!(shaper.acquire().await.is_ok());
        }
        let took = record.now();
        assert!((9_990..=10_010).contains(&took), "{took} ms");
    }

    // alibaba/Sentinel#1615, with rates around those that once were rounded.
    #[tokio::test(start_paused = true)]
    async fn no_rate_snaps_to_the_timers_grain() {
        for rate in [999, 1000, 1001, 1500, 2000, 2004, 20_000, 1_000_000] {
            let shaper = Shaper::new(Quota::per_second(rate));
            let record = Record::begin();
            for _ in 0..=rate {
                assert!(shaper.acquire().await.is_ok());
            }
            assert!((1000..=1001).contains(&record.now()), "{rate} a second: {} ms", record.now());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn many_tasks_get_the_same_rate_as_one() {
        let shaper = Arc::new(Shaper::new(Quota::per_second(5000)));
        let record = Record::begin();
        let tasks: Vec<_> = (0..50)
            .map(|_| {
                let shaper = Arc::clone(&shaper);
                tokio::spawn(async move {
                    for _ in 0..200 {
                        assert!(shaper.acquire().await.is_ok());
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(record.now(), 2000);
    }

    #[tokio::test(start_paused = true)]
    async fn late_wake_ups_are_made_up_for_and_idle_spells_are_not() {
        // T = 3 ms. Each round: the task sleeps past its slot, so that it collects late, and then asks on.
        let shaper = Shaper::new(Quota::new(1, 3 * MILLISECOND).unwrap());
        let record = Record::begin();
        assert!(shaper.acquire().await.is_ok());
        let mut late = Task::in_line(shaper.acquire());
        record.until(7).await;
        // The slot of 3 ms, told at 7 ms; that of 6 ms has gone by too, and that of 9 ms is still to come.
        assert!(late.leaves());
        assert!(shaper.acquire().await.is_ok());
        assert_eq!(record.now(), 7);
        assert!(shaper.acquire().await.is_ok());
        assert_eq!(record.now(), 9);
        for spell in [2, 4, 5, 8] {
            tokio::time::sleep(Duration::from_millis(3 + spell)).await;
            let before = record.now();
            assert!(shaper.acquire().await.is_ok());
            assert_eq!(record.now(), before);
            assert!(shaper.acquire().await.is_ok());
            assert_eq!(record.now(), before + 3);
        }
    }
}
