//! Nobody waits for a thread that is stopped: one is frozen at each of its steps in turn, and the others must end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};
use shuttle::sync::Mutex;
use shuttle::{Config, Runner};

use crate::reference::bucket::Bucket;
use crate::reference::real::{self, Subject};
use crate::reference::{Law, Op, Outcome, Reference};
use crate::run::{iterations, report};

/// The first thread that a run spawns.
const VICTIM: usize = 1;
/// More steps than any victim here takes.
const STEPS: usize = 40;
/// Whoever takes more than this beside a frozen thread will never end.
const ENOUGH: usize = 2_000;

/// Runs threads in random order, and one of them no further than to a certain step.
struct Freeze {
    runs: usize,
    random: u64,
    freezes_at: usize,
    victims_steps: usize,
    steps: usize,
    /// How many threads beside the victim have not ended.
    left: Arc<AtomicUsize>,
    /// In how many runs they never would.
    stuck: Arc<AtomicUsize>,
}

impl Scheduler for Freeze {
    fn new_execution(&mut self) -> Option<Schedule> {
        self.runs = self.runs.checked_sub(1)?;
        (self.freezes_at, self.victims_steps, self.steps) = (self.runs % STEPS, 0, 0);
        Some(Schedule::new(0))
    }

    fn next_task(&mut self, runnable: &[&Task], _: Option<TaskId>, _: bool) -> Option<TaskId> {
        let frozen = self.victims_steps >= self.freezes_at;
        let ids = runnable.iter().map(|task| task.id());
        let awake: Vec<TaskId> = ids.filter(|id| !frozen || usize::from(*id) != VICTIM).collect();
        self.steps += 1;
        if awake.is_empty() || self.steps == ENOUGH {
            self.stuck.fetch_add(usize::from(self.left.load(Ordering::Relaxed) > 0), Ordering::Relaxed);
            // The thread thaws, so that the run ends.
            self.freezes_at = usize::MAX;
        }
        let next = match awake.len() {
            0 => runnable[0].id(),
            options => awake[usize::try_from(self.next_u64() >> 33).unwrap() % options],
        };
        self.victims_steps += usize::from(usize::from(next) == VICTIM);
        Some(next)
    }

    fn next_u64(&mut self) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.random
    }
}

/// In how many runs two threads that make the calls in `others` do not end while one that makes those in `victim` is frozen.
pub(crate) fn stuck<S: Subject>(make: impl Fn() -> S + Send + Sync + 'static, victim: &[Op], others: &[Op]) -> usize {
    stuck_in(make, S::call, victim, others)
}

/// The same for other calls, each of which is made by `call`.
pub(crate) fn stuck_in<S, C, R>(
    make: impl Fn() -> S + Send + Sync + 'static,
    call: fn(&S, C) -> R,
    victim: &[C],
    others: &[C],
) -> usize
where
    S: Send + Sync + 'static,
    C: Copy + Send + Sync + 'static,
    R: 'static,
{
    let (left, stuck) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let scheduler = Freeze {
        runs: iterations(4_000),
        random: 1,
        freezes_at: 0,
        victims_steps: 0,
        steps: 0,
        left: Arc::clone(&left),
        stuck: Arc::clone(&stuck),
    };
    let (victim, others) = (victim.to_vec(), others.to_vec());
    Runner::new(scheduler, Config::default()).run(move || {
        let subject = Arc::new(make());
        left.store(2, Ordering::Relaxed);
        let threads = [victim.clone(), others.clone(), others.clone()];
        let threads: Vec<_> = threads
            .into_iter()
            .enumerate()
            .map(|(thread, calls)| {
                let (subject, left) = (Arc::clone(&subject), Arc::clone(&left));
                shuttle::thread::spawn(move || {
                    for op in calls {
                        call(&subject, op);
                    }
                    left.fetch_sub(usize::from(thread > 0), Ordering::Relaxed);
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    stuck.load(Ordering::Relaxed)
}

const TRY: Op = Op::Try { n: 1, now: 10 };
const REFUND: Op = Op::Refund { n: 1, now: 10 };
const CHANGE: Op = Op::SetQuota { law: Law::new(7, 2), now: 10 };
const PAUSE: Op = Op::Pause { end: 50, now: 10 };
const RESUME: Op = Op::Pause { end: 11, now: 11 };
const VICTIMS: [&[Op]; 4] = [&[TRY, TRY], &[REFUND, Op::Look { now: 10 }], &[CHANGE, TRY], &[PAUSE, RESUME]];

#[test]
fn a_bucket_answers_while_a_thread_is_frozen() {
    // A refund with a time before the last change may have to move the origin, under the setters' lock.
    let decisions = [
        TRY,
        Op::Peek { n: 2, now: 12 },
        Op::Refund { n: 1, now: 50 },
        Op::Look { now: 12 },
        Op::UpTo { n: 2, now: 12 },
        Op::Reset { now: 50 },
        Op::Try { n: 2, now: 20 },
    ];
    report(|| {
        for victim in VICTIMS {
            assert_eq!(stuck(|| real::Bucket::new(Law::new(10, 3)), victim, &decisions), 0, "beside {victim:?}");
        }
    });
}

#[test]
fn a_shaper_without_waiters_answers_while_a_thread_is_frozen() {
    // The first two pass, as a rule; the others are refused. The last is too large for one of the quotas.
    let decisions = [TRY, Op::Try { n: 1, now: 12 }, TRY, Op::UpTo { n: 2, now: 14 }, Op::Try { n: 2, now: 20 }];
    let line = || real::Line::new(Law::new(10, 2), std::time::Duration::ZERO, usize::MAX);
    report(|| {
        for victim in [&[TRY, TRY][..], &[REFUND], &[CHANGE, TRY], &[PAUSE, RESUME]] {
            assert_eq!(stuck(line, victim, &decisions), 0, "beside {victim:?}");
        }
    });
}

/// A bucket behind a lock.
struct Locked(Mutex<Bucket>);

impl Subject for Locked {
    fn call(&self, op: Op) -> Outcome {
        self.0.lock().unwrap().call(op).outcome()
    }
}

#[test]
fn a_bucket_behind_a_lock_is_found() {
    let stuck = stuck(|| Locked(Mutex::new(Bucket::new(Law::new(10, 3)))), &[TRY, TRY], &[TRY, TRY]);
    assert!(stuck > 0, "nobody ever waited for the frozen thread");
}
