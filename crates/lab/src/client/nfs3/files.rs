//! Files of programs over NFSv3: a call for each, handles of directories retained as the cache of
//! names of a client.

use super::dialect::{V3, entry};
use super::setup::refused;
use super::{Handle, Nfs3Client};
use crate::client::ClientError;
use crate::client::files::{Entry, Files, OpenHow, split};
use crate::client::handles::Handles;
use crate::client::pipe::CallChannel;
use wire::nfs3::{
    AccessArgs, AccessRes, CommitArgs, CommitRes, Cookieverf3, CreateArgs, CreateHow, CreateRes,
    Fh3, Ftype3, GetattrArgs, GetattrRes, LookupArgs, LookupRes, MkdirArgs, MkdirRes, Nfsstat3,
    Proc, ReadArgs, ReadRes, ReaddirArgs, ReaddirRes, RemoveArgs, RemoveRes, Sattr3, SetattrArgs,
    SetattrRes, StableHow, WriteArgs, WriteRes,
};
use wire::xdr::Decode;

/// Bytes of one reply to READDIR: what any server grants.
const LIST_BYTES: u32 = 32 << 10;
/// Rights that a client requests with ACCESS when it opens a file: READ, MODIFY, EXTEND.
const ACCESS: u32 = 0x1 | 0x4 | 0x8;

/// Files of a share.
pub struct Nfs3Files<C> {
    client: Nfs3Client<C>,
    handles: Handles<Handle>,
}

fn missing(path: &str) -> ClientError {
    refused(format!("look up {path}"), Nfsstat3::NOENT)
}

impl<C: CallChannel<V3>> Nfs3Files<C> {
    /// By the connection of a client.
    pub fn new(client: Nfs3Client<C>) -> Self {
        Self { client, handles: Handles::new() }
    }

    fn directory(&mut self, path: &str) -> Result<Handle, ClientError> {
        let Self { client, handles } = self;
        let root = client.root.clone();
        handles.directory(&root, path, &mut |parent, name| client.lookup(parent, name), missing)
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
            self.handles.put(fd, handle);
            return Ok(0);
        }
        let what = || format!("open {path}");
        let (handle, entry) = self.found(path)?.map_err(|status| refused(what(), status))?;
        let args = AccessArgs { object: Fh3(&handle), access: ACCESS };
        let may = self
            .client
            .ask(Proc::ACCESS, &args, |r| Ok(AccessRes::decode(r)?.into_result().map(drop)))?;
        may.map_err(|status| refused(what(), status))?;
        self.handles.put(fd, handle);
        Ok(entry.size)
    }

    /// NFSv3 has no call for it.
    fn close(&mut self, fd: usize) -> Result<(), ClientError> {
        self.handles.take(fd).map(drop)
    }

    fn read(&mut self, fd: usize, offset: u64, out: &mut [u8]) -> Result<usize, ClientError> {
        let file = self.handles.at(fd)?.clone();
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
        let file = self.handles.at(fd)?.clone();
        let how = if stable { StableHow::FILE_SYNC } else { StableHow::UNSTABLE };
        let (file, count) = (Fh3(&file), data.len() as u32);
        let args = WriteArgs { file, offset, count, stable: how, data };
        let done =
            self.client.ask(Proc::WRITE, &args, |r| Ok(WriteRes::decode(r)?.into_result()))?;
        let done = done.map_err(|status| refused("write".into(), status))?;
        if done.committed == StableHow::UNSTABLE {
            self.handles.written(fd, done.verf)?;
        }
        Ok(done.count as usize)
    }

    fn flush(&mut self, fd: usize) -> Result<(), ClientError> {
        let file = self.handles.at(fd)?.clone();
        let args = CommitArgs { file: Fh3(&file), offset: 0, count: 0 };
        let done =
            self.client.ask(Proc::COMMIT, &args, |r| Ok(CommitRes::decode(r)?.into_result()))?;
        let done = done.map_err(|status| refused("commit".into(), status))?;
        self.handles.committed(fd, Some(done.verf))
    }

    fn size(&mut self, fd: usize) -> Result<u64, ClientError> {
        let handle = self.handles.at(fd)?.clone();
        self.attributes(&handle).map(|entry| entry.size)
    }

    fn truncate(&mut self, fd: usize, size: u64) -> Result<(), ClientError> {
        let handle = self.handles.at(fd)?.clone();
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
        self.handles.forget(path);
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
        self.handles = Handles::new();
        Ok(())
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        self.client.by_name.iter().map(|(name, calls)| (*name, *calls)).collect()
    }
}
