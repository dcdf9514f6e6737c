//! The window laws, each against a reference of its own and against its statement.

mod differential;
mod fixed_window;
mod flaws;
mod leaky_queue;
mod real;
mod reference;
mod reports;
mod sliding_counter;
mod sliding_log;
mod statement;
