//! How NFSv4.1 encodes each operation: one compound of SEQUENCE, PUTFH and the operation
//! (RFC 8881 §16.2, §18.46). Its bytes are encoded once and patched: transaction number, sequence
//! and slot, count, offset, length.

use super::compound::MINOR;
use crate::client::pipe::judge::{Judge, SentWrite};
use crate::client::pipe::{Dialect, Outcome, header};
use crate::client::{Fault, FileSet, Op};
use base::limits::NFS4_OPAQUE_LIMIT;
use wire::nfs4::{
    ArgOp, Attrs4, Bitmap4, CloseArgs4, CommitResOk4, Component4, CompoundArgs, Createhow4, Fattr4,
    Fh4, GetattrArgs4, LookupArgs4, NFS_V4, NFS4_PROGRAM, NFSPROC4_COMPOUND, Nfsstat4, Opaque4,
    OpenArgs4, OpenClaim4, Openflag4, Opnum4, PutfhArgs4, ReadArgs4, RemoveArgs4, SequenceArgs4,
    Sessionid4, StableHow4, StateOwner4, Stateid4, Tag4, WriteArgs4, WriteResOk4, attr4, share4,
};
use wire::xdr::{Decode, DecodeError, Encode, Reader, Writer};

/// Where the number of operations stands behind the header (tag, minor version, count).
const COUNT_AT: usize = 8;
/// Where the sequence number stands: operation and session are before it.
const SEQUENCE_AT: usize = COUNT_AT + 4 + 4 + 16;
/// Where the slot stands.
const SLOT_AT: usize = SEQUENCE_AT + 4;
/// Where `sa_cachethis` stands, behind the highest slot.
const CACHE_AT: usize = SLOT_AT + 8;
/// What GETATTR and LOOKUP ask for: what `fattr3` holds, and the change attribute, as a Linux
/// client does.
const ATTRIBUTES: Bitmap4 = Bitmap4::of(&[
    attr4::TYPE,
    attr4::CHANGE,
    attr4::SIZE,
    attr4::FSID,
    attr4::FILEID,
    attr4::MODE,
    attr4::NUMLINKS,
    attr4::OWNER,
    attr4::OWNER_GROUP,
    attr4::RAWDEV,
    attr4::SPACE_USED,
    attr4::TIME_ACCESS,
    attr4::TIME_METADATA,
    attr4::TIME_MODIFY,
]);
/// The one owner of all opens of a client.
pub const OPEN_OWNER: &[u8] = b"plimsoll-lab";

/// A file that is open, with what its operations begin with.
pub struct File {
    /// Its handle.
    pub handle: Vec<u8>,
    /// By which it is read and written.
    pub stateid: Stateid4,
    putfh: Vec<u8>,
    lookup: Vec<u8>,
}

impl File {
    /// Encodes what stays the same.
    pub fn new(handle: &[u8], name: &str, stateid: Stateid4) -> Self {
        let objname = Component4(name.as_bytes());
        let attr_request = ATTRIBUTES;
        let lookup = encoded(&[
            ArgOp::Lookup(LookupArgs4 { objname }),
            ArgOp::Getfh(()),
            ArgOp::Getattr(GetattrArgs4 { attr_request }),
        ]);
        Self { handle: handle.to_vec(), stateid, putfh: putfh(handle), lookup }
    }
}

/// The session and the files: what calls need to know.
pub struct V4 {
    /// Header, and SEQUENCE with everything before it.
    template: Vec<u8>,
    header_len: usize,
    /// By slot of the session, the last sequence number that the server has taken.
    sequences: Vec<u32>,
    free: Vec<u32>,
    /// The slot of the session that each slot of the load holds.
    held: Vec<u32>,
    dir_putfh: Vec<u8>,
    getattr: Vec<u8>,
    /// OPEN up to the name, and what follows it.
    open: (Vec<u8>, Vec<u8>),
    /// The client's files, by number.
    pub files: Vec<File>,
    /// Operations that were answered since the connection was opened.
    pub answered: u64,
}

impl V4 {
    /// Without a session yet: it can only write compounds that need none.
    pub fn new() -> Self {
        let header = header::encoded(NFS4_PROGRAM, NFS_V4);
        Self {
            header_len: header.len(),
            template: header,
            sequences: Vec::new(),
            free: Vec::new(),
            held: Vec::new(),
            dir_putfh: Vec::new(),
            getattr: encoded(&[ArgOp::Getattr(GetattrArgs4 { attr_request: ATTRIBUTES })]),
            open: Default::default(),
            files: Vec::new(),
            answered: 0,
        }
    }

    /// From now on all calls are in this session of this many slots.
    pub fn begin_session(&mut self, session: Sessionid4, slots: u32, clientid: u64) {
        self.template.truncate(self.header_len);
        let mut w = Writer::new(&mut self.template);
        CompoundArgs { tag: Tag4(b""), minorversion: MINOR, count: 0 }.encode(&mut w);
        let (sequenceid, slotid, highest_slotid) = (0, 0, slots - 1);
        let cachethis = false;
        ArgOp::Sequence(SequenceArgs4 {
            sessionid: session,
            sequenceid,
            slotid,
            highest_slotid,
            cachethis,
        })
        .encode(&mut w);
        self.sequences = vec![0; slots as usize];
        // The lowest ones first and again: a server may give up those that are never used.
        self.free = (0..slots).rev().collect();
        self.open = open(clientid);
    }

    /// The directory of the client's files.
    pub fn set_dir(&mut self, handle: &[u8]) {
        self.dir_putfh = putfh(handle);
    }

    /// Appends the header of a compound.
    pub fn header(&self, w: &mut Writer<'_>, xid: u32) {
        let header = self.template.get(..self.header_len).unwrap_or_default();
        header::write(w, header, xid, NFSPROC4_COMPOUND);
    }

    /// The next sequence number of the first slot, for compounds outside the load.
    pub fn next_single(&self) -> u32 {
        self.sequences.first().map_or(1, |last| last.wrapping_add(1))
    }

    /// The server took that one.
    pub fn single_taken(&mut self) {
        if let Some(last) = self.sequences.first_mut() {
            *last = last.wrapping_add(1);
        }
    }

    /// Header and SEQUENCE of a call, on a slot of the session that is free.
    #[inline]
    fn begin(&mut self, w: &mut Writer<'_>, xid: u32, slot: u32) -> usize {
        let mine = self.free.pop().unwrap_or_default();
        if self.held.len() <= slot as usize {
            self.held.resize(slot as usize + 1, 0);
        }
        if let Some(held) = self.held.get_mut(slot as usize) {
            *held = mine;
        }
        let next = self.sequences.get(mine as usize).map_or(1, |last| last.wrapping_add(1));
        let start = w.len();
        header::write(w, &self.template, xid, NFSPROC4_COMPOUND);
        let at = start + self.header_len;
        w.patch_u32(at + SEQUENCE_AT, next);
        w.patch_u32(at + SLOT_AT, mine);
        at
    }

    /// PUTFH of a file, and its stateid.
    #[inline]
    fn at(&self, w: &mut Writer<'_>, file: u32) -> Stateid4 {
        match self.files.get(file as usize) {
            Some(file) => {
                w.raw(&file.putfh);
                file.stateid
            }
            None => Stateid4::ANONYMOUS,
        }
    }

    /// Status, and the result of SEQUENCE, of a compound that should have `count` results:
    /// what comes next is the result of the second operation. Nothing is changed.
    #[inline]
    fn start_of(
        &self,
        r: &mut Reader<'_>,
        slot: u32,
        count: u32,
    ) -> Result<Result<(), Failed>, DecodeError> {
        let status = Nfsstat4::decode(r)?;
        r.opaque(NFS4_OPAQUE_LIMIT, "COMPOUND4res.tag")?;
        let answered = r.u32("COMPOUND4res.resarray")?;
        let mut sequenced = false;
        if answered > 0 {
            expect(r, Opnum4::SEQUENCE)?;
            sequenced = Nfsstat4::decode(r)?.is_ok();
        }
        if !status.is_ok() {
            return Ok(Err(Failed { status, answered, sequenced }));
        }
        if !sequenced || answered != count {
            return Err(DecodeError::BadValue { what: "COMPOUND4res.resarray", got: answered });
        }
        r.fixed(16, "SEQUENCE4resok.sr_sessionid")?;
        let mine = self.held.get(slot as usize).copied().unwrap_or_default();
        let next = self.sequences.get(mine as usize).map_or(1, |last| last.wrapping_add(1));
        let sequence = r.u32("SEQUENCE4resok.sr_sequenceid")?;
        let slotid = r.u32("SEQUENCE4resok.sr_slotid")?;
        if (sequence, slotid) != (next, mine) {
            return Err(DecodeError::BadValue { what: "SEQUENCE4resok.sr_slotid", got: slotid });
        }
        r.fixed(12, "SEQUENCE4resok.sr_status_flags")?;
        Ok(Ok(()))
    }

    /// The server has taken the slot's request, and did `answered` operations of it.
    #[inline]
    fn taken(&mut self, slot: u32, answered: u32) {
        self.answered += u64::from(answered);
        let mine = self.held.get(slot as usize).copied().unwrap_or_default();
        if let Some(last) = self.sequences.get_mut(mine as usize) {
            *last = last.wrapping_add(1);
        }
    }
}

/// A compound that ended early.
struct Failed {
    status: Nfsstat4,
    answered: u32,
    sequenced: bool,
}

/// Operations of the compound for `op`.
#[inline]
const fn count(op: Op) -> u32 {
    match op {
        Op::Null => 1,
        Op::Getattr { .. } | Op::Read { .. } | Op::Write { .. } => 3,
        Op::Commit { .. } | Op::Remove { .. } => 3,
        Op::Create { .. } => 4,
        Op::Lookup { .. } => 5,
    }
}

impl Dialect for V4 {
    #[inline]
    fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    #[inline]
    fn encode(&mut self, w: &mut Writer<'_>, xid: u32, slot: u32, op: Op) {
        let at = self.begin(w, xid, slot);
        w.patch_u32(at + COUNT_AT, count(op));
        match op {
            Op::Null => {}
            Op::Getattr { file } => {
                self.at(w, file);
                w.raw(&self.getattr);
            }
            Op::Lookup { file } => {
                w.raw(&self.dir_putfh);
                w.raw(self.files.get(file as usize).map_or(&[][..], |file| &file.lookup));
            }
            Op::Read { file, offset, len } => {
                let stateid = self.at(w, file);
                w.u32(Opnum4::READ.0);
                ReadArgs4 { stateid, offset, count: len }.encode(w);
            }
            Op::Write { file, offset, len, stable } => {
                let stable = if stable { StableHow4::FILE_SYNC } else { StableHow4::UNSTABLE };
                let stateid = self.at(w, file);
                w.u32(Opnum4::WRITE.0);
                WriteArgs4 { stateid, offset, stable, data: &[] }.encode(w);
                let at = w.len() - 4;
                w.patch_u32(at, len);
            }
            Op::Commit { file } => {
                self.at(w, file);
                w.u32(Opnum4::COMMIT.0);
                w.u64(0);
                w.u32(0);
            }
            // What may not be done twice is kept by the server for a repetition, as for a Linux
            // client: its cost belongs to the operation.
            Op::Create { name } => {
                w.patch_u32(at + CACHE_AT, 1);
                w.raw(&self.dir_putfh);
                w.raw(&self.open.0);
                w.opaque(FileSet::made_name(name).as_bytes());
                w.raw(&self.open.1);
            }
            Op::Remove { name } => {
                w.patch_u32(at + CACHE_AT, 1);
                w.raw(&self.dir_putfh);
                let name = FileSet::made_name(name);
                ArgOp::Remove(RemoveArgs4 { target: Component4(name.as_bytes()) }).encode(w);
            }
        }
    }

    #[inline]
    fn decode(
        &mut self,
        r: &mut Reader<'_>,
        slot: u32,
        op: Op,
        judge: &mut Judge,
    ) -> Result<Outcome, DecodeError> {
        if let Err(failed) = self.start_of(r, slot, count(op))? {
            match failed.sequenced {
                true => self.taken(slot, failed.answered),
                false => self.answered += u64::from(failed.answered),
            }
            return Ok(Err(Fault::Status(failed.status.0)));
        }
        self.taken(slot, count(op));
        if op == Op::Null {
            return Ok(Ok(0));
        }
        success(r, Opnum4::PUTFH)?;
        Ok(match op {
            Op::Null => Ok(0),
            Op::Getattr { .. } => {
                success(r, Opnum4::GETATTR)?;
                Fattr4::decode(r)?;
                Ok(0)
            }
            Op::Lookup { .. } => {
                success(r, Opnum4::LOOKUP)?;
                success(r, Opnum4::GETFH)?;
                Fh4::decode(r)?;
                success(r, Opnum4::GETATTR)?;
                Fattr4::decode(r)?;
                Ok(0)
            }
            Op::Read { file, offset, len } => {
                success(r, Opnum4::READ)?;
                r.bool("READ4resok.eof")?;
                let data = <&[u8] as wire::xdr::Item>::item(r, "READ4resok.data")?;
                judge.read(file, offset, len, data)
            }
            Op::Write { file, len, stable, .. } => {
                success(r, Opnum4::WRITE)?;
                let ok = WriteResOk4::decode(r)?;
                let done = (ok.count, ok.committed == StableHow4::FILE_SYNC);
                let asked = SentWrite { file, len, stable };
                judge.written(asked, done, ok.writeverf, Nfsstat4::SERVERFAULT.0)
            }
            Op::Commit { file } => {
                success(r, Opnum4::COMMIT)?;
                judge.committed(file, CommitResOk4::decode(r)?.writeverf)
            }
            Op::Create { .. } => success(r, Opnum4::OPEN).map(|()| Ok(0))?,
            Op::Remove { .. } => success(r, Opnum4::REMOVE).map(|()| Ok(0))?,
        })
    }

    fn read_head(
        &mut self,
        r: &mut Reader<'_>,
        slot: u32,
        record: usize,
    ) -> Result<Option<usize>, DecodeError> {
        const RESULTS: u32 = 3;
        if self.start_of(r, slot, RESULTS)?.is_err() {
            return Ok(None);
        }
        success(r, Opnum4::PUTFH)?;
        success(r, Opnum4::READ)?;
        r.bool("READ4resok.eof")?;
        let data = r.length(record, "READ4resok.data")?;
        self.taken(slot, RESULTS);
        Ok(Some(data))
    }

    #[inline]
    fn ended(&mut self, slot: u32) {
        self.free.extend(self.held.get(slot as usize));
    }
}

/// The number of the next result.
#[inline]
fn expect(r: &mut Reader<'_>, number: Opnum4) -> Result<(), DecodeError> {
    match r.u32("nfs_resop4.resop")? {
        got if got == number.0 => Ok(()),
        got => Err(DecodeError::BadValue { what: "nfs_resop4.resop", got }),
    }
}

/// The number of the next result and its status, which is NFS4_OK if the compound's is.
#[inline]
fn success(r: &mut Reader<'_>, number: Opnum4) -> Result<(), DecodeError> {
    expect(r, number)?;
    match Nfsstat4::decode(r)? {
        status if status.is_ok() => Ok(()),
        status => Err(DecodeError::BadValue { what: "nfs_resop4.status", got: status.0 }),
    }
}

fn encoded(ops: &[ArgOp<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut w = Writer::new(&mut out);
    ops.iter().for_each(|op| op.encode(&mut w));
    out
}

fn putfh(handle: &[u8]) -> Vec<u8> {
    encoded(&[ArgOp::Putfh(PutfhArgs4 { object: Fh4(handle) })])
}

/// An OPEN for reading and writing that makes the file if it is not there.
pub fn open_args<'a>(clientid: u64, attrs: Fattr4<'a>, name: &'a [u8]) -> ArgOp<'a> {
    ArgOp::Open(OpenArgs4 {
        seqid: 0,
        share_access: share4::ACCESS_BOTH | share4::WANT_NO_DELEG,
        share_deny: share4::DENY_NONE,
        owner: StateOwner4 { clientid, owner: Opaque4(OPEN_OWNER) },
        openhow: Openflag4::Create(Createhow4::Unchecked(attrs)),
        claim: OpenClaim4::Null(Component4(name)),
    })
}

/// Attributes of a new file or directory, in bytes that `buf` keeps.
pub fn mode(mode: u32, buf: &mut Vec<u8>) -> Fattr4<'_> {
    buf.clear();
    Attrs4 { mode: Some(mode), ..Default::default() }.encode(&mut Writer::new(buf));
    // What was encoded just now can be decoded.
    wire::xdr::decode_all(buf).unwrap_or(Fattr4::NONE)
}

/// OPEN without its name, which comes last, and CLOSE of what it opened.
fn open(clientid: u64) -> (Vec<u8>, Vec<u8>) {
    let mut buf = Vec::new();
    let mut head = encoded(&[open_args(clientid, mode(0o644, &mut buf), b"")]);
    head.truncate(head.len().saturating_sub(4));
    let close = ArgOp::Close(CloseArgs4 { seqid: 0, open_stateid: Stateid4::CURRENT });
    (head, encoded(&[close]))
}
