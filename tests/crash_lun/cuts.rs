//! Power cuts at random moments while two initiators of one unit have commands in flight: writes
//! of all kinds with FUA or not, with the write cache on or off, flushes, registrations.
//!
//! `PLIMSOLL_CRASH_SEED` and `PLIMSOLL_CRASH_ROUNDS` repeat or lengthen a run.

use std::collections::HashMap;
use std::io;

use base::random::{Random, SeededRandom};
use e2e::iscsi::{BLOCK, Initiator, blocks, io, reserve, reserved, synchronize};
use e2e::{env_number, skip};
use sim::forget;
use wire::scsi::cdb::{ReserveIn, ReserveOut, WriteSame};
use wire::scsi::reserve::{keys, reservation};
use wire::scsi::unmap::{self, Extent};
use wire::scsi::{Cdb, SenseKey};

use super::model::{Model, Sent, bytes};
use super::{UNIT, World};

/// Cuts in the gate.
const CUTS: u64 = 12;
/// Cuts for each round of `make test-long crash`: these are shorter than others.
const CUTS_A_ROUND: u64 = 5;
/// Blocks that are used.
const BLOCKS: u64 = 512;
/// Most blocks of a command.
const COUNT_MAX: u64 = 24;
/// Commands of each initiator in flight.
const DEPTH: usize = 4;
/// Most commands between two cuts.
const COMMANDS: u64 = 80;
/// Type of the reservation: Write Exclusive - Registrants Only.
const REGISTRANTS: u8 = 5;

/// A command in flight.
struct Flying {
    cdb: Cdb,
    out: Vec<u8>,
    what: What,
}

/// What its end means.
enum What {
    /// These are written; on disk if so.
    Written(Sent, bool),
    /// What was acknowledged before is on disk.
    Flushed(Vec<usize>),
    /// The initiator's key is another one.
    Registered(u64),
}

/// The two initiators and what they know.
struct Run {
    world: World,
    model: Model,
    random: SeededRandom,
    /// What each is registered with; two if the change was not answered.
    keys: [Vec<u64>; 2],
    next: u64,
    acknowledged: u64,
}

/// What one initiator is at.
struct Side {
    number: usize,
    initiator: Initiator,
    flying: HashMap<u32, Flying>,
}

impl Side {
    fn send(&mut self, flying: Flying) -> io::Result<()> {
        let tag = self.initiator.start(&flying.cdb, &flying.out, 0)?;
        self.flying.insert(tag, flying);
        Ok(())
    }
}

impl Run {
    fn new(seed: u64) -> Self {
        Self {
            world: World::new(None),
            model: Model::new(BLOCKS as usize),
            random: SeededRandom::new(seed),
            keys: [vec![], vec![]],
            next: 1,
            acknowledged: 0,
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        // A number that no earlier run has used either.
        self.next << 20 | 0x5a5a
    }

    /// Signs both in. The first time they register, and one reserves; later it must be so still.
    fn sides(&mut self) -> [Side; 2] {
        let mut sides = [0, 1].map(|number| Side {
            number,
            initiator: self.world.initiator(number as u8 + 1),
            flying: HashMap::new(),
        });
        let first = &mut sides[0].initiator;
        let (_, mut there) = keys(&first.good(&reserved(ReserveIn::ReadKeys), &[], 1024)).unwrap();
        if self.keys[0].is_empty() {
            assert!(there.is_empty(), "keys of nobody: {there:x?}");
            for side in &mut sides {
                let key = self.number();
                let (cdb, list) = reserve(ReserveOut::Register, 0, 0, key, true);
                side.initiator.good(&cdb, &list, 0);
                self.keys[side.number] = vec![key];
            }
            let key = self.keys[0][0];
            let (cdb, list) = reserve(ReserveOut::Reserve, REGISTRANTS, key, 0, true);
            sides[0].initiator.good(&cdb, &list, 0);
            return sides;
        }
        for possible in &mut self.keys {
            let at = there.iter().position(|key| possible.contains(key));
            let at = at.unwrap_or_else(|| panic!("{there:x?}: none of {possible:x?}"));
            *possible = vec![there.remove(at)];
        }
        assert!(there.is_empty(), "more keys than registrations: {there:x?}");
        let data = first.good(&reserved(ReserveIn::ReadReservation), &[], 1024);
        let (_, held) = reservation(&data).expect("an answer");
        let held = held.map(|held| (held.kind, held.key));
        assert_eq!(held, Some((REGISTRANTS, self.keys[0][0])), "the reservation");
        sides
    }

    /// Blocks without a command in flight.
    fn place(&mut self) -> Option<(u64, usize)> {
        let count = 1 + self.random.below(COUNT_MAX) as usize;
        let lba = self.random.below(BLOCKS - count as u64);
        self.model.is_free(lba, count).then_some((lba, count))
    }

    /// Something to do next, unless its blocks are not free.
    fn command(&mut self, side: &Side, cached: bool) -> Option<Flying> {
        let choice = self.random.below(20);
        if choice == 0 {
            let what = What::Flushed(self.model.acknowledged());
            return Some(Flying { cdb: synchronize(), out: Vec::new(), what });
        }
        if choice == 1 {
            let changing = side.flying.values().any(|f| matches!(f.what, What::Registered(_)));
            let old = *self.keys[side.number].last()?;
            let key = self.number();
            let (cdb, out) = reserve(ReserveOut::Register, 0, old, key, true);
            let what = What::Registered(key);
            return (!changing).then(|| {
                self.keys[side.number].push(key);
                Flying { cdb, out, what }
            });
        }
        let (lba, count) = self.place()?;
        let word = self.number();
        let fua = self.random.below(3) == 0;
        let words: Vec<u64> = (0..count as u64).map(|at| word + at).collect();
        let data: Vec<u8> = words.iter().flat_map(|word| bytes(*word)).collect();
        let (blocks, short) = (blocks(lba, count as u32), io(lba, count as u32, fua));
        let (cdb, out, words, fua) = match choice {
            2 | 3 => {
                let mut list = Vec::new();
                unmap::put(&[Extent { lba, count: count as u32 }], &mut list);
                let command = Cdb::Unmap { group: 0, list_length: list.len() as u16 };
                (command, list, vec![0; count], false)
            }
            4 => {
                let same = WriteSame { blocks, unmap: fua, no_data: true };
                (Cdb::WriteSame(same), Vec::new(), vec![0; count], false)
            }
            5 => {
                let same = WriteSame { blocks, unmap: fua, no_data: false };
                (Cdb::WriteSame(same), bytes(word).to_vec(), vec![word; count], false)
            }
            6 | 7 => {
                let there = (lba..lba + count as u64).flat_map(|lba| bytes(self.model.word(lba)));
                let both = there.chain(data).collect();
                (Cdb::CompareAndWrite(short), both, words, fua)
            }
            _ => (Cdb::Write(short), data, words, fua),
        };
        let what = What::Written(self.model.send(lba, &words), fua || !cached);
        Some(Flying { cdb, out, what })
    }

    /// Takes the result of a command; one that returned a unit attention is sent again.
    fn end(&mut self, side: &mut Side) -> io::Result<()> {
        let (tag, answer) = side.initiator.ended()?;
        let flying = side.flying.remove(&tag).expect("a command under way");
        let is_told = |key| key == SenseKey::UNIT_ATTENTION;
        if answer.sense.is_some_and(|sense| is_told(sense.key)) {
            return side.send(flying);
        }
        assert!(answer.is_good(), "{:?}: {answer:?}", flying.cdb);
        self.acknowledged += 1;
        match flying.what {
            What::Written(sent, durable) => self.model.acknowledge(&sent, durable),
            What::Flushed(covered) => self.model.flushed(&covered),
            What::Registered(key) => self.keys[side.number] = vec![key],
        }
        Ok(())
    }

    /// Sends a random number of commands, and then cuts the power with some in flight.
    fn work(&mut self) -> io::Result<()> {
        let mut sides = self.sides();
        // With the cache off in every fourth round: what was in it is on disk then.
        let cached = self.random.below(4) != 0;
        if !cached {
            let covered = self.model.acknowledged();
            sides[0].initiator.set_write_cache(false);
            self.model.flushed(&covered);
        }
        for _ in 0..1 + self.random.below(COMMANDS) {
            let side = &mut sides[self.random.below(2) as usize];
            while side.flying.len() >= DEPTH {
                self.end(side)?;
            }
            if let Some(flying) = self.command(side, cached) {
                side.send(flying)?;
            }
        }
        self.world.power_cut();
        Ok(())
    }

    /// One cut; what was lost.
    fn cut(&mut self) -> Option<String> {
        self.world.start(&[UNIT]);
        self.work().expect("a server until the cut");
        let image = self.world.mounted.image();
        let unit = image.look("state/luns/disk.lun").map(|left| left.data).unwrap_or_default();
        assert_eq!(unit.len(), 1 << 20, "the unit");
        self.model.cut(&unit[..BLOCKS as usize * BLOCK])
    }
}

#[test]
fn nothing_that_units_acknowledge_is_lost_by_power_cuts() {
    if let Err(why) = forget::available() {
        skip!("crash-lun-cuts", "{why}");
    }
    let rounds = env_number("PLIMSOLL_CRASH_ROUNDS", 0) * CUTS_A_ROUND;
    let cuts = if rounds == 0 { CUTS } else { rounds };
    let mut run = Run::new(env_number("PLIMSOLL_CRASH_SEED", 1));
    for cut in 0..cuts {
        if let Some(what) = run.cut() {
            panic!("cut {cut}: {what}");
        }
    }
    println!("{cuts} power cuts, {} commands acknowledged, nothing lost", run.acknowledged);
}
