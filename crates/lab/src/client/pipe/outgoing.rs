//! Bytes that are gathered, and sent as the socket takes them.

use super::link::Link;
use crate::client::ClientError;

/// Bytes that wait to be sent.
#[derive(Default)]
pub struct Outgoing {
    bytes: Vec<u8>,
    sent: usize,
}

impl Outgoing {
    /// What is to be sent, to append to.
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// How many bytes wait.
    pub fn waiting(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Sends what the socket takes now; false when it is full.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn send_some(&mut self, link: &Link) -> Result<bool, ClientError> {
        while self.waiting() > 0 {
            let sent = link.send_some(self.bytes.get(self.sent..).unwrap_or_default())?;
            if sent == 0 {
                return Ok(false);
            }
            self.sent += sent;
        }
        self.bytes.clear();
        self.sent = 0;
        Ok(true)
    }
}
