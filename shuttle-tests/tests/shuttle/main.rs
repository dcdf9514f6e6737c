//! Randomised schedules over the word and the shaper.
#![allow(clippy::arithmetic_side_effects, reason = "small numbers, and a panic is a failed run")]

extern crate tollgate_shuttle as tollgate;

mod block;
#[path = "../../../loom-tests/tests/broken/mod.rs"]
mod broken;
mod every_call;
mod freeze;
mod history;
mod keyed_waiting;
mod keys;
mod laws;
mod linear;
#[path = "../../../loom-tests/tests/models/laws/mod.rs"]
mod other_laws;
#[path = "../../../loom-tests/tests/reference/mod.rs"]
mod reference;
mod run;
mod stress;
#[path = "../../../loom-tests/tests/threads/mod.rs"]
mod threads;
