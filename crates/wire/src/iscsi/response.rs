//! All PDUs that a target sends (RFC 7143 §11).

use super::async_message::AsyncMessage;
use super::bhs::{Opcode, PduError};
use super::command::ScsiResponse;
use super::data::{DataIn, R2t};
use super::digest::Digests;
use super::frame::{Head, PutPdu};
use super::login::LoginResponse;
use super::logout::LogoutResponse;
use super::nop::NopIn;
use super::reject::Reject;
use super::text::TextResponse;
use super::tmf::TmfResponse;

/// A PDU of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Response<'a> {
    /// NOP-In.
    NopIn(NopIn<'a>),
    /// SCSI Response.
    ScsiResponse(ScsiResponse<'a>),
    /// Task Management Function Response.
    Tmf(TmfResponse),
    /// Login Response.
    Login(LoginResponse<'a>),
    /// Text Response.
    Text(TextResponse<'a>),
    /// SCSI Data-In.
    DataIn(DataIn<'a>),
    /// Logout Response.
    Logout(LogoutResponse),
    /// Ready To Transfer.
    R2t(R2t),
    /// Asynchronous Message.
    Async(AsyncMessage<'a>),
    /// Reject.
    Reject(Reject<'a>),
}

impl<'a> Response<'a> {
    /// Reads the fields of a PDU. `data` is its data segment, or empty if the caller puts that
    /// elsewhere.
    ///
    /// # Errors
    /// [`PduError`], which names the invalid field.
    pub fn decode(head: &Head<'a>, data: &'a [u8]) -> Result<Self, PduError> {
        Ok(match head.bhs.opcode() {
            Opcode::NOP_IN => Self::NopIn(NopIn::decode(head, data)?),
            Opcode::SCSI_RESPONSE => Self::ScsiResponse(ScsiResponse::decode(head, data)?),
            Opcode::TMF_RESPONSE => Self::Tmf(TmfResponse::decode(head)?),
            Opcode::LOGIN_RESPONSE => Self::Login(LoginResponse::decode(head, data)?),
            Opcode::TEXT_RESPONSE => Self::Text(TextResponse::decode(head, data)?),
            Opcode::DATA_IN => Self::DataIn(DataIn::decode(head, data)?),
            Opcode::LOGOUT_RESPONSE => Self::Logout(LogoutResponse::decode(head)?),
            Opcode::R2T => Self::R2t(R2t::decode(head)?),
            Opcode::ASYNC_MESSAGE => Self::Async(AsyncMessage::decode(head, data)?),
            Opcode::REJECT => Self::Reject(Reject::decode(head, data)?),
            Opcode(other) => return Err(PduError::UnknownOpcode(other)),
        })
    }

    /// The PDU, whichever it is.
    pub fn pdu(&self) -> &dyn PutPdu {
        match self {
            Self::NopIn(pdu) => pdu,
            Self::ScsiResponse(pdu) => pdu,
            Self::Tmf(pdu) => pdu,
            Self::Login(pdu) => pdu,
            Self::Text(pdu) => pdu,
            Self::DataIn(pdu) => pdu,
            Self::Logout(pdu) => pdu,
            Self::R2t(pdu) => pdu,
            Self::Async(pdu) => pdu,
            Self::Reject(pdu) => pdu,
        }
    }

    /// Appends the whole PDU.
    pub fn put(&self, out: &mut Vec<u8>, digests: Digests) {
        self.pdu().put(out, digests);
    }
}
