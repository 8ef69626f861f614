//! OpenSSH's certificates (PROTOCOL.certkeys): a public key with the statements of a CA about it.

use super::codec::{Malformed, Reader, Result};
use super::key::{BadSignature, PublicKey};

/// The suffix of certificate types.
const SUFFIX: &str = "-cert-v01@openssh.com";
/// Most principals that a certificate may name, as in OpenSSH.
const PRINCIPALS_MAX: usize = 256;

/// The subject of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A user.
    User,
    /// A host.
    Host,
}

/// A certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate<'a> {
    /// The certified key.
    pub key: PublicKey<'a>,
    /// A number by which it may be revoked.
    pub serial: u64,
    /// For users or for hosts.
    pub kind: Kind,
    /// The key id, for logs.
    pub id: &'a [u8],
    /// Principals for which it is valid.
    pub principals: Vec<&'a str>,
    /// From when, in seconds since 1970.
    pub after: u64,
    /// Until before when, in seconds since 1970.
    pub before: u64,
    /// Critical options: it is valid only if all of them are understood and hold; name and value.
    pub critical: Vec<(&'a str, &'a [u8])>,
    /// The key of the CA as a blob.
    pub authority: &'a [u8],
    signed: &'a [u8],
    signature: &'a [u8],
}

/// The type of the plain key, when `algorithm` is one of certificates: `ssh-rsa` for RSA of any
/// hash.
pub fn plain_algorithm(algorithm: &str) -> Option<&str> {
    algorithm.strip_suffix(SUFFIX).map(|plain| match plain {
        "sk-ssh-ed25519" => "sk-ssh-ed25519@openssh.com",
        "sk-ecdsa-sha2-nistp256" => "sk-ecdsa-sha2-nistp256@openssh.com",
        plain => plain,
    })
}

/// Name and value of each option.
fn options(bytes: &[u8]) -> Result<Vec<(&str, &[u8])>> {
    let (mut r, mut all) = (Reader::new(bytes), Vec::new());
    while !r.rest().is_empty() {
        all.push((r.name("option")?, r.string("option value")?));
    }
    Ok(all)
}

impl<'a> Certificate<'a> {
    /// Reads a certificate. Its signature is not verified: [`Certificate::check`].
    ///
    /// # Errors
    /// When it is broken, or of a kind that we do not know.
    pub fn decode(blob: &'a [u8]) -> Result<Self> {
        let mut r = Reader::new(blob);
        let kind = plain_algorithm(r.name("certificate type")?)
            .ok_or(Malformed::Value("certificate type"))?;
        r.string("nonce")?;
        let key = PublicKey::decode_body(kind, &mut r)?;
        let serial = r.u64("serial")?;
        let kind = match r.u32("type")? {
            1 => Kind::User,
            2 => Kind::Host,
            _ => return Err(Malformed::Value("type")),
        };
        let id = r.string("key id")?;
        let (mut names, mut principals) = (Reader::new(r.string("principals")?), Vec::new());
        while !names.rest().is_empty() {
            if principals.len() == PRINCIPALS_MAX {
                return Err(Malformed::Long("principals"));
            }
            principals.push(names.text("principal")?);
        }
        let (after, before) = (r.u64("valid after")?, r.u64("valid before")?);
        let critical = options(r.string("critical options")?)?;
        // Extensions allow what we do not offer (terminals, forwarding): nothing to do.
        options(r.string("extensions")?)?;
        r.string("reserved")?;
        let authority = r.string("signature key")?;
        let length = blob.len() - r.rest().len();
        let signed = blob.get(..length).unwrap_or_default();
        let signature = r.string("signature")?;
        r.end()?;
        Ok(Self {
            key,
            serial,
            kind,
            id,
            principals,
            after,
            before,
            critical,
            authority,
            signed,
            signature,
        })
    }

    /// Checks that the authority that it names has signed it. Whether that one is trusted is the
    /// caller's question.
    ///
    /// # Errors
    /// [`BadSignature`]; also when the authority is itself a certificate.
    pub fn check(&self) -> std::result::Result<(), BadSignature> {
        let authority = PublicKey::decode(self.authority)?;
        let algorithm = Reader::new(self.signature).name("signature algorithm")?;
        authority.verify(algorithm, self.signed, self.signature)
    }

    /// Whether `now`, in seconds since 1970, is in the time it is good for.
    pub fn is_current(&self, now: u64) -> bool {
        self.after <= now && now < self.before
    }
}
