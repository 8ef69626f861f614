//! Attributes of subnet management and performance management, both directions. Unknown values
//! survive as numbers.

use crate::mad::{Class, SMP_DATA_BYTES, data_bytes, number, set_number};

/// NodeDescription (14.2.5.2).
pub const NODE_DESCRIPTION: u16 = 0x10;
/// NodeInfo (14.2.5.3).
pub const NODE_INFO: u16 = 0x11;
/// PortInfo (14.2.5.6).
pub const PORT_INFO: u16 = 0x15;
/// P_KeyTable (14.2.5.7).
pub const PKEY_TABLE: u16 = 0x16;
/// SMInfo (14.2.5.13).
pub const SM_INFO: u16 = 0x20;
/// ClassPortInfo (13.4.8.1).
pub const CLASS_PORT_INFO: u16 = 0x01;
/// PortCounters (16.1.3.5).
pub const PORT_COUNTERS: u16 = 0x12;
/// PortCountersExtended (16.1.4.11).
pub const PORT_COUNTERS_EXTENDED: u16 = 0x1d;

/// P_Keys in a block of the table.
pub const PKEYS: usize = 32;
/// Bit of ClassPortInfo: PortCountersExtended is there, with all its counters (16.1.3.1).
const EXTENDED_WIDTH: u16 = 0x0200;

/// Kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeType {
    /// A channel adapter, of a host or a target.
    Adapter,
    /// A switch.
    Switch,
    /// A router.
    Router,
    /// A number that the specification reserves.
    Other(u8),
}

impl From<u8> for NodeType {
    fn from(number: u8) -> Self {
        match number {
            1 => Self::Adapter,
            2 => Self::Switch,
            3 => Self::Router,
            other => Self::Other(other),
        }
    }
}

impl From<NodeType> for u8 {
    fn from(kind: NodeType) -> Self {
        match kind {
            NodeType::Adapter => 1,
            NodeType::Switch => 2,
            NodeType::Router => 3,
            NodeType::Other(number) => number,
        }
    }
}

impl NodeType {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Adapter => "channel adapter",
            Self::Switch => "switch",
            Self::Router => "router",
            Self::Other(_) => "other",
        }
    }
}

/// NodeInfo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeInfo {
    /// Kind of the node.
    pub kind: NodeType,
    /// Number of its ports, port 0 of a switch left out.
    pub ports: u8,
    /// GUID of the system.
    pub system_guid: u64,
    /// GUID of the node.
    pub node_guid: u64,
    /// GUID of the port that received the request.
    pub port_guid: u64,
    /// Device, as the vendor numbers it.
    pub device: u16,
    /// Revision of the device.
    pub revision: u32,
    /// Number of the port that received the request.
    pub local_port: u8,
    /// Vendor, 24 bits.
    pub vendor: u32,
}

impl NodeInfo {
    /// From the data of a reply.
    pub fn decode(data: &[u8]) -> Self {
        Self {
            kind: NodeType::from(number(data, 2, 1) as u8),
            ports: number(data, 3, 1) as u8,
            system_guid: number(data, 4, 8),
            node_guid: number(data, 12, 8),
            port_guid: number(data, 20, 8),
            device: number(data, 30, 2) as u16,
            revision: number(data, 32, 4) as u32,
            local_port: number(data, 36, 1) as u8,
            vendor: number(data, 37, 3) as u32,
        }
    }

    /// As the data of a reply.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = vec![0; SMP_DATA_BYTES];
        set_number(&mut data, 0, 2, 0x0101);
        set_number(&mut data, 2, 1, u8::from(self.kind).into());
        set_number(&mut data, 3, 1, self.ports.into());
        set_number(&mut data, 4, 8, self.system_guid);
        set_number(&mut data, 12, 8, self.node_guid);
        set_number(&mut data, 20, 8, self.port_guid);
        set_number(&mut data, 30, 2, self.device.into());
        set_number(&mut data, 32, 4, self.revision.into());
        set_number(&mut data, 36, 1, self.local_port.into());
        set_number(&mut data, 37, 3, self.vendor.into());
        data
    }
}

/// The text of NodeDescription: up to the first zero, without control characters.
pub fn description(data: &[u8]) -> String {
    let text = data.split(|byte| *byte == 0).next().unwrap_or_default();
    let text = String::from_utf8_lossy(text);
    text.chars().filter(|c| !c.is_control()).collect::<String>().trim().to_owned()
}

/// PortInfo, as far as it is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortInfo {
    /// Local identifier; 0: none was assigned.
    pub lid: u16,
    /// Local identifier of the subnet manager; 0: none.
    pub sm_lid: u16,
    /// Number of the port that received the request.
    pub local_port: u8,
    /// Widths that are enabled, one bit each.
    pub width_enabled: u8,
    /// Widths that the port supports, one bit each.
    pub width_supported: u8,
    /// Width in use, one bit.
    pub width_active: u8,
    /// Speeds that it supports, one bit each.
    pub speed_supported: u8,
    /// Logical state: 1 down, 2 initialize, 3 armed, 4 active.
    pub state: u8,
    /// Physical state: 2 polling, 3 disabled, 4 training, 5 link up, 6 error recovery.
    pub physical: u8,
    /// Speed in use, one bit.
    pub speed_active: u8,
    /// Speeds that are enabled, one bit each.
    pub speed_enabled: u8,
    /// Speed in use from FDR on, one bit; 0: an older one.
    pub speed_extended_active: u8,
    /// Speeds from FDR on that the port supports, one bit each.
    pub speed_extended_supported: u8,
    /// Speeds from FDR on that are enabled, one bit each.
    pub speed_extended_enabled: u8,
}

impl PortInfo {
    /// From the data of a reply.
    pub fn decode(data: &[u8]) -> Self {
        let byte = |at| number(data, at, 1) as u8;
        Self {
            lid: number(data, 16, 2) as u16,
            sm_lid: number(data, 18, 2) as u16,
            local_port: byte(28),
            width_enabled: byte(29),
            width_supported: byte(30),
            width_active: byte(31),
            speed_supported: byte(32) >> 4,
            state: byte(32) & 15,
            physical: byte(33) >> 4,
            speed_active: byte(35) >> 4,
            speed_enabled: byte(35) & 15,
            speed_extended_active: byte(62) >> 4,
            speed_extended_supported: byte(62) & 15,
            speed_extended_enabled: byte(63) & 31,
        }
    }

    /// As the data of a reply.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = vec![0; SMP_DATA_BYTES];
        let nibbles = |high: u8, low: u8| u64::from(high << 4 | low & 15);
        set_number(&mut data, 16, 2, self.lid.into());
        set_number(&mut data, 18, 2, self.sm_lid.into());
        set_number(&mut data, 28, 1, self.local_port.into());
        set_number(&mut data, 29, 1, self.width_enabled.into());
        set_number(&mut data, 30, 1, self.width_supported.into());
        set_number(&mut data, 31, 1, self.width_active.into());
        set_number(&mut data, 32, 1, nibbles(self.speed_supported, self.state));
        set_number(&mut data, 33, 1, nibbles(self.physical, 0));
        set_number(&mut data, 35, 1, nibbles(self.speed_active, self.speed_enabled));
        let extended = nibbles(self.speed_extended_active, self.speed_extended_supported);
        set_number(&mut data, 62, 1, extended);
        set_number(&mut data, 63, 1, self.speed_extended_enabled.into());
        data
    }

    /// Whether the physical link is up.
    pub fn is_linked(&self) -> bool {
        self.physical == 5
    }

    /// The logical state in words.
    pub fn state_name(&self) -> &'static str {
        match self.state {
            1 => "down",
            2 => "initialize",
            3 => "armed",
            4 => "active",
            _ => "unknown",
        }
    }

    /// The physical state in words.
    pub fn physical_name(&self) -> &'static str {
        match self.physical {
            1 => "sleep",
            2 => "polling",
            3 => "disabled",
            4 => "training",
            5 => "link up",
            6 => "error recovery",
            7 => "test",
            _ => "unknown",
        }
    }

    /// Lanes of the link in use; 0: no link.
    pub fn lanes(&self) -> u8 {
        lanes(self.width_active)
    }

    /// Lanes that the port supports.
    pub fn lanes_max(&self) -> u8 {
        lanes_best(self.width_supported)
    }

    /// Lanes that the port supports and has enabled.
    pub fn lanes_enabled(&self) -> u8 {
        lanes_best(self.width_supported & self.width_enabled)
    }

    /// Rank of the speed in use and its name; rank 0: none.
    pub fn speed(&self) -> (u8, &'static str) {
        speed(self.speed_active, self.speed_extended_active)
    }

    /// The best speed that the port supports.
    pub fn speed_max(&self) -> (u8, &'static str) {
        speed_best(self.speed_supported, self.speed_extended_supported)
    }

    /// The best speed that the port supports and has enabled.
    pub fn speed_enabled_max(&self) -> (u8, &'static str) {
        let extended = self.speed_extended_supported & self.speed_extended_enabled;
        speed_best(self.speed_supported & self.speed_enabled, extended)
    }

    /// Most bytes of data in a second on the link in use; 0: no link.
    pub fn bytes_per_second(&self) -> u64 {
        // Megabit of data a second and lane: 8b/10b below FDR, 64b/66b from then on.
        const LANE: [u64; 8] = [0, 2_000, 4_000, 8_000, 13_637, 25_000, 51_516, 103_030];
        let lane = LANE.get(usize::from(self.speed().0)).copied().unwrap_or_default();
        lane * u64::from(self.lanes()) * 1_000_000 / 8
    }
}

fn lanes_best(bits: u8) -> u8 {
    (0..8).map(|bit| lanes(bits & 1 << bit)).max().unwrap_or(0)
}

fn speed_best(base: u8, extended: u8) -> (u8, &'static str) {
    let best = |bits: u8| bits.checked_ilog2().map_or(0, |bit| 1 << bit);
    speed(best(base & 7), best(extended & 15))
}

fn lanes(bits: u8) -> u8 {
    match bits {
        1 => 1,
        2 => 4,
        4 => 8,
        8 => 12,
        16 => 2,
        _ => 0,
    }
}

fn speed(base: u8, extended: u8) -> (u8, &'static str) {
    match (extended, base) {
        (1, _) => (4, "FDR"),
        (2, _) => (5, "EDR"),
        (4, _) => (6, "HDR"),
        (8, _) => (7, "NDR"),
        (_, 1) => (1, "SDR"),
        (_, 2) => (2, "DDR"),
        (_, 4) => (3, "QDR"),
        _ => (0, ""),
    }
}

/// The P_Keys of a block of the table, unused entries left out.
pub fn pkeys(data: &[u8]) -> Vec<u16> {
    let all = (0..PKEYS).map(|n| number(data, 2 * n, 2) as u16);
    all.filter(|pkey| pkey & 0x7fff != 0).collect()
}

/// A block of the table with these P_Keys; those beyond [`PKEYS`] are left out.
pub fn pkey_block(pkeys: &[u16]) -> Vec<u8> {
    let mut data = vec![0; SMP_DATA_BYTES];
    for (n, pkey) in pkeys.iter().take(PKEYS).enumerate() {
        set_number(&mut data, 2 * n, 2, u64::from(*pkey));
    }
    data
}

/// The state of a subnet manager from SMInfo: 3 is the master.
pub fn sm_state(data: &[u8]) -> u8 {
    number(data, 20, 1) as u8 & 15
}

/// Whether a node has counters of 64 bits, from ClassPortInfo.
pub fn has_extended(data: &[u8]) -> bool {
    number(data, 2, 2) as u16 & EXTENDED_WIDTH != 0
}

/// ClassPortInfo of a node.
pub fn class_port_info(extended: bool) -> Vec<u8> {
    let mut data = vec![0; data_bytes(Class::Performance)];
    set_number(&mut data, 0, 2, 0x0101);
    set_number(&mut data, 2, 2, if extended { EXTENDED_WIDTH.into() } else { 0 });
    data
}

/// Counts of errors of a port, in the order of [`ERRORS`].
pub type Errors = [u32; ERRORS.len()];

/// An error counter of PortCounters.
#[derive(Debug)]
pub struct ErrorCounter {
    /// As statistics name it.
    pub name: &'static str,
    /// Byte in the attribute.
    at: usize,
    /// Its bits: 16, 8, or 4 in the upper or lower half of the byte.
    bits: Bits,
}

#[derive(Debug)]
enum Bits {
    Sixteen,
    Eight,
    High,
    Low,
}

const fn counter(name: &'static str, at: usize, bits: Bits) -> ErrorCounter {
    ErrorCounter { name, at, bits }
}

/// The error counters of PortCounters. They stop at their maximum.
pub const ERRORS: [ErrorCounter; 12] = [
    counter("symbol", 4, Bits::Sixteen),
    counter("link recovery", 6, Bits::Eight),
    counter("link downed", 7, Bits::Eight),
    counter("receive", 8, Bits::Sixteen),
    counter("receive remote physical", 10, Bits::Sixteen),
    counter("receive switch relay", 12, Bits::Sixteen),
    counter("transmit discard", 14, Bits::Sixteen),
    counter("transmit constraint", 16, Bits::Eight),
    counter("receive constraint", 17, Bits::Eight),
    counter("link integrity", 19, Bits::High),
    counter("buffer overrun", 19, Bits::Low),
    counter("VL15 dropped", 22, Bits::Sixteen),
];

/// PortCounters: counters of 32 bits and less.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Which port.
    pub port: u8,
    /// Errors.
    pub errors: Errors,
    /// Data received and transmitted, in words of 4 bytes.
    pub words: [u32; 2],
    /// Packets received and transmitted.
    pub packets: [u32; 2],
    /// Ticks in which data waited for credits of the peer.
    pub wait: u32,
}

impl PortCounters {
    /// From the data of a reply.
    pub fn decode(data: &[u8]) -> Self {
        let four = |at| number(data, at, 4) as u32;
        let error = |counter: &ErrorCounter| match counter.bits {
            Bits::Sixteen => number(data, counter.at, 2) as u32,
            Bits::Eight => number(data, counter.at, 1) as u32,
            Bits::High => number(data, counter.at, 1) as u32 >> 4,
            Bits::Low => number(data, counter.at, 1) as u32 & 15,
        };
        Self {
            port: number(data, 1, 1) as u8,
            errors: ERRORS.each_ref().map(error),
            words: [four(28), four(24)],
            packets: [four(36), four(32)],
            wait: four(40),
        }
    }

    /// As the data of a reply, or of a request to set all counters.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = vec![0; data_bytes(Class::Performance)];
        set_number(&mut data, 1, 1, self.port.into());
        // Counters that a request sets; XmitWait has its bit in CounterSelect2.
        set_number(&mut data, 2, 2, 0xffff);
        set_number(&mut data, 18, 1, 1);
        for (counter, value) in ERRORS.iter().zip(self.errors) {
            let before = number(&data, counter.at, 1);
            let (length, value) = match counter.bits {
                Bits::Sixteen => (2, u64::from(value.min(0xffff))),
                Bits::Eight => (1, u64::from(value.min(0xff))),
                Bits::High => (1, before | u64::from(value.min(15)) << 4),
                Bits::Low => (1, before | u64::from(value.min(15))),
            };
            set_number(&mut data, counter.at, length, value);
        }
        for (at, value) in [(28, self.words[0]), (24, self.words[1])] {
            set_number(&mut data, at, 4, value.into());
        }
        for (at, value) in [(36, self.packets[0]), (32, self.packets[1]), (40, self.wait)] {
            set_number(&mut data, at, 4, value.into());
        }
        data
    }
}

/// PortCountersExtended: counters of 64 bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExtendedCounters {
    /// Which port.
    pub port: u8,
    /// Data received and transmitted, in words of 4 bytes.
    pub words: [u64; 2],
    /// Packets received and transmitted.
    pub packets: [u64; 2],
}

impl ExtendedCounters {
    /// From the data of a reply.
    pub fn decode(data: &[u8]) -> Self {
        let eight = |at| number(data, at, 8);
        Self {
            port: number(data, 1, 1) as u8,
            words: [eight(16), eight(8)],
            packets: [eight(32), eight(24)],
        }
    }

    /// As the data of a reply, or of a request to set all counters.
    pub fn encode(&self) -> Vec<u8> {
        let mut data = vec![0; data_bytes(Class::Performance)];
        set_number(&mut data, 1, 1, self.port.into());
        set_number(&mut data, 2, 2, 0xff);
        let counters = [self.words[1], self.words[0], self.packets[1], self.packets[0]];
        for (n, value) in counters.into_iter().enumerate() {
            set_number(&mut data, 8 + 8 * n, 8, value);
        }
        data
    }
}

/// Data of a request for the counters of a port.
pub fn port_select(port: u8) -> Vec<u8> {
    let mut data = vec![0; data_bytes(Class::Performance)];
    set_number(&mut data, 1, 1, port.into());
    data
}

#[cfg(test)]
mod tests;
