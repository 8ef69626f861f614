//! Partitions that the subnet manager gives to the ports of this machine: what a datalink can use,
//! and what it has lost.
//!
//! P_Keys are read from sysfs, which every user may read, and by management datagrams of ports that
//! sysfs does not have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use base::clock::monotonic_ns;
use base::node::Value;
use host::Root;
use host_fabric::monitor::Report;
use host_hardware::hca;
use host_network::configuration::{Class, Configuration};
use host_network::pkey::Pkey;
use parking_lot::Mutex;

use super::carrier::enter;
use super::shown::Shown;
use crate::fabric::watch::Fabrics;
use crate::problems::{Fault, Severity};

/// How long a reading is good: a page reads tens of nodes at once.
const GOOD: Duration = Duration::from_millis(500);
/// `ARPHRD_INFINIBAND` in the file `type` of a network device.
const INFINIBAND: &str = "32";
/// The partition that a network device of a port has (0x7fff): nothing is made for it.
const DEFAULT: u16 = 0x7fff;
/// Offers that are shown: a table has 128 entries.
const OFFERS_MAX: usize = 512;
/// A folder of sysfs.
const DEVICES: &str = "sys/class/net";

/// A port of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Port {
    name: String,
    guid: u64,
    /// Its network device.
    device: Option<String>,
    /// P_Keys by partition; full membership takes precedence over limited.
    pkeys: BTreeMap<u16, Pkey>,
}

/// Partitions of the ports of this machine.
#[derive(Default)]
pub(super) struct Partitions {
    root: Root,
    fabrics: OnceLock<Weak<Fabrics>>,
    last: Mutex<Option<(Duration, Arc<Vec<Port>>)>>,
}

impl Partitions {
    /// Reads also what these fabrics have.
    pub(super) fn follow(&self, fabrics: &Arc<Fabrics>) {
        // Once, at the start.
        let _ = self.fabrics.set(Arc::downgrade(fabrics));
    }

    fn ports(&self) -> Arc<Vec<Port>> {
        let now = Duration::from_nanos(monotonic_ns());
        let mut last = self.last.lock();
        if let Some((at, ports)) = &*last
            && now.saturating_sub(*at) < GOOD
        {
            return ports.clone();
        }
        let fabrics = self.fabrics.get().and_then(Weak::upgrade);
        let reports = fabrics.map(|fabrics| fabrics.reports()).unwrap_or_default();
        let ports = Arc::new(ports(&self.root, &reports));
        *last = Some((now, ports.clone()));
        ports
    }

    /// State of `datalinks`.
    pub(super) fn offers(&self, configuration: &Configuration) -> Shown {
        let offers = offers(&self.ports(), configuration);
        vec![("offers", Value::texts(offers.into_iter().take(OFFERS_MAX)))]
    }

    /// Marks a datalink as absent that the subnet manager has removed from its partition.
    pub(super) fn mark(&self, name: &str, configuration: &Configuration, shown: &mut Shown) {
        let Some(lost) = lost(&self.ports(), name, configuration) else { return };
        shown.retain(|(property, _)| *property != "state");
        shown.push(("state", Value::text("absent")));
        shown.push(("reason", Value::Text(lost.sentence())));
    }

    /// Datalinks without their partition, as problems of the machine.
    pub(super) fn faults(&self, configuration: &Configuration) -> Vec<Fault> {
        let is_partition = |class: &Class| matches!(class, Class::Partition { .. });
        let partitions = configuration.datalinks.iter().filter(|(_, one)| is_partition(&one.class));
        let mut names = partitions.map(|(name, _)| name).peekable();
        // Without one nothing is read.
        if names.peek().is_none() {
            return Vec::new();
        }
        let ports = self.ports();
        names.filter_map(|name| Some(lost(&ports, name, configuration)?.fault())).collect()
    }
}

/// The ports of this machine by GUID.
fn ports(root: &Root, reports: &[Arc<Report>]) -> Vec<Port> {
    let devices = devices(root);
    let mut ports = BTreeMap::new();
    let mut add = |name: String, guid: u64, pkeys: BTreeMap<u16, Pkey>| {
        let device = devices.get(&guid).cloned();
        ports.entry(guid).or_insert(Port { name, guid, device, pkeys });
    };
    for hca in hca::read(root) {
        for port in hca.ports.iter().filter(|port| port.link_layer.as_deref() != Some("Ethernet")) {
            let guid = port.guid.as_ref().map(|guid| guid.replace(':', ""));
            let Some(guid) = guid.and_then(|guid| u64::from_str_radix(&guid, 16).ok()) else {
                continue;
            };
            let pkeys = port.pkeys.iter().filter_map(|text| text.parse().ok());
            add(format!("{}-{}", hca.name, port.number), guid, by_partition(pkeys));
        }
    }
    for report in reports {
        let Some(local) = report.fabric.local else { continue };
        let Some(port) = report.fabric.ports.get(&local).filter(|port| port.guid != 0) else {
            continue;
        };
        let pkeys = report.fabric.pkeys.iter().filter_map(|number| Pkey::new(*number).ok());
        add(report.port_name(local), port.guid, by_partition(pkeys));
    }
    ports.into_values().collect()
}

fn by_partition(pkeys: impl Iterator<Item = Pkey>) -> BTreeMap<u16, Pkey> {
    let mut by_partition = BTreeMap::new();
    for pkey in pkeys {
        let one = by_partition.entry(pkey.partition()).or_insert(pkey);
        if pkey.is_full() {
            *one = pkey;
        }
    }
    by_partition
}

/// Network devices of ports by GUID, which is the end of their hardware address (RFC 4391, 9.1.1).
fn devices(root: &Root) -> BTreeMap<u64, String> {
    let mut devices = BTreeMap::new();
    for name in root.list(DEVICES) {
        let file = |file: &str| root.read(&format!("{DEVICES}/{name}/{file}"));
        let is_port = file("type").is_ok_and(|kind| kind.trim() == INFINIBAND);
        // A partition has the address of its device, and a file that names that.
        if !is_port || file("parent").is_ok() {
            continue;
        }
        let address = file("address").unwrap_or_default().trim().replace(':', "");
        let guid = address.get(address.len().saturating_sub(16)..);
        if let Some(guid) = guid.and_then(|guid| u64::from_str_radix(guid, 16).ok()) {
            devices.insert(guid, name);
        }
    }
    devices
}

/// Partitions that no datalink uses, each in a line.
fn offers(ports: &[Port], configuration: &Configuration) -> Vec<String> {
    let used: BTreeSet<(&str, u16)> = configuration
        .datalinks
        .values()
        .filter_map(|datalink| match &datalink.class {
            class @ Class::Partition { link, .. } => {
                Some((link.as_str(), class.pkey()?.partition()))
            }
            _ => None,
        })
        .collect();
    let of_port = |port: &Port| {
        let Port { name, guid, device, pkeys } = port;
        let is_free = |partition: u16| {
            let is_used = device.as_deref().is_some_and(|on| used.contains(&(on, partition)));
            partition != DEFAULT && !is_used
        };
        let free = pkeys.values().filter(|pkey| is_free(pkey.partition()));
        let line = |pkey: &Pkey| {
            let member = if pkey.is_full() { "full" } else { "limited" };
            let (number, at) = (u16::from(*pkey), format!("port {name}, GUID {guid:#018x}"));
            match device {
                Some(device) => format!("{number:#06x} ({member}) on {device}: {at}"),
                None => format!(
                    "{number:#06x} ({member}): {at}; it has no network device, load ib_ipoib"
                ),
            }
        };
        free.map(line).collect::<Vec<_>>()
    };
    ports.iter().flat_map(of_port).collect()
}

/// A datalink without its partition.
struct Lost<'a> {
    datalink: &'a str,
    pkey: Pkey,
    port: String,
    interfaces: Vec<&'a str>,
}

impl Lost<'_> {
    fn sentence(&self) -> String {
        let Self { pkey, port, interfaces, .. } = self;
        let partition = format!("the subnet manager does not give partition {pkey} to {port}");
        match interfaces.as_slice() {
            [] => partition,
            [one] => format!("{partition}; the interface {one} has lost this link"),
            all => format!("{partition}; the interfaces {} have lost this link", all.join(", ")),
        }
    }

    fn fault(&self) -> Fault {
        let impact = match self.interfaces.as_slice() {
            [] => "No interface uses the datalink.".to_owned(),
            all => format!("Clients cannot use it to reach {}.", all.join(", ")),
        };
        Fault {
            id: format!("partition-{}", self.datalink),
            severity: if self.interfaces.is_empty() { Severity::Minor } else { Severity::Major },
            what: format!("The datalink {} is absent: {}.", self.datalink, self.sentence()),
            impact,
            remedy: "Add the GUID of the port to the partition at the subnet manager (opensm: \
                     partitions.conf, then SIGHUP), or destroy the datalink."
                .to_owned(),
        }
    }
}

/// Whether a datalink is without its partition. What is not known of its port is not a loss.
fn lost<'a>(ports: &[Port], name: &'a str, configuration: &'a Configuration) -> Option<Lost<'a>> {
    let class = &configuration.datalinks.get(name)?.class;
    let Class::Partition { link, .. } = class else { return None };
    let pkey = class.pkey()?;
    let port = ports.iter().find(|port| port.device.as_ref() == Some(link))?;
    if port.pkeys.contains_key(&pkey.partition()) {
        return None;
    }
    let uses = |links: &'a [String]| {
        let mut below = BTreeSet::new();
        links.iter().for_each(|link| enter(configuration, link, &mut below));
        below.contains(name)
    };
    let interfaces = configuration.interfaces.iter().filter(|(_, one)| uses(&one.links));
    let interfaces = interfaces.map(|(name, _)| name.as_str()).collect();
    let port = format!("port {} ({link})", port.name);
    Some(Lost { datalink: name, pkey, port, interfaces })
}

#[cfg(test)]
mod tests;
