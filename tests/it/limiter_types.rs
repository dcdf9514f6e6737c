//! What the types promise that a limiter is made of, and made from: where they may go, and that they can be shown.

use std::error::Error;
use std::fmt::Debug;

use tollgate::{
    CoarseClock, DefaultClock, FixedWindow, FixedWindowLaw, Gcra, LeakyBucket, LeakyQueue, LeakyQueueLaw,
    LimiterBuilder, ManualClock, Nanos, Quota, QuotaError, SlidingCounter, SlidingCounterLaw, SlidingLog,
    SlidingLogLaw, Snapshot, StdClock, Timer, TokenBucket,
};

const fn is_shared<T: Send + Sync + Unpin + Debug + 'static>() {}
const fn is_small_error<T: Copy + Error + Send + Sync + 'static>() {}

macro_rules! are_shared {
    ($($type:ty),* $(,)?) => {
        const _: () = {$(is_shared::<$type>();)*};
    };
}

are_shared!(TokenBucket, LeakyBucket, FixedWindow, SlidingCounter, SlidingLog, LeakyQueue);
are_shared!(
    LimiterBuilder<Gcra>,
    LimiterBuilder<FixedWindowLaw>,
    LimiterBuilder<SlidingCounterLaw>,
    LimiterBuilder<SlidingLogLaw>,
    LimiterBuilder<LeakyQueueLaw>,
);
are_shared!(DefaultClock, StdClock, CoarseClock, ManualClock, Timer, Nanos, Quota, Snapshot);

const _: () = is_small_error::<QuotaError>();

#[cfg(feature = "tokio")]
are_shared!(tollgate::TokioClock);

#[test]
fn a_limiter_of_any_law_can_be_shown_however_large() {
    let quota = Quota::per_minute(SlidingLog::MAX_LIMIT);
    let shown = [
        format!("{:?}", TokenBucket::new(quota)),
        format!("{:?}", FixedWindow::new(quota)),
        format!("{:?}", SlidingCounter::new(quota).unwrap()),
        format!("{:?}", SlidingLog::new(quota).unwrap()),
        format!("{:?}", LeakyQueue::new(quota)),
    ];
    for shown in shown {
        // Its words and a ring of a million times are left out.
        assert_eq!(shown, format!("Limiter {{ quota: {quota:?}, clock: DefaultClock, .. }}"));
    }
}
