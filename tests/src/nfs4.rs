//! A small NFSv4 client on the shared codec: one connection, one session with one slot, whole
//! replies; of 4.2 by default, without a session for 4.0. It sends what the caller requests and
//! retains no state of files: handles and stateids are the caller's.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use wire::nfs4::{
    ArgOp, Attrs4, Bitmap4, CallbackSec4, ChannelAttrs4, ClientOwner4, Component4, CompoundArgs,
    CompoundRes, CreateSessionArgs4, ExchangeIdArgs4, Fattr4, Fh4, GetattrArgs4, LookupArgs4,
    Nfsstat4, Opaque4, PutfhArgs4, ReclaimCompleteArgs4, Res4, ResOp, SequenceArgs4, Sessionid4,
    StateProtectA4, Tag4,
};
use wire::xdr::{Decode, Encode, Reader, Seq, Writer};

use crate::nfs3;

pub mod back;
pub mod files;
pub mod locks;
pub mod pipe;

/// The program, its version, and its two procedures.
const PROGRAM: (u32, u32) = (100_003, 4);
const COMPOUND: u32 = 1;
/// What we ask of the fore channel: a WRITE of 1 MiB with what is around it.
const RECORD_MAX: u32 = (1 << 20) + (64 << 10);
/// Operations of a compound at most.
const OPS_MAX: u32 = 64;

/// A file handle.
pub type Handle = Vec<u8>;

/// Why a compound brought no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// An operation was answered with this status.
    Status(Nfsstat4),
    /// No answer: the server may or may not have done it.
    Broken(String),
}

impl From<nfs3::Failure> for Failure {
    fn from(failure: nfs3::Failure) -> Self {
        match failure {
            nfs3::Failure::Broken(what) => Self::Broken(what),
            nfs3::Failure::Status(status) => Self::Broken(status.to_string()),
        }
    }
}

/// Outcome of a call.
pub type Outcome<T> = Result<T, Failure>;

fn broken(what: impl ToString) -> Failure {
    Failure::Broken(what.to_string())
}

/// What a compound was answered.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Status of the last operation that was done.
    pub status: Nfsstat4,
    bytes: Vec<u8>,
}

impl Reply {
    fn new(bytes: Vec<u8>) -> Outcome<Self> {
        let status = CompoundRes::decode(&mut Reader::new(&bytes)).map_err(broken)?.status;
        let reply = Self { status, bytes };
        reply.results()?;
        Ok(reply)
    }

    /// The results of all operations, SEQUENCE first.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn results(&self) -> Outcome<Vec<ResOp<'_>>> {
        let mut r = Reader::new(&self.bytes);
        let count = CompoundRes::decode(&mut r).map_err(broken)?.count;
        let all: Result<_, _> = (0..count).map(|_| ResOp::decode(&mut r)).collect();
        r.finish().map_err(broken)?;
        all.map_err(broken)
    }

    /// The last result, which must be a success.
    ///
    /// # Errors
    /// The status of the operation that failed.
    pub fn last(&self) -> Outcome<ResOp<'_>> {
        if self.status != Nfsstat4::OK {
            return Err(Failure::Status(self.status));
        }
        self.results()?.pop().ok_or_else(|| broken("no results"))
    }
}

/// A connection with its session.
pub struct Client {
    rpc: nfs3::Client,
    minor: u32,
    /// `clientid4`.
    pub id: u64,
    /// The session.
    pub session: Sessionid4,
    sequence: u32,
    /// `so_major_id` and `eir_server_scope`.
    pub server: [Vec<u8>; 2],
    /// Operations that were answered, by name.
    pub answered: BTreeMap<String, u64>,
}

impl Client {
    /// Connects and makes a session of 4.2 under this name; calls carry AUTH_SYS with `uid` and
    /// `gid`. The same `verifier` means the same incarnation of the client (RFC 8881 §2.4).
    ///
    /// # Errors
    /// No connection, or what the server refuses.
    pub fn connect(
        server: SocketAddr,
        (uid, gid): (u32, u32),
        name: &str,
        verifier: u64,
    ) -> Outcome<Self> {
        let rpc = nfs3::Client::connect(server, uid, gid).map_err(broken)?;
        Self::over(rpc, 2, name, verifier)
    }

    /// As [`Client::connect`], over an existing connection and in this minor version. One of 4.0
    /// does not send SETCLIENTID: operations without state need no client id.
    ///
    /// # Errors
    /// What the server refuses.
    pub fn over(rpc: nfs3::Client, minor: u32, name: &str, verifier: u64) -> Outcome<Self> {
        Self::begin(rpc, minor, name, verifier, 0)
    }

    fn begin(
        rpc: nfs3::Client,
        minor: u32,
        name: &str,
        verifier: u64,
        flags: u32,
    ) -> Outcome<Self> {
        let (session, answered) = ([0; 16], BTreeMap::new());
        let server = Default::default();
        let mut client = Self { rpc, minor, id: 0, session, sequence: 0, server, answered };
        if minor == 0 {
            return Ok(client);
        }
        let owner =
            ClientOwner4 { verifier: verifier.to_be_bytes(), ownerid: Opaque4(name.as_bytes()) };
        let exchange = ArgOp::ExchangeId(ExchangeIdArgs4 {
            clientowner: owner,
            flags: 0,
            state_protect: StateProtectA4::None(()),
            client_impl_id: None,
        });
        let reply = client.send(&[exchange])?;
        let sequence = match reply.last()? {
            ResOp::ExchangeId(Res4::Ok(ok)) => {
                client.id = ok.clientid;
                let owner = ok.server_owner.major_id.0.to_vec();
                client.server = [owner, ok.server_scope.0.to_vec()];
                ok.sequenceid
            }
            other => return Err(broken(format!("{other:?}"))),
        };
        client.create_session(sequence, flags)?;
        Ok(client)
    }

    fn create_session(&mut self, sequence: u32, flags: u32) -> Outcome<()> {
        let channel = ChannelAttrs4 {
            headerpadsize: 0,
            maxrequestsize: RECORD_MAX,
            maxresponsesize: RECORD_MAX,
            maxresponsesize_cached: 4096,
            maxoperations: OPS_MAX,
            maxrequests: 1,
            rdma_ird: None,
        };
        let reply = self.send(&[ArgOp::CreateSession(CreateSessionArgs4 {
            clientid: self.id,
            sequence,
            flags,
            fore_chan_attrs: channel,
            back_chan_attrs: channel,
            cb_program: 0x4000_0000,
            // Callbacks need no credential.
            sec_parms: Seq(if flags == 0 { Vec::new() } else { vec![CallbackSec4::None(())] }),
        })])?;
        match reply.last()? {
            ResOp::CreateSession(Res4::Ok(ok)) => self.session = ok.sessionid,
            other => return Err(broken(format!("{other:?}"))),
        }
        Ok(())
    }

    /// RECLAIM_COMPLETE: nothing (more) is reclaimed.
    ///
    /// # Errors
    /// As every call.
    pub fn reclaim_complete(&mut self) -> Outcome<()> {
        let done = ArgOp::ReclaimComplete(ReclaimCompleteArgs4 { one_fs: false });
        self.compound(&[done])?.last().map(|_| ())
    }

    /// Does a compound; from 4.1 on in the session, SEQUENCE put before it.
    ///
    /// # Errors
    /// The connection is broken, or the answer cannot be read. An operation's failure is in the
    /// reply.
    pub fn compound(&mut self, ops: &[ArgOp<'_>]) -> Outcome<Reply> {
        if self.minor == 0 {
            return self.send(ops);
        }
        let mut all = vec![ArgOp::Sequence(SequenceArgs4 {
            sessionid: self.session,
            sequenceid: self.sequence + 1,
            slotid: 0,
            highest_slotid: 0,
            cachethis: false,
        })];
        all.extend_from_slice(ops);
        let reply = self.send(&all)?;
        if matches!(reply.results()?.first(), Some(ResOp::Sequence(Res4::Ok(_)))) {
            self.sequence += 1;
        }
        Ok(reply)
    }

    /// As [`Client::compound`], with PUTFH of `file` first; gives the reply if all went well.
    ///
    /// # Errors
    /// As every call, and the status of the operation that failed.
    pub fn at(&mut self, file: &[u8], ops: &[ArgOp<'_>]) -> Outcome<Reply> {
        let mut all = vec![putfh(file)];
        all.extend_from_slice(ops);
        let reply = self.compound(&all)?;
        reply.last()?;
        Ok(reply)
    }

    fn send(&mut self, ops: &[ArgOp<'_>]) -> Outcome<Reply> {
        let message = Message { minor: self.minor, ops };
        let reply = Reply::new(self.rpc.call(PROGRAM, COMPOUND, &message)?)?;
        for result in reply.results()? {
            *self.answered.entry(result.number().to_string()).or_default() += 1;
        }
        Ok(reply)
    }

    /// The handle at the end of a path from the root of all exports.
    ///
    /// # Errors
    /// As every call.
    pub fn walk(&mut self, path: &str) -> Outcome<Handle> {
        let mut ops = vec![ArgOp::Putrootfh(())];
        ops.extend(path.split('/').filter(|part| !part.is_empty()).map(lookup));
        ops.push(ArgOp::Getfh(()));
        handle(&self.compound(&ops)?)
    }

    /// LOOKUP in a directory.
    ///
    /// # Errors
    /// As every call.
    pub fn lookup(&mut self, dir: &[u8], name: &str) -> Outcome<Handle> {
        handle(&self.at(dir, &[lookup(name), ArgOp::Getfh(())])?)
    }

    /// GETATTR: what `read` makes of these attributes.
    ///
    /// # Errors
    /// As every call.
    pub fn getattr<T>(
        &mut self,
        file: &[u8],
        numbers: &[u32],
        read: impl FnOnce(&Attrs4<'_>) -> T,
    ) -> Outcome<T> {
        let attr_request = Bitmap4::of(numbers);
        let reply = self.at(file, &[ArgOp::Getattr(GetattrArgs4 { attr_request })])?;
        match reply.last()? {
            ResOp::Getattr(Res4::Ok(ok)) => Ok(read(&ok.obj_attributes.values().map_err(broken)?)),
            other => Err(broken(format!("{other:?}"))),
        }
    }
}

/// A compound as it is sent.
struct Message<'a> {
    minor: u32,
    ops: &'a [ArgOp<'a>],
}

impl Encode for Message<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        let count = self.ops.len() as u32;
        CompoundArgs { tag: Tag4(b""), minorversion: self.minor, count }.encode(w);
        self.ops.iter().for_each(|op| op.encode(w));
    }
}

/// PUTFH.
pub fn putfh(file: &[u8]) -> ArgOp<'_> {
    ArgOp::Putfh(PutfhArgs4 { object: Fh4(file) })
}

/// LOOKUP.
pub fn lookup(name: &str) -> ArgOp<'_> {
    ArgOp::Lookup(LookupArgs4 { objname: Component4(name.as_bytes()) })
}

/// The handle that a compound ended with.
///
/// # Errors
/// The compound failed, or did not end with GETFH.
pub fn handle(reply: &Reply) -> Outcome<Handle> {
    match reply.last()? {
        ResOp::Getfh(Res4::Ok(ok)) => Ok(ok.object.0.to_vec()),
        other => Err(broken(format!("{other:?}"))),
    }
}

/// Attributes as they are sent, in bytes that `buf` keeps.
///
/// # Panics
/// Never: what was encoded is decoded.
pub fn fattr<'b>(attrs: &Attrs4<'_>, buf: &'b mut Vec<u8>) -> Fattr4<'b> {
    attrs.encode(&mut Writer::new(buf));
    wire::xdr::decode_all(buf).expect("attributes that were encoded just now")
}
