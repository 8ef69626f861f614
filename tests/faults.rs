//! Faults below the server are reported to the client that they concern, every time, over NFSv3 and
//! v4: a full file system, one over its quota, one that has become read-only, and one that cannot
//! write or flush. What had been acknowledged stays, and a client with data that may be lost learns
//! it from the write verifier.

use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use e2e::api::Api;
use e2e::crash::remote::{Outcome, Over, Remote};
use e2e::disk::Disk;
use e2e::nfs3::{Failure, Handle};
use e2e::place::{Limited, Memory};
use e2e::scratch::{Scratch, make_folder};
use e2e::server::{Options, Server};
use e2e::skip;
use sim::forget::{self, ForgetFs};
use wire::nfs3::{Nfsstat3, StableHow};

/// The uid of the clients.
const USER: u32 = 1000;
const BOTH: [Over; 2] = [Over::V3, Over::V4];
const STABILITIES: [StableHow; 3] =
    [StableHow::UNSTABLE, StableHow::DATA_SYNC, StableHow::FILE_SYNC];
/// What an OPEN is answered with while others may reclaim (RFC 8881 §15.1.9.2).
const GRACE: Nfsstat3 = Nfsstat3(10_013);
/// Bytes of a WRITE.
const BLOCK: u64 = 64 << 10;
/// Most objects that are made until there is no room for more.
const MANY: u32 = 10_000;

/// A server of a folder of a place.
struct Scene {
    server: Server,
    _scratch: Scratch,
}

impl Scene {
    fn new(place: &Path) -> Self {
        let share = place.join("share");
        make_folder(&share, Some(USER));
        let scratch = Scratch::new("faults");
        let server = Server::start(&Options::new(&share, &scratch.folder("state", None)));
        Self { server, _scratch: scratch }
    }

    fn client(&self, over: Over, name: &str) -> (Box<dyn Remote>, Handle) {
        let address: SocketAddr = (Ipv4Addr::LOCALHOST, self.server.nfs_port()).into();
        let mut client = over.connect(address, USER, name).expect("a client");
        let root = client.root("/export/share").expect("the share");
        (client, root)
    }
}

/// What a call is refused with.
fn refusal<T: std::fmt::Debug>(outcome: Outcome<T>) -> Nfsstat3 {
    match outcome {
        Err(Failure::Status(status)) => status,
        other => panic!("not refused: {other:?}"),
    }
}

fn block(of: u8) -> Vec<u8> {
    vec![of; BLOCK as usize]
}

/// Writes until there is no room: how many bytes were acknowledged, and what ended it.
fn fill(client: &mut dyn Remote, file: &[u8], most: u64, how: StableHow) -> (u64, Nfsstat3) {
    let mut at = 0;
    while at < most {
        match client.write(file, at, &block(b'f'), how) {
            Ok(wrote) => at += u64::from(wrote.count),
            failed => return (at, refusal(failed)),
        }
    }
    panic!("{most} bytes had room");
}

/// Everything that makes an object, by its name.
fn make(client: &mut dyn Remote, root: &[u8], tag: &str) -> [(&'static str, Outcome<()>); 4] {
    let name = |what: &str| format!("{tag}-{what}");
    [
        ("CREATE", client.create(root, &name("file"), 0o644).map(|_| ())),
        ("MKDIR", client.mkdir(root, &name("directory"), 0o755).map(|_| ())),
        ("SYMLINK", client.symlink(root, &name("symlink"), "target").map(|_| ())),
        ("MKNOD", client.mkfifo(root, &name("fifo"), 0o644).map(|_| ())),
    ]
}

/// Everything else that changes something: of `file`, which is `name`, and of the directory `gone`.
fn change(
    client: &mut dyn Remote,
    root: &[u8],
    (file, name): (&[u8], &str),
    gone: &str,
) -> [(&'static str, Outcome<()>); 6] {
    [
        ("SETATTR of the mode", client.chmod(file, 0o600).map(|_| ())),
        ("SETATTR of the size", client.truncate(file, 7)),
        ("LINK", client.link(file, root, &format!("{name}-linked")).map(|_| ())),
        ("RENAME", client.rename((root, name), (root, &format!("{name}-renamed")))),
        ("RMDIR", client.remove(root, gone, true)),
        ("REMOVE", client.remove(root, "victim", false)),
    ]
}

fn all_are(outcomes: impl IntoIterator<Item = (&'static str, Outcome<()>)>, status: Nfsstat3) {
    for (what, outcome) in outcomes {
        assert_eq!(outcome, Err(Failure::Status(status)), "{what}");
    }
}

#[test]
fn a_full_file_system_is_reported() {
    let place = match Memory::new("size=2m,nr_inodes=64") {
        Ok(place) => place,
        Err(why) => skip!("fault-full", "{why}"),
    };
    let scene = Scene::new(place.path());
    for over in BOTH {
        let (mut client, root) = scene.client(over, "full");
        let client = client.as_mut();
        let file = client.create(&root, "big", 0o644).expect("CREATE").handle;
        let (size, why) = fill(client, &file, 4 << 20, StableHow::UNSTABLE);
        assert_eq!(why, Nfsstat3::NOSPC, "{over:?}");
        assert!(size > 1 << 20, "{over:?}: {size} bytes had room");
        for how in STABILITIES.iter().chain(&STABILITIES) {
            let more = client.write(&file, size + BLOCK, &block(b'm'), *how);
            assert_eq!(refusal(more), Nfsstat3::NOSPC, "{over:?}, {how:?}");
        }
        client.write(&file, 0, &block(b'a'), StableHow::FILE_SYNC).expect("what has room already");
        client.commit(&file).expect("COMMIT of what was acknowledged");
        let data = client.read_all(&file).expect("READ");
        assert_eq!(data.len() as u64, size, "{over:?}");
        assert!(
            data.starts_with(&block(b'a')) && data[BLOCK as usize..].iter().all(|b| *b == b'f')
        );

        let made = (0..MANY).take_while(|n| client.mkdir(&root, &format!("d{n}"), 0o755).is_ok());
        let made = made.count();
        assert!((1..64).contains(&made), "{made} directories had room");
        for _ in 0..2 {
            all_are(make(client, &root, "full"), Nfsstat3::NOSPC);
        }
        for n in 0..made {
            client.remove(&root, &format!("d{n}"), true).expect("RMDIR");
        }
        // Over v4 the room of a file that is open is free when it is closed.
        client.close(&file).expect("CLOSE");
        client.remove(&root, "big", false).expect("REMOVE");
        let file = client.create(&root, "again", 0o644).expect("there is room again").handle;
        client.write(&file, 0, &block(b'a'), StableHow::FILE_SYNC).expect("WRITE");
        client.close(&file).expect("CLOSE");
        client.remove(&root, "again", false).expect("REMOVE");
    }
}

#[test]
fn a_quota_that_is_used_up_is_reported() {
    const LIMIT: u64 = 4 << 20;
    let place = match Limited::new(LIMIT) {
        Ok(place) => place,
        Err(why) => skip!("fault-quota", "{why}"),
    };
    let scene = Scene::new(place.path());
    for (over, how) in BOTH.into_iter().zip([StableHow::UNSTABLE, StableHow::FILE_SYNC]) {
        let (mut client, root) = scene.client(over, "quota");
        let client = client.as_mut();
        let file = client.create(&root, "big", 0o644).expect("CREATE").handle;
        let (size, why) = fill(client, &file, 2 * LIMIT, how);
        assert_eq!(why, Nfsstat3::DQUOT, "{over:?}");
        assert!(size > 1 << 20, "{over:?}: {size} bytes had room");
        for how in STABILITIES {
            let more = client.write(&file, size + BLOCK, &block(b'm'), how);
            assert_eq!(refusal(more), Nfsstat3::DQUOT, "{over:?}, {how:?}");
        }
        client.commit(&file).expect("COMMIT of what was acknowledged");
        assert_eq!(client.read_all(&file).expect("READ").len() as u64, size);
        client.remove(&root, "big", false).expect("REMOVE");
    }
}

#[test]
fn a_file_system_that_has_become_read_only_is_reported() {
    for over in BOTH {
        let place = match Memory::new("size=4m") {
            Ok(place) => place,
            Err(why) => skip!("fault-read-only", "{why}"),
        };
        let scene = Scene::new(place.path());
        let (mut client, root) = scene.client(over, "read-only");
        let client = client.as_mut();
        let share = place.path().join("share");
        for (name, what) in [("file", &b"data"[..]), ("victim", b"")] {
            std::fs::write(share.join(name), what).expect("a file");
            std::os::unix::fs::chown(share.join(name), Some(USER), None).expect("its owner");
        }
        client.mkdir(&root, "directory", 0o755).expect("MKDIR");
        let file = client.lookup(&root, "file").expect("LOOKUP");
        // Over version 4 that opens it, which outlives what happens below.
        assert_eq!(client.read_all(&file).expect("READ"), b"data");
        place.make_read_only().expect("nobody writes");

        for how in STABILITIES.iter().chain(&STABILITIES) {
            let refused = refusal(client.write(&file, 0, b"more", *how));
            assert_eq!(refused, Nfsstat3::ROFS, "{over:?}, {how:?}");
        }
        all_are(make(client, &root, "new"), Nfsstat3::ROFS);
        all_are(change(client, &root, (&file, "file"), "directory"), Nfsstat3::ROFS);
        client.commit(&file).expect("nothing is left to be written");
        assert_eq!(client.read_all(&file).expect("READ"), b"data");
        assert_eq!(client.names(&root).expect("READDIR").len(), 3);
    }
}

#[test]
fn a_flush_that_fails_is_reported() {
    if let Err(why) = forget::available() {
        skip!("fault-flush", "{why}");
    }
    let scratch = Scratch::new("fault-flush");
    let place = ForgetFs::mount(&scratch.folder("mount", None)).expect("the forgetful mount");
    let scene = Scene::new(place.path());
    for over in BOTH {
        let (mut client, root) = scene.client(over, "flush");
        let client = client.as_mut();
        let name = format!("{over:?}");
        let file = client.create(&root, &name, 0o644).expect("CREATE").handle;
        let gone = format!("{name}-directory");
        client.mkdir(&root, &gone, 0o755).expect("MKDIR");
        client.create(&root, "victim", 0o644).expect("CREATE");

        place.set_flush_failure(true);
        for _ in 0..2 {
            for how in [StableHow::DATA_SYNC, StableHow::FILE_SYNC] {
                let failed = client.write(&file, 0, &block(b'x'), how);
                assert_eq!(refusal(failed), Nfsstat3::IO, "{over:?}, {how:?}");
            }
            client.write(&file, 0, &block(b'x'), StableHow::UNSTABLE).expect("not flushed yet");
            assert_eq!(refusal(client.commit(&file)), Nfsstat3::IO, "{over:?}");
        }
        all_are(make(client, &root, &format!("{name}-new")), Nfsstat3::IO);
        all_are(change(client, &root, (&file, &name), &gone), Nfsstat3::IO);
        place.set_flush_failure(false);
        client.write(&file, 0, b"good", StableHow::FILE_SYNC).expect("WRITE");
        assert!(client.read_all(&file).expect("READ").starts_with(b"good"));

        place.set_write_failure(true);
        for how in STABILITIES.iter().chain(&STABILITIES) {
            let failed = client.write(&file, 0, &block(b'x'), *how);
            assert_eq!(refusal(failed), Nfsstat3::IO, "{over:?}, {how:?}");
        }
        place.set_write_failure(false);
    }
}

/// What an unstable WRITE and the COMMIT behind it promise.
fn is_safe(client: &mut dyn Remote, file: &[u8]) -> bool {
    let wrote = client.write(file, 0, &block(b'y'), StableHow::UNSTABLE).expect("WRITE").verifier;
    client.commit(file).expect("COMMIT") == wrote
}

#[test]
fn clients_with_unflushed_data_see_a_failed_flush_of_another() {
    if let Err(why) = forget::available() {
        skip!("fault-verifier", "{why}");
    }
    let scratch = Scratch::new("fault-verifier");
    let place = ForgetFs::mount(&scratch.folder("mount", None)).expect("the forgetful mount");
    let scene = Scene::new(place.path());
    let (mut maker, root) = scene.client(Over::V3, "maker");
    for (one, other) in
        [(Over::V3, Over::V3), (Over::V3, Over::V4), (Over::V4, Over::V3), (Over::V4, Over::V4)]
    {
        let name = format!("{one:?}-{other:?}");
        let file = maker.create(&root, &name, 0o644).expect("CREATE").handle;
        // Of one user, so that the server cannot know which of the two clients has received the
        // error.
        let (mut first, _) = scene.client(one, &format!("{name}-first"));
        let (mut second, _) = scene.client(other, &format!("{name}-second"));
        let write = |client: &mut dyn Remote, at| {
            client.write(&file, at, &block(b'x'), StableHow::UNSTABLE).expect("WRITE").verifier
        };
        let before = write(second.as_mut(), 0);
        write(first.as_mut(), BLOCK);
        place.set_flush_failure(true);
        assert_eq!(refusal(first.commit(&file)), Nfsstat3::IO, "{name}");
        place.set_flush_failure(false);
        let after = second.commit(&file).expect("the flush after the failure succeeds");
        assert_ne!(after, before, "{name}: what was lost is taken for safe");
        assert!(is_safe(first.as_mut(), &file) && is_safe(second.as_mut(), &file), "{name}");
    }
}

#[test]
fn operations_of_version_4_alone_report_a_full_disk() {
    use e2e::nfs4::{Client, Failure};
    let disk = match Disk::new("xfs") {
        Ok(disk) => disk,
        Err(why) => skip!("fault-allocate", "{why}"),
    };
    let scene = Scene::new(disk.path());
    let address: SocketAddr = (Ipv4Addr::LOCALHOST, scene.server.nfs_port()).into();
    let mut client = Client::connect(address, (USER, USER), "allocate", 1).expect("a session");
    client.reclaim_complete().expect("RECLAIM_COMPLETE");
    let root = client.walk("/export/share").expect("the share");
    let file = client.open(&root, "file", "owner", true).expect("OPEN");
    client.write(&file, 0, &block(b'a')).expect("WRITE");
    let full = Failure::Status(wire::nfs4::Nfsstat4::NOSPC);
    for _ in 0..2 {
        assert_eq!(client.allocate(&file, 0, 1 << 40), Err(full.clone()), "ALLOCATE");
    }
    assert_eq!(client.read(&file, 0, BLOCK as u32).expect("READ"), block(b'a'));
    client.close(&file).expect("CLOSE");
}

/// Fills a file system to its last byte, with a file of this name.
fn fill_up(place: &Path, name: &str) {
    let mut file = fs::File::create(place.join(name)).expect("a file");
    for size in [BLOCK as usize, 1] {
        while file.write_all(&vec![b'f'; size]).is_ok() {}
    }
}

#[test]
fn a_server_starts_on_a_state_directory_that_is_full() {
    let place = match Memory::new("size=16m") {
        Ok(place) => place,
        Err(why) => skip!("fault-full-state", "{why}"),
    };
    let (scratch, state) = (Scratch::new("full-state"), place.path().join("state"));
    let share = scratch.folder("share", Some(USER));
    make_folder(&state, None);
    let start = || Server::start(&Options::new(&share, &state));
    let client = |server: &Server, name: &str| {
        let address: SocketAddr = (Ipv4Addr::LOCALHOST, server.nfs_port()).into();
        let mut client = Over::V4.connect(address, USER, name).expect("a client");
        let root = client.root(&server.export()).expect("the share");
        (client, root)
    };
    let mut server = start();
    let (mut holder, root) = client(&server, "holder");
    holder.create(&root, "held", 0o644).expect("an open file");
    server.kill();
    let records = fs::read(state.join("clients")).expect("the records");
    fill_up(place.path(), "filler");

    let mut server = start();
    let said = server.stderr_text();
    assert!(said.contains("No space left"), "{said}");
    assert_eq!(fs::read(state.join("clients")).expect("the records"), records, "nothing is lost");
    let status = Api::new(&state).status();
    assert_eq!(status["name"].as_str().map(str::is_empty), Some(false), "{status}");
    let (mut v3, root) = server.mount(USER, USER);
    assert!(v3.lookup(&root, "held").is_ok(), "files are served");
    // The holder may still reclaim what it had, and others wait for that.
    let (mut late, root) = client(&server, "late");
    assert_eq!(refusal(late.create(&root, "new", 0o644)), GRACE);
    fs::remove_file(place.path().join("filler")).expect("room again");
    assert!(server.stop().success());
    let server = start();
    assert!(!server.stderr_text().contains("No space left"), "{}", server.stderr_text());
    let records = fs::read(state.join("clients")).expect("the records");
    assert!(records.windows(6).any(|part| part == b"holder"), "it is still on record");
}
