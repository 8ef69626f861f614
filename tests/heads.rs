//! Two heads in network namespaces of their own, one file system, and a stand-in for etcd. Clients
//! write to a virtual address over NFSv3 and NFSv4.1 while its resource is taken over: planned,
//! after the head was killed with its server or without it, and after both were stopped. At most
//! one server exists at any time, nothing acknowledged is lost, and open files are reclaimed.

#[path = "heads/cluster.rs"]
mod cluster;
#[path = "heads/etcd.rs"]
mod etcd;
#[path = "heads/one_owner.rs"]
mod one_owner;
#[path = "heads/writer.rs"]
mod writer;

use std::sync::atomic::Ordering;
use std::time::Instant;

use e2e::{is_root, process, skip};

use cluster::{Cluster, LEFT, RIGHT};
use writer::{Version, Writer};

/// Attempts in which a server may end too late because the machine did not let it run: a wrong
/// limit fails in each.
const ATTEMPTS: usize = 3;

#[test]
fn takeovers_have_one_owner_at_a_time_and_lose_nothing() {
    if !is_root() {
        skip!("heads", "network namespaces and loop devices need root");
    }
    let mut cluster = match Cluster::start() {
        Ok(cluster) => cluster,
        Err(why) => skip!("heads", "{why}"),
    };
    let mut writers =
        vec![Writer::start(&cluster, Version::V3), Writer::start(&cluster, Version::V4)];
    progress(&mut writers, "the first writes");

    cluster.command(RIGHT, &["takeover", cluster::RESOURCE]);
    progress(&mut writers, "planned");
    cluster.command(RIGHT, &["failback", cluster::RESOURCE]);
    cluster.wait_for_owner(LEFT);
    progress(&mut writers, "failback");

    let server = cluster.process(LEFT);
    cluster.kill(LEFT);
    process::signal(server, libc::SIGKILL);
    cluster.wait_for_owner(RIGHT);
    progress(&mut writers, "kill -9 of head and server");

    // The server that the head leaves behind ends with the lease.
    let server = cluster.process(RIGHT);
    cluster.start_head(LEFT);
    cluster.wait_for_member(RIGHT, LEFT);
    cluster.kill(RIGHT);
    cluster.wait_for_owner(LEFT);
    cluster.wait_until_gone(server);
    progress(&mut writers, "kill -9 of the head alone");

    cluster.start_head(RIGHT);
    cluster.wait_for_member(LEFT, RIGHT);
    let server = cluster.process(LEFT);
    cluster.stop(LEFT, server);
    cluster.wait_for_owner(RIGHT);
    progress(&mut writers, "SIGSTOP of head and server");
    cluster.wake(LEFT, server);
    cluster.wait_until_gone(server);
    progress(&mut writers, "after waking");

    for writer in writers {
        writer.check(&cluster);
    }
    cluster.end();
}

#[test]
fn a_head_without_etcd_ends_its_server_before_its_lease_is_over() {
    if !is_root() {
        skip!("heads-without-etcd", "network namespaces and loop devices need root");
    }
    let mut cluster = match Cluster::start() {
        Ok(cluster) => cluster,
        Err(why) => skip!("heads-without-etcd", "{why}"),
    };
    let in_time = |_| {
        let server = cluster.wait_for_some_owner();
        cluster.etcd.faults.cut.store(true, Ordering::SeqCst);
        cluster.wait_until_gone(server);
        let (gone, lease) = (Instant::now(), cluster.lease_end());
        cluster.etcd.faults.cut.store(false, Ordering::SeqCst);
        let left = lease.checked_duration_since(gone);
        println!("the server was gone with this much of the lease left: {left:?}");
        left.is_some()
    };
    assert!((0..ATTEMPTS).any(in_time), "each time it served after the end of its lease");
    let server = cluster.wait_for_some_owner();
    cluster.etcd.set_quorum(false);
    cluster.wait_until_gone(server);
    cluster.etcd.set_quorum(true);
    cluster.wait_for_some_owner();
    cluster.end();
}

/// Waits until each has written some more, and prints its longest wait since the last time.
fn progress(writers: &mut [Writer], what: &str) {
    for writer in writers {
        let outage = writer.progress();
        println!("{what}: {} waited {} ms at most", writer.name(), outage.as_millis());
    }
}
