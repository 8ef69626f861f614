//! NOP-Out and NOP-In (RFC 7143 §11.18, §11.19): whether the other side is there.

use super::bhs::{Bhs, FINAL, InitiatorSn, Opcode, PduError, RESERVED_TAG, TargetSn};
use super::frame::{Head, PutPdu};

/// NOP-Out: a ping of the initiator, or its answer to one of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NopOut<'a> {
    /// Whether it is handled out of the order of CmdSN.
    pub immediate: bool,
    /// Logical unit, if it answers.
    pub lun: u64,
    /// What the NOP-In that answers must carry, or [`RESERVED_TAG`] if none may.
    pub itt: u32,
    /// The NOP-In that it answers, or [`RESERVED_TAG`].
    pub ttt: u32,
    /// Sequence numbers.
    pub sn: InitiatorSn,
    /// What the answer brings back, as far as the initiator takes it.
    pub data: &'a [u8],
}

impl<'a> NopOut<'a> {
    pub(super) fn decode(head: &Head<'a>, data: &'a [u8]) -> Result<Self, PduError> {
        let b = &head.bhs;
        let (immediate, itt) = (b.is_immediate(), b.itt());
        if itt == RESERVED_TAG && !immediate {
            return Err(PduError::Rule { pdu: "NOP-Out", rule: "without a tag it is immediate" });
        }
        let (lun, ttt, sn) = (b.lun(), b.u32(20), b.initiator_sn());
        Ok(Self { immediate, lun, itt, ttt, sn, data })
    }
}

impl PutPdu for NopOut<'_> {
    fn opcode(&self) -> Opcode {
        Opcode::NOP_OUT
    }

    fn fields(&self, b: &mut Bhs) {
        b.set_immediate(self.immediate);
        b.set_u8(1, FINAL);
        b.set_lun(self.lun);
        b.set_itt(self.itt);
        b.set_u32(20, self.ttt);
        b.set_initiator_sn(self.sn);
    }

    fn data_len(&self) -> usize {
        self.data.len()
    }

    fn put_data(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.data);
    }
}

/// NOP-In: the target's answer to a ping, or a ping of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NopIn<'a> {
    /// Logical unit, if it is a ping.
    pub lun: u64,
    /// The NOP-Out that it answers, or [`RESERVED_TAG`].
    pub itt: u32,
    /// What the NOP-Out that answers must carry, or [`RESERVED_TAG`] if none may.
    pub ttt: u32,
    /// Sequence numbers. The StatSN is advanced only by an answer.
    pub sn: TargetSn,
    /// What the NOP-Out brought.
    pub data: &'a [u8],
}

impl<'a> NopIn<'a> {
    pub(super) fn decode(head: &Head<'a>, data: &'a [u8]) -> Result<Self, PduError> {
        let b = &head.bhs;
        Ok(Self { lun: b.lun(), itt: b.itt(), ttt: b.u32(20), sn: b.target_sn(), data })
    }
}

impl PutPdu for NopIn<'_> {
    fn opcode(&self) -> Opcode {
        Opcode::NOP_IN
    }

    fn fields(&self, b: &mut Bhs) {
        b.set_u8(1, FINAL);
        b.set_lun(self.lun);
        b.set_itt(self.itt);
        b.set_u32(20, self.ttt);
        b.set_target_sn(self.sn);
    }

    fn data_len(&self) -> usize {
        self.data.len()
    }

    fn put_data(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.data);
    }
}
