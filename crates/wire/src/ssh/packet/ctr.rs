//! AES in CTR with HMAC, for clients that know nothing newer.

use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, EncryptingKey, EncryptionContext, UnboundCipherKey,
};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use aws_lc_rs::iv::FixedLength;

use super::{Broken, Cipher, Keys, LENGTH, Mac};

const BLOCK: usize = 16;

pub(super) struct Ctr {
    key: EncryptingKey,
    /// The counter, which continues from packet to packet.
    counter: u128,
    mac: Mac,
    mac_key: hmac::Key,
    /// The first block of the packet that is being received was decrypted already.
    first_open: bool,
}

impl Ctr {
    pub(super) fn new(cipher: Cipher, mac: Option<Mac>, keys: &Keys) -> Result<Self, Broken> {
        let algorithm = match cipher {
            Cipher::Aes128Ctr => &AES_128,
            Cipher::Aes192Ctr => &AES_192,
            _ => &AES_256,
        };
        let key = UnboundCipherKey::new(algorithm, &keys.key).map_err(|_| Broken::Library)?;
        let mac = mac.ok_or(Broken::Library)?;
        let hash = match mac.size() {
            32 => hmac::HMAC_SHA256,
            _ => hmac::HMAC_SHA512,
        };
        Ok(Self {
            key: EncryptingKey::ctr(key).map_err(|_| Broken::Library)?,
            counter: u128::from_be_bytes(*keys.iv.first_chunk().ok_or(Broken::Library)?),
            mac,
            mac_key: hmac::Key::new(hash, &keys.mac),
            first_open: false,
        })
    }

    pub(super) fn etm(&self) -> bool {
        self.mac.is_etm()
    }

    pub(super) fn trailer(&self) -> usize {
        self.mac.size()
    }

    /// Encrypts or decrypts whole blocks, which is the same.
    fn apply(&mut self, bytes: &mut [u8]) -> Result<(), Broken> {
        debug_assert!(bytes.len().is_multiple_of(BLOCK));
        let context = EncryptionContext::Iv128(FixedLength::from(self.counter.to_be_bytes()));
        self.counter = self.counter.wrapping_add((bytes.len() / BLOCK) as u128);
        self.key.less_safe_encrypt(bytes, context).map_err(|_| Broken::Library)?;
        Ok(())
    }

    fn sum(&self, sequence: u32, packet: &[u8]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.mac_key);
        context.update(&sequence.to_be_bytes());
        context.update(packet);
        context.sign()
    }

    pub(super) fn seal(&mut self, sequence: u32, packet: &mut [u8]) -> Result<hmac::Tag, Broken> {
        if self.etm() {
            self.apply(packet.get_mut(LENGTH..).ok_or(Broken::Library)?)?;
            return Ok(self.sum(sequence, packet));
        }
        let tag = self.sum(sequence, packet);
        self.apply(packet)?;
        Ok(tag)
    }

    /// Decrypts the first block of a packet with an encrypted length.
    pub(super) fn open_first(&mut self, block: &mut [u8]) -> Result<(), Broken> {
        self.first_open = true;
        self.apply(block)
    }

    /// Checks and decrypts a packet.
    pub(super) fn open(
        &mut self,
        sequence: u32,
        packet: &mut [u8],
        tag: &[u8],
        length: u32,
    ) -> Result<(), Broken> {
        let equal = |sum: hmac::Tag| {
            verify_slices_are_equal(sum.as_ref(), tag).map_err(|_| Broken::Tampered)
        };
        if self.etm() {
            equal(self.sum(sequence, packet))?;
            return self.apply(packet.get_mut(LENGTH..).ok_or(Broken::Length)?);
        }
        debug_assert!(self.first_open);
        self.first_open = false;
        debug_assert_eq!(packet.first_chunk().map(|l| u32::from_be_bytes(*l)), Some(length));
        self.apply(packet.get_mut(BLOCK..).ok_or(Broken::Length)?)?;
        equal(self.sum(sequence, packet))
    }
}
