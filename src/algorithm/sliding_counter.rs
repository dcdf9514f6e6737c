//! The sliding counter: two counts, of which the older fades as its window slides out of the last W.

use super::window::Kind;
use super::windowed::Windowed;
use crate::quota::{Quota, QuotaError};

/// The law of [`SlidingCounter`](crate::SlidingCounter): n more are admitted while
/// `previous*(W-elapsed) + (current+n)*W <= limit*W`, in exact integers.
pub type SlidingCounterLaw = Windowed<Sliding>;

/// Of the window before counts what the last W still reaches, as if it had been spread evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sliding;

impl Kind for Sliding {
    const SLIDES: bool = true;
    // Two counts of 29 bits leave one bit for the index.
    const MAX_LIMIT: u64 = 1 << 28;
}

impl SlidingCounterLaw {
    pub(crate) const MAX_LIMIT: u64 = Sliding::MAX_LIMIT;

    pub(crate) fn check(quota: &Quota) -> Result<(), QuotaError> {
        let (asked, most) = (quota.permits(), Self::MAX_LIMIT);
        if asked > most && !quota.is_unlimited() {
            return Err(QuotaError::BeyondSlidingCounter { asked, most });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::window::tests::{Grant, every_short_sequence};

    #[test]
    fn every_short_sequence_is_answered_as_the_law_says() {
        every_short_sequence::<Sliding>(|length, limit, grants: &[Grant], now, n| {
            let window = grants.iter().map(|grant| grant.at / length).chain([now / length]).max().unwrap();
            let now = now.max(window * length);
            let granted =
                |window| grants.iter().filter(|grant| grant.at / length == window).map(|grant| grant.n).sum::<u64>();
            let previous = window.checked_sub(1).map_or(0, granted);
            let elapsed = now - window * length;
            (previous * (length - elapsed) + (granted(window) + n) * length <= limit * length, now)
        });
    }
}
