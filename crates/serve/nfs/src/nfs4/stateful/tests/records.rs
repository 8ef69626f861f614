//! Records of clients on disk: written before the first state, struck out before others get what
//! was held, never on a connection's thread; and what is withheld where they cannot be written.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::super::state::{NotWritten, Records};
use super::*;

/// Notes the calls, and can be made to fail.
#[derive(Default)]
struct Noted {
    log: Mutex<Vec<String>>,
    broken: AtomicBool,
}

impl Noted {
    fn note(&self, what: &str) -> Result<(), NotWritten> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(NotWritten);
        }
        self.log.lock().expect("nobody panics").push(what.to_owned());
        Ok(())
    }

    fn client(&self, what: &str, client: &Identity) -> Result<(), NotWritten> {
        let name = String::from_utf8_lossy(&client.name.1);
        self.note(&format!("{what} {name} of {}", client.principal))
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().expect("nobody panics").clone()
    }
}

impl Records for Noted {
    fn record(&self, client: &Identity) -> Result<(), NotWritten> {
        self.client("record", client)
    }
    fn forget(&self, client: &Identity) -> Result<(), NotWritten> {
        self.client("forget", client)
    }
    fn end_of_grace(&self) -> Result<(), NotWritten> {
        self.note("end of grace")
    }
}

fn world(known: Vec<Identity>) -> (World, Arc<Noted>, Arc<Stateful>) {
    let records = Arc::new(Noted::default());
    let (world, keeper) = World::recorded(known, Arc::clone(&records) as Arc<dyn Records>);
    (world, records, keeper)
}

fn opens(keeper: &Stateful) -> u64 {
    keeper.state.locks.counts().opens
}

#[test]
fn a_client_is_on_record_before_it_has_opened_anything_and_only_once() {
    let (mut world, records, _) = world(Vec::new());
    world.cred.uid = 7;
    let id = world.client40(b"a");
    assert!(records.log().is_empty(), "it holds nothing yet");
    assert_eq!(world.at_root(&[open(id, 1, b"o", 0)]).0, Nfsstat4::OK);
    assert_eq!(world.at_root(&[open(id, 1, b"p", 0)]).0, Nfsstat4::OK);
    assert_eq!(records.log(), ["record a of 7"]);
}

#[test]
fn an_open_that_fails_leaves_no_record() {
    let (world, records, keeper) = world(Vec::new());
    let (one, two) = (world.client40(b"a"), world.client40(b"b"));
    let existing = |seqid| {
        ArgOp::Open(OpenArgs4 {
            seqid,
            share_access: share4::ACCESS_READ,
            share_deny: 0,
            owner: StateOwner4 { clientid: two, owner: Opaque4(b"o") },
            openhow: Openflag4::Nocreate(()),
            claim: OpenClaim4::Null(Component4(b"f")),
        })
    };
    assert_eq!(world.at_root(&[existing(1)]).0, Nfsstat4::NOENT);
    assert!(records.log().is_empty(), "it is not even written: {:?}", records.log());
    assert_eq!(world.at_root(&[open(one, 1, b"o", share4::DENY_BOTH)]).0, Nfsstat4::OK);
    assert_eq!(world.at_root(&[open(two, 2, b"o", 0)]).0, Nfsstat4::SHARE_DENIED);
    assert_eq!(world.at_root(&[existing(3)]).0, Nfsstat4::SHARE_DENIED);
    let wrote = ["record b of 0", "forget b of 0"];
    assert_eq!(records.log(), [&["record a of 0"], &wrote[..], &wrote[..]].concat());
    // A record that cannot be struck out goes with the next attempt that fails.
    let client = keeper.state.renew(two, keeper.now()).expect("a client");
    let on_record = keeper.state.record(&client).expect("a record");
    records.broken.store(true, Ordering::Relaxed);
    drop(on_record);
    records.broken.store(false, Ordering::Relaxed);
    assert_eq!(world.at_root(&[existing(4)]).0, Nfsstat4::SHARE_DENIED);
    assert_eq!(records.log()[5..], ["record b of 0", "forget b of 0"]);
}

#[test]
fn operations_side_by_side_keep_the_record() {
    let (world, records, keeper) = world(Vec::new());
    let id = world.client40(b"a");
    let client = keeper.state.renew(id, keeper.now()).expect("a client");
    let slow = keeper.state.record(&client).expect("a record");
    drop(keeper.state.record(&client).expect("a record"));
    assert_eq!(records.log(), ["record a of 0"], "the other one may still give it state");
    assert_eq!(world.at_root(&[open(id, 1, b"o", 0)]).0, Nfsstat4::OK);
    drop(slow);
    assert_eq!(records.log(), ["record a of 0"]);
    // It has held something since: closing it and failing afterwards changes nothing on disk.
    drop(keeper.state.record(&client).expect("a record"));
    assert_eq!(records.log(), ["record a of 0"]);
}

#[test]
fn without_a_record_nothing_is_opened_and_nothing_made() {
    let (world, records, keeper) = world(Vec::new());
    let id = world.client40(b"a");
    records.broken.store(true, Ordering::Relaxed);
    assert_eq!(world.at_root(&[open(id, 1, b"o", 0)]).0, Nfsstat4::IO);
    assert_eq!(opens(&keeper), 0);
    assert_eq!(world.at_root(&[file()]).0, Nfsstat4::NOENT);
    records.broken.store(false, Ordering::Relaxed);
    assert_eq!(world.at_root(&[open(id, 2, b"o", 0)]).0, Nfsstat4::OK);
    assert_eq!(records.log(), ["record a of 0"]);
}

#[test]
fn what_a_silent_client_held_is_given_to_others_only_once_it_is_struck_out() {
    let (world, records, keeper) = world(Vec::new());
    let one = world.client40(b"a");
    let held = open(one, 1, b"o", share4::DENY_BOTH);
    assert_eq!(world.at_root(&[held]).0, Nfsstat4::OK);
    world.clock.advance(Duration::from_secs(LEASE_S + 1));
    let two = world.client40(b"b");
    let client = keeper.state.renew(two, keeper.now()).expect("a client");
    let _on_record = keeper.state.record(&client).expect("space");
    records.broken.store(true, Ordering::Relaxed);
    assert_eq!(world.at_root(&[open(two, 1, b"o", 0)]).0, Nfsstat4::SHARE_DENIED);
    assert_eq!(world.run(0, &[ArgOp::Renew(ClientidArgs4 { clientid: one })]).0, Nfsstat4::EXPIRED);
    assert_eq!(opens(&keeper), 1, "kept, though nobody has it any more");
    records.broken.store(false, Ordering::Relaxed);
    keeper.sweep();
    assert_eq!(opens(&keeper), 0);
    assert_eq!(world.at_root(&[open(two, 2, b"o", 0)]).0, Nfsstat4::OK);
    assert_eq!(records.log(), ["record a of 0", "record b of 0", "forget a of 0"]);
}

#[test]
fn nothing_is_written_on_a_connections_thread() {
    let (world, records, keeper) =
        world(vec![Identity { name: (false, b"before".to_vec()), principal: 0 }]);
    world.clock.advance(Duration::from_secs(LEASE_S));
    let id = world.client40(b"a");
    let read = ReadArgs4 { stateid: Stateid4::ANONYMOUS, offset: 0, count: 1 };
    let inline = |ops: &[ArgOp<'_>]| {
        let before = records.log().len();
        let done = world.inline(&[&ROOT[..], ops].concat());
        assert_eq!(records.log().len(), before, "written where nothing may wait");
        done
    };
    assert_eq!(inline(&[open(id, 1, b"o", share4::DENY_READ)]), Poll::Pending);
    let (_, results) = world.at_root(&[open(id, 1, b"o", share4::DENY_READ)]);
    let stateid = opened(&results).0;
    assert_eq!(records.log(), ["end of grace", "record a of 0"]);
    world.clock.advance(Duration::from_secs(LEASE_S + 1));
    assert_eq!(inline(&[file(), ArgOp::Read(read)]), Poll::Pending, "a lapsed open denies it");
    assert_eq!(inline(&[file(), lock_new(id, stateid, 2)]), Poll::Pending);
    assert_eq!(opens(&keeper), 1);
}

#[test]
fn the_grace_period_continues_until_its_end_is_on_disk() {
    let known = Identity { name: (false, b"before".to_vec()), principal: 0 };
    let (world, records, keeper) = world(vec![known]);
    let id = world.client40(b"a");
    world.clock.advance(Duration::from_secs(LEASE_S));
    records.broken.store(true, Ordering::Relaxed);
    assert_eq!(world.at_root(&[open(id, 1, b"o", 0)]).0, Nfsstat4::GRACE);
    keeper.sweep();
    assert_eq!(world.at_root(&[open(id, 2, b"o", 0)]).0, Nfsstat4::GRACE);
    records.broken.store(false, Ordering::Relaxed);
    keeper.sweep();
    assert_eq!(records.log(), ["end of grace"]);
    assert_eq!(world.at_root(&[open(id, 3, b"o", 0)]).0, Nfsstat4::OK);
}

#[test]
fn no_client_reclaims_in_the_name_of_another() {
    let known = Identity { name: (false, b"a".to_vec()), principal: 0 };
    // With the right name it comes as far as to the file, which is none but a directory.
    for (uid, expected) in [(7, Nfsstat4::NO_GRACE), (0, Nfsstat4::ISDIR)] {
        let (mut world, _, _) = world(vec![known.clone()]);
        world.cred.uid = uid;
        let id = world.client40(b"a");
        let reclaim = ArgOp::Open(OpenArgs4 {
            seqid: 1,
            share_access: share4::ACCESS_READ,
            share_deny: 0,
            owner: StateOwner4 { clientid: id, owner: Opaque4(b"o") },
            openhow: Openflag4::Nocreate(()),
            claim: OpenClaim4::Previous(delegation4::NONE),
        });
        assert_eq!(world.at_root(&[reclaim]).0, expected, "as user {uid}");
    }
}
