//! The common name of the subject of a certificate (X.509, RFC 5280 §4.1), for people.
//!
//! The certificate was verified, so this is only about finding the place; whatever is not as
//! expected has no name.

use base::der::{OBJECT, SEQUENCE, SET, next};

/// The version's tag.
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

#[cfg(test)]
mod tests;
