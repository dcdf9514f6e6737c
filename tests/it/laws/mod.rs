//! The window laws, each against a reference of its own and against its statement.

mod differential;
pub(crate) mod fixed_window;
mod flaws;
mod leaky_queue;
mod real;
pub(crate) mod reference;
mod reports;
pub(crate) mod sliding_counter;
pub(crate) mod sliding_log;
mod statement;
