//! The fields of a certificate that are shown or used (RFC 5280 §4.1): its subject, its issuer, its
//! names, its validity, its fingerprint. Signatures are not verified here.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base::der::{OBJECT, OCTETS, SEQUENCE, SET, next, values};
use base::limits::CERTIFICATE_NAMES_MAX;
use base::units::days_from_civil;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// Tags of the version, of the extensions, and of true.
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
const BOOLEAN: u8 = 0x01;
/// Tags of times (RFC 5280 §4.1.2.5).
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// id-at-commonName, id-ce-subjectAltName, id-ce-basicConstraints.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
const CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
/// GeneralName: dNSName and iPAddress (RFC 5280 §4.2.1.6).
const DNS_NAME: u8 = 0x82;
const ADDRESS: u8 = 0x87;

/// What is in a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Common name of its subject, or nothing.
    pub subject: String,
    /// Common name of the issuer, or nothing.
    pub issuer: String,
    /// Subject and issuer in their encoded form: to compare.
    pub chain: (Vec<u8>, Vec<u8>),
    /// Hosts' names and addresses that it is for.
    pub names: Vec<String>,
    /// When it begins, seconds since the epoch.
    pub begins: u64,
    /// When it ends, seconds since the epoch.
    pub ends: u64,
    /// Whether it may sign others.
    pub authority: bool,
    /// SHA-256 of the whole, as browsers show it.
    pub fingerprint: String,
}

impl Facts {
    /// Reads a certificate; `None` if it is none.
    pub fn read(der: &[u8]) -> Option<Self> {
        let (SEQUENCE, certificate, _) = next(der)? else { return None };
        let (SEQUENCE, signed, _) = next(certificate)? else { return None };
        let mut fields = values(signed).skip_while(|(tag, _)| *tag == VERSION);
        let (_serial, _algorithm) = (fields.next()?, fields.next()?);
        let ((SEQUENCE, issuer), (SEQUENCE, valid)) = (fields.next()?, fields.next()?) else {
            return None;
        };
        let (SEQUENCE, subject) = fields.next()? else { return None };
        let mut times = values(valid);
        let (begins, ends) = (seconds(times.next()?)?, seconds(times.next()?)?);
        let mut facts = Self {
            subject: common_name(subject).unwrap_or_default(),
            issuer: common_name(issuer).unwrap_or_default(),
            chain: (subject.to_vec(), issuer.to_vec()),
            names: Vec::new(),
            begins,
            ends,
            authority: false,
            fingerprint: fingerprint(der),
        };
        if let Some((_, extensions)) = fields.find(|(tag, _)| *tag == EXTENSIONS) {
            let (SEQUENCE, extensions, _) = next(extensions)? else { return None };
            values(extensions).for_each(|(_, one)| facts.extension(one));
        }
        Some(facts)
    }

    /// Reads the first certificate of a PEM text; `None` if there is none.
    pub fn of_pem(pem: &str) -> Option<Self> {
        Self::read(&CertificateDer::from_pem_slice(pem.as_bytes()).ok()?)
    }

    fn extension(&mut self, extension: &[u8]) {
        let mut parts = values(extension);
        let Some((OBJECT, kind)) = parts.next() else { return };
        let Some((_, content)) = parts.find(|(tag, _)| *tag == OCTETS) else { return };
        let Some((SEQUENCE, content, _)) = next(content) else { return };
        match kind {
            CONSTRAINTS => self.authority = values(content).any(|one| one == (BOOLEAN, &[0xff])),
            ALTERNATIVE_NAMES => {
                let names = values(content).filter_map(|(tag, name)| shown(tag, name));
                self.names = names.take(CERTIFICATE_NAMES_MAX).collect();
            }
            _ => {}
        }
    }

    /// Whether it is for this host's name or address (RFC 6125 §6.4: a star is the leftmost label).
    pub fn is_for(&self, host: &str) -> bool {
        let rest = || host.split_once('.').map(|(_, rest)| rest);
        self.names.iter().any(|name| {
            name.eq_ignore_ascii_case(host)
                || name.strip_prefix("*.").is_some_and(|domain| {
                    rest().is_some_and(|rest| rest.eq_ignore_ascii_case(domain))
                })
        })
    }

    /// Whether `above` may have signed it, by the names.
    pub fn is_from(&self, above: &Self) -> bool {
        self.chain.1 == above.chain.0
    }

    /// When two thirds of its life are over: time to have the next one.
    pub fn renews(&self) -> u64 {
        self.ends.saturating_sub(self.ends.saturating_sub(self.begins) / 3)
    }
}

fn shown(tag: u8, name: &[u8]) -> Option<String> {
    match tag {
        DNS_NAME if name.iter().all(u8::is_ascii_graphic) => String::from_utf8(name.to_vec()).ok(),
        ADDRESS => {
            let four = <[u8; 4]>::try_from(name).map(|a| IpAddr::V4(Ipv4Addr::from(a)));
            let six = <[u8; 16]>::try_from(name).map(|a| IpAddr::V6(Ipv6Addr::from(a)));
            four.or(six).ok().map(|address| address.to_string())
        }
        _ => None,
    }
}

fn common_name(name: &[u8]) -> Option<String> {
    for (_, set) in values(name).filter(|(tag, _)| *tag == SET) {
        let (SEQUENCE, pair, _) = next(set)? else { return None };
        let mut pair = values(pair);
        if pair.next()? == (OBJECT, COMMON_NAME) {
            let text = String::from_utf8_lossy(pair.next()?.1).into_owned();
            return (!text.chars().any(char::is_control)).then_some(text);
        }
    }
    None
}

/// `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ` as seconds since the epoch.
fn seconds((tag, text): (u8, &[u8])) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let (year, rest) = match tag {
        // RFC 5280 §4.1.2.5.1: from 50 on it is the last century.
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year: i64 = year.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    let two = |at: usize| rest.get(at..at + 2)?.parse::<i64>().ok();
    let (month, day) = (two(0)?, two(2)?);
    let (hour, minute, second) = (two(4)?, two(6)?, two(8)?);
    let in_range = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 61
        && rest.len() == 10;
    let days = days_from_civil(year, month, day);
    let all = days * 86_400 + hour * 3_600 + minute * 60 + second;
    in_range.then_some(u64::try_from(all).unwrap_or(0))
}

/// SHA-256, pairs of digits between colons.
pub fn fingerprint(der: &[u8]) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, der);
    let pairs: Vec<String> = digest.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
    pairs.join(":")
}

#[cfg(test)]
mod tests;
