//! Bytes as text: in hexadecimal, and as URLs have them. Text as a terminal may have it.

use std::borrow::Cow;
use std::fmt::Write;
use std::str::FromStr;

/// Characters other than letters and digits that never need an escape in a URL (RFC 3986 §2.3,
/// unreserved).
pub const UNRESERVED: &[u8] = b"-._~";

/// Two digits for each byte, in small letters.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| digits(*byte, b"0123456789abcdef")).collect()
}

/// Escapes bytes as URLs have them (RFC 3986 §2.1): letters and digits stay, and what `plain` has.
pub fn percent(bytes: &[u8], plain: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    put_percent(bytes, plain, &mut text);
    text
}

/// The same, added to a text.
pub fn put_percent(bytes: &[u8], plain: &[u8], text: &mut String) {
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || plain.contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push('%');
            text.extend(digits(byte, b"0123456789ABCDEF"));
        }
    }
}

/// One line of text for a terminal: names of files, clients and users come from others and may hold
/// escape sequences, line ends, and characters that turn the direction of what follows. Such a
/// character is written as JSON has it, `\u001b`.
pub fn visible(text: &str) -> Cow<'_, str> {
    escape(text, |c| c == '\n' || is_hidden(c))
}

/// The same for text of many lines; their ends (LF, or CR LF as in CSV) and tabs stay.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    let line = |text| escape(text, |c| c != '\n' && c != '\t' && is_hidden(c));
    if !text.contains("\r\n") {
        return line(text);
    }
    Cow::Owned(text.split("\r\n").map(line).collect::<Vec<_>>().join("\r\n"))
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' if is_escaped(c) => escaped.push_str("\\n"),
            _ if is_escaped(c) => drop(write!(escaped, "\\u{:04x}", u32::from(c))),
            _ => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

/// What a terminal does not show as it is: controls of ASCII and Latin-1, separators of lines, and
/// embeddings, overrides and isolates of the direction (Unicode Standard Annex 9).
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A whole number as people and peers write it: decimal digits and nothing else. `parse` alone
/// takes a plus sign, too.
pub fn decimal<T: FromStr>(text: &str) -> Option<T> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain { text.parse().ok() } else { None }
}

/// The same, with a minus sign or without one.
pub fn signed(text: &str) -> Option<i64> {
    // Together, so that the least number can be read.
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain { text.parse().ok() } else { None }
}

fn digits(byte: u8, digits: &[u8; 16]) -> [char; 2] {
    [byte >> 4, byte & 15].map(|value| char::from(digits[usize::from(value)]))
}

#[cfg(test)]
mod tests;
