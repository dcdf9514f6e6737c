//! What a shaper hands out.

use std::fmt;
use std::sync::Arc;

use super::Shaper;
use super::pace::Waitable;
use super::queue::Grant;
use crate::algorithm::Gcra;

/// Leave to start, handed out by a [`Shaper`] when its turn came.
///
/// Holding it means nothing after the start: a rate limiter counts departures and not what is under way, so nothing is
/// returned when it is dropped. It may be dropped at once.
///
/// If the work did not start after all, [`give_back`](Self::give_back) says so.
#[must_use = "a permit is leave to start: bind it to `_permit` if the call follows"]
pub struct Permit<'a, A = Gcra> {
    shaper: &'a Shaper<A>,
    grant: Grant,
}

/// A [`Permit`] that does not borrow the shaper. Handed out by [`Shaper::acquire_owned`].
#[must_use = "a permit is leave to start: bind it to `_permit` if the call follows"]
pub struct OwnedPermit<A = Gcra> {
    shaper: Arc<Shaper<A>>,
    grant: Grant,
}

impl<'a, A: Waitable> Permit<'a, A> {
    pub(super) fn new(shaper: &'a Shaper<A>, grant: Grant) -> Self {
        Self { shaper, grant }
    }

    /// How many permits this one stands for: the n that was asked for.
    #[must_use]
    pub fn permits(&self) -> u64 {
        self.grant.permits()
    }

    /// Gives the permit back unused, so that the next in line can leave in its place.
    ///
    /// That is lawful only while no later permit was granted: after one, another departure would be one too many in that
    /// interval, and the permit counts as used. The same holds if the quota was changed after both this and a later permit
    /// were granted and given back; and over a law of windows, if the quota was changed or a pause set once the window of the
    /// permit was over.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{ManualClock, Quota, Shaper};
    ///
    /// let shaper = Shaper::builder(Quota::per_second(1)).clock(ManualClock::new()).build();
    /// let permit = shaper.try_acquire()?;
    /// assert!(shaper.try_acquire().is_err());
    /// permit.give_back();
    /// assert!(shaper.try_acquire().is_ok());
    /// # Ok::<(), tollgate::Refused>(())
    /// ```
    pub fn give_back(self) {
        self.shaper.give_back(self.grant);
    }
}

impl<A: Waitable> OwnedPermit<A> {
    pub(super) fn new(shaper: Arc<Shaper<A>>, grant: Grant) -> Self {
        Self { shaper, grant }
    }

    /// How many permits this one stands for: the n that was asked for.
    #[must_use]
    pub fn permits(&self) -> u64 {
        self.grant.permits()
    }

    /// Gives the permit back unused. See [`Permit::give_back`].
    pub fn give_back(self) {
        self.shaper.give_back(self.grant);
    }
}

impl<A> fmt::Debug for Permit<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("permits", &self.grant.permits()).finish_non_exhaustive()
    }
}

impl<A> fmt::Debug for OwnedPermit<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedPermit").field("permits", &self.grant.permits()).finish_non_exhaustive()
    }
}
