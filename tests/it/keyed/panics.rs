//! Code of the caller that panics, or calls the table again, does no harm.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use tollgate::{Clock, Gcra, Keyed, ManualClock, Nanos, PerKey, Quota};

thread_local! {
    /// How many more keys can be hashed, or times be told.
    static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
}

fn spend() {
    let left = LEFT.get();
    assert!(left > 0, "on purpose");
    LEFT.set(left - 1);
}

/// Panics with the next that is hashed or asked.
fn panics<T>(call: impl FnOnce() -> T) {
    LEFT.set(0);
    assert!(catch_unwind(AssertUnwindSafe(call)).is_err());
    LEFT.set(usize::MAX);
}

struct Key(u64);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        spend();
        self.0.hash(state);
    }
}

#[derive(Debug)]
struct Fragile(ManualClock);

impl Clock for Fragile {
    fn now(&self) -> Nanos {
        spend();
        self.0.now()
    }
}

#[test]
fn a_key_whose_hash_panics_wedges_nothing() {
    let slots = Keyed::<Key>::token_bucket(Quota::per_hour(3)).max_keys(1).build().unwrap();
    let logs = Keyed::<Key>::sliding_log(Quota::per_hour(3)).max_keys(8).build().unwrap();
    for key in 0..20 {
        let key = Key(key);
        panics(|| slots.try_acquire_at(&key, 0));
        panics(|| slots.available_at(&key, 0));
        panics(|| slots.refund_at(&key, 1, 0));
        panics(|| slots.reset_at(&key, 0));
        panics(|| slots.peek_at(&key, 1, 0));
        panics(|| logs.try_acquire_at(&key, 0));
        panics(|| logs.reset_at(&key, 0));
    }
    assert_eq!((slots.len_at(0), logs.len_at(0)), (0, 0));
    for key in 0..8 {
        let key = Key(key);
        assert_eq!([0; 4].map(|now| slots.try_acquire_at(&key, now).is_ok()), [true, true, true, false]);
        assert_eq!([0; 4].map(|now| logs.try_acquire_at(&key, now).is_ok()), [true, true, true, false]);
    }
}

#[test]
fn a_clock_that_panics_wedges_nothing() {
    let table = Keyed::<u64>::token_bucket(Quota::per_hour(3)).clock(Fragile(ManualClock::new())).build().unwrap();
    for _ in 0..20 {
        panics(|| table.try_acquire(&7));
        panics(|| table.set_quota(Quota::per_hour(1)));
        panics(|| table.reset(&7));
        panics(|| table.len());
    }
    assert_eq!([(); 4].map(|()| table.try_acquire(&7).is_ok()), [true, true, true, false]);
}

type Plans = Keyed<u64, PerKey<Gcra>, ManualClock>;

fn plans(quota: impl Fn(&u64) -> Option<Quota> + Send + Sync + 'static) -> Plans {
    let table = Keyed::<u64>::token_bucket(Quota::per_hour(3)).max_keys(100).clock(ManualClock::new());
    table.quota_for(quota).build().unwrap()
}

#[test]
fn a_plan_that_panics_wedges_nothing() {
    let table = plans(|_| {
        spend();
        None
    });
    for key in 0..100 {
        panics(|| table.try_acquire(&key));
        panics(|| table.available(&key));
        panics(|| table.refund(&key, 1));
        panics(|| table.reset(&key));
    }
    assert_eq!(table.len(), 0);
    for key in 0..100 {
        assert_eq!([(); 4].map(|()| table.try_acquire(&key).is_ok()), [true, true, true, false], "{key}");
    }
}

// arkavo-org/arkavo-edge PR 599
#[test]
fn a_plan_may_ask_the_table_that_asks_it() {
    let own: Arc<OnceLock<Arc<Plans>>> = Arc::default();
    let asks = Arc::clone(&own);
    let table = Arc::new(plans(move |key| {
        let table = asks.get()?;
        // Each key asks the one below it, down to the first: of the same shard or another.
        if let Some(below) = key.checked_sub(1) {
            let _ = table.try_acquire(&below);
            table.refund(&below, 1);
            assert!(table.len() <= 100);
            table.set_quota(Quota::per_hour(3)).unwrap();
        }
        // Nor does it keep its own key from itself.
        (*key > 4).then(|| Quota::per_hour(5))
    }));
    own.set(Arc::clone(&table)).unwrap();
    let granted = (0..10).filter(|_| table.try_acquire(&6).is_ok()).count();
    assert_eq!(granted, 5);
    assert_eq!((table.available(&5), table.available(&0)), (5, 3));
}
