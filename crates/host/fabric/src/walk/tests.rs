//! Walks over a simulated fabric.

use super::*;
use crate::fake::{Fake, host, switch};

fn walked(fake: Fake) -> Fabric {
    walk(&mut Exchange::new(fake)).expect("a transport")
}

#[test]
fn a_walk_has_all_nodes_ports_and_links() {
    let fabric = walked(Fake::new(4, 60, 1));
    assert_eq!(fabric.nodes.len(), 64);
    assert_eq!(fabric.ports.len(), 4 * 36 + 60 * 2);
    assert_eq!(fabric.links().count(), 60 + 3 * 2);
    assert_eq!(fabric.local, Some((host(1), 1)));
    assert_eq!(fabric.manager, Manager::Master(1));
    assert_eq!((fabric.pkeys.as_slice(), fabric.partial), ([0xffff].as_slice(), None));
    let far = &fabric.nodes[&host(60)];
    assert_eq!((far.description.as_str(), far.route.ports()), ("host60", &[1, 33, 33, 33, 15][..]));
    let end = fabric.ports[&(host(60), 1)].peer;
    assert_eq!(end, Some((switch(4), 15)));
    assert_eq!(fabric.lid((host(60), 1)), Some(60));
    assert_eq!(fabric.lid((switch(4), 15)), Some(1_004));
    assert_eq!(fabric.lid((host(60), 2)), None);
}

#[test]
fn a_walk_with_losses_is_the_same() {
    let mut fake = Fake::new(4, 60, 3);
    (fake.lost, fake.noise) = (20, true);
    let fabric = walked(fake);
    assert_eq!((fabric.nodes.len(), fabric.links().count()), (64, 66));
}

#[test]
fn a_node_that_does_not_reply_is_data() {
    let mut fake = Fake::new(2, 10, 1);
    fake.silent.insert(host(4));
    let fabric = walked(fake);
    assert_eq!((fabric.nodes.len(), fabric.links().count()), (11, 11));
    assert_eq!(fabric.ports[&(switch(1), 4)].silent, Some(QueryError::Timeout));
    assert_eq!(fabric.partial, None);
}

#[test]
fn a_fabric_of_one_end_without_a_link_has_one_node() {
    let mut fake = Fake::new(1, 2, 1);
    fake.unlink((host(1), 1));
    let fabric = walked(fake);
    assert_eq!((fabric.nodes.len(), fabric.ports.len()), (1, 2));
    assert_eq!(fabric.manager, Manager::Unlinked);
}

#[test]
fn a_machine_that_does_not_reply_has_an_empty_fabric() {
    let mut fake = Fake::new(1, 2, 1);
    fake.silent.insert(host(1));
    assert_eq!(walked(fake), Fabric::default());
}

#[test]
fn more_nodes_than_the_limit_are_left_out() {
    let mut fake = Fake::new(1, 1, 1);
    // A chain of switches is cut by the hops of a route; adapters by the limit on nodes.
    for n in 2..=250 {
        fake.nodes.insert(switch(n), fake.nodes[&switch(1)].clone());
        let node = fake.nodes.get_mut(&switch(n)).expect("just inserted");
        node.info.node_guid = switch(n);
        for port in node.ports.values_mut() {
            (port.peer, port.info.physical) = (None, 2);
        }
    }
    for n in 1..250 {
        fake.link((switch(n), 33), (switch(n + 1), 35));
    }
    let fabric = walked(fake);
    // 63 hops: this machine's own, and 62 between switches.
    assert_eq!(fabric.nodes.len(), 1 + 63);
}
