//! Reading and writing of integers at an offset: SCSI fields are big-endian. Missing bytes read as
//! zero; a caller that needs them checks the length before.

/// The byte at this offset.
pub(crate) fn u8_at(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|rest| rest.first_chunk().copied()).unwrap_or([0; N])
}

/// Two bytes as a number.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(array(bytes, at))
}

/// Three bytes as a number.
pub(crate) fn u24_at(bytes: &[u8], at: usize) -> u32 {
    let [a, b, c] = array(bytes, at);
    u32::from_be_bytes([0, a, b, c])
}

/// Four bytes as a number.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array(bytes, at))
}

/// Eight bytes as a number.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(array(bytes, at))
}

/// `N` bytes.
pub(crate) fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    array(bytes, at)
}

/// Whether a bit, or one of several, is set.
pub(crate) fn bit_at(bytes: &[u8], at: usize, mask: u8) -> bool {
    u8_at(bytes, at) & mask != 0
}

/// What is from an offset on, at most `length` bytes.
pub(crate) fn slice_at(bytes: &[u8], at: usize, length: usize) -> &[u8] {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.get(..length).unwrap_or(rest)
}

/// Writes these bytes at an offset of our own; what does not fit is left out.
pub(crate) fn put_at(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}

/// Sets bits at an offset of our own.
pub(crate) fn set_at(bytes: &mut [u8], at: usize, mask: u8, on: bool) {
    if on && let Some(place) = bytes.get_mut(at) {
        *place |= mask;
    }
}

/// Writes the number of bytes that follow a list's head, once the list is there: four bytes at
/// `at`, for all from `from` on.
pub(crate) fn end_list_u32(out: &mut [u8], at: usize, from: usize) {
    let length = out.len().saturating_sub(from) as u32;
    put_at(out, at, &length.to_be_bytes());
}

/// The same in two bytes.
pub(crate) fn end_list_u16(out: &mut [u8], at: usize, from: usize) {
    let length = out.len().saturating_sub(from) as u16;
    put_at(out, at, &length.to_be_bytes());
}
