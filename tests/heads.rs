//! Two heads in network namespaces of their own, one file system, and a stand-in for etcd. Clients
//! write to a virtual address over NFSv3 and NFSv4.1 while its resource is taken over: planned,
//! after the head was killed with its server or without it, after both were stopped, and after its
//! link was cut. At most one server exists at any time, nothing acknowledged is lost, open files
//! and locks are reclaimed, and clients of other resources are not interrupted.

#[path = "heads/addresses.rs"]
mod addresses;
#[path = "heads/announcements.rs"]
mod announcements;
#[path = "heads/ceph.rs"]
mod ceph;
#[path = "heads/ceph_daemons.rs"]
mod ceph_daemons;
#[path = "heads/ceph_peer.rs"]
mod ceph_peer;
#[path = "heads/cluster.rs"]
mod cluster;
#[path = "heads/drains.rs"]
mod drains;
#[path = "heads/etcd.rs"]
mod etcd;
#[path = "heads/gluster.rs"]
mod gluster;
#[path = "heads/guests.rs"]
mod guests;
#[path = "heads/handles.rs"]
mod handles;
#[path = "heads/howto.rs"]
mod howto;
#[path = "heads/iscsi.rs"]
mod iscsi;
#[path = "heads/locks.rs"]
mod locks;
#[path = "heads/long.rs"]
mod long;
#[path = "heads/machines.rs"]
mod machines;
#[path = "heads/members.rs"]
mod members;
#[path = "heads/monitor.rs"]
mod monitor;
#[path = "heads/network.rs"]
mod network;
#[path = "heads/one_owner.rs"]
mod one_owner;
#[path = "heads/power.rs"]
mod power;
#[path = "heads/reachable.rs"]
mod reachable;
#[path = "heads/refusals.rs"]
mod refusals;
#[path = "heads/services.rs"]
mod services;
#[path = "heads/session.rs"]
mod session;
#[path = "heads/smb.rs"]
mod smb;
#[path = "heads/smbprotocol.rs"]
mod smbprotocol;
#[path = "heads/statistics.rs"]
mod statistics;
#[path = "heads/tree.rs"]
mod tree;
#[path = "heads/unfenced.rs"]
mod unfenced;
#[path = "heads/writer.rs"]
mod writer;

use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::time::Instant;

use e2e::{is_root, process, skip};

use announcements::Announcements;
use cluster::{ACCOUNTS, Cluster, LEFT, PROJECTS, RIGHT};
use locks::Locks;
use writer::{Version, Writer};

/// Attempts in which a server may end too late because the machine did not let it run: a wrong
/// limit fails in each.
const ATTEMPTS: usize = 3;

#[test]
fn takeovers_have_one_owner_at_a_time_and_lose_nothing() {
    if !is_root() {
        skip!("heads", "network namespaces and loop devices need root");
    }
    let mut cluster = match Cluster::start(&[ACCOUNTS]) {
        Ok(cluster) => cluster,
        Err(why) => skip!("heads", "{why}"),
    };
    let mut writers =
        [Version::V3, Version::V4].map(|version| Writer::start(&cluster, ACCOUNTS, version));
    progress(&mut writers, "the first writes");

    // Clients do not see the end of the former owner: they would meet no address at once.
    let idle = cluster.idle_client(ACCOUNTS);
    cluster.command(RIGHT, &["takeover", ACCOUNTS.name]);
    let ended = idle.join().expect("a client").map_err(|e| e.kind());
    assert_eq!(ended, Err(ErrorKind::ConnectionReset), "a client that only waits");
    progress(&mut writers, "planned");
    cluster.command(RIGHT, &["failback", ACCOUNTS.name]);
    cluster.wait_for_owner(ACCOUNTS, LEFT);
    progress(&mut writers, "failback");

    let server = cluster.process(ACCOUNTS, LEFT);
    cluster.kill(LEFT);
    process::signal(server, libc::SIGKILL);
    cluster.wait_for_owner(ACCOUNTS, RIGHT);
    progress(&mut writers, "kill -9 of head and server");

    // The server that the head leaves behind ends with the lease.
    let server = cluster.process(ACCOUNTS, RIGHT);
    cluster.start_head(LEFT);
    cluster.wait_for_member(RIGHT, LEFT);
    cluster.kill(RIGHT);
    cluster.wait_for_owner(ACCOUNTS, LEFT);
    cluster.wait_until_gone(server);
    progress(&mut writers, "kill -9 of the head alone");

    cluster.start_head(RIGHT);
    cluster.wait_for_member(LEFT, RIGHT);
    let server = cluster.process(ACCOUNTS, LEFT);
    cluster.stop(LEFT, server);
    cluster.wait_for_owner(ACCOUNTS, RIGHT);
    progress(&mut writers, "SIGSTOP of head and server");
    cluster.wake(LEFT, server);
    cluster.wait_until_gone(server);
    progress(&mut writers, "after waking");

    let server = cluster.process(ACCOUNTS, RIGHT);
    let idle = cluster.idle_client(ACCOUNTS);
    cluster.set_link(RIGHT, "down");
    cluster.wait_for_owner(ACCOUNTS, LEFT);
    let ended = idle.join().expect("a client").map_err(|e| e.kind());
    assert_eq!(ended, Err(ErrorKind::ConnectionReset), "a client that only waits");
    progress(&mut writers, "link of the head cut");
    cluster.wait_until_gone(server);
    cluster.set_link(RIGHT, "up");
    cluster.wait_for_member(LEFT, RIGHT);
    progress(&mut writers, "link connected again");

    for writer in writers {
        writer.check(&cluster);
    }
    cluster.end();
}

#[test]
fn locks_outlive_takeovers_and_are_held_by_one() {
    if !is_root() {
        skip!("heads-locks", "network namespaces and loop devices need root");
    }
    let mut cluster = match Cluster::start(&[ACCOUNTS]) {
        Ok(cluster) => cluster,
        Err(why) => skip!("heads-locks", "{why}"),
    };
    let heard = Announcements::start(&cluster.switch);
    let locks = Locks::start(&cluster, ACCOUNTS);
    locks.progress("at first");

    let (announced, notified) = (heard.count(), locks.notifications());
    cluster.command(RIGHT, &["takeover", ACCOUNTS.name]);
    locks.wait_for_notification(notified);
    let hardware = cluster.hardware(RIGHT);
    assert!(heard.has(announced, ACCOUNTS.address().ip(), &hardware), "no gratuitous ARP");
    locks.progress("planned");

    // Each comes while clients of the last one may reclaim.
    cluster.command(RIGHT, &["failback", ACCOUNTS.name]);
    cluster.command(RIGHT, &["takeover", ACCOUNTS.name]);
    cluster.command(RIGHT, &["failback", ACCOUNTS.name]);
    cluster.wait_for_owner(ACCOUNTS, LEFT);
    locks.progress("back within the grace period");

    // The second one fails before it serves.
    cluster.command(RIGHT, &["takeover", ACCOUNTS.name, "--wait", "0"]);
    let server = cluster.wait_for_process(ACCOUNTS, RIGHT);
    cluster.kill(RIGHT);
    process::signal(server, libc::SIGKILL);
    cluster.wait_for_owner(ACCOUNTS, LEFT);
    locks.progress("a takeover during a takeover");

    cluster.start_head(RIGHT);
    cluster.wait_for_member(LEFT, RIGHT);
    let server = cluster.process(ACCOUNTS, LEFT);
    let notified = locks.notifications();
    cluster.kill(LEFT);
    process::signal(server, libc::SIGKILL);
    cluster.wait_for_owner(ACCOUNTS, RIGHT);
    locks.wait_for_notification(notified);
    locks.progress("kill -9");

    cluster.start_head(LEFT);
    cluster.wait_for_member(RIGHT, LEFT);
    cluster.set_link(RIGHT, "down");
    cluster.wait_for_owner(ACCOUNTS, LEFT);
    locks.progress("link of the head cut");
    cluster.set_link(RIGHT, "up");
    cluster.wait_for_member(LEFT, RIGHT);

    locks.end();
    cluster.end();
}

#[test]
fn clients_of_another_resource_are_not_interrupted() {
    if !is_root() {
        skip!("heads-resources", "network namespaces and loop devices need root");
    }
    let mut cluster = match Cluster::start(&[ACCOUNTS, PROJECTS]) {
        Ok(cluster) => cluster,
        Err(why) => skip!("heads-resources", "{why}"),
    };
    let versions = [Version::V3, Version::V4];
    let mut moved = versions.map(|version| Writer::start(&cluster, ACCOUNTS, version));
    let mut others = versions.map(|version| Writer::start(&cluster, PROJECTS, version));
    progress(&mut moved, "the first writes");
    progress(&mut others, "the first writes of the other");

    // Both are at one head, and one of them leaves it.
    cluster.command(RIGHT, &["takeover", ACCOUNTS.name]);
    progress(&mut moved, "planned");
    progress(&mut others, "planned, the other");
    cluster.command(RIGHT, &["failback", ACCOUNTS.name]);
    progress(&mut moved, "failback");
    uninterrupted(others, &cluster);

    // The head that takes one over has the other.
    cluster.command(RIGHT, &["failback", PROJECTS.name]);
    let mut others = versions.map(|version| Writer::start(&cluster, PROJECTS, version));
    progress(&mut others, "the other at its preferred head");
    let server = cluster.process(ACCOUNTS, LEFT);
    cluster.kill(LEFT);
    process::signal(server, libc::SIGKILL);
    cluster.wait_for_owner(ACCOUNTS, RIGHT);
    progress(&mut moved, "kill -9");
    uninterrupted(others, &cluster);

    for writer in moved {
        writer.check(&cluster);
    }
    cluster.start_head(LEFT);
    cluster.wait_for_member(RIGHT, LEFT);
    cluster.end();
}

#[test]
fn a_head_without_etcd_ends_its_server_before_its_lease_is_over() {
    if !is_root() {
        skip!("heads-without-etcd", "network namespaces and loop devices need root");
    }
    let mut cluster = match Cluster::start(&[ACCOUNTS]) {
        Ok(cluster) => cluster,
        Err(why) => skip!("heads-without-etcd", "{why}"),
    };
    let in_time = |_| {
        let server = cluster.wait_for_some_owner(ACCOUNTS);
        cluster.etcd.faults.cut.store(true, Ordering::SeqCst);
        cluster.wait_until_gone(server);
        let (gone, lease) = (Instant::now(), cluster.lease_end(ACCOUNTS));
        cluster.etcd.faults.cut.store(false, Ordering::SeqCst);
        let left = lease.checked_duration_since(gone);
        println!("the server was gone with this much of the lease left: {left:?}");
        left.is_some()
    };
    assert!((0..ATTEMPTS).any(in_time), "each time it served after the end of its lease");
    let server = cluster.wait_for_some_owner(ACCOUNTS);
    cluster.etcd.set_quorum(false);
    cluster.wait_until_gone(server);
    cluster.etcd.set_quorum(true);
    cluster.wait_for_some_owner(ACCOUNTS);
    cluster.end();
}

/// Each has written some more, and nothing has ever interrupted it.
fn uninterrupted(mut writers: [Writer; 2], cluster: &Cluster) {
    progress(&mut writers, "the other resource");
    for writer in writers {
        assert_eq!(writer.troubles(), Vec::<String>::new(), "{}", writer.name());
        writer.check(cluster);
    }
}

/// Waits until each has written some more, and prints its longest wait since the last time.
fn progress(writers: &mut [Writer], what: &str) {
    for writer in writers {
        let outage = writer.progress();
        println!("{what}: {} waited {} ms at most", writer.name(), outage.as_millis());
    }
}
