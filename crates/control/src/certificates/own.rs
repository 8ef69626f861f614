//! The appliance's own certificate, which exists from the first start: signed by its own CA, which
//! users need to trust only once, and renewed automatically. `docs/decisions/own-authority.md` has
//! the reasons.
//!
//! The CA may only sign for this host's names and for private addresses, so that its key cannot be
//! used against other sites. Names beyond that require a new CA.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::time::Duration;

use base::limits::{OWN_AUTHORITY_LIFE, OWN_CERTIFICATE_BACKDATE, OWN_CERTIFICATE_LIFE};
use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    NameConstraints,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::pair::Pair;
use super::x509::Facts;
use crate::state::StateError;
use crate::state::files::{random_hex, read_if_there, write_atomic};
use crate::state::keys::Identity;

/// Marks a certificate as created by this program, with its names.
const NAMES: &str = "# made by plimsoll for: ";
/// The same of a CA: what it may sign for in addition to private addresses.
const MAY_SIGN: &str = "# made by plimsoll to sign for: ";
/// A CA with less time left is replaced: what it signs must not outlive it.
const AUTHORITY_LEFT: Duration = Duration::from_secs(365 * 24 * 3600);

/// Networks for which an own CA may always sign: unassigned ones, or those of this site only.
const PRIVATE_V4: [([u8; 4], u8); 6] = [
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 168, 0, 0], 16),
];
const PRIVATE_V6: [(u16, u8); 2] = [(0xfc00, 7), (0xfe80, 10)];

/// The certificate and the CA that has signed it.
pub struct Own {
    /// Certificate with its CA, and key.
    pub identity: Identity,
    /// What is in the certificate.
    pub facts: Facts,
    /// The CA, PEM; none if the administrator has supplied the certificate.
    pub authority: Option<String>,
}

/// A CA with its key.
struct Authority {
    pem: String,
    facts: Facts,
    key: KeyPair,
}

impl Own {
    /// Reads the certificate in the state directory, and creates it and its CA if they are
    /// missing, do not cover `names`, or come to their end. One that the administrator has put
    /// there is left alone; else a `fresh` one is made in any case.
    ///
    /// # Errors
    /// [`StateError`]; [`StateError::Damaged`] if what the administrator has put there is not good.
    pub fn open(dir: &Path, names: &[String], now: u64, fresh: bool) -> Result<Self, StateError> {
        let (certificate, key) = (dir.join("certificate.pem"), dir.join("key.pem"));
        let have = text(&certificate)?.zip(text(&key)?);
        if let Some((chain, key)) = &have
            && !chain.starts_with(NAMES)
        {
            return Self::theirs(&certificate, chain, key);
        }
        let authority = match Authority::read(dir)? {
            Some(authority) if authority.is_good(names, now) => authority,
            _ => Authority::make(dir, names, now)?,
        };
        if let Some((chain, key)) = &have
            && !fresh
            && let Some(own) = Self::good(chain, key, &authority, names, now)
        {
            return Ok(own);
        }
        let (chain, key_pem) = authority.sign(names, now)?;
        // The key first: a certificate without its key would never be replaced.
        write_atomic(&key, key_pem.as_bytes(), 0o600)?;
        write_atomic(&certificate, chain.as_bytes(), 0o600)?;
        Self::good(&chain, &key_pem, &authority, names, now)
            .ok_or_else(|| damaged(&certificate, "the new certificate is not valid"))
    }

    fn theirs(path: &Path, chain: &str, key: &str) -> Result<Self, StateError> {
        let Pair { identity, facts, .. } =
            Pair::read(chain, key).map_err(|wrong| damaged(path, &wrong.sentence))?;
        Ok(Self { identity, facts, authority: None })
    }

    /// The existing certificate, if it is still usable.
    fn good(
        chain: &str,
        key: &str,
        authority: &Authority,
        names: &[String],
        now: u64,
    ) -> Option<Self> {
        let Pair { identity, facts, .. } = Pair::read(chain, key).ok()?;
        let ours = chain.contains(authority.certificate()?);
        let good = ours && is_listed(chain, NAMES, names);
        (good && facts.begins <= now && now < facts.renews()).then(|| Self {
            identity,
            facts,
            authority: Some(authority.pem.clone()),
        })
    }
}

impl Authority {
    fn read(dir: &Path) -> Result<Option<Self>, StateError> {
        let have = text(&dir.join(AUTHORITY))?.zip(text(&dir.join(AUTHORITY_KEY))?);
        Ok(have.and_then(|(pem, key)| {
            let der = CertificateDer::from_pem_slice(pem.as_bytes()).ok()?;
            let facts = Facts::read(&der)?;
            Some(Self { facts, key: KeyPair::from_pem(&key).ok()?, pem })
        }))
    }

    fn is_good(&self, names: &[String], now: u64) -> bool {
        let in_time = self.facts.begins <= now && now + AUTHORITY_LEFT.as_secs() < self.facts.ends;
        let listed = self.pem.lines().next().and_then(|line| line.strip_prefix(MAY_SIGN));
        let listed: Vec<&str> = listed.map(|line| line.split(' ').collect()).unwrap_or_default();
        in_time && names.iter().all(|name| may_sign(&listed, name))
    }

    fn make(dir: &Path, names: &[String], now: u64) -> Result<Self, StateError> {
        let listed: Vec<&str> =
            names.iter().map(String::as_str).filter(|name| !is_private(name)).collect();
        let host = listed.iter().find(|name| **name != "localhost").unwrap_or(&"localhost");
        let host: String = host.chars().take(40).collect();
        let key = KeyPair::generate()?;
        let mut params = signer(&format!("plimsoll on {host} {}", random_hex::<4>()));
        lasts(&mut params, now, OWN_AUTHORITY_LIFE);
        params.name_constraints = Some(NameConstraints {
            permitted_subtrees: subtrees(&listed),
            excluded_subtrees: Vec::new(),
        });
        let made = params.self_signed(&key)?;
        let facts = Facts::read(made.der())
            .ok_or_else(|| damaged(&dir.join(AUTHORITY), "the new certificate cannot be read"))?;
        let pem = format!("{MAY_SIGN}{}\n{}", listed.join(" "), made.pem());
        write_atomic(&dir.join(AUTHORITY_KEY), key.serialize_pem().as_bytes(), 0o600)?;
        write_atomic(&dir.join(AUTHORITY), pem.as_bytes(), 0o600)?;
        Ok(Self { pem, facts, key })
    }

    /// The PEM without the line above it.
    fn certificate(&self) -> Option<&str> {
        self.pem.find("-----BEGIN").and_then(|at| self.pem.get(at..))
    }

    /// A certificate with this CA appended, and its key.
    fn sign(&self, names: &[String], now: u64) -> Result<(String, String), StateError> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(names.to_vec())?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "plimsoll");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        lasts(&mut params, now, OWN_CERTIFICATE_LIFE);
        let issuer = Issuer::new(signer(&self.facts.subject), &self.key);
        let made = params.signed_by(&key, &issuer)?;
        let authority = self.certificate().unwrap_or_default();
        let chain = format!("{NAMES}{}\n{}{authority}", names.join(" "), made.pem());
        Ok((chain, key.serialize_pem()))
    }
}

/// The files of the CA.
pub const AUTHORITY: &str = "authority.pem";
const AUTHORITY_KEY: &str = "authority-key.pem";

/// Common parameters of a CA when it is created and when it signs.
fn signer(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    // It signs hosts, no other CAs.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

fn lasts(params: &mut CertificateParams, now: u64, life: Duration) {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let begins = Duration::from_secs(now).saturating_sub(OWN_CERTIFICATE_BACKDATE);
    params.not_before = epoch + begins;
    params.not_after = epoch + begins + life;
}

/// What a CA may sign for: its names, and private addresses.
fn subtrees(names: &[&str]) -> Vec<GeneralSubtree> {
    let mut all: Vec<GeneralSubtree> = PRIVATE_V4
        .iter()
        .map(|(network, length)| CidrSubnet::from_v4_prefix(*network, *length))
        .chain(PRIVATE_V6.iter().map(|(first, length)| {
            let mut network = [0; 16];
            network[..2].copy_from_slice(&first.to_be_bytes());
            CidrSubnet::from_v6_prefix(network, *length)
        }))
        .map(GeneralSubtree::IpAddress)
        .collect();
    let loopback = IpAddr::V6(Ipv6Addr::LOCALHOST);
    all.push(GeneralSubtree::IpAddress(CidrSubnet::from_addr_prefix(loopback, 128)));
    all.extend(names.iter().map(|name| match name.parse::<IpAddr>() {
        Ok(address) => {
            let length = if address.is_ipv4() { 32 } else { 128 };
            GeneralSubtree::IpAddress(CidrSubnet::from_addr_prefix(address, length))
        }
        Err(_) => GeneralSubtree::DnsName((*name).to_owned()),
    }));
    all
}

/// Whether a name is an address in one of the networks for which every own CA may sign.
pub fn is_private(name: &str) -> bool {
    match name.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => PRIVATE_V4.iter().any(|(network, length)| {
            let mask = u32::MAX << (32 - u32::from(*length));
            address.to_bits() & mask == Ipv4Addr::from(*network).to_bits()
        }),
        Ok(IpAddr::V6(address)) => {
            let first = address.segments()[0];
            let within = |(network, length): &(u16, u8)| {
                first & (u16::MAX << (16 - u16::from(*length))) == *network
            };
            address.is_loopback() || PRIVATE_V6.iter().any(within)
        }
        Err(_) => false,
    }
}

/// RFC 5280 §4.2.1.10: a name permits itself and what is below it.
fn may_sign(listed: &[&str], name: &str) -> bool {
    let permits = |one: &&str| {
        name.strip_suffix(*one).is_some_and(|left| {
            left.is_empty() || left.ends_with('.') && one.parse::<IpAddr>().is_err()
        })
    };
    is_private(name) || listed.iter().any(permits)
}

/// Whether all names are in the first line, behind its mark.
fn is_listed(pem: &str, mark: &str, names: &[String]) -> bool {
    let line = pem.lines().next().and_then(|line| line.strip_prefix(mark)).unwrap_or("");
    names.iter().all(|name| line.split(' ').any(|one| one == name))
}

fn text(path: &Path) -> Result<Option<String>, StateError> {
    Ok(read_if_there(path)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

fn damaged(path: &Path, reason: &str) -> StateError {
    StateError::Damaged { path: path.to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests;
