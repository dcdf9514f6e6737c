//! The traces that the articles print of the other laws, value for value.

use std::time::Duration;

use tollgate::{FixedWindow, Quota, Refused, SlidingCounter};

use crate::{MINUTE, SECOND, quota};

/// Ten requests on both sides of the seam between two windows of ten seconds, in milliseconds.
const ACROSS_THE_SEAM: [u64; 10] = [8_000, 8_500, 9_000, 9_200, 9_500, 10_000, 10_200, 10_400, 10_600, 10_800];

fn in_print(times: &[u64], ask: impl Fn(Duration) -> Result<(), Refused>) -> String {
    let verdict = |&time: &u64| if ask(Duration::from_millis(time)).is_ok() { "ok" } else { "--" };
    times.iter().map(verdict).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_fixed_window_lets_twice_the_limit_pass_across_the_seam_as_printed() {
    let window = FixedWindow::new(quota(5, 10 * SECOND, 0));
    let printed = "ok ok ok ok ok ok ok ok ok ok";
    assert_eq!(in_print(&ACROSS_THE_SEAM, |now| window.try_acquire_at(now)), printed);
}

/// 10 per 60 seconds, 8 requests in the previous window and 3 so far in the current one: previous * (1 - time into the current
/// window / window length) + current.
#[test]
fn the_estimate_of_a_sliding_counter_fades_as_printed() {
    let counter = SlidingCounter::new(Quota::per_minute(10)).unwrap();
    assert_eq!(counter.try_acquire_n_at(8, 59 * SECOND), Ok(()));
    assert_eq!(counter.try_acquire_n_at(2, MINUTE), Ok(()));
    assert_eq!(
        counter.try_acquire_n_at(1, MINUTE),
        Err(Refused::TooSoon { asked: 1, remaining: 0, retry_after: Duration::from_millis(7_500) })
    );
    assert_eq!(counter.try_acquire_n_at(1, Duration::from_millis(67_500)), Ok(()));
    for (secs, estimate) in [(75, 9), (82, 9), (90, 7), (105, 5), (119, 4), (120, 3), (150, 2), (180, 0)] {
        // Rounded up to whole permits.
        assert_eq!(counter.available_at(secs * SECOND), 10 - estimate, "at {secs} s");
    }
}
