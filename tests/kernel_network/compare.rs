//! What iproute2 shows of a guest, and the nodes of the tree, field by field.

use std::collections::BTreeSet;

use serde_json::Value;

/// Group and route protocol of what Plimsoll has made (docs/howto/network.md).
const MARK: &str = "215";
/// The device by which the guest is reached: its address is another one after each boot.
const WAY_IN: &str = "vec0";
/// What differs without a change of the network.
const VOLATILE: [&str; 7] = [
    "ifindex",
    "link_index",
    "valid_life_time",
    "preferred_life_time",
    "expires",
    "ad_info",
    // How far the ports of a bond are with LACP.
    "info_slave_data",
];
/// The time in which a bond sees that a link is down (ms).
const MIIMON: u64 = 100;

/// The time between probes of a group (ms).
const PROBE: u64 = 500;

/// Links, addresses, and routes of IPv4 and of IPv6.
#[derive(Debug, PartialEq)]
pub struct Dumps(Vec<Vec<Value>>);

impl Dumps {
    pub fn of(all: Value) -> Self {
        let Value::Array(all) = all else { panic!("{all}") };
        let rows = |dump: Value| -> Vec<Value> {
            let mut rows = dump.as_array().cloned().unwrap_or_default();
            rows.retain(|row| row.as_object().is_some_and(|row| !row.is_empty()));
            rows.retain(|row| row["ifname"] != WAY_IN && row["dev"] != WAY_IN);
            rows.iter_mut().for_each(strip);
            rows
        };
        let mut dumps: Vec<Vec<Value>> = all.into_iter().map(rows).collect();
        // Links and routes have no order; the one of links is that in which they were made.
        dumps.iter_mut().for_each(|rows| rows.sort_by_key(Value::to_string));
        Self(dumps)
    }

    /// Whether no address is being checked.
    pub fn is_settled(&self) -> bool {
        !format!("{self:?}").contains("tentative")
    }

    /// Rows that only one of two has.
    pub fn differences(&self, now: &Self) -> String {
        let mut text = String::new();
        for (wanted, found) in self.0.iter().zip(&now.0) {
            for row in wanted.iter().filter(|row| !found.contains(row)) {
                text += &format!("missing: {row}\n");
            }
            for row in found.iter().filter(|row| !wanted.contains(row)) {
                text += &format!("too much: {row}\n");
            }
        }
        text
    }

    fn link(&self, name: &str) -> &Value {
        let link = self.0[0].iter().find(|row| row["ifname"] == name);
        link.unwrap_or_else(|| panic!("there is no link {name}"))
    }

    /// Links of a bond.
    fn ports(&self, bond: &str) -> BTreeSet<String> {
        self.0[0]
            .iter()
            .filter(|row| row["master"] == bond)
            .map(|row| text(row, "ifname"))
            .collect()
    }

    /// Addresses of a link, but for those of the kernel.
    fn addresses(&self, link: &str) -> BTreeSet<String> {
        let row = self.0[1].iter().find(|row| row["ifname"] == link);
        let all = row.and_then(|row| row["addr_info"].as_array()).cloned().unwrap_or_default();
        let own = all.iter().filter(|one| one["scope"] == "global");
        own.map(|one| format!("{}/{}", text(one, "local"), one["prefixlen"])).collect()
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

fn text(row: &Value, key: &str) -> String {
    row[key].as_str().unwrap_or_default().to_owned()
}

/// The value of a property of a node.
pub fn value<'a>(node: &'a Value, name: &str) -> &'a Value {
    let all = node["properties"].as_array().expect("properties");
    let property = all.iter().find(|one| one["name"] == name);
    &property.unwrap_or_else(|| panic!("{name} of {}", node["path"]))["value"]
}

fn list(node: &Value, name: &str) -> Vec<String> {
    let all = value(node, name).as_array().cloned().unwrap_or_default();
    all.iter().map(|one| one.as_str().unwrap_or_default().to_owned()).collect()
}

fn items<'a>(tree: &'a Value, kind: &str) -> Vec<&'a Value> {
    let children = tree["children"].as_array().expect("children");
    let child = children.iter().find(|child| child["name"] == kind).expect(kind);
    child["items"].as_array().expect("items").iter().collect()
}

/// The interface of this name in a tree.
pub fn interface_of<'a>(tree: &'a Value, name: &str) -> &'a Value {
    let all = items(tree, "interfaces");
    all.into_iter().find(|node| node["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

/// Compares all that is configured with what iproute2 shows.
///
/// # Panics
/// At the first difference.
pub fn compare(tree: &Value, dumps: &Dumps) {
    let mut made = BTreeSet::new();
    for node in items(tree, "datalinks") {
        if datalink(node, dumps) {
            made.insert(text(node, "name"));
        }
    }
    for node in items(tree, "interfaces") {
        if interface(node, dumps) {
            made.insert(text(node, "name"));
        }
    }
    let marked = dumps.0[0].iter().filter(|row| row["group"] == MARK);
    assert_eq!(marked.map(|row| text(row, "ifname")).collect::<BTreeSet<_>>(), made);
    routes(&items(tree, "routes"), dumps);
}

/// Whether Plimsoll has made it.
fn datalink(node: &Value, dumps: &Dumps) -> bool {
    let link = dumps.link(&text(node, "name"));
    let (kind, data) = (&link["linkinfo"]["info_kind"], &link["linkinfo"]["info_data"]);
    is_up(node, link);
    assert_eq!(*value(node, "found_mtu"), link["mtu"], "{link}");
    if !value(node, "mtu").is_null() {
        assert_eq!(*value(node, "mtu"), link["mtu"], "{link}");
    }
    match value(node, "class").as_str().expect("a class") {
        "device" => return false,
        "vlan" => {
            assert_eq!(kind, "vlan", "{link}");
            assert_eq!(*value(node, "link"), link["link"], "{link}");
            assert_eq!(*value(node, "id"), data["id"], "{link}");
        }
        "aggregation" => {
            assert_eq!(kind, "bond", "{link}");
            let ports: BTreeSet<String> = list(node, "links").into_iter().collect();
            assert_eq!(ports, dumps.ports(&text(node, "name")), "{link}");
            bond(node, data);
        }
        other => panic!("{other}"),
    }
    true
}

fn bond(node: &Value, data: &Value) {
    assert_eq!(data["miimon"], MIIMON, "{data}");
    if value(node, "mode") == "lacp" {
        assert_eq!(data["mode"], "802.3ad", "{data}");
        assert_eq!(data["ad_lacp_rate"], *value(node, "timer"), "{data}");
        let policy = match value(node, "policy").as_str() {
            Some("l2") => "layer2",
            Some("l23") => "layer2+3",
            _ => "layer3+4",
        };
        assert_eq!(data["xmit_hash_policy"], policy, "{data}");
    } else {
        assert_eq!(data["mode"], "active-backup", "{data}");
        assert_eq!(*value(node, "primary"), data["primary"], "{data}");
    }
}

/// Whether Plimsoll has made its link, a group.
fn interface(node: &Value, dumps: &Dumps) -> bool {
    let ports = list(node, "links");
    let is_group = ports.len() > 1;
    let name = if is_group { text(node, "name") } else { ports[0].clone() };
    let link = dumps.link(&name);
    is_up(node, link);
    let mut addresses: BTreeSet<String> =
        [list(node, "v4addrs"), list(node, "v6addrs")].concat().into_iter().collect();
    addresses.extend(lease(node));
    assert_eq!(addresses, dumps.addresses(&name), "{link}");
    // Those that were set: an address by DHCP is shown as the lease.
    let found = list(node, "found").into_iter().filter(|one| !one.starts_with("fe80:"));
    assert_eq!(addresses, found.chain(lease(node)).collect(), "{link}");
    if is_group {
        let data = &link["linkinfo"]["info_data"];
        assert_eq!(data["mode"], "active-backup", "{link}");
        let probes = list(node, "probes");
        if probes.is_empty() {
            assert_eq!(data["miimon"], MIIMON, "{link}");
        } else {
            assert_eq!(data["arp_interval"], PROBE, "{link}");
            assert_eq!(data["arp_ip_target"], serde_json::json!(probes), "{link}");
        }
        let active = ports.iter().find(|port| !list(node, "standbys").contains(port));
        assert_eq!(data["primary"], *active.expect("one that is no standby"), "{link}");
        assert_eq!(dumps.ports(&name), ports.into_iter().collect(), "{link}");
    }
    is_group
}

/// The address of an interface by DHCP.
pub fn lease(node: &Value) -> Option<String> {
    value(node, "lease").as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn is_up(node: &Value, link: &Value) {
    let up = link["flags"].as_array().expect("flags").contains(&Value::from("UP"));
    assert_eq!(value(node, "state"), if up { "up" } else { "down" }, "{link}");
}

fn routes(nodes: &[&Value], dumps: &Dumps) {
    let rows = dumps.0[2].iter().chain(&dumps.0[3]);
    let made = rows.filter(|row| row["protocol"] == MARK);
    let made: BTreeSet<_> = made
        .map(|row| (text(row, "dst"), text(row, "gateway"), row["metric"].as_u64().unwrap_or(0)))
        .collect();
    let wanted = nodes.iter().map(|node| {
        assert_eq!(value(node, "state"), "up", "{node}");
        let of = |name: &str| value(node, name).as_str().unwrap_or_default().to_owned();
        (of("destination"), of("gateway"), value(node, "metric").as_u64().unwrap_or(0))
    });
    assert_eq!(wanted.collect::<BTreeSet<_>>(), made);
}
