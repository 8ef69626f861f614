//! What the file system of the directory can do, and room for the state.

use std::fs::File;
use std::path::Path;

use super::finding::Finding;
use super::machine::first_line;
use crate::sys;

/// Statistics of a busy year, keys and configuration fit.
const STATE_ROOM: u64 = 1 << 30;
/// Below that a few clients with delegations use all watches up.
const WATCHES_FEW: u64 = 8192;

/// Everything about files.
pub fn findings(path: &Path, dir: &File, state: &Path) -> Vec<Finding> {
    vec![nowait(path, dir), lookups(), watches(path), room(state)]
}

fn nowait(path: &Path, dir: &File) -> Finding {
    let finding = Finding::new(
        "RWF_NOWAIT",
        "cached reads are answered without a change of thread",
        "reads go to the pool of threads",
        "a directory on ext4, xfs or btrfs",
    );
    if sys::is_in_memory(dir) {
        return finding.is(true, "not needed: these files are in memory");
    }
    match sys::try_nowait(path) {
        Some(result) => finding.tried(result),
        None => finding.unknown("no file can be made in this directory to try"),
    }
}

fn lookups() -> Finding {
    Finding::new(
        "RESOLVE_CACHED",
        "cached lookups are answered without a change of thread",
        "lookups go to the pool of threads",
        "Linux 5.12 or newer",
    )
    .tried(sys::try_resolve_cached())
}

fn watches(path: &Path) -> Finding {
    let finding = Finding::new(
        "inotify watches",
        "clients with delegations hear of what programs on this machine change",
        "files that cannot be watched are not delegated",
        "sysctl fs.inotify.max_user_watches=524288",
    );
    if let Err(e) = sys::try_watch(path) {
        return finding.tried(Err(e));
    }
    let most: u64 = first_line("/proc/sys/fs/inotify/max_user_watches").parse().unwrap_or(0);
    finding.is(most >= WATCHES_FEW, format!("at most {most}"))
}

/// The state may not exist yet: then what is above it counts.
fn room(state: &Path) -> Finding {
    let finding = Finding::new(
        "room for state",
        "statistics, keys and configuration are kept, 1 GiB for a busy year",
        "statistics are lost when the file system is full",
        "--state DIR on a larger file system",
    );
    let above = state.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    match sys::bytes_free(above) {
        Ok(free) => {
            let found = format!("{} free for {}", base::units::bytes(free as f64), state.display());
            finding.is(free >= STATE_ROOM, found)
        }
        Err(e) => finding.unknown(e.to_string()),
    }
}
