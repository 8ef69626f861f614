//! One management datagram: 256 bytes, of which the first 24 are a common header.

/// Length of a datagram in bytes.
pub const MAD_BYTES: usize = 256;
/// Data of an attribute of subnet management, in bytes.
pub const SMP_DATA_BYTES: usize = 64;
/// Most hops of a directed route (specification, 14.2.1.2).
pub const HOPS_MAX: usize = 63;

/// Where the attribute begins in both classes.
const DATA: usize = 64;
/// Where the initial path of a directed route begins; its first byte is unused.
const PATH: usize = 128;
/// A local identifier that stands for the route (14.2.1.1).
pub const LID_PERMISSIVE: u16 = 0xffff;
/// The direction bit in the status of a directed route: set on the way back.
const DIRECTION: u16 = 0x8000;
const VERSION: u8 = 1;

/// Management class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Subnet management, routed by local identifier.
    SubnetByLid,
    /// Subnet management by directed route.
    SubnetByRoute,
    /// Performance management.
    Performance,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::SubnetByLid, Self::SubnetByRoute, Self::Performance];

    /// Its number.
    pub const fn number(self) -> u8 {
        match self {
            Self::SubnetByLid => 0x01,
            Self::SubnetByRoute => 0x81,
            Self::Performance => 0x04,
        }
    }

    fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.number() == number)
    }
}

/// Method of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Reads an attribute.
    Get,
    /// Writes one.
    Set,
    /// The reply to both.
    GetResponse,
}

impl Method {
    const fn number(self) -> u8 {
        match self {
            Self::Get => 0x01,
            Self::Set => 0x02,
            Self::GetResponse => 0x81,
        }
    }

    fn of(number: u8) -> Option<Self> {
        [Self::Get, Self::Set, Self::GetResponse].into_iter().find(|one| one.number() == number)
    }
}

/// A directed route: the port by which each hop leaves.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Route(Vec<u8>);

impl Route {
    /// The route by these ports; `None`: too many hops.
    pub fn new(ports: &[u8]) -> Option<Self> {
        (ports.len() <= HOPS_MAX).then(|| Self(ports.to_vec()))
    }

    /// This route and one more hop; `None`: too many.
    pub fn then(&self, port: u8) -> Option<Self> {
        let mut ports = self.0.clone();
        ports.push(port);
        Self::new(&ports)
    }

    /// Its ports.
    pub fn ports(&self) -> &[u8] {
        &self.0
    }
}

/// A datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mad {
    /// Management class.
    pub class: Class,
    /// Method.
    pub method: Method,
    /// Status without the direction bit; 0 is success.
    pub status: u16,
    /// Transaction: the kernel uses the upper half for the agent.
    pub transaction: u64,
    /// Number of the attribute.
    pub attribute: u16,
    /// Its modifier.
    pub modifier: u32,
    /// The route of [`Class::SubnetByRoute`]; empty otherwise.
    pub route: Route,
    /// The attribute: [`SMP_DATA_BYTES`] for subnet management, 192 bytes otherwise.
    pub data: Vec<u8>,
}

/// Why bytes are not a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotMad {
    /// Shorter than [`MAD_BYTES`].
    #[error("a datagram of {0} bytes; it has {MAD_BYTES}")]
    Short(usize),
    /// Of another version.
    #[error("a datagram of version {0}")]
    Version(u8),
    /// Of a class that is not requested here.
    #[error("a datagram of the class {0:#04x}")]
    Class(u8),
    /// Of a method that is not requested here.
    #[error("a datagram of the method {0:#04x}")]
    Method(u8),
    /// A route that is longer than a datagram holds.
    #[error("a directed route of {0} hops")]
    Hops(u8),
}

impl Mad {
    /// A request to read an attribute.
    pub fn get(class: Class, attribute: u16, modifier: u32) -> Self {
        Self {
            class,
            method: Method::Get,
            status: 0,
            transaction: 0,
            attribute,
            modifier,
            route: Route::default(),
            data: vec![0; data_bytes(class)],
        }
    }

    /// As bytes. Data beyond its length is left out.
    pub fn encode(&self) -> [u8; MAD_BYTES] {
        let mut bytes = [0; MAD_BYTES];
        bytes[0] = VERSION;
        bytes[1] = self.class.number();
        bytes[2] = 1;
        bytes[3] = self.method.number();
        let by_route = self.class == Class::SubnetByRoute;
        let is_reply = self.method == Method::GetResponse;
        // Other classes have 16 bits of status.
        let status = match (by_route, is_reply) {
            (true, true) => self.status | DIRECTION,
            (true, false) => self.status & !DIRECTION,
            (false, _) => self.status,
        };
        bytes[4..6].copy_from_slice(&status.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.transaction.to_be_bytes());
        bytes[16..18].copy_from_slice(&self.attribute.to_be_bytes());
        bytes[20..24].copy_from_slice(&self.modifier.to_be_bytes());
        if by_route {
            let ports = self.route.ports();
            bytes[7] = ports.len() as u8;
            bytes[32..34].copy_from_slice(&LID_PERMISSIVE.to_be_bytes());
            bytes[34..36].copy_from_slice(&LID_PERMISSIVE.to_be_bytes());
            bytes[PATH + 1..=PATH + ports.len()].copy_from_slice(ports);
        }
        let length = self.data.len().min(data_bytes(self.class));
        bytes[DATA..DATA + length].copy_from_slice(&self.data[..length]);
        bytes
    }

    /// From bytes; what follows the datagram is ignored.
    ///
    /// # Errors
    /// Why they are not a datagram.
    pub fn decode(bytes: &[u8]) -> Result<Self, NotMad> {
        let short = NotMad::Short(bytes.len());
        let bytes: &[u8; MAD_BYTES] = bytes.first_chunk().ok_or(short)?;
        if bytes[0] != VERSION {
            return Err(NotMad::Version(bytes[0]));
        }
        let class = Class::of(bytes[1]).ok_or(NotMad::Class(bytes[1]))?;
        let method = Method::of(bytes[3]).ok_or(NotMad::Method(bytes[3]))?;
        let by_route = class == Class::SubnetByRoute;
        let hops = if by_route { usize::from(bytes[7]) } else { 0 };
        let route = bytes.get(PATH + 1..=PATH + hops).and_then(Route::new);
        let status = number(bytes, 4, 2) as u16;
        Ok(Self {
            class,
            method,
            status: if by_route { status & !DIRECTION } else { status },
            transaction: number(bytes, 8, 8),
            attribute: number(bytes, 16, 2) as u16,
            modifier: number(bytes, 20, 4) as u32,
            route: route.ok_or(NotMad::Hops(bytes[7]))?,
            data: bytes[DATA..DATA + data_bytes(class)].to_vec(),
        })
    }
}

/// Bytes of an attribute.
pub const fn data_bytes(class: Class) -> usize {
    match class {
        Class::Performance => MAD_BYTES - DATA,
        Class::SubnetByLid | Class::SubnetByRoute => SMP_DATA_BYTES,
    }
}

/// The big-endian number of `length` bytes (at most 8) at an offset; bytes that are missing are 0.
pub(crate) fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    (at..at + length).fold(0, |n, at| n << 8 | u64::from(bytes.get(at).copied().unwrap_or(0)))
}

/// Writes the big-endian number; bytes beyond the end are left out.
pub(crate) fn set_number(bytes: &mut [u8], at: usize, length: usize, value: u64) {
    for n in 0..length {
        if let Some(byte) = bytes.get_mut(at + n) {
            *byte = (value >> (8 * (length - 1 - n))) as u8;
        }
    }
}

#[cfg(test)]
mod tests;
