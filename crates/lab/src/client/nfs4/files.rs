//! Files of programs over NFSv4.1: a compound for each call, handles of directories retained as the
//! cache of names of a client.

use super::Nfs4Client;
use super::compound::{Reply, refused};
use super::dialect::{OPEN_OWNER, mode};
use super::setup::{length, lookup};
use crate::client::ClientError;
use crate::client::files::{Entry, Files, OpenHow, split};
use crate::client::handles::Handles;
use wire::nfs4::{
    ArgOp, Attrs4, Bitmap4, CloseArgs4, CommitArgs4, Component4, Createhow4, Fattr4, Ftype4,
    GetattrArgs4, Nfsstat4, Opaque4, OpenArgs4, OpenClaim4, OpenDelegation4, Openflag4, ReadArgs4,
    ReaddirArgs4, Res4, ResOp, SetattrArgs4, StableHow4, StateOwner4, Stateid4, WriteArgs4, attr4,
    share4,
};

/// Bytes of one reply to READDIR: well within what a session carries.
const LIST_BYTES: u32 = 32 << 10;
/// Attributes that show what a file is.
const ATTRIBUTES: Bitmap4 = Bitmap4::of(&[attr4::TYPE, attr4::SIZE]);

/// A file that is open.
struct Open {
    handle: Vec<u8>,
    stateid: Stateid4,
}

/// Files of a share.
pub struct Nfs4Files {
    client: Nfs4Client,
    handles: Handles<Open>,
}

fn missing(path: &str) -> ClientError {
    refused(format!("look up {path}"), Nfsstat4::NOENT)
}

/// Size and kind among results.
fn attributes(results: &[ResOp<'_>]) -> Result<Entry, ClientError> {
    let attrs = results.iter().find_map(|result| match result {
        ResOp::Getattr(Res4::Ok(ok)) => ok.obj_attributes.values().ok(),
        _ => None,
    });
    match attrs {
        Some(Attrs4 { size: Some(size), kind, .. }) => {
            Ok(Entry { directory: kind == Some(Ftype4::DIR), size })
        }
        _ => Err(ClientError::Protocol("GETATTR without a size".into())),
    }
}

impl Nfs4Files {
    /// By the connection of a client.
    pub fn new(client: Nfs4Client) -> Self {
        Self { client, handles: Handles::new() }
    }

    fn directory(&mut self, path: &str) -> Result<Vec<u8>, ClientError> {
        let Self { client, handles } = self;
        let root = client.root.clone();
        handles.directory(&root, path, &mut |parent, name| client.lookup(parent, name), missing)
    }

    /// A compound at an open file that succeeds.
    fn on(&mut self, fd: usize, op: ArgOp<'_>, what: &str) -> Result<Reply, ClientError> {
        let handle = self.handles.at(fd)?.handle.clone();
        let reply = self.client.at(&handle, &[op])?;
        if reply.status == Nfsstat4::OK { Ok(reply) } else { Err(refused(what, reply.status)) }
    }

    fn open_at(&mut self, parent: &[u8], name: &str, how: OpenHow) -> Result<Reply, ClientError> {
        let mut buf = Vec::new();
        let access = match how {
            OpenHow::Read => share4::ACCESS_READ,
            OpenHow::Write => share4::ACCESS_WRITE,
            OpenHow::Both | OpenHow::New => share4::ACCESS_BOTH,
        };
        let openhow = match how {
            OpenHow::New => Openflag4::Create(Createhow4::Guarded(mode(0o644, &mut buf))),
            _ => Openflag4::Nocreate(()),
        };
        let clientid = self.client.session.clientid;
        let open = ArgOp::Open(OpenArgs4 {
            seqid: 0,
            share_access: access | share4::WANT_NO_DELEG,
            share_deny: share4::DENY_NONE,
            owner: StateOwner4 { clientid, owner: Opaque4(OPEN_OWNER) },
            openhow,
            claim: OpenClaim4::Null(Component4(name.as_bytes())),
        });
        let getattr = ArgOp::Getattr(GetattrArgs4 { attr_request: ATTRIBUTES });
        self.client.at(parent, &[open, ArgOp::Getfh(()), getattr])
    }

    fn gone(&mut self, path: &str) -> Result<(), ClientError> {
        let (above, name) = split(path);
        let parent = self.directory(above)?;
        let reply = self.client.gone(&parent, name)?;
        reply.done(&format!("remove {path}")).map(drop)
    }
}

impl Files for Nfs4Files {
    fn open(&mut self, fd: usize, path: &str, how: OpenHow) -> Result<u64, ClientError> {
        let (above, name) = split(path);
        let parent = self.directory(above)?;
        let what = format!("open {path}");
        let reply = self.open_at(&parent, name, how)?;
        let handle = reply.handle(&what)?;
        let results = reply.done(&what)?;
        let stateid = results.iter().find_map(|result| match result {
            // Requested not to delegate, a server may still do so; this client could not be
            // recalled.
            ResOp::Open(Res4::Ok(ok)) => match ok.delegation {
                OpenDelegation4::None(()) | OpenDelegation4::NoneExt(_) => Some(ok.stateid),
                _ => None,
            },
            _ => None,
        });
        let stateid = stateid
            .ok_or_else(|| ClientError::Protocol("OPEN with a delegation, or no result".into()))?;
        let size = attributes(&results)?.size;
        self.handles.put(fd, Open { handle, stateid });
        Ok(size)
    }

    fn close(&mut self, fd: usize) -> Result<(), ClientError> {
        let open_stateid = self.handles.at(fd)?.stateid;
        let done = self.on(fd, ArgOp::Close(CloseArgs4 { seqid: 0, open_stateid }), "close");
        self.handles.take(fd)?;
        done.map(drop)
    }

    fn read(&mut self, fd: usize, offset: u64, out: &mut [u8]) -> Result<usize, ClientError> {
        let stateid = self.handles.at(fd)?.stateid;
        let read = ReadArgs4 { stateid, offset, count: out.len() as u32 };
        let reply = self.on(fd, ArgOp::Read(read), "read")?;
        let results = reply.results()?;
        let data = results.iter().find_map(|result| match result {
            ResOp::Read(Res4::Ok(ok)) => Some(ok.data),
            _ => None,
        });
        let data = data.ok_or_else(|| ClientError::Protocol("READ without a result".into()))?;
        let len = data.len().min(out.len());
        out[..len].copy_from_slice(&data[..len]);
        Ok(len)
    }

    fn write(
        &mut self,
        fd: usize,
        offset: u64,
        data: &[u8],
        stable: bool,
    ) -> Result<usize, ClientError> {
        let stateid = self.handles.at(fd)?.stateid;
        let stable = if stable { StableHow4::FILE_SYNC } else { StableHow4::UNSTABLE };
        let write = ArgOp::Write(WriteArgs4 { stateid, offset, stable, data });
        let reply = self.on(fd, write, "write")?;
        let done = reply.results()?.into_iter().find_map(|result| match result {
            ResOp::Write(Res4::Ok(ok)) => Some((ok.count, ok.committed, ok.writeverf)),
            _ => None,
        });
        let (count, committed, verifier) =
            done.ok_or_else(|| ClientError::Protocol("WRITE without a result".into()))?;
        if committed == StableHow4::UNSTABLE {
            self.handles.written(fd, verifier)?;
        }
        Ok(count as usize)
    }

    fn flush(&mut self, fd: usize) -> Result<(), ClientError> {
        let commit = ArgOp::Commit(CommitArgs4 { offset: 0, count: 0 });
        let reply = self.on(fd, commit, "commit")?;
        let verifier = reply.results()?.into_iter().find_map(|result| match result {
            ResOp::Commit(Res4::Ok(ok)) => Some(ok.writeverf),
            _ => None,
        });
        self.handles.committed(fd, verifier)
    }

    fn size(&mut self, fd: usize) -> Result<u64, ClientError> {
        let getattr = ArgOp::Getattr(GetattrArgs4 { attr_request: ATTRIBUTES });
        let reply = self.on(fd, getattr, "read attributes")?;
        Ok(attributes(&reply.results()?)?.size)
    }

    fn truncate(&mut self, fd: usize, size: u64) -> Result<(), ClientError> {
        let stateid = self.handles.at(fd)?.stateid;
        let mut buf = Vec::new();
        let obj_attributes: Fattr4<'_> = length(size, &mut buf);
        let set = ArgOp::Setattr(SetattrArgs4 { stateid, obj_attributes });
        self.on(fd, set, "set the size").map(drop)
    }

    fn look(&mut self, path: &str) -> Result<Option<Entry>, ClientError> {
        let (above, name) = split(path);
        let parent = self.directory(above)?;
        let getattr = ArgOp::Getattr(GetattrArgs4 { attr_request: ATTRIBUTES });
        let reply = self.client.at(&parent, &[lookup(name), getattr])?;
        match reply.status {
            Nfsstat4::NOENT => Ok(None),
            _ => attributes(&reply.done(&format!("look up {path}"))?).map(Some),
        }
    }

    fn remove(&mut self, path: &str) -> Result<(), ClientError> {
        self.gone(path)
    }

    fn make_directory(&mut self, path: &str) -> Result<(), ClientError> {
        let (above, name) = split(path);
        let parent = self.directory(above)?;
        self.client.mkdir(&parent, name)?.done(&format!("create {path}")).map(drop)
    }

    fn remove_directory(&mut self, path: &str) -> Result<(), ClientError> {
        self.gone(path)?;
        self.handles.forget(path);
        Ok(())
    }

    fn list(&mut self, path: &str, each: &mut dyn FnMut(&str)) -> Result<(), ClientError> {
        let dir = self.directory(path)?;
        let (mut cookie, mut cookieverf) = (0, [0; 8]);
        loop {
            let readdir = ArgOp::Readdir(ReaddirArgs4 {
                cookie,
                cookieverf,
                dircount: LIST_BYTES,
                maxcount: LIST_BYTES,
                attr_request: Bitmap4::default(),
            });
            let reply = self.client.at(&dir, &[readdir])?;
            let mut more = false;
            for result in reply.done(&format!("list {path}"))? {
                let ResOp::Readdir(Res4::Ok(page)) = result else { continue };
                cookieverf = page.cookieverf;
                for entry in page.entries.iter() {
                    each(&String::from_utf8_lossy(entry.name.0));
                    (cookie, more) = (entry.cookie, !page.eof);
                }
            }
            if !more {
                return Ok(());
            }
        }
    }

    fn leave(&mut self) -> Result<(), ClientError> {
        for fd in self.handles.numbers() {
            self.close(fd)?;
        }
        self.client.leave()
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        self.client.by_name.iter().map(|(name, calls)| (*name, *calls)).collect()
    }
}
