//! Restarts of hosts and of the server: released locks, reclaims, notifications.

use std::net::IpAddr;
use std::time::Duration;

use vfs::handle::Handle;
use vfs::locks::{Protocol, Refused};
use wire::nlm4::*;
use wire::nsm;

use crate::host::{COOKIE, Host, NEXT_STATE, Services, args, notify_by_datagram};
use crate::server::{GRACE, Server, World, wait_for};

/// A server with a file; its calls are not answered.
fn alone() -> (World, Server, Handle) {
    let world = World::new(1);
    let (server, file) = (Server::start(&world), world.file("f", 0o644));
    (world, server, file)
}

/// A server with a file, and hosts that answer its calls.
fn answering() -> (Services, World, Server, Handle) {
    let services = Services::start();
    let world = World::new(services.portmap);
    let (server, file) = (Server::start(&world), world.file("f", 0o644));
    (services, world, server, file)
}

#[test]
fn a_host_that_has_restarted_holds_nothing() {
    let (_world, server, file) = alone();
    let mut one = Host::new(server.addr, "one.example");
    let mut two = Host::new(server.addr, "two.example");
    one.lock(&file, 0, 10);
    one.share(Proc::SHARE, &file, 1, 0);
    two.lock(&file, 10, 10);
    two.lock_waiting(&file, 0, 10);
    assert_eq!(server.nlm.blocked(), 1);
    two.notify("TWO");
    assert_eq!(server.nlm.blocked(), 0);
    let counts = server.locks.counts();
    assert_eq!((counts.locks, counts.opens, counts.waiting), (1, 1, 0), "the other's stay");
    two.notify("three");
    assert_eq!(server.locks.counts().locks, 1, "nobody of that name is there");
    notify_by_datagram(server.udp, "one");
    wait_for("it is let go of", || (server.locks.counts().locks == 0).then_some(()));
    assert_eq!(server.locks.counts().opens, 0);
}

/// Hosts notify in the background when they boot, and repeat it until the reply arrives.
#[test]
fn a_notification_that_is_late_or_repeated_releases_nothing_newer() {
    let (_services, world, server, file) = answering();
    let (new, both) = (world.file("new", 0o644), world.file("both", 0o644));
    let mut one = Host::new(server.addr, "one.example");
    one.lock(&file, 0, 10);
    one.lock(&both, 0, 10);
    // It has restarted, and locks before its notification is here.
    let lock_now = |one: &mut Host, file: &Handle| {
        let alock = one.alock(file, 20, 10);
        one.stat(Proc::LOCK, &LockArgs { state: NEXT_STATE, ..args(alock) })
    };
    for file in [&new, &both] {
        assert_eq!(lock_now(&mut one, file), Nlm4Stat::GRANTED);
    }
    one.notify("one");
    assert_eq!(server.locks.counts().locks, 1, "what is new, but on no file with older locks");
    assert_eq!(lock_now(&mut one, &both), Nlm4Stat::GRANTED);
    notify_by_datagram(server.udp, "one");
    one.notify("one");
    assert_eq!(server.locks.counts().locks, 2, "nothing of it is older");
    drop((one, server));

    // It is on record still.
    let server = Server::start(&world);
    let mut one = Host::new(server.addr, "one.example");
    assert_eq!(one.reclaim(&new, 20, 10), Nlm4Stat::GRANTED);
    one.notify("one");
    assert_eq!(server.locks.counts().locks, 0, "locked in another state");
}

/// Any user of a host can send what its programs send, but not from a reserved port.
#[test]
fn no_host_is_believed_from_a_port_that_is_not_reserved() {
    let mut world = World::new(1);
    world.reserved_ports = true;
    let (server, file) = (Server::start(&world), world.file("f", 0o644));
    let mut one = Host::new(server.addr, "one.example");
    one.lock(&file, 0, 10);
    notify_by_datagram(server.udp, "one");
    one.notify("one");
    let args = NotifyArgs { name: HostName(b"one.example"), state: 0 };
    one.call(Proc::FREE_ALL, &args).results::<()>();
    assert_eq!(server.locks.counts().locks, 1);
}

#[test]
fn free_all_is_the_same() {
    let (_world, server, file) = alone();
    let mut one = Host::new(server.addr, "pc");
    one.lock(&file, 0, 10);
    one.call(Proc::FREE_ALL, &NotifyArgs { name: HostName(b"pc"), state: 0 }).results::<()>();
    assert_eq!(server.locks.counts().locks, 0);
}

#[test]
fn after_a_restart_only_recorded_hosts_reclaim() {
    let (services, world, server, file) = answering();
    let before = server.nlm.state();
    assert_eq!(before % 2, 1);
    assert!(!server.locks.in_grace(), "there is nobody to wait for");
    assert_eq!(Host::new(server.addr, "one").lock(&file, 0, 10), Nlm4Stat::GRANTED);
    drop(server);

    let server = Server::start(&world);
    let state = server.nlm.state();
    assert_eq!(state, before + 2);
    // By the address that it knows, and by our name.
    for name in ["127.0.0.1", "server.example"] {
        let heard = services.receive();
        assert_eq!((heard.prog, heard.proc), (nsm::NSM_PROGRAM, nsm::Proc::NOTIFY.0));
        let notification: nsm::NotifyArgs<'_> = heard.decode();
        assert_eq!(notification, nsm::NotifyArgs { mon_name: nsm::SmName(name.as_bytes()), state });
    }
    let mut one = Host::new(server.addr, "one");
    let mut two = Host::new(server.addr, "two");
    assert!(server.locks.in_grace_of_others(Protocol::Nfs4), "others wait, too");
    assert_eq!(two.lock(&file, 50, 1), Nlm4Stat::DENIED_GRACE_PERIOD);
    assert_eq!(two.lock_waiting(&file, 50, 1), Nlm4Stat::DENIED_GRACE_PERIOD);
    assert_eq!(one.lock(&file, 50, 1), Nlm4Stat::DENIED_GRACE_PERIOD);
    assert_eq!(two.share(Proc::SHARE, &file, 1, 0), Nlm4Stat::DENIED_GRACE_PERIOD);
    assert_eq!(two.reclaim(&file, 0, 10), Nlm4Stat::DENIED, "a stranger");
    assert_eq!(one.reclaim(&file, 0, 10), Nlm4Stat::GRANTED);
    server.advance(GRACE - Duration::from_secs(1));
    assert_eq!(two.lock(&file, 50, 1), Nlm4Stat::DENIED_GRACE_PERIOD);
    server.advance(Duration::from_secs(1));
    assert_eq!(two.lock(&file, 0, 1), Nlm4Stat::DENIED, "it was reclaimed");
    assert_eq!(two.lock(&file, 50, 1), Nlm4Stat::GRANTED);
    assert_eq!(one.reclaim(&file, 20, 1), Nlm4Stat::DENIED, "too late");
}

/// The service of a resource has an address of its own on its machine, and clients know no other.
#[test]
fn a_restart_is_notified_from_the_address_of_the_service() {
    let (services, mut world, server, file) = answering();
    assert_eq!(Host::new(server.addr, "one").lock(&file, 0, 10), Nlm4Stat::GRANTED);
    drop(server);
    let ours = IpAddr::from([127, 0, 0, 7]);
    world.address = Some(ours);
    let _server = Server::start(&world);
    let heard = services.receive();
    let args: nsm::NotifyArgs<'_> = heard.decode();
    assert_eq!(args.mon_name, nsm::SmName(b"127.0.0.7"));
    assert_eq!(heard.from, Some(ours));
}

/// Every call that grants something, and its status.
fn asks(host: &mut Host, file: &Handle) -> [(&'static str, Nlm4Stat); 6] {
    let alock = host.alock(file, 50, 1);
    let test = TestArgs { cookie: COOKIE, exclusive: true, alock };
    let tested = host.call(Proc::TEST, &test).results::<TestRes<'_>>().stat.stat();
    [
        ("TEST", tested),
        ("LOCK", host.lock(file, 50, 1)),
        ("LOCK, shared", host.lock_shared(file, 50, 1)),
        ("LOCK, waiting", host.lock_waiting(file, 50, 1)),
        ("NM_LOCK", host.stat(Proc::NM_LOCK, &args(alock))),
        ("SHARE", host.share(Proc::SHARE, file, 1, 0)),
    ]
}

#[test]
fn grace_gates_each_call_that_gives_something_and_no_other() {
    // While hosts of this protocol may reclaim, and while clients of NFSv4 may.
    for protocol in [Protocol::Nlm, Protocol::Nfs4] {
        let world = World::new(1);
        let (server, file) = (Server::start(&world), world.file("f", 0o644));
        let (mut one, mut two) = (Host::new(server.addr, "one"), Host::new(server.addr, "two"));
        assert_eq!(one.lock(&file, 0, 10), Nlm4Stat::GRANTED);
        server.locks.begin_grace(protocol);
        for (what, stat) in asks(&mut two, &file) {
            assert_eq!(stat, Nlm4Stat::DENIED_GRACE_PERIOD, "{what} in grace of {protocol:?}");
        }
        let given_back = [
            ("UNLOCK", one.unlock(&file, 0, 10)),
            ("UNLOCK of nothing", two.unlock(&file, 50, 1)),
            ("UNSHARE", two.share(Proc::UNSHARE, &file, 1, 0)),
        ];
        for (what, stat) in given_back {
            assert_eq!(stat, Nlm4Stat::GRANTED, "{what} in grace of {protocol:?}");
        }
        assert_ne!(two.cancel(&file, 50, 1), Nlm4Stat::DENIED_GRACE_PERIOD);
        let bye = NotifyArgs { name: HostName(b"one"), state: 0 };
        one.call(Proc::FREE_ALL, &bye).results::<()>();
        server.locks.end_grace(protocol);
        for (what, stat) in asks(&mut two, &file) {
            assert_eq!(stat, Nlm4Stat::GRANTED, "{what} after it");
        }
    }
}

#[test]
fn a_host_that_did_not_come_back_may_not_reclaim_later() {
    let (_services, world, server, file) = answering();
    Host::new(server.addr, "one").lock(&file, 0, 10);
    drop(server);
    let server = Server::start(&world);
    server.advance(GRACE);
    assert_eq!(Host::new(server.addr, "two").lock(&file, 0, 10), Nlm4Stat::GRANTED);
    drop(server);
    let server = Server::start(&world);
    assert_eq!(Host::new(server.addr, "one").reclaim(&file, 0, 10), Nlm4Stat::DENIED);
    assert_eq!(Host::new(server.addr, "two").reclaim(&file, 0, 10), Nlm4Stat::GRANTED);
}

#[test]
fn a_host_that_has_restarted_meanwhile_may_not_reclaim() {
    let (_services, world, server, file) = answering();
    Host::new(server.addr, "one").lock(&file, 0, 10);
    drop(server);
    let server = Server::start(&world);
    let mut one = Host::new(server.addr, "one");
    one.notify("one");
    assert_eq!(one.reclaim(&file, 0, 10), Nlm4Stat::DENIED);
}

#[test]
fn a_host_that_holds_nothing_is_forgotten() {
    let (world, server, file) = alone();
    let mut one = Host::new(server.addr, "one");
    let mut two = Host::new(server.addr, "two");
    one.lock(&file, 0, 10);
    two.lock(&file, 10, 10);
    one.unlock(&file, 0, 10);
    server.advance(Duration::from_secs(3600));
    let names: Vec<_> = server.nlm.hosts().into_iter().map(|host| host.name).collect();
    assert_eq!(names, [b"two"]);
    assert_eq!(one.lock(&file, 0, 10), Nlm4Stat::GRANTED, "it may come again");
    assert_eq!(one.unlock(&file, 0, 10), Nlm4Stat::GRANTED);
    two.unlock(&file, 10, 10);
    server.advance(Duration::from_secs(3600));
    assert_eq!(server.nlm.hosts(), []);
    drop(server);
    let server = Server::start(&world);
    assert!(!server.locks.in_grace(), "nobody is on record");
}

#[test]
fn an_administrator_ends_a_host() {
    let (_world, server, file) = alone();
    let mut one = Host::new(server.addr, "one");
    one.lock(&file, 0, 10);
    let id = server.nlm.hosts()[0].id;
    assert!(server.nlm.expire(id));
    assert!(!server.nlm.expire(id + 1));
    assert_eq!(server.locks.counts().locks, 0);
}

#[test]
fn the_table_refuses_what_a_host_shares() {
    use vfs::locks::{ClientKey, Owner, Share};
    let (world, server, file) = alone();
    let mut one = Host::new(server.addr, "one");
    assert_eq!(one.share(Proc::SHARE, &file, 1, 2), Nlm4Stat::GRANTED);
    let client = ClientKey { protocol: Protocol::Nfs4, id: 1 };
    let owner = Owner::new(client, b"four").unwrap();
    let write = Share { access: 2, deny: 0 };
    let refused = server.locks.open(world.key(&file), &owner, write);
    assert!(matches!(refused, Err(Refused::Shared(_))), "{refused:?}");
}
