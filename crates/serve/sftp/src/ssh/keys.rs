//! Whether a public key, or a certificate, may sign a user in.

use std::net::IpAddr;

use base::limits::SSH_KEYS_MAX;
use base::text::decimal;
use base::units::Civil;
use vfs::share::rules::Net;
use wire::ssh::authorized::{AuthorizedKey, matches_list};
use wire::ssh::cert::{Certificate, Kind, plain_algorithm};
use wire::ssh::codec::Reader;
use wire::ssh::key::{PublicKey, SIGNATURES};

/// What is known when a key is offered.
pub(super) struct Offer<'a> {
    pub(super) user: &'a str,
    pub(super) from: IpAddr,
    /// Seconds since 1970.
    pub(super) now_s: u64,
    /// The user's own lines.
    pub(super) lines: &'a [String],
    /// Authorities for all users.
    pub(super) authorities: &'a [String],
}

/// The key that a signature must be made with, and by which algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accepted<'a> {
    pub(super) key: PublicKey<'a>,
    pub(super) algorithm: &'a str,
}

impl Offer<'_> {
    /// Judges the key `blob` for signatures by `algorithm`. None if it may not sign in, whyever.
    pub(super) fn judge<'b>(&self, algorithm: &'b str, blob: &'b [u8]) -> Option<Accepted<'b>> {
        let Some(plain) = plain_algorithm(algorithm) else {
            let key = PublicKey::decode(blob).ok()?;
            let known = key.signs(algorithm) && SIGNATURES.contains(&algorithm);
            let found =
                self.own().any(|line| !line.authority && line.blob == blob && self.holds(&line));
            return (known && found).then_some(Accepted { key, algorithm });
        };
        let certificate = Certificate::decode(blob).ok()?;
        let named = Reader::new(blob).name("certificate type").ok().and_then(plain_algorithm)?;
        let key = certificate.key;
        let known = key.signs(plain) && SIGNATURES.contains(&plain) && named == key.kind();
        (known && self.certified(&certificate)).then_some(Accepted { key, algorithm: plain })
    }

    fn own(&self) -> impl Iterator<Item = AuthorizedKey> + '_ {
        self.lines.iter().take(SSH_KEYS_MAX).filter_map(|line| AuthorizedKey::parse(line))
    }

    /// Whether the conditions of the line hold.
    fn holds(&self, line: &AuthorizedKey) -> bool {
        let from = |list: &String| address_matches(self.from, list);
        // A date that cannot be read is taken as passed.
        let current = |text: &String| expiry_s(text).is_some_and(|end| self.now_s < end);
        !line.command
            && line.from.as_ref().is_none_or(from)
            && line.expiry.as_ref().is_none_or(current)
    }

    fn certified(&self, certificate: &Certificate<'_>) -> bool {
        let own = self.own().filter(|line| line.authority).map(|line| (line, true));
        let all = self.authorities.iter().filter_map(|line| AuthorizedKey::parse(line));
        let found = own.chain(all.map(|line| (line, false))).any(|(line, is_own)| {
            line.blob == certificate.authority
                && self.holds(&line)
                && self.has_principal(certificate, &line, is_own)
        });
        found
            && certificate.kind == Kind::User
            && certificate.is_current(self.now_s)
            && certificate.critical.iter().all(|(name, value)| self.critical(name, value))
            && certificate.check().is_ok()
    }

    /// A certificate is valid for the principals in it. An empty list is valid for every user in a
    /// `cert-authority` line of the user's own file, as in OpenSSH; with the CAs of all users it is
    /// valid for no user.
    fn has_principal(
        &self,
        certificate: &Certificate<'_>,
        line: &AuthorizedKey,
        own: bool,
    ) -> bool {
        let names = &certificate.principals;
        match &line.principals {
            Some(list) => list.split(',').any(|name| names.contains(&name)),
            None if own && names.is_empty() => true,
            None => names.contains(&self.user),
        }
    }

    fn critical(&self, name: &str, value: &[u8]) -> bool {
        match name {
            "source-address" => Reader::new(value)
                .text("source-address")
                .is_ok_and(|list| address_matches(self.from, list)),
            // `force-command` excludes SFTP, and an unknown critical option refuses the
            // certificate.
            _ => false,
        }
    }
}

/// Whether an address is one of a list of patterns and of networks such as `10.0.0.0/8`.
fn address_matches(from: IpAddr, list: &str) -> bool {
    let text = from.to_string();
    let mut matched = false;
    for entry in list.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let (not, entry) = entry.strip_prefix('!').map_or((false, entry), |entry| (true, entry));
        if in_network(from, entry).unwrap_or_else(|| matches_list(&text, entry)) {
            if not {
                return false;
            }
            matched = true;
        }
    }
    matched
}

/// None if `entry` is no network.
fn in_network(from: IpAddr, entry: &str) -> Option<bool> {
    let (network, bits) = entry.split_once('/')?;
    let network = Net::new(network.parse().ok()?, decimal(bits)?)?;
    Some(network.holds(from))
}

/// The end of a time such as `20270131` or `202701311200[30]`, taken as UTC whether `Z` follows or
/// not, in seconds since 1970.
fn expiry_s(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('Z').unwrap_or(text);
    if !digits.bytes().all(|b| b.is_ascii_digit()) || ![8, 12, 14].contains(&digits.len()) {
        return None;
    }
    let part =
        |at: usize, n: usize| digits.get(at..at + n).map_or(Some(0), |d| d.parse::<i64>().ok());
    let (year, month, day) = (part(0, 4)?, part(4, 2)?, part(6, 2)?);
    let (hour, minute, second) = (part(8, 2)?, part(10, 2)?, part(12, 2)?);
    let valid = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !valid {
        return None;
    }
    u64::try_from(Civil { year, month, day, hour, minute, second }.seconds()).ok()
}

#[cfg(test)]
mod tests;
