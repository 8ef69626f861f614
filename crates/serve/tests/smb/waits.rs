//! Requests that wait for another client: as many as a connection may have leave room for those
//! that do not wait.

use base::limits::SMB_WAITING_MAX;
use e2e::smb::{Ask, Smb, message};
use wire::smb::create::{Disposition, FileId};
use wire::smb::header::{Command, Header};
use wire::smb::lock::{Element, Request, lock_flags};
use wire::smb::session::Empty;
use wire::smb::status::NtStatus;

use crate::running::Running;

/// Requests that are sent at once: the client has credits for more.
const BATCH: usize = 64;
const _: () = assert!(SMB_WAITING_MAX.is_multiple_of(BATCH));

fn open(smb: &mut Smb) -> FileId {
    let ask = Ask { disposition: Disposition::OpenIf, ..Ask::open("f") };
    smb.create(&ask).expect("an answer").expect("a file")
}

fn exclusive(file: FileId, more: u32) -> Request {
    let flags = lock_flags::EXCLUSIVE | more;
    Request {
        lock_sequence: 0,
        file,
        locks: vec![Element { offset: 0, length: 9, flags, reserved: 0 }],
    }
}

fn lock(smb: &mut Smb, file: FileId, more: u32) -> NtStatus {
    let lock = exclusive(file, more);
    smb.call(Command::LOCK, 0, &|out| lock.put(out)).expect("an answer").status()
}

/// Sends a LOCK; returns its number.
fn send_lock(smb: &mut Smb, file: FileId) -> u64 {
    let lock = exclusive(file, 0);
    let request = smb.request(Command::LOCK, 0, &|out| lock.put(out));
    let id = Header::decode(&request).expect("a header").message_id;
    smb.send(&[request]).expect("sent");
    id
}

/// LOCK of several ranges, each of ten bytes, which does not wait.
fn lock_all(smb: &mut Smb, file: FileId, ranges: &[(u64, u32)]) -> NtStatus {
    let at_once = lock_flags::FAIL_IMMEDIATELY;
    let element = |(offset, flags): &(u64, u32)| {
        let flags = flags | if *flags == lock_flags::UNLOCK { 0 } else { at_once };
        Element { offset: *offset, length: 10, flags, reserved: 0 }
    };
    let lock = Request { lock_sequence: 0, file, locks: ranges.iter().map(element).collect() };
    smb.call(Command::LOCK, 0, &|out| lock.put(out)).expect("an answer").status()
}

#[test]
fn a_lock_that_fails_unlocks_only_what_it_has_locked() {
    const SHARED: u32 = lock_flags::SHARED;
    const EXCLUSIVE: u32 = lock_flags::EXCLUSIVE;
    let (done, refused) = (NtStatus::SUCCESS, NtStatus::LOCK_NOT_GRANTED);
    let mut running = Running::new();
    let mut other = running.again();
    let (file, theirs) = (open(&mut running.alice), open(&mut other));
    let alice = &mut running.alice;
    assert_eq!(lock_all(alice, file, &[(0, EXCLUSIVE)]), done);
    assert_eq!(lock_all(&mut other, theirs, &[(100, EXCLUSIVE)]), done);
    assert_eq!(lock_all(alice, file, &[(0, SHARED), (100, EXCLUSIVE)]), refused);
    assert_eq!(lock_all(&mut other, theirs, &[(0, SHARED)]), refused, "the exclusive one is held");
    assert_eq!(lock_all(alice, file, &[(0, lock_flags::UNLOCK)]), done);
    assert_eq!(lock_all(alice, file, &[(0, lock_flags::UNLOCK)]), NtStatus::RANGE_NOT_LOCKED);
    assert_eq!(lock_all(&mut other, theirs, &[(0, EXCLUSIVE)]), done, "nothing is left");
}

#[test]
fn requests_that_wait_do_not_hold_up_others() {
    let mut running = Running::new();
    let mut smb = running.again();
    let (held, file) = (open(&mut running.alice), open(&mut smb));
    let at_once = lock_flags::FAIL_IMMEDIATELY;
    assert_eq!(lock(&mut running.alice, held, at_once), NtStatus::SUCCESS);
    let mut waiting = Vec::new();
    while waiting.len() < SMB_WAITING_MAX {
        let batch: Vec<u64> = (0..BATCH).map(|_| send_lock(&mut smb, file)).collect();
        // Interim responses have the credits for the next ones (MS-SMB2 3.3.4.2).
        for _ in &batch {
            let interim = smb.receive().expect("an answer").remove(0);
            assert_eq!(interim.status(), NtStatus::PENDING);
        }
        waiting.extend(batch);
    }
    assert_eq!(smb.echo().expect("an answer"), NtStatus::SUCCESS, "ECHO is answered");
    let one_more = lock(&mut smb, file, 0);
    assert_eq!(one_more, NtStatus::INSUFFICIENT_RESOURCES);
    let mut cancel = message(Command::CANCEL, (waiting[0], 0), (smb.session, smb.tree));
    Empty { reserved: 0 }.put_body(&mut cancel);
    smb.send(&[cancel]).expect("sent");
    let cancelled = smb.answer().expect("an answer");
    assert_eq!(
        (cancelled.status(), cancelled.header.message_id),
        (NtStatus::CANCELLED, waiting[0])
    );
    send_lock(&mut smb, file);
    assert_eq!(smb.echo().expect("an answer"), NtStatus::SUCCESS, "its place is free again");
}
