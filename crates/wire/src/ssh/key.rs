//! Public keys and signatures: Ed25519 (RFC 8709), ECDSA (RFC 5656), RSA with SHA-2 (RFC 8332), and
//! those of security tokens (OpenSSH, PROTOCOL.u2f).

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED, ED25519,
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA512, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};
use base::base64;

use super::codec::{Malformed, Put, Reader, Result};

/// Signature algorithms that we check, the preferred first: what `server-sig-algs` lists.
pub const SIGNATURES: [&str; 8] = [
    "ssh-ed25519",
    "sk-ssh-ed25519@openssh.com",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ecdsa-sha2-nistp256@openssh.com",
    "rsa-sha2-512",
    "rsa-sha2-256",
];

/// Largest RSA modulus in bytes: more costs the server more than it is worth (8192 bits).
const RSA_MODULUS_MAX: usize = 1024;

/// A signature does not match, or its algorithm is not supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid signature")]
pub struct BadSignature;

impl From<Malformed> for BadSignature {
    fn from(_: Malformed) -> Self {
        Self
    }
}

/// A public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublicKey<'a> {
    /// Ed25519.
    Ed25519(&'a [u8]),
    /// A point on a NIST curve.
    Ecdsa(Curve, &'a [u8]),
    /// Exponent and modulus, without leading zeros.
    Rsa(&'a [u8], &'a [u8]),
    /// Ed25519 in a token, for an application.
    SkEd25519(&'a [u8], &'a [u8]),
    /// ECDSA on P-256 in a token, for an application.
    SkEcdsa(&'a [u8], &'a [u8]),
}

/// A NIST curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Curve {
    /// nistp256
    P256,
    /// nistp384
    P384,
    /// nistp521
    P521,
}

impl Curve {
    /// Its name in SSH.
    pub fn name(self) -> &'static str {
        match self {
            Self::P256 => "nistp256",
            Self::P384 => "nistp384",
            Self::P521 => "nistp521",
        }
    }

    fn field(self) -> usize {
        match self {
            Self::P256 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }

    fn verification(self) -> &'static dyn VerificationAlgorithm {
        match self {
            Self::P256 => &ECDSA_P256_SHA256_FIXED,
            Self::P384 => &ECDSA_P384_SHA384_FIXED,
            Self::P521 => &ECDSA_P521_SHA512_FIXED,
        }
    }
}

impl<'a> PublicKey<'a> {
    /// Reads a key as it is on the wire and in files, its type before it.
    ///
    /// # Errors
    /// When it is broken, or of a kind that we do not know.
    pub fn decode(blob: &'a [u8]) -> Result<Self> {
        let mut r = Reader::new(blob);
        let kind = r.name("key type")?;
        let key = Self::decode_body(kind, &mut r)?;
        r.end()?;
        Ok(key)
    }

    /// Reads what follows the type.
    ///
    /// # Errors
    /// As [`PublicKey::decode`].
    pub fn decode_body(kind: &str, r: &mut Reader<'a>) -> Result<Self> {
        let ecdsa = |r: &mut Reader<'a>, curve: Curve| {
            if r.name("curve")? != curve.name() {
                return Err(Malformed::Value("curve"));
            }
            let point = r.string("point")?;
            // Uncompressed points only (RFC 5656, section 3.1).
            match point {
                [4, rest @ ..] if rest.len() == 2 * curve.field() => Ok(point),
                _ => Err(Malformed::Value("point")),
            }
        };
        let ed25519 = |r: &mut Reader<'a>| {
            let key = r.string("key")?;
            if key.len() == 32 { Ok(key) } else { Err(Malformed::Value("key")) }
        };
        Ok(match kind {
            "ssh-ed25519" => Self::Ed25519(ed25519(r)?),
            "ecdsa-sha2-nistp256" => Self::Ecdsa(Curve::P256, ecdsa(r, Curve::P256)?),
            "ecdsa-sha2-nistp384" => Self::Ecdsa(Curve::P384, ecdsa(r, Curve::P384)?),
            "ecdsa-sha2-nistp521" => Self::Ecdsa(Curve::P521, ecdsa(r, Curve::P521)?),
            "ssh-rsa" => {
                let (e, n) = (r.mpint("exponent")?, r.mpint("modulus")?);
                if n.len() > RSA_MODULUS_MAX || e.len() > 8 {
                    return Err(Malformed::Long("modulus"));
                }
                Self::Rsa(e, n)
            }
            "sk-ssh-ed25519@openssh.com" => {
                Self::SkEd25519(ed25519(r)?, r.string_max(255, "application")?)
            }
            "sk-ecdsa-sha2-nistp256@openssh.com" => {
                Self::SkEcdsa(ecdsa(r, Curve::P256)?, r.string_max(255, "application")?)
            }
            _ => return Err(Malformed::Value("key type")),
        })
    }

    /// The type of the key.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Ed25519(_) => "ssh-ed25519",
            Self::Ecdsa(Curve::P256, _) => "ecdsa-sha2-nistp256",
            Self::Ecdsa(Curve::P384, _) => "ecdsa-sha2-nistp384",
            Self::Ecdsa(Curve::P521, _) => "ecdsa-sha2-nistp521",
            Self::Rsa(..) => "ssh-rsa",
            Self::SkEd25519(..) => "sk-ssh-ed25519@openssh.com",
            Self::SkEcdsa(..) => "sk-ecdsa-sha2-nistp256@openssh.com",
        }
    }

    /// Appends the key with its type before it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_string(self.kind().as_bytes());
        match self {
            Self::Ed25519(key) => out.put_string(key),
            Self::Ecdsa(curve, point) => {
                out.put_string(curve.name().as_bytes());
                out.put_string(point);
            }
            Self::Rsa(e, n) => {
                out.put_mpint(e);
                out.put_mpint(n);
            }
            Self::SkEd25519(key, application) => {
                out.put_string(key);
                out.put_string(application);
            }
            Self::SkEcdsa(point, application) => {
                out.put_string(Curve::P256.name().as_bytes());
                out.put_string(point);
                out.put_string(application);
            }
        }
    }

    /// Whether `algorithm` makes signatures with this kind of key. SHA-1 is not among them.
    pub fn signs(&self, algorithm: &str) -> bool {
        match self {
            Self::Rsa(..) => matches!(algorithm, "rsa-sha2-256" | "rsa-sha2-512"),
            other => other.kind() == algorithm,
        }
    }

    /// Checks that `signature` (with its algorithm in it, which must be `algorithm`) is one of
    /// `message` by this key. Tokens must have been touched.
    ///
    /// # Errors
    /// [`BadSignature`]
    pub fn verify(
        &self,
        algorithm: &str,
        message: &[u8],
        signature: &[u8],
    ) -> std::result::Result<(), BadSignature> {
        let mut r = Reader::new(signature);
        if r.name("signature algorithm")? != algorithm || !self.signs(algorithm) {
            return Err(BadSignature);
        }
        let bytes = r.string("signature")?;
        let verified = match self {
            Self::Ed25519(key) => UnparsedPublicKey::new(&ED25519, key).verify(message, bytes),
            Self::Ecdsa(curve, point) => return ecdsa(*curve, point, message, bytes),
            Self::Rsa(e, n) => {
                let parameters = match algorithm {
                    "rsa-sha2-512" => &RSA_PKCS1_2048_8192_SHA512,
                    _ => &RSA_PKCS1_2048_8192_SHA256,
                };
                RsaPublicKeyComponents { n, e }.verify(parameters, message, bytes)
            }
            Self::SkEd25519(key, application) => {
                let message = token_message(application, message, &mut r)?;
                UnparsedPublicKey::new(&ED25519, key).verify(&message, bytes)
            }
            Self::SkEcdsa(point, application) => {
                let message = token_message(application, message, &mut r)?;
                return ecdsa(Curve::P256, point, &message, bytes);
            }
        };
        r.end()?;
        verified.map_err(|_| BadSignature)
    }
}

/// ECDSA signatures are two numbers (RFC 5656, section 3.1.2); the library wants them at full
/// length.
fn ecdsa(
    curve: Curve,
    point: &[u8],
    message: &[u8],
    bytes: &[u8],
) -> std::result::Result<(), BadSignature> {
    let mut r = Reader::new(bytes);
    let mut fixed = Vec::with_capacity(2 * curve.field());
    for number in [r.mpint("r")?, r.mpint("s")?] {
        let pad = curve.field().checked_sub(number.len()).ok_or(BadSignature)?;
        fixed.resize(fixed.len() + pad, 0);
        fixed.extend_from_slice(number);
    }
    r.end()?;
    let key = UnparsedPublicKey::new(curve.verification(), point);
    key.verify(message, &fixed).map_err(|_| BadSignature)
}

/// What a token signs; reads its flags and counter, which follow the signature.
fn token_message(
    application: &[u8],
    message: &[u8],
    r: &mut Reader<'_>,
) -> std::result::Result<Vec<u8>, BadSignature> {
    let (flags, counter) = (r.byte("flags")?, r.u32("counter")?);
    r.end()?;
    // User presence: the token was touched. OpenSSH requires it, too, unless a key's line has
    // `no-touch-required`.
    if flags & 1 == 0 {
        return Err(BadSignature);
    }
    let mut signed = digest(&SHA256, application).as_ref().to_vec();
    signed.put_byte(flags);
    signed.put_u32(counter);
    signed.put_raw(digest(&SHA256, message).as_ref());
    Ok(signed)
}

/// The fingerprint of a key in OpenSSH's format: SHA-256 in base 64.
pub fn fingerprint(blob: &[u8]) -> String {
    let text = base64::encode(digest(&SHA256, blob).as_ref());
    format!("SHA256:{}", text.trim_end_matches('='))
}

/// What a key is written as in text files: line ends are passed over. `None` when it is not base
/// 64.
pub(super) fn from_base64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches(|c: char| c == '=' || c.is_ascii_whitespace());
    let letters: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    base64::decode(&letters)
}
