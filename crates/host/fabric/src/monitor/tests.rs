//! Passes over a simulated fabric.

use super::*;
use crate::fake::{Fake, host, switch};

#[test]
fn nodes_of_the_same_description_are_named_by_guid() {
    let mut fake = Fake::new(1, 3, 1);
    for n in [2, 3] {
        fake.nodes.get_mut(&host(n)).expect("a node").description = "MT4115 / x".to_owned();
    }
    fake.nodes.get_mut(&switch(1)).expect("a node").description = "\u{1b}[31m".to_owned();
    let report = Monitor::new(fake).pass().expect("a transport");
    assert_eq!(report.port_name((host(1), 1)), "host1:1");
    assert_eq!(report.port_name((host(2), 1)), "0000000000100002:1");
    assert_eq!(report.port_name((switch(1), 3)), "0000000000200001:3");
}

#[test]
fn a_port_that_is_unlinked_is_down_after_a_pass_and_delays_no_other() {
    let mut monitor = Monitor::new(Fake::new(4, 60, 1));
    let before = monitor.pass().expect("a transport");
    monitor.transport().unlink((host(7), 1));
    monitor.transport().advance(INTERVAL);
    let after = monitor.pass().expect("a transport");
    assert!(before.fabric.ports[&(switch(1), 7)].is_linked());
    assert!(!after.fabric.ports[&(switch(1), 7)].is_linked());
    assert!(after.walk <= before.walk, "{:?} {:?}", after.walk, before.walk);
    let counted = after.counters.ports.values().filter(|port| port.rates.is_some());
    assert_eq!(counted.count(), 2 * (60 + 6) - 2);
}

#[test]
fn a_pass_with_a_silent_node_takes_three_timeouts() {
    let mut fake = Fake::new(4, 60, 1);
    fake.silent.insert(host(7));
    let report = Monitor::new(fake).pass().expect("a transport");
    assert!(report.walk < Duration::from_secs(2), "{:?}", report.walk);
    assert_eq!(report.pause(), INTERVAL);
    assert_eq!(report.fabric.nodes.len(), 63);
}

#[test]
fn a_look_at_the_own_port_has_its_partitions_and_the_manager() {
    let mut monitor = Monitor::new(Fake::new(2, 6, 1));
    let mut report = monitor.pass().expect("a transport");
    assert_eq!(report.fabric.pkeys, [0xffff]);
    monitor.transport().pkeys = vec![0xffff, 0x8001];
    monitor.transport().manager = None;
    monitor.look(&mut report).expect("a transport");
    assert_eq!(report.fabric.pkeys, [0xffff, 0x8001]);
    assert_eq!((report.fabric.nodes.len(), report.problems.len()), (8, 1));
}
