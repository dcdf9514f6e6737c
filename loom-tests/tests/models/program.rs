//! Runs small programs of several threads under loom.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::reference::order::{Drive, End, Seen, drive, explains, still_waiting};
use crate::reference::real::{self, Subject};
use crate::reference::{Law, Op, Outcome, Reference, bucket, line};
use crate::window_line::{self, reference::WindowLine};

/// Explores the schedules of `f` with at most three preemptions (or `LOOM_MAX_PREEMPTIONS`), and tells how many there were.
pub(crate) fn model(f: impl Fn() + Send + Sync + 'static) -> usize {
    model_within(3, f)
}

/// The same with at most `preemptions`.
pub(crate) fn model_within(preemptions: usize, f: impl Fn() + Send + Sync + 'static) -> usize {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    // Steps of one schedule: a table that is filled first takes many.
    builder.max_branches = 10_000;
    let (count, start) = (Arc::new(AtomicUsize::new(0)), Instant::now());
    let counted = Arc::clone(&count);
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        f();
    });
    let (name, count) = (std::thread::current().name().map(str::to_owned), count.load(Ordering::Relaxed));
    eprintln!("{}: {count} schedules in {:.2?}", name.unwrap_or_default(), start.elapsed());
    count
}

/// What happens before the threads start, and what each thread asks.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) law: Law,
    pub(crate) catch_up: Duration,
    pub(crate) places: usize,
    pub(crate) before: Vec<Op>,
    pub(crate) threads: Vec<Vec<Op>>,
}

impl Program {
    pub(crate) fn new<const THREADS: usize>(law: Law, before: &[Op], threads: [&[Op]; THREADS]) -> Self {
        let (before, threads) = (before.to_vec(), threads.map(<[Op]>::to_vec).to_vec());
        Self { law, catch_up: Duration::ZERO, places: usize::MAX, before, threads }
    }

    pub(crate) fn catch_up(self, nanos: u64) -> Self {
        Self { catch_up: Duration::from_nanos(nanos), ..self }
    }

    pub(crate) fn places(self, places: usize) -> Self {
        Self { places, ..self }
    }

    /// The last instant that a call names.
    fn end(&self) -> u64 {
        self.before.iter().chain(self.threads.iter().flatten()).map(Op::now).max().unwrap_or(0)
    }

    /// Checks the crate's bucket.
    pub(crate) fn check_bucket(self) {
        self.check_as_bucket(real::Bucket::new);
    }

    /// Checks the crate's queue.
    pub(crate) fn check_line(self) {
        self.check_as_line(real::Line::new);
    }

    /// Checks the crate's queue in front of a fixed window.
    pub(crate) fn check_window_line(self) {
        self.check_as_window_line(window_line::real);
    }

    /// Checks that the bucket that `make` makes answers as a bucket would, and is left as one would be.
    pub(crate) fn check_as_bucket<S: Subject>(self, make: impl Fn(Law) -> S + Send + Sync + 'static) {
        let bucket = bucket::Bucket::new(self.law);
        self.check_as(bucket, make, |now| Op::Look { now });
    }

    /// Checks that the limiter that `make` makes answers as `reference` would, and is left as that would be: `last` asks.
    pub(crate) fn check_as<R: Reference + Send + Sync + 'static, S: Subject>(
        self,
        reference: R,
        make: impl Fn(Law) -> S + Send + Sync + 'static,
        last: fn(u64) -> Op,
    ) {
        let start = self.prepared(reference);
        self.in_turn(move |program| {
            let subject = Arc::new(make(program.law));
            let (_, seen) = program.run(&subject);
            let last = last(program.end());
            let left = subject.call(last);
            let fits = |mut reference: R| reference.call(last).allows(&left);
            assert!(explains(&start, &seen, &fits), "no order explains {:#?} leaving {left:?}", Calls(&seen));
        });
    }

    /// Checks that the queue that `make` makes answers as a queue would, and that those who are left in it end when the law
    /// says.
    pub(crate) fn check_as_line<S: Subject>(self, make: impl Fn(Law, Duration, usize) -> S + Send + Sync + 'static) {
        let start = line::Line::new(self.law, self.catch_up, self.places);
        self.check_queue(start, move |program| make(program.law, program.catch_up, program.places));
    }

    /// The same for the queue in front of a fixed window.
    pub(crate) fn check_as_window_line<S: Subject>(self, make: impl Fn(Law) -> S + Send + Sync + 'static) {
        let start = WindowLine::new(self.law);
        self.check_queue(start, move |program| make(program.law));
    }

    fn check_queue<R: Reference + Drive + Send + Sync + 'static, S: Subject>(
        self,
        start: R,
        make: impl Fn(&Self) -> S + Send + Sync + 'static,
    ) {
        let start = self.prepared(start);
        self.in_turn(move |program| {
            let subject = Arc::new(make(program));
            let (before, seen) = program.run(&subject);
            let told = still_waiting(before.iter().chain(seen.iter().flatten()));
            let ends: Vec<End> = drive(&mut &*subject, told.clone(), program.end());
            let fits = |mut line: R| drive(&mut line, told.clone(), program.end()) == ends;
            assert!(explains(&start, &seen, &fits), "no order explains {:#?} ending in {ends:?}", Calls(&seen));
        });
    }

    /// Explores the program with each of its threads as the first in turn. Loom compares an access only with the last one of
    /// the same atomic, so it may miss an order in which one thread is done before another begins; its first schedule is
    /// such an order.
    fn in_turn(self, check: impl Fn(&Self) + Send + Sync + 'static) {
        let (check, threads) = (Arc::new(check), self.threads.len());
        let explore = |first| {
            let (mut program, check) = (self.clone(), Arc::clone(&check));
            program.threads.rotate_left(first);
            model(move || check(&program))
        };
        let schedules: usize = (0..threads).map(explore).sum();
        assert!(schedules > threads, "the threads of this model never meet");
    }

    /// The reference after what happens before the threads start.
    fn prepared<R: Reference>(&self, mut reference: R) -> R {
        for op in &self.before {
            reference.call(*op);
        }
        reference
    }

    /// Makes all calls: what was answered before the threads start, and in each of them. The first runs in loom's main thread.
    fn run<S: Subject>(&self, subject: &Arc<S>) -> (Vec<(Op, Outcome)>, Seen) {
        let ask = |subject: &S, ops: &[Op]| ops.iter().map(|op| (*op, subject.call(*op))).collect::<Vec<_>>();
        let before = ask(subject, &self.before);
        let (first, others) = self.threads.split_first().expect("a program has threads");
        let others: Vec<_> = others
            .iter()
            .map(|ops| {
                let (subject, ops) = (Arc::clone(subject), ops.clone());
                loom::thread::spawn(move || ask(&subject, &ops))
            })
            .collect();
        let mut seen = vec![ask(subject, first)];
        seen.extend(others.into_iter().map(|thread| thread.join().unwrap()));
        (before, seen)
    }
}

/// Prints calls a line each.
struct Calls<'a>(&'a Seen);

impl std::fmt::Debug for Calls<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (thread, calls) in self.0.iter().enumerate() {
            for (op, outcome) in calls {
                writeln!(f, "thread {thread}: {op:?} -> {outcome:?}")?;
            }
        }
        Ok(())
    }
}
