//! Disks: the block devices that have a device of the machine behind them.
//!
//! A disk is itself by what it is (WWID, else model and serial number), not by the name that the
//! kernel has given it: that one changes when it is pulled and put back. Paths to the same disk are
//! one disk.

use std::collections::{BTreeMap, BTreeSet};

use host::Root;
use serde::{Deserialize, Serialize};

use crate::enclosure;
use crate::files::{
    binary, clean, is_set, link_name, link_names, names, node_name, number, text, unique,
};

const CLASS: &str = "sys/block";
const BY_ID: &str = "dev/disk/by-id";
/// In units of 512 bytes, whatever the device's own.
const SECTOR: u64 = 512;
/// SCSI peripheral device types that are disks: direct access, simplified, zoned.
const DISK_TYPES: [u32; 3] = [0x00, 0x0e, 0x14];

/// A disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Name of its node.
    pub name: String,
    /// What it is recognised by.
    pub identity: String,
    /// Names of the kernel, one for each path: `sda`.
    pub devices: Vec<String>,
    /// Model.
    pub model: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// Revision of its firmware.
    pub firmware: Option<String>,
    /// World-wide identifier.
    pub wwid: Option<String>,
    /// Its names in `/dev/disk/by-id`.
    pub by_id: Vec<String>,
    /// Bytes.
    pub size: u64,
    /// Whether it turns.
    pub rotational: bool,
    /// How it is attached: `sas`, `sata`, `nvme`, `usb`, `virtio`, `fc`.
    pub transport: Option<String>,
    /// Where it is: bay of an enclosure, else port of a controller.
    pub bay: Option<String>,
    /// Whether the locate light of the bay is on.
    pub locate: bool,
    /// Whether the fault light of the bay is on.
    pub fault: bool,
    /// PCI address of its controller.
    pub controller: Option<String>,
    /// State of the SCSI device: `running`, `offline`.
    pub state: Option<String>,
    /// Commands that have failed, as the SCSI layer counts them. None for ATA: there each query of
    /// its health counts as one, also those of other programs.
    pub failed_commands: Option<u64>,
}

/// All disks by name.
pub fn read(root: &Root) -> Vec<Disk> {
    let mut by_id: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in names(root, BY_ID) {
        if let Some(device) = link_name(root, &format!("{BY_ID}/{name}")) {
            by_id.entry(device).or_default().push(name);
        }
    }
    let bays = enclosure::bays(root);
    let mut disks: BTreeMap<String, Disk> = BTreeMap::new();
    for device in names(root, CLASS) {
        let links = by_id.remove(&device).unwrap_or_default();
        let Some(mut disk) = disk(root, &device, links) else { continue };
        if let Some(bay) = address(root, &device).and_then(|address| bays.get(&address)) {
            disk.bay = Some(bay.words.clone());
            (disk.locate, disk.fault) = (bay.locate, bay.fault);
        }
        match disks.get_mut(&disk.identity) {
            Some(known) => join(known, disk),
            None => drop(disks.insert(disk.identity.clone(), disk)),
        }
    }
    let mut disks: Vec<Disk> = disks.into_values().collect();
    disks.sort_by(|a, b| (&a.name, &a.identity).cmp(&(&b.name, &b.identity)));
    let mut used = BTreeSet::new();
    for disk in &mut disks {
        disk.name = unique(&disk.name, &mut used);
    }
    disks
}

/// A further path to the same disk.
fn join(disk: &mut Disk, path: Disk) {
    disk.devices.extend(path.devices);
    disk.by_id.extend(path.by_id);
    disk.bay = disk.bay.take().or(path.bay);
    disk.locate |= path.locate;
    disk.fault |= path.fault;
    disk.failed_commands = match (disk.failed_commands, path.failed_commands) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (one, other) => one.or(other),
    };
}

/// Address of the SCSI device behind a block device.
fn address(root: &Root, device: &str) -> Option<String> {
    link_name(root, &format!("{CLASS}/{device}/device"))
}

fn disk(root: &Root, device: &str, by_id: Vec<String>) -> Option<Disk> {
    let path = |name: &str| format!("{CLASS}/{device}/{name}");
    let read = |name: &str| text(root, &path(name));
    // Without a device: loop, md, dm, zram. Hidden: one path of a multipath NVMe disk.
    address(root, device)?;
    let kind = number::<u32>(root, &path("device/type"));
    if kind.is_some_and(|kind| !DISK_TYPES.contains(&kind)) || is_set(root, &path("hidden")) {
        return None;
    }
    let way = link_names(root, &format!("{CLASS}/{device}"));
    let transport = transport(&way);
    let wwid = read("device/wwid").or_else(|| read("wwid"));
    let is_ata = read("device/vendor").as_deref() == Some("ATA");
    let model = model(root, device, &by_id);
    let serial = serial(root, device, &by_id);
    // Not by the links of udev, which may come later than the disk.
    let name = match (&short_model(root, device), &serial) {
        (Some(model), Some(serial)) => node_name(&format!("{model}-{serial}")),
        (None, Some(serial)) => node_name(serial),
        (_, None) => wwid.as_deref().map(node_name).unwrap_or_default(),
    };
    let identity = wwid.clone().filter(|wwid| is_unique(wwid));
    let identity =
        identity.unwrap_or_else(|| if name.is_empty() { device } else { &name }.to_owned());
    Some(Disk {
        name: if name.is_empty() { device.to_owned() } else { name },
        identity,
        devices: vec![device.to_owned()],
        firmware: read("device/rev").or_else(|| read("device/firmware_rev")),
        wwid,
        by_id,
        size: number::<u64>(root, &path("size"))?.saturating_mul(SECTOR),
        rotational: is_set(root, &path("queue/rotational")),
        bay: bay(root, &way),
        controller: crate::hca::pci_address(&way),
        state: read("device/state"),
        failed_commands: failed_commands(root, device).filter(|_| !is_ata),
        transport,
        model,
        serial,
        ..Disk::default()
    })
}

/// Whether a WWID is that of one disk alone: those with texts of other vendors than ATA's are the
/// same for all disks behind some USB bridges.
fn is_unique(wwid: &str) -> bool {
    !wwid.starts_with("t10.") || wwid.starts_with("t10.ATA")
}

/// Vendor and model as the kernel has them.
fn short_model(root: &Root, device: &str) -> Option<String> {
    let read = |name: &str| text(root, &format!("{CLASS}/{device}/{name}"));
    let model = read("device/model")?;
    let is_name = |vendor: &String| vendor != "ATA" && !vendor.starts_with("0x");
    Some(match read("device/vendor").filter(is_name) {
        Some(vendor) if !model.starts_with(&vendor) => format!("{vendor} {model}"),
        _ => model,
    })
}

fn model(root: &Root, device: &str, by_id: &[String]) -> Option<String> {
    let read = |name: &str| text(root, &format!("{CLASS}/{device}/{name}"));
    let model = short_model(root, device)?;
    if read("device/vendor").as_deref() == Some("ATA") {
        // The SCSI layer has 16 characters of the model of an ATA disk; its WWID or link has all.
        let whole = read("device/wwid").and_then(|wwid| Some(ata(&wwid)?.0));
        let linked = by_id.iter().find_map(|link| {
            let (model, _) = link.strip_prefix("ata-")?.rsplit_once('_')?;
            Some(model.replace('_', " "))
        });
        return whole.or(linked).filter(|whole| whole.starts_with(&model)).or(Some(model));
    }
    Some(model)
}

/// Model and serial number of the T10 identifier of an ATA disk (SAT): 40 and 20 characters.
fn ata(wwid: &str) -> Option<(String, String)> {
    let rest = wwid.strip_prefix("t10.ATA")?.trim_start();
    let (model, serial) = rest.rsplit_once(' ')?;
    Some((clean(model.as_bytes())?, clean(serial.as_bytes())?))
}

fn serial(root: &Root, device: &str, by_id: &[String]) -> Option<String> {
    let read = |name: &str| text(root, &format!("{CLASS}/{device}/{name}"));
    let page = binary(root, &format!("{CLASS}/{device}/device/vpd_pg80"));
    let of_page = page.and_then(|page| unit_serial(&page));
    let of_wwid = || Some(ata(&read("device/wwid")?)?.1);
    let linked = || {
        let link = by_id.iter().find(|link| link.starts_with("ata-"))?;
        link.rsplit_once('_').map(|(_, serial)| serial.to_owned())
    };
    of_page
        .or_else(|| read("device/serial"))
        .or_else(|| read("serial"))
        .or_else(of_wwid)
        .or_else(linked)
}

/// The unit serial number of its page of vital product data (SPC-4, section 7.8.15).
fn unit_serial(page: &[u8]) -> Option<String> {
    let [_, 0x80, high, low, rest @ ..] = page else { return None };
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    clean(rest.get(..length).unwrap_or(rest))
}

fn failed_commands(root: &Root, device: &str) -> Option<u64> {
    let text = text(root, &format!("{CLASS}/{device}/device/ioerr_cnt"))?;
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

fn transport(way: &[String]) -> Option<String> {
    let any = |test: &dyn Fn(&str) -> bool| way.iter().any(|part| test(part));
    let numbered = |part: &str, prefix: &str| {
        part.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let name = if any(&|part| numbered(part, "usb")) {
        "usb"
    } else if any(&|part| part.starts_with("end_device-")) {
        "sas"
    } else if any(&|part| numbered(part, "ata")) {
        "sata"
    } else if any(&|part| part.starts_with("rport-")) {
        "fc"
    } else if any(&|part| numbered(part, "nvme")) {
        "nvme"
    } else if any(&|part| numbered(part, "virtio")) {
        "virtio"
    } else {
        return None;
    };
    Some(name.to_owned())
}

/// Where a disk is when no enclosure shows it: the bay that its expander has for it, its ATA port.
fn bay(root: &Root, way: &[String]) -> Option<String> {
    if let Some(device) = way.iter().rfind(|part| part.starts_with("end_device-")) {
        let path = |what: &str| format!("sys/class/sas_device/{device}/{what}");
        let bay = number::<u32>(root, &path("bay_identifier"));
        return bay.map(|bay| match text(root, &path("enclosure_identifier")) {
            Some(enclosure) => format!("enclosure {enclosure}, bay {bay}"),
            None => format!("bay {bay}"),
        });
    }
    let port = way.iter().find(|part| {
        let number = part.strip_prefix("ata").unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    port.map(|port| format!("ATA port {}", port.trim_start_matches("ata")))
}
