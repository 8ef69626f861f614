//! Group commit: what must be on disk before a reply may leave, flushed once for many callers.
//!
//! A caller hands in a [`Flush`] and a completion. Per key one flush runs at a time; everything
//! that arrived before it started is released by it, everything later waits for the next. No
//! caller's thread waits: the completion runs on a flusher thread.
//!
//! A panic in a target or a completion ends no thread and affects no other caller: the callers that
//! wait for that target get [`Status::Fault`], and the panic is counted.
//!
//! [`FlushSite`] names every place that requests a flush, so that a test can leave one out and show
//! that it was needed.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, OnceLock};
use std::thread::JoinHandle;

use base::limits::{FLUSH_THREADS, FLUSH_WAITING_MAX};
use base::lock_order::{OrderedGuard, OrderedMutex, ranks};

use crate::fs::{Durable, Flush, Result};
use crate::status::Status;

/// What a caller wants done when its flush is over. Must be short: it runs on a flusher thread.
pub type Completion = Box<dyn FnOnce(Result<()>) + Send>;

/// Every place that requests a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FlushSite {
    /// WRITE with FILE_SYNC: the file.
    WriteFileSync,
    /// WRITE with DATA_SYNC: the file's data.
    WriteDataSync,
    /// COMMIT: the file.
    Commit,
    /// CREATE: the new file.
    CreateFile,
    /// CREATE: the directory that names it.
    CreateDirectory,
    /// MKDIR: the new directory.
    MkdirNew,
    /// MKDIR: the directory that names it.
    MkdirParent,
    /// SYMLINK: the directory.
    SymlinkDirectory,
    /// MKNOD: the directory.
    MknodDirectory,
    /// REMOVE: the directory.
    RemoveDirectory,
    /// RMDIR: the directory.
    RmdirDirectory,
    /// RENAME: the directory that the name left.
    RenameFrom,
    /// RENAME: the directory that the name came to, if it is another.
    RenameTo,
    /// LINK: the file, for its link count.
    LinkFile,
    /// LINK: the directory.
    LinkDirectory,
    /// SETATTR: the file.
    Setattr,
    /// RENAME and LINK across directories: our own table of where such files are.
    HandleTable,
    /// ALLOCATE: the file.
    Allocate,
    /// DEALLOCATE: the file.
    Deallocate,
    /// COPY: the file copied to.
    Copy,
    /// CLONE: the file cloned to.
    Clone,
    /// SETXATTR and REMOVEXATTR: the file.
    Xattr,
    /// An access control list: the file.
    Acl,
    /// A change of the configuration: its new revision.
    Revision,
    /// The same: the folder that names the revision.
    RevisionName,
    /// The configuration's folder, when it is made: itself, and the state directory that names it.
    ConfigurationFolder,
    /// A secret of the configuration: the file of secrets.
    Secrets,
    /// The same: the state directory that names it.
    SecretsName,
    /// Whatever the audit log has to say: the log.
    Audit,
    /// A new file of the audit log: the state directory that names it.
    AuditName,
    /// A record of an internal journal (WebDAV locks): the journal.
    Journal,
    /// A journal that is rewritten: the new file, before its rename.
    JournalWhole,
    /// The same: the state directory that names it.
    JournalName,
    /// A write to a LUN with FUA, or with its write cache off: its blocks.
    LunFua,
    /// SYNCHRONIZE CACHE: the LUN.
    LunSync,
    /// A change of a LUN that has no FUA (UNMAP, WRITE SAME, a copy) with its write cache off: the
    /// LUN.
    LunChange,
    /// A LUN that was made: the folder that names its file.
    LunName,
    /// A LUN that got another size: its file.
    LunResize,
}

impl FlushSite {
    /// All of them, for tests that try each.
    pub const ALL: [Self; 38] = [
        Self::WriteFileSync,
        Self::WriteDataSync,
        Self::Commit,
        Self::CreateFile,
        Self::CreateDirectory,
        Self::MkdirNew,
        Self::MkdirParent,
        Self::SymlinkDirectory,
        Self::MknodDirectory,
        Self::RemoveDirectory,
        Self::RmdirDirectory,
        Self::RenameFrom,
        Self::RenameTo,
        Self::LinkFile,
        Self::LinkDirectory,
        Self::Setattr,
        Self::HandleTable,
        Self::Allocate,
        Self::Deallocate,
        Self::Copy,
        Self::Clone,
        Self::Xattr,
        Self::Acl,
        Self::Revision,
        Self::RevisionName,
        Self::ConfigurationFolder,
        Self::Secrets,
        Self::SecretsName,
        Self::Audit,
        Self::AuditName,
        Self::Journal,
        Self::JournalWhole,
        Self::JournalName,
        Self::LunFua,
        Self::LunSync,
        Self::LunChange,
        Self::LunName,
        Self::LunResize,
    ];

    /// The name that `PLIMSOLL_TEST_SKIP_FLUSH` takes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::WriteFileSync => "write-file-sync",
            Self::WriteDataSync => "write-data-sync",
            Self::Commit => "commit",
            Self::CreateFile => "create-file",
            Self::CreateDirectory => "create-directory",
            Self::MkdirNew => "mkdir-new",
            Self::MkdirParent => "mkdir-parent",
            Self::SymlinkDirectory => "symlink-directory",
            Self::MknodDirectory => "mknod-directory",
            Self::RemoveDirectory => "remove-directory",
            Self::RmdirDirectory => "rmdir-directory",
            Self::RenameFrom => "rename-from",
            Self::RenameTo => "rename-to",
            Self::LinkFile => "link-file",
            Self::LinkDirectory => "link-directory",
            Self::Setattr => "setattr",
            Self::HandleTable => "handle-table",
            Self::Allocate => "allocate",
            Self::Deallocate => "deallocate",
            Self::Copy => "copy",
            Self::Clone => "clone",
            Self::Xattr => "xattr",
            Self::Acl => "acl",
            Self::Revision => "revision",
            Self::RevisionName => "revision-name",
            Self::ConfigurationFolder => "configuration-folder",
            Self::Secrets => "secrets",
            Self::SecretsName => "secrets-name",
            Self::Audit => "audit",
            Self::AuditName => "audit-name",
            Self::Journal => "journal",
            Self::JournalWhole => "journal-whole",
            Self::JournalName => "journal-name",
            Self::LunFua => "lun-fua",
            Self::LunSync => "lun-sync",
            Self::LunChange => "lun-change",
            Self::LunName => "lun-name",
            Self::LunResize => "lun-resize",
        }
    }

    /// The site of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|site| site.name() == name)
    }

    /// Whether this site flushes. Always, but in a build made for fault tests.
    #[inline]
    pub fn enabled(self) -> bool {
        !cfg!(any(debug_assertions, feature = "faults"))
            || skipped().load(Ordering::Relaxed) & (1_u64 << self as u8) == 0
    }
}

/// Bit mask of the sites left out.
fn skipped() -> &'static AtomicU64 {
    static SKIPPED: OnceLock<AtomicU64> = OnceLock::new();
    SKIPPED.get_or_init(|| {
        let asked = std::env::var("PLIMSOLL_TEST_SKIP_FLUSH").unwrap_or_default();
        let sites = asked.split(',').filter_map(|name| FlushSite::from_name(name.trim()));
        AtomicU64::new(sites.fold(0, |mask, site| mask | 1_u64 << site as u8))
    })
}

/// Leaves out every flush of `site` from now on, to show that a test notices. Has no effect in a
/// build without debug assertions and without the feature `faults`.
pub fn disable_for_test(site: FlushSite) {
    skipped().fetch_or(1_u64 << site as u8, Ordering::Relaxed);
}

/// Undoes [`disable_for_test`].
pub fn enable_for_test(site: FlushSite) {
    skipped().fetch_and(!(1_u64 << site as u8), Ordering::Relaxed);
}

impl Flush {
    /// A flush of `target`, unless this site is left out by a test.
    pub fn of(site: FlushSite, target: Arc<dyn Durable>) -> Self {
        let mut flush = Self::NONE;
        flush.and(site, target);
        flush
    }

    /// Adds a target, to be flushed after those already there.
    pub fn and(&mut self, site: FlushSite, target: Arc<dyn Durable>) {
        if site.enabled() {
            self.targets.push(target);
        }
    }

    /// Flushes now, on this thread, one target after the other. For tests and for callers that
    /// have nothing else to do.
    pub fn wait(&self) -> Result<()> {
        self.targets.iter().try_for_each(|target| target.covered(target.flush()))
    }
}

/// One caller's way through its targets.
struct Ticket {
    flush: Flush,
    /// The target it is waiting for.
    at: usize,
    done: Completion,
}

impl Ticket {
    fn target(&self) -> Option<&Arc<dyn Durable>> {
        self.flush.targets.get(self.at)
    }

    /// The key of the target that it has come to; `None` if there is none left.
    fn key(&self, shared: &Shared) -> Result<Option<u64>> {
        self.target().map(|target| shared.contained(|| target.key())).transpose()
    }
}

/// Tickets of one key: those waiting, and whether a flush is in progress.
#[derive(Default)]
struct Key {
    running: bool,
    waiting: Vec<Ticket>,
}

#[derive(Default)]
struct Queue {
    keys: HashMap<u64, Key>,
    ready: VecDeque<u64>,
    waiting: usize,
    closing: bool,
}

struct Shared {
    queue: OrderedMutex<Queue>,
    work: Condvar,
    flushes: AtomicU64,
    released: AtomicU64,
    failed: AtomicU64,
    panics: Arc<AtomicU64>,
    /// The panics of the group that this one belongs to.
    service_panics: OnceLock<Arc<AtomicU64>>,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            // No code that can panic runs under this lock.
            queue: OrderedMutex::new(ranks::FLUSH_GROUP, Queue::default()),
            work: Condvar::new(),
            flushes: AtomicU64::new(0),
            released: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            panics: Arc::default(),
            service_panics: OnceLock::new(),
        }
    }
}

impl Shared {
    /// Runs code of a target or a caller. A panic in it is counted.
    ///
    /// # Errors
    /// [`Status::Fault`] if it panics.
    fn contained<T>(&self, run: impl FnOnce() -> T) -> Result<T> {
        catch_unwind(AssertUnwindSafe(run)).map_err(|_| {
            self.panics.fetch_add(1, Ordering::Relaxed);
            if let Some(panics) = self.service_panics.get() {
                panics.fetch_add(1, Ordering::Relaxed);
            }
            Status::Fault
        })
    }
}

/// What the group has done since it started, for statistics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlushCounts {
    /// Flushes made.
    pub flushes: u64,
    /// Callers' targets released by them.
    pub released: u64,
    /// Flushes that failed.
    pub failed: u64,
    /// Panics in targets and completions.
    pub panics: u64,
    /// Callers waiting now.
    pub waiting: u64,
}

/// The flusher threads and the queue before them. Dropping it finishes what is queued.
pub struct FlushGroup {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl FlushGroup {
    /// A group with the usual number of threads.
    pub fn start() -> std::io::Result<Self> {
        Self::with_threads(FLUSH_THREADS)
    }

    /// A group with `count` threads.
    pub fn with_threads(count: usize) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let threads = (0..count.max(1))
            .map(|n| {
                let shared = Arc::clone(&shared);
                std::thread::Builder::new().name(format!("flush-{n}")).spawn(move || work(&shared))
            })
            .collect::<std::io::Result<_>>()?;
        Ok(Self { shared, threads })
    }

    /// Brings all targets of `flush` to disk in their order, then calls `done`: on a flusher
    /// thread, or here and now if there is nothing to flush. [`Status::Busy`] if too many wait,
    /// [`Status::Fault`] if a target panics.
    pub fn submit(&self, flush: Flush, done: Completion) {
        let ticket = Ticket { flush, at: 0, done };
        let key = match ticket.key(&self.shared) {
            Ok(Some(key)) => key,
            Ok(None) => return (ticket.done)(Ok(())),
            Err(status) => return (ticket.done)(Err(status)),
        };
        let mut queue = self.shared.queue.lock();
        if queue.waiting >= FLUSH_WAITING_MAX {
            drop(queue);
            return (ticket.done)(Err(Status::Busy));
        }
        queue.waiting += 1;
        enqueue(&mut queue, key, ticket);
        drop(queue);
        self.shared.work.notify_one();
    }

    /// Counts panics among those of the group of the service, too.
    pub fn count_panics_with(&self, service: &Self) {
        // Set once: a group belongs to one service.
        let _ = self.shared.service_panics.set(Arc::clone(&service.shared.panics));
    }

    /// What has been done so far.
    pub fn counts(&self) -> FlushCounts {
        FlushCounts {
            flushes: self.shared.flushes.load(Ordering::Relaxed),
            released: self.shared.released.load(Ordering::Relaxed),
            failed: self.shared.failed.load(Ordering::Relaxed),
            panics: self.shared.panics.load(Ordering::Relaxed),
            waiting: self.shared.queue.lock().waiting as u64,
        }
    }
}

impl Drop for FlushGroup {
    fn drop(&mut self) {
        self.shared.queue.lock().closing = true;
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // Panics are contained before they end a thread.
            let _ = thread.join();
        }
    }
}

/// Adds a ticket to the queue of its next target, which has the key `id`, and makes the key ready
/// unless it is being flushed or is ready already.
fn enqueue(queue: &mut Queue, id: u64, ticket: Ticket) {
    let key = queue.keys.entry(id).or_default();
    if !key.running && key.waiting.is_empty() {
        queue.ready.push_back(id);
    }
    key.waiting.push(ticket);
}

/// A flusher thread: takes a key, flushes it once, and releases all tickets that had waited before.
fn work(shared: &Shared) {
    let mut queue = shared.queue.lock();
    loop {
        let Some(id) = queue.ready.pop_front() else {
            if queue.closing && queue.waiting == 0 {
                // Other flusher threads may wait on the empty queue.
                shared.work.notify_all();
                return;
            }
            queue = queue.wait(&shared.work);
            continue;
        };
        let Some(key) = queue.keys.get_mut(&id) else { continue };
        key.running = true;
        let batch = std::mem::take(&mut key.waiting);
        drop(queue);
        let results = flush_batch(shared, &batch);
        queue = release(shared, id, batch, results);
    }
}

/// One flush for all of `batch`, and what it means for each of them.
fn flush_batch(shared: &Shared, batch: &[Ticket]) -> Vec<Result<()>> {
    let mut outcome = Ok(());
    let each = batch.iter().enumerate().map(|(n, ticket)| match ticket.target() {
        Some(target) => {
            if n == 0 {
                outcome = shared.contained(|| target.flush()).unwrap_or_else(Err);
            }
            shared.contained(|| target.covered(outcome)).unwrap_or_else(Err)
        }
        None => Ok(()),
    });
    let each: Vec<_> = each.collect();
    shared.flushes.fetch_add(1, Ordering::Relaxed);
    shared.released.fetch_add(batch.len() as u64, Ordering::Relaxed);
    shared.failed.fetch_add(u64::from(outcome.is_err()), Ordering::Relaxed);
    each
}

/// Sends every ticket of a flushed batch on to its next target or home.
fn release<'a>(
    shared: &'a Shared,
    id: u64,
    batch: Vec<Ticket>,
    results: Vec<Result<()>>,
) -> OrderedGuard<'a, Queue> {
    let (mut onward, mut finished) = (Vec::new(), Vec::with_capacity(batch.len()));
    for (mut ticket, result) in batch.into_iter().zip(results) {
        ticket.at += 1;
        match result.and_then(|()| ticket.key(shared)) {
            Ok(Some(next)) => onward.push((next, ticket)),
            Ok(None) => finished.push((ticket, Ok(()))),
            Err(status) => finished.push((ticket, Err(status))),
        }
    }
    let mut queue = shared.queue.lock();
    if let Some(key) = queue.keys.get_mut(&id) {
        key.running = false;
        if key.waiting.is_empty() {
            queue.keys.remove(&id);
        } else {
            queue.ready.push_back(id);
        }
    }
    onward.into_iter().for_each(|(next, ticket)| enqueue(&mut queue, next, ticket));
    let more = queue.ready.len();
    drop(queue);
    // This thread takes one key itself; the others get the rest.
    (1..more).for_each(|_| shared.work.notify_one());
    let count = finished.len();
    for (ticket, result) in finished {
        // The owner of a completion that panics has contained that itself, or sees it dropped.
        let _ = shared.contained(move || {
            let Ticket { done, .. } = ticket;
            done(result);
        });
    }
    let mut queue = shared.queue.lock();
    queue.waiting -= count;
    queue
}

#[cfg(test)]
mod tests;
