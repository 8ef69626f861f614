//! The other direction: a [`Client`] that uses its connection as its back channel as well, so that
//! it is granted delegations and receives their recalls.

use std::net::SocketAddr;
use std::time::Duration;

use wire::nfs4::{
    ArgOp, Attrs4, Bitmap4, CB_COMPOUND, CbArgOp, CbCompoundArgs, CbCompoundRes, CbResOp,
    CbSequenceResOk4, Component4, Createhow4, DelegreturnArgs4, Fattr4, GetattrResOk4, Nfsstat4,
    Opaque4, OpenArgs4, OpenClaim4, OpenDelegation4, OpenResOk4, Openflag4, Res4, ResOp,
    StateOwner4, Stateid4, Tag4, attr4, create_session4, share4,
};
use wire::rpc;
use wire::xdr::{Decode, Encode, Writer};

use super::files::Opened;
use super::{Client, Outcome, broken, fattr};
use crate::nfs3;

impl Client {
    /// As [`Client::connect`], of 4.1, and to be called back over the same connection.
    ///
    /// # Errors
    /// No connection, or what the server refuses.
    pub fn connect_both_ways(server: SocketAddr, name: &str) -> Outcome<Self> {
        Self::over_both_ways(nfs3::Client::connect(server, 0, 0).map_err(broken)?, name)
    }

    /// As [`Client::connect_both_ways`], over an existing connection.
    ///
    /// # Errors
    /// What the server refuses.
    pub fn over_both_ways(rpc: nfs3::Client, name: &str) -> Outcome<Self> {
        let mut client = Self::begin(rpc, 1, name, 1, create_session4::CONN_BACK_CHAN)?;
        client.reclaim_complete()?;
        Ok(client)
    }

    /// Opens a file for reading alone, and returns the delegation that came with it.
    ///
    /// # Errors
    /// As every call.
    pub fn open_delegated(
        &mut self,
        dir: &[u8],
        name: &str,
    ) -> Outcome<(Opened, Option<Stateid4>)> {
        self.open_for(dir, name, share4::ACCESS_READ, Openflag4::Nocreate(()))
    }

    /// The same, for reading and writing; the file is made if there is none.
    ///
    /// # Errors
    /// As every call.
    pub fn open_delegated_to_write(
        &mut self,
        dir: &[u8],
        name: &str,
    ) -> Outcome<(Opened, Option<Stateid4>)> {
        let mut buf = Vec::new();
        let mode = fattr(&Attrs4 { mode: Some(0o644), ..Attrs4::default() }, &mut buf);
        let how = Openflag4::Create(Createhow4::Unchecked(mode));
        self.open_for(dir, name, share4::ACCESS_BOTH, how)
    }

    fn open_for(
        &mut self,
        dir: &[u8],
        name: &str,
        share_access: u32,
        openhow: Openflag4<'_>,
    ) -> Outcome<(Opened, Option<Stateid4>)> {
        let open = ArgOp::Open(OpenArgs4 {
            seqid: 0,
            share_access,
            share_deny: share4::DENY_NONE,
            owner: StateOwner4 { clientid: self.id, owner: Opaque4(name.as_bytes()) },
            openhow,
            claim: OpenClaim4::Null(Component4(name.as_bytes())),
        });
        let reply = self.at(dir, &[open, ArgOp::Getfh(())])?;
        let results = reply.results()?;
        let given = results.iter().find_map(|result| match result {
            ResOp::Open(Res4::Ok(ok)) => Some((ok.stateid, delegated(ok))),
            _ => None,
        });
        let (stateid, delegation) = given.ok_or_else(|| broken("no result of OPEN"))?;
        Ok((Opened { handle: super::handle(&reply)?, stateid }, delegation))
    }

    /// Waits until the server recalls a delegation, and replies to the call; the delegation's
    /// stateid.
    ///
    /// # Errors
    /// It does not call in time, or calls for something else.
    pub fn recalled(&mut self) -> Outcome<Stateid4> {
        match self.called(RECALL, (0, 0))? {
            Some(Called::Recall(stateid)) => Ok(stateid),
            other => Err(broken(format!("it called for {other:?}"))),
        }
    }

    /// Waits up to `within` for a call of the server over this connection, and replies to it: with
    /// this size and change attribute if they are requested.
    ///
    /// # Errors
    /// The connection has ended, or the call is not one of those that clients know.
    pub fn called(&mut self, within: Duration, known: (u64, u64)) -> Outcome<Option<Called>> {
        called(&mut self.rpc, within, known)
    }

    /// DELEGRETURN.
    ///
    /// # Errors
    /// As every call.
    pub fn give_back(&mut self, file: &[u8], deleg_stateid: Stateid4) -> Outcome<()> {
        let back = ArgOp::Delegreturn(DelegreturnArgs4 { deleg_stateid });
        self.at(file, &[back]).map(|_| ())
    }
}

/// Longest wait for a recall.
const RECALL: Duration = crate::patience(30);

/// What a server calls a client for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Called {
    /// To find out whether it can (CB_NULL).
    Null,
    /// To have a delegation back.
    Recall(Stateid4),
    /// To know size and change attribute of a file that is delegated for writing.
    Getattr,
}

/// The delegation that came with an open.
pub fn delegated(ok: &OpenResOk4<'_>) -> Option<Stateid4> {
    match &ok.delegation {
        OpenDelegation4::Read(read) => Some(read.stateid),
        OpenDelegation4::Write(write) => Some(write.stateid),
        _ => None,
    }
}

/// As [`Client::called`], over a connection that the server may have made (4.0).
///
/// # Errors
/// The same.
pub fn called(
    rpc: &mut nfs3::Client,
    within: Duration,
    known: (u64, u64),
) -> Outcome<Option<Called>> {
    let Some(record) = rpc.called_within(within).map_err(broken)? else { return Ok(None) };
    let (header, mut r) = rpc::open_call(&record).map_err(|e| broken(format!("{e:?}")))?;
    let (mut called, mut results) = (Called::Null, Vec::new());
    if header.proc == CB_COMPOUND {
        let head = CbCompoundArgs::decode(&mut r).map_err(broken)?;
        for _ in 0..head.count {
            let op = CbArgOp::decode(&mut r).map_err(broken)?;
            match op {
                CbArgOp::Recall(recall) => called = Called::Recall(recall.stateid),
                CbArgOp::Getattr(_) => called = Called::Getattr,
                _ => {}
            }
            results.push(result_of(&op)?);
        }
    }
    let values = [known.1, known.0].map(u64::to_be_bytes).concat();
    let mut bytes = Vec::new();
    let mut w = Writer::new(&mut bytes);
    let mark = rpc::begin_record(&mut w);
    rpc::success(&mut w, header.xid);
    if header.proc == CB_COMPOUND {
        let count = results.len() as u32;
        CbCompoundRes { status: Nfsstat4::OK, tag: Tag4(b""), count }.encode(&mut w);
        for result in results {
            result.unwrap_or_else(|| attributes(&values)).encode(&mut w);
        }
    }
    rpc::end_record(&mut w, mark);
    rpc.send(&bytes).map_err(broken)?;
    Ok(Some(called))
}

/// The result of an operation that a client does; `None` is that of CB_GETATTR.
fn result_of(op: &CbArgOp<'_>) -> Outcome<Option<CbResOp<'static>>> {
    Ok(match op {
        CbArgOp::Sequence(sequence) => Some(CbResOp::Sequence(Res4::Ok(CbSequenceResOk4 {
            sessionid: sequence.sessionid,
            sequenceid: sequence.sequenceid,
            slotid: sequence.slotid,
            highest_slotid: sequence.slotid,
            target_highest_slotid: sequence.slotid,
        }))),
        CbArgOp::Recall(_) => Some(CbResOp::Recall(Res4::Ok(()))),
        CbArgOp::Getattr(_) => None,
        other => return Err(broken(format!("it called for {other:?}"))),
    })
}

/// The result of CB_GETATTR: the change attribute, and the size.
fn attributes(attr_vals: &[u8]) -> CbResOp<'_> {
    let attrmask = Bitmap4::of(&[attr4::CHANGE, attr4::SIZE]);
    let obj_attributes = Fattr4 { attrmask, attr_vals };
    CbResOp::Getattr(Res4::Ok(GetattrResOk4 { obj_attributes }))
}
