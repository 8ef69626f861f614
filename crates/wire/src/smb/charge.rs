//! Bytes that a request is about, by which its credits are counted (MS-SMB2 §3.1.5.2) and memory is
//! put by for its response.

use super::codec::{Field, Reader};
use super::header::{Command, HEADER};

/// Bytes that one credit is good for.
const CREDIT: u64 = 64 << 10;

/// The payload of a request and its response, without headers, as its fields state: they may be
/// wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Payload {
    /// Bytes that come with it.
    pub sent: u64,
    /// Most bytes of the response.
    pub wanted: u64,
}

impl Payload {
    /// Of a request, from its header on. One that is too short has none: it is refused later.
    pub fn of(command: Command, message: &[u8]) -> Self {
        let long = |at| number::<u32>(message, at).unwrap_or(0).into();
        let short = |at| number::<u16>(message, at).unwrap_or(0).into();
        let (sent, wanted) = match command {
            Command::READ => (0, long(4)),
            Command::WRITE | Command::SET_INFO => (long(4), 0),
            Command::IOCTL => (long(28), long(44)),
            Command::QUERY_DIRECTORY => (short(26), long(28)),
            Command::QUERY_INFO => (long(12), long(4)),
            Command::CHANGE_NOTIFY => (0, long(4)),
            _ => (0, 0),
        };
        Self { sent, wanted }
    }

    /// The credits that it takes at least.
    pub fn charge(self) -> u64 {
        self.sent.max(self.wanted).saturating_sub(1) / CREDIT + 1
    }
}

/// The number at this place of a body.
fn number<T: Field>(message: &[u8], at: usize) -> Option<T> {
    Reader::at(message, HEADER + at, "payload").and_then(|mut r| r.get()).ok()
}

#[cfg(test)]
mod tests;
