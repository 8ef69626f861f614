//! A client that does not wait for one call before it sends the next: batches of compounds, of 4.0
//! or in the slots of a session, and of NFSv3 calls.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};

use wire::nfs4::{
    ArgOp, CbClient4, ChannelAttrs4, ClientOwner4, Clientaddr4, ClientidArgs4, CreateSessionArgs4,
    DestroySessionArgs4, ExchangeIdArgs4, NfsClientId4, Opaque4, ReclaimCompleteArgs4, Res4, ResOp,
    SequenceArgs4, Sessionid4, SetclientidArgs4, SetclientidConfirmArgs4, SetclientidRes4,
    StateProtectA4, Utf8str,
};
use wire::rpc::{Accepted, ReplyBody, ReplyHeader};
use wire::xdr::{Decode, Reader, Seq};

use super::{COMPOUND, Failure, Message, OPS_MAX, Outcome, PROGRAM, RECORD_MAX, Reply, broken};
use crate::nfs3;
use crate::tcp::connect_from;

/// Most calls in flight at once.
pub const DEPTH: usize = 32;

/// Sends records at once and gives their answers, in the order of the calls.
///
/// # Errors
/// The connection is broken, or a call did not succeed as RPC.
pub fn exchange(rpc: &mut nfs3::Client, records: &[Vec<u8>]) -> io::Result<Vec<Vec<u8>>> {
    rpc.send(&records.concat())?;
    let xid = |record: &Vec<u8>| record.get(4..8).map(<[u8]>::to_vec).unwrap_or_default();
    let mut answers = HashMap::new();
    for _ in records {
        let answer = rpc.receive()?;
        let mut r = Reader::new(&answer);
        let header = ReplyHeader::decode(&mut r).map_err(io::Error::other)?;
        let ReplyBody::Accepted { stat: Accepted::Success, .. } = header.body else {
            return Err(io::Error::other(format!("{header:?}")));
        };
        answers.insert(header.xid.to_be_bytes().to_vec(), r.rest().to_vec());
    }
    let all = records.iter().map(|record| answers.remove(&xid(record)));
    all.map(|answer| answer.ok_or_else(|| io::Error::other("a call has no answer"))).collect()
}

fn exchange_id(verifier: [u8; 8], name: &[u8]) -> ArgOp<'_> {
    ArgOp::ExchangeId(ExchangeIdArgs4 {
        clientowner: ClientOwner4 { verifier, ownerid: Opaque4(name) },
        flags: 0,
        state_protect: StateProtectA4::None(()),
        client_impl_id: None,
    })
}

/// EXCHANGE_ID for each of these names at once (4.1), whatever is answered.
///
/// # Errors
/// The connection is broken.
pub fn exchange_ids(rpc: &mut nfs3::Client, names: &[String]) -> io::Result<()> {
    let mut record = |name: &String| {
        let ops = &[exchange_id([0; 8], name.as_bytes())];
        rpc.record(PROGRAM, COMPOUND, &Message { minor: 1, ops })
    };
    let records: Vec<_> = names.iter().map(&mut record).collect();
    exchange(rpc, &records).map(|_| ())
}

/// A client on a connection of its own.
pub struct Pipe {
    rpc: nfs3::Client,
    minor: u32,
    /// `clientid4`.
    pub id: u64,
    session: Sessionid4,
    slots: [u32; DEPTH],
    /// Operations that were answered.
    pub done: u64,
}

impl Pipe {
    /// Connects as root and makes itself known, from 4.1 on with a session; nothing is reclaimed.
    ///
    /// # Errors
    /// No connection, or what the server refuses.
    pub fn connect(server: SocketAddr, minor: u32, name: &str, verifier: u64) -> Outcome<Self> {
        let rpc = nfs3::Client::connect(server, 0, 0).map_err(broken)?;
        Self::over(rpc, minor, name, verifier)
    }

    /// As [`Pipe::connect`], from an address of this machine.
    ///
    /// # Errors
    /// As [`Pipe::connect`].
    pub fn connect_from(
        from: IpAddr,
        server: SocketAddr,
        minor: u32,
        name: &str,
        verifier: u64,
    ) -> Outcome<Self> {
        let rpc = connect_from(from, server).and_then(|s| nfs3::Client::over(s, 0, 0));
        Self::over(rpc.map_err(broken)?, minor, name, verifier)
    }

    fn over(rpc: nfs3::Client, minor: u32, name: &str, verifier: u64) -> Outcome<Self> {
        let (slots, session) = ([0; DEPTH], [0; 16]);
        let mut pipe = Self { rpc, minor, id: 0, session, slots, done: 0 };
        let (verifier, name) = (verifier.to_be_bytes(), name.as_bytes());
        if minor == 0 {
            pipe.set_client(verifier, name)?;
            return Ok(pipe);
        }
        let sequence = match pipe.plain(&[exchange_id(verifier, name)])?.last()? {
            ResOp::ExchangeId(Res4::Ok(ok)) => {
                pipe.id = ok.clientid;
                ok.sequenceid
            }
            other => return Err(broken(format!("{other:?}"))),
        };
        pipe.create_session(sequence)?;
        let done = ArgOp::ReclaimComplete(ReclaimCompleteArgs4 { one_fs: false });
        pipe.one(&[done])?.last()?;
        Ok(pipe)
    }

    fn set_client(&mut self, verifier: [u8; 8], name: &[u8]) -> Outcome<()> {
        let location = Clientaddr4 { netid: Utf8str(b"tcp"), addr: Utf8str(b"") };
        let reply = self.plain(&[ArgOp::Setclientid(SetclientidArgs4 {
            client: NfsClientId4 { verifier, id: Opaque4(name) },
            callback: CbClient4 { program: 0, location },
            callback_ident: 0,
        })])?;
        let ResOp::Setclientid(SetclientidRes4::Ok(ok)) = reply.last()? else {
            return Err(broken("no client id"));
        };
        self.id = ok.clientid;
        let args = SetclientidConfirmArgs4 { clientid: ok.clientid, confirm: ok.confirm };
        self.plain(&[ArgOp::SetclientidConfirm(args)])?.last().map(|_| ())
    }

    fn create_session(&mut self, sequence: u32) -> Outcome<()> {
        let channel = ChannelAttrs4 {
            headerpadsize: 0,
            maxrequestsize: RECORD_MAX,
            maxresponsesize: RECORD_MAX,
            maxresponsesize_cached: 4096,
            maxoperations: OPS_MAX,
            maxrequests: DEPTH as u32,
            rdma_ird: None,
        };
        let reply = self.plain(&[ArgOp::CreateSession(CreateSessionArgs4 {
            clientid: self.id,
            sequence,
            flags: 0,
            fore_chan_attrs: channel,
            back_chan_attrs: channel,
            cb_program: 0x4000_0000,
            sec_parms: Seq(Vec::new()),
        })])?;
        match reply.last()? {
            ResOp::CreateSession(Res4::Ok(ok)) => self.session = ok.sessionid,
            other => return Err(broken(format!("{other:?}"))),
        }
        Ok(())
    }

    fn plain(&mut self, ops: &[ArgOp<'_>]) -> Outcome<Reply> {
        let record = self.rpc.record(PROGRAM, COMPOUND, &Message { minor: self.minor, ops });
        let answer = exchange(&mut self.rpc, &[record]).map_err(broken)?.pop();
        self.done += ops.len() as u64;
        Reply::new(answer.unwrap_or_default())
    }

    /// One compound, in the session from 4.1 on.
    ///
    /// # Errors
    /// As [`Pipe::batch`].
    pub fn one(&mut self, ops: &[ArgOp<'_>]) -> Outcome<Reply> {
        self.batch(&[ops.to_vec()])?.pop().ok_or_else(|| broken("no answer"))
    }

    /// At most [`DEPTH`] compounds at once, in the session from 4.1 on.
    ///
    /// # Errors
    /// The connection is broken, or an answer cannot be read. The status of an operation is in the
    /// reply of its compound.
    pub fn batch(&mut self, compounds: &[Vec<ArgOp<'_>>]) -> Outcome<Vec<Reply>> {
        let records = self.records(compounds)?;
        let answers = exchange(&mut self.rpc, &records).map_err(broken)?;
        let replies: Outcome<Vec<_>> = answers.into_iter().map(Reply::new).collect();
        for reply in replies.iter().flatten() {
            self.done += reply.results()?.len() as u64;
        }
        replies
    }

    /// Sends at most [`DEPTH`] compounds, and reads no answer.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn send(&mut self, compounds: &[Vec<ArgOp<'_>>]) -> Outcome<()> {
        let records = self.records(compounds)?;
        self.rpc.send(&records.concat()).map_err(broken)
    }

    fn records(&mut self, compounds: &[Vec<ArgOp<'_>>]) -> Outcome<Vec<Vec<u8>>> {
        let mut records = Vec::new();
        for (slotid, compound) in compounds.iter().enumerate() {
            let mut ops = Vec::new();
            if self.minor > 0 {
                let slot = self.slots.get_mut(slotid).ok_or_else(|| broken("too many at once"))?;
                *slot += 1;
                ops.push(ArgOp::Sequence(SequenceArgs4 {
                    sessionid: self.session,
                    sequenceid: *slot,
                    slotid: slotid as u32,
                    highest_slotid: DEPTH as u32 - 1,
                    cachethis: false,
                }));
            }
            ops.extend_from_slice(compound);
            let message = Message { minor: self.minor, ops: &ops };
            records.push(self.rpc.record(PROGRAM, COMPOUND, &message));
        }
        Ok(records)
    }

    /// DESTROY_SESSION and DESTROY_CLIENTID: leaves properly (4.1).
    ///
    /// # Errors
    /// NFS4ERR_CLIENTID_BUSY while it holds anything.
    pub fn leave(mut self) -> Outcome<u64> {
        let destroy = DestroySessionArgs4 { sessionid: self.session };
        self.plain(&[ArgOp::DestroySession(destroy)])?.last()?;
        let client = ClientidArgs4 { clientid: self.id };
        self.plain(&[ArgOp::DestroyClientid(client)])?.last()?;
        Ok(self.done)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Broken(error.to_string())
    }
}
