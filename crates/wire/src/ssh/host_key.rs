//! Host keys, which authenticate a server: Ed25519 in OpenSSH's format (PROTOCOL.key), and RSA in
//! PKCS #8 (RFC 5208).

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rand::SystemRandom as LibraryRandom;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RSA_PKCS1_SHA512};
use base::random::Random;
use base::{base64, der};

use super::codec::{Put, Reader};
use super::key::{self, PublicKey};

const OPENSSH: &str = "OPENSSH PRIVATE KEY";
const PKCS8: &str = "PRIVATE KEY";
const MAGIC: &[u8] = b"openssh-key-v1\0";
/// Smallest RSA modulus of a host key, in bytes: 3072 bits last until 2030 and beyond (NIST SP
/// 800-57).
const RSA_MODULUS_MIN: usize = 384;

/// A key cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Neither an OpenSSH key without a passphrase nor PKCS #8.
    #[error("neither an Ed25519 key of OpenSSH without a passphrase, nor an RSA key in PKCS #8")]
    Format,
    /// Too short to be safe.
    #[error("an RSA host key must have 3072 bits or more")]
    Weak,
    /// The cryptographic library failed.
    #[error("the cryptographic library failed")]
    Library,
}

enum Pair {
    Ed25519(Ed25519KeyPair, [u8; 32]),
    Rsa(RsaKeyPair),
}

/// A host key, which authenticates a server.
pub struct HostKey {
    pair: Pair,
    blob: Vec<u8>,
}

impl std::fmt::Debug for HostKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostKey").field("fingerprint", &self.fingerprint()).finish_non_exhaustive()
    }
}

impl HostKey {
    /// A new Ed25519 key.
    ///
    /// # Errors
    /// [`KeyError::Library`]
    pub fn new_ed25519(random: &mut dyn Random) -> Result<Self, KeyError> {
        let mut seed = [0; 32];
        random.fill(&mut seed);
        Self::from_seed(seed)
    }

    /// A new RSA key of 3072 bits; takes a second. Its randomness is that of the library.
    ///
    /// # Errors
    /// [`KeyError::Library`]
    pub fn new_rsa() -> Result<Self, KeyError> {
        Self::from_rsa(RsaKeyPair::generate(KeySize::Rsa3072).map_err(|_| KeyError::Library)?)
    }

    fn from_seed(seed: [u8; 32]) -> Result<Self, KeyError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| KeyError::Library)?;
        let mut blob = Vec::new();
        PublicKey::Ed25519(pair.public_key().as_ref()).encode(&mut blob);
        Ok(Self { pair: Pair::Ed25519(pair, seed), blob })
    }

    fn from_rsa(pair: RsaKeyPair) -> Result<Self, KeyError> {
        // RSAPublicKey (RFC 8017, appendix A.1.1): modulus and exponent.
        let der = pair.public_key().as_ref().to_vec();
        let (_, numbers, _) = der::next(&der).ok_or(KeyError::Format)?;
        let mut values = der::values(numbers).map(|(_, value)| value);
        let (n, e) = (values.next(), values.next());
        let (n, e) = (n.ok_or(KeyError::Format)?, e.ok_or(KeyError::Format)?);
        let n = n.strip_prefix(&[0]).unwrap_or(n);
        if n.len() < RSA_MODULUS_MIN {
            return Err(KeyError::Weak);
        }
        let mut blob = Vec::new();
        PublicKey::Rsa(e, n).encode(&mut blob);
        Ok(Self { pair: Pair::Rsa(pair), blob })
    }

    /// Reads a key file.
    ///
    /// # Errors
    /// When it is neither of the two kinds, has a passphrase, or is too short.
    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        if let Some(bytes) = unarmour(text, OPENSSH) {
            return Self::from_seed(openssh_seed(&bytes).ok_or(KeyError::Format)?);
        }
        let bytes = unarmour(text, PKCS8).ok_or(KeyError::Format)?;
        Self::from_rsa(RsaKeyPair::from_pkcs8(&bytes).map_err(|_| KeyError::Format)?)
    }

    /// The key file: an OpenSSH key for Ed25519, PKCS #8 for RSA.
    ///
    /// # Errors
    /// [`KeyError::Library`]
    pub fn to_pem(&self) -> Result<String, KeyError> {
        match &self.pair {
            Pair::Ed25519(pair, seed) => {
                Ok(armour(OPENSSH, &openssh(pair.public_key().as_ref(), seed, &self.blob)))
            }
            Pair::Rsa(pair) => {
                let der: Pkcs8V1Der<'_> = pair.as_der().map_err(|_| KeyError::Library)?;
                Ok(armour(PKCS8, der.as_ref()))
            }
        }
    }

    /// The public key as it is on the wire.
    pub fn blob(&self) -> &[u8] {
        &self.blob
    }

    /// Signature algorithms, the preferred first.
    pub fn algorithms(&self) -> &'static [&'static str] {
        match self.pair {
            Pair::Ed25519(..) => &["ssh-ed25519"],
            Pair::Rsa(_) => &["rsa-sha2-512", "rsa-sha2-256"],
        }
    }

    /// The fingerprint in OpenSSH's format.
    pub fn fingerprint(&self) -> String {
        super::key::fingerprint(&self.blob)
    }

    /// The public key as a line of `known_hosts` has it after the host's name.
    pub fn public_line(&self) -> String {
        let kind = match self.pair {
            Pair::Ed25519(..) => "ssh-ed25519",
            Pair::Rsa(_) => "ssh-rsa",
        };
        format!("{kind} {}", base64::encode(&self.blob))
    }

    /// Signs `message`; the result has the algorithm in it.
    ///
    /// # Errors
    /// [`KeyError::Library`], also for an algorithm that is not the key's.
    pub fn sign(&self, algorithm: &str, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let mut out = Vec::new();
        out.put_string(algorithm.as_bytes());
        match (&self.pair, algorithm) {
            (Pair::Ed25519(pair, _), "ssh-ed25519") => {
                let signature = pair.try_sign(message).map_err(|_| KeyError::Library)?;
                out.put_string(signature.as_ref());
            }
            (Pair::Rsa(pair), "rsa-sha2-512" | "rsa-sha2-256") => {
                let mut signature = vec![0; pair.public_modulus_len()];
                let with = match algorithm {
                    "rsa-sha2-512" => &RSA_PKCS1_SHA512,
                    _ => &RSA_PKCS1_SHA256,
                };
                pair.sign(with, &LibraryRandom::new(), message, &mut signature)
                    .map_err(|_| KeyError::Library)?;
                out.put_string(&signature);
            }
            _ => return Err(KeyError::Library),
        }
        Ok(out)
    }
}

/// PEM around `bytes`, lines of 70 letters as ssh-keygen has them.
fn armour(label: &str, bytes: &[u8]) -> String {
    let text = base64::encode(bytes);
    let lines: Vec<&str> = text.as_bytes().chunks(70).flat_map(std::str::from_utf8).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

fn unarmour(text: &str, label: &str) -> Option<Vec<u8>> {
    let (_, rest) = text.split_once(&format!("-----BEGIN {label}-----"))?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    key::from_base64(body)
}

/// The secret of an Ed25519 key in OpenSSH's format, without a passphrase.
fn openssh_seed(bytes: &[u8]) -> Option<[u8; 32]> {
    let mut r = Reader::new(bytes.strip_prefix(MAGIC)?);
    let (cipher, kdf) = (r.name("cipher").ok()?, r.name("kdf").ok()?);
    r.string("kdf options").ok()?;
    if (cipher, kdf) != ("none", "none") || r.u32("keys").ok()? != 1 {
        return None;
    }
    r.string("public key").ok()?;
    let mut r = Reader::new(r.string("private keys").ok()?);
    if r.u32("check").ok()? != r.u32("check").ok()? || r.name("type").ok()? != "ssh-ed25519" {
        return None;
    }
    r.string("public key").ok()?;
    let both = r.string("private key").ok()?;
    if both.len() != 64 {
        return None;
    }
    both.first_chunk().copied()
}

/// An Ed25519 key in OpenSSH's format. The check numbers only serve to notice a wrong passphrase,
/// and there is none.
fn openssh(public: &[u8], seed: &[u8; 32], blob: &[u8]) -> Vec<u8> {
    let mut secret = Vec::new();
    secret.put_u64(0);
    secret.put_raw(blob);
    secret.put_string(&[seed.as_slice(), public].concat());
    secret.put_string(b"");
    for pad in 1..=(8 - secret.len() % 8) % 8 {
        secret.put_byte(pad as u8);
    }
    let mut out = MAGIC.to_vec();
    out.put_string(b"none");
    out.put_string(b"none");
    out.put_string(b"");
    out.put_u32(1);
    out.put_string(blob);
    out.put_string(&secret);
    out
}
