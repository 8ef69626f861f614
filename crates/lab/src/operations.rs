//! What clients were asked to do, as a hash: two runs of one seed give out the same operations in
//! the same order, however fast the target was.
//!
//! A step ends when it is steady, so runs differ in length. The hash is therefore taken after the
//! first 1, 4, 16, 64, … operations of each lane, and two runs are compared where the shorter one
//! ends. A lane is what has an order of its own: all slots of a client together, or each slot where
//! each goes through a file of its own. Lanes are combined by a sum, which does not depend on the
//! order in which they ran. COMMIT and REMOVE are left out: their moment depends on replies, and
//! each follows from an operation that is counted.

use crate::client::Op;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Lanes of a client that are kept; with more slots, the first.
const LANES_MAX: usize = 64;

/// A hash of a beginning of a sequence, written in hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Mark(pub u64);

impl From<Mark> for String {
    fn from(mark: Mark) -> Self {
        format!("{:016x}", mark.0)
    }
}

impl TryFrom<String> for Mark {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        u64::from_str_radix(&text, 16).map(Mark)
    }
}

/// One sequence of operations.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Lane {
    /// The slot, or 0 for all slots of a client.
    pub lane: u32,
    /// Operations so far.
    pub count: u64,
    /// Hash after the first 1, 4, 16, … of them.
    pub marks: Vec<Mark>,
}

/// A lane as it grows.
#[derive(Debug, Clone, Copy, Default)]
struct Growing {
    count: u64,
    hash: u64,
}

/// The operations of one client, as they are given out.
#[derive(Debug, Clone, Default)]
pub struct Given {
    apart: bool,
    lanes: Vec<(Growing, Vec<Mark>)>,
}

/// Mixes 64 bits so that each one changes half of the others (SplitMix64's finish).
#[inline]
pub fn mixed(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// An operation as a word; `None` for COMMIT and REMOVE: their moment depends on replies.
#[inline]
fn word(op: Op) -> Option<u64> {
    let place = |kind: u64, file: u32, offset: u64, len: u32| {
        mixed(offset ^ (kind << 56)) ^ (u64::from(file) << 32 | u64::from(len))
    };
    Some(match op {
        Op::Null => 1,
        Op::Getattr { file } => place(2, file, 0, 0),
        Op::Lookup { file } => place(3, file, 0, 0),
        Op::Read { file, offset, len } => place(4, file, offset, len),
        Op::Write { file, offset, len, stable } => place(5 + u64::from(stable), file, offset, len),
        Op::Create { name } => place(7, 0, name, 0),
        Op::Commit { .. } | Op::Remove { .. } => return None,
    })
}

impl Given {
    /// From now on each slot has an order of its own.
    pub fn each_its_own(&mut self) {
        self.apart = true;
    }

    /// Takes an operation that is given to a slot.
    #[inline]
    pub fn add(&mut self, slot: u32, op: Op) {
        let Some(word) = word(op) else { return };
        let lane = if self.apart { slot as usize } else { 0 };
        if lane >= self.lanes.len() {
            if lane >= LANES_MAX {
                return;
            }
            self.lanes.resize_with(lane + 1, Default::default);
        }
        let Some((growing, marks)) = self.lanes.get_mut(lane) else { return };
        growing.hash = mixed(growing.hash.rotate_left(5) ^ word);
        growing.count += 1;
        // Powers of four.
        if growing.count.is_power_of_two() && growing.count.trailing_zeros().is_multiple_of(2) {
            marks.push(Mark(growing.hash));
        }
    }

    /// What was given out so far.
    pub fn lanes(&self) -> Vec<Lane> {
        let lane = |(n, (growing, marks)): (usize, &(Growing, Vec<Mark>))| Lane {
            lane: n as u32,
            count: growing.count,
            marks: marks.clone(),
        };
        self.lanes.iter().enumerate().map(lane).filter(|lane| lane.count > 0).collect()
    }
}

/// The operations of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Operations {
    /// Hash of the first [`Operations::first`] of each lane of all clients.
    pub hash: Option<Mark>,
    /// How many of each lane that is.
    pub first: u64,
    /// By client.
    pub clients: BTreeMap<u32, Vec<Lane>>,
}

/// What two runs have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Common {
    /// Whether the operations are the same.
    pub same: bool,
    /// Lanes that both have.
    pub lanes: u64,
    /// Least number of operations of a lane that was compared.
    pub first: u64,
    /// Hash of the first [`Common::first`] of each common lane, of the first run.
    pub hash: Mark,
}

impl Operations {
    /// Of what clients were given.
    pub fn of(clients: BTreeMap<u32, Vec<Lane>>) -> Self {
        let mut all = Self { hash: None, first: 0, clients };
        let marks = all.lanes().map(|(_, lane)| lane.marks.len()).min().unwrap_or(0);
        if marks > 0 {
            all.first = 1 << (2 * (marks - 1));
            all.hash = Some(all.combined(|_, _| true, marks - 1));
        }
        all
    }

    fn lanes(&self) -> impl Iterator<Item = (u32, &Lane)> {
        self.clients.iter().flat_map(|(client, lanes)| lanes.iter().map(|lane| (*client, lane)))
    }

    fn find(&self, client: u32, lane: u32) -> Option<&Lane> {
        self.clients.get(&client)?.iter().find(|l| l.lane == lane)
    }

    /// The lanes that are `chosen`, at a mark: a sum, whatever their order.
    fn combined(&self, chosen: impl Fn(u32, u32) -> bool, mark: usize) -> Mark {
        let each = self.lanes().filter(|(client, lane)| chosen(*client, lane.lane));
        let each = each.filter_map(|(client, lane)| {
            let at = u64::from(client) << 32 | u64::from(lane.lane);
            Some(mixed(lane.marks.get(mark)?.0 ^ mixed(at)))
        });
        Mark(each.fold(0, u64::wrapping_add))
    }

    /// What two runs have in common; `None` where one has no hash.
    pub fn common(&self, other: &Self) -> Option<Common> {
        let both = self
            .lanes()
            .filter_map(|(client, lane)| Some((client, lane, other.find(client, lane.lane)?)));
        let both: Vec<_> = both.collect();
        let marks = both.iter().map(|(_, a, b)| a.marks.len().min(b.marks.len()));
        let least = marks.min()?.checked_sub(1)?;
        // Each lane as far as both have it, not only as far as the shortest.
        let same = both.iter().all(|(_, a, b)| {
            let to = a.marks.len().min(b.marks.len());
            a.marks.get(..to) == b.marks.get(..to)
        });
        let shared = |client, lane| other.find(client, lane).is_some();
        let hash = self.combined(shared, least);
        Some(Common { same, lanes: both.len() as u64, first: 1 << (2 * least), hash })
    }
}

impl Common {
    /// In a sentence.
    pub fn sentence(&self) -> String {
        let Self { same, lanes, first, hash } = self;
        let of = format!("the first {first} of each of {lanes} sequences");
        match same {
            true => format!("same operations: {of}, hash {}", String::from(*hash)),
            false => format!("different operations within {of}"),
        }
    }
}

#[cfg(test)]
mod tests;
