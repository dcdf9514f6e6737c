//! The books: how each request ended, and how many permits went out and came back.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::allowance::Allowance;
use crate::violation::{Violation, same};
use tollgate::Nanos;

/// Counts requests by their end, and permits.
///
/// # Ordering
///
/// A permit is counted after it was granted, and one that comes back before it is given. Counts are added with `Release` and read
/// with `Acquire`, permits granted first. So at any moment all that is read as granted has been granted, and all that had come back
/// before is read as well.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    asked: AtomicU64,
    granted: AtomicU64,
    refused: AtomicU64,
    cancelled: AtomicU64,
    given_back: AtomicU64,
    permits: AtomicU64,
    returned: AtomicU64,
}

/// How requests ended so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) granted: u64,
    pub(crate) refused: u64,
    pub(crate) cancelled: u64,
    pub(crate) given_back: u64,
}

impl Ledger {
    /// Opens a request. Dropped without another end, it was cancelled.
    pub(crate) fn ask(&self) -> Request<'_> {
        self.asked.fetch_add(1, Ordering::Release);
        Request { ledger: self, is_open: true }
    }

    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Acquire)
    }

    /// The permits granted, those that came back included.
    pub(crate) fn permits(&self) -> u64 {
        self.permits.load(Ordering::Acquire)
    }

    /// The permits that came back.
    pub(crate) fn returned(&self) -> u64 {
        self.returned.load(Ordering::Acquire)
    }

    pub(crate) fn ends(&self) -> Ends {
        Ends {
            granted: self.granted.load(Ordering::Acquire),
            refused: self.refused.load(Ordering::Acquire),
            cancelled: self.cancelled.load(Ordering::Acquire),
            given_back: self.given_back.load(Ordering::Acquire),
        }
    }

    /// Finds permits beyond the law, up to the moment that `now` reads.
    pub(crate) fn check(&self, allowance: &mut Allowance, now: impl FnOnce() -> Nanos) -> Result<(), Violation> {
        let (granted, returned) = (self.permits(), self.returned());
        let most = allowance.most(now()) + u128::from(returned);
        if u128::from(granted) <= most {
            return Ok(());
        }
        Err(Violation::new(format!("{granted} permits granted, where the law allows {most} ({returned} came back)")))
    }

    /// Finds requests that have not ended, or have ended twice. Nobody may be asking any more.
    pub(crate) fn close(&self) -> Result<(), Violation> {
        let Ends { granted, refused, cancelled, given_back } = self.ends();
        same("requests that have ended", granted + refused + cancelled + given_back, self.asked())
    }

    /// What came of all requests, and how near the permits came to what the law allows.
    pub(crate) fn summary(&self, most: u128) -> String {
        let Ends { granted, refused, cancelled, given_back } = self.ends();
        let (permits, most) = (self.permits(), most + u128::from(self.returned()));
        let share = 100 * u128::from(permits) / most.max(1);
        format!(
            "{} requests: {granted} granted, {refused} refused, {cancelled} cancelled, {given_back} given back; \
             {permits} permits of the {most} that the law allows ({share} %)",
            self.asked()
        )
    }
}

/// A request that has not ended.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    ledger: &'a Ledger,
    is_open: bool,
}

impl Request<'_> {
    /// Ends it with `n` permits that are used.
    pub(crate) fn granted(self, n: u64) {
        self.ledger.permits.fetch_add(n, Ordering::Release);
        self.end(|ledger| &ledger.granted);
    }

    /// Ends it with `n` permits that `give_back` returns.
    pub(crate) fn given_back(self, n: u64, give_back: impl FnOnce()) {
        self.ledger.permits.fetch_add(n, Ordering::Release);
        self.ledger.returned.fetch_add(n, Ordering::Release);
        give_back();
        self.end(|ledger| &ledger.given_back);
    }

    pub(crate) fn refused(self) {
        self.end(|ledger| &ledger.refused);
    }

    fn end(mut self, count: impl FnOnce(&Ledger) -> &AtomicU64) {
        self.is_open = false;
        count(self.ledger).fetch_add(1, Ordering::Release);
    }
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.ledger.cancelled.fetch_add(1, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate::Quota;

    #[test]
    fn a_request_has_one_end_and_an_open_one_is_found() {
        let ledger = Ledger::default();
        ledger.ask().granted(3);
        ledger.ask().refused();
        drop(ledger.ask());
        let mut gave_back = false;
        ledger.ask().given_back(2, || gave_back = true);
        assert!(gave_back);
        assert_eq!(ledger.ends(), Ends { granted: 1, refused: 1, cancelled: 1, given_back: 1 });
        assert_eq!((ledger.permits(), ledger.returned()), (5, 2));
        assert!(ledger.close().is_ok());
        let _open = ledger.ask();
        assert!(ledger.close().is_err());
    }

    #[test]
    fn a_permit_beyond_the_law_is_found() {
        let ledger = Ledger::default();
        let mut allowance = Allowance::new(2, Quota::per_second(1), Nanos::ZERO);
        ledger.ask().granted(3);
        assert!(ledger.check(&mut allowance, || Nanos::from_millis(999)).is_err());
        assert!(ledger.check(&mut allowance, || Nanos::from_secs(1)).is_ok());
        ledger.ask().given_back(1, || ());
        assert!(ledger.check(&mut allowance, || Nanos::from_secs(1)).is_ok());
    }
}
