//! What iproute2 shows: dumps as JSON, to be compared with a state and with each other.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::{Duration, Instant};

use host_network::cidr::Cidr;
use host_network::state::{Address, Kind, Link, MARK, Mode, Policy, Route, State, Timer};
use serde_json::Value;

/// How long addresses may take to settle: a link-local one is checked for a second or two.
const SETTLE: Duration = e2e::patience(30);
/// What differs without a change of the network.
const VOLATILE: [&str; 10] = [
    "ifindex",
    "valid_life_time",
    "preferred_life_time",
    "expires",
    "gc_timer",
    "forward_delay_timer",
    "hello_timer",
    "tcn_timer",
    "topology_change_timer",
    "link_index",
];

fn ip(arguments: &[&str]) -> Value {
    let output = Command::new("ip").args(arguments).output().expect("ip");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    if text.trim().is_empty() {
        return Value::Array(Vec::new());
    }
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{arguments:?}: {e}: {text}"))
}

fn rows(arguments: &[&str]) -> Vec<Value> {
    let Value::Array(mut rows) = ip(arguments) else { panic!("{arguments:?}: no list") };
    rows.retain(|row| row.as_object().is_some_and(|row| !row.is_empty()));
    rows
}

/// The number of a link.
pub fn index(link: &str) -> String {
    rows(&["-j", "link", "show", "dev", link])[0]["ifindex"].to_string()
}

/// The dumps of links, addresses and routes.
#[derive(Debug, PartialEq)]
pub struct Dumps(Vec<Vec<Value>>);

impl Dumps {
    /// As they are, once no address is being checked any more.
    pub fn take() -> Self {
        let end = Instant::now() + SETTLE;
        loop {
            let dumps = Self::now();
            if !format!("{dumps:?}").contains("tentative") || Instant::now() > end {
                return dumps;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn now() -> Self {
        let commands: [&[&str]; 4] =
            [&["-d", "-j", "link"], &["-j", "addr"], &["-j", "route"], &["-j", "-6", "route"]];
        let mut dumps: Vec<_> = commands.into_iter().map(rows).collect();
        dumps.iter_mut().flatten().for_each(strip);
        // Routes of one destination have no order.
        dumps.iter_mut().skip(2).for_each(|rows| rows.sort_by_key(Value::to_string));
        Self(dumps)
    }

    /// What of them is about these links.
    pub fn about(&self, links: &[&str]) -> Self {
        let named = |row: &&Value| {
            let name = row["ifname"].as_str().or_else(|| row["dev"].as_str());
            name.is_some_and(|name| links.contains(&name))
        };
        Self(self.0.iter().map(|rows| rows.iter().filter(named).cloned().collect()).collect())
    }

    /// Waits until the dumps are these again.
    pub fn wait_until_again(&self) {
        let end = Instant::now() + SETTLE;
        while Self::now() != *self {
            assert!(Instant::now() < end, "before: {self:#?}\nafter: {:#?}", Self::now());
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !VOLATILE.contains(&key.as_str()));
            map.values_mut().for_each(strip);
        }
        Value::Array(list) => list.iter_mut().for_each(strip),
        _ => {}
    }
}

/// Compares a state with what iproute2 shows, field by field.
pub fn compare(state: &State) {
    links(state);
    addresses(state);
    routes(state);
}

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or_default()
}

fn number(row: &Value, key: &str) -> u32 {
    row[key].as_u64().unwrap_or(0) as u32
}

fn links(state: &State) {
    let rows = rows(&["-d", "-j", "link"]);
    let names: BTreeSet<_> = rows.iter().map(|row| text(row, "ifname")).collect();
    assert_eq!(names, state.links.keys().map(String::as_str).collect());
    for row in &rows {
        let link = &state.links[text(row, "ifname")];
        assert_eq!(link.mtu, number(row, "mtu"), "{row}");
        assert_eq!(link.mtu_range, (number(row, "min_mtu"), number(row, "max_mtu")), "{row}");
        let flags = row["flags"].as_array().expect("flags");
        assert_eq!(link.up, flags.contains(&Value::from("UP")), "{row}");
        assert_eq!(link.controller.as_deref().unwrap_or_default(), text(row, "master"), "{row}");
        assert_eq!(link.is_made(), text(row, "group") == MARK.to_string(), "{row}");
        kind(link, row);
    }
}

fn kind(link: &Link, row: &Value) {
    let info = &row["linkinfo"];
    let data = &info["info_data"];
    let kind = text(info, "info_kind");
    match &link.kind {
        Kind::Device { kind: of_device, infiniband, .. } => {
            assert_eq!(of_device, kind, "{row}");
            assert_eq!(*infiniband, text(row, "link_type") == "infiniband", "{row}");
        }
        Kind::Vlan { on, id } => {
            assert_eq!((on.as_str(), "vlan"), (text(row, "link"), kind), "{row}");
            assert_eq!(u32::from(*id), number(data, "id"), "{row}");
            assert_eq!(text(data, "protocol"), "802.1Q", "{row}");
        }
        Kind::Aggregation(Mode::ActiveBackup { primary, probes }) => {
            assert_eq!((kind, text(data, "mode")), ("bond", "active-backup"), "{row}");
            assert_eq!(primary.as_deref().unwrap_or_default(), text(data, "primary"), "{row}");
            let hosts = data["arp_ip_target"].as_array().cloned().unwrap_or_default();
            let hosts = hosts.iter().map(|host| host.as_str().expect("an address").parse());
            assert_eq!(hosts.collect::<Result<BTreeSet<_>, _>>().as_ref(), Ok(probes), "{row}");
            let by = if probes.is_empty() { "miimon" } else { "arp_interval" };
            assert_eq!(number(data, by), if probes.is_empty() { 100 } else { 500 }, "{row}");
            let validates = text(data, "arp_validate") == "all";
            assert_eq!(validates, !probes.is_empty(), "{row}");
        }
        Kind::Aggregation(Mode::Lacp { policy, timer }) => {
            assert_eq!((kind, text(data, "mode")), ("bond", "802.3ad"), "{row}");
            let policy = match policy {
                Policy::Layer2 => "layer2",
                Policy::Layer23 => "layer2+3",
                Policy::Layer34 => "layer3+4",
            };
            assert_eq!(text(data, "xmit_hash_policy"), policy, "{row}");
            let timer = if *timer == Timer::Fast { "fast" } else { "slow" };
            assert_eq!(text(data, "ad_lacp_rate"), timer, "{row}");
        }
        Kind::Partition { .. } => panic!("no InfiniBand here: {row}"),
    }
}

fn addresses(state: &State) {
    let mut shown: BTreeMap<String, Vec<Address>> = BTreeMap::new();
    for row in rows(&["-j", "addr"]) {
        for address in row["addr_info"].as_array().into_iter().flatten() {
            let scope = text(address, "scope");
            let of_kernel =
                scope == "host" || (scope == "link" && text(address, "family") == "inet6");
            if of_kernel || address["dynamic"] == true {
                continue;
            }
            let cidr = format!("{}/{}", text(address, "local"), number(address, "prefixlen"));
            let address = Address { cidr: cidr.parse().expect("an address"), made: false };
            shown.entry(text(&row, "ifname").to_owned()).or_default().push(address);
        }
    }
    let mut ours = state.addresses.clone();
    for list in ours.values_mut() {
        list.iter_mut().for_each(|address| address.made = false);
    }
    let mut shown = State { addresses: shown, ..State::default() };
    shown.normalise();
    assert_eq!(shown.addresses, ours);
}

fn routes(state: &State) {
    let mut shown = Vec::new();
    for (family, any) in [("-4", "0.0.0.0/0"), ("-6", "::/0")] {
        for row in rows(&["-j", family, "route"]) {
            let protocol = match text(&row, "protocol") {
                "kernel" | "ra" => continue,
                "" | "boot" => 3,
                "static" => 4,
                other => other.parse().unwrap_or_else(|_| panic!("{row}")),
            };
            let destination = match text(&row, "dst") {
                "default" => any.to_owned(),
                host if !host.contains('/') && family == "-4" => format!("{host}/32"),
                host if !host.contains('/') => format!("{host}/128"),
                network => network.to_owned(),
            };
            shown.push(Route {
                destination: destination.parse::<Cidr>().expect("a network"),
                gateway: row["gateway"].as_str().map(|ip| ip.parse().expect("an address")),
                link: text(&row, "dev").to_owned(),
                metric: number(&row, "metric"),
                source: row["prefsrc"].as_str().map(|ip| ip.parse().expect("an address")),
                protocol,
            });
        }
    }
    shown.sort();
    assert_eq!(shown, state.routes);
}
