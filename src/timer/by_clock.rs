//! A sleep by a clock that need not be a timer's: what the two share is the span to wait.

use super::{RuntimeClock, Sleep, poll_thread};
use crate::clock::Clock;
use crate::time::Nanos;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll};

pin_project! {
    /// A [`Sleep`] that ends by any clock. A manual clock wakes it; for another one it rests as long as there is to wait, and
    /// looks at the clock again.
    #[derive(Debug)]
    pub(crate) struct SleepByClock {
        #[pin]
        sleep: Sleep,
        // What the runtime's timer was set to last.
        aim: Option<Aim>,
    }
}

/// An instant of the clock, and what stands for it on the clock of the runtime.
#[derive(Clone, Copy, Debug)]
struct Aim {
    until: Nanos,
    at: Nanos,
    /// How often the runtime's timer has rung for `until` in vain.
    in_vain: u32,
}

/// How often the runtime's timer may ring in vain for one instant, after which the timer thread is asked. Once is usual for a
/// clock that is a little slow or coarse. More is not: a paused runtime jumps from ring to ring while the clock stands.
const MOST_IN_VAIN: u32 = 1;

impl SleepByClock {
    pub(crate) const fn new() -> Self {
        Self { sleep: Sleep::new(), aim: None }
    }

    /// Is ready when `clock` has reached `until`, else wakes the task when it may have. [`Nanos::MAX`] is never reached. One
    /// sleep is always polled with the same clock.
    pub(crate) fn poll_until<C: Clock>(
        mut self: Pin<&mut Self>,
        clock: &C,
        until: Nanos,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        if until == Nanos::MAX {
            self.project().sleep.disarm();
            return Poll::Pending;
        }
        if let Some(clock) = clock.manual() {
            return self.project().sleep.poll_manual(clock, until, cx);
        }
        loop {
            let now = clock.now();
            if now >= until {
                return Poll::Ready(());
            }
            match self.as_mut().poll_in_runtime(now, until, cx) {
                Some(Poll::Pending) => return Poll::Pending,
                // It has just rung: look at the clock again.
                Some(Poll::Ready(())) => {}
                None => return poll_thread(self.project().sleep.project().alarm, until, now, cx),
            }
        }
    }

    /// Waits with the timer of the current runtime for as long as it is from `now` to `until`; `None` if it has none, or one that
    /// is out of step with the clock.
    fn poll_in_runtime(self: Pin<&mut Self>, now: Nanos, until: Nanos, cx: &mut Context<'_>) -> Option<Poll<()>> {
        let this = self.project();
        let mut sleep = this.sleep.project();
        let here = RuntimeClock.now();
        let mut in_vain = 0;
        if let Some(aim) = this.aim.filter(|aim| aim.until == until) {
            in_vain = aim.in_vain.saturating_add(u32::from(here >= aim.at));
        }
        // Told anew each time, since the task may be in another runtime, whose clock is another one.
        let at = here.saturating_add(until.saturating_since(now));
        *this.aim = Some(Aim { until, at, in_vain });
        if in_vain > MOST_IN_VAIN {
            return None;
        }
        let poll = sleep.runtime.as_mut().poll(at, cx)?;
        *sleep.alarm = None;
        Some(poll)
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "the numbers are small")]
mod tests {
    use super::*;
    use crate::clock::{DefaultClock, ManualClock, StdClock};
    use crate::timer::test_wakers::{Count, Unpark};
    use std::pin::pin;
    use std::task::Waker;
    use std::time::Duration;

    const MILLISECOND: Duration = Duration::from_millis(1);

    fn poll<C: Clock>(sleep: Pin<&mut SleepByClock>, clock: &C, until: Nanos, waker: &Waker) -> Poll<()> {
        sleep.poll_until(clock, until, &mut Context::from_waker(waker))
    }

    #[test]
    fn a_manual_clock_wakes_it_whoever_stands_for_it() {
        struct Mine(ManualClock);
        impl Clock for Mine {
            fn now(&self) -> Nanos {
                self.0.now()
            }
            fn manual(&self) -> Option<&ManualClock> {
                Some(&self.0)
            }
        }
        let (clock, count) = (ManualClock::new(), Count::new());
        let mine = Box::new(Mine(clock.clone()));
        let (mut sleep, mut other) = (pin!(SleepByClock::new()), pin!(SleepByClock::new()));
        let until = Nanos::new(10);
        assert!(poll(sleep.as_mut(), &clock, until, &count.waker()).is_pending());
        assert!(poll(other.as_mut(), &mine, until, &count.waker()).is_pending());
        clock.set(9_u64);
        assert_eq!(count.get(), 0);
        clock.set(10_u64);
        assert_eq!(count.get(), 2);
        assert!(poll(sleep.as_mut(), &clock, until, Waker::noop()).is_ready());
        assert!(poll(other.as_mut(), &mine, until, Waker::noop()).is_ready());
    }

    #[test]
    fn it_ends_on_any_clock_without_a_runtime() {
        fn wait(clock: &impl Clock) {
            let (mut sleep, unpark) = (pin!(SleepByClock::new()), Unpark::new());
            let until = clock.now().saturating_add(2 * MILLISECOND);
            while poll(sleep.as_mut(), clock, until, &unpark.waker()).is_pending() {
                assert!(clock.now() < until || sleep.sleep.alarm.is_some());
                unpark.wait();
            }
            assert!(clock.now() >= until);
        }
        wait(&DefaultClock);
        wait(&StdClock);
        #[cfg(feature = "tokio")]
        wait(&crate::clock::TokioClock);
    }

    #[test]
    fn the_last_instant_is_never_reached_and_nothing_rings() {
        let (clock, count, mut sleep) = (ManualClock::at(Nanos::MAX), Count::new(), pin!(SleepByClock::new()));
        assert!(poll(sleep.as_mut(), &clock, Nanos::MAX, &count.waker()).is_pending());
        assert!(poll(sleep.as_mut(), &DefaultClock, Nanos::MAX, &count.waker()).is_pending());
        assert!(sleep.sleep.alarm.is_none());
    }

    #[cfg(feature = "tokio")]
    mod in_tokio {
        use super::*;
        use crate::clock::TokioClock;
        use crate::timer::runtime::RuntimeSleep;
        use std::cell::Cell;
        use std::future::poll_fn;
        use tokio::runtime::{Builder, Runtime};

        /// Stands until it is set, and wakes nobody then.
        #[derive(Default)]
        struct Standing(Cell<u64>);

        impl Clock for Standing {
            fn now(&self) -> Nanos {
                Nanos::new(self.0.get())
            }
        }

        fn paused() -> Runtime {
            Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
        }

        fn in_runtime(runtime: &Runtime, sleep: Pin<&mut SleepByClock>, clock: &impl Clock, until: Nanos) -> Poll<()> {
            let _in_runtime = runtime.enter();
            poll(sleep, clock, until, Waker::noop())
        }

        #[test]
        fn tokios_clock_is_followed_to_the_millisecond_with_two_polls() {
            for (nanos, ends_at) in [(1, 1), (1_000_000, 1), (1_000_001, 2), (3_600_000_000_000, 3_600_000)] {
                paused().block_on(async {
                    let start = TokioClock.now();
                    let until = start.saturating_add(Duration::from_nanos(nanos));
                    let (mut sleep, mut polls) = (pin!(SleepByClock::new()), 0);
                    poll_fn(|cx| {
                        polls += 1;
                        sleep.as_mut().poll_until(&TokioClock, until, cx)
                    })
                    .await;
                    assert_eq!(polls, 2);
                    assert_eq!(TokioClock.now().saturating_since(start), Duration::from_millis(ends_at));
                });
            }
        }

        #[test]
        fn a_clock_that_is_slow_is_given_another_rest_by_the_same_timer() {
            paused().block_on(async {
                let (clock, start, until) = (Standing::default(), TokioClock.now(), Nanos::new(10_000_000));
                let mut sleep = pin!(SleepByClock::new());
                let mut rings = [9_999_000, 10_000_000].into_iter();
                poll_fn(|cx| {
                    let polled = sleep.as_mut().poll_until(&clock, until, cx);
                    assert!(sleep.sleep.alarm.is_none());
                    clock.0.set(rings.next().unwrap_or(u64::MAX));
                    polled
                })
                .await;
                assert_eq!(TokioClock.now().saturating_since(start), 11 * MILLISECOND);
            });
        }

        #[test]
        fn a_clock_that_stands_while_the_runtime_jumps_is_not_asked_without_a_rest() {
            paused().block_on(async {
                let (clock, start) = (Standing::default(), StdClock.now());
                let (mut sleep, mut polls) = (pin!(SleepByClock::new()), 0);
                poll_fn(|cx| {
                    polls += 1;
                    if polls == 8 {
                        clock.0.set(5);
                    }
                    sleep.as_mut().poll_until(&clock, Nanos::new(5), cx)
                })
                .await;
                // The runtime jumps twice. The first ring of the thread takes what there is to wait, the others a millisecond.
                assert!(StdClock.now().saturating_since(start) >= 4 * MILLISECOND);
            });
        }

        #[test]
        fn it_goes_on_in_another_runtime_whose_clock_is_another_one() {
            let (one, two) = (paused(), paused());
            one.block_on(tokio::time::advance(Duration::from_secs(3600)));
            let (clock, mut sleep) = (Standing::default(), pin!(SleepByClock::new()));
            let until = Nanos::from_secs(1);
            assert!(in_runtime(&one, sleep.as_mut(), &clock, until).is_pending());
            drop(one);
            two.block_on(async {
                let start = TokioClock.now();
                let mut polls = 0;
                poll_fn(|cx| {
                    polls += 1;
                    if polls == 2 {
                        clock.0.set(until.get());
                    }
                    sleep.as_mut().poll_until(&clock, until, cx)
                })
                .await;
                assert_eq!(TokioClock.now().saturating_since(start), Duration::from_secs(1));
            });
        }

        #[test]
        fn a_runtime_without_timers_leaves_it_to_the_thread_and_one_with_timers_takes_it_back() {
            let (without, with) = (Builder::new_current_thread().build().unwrap(), paused());
            let (clock, mut sleep, until) = (Standing::default(), pin!(SleepByClock::new()), Nanos::from_secs(3600));
            assert!(in_runtime(&without, sleep.as_mut(), &clock, until).is_pending());
            assert!(sleep.sleep.alarm.is_some());
            assert!(in_runtime(&with, sleep.as_mut(), &clock, until).is_pending());
            assert!(sleep.sleep.alarm.is_none());
            assert!(matches!(sleep.sleep.runtime, RuntimeSleep::Armed { .. }));
        }
    }
}
