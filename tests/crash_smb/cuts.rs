//! Power cuts at random moments while a client has requests in flight on several files: it makes
//! them, writes with WRITE_THROUGH or not, flushes, renames and deletes.
//!
//! `PLIMSOLL_CRASH_SEED` and `PLIMSOLL_CRASH_ROUNDS` repeat or lengthen a run.

use std::collections::HashMap;
use std::io;

use base::random::{Random, SeededRandom};
use e2e::smb::{Ask, Smb, new_name, related, set_info};
use e2e::{env_number, skip};
use sim::forget;
use wire::smb::class::file_class;
use wire::smb::create::{self, CloseRequest, FileId};
use wire::smb::header::Command;
use wire::smb::io::{FlushRequest, WRITE_THROUGH, WriteRequest};
use wire::smb::status::NtStatus;

use super::model::{BLOCK, BLOCKS, File, bytes};
use super::world::World;

/// Cuts in the gate.
const CUTS: u64 = 12;
/// Cuts for each round of `make test-long crash`.
const CUTS_A_ROUND: u64 = 5;
/// Files; each has one request in flight at most.
const FILES: usize = 6;
/// Most requests between two cuts.
const REQUESTS: u64 = 80;

/// What a request means when it is answered.
enum Meant {
    /// The file is opened, and made if it was not there.
    Opened,
    /// A block is written; durably if so.
    Written(usize, usize, bool),
    Flushed,
    Renamed,
    /// The last one of a compound that deletes it: CLOSE.
    Deleted,
    /// Another of that compound.
    Nothing,
}

struct Run {
    world: World,
    random: SeededRandom,
    files: Vec<File>,
    next: u64,
    acknowledged: u64,
}

/// A connection at work.
struct Work {
    smb: Smb,
    flying: HashMap<u64, (usize, Meant)>,
    open: Vec<Option<FileId>>,
}

impl Work {
    fn is_busy(&self, at: usize) -> bool {
        self.flying.values().any(|(file, _)| *file == at)
    }

    fn send(&mut self, at: usize, request: Vec<u8>, meant: Meant) -> io::Result<()> {
        let id = wire::smb::header::Header::decode(&request).map_err(io::Error::other)?.message_id;
        self.flying.insert(id, (at, meant));
        self.smb.send(&[request])
    }
}

impl Run {
    fn new(seed: u64) -> Self {
        let files = vec![File::default(); FILES];
        let random = SeededRandom::new(seed);
        Self { world: World::new(None), random, files, next: 0, acknowledged: 0 }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next << 20 | 0x5a5a
    }

    /// Sends a request for a file that has none in flight.
    fn ask(&mut self, work: &mut Work, at: usize) -> io::Result<()> {
        let Some(file) = work.open[at] else { return self.open(work, at) };
        match self.random.below(10) {
            0 => {
                let body = FlushRequest { reserved: [0; 6], file };
                let request = work.smb.request(Command::FLUSH, 0, &|out| body.put_body(out));
                work.send(at, request, Meant::Flushed)
            }
            1 => {
                let name = format!("f{}", self.number());
                self.files[at].next = Some(Some(name.clone()));
                let content = new_name(&name, self.random.below(2) == 0);
                let body = set_info(file, file_class::RENAME, &content);
                let request = work.smb.request(Command::SET_INFO, 0, &body);
                work.send(at, request, Meant::Renamed)
            }
            2 => self.delete(work, at, file),
            _ => {
                let (block, word) = (self.random.below(BLOCKS as u64) as usize, self.number());
                let through = self.random.below(3) == 0;
                let number = self.files[at].send(block, word);
                let (offset, data) = ((block * BLOCK) as u64, bytes(word));
                let flags = if through { WRITE_THROUGH } else { 0 };
                let body = WriteRequest { offset, file, flags, data: &data };
                let request = work.smb.request(Command::WRITE, data.len(), &|out| body.put(out));
                work.send(at, request, Meant::Written(block, number, through))
            }
        }
    }

    fn open(&mut self, work: &mut Work, at: usize) -> io::Result<()> {
        let known = self.files[at].name.clone();
        let name = known.clone().unwrap_or_else(|| format!("f{}", self.number()));
        if known.is_none() {
            self.files[at].next = Some(Some(name.clone()));
        }
        let ask = if known.is_some() { Ask::open(&name) } else { Ask::make(&name) };
        let request = work.smb.request(Command::CREATE, 0, &|out| ask.put(out));
        work.send(at, request, Meant::Opened)
    }

    /// Marks it to be deleted and closes it, in one compound.
    fn delete(&mut self, work: &mut Work, at: usize, file: FileId) -> io::Result<()> {
        self.files[at].next = Some(None);
        let mark =
            work.smb.request(Command::SET_INFO, 0, &set_info(file, file_class::DISPOSITION, &[1]));
        let body = CloseRequest { flags: 0, reserved: 0, file: FileId::RELATED };
        let mut close = work.smb.request(Command::CLOSE, 0, &|out| body.put_body(out));
        related(&mut close);
        for (request, meant) in [(&mark, Meant::Nothing), (&close, Meant::Deleted)] {
            let header = wire::smb::header::Header::decode(request).map_err(io::Error::other)?;
            work.flying.insert(header.message_id, (at, meant));
        }
        work.open[at] = None;
        work.smb.send(&[mark, close])
    }

    /// Takes the next answers.
    fn take(&mut self, work: &mut Work) -> io::Result<()> {
        for answer in work.smb.receive()? {
            if answer.status() == NtStatus::PENDING {
                continue;
            }
            let Some((at, meant)) = work.flying.remove(&answer.header.message_id) else {
                panic!("an answer to nothing: {:?}", answer.header);
            };
            assert_eq!(answer.status(), NtStatus::SUCCESS, "{:?}", answer.header.command);
            self.acknowledged += 1;
            let file = &mut self.files[at];
            match meant {
                Meant::Opened => {
                    let opened = create::Response::decode(&answer.message);
                    work.open[at] = Some(opened.map_err(io::Error::other)?.file);
                    file.named();
                }
                Meant::Written(block, number, durable) => file.wrote(block, number, durable),
                Meant::Flushed => file.flushed(),
                Meant::Renamed | Meant::Deleted => file.named(),
                Meant::Nothing => {}
            }
        }
        Ok(())
    }

    /// Sends a random number of requests, and then cuts the power with some in flight.
    fn work(&mut self) -> io::Result<()> {
        let smb = self.world.connect()?;
        let mut work = Work { smb, flying: HashMap::new(), open: vec![None; FILES] };
        for _ in 0..1 + self.random.below(REQUESTS) {
            let at = self.random.below(FILES as u64) as usize;
            while work.is_busy(at) {
                self.take(&mut work)?;
            }
            self.ask(&mut work, at)?;
        }
        // Some answers are taken, so that what they acknowledge is near the cut.
        for _ in 0..self.random.below(4) {
            if !work.flying.is_empty() {
                self.take(&mut work)?;
            }
        }
        self.world.power_cut();
        Ok(())
    }

    /// One cut; what was lost.
    fn cut(&mut self) -> Option<String> {
        self.world.start();
        self.work().expect("a server until the cut");
        let image = self.world.mounted.image();
        self.files.iter_mut().find_map(|file| file.cut(&image))
    }
}

#[test]
fn nothing_that_smb_acknowledges_is_lost_by_power_cuts() {
    if let Err(why) = forget::available() {
        skip!("crash-smb-cuts", "{why}");
    }
    let rounds = env_number("PLIMSOLL_CRASH_ROUNDS", 0) * CUTS_A_ROUND;
    let cuts = if rounds == 0 { CUTS } else { rounds };
    let mut run = Run::new(env_number("PLIMSOLL_CRASH_SEED", 1));
    for cut in 0..cuts {
        if let Some(what) = run.cut() {
            panic!("cut {cut}: {what}");
        }
    }
    println!("{cuts} power cuts, {} requests acknowledged, nothing lost", run.acknowledged);
}
