//! A lock as the file of locks has it (`docs/formats/dav-locks.md`): its token is the key, this is
//! the value.

use base::limits::{
    DAV_LOCK_ABOVE_MAX, DAV_LOCK_RECORD_MAX, DAV_LOCKS_FILE_COMPACT, DAV_LOCKS_FILE_MAX,
};
use vfs::journal::{self, Limits};
use vfs::locks::FileKey;

use super::state::Lock;

/// First bytes of the file, with the version.
pub const MAGIC: [u8; 8] = *b"PLMdavl1";

/// What the file may hold.
pub const LIMITS: Limits = Limits {
    record_max: DAV_LOCK_RECORD_MAX,
    file_max: DAV_LOCKS_FILE_MAX,
    compact: DAV_LOCKS_FILE_COMPACT,
};

const EXCLUSIVE: u8 = 1;
const DEEP: u8 = 2;

/// The value of a lock.
pub fn encode(lock: &Lock) -> Vec<u8> {
    let flags = if lock.exclusive { EXCLUSIVE } else { 0 } | if lock.deep { DEEP } else { 0 };
    let mut out = vec![flags];
    for number in [lock.file.fsid, lock.file.fileid, lock.timeout_s, lock.expires_s] {
        out.extend(number.to_le_bytes());
    }
    let mut text = |text: &[u8]| {
        // Each is below DAV_LOCK_RECORD_MAX, or the journal refuses the record.
        out.extend((text.len() as u32).to_le_bytes());
        out.extend(text);
    };
    text(&lock.root);
    text(lock.user.as_bytes());
    text(lock.owner.as_bytes());
    text(lock.client.as_bytes());
    out.extend(lock.since_s.to_le_bytes());
    out.extend(lock.file.generation.to_le_bytes());
    out.extend((lock.above.len() as u32).to_le_bytes());
    lock.above.iter().for_each(|dir| out.extend(dir.to_le_bytes()));
    out
}

/// A length and that many bytes.
fn text(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let (length, after) = rest.split_first_chunk()?;
    let (text, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *rest = after;
    Some(text.to_vec())
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let (bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u64::from_le_bytes(*bytes))
}

/// A count and that many numbers.
fn listed(rest: &mut &[u8]) -> Option<Vec<u64>> {
    let (count, after) = rest.split_first_chunk()?;
    *rest = after;
    let count = u32::from_le_bytes(*count) as usize;
    if count > DAV_LOCK_ABOVE_MAX {
        return None;
    }
    (0..count).map(|_| number(rest)).collect()
}

/// The lock of a record; `None` if it is none.
pub fn decode(token: &[u8], value: &[u8]) -> Option<Lock> {
    let (flags, mut rest) = value.split_first()?;
    let mut numbers = [0; 4];
    for value in &mut numbers {
        *value = number(&mut rest)?;
    }
    let (root, user, owner) = (text(&mut rest)?, text(&mut rest)?, text(&mut rest)?);
    let (mut client, mut since_s, mut generation, mut above) = (Vec::new(), 0, 0, Vec::new());
    // Old records lack the client and the time.
    if !rest.is_empty() {
        client = text(&mut rest)?;
        since_s = number(&mut rest)?;
    }
    // Newer ones lacked the generation of the inode number.
    if !rest.is_empty() {
        generation = number(&mut rest)?;
    }
    // Nor in which directories it is.
    if !rest.is_empty() {
        above = listed(&mut rest)?;
    }
    let whole = rest.is_empty() && root.starts_with(b"/");
    let [fsid, fileid, timeout_s, expires_s] = numbers;
    let lock = Lock {
        token: String::from_utf8(token.to_vec()).ok()?,
        root,
        file: FileKey { fsid, fileid, generation },
        above,
        user: String::from_utf8(user).ok()?,
        client: String::from_utf8(client).ok()?,
        since_s,
        exclusive: flags & EXCLUSIVE != 0,
        deep: flags & DEEP != 0,
        owner: String::from_utf8(owner).ok()?,
        timeout_s,
        expires_s,
    };
    whole.then_some(lock)
}

/// The locks in the bytes of a file: what `plimsoll inspect` shows.
///
/// # Errors
/// `InvalidData` if the bytes are something else.
pub fn read(bytes: &[u8]) -> std::io::Result<Vec<Lock>> {
    let records = journal::read(bytes, MAGIC)?;
    let locks = records.iter().map(|(token, value)| decode(token, value));
    locks.collect::<Option<_>>().ok_or_else(|| std::io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests;
