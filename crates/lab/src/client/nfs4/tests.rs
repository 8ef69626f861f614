//! The client against a small server in this process, built on the same codec: every operation,
//! its slots and sequence numbers, few slots, delays, wrong content, a changed verifier, replies
//! in any cut, and that it leaves nothing behind.

use super::*;
use crate::client::{Fault, Options};
use crate::pattern::Content;
use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use wire::nfs4::*;
use wire::rpc::{Framed, Framer, open_call, success};
use wire::xdr::{Decode, Encode, Writer};

/// The faults that the server is to inject, how it cuts its replies, and what it has seen.
#[derive(Default)]
struct World {
    corrupt: bool,
    verifier: u64,
    chunk: usize,
    fragment: usize,
    /// Most slots that are granted; 0 grants what is asked for.
    slots: u32,
    /// Compounds that are still to be delayed at their second operation.
    delays: u32,
    files: HashMap<Vec<u8>, Vec<u8>>,
    /// Last sequence number by slot.
    sequences: HashMap<u32, u32>,
    opens: HashSet<Vec<u8>>,
    /// Operations answered.
    answered: u64,
    sessions: u32,
    clients: u32,
    cached: u32,
}

type Shared = Arc<Mutex<World>>;

fn look(world: &Shared) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(world: &Shared) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let world = Arc::clone(world);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let world = Arc::clone(&world);
            std::thread::spawn(move || connection(stream, &world));
        }
    });
    port
}

fn connection(mut stream: TcpStream, world: &Shared) {
    let (mut input, mut framer) = (Vec::new(), Framer::new());
    let mut part = vec![0; 65_536];
    while let Ok(n @ 1..) = stream.read(&mut part) {
        input.extend_from_slice(&part[..n]);
        while let Framed::Record { body, consumed } = framer.next(&input).unwrap() {
            let mut reply = Vec::new();
            let cut = {
                let mut world = look(world);
                answer(body, &mut reply, &mut world);
                (world.chunk, world.fragment)
            };
            send(&mut stream, &reply, cut);
            input.drain(..consumed);
        }
    }
}

/// As one record, in fragments and pieces of the sizes asked for.
fn send(stream: &mut TcpStream, reply: &[u8], (chunk, fragment): (usize, usize)) {
    let size = |n: usize| if n == 0 { usize::MAX } else { n };
    let mut bytes = Vec::new();
    let mut fragments = reply.chunks(size(fragment)).peekable();
    while let Some(fragment) = fragments.next() {
        let last = if fragments.peek().is_none() { 0x8000_0000 } else { 0 };
        bytes.extend_from_slice(&(last | fragment.len() as u32).to_be_bytes());
        bytes.extend_from_slice(fragment);
    }
    for piece in bytes.chunks(size(chunk)) {
        stream.write_all(piece).unwrap();
    }
}

/// A compound, operation by operation, until one fails.
fn answer(body: &[u8], out: &mut Vec<u8>, world: &mut World) {
    let (call, mut r) = open_call(body).unwrap();
    success(&mut Writer::new(out), call.xid);
    let head = CompoundArgs::decode(&mut r).unwrap();
    assert_eq!(head.minorversion, 1);
    let (mut results, mut current, mut done, mut status) =
        (Vec::new(), Vec::new(), 0, Nfsstat4::OK);
    for n in 0..head.count {
        let op = ArgOp::decode(&mut r).unwrap();
        let alone = matches!(
            op,
            ArgOp::ExchangeId(_)
                | ArgOp::CreateSession(_)
                | ArgOp::DestroySession(_)
                | ArgOp::DestroyClientid(_)
        );
        assert_eq!(n == 0, matches!(op, ArgOp::Sequence(_)) || alone, "{op:?}");
        let start = results.len();
        let mut w = Writer::new(&mut results);
        status = operation(&op, n, &mut current, world, &mut w);
        if !status.is_ok() {
            results.truncate(start);
            let mut w = Writer::new(&mut results);
            op.number().encode(&mut w);
            status.encode(&mut w);
        }
        done += 1;
        world.answered += 1;
        if !status.is_ok() {
            break;
        }
    }
    if status.is_ok() {
        r.finish().unwrap();
    }
    let mut w = Writer::new(out);
    CompoundRes { status, tag: head.tag, count: done }.encode(&mut w);
    w.raw(&results);
}

/// Does one operation; with anything but NFS4_OK what was written does not count.
fn operation(
    op: &ArgOp<'_>,
    n: u32,
    current: &mut Vec<u8>,
    world: &mut World,
    w: &mut Writer<'_>,
) -> Nfsstat4 {
    if n > 0 && world.delays > 0 {
        world.delays -= 1;
        return Nfsstat4::DELAY;
    }
    let key = |current: &[u8], name: &[u8]| [current, b"/", name].concat();
    let done = Nfsstat4::OK;
    let result = match op {
        ArgOp::ExchangeId(_) | ArgOp::CreateSession(_) | ArgOp::Sequence(_) => {
            return session(op, world, w);
        }
        ArgOp::DestroySession(_) => {
            world.sessions -= 1;
            ResOp::DestroySession(Res4::Ok(()))
        }
        ArgOp::DestroyClientid(_) => {
            world.clients -= 1;
            ResOp::DestroyClientid(Res4::Ok(()))
        }
        ArgOp::ReclaimComplete(_) => ResOp::ReclaimComplete(Res4::Ok(())),
        ArgOp::Putrootfh(()) => {
            current.clear();
            ResOp::Putrootfh(Res4::Ok(()))
        }
        ArgOp::Putfh(args) => {
            *current = args.object.0.to_vec();
            ResOp::Putfh(Res4::Ok(()))
        }
        ArgOp::Lookup(args) => {
            *current = key(current, args.objname.0);
            if !world.files.contains_key(current) && current != b"/export" {
                return Nfsstat4::NOENT;
            }
            ResOp::Lookup(Res4::Ok(()))
        }
        ArgOp::Getfh(()) => {
            ResOp::Getfh(Res4::Ok(GetfhResOk4 { object: Fh4(current) })).encode(w);
            return done;
        }
        ArgOp::Getattr(args) => {
            assert!(args.attr_request.has(attr4::SIZE));
            ResOp::Getattr(Res4::Ok(GetattrResOk4 { obj_attributes: Fattr4::NONE }))
        }
        ArgOp::Create(args) => {
            *current = key(current, args.objname.0);
            world.files.insert(current.clone(), Vec::new());
            let (cinfo, attrset) = (ChangeInfo4::default(), Bitmap4::EMPTY);
            ResOp::Create(Res4::Ok(CreateResOk4 { cinfo, attrset }))
        }
        ArgOp::Remove(args) => match world.files.remove(&key(current, args.target.0)) {
            Some(_) => ResOp::Remove(Res4::Ok(RemoveResOk4 { cinfo: ChangeInfo4::default() })),
            None => return Nfsstat4::NOENT,
        },
        ArgOp::Setattr(args) => {
            let size = args.obj_attributes.values().unwrap().size.unwrap();
            world.files.get_mut(current).unwrap().resize(size as usize, 0);
            ResOp::Setattr(SetattrRes4 { status: done, attrsset: Bitmap4::EMPTY })
        }
        _ => return open_file(op, current, world, w),
    };
    result.encode(w);
    done
}

fn session(op: &ArgOp<'_>, world: &mut World, w: &mut Writer<'_>) -> Nfsstat4 {
    let result = match op {
        ArgOp::ExchangeId(_) => {
            world.clients += 1;
            ResOp::ExchangeId(Res4::Ok(ExchangeIdResOk4 {
                clientid: 7,
                sequenceid: 5,
                flags: 0,
                state_protect: StateProtectR4::None(()),
                server_owner: ServerOwner4 { minor_id: 0, major_id: Opaque4(b"us") },
                server_scope: Opaque4(b"here"),
                server_impl_id: None,
            }))
        }
        ArgOp::CreateSession(args) => {
            assert_eq!((args.clientid, args.sequence), (7, 5));
            world.sessions += 1;
            let mut fore_chan_attrs = args.fore_chan_attrs;
            if world.slots > 0 {
                fore_chan_attrs.maxrequests = world.slots;
            }
            world.slots = fore_chan_attrs.maxrequests;
            ResOp::CreateSession(Res4::Ok(CreateSessionResOk4 {
                sessionid: [9; 16],
                sequence: 5,
                flags: 0,
                fore_chan_attrs,
                back_chan_attrs: args.back_chan_attrs,
            }))
        }
        ArgOp::Sequence(args) => {
            assert_eq!(args.sessionid, [9; 16]);
            let last = world.sequences.entry(args.slotid).or_default();
            if args.slotid >= world.slots || args.sequenceid != *last + 1 {
                return Nfsstat4::SEQ_MISORDERED;
            }
            *last += 1;
            world.cached += u32::from(args.cachethis);
            ResOp::Sequence(Res4::Ok(SequenceResOk4 {
                sessionid: args.sessionid,
                sequenceid: args.sequenceid,
                slotid: args.slotid,
                highest_slotid: world.slots - 1,
                target_highest_slotid: world.slots - 1,
                status_flags: 0,
            }))
        }
        other => panic!("unexpected {other:?}"),
    };
    result.encode(w);
    Nfsstat4::OK
}

/// The stateid of a file: what `current stateid` means after its OPEN as well.
const OPENED: Stateid4 = Stateid4 { seqid: 1, other: *b"lab's opens." };

fn open_file(
    op: &ArgOp<'_>,
    current: &mut Vec<u8>,
    world: &mut World,
    w: &mut Writer<'_>,
) -> Nfsstat4 {
    let writeverf = world.verifier.to_be_bytes();
    if let ArgOp::Read(args) = op {
        assert_eq!(args.stateid, OPENED);
        return read(args, &world.files[current], world.corrupt, w);
    }
    let result = match op {
        ArgOp::Open(args) => {
            let OpenClaim4::Null(name) = args.claim else { panic!("{args:?}") };
            assert_eq!(args.share_access & share4::WANT_DELEG_MASK, share4::WANT_NO_DELEG);
            *current = [current.as_slice(), b"/", name.0].concat();
            world.files.entry(current.clone()).or_default();
            world.opens.insert(current.clone());
            ResOp::Open(Res4::Ok(OpenResOk4 {
                stateid: OPENED,
                cinfo: ChangeInfo4::default(),
                rflags: 0,
                attrset: Bitmap4::EMPTY,
                delegation: OpenDelegation4::None(()),
            }))
        }
        ArgOp::Close(args) => {
            assert!([OPENED, Stateid4::CURRENT].contains(&args.open_stateid), "{args:?}");
            assert!(world.opens.remove(current), "{current:?}");
            ResOp::Close(Res4::Ok(StateidResOk4 { stateid: Stateid4::INVALID }))
        }
        ArgOp::Write(args) => {
            assert_eq!(args.stateid, OPENED);
            let file = world.files.get_mut(current).unwrap();
            let end = args.offset as usize + args.data.len();
            file.resize(file.len().max(end), 0);
            file[args.offset as usize..end].copy_from_slice(args.data);
            let (count, committed) = (args.data.len() as u32, args.stable);
            ResOp::Write(Res4::Ok(WriteResOk4 { count, committed, writeverf }))
        }
        ArgOp::Commit(_) => ResOp::Commit(Res4::Ok(CommitResOk4 { writeverf })),
        other => panic!("unexpected {other:?}"),
    };
    result.encode(w);
    Nfsstat4::OK
}

fn read(args: &ReadArgs4, file: &[u8], corrupt: bool, w: &mut Writer<'_>) -> Nfsstat4 {
    let from = (args.offset as usize).min(file.len());
    let to = (from + args.count as usize).min(file.len());
    let mut data = file[from..to].to_vec();
    if corrupt && !data.is_empty() {
        data[0] ^= 1;
    }
    let eof = to == file.len();
    ResOp::Read(Res4::Ok(ReadResOk4 { eof, data: &data })).encode(w);
    Nfsstat4::OK
}

fn open(world: &Shared, slots: u32) -> Nfs4Client {
    let at = Nfs4At { host: "127.0.0.1".into(), port: serve(world), path: "/export".into() };
    let options = Options { bind: None, seed: 3, check_one_in: 16, slots };
    Nfs4Client::open(&at, Checker::new(Content::new(3), 16), &options).unwrap()
}

fn run(client: &mut Nfs4Client, ops: &[Op]) -> Vec<Result<u32, Fault>> {
    for (slot, op) in ops.iter().enumerate() {
        client.submit(slot as u32, *op).unwrap();
    }
    let mut done = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(60);
    while done.len() < ops.len() {
        assert!(Instant::now() < deadline, "{done:?}");
        client.flush().unwrap();
        client.wait(Duration::from_millis(50), &mut done).unwrap();
    }
    done.sort_by_key(|c| c.slot);
    done.into_iter().map(|c| c.outcome).collect()
}

const SET: FileSet = FileSet { client: 4, files: 2, size: 3 << 20 };

#[test]
fn every_operation_in_any_cut() {
    for (chunk, fragment) in [(0, 0), (1000, 0), (7, 0), (0, 300), (5000, 200_000)] {
        let world = Shared::default();
        let mut client = open(&world, 8);
        client.prepare(&SET).unwrap();
        look(&world).chunk = chunk;
        look(&world).fragment = fragment;
        let large = if fragment == 300 { 16_384 } else { 1 << 20 };
        let ops = [
            Op::Null,
            Op::Getattr { file: 1 },
            Op::Read { file: 0, offset: 4096, len: 4096 },
            Op::Read { file: 1, offset: 1 << 20, len: large },
            Op::Read { file: 1, offset: 77, len: 1 },
            Op::Write { file: 0, offset: 8192, len: 4096, stable: true },
            Op::Create { name: 9 },
            Op::Lookup { file: 0 },
        ];
        for _ in 0..3 {
            let done = run(&mut client, &ops);
            let bytes = [0, 0, 4096, large, 1, 4096, 0, 0].map(Ok);
            assert_eq!(done, bytes, "cut {chunk}, fragments {fragment}");
            assert_eq!(run(&mut client, &[Op::Remove { name: 9 }]), [Ok(0)]);
            let gone = run(&mut client, &[Op::Remove { name: 9 }]);
            assert_eq!(gone, [Err(Fault::Status(Nfsstat4::NOENT.0))]);
        }
        assert_eq!(look(&world).opens.len(), 2, "what was created was closed");
        assert_eq!(look(&world).cached, 9, "creations and removals only");
        assert_eq!(client.calls(), look(&world).answered);
        client.clean(&SET).unwrap();
        assert!(look(&world).opens.is_empty());
    }
}

#[test]
fn fewer_slots_than_asked_for_mean_fewer_calls_at_once() {
    let world = Shared::default();
    look(&world).slots = 3;
    let mut client = open(&world, 64);
    assert_eq!(client.granted(), Some(3));
    client.prepare(&SET).unwrap();
    let ops: Vec<_> = (0..64).map(|n| Op::Read { file: 0, offset: n * 512, len: 512 }).collect();
    assert!(run(&mut client, &ops).into_iter().all(|outcome| outcome == Ok(512)));
    let used: HashSet<_> = look(&world).sequences.keys().copied().collect();
    assert_eq!(used, HashSet::from([0, 1, 2]));
    assert_eq!(open(&Shared::default(), 64).granted(), None);
}

#[test]
fn delays_while_preparing_are_waited_out_and_reported_under_load() {
    let world = Shared::default();
    look(&world).delays = 2;
    let mut client = open(&world, 4);
    client.prepare(&SET).unwrap();
    look(&world).delays = 1;
    let read = Op::Read { file: 0, offset: 0, len: 4096 };
    assert_eq!(run(&mut client, &[read]), [Err(Fault::Status(Nfsstat4::DELAY.0))]);
    // The sequence number was used all the same.
    assert_eq!(run(&mut client, &[read]), [Ok(4096)]);
    look(&world).delays = 1;
    client.renew().unwrap();
    assert_eq!(client.calls(), look(&world).answered);
}

#[test]
fn wrong_content_and_short_reads_are_seen() {
    let world = Shared::default();
    let mut client = open(&world, 4);
    client.prepare(&SET).unwrap();
    look(&world).corrupt = true;
    for len in [1, 4096, 1 << 20] {
        let read = Op::Read { file: 0, offset: 0, len };
        assert_eq!(run(&mut client, &[read]), [Err(Fault::Corrupt)], "{len}");
    }
    look(&world).corrupt = false;
    for (before_end, len) in [(10, 4096), (70_000, 1 << 20)] {
        let past = Op::Read { file: 0, offset: SET.size - before_end, len };
        assert_eq!(run(&mut client, &[past]), [Err(Fault::Short)]);
    }
}

#[test]
fn a_changed_verifier_is_reported_at_commit() {
    let world = Shared::default();
    let mut client = open(&world, 4);
    client.prepare(&SET).unwrap();
    let write = Op::Write { file: 0, offset: 0, len: 1 << 20, stable: false };
    let commit = Op::Commit { file: 0 };
    assert_eq!(run(&mut client, &[write]), [Ok(1 << 20)]);
    look(&world).verifier = 99;
    assert_eq!(run(&mut client, &[commit]), [Err(Fault::VerifierChanged)]);
    assert_eq!(run(&mut client, &[write]), [Ok(1 << 20)]);
    assert_eq!(run(&mut client, &[commit]), [Ok(0)]);
}

#[test]
fn what_was_prepared_is_not_written_again() {
    let world = Shared::default();
    let mut client = open(&world, 4);
    client.prepare(&SET).unwrap();
    let first = client.calls();
    client.prepare(&SET).unwrap();
    // Closing both; the directory; for each file OPEN with GETFH, and two probes of three.
    assert_eq!(client.calls() - first, (1 + 2 * 2) + 4 + 2 * (4 + 2 * 3));
}

/// Sessions, client ids and opens that the server holds.
fn held(world: &Shared) -> (u32, u32, usize) {
    let world = look(world);
    (world.sessions, world.clients, world.opens.len())
}

#[test]
fn it_leaves_nothing_behind() {
    let world = Shared::default();
    let mut client = open(&world, 4);
    client.prepare(&SET).unwrap();
    assert_eq!(held(&world), (1, 1, 2));
    drop(client);
    assert_eq!(held(&world), (0, 0, 0));
}
