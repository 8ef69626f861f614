//! A panic in a call of NLM fails that call, with the cookie by which its client knows it: in its
//! handler, while it writes down a host, or when a lock comes to one that waited for it.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, PoisonError};

use vfs::locks::{ClientKey, Kind, Owner, Protocol, Range, Woken};
use vfs::recovery::{ClientId, ClientRecords, FileRecords, RecordError};
use wire::nlm4::*;
use wire::nsm;
use wire::rpc::{Accepted, ReplyBody};

use crate::host::{COOKIE, Host, Services, args};
use crate::planted::Planted;
use crate::server::{Server, World, wait_for};

/// Waits until this number of panics is shown.
fn shown(server: &Server, count: u64) {
    wait_for("panics are shown", || (server.hub.gauges().panics.get() == count).then_some(()));
}

#[test]
fn a_panic_fails_its_call_and_no_other() {
    let world = World::new(1);
    let file = world.file("f", 0o644);
    let fs = Planted::over(world.fs.clone());
    let server = Server::over(&world, fs.clone());
    let mut host = Host::new(server.addr, "one");
    for (n, blocks) in [false, true].into_iter().enumerate() {
        fs.blocks.store(blocks, SeqCst);
        fs.plant("access");
        assert_eq!(host.lock(&file, 0, 1), Nlm4Stat::FAILED, "pooled: {blocks}");
        assert_eq!(host.lock(&file, 0, 1), Nlm4Stat::GRANTED);
        fs.plant("access");
        let alock = host.alock(&file, 0, 100);
        let reply = host.call(Proc::TEST, &TestArgs { cookie: COOKIE, exclusive: false, alock });
        let res: TestRes<'_> = reply.results();
        assert_eq!((res.cookie, res.stat), (COOKIE, TestReply::Other(Nlm4Stat::FAILED)));
        fs.plant("access");
        assert_eq!(host.share(Proc::SHARE, &file, 1, 0), Nlm4Stat::FAILED);
        assert_eq!(host.share(Proc::SHARE, &file, 1, 0), Nlm4Stat::GRANTED);
        shown(&server, 3 * (n as u64 + 1));
    }
}

/// The reply to a `*_MSG` is a separate call.
#[test]
fn a_panic_in_a_message_is_its_answer() {
    let services = Services::start();
    let world = World::new(services.portmap);
    let file = world.file("f", 0o644);
    let fs = Planted::over(world.fs.clone());
    let server = Server::over(&world, fs.clone());
    let mut host = Host::new(server.addr, "one");
    for (n, blocks) in [false, true].into_iter().enumerate() {
        fs.blocks.store(blocks, SeqCst);
        fs.plant("access");
        for expected in [Nlm4Stat::FAILED, Nlm4Stat::GRANTED] {
            let alock = host.alock(&file, 0, 1);
            host.call(Proc::LOCK_MSG, &args(alock)).results::<()>();
            let heard = services.receive();
            assert_eq!(heard.proc, Proc::LOCK_RES.0);
            let res: Nlm4Res<'_> = heard.decode();
            assert_eq!((res.cookie, res.stat), (COOKIE, expected), "pooled: {blocks}");
        }
        shown(&server, n as u64 + 1);
    }
}

/// Records of hosts, of which a call panics where a test wants it.
struct PlantedRecords {
    inner: FileRecords,
    next: Mutex<Option<&'static str>>,
}

impl PlantedRecords {
    fn over(inner: FileRecords) -> Arc<Self> {
        Arc::new(Self { inner, next: Mutex::default() })
    }

    /// The next call of this name panics.
    fn plant(&self, call: &'static str) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(call);
    }

    fn strike(&self, here: &str) {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let planted = next.take_if(|call| *call == here);
        drop(next);
        assert!(planted.is_none(), "planted in {here}");
    }
}

impl ClientRecords for PlantedRecords {
    fn known(&self) -> Vec<ClientId> {
        self.strike("known");
        self.inner.known()
    }
    fn may_reclaim(&self, client: &ClientId) -> bool {
        self.inner.may_reclaim(client)
    }
    fn record(&self, client: &ClientId) -> Result<(), RecordError> {
        self.strike("record");
        self.inner.record(client)
    }
    fn forget(&self, client: &ClientId) -> Result<(), RecordError> {
        self.strike("forget");
        self.inner.forget(client)
    }
    fn reclaim_complete(&self, client: &ClientId) -> bool {
        self.inner.reclaim_complete(client)
    }
    fn end_of_grace(&self) -> Result<(), RecordError> {
        self.inner.end_of_grace()
    }
}

/// What NLM brings to disk are its records of hosts: before the first lock of one is granted, and
/// when it has restarted.
#[test]
fn a_panic_in_a_record_on_disk_fails_its_call_and_no_other() {
    let world = World::new(1);
    let file = world.file("f", 0o644);
    let records = PlantedRecords::over(world.records());
    let server = Server::recording(&world, world.fs.clone(), records.clone());
    let (mut one, mut two) = (Host::new(server.addr, "one"), Host::new(server.addr, "two"));
    records.plant("record");
    assert_eq!(one.lock(&file, 0, 1), Nlm4Stat::FAILED);
    assert_eq!(
        server.locks.counts().locks,
        0,
        "nothing is granted to a host that is not on record"
    );
    assert_eq!(two.lock(&file, 1, 1), Nlm4Stat::GRANTED);
    assert_eq!(one.lock(&file, 0, 1), Nlm4Stat::GRANTED);
    for call in ["forget", "known"] {
        records.plant(call);
        let mon_name = nsm::SmName(b"two");
        let notify = nsm::NotifyArgs { mon_name, state: 3 };
        let (prog, vers, proc) = (nsm::NSM_PROGRAM, nsm::NSM_V1, nsm::Proc::NOTIFY.0);
        let record = two.client.record(prog, vers, proc, &notify);
        two.client.send(&record);
        let reply = two.client.receive();
        let (body, _) = reply.open();
        let failed = matches!(body, ReplyBody::Accepted { stat: Accepted::SystemErr, .. });
        assert!(failed, "{call}: {body:?}");
        assert_eq!(two.lock(&file, 1, 1), Nlm4Stat::GRANTED, "{call}");
    }
    assert_eq!(one.lock_shared(&file, 1, 1), Nlm4Stat::DENIED, "it is on record again");
    shown(&server, 3);
}

/// The grant of a lock that was waited for is reported on the thread of the unlock.
#[test]
fn a_panic_in_a_grant_fails_neither_the_unlock_nor_other_grants() {
    let services = Services::start();
    let world = World::new(services.portmap);
    let (server, file) = (Server::start(&world), world.file("f", 0o644));
    let (mut one, mut two) = (Host::new(server.addr, "one"), Host::new(server.addr, "two"));
    assert_eq!(one.lock(&file, 0, 10), Nlm4Stat::GRANTED);
    let other = Owner::new(ClientKey { protocol: Protocol::Nfs4, id: 7 }, b"four").expect("short");
    let (key, range) = (world.key(&file), Range::new(0, 1).expect("good"));
    let woken: Woken = Box::new(|_| panic!("planted"));
    server.locks.lock_or_wait(key, &other, range, Kind::Write, woken).expect("it waits");
    assert_eq!(two.lock_waiting(&file, 5, 1), Nlm4Stat::BLOCKED);
    assert_eq!(one.unlock(&file, 0, 10), Nlm4Stat::GRANTED);
    let heard = services.receive();
    assert_eq!(heard.proc, Proc::GRANTED.0);
    assert_eq!(heard.decode::<TestArgs<'_>>().alock, two.alock(&file, 5, 1));
    wait_for("it is acknowledged", || (server.nlm.blocked() == 0).then_some(()));
    assert_eq!(one.lock(&file, 5, 1), Nlm4Stat::DENIED, "it has it");
    assert_eq!(one.lock(&file, 8, 1), Nlm4Stat::GRANTED);
    shown(&server, 1);
}
