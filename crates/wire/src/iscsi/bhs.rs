//! The basic header segment (RFC 7143 §11.2.1): 48 bytes before every PDU, with the fields that all
//! PDUs share, and the numbers that identify PDUs.

use thiserror::Error;

use super::Serial;
use super::reason::RejectReason;

/// Bytes of a basic header segment.
pub const BHS: usize = 48;
/// A tag that stands for "none" (§11.2.1.8): ITT of what a target sends unasked, TTT of what an
/// initiator does.
pub const RESERVED_TAG: u32 = u32::MAX;
/// Set in byte 0 of an immediate request (§11.2.1.1).
const IMMEDIATE: u8 = 0x40;
/// Set in byte 1 of the last PDU of a sequence (§11.2.1.3).
pub const FINAL: u8 = 0x80;

/// What a PDU is (§11.2.1.2): bits 0 to 5 of its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Opcode(pub u8);

macro_rules! opcodes {
    ($($(#[$meta:meta])* $name:ident = $number:literal;)*) => {
        impl Opcode {
            $($(#[$meta])* pub const $name: Self = Self($number);)*

            /// All that have a name, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];
        }
    };
}

opcodes! {
    /// NOP-Out (§11.18).
    NOP_OUT = 0x00;
    /// SCSI Command (§11.3).
    SCSI_COMMAND = 0x01;
    /// Task Management Function Request (§11.5).
    TMF_REQUEST = 0x02;
    /// Login Request (§11.12).
    LOGIN_REQUEST = 0x03;
    /// Text Request (§11.10).
    TEXT_REQUEST = 0x04;
    /// SCSI Data-Out (§11.7).
    DATA_OUT = 0x05;
    /// Logout Request (§11.14).
    LOGOUT_REQUEST = 0x06;
    /// SNACK Request (§11.16).
    SNACK = 0x10;
    /// NOP-In (§11.19).
    NOP_IN = 0x20;
    /// SCSI Response (§11.4).
    SCSI_RESPONSE = 0x21;
    /// Task Management Function Response (§11.6).
    TMF_RESPONSE = 0x22;
    /// Login Response (§11.13).
    LOGIN_RESPONSE = 0x23;
    /// Text Response (§11.11).
    TEXT_RESPONSE = 0x24;
    /// SCSI Data-In (§11.7).
    DATA_IN = 0x25;
    /// Logout Response (§11.15).
    LOGOUT_RESPONSE = 0x26;
    /// Ready To Transfer (§11.8).
    R2T = 0x31;
    /// Asynchronous Message (§11.9).
    ASYNC_MESSAGE = 0x32;
    /// Reject (§11.17).
    REJECT = 0x3f;
}

/// Why a PDU that was cut is not one that makes sense. The peer is at fault in every case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PduError {
    /// An opcode that the peer may not send, or an unknown one.
    #[error("opcode {0:#04x} is not supported")]
    UnknownOpcode(u8),
    /// A field has a value that leaves the PDU without meaning.
    #[error("{field} of {pdu} has the invalid value {got}")]
    BadField {
        /// The PDU, by its name in the RFC.
        pdu: &'static str,
        /// The field, by its name in the RFC.
        field: &'static str,
        /// What the peer sent.
        got: u32,
    },
    /// Fields that exclude each other, or one that lacks another.
    #[error("{pdu} breaks a rule: {rule}")]
    Rule {
        /// The PDU.
        pdu: &'static str,
        /// The rule.
        rule: &'static str,
    },
    /// A length within the PDU goes beyond its end.
    #[error("{pdu} ends within {what}")]
    Short {
        /// The PDU.
        pdu: &'static str,
        /// The item that is cut off.
        what: &'static str,
    },
}

impl PduError {
    /// The reason in the target's Reject (§11.17.1).
    pub const fn reason(self) -> RejectReason {
        match self {
            Self::UnknownOpcode(_) => RejectReason::COMMAND_NOT_SUPPORTED,
            Self::BadField { .. } | Self::Short { .. } => RejectReason::INVALID_PDU_FIELD,
            Self::Rule { .. } => RejectReason::PROTOCOL_ERROR,
        }
    }
}

/// Sequence numbers of a request (§11.3.4, §11.3.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InitiatorSn {
    /// Number of the command; an immediate one does not advance it.
    pub cmd_sn: Serial,
    /// The StatSN that the initiator expects next: all before it are acknowledged.
    pub exp_stat_sn: Serial,
}

/// Sequence numbers of a response (§11.4.8 to §11.4.10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TargetSn {
    /// Number of the status.
    pub stat_sn: Serial,
    /// The CmdSN that the target expects next.
    pub exp_cmd_sn: Serial,
    /// The last CmdSN that the target takes.
    pub max_cmd_sn: Serial,
}

/// A basic header segment. Fields are read and written by their offset in the RFC's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bhs(pub [u8; BHS]);

impl Bhs {
    /// All zero but the opcode.
    pub(crate) const fn of(opcode: Opcode) -> Self {
        let mut bytes = [0; BHS];
        bytes[0] = opcode.0;
        Self(bytes)
    }

    /// What the PDU is.
    pub const fn opcode(&self) -> Opcode {
        Opcode(self.0[0] & 0x3f)
    }

    /// Whether the request is immediate (§11.2.1.1).
    pub const fn is_immediate(&self) -> bool {
        self.0[0] & IMMEDIATE != 0
    }

    /// Bytes of additional header segments (§11.2.1.5).
    pub const fn ahs_length(&self) -> usize {
        self.0[4] as usize * 4
    }

    /// Bytes of the data segment, without padding (§11.2.1.6): less than 2^24.
    pub const fn data_length(&self) -> usize {
        u32::from_be_bytes([0, self.0[5], self.0[6], self.0[7]]) as usize
    }

    /// Initiator task tag (§11.2.1.8).
    pub fn itt(&self) -> u32 {
        self.u32(16)
    }

    pub(crate) fn set_immediate(&mut self, immediate: bool) {
        if immediate {
            self.0[0] |= IMMEDIATE;
        }
    }

    pub(crate) const fn set_ahs_length(&mut self, bytes: usize) {
        debug_assert!(bytes.is_multiple_of(4) && bytes <= 1020);
        self.0[4] = (bytes / 4) as u8;
    }

    pub(crate) fn set_data_length(&mut self, bytes: usize) {
        debug_assert!(bytes < 1 << 24, "a data segment of {bytes} bytes");
        let [_, high, middle, low] = (bytes as u32).to_be_bytes();
        self.0[5..8].copy_from_slice(&[high, middle, low]);
    }

    fn field<const N: usize>(&self, at: usize) -> [u8; N] {
        self.0.get(at..).and_then(|rest| rest.first_chunk().copied()).unwrap_or([0; N])
    }

    fn put<const N: usize>(&mut self, at: usize, value: [u8; N]) {
        if let Some(field) = self.0.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
            *field = value;
        }
    }

    pub(crate) fn u8(&self, at: usize) -> u8 {
        self.field::<1>(at)[0]
    }

    pub(crate) fn bit(&self, at: usize, mask: u8) -> bool {
        self.u8(at) & mask != 0
    }

    pub(crate) fn u16(&self, at: usize) -> u16 {
        u16::from_be_bytes(self.field(at))
    }

    pub(crate) fn u32(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.field(at))
    }

    pub(crate) fn serial(&self, at: usize) -> Serial {
        Serial(self.u32(at))
    }

    pub(crate) fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        self.field(at)
    }

    pub(crate) fn lun(&self) -> u64 {
        u64::from_be_bytes(self.field(8))
    }

    pub(crate) fn initiator_sn(&self) -> InitiatorSn {
        InitiatorSn { cmd_sn: self.serial(24), exp_stat_sn: self.serial(28) }
    }

    pub(crate) fn target_sn(&self) -> TargetSn {
        TargetSn {
            stat_sn: self.serial(24),
            exp_cmd_sn: self.serial(28),
            max_cmd_sn: self.serial(32),
        }
    }

    pub(crate) fn set_u8(&mut self, at: usize, value: u8) {
        self.put(at, [value]);
    }

    pub(crate) fn set_bit(&mut self, at: usize, mask: u8, on: bool) {
        if on {
            self.put(at, [self.u8(at) | mask]);
        }
    }

    pub(crate) fn set_u16(&mut self, at: usize, value: u16) {
        self.put(at, value.to_be_bytes());
    }

    pub(crate) fn set_u32(&mut self, at: usize, value: u32) {
        self.put(at, value.to_be_bytes());
    }

    pub(crate) fn set_bytes<const N: usize>(&mut self, at: usize, value: [u8; N]) {
        self.put(at, value);
    }

    pub(crate) fn set_lun(&mut self, lun: u64) {
        self.put(8, lun.to_be_bytes());
    }

    pub(crate) fn set_itt(&mut self, itt: u32) {
        self.set_u32(16, itt);
    }

    pub(crate) fn set_initiator_sn(&mut self, sn: InitiatorSn) {
        self.set_u32(24, sn.cmd_sn.0);
        self.set_u32(28, sn.exp_stat_sn.0);
    }

    pub(crate) fn set_target_sn(&mut self, sn: TargetSn) {
        self.set_u32(24, sn.stat_sn.0);
        self.set_u32(28, sn.exp_cmd_sn.0);
        self.set_u32(32, sn.max_cmd_sn.0);
    }
}
