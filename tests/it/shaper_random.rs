//! Random histories on a clock that is moved by hand, compared with a naive reference call by call.

use std::mem::discriminant;
use std::task::Poll;
use std::time::Duration;

use tollgate::{Acquire, ManualClock, Nanos, Permit, Quota, Refused, Shaper};

use crate::shaper_reference::{Outcome, Rate, Reference};
use crate::tasks::{Random, Task, assert_law, by_hand_with};
use crate::{HOUR, MILLISECOND, SECOND, YEAR};

/// All times are multiples of this, and all intervals are it times a power of two, so that permits that are carried from one
/// quota to another stay whole numbers of nanoseconds.
const GRAIN: u64 = 1 << 20;

struct Wait<'a> {
    who: usize,
    n: u64,
    limit: Option<Duration>,
    task: Task<Acquire<'a>>,
    /// How often its waker had been called at its last poll; `None` before the first.
    polled: Option<usize>,
    absent: bool,
}

struct History<'a> {
    clock: &'a ManualClock,
    shaper: &'a Shaper,
    reference: Reference,
    random: Random,
    max_n: Option<u64>,
    waits: Vec<Wait<'a>>,
    held: Vec<(usize, u64, Permit<'a>)>,
    next: usize,
    /// Who asked, in order.
    asked: Vec<usize>,
    /// How many changes there had been, and the rate from then on. Refunds begin one of their own.
    rates: Vec<(usize, Quota, Rate)>,
    pauses: usize,
    refunds: usize,
}

impl<'a> History<'a> {
    fn step(&mut self) {
        match self.random.below(30) {
            0..=5 => self.come(),
            6 | 7 => self.give_up(),
            8 => self.poll_anyone(),
            9 => self.go_absent_or_return(),
            10 | 11 => self.try_one(),
            12 => self.change_quota(),
            13 => self.give_back(),
            14 => self.compare(),
            15 | 16 => self.pause(),
            17 => self.refund(),
            18 => self.take_up_to(),
            19..=28 => {
                let steps = self.random.pick(&[1, 2, 8, 8, 20, 100]);
                self.clock.advance(Duration::from_nanos(GRAIN / 4 * self.random.below(4 * steps)));
            }
            _ => {
                let back = GRAIN / 4 * self.random.below(60);
                self.clock.set(self.clock.now().saturating_sub(Duration::from_nanos(back)));
            }
        }
        // Not always at once: so wake-ups are late now and then.
        if !self.random.once_in(3) {
            self.run();
        }
    }

    fn come(&mut self) {
        let n = self.random.pick(&[1, 1, 1, 1, 2, 3, 5, 0, 7]);
        let limit = self.random.once_in(4).then(|| Duration::from_nanos(self.random.below(60 * GRAIN)));
        let acquire = match limit {
            Some(limit) => self.shaper.acquire_n_within(n, limit),
            None => self.shaper.acquire_n(n),
        };
        let (who, task) = (self.next, Task::new(acquire));
        self.next += 1;
        self.waits.push(Wait { who, n, limit, task, polled: None, absent: false });
    }

    /// Polls a wait in both worlds.
    fn poll(&mut self, index: usize) {
        let now = self.clock.now();
        let wait = &mut self.waits[index];
        let first = wait.polled.is_none();
        wait.polled = Some(wait.task.wakes());
        if first {
            self.asked.push(wait.who);
        }
        let answer = wait.task.poll();
        let expected = if first {
            self.reference.ask(wait.who, wait.n, wait.limit, now)
        } else {
            self.reference.look(wait.who, now)
        };
        match (answer, expected) {
            (Poll::Pending, Outcome::Waits) => return,
            (Poll::Ready(Ok(permit)), Outcome::Granted) => self.held.push((wait.who, wait.n, permit)),
            (Poll::Ready(Err(refused)), Outcome::Refused(expected)) => {
                let late = !first && matches!(expected, Refused::DeadlineTooSoon { .. } | Refused::Paused { .. });
                let same = if late { discriminant(&refused) == discriminant(&expected) } else { refused == expected };
                assert!(same, "{refused:?}, not {expected:?}");
            }
            (answer, expected) => panic!("{answer:?}, not {expected:?}, for {} of {} at {now:?}", wait.who, wait.n),
        }
        self.waits.remove(index);
    }

    /// Polls whoever is woken or new until nobody is, and sees to it that nobody is forgotten.
    fn run(&mut self) {
        let is_woken = |wait: &Wait<'_>| !wait.absent && wait.polled.is_none_or(|wakes| wakes < wait.task.wakes());
        while let Some(index) = self.waits.iter().position(is_woken) {
            self.poll(index);
        }
        let now = self.clock.now();
        let absent = |who: usize| self.waits.iter().any(|wait| wait.who == who && wait.absent);
        let (in_line, answered) = self.reference.unanswered();
        assert!(answered.into_iter().all(absent), "granted or refused, and not woken");
        if !in_line.into_iter().any(absent) {
            assert!(!self.reference.head_is_due(now), "due, and not woken");
        }
    }

    fn any(&mut self) -> Option<usize> {
        (!self.waits.is_empty()).then(|| self.random.index(self.waits.len()))
    }

    fn give_up(&mut self) {
        let Some(index) = self.any() else { return };
        let wait = self.waits.remove(index);
        drop(wait.task);
        if wait.polled.is_some() {
            self.reference.leave(wait.who, self.clock.now());
        }
    }

    fn poll_anyone(&mut self) {
        if let Some(index) = self.any() {
            self.poll(index);
        }
    }

    fn go_absent_or_return(&mut self) {
        let Some(index) = self.any() else { return };
        let wait = &mut self.waits[index];
        if wait.absent || wait.polled.is_some() {
            wait.absent = !wait.absent;
        }
    }

    fn try_one(&mut self) {
        let n = self.random.pick(&[1, 1, 2, 4, 9, 0]);
        let (who, now) = (self.next, self.clock.now());
        self.next += 1;
        self.asked.push(who);
        match (self.shaper.try_acquire_n(n), self.reference.try_acquire(who, n, now)) {
            (Ok(permit), Outcome::Granted) => self.held.push((who, n, permit)),
            (Err(refused), Outcome::Refused(expected)) => assert_eq!(refused, expected),
            (answer, expected) => panic!("{answer:?}, not {expected:?}"),
        }
    }

    fn change_quota(&mut self) {
        let (quota, rate) = random_rate(&mut self.random, self.max_n);
        // A call that changes nothing grants what is due in both worlds; the reference may have to decline then.
        assert_eq!(self.shaper.waiting(), self.reference.waiting(self.clock.now()));
        if self.reference.set_quota(rate, self.clock.now()) {
            self.shaper.set_quota(quota);
            self.rates.push((self.reference.changes(), quota, rate));
        }
    }

    /// Begins a pause, shortens or prolongs it, or ends it.
    fn pause(&mut self) {
        let now = self.clock.now();
        let span = Duration::from_nanos(GRAIN / 4 * self.random.below(150));
        assert_eq!(self.shaper.waiting(), self.reference.waiting(now));
        let end = match self.random.below(4) {
            0 => {
                self.shaper.resume();
                now
            }
            1 => {
                // Before now, too.
                let end = now.saturating_add(span).saturating_sub(Duration::from_nanos(10 * GRAIN));
                self.shaper.pause_until(end);
                end
            }
            _ => {
                self.shaper.pause_for(span);
                now.saturating_add(span)
            }
        };
        let before = self.reference.changes();
        self.reference.pause_until(end, now);
        self.pauses += self.reference.changes() - before;
    }

    fn refund(&mut self) {
        let n = self.random.pick(&[1, 1, 2, 5, 0, 100]);
        if self.random.once_in(8) {
            self.shaper.reset();
            self.reference.refund(u64::MAX, self.clock.now());
        } else {
            self.shaper.refund(n);
            self.reference.refund(n, self.clock.now());
        }
        let &(_, quota, rate) = self.rates.last().expect("the first");
        self.rates.push((self.reference.changes(), quota, rate));
        self.refunds += 1;
    }

    fn take_up_to(&mut self) {
        let n = self.random.pick(&[1, 2, 3, 9, 0]);
        let (who, now) = (self.next, self.clock.now());
        self.next += 1;
        self.asked.push(who);
        let permit = self.shaper.acquire_up_to(n);
        let n = self.reference.acquire_up_to(who, n, now);
        assert_eq!(permit.permits(), n);
        self.held.push((who, n, permit));
    }

    fn give_back(&mut self) {
        let Some(last) = self.held.len().checked_sub(1) else { return };
        let index = if self.random.once_in(2) { last } else { self.random.index(last + 1) };
        let (who, n, permit) = self.held.remove(index);
        if n > 0 {
            permit.give_back();
            self.reference.give_back(who, n, self.clock.now());
        }
    }

    fn compare(&mut self) {
        let now = self.clock.now();
        let n = self.random.below(9);
        assert_eq!(self.shaper.estimated_wait(n), self.reference.estimated_wait(n, now));
        assert_eq!(self.shaper.quota(), self.rates.last().expect("the first").1);
        assert_eq!(self.shaper.waiting(), self.reference.waiting(now));
    }

    /// The present all leave in the end, whatever the absent do; then nothing is left behind.
    fn finish(&mut self) {
        if self.random.once_in(8) {
            self.shaper.close();
            self.reference.close(self.clock.now());
            for _ in 0..20 {
                self.step();
            }
        }
        for _ in 0..100_000 {
            self.run();
            if self.waits.iter().all(|wait| wait.absent) {
                break;
            }
            self.clock.advance(Duration::from_nanos(GRAIN));
        }
        assert!(self.waits.iter().all(|wait| wait.absent), "stuck");
        while !self.waits.is_empty() {
            self.give_up();
        }
        self.compare();
        assert_eq!(self.shaper.waiting(), 0);
    }

    /// First come, first served; and the law under each of the quotas.
    fn check(&self, catch_up: u64) {
        let departures = self.reference.departures();
        let place = |who| self.asked.iter().position(|asked| *asked == who).expect("asked");
        assert!(departures.iter().map(|departure| place(departure.who)).is_sorted());
        for (index, &(first, quota, rate)) in self.rates.iter().enumerate() {
            let end = self.rates.get(index + 1).map_or(usize::MAX, |next| next.0);
            let same = departures.iter().filter(|departure| (first..end).contains(&departure.changes));
            let trace: Vec<_> = same.map(|departure| (departure.now, departure.n)).collect();
            let burst = u64::try_from(rate.burst).expect("fits");
            assert_law(&trace, quota, burst, Duration::from_nanos(catch_up));
        }
    }
}

fn random_rate(random: &mut Random, max_n: Option<u64>) -> (Quota, Rate) {
    let interval = GRAIN << random.below(4);
    Rate::new(interval, random.pick(&[1, 1, 5]), random.pick(&[1, 1, 2, 5]), max_n)
}

/// Prints the seed if the test panics.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("seed {}", self.0);
        }
    }
}

#[test]
fn every_answer_is_that_of_the_reference() {
    let (mut departed, mut changed, mut paused, mut refunded) = (0, 0, 0, 0);
    for seed in 0..600 {
        let _seed = Seed(seed);
        let mut random = Random::new(seed);
        let max_n = random.pick(&[None, Some(6)]);
        let places = random.pick(&[usize::MAX, usize::MAX, 5, 0]);
        let catch_up = GRAIN * random.pick(&[0, 5, 5, 30, 1000]);
        let longest_pause = random.pick(&[YEAR, Duration::from_nanos(20 * GRAIN)]);
        let (quota, rate) = random_rate(&mut random, max_n);
        let (clock, shaper) = by_hand_with(quota, |builder| {
            let builder = builder.queue(places).catch_up(Duration::from_nanos(catch_up)).max_pause(longest_pause);
            max_n.into_iter().fold(builder, |builder, n| builder.max_n(n))
        });
        clock.set(Nanos::new(GRAIN << 20));
        let mut history = History {
            clock: &clock,
            shaper: &shaper,
            reference: Reference::new(rate, catch_up, places, longest_pause),
            random,
            max_n,
            waits: Vec::new(),
            held: Vec::new(),
            next: 0,
            asked: Vec::new(),
            rates: vec![(0, quota, rate)],
            pauses: 0,
            refunds: 0,
        };
        for _ in 0..500 {
            history.step();
        }
        history.finish();
        history.check(catch_up);
        departed += history.reference.departures().len();
        changed += history.reference.changes();
        paused += history.pauses;
        refunded += history.refunds;
    }
    let enough = departed > 20_000 && changed - paused - refunded > 2_000 && paused > 5_000 && refunded > 5_000;
    assert!(enough, "{departed} departures, {changed} changes, {paused} of them pauses and {refunded} refunds");
}

/// Quotas of every kind, kept exactly or not.
fn wild_quota(random: &mut Random) -> Quota {
    let quota = random.pick(&[
        Quota::UNLIMITED,
        Quota::per_second(0),
        Quota::per_second(1),
        Quota::per_second(3),
        Quota::per_second(2004),
        Quota::per_second(1_000_000),
        Quota::per_day(1),
        Quota::new(980_000_000, 10 * SECOND).expect("a period"),
        Quota::new(1_000_000_007, SECOND).expect("a period"),
        Quota::new(576_460_752, Duration::from_nanos(1)).expect("a period"),
        Quota::new(u64::MAX, Duration::from_nanos(7)).expect("a period"),
        Quota::every(5 * YEAR).expect("a period"),
        Quota::every(Duration::MAX).expect("a period"),
    ]);
    match random.below(4) {
        0 => quota.burst(random.pick(&[0, 1, 2, 17, 1 << 40, u64::MAX])),
        _ => quota,
    }
}

/// Whatever is set and however the clock jumps: nothing panics, and nobody is left behind.
#[test]
fn no_history_leaves_anyone_behind() {
    for seed in 0..400 {
        let _seed = Seed(seed);
        let mut random = Random::new(seed);
        let catch_up = random.pick(&[Duration::ZERO, 5 * MILLISECOND, HOUR, Duration::MAX]);
        let quota = wild_quota(&mut random);
        let (clock, shaper) = by_hand_with(quota, |builder| builder.catch_up(catch_up));
        let mut waits: Vec<Task<Acquire<'_>>> = Vec::new();
        let mut held = Vec::new();
        for _ in 0..300 {
            let n = random.pick(&[1, 1, 2, 3, 1000, 1 << 50, u64::MAX]);
            match random.below(17) {
                0..=2 => waits.push(Task::new(shaper.acquire_n(n))),
                3 => waits.push(Task::new(shaper.acquire_n_within(n, HOUR * 24))),
                4 => held.extend(shaper.try_acquire_n(n)),
                5 => shaper.set_quota(wild_quota(&mut random)),
                6 if !waits.is_empty() => drop(waits.swap_remove(random.index(waits.len()))),
                7 => held.pop().into_iter().for_each(Permit::give_back),
                8 => drop((shaper.estimated_wait(n), shaper.waiting())),
                9 => clock.set(random.next() >> (1 + random.below(63))),
                10 => shaper.pause_for(random.pick(&[SECOND, HOUR, YEAR, Duration::MAX])),
                11 => shaper.pause_until(random.next() >> random.below(64)),
                12 => shaper.resume(),
                13 => shaper.refund(n),
                14 if random.once_in(4) => shaper.reset(),
                15 => held.push(shaper.acquire_up_to(n)),
                _ => clock.advance(random.pick(&[MILLISECOND, SECOND, HOUR, YEAR / 7])),
            }
            waits.retain_mut(|wait| match wait.poll() {
                Poll::Pending => true,
                Poll::Ready(Ok(permit)) => {
                    held.push(permit);
                    false
                }
                Poll::Ready(Err(_)) => false,
            });
        }
        // Not before any grant: the time between is not given twice.
        clock.set(Nanos::MAX.saturating_sub(HOUR));
        shaper.resume();
        waits.retain_mut(|wait| wait.poll().is_pending());
        let wakes: Vec<_> = waits.iter().map(Task::wakes).collect();
        shaper.set_quota(Quota::UNLIMITED);
        assert!(waits.iter().zip(wakes).all(|(wait, wakes)| wait.wakes() > wakes));
        assert!(waits.iter_mut().all(|wait| wait.poll().is_ready()));
        assert_eq!(shaper.waiting(), 0);
    }
}

/// Rates that are kept exactly though their interval is no whole number of nanoseconds, in steps that fit nothing.
#[test]
fn the_law_holds_for_any_interval_and_any_steps() {
    for seed in 0..300 {
        let _seed = Seed(seed);
        let mut random = Random::new(seed);
        let burst = random.pick(&[1, 1, 2, 9]);
        let rate = random
            .pick(&[
                Quota::per_second(3),
                Quota::per_second(7),
                Quota::per_second(2004),
                Quota::per_minute(77),
                Quota::new(980_000_000, 10 * SECOND).expect("a period"),
                Quota::new(3, Duration::from_nanos(7)).expect("a period"),
            ])
            .burst(burst);
        let interval = u64::try_from(rate.period().as_nanos()).expect("fits") / rate.permits() + 1;
        let catch_up = Duration::from_nanos(random.pick(&[0, 1, interval / 2, interval * 3, 5_000_000]));
        let (clock, shaper) = by_hand_with(rate, |builder| builder.catch_up(catch_up).max_n(4));
        let mut waits: Vec<Task<Acquire<'_>>> = Vec::new();
        // Polled in their order, so the order of their answers is that of the grants.
        let mut trace = Vec::new();
        // Pauses in every other history, in which the clock only goes forward.
        let pauses = seed % 2 == 1;
        let mut end = Nanos::ZERO;
        for _ in 0..500 {
            let left = trace.len();
            match random.below(6) {
                0 | 1 => waits.push(Task::new(shaper.acquire_n(1 + random.below(4)))),
                2 => {
                    let granted = shaper.try_acquire_n(1 + random.below(4));
                    trace.extend(granted.map(|permit| (clock.now(), permit.permits())));
                }
                3 if waits.len() > 4 => drop(waits.remove(random.index(4))),
                4 if pauses && random.once_in(4) => {
                    let span = Duration::from_nanos(random.below(interval * 5));
                    shaper.pause_for(span);
                    end = clock.now().saturating_add(span);
                }
                4 if pauses && random.once_in(4) => {
                    let permits = shaper.acquire_up_to(4).permits();
                    trace.push((clock.now(), permits));
                }
                4 if random.once_in(4) && !pauses => {
                    let back = Duration::from_nanos(random.below(interval * 2));
                    clock.set(clock.now().saturating_sub(back));
                }
                _ => {
                    let span = random.pick(&[1, interval, 6 * interval]);
                    clock.advance(Duration::from_nanos(1 + random.below(span)));
                }
            }
            waits.retain_mut(|wait| match wait.poll() {
                Poll::Pending => true,
                Poll::Ready(answer) => {
                    trace.push((clock.now(), answer.expect("granted").permits()));
                    false
                }
            });
            assert!(trace[left..].iter().all(|&(now, n)| n == 0 || now >= end), "in a pause until {end}: {trace:?}");
        }
        assert!(trace.len() > 20, "{}", trace.len());
        assert_law(&trace, rate, burst, catch_up);
    }
}
