//! READ CAPACITY (SBC-4 §5.20, §5.21) and GET LBA STATUS (SBC-4 §5.8).

use base::limits::SCSI_LIST_MAX;

use super::ResponseError;
use super::fields::{
    bit_at, end_list_u32, put_at, set_at, slice_at, u8_at, u16_at, u32_at, u64_at,
};

/// Bytes of the data of READ CAPACITY(16).
pub const CAPACITY_16: usize = 32;

/// How large a unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capacity {
    /// The last block.
    pub last_lba: u64,
    /// Bytes of a block.
    pub block: u32,
    /// LBPPBE: power of two of blocks in a physical block (4 bits).
    pub physical_exponent: u8,
    /// LBPME: blocks can be unmapped.
    pub is_provisioned: bool,
    /// LBPRZ: unmapped blocks read as zeros.
    pub reads_zeros: bool,
    /// First block that begins a physical one (14 bits).
    pub lowest_aligned: u16,
}

impl Capacity {
    /// Appends the data of READ CAPACITY(10); the last block of a unit that is too large is
    /// FFFFFFFFh.
    pub fn put_10(&self, out: &mut Vec<u8>) {
        let last = u32::try_from(self.last_lba).unwrap_or(u32::MAX);
        out.extend_from_slice(&last.to_be_bytes());
        out.extend_from_slice(&self.block.to_be_bytes());
    }

    /// The last block and the size of blocks out of READ CAPACITY(10). A last block of FFFFFFFFh
    /// requires READ CAPACITY(16).
    ///
    /// # Errors
    /// [`ResponseError::Short`].
    pub fn decode_10(data: &[u8]) -> Result<(u32, u32), ResponseError> {
        if data.len() < 8 {
            return Err(ResponseError::Short { what: "capacity" });
        }
        Ok((u32_at(data, 0), u32_at(data, 4)))
    }

    /// Appends the data of READ CAPACITY(16).
    pub fn put_16(&self, out: &mut Vec<u8>) {
        let mut b = [0; CAPACITY_16];
        put_at(&mut b, 0, &self.last_lba.to_be_bytes());
        put_at(&mut b, 8, &self.block.to_be_bytes());
        b[13] = self.physical_exponent & 0xf;
        put_at(&mut b, 14, &(self.lowest_aligned & 0x3fff).to_be_bytes());
        set_at(&mut b, 14, 0x80, self.is_provisioned);
        set_at(&mut b, 14, 0x40, self.reads_zeros);
        out.extend_from_slice(&b);
    }

    /// Reads the data of READ CAPACITY(16), as far as it goes.
    ///
    /// # Errors
    /// [`ResponseError::Short`] if it ends before the size of blocks does.
    pub fn decode_16(data: &[u8]) -> Result<Self, ResponseError> {
        if data.len() < 12 {
            return Err(ResponseError::Short { what: "capacity" });
        }
        Ok(Self {
            last_lba: u64_at(data, 0),
            block: u32_at(data, 8),
            physical_exponent: u8_at(data, 13) & 0xf,
            is_provisioned: bit_at(data, 14, 0x80),
            reads_zeros: bit_at(data, 14, 0x40),
            lowest_aligned: u16_at(data, 14) & 0x3fff,
        })
    }
}

/// Blocks with one status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LbaStatus {
    /// First block.
    pub lba: u64,
    /// How many.
    pub count: u32,
    /// 0 mapped (or not known), 1 deallocated, 2 anchored (4 bits).
    pub status: u8,
}

/// Appends the data of GET LBA STATUS.
pub fn put_lba_status(list: &[LbaStatus], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 8]);
    for one in list {
        out.extend_from_slice(&one.lba.to_be_bytes());
        out.extend_from_slice(&one.count.to_be_bytes());
        out.extend_from_slice(&[one.status & 0xf, 0, 0, 0]);
    }
    end_list_u32(out.get_mut(start..).unwrap_or_default(), 0, 4);
}

/// The descriptors of GET LBA STATUS, as far as they are whole.
///
/// # Errors
/// [`ResponseError`].
pub fn lba_status(data: &[u8]) -> Result<Vec<LbaStatus>, ResponseError> {
    let what = "LBA status";
    if data.len() < 8 {
        return Err(ResponseError::Short { what });
    }
    let list = slice_at(data, 8, (u32_at(data, 0) as usize).saturating_sub(4));
    if list.len() / 16 > SCSI_LIST_MAX {
        return Err(ResponseError::TooLong { what, max: SCSI_LIST_MAX });
    }
    let one =
        |d: &[u8]| LbaStatus { lba: u64_at(d, 0), count: u32_at(d, 8), status: u8_at(d, 12) & 0xf };
    Ok(list.chunks_exact(16).map(one).collect())
}
