//! Names of the values of SMBIOS (DSP0134 3.6): chassis types (7.4.1), form factors (7.18.1), kinds
//! of memory (7.18.2), widths of slots (7.10.2).

const CHASSIS: [&str; 36] = [
    "Other",
    "Unknown",
    "Desktop",
    "Low Profile Desktop",
    "Pizza Box",
    "Mini Tower",
    "Tower",
    "Portable",
    "Laptop",
    "Notebook",
    "Hand Held",
    "Docking Station",
    "All In One",
    "Sub Notebook",
    "Space-saving",
    "Lunch Box",
    "Main Server Chassis",
    "Expansion Chassis",
    "Sub Chassis",
    "Bus Expansion Chassis",
    "Peripheral Chassis",
    "RAID Chassis",
    "Rack Mount Chassis",
    "Sealed-case PC",
    "Multi-system",
    "CompactPCI",
    "AdvancedTCA",
    "Blade",
    "Blade Enclosing",
    "Tablet",
    "Convertible",
    "Detachable",
    "IoT Gateway",
    "Embedded PC",
    "Mini PC",
    "Stick PC",
];

const FORMS: [&str; 16] = [
    "Other",
    "Unknown",
    "SIMM",
    "SIP",
    "Chip",
    "DIP",
    "ZIP",
    "Proprietary Card",
    "DIMM",
    "TSOP",
    "Row Of Chips",
    "RIMM",
    "SODIMM",
    "SRIMM",
    "FB-DIMM",
    "Die",
];

const MEMORY: [&str; 36] = [
    "Other",
    "Unknown",
    "DRAM",
    "EDRAM",
    "VRAM",
    "SRAM",
    "RAM",
    "ROM",
    "Flash",
    "EEPROM",
    "FEPROM",
    "EPROM",
    "CDRAM",
    "3DRAM",
    "SDRAM",
    "SGRAM",
    "RDRAM",
    "DDR",
    "DDR2",
    "DDR2 FB-DIMM",
    "",
    "",
    "",
    "DDR3",
    "FBD2",
    "DDR4",
    "LPDDR",
    "LPDDR2",
    "LPDDR3",
    "LPDDR4",
    "Logical non-volatile device",
    "HBM",
    "HBM2",
    "DDR5",
    "LPDDR5",
    "HBM3",
];

fn named(list: &'static [&'static str], value: u8) -> Option<&'static str> {
    let name = list.get(usize::from(value).checked_sub(1)?)?;
    (!name.is_empty()).then_some(*name)
}

/// Type of a chassis.
pub(super) fn chassis(value: u8) -> Option<&'static str> {
    named(&CHASSIS, value)
}

/// Form factor of a memory module.
pub(super) fn form(value: u8) -> Option<&'static str> {
    named(&FORMS, value)
}

/// Kind of memory.
pub(super) fn memory(value: u8) -> Option<&'static str> {
    named(&MEMORY, value)
}

/// Lanes of a slot.
pub(super) fn slot_width(value: u8) -> Option<u32> {
    match value {
        0x08 => Some(1),
        0x09 => Some(2),
        0x0a => Some(4),
        0x0b => Some(8),
        0x0c => Some(12),
        0x0d => Some(16),
        0x0e => Some(32),
        _ => None,
    }
}
