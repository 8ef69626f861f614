//! Tests of RPC over RDMA: bytes by hand from RFC 8166, round trips, what chunks do to a message.

use base::limits::{RDMA_CALL_MAX, RDMA_READ_SEGMENTS_MAX, RDMA_SEGMENTS_MAX};
use proptest::prelude::*;

use super::*;
use crate::arb::Gen;
use crate::nfs3::{self, Fh3, NFS_PROGRAM, NFS_V3, Proc, StableHow};
use crate::rpc::{self, Auth, CallHeader};
use crate::xdr::{DecodeError, Encode, Writer};

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn encoded(header: &Header) -> Vec<u8> {
    let mut out = Vec::new();
    header.encode(&mut Writer::new(&mut out));
    out
}

fn segment(handle: u32, length: u32, offset: u64) -> Segment {
    Segment { handle, length, offset }
}

fn at(position: u32, target: Segment) -> ReadSegment {
    ReadSegment { position, target }
}

#[test]
fn headers_are_as_the_rfc_has_them() {
    let reads = vec![at(76, segment(7, 4096, 1 << 32))];
    let writes = vec![Chunk(vec![segment(8, 9, 10), segment(11, 12, 13)])];
    let reply = Some(Chunk(vec![segment(14, 15, 16)]));
    let body = Body::Message(Chunks { reads, writes, reply });
    let header = Header { xid: 0x1234, credits: 32, body };
    let words = [
        0x1234, 1, 32, 0, // xid, version, credits, RDMA_MSG
        1, 76, 7, 4096, 1, 0, 0, // the read list
        1, 2, 8, 9, 0, 10, 11, 12, 0, 13, 0, // the write list
        1, 1, 14, 15, 0, 16, // the reply chunk
    ];
    assert_eq!(encoded(&header), bytes(&words));
    let message = [bytes(&words), b"message!".to_vec()].concat();
    assert_eq!(Header::open(&message), Ok((header, &b"message!"[..])));
    let refusal = Refusal::Version { low: 1, high: 1 };
    let error = Header { xid: 1, credits: 2, body: Body::Error(refusal) };
    assert_eq!(encoded(&error), bytes(&[1, 1, 2, 4, 1, 1, 1]));
    let error = Header { xid: 1, credits: 2, body: Body::Error(Refusal::Chunk) };
    assert_eq!(encoded(&error), bytes(&[1, 1, 2, 4, 2]));
}

#[test]
fn each_header_error_has_its_reply() {
    let answer = |words: &[u32]| {
        let error = Header::open(&bytes(words)).expect_err("not taken");
        error.answer(5).map(|header| (header.xid, header.credits, header.body))
    };
    let version = Body::Error(Refusal::Version { low: 1, high: 1 });
    let chunk = Body::Error(Refusal::Chunk);
    assert_eq!(answer(&[9, 2, 1, 0, 0, 0, 0]), Some((9, 5, version)));
    // RDMA_MSGP, RDMA_DONE, and one that there is not.
    for procedure in [2, 3, 5] {
        assert_eq!(answer(&[9, 1, 1, procedure, 0, 0, 0]), Some((9, 5, chunk.clone())));
    }
    // Lists cut short, flags that are none, and an error of no kind.
    for rest in [&[0, 0][..], &[1, 0, 1], &[2], &[0, 1, 1 << 20], &[0, 0, 7]] {
        assert_eq!(answer(&[&[9, 1, 1, 0], rest].concat()), Some((9, 5, chunk.clone())));
    }
    assert_eq!(answer(&[9, 1, 1, 4, 3]), Some((9, 5, chunk)));
    assert_eq!(answer(&[9, 1, 1]), None);
}

#[test]
fn lists_are_bounded() {
    let many = |count: usize| {
        let mut words = vec![1, 1, 1, 0];
        (0..count).for_each(|_| words.extend([1, 0, 7, 4, 0, 0]));
        bytes(&[&words[..], &[0, 0, 0]].concat())
    };
    assert!(Header::open(&many(RDMA_READ_SEGMENTS_MAX)).is_ok());
    let what = "rdma_reads";
    let (max, got) = (RDMA_READ_SEGMENTS_MAX, RDMA_READ_SEGMENTS_MAX + 1);
    let source = DecodeError::TooLong { what, max, got };
    assert_eq!(Header::open(&many(got)), Err(HeaderError::Chunks { xid: 1, source }));
    let mut words = vec![1, 1, 1, 0, 0, 1, RDMA_SEGMENTS_MAX as u32 + 1];
    words.resize(1000, 1);
    assert!(matches!(Header::open(&bytes(&words)), Err(HeaderError::Chunks { .. })));
}

#[test]
fn a_call_is_put_together_in_the_order_of_its_positions() {
    // 12 bytes inline; data of 5 bytes in two segments at 8; then what is behind it.
    let reads = [at(8, segment(1, 2, 100)), at(8, segment(2, 3, 200))];
    let layout = Layout::of(12, &reads).expect("it fits");
    assert_eq!(layout.length, 8 + 5 + 3 + 4);
    let copies = [Copy { from: 0..8, to: 0 }, Copy { from: 8..12, to: 16 }];
    assert_eq!(layout.copies, copies);
    let pieces = [
        Piece { local: 8..10, handle: 1, offset: 100 },
        Piece { local: 10..13, handle: 2, offset: 200 },
    ];
    assert_eq!(layout.reads, pieces);
    assert!(layout.zeros.iter().eq([&(13..16)]));
    let mut message = [0xff; 20];
    layout.place(b"headhea!tail", &mut message);
    assert_eq!(&message[..8], b"headhea!");
    assert_eq!(message[8..13], [0xff; 5], "is read");
    assert_eq!(&message[13..], b"\0\0\0tail");
    // A position counts what chunks before it have brought.
    let reads = [at(4, segment(1, 5, 0)), at(16, segment(2, 4, 0))];
    let layout = Layout::of(12, &reads).expect("it fits");
    assert_eq!(layout.length, 4 + 8 + 4 + 4 + 4);
    assert_eq!(layout.reads[1].local, 16..20);
}

#[test]
fn a_long_call_is_read_from_its_chunk() {
    let reads = [at(0, segment(1, 1000, 0)), at(0, segment(1, 1000, 5000))];
    let layout = Layout::of(0, &reads).expect("it fits");
    assert_eq!((layout.length, layout.reads.len(), layout.copies.len()), (2000, 2, 0));
    // Data within it: the chunk at position 0 is cut there.
    let reads = [reads[0], reads[1], at(1500, segment(2, 8, 0))];
    let layout = Layout::of(0, &reads).expect("it fits");
    let local: Vec<_> = layout.reads.iter().map(|r| (r.local.clone(), r.offset)).collect();
    let wanted = [(0..1000, 0), (1000..1500, 5000), (1500..1508, 0), (1508..2008, 5500)];
    assert_eq!(local, wanted);
}

#[test]
fn read_lists_that_fit_no_message_are_refused() {
    let one = segment(1, 8, 0);
    let refused = |inline, reads: &[ReadSegment]| Layout::of(inline, reads).expect_err("refused");
    assert_eq!(refused(0, &[]), ChunkError::MessageLocation);
    assert_eq!(refused(4, &[at(0, one)]), ChunkError::MessageLocation);
    assert_eq!(refused(0, &[at(4, one)]), ChunkError::MessageLocation);
    assert_eq!(refused(0, &[at(0, segment(1, 0, 0))]), ChunkError::MessageLocation, "it is empty");
    assert_eq!(refused(8, &[at(12, one)]), ChunkError::Beyond { position: 12 });
    assert_eq!(refused(8, &[at(6, one)]), ChunkError::Position { position: 6 });
    assert_eq!(refused(8, &[at(8, one), at(4, one)]), ChunkError::Position { position: 4 });
    assert_eq!(refused(8, &[at(8, one), at(12, one)]), ChunkError::Position { position: 12 });
    assert_eq!(refused(8, &[at(8, one), at(0, one)]), ChunkError::Position { position: 0 });
    let huge = segment(1, u32::MAX, 0);
    assert_eq!(refused(8, &[at(4, huge)]), ChunkError::TooLong);
    assert_eq!(refused(0, &[at(0, huge), at(0, huge)]), ChunkError::TooLong);
    let most = segment(1, (RDMA_CALL_MAX - 12) as u32, 0);
    assert_eq!(Layout::of(8, &[at(8, most)]).map(|l| l.length), Ok(RDMA_CALL_MAX - 4));
}

#[test]
fn a_chunk_is_filled_in_the_order_of_its_segments() {
    let chunk = Chunk(vec![segment(1, 10, 100), segment(2, 10, 200), segment(3, 10, 300)]);
    let transfer = chunk.fill(40..55).expect("it fits");
    let pieces = [
        Piece { local: 40..50, handle: 1, offset: 100 },
        Piece { local: 50..55, handle: 2, offset: 200 },
    ];
    assert_eq!(transfer.pieces, pieces);
    let lengths: Vec<_> = transfer.filled.0.iter().map(|s| s.length).collect();
    assert_eq!(lengths, [10, 5, 0]);
    assert!(chunk.fill(0..30).is_some());
    assert_eq!(chunk.fill(0..31), None);
    assert_eq!(chunk.fill(7..7).map(|t| t.filled), Some(chunk.unused()));
    assert_eq!(Chunk(Vec::new()).fill(3..3).map(|t| t.pieces.len()), Some(0));
}

#[test]
fn invalid_chunks_are_distinguished() {
    let writes = |segments: &[Segment]| Chunks {
        writes: segments.iter().map(|one| Chunk(vec![*one])).collect(),
        ..Chunks::default()
    };
    assert!(writes(&[segment(1, 10, 0), segment(1, 10, 10), segment(2, 10, 5)]).are_sound());
    assert!(!writes(&[segment(1, 10, 0), segment(1, 10, 9)]).are_sound(), "they overlap");
    assert!(!writes(&[segment(0, 10, 0)]).are_sound(), "no key");
    assert!(!writes(&[segment(1, 2, u64::MAX)]).are_sound(), "beyond the end");
    let reply = Some(Chunk(vec![segment(1, 10, 3)]));
    assert!(!Chunks { reply, ..writes(&[segment(1, 10, 0)]) }.are_sound());
    let reads = vec![at(4, segment(0, 10, 0))];
    assert!(!Chunks { reads, ..Chunks::default() }.are_sound());
}

#[test]
fn private_data_is_that_of_the_rfc() {
    let said = PrivateData { remote_invalidation: true, send: 4096, receive: 4096 };
    let bytes = [0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 3];
    assert_eq!(said.encode(), bytes);
    let padded = [&bytes[..], &[0; 48]].concat();
    assert_eq!(PrivateData::decode(&padded), Some(said));
    assert_eq!(PrivateData::decode(&bytes[..7]), None);
    assert_eq!(PrivateData::decode(&[0; 56]), None);
    assert_eq!(PrivateData::decode(&[0xf6, 0xab, 0x0e, 0x18, 2, 1, 3, 3]), None);
    let most = PrivateData { remote_invalidation: false, send: 256 << 10, receive: 1024 };
    assert_eq!(PrivateData::decode(&most.encode()), Some(most));
}

fn call(vers: u32, proc: u32, args: &[&dyn Encode]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut w = Writer::new(&mut out);
    let (cred, verf) = (Auth::None, Auth::None);
    CallHeader { xid: 1, prog: NFS_PROGRAM, vers, proc, cred, verf }.encode(&mut w);
    args.iter().for_each(|part| part.encode(&mut w));
    out
}

fn reply(results: &[&dyn Encode]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut w = Writer::new(&mut out);
    rpc::success(&mut w, 1);
    results.iter().for_each(|part| part.encode(&mut w));
    out
}

#[test]
fn data_of_version_3_is_found() {
    let data = b"seven b";
    let (offset, count, stable) = (0, 7, StableHow::UNSTABLE);
    let args = nfs3::WriteArgs { file: Fh3(b"f"), offset, count, stable, data };
    let message = call(NFS_V3, Proc::WRITE.0, &[&args]);
    let found = ddp::in_call(&message);
    assert_eq!(found.len(), 1);
    assert_eq!(&message[found[0].clone()], data);
    let mut short = Vec::new();
    reduced(&message, &found, &mut short);
    assert_eq!(short, message[..message.len() - 8]);
    let read = nfs3::ReadResOk { file_attributes: None, count: 7, eof: true, data };
    let message = reply(&[&nfs3::ReadRes::Ok(read)]);
    let called = |proc: Proc| ddp::Called { prog: NFS_PROGRAM, vers: NFS_V3, proc: proc.0 };
    let found = ddp::in_reply(called(Proc::READ), &message, 1);
    assert_eq!(&message[found[0].clone()], data);
    assert_eq!(ddp::in_reply(called(Proc::GETATTR), &message, 1), []);
    assert_eq!(ddp::in_reply(called(Proc::READ), &message, 0), []);
    let failed = nfs3::ReadRes::Fail(nfs3::Nfsstat3::IO, None);
    assert_eq!(ddp::in_reply(called(Proc::READ), &reply(&[&failed]), 1), []);
}

#[test]
fn data_of_compounds_is_found_in_order() {
    use crate::nfs4::*;
    let read = |data| ResOp::Read(Res4::Ok(ReadResOk4 { eof: false, data }));
    let link = ReadlinkResOk4 { link: Linktext4(b"over there") };
    let link = ResOp::Readlink(Res4::Ok(link));
    let head = CompoundRes { status: Nfsstat4::OK, tag: Tag4(b"tag"), count: 4 };
    let (one, two) = (read(b"first"), read(b"second"));
    let message = reply(&[&head, &ResOp::Putrootfh(Res4::Ok(())), &one, &link, &two]);
    let (prog, vers, proc) = (NFS_PROGRAM, NFS_V4, NFSPROC4_COMPOUND);
    let called = ddp::Called { prog, vers, proc };
    let found = ddp::in_reply(called, &message, 2);
    let texts: Vec<_> = found.iter().map(|item| &message[item.clone()]).collect();
    assert_eq!(texts, [&b"first"[..], b"over there"]);
    assert_eq!(ddp::in_reply(called, &message, 9).len(), 3);
    let stateid = Stateid4 { seqid: 1, other: [0; 12] };
    let (offset, stable, data) = (0, StableHow4::UNSTABLE, &b"12345"[..]);
    let write = ArgOp::Write(WriteArgs4 { stateid, offset, stable, data });
    let head = CompoundArgs { tag: Tag4(b""), minorversion: 0, count: 2 };
    let message = call(NFS_V4, proc, &[&head, &ArgOp::Putrootfh(()), &write]);
    assert_eq!(ddp::Called::of(&message), Some(called));
    let found = ddp::in_call(&message);
    assert_eq!(&message[found[0].clone()], data);
}

proptest! {
    #[test]
    fn headers_survive(entropy in prop::collection::vec(any::<u8>(), 0..600)) {
        let header: Header = Gen::new(&entropy).arb();
        let bytes = encoded(&header);
        prop_assert_eq!(Header::open(&bytes), Ok((header, &[][..])));
    }

    /// A message with parts in chunks is restored as it was.
    #[test]
    fn reduced_messages_are_restored(
        parts in prop::collection::vec((0_usize..5, 0_usize..40), 0..5),
        cut in 1_usize..20,
    ) {
        let (mut message, mut items, mut reads) = (vec![1; 24], Vec::new(), Vec::new());
        let mut memory = Vec::new();
        for (words, length) in parts {
            message.extend(std::iter::repeat_n(2, 4 * words));
            let start = message.len();
            message.extend((0..length).map(|n| n as u8));
            items.push(start..start + length);
            for (n, part) in message[start..].chunks(cut).enumerate() {
                let target = segment(9, part.len() as u32, (memory.len() + n * cut) as u64);
                reads.push(at(start as u32, target));
            }
            memory.extend_from_slice(&message[start..]);
            message.resize(message.len().next_multiple_of(4), 0);
        }
        message.extend(b"last");
        let mut inline = Vec::new();
        reduced(&message, &items, &mut inline);
        let layout = Layout::of(inline.len(), &reads).expect("it fits");
        let mut whole = vec![0xee; layout.length];
        layout.place(&inline, &mut whole);
        for Piece { local, offset, .. } in layout.reads {
            let from = offset as usize;
            let length = local.len();
            whole[local].copy_from_slice(&memory[from..from + length]);
        }
        prop_assert_eq!(whole, message);
    }
}
