//! Task management (RFC 7143 §11.5, §11.6).

use super::Serial;
use super::bhs::{Bhs, FINAL, InitiatorSn, Opcode, PduError, TargetSn};
use super::frame::{Head, PutPdu};

/// What is to be done with tasks (§11.5.1; RFC 7144 §6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Function(pub u8);

impl Function {
    /// Abort the task that the referenced task tag names.
    pub const ABORT_TASK: Self = Self(1);
    /// Abort all tasks of this session on the logical unit.
    pub const ABORT_TASK_SET: Self = Self(2);
    /// Clear the auto contingent allegiance.
    pub const CLEAR_ACA: Self = Self(3);
    /// Abort all tasks of all sessions on the logical unit.
    pub const CLEAR_TASK_SET: Self = Self(4);
    /// Reset the logical unit.
    pub const LOGICAL_UNIT_RESET: Self = Self(5);
    /// Reset all logical units.
    pub const TARGET_WARM_RESET: Self = Self(6);
    /// The same, and end all sessions.
    pub const TARGET_COLD_RESET: Self = Self(7);
    /// Take over a task of a connection that failed.
    pub const TASK_REASSIGN: Self = Self(8);
    /// Whether a task is there.
    pub const QUERY_TASK: Self = Self(9);
    /// Whether any task of this session is there.
    pub const QUERY_TASK_SET: Self = Self(10);
    /// Abort all of this nexus.
    pub const I_T_NEXUS_RESET: Self = Self(11);
    /// Whether a unit attention is pending.
    pub const QUERY_ASYNC_EVENT: Self = Self(12);
}

/// Task Management Function Request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TmfRequest {
    /// Whether it is handled out of the order of CmdSN.
    pub immediate: bool,
    /// What to do; 7 bits.
    pub function: Function,
    /// Logical unit, if the function is about one.
    pub lun: u64,
    /// Initiator task tag.
    pub itt: u32,
    /// Initiator task tag of the task that it is about, or [`super::RESERVED_TAG`].
    pub referenced_tag: u32,
    /// Sequence numbers.
    pub sn: InitiatorSn,
    /// CmdSN of the task that it is about.
    pub ref_cmd_sn: Serial,
    /// For TASK REASSIGN: the DataSN that the initiator expects.
    pub exp_data_sn: Serial,
}

impl TmfRequest {
    pub(super) fn decode(head: &Head<'_>) -> Result<Self, PduError> {
        let b = &head.bhs;
        Ok(Self {
            immediate: b.is_immediate(),
            function: Function(b.u8(1) & !FINAL),
            lun: b.lun(),
            itt: b.itt(),
            referenced_tag: b.u32(20),
            sn: b.initiator_sn(),
            ref_cmd_sn: b.serial(32),
            exp_data_sn: b.serial(36),
        })
    }
}

impl PutPdu for TmfRequest {
    fn opcode(&self) -> Opcode {
        Opcode::TMF_REQUEST
    }

    fn fields(&self, b: &mut Bhs) {
        b.set_immediate(self.immediate);
        b.set_u8(1, FINAL | self.function.0);
        b.set_lun(self.lun);
        b.set_itt(self.itt);
        b.set_u32(20, self.referenced_tag);
        b.set_initiator_sn(self.sn);
        b.set_u32(32, self.ref_cmd_sn.0);
        b.set_u32(36, self.exp_data_sn.0);
    }

    fn data_len(&self) -> usize {
        0
    }

    fn put_data(&self, _: &mut Vec<u8>) {}
}

/// How a function ended (§11.6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TmfOutcome(pub u8);

impl TmfOutcome {
    /// Function complete.
    pub const COMPLETE: Self = Self(0);
    /// Task does not exist.
    pub const NO_TASK: Self = Self(1);
    /// LUN does not exist.
    pub const NO_LUN: Self = Self(2);
    /// Task still allegiant.
    pub const STILL_ALLEGIANT: Self = Self(3);
    /// Task allegiance reassignment not supported.
    pub const REASSIGN_NOT_SUPPORTED: Self = Self(4);
    /// Task management function not supported.
    pub const NOT_SUPPORTED: Self = Self(5);
    /// Function authorization failed.
    pub const NOT_AUTHORIZED: Self = Self(6);
    /// Function succeeded, of a query (RFC 7144 §6.2).
    pub const SUCCEEDED: Self = Self(7);
    /// Function rejected.
    pub const REJECTED: Self = Self(255);
}

/// Task Management Function Response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TmfResponse {
    /// How it ended.
    pub outcome: TmfOutcome,
    /// Initiator task tag.
    pub itt: u32,
    /// Sequence numbers.
    pub sn: TargetSn,
}

impl TmfResponse {
    pub(super) fn decode(head: &Head<'_>) -> Result<Self, PduError> {
        let b = &head.bhs;
        Ok(Self { outcome: TmfOutcome(b.u8(2)), itt: b.itt(), sn: b.target_sn() })
    }
}

impl PutPdu for TmfResponse {
    fn opcode(&self) -> Opcode {
        Opcode::TMF_RESPONSE
    }

    fn fields(&self, b: &mut Bhs) {
        b.set_u8(1, FINAL);
        b.set_u8(2, self.outcome.0);
        b.set_itt(self.itt);
        b.set_target_sn(self.sn);
    }

    fn data_len(&self) -> usize {
        0
    }

    fn put_data(&self, _: &mut Vec<u8>) {}
}
