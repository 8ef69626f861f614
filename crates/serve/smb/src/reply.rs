//! What a command has come to: the body of its response, and what is measured of it.

use vfs::fs::Extent;
use vfs::locks::Owner;
use wire::smb::create::FileId;
use wire::smb::frame::PREFIX;
use wire::smb::header::{HEADER, TRANSFORM};
use wire::smb::session::Empty;
use wire::smb::status::NtStatus;

use engine::exec::Span;
use engine::transport::buffers::ReplyBuf;
use files::{Core, Node, SpanFacts as _};

/// Where the first message of an answer begins: before it there is room for the length of the
/// frame, and for the header of an encrypted message.
pub(super) const START: usize = PREFIX + TRANSFORM;

/// A buffer for an answer, with room for all headers.
pub(super) fn buffer(core: &Core) -> ReplyBuf {
    let mut reply = core.buffers.take_reply();
    reply.vec().resize(START + HEADER, 0);
    reply
}

/// The facts of a request for the statistics.
#[derive(Default)]
pub(super) struct About {
    node: Option<Node>,
    range: Option<(u64, u64, bool)>,
    moved: usize,
}

impl About {
    /// It is about this file.
    pub fn file(node: &Node) -> Self {
        Self { node: Some(node.clone()), range: None, moved: 0 }
    }

    /// It is about this part of a file, and moved `moved` bytes, inwards or not.
    pub fn data(node: &Node, range: (u64, u64, bool), moved: usize) -> Self {
        Self { node: Some(node.clone()), range: Some(range), moved }
    }

    /// Adds them to the span.
    pub fn record(&self, span: &mut Span) {
        if let Some(node) = &self.node {
            span.of(node);
        }
        if let Some((offset, size, inward)) = self.range {
            span.range(offset, size, inward);
            span.moved(self.moved);
        }
    }
}

/// A request that was carried out.
pub(super) struct Reply {
    /// How it ended.
    pub status: NtStatus,
    /// Its body, behind room for all headers.
    pub out: ReplyBuf,
    /// Data behind it, if the answer leaves alone, neither signed nor encrypted.
    pub extent: Option<Extent>,
    /// The open that it has made, or was about.
    pub file: Option<FileId>,
    /// The tree that it has made.
    pub tree: Option<u32>,
    /// The lease that it was granted.
    pub granted: Option<Owner>,
    /// What is measured.
    pub about: About,
}

impl Reply {
    /// One that went well.
    pub fn new(out: ReplyBuf) -> Self {
        let (status, about) = (NtStatus::SUCCESS, About::default());
        Self { status, out, extent: None, file: None, tree: None, granted: None, about }
    }

    /// With what is measured.
    pub fn about(self, about: About) -> Self {
        Self { about, ..self }
    }
}

/// What a request comes to.
pub(super) type Outcome = Result<Reply, NtStatus>;

/// ECHO, which needs no session.
pub(super) fn echo(core: &Core) -> Reply {
    let mut out = buffer(core);
    Empty { reserved: 0 }.put_body(out.vec());
    Reply::new(out)
}
