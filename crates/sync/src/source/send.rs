//! Files that were asked for.

use std::io;

use base::clock::wall_ns;
use base::limits::{DSYNC_LEND_MIN, DSYNC_LENT_MAX, DSYNC_PIECE, DSYNC_STILL_NS, DSYNC_TEXT_MAX};
use wire::dsync::{
    Begin, Bytes, Copy, Data, End, Kept, Lent, Message, Meta, Need, Outcome, SendMode, Sum, Whole,
};

use super::{Job, Shared, scan};
use crate::delta::{self, Index, Part};
use crate::digest::{Digest, strong};
use crate::error::Why;
use crate::index;
use crate::lends::LocalFdTable;
use crate::link::sentence;
use crate::stop::lock;
use crate::tree::{ScannedEntry, Tree, fill, split};

mod place;

/// How often a file is sent that changes while it is read.
const TRIES: u32 = 2;

/// Why a file is not sent whole: the run ends, or the file is at fault.
enum Failed {
    Run(Why),
    File(String),
}

impl From<Why> for Failed {
    fn from(why: Why) -> Self {
        Self::Run(why)
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::File(error.to_string())
    }
}

/// What is left to be sent of a file.
enum Sent {
    /// All of it.
    All(Small),
    /// That it ends.
    End(Ended),
}

/// A file in one piece.
struct Small {
    meta: Meta,
    hash: [u8; 32],
    bytes: Vec<u8>,
}

/// How a file ends.
struct Ended {
    outcome: Outcome,
    hash: [u8; 32],
    meta: Option<Meta>,
}

/// Serves a request, and sends its result.
pub(super) fn answer<T: Tree>(shared: &Shared<T>, job: &Job) -> Result<(), Why> {
    let (id, mut pieces) = (job.need.id, 0);
    let (sent, why) = match send(shared, job, &mut pieces) {
        Ok(sent) => (sent, Bytes(Vec::new())),
        Err(Failed::File(why)) => {
            let failed = Ended { outcome: Outcome::FAILED, hash: [0; 32], meta: None };
            (Sent::End(failed), sentence::<DSYNC_TEXT_MAX>(&why))
        }
        Err(Failed::Run(why)) => return Err(why),
    };
    if job.comes().is_some() {
        shared.coming.look(|coming| coming.end(id));
    }
    // Before the other side hears of it, which may ask for the next at once.
    {
        let mut asked = lock(&shared.asked);
        asked.needs -= 1;
        asked.sums -= job.sums_wanted();
    }
    match sent {
        Sent::All(Small { meta, hash, bytes }) => shared.bulk.send(&bytes, |unpacked, bytes| {
            Message::Whole(Whole { id, meta, hash, unpacked, bytes })
        }),
        Sent::End(Ended { outcome, hash, meta }) => {
            shared.out.send(&Message::End(End { id, outcome, hash, pieces, meta, why }))
        }
    }
}

fn send<T: Tree>(shared: &Shared<T>, job: &Job, count: &mut u64) -> Result<Sent, Failed> {
    let need = &job.need;
    if !shared.rules.carries_way(&need.path.0) {
        return Err(Failed::File("excluded".to_owned()));
    }
    let (dir, name) = split(&need.path.0);
    let file = shared.tree.open(&shared.tree.dir(dir)?, name)?;
    if need.wish != SendMode::SEND {
        let seen = shared.tree.look_open(&file)?;
        let way = (need.path.0.as_slice(), job.slot);
        let sum = index::content(&shared.tree, way, &seen, || Ok(&file))?;
        let same = need.hash == Some(sum);
        if same || need.wish == SendMode::COMPARE {
            let outcome = if same { Outcome::SAME } else { Outcome::OTHER };
            let meta = Some(plain(shared, seen)?);
            return Ok(Sent::End(Ended { outcome, hash: [0; 32], meta }));
        }
    }
    let old = need.basis.as_ref().map_or(0, |basis| basis.count as usize);
    let (old, kept) = job.sums.split_at_checked(old).unwrap_or_default();
    let comes = job.comes();
    let basis = need.basis.as_ref().filter(|_| comes.is_none());
    let mut index = basis.map(|basis| Index::new(basis.block as usize, old.to_vec()));
    let kept = need.kept.as_ref().map(|basis| (basis.block as usize, kept));
    let lends = lend(shared, need, &file)?;
    if need.basis.is_none()
        && kept.is_none()
        && lends.is_none()
        && let Some(small) = small(shared, &file)?
    {
        return Ok(Sent::All(small));
    }
    for turn in 0..TRIES {
        let before = shared.tree.look_open(&file)?;
        let meta = plain(shared, before.clone())?;
        shared.out.send(&Message::Begin(Begin { id: need.id, meta }))?;
        let digest = Digest::default();
        let id = need.id;
        // What was changed in this very tick could be changed once more without being seen, where
        // the kernel is quick.
        let still = i128::from(wall_ns()) - before.ctime_ns >= DSYNC_STILL_NS;
        let (file, lends) = (&file, lends.is_some() && still);
        let mut sending = Sending { shared, file, id, turn, digest, end: 0, count, lends };
        let size = before.meta.size;
        if let Some(basis) = comes.filter(|_| turn == 0) {
            index = Some(sending.differences(basis, size)?);
        } else {
            // The temporary file there is discarded when the file is restarted.
            let after = match kept.filter(|_| turn == 0) {
                Some(kept) => sending.kept(kept, size, index.as_ref())?,
                None => 0,
            };
            sending.pieces((after, size), index.as_ref())?;
        }
        let hash = sending.digest.finish();
        if shared.tree.stamp(file)? == before.stamp() {
            return Ok(Sent::End(Ended { outcome: Outcome::WHOLE, hash, meta: None }));
        }
    }
    Err(changing())
}

fn changing() -> Failed {
    Failed::File("it changed while being read".to_owned())
}

/// All of a file that fits into one piece and has no holes.
fn small<T: Tree>(shared: &Shared<T>, file: &T::File) -> Result<Option<Small>, Failed> {
    for _ in 0..TRIES {
        let before = shared.tree.look_open(file)?;
        let size = before.meta.size;
        if size > DSYNC_PIECE as u64 {
            return Ok(None);
        }
        let data = if size > 0 { shared.tree.next_data(file, 0)? } else { Some((0, 0)) };
        if data.is_none_or(|(start, end)| start > 0 || end < size) {
            return Ok(None);
        }
        let mut bytes = vec![0; size as usize];
        let read = filled(&shared.tree, file, &mut bytes, 0)?;
        if read == bytes.len() && shared.tree.stamp(file)? == before.stamp() {
            let mut digest = Digest::default();
            if !bytes.is_empty() {
                digest.piece(0, &bytes);
            }
            let (meta, hash) = (plain(shared, before)?, digest.finish());
            return Ok(Some(Small { meta, hash, bytes }));
        }
    }
    Err(changing())
}

/// A file while it is lent.
struct Loan<'a>(&'a LocalFdTable, u64);

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        self.0.take_back(self.1);
    }
}

/// Lends a file to a destination of this process, if that has nothing of it.
fn lend<'a, T: Tree>(
    shared: &'a Shared<T>,
    need: &Need,
    file: &T::File,
) -> Result<Option<Loan<'a>>, Failed> {
    let lends = shared.lends.as_deref().filter(|_| need.basis.is_none() && need.kept.is_none());
    let Some(lends) = lends else { return Ok(None) };
    if shared.tree.look_open(file)?.meta.size < DSYNC_LEND_MIN {
        return Ok(None);
    }
    let Some(lent) = shared.tree.lend(file)? else { return Ok(None) };
    lends.lend(need.id, lent);
    Ok(Some(Loan(lends, need.id)))
}

fn plain<T: Tree>(shared: &Shared<T>, seen: ScannedEntry) -> Result<Meta, Why> {
    Ok(Meta { link: None, ..scan::sent(shared, seen)? })
}

/// A file that is being sent.
struct Sending<'a, T: Tree> {
    shared: &'a Shared<T>,
    file: &'a T::File,
    id: u64,
    turn: u32,
    digest: Digest,
    /// Where the last piece ended.
    end: u64,
    /// Pieces that were sent, those of other turns included.
    count: &'a mut u64,
    /// Whether it is lent, as long as the destination takes what is.
    lends: bool,
}

impl<T: Tree> Sending<'_, T> {
    /// Sends the blocks at the begin of a file that the other side has not kept; where that ends.
    /// Of a block that it has only the data is reported, so that a hole in it becomes one there.
    fn kept(
        &mut self,
        (block, sums): (usize, &[Sum]),
        size: u64,
        index: Option<&Index>,
    ) -> Result<u64, Failed> {
        let end = size.min(sums.len() as u64 * block as u64);
        let mut bytes = vec![0; block];
        // Where what is to be sent begins, and the data that was found last.
        let (mut literal, mut data) = (0, (0, 0));
        for (at, sum) in (0..).step_by(block).zip(sums) {
            let next = at + block as u64;
            if next > end {
                break;
            }
            let parts = self.data_within(&mut data, (at, next))?;
            if parts.is_empty() {
                continue;
            }
            if filled(&self.shared.tree, self.file, &mut bytes, at)? < block {
                // It has become shorter, which is seen at its end.
                break;
            }
            if strong(&bytes) == sum.strong {
                self.pieces((literal, at), index)?;
                for (start, end) in parts {
                    self.keep(start, &bytes[(start - at) as usize..(end - at) as usize])?;
                }
                literal = next;
            }
        }
        Ok(literal)
    }

    /// The data within a range that lies behind those asked for before.
    fn data_within(
        &self,
        found: &mut (u64, u64),
        (start, end): (u64, u64),
    ) -> io::Result<Vec<(u64, u64)>> {
        let (mut parts, mut at) = (Vec::new(), start);
        while at < end {
            if found.1 <= at {
                let none = (u64::MAX, u64::MAX);
                *found = self.shared.tree.next_data(self.file, at)?.unwrap_or(none);
            }
            let part = (found.0.max(at), found.1.min(end));
            if part.0 < part.1 {
                parts.push(part);
            }
            at = part.1.max(at.saturating_add(1));
        }
        Ok(parts)
    }

    /// Reports data that the other side has at its place.
    fn keep(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Failed> {
        let (id, hole, length) = (self.id, offset - self.end, bytes.len() as u32);
        self.digest.block(offset, &strong(bytes));
        *self.count += 1;
        self.shared.out.send(&Message::Kept(Kept { id, hole, offset, length }))?;
        self.end = offset + bytes.len() as u64;
        Ok(())
    }

    /// Sends a range.
    fn data(&mut self, range: (u64, u64), index: Option<&Index>) -> Result<(), Failed> {
        let (tree, file) = (&self.shared.tree, self.file);
        let read = |bytes: &mut [u8], offset: u64| tree.read(file, bytes, offset);
        match index {
            _ if range.0 >= range.1 => Ok(()),
            Some(index) => delta::walk(index, range, read, |part| self.part(part)),
            None => whole(range, read, &mut |part| self.part(part)),
        }
    }

    /// Sends the data of a file from `at` on, without its holes.
    fn pieces(&mut self, (mut at, size): (u64, u64), index: Option<&Index>) -> Result<(), Failed> {
        let (tree, file) = (&self.shared.tree, self.file);
        while let Some((start, end)) = tree.next_data(file, at)? {
            let end = end.min(size);
            if start >= end {
                break;
            }
            let lent = self.lent(start, end)?;
            self.data((lent, end), index)?;
            at = end;
        }
        Ok(())
    }

    /// Has a range taken over by a destination that has the file; where what it did not take
    /// begins.
    fn lent(&mut self, mut at: u64, end: u64) -> Result<u64, Failed> {
        while self.lends && at < end {
            let (id, offset, length) = (self.id, at, (end - at).min(DSYNC_LENT_MAX));
            let hole = offset - self.end;
            self.shared.out.send(&Message::Lent(Lent { id, hole, offset, length }))?;
            self.lends = self.shared.borrowed.wait(|all| all.remove(&id))?;
            if self.lends {
                *self.count += 1;
                at += length;
                self.end = at;
            }
        }
        Ok(at)
    }

    fn part(&mut self, part: Part<'_>) -> Result<(), Failed> {
        let (id, turn) = (self.id, self.turn);
        *self.count += 1;
        match part {
            Part::New(offset, bytes) => {
                let hole = offset - self.end;
                self.end = offset + bytes.len() as u64;
                self.digest.piece(offset, bytes);
                self.shared.bulk.send(bytes, |unpacked, bytes| {
                    Message::Data(Data { id, turn, hole, offset, unpacked, bytes })
                })?;
            }
            Part::Had(offset, from, length, sums) => {
                let hole = offset - self.end;
                self.end = offset + u64::from(length);
                let block = length as usize / sums.len().max(1);
                for (at, sum) in (offset..self.end).step_by(block.max(1)).zip(sums) {
                    self.digest.block(at, &sum.strong);
                }
                let copy = Copy { id, turn, hole, offset, from, length };
                self.shared.out.send(&Message::Copy(copy))?;
            }
        }
        Ok(())
    }
}

fn whole(
    (start, end): (u64, u64),
    mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
    emit: &mut impl FnMut(Part<'_>) -> Result<(), Failed>,
) -> Result<(), Failed> {
    let mut at = start;
    let mut bytes = vec![0; DSYNC_PIECE.min((end - start) as usize)];
    while at < end {
        let want = bytes.len().min((end - at) as usize);
        match read(&mut bytes[..want], at)? {
            // It has become shorter, which is seen at its end.
            0 => break,
            n => {
                emit(Part::New(at, &bytes[..n]))?;
                at += n as u64;
            }
        }
    }
    Ok(())
}

/// Reads until there is no room or nothing more; how much that was.
fn filled<T: Tree>(tree: &T, file: &T::File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    let (read, ended) = fill(tree, file, bytes, at);
    ended.map(|()| read)
}
