//! A file system over a real one: its operations block, wait, fail to flush or panic as a test
//! requires. What is called `mounted` in it is as the root of another file system.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use probe::op::FileId;
use vfs::attr::{Attr, SetAttr, Time, Wcc};
use vfs::cred::Cred;
use vfs::fs::*;
use vfs::handle::Handle;
use vfs::mem::MemFs;
use vfs::share::tag;
use vfs::status::Status;

/// How long something may take.
const PATIENCE: Duration = Duration::from_secs(80);

/// The name at which another file system has something.
const MOUNTED: &[u8] = b"mounted";

/// The script and the file system behind it.
pub struct Scripted {
    inner: Arc<dyn FileSystem>,
    /// Inline attempts return WouldBlock.
    pub blocks: AtomicBool,
    /// Inline attempts wait at the gate as operations on the pool do: a core stands still.
    pub holds: AtomicBool,
    /// Changes must be flushed before their reply.
    pub flushes: AtomicBool,
    /// Flushes fail.
    pub flush_fails: Arc<AtomicBool>,
    /// The next flush panics.
    pub flush_panics: Arc<AtomicBool>,
    /// Flushes done.
    pub flushed: Arc<AtomicUsize>,
    /// Operations that have begun on the pool.
    begun: Mutex<usize>,
    /// Offsets of READs on the pool, in the order in which they have begun.
    pub reads: Mutex<Vec<u64>>,
    gate: Mutex<Gate>,
    changed: Condvar,
}

/// Where operations on the pool wait.
#[derive(Default)]
struct Gate {
    is_closed: bool,
    /// Operations that pass all the same.
    passes: usize,
}

struct Target {
    fails: Arc<AtomicBool>,
    panics: Arc<AtomicBool>,
    flushed: Arc<AtomicUsize>,
}

impl Durable for Target {
    fn key(&self) -> u64 {
        1
    }
    fn flush(&self) -> Result<()> {
        self.flushed.fetch_add(1, SeqCst);
        assert!(!self.panics.swap(false, SeqCst), "planted");
        if self.fails.load(SeqCst) { Err(Status::Io) } else { Ok(()) }
    }
}

impl Scripted {
    /// A script that lets everything pass.
    pub fn over(inner: Arc<dyn FileSystem>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            blocks: AtomicBool::new(false),
            holds: AtomicBool::new(false),
            flushes: AtomicBool::new(false),
            flush_fails: Arc::default(),
            flush_panics: Arc::default(),
            flushed: Arc::default(),
            begun: Mutex::new(0),
            reads: Mutex::default(),
            gate: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Nothing but a directory in which another file system is mounted.
    pub fn with_mount() -> Arc<Self> {
        let (inner, cred) = (MemFs::new(tag("share"), 1 << 30), Cred::root());
        let (cx, dir) = (Context { cred: &cred, may_block: true }, inner.root());
        let set = SetAttr { mode: Some(0o755), ..SetAttr::default() };
        inner.mkdir(cx, &dir, MOUNTED, &set).expect("made");
        Self::over(inner)
    }

    /// Operations on the pool wait from now on.
    pub fn close_gate(&self) {
        *self.gate.lock().unwrap() = Gate { is_closed: true, passes: 0 };
    }

    /// They continue.
    pub fn open_gate(&self) {
        *self.gate.lock().unwrap() = Gate::default();
        self.changed.notify_all();
    }

    /// One of them continues.
    pub fn let_one_pass(&self) {
        self.gate.lock().unwrap().passes += 1;
        self.changed.notify_all();
    }

    /// Waits until `count` operations have begun on the pool.
    pub fn wait_begun(&self, count: usize) {
        let begun = self.begun.lock().unwrap();
        let (begun, timeout) =
            self.changed.wait_timeout_while(begun, PATIENCE, |n| *n < count).unwrap();
        assert!(!timeout.timed_out(), "only {} operations began", *begun);
    }

    /// Operations that have begun on the pool.
    pub fn begun(&self) -> usize {
        *self.begun.lock().unwrap()
    }

    fn enter<'a>(&self, cx: Context<'a>) -> Result<Context<'a>> {
        if cx.may_block || self.holds.load(SeqCst) {
            *self.begun.lock().unwrap() += 1;
            self.changed.notify_all();
            let gate = self.gate.lock().unwrap();
            let waits = |gate: &mut Gate| gate.is_closed && gate.passes == 0;
            let (mut gate, _) = self.changed.wait_timeout_while(gate, PATIENCE, waits).unwrap();
            gate.passes = gate.passes.saturating_sub(1);
        } else if self.blocks.load(SeqCst) {
            return Err(Status::WouldBlock);
        }
        Ok(Context { may_block: true, ..cx })
    }

    fn flush<T>(&self, change: Change<T>) -> Change<T> {
        change.map(|mut changed| {
            if self.flushes.load(SeqCst) {
                changed.flush.targets.push(Arc::new(Target {
                    fails: Arc::clone(&self.flush_fails),
                    panics: Arc::clone(&self.flush_panics),
                    flushed: Arc::clone(&self.flushed),
                }));
            }
            changed
        })
    }
}

impl FileSystem for Scripted {
    fn root(&self) -> Handle {
        self.inner.root()
    }
    fn file_id(&self, handle: &Handle) -> FileId {
        self.inner.file_id(handle)
    }
    fn getattr(&self, cx: Context<'_>, file: &Handle) -> Result<Attr> {
        self.inner.getattr(self.enter(cx)?, file)
    }
    fn setattr(
        &self,
        cx: Context<'_>,
        file: &Handle,
        set: &SetAttr,
        guard: Option<Time>,
    ) -> Change<()> {
        self.flush(self.inner.setattr(self.enter(cx)?, file, set, guard))
    }
    fn lookup(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        name: &[u8],
    ) -> std::result::Result<(Entry, Option<Attr>), Failed> {
        assert_ne!(name, b"panic", "planted");
        if name == MOUNTED {
            return Err(Status::Access.into());
        }
        self.inner.lookup(self.enter(cx)?, dir, name)
    }
    fn access(&self, cx: Context<'_>, file: &Handle, want: u32) -> Result<(u32, Attr)> {
        self.inner.access(self.enter(cx)?, file, want)
    }
    fn readlink(&self, cx: Context<'_>, link: &Handle) -> Result<(Vec<u8>, Attr)> {
        self.inner.readlink(self.enter(cx)?, link)
    }
    fn read(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<ReadDone> {
        if cx.may_block {
            // Before the gate, where it has begun.
            self.reads.lock().unwrap().push(offset);
        }
        self.inner.read(self.enter(cx)?, file, offset, buf)
    }
    fn write(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        data: &[u8],
        stable: Stable,
    ) -> Change<usize> {
        self.flush(self.inner.write(self.enter(cx)?, file, offset, data, stable))
    }
    fn commit(&self, cx: Context<'_>, file: &Handle) -> Change<()> {
        self.flush(self.inner.commit(self.enter(cx)?, file))
    }
    fn create(&self, cx: Context<'_>, dir: &Handle, name: &[u8], how: CreateHow) -> Change<Entry> {
        assert_ne!(name, b"panic", "planted");
        self.flush(self.inner.create(self.enter(cx)?, dir, name, how))
    }
    fn mkdir(&self, cx: Context<'_>, dir: &Handle, name: &[u8], set: &SetAttr) -> Change<Entry> {
        self.flush(self.inner.mkdir(self.enter(cx)?, dir, name, set))
    }
    fn symlink(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        name: &[u8],
        target: &[u8],
        set: &SetAttr,
    ) -> Change<Entry> {
        self.flush(self.inner.symlink(self.enter(cx)?, dir, name, target, set))
    }
    fn mknod(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        name: &[u8],
        special: Special,
        set: &SetAttr,
    ) -> Change<Entry> {
        self.flush(self.inner.mknod(self.enter(cx)?, dir, name, special, set))
    }
    fn remove(&self, cx: Context<'_>, dir: &Handle, name: &[u8]) -> Change<()> {
        self.flush(self.inner.remove(self.enter(cx)?, dir, name))
    }
    fn rmdir(&self, cx: Context<'_>, dir: &Handle, name: &[u8]) -> Change<()> {
        self.flush(self.inner.rmdir(self.enter(cx)?, dir, name))
    }
    fn rename(&self, cx: Context<'_>, from: (&Handle, &[u8]), to: (&Handle, &[u8])) -> Change<Wcc> {
        self.flush(self.inner.rename(self.enter(cx)?, from, to))
    }
    fn link(
        &self,
        cx: Context<'_>,
        file: &Handle,
        dir: &Handle,
        name: &[u8],
    ) -> Change<Option<Attr>> {
        self.flush(self.inner.link(self.enter(cx)?, file, dir, name))
    }
    fn list(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        cookie: u64,
        verifier: [u8; 8],
        plus: bool,
        each: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<ListDone> {
        let mut shown = |mut entry: DirEntry<'_>| {
            if entry.name == MOUNTED {
                entry.mounted = entry.entry.take().map(|entry| entry.attr);
            }
            each(entry)
        };
        self.inner.list(self.enter(cx)?, dir, cookie, verifier, plus, &mut shown)
    }
    fn space(&self, cx: Context<'_>) -> Result<Space> {
        self.inner.space(self.enter(cx)?)
    }
    fn abilities(&self) -> Abilities {
        self.inner.abilities()
    }
    fn path_of(&self, file: FileId) -> Option<Vec<u8>> {
        self.inner.path_of(file)
    }
}
