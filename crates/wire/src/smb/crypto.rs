//! Keys, signatures and encryption of SMB, and the digests of NTLM. All that the library has comes
//! from it; RC4, which nothing but NTLM uses, and CCM over its AES are ours.

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::{cmac, digest, hmac};
use md5::Digest;
use thiserror::Error;

use super::codec::Reader;
use super::header::{
    COMMAND, Command, FLAGS, MESSAGE_ID, SIGNATURE, TRANSFORM, TRANSFORM_AAD, Transform, flags,
};
use super::negotiate::{Cipher, Dialect, Signing};

pub mod ccm;
pub mod rc4;

/// What does not fit, or cannot be computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CryptoError {
    /// A signature or tag is wrong: the peer, or a modification in transit.
    #[error("a signature that does not fit")]
    Mismatch,
    /// The message is too short, or of another session: the peer.
    #[error("no encrypted message")]
    Message,
    /// Our library refuses; never for keys of the right length.
    #[error("the cryptographic library has failed")]
    Library,
}

/// MD5 of these parts.
pub fn md5(parts: &[&[u8]]) -> [u8; 16] {
    let mut hash = md5::Md5::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().into()
}

/// HMAC-MD5 (RFC 2104) of these parts.
pub fn hmac_md5(key: &[u8], parts: &[&[u8]]) -> [u8; 16] {
    let mut block = [0u8; 64];
    match block.get_mut(..key.len()) {
        Some(place) => place.copy_from_slice(key),
        None => super::codec::patch(&mut block, 0, &md5(&[key])),
    }
    let (inner, outer) = (block.map(|byte| byte ^ 0x36), block.map(|byte| byte ^ 0x5c));
    let mut hash = md5::Md5::new();
    hash.update(inner);
    parts.iter().for_each(|part| hash.update(part));
    let inside: [u8; 16] = hash.finalize().into();
    md5(&[&outer, &inside])
}

/// The pre-authentication integrity (MS-SMB2 §3.1.4.4.1): a chain of SHA-512 over messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preauth(pub [u8; 64]);

impl Default for Preauth {
    fn default() -> Self {
        Self([0; 64])
    }
}

impl Preauth {
    /// With another message.
    pub fn update(&mut self, message: &[u8]) {
        let mut hash = digest::Context::new(&digest::SHA512);
        hash.update(&self.0);
        hash.update(message);
        super::codec::patch(&mut self.0, 0, hash.finish().as_ref());
    }
}

/// SP800-108 in counter mode with HMAC-SHA-256, for at most 256 bits: one turn.
fn kdf(key: &[u8], label: &[u8], context: &[u8], bits: u32) -> [u8; 32] {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    let mut mac = hmac::Context::with_key(&key);
    mac.update(&1u32.to_be_bytes());
    mac.update(label);
    mac.update(&[0]);
    mac.update(context);
    mac.update(&bits.to_be_bytes());
    let mut out = [0; 32];
    super::codec::patch(&mut out, 0, mac.sign().as_ref());
    out
}

/// Keys of a session (§3.1.4.2).
#[derive(Clone)]
pub struct Keys {
    /// What signs, and by what.
    pub signer: Signer,
    /// What seals messages of the server, and what opens those of the client; `None` before 3.0,
    /// or without a cipher.
    pub sealers: Option<(Sealer, Sealer)>,
}

impl Keys {
    /// Keys from the key of the session. `preauth` is that of SESSION_SETUP, for 3.1.1.
    ///
    /// # Errors
    /// [`CryptoError::Library`].
    pub fn new(
        session_key: &[u8; 16],
        dialect: Dialect,
        (signing, cipher): (Signing, Option<Cipher>),
        preauth: &Preauth,
    ) -> Result<Self, CryptoError> {
        if dialect < Dialect::SMB300 {
            let signer = Signer::new(Signing::HmacSha256, session_key)?;
            return Ok(Self { signer, sealers: None });
        }
        let is_311 = dialect == Dialect::SMB311;
        let derive = |label_311: &[u8], label: &[u8], context: &[u8], bits: u32| match is_311 {
            true => kdf(session_key, label_311, &preauth.0, bits),
            false => kdf(session_key, label, context, bits),
        };
        let sign = derive(b"SMBSigningKey\0", b"SMB2AESCMAC\0", b"SmbSign\0", 128);
        let key = sign.first_chunk::<16>().ok_or(CryptoError::Library)?;
        let signer = Signer::new(signing, key)?;
        let Some(cipher) = cipher else { return Ok(Self { signer, sealers: None }) };
        let bits = 8 * cipher.key_len() as u32;
        let ours = derive(b"SMBS2CCipherKey\0", b"SMB2AESCCM\0", b"ServerOut\0", bits);
        let theirs = derive(b"SMBC2SCipherKey\0", b"SMB2AESCCM\0", b"ServerIn \0", bits);
        let sealers = (Sealer::new(cipher, &ours)?, Sealer::new(cipher, &theirs)?);
        Ok(Self { signer, sealers: Some(sealers) })
    }
}

/// Signs messages.
#[derive(Clone)]
pub enum Signer {
    /// HMAC-SHA-256.
    Hmac(Box<hmac::Key>),
    /// AES-128-CMAC.
    Cmac(cmac::Key),
    /// AES-128-GMAC.
    Gmac(std::sync::Arc<LessSafeKey>),
}

impl Signer {
    /// A signer with this key.
    ///
    /// # Errors
    /// [`CryptoError::Library`].
    pub fn new(signing: Signing, key: &[u8; 16]) -> Result<Self, CryptoError> {
        Ok(match signing {
            Signing::HmacSha256 => Self::Hmac(Box::new(hmac::Key::new(hmac::HMAC_SHA256, key))),
            Signing::AesCmac => {
                let key = cmac::Key::new(cmac::AES_128, key);
                Self::Cmac(key.map_err(|_| CryptoError::Library)?)
            }
            Signing::AesGmac => {
                let key = UnboundKey::new(&AES_128_GCM, key).map_err(|_| CryptoError::Library)?;
                Self::Gmac(std::sync::Arc::new(LessSafeKey::new(key)))
            }
        })
    }

    /// The signature of a message; its own signature field is zero now. In one piece: GMAC would
    /// have to copy the message otherwise.
    fn sign(&self, message: &[u8]) -> Result<[u8; 16], CryptoError> {
        let mut signature = [0; 16];
        match self {
            Self::Hmac(key) => {
                let tag = hmac::sign(key, message);
                let half = tag.as_ref().first_chunk::<16>().ok_or(CryptoError::Library)?;
                signature = *half;
            }
            Self::Cmac(key) => {
                let tag = cmac::sign(key, message).map_err(|_| CryptoError::Library)?;
                super::codec::patch(&mut signature, 0, tag.as_ref());
            }
            Self::Gmac(key) => {
                let nonce = gmac_nonce(message)?;
                let tag = key.seal_in_place_separate_tag(nonce, Aad::from(message), &mut []);
                let tag = tag.map_err(|_| CryptoError::Library)?;
                super::codec::patch(&mut signature, 0, tag.as_ref());
            }
        }
        Ok(signature)
    }

    /// Whether it may sign two messages of one number. GMAC may not: its nonce is the number, and
    /// two messages under one nonce give the key away (RFC 5116 §5.1.1).
    pub const fn signs_numbers_twice(&self) -> bool {
        !matches!(self, Self::Gmac(_))
    }

    /// Signs a message in place: its SMB2_FLAGS_SIGNED is already set.
    ///
    /// # Errors
    /// [`CryptoError`].
    pub fn seal(&self, message: &mut [u8]) -> Result<(), CryptoError> {
        message.get_mut(SIGNATURE).ok_or(CryptoError::Message)?.fill(0);
        let signature = self.sign(message)?;
        super::codec::patch(message, SIGNATURE.start, &signature);
        Ok(())
    }

    /// Whether the signature of a message is right. The message is as before afterwards; nothing of
    /// it is copied.
    ///
    /// # Errors
    /// [`CryptoError::Mismatch`].
    pub fn verify(&self, message: &mut [u8]) -> Result<(), CryptoError> {
        let place = message.get_mut(SIGNATURE).ok_or(CryptoError::Message)?;
        let mut theirs = [0; 16];
        theirs.copy_from_slice(place);
        place.fill(0);
        let signature = self.sign(message);
        super::codec::patch(message, SIGNATURE.start, &theirs);
        verify_slices_are_equal(&signature?, &theirs).map_err(|_| CryptoError::Mismatch)
    }
}

/// A field of a message's header. Those that sign have decoded it, or encoded it, before.
fn field<const N: usize>(message: &[u8], at: usize) -> Result<[u8; N], CryptoError> {
    let field = message.get(at..).and_then(|rest| rest.first_chunk());
    field.copied().ok_or(CryptoError::Message)
}

/// The nonce of a signature by GMAC (§3.1.4.1): the number of the message, its sender, and whether
/// it is a CANCEL.
fn gmac_nonce(message: &[u8]) -> Result<Nonce, CryptoError> {
    let command = u16::from_le_bytes(field(message, COMMAND)?);
    let role = u32::from_le_bytes(field(message, FLAGS)?) & flags::RESPONSE;
    let cancel = if command == Command::CANCEL.0 { 2 } else { 0 };
    let mut nonce = [0; 12];
    super::codec::patch(&mut nonce, 0, &field::<8>(message, MESSAGE_ID)?);
    super::codec::patch(&mut nonce, 8, &(role | cancel).to_le_bytes());
    Ok(Nonce::assume_unique_for_key(nonce))
}

/// Encrypts or decrypts messages of one direction.
#[derive(Clone)]
pub struct Sealer {
    cipher: Cipher,
    key: SealKey,
}

#[derive(Clone)]
enum SealKey {
    Gcm(std::sync::Arc<LessSafeKey>),
    Ccm(std::sync::Arc<ccm::Ccm>),
}

impl Sealer {
    /// A sealer with the key's first bytes.
    ///
    /// # Errors
    /// [`CryptoError::Library`].
    pub fn new(cipher: Cipher, key: &[u8; 32]) -> Result<Self, CryptoError> {
        let key = key.get(..cipher.key_len()).ok_or(CryptoError::Library)?;
        let gcm = |algorithm| {
            let key = UnboundKey::new(algorithm, key).map_err(|_| CryptoError::Library)?;
            Ok(SealKey::Gcm(std::sync::Arc::new(LessSafeKey::new(key))))
        };
        let key = match cipher {
            Cipher::Aes128Gcm => gcm(&AES_128_GCM)?,
            Cipher::Aes256Gcm => gcm(&AES_256_GCM)?,
            Cipher::Aes128Ccm | Cipher::Aes256Ccm => {
                SealKey::Ccm(std::sync::Arc::new(ccm::Ccm::new(key)?))
            }
        };
        Ok(Self { cipher, key })
    }

    /// Encrypts `out` from `at` on: there is room for the header of an encrypted message, then the
    /// message. `nonce` must never be used twice with this key.
    ///
    /// # Errors
    /// [`CryptoError`].
    pub fn seal(&self, out: &mut [u8], session_id: u64, nonce: u64) -> Result<(), CryptoError> {
        let (head, message) = out.split_at_mut_checked(TRANSFORM).ok_or(CryptoError::Message)?;
        let mut full = [0; 16];
        super::codec::patch(&mut full, 0, &nonce.to_le_bytes());
        let size = message.len() as u32;
        let transform = Transform { signature: [0; 16], nonce: full, size, session_id };
        let encoded = transform.encode();
        head.copy_from_slice(&encoded);
        let aad = encoded.get(TRANSFORM_AAD..).ok_or(CryptoError::Library)?;
        let tag = match &self.key {
            SealKey::Gcm(key) => {
                let nonce = gcm_nonce(&full)?;
                let tag = key.seal_in_place_separate_tag(nonce, Aad::from(aad), message);
                let tag = tag.map_err(|_| CryptoError::Library)?;
                let mut bytes = [0; 16];
                super::codec::patch(&mut bytes, 0, tag.as_ref());
                bytes
            }
            SealKey::Ccm(key) => key.seal(self.ccm_nonce(&full)?, aad, message)?,
        };
        super::codec::patch(head, 4, &tag);
        Ok(())
    }

    /// Decrypts a message in place; it is behind the header then. Gives that.
    ///
    /// # Errors
    /// [`CryptoError::Mismatch`], [`CryptoError::Message`].
    pub fn open(&self, bytes: &mut [u8]) -> Result<Transform, CryptoError> {
        let transform: Transform =
            Reader::new(bytes, "transform header").get().map_err(|_| CryptoError::Message)?;
        let (head, message) = bytes.split_at_mut_checked(TRANSFORM).ok_or(CryptoError::Message)?;
        if message.len() != transform.size as usize {
            return Err(CryptoError::Message);
        }
        let aad = head.get(TRANSFORM_AAD..).ok_or(CryptoError::Message)?;
        match &self.key {
            SealKey::Gcm(key) => {
                let nonce = gcm_nonce(&transform.nonce)?;
                // The tag stands in the header, not behind the text.
                let (aad, tag) = (Aad::from(aad), &transform.signature);
                let opened = key.open_in_place_separate_tag(nonce, aad, tag, message);
                opened.map_err(|_| CryptoError::Mismatch)?;
            }
            SealKey::Ccm(key) => {
                let nonce = self.ccm_nonce(&transform.nonce)?;
                key.open(nonce, aad, message, &transform.signature)?;
            }
        }
        Ok(transform)
    }

    fn ccm_nonce<'n>(&self, nonce: &'n [u8; 16]) -> Result<&'n [u8; 11], CryptoError> {
        debug_assert!(self.cipher.nonce_len() == 11);
        nonce.first_chunk().ok_or(CryptoError::Library)
    }
}

fn gcm_nonce(nonce: &[u8; 16]) -> Result<Nonce, CryptoError> {
    let nonce = nonce.first_chunk::<12>().ok_or(CryptoError::Library)?;
    Ok(Nonce::assume_unique_for_key(*nonce))
}

#[cfg(test)]
mod tests;
