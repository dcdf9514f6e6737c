//! Programs of several threads, and whether some order of their calls explains what was seen.

use super::{Op, Outcome, Reference};

/// What each thread asked and was answered, in its order.
pub(crate) type Seen = Vec<Vec<(Op, Outcome)>>;

/// A waiter's end: when, who, and with which answer.
pub(crate) type End = (u64, usize, Outcome);

/// Something with a line whose waiters poll when they are woken, and when their timers ring.
pub(crate) trait Drive {
    fn answer(&mut self, op: Op) -> Outcome;

    /// When `who` will ask again that was told to do so at `told`: 0 if it was woken.
    fn alarm(&mut self, who: usize, told: u64) -> u64;
}

/// Lets all that wait in `told` poll whenever they are woken or their timers ring, from `now` on until nobody waits. The
/// last entry is what a newcomer would then have to wait.
pub(crate) fn drive(subject: &mut impl Drive, mut told: Vec<(usize, u64)>, mut now: u64) -> Vec<End> {
    let mut ends = Vec::new();
    let mut in_vain = 0;
    while !told.is_empty() {
        for (who, until) in &mut told {
            *until = subject.alarm(*who, *until);
        }
        let Some(next) = told.iter().position(|&(_, alarm)| alarm <= now) else {
            now = told.iter().map(|&(_, alarm)| alarm).min().unwrap_or(now);
            assert!(now < u64::MAX, "nobody will ever wake {told:?}");
            continue;
        };
        let who = told[next].0;
        match subject.answer(Op::Step { who, now }) {
            Outcome::Waits(until) => {
                in_vain += 1;
                assert!(in_vain < 100, "{who} polls for ever");
                told[next].1 = until;
            }
            answer => {
                told.remove(next);
                ends.push((now, who, answer));
            }
        }
    }
    // Who of several polls first at one instant is up to their executors.
    ends.sort_by_key(|&(at, who, _)| (at, who));
    ends.push((now, usize::MAX, subject.answer(Op::Estimate { n: 1, now })));
    ends
}

/// Who waits after those calls, and until when it was told to.
pub(crate) fn still_waiting<'a>(calls: impl IntoIterator<Item = &'a (Op, Outcome)>) -> Vec<(usize, u64)> {
    let mut told: Vec<(usize, u64)> = Vec::new();
    for (op, outcome) in calls {
        if let Op::Enter { who, .. } | Op::Step { who, .. } | Op::Leave { who, .. } = *op {
            told.retain(|(other, _)| *other != who);
            if let Outcome::Waits(until) = *outcome {
                told.push((who, until));
            }
        }
    }
    told.sort_unstable();
    told
}

/// Whether the calls that each thread made, in some order that keeps each thread's own, could have had these answers, and
/// have left behind what `fits` looks for.
pub(crate) fn explains<R: Reference>(start: &R, seen: &Seen, fits: &impl Fn(R) -> bool) -> bool {
    let threads = seen.iter().map(|calls| Thread { calls, begun: false }).collect::<Vec<_>>();
    search(start, &threads, fits)
}

/// The calls of a thread that have not been placed yet.
#[derive(Clone, Copy)]
struct Thread<'a> {
    calls: &'a [(Op, Outcome)],
    /// Whether the first of them has begun.
    begun: bool,
}

fn search<R: Reference>(state: &R, threads: &[Thread<'_>], fits: &impl Fn(R) -> bool) -> bool {
    if threads.iter().all(|thread| thread.calls.is_empty()) {
        return fits(state.clone());
    }
    (0..threads.len()).any(|index| {
        let Some(((op, outcome), rest)) = threads[index].calls.split_first() else { return false };
        let mut next = threads.to_vec();
        let mut done = state.clone();
        next[index] = Thread { calls: rest, begun: false };
        if done.call(*op).allows(outcome) && search(&done, &next, fits) {
            return true;
        }
        let mut begun = state.clone();
        next[index] = Thread { begun: true, ..threads[index] };
        !threads[index].begun && begun.begin(*op) && search(&begun, &next, fits)
    })
}
