//! The other direction: a [`Client`] whose connection is its back channel as well, so that it is
//! given delegations and told when they must go back.

use std::net::SocketAddr;

use wire::nfs4::{
    ArgOp, CB_COMPOUND, CbArgOp, CbCompoundArgs, CbCompoundRes, CbResOp, CbSequenceResOk4,
    Component4, DelegreturnArgs4, Nfsstat4, Opaque4, OpenArgs4, OpenClaim4, OpenDelegation4,
    Openflag4, Res4, ResOp, StateOwner4, Stateid4, Tag4, create_session4, share4,
};
use wire::rpc;
use wire::xdr::{Decode, Encode, Writer};

use super::files::Opened;
use super::{Client, Outcome, broken};
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

    /// Opens a file for reading alone, and says which delegation came with it.
    ///
    /// # Errors
    /// As every call.
    pub fn open_delegated(
        &mut self,
        dir: &[u8],
        name: &str,
    ) -> Outcome<(Opened, Option<Stateid4>)> {
        let open = ArgOp::Open(OpenArgs4 {
            seqid: 0,
            share_access: share4::ACCESS_READ,
            share_deny: share4::DENY_NONE,
            owner: StateOwner4 { clientid: self.id, owner: Opaque4(name.as_bytes()) },
            openhow: Openflag4::Nocreate(()),
            claim: OpenClaim4::Null(Component4(name.as_bytes())),
        });
        let reply = self.at(dir, &[open, ArgOp::Getfh(())])?;
        let results = reply.results()?;
        let given = results.iter().find_map(|result| match result {
            ResOp::Open(Res4::Ok(ok)) => Some((
                ok.stateid,
                if let OpenDelegation4::Read(read) = &ok.delegation {
                    Some(read.stateid)
                } else {
                    None
                },
            )),
            _ => None,
        });
        let (stateid, delegation) = given.ok_or_else(|| broken("no result of OPEN"))?;
        Ok((Opened { handle: super::handle(&reply)?, stateid }, delegation))
    }

    /// Waits until the server calls, which must be to have a delegation back; says that it was
    /// heard, and which it is.
    ///
    /// # Errors
    /// It does not call in time, or calls for something else.
    pub fn recalled(&mut self) -> Outcome<Stateid4> {
        let record = self.rpc.receive().map_err(broken)?;
        let (header, mut r) = rpc::open_call(&record).map_err(|e| broken(format!("{e:?}")))?;
        if header.proc != CB_COMPOUND {
            return Err(broken(format!("it called {}", header.proc)));
        }
        let head = CbCompoundArgs::decode(&mut r).map_err(broken)?;
        let ops: Result<Vec<_>, _> = (0..head.count).map(|_| CbArgOp::decode(&mut r)).collect();
        let ops = ops.map_err(broken)?;
        let [CbArgOp::Sequence(sequence), CbArgOp::Recall(recall)] = &ops[..] else {
            return Err(broken(format!("it called for {ops:?}")));
        };
        let results = [
            CbResOp::Sequence(Res4::Ok(CbSequenceResOk4 {
                sessionid: sequence.sessionid,
                sequenceid: sequence.sequenceid,
                slotid: sequence.slotid,
                highest_slotid: sequence.slotid,
                target_highest_slotid: sequence.slotid,
            })),
            CbResOp::Recall(Res4::Ok(())),
        ];
        let mut bytes = Vec::new();
        let mut w = Writer::new(&mut bytes);
        let mark = rpc::begin_record(&mut w);
        rpc::success(&mut w, header.xid);
        CbCompoundRes { status: Nfsstat4::OK, tag: Tag4(b""), count: 2 }.encode(&mut w);
        results.iter().for_each(|result| result.encode(&mut w));
        rpc::end_record(&mut w, mark);
        self.rpc.send(&bytes).map_err(broken)?;
        Ok(recall.stateid)
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
