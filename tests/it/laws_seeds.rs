//! The traces that the articles print of the other laws, value for value.

use std::time::Duration;

use tollgate::{FixedWindow, LeakyQueue, Nanos, Quota, Refused, SlidingCounter, SlidingLog};

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

#[test]
fn a_sliding_log_is_exact_across_the_seam_as_printed() {
    let log = SlidingLog::new(quota(5, 10 * SECOND, 0)).unwrap();
    let printed = "ok ok ok ok ok -- -- -- -- --";
    assert_eq!(in_print(&ACROSS_THE_SEAM, |now| log.try_acquire_at(now)), printed);
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

/// One request, a quiet spell, then nine at once and a slow trickle.
#[test]
fn the_starts_of_a_leaky_queue_are_as_printed() {
    let queue = LeakyQueue::new(quota(2, SECOND, 5));
    let mut times = vec![0];
    times.extend([20_000; 9]);
    times.extend([20_500, 21_000, 21_500, 22_000]);
    let served: Vec<String> = times
        .into_iter()
        .map(|time| match queue.schedule_at(Duration::from_millis(time)) {
            Ok(start) => format!("{:.1}", Duration::from_nanos(start.get()).as_secs_f64()),
            Err(_) => "'rej'".to_owned(),
        })
        .collect();
    let printed = "[0.0, 20.0, 20.5, 21.0, 21.5, 22.0, 'rej', 'rej', 'rej', 'rej', 22.5, 23.0, 23.5, 24.0]";
    assert_eq!(format!("[{}]", served.join(", ")), printed);
}

/// A queue of 3 and one request processed per second, five arriving together at time 0: three queued and two rejected; the queued
/// ones are handled at 1, 2 and 3 seconds. That one works in ticks, and handles what arrived in a tick from the next one on.
#[test]
fn a_leaky_queue_of_ticks_starts_as_printed() {
    let queue = LeakyQueue::new(quota(1, SECOND, 3));
    let mut printed = Vec::new();
    for request in 0..5 {
        printed.push(match queue.schedule_at(0) {
            Ok(start) => format!(
                "t={}: processed request {request}",
                start.saturating_add(SECOND).get() / Nanos::from_secs(1).get()
            ),
            Err(_) => format!("t=0: rejected request {request}"),
        });
    }
    printed.sort();
    assert_eq!(
        printed,
        [
            "t=0: rejected request 3",
            "t=0: rejected request 4",
            "t=1: processed request 0",
            "t=2: processed request 1",
            "t=3: processed request 2",
        ]
    );
}
