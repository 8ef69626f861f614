//! Limits of what the status shows of storage, of shares and of logical units alike.

use std::time::Duration;

/// How long storage may take to answer what the status shows of it every few seconds: free space of
/// a share, the size of a logical unit. Then it is shown as stuck, and nothing else waits for it.
pub const STORAGE_LOOK_TIME_MAX: Duration = Duration::from_millis(200);
