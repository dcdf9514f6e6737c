//! The clock of tokio's timers.

use super::Clock;
use crate::time::Nanos;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// The clock of tokio's timers, `tokio::time::Instant`; the one that a [`Shaper`](crate::Shaper) waits by.
///
/// Inside a runtime whose clock is paused it stands still, and follows `tokio::time::advance` and the automatic advance.
/// Everywhere else, outside a runtime included, it is the operating system's monotonic clock.
///
/// All values in a process share one origin. It lies about a year before the first use of the clock in the process, since a
/// paused clock stands where its runtime was started, which may be before that first use. The first reading is therefore
/// not near zero; only differences mean something.
///
/// Each runtime with a paused clock has a time of its own: readings taken in different runtimes are not in order.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Clock, TokioClock};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let before = TokioClock.now();
/// tokio::time::advance(Duration::from_secs(3600)).await;
/// assert_eq!(TokioClock.now().saturating_since(before), Duration::from_secs(3600));
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioClock;

impl Clock for TokioClock {
    #[inline]
    fn now(&self) -> Nanos {
        // The origin first: its first reading must not be later than the one that asked for it.
        let origin = *ORIGIN;
        Nanos::from(tokio::time::Instant::now().into_std().saturating_duration_since(origin))
    }
}

impl TokioClock {
    /// Returns tokio's name for the instant `at`, or `None` where it lies beyond what the platform can tell.
    pub(crate) fn instant(at: Nanos) -> Option<tokio::time::Instant> {
        let instant = ORIGIN.checked_add(at.saturating_since(Nanos::ZERO))?;
        // tokio rounds a deadline up to a whole millisecond, unchecked: leave it the room.
        instant.checked_add(TICK)?;
        Some(instant.into())
    }
}

/// The grain of tokio's timers.
const TICK: Duration = Duration::from_millis(1);

/// The clock's origin: early enough that no runtime's clock can stand before it.
///
/// A runtime's clock starts at the time at which the runtime is built, and from there it stands or goes forward. So no
/// reading lies before the start of the process, and that is less than a year before the first use of this clock. (Were
/// the origin the first use itself, a runtime paused earlier would read zero, and go on doing so until it had been
/// advanced past the origin.)
static ORIGIN: LazyLock<Instant> = LazyLock::new(|| about_a_year_before(Instant::now()));

/// Steps back by half a year, a quarter, an eighth and so on, leaving out the steps that the platform can't represent.
///
/// Some platforms count from the machine's start and know no earlier instant. There the steps end at that start.
fn about_a_year_before(instant: Instant) -> Instant {
    const HALF_A_YEAR: u64 = 182 * 24 * 60 * 60 * 1_000_000_000;
    std::iter::successors(Some(HALF_A_YEAR), |step| Some(step / 2))
        .take_while(|&step| step > 0)
        .fold(instant, |origin, step| origin.checked_sub(Duration::from_nanos(step)).unwrap_or(origin))
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "the numbers are small")]
mod tests {
    use super::*;
    use std::future::Future;
    use tokio::runtime::{Builder, Runtime};

    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

    fn paused() -> Runtime {
        Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
    }

    fn passed<F: Future>(runtime: &Runtime, work: F) -> Duration {
        runtime.block_on(async {
            let before = TokioClock.now();
            work.await;
            TokioClock.now().saturating_since(before)
        })
    }

    #[test]
    fn a_paused_clock_moves_by_what_it_is_advanced() {
        for span in [Duration::from_nanos(1), Duration::from_secs(1), 5 * YEAR, 100 * YEAR] {
            assert_eq!(passed(&paused(), tokio::time::advance(span)), span);
        }
    }

    #[test]
    fn a_paused_clock_follows_the_automatic_advance() {
        assert_eq!(passed(&paused(), async { tokio::time::sleep(5 * YEAR).await }), 5 * YEAR);
    }

    #[test]
    fn a_clock_paused_long_before_the_first_use_does_not_stand_below_the_origin() {
        // Where a runtime's clock stands that was built, paused, half a year ago. Not every platform knows such an instant.
        let early = Instant::now().checked_sub(Duration::from_secs(180 * 24 * 60 * 60));
        assert!(early.is_none_or(|early| early > *ORIGIN));
    }

    #[test]
    fn a_runtime_that_stands_behind_the_others_moves_all_the_same() {
        let early = paused();
        assert_eq!(passed(&paused(), tokio::time::advance(100 * YEAR)), 100 * YEAR);
        let nanosecond = Duration::from_nanos(1);
        assert_eq!(passed(&early, tokio::time::advance(nanosecond)), nanosecond);
    }

    #[test]
    fn paused_runtimes_have_each_their_own_time() {
        let (one, two) = (paused(), paused());
        let before = two.block_on(async { TokioClock.now() });
        assert_eq!(passed(&one, tokio::time::advance(YEAR)), YEAR);
        assert_eq!(two.block_on(async { TokioClock.now() }), before);
        assert_eq!(passed(&two, tokio::time::advance(YEAR)), YEAR);
    }

    #[test]
    fn outside_a_runtime_it_is_the_monotonic_clock() {
        let before = TokioClock.now();
        assert!(before > Nanos::ZERO);
        assert!(TokioClock.now() >= before);
    }

    #[test]
    fn an_instant_is_the_inverse_of_a_reading() {
        paused().block_on(async {
            assert_eq!(TokioClock::instant(TokioClock.now()), Some(tokio::time::Instant::now()));
        });
    }

    #[test]
    fn an_origin_at_the_first_instant_of_the_platform_stays_there() {
        // Any start will do: stepping back from it for ever ends at the first instant, and there every step is left out.
        let first = (0..64).rev().fold(Instant::now(), |instant, shift| {
            let step = Duration::from_secs(1 << shift);
            instant.checked_sub(step).unwrap_or(instant)
        });
        let origin = about_a_year_before(first);
        assert!(origin <= first);
        assert!(first.saturating_duration_since(origin) < Duration::from_secs(1));
    }
}
