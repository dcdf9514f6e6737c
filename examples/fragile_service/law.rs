//! The law of the service and the judge that holds every arrival against it.
//!
//! Written from the law alone: in every span W at most `allowance + rate * W` calls. Nothing in here comes from the limiter.

use std::time::Duration;

/// Counts are kept in billionths of a call, and times in whole nanoseconds. Then all is exact: in one nanosecond a rate of
/// `r` calls a second brings `r` billionths of a call.
const CALL: i128 = 1_000_000_000;

/// How fast the service may be called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Law {
    /// Calls a second, which are billionths of a call a nanosecond.
    rate: i128,
    /// What a span may hold beyond the rate, in billionths of a call.
    allowance: i128,
}

impl Law {
    /// Allows `rate` calls a second, and in every span `calls` more and what the rate brings within `ahead`.
    pub(crate) fn new(rate: u64, calls: u64, ahead: Duration) -> Self {
        let rate = i128::from(rate);
        Self { rate, allowance: i128::from(calls) * CALL + rate * nanoseconds(ahead) }
    }

    /// Allows in every span, besides, what `rate` calls a second bring within `ahead`.
    pub(crate) fn and_once(self, rate: u64, ahead: Duration) -> Self {
        Self { allowance: self.allowance + i128::from(rate) * nanoseconds(ahead), ..self }
    }

    /// Returns how many calls a span may hold, with the part of a call that is left over. For display only.
    pub(crate) fn most_in(self, span: Duration) -> f64 {
        (self.allowance + self.rate * nanoseconds(span)) as f64 / CALL as f64
    }
}

/// Holds calls against a [`Law`], in the order of their arrival.
///
/// The calls from the i-th to the j-th are `j - i + 1`, and they arrived in a span of `t(j) - t(i)`. The law says
///
/// ```text
/// j - i + 1  <=  allowance + rate * (t(j) - t(i))                  for all i <= j, that is
/// lead(j) - lead(i) + 1  <=  allowance                             with lead(i) = i - rate * t(i)
/// ```
///
/// Of all spans that end with the j-th call, the one that begins at the lowest lead is the worst. So remembering the lowest lead
/// judges every span.
#[derive(Debug)]
pub(crate) struct Judge {
    law: Law,
    calls: i128,
    lowest: Option<i128>,
}

impl Judge {
    /// Starts with no calls.
    pub(crate) fn new(law: Law) -> Self {
        Self { law, calls: 0, lowest: None }
    }

    /// Takes the next call, which arrived at `at`, and says whether all spans that end with it keep the law.
    pub(crate) fn keeps(&mut self, at: Duration) -> bool {
        let lead = self.calls * CALL - self.law.rate * nanoseconds(at);
        let lowest = self.lowest.map_or(lead, |lowest| lowest.min(lead));
        self.calls += 1;
        self.lowest = Some(lowest);
        lead - lowest + CALL <= self.law.allowance
    }
}

/// A time of centuries saturates; a run takes seconds.
fn nanoseconds(time: Duration) -> i128 {
    i128::try_from(time.as_nanos()).unwrap_or(i128::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The law word for word: every span between two arrivals, counted.
    fn keeps_word_for_word(law: Law, arrivals: &[Duration]) -> bool {
        let Some((&last, _)) = arrivals.split_last() else { return true };
        (0..arrivals.len()).all(|first| {
            let calls = i128::try_from(arrivals.len() - first).unwrap() * CALL;
            calls <= law.allowance + law.rate * nanoseconds(last - arrivals[first])
        })
    }

    #[test]
    fn the_allowance_passes_at_one_instant_and_not_a_call_more() {
        let mut judge = Judge::new(Law::new(500, 3, Duration::from_millis(5)));
        // 3 + 500 * 0.005 = 5.5
        for call in 1..=5 {
            assert!(judge.keeps(Duration::from_secs(9)), "call {call}");
        }
        assert!(!judge.keeps(Duration::from_secs(9)));
    }

    #[test]
    fn a_span_may_hold_the_allowance_and_what_the_rate_brings() {
        let law = Law::new(500, 3, Duration::from_millis(5));
        assert_eq!([0, 100].map(|span| law.most_in(Duration::from_millis(span))), [5.5, 55.5]);
    }

    #[test]
    fn the_next_call_is_due_to_the_nanosecond() {
        for (wait, kept) in [(999_999, false), (1_000_000, true)] {
            // 3 + 500 * 0.005 + 500 * 0.001 = 6
            let mut judge = Judge::new(Law::new(500, 3, Duration::from_millis(5)));
            for _ in 0..5 {
                assert!(judge.keeps(Duration::ZERO));
            }
            assert_eq!(judge.keeps(Duration::from_nanos(wait)), kept, "after {wait} ns");
        }
    }

    #[test]
    fn the_rate_may_go_on_for_ever_and_a_rest_saves_nothing_up() {
        let mut judge = Judge::new(Law::new(1_000, 2, Duration::ZERO));
        assert!((0..10_000).all(|call| judge.keeps(Duration::from_millis(call))));
        let rested = Duration::from_secs(1_000);
        assert!(judge.keeps(rested) && judge.keeps(rested) && !judge.keeps(rested));
    }

    #[test]
    fn the_judge_agrees_with_the_law_word_for_word() {
        let mut seed = 1_u64;
        let mut draw = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let mut verdicts = [0_u32; 2];
        for _ in 0..300 {
            let law = Law::new(1 + draw(1_000), 1 + draw(4), Duration::from_micros(draw(5_000)));
            let longest = 1 + 2_000_000_000 / u64::try_from(law.rate).unwrap();
            let mut judge = Judge::new(law);
            let mut arrivals = vec![Duration::from_nanos(draw(1_000_000))];
            let mut at = arrivals[0];
            assert!(judge.keeps(at));
            for _ in 0..60 {
                at += Duration::from_nanos(draw(longest));
                arrivals.push(at);
                let kept = judge.keeps(at);
                assert_eq!(kept, keeps_word_for_word(law, &arrivals), "{law:?} {arrivals:?}");
                verdicts[usize::from(kept)] += 1;
            }
        }
        assert!(verdicts.iter().all(|&times| times > 1_000), "both verdicts must occur often: {verdicts:?}");
    }
}
