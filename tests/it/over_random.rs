//! Random lives of shapers over every law, compared with the law alone and a plain first-in first-out list: each request leaves at
//! the first nanosecond at which the limiter would admit it as the next one, whatever is changed meanwhile.

use std::collections::VecDeque;
use std::time::Duration;

use tollgate::{
    FixedWindow, Limiter, ManualClock, Nanos, Policing, Quota, QuotaError, Refused, Shaper, SlidingCounter, SlidingLog,
    Waitable,
};

use crate::tasks::{Crowd, Random};

/// How a law is made and changed, where laws differ.
trait Subject: Policing + Waitable {
    fn limiter(quota: Quota, clock: ManualClock) -> Result<Limiter<Self, ManualClock>, QuotaError>
    where
        Self: Sized;
    fn set_limiter(limiter: &Limiter<Self, ManualClock>, quota: Quota)
    where
        Self: Sized;
    fn set_shaper(shaper: &Shaper<Self>, quota: Quota)
    where
        Self: Sized;
}

impl Subject for tollgate::FixedWindowLaw {
    fn limiter(quota: Quota, clock: ManualClock) -> Result<Limiter<Self, ManualClock>, QuotaError> {
        Ok(FixedWindow::with_clock(quota, clock))
    }

    fn set_limiter(limiter: &Limiter<Self, ManualClock>, quota: Quota) {
        limiter.set_quota(quota);
    }

    fn set_shaper(shaper: &Shaper<Self>, quota: Quota) {
        shaper.set_quota(quota);
    }
}

impl Subject for tollgate::SlidingCounterLaw {
    fn limiter(quota: Quota, clock: ManualClock) -> Result<Limiter<Self, ManualClock>, QuotaError> {
        SlidingCounter::with_clock(quota, clock)
    }

    fn set_limiter(limiter: &Limiter<Self, ManualClock>, quota: Quota) {
        limiter.set_quota(quota).unwrap();
    }

    fn set_shaper(shaper: &Shaper<Self>, quota: Quota) {
        shaper.set_quota(quota).unwrap();
    }
}

impl Subject for tollgate::SlidingLogLaw {
    fn limiter(quota: Quota, clock: ManualClock) -> Result<Limiter<Self, ManualClock>, QuotaError> {
        SlidingLog::with_clock(quota, clock)
    }

    fn set_limiter(limiter: &Limiter<Self, ManualClock>, quota: Quota) {
        limiter.set_quota(quota).unwrap();
    }

    fn set_shaper(shaper: &Shaper<Self>, quota: Quota) {
        shaper.set_quota(quota).unwrap();
    }
}

/// A request in the plain list.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    of: usize,
    n: u64,
    deadline: Nanos,
}

/// The law alone, and the list of those who wait for it.
struct Model<A> {
    limiter: Limiter<A, ManualClock>,
    line: VecDeque<Waiting>,
    largest: u64,
    /// The end of the last pause.
    held_until: Nanos,
    /// Who was answered what and has not learned of it.
    answered: Vec<Learned>,
}

/// Who was answered, and why not: `None` is a permit.
type Learned = (usize, Option<Refused>);

impl<A: Subject> Model<A> {
    /// Grants all that the law admits, in order, and ends what is too late.
    fn settle(&mut self, now: Nanos) {
        loop {
            while let Some(head) = self.line.front().copied() {
                // In time is who could have left by his deadline, however late anybody looked.
                let in_time = head.deadline >= now
                    || head.deadline >= self.held_until && self.limiter.peek_at(head.n, head.deadline).is_ok();
                if !in_time || self.limiter.try_acquire_n(head.n).is_err() {
                    break;
                }
                self.line.pop_front();
                self.answered.push((head.of, None));
            }
            let late = |waiting: &Waiting| waiting.deadline <= now;
            let Some(place) = self.line.iter().position(late) else { return };
            let gone = self.line.remove(place).unwrap();
            self.answered.push((gone.of, Some(Refused::DeadlineTooSoon { wait: Duration::ZERO })));
        }
    }

    fn ends_at(&self, deadline: Nanos) -> bool {
        self.line.iter().any(|waiting| waiting.deadline == deadline)
    }

    fn set_quota(&mut self, quota: Quota) {
        A::set_limiter(&self.limiter, quota);
        self.largest = if quota.is_unlimited() { u64::MAX } else { quota.permits() };
        let capacity = self.largest;
        for gone in self.line.iter().filter(|waiting| waiting.n > capacity) {
            self.answered.push((gone.of, Some(Refused::ExceedsCapacity { asked: gone.n, capacity })));
        }
        self.line.retain(|waiting| waiting.n <= capacity);
    }
}

fn some_quota(random: &mut Random) -> Quota {
    let periods = [1, 2, 3, 7, 10, 10, 10, 25];
    if random.once_in(12) {
        return Quota::UNLIMITED;
    }
    Quota::new(random.below(7), Duration::from_nanos(random.pick(&periods))).unwrap()
}

/// One life. Returns the polls, and the answers that came through a wait.
fn live<A: Subject>(seed: u64) -> (usize, usize) {
    let random = &mut Random::new(seed);
    let quota = Quota::new(1 + random.below(6), Duration::from_nanos(10)).unwrap();
    let start = random.pick(&[0, 3, 1 << 40]);
    // Two limiters that have admitted the same.
    let clock = ManualClock::at(Nanos::new(start));
    let [limiter, taken] = [(); 2].map(|()| A::limiter(quota, clock.clone()).unwrap());
    for _ in 0..random.below(4) {
        let n = random.below(4);
        assert_eq!(limiter.try_acquire_n(n), taken.try_acquire_n(n));
        clock.advance(Duration::from_nanos(random.below(8)));
    }
    let mut model = Model {
        limiter,
        line: VecDeque::new(),
        largest: quota.permits(),
        held_until: Nanos::ZERO,
        answered: Vec::new(),
    };
    let shaper = Shaper::over(taken).clock(clock.clone()).build();
    let (mut crowd, mut entered) = (Crowd::default(), 0);
    for step in 0..120 {
        let now = clock.now();
        let context = || format!("seed {seed}, step {step}, at {now:?}, {:?}", shaper.quota());
        match random.below(20) {
            0..=7 => {
                let most = random.pick(&[2, 2, 2, 7]);
                let n = 1 + random.below(most);
                // Each deadline once: of two that end at one instant, it counts who is polled first.
                let mut limit = random.once_in(3).then(|| Duration::from_nanos(random.below(40)));
                while let Some(span) = limit.filter(|span| model.ends_at(now.saturating_add(*span))) {
                    limit = Some(span + Duration::from_nanos(1));
                }
                let acquire = shaper.acquire_n(n);
                let of = crowd.push(match limit {
                    Some(limit) => acquire.within(limit),
                    None => acquire,
                });
                let deadline = limit.map_or(Nanos::MAX, |limit| now.saturating_add(limit));
                let answers = crowd.run();
                if n > model.largest {
                    assert!(
                        matches!(answers[..], [(who, Err(Refused::ExceedsCapacity { .. }))] if who == of),
                        "{}: {answers:?}",
                        context()
                    );
                    continue;
                }
                model.line.push_back(Waiting { of, n, deadline });
                // A place that lies beyond the deadline is refused at once. Alone in line it is known exactly.
                let refused = matches!(answers[..], [(who, Err(_))] if who == of);
                if model.line.len() == 1 {
                    assert_eq!(refused, model.limiter.peek_at(n, deadline).is_err(), "{}: {answers:?}", context());
                }
                if refused {
                    assert!(limit.is_some(), "{}: {answers:?}", context());
                    model.line.pop_back();
                    continue;
                }
                entered += 1;
                model.settle(now);
                check(&mut model, answers, &context);
                continue;
            }
            8 if !model.line.is_empty() => {
                let gone = model.line.remove(random.index(model.line.len())).unwrap();
                crowd.cancel(gone.of);
            }
            9 => {
                let n = 1 + random.below(3);
                let granted = shaper.try_acquire_n(n).is_ok();
                let admitted = model.line.is_empty() && model.limiter.try_acquire_n(n).is_ok();
                assert_eq!(granted, admitted, "{}", context());
            }
            10 => {
                let permit = shaper.acquire_up_to(3);
                let admitted = if model.line.is_empty() { model.limiter.acquire_up_to(3) } else { 0 };
                assert_eq!(permit.permits(), admitted, "{}", context());
            }
            11 if model.line.is_empty() => {
                // The last one is taken back at once.
                let n = 1 + random.below(2);
                if let Ok(permit) = shaper.try_acquire_n(n) {
                    permit.give_back();
                    assert!(model.limiter.peek(n).is_ok(), "{}", context());
                }
            }
            12 => {
                let quota = some_quota(random);
                A::set_shaper(&shaper, quota);
                model.set_quota(quota);
            }
            13 => {
                let end = now.saturating_add(Duration::from_nanos(random.below(30)));
                shaper.pause_until(end);
                model.limiter.pause_until(end);
                model.held_until = end;
            }
            14 => {
                shaper.resume();
                model.limiter.resume();
                model.held_until = Nanos::ZERO;
            }
            15 => {
                let n = random.pick(&[1, 1, 2, u64::MAX]);
                shaper.refund(n);
                model.limiter.refund(n);
            }
            _ => {
                let most = random.pick(&[2, 2, 2, 2, 12]);
                let mut then = now.saturating_add(Duration::from_nanos(1 + random.below(most)));
                // Over one deadline at most: of two that nobody looked at in time, it counts who is polled first.
                let mut deadlines: Vec<_> = model.line.iter().map(|waiting| waiting.deadline).collect();
                deadlines.sort_unstable();
                if deadlines.get(1).is_some_and(|second| *second <= then) {
                    then = deadlines[0];
                }
                clock.set(then);
            }
        }
        let now = clock.now();
        model.settle(now);
        let answers = crowd.run();
        check(&mut model, answers, &context);
        assert_eq!(shaper.waiting(), model.line.len(), "{}", context());
    }
    (crowd.polls(), entered)
}

/// What tasks learned is what the list says, but for who of one instant was polled first.
fn check<A: Waitable>(
    model: &mut Model<A>,
    answers: Vec<(usize, Result<tollgate::Permit<'_, A>, Refused>)>,
    context: &impl Fn() -> String,
) {
    let mut learned: Vec<_> = answers.iter().map(|(of, answer)| (*of, answer.as_ref().err().copied())).collect();
    let mut answered = std::mem::take(&mut model.answered);
    learned.sort_by_key(|(of, _)| *of);
    answered.sort_by_key(|(of, _)| *of);
    let same = |(mine, theirs): (&Learned, &Learned)| {
        let too_late = |refused: &Option<Refused>| {
            matches!(refused, Some(Refused::DeadlineTooSoon { .. } | Refused::Paused { .. } | Refused::Never { .. }))
        };
        mine == theirs || mine.0 == theirs.0 && too_late(&mine.1) && too_late(&theirs.1)
    };
    assert!(
        learned.len() == answered.len() && learned.iter().zip(&answered).all(same),
        "{}: learned {learned:?}, should have been {answered:?}",
        context()
    );
}

fn lives<A: Subject>() {
    let (mut polls, mut entered) = (0, 0);
    for seed in 0..1_000 {
        let (more_polls, more) = live::<A>(seed);
        polls += more_polls;
        entered += more;
    }
    println!("{polls} polls of {entered} requests");
}

#[test]
fn whatever_happens_a_fixed_window_is_waited_for_in_order_and_to_the_nanosecond() {
    lives::<tollgate::FixedWindowLaw>();
}

#[test]
fn whatever_happens_a_sliding_counter_is_waited_for_in_order_and_to_the_nanosecond() {
    lives::<tollgate::SlidingCounterLaw>();
}

#[test]
fn whatever_happens_a_sliding_log_is_waited_for_in_order_and_to_the_nanosecond() {
    lives::<tollgate::SlidingLogLaw>();
}
