//! Replies of each size, with and without chunks for them.

use wire::nfs3::{NFS_PROGRAM, NFS_V3, Proc, ReadRes, ReadResOk};
use wire::rpc;
use wire::rpcrdma::Segment;

use super::*;

const INLINE: usize = 1024;

fn read_reply(data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut w = Writer::new(&mut bytes);
    rpc::success(&mut w, 9);
    let ok = ReadResOk { file_attributes: None, count: data.len() as u32, eof: true, data };
    ReadRes::Ok(ok).encode(&mut w);
    bytes
}

fn open(writes: &[u32], reply: Option<u32>) -> Open {
    let chunk = |length: u32, handle| Chunk(vec![Segment { handle, length, offset: 64 }]);
    Open {
        xid: 9,
        called: Some(Called { prog: NFS_PROGRAM, vers: NFS_V3, proc: Proc::READ.0 }),
        writes: writes.iter().enumerate().map(|(n, l)| chunk(*l, n as u32 + 1)).collect(),
        reply: reply.map(|length| chunk(length, 99)),
        invalidate: None,
    }
}

fn sent(out: &Outgoing) -> (Body, Vec<u8>) {
    let (header, message) = Header::open(&out.sent).expect("a header");
    assert_eq!((header.xid, header.credits), (9, 7));
    (header.body, message.to_vec())
}

#[test]
fn what_fits_is_sent() {
    let message = read_reply(b"data");
    let out = outgoing(&message, &open(&[], None), 7, INLINE);
    assert_eq!(sent(&out), (Body::Message(Chunks::default()), message.clone()));
    assert!(out.data.is_none() && out.long.is_none() && !out.refused);
    // A reply chunk that is not needed is told to be empty.
    let out = outgoing(&message, &open(&[], Some(4096)), 7, INLINE);
    let (Body::Message(chunks), text) = sent(&out) else { panic!("{out:?}") };
    assert_eq!((chunks.reply.map(|c| c.capacity()), text), (Some(0), message));
}

#[test]
fn data_goes_to_the_write_chunk_whatever_its_size() {
    for size in [0, 1, 3, 4, 4095, 100_001] {
        let data: Vec<u8> = (0..size).map(|n| n as u8).collect();
        let message = read_reply(&data);
        let out = outgoing(&message, &open(&[1 << 20, 4096], None), 7, INLINE);
        let (Body::Message(chunks), text) = sent(&out) else { panic!("{out:?}") };
        let lengths: Vec<_> = chunks.writes.iter().map(Chunk::capacity).collect();
        assert_eq!(lengths, [size, 0], "the second is not used");
        assert_eq!(text, message[..message.len() - data.len().next_multiple_of(4)]);
        let pieces = out.data.map(|data| data.pieces).unwrap_or_default();
        let written: Vec<u8> =
            pieces.iter().flat_map(|p| &message[p.local.clone()]).copied().collect();
        assert_eq!(written, data);
    }
}

#[test]
fn what_does_not_fit_goes_to_the_reply_chunk() {
    let message = read_reply(&[5; 3000]);
    let out = outgoing(&message, &open(&[], Some(4096)), 7, INLINE);
    let (Body::NoMessage(chunks), text) = sent(&out) else { panic!("{out:?}") };
    assert_eq!(chunks.reply.map(|c| c.capacity()), Some(message.len() as u64));
    assert!(text.is_empty());
    let (long, transfer) = out.long.expect("it is written");
    assert_eq!(long, message);
    assert_eq!(transfer.pieces[0].local, 0..message.len());
}

#[test]
fn what_has_no_room_is_refused() {
    let message = read_reply(&[5; 3000]);
    for open in [open(&[], None), open(&[], Some(2000)), open(&[2999], Some(4096))] {
        let out = outgoing(&message, &open, 7, INLINE);
        assert_eq!(sent(&out).0, Body::Error(Refusal::Chunk));
        assert!(out.refused && out.data.is_none() && out.long.is_none());
    }
}
