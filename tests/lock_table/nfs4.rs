//! Clients of NFSv4.0 and 4.1, with and without a way back to them.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use e2e::nfs3;
use e2e::nfs4::back::{self, Called};
use e2e::nfs4::{Client, Failure, Handle, Reply, putfh};
use e2e::smb::scene::UID;
use wire::nfs4::{
    ArgOp, Bitmap4, CbClient4, Clientaddr4, CloseArgs4, Component4, DelegreturnArgs4, GetattrArgs4,
    LockArgs4, Locker4, NfsClientId4, Nfsstat4, Opaque4, OpenArgs4, OpenClaim4, OpenConfirmArgs4,
    OpenToLockOwner4, Openflag4, ReadArgs4, RemoveArgs4, RenameArgs4, Res4, ResOp,
    SetclientidArgs4, SetclientidConfirmArgs4, SetclientidRes4, StableHow4, StateOwner4, Stateid4,
    Utf8str, WriteArgs4, attr4, locktype4, open4, share4,
};

use crate::lock_table::second::Operation;
use crate::lock_table::{EXPORT, Outcome, RENAMED, Refusal, refused};

/// Statuses after which the number of an owner's next request stays (RFC 7530 §9.1.7).
const SAME_NUMBER: [Nfsstat4; 5] = [
    Nfsstat4::STALE_CLIENTID,
    Nfsstat4::STALE_STATEID,
    Nfsstat4::BAD_STATEID,
    Nfsstat4::BAD_SEQID,
    Nfsstat4::RESOURCE,
];
/// The program of calls back to 4.0.
const CALLBACK: u32 = 0x4000_0000;
/// All bytes of a file.
const ALL: u64 = u64::MAX;

/// A client.
pub(super) struct Nfs4 {
    client: Client,
    minor: u32,
    root: Handle,
    /// The next number of its open owner (4.0).
    seqid: u32,
    /// Owners of locks so far.
    lockers: u32,
    /// The connection over which it is called (4.0).
    line: Option<nfs3::Client>,
}

/// An open file.
pub(super) struct OpenFile {
    pub handle: Handle,
    stateid: Stateid4,
    pub delegation: Option<Stateid4>,
    /// Size and change attribute.
    pub known: (u64, u64),
}

fn of_status(status: Nfsstat4) -> Refusal {
    match status {
        Nfsstat4::DELAY => Refusal::Again,
        other => refused(other),
    }
}

fn of(failure: Failure) -> Refusal {
    match failure {
        Failure::Status(status) => of_status(status),
        Failure::Broken(why) => panic!("{why}"),
    }
}

impl Nfs4 {
    /// One that cannot be called, and so gets no delegation.
    pub fn new(server: SocketAddr, minor: u32, name: &str) -> Self {
        let rpc = nfs3::Client::connect(server, UID, 4322).expect("a connection");
        let mut client = Client::over(rpc, minor, name, 7).expect("a client");
        match minor {
            0 => set_client(&mut client, name, ""),
            _ => client.reclaim_complete().expect("RECLAIM_COMPLETE"),
        }
        Self::of(client, minor, None)
    }

    /// One that is called back.
    pub fn called(server: SocketAddr, minor: u32, name: &str) -> Self {
        let rpc = nfs3::Client::connect(server, UID, 4322).expect("a connection");
        if minor > 0 {
            return Self::of(Client::over_both_ways(rpc, name).expect("a session"), minor, None);
        }
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let mut client = Client::over(rpc, minor, name, 7).expect("a client");
        set_client(&mut client, name, &format!("127.0.0.1.{}.{}", port >> 8, port & 255));
        let (stream, _) = listener.accept().expect("the server connects");
        let mut line = nfs3::Client::over(stream, UID, 4322).expect("a connection");
        let first = back::called(&mut line, e2e::patience(30), (0, 0));
        assert_eq!(first, Ok(Some(Called::Null)), "it finds out whether it can call");
        Self::of(client, minor, Some(line))
    }

    fn of(mut client: Client, minor: u32, line: Option<nfs3::Client>) -> Self {
        let root = client.walk(EXPORT).expect("the share");
        Self { client, minor, root, seqid: 1, lockers: 0, line }
    }

    /// Does a compound with a second operation in the sequence of the open owner.
    fn in_turn(&mut self, file: &[u8], ops: &[ArgOp<'_>]) -> Outcome<Reply> {
        let all = [&[putfh(file)], ops].concat();
        let reply = self.client.compound(&all).map_err(of)?;
        let before = usize::from(self.minor > 0) + 1;
        let is_done = reply.results().map_err(of)?.len() > before;
        if is_done && !SAME_NUMBER.contains(&reply.status) {
            self.seqid += 1;
        }
        match reply.status {
            Nfsstat4::OK => Ok(reply),
            other => Err(of_status(other)),
        }
    }

    /// OPEN with access and deny bits.
    pub fn open(&mut self, name: &str, share_access: u32, share_deny: u32) -> Outcome<OpenFile> {
        let root = self.root.clone();
        let open = ArgOp::Open(OpenArgs4 {
            seqid: self.seqid,
            share_access,
            share_deny,
            owner: StateOwner4 { clientid: self.client.id, owner: Opaque4(b"owner") },
            openhow: Openflag4::Nocreate(()),
            claim: OpenClaim4::Null(Component4(name.as_bytes())),
        });
        let attr_request = Bitmap4::of(&[attr4::CHANGE, attr4::SIZE]);
        let look = ArgOp::Getattr(GetattrArgs4 { attr_request });
        let reply = self.in_turn(&root, &[open, ArgOp::Getfh(()), look])?;
        let results = reply.results().map_err(of)?;
        let (mut opened, mut handle, mut known) = (None, Vec::new(), (0, 0));
        for result in &results {
            match result {
                ResOp::Open(Res4::Ok(ok)) => {
                    opened = Some((ok.stateid, ok.rflags, back::delegated(ok)));
                }
                ResOp::Getfh(Res4::Ok(ok)) => handle = ok.object.0.to_vec(),
                ResOp::Getattr(Res4::Ok(ok)) => {
                    let values = ok.obj_attributes.values().expect("values");
                    known = (values.size.unwrap_or(0), values.change.unwrap_or(0));
                }
                _ => {}
            }
        }
        let (mut stateid, rflags, delegation) = opened.expect("a result of OPEN");
        if rflags & open4::RESULT_CONFIRM != 0 {
            let args = OpenConfirmArgs4 { open_stateid: stateid, seqid: self.seqid };
            let reply = self.in_turn(&handle, &[ArgOp::OpenConfirm(args)])?;
            match reply.last().map_err(of)? {
                ResOp::OpenConfirm(Res4::Ok(ok)) => stateid = ok.stateid,
                other => panic!("{other:?}"),
            }
        }
        Ok(OpenFile { handle, stateid, delegation, known })
    }

    /// CLOSE, also of a file that is gone.
    pub fn close(&mut self, open: &OpenFile) {
        let close = CloseArgs4 { seqid: self.seqid, open_stateid: open.stateid };
        let closed = self.in_turn(&open.handle, &[ArgOp::Close(close)]);
        assert_eq!(closed.err(), None, "CLOSE");
    }

    /// LOCK of all bytes, exclusive, by another owner each time.
    pub fn lock(&mut self, open: &OpenFile) -> Outcome {
        self.lockers += 1;
        let name = format!("locker{}", self.lockers);
        let lock_owner = StateOwner4 { clientid: self.client.id, owner: Opaque4(name.as_bytes()) };
        let locker = Locker4::New(OpenToLockOwner4 {
            open_seqid: self.seqid,
            open_stateid: open.stateid,
            lock_seqid: 0,
            lock_owner,
        });
        let (reclaim, offset, length) = (false, 0, ALL);
        let lock = LockArgs4 { locktype: locktype4::WRITE, reclaim, offset, length, locker };
        self.in_turn(&open.handle, &[ArgOp::Lock(lock)]).map(drop)
    }

    /// DELEGRETURN.
    pub fn give_back(&mut self, open: &OpenFile) {
        let Some(deleg_stateid) = open.delegation else { return };
        let back = ArgOp::Delegreturn(DelegreturnArgs4 { deleg_stateid });
        self.client.at(&open.handle, &[back]).expect("DELEGRETURN");
    }

    /// What the server calls for, if it does so within this time; it is answered.
    pub fn next_call(&mut self, within: Duration, known: (u64, u64)) -> Option<Called> {
        let called = match &mut self.line {
            Some(line) => back::called(line, within, known),
            None => self.client.called(within, known),
        };
        called.expect("a call, or none")
    }

    pub fn perform(&mut self, operation: Operation, name: &str) -> Outcome {
        let root = self.root.clone();
        match operation {
            Operation::Read => {
                let file = self.client.lookup(&root, name).map_err(of)?;
                let args = ReadArgs4 { stateid: Stateid4::ANONYMOUS, offset: 0, count: 9 };
                self.client.at(&file, &[ArgOp::Read(args)]).map(drop).map_err(of)
            }
            Operation::Write => {
                let file = self.client.lookup(&root, name).map_err(of)?;
                let (stateid, stable) = (Stateid4::ANONYMOUS, StableHow4::FILE_SYNC);
                let args = WriteArgs4 { stateid, offset: 0, stable, data: b"new" };
                self.client.at(&file, &[ArgOp::Write(args)]).map(drop).map_err(of)
            }
            Operation::Open | Operation::Lock => {
                let open = self.open(name, share4::ACCESS_BOTH, share4::DENY_NONE)?;
                let done = match operation {
                    Operation::Lock => self.lock(&open),
                    _ => Ok(()),
                };
                self.close(&open);
                done
            }
            Operation::Rename => {
                let (old, new) = (Component4(name.as_bytes()), Component4(RENAMED.as_bytes()));
                let rename = ArgOp::Rename(RenameArgs4 { oldname: old, newname: new });
                self.client.at(&root, &[ArgOp::Savefh(()), rename]).map(drop).map_err(of)
            }
            Operation::Remove => {
                let args = RemoveArgs4 { target: Component4(name.as_bytes()) };
                self.client.at(&root, &[ArgOp::Remove(args)]).map(drop).map_err(of)
            }
        }
    }
}

/// SETCLIENTID and its confirmation, with the address at which the client is to be called.
fn set_client(client: &mut Client, name: &str, address: &str) {
    let location = Clientaddr4 { netid: Utf8str(b"tcp"), addr: Utf8str(address.as_bytes()) };
    let program = if address.is_empty() { 0 } else { CALLBACK };
    let args = SetclientidArgs4 {
        client: NfsClientId4 { verifier: [1; 8], id: Opaque4(name.as_bytes()) },
        callback: CbClient4 { program, location },
        callback_ident: 0,
    };
    let reply = client.compound(&[ArgOp::Setclientid(args)]).expect("SETCLIENTID");
    let (clientid, confirm) = match reply.last().expect("SETCLIENTID") {
        ResOp::Setclientid(SetclientidRes4::Ok(ok)) => (ok.clientid, ok.confirm),
        other => panic!("{other:?}"),
    };
    let args = SetclientidConfirmArgs4 { clientid, confirm };
    let reply = client.compound(&[ArgOp::SetclientidConfirm(args)]).expect("its confirmation");
    reply.last().expect("a client");
    client.id = clientid;
}
