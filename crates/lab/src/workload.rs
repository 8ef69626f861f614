//! Workloads: which operation a free slot does next. Pure; the same seed gives the same sequence.

use crate::client::{Fault, Op};
use base::random::{Random, SeededRandom};

mod own;
mod shape;

use own::Own;
pub use shape::{KINDS, Kind, Shape};

/// State of one file in a sequential write.
#[derive(Debug, Clone, Copy, Default)]
struct Written {
    in_flight: u32,
    dirty: bool,
    commit_due: bool,
    committing: bool,
}

/// The operations of one client.
pub struct Workload {
    shape: Shape,
    random: SeededRandom,
    position: (u32, u64),
    /// Where each slot is, when each goes through a file of its own.
    apart: Option<Vec<(u32, u64)>>,
    /// Where each slot is that has files of its own ([`Shape::own_files`]).
    own: Option<Own>,
    /// Whether the last operation was taken over from another slot.
    helped: bool,
    turn: u64,
    made: Vec<Option<u64>>,
    next_name: u64,
    written: Vec<Written>,
    /// Files written again because the server lost what was not committed.
    pub resent: u64,
}

impl Workload {
    /// A workload that repeats itself for the same `seed`.
    pub fn new(shape: Shape, seed: u64) -> Self {
        let written = vec![Written::default(); shape.files.max(1) as usize];
        let random = SeededRandom::new(seed);
        let (position, turn, apart) = ((0, 0), 0, None);
        let made = Vec::new();
        let blocks = shape.file_size / u64::from(shape.block.max(1));
        let own = shape.has_own_files().then(|| Own::new(shape.files, blocks));
        let (helped, next_name, resent) = (false, 0, 0);
        Self { shape, random, position, apart, own, helped, turn, made, next_name, written, resent }
    }

    /// A step begins with this number of slots; `once`: it ends when each block was read once.
    pub fn begin(&mut self, slots: u32, once: bool) {
        if let Some(own) = &mut self.own {
            own.begin(slots, once);
        }
    }

    /// Whether the last operation that was given out belongs to the file of another slot.
    #[inline]
    pub fn helped(&self) -> bool {
        self.helped
    }

    /// From now on each slot goes through a file from start to end, then through another, instead
    /// of all through one: for protocols that send files and not blocks.
    pub fn each_its_own(&mut self) {
        (self.apart, self.own) = (Some(Vec::new()), None);
    }

    /// The next operation for `slot`, or `None` when it has to wait for others to finish.
    #[inline]
    pub fn next(&mut self, slot: u32) -> Option<Op> {
        let len = self.shape.block;
        match self.shape.kind {
            Kind::Null => Some(Op::Null),
            Kind::Getattr => Some(Op::Getattr { file: self.in_turn() }),
            Kind::Lookup => Some(Op::Lookup { file: self.in_turn() }),
            Kind::RandRead => {
                let (file, offset) = self.anywhere();
                Some(Op::Read { file, offset, len })
            }
            Kind::SyncWrite => {
                let (file, offset) = self.anywhere();
                Some(Op::Write { file, offset, len, stable: true })
            }
            Kind::SeqRead if self.own.is_some() => self.next_own_read(slot),
            Kind::SeqWrite if self.own.is_some() => self.next_own_write(slot),
            Kind::SeqRead => {
                let (file, offset, _) = self.onward(slot);
                Some(Op::Read { file, offset, len })
            }
            Kind::SeqWrite if self.apart.is_some() => Some(self.next_apart(slot)),
            Kind::SeqWrite => self.next_write(),
            Kind::Create => Some(self.next_name(slot)),
        }
    }

    /// Records the outcome of an operation given out by [`Workload::next`].
    #[inline]
    pub fn done(&mut self, slot: u32, op: Op, outcome: Result<u32, Fault>) {
        match op {
            Op::Create { name } => {
                if let (Some(made), Ok(_)) = (self.made.get_mut(slot as usize), outcome) {
                    *made = Some(name);
                }
            }
            Op::Write { file, stable: false, .. } => {
                if let Some(state) = self.written.get_mut(file as usize) {
                    state.in_flight = state.in_flight.saturating_sub(1);
                }
                self.verifier_seen(slot, file, outcome);
            }
            Op::Commit { file } => {
                let own = self.own.is_some();
                if let Some(state) = self.written.get_mut(file as usize) {
                    state.committing = false;
                    // Another slot may have written to the same file meanwhile.
                    state.dirty = outcome.is_err() || (own && state.dirty);
                }
                self.verifier_seen(slot, file, outcome);
            }
            _ => {}
        }
    }

    /// What must still be done before the data is stable: a COMMIT per file with unstable writes,
    /// or `None`. Asked when nothing is in flight any more.
    pub fn last(&mut self) -> Option<Op> {
        // A file in progress belongs to a slot, and continues with the next step.
        if self.apart.is_some() {
            return None;
        }
        let file = self.written.iter().position(|w| w.dirty && !w.committing)?;
        let state = self.written.get_mut(file)?;
        (state.commit_due, state.committing) = (false, true);
        // Nothing is in flight: with files of their own, what is written from now on is new.
        state.dirty &= self.own.is_none();
        Some(Op::Commit { file: file as u32 })
    }

    /// Files that the create workload has left behind in `slot`s; each is to be removed.
    pub fn leftovers(&mut self) -> Vec<u64> {
        self.made.iter_mut().filter_map(Option::take).collect()
    }

    fn verifier_seen(&mut self, slot: u32, file: u32, outcome: Result<u32, Fault>) {
        if outcome == Err(Fault::VerifierChanged) {
            // Content is a function of the place, so sending again is writing again.
            self.resent += 1;
            self.position = (file, 0);
            if let Some(own) = &mut self.own {
                own.again(slot, file);
            }
            if let Some(state) = self.written.get_mut(file as usize) {
                (state.dirty, state.commit_due) = (true, false);
            }
        }
    }

    #[inline]
    fn in_turn(&mut self) -> u32 {
        self.turn += 1;
        (self.turn % u64::from(self.shape.files.max(1))) as u32
    }

    #[inline]
    fn anywhere(&mut self) -> (u32, u64) {
        let blocks = (self.shape.file_size / u64::from(self.shape.block.max(1))).max(1);
        let pick = self.random.below(blocks * u64::from(self.shape.files.max(1)));
        ((pick / blocks) as u32, pick % blocks * u64::from(self.shape.block))
    }

    /// The position that a slot has or shares.
    fn position(&mut self, slot: u32) -> &mut (u32, u64) {
        let Some(apart) = &mut self.apart else { return &mut self.position };
        let files = self.shape.files.max(1);
        while apart.len() <= slot as usize {
            apart.push((apart.len() as u32 % files, 0));
        }
        &mut apart[slot as usize]
    }

    /// Advances the position by one block. Returns the block, and whether it was the file's last.
    #[inline]
    fn onward(&mut self, slot: u32) -> (u32, u64, bool) {
        let (block, size) = (u64::from(self.shape.block), self.shape.file_size);
        let files = self.shape.files.max(1);
        let position = self.position(slot);
        let (file, offset) = *position;
        let next = offset + block;
        let last = next + block > size;
        *position = if last { ((file + 1) % files, 0) } else { (file, next) };
        (file, offset, last)
    }

    /// The next block of the file that a slot writes alone, or its COMMIT.
    fn next_apart(&mut self, slot: u32) -> Op {
        let (len, size) = (self.shape.block, self.shape.file_size);
        let files = self.shape.files.max(1);
        let position = self.position(slot);
        let (file, offset) = *position;
        if offset + u64::from(len) > size {
            *position = ((file + 1) % files, 0);
            return Op::Commit { file };
        }
        position.1 += u64::from(len);
        Op::Write { file, offset, len, stable: false }
    }

    /// The next block of the file that a slot reads alone; none when all are read that are to be
    /// read once.
    fn next_own_read(&mut self, slot: u32) -> Option<Op> {
        let len = self.shape.block;
        let block = self.own.as_mut()?.next(slot)?;
        self.helped = block.helps;
        Some(Op::Read { file: block.file, offset: block.number * u64::from(len), len })
    }

    /// The next block of the file that a slot writes alone, or its COMMIT.
    fn next_own_write(&mut self, slot: u32) -> Option<Op> {
        let len = self.shape.block;
        let own = self.own.as_mut()?;
        if let Some(file) = own.due(slot) {
            if let Some(state) = self.written.get_mut(file as usize) {
                state.dirty = false;
            }
            return Some(Op::Commit { file });
        }
        let block = own.next(slot)?;
        let file = block.file;
        if block.last {
            own.commit_next(slot, file);
        }
        let state = self.written.get_mut(file as usize)?;
        (state.dirty, state.in_flight) = (true, state.in_flight + 1);
        Some(Op::Write { file, offset: block.number * u64::from(len), len, stable: false })
    }

    fn next_write(&mut self) -> Option<Op> {
        let due = self.written.iter().position(|w| w.commit_due && w.in_flight == 0);
        if let Some(file) = due {
            let state = self.written.get_mut(file)?;
            (state.commit_due, state.committing) = (false, true);
            return Some(Op::Commit { file: file as u32 });
        }
        let here = self.written.get(self.position.0 as usize)?;
        if here.commit_due || here.committing {
            return None;
        }
        let (file, offset, last) = self.onward(0);
        let state = self.written.get_mut(file as usize)?;
        state.in_flight += 1;
        (state.dirty, state.commit_due) = (true, last);
        Some(Op::Write { file, offset, len: self.shape.block, stable: false })
    }

    fn next_name(&mut self, slot: u32) -> Op {
        let at = slot as usize;
        if self.made.len() <= at {
            self.made.resize(at + 1, None);
        }
        match self.made.get_mut(at).and_then(Option::take) {
            Some(name) => Op::Remove { name },
            None => {
                self.next_name += 1;
                Op::Create { name: self.next_name }
            }
        }
    }
}

#[cfg(test)]
mod tests;
