//! Networks of clients as they are written, what they contain, and which interface serves them.

use super::*;
use std::net::Ipv6Addr;

fn subnet(text: &str) -> Subnet {
    text.parse().expect("a subnet")
}

#[test]
fn a_subnet_is_a_network_and_the_servers_address() {
    let one = subnet("10.1.0.0/24=10.1.0.1");
    assert_eq!(
        (one.to_string(), one.server.to_string()),
        ("10.1.0.0/24".into(), "10.1.0.1".into())
    );
    let inside = |text: &str| one.contains(text.parse().expect("an address"));
    assert!(inside("10.1.0.0") && inside("10.1.0.255"));
    assert!(!inside("10.1.1.0") && !inside("10.0.255.255") && !inside("::ffff:10.1.0.1"));
    assert_eq!(one.local_address(2).to_string(), "10.1.0.13");
    assert!(subnet("0.0.0.0/0=10.1.0.1").contains(Ipv4Addr::LOCALHOST.into()));
    assert!(subnet("::/0=::1").contains(Ipv6Addr::LOCALHOST.into()));
    let six = subnet("fd00:1::/64=fd00:1::1");
    assert!(six.contains("fd00:1::ff".parse().unwrap()));
    assert!(!six.contains("fd00:2::ff".parse().unwrap()));
    for wrong in ["10.1.0.0/24", "10.1.0.0=10.1.0.1", "10.1.0.0/33=10.1.0.1", "x/24=10.1.0.1"] {
        assert!(wrong.parse::<Subnet>().is_err(), "{wrong}");
    }
}

#[test]
fn the_interface_is_that_of_the_longest_route() {
    // Of a machine with the least significant byte first.
    let table = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\n\
        eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
        one\t0000010A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n\
        two\t0000020A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
    let of = |text: &str| interface_in(table, text.parse().expect("an address"));
    assert_eq!(of("10.1.0.1").as_deref(), Some("one"));
    assert_eq!(of("10.2.0.1").as_deref(), Some("two"));
    assert_eq!(of("10.3.0.1").as_deref(), Some("eth0"));
    assert_eq!(interface_in("", Ipv4Addr::LOCALHOST), None);
}

#[test]
fn figures_by_network_are_those_of_its_clients() {
    use crate::record::observed::ClientStep;
    let networks = [subnet("10.1.0.0/24=10.1.0.1"), subnet("10.2.0.0/24=10.2.0.1")];
    let mut result = crate::report::tests::made_up();
    let (step, mut client) = (result.steps[0].clone(), result.clients[0].clone());
    result.clients.clear();
    for number in 0..4 {
        (client.number, client.subnet) = (number, Some(networks[number as usize % 2].to_string()));
        client.lost = (number % 2 == 1).then(|| "silent".to_owned());
        result.clients.push(client.clone());
    }
    let of = |client: u32, bytes| ClientStep {
        client,
        bytes,
        subnet: Some(networks[client as usize % 2].to_string()),
        ..ClientStep::default()
    };
    let step = Step { by_client: vec![of(0, 10), of(2, 30)], used: (2, 4), window_s: 0.5, ..step };
    let found = of_step(&step, (&networks, &[None, Some("two".into())]), &result, 4);
    assert_eq!((found[0].clients, found[0].lost, found[0].bytes_s), (2, 0, 40.0));
    assert_eq!((found[0].interface.as_deref(), found[1].interface.as_deref()), (None, Some("two")));
    assert_eq!((found[1].clients, found[1].lost, found[1].bytes_s), (0, 2, 0.0));
    let lost = lost(&result, &networks);
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert!(lost[0].starts_with("lost subnet 10.2.0.0/24 (server 10.2.0.1): all 2 of its clients"));
}

#[test]
fn the_whole_step_is_compared_at_both_ends() {
    use crate::record::observed::ClientStep;
    use host::observe::Interface;
    let of = |client: u32, network: &str| ClientStep {
        client,
        subnet: Some(network.to_owned()),
        ..ClientStep::default()
    };
    let by_client = vec![of(0, "a"), of(1, "b"), of(2, "a")];
    let step = Step { by_client, ..Step::default() };
    let sample = |bytes: [u64; 2], packets: [u64; 2]| {
        let mut sample = ServerSample { observed: Some(Default::default()), ..Default::default() };
        let observed = sample.observed.as_mut().expect("it was set");
        let interface = Interface { name: "one".to_owned(), bytes, packets, ..Default::default() };
        observed.interfaces.push(interface);
        sample
    };
    let around = Some([sample([100, 1_000], [1, 10]), sample([150, 3_000], [3, 40])]);
    let on = |network: &str, interface: &str| SubnetStep {
        network: network.to_owned(),
        interface: Some(interface.to_owned()),
        ..SubnetStep::default()
    };
    let mut found = [on("a", "one"), on("b", "two"), SubnetStep { lost: 1, ..on("a", "one") }];
    enter_whole(&mut found, &step, &(vec![(0, 900), (1, 5), (2, 1_000)], around));
    let whole = WholeStep { payload: 1_900, rx: 50, tx: 2_000, rx_packets: 2, tx_packets: 30 };
    assert_eq!(found.map(|subnet| subnet.whole), [Some(whole), None, None]);
}
