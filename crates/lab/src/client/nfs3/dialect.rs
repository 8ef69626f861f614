//! How NFSv3 encodes each operation (RFC 1813 §3.3), and how its reply is read.

use super::Handle;
use crate::client::pipe::judge::{Judge, SentWrite};
use crate::client::pipe::{Dialect, Outcome, header};
use crate::client::{Fault, FileSet, Op};
use wire::nfs3::{
    CommitArgs, CommitRes, CreateArgs, CreateHow, CreateRes, DiropArgs, Fh3, Filename3,
    GetattrArgs, GetattrRes, LookupArgs, LookupRes, NFS_PROGRAM, NFS_V3, Nfsstat3, PostOpAttr,
    Proc, ReadArgs, ReadRes, RemoveArgs, RemoveRes, Res, Sattr3, StableHow, WriteArgs, WriteRes,
};
use wire::xdr::{Decode, DecodeError, Encode, Reader, Writer};

/// What calls need to know: the header, and the handles of the client's files.
pub struct V3 {
    header: Vec<u8>,
    /// The client's directory.
    pub dir: Handle,
    /// Handles by file number.
    pub handles: Vec<Handle>,
    /// Their names.
    pub names: Vec<String>,
    /// NFS calls made since the connection was opened.
    pub made: u64,
}

impl V3 {
    /// Knows no files yet.
    pub fn new() -> Self {
        let header = header::encoded(NFS_PROGRAM, NFS_V3);
        Self { header, dir: Vec::new(), handles: Vec::new(), names: Vec::new(), made: 0 }
    }

    /// Appends a call of any procedure.
    pub fn call(&mut self, w: &mut Writer<'_>, xid: u32, procedure: Proc, args: &dyn Encode) {
        self.made += 1;
        header::write(w, &self.header, xid, procedure.0);
        args.encode(w);
    }

    fn handle(&self, file: u32) -> Fh3<'_> {
        Fh3(self.handles.get(file as usize).map_or(&[][..], |handle| handle))
    }
}

impl Dialect for V3 {
    #[inline]
    fn encode(&mut self, w: &mut Writer<'_>, xid: u32, _slot: u32, op: Op) {
        self.made += 1;
        let start = w.len();
        header::write(w, &self.header, xid, 0);
        let procedure = match op {
            Op::Null => Proc::NULL,
            Op::Getattr { file } => {
                GetattrArgs { object: self.handle(file) }.encode(w);
                Proc::GETATTR
            }
            Op::Lookup { file } => {
                let name = self.names.get(file as usize).map_or("", |name| name);
                LookupArgs { what: entry(&self.dir, name) }.encode(w);
                Proc::LOOKUP
            }
            Op::Read { file, offset, len } => {
                ReadArgs { file: self.handle(file), offset, count: len }.encode(w);
                Proc::READ
            }
            Op::Write { file, offset, len, stable } => {
                let stable = if stable { StableHow::FILE_SYNC } else { StableHow::UNSTABLE };
                WriteArgs { file: self.handle(file), offset, count: len, stable, data: &[] }
                    .encode(w);
                let at = w.len() - 4;
                w.patch_u32(at, len);
                Proc::WRITE
            }
            Op::Commit { file } => {
                CommitArgs { file: self.handle(file), offset: 0, count: 0 }.encode(w);
                Proc::COMMIT
            }
            Op::Create { name } => {
                let name = FileSet::made_name(name);
                let how = CreateHow::Unchecked(Sattr3 { mode: Some(0o644), ..Default::default() });
                CreateArgs { where_: entry(&self.dir, &name), how }.encode(w);
                Proc::CREATE
            }
            Op::Remove { name } => {
                let name = FileSet::made_name(name);
                RemoveArgs { object: entry(&self.dir, &name) }.encode(w);
                Proc::REMOVE
            }
        };
        w.patch_u32(start + header::PROC_AT, procedure.0);
    }

    #[inline]
    fn decode(
        &mut self,
        r: &mut Reader<'_>,
        _slot: u32,
        op: Op,
        judge: &mut Judge,
    ) -> Result<Outcome, DecodeError> {
        let failed = |status: Nfsstat3| Err(Fault::Status(status.0));
        Ok(match op {
            Op::Null => Ok(0),
            Op::Getattr { .. } => plain(GetattrRes::decode(r)?),
            Op::Lookup { .. } => plain(LookupRes::decode(r)?),
            Op::Create { .. } => plain(CreateRes::decode(r)?),
            Op::Remove { .. } => plain(RemoveRes::decode(r)?),
            Op::Read { file, offset, len } => match ReadRes::decode(r)?.into_result() {
                Err(status) => failed(status),
                Ok(ok) => judge.read(file, offset, len, ok.data),
            },
            Op::Write { file, len, stable, .. } => match WriteRes::decode(r)?.into_result() {
                Err(status) => failed(status),
                Ok(ok) => {
                    let done = (ok.count, ok.committed == StableHow::FILE_SYNC);
                    let asked = SentWrite { file, len, stable };
                    judge.written(asked, done, ok.verf, Nfsstat3::SERVERFAULT.0)
                }
            },
            Op::Commit { file } => match CommitRes::decode(r)?.into_result() {
                Err(status) => failed(status),
                Ok(ok) => judge.committed(file, ok.verf),
            },
        })
    }

    fn read_head(
        &mut self,
        r: &mut Reader<'_>,
        _slot: u32,
        record: usize,
    ) -> Result<Option<usize>, DecodeError> {
        if !Nfsstat3::decode(r)?.is_ok() {
            return Ok(None);
        }
        PostOpAttr::decode(r)?;
        r.u32("READ3resok.count")?;
        r.bool("READ3resok.eof")?;
        r.length(record, "READ3resok.data").map(Some)
    }
}

/// A name in a directory.
pub fn entry<'a>(dir: &'a [u8], name: &'a str) -> DiropArgs<'a> {
    DiropArgs { dir: Fh3(dir), name: Filename3(name.as_bytes()) }
}

#[inline]
fn plain<O, F>(res: Res<O, F>) -> Outcome {
    res.into_result().map(|_| 0).map_err(|status| Fault::Status(status.0))
}
