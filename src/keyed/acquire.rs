//! Waiting for a key as a future.

use std::fmt;
use std::future::Future;
use std::hash::{BuildHasher, Hash};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;

use super::Keyed;
use super::law::{Asked, KeyedWaitable, LookUp, Police, Wait};
use super::waiting::{Home, Visit};
use crate::algorithm::Gcra;
use crate::clock::{Clock, DefaultClock};
use crate::refused::Refused;
use crate::shaper::pace::Law;
use crate::shaper::queue::Queue;
use crate::shaper::ticket::{Desk, Ticket, yield_now_and_then};
use crate::time::Nanos;
use crate::timer::SleepByClock;

impl<K: ?Sized, A: KeyedWaitable, C: Clock, S: BuildHasher> Keyed<K, A, C, S> {
    /// Waits for one permit of a key. See [waiting](Self#waiting).
    ///
    /// # Errors
    ///
    /// The future ends with [`Refused`]: at once if there is no room for a new key, the line of the key is full, or nothing is ever
    /// admitted (a burst or limit of 0); later if a change of the quota makes the request too large. At rate 0 it stays pending
    /// until the quota changes.
    ///
    /// # Cancel safety
    ///
    /// See [`AcquireKey`].
    ///
    /// # Examples
    ///
    #[cfg_attr(feature = "tokio", doc = "```")]
    #[cfg_attr(not(feature = "tokio"), doc = "```ignore")]
    /// use tollgate::{Keyed, Quota, TokioClock};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let hosts = Keyed::<str>::token_bucket(Quota::per_second(10).burst(1)).clock(TokioClock).build()?;
    /// let start = tokio::time::Instant::now();
    /// for _ in 0..3 {
    ///     hosts.acquire("example.org").await?;
    ///     hosts.acquire("example.com").await?;
    /// }
    /// assert_eq!(start.elapsed().as_millis(), 200); // each at 0, 100 and 200 ms
    /// # Ok(())
    /// # }
    /// ```
    pub fn acquire<Q>(&self, key: &Q) -> AcquireKey<'_, A, C>
    where
        Q: Hash + ?Sized,
        A: LookUp<K, Q>,
    {
        self.acquire_n(key, 1)
    }

    /// Waits for `n` permits of a key, which leave together when all of them are there. `n` = 0 is granted at once and free.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire). `n` above the burst or limit is [`Refused::ExceedsCapacity`], at once.
    ///
    /// # Cancel safety
    ///
    /// See [`AcquireKey`].
    ///
    /// # Examples
    ///
    #[cfg_attr(feature = "tokio", doc = "```")]
    #[cfg_attr(not(feature = "tokio"), doc = "```ignore")]
    /// use tollgate::{Keyed, Quota, TokioClock};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let hosts = Keyed::<str>::token_bucket(Quota::per_second(10).burst(4)).clock(TokioClock).build()?;
    /// let start = tokio::time::Instant::now();
    /// hosts.acquire_n("example.org", 4).await?;
    /// hosts.acquire_n("example.org", 3).await?;
    /// assert_eq!(start.elapsed().as_millis(), 300);
    /// # Ok(())
    /// # }
    /// ```
    pub fn acquire_n<Q>(&self, key: &Q, n: u64) -> AcquireKey<'_, A, C>
    where
        Q: Hash + ?Sized,
        A: LookUp<K, Q>,
    {
        AcquireKey::new(&self.store, &self.clock, self.asked(key), self.places, n)
    }

    /// Waits for one permit of a key, but no longer than `limit`, counted from the first poll.
    ///
    /// If its place lies beyond that, it is refused on the first poll and takes no place; exactly `limit` is in time. A permit
    /// whose slot is in time is granted even if the timer tells of it later. If the place moves back afterwards (a slower
    /// quota), the answer comes at the deadline at the latest.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), and [`Refused::DeadlineTooSoon`] with the wait that it would have been; [`Refused::Never`] at
    /// rate 0.
    ///
    /// # Cancel safety
    ///
    /// See [`AcquireKey`].
    ///
    /// # Examples
    ///
    #[cfg_attr(feature = "tokio", doc = "```")]
    #[cfg_attr(not(feature = "tokio"), doc = "```ignore")]
    /// use std::time::Duration;
    /// use tollgate::{Keyed, Quota, Refused, TokioClock};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let hosts = Keyed::<str>::token_bucket(Quota::per_second(10).burst(1)).clock(TokioClock).build()?;
    /// hosts.acquire("example.org").await?;
    /// let refused = hosts.acquire_within("example.org", Duration::from_millis(99)).await;
    /// assert_eq!(refused, Err(Refused::DeadlineTooSoon { wait: Duration::from_millis(100) })); // at once
    /// hosts.acquire_within("example.org", Duration::from_millis(100)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn acquire_within<Q>(&self, key: &Q, limit: Duration) -> AcquireKey<'_, A, C>
    where
        Q: Hash + ?Sized,
        A: LookUp<K, Q>,
    {
        self.acquire_n_within(key, 1, limit)
    }

    /// Waits for `n` permits of a key, but no longer than `limit`. See [`acquire_n`](Self::acquire_n) and
    /// [`acquire_within`](Self::acquire_within).
    ///
    /// # Errors
    ///
    /// As those.
    ///
    /// # Cancel safety
    ///
    /// See [`AcquireKey`].
    pub fn acquire_n_within<Q>(&self, key: &Q, n: u64, limit: Duration) -> AcquireKey<'_, A, C>
    where
        Q: Hash + ?Sized,
        A: LookUp<K, Q>,
    {
        self.acquire_n(key, n).within(limit)
    }

    /// How many callers wait on a key.
    #[must_use]
    pub fn waiting<Q>(&self, key: &Q) -> usize
    where
        Q: Hash + ?Sized,
        A: LookUp<K, Q>,
    {
        self.store.waiting(self.asked(key), self.clock.now())
    }
}

pin_project! {
    /// Waits for permits of one key in first-come order. Returned by [`Keyed::acquire`](super::Keyed::acquire) and its relatives.
    ///
    /// It does nothing until it is polled, and has its place in line from the first poll. (Not from one for which a tokio task has
    /// used up its budget: the task yields first.) It does not borrow the key. Polled again after it was ready, it asks for
    /// another permit.
    ///
    /// # Cancel safety
    ///
    /// It may be dropped at any time. Dropped in line, it leaves no trace: those behind move up. Dropped after its permit was
    /// granted and before it was polled again, the permit goes to the next in line, unless a later one has left already; then
    /// it counts as used. One that is forgotten ([`std::mem::forget`]) stays in line, and takes its slot when its turn comes; the
    /// queue of its key stays too.
    #[must_use = "futures do nothing unless awaited"]
    pub struct AcquireKey<'a, A = Gcra, C = DefaultClock>
    where
        A: KeyedWaitable,
        C: Clock,
    {
        store: &'a A::Store,
        clock: &'a C,
        asked: Asked,
        places: usize,
        n: u64,
        limit: Option<Duration>,
        // The place in line, once it was not granted at once.
        ticket: Option<Ticket<AtQueue<'a, A::Store, C>>>,
        #[pin]
        sleep: SleepByClock,
    }
}

/// The queue of a key, for as long as there is a ticket of it, and the clock of the keys.
struct AtQueue<'a, H: Home, C> {
    visit: Visit<'a, H>,
    clock: &'a C,
}

impl<H: Home<Queue = Queue<A>>, A: Law, C: Clock> Desk for AtQueue<'_, H, C> {
    type Law = A;
    type Sleep = SleepByClock;

    fn queue(&self) -> &Queue<A> {
        &self.visit
    }

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn poll_until(&self, sleep: Pin<&mut SleepByClock>, until: Nanos, cx: &mut Context<'_>) -> Poll<()> {
        sleep.poll_until(self.clock, until, cx)
    }
}

impl<'a, A: KeyedWaitable, C: Clock> AcquireKey<'a, A, C> {
    pub(super) fn new(store: &'a A::Store, clock: &'a C, asked: Asked, places: usize, n: u64) -> Self {
        Self { store, clock, asked, places, n, limit: None, ticket: None, sleep: SleepByClock::new() }
    }

    /// Sets a time limit, counted from the first poll. See [`Keyed::acquire_within`](super::Keyed::acquire_within).
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }
}

impl<A: KeyedWaitable, C: Clock> Future for AcquireKey<'_, A, C> {
    type Output = Result<(), Refused>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if this.ticket.is_none() {
            // Before it asks: what is granted without a place could not be given back.
            ready!(yield_now_and_then(cx));
        }
        let ticket = loop {
            if let Some(ticket) = this.ticket {
                break ticket;
            }
            let now = this.clock.now();
            match this.store.try_acquire(*this.asked, *this.n, now) {
                Err(Refused::TooSoon { .. } | Refused::Never { .. }) => {}
                answer => return Poll::Ready(answer),
            }
            // None: it has become due, so ask again.
            if let Some(visit) = this.store.visit(*this.asked, now, *this.places) {
                *this.ticket = Some(Ticket::new(AtQueue { visit, clock: this.clock }, *this.n, *this.limit));
            }
        };
        let answer = ready!(ticket.poll(this.sleep.as_mut(), cx));
        *this.ticket = None;
        Poll::Ready(answer.map(drop))
    }
}

impl<A: KeyedWaitable, C: Clock> fmt::Debug for AcquireKey<'_, A, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcquireKey").field("permits", &self.n).finish_non_exhaustive()
    }
}
