//! Create contexts (MS-SMB2 §2.2.13.2): a list of named pieces of data.

use base::limits::SMB_CONTEXTS_MAX;

use super::codec::{Field, Reader, Result, SmbError, buffer, pad, patch};

/// Asks for the rights that the user has.
pub const MAXIMAL_ACCESS: &[u8] = b"MxAc";
/// Asks for the number of the file on disk.
pub const ON_DISK_ID: &[u8] = b"QFid";
/// The security descriptor of a new file.
pub const SECURITY: &[u8] = b"SecD";
/// Room for a new file.
pub const ALLOCATION: &[u8] = b"AlSi";
/// Extended attributes of a new file.
pub const EXTENDED_ATTRIBUTES: &[u8] = b"ExtA";
/// A snapshot by its time.
pub const SNAPSHOT: &[u8] = b"TWrp";

/// Asks for a durable handle ([`super::durable`]).
pub const DURABLE: &[u8] = b"DHnQ";
/// Continues a durable handle.
pub const DURABLE_RECONNECT: &[u8] = b"DHnC";
/// Asks for a durable handle of version 2.
pub const DURABLE_V2: &[u8] = b"DH2Q";
/// Continues a durable handle of version 2.
pub const DURABLE_V2_RECONNECT: &[u8] = b"DH2C";
/// By what an application is known again, wherever it runs ([`super::durable::AppInstance`]).
pub const APP_INSTANCE: &[u8] = &[
    0x45, 0xbc, 0xa6, 0x6a, 0xef, 0xa7, 0xf7, 0x4a, 0x90, 0x08, 0xfa, 0x46, 0x2e, 0x14, 0x4d, 0x74,
];
/// How often it has moved ([`super::durable::AppVersion`]).
pub const APP_VERSION: &[u8] = &[
    0xb9, 0x82, 0xd0, 0xb7, 0x3b, 0x56, 0x07, 0x4f, 0xa0, 0x7b, 0x52, 0x4a, 0x81, 0x16, 0xa0, 0x10,
];
/// A lease ([`super::lease::Lease`]).
pub const LEASE: &[u8] = b"RqLs";

/// Bytes of the shortest name (MS-SMB2 §2.2.13.2).
const NAME_MIN: usize = 4;

/// One context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Its data.
    pub data: &'a [u8],
}

/// The contexts of a CREATE.
///
/// # Errors
/// [`SmbError`].
pub fn decode(bytes: &[u8]) -> Result<Vec<Context<'_>>> {
    let (mut rest, mut contexts) = (bytes, Vec::new());
    while !rest.is_empty() {
        if contexts.len() >= SMB_CONTEXTS_MAX {
            return Err(SmbError::Limit("create contexts"));
        }
        let mut r = Reader::new(rest, "create context");
        let next = r.get::<u32>()? as usize;
        let one = match next {
            0 => rest,
            _ => rest.get(..next).ok_or(SmbError::Short("create context"))?,
        };
        let (name_at, name_len): (u16, u16) = (r.get()?, r.get()?);
        let _reserved: u16 = r.get()?;
        let (data_at, data_len): (u16, u32) = (r.get()?, r.get()?);
        let name = buffer(one, (name_at.into(), name_len.into()), 64, "create context")?;
        if name.len() < NAME_MIN {
            return Err(SmbError::Value("create context"));
        }
        let place = (data_at.into(), data_len as usize);
        let data = buffer(one, place, one.len(), "create context")?;
        contexts.push(Context { name, data });
        if next == 0 {
            break;
        }
        if next < 16 || !next.is_multiple_of(8) {
            return Err(SmbError::Value("create context"));
        }
        rest = rest.get(next..).unwrap_or_default();
    }
    Ok(contexts)
}

/// Appends contexts.
pub fn put(contexts: &[Context<'_>], out: &mut Vec<u8>) {
    let start = out.len();
    let mut before = None;
    for context in contexts {
        pad(out, start, 8);
        let at = out.len();
        if let Some(before) = before.replace(at) {
            patch(out, before, &((at - before) as u32).to_le_bytes());
        }
        0u32.put(out);
        16u16.put(out);
        (context.name.len() as u16).put(out);
        0u16.put(out);
        let data_at = (16 + context.name.len()).next_multiple_of(8);
        (if context.data.is_empty() { 0 } else { data_at as u16 }).put(out);
        (context.data.len() as u32).put(out);
        out.extend_from_slice(context.name);
        if !context.data.is_empty() {
            out.resize(at + data_at, 0);
            out.extend_from_slice(context.data);
        }
    }
}
