//! What is allocated, counted block by block.
//!
//! A binary of its own, since the counter is the allocator of the process, and a single test, since two would count each other's
//! blocks. The clocks and the first waits are warmed up before anything is counted. The threads of the crate live until the end of
//! the test, since one that ends frees its memory at a time of its own; and what threads allocate as they start, that of the test
//! harness among them, is told apart by counting again.
#![allow(clippy::arithmetic_side_effects, reason = "a test that overflows fails, as it should")]

use std::future::Future;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use dhat::HeapStats;
use tollgate::{Acquire, Clock, CoarseClock, Keyed, ManualClock, Quota, Refused, Shaper, Timer, TokenBucket};

#[global_allocator]
static COUNTER: dhat::Alloc = dhat::Alloc;

const INTERVAL: Duration = Duration::from_millis(1);

/// How many blocks `work` allocates each time: the fewest of five times, and none if once there were none.
fn blocks(mut work: impl FnMut()) -> u64 {
    let mut fewest = u64::MAX;
    for _ in 0..5 {
        let before = HeapStats::get().total_blocks;
        work();
        fewest = fewest.min(HeapStats::get().total_blocks - before);
        if fewest == 0 {
            break;
        }
    }
    fewest
}

#[test]
fn decisions_and_free_permits_allocate_nothing_and_waiters_nothing_but_their_places() {
    let _profiler = dhat::Profiler::builder().testing().build();
    let coarse_clock = running_coarse_clock();
    let hourly = Shaper::builder(Quota::per_hour(1)).timer(Timer::Precise).build();
    // The timer thread doesn't end while somebody waits.
    let _timer_thread_stays = Line::new(&hourly, 1);
    a_decision_allocates_nothing(&coarse_clock);
    a_shapers_decision_allocates_nothing();
    a_free_permit_allocates_nothing();
    those_who_wait_on_a_manual_clock_allocate_nothing_after_a_while();
    those_who_wait_with_the_timer_thread_allocate_nothing_after_a_while();
    #[cfg(feature = "tokio")]
    those_who_wait_with_tokios_timer_allocate_nothing_after_a_while();
    a_waiter_takes_no_more_than_its_place();
    keys_with_laws_of_their_own_take_no_more_than_the_table_tells();
    a_table_of_keys_allocates_nothing_once_it_is_built();
    a_key_takes_no_more_than_32_bytes();
}

/// A coarse clock whose thread has done what it allocates when it starts.
fn running_coarse_clock() -> CoarseClock {
    let clock = CoarseClock::new(INTERVAL);
    let stands = clock.now();
    while clock.now() == stands {
        std::thread::yield_now();
    }
    clock
}

fn a_decision_allocates_nothing(coarse_clock: &CoarseClock) {
    let default = TokenBucket::new(Quota::per_hour(1).burst(10));
    let coarse = TokenBucket::with_clock(Quota::per_hour(1).burst(10), coarse_clock.clone());
    let paused = TokenBucket::with_clock(Quota::per_hour(1), ManualClock::new());
    paused.pause_for(INTERVAL);
    assert!(default.try_acquire().is_ok());
    let allocated = blocks(|| {
        default.reset();
        coarse.reset();
        for round in 0..20 {
            assert_eq!(default.try_acquire().is_ok(), round < 10);
            assert_eq!(coarse.try_acquire().is_ok(), round < 10);
            assert!(matches!(paused.try_acquire(), Err(Refused::Paused { .. })));
        }
    });
    assert_eq!(allocated, 0, "granted, refused and paused");
}

fn a_shapers_decision_allocates_nothing() {
    let clock = ManualClock::new();
    let shaper = Shaper::builder(Quota::per_second(1_000)).clock(clock.clone()).build();
    let mut waits = pin!(shaper.acquire());
    for waiting in [false, true] {
        let allocated = blocks(|| {
            for _ in 0..10 {
                clock.advance(INTERVAL);
                assert!(shaper.try_acquire().is_ok());
                assert!(matches!(shaper.try_acquire(), Err(Refused::TooSoon { .. })));
            }
        });
        assert_eq!(allocated, 0, "granted, and refused; after a wait: {waiting}");
        assert!(poll_once(waits.as_mut()).is_pending());
        let allocated = blocks(|| assert!(matches!(shaper.try_acquire(), Err(Refused::TooSoon { .. }))));
        assert_eq!(allocated, 0, "refused behind one who waits");
        clock.advance(INTERVAL);
        assert!(poll_once(waits.as_mut()).is_ready());
    }
}

fn a_free_permit_allocates_nothing() {
    let quota = Quota::per_hour(1).burst(100);
    #[cfg(feature = "tokio")]
    let runtime = paused();
    for timer in [Timer::Runtime, Timer::Precise, Timer::Manual(ManualClock::new())] {
        let shaper = Shaper::builder(quota).timer(timer).build();
        let take = || assert!(poll_once(pin!(shaper.acquire())).is_ready());
        let take_all = || {
            shaper.reset();
            (0..100).for_each(|_| take());
        };
        take_all();
        assert_eq!(blocks(take_all), 0, "outside a runtime");
        #[cfg(feature = "tokio")]
        assert_eq!(blocks(|| runtime.block_on(async { take_all() })), 0, "in a runtime");
    }
}

fn those_who_wait_on_a_manual_clock_allocate_nothing_after_a_while() {
    let clock = ManualClock::new();
    let shaper = Shaper::builder(Quota::per_second(1_000)).clock(clock.clone()).build();
    let mut line = Line::new(&shaper, 50);
    let turn = |wait: Pin<&mut Acquire<'_>>| {
        clock.advance(INTERVAL);
        assert!(matches!(poll_once(wait), Poll::Ready(Ok(_))));
    };
    line.go_round(2, turn);
    assert_eq!(blocks(|| line.go_round(20, turn)), 0);
}

fn those_who_wait_with_the_timer_thread_allocate_nothing_after_a_while() {
    let shaper = Shaper::builder(Quota::per_second(1_000)).timer(Timer::Precise).build();
    let mut line = Line::new(&shaper, 5);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let turn = |mut wait: Pin<&mut Acquire<'_>>| {
        loop {
            match wait.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(granted) => break assert!(granted.is_ok()),
                Poll::Pending => std::thread::park(),
            }
        }
    };
    line.go_round(2, turn);
    assert_eq!(blocks(|| line.go_round(10, turn)), 0);
}

#[cfg(feature = "tokio")]
fn those_who_wait_with_tokios_timer_allocate_nothing_after_a_while() {
    let (runtime, shaper) = (paused(), Shaper::new(Quota::per_second(1_000)));
    let _in_runtime = runtime.enter();
    let mut line = Line::new(&shaper, 50);
    let turn = |wait: Pin<&mut Acquire<'_>>| assert!(runtime.block_on(wait).is_ok());
    line.go_round(2, turn);
    assert_eq!(blocks(|| line.go_round(20, turn)), 0);
}

fn a_waiter_takes_no_more_than_its_place() {
    // As many as fill the slabs, whose room doubles: the timer thread has one alarm already.
    const WAITERS: usize = (1 << 12) - 1;
    #[cfg(feature = "tokio")]
    let runtime = paused();
    #[cfg(feature = "tokio")]
    let _in_runtime = runtime.enter();
    let tokio = cfg!(feature = "tokio");
    for (timer, has_alarm) in
        [(Timer::Runtime, !tokio), (Timer::Precise, true), (Timer::Manual(ManualClock::new()), true)]
    {
        let shaper = Shaper::builder(Quota::per_hour(1)).timer(timer.clone()).build();
        assert!(shaper.try_acquire().is_ok());
        let mut futures: Vec<_> = (0..WAITERS).map(|_| Box::pin(shaper.acquire())).collect();
        let before = HeapStats::get().curr_bytes;
        for future in &mut futures {
            assert!(poll_once(future.as_mut()).is_pending());
        }
        let each = (HeapStats::get().curr_bytes - before) / WAITERS;
        println!("{timer:?}: {each} bytes in the shaper, {} in the future", size_of::<Acquire<'_>>());
        assert!(each <= if has_alarm { 176 } else { 128 }, "{timer:?}: {each} bytes a waiter");
    }
}

fn a_table_of_keys_allocates_nothing_once_it_is_built() {
    let quota = |permits| Quota::new(permits, INTERVAL).unwrap();
    let names: Vec<String> = (0..1_000).map(|name| format!("client {name}")).collect();
    macro_rules! check {
        ($law:ident, $ask:ident) => {
            let table = Keyed::<String>::$law(quota(2)).max_keys(100).clock(ManualClock::new()).build().unwrap();
            let mut now = 0;
            let allocated = blocks(|| {
                let mut answers = [0; 3];
                // All names, all at rest after each round: first sights, hits, refusals, take-overs, and no room.
                for _ in 0..40 {
                    now += 3 * u64::try_from(INTERVAL.as_nanos()).unwrap();
                    for name in &names {
                        for _ in 0..3 {
                            match table.$ask(name.as_str(), now) {
                                Ok(_) => answers[0] += 1,
                                Err(Refused::TooSoon { .. }) => answers[1] += 1,
                                Err(_) => answers[2] += 1,
                            }
                        }
                        assert!(table.peek_at(name.as_str(), 3, now).is_err());
                        assert!(table.available_at(name.as_str(), now) <= 2);
                    }
                    assert!(table.len_at(now) >= 100);
                    // Often enough that words are brought forward before a version is used again.
                    table.set_quota_at(quota(2), now).unwrap();
                }
                assert!(answers.iter().all(|answers| *answers >= 100), "{answers:?}");
            });
            assert_eq!(allocated, 0, stringify!($law));
        };
    }
    check!(token_bucket, try_acquire_at);
    check!(fixed_window, try_acquire_at);
    check!(sliding_counter, try_acquire_at);
    check!(leaky_queue, schedule_at);
}

fn a_key_takes_no_more_than_32_bytes() {
    const KEYS: usize = 1_000_000;
    let before = HeapStats::get().curr_bytes;
    // The same places in every run.
    let hasher = BuildHasherDefault::<DefaultHasher>::new();
    let table = Keyed::<u64>::token_bucket(Quota::per_hour(1)).max_keys(KEYS).hasher(hasher).build().unwrap();
    let built = HeapStats::get().curr_bytes;
    let refused = (0..KEYS as u64).filter(|key| table.try_acquire_at(key, 0).is_err()).count();
    // At the very end of filling about one newcomer in 100,000 finds no place.
    assert!(refused <= 10, "{refused} of {KEYS}");
    assert_eq!(table.len_at(0), KEYS - refused);
    let filled = HeapStats::get().curr_bytes;
    println!("{} bytes a key, {refused} of {KEYS} refused", (filled - before) as f64 / KEYS as f64);
    assert_eq!(filled, built, "keys take nothing more");
    assert!(
        filled - before <= table.memory() && table.memory() <= 32 * KEYS,
        "{} of {}",
        filled - before,
        table.memory()
    );
}

/// Several who wait in turn, each in a place of memory of its own that is used again.
struct Line<'a> {
    shaper: &'a Shaper,
    places: Vec<Pin<Box<Option<Acquire<'a>>>>>,
}

impl<'a> Line<'a> {
    fn new(shaper: &'a Shaper, places: usize) -> Self {
        let mut line = Self { shaper, places: (0..places).map(|_| Box::pin(None)).collect() };
        // The first needs no place in line.
        assert!(poll_once(pin!(shaper.acquire())).is_ready());
        for place in 0..places {
            line.enter(place);
        }
        line
    }

    fn enter(&mut self, place: usize) {
        let place = &mut self.places[place];
        place.set(Some(self.shaper.acquire()));
        // Where the machine has stalled it may be ready at once. Polled again, it asks for another permit.
        let _ = poll_once(place.as_mut().as_pin_mut().unwrap());
    }

    /// Lets everybody have its turn, so many times, and stand in line again after it.
    fn go_round(&mut self, times: usize, turn: impl Fn(Pin<&mut Acquire<'a>>)) {
        for _ in 0..times {
            for place in 0..self.places.len() {
                turn(self.places[place].as_mut().as_pin_mut().unwrap());
                self.enter(place);
            }
        }
    }
}

fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(feature = "tokio")]
fn paused() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

fn keys_with_laws_of_their_own_take_no_more_than_the_table_tells() {
    let bytes = || HeapStats::get().curr_bytes;
    let before = bytes();
    let table = Keyed::<u64>::sliding_log(Quota::per_second(5)).max_keys(1_000_000).build().unwrap();
    let come = |keys: std::ops::Range<u64>, now: u64| {
        keys.for_each(|key| table.try_acquire_at(&key, now * 1_000_000_000).unwrap());
        let (took, told) = (bytes() - before, table.memory());
        assert!(took <= told && told <= took + took / 5, "{took} of {told} told");
        told
    };
    // As the last ones come, those at rest go.
    let taken = [come(0..0, 0), come(0..100, 0), come(100..20_000, 0), come(20_000..30_000, 1)];
    let each = (taken[2] - taken[0]) / 20_000;
    assert!((1_000..2_000).contains(&each), "{each} bytes a key");
    assert!(taken[3] < taken[2] * 2 / 3, "{taken:?}");
}
