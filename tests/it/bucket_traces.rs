//! The traces that the articles print, value for value.

use std::time::Duration;

use tollgate::{LeakyBucket, ManualClock, TokenBucket};

use crate::{SECOND, quota};

/// One permit at each of the times, given in milliseconds.
fn verdicts(bucket: &TokenBucket<ManualClock>, times: &[u64]) -> Vec<bool> {
    times.iter().map(|&time| bucket.try_acquire_at(Duration::from_millis(time)).is_ok()).collect()
}

#[test]
fn one_per_second_with_three_at_once_is_as_printed() {
    let times = [0, 200, 400, 600, 1_500, 3_500, 3_600, 3_700];
    let printed = [true, true, true, false, true, true, true, false];
    let bucket = TokenBucket::with_clock(quota(1, SECOND, 3), ManualClock::new());
    assert_eq!(verdicts(&bucket, &times), printed);
}

const SPELL_AND_TRICKLE: [u64; 14] =
    [0, 20_000, 20_000, 20_000, 20_000, 20_000, 20_000, 20_000, 20_000, 20_000, 20_500, 21_000, 21_500, 22_000];
const AS_PRINTED: &str = "ok ok ok ok ok ok -- -- -- -- ok ok ok ok";

fn in_print(verdicts: &[bool]) -> String {
    verdicts.iter().map(|&granted| if granted { "ok" } else { "--" }).collect::<Vec<_>>().join(" ")
}

#[test]
fn two_per_second_with_five_at_once_is_as_printed() {
    let bucket = TokenBucket::with_clock(quota(2, SECOND, 5), ManualClock::new());
    assert_eq!(in_print(&verdicts(&bucket, &SPELL_AND_TRICKLE)), AS_PRINTED);
}

#[test]
fn the_leaky_bucket_as_a_meter_decides_the_same() {
    let meter = LeakyBucket::with_clock(quota(2, SECOND, 5), ManualClock::new());
    assert_eq!(in_print(&verdicts(&meter, &SPELL_AND_TRICKLE)), AS_PRINTED);
}
