//! What goes wrong below one unit concerns that unit alone: a file system that answers nothing, one
//! that has become read-only under the open file, one that is full. Other units, file protocols and
//! administration continue, nothing that was acknowledged is lost, and initiators learn the reason.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use base::limits::{DRAIN_TIME_MAX, ISCSI_ABORT_TIME_MAX};
use e2e::api::{Api, wait_for};
use e2e::crash::remote::Over;
use e2e::iscsi::{Access, Answer, BLOCK, Initiator, io, synchronize};
use e2e::place::Memory;
use e2e::process;
use e2e::scene::Scene;
use e2e::scratch::Scratch;
use e2e::server::Server;
use e2e::{patience, skip};
use serde_json::json;
use sim::forget::{self, ForgetFs, Mounted};
use wire::iscsi::tmf::{Function, TmfOutcome};
use wire::nfs3::StableHow;
use wire::scsi::{Asc, Cdb, SenseKey};

/// Port of iSCSI.
const PORT: u16 = 3260;
/// The number of the unit with failing storage.
const BAD: u16 = 1;
/// The uid of the client of NFS.
const USER: u32 = 1000;
/// The node of the service.
const ISCSI: &str = "/configuration/services/iscsi";
/// Blocks of a command.
const COUNT: u32 = 8;
const BYTES: usize = COUNT as usize * BLOCK;
/// What is promised, with room for a busy machine.
const ABORTED: Duration = ISCSI_ABORT_TIME_MAX.saturating_add(patience(2));
const DRAINED: Duration = DRAIN_TIME_MAX.saturating_add(patience(2));

/// A server with an intact unit, `disk`, and one with failing storage.
struct Stage {
    /// What that lies on. It goes before the server, which cannot be killed as long as it waits
    /// for a file system that does not answer.
    place: Option<Mounted>,
    server: Server,
    api: Api,
    access: Access,
    _scene: Scene,
    below: Option<Scratch>,
}

impl Stage {
    fn new(name: &str, place: &Path, size: &str) -> Self {
        let scene = Scene::new(name);
        fs::set_permissions(&scene.dir, fs::Permissions::from_mode(0o777)).expect("a mode");
        let server = scene.start(&["--lun", "disk=16M"]);
        let api = Api::new(&scene.state);
        let properties = json!({"backing": "file", "path": place.join("bad"), "volsize": size,
            "assignednumber": BAD});
        let access = Access::of(&scene.state);
        let stage = Self { place: None, server, api, access, _scene: scene, below: None };
        stage.change(&json!({"create": "/shares/default/luns", "name": "bad",
            "properties": properties}));
        stage
    }

    /// With the unit on a file system of FUSE.
    fn forgetful(name: &str) -> Self {
        let scratch = Scratch::new(name);
        let place = ForgetFs::mount(&scratch.folder("mount", None)).expect("the mount");
        let mut stage = Self::new(name, place.path(), "16M");
        (stage.place, stage.below) = (Some(place), Some(scratch));
        stage
    }

    fn place(&self) -> &Mounted {
        self.place.as_ref().expect("a file system of FUSE")
    }

    fn change(&self, change: &serde_json::Value) {
        let (code, answer) = self.api.post("/api/v1/changes", &json!({ "changes": [change] }));
        assert_eq!(code, 200, "{change}: {answer}");
    }

    fn initiator(&self, number: u8, lun: u16) -> Initiator {
        let at = self.server.at(PORT);
        let mut initiator = Initiator::connect(at, &self.access, number).expect("a session");
        initiator.select(lun).expect("the unit");
        initiator
    }

    /// Commands of the intact unit, and calls of NFS, to their end.
    fn others_are_served(&self, other: &mut Initiator) {
        let mut client = Over::V3.connect(self.server.nfs(), USER, "others").expect("a client");
        let root = client.root(&self.server.export()).expect("the share");
        for n in 0..32 {
            other.good(&Cdb::Write(io(n, COUNT, n % 8 == 0)), &[n as u8; BYTES], 0);
            assert_eq!(other.good(&Cdb::Read(io(n, 1, false)), &[], 512), [n as u8; BLOCK]);
            let name = format!("file-{n}");
            let file = client.create(&root, &name, 0o644).expect("CREATE").handle;
            client.write(&file, 0, b"data", StableHow::FILE_SYNC).expect("WRITE");
            client.remove(&root, &name, false).expect("REMOVE");
        }
        other.good(&synchronize(), &[], 0);
    }
}

/// How a command was refused.
fn refused(answer: &Answer) -> (SenseKey, Asc) {
    let sense = answer.sense.unwrap_or_else(|| panic!("{answer:?}"));
    (sense.key, sense.asc)
}

/// What `act` gives, which must come within this time.
fn within<T>(most: Duration, what: &str, act: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let value = act();
    let took = began.elapsed();
    assert!(took < most, "{what} took {took:?}");
    println!("{what}: {took:.1?}");
    value
}

/// Whether the first thread of a process has ended; others may be with a file system that does not
/// answer, and cannot.
fn has_ended(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/task/{pid}/stat")).unwrap_or_default();
    status.rsplit(')').next().is_none_or(|rest| rest.trim_start().starts_with('Z'))
}

#[test]
fn storage_that_answers_nothing_holds_up_no_other_client() {
    if let Err(why) = forget::available() {
        skip!("lun-stuck", "{why}");
    }
    let mut stage = Stage::forgetful("lun-stuck");
    let (mut bad, mut other) = (stage.initiator(1, BAD), stage.initiator(2, 0));
    bad.good(&Cdb::Write(io(0, COUNT, true)), &[b'a'; BYTES], 0);
    stage.place().set_stuck(true);
    // More than its threads take, of every kind: some have begun, others never will.
    let mut tags = Vec::new();
    for n in 0..12 {
        let write = Cdb::Write(io(100 + 8 * n, COUNT, n % 2 == 0));
        tags.push(bad.start(&write, &[b'w'; BYTES], 0).expect("sent"));
        tags.push(bad.start(&Cdb::Read(io(n, 1, false)), &[], 512).expect("sent"));
    }
    tags.push(bad.start(&synchronize(), &[], 0).expect("sent"));

    stage.others_are_served(&mut other);
    let bad_node = "/api/v1/nodes/shares/default/luns/bad";
    let (_, node) = within(patience(5), "its node", || stage.api.get(bad_node));
    assert!(node.to_string().contains("does not answer"), "{node}");
    let abort = |bad: &mut Initiator, tag| {
        within(ABORTED, "ABORT TASK", || bad.manage(Function::ABORT_TASK, tag).expect("answered"))
    };
    assert_eq!(abort(&mut bad, tags[0]), TmfOutcome::REJECTED, "the disk has it");
    assert_eq!(abort(&mut bad, tags[20]), TmfOutcome::COMPLETE, "it has not begun");
    let reset = within(ABORTED, "LUN RESET", || {
        bad.manage(Function::LOGICAL_UNIT_RESET, 0).expect("answered")
    });
    assert_eq!(reset, TmfOutcome::REJECTED);
    stage.others_are_served(&mut other);
    // As Linux does next: the session ends and comes back, and so do its commands.
    drop(bad);
    let mut bad = within(patience(10), "a new login", || {
        let at = stage.server.at(PORT);
        Initiator::connect(at, &stage.access, 1).expect("a session")
    });
    bad.select(BAD).expect("the unit");
    let again = bad.start(&Cdb::Read(io(0, 1, false)), &[], 512).expect("sent");
    stage.others_are_served(&mut other);
    // A unit elsewhere is made and used meanwhile.
    stage.change(&json!({"create": "/shares/default/luns", "name": "more",
        "properties": {"volsize": "1M", "assignednumber": 2}}));
    let mut more = stage.initiator(3, 2);
    more.good(&Cdb::Write(io(0, COUNT, true)), &[b'm'; BYTES], 0);

    let at = stage.server.at(PORT);
    within(DRAINED, "the end of the service", || {
        stage.change(&json!({"set": ISCSI, "property": "enabled", "value": false}));
        let gone = || TcpStream::connect(at).is_err().then_some(());
        wait_for("the service has ended", DRAINED, gone);
    });
    drop((bad, other, more));
    stage.change(&json!({"set": ISCSI, "property": "enabled", "value": true}));
    stage.others_are_served(&mut stage.initiator(4, 0));
    let mut bad = stage.initiator(5, BAD);
    bad.start(&Cdb::Read(io(0, 1, false)), &[], 512).expect("sent");
    process::signal(stage.server.pid(), libc::SIGTERM);
    within(DRAINED + patience(2), "the end of the server", || {
        let ended = || has_ended(stage.server.pid()).then_some(());
        wait_for("the server has ended", DRAINED + patience(2), ended);
    });
    stage.place().set_stuck(false);
    assert!(stage.server.stop().success(), "{again}");
    // What was acknowledged is there, and nothing has landed that was aborted before it began.
    let left = fs::read(stage.place().path().join("bad")).expect("its file");
    assert_eq!(left[..BYTES], [b'a'; BYTES]);
}

#[test]
fn a_file_system_that_becomes_read_only_is_reported() {
    if let Err(why) = forget::available() {
        skip!("lun-read-only", "{why}");
    }
    let mut stage = Stage::forgetful("lun-read-only");
    let (mut bad, mut other) = (stage.initiator(1, BAD), stage.initiator(2, 0));
    bad.good(&Cdb::Write(io(0, COUNT, true)), &[b'a'; BYTES], 0);
    bad.good(&Cdb::Write(io(8, COUNT, false)), &[b'b'; BYTES], 0);
    stage.place().set_read_only(true);
    let protected = (SenseKey::DATA_PROTECT, Asc::WRITE_PROTECTED);
    for fua in [false, true, false] {
        let answer = bad.run(&Cdb::Write(io(0, COUNT, fua)), &[b'c'; BYTES], 0).expect("answered");
        assert_eq!(refused(&answer), protected, "FUA {fua}");
    }
    // What was in the cache cannot get to the disk any more, and the flush fails.
    let flushed = bad.run(&synchronize(), &[], 0).expect("answered");
    assert_eq!(refused(&flushed).0, SenseKey::MEDIUM_ERROR);
    assert_eq!(bad.good(&Cdb::Read(io(0, 1, false)), &[], 512), [b'a'; BLOCK]);
    assert_eq!(bad.good(&Cdb::Read(io(8, 1, false)), &[], 512), [b'b'; BLOCK]);
    stage.others_are_served(&mut other);
    assert_eq!(
        fs::read(stage.place().path().join("bad")).expect("its file")[..BYTES],
        [b'a'; BYTES]
    );
    // It is written again when it can be, in the session that was there.
    stage.place().set_read_only(false);
    bad.good(&Cdb::Write(io(0, COUNT, true)), &[b'd'; BYTES], 0);
    bad.good(&synchronize(), &[], 0);
    let image = stage.place().image().look("bad").expect("its file").data;
    assert_eq!(image[..BYTES], [b'd'; BYTES]);
    assert!(stage.server.stop().success());
}

#[test]
fn a_full_file_system_stops_its_unit_alone() {
    let place = match Memory::new("size=4m") {
        Ok(place) => place,
        Err(why) => skip!("lun-full", "{why}"),
    };
    let mut stage = Stage::new("lun-full", place.path(), "16M");
    let (mut bad, mut other) = (stage.initiator(1, BAD), stage.initiator(2, 0));
    let write = |bad: &mut Initiator, n: u64, byte: u8| {
        let data = vec![byte; 64 << 10];
        bad.run(&Cdb::Write(io(128 * n, 128, false)), &data, 0).expect("answered")
    };
    let mut kept = 0;
    let full = loop {
        let answer = write(&mut bad, kept, kept as u8);
        if !answer.is_good() {
            break answer;
        }
        kept += 1;
        assert!(kept < 256, "16 MiB had room in 4");
    };
    assert_eq!(refused(&full), (SenseKey::DATA_PROTECT, Asc::SPACE_ALLOCATION_FAILED));
    assert!(kept > 16, "{kept} pieces had room");
    bad.good(&synchronize(), &[], 0);
    stage.others_are_served(&mut other);
    for n in 0..kept {
        let read = bad.good(&Cdb::Read(io(128 * n, 1, false)), &[], 512);
        assert_eq!(read, [n as u8; BLOCK], "{n}");
    }
    // What has space already can be written all the same, and after UNMAP there is room again.
    assert!(write(&mut bad, 0, 77).is_good());
    assert!(stage.server.stop().success());
    drop(bad);
}
