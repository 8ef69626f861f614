//! Why a target rejects a PDU (RFC 7143 §11.17.1).

/// Why (§11.17.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RejectReason(pub u8);

impl RejectReason {
    /// The data digest does not fit.
    pub const DATA_DIGEST_ERROR: Self = Self(0x02);
    /// A SNACK that cannot be answered.
    pub const SNACK_REJECT: Self = Self(0x03);
    /// Something that may not come now.
    pub const PROTOCOL_ERROR: Self = Self(0x04);
    /// A request that the target does not have.
    pub const COMMAND_NOT_SUPPORTED: Self = Self(0x05);
    /// Too many immediate requests.
    pub const TOO_MANY_IMMEDIATE: Self = Self(0x06);
    /// A task with this tag is in progress.
    pub const TASK_IN_PROGRESS: Self = Self(0x07);
    /// An acknowledgement of data that is wrong.
    pub const INVALID_DATA_ACK: Self = Self(0x08);
    /// A field of the PDU is invalid.
    pub const INVALID_PDU_FIELD: Self = Self(0x09);
    /// No target transfer tag is free for a longer exchange of text.
    pub const LONG_OPERATION: Self = Self(0x0a);
    /// The target waits for a logout.
    pub const WAITING_FOR_LOGOUT: Self = Self(0x0c);
}
