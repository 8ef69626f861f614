//! Bytes as text: in hexadecimal, and as URLs have them.

/// What besides letters and digits never needs an escape in a URL (RFC 3986 §2.3, unreserved).
pub const UNRESERVED: &[u8] = b"-._~";

/// Two digits for each byte, in small letters.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| digits(*byte, b"0123456789abcdef")).collect()
}

/// Escapes bytes as URLs have them (RFC 3986 §2.1): letters and digits stay, and what `plain` has.
pub fn percent(bytes: &[u8], plain: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || plain.contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push('%');
            text.extend(digits(byte, b"0123456789ABCDEF"));
        }
    }
    text
}

fn digits(byte: u8, digits: &[u8; 16]) -> [char; 2] {
    [byte >> 4, byte & 15].map(|value| char::from(digits[usize::from(value)]))
}

#[cfg(test)]
mod tests;
