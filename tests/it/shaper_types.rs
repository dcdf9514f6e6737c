//! What the types promise: where they may go and how large they are.

use std::marker::{PhantomData, PhantomPinned};
use std::mem::size_of;
use std::sync::Arc;

use tollgate::{
    Acquire, AcquireOwned, FixedWindowLaw, Gcra, OwnedPermit, Permit, Quota, Shaper, ShaperBuilder, SlidingCounterLaw,
    SlidingLogLaw,
};

const fn send_sync<T: Send + Sync>() {}
const fn lives_on<T: 'static>() {}

macro_rules! waits_go_to_any_thread {
    ($($law:ty),*) => {
        const _: () = {$(
            send_sync::<Shaper<$law>>();
            send_sync::<ShaperBuilder<$law>>();
            send_sync::<Permit<'_, $law>>();
            send_sync::<OwnedPermit<$law>>();
            send_sync::<Acquire<'_, $law>>();
            send_sync::<AcquireOwned<$law>>();
            lives_on::<AcquireOwned<$law>>();
            lives_on::<OwnedPermit<$law>>();
            lives_on::<Permit<'static, $law>>();
        )*};
    };
}

waits_go_to_any_thread!(Gcra, FixedWindowLaw, SlidingCounterLaw, SlidingLogLaw);

/// Tells whether a type is `Unpin`.
struct Probe<T>(PhantomData<T>);

impl<T: Unpin> Probe<T> {
    const UNPIN: bool = true;
}

trait Otherwise {
    const UNPIN: bool = false;
}

impl<T> Otherwise for Probe<T> {}

#[test]
fn permits_are_unpin_and_waits_are_as_their_sleep_is() {
    const { assert!(Probe::<Permit<'_>>::UNPIN && Probe::<OwnedPermit>::UNPIN && Probe::<Shaper>::UNPIN) };
    const { assert!(!Probe::<PhantomPinned>::UNPIN) };
    // tokio's sleep is linked into its timer, and must not move.
    assert_eq!(Probe::<Acquire<'_>>::UNPIN, cfg!(not(feature = "tokio")));
    assert_eq!(Probe::<AcquireOwned>::UNPIN, cfg!(not(feature = "tokio")));
}

#[test]
fn a_wait_is_small() {
    println!(
        "Acquire {}, AcquireOwned {}, Permit {}, Shaper {}",
        size_of::<Acquire<'_>>(),
        size_of::<AcquireOwned>(),
        size_of::<Permit<'_>>(),
        size_of::<Shaper>(),
    );
    // About half of it is tokio's sleep.
    assert!(size_of::<Acquire<'_>>() <= 240, "{}", size_of::<Acquire<'_>>());
    assert_eq!(size_of::<AcquireOwned>(), size_of::<Acquire<'_>>());
    assert!(size_of::<Permit<'_>>() <= 40);
}

#[test]
fn an_owned_wait_keeps_its_shaper_alive() {
    let shaper = Arc::new(Shaper::builder(Quota::per_second(1)).clock(tollgate::ManualClock::new()).build());
    let weak = Arc::downgrade(&shaper);
    let wait = shaper.acquire_owned();
    assert!(weak.upgrade().is_some());
    drop(wait);
    assert!(weak.upgrade().is_none());
}

#[test]
fn they_say_what_they_are() {
    let shaper = Shaper::builder(Quota::per_second(5)).clock(tollgate::ManualClock::new()).build();
    let shown = format!("{shaper:?} {:?} {:?}", shaper.acquire_n(3), shaper.try_acquire().unwrap());
    for part in ["Shaper { quota", "Acquire { permits: 3", "Permit { permits: 1"] {
        assert!(shown.contains(part), "{shown}");
    }
}
