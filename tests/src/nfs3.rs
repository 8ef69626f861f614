//! A small NFSv3 client on the shared codec: one connection, one call at a time, whole answers.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use wire::mount3::{self, Dirpath, MntRes};
use wire::nfs3::{
    CommitArgs, CommitRes, CreateArgs, CreateHow, CreateRes, DiropArgs, Fattr3, Fh3, Filename3,
    GetattrArgs, GetattrRes, LinkArgs, LinkRes, LookupArgs, LookupRes, MkdirArgs, MknodArgs,
    MknodData, NFS_PROGRAM, NFS_V3, Nfspath3, Nfsstat3, Proc, ReadArgs, ReadRes, ReaddirArgs,
    ReaddirRes, ReadlinkArgs, ReadlinkRes, RemoveArgs, RemoveRes, RenameArgs, RenameRes, Res,
    Sattr3, SetattrArgs, SetattrRes, StableHow, SymlinkArgs, WriteArgs, WriteRes, Writeverf3,
};
use wire::rpc::{
    Accepted, Auth, AuthSys, CallHeader, Gids, ReplyBody, ReplyHeader, begin_record, end_record,
};
use wire::xdr::{Decode, Encode, Reader, Writer};

pub mod more;

/// Longest wait for one answer.
const ANSWER: Duration = crate::patience(30);
/// Most bytes of an answer that we believe.
const ANSWER_MAX: u32 = 4 << 20;
/// The type of a message that is a call (RFC 5531 §9).
const CALL: u32 = 0;

/// A file handle.
pub type Handle = Vec<u8>;

/// Why a call brought no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The server answered with this status.
    Status(Nfsstat3),
    /// No answer: the server may or may not have done it.
    Broken(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

/// Outcome of a call.
pub type Outcome<T> = Result<T, Failure>;

/// A new object.
#[derive(Debug, Clone)]
pub struct Made {
    /// Its handle.
    pub handle: Handle,
    /// Its attributes.
    pub attr: Option<Fattr3>,
}

/// A connection.
pub struct Client {
    stream: TcpStream,
    xid: u32,
    uid: u32,
    gid: u32,
    gids: Vec<u32>,
    anonymous: bool,
    /// Calls of the server that came while an answer was waited for.
    calls: VecDeque<Vec<u8>>,
}

impl Client {
    /// Connects; calls carry AUTH_SYS with `uid` and `gid`.
    ///
    /// # Errors
    /// No connection.
    pub fn connect(server: SocketAddr, uid: u32, gid: u32) -> io::Result<Self> {
        Self::over(TcpStream::connect(server)?, uid, gid)
    }

    /// As [`Client::connect`], over an existing connection.
    ///
    /// # Errors
    /// It is broken.
    pub fn over(stream: TcpStream, uid: u32, gid: u32) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER))?;
        // Two connections of one client must not share transactions, or one's call looks like a
        // repetition of the other's.
        let xid = u32::from(stream.local_addr()?.port()) << 16;
        let (gids, calls) = (Vec::new(), VecDeque::new());
        Ok(Self { stream, xid, uid, gid, gids, anonymous: false, calls })
    }

    /// Calls a procedure; gives the bytes after the RPC header.
    ///
    /// # Errors
    /// [`Failure::Broken`] when the connection ends, or the answer is not RPC's "success".
    pub fn call<A: Encode>(&mut self, prog: (u32, u32), proc: u32, args: &A) -> Outcome<Vec<u8>> {
        let record = self.record(prog, proc, args);
        self.stream.write_all(&record)?;
        self.answer()
    }

    /// The next call as a whole record, not sent.
    pub fn record<A: Encode>(&mut self, prog: (u32, u32), proc: u32, args: &A) -> Vec<u8> {
        self.xid = self.xid.wrapping_add(1);
        let mut out = Vec::new();
        let mut w = Writer::new(&mut out);
        let mark = begin_record(&mut w);
        let (uid, gid, gids) = (self.uid, self.gid, Gids::new(&self.gids));
        let cred = match self.anonymous {
            true => Auth::None,
            false => Auth::Sys(AuthSys { stamp: 0, machine: b"test", uid, gid, gids }),
        };
        let (xid, verf) = (self.xid, Auth::None);
        CallHeader { xid, prog: prog.0, vers: prog.1, proc, cred, verf }.encode(&mut w);
        args.encode(&mut w);
        end_record(&mut w, mark);
        out
    }

    fn answer(&mut self) -> Outcome<Vec<u8>> {
        let record = loop {
            let record = self.receive()?;
            if record.get(4..8) != Some(&CALL.to_be_bytes()) {
                break record;
            }
            self.calls.push_back(record);
        };
        let mut r = Reader::new(&record);
        let header = ReplyHeader::decode(&mut r).map_err(broken)?;
        match header.body {
            _ if header.xid != self.xid => Err(broken("an answer to another call")),
            ReplyBody::Accepted { stat: Accepted::Success, .. } => Ok(r.rest().to_vec()),
            other => Err(broken(format!("{other:?}"))),
        }
    }

    /// The next call that the server makes over this connection; `None` if none comes for so long.
    ///
    /// # Errors
    /// As of [`Client::receive`].
    pub fn called_within(&mut self, time: Duration) -> io::Result<Option<Vec<u8>>> {
        if let Some(record) = self.calls.pop_front() {
            return Ok(Some(record));
        }
        self.stream.set_read_timeout(Some(time))?;
        let came = self.stream.peek(&mut [0]);
        self.stream.set_read_timeout(Some(ANSWER))?;
        match came {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => self.receive().map(Some),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    /// The next record that arrives, whatever it answers.
    ///
    /// # Errors
    /// The connection ends, or the record is longer than any answer.
    pub fn receive(&mut self) -> io::Result<Vec<u8>> {
        let mut record = Vec::new();
        loop {
            let mut head = [0; 4];
            self.stream.read_exact(&mut head)?;
            let head = u32::from_be_bytes(head);
            let length = head & 0x7fff_ffff;
            if length > ANSWER_MAX {
                return Err(io::Error::other(format!("an answer of {length} bytes")));
            }
            let start = record.len();
            record.resize(start + length as usize, 0);
            self.stream.read_exact(&mut record[start..])?;
            if head >> 31 == 1 {
                return Ok(record);
            }
        }
    }

    fn nfs<A: Encode>(&mut self, proc: Proc, args: &A) -> Outcome<Vec<u8>> {
        self.call((NFS_PROGRAM, NFS_V3), proc.0, args)
    }

    /// MOUNT's MNT: the root handle of an export.
    ///
    /// # Errors
    /// The status, as text, or a broken connection.
    pub fn mnt(&mut self, export: &str) -> Outcome<Handle> {
        let program = (mount3::MOUNT_PROGRAM, mount3::MOUNT_V3);
        let bytes = self.call(program, mount3::Proc::MNT.0, &Dirpath(export.as_bytes()))?;
        match decode::<MntRes<'_>>(&bytes)? {
            MntRes::Ok(ok) => Ok(ok.fhandle.0.to_vec()),
            MntRes::Fail(status) => Err(broken(status.to_string())),
        }
    }

    /// GETATTR.
    ///
    /// # Errors
    /// As every call: the status, or a broken connection.
    pub fn getattr(&mut self, file: &[u8]) -> Outcome<Fattr3> {
        let bytes = self.nfs(Proc::GETATTR, &GetattrArgs { object: Fh3(file) })?;
        ok(decode::<GetattrRes>(&bytes)?)
    }

    /// SETATTR without a guard; the attributes afterwards.
    ///
    /// # Errors
    /// As every call.
    pub fn setattr(&mut self, file: &[u8], new_attributes: Sattr3) -> Outcome<Option<Fattr3>> {
        let args = SetattrArgs { object: Fh3(file), new_attributes, guard: None };
        let bytes = self.nfs(Proc::SETATTR, &args)?;
        ok(decode::<SetattrRes>(&bytes)?).map(|wcc| wcc.after)
    }

    /// LOOKUP.
    ///
    /// # Errors
    /// As every call.
    pub fn lookup(&mut self, dir: &[u8], name: &(impl AsRef<[u8]> + ?Sized)) -> Outcome<Made> {
        let bytes = self.nfs(Proc::LOOKUP, &LookupArgs { what: at(dir, name) })?;
        let found = ok(decode::<LookupRes<'_>>(&bytes)?)?;
        Ok(Made { handle: found.object.0.to_vec(), attr: found.obj_attributes })
    }

    /// READ: the bytes, and whether the end was reached.
    ///
    /// # Errors
    /// As every call.
    pub fn read(&mut self, file: &[u8], offset: u64, count: u32) -> Outcome<(Vec<u8>, bool)> {
        let bytes = self.nfs(Proc::READ, &ReadArgs { file: Fh3(file), offset, count })?;
        let done = ok(decode::<ReadRes<'_>>(&bytes)?)?;
        Ok((done.data.to_vec(), done.eof))
    }

    /// A whole file, in as many READs as it takes.
    ///
    /// # Errors
    /// As every call.
    pub fn read_all(&mut self, file: &[u8]) -> Outcome<Vec<u8>> {
        let mut all = Vec::new();
        loop {
            let (bytes, eof) = self.read(file, all.len() as u64, 1 << 20)?;
            if eof || bytes.is_empty() {
                all.extend(bytes);
                return Ok(all);
            }
            all.extend(bytes);
        }
    }

    /// WRITE: bytes written, how stable they are, the verifier, the attributes afterwards.
    ///
    /// # Errors
    /// As every call.
    pub fn write(
        &mut self,
        file: &[u8],
        offset: u64,
        data: &[u8],
        stable: StableHow,
    ) -> Outcome<(u32, StableHow, Writeverf3, Option<Fattr3>)> {
        let count = data.len() as u32;
        let args = WriteArgs { file: Fh3(file), offset, count, stable, data };
        let bytes = self.nfs(Proc::WRITE, &args)?;
        let done = ok(decode::<WriteRes>(&bytes)?)?;
        Ok((done.count, done.committed, done.verf, done.file_wcc.after))
    }

    /// COMMIT of a whole file.
    ///
    /// # Errors
    /// As every call.
    pub fn commit(&mut self, file: &[u8]) -> Outcome<Writeverf3> {
        let bytes = self.nfs(Proc::COMMIT, &CommitArgs { file: Fh3(file), offset: 0, count: 0 })?;
        ok(decode::<CommitRes>(&bytes)?).map(|done| done.verf)
    }

    /// CREATE.
    ///
    /// # Errors
    /// As every call.
    pub fn create(
        &mut self,
        dir: &[u8],
        name: &(impl AsRef<[u8]> + ?Sized),
        how: CreateHow,
    ) -> Outcome<Made> {
        self.make(Proc::CREATE, &CreateArgs { where_: at(dir, name), how })
    }

    /// MKDIR.
    ///
    /// # Errors
    /// As every call.
    pub fn mkdir(
        &mut self,
        dir: &[u8],
        name: &(impl AsRef<[u8]> + ?Sized),
        attributes: Sattr3,
    ) -> Outcome<Made> {
        self.make(Proc::MKDIR, &MkdirArgs { where_: at(dir, name), attributes })
    }

    /// SYMLINK.
    ///
    /// # Errors
    /// As every call.
    pub fn symlink(
        &mut self,
        dir: &[u8],
        name: &(impl AsRef<[u8]> + ?Sized),
        target: &str,
    ) -> Outcome<Made> {
        let args = SymlinkArgs {
            where_: at(dir, name),
            symlink_attributes: Sattr3::default(),
            symlink_data: Nfspath3(target.as_bytes()),
        };
        self.make(Proc::SYMLINK, &args)
    }

    /// MKNOD of a named pipe.
    ///
    /// # Errors
    /// As every call.
    pub fn mkfifo(&mut self, dir: &[u8], name: &str, attributes: Sattr3) -> Outcome<Made> {
        let what = MknodData::Fifo(attributes);
        self.make(Proc::MKNOD, &MknodArgs { where_: at(dir, name), what })
    }

    fn make<A: Encode>(&mut self, proc: Proc, args: &A) -> Outcome<Made> {
        let bytes = self.nfs(proc, args)?;
        let made = ok(decode::<CreateRes<'_>>(&bytes)?)?;
        let handle = made.obj.ok_or_else(|| broken("a new object without a handle"))?;
        Ok(Made { handle: handle.0.to_vec(), attr: made.obj_attributes })
    }

    /// READLINK.
    ///
    /// # Errors
    /// As every call.
    pub fn readlink(&mut self, link: &[u8]) -> Outcome<Vec<u8>> {
        let bytes = self.nfs(Proc::READLINK, &ReadlinkArgs { symlink: Fh3(link) })?;
        ok(decode::<ReadlinkRes<'_>>(&bytes)?).map(|done| done.data.0.to_vec())
    }

    /// REMOVE, or RMDIR for a directory.
    ///
    /// # Errors
    /// As every call.
    pub fn remove(
        &mut self,
        dir: &[u8],
        name: &(impl AsRef<[u8]> + ?Sized),
        directory: bool,
    ) -> Outcome<()> {
        let proc = if directory { Proc::RMDIR } else { Proc::REMOVE };
        let bytes = self.nfs(proc, &RemoveArgs { object: at(dir, name) })?;
        ok(decode::<RemoveRes>(&bytes)?).map(|_| ())
    }

    /// RENAME.
    ///
    /// # Errors
    /// As every call.
    pub fn rename(&mut self, from: (&[u8], &str), to: (&[u8], &str)) -> Outcome<()> {
        let args = RenameArgs { from: at(from.0, from.1), to: at(to.0, to.1) };
        let bytes = self.nfs(Proc::RENAME, &args)?;
        ok(decode::<RenameRes>(&bytes)?).map(|_| ())
    }

    /// LINK; the file's attributes afterwards.
    ///
    /// # Errors
    /// As every call.
    pub fn link(&mut self, file: &[u8], dir: &[u8], name: &str) -> Outcome<Option<Fattr3>> {
        let bytes = self.nfs(Proc::LINK, &LinkArgs { file: Fh3(file), link: at(dir, name) })?;
        ok(decode::<LinkRes>(&bytes)?).map(|done| done.file_attributes)
    }

    /// All names of a directory but `.` and `..`, in as many READDIRs as it takes.
    ///
    /// # Errors
    /// As every call.
    pub fn names(&mut self, dir: &[u8]) -> Outcome<Vec<String>> {
        let (mut cookie, mut cookieverf, mut names) = (0, [0; 8], Vec::new());
        loop {
            let args = ReaddirArgs { dir: Fh3(dir), cookie, cookieverf, count: 8192 };
            let bytes = self.nfs(Proc::READDIR, &args)?;
            let done = ok(decode::<ReaddirRes<'_>>(&bytes)?)?;
            let before = cookie;
            for entry in done.entries.iter() {
                cookie = entry.cookie;
                names.push(String::from_utf8_lossy(entry.name.0).into_owned());
            }
            if done.eof || cookie == before {
                names.retain(|name| name != "." && name != "..");
                return Ok(names);
            }
            cookieverf = done.cookieverf;
        }
    }
}

fn at<'a>(dir: &'a [u8], name: &'a (impl AsRef<[u8]> + ?Sized)) -> DiropArgs<'a> {
    DiropArgs { dir: Fh3(dir), name: Filename3(name.as_ref()) }
}

fn broken(what: impl ToString) -> Failure {
    Failure::Broken(what.to_string())
}

fn decode<'a, T: Decode<'a>>(bytes: &'a [u8]) -> Outcome<T> {
    T::decode(&mut Reader::new(bytes)).map_err(broken)
}

fn ok<O, F>(result: Res<O, F>) -> Outcome<O> {
    result.into_result().map_err(Failure::Status)
}
