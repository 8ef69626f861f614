//! The hardware as its nodes show it.

use base::node::Value;
use host_hardware::Hardware;
use host_hardware::chassis::{Cpu, Module};
use host_hardware::hca::{Hca, Port};
use host_hardware::pci::{Function, Slot};
use host_hardware::sensors::{Quantity, Sensor};
use host_hardware::smart::report::Verdict;
use host_hardware::watch::{Remembered, Watch};

use super::pool::{Member, pool_of};

/// State properties of a node.
type Shown = Vec<(&'static str, Value)>;

/// Those that are there.
fn shown(all: Vec<(&'static str, Option<Value>)>) -> Shown {
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn text(text: &Option<String>) -> Option<Value> {
    text.as_deref().map(Value::text)
}

fn number<T: Copy + TryInto<i64>>(number: Option<T>) -> Option<Value> {
    number.map(Value::number)
}

fn word(word: &str) -> Option<Value> {
    Some(Value::text(word))
}

fn lines<T: AsRef<str>>(list: &[T]) -> Option<Value> {
    (!list.is_empty()).then(|| Value::texts(list))
}

/// What was read: the hardware, what is remembered of it, disks of pools.
pub(super) struct Sources<'a> {
    pub hardware: &'a Hardware,
    pub watch: &'a Watch,
    pub members: &'a [Member],
}

/// The state of the node with these names below the branch.
pub(super) fn state(found: &Sources<'_>, lack: Option<&str>, inside: &[&str]) -> Shown {
    let Sources { hardware, watch, members } = *found;
    match inside {
        [] => overview(hardware),
        ["chassis"] => chassis(hardware),
        ["cpus", name] => {
            hardware.cpus.iter().find(|one| one.name == *name).map_or_else(Vec::new, cpu)
        }
        ["memory", name] => {
            hardware.memory.iter().find(|one| one.name == *name).map_or_else(Vec::new, module)
        }
        ["slots", name] => {
            hardware.slots.iter().find(|one| one.name == *name).map_or_else(Vec::new, slot)
        }
        ["slots", name, port_name] => {
            let slot = hardware.slots.iter().find(|one| one.name == *name);
            let mut ports = slot.into_iter().flat_map(ports);
            let is_it = |(hca, port): &(&Hca, &Port)| port_of(hca, port) == *port_name;
            ports.find(is_it).map_or_else(Vec::new, |(hca, of)| port(hca, of))
        }
        ["disks"] => shown(vec![("reason", lack.map(Value::text))]),
        ["disks", name] => watch.disk(name).map_or_else(Vec::new, |one| disk(one, members)),
        ["sensors", name] => {
            hardware.sensors.iter().find(|one| one.name == *name).map_or_else(Vec::new, sensor)
        }
        _ => Vec::new(),
    }
}

/// Items of the node with these names below the branch.
pub(super) fn items(hardware: &Hardware, watch: &Watch, inside: &[&str]) -> Vec<String> {
    fn names<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
        names.cloned().collect()
    }
    match inside {
        ["cpus"] => names(hardware.cpus.iter().map(|one| &one.name)),
        ["memory"] => names(hardware.memory.iter().map(|one| &one.name)),
        ["slots"] => names(hardware.slots.iter().map(|one| &one.name)),
        ["slots", name] => {
            let slot = hardware.slots.iter().find(|one| one.name == *name);
            slot.into_iter().flat_map(ports).map(|(hca, port)| port_of(hca, port)).collect()
        }
        ["disks"] => {
            let mut names = names(watch.disks.values().map(|one| &one.disk.name));
            names.sort();
            names
        }
        ["sensors"] => names(hardware.sensors.iter().map(|one| &one.name)),
        _ => Vec::new(),
    }
}

fn overview(hardware: &Hardware) -> Shown {
    let system = &hardware.chassis.system;
    let absent: Vec<String> = hardware.lacks.iter().map(ToString::to_string).collect();
    shown(vec![
        ("manufacturer", text(&system.manufacturer)),
        ("product", text(&system.product)),
        ("serial", text(&system.serial)),
        ("absent", lines(&absent)),
    ])
}

fn chassis(hardware: &Hardware) -> Shown {
    let all = &hardware.chassis;
    shown(vec![
        ("manufacturer", text(&all.system.manufacturer)),
        ("product", text(&all.system.product)),
        ("version", text(&all.system.version)),
        ("serial", text(&all.system.serial)),
        ("uuid", text(&all.system.uuid)),
        ("sku", text(&all.system.sku)),
        ("family", text(&all.system.family)),
        ("firmware", text(&all.firmware)),
        ("board_manufacturer", text(&all.board.manufacturer)),
        ("board_product", text(&all.board.product)),
        ("board_version", text(&all.board.version)),
        ("board_serial", text(&all.board.serial)),
        ("chassis_manufacturer", text(&all.chassis.manufacturer)),
        ("chassis_type", text(&all.chassis.product)),
        ("chassis_serial", text(&all.chassis.serial)),
        ("chassis_height", number(all.chassis.height_u)),
        ("asset_tag", text(&all.chassis.asset_tag)),
    ])
}

fn cpu(cpu: &Cpu) -> Shown {
    let one = &cpu.processor;
    let state = match (one.populated, one.enabled) {
        (false, _) => "empty",
        (true, true) => "enabled",
        (true, false) => "disabled",
    };
    if !one.populated {
        return shown(vec![("state", word(state))]);
    }
    shown(vec![
        ("state", word(state)),
        ("manufacturer", text(&one.manufacturer)),
        ("model", text(&one.version)),
        ("cores", number(one.cores)),
        ("cores_enabled", number(one.cores_enabled)),
        ("threads", number(one.threads)),
        ("speed", number(one.speed_mhz)),
        ("speed_max", number(one.speed_mhz_max)),
        ("serial", text(&one.serial)),
        ("part", text(&one.part)),
    ])
}

fn module(module: &Module) -> Shown {
    let one = &module.device;
    let state = if one.empty { "empty" } else { "present" };
    shown(vec![
        ("state", word(state)),
        ("locator", text(&one.locator)),
        ("bank", text(&one.bank)),
        ("size", number(one.size)),
        ("type", text(&one.kind).filter(|_| !one.empty)),
        ("form", text(&one.form).filter(|_| !one.empty)),
        ("speed", number(one.speed_mts)),
        ("speed_configured", number(one.speed_mts_configured)),
        ("manufacturer", text(&one.manufacturer)),
        ("serial", text(&one.serial)),
        ("part", text(&one.part)),
        ("corrected_errors", number(module.corrected)),
        ("uncorrected_errors", number(module.uncorrected)),
    ])
}

/// A function in a line.
fn function(one: &Function) -> String {
    let mut words = vec![one.class_words(), one.words(), one.address.clone()];
    words.extend(one.driver.iter().map(|driver| format!("driver {driver}")));
    words.join(" · ")
}

fn slot(slot: &Slot) -> Shown {
    let state = if slot.functions.is_empty() { "empty" } else { "occupied" };
    let first = slot.functions.first();
    let functions: Vec<String> = slot.functions.iter().map(function).collect();
    let link = first.and_then(|one| one.link.words());
    let narrow = first.is_some_and(|one| one.link.is_narrow() || one.link.is_slow());
    let adapters: Vec<&str> = slot.hcas.iter().map(|hca| hca.name.as_str()).collect();
    let hca = slot.hcas.first().cloned().unwrap_or_default();
    let ids = first.map(|one| format!("{:04x}:{:04x}", one.vendor, one.device));
    let subsystem = first.and_then(|one| one.subsystem);
    let subsystem = subsystem.map(|(vendor, device)| format!("{vendor:04x}:{device:04x}"));
    shown(vec![
        ("state", word(state)),
        ("designation", text(&slot.designation)),
        ("width", number(slot.width)),
        ("device", first.map(|one| Value::Text(one.words()))),
        ("class", first.map(|one| Value::Text(one.class_words()))),
        ("address", text(&slot.address)),
        ("ids", text(&ids)),
        ("subsystem", text(&subsystem)),
        ("driver", first.and_then(|one| text(&one.driver))),
        ("link", text(&link)),
        ("below_maximum", first.map(|_| Value::Bool(narrow))),
        ("functions", lines(&functions)),
        ("adapters", lines(&adapters)),
        ("firmware", text(&hca.firmware)),
        ("board", text(&hca.board)),
        ("adapter_type", text(&hca.kind)),
        ("revision", text(&hca.revision)),
        ("node_guid", text(&hca.node_guid)),
        ("system_guid", text(&hca.system_guid)),
        ("description", text(&hca.description)),
    ])
}

fn ports(slot: &Slot) -> impl Iterator<Item = (&Hca, &Port)> {
    slot.hcas.iter().flat_map(|hca| hca.ports.iter().map(move |port| (hca, port)))
}

/// Name of the node of a port.
fn port_of(hca: &Hca, port: &Port) -> String {
    format!("{}-{}", hca.name, port.number)
}

fn port(hca: &Hca, port: &Port) -> Shown {
    let down = Some("down".to_owned());
    let state = port.state.as_deref().map(str::to_lowercase).or(down);
    shown(vec![
        ("state", text(&state)),
        ("physical_state", text(&port.physical_state)),
        ("rate", text(&port.rate)),
        ("guid", text(&port.guid)),
        ("lid", text(&port.lid)),
        ("manager_lid", text(&port.manager_lid)),
        ("link_layer", text(&port.link_layer)),
        ("pkeys", lines(&port.pkeys)),
        ("gids", lines(&port.gids)),
        ("adapter", word(&hca.name)),
        ("number", Some(Value::number(port.number))),
    ])
}

fn disk(one: &Remembered, members: &[Member]) -> Shown {
    let disk = &one.disk;
    let state = match disk.state.as_deref() {
        _ if one.absent => "absent",
        Some("offline") => "offline",
        _ => "present",
    };
    let report = one.report.clone().unwrap_or_default();
    // The kernel has 16 characters of the model of an ATA disk; smartctl has all.
    let longer = report
        .model
        .clone()
        .filter(|longer| disk.model.as_ref().is_some_and(|model| longer.starts_with(model)));
    let model = longer.or_else(|| disk.model.clone());
    let kind = if disk.rotational { "rotating" } else { "solid-state" };
    let failed = one.failed.map(|count| count.grown);
    let known = one.report.is_some();
    let sentence = known.then(|| Value::text(&report.sentence));
    let health = if known { report.verdict } else { Verdict::Unknown };
    shown(vec![
        ("state", word(state)),
        ("health", word(health.name())),
        ("reason", sentence),
        ("model", text(&model)),
        ("serial", text(&disk.serial)),
        ("bay", text(&disk.bay)),
        ("pool", pool_of(members, disk, one.absent).map(Value::text)),
        ("size", Some(Value::number(disk.size))),
        ("type", word(kind)),
        ("transport", text(&disk.transport)),
        ("firmware", text(&disk.firmware)),
        ("devices", lines(&disk.devices).filter(|_| !one.absent)),
        ("temperature", number(report.temperature_c)),
        ("wear", number(report.wear_percent)),
        ("hours", number(report.hours)),
        ("errors", lines(&report.errors)),
        ("failed_commands", number(failed)),
        ("checked", (one.reported_s > 0).then(|| Value::number(one.reported_s))),
        ("wwid", text(&disk.wwid)),
        ("by_id", lines(&disk.by_id)),
        ("controller", text(&disk.controller)),
        ("locate", Some(Value::Bool(disk.locate))),
        ("fault", Some(Value::Bool(disk.fault))),
    ])
}

fn sensor(one: &Sensor) -> Shown {
    let quantity = match one.quantity {
        Quantity::Temperature => "temperature",
        Quantity::Fan => "fan",
        Quantity::Voltage => "voltage",
        Quantity::Power => "power",
    };
    shown(vec![
        ("state", word(if one.alarm { "alarm" } else { "ok" })),
        ("value", Some(Value::Text(one.words()))),
        ("limit", text(&one.limit_words())),
        ("quantity", word(quantity)),
        ("label", word(&one.label)),
        ("chip", word(&one.chip)),
    ])
}
