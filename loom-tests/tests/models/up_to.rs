//! What is there is taken, as much as is asked for.

use crate::program::Program;
use crate::reference::Law;
use crate::reference::Op::{Reset, Try, UpTo};

/// All is taken that is there: before a reset what is left, after it the whole burst.
#[test]
fn a_reset_comes_before_what_is_taken_or_after_it() {
    let before = [Try { n: 1, now: 0 }];
    let takes = [UpTo { n: 3, now: 0 }, Try { n: 2, now: 0 }];
    let program = Program::new(Law::new(10, 3), &before, [&[Reset { now: 0 }], &takes]);
    program.clone().check_bucket();
    program.check_line();
}
