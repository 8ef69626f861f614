//! The branch of the document as a configuration of the network, and refusals of the network as
//! problems of nodes.

use std::net::IpAddr;

use base::node::Path;
use control::tree::{Document, Problem};
use host_helper::request::Wrong;
use host_network::cidr::Cidr;
use host_network::configuration::{Class, Configuration, Datalink, Interface, RouteItem};
use host_network::pkey::Pkey;
use host_network::state::{Dns, LinkMode, Mode, Policy, Timer};

/// `/configuration/network`.
pub const PREFIX: [&str; 2] = ["configuration", "network"];
/// Metric of a route of IPv6 that sets none, as the kernel has it.
const METRIC_IPV6: u32 = 1024;

/// The node of an item: `datalinks/NAME`, `dns`.
pub fn path(item: &str) -> Path {
    item.split('/').fold(Path::of(&PREFIX), |path, part| path.join(part))
}

/// The network that a document configures.
///
/// # Errors
/// What is no value of the network.
pub fn read(document: &Document) -> Result<Configuration, Vec<Problem>> {
    let mut reader = Reader { document, problems: Vec::new() };
    let mut configuration = Configuration::default();
    for name in document.items(&path("datalinks")) {
        let at = path("datalinks").join(&name);
        if let Some(datalink) = reader.datalink(&at) {
            configuration.datalinks.insert(name, datalink);
        }
    }
    for name in document.items(&path("interfaces")) {
        let at = path("interfaces").join(&name);
        configuration.interfaces.insert(name, reader.interface(&at));
    }
    for name in document.items(&path("routes")) {
        let at = path("routes").join(&name);
        if let Some(route) = reader.route(&at) {
            configuration.routes.insert(name, route);
        }
    }
    let dns = path("dns");
    let servers = reader.list::<IpAddr>(&dns, "servers");
    let domains = document.texts(&dns, "domains");
    let is_set = !servers.is_empty() || !domains.is_empty();
    configuration.dns = is_set.then_some(Dns { servers, domains });
    configuration.host_name = document.text(&path("identity"), "host_name");
    if reader.problems.is_empty() { Ok(configuration) } else { Err(reader.problems) }
}

struct Reader<'a> {
    document: &'a Document,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn text(&self, at: &Path, property: &str) -> String {
        self.document.text(at, property).unwrap_or_default()
    }

    fn wrong(&mut self, at: &Path, property: &str, sentence: &str) {
        self.problems.push(Problem::new(at, sentence, "").property(property));
    }

    fn parsed<T: std::str::FromStr>(&mut self, at: &Path, property: &str, text: &str) -> Option<T>
    where
        T::Err: ToString,
    {
        let parsed = text.parse().map_err(|e: T::Err| e.to_string());
        parsed.map_err(|sentence| self.wrong(at, property, &sentence)).ok()
    }

    fn list<T: std::str::FromStr>(&mut self, at: &Path, property: &str) -> Vec<T>
    where
        T::Err: ToString,
    {
        let texts = self.document.texts(at, property);
        texts.iter().filter_map(|text| self.parsed(at, property, text)).collect()
    }

    fn datalink(&mut self, at: &Path) -> Option<Datalink> {
        let link = self.text(at, "link");
        let class = match self.text(at, "class").as_str() {
            "vlan" => {
                let id = self.document.integer(at, "id").unwrap_or_default();
                Class::Vlan { link, id: u16::try_from(id).unwrap_or_default() }
            }
            "aggregation" => {
                let links = self.document.texts(at, "links");
                Class::Aggregation { links, mode: self.mode(at) }
            }
            "partition" => {
                let text = self.text(at, "pkey");
                let pkey = self.parsed::<Pkey>(at, "pkey", &text)?;
                let mode = match self.text(at, "linkmode").as_str() {
                    "cm" => LinkMode::Connected,
                    _ => LinkMode::Datagram,
                };
                Class::Partition { link, pkey: pkey.full(), mode }
            }
            _ => Class::Device,
        };
        let mtu = self.document.integer(at, "mtu").and_then(|mtu| u32::try_from(mtu).ok());
        Some(Datalink { class, mtu })
    }

    fn mode(&self, at: &Path) -> Mode {
        if self.text(at, "mode") != "lacp" {
            return Mode::active_backup(self.document.text(at, "primary"));
        }
        let policy = match self.text(at, "policy").as_str() {
            "l2" => Policy::Layer2,
            "l23" => Policy::Layer23,
            _ => Policy::Layer34,
        };
        let timer = if self.text(at, "timer") == "fast" { Timer::Fast } else { Timer::Slow };
        Mode::Lacp { policy, timer }
    }

    fn interface(&mut self, at: &Path) -> Interface {
        let v4: Vec<Cidr> = self.list(at, "v4addrs");
        let v6: Vec<Cidr> = self.list(at, "v6addrs");
        if let Some(other) = v4.iter().find(|cidr| !cidr.is_ipv4()) {
            self.wrong(at, "v4addrs", &format!("{other} is an address of IPv6"));
        }
        if let Some(other) = v6.iter().find(|cidr| cidr.is_ipv4()) {
            self.wrong(at, "v6addrs", &format!("{other} is an address of IPv4"));
        }
        Interface {
            enabled: self.document.bool(at, "enable"),
            links: self.document.texts(at, "links"),
            standbys: self.document.texts(at, "standbys"),
            probes: self.list(at, "probes").into_iter().collect(),
            addresses: v4.into_iter().chain(v6).collect(),
            dhcp: self.document.bool(at, "v4dhcp"),
            advertisements: self.document.bool(at, "v6auto"),
        }
    }

    fn route(&mut self, at: &Path) -> Option<RouteItem> {
        let text = self.text(at, "destination");
        let destination = self.parsed::<Cidr>(at, "destination", &text)?;
        let text = self.text(at, "gateway");
        let gateway = self.parsed(at, "gateway", &text)?;
        let usual = if destination.is_ipv4() { 0 } else { METRIC_IPV6 };
        let metric = self.document.integer(at, "metric").and_then(|n| u32::try_from(n).ok());
        Some(RouteItem { destination, gateway, metric: metric.unwrap_or(usual) })
    }
}

/// What the helper refuses, at its node and property.
pub fn problem(wrong: &Wrong, document: &Document) -> Problem {
    let at = path(&wrong.item);
    let is_interface = wrong.item.starts_with("interfaces/");
    let property = match wrong.property.as_str() {
        "addresses" if is_interface => {
            // The sentence names the address; the list of IPv6 is meant if it has that one.
            let v6 = document.texts(&at, "v6addrs");
            let named = v6.iter().any(|text| {
                let address = text.split('/').next().unwrap_or(text);
                wrong.sentence.contains(address)
            });
            if named { "v6addrs" } else { "v4addrs" }
        }
        "dhcp" => "v4dhcp",
        "advertisements" => "v6auto",
        other => other,
    };
    let problem = Problem::conflict(&at, &wrong.sentence, "");
    // The name of an item is no property: it is in the path.
    if property == "name" { problem } else { problem.property(property) }
}
