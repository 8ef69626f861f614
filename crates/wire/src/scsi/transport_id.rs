//! TransportIDs of iSCSI (SPC-5 §7.6.4.6): an initiator by its name, or one port of it by its name
//! and the ISID of its session.

use base::limits::ISCSI_NAME_MAX;

use super::ScsiError;
use super::fields::{end_list_u16, slice_at, u8_at, u16_at};
use crate::iscsi::login::Isid;

/// Bytes before the name.
const HEAD: usize = 4;
/// Fewest bytes of the name, with what fills it up.
const NAME_MIN: usize = 20;
/// What is between name and ISID.
const SEPARATOR: &str = ",i,0x";

/// An initiator, or one of its ports.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransportId {
    /// Name of the initiator.
    pub name: String,
    /// The port, by the ISID of its session; `None` for the whole initiator.
    pub isid: Option<Isid>,
}

impl TransportId {
    /// The name as it is sent: of a port with its ISID.
    pub fn text(&self) -> String {
        match self.isid {
            None => self.name.clone(),
            Some(Isid(isid)) => {
                let hex: String = isid.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("{}{SEPARATOR}{hex}", self.name)
            }
        }
    }

    /// Appends the TransportID: a multiple of four bytes.
    pub fn put(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[if self.isid.is_some() { 0x45 } else { 0x05 }, 0, 0, 0]);
        let text = self.text();
        out.extend_from_slice(text.as_bytes());
        let padded = (text.len() + 1).next_multiple_of(4).max(NAME_MIN);
        out.resize(start + HEAD + padded, 0);
        end_list_u16(out.get_mut(start..).unwrap_or_default(), 2, HEAD);
    }

    /// The TransportID at the front of `bytes`, and how many bytes it takes. `at` is where it is in
    /// the parameters.
    ///
    /// # Errors
    /// [`ScsiError::ListLength`] if it is cut off; [`ScsiError::ListField`] for another protocol or
    /// format, a name that is not ended, empty, too long or not UTF-8, an ISID that is none.
    pub fn parse(bytes: &[u8], at: usize) -> Result<(Self, usize), ScsiError> {
        let length = usize::from(u16_at(bytes, 2));
        let used = HEAD + length;
        if bytes.len() < used {
            return Err(ScsiError::ListLength);
        }
        let kind = u8_at(bytes, 0);
        if !matches!(kind & 0xcf, 0x05 | 0x45) {
            return Err(ScsiError::list(at, 7));
        }
        if length < NAME_MIN || !length.is_multiple_of(4) {
            return Err(ScsiError::list(at + 2, 7));
        }
        let bad = ScsiError::list(at + HEAD, 7);
        let field = slice_at(bytes, HEAD, length);
        let end = field.iter().position(|byte| *byte == 0).ok_or(bad)?;
        let text = std::str::from_utf8(slice_at(field, 0, end)).map_err(|_| bad)?;
        let (name, isid) = if kind & 0x40 == 0 {
            (text, None)
        } else {
            let (name, hex) = text.split_once(SEPARATOR).ok_or(bad)?;
            (name, Some(isid(hex).ok_or(bad)?))
        };
        if name.is_empty() || name.len() > ISCSI_NAME_MAX {
            return Err(bad);
        }
        Ok((Self { name: name.to_owned(), isid }, used))
    }
}

/// An ISID: twelve hexadecimal digits.
fn isid(hex: &str) -> Option<Isid> {
    if hex.len() != 12 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let number = u64::from_str_radix(hex, 16).ok()?;
    let [_, _, isid @ ..] = number.to_be_bytes();
    Some(Isid(isid))
}
