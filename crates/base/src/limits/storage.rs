//! Limits of what the status shows of storage, of shares and of logical units alike.

use std::time::Duration;

/// How long storage may take to answer what the status shows of it every few seconds: free space of
/// a share, the size of a logical unit. Then it is shown as stuck, and nothing else waits for it.
pub const STORAGE_LOOK_TIME_MAX: Duration = Duration::from_millis(200);

/// Most snapshots of a share that clients see: each is looked at when one was created or destroyed.
pub const SNAPSHOTS_MAX: usize = 4_096;
/// Most snapshots of a share that are open at the same time, each with a thread and descriptors of
/// its own. A client that goes through all of them has the least recently used one closed.
pub const SNAPSHOTS_OPEN_MAX: usize = 32;
/// How old the change of a directory must be for a list that was read after it to be complete:
/// file systems take their times from a clock that ticks each 1 to 10 ms.
pub const SNAPSHOTS_SETTLED: Duration = Duration::from_millis(50);
