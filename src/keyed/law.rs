//! Which laws a table of keys keeps, and where.
#![expect(private_bounds, private_interfaces, reason = "sealed: the traits are public by name only")]

use std::borrow::Borrow;
use std::marker::PhantomData;

use super::map::Map;
use super::table::Table;
use super::waiting::{Home, Queued, Visit};
use super::{KeyedError, WhenFull};
use crate::algorithm::{Algorithm, FixedWindowLaw, Gcra, LeakyQueueLaw, SlidingCounterLaw, SlidingLogLaw};
use crate::quota::{Quota, QuotaError};
use crate::refused::Refused;
use crate::shaper::pace::Waitable;
use crate::shaper::queue::Queue;
use crate::snapshot::Snapshot;
use crate::time::Nanos;

/// A law that a [`Keyed`](super::Keyed) can keep: every law of a [`Limiter`](crate::Limiter), and [`PerKey`] of one. Sealed: the
/// crate's own laws implement it, and nothing else can.
pub trait KeyedLaw: sealed::KeyedLaw {}

/// A law that says yes or no: all but a [`LeakyQueue`](crate::LeakyQueue). For code that is generic over tables.
///
/// # Examples
///
/// ```
/// use std::net::IpAddr;
/// use tollgate::{Clock, Keyed, KeyedPolicing, LookUp, Refused};
///
/// fn login<A, C>(table: &Keyed<IpAddr, A, C>, client: IpAddr) -> Result<(), Refused>
/// where
///     A: KeyedPolicing + LookUp<IpAddr, IpAddr>,
///     C: Clock,
/// {
///     table.try_acquire(&client)
/// }
/// # let table = Keyed::sliding_log(tollgate::Quota::per_minute(5)).build().unwrap();
/// # login(&table, "203.0.113.9".parse().unwrap()).unwrap();
/// ```
pub trait KeyedPolicing: sealed::KeyedLaw<Store: Police> + KeyedLaw {}

impl<A: KeyedLaw> KeyedPolicing for A where A::Store: Police {}

/// A law whose keys can be waited for: those that are [`KeyedPolicing`].
pub trait KeyedWaitable: sealed::KeyedLaw<Store: Wait> + KeyedPolicing {}

impl<A: KeyedLaw> KeyedWaitable for A where A::Store: Wait {}

/// A law that tells when: that of a [`LeakyQueue`](crate::LeakyQueue).
pub trait KeyedSchedule: sealed::KeyedLaw<Store: Schedule> + KeyedLaw {}

impl<A: KeyedLaw> KeyedSchedule for A where A::Store: Schedule {}

/// A law that has one quota for all keys.
pub trait OneQuota: KeyedLaw<Law = Self, Plans = OneForAll> + Algorithm + Queued {}

/// The law `A`, under a quota that each key has for itself. See [`KeyedBuilder::quota_for`](super::KeyedBuilder::quota_for).
#[derive(Debug)]
pub struct PerKey<A>(PhantomData<A>);

/// A law whose keys, of type `K`, are looked up as `Q`: as anything that they borrow as, or as they are if each key has its own
/// quota, since `quota_for` is told the key.
#[diagnostic::on_unimplemented(
    message = "the keys `{K}` of this `Keyed` can't be looked up as `{Q}`",
    note = "a table with `quota_for` is asked by its key type itself: `Keyed<str>` by `&str`"
)]
pub trait LookUp<K: ?Sized, Q: ?Sized>: KeyedLaw {
    #[doc(hidden)]
    fn asked(plans: &<Self::Plans as Plans>::Of<K>, fingerprint: u64, key: &Q) -> Asked;
}

/// A key, as its store knows it.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub(crate) fingerprint: u64,
    /// The quota that it has for itself.
    pub(crate) quota: Option<Quota>,
}

/// Who says which quota a key has.
pub trait Plans {
    type Of<K: ?Sized>;
}

/// Nobody: it is the table's.
#[derive(Debug)]
pub struct OneForAll;

/// A function of the key.
#[derive(Debug)]
pub struct ByKey;

impl Plans for OneForAll {
    type Of<K: ?Sized> = ();
}

impl Plans for ByKey {
    type Of<K: ?Sized> = Box<dyn Fn(&K) -> Option<Quota> + Send + Sync>;
}

pub(crate) mod sealed {
    use super::{KeyedError, Plans, Quota, QuotaError, Store, WhenFull};

    pub trait KeyedLaw {
        type Law;
        type Store: Store;
        type Plans: Plans;

        /// Whether the law takes a quota.
        fn check(quota: &Quota) -> Result<(), QuotaError>;

        fn store(quota: Quota, max_keys: usize, when_full: WhenFull) -> Result<Self::Store, KeyedError>;
    }
}

/// Where the states of keys are. Every call takes the time, and none runs code of the caller under a lock.
pub trait Store {
    fn peek(&self, key: Asked, n: u64, now: Nanos) -> Result<(), Refused>;
    fn snapshot(&self, key: Asked, now: Nanos) -> Snapshot;
    /// Changes the quota of all keys that have none of their own, to one that the law takes.
    fn set_quota(&self, quota: Quota, now: Nanos);
    fn quota(&self) -> Quota;
    /// How many keys are not at rest.
    fn len(&self, now: Nanos) -> usize;
    fn max_keys(&self) -> usize;
    /// In bytes.
    fn memory(&self) -> usize;
}

/// A store of a law that polices.
pub trait Police: Store {
    fn try_acquire(&self, key: Asked, n: u64, now: Nanos) -> Result<(), Refused>;
    fn refund(&self, key: Asked, n: u64, now: Nanos);
    fn reset(&self, key: Asked, now: Nanos);
}

/// A store of a law that tells when.
pub trait Schedule: Store {
    fn schedule(&self, key: Asked, n: u64, now: Nanos) -> Result<Nanos, Refused>;
}

/// A store of a law under which callers can wait.
pub trait Wait: Police + Home<Queue = Queue<Self::Law>> + Sized {
    type Law: Waitable;

    /// The queue of a key that owes something, for `places` callers. `None` if it owes nothing by now, so that it can be asked again.
    fn visit(&self, key: Asked, now: Nanos, places: usize) -> Option<Visit<'_, Self>>;

    /// How many wait on a key, after what is due has been granted.
    fn waiting(&self, key: Asked, now: Nanos) -> usize;
}

impl<A: OneQuota, K: ?Sized + Borrow<Q>, Q: ?Sized> LookUp<K, Q> for A {
    #[inline]
    fn asked((): &(), fingerprint: u64, _: &Q) -> Asked {
        Asked { fingerprint, quota: None }
    }
}

impl<A: OneQuota, K: ?Sized> LookUp<K, K> for PerKey<A>
where
    Self: KeyedLaw<Plans = ByKey>,
{
    #[inline]
    fn asked(plan: &<ByKey as Plans>::Of<K>, fingerprint: u64, key: &K) -> Asked {
        Asked { fingerprint, quota: plan(key) }
    }
}

impl<A: OneQuota> KeyedLaw for PerKey<A> {}

impl<A: OneQuota> sealed::KeyedLaw for PerKey<A> {
    type Law = A;
    type Store = Map<A>;
    type Plans = ByKey;

    fn check(quota: &Quota) -> Result<(), QuotaError> {
        A::check(quota)
    }

    fn store(quota: Quota, max_keys: usize, when_full: WhenFull) -> Result<Map<A>, KeyedError> {
        Map::new(quota, max_keys, when_full)
    }
}

/// What is said of each law: its store, and which quotas it takes.
macro_rules! keyed_law {
    ($law:ty, $store:ident, $check:expr) => {
        impl KeyedLaw for $law {}
        impl OneQuota for $law {}

        impl sealed::KeyedLaw for $law {
            type Law = Self;
            type Store = $store<Self>;
            type Plans = OneForAll;

            fn check(quota: &Quota) -> Result<(), QuotaError> {
                $check(quota)
            }

            fn store(quota: Quota, max_keys: usize, when_full: WhenFull) -> Result<$store<Self>, KeyedError> {
                $store::new(quota, max_keys, when_full)
            }
        }
    };
}

const ANY: fn(&Quota) -> Result<(), QuotaError> = |_| Ok(());

keyed_law!(Gcra, Table, ANY);
keyed_law!(FixedWindowLaw, Table, ANY);
keyed_law!(LeakyQueueLaw, Table, ANY);
keyed_law!(SlidingCounterLaw, Table, SlidingCounterLaw::check);
keyed_law!(SlidingLogLaw, Map, SlidingLogLaw::check);
