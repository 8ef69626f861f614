//! Sense data (SPC-5 §4.4): what went wrong, in the fixed and in the descriptor format.

use super::ResponseError;
use super::fields::{bit_at, bytes_at, put_at, set_at, slice_at, u8_at, u16_at, u32_at, u64_at};

/// What kind of condition it is (SPC-5 §4.4.8): 4 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SenseKey(pub u8);

impl SenseKey {
    /// No sense.
    pub const NO_SENSE: Self = Self(0x0);
    /// It went well after all.
    pub const RECOVERED_ERROR: Self = Self(0x1);
    /// The unit cannot be used now.
    pub const NOT_READY: Self = Self(0x2);
    /// The medium is at fault.
    pub const MEDIUM_ERROR: Self = Self(0x3);
    /// The device is at fault.
    pub const HARDWARE_ERROR: Self = Self(0x4);
    /// The command or its parameters are wrong.
    pub const ILLEGAL_REQUEST: Self = Self(0x5);
    /// Something has happened that the initiator must know.
    pub const UNIT_ATTENTION: Self = Self(0x6);
    /// Writing is forbidden.
    pub const DATA_PROTECT: Self = Self(0x7);
    /// Of one vendor, or of a copy manager.
    pub const COPY_ABORTED: Self = Self(0xa);
    /// The device gave it up.
    pub const ABORTED_COMMAND: Self = Self(0xb);
    /// Data is not as expected.
    pub const MISCOMPARE: Self = Self(0xe);
    /// A command has ended.
    pub const COMPLETED: Self = Self(0xf);
}

/// Additional sense code and its qualifier (SPC-5 §F.2), the code in the upper byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Asc(pub u16);

macro_rules! codes {
    ($($(#[$meta:meta])* $name:ident = $number:literal;)*) => {
        impl Asc {
            $($(#[$meta])* pub const $name: Self = Self($number);)*
        }
    };
}

codes! {
    /// No additional sense information.
    NONE = 0x0000;
    /// Logical unit not ready, cause not reportable.
    NOT_READY = 0x0400;
    /// Logical unit is in the process of becoming ready.
    BECOMING_READY = 0x0401;
    /// Logical unit not ready, manual intervention required.
    MANUAL_INTERVENTION = 0x0403;
    /// Logical unit not accessible, target port in standby state.
    PORT_STANDBY = 0x040b;
    /// Logical unit not accessible, target port in unavailable state.
    PORT_UNAVAILABLE = 0x040c;
    /// Logical unit communication failure.
    COMMUNICATION_FAILURE = 0x0800;
    /// Unreachable copy target.
    UNREACHABLE_COPY_TARGET = 0x0804;
    /// Write error.
    WRITE_ERROR = 0x0c00;
    /// Write error: unexpected unsolicited data.
    UNEXPECTED_UNSOLICITED_DATA = 0x0c0c;
    /// Write error: not enough unsolicited data.
    NOT_ENOUGH_UNSOLICITED_DATA = 0x0c0d;
    /// Third party device failure.
    THIRD_PARTY_DEVICE_FAILURE = 0x0d01;
    /// Copy target device not reachable.
    COPY_TARGET_NOT_REACHABLE = 0x0d02;
    /// Invalid field in command information unit: more or less data than the command needs.
    INVALID_FIELD_IN_INFORMATION_UNIT = 0x0e03;
    /// Unrecovered read error.
    UNRECOVERED_READ_ERROR = 0x1100;
    /// Parameter list length error.
    PARAMETER_LIST_LENGTH_ERROR = 0x1a00;
    /// Miscompare during verify operation.
    MISCOMPARE = 0x1d00;
    /// Invalid command operation code.
    INVALID_COMMAND_OPERATION_CODE = 0x2000;
    /// Logical block address out of range.
    LBA_OUT_OF_RANGE = 0x2100;
    /// Invalid field in CDB.
    INVALID_FIELD_IN_CDB = 0x2400;
    /// Logical unit not supported.
    LUN_NOT_SUPPORTED = 0x2500;
    /// Invalid field in parameter list.
    INVALID_FIELD_IN_PARAMETER_LIST = 0x2600;
    /// Invalid release of persistent reservation.
    INVALID_RELEASE = 0x2604;
    /// Too many target descriptors.
    TOO_MANY_TARGET_DESCRIPTORS = 0x2606;
    /// Unsupported target descriptor type code.
    UNSUPPORTED_TARGET_DESCRIPTOR = 0x2607;
    /// Too many segment descriptors.
    TOO_MANY_SEGMENT_DESCRIPTORS = 0x2608;
    /// Unsupported segment descriptor type code.
    UNSUPPORTED_SEGMENT_DESCRIPTOR = 0x2609;
    /// Write protected.
    WRITE_PROTECTED = 0x2700;
    /// Space allocation failed write protect.
    SPACE_ALLOCATION_FAILED = 0x2707;
    /// Not ready to ready change, medium may have changed.
    MEDIUM_MAY_HAVE_CHANGED = 0x2800;
    /// Power on, reset, or bus device reset occurred.
    POWER_ON_OR_RESET = 0x2900;
    /// Power on occurred.
    POWER_ON = 0x2901;
    /// Bus device reset function occurred.
    DEVICE_RESET = 0x2903;
    /// I_T nexus loss occurred.
    NEXUS_LOSS = 0x2907;
    /// Mode parameters changed.
    MODE_PARAMETERS_CHANGED = 0x2a01;
    /// Reservations preempted.
    RESERVATIONS_PREEMPTED = 0x2a03;
    /// Reservations released.
    RESERVATIONS_RELEASED = 0x2a04;
    /// Registrations preempted.
    REGISTRATIONS_PREEMPTED = 0x2a05;
    /// Asymmetric access state changed.
    ACCESS_STATE_CHANGED = 0x2a06;
    /// Capacity data has changed.
    CAPACITY_CHANGED = 0x2a09;
    /// Commands cleared by another initiator.
    COMMANDS_CLEARED = 0x2f00;
    /// Threshold reached of thin provisioning.
    THIN_PROVISIONING_THRESHOLD = 0x3807;
    /// Saving parameters not supported.
    SAVING_NOT_SUPPORTED = 0x3900;
    /// Medium not present.
    MEDIUM_NOT_PRESENT = 0x3a00;
    /// Reported logical units data has changed.
    REPORTED_LUNS_CHANGED = 0x3f0e;
    /// Internal target failure.
    INTERNAL_TARGET_FAILURE = 0x4400;
    /// Logical block guard check failed, and protocol service CRC error.
    PROTOCOL_CRC_ERROR = 0x4705;
    /// Data phase error.
    DATA_PHASE_ERROR = 0x4b00;
    /// Overlapped commands attempted.
    OVERLAPPED_COMMANDS = 0x4e00;
    /// Insufficient resources.
    INSUFFICIENT_RESOURCES = 0x5503;
    /// Insufficient registration resources.
    INSUFFICIENT_REGISTRATIONS = 0x5504;
}

/// Where a field is that is wrong (SPC-5 §4.4.2.4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pointer {
    /// Its first byte.
    pub byte: u16,
    /// Its highest bit, if it is no whole bytes.
    pub bit: Option<u8>,
}

/// The three bytes of sense key specific data (SPC-5 §4.4.2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Specific {
    /// A field of the CDB, of ILLEGAL REQUEST.
    Cdb(Pointer),
    /// A field of the parameters, of ILLEGAL REQUEST.
    List(Pointer),
    /// How far an operation is, in parts of 65,536, of NOT READY and NO SENSE.
    Progress(u16),
    /// Anything else, as it is.
    Other([u8; 3]),
}

impl Specific {
    /// SKSV, the bit that declares the bytes valid.
    const VALID: u8 = 0x80;

    fn bytes(self) -> [u8; 3] {
        let field = |command: u8, at: Pointer| {
            let bit = at.bit.map_or(0, |bit| 8 | bit & 7);
            let [high, low] = at.byte.to_be_bytes();
            [Self::VALID | command | bit, high, low]
        };
        match self {
            Self::Cdb(at) => field(0x40, at),
            Self::List(at) => field(0, at),
            Self::Progress(part) => {
                let [high, low] = part.to_be_bytes();
                [Self::VALID, high, low]
            }
            Self::Other([first, rest @ ..]) => [Self::VALID | first, rest[0], rest[1]],
        }
    }

    fn decode(key: SenseKey, bytes: [u8; 3]) -> Option<Self> {
        let [first, high, low] = bytes;
        let number = u16::from_be_bytes([high, low]);
        let pointer = Pointer { byte: number, bit: (first & 8 != 0).then_some(first & 7) };
        match key {
            _ if first & Self::VALID == 0 => None,
            SenseKey::ILLEGAL_REQUEST if first & 0x40 != 0 => Some(Self::Cdb(pointer)),
            SenseKey::ILLEGAL_REQUEST => Some(Self::List(pointer)),
            SenseKey::NO_SENSE | SenseKey::NOT_READY => Some(Self::Progress(number)),
            _ => Some(Self::Other([first & !Self::VALID, high, low])),
        }
    }
}

/// Which format sense data has (SPC-5 §4.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Of fixed length: what is sent unless D_SENSE is set in the control mode page.
    #[default]
    Fixed,
    /// A list of descriptors.
    Descriptor,
}

/// Sense data, without its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sense {
    /// What kind of condition it is.
    pub key: SenseKey,
    /// What it is.
    pub asc: Asc,
    /// It is about an earlier command.
    pub is_deferred: bool,
    /// A number that depends on the command, such as the block where a comparison failed.
    pub information: Option<u64>,
    /// Another one.
    pub command_information: Option<u64>,
    /// More, by key.
    pub specific: Option<Specific>,
}

/// Bytes of fixed sense data.
pub const FIXED: usize = 18;
/// Types of descriptors (SPC-5 §4.4.2.1).
mod descriptor {
    pub(super) const INFORMATION: u8 = 0x00;
    pub(super) const COMMAND_SPECIFIC: u8 = 0x01;
    pub(super) const KEY_SPECIFIC: u8 = 0x02;
}

impl Sense {
    /// Nothing but key and code.
    pub const fn new(key: SenseKey, asc: Asc) -> Self {
        Self {
            key,
            asc,
            is_deferred: false,
            information: None,
            command_information: None,
            specific: None,
        }
    }

    /// With the field of the CDB that is wrong.
    #[must_use]
    pub const fn at_cdb(self, at: Pointer) -> Self {
        Self { specific: Some(Specific::Cdb(at)), ..self }
    }

    /// With the field of the parameters that is wrong.
    #[must_use]
    pub const fn at_list(self, at: Pointer) -> Self {
        Self { specific: Some(Specific::List(at)), ..self }
    }

    /// With the INFORMATION field.
    #[must_use]
    pub const fn with_information(self, information: u64) -> Self {
        Self { information: Some(information), ..self }
    }

    /// Appends the sense data in this format. The fixed one has no room for information beyond 32
    /// bits; it is left out then (SPC-5 §4.4.3).
    pub fn put(&self, format: Format, out: &mut Vec<u8>) {
        let start = out.len();
        match format {
            Format::Fixed => self.put_fixed(out),
            Format::Descriptor => self.put_descriptors(out),
        }
        debug_assert!(out.len() - start <= base::limits::SCSI_SENSE_MAX);
    }

    fn put_fixed(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; FIXED];
        bytes[0] = 0x70 | u8::from(self.is_deferred);
        bytes[2] = self.key.0 & 0xf;
        bytes[7] = FIXED as u8 - 8;
        if let Some(information) = self.information.and_then(|n| u32::try_from(n).ok()) {
            set_at(&mut bytes, 0, 0x80, true);
            put_at(&mut bytes, 3, &information.to_be_bytes());
        }
        if let Some(information) = self.command_information.and_then(|n| u32::try_from(n).ok()) {
            put_at(&mut bytes, 8, &information.to_be_bytes());
        }
        put_at(&mut bytes, 12, &self.asc.0.to_be_bytes());
        if let Some(specific) = self.specific {
            put_at(&mut bytes, 15, &specific.bytes());
        }
        out.extend_from_slice(&bytes);
    }

    fn put_descriptors(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let [asc, ascq] = self.asc.0.to_be_bytes();
        let code = 0x72 | u8::from(self.is_deferred);
        out.extend_from_slice(&[code, self.key.0 & 0xf, asc, ascq, 0, 0, 0, 0]);
        if let Some(information) = self.information {
            out.extend_from_slice(&[descriptor::INFORMATION, 10, 0x80, 0]);
            out.extend_from_slice(&information.to_be_bytes());
        }
        if let Some(information) = self.command_information {
            out.extend_from_slice(&[descriptor::COMMAND_SPECIFIC, 10, 0, 0]);
            out.extend_from_slice(&information.to_be_bytes());
        }
        if let Some(specific) = self.specific {
            let [a, b, c] = specific.bytes();
            out.extend_from_slice(&[descriptor::KEY_SPECIFIC, 6, 0, 0, a, b, c, 0]);
        }
        let length = (out.len() - start - 8) as u8;
        if let Some(place) = out.get_mut(start + 7) {
            *place = length;
        }
    }

    /// Reads sense data of either format, as far as it goes: what was cut off is not known.
    ///
    /// # Errors
    /// [`ResponseError`] if not even key and code are there, or if it has another format.
    pub fn decode(bytes: &[u8]) -> Result<Self, ResponseError> {
        let code = u8_at(bytes, 0) & 0x7f;
        let short = ResponseError::Short { what: "sense data" };
        match code {
            0x70 | 0x71 if bytes.len() >= 3 => Ok(Self::decode_fixed(bytes)),
            0x72 | 0x73 if bytes.len() >= 4 => Ok(Self::decode_descriptors(bytes)),
            0x70..=0x73 => Err(short),
            _ if bytes.is_empty() => Err(short),
            _ => Err(ResponseError::BadValue { what: "response code", got: u32::from(code) }),
        }
    }

    fn decode_fixed(bytes: &[u8]) -> Self {
        let bytes = slice_at(bytes, 0, 8 + usize::from(u8_at(bytes, 7)));
        let key = SenseKey(u8_at(bytes, 2) & 0xf);
        let command_information = Some(u64::from(u32_at(bytes, 8))).filter(|n| *n != 0);
        Self {
            key,
            asc: Asc(u16_at(bytes, 12)),
            is_deferred: u8_at(bytes, 0) & 1 != 0,
            information: bit_at(bytes, 0, 0x80).then(|| u64::from(u32_at(bytes, 3))),
            command_information,
            specific: Specific::decode(key, bytes_at(bytes, 15)),
        }
    }

    fn decode_descriptors(bytes: &[u8]) -> Self {
        let key = SenseKey(u8_at(bytes, 1) & 0xf);
        let mut sense = Self::new(key, Asc(u16_at(bytes, 2)));
        sense.is_deferred = u8_at(bytes, 0) & 1 != 0;
        let mut rest = slice_at(bytes, 8, usize::from(u8_at(bytes, 7)));
        while let [kind, length, ..] = *rest {
            let Some((one, after)) = rest.split_at_checked(2 + usize::from(length)) else { break };
            match kind {
                descriptor::INFORMATION if length == 10 && bit_at(one, 2, 0x80) => {
                    sense.information = Some(u64_at(one, 4));
                }
                descriptor::COMMAND_SPECIFIC if length == 10 => {
                    sense.command_information = Some(u64_at(one, 4));
                }
                descriptor::KEY_SPECIFIC if length == 6 => {
                    sense.specific = Specific::decode(key, bytes_at(one, 4));
                }
                _ => {}
            }
            rest = after;
        }
        sense
    }
}
