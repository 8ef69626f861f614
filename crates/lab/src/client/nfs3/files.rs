//! Files of programs over NFSv3: a call for each, handles of directories retained as the cache of
//! names of a client.

use super::dialect::{V3, entry};
use super::setup::refused;
use super::{Handle, Nfs3Client};
use crate::client::ClientError;
use crate::client::files::{Entry, Files, OpenHow, lost, not_open, split};
use crate::client::pipe::CallChannel;
use std::collections::HashMap;
use wire::nfs3::{
    AccessArgs, AccessRes, CommitArgs, CommitRes, Cookieverf3, CreateArgs, CreateHow, CreateRes,
    Fh3, Ftype3, GetattrArgs, GetattrRes, LookupArgs, LookupRes, MkdirArgs, MkdirRes, Nfsstat3,
    Proc, ReadArgs, ReadRes, ReaddirArgs, ReaddirRes, RemoveArgs, RemoveRes, Sattr3, SetattrArgs,
    SetattrRes, StableHow, WriteArgs, WriteRes,
};
use wire::xdr::Decode;

/// Handles of directories that are retained; with more they are looked up again.
const DIRECTORIES_MAX: usize = 8192;
/// Bytes of one reply to READDIR: what any server grants.
const LIST_BYTES: u32 = 32 << 10;
/// Rights that a client asks for when it opens a file: READ, MODIFY, EXTEND.
const ACCESS: u32 = 0x1 | 0x4 | 0x8;

/// A file that is open.
struct Open {
    handle: Handle,
    /// Of writes that are not committed.
    verifier: Option<[u8; 8]>,
}

/// Files of a share.
pub struct Nfs3Files<C> {
    client: Nfs3Client<C>,
    directories: HashMap<String, Handle>,
    open: Vec<Option<Open>>,
}

impl<C: CallChannel<V3>> Nfs3Files<C> {
    /// By the connection of a client.
    pub fn new(client: Nfs3Client<C>) -> Self {
        Self { client, directories: HashMap::new(), open: Vec::new() }
    }

    fn directory(&mut self, path: &str) -> Result<Handle, ClientError> {
        if path.is_empty() {
            return Ok(self.client.root.clone());
        }
        if let Some(handle) = self.directories.get(path) {
            return Ok(handle.clone());
        }
        let (above, name) = split(path);
        let parent = self.directory(above)?;
        let handle = self.client.lookup(&parent, name)?;
        let handle = handle.ok_or_else(|| refused(format!("look up {path}"), Nfsstat3::NOENT))?;
        if self.directories.len() >= DIRECTORIES_MAX {
            self.directories.clear();
        }
        self.directories.insert(path.to_owned(), handle.clone());
        Ok(handle)
    }

    fn at(&self, fd: usize) -> Result<&Open, ClientError> {
        self.open.get(fd).and_then(Option::as_ref).ok_or_else(not_open)
    }

    fn put(&mut self, fd: usize, handle: Handle) {
        if self.open.len() <= fd {
            self.open.resize_with(fd + 1, || None);
        }
        self.open[fd] = Some(Open { handle, verifier: None });
    }

    /// A file by its name: handle, size, whether it is a directory.
    fn found(&mut self, path: &str) -> Result<Result<(Handle, Entry), Nfsstat3>, ClientError> {
        let (above, name) = split(path);
        let parent = match self.directory(above) {
            Ok(parent) => parent,
            Err(ClientError::Refused { status, .. }) if status == Nfsstat3::NOENT.name() => {
                return Ok(Err(Nfsstat3::NOENT));
            }
            Err(error) => return Err(error),
        };
        let args = LookupArgs { what: entry(&parent, name) };
        let found = self.client.ask(Proc::LOOKUP, &args, |r| {
            let found = LookupRes::decode(r)?.into_result();
            Ok(found.map(|ok| (ok.object.0.to_vec(), ok.obj_attributes)))
        })?;
        let (handle, attributes) = match found {
            Ok(found) => found,
            Err(status) => return Ok(Err(status)),
        };
        let entry = match attributes {
            Some(attr) => Entry { directory: attr.ftype == Ftype3::DIR, size: attr.size },
            None => self.attributes(&handle)?,
        };
        Ok(Ok((handle, entry)))
    }

    fn attributes(&mut self, handle: &[u8]) -> Result<Entry, ClientError> {
        let args = GetattrArgs { object: Fh3(handle) };
        let found = self.client.ask(Proc::GETATTR, &args, |r| {
            let found = GetattrRes::decode(r)?.into_result();
            Ok(found.map(|ok| Entry { directory: ok.ftype == Ftype3::DIR, size: ok.size }))
        })?;
        found.map_err(|status| refused("read attributes".into(), status))
    }

    fn create(&mut self, path: &str) -> Result<Handle, ClientError> {
        let (above, name) = split(path);
        let parent = self.directory(above)?;
        let how = CreateHow::Guarded(Sattr3 { mode: Some(0o644), ..Default::default() });
        let args = CreateArgs { where_: entry(&parent, name), how };
        let made = self.client.ask(Proc::CREATE, &args, |r| {
            let made = CreateRes::decode(r)?.into_result();
            Ok(made.map(|ok| ok.obj.map(|fh| fh.0.to_vec())))
        })?;
        let what = || format!("create {path}");
        match made.map_err(|status| refused(what(), status))? {
            Some(handle) => Ok(handle),
            None => {
                let handle = self.client.lookup(&parent, name)?;
                handle.ok_or_else(|| refused(what(), Nfsstat3::NOENT))
            }
        }
    }

    fn gone(&mut self, procedure: Proc, path: &str) -> Result<(), ClientError> {
        let (above, name) = split(path);
        let parent = self.directory(above)?;
        let args = RemoveArgs { object: entry(&parent, name) };
        let gone = self
            .client
            .ask(procedure, &args, |r| Ok(RemoveRes::decode(r)?.into_result().map(drop)))?;
        gone.map_err(|status| refused(format!("remove {path}"), status))
    }
}

impl<C: CallChannel<V3>> Files for Nfs3Files<C> {
    fn open(&mut self, fd: usize, path: &str, how: OpenHow) -> Result<u64, ClientError> {
        if how == OpenHow::New {
            let handle = self.create(path)?;
            self.put(fd, handle);
            return Ok(0);
        }
        let what = || format!("open {path}");
        let (handle, entry) = self.found(path)?.map_err(|status| refused(what(), status))?;
        let args = AccessArgs { object: Fh3(&handle), access: ACCESS };
        let may = self
            .client
            .ask(Proc::ACCESS, &args, |r| Ok(AccessRes::decode(r)?.into_result().map(drop)))?;
        may.map_err(|status| refused(what(), status))?;
        self.put(fd, handle);
        Ok(entry.size)
    }

    /// NFSv3 has no call for it.
    fn close(&mut self, fd: usize) -> Result<(), ClientError> {
        self.open.get_mut(fd).and_then(Option::take).map(drop).ok_or_else(not_open)
    }

    fn read(&mut self, fd: usize, offset: u64, out: &mut [u8]) -> Result<usize, ClientError> {
        let file = self.at(fd)?.handle.clone();
        let args = ReadArgs { file: Fh3(&file), offset, count: out.len() as u32 };
        let got = self.client.ask(Proc::READ, &args, |r| {
            Ok(ReadRes::decode(r)?.into_result().map(|ok| {
                let len = ok.data.len().min(out.len());
                out[..len].copy_from_slice(&ok.data[..len]);
                len
            }))
        })?;
        got.map_err(|status| refused("read".into(), status))
    }

    fn write(
        &mut self,
        fd: usize,
        offset: u64,
        data: &[u8],
        stable: bool,
    ) -> Result<usize, ClientError> {
        let file = self.at(fd)?.handle.clone();
        let how = if stable { StableHow::FILE_SYNC } else { StableHow::UNSTABLE };
        let (file, count) = (Fh3(&file), data.len() as u32);
        let args = WriteArgs { file, offset, count, stable: how, data };
        let done =
            self.client.ask(Proc::WRITE, &args, |r| Ok(WriteRes::decode(r)?.into_result()))?;
        let done = done.map_err(|status| refused("write".into(), status))?;
        let open = self.open.get_mut(fd).and_then(Option::as_mut).ok_or_else(not_open)?;
        if done.committed == StableHow::UNSTABLE {
            match open.verifier.replace(done.verf) {
                Some(before) if before != done.verf => return Err(lost()),
                _ => {}
            }
        }
        Ok(done.count as usize)
    }

    fn flush(&mut self, fd: usize) -> Result<(), ClientError> {
        let file = self.at(fd)?.handle.clone();
        let args = CommitArgs { file: Fh3(&file), offset: 0, count: 0 };
        let done =
            self.client.ask(Proc::COMMIT, &args, |r| Ok(CommitRes::decode(r)?.into_result()))?;
        let done = done.map_err(|status| refused("commit".into(), status))?;
        let open = self.open.get_mut(fd).and_then(Option::as_mut).ok_or_else(not_open)?;
        match open.verifier.take() {
            Some(before) if before != done.verf => Err(lost()),
            _ => Ok(()),
        }
    }

    fn size(&mut self, fd: usize) -> Result<u64, ClientError> {
        let handle = self.at(fd)?.handle.clone();
        self.attributes(&handle).map(|entry| entry.size)
    }

    fn truncate(&mut self, fd: usize, size: u64) -> Result<(), ClientError> {
        let handle = self.at(fd)?.handle.clone();
        let new_attributes = Sattr3 { size: Some(size), ..Default::default() };
        let args = SetattrArgs { object: Fh3(&handle), new_attributes, guard: None };
        let set = self
            .client
            .ask(Proc::SETATTR, &args, |r| Ok(SetattrRes::decode(r)?.into_result().map(drop)))?;
        set.map_err(|status| refused("set the size".into(), status))
    }

    fn look(&mut self, path: &str) -> Result<Option<Entry>, ClientError> {
        match self.found(path)? {
            Ok((_, entry)) => Ok(Some(entry)),
            Err(Nfsstat3::NOENT) => Ok(None),
            Err(status) => Err(refused(format!("look up {path}"), status)),
        }
    }

    fn remove(&mut self, path: &str) -> Result<(), ClientError> {
        self.gone(Proc::REMOVE, path)
    }

    fn make_directory(&mut self, path: &str) -> Result<(), ClientError> {
        let (above, name) = split(path);
        let parent = self.directory(above)?;
        let attributes = Sattr3 { mode: Some(0o755), ..Default::default() };
        let args = MkdirArgs { where_: entry(&parent, name), attributes };
        let made = self
            .client
            .ask(Proc::MKDIR, &args, |r| Ok(MkdirRes::decode(r)?.into_result().map(drop)))?;
        made.map_err(|status| refused(format!("create {path}"), status))
    }

    fn remove_directory(&mut self, path: &str) -> Result<(), ClientError> {
        self.gone(Proc::RMDIR, path)?;
        self.directories.remove(path);
        Ok(())
    }

    fn list(&mut self, path: &str, each: &mut dyn FnMut(&str)) -> Result<(), ClientError> {
        let dir = self.directory(path)?;
        let (mut cookie, mut cookieverf) = (0, Cookieverf3::default());
        loop {
            let args = ReaddirArgs { dir: Fh3(&dir), cookie, cookieverf, count: LIST_BYTES };
            let page = self.client.ask(Proc::READDIR, &args, |r| {
                let ok = match ReaddirRes::decode(r)?.into_result() {
                    Ok(ok) => ok,
                    Err(status) => return Ok(Err(status)),
                };
                let mut last = None;
                for entry in ok.entries.iter() {
                    last = Some(entry.cookie);
                    let name = String::from_utf8_lossy(entry.name.0);
                    if name != "." && name != ".." {
                        each(&name);
                    }
                }
                Ok(Ok((last, ok.cookieverf, ok.eof)))
            })?;
            let page = page.map_err(|status| refused(format!("list {path}"), status))?;
            match page {
                (Some(last), verifier, false) => (cookie, cookieverf) = (last, verifier),
                _ => return Ok(()),
            }
        }
    }

    /// There is no state at the server.
    fn leave(&mut self) -> Result<(), ClientError> {
        self.open.clear();
        Ok(())
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        self.client.by_name.iter().map(|(name, calls)| (*name, *calls)).collect()
    }
}
