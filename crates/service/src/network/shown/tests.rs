//! The observer keeps its socket.

use std::collections::BTreeSet;

use host_network::dhcp::Lease;
use host_network::state::Dns;

use super::*;

/// The sockets of netlink of this process, by their inode.
fn sockets() -> BTreeSet<String> {
    let all = std::fs::read_to_string("/proc/self/net/netlink").expect("sockets of netlink");
    let inodes = all.lines().filter_map(|line| line.split_whitespace().last());
    let inodes: BTreeSet<String> = inodes.map(|inode| format!("socket:[{inode}]")).collect();
    let descriptors = std::fs::read_dir("/proc/self/fd").expect("descriptors").flatten();
    let targets = descriptors.filter_map(|one| std::fs::read_link(one.path()).ok());
    let targets = targets.map(|target| target.to_string_lossy().into_owned());
    targets.filter(|target| inodes.contains(target)).collect()
}

#[test]
fn it_asks_by_one_socket_until_that_fails() {
    let before = sockets();
    let observer = Observer::default();
    assert_eq!(sockets(), before, "nothing is open before it is of use");
    assert!(observer.carriers().is_ok_and(|carriers| carriers.contains_key("lo")));
    let first = sockets();
    assert_eq!(first.len(), before.len() + 1);
    assert!(observer.carriers().is_ok() && observer.devices().contains(&"lo".to_owned()));
    assert_eq!(sockets(), first);
    let refused = |_: &mut Linux| Err::<(), _>(Failure::Observe("no answer".to_owned()));
    assert!(observer.ask(refused).is_err());
    assert_eq!(sockets(), before, "an answer may still be on its way");
    assert!(observer.carriers().is_ok());
}

/// An interface `wan` with DHCP on `e0`, in this phase, with a lease of 100 s that began so long
/// ago.
fn leased(phase: Phase, ago: u64) -> (Configuration, Leases) {
    let mut configuration = Configuration::default();
    let wan = Interface { dhcp: true, ..Interface::on("e0", &[]) };
    configuration.interfaces.insert("wan".to_owned(), wan);
    let server = [10, 0, 0, 1].into();
    let lease = Lease {
        cidr: "10.0.0.7/24".parse().expect("an address"),
        server,
        routes: Vec::new(),
        dns: Dns::default(),
        mtu: None,
        obtained: now_s() - ago,
        renew_s: 50,
        rebind_s: 87,
        valid_s: 100,
    };
    let mut holding = Holding::begin("02:00:00:00:00:01", 0);
    (holding.phase, holding.lease) = (phase, Some(lease));
    (configuration, [("e0".to_owned(), holding)].into())
}

#[test]
fn a_lease_is_shown_and_missed() {
    let (configuration, leases) = leased(Phase::Bound, 10);
    let wan = &configuration.interfaces["wan"];
    let shown: BTreeMap<_, _> = lease(wan, "wan", &leases).into_iter().collect();
    assert_eq!(shown["lease"], Value::text("10.0.0.7/24"));
    assert_eq!(shown["lease_state"], Value::text("bound"));
    assert_eq!(without_lease(&configuration, &leases), None);
    // Its server does not answer, and then it is over.
    let (configuration, leases) = leased(Phase::Rebinding, 50);
    let sentence = without_lease(&configuration, &leases).expect("a problem");
    assert!(sentence.starts_with("interface wan: its DHCP server 10.0.0.1 does not"), "{sentence}");
    let faults = lease_faults(&configuration, &leases);
    assert_eq!((faults[0].id.as_str(), faults[0].severity), ("lease-wan", Severity::Major));
    let (mut configuration, leases) = leased(Phase::Rebinding, 101);
    assert_eq!(lease_faults(&configuration, &leases)[0].severity, Severity::Critical);
    configuration.interfaces.values_mut().for_each(|wan| wan.enabled = false);
    assert_eq!(without_lease(&configuration, &leases), None);
}
