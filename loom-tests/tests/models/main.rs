//! Loom models: a file a subject, one invariant a model.
//!
//! A model is a small program of two or three threads. Whatever loom's schedules make of it, some order of the calls must
//! explain all answers by the reference, and everybody who waits must end when the law says.
#![allow(clippy::arithmetic_side_effects, reason = "small numbers, and a panic is a failed model")]

extern crate tollgate_loom as tollgate;

mod block;
#[path = "../broken/mod.rs"]
mod broken;
mod close;
mod grant;
mod key_map;
mod keyed_waiting;
mod keys;
mod laws;
mod leaky_queue;
mod leave;
mod line;
mod log_line;
mod must_fail;
mod pause;
mod program;
mod quota;
#[path = "../reference/mod.rs"]
mod reference;
mod refund;
mod sliding_log;
#[path = "../threads/mod.rs"]
mod threads;
mod up_to;
mod window_line;
mod windows;
