//! Each wrong property is refused with its item and a sentence, and alone.

use std::collections::BTreeMap;

use super::*;
use crate::cidr::Cidr;
use crate::configuration::{Class, Datalink, Interface, RouteItem};
use crate::state::{Address, Dns, Kind, Link, LinkMode, Mode, Owner, Policy, Route, Timer};

fn cidr(text: &str) -> Cidr {
    text.parse().expect("an address with a prefix length")
}

fn machine() -> State {
    let mut state = State::default();
    for name in ["e0", "e1", "e2"] {
        state.links.insert(name.to_owned(), Link::ethernet(1500, 9000));
    }
    let owner = Owner::Manager("systemd-networkd".to_owned());
    state.links.insert("wan".to_owned(), Link { owner, ..Link::ethernet(1500, 9000) });
    let kind = Kind::Device { infiniband: true, kind: String::new(), on: None };
    state.links.insert("ib0".to_owned(), Link { kind, ..Link::ethernet(2044, 4092) });
    state
}

#[derive(Default)]
struct Draft(Configuration);

impl Draft {
    fn datalink(mut self, name: &str, class: Class, mtu: Option<u32>) -> Self {
        self.0.datalinks.insert(name.to_owned(), Datalink { class, mtu });
        self
    }

    fn devices(self, names: &[&str]) -> Self {
        names.iter().fold(self, |draft, name| draft.datalink(name, Class::Device, None))
    }

    fn vlan(self, name: &str, link: &str, id: u16, mtu: Option<u32>) -> Self {
        self.datalink(name, Class::Vlan { link: link.to_owned(), id }, mtu)
    }

    fn partition(self, name: &str, link: &str, pkey: u16) -> Self {
        let class = Class::Partition { link: link.to_owned(), pkey, mode: LinkMode::Datagram };
        self.datalink(name, class, None)
    }

    fn aggregation(self, name: &str, links: &[&str], mtu: Option<u32>) -> Self {
        self.aggregation_of(name, links, Mode::active_backup(None), mtu)
    }

    fn aggregation_of(self, name: &str, links: &[&str], mode: Mode, mtu: Option<u32>) -> Self {
        let links = links.iter().map(|link| (*link).to_owned()).collect();
        self.datalink(name, Class::Aggregation { links, mode }, mtu)
    }

    fn interface(mut self, name: &str, link: &str, addresses: &[&str]) -> Self {
        let addresses: Vec<Cidr> = addresses.iter().map(|text| cidr(text)).collect();
        self.0.interfaces.insert(name.to_owned(), Interface::on(link, &addresses));
        self
    }

    fn group(mut self, name: &str, links: &[&str], standbys: &[&str]) -> Self {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let group = Interface {
            enabled: true,
            links: list(links),
            standbys: list(standbys),
            ..Interface::default()
        };
        self.0.interfaces.insert(name.to_owned(), group);
        self
    }

    fn route(mut self, name: &str, destination: &str, gateway: &str) -> Self {
        let gateway = gateway.parse().expect("an address");
        let item = RouteItem { destination: cidr(destination), gateway, metric: 5 };
        self.0.routes.insert(name.to_owned(), item);
        self
    }

    fn on(&self, observed: &State) -> Vec<String> {
        let record = Record::default();
        let machine = Machine { observed, record: &record, administration: &[], successor: None };
        check(&self.0, machine).iter().map(ToString::to_string).collect()
    }

    /// It is refused with this sentence, which names item and property, alone.
    fn refused(&self, sentence: &str) {
        assert_eq!(self.on(&machine()), [sentence]);
    }

    fn accepted(&self) {
        assert_eq!(self.on(&machine()), [] as [&str; 0]);
    }
}

fn draft() -> Draft {
    Draft::default()
}

#[test]
fn what_is_valid_is_accepted() {
    draft()
        .devices(&["e0", "e1", "e2", "ib0"])
        .aggregation("g0", &["e0", "e1"], Some(9000))
        .vlan("g0.10", "g0", 10, Some(9000))
        .vlan("fifteen_bytes_1", "g0", 4094, None)
        .partition("ib0.8001", "ib0", 0x8001)
        .interface("lan", "g0.10", &["10.0.0.1/24", "10.0.0.2/24", "2001:db8::1/64"])
        .interface("point", "e2", &["10.1.0.0/31"])
        .interface("fabric", "ib0.8001", &["10.2.0.1/16"])
        .route("far", "0.0.0.0/0", "10.0.0.9")
        .route("far6", "::/0", "2001:db8::9")
        .accepted();
}

#[test]
fn names_of_links() {
    draft()
        .devices(&["e0"])
        .vlan("sixteen_bytes_12", "e0", 1, None)
        .refused("datalinks/sixteen_bytes_12: name: a name has at most 15 bytes, this one has 16");
    for name in ["lo", "a/b", "a b", "..", "-a", "all", "ä"] {
        let refusals = draft().devices(&["e0"]).vlan(name, "e0", 1, None).on(&machine());
        assert!(refusals[0].contains(": name: a name has letters"), "{refusals:?}");
    }
    draft()
        .devices(&["e0"])
        .vlan("e1", "e0", 1, None)
        .refused("datalinks/e1: name: a link e1 exists, and Plimsoll has not made it");
    draft()
        .devices(&["e0", "e1"])
        .group("e2", &["e0", "e1"], &[])
        .refused("interfaces/e2: name: a link e2 exists, and Plimsoll has not made it");
}

#[test]
fn devices_of_others_and_devices_that_do_not_exist() {
    draft()
        .devices(&["wan"])
        .refused("datalinks/wan: name: wan is managed by systemd-networkd: release it there first");
    draft().devices(&["e9"]).refused("datalinks/e9: name: this machine has no device e9");
}

#[test]
fn numbers_of_vlans() {
    for id in [0, 4095] {
        let sentence = format!("datalinks/v: id: the number of a VLAN is 1 to 4094, not {id}");
        draft().devices(&["e0"]).vlan("v", "e0", id, None).refused(&sentence);
    }
    draft()
        .devices(&["e0"])
        .vlan("v", "e0", 7, None)
        .vlan("w", "e0", 7, None)
        .refused("datalinks/w: id: v is VLAN 7 on e0 already");
    draft()
        .devices(&["ib0"])
        .vlan("v", "ib0", 7, None)
        .refused("datalinks/v: link: ib0 is InfiniBand, which has partitions in place of VLANs");
    draft()
        .vlan("v", "w", 1, None)
        .vlan("w", "v", 1, None)
        .on(&machine())
        .iter()
        .for_each(|sentence| assert!(sentence.contains(": link: ") && sentence.contains("a loop")));
}

#[test]
fn p_keys() {
    for (pkey, text) in [(0x0000, "0x0000"), (0x8000, "0x8000")] {
        draft().devices(&["ib0"]).partition("p", "ib0", pkey).refused(&format!(
            "datalinks/p: pkey: P_Key {text} is invalid: the number of a partition is 0x0001 to \
             0x7fff"
        ));
    }
    draft().devices(&["ib0"]).partition("p", "ib0", 0x7fff).partition("q", "ib0", 0xffff).refused(
        "datalinks/q: pkey: p is the partition 0x7fff (limited 0x7fff, full 0xffff) on ib0 \
             already",
    );
    draft()
        .devices(&["e0"])
        .partition("p", "e0", 0x8001)
        .refused("datalinks/p: link: e0 is not an InfiniBand device");
}

#[test]
fn mtus() {
    draft()
        .datalink("e0", Class::Device, Some(9001))
        .refused("datalinks/e0: mtu: 9001 is above the highest MTU of e0, which is 9000");
    draft()
        .devices(&["e0"])
        .vlan("v", "e0", 1, Some(1501))
        .refused("datalinks/v: mtu: 1501 is above the MTU of e0, which is 1500");
    draft()
        .devices(&["e0", "e1"])
        .aggregation("g", &["e0", "e1"], None)
        .vlan("v", "g", 1, Some(9000))
        .refused("datalinks/v: mtu: 9000 is above the MTU of g, which is 1500");
    draft()
        .devices(&["ib0"])
        .aggregation("g", &["ib0"], Some(9000))
        .refused("datalinks/g: mtu: 9000 is above the highest MTU of ib0, which is 4092");
    draft()
        .datalink("e0", Class::Device, Some(1200))
        .interface("i", "e0", &["::2/64"])
        .refused("interfaces/i: addresses: IPv6 needs an MTU of 1280, and that of e0 is 1200");
}

#[test]
fn aggregations() {
    draft()
        .devices(&["e0"])
        .aggregation("g", &["h", "e0"], None)
        .aggregation("h", &["g"], None)
        .on(&machine())
        .iter()
        .for_each(|s| {
            assert!(s.contains(": links: ") && s.contains("a loop of aggregations"), "{s}")
        });
    draft()
        .devices(&["e0"])
        .aggregation("g", &["g", "e0"], None)
        .refused("datalinks/g: links: g is made of g: a loop of aggregations");
    draft()
        .devices(&["e0"])
        .aggregation("g", &["e0"], None)
        .aggregation("h", &["e0"], None)
        .refused("datalinks/h: links: e0 is a port of g already");
    draft()
        .aggregation("g", &[], None)
        .refused("datalinks/g: links: an aggregation has at least one link");
    draft()
        .devices(&["e0", "ib0"])
        .aggregation("g", &["e0", "ib0"], None)
        .refused("datalinks/g: links: Ethernet and InfiniBand cannot be ports of one aggregation");
    let lacp = Mode::Lacp { policy: Policy::Layer2, timer: Timer::Slow };
    draft()
        .devices(&["ib0"])
        .aggregation_of("g", &["ib0"], lacp, None)
        .refused("datalinks/g: mode: LACP is for Ethernet; use active-backup with InfiniBand");
    let primary = Mode::active_backup(Some("e1".to_owned()));
    draft()
        .devices(&["e0", "e1"])
        .aggregation_of("g", &["e0"], primary, None)
        .refused("datalinks/g: primary: e1 is not among its links");
    draft()
        .devices(&["e0"])
        .aggregation("g", &["e0"], None)
        .vlan("v", "e0", 1, None)
        .refused("datalinks/v: link: e0 is a port of g: use g");
}

#[test]
fn what_others_have_on_a_port() {
    let mut state = machine();
    let foreign = Address { cidr: cidr("10.0.0.1/24"), made: false };
    state.addresses.insert("e0".to_owned(), vec![foreign]);
    let refusals = draft().devices(&["e0"]).aggregation("g", &["e0"], None).on(&state);
    assert!(refusals[0].starts_with("datalinks/g: links: e0 has the address 10.0.0.1/24"));
    let mut state = machine();
    let kind = Kind::Vlan { on: "e0".to_owned(), id: 3 };
    state.links.insert("e0.3".to_owned(), Link { kind, ..Link::ethernet(1500, 0) });
    let refusals = draft().devices(&["e0"]).aggregation("g", &["e0"], None).on(&state);
    assert_eq!(refusals, ["datalinks/g: links: e0.3, which Plimsoll has not made, is on e0"]);
}

#[test]
fn what_others_have_made_on_a_link_that_goes() {
    let mut state = machine();
    let kind = Kind::Aggregation(Mode::active_backup(None));
    let owner = Owner::Plimsoll;
    state.links.insert("g".to_owned(), Link { kind, owner, ..Link::ethernet(1500, 0) });
    let kind = Kind::Vlan { on: "g".to_owned(), id: 3 };
    state.links.insert("g.3".to_owned(), Link { kind, ..Link::ethernet(1500, 0) });
    let refusals = draft().devices(&["e0"]).on(&state);
    assert_eq!(refusals.len(), 1);
    assert!(refusals[0].starts_with("datalinks/g: class: g is removed or made again, and g.3"));
}

#[test]
fn interfaces() {
    draft()
        .interface("i", "e0", &["10.0.0.1/24"])
        .refused("interfaces/i: links: there is no datalink e0");
    draft()
        .devices(&["e0"])
        .aggregation("g", &["e0"], None)
        .interface("i", "e0", &["10.0.0.1/24"])
        .refused("interfaces/i: links: e0 is a port of g and cannot have addresses");
    draft()
        .devices(&["e0"])
        .interface("i", "e0", &[])
        .interface("j", "e0", &[])
        .refused("interfaces/j: links: e0 has the interface i already");
    draft()
        .devices(&["e0", "e1"])
        .group("g", &["e0", "e1"], &["e0", "e1"])
        .refused("interfaces/g: standbys: one link at least is no standby");
    draft()
        .devices(&["e0", "e1", "e2"])
        .group("g", &["e0", "e1"], &["e2"])
        .refused("interfaces/g: standbys: e2 is not among its links");
    // A datalink and its standby are a group only if both are links.
    draft()
        .devices(&["e0", "e1"])
        .group("g", &["e0"], &["e1"])
        .refused("interfaces/g: standbys: e1 is not among its links");
    let mut dhcp = draft().devices(&["ib0"]).interface("i", "ib0", &[]);
    dhcp.0.interfaces.get_mut("i").expect("the interface").dhcp = true;
    dhcp.refused(
        "interfaces/i: dhcp: DHCP over InfiniBand (RFC 4390) is not available; set an address",
    );
}

#[test]
fn addresses() {
    for (text, sentence) in [
        ("10.0.0.0/24", "10.0.0.0 is the address of the network 10.0.0.0/24, not of a host"),
        ("10.0.0.255/24", "10.0.0.255 is the broadcast address of 10.0.0.255/24"),
        ("224.0.0.1/24", "224.0.0.1 is not an address of a host"),
        ("127.0.0.1/8", "127.0.0.1 is not an address of a host"),
        ("10.0.0.1/0", "10.0.0.1/0 has no network: the prefix length is 0"),
        ("fe80::1/64", "fe80::1 is link-local, which the kernel sets alone"),
    ] {
        let sentence = format!("interfaces/i: addresses: {sentence}");
        draft().devices(&["e0"]).interface("i", "e0", &[text]).refused(&sentence);
    }
    let two = |first: &str, second: &str| {
        draft().devices(&["e0", "e1"]).interface("i", "e0", &[first]).interface(
            "j",
            "e1",
            &[second],
        )
    };
    two("10.0.0.1/24", "10.0.0.2/24").refused(
        "interfaces/j: addresses: 10.0.0.2/24 is in the network of 10.0.0.1/24, an address of i",
    );
    two("10.0.0.1/8", "10.1.0.1/24").refused(
        "interfaces/j: addresses: 10.1.0.1/24 is in the network of 10.0.0.1/8, an address of i",
    );
    two("10.0.0.1/24", "10.0.0.1/24")
        .refused("interfaces/j: addresses: 10.0.0.1 is an address of i already");
    let mut state = machine();
    let foreign = Address { cidr: cidr("10.0.0.9/24"), made: false };
    state.addresses.insert("wan".to_owned(), vec![foreign]);
    let refusals = draft().devices(&["e0"]).interface("i", "e0", &["10.0.0.1/24"]).on(&state);
    let sentence = "10.0.0.1/24 is in the network of 10.0.0.9/24, an address of wan";
    assert_eq!(refusals, [format!("interfaces/i: addresses: {sentence}")]);
}

#[test]
fn the_address_of_the_administration() {
    let mut observed = machine();
    let at = "10.0.0.1".parse().expect("an address");
    observed.addresses.insert("e0".to_owned(), vec![Address::made(cidr("10.0.0.1/24"))]);
    let successor = |draft: &Draft, successor: Option<&str>| -> Vec<String> {
        let machine = Machine {
            observed: &observed,
            record: &Record::default(),
            administration: &[at],
            successor: successor.map(|text| text.parse().expect("an address")),
        };
        check(&draft.0, machine).iter().map(ToString::to_string).collect()
    };
    let moved = draft().devices(&["e0"]).interface("i", "e0", &["10.5.0.1/24"]);
    let refused =
        ["interfaces/i: addresses: the administration is reached at 10.0.0.1, which would be \
         removed: name the address that it is to be reached at afterwards"];
    assert_eq!(successor(&moved, None), refused);
    assert_eq!(successor(&moved, Some("10.5.0.2")), refused, "no interface has that address");
    assert_eq!(successor(&moved, Some("10.5.0.1")), [] as [&str; 0]);
    let stays = draft().devices(&["e0"]).interface("i", "e0", &["10.0.0.1/16"]);
    assert_eq!(successor(&stays, None), [] as [&str; 0]);
    let gone = successor(&draft(), None);
    assert!(gone[0].starts_with("interfaces: addresses: the administration is"), "{gone:?}");
}

#[test]
fn routes() {
    let base = || draft().devices(&["e0"]).interface("i", "e0", &["10.0.0.1/24"]);
    base()
        .route("r", "10.9.0.1/16", "10.0.0.9")
        .refused("routes/r: destination: 10.9.0.1/16 is not a network: write 10.9.0.0/16");
    base()
        .route("r", "10.9.0.0/16", "10.1.0.9")
        .refused("routes/r: gateway: 10.1.0.9 is in no network of an enabled interface");
    base()
        .route("r", "10.9.0.0/16", "10.0.0.1")
        .refused("routes/r: gateway: 10.0.0.1 is an address of the interface i");
    base()
        .route("r", "::/0", "10.0.0.9")
        .refused("routes/r: gateway: 10.0.0.9 is not of the protocol of ::/0");
    base().route("r", "10.9.0.0/16", "10.0.0.8").route("s", "10.9.0.0/16", "10.0.0.9").refused(
        "routes/s: destination: r has the destination 10.9.0.0/16 with the metric 5 already",
    );
    let mut state = machine();
    state.routes.push(Route {
        destination: cidr("10.9.0.0/16"),
        gateway: None,
        link: "e1".to_owned(),
        metric: 5,
        source: None,
        protocol: 4,
    });
    let refusals = base().route("r", "10.9.0.0/16", "10.0.0.9").on(&state);
    assert!(refusals[0].starts_with("routes/r: destination: the route 10.9.0.0/16 on e1"));
}

#[test]
fn name_servers_and_host_name() {
    let dns = |servers: &[&str], domains: &[&str]| {
        let servers = servers.iter().map(|text| text.parse().expect("an address")).collect();
        let domains = domains.iter().map(|text| (*text).to_owned()).collect();
        Draft(Configuration { dns: Some(Dns { servers, domains }), ..Configuration::default() })
    };
    dns(&["192.0.2.1", "::2"], &["example.net"]).accepted();
    dns(&["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"], &[])
        .refused("dns: servers: resolvers read 3 name servers");
    dns(&["0.0.0.0"], &[]).refused("dns: servers: 0.0.0.0 is not an address of a host");
    dns(&[], &["a..b"]).refused("dns: domains: \"a..b\" is not a domain name");
    let host = |name: &str| {
        let host_name = Some(name.to_owned());
        Draft(Configuration { host_name, datalinks: BTreeMap::new(), ..Configuration::default() })
    };
    host("storage-1.example.net").accepted();
    for name in ["", "-a", "a_b", &"a".repeat(64)] {
        let refusals = host(name).on(&machine());
        assert!(refusals[0].starts_with("identity: host_name: "), "{name}: {refusals:?}");
    }
}

fn probed(links: &[&str], hosts: &[&str], addresses: &[&str]) -> Draft {
    let mut draft = draft().devices(&["e0", "e1"]).group("g", links, &[]);
    let group = draft.0.interfaces.get_mut("g").expect("it");
    group.addresses = addresses.iter().map(|text| cidr(text)).collect();
    group.probes = hosts.iter().map(|text| text.parse().expect("an address")).collect();
    draft
}

#[test]
fn probes_are_for_groups_and_their_networks() {
    let both = &["e0", "e1"];
    probed(both, &["10.0.0.9", "10.0.0.10"], &["10.0.0.1/24"]).accepted();
    probed(both, &["10.0.0.0"], &["10.0.0.1/31"]).accepted();
    probed(&["e0"], &["10.0.0.9"], &["10.0.0.1/24"])
        .refused("interfaces/g: probes: only a group is probed: it has one link");
    probed(both, &["10.1.0.9"], &["10.0.0.1/24"])
        .refused("interfaces/g: probes: 10.1.0.9 is in no network of its static addresses");
    probed(both, &["10.0.0.1"], &["10.0.0.1/24"])
        .refused("interfaces/g: probes: 10.0.0.1 is an address of this interface");
    probed(both, &["10.0.0.255"], &["10.0.0.1/24"])
        .refused("interfaces/g: probes: 10.0.0.255 is not an address of a host");
    let many: Vec<String> = (2..=18).map(|n| format!("10.0.0.{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    probed(both, &many, &["10.0.0.1/24"])
        .refused("interfaces/g: probes: 17 hosts; the maximum is 16");
    let mut draft = probed(both, &["10.0.0.9"], &["10.0.0.1/24"]).devices(&["ib0"]);
    draft.0.interfaces.get_mut("g").expect("it").links = ["ib0", "e1"].map(str::to_owned).into();
    let found = draft.on(&machine());
    let sentence = "interfaces/g: probes: a group on InfiniBand is not probed";
    assert!(found.iter().any(|one| one.starts_with(sentence)), "{found:?}");
}
