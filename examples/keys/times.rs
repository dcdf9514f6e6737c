//! How long calls take.

use std::time::Instant;

/// Steps in which times are counted, in each power of two.
const STEPS: u64 = 16;

/// Times by their size, in memory that does not grow.
pub(crate) struct Times {
    counts: Vec<u64>,
    longest: u64,
}

impl Default for Times {
    fn default() -> Self {
        Self { counts: vec![0; 64 * 16], longest: 0 }
    }
}

impl Times {
    /// Measures a call, with the reading of a clock.
    pub(crate) fn of<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let answer = call();
        self.add(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
        answer
    }

    fn add(&mut self, nanos: u64) {
        self.counts[step(nanos)] += 1;
        self.longest = self.longest.max(nanos);
    }

    /// The time that `part` of 10,000 calls did not exceed, to a sixteenth.
    fn quantile(&self, part: u64) -> u64 {
        let all: u64 = self.counts.iter().sum();
        let mut left = (all * part).div_ceil(10_000);
        for (step, count) in self.counts.iter().enumerate() {
            left = left.saturating_sub(*count);
            if left == 0 {
                return end(step).min(self.longest);
            }
        }
        self.longest
    }

    pub(crate) fn told(&self) -> String {
        let [half, most, nearly] = [5_000, 9_900, 9_999].map(|part| self.quantile(part));
        format!("a call takes {half} ns (p50), {most} ns (p99), {nearly} ns (p99.99), {} ns at most", self.longest)
    }
}

fn step(nanos: u64) -> usize {
    let step = match nanos.checked_ilog2() {
        Some(power @ 4..) => u64::from(power - 3) * STEPS + (nanos >> (power - 4)) % STEPS,
        _ => nanos,
    };
    usize::try_from(step).unwrap_or(0)
}

/// The longest time of a step.
fn end(step: usize) -> u64 {
    let (power, part) = (step as u64 / STEPS, step as u64 % STEPS);
    if power == 0 { part } else { ((STEPS + part + 1) << (power - 1)) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_in_the_step_that_ends_after_it() {
        for nanos in (0..5_000).chain([1 << 20, (1 << 40) + 12_345, u64::MAX >> 2]) {
            let step = step(nanos);
            assert!(end(step) >= nanos && (step == 0 || end(step - 1) < nanos), "{nanos} in {step}");
        }
    }

    #[test]
    fn quantiles_are_of_the_times_that_were_added() {
        let mut times = Times::default();
        (1..=10_000).for_each(|nanos| times.add(nanos));
        let near = |found: u64, exact: u64| (exact..=exact + exact / 16).contains(&found);
        assert!(near(times.quantile(5_000), 5_000) && near(times.quantile(9_900), 9_900), "{}", times.told());
        assert_eq!((times.quantile(10_000), times.quantile(9_999)), (10_000, 10_000));
    }
}
