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

fn record(client: &mut Client, ops: &[ArgOp<'_>]) -> Vec<u8> {
    client.record(NFS4_PROGRAM, NFS_V4, COMPOUND, &Compound(0, ops))
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

/// A record whose message is sent in pieces of `size` bytes.
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
