//! `throttlecrab`: GCRA in a map of strings. It is not thread-safe by itself, and its documentation puts a mutex around it.

use std::cell::Cell;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use throttlecrab::{PeriodicStore, RateLimiter};

use super::{Clocked, Decide, DecideKey, Law};

pub(crate) struct Mutexed {
    limiter: Mutex<RateLimiter<PeriodicStore>>,
    law: Law,
}

pub(crate) fn mutexed(law: Law) -> Mutexed {
    Mutexed { limiter: Mutex::new(RateLimiter::new(PeriodicStore::new())), law }
}

impl Mutexed {
    #[inline]
    fn ask(&self, key: &str, n: u32, now: SystemTime) -> bool {
        let Law { permits, period, burst } = self.law;
        let period = i64::try_from(period.as_secs()).expect("no longer than a lifetime");
        let mut limiter = self.limiter.lock().expect("no panic");
        let (granted, _) =
            limiter.rate_limit(key, burst.into(), permits.into(), period, n.into(), now).expect("a sound quota");
        granted
    }
}

impl Decide for Mutexed {
    #[inline]
    fn decide(&self) -> bool {
        self.ask("key", 1, SystemTime::now())
    }
}

/// With a store for so many keys.
pub(crate) fn keyed(law: Law, keys: usize) -> Mutexed {
    Mutexed { limiter: Mutex::new(RateLimiter::new(PeriodicStore::with_capacity(keys))), law }
}

/// Its keys are strings.
impl DecideKey<String> for Mutexed {
    #[inline]
    fn decide(&self, key: &String) -> bool {
        self.ask(key, 1, SystemTime::now())
    }
}

pub(crate) struct Manual {
    limiter: Mutexed,
    now: Cell<SystemTime>,
}

pub(crate) fn manual(law: Law) -> Manual {
    Manual { limiter: mutexed(law), now: Cell::new(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)) }
}

impl Manual {
    /// The law of the calls to come: each call names its own.
    pub(crate) fn set_law(&mut self, law: Law) {
        self.limiter.law = law;
    }
}

impl Clocked for Manual {
    fn take(&self, n: u32) -> bool {
        self.limiter.ask("key", n, self.now.get())
    }

    fn advance(&self, span: Duration) {
        self.now.set(self.now.get() + span);
    }
}
