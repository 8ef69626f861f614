//! Text Request and Text Response (RFC 7143 §11.10, §11.11): negotiation in the full feature
//! phase, and SendTargets.

use super::bhs::{Bhs, FINAL, InitiatorSn, Opcode, PduError, TargetSn};
use super::frame::{Head, PutPdu};

/// The C bit of byte 1: the text continues in the next PDU.
const CONTINUE: u8 = 0x40;

fn flags(pdu: &'static str, b: &Bhs) -> Result<(bool, bool), PduError> {
    let flags = (b.bit(1, FINAL), b.bit(1, CONTINUE));
    if flags == (true, true) {
        return Err(PduError::Rule { pdu, rule: "C and F exclude each other" });
    }
    Ok(flags)
}

/// Text Request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextRequest<'a> {
    /// Whether it is handled out of the order of CmdSN.
    pub immediate: bool,
    /// The initiator has no more text to send.
    pub is_final: bool,
    /// The text continues in the next PDU; excludes `is_final`.
    pub to_be_continued: bool,
    /// What the target has put into the response that this one follows.
    pub lun: u64,
    /// Initiator task tag: the same for the whole exchange.
    pub itt: u32,
    /// What the target has put into the response that this one follows, or
    /// [`super::RESERVED_TAG`] to begin.
    pub ttt: u32,
    /// Sequence numbers.
    pub sn: InitiatorSn,
    /// Keys and values.
    pub data: &'a [u8],
}

impl<'a> TextRequest<'a> {
    pub(super) fn decode(head: &Head<'a>, data: &'a [u8]) -> Result<Self, PduError> {
        let b = &head.bhs;
        let (is_final, to_be_continued) = flags("Text Request", b)?;
        Ok(Self {
            immediate: b.is_immediate(),
            is_final,
            to_be_continued,
            lun: b.lun(),
            itt: b.itt(),
            ttt: b.u32(20),
            sn: b.initiator_sn(),
            data,
        })
    }
}

impl PutPdu for TextRequest<'_> {
    fn opcode(&self) -> Opcode {
        Opcode::TEXT_REQUEST
    }

    fn fields(&self, b: &mut Bhs) {
        b.set_immediate(self.immediate);
        b.set_bit(1, FINAL, self.is_final);
        b.set_bit(1, CONTINUE, self.to_be_continued);
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

/// Text Response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextResponse<'a> {
    /// The exchange has ended.
    pub is_final: bool,
    /// The text continues in the next PDU; excludes `is_final`.
    pub to_be_continued: bool,
    /// What the next request must carry.
    pub lun: u64,
    /// Initiator task tag.
    pub itt: u32,
    /// What the next request must carry, or [`super::RESERVED_TAG`] in the last.
    pub ttt: u32,
    /// Sequence numbers.
    pub sn: TargetSn,
    /// Keys and values.
    pub data: &'a [u8],
}

impl<'a> TextResponse<'a> {
    pub(super) fn decode(head: &Head<'a>, data: &'a [u8]) -> Result<Self, PduError> {
        let b = &head.bhs;
        let (is_final, to_be_continued) = flags("Text Response", b)?;
        let (lun, itt, ttt, sn) = (b.lun(), b.itt(), b.u32(20), b.target_sn());
        Ok(Self { is_final, to_be_continued, lun, itt, ttt, sn, data })
    }
}

impl PutPdu for TextResponse<'_> {
    fn opcode(&self) -> Opcode {
        Opcode::TEXT_RESPONSE
    }

    fn fields(&self, b: &mut Bhs) {
        b.set_bit(1, FINAL, self.is_final);
        b.set_bit(1, CONTINUE, self.to_be_continued);
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
