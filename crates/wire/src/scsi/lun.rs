//! Addresses of logical units (SAM-5 §4.7): eight bytes, of which the first two are enough for a
//! flat target; and REPORT LUNS (SPC-5 §6.33).

use base::limits::SCSI_LIST_MAX;

use super::ResponseError;
use super::fields::{end_list_u32, u32_at, u64_at};

/// A logical unit as eight bytes, the first byte the most significant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lun(pub u64);

/// Highest number in the flat space addressing format: 14 bits.
pub const NUMBER_MAX: u16 = 0x3fff;

impl Lun {
    /// The well known logical unit REPORT LUNS (SPC-5 §8.2).
    pub const REPORT_LUNS: Self = Self(0xc101 << 48);

    /// The address of a unit by its number: up to 255 in the peripheral device addressing format,
    /// which every initiator understands, above in the flat space format. `None` beyond
    /// [`NUMBER_MAX`].
    pub const fn of(number: u16) -> Option<Self> {
        match number {
            0..=255 => Some(Self((number as u64) << 48)),
            256..=NUMBER_MAX => Some(Self((0x4000 | number as u64) << 48)),
            _ => None,
        }
    }

    /// The number of a unit that is addressed in one level: peripheral device addressing on bus 0,
    /// or flat space addressing. `None` for other formats.
    pub const fn number(self) -> Option<u16> {
        if self.0 & 0xffff_ffff_ffff != 0 {
            return None;
        }
        let first = (self.0 >> 48) as u16;
        match first >> 14 {
            0 if first < 256 => Some(first),
            1 => Some(first & NUMBER_MAX),
            _ => None,
        }
    }
}

/// Appends the parameter data of REPORT LUNS.
pub fn put_report(luns: &[Lun], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; 8]);
    luns.iter().for_each(|lun| out.extend_from_slice(&lun.0.to_be_bytes()));
    end_list_u32(out.get_mut(start..).unwrap_or_default(), 0, 8);
}

/// The units in the parameter data of REPORT LUNS, as far as it goes, and how many bytes all of
/// them need.
///
/// # Errors
/// [`ResponseError`].
pub fn report(data: &[u8]) -> Result<(Vec<Lun>, usize), ResponseError> {
    let what = "list of logical units";
    let list = data.get(8..).ok_or(ResponseError::Short { what })?;
    let length = u32_at(data, 0) as usize;
    let list = list.get(..length).unwrap_or(list);
    if list.len() / 8 > SCSI_LIST_MAX {
        return Err(ResponseError::TooLong { what, max: SCSI_LIST_MAX });
    }
    let luns = list.chunks_exact(8).map(|lun| Lun(u64_at(lun, 0))).collect();
    Ok((luns, length.saturating_add(8)))
}
