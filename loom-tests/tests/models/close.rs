//! The end of all waits.

use crate::program::Program;
use crate::reference::Law;
use crate::reference::Op::{Close, Enter, Step, Try};

const fn enter(who: usize, now: u64) -> crate::reference::Op {
    Enter { who, n: 1, now, deadline: u64::MAX }
}

/// Nobody lines up in a closed queue and waits for ever.
pub(crate) fn newcomers() -> Program {
    let before = [Try { n: 1, now: 0 }];
    Program::new(Law::new(10, 1), &before, [&[Close { now: 5 }], &[enter(0, 5)], &[enter(1, 5)]])
}

#[test]
fn nobody_waits_in_a_closed_line() {
    newcomers().check_line();
}

/// Nothing is granted after the end, and a grant made before it stands.
#[test]
fn a_grant_comes_before_the_end_or_not_at_all() {
    let before = [Try { n: 1, now: 0 }, enter(0, 0)];
    let steps = [Step { who: 0, now: 10 }, Try { n: 1, now: 20 }];
    Program::new(Law::new(10, 1), &before, [&[Close { now: 10 }], &steps]).check_line();
}

/// Who passes without a lock sees the end, or comes before it.
pub(crate) fn passes() -> Program {
    let closes = [Close { now: 0 }, Try { n: 1, now: 0 }];
    let passes = [Try { n: 1, now: 0 }, Try { n: 1, now: 10 }];
    Program::new(Law::new(10, 1), &[], [&closes, &passes])
}

#[test]
fn who_closes_and_then_asks_is_refused() {
    passes().check_line();
}
