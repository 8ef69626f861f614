//! What only NFSv4.2 does to files is on disk when it is acknowledged: the power is cut right after
//! the reply, on a disk that loses what was not flushed. Leaving out any one of these flushes must
//! be noticed. Clients reclaim their open and locked files, and no other client gets them first.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use e2e::disk::Disk;
use e2e::nfs3;
use e2e::nfs4::files::Opened;
use e2e::nfs4::pipe::Pipe;
use e2e::nfs4::{Client, Failure, Outcome, fattr, putfh};
use e2e::scratch::{Scratch, make_folder};
use e2e::server::{Options, Server};
use e2e::skip;
use wire::nfs4::{
    ArgOp, Attrs4, Component4, LocktArgs4, Nfsace4, Nfsstat4, Opaque4, OpenArgs4, OpenClaim4,
    Openflag4, ReadArgs4, ReadPlusArgs4, SeekArgs4, SetattrArgs4, StableHow4, StateOwner4,
    Stateid4, Utf8str, WriteArgs4, acemask4, acetype4, attr4, content4, locktype4, share4,
};
use wire::nlm4::{self, HostName, LockArgs, Netobj, Nlm4Lock, Nlm4Share, Nlm4Stat, ShareArgs};

/// The kind of file system that supports all of it: it shares blocks, stores access control lists,
/// and its journal is written on request, or half a minute later.
const KIND: &str = "xfs";
/// Times that each is tried: once to see it kept.
const TRIES: u64 = 3;
/// Times that each is tried until its loss is seen: a program that calls sync(2), or drops the
/// kernel's caches, has the journal of each file system written.
const TRIES_UNTIL_LOST: u64 = 20;
/// Bytes of the files.
const SIZE: u64 = 64 << 10;
/// The uid and gid of the client.
const USER: (u32, u32) = (1000, 1000);

/// What is done last before the power goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Allocate,
    Deallocate,
    Copy,
    Clone,
    Setxattr,
    Removexattr,
    Acl,
}

impl Last {
    const ALL: [Self; 7] = [
        Self::Allocate,
        Self::Deallocate,
        Self::Copy,
        Self::Clone,
        Self::Setxattr,
        Self::Removexattr,
        Self::Acl,
    ];

    /// The flush that it needs, by the name that `PLIMSOLL_TEST_SKIP_FLUSH` takes.
    fn flush(self) -> &'static str {
        match self {
            Self::Allocate => "allocate",
            Self::Deallocate => "deallocate",
            Self::Copy => "copy",
            Self::Clone => "clone",
            Self::Setxattr | Self::Removexattr => "xattr",
            Self::Acl => "acl",
        }
    }
}

/// The server on such a disk. Its state lies there too, but where only one flush is looked at.
struct World {
    server: Option<Server>,
    disk: Disk,
    scratch: Scratch,
    skip_flush: Option<&'static str>,
    state_on_disk: bool,
    round: u64,
}

impl World {
    fn new(skip_flush: Option<&'static str>) -> Result<Self, String> {
        let disk = Disk::new(KIND)?;
        make_folder(&disk.path().join("share"), Some(USER.0));
        make_folder(&disk.path().join("state"), None);
        let scratch = Scratch::new("crash-v4");
        Ok(Self { server: None, disk, scratch, skip_flush, state_on_disk: false, round: 0 })
    }

    fn share(&self) -> PathBuf {
        self.disk.path().join("share")
    }

    fn state(&self) -> PathBuf {
        if self.state_on_disk {
            self.disk.path().join("state")
        } else {
            self.scratch.folder("state", None)
        }
    }

    fn serve(&mut self) -> SocketAddr {
        let (share, state) = (self.share(), self.state());
        let mut options = Options::new(&share, &state);
        if let Some(site) = self.skip_flush {
            options.env.push(("PLIMSOLL_TEST_SKIP_FLUSH", site.to_owned()));
        }
        let server = Server::start(&options);
        let address: SocketAddr = (Ipv4Addr::LOCALHOST, server.nfs_port()).into();
        self.server = Some(server);
        self.round += 1;
        address
    }

    fn start(&mut self) -> Client {
        let address = self.serve();
        let mut client = connect(address, "crash", self.round);
        // It alone is on record from before: with this the grace period is over.
        client.reclaim_complete().expect("RECLAIM_COMPLETE");
        client
    }

    fn crash(&mut self) {
        self.disk.cut_power();
        drop(self.server.take());
        self.disk.crash();
    }

    /// One attempt: what was found instead of what was acknowledged, if anything.
    fn attempt(&mut self, last: Last, number: u64) -> Option<String> {
        let mut client = self.start();
        let root = client.walk("/export/share").expect("the share");
        let names = (format!("source{number}"), format!("target{number}"));
        let open = |client: &mut Client, name: &str, create| {
            client.open(&root, name, "owner", create).unwrap_or_else(|e| panic!("{name}: {e:?}"))
        };
        let source = open(&mut client, &names.0, true);
        let target = open(&mut client, &names.1, true);
        prepare(&mut client, &source, &target).expect("what is there before");
        act(last, &mut client, &source, &target).unwrap_or_else(|e| panic!("{last:?}: {e:?}"));
        self.crash();
        let mut client = self.start();
        let target = open(&mut client, &names.1, false);
        let found = look(last, &mut client, &target).expect("a look at it");
        let acknowledged = expected(last);
        drop(self.server.take());
        (found != acknowledged).then(|| format!("{found}, acknowledged was {acknowledged}"))
    }
}

fn connect(address: SocketAddr, name: &str, verifier: u64) -> Client {
    Client::connect(address, USER, name, verifier).expect("a session")
}

fn bytes(of: u8) -> Vec<u8> {
    vec![of; SIZE as usize]
}

fn prepare(client: &mut Client, source: &Opened, target: &Opened) -> Outcome<()> {
    client.write(source, 0, &bytes(b's'))?;
    client.setxattr(&target.handle, "old", b"was here")?;
    client.write(target, 0, &bytes(b't'))
}

fn act(last: Last, client: &mut Client, source: &Opened, target: &Opened) -> Outcome<()> {
    match last {
        Last::Allocate => client.allocate(target, 0, 2 * SIZE),
        Last::Deallocate => client.deallocate(target, 0, SIZE),
        Last::Copy => client.copy(source, target, SIZE).map(|copied| assert_eq!(copied, SIZE)),
        Last::Clone => client.clone_file(source, target),
        Last::Setxattr => client.setxattr(&target.handle, "new", b"value"),
        Last::Removexattr => client.removexattr(&target.handle, "old"),
        Last::Acl => client.set_acl(&target.handle, list()),
    }
}

/// A list that mode bits cannot say: one more user may read.
fn list() -> Vec<Nfsace4<'static>> {
    let read = acemask4::READ_DATA | acemask4::READ_ATTRIBUTES | acemask4::READ_ACL;
    let write = acemask4::WRITE_DATA | acemask4::APPEND_DATA;
    let entry = |who: &'static str, access_mask| Nfsace4 {
        kind: acetype4::ALLOWED,
        flag: 0,
        access_mask,
        who: Utf8str(who.as_bytes()),
    };
    vec![entry("OWNER@", read | write), entry("1234", read), entry("GROUP@", read)]
}

fn look(last: Last, client: &mut Client, target: &Opened) -> Outcome<String> {
    Ok(match last {
        Last::Allocate => {
            let size = client.getattr(&target.handle, &[attr4::SIZE], |a| a.size)?;
            format!("{} bytes", size.unwrap_or_default())
        }
        Last::Deallocate | Last::Copy | Last::Clone => {
            let data = client.read(target, 0, SIZE as u32)?;
            let same = data.first().filter(|first| data.iter().all(|b| b == *first));
            format!("{} bytes of {same:?}", data.len())
        }
        Last::Setxattr => format!("{:?}", client.getxattr(&target.handle, "new")?),
        Last::Removexattr => format!("{:?}", client.getxattr(&target.handle, "old")?),
        Last::Acl => {
            let other = client.acl(&target.handle)?;
            format!("1234 is named: {}", other.iter().any(|who| who == "1234"))
        }
    })
}

fn expected(last: Last) -> String {
    match last {
        Last::Allocate => format!("{} bytes", 2 * SIZE),
        Last::Deallocate => format!("{SIZE} bytes of Some(0)"),
        Last::Copy | Last::Clone => format!("{SIZE} bytes of {:?}", Some(b's')),
        Last::Setxattr => format!("{:?}", Some(b"value")),
        Last::Removexattr => "None".to_owned(),
        Last::Acl => "1234 is named: true".to_owned(),
    }
}

#[test]
fn what_4_2_does_is_on_disk_when_acknowledged() {
    let mut world = match World::new(None) {
        Ok(world) => world,
        Err(why) => skip!("crash-v4", "{why}"),
    };
    for last in Last::ALL {
        for number in 0..TRIES {
            let name = last as u64 * TRIES + number;
            if let Some(lost) = world.attempt(last, name) {
                panic!("{last:?}: {lost}");
            }
        }
    }
    println!("crash-v4: {} crashes, nothing lost", world.round / 2);
}

#[test]
fn leaving_out_any_one_flush_of_4_2_is_noticed() {
    for last in Last::ALL {
        let site = last.flush();
        let mut world = match World::new(Some(site)) {
            Ok(world) => world,
            Err(why) => skip!("crash-v4-each-flush", "{why}"),
        };
        let noticed = (0..TRIES_UNTIL_LOST).find_map(|number| world.attempt(last, number));
        match noticed {
            Some(what) => println!("without {site}: {last:?} was lost: {what}"),
            None => panic!("without the flush {site} nothing of {last:?} was lost"),
        }
    }
}

/// What a call is refused with.
fn refusal<T: std::fmt::Debug>(outcome: Outcome<T>) -> Nfsstat4 {
    match outcome {
        Err(Failure::Status(status)) => status,
        other => panic!("not refused: {other:?}"),
    }
}

/// Everything that must wait for the end of the grace period, one by one; `more` is a file, too.
fn all_wait(client: &mut Client, root: &[u8], file: &[u8], more: &[u8]) {
    let anonymous = Opened { handle: file.to_vec(), stateid: Stateid4::ANONYMOUS };
    let from = Opened { handle: more.to_vec(), stateid: Stateid4::ANONYMOUS };
    let bypass = Opened { handle: file.to_vec(), stateid: Stateid4::BYPASS };
    let grace = Nfsstat4::GRACE;
    assert_eq!(refusal(client.open(root, "file", "new", false)), grace, "OPEN");
    assert_eq!(refusal(client.open(root, "other", "new", true)), grace, "OPEN that creates");
    assert_eq!(refusal(client.read(&anonymous, 0, 1)), grace, "READ");
    assert_eq!(refusal(client.read(&bypass, 0, 1)), grace, "READ past locks");
    assert_eq!(refusal(client.write(&anonymous, 0, b"x")), grace, "WRITE");
    assert_eq!(refusal(client.set_size(file, 0)), grace, "SETATTR of the size");
    assert_eq!(refusal(client.allocate(&anonymous, 0, 1)), grace, "ALLOCATE");
    assert_eq!(refusal(client.deallocate(&anonymous, 0, 1)), grace, "DEALLOCATE");
    assert_eq!(refusal(client.copy(&from, &anonymous, 1)), grace, "COPY");
    assert_eq!(refusal(client.clone_file(&from, &anonymous)), grace, "CLONE");
    assert_eq!(refusal(client.lock_test(file, "new", (0, 1))), grace, "LOCKT");
    let stateid = Stateid4::ANONYMOUS;
    let open = open_by_handle(client.id);
    let read_plus = ArgOp::ReadPlus(ReadPlusArgs4 { stateid, offset: 0, count: 1 });
    let seek = ArgOp::Seek(SeekArgs4 { stateid, offset: 0, what: content4::DATA });
    for (what, op) in [("OPEN by handle", open), ("READ_PLUS", read_plus), ("SEEK", seek)] {
        assert_eq!(refusal(client.at(file, &[op])), grace, "{what}");
    }
}

fn open_by_handle(clientid: u64) -> ArgOp<'static> {
    ArgOp::Open(OpenArgs4 {
        seqid: 1,
        share_access: share4::ACCESS_READ,
        share_deny: share4::DENY_NONE,
        owner: StateOwner4 { clientid, owner: Opaque4(b"new") },
        openhow: Openflag4::Nocreate(()),
        claim: OpenClaim4::Fh(()),
    })
}

/// The same over 4.0, and what NFSv3 has of it: its locks.
fn older_wait(address: SocketAddr, root: &[u8], file: &[u8]) {
    let mut pipe = Pipe::connect(address, 0, "older stranger", 1).expect("a client id");
    let owner = StateOwner4 { clientid: pipe.id, owner: Opaque4(b"new") };
    let open = ArgOp::Open(OpenArgs4 {
        seqid: 1,
        share_access: share4::ACCESS_READ,
        share_deny: share4::DENY_NONE,
        owner,
        openhow: Openflag4::Nocreate(()),
        claim: OpenClaim4::Null(Component4(b"file")),
    });
    let (stateid, offset) = (Stateid4::ANONYMOUS, 0);
    let (stable, data) = (StableHow4::UNSTABLE, &b"x"[..]);
    let mut buf = Vec::new();
    let obj_attributes = fattr(&Attrs4 { size: Some(0), ..Default::default() }, &mut buf);
    let test = LocktArgs4 { locktype: locktype4::READ, offset, length: 1, owner };
    let refused = [
        ("OPEN", root, open),
        ("READ", file, ArgOp::Read(ReadArgs4 { stateid, offset, count: 1 })),
        ("WRITE", file, ArgOp::Write(WriteArgs4 { stateid, offset, stable, data })),
        ("SETATTR", file, ArgOp::Setattr(SetattrArgs4 { stateid, obj_attributes })),
        ("LOCKT", file, ArgOp::Lockt(test)),
    ];
    for (what, at, op) in refused {
        let reply = pipe.one(&[putfh(at), op]).expect("an answer");
        assert_eq!(reply.status, Nfsstat4::GRACE, "{what} over 4.0");
    }

    let mut rpc = nfs3::Client::connect(address, USER.0, USER.1).expect("a connection");
    let (caller_name, fh, oh) = (HostName(b"host"), Netobj(file), Netobj(b"new"));
    let alock = Nlm4Lock { caller_name, fh, oh, svid: 1, l_offset: 1000, l_len: 1 };
    let (cookie, block, exclusive, reclaim) = (Netobj(b"cookie"), false, true, false);
    let mut refused = |proc: nlm4::Proc, args: &dyn Fn(&mut nfs3::Client, u32) -> Vec<u8>| {
        let answer = args(&mut rpc, proc.0);
        // The cookie is one of 6 bytes.
        let stat = answer.get(12..16).and_then(|stat| stat.try_into().ok());
        let stat = stat.map(|stat| Nlm4Stat(u32::from_be_bytes(stat)));
        assert_eq!(stat, Some(Nlm4Stat::DENIED_GRACE_PERIOD), "{proc:?}");
    };
    let call = |rpc: &mut nfs3::Client, proc, args: &LockArgs<'_>| {
        rpc.call((nlm4::NLM_PROGRAM, nlm4::NLM_V4), proc, args).expect("an answer")
    };
    let lock = LockArgs { cookie, block, exclusive, alock, reclaim, state: 1 };
    refused(nlm4::Proc::LOCK, &|rpc, proc| call(rpc, proc, &lock));
    refused(nlm4::Proc::NM_LOCK, &|rpc, proc| call(rpc, proc, &lock));
    let share = Nlm4Share { caller_name, fh, oh, mode: 1, access: 1 };
    refused(nlm4::Proc::SHARE, &|rpc, proc| {
        let args = ShareArgs { cookie, share, reclaim };
        rpc.call((nlm4::NLM_PROGRAM, nlm4::NLM_V4), proc, &args).expect("an answer")
    });
}

#[test]
fn opens_and_locks_are_taken_back_after_a_crash() {
    let mut world = match World::new(None) {
        Ok(world) => world,
        Err(why) => skip!("crash-v4-reclaim", "{why}"),
    };
    world.state_on_disk = true;
    let address = world.serve();
    let mut holder = connect(address, "holder", 7);
    holder.reclaim_complete().expect("RECLAIM_COMPLETE");
    let root = holder.walk("/export/share").expect("the share");
    let file = holder.open(&root, "file", "owner", true).expect("a file");
    holder.write(&file, 0, b"held").expect("WRITE");
    holder.lock(&file, "locker", (0, 100), false).expect("LOCK");
    let more = holder.open(&root, "more", "owner", true).expect("a file").handle;

    world.crash();
    let address = world.serve();
    let mut holder = connect(address, "holder", 7);
    let mut stranger = connect(address, "stranger", 1);
    let root = stranger.walk("/export/share").expect("names can be walked");
    let handle = stranger.lookup(&root, "file").expect("and looked up");
    assert_eq!(handle, file.handle);
    all_wait(&mut stranger, &root, &handle, &more);
    older_wait(address, &root, &handle);
    let refused = refusal(stranger.reclaim_open(&handle, "owner"));
    assert_eq!(refused, Nfsstat4::NO_GRACE, "who was not there has nothing to take back");
    // That a stranger is done changes nothing.
    stranger.reclaim_complete().expect("RECLAIM_COMPLETE");
    all_wait(&mut stranger, &root, &handle, &more);

    let file = holder.reclaim_open(&handle, "owner").expect("what was open");
    let locks = holder.lock(&file, "locker", (0, 100), true).expect("what was locked");
    all_wait(&mut holder, &root, &handle, &more);
    let more = holder.lock_more(&file, locks, (200, 100));
    assert_eq!(refusal(more), Nfsstat4::GRACE, "a new LOCK");
    assert_eq!(holder.read(&file, 0, 4).expect("its own file"), b"held");

    holder.reclaim_complete().expect("RECLAIM_COMPLETE");
    let other = stranger.open(&root, "file", "owner", false).expect("the grace period is over");
    let taken = stranger.lock(&other, "locker", (50, 10), false);
    assert_eq!(refusal(taken), Nfsstat4::DENIED);
    assert!(!stranger.lock_test(&handle, "locker", (99, 1)).expect("LOCKT"));
    stranger.lock(&other, "locker", (100, 10), false).expect("what nobody holds");
    let late = refusal(holder.reclaim_open(&handle, "late"));
    assert_eq!(late, Nfsstat4::NO_GRACE);
    holder.unlock(&handle, locks, (0, 100)).expect("LOCKU");
    assert!(stranger.lock_test(&handle, "locker", (0, 100)).expect("LOCKT"));
}
