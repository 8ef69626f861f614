//! What the message of a reply becomes: sent as it is, items of it written to write chunks, all of
//! it written to the reply chunk, or refused because the client has left no room for it. Nothing of
//! the message is copied for that: the result names which parts of it go where.

use std::ops::Range;

use wire::rpcrdma::{Body, Chunk, Chunks, Header, Piece, Refusal};
use wire::xdr::{Encode, Writer, padding};

/// What must be known of a call when its reply leaves.
#[derive(Debug, Default)]
pub(super) struct Open {
    /// Its number.
    pub(super) xid: u32,
    /// Where data of the reply goes.
    pub(super) writes: Vec<Chunk>,
    /// Where the reply goes if it is too long to be sent.
    pub(super) reply: Option<Chunk>,
    /// The client's key to invalidate.
    pub(super) invalidate: Option<u32>,
}

/// What is sent and written.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outgoing {
    /// What is sent: a header,
    head: Vec<u8>,
    /// and behind it these parts of the message.
    text: Vec<Range<usize>>,
    /// What is written of the message before.
    pub(super) writes: Vec<Piece>,
    /// Whether an error is sent because the reply does not fit.
    pub(super) refused: bool,
}

impl Outgoing {
    /// Sends this, without a message.
    pub(super) fn of(head: Vec<u8>) -> Self {
        Self { head, ..Self::default() }
    }

    /// Bytes that are sent.
    pub(super) fn length(&self) -> usize {
        self.head.len() + self.text.iter().map(Range::len).sum::<usize>()
    }

    /// Puts what is sent, of this message, where it is sent from: as many bytes.
    pub(super) fn put(&self, message: &[u8], to: &mut [u8]) {
        let parts = self.text.iter().map(|part| message.get(part.clone()).unwrap_or_default());
        let mut rest = to;
        for part in std::iter::once(&self.head[..]).chain(parts) {
            let Some((own, behind)) = rest.split_at_mut_checked(part.len()) else { return };
            own.copy_from_slice(part);
            rest = behind;
        }
    }
}

/// Makes it of a message with these items. At most `inline` bytes may be sent.
pub(super) fn outgoing(
    (message, items): (&[u8], &[Range<usize>]),
    open: &Open,
    credits: u32,
    inline: usize,
) -> Outgoing {
    fit((message.len(), items), open, credits, inline).unwrap_or_else(|| {
        let refusal = Body::Error(Refusal::Chunk);
        let head = encoded(&Header { xid: open.xid, credits, body: refusal });
        Outgoing { refused: true, ..Outgoing::of(head) }
    })
}

fn encoded(header: &Header) -> Vec<u8> {
    let mut bytes = Vec::new();
    header.encode(&mut Writer::new(&mut bytes));
    bytes
}

/// `None` if a chunk has no room for what belongs in it.
fn fit(
    (length, items): (usize, &[Range<usize>]),
    open: &Open,
    credits: u32,
    inline: usize,
) -> Option<Outgoing> {
    let (written, mut pieces, writes) = fill(&open.writes, items)?;
    let text = rest(length, &written);
    let size = text.iter().map(Range::len).sum::<usize>();
    let (xid, unused) = (open.xid, open.reply.as_ref().map(Chunk::unused));
    let chunks = Chunks { reads: Vec::new(), writes, reply: unused };
    let head = encoded(&Header { xid, credits, body: Body::Message(chunks.clone()) });
    if head.len() + size <= inline {
        return Some(Outgoing { head, text, writes: pieces, refused: false });
    }
    let transfer = open.reply.as_ref()?.fill(0..size)?;
    let chunks = Chunks { reply: Some(transfer.filled), ..chunks };
    let head = encoded(&Header { xid, credits, body: Body::NoMessage(chunks) });
    pieces.extend(transfer.pieces.iter().flat_map(|piece| in_message(piece, &text)));
    let fits = head.len() <= inline;
    fits.then_some(Outgoing { head, text: Vec::new(), writes: pieces, refused: false })
}

/// The parts of a message without these items and their padding.
fn rest(length: usize, items: &[Range<usize>]) -> Vec<Range<usize>> {
    let (mut parts, mut from) = (Vec::new(), 0);
    for item in items {
        parts.push(from..item.start);
        from = item.end + padding(item.len());
    }
    parts.push(from..length);
    parts.retain(|part| !part.is_empty());
    parts
}

/// A piece of a text, as pieces of the message of which these parts are the text.
fn in_message(piece: &Piece, text: &[Range<usize>]) -> Vec<Piece> {
    let (mut pieces, mut begin) = (Vec::new(), 0);
    for part in text {
        let (start, end) = (piece.local.start.max(begin), piece.local.end.min(begin + part.len()));
        if start < end {
            let local = part.start + (start - begin)..part.start + (end - begin);
            let offset = piece.offset + (start - piece.local.start) as u64;
            pieces.push(Piece { local, handle: piece.handle, offset });
        }
        begin += part.len();
    }
    pieces
}

type Filled = (Vec<Range<usize>>, Vec<Piece>, Vec<Chunk>);

/// The first chunk is for the first item, and so on; an empty chunk means that its item is to be
/// sent. Returns the items that are written, the pieces of them with their destinations, and the
/// chunks of the reply.
fn fill(chunks: &[Chunk], found: &[Range<usize>]) -> Option<Filled> {
    let (mut items, mut pieces, mut writes) = (Vec::new(), Vec::new(), Vec::new());
    for (n, chunk) in chunks.iter().enumerate() {
        let item = found.get(n).filter(|_| !chunk.0.is_empty());
        let Some(item) = item else {
            writes.push(chunk.unused());
            continue;
        };
        let mut transfer = chunk.fill(item.clone())?;
        pieces.append(&mut transfer.pieces);
        writes.push(transfer.filled);
        items.push(item.clone());
    }
    Some((items, pieces, writes))
}

#[cfg(test)]
mod tests;
