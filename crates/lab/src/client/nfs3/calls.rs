//! Operations become calls. A header is encoded once and copied; content of writes is made in
//! pieces that stay in the cache until they are sent.

use super::super::{FileSet, Op};
use super::Files;
use crate::pattern::Content;
use std::collections::VecDeque;
use wire::nfs3::{
    CommitArgs, CreateArgs, CreateHow, DiropArgs, Fh3, Filename3, GetattrArgs, NFS_PROGRAM, NFS_V3,
    Proc, ReadArgs, RemoveArgs, Sattr3, StableHow, WriteArgs,
};
use wire::rpc::{Auth, AuthSys, CallHeader, Gids, begin_record, end_record_with_tail};
use wire::xdr::{Encode, Writer, padding};

/// Bytes that are gathered for one send: large enough to share its cost among many calls, small
/// enough to be still in the cache when the kernel copies them.
const SEND_BYTES: usize = 128 << 10;
/// Where the transaction number stands in an encoded header, record mark included.
const XID_AT: usize = 4;
/// Where the procedure stands in it (RFC 5531 §9: xid, call, version, program, version, procedure).
const PROC_AT: usize = 24;
/// Bits of a transaction number that are the slot; `LAB_SLOTS_MAX` fits.
const SLOT_BITS: u32 = 10;

/// A call under way.
#[derive(Debug, Clone, Copy)]
pub struct Pending {
    pub xid: u32,
    pub op: Op,
}

/// Content of a write of which only the header is in the buffer yet.
struct Payload {
    key: u64,
    offset: u64,
    left: usize,
    pad: usize,
}

/// Calls waiting to be sent and calls waiting for their replies.
pub struct Calls {
    content: Content,
    header: Vec<u8>,
    out: Vec<u8>,
    sent: usize,
    queue: VecDeque<(u32, Op)>,
    payload: Option<Payload>,
    pending: Vec<Option<Pending>>,
    serial: u32,
    /// NFS calls made since the connection was opened.
    pub made: u64,
}

impl Calls {
    pub fn new(content: Content) -> Self {
        Self {
            content,
            header: header(NFS_PROGRAM, NFS_V3),
            out: Vec::with_capacity(2 * SEND_BYTES),
            sent: 0,
            queue: VecDeque::new(),
            payload: None,
            pending: Vec::new(),
            // Not the same numbers as the last connection from this address: a server may
            // remember those and replay.
            serial: (base::clock::wall_ns() >> 10) as u32,
            made: 0,
        }
    }

    #[inline]
    pub fn queue(&mut self, slot: u32, op: Op) {
        self.queue.push_back((slot, op));
    }

    /// What is to be sent next.
    pub fn bytes(&self) -> &[u8] {
        self.out.get(self.sent..).unwrap_or_default()
    }

    pub fn sent(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.sent >= self.out.len() {
            self.out.clear();
            self.sent = 0;
        }
    }

    /// The call that `xid` answers, if it is under way.
    #[inline]
    pub fn answered(&self, xid: u32) -> Option<(u32, Op)> {
        let slot = xid & ((1 << SLOT_BITS) - 1);
        let pending = self.pending.get(slot as usize).copied().flatten()?;
        (pending.xid == xid).then_some((slot, pending.op))
    }

    /// The slot's call has ended.
    #[inline]
    pub fn end(&mut self, slot: u32) {
        if let Some(pending) = self.pending.get_mut(slot as usize) {
            *pending = None;
        }
    }

    /// Fills the buffer from what is queued. False when there is nothing to send.
    pub fn encode(&mut self, files: &mut Files) -> bool {
        while self.out.len() < SEND_BYTES {
            if let Some(mut payload) = self.payload.take() {
                self.continue_payload(&mut payload);
                if payload.left > 0 {
                    self.payload = Some(payload);
                }
                continue;
            }
            match self.queue.pop_front() {
                Some((slot, op)) => self.encode_call(slot, op, files),
                None => break,
            }
        }
        !self.bytes().is_empty()
    }

    fn continue_payload(&mut self, payload: &mut Payload) {
        let start = self.out.len();
        let part = payload.left.min(SEND_BYTES.saturating_sub(start).max(1));
        self.out.resize(start + part, 0);
        if let Some(space) = self.out.get_mut(start..) {
            self.content.fill(payload.key, payload.offset, space);
        }
        payload.offset += part as u64;
        payload.left -= part;
        if payload.left == 0 {
            self.out.resize(start + part + payload.pad, 0);
        }
    }

    /// A transaction number for `slot`, remembered with its operation.
    fn xid(&mut self, slot: u32, op: Op) -> u32 {
        self.serial = self.serial.wrapping_add(1);
        self.made += 1;
        let xid = self.serial << SLOT_BITS | slot;
        if self.pending.len() <= slot as usize {
            self.pending.resize(slot as usize + 1, None);
        }
        self.pending[slot as usize] = Some(Pending { xid, op });
        xid
    }

    #[inline]
    fn encode_call(&mut self, slot: u32, op: Op, files: &Files) {
        let xid = self.xid(slot, op);
        let handle = |n: u32| Fh3(files.handles.get(n as usize).map_or(&[][..], |h| h));
        let mut w = Writer::new(&mut self.out);
        let mark = begin_record(&mut w);
        let start = mark.start();
        w.raw(self.header.get(4..).unwrap_or_default());
        w.patch_u32(start + XID_AT, xid);
        let mut tail = 0;
        let procedure = match op {
            Op::Null => Proc::NULL,
            Op::Getattr { file } => {
                GetattrArgs { object: handle(file) }.encode(&mut w);
                Proc::GETATTR
            }
            Op::Read { file, offset, len } => {
                ReadArgs { file: handle(file), offset, count: len }.encode(&mut w);
                Proc::READ
            }
            Op::Write { file, offset, len, stable } => {
                let stable = if stable { StableHow::FILE_SYNC } else { StableHow::UNSTABLE };
                WriteArgs { file: handle(file), offset, count: len, stable, data: &[] }
                    .encode(&mut w);
                let at = w.len() - 4;
                w.patch_u32(at, len);
                let (key, left, pad) = (files.key(file), len as usize, padding(len as usize));
                self.payload = Some(Payload { key, offset, left, pad });
                tail = left + pad;
                Proc::WRITE
            }
            Op::Commit { file } => {
                CommitArgs { file: handle(file), offset: 0, count: 0 }.encode(&mut w);
                Proc::COMMIT
            }
            Op::Create { name } => {
                let name = FileSet::made_name(name);
                let how = CreateHow::Unchecked(Sattr3 { mode: Some(0o644), ..Default::default() });
                CreateArgs { where_: entry(&files.dir, &name), how }.encode(&mut w);
                Proc::CREATE
            }
            Op::Remove { name } => {
                let name = FileSet::made_name(name);
                RemoveArgs { object: entry(&files.dir, &name) }.encode(&mut w);
                Proc::REMOVE
            }
        };
        w.patch_u32(start + PROC_AT, procedure.0);
        end_record_with_tail(&mut w, mark, tail);
    }

    /// Encodes one call outside the slots, for preparation.
    pub fn single(&mut self, procedure: Proc, args: &dyn Encode) -> (u32, &[u8]) {
        self.serial = self.serial.wrapping_add(1);
        self.made += 1;
        let xid = self.serial << SLOT_BITS;
        self.out.clear();
        self.sent = 0;
        single(&mut self.out, &self.header, xid, procedure.0, args);
        (xid, &self.out)
    }

    /// The buffer that [`Calls::single`] filled has been sent.
    pub fn single_sent(&mut self) {
        self.out.clear();
    }
}

/// A name in a directory.
pub fn entry<'a>(dir: &'a [u8], name: &'a str) -> DiropArgs<'a> {
    DiropArgs { dir: Fh3(dir), name: Filename3(name.as_bytes()) }
}

/// An encoded call header with room for the record mark, AUTH_SYS as this process (appendix A).
pub fn header(program: u32, version: u32) -> Vec<u8> {
    // SAFETY: these calls only return numbers.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    let machine = crate::proc::host_name();
    let gids = Gids::new(&groups());
    let cred = Auth::Sys(AuthSys { stamp: 0, machine: machine.as_bytes(), uid, gid, gids });
    let call = CallHeader { xid: 0, prog: program, vers: version, proc: 0, cred, verf: Auth::None };
    let mut out = vec![0; 4];
    call.encode(&mut Writer::new(&mut out));
    out
}

/// Appends one call, record mark included.
pub fn single(out: &mut Vec<u8>, header: &[u8], xid: u32, procedure: u32, args: &dyn Encode) {
    let mut w = Writer::new(out);
    let mark = begin_record(&mut w);
    let start = mark.start();
    w.raw(header.get(4..).unwrap_or_default());
    w.patch_u32(start + XID_AT, xid);
    w.patch_u32(start + PROC_AT, procedure);
    args.encode(&mut w);
    end_record_with_tail(&mut w, mark, 0);
}

fn groups() -> Vec<u32> {
    let mut list = [0; 64];
    // SAFETY: `list` has 64 entries; with more groups the call fails and none are sent.
    let n = unsafe { libc::getgroups(list.len() as i32, list.as_mut_ptr()) };
    list.get(..usize::try_from(n).unwrap_or(0)).unwrap_or_default().to_vec()
}
