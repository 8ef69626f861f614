//! Hostile clients of SMB: each is refused or disconnected, stays within its limits, and does not
//! affect other clients.

use std::io::{Read, Write};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use base::limits::{
    SMB_COMPOUND_MAX, SMB_IO_MAX, SMB_OPEN_UNIT, SMB_OPEN_UNITS_PER_CLIENT, SMB_OPENS_MAX,
    SMB_SESSIONS_PER_CONNECTION, SMB_SETUP_ROUNDS_MAX, SMB_TREES_MAX,
};
use e2e::api::wait_for;
use e2e::patience;
use e2e::process::memory;
use e2e::smb::scene::{PASSWORD, SHARE, Scene, USER};
use e2e::smb::sign_in::Proof;
use e2e::smb::{Ask, Offer, Smb, new_name, related, set_info};
use e2e::tcp::{address, connect_from};
use wire::smb::class::file_class;
use wire::smb::codec::patch;
use wire::smb::create::{CloseRequest, Disposition, FileId, access};
use wire::smb::header::Command;
use wire::smb::io::ReadRequest;
use wire::smb::lock::{Element, Request as Lock, lock_flags};
use wire::smb::ntlm;
use wire::smb::status::NtStatus;
use wire::smb::{dir, session, spnego, utf16};

/// Other clients are served within this time.
const OTHERS: Duration = Duration::from_secs(5);
/// What may be resident beyond what was, in MiB, when a hostile client has done its worst.
const GROWN_MIB: u64 = 160;

/// Another client makes, writes, reads and removes a file, from its own address.
fn others_are_served(scene: &Scene, what: &str) {
    let began = Instant::now();
    let from = address(99);
    let mut smb =
        scene.anna_from(from, &Offer::default()).unwrap_or_else(|e| panic!("{what}: {e}"));
    let file = smb.create(&Ask::make("others")).expect(what).expect(what);
    assert_eq!(smb.write(file, 0, b"mine", 0).expect(what), NtStatus::SUCCESS, "{what}");
    assert_eq!(smb.read(file, 0, 9).expect(what), Ok(b"mine".to_vec()), "{what}");
    let delete = smb.set(file, file_class::DISPOSITION, &[1]).expect(what);
    assert_eq!((delete, smb.close(file).expect(what)), (NtStatus::SUCCESS, NtStatus::SUCCESS));
    e2e::took_at_most(what, began.elapsed(), OTHERS);
}

/// Resident memory.
fn resident_mib(scene: &Scene) -> u64 {
    memory(scene.server.pid(), "VmRSS") >> 20
}

fn read(smb: &mut Smb, file: FileId, length: u32, charge: usize) -> Vec<u8> {
    let read = ReadRequest { length, offset: 0, file, minimum: 0 };
    smb.request(Command::READ, charge, &|out| read.put(out))
}

#[test]
fn credits_cannot_be_overdrawn() {
    let scene = Scene::new("smb-credits", &[]);
    // A number that was not granted, one that was used, one far away.
    for id in [1_000_000, 1, u64::MAX] {
        let mut smb = scene.anna().expect("let in");
        smb.next_id = id;
        let echo = smb.echo();
        assert!(echo.is_err(), "{id}: {echo:?}");
    }
    // A request that is larger than what it pays for is not carried out.
    let mut smb = scene.anna().expect("let in");
    let file = smb.create(&Ask::make("f")).expect("an answer").expect("a file");
    let cheap = read(&mut smb, file, SMB_IO_MAX as u32, 0);
    smb.send(&[cheap]).expect("sent");
    let answer = smb.receive().expect("an answer").remove(0);
    assert_eq!(answer.status(), NtStatus::INVALID_PARAMETER);
    scene.wait_for_state(1, 1);
    others_are_served(&scene, "beside overdrafts");
}

#[test]
fn compounds_are_no_larger_than_they_may_be() {
    let scene = Scene::new("smb-compounds", &[]);
    std::fs::write(scene.share.join("large"), vec![7; SMB_IO_MAX]).expect("a file");
    let before = resident_mib(&scene);
    // 8 MiB that come as one frame.
    let mut smb = scene.anna().expect("let in");
    let _ = smb.send_raw(&[&[0, 0x80, 0, 0][..], &vec![0; 8 << 20]].concat());
    smb.ends().expect("the end");
    // As many reads of the most as a compound may have: no more is answered than fits a frame.
    let mut smb = scene.anna().expect("let in");
    let ask = Ask { access: access::READ, ..Ask::open("large") };
    let file = smb.create(&ask).expect("an answer").expect("a file");
    // What is asked for has to be paid for: credits first.
    smb.earn_credits(20).expect("answers");
    let reads: Vec<_> =
        (0..6).map(|_| read(&mut smb, file, SMB_IO_MAX as u32, SMB_IO_MAX)).collect();
    smb.send(&reads).expect("sent");
    let answers = smb.receive().expect("answers");
    let well = answers.iter().filter(|one| one.status() == NtStatus::SUCCESS).count();
    assert!((1..=2).contains(&well), "{well} of {}", answers.len());
    let rest = answers.iter().filter(|one| one.status() != NtStatus::SUCCESS);
    assert!(rest.clone().all(|one| one.status() == NtStatus::INSUFFICIENT_RESOURCES));
    // One request too many.
    let mut smb = scene.anna().expect("let in");
    let empty = session::Empty { reserved: 0 };
    let many: Vec<_> = (0..=SMB_COMPOUND_MAX)
        .map(|_| smb.request(Command::ECHO, 0, &|out| empty.put_body(out)))
        .collect();
    let _ = smb.send(&many);
    smb.ends().expect("the end");
    scene.api.bytes_in_flight();
    let grown = resident_mib(&scene).saturating_sub(before);
    assert!(grown <= GROWN_MIB, "{grown} MiB");
    others_are_served(&scene, "beside compounds");
}

#[test]
fn a_sign_in_has_an_end() {
    let scene = Scene::new("smb-legs", &[]);
    let mut smb = Smb::connect(address(5), scene.at(), &Offer::default()).expect("SMB");
    let first = spnego::begin(&ntlm::put_negotiate(1));
    let mut legs = 0;
    loop {
        let answer = smb.leg(&first, 0, None).expect("an answer");
        if answer.status() != NtStatus::MORE_PROCESSING_REQUIRED {
            assert_eq!(answer.status(), NtStatus::LOGON_FAILURE);
            break;
        }
        smb.session = answer.header.session_id;
        legs += 1;
        assert!(legs <= SMB_SETUP_ROUNDS_MAX, "no end");
    }
    // Many sign-ins that begin and do not continue: only a few are retained, among them the last.
    let before = resident_mib(&scene);
    let (mut oldest, mut last) = (0, 0);
    for number in 0..20_000 {
        smb.session = 0;
        let answer = smb.leg(&first, 0, None).expect("an answer");
        assert_eq!(answer.status(), NtStatus::MORE_PROCESSING_REQUIRED);
        last = answer.header.session_id;
        if number == 0 {
            oldest = last;
        }
    }
    let grown = resident_mib(&scene).saturating_sub(before);
    assert!(grown <= 32, "{grown} MiB for sign-ins that nobody ends");
    smb.session = last;
    let answer = smb.leg(&first, 0, None).expect("an answer");
    assert_eq!(answer.status(), NtStatus::MORE_PROCESSING_REQUIRED, "the last is known");
    smb.session = oldest;
    let answer = smb.leg(&first, 0, None).expect("an answer");
    assert_eq!(answer.status(), NtStatus::USER_SESSION_DELETED, "the oldest is forgotten");
    // What is too long is refused.
    for size in [10_000, 60_000] {
        smb.session = 0;
        let mut long = ntlm::put_negotiate(1);
        long.resize(size, 0);
        let answer = smb.leg(&long, 0, None).expect("an answer");
        assert_eq!(answer.status(), NtStatus::INVALID_PARAMETER, "{size} bytes");
    }
    // Nothing else is processed before a user has signed in.
    smb.session = 0;
    let refused = smb.create(&Ask::open("x")).expect("an answer");
    assert_eq!(refused, Err(NtStatus::USER_SESSION_DELETED));
    // It ends for its size: its number may be used.
    let large = smb.request(Command::CREATE, 0, &|_| {});
    let _ = smb.send_raw(&[&[0, 3, 0, 0][..], &large, &vec![0; 196_608 - 64]].concat());
    smb.receive().expect_err("no answer");
    others_are_served(&scene, "beside sign-ins");
}

#[test]
fn a_hundred_thousand_opens_are_too_many() {
    let scene = Scene::new("smb-opens", &[]);
    std::fs::write(scene.share.join("one"), b"one").expect("a file");
    let before = resident_mib(&scene);
    let from = address(6);
    let mut smb = scene.anna_from(from, &Offer::default()).expect("let in");
    let mut opened = 0;
    let mut open = |access: u32| loop {
        assert!(opened < 100_000, "all of them");
        match smb.create(&Ask { access, ..Ask::open("one") }).expect("an answer") {
            Ok(_) => opened += 1,
            Err(status) => return (status, opened),
        }
    };
    // The table of opens permits fewer of one file than a session may have; one that looks at
    // attributes only is not in it.
    let (refused, by_table) = open(access::READ);
    assert_eq!(refused, NtStatus::INSUFFICIENT_RESOURCES, "{by_table}");
    let (refused, by_session) = open(access::READ_ATTRIBUTES);
    assert_eq!((refused, by_session), (NtStatus::TOO_MANY_OPENED_FILES, SMB_OPENS_MAX));
    let grown = resident_mib(&scene).saturating_sub(before);
    println!("{by_table} opens, and {by_session} with those of attributes: {grown} MiB more");
    scene.api.bytes_in_flight();
    let grown = resident_mib(&scene).saturating_sub(before);
    assert!(grown <= GROWN_MIB, "{grown} MiB");
    others_are_served(&scene, "beside very many opens");
    // A connection that goes gives all of them back.
    drop(smb);
    scene.wait_for_state(0, 0);
}

#[test]
fn a_long_path_counts_for_an_open_that_is_renamed_to_it() {
    const LEVELS: usize = 120;
    let scene = Scene::new("smb-long", &[]);
    let mut smb = scene.anna_from(address(6), &Offer::default()).expect("let in");
    let mut deep = String::new();
    for _ in 0..LEVELS {
        deep += &"d".repeat(250);
        let made = smb.create(&Ask::make(&deep).dir()).expect("an answer").expect("a directory");
        assert_eq!(smb.close(made).expect("an answer"), NtStatus::SUCCESS);
        deep += "\\";
    }
    let most = SMB_OPEN_UNITS_PER_CLIENT / (deep.len() / SMB_OPEN_UNIT) + 1;
    let mut renamed = 0;
    let refused = loop {
        let name = renamed.to_string();
        let file = smb.create(&Ask::make(&name)).expect("an answer").expect("a file");
        let to = new_name(&format!("{deep}{name}"), false);
        match smb.set(file, file_class::RENAME, &to).expect("an answer") {
            NtStatus::SUCCESS => renamed += 1,
            refused => break refused,
        }
        assert!(renamed <= most, "no end");
    };
    assert_eq!(refused, NtStatus::TOO_MANY_OPENED_FILES);
    assert!(scene.share.join(renamed.to_string()).exists(), "it has its name still");
    others_are_served(&scene, "beside long paths");
    drop(smb);
    scene.wait_for_state(0, 0);
}

#[test]
fn sessions_of_a_connection_and_trees_of_a_session_are_limited() {
    let scene = Scene::new("smb-many", &[]);
    let mut smb = Smb::connect(address(7), scene.at(), &Offer::default()).expect("SMB");
    for number in 0..=SMB_SESSIONS_PER_CONNECTION {
        let status = smb.sign_in(USER, PASSWORD).expect("an answer");
        let may = number < SMB_SESSIONS_PER_CONNECTION;
        let wanted = if may { NtStatus::SUCCESS } else { NtStatus::INSUFFICIENT_RESOURCES };
        assert_eq!(status, wanted, "session {number}");
    }
    // Nor do those count less that had begun before all of these were there.
    let mut smb = Smb::connect(address(8), scene.at(), &Offer::default()).expect("SMB");
    let begin = |smb: &mut Smb| smb.begin_sign_in(0).expect("an answer").expect("a challenge");
    let first = begin(&mut smb);
    for _ in 0..SMB_SESSIONS_PER_CONNECTION {
        assert_eq!(smb.sign_in(USER, PASSWORD).expect("an answer"), NtStatus::SUCCESS);
    }
    let late = smb.end_sign_in(first, Proof::V2, (USER, PASSWORD)).expect("an answer");
    assert_eq!(late, NtStatus::INSUFFICIENT_RESOURCES);
    let mut smb = scene.anna().expect("let in");
    for number in 1..=SMB_TREES_MAX {
        let tree = smb.connect_tree(SHARE).expect("an answer");
        assert_eq!(tree.is_ok(), number < SMB_TREES_MAX, "tree {number}");
    }
    others_are_served(&scene, "beside many sessions");
}

/// The most bytes that the account has had, once it has had some and they grow no more.
fn most_held(scene: &Scene) -> u64 {
    let (mut most, mut same) = (0, 0);
    wait_for("bytes in the account", patience(60), || {
        scene.api.wait_for_second(e2e::api::now() + 1);
        let used = scene.api.bytes_in_flight();
        same = if used <= most { same + 1 } else { 0 };
        most = most.max(used);
        (most > 0 && same >= 2).then_some(most)
    })
}

#[test]
fn halves_of_frames_stay_within_the_account() {
    let scene = Scene::new("smb-halves", &[]);
    let mut held = Vec::new();
    for number in 0..64 {
        let from: IpAddr = address(10 + number);
        let mut smb = scene.anna_from(from, &Offer::default()).expect("let in");
        // The most that a frame may be, of which all but a bit comes.
        let size = SMB_IO_MAX as u32;
        let mut half = size.to_be_bytes().to_vec();
        half.extend(vec![0xfe; SMB_IO_MAX - 1_000]);
        let stream = connect_from(from, scene.at()).expect("a connection");
        stream.set_nonblocking(true).expect("a socket");
        // Before a user has signed in, not even a small part of that is accepted.
        let mut stranger = stream;
        let _ = stranger.write(&half);
        smb.write_some(&half);
        held.push((smb, stranger));
    }
    // What the budget has room for is accepted within seconds.
    let most = most_held(&scene);
    println!("halves of frames: {most} bytes in the account");
    others_are_served(&scene, "beside halves of frames");
    for (_, stranger) in &mut held {
        stranger.set_nonblocking(false).expect("a socket");
        let mut byte = [0];
        assert!(matches!(stranger.read(&mut byte), Ok(0) | Err(_)), "a stranger was sent away");
    }
    drop(held);
    wait_for("an empty account", patience(30), || (scene.api.bytes_in_flight() == 0).then_some(()));
}

#[test]
fn keep_alives_are_nothing_and_other_packets_of_netbios_the_end() {
    let scene = Scene::new("smb-netbios", &[]);
    let mut smb = scene.anna().expect("let in");
    for _ in 0..50 {
        smb.send_raw(&[0x85, 0, 0, 0].repeat(10_000)).expect("sent");
    }
    assert_eq!(smb.echo().expect("an answer"), NtStatus::SUCCESS);
    // A session request, a datagram, a keep-alive with content.
    for packet in [&[0x81, 0, 0, 68][..], &[0x10, 0, 0, 1], &[0x85, 0, 0, 1]] {
        let mut smb = scene.anna().expect("let in");
        let _ = smb.send_raw(&[packet, &[0; 68]].concat());
        smb.ends().expect("the end");
    }
    others_are_served(&scene, "beside keep-alives");
}

#[test]
fn compounds_of_things_that_are_not_there_are_refused() {
    let scene = Scene::new("smb-related", &[]);
    let mut smb = scene.anna().expect("let in");
    let close = |file| CloseRequest { flags: 0, reserved: 0, file };
    // The first is related to nothing; the others to an open, a tree, a session that there is not.
    let refused = |smb: &mut Smb, requests: &[Vec<u8>]| {
        smb.send(requests).expect("sent");
        let answers = smb.receive().expect("answers");
        assert_eq!(answers.len(), requests.len());
        assert!(answers.iter().skip(1).all(|one| one.status().is_error()), "{answers:?}");
        answers[0].status()
    };
    for _ in 0..200 {
        let mut first = smb.request(Command::CLOSE, 0, &|out| close(FileId::RELATED).put_body(out));
        related(&mut first);
        let mut second =
            smb.request(Command::CLOSE, 0, &|out| close(FileId::RELATED).put_body(out));
        related(&mut second);
        assert!(refused(&mut smb, &[first, second]).is_error());
        let file = FileId { persistent: 77, volatile: 77 };
        let first = smb.request(Command::CLOSE, 0, &|out| close(file).put_body(out));
        let mut second = read(&mut smb, FileId::RELATED, 10, 0);
        related(&mut second);
        assert!(refused(&mut smb, &[first, second]).is_error());
        let (session, tree) = (smb.session, smb.tree);
        smb.tree = 99_999;
        let first = smb.request(Command::CREATE, 0, &|out| Ask::make("no").put(out));
        let mut second =
            smb.request(Command::CLOSE, 0, &|out| close(FileId::RELATED).put_body(out));
        related(&mut second);
        assert_eq!(refused(&mut smb, &[first, second]), NtStatus::NETWORK_NAME_DELETED);
        (smb.session, smb.tree) = (session, tree);
    }
    assert!(!scene.share.join("no").exists());
    others_are_served(&scene, "beside compounds");
}

/// Fields of a request: where each is, its size, and its meaning.
type Fields = &'static [(usize, usize, Field)];

/// The meaning of a field.
#[derive(Clone, Copy)]
enum Field {
    /// Where something is in the request, or how long it is.
    Range,
    /// How long the answer may be.
    Limit,
    /// Where nothing is.
    Unused,
}

#[test]
fn lengths_and_places_that_lie_are_refused() {
    use Field::{Limit, Range, Unused};
    let scene = Scene::new("smb-lies", &[]);
    let mut smb = scene.anna().expect("let in");
    let file = smb.create(&Ask::make("f")).expect("an answer").expect("a file");
    let ask = Ask { access: access::READ, ..Ask::open("") }.dir();
    let root = smb.create(&ask).expect("an answer").expect("the share");
    // Of offsets and lengths in each body, from the header's end on.
    let places: [(Command, Fields); 7] = [
        (Command::CREATE, &[(44, 2, Range), (46, 2, Range), (48, 4, Unused), (52, 4, Range)]),
        (Command::WRITE, &[(2, 2, Range), (4, 4, Range)]),
        (Command::QUERY_DIRECTORY, &[(24, 2, Range), (26, 2, Range), (28, 4, Limit)]),
        (Command::QUERY_INFO, &[(4, 4, Limit), (8, 2, Unused), (12, 4, Range)]),
        (Command::SET_INFO, &[(4, 4, Range), (8, 2, Range)]),
        (Command::IOCTL, &[(24, 4, Range), (28, 4, Range), (36, 4, Unused), (44, 4, Limit)]),
        (Command::LOCK, &[(2, 2, Range)]),
    ];
    for (command, fields) in places {
        let request = right(&mut smb, command, [file, root]);
        smb.send(&[request]).expect("sent");
        let status = smb.receive().expect("an answer")[0].status();
        assert_eq!(status, NtStatus::SUCCESS, "{command:?}");
        for (at, size, field) in fields {
            for long in [u32::MAX, 0x7fff_ffff, 0xffff, 0x7fff] {
                let mut request = right(&mut smb, command, [file, root]);
                patch(&mut request, 64 + at, &long.to_le_bytes()[..*size]);
                smb.send(&[request]).expect("sent");
                let status = smb.receive().expect("an answer")[0].status();
                let wanted = match field {
                    Unused => NtStatus::SUCCESS,
                    Limit if long <= 0xffff => NtStatus::SUCCESS,
                    Range | Limit => NtStatus::INVALID_PARAMETER,
                };
                assert_eq!(status, wanted, "{command:?}, {long:#x} at {at}");
            }
        }
    }
    let long = "n".repeat(32_000);
    let named = smb.create(&Ask::make(&long)).expect("an answer");
    assert_eq!(named, Err(NtStatus::OBJECT_NAME_INVALID));
    let deep = "d\\".repeat(15_000);
    assert!(smb.create(&Ask::make(&deep)).expect("an answer").is_err());
    scene.api.bytes_in_flight();
    others_are_served(&scene, "beside lies");
}

/// A request that is right, to be made wrong.
fn right(smb: &mut Smb, command: Command, [file, root]: [FileId; 2]) -> Vec<u8> {
    match command {
        Command::CREATE => smb.request(command, 0, &|out| Ask::open("f").put(out)),
        Command::SET_INFO => {
            let body = set_info(file, file_class::POSITION, &[0; 8]);
            smb.request(command, 0, &body)
        }
        Command::LOCK => {
            let lock = Lock { lock_sequence: 0, file, locks: vec![element(0)] };
            smb.request(command, 0, &|out| lock.put(out))
        }
        _ => smb.request(command, 0, &|out| {
            match command {
                Command::WRITE => {
                    let (offset, flags) = (0, 0);
                    wire::smb::io::WriteRequest { offset, file, flags, data: b"data" }.put(out);
                }
                Command::QUERY_DIRECTORY => {
                    let restart = dir::query_flags::RESTART;
                    dir::Request { flags: restart, ..query(root, b"*\0", 1_000) }.put(out);
                }
                Command::QUERY_INFO => info(file).put(out),
                _ => {
                    let (code, output_max, flags) = (wire::smb::ioctl::code::SET_SPARSE, 9, 1);
                    wire::smb::ioctl::Request { code, file, output_max, flags, input: &[1] }
                        .put(out);
                }
            };
        }),
    }
}

fn query(file: FileId, pattern: &[u8], output_max: u32) -> dir::Request<'_> {
    dir::Request { level: 37, flags: 0, file, pattern, output_max }
}

fn info(file: FileId) -> wire::smb::info::QueryRequest<'static> {
    let (info_type, class, output_max, additional, flags) = (1, 18, 1_000, 0, 0);
    wire::smb::info::QueryRequest {
        info_type,
        class,
        output_max,
        additional,
        flags,
        file,
        input: &[],
    }
}

fn element(offset: u64) -> Element {
    let flags = lock_flags::EXCLUSIVE | lock_flags::FAIL_IMMEDIATELY;
    Element { offset, length: 1, flags, reserved: 0 }
}

#[test]
fn locks_without_end_are_too_many() {
    let scene = Scene::new("smb-locks", &[]);
    let before = resident_mib(&scene);
    let mut smb = scene.anna().expect("let in");
    let file = smb.create(&Ask::make("f")).expect("an answer").expect("a file");
    let lock = |smb: &mut Smb, locks: Vec<Element>| {
        let lock = Lock { lock_sequence: 0, file, locks };
        smb.call(Command::LOCK, 0, &|out| lock.put(out)).expect("an answer").status()
    };
    // More than an array may have.
    assert_eq!(lock(&mut smb, (0..65).map(element).collect()), NtStatus::INVALID_PARAMETER);
    let mut done = 0;
    loop {
        let first = 64 * done as u64;
        match lock(&mut smb, (first..first + 64).map(|n| element(2 * n)).collect()) {
            NtStatus::SUCCESS => done += 1,
            NtStatus::INSUFFICIENT_RESOURCES => break,
            other => panic!("{other:?}"),
        }
        assert!(done < 20_000, "no end");
    }
    println!("{} locks of one open", 64 * done);
    // Locks of no bytes conflict with no other lock, but take memory all the same.
    let nothing = Element { length: 0, ..element(5) };
    for _ in 0..5_000 {
        lock(&mut smb, vec![nothing; 64]);
    }
    let grown = resident_mib(&scene).saturating_sub(before);
    assert!(grown <= GROWN_MIB, "{grown} MiB");
    others_are_served(&scene, "beside locks");
}

#[test]
fn listings_in_tiny_pieces_and_long_patterns_end() {
    let scene = Scene::new("smb-listings", &[]);
    for n in 0..2_000 {
        std::fs::write(scene.share.join(format!("{}{n:04}", "a".repeat(200))), b"")
            .expect("a file");
    }
    let mut smb = scene.anna().expect("let in");
    let root = Ask { access: access::READ, disposition: Disposition::Open, ..Ask::open("") }.dir();
    let file = smb.create(&root).expect("an answer").expect("the share");
    let list = |smb: &mut Smb, file, pattern: &[u8], max| {
        let query = query(file, pattern, max);
        smb.call(Command::QUERY_DIRECTORY, max as usize, &|out| query.put(out)).expect("an answer")
    };
    let all = utf16::encode("*");
    for max in [0, 1, 8, 63, 64] {
        let status = list(&mut smb, file, &all, max).status();
        assert!(status.is_error(), "{max}: {status:?}");
    }
    assert_eq!(list(&mut smb, file, &all, 200).status(), NtStatus::SUCCESS, "one at a time");
    // What would take the longest to match, and what is longer than any name.
    let slow: String = "*?".repeat(120) + "*b";
    let began = Instant::now();
    let file = smb.create(&root).expect("an answer").expect("the share");
    assert!(list(&mut smb, file, &utf16::encode(&slow), 60_000).status().is_error());
    e2e::took_at_most("a slow pattern", began.elapsed(), Duration::from_secs(10));
    let file = smb.create(&root).expect("an answer").expect("the share");
    let long = utf16::encode(&"*?".repeat(16_000));
    assert_eq!(list(&mut smb, file, &long, 60_000).status(), NtStatus::OBJECT_NAME_INVALID);
    // Many at once, each with entries in memory.
    let mut begun = 0;
    for _ in 0..1_000 {
        let file = smb.create(&root).expect("an answer").expect("the share");
        match list(&mut smb, file, &all, 300).status() {
            NtStatus::SUCCESS => begun += 1,
            NtStatus::INSUFFICIENT_RESOURCES => {}
            other => panic!("{other:?}"),
        }
    }
    println!("{begun} listings begun");
    assert!(begun > 8);
    scene.api.bytes_in_flight();
    others_are_served(&scene, "beside listings");
}

#[test]
fn a_client_that_requests_much_and_reads_nothing_stays_within_the_account() {
    let scene = Scene::new("smb-greedy", &[]);
    std::fs::write(scene.share.join("large"), vec![7; SMB_IO_MAX]).expect("a file");
    let before = resident_mib(&scene);
    let mut held = Vec::new();
    for number in 0..64 {
        let mut smb = scene.anna_from(address(10 + number), &Offer::default()).expect("let in");
        let ask = Ask { access: access::READ, ..Ask::open("large") };
        let file = smb.create(&ask).expect("an answer").expect("a file");
        smb.earn_credits(8).expect("answers");
        for _ in 0..4 {
            let read = read(&mut smb, file, SMB_IO_MAX as u32, SMB_IO_MAX);
            smb.send(&[read]).expect("sent");
        }
        held.push(smb);
    }
    let most = most_held(&scene);
    let grown = resident_mib(&scene).saturating_sub(before);
    println!("64 greedy clients: {most} bytes in the account, {grown} MiB more");
    others_are_served(&scene, "beside greedy clients");
    drop(held);
    wait_for("an empty account", patience(60), || (scene.api.bytes_in_flight() == 0).then_some(()));
}
