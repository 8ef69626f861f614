//! Security identifiers (MS-DTYP §2.4.2), and which stand for users and groups of Unix.

use super::codec::{Field, Reader, Result, SmbError};

/// Most parts of a SID.
const PARTS_MAX: usize = 15;

/// A security identifier.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sid {
    /// The authority that has issued it.
    pub authority: u64,
    /// Parts, from the domain to the user.
    pub parts: Vec<u32>,
}

impl Sid {
    /// A SID of these parts.
    pub fn new(authority: u64, parts: &[u32]) -> Self {
        Self { authority, parts: parts.to_vec() }
    }

    /// Everyone.
    pub fn world() -> Self {
        Self::new(1, &[0])
    }

    /// A user of Unix, as Samba and Windows Services for NFS have it: `S-1-22-1-UID`.
    pub fn user(uid: u32) -> Self {
        Self::new(22, &[1, uid])
    }

    /// A group of Unix: `S-1-22-2-GID`.
    pub fn group(gid: u32) -> Self {
        Self::new(22, &[2, gid])
    }

    /// The user of Unix.
    pub fn as_user(&self) -> Option<u32> {
        match (self.authority, self.parts.as_slice()) {
            (22, &[1, uid]) => Some(uid),
            _ => None,
        }
    }

    /// The group of Unix.
    pub fn as_group(&self) -> Option<u32> {
        match (self.authority, self.parts.as_slice()) {
            (22, &[2, gid]) => Some(gid),
            _ => None,
        }
    }

    /// Takes one from the front.
    ///
    /// # Errors
    /// [`SmbError`].
    pub fn get(r: &mut Reader<'_>) -> Result<Self> {
        let (revision, count): (u8, u8) = (r.get()?, r.get()?);
        if revision != 1 || usize::from(count) > PARTS_MAX {
            return Err(SmbError::Value("SID"));
        }
        let [a, b, c, d, e, f] = r.array()?;
        let authority = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        let parts = (0..count).map(|_| r.get()).collect::<Result<_>>()?;
        Ok(Self { authority, parts })
    }

    /// Appends it.
    pub fn put(&self, out: &mut Vec<u8>) {
        let parts = self.parts.get(..PARTS_MAX.min(self.parts.len())).unwrap_or_default();
        out.extend_from_slice(&[1, parts.len() as u8]);
        let [_, _, authority @ ..] = self.authority.to_be_bytes();
        out.extend_from_slice(&authority);
        parts.iter().for_each(|part| part.put(out));
    }
}

impl std::fmt::Display for Sid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "S-1-{}", self.authority)?;
        self.parts.iter().try_for_each(|part| write!(f, "-{part}"))
    }
}
