//! What must not happen, and waiting for what must.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

/// How long to wait for what must happen soon. No machine that runs at all takes as long.
pub(crate) const STUCK: Duration = Duration::from_secs(15);

/// Something that must hold did not.
#[derive(Debug)]
pub(crate) struct Violation(String);

impl Violation {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }

    /// Names the part in which it happened.
    pub(crate) fn of(self, part: &str) -> Self {
        Self(format!("{part}: {}", self.0))
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Finds that two figures differ.
pub(crate) fn same<T: PartialEq + fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), Violation> {
    if found == expected {
        return Ok(());
    }
    Err(Violation::new(format!("{what}: {found:?}, expected {expected:?}")))
}

/// Waits until `figure` is `expected`.
pub(crate) fn becomes<T: PartialEq + fmt::Debug>(
    what: &str,
    mut figure: impl FnMut() -> T,
    expected: T,
) -> Result<(), Violation> {
    let limit = Instant::now() + STUCK;
    loop {
        let found = figure();
        if found == expected {
            return Ok(());
        }
        if Instant::now() > limit {
            return same(&format!("stuck: {what}"), found, expected);
        }
        thread::sleep(Duration::from_millis(1));
    }
}
