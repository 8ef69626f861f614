//! What a command has come to: the body of its response, and what is measured of it.

use vfs::locks::Owner;
use wire::smb::create::FileId;
use wire::smb::frame::PREFIX;
use wire::smb::header::{HEADER, TRANSFORM, put_error};
use wire::smb::session::Empty;
use wire::smb::status::NtStatus;

use engine::exec::Span;
use engine::transport::buffers::ReplyBuf;
use files::Core;

/// Where the first message of an answer begins: before it there is room for the length of the
/// frame, and for the header of an encrypted message.
pub(super) const START: usize = PREFIX + TRANSFORM;

/// A buffer for an answer, with room for all headers.
pub(super) fn buffer(core: &Core) -> ReplyBuf {
    let mut reply = core.buffers.take_reply();
    reply.vec().resize(START + HEADER, 0);
    reply
}

/// The reply to a request that was carried out.
pub(super) struct Reply {
    /// How it ended.
    pub status: NtStatus,
    /// Its body, behind room for all headers.
    pub out: ReplyBuf,
    /// The open that it has made, or was about.
    pub file: Option<FileId>,
    /// The tree that it has made.
    pub tree: Option<u32>,
    /// The lease that it was granted.
    pub granted: Option<Owner>,
    /// What it has moved of a file.
    pub moved: Option<Moved>,
}

/// A part of a file, and what was moved of it.
pub(super) struct Moved {
    /// Where the part begins.
    pub offset: u64,
    /// Bytes of it.
    pub size: u64,
    /// Bytes that were moved.
    pub bytes: usize,
    /// The client has sent them.
    pub inward: bool,
}

impl Moved {
    /// Adds it to the span.
    pub fn record(&self, span: &mut Span) {
        span.range(self.offset, self.size, self.inward);
        span.moved(self.bytes);
    }
}

impl Reply {
    /// One that went well.
    pub const fn new(out: ReplyBuf) -> Self {
        Self { status: NtStatus::SUCCESS, out, file: None, tree: None, granted: None, moved: None }
    }

    /// An error that is measured, or has an effect, as a success is.
    pub fn error(status: NtStatus, mut out: ReplyBuf) -> Self {
        put_error(out.vec());
        Self { status, ..Self::new(out) }
    }
}

/// What a part of a command comes to that writes its reply.
pub(super) type Outcome = Result<Reply, NtStatus>;

/// ECHO, which needs no session.
pub(super) fn echo(core: &Core) -> Reply {
    let mut out = buffer(core);
    Empty { reserved: 0 }.put_body(out.vec());
    Reply::new(out)
}
