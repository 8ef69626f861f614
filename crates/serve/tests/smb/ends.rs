//! A connection that ends while something of it is being closed leaves nothing open.

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use e2e::api::wait_for;
use e2e::smb::{Ask, Protection, Smb, framed};
use serve::smb::state::sessions::End;
use vfs::cred::Cred;
use vfs::fs::{Context, FileSystem as _};
use wire::smb::create::{self, CloseRequest, Disposition, FileId, POSTQUERY, access, options};
use wire::smb::header::{Command, Header, flags};
use wire::smb::notify::{ChangeNotify, filter};
use wire::smb::session::Empty;
use wire::smb::status::NtStatus;

use crate::running::Running;

/// How long a connection takes to end.
const ENDS: Duration = Duration::from_secs(10);

/// Waits until only the connection of alice is there; then, nothing may be open.
fn nothing_is_open(running: &Running) {
    let one = || (running.server.sessions.rows_now().len() == 1).then_some(());
    wait_for("the end of a session", ENDS, one);
    let open = || (running.server.files_open() == 0).then_some(());
    wait_for("the end of what was open", ENDS, open);
}

fn open(smb: &mut Smb) -> FileId {
    let ask = Ask { disposition: Disposition::OpenIf, ..Ask::open("f") };
    smb.create(&ask).expect("an answer").expect("a file")
}

#[test]
fn a_close_that_waits_for_the_storage() {
    let running = Running::new();
    let mut smb = running.again();
    let file = open(&mut smb);
    running.fs.blocks.store(true, SeqCst);
    let held = running.fs.hold("getattr");
    let close = CloseRequest { flags: POSTQUERY, reserved: 0, file };
    let request = smb.request(Command::CLOSE, 0, &|out| close.put_body(out));
    smb.send(&[request]).expect("sent");
    held.wait();
    drop(smb);
    nothing_is_open(&running);
    drop(held);
}

#[test]
fn a_change_notify_ends_if_its_open_is_closed_before_the_directory_is_watched() {
    for by in [Command::CLOSE, Command::LOGOFF] {
        let running = Running::new();
        let mut smb = running.again();
        let ask = Ask { access: access::READ, ..Ask::open("") }.dir();
        let file = smb.create(&ask).expect("an answer").expect("the share");
        running.fs.blocks.store(true, SeqCst);
        let held = running.fs.hold("watch");
        let (flags, filter) = (0, filter::NAMES);
        let notify = ChangeNotify { flags, output_max: 4_096, file, filter, reserved: 0 };
        let notify = smb.request(Command::CHANGE_NOTIFY, 0, &|out| notify.put_body(out));
        smb.send(&[notify]).expect("sent");
        held.wait();
        let end = smb.request(by, 0, &|out| match by {
            Command::CLOSE => CloseRequest { flags: 0, reserved: 0, file }.put_body(out),
            _ => Empty { reserved: 0 }.put_body(out),
        });
        smb.send(&[end]).expect("sent");
        let mut ended = [(); 2].map(|()| {
            let answer = smb.answer().expect("an answer");
            (answer.header.command, answer.status())
        });
        ended.sort_by_key(|(command, _)| command.0);
        let notified = (Command::CHANGE_NOTIFY, NtStatus::NOTIFY_CLEANUP);
        assert_eq!(ended, [(by, NtStatus::SUCCESS), notified]);
        drop(held);
    }
}

#[test]
fn a_file_is_removed_by_the_last_close_also_if_another_open_was_in_progress_at_the_first() {
    for is_lost in [false, true] {
        let mut running = Running::new();
        let ask = Ask { disposition: Disposition::OpenIf, ..Ask::open("f") };
        let doomed = ask.with(options::DELETE_ON_CLOSE);
        let file = running.alice.create(&doomed).expect("an answer").expect("a file");
        let mut smb = running.again();
        let held = running.fs.hold("setattr");
        let ask = Ask { disposition: Disposition::OverwriteIf, ..ask };
        let request = smb.request(Command::CREATE, 0, &|out| ask.put(out));
        smb.send(&[request]).expect("sent");
        held.wait();
        assert_eq!(running.alice.close(file).expect("an answer"), NtStatus::SUCCESS);
        if is_lost {
            drop(smb);
        } else {
            drop(held);
            let answer = smb.answer().expect("an answer");
            assert_eq!(answer.status(), NtStatus::SUCCESS);
            let file = create::Response::decode(&answer.message).expect("a response").file;
            assert_eq!(smb.close(file).expect("an answer"), NtStatus::SUCCESS);
        }
        let cred = Cred::root();
        let look = || {
            let cx = Context { cred: &cred, may_block: true };
            running.fs.lookup(cx, &running.fs.root(), b"f").is_err().then_some(())
        };
        wait_for("the end of the file", ENDS, look);
        assert_eq!(running.server.files_open(), 0, "lost: {is_lost}");
    }
}

#[test]
fn a_session_that_ends_just_before() {
    let running = Running::new();
    // Which of both its connection hears of first is by chance.
    for _ in 0..40 {
        let mut smb = running.again();
        open(&mut smb);
        assert!(running.server.sessions.end(smb.session, None, End::Closed));
        drop(smb);
        nothing_is_open(&running);
    }
}

#[test]
fn the_refusal_of_a_session_that_is_gone_has_the_signature_of_the_request() {
    let running = Running::new();
    let mut smb = running.again();
    assert!(running.server.sessions.end(smb.session, None, End::Closed));
    nothing_is_open(&running);
    for protection in [Protection::Signed, Protection::None] {
        smb.protection = protection;
        let empty = Empty { reserved: 0 };
        let request = smb.request(Command::ECHO, 0, &|out| empty.put_body(out));
        let request = smb.protect(&[request]);
        smb.send_raw(&framed(&request)).expect("sent");
        let answer = smb.receive().expect("an answer").remove(0);
        assert_eq!(answer.status(), NtStatus::USER_SESSION_DELETED);
        assert_eq!(answer.header.has(flags::SIGNED), protection == Protection::Signed);
        let sent = Header::decode(&request).expect("a header").signature;
        assert_eq!(answer.header.signature, sent, "{protection:?}");
    }
}
