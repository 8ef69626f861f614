//! Replies of each size, with and without chunks for them.

use wire::nfs3::{ReadRes, ReadResOk};
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
        writes: writes.iter().enumerate().map(|(n, l)| chunk(*l, n as u32 + 1)).collect(),
        reply: reply.map(|length| chunk(length, 99)),
        invalidate: None,
    }
}

/// What a message with one item of data becomes, which is its last.
fn made(message: &[u8], data: usize, open: &Open) -> Outgoing {
    let start = message.len() - data.next_multiple_of(4);
    let item = start..start + data;
    outgoing((message, std::slice::from_ref(&item)), open, 7, INLINE)
}

fn sent(out: &Outgoing, message: &[u8]) -> (Body, Vec<u8>) {
    let mut bytes = vec![0; out.length()];
    out.put(message, &mut bytes);
    let (header, message) = Header::open(&bytes).expect("a header");
    assert_eq!((header.xid, header.credits), (9, 7));
    (header.body, message.to_vec())
}

/// What comes to be in the client's memory of this key, from `offset` on.
fn written(out: &Outgoing, message: &[u8], key: u32) -> Vec<u8> {
    let (mut bytes, mut at) = (Vec::new(), 64);
    for piece in out.writes.iter().filter(|piece| piece.handle == key) {
        assert_eq!(piece.offset, at, "one behind the other");
        at += piece.local.len() as u64;
        bytes.extend_from_slice(&message[piece.local.clone()]);
    }
    bytes
}

#[test]
fn what_fits_is_sent() {
    let message = read_reply(b"data");
    let out = made(&message, 4, &open(&[], None));
    assert_eq!(sent(&out, &message), (Body::Message(Chunks::default()), message.clone()));
    assert!(out.writes.is_empty() && !out.refused);
    // A reply chunk that is not needed is returned with length 0.
    let out = made(&message, 4, &open(&[], Some(4096)));
    let (Body::Message(chunks), text) = sent(&out, &message) else { panic!("{out:?}") };
    assert_eq!((chunks.reply.map(|c| c.capacity()), text), (Some(0), message));
}

#[test]
fn data_goes_to_the_write_chunk_whatever_its_size() {
    for size in [0, 1, 3, 4, 4095, 100_001] {
        let data: Vec<u8> = (0..size).map(|n| n as u8).collect();
        let message = read_reply(&data);
        let out = made(&message, data.len(), &open(&[1 << 20, 4096], None));
        let (Body::Message(chunks), text) = sent(&out, &message) else { panic!("{out:?}") };
        let lengths: Vec<_> = chunks.writes.iter().map(Chunk::capacity).collect();
        assert_eq!(lengths, [size, 0], "the second is not used");
        assert_eq!(text, message[..message.len() - data.len().next_multiple_of(4)]);
        assert_eq!(written(&out, &message, 1), data);
    }
}

#[test]
fn what_does_not_fit_goes_to_the_reply_chunk() {
    let message = read_reply(&[5; 3000]);
    let out = made(&message, 3000, &open(&[], Some(4096)));
    let (Body::NoMessage(chunks), text) = sent(&out, &message) else { panic!("{out:?}") };
    assert_eq!(chunks.reply.map(|c| c.capacity()), Some(message.len() as u64));
    assert!(text.is_empty());
    assert_eq!(written(&out, &message, 99), message);
}

#[test]
fn a_long_reply_goes_to_its_chunk_without_the_data_that_go_to_theirs() {
    // Items in the middle of what is long: with padding, without, and none.
    let message: Vec<u8> = (0..9000_u32).map(|n| (n / 3 % 251) as u8).collect();
    let items = [2001..3004, 3004..5000, 5000..5000];
    let open = open(&[1 << 20, 1 << 20, 10], Some(1 << 20));
    let out = outgoing((&message, &items), &open, 7, INLINE);
    let (Body::NoMessage(chunks), text) = sent(&out, &message) else { panic!("{out:?}") };
    let lengths: Vec<_> = chunks.writes.iter().map(Chunk::capacity).collect();
    assert_eq!((lengths, text), (vec![1003, 1996, 0], Vec::new()));
    assert_eq!(written(&out, &message, 1), message[2001..3004]);
    assert_eq!(written(&out, &message, 2), message[3004..5000]);
    let mut rest = Vec::new();
    wire::rpcrdma::reduced(&message, &items, &mut rest);
    assert_eq!(written(&out, &message, 99), rest);
}

#[test]
fn what_has_no_room_is_refused() {
    let message = read_reply(&[5; 3000]);
    for open in [open(&[], None), open(&[], Some(2000)), open(&[2999], Some(4096))] {
        let out = made(&message, 3000, &open);
        assert_eq!(sent(&out, &message).0, Body::Error(Refusal::Chunk));
        assert!(out.refused && out.writes.is_empty());
    }
}
