//! Bounded reads of `/sys`: what is missing, unreadable or not text is absent, never an error.

use std::io;
use std::str::FromStr;

use host::Root;
use serde::{Deserialize, Serialize};

/// Longest attribute in bytes: the kernel gives at most one page.
const ATTRIBUTE_MAX: u64 = 4_096;
/// Longest text in bytes that is shown of an attribute.
const TEXT_MAX: usize = 256;
/// Most entries of a folder that are read: a chassis of disks has some hundred, a large server some
/// thousand PCI functions.
pub(crate) const ENTRIES_MAX: usize = 4_096;

/// Why something is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The machine or its kernel does not have it.
    NotOffered,
    /// Only another user may read it.
    NoPrivilege,
    /// A program is not installed.
    NoTool,
    /// It exists and cannot be read.
    Unreadable,
}

/// Something that is not shown, and why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Absence {
    /// What: `SMBIOS table`.
    pub subject: String,
    /// Why.
    pub reason: Reason,
}

impl Absence {
    /// Of `subject`, for this reason.
    pub fn new(subject: &str, reason: Reason) -> Self {
        Self { subject: subject.to_owned(), reason }
    }

    /// The reason for an error of a read.
    pub fn of(subject: &str, error: &io::Error) -> Self {
        let reason = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Reason::NotOffered,
            io::ErrorKind::PermissionDenied => Reason::NoPrivilege,
            _ => Reason::Unreadable,
        };
        Self::new(subject, reason)
    }
}

impl std::fmt::Display for Absence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reason = match self.reason {
            Reason::NotOffered => "not offered by this machine",
            Reason::NoPrivilege => "only root may read it; start the server as root",
            Reason::NoTool => "the program is not installed",
            Reason::Unreadable => "it cannot be read",
        };
        write!(f, "{}: {reason}", self.subject)
    }
}

/// Text of the machine as it may be shown: one line without control characters, of bounded length;
/// `None` when nothing is left.
pub(crate) fn clean(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    let plain = |c: char| if c.is_control() || c == '\u{fffd}' { ' ' } else { c };
    let line: String = line.chars().map(plain).collect();
    let mut line = line.trim().to_owned();
    let mut end = line.len().min(TEXT_MAX);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    line.truncate(end);
    Some(line.trim_end().to_owned()).filter(|line| !line.is_empty())
}

/// First line of the attribute `name`.
pub(crate) fn text(root: &Root, name: &str) -> Option<String> {
    clean(&root.bytes(name, ATTRIBUTE_MAX).ok()?)
}

/// A number in decimal.
pub(crate) fn number<T: FromStr>(root: &Root, name: &str) -> Option<T> {
    text(root, name)?.parse().ok()
}

/// A number in hexadecimal, with `0x` before it.
pub(crate) fn hex(root: &Root, name: &str) -> Option<u32> {
    u32::from_str_radix(text(root, name)?.strip_prefix("0x")?, 16).ok()
}

/// A switch: `1`.
pub(crate) fn is_set(root: &Root, name: &str) -> bool {
    number::<u64>(root, name).is_some_and(|n| n != 0)
}

/// Bytes of a binary attribute.
pub(crate) fn binary(root: &Root, name: &str) -> Option<Vec<u8>> {
    root.bytes(name, ATTRIBUTE_MAX).ok()
}

/// Names in a folder, sorted.
pub(crate) fn names(root: &Root, folder: &str) -> Vec<String> {
    let mut names = root.list(folder);
    names.truncate(ENTRIES_MAX);
    names
}

/// Last name of where a link leads.
pub(crate) fn link_name(root: &Root, name: &str) -> Option<String> {
    Some(root.link(name)?.file_name()?.to_str()?.to_owned())
}

/// Names on the way where a link leads, the last one last.
pub(crate) fn link_names(root: &Root, name: &str) -> Vec<String> {
    let Some(target) = root.link(name) else { return Vec::new() };
    let parts = target.components().filter_map(|part| part.as_os_str().to_str());
    parts.map(str::to_owned).collect()
}

/// A text as a name of a node: letters, digits, `.`, `_`, `-`.
pub(crate) fn node_name(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars() {
        match c {
            c if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':') => name.push(c),
            _ if name.ends_with('-') || name.is_empty() => {}
            _ => name.push('-'),
        }
    }
    name.truncate(NODE_NAME);
    name.trim_end_matches('-').to_owned()
}

/// Longest name of a node in bytes.
const NODE_NAME: usize = 96;

/// Names made unique: a further one of the same name gets a number.
pub(crate) fn unique(name: &str, used: &mut std::collections::BTreeSet<String>) -> String {
    let mut unique = name.to_owned();
    let mut number = 2;
    while !used.insert(unique.clone()) {
        unique = format!("{name}-{number}");
        number += 1;
    }
    unique
}
