//! Reject (RFC 7143 §11.17): a PDU that the target does not handle, and why.

use super::Serial;
use super::bhs::{Bhs, FINAL, Opcode, PduError, RESERVED_TAG, TargetSn};
use super::frame::{Head, PutPdu};
pub use super::reason::RejectReason;

/// Reject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reject<'a> {
    /// Why.
    pub reason: RejectReason,
    /// Sequence numbers. The StatSN is advanced.
    pub sn: TargetSn,
    /// The DataSN or R2TSN that is expected, if the PDU was of data.
    pub data_sn: Serial,
    /// The header of the PDU, and of its vendor what else there is.
    pub header: &'a [u8],
}

impl<'a> Reject<'a> {
    pub(super) fn decode(head: &Head<'a>, data: &'a [u8]) -> Result<Self, PduError> {
        let b = &head.bhs;
        let (reason, data_sn) = (RejectReason(b.u8(2)), b.serial(36));
        Ok(Self { reason, sn: b.target_sn(), data_sn, header: data })
    }
}

impl PutPdu for Reject<'_> {
    fn opcode(&self) -> Opcode {
        Opcode::REJECT
    }

    fn fields(&self, b: &mut Bhs) {
        b.set_u8(1, FINAL);
        b.set_u8(2, self.reason.0);
        b.set_itt(RESERVED_TAG);
        b.set_target_sn(self.sn);
        b.set_u32(36, self.data_sn.0);
    }

    fn data_len(&self) -> usize {
        self.header.len()
    }

    fn put_data(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.header);
    }
}
