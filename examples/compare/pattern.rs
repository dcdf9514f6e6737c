//! The traffic that is replayed.

use crate::setting::Setting;

/// Requests, and what the laws that judge them are set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// The name of its picture.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) setting: Setting,
    /// In nanoseconds, in order.
    pub(crate) times: Vec<u64>,
}

/// What times of one's own are judged by unless something else is asked for.
pub(crate) const USUAL: Setting = setting((5, 10_000), (5, 500));

/// A limit per so many milliseconds, and a capacity with a rate in thousandths per second.
const fn setting((limit, window): (u64, u64), (capacity, rate): (u64, u64)) -> Setting {
    Setting { limit, window: window * 1_000_000, capacity, rate: rate * 1_000_000 }
}

/// The patterns of the two articles from which the laws are known, and one that the first of them only describes.
pub(crate) fn all() -> Vec<Pattern> {
    let milliseconds = |times: Vec<u64>| times.into_iter().map(|time| time * 1_000_000).collect();
    vec![
        Pattern {
            name: "seam",
            title: "Ten requests around the seam between two windows",
            setting: setting((5, 10_000), (5, 500)),
            times: milliseconds(vec![8_000, 8_500, 9_000, 9_200, 9_500, 10_000, 10_200, 10_400, 10_600, 10_800]),
        },
        Pattern {
            name: "spell",
            title: "A quiet spell, then nine requests at once and a trickle",
            setting: setting((5, 2_500), (5, 2_000)),
            times: milliseconds([vec![0], vec![20_000; 9], vec![20_500, 21_000, 21_500, 22_000]].concat()),
        },
        Pattern {
            name: "trickle",
            title: "More than three at once, and a pause that fills the bucket again",
            setting: setting((3, 3_000), (3, 1_000)),
            times: milliseconds(vec![0, 200, 400, 600, 1_500, 3_500, 3_600, 3_700]),
        },
        Pattern {
            name: "crowd",
            title: "Five requests at one instant",
            setting: setting((3, 3_000), (3, 1_000)),
            times: vec![0; 5],
        },
        Pattern {
            name: "fading",
            title: "Eight requests late in one window, and a steady flow in the next",
            setting: setting((10, 60_000), (10, 200)),
            times: milliseconds((44..60).chain(62..=120).step_by(2).map(|second| second * 1_000).collect()),
        },
    ]
}
