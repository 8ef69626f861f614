//! Target of RPC over RDMA: what a client may send, header and chunk lists.

use base::limits::RDMA_CALL_MAX;

use crate::rpcrdma::{Body, Header, Layout, PrivateData, ddp};
use crate::xdr::{Encode, Writer};

/// A header with its message: it means the same once more, a call that is put together has no
/// byte twice and none left out, and a reply fills its chunks and nothing beyond.
pub fn rpcrdma_header(data: &[u8]) -> bool {
    if let Some(said) = PrivateData::decode(data) {
        assert_eq!(PrivateData::decode(&said.encode()), Some(said));
    }
    let (header, message) = match Header::open(data) {
        Ok(opened) => opened,
        Err(error) => {
            if let Some(answer) = error.answer(1) {
                let mut bytes = Vec::new();
                answer.encode(&mut Writer::new(&mut bytes));
                assert_eq!(Header::open(&bytes), Ok((answer, &[][..])));
            }
            return false;
        }
    };
    let mut again = Vec::new();
    header.encode(&mut Writer::new(&mut again));
    assert_eq!(Header::open(&again), Ok((header.clone(), &[][..])));
    let (Body::Message(chunks) | Body::NoMessage(chunks)) = &header.body else { return true };
    let _ = (chunks.are_sound(), chunks.first_handle(), ddp::in_call(message));
    if let Ok(layout) = Layout::of(message.len(), &chunks.reads) {
        assert!(layout.length <= RDMA_CALL_MAX);
        let mut ranges: Vec<_> = layout.reads.iter().map(|read| read.local.clone()).collect();
        ranges.extend(layout.copies.iter().map(|copy| copy.to..copy.to + copy.from.len()));
        ranges.extend(layout.zeros.iter().cloned());
        ranges.sort_by_key(|range| range.start);
        let end = ranges.iter().fold(0, |at, range| {
            assert_eq!(range.start, at);
            range.end
        });
        assert_eq!(end, layout.length);
    }
    for chunk in chunks.writes.iter().chain(&chunks.reply) {
        let length = message.len();
        match chunk.fill(0..length) {
            Some(transfer) => {
                assert_eq!(transfer.filled.capacity(), length as u64);
                assert!(transfer.pieces.iter().all(|piece| piece.local.end <= length));
            }
            None => assert!(chunk.capacity() < length as u64),
        }
    }
    true
}
