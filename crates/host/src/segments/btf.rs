//! The kernel's own description of its types (BTF, `/sys/kernel/btf/vmlinux`,
//! Documentation/bpf/btf.rst): numbers of types by name, where the fields of structures are.
//!
//! The file is the kernel's, but a container may bind another over it: everything is bounded.

use thiserror::Error;

/// Longest description that is read; a kernel with every option has 12 MiB.
pub const FILE_MAX: usize = 64 << 20;
/// Most types; this kernel has 127 thousand.
const TYPES_MAX: usize = 1 << 21;
/// Structures without a name inside each other, and names on the way to a field.
const DEPTH_MAX: u32 = 16;
/// Qualifiers and other names of one type.
const ALIASES_MAX: u32 = 32;

const MAGIC: u16 = 0xeb9f;
const VERSION: u8 = 1;
/// Bytes of the header and of what all types begin with.
const HEADER: usize = 24;
const TYPE: usize = 12;
/// Bytes of a member of a structure.
const MEMBER: usize = 12;

/// What a type is (linux/btf.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// `struct`
    Structure = 4,
    /// `union`
    Union = 5,
    /// `typedef`
    Alias = 8,
}

/// Why the description cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BtfError {
    /// It does not begin as one.
    #[error("it is no type information")]
    NotOne,
    /// Of a later form.
    #[error("version {0} of type information is not supported")]
    Version(u8),
    /// It ends early or points outside of itself.
    #[error("it is damaged at byte {0}")]
    Damaged(usize),
    /// A kind of type that this program does not know: its length is unknown as well.
    #[error("it has types of the unknown kind {0}")]
    Kind(u8),
    /// More than the limit.
    #[error("it has more than {TYPES_MAX} types")]
    TooMany,
    /// A type that programs need is not there.
    #[error("this kernel has no type {0}")]
    NoType(String),
    /// A field that programs need is not there.
    #[error("this kernel has no field {0}")]
    NoField(String),
}

/// Where a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Bytes from the start of the structure.
    pub offset: u32,
    /// Bytes that hold it.
    pub bytes: u32,
    /// Of these, the lowest bit and the number of bits, for a bit field.
    pub bits: Option<(u32, u32)>,
}

/// The description.
#[derive(Debug)]
pub struct Btf {
    bytes: Vec<u8>,
    types: Types,
    strings: (usize, usize),
}

/// Where types are.
#[derive(Debug, Default)]
struct Types {
    /// Where each type begins; number 0 is `void`.
    all: Vec<u32>,
    /// Numbers of the types that [`Btf::id`] finds by name: one in ten, so that a search is short.
    named: Vec<u32>,
}

impl Btf {
    /// Of the content of the file.
    ///
    /// # Errors
    /// [`BtfError`], when it is not one or is damaged.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, BtfError> {
        let head = |at: usize| u32_at(&bytes, at).map(|n| n as usize);
        if bytes.get(..2) != Some(&MAGIC.to_ne_bytes()) {
            return Err(BtfError::NotOne);
        }
        match bytes.get(2) {
            Some(&VERSION) => {}
            other => return Err(BtfError::Version(other.copied().unwrap_or_default())),
        }
        let header = head(4).filter(|n| *n >= HEADER).ok_or(BtfError::Damaged(4))?;
        let part = |at: usize| -> Result<(usize, usize), BtfError> {
            let damaged = BtfError::Damaged(at);
            let (start, length) = head(at).zip(head(at + 4)).ok_or(damaged.clone())?;
            let start = start.checked_add(header).ok_or(damaged.clone())?;
            let end = start.checked_add(length).filter(|end| *end <= bytes.len());
            Ok((start, end.ok_or(damaged)?))
        };
        let (types, strings) = (part(8)?, part(16)?);
        let types = positions(&bytes, types)?;
        Ok(Self { bytes, types, strings })
    }

    /// The number of a type.
    ///
    /// # Errors
    /// [`BtfError::NoType`].
    pub fn id(&self, name: &str, kind: Kind) -> Result<u32, BtfError> {
        let is = |id: &u32| {
            let at = self.position(*id).map(|at| at as u32);
            at.is_some_and(|at| self.kind(at) == Some(kind as u8) && self.is_named(at, name))
        };
        let found = self.types.named.iter().copied().find(is);
        found.ok_or_else(|| BtfError::NoType(name.to_owned()))
    }

    /// The field of a structure at the end of a path: `nd_net.net`. What has no name on the way is
    /// looked into.
    ///
    /// # Errors
    /// [`BtfError::NoType`], [`BtfError::NoField`].
    pub fn field(&self, structure: &str, path: &str) -> Result<Field, BtfError> {
        let missing = || BtfError::NoField(format!("{structure}.{path}"));
        let mut of = self.id(structure, Kind::Structure)?;
        let (mut before, mut found) = (0, None);
        for name in path.split('.') {
            let (field, id) = self.member(of, name, 0).ok_or_else(missing)?;
            found = Some(Field {
                offset: field.offset.checked_add(before).ok_or_else(missing)?,
                ..field
            });
            before = found.map_or(0, |f| f.offset);
            of = id;
        }
        found.ok_or_else(missing)
    }

    /// A member of a structure or union, and the number of its type.
    fn member(&self, of: u32, name: &str, depth: u32) -> Option<(Field, u32)> {
        let at = self.position(self.plain(of)?)?;
        let kind = self.kind(at as u32)?;
        if depth > DEPTH_MAX || (kind != Kind::Structure as u8 && kind != Kind::Union as u8) {
            return None;
        }
        let info = u32_at(&self.bytes, at + 4)?;
        for n in 0..(info & 0xffff) as usize {
            let entry = at + TYPE + n * MEMBER;
            let (id, place) = (u32_at(&self.bytes, entry + 4)?, u32_at(&self.bytes, entry + 8)?);
            // With the flag, the upper byte is the number of bits.
            let (bit, width) = match info >> 31 {
                1 => (place & 0xff_ffff, place >> 24),
                _ => (place, 0),
            };
            if self.is_named(entry as u32, name) {
                return Some((self.placed(id, bit, width)?, id));
            }
            if u32_at(&self.bytes, entry) == Some(0)
                && let Some((field, id)) = self.member(id, name, depth + 1)
            {
                let offset = field.offset.checked_add(bit / 8)?;
                return Some((Field { offset, ..field }, id));
            }
        }
        None
    }

    /// Where the entry of a direct member is in the file.
    #[cfg(test)]
    pub fn member_place(&self, structure: &str, name: &str) -> Option<usize> {
        let at = self.position(self.id(structure, Kind::Structure).ok()?)?;
        let count = (u32_at(&self.bytes, at + 4)? & 0xffff) as usize;
        let entries = (0..count).map(|n| at + TYPE + n * MEMBER);
        entries.into_iter().find(|entry| self.is_named(*entry as u32, name))
    }

    /// The bytes that hold a field that begins at this bit.
    fn placed(&self, id: u32, bit: u32, width: u32) -> Option<Field> {
        if width == 0 {
            return Some(Field { offset: bit / 8, bytes: self.size(id, 0)?, bits: None });
        }
        // The bytes that hold all of the bits, one if they fit.
        let (offset, low) = (bit / 8, bit % 8);
        let bytes = (low + width).div_ceil(8).next_power_of_two();
        let low = if cfg!(target_endian = "big") { bytes * 8 - low - width } else { low };
        Some(Field { offset, bytes, bits: Some((low, width)) })
    }

    /// Bytes of a type.
    fn size(&self, id: u32, depth: u32) -> Option<u32> {
        let at = self.position(self.plain(id)?)?;
        match self.kind(at as u32)? {
            // Pointers.
            2 => Some(size_of::<usize>() as u32),
            3 if depth < DEPTH_MAX => {
                let one = self.size(u32_at(&self.bytes, at + TYPE)?, depth + 1)?;
                one.checked_mul(u32_at(&self.bytes, at + TYPE + 8)?)
            }
            // Integers, structures, unions, enumerations: the size field.
            1 | 4..=6 | 16 | 19 => u32_at(&self.bytes, at + 8),
            _ => None,
        }
    }

    /// The type behind qualifiers and other names.
    fn plain(&self, mut id: u32) -> Option<u32> {
        for _ in 0..ALIASES_MAX {
            let at = self.position(id)?;
            // typedef, volatile, const, restrict, type tag
            if !matches!(self.kind(at as u32)?, 8..=11 | 18) {
                return Some(id);
            }
            id = u32_at(&self.bytes, at + 8)?;
        }
        None
    }

    fn position(&self, id: u32) -> Option<usize> {
        self.types.all.get(id as usize).filter(|_| id > 0).map(|at| *at as usize)
    }

    fn kind(&self, at: u32) -> Option<u8> {
        u32_at(&self.bytes, at as usize + 4).map(|info| (info >> 24) as u8 & 31)
    }

    /// Whether the type or member there has this name.
    fn is_named(&self, at: u32, name: &str) -> bool {
        let (start, end) = self.strings;
        let Some(offset) = u32_at(&self.bytes, at as usize) else { return false };
        let Some(from) = start.checked_add(offset as usize) else { return false };
        let all = self.bytes.get(from..end).unwrap_or_default();
        all.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
    }
}

/// Where each type begins.
fn positions(bytes: &[u8], (start, end): (usize, usize)) -> Result<Types, BtfError> {
    let mut types = Types { all: vec![0], named: Vec::new() };
    let mut at = start;
    while at < end {
        let info = u32_at(bytes, at + 4).ok_or(BtfError::Damaged(at))?;
        let (kind, members) = ((info >> 24) as u8 & 31, (info & 0xffff) as usize);
        let more = match kind {
            // What needs nothing more: pointers, forward declarations, other names, qualifiers,
            // functions, floats, type tags.
            2 | 7..=12 | 16 | 18 => 0,
            // Integers, variables, declaration tags.
            1 | 14 | 17 => 4,
            3 => 12,
            // Structures, unions, sections, enumerations of 64 bits.
            4 | 5 | 15 | 19 => 12 * members,
            // Enumerations, prototypes.
            6 | 13 => 8 * members,
            other => return Err(BtfError::Kind(other)),
        };
        if types.all.len() >= TYPES_MAX {
            return Err(BtfError::TooMany);
        }
        if [Kind::Structure, Kind::Union, Kind::Alias].iter().any(|k| *k as u8 == kind) {
            types.named.push(types.all.len() as u32);
        }
        types.all.push(u32::try_from(at).map_err(|_| BtfError::Damaged(at))?);
        at += TYPE + more;
    }
    if at == end { Ok(types) } else { Err(BtfError::Damaged(at)) }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|b| u32::from_ne_bytes(*b))
}

#[cfg(test)]
pub mod tests;
