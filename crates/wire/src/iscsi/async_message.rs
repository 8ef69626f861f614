//! Asynchronous Message (RFC 7143 §11.9): an unsolicited message of a target.

use super::bhs::{Bhs, FINAL, Opcode, PduError, RESERVED_TAG, TargetSn};
use super::command::{put_sense, sense, sense_len};
use super::frame::{Head, PutPdu};

/// What has happened (§11.9.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AsyncEvent(pub u8);

impl AsyncEvent {
    /// A SCSI asynchronous event; the sense data has its kind.
    pub const SCSI: Self = Self(0);
    /// The target requests a logout, within parameter 3 seconds.
    pub const LOGOUT: Self = Self(1);
    /// The target will drop, or has dropped, the connection that parameter 1 names.
    pub const DROP_CONNECTION: Self = Self(2);
    /// The target will drop all connections of the session.
    pub const DROP_SESSION: Self = Self(3);
    /// The target requests a negotiation of parameters, within parameter 3 seconds.
    pub const NEGOTIATION: Self = Self(4);
    /// All tasks of the logical unit are being ended (RFC 7144 §6.1).
    pub const TASKS_TERMINATED: Self = Self(5);
    /// Something of one vendor.
    pub const VENDOR: Self = Self(255);
}

/// Asynchronous Message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsyncMessage<'a> {
    /// Logical unit, of a SCSI event.
    pub lun: u64,
    /// Sequence numbers. The StatSN is advanced.
    pub sn: TargetSn,
    /// What has happened.
    pub event: AsyncEvent,
    /// More, of an event of a vendor.
    pub vendor_code: u8,
    /// Parameters, by event: connection; seconds to wait; seconds at most.
    pub parameters: [u16; 3],
    /// Sense data, of a SCSI event.
    pub sense: &'a [u8],
    /// Data of iSCSI or a vendor.
    pub event_data: &'a [u8],
}

impl<'a> AsyncMessage<'a> {
    pub(super) fn decode(head: &Head<'a>, data: &'a [u8]) -> Result<Self, PduError> {
        let b = &head.bhs;
        let (sense, event_data) = sense("Asynchronous Message", data)?;
        Ok(Self {
            lun: b.lun(),
            sn: b.target_sn(),
            event: AsyncEvent(b.u8(36)),
            vendor_code: b.u8(37),
            parameters: [b.u16(38), b.u16(40), b.u16(42)],
            sense,
            event_data,
        })
    }
}

impl PutPdu for AsyncMessage<'_> {
    fn opcode(&self) -> Opcode {
        Opcode::ASYNC_MESSAGE
    }

    fn fields(&self, b: &mut Bhs) {
        b.set_u8(1, FINAL);
        b.set_lun(self.lun);
        b.set_itt(RESERVED_TAG);
        b.set_target_sn(self.sn);
        b.set_u8(36, self.event.0);
        b.set_u8(37, self.vendor_code);
        for (i, parameter) in self.parameters.into_iter().enumerate() {
            b.set_u16(38 + 2 * i, parameter);
        }
    }

    fn data_len(&self) -> usize {
        sense_len(self.sense, self.event_data)
    }

    fn put_data(&self, out: &mut Vec<u8>) {
        put_sense(self.sense, self.event_data, out);
    }
}
