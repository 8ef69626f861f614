//! Operations on state through the real codec: a 4.0 and a 4.1 client from their first word on.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use base::clock::{ManualClock, NS_PER_S};
use base::random::SeededRandom;
use vfs::attr::SetAttr;
use vfs::conformance::cx;
use vfs::cred::Cred;
use vfs::fs::CreateHow;
use vfs::locks::LockTable;
use vfs::mem::MemFs;
use vfs::share::{ShareTable, Shares, tag};
use wire::nfs4::*;
use wire::xdr::{Decode, Encode, Reader, Writer};

use super::super::state::{Config, Identity, NoRecords, Records};
use super::super::{Nfs4, Peer};
use super::*;
use engine::transport::Budgets;
use engine::transport::buffers::ReplyBuf;

mod answers;
mod edges;
mod exhausted;
mod extents;
mod grace;
mod records;
mod removed;

const LEASE_S: u64 = 90;

struct World {
    nfs: Nfs4,
    clock: Arc<ManualClock>,
    cred: Cred,
    budgets: Budgets,
}

impl World {
    fn new(known: Vec<Identity>) -> Self {
        Self::recorded(known, Arc::new(NoRecords)).0
    }

    fn recorded(known: Vec<Identity>, records: Arc<dyn Records>) -> (Self, Arc<Stateful>) {
        Self::started(3, known, records)
    }

    /// The start with this number of a server.
    fn started(
        boot: u32,
        known: Vec<Identity>,
        records: Arc<dyn Records>,
    ) -> (Self, Arc<Stateful>) {
        let mut shares = ShareTable::default();
        shares.add("s", MemFs::new(tag("s"), 1 << 30), false).expect("a share");
        let clock = Arc::new(ManualClock::at(0));
        let state = State::new(Config {
            boot,
            lease_ns: LEASE_S * NS_PER_S,
            grace_until_ns: LEASE_S * NS_PER_S,
            known,
            records,
            locks: Arc::new(LockTable::default()),
            random: Box::new(SeededRandom::new(boot.into())),
        });
        let keeper = Stateful { state, clock: clock.clone(), server_owner: b"here".to_vec() };
        let keeper = Arc::new(keeper);
        let nfs = Nfs4 {
            shares: Shares::new(shares),
            verifier: [1; 8],
            lease: Duration::from_secs(LEASE_S),
            idmap: Arc::default(),
            state: keeper.clone(),
        };
        (Self { nfs, clock, cred: Cred::root(), budgets: Budgets::default() }, keeper)
    }

    /// What a 4.0 compound comes to on a connection's own thread; it is not gone on with.
    fn inline(&self, ops: &[ArgOp<'_>]) -> Poll<()> {
        let (message, peer) = (message(0, ops), self.peer());
        let mut out = ReplyBuf::default();
        match self.nfs.begin(&message, &mut out).expect("a head") {
            Some(mut p) => self.nfs.run(&mut p, peer, false, &message, &mut out, 0),
            None => Poll::Ready(()),
        }
    }

    fn peer(&self) -> Peer<'_> {
        let address = (std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 40_000);
        let (transport, flavor, facts) = Default::default();
        let (cred, budgets, connection) = (&self.cred, &self.budgets, 1);
        Peer { cred, address, transport, flavor, facts, connection, back: None, budgets }
    }

    /// Runs a compound as a connection would; gives COMPOUND4res.
    fn bytes(&self, minorversion: u32, ops: &[ArgOp<'_>]) -> Vec<u8> {
        let (message, peer) = (message(minorversion, ops), self.peer());
        let mut out = ReplyBuf::default();
        if let Some(mut progress) = self.nfs.begin(&message, &mut out).expect("a head") {
            let p = &mut progress;
            if self.nfs.run(p, peer, false, &message, &mut out, 0) == Poll::Pending {
                assert_eq!(self.nfs.run(p, peer, true, &message, &mut out, 0), Poll::Ready(()));
            }
            if !progress.flush.is_empty() {
                let mut results = out.into_vec();
                self.nfs.flushed(&mut progress, Ok(()), &mut results, 0);
                return results;
            }
        }
        out.into_vec()
    }

    fn run(&self, minor: u32, ops: &[ArgOp<'_>]) -> (Nfsstat4, Vec<ResOp<'static>>) {
        decode(self.bytes(minor, ops))
    }

    /// With the share's root as the current file.
    fn at_root(&self, ops: &[ArgOp<'_>]) -> (Nfsstat4, Vec<ResOp<'static>>) {
        self.run(0, &[&ROOT[..], ops].concat())
    }

    fn client40(&self, id: &[u8]) -> u64 {
        let args = SetclientidArgs4 {
            client: NfsClientId4 { verifier: [1; 8], id: Opaque4(id) },
            callback: CbClient4 {
                program: 1,
                location: Clientaddr4 { netid: Utf8str(b"tcp"), addr: Utf8str(b"") },
            },
            callback_ident: 0,
        };
        let (_, results) = self.run(0, &[ArgOp::Setclientid(args)]);
        let [ResOp::Setclientid(SetclientidRes4::Ok(ok))] = results[..] else {
            panic!("{results:?}")
        };
        let args = SetclientidConfirmArgs4 { clientid: ok.clientid, confirm: ok.confirm };
        assert_eq!(self.run(0, &[ArgOp::SetclientidConfirm(args)]).0, Nfsstat4::OK);
        ok.clientid
    }

    fn session(&self, owner: &[u8]) -> [u8; 16] {
        self.session_of(owner, 1 << 16)
    }

    /// A session for requests of at most `maxrequestsize` bytes.
    fn session_of(&self, owner: &[u8], maxrequestsize: u32) -> [u8; 16] {
        let args = ExchangeIdArgs4 {
            clientowner: ClientOwner4 { verifier: [1; 8], ownerid: Opaque4(owner) },
            flags: 0,
            state_protect: StateProtectA4::None(()),
            client_impl_id: None,
        };
        let (_, results) = self.run(1, &[ArgOp::ExchangeId(args)]);
        let [ResOp::ExchangeId(Res4::Ok(ok))] = &results[..] else { panic!("{results:?}") };
        let channel = ChannelAttrs4 {
            headerpadsize: 0,
            maxrequestsize,
            maxresponsesize: maxrequestsize.max(1 << 16),
            maxresponsesize_cached: 4096,
            maxoperations: 16,
            maxrequests: 4,
            rdma_ird: None,
        };
        let args = CreateSessionArgs4 {
            clientid: ok.clientid,
            sequence: ok.sequenceid,
            flags: 0,
            fore_chan_attrs: channel,
            back_chan_attrs: channel,
            cb_program: 1,
            sec_parms: wire::xdr::Seq(Vec::new()),
        };
        let (_, results) = self.run(1, &[ArgOp::CreateSession(args)]);
        let [ResOp::CreateSession(Res4::Ok(ok))] = results[..] else { panic!("{results:?}") };
        ok.sessionid
    }
}

fn message(minorversion: u32, ops: &[ArgOp<'_>]) -> Vec<u8> {
    let mut message = Vec::new();
    let mut w = Writer::new(&mut message);
    let count = ops.len() as u32;
    CompoundArgs { tag: Tag4(b""), minorversion, count }.encode(&mut w);
    ops.iter().for_each(|op| op.encode(&mut w));
    message
}

const ROOT: [ArgOp<'static>; 3] = [
    ArgOp::Putrootfh(()),
    ArgOp::Lookup(LookupArgs4 { objname: Component4(b"export") }),
    ArgOp::Lookup(LookupArgs4 { objname: Component4(b"s") }),
];

fn decode(bytes: Vec<u8>) -> (Nfsstat4, Vec<ResOp<'static>>) {
    let mut r = Reader::new(bytes.leak());
    let head = CompoundRes::decode(&mut r).expect("a head");
    let results = (0..head.count).map(|_| ResOp::decode(&mut r).expect("a result")).collect();
    r.finish().expect("nothing more");
    (head.status, results)
}

fn empty_attrs() -> Fattr4<'static> {
    let mut bytes = Vec::new();
    Attrs4::default().encode(&mut Writer::new(&mut bytes));
    wire::xdr::decode_all(bytes.leak()).expect("attributes")
}

fn open(clientid: u64, seqid: u32, owner: &'static [u8], deny: u32) -> ArgOp<'static> {
    ArgOp::Open(OpenArgs4 {
        seqid,
        share_access: share4::ACCESS_BOTH,
        share_deny: deny,
        owner: StateOwner4 { clientid, owner: Opaque4(owner) },
        openhow: Openflag4::Create(Createhow4::Unchecked(empty_attrs())),
        claim: OpenClaim4::Null(Component4(b"f")),
    })
}

fn opened(results: &[ResOp<'_>]) -> (Stateid4, u32) {
    match results.iter().find_map(|r| if let ResOp::Open(o) = r { Some(o) } else { None }) {
        Some(Res4::Ok(ok)) => (ok.stateid, ok.rflags),
        other => panic!("{other:?}"),
    }
}

fn sequence(sessionid: [u8; 16], sequenceid: u32) -> ArgOp<'static> {
    ArgOp::Sequence(SequenceArgs4 {
        sessionid,
        sequenceid,
        slotid: 0,
        highest_slotid: 0,
        cachethis: true,
    })
}

fn file() -> ArgOp<'static> {
    ArgOp::Lookup(LookupArgs4 { objname: Component4(b"f") })
}

fn write(stateid: Stateid4) -> ArgOp<'static> {
    ArgOp::Write(WriteArgs4 { stateid, offset: 0, stable: StableHow4::FILE_SYNC, data: b"data" })
}

fn lock_new(clientid: u64, open_stateid: Stateid4, open_seqid: u32) -> ArgOp<'static> {
    ArgOp::Lock(LockArgs4 {
        locktype: locktype4::WRITE,
        reclaim: false,
        offset: 0,
        length: u64::MAX,
        locker: Locker4::New(OpenToLockOwner4 {
            open_seqid,
            open_stateid,
            lock_seqid: 1,
            lock_owner: StateOwner4 { clientid, owner: Opaque4(b"locker") },
        }),
    })
}

/// Opens and confirms; the next number of the owner is 3.
fn open_confirmed(world: &World, clientid: u64) -> Stateid4 {
    let (status, results) = world.at_root(&[open(clientid, 1, b"o", 0)]);
    assert_eq!(status, Nfsstat4::OK);
    let (open_stateid, rflags) = opened(&results);
    assert_ne!(rflags & open4::RESULT_CONFIRM, 0);
    let confirm = ArgOp::OpenConfirm(OpenConfirmArgs4 { open_stateid, seqid: 2 });
    let (status, results) = world.at_root(&[file(), confirm]);
    assert_eq!(status, Nfsstat4::OK);
    match results.last() {
        Some(ResOp::OpenConfirm(Res4::Ok(ok))) => ok.stateid,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_40_client_opens_writes_locks_and_closes_and_each_may_be_repeated() {
    let world = World::new(Vec::new());
    let id = world.client40(b"a");
    let stateid = open_confirmed(&world, id);
    assert_eq!(world.at_root(&[file(), write(stateid)]).0, Nfsstat4::OK);
    let ops = [&ROOT[..], &[file(), lock_new(id, stateid, 3)]].concat();
    let first = world.bytes(0, &ops);
    assert_eq!(decode(first.clone()).0, Nfsstat4::OK);
    assert_eq!(world.bytes(0, &ops), first, "repeated, not done again");
    let close = ArgOp::Close(CloseArgs4 { seqid: 4, open_stateid: stateid });
    let ops = [&ROOT[..], &[file(), close]].concat();
    let first = world.bytes(0, &ops);
    assert_eq!(decode(first.clone()).0, Nfsstat4::OK);
    assert_eq!(world.bytes(0, &ops), first, "repeated, not done again");
    assert_eq!(world.at_root(&[file(), write(stateid)]).0, Nfsstat4::BAD_STATEID);
}

/// A Linux client gives the name of a lock owner that got nothing to the next process.
#[test]
fn a_lock_owner_that_was_refused_may_begin_again() {
    let world = World::new(Vec::new());
    let (one, two) = (world.client40(b"a"), world.client40(b"b"));
    let (first, second) = (open_confirmed(&world, one), open_confirmed(&world, two));
    assert_eq!(world.at_root(&[file(), lock_new(one, first, 3)]).0, Nfsstat4::OK);
    assert_eq!(world.at_root(&[file(), lock_new(two, second, 3)]).0, Nfsstat4::DENIED);
    assert_eq!(world.at_root(&[file(), lock_new(two, second, 3)]).0, Nfsstat4::DENIED, "repeated");
    let close = ArgOp::Close(CloseArgs4 { seqid: 4, open_stateid: first });
    assert_eq!(world.at_root(&[file(), close]).0, Nfsstat4::OK);
    assert_eq!(world.at_root(&[file(), lock_new(two, second, 4)]).0, Nfsstat4::OK);
}

#[test]
fn an_open_that_is_repeated_leads_to_its_file_again() {
    let world = World::new(Vec::new());
    let id = world.client40(b"a");
    let ops = [&ROOT[..], &[open(id, 1, b"o", 0), ArgOp::Getfh(())]].concat();
    let first = world.bytes(0, &ops);
    assert_eq!(decode(first.clone()).0, Nfsstat4::OK);
    assert_eq!(world.bytes(0, &ops), first);
    assert_eq!(world.at_root(&[open(id, 5, b"o", 0)]).0, Nfsstat4::OK, "not confirmed yet");
}

#[test]
fn deny_modes_and_locks_exclude_another_client_until_it_has_lapsed() {
    let world = World::new(Vec::new());
    let (one, session) = (world.client40(b"a"), world.session(b"b"));
    let done = ArgOp::ReclaimComplete(ReclaimCompleteArgs4 { one_fs: false });
    assert_eq!(world.run(1, &[sequence(session, 1), done]).0, Nfsstat4::OK);
    let stateid = open_confirmed(&world, one);
    assert_eq!(world.at_root(&[file(), lock_new(one, stateid, 3)]).0, Nfsstat4::OK);
    let denying = open(0, 0, b"o", share4::DENY_WRITE);
    let attempt = |seq, op: ArgOp<'static>| {
        let ops = [&[sequence(session, seq)], &ROOT[..], std::slice::from_ref(&op)].concat();
        world.run(1, &ops)
    };
    assert_eq!(attempt(2, denying.clone()).0, Nfsstat4::SHARE_DENIED);
    let plain = open(0, 0, b"o", 0);
    let (_, results) = attempt(3, plain);
    let theirs = opened(&results).0;
    let ops = [&[sequence(session, 4)], &ROOT[..], &[file(), lock_new(0, theirs, 0)]].concat();
    let (status, results) = world.run(1, &ops);
    assert_eq!(status, Nfsstat4::DENIED);
    let Some(ResOp::Lock(LockRes4::Denied(denied))) = results.last() else { panic!("{results:?}") };
    assert_eq!((denied.owner.clientid, denied.length), (one, u64::MAX));
    let close = ArgOp::Close(CloseArgs4 { seqid: 0, open_stateid: theirs });
    let ops = [&[sequence(session, 5)], &ROOT[..], &[file(), close]].concat();
    assert_eq!(world.run(1, &ops).0, Nfsstat4::OK);
    world.clock.advance(Duration::from_secs(LEASE_S + 1));
    assert_eq!(attempt(6, denying).0, Nfsstat4::OK, "nobody is there to keep it");
    let gone = ArgOp::Renew(ClientidArgs4 { clientid: one });
    assert_eq!(world.run(0, &[gone]).0, Nfsstat4::EXPIRED);
}

#[test]
fn without_permission_to_read_a_file_its_locks_are_not_reported() {
    let mut world = World::new(Vec::new());
    let one = world.client40(b"a");
    let stateid = open_confirmed(&world, one);
    assert_eq!(world.at_root(&[file(), lock_new(one, stateid, 3)]).0, Nfsstat4::OK);
    world.cred = Cred { uid: 7, gid: 7, groups: Vec::new() };
    let two = world.client40(b"b");
    let test = ArgOp::Lockt(LocktArgs4 {
        locktype: locktype4::READ,
        offset: 0,
        length: 1,
        owner: StateOwner4 { clientid: two, owner: Opaque4(b"o") },
    });
    let set_mode = |mode| {
        let (shares, root) = (world.nfs.shares.load(), Cred::root());
        let fs = &shares.iter().next().expect("the share").fs;
        let (entry, _) = fs.lookup(cx(&root), &fs.root(), b"f").expect("the file");
        let set = SetAttr { mode: Some(mode), ..SetAttr::default() };
        assert!(fs.setattr(cx(&root), &entry.handle, &set, None).is_ok());
    };
    set_mode(0o600);
    assert_eq!(world.at_root(&[file(), test.clone()]).0, Nfsstat4::ACCESS);
    set_mode(0o644);
    assert_eq!(world.at_root(&[file(), test]).0, Nfsstat4::DENIED);
}

/// OPEN for reading can truncate, and alone is no conflict with an open that denies writing.
#[test]
fn a_file_is_not_truncated_while_its_holder_denies_writing() {
    let world = World::new(Vec::new());
    let (one, two) = (world.client40(b"a"), world.client40(b"b"));
    let truncate = |seqid| {
        let mut bytes = Vec::new();
        let attrs = Attrs4 { size: Some(0), ..Attrs4::default() };
        attrs.encode(&mut Writer::new(&mut bytes));
        let attrs = wire::xdr::decode_all(bytes.leak()).expect("attributes");
        ArgOp::Open(OpenArgs4 {
            seqid,
            share_access: share4::ACCESS_READ,
            share_deny: 0,
            owner: StateOwner4 { clientid: two, owner: Opaque4(b"o") },
            openhow: Openflag4::Create(Createhow4::Unchecked(attrs)),
            claim: OpenClaim4::Null(Component4(b"f")),
        })
    };
    let (_, results) = world.at_root(&[open(one, 1, b"o", share4::DENY_WRITE)]);
    let (open_stateid, _) = opened(&results);
    let confirm = ArgOp::OpenConfirm(OpenConfirmArgs4 { open_stateid, seqid: 2 });
    let (_, results) = world.at_root(&[file(), confirm]);
    let Some(ResOp::OpenConfirm(Res4::Ok(ok))) = results.last() else { panic!("{results:?}") };
    assert_eq!(world.at_root(&[file(), write(ok.stateid)]).0, Nfsstat4::OK);
    let size = || {
        let shares = world.nfs.shares.load();
        let fs = &shares.iter().next().expect("the share").fs;
        fs.lookup(cx(&world.cred), &fs.root(), b"f").map(|(entry, _)| entry.attr.size).ok()
    };
    assert_eq!(world.at_root(&[truncate(1)]).0, Nfsstat4::SHARE_DENIED);
    assert_eq!(size(), Some(4));
    let close = ArgOp::Close(CloseArgs4 { seqid: 3, open_stateid: ok.stateid });
    assert_eq!(world.at_root(&[file(), close]).0, Nfsstat4::OK);
    assert_eq!(world.at_root(&[truncate(2)]).0, Nfsstat4::OK);
    assert_eq!(size(), Some(0));
}

#[test]
fn a_41_compound_uses_the_current_stateid_and_is_repeated_from_its_slot() {
    let world = World::new(Vec::new());
    let session = world.session(b"a");
    let early = [&[sequence(session, 1)], &ROOT[..], &[open(0, 0, b"o", 0)]].concat();
    assert_eq!(world.run(1, &early).0, Nfsstat4::GRACE, "before RECLAIM_COMPLETE");
    let done = ArgOp::ReclaimComplete(ReclaimCompleteArgs4 { one_fs: false });
    assert_eq!(world.run(1, &[sequence(session, 2), done]).0, Nfsstat4::OK);
    let close = ArgOp::Close(CloseArgs4 { seqid: 0, open_stateid: Stateid4::CURRENT });
    let rest = [open(0, 0, b"o", 0), write(Stateid4::CURRENT), close];
    let ops = [&[sequence(session, 3)], &ROOT[..], &rest].concat();
    let first = world.bytes(1, &ops);
    assert_eq!(decode(first.clone()).0, Nfsstat4::OK);
    assert_eq!(world.bytes(1, &ops), first, "repeated, not done again");
    let destroy = ArgOp::DestroySession(DestroySessionArgs4 { sessionid: session });
    assert_eq!(world.run(1, &[destroy]).0, Nfsstat4::OK);
    assert_eq!(world.run(1, &[sequence(session, 4)]).0, Nfsstat4::BADSESSION);
}

/// A Linux client that reclaims has no handle to confirm with.
#[test]
fn a_reclaim_needs_no_confirmation() {
    let world = World::new(vec![Identity { name: (false, b"before".to_vec()), principal: 0 }]);
    let shares = world.nfs.shares.load();
    let fs = &shares.iter().next().expect("the share").fs;
    let how = CreateHow::Guarded(SetAttr::default());
    assert!(fs.create(cx(&world.cred), &fs.root(), b"f", how).is_ok());
    let clientid = world.client40(b"before");
    let reclaim = |seqid, claim| {
        ArgOp::Open(OpenArgs4 {
            seqid,
            share_access: share4::ACCESS_BOTH,
            share_deny: 0,
            owner: StateOwner4 { clientid, owner: Opaque4(b"o") },
            openhow: Openflag4::Nocreate(()),
            claim,
        })
    };
    let previous = OpenClaim4::Previous(delegation4::NONE);
    let (status, results) = world.at_root(&[file(), reclaim(7, previous)]);
    assert_eq!(status, Nfsstat4::OK);
    let (stateid, rflags) = opened(&results);
    assert_eq!(rflags & open4::RESULT_CONFIRM, 0);
    let close = ArgOp::Close(CloseArgs4 { seqid: 8, open_stateid: stateid });
    assert_eq!(world.at_root(&[file(), close]).0, Nfsstat4::OK);
}

#[test]
fn grace_refuses_new_opens_locks_and_special_stateids_until_it_is_over() {
    let world = World::new(vec![Identity { name: (false, b"before".to_vec()), principal: 0 }]);
    let id = world.client40(b"stranger");
    assert_eq!(world.at_root(&[open(id, 1, b"o", 0)]).0, Nfsstat4::GRACE);
    let create = |claim| {
        ArgOp::Open(OpenArgs4 {
            seqid: 2,
            share_access: share4::ACCESS_READ,
            share_deny: 0,
            owner: StateOwner4 { clientid: id, owner: Opaque4(b"o") },
            openhow: Openflag4::Nocreate(()),
            claim,
        })
    };
    let reclaim = create(OpenClaim4::Previous(delegation4::NONE));
    assert_eq!(world.at_root(&[reclaim]).0, Nfsstat4::NO_GRACE, "it held nothing before");
    world.clock.advance(Duration::from_secs(LEASE_S));
    assert_eq!(world.at_root(&[open(id, 3, b"o", 0)]).0, Nfsstat4::OK);
}

#[test]
fn an_expired_client_learns_it_and_may_come_again() {
    let (world, keeper) = World::recorded(Vec::new(), Arc::new(NoRecords));
    let id = world.client40(b"c");
    let info = keeper.client(id).expect("it is there");
    assert_eq!((info.minor, info.addresses.len()), (0, 1), "where it came from is known");
    let stateid = open_confirmed(&world, id);
    assert_eq!(world.at_root(&[file(), write(stateid)]).0, Nfsstat4::OK);
    assert!(keeper.expire(id) && !keeper.expire(id));
    assert_eq!(world.at_root(&[file(), write(stateid)]).0, Nfsstat4::EXPIRED);
    assert_eq!((keeper.client(id), keeper.client_counts().active), (None, 0));
    let again = world.client40(b"c");
    assert!(again != id && keeper.client(again).is_some());
}
