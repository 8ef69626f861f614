//! A separate folder of a run on a target: made new, so that it never has files of other users, and
//! removed with all that clients of the lab have made there, and with nothing else.
//!
//! What removes it need not be what made it: a run that was interrupted leaves files with names
//! that only the server can list.

pub(super) use super::folder::Folder;
use super::nfs3::Nfs3Client;
use super::nfs4::Nfs4Client;
use super::service::ScratchFiles;
use super::smb::SmbClient;
use super::{Checker, ClientError, Options, Target, rdma};
use crate::pattern::Content;
use crate::programs::set as programs;
use base::clock::Deadline;
use lab_program::limits::DEPTH_MAX;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// How soon a folder is tried again in which another client's last operation has just ended.
const AGAIN: Duration = Duration::from_millis(100);

impl Target {
    /// The folder `name` below this target. Nothing has no folders.
    pub fn below(&self, name: &str) -> Self {
        let joined = |path: &str| format!("{}/{name}", path.trim_end_matches('/'));
        match self.clone() {
            Self::Nfs3(mut at) => {
                at.path = joined(&at.path);
                Self::Nfs3(at)
            }
            Self::Nfs4(mut at) => {
                at.path = joined(&at.path);
                Self::Nfs4(at)
            }
            Self::Service(mut at) => {
                at.path = joined(&at.path);
                Self::Service(at)
            }
            Self::Smb(mut at) => {
                at.path = joined(&at.path).trim_start_matches('/').to_owned();
                Self::Smb(at)
            }
            Self::Path(dir) => Self::Path(dir.join(name)),
            // A disk has no folders, and nothing has none.
            disk @ (Self::Iscsi(_) | Self::Block(_) | Self::Null) => disk,
            #[cfg(feature = "test-services")]
            Self::Echo(at) => Self::Echo(at),
        }
    }

    /// Whether it has folders.
    pub fn has_folders(&self) -> bool {
        !matches!(self, Self::Iscsi(_) | Self::Block(_) | Self::Null)
    }

    /// The same path on a server at another address, which has MOUNT on the same port.
    pub fn moved(self, to: SocketAddr) -> Self {
        let mut moved = self.served_at(to.ip());
        match &mut moved {
            // The address of a server is that of TCP.
            Self::Nfs3(at) => (at.port, at.mount_port, at.rdma) = (to.port(), to.port(), false),
            Self::Nfs4(at) => at.port = to.port(),
            Self::Service(at) => at.port = to.port(),
            Self::Smb(at) => at.port = to.port(),
            Self::Iscsi(at) => at.port = to.port(),
            Self::Block(_) | Self::Path(_) | Self::Null => {}
            #[cfg(feature = "test-services")]
            Self::Echo(at) => at.port = to.port(),
        }
        moved
    }

    /// The same path and ports at another address.
    pub fn served_at(mut self, address: IpAddr) -> Self {
        match &mut self {
            Self::Nfs3(at) => at.host = address.to_string(),
            Self::Nfs4(at) => at.host = address.to_string(),
            Self::Service(at) => at.host = address.to_string(),
            Self::Smb(at) => at.host = address.to_string(),
            Self::Iscsi(at) => at.host = address.to_string(),
            Self::Block(_) | Self::Path(_) | Self::Null => {}
            #[cfg(feature = "test-services")]
            Self::Echo(at) => at.host = address.to_string(),
        }
        self
    }
}

/// Makes the folder `name` on `target`.
///
/// # Errors
/// It is there already, or the target refuses.
pub fn make(target: &Target, name: &str) -> Result<(), ClientError> {
    let Some(mut folder) = open(target)? else { return Ok(()) };
    let root = folder.root();
    folder.make(&root, name)
}

/// Makes the folder `name` on `target` unless it is there.
///
/// # Errors
/// The target cannot be reached or refuses.
pub fn ensure(target: &Target, name: &str) -> Result<(), ClientError> {
    let Some(mut folder) = open(target)? else { return Ok(()) };
    let root = folder.root();
    match folder.find(&root, name)? {
        Some(_) => Ok(()),
        None => folder.make(&root, name),
    }
}

/// Removes the folder `name` from `target`, with what clients of the lab have made in it. What is
/// not there is no error. Repeated for `within`: a client that was interrupted may have an
/// operation in flight.
///
/// # Errors
/// Something else is in it, or the target refuses.
pub fn clear(target: &Target, name: &str, within: Duration) -> Result<(), ClientError> {
    let deadline = Deadline::after(within);
    loop {
        let done = match open(target)? {
            Some(mut folder) => clear_once(&mut *folder, name),
            None => Ok(()),
        };
        match done {
            Err(ClientError::Refused { .. }) if !deadline.passed() => std::thread::sleep(AGAIN),
            done => return done,
        }
    }
}

fn open(target: &Target) -> Result<Option<Box<dyn Folder>>, ClientError> {
    let options = Options { bind: None, seed: 0, check_one_in: 0, slots: 1 };
    let checker = || Checker::new(Content::new(0), 0);
    Ok(match target {
        Target::Nfs3(at) if at.rdma => {
            let machine = rdma::machine();
            Some(Box::new(Nfs3Client::open_rdma(at, checker(), &options, &*machine)?))
        }
        Target::Nfs3(at) => Some(Box::new(Nfs3Client::open(at, checker(), &options)?)),
        Target::Nfs4(at) => Some(Box::new(Nfs4Client::open(at, checker(), &options)?)),
        Target::Service(at) => Some(Box::new(ScratchFiles::open(at)?)),
        Target::Smb(at) => Some(Box::new(SmbClient::open(at, checker(), &options)?)),
        Target::Path(dir) => Some(Box::new(LocalDirectory(dir.display().to_string()))),
        // A disk has no folders.
        Target::Iscsi(_) | Target::Block(_) | Target::Null => None,
        #[cfg(feature = "test-services")]
        Target::Echo(_) => None,
    })
}

fn clear_once(folder: &mut dyn Folder, name: &str) -> Result<(), ClientError> {
    let root = folder.root();
    let Some(scratch) = folder.find(&root, name)? else { return Ok(()) };
    for_each_name(folder, &scratch, |folder, client| {
        if programs::is_folder(client) {
            return clear_tree(folder, &scratch, client, 0).map(|()| true);
        }
        if !is_client(client) {
            return Ok(false);
        }
        if let Some(dir) = folder.find(&scratch, client)? {
            for_each_name(folder, &dir, |folder, file| {
                if !is_file(file) {
                    return Ok(false);
                }
                folder.remove(&dir, file, false).map(|()| true)
            })?;
        }
        folder.remove(&scratch, client, true).map(|()| true)
    })?;
    folder.remove(&root, name, true)
}

/// Removes `name` with all that is in it: a program of the lab made it.
fn clear_tree(
    folder: &mut dyn Folder,
    above: &[u8],
    name: &str,
    depth: u32,
) -> Result<(), ClientError> {
    // What is refused as a file is a directory; a handle does not show which it is.
    if folder.remove(above, name, false).is_ok() {
        return Ok(());
    }
    let Some(dir) = folder.find(above, name)? else { return Ok(()) };
    // Deeper than any set: made by no program.
    if depth <= DEPTH_MAX + 2 {
        for_each_name(folder, &dir, |folder, name| {
            clear_tree(folder, &dir, name, depth + 1).map(|()| true)
        })?;
    }
    folder.remove(above, name, true)
}

/// Applies `each` to every name in a folder; `each` returns whether the name is removed. Repeats
/// until no name is removed, since one reply may not hold all names.
fn for_each_name(
    folder: &mut dyn Folder,
    dir: &[u8],
    mut each: impl FnMut(&mut dyn Folder, &str) -> Result<bool, ClientError>,
) -> Result<(), ClientError> {
    loop {
        let mut gone = false;
        for name in folder.names(dir)? {
            gone |= each(folder, &name)?;
        }
        if !gone {
            return Ok(());
        }
    }
}

/// As [`super::FileSet::dir_name`] makes them.
fn is_client(name: &str) -> bool {
    name.strip_prefix("plimsoll-lab.").is_some_and(|n| n.parse::<u32>().is_ok())
}

/// As [`super::FileSet::file_name`] and [`super::FileSet::made_name`] make them.
fn is_file(name: &str) -> bool {
    let kept = name.strip_prefix('f').and_then(|rest| rest.split_once('.'));
    let made = name.strip_prefix('c').is_some_and(|n| u64::from_str_radix(n, 16).is_ok());
    made || kept.is_some_and(|(n, size)| n.parse::<u32>().is_ok() && size.parse::<u64>().is_ok())
}

/// A directory of this machine; its handles are paths.
struct LocalDirectory(String);

impl Folder for LocalDirectory {
    fn root(&self) -> Vec<u8> {
        self.0.clone().into_bytes()
    }

    fn make(&mut self, dir: &[u8], name: &str) -> Result<(), ClientError> {
        let path = path(dir).join(name);
        std::fs::create_dir(&path).map_err(ClientError::io(format!("create {}", path.display())))
    }

    fn find(&mut self, dir: &[u8], name: &str) -> Result<Option<Vec<u8>>, ClientError> {
        let path = path(dir).join(name);
        // A symbolic link in its place is no folder of a run.
        let is_dir = std::fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir());
        Ok(is_dir.then(|| path.display().to_string().into_bytes()))
    }

    fn names(&mut self, dir: &[u8]) -> Result<Vec<String>, ClientError> {
        let list = ClientError::io(format!("list {}", path(dir).display()));
        let entries = std::fs::read_dir(path(dir)).map_err(list)?;
        Ok(entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect())
    }

    fn remove(&mut self, dir: &[u8], name: &str, folder: bool) -> Result<(), ClientError> {
        let path = path(dir).join(name);
        let done = if folder { std::fs::remove_dir(&path) } else { std::fs::remove_file(&path) };
        match done {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(ClientError::io(format!("remove {}", path.display()))(e))
            }
            _ => Ok(()),
        }
    }
}

fn path(handle: &[u8]) -> std::path::PathBuf {
    String::from_utf8_lossy(handle).into_owned().into()
}

#[cfg(test)]
mod tests;
