//! The identity of a file system that has none of its own (`f_fsid` is 0, as on FUSE): it gets
//! another device number at each mount, and handles must outlive that. A random number is kept in
//! the state directory and used again for a share with the same root on the same mount source, in
//! which the same names lead to the same inodes: many file systems have inode 1 for their root.
//! `docs/formats/state.md` has the format.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use base::limits::{FILE_SYSTEMS_KEPT, ROOT_ENTRIES_KEPT, ROOT_ENTRIES_READ};
use base::random::{Random, SystemRandom};
use base::text::hex;

use super::directory::Top;
use super::ids::Ident;
use super::lock::lock;
use super::mounts::Mount;
use super::stream::Stream;
use super::{HostOptions, attrs, sys};
use crate::journal::replace;
use crate::name::Name;

/// A file system of a share, as its file in the state directory has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSystemIdentity {
    /// What the key of the handles is bound to.
    pub id: u64,
    /// The root as it is at each mount: inode number, birth time, type of the file system, mount
    /// source, with blanks between.
    pub root: String,
    /// Some of what is in the root.
    pub entries: Vec<RootEntry>,
}

/// An entry of the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootEntry {
    /// Its name.
    pub name: Vec<u8>,
    /// Inode number.
    pub ino: u64,
    /// Birth time, 0 if unknown.
    pub birth: u64,
}

/// The identity of a share's file system, and its file.
pub(super) struct IdentityFile {
    path: PathBuf,
    state: Mutex<State>,
}

struct State {
    /// That of now.
    kept: FileSystemIdentity,
    /// Others that were at the path, the last first: their handles are stale, and good again when
    /// they are back.
    former: Vec<FileSystemIdentity>,
    written: bool,
    /// Change time of the root when its entries were looked at.
    looked: Option<(i64, u32)>,
}

impl IdentityFile {
    /// Reads the identity of the file system of a share, or makes one. `None` if it has its own or
    /// if nothing is kept. An error comes with the file that cannot be read or written.
    pub(super) fn open(
        options: &HostOptions,
        top: &Top,
    ) -> Result<Option<Self>, (PathBuf, io::Error)> {
        let Some(dir) = options.state_dir.as_ref().filter(|_| top.number.is_some()) else {
            return Ok(None);
        };
        let path = dir.join(format!("file-system-{:08x}", options.tag));
        // Handles of versions before this file are bound to the device number of now.
        let table = |form| dir.join(format!("handles-{:08x}-{form}.redb", options.tag));
        let is_older = ["table", "kernel"].map(table).iter().any(|path| path.exists());
        let first = || if is_older { top.dev } else { SystemRandom.next_u64() };
        let root = root_of(top);
        match opened(&path, &root, |known| look(top.mount.as_fd(), &known.name), first) {
            Ok((kept, former)) => {
                let state = Mutex::new(State { kept, former, written: true, looked: None });
                let kept = Self { path, state };
                kept.refresh(top.mount.as_fd());
                Ok(Some(kept))
            }
            Err(error) => Err((path, error)),
        }
    }

    pub(super) fn id(&self) -> u64 {
        lock(&self.state).kept.id
    }

    /// The identities of file systems that were there before.
    pub(super) fn former(&self) -> Vec<u64> {
        lock(&self.state).former.iter().map(|kept| kept.id).collect()
    }

    /// A name of the root was met: from now on it is one of those by which the root is known.
    pub(super) fn met(&self, name: &[u8], ident: Ident) {
        let Ident::Inode { ino, birth } = ident else { return };
        let mut state = lock(&self.state);
        let entries = &mut state.kept.entries;
        if entries.len() < ROOT_ENTRIES_KEPT && entries.iter().all(|known| known.name != name) {
            entries.push(RootEntry { name: name.to_vec(), ino, birth });
            state.written = false;
        }
    }

    /// Looks whether the entries that are kept are still in the root, if that has changed.
    pub(super) fn refresh(&self, root: BorrowedFd<'_>) {
        let Ok(sx) = sys::statx_at(root, c"") else { return };
        let changed = Some((sx.stx_ctime.tv_sec, sx.stx_ctime.tv_nsec));
        let before = {
            let state = lock(&self.state);
            if state.looked == changed && state.written {
                return;
            }
            state.kept.entries.clone()
        };
        let same = |known: &&RootEntry| look(root, &known.name).as_ref() == Some(*known);
        let left = before.iter().filter(same).count();
        let now = listed(root);
        let mut state = lock(&self.state);
        // Rarely, and not with each change of a directory in which files come and go.
        if 2 * left < before.len() || now.len() > 2 * before.len() {
            state.kept.entries = now;
            state.written = false;
        }
        // A failure is tried again the next time.
        if state.written || state.write(&self.path).is_ok() {
            state.looked = changed;
        }
    }
}

impl Drop for IdentityFile {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        if !state.written {
            // What is missing then is a name by which to know the root.
            let _unwritten = state.write(&self.path);
        }
    }
}

impl State {
    fn write(&mut self, path: &Path) -> io::Result<()> {
        write(path, &self.kept, &self.former)?;
        self.written = true;
        Ok(())
    }
}

impl FileSystemIdentity {
    fn put(&self, text: &mut String) {
        text.push_str(&format!("id {:016x} {}\n", self.id, self.root));
        for RootEntry { name, ino, birth } in &self.entries {
            text.push_str(&format!("entry {ino} {birth} {}\n", hex(name)));
        }
    }

    /// Reads such a file: the last one first; `None` if it is damaged.
    pub fn parse(text: &str) -> Option<Vec<Self>> {
        let mut all = Vec::<Self>::new();
        for line in text.strip_suffix('\n')?.split('\n') {
            match line.split_once(' ')? {
                ("id", rest) => all.push(Self::begun(rest)?),
                ("entry", rest) => all.last_mut()?.entries.push(known(rest)?),
                _ => return None,
            }
        }
        Some(all)
    }

    fn begun(line: &str) -> Option<Self> {
        let (id, root) = line.split_once(' ')?;
        let is_number = id.len() == 16 && id.bytes().all(|digit| digit.is_ascii_hexdigit());
        let id = u64::from_str_radix(id, 16).ok().filter(|_| is_number)?;
        Some(Self { id, root: root.to_owned(), entries: Vec::new() })
    }
}

fn write(path: &Path, kept: &FileSystemIdentity, former: &[FileSystemIdentity]) -> io::Result<()> {
    let mut text = String::new();
    std::iter::once(kept).chain(former).for_each(|kept| kept.put(&mut text));
    replace(path, text.as_bytes()).map(drop)
}

fn known(line: &str) -> Option<RootEntry> {
    let mut fields = line.split(' ');
    let (ino, birth) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let (digits, None) = (fields.next()?.as_bytes(), fields.next()) else { return None };
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    Some(RootEntry { name: pairs.iter().map(byte).collect::<Option<_>>()?, ino, birth })
}

fn root_of(top: &Top) -> String {
    let Mount { kind, source, .. } = Mount::with_id(top.sx.stx_mnt_id).unwrap_or_default();
    format!("{} {} {kind} {source}", top.sx.stx_ino, attrs::birth(&top.sx))
}

/// The file system of the file that has this root, or a new one, which is written there; and those
/// that were there before.
fn opened(
    path: &Path,
    root: &str,
    look: impl Fn(&RootEntry) -> Option<RootEntry>,
    first: impl FnOnce() -> u64,
) -> io::Result<(FileSystemIdentity, Vec<FileSystemIdentity>)> {
    let mut all = match std::fs::read_to_string(path) {
        Ok(text) => FileSystemIdentity::parse(&text).ok_or(ErrorKind::InvalidData)?,
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let is_it = |kept: &FileSystemIdentity| kept.root == root && are_there(&kept.entries, &look);
    // One that is known by nothing but its root may be any.
    let known = all.iter().position(|kept| !kept.entries.is_empty() && is_it(kept));
    let place = known.or_else(|| all.iter().position(is_it));
    if place == Some(0) {
        return Ok((all.remove(0), all));
    }
    // The handles of another file system are not valid on this one.
    let id = if all.is_empty() { first() } else { SystemRandom.next_u64() };
    let new = || FileSystemIdentity { id, root: root.to_owned(), entries: Vec::new() };
    let kept = place.map_or_else(new, |place| all.remove(place));
    all.truncate(FILE_SYSTEMS_KEPT - 1);
    write(path, &kept, &all)?;
    Ok((kept, all))
}

/// Whether entries of the root are as they were: one at least, and half of the names that are
/// still there. The others were replaced by other programs meanwhile.
fn are_there(entries: &[RootEntry], look: impl Fn(&RootEntry) -> Option<RootEntry>) -> bool {
    // Last ones first: what numbers files in the order in which they are looked up gives other
    // numbers then.
    let found = entries.iter().rev().filter_map(|known| Some((known, look(known)?)));
    let (there, same) = found
        .fold((0, 0), |(there, same), (known, now)| (there + 1, same + usize::from(*known == now)));
    entries.is_empty() || (same > 0 && 2 * same >= there)
}

/// An entry of the root as it is now, if it is there, on the root's file system.
fn look(root: BorrowedFd<'_>, name: &[u8]) -> Option<RootEntry> {
    let sx = sys::statx_at(root, Name::any(name).ok()?.as_cstr()).ok()?;
    let mounted = sx.stx_attributes & libc::STATX_ATTR_MOUNT_ROOT as u64 != 0;
    (!mounted).then(|| RootEntry { name: name.to_vec(), ino: sx.stx_ino, birth: attrs::birth(&sx) })
}

/// Some entries of the root, directories first: those are replaced least.
fn listed(root: BorrowedFd<'_>) -> Vec<RootEntry> {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY;
    let Ok(dir) = sys::open_at(root, c".", flags, 0) else { return Vec::new() };
    let (mut stream, mut names) = (Stream::new(dir), Vec::new());
    while let Ok(Some(dent)) = stream.peek()
        && names.len() < ROOT_ENTRIES_READ
    {
        if !matches!(dent.name, b"." | b"..") {
            names.push(dent.name.to_vec());
        }
        stream.pass();
    }
    let is_dir = |name: &Vec<u8>| {
        let sx = Name::any(name).ok().and_then(|name| sys::statx_at(root, name.as_cstr()).ok());
        sx.is_some_and(|sx| u32::from(sx.stx_mode) & libc::S_IFMT == libc::S_IFDIR)
    };
    let (dirs, others): (Vec<_>, Vec<_>) = names.into_iter().partition(is_dir);
    let known = dirs.iter().chain(&others).filter_map(|name| look(root, name));
    known.take(ROOT_ENTRIES_KEPT).collect()
}

#[cfg(test)]
mod tests;
