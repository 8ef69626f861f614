//! What the message of a reply becomes: sent as it is, data of it written to write chunks, all of
//! it written to the reply chunk, or refused because the client has left no room for it.

use std::ops::Range;

use wire::rpcrdma::ddp::{self, Called};
use wire::rpcrdma::{Body, Chunk, Chunks, Header, Refusal, Transfer, reduced};
use wire::xdr::{Encode, Writer};

/// What must be known of a call when its reply leaves.
#[derive(Debug, Default)]
pub(super) struct Open {
    /// Its number.
    pub(super) xid: u32,
    /// What was called, if the header of the call could be read.
    pub(super) called: Option<Called>,
    /// Where data of the reply goes.
    pub(super) writes: Vec<Chunk>,
    /// Where the reply goes if it is too long to be sent.
    pub(super) reply: Option<Chunk>,
    /// The client's key to invalidate.
    pub(super) invalidate: Option<u32>,
}

/// What is sent and written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Outgoing {
    /// What is sent: a header, and the message if that is sent.
    pub(super) sent: Vec<u8>,
    /// What is written before: from the message itself.
    pub(super) data: Option<Transfer>,
    /// What is written before: the message without that data, if it is not sent.
    pub(super) long: Option<(Vec<u8>, Transfer)>,
    /// Whether the client is told that the reply does not fit.
    pub(super) refused: bool,
}

/// Makes it of a message. At most `inline` bytes may be sent.
pub(super) fn outgoing(message: &[u8], open: &Open, credits: u32, inline: usize) -> Outgoing {
    fit(message, open, credits, inline).unwrap_or_else(|| {
        let refusal = Body::Error(Refusal::Chunk);
        let sent = encoded(&Header { xid: open.xid, credits, body: refusal });
        Outgoing { sent, data: None, long: None, refused: true }
    })
}

fn encoded(header: &Header) -> Vec<u8> {
    let mut bytes = Vec::new();
    header.encode(&mut Writer::new(&mut bytes));
    bytes
}

/// `None` if a chunk has no room for what belongs in it.
fn fit(message: &[u8], open: &Open, credits: u32, inline: usize) -> Option<Outgoing> {
    let found = match open.called {
        Some(called) => ddp::in_reply(called, message, open.writes.len()),
        None => Vec::new(),
    };
    let (items, data, writes) = fill(&open.writes, &found)?;
    let mut text = Vec::new();
    reduced(message, &items, &mut text);
    let (xid, unused) = (open.xid, open.reply.as_ref().map(Chunk::unused));
    let chunks = Chunks { reads: Vec::new(), writes, reply: unused };
    let mut sent = encoded(&Header { xid, credits, body: Body::Message(chunks.clone()) });
    if sent.len() + text.len() <= inline {
        sent.append(&mut text);
        return Some(Outgoing { sent, data, long: None, refused: false });
    }
    let transfer = open.reply.as_ref()?.fill(0..text.len())?;
    let chunks = Chunks { reply: Some(transfer.filled.clone()), ..chunks };
    let sent = encoded(&Header { xid, credits, body: Body::NoMessage(chunks) });
    (sent.len() <= inline).then_some(Outgoing {
        sent,
        data,
        long: Some((text, transfer)),
        refused: false,
    })
}

type Filled = (Vec<Range<usize>>, Option<Transfer>, Vec<Chunk>);

/// The first chunk is for the first item, and so on; an empty chunk says that its item is to be
/// sent. Returns the items that are written, how, and the chunks as the reply has them.
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
    let data = Transfer { pieces, filled: Chunk::default() };
    Some((items, (!data.pieces.is_empty()).then_some(data), writes))
}

#[cfg(test)]
mod tests;
