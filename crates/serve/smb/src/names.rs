//! Paths as clients of SMB have them: from the root of a share on, with `\` between the parts.

use vfs::share::Share;
use wire::smb::status::NtStatus;
use wire::smb::utf16;

use super::status;
use files::VPath;

/// The stream that every file has; to name it is to name the file.
const DATA: &[u8] = b"::$DATA";

/// Separates the parts of a path.
const SEPARATOR: u16 = b'\\' as u16;
/// Characters that no name has, as those below 0x20 (MS-FSCC §2.1.5.2); those of the file system
/// come as others (`wire::smb::utf16`).
const FORBIDDEN: [u16; 8] = [
    b'"' as u16,
    b'*' as u16,
    b'<' as u16,
    b'>' as u16,
    b'?' as u16,
    b'|' as u16,
    b'/' as u16,
    b':' as u16,
];
/// Those of them that a pattern may have.
const WILDCARDS: [u16; 5] = [b'*' as u16, b'?' as u16, b'<' as u16, b'>' as u16, b'"' as u16];

/// Bytes that a part of a path takes in addition to its name: pointer and allocation.
const PART: usize = size_of::<Vec<u8>>() + 32;

/// A path in a share, from UTF-16LE.
///
/// # Errors
/// STATUS_OBJECT_NAME_INVALID and others of a path that is none (MS-FSCC §2.1.5).
pub(super) fn path(share: &Share, name: &[u8]) -> Result<VPath, NtStatus> {
    let plain: Vec<u16> = utf16::units(name).map_err(status::of_wire)?.collect();
    let plain = without_data(&plain);
    if plain.first() == Some(&SEPARATOR) {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    if plain.iter().any(|unit| *unit != SEPARATOR && is_forbidden(*unit)) {
        return Err(NtStatus::OBJECT_NAME_INVALID);
    }
    let root = VPath::ROOT.with(share.name.as_bytes());
    let plain = plain.strip_suffix(&[SEPARATOR]).unwrap_or(plain);
    if plain.is_empty() {
        return Ok(root);
    }
    let mut parts = Vec::new();
    for part in plain.split(|unit| *unit == SEPARATOR) {
        let bytes: Vec<u8> = part.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let part = utf16::decode_name(&bytes).map_err(|_| NtStatus::OBJECT_NAME_INVALID)?;
        match part.as_slice() {
            b"" | b"." | b".." => return Err(NtStatus::OBJECT_NAME_INVALID),
            part if part.len() > base::limits::NAME_MAX => {
                return Err(NtStatus::OBJECT_NAME_INVALID);
            }
            _ => parts.push(part),
        }
        if parts.len() >= base::limits::TRANSFER_PARTS_MAX {
            return Err(NtStatus::OBJECT_NAME_INVALID);
        }
    }
    Ok(root.below(&parts))
}

/// Whether a path ends with a separator, as only that of a directory may (MS-FSA §2.1.5.1).
pub(super) fn is_of_dir(name: &[u8]) -> bool {
    name.len() > 2 && name.ends_with(&SEPARATOR.to_le_bytes())
}

/// Whether a pattern of QUERY_DIRECTORY may be one: a name, or one with wildcards, `.` or `..`
/// (MS-FSA §2.1.5.6.3).
pub(super) fn is_pattern(pattern: &[u8]) -> bool {
    let may_be = |unit| WILDCARDS.contains(&unit) || unit != SEPARATOR && !is_forbidden(unit);
    utf16::units(pattern).is_ok_and(|mut units| units.all(may_be))
}

/// Whether two names differ in case alone, if at all, and are composed alike.
pub(super) fn is_same_but_for_case(one: &[u8], other: &[u8]) -> bool {
    let upper = |name| {
        let mut encoded = Vec::new();
        utf16::encode_name(name, &mut encoded);
        utf16::units(&encoded).map(|units| units.map(utf16::upper).collect::<Vec<_>>())
    };
    upper(one) == upper(other)
}

/// A path without `::$DATA`, in any case.
fn without_data(path: &[u16]) -> &[u16] {
    let is_data = |end: &[u16]| {
        let byte = |unit: u16| u8::try_from(unit).unwrap_or(0);
        end.iter().zip(DATA).all(|(unit, data)| byte(*unit).eq_ignore_ascii_case(data))
    };
    match path.split_at_checked(path.len().wrapping_sub(DATA.len())) {
        Some((path, end)) if is_data(end) => path,
        _ => path,
    }
}

fn is_forbidden(unit: u16) -> bool {
    unit < 0x20 || FORBIDDEN.contains(&unit)
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
