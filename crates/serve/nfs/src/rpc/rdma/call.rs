//! A message from a client: a call, which may have to be read from its memory first, a reply to a
//! call of this server, or nothing that can be used.

use std::ops::Range;

use verbs::{Piece, Region};
use wire::rpcrdma::{Body, Chunks, Header, Layout, Refusal};
use wire::xdr::{Encode, Writer};

use super::super::pending::BegunCall;
use super::reply::Open;

/// What has come.
pub(super) enum Incoming {
    /// A call.
    Call {
        /// What its reply needs.
        open: Open,
        /// How it is put together.
        layout: Layout,
        /// Credits that the client requests.
        asked: u32,
        /// What of it came.
        at: Range<usize>,
    },
    /// The reply to a call of this server.
    Answer {
        /// Its message.
        at: Range<usize>,
        /// Calls that the client takes.
        granted: u32,
    },
    /// A call of this server was refused.
    Refused {
        /// Its number.
        xid: u32,
        /// Calls that the client takes.
        granted: u32,
    },
    /// It is refused with this.
    Bad(Vec<u8>),
    /// No reply is possible: the connection is unusable.
    Nothing,
}

/// The message type of a reply (RFC 5531 §9).
const REPLY: [u8; 4] = [0, 0, 0, 1];

/// Reads a message that has arrived; `credits` are sent with a refusal.
pub(super) fn incoming(received: &[u8], credits: u32) -> Incoming {
    let (header, message) = match Header::open(received) {
        Ok(opened) => opened,
        Err(error) => {
            return error.answer(credits).map_or(Incoming::Nothing, |answer| bad(&answer));
        }
    };
    let at = received.len() - message.len()..received.len();
    let Header { xid, credits: asked, body } = header;
    let (chunks, inline) = match body {
        Body::Error(_) => return Incoming::Refused { xid, granted: asked },
        Body::Message(chunks) if chunks.is_empty() && message.get(4..8) == Some(&REPLY) => {
            return Incoming::Answer { at, granted: asked };
        }
        Body::Message(chunks) => (chunks, message.len()),
        Body::NoMessage(chunks) => (chunks, 0),
    };
    let invalidate = chunks.first_handle();
    let sound = chunks.are_sound();
    let Chunks { reads, writes, reply } = chunks;
    match Layout::of(inline, &reads).ok().filter(|_| sound) {
        Some(layout) => {
            let open = Open { xid, writes, reply, invalidate };
            Incoming::Call { open, layout, asked, at }
        }
        None => bad(&Header { xid, credits, body: Body::Error(Refusal::Chunk) }),
    }
}

fn bad(answer: &Header) -> Incoming {
    let mut bytes = Vec::new();
    answer.encode(&mut Writer::new(&mut bytes));
    Incoming::Bad(bytes)
}

/// The parts of a layout that are read, as the device takes them.
pub(super) fn pieces(layout: &Layout) -> Vec<Piece> {
    layout.reads.iter().map(piece).collect()
}

/// A piece as the device takes it.
pub(super) fn piece(piece: &wire::rpcrdma::Piece) -> Piece {
    Piece { local: piece.local.clone(), key: piece.handle, address: piece.offset }
}

/// A call to be executed.
pub(super) struct Arrived {
    /// What its reply needs.
    pub(super) open: Open,
    /// Its message, or the part that has arrived.
    pub(super) region: Region,
    /// Where in the region that is.
    pub(super) at: Range<usize>,
    /// What must be read first.
    pub(super) unread: Option<Layout>,
    /// Whether the region is that of a receive.
    pub(super) received: bool,
    /// It was begun, and waits for room on the pool.
    pub(super) begun: Option<Box<BegunCall>>,
    /// When it came.
    pub(super) arrived_ns: u64,
}

impl Arrived {
    /// Its message, once it is whole.
    pub(super) fn message(&self) -> &[u8] {
        self.region.get(self.at.clone()).unwrap_or_default()
    }

    /// Whether its xid is that of its header.
    pub(super) fn has_its_number(&self) -> bool {
        self.message().first_chunk() == Some(&self.open.xid.to_be_bytes())
    }
}
