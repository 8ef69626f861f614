//! What every back end must do, as functions that a back end's tests call on an empty tree. They
//! panic, as tests do, when something is not as it must be.
//!
//! A [`Bench`] describes the back end and what can be expected of it: without privilege everything
//! belongs to the serving user, so the checks on rights have nothing to check.

use std::sync::Arc;

use crate::attr::{Attr, FileType, SetAttr};
use crate::cred::Cred;
use crate::fs::{Change, Changed, Context, CreateHow, Entry, Failed, FileSystem, Result, Stable};
use crate::handle::Handle;
use crate::status::Status;

mod data;
mod extras;
mod handles;
mod inline_first;
mod listing;
mod names;
mod owners;
mod retain;

pub use inline_first::InlineFirst;

/// A back end under test.
pub struct Bench {
    /// An empty tree with a world-writable root.
    pub fs: Arc<dyn FileSystem>,
    /// Whether each caller acts with its own identity.
    pub privileged: bool,
    /// Opens the same tree again as after a restart: nothing cached. The old one is gone by then.
    pub reopen: Option<Box<dyn Fn() -> Arc<dyn FileSystem>>>,
}

/// Runs everything that needs no restart.
pub fn run(bench: &Bench) {
    names::run(bench);
    data::run(bench);
    owners::run(bench);
    listing::run(bench);
    handles::run(bench);
    retain::run(bench);
    extras::run(bench);
}

/// Checks that handles stay valid over restarts. Ends with the tree reopened.
pub fn run_restart(bench: Bench) {
    handles::run_restart(bench);
}

/// A caller on a pool thread.
pub fn cx(cred: &Cred) -> Context<'_> {
    Context { cred, may_block: true }
}

/// A credential without supplementary groups.
pub fn user(uid: u32, gid: u32) -> Cred {
    Cred { uid, gid, groups: Vec::new() }
}

/// The superuser.
pub fn root() -> Cred {
    Cred::root()
}

/// Waits for the flush of a change, which must succeed, and gives its value.
#[track_caller]
fn done<T>(change: Change<T>) -> T {
    let changed = changed(change);
    changed.value
}

#[track_caller]
fn changed<T>(change: Change<T>) -> Changed<T> {
    match change {
        Ok(changed) => {
            changed.flush.wait().expect("the flush works");
            changed
        }
        Err(failed) => panic!("refused: {:?}", failed.status),
    }
}

#[track_caller]
fn refused<T>(change: Change<T>) -> Status {
    match change {
        Ok(_) => panic!("must be refused"),
        Err(failed) => failed.status,
    }
}

fn mode(mode: u32) -> SetAttr {
    SetAttr { mode: Some(mode), ..SetAttr::default() }
}

/// Everything at hand for one caller.
struct As<'a> {
    fs: &'a dyn FileSystem,
    cred: Cred,
}

impl<'a> As<'a> {
    fn new(bench: &'a Bench, cred: Cred) -> Self {
        Self { fs: &*bench.fs, cred }
    }
    fn cx(&self) -> Context<'_> {
        cx(&self.cred)
    }
    #[track_caller]
    fn mkdir(&self, dir: &Handle, name: &str) -> Handle {
        let set = mode(0o777);
        done(self.fs.mkdir(self.cx(), dir, name.as_bytes(), &set)).handle
    }
    #[track_caller]
    fn create(&self, dir: &Handle, name: &str, bits: u32) -> Handle {
        let how = CreateHow::Guarded(mode(bits));
        done(self.fs.create(self.cx(), dir, name.as_bytes(), how)).handle
    }
    #[track_caller]
    fn write(&self, file: &Handle, offset: u64, data: &[u8]) {
        let count = done(self.fs.write(self.cx(), file, offset, data, Stable::FileSync));
        assert_eq!(count, data.len());
    }
    fn try_write(&self, file: &Handle, data: &[u8]) -> std::result::Result<usize, Status> {
        let wrote = self.fs.write(self.cx(), file, 0, data, Stable::Unstable);
        wrote.map(|c| c.value).map_err(|f| f.status)
    }
    fn try_read(&self, file: &Handle) -> Result<Vec<u8>> {
        let mut buf = vec![0; 4096];
        let read = self.fs.read(self.cx(), file, 0, &mut buf)?;
        buf.truncate(read.count);
        Ok(buf)
    }
    #[track_caller]
    fn read(&self, file: &Handle) -> Vec<u8> {
        self.try_read(file).expect("can be read")
    }
    #[track_caller]
    fn attr(&self, file: &Handle) -> Attr {
        self.fs.getattr(self.cx(), file).expect("has attributes")
    }
    fn lookup(&self, dir: &Handle, name: &[u8]) -> std::result::Result<Entry, Status> {
        let found = self.fs.lookup(self.cx(), dir, name);
        found.map(|(entry, _)| entry).map_err(|failed: Failed| failed.status)
    }
    #[track_caller]
    fn rename(&self, from: (&Handle, &str), to: (&Handle, &str)) {
        let (from, to) = ((from.0, from.1.as_bytes()), (to.0, to.1.as_bytes()));
        done(self.fs.rename(self.cx(), from, to));
    }
    fn remove(&self, dir: &Handle, name: &str) -> std::result::Result<(), Status> {
        let gone = self.fs.remove(self.cx(), dir, name.as_bytes());
        gone.map(|c| c.flush.wait().expect("the flush works")).map_err(|f| f.status)
    }
    /// Names and cookies of a listing taken `step` entries at a time.
    fn list(&self, dir: &Handle, step: usize, mut between: impl FnMut(usize)) -> Vec<Vec<u8>> {
        let (mut names, mut cookie, mut eof) = (Vec::new(), 0, false);
        while !eof {
            let mut left = step;
            let listed = self.fs.list(self.cx(), dir, cookie, [0; 8], false, &mut |entry| {
                if left == 0 {
                    return false;
                }
                left -= 1;
                names.push(entry.name.to_vec());
                cookie = entry.cookie;
                true
            });
            eof = listed.expect("can be listed").eof;
            between(names.len());
        }
        names.retain(|name| !matches!(&name[..], b"." | b".."));
        names
    }
}

fn is_dir(attr: &Attr) -> bool {
    attr.kind == FileType::Directory
}
