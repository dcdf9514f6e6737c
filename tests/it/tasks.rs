//! What the shaper's tests share: tasks that are polled by hand, a record of who left when, and the law on a trace.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tollgate::{Acquire, Gcra, ManualClock, Nanos, Permit, Quota, Refused, Shaper, ShaperBuilder, Waitable};

pub(crate) type Answer<'a, A = Gcra> = Result<Permit<'a, A>, Refused>;

/// A shaper on a clock that is moved by hand and stands at zero.
pub(crate) fn by_hand(quota: Quota) -> (ManualClock, Shaper) {
    by_hand_with(quota, |builder| builder)
}

pub(crate) fn by_hand_with(
    quota: Quota,
    configure: impl FnOnce(ShaperBuilder) -> ShaperBuilder,
) -> (ManualClock, Shaper) {
    let clock = ManualClock::new();
    let shaper = configure(Shaper::builder(quota)).clock(clock.clone()).build();
    (clock, shaper)
}

/// Counts the calls of its waker.
#[derive(Default)]
pub(crate) struct Wakes(AtomicUsize);

impl Wakes {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A future that is polled by hand, with a waker that counts its calls.
pub(crate) struct Task<F> {
    future: Pin<Box<F>>,
    wakes: Arc<Wakes>,
}

impl<F: Future> Task<F> {
    pub(crate) fn new(future: F) -> Self {
        Self { future: Box::pin(future), wakes: Arc::default() }
    }

    pub(crate) fn poll(&mut self) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(&self.wakes));
        self.poll_with(&waker)
    }

    pub(crate) fn poll_with(&mut self, waker: &Waker) -> Poll<F::Output> {
        self.future.as_mut().poll(&mut Context::from_waker(waker))
    }

    /// How often its own waker was called.
    pub(crate) fn wakes(&self) -> usize {
        self.wakes.count()
    }
}

impl<T: Debug, F: Future<Output = Result<T, Refused>>> Task<F> {
    /// A request that waits in line after one poll.
    pub(crate) fn in_line(acquire: F) -> Self {
        let mut task = Self::new(acquire);
        assert!(task.waits());
        task
    }

    /// Polls it; true if it goes on waiting.
    pub(crate) fn waits(&mut self) -> bool {
        self.poll().is_pending()
    }

    /// Polls it; true if it is granted.
    pub(crate) fn leaves(&mut self) -> bool {
        matches!(self.poll(), Poll::Ready(Ok(_)))
    }

    /// Polls it and returns its permit.
    pub(crate) fn permit(&mut self) -> T {
        match self.poll() {
            Poll::Ready(Ok(permit)) => permit,
            other => panic!("not granted: {other:?}"),
        }
    }

    /// Polls it and returns why it is refused.
    pub(crate) fn refusal(&mut self) -> Refused {
        match self.poll() {
            Poll::Ready(Err(refused)) => refused,
            other => panic!("not refused: {other:?}"),
        }
    }
}

/// Tasks that are polled when they were woken, in the order of the calls of their wakers, as an executor does it.
pub(crate) struct Crowd<'a, A: Waitable = Gcra> {
    tasks: Vec<Option<Pin<Box<Acquire<'a, A>>>>>,
    woken: Arc<Mutex<VecDeque<usize>>>,
    polls: usize,
}

struct Name {
    of: usize,
    woken: Arc<Mutex<VecDeque<usize>>>,
}

impl Wake for Name {
    fn wake(self: Arc<Self>) {
        self.woken.lock().unwrap().push_back(self.of);
    }
}

impl<A: Waitable> Default for Crowd<'_, A> {
    fn default() -> Self {
        Self { tasks: Vec::new(), woken: Arc::default(), polls: 0 }
    }
}

impl<'a, A: Waitable> Crowd<'a, A> {
    /// Adds a task, which is polled by the next [`run`](Self::run), and returns its number.
    pub(crate) fn push(&mut self, acquire: Acquire<'a, A>) -> usize {
        let task = self.tasks.len();
        self.tasks.push(Some(Box::pin(acquire)));
        self.woken.lock().unwrap().push_back(task);
        task
    }

    /// Polls the woken until nobody is woken any more, and returns who was answered what, in order.
    pub(crate) fn run(&mut self) -> Vec<(usize, Answer<'a, A>)> {
        let mut answers = Vec::new();
        loop {
            let next = self.woken.lock().unwrap().pop_front();
            let Some(of) = next else { return answers };
            let Some(task) = &mut self.tasks[of] else { continue };
            self.polls += 1;
            let waker = Waker::from(Arc::new(Name { of, woken: Arc::clone(&self.woken) }));
            if let Poll::Ready(answer) = task.as_mut().poll(&mut Context::from_waker(&waker)) {
                self.tasks[of] = None;
                answers.push((of, answer));
            }
        }
    }

    /// Runs and returns the numbers of those that were granted; nobody may be refused.
    pub(crate) fn granted(&mut self) -> Vec<usize> {
        let granted = |(of, answer): (usize, Answer<'_, A>)| answer.map(|_| of).expect("granted");
        self.run().into_iter().map(granted).collect()
    }

    /// Moves the clock by `step`, `steps` times, and returns who left at which step; nobody may be refused.
    pub(crate) fn granted_while(&mut self, clock: &ManualClock, step: Duration, steps: u64) -> Vec<(usize, u64)> {
        let mut left: Vec<_> = self.granted().into_iter().map(|of| (of, 0)).collect();
        for passed in 1..=steps {
            clock.advance(step);
            left.extend(self.granted().into_iter().map(|of| (of, passed)));
        }
        left
    }

    /// Drops a task.
    pub(crate) fn cancel(&mut self, of: usize) {
        self.tasks[of] = None;
    }

    /// How many polls there were.
    pub(crate) fn polls(&self) -> usize {
        self.polls
    }
}

/// Checks the law of the shaper on grants in the order in which they took effect, in exact integers: for all i <= j,
/// `n_i*T + ... + n_j*T <= max(burst, largest n)*T + catch_up + (now_j - now_i)`.
pub(crate) fn assert_law(grants: &[(Nanos, u64)], quota: Quota, burst: u64, catch_up: Duration) {
    // Everything times the permits per period, so that T is a whole number.
    let nanos = |span: Duration| i128::try_from(span.as_nanos()).expect("fits");
    let (period, permits) = (nanos(quota.period()), i128::from(quota.permits()));
    let largest = grants.iter().map(|grant| grant.1).max().unwrap_or(0);
    let most = i128::from(burst.max(largest)) * period + nanos(catch_up) * permits;
    let (mut paid, mut least) = (0i128, i128::MAX);
    for (index, &(now, n)) in grants.iter().enumerate() {
        let now = i128::from(now.get()) * permits;
        least = least.min(paid - now);
        paid += i128::from(n) * period;
        let excess = paid - now - least - most;
        assert!(excess <= 0, "grant {index} at {now} is {excess} too early: {grants:?}");
    }
}

/// Pseudo-random numbers from a seed (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// True once in `times`, on average.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// An index into `len` values.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("below a usize")
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }
}

#[cfg(feature = "tokio")]
pub(crate) use paused::*;

#[cfg(feature = "tokio")]
mod paused {
    use super::*;
    use tokio::task::JoinHandle;
    use tokio::time::Instant;

    /// Who left when, in milliseconds since the record was begun, on the clock of the runtime.
    #[derive(Clone)]
    pub(crate) struct Record {
        start: Instant,
        lines: Arc<Mutex<Vec<(usize, u64)>>>,
    }

    impl Record {
        pub(crate) fn begin() -> Self {
            Self { start: Instant::now(), lines: Arc::default() }
        }

        /// Milliseconds since the beginning. Times are whole milliseconds, or the test is wrong.
        pub(crate) fn now(&self) -> u64 {
            let passed = self.start.elapsed();
            assert_eq!(passed.subsec_nanos() % 1_000_000, 0, "{passed:?} is not a whole millisecond");
            u64::try_from(passed.as_millis()).expect("fits")
        }

        pub(crate) fn note(&self, who: usize) {
            let now = self.now();
            self.lines.lock().unwrap().push((who, now));
        }

        /// A task that asks for `n` and notes when it gets them.
        pub(crate) fn spawn(&self, who: usize, shaper: &Arc<Shaper>, n: u64) -> JoinHandle<Result<(), Refused>> {
            let (record, acquire) = (self.clone(), Arc::clone(shaper).acquire_n_owned(n));
            tokio::spawn(async move {
                let _permit = acquire.await?;
                record.note(who);
                Ok(())
            })
        }

        /// Sleeps until `at` milliseconds.
        pub(crate) async fn until(&self, at: u64) {
            tokio::time::sleep_until(self.start + Duration::from_millis(at)).await;
        }

        /// What was noted so far, in order.
        pub(crate) fn lines(&self) -> Vec<(usize, u64)> {
            self.lines.lock().unwrap().clone()
        }
    }

    /// Lets the other tasks of the runtime run until `waiting` of them wait in line.
    pub(crate) async fn until_waiting(shaper: &Shaper, waiting: usize) {
        for _ in 0..10_000 {
            if shaper.waiting() == waiting {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("{} in line, not {waiting}", shaper.waiting());
    }

    /// What a [`Watched`] future costs.
    #[derive(Default)]
    pub(crate) struct Costs {
        polls: AtomicUsize,
        wakes: AtomicUsize,
    }

    impl Costs {
        pub(crate) fn polls(&self) -> usize {
            self.polls.load(Ordering::SeqCst)
        }

        pub(crate) fn wakes(&self) -> usize {
            self.wakes.load(Ordering::SeqCst)
        }
    }

    /// Counts the polls of a future and the calls of its waker.
    pub(crate) struct Watched<F> {
        future: Pin<Box<F>>,
        costs: Arc<Costs>,
        last: Option<(Waker, Waker)>,
    }

    struct Counted {
        waker: Waker,
        costs: Arc<Costs>,
    }

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {
            self.costs.wakes.fetch_add(1, Ordering::SeqCst);
            self.waker.wake_by_ref();
        }
    }

    impl<F: Future> Watched<F> {
        pub(crate) fn new(future: F, costs: &Arc<Costs>) -> Self {
            Self { future: Box::pin(future), costs: Arc::clone(costs), last: None }
        }
    }

    impl<F: Future> Future for Watched<F> {
        type Output = F::Output;

        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
            let this = &mut *self;
            this.costs.polls.fetch_add(1, Ordering::SeqCst);
            let same = this.last.take().filter(|(outer, _)| outer.will_wake(cx.waker()));
            let (outer, inner) = same.unwrap_or_else(|| {
                let counted = Counted { waker: cx.waker().clone(), costs: Arc::clone(&this.costs) };
                (cx.waker().clone(), Waker::from(Arc::new(counted)))
            });
            let result = this.future.as_mut().poll(&mut Context::from_waker(&inner));
            this.last = Some((outer, inner));
            result
        }
    }
}
