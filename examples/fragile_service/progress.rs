//! A bar that shows on a terminal how a phase goes.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::report;
use crate::service::Tally;

/// The time of a step of the bar.
pub(crate) const STEP: Duration = Duration::from_millis(1_000 / STEPS);

/// So many steps are a second.
pub(crate) const STEPS: u64 = 10;

const LOOKS: &str = "{prefix:<9} [{bar:40}] {msg}";

/// The progress of one phase: a bar where standard error is a terminal, and a line every second anywhere.
#[derive(Debug)]
pub(crate) struct Progress {
    phase: &'static str,
    bar: ProgressBar,
}

impl Progress {
    /// Begins a phase of so many seconds. The bar draws nothing where there is no terminal.
    pub(crate) fn new(phase: &'static str, seconds: u64) -> Self {
        let bar = ProgressBar::new(seconds * STEPS).with_prefix(phase);
        if let Ok(style) = ProgressStyle::with_template(LOOKS) {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { phase, bar }
    }

    /// Tells how it stands `step` steps after the beginning.
    pub(crate) fn show(&self, step: u64, tally: Tally) {
        self.bar.set_message(format!("{} served, {} refused, {} falls", tally.served, tally.refused, tally.falls));
        self.bar.set_position(step);
        if step % STEPS == 0 {
            self.bar.suspend(|| report::progress(self.phase, step / STEPS, tally));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_looks_of_the_bar_are_sound() {
        assert!(ProgressStyle::with_template(LOOKS).is_ok());
    }
}
