//! The client against a small server in this process, built on the same codec: every operation,
//! wrong content, a changed verifier, replies in any cut and in many fragments.

use super::*;
use crate::client::{Fault, Options};
use crate::pattern::Content;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use wire::mount3::{Fhandle3, Flavors, MOUNT_PROGRAM, MntRes, MntResOk};
use wire::nfs3::*;
use wire::rpc::{Framed, Framer, open_call, success};
use wire::xdr::{Decode, Encode, Reader, Writer};

/// The faults that the server is to inject, and how it cuts its replies.
#[derive(Default)]
struct Mood {
    corrupt: AtomicBool,
    verifier: AtomicU64,
    chunk: AtomicU64,
    fragment: AtomicU64,
}

#[derive(Default)]
struct Store {
    names: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
}

fn serve(mood: Arc<Mood>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let store = Arc::new(Store::default());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (mood, store) = (Arc::clone(&mood), Arc::clone(&store));
            std::thread::spawn(move || connection(stream, &mood, &store));
        }
    });
    port
}

fn connection(mut stream: TcpStream, mood: &Mood, store: &Store) {
    let (mut input, mut framer) = (Vec::new(), Framer::new());
    let mut part = vec![0; 65_536];
    while let Ok(n @ 1..) = stream.read(&mut part) {
        input.extend_from_slice(&part[..n]);
        while let Framed::Record { body, consumed } = framer.next(&input).unwrap() {
            let mut reply = Vec::new();
            answer(body, &mut reply, mood, store);
            send(&mut stream, &reply, mood);
            input.drain(..consumed);
        }
    }
}

/// As one record, in fragments and pieces of the sizes asked for.
fn send(stream: &mut TcpStream, reply: &[u8], mood: &Mood) {
    let size = |n: u64| if n == 0 { usize::MAX } else { n as usize };
    let mut bytes = Vec::new();
    let mut fragments = reply.chunks(size(mood.fragment.load(Ordering::SeqCst))).peekable();
    while let Some(fragment) = fragments.next() {
        let last = if fragments.peek().is_none() { 0x8000_0000 } else { 0 };
        bytes.extend_from_slice(&(last | fragment.len() as u32).to_be_bytes());
        bytes.extend_from_slice(fragment);
    }
    for piece in bytes.chunks(size(mood.chunk.load(Ordering::SeqCst))) {
        stream.write_all(piece).unwrap();
    }
}

fn answer(body: &[u8], out: &mut Vec<u8>, mood: &Mood, store: &Store) {
    let (call, mut r) = open_call(body).unwrap();
    let mut w = Writer::new(out);
    success(&mut w, call.xid);
    if call.prog == MOUNT_PROGRAM {
        let fhandle = Fhandle3(b"/");
        MntRes::Ok(MntResOk { fhandle, auth_flavors: Flavors(vec![1]) }).encode(&mut w);
        return;
    }
    let verf = mood.verifier.load(Ordering::SeqCst).to_be_bytes();
    let mut names = store.names.lock().unwrap();
    let path = |what: &DiropArgs<'_>| [what.dir.0, b"/", what.name.0].concat();
    match Proc(call.proc) {
        Proc::NULL => {}
        Proc::GETATTR => {
            GetattrArgs::decode(&mut r).unwrap();
            GetattrRes::Ok(Fattr3::default()).encode(&mut w);
        }
        Proc::LOOKUP => {
            let key = path(&LookupArgs::decode(&mut r).unwrap().what);
            match names.contains_key(&key) {
                true => {
                    let object = Fh3(&key);
                    let (obj_attributes, dir_attributes) = (None, None);
                    LookupRes::Ok(LookupResOk { object, obj_attributes, dir_attributes })
                        .encode(&mut w);
                }
                false => LookupRes::Fail(Nfsstat3::NOENT, None).encode(&mut w),
            }
        }
        Proc::MKDIR => {
            let key = path(&MkdirArgs::decode(&mut r).unwrap().where_);
            made(key, &mut names, &mut w);
        }
        Proc::CREATE => {
            let key = path(&CreateArgs::decode(&mut r).unwrap().where_);
            made(key, &mut names, &mut w);
        }
        Proc::REMOVE | Proc::RMDIR => {
            let key = path(&RemoveArgs::decode(&mut r).unwrap().object);
            match names.remove(&key) {
                Some(_) => RemoveRes::Ok(WccData::default()).encode(&mut w),
                None => RemoveRes::Fail(Nfsstat3::NOENT, WccData::default()).encode(&mut w),
            }
        }
        Proc::SETATTR => {
            let args = SetattrArgs::decode(&mut r).unwrap();
            let size = args.new_attributes.size.unwrap() as usize;
            names.get_mut(args.object.0).unwrap().resize(size, 0);
            SetattrRes::Ok(WccData::default()).encode(&mut w);
        }
        Proc::WRITE => {
            let args = WriteArgs::decode(&mut r).unwrap();
            let file = names.get_mut(args.file.0).unwrap();
            let end = args.offset as usize + args.data.len();
            file.resize(file.len().max(end), 0);
            file[args.offset as usize..end].copy_from_slice(args.data);
            let (file_wcc, count, committed) = (WccData::default(), args.count, args.stable);
            WriteRes::Ok(WriteResOk { file_wcc, count, committed, verf }).encode(&mut w);
        }
        Proc::COMMIT => {
            CommitArgs::decode(&mut r).unwrap();
            CommitRes::Ok(CommitResOk { file_wcc: WccData::default(), verf }).encode(&mut w);
        }
        Proc::READ => read(&mut r, &names, mood, &mut w),
        other => panic!("unexpected {other:?}"),
    }
}

fn made(key: Vec<u8>, names: &mut HashMap<Vec<u8>, Vec<u8>>, w: &mut Writer<'_>) {
    names.entry(key).or_default();
    // Without the handle, which a server may leave out.
    let dir_wcc = WccData::default();
    CreateRes::Ok(NewResOk { obj: None, obj_attributes: None, dir_wcc }).encode(w);
}

fn read(r: &mut Reader<'_>, names: &HashMap<Vec<u8>, Vec<u8>>, mood: &Mood, w: &mut Writer<'_>) {
    let args = ReadArgs::decode(r).unwrap();
    let file = &names[args.file.0];
    let from = (args.offset as usize).min(file.len());
    let to = (from + args.count as usize).min(file.len());
    let mut data = file[from..to].to_vec();
    if mood.corrupt.load(Ordering::SeqCst) && !data.is_empty() {
        data[0] ^= 1;
    }
    let file_attributes = Some(Fattr3::default());
    let (count, eof) = (data.len() as u32, to == file.len());
    ReadRes::Ok(ReadResOk { file_attributes, count, eof, data: &data }).encode(w);
}

fn at(port: u16) -> Nfs3At {
    let (host, path) = ("127.0.0.1".into(), "/x".into());
    Nfs3At { host, port, rdma: false, mount_port: port, path }
}

fn open(mood: &Arc<Mood>) -> Nfs3Client {
    let port = serve(Arc::clone(mood));
    let at = at(port);
    let bind = Some("127.0.0.14".parse().unwrap());
    let options = Options { bind, seed: 3, check_one_in: 16, slots: 8 };
    Nfs3Client::open(&at, Checker::new(Content::new(3), 16), &options).unwrap()
}

fn run(client: &mut Nfs3Client, ops: &[Op]) -> Vec<Result<u32, Fault>> {
    for (slot, op) in ops.iter().enumerate() {
        client.submit(slot as u32, *op).unwrap();
    }
    client.flush().unwrap();
    let mut done = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(60);
    while done.len() < ops.len() {
        assert!(Instant::now() < deadline, "{done:?}");
        client.wait(Duration::from_millis(50), &mut done).unwrap();
    }
    done.sort_by_key(|c| c.slot);
    done.into_iter().map(|c| c.outcome).collect()
}

const SET: FileSet = FileSet { client: 4, files: 2, size: 3 << 20 };

#[test]
fn every_operation_in_any_cut() {
    for (chunk, fragment) in [(0, 0), (1000, 0), (7, 0), (0, 300), (5000, 200_000)] {
        let mood = Arc::new(Mood::default());
        let mut client = open(&mood);
        client.prepare(&SET).unwrap();
        mood.chunk.store(chunk, Ordering::SeqCst);
        mood.fragment.store(fragment, Ordering::SeqCst);
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
        let done = run(&mut client, &ops);
        let bytes = [0, 0, 4096, large, 1, 4096, 0, 0].map(Ok);
        assert_eq!(done, bytes, "cut {chunk}, fragments {fragment}");
        assert_eq!(run(&mut client, &[Op::Remove { name: 9 }]), [Ok(0)]);
        let gone = run(&mut client, &[Op::Remove { name: 9 }]);
        assert_eq!(gone, [Err(Fault::Status(Nfsstat3::NOENT.0))]);
        client.clean(&SET).unwrap();
    }
}

#[test]
fn wrong_content_and_short_reads_are_seen() {
    let mood = Arc::new(Mood::default());
    let mut client = open(&mood);
    client.prepare(&SET).unwrap();
    mood.corrupt.store(true, Ordering::SeqCst);
    for len in [1, 4096, 1 << 20] {
        let read = Op::Read { file: 0, offset: 0, len };
        assert_eq!(run(&mut client, &[read]), [Err(Fault::Corrupt)], "{len}");
    }
    mood.corrupt.store(false, Ordering::SeqCst);
    let past = Op::Read { file: 0, offset: SET.size - 10, len: 4096 };
    assert_eq!(run(&mut client, &[past]), [Err(Fault::Short)]);
    let past = Op::Read { file: 0, offset: SET.size - 70_000, len: 1 << 20 };
    assert_eq!(run(&mut client, &[past]), [Err(Fault::Short)]);
}

#[test]
fn a_changed_verifier_is_reported_at_commit() {
    let mood = Arc::new(Mood::default());
    let mut client = open(&mood);
    client.prepare(&SET).unwrap();
    let write = Op::Write { file: 0, offset: 0, len: 1 << 20, stable: false };
    let commit = Op::Commit { file: 0 };
    assert_eq!(run(&mut client, &[write]), [Ok(1 << 20)]);
    assert_eq!(run(&mut client, &[commit]), [Ok(0)]);
    assert_eq!(run(&mut client, &[write]), [Ok(1 << 20)]);
    mood.verifier.store(99, Ordering::SeqCst);
    assert_eq!(run(&mut client, &[commit]), [Err(Fault::VerifierChanged)]);
    assert_eq!(run(&mut client, &[write]), [Ok(1 << 20)]);
    assert_eq!(run(&mut client, &[commit]), [Ok(0)]);
}

#[test]
fn what_was_prepared_is_not_written_again() {
    let mood = Arc::new(Mood::default());
    let mut client = open(&mood);
    client.prepare(&SET).unwrap();
    let first = client.calls();
    client.prepare(&SET).unwrap();
    // A directory, and per file a lookup and two probes.
    assert_eq!(client.calls() - first, 1 + 2 * 3);
}

#[test]
fn a_server_that_leaves_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let gone = std::thread::spawn(move || drop(listener.accept().unwrap()));
    let mut link = Link::open("127.0.0.1", port, None).unwrap();
    gone.join().unwrap();
    link.set_timeout(Duration::from_secs(5)).unwrap();
    assert!(matches!(link.receive(&mut [0; 16]), Err(ClientError::Closed)));
}

#[test]
fn a_port_without_mount_is_reported_with_the_form_to_use() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut input = vec![0; 4096];
        let n = stream.read(&mut input).unwrap();
        let (call, _) = open_call(&input[4..n]).unwrap();
        let mut reply = Vec::new();
        wire::rpc::prog_unavail(&mut Writer::new(&mut reply), call.xid);
        stream.write_all(&(0x8000_0000 | reply.len() as u32).to_be_bytes()).unwrap();
        stream.write_all(&reply).unwrap();
    });
    let at = at(port);
    let said = super::setup::mount(&at, None).unwrap_err().to_string();
    assert!(said.contains(&format!("port {port} of 127.0.0.1")), "{said}");
    assert!(said.contains("?mountport=PORT"), "{said}");
    server.join().unwrap();
}
