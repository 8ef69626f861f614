//! Persistent handles over the wire: for which share and client they are granted, and what of them
//! is there after the server was killed, once and again.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use e2e::smb::{Answer, Smb};
use vfs::cred::Cred;
use vfs::mem::MemFs;
use vfs::share::tag;
use wire::smb::contexts;
use wire::smb::create::{self, FileId};
use wire::smb::durable::{DurableV2Answer, PERSISTENT};
use wire::smb::header::flags;
use wire::smb::lock::lock_flags;
use wire::smb::negotiate::capabilities;
use wire::smb::status::NtStatus;
use wire::smb::tree::share_capabilities::CONTINUOUS_AVAILABILITY;

use crate::durable::{Create, RWH, client, lock, opened, parked};
use crate::planted::Planted;
use crate::running::Running;
use crate::scene::Scratch;

const GUID: [u8; 16] = [9; 16];
const ME: [u8; 16] = [1; 16];
const SHARED: u32 = 7;
const EXCLUSIVE: u32 = lock_flags::EXCLUSIVE | lock_flags::FAIL_IMMEDIATELY;
const NONE: NtStatus = NtStatus::OBJECT_NAME_NOT_FOUND;

/// A server with a file of handles, which can be killed.
struct World {
    fs: Arc<Planted>,
    scratch: Scratch,
    lives: u32,
    running: Option<Running>,
}

impl World {
    fn new() -> Self {
        let fs = Planted::over(MemFs::new(tag("share"), 1 << 30));
        let mut world = Self { fs, scratch: Scratch::new(), lives: 0, running: None };
        world.start();
        world
    }

    fn file(&self) -> PathBuf {
        self.scratch.0.join(format!("smb-handles-{}", self.lives))
    }

    fn start(&mut self) {
        self.running = Some(Running::recording(Arc::clone(&self.fs), &self.file()));
    }

    fn running(&self) -> &Running {
        self.running.as_ref().expect("a server")
    }

    fn me(&self) -> Smb {
        client(self.running(), "alice", ME)
    }

    /// Ends the server, of which nothing is left but what was on disk before; and starts another.
    fn kill(&mut self) {
        let before = fs::read(self.file()).expect("the file");
        drop(self.running.take());
        self.lives += 1;
        fs::write(self.file(), before).expect("the file");
        self.start();
    }

    /// Ends the server orderly, and starts it again.
    fn restart(&mut self) {
        drop(self.running.take());
        self.start();
    }
}

/// Flags and time of the handle that was granted.
fn granted(answer: &Answer) -> Option<(u32, u32)> {
    let response = create::Response::decode(&answer.message).expect("a response");
    let list = contexts::decode(response.contexts).expect("contexts");
    let durable = list.iter().find(|context| context.name == contexts::DURABLE_V2)?;
    let answer = DurableV2Answer::decode(durable.data).expect("an answer");
    Some((answer.flags, answer.timeout_ms))
}

fn again(smb: &mut Smb, name: &str, file: FileId) -> Answer {
    Create::of(name).again(file, GUID).send(smb)
}

#[test]
fn a_continuous_share_grants_them_without_a_lease() {
    let world = World::new();
    let mut me = world.me();
    let capability = capabilities::PERSISTENT_HANDLES;
    assert_eq!(me.negotiated.capabilities & capability, capability);
    let tree = me.connect_tree("share").expect("an answer").expect("the share");
    assert_eq!(tree.capabilities, CONTINUOUS_AVAILABILITY);
    let (file, _) = {
        let answer = Create::of("f").persistent(45_000, GUID).send(&mut me);
        assert_eq!(granted(&answer), Some((PERSISTENT, 45_000)));
        opened(&answer)
    };
    assert_eq!(me.close(file).expect("an answer"), NtStatus::SUCCESS);
    let plain = Create::of("f").durable(45_000, GUID).send(&mut me);
    assert_eq!(granted(&plain), None, "a durable handle needs a lease");
    assert_eq!(me.close(opened(&plain).0).expect("an answer"), NtStatus::SUCCESS);
    let table = world.running().scene.files.shares.load();
    table.by_name("share").expect("the share").set_continuous(false);
    let tree = me.connect_tree("share").expect("an answer").expect("the share");
    assert_eq!(tree.capabilities, 0);
    let unleased = Create::of("f").persistent(45_000, GUID).send(&mut me);
    assert_eq!(granted(&unleased), None);
    assert_eq!(me.close(opened(&unleased).0).expect("an answer"), NtStatus::SUCCESS);
    let leased = Create::of("f").leased([4; 16], RWH).persistent(45_000, GUID).send(&mut me);
    assert_eq!(granted(&leased), Some((0, 45_000)), "a durable one");
}

#[test]
fn without_a_file_of_handles_there_are_none() {
    let running = Running::new();
    let table = running.scene.files.shares.load();
    table.by_name("share").expect("the share").set_continuous(true);
    let mut me = client(&running, "alice", ME);
    assert_eq!(me.negotiated.capabilities & capabilities::PERSISTENT_HANDLES, 0);
    let tree = me.connect_tree("share").expect("an answer").expect("the share");
    assert_eq!(tree.capabilities, 0);
    let answer = Create::of("f").persistent(45_000, GUID).send(&mut me);
    assert_eq!(granted(&answer), None);
}

#[test]
fn opens_deny_modes_and_locks_are_there_after_each_kill() {
    let mut world = World::new();
    let mut me = world.me();
    let denying = Create::of("denied").persistent(60_000, [8; 16]).send(&mut me);
    let shared = Create { share: SHARED, ..Create::of("locked").persistent(60_000, GUID) };
    let (mut file, _) = opened(&shared.send(&mut me));
    let (denied, _) = opened(&denying);
    assert_eq!(lock(&mut me, file, (1, 3), EXCLUSIVE), NtStatus::SUCCESS);
    for kill in 0..3 {
        world.kill();
        parked(world.running(), 2);
        let mut other = client(world.running(), "alice", [2; 16]);
        let refused = Create { share: SHARED, ..Create::of("denied") }.send(&mut other);
        assert_eq!(refused.status(), NtStatus::SHARING_VIOLATION, "after {kill}");
        let beside = Create { share: SHARED, ..Create::of("locked") };
        let (its, _) = opened(&beside.send(&mut other));
        let refused = NtStatus::LOCK_NOT_GRANTED;
        assert_eq!(lock(&mut other, its, (0, 0), EXCLUSIVE), refused, "after {kill}");
        let conflict = NtStatus::FILE_LOCK_CONFLICT;
        assert_eq!(other.write(its, 0, b"x", 0).expect("an answer"), conflict);
        let mut me = world.me();
        let (same, _) = opened(&again(&mut me, "locked", file));
        assert_eq!(same.persistent, file.persistent);
        assert_eq!(me.write(same, 0, b"mine", 0).expect("an answer"), NtStatus::SUCCESS);
        assert_eq!(lock(&mut me, same, (1, 3), EXCLUSIVE), NtStatus::SUCCESS, "sent again");
        file = same;
        parked(world.running(), 1);
    }
    let mut me = world.me();
    let (same, _) = opened(&Create::of("denied").again(denied, [8; 16]).send(&mut me));
    assert_eq!(me.close(same).expect("an answer"), NtStatus::SUCCESS);
    world.kill();
    parked(world.running(), 1);
    let mut other = client(world.running(), "alice", [2; 16]);
    opened(&Create::of("denied").send(&mut other));
}

#[test]
fn what_is_unlocked_renamed_or_marked_is_so_after_a_kill() {
    let mut world = World::new();
    let mut me = world.me();
    let shared = |name, guid| Create { share: SHARED, ..Create::of(name).persistent(0, guid) };
    let (file, _) = opened(&shared("f", GUID).send(&mut me));
    let (gone, _) = opened(&shared("gone", [8; 16]).send(&mut me));
    assert_eq!(lock(&mut me, file, (1, 1), EXCLUSIVE), NtStatus::SUCCESS);
    assert_eq!(lock(&mut me, file, (1, 2), lock_flags::UNLOCK), NtStatus::SUCCESS);
    let class = wire::smb::class::file_class::RENAME;
    let renamed = me.set(file, class, &e2e::smb::new_name("g", false));
    assert_eq!(renamed.expect("an answer"), NtStatus::SUCCESS);
    let class = wire::smb::class::file_class::DISPOSITION;
    assert_eq!(me.set(gone, class, &[1]).expect("an answer"), NtStatus::SUCCESS);
    world.kill();
    parked(world.running(), 2);
    let mut other = client(world.running(), "alice", [2; 16]);
    let (its, _) = opened(&Create { share: SHARED, ..Create::of("g") }.send(&mut other));
    assert_eq!(lock(&mut other, its, (0, 0), EXCLUSIVE), NtStatus::SUCCESS);
    let mut me = world.me();
    opened(&again(&mut me, "g", file));
    let (gone, _) = opened(&Create::of("gone").again(gone, [8; 16]).send(&mut me));
    assert_eq!(me.close(gone).expect("an answer"), NtStatus::SUCCESS);
    let created = Create::of("gone").send(&mut other);
    let response = create::Response::decode(&created.message).expect("a response");
    assert_eq!(response.action, create::action::CREATED, "it was removed at its close");
}

#[test]
fn only_its_client_continues_one_before_and_after_a_kill() {
    let mut world = World::new();
    let mut me = world.me();
    let key = [4; 16];
    let asked = Create::of("f").leased(key, RWH).persistent(60_000, GUID);
    let (file, _) = opened(&asked.send(&mut me));
    let again = |file, guid, key| Create::of("f").leased(key, RWH).again(file, guid);
    for is_killed in [false, true] {
        if is_killed {
            world.kill();
        } else {
            drop(std::mem::replace(&mut me, client(world.running(), "alice", [3; 16])));
        }
        parked(world.running(), 1);
        world.running().scene.users.add("bert", "secret", Cred::root());
        let mut same = world.me();
        let mut bert = client(world.running(), "bert", ME);
        let mut other = client(world.running(), "alice", [2; 16]);
        let guessed = FileId { persistent: file.persistent ^ 1, ..file };
        assert_eq!(again(file, GUID, key).send(&mut bert).status(), NONE, "another user");
        assert_eq!(again(file, GUID, key).send(&mut other).status(), NONE, "another ClientGuid");
        assert_eq!(again(file, [8; 16], key).send(&mut same).status(), NONE, "another CreateGuid");
        assert_eq!(again(file, GUID, [5; 16]).send(&mut same).status(), NONE, "another key");
        assert_eq!(again(guessed, GUID, key).send(&mut same).status(), NONE, "a guessed number");
        let unleased = Create::of("f").again(file, GUID);
        assert_eq!(unleased.send(&mut same).status(), NONE, "no lease");
        let replayed = Create::of("f").leased(key, RWH).persistent(60_000, GUID);
        let replayed = Create { flags: flags::REPLAY, ..replayed };
        assert_eq!(replayed.send(&mut bert).status(), NONE, "another user's replay");
        opened(&again(file, GUID, key).send(&mut same));
        drop(same);
        parked(world.running(), 1);
    }
}

#[test]
fn a_create_that_is_sent_again_after_a_kill_gets_its_open() {
    let mut world = World::new();
    let mut me = world.me();
    let asked = || Create::of("f").persistent(60_000, GUID);
    let (file, _) = opened(&asked().send(&mut me));
    world.kill();
    parked(world.running(), 1);
    let mut me = world.me();
    assert_eq!(asked().send(&mut me).status(), NtStatus::DUPLICATE_OBJECTID);
    let (same, _) = opened(&Create { flags: flags::REPLAY, ..asked() }.send(&mut me));
    assert_eq!(same.persistent, file.persistent);
}

#[test]
fn what_no_client_continues_ends_with_its_time_its_user_and_an_administrator() {
    let mut world = World::new();
    world.running().scene.users.add("bert", "secret", Cred::root());
    let mut me = world.me();
    let mut bert = client(world.running(), "bert", [2; 16]);
    opened(&Create::of("brief").persistent(1, [1; 16]).send(&mut me));
    opened(&Create::of("hers").persistent(60_000, [2; 16]).send(&mut me));
    opened(&Create::of("his").persistent(60_000, [3; 16]).send(&mut bert));
    world.kill();
    // Bert is no user any more: nothing of that user is left.
    parked(world.running(), 1);
    let mut other = client(world.running(), "alice", [5; 16]);
    opened(&Create::of("brief").send(&mut other));
    opened(&Create::of("his").send(&mut other));
    let refused = NtStatus::SHARING_VIOLATION;
    assert_eq!(Create::of("hers").send(&mut other).status(), refused);
    assert_eq!(world.running().server.end_parked_of(None, Some("alice")), 1);
    parked(world.running(), 0);
    opened(&Create::of("hers").send(&mut other));
}

#[test]
fn an_orderly_restart_is_as_a_kill() {
    let mut world = World::new();
    let mut me = world.me();
    let asked = Create::of("f").leased([4; 16], RWH).persistent(60_000, GUID);
    let (file, _) = opened(&asked.send(&mut me));
    drop(me);
    parked(world.running(), 1);
    world.restart();
    parked(world.running(), 1);
    let mut me = world.me();
    let again = Create::of("f").leased([4; 16], RWH).again(file, GUID);
    let (file, _) = opened(&again.send(&mut me));
    world.restart();
    parked(world.running(), 1);
    let mut me = world.me();
    let again = Create::of("f").leased([4; 16], RWH).again(file, GUID);
    assert_eq!(opened(&again.send(&mut me)).0.persistent, file.persistent);
}

#[test]
fn another_client_does_not_end_what_waits_for_its_client() {
    let world = World::new();
    let mut me = world.me();
    let asked = Create::of("f").persistent(60_000, GUID);
    let (file, _) = opened(&asked.send(&mut me));
    drop(me);
    parked(world.running(), 1);
    let mut other = client(world.running(), "alice", [2; 16]);
    let refused = NtStatus::SHARING_VIOLATION;
    assert_eq!(Create::of("f").send(&mut other).status(), refused);
    parked(world.running(), 1);
    let mut me = world.me();
    opened(&again(&mut me, "f", file));
}
