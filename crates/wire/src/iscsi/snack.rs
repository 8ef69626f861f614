//! SNACK Request (RFC 7143 §11.16): of error recovery levels above 0, decoded to be rejected.

use super::Serial;
use super::bhs::{Bhs, FINAL, Opcode, PduError};
use super::frame::{Head, PutPdu};

/// What is requested (§11.16.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SnackType {
    /// Data-Ins or R2Ts once more.
    DataOrR2t = 0,
    /// Statuses once more.
    Status = 1,
    /// Data-Ins are acknowledged.
    DataAck = 2,
    /// Data-Ins once more, cut otherwise.
    RData = 3,
}

/// SNACK Request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Snack {
    /// What is requested.
    pub kind: SnackType,
    /// Logical unit, of a DataACK.
    pub lun: u64,
    /// Initiator task tag of the command, or [`super::RESERVED_TAG`].
    pub itt: u32,
    /// Target transfer tag of a DataACK, or SNACK tag.
    pub tag: u32,
    /// The StatSN that the initiator expects next.
    pub exp_stat_sn: Serial,
    /// First requested number.
    pub beg_run: Serial,
    /// How many; 0 for all that follow.
    pub run_length: u32,
}

impl Snack {
    pub(super) fn decode(head: &Head<'_>) -> Result<Self, PduError> {
        let b = &head.bhs;
        let kind = match b.u8(1) & 0xf {
            0 => SnackType::DataOrR2t,
            1 => SnackType::Status,
            2 => SnackType::DataAck,
            3 => SnackType::RData,
            got => {
                let (field, got) = ("Type", u32::from(got));
                return Err(PduError::BadField { pdu: "SNACK", field, got });
            }
        };
        Ok(Self {
            kind,
            lun: b.lun(),
            itt: b.itt(),
            tag: b.u32(20),
            exp_stat_sn: b.serial(28),
            beg_run: b.serial(40),
            run_length: b.u32(44),
        })
    }
}

impl PutPdu for Snack {
    fn opcode(&self) -> Opcode {
        Opcode::SNACK
    }

    fn fields(&self, b: &mut Bhs) {
        b.set_u8(1, FINAL | self.kind as u8);
        b.set_lun(self.lun);
        b.set_itt(self.itt);
        b.set_u32(20, self.tag);
        b.set_u32(28, self.exp_stat_sn.0);
        b.set_u32(40, self.beg_run.0);
        b.set_u32(44, self.run_length);
    }

    fn data_len(&self) -> usize {
        0
    }

    fn put_data(&self, _: &mut Vec<u8>) {}
}
