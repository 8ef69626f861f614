//! The network of a cluster: a switch, where clients and etcd are, and a head on each side.

use std::process::Command;

use e2e::loops::tool;
use e2e::netns::Namespace;
use e2e::uml;

use super::cluster::Setup;

/// The switch for clients. With guests it is also their router.
const SWITCH: &str = "ip link set lo up
ip link add br0 type bridge
ip addr add 10.77.0.1/24 dev br0
ip link set br0 up
ip addr add fd00:77::1/64 dev br0 nodad || :
";
/// A second network, for the heads and etcd alone.
const MANAGEMENT: &str = "ip link add br1 type bridge
ip addr add 10.78.0.1/24 dev br1
ip link set br1 up
";
/// Guests and heads reach each other through the switch.
const ROUTER: &str = "echo 1 >/proc/sys/net/ipv4/ip_forward
";

/// Makes the switch.
pub fn switch(setup: &Setup) -> Result<Namespace, String> {
    let mut text = SWITCH.to_owned();
    if setup.management {
        text += MANAGEMENT;
    }
    if setup.guests > 0 {
        text += &(uml::taps(setup.guests) + ROUTER);
    }
    Namespace::with(&text).map_err(|e| e.to_string())
}

/// Makes the namespace of a head, and connects it with the switch.
pub fn head(setup: &Setup, switch: &Namespace, n: usize) -> Result<Namespace, String> {
    let mut text = format!(
        "ip link set lo up\nip link add eth0 type veth peer name head{n} netns {pid}\n\
         ip addr add 10.77.0.1{n}/24 dev eth0\nip link set eth0 up\n\
         ip addr add fd00:77::1{n}/64 dev eth0 nodad || :\n",
        pid = switch.pid()
    );
    let mut ports = vec![(format!("head{n}"), "br0")];
    if setup.management {
        text += &format!(
            "ip link add eth1 type veth peer name manage{n} netns {}\n\
             ip addr add 10.78.0.1{n}/24 dev eth1\nip link set eth1 up\n",
            switch.pid()
        );
        ports.push((format!("manage{n}"), "br1"));
    }
    if setup.guests > 0 {
        text += "ip route add 10.0.2.0/24 via 10.77.0.1\n";
    }
    let namespace = Namespace::with(&text).map_err(|e| e.to_string())?;
    for (port, bridge) in ports {
        let mut command = Command::new("ip");
        command.args(["link", "set", &port, "master", bridge, "up"]);
        switch.enter(&mut command);
        tool(&mut command)?;
    }
    Ok(namespace)
}
