//! All PDUs that an initiator sends (RFC 7143 §11).

use super::bhs::{Opcode, PduError};
use super::command::ScsiCommand;
use super::data::DataOut;
use super::digest::Digests;
use super::frame::{Head, PutPdu};
use super::login::LoginRequest;
use super::logout::LogoutRequest;
use super::nop::NopOut;
use super::snack::Snack;
use super::text::TextRequest;
use super::tmf::TmfRequest;

/// A PDU of an initiator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request<'a> {
    /// NOP-Out.
    NopOut(NopOut<'a>),
    /// SCSI Command.
    ScsiCommand(ScsiCommand<'a>),
    /// Task Management Function Request.
    Tmf(TmfRequest),
    /// Login Request.
    Login(LoginRequest<'a>),
    /// Text Request.
    Text(TextRequest<'a>),
    /// SCSI Data-Out.
    DataOut(DataOut<'a>),
    /// Logout Request.
    Logout(LogoutRequest),
    /// SNACK Request.
    Snack(Snack),
}

impl<'a> Request<'a> {
    /// Reads the fields of a PDU. `data` is its data segment, or empty if the caller puts that
    /// elsewhere.
    ///
    /// # Errors
    /// [`PduError`], which names the invalid field.
    pub fn decode(head: &Head<'a>, data: &'a [u8]) -> Result<Self, PduError> {
        Ok(match head.bhs.opcode() {
            Opcode::NOP_OUT => Self::NopOut(NopOut::decode(head, data)?),
            Opcode::SCSI_COMMAND => Self::ScsiCommand(ScsiCommand::decode(head, data)?),
            Opcode::TMF_REQUEST => Self::Tmf(TmfRequest::decode(head)?),
            Opcode::LOGIN_REQUEST => Self::Login(LoginRequest::decode(head, data)?),
            Opcode::TEXT_REQUEST => Self::Text(TextRequest::decode(head, data)?),
            Opcode::DATA_OUT => Self::DataOut(DataOut::decode(head, data)?),
            Opcode::LOGOUT_REQUEST => Self::Logout(LogoutRequest::decode(head)?),
            Opcode::SNACK => Self::Snack(Snack::decode(head)?),
            Opcode(other) => return Err(PduError::UnknownOpcode(other)),
        })
    }

    /// The PDU, whichever it is.
    pub fn pdu(&self) -> &dyn PutPdu {
        match self {
            Self::NopOut(pdu) => pdu,
            Self::ScsiCommand(pdu) => pdu,
            Self::Tmf(pdu) => pdu,
            Self::Login(pdu) => pdu,
            Self::Text(pdu) => pdu,
            Self::DataOut(pdu) => pdu,
            Self::Logout(pdu) => pdu,
            Self::Snack(pdu) => pdu,
        }
    }

    /// Appends the whole PDU.
    pub fn put(&self, out: &mut Vec<u8>, digests: Digests) {
        self.pdu().put(out, digests);
    }
}
