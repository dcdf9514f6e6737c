//! A line in front of a sliding log, whose word tells how many were granted, and not when.

use std::time::Duration;

use loom::sync::Arc;
use tollgate::model::{Answer, Shaping};
use tollgate::{ManualClock, Quota, SlidingLog, SlidingLogLaw};

use crate::program::model_within;

/// One in every ten.
fn one_in_ten() -> Shaping<SlidingLogLaw> {
    let quota = Quota::new(1, Duration::from_nanos(10)).unwrap();
    Shaping::over(SlidingLog::with_clock(quota, ManualClock::new()).unwrap(), usize::MAX)
}

fn granted(answer: &Answer) -> bool {
    matches!(answer, Answer::Granted(_))
}

/// One is given back and granted anew, a little later, between the look of another and its exchange: the word is the same.
#[test]
fn a_grant_is_not_made_by_the_time_of_one_that_was_given_back() {
    model_within(3, || {
        let shaping = Arc::new(one_in_ten());
        let Answer::Granted(first) = shaping.try_acquire(1, 0) else { panic!("at rest") };
        let other = {
            let shaping = Arc::clone(&shaping);
            loom::thread::spawn(move || granted(&shaping.try_acquire(1, 10)))
        };
        shaping.give_back(first, 9);
        let anew = granted(&shaping.try_acquire(1, 9));
        assert!(!(other.join().unwrap() && anew), "two within ten");
    });
}

/// Who enters is told of the grant that comes before its place, whichever clock is ahead.
#[test]
fn who_enters_is_told_of_every_grant() {
    model_within(3, || {
        let shaping = Arc::new(one_in_ten());
        let passes = {
            let shaping = Arc::clone(&shaping);
            loom::thread::spawn(move || granted(&shaping.try_acquire(1, 10)))
        };
        let waker = || std::task::Waker::noop().clone();
        let (place, told) = match shaping.enter(1, 9, u64::MAX, waker()) {
            Answer::Granted(_) => {
                // Of 9, or as of 10 if the other was first; then it would have had to wait.
                assert!(!passes.join().unwrap());
                return;
            }
            Answer::Waits(place, until) => (place, until.get()),
            answer @ Answer::Refused(_) => panic!("{answer:?}"),
        };
        assert!(passes.join().unwrap());
        assert_eq!(told, 20);
        assert!(matches!(shaping.step(place, 19, waker()), Answer::Waits(..)));
        assert!(granted(&shaping.step(place, 20, waker())));
    });
}
