//! What a rename waits for, and is refused for: what is open under the name that it takes, or below
//! the directory that it moves (MS-FSA §2.1.5.15.11).

use e2e::smb::{Ask, Smb, framed, new_name, set_info};
use vfs::cred::Cred;
use vfs::fs::{Context, FileSystem as _};
use wire::smb::class::file_class;
use wire::smb::create::FileId;
use wire::smb::header::Command;
use wire::smb::lease::{LeaseBreak, Notice};
use wire::smb::session::Empty;
use wire::smb::status::NtStatus;

use crate::leases::{Caching, KEYS, R, RH, RWH, acknowledge, broken, keep, next, opened, send_to};
use crate::running::Running;

/// Reading and writing.
const RW: u32 = 5;
/// FILE_RENAME_REPLACE_IF_EXISTS with FILE_RENAME_POSIX_SEMANTICS.
const REPLACE_POSIX: u32 = 3;

fn rename(smb: &mut Smb, file: FileId, to: &str) -> Vec<u8> {
    let content = new_name(to, true);
    let body = set_info(file, file_class::RENAME, &content);
    smb.request(Command::SET_INFO, content.len(), &body)
}

fn send_rename(smb: &mut Smb, file: FileId, to: &str) {
    let request = rename(smb, file, to);
    smb.send(&[request]).expect("sent");
}

#[test]
fn what_a_rename_breaks_is_sent_before_the_answer_to_the_next_request() {
    let mut running = Running::new();
    let alice = &mut running.alice;
    send_to(alice, "source", Caching::Lease(KEYS[0], RH));
    opened(&alice.answer().expect("an answer"));
    let file = alice.create(&Ask::open("source")).expect("an answer").expect("a file");
    // Two frames that are taken together.
    let requests = [
        rename(alice, file, "target"),
        alice.request(Command::ECHO, 0, &|out| Empty { reserved: 0 }.put_body(out)),
    ];
    let both = requests.map(|request| framed(&alice.protect(&[request]))).concat();
    alice.send_raw(&both).expect("sent");
    assert_eq!(next(alice).status(), NtStatus::PENDING);
    let Notice::Lease(LeaseBreak { key, to, .. }) = broken(&next(alice)) else {
        panic!("an oplock");
    };
    assert_eq!((key, to), (KEYS[0], R));
    let echo = next(alice);
    assert_eq!((echo.header.command, echo.status()), (Command::ECHO, NtStatus::SUCCESS));
    assert_eq!(acknowledge(alice, keep(KEYS[0], R)), NtStatus::SUCCESS);
    assert_eq!(next(alice).status(), NtStatus::SUCCESS, "the rename");
}

#[test]
fn a_file_that_is_open_is_replaced_only_as_posix_has_it() {
    let mut running = Running::new();
    let mut other = running.client(2);
    let source = running.create(&Ask::make("source")).expect("a file");
    let target = other.create(&Ask::make("target")).expect("an answer").expect("a file");
    let mut content = new_name("target", true);
    let refused = running.alice.set(source, file_class::RENAME, &content).expect("an answer");
    assert_eq!(refused, NtStatus::ACCESS_DENIED);
    content[..4].copy_from_slice(&REPLACE_POSIX.to_le_bytes());
    let replaced = running.alice.set(source, file_class::RENAME_EX, &content).expect("an answer");
    assert_eq!(replaced, NtStatus::SUCCESS);
    // Once it is closed nothing is in the way.
    assert_eq!(other.close(target).expect("an answer"), NtStatus::SUCCESS);
    let other_source = other.create(&Ask::make("source")).expect("an answer").expect("a file");
    assert_eq!(running.alice.close(source).expect("an answer"), NtStatus::SUCCESS);
    send_rename(&mut other, other_source, "target");
    assert_eq!(other.answer().expect("an answer").status(), NtStatus::SUCCESS);
}

#[test]
fn a_client_that_caches_the_handle_of_a_replaced_file_is_asked_to_close_it() {
    for (closes, expected) in [(false, NtStatus::ACCESS_DENIED), (true, NtStatus::SUCCESS)] {
        let mut running = Running::new();
        let mut holder = running.client(2);
        let source = running.create(&Ask::make("source")).expect("a file");
        send_to(&mut holder, "target", Caching::Lease(KEYS[0], RWH));
        let (target, ..) = opened(&holder.answer().expect("an answer"));
        send_rename(&mut running.alice, source, "target");
        assert_eq!(next(&mut running.alice).status(), NtStatus::PENDING);
        let Notice::Lease(LeaseBreak { from, to, .. }) = broken(&next(&mut holder)) else {
            panic!("an oplock");
        };
        assert_eq!((from, to), (RWH, RW));
        let done = match closes {
            true => holder.close(target).expect("an answer"),
            false => acknowledge(&mut holder, keep(KEYS[0], RW)),
        };
        assert_eq!(done, NtStatus::SUCCESS);
        assert_eq!(next(&mut running.alice).status(), expected, "{closes}");
    }
}

#[test]
fn a_rename_that_waits_is_of_the_file_that_is_open_and_not_of_what_has_its_name_by_then() {
    let mut running = Running::new();
    let (mut holder, mut other) = (running.client(2), running.client(3));
    let source = running.create(&Ask::make("source")).expect("a file");
    assert_eq!(running.alice.write(source, 0, b"old", 0).expect("an answer"), NtStatus::SUCCESS);
    let same = other.create(&Ask::open("source")).expect("an answer").expect("the file");
    send_to(&mut holder, "target", Caching::Lease(KEYS[0], RWH));
    let (target, ..) = opened(&holder.answer().expect("an answer"));
    send_rename(&mut running.alice, source, "target");
    assert_eq!(next(&mut running.alice).status(), NtStatus::PENDING);
    broken(&next(&mut holder));
    // Meanwhile it gets another name, and another file gets its own.
    send_rename(&mut other, same, "elsewhere");
    assert_eq!(other.answer().expect("an answer").status(), NtStatus::SUCCESS);
    let made = other.create(&Ask::make("source")).expect("an answer").expect("a file");
    assert_eq!(other.write(made, 0, b"new", 0).expect("an answer"), NtStatus::SUCCESS);
    assert_eq!(other.close(made).expect("an answer"), NtStatus::SUCCESS);
    assert_eq!(holder.close(target).expect("an answer"), NtStatus::SUCCESS);
    assert_eq!(next(&mut running.alice).status(), NtStatus::SUCCESS);
    for (name, content) in [("source", b"new"), ("target", b"old")] {
        let file = other.create(&Ask::open(name)).expect("an answer").expect("a file");
        let read = other.read(file, 0, 10).expect("an answer");
        assert_eq!(read.expect("its content"), content, "{name}");
    }
    let gone = other.create(&Ask::open("elsewhere")).expect("an answer");
    assert_eq!(gone, Err(NtStatus::OBJECT_NAME_NOT_FOUND));
}

/// What a client does on a break for a file in a directory which is renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BreakReply {
    Closes,
    Keeps,
    OpensAnother,
}

#[test]
fn clients_that_cache_handles_below_a_directory_are_asked_to_close_them() {
    for (asked, expected) in [
        (BreakReply::Closes, NtStatus::SUCCESS),
        (BreakReply::Keeps, NtStatus::ACCESS_DENIED),
        (BreakReply::OpensAnother, NtStatus::ACCESS_DENIED),
    ] {
        let mut running = Running::new();
        let mut holder = running.client(2);
        let dir = running.create(&Ask::make("d").dir()).expect("a directory");
        let files = [("d\\one", KEYS[0]), ("d\\two", KEYS[1])].map(|(name, key)| {
            send_to(&mut holder, name, Caching::Lease(key, RH));
            (key, opened(&holder.answer().expect("an answer")).0)
        });
        send_rename(&mut running.alice, dir, "e");
        assert_eq!(next(&mut running.alice).status(), NtStatus::PENDING);
        for round in 0..files.len() {
            let Notice::Lease(LeaseBreak { key, to, .. }) = broken(&next(&mut holder)) else {
                panic!("an oplock");
            };
            assert_eq!(to, R);
            if asked == BreakReply::Keeps {
                assert_eq!(acknowledge(&mut holder, keep(key, R)), NtStatus::SUCCESS);
                break;
            }
            if asked == BreakReply::OpensAnother && round == 0 {
                holder.create(&Ask::make("d\\three")).expect("an answer").expect("a file");
            }
            let (_, file) = files.iter().find(|(of, _)| *of == key).expect("one of them");
            assert_eq!(holder.close(*file).expect("an answer"), NtStatus::SUCCESS);
        }
        assert_eq!(next(&mut running.alice).status(), expected, "{asked:?}");
    }
}

#[test]
fn what_gets_the_new_name_while_a_rename_waits_is_checked_too() {
    let mut running = Running::new();
    let (mut holder, mut other) = (running.client(2), running.client(3));
    let source = running.create(&Ask::make("source")).expect("a file");
    other.create(&Ask::make("third")).expect("an answer").expect("a file");
    send_to(&mut holder, "target", Caching::Lease(KEYS[0], RWH));
    let (target, ..) = opened(&holder.answer().expect("an answer"));
    send_rename(&mut running.alice, source, "target");
    assert_eq!(next(&mut running.alice).status(), NtStatus::PENDING);
    broken(&next(&mut holder));
    // As by a program on the server's machine: a file that is open has the name then.
    let (cred, root) = (Cred::root(), running.fs.root());
    let cx = Context { cred: &cred, may_block: true };
    running.fs.rename(cx, (&root, b"third"), (&root, b"target")).expect("renamed");
    assert_eq!(holder.close(target).expect("an answer"), NtStatus::SUCCESS);
    assert_eq!(next(&mut running.alice).status(), NtStatus::ACCESS_DENIED);
}

#[test]
fn a_directory_that_is_made_while_a_rename_waits_is_not_replaced() {
    let mut running = Running::new();
    let (mut holder, mut other) = (running.client(2), running.client(3));
    let dir = running.create(&Ask::make("d").dir()).expect("a directory");
    send_to(&mut holder, "d\\one", Caching::Lease(KEYS[0], RH));
    let (file, ..) = opened(&holder.answer().expect("an answer"));
    send_rename(&mut running.alice, dir, "e");
    assert_eq!(next(&mut running.alice).status(), NtStatus::PENDING);
    broken(&next(&mut holder));
    let made = other.create(&Ask::make("e").dir()).expect("an answer").expect("a directory");
    assert_eq!(other.close(made).expect("an answer"), NtStatus::SUCCESS);
    assert_eq!(holder.close(file).expect("an answer"), NtStatus::SUCCESS);
    assert_eq!(next(&mut running.alice).status(), NtStatus::ACCESS_DENIED);
}
