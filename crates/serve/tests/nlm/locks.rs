//! Conflicts between hosts, processes, readers, shares, and clients of other protocols.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use probe::op::{Protocol as Counted, flag};
use vfs::handle::Handle;
use vfs::locks::{Break, Caching, ClientKey, FileKey, Kind, Owner, Protocol, Range, Recall};
use wire::nlm4::*;

use crate::host::{COOKIE, Host, args};
use crate::server::{Server, World};

#[test]
fn hosts_and_processes_exclude_each_other() {
    let world = World::new(1);
    let (server, file) = (Server::start(&world), world.file("f", 0o644));
    let mut one = Host::new(server.addr, "one");
    let mut two = Host::new(server.addr, "two");
    assert_eq!(one.lock(&file, 10, 10), Nlm4Stat::GRANTED);
    assert_eq!(one.lock(&file, 10, 10), Nlm4Stat::GRANTED, "it has it already");
    assert_eq!(two.lock(&file, 19, 1), Nlm4Stat::DENIED);
    assert_eq!(two.lock(&file, 0, 0), Nlm4Stat::DENIED, "0 is to the end");
    assert_eq!(two.lock_shared(&file, 0, 11), Nlm4Stat::DENIED);
    assert_eq!(two.lock(&file, 20, 0), Nlm4Stat::GRANTED);
    one.svid = 2;
    assert_eq!(one.lock(&file, 10, 1), Nlm4Stat::DENIED, "another process");
    assert_eq!(one.unlock(&file, 10, 10), Nlm4Stat::GRANTED, "which has nothing to let go of");
    assert_eq!(two.lock(&file, 10, 1), Nlm4Stat::DENIED);
    one.svid = 1;
    assert_eq!(one.unlock(&file, 10, 5), Nlm4Stat::GRANTED);
    assert_eq!(two.lock_shared(&file, 10, 5), Nlm4Stat::GRANTED);
    assert_eq!(one.lock_shared(&file, 10, 5), Nlm4Stat::GRANTED, "readers share");
    assert_eq!(two.lock(&file, 15, 1), Nlm4Stat::DENIED, "the rest is still held");
}

#[test]
fn test_returns_the_conflicting_owner() {
    let world = World::new(1);
    let (server, file) = (Server::start(&world), world.file("f", 0o644));
    let mut one = Host::new(server.addr, "one");
    let mut two = Host::new(server.addr, "two");
    one.svid = 77;
    assert_eq!(one.lock(&file, 5, 0), Nlm4Stat::GRANTED);
    let ask = |host: &mut Host| {
        let alock = host.alock(&file, 0, 100);
        let reply = host.call(Proc::TEST, &TestArgs { cookie: COOKIE, exclusive: false, alock });
        let res: TestRes<'_> = reply.results();
        assert_eq!(res.cookie, COOKIE);
        match res.stat {
            TestReply::Denied(h) => {
                Some((h.exclusive, h.svid, h.oh.0.to_vec(), h.l_offset, h.l_len))
            }
            TestReply::Other(stat) => {
                assert_eq!(stat, Nlm4Stat::GRANTED);
                None
            }
        }
    };
    assert_eq!(ask(&mut two), Some((true, 77, b"one".to_vec(), 5, 0)));
    assert_eq!(ask(&mut one), None, "its own lock is not in its way");
    assert_eq!(server.nlm.hosts().len(), 1, "to ask leaves nothing behind");
}

#[test]
fn locks_of_nfs4_exclude_and_gone_clients_make_way() {
    let world = World::new(1);
    let (server, file) = (Server::start(&world), world.file("f", 0o644));
    let key = world.key(&file);
    let client = ClientKey { protocol: Protocol::Nfs4, id: 7 };
    let other = Owner::new(client, b"four").unwrap();
    server.locks.lock(key, &other, Range::to_end(0), Kind::Write).unwrap();
    let mut host = Host::new(server.addr, "one");
    assert_eq!(host.lock(&file, 0, 1), Nlm4Stat::DENIED);
    assert!(server.asked.lock().unwrap().iter().all(|owner| *owner == other));
    assert!(!server.asked.lock().unwrap().is_empty(), "it was asked to make way");
    server.gone.store(true, Ordering::SeqCst);
    assert_eq!(host.lock(&file, 0, 1), Nlm4Stat::GRANTED);
    let range = Range::new(0, 1).unwrap();
    let held = server.locks.test(key, &other, range, Kind::Read).expect("it excludes the other");
    assert_eq!(held.owner.client.protocol, Protocol::Nlm);
}

/// Counts recalls.
#[derive(Default)]
struct Recalls(AtomicUsize);

impl Recall for Recalls {
    fn recall(&self, _: FileKey, _: &Owner, _: Break) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn test(host: &mut Host, file: &Handle, exclusive: bool) -> Nlm4Stat {
    let alock = host.alock(file, 0, 9);
    let reply = host.call(Proc::TEST, &TestArgs { cookie: COOKIE, exclusive, alock });
    match reply.results::<TestRes<'_>>().stat {
        TestReply::Denied(_) => Nlm4Stat::DENIED,
        TestReply::Other(stat) => stat,
    }
}

/// Under a delegation a client of NFSv4 locks without a request: every request for a lock, also one
/// that does not wait, recalls it first, and sees what the holder sends before it returns it.
#[test]
fn what_is_locked_under_a_delegation_is_known_before_a_lock_is_granted() {
    type Attempt = fn(&mut Host, &Handle) -> Nlm4Stat;
    let attempts: [(&str, Attempt, [bool; 2]); 5] = [
        ("LOCK", |host, file| host.lock(file, 0, 9), [true, true]),
        ("LOCK that waits", |host, file| host.lock_waiting(file, 0, 9), [true, true]),
        ("LOCK, shared", |host, file| host.lock_shared(file, 0, 9), [false, true]),
        ("TEST", |host, file| test(host, file, true), [true, true]),
        ("TEST, shared", |host, file| test(host, file, false), [false, true]),
    ];
    let world = World::new(1);
    let server = Server::start(&world);
    let client = ClientKey { protocol: Protocol::Nfs4, id: 7 };
    let holder = Owner::new(client, b"four").unwrap();
    for (number, (what, attempt, meets)) in attempts.into_iter().enumerate() {
        for (meets, kind) in meets.into_iter().zip([Caching::READ, Caching::READ_WRITE]) {
            let file = world.file(&format!("f{number}{kind:?}"), 0o644);
            let (key, attr) = (world.key(&file), world.attr(&file));
            let recalls = Arc::new(Recalls::default());
            let notice = Arc::<Recalls>::clone(&recalls);
            server.locks.grant(0, &attr, &holder, kind, notice).expect("nothing else is held");
            let mut host = Host::new(server.addr, "one");
            let first = attempt(&mut host, &file);
            let said = format!("{what} with {kind:?}");
            assert_eq!(recalls.0.load(Ordering::SeqCst), usize::from(meets), "{said}");
            if !meets {
                assert_eq!(first, Nlm4Stat::GRANTED, "{said}");
                server.locks.release_client(client);
                continue;
            }
            assert_eq!(first, Nlm4Stat::DENIED_GRACE_PERIOD, "{said}: the client asks again");
            assert_eq!(attempt(&mut host, &file), first, "{said}: it is not returned");
            // The holder reports what it has locked, and returns it.
            let shared = kind == Caching::READ;
            let locked = if shared { Kind::Read } else { Kind::Write };
            server.locks.relock(key, &holder, Range::to_end(0), locked).expect("its own");
            assert!(server.locks.end_lease(key, &holder));
            let waits = what == "LOCK that waits";
            let denied = if waits { Nlm4Stat::BLOCKED } else { Nlm4Stat::DENIED };
            assert_eq!(attempt(&mut host, &file), denied, "{said}");
            if waits {
                assert_eq!(host.cancel(&file, 0, 9), Nlm4Stat::GRANTED);
            }
            server.locks.release_client(client);
        }
    }
}

#[test]
fn shares_deny() {
    let world = World::new(1);
    let (server, file) = (Server::start(&world), world.file("f", 0o644));
    let mut one = Host::new(server.addr, "one");
    let mut two = Host::new(server.addr, "two");
    // For reading, others may not write.
    assert_eq!(one.share(Proc::SHARE, &file, 1, 2), Nlm4Stat::GRANTED);
    assert_eq!(two.share(Proc::SHARE, &file, 2, 0), Nlm4Stat::DENIED);
    assert_eq!(two.share(Proc::SHARE, &file, 1, 0), Nlm4Stat::GRANTED);
    // A second one replaces the first.
    assert_eq!(one.share(Proc::SHARE, &file, 1, 0), Nlm4Stat::GRANTED);
    assert_eq!(two.share(Proc::SHARE, &file, 3, 0), Nlm4Stat::GRANTED);
    assert_eq!(one.share(Proc::SHARE, &file, 1, 2), Nlm4Stat::DENIED);
    assert_eq!(two.share(Proc::UNSHARE, &file, 0, 0), Nlm4Stat::GRANTED);
    assert_eq!(one.share(Proc::SHARE, &file, 1, 2), Nlm4Stat::GRANTED);
    assert_eq!(one.share(Proc::UNSHARE, &file, 0, 0), Nlm4Stat::GRANTED);
    assert_eq!(server.locks.counts().opens, 0);
    assert_eq!(one.share(Proc::SHARE, &file, 4, 0), Nlm4Stat::FAILED);
}

#[test]
fn a_lock_on_a_file_that_is_gone_can_be_let_go_of() {
    let world = World::new(1);
    let (server, file) = (Server::start(&world), world.file("f", 0o644));
    let mut host = Host::new(server.addr, "one");
    assert_eq!(host.lock(&file, 0, 0), Nlm4Stat::GRANTED);
    world.remove("f");
    assert_eq!(host.lock(&file, 0, 0), Nlm4Stat::STALE_FH);
    assert_eq!(host.unlock(&file, 0, 0), Nlm4Stat::GRANTED);
    assert_eq!(server.locks.counts().locks, 0);
    assert_eq!(host.unlock(&file, 0, 0), Nlm4Stat::STALE_FH, "now it is forgotten");
}

#[test]
fn a_repeated_call_is_answered_and_not_done_again() {
    let world = World::new(1);
    let (server, file) = (Server::start(&world), world.file("f", 0o644));
    let mut one = Host::new(server.addr, "one");
    let mut two = Host::new(server.addr, "two");
    assert_eq!(one.lock(&file, 0, 0), Nlm4Stat::GRANTED);
    let alock = one.alock(&file, 0, 0);
    let unlock = UnlockArgs { cookie: COOKIE, alock };
    let record = one.client.record(NLM_PROGRAM, NLM_V4, Proc::UNLOCK.0, &unlock);
    one.client.send(&record);
    let first = one.client.receive();
    assert_eq!(one.lock(&file, 0, 0), Nlm4Stat::GRANTED);
    // A copy that was late lets nothing go.
    let mut again = Host::new(server.addr, "one");
    again.client.send(&record);
    assert_eq!(again.client.receive(), first);
    assert_eq!(two.lock(&file, 0, 0), Nlm4Stat::DENIED);
}

#[test]
fn operations_are_counted() {
    let world = World::new(1);
    let (server, file) = (Server::start(&world), world.file("f", 0o644));
    let mut one = Host::new(server.addr, "one");
    let mut two = Host::new(server.addr, "two");
    one.lock(&file, 0, 0);
    two.lock(&file, 0, 0);
    one.notify("one");
    let mut records = server.records(3);
    records.sort_by_key(|r| (r.op, r.status));
    let ops: Vec<_> = records.iter().map(|r| (r.op, r.status)).collect();
    let sm_notify = probe::labels::op_number(Counted::Nlm, "sm_notify").unwrap();
    assert_eq!(ops, [(2, 0), (2, 1), (sm_notify, 0)]);
    assert_eq!(records[0].share, 1);
    assert_ne!(records[0].flags & flag::HAS_FILE, 0);
    assert_eq!(records[0].file, records[1].file);
    assert_eq!(records[2].flags & flag::HAS_FILE, 0);
}

#[test]
fn garbage_and_what_is_not_there() {
    let world = World::new(1);
    let server = Server::start(&world);
    let mut host = Host::new(server.addr, "one");
    let file = world.file("f", 0o644);
    for (proc, expect) in [(16, "ProcUnavail"), (24, "ProcUnavail"), (2, "GarbageArgs")] {
        let reply = host.call(Proc(proc), &7u32);
        let (body, _) = reply.open();
        assert!(format!("{body:?}").contains(expect), "{proc}: {body:?}");
    }
    host.call(Proc::NULL, &()).results::<()>();
    // The server itself waits for no locks.
    let alock = host.alock(&file, 0, 0);
    let granted = TestArgs { cookie: COOKIE, exclusive: true, alock };
    assert_eq!(host.stat(Proc::GRANTED, &granted), Nlm4Stat::DENIED);
    let alock = Nlm4Lock { caller_name: HostName(b""), ..alock };
    assert_eq!(host.stat(Proc::LOCK, &args(alock)), Nlm4Stat::DENIED_NOLOCKS, "nobody");
    assert_eq!(server.locks.counts().locks, 0);
}
