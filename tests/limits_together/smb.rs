//! Limits of SMB: sessions, trees, opens, locks, requests that wait, listings, bytes.

use std::fs::File;
use std::os::fd::AsRawFd;

use base::limits::{
    SMB_COMPOUND_MAX, SMB_IO_MAX, SMB_LISTINGS_MAX, SMB_REQUESTS_MAX, SMB_RPC_CONTEXTS_MAX,
    SMB_SESSIONS_PER_CONNECTION, SMB_SETUPS_MAX, SMB_TREES_MAX,
};
use e2e::smb::{Ask, Offer, Smb, framed};
use wire::smb::create::{FileId, access};
use wire::smb::header::Command;
use wire::smb::io::ReadRequest;
use wire::smb::lock::{Element, Request as Lock, lock_flags};
use wire::smb::ntlm;
use wire::smb::rpc::{NDR, SRVSVC};
use wire::smb::status::NtStatus;
use wire::smb::{dir, spnego, utf16};

use super::attack::fill;
use super::world::PASSWORD;
use super::{Attack, Got};

/// SMB.
const PORT: u16 = 445;
/// Ranges of one LOCK.
const RANGES: u64 = 64;
/// Connections that hold bytes.
const LARGE: usize = 16;
/// Directories of a long path, each with a name of 250 bytes.
const LEVELS: usize = 60;
/// Opens that are asked for at most: those of a session and of an address are fewer.
const OPENS_ASKED: usize = 100_000;

fn signed_in(attack: &Attack<'_>, user: &str, share: &str) -> std::io::Result<Smb> {
    let to = attack.world.server.at(PORT);
    let mut smb = Smb::open((attack.from, to), &Offer::default(), (user, PASSWORD), share)?;
    smb.earn_credits(8)?;
    Ok(smb)
}

fn of_users(attack: &Attack<'_>) -> Vec<Smb> {
    let users = attack.users().iter();
    users.map(|user| signed_in(attack, user, "box").expect("a session")).collect()
}

/// Sessions of a connection, and trees of a session.
pub(crate) fn sessions(attack: &Attack<'_>) -> Got {
    let (mut sessions, mut trees, mut held) = (0, 0, Vec::new());
    for user in attack.users() {
        let mut smb = signed_in(attack, user, "box").expect("a session");
        while smb.connect_tree("box").expect("a response").is_ok() {
            trees += 1;
            assert!(trees <= attack.users().len() * SMB_TREES_MAX, "more trees than the limit");
        }
        // A session costs a few messages: the second connection takes all of its sessions.
        while smb.sign_in(user, PASSWORD).expect("a response") == NtStatus::SUCCESS {
            sessions += 1;
        }
        held.push(smb);
    }
    assert!(sessions >= SMB_SESSIONS_PER_CONNECTION - 1);
    Got::new(format!("{sessions} sessions, {trees} trees"), held)
}

/// Opens a file until that is refused; pipelined.
fn open_all(smb: &mut Smb, ask: &Ask<'_>, batch: usize) -> (usize, NtStatus) {
    let mut opened = 0;
    while opened < OPENS_ASKED {
        let creates: Vec<_> =
            (0..batch).map(|_| smb.request(Command::CREATE, 0, &|out| ask.put(out))).collect();
        smb.send(&creates).expect("sent");
        let mut answers = 0;
        while answers < batch {
            for answer in smb.receive().expect("responses") {
                match answer.status() {
                    NtStatus::PENDING => {}
                    NtStatus::SUCCESS => (answers, opened) = (answers + 1, opened + 1),
                    refused => {
                        answers += 1;
                        if answers == batch {
                            return (opened, refused);
                        }
                    }
                }
            }
        }
    }
    (opened, NtStatus::SUCCESS)
}

/// Opens: of one file, and of a path that is so long that few are needed.
pub(crate) fn opens(attack: &Attack<'_>) -> Got {
    let deep = deep(attack);
    let (mut of_file, mut of_path, mut refused, mut held) = (0, 0, Vec::new(), Vec::new());
    for mut smb in of_users(attack) {
        let read = Ask { access: access::READ, ..Ask::open("common") };
        let (count, why) = open_all(&mut smb, &read, SMB_COMPOUND_MAX);
        of_file += count;
        refused.push(why);
        // One session has a limit of its own before.
        let path = if attack.all { deep.as_str() } else { "common" };
        let look = Ask { access: access::READ_ATTRIBUTES, ..Ask::open(path) };
        let (count, why) = open_all(&mut smb, &look, SMB_COMPOUND_MAX / 2);
        of_path += count;
        refused.push(why);
        held.push(smb);
    }
    assert!(of_file > 5_000, "{of_file}: {refused:?}");
    Got::new(format!("{of_file} opens of a file, {of_path} for attributes: {refused:?}"), held)
}

/// A path of [`LEVELS`] directories.
fn deep(attack: &Attack<'_>) -> String {
    let name = "d".repeat(250);
    let mut at = File::open(&attack.world.share).expect("the share");
    for _ in 0..LEVELS {
        // No path of the kernel is as long as this one.
        let inner = format!("/proc/self/fd/{}/{name}", at.as_raw_fd());
        std::fs::create_dir_all(&inner).expect("a directory");
        at = File::open(&inner).expect("a directory");
    }
    vec![name; LEVELS].join("\\")
}

fn lock(smb: &mut Smb, file: FileId, from: u64) -> NtStatus {
    let flags = lock_flags::EXCLUSIVE | lock_flags::FAIL_IMMEDIATELY;
    let one = |n| Element { offset: 2 * n, length: 1, flags, reserved: 0 };
    let lock = Lock { lock_sequence: 0, file, locks: (from..from + RANGES).map(one).collect() };
    smb.call(Command::LOCK, 0, &|out| lock.put(out)).expect("a response").status()
}

/// Ranges of the common file.
pub(crate) fn locks(attack: &Attack<'_>) -> Got {
    let (mut taken, mut held) = (0, Vec::new());
    for mut smb in of_users(attack) {
        while let Ok(file) = smb.create(&Ask::open("common")).expect("a response") {
            let first = taken;
            while lock(&mut smb, file, taken) == NtStatus::SUCCESS {
                taken += RANGES;
            }
            if taken == first {
                break;
            }
        }
        held.push(smb);
    }
    Got::new(format!("{taken} ranges"), held)
}

/// LOCK requests that wait, on as many connections as that takes.
pub(crate) fn waiters(attack: &Attack<'_>) -> Got {
    let mut held = Vec::new();
    for n in 0..attack.count(1, 8) {
        let users = attack.users();
        let mut smb = signed_in(attack, users[n % users.len()], "box").expect("a session");
        let name = attack.name("waited", n);
        let make = Ask { disposition: wire::smb::create::Disposition::OpenIf, ..Ask::open(&name) };
        let mut open = || smb.create(&make).expect("a response").expect("a file");
        let (holder, waits) = (open(), open());
        assert_eq!(lock(&mut smb, holder, 0), NtStatus::SUCCESS);
        let flags = lock_flags::EXCLUSIVE;
        let element = Element { offset: 0, length: 1, flags, reserved: 0 };
        let wait = Lock { lock_sequence: 0, file: waits, locks: vec![element] };
        for _ in 0..SMB_REQUESTS_MAX {
            let request = smb.request(Command::LOCK, 0, &|out| wait.put(out));
            smb.send(&[request]).expect("sent");
        }
        held.push(smb);
    }
    Got::new(format!("{} requests that wait", held.len() * SMB_REQUESTS_MAX), held)
}

/// Listings that are begun.
pub(crate) fn listings(attack: &Attack<'_>) -> Got {
    let (mut begun, mut held, pattern) = (0, Vec::new(), utf16::encode("*"));
    for mut smb in of_users(attack) {
        for _ in 0..SMB_LISTINGS_MAX {
            let ask = Ask { access: access::READ, ..Ask::open("long") }.dir();
            let Ok(file) = smb.create(&ask).expect("a response") else { break };
            let output_max = 700;
            let query = dir::Request { level: 37, flags: 0, file, pattern: &pattern, output_max };
            let answer = smb.call(Command::QUERY_DIRECTORY, 700, &|out| query.put(out));
            begun += usize::from(answer.expect("a response").status() == NtStatus::SUCCESS);
        }
        held.push(smb);
    }
    Got::new(format!("{begun} listings"), held)
}

/// A bind of RPC with as many contexts as it may have: its response is long.
fn bind() -> Vec<u8> {
    let mut pdu = vec![5, 0, 11, 3, 0x10, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
    pdu.extend([4_280u16.to_le_bytes(), 4_280u16.to_le_bytes()].concat());
    pdu.extend([0, 0, 0, 0, SMB_RPC_CONTEXTS_MAX as u8, 0, 0, 0]);
    for number in 0..SMB_RPC_CONTEXTS_MAX as u16 {
        pdu.extend(number.to_le_bytes());
        pdu.extend([1, 0]);
        pdu.extend(SRVSVC);
        pdu.extend(NDR);
    }
    let length = (pdu.len() as u16).to_le_bytes();
    pdu[8..10].copy_from_slice(&length);
    pdu
}

/// Pipes with responses that are not read, until no more are taken.
pub(crate) fn pipes(attack: &Attack<'_>) -> Got {
    let (mut pipes, mut written, mut held, bind) = (0, 0, Vec::new(), bind());
    for mut smb in of_users(attack) {
        assert!(smb.connect_tree("IPC$").expect("a response").is_ok());
        while let Ok(pipe) = smb.create(&Ask::open("srvsvc")).expect("a response") {
            let before = written;
            while smb.write(pipe, 0, &bind, 0).expect("a response") == NtStatus::SUCCESS {
                written += 1;
            }
            pipes += 1;
            if written == before {
                break;
            }
        }
        held.push(smb);
    }
    assert!(written > 0);
    Got::new(format!("{pipes} pipes with {written} responses"), held)
}

/// Frames that do not end, and reads without a reader of the responses.
pub(crate) fn bytes(attack: &Attack<'_>) -> Got {
    let mut held = Vec::new();
    for n in 0..LARGE {
        let users = attack.users();
        let mut smb = signed_in(attack, users[n % users.len()], "box").expect("a session");
        let ask = Ask { access: access::READ, ..Ask::open("large") };
        if let Ok(file) = smb.create(&ask).expect("a response") {
            let read = ReadRequest { length: SMB_IO_MAX as u32, offset: 0, file, minimum: 0 };
            for _ in 0..4 {
                let read = smb.request(Command::READ, SMB_IO_MAX, &|out| read.put(out));
                smb.send(&[read]).expect("sent");
            }
        }
        held.push(smb);
        let smb = signed_in(attack, users[n % users.len()], "box").expect("a session");
        let half = [&(SMB_IO_MAX as u32).to_be_bytes()[..], &vec![0xfe; SMB_IO_MAX - 1_000]];
        fill(smb.stream(), &half.concat());
        held.push(smb);
    }
    Got::new(format!("{LARGE} connections that take no data, {LARGE} halves of frames"), held)
}

/// Sign-ins that have begun, on connections that no user has signed in on.
pub(crate) fn sign_ins(attack: &Attack<'_>) -> Got {
    let first = spnego::begin(&ntlm::put_negotiate(1));
    let mut held = Vec::new();
    for _ in 0..attack.count(8, 32) {
        let to = attack.world.server.at(PORT);
        let Ok(mut smb) = Smb::connect(attack.from, to, &Offer::default()) else { break };
        for _ in 0..SMB_SETUPS_MAX {
            smb.session = 0;
            let answer = smb.leg(&first, 0, None).expect("a response");
            assert_eq!(answer.status(), NtStatus::MORE_PROCESSING_REQUIRED);
        }
        held.push(smb);
    }
    Got::new(format!("{} sign-ins begun", held.len() * SMB_SETUPS_MAX), held)
}

/// Wrong passwords.
pub(crate) fn guesses(attack: &Attack<'_>) -> Got {
    let to = attack.world.server.at(PORT);
    let mut answers = Vec::new();
    for n in 0..attack.count(12, 24) {
        let user = if attack.all { format!("unknown-{n}") } else { "anna".to_owned() };
        let smb = Smb::connect(attack.from, to, &Offer::default());
        answers.push(smb.and_then(|mut smb| smb.sign_in(&user, "wrong")).ok());
    }
    Got::new(format!("{} wrong passwords", answers.len()), ())
}

/// Requests on a file system that stands still.
pub(crate) fn pool(attack: &Attack<'_>) -> Got {
    let users = attack.users();
    let open = |n: usize| signed_in(attack, users[n % users.len()], "slow");
    let Ok(mut held) = (0..attack.count(2, 12)).map(open).collect::<Result<Vec<_>, _>>() else {
        return Got::new("no file system of FUSE", ());
    };
    attack.world.stand_still(true);
    for smb in &mut held {
        for n in 0..SMB_REQUESTS_MAX {
            let name = format!("n{n}");
            let create = smb.request(Command::CREATE, 0, &|out| Ask::make(&name).put(out));
            smb.send(&[create]).expect("sent");
        }
    }
    Got::new(format!("{} requests", held.len() * SMB_REQUESTS_MAX), held)
}

/// Idle connections.
pub(crate) fn connections(attack: &Attack<'_>) -> Got {
    // One that has sent a part of a frame, as any that no user has signed in on may.
    let stream = attack.connect(attack.world.server.at(PORT)).expect("a connection");
    fill(&stream, &framed(&[0; 8])[..6]);
    let idle = attack.idle(attack.world.server.at(PORT), 2_000);
    Got::new(idle.amount.clone(), (stream, idle))
}
