//! The timer thread: for waits outside a runtime, in one without timers, and where it was chosen.

use super::{AlarmKey, Alarms, WakeList};
use crate::clock::{Clock, StdClock};
use crate::time::Nanos;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::io;
use std::task::Waker;
use std::time::Duration;

/// The one timer thread of the process.
pub(super) static SHARED: TimerThread = TimerThread::new(spawn, Duration::from_secs(1));

/// A thread that rings alarms by [`StdClock`]. It is started by the first alarm and ends some time after the last.
///
/// # No alarm is lost between the end of a thread and the start of the next
///
/// `running` says that a thread is there or about to be started by somebody. It is read and written under the lock of the
/// alarms only, by three parties:
///
/// - `set_alarm` inserts its alarm and, if `running` is false, sets it and starts a thread afterwards.
/// - The thread sets it to false only when it sees no alarm, and from then on touches nothing.
/// - A failed start sets it to false and takes all alarms out, to wake them.
///
/// So whenever the lock is free: if an alarm is set, `running` is true. Whichever of an end and a new alarm comes first in the
/// order of the lock: If the end comes first, the alarm finds `running` false and starts a thread. If the alarm comes first,
/// the thread sees it and stays.
#[derive(Debug)]
pub(super) struct TimerThread {
    state: Mutex<State>,
    /// Notified when the earliest alarm has changed in a way that the thread can't sleep through.
    changed: Condvar,
    /// Starts a thread that calls [`TimerThread::run`].
    spawn: fn(&'static TimerThread) -> io::Result<()>,
    /// How long the thread stays without an alarm.
    linger: Duration,
}

#[derive(Debug)]
struct State {
    alarms: Alarms,
    running: bool,
}

/// The longest single sleep of the thread. It looks at the clock and goes on, so any deadline is a legal one.
const LONGEST_SLEEP: Duration = Duration::from_secs(3_600);

fn spawn(timer: &'static TimerThread) -> io::Result<()> {
    std::thread::Builder::new().name("tollgate-timer".to_owned()).spawn(|| timer.run())?;
    Ok(())
}

impl TimerThread {
    const fn new(spawn: fn(&'static TimerThread) -> io::Result<()>, linger: Duration) -> Self {
        Self {
            state: Mutex::new(State { alarms: Alarms::new(), running: false }),
            changed: Condvar::new(),
            spawn,
            linger,
        }
    }

    /// Sets an alarm that wakes `waker` when [`StdClock`] has reached `at`.
    ///
    /// If a thread is needed and the system gives none, everybody who has an alarm is woken at once, the caller included, so
    /// that each polls again, finds its time not there, and sets its alarm anew. Until a start succeeds waits are thus polled
    /// without a rest, which costs a processor but loses no wait.
    pub(super) fn set_alarm(&'static self, at: Nanos, waker: Waker) -> AlarmKey {
        let (key, is_first, was_running);
        {
            let mut state = self.state.lock();
            is_first = state.alarms.next().is_none_or(|next| at < next);
            key = state.alarms.insert(at, waker);
            was_running = std::mem::replace(&mut state.running, true);
        }
        if !was_running {
            if (self.spawn)(self).is_err() {
                self.wake_everybody();
            }
        } else if is_first {
            self.changed.notify_one();
        }
        key
    }

    #[cold]
    fn wake_everybody(&self) {
        let mut everybody = WakeList::new();
        {
            let mut state = self.state.lock();
            state.running = false;
            state.alarms.take_due(Nanos::MAX, &mut everybody);
        }
        everybody.wake_all();
        // A thread of the process has to end before another can start.
        std::thread::yield_now();
    }

    pub(super) fn remove_alarm(&self, key: AlarmKey) -> Option<Waker> {
        let (waker, none_left);
        {
            let mut state = self.state.lock();
            waker = state.alarms.remove(key);
            none_left = waker.is_some() && state.alarms.is_empty();
        }
        if none_left {
            // The thread need not sleep until the time of the alarm that was the last, but only linger.
            self.changed.notify_one();
        }
        waker
    }

    /// Lets `change` work on the alarms, under their lock.
    pub(super) fn with_alarms<R>(&self, change: impl FnOnce(&mut Alarms) -> R) -> R {
        change(&mut self.state.lock().alarms)
    }

    fn run(&self) {
        let mut state = self.state.lock();
        loop {
            let now = StdClock.now();
            let mut due = WakeList::new();
            state.alarms.take_due(now, &mut due);
            if !due.is_empty() {
                MutexGuard::unlocked(&mut state, || due.wake_all());
                continue;
            }
            let next = state.alarms.next().map(|at| at.saturating_since(now).min(LONGEST_SLEEP));
            let slept_through = self.changed.wait_for(&mut state, next.unwrap_or(self.linger)).timed_out();
            // An alarm may have been set between the end of the sleep and the lock.
            if slept_through && state.alarms.is_empty() {
                state.alarms.shrink();
                state.running = false;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timer::test_wakers::{Count, PanicOnWake, Unpark};
    use std::sync::atomic::{AtomicU32, Ordering};

    fn timer(spawn: fn(&'static TimerThread) -> io::Result<()>) -> &'static TimerThread {
        Box::leak(Box::new(TimerThread::new(spawn, Duration::ZERO)))
    }

    fn soon() -> Nanos {
        StdClock.now().saturating_add(Duration::from_millis(2))
    }

    /// Waits until the timer thread has ended: with no alarm it does so at once.
    fn wait_for_the_end(timer: &TimerThread) {
        while timer.state.lock().running {
            std::thread::yield_now();
        }
    }

    #[test]
    fn an_alarm_rings_when_its_time_is_there() {
        let timer = timer(spawn);
        let (unpark, at) = (Unpark::new(), soon());
        timer.set_alarm(at, unpark.waker());
        unpark.wait();
        assert!(StdClock.now() >= at);
    }

    #[test]
    fn the_thread_ends_after_the_last_alarm_and_starts_for_the_next() {
        static STARTS: AtomicU32 = AtomicU32::new(0);
        let timer = timer(|timer| {
            STARTS.fetch_add(1, Ordering::Relaxed);
            spawn(timer)
        });
        for starts in 1..=3 {
            let unpark = Unpark::new();
            timer.set_alarm(soon(), unpark.waker());
            unpark.wait();
            wait_for_the_end(timer);
            assert_eq!(STARTS.load(Ordering::Relaxed), starts);
        }
    }

    #[test]
    fn an_earlier_alarm_does_not_wait_for_a_later_one() {
        let timer = timer(spawn);
        let (early, late) = (Unpark::new(), Count::new());
        let far = timer.set_alarm(Nanos::MAX, late.waker());
        timer.set_alarm(soon(), early.waker());
        early.wait();
        assert_eq!(late.get(), 0);
        // The thread must not sleep on until the end of time for the sake of an alarm that is gone.
        assert!(timer.remove_alarm(far).is_some());
        wait_for_the_end(timer);
    }

    #[test]
    fn a_waker_that_panics_does_not_end_the_thread() {
        let timer = timer(spawn);
        let (before, after, at) = (Unpark::new(), Unpark::new(), soon());
        timer.set_alarm(at, PanicOnWake::waker());
        timer.set_alarm(at, before.waker());
        before.wait();
        timer.set_alarm(soon(), after.waker());
        after.wait();
        wait_for_the_end(timer);
    }

    #[test]
    fn a_thread_that_sleeps_hears_of_an_earlier_alarm() {
        let timer = Box::leak(Box::new(TimerThread::new(spawn, LONGEST_SLEEP)));
        let late = Count::new();
        timer.set_alarm(Nanos::MAX, late.waker());
        // From the second round on the thread has mostly gone to sleep when the alarm is set.
        for _ in 0..20 {
            let (early, at) = (Unpark::new(), soon());
            timer.set_alarm(at, early.waker());
            early.wait();
            assert!(StdClock.now() >= at);
        }
        assert_eq!(late.get(), 0);
    }

    #[test]
    fn alarms_set_while_the_thread_ends_are_not_lost() {
        let timer = timer(spawn);
        // The thread ends without a linger after each ring, and nobody else sets an alarm that would start it again.
        for spins in 0..2_000 {
            let unpark = Unpark::new();
            timer.set_alarm(Nanos::ZERO, unpark.waker());
            unpark.wait();
            for _ in 0..spins {
                std::hint::spin_loop();
            }
        }
        wait_for_the_end(timer);
    }

    #[test]
    fn without_a_thread_everybody_is_woken_and_the_start_is_tried_again() {
        static FAILURES: AtomicU32 = AtomicU32::new(0);
        let timer = timer(|timer| {
            if FAILURES.fetch_add(1, Ordering::Relaxed) < 2 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            spawn(timer)
        });
        let count = Count::new();
        for woken in 1..=2 {
            let key = timer.set_alarm(Nanos::MAX, count.waker());
            assert_eq!(count.get(), woken);
            assert!(timer.remove_alarm(key).is_none());
        }
        let unpark = Unpark::new();
        timer.set_alarm(soon(), unpark.waker());
        unpark.wait();
        wait_for_the_end(timer);
    }
}
