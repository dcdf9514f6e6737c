//! Threads that wait in the crate's queue in a way that is wrong on purpose.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

use tollgate::model::{Answer, Shaping};
use tollgate::{Quota, Refused};

use super::checked::atomic::{AtomicU64, Ordering::SeqCst};
use super::checked::{Condvar, Mutex};
use super::{Waits, quota};

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Nothing: shows that the flaw is what turns a check red.
    Nothing,
    /// A wake-up that comes before the sleep is forgotten.
    NotesNoWakeUp,
    /// The note of a wake-up is torn up before the sleep instead of after it, so that one since the last look is lost.
    ForgetsBeforeItSleeps,
    /// All threads sleep in one place, and a wake-up goes to any of them.
    SharesABed,
    /// The alarm is set for a time that has come since the clock was read.
    SetsItsAlarmUnseen,
    /// Whoever is woken takes that for a permit.
    TakesAWakeUpForAPermit,
    /// Whoever has slept until its deadline goes without another look.
    GoesUnseen,
}

pub(crate) struct Broken {
    flaw: Flaw,
    shaping: Shaping,
    now: AtomicU64,
    alarms: Mutex<Vec<(u64, Waker)>>,
    shared: Arc<Bed>,
}

/// Where a thread sleeps.
struct Bed {
    flaw: Flaw,
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Bed {
    fn new(flaw: Flaw) -> Arc<Self> {
        Arc::new(Self { flaw, woken: Mutex::new(false), changed: Condvar::new() })
    }

    fn sleep(&self) {
        let mut woken = self.woken.lock().unwrap();
        if self.flaw == Flaw::ForgetsBeforeItSleeps {
            *woken = false;
        }
        if !*woken {
            woken = self.changed.wait(woken).unwrap();
        }
        *woken = false;
    }
}

impl Wake for Bed {
    fn wake(self: Arc<Self>) {
        let mut woken = self.woken.lock().unwrap();
        *woken = self.flaw != Flaw::NotesNoWakeUp;
        self.changed.notify_one();
    }
}

impl Broken {
    pub(crate) fn new(flaw: Flaw) -> Self {
        Self {
            flaw,
            shaping: Shaping::new(quota(), Duration::ZERO),
            now: AtomicU64::new(0),
            alarms: Mutex::new(Vec::new()),
            shared: Bed::new(flaw),
        }
    }

    /// False if the time is there.
    fn set_alarm(&self, at: u64, waker: Waker) -> bool {
        let unseen = (self.flaw == Flaw::SetsItsAlarmUnseen).then(|| self.now());
        let mut alarms = self.alarms.lock().unwrap();
        let early = unseen.unwrap_or_else(|| self.now()) < at;
        if early {
            alarms.push((at, waker));
        }
        early
    }
}

impl Waits for Broken {
    fn acquire(&self, limit: Option<Duration>) -> Result<(), Refused> {
        let bed = match self.flaw {
            Flaw::SharesABed => Arc::clone(&self.shared),
            flaw => Bed::new(flaw),
        };
        let waker = || Waker::from(Arc::clone(&bed));
        let now = self.now();
        let deadline = limit.map_or(u64::MAX, |limit| now + u64::try_from(limit.as_nanos()).unwrap());
        let mut answer = self.shaping.enter(1, now, deadline, waker());
        loop {
            match answer {
                Answer::Granted(_) => return Ok(()),
                Answer::Refused(refused) => return Err(refused),
                Answer::Waits(place, until) => {
                    if until.get() == u64::MAX || self.set_alarm(until.get(), waker()) {
                        bed.sleep();
                    }
                    if self.flaw == Flaw::TakesAWakeUpForAPermit {
                        return Ok(());
                    }
                    let now = self.now();
                    if self.flaw == Flaw::GoesUnseen && now >= deadline {
                        return Err(Refused::DeadlineTooSoon { wait: Duration::ZERO });
                    }
                    answer = self.shaping.step(place, now, waker());
                }
            }
        }
    }

    fn try_acquire(&self) -> bool {
        matches!(self.shaping.try_acquire(1, self.now()), Answer::Granted(_))
    }

    fn refund(&self) {
        self.shaping.refund(1, self.now());
    }

    fn set_quota(&self, quota: Quota) {
        self.shaping.set_quota(quota, self.now());
    }

    fn close(&self) {
        self.shaping.close(self.now());
    }

    fn now(&self) -> u64 {
        self.now.load(SeqCst)
    }

    fn set_now(&self, now: u64) {
        let due = {
            let mut alarms = self.alarms.lock().unwrap();
            self.now.store(now, SeqCst);
            let (due, later) = std::mem::take(&mut *alarms).into_iter().partition(|alarm| alarm.0 <= now);
            *alarms = later;
            due
        };
        let due: Vec<_> = due;
        due.into_iter().for_each(|(_, waker)| waker.wake());
    }
}
