//! Waiting on each law with tokio's timer, on a paused clock: nobody is early, and nobody later than the timer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tollgate::{
    Clock, FixedWindow, Limiter, Nanos, Quota, Shaper, SlidingCounter, SlidingLog, TokenBucket, TokioClock, Waitable,
};

use crate::over_windows::ten_seconds;
use crate::tasks::{Costs, Watched};
use crate::{MILLISECOND, SECOND};

/// Tasks that ask for these weights at the edge of a window leave in order at these nanoseconds after it.
async fn leave<A: Waitable + Send + Sync + 'static>(limiter: Limiter<A, TokioClock>, weights: &[u64], due: &[u64]) {
    let past = TokioClock.now().get() % Nanos::from(10 * SECOND).get();
    tokio::time::advance(10 * SECOND - Duration::from_nanos(past)).await;
    let (shaper, edge) = (Arc::new(Shaper::over(limiter).build()), TokioClock.now());
    let (left, costs) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Costs::default()));
    let mut tasks = Vec::new();
    for (who, &n) in weights.iter().enumerate() {
        let (left, acquire) = (Arc::clone(&left), Watched::new(Arc::clone(&shaper).acquire_n_owned(n), &costs));
        tasks.push(tokio::spawn(async move {
            let permit = acquire.await.expect("granted");
            let after = TokioClock.now().saturating_since(edge);
            left.lock().unwrap().push((who, permit.permits(), after));
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    // Those who leave at one instant are granted in order; their tasks run as the timer wakes them.
    let mut left = left.lock().unwrap();
    left.sort_by_key(|&(who, _, after)| (after, who));
    assert_eq!(left.len(), due.len());
    for (index, (&(who, n, after), &due)) in left.iter().zip(due).enumerate() {
        let due = Duration::from_nanos(due);
        assert_eq!((who, n), (index, weights[index]), "in order: {left:?}");
        // tokio's timer counts whole milliseconds from the runtime's start. The edge lies at a fraction of one, and a paused clock
        // jumps by whole ones from where it stands: so it may pass the instant by the rest of one, and by that fraction.
        assert!(due <= after && after < due + 2 * MILLISECOND, "{who} after {after:?}, due after {due:?}");
    }
    // Of these weights none is told a place that is too early more than once.
    assert!(costs.polls() <= 3 * weights.len(), "{} polls", costs.polls());
}

const S: u64 = 1_000_000_000;

#[tokio::test(start_paused = true)]
async fn weights_leave_a_bucket_in_order_as_it_fills() {
    let bucket = TokenBucket::with_clock(Quota::per_second(1).burst(3), TokioClock);
    leave(bucket, &[2, 2, 1, 3, 1], &[0, S, 2 * S, 5 * S, 6 * S]).await;
}

#[tokio::test(start_paused = true)]
async fn weights_leave_a_fixed_window_in_order_at_its_edges() {
    let window = FixedWindow::with_clock(ten_seconds(3), TokioClock);
    leave(window, &[2, 2, 1, 3, 1, 2, 3], &[0, 10 * S, 10 * S, 20 * S, 30 * S, 30 * S, 40 * S]).await;
}

#[tokio::test(start_paused = true)]
async fn weights_leave_a_log_in_order_as_times_get_out_of_the_span() {
    let log = SlidingLog::with_clock(ten_seconds(3), TokioClock).unwrap();
    leave(log, &[2, 2, 1, 3, 1, 2, 3], &[0, 10 * S, 10 * S, 20 * S, 30 * S, 30 * S, 40 * S]).await;
}

#[tokio::test(start_paused = true)]
async fn weights_leave_a_sliding_counter_in_order_as_the_window_before_slides_out() {
    let counter = SlidingCounter::with_clock(ten_seconds(7), TokioClock).unwrap();
    // 7 * (10 - e) + 3 * 10 <= 7 * 10 for e >= 30/7; 3 * (10 - e) + 5 * 10 <= 7 * 10 for e >= 10/3; the last fits at an edge.
    leave(counter, &[6, 1, 3, 5, 2], &[0, 0, 14_285_714_286, 23_333_333_334, 30 * S]).await;
}
