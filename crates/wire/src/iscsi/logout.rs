//! Logout Request and Logout Response (RFC 7143 §11.14, §11.15).

use super::bhs::{Bhs, FINAL, InitiatorSn, Opcode, PduError, TargetSn};
use super::frame::{Head, PutPdu};

/// Why an initiator logs out (§11.14.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LogoutReason {
    /// Close the session with all its connections.
    CloseSession = 0,
    /// Close one connection; its tasks are ended.
    CloseConnection = 1,
    /// Remove a connection for recovery; its tasks may be reassigned.
    RemoveForRecovery = 2,
}

/// Logout Request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogoutRequest {
    /// Whether it is handled out of the order of CmdSN.
    pub immediate: bool,
    /// Why.
    pub reason: LogoutReason,
    /// Initiator task tag.
    pub itt: u32,
    /// The connection, unless the session is closed.
    pub cid: u16,
    /// Sequence numbers.
    pub sn: InitiatorSn,
}

impl LogoutRequest {
    pub(super) fn decode(head: &Head<'_>) -> Result<Self, PduError> {
        let b = &head.bhs;
        let reason = match b.u8(1) & !FINAL {
            0 => LogoutReason::CloseSession,
            1 => LogoutReason::CloseConnection,
            2 => LogoutReason::RemoveForRecovery,
            got => {
                let (field, got) = ("Reason Code", u32::from(got));
                return Err(PduError::BadField { pdu: "Logout Request", field, got });
            }
        };
        let (immediate, sn) = (b.is_immediate(), b.initiator_sn());
        Ok(Self { immediate, reason, itt: b.itt(), cid: b.u16(20), sn })
    }
}

impl PutPdu for LogoutRequest {
    fn opcode(&self) -> Opcode {
        Opcode::LOGOUT_REQUEST
    }

    fn fields(&self, b: &mut Bhs) {
        b.set_immediate(self.immediate);
        b.set_u8(1, FINAL | self.reason as u8);
        b.set_itt(self.itt);
        b.set_u16(20, self.cid);
        b.set_initiator_sn(self.sn);
    }

    fn data_len(&self) -> usize {
        0
    }

    fn put_data(&self, _: &mut Vec<u8>) {}
}

/// How a logout went (§11.15.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LogoutOutcome(pub u8);

impl LogoutOutcome {
    /// Closed.
    pub const CLOSED: Self = Self(0);
    /// CID not found.
    pub const NO_CID: Self = Self(1);
    /// Connection recovery is not supported.
    pub const NO_RECOVERY: Self = Self(2);
    /// Cleanup failed for various reasons.
    pub const CLEANUP_FAILED: Self = Self(3);
}

/// Logout Response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogoutResponse {
    /// How it went.
    pub outcome: LogoutOutcome,
    /// Initiator task tag.
    pub itt: u32,
    /// Sequence numbers.
    pub sn: TargetSn,
    /// Seconds to wait before an attempt to reconnect.
    pub time2wait: u16,
    /// Seconds after that for which tasks are kept.
    pub time2retain: u16,
}

impl LogoutResponse {
    pub(super) fn decode(head: &Head<'_>) -> Result<Self, PduError> {
        let b = &head.bhs;
        Ok(Self {
            outcome: LogoutOutcome(b.u8(2)),
            itt: b.itt(),
            sn: b.target_sn(),
            time2wait: b.u16(40),
            time2retain: b.u16(42),
        })
    }
}

impl PutPdu for LogoutResponse {
    fn opcode(&self) -> Opcode {
        Opcode::LOGOUT_RESPONSE
    }

    fn fields(&self, b: &mut Bhs) {
        b.set_u8(1, FINAL);
        b.set_u8(2, self.outcome.0);
        b.set_itt(self.itt);
        b.set_target_sn(self.sn);
        b.set_u16(40, self.time2wait);
        b.set_u16(42, self.time2retain);
    }

    fn data_len(&self) -> usize {
        0
    }

    fn put_data(&self, _: &mut Vec<u8>) {}
}
