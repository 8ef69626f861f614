//! A resource with an address of IPv6: clients follow it, and neighbours learn where it is from the
//! advertisement alone.

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use e2e::{is_root, process, skip};

use super::cluster::{Cluster, LEFT, RIGHT, VAULT};
use super::progress;
use super::writer::{Version, Writer};

/// The hardware address that the switch has for the resource.
fn neighbour(cluster: &Cluster) -> String {
    let mut command = Command::new("ip");
    command.args(["-6", "neigh", "show", &VAULT.address().ip().to_string(), "dev", "br0"]);
    cluster.switch.enter(&mut command);
    let output = process::run(&mut command, process::DEADLINE);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut words = text.split_whitespace().skip_while(|one| *one != "lladdr");
    words.nth(1).unwrap_or_default().to_owned()
}

#[test]
fn an_address_of_ipv6_moves_with_its_resource() {
    if !is_root() {
        skip!("heads-ipv6", "network namespaces and loop devices need root");
    }
    if !Path::new("/proc/net/if_inet6").exists() {
        skip!("heads-ipv6", "the kernel has no IPv6");
    }
    let mut cluster = match Cluster::start(&[VAULT]) {
        Ok(cluster) => cluster,
        Err(why) => skip!("heads-ipv6", "{why}"),
    };
    // The neighbour is known and then idle: nothing but the advertisement changes its entry.
    let address = VAULT.address();
    let connected = cluster.switch.spawn(move || TcpStream::connect(address)).join();
    drop(connected.expect("a client").expect("a connection"));
    cluster.wait("the neighbour is known", || neighbour(&cluster) == cluster.hardware(LEFT));
    cluster.command(RIGHT, &["takeover", VAULT.name]);
    cluster.wait("the advertisement has come", || neighbour(&cluster) == cluster.hardware(RIGHT));

    let mut writers =
        [Version::V3, Version::V4].map(|version| Writer::start(&cluster, VAULT, version));
    progress(&mut writers, "the first writes");
    cluster.command(RIGHT, &["failback", VAULT.name]);
    cluster.wait_for_owner(VAULT, LEFT);
    progress(&mut writers, "planned");
    let server = cluster.process(VAULT, LEFT);
    cluster.kill(LEFT);
    process::signal(server, libc::SIGKILL);
    cluster.wait_for_owner(VAULT, RIGHT);
    progress(&mut writers, "kill -9");
    for writer in writers {
        writer.check(&cluster);
    }
    cluster.start_head(LEFT);
    cluster.wait_for_member(RIGHT, LEFT);
    cluster.end();
}
