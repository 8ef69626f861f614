//! Standard INQUIRY data (SPC-5 §6.7.2).

use super::ResponseError;
use super::fields::{bit_at, bytes_at, put_at, set_at, u8_at, u16_at};

/// Bytes of the data that we send.
pub const INQUIRY: usize = 96;
/// Fewest bytes that mean anything (SPC-5 §6.7.2).
const INQUIRY_MIN: usize = 36;

/// What a logical unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inquiry {
    /// Peripheral qualifier: 0 for a connected unit, 3 for a LUN that cannot have one.
    pub qualifier: u8,
    /// Peripheral device type: 0 for a disk, 1Fh for none.
    pub device_type: u8,
    /// RMB: the medium can be removed.
    pub is_removable: bool,
    /// Version of SPC: 6 for SPC-4, 7 for SPC-5.
    pub version: u8,
    /// HISUP: LUNs are in the format of SAM.
    pub is_hierarchical: bool,
    /// TPGS: 0 without target port groups, 1 implicit, 2 explicit, 3 both.
    pub port_groups: u8,
    /// 3PC: it copies for others.
    pub third_party_copy: bool,
    /// PROTECT: it has protection information.
    pub protect: bool,
    /// MULTIP: it has several ports.
    pub multi_port: bool,
    /// CMDQUE: it queues tasks.
    pub command_queue: bool,
    /// T10 vendor identification: ASCII, filled with spaces.
    pub vendor: [u8; 8],
    /// Product identification.
    pub product: [u8; 16],
    /// Product revision level.
    pub revision: [u8; 4],
    /// Version descriptors (SPC-5 §6.7.2, table of their numbers); 0 for none.
    pub versions: [u16; 8],
}

impl Inquiry {
    /// Appends the data.
    pub fn put(&self, out: &mut Vec<u8>) {
        let mut b = [0; INQUIRY];
        b[0] = self.qualifier << 5 | self.device_type & 0x1f;
        set_at(&mut b, 1, 0x80, self.is_removable);
        b[2] = self.version;
        b[3] = 2;
        set_at(&mut b, 3, 0x10, self.is_hierarchical);
        b[4] = INQUIRY as u8 - 5;
        b[5] = (self.port_groups & 3) << 4;
        set_at(&mut b, 5, 8, self.third_party_copy);
        set_at(&mut b, 5, 1, self.protect);
        set_at(&mut b, 6, 0x10, self.multi_port);
        set_at(&mut b, 7, 2, self.command_queue);
        put_at(&mut b, 8, &self.vendor);
        put_at(&mut b, 16, &self.product);
        put_at(&mut b, 32, &self.revision);
        for (i, version) in self.versions.iter().enumerate() {
            put_at(&mut b, 58 + 2 * i, &version.to_be_bytes());
        }
        out.extend_from_slice(&b);
    }

    /// Reads the data, as far as it goes.
    ///
    /// # Errors
    /// [`ResponseError::Short`] below the 36 bytes that every unit has.
    pub fn decode(b: &[u8]) -> Result<Self, ResponseError> {
        if b.len() < INQUIRY_MIN {
            return Err(ResponseError::Short { what: "INQUIRY data" });
        }
        let mut versions = [0; 8];
        for (i, version) in versions.iter_mut().enumerate() {
            *version = u16_at(b, 58 + 2 * i);
        }
        Ok(Self {
            qualifier: u8_at(b, 0) >> 5,
            device_type: u8_at(b, 0) & 0x1f,
            is_removable: bit_at(b, 1, 0x80),
            version: u8_at(b, 2),
            is_hierarchical: bit_at(b, 3, 0x10),
            port_groups: u8_at(b, 5) >> 4 & 3,
            third_party_copy: bit_at(b, 5, 8),
            protect: bit_at(b, 5, 1),
            multi_port: bit_at(b, 6, 0x10),
            command_queue: bit_at(b, 7, 2),
            vendor: bytes_at(b, 8),
            product: bytes_at(b, 16),
            revision: bytes_at(b, 32),
            versions,
        })
    }
}
