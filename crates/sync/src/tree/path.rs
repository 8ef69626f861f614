//! Paths of `wire::dsync`: names joined by `/`, from the top of a tree.

use base::limits::{NAME_MAX, PATH_MAX};

/// Whether this may be the name of an entry.
pub fn is_name(name: &[u8]) -> bool {
    let plain = !name.iter().any(|b| matches!(b, b'/' | 0));
    plain && !name.is_empty() && name.len() <= NAME_MAX && name != b"." && name != b".."
}

/// Whether this may be the way to an entry, or to the top.
pub fn is_path(path: &[u8]) -> bool {
    path.is_empty() || (path.len() < PATH_MAX && path.split(|b| *b == b'/').all(is_name))
}

/// The way to an entry of a directory.
pub fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    match dir.is_empty() {
        true => name.to_vec(),
        false => [dir, b"/", name].concat(),
    }
}

/// The directory of an entry, and its name.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|b| *b == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}
