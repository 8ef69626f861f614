//! A frame as it was received, of one request or of several. The headers of its requests are
//! decoded here, once.

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use base::limits::{LARGE_RECORD, SMB_COMPOUND_MAX, SMB_COMPOUND_REPLY_MAX, SMB_COPY_CHUNK_MAX};
use wire::smb::charge::Payload;
use wire::smb::codec::SmbError;
use wire::smb::header::{Command, Header, Messages};

use super::few::Few;
use super::state::session::Session;
use files::Core;

/// Where a message is in a frame, and its header.
#[derive(Clone, Copy)]
pub(super) struct Located {
    /// Its header.
    pub header: Header,
    /// Whether it is marked as signed and its signature is valid.
    pub is_signed: bool,
    from: usize,
    bytes: usize,
}

/// The messages of a frame.
#[derive(Default)]
pub(super) struct Requests {
    all: Few<Located>,
    /// What is behind them is no message.
    error: Option<SmbError>,
}

impl Requests {
    /// Finds the messages of a frame, one more at most than it may have.
    pub fn find(frame: &[u8]) -> Self {
        let (mut found, mut from) = (Self::default(), 0);
        for message in Messages::new(frame).take(SMB_COMPOUND_MAX + 1) {
            match message {
                Ok((header, message)) => {
                    let bytes = message.len();
                    found.all.push(Located { header, is_signed: false, from, bytes });
                    from += bytes;
                }
                Err(error) => found.error = Some(error),
            }
        }
        found
    }

    /// Them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Located> {
        self.all.iter()
    }

    /// Number `n` of them.
    pub fn get(&self, n: usize) -> Option<&Located> {
        self.all.get(n)
    }

    /// Notes of each message whether it is marked as signed and its signature is valid; `is_signed`
    /// may change the bytes of a message for a moment.
    pub fn verify(&mut self, frame: &mut [u8], is_signed: impl Fn(&Header, &mut [u8]) -> bool) {
        for one in self.all.iter_mut() {
            let message = frame.get_mut(one.from..one.from + one.bytes).unwrap_or_default();
            one.is_signed = is_signed(&one.header, message);
        }
    }

    /// That all of the frame is messages.
    ///
    /// # Errors
    /// What is behind them is none.
    pub fn are_whole(&self) -> Result<(), SmbError> {
        self.error.map_or(Ok(()), Err)
    }

    /// Whether there is one alone.
    pub fn is_single(&self) -> bool {
        self.all.len() == 1
    }
}

/// Buffers of small frames, as of a READ, are used again: the most that is kept of one.
const SPARE_MAX: usize = 1 << 10;

thread_local! {
    /// One of this core. Without another reference, and empty.
    static SPARE: Cell<Option<FrameBytes>> = const { Cell::new(None) };
}

/// The bytes of a frame: what is written of them to a file is not copied for that.
pub(super) type FrameBytes = Arc<Vec<u8>>;

/// A buffer with the bytes of a frame.
pub(super) fn copied(core: &Core, frame: &[u8]) -> FrameBytes {
    let mut bytes = if frame.len() <= SPARE_MAX {
        SPARE.take().unwrap_or_default()
    } else if frame.len() < LARGE_RECORD {
        Arc::default()
    } else {
        Arc::new(core.engine.large.take(frame.len()))
    };
    if let Some(bytes) = Arc::get_mut(&mut bytes) {
        bytes.reserve_exact(frame.len());
        bytes.extend_from_slice(frame);
    }
    bytes
}

/// A frame that came.
pub(super) struct Frame {
    /// Its bytes, decrypted.
    pub bytes: FrameBytes,
    /// Where its messages begin.
    pub from: usize,
    /// Them.
    pub requests: Requests,
    /// The session with the keys that have decrypted it.
    pub encrypted: Option<Rc<Session>>,
    /// When it came.
    pub arrived_ns: u64,
}

impl Frame {
    /// Its messages.
    pub fn messages(&self) -> &[u8] {
        self.bytes.get(self.from..).unwrap_or_default()
    }

    /// One of them.
    pub fn message(&self, one: &Located) -> &[u8] {
        self.bytes.get(self.place(one)).unwrap_or_default()
    }

    /// Where in its bytes it is.
    pub const fn place(&self, one: &Located) -> Range<usize> {
        self.from + one.from..self.from + one.from + one.bytes
    }

    /// Returns its buffer, if there is no other reference.
    pub fn put_back(self, core: &Core) {
        let mut shared = self.bytes;
        let Some(bytes) = Arc::get_mut(&mut shared) else { return };
        if bytes.capacity() > SPARE_MAX {
            return core.engine.large.give(std::mem::take(bytes));
        }
        bytes.clear();
        SPARE.set(Some(shared));
    }

    /// Bytes that it takes until it is answered: its own, those of the answers, beyond which its
    /// requests are refused (`compound`), and a chunk that is copied, one at a time.
    pub fn held(&self) -> usize {
        let (mut wanted, mut copied) = (0_u64, 0);
        for one in self.requests.iter() {
            let payload = Payload::of(one.header.command, self.message(one));
            wanted = wanted.saturating_add(payload.wanted);
            if one.header.command == Command::IOCTL {
                copied = u64::from(SMB_COPY_CHUNK_MAX);
            }
        }
        let more = wanted.min(SMB_COMPOUND_REPLY_MAX) + copied;
        self.bytes.len() + usize::try_from(more).unwrap_or(usize::MAX)
    }
}
