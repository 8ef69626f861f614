//! Facts of files, `type=file;size=1; name` (RFC 3659 §7), both directions.

use super::addr::number;
use super::{Malformed, date};

/// Facts in the order of a listing, with their names in FEAT and OPTS.
const NAMES: [(&str, u16); 8] = [
    ("type", bit::TYPE),
    ("perm", bit::PERM),
    ("size", bit::SIZE),
    ("modify", bit::MODIFY),
    ("unique", bit::UNIQUE),
    ("UNIX.mode", bit::MODE),
    ("UNIX.owner", bit::OWNER),
    ("UNIX.group", bit::GROUP),
];

/// Bits of a [`Facts`].
pub mod bit {
    /// Kind of the file.
    pub const TYPE: u16 = 1;
    /// Bytes.
    pub const SIZE: u16 = 2;
    /// When it was changed.
    pub const MODIFY: u16 = 4;
    /// What may be done with it.
    pub const PERM: u16 = 8;
    /// The same for all names of one file.
    pub const UNIQUE: u16 = 16;
    /// Permission bits.
    pub const MODE: u16 = 32;
    /// Number of the owner.
    pub const OWNER: u16 = 64;
    /// Number of the group.
    pub const GROUP: u16 = 128;
}

/// The facts that are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts(pub u16);

impl Default for Facts {
    fn default() -> Self {
        Self(u16::MAX >> 8)
    }
}

impl Facts {
    /// Those of a list as OPTS MLST has it; unknown ones are passed over (RFC 3659 §7.9).
    pub fn parse(text: &[u8]) -> Self {
        let known =
            |name: &[u8]| NAMES.iter().find(|(n, _)| n.as_bytes().eq_ignore_ascii_case(name));
        let bits = text.split(|b| *b == b';').filter_map(|name| known(name.trim_ascii()));
        Self(bits.fold(0, |all, (_, bit)| all | bit))
    }

    /// The list for the reply to OPTS MLST.
    pub fn list(self) -> String {
        let names = NAMES.iter().filter(|(_, bit)| self.0 & bit != 0);
        names.fold(String::new(), |all, (name, _)| all + name + ";")
    }

    /// The list for FEAT: selected facts have a star.
    pub fn feature(self) -> String {
        NAMES.iter().fold(String::new(), |all, (name, bit)| {
            all + name + if self.0 & bit != 0 { "*;" } else { ";" }
        })
    }
}

/// Kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// The directory that is listed.
    Current,
    /// The one above it.
    Parent,
    /// A symbolic link.
    Link,
    /// Device, pipe or socket.
    Special,
}

impl Kind {
    const TEXTS: [(Self, &str); 6] = [
        (Self::File, "file"),
        (Self::Dir, "dir"),
        (Self::Current, "cdir"),
        (Self::Parent, "pdir"),
        (Self::Link, "OS.unix=slink"),
        (Self::Special, "OS.unix=special"),
    ];

    /// As the fact has it.
    pub fn text(self) -> &'static str {
        Self::TEXTS.iter().find(|(kind, _)| *kind == self).map_or("file", |(_, text)| text)
    }

    fn parse(text: &[u8]) -> Option<Self> {
        // ProFTPD and vsftpd write the target behind `OS.unix=slink:`.
        let text = text.split(|b| *b == b':').next().unwrap_or_default();
        let same = |(_, known): &&(Self, &str)| known.as_bytes().eq_ignore_ascii_case(text);
        Self::TEXTS.iter().find(same).map(|(kind, _)| *kind)
    }
}

/// The facts of a file; `None` if absent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entry<'a> {
    /// Kind.
    pub kind: Option<Kind>,
    /// Bytes; of files only.
    pub size: Option<u64>,
    /// When it was changed: seconds since the epoch.
    pub modify: Option<i64>,
    /// What may be done with it: letters of RFC 3659 §7.5.5.
    pub perm: Option<&'a str>,
    /// File system and number.
    pub unique: Option<(u64, u64)>,
    /// Permission bits.
    pub mode: Option<u32>,
    /// Number of the owner.
    pub owner: Option<u32>,
    /// Number of the group.
    pub group: Option<u32>,
    /// Name or path.
    pub name: &'a [u8],
}

impl Entry<'_> {
    /// Puts the facts among `selected` behind `out`, a space and the name; no end of a line. In a
    /// name a line cannot end.
    pub fn encode(&self, selected: Facts, out: &mut Vec<u8>) {
        let mut put = |bit: u16, value: Option<String>| {
            let name = NAMES.iter().find(|(_, b)| *b == bit).map(|(name, _)| *name);
            if let (true, Some(name), Some(value)) = (selected.0 & bit != 0, name, value) {
                out.extend_from_slice(format!("{name}={value};").as_bytes());
            }
        };
        put(bit::TYPE, self.kind.map(|kind| kind.text().to_owned()));
        put(bit::PERM, self.perm.map(str::to_owned));
        put(bit::SIZE, self.size.map(|n| n.to_string()));
        put(bit::MODIFY, self.modify.map(date::time_text));
        put(bit::UNIQUE, self.unique.map(|(fs, n)| format!("{fs:x}g{n:x}")));
        put(bit::MODE, self.mode.map(|mode| format!("{mode:04o}")));
        put(bit::OWNER, self.owner.map(|n| n.to_string()));
        put(bit::GROUP, self.group.map(|n| n.to_string()));
        out.push(b' ');
        super::list::name(self.name, out);
    }
}

/// Reads a line of MLSD or MLST; facts that are not known are passed over.
///
/// # Errors
/// A fact without a value, or a known one with an invalid value; no name.
pub fn entry(line: &[u8]) -> Result<Entry<'_>, Malformed> {
    let at = line.iter().position(|b| *b == b' ').ok_or(Malformed::Missing)?;
    let (facts, name) =
        (line.get(..at).unwrap_or_default(), line.get(at + 1..).unwrap_or_default());
    if name.is_empty() {
        return Err(Malformed::Missing);
    }
    if line.iter().any(|b| matches!(b, 0 | b'\r' | b'\n')) {
        return Err(Malformed::Byte);
    }
    let mut entry = Entry { name, ..Entry::default() };
    for fact in facts.split(|b| *b == b';').filter(|fact| !fact.is_empty()) {
        let equals = fact.iter().position(|b| *b == b'=').ok_or(Malformed::Parameter)?;
        let (key, value) =
            (fact.get(..equals).unwrap_or_default(), fact.get(equals + 1..).unwrap_or_default());
        let bit = Facts::parse(key).0;
        match bit {
            bit::TYPE => entry.kind = Kind::parse(value),
            bit::SIZE => entry.size = Some(number(value)?),
            bit::MODIFY => entry.modify = Some(date::time(value)?.0),
            bit::PERM => entry.perm = std::str::from_utf8(value).ok(),
            bit::UNIQUE => entry.unique = unique(value),
            bit::MODE => entry.mode = octal(value),
            // Other servers write names here.
            bit::OWNER => entry.owner = number(value).ok(),
            bit::GROUP => entry.group = number(value).ok(),
            _ => {}
        }
    }
    Ok(entry)
}

fn octal(text: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(text).ok().filter(|t| t.bytes().all(|b| b.is_ascii_digit()))?;
    u32::from_str_radix(text, 8).ok()
}

fn unique(text: &[u8]) -> Option<(u64, u64)> {
    let (fs, n) = std::str::from_utf8(text).ok()?.split_once('g')?;
    let hex = |t: &str| u64::from_str_radix(t, 16).ok().filter(|_| !t.starts_with('+'));
    Some((hex(fs)?, hex(n)?))
}
