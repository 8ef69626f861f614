//! SCSI: commands, sense data and the data that commands carry (SAM-5, SPC-5, SBC-4), of both
//! sides. How they travel is in [`crate::iscsi`].
//!
//! What an initiator sends is checked to the bit: an error names the sense data that the command
//! ends with ([`ScsiError`]). What a target sends is read as far as it goes ([`ResponseError`]).
//!
//! - [`cdb`]: commands; [`opcodes`]: which there are, and which bits of each mean something.
//! - [`sense`]: sense data, in both formats. [`lun`]: addresses of logical units, and their list.
//! - [`inquiry`], [`vpd`]: what a unit is; [`capacity`]: how large, and which blocks have space.
//! - [`mode`]: mode pages. [`unmap`], [`copy`]: blocks to unmap and to copy.
//! - [`reserve`], [`transport_id`]: persistent reservations. [`ports`]: groups of ports, and what a
//!   unit supports.
//! - [`fields`]: reading and writing at an offset, as all of these formats are laid out.

pub mod capacity;
pub mod cdb;
pub mod copy;
pub mod fields;
pub mod inquiry;
pub mod lun;
pub mod mode;
pub mod opcodes;
pub mod ports;
pub mod reserve;
pub mod sense;
pub mod transport_id;
pub mod unmap;
pub mod vpd;

#[cfg(test)]
mod arb;
#[cfg(test)]
pub(crate) mod params_tests;
#[cfg(test)]
mod tests;

use thiserror::Error;

pub use cdb::Cdb;
pub use sense::{Asc, Pointer, Sense, SenseKey};

/// How a command ended (SAM-5 §5.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub u8);

impl Status {
    /// It ended well.
    pub const GOOD: Self = Self(0x00);
    /// Sense data describes the error.
    pub const CHECK_CONDITION: Self = Self(0x02);
    /// PRE-FETCH: everything is in the cache.
    pub const CONDITION_MET: Self = Self(0x04);
    /// Try again soon.
    pub const BUSY: Self = Self(0x08);
    /// A reservation of another initiator forbids it.
    pub const RESERVATION_CONFLICT: Self = Self(0x18);
    /// Too many tasks.
    pub const TASK_SET_FULL: Self = Self(0x28);
    /// An auto contingent allegiance is in effect.
    pub const ACA_ACTIVE: Self = Self(0x30);
    /// Aborted by another initiator.
    pub const TASK_ABORTED: Self = Self(0x40);
}

/// What is wrong with a command or with the data that it brings. The initiator is at fault; the
/// command ends with CHECK CONDITION and this sense data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ScsiError {
    /// There is no such command.
    #[error("unknown operation code {0:#04x}")]
    UnknownOpcode(u8),
    /// A field of the CDB has a value that is invalid, or not supported.
    #[error("invalid field in CDB at byte {}", .0.byte)]
    CdbField(Pointer),
    /// The length of a list of parameters does not match its content.
    #[error("parameter list length error")]
    ListLength,
    /// A field of the parameters has a value that is invalid, or not supported.
    #[error("invalid field in parameter list at byte {}", .0.byte)]
    ListField(Pointer),
    /// More targets in a copy than we take.
    #[error("too many target descriptors")]
    TooManyTargets,
    /// More segments in a copy than we take.
    #[error("too many segment descriptors")]
    TooManySegments,
    /// A descriptor of a target in a copy is of a kind that we do not have.
    #[error("unsupported target descriptor type code")]
    TargetDescriptor,
    /// A segment of a copy is of a kind that we do not have.
    #[error("unsupported segment descriptor type code")]
    SegmentDescriptor,
    /// A segment of a copy names a target that is not in the list.
    #[error("unreachable copy target")]
    UnreachableTarget,
}

impl ScsiError {
    /// A field of the CDB, by its first byte and highest bit.
    pub const fn cdb(byte: u16, bit: u8) -> Self {
        Self::CdbField(Pointer { byte, bit: Some(bit) })
    }

    /// A field of the parameters, by its first byte and highest bit.
    pub const fn list(byte: usize, bit: u8) -> Self {
        let byte = if byte > 0xffff { 0xffff } else { byte as u16 };
        Self::ListField(Pointer { byte, bit: Some(bit) })
    }

    /// The sense data.
    pub const fn sense(self) -> Sense {
        let key = SenseKey::ILLEGAL_REQUEST;
        match self {
            Self::UnknownOpcode(_) => Sense::new(key, Asc::INVALID_COMMAND_OPERATION_CODE),
            Self::CdbField(at) => Sense::new(key, Asc::INVALID_FIELD_IN_CDB).at_cdb(at),
            Self::ListLength => Sense::new(key, Asc::PARAMETER_LIST_LENGTH_ERROR),
            Self::ListField(at) => {
                Sense::new(key, Asc::INVALID_FIELD_IN_PARAMETER_LIST).at_list(at)
            }
            Self::TooManyTargets => Sense::new(key, Asc::TOO_MANY_TARGET_DESCRIPTORS),
            Self::TooManySegments => Sense::new(key, Asc::TOO_MANY_SEGMENT_DESCRIPTORS),
            Self::TargetDescriptor => Sense::new(key, Asc::UNSUPPORTED_TARGET_DESCRIPTOR),
            Self::SegmentDescriptor => Sense::new(key, Asc::UNSUPPORTED_SEGMENT_DESCRIPTOR),
            Self::UnreachableTarget => {
                Sense::new(SenseKey::COPY_ABORTED, Asc::UNREACHABLE_COPY_TARGET)
            }
        }
    }
}

/// Why what a target has sent cannot be understood. The target is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ResponseError {
    /// It ends before what must be there.
    #[error("data ends within {what}")]
    Short {
        /// What is cut off.
        what: &'static str,
    },
    /// A list longer than we take.
    #[error("{what} has more than {max} entries")]
    TooLong {
        /// The list.
        what: &'static str,
        /// Most entries.
        max: usize,
    },
    /// A field has a value that leaves the rest without meaning.
    #[error("{what} has the invalid value {got}")]
    BadValue {
        /// The field.
        what: &'static str,
        /// What was sent.
        got: u32,
    },
}
