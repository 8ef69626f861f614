//! SCSI Data-Out, SCSI Data-In (RFC 7143 §11.7) and Ready To Transfer (§11.8).

use super::Serial;
use super::bhs::{Bhs, FINAL, Opcode, PduError, TargetSn};
use super::command::Residual;
use super::frame::{Head, PutPdu};

/// Name of the PDU in errors.
const DATA_IN: &str = "SCSI Data-In";
/// Name of the PDU in errors.
const R2T: &str = "R2T";

/// SCSI Data-Out: data of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataOut<'a> {
    /// The last of its sequence: of unsolicited data, or of the answer to one R2T.
    pub is_final: bool,
    /// Logical unit, if it answers an R2T.
    pub lun: u64,
    /// Initiator task tag of the command.
    pub itt: u32,
    /// The R2T that it answers, or [`super::RESERVED_TAG`].
    pub ttt: u32,
    /// The StatSN that the initiator expects next.
    pub exp_stat_sn: Serial,
    /// Number within its sequence.
    pub data_sn: Serial,
    /// Where the data belongs, in bytes from the start of the command's data.
    pub offset: u32,
    /// The data.
    pub data: &'a [u8],
}

impl<'a> DataOut<'a> {
    pub(super) fn decode(head: &Head<'a>, data: &'a [u8]) -> Result<Self, PduError> {
        let b = &head.bhs;
        Ok(Self {
            is_final: b.bit(1, FINAL),
            lun: b.lun(),
            itt: b.itt(),
            ttt: b.u32(20),
            exp_stat_sn: b.serial(28),
            data_sn: b.serial(36),
            offset: b.u32(40),
            data,
        })
    }
}

impl PutPdu for DataOut<'_> {
    fn opcode(&self) -> Opcode {
        Opcode::DATA_OUT
    }

    fn fields(&self, b: &mut Bhs) {
        b.set_bit(1, FINAL, self.is_final);
        b.set_lun(self.lun);
        b.set_itt(self.itt);
        b.set_u32(20, self.ttt);
        b.set_u32(28, self.exp_stat_sn.0);
        b.set_u32(36, self.data_sn.0);
        b.set_u32(40, self.offset);
    }

    fn data_len(&self) -> usize {
        self.data.len()
    }

    fn put_data(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.data);
    }
}

/// SCSI Data-In: data of a read, and its status if that is GOOD and the last PDU brings it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataIn<'a> {
    /// The last of its sequence.
    pub is_final: bool,
    /// The target requests a DataACK, at error recovery levels that are not supported.
    pub acknowledge: bool,
    /// The command's status; then this PDU is the last of the command.
    pub status: Option<DataStatus>,
    /// Logical unit, if `acknowledge` is set.
    pub lun: u64,
    /// Initiator task tag.
    pub itt: u32,
    /// Target transfer tag, if `acknowledge` is set.
    pub ttt: u32,
    /// Sequence numbers. The StatSN is valid only with a status.
    pub sn: TargetSn,
    /// Number within the command.
    pub data_sn: Serial,
    /// Where the data belongs, in bytes from the start of the command's data.
    pub offset: u32,
    /// The data.
    pub data: &'a [u8],
}

/// The status at the end of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataStatus {
    /// SCSI status: one that has no sense data.
    pub status: u8,
    /// Of the read.
    pub residual: Residual,
}

impl<'a> DataIn<'a> {
    pub(super) fn decode(head: &Head<'a>, data: &'a [u8]) -> Result<Self, PduError> {
        let b = &head.bhs;
        let is_final = b.bit(1, FINAL);
        let status = if b.bit(1, 1) {
            if !is_final {
                return Err(PduError::Rule { pdu: DATA_IN, rule: "S comes with F" });
            }
            let residual = Residual::decode(DATA_IN, b.bit(1, 4), b.bit(1, 2), b.u32(44))?;
            Some(DataStatus { status: b.u8(3), residual })
        } else {
            None
        };
        Ok(Self {
            is_final,
            acknowledge: b.bit(1, 0x40),
            status,
            lun: b.lun(),
            itt: b.itt(),
            ttt: b.u32(20),
            sn: b.target_sn(),
            data_sn: b.serial(36),
            offset: b.u32(40),
            data,
        })
    }
}

impl PutPdu for DataIn<'_> {
    fn opcode(&self) -> Opcode {
        Opcode::DATA_IN
    }

    fn fields(&self, b: &mut Bhs) {
        debug_assert!(self.is_final || self.status.is_none(), "a status before the end");
        b.set_bit(1, FINAL, self.is_final);
        b.set_bit(1, 0x40, self.acknowledge);
        if let Some(DataStatus { status, residual }) = self.status {
            let (over, under, count) = residual.parts();
            b.set_bit(1, 4, over);
            b.set_bit(1, 2, under);
            b.set_bit(1, 1, true);
            b.set_u8(3, status);
            b.set_u32(44, count);
        }
        b.set_lun(self.lun);
        b.set_itt(self.itt);
        b.set_u32(20, self.ttt);
        b.set_target_sn(self.sn);
        b.set_u32(36, self.data_sn.0);
        b.set_u32(40, self.offset);
    }

    fn data_len(&self) -> usize {
        self.data.len()
    }

    fn put_data(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.data);
    }
}

/// Ready To Transfer: the target requests data of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct R2t {
    /// Logical unit.
    pub lun: u64,
    /// Initiator task tag of the command.
    pub itt: u32,
    /// What the Data-Outs that answer must carry; not [`super::RESERVED_TAG`].
    pub ttt: u32,
    /// Sequence numbers. The StatSN is not advanced.
    pub sn: TargetSn,
    /// Number within the command.
    pub r2t_sn: Serial,
    /// First byte wanted.
    pub offset: u32,
    /// Bytes wanted: 1 to MaxBurstLength.
    pub length: u32,
}

impl R2t {
    pub(super) fn decode(head: &Head<'_>) -> Result<Self, PduError> {
        let b = &head.bhs;
        let length = b.u32(44);
        if length == 0 {
            let field = "Desired Data Transfer Length";
            return Err(PduError::BadField { pdu: R2T, field, got: length });
        }
        Ok(Self {
            lun: b.lun(),
            itt: b.itt(),
            ttt: b.u32(20),
            sn: b.target_sn(),
            r2t_sn: b.serial(36),
            offset: b.u32(40),
            length,
        })
    }
}

impl PutPdu for R2t {
    fn opcode(&self) -> Opcode {
        Opcode::R2T
    }

    fn fields(&self, b: &mut Bhs) {
        debug_assert!(self.length > 0, "an R2T for nothing");
        b.set_u8(1, FINAL);
        b.set_lun(self.lun);
        b.set_itt(self.itt);
        b.set_u32(20, self.ttt);
        b.set_target_sn(self.sn);
        b.set_u32(36, self.r2t_sn.0);
        b.set_u32(40, self.offset);
        b.set_u32(44, self.length);
    }

    fn data_len(&self) -> usize {
        0
    }

    fn put_data(&self, _: &mut Vec<u8>) {}
}
