//! Files taken out of the page cache, so that the next read comes from the disk.
//!
//! In this order for each file: what is dirty is written back, our mappings of it are removed
//! (POSIX_FADV_DONTNEED frees no page that is mapped), the pages are dropped. Then the pages are
//! counted by cachestat(2): the count is the proof, the call alone is none. A file of which the
//! write-back failed keeps its pages: they may be the only copy.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use base::clock::Deadline;
use base::memory::{cached_pages, dont_need, page_size};
use base::node::{self, Kind, Property};

use crate::fs::Result;
use crate::mapped::Sending;

/// How long replies may take that are sent from mappings of a file. A client that takes no data
/// keeps its mapping; the file then counts as kept.
const SENDING_MAX: Duration = Duration::from_millis(500);
/// How often it is asked whether they are sent.
const SENDING_STEP: Duration = Duration::from_millis(1);
/// Failures of which the reason is kept; all are counted.
const FAILURES_KEPT: usize = 8;

/// The result of `drop_cache`.
pub const DROPPED: &str = "Files and bytes looked at, bytes in memory before and after (by \
     cachestat), files that stayed in memory, and failures. With \
     running, the time to wait was over: the same call returns the result later.";

/// The parameter of `drop_cache` that all nodes have: less than the command line waits for a reply.
pub const WAIT: Property = Property::setting(
    "seconds",
    "Wait",
    Kind::Integer { min: 0, max: 25 },
    node::Default::Integer(20),
    "Time to wait for the result. The run continues after that.",
)
.unit("s");

/// What was dropped. Amounts are bytes, in whole pages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CacheDrop {
    /// Files looked at.
    pub files: u64,
    /// Their size.
    pub bytes: u64,
    /// In the page cache before.
    pub before: u64,
    /// In the page cache after.
    pub after: u64,
    /// Of these not on the disk.
    pub dirty: u64,
    /// Files with pages in the page cache after.
    pub kept: u64,
    /// Files of which a mapping was still being sent from.
    pub sending: u64,
    /// Files of which the kernel does not count the pages (before Linux 6.5).
    pub uncounted: u64,
    /// Files and directories with which something failed.
    pub failed: u64,
    /// The first of these failures, each in a sentence.
    pub failures: Vec<String>,
}

/// One file to be dropped.
pub(crate) struct CachedFile<'a> {
    /// Open for reading.
    pub(crate) fd: BorrowedFd<'a>,
    /// Its size, bytes.
    pub(crate) size: u64,
    /// Whether writes of clients wait for a flush, wherever their data is.
    pub(crate) unwritten: bool,
    /// Brings its data to the disk.
    pub(crate) write_back: &'a dyn Fn() -> Result<()>,
    /// Removes our mappings of it.
    pub(crate) unmap: &'a dyn Fn() -> Sending,
    /// Its name, for failures.
    pub(crate) name: &'a dyn Fn() -> String,
}

impl CacheDrop {
    /// Notes a failure.
    pub(crate) fn fail(&mut self, sentence: impl FnOnce() -> String) {
        self.failed += 1;
        if self.failures.len() < FAILURES_KEPT {
            self.failures.push(sentence());
        }
    }

    /// Drops one file and counts it.
    pub(crate) fn take(&mut self, file: &CachedFile<'_>) {
        let page = page_size();
        let before = cached_pages(file.fd, 0, 0);
        self.files += 1;
        self.bytes += file.size.div_ceil(page) * page;
        // Nothing of it is in memory, and nothing is to be written back.
        if before.as_ref().is_ok_and(|pages| pages.resident == 0) && !file.unwritten {
            drop((file.unmap)());
            return;
        }
        let dropped = self.drop_pages(file);
        let after = cached_pages(file.fd, 0, 0);
        let (Ok(before), Ok(after)) = (before, after) else {
            self.uncounted += 1;
            return;
        };
        self.before += before.resident * page;
        self.after += after.resident * page;
        self.dirty += (after.dirty + after.writeback) * page;
        if after.resident > 0 {
            self.kept += 1;
            self.sending += u64::from(dropped == Some(false));
        }
    }

    /// Whether all replies from mappings were sent; `None` if the file was left as it is.
    fn drop_pages(&mut self, file: &CachedFile<'_>) -> Option<bool> {
        if let Err(status) = (file.write_back)() {
            self.fail(|| format!("{}: writing it back failed: {status}", (file.name)()));
            return None;
        }
        let sending = (file.unmap)();
        let deadline = Deadline::after(SENDING_MAX);
        while sending.any() && !deadline.passed() {
            std::thread::sleep(SENDING_STEP);
        }
        if let Err(error) = dont_need(file.fd) {
            self.fail(|| format!("{}: dropping it failed: {error}", (file.name)()));
        }
        Some(!sending.any())
    }
}
