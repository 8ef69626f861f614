//! Packets (RFC 4253, section 6) under their ciphers: sealed and opened where they lie, in the send
//! and the receive buffer.
//!
//! AES in GCM (RFC 5647 as OpenSSH has it: the length is unencrypted, no MAC is negotiated),
//! ChaCha20 with Poly1305 (PROTOCOL.chacha20poly1305), and AES in CTR (RFC 4344) with HMAC-SHA-2
//! (RFC 6668), after encryption (`-etm@openssh.com`) or before it.
//!
//! Padding is of zeros: all ciphers here are stream ciphers by nature, under which it hides
//! nothing.

use std::ops::Range;

use aws_lc_rs::aead::chacha20_poly1305_openssh as chacha;
use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use base::limits::SSH_PACKET_MAX;

mod algorithms;
mod ctr;

pub use algorithms::{Cipher, Mac};
use ctr::Ctr;

/// Length and padding length before the payload.
pub const HEADER: usize = 5;
const LENGTH: usize = 4;
const TAG: usize = 16;

/// Why a packet cannot be opened or sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// Not what was sent, or not under the keys that were agreed on.
    #[error("packet authentication failed")]
    Tampered,
    /// A length that no packet has.
    #[error("invalid packet length")]
    Length,
    /// The cryptographic library failed.
    #[error("the cryptographic library failed")]
    Library,
}

/// What protects packets in one direction: initial vector, key, key of the MAC.
#[derive(Clone, Default)]
pub struct Keys {
    /// Initial vector.
    pub iv: Vec<u8>,
    /// Key of the cipher.
    pub key: Vec<u8>,
    /// Key of the MAC; empty for ciphers that have their own.
    pub mac: Vec<u8>,
}

struct Gcm {
    key: LessSafeKey,
    fixed: [u8; 4],
    counter: u64,
}

impl Gcm {
    fn new(cipher: Cipher, keys: &Keys) -> Result<Self, Broken> {
        let algorithm = if cipher == Cipher::Aes128Gcm { &AES_128_GCM } else { &AES_256_GCM };
        let key = UnboundKey::new(algorithm, &keys.key).map_err(|_| Broken::Library)?;
        let (fixed, counter) = keys.iv.split_first_chunk().ok_or(Broken::Library)?;
        let counter = counter.first_chunk().ok_or(Broken::Library)?;
        let counter = u64::from_be_bytes(*counter);
        Ok(Self { key: LessSafeKey::new(key), fixed: *fixed, counter })
    }

    fn nonce(&mut self) -> Nonce {
        let [a, b, c, d] = self.fixed;
        let [e, f, g, h, i, j, k, l] = self.counter.to_be_bytes();
        self.counter = self.counter.wrapping_add(1);
        Nonce::assume_unique_for_key([a, b, c, d, e, f, g, h, i, j, k, l])
    }
}

enum Sealing {
    Plain,
    Gcm(Gcm),
    Chacha(chacha::SealingKey),
    Ctr(Box<Ctr>),
}

enum Decryption {
    Plain,
    Gcm(Gcm),
    Chacha(chacha::OpeningKey),
    Ctr(Box<Ctr>),
}

/// Protects what is sent.
pub struct Sealer {
    how: Sealing,
    /// Number of the next packet.
    pub sequence: u32,
    /// Packets and bytes since there are these keys.
    pub used: (u64, u64),
}

impl Sealer {
    /// Before there are keys.
    pub fn plain() -> Self {
        Self { how: Sealing::Plain, sequence: 0, used: (0, 0) }
    }

    /// With keys; the packet sequence number continues from the old ones.
    ///
    /// # Errors
    /// [`Broken::Library`], also when a key has the wrong length.
    pub fn new(
        cipher: Cipher,
        mac: Option<Mac>,
        keys: &Keys,
        sequence: u32,
    ) -> Result<Self, Broken> {
        let how = match cipher {
            Cipher::Aes128Gcm | Cipher::Aes256Gcm => Sealing::Gcm(Gcm::new(cipher, keys)?),
            Cipher::Chacha20Poly1305 => {
                let key = keys.key.first_chunk().ok_or(Broken::Library)?;
                Sealing::Chacha(chacha::SealingKey::new(key))
            }
            _ => Sealing::Ctr(Box::new(Ctr::new(cipher, mac, keys)?)),
        };
        Ok(Self { how, sequence, used: (0, 0) })
    }

    /// Makes room for a packet's header; the payload is appended next. Returns where it begins.
    pub fn begin(out: &mut Vec<u8>) -> usize {
        out.extend_from_slice(&[0; HEADER]);
        out.len() - HEADER
    }

    /// Pads and seals the packet that begins at `start` and is the last in `out`.
    ///
    /// # Errors
    /// [`Broken::Library`]; the connection is then of no more use.
    pub fn finish(&mut self, out: &mut Vec<u8>, start: usize) -> Result<(), Broken> {
        let begun = out.len() - start;
        let (block, skipped) = match &self.how {
            Sealing::Plain => (8, 0),
            Sealing::Gcm(_) => (16, LENGTH),
            Sealing::Chacha(_) => (8, LENGTH),
            Sealing::Ctr(ctr) => (16, if ctr.etm() { LENGTH } else { 0 }),
        };
        let mut pad = block - (begun - skipped) % block;
        if pad < 4 {
            pad += block;
        }
        out.resize(out.len() + pad, 0);
        let length = (out.len() - start - LENGTH) as u32;
        let packet = out.get_mut(start..).ok_or(Broken::Library)?;
        let (head, body) = packet.split_first_chunk_mut::<HEADER>().ok_or(Broken::Library)?;
        let [a, b, c, d] = length.to_be_bytes();
        *head = [a, b, c, d, pad as u8];
        debug_assert!(body.len() >= pad);
        self.protect(out, start)?;
        self.sequence = self.sequence.wrapping_add(1);
        self.used = (self.used.0 + 1, self.used.1 + u64::from(length));
        Ok(())
    }

    fn protect(&mut self, out: &mut Vec<u8>, start: usize) -> Result<(), Broken> {
        let packet = out.get_mut(start..).ok_or(Broken::Library)?;
        match &mut self.how {
            Sealing::Plain => {}
            Sealing::Gcm(gcm) => {
                let nonce = gcm.nonce();
                let (head, body) = packet.split_at_mut_checked(LENGTH).ok_or(Broken::Library)?;
                let sealed = gcm.key.seal_in_place_separate_tag(nonce, Aad::from(&*head), body);
                let tag = sealed.map_err(|_| Broken::Library)?;
                out.extend_from_slice(tag.as_ref());
            }
            Sealing::Chacha(key) => {
                let mut tag = [0; TAG];
                key.seal_in_place(self.sequence, packet, &mut tag);
                out.extend_from_slice(&tag);
            }
            Sealing::Ctr(ctr) => {
                let mac = ctr.seal(self.sequence, packet)?;
                out.extend_from_slice(mac.as_ref());
            }
        }
        Ok(())
    }
}

/// What lies at the front of the bytes received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// No complete packet yet: this many bytes are needed at least.
    Need(usize),
    /// A packet: where its payload is, and how many bytes it takes in all.
    Packet(Range<usize>, usize),
}

/// Opens what is received.
pub struct Opener {
    how: Decryption,
    /// Number of the next packet.
    pub sequence: u32,
    /// Packets and bytes since there are these keys.
    pub used: (u64, u64),
    /// Length of the packet at the front, when it had to be decrypted to be read.
    length: Option<usize>,
}

impl Opener {
    /// Before there are keys.
    pub fn plain() -> Self {
        Self { how: Decryption::Plain, sequence: 0, used: (0, 0), length: None }
    }

    /// As [`Sealer::new`].
    ///
    /// # Errors
    /// [`Broken::Library`], also when a key has the wrong length.
    pub fn new(
        cipher: Cipher,
        mac: Option<Mac>,
        keys: &Keys,
        sequence: u32,
    ) -> Result<Self, Broken> {
        let how = match cipher {
            Cipher::Aes128Gcm | Cipher::Aes256Gcm => Decryption::Gcm(Gcm::new(cipher, keys)?),
            Cipher::Chacha20Poly1305 => {
                let key = keys.key.first_chunk().ok_or(Broken::Library)?;
                Decryption::Chacha(chacha::OpeningKey::new(key))
            }
            _ => Decryption::Ctr(Box::new(Ctr::new(cipher, mac, keys)?)),
        };
        Ok(Self { how, sequence, used: (0, 0), length: None })
    }

    /// Opens the packet at the front of `input`, which must begin with the same bytes again after
    /// [`Opened::Need`].
    ///
    /// # Errors
    /// [`Broken::Tampered`], [`Broken::Length`]; the connection is then of no more use.
    pub fn open(&mut self, input: &mut [u8]) -> Result<Opened, Broken> {
        let Some(length) = self.length(input)? else { return Ok(Opened::Need(self.first())) };
        let trailer = match &self.how {
            Decryption::Plain => 0,
            Decryption::Gcm(_) | Decryption::Chacha(_) => TAG,
            Decryption::Ctr(ctr) => ctr.trailer(),
        };
        let end = LENGTH + length;
        let Some(packet) = input.get_mut(..end + trailer) else {
            return Ok(Opened::Need(end + trailer));
        };
        let (packet, tag) = packet.split_at_mut_checked(end).ok_or(Broken::Length)?;
        match &mut self.how {
            Decryption::Plain => {}
            Decryption::Gcm(gcm) => {
                let nonce = gcm.nonce();
                let (head, body) = packet.split_at_mut_checked(LENGTH).ok_or(Broken::Length)?;
                gcm.key
                    .open_in_place_separate_tag(nonce, Aad::from(&*head), tag, body)
                    .map_err(|_| Broken::Tampered)?;
            }
            Decryption::Chacha(key) => {
                let tag = tag.first_chunk().ok_or(Broken::Length)?;
                key.open_in_place(self.sequence, packet, tag).map_err(|_| Broken::Tampered)?;
            }
            Decryption::Ctr(ctr) => {
                // What opening the length needed is put back, for the MAC may cover it.
                ctr.open(self.sequence, packet, tag, length as u32)?;
            }
        }
        let pad = packet.get(LENGTH).map_or(0, |pad| usize::from(*pad));
        // At least four bytes of padding, and a payload of one byte.
        if pad < 4 || pad + 2 > length {
            return Err(Broken::Length);
        }
        self.length = None;
        self.sequence = self.sequence.wrapping_add(1);
        self.used = (self.used.0 + 1, self.used.1 + length as u64);
        Ok(Opened::Packet(HEADER..end - pad, end + trailer))
    }

    /// How many bytes are needed to know a packet's length.
    fn first(&self) -> usize {
        match &self.how {
            Decryption::Ctr(ctr) if !ctr.etm() => 16,
            _ => LENGTH,
        }
    }

    /// The length of the packet at the front, if enough of it is there.
    fn length(&mut self, input: &mut [u8]) -> Result<Option<usize>, Broken> {
        if let Some(length) = self.length {
            return Ok(Some(length));
        }
        let needed = self.first();
        let Some(head) = input.get_mut(..needed) else { return Ok(None) };
        let (block, skipped) = match &mut self.how {
            Decryption::Plain => (8, 0),
            Decryption::Gcm(_) => (16, LENGTH),
            Decryption::Chacha(_) => (8, LENGTH),
            Decryption::Ctr(ctr) if ctr.etm() => (16, LENGTH),
            Decryption::Ctr(ctr) => {
                ctr.open_first(head)?;
                (16, 0)
            }
        };
        let bytes = *head.first_chunk().ok_or(Broken::Length)?;
        let bytes = match &self.how {
            Decryption::Chacha(key) => key.decrypt_packet_length(self.sequence, bytes),
            _ => bytes,
        };
        let length = u32::from_be_bytes(bytes) as usize;
        let aligned = (length + LENGTH - skipped).is_multiple_of(block);
        if !aligned || !(block.max(12) - 4..=SSH_PACKET_MAX).contains(&length) {
            // Under a cipher that hides it, a senseless length is what a changed packet looks like.
            return Err(match &self.how {
                Decryption::Plain | Decryption::Gcm(_) => Broken::Length,
                _ => Broken::Tampered,
            });
        }
        self.length = Some(length);
        Ok(Some(length))
    }
}

#[cfg(test)]
mod tests;
