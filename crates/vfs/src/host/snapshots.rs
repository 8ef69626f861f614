//! The snapshots of a share: the directories of one directory. Each is opened when a client uses
//! it, as a tree with its own file system number; nothing in it changes.
//!
//! The list is read again when that directory has changed, which costs each use of a snapshot one
//! fstat(2): a destroyed one is stale at once, and a new one is found at once.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use base::clock::wall_ns;
use base::limits::{SNAPSHOTS_MAX, SNAPSHOTS_OPEN_MAX, SNAPSHOTS_SETTLED};

use super::acting::{self, CredGuard};
use super::directory::Top;
use super::ids::{Ident, Keys, Parsed};
use super::keys::keys;
use super::lock::lock;
use super::{HostFs, HostOptions, attrs, sys};
use crate::attr::{Attr, Time};
use crate::fs::{Context, Entry, Result};
use crate::handle::Handle;
use crate::status::Status;

/// A snapshot.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Its name.
    pub name: Vec<u8>,
    /// Its number, the same over restarts and renames, and not that of any other snapshot.
    pub number: u64,
    /// Of when its state is.
    pub created: Time,
    /// Its root, which never changes.
    pub root: Entry,
}

/// The snapshots of a share.
pub struct Snapshots {
    directory: PathBuf,
    options: HostOptions,
    switches: bool,
    handle: Handle,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    folder: Option<OwnedFd>,
    /// Change times of the directory when the list was read, if the list has all changes of them.
    read_at: Option<(Time, Time)>,
    /// Whether the list was ever read.
    is_known: bool,
    /// By number.
    all: Arc<Vec<Snapshot>>,
    changed_ns: u64,
    open: Vec<Opened>,
    uses: u64,
}

struct Opened {
    number: u64,
    used: u64,
    files: Arc<HostFs>,
}

impl Snapshots {
    /// Those in a directory, which need not be there, of the share in `live`, with its options.
    pub fn new(directory: &Path, live: &Path, options: &HostOptions) -> Self {
        // What is hidden in the share has the same inode numbers in its snapshots.
        let snapshot = Some(fs::metadata(live).map_or(0, |meta| meta.dev()));
        let options =
            HostOptions { snapshot, exchangeable: false, state_dir: None, ..options.clone() };
        // Bound to no file system: it stays when the share's is exchanged.
        let own = Keys::new(&options.secret, options.tag, 0).of_snapshot(Some(0));
        let ident = Ident::Inode { ino: 0, birth: 0 };
        let handle = own.seal(&Parsed { ident, is_dir: true, parent: None });
        Self {
            directory: directory.to_owned(),
            switches: options.credentials && acting::can_switch(),
            options,
            // It has the shortest form.
            handle: handle.unwrap_or_else(|| Handle::short([0; 8])),
            state: Mutex::default(),
        }
    }

    /// The handle of the directory that has all of them.
    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// All, by their numbers.
    ///
    /// # Errors
    /// [`Status::WouldBlock`]; [`Status::Io`] if the list was never read and cannot be.
    pub fn list(&self, cx: Context<'_>) -> Result<Arc<Vec<Snapshot>>> {
        Ok(Arc::clone(&self.current(cx)?.all))
    }

    /// The one with this name.
    ///
    /// # Errors
    /// [`Status::NotFound`]; as [`Self::list`].
    pub fn named(&self, cx: Context<'_>, name: &[u8]) -> Result<Snapshot> {
        let state = self.current(cx)?;
        state.all.iter().find(|one| one.name == name).cloned().ok_or(Status::NotFound)
    }

    /// When one was last created, renamed or destroyed: another time for each change, also within
    /// a tick of the file system's clock.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub fn changed(&self, cx: Context<'_>) -> Result<Time> {
        Ok(Time::from_ns(self.current(cx)?.changed_ns))
    }

    /// The files of a snapshot.
    ///
    /// # Errors
    /// [`Status::Stale`] if there is none with this number; as [`Self::list`]; the machine's.
    pub fn files(&self, cx: Context<'_>, number: u64) -> Result<Arc<HostFs>> {
        let mut state = self.current(cx)?;
        let name = state.find(number).ok_or(Status::Stale)?.name.clone();
        if let Some(files) = state.opened(number) {
            return Ok(files);
        }
        if !cx.may_block {
            return Err(Status::WouldBlock);
        }
        let _server = self.as_server(cx)?;
        let path = self.directory.join(OsStr::from_bytes(&name));
        let files = HostFs::open(&path, self.options.clone()).map_err(|error| {
            base::warning!("snapshots", "{error}");
            Status::Io
        })?;
        if files.directory_identity().number() != number {
            // It was renamed just now.
            return Err(Status::Stale);
        }
        let closed = state.add(number, Arc::clone(&files));
        drop(state);
        drop(closed);
        Ok(files)
    }

    /// Whether a handle is that of the root of a snapshot.
    pub fn is_root(&self, handle: &Handle) -> bool {
        let Some(number) = is_of_snapshot(handle) else { return false };
        lock(&self.state).find(number).is_some_and(|one| one.root.handle == *handle)
    }

    /// Those that are open.
    pub fn all_open(&self) -> Vec<(Vec<u8>, Arc<HostFs>)> {
        let state = lock(&self.state);
        let named = |one: &Opened| Some((state.find(one.number)?.name.clone(), one.files.clone()));
        state.open.iter().filter_map(named).collect()
    }

    /// Closes what was destroyed. For now and then, off the path.
    pub fn tidy(&self) {
        let cx = Context { cred: acting::own(), may_block: true };
        if !lock(&self.state).open.is_empty() {
            // What cannot be looked at now is at the next use.
            let _looked = self.current(cx);
        }
    }

    fn as_server(&self, cx: Context<'_>) -> Result<CredGuard> {
        let switch = self.switches && cx.may_block;
        if switch { CredGuard::as_server() } else { Ok(CredGuard::unchanged()) }
    }

    /// The list, read again if it may have changed. A connection's thread does not wait.
    fn current(&self, cx: Context<'_>) -> Result<MutexGuard<'_, State>> {
        let mut state = if cx.may_block {
            lock(&self.state)
        } else {
            self.state.try_lock().map_err(|_| Status::WouldBlock)?
        };
        if state.is_current() {
            return Ok(state);
        }
        if !cx.may_block {
            return Err(Status::WouldBlock);
        }
        let _server = self.as_server(cx)?;
        let gone = state.read(&self.directory, &self.options).map_err(|error| {
            base::warning!("snapshots", "{}: {error}", self.directory.display());
            Status::Io
        })?;
        drop(gone);
        Ok(state)
    }
}

impl State {
    fn find(&self, number: u64) -> Option<&Snapshot> {
        let at = self.all.binary_search_by_key(&number, |one| one.number).ok()?;
        self.all.get(at)
    }

    fn opened(&mut self, number: u64) -> Option<Arc<HostFs>> {
        self.uses += 1;
        let one = self.open.iter_mut().find(|one| one.number == number)?;
        one.used = self.uses;
        Some(Arc::clone(&one.files))
    }

    /// Adds one that was opened; gives one that is not used for it.
    fn add(&mut self, number: u64, files: Arc<HostFs>) -> Option<Opened> {
        let full = self.open.len() >= SNAPSHOTS_OPEN_MAX;
        let oldest = self.open.iter().enumerate().min_by_key(|(_, one)| one.used);
        let oldest = oldest.map(|(at, _)| at).filter(|_| full);
        let closed = oldest.map(|at| self.open.swap_remove(at));
        self.open.push(Opened { number, used: self.uses, files });
        closed
    }

    /// Change times of the directory.
    fn times(&self) -> Option<(Time, Time)> {
        let st = sys::stat(self.folder.as_ref()?.as_fd()).ok().filter(|st| st.st_nlink > 0)?;
        let time = |sec, nsec: i64| Time { sec, nsec: u32::try_from(nsec).unwrap_or_default() };
        Some((time(st.st_mtime, st.st_mtime_nsec), time(st.st_ctime, st.st_ctime_nsec)))
    }

    fn is_current(&self) -> bool {
        self.read_at.is_some() && self.times() == self.read_at
    }

    /// Reads the list; gives those that are open and not there any more. What cannot be read now
    /// stays as it was, and is read again at the next use.
    ///
    /// # Errors
    /// The operating system's, if it was never read.
    fn read(&mut self, directory: &Path, options: &HostOptions) -> io::Result<Vec<Opened>> {
        let started = wall_ns();
        let folder = open(directory);
        let found = folder.and_then(|folder| {
            self.folder = Some(folder);
            // Before the list: a change meanwhile has others.
            let times = self.times();
            Ok((times, read(directory, options, &self.all)?))
        });
        let (times, (all, is_whole)) = match found {
            Ok(found) => found,
            Err(e) if is_absent(&e) => {
                self.folder = None;
                (None, (Vec::new(), true))
            }
            Err(_) if self.is_known => {
                self.read_at = None;
                return Ok(Vec::new());
            }
            Err(e) => return Err(e),
        };
        self.is_known = true;
        let names = |all: &[Snapshot]| -> Vec<_> {
            all.iter().map(|one| (one.number, one.name.clone())).collect()
        };
        let mtime_ns = times.map_or(0, |(mtime, _)| mtime.ns());
        if names(&all) != names(&self.all) {
            self.changed_ns = mtime_ns.max(self.changed_ns + 1);
        } else {
            self.changed_ns = self.changed_ns.max(mtime_ns);
        }
        self.all = Arc::new(all);
        let settled = |time: Time| time.ns() + SNAPSHOTS_SETTLED.as_nanos() as u64 <= started;
        let settled = times.filter(|(mtime, ctime)| settled(*mtime) && settled(*ctime));
        self.read_at = settled.filter(|_| is_whole);
        let all = &self.all;
        let is_gone =
            |one: &mut Opened| all.binary_search_by_key(&one.number, |one| one.number).is_err();
        Ok(self.open.extract_if(.., is_gone).collect())
    }
}

/// Whether there is no directory, or none for this server: nothing else fails for good.
fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    matches!(error.kind(), NotFound | NotADirectory | PermissionDenied)
}

fn open(directory: &Path) -> io::Result<OwnedFd> {
    let path = std::ffi::CString::new(directory.as_os_str().as_bytes())?;
    sys::open_path(&path, libc::O_RDONLY | libc::O_DIRECTORY)
}

/// The snapshots of a directory, by number, and whether that are all. One that cannot be read now,
/// as without free descriptors, is that of `before` with its name.
fn read(
    directory: &Path,
    options: &HostOptions,
    before: &[Snapshot],
) -> io::Result<(Vec<Snapshot>, bool)> {
    let (mut all, mut is_whole) = (Vec::new(), true);
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if all.len() >= SNAPSHOTS_MAX {
            break;
        }
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        match snapshot(&entry.path(), entry.file_name(), options) {
            Ok(found) => all.extend(found),
            // It was destroyed meanwhile.
            Err(e) if is_absent(&e) => {}
            Err(_) => {
                let name = entry.file_name();
                all.extend(before.iter().find(|one| one.name == name.as_bytes()).cloned());
                is_whole = false;
            }
        }
    }
    all.sort_by_key(|one| one.number);
    Ok((all, is_whole))
}

fn snapshot(path: &Path, name: OsString, options: &HostOptions) -> io::Result<Option<Snapshot>> {
    let top = Top::open(path, options.kernel_handles)?;
    let created = sys::subvolume::state_time(top.mount.as_fd());
    let birth = Time::from_ns(attrs::birth(&top.sx));
    let parsed = Parsed { ident: top.ident, is_dir: true, parent: None };
    let Some(handle) = keys(&top, options, None).seal(&parsed) else { return Ok(None) };
    let time_delta_ns = sys::time_delta_ns(top.mount.as_fd(), &top.stats);
    let medium = attrs::Medium { fsid: top.fsid, time_delta_ns };
    let attr = attrs::from_statx(&top.sx, medium);
    let root = Entry { handle, attr: Attr { generation: top.ident.generation(), ..attr } };
    let number = top.identity().number();
    let (name, created) = (name.into_vec(), created.unwrap_or(birth));
    Ok(Some(Snapshot { name, number, created, root }))
}

/// Whether a handle is of a snapshot of a share, or of the directory of its snapshots.
#[inline]
pub fn is_of_snapshot(handle: &Handle) -> Option<u64> {
    super::ids::snapshot_of(handle)
}

/// Whether the snapshots of what is in a directory are directories: it is a subvolume of btrfs.
pub fn are_subvolumes(directory: &Path) -> bool {
    Top::open(directory, true).is_ok_and(|top| top.is_subvolume())
}
