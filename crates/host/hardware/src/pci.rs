//! PCI functions, and the slots that they are in.

mod ids;

use std::collections::{BTreeMap, BTreeSet};

use host::Root;
use serde::{Deserialize, Serialize};

use crate::files::{clean, hex, link_name, names, node_name, number, text, unique};
use crate::hca::Hca;
use crate::smbios::SystemSlot;
use ids::Names;

const DEVICES: &str = "sys/bus/pci/devices";
/// More lanes than a link can have stand for an unknown number.
const LANES_MAX: u32 = 32;

/// A link of PCI Express.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Lanes in use.
    pub width: Option<u32>,
    /// Lanes that the device has.
    pub width_max: Option<u32>,
    /// Transfer rate of a lane in use: `8.0 GT/s`.
    pub speed: Option<String>,
    /// Highest transfer rate of a lane of the device.
    pub speed_max: Option<String>,
}

impl Link {
    /// Whether it has fewer lanes than the device.
    pub fn is_narrow(&self) -> bool {
        matches!((self.width, self.width_max), (Some(now), Some(most)) if now < most)
    }

    /// Whether its lanes are slower than those of the device.
    pub fn is_slow(&self) -> bool {
        let rate =
            |text: &Option<String>| text.as_deref()?.split_whitespace().next()?.parse::<f64>().ok();
        matches!((rate(&self.speed), rate(&self.speed_max)), (Some(now), Some(most)) if now < most)
    }

    /// How it runs, in a few words: `x4 of x8 at 8.0 GT/s`.
    pub fn words(&self) -> Option<String> {
        let width = match (self.width, self.width_max) {
            (Some(now), Some(most)) if now < most => format!("x{now} of x{most}"),
            (Some(now), _) => format!("x{now}"),
            (None, _) => return None,
        };
        Some(match (&self.speed, &self.speed_max) {
            (Some(now), Some(most)) if self.is_slow() => format!("{width} at {now} of {most}"),
            (Some(now), _) => format!("{width} at {now}"),
            (None, _) => width,
        })
    }
}

/// A PCI function.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// `0000:03:00.0`.
    pub address: String,
    /// Class, subclass and programming interface: 24 bits.
    pub class: u32,
    /// Vendor.
    pub vendor: u16,
    /// Device.
    pub device: u16,
    /// Vendor and device of the subsystem.
    pub subsystem: Option<(u16, u16)>,
    /// Revision.
    pub revision: u8,
    /// Driver in use.
    pub driver: Option<String>,
    /// Its link.
    pub link: Link,
    /// Name of the class, where the machine has `pci.ids`.
    pub class_name: Option<String>,
    /// Name of the vendor, from there.
    pub vendor_name: Option<String>,
    /// Name of the device, from there.
    pub device_name: Option<String>,
}

impl Function {
    /// Whether it is what people put into slots, and not a part of the processor or the chipset:
    /// storage, networks, displays, Fibre Channel, InfiniBand, accelerators.
    pub fn is_card(&self) -> bool {
        let (class, subclass) = (self.class >> 16, self.class >> 8 & 0xff);
        match class {
            0x01..=0x04 | 0x0d | 0x10 | 0x12 => true,
            0x0c => matches!(subclass, 0x04 | 0x06),
            _ => false,
        }
    }

    /// What it is: names where they exist, else numbers.
    pub fn words(&self) -> String {
        let vendor =
            self.vendor_name.clone().unwrap_or_else(|| format!("vendor {:04x}", self.vendor));
        match &self.device_name {
            Some(device) => format!("{vendor} {device}"),
            None => format!("{vendor} device {:04x}", self.device),
        }
    }

    /// Its class: the name where it exists, else a general one by the number.
    pub fn class_words(&self) -> String {
        let general = match self.class >> 8 {
            0x0106 => "SATA controller",
            0x0107 => "SAS controller",
            0x0108 => "NVMe controller",
            0x0100..=0x0105 | 0x0109..=0x01ff => "storage controller",
            0x0200 => "Ethernet controller",
            0x0207 | 0x0c06 => "InfiniBand controller",
            0x0201..=0x0206 | 0x0208..=0x02ff => "network controller",
            0x0300..=0x03ff => "display controller",
            0x0c04 => "Fibre Channel",
            _ => {
                return self
                    .class_name
                    .clone()
                    .unwrap_or_else(|| format!("class {:04x}", self.class >> 8));
            }
        };
        self.class_name.clone().unwrap_or_else(|| general.to_owned())
    }
}

/// A slot, with what is in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// Name of its node.
    pub name: String,
    /// Designation on the board, where SMBIOS has one.
    pub designation: Option<String>,
    /// Address without the function, `0000:03:00`.
    pub address: Option<String>,
    /// Lanes of the slot.
    pub width: Option<u32>,
    /// Its functions.
    pub functions: Vec<Function>,
    /// Host channel adapters in it.
    pub hcas: Vec<Hca>,
}

/// All functions.
pub(crate) fn functions(root: &Root) -> Vec<Function> {
    let mut functions: Vec<Function> =
        names(root, DEVICES).iter().filter_map(|address| function(root, address)).collect();
    Names::of(root, &functions).enter(&mut functions);
    functions
}

fn function(root: &Root, address: &str) -> Option<Function> {
    let path = |name: &str| format!("{DEVICES}/{address}/{name}");
    let id = |name: &str| hex(root, &path(name)).and_then(|id| u16::try_from(id).ok());
    let lanes = |name: &str| {
        number::<u32>(root, &path(name)).filter(|lanes| (1..=LANES_MAX).contains(lanes))
    };
    let speed = |name: &str| {
        let text = text(root, &path(name))?;
        // `8.0 GT/s PCIe`, `Unknown`.
        let (rate, _) = text.split_once(" GT/s")?;
        rate.parse::<f64>().ok().map(|_| format!("{rate} GT/s"))
    };
    let subsystem = id("subsystem_vendor").zip(id("subsystem_device"));
    Some(Function {
        address: clean(address.as_bytes())?,
        class: hex(root, &path("class"))? & 0xff_ffff,
        vendor: id("vendor")?,
        device: id("device")?,
        subsystem: subsystem.filter(|ids| *ids != (0, 0)),
        revision: hex(root, &path("revision")).and_then(|n| u8::try_from(n).ok()).unwrap_or(0),
        driver: link_name(root, &path("driver")),
        link: Link {
            width: lanes("current_link_width"),
            width_max: lanes("max_link_width"),
            speed: speed("current_link_speed"),
            speed_max: speed("max_link_speed"),
        },
        ..Function::default()
    })
}

/// Address without the function.
fn device_of(address: &str) -> &str {
    address.rsplit_once('.').map_or(address, |(device, _)| device)
}

/// Slots of SMBIOS, empty ones too, and cards that are in none of them.
pub(crate) fn slots(functions: &[Function], system: &[SystemSlot], hcas: &[Hca]) -> Vec<Slot> {
    let mut devices: BTreeMap<&str, Vec<&Function>> = BTreeMap::new();
    for function in functions {
        devices.entry(device_of(&function.address)).or_default().push(function);
    }
    let mut used = BTreeSet::new();
    let mut slots = Vec::new();
    for one in system {
        // Of a bridge in the slot only what is behind it is a card, which has its own address.
        let address = one.address.as_deref().map(device_of);
        let inside = address.and_then(|address| devices.remove(address)).unwrap_or_default();
        let name = one.designation.as_deref().map(node_name).filter(|name| !name.is_empty());
        let name = name.or_else(|| address.map(str::to_owned));
        let Some(name) = name else { continue };
        slots.push(Slot {
            name: unique(&name, &mut used),
            designation: one.designation.clone(),
            address: address.map(str::to_owned).filter(|_| !inside.is_empty()),
            width: one.width,
            functions: inside.into_iter().cloned().collect(),
            hcas: Vec::new(),
        });
    }
    for (address, inside) in devices {
        if !inside.iter().any(|function| function.is_card()) {
            continue;
        }
        slots.push(Slot {
            name: unique(address, &mut used),
            address: Some(address.to_owned()),
            functions: inside.into_iter().cloned().collect(),
            ..Slot::default()
        });
    }
    for hca in hcas {
        let address = hca.address.as_deref().map(device_of);
        if let Some(slot) = slots.iter_mut().find(|slot| slot.address.as_deref() == address) {
            slot.hcas.push(hca.clone());
        }
    }
    slots
}
