//! DUPLICATE_EXTENTS of SMB on a file system that shares blocks (btrfs or xfs on a loop device),
//! and its refusal on one that does not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use e2e::api::Api;
use e2e::disk::{Disk, tool};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::skip;
use e2e::smb::scene::{PASSWORD, SHARE, SMB, Scene, USER, set_up};
use e2e::smb::{Ask, Offer, Smb};
use e2e::tcp::HERE;
use wire::smb::codec::Field;
use wire::smb::create::{FileId, access};
use wire::smb::header::Command as Request;
use wire::smb::ioctl::{Extents, code};
use wire::smb::lock::{Element, Request as Lock, lock_flags};
use wire::smb::status::NtStatus;

/// Bytes of a file.
const SIZE: usize = 1 << 20;
/// Bytes that are shared: whole blocks of every file system.
const PART: u64 = 256 << 10;

fn content(first: u8) -> Vec<u8> {
    (0..SIZE).map(|at| first ^ (at * 7 / 3) as u8 ^ (at >> 12) as u8).collect()
}

fn open(smb: &mut Smb, ask: &Ask<'_>) -> FileId {
    smb.create(ask).expect("an answer").expect("a file")
}

/// Asks for the blocks of [`PART`] bytes from `from` on to be those of `to` too.
fn duplicate(
    smb: &mut Smb,
    (source, from): (FileId, u64),
    (file, to): (FileId, u64),
    length: u64,
) -> NtStatus {
    let mut input = Vec::new();
    Extents { source, from, to, length }.put(&mut input);
    smb.control(code::DUPLICATE_EXTENTS, file, &input, 0).expect("an answer").status()
}

fn lock(smb: &mut Smb, file: FileId, flags: u32) {
    let locks = vec![Element { offset: PART, length: 1, flags, reserved: 0 }];
    let lock = Lock { lock_sequence: 0, file, locks };
    let done = smb.call(Request::LOCK, 0, &|out| lock.put(out)).expect("an answer");
    assert_eq!(done.status(), NtStatus::SUCCESS);
}

#[test]
fn blocks_are_shared_where_the_file_system_can() {
    let disk = match Disk::new("btrfs").or_else(|_| Disk::new("xfs")) {
        Ok(disk) => disk,
        Err(why) => skip!("smb-clones", "{why}"),
    };
    let scratch = Scratch::new("smb-clones");
    let (served, state) = (scratch.folder("served", None), scratch.folder("state", None));
    let server = Server::start(&Options::new(&served, &state));
    let share = disk.path().join(SHARE);
    fs::set_permissions(disk.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
    set_up(&Api::new(&state), &share, &[]);
    for (name, first) in [("one", 1), ("other", 2)] {
        fs::write(share.join(name), content(first)).expect("a file");
        fs::set_permissions(share.join(name), fs::Permissions::from_mode(0o666)).expect("a mode");
    }
    let at = (HERE, server.at(SMB));
    let mut smb = Smb::open(at, &Offer::default(), (USER, PASSWORD), SHARE).expect("let in");
    let one = open(&mut smb, &Ask::open("one"));
    let other = open(&mut smb, &Ask::open("other"));
    // What is beyond an end, or no whole blocks; nothing is done.
    let end = SIZE as u64;
    for (from, to, length, status) in [
        (end - PART + 1, 0, PART, NtStatus::NOT_SUPPORTED),
        (0, end - PART + 1, PART, NtStatus::NOT_SUPPORTED),
        (u64::MAX, 0, 2, NtStatus::NOT_SUPPORTED),
        (1, 0, PART, NtStatus::INVALID_PARAMETER),
        (0, 0, 0, NtStatus::SUCCESS),
    ] {
        let told = duplicate(&mut smb, (one, from), (other, to), length);
        assert_eq!(told, status, "{from} {to} {length}");
    }
    // Rights of both opens, and locks of others.
    let reads = Ask { access: access::READ, ..Ask::open("one") };
    let reader = open(&mut smb, &reads);
    let told = duplicate(&mut smb, (one, 0), (reader, 0), PART);
    assert_eq!(told, NtStatus::ACCESS_DENIED, "to what may only be read");
    let writes = Ask { access: access::WRITE, ..Ask::open("one") };
    let writer = open(&mut smb, &writes);
    let told = duplicate(&mut smb, (writer, 0), (other, 0), PART);
    assert_eq!(told, NtStatus::ACCESS_DENIED, "from what may only be written");
    let holder = open(&mut smb, &Ask::open("other"));
    let exclusive = lock_flags::EXCLUSIVE | lock_flags::FAIL_IMMEDIATELY;
    lock(&mut smb, holder, exclusive);
    let told = duplicate(&mut smb, (one, 0), (other, 0), 2 * PART);
    assert_eq!(told, NtStatus::FILE_LOCK_CONFLICT, "to what is locked");
    let told = duplicate(&mut smb, (other, 0), (one, 0), 2 * PART);
    assert_eq!(told, NtStatus::FILE_LOCK_CONFLICT, "from what is locked");
    lock(&mut smb, holder, lock_flags::UNLOCK);
    assert!(fs::read(share.join("other")).expect("it") == content(2), "nothing is done yet");
    let told = duplicate(&mut smb, (one, PART), (other, 2 * PART), PART);
    assert_eq!(told, NtStatus::SUCCESS);
    let (from, to) = (PART as usize, 2 * PART as usize);
    let mut wanted = content(2);
    wanted[to..to + from].copy_from_slice(&content(1)[from..2 * from]);
    assert!(fs::read(share.join("other")).expect("it") == wanted);
    let extents = tool(Command::new("filefrag").arg("-v").arg(share.join("other")));
    let extents = extents.expect("filefrag");
    assert!(extents.contains("shared"), "{extents}");
    drop((smb, server));
}

#[test]
fn elsewhere_it_is_not_supported() {
    let scene = Scene::new("smb-no-clones", &[]);
    let mut smb = scene.anna().expect("let in");
    let one = open(&mut smb, &Ask::make("one"));
    assert_eq!(smb.write(one, 0, &content(1), 0).expect("an answer"), NtStatus::SUCCESS);
    let told = duplicate(&mut smb, (one, 0), (one, PART), PART);
    assert_eq!(told, NtStatus::NOT_SUPPORTED);
    assert!(fs::read(scene.share.join("one")).expect("it") == content(1));
}
