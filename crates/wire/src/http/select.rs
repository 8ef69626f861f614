//! Lists that select: ranges of bytes (RFC 9110 §14.1) and entity tags (§8.8.3).

use base::limits::HTTP_RANGES_MAX;

/// A member of a list of entity tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag<'a> {
    /// `*`.
    Any,
    /// One tag.
    Entity {
        /// With its quotes.
        tag: &'a [u8],
        /// Whether it is a weak one.
        weak: bool,
    },
}

/// The tags of a field; what is no tag ends the list and matches nothing.
pub fn tags(value: &[u8]) -> impl Iterator<Item = Tag<'_>> {
    let mut rest = value;
    std::iter::from_fn(move || {
        rest = rest.trim_ascii_start();
        while let Some(after) = rest.strip_prefix(b",") {
            rest = after.trim_ascii_start();
        }
        if let Some(after) = rest.strip_prefix(b"*") {
            rest = after;
            return Some(Tag::Any);
        }
        let (weak, quoted) = match rest.strip_prefix(b"W/") {
            Some(quoted) => (true, quoted),
            None => (false, rest),
        };
        let end = quoted.strip_prefix(b"\"")?.iter().position(|b| *b == b'"')? + 2;
        rest = quoted.get(end..)?;
        Some(Tag::Entity { tag: quoted.get(..end)?, weak })
    })
}

/// The part of a file that a request selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All of it.
    All,
    /// These parts (start and end, the end not included): at least one, none empty.
    Ranges(Vec<(u64, u64)>),
    /// 416: no range overlaps the file.
    Nothing,
}

/// What a `Range` selects of a file of some size. Ranges that overlap are merged; an invalid or
/// excessive one selects the whole file.
pub fn ranges(range: &[u8], size: u64) -> Selection {
    let prefix: &[u8] = b"bytes=";
    let Some((unit, list)) = range.split_at_checked(prefix.len()) else { return Selection::All };
    if !unit.eq_ignore_ascii_case(prefix) {
        return Selection::All;
    }
    let (mut parts, mut all) = (Vec::new(), false);
    for member in list.split(|b| *b == b',').map(<[u8]>::trim_ascii) {
        match part(member, size) {
            None if member.is_empty() => {}
            None => return Selection::All,
            Some((start, end)) if start < end => parts.push((start, end)),
            // The last bytes of nothing are all there is (§14.1.2): no part of it has a number.
            Some(_) => all |= size == 0 && is_suffix(member),
        }
        if parts.len() > HTTP_RANGES_MAX {
            return Selection::All;
        }
    }
    merge(&mut parts);
    match parts.is_empty() {
        true if all => Selection::All,
        true => Selection::Nothing,
        false => Selection::Ranges(parts),
    }
}

/// Whether a range selects some last bytes, and not none.
fn is_suffix(member: &[u8]) -> bool {
    member.strip_prefix(b"-").and_then(position).is_some_and(|length| length > 0)
}

/// One range: empty if it lies beyond the end, `None` if it is invalid.
fn part(member: &[u8], size: u64) -> Option<(u64, u64)> {
    let dash = member.iter().position(|b| *b == b'-')?;
    let (first, last) = (member.get(..dash)?, member.get(dash + 1..)?);
    if first.is_empty() {
        return Some((size.saturating_sub(position(last)?), size));
    }
    let (number, end) = (position(first)?, end(last, size)?);
    if !last.is_empty() && is_less(last, first) {
        return None;
    }
    Some((number.min(size), end))
}

/// Where a range ends that has this last position.
fn end(last: &[u8], size: u64) -> Option<u64> {
    if last.is_empty() { Some(size) } else { Some(position(last)?.saturating_add(1).min(size)) }
}

/// A position or a length. It may have any number of digits (RFC 9110 §14.1.1, 1*DIGIT): what does
/// not fit lies beyond the end of every file.
fn position(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = std::str::from_utf8(text).ok()?;
    Some(digits.parse().unwrap_or(u64::MAX))
}

/// Whether one position is below another, however many digits they have.
fn is_less(one: &[u8], other: &[u8]) -> bool {
    let [one, other] = [one, other].map(|text| {
        let zeros = text.iter().take_while(|digit| **digit == b'0').count();
        text.get(zeros..).unwrap_or_default()
    });
    (one.len(), one) < (other.len(), other)
}

/// Puts overlapping and touching ranges together; leaves the order alone if there are none.
fn merge(parts: &mut Vec<(u64, u64)>) {
    let mut sorted = parts.clone();
    sorted.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (start, end) in sorted {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    if merged.len() != parts.len() {
        *parts = merged;
    }
}
