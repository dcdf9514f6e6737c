//! Stands in for the sleep on a runtime's timer where no runtime is known.

use crate::time::Nanos;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A sleep that finds no runtime anywhere.
#[derive(Debug)]
pub(super) enum RuntimeSleep {
    Unarmed,
}

impl RuntimeSleep {
    pub(super) fn poll(self: Pin<&mut Self>, _at: Nanos, _cx: &mut Context<'_>) -> Option<Poll<()>> {
        None
    }
}

pub(super) fn poll_without_budget(
    mut poll: impl FnMut(&mut Context<'_>) -> Option<Poll<()>>,
    cx: &mut Context<'_>,
) -> Option<Poll<()>> {
    poll(cx)
}
