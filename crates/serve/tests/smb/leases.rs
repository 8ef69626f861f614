//! Leases and oplocks over the wire: a break goes behind the answer that granted, the opener waits
//! with STATUS_PENDING until the holder acknowledges, closes or is gone, or until it is cancelled.

use e2e::api::wait_for;
use e2e::patience;
use e2e::smb::{Answer, Smb, message};
use wire::smb::contexts::{self, Context};
use wire::smb::create::{self, Disposition, FileId, access, share_access};
use wire::smb::header::{Command, Header};
use wire::smb::lease::{
    Ack, Lease, LeaseAck, LeaseBreak, LeaseKey, LeaseV2, Notice, OplockBreak, level,
};
use wire::smb::session::Empty;
use wire::smb::status::NtStatus;
use wire::smb::utf16;

use crate::running::Running;

pub const R: u32 = 1;
pub const RH: u32 = 3;
pub const RWH: u32 = 7;
pub const KEYS: [LeaseKey; 2] = [[1; 16], [2; 16]];

/// What is asked for.
#[derive(Clone, Copy)]
pub enum Caching {
    Oplock(u8),
    Lease(LeaseKey, u32),
}

/// Sends a CREATE of the file `f`; returns its number.
fn send(smb: &mut Smb, caching: Caching) -> u64 {
    send_to(smb, "f", caching)
}

pub fn send_to(smb: &mut Smb, name: &str, caching: Caching) -> u64 {
    send_as(smb, (name, Disposition::OpenIf), caching)
}

fn send_as(smb: &mut Smb, (name, disposition): (&str, Disposition), caching: Caching) -> u64 {
    let (mut data, mut list) = (Vec::new(), Vec::new());
    let oplock = match caching {
        Caching::Oplock(level) => level,
        Caching::Lease(key, state) => {
            let v2 = Some(LeaseV2 { parent: [0; 16], epoch: 10, reserved: 0 });
            Lease { key, state, flags: 0, duration: 0, v2 }.put(&mut data);
            contexts::put(&[Context { name: contexts::LEASE, data: &data }], &mut list);
            level::LEASE
        }
    };
    let name = utf16::encode(name);
    let create = create::Request {
        oplock,
        impersonation: 2,
        access: access::READ_DATA | access::WRITE_DATA,
        attributes: 0,
        share: share_access::READ | share_access::WRITE | share_access::DELETE,
        disposition: disposition as u32,
        options: 0,
        name: &name,
        contexts: &list,
    };
    let request = smb.request(Command::CREATE, 0, &|out| create.put(out, 0));
    let id = Header::decode(&request).expect("a header").message_id;
    smb.send(&[request]).expect("sent");
    id
}

pub fn next(smb: &mut Smb) -> Answer {
    smb.receive().expect("an answer").remove(0)
}

/// What an open was granted: oplock level, lease state and epoch.
pub fn opened(answer: &Answer) -> (FileId, u8, Option<(u32, u16)>) {
    assert_eq!((answer.header.command, answer.status()), (Command::CREATE, NtStatus::SUCCESS));
    let response = create::Response::decode(&answer.message).expect("a response");
    let list = contexts::decode(response.contexts).expect("contexts");
    let lease = list.iter().find(|context| context.name == contexts::LEASE);
    let lease = lease.map(|context| Lease::decode(context.data).expect("a lease"));
    let lease = lease.map(|lease| (lease.state, lease.v2.map_or(0, |v2| v2.epoch)));
    (response.file, response.oplock, lease)
}

fn open(smb: &mut Smb, caching: Caching) -> (FileId, u8, Option<(u32, u16)>) {
    send(smb, caching);
    opened(&smb.answer().expect("an answer"))
}

/// What the client is notified of.
pub fn broken(answer: &Answer) -> Notice {
    let Header { command, message_id, session_id, .. } = answer.header;
    let expected = (Command::OPLOCK_BREAK, u64::MAX, 0);
    assert_eq!((command, message_id, session_id), expected, "a notification");
    Notice::decode(&answer.message).expect("a break")
}

fn lease_broken(answer: &Answer) -> (u32, u32, u16, u32) {
    let Notice::Lease(LeaseBreak { epoch, flags, from, to, .. }) = broken(answer) else {
        panic!("an oplock");
    };
    (from, to, epoch, flags)
}

pub fn acknowledge(smb: &mut Smb, ack: Ack) -> NtStatus {
    smb.call(Command::OPLOCK_BREAK, 0, &|out| ack.put(out)).expect("an answer").status()
}

pub fn keep(key: LeaseKey, state: u32) -> Ack {
    Ack::Lease(LeaseAck { reserved: 0, flags: 0, key, state, duration: 0 })
}

#[test]
fn an_opener_waits_until_the_holder_acknowledges() {
    let mut running = Running::new();
    let mut other = running.again();
    let (_, level, lease) = open(&mut running.alice, Caching::Lease(KEYS[0], RWH));
    assert_eq!((level, lease), (level::LEASE, Some((RWH, 11))));
    assert_eq!(acknowledge(&mut running.alice, keep(KEYS[0], RH)), NtStatus::UNSUCCESSFUL);
    let id = send(&mut other, Caching::Lease(KEYS[1], RWH));
    assert_eq!(next(&mut other).status(), NtStatus::PENDING);
    assert_eq!(lease_broken(&next(&mut running.alice)), (RWH, RH, 12, 1));
    let alice = &mut running.alice;
    assert_eq!(acknowledge(alice, keep([9; 16], RH)), NtStatus::OBJECT_NAME_NOT_FOUND);
    assert_eq!(acknowledge(alice, keep(KEYS[0], RWH)), NtStatus::REQUEST_NOT_ACCEPTED);
    assert_eq!(acknowledge(alice, keep(KEYS[0], RH)), NtStatus::SUCCESS);
    let answer = next(&mut other);
    assert_eq!(answer.header.message_id, id);
    let (file, _, lease) = opened(&answer);
    assert_eq!(lease, Some((RH, 11)));
    assert_eq!(other.write(file, 0, b"x", 0).expect("an answer"), NtStatus::SUCCESS);
    assert_eq!(lease_broken(&next(&mut running.alice)), (RH, 0, 13, 1));
    assert_eq!(acknowledge(&mut running.alice, keep(KEYS[0], 0)), NtStatus::SUCCESS);
}

#[test]
fn an_open_that_empties_the_file_does_not_break_the_lease_of_its_own_key() {
    let mut running = Running::new();
    let (file, ..) = open(&mut running.alice, Caching::Lease(KEYS[0], RWH));
    assert_eq!(running.alice.write(file, 0, b"x", 0).expect("an answer"), NtStatus::SUCCESS);
    let emptied = ("f", Disposition::OverwriteIf);
    send_as(&mut running.alice, emptied, Caching::Lease(KEYS[0], RWH));
    let (_, _, lease) = opened(&running.alice.answer().expect("an answer"));
    assert_eq!(lease.map(|(state, _)| state), Some(RWH));
    assert_eq!(running.alice.read(file, 0, 9).expect("an answer"), Err(NtStatus::END_OF_FILE));
    // That of another key is broken.
    let mut other = running.client(2);
    send_as(&mut other, emptied, Caching::Lease(KEYS[1], R));
    assert_eq!(next(&mut other).status(), NtStatus::PENDING);
    let (from, to, ..) = lease_broken(&next(&mut running.alice));
    assert_eq!((from, to), (RWH, 0));
    assert_eq!(acknowledge(&mut running.alice, keep(KEYS[0], 0)), NtStatus::SUCCESS);
    opened(&next(&mut other));
}

#[test]
fn an_opener_continues_when_the_holder_closes_or_is_gone() {
    let mut running = Running::new();
    for is_gone in [false, true] {
        let (mut holder, mut other) = (running.again(), running.again());
        let (file, granted, _) = open(&mut holder, Caching::Oplock(level::BATCH));
        assert_eq!(granted, level::BATCH);
        send(&mut other, Caching::Oplock(level::BATCH));
        assert_eq!(next(&mut other).status(), NtStatus::PENDING);
        let notice = broken(&next(&mut holder));
        let expected = OplockBreak { level: level::II, reserved: 0, reserved2: 0, file };
        assert_eq!(notice, Notice::Other(Ack::Oplock(expected)));
        match is_gone {
            false => assert_eq!(holder.close(file).expect("an answer"), NtStatus::SUCCESS),
            true => drop(holder),
        }
        let (_, granted, _) = opened(&next(&mut other));
        assert_eq!(granted, level::BATCH, "no other client has it open");
    }
    assert_eq!(running.alice.echo().expect("an answer"), NtStatus::SUCCESS);
}

#[test]
fn an_opener_that_waits_can_be_cancelled() {
    let mut running = Running::new();
    let mut other = running.again();
    let (file, ..) = open(&mut running.alice, Caching::Oplock(level::EXCLUSIVE));
    let id = send(&mut other, Caching::Oplock(level::NONE));
    assert_eq!(next(&mut other).status(), NtStatus::PENDING);
    let mut cancel = message(Command::CANCEL, (id, 0), (other.session, other.tree));
    Empty { reserved: 0 }.put_body(&mut cancel);
    other.send(&[cancel]).expect("sent");
    assert_eq!(next(&mut other).status(), NtStatus::CANCELLED);
    broken(&next(&mut running.alice));
    let none = OplockBreak { level: level::NONE, reserved: 0, reserved2: 0, file };
    assert_eq!(acknowledge(&mut running.alice, Ack::Oplock(none)), NtStatus::SUCCESS);
    let again = acknowledge(&mut running.alice, Ack::Oplock(none));
    assert_eq!(again, NtStatus::INVALID_OPLOCK_PROTOCOL);
    assert_eq!(open(&mut other, Caching::Oplock(level::BATCH)).1, level::II, "it is open");
}

#[test]
fn an_opener_that_waits_opens_nothing_once_its_tree_is_disconnected() {
    let mut running = Running::new();
    let mut other = running.again();
    let (file, ..) = open(&mut running.alice, Caching::Oplock(level::EXCLUSIVE));
    send(&mut other, Caching::Oplock(level::NONE));
    assert_eq!(next(&mut other).status(), NtStatus::PENDING);
    let left = other.call(Command::TREE_DISCONNECT, 0, &|out| {
        Empty { reserved: 0 }.put_body(out);
    });
    assert_eq!(left.expect("an answer").status(), NtStatus::SUCCESS);
    broken(&next(&mut running.alice));
    assert_eq!(running.alice.close(file).expect("an answer"), NtStatus::SUCCESS);
    assert_eq!(next(&mut other).status(), NtStatus::NETWORK_NAME_DELETED);
    assert_eq!(running.server.files_open(), 0);
    assert_eq!(running.scene.files.locks.counts().opens, 0);
}

#[test]
fn a_break_never_comes_before_the_answer_that_granted() {
    let running = Running::new();
    let (mut holder, mut other) = (running.client(2), running.again());
    for _ in 0..200 {
        send(&mut holder, Caching::Lease(KEYS[0], RWH));
        send(&mut other, Caching::Lease(KEYS[1], R));
        let first = next(&mut holder);
        let (file, _, lease) = opened(&first);
        if lease.is_some_and(|(state, _)| state == RWH) {
            let (from, to, _, _) = lease_broken(&next(&mut holder));
            assert_eq!((from, to), (RWH, RH));
            assert_eq!(acknowledge(&mut holder, keep(KEYS[0], RH)), NtStatus::SUCCESS);
        }
        let mut answer = next(&mut other);
        if answer.status() == NtStatus::PENDING {
            answer = next(&mut other);
        }
        let (theirs, _, _) = opened(&answer);
        assert_eq!(holder.close(file).expect("an answer"), NtStatus::SUCCESS);
        assert_eq!(other.close(theirs).expect("an answer"), NtStatus::SUCCESS);
    }
}

#[test]
fn a_key_is_for_one_file() {
    let running = Running::new();
    let mut smb = running.again();
    let (file, ..) = open(&mut smb, Caching::Lease(KEYS[0], RH));
    assert_eq!(open(&mut smb, Caching::Lease(KEYS[0], RWH)).2, Some((RWH, 12)), "the same file");
    send_to(&mut smb, "g", Caching::Lease(KEYS[0], R));
    assert_eq!(next(&mut smb).status(), NtStatus::INVALID_PARAMETER);
    send_to(&mut smb, "g", Caching::Lease(KEYS[1], R));
    assert_eq!(opened(&smb.answer().expect("an answer")).2, Some((R, 11)));
    assert_eq!(smb.close(file).expect("an answer"), NtStatus::SUCCESS);
}

#[test]
fn a_break_goes_to_the_first_connection_of_its_client() {
    let running = Running::new();
    let [mut first, mut second, mut other] = [2, 2, 3].map(|number| running.client(number));
    open(&mut second, Caching::Lease(KEYS[0], RH));
    let (file, ..) = open(&mut other, Caching::Lease(KEYS[1], R));
    assert_eq!(other.write(file, 0, b"x", 0).expect("an answer"), NtStatus::SUCCESS);
    assert_eq!(lease_broken(&next(&mut first)), (RH, 0, 12, 1));
    assert_eq!(acknowledge(&mut first, keep(KEYS[0], 0)), NtStatus::SUCCESS);
    let sessions = running.server.sessions.rows_now().len();
    drop(first);
    wait_for("the end of its session", patience(10), || {
        (running.server.sessions.rows_now().len() < sessions).then_some(())
    });
    assert_eq!(open(&mut second, Caching::Lease(KEYS[0], RH)).2, Some((RH, 13)));
    assert_eq!(other.write(file, 0, b"y", 0).expect("an answer"), NtStatus::SUCCESS);
    assert_eq!(lease_broken(&next(&mut second)), (RH, 0, 14, 1));
}
