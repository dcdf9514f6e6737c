//! One alarm that is set, on a manual clock or with the timer thread.

use super::thread::TimerThread;
use super::{AlarmKey, Alarms};
use crate::clock::ManualClock;
use crate::time::Nanos;
use std::task::Waker;

/// An alarm that is set or has rung. Dropping it takes it back.
#[derive(Debug)]
pub(super) struct Alarm {
    owner: Owner,
    key: AlarmKey,
}

/// Who rings the alarm.
#[derive(Debug)]
enum Owner {
    Clock(ManualClock),
    Thread(&'static TimerThread),
}

impl Alarm {
    /// Sets an alarm on `clock`; `None` if the clock has reached `at` already.
    pub(super) fn on_clock(clock: &ManualClock, at: Nanos, waker: Waker) -> Option<Self> {
        let key = clock.set_alarm(at, waker)?;
        Some(Self { owner: Owner::Clock(clock.clone()), key })
    }

    /// Sets an alarm with `thread`, whose clock is [`StdClock`](crate::StdClock).
    pub(super) fn on_thread(thread: &'static TimerThread, at: Nanos, waker: Waker) -> Self {
        Self { owner: Owner::Thread(thread), key: thread.set_alarm(at, waker) }
    }

    /// Lets the alarm wake `waker` from here on. False if it has rung, and so has to be set anew.
    pub(super) fn keep_for(&self, waker: &Waker) -> bool {
        match self.owner.with_alarms(|alarms| alarms.would_wake(self.key, waker)) {
            None => false,
            Some(true) => true,
            Some(false) => {
                // Cloned, and the one that comes back dropped, outside the lock. If the alarm has rung in between, it comes
                // back as an error, and the alarm is set anew.
                let waker = waker.clone();
                self.owner.with_alarms(|alarms| alarms.replace(self.key, waker)).is_ok()
            }
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // Bound first, so that the waker is dropped outside the lock.
        let waker = match &self.owner {
            Owner::Clock(clock) => clock.with_alarms(|alarms| alarms.remove(self.key)),
            Owner::Thread(thread) => thread.remove_alarm(self.key),
        };
        drop(waker);
    }
}

impl Owner {
    fn with_alarms<R>(&self, change: impl FnOnce(&mut Alarms) -> R) -> R {
        match self {
            Self::Clock(clock) => clock.with_alarms(change),
            Self::Thread(thread) => thread.with_alarms(change),
        }
    }
}
