//! Hostile clients of SMB with leases and durable handles: no acknowledgements, keys and numbers of
//! other clients, repeated CREATEs, many reconnects. Others keep their leases and are served.

use std::time::{Duration, Instant};

use base::limits::SMB_REQUESTS_MAX;
use e2e::smb::caching::{self, RWH};
use e2e::smb::scene::Scene;
use e2e::smb::{Ask, Offer, Smb};
use e2e::tcp::address;
use e2e::{env_number, took_at_most};
use wire::smb::create::{Disposition, FileId};
use wire::smb::header::{Command, flags};
use wire::smb::lease::{Ack, LeaseAck, LeaseKey};
use wire::smb::status::NtStatus;

/// A request of another client is answered within this much.
const OTHERS: Duration = Duration::from_secs(2);
/// Reconnects with numbers that are guessed; `make test-long NAME=reconnects` makes 100,000.
const GUESSES: u64 = 2_000;
/// Those that are sent before their answers are taken.
pub const AT_ONCE: u64 = 32;
const KEY: LeaseKey = [0x11; 16];
const GUID: [u8; 16] = [0x22; 16];

/// A client of this number, at this address, with credits for [`AT_ONCE`] requests.
pub fn client(scene: &Scene, number: u8, at: u8) -> Smb {
    let offer = Offer { client: [number; 16], ..Offer::default() };
    let mut smb = scene.anna_from(address(at), &offer).expect("let in");
    smb.earn_credits(8).expect("answers");
    smb
}

/// An open that makes the file if it is not there.
pub fn ask(path: &str) -> Ask<'_> {
    Ask { disposition: Disposition::OpenIf, ..Ask::open(path) }
}

/// Opens a file with a lease; gives what was granted.
fn open(smb: &mut Smb, path: &str, key: LeaseKey) -> (FileId, u32) {
    let answer = smb.create_with(&ask(path), &[caching::lease(key, RWH)]).expect("an answer");
    caching::opened(&answer).expect("the file")
}

fn acknowledge(smb: &mut Smb, key: LeaseKey) -> NtStatus {
    let ack = Ack::Lease(LeaseAck { reserved: 0, flags: 0, key, state: 0, duration: 0 });
    smb.call(Command::OPLOCK_BREAK, 0, &|out| ack.put(out)).expect("an answer").status()
}

/// Another client opens a file with a lease, and closes it.
fn others_are_served(smb: &mut Smb, what: &str) {
    let begun = Instant::now();
    let (file, state) = open(smb, "others", [0x99; 16]);
    assert_eq!(state, RWH, "{what}");
    assert_eq!(smb.write(file, 0, b"mine", 0).expect(what), NtStatus::SUCCESS, "{what}");
    assert_eq!(smb.close(file).expect(what), NtStatus::SUCCESS, "{what}");
    took_at_most(what, begun.elapsed(), OTHERS);
}

#[test]
fn breaks_that_are_not_acknowledged_keep_others_from_nothing() {
    let scene = Scene::new("smb-no-acks", &[]);
    let (mut holder, mut waiting) = (client(&scene, 1, 1), client(&scene, 1, 1));
    let files: Vec<String> = (0..SMB_REQUESTS_MAX / 2).map(|number| format!("f{number}")).collect();
    for (number, file) in files.iter().enumerate() {
        assert_eq!(open(&mut holder, file, [number as u8; 16]).1, RWH);
    }
    // Each of these waits for a holder that does not answer.
    for file in &files {
        let ask = ask(file);
        let create = waiting.request(Command::CREATE, 0, &|out| ask.put(out));
        waiting.send(&[create]).expect("sent");
    }
    for _ in &files {
        let answer = waiting.receive().expect("an answer").remove(0);
        assert_eq!(answer.status(), NtStatus::PENDING);
    }
    let mut other = client(&scene, 9, 9);
    for _ in 0..20 {
        others_are_served(&mut other, "beside breaks without acknowledgements");
    }
    assert_eq!(waiting.echo().expect("an answer"), NtStatus::SUCCESS, "its own others, too");
}

#[test]
fn keys_and_numbers_of_another_client_are_of_no_use() {
    let scene = Scene::new("smb-keys", &[]);
    let (mut holder, mut other) = (client(&scene, 1, 1), client(&scene, 2, 2));
    let named = [caching::lease(KEY, RWH), caching::durable(GUID)];
    let answer = holder.create_with(&ask("f"), &named).expect("an answer");
    let (file, state) = caching::opened(&answer).expect("the file");
    assert_eq!(state, RWH);
    // Another client has no lease of this key: not while it is granted, nor while it is broken.
    assert_eq!(acknowledge(&mut other, KEY), NtStatus::OBJECT_NAME_NOT_FOUND);
    let wants = ask("f");
    let create = other.request(Command::CREATE, 0, &|out| wants.put(out));
    other.send(&[create]).expect("sent");
    let pending = other.receive().expect("an answer").remove(0);
    assert_eq!(pending.status(), NtStatus::PENDING);
    let mut third = client(&scene, 3, 3);
    assert_eq!(acknowledge(&mut third, KEY), NtStatus::OBJECT_NAME_NOT_FOUND);
    // The number of its CREATE is that of another client.
    let mut again = third.request(Command::CREATE, 0, &caching::body(&ask("g"), &named));
    again[19] |= (flags::REPLAY >> 24) as u8;
    third.send(&[again]).expect("sent");
    let answer = third.receive().expect("an answer").remove(0);
    let (made, _) = caching::opened(&answer).expect("a file of its own");
    assert_ne!(made.persistent, file.persistent);
    // The open is not continued by another client, connected or not.
    let claim = [caching::reconnect(file, GUID), caching::lease(KEY, RWH)];
    let stolen = third.create_with(&ask("f"), &claim).expect("an answer");
    assert_eq!(stolen.status(), NtStatus::OBJECT_NAME_NOT_FOUND);
    // It was all the time the holder's: its acknowledgement lets the other one in.
    assert_eq!(acknowledge(&mut holder, KEY), NtStatus::SUCCESS);
    let answer = other.receive().expect("an answer").remove(0);
    assert_eq!(answer.status(), NtStatus::SUCCESS);
}

#[test]
fn guessed_durable_handles_are_refused_and_cost_others_nothing() {
    let scene = Scene::new("smb-guesses", &[]);
    let (mut holder, mut guesser) = (client(&scene, 1, 1), client(&scene, 2, 2));
    let named = [caching::lease(KEY, RWH), caching::durable(GUID)];
    let answer = holder.create_with(&ask("f"), &named).expect("an answer");
    let (file, _) = caching::opened(&answer).expect("the file");
    drop(holder);
    let mut other = client(&scene, 9, 9);
    let guesses = env_number("PLIMSOLL_RECONNECTS", GUESSES);
    for from in (0..guesses).step_by(AT_ONCE as usize) {
        for number in from..from + AT_ONCE {
            let guess = FileId { persistent: file.persistent ^ (number + 1), volatile: number };
            let claim = [caching::reconnect(guess, GUID), caching::lease(KEY, RWH)];
            let create = guesser.request(Command::CREATE, 0, &caching::body(&ask("f"), &claim));
            guesser.send(&[create]).expect("sent");
        }
        for _ in 0..AT_ONCE {
            let answer = guesser.receive().expect("an answer").remove(0);
            assert_eq!(answer.status(), NtStatus::OBJECT_NAME_NOT_FOUND);
        }
        if from % (AT_ONCE * 16) == 0 {
            others_are_served(&mut other, "beside guesses");
        }
    }
    // The handle is its client's still.
    let mut holder = client(&scene, 1, 1);
    let claim = [caching::reconnect(file, GUID), caching::lease(KEY, RWH)];
    let answer = holder.create_with(&ask("f"), &claim).expect("an answer");
    assert_eq!(caching::opened(&answer).map(|(_, state)| state), Ok(RWH));
}
