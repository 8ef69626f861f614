//! An end is orderly, and what a client may rely on over a restart holds: verifiers and exclusive
//! creation.

use std::fs;
use std::net::TcpStream;
use std::time::Duration;

use e2e::process;
use wire::nfs3::{CreateHow, Fh3, Nfsstat3, Proc, StableHow, WriteArgs, WriteRes};
use wire::rpc::ReplyHeader;
use wire::xdr::{Decode, Reader};

use super::{Scene, mode, status};

/// Writes that are sent at once: together less than the server receives at once.
const IN_FLIGHT: usize = 12;
const BLOCK: usize = 4096;

#[test]
fn sigterm_answers_what_it_has_taken() {
    let scene = Scene::new("drain");
    let mut server = scene.start();
    let (mut client, root) = server.mount(0, 0);
    let mut files = Vec::new();
    for n in 0..IN_FLIGHT {
        let made = client.create(&root, &format!("f{n}"), CreateHow::Guarded(mode(0o644)));
        files.push(made.expect("a file").handle);
    }
    let mut all = Vec::new();
    for (n, file) in files.iter().enumerate() {
        let data = vec![n as u8 + 1; BLOCK];
        let (count, stable) = (BLOCK as u32, StableHow::FILE_SYNC);
        let args = WriteArgs { file: Fh3(file), offset: 0, count, stable, data: &data };
        all.extend(client.nfs_record(Proc::WRITE, &args));
    }
    client.send(&all).expect("sent");
    let mut replies = vec![client.receive().expect("the first answer")];
    // All were sent in one piece and fit into one receive: they are taken, some are in flight.
    process::signal(server.pid(), libc::SIGTERM);
    while let Ok(reply) = client.receive() {
        replies.push(reply);
    }
    assert_eq!(replies.len(), IN_FLIGHT, "answers");
    for reply in &replies {
        let mut r = Reader::new(reply);
        ReplyHeader::decode(&mut r).expect("a reply");
        let done = WriteRes::decode(&mut r).expect("a result").into_result().expect("written");
        assert_eq!((done.count as usize, done.committed), (BLOCK, StableHow::FILE_SYNC));
    }
    let code = server.stop();
    assert_eq!(code.code(), Some(0), "{}", server.stderr_text());
    assert!(TcpStream::connect(server.nfs()).is_err(), "nobody listens any more");
    for n in 0..IN_FLIGHT {
        let data = fs::read(scene.dir.join(format!("f{n}"))).expect("the file");
        assert_eq!(data, vec![n as u8 + 1; BLOCK], "f{n}");
    }
}

#[test]
fn sigterm_does_not_wait_for_idle_clients() {
    let scene = Scene::new("drain-idle");
    let mut server = scene.start();
    let (mut client, root) = server.mount(0, 0);
    client.getattr(&root).expect("attributes");
    let idle: Vec<_> = (0..50).map(|_| TcpStream::connect(server.nfs()).expect("one")).collect();
    let half = client.nfs_record(Proc::GETATTR, &wire::nfs3::GetattrArgs { object: Fh3(&root) });
    client.send(&half[..20]).expect("sent");
    assert_eq!(server.stop().code(), Some(0));
    assert!(client.is_closed_within(Duration::from_secs(1)));
    drop(idle);
}

#[test]
fn the_write_verifier_is_new_after_each_start_and_only_then() {
    let scene = Scene::new("verifier");
    let mut seen = Vec::new();
    for _ in 0..3 {
        let mut server = scene.start();
        let (mut client, root) = server.mount(0, 0);
        let how = CreateHow::Unchecked(mode(0o644));
        let file = client.create(&root, "file", how).expect("a file").handle;
        let write = client.write(&file, 0, b"data", StableHow::UNSTABLE).expect("a write");
        let (mut other, _) = server.mount(1, 1);
        let commit = other.commit(&file).or_else(|_| client.commit(&file)).expect("a commit");
        assert_eq!(write.2, commit, "the same for all of one life");
        let stable = client.write(&file, 0, b"data", StableHow::FILE_SYNC).expect("a write");
        assert_eq!((stable.1, stable.2), (StableHow::FILE_SYNC, commit));
        assert!(!seen.contains(&commit), "{commit:?} again");
        seen.push(commit);
        assert!(server.stop().success());
    }
}

#[test]
fn exclusive_creation_is_the_same_when_repeated() {
    let scene = Scene::new("exclusive");
    let mut server = scene.start();
    let (mut client, root) = server.mount(0, 0);
    let (mine, theirs) = (CreateHow::Exclusive(*b"my-verif"), CreateHow::Exclusive(*b"anothers"));
    let first = client.create(&root, "file", mine).expect("made").handle;
    // With another transaction number: not the replay cache, but the file itself knows.
    assert_eq!(client.create(&root, "file", mine).expect("repeated").handle, first);
    assert_eq!(status(client.create(&root, "file", theirs)), Nfsstat3::EXIST);
    assert!(server.stop().success());

    let mut server = scene.start();
    let (mut client, root) = server.mount(0, 0);
    assert_eq!(client.create(&root, "file", mine).expect("after a restart").handle, first);
    assert_eq!(status(client.create(&root, "file", theirs)), Nfsstat3::EXIST);
    let guarded = CreateHow::Guarded(mode(0o644));
    assert_eq!(status(client.create(&root, "file", guarded)), Nfsstat3::EXIST);
    client.write(&first, 0, b"data", StableHow::FILE_SYNC).expect("written");
    assert_eq!(status(client.create(&root, "file", theirs)), Nfsstat3::EXIST);
    assert_eq!(client.read_all(&first).as_deref(), Ok(&b"data"[..]));
    assert!(server.stop().success());
}
