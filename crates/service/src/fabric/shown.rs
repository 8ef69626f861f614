//! The fabrics as their nodes show them.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::node::{Path, Value};
use control::tree;
use host_fabric::attribute::{ERRORS, NodeType, PortInfo};
use host_fabric::counters::Counted;
use host_fabric::monitor::Report;
use host_fabric::problem::narrow;
use host_fabric::walk::{Manager, Node, Port, PortId};

use super::node::PKEYS_SHOWN;
use super::watch::Fabrics;

/// Where it is in the tree.
pub const PREFIX: [&str; 2] = ["maintenance", "fabric"];

type State = Vec<(&'static str, Value)>;

/// `/maintenance/fabric`.
pub struct Shown(pub Arc<Fabrics>);

impl tree::Operational for Shown {
    fn state(&self, path: &Path) -> State {
        let segments: Vec<&str> = path.segments().iter().map(String::as_str).collect();
        let reports = self.0.reports();
        let found = match segments.get(PREFIX.len()..).unwrap_or_default() {
            [] => return overview(&reports, self.0.reason()),
            ["nodes", name] => reports.iter().find_map(|report| node(report, name)),
            ["ports", name] => reports.iter().find_map(|report| port(report, name)),
            ["links", name] => reports.iter().find_map(|report| link(report, name)),
            _ => None,
        };
        found.unwrap_or_default()
    }

    fn items(&self, path: &Path) -> Vec<String> {
        let reports = self.0.reports();
        let all = reports.iter();
        let mut names: Vec<String> = match path.segments().last().map(String::as_str) {
            Some("nodes") => all.flat_map(|report| report.names.values().cloned()).collect(),
            Some("ports") => {
                let ports = |one: &Arc<Report>| port_names(one, one.fabric.ports.keys().copied());
                all.flat_map(ports).collect()
            }
            Some("links") => {
                let links = |one: &Arc<Report>| port_names(one, one.fabric.links().map(|l| l.0));
                all.flat_map(links).collect()
            }
            _ => Vec::new(),
        };
        // Two devices of this machine may be in one fabric. A first of each stays, in order.
        let mut entered = std::collections::BTreeSet::new();
        names.retain(|name| entered.insert(name.clone()));
        names
    }
}

fn port_names(report: &Report, ports: impl Iterator<Item = PortId>) -> Vec<String> {
    ports.map(|id| report.port_name(id)).collect()
}

/// Problems of all fabrics, in sentences.
pub fn problems(reports: &[Arc<Report>]) -> Vec<String> {
    let mut by_id = BTreeMap::new();
    for problem in reports.iter().flat_map(|report| &report.problems) {
        let sentence = format!("{}. {} {}", problem.what, problem.impact, problem.remedy);
        by_id.insert(problem.id.clone(), sentence);
    }
    by_id.into_values().collect()
}

fn overview(reports: &[Arc<Report>], reason: String) -> State {
    let partial = reports.iter().find_map(|report| report.fabric.partial);
    let reason = match partial {
        Some(why) if reason.is_empty() => format!("the fabric is not complete: {why}"),
        _ => reason,
    };
    let state = match (reports.is_empty(), reason.is_empty()) {
        (true, _) => "unavailable",
        (false, false) => "partial",
        (false, true) => "observed",
    };
    if reports.is_empty() {
        return vec![("state", Value::text(state)), ("reason", Value::Text(reason))];
    }
    let all = || reports.iter().map(|report| &report.fabric);
    let linked = |report: &host_fabric::walk::Fabric| {
        report.ports.values().filter(|port| port.is_linked()).count()
    };
    let longest = |time: fn(&Report) -> std::time::Duration| {
        let times = reports.iter().map(|report| time(report).as_millis() as u64);
        Value::number(times.max().unwrap_or_default())
    };
    let ignored: u64 = reports.iter().map(|report| report.ignored.all()).sum();
    let managers: Vec<String> = reports.iter().filter_map(|report| manager(report)).collect();
    let pkeys = reports.iter().flat_map(|report| pkeys(report)).take(PKEYS_SHOWN);
    vec![
        ("state", Value::text(state)),
        ("reason", Value::Text(reason)),
        ("subnet_manager", Value::Text(managers.join("; "))),
        ("pkeys", Value::texts(pkeys)),
        ("nodes_found", Value::number(all().map(|one| one.nodes.len()).sum::<usize>() as u64)),
        ("ports_linked", Value::number(all().map(linked).sum::<usize>() as u64)),
        ("links_found", Value::number(all().map(|one| one.links().count()).sum::<usize>() as u64)),
        ("problems", Value::texts(problems(reports))),
        ("walk", longest(|report| report.walk)),
        ("reading", longest(|report| report.reading)),
        ("ignored", Value::number(ignored)),
    ]
}

fn manager(report: &Report) -> Option<String> {
    let local = report.port_name(report.fabric.local?);
    Some(match report.fabric.manager {
        Manager::Unlinked => format!("{local}: no link"),
        Manager::None => format!("{local}: none"),
        Manager::Silent(lid) => format!("{local}: LID {lid}, no reply"),
        Manager::Master(lid) => format!("{local}: LID {lid}"),
    })
}

fn pkeys(report: &Report) -> Vec<String> {
    let Some(local) = report.fabric.local else { return Vec::new() };
    let name = report.port_name(local);
    let one = |pkey: &u16| {
        let member = if pkey & 0x8000 == 0 { "limited" } else { "full" };
        format!("{pkey:#06x} ({member}) at {name}")
    };
    report.fabric.pkeys.iter().map(one).collect()
}

fn guid(guid: u64) -> Value {
    Value::Text(if guid == 0 { String::new() } else { format!("{guid:#018x}") })
}

fn node(report: &Report, name: &str) -> Option<State> {
    let (id, _) = report.names.iter().find(|(_, one)| *one == name)?;
    let node = report.fabric.nodes.get(id)?;
    let ports = || report.fabric.ports.range((*id, 0)..=(*id, u8::MAX));
    let linked = ports().filter(|(_, port)| port.is_linked()).count();
    let lids: Vec<String> = match node.info.kind {
        NodeType::Switch if node.lid != 0 => vec![node.lid.to_string()],
        NodeType::Switch => Vec::new(),
        _ => ports()
            .filter_map(|(_, port)| Some(port.info()?.lid).filter(|lid| *lid != 0))
            .map(|lid| lid.to_string())
            .collect(),
    };
    let Node { info, description, route, .. } = node;
    let hops: Vec<String> = route.ports().iter().map(ToString::to_string).collect();
    let device = format!(
        "vendor {:#08x}, device {:#06x}, revision {:#x}",
        info.vendor, info.device, info.revision
    );
    Some(vec![
        ("kind", Value::text(info.kind.name())),
        ("description", Value::text(description)),
        ("guid", guid(info.node_guid)),
        ("system_guid", guid(info.system_guid)),
        ("ports", Value::number(info.ports)),
        ("linked", Value::number(linked as u64)),
        ("lid", Value::Text(lids.join(", "))),
        ("device", Value::Text(device)),
        ("route", Value::Text(hops.join(", "))),
    ])
}

/// The port of this name: that of its node, a colon, its number.
fn find(report: &Report, name: &str) -> Option<PortId> {
    let (node, number) = name.rsplit_once(':')?;
    let (guid, _) = report.names.iter().find(|(_, one)| *one == node)?;
    Some((*guid, number.parse().ok()?))
}

fn port(report: &Report, name: &str) -> Option<State> {
    let id = find(report, name)?;
    let port = report.fabric.ports.get(&id)?;
    let (node, _) = name.rsplit_once(':')?;
    let mut shown = vec![
        ("node", Value::text(node)),
        ("number", Value::number(id.1)),
        ("guid", guid(port.guid)),
    ];
    match &port.info {
        Some(Ok(info)) => shown.extend(link_state(info)),
        Some(Err(lack)) => shown.push(("state", Value::Text(lack.to_string()))),
        None => {}
    }
    let peer = match (port.peer, port.silent) {
        (Some(peer), _) => report.port_name(peer),
        (None, Some(lack)) => lack.to_string(),
        (None, None) => String::new(),
    };
    shown.push(("peer", Value::Text(peer)));
    let lid = report.fabric.lid(id);
    shown.extend(counters(port, lid, report.counters.ports.get(&id)));
    Some(shown)
}

fn link_state(info: &PortInfo) -> State {
    let lid = if info.lid == 0 { String::new() } else { info.lid.to_string() };
    let mut shown = vec![
        ("lid", Value::Text(lid)),
        ("state", Value::text(info.state_name())),
        ("physical", Value::text(info.physical_name())),
    ];
    if info.is_linked() {
        let (width, max) = (info.lanes(), info.lanes_max());
        shown.push(("width", Value::Text(format!("{width}x of {max}x"))));
        let (speed, max) = (info.speed().1, info.speed_max().1);
        shown.push(("speed", Value::Text(format!("{speed} of {max}"))));
    }
    shown
}

fn counters(port: &Port, lid: Option<u16>, counted: Option<&Counted>) -> State {
    let Some(counted) = counted else {
        let why = match (port.is_linked(), lid) {
            (false, _) => "no link",
            (true, None) => "no LID: no subnet manager has configured the port",
            (true, Some(_)) => "not read yet",
        };
        return vec![("counters", Value::text(why))];
    };
    let size = match (counted.lack, counted.last) {
        (Some(lack), _) => lack.to_string(),
        (None, Some(last)) if last.wide => "64 bits".to_owned(),
        (None, _) => "32 bits".to_owned(),
    };
    let totals = &counted.totals;
    let rates = counted.rates.unwrap_or_default();
    let grow = counted.rates.is_some() && counted.errors.iter().any(|more| *more > 0);
    let errors = counted.last.map(|last| last.errors).unwrap_or_default();
    let errors = ERRORS.iter().zip(errors).filter(|(_, value)| *value > 0);
    vec![
        ("counters", Value::Text(size)),
        ("bytes_in", Value::number(totals.bytes[0])),
        ("bytes_out", Value::number(totals.bytes[1])),
        ("packets_in", Value::number(totals.packets[0])),
        ("packets_out", Value::number(totals.packets[1])),
        ("rate_in", Value::number(rates.bytes[0] as u64)),
        ("rate_out", Value::number(rates.bytes[1] as u64)),
        ("errors", Value::texts(errors.map(|(error, value)| format!("{}: {value}", error.name)))),
        ("errors_grow", Value::Bool(grow)),
        ("wait", Value::number(totals.wait)),
    ]
}

fn link(report: &Report, name: &str) -> Option<State> {
    let from = find(report, name)?;
    let port = report.fabric.ports.get(&from)?;
    let to = port.peer?;
    let mut shown = vec![("from", Value::text(name)), ("to", Value::Text(report.port_name(to)))];
    let ends = (port.info(), report.fabric.ports.get(&to).and_then(Port::info));
    if let (Some(one), Some(other)) = ends {
        let lanes = one.lanes_max().min(other.lanes_max());
        let (_, speed) = one.speed_max().min(other.speed_max());
        shown.push(("width", Value::Text(format!("{}x of {lanes}x", one.lanes()))));
        shown.push(("speed", Value::Text(format!("{} of {speed}", one.speed().1))));
        let narrow = narrow(&report.fabric, (from, to)).is_some();
        shown.push(("below_maximum", Value::Bool(narrow)));
    }
    Some(shown)
}

#[cfg(test)]
mod tests;
