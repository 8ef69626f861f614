//! The SMBIOS table (DMTF DSP0134): types 1, 2, 3, 4, 9 and 17.
//!
//! Firmware writes it, and often wrongly: a structure that is cut off ends the table, a field
//! beyond the end of its structure is absent, an index without a string is no string.

mod names;

use serde::{Deserialize, Serialize};

use crate::files::clean;

/// Longest table in bytes that is read: large servers have 30 KB, the kernel permits more.
pub const TABLE_MAX: u64 = 1 << 20;
/// Most structures of a table: a handle has 16 bits, and no server has a tenth of that.
const STRUCTURES_MAX: usize = 8_192;
/// Most structures of one kind that are shown.
const KIND_MAX: usize = 1_024;
/// Strings of a structure: an index has eight bits.
const STRINGS_MAX: usize = 255;

/// What is read of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Type 1.
    pub system: Option<Product>,
    /// Type 2, the first.
    pub board: Option<Product>,
    /// Type 3, the first.
    pub chassis: Option<Product>,
    /// Type 4.
    pub processors: Vec<Processor>,
    /// Type 9.
    pub slots: Vec<SystemSlot>,
    /// Type 17.
    pub memory: Vec<MemoryDevice>,
}

/// A system, a board or a chassis.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Product {
    /// Manufacturer.
    pub manufacturer: Option<String>,
    /// Product name; of a chassis, its type.
    pub product: Option<String>,
    /// Version.
    pub version: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// Asset tag of a board or chassis.
    pub asset_tag: Option<String>,
    /// UUID of a system.
    pub uuid: Option<String>,
    /// SKU number of a system.
    pub sku: Option<String>,
    /// Family of a system.
    pub family: Option<String>,
    /// Height of a chassis in rack units.
    pub height_u: Option<u8>,
}

/// A processor socket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processor {
    /// Designation of the socket.
    pub socket: Option<String>,
    /// Manufacturer.
    pub manufacturer: Option<String>,
    /// Name of the model.
    pub version: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// Part number.
    pub part: Option<String>,
    /// Whether there is one in the socket.
    pub populated: bool,
    /// Whether it is enabled.
    pub enabled: bool,
    /// Largest speed in MHz.
    pub speed_mhz_max: Option<u16>,
    /// Speed in MHz at the start of the machine.
    pub speed_mhz: Option<u16>,
    /// Cores.
    pub cores: Option<u16>,
    /// Cores that are enabled.
    pub cores_enabled: Option<u16>,
    /// Threads.
    pub threads: Option<u16>,
}

/// A slot of the system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemSlot {
    /// Designation.
    pub designation: Option<String>,
    /// Whether something is in it, when the firmware has a value.
    pub in_use: Option<bool>,
    /// PCI address of its device, `0000:03:00.0`.
    pub address: Option<String>,
    /// Lanes of the slot.
    pub width: Option<u32>,
}

/// A place for a memory module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryDevice {
    /// Locator of the place.
    pub locator: Option<String>,
    /// Bank.
    pub bank: Option<String>,
    /// Size in bytes; none when it is empty, or unknown.
    pub size: Option<u64>,
    /// Whether there is no module.
    pub empty: bool,
    /// Form factor.
    pub form: Option<String>,
    /// Kind of memory.
    pub kind: Option<String>,
    /// Speed in MT/s.
    pub speed_mts: Option<u32>,
    /// Configured speed in MT/s.
    pub speed_mts_configured: Option<u32>,
    /// Manufacturer.
    pub manufacturer: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// Part number.
    pub part: Option<String>,
}

/// A structure: its fixed area, with the header, and its strings.
struct Structure<'a> {
    kind: u8,
    fixed: &'a [u8],
    strings: Vec<&'a [u8]>,
}

impl<'a> Structure<'a> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.fixed.get(at).copied()
    }

    fn word(&self, at: usize) -> Option<u16> {
        let bytes = self.fixed.get(at..at.checked_add(2)?)?;
        Some(u16::from_le_bytes(bytes.try_into().ok()?))
    }

    fn double_word(&self, at: usize) -> Option<u32> {
        let bytes = self.fixed.get(at..at.checked_add(4)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    fn text(&self, at: usize) -> Option<String> {
        let index = usize::from(self.byte(at)?).checked_sub(1)?;
        clean(self.strings.get(index)?)
    }
}

/// Cuts the next structure off; `None` at the end of the table.
fn next<'a>(rest: &mut &'a [u8]) -> Option<Structure<'a>> {
    let [kind, length, _, _, ..] = **rest else { return None };
    let fixed = rest.get(..usize::from(length)).filter(|fixed| fixed.len() >= 4)?;
    let mut tail = rest.get(fixed.len()..)?;
    let mut strings = Vec::new();
    loop {
        let end = tail.iter().position(|byte| *byte == 0)?;
        let (string, after) = tail.split_at(end);
        tail = after.get(1..)?;
        if !string.is_empty() && strings.len() < STRINGS_MAX {
            strings.push(string);
        }
        // Two zeros end the strings, also when there are none.
        if let Some((0, after)) = tail.split_first() {
            tail = after;
            break;
        }
    }
    *rest = tail;
    Some(Structure { kind, fixed, strings })
}

/// Reads a table. `little_endian`: the first fields of a UUID are, as of SMBIOS 2.6.
pub fn parse(bytes: &[u8], little_endian: bool) -> Table {
    let mut table = Table::default();
    let mut rest = bytes;
    for _ in 0..STRUCTURES_MAX {
        let Some(structure) = next(&mut rest) else { break };
        match structure.kind {
            1 if table.system.is_none() => table.system = Some(system(&structure, little_endian)),
            2 if table.board.is_none() => table.board = Some(board(&structure)),
            3 if table.chassis.is_none() => table.chassis = Some(chassis(&structure)),
            4 if table.processors.len() < KIND_MAX => table.processors.push(processor(&structure)),
            9 if table.slots.len() < KIND_MAX => table.slots.push(slot(&structure)),
            17 if table.memory.len() < KIND_MAX => table.memory.push(memory(&structure)),
            127 => break,
            _ => {}
        }
    }
    table
}

/// Whether the entry point is of a version with little-endian UUIDs (2.6); unknown ones are.
pub fn has_little_endian_uuids(entry: &[u8]) -> bool {
    let version = match entry {
        [b'_', b'S', b'M', b'_', _, _, major, minor, ..]
        | [b'_', b'S', b'M', b'3', b'_', _, _, major, minor, ..] => (*major, *minor),
        _ => return true,
    };
    version >= (2, 6)
}

fn system(one: &Structure<'_>, little_endian: bool) -> Product {
    Product {
        manufacturer: one.text(0x04),
        product: one.text(0x05),
        version: one.text(0x06),
        serial: one.text(0x07),
        uuid: one.fixed.get(0x08..0x18).and_then(|bytes| uuid(bytes, little_endian)),
        sku: one.text(0x19),
        family: one.text(0x1a),
        ..Product::default()
    }
}

fn uuid(bytes: &[u8], little_endian: bool) -> Option<String> {
    let mut bytes: [u8; 16] = bytes.try_into().ok()?;
    if bytes == [0; 16] || bytes == [0xff; 16] {
        return None;
    }
    if little_endian {
        let (first, rest) = bytes.split_at_mut(4);
        let (second, rest) = rest.split_at_mut(2);
        first.reverse();
        second.reverse();
        rest.split_at_mut(2).0.reverse();
    }
    let mut text = String::new();
    for (at, byte) in bytes.iter().enumerate() {
        if [4, 6, 8, 10].contains(&at) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    Some(text)
}

fn board(one: &Structure<'_>) -> Product {
    Product {
        manufacturer: one.text(0x04),
        product: one.text(0x05),
        version: one.text(0x06),
        serial: one.text(0x07),
        asset_tag: one.text(0x08),
        ..Product::default()
    }
}

fn chassis(one: &Structure<'_>) -> Product {
    // The highest bit: whether it has a lock.
    let kind = one.byte(0x05).and_then(|kind| names::chassis(kind & 0x7f));
    Product {
        manufacturer: one.text(0x04),
        product: kind.map(str::to_owned),
        version: one.text(0x06),
        serial: one.text(0x07),
        asset_tag: one.text(0x08),
        height_u: one.byte(0x11).filter(|units| *units > 0),
        ..Product::default()
    }
}

fn processor(one: &Structure<'_>) -> Processor {
    let status = one.byte(0x18).unwrap_or_default();
    let speed = |at| one.word(at).filter(|mhz| *mhz > 0);
    // 255 stands for a count in a field of 16 bits.
    let count = |at, wide| match one.byte(at)? {
        0 => None,
        0xff => one.word(wide).filter(|count| (1..0xffff).contains(count)).or(Some(0xff)),
        count => Some(u16::from(count)),
    };
    Processor {
        socket: one.text(0x04),
        manufacturer: one.text(0x07),
        version: one.text(0x10),
        serial: one.text(0x20),
        part: one.text(0x22),
        populated: status & 0x40 != 0,
        enabled: status & 0x07 == 1,
        speed_mhz_max: speed(0x14),
        speed_mhz: speed(0x16),
        cores: count(0x23, 0x2a),
        cores_enabled: count(0x24, 0x2c),
        threads: count(0x25, 0x2e),
    }
}

fn slot(one: &Structure<'_>) -> SystemSlot {
    let address = || {
        let (segment, bus, device) = (one.word(0x0d)?, one.byte(0x0f)?, one.byte(0x10)?);
        if segment == 0xffff || (bus, device) == (0xff, 0xff) {
            return None;
        }
        Some(format!("{segment:04x}:{bus:02x}:{:02x}.{}", device >> 3, device & 7))
    };
    SystemSlot {
        designation: one.text(0x04),
        in_use: one.byte(0x07).and_then(|usage| match usage {
            3 => Some(false),
            4 => Some(true),
            _ => None,
        }),
        address: address(),
        width: one.byte(0x06).and_then(names::slot_width),
    }
}

fn memory(one: &Structure<'_>) -> MemoryDevice {
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    let raw = one.word(0x0c);
    let size = match raw {
        None | Some(0 | 0xffff) => None,
        Some(0x7fff) => one.double_word(0x1c).map(|mib| u64::from(mib & 0x7fff_ffff) * MIB),
        Some(kib) if kib & 0x8000 != 0 => Some(u64::from(kib & 0x7fff) * KIB),
        Some(mib) => Some(u64::from(mib) * MIB),
    };
    let speed = |at, wide| match one.word(at)? {
        0 => None,
        0xffff => one.double_word(wide).map(|mts| mts & 0x7fff_ffff).filter(|mts| *mts > 0),
        mts => Some(u32::from(mts)),
    };
    MemoryDevice {
        locator: one.text(0x10),
        bank: one.text(0x11),
        size,
        empty: raw == Some(0),
        form: one.byte(0x0e).and_then(names::form).map(str::to_owned),
        kind: one.byte(0x12).and_then(names::memory).map(str::to_owned),
        speed_mts: speed(0x15, 0x54),
        speed_mts_configured: speed(0x20, 0x58),
        manufacturer: one.text(0x17),
        serial: one.text(0x18),
        part: one.text(0x1a),
    }
}

#[cfg(test)]
mod tests;
