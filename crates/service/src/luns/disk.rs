//! Units on disk: their files are made, opened, copied and removed here. Everything is on disk when
//! it returns. What may wait for a unit's own storage is bounded by [`super::bounded`].

use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::limits::{LUN_ANSWER_TIME_MAX, LUN_PAUSE_TIME_MAX, LUN_SIZE_MIN};
use base::random::{Random, SystemRandom};
use control::state::effective_uid;
use control::state::files::write_atomic;
use control::tree::Problem;
use serve::iscsi::unit::{Identity, Unit, UnitSettings};
use vfs::flush::FlushSite;
use vfs::locks::LockTable;
use vfs::lun::file::{FileMedium, Space, sync_name};
use vfs::lun::reservations::store::Store;
use vfs::lun::{Claim, Medium, MediumStatus};
use wire::iscsi::login_phase::Credentials;

use super::bounded::{STUCK, let_go, within};
use super::config::{Backing, LunConfig};
use super::table::{Guid, Record, Stage, Table};
use crate::failure::chain;

/// The folder in the directory of a project.
pub const HIDDEN: &str = ".plimsoll-luns";
/// The journal of units, in the folder of the state directory.
const TABLE: &str = "table";
/// The secret of initiators.
pub const SECRET: &str = "secret";
/// What the target of the server proves itself with.
const TARGET_SECRET: &str = "target-secret";
/// The name of the target of the server.
const TARGET: &str = "target";
/// Bytes of a secret that the server makes.
const SECRET_LENGTH: usize = 16;
/// The characters of a secret: as many as six bits encode.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._";
/// Persistent reservations.
const RESERVATIONS: &str = "reservations";

/// Why something cannot be done, in words.
type Result<T> = std::result::Result<T, String>;

/// The folder of units in the state directory.
pub struct Disk {
    folder: PathBuf,
    /// All units.
    pub table: Table,
    store: Arc<Store>,
    locks: Arc<LockTable>,
    unrecorded: Arc<Mutex<BTreeSet<PathBuf>>>,
}

/// The path of a file that is being made. No other unit gets it as long as this lives.
struct UnrecordedPath {
    path: PathBuf,
    all: Arc<Mutex<BTreeSet<PathBuf>>>,
}

fn unrecorded(all: &Mutex<BTreeSet<PathBuf>>) -> MutexGuard<'_, BTreeSet<PathBuf>> {
    // Nothing under this lock panics half way through a change.
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

impl UnrecordedPath {
    fn new(path: PathBuf, all: &Arc<Mutex<BTreeSet<PathBuf>>>) -> Self {
        unrecorded(all).insert(path.clone());
        Self { path, all: Arc::clone(all) }
    }

    fn remove_file(&self) {
        // Mostly it was not made.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Drop for UnrecordedPath {
    fn drop(&mut self) {
        unrecorded(&self.all).remove(&self.path);
    }
}

/// A copy of a unit for a node that is about to be made. Its maker holds nothing that others wait
/// for.
pub struct UnitCopy {
    unit: Arc<Unit>,
    medium: Arc<FileMedium>,
    record: Record,
    path: Arc<UnrecordedPath>,
}

impl UnitCopy {
    /// Whether it is a copy of this one.
    pub fn is_of(&self, opened: &Opened) -> bool {
        Arc::ptr_eq(&self.unit, &opened.unit)
    }

    /// Bytes of the unit.
    pub fn size(&self) -> u64 {
        self.medium.size()
    }

    /// Makes the file: nothing is written to the unit meanwhile, and no block is copied.
    ///
    /// # Errors
    /// Why not: above all that the file system cannot clone files. Then there is no file, or none
    /// as soon as the storage answers.
    pub fn make(&self) -> Result<()> {
        let (unit, medium, path) =
            (Arc::clone(&self.unit), Arc::clone(&self.medium), Arc::clone(&self.path));
        // Set by the first of the two to come to its end: the thread, and the timeout.
        let ended = Arc::new(AtomicBool::new(false));
        let others = Arc::clone(&ended);
        let done = within(LUN_ANSWER_TIME_MAX * 12, move || {
            let done = snapshot(&unit, &medium, &path.path, &others);
            if others.swap(true, Ordering::AcqRel) || done.is_err() {
                path.remove_file();
            }
            done
        });
        match done {
            Some(done) => done,
            None => {
                if ended.swap(true, Ordering::AcqRel) {
                    self.remove();
                }
                Err(STUCK.to_owned())
            }
        }
    }

    /// Removes the file. It is not waited for.
    pub fn remove(&self) {
        let path = Arc::clone(&self.path);
        let_go(RemovedOnDrop(path));
    }
}

/// Removes its file when it is dropped, on a thread that may wait.
struct RemovedOnDrop(Arc<UnrecordedPath>);

impl Drop for RemovedOnDrop {
    fn drop(&mut self) {
        self.0.remove_file();
    }
}

/// Copies a unit into a new file, unless that is abandoned before commands let it.
fn snapshot(unit: &Unit, medium: &FileMedium, to: &Path, is_given_up: &AtomicBool) -> Result<()> {
    // Most is on disk before writes wait.
    medium.sync().map_err(|e| e.to_string())?;
    let paused = unit.ranges.take_all(LUN_PAUSE_TIME_MAX);
    let paused = paused.map_err(|_| "commands of initiators take too long".to_owned())?;
    if is_given_up.load(Ordering::Acquire) {
        return Err(STUCK.to_owned());
    }
    let copied = medium.snapshot(to);
    drop(paused);
    copied.and_then(|()| sync_name(to)).map_err(|e| match e.kind() {
        io::ErrorKind::Unsupported => {
            "the file system that it lies on cannot clone files (XFS and btrfs can)".to_owned()
        }
        _ => why(&e),
    })
}

/// A unit that is open.
pub struct Opened {
    /// The unit.
    pub unit: Arc<Unit>,
    /// Its storage.
    pub medium: Arc<FileMedium>,
    /// How that was when it was opened.
    pub seen: MediumStatus,
    /// As long as it lives no share shows the file.
    claim: Claim,
}

impl Opened {
    /// Ends it: shares show the file again. Commands that its storage still has are not waited for.
    pub fn end(self) {
        let Self { unit, medium, claim, .. } = self;
        drop(claim);
        let_go((unit, medium));
    }
}

/// In words, with what is behind it.
pub fn words(error: &dyn std::error::Error) -> String {
    chain(error)
}

/// The error of the kernel for a file or a device, in words.
fn why(error: &io::Error) -> String {
    use io::ErrorKind as Kind;
    let words = match error.kind() {
        Kind::StorageFull | Kind::QuotaExceeded => "there is not enough space for it",
        Kind::FileTooLarge => "the file system does not permit files of this size",
        Kind::NotFound => "it does not exist",
        Kind::PermissionDenied => "the server is not permitted to open it",
        Kind::ReadOnlyFilesystem => "its file system is read-only",
        Kind::ResourceBusy => "it is in use: mounted, or opened exclusively",
        _ => return error.to_string(),
    };
    words.to_owned()
}

impl Disk {
    /// Opens or makes the folder.
    ///
    /// # Errors
    /// A file of it cannot be used.
    pub fn open(folder: &Path, locks: &Arc<LockTable>) -> Result<Self> {
        make_folder(folder).map_err(|e| words(&e))?;
        let table = Table::open(&folder.join(TABLE)).map_err(|e| words(&e))?;
        let (store, _) = Store::open(&folder.join(RESERVATIONS)).map_err(|e| words(&e))?;
        let (folder, locks) = (folder.to_path_buf(), Arc::clone(locks));
        let (store, unrecorded) = (Arc::new(store), Arc::default());
        Ok(Self { folder, table, store, locks, unrecorded })
    }

    /// The secrets that the server has made for initiators and for its target, and the name of
    /// that. They are made if they are not there.
    ///
    /// # Errors
    /// A file cannot be used.
    pub fn own(&self) -> Result<([Vec<u8>; 2], String)> {
        let made = || String::from_utf8_lossy(&fresh_secret()).into_owned();
        let secret = kept(&self.folder.join(SECRET), made).map_err(|e| words(&e))?;
        let own = kept(&self.folder.join(TARGET_SECRET), made).map_err(|e| words(&e))?;
        let made = || name_of(&SystemRandom.next_u64().to_le_bytes());
        let target = kept(&self.folder.join(TARGET), made).map_err(|e| words(&e))?;
        Ok(([secret, own], String::from_utf8_lossy(&target).into_owned()))
    }

    /// The file of a unit.
    pub fn file(&self, record: &Record) -> PathBuf {
        self.folder.join(&record.path)
    }

    /// Takes the unit of a node that is known, or makes one; `number` is for one that is made.
    ///
    /// # Errors
    /// Why there is none now.
    pub fn find_or_make(
        &self,
        lun: &LunConfig,
        number: u16,
        known: Option<(Guid, Record)>,
    ) -> Result<(Guid, Record, bool)> {
        let name = lun.name();
        if let Some((guid, found)) = known {
            let record =
                Record { name, before: String::new(), stage: Stage::Used, ..found.clone() };
            if record != found {
                self.table.put(&guid, &record).map_err(|e| words(&e))?;
            }
            return Ok((guid, record, false));
        }
        let (path, is_new) = self.storage(lun)?;
        let record = Record {
            number,
            block: lun.block,
            stage: Stage::Used,
            name,
            before: String::new(),
            path: path.strip_prefix(&self.folder).map_or(path.clone(), Path::to_path_buf),
        };
        let guid = fresh_guid();
        if let Err(e) = self.table.put(&guid, &record) {
            if is_new {
                // The first error is the reason.
                let _ = std::fs::remove_file(&path);
            }
            return Err(words(&e));
        }
        Ok((guid, record, true))
    }

    /// The storage of a unit that is made, and whether it was made for it.
    fn storage(&self, lun: &LunConfig) -> Result<(PathBuf, bool)> {
        let space = if lun.sparse { Space::Sparse } else { Space::Reserved };
        match &lun.backing {
            Backing::Device(path) => {
                let asked = path.clone();
                answered(move || device(&asked))?;
                Ok((path.clone(), false))
            }
            Backing::File(path) => {
                let state = self.folder.parent().unwrap_or(&self.folder).to_path_buf();
                let asked = path.clone();
                match (answered(move || named(&asked, &state))?, lun.size) {
                    (true, _) => self.found(path).map(|()| (path.clone(), false)),
                    (false, None) => Err(format!("there is no file {}", path.display())),
                    (false, Some(size)) => create(path, size, space).map(|()| (path.clone(), true)),
                }
            }
            Backing::Project(directory) => {
                let folder = match directory {
                    None => self.folder.clone(),
                    Some(directory) => self.hidden(directory)?,
                };
                let path = self.free(&folder, lun.path.name().unwrap_or("lun"))?;
                create(&path, lun.size.unwrap_or_default(), space)?;
                Ok((path, true))
            }
        }
    }

    /// That a file which was there before may become a unit's: no client can reclaim it any more.
    fn found(&self, path: &Path) -> Result<()> {
        let (locks, path) = (Arc::clone(&self.locks), path.to_path_buf());
        answered(move || {
            let claim = Claim::take(&locks, &path, "");
            claim.map(drop).map_err(|e| format!("{}: {}", path.display(), words(&e)))
        })
    }

    /// The folder of units in a directory, which no share shows from now on.
    fn hidden(&self, directory: &Path) -> Result<PathBuf> {
        let folder = directory.join(HIDDEN);
        let (locks, made) = (Arc::clone(&self.locks), folder.clone());
        answered(move || {
            make_folder(&made).map_err(|e| format!("{}: {}", made.display(), why(&e)))?;
            hide(&locks, &made);
            Ok(())
        })?;
        Ok(folder)
    }

    /// A path that no unit has, and none will have that is being made.
    fn free(&self, folder: &Path, name: &str) -> Result<PathBuf> {
        let records = self.table.records();
        let plain = folder.join(format!("{name}.lun"));
        let is_taken = records.iter().any(|(_, record)| self.file(record) == plain);
        if !is_taken && !unrecorded(&self.unrecorded).contains(&plain) {
            let unused = plain.clone();
            answered(move || remove_unused(&unused).map_err(|e| words(&e)))?;
            return Ok(plain);
        }
        // A unit that has another name now keeps its file.
        let number = SystemRandom.next_u64();
        Ok(folder.join(format!("{name}-{number:016x}.lun")))
    }

    /// Opens a unit. It is claimed first: no share shows its file any more.
    ///
    /// # Errors
    /// Why it is offline.
    pub fn open_unit(&self, lun: &LunConfig, guid: &Guid, record: &Record) -> Result<Opened> {
        let path = self.file(record);
        let (locks, name) = (Arc::clone(&self.locks), record.name.clone());
        let opened = within(LUN_ANSWER_TIME_MAX, move || {
            if let Some(folder) = path.parent().filter(|folder| folder.ends_with(HIDDEN)) {
                hide(&locks, folder);
            }
            // What is on record was the unit's before the server started, or was made for it now.
            let claim = Claim::retake(&locks, &path, &name)
                .map_err(|e| format!("{}: {}", path.display(), words(&e)))?;
            let medium = FileMedium::open(&path, false).or_else(|e| match e.kind() {
                // What cannot be written can be read.
                io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                    FileMedium::open(&path, true)
                }
                _ => Err(e),
            });
            let medium = medium.map_err(|e| format!("{}: {}", path.display(), why(&e)))?;
            let seen = medium.status();
            Ok::<_, String>((claim, medium, seen))
        });
        let (claim, medium, seen) = opened.ok_or_else(|| STUCK.to_owned())??;
        if medium.size() < LUN_SIZE_MIN {
            return Err(format!("{} is smaller than 1 MiB", self.file(record).display()));
        }
        let medium = Arc::new(medium);
        let identity = Identity { name: record.name.clone(), guid: *guid, block: record.block };
        let settings = settings(lun);
        let shared: Arc<dyn Medium> = medium.clone();
        let unit = Unit::new(identity, shared, settings, Some(Arc::clone(&self.store)));
        Ok(Opened { unit, medium, seen, claim })
    }

    /// Prepares the copy of a unit for a node that is about to be made.
    ///
    /// # Errors
    /// Why there can be none.
    pub fn begin_copy(&self, from: &Opened, record: &Record, name: &str) -> Result<UnitCopy> {
        let source = self.file(record);
        let beside = source.parent().unwrap_or(&self.folder);
        let is_ours =
            beside == self.folder || beside.file_name().is_some_and(|name| name == HIDDEN);
        let folder = if is_ours { beside.to_path_buf() } else { self.hidden(beside)? };
        let plain = name.rsplit('/').next().unwrap_or(name);
        let path = self.free(&folder, plain)?;
        let (unit, medium) = (Arc::clone(&from.unit), Arc::clone(&from.medium));
        let record = Record {
            stage: Stage::Copied,
            name: name.to_owned(),
            before: String::new(),
            path: path.strip_prefix(&self.folder).map_or(path.clone(), Path::to_path_buf),
            ..record.clone()
        };
        let path = Arc::new(UnrecordedPath::new(path, &self.unrecorded));
        Ok(UnitCopy { unit, medium, record, path })
    }

    /// Enters a copy that was made.
    ///
    /// # Errors
    /// It cannot be written; then there is no copy.
    pub fn keep_copy(&self, copy: UnitCopy, number: u16) -> Result<Guid> {
        let (guid, record) = (fresh_guid(), Record { number, ..copy.record.clone() });
        if let Err(e) = self.table.put(&guid, &record) {
            copy.remove();
            return Err(words(&e));
        }
        Ok(guid)
    }

    /// Removes a unit for good: its record, its reservations, and its file if that was made for it
    /// in a folder of units.
    ///
    /// # Errors
    /// It cannot be removed; it is tried again.
    pub fn remove(&self, guid: &Guid, record: &Record) -> Result<()> {
        let path = self.file(record);
        if is_own(&self.folder, &path) {
            answered(move || match std::fs::remove_file(&path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e.to_string()),
                _ => Ok(()),
            })?;
        }
        self.store.forget(guid).map_err(|e| words(&e))?;
        self.table.remove(guid).map_err(|e| words(&e))
    }

    /// Whether the file of a unit goes with it.
    pub fn is_own(&self, record: &Record) -> bool {
        is_own(&self.folder, &self.file(record))
    }
}

fn is_own(folder: &Path, path: &Path) -> bool {
    let beside = path.parent().unwrap_or(path);
    beside == folder || beside.file_name().is_some_and(|name| name == HIDDEN)
}

/// Runs an operation on storage that may not respond, with a timeout.
fn answered<T: Send + 'static>(ask: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    within(LUN_ANSWER_TIME_MAX, ask).ok_or_else(|| STUCK.to_owned())?
}

/// Has no share show a folder of units, and no program on plain paths enter it.
fn hide(locks: &LockTable, folder: &Path) {
    let Ok(meta) = std::fs::metadata(folder) else { return };
    let exclusive = locks.exclusive();
    if exclusive.contains(meta.dev(), meta.ino()) {
        return;
    }
    // For good, and under its path: it is on another device after a remount.
    let hidden = exclusive.renew(folder).and_then(|()| exclusive.enter(folder, false));
    if let Err(why) = hidden {
        base::error!("luns", "{} is shown by shares: {why}", folder.display());
    }
}

/// Whether there is a block device at a path.
fn device(path: &Path) -> Result<()> {
    let meta = std::fs::metadata(path).map_err(|e| format!("{}: {}", path.display(), why(&e)))?;
    match meta.file_type().is_block_device() {
        true => Ok(()),
        false => Err(format!("{} is not a block device", path.display())),
    }
}

/// Whether there is a file at a path, which must not lie in the state directory.
fn named(path: &Path, state: &Path) -> Result<bool> {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    if real.starts_with(state) {
        return Err(format!("{} lies in the state directory", path.display()));
    }
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_file() => Ok(true),
        Ok(_) => Err(format!("{} is not a file", path.display())),
        Err(_) => Ok(false),
    }
}

/// What initiators find set.
pub fn settings(lun: &LunConfig) -> UnitSettings {
    UnitSettings { write_cache: lun.write_cache, read_only: lun.read_only }
}

/// A problem of a node.
pub fn problem(lun: &LunConfig, sentence: &str) -> Problem {
    Problem::conflict(&lun.path, sentence, "")
}

fn create(path: &Path, size: u64, space: Space) -> Result<()> {
    let to = path.to_path_buf();
    // To reserve space may take long; to make a file does not.
    let made = within(LUN_ANSWER_TIME_MAX * 12, move || {
        FileMedium::create(&to, size, space)?;
        if FlushSite::LunName.enabled() { sync_name(&to) } else { Ok(()) }
    });
    let made = made.ok_or_else(|| STUCK.to_owned())?;
    made.map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => format!("{}: its directory does not exist", path.display()),
        _ => format!("{}: {}", path.display(), why(&e)),
    })
}

/// A folder that only the server may look into. In a directory that is shared a client can have
/// been first to take its name: neither a link nor a folder of a client is used.
fn make_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        Err(_) => {}
        Ok(()) => return sync_name(path),
    }
    let meta = std::fs::symlink_metadata(path)?;
    if meta.is_dir() && meta.uid() == effective_uid() && meta.mode() & 0o077 == 0 {
        return Ok(());
    }
    let why = "it is not a folder of the server alone; remove it";
    Err(io::Error::new(io::ErrorKind::AlreadyExists, why))
}

/// Removes the remains of an interrupted start: a file without a record and without any data. A
/// file with data is a unit, even if its record is missing.
fn remove_unused(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(e),
        Ok(meta) if meta.blocks() == 0 => std::fs::remove_file(path),
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            format!("{} has data and is not in the table; move it away first", path.display()),
        )),
    }
}

/// The name of a target (RFC 7143 §4.2.7.4).
pub fn name_of(number: &[u8; 8]) -> String {
    let tail: String = number.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("iqn.2026-01.io.plimsoll:{tail}")
}

/// A secret of CHAP: of the maximum length that the initiator of Windows accepts, of 96 random bits
/// (RFC 7143 §9.2.1), in characters without a special meaning in a URL or a shell.
pub fn fresh_secret() -> Vec<u8> {
    let mut random = [0; SECRET_LENGTH];
    SystemRandom.fill(&mut random);
    let letter = |byte: &u8| LETTERS.get(usize::from(*byte) % LETTERS.len()).copied();
    random.iter().filter_map(letter).collect()
}

fn fresh_guid() -> Guid {
    let mut guid = [0; 16];
    SystemRandom.fill(&mut guid);
    // NAA type 6; what follows is ours alone by its length.
    guid[0] = 0x60 | guid[0] & 0x0f;
    guid
}

/// The content of a file, which is created if it does not exist.
fn kept(path: &Path, made: impl FnOnce() -> String) -> io::Result<Vec<u8>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(bytes.trim_ascii().to_vec()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let fresh = made().into_bytes();
            write_atomic(path, &fresh, 0o600).map_err(io::Error::other)?;
            Ok(fresh)
        }
        Err(e) => Err(e),
    }
}

/// The credentials with this name and secret.
pub fn credentials(user: &str, secret: Vec<u8>) -> Credentials {
    Credentials { name: user.to_owned(), secret }
}

#[cfg(test)]
mod tests;
