//! Compounds of NFSv4.0 over the same connections: repeats of what changes something, and calls cut
//! into many fragments.

use probe::op::{Protocol, flag};
use wire::nfs4::*;
use wire::xdr::{Decode, Encode, Reader, Writer};

use crate::client::{Client, Reply};
use crate::server::Server;

/// COMPOUND (RFC 7530 §15.2).
const COMPOUND: u32 = 1;

/// COMPOUND4args.
struct Compound<'a>(u32, &'a [ArgOp<'a>]);

impl Encode for Compound<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        let count = self.1.len() as u32;
        CompoundArgs { tag: Tag4(b""), minorversion: self.0, count }.encode(w);
        self.1.iter().for_each(|op| op.encode(w));
    }
}

pub fn record(client: &mut Client, ops: &[ArgOp<'_>]) -> Vec<u8> {
    client.record(NFS4_PROGRAM, NFS_V4, COMPOUND, &Compound(0, ops))
}

/// READ of a file from its start.
pub fn read_record(client: &mut Client, file: &[u8], count: u32) -> Vec<u8> {
    let stateid = Stateid4::ANONYMOUS;
    let read = ArgOp::Read(ReadArgs4 { stateid, offset: 0, count });
    record(client, &[ArgOp::Putfh(PutfhArgs4 { object: Fh4(file) }), read])
}

fn status(reply: &Reply) -> Nfsstat4 {
    let (_, mut rest) = reply.open();
    CompoundRes::decode(&mut rest).expect("a head").status
}

const ROOT: [ArgOp<'static>; 3] = [
    ArgOp::Putrootfh(()),
    ArgOp::Lookup(LookupArgs4 { objname: Component4(b"export") }),
    ArgOp::Lookup(LookupArgs4 { objname: Component4(b"t") }),
];

fn mkdir(name: &[u8]) -> ArgOp<'_> {
    ArgOp::Create(CreateArgs4 {
        objtype: Createtype4::Other(Ftype4::DIR),
        objname: Component4(name),
        createattrs: Fattr4::NONE,
    })
}

#[test]
fn a_repeated_change_of_40_gets_the_first_ones_reply_over_any_connection() {
    let server = Server::fresh();
    let mut client = Client::connect(server.addr);
    let made = record(&mut client, &[&ROOT[..], &[mkdir(b"d")]].concat());
    client.send(&made);
    let first = client.receive();
    assert_eq!(status(&first), Nfsstat4::OK);
    client.send(&made);
    assert_eq!(client.receive(), first, "repeated on the same connection");
    let mut again = Client::connect(server.addr);
    again.send(&made);
    assert_eq!(again.receive(), first, "and on another");
    // Under another number it is another call.
    again.xid += 100;
    let anew = record(&mut again, &[&ROOT[..], &[mkdir(b"d")]].concat());
    again.send(&anew);
    assert_eq!(status(&again.receive()), Nfsstat4::EXIST);
    let create = Opnum4::CREATE.0 as u8;
    // Four operations each of the two that were done, and one for each repeat.
    let counted = server.records(10);
    let creates = counted.iter().filter(|r| r.protocol == Protocol::Nfs4 as u8 && r.op == create);
    let replays = creates.clone().filter(|r| r.flags & flag::REPLAY != 0).count();
    assert_eq!((creates.count(), replays), (4, 2));
}

#[test]
fn what_changes_nothing_is_not_kept() {
    let server = Server::fresh();
    let mut client = Client::connect(server.addr);
    let asked = record(&mut client, &[&ROOT[..], &[ArgOp::Getfh(())]].concat());
    client.send(&asked);
    assert_eq!(status(&client.receive()), Nfsstat4::OK);
    client.send(&asked);
    assert_eq!(status(&client.receive()), Nfsstat4::OK);
    let replayed = |r: &&probe::op::OpRecord| r.flags & flag::REPLAY != 0;
    assert_eq!(server.records(8).iter().filter(replayed).count(), 0);
}

/// A record with its message in fragments of `size` bytes.
fn in_fragments(record: &[u8], size: usize) -> Vec<u8> {
    let message = &record[4..];
    let mut out = Vec::new();
    let last = message.len().div_ceil(size) - 1;
    for (at, piece) in message.chunks(size).enumerate() {
        let mark = piece.len() as u32 | if at == last { 1 << 31 } else { 0 };
        out.extend(mark.to_be_bytes());
        out.extend(piece);
    }
    out
}

#[test]
fn the_largest_write_arrives_in_pieces_of_2_kib() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let file = crate::procedures::create(&mut client, &root, "large");
    let data = vec![7; base::limits::IO_SIZE_MAX as usize];
    let write = ArgOp::Write(WriteArgs4 {
        stateid: Stateid4::ANONYMOUS,
        offset: 0,
        stable: StableHow4::UNSTABLE,
        data: &data,
    });
    let putfh = ArgOp::Putfh(PutfhArgs4 { object: Fh4(&file) });
    let call = record(&mut client, &[putfh, write]);
    client.send(&in_fragments(&call, 2048));
    let reply = client.receive();
    let (_, rest) = reply.open();
    let mut r: Reader<'_> = rest;
    assert_eq!(CompoundRes::decode(&mut r).expect("a head").status, Nfsstat4::OK);
    let results: Vec<_> = (0..2).map(|_| ResOp::decode(&mut r).expect("a result")).collect();
    let ResOp::Write(Res4::Ok(done)) = &results[1] else { panic!("{results:?}") };
    assert_eq!(done.count as usize, data.len());
}

fn read_at(offset: u64, count: u32) -> ArgOp<'static> {
    ArgOp::Read(ReadArgs4 { stateid: Stateid4::ANONYMOUS, offset, count })
}

/// Large data leaves from the page cache when it is the last of its compound: of odd lengths,
/// across the end of the file, between small reads, and before another operation, which needs a
/// copy.
#[test]
fn large_reads_at_the_end_of_compounds_are_whole_and_in_their_frames() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let file = crate::procedures::create(&mut client, &root, "large");
    let data: Vec<u8> = (0..900_001_u32).map(|n| (n / 5 % 253) as u8).collect();
    for (n, part) in data.chunks(300_000).enumerate() {
        crate::procedures::write(&mut client, &file, n as u64 * 300_000, part);
    }
    let reads = [(0, 100_001), (7, 10), (200_000, 600_002), (800_001, 1 << 20), (3, 899_999)];
    for last in [true, false, true] {
        let mut bytes = Vec::new();
        let mut wanted = std::collections::HashMap::new();
        for (offset, count) in reads {
            let mut ops =
                vec![ArgOp::Putfh(PutfhArgs4 { object: Fh4(&file) }), read_at(offset, count)];
            ops.extend((!last).then_some(ArgOp::Getfh(())));
            bytes.extend(record(&mut client, &ops));
            wanted.insert(client.xid, (offset as usize, count as usize, ops.len()));
        }
        client.send(&bytes);
        for _ in reads {
            let reply = client.receive();
            let (offset, count, ops) = wanted.remove(&reply.xid).expect("each is answered once");
            let (_, mut r) = reply.open();
            assert_eq!(CompoundRes::decode(&mut r).expect("a head").status, Nfsstat4::OK);
            let results: Vec<_> =
                (0..ops).map(|_| ResOp::decode(&mut r).expect("a result")).collect();
            r.finish().expect("nothing more");
            let ResOp::Read(Res4::Ok(ok)) = &results[1] else { panic!("{results:?}") };
            let end = data.len().min(offset + count);
            assert!(ok.data == &data[offset..end], "{count} bytes at {offset}");
            assert_eq!(ok.eof, end == data.len());
        }
    }
    let all = 2 + data.len().div_ceil(300_000) + 3 * 2 * reads.len() + reads.len();
    let moved: u64 = server.records(all).iter().map(|r| u64::from(r.bytes)).sum();
    assert!(moved > 3 * 1_700_000, "bytes are counted: {moved}");
}

/// A fattr4 of these; its bytes live as long as the test's process.
fn fattr(attrs: &Attrs4<'_>) -> Fattr4<'static> {
    let mut bytes = Vec::new();
    attrs.encode(&mut Writer::new(&mut bytes));
    wire::xdr::decode_all(bytes.leak()).expect("attributes")
}

fn ace(who: &[u8], access_mask: u32) -> Nfsace4<'_> {
    Nfsace4 { kind: acetype4::ALLOWED, flag: 0, access_mask, who: Utf8str(who) }
}

#[test]
fn a_directory_is_made_with_its_access_control_list() {
    let server = Server::fresh();
    let mut client = Client::connect(server.addr);
    let attrs = Attrs4 {
        acl: Some(wire::xdr::Seq(vec![
            ace(b"OWNER@", acemask4::READ_DATA | acemask4::EXECUTE),
            ace(b"1234", acemask4::READ_DATA),
            ace(b"GROUP@", 0),
            ace(b"EVERYONE@", 0),
        ])),
        ..Attrs4::default()
    };
    let create = ArgOp::Create(CreateArgs4 {
        objtype: Createtype4::Other(Ftype4::DIR),
        objname: Component4(b"d"),
        createattrs: fattr(&attrs),
    });
    let getattr = GetattrArgs4 { attr_request: Bitmap4::of(&[attr4::ACL, attr4::ACLSUPPORT]) };
    let ops = [&ROOT[..], &[create, ArgOp::Getattr(getattr)]].concat();
    let call = record(&mut client, &ops);
    client.send(&call);
    let reply = client.receive();
    if status(&reply) == Nfsstat4::ATTRNOTSUPP {
        println!("SKIP access control lists: the temporary folder's file system has none");
        return;
    }
    let (_, mut r) = reply.open();
    assert_eq!(CompoundRes::decode(&mut r).expect("a head").status, Nfsstat4::OK);
    let results: Vec<_> = (0..5).map(|_| ResOp::decode(&mut r).expect("a result")).collect();
    let [.., ResOp::Create(Res4::Ok(made)), ResOp::Getattr(Res4::Ok(got))] = &results[..] else {
        panic!("{results:?}")
    };
    assert!(made.attrset.has(attr4::ACL), "it was set");
    let got: Attrs4<'_> = got.obj_attributes.values().expect("attributes");
    let named = got.acl.expect("a list").0.into_iter().find(|ace| ace.who.0 == b"1234");
    assert!(named.is_some_and(|ace| ace.access_mask & acemask4::READ_DATA != 0));
}
