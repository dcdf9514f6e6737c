//! Limiters and queues that are wrong on purpose, in one known way each. What checks the crate has to find that; a check that
//! has never been red proves nothing.

pub(crate) mod line;
pub(crate) mod table;
pub(crate) mod word;

#[cfg(tollgate_loom)]
use loom::sync as checked;
#[cfg(tollgate_shuttle)]
use shuttle::sync as checked;
