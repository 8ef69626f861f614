//! What is wrong with the hardware: by what was seen now and before, as sentences.

use serde::{Deserialize, Serialize};

use crate::Hardware;
use crate::pci::Slot;
use crate::sensors::{Quantity, Sensor};
use crate::smart::report::Verdict;
use crate::watch::{Remembered, Watch};

/// How urgent it is: by the redundancy that is left, and not by the name of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// A further failure is survived, or nothing has failed yet.
    Minor,
    /// The next failure may interrupt a service or lose data, or that is not known.
    Major,
    /// A service is interrupted, or data is in danger now.
    Critical,
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// What it is recognised by, and the name of its node: `disk-absent-NAME`.
    pub id: String,
    /// How urgent.
    pub severity: Severity,
    /// What is wrong.
    pub what: String,
    /// What follows from it.
    pub impact: String,
    /// What to do.
    pub remedy: String,
}

/// The pool of a disk, by what is remembered of it.
pub type PoolOf<'a> = &'a dyn Fn(&Remembered) -> Option<String>;

const NO_POOL: &str = "Data on the disk may be unavailable; whether a copy is left is not known.";

/// All that is wrong.
pub fn faults(hardware: &Hardware, watch: &Watch, pool_of: PoolOf<'_>) -> Vec<Fault> {
    let disks = watch.disks.values();
    let mut faults: Vec<Fault> = disks.flat_map(|one| disk(one, pool_of)).collect();
    faults.extend(watch.memory.iter().filter_map(|(name, errors)| {
        memory(name, errors.corrected.grown, errors.uncorrected.grown)
    }));
    faults.extend(hardware.sensors.iter().filter_map(sensor));
    faults.extend(hardware.slots.iter().filter_map(slot));
    faults
}

/// Kinds of faults that stay until they are marked: counted errors, and disks that are absent.
const MARKED: [&str; 4] = ["disk-absent-", "disk-errors-", "disk-health-", "memory-errors-"];

/// Whether a fault ends when it is marked as repaired; the others end with their causes.
pub fn can_be_marked(id: &str) -> bool {
    MARKED.iter().any(|kind| id.starts_with(kind))
}

/// Marks a fault as repaired: what was counted is forgotten, and so is a disk that is absent.
///
/// # Errors
/// The fault ends with its cause.
pub fn mark_repaired(watch: &mut Watch, id: &str) -> Result<(), String> {
    for (identity, one) in &mut watch.disks {
        let name = one.disk.name.as_str();
        let is = |kind: &str| id.strip_prefix(kind) == Some(name);
        if is("disk-absent-") && one.absent {
            let identity = identity.clone();
            watch.disks.remove(&identity);
            return Ok(());
        }
        if is("disk-errors-") {
            if let Some(count) = &mut one.failed {
                count.grown = 0;
            }
            return Ok(());
        }
        if is("disk-health-") {
            // The next query shows whether it is repaired.
            one.report = None;
            return Ok(());
        }
    }
    for (name, errors) in &mut watch.memory {
        if id.strip_prefix("memory-errors-") == Some(name) {
            errors.corrected.grown = 0;
            errors.uncorrected.grown = 0;
            return Ok(());
        }
    }
    Err("the problem ends when its cause ends; there is nothing to mark".to_owned())
}

/// A disk as a person finds it: model, serial number, bay, pool.
fn described(one: &Remembered, pool: Option<&str>) -> String {
    let disk = &one.disk;
    let model = disk.model.as_deref().unwrap_or("disk");
    let serial = disk.serial.as_ref().map(|serial| format!("serial number {serial}"));
    let device = disk.devices.join(", ");
    let device = (!one.absent).then_some(device).filter(|device| !device.is_empty());
    let pool = pool.map(|pool| format!("pool {pool}"));
    let parts = [serial, disk.bay.clone(), device, pool];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { model.to_owned() } else { format!("{model} ({})", parts.join(", ")) }
}

fn disk(one: &Remembered, pool_of: PoolOf<'_>) -> Vec<Fault> {
    let pool = pool_of(one);
    let (name, described) = (&one.disk.name, described(one, pool.as_deref()));
    let of_data = pool.map_or_else(
        || NO_POOL.to_owned(),
        |pool| format!("The pool {pool} may have fewer copies of its data: see its state."),
    );
    let of_data = of_data.as_str();
    let fault = |kind: &str, severity, what: String, impact: &str, remedy: &str| Fault {
        id: format!("disk-{kind}-{name}"),
        severity,
        what,
        impact: impact.to_owned(),
        remedy: remedy.to_owned(),
    };
    if one.absent {
        let what = format!("The disk {described} is absent.");
        let remedy =
            "Put it back or replace it. If it was removed on purpose, mark this as repaired.";
        return vec![fault("absent", Severity::Major, what, of_data, remedy)];
    }
    let mut faults = Vec::new();
    if one.disk.state.as_deref() == Some("offline") {
        let what = format!("The kernel has taken the disk {described} offline.");
        let remedy = "Check its cable and power, then replace it.";
        faults.push(fault("offline", Severity::Major, what, of_data, remedy));
    }
    let failed = one.failed.map_or(0, |count| count.grown);
    if failed > 0 {
        let commands = if failed == 1 { "1 command" } else { &format!("{failed} commands") };
        let what = format!("{commands} to the disk {described} failed.");
        let remedy = "Check the kernel log and the health of the disk; replace it if errors \
                      continue. Then mark this as repaired.";
        faults.push(fault("errors", Severity::Major, what, of_data, remedy));
    }
    if let Some(report) = &one.report {
        let what = format!("The disk {described}: {}.", report.sentence);
        let remedy = "Replace the disk, then mark this as repaired.";
        match report.verdict {
            Verdict::Failing => {
                faults.push(fault("health", Severity::Major, what, of_data, remedy));
            }
            Verdict::PreFailure => {
                let impact = "Nothing has failed yet.";
                faults.push(fault("health", Severity::Minor, what, impact, remedy));
            }
            _ => {}
        }
    }
    faults
}

fn memory(name: &str, corrected: u64, uncorrected: u64) -> Option<Fault> {
    let (severity, what, impact) = if uncorrected > 0 {
        let what = format!(
            "The memory module {name} had {uncorrected} errors that could not be corrected."
        );
        (Severity::Critical, what, "Data in memory was damaged; programs may have been ended.")
    } else if corrected > 0 {
        let what = format!("The memory module {name} had {corrected} errors that were corrected.");
        (Severity::Minor, what, "No data was damaged.")
    } else {
        return None;
    };
    Some(Fault {
        id: format!("memory-errors-{name}"),
        severity,
        what,
        impact: impact.to_owned(),
        remedy: "Replace the module if errors continue, then mark this as repaired.".to_owned(),
    })
}

fn sensor(sensor: &Sensor) -> Option<Fault> {
    let value = sensor.words();
    let limit = sensor.limit_words().map_or_else(String::new, |limit| format!(" (limit {limit})"));
    let (severity, what, impact, remedy) = match sensor.quantity {
        Quantity::Temperature if sensor.critical.is_some_and(|most| sensor.value >= most) => (
            Severity::Critical,
            format!("The temperature {} of {} is {value}{limit}.", sensor.label, sensor.chip),
            "The machine may stop to protect itself.",
            "Check fans, filters and the temperature of the room.",
        ),
        // Without a lowest speed the connector may have no fan.
        Quantity::Fan if sensor.limit.is_some_and(|least| sensor.value < least) => (
            Severity::Major,
            format!("The fan {} of {} turns at {value}{limit}.", sensor.label, sensor.chip),
            "The machine may become too hot.",
            "Replace the fan.",
        ),
        _ => return None,
    };
    let id = format!("sensor-{}", sensor.name);
    Some(Fault { id, severity, what, impact: impact.to_owned(), remedy: remedy.to_owned() })
}

/// A card that has fewer lanes than both it and its slot have. Without the width of the slot that
/// is how many boards are made.
fn slot(slot: &Slot) -> Option<Fault> {
    let of_slot = slot.width?;
    let is_display = |class: u32| class >> 16 == 0x03;
    let narrow = slot.functions.iter().find(|function| {
        function.link.is_narrow()
            && function.link.width.is_some_and(|now| now < of_slot)
            && !is_display(function.class)
    })?;
    let words = narrow.link.words()?;
    Some(Fault {
        id: format!("slot-width-{}", slot.name),
        severity: Severity::Minor,
        what: format!("The card {} in slot {} runs at {words}.", narrow.words(), slot.name),
        impact: "Its throughput is limited.".to_owned(),
        remedy: "Seat the card again; check the slot's settings in the firmware.".to_owned(),
    })
}

#[cfg(test)]
mod tests;
