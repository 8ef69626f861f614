//! What Windows knows of a file and Unix does not: attributes, and a time of creation that can be
//! set. Both are kept as Samba keeps them, in the extended attribute `user.DOSATTRIB`
//! (`xattr_DOSATTRIB` of its librpc/idl/xattr.idl), so that a tree that was served by Samba shows
//! the same. All versions are read, version 5 is written.
//!
//! It belongs to the server, not to the user: callers decide which users may access it.

use crate::cred::Cred;
use crate::fs::{Change, Context, FileSystem, Result, SetXattr};
use crate::handle::Handle;
use crate::status::Status;

/// Its name, without `user.`.
pub(crate) const NAME: &[u8] = b"DOSATTRIB";
/// Fields of versions 3 to 5 that say something.
const HAS_ATTRIBUTES: u32 = 1;
const HAS_CREATED: u32 = 0x10;
/// Before the times of versions 1 to 3: ea_size, size and alloc_size.
const SIZES: usize = 4 + 8 + 8;

/// What is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dos {
    /// FileAttributes (MS-FSCC §2.6); `None` if they are not known.
    pub attributes: Option<u32>,
    /// FILETIME of its creation; `None` if it is not known.
    pub created: Option<u64>,
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn skip(&mut self, count: usize) -> Option<()> {
        self.0 = self.0.get(count..)?;
        Some(())
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

impl Dos {
    /// Reads it; `None` if it is nothing that Samba has ever written.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        let (text, rest) = bytes.split_at_checked(end)?;
        if !text.is_empty() {
            return Self::of_text(text);
        }
        // The number of the version, aligned to two, and again before the union.
        let mut r = Reader(rest.get(2..)?);
        let version = u16::from_le_bytes(r.array()?);
        r.skip(4)?;
        match version {
            1 => Self::of_sizes(&mut r, HAS_ATTRIBUTES | HAS_CREATED),
            2 => {
                r.skip(4)?;
                Self::of_sizes(&mut r, HAS_ATTRIBUTES | HAS_CREATED)
            }
            3 => {
                let valid = r.u32()?;
                Self::of_sizes(&mut r, valid)
            }
            4 | 5 => {
                let (valid, attributes) = (r.u32()?, r.u32()?);
                if version == 4 {
                    r.skip(8)?;
                }
                Some(Self::of_fields(valid, attributes, r.u64()?))
            }
            _ => None,
        }
    }

    /// The oldest form: attributes in hexadecimal.
    fn of_text(text: &[u8]) -> Option<Self> {
        let digits = std::str::from_utf8(text.strip_prefix(b"0x")?).ok()?;
        let attributes = u32::from_str_radix(digits, 16).ok()?;
        Some(Self { attributes: Some(attributes), created: None })
    }

    fn of_sizes(r: &mut Reader<'_>, valid: u32) -> Option<Self> {
        let attributes = r.u32()?;
        r.skip(SIZES)?;
        Some(Self::of_fields(valid, attributes, r.u64()?))
    }

    fn of_fields(valid: u32, attributes: u32, created: u64) -> Self {
        Self {
            attributes: (valid & HAS_ATTRIBUTES != 0).then_some(attributes),
            created: (valid & HAS_CREATED != 0 && created != 0).then_some(created),
        }
    }

    /// As it is written: version 5.
    pub fn encode(&self) -> Vec<u8> {
        let mut valid = 0;
        if self.attributes.is_some() {
            valid |= HAS_ATTRIBUTES;
        }
        if self.created.is_some() {
            valid |= HAS_CREATED;
        }
        let mut out = vec![0, 0, 5, 0, 5, 0, 0, 0];
        out.extend_from_slice(&u32::to_le_bytes(valid));
        out.extend_from_slice(&self.attributes.unwrap_or(0).to_le_bytes());
        out.extend_from_slice(&self.created.unwrap_or(0).to_le_bytes());
        out
    }
}

/// What does not stand in the way of looking at a file.
fn found(value: Result<Vec<u8>>) -> Result<Option<Dos>> {
    match value {
        Ok(bytes) => Ok(Dos::decode(&bytes)),
        Err(Status::WouldBlock) => Err(Status::WouldBlock),
        Err(_) => Ok(None),
    }
}

/// What is kept of a file; `None` if nothing is.
///
/// # Errors
/// [`Status::WouldBlock`].
pub fn get(fs: &dyn FileSystem, cx: Context<'_>, file: &Handle) -> Result<Option<Dos>> {
    let cred = Cred::root();
    found(fs.get_xattr(Context { cred: &cred, ..cx }, file, NAME))
}

/// The same of what a directory has at a name.
///
/// # Errors
/// [`Status::WouldBlock`].
pub fn get_at(
    fs: &dyn FileSystem,
    cx: Context<'_>,
    entry: (&Handle, &[u8]),
) -> Result<Option<Dos>> {
    let cred = Cred::root();
    found(fs.get_xattr_at(Context { cred: &cred, ..cx }, entry, NAME))
}

/// Keeps it.
///
/// # Errors
/// As of SETXATTR; [`Status::NotSupported`] where the file system has no extended attributes.
pub fn set(fs: &dyn FileSystem, cx: Context<'_>, file: &Handle, dos: &Dos) -> Change<()> {
    let cred = Cred::root();
    fs.set_xattr(Context { cred: &cred, ..cx }, file, NAME, &dos.encode(), SetXattr::Either)
}

#[cfg(test)]
mod tests;
