//! Operations in progress end with the user, its password, its session or the share, within
//! seconds, and what they held is released: by the same rule as in the other services.

use std::fs;

use e2e::api::wait_for;
use e2e::patience;
use e2e::smb::scene::{NODE, PASSWORD, SHARE, Scene, USER};
use e2e::smb::{Ask, Offer, Smb};
use e2e::tcp::{HERE, address};
use serde_json::{Value, json};
use wire::smb::create::{FileId, options};
use wire::smb::header::Command;
use wire::smb::lock::{Element, Request as Lock, lock_flags};
use wire::smb::session::Empty;
use wire::smb::status::NtStatus;

const USERS: &str = "/configuration/users";

/// A session of anna with a file opened exclusively and locked, and another to delete on close.
struct HeldOpen {
    smb: Smb,
    file: FileId,
}

fn held(scene: &Scene) -> HeldOpen {
    let mut smb = scene.anna().expect("let in");
    let exclusive = Ask { share: 0, ..Ask::make("alone") };
    let file = smb.create(&exclusive).expect("an answer").expect("a file");
    let element =
        Element { offset: 0, length: 9, flags: lock_flags::EXCLUSIVE | 0x10, reserved: 0 };
    let lock = Lock { lock_sequence: 0, file, locks: vec![element] };
    let locked = smb.call(Command::LOCK, 0, &|out| lock.put(out)).expect("an answer");
    assert_eq!(locked.status(), NtStatus::SUCCESS);
    let gone = Ask::make("gone").with(options::DELETE_ON_CLOSE);
    smb.create(&gone).expect("an answer").expect("a file");
    scene.wait_for_state(2, 1);
    HeldOpen { smb, file }
}

/// What the session held is released, and its next request fails with one of these statuses.
fn is_over(scene: &Scene, held: &mut HeldOpen, told: &[NtStatus]) {
    wait_for("the end of what is open", patience(10), || {
        (scene.property("files_open") == json!(0)).then_some(())
    });
    let answer = held.smb.read(held.file, 0, 1).expect("an answer").expect_err("nothing");
    assert!(told.contains(&answer), "{answer:x?}, not one of {told:x?}");
}

fn user(change: &str, property: &str, value: &Value) -> Value {
    json!([{change: format!("{USERS}/{USER}"), "property": property, "value": value}])
}

#[test]
fn it_ends_with_the_user() {
    let scene = Scene::new("smb-users", &[]);
    let ended = [NtStatus::USER_SESSION_DELETED];
    let mut anna = held(&scene);
    scene.change(&user("set", "password", &json!("another one, as long")));
    is_over(&scene, &mut anna, &ended);
    assert!(scene.share.join("gone").exists(), "nothing is done any more in her name");
    assert!(scene.anna().is_err(), "the old password is of no use");
    scene.change(&user("set", "password", &json!(PASSWORD)));
    for file in ["alone", "gone"] {
        fs::remove_file(scene.share.join(file)).expect("a file");
    }
    let mut anna = held(&scene);
    scene.change(&json!([{"destroy": format!("{USERS}/{USER}"), "confirm": true}]));
    is_over(&scene, &mut anna, &ended);
    assert!(scene.anna().is_err(), "there is no such user");
}

#[test]
fn it_ends_with_the_session() {
    let scene = Scene::new("smb-sessions", &[]);
    let mut anna = held(&scene);
    let end = format!("/api/v1/nodes{NODE}/actions/end_session");
    let (code, done) = scene.api.post(&end, &json!({"parameters": {"session": "nobody"}}));
    assert_ne!(code, 200, "{done}");
    let (code, done) = scene.api.post(&end, &json!({"parameters": {"session": USER}}));
    assert_eq!(code, 200, "{done}");
    is_over(&scene, &mut anna, &[NtStatus::USER_SESSION_DELETED]);
    // A client that comes again in place of a session that it has lost ends that at once.
    fs::remove_file(scene.share.join("alone")).expect("a file");
    let mut anna = held(&scene);
    let mut again = Smb::connect(address(9), scene.at(), &Offer::default()).expect("SMB");
    let proof = e2e::smb::sign_in::Proof::V2;
    let status = again.sign_in_by(proof, USER, PASSWORD, anna.smb.session).expect("an answer");
    assert_eq!(status, NtStatus::SUCCESS);
    again.connect_tree(SHARE).expect("an answer").expect("a tree");
    is_over(&scene, &mut anna, &[NtStatus::USER_SESSION_DELETED]);
    let opened = again.create(&Ask::open("alone")).expect("an answer");
    opened.expect("nobody keeps her out");
}

#[test]
fn it_ends_with_the_share() {
    let scene = Scene::new("smb-shares", &[]);
    let share = format!("/shares/default/{SHARE}");
    let mut anna = held(&scene);
    scene.change(&json!([{"set": share, "property": "smb", "value": "none"}]));
    let told = [NtStatus::FILE_CLOSED, NtStatus::ACCESS_DENIED, NtStatus::NETWORK_NAME_DELETED];
    is_over(&scene, &mut anna, &told);
    fs::remove_file(scene.share.join("gone")).expect("nothing is done any more in her name");
    let refused = Smb::open((HERE, scene.at()), &Offer::default(), (USER, PASSWORD), SHARE);
    let refused = refused.err().expect("no tree").to_string();
    assert!(refused.contains("TREE_CONNECT"), "{refused}");
    let log = scene.property("log").to_string();
    let told = format!("share {SHARE} refused: {USER} from {HERE}: smb and smb_exceptions");
    assert!(log.contains(&told), "{log}");
    scene.change(&json!([{"set": share, "property": "smb", "value": "rw"}]));
    fs::remove_file(scene.share.join("alone")).expect("a file");
    drop(anna);
    let mut anna = held(&scene);
    // Read-only: what is open stays so, and nothing is changed any more.
    scene.change(&json!([{"set": share, "property": "read_only", "value": true}]));
    let status = anna.smb.write(anna.file, 0, b"x", 0).expect("an answer");
    assert_eq!(status, NtStatus::MEDIA_WRITE_PROTECTED);
    scene.change(&json!([{"set": share, "property": "read_only", "value": false}]));
    assert_eq!(anna.smb.write(anna.file, 0, b"x", 0).expect("an answer"), NtStatus::SUCCESS);
    scene.change(&json!([{"destroy": share, "confirm": true}]));
    is_over(&scene, &mut anna, &[NtStatus::NETWORK_NAME_DELETED]);
    let gone = anna.smb.connect_tree(SHARE).expect("an answer").expect_err("no share");
    assert_eq!(gone, NtStatus::BAD_NETWORK_NAME);
}

#[test]
fn a_share_that_does_not_exist_is_refused_and_logged() {
    let scene = Scene::new("smb-no-share", &[]);
    let mut anna = scene.anna().expect("let in");
    for _ in 0..3 {
        let none = anna.connect_tree("nowhere").expect("an answer").expect_err("no share");
        assert_eq!(none, NtStatus::BAD_NETWORK_NAME);
    }
    // One line for a client and interval.
    let log = scene.property("log").to_string();
    assert_eq!(log.matches("there is no such share").count(), 1, "{log}");
}

#[test]
fn it_ends_when_a_client_is_silent_and_has_nothing_open() {
    let idle = json!({"set": NODE, "property": "idle", "value": 2});
    let scene = Scene::new("smb-idle", &[idle]);
    let mut anna = held(&scene);
    let mut silent = scene.anna().expect("let in");
    silent.ends().expect("the end of the connection");
    // A client that has something open stays.
    scene.wait_for_state(2, 1);
    assert_eq!(anna.smb.echo().expect("an answer"), NtStatus::SUCCESS);
    assert_eq!(anna.smb.close(anna.file).expect("an answer"), NtStatus::SUCCESS);
}

#[test]
fn what_is_open_ends_even_if_the_client_does_not_wait_for_it() {
    // Enough that not all are removed before the client has gone.
    const OPENS: usize = 400;
    let ends = [("TREE_DISCONNECT", Command::TREE_DISCONNECT), ("LOGOFF", Command::LOGOFF)];
    let scene = Scene::new("smb-farewells", &[]);
    for (what, command) in ends {
        let mut smb = scene.anna().expect("let in");
        for number in 0..OPENS {
            let name = number.to_string();
            let ask = Ask::make(&name).with(options::DELETE_ON_CLOSE);
            smb.create(&ask).expect("an answer").expect("a file");
        }
        let last = smb.request(command, 0, &|out| Empty { reserved: 0 }.put_body(out));
        smb.send(&[last]).expect("sent");
        drop(smb);
        scene.wait_for_state(0, 0);
        wait_for(what, patience(30), || {
            (fs::read_dir(&scene.share).expect("the share").count() == 0).then_some(())
        });
    }
}

#[test]
fn a_lock_is_not_granted_to_a_waiter_that_has_gone() {
    let scene = Scene::new("smb-waits", &[]);
    let lock = |smb: &mut Smb, file, flags| {
        let element = Element { offset: 0, length: 9, flags, reserved: 0 };
        let lock = Lock { lock_sequence: 0, file, locks: vec![element] };
        smb.request(Command::LOCK, 0, &|out| lock.put(out))
    };
    let at_once = lock_flags::EXCLUSIVE | lock_flags::FAIL_IMMEDIATELY;
    let ask = |smb: &mut Smb, file, flags| {
        let request = lock(smb, file, flags);
        smb.send(&[request]).expect("sent");
        smb.receive().expect("an answer").remove(0).status()
    };
    let mut holder = scene.anna().expect("let in");
    let held = holder.create(&Ask::make("f")).expect("an answer").expect("a file");
    assert_eq!(ask(&mut holder, held, at_once), NtStatus::SUCCESS);
    let mut waiter = scene.anna_from(address(8), &Offer::default()).expect("let in");
    let file = waiter.create(&Ask::open("f")).expect("an answer").expect("the file");
    assert_eq!(ask(&mut waiter, file, lock_flags::EXCLUSIVE), NtStatus::PENDING);
    drop(waiter);
    scene.wait_for_state(1, 1);
    assert_eq!(ask(&mut holder, held, lock_flags::UNLOCK), NtStatus::SUCCESS);
    let mut next = scene.anna_from(address(9), &Offer::default()).expect("let in");
    let file = next.create(&Ask::open("f")).expect("an answer").expect("the file");
    wait_for("the lock", patience(5), || {
        (ask(&mut next, file, at_once) == NtStatus::SUCCESS).then_some(())
    });
}

#[test]
fn it_ends_with_the_connection_and_with_the_service() {
    let scene = Scene::new("smb-service", &[]);
    drop(held(&scene));
    scene.wait_for_state(0, 0);
    assert!(!scene.share.join("gone").exists(), "what was to be deleted is");
    fs::remove_file(scene.share.join("alone")).expect("a file");
    let mut anna = held(&scene);
    scene.change(&json!([{"set": NODE, "property": "enabled", "value": false}]));
    anna.smb.ends().expect("the end of the connection");
    assert!(!scene.share.join("gone").exists(), "what was to be deleted is");
    scene.change(&json!([{"set": NODE, "property": "enabled", "value": true}]));
    let mut again = scene.anna().expect("let in");
    again.create(&Ask::open("alone")).expect("an answer").expect("nobody keeps her out");
}
