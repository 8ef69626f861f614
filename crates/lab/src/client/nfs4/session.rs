//! A client id, its session, and how they are given back (RFC 8881 §18.35 to §18.37, §18.50,
//! §18.51).

use super::Nfs4Client;
use super::compound::{self, Reply};
use super::dialect::File;
use crate::client::ClientError;
use base::clock::Deadline;
use base::limits::{
    LAB_COMPOUND_OPS, LAB_LEAVE_MAX, LAB_RETRY_PAUSE, LAB_SILENCE_MAX, LAB_SLOTS_MAX,
    NFS4_CACHED_REPLY_MAX, NFS4_CHANNEL_MIN, RPC_RECORD_MAX,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use wire::nfs4::{
    ArgOp, CallbackSec4, ChannelAttrs4, ClientOwner4, ClientidArgs4, CloseArgs4,
    CreateSessionArgs4, DestroySessionArgs4, ExchangeIdArgs4, Fh4, NFS4_CALLBACK, Nfsstat4,
    Opaque4, PutfhArgs4, ReclaimCompleteArgs4, Res4, ResOp, SequenceArgs4, Sessionid4,
    StateProtectA4,
};
use wire::xdr::Seq;

/// Makes each connection of this process a client of its own.
static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

/// What the server has granted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Session {
    /// `clientid4`.
    pub clientid: u64,
    /// `sessionid4`.
    pub id: Sessionid4,
    /// Requests at once.
    pub slots: u32,
    /// Operations of a compound.
    pub operations: u32,
}

impl Nfs4Client {
    /// Sends EXCHANGE_ID, creates a session of at most `slots`, and sends RECLAIM_COMPLETE.
    pub(super) fn begin(&mut self, slots: u32) -> Result<(), ClientError> {
        let sequence = self.exchange_id()?;
        self.create_session(sequence, slots.clamp(1, LAB_SLOTS_MAX))?;
        let Session { id, slots, clientid, .. } = self.session;
        self.pipe.dialect.begin_session(id, slots, clientid);
        let complete = ArgOp::ReclaimComplete(ReclaimCompleteArgs4 { one_fs: false });
        self.patient(&[complete])?.done("RECLAIM_COMPLETE").map(|_| ())
    }

    fn exchange_id(&mut self) -> Result<u32, ClientError> {
        let number = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
        let host = crate::proc::host_name();
        let owner = format!("plimsoll-lab {host} {} {number}", std::process::id());
        let verifier = base::clock::wall_ns().to_be_bytes();
        let reply = self.outside(&[ArgOp::ExchangeId(ExchangeIdArgs4 {
            clientowner: ClientOwner4 { verifier, ownerid: Opaque4(owner.as_bytes()) },
            flags: 0,
            state_protect: StateProtectA4::None(()),
            client_impl_id: None,
        })])?;
        match reply.done("EXCHANGE_ID")?.first() {
            Some(ResOp::ExchangeId(Res4::Ok(ok))) => {
                self.session.clientid = ok.clientid;
                Ok(ok.sequenceid)
            }
            _ => Err(ClientError::Protocol("EXCHANGE_ID without a result".into())),
        }
    }

    fn create_session(&mut self, sequence: u32, slots: u32) -> Result<(), ClientError> {
        let fore_chan_attrs = ChannelAttrs4 {
            headerpadsize: 0,
            maxrequestsize: RPC_RECORD_MAX as u32,
            maxresponsesize: RPC_RECORD_MAX as u32,
            maxresponsesize_cached: NFS4_CACHED_REPLY_MAX,
            maxoperations: LAB_COMPOUND_OPS,
            maxrequests: slots,
            rdma_ird: None,
        };
        // No connection serves the back channel: nothing is delegated to this client.
        let back_chan_attrs = ChannelAttrs4 {
            maxrequestsize: 8 * NFS4_CHANNEL_MIN,
            maxresponsesize: 8 * NFS4_CHANNEL_MIN,
            maxresponsesize_cached: 0,
            maxoperations: 2,
            maxrequests: 1,
            ..fore_chan_attrs
        };
        let reply = self.outside(&[ArgOp::CreateSession(CreateSessionArgs4 {
            clientid: self.session.clientid,
            sequence,
            flags: 0,
            fore_chan_attrs,
            back_chan_attrs,
            cb_program: NFS4_CALLBACK,
            sec_parms: Seq(vec![CallbackSec4::None(())]),
        })])?;
        match reply.done("CREATE_SESSION")?.first() {
            Some(ResOp::CreateSession(Res4::Ok(ok))) => {
                let fore = ok.fore_chan_attrs;
                if fore.maxrequests == 0 {
                    return Err(ClientError::Protocol("a session without slots".into()));
                }
                self.session.id = ok.sessionid;
                self.session.slots = fore.maxrequests.min(slots);
                self.session.operations = fore.maxoperations.min(LAB_COMPOUND_OPS);
                Ok(())
            }
            _ => Err(ClientError::Protocol("CREATE_SESSION without a result".into())),
        }
    }

    /// A compound outside the session, repeated while the server returns DELAY or GRACE.
    fn outside(&mut self, ops: &[ArgOp<'_>]) -> Result<Reply, ClientError> {
        retry(|| self.send(ops, LAB_SILENCE_MAX))
    }

    /// A compound in the session when nothing else is in flight, repeated while the server returns
    /// DELAY or GRACE. Its other failures are in the reply.
    pub(super) fn patient(&mut self, ops: &[ArgOp<'_>]) -> Result<Reply, ClientError> {
        retry(|| self.within(ops, LAB_SILENCE_MAX))
    }

    fn within(&mut self, ops: &[ArgOp<'_>], timeout: Duration) -> Result<Reply, ClientError> {
        let sequence = ArgOp::Sequence(SequenceArgs4 {
            sessionid: self.session.id,
            sequenceid: self.pipe.dialect.next_single(),
            slotid: 0,
            highest_slotid: self.session.slots.saturating_sub(1),
            cachethis: false,
        });
        let all: Vec<_> = std::iter::once(sequence).chain(ops.iter().cloned()).collect();
        let reply = self.send(&all, timeout)?;
        if matches!(reply.results()?.first(), Some(ResOp::Sequence(Res4::Ok(_)))) {
            self.pipe.dialect.single_taken();
        }
        Ok(reply)
    }

    fn send(&mut self, ops: &[ArgOp<'_>], timeout: Duration) -> Result<Reply, ClientError> {
        let mut call = Vec::new();
        let mut w = wire::xdr::Writer::new(&mut call);
        self.pipe.dialect.header(&mut w, 0);
        compound::write(&mut w, ops);
        let record = self.pipe.exchange(timeout, |w, xid| {
            let start = w.len();
            w.raw(&call);
            w.patch_u32(start + crate::client::pipe::header::XID_AT, xid);
        })?;
        let reply = Reply::new(record)?;
        self.pipe.dialect.answered += u64::from(reply.count);
        for op in ops.iter().take(reply.count as usize) {
            *self.by_name.entry(op.number().name()).or_default() += 1;
        }
        Ok(reply)
    }

    /// Renews the lease.
    pub(super) fn renew_lease(&mut self) -> Result<(), ClientError> {
        self.patient(&[])?.done("SEQUENCE").map(|_| ())
    }

    /// Closes all files that are open.
    pub(super) fn close_files(&mut self, timeout: Duration) -> Result<(), ClientError> {
        let files = std::mem::take(&mut self.pipe.dialect.files);
        let at_once = (self.session.operations.saturating_sub(1) / 2).max(1) as usize;
        for some in files.chunks(at_once) {
            let ops: Vec<_> = some.iter().flat_map(close).collect();
            self.within(&ops, timeout)?.done("CLOSE")?;
        }
        Ok(())
    }

    /// Gives everything back, so that the server need not remember a client that will never
    /// return. What fails is left to the lease.
    pub(super) fn leave(&mut self) -> Result<(), ClientError> {
        self.close_files(LAB_LEAVE_MAX)?;
        // Once, also if it fails.
        self.session.slots = 0;
        let sessionid = self.session.id;
        let destroy = ArgOp::DestroySession(DestroySessionArgs4 { sessionid });
        self.send(&[destroy], LAB_LEAVE_MAX)?.done("DESTROY_SESSION")?;
        let clientid = self.session.clientid;
        let destroy = ArgOp::DestroyClientid(ClientidArgs4 { clientid });
        self.send(&[destroy], LAB_LEAVE_MAX)?.done("DESTROY_CLIENTID").map(|_| ())
    }
}

impl Drop for Nfs4Client {
    fn drop(&mut self) {
        if self.session.slots > 0 && !self.pipe.outbox.is_busy() {
            let _ = self.leave();
        }
    }
}

/// CLOSE of a file, which has to be the current one.
fn close(file: &File) -> [ArgOp<'_>; 2] {
    let put = ArgOp::Putfh(PutfhArgs4 { object: Fh4(&file.handle) });
    [put, ArgOp::Close(CloseArgs4 { seqid: 0, open_stateid: file.stateid })]
}

/// Repeats what was answered NFS4ERR_DELAY or NFS4ERR_GRACE, for as long as silence is borne.
fn retry(mut attempt: impl FnMut() -> Result<Reply, ClientError>) -> Result<Reply, ClientError> {
    let deadline = Deadline::after(LAB_SILENCE_MAX);
    loop {
        let reply = attempt()?;
        let later = matches!(reply.status, Nfsstat4::DELAY | Nfsstat4::GRACE);
        if !later || deadline.passed() {
            return Ok(reply);
        }
        std::thread::sleep(LAB_RETRY_PAUSE);
    }
}
