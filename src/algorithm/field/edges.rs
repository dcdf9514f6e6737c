//! The fields of a table at the edges: the largest quotas and times, units that do not agree, and a queue's own versions.

use std::time::Duration;

use super::{Admission, FieldLaw};
use crate::algorithm::gcra::{FIELD_END, Rate};
use crate::algorithm::sealed::Policing;
use crate::algorithm::window::{Kind, Windows};
use crate::algorithm::{FixedWindowLaw, Gcra, LeakyQueueLaw, SlidingCounterLaw};
use crate::interval::Interval;
use crate::quota::Quota;
use crate::time::Nanos;

/// Quotas of every size, also such whose T is no whole number of ticks.
fn quotas() -> Vec<Quota> {
    let nanos = Duration::from_nanos;
    let periods = [nanos(1), nanos(1_000), nanos(1_000_000_007), Duration::from_secs(86_400), Duration::MAX];
    let counts = [0, 1, 3, 127, 131, 1_000_003, 1 << 28, u64::MAX];
    let bursts = [0, 1, 2, 1_000, Quota::MAX_BURST, u64::MAX];
    let of = |permits, period| bursts.map(|burst| Quota::new(permits, period).unwrap().burst(burst));
    let limited = periods.iter().flat_map(|period| counts.iter().flat_map(move |permits| of(*permits, *period)));
    limited.chain([Quota::UNLIMITED]).collect()
}

const TIMES: [u64; 7] = [0, 1, 1_000_000_000, 1 << 52, 1 << 63, u64::MAX - 1, u64::MAX];

/// A version, and the field of a key in it.
type Key<'a, A> = (&'a <A as FieldLaw>::Record, u64);

/// What all laws keep: a field is one, what is given back is never more than there was, and a change gives nothing by what `keeps`
/// says of a key before and after it.
fn every_edge<A: FieldLaw>(keeps: impl Fn(Key<'_, A>, Key<'_, A>, Nanos) -> bool) {
    let quotas = quotas();
    let mut random = fastrand::Rng::with_seed(1);
    for quota in &quotas {
        for since in TIMES.map(Nanos::new) {
            let record = A::version(quota, since, None);
            for now in TIMES.map(Nanos::new) {
                let seen = A::snapshot_of(&record, 0, now);
                assert_eq!(seen.remaining, seen.limit, "a key never seen: {quota:?} since {since:?} at {now:?}");
                for n in [0, 1, seen.limit / 2, seen.limit, seen.limit.saturating_add(1), u64::MAX] {
                    let field = match A::admit(&record, 0, now, n) {
                        Admission::Granted(field) => field,
                        Admission::Beyond => {
                            let moved = A::version(quota, now, Some(&record));
                            let again = A::admit(&moved, A::carried(&record, 0, &moved), now, n);
                            assert!(matches!(again, Admission::Granted(_)), "{quota:?}: {n} at {now:?}");
                            continue;
                        }
                        Admission::Refused(_) => {
                            assert!(n > seen.limit);
                            continue;
                        }
                    };
                    assert!(field <= FIELD_END && n <= seen.limit);
                    for later in TIMES.map(Nanos::new) {
                        for n in [0, 1, u64::MAX] {
                            assert!(A::refunded(&record, field, later, n) <= field);
                        }
                        assert!(A::emptied(&record, field, later) <= field);
                        let next = quotas[random.usize(..quotas.len())];
                        let begun = A::version(&next, later, Some(&record));
                        let carried = A::carried(&record, field, &begun);
                        let context =
                            || format!("{quota:?} since {since:?}, {n} at {now:?}, then {next:?} at {later:?}");
                        if A::rest(&record, field).is_some_and(|rest| rest <= later) {
                            assert_eq!(carried, 0, "{}", context());
                        } else {
                            let kept = carried == FIELD_END
                                || next.is_unlimited()
                                || keeps((&record, field), (&begun, carried), later);
                            assert!(carried <= FIELD_END && kept, "{}", context());
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_bucket_takes_every_quota_and_time() {
    every_edge::<Gcra>(|(before, old), (after, new), now| {
        Gcra::snapshot_of(after, new, now).remaining <= Gcra::snapshot_of(before, old, now).remaining
    });
}

#[test]
fn windows_take_every_quota_and_time() {
    fn keeps<A: FieldLaw>((before, old): Key<'_, A>, (after, new): Key<'_, A>, now: Nanos) -> bool {
        let (before, after) = (A::snapshot_of(before, old, now), A::snapshot_of(after, new, now));
        after.limit - after.remaining >= after.limit.min(before.limit - before.remaining)
    }
    every_edge::<FixedWindowLaw>(keeps::<FixedWindowLaw>);
    every_edge::<SlidingCounterLaw>(keeps::<SlidingCounterLaw>);
}

#[test]
fn nothing_is_kept_of_a_key_while_nothing_is_limited_but_the_start_that_it_was_told() {
    fn kept<A: FieldLaw>() -> [u64; 2] {
        let (quota, now) = (Quota::per_second(5), Nanos::from_secs(1));
        let record = A::version(&quota, now, None);
        let Admission::Granted(field) = A::admit(&record, 0, now, 5) else { panic!("refused") };
        let open = A::version(&Quota::UNLIMITED, now, Some(&record));
        let during = A::carried(&record, field, &open);
        assert_eq!(A::admit(&open, during, now, u64::MAX), Admission::Granted(during));
        let after = A::version(&quota, now, Some(&open));
        [during, A::carried(&open, during, &after)]
    }
    assert_eq!([kept::<Gcra>(), kept::<FixedWindowLaw>(), kept::<SlidingCounterLaw>()], [[0; 2]; 3]);
    assert_eq!(kept::<LeakyQueueLaw>(), [1_000_000_000; 2]);
}

#[test]
fn a_queue_that_tells_takes_every_quota_and_time() {
    every_edge::<LeakyQueueLaw>(|(before, old), (after, new), now| {
        LeakyQueueLaw::start_of(after, new, now) >= LeakyQueueLaw::start_of(before, old, now)
    });
}

/// Where units do not agree what is left is rounded down, so that changes back and forth give nothing.
#[test]
fn changes_between_units_never_give_a_permit() {
    // What is there, in parts of a permit of which every rate gives a whole number per nanosecond.
    const PARTS: u128 = 60_000_000_000;
    let per_nano = |quota: &Quota| u128::from(quota.permits()) * PARTS / quota.period().as_nanos();
    let rates = [Quota::per_second(131), Quota::per_second(1_000_003), Quota::per_second(700), Quota::per_minute(7)];
    let quotas: Vec<_> = rates.iter().flat_map(|rate| [1, 3, 50].map(|burst| rate.burst(burst))).collect();
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..20_000 {
        let (mut quota, mut now) = (quotas[random.usize(..quotas.len())], 1_000_000_000);
        let mut record = Gcra::version(&quota, Nanos::new(now), None);
        let Admission::Granted(mut field) = Gcra::admit(&record, 0, Nanos::new(now), quota.policing_burst()) else {
            panic!("{quota:?}");
        };
        let mut most = 0;
        for _ in 0..20 {
            let step = random.u64(..2_000_000);
            now += step;
            let next = quotas[random.usize(..quotas.len())];
            let accrued = most + u128::from(step) * per_nano(&quota);
            most =
                accrued.min(u128::from(quota.policing_burst()) * PARTS).min(u128::from(next.policing_burst()) * PARTS);
            let begun = Gcra::version(&next, Nanos::new(now), Some(&record));
            field = Gcra::carried(&record, field, &begun);
            (record, quota) = (begun, next);
            if field == 0 {
                break;
            }
            let seen = Gcra::snapshot_of(&record, field, Nanos::new(now)).remaining;
            assert!(u128::from(seen) * PARTS <= most, "{seen} of {most} parts: {quota:?}");
        }
    }
}

/// A queue that has the state of a key for a time leaves what a key that never was in one has.
fn through_a_queue<A: FieldLaw + Policing>(quotas: &[Quota]) {
    for seed in 0..2_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let quota = quotas[random.usize(..quotas.len())];
        let mut now = Nanos::from_secs(1);
        let (record, mut field) = (A::version(&quota, now, None), 0);
        for _ in 0..8 {
            let law = A::law(quota, &record, field);
            for _ in 0..4 {
                now = now.saturating_add(Duration::from_nanos(random.u64(..30)));
                match random.u8(..4) {
                    0 => {
                        let n = random.u64(..3);
                        field = A::refunded(&record, field, now, n);
                        law.refund(n, now);
                    }
                    1 if random.bool() => {
                        field = A::emptied(&record, field, now);
                        law.reset(now);
                    }
                    _ => {
                        let n = random.u64(..3);
                        let theirs = law.try_acquire(n, now);
                        match A::admit(&record, field, now, n) {
                            Admission::Granted(next) => {
                                assert!(theirs.is_ok());
                                field = next;
                            }
                            answer => assert_eq!(answer, Admission::Refused(theirs.unwrap_err())),
                        }
                    }
                }
            }
            let (own, state) = law.state();
            let back = A::carried(&own, state, &record);
            let rests = |field| A::rest(&record, field).is_some_and(|rest| rest <= now);
            assert!(back == field || (rests(back) && rests(field)), "seed {seed}: {quota:?}, {back} {field}");
            if random.u8(..4) == 0 {
                let next = quotas[random.usize(..quotas.len())];
                law.set_quota(next, now);
                let begun = A::version(&next, now, Some(&record));
                let (own, state) = law.state();
                let rests = rests(field);
                field = A::carried(&record, field, &begun);
                let back = A::carried(&own, state, &begun);
                assert!(rests || back == field, "seed {seed}: {quota:?} to {next:?}, {back} {field}");
                break;
            }
        }
    }
}

#[test]
fn a_bucket_comes_back_from_a_queue_as_it_would_have_been() {
    let per = |permits, nanos| Quota::new(permits, Duration::from_nanos(nanos)).unwrap();
    let quotas =
        [per(1, 10).burst(3), per(3, 10).burst(4), per(7, 30).burst(2), per(1, 25).burst(1), per(0, 10).burst(5)];
    through_a_queue::<Gcra>(&quotas);
}

#[test]
fn windows_come_back_from_a_queue_as_they_would_have_been() {
    let per = |permits, nanos| Quota::new(permits, Duration::from_nanos(nanos)).unwrap();
    let quotas = [per(200, 10), per(5, 10), per(3, 10), per(9, 10), per(4, 35)];
    through_a_queue::<FixedWindowLaw>(&quotas);
    through_a_queue::<SlidingCounterLaw>(&quotas);
}

/// What counts by a clock that was set back may be more than the counts of a table hold: then nothing passes for a window more.
#[test]
fn more_than_a_count_holds_holds_for_a_window_more() {
    fn held<A: FieldLaw>() -> Vec<u64> {
        let secs = |secs: u64| Nanos::from_secs(secs);
        let per = |permits, secs| Quota::new(permits, Duration::from_secs(secs)).unwrap();
        // A key is a thousand windows ahead when limits of 3 have long followed one of 100.
        let wide = A::version(&per(100, 1), secs(0), None);
        let Admission::Granted(field) = A::admit(&wide, 0, secs(1_000), 100) else { panic!("refused") };
        let narrow = A::version(&per(3, 1), secs(1), Some(&wide));
        let field = A::carried(&wide, field, &narrow);
        assert_eq!(A::snapshot_of(&narrow, field, secs(1_000)).remaining, 0);
        let later = A::version(&per(3, 1), secs(500), Some(&narrow));
        let field = A::carried(&narrow, field, &later);
        (1_000..1_005).map(|now| A::snapshot_of(&later, field, secs(now)).remaining).collect()
    }
    assert_eq!(held::<FixedWindowLaw>(), [0, 0, 3, 3, 3]);
    assert_eq!(held::<SlidingCounterLaw>(), [0, 0, 0, 3, 3]);
}

/// Where the rate stays 0 a queue takes whom it served for served at the change, which is never too early for the next.
#[test]
fn a_queue_whose_rate_was_0_starts_the_next_no_sooner_than_a_t_later() {
    let (stopped, quota) = (Quota::per_second(0).burst(1), Quota::per_second(10));
    let at = Nanos::from_millis;
    let first = LeakyQueueLaw::version(&stopped, at(0), None);
    let Admission::Granted(served) = LeakyQueueLaw::admit(&first, 0, at(40), 1) else { panic!("refused") };
    for changed in [0, 20, 40, 60, 200] {
        let second = LeakyQueueLaw::version(&stopped, at(changed), Some(&first));
        let third = LeakyQueueLaw::version(&quota, at(50), Some(&second));
        let field = LeakyQueueLaw::carried(&second, LeakyQueueLaw::carried(&first, served, &second), &third);
        assert_eq!(LeakyQueueLaw::start_of(&third, field, at(50)), at(changed.max(40) + 100));
    }
}

/// By a clock that was set back a bucket is given no time twice, also if the rate is 0 in between, when a field tells no time.
#[test]
fn a_rate_of_0_in_between_gives_no_time_twice() {
    let quota = Quota::per_second(10).burst(5);
    let at = Nanos::from_millis;
    for back in [0, 1, 500, 90_000, 1_000_000] {
        let first = Gcra::version(&quota, at(0), None);
        let Admission::Granted(field) = Gcra::admit(&first, 0, at(2_000_000), 5) else { panic!("refused") };
        let stopped = Gcra::version(&Quota::per_second(0).burst(5), at(2_000_000 - back), Some(&first));
        let field = Gcra::carried(&first, field, &stopped);
        let next = Gcra::version(&quota, at(2_000_000 - back), Some(&stopped));
        let field = Gcra::carried(&stopped, field, &next);
        // A lap is 2^10 ns here.
        let (begins, due) = (at(2_000_000).get(), at(2_000_100).get());
        let seen = [begins, due - 1, due + 1_024].map(|now| Gcra::snapshot_of(&next, field, now.into()).remaining);
        assert_eq!(seen, [0, 0, 1], "set back by {back} ms");
    }
}

/// Where a key is further ahead than a rate of 0 can tell, it still has no more than it had.
#[test]
fn a_rate_of_0_lets_no_debt_off_however_far_the_clock_is_set_back() {
    let quota = Quota::per_day(1).burst(400);
    let days = |days: u64| Nanos::from_secs(days * 86_400);
    let first = Gcra::version(&quota, days(1_000), None);
    let Admission::Granted(field) = Gcra::admit(&first, 0, days(1_000), 399) else { panic!("refused") };
    let stopped = Gcra::version(&Quota::per_day(0).burst(400), days(0), Some(&first));
    let field = Gcra::carried(&first, field, &stopped);
    assert_eq!(Gcra::snapshot_of(&stopped, field, days(0)).remaining, 0);
}

/// With long ticks what is left is the same to the tick, wherever the next version begins.
#[test]
fn long_ticks_are_rounded_up_once() {
    let quota = Quota::per_hour(1).burst(1 << 40);
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..2_000 {
        let now = 1 << 50;
        let old = Gcra::version(&quota, Nanos::new(now - random.u64(..1 << 40)), None);
        let tick = 1_u64 << old.interval.shift;
        let Admission::Granted(field) = Gcra::admit(&old, 0, Nanos::new(now), 1 << 40) else { panic!("refused") };
        let next = Gcra::version(&quota, Nanos::new(now - random.u64(..1 << 45)), Some(&old));
        let carried = Gcra::carried(&old, field, &next);
        let due = |rate, field| Gcra::snapshot_of(rate, field, Nanos::new(now)).retry_after.unwrap();
        let (before, after) = (due(&old, field), due(&next, carried));
        assert!(before <= after && after < before + Duration::from_nanos(tick), "{before:?} {after:?}");
    }
}

/// Where 127 bits do not tell how to round, it is up.
#[test]
fn what_can_not_be_compared_is_rounded_up() {
    let old = Quota::new(128, Duration::from_nanos((1 << 56) + 1)).unwrap().burst(2);
    let first = Gcra::version(&old, Nanos::new(u64::MAX - 100), None);
    let Admission::Granted(field) = Gcra::admit(&first, 0, Nanos::new(u64::MAX - 2), 2) else { panic!("refused") };
    let longest = Quota::new(1, Duration::MAX).unwrap().burst(Quota::MAX_BURST);
    let next = Gcra::version(&longest, Nanos::ZERO, Some(&first));
    assert_eq!(Gcra::carried(&first, field, &next), next.capacity + 1);
}

/// A field is as good as 0 from the instant of its rest on, and not before.
fn rests_when_nothing_counts<A: FieldLaw>(quota: &Quota) {
    let nanos = Nanos::new;
    let record = A::version(quota, nanos(100), None);
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..500 {
        let (mut field, mut now) = (0, 100);
        for _ in 0..random.u8(1..6) {
            now += random.u64(..9);
            if let Admission::Granted(granted) = A::admit(&record, field, nanos(now), random.u64(1..3)) {
                field = granted;
            }
        }
        // What is given back is the latest, which may leave what is older.
        field = A::refunded(&record, field, nanos(now), random.u64(..2));
        let full = |now| A::snapshot_of(&record, field, nanos(now)).reset_after == Some(Duration::ZERO);
        let rest = A::rest(&record, field).unwrap().get();
        if rest > 0 {
            assert!(!full(rest - 1), "{quota:?}: {field} at {rest}");
            assert!((rest..rest + 100).all(full), "{quota:?}: {field} at {rest}");
        }
    }
}

#[test]
fn a_key_rests_as_soon_as_nothing_counts() {
    let per = |permits, nanos| Quota::new(permits, Duration::from_nanos(nanos)).unwrap();
    for quota in [per(3, 10), per(2, 7), per(5, 10).burst(2)] {
        rests_when_nothing_counts::<Gcra>(&quota);
        rests_when_nothing_counts::<FixedWindowLaw>(&quota);
        rests_when_nothing_counts::<SlidingCounterLaw>(&quota);
    }
}

#[test]
fn a_smaller_limit_for_a_moment_forgets_no_count() {
    fn left<A: FieldLaw>() -> u64 {
        let (wide, narrow, now) = (Quota::per_second(100), Quota::per_second(3), Nanos::from_secs(1_000));
        let first = A::version(&wide, Nanos::ZERO, None);
        let Admission::Granted(field) = A::admit(&first, 0, now, 60) else { panic!("refused") };
        let second = A::version(&narrow, now, Some(&first));
        let third = A::version(&wide, now, Some(&second));
        let field = A::carried(&second, A::carried(&first, field, &second), &third);
        A::snapshot_of(&third, field, now).remaining
    }
    assert_eq!([left::<FixedWindowLaw>(), left::<SlidingCounterLaw>()], [40, 40]);
}

/// A version that is read while it is rewritten may have fields of several. Nobody believes what it says, but it must be said.
#[test]
fn a_version_of_several_says_something() {
    fn says<A: FieldLaw>(mix: impl Fn([A::Record; 4]) -> A::Record) {
        let quotas = quotas();
        let mut random = fastrand::Rng::with_seed(11);
        for _ in 0..20_000 {
            let mut any = || {
                let (quota, since) = (quotas[random.usize(..quotas.len())], TIMES[random.usize(..TIMES.len())]);
                let since = if random.bool() { since } else { random.u64(..) };
                A::version(&quota, Nanos::new(since), None)
            };
            let (record, next) = (mix(std::array::from_fn(|_| any())), mix(std::array::from_fn(|_| any())));
            let field = random.u64(..=FIELD_END) >> random.u32(..59);
            let now = Nanos::new(random.u64(..) >> random.u32(..64));
            let n = random.u64(..) >> random.u32(..64);
            let carried = A::carried(&record, field, &next);
            let said = (A::rest(&record, field), A::admit_in_64_bits(&record, field, now, n));
            let (answer, seen) = (A::admit(&record, field, now, n), A::snapshot_of(&record, field, now));
            assert!(A::refunded(&record, field, now, n) <= field, "{said:?} {answer:?} {seen:?}");
            assert!(carried <= FIELD_END && A::emptied(&record, field, now) <= field);
        }
    }
    let rate = |[a, b, c, d]: [Rate; 4]| {
        let interval = Interval { ticks: b.interval.ticks, ..a.interval };
        Rate { interval, capacity: c.capacity, origin: d.origin, held: false }
    };
    fn windows<K: Kind>([a, b, c, d]: [Windows<K>; 4]) -> Windows<K> {
        Windows { bits: b.bits, unlimited: b.unlimited, limit: c.limit, origin: d.origin, end: b.end, ..a }
    }
    says::<Gcra>(rate);
    says::<LeakyQueueLaw>(rate);
    says::<FixedWindowLaw>(windows);
    says::<SlidingCounterLaw>(windows);
}
