//! Persistent handles through power cuts: each that was granted, with what it denies to others and
//! the ranges that it has locked, is there at the next start, binds others before its client comes
//! back, and is continued; what was closed or unlocked is not there.
//!
//! `PLIMSOLL_CRASH_SEED` and `PLIMSOLL_CRASH_ROUNDS` repeat or lengthen a run.

use std::fs;
use std::io;
use std::process::Command;

use base::random::{Random, SeededRandom};
use e2e::process::succeed;
use e2e::server::binary;
use e2e::smb::caching::{body, opened, persistent, reconnect};
use e2e::smb::{Ask, SHARED, Smb};
use e2e::{env_number, skip};
use sim::forget::{self, ForgetFs};
use wire::smb::create::{CloseRequest, Disposition, FileId};
use wire::smb::header::Command as Code;
use wire::smb::lock::{Element, Request as Lock, lock_flags};
use wire::smb::status::NtStatus;

use super::world::World;

/// Cuts in the gate.
const CUTS: u64 = 8;
/// Cuts for each round of `make test-long crash`.
const CUTS_A_ROUND: u64 = 5;
/// Handles.
const HANDLES: usize = 6;
/// Ranges of each that are locked or not.
const RANGES: usize = 3;
/// Most requests between two cuts.
const REQUESTS: u64 = 24;
/// Handles that are recorded one after the other until their file is rewritten, at most.
const CYCLES: usize = 4_000;
/// The client with the handles, and another one.
const ME: [u8; 16] = [1; 16];
const OTHER: [u8; 16] = [2; 16];

/// A handle as its client knows it.
#[derive(Debug, Clone, Default)]
struct Handle {
    name: String,
    guid: [u8; 16],
    /// Others may have it open.
    is_shared: bool,
    /// Its number, if it was granted and its close was not acknowledged.
    file: Option<FileId>,
    locked: [bool; RANGES],
    /// A request that was not answered before the cut.
    unanswered: Option<PendingRequest>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PendingRequest {
    Open,
    Close,
    Toggle(usize),
}

impl Handle {
    fn ask(&self) -> Ask<'_> {
        let share = if self.is_shared { SHARED } else { 0 };
        Ask { share, disposition: Disposition::OpenIf, ..Ask::open(&self.name) }
    }

    fn request(&self, smb: &mut Smb, asked: PendingRequest) -> Vec<u8> {
        let file = self.file.unwrap_or(FileId { persistent: 0, volatile: 0 });
        match asked {
            PendingRequest::Open => {
                let create = body(&self.ask(), &[persistent(self.guid)]);
                smb.request(Code::CREATE, 0, &create)
            }
            PendingRequest::Close => {
                let close = CloseRequest { flags: 0, reserved: 0, file };
                smb.request(Code::CLOSE, 0, &|out| close.put_body(out))
            }
            PendingRequest::Toggle(range) => {
                let lock = toggle(file, range, self.locked[range]);
                smb.request(Code::LOCK, 0, &|out| lock.put(out))
            }
        }
    }
}

/// Locks a range, or unlocks it.
fn toggle(file: FileId, range: usize, is_locked: bool) -> Lock {
    let exclusive = lock_flags::EXCLUSIVE | lock_flags::FAIL_IMMEDIATELY;
    let flags = if is_locked { lock_flags::UNLOCK } else { exclusive };
    let locks = vec![Element { offset: 10 * range as u64, length: 5, flags, reserved: 0 }];
    Lock { lock_sequence: 0, file, locks }
}

struct Run {
    world: World,
    random: SeededRandom,
    handles: Vec<Handle>,
    next: u64,
    acknowledged: u64,
}

impl Run {
    fn new(seed: u64) -> Self {
        let handles = vec![Handle::default(); HANDLES];
        let random = SeededRandom::new(seed);
        Self { world: World::continuous(None), random, handles, next: 0, acknowledged: 0 }
    }

    /// What is asked of a handle next.
    fn next_request(&mut self, at: usize) -> PendingRequest {
        if self.handles[at].file.is_none() {
            self.next += 1;
            let mut guid = [0; 16];
            guid[..8].copy_from_slice(&self.next.to_le_bytes());
            let (name, is_shared) = (format!("f{}", self.next), self.random.below(2) == 0);
            self.handles[at] = Handle { name, guid, is_shared, ..Handle::default() };
            return PendingRequest::Open;
        }
        match self.random.below(6) {
            0 => PendingRequest::Close,
            _ => PendingRequest::Toggle(self.random.below(RANGES as u64) as usize),
        }
    }

    /// One request, to its answer.
    fn exchange(&mut self, smb: &mut Smb, at: usize) -> io::Result<()> {
        let asked = self.next_request(at);
        let request = self.handles[at].request(smb, asked);
        smb.send(&[request])?;
        let answer = smb.answer()?;
        assert_eq!(answer.status(), NtStatus::SUCCESS, "{asked:?} {:?}", self.handles[at]);
        self.acknowledged += 1;
        let handle = &mut self.handles[at];
        match asked {
            PendingRequest::Open => handle.file = Some(opened(&answer).expect("an open").0),
            PendingRequest::Close => *handle = Handle::default(),
            PendingRequest::Toggle(range) => handle.locked[range] = !handle.locked[range],
        }
        Ok(())
    }

    /// Works, and cuts the power with a request in flight.
    fn work(&mut self, mut smb: Smb) -> io::Result<()> {
        for _ in 0..self.random.below(REQUESTS) {
            let at = self.random.below(HANDLES as u64) as usize;
            self.exchange(&mut smb, at)?;
        }
        let at = self.random.below(HANDLES as u64) as usize;
        let asked = self.next_request(at);
        let request = self.handles[at].request(&mut smb, asked);
        self.handles[at].unanswered = Some(asked);
        smb.send(&[request])?;
        self.world.power_cut();
        Ok(())
    }

    /// What of the handles does not bind another client, or binds it too much.
    fn look_as_another(&self) -> io::Result<Option<String>> {
        let mut other = self.world.connect_as(OTHER)?;
        for handle in self.handles.iter().filter(|one| one.file.is_some()) {
            let closes = handle.unanswered == Some(PendingRequest::Close);
            let got = other.create(&Ask::open(&handle.name))?;
            let its = match got {
                Ok(_) if !handle.is_shared && !closes => {
                    return Ok(Some(format!("{handle:?} denies nothing")));
                }
                Err(NtStatus::SHARING_VIOLATION) if !handle.is_shared => continue,
                Err(status) => return Ok(Some(format!("{handle:?}: {status:?}"))),
                Ok(its) => its,
            };
            for range in 0..RANGES {
                let lock = toggle(its, range, false);
                let answer = other.call(Code::LOCK, 0, &|out| lock.put(out))?;
                let is_refused = answer.status() == NtStatus::LOCK_NOT_GRANTED;
                let is_open = closes || handle.unanswered == Some(PendingRequest::Toggle(range));
                if is_refused != handle.locked[range] && !is_open {
                    let status = answer.status();
                    return Ok(Some(format!("{handle:?}: range {range}: {status:?}")));
                }
            }
            assert_eq!(other.close(its)?, NtStatus::SUCCESS);
        }
        Ok(None)
    }

    /// Continues all; what cannot be.
    fn continued(&mut self, smb: &mut Smb) -> io::Result<Option<String>> {
        for handle in &mut self.handles {
            let unanswered = handle.unanswered.take();
            let Some(file) = handle.file else {
                // It may have been granted; then nothing but its number is missing, and it ends
                // with its time.
                *handle = Handle::default();
                continue;
            };
            let ask = handle.ask();
            let answer = smb.create_with(&ask, &[reconnect(file, handle.guid)])?;
            match opened(&answer) {
                Ok((same, _)) => handle.file = Some(same),
                Err(_) if unanswered == Some(PendingRequest::Close) => {
                    *handle = Handle::default();
                    continue;
                }
                Err(status) => return Ok(Some(format!("{handle:?}: {status:?}"))),
            }
            if let (Some(PendingRequest::Toggle(range)), Some(same)) = (unanswered, handle.file) {
                // Whether it was done is not known: now it is.
                let unlock = toggle(same, range, true);
                smb.call(Code::LOCK, 0, &|out| unlock.put(out))?;
                handle.locked[range] = false;
            }
        }
        Ok(None)
    }

    fn cut(&mut self) -> io::Result<Option<String>> {
        self.world.start();
        if let Some(what) = self.look_as_another()? {
            return Ok(Some(what));
        }
        let mut smb = self.world.connect_as(ME)?;
        if let Some(what) = self.continued(&mut smb)? {
            return Ok(Some(what));
        }
        self.work(smb)?;
        Ok(None)
    }
}

#[test]
fn no_persistent_handle_is_lost_by_power_cuts() {
    if let Err(why) = forget::available() {
        skip!("crash-smb-persistent", "{why}");
    }
    let rounds = env_number("PLIMSOLL_CRASH_ROUNDS", 0) * CUTS_A_ROUND;
    let cuts = if rounds == 0 { CUTS } else { rounds };
    let mut run = Run::new(env_number("PLIMSOLL_CRASH_SEED", 1));
    for cut in 0..cuts {
        if let Some(what) = run.cut().expect("a server until the cut") {
            panic!("cut {cut}: {what}");
        }
    }
    println!("{cuts} power cuts, {} requests acknowledged, nothing lost", run.acknowledged);
}

/// What `plimsoll inspect` shows of the file that a power cut would leave.
fn inspected(world: &World, image: &ForgetFs) -> String {
    let Some(left) = image.look("state/smb-handles") else { return String::new() };
    let path = world.share().with_file_name("smb-handles");
    fs::write(&path, left.data).expect("a copy");
    let mut command = Command::new(binary());
    command.arg("inspect").arg(path).arg("--json");
    String::from_utf8(succeed(&mut command)).expect("text")
}

fn has(world: &World, what: &str) -> bool {
    inspected(world, &world.mounted.image()).contains(what)
}

/// Opens, locks, closes; the first thing that a power cut right after the answer would have undone.
fn undone(world: &mut World) -> Option<&'static str> {
    world.start();
    let mut smb = world.connect_as(ME).expect("a connection");
    let open = |smb: &mut Smb, name: &str, number: u16| {
        let mut guid = [7; 16];
        guid[..2].copy_from_slice(&number.to_le_bytes());
        let ask = Ask { disposition: Disposition::OpenIf, ..Ask::open(name) };
        let answer = smb.create_with(&ask, &[persistent(guid)]).expect("an answer");
        opened(&answer).expect("an open").0
    };
    let first = open(&mut smb, "first", 1);
    if !has(world, "/box/first") {
        return Some("an open");
    }
    let lock = toggle(first, 0, false);
    let answer = smb.call(Code::LOCK, 0, &|out| lock.put(out)).expect("an answer");
    assert_eq!(answer.status(), NtStatus::SUCCESS);
    if !has(world, "\"locks\":1") && !has(world, "\"locks\": 1") {
        return Some("a lock");
    }
    let second = open(&mut smb, "second", 2);
    assert_eq!(smb.close(second).expect("an answer"), NtStatus::SUCCESS);
    if has(world, "/box/second") {
        return Some("a close");
    }
    // Killed, not cut: all is there still, and at the next start the file is rewritten.
    drop(smb);
    drop(world.server.take());
    super::world::on_disk(&world.state());
    world.start();
    if !has(world, "/box/first") {
        return Some("an open of before, at the next start");
    }
    let mut smb = world.connect_as(ME).expect("a connection");
    let file = world.state().join("smb-handles");
    let length = || fs::metadata(&file).expect("the file").len();
    let (mut longest, mut is_anew) = (0, false);
    for number in 0..CYCLES {
        let one = open(&mut smb, &"x".repeat(200), number as u16 + 3);
        assert_eq!(smb.close(one).expect("an answer"), NtStatus::SUCCESS);
        is_anew = length() < longest;
        if is_anew {
            break;
        }
        longest = length();
    }
    assert!(is_anew, "the file grows for ever: {longest} bytes");
    open(&mut smb, "last", 2);
    (!has(world, "/box/last")).then_some("an open after the file was written anew")
}

#[test]
fn persistent_handles_outlive_a_power_cut() {
    if let Err(why) = forget::available() {
        skip!("crash-smb-persistent-once", "{why}");
    }
    assert_eq!(undone(&mut World::continuous(None)), None);
}

#[test]
fn leaving_out_any_one_flush_of_persistent_handles_is_noticed() {
    if let Err(why) = forget::available() {
        skip!("crash-smb-persistent-each-flush", "{why}");
    }
    for site in ["journal", "journal-whole", "journal-name"] {
        match undone(&mut World::continuous(Some(site))) {
            Some(what) => println!("without {site}: {what} was lost"),
            None => panic!("nobody noticed that the flush {site} was left out"),
        }
    }
}
