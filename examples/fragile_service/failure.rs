//! What ends a run early.

use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use std::{fmt, io};

use tokio::task::JoinError;

/// Why a run could not be made or finished. A single call that fails is no such reason: it is counted.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The operating system gave no threads or no event queue.
    Runtime(io::Error),
    /// The service got no loopback port.
    Listen(io::Error),
    /// A caller got no connection before its phase began.
    Connect(SocketAddr, io::Error),
    /// A caller panicked.
    Caller(JoinError),
    /// The outcomes could not be written to standard output.
    Print(io::Error),
    /// The picture of the run could not be written there.
    Picture(PathBuf, io::Error),
    /// The run was not over after this time.
    Late(Duration),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runtime(error) => write!(f, "cannot start the runtime: {error}"),
            Self::Listen(error) => write!(f, "cannot listen on a loopback port: {error}"),
            Self::Connect(address, error) => write!(f, "cannot connect to the service at {address}: {error}"),
            Self::Caller(error) => write!(f, "a caller of the service broke off: {error}"),
            Self::Print(error) => write!(f, "cannot print the outcome: {error}"),
            Self::Picture(path, error) => write!(f, "cannot write the picture to {}: {error}", path.display()),
            Self::Late(limit) => write!(f, "gave up: the run was not over after {limit:?}"),
        }
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Runtime(error)
            | Self::Listen(error)
            | Self::Connect(_, error)
            | Self::Print(error)
            | Self::Picture(_, error) => Some(error),
            Self::Caller(error) => Some(error),
            Self::Late(_) => None,
        }
    }
}
