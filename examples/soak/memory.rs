//! How large the process is.

use std::fs;

/// The memory of the process that is resident, in bytes; `None` where there is no `/proc/self/statm`.
///
/// That file counts pages, and of their size it says nothing; `/proc/self/status` tells the same figure in kB.
pub(crate) fn resident() -> Option<u64> {
    fs::metadata("/proc/self/statm").ok()?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes << 10)
}
