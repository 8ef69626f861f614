//! Files that were asked for.

use std::io;

use base::limits::{DSYNC_PIECE, DSYNC_TEXT_MAX};
use wire::dsync::{Begin, Bytes, Copy, Data, End, Message, Meta, Outcome, Wish};

use super::{Job, Shared, scan};
use crate::delta::{self, Index, Part};
use crate::digest::{Digest, content};
use crate::error::Why;
use crate::link::sentence;
use crate::tree::{Seen, Tree, split};

/// How often a file is sent that changes while it is read.
const TRIES: usize = 2;

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

/// How a file ends.
struct Ended {
    outcome: Outcome,
    hash: [u8; 32],
    meta: Option<Meta>,
}

/// Does what is asked; tells how it went.
pub(super) fn answer<T: Tree>(shared: &Shared<T>, job: &Job) -> Result<(), Why> {
    let (ended, why) = match send(shared, job) {
        Ok(ended) => (ended, Bytes(Vec::new())),
        Err(Failed::File(why)) => {
            let failed = Ended { outcome: Outcome::FAILED, hash: [0; 32], meta: None };
            (failed, sentence::<DSYNC_TEXT_MAX>(&why))
        }
        Err(Failed::Run(why)) => return Err(why),
    };
    // Before the other side hears of it, which may ask for the next at once.
    shared.asked.change(|asked| {
        asked.needs -= 1;
        asked.sums -= job.sums_wanted();
    });
    let Ended { outcome, hash, meta } = ended;
    shared.out.send(&Message::End(End { id: job.need.id, outcome, hash, meta, why }))
}

fn send<T: Tree>(shared: &Shared<T>, job: &Job) -> Result<Ended, Failed> {
    let need = &job.need;
    if !shared.rules.carries_way(&need.path.0) {
        return Err(Failed::File("the rules leave it out".to_owned()));
    }
    let (dir, name) = split(&need.path.0);
    let file = shared.tree.open(&shared.tree.dir(dir)?, name)?;
    if need.wish != Wish::SEND {
        let seen = shared.tree.look_open(&file)?;
        let same = need.hash == Some(content(&shared.tree, &file)?);
        if same || need.wish == Wish::COMPARE {
            let outcome = if same { Outcome::SAME } else { Outcome::OTHER };
            return Ok(Ended { outcome, hash: [0; 32], meta: Some(plain(shared, seen)) });
        }
    }
    let index = (job.sums_wanted() > 0).then(|| {
        let block = need.basis.as_ref().map_or(0, |basis| basis.block as usize);
        Index::new(block, job.sums.clone())
    });
    for _ in 0..TRIES {
        let before = shared.tree.look_open(&file)?;
        let meta = plain(shared, before.clone());
        shared.out.send(&Message::Begin(Begin { id: need.id, meta }))?;
        let hash = pieces(shared, need.id, &file, before.meta.size, index.as_ref())?;
        if is_same(&before, &shared.tree.look_open(&file)?) {
            return Ok(Ended { outcome: Outcome::WHOLE, hash, meta: None });
        }
    }
    Err(Failed::File("it changes while it is read".to_owned()))
}

fn plain<T: Tree>(shared: &Shared<T>, seen: Seen) -> Meta {
    Meta { link: None, ..scan::sent(shared, seen) }
}

/// Whether a file is as it was. The time of change of its inode tells of everything, but may be as
/// coarse as a tick.
fn is_same(before: &Seen, after: &Seen) -> bool {
    let of = |seen: &Seen| (seen.ctime_ns, seen.meta.size, seen.meta.mtime.clone());
    of(before) == of(after)
}

/// Sends the data of a file, without its holes; the hash of what was sent.
fn pieces<T: Tree>(
    shared: &Shared<T>,
    id: u64,
    file: &T::File,
    size: u64,
    index: Option<&Index>,
) -> Result<[u8; 32], Failed> {
    let mut digest = Digest::default();
    let mut at = 0;
    let mut buffer = Vec::new();
    while let Some((start, end)) = shared.tree.next_data(file, at)? {
        let end = end.min(size);
        if start >= end {
            break;
        }
        let read = |bytes: &mut [u8], offset: u64| shared.tree.read(file, bytes, offset);
        let mut tell = |part: Part<'_>| -> Result<(), Failed> {
            match part {
                Part::New(offset, bytes) => {
                    digest.piece(offset, bytes);
                    shared.out.send(&Message::Data(Data { id, offset, bytes }))?;
                }
                Part::Had(offset, from, length) => {
                    // The other side has the bytes, and hashes them; so must we.
                    buffer.resize(length as usize, 0);
                    fill(&shared.tree, file, &mut buffer, offset)?;
                    digest.piece(offset, &buffer);
                    shared.out.send(&Message::Copy(Copy { id, offset, from, length }))?;
                }
            }
            Ok(())
        };
        match index {
            Some(index) => delta::walk(index, (start, end), read, tell)?,
            None => whole((start, end), read, &mut tell)?,
        }
        at = end;
    }
    Ok(digest.finish())
}

fn whole(
    (start, end): (u64, u64),
    mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
    tell: &mut impl FnMut(Part<'_>) -> Result<(), Failed>,
) -> Result<(), Failed> {
    let mut at = start;
    let mut bytes = vec![0; DSYNC_PIECE.min((end - start) as usize)];
    while at < end {
        let want = bytes.len().min((end - at) as usize);
        match read(&mut bytes[..want], at)? {
            // It has become shorter, which is seen at its end.
            0 => break,
            n => {
                tell(Part::New(at, &bytes[..n]))?;
                at += n as u64;
            }
        }
    }
    Ok(())
}

fn fill<T: Tree>(tree: &T, file: &T::File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match tree.read(file, &mut bytes[done..], offset + done as u64)? {
            0 => return Err(io::Error::other("it has become shorter while it was read")),
            n => done += n,
        }
    }
    Ok(())
}
