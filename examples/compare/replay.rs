//! What becomes of requests under each law, and the lines that tell.

use std::fmt;

use tollgate::{FixedWindow, LeakyQueue, QuotaError, SlidingCounter, SlidingLog, TokenBucket};

use crate::pattern::Pattern;
use crate::seconds::float;
use crate::setting::{Bucket, Setting, Windows};

/// A law, by the name that stands before its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Law {
    FixedWindow,
    SlidingLog,
    SlidingCounter,
    TokenBucket,
    LeakyQueue,
}

impl Law {
    pub(crate) const ALL: [Self; 5] =
        [Self::FixedWindow, Self::SlidingLog, Self::SlidingCounter, Self::TokenBucket, Self::LeakyQueue];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::FixedWindow => "fixed window",
            Self::SlidingLog => "sliding log",
            Self::SlidingCounter => "sliding count",
            Self::TokenBucket => "token bucket",
            Self::LeakyQueue => "leaky queue",
        }
    }

    /// Whether it is set to a limit per window, and not to a capacity and a rate.
    pub(crate) fn has_windows(self) -> bool {
        matches!(self, Self::FixedWindow | Self::SlidingLog | Self::SlidingCounter)
    }

    /// Hands one request at each of the times to a law at rest.
    pub(crate) fn replay(self, setting: Setting, times: &[u64]) -> Result<Replay, QuotaError> {
        let at_once = |is_admitted: &dyn Fn(u64) -> bool| {
            times.iter().map(|&time| is_admitted(time).then_some(time)).collect::<Vec<_>>()
        };
        let served = match self {
            Self::FixedWindow => {
                let law = FixedWindow::new(setting.windows()?);
                at_once(&|time| law.try_acquire_at(time).is_ok())
            }
            Self::SlidingLog => {
                let law = SlidingLog::new(setting.windows()?)?;
                at_once(&|time| law.try_acquire_at(time).is_ok())
            }
            Self::SlidingCounter => {
                let law = SlidingCounter::new(setting.windows()?)?;
                at_once(&|time| law.try_acquire_at(time).is_ok())
            }
            Self::TokenBucket => {
                let law = TokenBucket::new(setting.bucket()?);
                at_once(&|time| law.try_acquire_at(time).is_ok())
            }
            Self::LeakyQueue => {
                let law = LeakyQueue::new(setting.bucket()?);
                times.iter().map(|&time| law.schedule_at(time).ok().map(|start| start.get())).collect()
            }
        };
        Ok(Replay { law: self, served })
    }
}

/// What a law did with each request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replay {
    pub(crate) law: Law,
    /// When it was served; `None` if it was refused.
    pub(crate) served: Vec<Option<u64>>,
}

impl fmt::Display for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<13}: ", self.law.name())?;
        if self.law == Law::LeakyQueue {
            let starts = self.served.iter().map(|start| start.map_or_else(|| "'rej'".to_owned(), float));
            return write!(f, "[{}]", starts.collect::<Vec<_>>().join(", "));
        }
        let verdicts = self.served.iter().map(|start| if start.is_some() { "ok" } else { "--" });
        f.write_str(&verdicts.collect::<Vec<_>>().join(" "))
    }
}

/// A pattern, and what every law makes of it.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(crate) pattern: Pattern,
    pub(crate) replays: Vec<Replay>,
}

impl Comparison {
    pub(crate) fn of(pattern: Pattern) -> Result<Self, QuotaError> {
        let replays = Law::ALL.map(|law| law.replay(pattern.setting, &pattern.times));
        Ok(Self { replays: replays.into_iter().collect::<Result<_, _>>()?, pattern })
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Pattern { setting, times, .. } = &self.pattern;
        let times = times.iter().map(|&time| float(time)).collect::<Vec<_>>().join(", ");
        let (windows, others): (Vec<_>, Vec<_>) = self.replays.iter().partition(|replay| replay.law.has_windows());
        writeln!(f, "{}; request times: [{times}]", Windows(*setting))?;
        windows.iter().try_for_each(|replay| writeln!(f, "{replay}"))?;
        writeln!(f, "\n{}; request times: [{times}]", Bucket(*setting))?;
        others.iter().try_for_each(|replay| writeln!(f, "{replay}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern;

    fn told(name: &str) -> String {
        let pattern = pattern::all().into_iter().find(|pattern| pattern.name == name).unwrap();
        Comparison::of(pattern).unwrap().to_string()
    }

    #[test]
    fn the_lines_of_the_article_stand_there_to_the_letter() {
        for (name, lines) in [
            (
                "seam",
                "\
limit 5 per 10 s; request times: [8.0, 8.5, 9.0, 9.2, 9.5, 10.0, 10.2, 10.4, 10.6, 10.8]
fixed window : ok ok ok ok ok ok ok ok ok ok
sliding log  : ok ok ok ok ok -- -- -- -- --
",
            ),
            (
                "spell",
                "\
capacity 5, rate 2/s; request times: [0.0, 20.0, 20.0, 20.0, 20.0, 20.0, 20.0, 20.0, 20.0, 20.0, 20.5, 21.0, 21.5, 22.0]
token bucket : ok ok ok ok ok ok -- -- -- -- ok ok ok ok
leaky queue  : [0.0, 20.0, 20.5, 21.0, 21.5, 22.0, 'rej', 'rej', 'rej', 'rej', 22.5, 23.0, 23.5, 24.0]
",
            ),
            ("trickle", "token bucket : ok ok ok -- ok ok ok --\n"),
            ("crowd", "leaky queue  : [0.0, 1.0, 2.0, 'rej', 'rej']\n"),
        ] {
            let told = told(name);
            assert!(told.contains(lines), "{lines}is missing in:\n{told}");
        }
    }

    #[test]
    fn the_laws_agree_on_nothing_but_the_first_requests() {
        assert_eq!(
            told("seam"),
            "\
limit 5 per 10 s; request times: [8.0, 8.5, 9.0, 9.2, 9.5, 10.0, 10.2, 10.4, 10.6, 10.8]
fixed window : ok ok ok ok ok ok ok ok ok ok
sliding log  : ok ok ok ok ok -- -- -- -- --
sliding count: ok ok ok ok ok -- -- -- -- --

capacity 5, rate 0.5/s; request times: [8.0, 8.5, 9.0, 9.2, 9.5, 10.0, 10.2, 10.4, 10.6, 10.8]
token bucket : ok ok ok ok ok ok -- -- -- --
leaky queue  : [8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 'rej', 'rej', 'rej']
"
        );
    }

    #[test]
    fn limits_and_capacities_of_0_refuse_everything() {
        let setting = Setting { limit: 0, capacity: 0, ..pattern::USUAL };
        for law in Law::ALL {
            assert_eq!(law.replay(setting, &[0, 1, u64::MAX]).unwrap().served, [None; 3], "{law:?}");
        }
    }

    #[test]
    fn the_last_time_there_is_can_be_replayed() {
        for law in Law::ALL {
            assert_eq!(
                law.replay(pattern::USUAL, &[0, u64::MAX]).unwrap().served,
                [Some(0), Some(u64::MAX)],
                "{law:?}"
            );
        }
    }
}
