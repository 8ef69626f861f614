//! A file system that panics where a test wants it to, over a real one: in a call, in a flush, or
//! when a flush has ended. Other tests include this file by its path.

// The contract's own failures, passed on.
#![allow(clippy::result_large_err)]
#![allow(dead_code, reason = "each test that includes it uses a part")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use probe::op::FileId;
use vfs::acl::{Acl, AclKind};
use vfs::attr::{Attr, SetAttr, Time, Wcc};
use vfs::fs::*;
use vfs::handle::Handle;
use vfs::locks::FileKey;
use vfs::status::Status;

/// What a call does before it begins.
type Before = Box<dyn FnOnce() + Send>;

/// What panics next, and what does something else before it begins.
#[derive(Default)]
struct Plan(Mutex<Option<&'static str>>, Mutex<Option<(&'static str, Before)>>);

impl Plan {
    /// Panics if this is what is to panic, once.
    fn strike(&self, here: &str) {
        // Not under the lock: other calls continue meanwhile.
        let before = locked(&self.1).take_if(|(call, _)| *call == here);
        if let Some((_, before)) = before {
            before();
        }
        let mut plan = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *plan == Some(here) {
            *plan = None;
            drop(plan);
            panic!("planted in {here}");
        }
    }
}

/// A call that stands still.
#[derive(Default)]
struct Gate {
    /// Its name, as long as it is to stand still.
    call: Mutex<Option<&'static str>>,
    /// Whether one does.
    stands: Mutex<bool>,
    changed: Condvar,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Gate {
    fn pass(&self, here: &str) {
        let mut call = locked(&self.call);
        while *call == Some(here) {
            // Once: two calls that stand still would wake each other for ever.
            if !std::mem::replace(&mut *locked(&self.stands), true) {
                self.changed.notify_all();
            }
            call = self.changed.wait(call).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Calls of one name stand still as long as this lives.
pub struct BlockedCalls(Arc<Gate>);

impl BlockedCalls {
    /// Waits until a call stands still.
    pub fn wait(&self) {
        let mut call = locked(&self.0.call);
        while !*locked(&self.0.stands) {
            call = self.0.changed.wait(call).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for BlockedCalls {
    fn drop(&mut self) {
        *locked(&self.0.call) = None;
        self.0.changed.notify_all();
    }
}

/// The file system, and where it panics.
pub struct Planted {
    inner: Arc<dyn FileSystem>,
    plan: Arc<Plan>,
    gate: Arc<Gate>,
    /// Calls that must not wait answer that they would.
    pub blocks: AtomicBool,
    /// Changes are to be flushed.
    pub flushes: AtomicBool,
    /// Calls of `list` that may wait so far.
    pub lists: AtomicUsize,
    /// Offsets of the READs that may wait, in the order in which they have begun.
    pub reads: Mutex<Vec<u64>>,
}

struct Target(Arc<Plan>);

impl Durable for Target {
    fn key(&self) -> u64 {
        1
    }
    fn flush(&self) -> Result<()> {
        self.0.strike("flush");
        Ok(())
    }
    fn covered(&self, outcome: Result<()>) -> Result<()> {
        self.0.strike("covered");
        outcome
    }
}

impl Planted {
    /// Over this one; nothing panics yet.
    pub fn over(inner: Arc<dyn FileSystem>) -> Arc<Self> {
        let (plan, gate, blocks, flushes, lists, reads) = Default::default();
        Arc::new(Self { inner, plan, gate, blocks, flushes, lists, reads })
    }

    /// Calls of this name that may wait stand still from now on.
    pub fn hold(&self, call: &'static str) -> BlockedCalls {
        *locked(&self.gate.stands) = false;
        *locked(&self.gate.call) = Some(call);
        BlockedCalls(Arc::clone(&self.gate))
    }

    /// The next call of this name panics: of a function of the file system, `flush` or `covered`.
    pub fn plant(&self, call: &'static str) {
        *self.plan.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(call);
    }

    /// The next call of this name does that before it begins.
    pub fn before(&self, call: &'static str, act: impl FnOnce() + Send + 'static) {
        *locked(&self.plan.1) = Some((call, Box::new(act)));
    }

    /// Whether what was planted has not panicked.
    pub fn is_planted(&self) -> bool {
        self.plan.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn enter(&self, call: &str, cx: Context<'_>) -> Result<()> {
        if self.blocks.load(SeqCst) && !cx.may_block {
            return Err(Status::WouldBlock);
        }
        if cx.may_block {
            self.lists.fetch_add(usize::from(call == "list"), SeqCst);
            self.gate.pass(call);
        }
        self.plan.strike(call);
        Ok(())
    }

    fn flushed<T>(&self, change: Change<T>) -> Change<T> {
        change.map(|mut changed| {
            if self.flushes.load(SeqCst) {
                changed.flush.targets.push(Arc::new(Target(Arc::clone(&self.plan))));
            }
            changed
        })
    }
}

/// Functions that change nothing.
macro_rules! looks {
    ($($name:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {
        $(fn $name(&self, cx: Context<'_>, $($arg: $type),*) -> $out {
            self.enter(stringify!($name), cx)?;
            self.inner.$name(cx, $($arg),*)
        })*
    };
}

/// Functions that change something.
macro_rules! changes {
    ($($name:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {
        $(fn $name(&self, cx: Context<'_>, $($arg: $type),*) -> Change<$out> {
            self.enter(stringify!($name), cx)?;
            self.flushed(self.inner.$name(cx, $($arg),*))
        })*
    };
}

impl FileSystem for Planted {
    fn root(&self) -> Handle {
        self.inner.root()
    }
    fn file_id(&self, handle: &Handle) -> FileId {
        self.inner.file_id(handle)
    }
    fn features(&self) -> Features {
        self.inner.features()
    }
    fn abilities(&self) -> Abilities {
        self.inner.abilities()
    }
    fn path_of(&self, file: FileId) -> Option<Vec<u8>> {
        self.inner.path_of(file)
    }
    fn describe(&self, file: FileId) -> Option<FileName> {
        self.inner.describe(file)
    }
    fn describe_key(&self, key: FileKey) -> Option<FileName> {
        self.inner.describe_key(key)
    }
    fn lookup(
        &self,
        cx: Context<'_>,
        dir: &Handle,
        name: &[u8],
    ) -> std::result::Result<(Entry, Option<Attr>), Failed> {
        self.enter("lookup", cx)?;
        self.inner.lookup(cx, dir, name)
    }
    fn read(
        &self,
        cx: Context<'_>,
        file: &Handle,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<ReadDone> {
        if cx.may_block {
            locked(&self.reads).push(offset);
        }
        self.enter("read", cx)?;
        self.inner.read(cx, file, offset, buf)
    }
    looks! {
        file_key(file: &Handle) -> Result<FileKey>;
        getattr(file: &Handle) -> Result<Attr>;
        access(file: &Handle, want: u32) -> Result<(u32, Attr)>;
        readlink(link: &Handle) -> Result<(Vec<u8>, Attr)>;
        list(
            dir: &Handle,
            cookie: u64,
            verifier: [u8; 8],
            plus: bool,
            each: &mut dyn FnMut(DirEntry<'_>) -> bool
        ) -> Result<ListDone>;
        lookup_parent(dir: &Handle) -> Result<Entry>;
        seek(file: &Handle, offset: u64, what: Seek) -> Result<Option<u64>>;
        get_xattr(file: &Handle, name: &[u8]) -> Result<Vec<u8>>;
        list_xattrs(
            file: &Handle,
            cookie: u64,
            each: &mut dyn FnMut(&[u8], u64) -> bool
        ) -> Result<bool>;
        get_acl(file: &Handle, which: AclKind) -> Result<Option<Acl>>;
        space() -> Result<Space>;
        watch(file: &Handle) -> Result<Watch>;
        retain(file: &Handle) -> Result<Retained>;
    }
    changes! {
        setattr(file: &Handle, set: &SetAttr, guard: Option<Time>) -> ();
        write(file: &Handle, offset: u64, data: &[u8], stable: Stable) -> usize;
        commit(file: &Handle) -> ();
        create(dir: &Handle, name: &[u8], how: CreateHow) -> Entry;
        mkdir(dir: &Handle, name: &[u8], set: &SetAttr) -> Entry;
        symlink(dir: &Handle, name: &[u8], target: &[u8], set: &SetAttr) -> Entry;
        mknod(dir: &Handle, name: &[u8], special: Special, set: &SetAttr) -> Entry;
        remove(dir: &Handle, name: &[u8]) -> ();
        rmdir(dir: &Handle, name: &[u8]) -> ();
        rename(from: (&Handle, &[u8]), to: (&Handle, &[u8])) -> Wcc;
        link(file: &Handle, dir: &Handle, name: &[u8]) -> Option<Attr>;
        allocate(file: &Handle, offset: u64, len: u64) -> ();
        deallocate(file: &Handle, offset: u64, len: u64) -> ();
        copy_range(from: (&Handle, u64), to: (&Handle, u64), len: u64) -> u64;
        clone_range(from: (&Handle, u64), to: (&Handle, u64), len: u64) -> ();
        set_xattr(file: &Handle, name: &[u8], value: &[u8], how: SetXattr) -> ();
        remove_xattr(file: &Handle, name: &[u8]) -> ();
        set_acl(file: &Handle, which: AclKind, acl: Option<&Acl>) -> ();
    }
}
