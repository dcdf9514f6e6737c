//! Arithmetic, on clocks that stand still until they are moved.

use std::io;
use std::ops::RangeInclusive;
use std::time::Duration;

use ::tollgate::{ManualClock, TokenBucket};

use super::{case, verdict};
use crate::isolate::isolated;
use crate::peers::{
    Clocked, Law, better_bucket, governor, leaky_bucket, rate_net, ratelimit, throttle_net, throttlecrab, tollgate,
};
use crate::record::{Case, Row};
use crate::suites::{Emit, Size};

const LIMIT: Duration = Duration::from_secs(10);

/// More than any case allows: where to stop counting what is admitted without end.
const ENDLESS: u64 = if cfg!(test) { 2_000 } else { 2_000_000 };

/// So large that a product with an interval of a day can overflow.
const LARGE: u32 = if cfg!(test) { 1_000 } else { 1_000_000 };

type Make = fn(Law) -> Box<dyn Clocked>;

const SYSTEMS: [(&str, Make); 8] = [
    ("tollgate", |law| Box::new(tollgate::manual(law))),
    ("governor", |law| Box::new(governor::manual(law))),
    ("throttle-net", |law| Box::new(throttle_net::manual(law))),
    ("better-bucket", |law| Box::new(better_bucket::manual(law))),
    ("rate-net", |law| Box::new(rate_net::manual(law))),
    ("leaky-bucket", |law| Box::new(leaky_bucket::manual(law))),
    ("ratelimit", |law| Box::new(ratelimit::manual(law))),
    ("throttlecrab", |law| Box::new(throttlecrab::manual(law))),
];

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn run(size: Size, emit: Emit<'_>) -> io::Result<()> {
    emit(each(
        size,
        "large_burst",
        "1 a day, burst 1,000,000: what is admitted at once.",
        Law { permits: 1, period: seconds(86_400), burst: LARGE },
        LARGE.into()..=LARGE.into(),
        taken,
    ))?;
    emit(each(
        size,
        "fast_rate",
        "700,000,000 a second: what 1 µs brings back to an empty bucket. leaky-bucket refills once a millisecond at most, which it documents, and is left out.",
        Law::per_second(700_000_000).burst(10_000),
        700..=700,
        |limiter| {
            assert!(limiter.take(10_000), "the burst was there");
            limiter.advance(Duration::from_micros(1));
            taken(limiter)
        },
    ))?;
    emit(each(
        size,
        "burst_of_1",
        "10 per 100 s, burst 1: what is admitted at once. Counting stops at 2,000,000.",
        Law { permits: 10, period: seconds(100), burst: 1 },
        1..=1,
        taken,
    ))?;
    emit(each(
        size,
        "idle",
        "10 per 100 s, burst 10: one call, 80 s of idling, then what is admitted at once.",
        Law { permits: 10, period: seconds(100), burst: 10 },
        10..=10,
        |limiter| {
            assert!(limiter.take(1), "the burst was there");
            limiter.advance(seconds(80));
            taken(limiter)
        },
    ))?;
    emit(half_a_millisecond(size))?;
    emit(faster_quota(size))
}

/// The same measurement of all systems.
fn each(
    size: Size,
    name: &str,
    about: &str,
    law: Law,
    due: RangeInclusive<u64>,
    measure: fn(&dyn Clocked) -> u64,
) -> Case {
    let systems = SYSTEMS.iter().filter(|(system, _)| name != "fast_rate" || *system != "leaky-bucket");
    let rows =
        systems.map(|&(system, make)| verdict(system, &due, isolated(size.limit(LIMIT), move || measure(&*make(law)))));
    case(name, about, rows.collect())
}

/// How many single permits there are at this instant.
fn taken(limiter: &dyn Clocked) -> u64 {
    (0..ENDLESS).take_while(|_| limiter.take(1)).count() as u64
}

fn half_a_millisecond(size: Size) -> Case {
    let law = Law::per_second(2_000);
    let due = 1..=1;
    let measure = |limiter: Box<dyn Clocked>| {
        assert!(limiter.take(1), "the first is there");
        limiter.advance(Duration::from_micros(500));
        taken(&*limiter)
    };
    let rows = SYSTEMS.iter().map(|&(system, make)| {
        let admitted = isolated(size.limit(LIMIT), move || {
            // It asks for the interval itself, which others derive from the rate.
            let exact = system == "leaky-bucket";
            measure(if exact { Box::new(leaky_bucket::every(law.interval())) } else { make(law) })
        });
        verdict(system, &due, admitted)
    });
    case("half_a_millisecond", "One permit every 500 µs: what that time brings back.", rows.collect())
}

/// A new quota for a bucket that earned permits under the old one and was not asked meanwhile.
fn faster_quota(size: Size) -> Case {
    let (slow, fast) = (Law::per_second(1).burst(10_000), Law::per_second(1_000).burst(10_000));
    let due = 10..=10;
    let ours = isolated(size.limit(LIMIT), move || {
        let clock = ManualClock::new();
        let bucket = TokenBucket::builder(tollgate::quota(slow)).initial(0).clock(clock.clone()).build();
        clock.advance(seconds(10));
        bucket.set_quota(tollgate::quota(fast));
        (0..ENDLESS).take_while(|_| bucket.try_acquire().is_ok()).count() as u64
    });
    let theirs = isolated(size.limit(LIMIT), move || {
        let limiter = ratelimit::starting_with(slow, 0);
        limiter.advance(seconds(10));
        limiter.bucket.set_rate(fast.permits.into());
        taken(&limiter)
    });
    let per_call = isolated(size.limit(LIMIT), move || {
        let mut limiter = throttlecrab::manual(slow);
        assert!(limiter.take(slow.burst), "the burst was there");
        limiter.advance(seconds(10));
        limiter.set_law(fast);
        taken(&limiter)
    });
    let rows: Vec<Row> = [("tollgate", ours), ("ratelimit", theirs), ("throttlecrab", per_call)]
        .map(|(system, admitted)| verdict(system, &due, admitted))
        .into();
    case(
        "faster_quota",
        "An empty bucket at 1/s idles for 10 s, then the quota is 1,000/s: what is admitted at once.",
        rows,
    )
}
