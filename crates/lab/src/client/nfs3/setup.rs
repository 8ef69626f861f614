//! Before and after the load: mount, directory, files with their content, cleaning.

use super::dialect::{V3, entry};
use super::{Handle, Nfs3Client};
use crate::client::pipe::fill::FillFiles;
use crate::client::pipe::inbox::{Inbox, answer, protocol};
use crate::client::pipe::judge::Judge;
use crate::client::pipe::link::Link;
use crate::client::pipe::{self, CallChannel, header};
use crate::client::scratch::Folder;
use crate::client::target::Nfs3At;
use crate::client::{Checker, ClientError, FileSet, Op};
use crate::pattern::Content;
use base::limits::LAB_SILENCE_MAX;
use std::net::IpAddr;
use wire::mount3::{self, Dirpath, MOUNT_PROGRAM, MOUNT_V3, MntRes};
use wire::nfs3::{
    Cookieverf3, CreateArgs, CreateHow, CreateRes, Fh3, LookupArgs, LookupRes, MkdirArgs, MkdirRes,
    NewResOk, Nfsstat3, Proc, ReaddirArgs, ReaddirRes, ReaddirResOk, RemoveArgs, RemoveRes, Sattr3,
    SetattrArgs, SetattrRes,
};
use wire::rpc::{Accepted, ReplyBody, ReplyHeader, begin_record, end_record};
use wire::xdr::{Decode, Encode, Reader, Writer};

/// Asks the MOUNT program for the handle of the share (RFC 1813, appendix I).
pub fn mount(at: &Nfs3At, bind: Option<IpAddr>) -> Result<Handle, ClientError> {
    let mut link = Link::open(&at.host, at.mount_port, bind)?;
    let mut out = Vec::new();
    let mut w = Writer::new(&mut out);
    let mark = begin_record(&mut w);
    let xid = (base::clock::wall_ns() >> 10) as u32;
    header::write(&mut w, &header::encoded(MOUNT_PROGRAM, MOUNT_V3), xid, mount3::Proc::MNT.0);
    Dirpath(at.path.as_bytes()).encode(&mut w);
    end_record(&mut w, mark);
    let mut inbox = Inbox::new(Judge::new(Checker::new(Content::new(0), 0)));
    let record = pipe::exchange(&mut link, &out, &mut inbox, LAB_SILENCE_MAX)?;
    let mut r = Reader::new(&record);
    if is_missing(&record) {
        let (host, path) = (at.host.clone(), at.path.clone());
        return Err(ClientError::NoMount { host, port: at.mount_port, path });
    }
    answer(&mut r)?;
    match MntRes::decode(&mut r).map_err(protocol)? {
        MntRes::Ok(ok) => Ok(ok.fhandle.0.to_vec()),
        MntRes::Fail(status) => Err(ClientError::Refused {
            what: format!("mount {}", at.path),
            status: match status.known_name().unwrap_or("an unknown status") {
                name @ "MNT3ERR_ACCES" => format!(
                    "{name}; its export rules may require another address, a privileged port or TLS"
                ),
                name => name.to_owned(),
            },
        }),
    }
}

/// Whether a reply reports that the program, or this version of it, is not available.
fn is_missing(record: &[u8]) -> bool {
    let body = ReplyHeader::decode(&mut Reader::new(record)).map(|header| header.body);
    matches!(
        body,
        Ok(ReplyBody::Accepted { stat: Accepted::ProgUnavail | Accepted::ProgMismatch { .. }, .. })
    )
}

/// Bytes of one answer to READDIR: what any server grants.
const LIST_BYTES: u32 = 32 << 10;

impl<C: CallChannel<V3>> Nfs3Client<C> {
    /// One call and its answer, when nothing else is in flight.
    pub(super) fn ask<T>(
        &mut self,
        procedure: Proc,
        args: &dyn Encode,
        read: impl FnOnce(&mut Reader<'_>) -> Result<T, wire::xdr::DecodeError>,
    ) -> Result<T, ClientError> {
        let mut call = Vec::new();
        self.channel.dialect_mut().call(&mut Writer::new(&mut call), 0, procedure, args);
        let record = self.channel.exchange(LAB_SILENCE_MAX, &|w, xid| {
            let start = w.len();
            w.raw(&call);
            w.patch_u32(start + header::XID_AT, xid);
        })?;
        *self.by_name.entry(Proc::name(procedure.0)).or_default() += 1;
        let mut r = Reader::new(&record);
        answer(&mut r)?;
        read(&mut r).map_err(protocol)
    }

    pub(super) fn lookup(&mut self, dir: &[u8], name: &str) -> Result<Option<Handle>, ClientError> {
        let args = LookupArgs { what: entry(dir, name) };
        let found = self.ask(Proc::LOOKUP, &args, |r| {
            Ok(LookupRes::decode(r)?.into_result().map(|ok| ok.object.0.to_vec()))
        })?;
        match found {
            Ok(handle) => Ok(Some(handle)),
            Err(Nfsstat3::NOENT) => Ok(None),
            Err(status) => Err(refused(format!("look up {name}"), status)),
        }
    }

    /// The handle of a new object, looked up when the server did not send it along.
    fn made(
        &mut self,
        dir: &[u8],
        name: &str,
        made: Result<Option<Handle>, Nfsstat3>,
    ) -> Result<Handle, ClientError> {
        match made {
            Ok(Some(handle)) => Ok(handle),
            Ok(None) | Err(Nfsstat3::EXIST) => self
                .lookup(dir, name)?
                .ok_or_else(|| refused(format!("look up the new {name}"), Nfsstat3::NOENT)),
            Err(status) => Err(refused(format!("create {name}"), status)),
        }
    }

    fn directory(&mut self, name: &str) -> Result<Handle, ClientError> {
        let root = self.root.clone();
        if let Some(handle) = self.lookup(&root, name)? {
            return Ok(handle);
        }
        let made = self.mkdir(&root, name)?;
        self.made(&root, name, made)
    }

    fn mkdir(
        &mut self,
        dir: &[u8],
        name: &str,
    ) -> Result<Result<Option<Handle>, Nfsstat3>, ClientError> {
        let attributes = Sattr3 { mode: Some(0o755), ..Default::default() };
        let args = MkdirArgs { where_: entry(dir, name), attributes };
        self.ask(Proc::MKDIR, &args, |r| Ok(new_handle(MkdirRes::decode(r)?.into_result())))
    }

    fn file(&mut self, dir: &[u8], name: &str) -> Result<Handle, ClientError> {
        if let Some(handle) = self.lookup(dir, name)? {
            return Ok(handle);
        }
        let how = CreateHow::Unchecked(Sattr3 { mode: Some(0o644), ..Default::default() });
        let args = CreateArgs { where_: entry(dir, name), how };
        let made =
            self.ask(Proc::CREATE, &args, |r| Ok(new_handle(CreateRes::decode(r)?.into_result())))?;
        self.made(dir, name, made)
    }

    pub(super) fn prepare_files(&mut self, set: &FileSet) -> Result<(), ClientError> {
        let dir = self.directory(&set.dir_name())?;
        self.channel.set_client(set.client);
        let dialect = self.channel.dialect_mut();
        dialect.dir = dir.clone();
        dialect.names = (0..set.files).map(|n| set.file_name(n)).collect();
        dialect.handles.clear();
        for number in 0..set.files {
            let handle = self.file(&dir, &set.file_name(number))?;
            self.channel.dialect_mut().handles.push(handle);
        }
        for number in 0..set.files {
            if !self.channel.is_filled(number, set.size, name)? {
                self.fill(number, set.size)?;
            }
        }
        Ok(())
    }

    fn fill(&mut self, file: u32, size: u64) -> Result<(), ClientError> {
        self.channel.write_content(file, size, name)?;
        let handle = self.channel.dialect().handles.get(file as usize).cloned().unwrap_or_default();
        // An older, longer file of the same name would keep its tail.
        let new_attributes = Sattr3 { size: Some(size), ..Default::default() };
        let args = SetattrArgs { object: Fh3(&handle), new_attributes, guard: None };
        let set = self.ask(Proc::SETATTR, &args, |r| Ok(SetattrRes::decode(r)?.into_result()))?;
        set.map_err(|status| refused("set the size of a file".into(), status))?;
        self.channel.succeed([Op::Commit { file }].into_iter(), name)
    }

    pub(super) fn remove_files(&mut self, set: &FileSet) -> Result<(), ClientError> {
        let root = self.root.clone();
        let Some(dir) = self.lookup(&root, &set.dir_name())? else { return Ok(()) };
        for number in 0..set.files {
            let name = set.file_name(number);
            let gone = self.gone(Proc::REMOVE, &dir, &name)?;
            gone.map_err(|status| refused(format!("remove {name}"), status))?;
        }
        match self.gone(Proc::RMDIR, &root, &set.dir_name())? {
            // A directory with files of another job in it stays.
            Ok(()) | Err(Nfsstat3::NOTEMPTY | Nfsstat3::EXIST) => Ok(()),
            Err(status) => Err(refused(format!("remove {}", set.dir_name()), status)),
        }
    }

    /// Removes a name; what is not there is gone.
    fn gone(
        &mut self,
        procedure: Proc,
        dir: &[u8],
        name: &str,
    ) -> Result<Result<(), Nfsstat3>, ClientError> {
        let args = RemoveArgs { object: entry(dir, name) };
        let gone = self.ask(procedure, &args, |r| Ok(RemoveRes::decode(r)?.into_result()))?;
        Ok(match gone {
            Ok(_) | Err(Nfsstat3::NOENT) => Ok(()),
            Err(status) => Err(status),
        })
    }
}

impl<C: CallChannel<V3>> Folder for Nfs3Client<C> {
    fn root(&self) -> Handle {
        self.root.clone()
    }

    fn make(&mut self, dir: &[u8], name: &str) -> Result<(), ClientError> {
        let made = self.mkdir(dir, name)?;
        made.map(drop).map_err(|status| refused(format!("create {name}"), status))
    }

    fn find(&mut self, dir: &[u8], name: &str) -> Result<Option<Handle>, ClientError> {
        self.lookup(dir, name)
    }

    fn names(&mut self, dir: &[u8]) -> Result<Vec<String>, ClientError> {
        let cookieverf = Cookieverf3::default();
        let args = ReaddirArgs { dir: Fh3(dir), cookie: 0, cookieverf, count: LIST_BYTES };
        let found = self.ask(Proc::READDIR, &args, |r| {
            let list = |ok: ReaddirResOk<'_>| -> Result<Vec<String>, wire::xdr::DecodeError> {
                let mut names = Vec::new();
                for entry in ok.entries.iter() {
                    let name = String::from_utf8_lossy(entry.name.0);
                    if name != "." && name != ".." {
                        names.push(name.into_owned());
                    }
                }
                Ok(names)
            };
            match ReaddirRes::decode(r)?.into_result() {
                Ok(ok) => list(ok).map(Ok),
                Err(status) => Ok(Err(status)),
            }
        })?;
        found.map_err(|status| refused("list a folder".into(), status))
    }

    fn remove(&mut self, dir: &[u8], name: &str, folder: bool) -> Result<(), ClientError> {
        let procedure = if folder { Proc::RMDIR } else { Proc::REMOVE };
        let gone = self.gone(procedure, dir, name)?;
        gone.map_err(|status| refused(format!("remove {name}"), status))
    }
}

fn new_handle(made: Result<NewResOk<'_>, Nfsstat3>) -> Result<Option<Handle>, Nfsstat3> {
    made.map(|ok| ok.obj.map(|fh| fh.0.to_vec()))
}

pub(super) fn refused(what: String, status: Nfsstat3) -> ClientError {
    ClientError::Refused { what, status: status.name().to_owned() }
}

fn name(status: u32) -> String {
    Nfsstat3(status).name().to_owned()
}
