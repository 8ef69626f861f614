//! NFS version 4 as a program on RPC connections: COMPOUND continues where it would have blocked,
//! and its operations are counted separately.

use std::ops::Range;
use std::sync::Arc;
use std::task::Poll;

use base::limits::{
    ACL_ENTRIES_MAX, IO_SIZE_MAX, NFS4_OPS_MAX, NFS4_READDIR_MAX, NFS4_REPLY_MAX, PATH_MAX,
    READ_PLUS_PIECES, REPLY_SMALL, XATTR_LIST_MAX, XATTR_VALUE_MAX,
};
use probe::op::{OpRecord, Protocol};
use vfs::status::Status;
use wire::nfs4::{ArgOp, Bitmap4, CompoundArgs, NFS_V4, NFS4_PROGRAM, Opnum4, attr4};
use wire::xdr::{Decode, Encode, Reader, Writer};

use super::compound::CompoundState;
use super::peer::Peer;
use super::{Nfs4, nfsstat4};
use crate::rpc::{Call, DispatchResult, Handled, OnFlushed, Procedure, Program, Resume};
use engine::transport::buffers::ReplyBuf;

/// NULL (RFC 8881 §16.1).
const NULL: u32 = 0;
/// COMPOUND (RFC 8881 §16.2).
const COMPOUND: u32 = 1;
/// The operation that NULL is counted as.
const NULL_OP: u8 = 1;

/// Bytes of a result without data: the attributes of a file with its names of owners, or the owner
/// of a lock that is in the way (1 024).
const RESULT_SMALL: usize = 2 << 10;
/// Bytes before a piece of READ_PLUS: what it is, where, how long, and padding.
const PIECE_HEAD: usize = 24;
/// Bytes of an access control list: each entry of a POSIX list is encoded as two at most, of three
/// numbers and a name.
const ACL_RESULT_MAX: usize = 2 * ACL_ENTRIES_MAX * 128;

/// The program.
pub(super) struct Compounds(pub(super) Arc<Nfs4>);

impl Program for Compounds {
    fn number(&self) -> u32 {
        NFS4_PROGRAM
    }

    fn version(&self) -> u32 {
        NFS_V4
    }

    fn protocol(&self) -> Protocol {
        Protocol::Nfs4
    }

    fn procedure(&self, number: u32) -> Option<Procedure> {
        (number <= COMPOUND).then_some(Procedure { number, non_idempotent: false })
    }

    /// From 4.1 on the slot keeps the reply; in 4.0 what changes names or attributes without a
    /// sequence of its owner would be done twice.
    fn is_non_idempotent(
        &self,
        procedure: Procedure,
        args: &Reader<'_>,
        facts: &mut OpRecord,
    ) -> bool {
        let changing = (procedure.number == COMPOUND).then(|| first_change(args.clone())).flatten();
        facts.op = changing.map_or(facts.op, |op| op.0 as u8);
        changing.is_some()
    }

    fn reply_max(&self, _: Procedure, args: &Reader<'_>) -> usize {
        results_max(args.clone())
    }

    fn handle(&self, procedure: Procedure, call: &mut Call<'_>) -> Handled {
        if procedure.number == NULL {
            call.facts.op = NULL_OP;
            return Ok(DispatchResult::Done);
        }
        let start = call.out.len();
        match self.0.begin(call.args.rest(), call.out)? {
            // It counts as nothing: no operation was done.
            None => {
                call.facts.protocol = 0;
                Ok(DispatchResult::Done)
            }
            Some(progress) => Ok(Compound::new(Arc::clone(&self.0), progress).run(call, start)),
        }
    }

    fn fail(&self, _: u32, status: Status, out: &mut ReplyBuf) -> u16 {
        let status = nfsstat4(status);
        let mut w = Writer::new(out.vec());
        status.encode(&mut w);
        // An empty tag, no results.
        w.u32(0);
        w.u32(0);
        status.0 as u16
    }
}

/// The first operation of a 4.0 compound that must not be done twice.
pub(super) fn first_change(mut r: Reader<'_>) -> Option<Opnum4> {
    let args = CompoundArgs::decode(&mut r).ok().filter(|args| args.minorversion == 0)?;
    let ops = (0..args.count.min(NFS4_OPS_MAX)).map_while(|_| ArgOp::decode(&mut r).ok());
    ops.map(|op| op.number()).find(|op| {
        matches!(
            *op,
            Opnum4::CREATE | Opnum4::LINK | Opnum4::REMOVE | Opnum4::RENAME | Opnum4::SETATTR
        )
    })
}

/// Most bytes of the results of a compound, by its operations.
fn results_max(mut r: Reader<'_>) -> usize {
    let Ok(args) = CompoundArgs::decode(&mut r) else { return REPLY_SMALL };
    let ops = (0..args.count.min(NFS4_OPS_MAX)).map_while(|_| ArgOp::decode(&mut r).ok());
    let all: usize = ops.map(|op| result_max(&op)).sum();
    all.saturating_add(REPLY_SMALL).min(NFS4_REPLY_MAX)
}

/// Most bytes of an operation's result; small ones have [`RESULT_SMALL`].
fn result_max(op: &ArgOp<'_>) -> usize {
    let has_acl = |wanted: &Bitmap4| if wanted.has(attr4::ACL) { ACL_RESULT_MAX } else { 0 };
    let more = match op {
        ArgOp::Read(args) => args.count.min(IO_SIZE_MAX) as usize,
        ArgOp::ReadPlus(args) => {
            args.count.min(IO_SIZE_MAX) as usize + READ_PLUS_PIECES as usize * PIECE_HEAD
        }
        ArgOp::Readdir(args) => args.maxcount.min(NFS4_READDIR_MAX) as usize,
        ArgOp::Getattr(args) => has_acl(&args.attr_request),
        ArgOp::Readlink(()) => PATH_MAX,
        ArgOp::Getxattr(_) => XATTR_VALUE_MAX,
        ArgOp::Listxattrs(args) => (args.maxcount as usize).min(2 * XATTR_LIST_MAX),
        _ => 0,
    };
    more + RESULT_SMALL
}

/// A compound in progress.
struct Compound {
    nfs: Arc<Nfs4>,
    progress: Box<CompoundState>,
    /// What is written of its results, and of which items of them is noted, while it is between
    /// threads.
    results: Vec<u8>,
    items: Vec<Range<usize>>,
}

impl Compound {
    fn new(nfs: Arc<Nfs4>, progress: Box<CompoundState>) -> Self {
        Self { nfs, progress, results: Vec::new(), items: Vec::new() }
    }

    /// Runs it as far as it goes; its results begin at `start`.
    fn run(mut self, call: &mut Call<'_>, start: usize) -> DispatchResult {
        let facts = OpRecord { protocol: Protocol::Nfs4 as u8, ..*call.facts };
        // Its operations are counted, not the call.
        call.facts.protocol = 0;
        let caller = call.caller;
        let address = (caller.address, caller.port());
        let (transport, connection, back) =
            (caller.transport(), caller.connection(), caller.back());
        let (cred, flavor, budgets) = (caller.claimed(), caller.flavor(), call.budgets);
        let peer = Peer { cred, address, transport, flavor, facts, connection, back, budgets };
        let (message, may_block) = (call.args.rest(), call.may_block);
        let progress = &mut *self.progress;
        match self.nfs.run(progress, peer, may_block, message, call.out, start) {
            Poll::Pending => {
                self.results = call.out.as_slice().get(start..).unwrap_or_default().to_vec();
                self.items = call.out.take_items(start);
                DispatchResult::WouldBlock(Some(Box::new(self)))
            }
            Poll::Ready(()) if self.progress.flush.is_empty() => {
                call.more.append(&mut self.progress.facts);
                self.progress.extent.take().map_or(DispatchResult::Done, DispatchResult::Extent)
            }
            Poll::Ready(()) => {
                DispatchResult::Durable(self.progress.flush.clone(), Some(Box::new(self)))
            }
        }
    }
}

impl Drop for Compound {
    /// One that does not come to its end, whatever the reason, leaves its slot to the next request.
    fn drop(&mut self) {
        self.nfs.give_slot_back(&mut self.progress, &[]);
    }
}

impl Resume for Compound {
    fn resume(mut self: Box<Self>, call: &mut Call<'_>) -> DispatchResult {
        let start = call.out.len();
        call.out.vec().append(&mut self.results);
        call.out.note_items(start, self.items.drain(..));
        self.run(call, start)
    }

    fn can_stop(&self) -> bool {
        !self.progress.has_effect
    }

    fn abandon(mut self: Box<Self>) {
        self.nfs.withdraw(&mut self.progress);
    }
}

impl OnFlushed for Compound {
    fn protocol(&self) -> Protocol {
        Protocol::Nfs4
    }

    fn flushed(
        mut self: Box<Self>,
        outcome: Result<(), Status>,
        results: &mut Vec<u8>,
        more: &mut Vec<OpRecord>,
    ) {
        self.nfs.flushed(&mut self.progress, outcome, results, 0);
        more.append(&mut self.progress.facts);
    }
}
