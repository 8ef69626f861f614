//! Durable handles over the wire: what is granted, what outlives a connection, for which client,
//! and what ends it. The sequence of macOS (Time Machine) is one of them.

use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use e2e::api;
use e2e::smb::sign_in::Proof;
use e2e::smb::{Answer, Offer, SHARED, Smb};
use e2e::tcp::HERE;
use serve::smb::state::sessions::End;
use vfs::cred::Cred;
use wire::smb::codec::Field as _;
use wire::smb::contexts::{self, Context};
use wire::smb::create::{self, Disposition, FileId, access, options};
use wire::smb::durable::{DurableV2, DurableV2Answer, PERSISTENT, ReconnectV2, put_v1};
use wire::smb::header::{Command, Header, flags};
use wire::smb::lease::{Lease, LeaseKey, LeaseV2, level};
use wire::smb::lock::{Element, Request as Lock, lock_flags};
use wire::smb::negotiate::capabilities;
use wire::smb::session::Empty;
use wire::smb::status::NtStatus;
use wire::smb::utf16;

use crate::leases::{self, Caching, KEYS, R, RH};
use crate::running::Running;

pub const RWH: u32 = 7;
const KEY: LeaseKey = [4; 16];
const GUID: [u8; 16] = [9; 16];

/// A CREATE of these contexts.
pub struct Create<'a> {
    pub name: &'a str,
    pub oplock: u8,
    pub contexts: Vec<(&'a [u8], Vec<u8>)>,
    pub share: u32,
    pub options: u32,
    pub flags: u32,
}

impl<'a> Create<'a> {
    pub fn of(name: &'a str) -> Self {
        let (oplock, contexts) = (level::NONE, Vec::new());
        Self { name, oplock, contexts, share: 0, options: 0, flags: 0 }
    }

    pub fn leased(mut self, key: LeaseKey, state: u32) -> Self {
        let mut data = Vec::new();
        let v2 = Some(LeaseV2 { parent: [0; 16], epoch: 1, reserved: 0 });
        Lease { key, state, flags: 0, duration: 0, v2 }.put(&mut data);
        self.contexts.push((contexts::LEASE, data));
        Self { oplock: level::LEASE, ..self }
    }

    pub fn durable(self, timeout_ms: u32, guid: [u8; 16]) -> Self {
        self.handle(timeout_ms, guid, 0)
    }

    pub fn persistent(self, timeout_ms: u32, guid: [u8; 16]) -> Self {
        self.handle(timeout_ms, guid, PERSISTENT)
    }

    fn handle(mut self, timeout_ms: u32, guid: [u8; 16], flags: u32) -> Self {
        let mut data = Vec::new();
        DurableV2 { timeout_ms, flags, reserved: 0, guid }.put(&mut data);
        self.contexts.push((contexts::DURABLE_V2, data));
        self
    }

    pub fn again(mut self, file: FileId, guid: [u8; 16]) -> Self {
        let mut data = Vec::new();
        ReconnectV2 { file, guid, flags: 0 }.put(&mut data);
        self.contexts.push((contexts::DURABLE_V2_RECONNECT, data));
        self
    }

    pub fn send(&self, smb: &mut Smb) -> Answer {
        let request = self.request(smb);
        smb.send(&[request]).expect("sent");
        smb.answer().expect("an answer")
    }

    fn request(&self, smb: &mut Smb) -> Vec<u8> {
        let (name, mut list) = (utf16::encode(self.name), Vec::new());
        let all: Vec<_> = self.contexts.iter().map(|(name, data)| Context { name, data }).collect();
        contexts::put(&all, &mut list);
        let create = create::Request {
            oplock: self.oplock,
            impersonation: 2,
            access: access::READ_DATA | access::WRITE_DATA | access::DELETE,
            attributes: 0,
            share: self.share,
            disposition: Disposition::OpenIf as u32,
            options: self.options,
            name: &name,
            contexts: &list,
        };
        let mut request = smb.request(Command::CREATE, 0, &|out| create.put(out, 0));
        let mut header = Header::decode(&request).expect("a header");
        header.flags |= self.flags;
        request[..64].copy_from_slice(&header.encode());
        request
    }
}

/// What was opened, and the time that was agreed on.
pub fn opened(answer: &Answer) -> (FileId, Option<u32>) {
    assert_eq!(answer.status(), NtStatus::SUCCESS);
    let response = create::Response::decode(&answer.message).expect("a response");
    let list = contexts::decode(response.contexts).expect("contexts");
    let durable = list.iter().find(|context| context.name == contexts::DURABLE_V2);
    let timeout = durable.map(|one| DurableV2Answer::decode(one.data).expect("a time").timeout_ms);
    (response.file, timeout)
}

pub fn client(running: &Running, user: &str, guid: [u8; 16]) -> Smb {
    let offer = Offer { client: guid, ..Offer::default() };
    Smb::open((HERE, running.at), &offer, (user, "secret"), "share").expect("a client")
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    api::wait_for(what, Duration::from_secs(20), || is_so().then_some(()));
}

pub fn parked(running: &Running, count: usize) {
    wait_for("parked opens", || running.server.parked(usize::MAX).len() == count);
}

#[test]
fn macos_gets_the_time_it_asks_for_and_all_its_files_back() {
    const FILES: u8 = 200;
    let running = Running::new();
    let mut mac = client(&running, "alice", [1; 16]);
    let leasing = capabilities::LEASING;
    assert_eq!(mac.negotiated.capabilities & leasing, leasing, "without it macOS asks for nothing");
    for (number, seconds) in [30, 120, 180].into_iter().enumerate() {
        let name = format!(".com.apple.timemachine.supported-{number}");
        let key = [100 + number as u8; 16];
        let asked = Create::of(&name).leased(key, RWH).durable(seconds * 1_000, key);
        let (file, granted) = opened(&asked.send(&mut mac));
        assert_eq!(granted, Some(seconds * 1_000));
        assert_eq!(mac.close(file).expect("an answer"), NtStatus::SUCCESS);
    }
    let names: Vec<_> = (0..FILES).map(|number| (format!("band-{number}"), [number; 16])).collect();
    let open = |(name, key): &(String, [u8; 16])| {
        opened(&Create::of(name).leased(*key, RWH).durable(30_000, *key).send(&mut mac)).0
    };
    let files: Vec<_> = names.iter().map(open).collect();
    drop(mac);
    parked(&running, FILES.into());
    let mut mac = client(&running, "alice", [1; 16]);
    let began = Instant::now();
    for ((name, key), file) in names.iter().zip(&files) {
        let again = Create::of(name).leased(*key, 0).again(*file, *key);
        let (same, _) = opened(&again.send(&mut mac));
        assert_eq!(same.persistent, file.persistent);
        assert_eq!(mac.write(same, 0, b"x", 0).expect("an answer"), NtStatus::SUCCESS);
    }
    let took = began.elapsed();
    println!("{FILES} files continued in {took:?}");
    // macOS permits thirty seconds for all of it.
    assert!(took < e2e::patience(5), "{took:?}");
    e2e::took_at_most("files continued", took, Duration::from_secs(5));
    assert!(running.server.parked(usize::MAX).is_empty());
}

#[test]
fn a_handle_is_continued_by_its_client_alone() {
    let running = Running::new();
    running.scene.users.add("bert", "secret", Cred::root());
    let mut first = client(&running, "alice", [1; 16]);
    let asked = Create::of("f").leased(KEY, RWH).durable(60_000, GUID);
    let (file, _) = opened(&asked.send(&mut first));
    let again = |file, guid, key| Create::of("f").leased(key, RWH).again(file, guid);
    let none = NtStatus::OBJECT_NAME_NOT_FOUND;
    let mut same = client(&running, "alice", [1; 16]);
    assert_eq!(again(file, GUID, KEY).send(&mut same).status(), none, "it has a connection");
    drop(first);
    parked(&running, 1);
    let guessed = FileId { persistent: file.persistent ^ 1, ..file };
    let mut bert = client(&running, "bert", [1; 16]);
    let mut other = client(&running, "alice", [2; 16]);
    assert_eq!(again(file, GUID, KEY).send(&mut bert).status(), none, "another user");
    assert_eq!(again(file, GUID, KEY).send(&mut other).status(), none, "another ClientGuid");
    assert_eq!(again(file, [8; 16], KEY).send(&mut same).status(), none, "another CreateGuid");
    assert_eq!(again(file, GUID, [5; 16]).send(&mut same).status(), none, "another key");
    assert_eq!(again(guessed, GUID, KEY).send(&mut same).status(), none, "a guessed number");
    let unleased = Create::of("f").again(file, GUID);
    assert_eq!(unleased.send(&mut same).status(), none, "no lease");
    let elsewhere = Create::of("g").leased(KEY, RWH).again(file, GUID);
    assert_eq!(elsewhere.send(&mut same).status(), NtStatus::INVALID_PARAMETER);
    opened(&again(file, GUID, KEY).send(&mut same));
}

#[test]
fn a_handle_needs_a_lease_of_handles_or_a_batch_oplock() {
    let mut running = Running::new();
    for (oplock, is_granted) in
        [(level::BATCH, true), (level::EXCLUSIVE, false), (level::II, false), (level::NONE, false)]
    {
        let asked = Create { oplock, ..Create::of("f").durable(0, GUID) };
        let (file, granted) = opened(&asked.send(&mut running.alice));
        assert_eq!(granted, is_granted.then_some(60_000), "{oplock}");
        assert_eq!(running.alice.close(file).expect("an answer"), NtStatus::SUCCESS);
    }
    let asked = Create::of("f").leased(KEY, RWH).durable(u32::MAX, GUID);
    let (file, granted) = opened(&asked.send(&mut running.alice));
    assert_eq!(granted, Some(300_000));
    assert_eq!(running.alice.close(file).expect("an answer"), NtStatus::SUCCESS);
    let mut v1 = Create { oplock: level::BATCH, ..Create::of("f") };
    let mut data = Vec::new();
    put_v1(&mut data);
    v1.contexts.push((contexts::DURABLE, data));
    let both = Create { oplock: level::BATCH, ..Create::of("f").durable(0, GUID) };
    let answer = v1.send(&mut running.alice);
    let response = create::Response::decode(&answer.message).expect("a response");
    let list = contexts::decode(response.contexts).expect("contexts");
    assert!(list.iter().any(|one| one.name == contexts::DURABLE && one.data == [0; 8]));
    let both = Create { contexts: [both.contexts, v1.contexts].concat(), ..both };
    assert_eq!(both.send(&mut running.alice).status(), NtStatus::INVALID_PARAMETER);
}

#[test]
fn what_another_client_needs_ends_a_handle_and_removes_what_it_would() {
    let running = Running::new();
    let mut first = client(&running, "alice", [1; 16]);
    let asked = Create::of("f").leased(KEY, RWH).durable(0, GUID);
    let asked = Create { options: options::DELETE_ON_CLOSE, ..asked };
    let (file, _) = opened(&asked.send(&mut first));
    drop(first);
    parked(&running, 1);
    let mut other = client(&running, "alice", [2; 16]);
    let answer = Create::of("f").send(&mut other);
    opened(&answer);
    let response = create::Response::decode(&answer.message).expect("a response");
    assert_eq!(response.action, create::action::CREATED, "the file of before is removed");
    parked(&running, 0);
    let mut same = client(&running, "alice", [1; 16]);
    let again = Create::of("f").leased(KEY, RWH).again(file, GUID);
    assert_eq!(again.send(&mut same).status(), NtStatus::OBJECT_NAME_NOT_FOUND);
}

#[test]
fn an_administrator_and_the_end_of_a_user_end_handles() {
    let running = Running::new();
    running.scene.users.add("bert", "secret", Cred::root());
    let open = |user, name, number| {
        let mut smb = client(&running, user, [number; 16]);
        let asked = Create::of(name).leased([number; 16], RWH).durable(0, [number; 16]);
        opened(&asked.send(&mut smb));
        smb
    };
    let (first, second, third) =
        (open("alice", "a", 1), open("alice", "b", 2), open("bert", "c", 3));
    let session = first.session;
    drop((first, third));
    parked(&running, 2);
    assert_eq!(running.server.end_parked_of(Some(session), None), 1);
    assert!(running.server.sessions.end(second.session, None, End::Closed));
    wait_for("one session", || running.server.files_open() == 1);
    running.scene.users.remove("bert");
    parked(&running, 0);
    wait_for("no open file", || running.server.files_open() == 0);
}

#[test]
fn a_client_that_signs_in_again_continues_what_its_lost_session_had() {
    let running = Running::new();
    let mut lost = client(&running, "alice", [1; 16]);
    let asked = Create::of("f").leased(KEY, RWH).durable(0, GUID);
    let (file, _) = opened(&asked.send(&mut lost));
    let offer = Offer { client: [1; 16], ..Offer::default() };
    let mut smb = Smb::connect(HERE, running.at, &offer).expect("a connection");
    let status = smb.sign_in_by(Proof::V2, "alice", "secret", lost.session).expect("an answer");
    assert_eq!(status, NtStatus::SUCCESS);
    assert!(smb.connect_tree("share").expect("an answer").is_ok());
    // The old connection is there still.
    opened(&Create::of("f").leased(KEY, RWH).again(file, GUID).send(&mut smb));
    assert_eq!(lost.close(file).expect("an answer"), NtStatus::USER_SESSION_DELETED);
}

#[test]
fn a_repeated_create_gets_the_open_of_the_first() {
    let mut running = Running::new();
    let first = Create::of("f").leased(KEY, RWH).durable(0, GUID);
    let (file, granted) = opened(&first.send(&mut running.alice));
    let duplicate = first.send(&mut running.alice);
    assert_eq!(duplicate.status(), NtStatus::DUPLICATE_OBJECTID);
    let again = Create { flags: flags::REPLAY, ..first };
    assert_eq!(opened(&again.send(&mut running.alice)), (file, granted));
    let mut second = running.again();
    assert_eq!(again.send(&mut second).status(), NtStatus::ACCESS_DENIED, "another session");
    let other = Create::of("f").leased([5; 16], RWH).durable(0, GUID);
    let other = Create { flags: flags::REPLAY, ..other };
    assert_eq!(other.send(&mut running.alice).status(), NtStatus::ACCESS_DENIED, "another key");
    assert_eq!(running.alice.close(file).expect("an answer"), NtStatus::SUCCESS);
    opened(&again.send(&mut running.alice));
}

#[test]
fn a_repeated_create_is_another_one_once_its_open_was_used() {
    let mut running = Running::new();
    let exclusive = lock_flags::EXCLUSIVE | lock_flags::FAIL_IMMEDIATELY;
    for (number, name) in ["written", "locked"].into_iter().enumerate() {
        let key = [number as u8 + 1; 16];
        let first = Create::of(name).leased(key, RWH).durable(0, key);
        let (file, _) = opened(&first.send(&mut running.alice));
        let again = Create { flags: flags::REPLAY, ..first };
        let (same, _) = opened(&again.send(&mut running.alice));
        assert_eq!(same, file, "it is not used");
        let used = match number {
            0 => running.alice.write(file, 0, b"x", 0).expect("an answer"),
            _ => lock(&mut running.alice, file, (0, 0), exclusive),
        };
        assert_eq!(used, NtStatus::SUCCESS);
        let refused = again.send(&mut running.alice).status();
        assert_eq!(refused, NtStatus::SHARING_VIOLATION, "{name}: the first one denies it");
        assert_eq!(running.alice.close(file).expect("an answer"), NtStatus::SUCCESS);
        let (other, _) = opened(&again.send(&mut running.alice));
        assert_ne!(other, file);
    }
}

#[test]
fn a_repeated_create_after_a_lost_connection_continues_its_handle() {
    let running = Running::new();
    let mut first = client(&running, "alice", [1; 16]);
    let asked = Create::of("f").leased(KEY, RWH).durable(0, GUID);
    let (file, _) = opened(&asked.send(&mut first));
    drop(first);
    parked(&running, 1);
    let mut same = client(&running, "alice", [1; 16]);
    let again = Create { flags: flags::REPLAY, ..asked };
    let (continued, _) = opened(&again.send(&mut same));
    assert_eq!(continued.persistent, file.persistent);
}

/// LOCK of the first bytes, of this LockSequence.
pub fn lock(smb: &mut Smb, file: FileId, (index, number): (u32, u32), flags: u32) -> NtStatus {
    let locks = vec![Element { offset: 0, length: 9, flags, reserved: 0 }];
    let lock = Lock { lock_sequence: index << 4 | number, file, locks };
    smb.call(Command::LOCK, 0, &|out| lock.put(out)).expect("an answer").status()
}

#[test]
fn a_lock_that_is_sent_again_on_a_durable_handle_is_not_done_again() {
    const EXCLUSIVE: u32 = lock_flags::EXCLUSIVE | lock_flags::FAIL_IMMEDIATELY;
    const UNLOCK: u32 = lock_flags::UNLOCK;
    let (done, refused) = (NtStatus::SUCCESS, NtStatus::LOCK_NOT_GRANTED);
    let running = Running::new();
    let mut first = client(&running, "alice", [1; 16]);
    let asked = Create::of("f").leased(KEY, RWH).durable(0, GUID);
    let (file, _) = opened(&asked.send(&mut first));
    assert_eq!(lock(&mut first, file, (1, 3), EXCLUSIVE), done);
    assert_eq!(lock(&mut first, file, (1, 3), EXCLUSIVE), done, "again");
    assert_eq!(lock(&mut first, file, (2, 3), EXCLUSIVE), refused, "another index");
    assert_eq!(lock(&mut first, file, (2, 3), EXCLUSIVE), refused, "a failure is not remembered");
    assert_eq!(lock(&mut first, file, (0, 3), EXCLUSIVE), refused, "no index");
    assert_eq!(lock(&mut first, file, (65, 3), EXCLUSIVE), refused, "an index above all");
    drop(first);
    parked(&running, 1);
    let mut first = client(&running, "alice", [1; 16]);
    let again = Create::of("f").leased(KEY, RWH).again(file, GUID);
    let (file, _) = opened(&again.send(&mut first));
    assert_eq!(lock(&mut first, file, (1, 3), EXCLUSIVE), done, "over another connection");
    assert_eq!(lock(&mut first, file, (1, 4), UNLOCK), done);
    assert_eq!(lock(&mut first, file, (1, 4), UNLOCK), done, "again");
    let none = NtStatus::RANGE_NOT_LOCKED;
    assert_eq!(lock(&mut first, file, (1, 5), UNLOCK), none, "it was unlocked once");
    assert_eq!(lock(&mut first, file, (1, 4), UNLOCK), none, "forgotten with the next one");
    let (file, _) = opened(&Create::of("g").send(&mut first));
    assert_eq!(lock(&mut first, file, (1, 1), EXCLUSIVE), done);
    assert_eq!(lock(&mut first, file, (1, 1), EXCLUSIVE), refused, "the handle is not durable");
}

#[test]
fn a_lock_that_waits_ends_with_its_connection() {
    const GUIDS: [[u8; 16]; 2] = [[8; 16], [9; 16]];
    let at_once = lock_flags::EXCLUSIVE | lock_flags::FAIL_IMMEDIATELY;
    let running = Running::new();
    let mut smb = client(&running, "alice", [1; 16]);
    let open = |guid| Create { share: SHARED, ..Create::of("f").leased(KEY, RWH).durable(0, guid) };
    let files = GUIDS.map(|guid| opened(&open(guid).send(&mut smb)).0);
    assert_eq!(lock(&mut smb, files[0], (0, 0), at_once), NtStatus::SUCCESS);
    let locks = vec![Element { offset: 0, length: 9, flags: lock_flags::EXCLUSIVE, reserved: 0 }];
    let waits = Lock { lock_sequence: 0, file: files[1], locks };
    let waits = smb.request(Command::LOCK, 0, &|out| waits.put(out));
    smb.send(&[waits]).expect("sent");
    assert_eq!(smb.receive().expect("an answer")[0].status(), NtStatus::PENDING);
    drop(smb);
    parked(&running, 2);
    let mut smb = client(&running, "alice", [1; 16]);
    let again =
        |number: usize| Create::of("f").leased(KEY, RWH).again(files[number], GUIDS[number]);
    let files = [0, 1].map(|number| opened(&again(number).send(&mut smb)).0);
    let unlocked = lock(&mut smb, files[0], (0, 0), lock_flags::UNLOCK);
    assert_eq!(unlocked, NtStatus::SUCCESS);
    assert_eq!(lock(&mut smb, files[1], (0, 0), at_once), NtStatus::SUCCESS, "it is free");
    assert_eq!(lock(&mut smb, files[1], (0, 0), lock_flags::UNLOCK), NtStatus::SUCCESS);
    assert_eq!(lock(&mut smb, files[0], (0, 0), at_once), NtStatus::SUCCESS, "it was locked once");
}

#[test]
fn a_reconnection_that_fails_can_be_repeated_and_breaks_come_to_it() {
    let running = Running::new();
    let mut first = client(&running, "alice", [1; 16]);
    let asked = Create { share: SHARED, ..Create::of("f").leased(KEY, RWH).durable(0, GUID) };
    let (file, _) = opened(&asked.send(&mut first));
    drop(first);
    parked(&running, 1);
    let mut same = client(&running, "alice", [1; 16]);
    let again = Create::of("f").leased(KEY, RWH).again(file, GUID);
    running.fs.plant("getattr");
    assert_eq!(again.send(&mut same).status(), NtStatus::INTERNAL_ERROR);
    assert!(!running.fs.is_planted());
    opened(&again.send(&mut same));
    let mut other = client(&running, "alice", [2; 16]);
    leases::send_to(&mut other, "f", Caching::Lease(KEYS[1], R));
    assert_eq!(leases::next(&mut other).status(), NtStatus::PENDING);
    leases::broken(&leases::next(&mut same));
    let kept = leases::acknowledge(&mut same, leases::keep(KEY, RH));
    assert_eq!(kept, NtStatus::SUCCESS);
    leases::opened(&leases::next(&mut other));
}

#[test]
fn a_reconnection_that_waits_opens_nothing_once_its_tree_is_disconnected() {
    let running = Running::new();
    let mut first = client(&running, "alice", [1; 16]);
    let asked = Create::of("f").leased(KEY, RWH).durable(0, GUID);
    let (file, _) = opened(&asked.send(&mut first));
    drop(first);
    parked(&running, 1);
    let mut same = client(&running, "alice", [1; 16]);
    let again = Create::of("f").leased(KEY, RWH).again(file, GUID);
    running.fs.blocks.store(true, SeqCst);
    let held = running.fs.hold("getattr");
    let request = again.request(&mut same);
    same.send(&[request]).expect("sent");
    held.wait();
    let left = same.request(Command::TREE_DISCONNECT, 0, &|out| {
        Empty { reserved: 0 }.put_body(out);
    });
    same.send(&[left]).expect("sent");
    let left = same.answer().expect("an answer");
    assert_eq!(left.header.command, Command::TREE_DISCONNECT);
    drop(held);
    assert_eq!(same.answer().expect("an answer").status(), NtStatus::NETWORK_NAME_DELETED);
    assert!(same.connect_tree("share").expect("an answer").is_ok());
    opened(&again.send(&mut same));
}

#[test]
fn many_reconnections_leave_nothing_behind() {
    let running = Running::new();
    let mut file = None;
    for _ in 0..200 {
        let mut smb = client(&running, "alice", [1; 16]);
        let asked = Create::of("f").leased(KEY, RWH);
        let asked = match file {
            None => asked.durable(0, GUID),
            Some(file) => asked.again(file, GUID),
        };
        file = Some(opened(&asked.send(&mut smb)).0);
    }
    parked(&running, 1);
    assert_eq!((running.server.files_open(), running.scene.files.locks.counts().leases), (1, 1));
    let mut other = client(&running, "alice", [2; 16]);
    let (file, _) = opened(&Create::of("f").send(&mut other));
    assert_eq!(other.close(file).expect("an answer"), NtStatus::SUCCESS);
    wait_for("nothing open", || running.server.files_open() == 0);
    assert_eq!(running.scene.files.locks.counts().leases, 0);
}
