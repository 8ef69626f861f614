//! Paths as clients of SMB have them: from the root of a share on, with `\` between the parts.

use vfs::share::Share;
use wire::smb::status::NtStatus;
use wire::smb::utf16;

use super::status;
use files::VPath;

/// The stream that every file has; to name it is to name the file.
const DATA: &[u8] = b"::$DATA";

/// Characters that no name has; those of the file system come as others (`wire::smb::utf16`).
const FORBIDDEN: &[u8] = b"\"*<>?|/:";

/// Bytes that a part of a path takes besides its name: where it is, and what its allocation does.
const PART: usize = size_of::<Vec<u8>>() + 32;

/// A path in a share, from UTF-16LE.
///
/// # Errors
/// STATUS_OBJECT_NAME_INVALID and others of a path that is none.
pub(super) fn path(share: &Share, name: &[u8]) -> Result<VPath, NtStatus> {
    // `/`, `:` and others are told from what stands for them only before they are decoded.
    let plain = utf16::units(name).map_err(status::of_wire)?;
    let plain: Vec<u16> = plain.collect();
    let is = |unit: &u16, byte: u8| *unit == u16::from(byte);
    let data: Vec<u16> = DATA.iter().map(|byte| u16::from(*byte)).collect();
    let plain = plain.strip_suffix(data.as_slice()).unwrap_or(&plain);
    if plain.first().is_some_and(|unit| is(unit, b'\\')) {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    if plain.iter().any(|unit| *unit == 0 || FORBIDDEN.iter().any(|byte| is(unit, *byte))) {
        return Err(NtStatus::OBJECT_NAME_INVALID);
    }
    let root = VPath::ROOT.with(share.name.as_bytes());
    let mut bytes: Vec<u8> = Vec::with_capacity(2 * plain.len());
    plain.iter().for_each(|unit| bytes.extend_from_slice(&unit.to_le_bytes()));
    let decoded = utf16::decode_name(&bytes).map_err(status::of_wire)?;
    let decoded = decoded.strip_suffix(b"\\").unwrap_or(&decoded);
    if decoded.is_empty() {
        return Ok(root);
    }
    let mut parts = Vec::new();
    for part in decoded.split(|byte| *byte == b'\\') {
        match part {
            b"" | b"." | b".." => return Err(NtStatus::OBJECT_NAME_INVALID),
            part if part.contains(&b'/') => return Err(NtStatus::OBJECT_NAME_INVALID),
            part if part.len() > base::limits::NAME_MAX => {
                return Err(NtStatus::OBJECT_NAME_INVALID);
            }
            part => parts.push(part.to_vec()),
        }
        if parts.len() >= base::limits::TRANSFER_PARTS_MAX {
            return Err(NtStatus::OBJECT_NAME_INVALID);
        }
    }
    Ok(root.below(&parts))
}

/// Bytes that a path takes for as long as it is kept.
pub(super) fn held(path: &VPath) -> usize {
    path.parts().iter().map(|part| part.len() + PART).sum()
}

/// A path as the client sees it, in UTF-16LE, with a leading `\`.
pub(super) fn shown(path: &VPath) -> Vec<u8> {
    let mut out = Vec::new();
    let parts = path.share().map(|(_, parts)| parts).unwrap_or_default();
    if parts.is_empty() {
        out.extend_from_slice(&[b'\\', 0]);
    }
    for part in parts {
        out.extend_from_slice(&[b'\\', 0]);
        utf16::encode_name(part, &mut out);
    }
    out
}

#[cfg(test)]
mod tests;
