//! Words for what the table of locks holds: ids, kinds, and bytes that peers have chosen.

use base::limits::SHOWN_NAME_MAX;
use vfs::locks::{Caching, ClientKey, Kind, Protocol, Range, SHARE_READ, SHARE_WRITE, What};

/// A client's id, as in the API.
pub fn id(key: ClientKey) -> String {
    format!("{}-{:016x}", key.protocol.id(), key.id)
}

/// The client that an id means.
pub fn key(id: &str) -> Option<ClientKey> {
    let (name, number) = id.split_once('-')?;
    let protocol = Protocol::by_id(name)?;
    let digits = number.len() <= 16 && number.bytes().all(|b| b.is_ascii_hexdigit());
    let number = u64::from_str_radix(number, 16).ok().filter(|_| digits)?;
    Some(ClientKey { protocol, id: number })
}

/// Bytes of a peer's choice, for people: letters, digits and signs as they are, the rest as `\xNN`,
/// so that nothing can act on a terminal or a page, or look like something else.
pub fn bytes(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut left = SHOWN_NAME_MAX;
    let escaped =
        |bytes: &[u8]| -> String { bytes.iter().map(|b| format!("\\x{b:02x}")).collect() };
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid().chars().map(|c| match c {
            '\\' => "\\\\".to_owned(),
            c if c.is_alphanumeric() || c.is_ascii_graphic() || c == ' ' => c.to_string(),
            c => escaped(c.encode_utf8(&mut [0; 4]).as_bytes()),
        });
        let invalid = chunk.invalid().iter().map(|b| escaped(&[*b]));
        for part in valid.chain(invalid) {
            match left.checked_sub(part.chars().count()) {
                Some(rest) => left = rest,
                None => return text + "…",
            }
            text += &part;
        }
    }
    text
}

/// A set of access bits.
fn access(bits: u8) -> &'static str {
    match (bits & SHARE_READ != 0, bits & SHARE_WRITE != 0) {
        (true, true) => "both",
        (true, false) => "read",
        (false, true) => "write",
        (false, false) => "none",
    }
}

/// Kind, access and deny of an open or a delegation.
pub fn open(what: &What) -> (&'static str, &'static str, &'static str) {
    match what {
        What::Open(share) => ("open", access(share.access), access(share.deny)),
        What::Lease(kind, recalled) => {
            let access = if kind.has(Caching::WRITE) { "both" } else { "read" };
            (if *recalled { "recall" } else { "delegation" }, access, "none")
        }
        What::Lock(..) | What::Wait(..) => ("open", "none", "none"),
    }
}

/// Kind, first byte and length of a lock; no length: to the end of the file.
pub fn lock(what: &What) -> (&'static str, u64, Option<u64>) {
    let (What::Lock(at, kind) | What::Wait(at, kind)) = what else { return ("none", 0, None) };
    let Range { start, .. } = *at;
    let length = Some(at.nfs4_len()).filter(|length| *length != u64::MAX);
    let kind = match kind {
        Kind::Read => "read",
        Kind::Write => "write",
    };
    (kind, start, length)
}

#[cfg(test)]
mod tests;
