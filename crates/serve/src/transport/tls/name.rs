//! Whose certificate it is: the common name of its subject (X.509, RFC 5280 §4.1), for people.
//!
//! The certificate was verified, so this is only about finding the place; whatever is not as
//! expected has no name.

/// SEQUENCE, SET, INTEGER and OBJECT IDENTIFIER in DER, and the version's tag.
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT: u8 = 0x06;
const VERSION: u8 = 0xa0;
/// id-at-commonName, 2.5.4.3.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// Longest name (RFC 5280, appendix A, ub-common-name).
const NAME_MAX: usize = 64;

/// The common name, if there is one that can be shown.
pub fn common_name(certificate: &[u8]) -> Option<&[u8]> {
    let (_, certificate, _) = next(certificate)?;
    let (_, to_be_signed, _) = next(certificate)?;
    let (tag, _, behind) = next(to_be_signed)?;
    // Serial number, signature, issuer, validity come before it.
    let mut rest = if tag == VERSION { behind } else { to_be_signed };
    for _ in 0..4 {
        rest = next(rest)?.2;
    }
    let (SEQUENCE, mut subject, _) = next(rest)? else { return None };
    while let Some((SET, set, behind)) = next(subject) {
        subject = behind;
        let (SEQUENCE, pair, _) = next(set)? else { return None };
        let (OBJECT, kind, value) = next(pair)? else { return None };
        if kind == COMMON_NAME {
            let (_, name, _) = next(value)?;
            let shown = !name.is_empty() && name.len() <= NAME_MAX;
            return (shown && name.iter().all(u8::is_ascii_graphic)).then_some(name);
        }
    }
    None
}

/// Tag and content of the value at the front, and what is behind it.
fn next(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = der.split_first_chunk::<2>()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81 => (usize::from(*rest.first()?), rest.get(1..)?),
        0x82 => {
            let (length, rest) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*length)), rest)
        }
        // No certificate is that long.
        _ => return None,
    };
    let (content, behind) = rest.split_at_checked(length)?;
    Some((tag, content, behind))
}

#[cfg(test)]
mod tests;
