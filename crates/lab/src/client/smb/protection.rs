//! What protects messages in transit: signatures and encryption, once a user has signed in.

use crate::client::ClientError;
use wire::smb::codec::{Reader, patch};
use wire::smb::crypto::Keys;
use wire::smb::frame::{PREFIX, prefix};
use wire::smb::header::{Header, MAGIC_TRANSFORM, TRANSFORM, Transform, flags};
use wire::smb::status::NtStatus;

/// The keys of a session, and what is done with them.
#[derive(Default)]
pub struct Protection {
    /// The keys, once there are any.
    pub keys: Option<Keys>,
    /// Whether messages are signed that are not encrypted.
    pub signs: bool,
    /// Whether messages are encrypted.
    pub seals: bool,
    /// The session.
    pub session_id: u64,
    nonce: u64,
}

impl Protection {
    /// Appends room for what precedes the messages of a frame.
    pub fn begin(&self, out: &mut Vec<u8>) {
        let room = if self.seals { PREFIX + TRANSFORM } else { PREFIX };
        out.resize(out.len() + room, 0);
    }

    /// Flags of a request.
    pub fn flags(&self) -> u32 {
        if self.signs && !self.seals && self.keys.is_some() { flags::SIGNED } else { 0 }
    }

    /// Signs a message that is written.
    ///
    /// # Errors
    /// [`ClientError::Protocol`]: never for a message that has a header.
    pub fn sign(&self, message: &mut [u8]) -> Result<(), ClientError> {
        match &self.keys {
            Some(keys) if self.flags() != 0 => keys.signer.seal(message).map_err(failed),
            _ => Ok(()),
        }
    }

    /// Ends the frame that begins at `at`: encrypts it, and writes its length.
    ///
    /// # Errors
    /// [`ClientError::Protocol`]: it is too long to be sent.
    pub fn end(&mut self, out: &mut [u8], at: usize) -> Result<(), ClientError> {
        let frame = out.get_mut(at + PREFIX..).unwrap_or_default();
        if let (true, Some(keys)) = (self.seals, &self.keys) {
            let (_, sealer) = keys.sealers.as_ref().ok_or_else(no_cipher)?;
            self.nonce += 1;
            sealer.seal(frame, self.session_id, self.nonce).map_err(failed)?;
        }
        let length = frame.len();
        let length = prefix(length).ok_or_else(|| broken("a request that is too long"))?;
        patch(out, at, &length);
        Ok(())
    }

    /// The messages of a frame, decrypted, and whether they were encrypted.
    ///
    /// # Errors
    /// [`ClientError::Protocol`]: it cannot be decrypted, or is not encrypted.
    pub fn open<'f>(&self, frame: &'f mut [u8]) -> Result<(&'f mut [u8], bool), ClientError> {
        if !frame.starts_with(&MAGIC_TRANSFORM) {
            return if self.seals {
                Err(broken("an unencrypted response"))
            } else {
                Ok((frame, false))
            };
        }
        let transform: Transform = Reader::new(frame, "transform header").get().map_err(failed)?;
        let keys = self.keys.as_ref().filter(|_| transform.session_id == self.session_id);
        let sealers = keys.and_then(|keys| keys.sealers.as_ref()).ok_or_else(no_cipher)?;
        sealers.0.open(frame).map_err(failed)?;
        let messages = frame.get_mut(TRANSFORM..).unwrap_or_default();
        Ok((messages, true))
    }

    /// That a message was signed by the server, if it must be.
    ///
    /// # Errors
    /// [`ClientError::Protocol`]: it was not, or it was changed in transit.
    pub fn check(
        &self,
        header: &Header,
        message: &mut [u8],
        was_sealed: bool,
    ) -> Result<(), ClientError> {
        let Some(keys) = self.keys.as_ref().filter(|_| self.signs && !was_sealed) else {
            return Ok(());
        };
        if header.has(flags::SIGNED) {
            return keys.signer.verify(message).map_err(failed);
        }
        // An interim response (STATUS_PENDING) may come without a signature (MS-SMB2 §3.2.5.1.3).
        match header.status == NtStatus::PENDING.0 {
            true => Ok(()),
            false => Err(broken("a response without a signature")),
        }
    }
}

fn broken(what: &str) -> ClientError {
    ClientError::Protocol(what.to_owned())
}

fn no_cipher() -> ClientError {
    broken("it encrypts without a cipher that was agreed on")
}

fn failed(error: impl std::fmt::Display) -> ClientError {
    ClientError::Protocol(error.to_string())
}
