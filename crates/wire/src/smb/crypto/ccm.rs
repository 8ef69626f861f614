//! AES-CCM (RFC 3610) with nonces of 11 bytes and tags of 16, over the library's AES in CTR and
//! CBC: SMB 3.0 and 3.0.2 know nothing else.

use aws_lc_rs::cipher::{AES_128, AES_256, EncryptingKey, EncryptionContext, UnboundCipherKey};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::iv::FixedLength;

use super::CryptoError;

const BLOCK: usize = 16;
/// Bytes of a nonce.
const NONCE: usize = 11;
/// Bytes that are authenticated in one go: a copy of them is encrypted, and thrown away.
const CHUNK: usize = 4096;

/// One key.
pub struct Ccm {
    ctr: EncryptingKey,
    cbc: EncryptingKey,
}

impl Ccm {
    /// A key of 16 or 32 bytes.
    ///
    /// # Errors
    /// [`CryptoError::Library`].
    pub fn new(key: &[u8]) -> Result<Self, CryptoError> {
        let algorithm = if key.len() == 16 { &AES_128 } else { &AES_256 };
        let unbound = || UnboundCipherKey::new(algorithm, key).map_err(|_| CryptoError::Library);
        let ctr = EncryptingKey::ctr(unbound()?).map_err(|_| CryptoError::Library)?;
        let cbc = EncryptingKey::cbc(unbound()?).map_err(|_| CryptoError::Library)?;
        Ok(Self { ctr, cbc })
    }

    /// Encrypts a text; gives the tag.
    ///
    /// # Errors
    /// [`CryptoError::Library`].
    pub fn seal(
        &self,
        nonce: &[u8; NONCE],
        aad: &[u8],
        text: &mut [u8],
    ) -> Result<[u8; BLOCK], CryptoError> {
        let tag = self.tag(nonce, aad, text)?;
        self.stream(nonce, 1, text)?;
        Ok(tag)
    }

    /// Decrypts a text with this tag.
    ///
    /// # Errors
    /// [`CryptoError::Mismatch`]: the content of `text` is undefined then.
    pub fn open(
        &self,
        nonce: &[u8; NONCE],
        aad: &[u8],
        text: &mut [u8],
        tag: &[u8; BLOCK],
    ) -> Result<(), CryptoError> {
        self.stream(nonce, 1, text)?;
        let expected = self.tag(nonce, aad, text)?;
        verify_slices_are_equal(&expected, tag).map_err(|_| CryptoError::Mismatch)
    }

    /// Combines with the stream from this block on.
    fn stream(&self, nonce: &[u8; NONCE], block: u32, text: &mut [u8]) -> Result<(), CryptoError> {
        let mut iv = [0; BLOCK];
        // The length of the length, less one.
        iv[0] = 3;
        iv[1..=NONCE].copy_from_slice(nonce);
        iv[NONCE + 1..].copy_from_slice(&block.to_be_bytes());
        let context = EncryptionContext::Iv128(FixedLength::from(iv));
        self.ctr.less_safe_encrypt(text, context).map_err(|_| CryptoError::Library)?;
        Ok(())
    }

    fn tag(
        &self,
        nonce: &[u8; NONCE],
        aad: &[u8],
        text: &[u8],
    ) -> Result<[u8; BLOCK], CryptoError> {
        let length = u32::try_from(text.len()).map_err(|_| CryptoError::Message)?;
        let aad_length = u16::try_from(aad.len()).ok().filter(|length| *length < 0xff00);
        let aad_length = aad_length.ok_or(CryptoError::Message)?;
        // Flags of the first block: additional data, tags of 16 bytes, lengths of 4.
        let mut head = vec![0x40 | 7 << 3 | 3];
        head.extend_from_slice(nonce);
        head.extend_from_slice(&length.to_be_bytes());
        head.extend_from_slice(&aad_length.to_be_bytes());
        head.extend_from_slice(aad);
        head.resize(head.len().next_multiple_of(BLOCK), 0);
        let mut mac = self.chain([0; BLOCK], &mut head)?;
        let mut copy = Vec::with_capacity(CHUNK.min(text.len().next_multiple_of(BLOCK)));
        for chunk in text.chunks(CHUNK) {
            copy.clear();
            copy.extend_from_slice(chunk);
            copy.resize(chunk.len().next_multiple_of(BLOCK), 0);
            mac = self.chain(mac, &mut copy)?;
        }
        self.stream(nonce, 0, &mut mac)?;
        Ok(mac)
    }

    /// The last block of CBC over whole blocks.
    fn chain(&self, iv: [u8; BLOCK], blocks: &mut [u8]) -> Result<[u8; BLOCK], CryptoError> {
        let context = EncryptionContext::Iv128(FixedLength::from(iv));
        self.cbc.less_safe_encrypt(blocks, context).map_err(|_| CryptoError::Library)?;
        blocks.last_chunk().copied().ok_or(CryptoError::Library)
    }
}
