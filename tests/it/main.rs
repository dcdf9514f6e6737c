//! Integration tests: one module a subject.
#![allow(clippy::arithmetic_side_effects, reason = "a test that overflows fails, as it should")]

mod bucket_flaws;
mod differential;
mod reference;
