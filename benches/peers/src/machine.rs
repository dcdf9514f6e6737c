//! On what the figures were measured.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::process::Command;
use std::thread;

use crate::versions;

/// The head of the output: pairs of a word and what it stands for.
pub(crate) fn head() -> Vec<(&'static str, String)> {
    let versions: Vec<String> = versions::all().iter().map(|(name, version)| format!("{name} {version}")).collect();
    vec![
        ("cpu", format!("{}, {} cores", processor(), cores())),
        ("system", system()),
        ("compiler", env!("PEERS_COMPILER").to_owned()),
        ("profile", if cfg!(debug_assertions) { "debug: figures mean nothing" } else { "release" }.to_owned()),
        ("date", output("date", &["-u", "+%Y-%m-%d %H:%M UTC"])),
        ("load", load()),
        ("command", command()),
        ("versions", versions.join(", ")),
    ]
}

/// Machine, compiler and date in one line.
pub(crate) fn line() -> String {
    let compiler = env!("PEERS_COMPILER").split(" (").next().unwrap_or_default();
    format!("{}, {} cores, {compiler}, {}", processor(), cores(), output("date", &["-u", "+%Y-%m-%d"]))
}

fn cores() -> String {
    thread::available_parallelism().map_or_else(|_| "?".to_owned(), |cores| cores.to_string())
}

/// The processor's name, as the system tells it.
fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name));
    name.map_or_else(|| output("uname", &["-m"]), |name| name.trim().to_owned())
}

fn system() -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release.lines().find_map(|line| Some(line.strip_prefix("PRETTY_NAME=")?.trim_matches('"').to_owned()));
    format!("{} ({})", name.unwrap_or_else(|| "unknown".to_owned()), output("uname", &["-sr"]))
}

/// How many processes wanted to run, on average, in the last minute, 5 and 15 minutes.
fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let averages: Vec<&str> = load.split_whitespace().take(3).collect();
    if averages.is_empty() { "unknown".to_owned() } else { averages.join(" ") }
}

fn command() -> String {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let profile = if cfg!(debug_assertions) { "" } else { " --release" };
    format!("cargo run{profile} -p peers -- {}", arguments.join(" "))
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().ok().map(|output| output.stdout);
    let text = output.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    if text.trim().is_empty() { "unknown".to_owned() } else { text.trim().to_owned() }
}

/// The processor time of each thread, by its number, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessorTime(HashMap<OsString, u64>);

impl ProcessorTime {
    /// What the threads that run have used; where the system does not tell it, of none.
    pub(crate) fn now() -> Self {
        let threads = fs::read_dir("/proc/self/task").into_iter().flatten().filter_map(|thread| {
            let thread = thread.ok()?;
            let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            Some((thread.file_name(), text.split_whitespace().next()?.parse().ok()?))
        });
        Self(threads.collect())
    }

    /// What the threads that still run have used since; none where the system does not tell it.
    pub(crate) fn since(&self, before: &Self) -> Option<u64> {
        let used = |(thread, now): (&OsString, &u64)| now.saturating_sub(before.0.get(thread).copied().unwrap_or(0));
        (!self.0.is_empty()).then(|| self.0.iter().map(used).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_ended_take_nothing_away_from_those_that_run() {
        let of = |threads: &[(&str, u64)]| {
            ProcessorTime(threads.iter().map(|&(thread, time)| (thread.into(), time)).collect())
        };
        let (before, after) = (of(&[("1", 10), ("2", 500)]), of(&[("1", 25), ("3", 7)]));
        assert_eq!(after.since(&before), Some(15 + 7));
        assert_eq!(of(&[]).since(&before), None);
    }

    #[test]
    fn the_head_says_something_about_everything() {
        let head = head();
        for (word, text) in &head {
            assert!(!text.is_empty(), "{word}");
        }
        let versions = &head.iter().find(|(word, _)| *word == "versions").unwrap().1;
        assert!(versions.contains("governor 0."), "{versions}");
    }
}
