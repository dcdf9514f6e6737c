//! The fixed window: one count, which starts anew with every window.

use super::AnyQuota;
use super::window::Kind;
use super::windowed::Windowed;
use crate::quota::Quota;

/// The law of [`FixedWindow`](crate::FixedWindow): at most `limit` in each window `[k*W, (k+1)*W)` from the clock's origin.
pub type FixedWindowLaw = Windowed<Fixed>;

/// Of the windows before, nothing counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed;

impl Kind for Fixed {
    const SLIDES: bool = false;
    const MAX_LIMIT: u64 = Quota::MAX_BURST;
}

impl AnyQuota for FixedWindowLaw {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::window::tests::{Grant, every_short_sequence};

    #[test]
    fn every_short_sequence_is_answered_as_the_law_says() {
        every_short_sequence::<Fixed>(|length, limit, grants: &[Grant], now, n| {
            // The newest window that was used; what is earlier counts as its start.
            let window = grants.iter().map(|grant| grant.at / length).chain([now / length]).max().unwrap();
            let granted: u64 = grants.iter().filter(|grant| grant.at / length == window).map(|grant| grant.n).sum();
            (granted + n <= limit, now.max(window * length))
        });
    }
}
