//! A clock that is read with one load, since a thread of its own keeps it.

use super::{Clock, StdClock};
use crate::time::Nanos;
use ::std::collections::BTreeMap;
use ::std::fmt;
use ::std::io;
use ::std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use ::std::sync::{Arc, OnceLock};
use ::std::thread::{self, Thread};
use ::std::time::Duration;
use parking_lot::Mutex;

/// A clock that is read with one load: a thread of its own writes the time of [`StdClock`] down every `interval`.
///
/// For decisions that are so frequent that reading a clock is most of what they cost. Elsewhere
/// [`DefaultClock`](super::DefaultClock) is the better one.
///
/// All clocks of the process with the same interval, clones included, share one time and one thread, called `tollgate-clock`.
/// It starts with the first of them and ends with the last, at once, however long the interval is. An interval of zero, and a
/// system that gives no thread, make a clock that reads [`StdClock`] each time.
///
/// # What it tells
///
/// It has the origin of [`StdClock`], is never ahead of it, and never goes back. It is behind by its *lag*: at most the interval
/// plus whatever the machine delays the thread, which is some 50 µs as a rule and many milliseconds on a machine that is
/// overloaded. Readings of clocks with different intervals are not in order.
///
/// What that means for a limiter on it:
///
/// - In real time a span W may see what the law allows in a span of W + lag: `burst + rate * (W + lag)` for a token bucket.
///   (On the clock itself the law is kept exactly.)
/// - A wait that a refusal tells is a wait on this clock: one who comes back after it may have to wait for the lag once more.
/// - Within one interval the time stands, so not more than the burst is granted in it: a burst below `rate * interval` delivers
///   less than the rate.
///
/// # Cost
///
/// A reading is one load. The thread wakes once per interval, about a thousand times a second at one millisecond, which is the
/// least that makes sense on most systems: they end no sleep much earlier than 50 µs late.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tollgate::{CoarseClock, Quota, TokenBucket};
///
/// let clock = CoarseClock::new(Duration::from_millis(1));
/// let limiter = TokenBucket::with_clock(Quota::per_second(1_000_000).burst(5_000), clock.clone());
/// assert!(limiter.try_acquire().is_ok());
/// ```
#[derive(Clone)]
pub struct CoarseClock {
    /// `None`: nobody writes the time down, so each reading asks the operating system.
    written: Option<Reader>,
}

impl CoarseClock {
    /// Makes a clock that is behind by `interval` at most, plus what the machine delays; or shares the one that there is.
    #[must_use]
    pub fn new(interval: Duration) -> Self {
        Self { written: WRITERS.share(interval) }
    }
}

impl Clock for CoarseClock {
    #[inline]
    fn now(&self) -> Nanos {
        match &self.written {
            Some(reader) => reader.now(),
            None => unwritten(),
        }
    }
}

/// Out of the way of the reading that is one load.
#[cold]
#[inline(never)]
fn unwritten() -> Nanos {
    StdClock.now()
}

impl fmt::Debug for CoarseClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CoarseClock").field(&self.now()).finish()
    }
}

/// The threads that write the time down for the process.
static WRITERS: Writers = Writers::new(spawn);

/// The threads that write the time down, by their intervals.
///
/// None of this goes through the crate's choice of primitives for model checkers: a thread that sleeps has no place in a model.
///
/// # No time is left without its thread
///
/// A thread is in the map as long as it runs, so there is one per interval at most. Handles are counted in `readers`, which rises
/// from zero in `share` alone, under the lock of the map, and a thread ends only when it has seen zero under that lock:
///
/// - If the end comes first, `share` finds no entry and starts another thread.
/// - If `share` comes first, the thread sees its reader and stays.
struct Writers {
    running: Mutex<BTreeMap<Duration, Arc<Written>>>,
    /// Starts a thread that calls [`Writers::run`].
    spawn: fn(&'static Writers, Arc<Written>) -> io::Result<Thread>,
}

/// A time that one thread writes and all its readers share.
struct Written {
    /// The last reading of [`StdClock`]. One thread writes it, so it never goes back.
    now: AtomicU64,
    interval: Duration,
    /// How many handles there are.
    ///
    /// # Ordering
    ///
    /// Relaxed: nothing is published through it. Rises from zero are ordered by the lock of the map, and the fall to zero
    /// reaches the thread by `unpark`.
    readers: AtomicUsize,
    /// Who writes. Set before the first handle is given out.
    writer: OnceLock<Thread>,
}

/// A handle of a time that is written down.
struct Reader(Arc<Written>);

fn spawn(writers: &'static Writers, written: Arc<Written>) -> io::Result<Thread> {
    let name = "tollgate-clock".to_owned();
    let handle = thread::Builder::new().name(name).spawn(move || writers.run(&written))?;
    Ok(handle.thread().clone())
}

impl Writers {
    const fn new(spawn: fn(&'static Writers, Arc<Written>) -> io::Result<Thread>) -> Self {
        Self { running: Mutex::new(BTreeMap::new()), spawn }
    }

    /// Returns a handle of the time that is written every `interval`; `None` for zero, and where the system gives no thread.
    fn share(&'static self, interval: Duration) -> Option<Reader> {
        if interval.is_zero() {
            return None;
        }
        let mut running = self.running.lock();
        if let Some(written) = running.get(&interval) {
            return Some(Reader::of(written));
        }
        let written = Arc::new(Written {
            now: AtomicU64::new(StdClock.now().get()),
            interval,
            readers: AtomicUsize::new(0),
            writer: OnceLock::new(),
        });
        let reader = Reader::of(&written);
        let writer = (self.spawn)(self, Arc::clone(&written)).ok()?;
        written.writer.get_or_init(|| writer);
        running.insert(interval, written);
        Some(reader)
    }

    fn run(&self, written: &Written) {
        loop {
            // Ends early when the last handle goes; if it went before, the token is there and the sleep ends at once.
            thread::park_timeout(written.interval);
            // Release: pairs with the Acquire in `Reader::now`.
            written.now.store(StdClock.now().get(), Ordering::Release);
            if written.is_unused() && self.end(written) {
                return;
            }
        }
    }

    /// Takes `written` out of the map, unless somebody has come to share it meanwhile.
    #[cold]
    fn end(&self, written: &Written) -> bool {
        let mut running = self.running.lock();
        let unused = written.is_unused();
        if unused {
            running.remove(&written.interval);
        }
        unused
    }
}

impl Written {
    fn is_unused(&self) -> bool {
        self.readers.load(Ordering::Relaxed) == 0
    }
}

impl Reader {
    fn of(written: &Arc<Written>) -> Self {
        written.readers.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(written))
    }

    #[inline]
    fn now(&self) -> Nanos {
        // Acquire: pairs with the Release in `run`, so whoever sees a time and then asks StdClock is told no earlier one.
        Nanos::new(self.0.now.load(Ordering::Acquire))
    }
}

impl Clone for Reader {
    fn clone(&self) -> Self {
        Self::of(&self.0)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if self.0.readers.fetch_sub(1, Ordering::Relaxed) == 1 {
            // Without a writer the thread could not be started.
            if let Some(writer) = self.0.writer.get() {
                writer.unpark();
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "the numbers are small")]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_nanos(1);

    fn writers(spawn: fn(&'static Writers, Arc<Written>) -> io::Result<Thread>) -> &'static Writers {
        Box::leak(Box::new(Writers::new(spawn)))
    }

    fn clock(writers: &'static Writers, interval: Duration) -> CoarseClock {
        CoarseClock { written: writers.share(interval) }
    }

    /// Waits until all threads have ended. The last thing that a thread does is to leave the map.
    fn wait_for_the_end(writers: &Writers) {
        while !writers.running.lock().is_empty() {
            thread::yield_now();
        }
    }

    fn wait_until_it_moves(clock: &CoarseClock) {
        let stands = clock.now();
        while clock.now() == stands {
            thread::yield_now();
        }
    }

    fn is_written(clock: &CoarseClock) -> bool {
        clock.written.is_some()
    }

    fn share_one_time(one: &CoarseClock, two: &CoarseClock) -> bool {
        match (&one.written, &two.written) {
            (Some(one), Some(two)) => Arc::ptr_eq(&one.0, &two.0),
            _ => false,
        }
    }

    #[test]
    fn it_is_never_ahead_of_std_and_never_goes_back() {
        let clock = CoarseClock::new(TICK);
        let mut last = clock.now();
        for _ in 0..10_000 {
            let now = clock.now();
            assert!(last <= now && now <= StdClock.now());
            last = now;
        }
    }

    #[test]
    fn it_moves_by_itself() {
        wait_until_it_moves(&CoarseClock::new(TICK));
    }

    #[test]
    fn it_starts_where_std_stands() {
        let writers = writers(spawn);
        let before = StdClock.now();
        assert!(clock(writers, Duration::MAX).now() >= before);
    }

    #[test]
    fn all_with_one_interval_share_one_time_and_the_others_do_not() {
        static STARTS: AtomicUsize = AtomicUsize::new(0);
        let writers = writers(|writers, written| {
            STARTS.fetch_add(1, Ordering::Relaxed);
            spawn(writers, written)
        });
        let (one, same, other) =
            (clock(writers, TICK), clock(writers, TICK), clock(writers, Duration::from_secs(3_600)));
        assert!(share_one_time(&one, &same));
        assert!(share_one_time(&one, &one.clone()));
        assert!(!share_one_time(&one, &other));
        assert_eq!((STARTS.load(Ordering::Relaxed), writers.running.lock().len()), (2, 2));
    }

    #[test]
    fn the_thread_stays_for_the_last_handle_and_ends_with_it() {
        let writers = writers(spawn);
        let first = clock(writers, TICK);
        let (second, last) = (clock(writers, TICK), first.clone());
        drop(first);
        drop(second);
        wait_until_it_moves(&last);
        wait_until_it_moves(&last);
        drop(last);
        wait_for_the_end(writers);
    }

    #[test]
    fn a_thread_with_a_very_long_interval_ends_at_once_too() {
        let writers = writers(spawn);
        for interval in [Duration::from_secs(3_600), Duration::from_secs(u64::MAX), Duration::MAX] {
            let clock = clock(writers, interval);
            assert!(is_written(&clock) && clock.now() <= StdClock.now());
            drop(clock);
            wait_for_the_end(writers);
        }
    }

    #[test]
    fn a_clock_made_while_the_thread_ends_is_kept() {
        let writers = writers(spawn);
        for spins in 0..500 {
            drop(clock(writers, TICK));
            for _ in 0..spins {
                ::std::hint::spin_loop();
            }
            // With another handle or without, as it comes: in both cases somebody has to write.
            wait_until_it_moves(&clock(writers, TICK));
        }
        wait_for_the_end(writers);
    }

    #[test]
    fn a_storm_leaves_no_thread_behind() {
        static STARTS: AtomicUsize = AtomicUsize::new(0);
        static ENDS: AtomicUsize = AtomicUsize::new(0);
        let writers = writers(|writers, written| {
            STARTS.fetch_add(1, Ordering::Relaxed);
            let handle = thread::Builder::new().spawn(move || {
                writers.run(&written);
                ENDS.fetch_add(1, Ordering::Relaxed);
            })?;
            Ok(handle.thread().clone())
        });
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..500 {
                        let clock = clock(writers, [TICK, Duration::MAX][round % 2]);
                        drop(clock.clone());
                    }
                });
            }
        });
        wait_for_the_end(writers);
        while ENDS.load(Ordering::Relaxed) < STARTS.load(Ordering::Relaxed) {
            thread::yield_now();
        }
    }

    #[test]
    fn without_a_thread_it_reads_std() {
        static FAILURES: AtomicUsize = AtomicUsize::new(0);
        let writers = writers(|writers, written| {
            if FAILURES.fetch_add(1, Ordering::Relaxed) < 2 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            spawn(writers, written)
        });
        for _ in 0..2 {
            let clock = clock(writers, Duration::MAX);
            let before = StdClock.now();
            assert!(clock.now() >= before && clock.clone().now() <= StdClock.now());
            assert!(!is_written(&clock) && writers.running.lock().is_empty());
        }
        // The next one tries again.
        assert!(is_written(&clock(writers, Duration::MAX)));
        wait_for_the_end(writers);
    }

    #[test]
    fn with_an_interval_of_zero_it_reads_std() {
        let clock = CoarseClock::new(Duration::ZERO);
        let before = StdClock.now();
        assert!(clock.now() >= before);
        assert!(!is_written(&clock));
    }

    #[test]
    fn it_is_one_pointer_and_goes_to_any_thread() {
        fn is<T: Send + Sync + Clone>() {}
        is::<CoarseClock>();
        assert_eq!(size_of::<CoarseClock>(), size_of::<usize>());
    }

    #[test]
    fn debug_shows_the_time() {
        let writers = writers(|_, _| Err(io::ErrorKind::WouldBlock.into()));
        assert!(format!("{:?}", clock(writers, TICK)).starts_with("CoarseClock(Nanos("));
    }
}
