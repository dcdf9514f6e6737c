//! How a table of keys is configured.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::marker::PhantomData;

use super::Keyed;
use super::law::{ByKey, KeyedLaw, OneQuota, PerKey, Plans};
use crate::algorithm::Gcra;
use crate::clock::{Clock, DefaultClock};
use crate::quota::{Quota, QuotaError};

/// How many keys may be busy at once, if nothing is said.
const MAX_KEYS: usize = 1 << 16;

/// What becomes of a newcomer where all places are taken by busy keys. See [`KeyedBuilder::when_full`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenFull {
    /// It is refused, with [`Refused::NoRoom`](crate::Refused::NoRoom). The default.
    #[default]
    Refuse,
    /// All those newcomers share one state, as if they were one more key. One who finds a place later begins with what is left of it.
    Share,
}

/// Configures a [`Keyed`]. Made by [`Keyed::token_bucket`] and its relatives.
///
/// # Examples
///
/// ```
/// use std::net::IpAddr;
/// use tollgate::{Keyed, ManualClock, Quota, WhenFull};
///
/// let per_ip = Keyed::<IpAddr>::token_bucket(Quota::per_second(10).burst(20))
///     .max_keys(1_000_000)
///     .when_full(WhenFull::Share)
///     .clock(ManualClock::new())
///     .build()?;
/// assert_eq!(per_ip.len(), 0);
/// # Ok::<(), tollgate::KeyedError>(())
/// ```
#[must_use]
pub struct KeyedBuilder<K: ?Sized, A: KeyedLaw = Gcra, C = DefaultClock, S = RandomState> {
    quota: Quota,
    max_keys: usize,
    when_full: WhenFull,
    clock: C,
    hasher: S,
    places: usize,
    plans: <A::Plans as Plans>::Of<K>,
    key: PhantomData<fn(&K)>,
}

impl<K: ?Sized, A: OneQuota> KeyedBuilder<K, A> {
    pub(super) fn new(quota: Quota) -> Self {
        Self {
            quota,
            max_keys: MAX_KEYS,
            when_full: WhenFull::Refuse,
            clock: DefaultClock,
            hasher: RandomState::new(),
            places: usize::MAX,
            plans: (),
            key: PhantomData,
        }
    }
}

impl<K: ?Sized, A: KeyedLaw, C, S> KeyedBuilder<K, A, C, S> {
    /// Sets how many keys may be *busy* at once: those of which something still counts. The default is 65,536.
    ///
    /// Keys at rest need no place. A client of 10 per second with a burst of 20 is busy for two seconds after its last request at
    /// most, so count the clients of two seconds. The memory for them is taken when the table is built, 32 bytes a key; a
    /// [`SlidingLog`](crate::SlidingLog) and a table with [`quota_for`](Self::quota_for) take it as keys come. With 0 there is no
    /// room for anybody.
    ///
    /// As many find a place: of 120 million random keys that filled tables of 10 to a million, none was refused early (the example
    /// `keys` measures that). How many find one beyond `keys` is up to chance: a table of 10,000 says no first at 1.7 times as many.
    pub fn max_keys(self, keys: usize) -> Self {
        Self { max_keys: keys, ..self }
    }

    /// Sets what becomes of a newcomer where all places are taken by busy keys. A busy key never loses its place.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Keyed, Quota, Refused, WhenFull};
    ///
    /// let strict = Keyed::<str>::token_bucket(Quota::per_hour(1)).max_keys(0).build()?;
    /// assert!(matches!(strict.try_acquire("ann"), Err(Refused::NoRoom { .. })));
    ///
    /// let shared = Keyed::<str>::token_bucket(Quota::per_hour(1)).max_keys(0).when_full(WhenFull::Share).build()?;
    /// shared.try_acquire("ann")?;
    /// assert!(shared.try_acquire("bob").is_err()); // ann had the one permit of all who find no place
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn when_full(self, policy: WhenFull) -> Self {
        Self { when_full: policy, ..self }
    }

    /// Sets how many callers may wait on each key; the next is refused with [`Refused::QueueFull`](crate::Refused::QueueFull). 0:
    /// nobody waits. Without it there is no bound. See [waiting](Keyed#waiting).
    ///
    /// # Examples
    ///
    #[cfg_attr(feature = "tokio", doc = "```")]
    #[cfg_attr(not(feature = "tokio"), doc = "```ignore")]
    /// use tollgate::{Keyed, Quota, Refused};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let tenants = Keyed::<str>::token_bucket(Quota::per_hour(1)).queue(0).build()?;
    /// tenants.acquire("acme").await?;
    /// assert!(matches!(tenants.acquire("acme").await, Err(Refused::QueueFull { waiting: 0, .. })));
    /// # Ok(())
    /// # }
    /// ```
    pub fn queue(self, callers: usize) -> Self {
        Self { places: callers, ..self }
    }

    /// Sets the clock.
    pub fn clock<D: Clock>(self, clock: D) -> KeyedBuilder<K, A, D, S> {
        let Self { quota, max_keys, when_full, clock: _, hasher, places, plans, key } = self;
        KeyedBuilder { quota, max_keys, when_full, clock, hasher, places, plans, key }
    }

    /// Sets what hashes the keys. The default is std's [`RandomState`].
    ///
    /// A key is known by 64 bits of its hash. Who could choose keys whose hashes are equal could use up what is another's, so take
    /// a hasher with random keys of its own where keys come from outside.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::hash::{BuildHasherDefault, DefaultHasher};
    /// use tollgate::{Keyed, Quota};
    ///
    /// // Numbers that nobody outside can choose.
    /// let hasher = BuildHasherDefault::<DefaultHasher>::default();
    /// let workers = Keyed::<u32>::token_bucket(Quota::per_second(10)).hasher(hasher).build()?;
    /// workers.try_acquire(&7)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn hasher<T: BuildHasher>(self, hasher: T) -> KeyedBuilder<K, A, C, T> {
        let Self { quota, max_keys, when_full, clock, hasher: _, places, plans, key } = self;
        KeyedBuilder { quota, max_keys, when_full, clock, hasher, places, plans, key }
    }

    /// Builds the table.
    ///
    /// # Errors
    ///
    /// [`KeyedError`] says what was wrong: a limit that the law does not take, more keys than a table takes, or no memory for them.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Keyed, KeyedError, Quota};
    ///
    /// let built = Keyed::<str>::token_bucket(Quota::per_second(1)).max_keys(usize::MAX).build();
    /// assert!(matches!(built, Err(KeyedError::TooManyKeys { .. })));
    /// ```
    pub fn build(self) -> Result<Keyed<K, A, C, S>, KeyedError> {
        A::check(&self.quota).map_err(KeyedError::Quota)?;
        let store = A::store(self.quota, self.max_keys, self.when_full)?;
        let Self { clock, hasher, places, plans, .. } = self;
        Ok(Keyed { store, plans, clock, hasher, places, key: PhantomData })
    }
}

impl<K: ?Sized, A: OneQuota, C, S> KeyedBuilder<K, A, C, S> {
    /// Lets each key have a quota of its own: `quota` is asked with every call, and says one, or `None` for the table's.
    ///
    /// It returns a [`Quota`] or an `Option<Quota>`, and runs outside every lock. It should be cheap, and say the same for the same key
    /// until the key's plan changes. A limit beyond what the law takes counts as the largest.
    ///
    /// When it says another quota than before, the debt of the key is carried in permits, as by
    /// [`set_quota`](crate::Limiter::set_quota), at the instant of that call: what was left stays left, cut to the new burst.
    /// [`Keyed::set_quota`] changes the quota of the keys for which it says `None`.
    ///
    /// # Cost
    ///
    /// Each key has a limiter of its own, in a map of sharded locks; see [`Keyed`]. The function is told the key itself, so
    /// such a table is looked up by its key type: for names write `Keyed<str>`, since a `Keyed<String>` would want a `&String`.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Keyed, Quota};
    ///
    /// let per_tenant = Keyed::<str>::token_bucket(Quota::per_second(1).burst(1))
    ///     .quota_for(|tenant| (tenant == "gold").then(|| Quota::per_second(100).burst(3)))
    ///     .build()?;
    /// let admitted = |tenant| (0..5).filter(|_| per_tenant.try_acquire_at(tenant, 0).is_ok()).count();
    /// assert_eq!((admitted("gold"), admitted("tin")), (3, 1));
    /// # Ok::<(), tollgate::KeyedError>(())
    /// ```
    pub fn quota_for<F, Q>(self, quota: F) -> KeyedBuilder<K, PerKey<A>, C, S>
    where
        F: Fn(&K) -> Q + Send + Sync + 'static,
        Q: Into<Option<Quota>>,
        PerKey<A>: KeyedLaw<Plans = ByKey>,
    {
        let Self { quota: of_all, max_keys, when_full, clock, hasher, places, plans: _, key } = self;
        let plans = Box::new(move |key: &K| quota(key).into());
        KeyedBuilder { quota: of_all, max_keys, when_full, clock, hasher, places, plans, key }
    }
}

impl<K: ?Sized, A: KeyedLaw, C: fmt::Debug, S> fmt::Debug for KeyedBuilder<K, A, C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedBuilder")
            .field("quota", &self.quota)
            .field("max_keys", &self.max_keys)
            .field("when_full", &self.when_full)
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}

/// Why a [`Keyed`] could not be built. Says what was wrong and what would be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyedError {
    /// The law does not take the quota.
    Quota(QuotaError),
    /// More keys than a table takes.
    TooManyKeys {
        /// The keys that were asked for.
        asked: usize,
        /// The most that it takes.
        most: usize,
    },
    /// There is no memory for so many keys.
    OutOfMemory {
        /// What they would take.
        bytes: usize,
    },
}

impl fmt::Display for KeyedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quota(error) => error.fmt(f),
            Self::TooManyKeys { asked, most } => write!(f, "{asked} busy keys: a table takes at most {most}"),
            Self::OutOfMemory { bytes } => write!(f, "no memory for {bytes} bytes: let fewer keys be busy at once"),
        }
    }
}

impl std::error::Error for KeyedError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Quota(error) => Some(error),
            Self::TooManyKeys { .. } | Self::OutOfMemory { .. } => None,
        }
    }
}

impl From<QuotaError> for KeyedError {
    fn from(error: QuotaError) -> Self {
        Self::Quota(error)
    }
}
