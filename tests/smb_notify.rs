//! CHANGE_NOTIFY of SMB: answered when a client or a program changes something; cancelled, and
//! ended with the open.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use e2e::smb::scene::Scene;
use e2e::smb::{Ask, Offer, Smb, message};
use e2e::tcp::address;
use wire::smb::create::{FileId, access};
use wire::smb::header::{Command, Header};
use wire::smb::negotiate::Dialect;
use wire::smb::notify::{ChangeNotify, filter, notify_flags};
use wire::smb::session;
use wire::smb::status::NtStatus;

/// Makes a directory in the share, with this one in it, in which all users may write.
fn make_dirs(scene: &Scene, dir: &str, below: &str) {
    for path in [scene.share.join(dir), scene.share.join(dir).join(below)] {
        if !path.exists() {
            fs::create_dir(&path).expect("a directory");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).expect("a mode");
    }
}

/// Opens a directory to wait for its changes.
fn open_dir(smb: &mut Smb, path: &str) -> FileId {
    let ask = Ask { access: access::READ, ..Ask::open(path) }.dir();
    smb.create(&ask).expect("an answer").expect("a directory")
}

/// Sends CHANGE_NOTIFY, and gives its number.
fn start(smb: &mut Smb, file: FileId, flags: u16, filter: u32) -> u64 {
    let wanted = ChangeNotify { flags, output_max: 4_096, file, filter, reserved: 0 };
    let request = smb.request(Command::CHANGE_NOTIFY, 0, &|out| wanted.put_body(out));
    let id = Header::decode(&request).expect("a header").message_id;
    smb.send(&[request]).expect("sent");
    id
}

/// The server has answered that the request waits.
fn is_pending(smb: &mut Smb) {
    let answer = smb.receive().expect("an answer").remove(0);
    assert_eq!(answer.status(), NtStatus::PENDING);
}

fn cancel(smb: &mut Smb, id: u64) {
    let mut cancel = message(Command::CANCEL, (id, 0), (smb.session, smb.tree));
    session::Empty { reserved: 0 }.put_body(&mut cancel);
    let bytes = e2e::smb::framed(&smb.protect(&[cancel]));
    smb.send_raw(&bytes).expect("sent");
}

#[test]
fn a_change_by_another_client_or_a_local_program_is_reported() {
    let scene = Scene::new("smb-notify", &[]);
    make_dirs(&scene, "dir", "");
    let mut other = scene.anna_from(address(9), &Offer::default()).expect("let in");
    for dialect in [Dialect::SMB210, Dialect::SMB311] {
        let mut smb = scene.anna_from(address(8), &Offer::only(dialect)).expect("let in");
        let dir = open_dir(&mut smb, "dir");
        start(&mut smb, dir, 0, filter::NAMES);
        is_pending(&mut smb);
        // Neither what is elsewhere nor what is in it.
        fs::write(scene.share.join("elsewhere"), "x").expect("written");
        let name = format!("by-client-{dialect:?}");
        let made = other.create(&Ask::make(&format!("dir\\{name}"))).expect("an answer");
        let made = made.expect("a file");
        assert_eq!(smb.answer().expect("an answer").status(), NtStatus::NOTIFY_ENUM_DIR);
        // Between two requests nothing is lost.
        fs::rename(scene.share.join("dir").join(&name), scene.share.join("dir/other"))
            .expect("renamed");
        start(&mut smb, dir, 0, filter::NAMES);
        assert_eq!(smb.answer().expect("an answer").status(), NtStatus::NOTIFY_ENUM_DIR);
        other.close(made).expect("an answer");
        fs::remove_file(scene.share.join("dir/other")).expect("removed");
        smb.close(dir).expect("an answer");
    }
}

#[test]
fn data_is_reported_to_those_that_want_it_and_what_is_below_too() {
    let scene = Scene::new("smb-notify-below", &[]);
    make_dirs(&scene, "dir", "below");
    let mut other = scene.anna_from(address(9), &Offer::default()).expect("let in");
    let mut smb = scene.anna_from(address(8), &Offer::default()).expect("let in");
    let file = other.create(&Ask::make("dir\\below\\f")).expect("an answer").expect("a file");
    let (near, tree) = (open_dir(&mut smb, "dir\\below"), open_dir(&mut smb, "dir"));
    start(&mut smb, near, 0, filter::DATA);
    is_pending(&mut smb);
    start(&mut smb, tree, notify_flags::WATCH_TREE, filter::DATA);
    is_pending(&mut smb);
    assert_eq!(other.write(file, 0, b"data", 0).expect("an answer"), NtStatus::SUCCESS);
    for _ in [near, tree] {
        assert_eq!(smb.answer().expect("an answer").status(), NtStatus::NOTIFY_ENUM_DIR);
    }
}

#[test]
fn it_is_cancelled_and_ends_with_its_open() {
    let scene = Scene::new("smb-notify-cancel", &[]);
    let mut smb = scene.anna().expect("let in");
    let dir = open_dir(&mut smb, "");
    let id = start(&mut smb, dir, 0, filter::NAMES);
    is_pending(&mut smb);
    cancel(&mut smb, id);
    let answer = smb.answer().expect("an answer");
    assert_eq!((answer.status(), answer.header.message_id), (NtStatus::CANCELLED, id));
    let id = start(&mut smb, dir, 0, filter::NAMES);
    is_pending(&mut smb);
    let close = wire::smb::create::CloseRequest { flags: 0, reserved: 0, file: dir };
    let close = smb.request(Command::CLOSE, 0, &|out| close.put_body(out));
    smb.send(&[close]).expect("sent");
    let mut ended = Vec::new();
    while ended.len() < 2 {
        let answer = smb.answer().expect("an answer");
        ended.push((answer.header.command, answer.status()));
        assert!(answer.header.command == Command::CLOSE || answer.header.message_id == id);
    }
    ended.sort_by_key(|(command, _)| command.0);
    let closed = (Command::CLOSE, NtStatus::SUCCESS);
    assert_eq!(ended, [closed, (Command::CHANGE_NOTIFY, NtStatus::NOTIFY_CLEANUP)]);
    // Neither of a file, nor for nothing, nor without the right to list.
    let file = smb.create(&Ask::make("f")).expect("an answer").expect("a file");
    start(&mut smb, file, 0, filter::NAMES);
    assert_eq!(smb.answer().expect("an answer").status(), NtStatus::INVALID_PARAMETER);
    let dir = open_dir(&mut smb, "");
    start(&mut smb, dir, 0, 0);
    assert_eq!(smb.answer().expect("an answer").status(), NtStatus::INVALID_PARAMETER);
    let ask = Ask { access: access::READ_ATTRIBUTES, ..Ask::open("") }.dir();
    let blind = smb.create(&ask).expect("an answer").expect("the share");
    start(&mut smb, blind, 0, filter::NAMES);
    assert_eq!(smb.answer().expect("an answer").status(), NtStatus::ACCESS_DENIED);
}
