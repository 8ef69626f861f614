//! What this process may do: act as its callers, and open files by their handles.

use std::fs::File;

use vfs::host::acting;
use vfs::host::sys::capabilities;

use super::finding::Finding;
use crate::sys;

/// Names of the rights that acting as others takes, by bit (capabilities(7)).
const NAMES: [(u32, &str); 7] = [
    (0, "CHOWN"),
    (1, "DAC_OVERRIDE"),
    (2, "DAC_READ_SEARCH"),
    (3, "FOWNER"),
    (4, "FSETID"),
    (6, "SETGID"),
    (7, "SETUID"),
];

/// Everything about rights.
pub fn findings(dir: &File) -> Vec<Finding> {
    let (named, opened) = sys::try_handles(dir);
    vec![
        callers(),
        Finding::new(
            "kernel handles",
            "file handles that survive everything",
            "handles of inode and parent with a durable table",
            "CAP_DAC_READ_SEARCH, and a file system that can be exported (ext4, xfs, btrfs, tmpfs)",
        )
        .tried(named.and(opened)),
    ]
}

fn callers() -> Finding {
    let finding = Finding::new(
        "callers' ids",
        "each caller's own uid, gid and groups decide about rights",
        "everything acts as the serving user",
        "start as root, or as the installed service",
    );
    let own = acting::own();
    if acting::can_switch() {
        return finding.is(true, format!("uid {} may act as others", own.uid));
    }
    let rights = capabilities().map_or(0, |own| own.effective);
    let lacks: Vec<&str> =
        NAMES.iter().filter(|(bit, _)| rights >> bit & 1 == 0).map(|(_, name)| *name).collect();
    let found = match lacks.as_slice() {
        [] => format!("uid {} may not act as others here", own.uid),
        lacks => format!("uid {}, without {}", own.uid, lacks.join(", ")),
    };
    finding.is(false, found)
}
