//! A frame as it was received, of one request or of several.

use std::rc::Rc;
use std::sync::Arc;

use base::limits::{SMB_COMPOUND_REPLY_MAX, SMB_COPY_CHUNK_MAX};
use wire::smb::charge::Payload;
use wire::smb::header::{Command, Messages};

use super::state::session::Session;
use files::Core;

/// A frame that came.
pub(super) struct Frame {
    /// Its bytes, decrypted: what is written of them to a file is not copied for that.
    pub bytes: Arc<Vec<u8>>,
    /// Where its messages begin.
    pub from: usize,
    /// The session with the keys that have decrypted it.
    pub encrypted: Option<Rc<Session>>,
    /// Which of its messages are signed as they say, a bit for each.
    pub signed: u64,
    /// When it came.
    pub arrived_ns: u64,
}

impl Frame {
    /// Its messages.
    pub fn messages(&self) -> &[u8] {
        self.bytes.get(self.from..).unwrap_or_default()
    }

    /// Returns its buffer, if there is no other reference.
    pub fn put_back(self, core: &Core) {
        if let Some(bytes) = Arc::into_inner(self.bytes) {
            core.engine.large.give(bytes);
        }
    }

    /// Bytes that it takes until it is answered: its own, those of the answers, beyond which its
    /// requests are refused (`compound`), and a chunk that is copied, one at a time.
    pub fn held(&self) -> usize {
        let (mut wanted, mut copied) = (0_u64, 0);
        for (header, message) in Messages::new(self.messages()).map_while(Result::ok) {
            wanted = wanted.saturating_add(Payload::of(header.command, message).wanted);
            if header.command == Command::IOCTL {
                copied = u64::from(SMB_COPY_CHUNK_MAX);
            }
        }
        let more = wanted.min(SMB_COMPOUND_REPLY_MAX) + copied;
        self.bytes.len() + usize::try_from(more).unwrap_or(usize::MAX)
    }
}
