//! Keeps a limiter that panics or hangs from ending the run.

use std::any::Any;
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// The name of the threads on which limiters are measured.
pub(crate) const THREAD: &str = "measured";

/// Why there is no figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Panicked(String),
    /// It was not done after that time. Its thread is left behind.
    Hung(Duration),
    /// It was not begun.
    NoTime,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(message) => write!(f, "panicked: {message}"),
            Self::Hung(limit) => write!(f, "not done after {:.1} s", limit.as_secs_f64()),
            Self::NoTime => f.write_str("left out: no time was left for it"),
        }
    }
}

/// Runs `work` on a thread of its own, for `limit` at most.
pub(crate) fn isolated<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    if limit.is_zero() {
        return Err(Failure::NoTime);
    }
    let (tell, told) = mpsc::sync_channel(1);
    let started = thread::Builder::new().name(THREAD.to_owned()).spawn(move || {
        let outcome = panic::catch_unwind(AssertUnwindSafe(work));
        // Nobody listens any more if it took too long.
        let _ = tell.send(outcome);
    });
    if let Err(error) = started {
        return Err(Failure::Panicked(format!("no thread for it: {error}")));
    }
    match told.recv_timeout(limit) {
        Ok(Ok(outcome)) => Ok(outcome),
        Ok(Err(panic)) => Err(Failure::Panicked(message(&*panic))),
        Err(RecvTimeoutError::Timeout) => Err(Failure::Hung(limit)),
        Err(RecvTimeoutError::Disconnected) => Err(Failure::Panicked("its thread ended without an answer".to_owned())),
    }
}

/// What a panic said, in one line.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a message").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn work_that_ends_gives_its_outcome() {
        assert_eq!(isolated(LONG, || 7), Ok(7));
    }

    #[test]
    fn a_panic_is_told_with_its_message_in_one_line() {
        assert_eq!(
            isolated(LONG, || -> u8 { panic!("first\n  second") }),
            Err(Failure::Panicked("first second".into()))
        );
        let failure = isolated(LONG, || -> u8 { panic!("{}", 1) }).unwrap_err();
        assert_eq!(failure.to_string(), "panicked: 1");
        let failure = isolated(LONG, || -> u8 { panic::panic_any(1) }).unwrap_err();
        assert_eq!(failure.to_string(), "panicked: without a message");
    }

    #[test]
    fn what_does_not_end_is_left_behind() {
        let limit = Duration::from_millis(1);
        let failure = isolated(limit, || {
            loop {
                thread::park();
            }
        });
        assert_eq!(failure, Err::<(), _>(Failure::Hung(limit)));
        assert_eq!(Failure::Hung(Duration::from_millis(1_500)).to_string(), "not done after 1.5 s");
    }

    #[test]
    fn without_any_time_nothing_is_begun() {
        assert_eq!(isolated(Duration::ZERO, || unreachable!("it must not run")), Err::<(), _>(Failure::NoTime));
    }
}
