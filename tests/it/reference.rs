//! The token bucket's law, written as naively as it can be: exact rationals, one caller, no clock.
//!
//! It is written from the law and shares nothing with the crate but the names of its questions and answers. A permit comes
//! back every interval `T`; the state is the time `tat` at which the bucket would be full again. A request for `n` at `now`
//! is granted if `max(tat, now) + n*T <= now + burst*T`, and the left side is the new `tat`.
//!
//! A pause is a bucket that begins at the end of the pause with what was left at its start, and admits nothing before.

use std::cmp::{max, min};
use std::time::Duration;

use num::rational::BigRational;
use num::{BigInt, FromPrimitive, One, Signed, ToPrimitive, Zero};
use tollgate::{Quota, Refused};

/// A number without any error. Times are in nanoseconds.
pub(crate) type Exact = BigRational;

/// A larger burst counts as this one.
pub(crate) const MAX_BURST: u64 = 1 << 57;

/// The answer to a request.
pub(crate) type Answer = Result<(), No>;

/// A refusal, as tests write it down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum No {
    TooSoon { asked: u64, remaining: u64, retry_after: Duration },
    ExceedsCapacity { asked: u64, capacity: u64 },
    Never { asked: u64, remaining: u64 },
    Paused { asked: u64, retry_after: Duration },
}

impl No {
    pub(crate) fn retry_after(self) -> Option<Duration> {
        match self {
            Self::TooSoon { retry_after, .. } | Self::Paused { retry_after, .. } => Some(retry_after),
            Self::ExceedsCapacity { .. } | Self::Never { .. } => None,
        }
    }
}

/// The answer that the crate gave.
pub(crate) fn answer(given: Result<(), Refused>) -> Answer {
    given.map_err(|refused| match refused {
        Refused::TooSoon { asked, remaining, retry_after, .. } => No::TooSoon { asked, remaining, retry_after },
        Refused::ExceedsCapacity { asked, capacity, .. } => No::ExceedsCapacity { asked, capacity },
        Refused::Never { asked, remaining, .. } => No::Never { asked, remaining },
        Refused::Paused { asked, retry_after, .. } => No::Paused { asked, retry_after },
        other => panic!("a bucket never answers {other:?}"),
    })
}

/// The widths that a limiter's word leaves for a time: `2^59` units in all, `2^58` for the time that a burst takes.
const FIELD_BITS: i32 = 59;
const ROOM_BITS: i32 = 58;

/// What a quota says, kept beside the `Quota` because that one need not tell its burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spec {
    Unlimited,
    Rate { permits: u64, period: Duration, burst: u64 },
}

impl Spec {
    pub(crate) const fn new(permits: u64, period: Duration, burst: u64) -> Self {
        Self::Rate { permits, period, burst }
    }

    pub(crate) fn quota(self) -> Quota {
        match self {
            Self::Unlimited => Quota::UNLIMITED,
            Self::Rate { permits, period, burst } => {
                Quota::new(permits, period).expect("the period is not zero").burst(burst)
            }
        }
    }

    /// The burst that counts.
    pub(crate) fn burst(self) -> u64 {
        match self {
            Self::Unlimited => u64::MAX,
            Self::Rate { burst, .. } => burst.min(MAX_BURST),
        }
    }

    /// The true interval between two permits; `None` where time gives nothing or everything.
    pub(crate) fn interval(self) -> Option<Exact> {
        match self {
            Self::Rate { permits, period, .. } if permits > 0 => {
                Some(Exact::new(BigInt::from(period.as_nanos()), permits.into()))
            }
            _ => None,
        }
    }
}

/// The interval that a limiter keeps for a quota.
///
/// It is the true one in units of `1/den` ns where a word of `2^59` units has room for that, else it is rounded up, once,
/// to a power of two of a nanosecond.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// What time is counted in.
    unit: Exact,
    /// The time between two permits, a whole number of units.
    interval: Exact,
    /// Whether the interval is the true one.
    exact: bool,
    /// With a burst of one, a unit above the nanosecond is paid for by a later start instead of a longer interval.
    late_start: bool,
}

impl Kept {
    pub(crate) fn of(interval: &Exact, burst: u64) -> Self {
        let burst = BigInt::from(burst.max(1));
        let room = BigInt::one() << ROOM_BITS;
        let field = BigInt::one() << FIELD_BITS;
        let one_second = BigInt::from(1_000_000_000);
        if interval.denom() * one_second <= field && &burst * interval.numer() <= room {
            let unit = Exact::new(BigInt::one(), interval.denom().clone());
            return Self { unit, interval: interval.clone(), exact: true, late_start: false };
        }
        // From the finest unit, 2^exponent ns, with which the field spans 2^30 ns.
        let mut exponent = 30 - FIELD_BITS;
        loop {
            let coarse = exponent > 0;
            // A time read down to whole units may make a span look longer by almost one unit.
            let slack = if coarse && burst > BigInt::one() { power_of_two(exponent) - 1 } else { BigInt::zero() };
            let units = num::Integer::div_ceil(
                &((interval.numer() + slack * interval.denom()) * power_of_two(-exponent)),
                &(interval.denom() * power_of_two(exponent)),
            );
            if &burst * &units <= room {
                let unit = Exact::new(power_of_two(exponent), power_of_two(-exponent));
                let interval = &unit * Exact::from_integer(units);
                return Self { unit, interval, exact: false, late_start: coarse && burst == BigInt::one() };
            }
            exponent += 1;
        }
    }

    pub(crate) fn is_exact(&self) -> bool {
        self.exact
    }

    /// Whether the unit is longer than a nanosecond, so that times have to be rounded.
    fn is_coarse(&self) -> bool {
        self.unit > Exact::one()
    }

    fn round_down(&self, span: &Exact) -> Exact {
        (span / &self.unit).floor() * &self.unit
    }

    fn round_up(&self, span: &Exact) -> Exact {
        (span / &self.unit).ceil() * &self.unit
    }

    fn cost(&self, permits: u64) -> Exact {
        &self.interval * whole(permits)
    }
}

/// How a bucket is built.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) spec: Spec,
    /// The permits there at first; the burst if `None`.
    pub(crate) initial: Option<u64>,
    pub(crate) max_pause: Duration,
    /// What the clock says then.
    pub(crate) built: u64,
}

/// Into how many parts a permit is split where the rate is 0 and no time tells the unit: as many as the ticks that it cost
/// in the quota before, or as many as a word has room for.
fn parts_at_rate_zero(before: &BigInt, burst: u64) -> BigInt {
    min(before, &most_parts(burst)).clone()
}

fn most_parts(burst: u64) -> BigInt {
    (BigInt::one() << ROOM_BITS) / burst.max(1)
}

/// What a limiter remembers, by kind of quota.
#[derive(Clone, Debug)]
enum State {
    /// Grants everything.
    Unlimited,
    /// Rate 0: what is left, in so many parts of a permit, is all there will be.
    Fixed { left: Exact, parts: BigInt },
    /// Full again at `tat`.
    Refilled(Refilled),
}

#[derive(Clone, Debug)]
struct Refilled {
    burst: u64,
    kept: Kept,
    /// The whole nanosecond from which units are counted.
    origin: Exact,
    tat: Exact,
}

/// What goes from one quota, or one side of a pause, to the next.
struct Carried {
    /// The instant from which the next one counts.
    from: Exact,
    left: Exact,
    /// The ticks that a permit cost.
    ticks: BigInt,
}

/// The sequential token bucket.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    spec: Spec,
    burst: u64,
    max_pause: Duration,
    state: State,
    /// The instant from which the quota, or the pause, counts.
    since: Exact,
    /// The end of the last pause, until a grant after it shows that it is over.
    pause: Option<Exact>,
}

/// What a snapshot says, in a form of our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) limit: u64,
    pub(crate) remaining: u64,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) reset_after: Option<Duration>,
}

impl Reference {
    pub(crate) fn new(setup: Setup) -> Self {
        let Setup { spec, initial, max_pause, built } = setup;
        let burst = spec.burst();
        let mut new = Self { spec, burst, max_pause, state: State::Unlimited, since: Exact::zero(), pause: None };
        let start = match initial {
            Some(permits) => Carried { from: whole(built), left: whole(permits), ticks: BigInt::one() },
            None => Carried { from: Exact::zero(), left: whole(burst), ticks: most_parts(burst) },
        };
        new.begin(spec, &start, None);
        new
    }

    /// Begins a quota with what the one before it left, at the end of the pause if there is one.
    fn begin(&mut self, spec: Spec, carried: &Carried, pause: Option<Exact>) {
        let last = whole(u64::MAX);
        let burst = spec.burst();
        self.spec = spec;
        self.burst = burst;
        // A start that was rounded up may lie beyond the last instant there is.
        self.since = min(carried.from.ceil(), last.clone());
        // Where the clock was set back to before that, a pause lasts until then at least.
        self.pause = pause.map(|end| max(end, self.since.clone()));
        let from = self.pause.clone().unwrap_or_else(|| min(carried.from.clone(), last));
        let full = whole(burst);
        let left = min(&carried.left, &full);
        self.state = match (spec, spec.interval()) {
            (Spec::Unlimited, _) => State::Unlimited,
            (_, None) => {
                let parts = parts_at_rate_zero(&carried.ticks, burst);
                let in_parts = Exact::from_integer(parts.clone());
                State::Fixed { left: (left * &in_parts).floor() / in_parts, parts }
            }
            (_, Some(interval)) => {
                let kept = Kept::of(&interval, burst);
                let origin = from.floor();
                let full_in = (&full - left) * &kept.interval;
                let tat = &origin + kept.round_up(&(from - &origin + full_in));
                State::Refilled(Refilled { burst, kept, origin, tat })
            }
        };
    }

    /// What is left at `now`, and from when the next quota counts.
    fn carried(&self, now: u64) -> Carried {
        // Where no time was counted, not from before the time at which that began: a clock that steps back would mint permits.
        let uncounted = max(&self.since, &whole(now)).clone();
        match &self.state {
            State::Unlimited => Carried { from: uncounted, left: Exact::zero(), ticks: BigInt::one() },
            State::Fixed { left, parts } => Carried { from: uncounted, left: left.clone(), ticks: parts.clone() },
            State::Refilled(bucket) => {
                let ticks = (&bucket.kept.interval / &bucket.kept.unit).to_integer();
                if self.is_paused(now) {
                    return Carried { from: uncounted, left: self.left(now), ticks };
                }
                // Nor from before the time at which the bucket was empty.
                let empty = &bucket.tat - bucket.kept.cost(bucket.burst);
                let left = bucket.left(max(&empty, &bucket.read(now)));
                Carried { from: max(empty, whole(now)), left, ticks }
            }
        }
    }

    pub(crate) fn try_acquire_n(&mut self, n: u64, now: u64) -> Answer {
        self.peek(n, now)?;
        // Nothing asked, nothing changed: a free request must not start the clock.
        if n == 0 {
            return Ok(());
        }
        match &mut self.state {
            State::Unlimited => {}
            State::Fixed { left, .. } => *left -= whole(n),
            State::Refilled(bucket) => bucket.tat = max(&bucket.tat, &bucket.start(now)) + bucket.kept.cost(n),
        }
        // It was not refused, so the pause is over. A clock that is set back afterwards finds none.
        self.pause = None;
        Ok(())
    }

    pub(crate) fn acquire_up_to(&mut self, n: u64, now: u64) -> u64 {
        let n = n.min(self.available(now));
        self.try_acquire_n(n, now).expect("as many as are there");
        n
    }

    pub(crate) fn peek(&self, n: u64, now: u64) -> Answer {
        if n == 0 {
            return Ok(());
        }
        if n > self.burst {
            return Err(No::ExceedsCapacity { asked: n, capacity: self.burst });
        }
        match self.wait(n, now) {
            Some(wait) if wait.is_zero() => Ok(()),
            Some(retry_after) if self.is_paused(now) => Err(No::Paused { asked: n, retry_after }),
            Some(retry_after) => Err(No::TooSoon { asked: n, remaining: self.available(now), retry_after }),
            None => Err(No::Never { asked: n, remaining: self.available(now) }),
        }
    }

    /// The whole permits there at `now`.
    pub(crate) fn available(&self, now: u64) -> u64 {
        match &self.state {
            _ if self.is_paused(now) => 0,
            State::Unlimited => u64::MAX,
            State::Fixed { left, .. } => permits(left),
            State::Refilled(bucket) => permits(&bucket.left(&bucket.read(now))),
        }
    }

    pub(crate) fn snapshot(&self, now: u64) -> View {
        let retry_after = if self.burst == 0 { None } else { self.wait(1, now) };
        let reset_after = match &self.state {
            State::Unlimited => Some(self.until(&Exact::zero(), now)),
            State::Fixed { left, .. } => (*left == whole(self.burst)).then(|| self.until(&Exact::zero(), now)),
            State::Refilled(bucket) => Some(self.until(&bucket.tat, now)),
        };
        View { limit: self.burst, remaining: self.available(now), retry_after, reset_after }
    }

    /// Gives permits back, up to a full bucket at `now`, or at the end of the pause.
    pub(crate) fn refund(&mut self, n: u64, now: u64) {
        self.give_back(Some(n), now);
    }

    /// So many, or all.
    fn give_back(&mut self, n: Option<u64>, now: u64) {
        let paused = self.pause.clone().filter(|end| *end > whole(now));
        match &mut self.state {
            State::Unlimited => {}
            State::Fixed { left, .. } => {
                let full = whole(self.burst);
                *left = n.map_or(full.clone(), |n| min(&*left + whole(n), full));
            }
            State::Refilled(bucket) => {
                let full = paused.unwrap_or_else(|| bucket.read(now));
                let less = n.map_or(full.clone(), |n| max(&bucket.tat - bucket.kept.cost(n), full));
                bucket.tat = min(less, bucket.tat.clone());
                // By a clock that was set back it may be full before the origin, but not before the first instant there is.
                bucket.origin = min(bucket.origin.clone(), max(bucket.tat.floor(), Exact::zero()));
                bucket.tat = max(bucket.tat.clone(), bucket.origin.clone());
            }
        }
    }

    pub(crate) fn reset(&mut self, now: u64) {
        self.give_back(None, now);
    }

    /// Carries permits, not time, over to the new quota.
    pub(crate) fn set_quota(&mut self, spec: Spec, now: u64) {
        let pause = self.pause.clone().filter(|end| *end > whole(now));
        self.begin(spec, &self.carried(now), pause);
    }

    pub(crate) fn pause_until(&mut self, end: u64, now: u64) {
        if end <= now && !self.is_paused(now) {
            return;
        }
        let longest = u64::try_from(self.max_pause.as_nanos()).unwrap_or(u64::MAX);
        let end = end.min(now.saturating_add(longest));
        self.begin(self.spec, &self.carried(now), (end > now).then(|| whole(end)));
    }

    pub(crate) fn resume(&mut self, now: u64) {
        self.pause_until(now, now);
    }

    pub(crate) fn is_paused(&self, now: u64) -> bool {
        self.pause_end(now).is_some()
    }

    /// The end of the pause that lasts at `now`.
    pub(crate) fn pause_end(&self, now: u64) -> Option<u64> {
        let end = self.pause.as_ref()?.to_integer().to_u64().expect("a time");
        (end > now).then_some(end)
    }

    /// Whether nothing that was taken counts at `now`.
    pub(crate) fn is_full(&self, now: u64) -> bool {
        match &self.state {
            State::Unlimited => true,
            State::Fixed { left, .. } => *left == whole(self.burst),
            State::Refilled(bucket) => bucket.tat <= whole(now),
        }
    }

    /// The permits left at `now`, or at the end of the pause, fraction included; negative if a clock that stepped back makes
    /// it so.
    pub(crate) fn left(&self, now: u64) -> Exact {
        match &self.state {
            State::Unlimited => Exact::zero(),
            State::Fixed { left, .. } => left.clone(),
            State::Refilled(bucket) => bucket.left(&self.pause_end(now).map_or_else(|| bucket.read(now), whole)),
        }
    }

    /// The whole nanoseconds from `now` to the first time at which `n` would be granted; `None` if there is no such time.
    fn wait(&self, n: u64, now: u64) -> Option<Duration> {
        let earliest = match &self.state {
            State::Unlimited => Exact::zero(),
            State::Fixed { left, .. } if *left < whole(n) => return None,
            State::Fixed { .. } => Exact::zero(),
            State::Refilled(bucket) => &bucket.tat + bucket.kept.cost(n) - bucket.kept.cost(bucket.burst),
        };
        Some(self.until(&earliest, now))
    }

    /// The time from `now` to `then`, and to the end of the pause.
    fn until(&self, then: &Exact, now: u64) -> Duration {
        let end = self.pause.clone().unwrap_or_else(Exact::zero);
        duration(&(max(then, &end) - whole(now)))
    }
}

/// What broken buckets do.
impl Reference {
    /// Puts `left` permits, counted from `from`, in place of whatever was there.
    pub(crate) fn restart(&mut self, spec: Spec, from: &Exact, left: &Exact) {
        let ticks = most_parts(spec.burst());
        self.begin(spec, &Carried { from: from.clone(), left: left.clone(), ticks }, None);
    }

    /// Admits nothing before `end` and changes nothing else.
    pub(crate) fn hold(&mut self, end: u64) {
        self.pause = Some(whole(end));
    }

    /// Takes what is left, now or at the end of the pause.
    pub(crate) fn empty(&mut self, now: u64) {
        let left = self.left(now);
        match &mut self.state {
            State::Unlimited => {}
            State::Fixed { left, .. } => *left = Exact::zero(),
            State::Refilled(bucket) => bucket.tat += left * &bucket.kept.interval,
        }
    }

    /// Throws away what is no whole permit, at rate 0.
    pub(crate) fn cut_fraction(&mut self) {
        if let State::Fixed { left, .. } = &mut self.state {
            *left = left.floor();
        }
    }
}

impl Refilled {
    /// The time as the limiter sees it.
    fn read(&self, now: u64) -> Exact {
        let since = whole(now) - &self.origin;
        if self.kept.is_coarse() { &self.origin + self.kept.round_down(&since) } else { whole(now) }
    }

    /// The earliest time from which a grant at `now` may count.
    fn start(&self, now: u64) -> Exact {
        let since = whole(now) - &self.origin;
        if self.kept.late_start { &self.origin + self.kept.round_up(&since) } else { self.read(now) }
    }

    fn left(&self, now: &Exact) -> Exact {
        let debt = max(&self.tat, now) - now;
        whole(self.burst) - debt / &self.kept.interval
    }
}

pub(crate) fn whole(n: u64) -> Exact {
    Exact::from_u64(n).expect("every integer is a rational")
}

/// `2^exponent`, or 1 where that is no whole number.
fn power_of_two(exponent: i32) -> BigInt {
    BigInt::one() << exponent.max(0)
}

/// The whole permits in an amount; none if it is negative, as a clock that stepped back can make it.
fn permits(amount: &Exact) -> u64 {
    if amount.is_negative() { 0 } else { amount.floor().to_integer().to_u64().expect("at most a burst") }
}

/// The next whole nanosecond; none if it is past, `Duration::MAX` if it is further than that.
fn duration(span: &Exact) -> Duration {
    if !span.is_positive() {
        return Duration::ZERO;
    }
    let nanos = span.ceil().to_integer();
    let second = BigInt::from(1_000_000_000);
    match ((&nanos / &second).to_u64(), (&nanos % &second).to_u32()) {
        (Some(seconds), Some(rest)) => Duration::new(seconds, rest),
        _ => Duration::MAX,
    }
}
