//! An owner that clients do not reach while etcd does: it gives its resource away. etcd is on a
//! network of its own.

use e2e::loops::LoopDisk;
use e2e::{is_root, skip};

use super::cluster::{ACCOUNTS, Cluster, LEFT, RIGHT, Setup};
use super::progress;
use super::writer::{Version, Writer};

/// A host beyond the link of each head.
const PROBE: &str = "probe = [\"10.77.0.1\"]";

fn start(resource_keys: &'static str) -> Result<(Cluster, [Writer; 2]), String> {
    if !is_root() {
        return Err("network namespaces and loop devices need root".to_owned());
    }
    let setup = Setup { management: true, resource_keys, ..Setup::default() };
    let cluster = Cluster::set_up(Box::new(LoopDisk::with("xfs")?), &[ACCOUNTS], &setup)?;
    let versions = [Version::V3, Version::V4];
    let mut writers = versions.map(|version| Writer::start(&cluster, ACCOUNTS, version));
    progress(&mut writers, "the first writes");
    Ok((cluster, writers))
}

/// Waits until the head has noticed, or that it is over.
fn wait_for_cut(cluster: &Cluster, head: usize, expected: &str) {
    cluster.wait("the head has noticed", || {
        let (_, cut) = cluster.reasons(ACCOUNTS, head);
        if expected.is_empty() { cut.is_empty() } else { cut.contains(expected) }
    });
}

#[test]
fn an_owner_without_carrier_gives_its_resource_away() {
    let (mut cluster, mut writers) = match start("") {
        Ok(all) => all,
        Err(why) => skip!("heads-carrier", "{why}"),
    };
    let server = cluster.process(ACCOUNTS, LEFT);
    cluster.set_link(LEFT, "down");
    cluster.wait_for_owner(ACCOUNTS, RIGHT);
    cluster.wait_until_gone(server);
    let cause = cluster.last_cause(ACCOUNTS, RIGHT);
    assert_eq!(cause, "unreachable");
    progress(&mut writers, "link of the owner down, etcd reached");

    // The other head may not get it, and with both down it stays and is served again with the link.
    let refused = cluster.refused(RIGHT, &["takeover", ACCOUNTS.name, "--to", "left"]);
    assert!(refused.contains("clients do not reach accounts at the head left"), "{refused}");
    let server = cluster.process(ACCOUNTS, RIGHT);
    cluster.set_link(RIGHT, "down");
    wait_for_cut(&cluster, RIGHT, "the link eth0 has no carrier");
    cluster.wait("the owner keeps it, with the reason", || {
        let (why, _) = cluster.reasons(ACCOUNTS, RIGHT);
        why.contains("no other head may take accounts over: clients do not reach")
    });
    assert_eq!(cluster.process(ACCOUNTS, RIGHT), server);
    cluster.set_link(LEFT, "up");
    cluster.wait_for_owner(ACCOUNTS, LEFT);
    cluster.wait_until_gone(server);
    progress(&mut writers, "one link up again");
    cluster.set_link(RIGHT, "up");
    wait_for_cut(&cluster, RIGHT, "");
    for writer in writers {
        writer.check(&cluster);
    }
    cluster.end();
}

#[test]
fn an_owner_with_silent_probes_gives_its_resource_away() {
    let (mut cluster, mut writers) = match start(PROBE) {
        Ok(all) => all,
        Err(why) => skip!("heads-probe", "{why}"),
    };
    let server = cluster.process(ACCOUNTS, LEFT);
    cluster.connect(LEFT, false);
    cluster.wait_for_owner(ACCOUNTS, RIGHT);
    cluster.wait_until_gone(server);
    progress(&mut writers, "owner out of the switch, etcd reached");
    wait_for_cut(&cluster, LEFT, "no probe answers on eth0");
    cluster.connect(LEFT, true);
    wait_for_cut(&cluster, LEFT, "");
    cluster.command(LEFT, &["failback", ACCOUNTS.name]);
    progress(&mut writers, "failback");
    for writer in writers {
        writer.check(&cluster);
    }
    cluster.end();
}
