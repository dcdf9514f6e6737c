//! What waits sleep on: tokio's timer, the timer thread, or a manual clock.

mod alarm;
mod alarms;
mod by_clock;
#[cfg_attr(not(feature = "tokio"), path = "no_runtime.rs")]
mod runtime;
#[cfg(test)]
mod test_wakers;
mod thread;
mod wake_list;

pub(crate) use self::alarms::{AlarmKey, Alarms};
pub(crate) use self::by_clock::SleepByClock;
pub(crate) use self::wake_list::{WakeList, contained};

use self::alarm::Alarm;
use self::runtime::RuntimeSleep;
#[cfg(not(feature = "tokio"))]
use crate::clock::StdClock as RuntimeClock;
#[cfg(feature = "tokio")]
use crate::clock::TokioClock as RuntimeClock;
use crate::clock::{Clock, ManualClock, StdClock};
use crate::time::Nanos;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// What a [`Shaper`](crate::Shaper) waits with: a clock, together with the way to be woken by it. Chosen by
/// [`ShaperBuilder::timer`](crate::ShaperBuilder::timer).
///
/// A permit is never early on the timer's clock, and is late by up to its grain, more on a busy machine. All of them deliver the configured rate,
/// since the schedule does not move when a timer is late; what differs is how evenly the permits leave.
///
/// | | clock | grain | cost | choose it |
/// |---|---|---|---|---|
/// | `Runtime` | `TokioClock` in tokio, else [`StdClock`] | tokio: the next whole millisecond, else as `Precise` | tokio's timer, no thread | as a rule |
/// | `Precise` | [`StdClock`] | the operating system's, some 50 µs | a wake-up of the shared thread per permit | where permits must not bunch though T is a few milliseconds or less |
/// | `Manual` | the [`ManualClock`] | none | none | in tests |
///
/// # The timer thread
///
/// All tasks of the process that need one share one thread, called `tollgate-timer`. It is started by the first such wait and
/// ends a second after the last one has ended; a shaper on which nobody waits has none. If the system gives no thread, waits are
/// polled without a rest until it does: that costs a processor, and no wait is lost. Threads that wait
/// ([`acquire_blocking`](crate::Shaper::acquire_blocking)) time their own sleep, and need none.
///
/// # Examples
///
#[cfg_attr(feature = "tokio", doc = "```")]
#[cfg_attr(not(feature = "tokio"), doc = "```ignore")]
/// use std::time::Instant;
/// use tollgate::{Quota, Shaper, Timer};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), tollgate::Refused> {
/// let shaper = Shaper::builder(Quota::per_second(5_000)).timer(Timer::Precise).build();
/// let start = Instant::now();
/// for _ in 0..6 {
///     let _permit = shaper.acquire().await?; // one every 200 µs, not five a millisecond
/// }
/// println!("six permits in {:?}", start.elapsed());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Timer {
    /// tokio's clock and timer inside a runtime that has them, its paused clock included; elsewhere the monotonic clock and
    /// the timer thread. The default.
    ///
    /// tokio's timer ends a sleep at the next whole millisecond, so at more than some hundred permits per second they leave in
    /// bunches, one a millisecond.
    Runtime,
    /// The monotonic clock, [`StdClock`], and the timer thread, inside a tokio runtime too.
    ///
    /// Each permit is woken for by itself, late by what the operating system takes to wake a thread and then the task: mostly
    /// well below 100 µs, more on a busy machine. Each costs a wake-up of the thread, two with a single waiter; see
    /// `cargo bench --bench pace` for what that is on your machine. A paused tokio clock is not followed.
    ///
    /// Permits are granted in the order of the line, as with every timer. Tasks whose permits are due together are woken from two
    /// threads then, and a runtime may run them in another order.
    Precise,
    /// A clock that is moved by hand and wakes those who are due, on the thread that moves it: for deterministic tests, without
    /// a runtime. [`ShaperBuilder::clock`](crate::ShaperBuilder::clock) is its short form.
    Manual(ManualClock),
}

impl Timer {
    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        match self {
            Self::Runtime => RuntimeClock.now(),
            Self::Precise => StdClock.now(),
            Self::Manual(clock) => clock.now(),
        }
    }
}

pin_project! {
    /// A sleep that can be set again and again, in whatever runtime it is polled. Dropping it leaves nothing behind.
    #[derive(Debug)]
    pub(crate) struct Sleep {
        // Set on a manual clock, or with the timer thread where the runtime offers no timer.
        alarm: Option<SetAlarm>,
        #[pin]
        runtime: RuntimeSleep,
    }
}

/// An alarm and the instant of the timer's clock for which it was set.
#[derive(Debug)]
struct SetAlarm {
    until: Nanos,
    alarm: Alarm,
}

/// How long a sleep waits at least that rang before its clock was there.
///
/// It happens only where the clock and what rings are not in step, such as a paused clock in a runtime without timers.
const OUT_OF_STEP: Duration = Duration::from_millis(1);

impl Sleep {
    pub(crate) const fn new() -> Self {
        Self { alarm: None, runtime: RuntimeSleep::Unarmed }
    }

    /// Is ready when the clock of `timer` has reached `until`, else wakes the task when it does. [`Nanos::MAX`] is never
    /// reached. One sleep is always polled with the same timer.
    pub(crate) fn poll_until(self: Pin<&mut Self>, timer: &Timer, until: Nanos, cx: &mut Context<'_>) -> Poll<()> {
        if until == Nanos::MAX {
            self.disarm();
            return Poll::Pending;
        }
        match timer {
            Timer::Runtime => self.poll_runtime(until, cx),
            Timer::Precise => self.poll_precise(until, cx),
            Timer::Manual(clock) => self.poll_manual(clock, until, cx),
        }
    }

    /// What a thread does that waits, where a task polls: sees to it that `waker` is woken when somebody moves the clock, and
    /// says how long the thread may rest unless it is woken; not at all if the clock of `timer` has reached `until`. After a full
    /// rest for the same instant, which was `in_vain`, it is not too short a rest again.
    ///
    /// A clock that runs needs no alarm, since whoever rests can count the time himself. So does a thread of a runtime: it may be
    /// the one that would have to move the runtime's timers.
    pub(crate) fn rest_until(
        mut self: Pin<&mut Self>,
        timer: &Timer,
        until: Nanos,
        in_vain: bool,
        waker: &Waker,
    ) -> Duration {
        let cx = &mut Context::from_waker(waker);
        match timer {
            Timer::Runtime if until < Nanos::MAX => {
                let poll = runtime::poll_without_budget(|cx| self.as_mut().poll_in_runtime(until, cx), cx);
                let rest = until.saturating_since(RuntimeClock.now());
                match poll {
                    Some(Poll::Ready(())) => Duration::ZERO,
                    Some(Poll::Pending) | None if in_vain && !rest.is_zero() => rest.max(OUT_OF_STEP),
                    Some(Poll::Pending) | None => rest,
                }
            }
            Timer::Precise if until < Nanos::MAX => until.saturating_since(StdClock.now()),
            Timer::Runtime | Timer::Precise | Timer::Manual(_) => match self.poll_until(timer, until, cx) {
                Poll::Ready(()) => Duration::ZERO,
                Poll::Pending => Duration::MAX,
            },
        }
    }

    fn disarm(self: Pin<&mut Self>) {
        let mut this = self.project();
        *this.alarm = None;
        this.runtime.set(RuntimeSleep::Unarmed);
    }

    fn poll_runtime(mut self: Pin<&mut Self>, until: Nanos, cx: &mut Context<'_>) -> Poll<()> {
        let in_runtime = self.as_mut().poll_in_runtime(until, cx);
        in_runtime.unwrap_or_else(|| poll_thread(self.project().alarm, until, RuntimeClock.now(), cx))
    }

    /// Waits with the timer of the current runtime; `None` if there is no such timer and the time is not there.
    fn poll_in_runtime(self: Pin<&mut Self>, until: Nanos, cx: &mut Context<'_>) -> Option<Poll<()>> {
        let mut this = self.project();
        let mut at = until;
        loop {
            let now = RuntimeClock.now();
            if now >= until {
                return Some(Poll::Ready(()));
            }
            match this.runtime.as_mut().poll(at, cx)? {
                Poll::Pending => {
                    *this.alarm = None;
                    return Some(Poll::Pending);
                }
                // Seldom more than once: it is for the clock to say whether the time is there.
                Poll::Ready(()) => at = until.max(now.saturating_add(OUT_OF_STEP)),
            }
        }
    }

    fn poll_precise(self: Pin<&mut Self>, until: Nanos, cx: &mut Context<'_>) -> Poll<()> {
        if StdClock.now() >= until {
            return Poll::Ready(());
        }
        let set = self.project().alarm;
        if set.as_ref().is_some_and(|set| set.until == until && set.alarm.keep_for(cx.waker())) {
            return Poll::Pending;
        }
        let alarm = Alarm::on_thread(&thread::SHARED, until, cx.waker().clone());
        *set = Some(SetAlarm { until, alarm });
        Poll::Pending
    }

    fn poll_manual(self: Pin<&mut Self>, clock: &ManualClock, until: Nanos, cx: &mut Context<'_>) -> Poll<()> {
        if clock.now() >= until {
            return Poll::Ready(());
        }
        let set = self.project().alarm;
        if set.as_ref().is_some_and(|set| set.until == until && set.alarm.keep_for(cx.waker())) {
            return Poll::Pending;
        }
        *set = Alarm::on_clock(clock, until, cx.waker().clone()).map(|alarm| SetAlarm { until, alarm });
        // No alarm: the clock got there after all, between the look at it above and now.
        if set.is_some() { Poll::Pending } else { Poll::Ready(()) }
    }
}

/// Waits with the timer thread until a clock that is at `now` is at `until`.
fn poll_thread(set: &mut Option<SetAlarm>, until: Nanos, now: Nanos, cx: &mut Context<'_>) -> Poll<()> {
    let mut wait = until.saturating_since(now);
    if let Some(set) = set.as_ref().filter(|set| set.until == until) {
        if set.alarm.keep_for(cx.waker()) {
            return Poll::Pending;
        }
        wait = wait.max(OUT_OF_STEP);
    }
    // The thread's clock has another origin, and a paused one another pace: what they share is the span to wait.
    let at = StdClock.now().saturating_add(wait);
    *set = Some(SetAlarm { until, alarm: Alarm::on_thread(&thread::SHARED, at, cx.waker().clone()) });
    Poll::Pending
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "the numbers are small")]
mod tests {
    use super::test_wakers::{Count, Log, PanicOnWake, Unpark};
    use super::*;
    use std::future::{Future, poll_fn};
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::Wake;

    /// Polls `sleep` once.
    fn poll(sleep: Pin<&mut Sleep>, timer: &Timer, until: Nanos, waker: &Waker) -> Poll<()> {
        sleep.poll_until(timer, until, &mut Context::from_waker(waker))
    }

    /// Sleeps until `until`, and counts the polls that it takes.
    async fn sleep_until(timer: &Timer, until: Nanos) -> u32 {
        let mut sleep = pin!(Sleep::new());
        let mut polls = 0;
        poll_fn(|cx| {
            polls += 1;
            sleep.as_mut().poll_until(timer, until, cx)
        })
        .await;
        polls
    }

    /// Runs `future` on this thread, outside any runtime.
    fn block_on<F: Future>(future: F) -> F::Output {
        let (mut future, unpark) = (pin!(future), Unpark::new());
        loop {
            match future.as_mut().poll(&mut Context::from_waker(&unpark.waker())) {
                Poll::Ready(output) => return output,
                Poll::Pending => unpark.wait(),
            }
        }
    }

    fn soon(timer: &Timer) -> Nanos {
        timer.now().saturating_add(Duration::from_millis(2))
    }

    #[test]
    fn a_sleep_can_go_to_any_thread() {
        fn is<T: Send + Sync>() {}
        is::<Sleep>();
        is::<Timer>();
    }

    mod manual {
        use super::*;

        fn at(now: u64) -> (ManualClock, Timer) {
            let clock = ManualClock::at(now);
            (clock.clone(), Timer::Manual(clock))
        }

        fn is_unset(clock: &ManualClock) -> bool {
            clock.with_alarms(|alarms| alarms.is_empty())
        }

        #[test]
        fn a_sleep_ends_at_its_instant_and_not_before() {
            let (clock, timer) = at(0);
            let (count, mut sleep) = (Count::new(), pin!(Sleep::new()));
            let until = Nanos::new(10);
            assert!(poll(sleep.as_mut(), &timer, until, &count.waker()).is_pending());
            clock.set(9_u64);
            assert_eq!(count.get(), 0);
            assert!(poll(sleep.as_mut(), &timer, until, &count.waker()).is_pending());
            clock.advance(Duration::from_nanos(1));
            assert_eq!(count.get(), 1);
            assert!(poll(sleep.as_mut(), &timer, until, &count.waker()).is_ready());
        }

        #[test]
        fn a_time_that_is_there_needs_no_alarm() {
            let (clock, timer) = at(10);
            for until in [0, 9, 10] {
                assert!(poll(pin!(Sleep::new()), &timer, Nanos::new(until), Waker::noop()).is_ready());
            }
            assert!(is_unset(&clock));
        }

        #[test]
        fn the_last_instant_is_never_reached_and_sets_no_alarm() {
            let (clock, timer) = at(0);
            let mut sleep = pin!(Sleep::new());
            assert!(poll(sleep.as_mut(), &timer, Nanos::new(5), Waker::noop()).is_pending());
            assert!(poll(sleep.as_mut(), &timer, Nanos::MAX, Waker::noop()).is_pending());
            assert!(is_unset(&clock));
            clock.set(Nanos::MAX);
            assert!(poll(sleep.as_mut(), &timer, Nanos::MAX, Waker::noop()).is_pending());
        }

        #[test]
        fn a_thread_rests_until_the_clock_is_moved() {
            let (clock, timer) = at(0);
            let (count, mut sleep) = (Count::new(), pin!(Sleep::new()));
            let mut rest = |until| sleep.as_mut().rest_until(&timer, Nanos::new(until), false, &count.waker());
            assert_eq!(
                (rest(0), rest(10), rest(u64::MAX), rest(5)),
                (Duration::ZERO, Duration::MAX, Duration::MAX, Duration::MAX)
            );
            clock.set(5_u64);
            assert_eq!((count.get(), rest(5)), (1, Duration::ZERO));
        }

        #[test]
        fn a_dropped_sleep_takes_its_alarm_along() {
            let (clock, timer) = at(0);
            {
                assert!(poll(pin!(Sleep::new()), &timer, Nanos::new(5), Waker::noop()).is_pending());
            }
            assert!(is_unset(&clock));
        }

        #[test]
        fn another_instant_takes_the_place_of_the_one_before() {
            let (clock, timer) = at(0);
            let (count, mut sleep) = (Count::new(), pin!(Sleep::new()));
            for until in [20, 10, 30] {
                assert!(poll(sleep.as_mut(), &timer, Nanos::new(until), &count.waker()).is_pending());
            }
            clock.set(29_u64);
            assert_eq!(count.get(), 0);
            clock.set(30_u64);
            assert_eq!(count.get(), 1);
        }

        #[test]
        fn the_waker_of_the_last_poll_is_woken() {
            let (clock, timer) = at(0);
            let (first, last, mut sleep) = (Count::new(), Count::new(), pin!(Sleep::new()));
            assert!(poll(sleep.as_mut(), &timer, Nanos::new(5), &first.waker()).is_pending());
            assert!(poll(sleep.as_mut(), &timer, Nanos::new(5), &last.waker()).is_pending());
            clock.set(5_u64);
            assert_eq!((first.get(), last.get()), (0, 1));
        }

        #[test]
        fn a_clock_set_back_wakes_again_when_it_comes_back() {
            let (clock, timer) = at(0);
            let (count, mut sleep) = (Count::new(), pin!(Sleep::new()));
            let until = Nanos::new(10);
            assert!(poll(sleep.as_mut(), &timer, until, &count.waker()).is_pending());
            // Rung, and back before the poll: the poll sets the alarm anew.
            clock.set(10_u64);
            clock.set(3_u64);
            assert!(poll(sleep.as_mut(), &timer, until, &count.waker()).is_pending());
            clock.set(10_u64);
            assert_eq!(count.get(), 2);
            assert!(poll(sleep.as_mut(), &timer, until, &count.waker()).is_ready());
        }

        #[test]
        fn the_waits_that_are_due_are_woken_in_order() {
            let (clock, timer) = at(0);
            let (log, mut one, mut two, mut three) =
                (Log::new(), pin!(Sleep::new()), pin!(Sleep::new()), pin!(Sleep::new()));
            assert!(poll(two.as_mut(), &timer, Nanos::new(2), &log.waker("two")).is_pending());
            assert!(poll(three.as_mut(), &timer, Nanos::new(3), &log.waker("three")).is_pending());
            assert!(poll(one.as_mut(), &timer, Nanos::new(1), &log.waker("one")).is_pending());
            clock.set(2_u64);
            assert_eq!(log.get(), ["one", "two"]);
        }

        #[test]
        fn a_waker_that_panics_does_not_keep_the_others_from_being_woken() {
            let (clock, timer) = at(0);
            let (count, mut one, mut two) = (Count::new(), pin!(Sleep::new()), pin!(Sleep::new()));
            assert!(poll(one.as_mut(), &timer, Nanos::new(1), &PanicOnWake::waker()).is_pending());
            assert!(poll(two.as_mut(), &timer, Nanos::new(1), &count.waker()).is_pending());
            clock.set(1_u64);
            assert_eq!((count.get(), clock.now()), (1, Nanos::new(1)));
        }

        /// Moves its clock when it is woken and when it is dropped: a deadlock if the clock's lock is held then.
        struct Mover(ManualClock);

        impl Wake for Mover {
            fn wake(self: Arc<Self>) {
                self.0.advance(Duration::from_nanos(1));
            }
        }

        impl Drop for Mover {
            fn drop(&mut self) {
                self.0.advance(Duration::from_nanos(1));
            }
        }

        #[test]
        fn wakers_are_woken_and_dropped_outside_the_lock() {
            let (clock, timer) = at(0);
            let mover = || Waker::from(Arc::new(Mover(clock.clone())));
            let until = Nanos::from_secs(1);
            {
                let mut sleep = pin!(Sleep::new());
                // Replaced: the alarm drops the last handle of the first waker. Then the sleep that of the second.
                assert!(poll(sleep.as_mut(), &timer, until, &mover()).is_pending());
                assert!(poll(sleep.as_mut(), &timer, until, &mover()).is_pending());
                assert_eq!(clock.now(), Nanos::new(1));
            }
            assert_eq!(clock.now(), Nanos::new(2));
            assert!(poll(pin!(Sleep::new()), &timer, Nanos::ZERO, Waker::noop()).is_ready());
            let mut sleep = pin!(Sleep::new());
            assert!(poll(sleep.as_mut(), &timer, until, &mover()).is_pending());
            clock.set(until);
            assert_eq!(clock.now(), Nanos::new(1_000_000_002));
            assert!(clock.set_alarm(until, mover()).is_none());
        }

        #[test]
        fn a_move_in_another_thread_is_never_missed() {
            for _ in 0..1_000 {
                let (clock, timer) = at(0);
                let mover = std::thread::spawn(move || clock.set(1_u64));
                block_on(sleep_until(&timer, Nanos::new(1)));
                mover.join().unwrap();
            }
        }
    }

    /// The timer thread: for waits outside a runtime, and where it was chosen.
    mod thread {
        use super::*;

        const TIMERS: [Timer; 2] = [Timer::Runtime, Timer::Precise];

        #[test]
        fn a_sleep_ends_when_its_time_is_there() {
            for timer in TIMERS {
                let until = soon(&timer);
                assert!(block_on(sleep_until(&timer, until)) >= 2, "{timer:?}");
                assert!(timer.now() >= until, "{timer:?}");
            }
        }

        #[test]
        fn a_dropped_sleep_takes_its_alarm_along() {
            for timer in TIMERS {
                let count = Count::new();
                let waker = count.waker();
                let mut far = Box::pin(Sleep::new());
                let until = timer.now().saturating_add(Duration::from_secs(100 * 365 * 24 * 60 * 60));
                assert!(poll(far.as_mut(), &timer, until, &waker).is_pending());
                assert_eq!(Arc::strong_count(&count), 3, "{timer:?}");
                drop(far);
                assert_eq!(Arc::strong_count(&count), 2, "{timer:?}");
            }
        }

        #[test]
        fn a_thread_rests_by_itself_and_sets_no_alarm() {
            for timer in TIMERS {
                let (count, mut sleep) = (Count::new(), pin!(Sleep::new()));
                let waker = count.waker();
                let mut rest = |until| sleep.as_mut().rest_until(&timer, until, false, &waker);
                let (hour, now) = (Duration::from_secs(3600), timer.now());
                let rested = rest(now.saturating_add(hour));
                assert!(rested > Duration::ZERO && rested <= hour, "{timer:?}");
                assert_eq!((rest(now), rest(Nanos::MAX)), (Duration::ZERO, Duration::MAX), "{timer:?}");
                assert_eq!(Arc::strong_count(&count), 2, "{timer:?}");
            }
        }

        #[test]
        fn far_instants_are_ordinary_ones() {
            for timer in TIMERS {
                let mut sleep = pin!(Sleep::new());
                for until in [Nanos::new(u64::MAX - 1), Nanos::from_secs(1 << 34), soon(&timer)] {
                    assert!(poll(sleep.as_mut(), &timer, until, Waker::noop()).is_pending(), "{timer:?}");
                }
                assert!(poll(sleep.as_mut(), &timer, Nanos::MAX, Waker::noop()).is_pending(), "{timer:?}");
            }
        }

        #[test]
        fn a_time_that_is_there_needs_no_alarm() {
            for timer in TIMERS {
                let mut sleep = pin!(Sleep::new());
                assert!(poll(sleep.as_mut(), &timer, timer.now(), Waker::noop()).is_ready(), "{timer:?}");
                assert!(sleep.alarm.is_none(), "{timer:?}");
            }
        }

        #[test]
        fn another_instant_or_waker_takes_the_place_of_the_one_before() {
            for timer in TIMERS {
                let (first, second, last, mut sleep) = (Count::new(), Count::new(), Unpark::new(), pin!(Sleep::new()));
                let far = timer.now().saturating_add(Duration::from_secs(3_600));
                assert!(poll(sleep.as_mut(), &timer, far, &first.waker()).is_pending());
                assert!(poll(sleep.as_mut(), &timer, far, &second.waker()).is_pending());
                assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (1, 2), "{timer:?}");
                let until = soon(&timer);
                while poll(sleep.as_mut(), &timer, until, &last.waker()).is_pending() {
                    last.wait();
                }
                assert!(timer.now() >= until, "{timer:?}");
                assert_eq!((first.get(), second.get()), (0, 0), "{timer:?}");
            }
        }
    }

    #[cfg(feature = "tokio")]
    mod in_tokio {
        use super::*;
        use std::cell::Cell;
        use std::sync::Once;
        use tokio::runtime::{Builder, Runtime};

        const TIMER: Timer = Timer::Runtime;
        const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

        fn paused() -> Runtime {
            Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
        }

        fn without_timers() -> Runtime {
            Builder::new_current_thread().build().unwrap()
        }

        /// Polls `sleep` once in `runtime`.
        fn poll_in(runtime: &Runtime, sleep: Pin<&mut Sleep>, until: Nanos) -> Poll<()> {
            let _in_runtime = runtime.enter();
            poll(sleep, &TIMER, until, Waker::noop())
        }

        /// Counts the panics of this thread from here on, contained ones too.
        fn count_panics() -> impl Fn() -> u32 {
            thread_local!(static PANICS: Cell<u32> = const { Cell::new(0) });
            static HOOK: Once = Once::new();
            HOOK.call_once(|| {
                let report = std::panic::take_hook();
                std::panic::set_hook(Box::new(move |info| {
                    PANICS.set(PANICS.get() + 1);
                    report(info);
                }));
            });
            PANICS.set(0);
            || PANICS.get()
        }

        #[test]
        fn a_sleep_ends_on_the_next_whole_millisecond_of_a_paused_clock() {
            for (nanos, ends_at) in
                [(1, 1), (999_999, 1), (1_000_000, 1), (1_000_001, 2), (3_600_000_000_000, 3_600_000)]
            {
                paused().block_on(async {
                    let start = TIMER.now();
                    assert_eq!(sleep_until(&TIMER, start.saturating_add(Duration::from_nanos(nanos))).await, 2);
                    assert_eq!(TIMER.now().saturating_since(start), Duration::from_millis(ends_at));
                });
            }
        }

        #[test]
        fn an_advance_wakes_it() {
            paused().block_on(async {
                let until = TIMER.now().saturating_add(Duration::from_secs(1));
                let (count, mut sleep) = (Count::new(), pin!(Sleep::new()));
                assert!(poll(sleep.as_mut(), &TIMER, until, &count.waker()).is_pending());
                tokio::time::advance(Duration::from_nanos(999_999_999)).await;
                assert_eq!(count.get(), 0);
                assert!(poll(sleep.as_mut(), &TIMER, until, &count.waker()).is_pending());
                tokio::time::advance(Duration::from_nanos(1)).await;
                tokio::task::yield_now().await;
                assert_eq!(count.get(), 1);
                assert!(poll(sleep.as_mut(), &TIMER, until, &count.waker()).is_ready());
            });
        }

        #[test]
        fn another_instant_takes_the_place_of_the_one_before() {
            paused().block_on(async {
                let start = TIMER.now();
                let mut sleep = pin!(Sleep::new());
                for millis in [20, 10, 30] {
                    let until = start.saturating_add(Duration::from_millis(millis));
                    assert!(poll(sleep.as_mut(), &TIMER, until, Waker::noop()).is_pending());
                }
                poll_fn(|cx| sleep.as_mut().poll_until(&TIMER, start.saturating_add(Duration::from_millis(30)), cx))
                    .await;
                assert_eq!(TIMER.now().saturating_since(start), Duration::from_millis(30));
                // And it can be set again after its end.
                poll_fn(|cx| sleep.as_mut().poll_until(&TIMER, start.saturating_add(Duration::from_millis(40)), cx))
                    .await;
                assert_eq!(TIMER.now().saturating_since(start), Duration::from_millis(40));
            });
        }

        #[test]
        fn a_timer_that_rings_too_early_is_set_again() {
            paused().block_on(async {
                let start = TIMER.now();
                let until = start.saturating_add(YEAR);
                // As after the first stretch of a wait whose end has no name on this platform.
                let early = tokio::time::sleep(Duration::from_secs(1));
                let runtime = tokio::runtime::Handle::current().id();
                let runtime = RuntimeSleep::Armed { runtime, at: Some(until), sleep: early };
                let mut sleep = pin!(Sleep { alarm: None, runtime });
                poll_fn(|cx| sleep.as_mut().poll_until(&TIMER, until, cx)).await;
                assert_eq!(TIMER.now().saturating_since(start), YEAR);
            });
        }

        #[test]
        fn an_advance_wakes_a_thread_that_rests() {
            paused().block_on(async {
                let until = TIMER.now().saturating_add(Duration::from_secs(1));
                let (count, mut sleep) = (Count::new(), pin!(Sleep::new()));
                let mut rest = |in_vain| sleep.as_mut().rest_until(&TIMER, until, in_vain, &count.waker());
                assert_eq!(rest(false), Duration::from_secs(1));
                tokio::time::advance(Duration::from_nanos(999_999_999)).await;
                // The clock stands, however long the thread has rested.
                assert_eq!((count.get(), rest(false), rest(true)), (0, Duration::from_nanos(1), OUT_OF_STEP));
                tokio::time::advance(Duration::from_nanos(1)).await;
                tokio::task::yield_now().await;
                assert_eq!((count.get(), rest(true)), (1, Duration::ZERO));
            });
        }

        #[test]
        fn a_thread_rests_in_a_task_whose_budget_is_spent() {
            use tokio::task::coop::{has_budget_remaining, poll_proceed};
            paused().block_on(async {
                let (count, mut sleep) = (Count::new(), pin!(Sleep::new()));
                let until = TIMER.now().saturating_add(YEAR);
                poll_fn(|cx| {
                    while has_budget_remaining() {
                        let _ = poll_proceed(cx).map(|budget| budget.made_progress());
                    }
                    assert_eq!(sleep.as_mut().rest_until(&TIMER, until, false, &count.waker()), YEAR);
                    Poll::Ready(())
                })
                .await;
                // Were it polled as a task is, it would be woken to be polled again.
                tokio::task::yield_now().await;
                assert_eq!(count.get(), 0);
                tokio::time::advance(YEAR).await;
                tokio::task::yield_now().await;
                assert_eq!(count.get(), 1);
            });
        }

        #[test]
        fn years_are_waited_for() {
            for years in [1, 3, 5, 100] {
                paused().block_on(async {
                    let start = TIMER.now();
                    sleep_until(&TIMER, start.saturating_add(years * YEAR)).await;
                    assert_eq!(TIMER.now().saturating_since(start), years * YEAR);
                });
            }
        }

        #[test]
        fn the_ends_of_time_set_no_trap() {
            paused().block_on(async {
                let mut sleep = pin!(Sleep::new());
                for until in [u64::MAX - 1, u64::MAX, u64::MAX - 2] {
                    assert!(poll(sleep.as_mut(), &TIMER, Nanos::new(until), Waker::noop()).is_pending());
                }
                assert!(poll(sleep.as_mut(), &TIMER, Nanos::ZERO, Waker::noop()).is_ready());
            });
        }

        #[test]
        fn a_sleep_goes_on_in_another_runtime() {
            let (one, two) = (paused(), paused());
            let mut sleep = pin!(Sleep::new());
            let until = two.block_on(async { TIMER.now() }).saturating_add(Duration::from_secs(1));
            assert!(poll_in(&one, sleep.as_mut(), until).is_pending());
            two.block_on(poll_fn(|cx| sleep.as_mut().poll_until(&TIMER, until, cx)));
            assert!(two.block_on(async { TIMER.now() }) >= until);
            assert!(poll_in(&one, sleep.as_mut(), until).is_pending());
        }

        #[test]
        fn a_sleep_outlives_its_runtime() {
            let (one, two) = (paused(), paused());
            let mut sleep = pin!(Sleep::new());
            let until = two.block_on(async { TIMER.now() }).saturating_add(Duration::from_secs(1));
            assert!(poll_in(&one, sleep.as_mut(), until).is_pending());
            drop(one);
            two.block_on(poll_fn(|cx| sleep.as_mut().poll_until(&TIMER, until, cx)));
            // And one that is armed in a runtime that is gone is dropped without a sound.
            assert!(poll_in(&two, sleep.as_mut(), until.saturating_add(YEAR)).is_pending());
            drop(two);
        }

        #[test]
        fn a_sleep_that_leaves_its_runtime_goes_on_outside() {
            let runtime = Builder::new_current_thread().enable_time().build().unwrap();
            let mut sleep = pin!(Sleep::new());
            let until = soon(&TIMER);
            assert!(poll_in(&runtime, sleep.as_mut(), until).is_pending());
            block_on(poll_fn(|cx| sleep.as_mut().poll_until(&TIMER, until, cx)));
            assert!(TIMER.now() >= until);
        }

        #[test]
        fn a_sleep_goes_on_after_the_shutdown_of_the_current_runtime() {
            let runtime = Builder::new_current_thread().enable_time().build().unwrap();
            let handle = runtime.handle().clone();
            let (mut armed, far) = (pin!(Sleep::new()), TIMER.now().saturating_add(YEAR));
            assert!(poll_in(&runtime, armed.as_mut(), far).is_pending());
            drop(runtime);
            let _in_runtime = handle.enter();
            let panics = count_panics();
            for _ in 0..3 {
                assert!(poll(armed.as_mut(), &TIMER, far, Waker::noop()).is_pending());
            }
            assert_eq!(panics(), 1);
            let until = soon(&TIMER);
            block_on(poll_fn(|cx| armed.as_mut().poll_until(&TIMER, until, cx)));
            assert!(TIMER.now() >= until);
            block_on(sleep_until(&TIMER, soon(&TIMER)));
        }

        #[test]
        fn a_runtime_without_timers_uses_the_thread() {
            let panics = count_panics();
            let runtime = without_timers();
            for _ in 0..3 {
                runtime.block_on(async {
                    let until = soon(&TIMER);
                    sleep_until(&TIMER, until).await;
                    assert!(TIMER.now() >= until);
                });
            }
            assert_eq!(panics(), 1);
        }

        #[test]
        fn a_sleep_asks_a_runtime_without_timers_once() {
            let panics = count_panics();
            let (one, two) = (without_timers(), without_timers());
            let mut sleeps = [pin!(Sleep::new()), pin!(Sleep::new())];
            let until = TIMER.now().saturating_add(YEAR);
            for _ in 0..3 {
                assert!(poll_in(&one, sleeps[0].as_mut(), until).is_pending());
                assert!(poll_in(&two, sleeps[1].as_mut(), until).is_pending());
            }
            assert_eq!(panics(), 2);
        }

        #[test]
        fn a_paused_clock_without_timers_is_not_polled_without_a_rest() {
            let runtime = Builder::new_current_thread().start_paused(true).build().unwrap();
            let (count, mut sleep) = (Unpark::new(), pin!(Sleep::new()));
            let _in_runtime = runtime.enter();
            let until = TIMER.now().saturating_add(Duration::from_nanos(1));
            // The clock stands, so the wait does not end; after the first ring each one takes a millisecond.
            for shortest in [Duration::ZERO, OUT_OF_STEP, OUT_OF_STEP, OUT_OF_STEP, OUT_OF_STEP] {
                let start = StdClock.now();
                assert!(poll(sleep.as_mut(), &TIMER, until, &count.waker()).is_pending());
                count.wait();
                assert!(StdClock.now().saturating_since(start) >= shortest);
            }
            runtime.block_on(tokio::time::advance(Duration::from_nanos(1)));
            assert!(poll(sleep.as_mut(), &TIMER, until, &count.waker()).is_ready());
        }

        #[test]
        fn the_precise_timer_does_not_follow_a_paused_clock() {
            let runtime = paused();
            let _in_runtime = runtime.enter();
            let (woken, mut sleep) = (Unpark::new(), pin!(Sleep::new()));
            let until = soon(&Timer::Precise);
            runtime.block_on(tokio::time::advance(YEAR));
            while poll(sleep.as_mut(), &Timer::Precise, until, &woken.waker()).is_pending() {
                woken.wait();
            }
            assert!(StdClock.now() >= until);
            assert!(StdClock.now() < until.saturating_add(YEAR));
            assert!(matches!(sleep.runtime, RuntimeSleep::Unarmed));
        }

        #[test]
        fn a_multi_threaded_runtime_wakes_on_its_own_clock() {
            let runtime = Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
            runtime.block_on(async {
                let until = soon(&TIMER);
                sleep_until(&TIMER, until).await;
                assert!(TIMER.now() >= until);
            });
        }
    }
}
