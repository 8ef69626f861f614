//! Clients of SMB that lose their connection repeatedly, send a CREATE repeatedly, or
//! acknowledge leases that are not theirs: a client at another address does not notice, and the
//! server holds no more afterwards than before. Durable handles of an address have a limit.
//!
//! `PLIMSOLL_RECONNECTS` makes as many of each.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use base::limits::{SECONDS_IN_MEMORY, SMB_PARKED_MAX};
use e2e::api::wait_for;
use e2e::process::memory;
use e2e::smb::caching::{self, RWH};
use e2e::smb::scene::{PASSWORD, SHARE, Scene, USER};
use e2e::smb::sign_in::Proof;
use e2e::smb::{Offer, Smb};
use e2e::tcp::address;
use e2e::{env_number, p99, patience, took_at_most};
use serde_json::{Value, json};
use wire::smb::create::FileId;
use wire::smb::header::{Command, flags};
use wire::smb::lease::{Ack, LeaseAck, LeaseKey};
use wire::smb::status::NtStatus;

use super::leases::{AT_ONCE, ask, client};

/// How often in the gate; `make test-long NAME=reconnects` does 100,000 of each.
const COUNT: u64 = 400;
/// Clients at once of the address.
const CLIENTS: u8 = 2;
/// Requests of another client before the attack.
const BEFORE: usize = 300;
/// What they take at most meanwhile, 99 of a hundred: they share two processors with the clients.
const OTHERS: Duration = Duration::from_millis(50);
/// What may be allocated after an attack beyond what was after a tenth of it, 40 bytes for each of
/// 100,000; and what the statistics take.
const GROWN_MAX: u64 = 4 << 20;
/// Bytes that a second of the statistics takes in memory without breakdowns.
const SECOND: u64 = 24 << 10;
/// Looks at what is allocated: in some of them the server just works on something.
const LOOKS: usize = 3;
/// Durable handles of one client without a connection: three quarters of three quarters.
const OF_CLIENT: u64 = SMB_PARKED_MAX * 9 / 16;
/// Handles that are asked for beyond that.
const MORE: u64 = 64;

/// A client connects again: it names its session of before, which the server may not know yet to
/// have lost its connection.
fn client_again(scene: &Scene, number: u8, session: u64) -> Smb {
    let offer = Offer { client: [number; 16], ..Offer::default() };
    let mut smb = Smb::connect(address(1), scene.at(), &offer).expect("a connection");
    let status = smb.sign_in_by(Proof::V2, USER, PASSWORD, session).expect("an answer");
    assert_eq!(status, NtStatus::SUCCESS);
    assert!(smb.connect_tree(SHARE).expect("an answer").is_ok());
    smb
}

/// Ends a connection without a word, and at once: its port is free for the next.
fn cut(smb: Smb) {
    socket2::SockRef::from(smb.stream()).set_linger(Some(Duration::ZERO)).expect("an option");
    drop(smb);
}

/// Opens a durable handle with a lease.
fn open_durable(smb: &mut Smb, path: &str, number: u8) -> FileId {
    let named = [caching::lease([number; 16], RWH), caching::durable([number; 16])];
    let answer = smb.create_with(&ask(path), &named).expect("an answer");
    let (file, state) = caching::opened(&answer).expect("the file");
    assert_eq!(state, RWH);
    file
}

/// Continues it, over another connection.
fn continue_durable(smb: &mut Smb, path: &str, (file, number): (FileId, u8)) -> FileId {
    let named = [caching::reconnect(file, [number; 16]), caching::lease([number; 16], RWH)];
    let answer = smb.create_with(&ask(path), &named).expect("an answer");
    let (same, state) = caching::opened(&answer).expect("the open of before");
    assert_eq!((same.persistent, state), (file.persistent, RWH));
    same
}

/// Requests of a client, this number at once; each is answered with this.
fn flood(smb: &mut Smb, count: u64, request: impl Fn(&mut Smb) -> Vec<u8>, status: NtStatus) {
    for _ in 0..count.div_ceil(AT_ONCE) {
        for _ in 0..AT_ONCE {
            let request = request(smb);
            smb.send(&[request]).expect("sent");
        }
        for _ in 0..AT_ONCE {
            assert_eq!(smb.answer().expect("an answer").status(), status);
        }
    }
}

/// A client continues its handle over one connection after the other.
fn reconnects(scene: &Scene, number: u8, count: u64) {
    let name = format!("again-{number}");
    let mut smb = client(scene, number, 1);
    let mut file = open_durable(&mut smb, &name, number);
    for _ in 0..count {
        let session = smb.session;
        cut(smb);
        smb = client_again(scene, number, session);
        file = continue_durable(&mut smb, &name, (file, number));
    }
    assert_eq!(smb.close(file).expect("an answer"), NtStatus::SUCCESS);
}

/// A client sends its CREATE again, as if its answer was lost; and another one in its name.
fn repeats(scene: &Scene, number: u8, count: u64) {
    let name = format!("repeated-{number}");
    let mut smb = client(scene, number, 1);
    let file = open_durable(&mut smb, &name, number);
    let named = [caching::lease([number; 16], RWH), caching::durable([number; 16])];
    let body = caching::body(&ask(&name), &named);
    let again = |smb: &mut Smb| {
        let mut again = smb.request(Command::CREATE, 0, &body);
        again[19] |= (flags::REPLAY >> 24) as u8;
        again
    };
    flood(&mut smb, count, again, NtStatus::SUCCESS);
    // Not marked as sent again.
    let anew = |smb: &mut Smb| smb.request(Command::CREATE, 0, &body);
    flood(&mut smb, count / 10, anew, NtStatus::DUPLICATE_OBJECTID);
    assert_eq!(smb.close(file).expect("an answer"), NtStatus::SUCCESS);
}

/// A client acknowledges breaks of the other client's lease, of its own, which is not broken, and
/// of none.
fn acknowledgements(scene: &Scene, number: u8, count: u64) {
    let mut smb = client(scene, number, 1);
    let (file, _) = {
        let named = [caching::lease([number; 16], RWH)];
        let answer = smb.create_with(&ask(&format!("own-{number}")), &named).expect("an answer");
        caching::opened(&answer).expect("the file")
    };
    let of = |key: LeaseKey| {
        let ack = LeaseAck { reserved: 0, flags: 0, key, state: 0, duration: 0 };
        move |smb: &mut Smb| smb.request(Command::OPLOCK_BREAK, 0, &|out| Ack::Lease(ack).put(out))
    };
    let none = NtStatus::OBJECT_NAME_NOT_FOUND;
    flood(&mut smb, count / 3, of(OTHER_KEY), none);
    flood(&mut smb, count / 3, of([0xee; 16]), none);
    flood(&mut smb, count / 3, of([number; 16]), NtStatus::UNSUCCESSFUL);
    assert_eq!(smb.close(file).expect("an answer"), NtStatus::SUCCESS);
}

/// Another client at another address: its lease, and the file that it opens.
const OTHER: u8 = 99;
const OTHER_KEY: LeaseKey = [OTHER; 16];

/// Another client opens a file with a lease, writes and closes it; how long that takes.
fn look(smb: &mut Smb) -> Duration {
    let begun = Instant::now();
    let named = [caching::lease(OTHER_KEY, RWH)];
    let answer = smb.create_with(&ask("others"), &named).expect("an answer");
    let (file, state) = caching::opened(&answer).expect("the file");
    assert_eq!(state, RWH);
    assert_eq!(smb.write(file, 0, b"mine", 0).expect("an answer"), NtStatus::SUCCESS);
    assert_eq!(smb.close(file).expect("an answer"), NtStatus::SUCCESS);
    begun.elapsed()
}

type Attack = fn(&Scene, u8, u64);

/// All clients of the address at once, and another client meanwhile; what that one has seen.
fn attacked(scene: &Scene, attack: Attack, count: u64) -> Vec<Duration> {
    let mut other = client(scene, OTHER, 9);
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looks = scope.spawn(|| {
            let mut all = Vec::new();
            while all.is_empty() || !has_ended.load(Ordering::SeqCst) {
                all.push(look(&mut other));
            }
            all
        });
        let part = count / u64::from(CLIENTS);
        let attacks: Vec<_> =
            (1..=CLIENTS).map(|number| scope.spawn(move || attack(scene, number, part))).collect();
        let attacks: Vec<_> = attacks.into_iter().map(|attack| attack.join()).collect();
        has_ended.store(true, Ordering::SeqCst);
        attacks.into_iter().for_each(|attack| attack.expect("no panic"));
        looks.join().expect("no panic")
    })
}

/// Nothing of clients is left in the tables.
fn is_empty(scene: &Scene) {
    scene.wait_for_state(0, 0);
    for table in ["caching", "durable_handles"] {
        let has_none = || scene.property(table).as_array().is_some_and(Vec::is_empty);
        wait_for(table, patience(10), || has_none().then_some(()));
    }
}

/// Switches the breakdowns of the statistics off. What these keep in memory grows with time and
/// not with clients, for five minutes and in the flight recorder up to its limit: more than what
/// is looked for.
fn without_breakdowns(scene: &Scene) {
    let (code, answer) = scene.api.post("/api/v1/analytics/collect", &json!({ "on": false }));
    assert_eq!(code, 200, "{answer}");
}

/// What the server holds while nothing is asked of it.
fn held(scene: &Scene) -> u64 {
    (0..LOOKS).map(|_| scene.api.heap()).min().unwrap_or_default()
}

fn cost_others_nothing(name: &str, what: &str, attack: Attack) {
    let scene = Scene::new(name, &[]);
    without_breakdowns(&scene);
    let count = env_number("PLIMSOLL_RECONNECTS", COUNT);
    let mut other = client(&scene, OTHER, 9);
    let before = p99((0..BEFORE).map(|_| look(&mut other)).collect());
    drop(other);
    attacked(&scene, attack, count / 10);
    is_empty(&scene);
    let [allocated, resident] = [held(&scene), memory(scene.server.pid(), "VmRSS")];
    let begun = Instant::now();
    let looks = attacked(&scene, attack, count);
    let took = begun.elapsed();
    is_empty(&scene);
    let after = held(&scene);
    let grown = after.saturating_sub(allocated);
    let resident = memory(scene.server.pid(), "VmRSS").saturating_sub(resident);
    let (seen, meanwhile) = (looks.len(), p99(looks));
    println!(
        "{count} {what} in {took:.1?}; another client: p99 {before:?} before, {meanwhile:?} of \
         {seen} meanwhile; {grown} bytes allocated more, {resident} resident"
    );
    took_at_most(what, meanwhile, OTHERS);
    let most = GROWN_MAX + SECOND * took.as_secs().min(SECONDS_IN_MEMORY as u64);
    assert!(grown <= most, "{allocated} bytes before, {after} after {what}, at most {most} more");
}

#[test]
fn reconnects_cost_others_nothing() {
    cost_others_nothing("smb-reconnects", "reconnects", reconnects);
}

#[test]
fn repeated_creates_cost_others_nothing() {
    cost_others_nothing("smb-repeats", "repeated CREATEs", repeats);
}

#[test]
fn acknowledgements_of_nothing_cost_others_nothing() {
    cost_others_nothing("smb-acknowledgements", "acknowledgements", acknowledgements);
}

/// What the node of the service shows of an address.
fn shown(scene: &Scene, at: u8) -> String {
    let rows = scene.property("caching");
    let address = format!("{}: ", address(at));
    let rows = rows.as_array().into_iter().flatten().filter_map(Value::as_str);
    rows.filter_map(|row| row.strip_prefix(&address)).collect()
}

#[test]
fn durable_handles_of_a_client_leave_a_part_to_others() {
    let scene = Scene::new("smb-parked", &[]);
    let mut smb = client(&scene, 1, 1);
    let all = OF_CLIENT + MORE;
    for from in (0..all).step_by(AT_ONCE as usize) {
        let numbers = from..all.min(from + AT_ONCE);
        for number in numbers.clone() {
            let mut key = [0; 16];
            key[..8].copy_from_slice(&(number + 1).to_le_bytes());
            let name = format!("f{number}");
            let named = [caching::lease(key, RWH), caching::durable(key)];
            let create = smb.request(Command::CREATE, 0, &caching::body(&ask(&name), &named));
            smb.send(&[create]).expect("sent");
        }
        for _ in numbers {
            let answer = smb.answer().expect("an answer");
            assert_eq!(caching::opened(&answer).map(|(_, state)| state), Ok(RWH));
        }
    }
    cut(smb);
    let kept = format!("leases {OF_CLIENT}, breaks waiting 0, durable handles {OF_CLIENT}");
    wait_for("the handles that are kept", patience(20), || {
        (shown(&scene, 1) == kept).then_some(())
    });
    // A client from another address loses its connection, and continues its handle.
    let mut other = client(&scene, OTHER, 9);
    let file = open_durable(&mut other, "others", OTHER);
    cut(other);
    // The server knows that it is lost.
    wait_for("its handle", patience(10), || shown(&scene, 9).ends_with(" 1").then_some(()));
    let mut other = client(&scene, OTHER, 9);
    let file = continue_durable(&mut other, "others", (file, OTHER));
    took_at_most("an open of another client", look(&mut other), Duration::from_secs(2));
    assert_eq!(other.close(file).expect("an answer"), NtStatus::SUCCESS);
}
