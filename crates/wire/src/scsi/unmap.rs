//! Parameters of UNMAP (SBC-4 §5.35).

use base::limits::SCSI_UNMAP_DESCRIPTORS_MAX;

use super::ScsiError;
use super::fields::{end_list_u16, slice_at, u16_at, u32_at, u64_at};

/// Bytes before the descriptors.
const HEAD: usize = 8;
/// Bytes of a descriptor.
const DESCRIPTOR: usize = 16;

/// Blocks to unmap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// First block.
    pub lba: u64,
    /// How many; 0 is none.
    pub count: u32,
}

/// Appends the parameters.
pub fn put(extents: &[Extent], out: &mut Vec<u8>) {
    debug_assert!(extents.len() <= SCSI_UNMAP_DESCRIPTORS_MAX);
    let start = out.len();
    out.extend_from_slice(&[0; HEAD]);
    for extent in extents {
        out.extend_from_slice(&extent.lba.to_be_bytes());
        out.extend_from_slice(&extent.count.to_be_bytes());
        out.extend_from_slice(&[0; 4]);
    }
    let list = out.get_mut(start..).unwrap_or_default();
    end_list_u16(list, 0, 2);
    end_list_u16(list, 2, HEAD);
}

/// The blocks to unmap. `list` is all that the initiator has sent; an empty one is no fault, and an
/// incomplete descriptor is ignored, as SBC requires.
///
/// # Errors
/// [`ScsiError::ListLength`] if the head is cut off or announces more than there is;
/// [`ScsiError::ListField`] for more than [`SCSI_UNMAP_DESCRIPTORS_MAX`] descriptors.
pub fn parse(list: &[u8]) -> Result<Vec<Extent>, ScsiError> {
    if list.is_empty() {
        return Ok(Vec::new());
    }
    let length = usize::from(u16_at(list, 2));
    if list.len() < HEAD || HEAD + length > list.len() {
        return Err(ScsiError::ListLength);
    }
    if length / DESCRIPTOR > SCSI_UNMAP_DESCRIPTORS_MAX {
        return Err(ScsiError::list(2, 7));
    }
    let extent = |d: &[u8]| Extent { lba: u64_at(d, 0), count: u32_at(d, 8) };
    Ok(slice_at(list, HEAD, length).chunks_exact(DESCRIPTOR).map(extent).collect())
}
