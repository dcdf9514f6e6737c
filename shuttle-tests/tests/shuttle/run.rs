//! Runs closures and small random programs under shuttle's schedulers.

use std::sync::Arc;
use std::time::Instant;

use shuttle::rand::Rng;
use shuttle::rand::rngs::ThreadRng;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};

use crate::reference::order::Seen;
use crate::reference::real::Subject;
use crate::reference::{Op, Outcome};

/// How often a run is repeated: `ITERS`, or what suits it by default.
pub(crate) fn iterations(default: usize) -> usize {
    std::env::var("ITERS").ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Every run tries the same schedules, unless `SHUTTLE_RANDOM_SEED` says another seed.
const SEED: u64 = 1;

/// Runs `f` under random schedules, and under those of PCT with three changes of priority. Shuttle prints the schedule of a
/// failure.
pub(crate) fn check(default: usize, f: impl Fn() + Send + Sync + 'static) {
    let (f, count) = (Arc::new(f), iterations(default));
    let random = Arc::clone(&f);
    report(|| {
        Runner::new(RandomScheduler::new_from_seed(SEED, count), Config::default()).run(move || random());
        Runner::new(PctScheduler::new_from_seed(SEED, 3, count), Config::default()).run(move || f());
        eprintln!("{count} schedules of each kind");
    });
}

/// Runs `f` and tells how long that took.
pub(crate) fn report(f: impl FnOnce()) {
    let start = Instant::now();
    f();
    let name = std::thread::current().name().map(str::to_owned);
    eprintln!("{}: {:.2?}", name.unwrap_or_default(), start.elapsed());
}

/// One of `options`.
pub(crate) fn pick<T: Copy>(random: &mut ThreadRng, options: &[T]) -> T {
    options[random.gen_range(0..options.len())]
}

/// Makes the calls of each thread, and notes what was answered. The first thread is the caller's.
pub(crate) fn run<S: Subject>(subject: &Arc<S>, threads: Vec<Vec<Op>>) -> Seen {
    let ask = |subject: &S, ops: Vec<Op>| -> Vec<(Op, Outcome)> {
        ops.into_iter().map(|op| (op, subject.call(op))).collect()
    };
    let handles: Vec<_> = threads
        .into_iter()
        .map(|ops| {
            let subject = Arc::clone(subject);
            shuttle::thread::spawn(move || ask(&subject, ops))
        })
        .collect();
    handles.into_iter().map(|thread| thread.join().unwrap()).collect()
}
