//! Previous versions: the names of times in paths (`@GMT-` tokens, MS-SMB2 §2.2.32.2 and
//! MS-SMB §2.2.1.1.1), and the list of all.

use base::units::{Civil, civil};

use super::codec::Field;

/// Bytes of a token: `@GMT-YYYY.MM.DD-HH.MM.SS`.
pub const TOKEN: usize = 24;
/// Bytes of a token in the list, in UTF-16 with a zero.
const LISTED: usize = 2 * (TOKEN + 1);
/// Bytes of the list before its tokens, and the least that a client accepts.
const HEAD: usize = 12;
/// Least bytes of the answer (§3.3.5.15.1).
pub const LIST_MIN: usize = 16;
/// Seconds since 1970 of the years 1601 to 9999.
const TIMES: core::ops::Range<i64> = -11_644_473_600..253_402_300_800;

/// The token of a time, in seconds since 1970; `None` outside of the years 1601 to 9999.
pub fn token(seconds: i64) -> Option<String> {
    if !TIMES.contains(&seconds) {
        return None;
    }
    let Civil { year, month, day, hour, minute, second } = civil(seconds);
    Some(format!("@GMT-{year:04}.{month:02}.{day:02}-{hour:02}.{minute:02}.{second:02}"))
}

/// The time of a token, in seconds since 1970; `None` if it is none.
pub fn time(token: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(token).ok().filter(|text| text.len() == TOKEN)?;
    let (head, rest) = text.split_at_checked(5)?;
    if !head.eq_ignore_ascii_case("@GMT-") {
        return None;
    }
    let mut parts = rest.split(['.', '-']);
    let mut number = |digits: usize| {
        let part = parts.next().filter(|part| part.len() == digits)?;
        let all_digits = part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<i64>().ok().filter(|_| all_digits)
    };
    let (year, month, day) = (number(4)?, number(2)?, number(2)?);
    let (hour, minute, second) = (number(2)?, number(2)?, number(2)?);
    let time = Civil { year, month, day, hour, minute, second };
    let seconds = time.seconds();
    // What does not exist, such as 30 February, is another time.
    (TIMES.contains(&seconds) && civil(seconds) == time).then_some(seconds)
}

/// SRV_SNAPSHOT_ARRAY of the tokens, as far as there is room for `max` bytes: all of them, or none
/// and how much room they take.
pub fn list(tokens: &[String], max: usize) -> Vec<u8> {
    let size = tokens.len() * LISTED + 2;
    let fits = HEAD + size <= max;
    let mut out = Vec::new();
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    count(tokens.len()).put(&mut out);
    count(if fits { tokens.len() } else { 0 }).put(&mut out);
    count(size).put(&mut out);
    if fits {
        for token in tokens {
            token.encode_utf16().for_each(|unit| unit.put(&mut out));
            0u16.put(&mut out);
        }
        0u16.put(&mut out);
    }
    out.resize(out.len().max(LIST_MIN), 0);
    out
}

/// How many tokens there is room for in `max` bytes.
pub const fn room(max: usize) -> usize {
    max.saturating_sub(HEAD + 2) / LISTED
}

#[cfg(test)]
mod tests;
