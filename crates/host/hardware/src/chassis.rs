//! The chassis, its processors and memory: SMBIOS where it may be read, else what the kernel shows
//! to every user.

use std::collections::{BTreeMap, BTreeSet};

use host::Root;
use serde::{Deserialize, Serialize};

use crate::edac::{self, Controller};
use crate::files::{Absence, Reason, node_name, text, unique};
use crate::smbios::{self, MemoryDevice, Processor, Product, TABLE_MAX, Table};

/// Where the kernel has the table of SMBIOS.
const TABLE: &str = "sys/firmware/dmi/tables/DMI";
const ENTRY: &str = "sys/firmware/dmi/tables/smbios_entry_point";
/// Longest entry point in bytes (DSP0134, section 5.2).
const ENTRY_MAX: u64 = 64;
/// What firmware has where its vendor has written nothing.
const PLACEHOLDERS: [&str; 14] = [
    "not specified",
    "to be filled by o.e.m.",
    "default string",
    "none",
    "n/a",
    "na",
    "unknown",
    "system serial number",
    "system product name",
    "system version",
    "chassis serial number",
    "no dimm",
    "no asset tag",
    "empty",
];

/// What the machine is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chassis {
    /// The system.
    pub system: Product,
    /// Its board.
    pub board: Product,
    /// Its chassis.
    pub chassis: Product,
    /// Version of the firmware.
    pub firmware: Option<String>,
}

/// A processor in its socket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// Name of its node.
    pub name: String,
    /// As SMBIOS has it, or the kernel.
    pub processor: Processor,
}

/// A memory module in its place, or an empty place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Name of its node.
    pub name: String,
    /// As SMBIOS has it.
    pub device: MemoryDevice,
    /// Errors that were corrected, since the driver was loaded.
    pub corrected: Option<u64>,
    /// Errors that were not corrected.
    pub uncorrected: Option<u64>,
}

/// The table of SMBIOS.
pub(crate) fn table(root: &Root, lacks: &mut Vec<Absence>) -> Table {
    let entry = root.bytes(ENTRY, ENTRY_MAX).unwrap_or_default();
    match root.bytes(TABLE, TABLE_MAX) {
        Ok(bytes) => smbios::parse(&bytes, smbios::has_little_endian_uuids(&entry)),
        Err(error) => {
            lacks.push(Absence::of("SMBIOS table", &error));
            Table::default()
        }
    }
}

/// A text of firmware, unless it stands for nothing.
pub(crate) fn meaningful(text: Option<String>) -> Option<String> {
    text.filter(|text| !PLACEHOLDERS.contains(&text.to_lowercase().as_str()))
}

fn without_placeholders(product: Product) -> Product {
    Product {
        manufacturer: meaningful(product.manufacturer),
        product: meaningful(product.product),
        version: meaningful(product.version),
        serial: meaningful(product.serial),
        asset_tag: meaningful(product.asset_tag),
        uuid: product.uuid,
        sku: meaningful(product.sku),
        family: meaningful(product.family),
        height_u: product.height_u,
    }
}

/// The chassis.
pub(crate) fn read(root: &Root, table: &Table) -> Chassis {
    let id = |name: &str| text(root, &format!("sys/class/dmi/id/{name}"));
    let system = table.system.clone().unwrap_or_else(|| Product {
        manufacturer: id("sys_vendor"),
        product: id("product_name"),
        version: id("product_version"),
        serial: id("product_serial"),
        uuid: id("product_uuid"),
        sku: id("product_sku"),
        family: id("product_family"),
        ..Product::default()
    });
    let board = table.board.clone().unwrap_or_else(|| Product {
        manufacturer: id("board_vendor"),
        product: id("board_name"),
        version: id("board_version"),
        serial: id("board_serial"),
        asset_tag: id("board_asset_tag"),
        ..Product::default()
    });
    let chassis = table.chassis.clone().unwrap_or_else(|| Product {
        manufacturer: id("chassis_vendor"),
        version: id("chassis_version"),
        serial: id("chassis_serial"),
        asset_tag: id("chassis_asset_tag"),
        ..Product::default()
    });
    Chassis {
        system: without_placeholders(system),
        board: without_placeholders(board),
        chassis: without_placeholders(chassis),
        firmware: id("bios_version"),
    }
}

/// Processors: of SMBIOS, else of the kernel.
pub(crate) fn cpus(root: &Root, table: &Table) -> Vec<Cpu> {
    let mut processors = table.processors.clone();
    if processors.is_empty() {
        processors = of_kernel(&root.read("proc/cpuinfo").unwrap_or_default());
    }
    let mut used = BTreeSet::new();
    let named = |(number, processor): (usize, Processor)| {
        let socket = processor.socket.as_deref().map(node_name).filter(|name| !name.is_empty());
        let name = unique(&socket.unwrap_or_else(|| format!("CPU-{number}")), &mut used);
        let processor = Processor {
            manufacturer: meaningful(processor.manufacturer),
            version: meaningful(processor.version),
            serial: meaningful(processor.serial),
            part: meaningful(processor.part),
            ..processor
        };
        Cpu { name, processor }
    };
    processors.into_iter().enumerate().map(named).collect()
}

/// Most sockets that are read of `/proc/cpuinfo`.
const SOCKETS_MAX: usize = 1_024;

/// Sockets of `/proc/cpuinfo`: one for each physical id.
fn of_kernel(cpuinfo: &str) -> Vec<Processor> {
    let mut sockets: BTreeMap<u32, Processor> = BTreeMap::new();
    for block in cpuinfo.split("\n\n") {
        let value = |name: &str| {
            let mut lines = block.lines().filter_map(|line| line.split_once(':'));
            lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
        };
        if value("processor").is_none() || sockets.len() >= SOCKETS_MAX {
            continue;
        }
        let id = value("physical id").and_then(|id| id.parse().ok()).unwrap_or_default();
        let socket = sockets.entry(id).or_default();
        socket.populated = true;
        socket.enabled = true;
        let clean = |name| value(name).and_then(|text| crate::files::clean(text.as_bytes()));
        socket.manufacturer = clean("vendor_id");
        socket.version = clean("model name");
        socket.cores = value("cpu cores").and_then(|cores| cores.parse().ok());
        socket.threads = Some(socket.threads.unwrap_or_default().saturating_add(1));
    }
    sockets.into_values().collect()
}

/// Modules of SMBIOS with the errors that the drivers of memory controllers have counted; what of
/// these is of no module that SMBIOS names comes after them.
pub(crate) fn memory(table: &Table, controllers: &[Controller]) -> Vec<Module> {
    let mut used = BTreeSet::new();
    let mut modules: Vec<Module> = Vec::new();
    let mut left: Vec<&edac::Dimm> = controllers.iter().flat_map(|one| &one.dimms).collect();
    for (number, device) in table.memory.iter().enumerate() {
        let locator = device.locator.as_deref().map(node_name).filter(|name| !name.is_empty());
        let name = unique(&locator.unwrap_or_else(|| format!("DIMM-{number}")), &mut used);
        let counted = left.iter().position(|dimm| is_of(dimm, device)).map(|at| left.remove(at));
        modules.push(Module {
            name,
            device: MemoryDevice {
                manufacturer: meaningful(device.manufacturer.clone()),
                serial: meaningful(device.serial.clone()),
                part: meaningful(device.part.clone()),
                ..device.clone()
            },
            corrected: counted.map(|dimm| dimm.corrected),
            uncorrected: counted.map(|dimm| dimm.uncorrected),
        });
    }
    for dimm in left {
        let name = unique(&node_name(&dimm.label), &mut used);
        let device = MemoryDevice {
            locator: Some(dimm.label.clone()),
            size: dimm.size,
            ..MemoryDevice::default()
        };
        let (corrected, uncorrected) = (Some(dimm.corrected), Some(dimm.uncorrected));
        modules.push(Module { name, device, corrected, uncorrected });
    }
    modules
}

/// Whether the label that a driver has for a module names the place of SMBIOS: as a word of it.
fn is_of(dimm: &edac::Dimm, device: &MemoryDevice) -> bool {
    let Some(locator) = device.locator.as_deref() else { return false };
    if device.empty {
        return false;
    }
    let with_bank = device.bank.as_deref().map(|bank| format!("{bank} {locator}"));
    dimm.label == locator
        || with_bank.is_some_and(|both| dimm.label == both)
        || !locator.contains(' ') && dimm.label.split([' ', ',']).any(|word| word == locator)
}

/// What is absent of memory errors.
pub(crate) fn lacks_of(controllers: &[Controller]) -> Option<Absence> {
    controllers.is_empty().then(|| Absence::new("memory errors (EDAC)", Reason::NotOffered))
}
