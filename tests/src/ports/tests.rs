//! Ports for more servers than a process has descriptors for.

use base::protocol::{Service, ports};

use super::{KEPT, PORTS, free_offset};

/// The port of the test service, which only a build with the feature `test-services` has.
const ECHO: u16 = 7;

#[test]
fn every_port_of_a_server_is_reserved() {
    let served = Service::ALL.iter().flat_map(|service| service.ports()).chain([&ports::ADMIN]);
    for port in served.map(|port| port.number).chain([ECHO]) {
        assert!(PORTS.contains(&port), "{port}");
    }
}

#[test]
fn hundreds_of_servers_find_ports_one_after_the_other() {
    let had: Vec<u16> = (0..300).map(|_| free_offset("127.0.0.1")).collect();
    let first = had.iter().take(KEPT).collect::<std::collections::HashSet<_>>();
    assert_eq!(first.len(), KEPT, "another for each of the first");
    assert!(KEPT * PORTS.len() < 1024 / 2, "most descriptors are left to the test");
    assert!(had.iter().all(|offset| first.contains(offset)), "and no more than these");
}
