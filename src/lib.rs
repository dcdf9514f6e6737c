//! An in-process rate limiter: lock-free decisions on one atomic word, and async pacing in first-come order.
//!
//! Threads and tasks share one `Arc`. Either they ask and get yes or no at once (*policing*: [`Limiter`]), or they wait for a
//! permit that is handed out in order and at an even pace (*shaping*: [`Shaper`]). Threads and tasks wait in one line.
//!
//! ```
//! use std::sync::Arc;
//! use tollgate::{Quota, Shaper, TokenBucket};
//!
//! # async fn call_the_service() {}
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), tollgate::Refused> {
//! let limiter = Arc::new(TokenBucket::new(Quota::per_second(100).burst(20)));
//! limiter.try_acquire()?;
//!
//! let shaper = Arc::new(Shaper::builder(Quota::per_second(50)).queue(1_000).build());
//! let _permit = shaper.acquire().await?;
//! call_the_service().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Which one do I want?
//!
//! | what for | type |
//! |---|---|
//! | a yes or no at once, bursts allowed up to a size: API clients, log lines | [`TokenBucket`] |
//! | the same, thought of as a bucket that leaks and must not overflow | [`LeakyBucket`], another name for it |
//! | at most so many in each window of the clock, easy to explain; twice as many across a seam | [`FixedWindow`] |
//! | at most so many in every span, to the nanosecond: logins, costly calls, limits up to a million | [`SlidingLog`] |
//! | about so many in any span, for limits up to 2^28 | [`SlidingCounter`] |
//! | the times at which calls should start, for a queue or a timer of your own | [`LeakyQueue`] |
//! | calls that should wait for their turn: a fragile service, a paced job | [`Shaper`] |
//! | the same for a provider that counts by the minute, wherever its minute begins | [`Shaper::over`] a [`SlidingLog`] |
//! | the same under another law | [`Shaper::over`] a limiter |
//! | a budget for each key, to ask or to wait for: user, tenant, route; clients by address are [`IpPrefix`]es | [`Keyed`] |
//!
//! Mistakes that are often made, and what is better:
//!
//! - *A fixed window where a limit protects something*, such as logins: ten pass within three seconds at five per ten, around the
//!   seam between two windows. Take a [`SlidingLog`], or a [`TokenBucket`] with a small burst.
//! - *A log for a huge limit*: it keeps a time for each permit. Take a [`SlidingCounter`], which keeps two counts.
//! - *A burst left at its default*: `Quota::per_hour(1_000)` lets a caller who idled for an hour take a thousand at once. Say
//!   `.burst(20)`.
//! - *Tokens that a timer adds, or that are floating point numbers*: here no timer runs and no number is rounded.
//!
//! The example `compare` replays requests through all of them, and draws what becomes of each.
//!
//! One limiter is one budget. A [`Keyed`] is one for each key, in bounded memory:
//!
//! ```
//! use tollgate::{Keyed, Quota};
//!
//! let users = Keyed::<String>::token_bucket(Quota::per_second(5).burst(5)).max_keys(10_000).build()?;
//! users.try_acquire("ann")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! And which clock? A limiter reads [`DefaultClock`] unless it is given another: [`CoarseClock`] where reading the time is most
//! of the cost, [`StdClock`] where a quota must hold to the second over days, `TokioClock` to follow tokio's paused clock,
//! [`ManualClock`] in tests, or your own [`Clock`]. A [`Shaper`] reads the clock of its [`Timer`].
//!
//! # Words
//!
//! A *permit* is the unit; a request costs n of them, all or nothing. A [`Quota`] is a rate (permits per period) and a
//! *burst*: the most that can pass at one instant from rest, never one more or less. For windows it is a *limit* and a window
//! length, the permits and their period. The *emission interval* T is period /
//! permits. A refusal, [`Refused`], carries the time after which it is worth coming back, if any time helps.
//!
//! A limiter counts departures: a permit is spent when it is granted. Dropping it gives nothing back, holding it delays nobody.
//! It bounds the rate and not how many calls are under way; for that there are semaphores.
//!
//! # Errors
//!
//! [`Refused`] comes from asking. From setting up come [`QuotaError`] (a zero period, a limit that the law does not take), for a
//! table of keys [`KeyedError`], and for prefixes of addresses [`PrefixTooLong`]. All are small `Copy` values, and `Box<dyn Error>`
//! takes each.
//!
//! # In a field, and behind a generic
//!
//! The law is a type; to choose it at run time, make an enum.
//!
//! ```
//! use std::error::Error;
//! use std::sync::LazyLock;
//! use tollgate::{Clock, Limiter, Policing, Quota, QuotaError, Refused};
//! use tollgate::{Shaper, SlidingLog, SlidingLogLaw, TokenBucket, Waitable};
//!
//! struct Client {
//!     logins: SlidingLog,
//!     provider: Shaper<SlidingLogLaw>,
//! }
//!
//! impl Client {
//!     fn new() -> Result<Self, QuotaError> {
//!         let provider = Shaper::over(SlidingLog::new(Quota::per_minute(600))?).build();
//!         Ok(Self { logins: SlidingLog::new(Quota::per_minute(5))?, provider })
//!     }
//! }
//!
//! fn call<A: Policing, C: Clock>(limiter: &Limiter<A, C>) -> Result<(), Refused> {
//!     limiter.try_acquire()
//! }
//!
//! fn send<A: Waitable>(shaper: &Shaper<A>) -> Result<(), Refused> {
//!     let _permit = shaper.acquire_blocking()?; // or, in an `async fn`, `acquire().await`
//!     Ok(())
//! }
//!
//! static LOG: LazyLock<TokenBucket> = LazyLock::new(|| TokenBucket::new(Quota::per_second(1).burst(5)));
//!
//! fn main() -> Result<(), Box<dyn Error>> {
//!     let client = Client::new()?;
//!     call(&client.logins)?;
//!     send(&client.provider)?;
//!     if LOG.try_acquire().is_ok() {
//!         eprintln!("sent");
//!     }
//!     Ok(())
//! }
//! ```
//!
//! The same for keys. The default law of a [`Keyed`] is that of a token bucket, called [`Gcra`]; `quota_for` makes it [`PerKey`].
//! With `str` as the key type no `String` is made to ask.
//!
//! ```
//! use std::error::Error;
//! use std::hash::Hash;
//! use std::sync::{Arc, LazyLock};
//! use std::time::Duration;
//! use tollgate::{Clock, Gcra, IpPrefix, Keyed, KeyedError, PerKey, Quota, Refused, SlidingLogLaw};
//!
//! struct App {
//!     logins: Keyed<IpPrefix, SlidingLogLaw>,
//!     tenants: Keyed<str, PerKey<Gcra>>,
//!     hosts: Arc<Keyed<str>>,
//! }
//!
//! impl App {
//!     fn new() -> Result<Self, KeyedError> {
//!         let gold = |tenant: &str| (tenant == "gold").then(|| Quota::per_second(100).burst(50));
//!         Ok(Self {
//!             logins: Keyed::sliding_log(Quota::per_minute(5)).build()?,
//!             tenants: Keyed::token_bucket(Quota::per_second(5)).quota_for(gold).build()?,
//!             hosts: Arc::new(Keyed::token_bucket(Quota::per_second(10).burst(1)).build()?),
//!         })
//!     }
//!
//!     async fn call(&self, host: &str) -> Result<(), Refused> {
//!         self.hosts.acquire(host).within(Duration::from_secs(2)).await
//!     }
//! }
//!
//! fn admit<K: Hash + ?Sized, C: Clock>(table: &Keyed<K, Gcra, C>, key: &K) -> Result<(), Refused> {
//!     table.try_acquire(key)
//! }
//!
//! static LOG: LazyLock<Keyed<str>> = LazyLock::new(|| {
//!     let each_target = Quota::per_second(1).burst(5);
//!     Keyed::token_bucket(each_target).max_keys(1_000).build().expect("memory for a thousand keys")
//! });
//!
//! fn main() -> Result<(), Box<dyn Error>> {
//!     let app = App::new()?;
//!     app.logins.try_acquire(&IpPrefix::of([203, 0, 113, 9]))?;
//!     app.tenants.try_acquire("gold")?;
//!     admit(&app.hosts, "example.org")?;
//!     if LOG.try_acquire("db").is_ok() {
//!         eprintln!("sent");
//!     }
//!     app.hosts.set_quota(Quota::per_second(20).burst(1))?; // while it is in use
//!     Ok(())
//! }
//! ```
//!
//! # Testing your own code
//!
//! - Give the limiter a [`ManualClock`] (`with_clock`, or `clock` in the builders) and move it: no waiting, exact results. An `Arc`
//!   of a clock is a clock, so the test can keep one to move. A shaper on a manual clock ([`Timer::Manual`]) needs no runtime;
//!   moving the clock wakes the waits that are due.
//! - Under tokio's paused clock (its feature `test-util`) tasks that wait for a [`Shaper`] follow by themselves, unless it has
//!   [`Timer::Precise`]. A [`TokenBucket`] or a [`Keyed`] on the default clock does not; give it a `TokioClock`.
//! - While a *thread* waits (`acquire_blocking`) nothing moves tokio's paused clock by itself, in `spawn_blocking` neither:
//!   somebody has to call `tokio::time::advance`. A thread outside the runtime reads the real clock. To test threads, give the
//!   shaper a [`ManualClock`] and move it from another thread.
//! - Or give the time yourself, with the `..._at` methods.
//!
//! # Guarantees
//!
//! - **Exact.** Never a permit more than the law allows, under any interleaving, clock and input. Decisions are made in
//!   integers, in a unit in which T, n*T and burst*T are whole; where a quota does not fit such a unit, its rate is lower by a
//!   fraction that [`Quota::rate_loss_ppb`] tells (for a shaper, ask with its burst written out), and its burst is never
//!   short.
//! - **Fair and cancel-safe.** First come, first served. A wait may be dropped at any moment; it leaves no hole and no debt.
//! - **On pace.** The schedule is anchored, so a late timer does not lower the rate that is delivered.
//! - **Any time is valid.** Times are nanoseconds since a clock's origin, [`Nanos`]; 0, Unix time and `u64::MAX` included. A
//!   clock that stands still or goes back admits nothing extra.
//! - **No panics of its own.** Bad configuration is a typed error; everything else is an answer. (One of tokio's is caught, see
//!   [`Shaper`].)
//!
//! # Progress and memory ordering
//!
//! Decisions of a [`Limiter`], and of a [`Shaper`] while nobody waits, are lock-free, with the exceptions that [`Limiter`]
//! names; waiting takes a short lock. The word is exchanged with acquire and release, so a call that was admitted and wrote it
//! happens before the admitted calls that write it later.
//!
//! # How it was checked
//!
//! The words and the queue are explored with loom and shuttle from these very sources, and compared with naive references
//! in exact rationals. The crate has no unsafe code (`forbid(unsafe_code)`); it was not run under Miri, and its arithmetic is
//! tested at the edges rather than proved.
//!
//! # Features
//!
//! Both are on by default, and additive: no feature changes a type or takes a method away.
//!
//! - `tokio`: waits inside a tokio runtime use its timer and follow its paused clock ([`Timer::Runtime`]); adds `TokioClock`.
//!   Without it all waits use one shared timer thread.
//! - `quanta`: [`DefaultClock`] reads the processor's time stamp counter. Without it, std's monotonic clock.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod algorithm;
mod cell;
mod clock;
mod interval;
mod keyed;
mod limiter;
#[cfg(tollgate_model)]
pub mod model;
mod quota;
mod refused;
mod shaper;
mod snapshot;
mod sync;
mod time;
mod timer;
mod word;

pub use algorithm::{
    Algorithm, AnyQuota, FixedWindowLaw, Gcra, LeakyQueueLaw, Policing, SlidingCounterLaw, SlidingLogLaw,
};
#[cfg(feature = "tokio")]
pub use clock::TokioClock;
pub use clock::{Clock, CoarseClock, DefaultClock, ManualClock, StdClock};
pub use keyed::{
    AcquireKey, IpPrefix, IpPrefixes, Keyed, KeyedBuilder, KeyedError, KeyedLaw, KeyedPolicing, KeyedSchedule,
    KeyedWaitable, LookUp, OneQuota, PerKey, PrefixTooLong, WhenFull,
};
pub use limiter::{
    FixedWindow, LeakyBucket, LeakyQueue, Limiter, LimiterBuilder, SlidingCounter, SlidingLog, TokenBucket,
};
pub use quota::{Quota, QuotaError};
pub use refused::Refused;
pub use shaper::{Acquire, AcquireOwned, OwnedPermit, Permit, Shaper, ShaperBuilder, Waitable};
pub use snapshot::Snapshot;
pub use time::Nanos;
pub use timer::Timer;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
