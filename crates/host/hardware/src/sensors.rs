//! Sensors of the kernel's hardware monitoring (hwmon): temperatures, fans, voltages, power.

use std::collections::BTreeSet;

use host::Root;
use serde::{Deserialize, Serialize};

use crate::files::{is_set, link_name, names, node_name, number, text, unique};

const CLASS: &str = "sys/class/hwmon";
/// Most sensors of one chip.
const SENSORS_MAX: usize = 128;
/// A chip that stands for a disk: reading it sends the disk a command, which keeps one awake that
/// wants to sleep.
const OF_DISKS: &str = "drivetemp";

/// What a sensor measures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Quantity {
    /// Temperature; thousandths of a degree Celsius.
    #[default]
    Temperature,
    /// Speed of a fan; revolutions in a minute.
    Fan,
    /// Voltage; millivolts.
    Voltage,
    /// Power; microwatts.
    Power,
}

/// A sensor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sensor {
    /// Name of its node.
    pub name: String,
    /// Chip that has it.
    pub chip: String,
    /// Its label.
    pub label: String,
    /// What it measures.
    pub quantity: Quantity,
    /// Its value in the unit of the quantity.
    pub value: i64,
    /// Value from which on the kernel reports an alarm, or below which for a fan.
    pub limit: Option<i64>,
    /// Value from which on the machine is in danger.
    pub critical: Option<i64>,
    /// Whether the chip reports an alarm, or a value is beyond the critical one.
    pub alarm: bool,
}

impl Sensor {
    /// The value with its unit.
    pub fn words(&self) -> String {
        amount(self.quantity, self.value)
    }

    /// The limit with its unit.
    pub fn limit_words(&self) -> Option<String> {
        self.critical.or(self.limit).map(|value| amount(self.quantity, value))
    }
}

fn amount(quantity: Quantity, value: i64) -> String {
    match quantity {
        Quantity::Temperature => format!("{:.1} °C", value as f64 / 1e3),
        Quantity::Fan => format!("{value} rpm"),
        Quantity::Voltage => format!("{:.2} V", value as f64 / 1e3),
        Quantity::Power => format!("{:.1} W", value as f64 / 1e6),
    }
}

/// All sensors.
pub(crate) fn read(root: &Root) -> Vec<Sensor> {
    let mut used = BTreeSet::new();
    let mut sensors = Vec::new();
    for folder in names(root, CLASS) {
        let folder = format!("{CLASS}/{folder}");
        let Some(chip) = text(root, &format!("{folder}/name")) else { continue };
        if chip == OF_DISKS {
            continue;
        }
        // The number of a chip depends on the order of drivers; its device does not.
        let device = link_name(root, &format!("{folder}/device"));
        let named = match device.filter(|device| *device != chip) {
            Some(device) if device.starts_with(&chip) => device,
            Some(device) => format!("{chip}-{device}"),
            None => chip.clone(),
        };
        for mut sensor in of_chip(root, &folder) {
            sensor.name = unique(&node_name(&format!("{named}-{}", sensor.label)), &mut used);
            sensor.chip = named.clone();
            sensors.push(sensor);
        }
    }
    sensors
}

fn of_chip(root: &Root, folder: &str) -> Vec<Sensor> {
    let mut inputs: Vec<(u32, String)> = names(root, folder)
        .iter()
        .filter_map(|file| {
            let name = file.strip_suffix("_input")?;
            let number = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
            Some((number.parse().ok()?, name.to_owned()))
        })
        .collect();
    inputs.sort_by_key(|(number, name)| {
        (name.trim_end_matches(char::is_numeric).to_owned(), *number)
    });
    inputs.truncate(SENSORS_MAX);
    inputs.iter().filter_map(|(_, name)| sensor(root, &format!("{folder}/{name}"), name)).collect()
}

fn sensor(root: &Root, path: &str, name: &str) -> Option<Sensor> {
    let quantity = match name.trim_end_matches(char::is_numeric) {
        "temp" => Quantity::Temperature,
        "fan" => Quantity::Fan,
        "in" => Quantity::Voltage,
        "power" => Quantity::Power,
        _ => return None,
    };
    let value = |what: &str| number::<i64>(root, &format!("{path}_{what}"));
    let now = value("input")?;
    let limit = value(if quantity == Quantity::Fan { "min" } else { "max" }).filter(|n| *n > 0);
    let critical = value("crit").filter(|n| *n > 0);
    let alarms = ["alarm", "crit_alarm", "fault"];
    let reported = alarms.iter().any(|what| is_set(root, &format!("{path}_{what}")));
    let hot = quantity == Quantity::Temperature && critical.is_some_and(|most| now >= most);
    let label = text(root, &format!("{path}_label")).unwrap_or_else(|| name.to_owned());
    Some(Sensor {
        label,
        quantity,
        value: now,
        limit,
        critical,
        alarm: reported || hot,
        ..Sensor::default()
    })
}
