//! A machine, and random configurations of it that are valid.

use std::collections::BTreeMap;

use base::random::{Random, SeededRandom};
use host_network::cidr::Cidr;
use host_network::configuration::{Class, Configuration, Datalink, Interface, RouteItem};
use host_network::fake::Kernel;
use host_network::state::{
    Address, Dns, Kind, Link, LinkMode, Mode, Owner, Policy, Route, State, Timer,
};

/// Protocol of routes that an administrator sets by hand (RTPROT_STATIC).
const STATIC: u8 = 4;
/// Devices of Ethernet.
const ETHERNET: [&str; 4] = ["e0", "e1", "e2", "e3"];

fn cidr(text: &str) -> Cidr {
    text.parse().expect("an address with a prefix length")
}

fn chance(random: &mut SeededRandom, percent: u64) -> bool {
    random.below(100) < percent
}

fn route(destination: &str, gateway: &str, link: &str, protocol: u8) -> Route {
    Route {
        destination: cidr(destination),
        gateway: Some(gateway.parse().expect("an address")),
        link: link.to_owned(),
        metric: if destination.contains(':') { 1024 } else { 0 },
        source: None,
        protocol,
    }
}

/// Four devices of Ethernet (one is down), one of InfiniBand, one of NetworkManager's with what it
/// has set, and a device that was configured by hand.
pub fn machine() -> State {
    let mut state = State::default();
    for name in ETHERNET {
        state.links.insert(name.to_owned(), Link::ethernet(1500, 9000));
    }
    let down = Link { up: false, ..Link::ethernet(1500, 9000) };
    state.links.insert("e3".to_owned(), down);
    let kind = Kind::Device { infiniband: true, kind: String::new(), on: None };
    let port = Link { kind, ..Link::ethernet(2044, 4092) };
    state.links.insert("ib0".to_owned(), port);
    let owner = Owner::Manager("NetworkManager".to_owned());
    state.links.insert("wan".to_owned(), Link { owner, ..Link::ethernet(1500, 9000) });
    state.links.insert("hand".to_owned(), Link::ethernet(1500, 9000));
    let foreign = |text: &str| Address { cidr: cidr(text), made: false };
    state.addresses.insert("wan".to_owned(), vec![foreign("192.0.2.7/24")]);
    let by_hand = ["198.51.100.1/24", "198.51.100.2/24", "2001:db8:ff::1/64"].map(foreign);
    state.addresses.insert("hand".to_owned(), by_hand.to_vec());
    state.routes = vec![
        route("0.0.0.0/0", "192.0.2.1", "wan", 16),
        route("203.0.113.0/24", "198.51.100.9", "hand", STATIC),
    ];
    state.dns.servers = vec!["192.0.2.53".parse().expect("an address")];
    state.host_name = "machine".to_owned();
    state
}

/// Another program adds routes through addresses that Plimsoll has set, which go with them, and an
/// address behind one of them.
pub fn others_add(kernel: &mut Kernel, random: &mut SeededRandom) {
    let state = kernel.state_mut();
    for at in 0..8 {
        let gateway = std::net::IpAddr::from([10, at, 0, 200]);
        let is_reached =
            |list: &Vec<Address>| list.iter().any(|a| a.made && a.cidr.contains(gateway));
        let link = state.addresses.iter().find(|(_, list)| is_reached(list));
        let Some(link) = link.map(|(link, _)| link.clone()) else { continue };
        if chance(random, 60) {
            let destination = format!("172.16.{at}.0/24");
            state.routes.push(route(&destination, &gateway.to_string(), &link, STATIC));
        }
    }
    state.normalise();
}

/// What Plimsoll has made of a state.
pub fn made(state: &State) -> State {
    let mut state = state.clone();
    state.links.retain(|_, link| link.is_made());
    for link in state.links.values_mut() {
        link.mtu_range = (0, 0);
    }
    for list in state.addresses.values_mut() {
        list.retain(|address| address.made);
    }
    state.routes.retain(Route::is_made);
    state.normalise();
    state
}

/// A valid configuration of [`machine`].
pub fn generate(random: &mut SeededRandom) -> Configuration {
    let mut made = Generator { random, configuration: Configuration::default(), free: Vec::new() };
    made.devices();
    made.aggregation();
    made.vlans();
    made.partitions();
    made.group();
    made.interfaces();
    made.routes();
    if chance(made.random, 40) {
        let servers = vec!["192.0.2.54".parse().expect("an address")];
        made.configuration.dns = Some(Dns { servers, domains: vec!["example.net".to_owned()] });
    }
    if chance(made.random, 40) {
        made.configuration.host_name = Some("other".to_owned());
    }
    made.configuration
}

struct Generator<'a> {
    random: &'a mut SeededRandom,
    configuration: Configuration,
    /// Datalinks that can have an interface or be ports.
    free: Vec<String>,
}

impl Generator<'_> {
    fn insert(&mut self, name: &str, class: Class, mtu: Option<u32>) {
        self.configuration.datalinks.insert(name.to_owned(), Datalink { class, mtu });
        self.free.push(name.to_owned());
    }

    fn devices(&mut self) {
        for name in ETHERNET {
            if chance(self.random, 75) {
                let mtu = chance(self.random, 40).then_some(4000);
                self.insert(name, Class::Device, mtu);
            }
        }
        if chance(self.random, 50) {
            self.insert("ib0", Class::Device, None);
        }
        if chance(self.random, 50) {
            self.insert("hand", Class::Device, None);
        }
    }

    fn ethernet(&mut self, count: usize) -> Vec<String> {
        let mut chosen: Vec<String> =
            self.free.iter().filter(|name| name.starts_with('e')).take(count).cloned().collect();
        if chance(self.random, 50) {
            chosen.reverse();
        }
        self.free.retain(|name| !chosen.contains(name));
        chosen
    }

    fn aggregation(&mut self) {
        if !chance(self.random, 70) {
            return;
        }
        let count = 1 + self.random.below(2) as usize;
        let links = self.ethernet(count);
        if links.is_empty() {
            return;
        }
        let mode = match self.random.below(4) {
            0 => Mode::Lacp { policy: Policy::Layer34, timer: Timer::Fast },
            1 => Mode::Lacp { policy: Policy::Layer2, timer: Timer::Slow },
            2 => Mode::active_backup(links.first().cloned()),
            _ => Mode::active_backup(None),
        };
        let mtu = chance(self.random, 50).then_some(9000);
        self.insert("g0", Class::Aggregation { links, mode }, mtu);
    }

    fn vlans(&mut self) {
        let on: Vec<String> =
            self.free.iter().filter(|n| n.starts_with(['e', 'g'])).cloned().collect();
        for link in on {
            for id in [10, 20] {
                if chance(self.random, 40) {
                    let mtu = chance(self.random, 50).then_some(1400);
                    let class = Class::Vlan { link: link.clone(), id };
                    self.insert(&format!("{link}.{id}"), class, mtu);
                }
            }
        }
        // A VLAN in a VLAN.
        if self.configuration.datalinks.contains_key("g0.10") && chance(self.random, 50) {
            self.insert("g0.q", Class::Vlan { link: "g0.10".to_owned(), id: 7 }, None);
        }
    }

    fn partitions(&mut self) {
        if self.configuration.datalinks.contains_key("ib0") && chance(self.random, 70) {
            let pkey = if chance(self.random, 50) { 0x8001 } else { 0x7fff };
            let mode = LinkMode::Datagram;
            let class = Class::Partition { link: "ib0".to_owned(), pkey, mode };
            self.insert("ib0.p", class, None);
        }
    }

    fn group(&mut self) {
        // Devices with VLANs on them are no ports here.
        let on: Vec<String> = (self.configuration.datalinks.values())
            .flat_map(|datalink| datalink.class.links().to_vec())
            .collect();
        let before = self.free.clone();
        self.free.retain(|name| !on.contains(name) && ETHERNET.contains(&name.as_str()));
        let links = self.ethernet(2);
        self.free = before;
        if links.len() == 2 && chance(self.random, 50) {
            self.free.retain(|name| !links.contains(name));
            let addresses = vec![cidr("10.7.0.1/24")];
            let standbys = vec![links[1].clone()];
            let probed = chance(self.random, 40);
            let probes = probed.then_some([10, 7, 0, 9].into()).into_iter().collect();
            let group = Interface {
                enabled: true,
                links,
                standbys,
                probes,
                addresses,
                ..Interface::default()
            };
            self.configuration.interfaces.insert("group".to_owned(), group);
        }
    }

    fn interfaces(&mut self) {
        let free = std::mem::take(&mut self.free);
        for (at, link) in free.iter().take(7).enumerate() {
            if !chance(self.random, 70) {
                continue;
            }
            let mut addresses = Vec::new();
            for host in [1, 2, 3] {
                if chance(self.random, 50) {
                    addresses.push(cidr(&format!("10.{at}.0.{host}/24")));
                }
            }
            if chance(self.random, 30) {
                addresses.reverse();
            }
            if chance(self.random, 40) {
                addresses.push(cidr(&format!("2001:db8:{at}::1/64")));
            }
            let enabled = chance(self.random, 90);
            let advertisements = chance(self.random, 20);
            let dhcp = link != "ib0" && link != "ib0.p" && chance(self.random, 10);
            let interface =
                Interface { enabled, advertisements, dhcp, ..Interface::on(link, &addresses) };
            self.configuration.interfaces.insert(format!("i{at}"), interface);
        }
    }

    fn routes(&mut self) {
        let mut routes = BTreeMap::new();
        for at in 0..8_u8 {
            for (destination, gateway, metric) in [
                (format!("10.10{at}.0.0/16"), format!("10.{at}.0.100"), 0),
                (format!("2001:db8:f{at}::/48"), format!("2001:db8:{at}::100"), 1024),
            ] {
                let gateway = gateway.parse().expect("an address");
                let destination = cidr(&destination);
                let is_reached = self.configuration.reaches(gateway).is_some();
                if is_reached && chance(self.random, 70) {
                    let item = RouteItem { destination, gateway, metric };
                    routes.insert(format!("r{at}-{metric}"), item);
                }
            }
        }
        self.configuration.routes = routes;
    }
}
