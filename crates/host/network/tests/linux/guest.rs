//! Where a case runs: in a namespace of this kernel, or of one in User Mode Linux.

use std::process::Command;

use e2e::scratch::Scratch;
use e2e::uml::{self, Guest};
use e2e::{has, is_root, netns, skip};

/// Names the case that is to run in this process, which is in a guest.
const CASE: &str = "PLIMSOLL_NETWORK_CASE";
/// How many pairs of configurations are tried.
pub const PAIRS: &str = "PLIMSOLL_NETWORK_PAIRS";
/// How many changes are made next to links of others.
pub const CHANGES: &str = "PLIMSOLL_NETWORK_CHANGES";
/// What the guest's kernel has as modules, in the order of their dependencies.
const MODULES: &str = "lib/crc-ccitt net/ipv6/ipv6 net/llc/llc net/802/stp net/802/mrp \
                       net/802/garp net/8021q/8021q drivers/net/veth";

/// Moves this thread into a namespace in which these lines have run.
pub fn isolate(setup: &str) {
    // Of a kernel that gives such devices to each namespace.
    let lines = format!("ip link set lo up\n{setup}");
    netns::isolate(&lines).unwrap_or_else(|e| panic!("{e}"));
}

/// Whether this kernel has links of this kind.
fn has_kind(kind: &str) -> bool {
    let mut command = Command::new("unshare");
    command.args(["-n", "ip", "link", "add", "probe", "type", kind]);
    if kind == "vlan" {
        let line = "ip link add a type veth peer name b && ip link add c link a type vlan id 2";
        command = Command::new("unshare");
        command.args(["-n", "sh", "-c", line]);
    }
    command.output().is_ok_and(|output| output.status.success())
}

/// Runs the case, the test of this name, where the kinds of links that it `needs` exist.
pub fn case(name: &str, needs: &[&str], run: fn()) {
    match std::env::var(CASE) {
        Ok(here) if here == name => return run(),
        Ok(_) => return,
        Err(_) => {}
    }
    if !is_root() || !has("ip") || !has("unshare") {
        skip!(format!("network-{name}"), "needs root, ip and unshare");
    }
    if needs.iter().all(|kind| has_kind(kind)) {
        return run();
    }
    if let Some(why) = uml::unavailable() {
        skip!(format!("network-{name}"), "this kernel lacks kinds of links; guest: {why}");
    }
    if !uml::is_debian() {
        skip!(format!("network-{name}"), "the kernel of guests has no modules");
    }
    in_guest(name);
}

fn in_guest(name: &str) {
    let _turn = uml::turn();
    let namespace = match uml::namespace(1) {
        Ok(namespace) => namespace,
        Err(why) => skip!(format!("network-{name}"), "{why}"),
    };
    let scratch = Scratch::new("network");
    let mut guest = Guest::boot(&namespace, 0, scratch.path());
    let program = std::env::current_exe().expect("this program");
    std::fs::copy(program, guest.share().join("network")).expect("a copy of it");
    let set = |name: &str| std::env::var(name).map(|n| format!("{name}={n}")).unwrap_or_default();
    let numbers = [PAIRS, CHANGES].map(set).join(" ");
    let log = guest.run(&format!(
        "modules=/usr/lib/uml/modules/$(uname -r)/kernel\n\
         for module in {MODULES}; do insmod $modules/$module.ko 2>/dev/null || :; done\n\
         insmod $modules/drivers/net/bonding/bonding.ko max_bonds=0 2>/dev/null || :\n\
         {numbers} {CASE}={name} network --exact {name} --nocapture"
    ));
    println!("{log}");
    assert!(log.contains("1 passed"), "{log}");
}
