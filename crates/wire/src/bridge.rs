//! Frames between the two ends of an emulated link, if it is under cover or its ends are on two
//! hosts: packets sealed with AES-256-GCM, and the greeting by which both ends agree on keys.
//! `docs/protocols/bridge.md` describes them.
//!
//! A frame is `kind (1) | zero (3) | session (4) | number (8) | sealed payload | tag (16)`, numbers
//! with the highest byte first. Session and number are the nonce, the first 16 bytes are
//! authenticated. A number is used once: the sealer never repeats one, the opener takes none twice.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

mod greeting;
mod replay;

pub use greeting::{Answered, GREETING, Greeted, Greeting, Role, SessionKeys};
use replay::Replay;

/// Bytes before the sealed payload.
pub const FRAME_HEAD: usize = 16;
/// Bytes of the tag behind it.
pub const FRAME_TAG: usize = 16;
/// Bytes of a key.
pub const KEY: usize = 32;

/// Kinds of what is sent.
const KIND_PACKET: u8 = 1;

/// Why a frame is not taken, or not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No frame of this protocol.
    #[error("no frame of a bridge")]
    Format,
    /// Of a session that is not this one.
    #[error("a frame of another session")]
    Session,
    /// Its number was received before, or is too old to check.
    #[error("a frame that was there before")]
    Replay,
    /// Modified in transit, or made without the key.
    #[error("a frame that was not made with the key")]
    Forged,
    /// The numbers are used up, or the cryptographic library failed.
    #[error("no more frames under this key")]
    UsedUp,
}

/// The unencrypted head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHead {
    /// Which keys it is under.
    pub session: u32,
    /// Its number.
    pub number: u64,
}

impl FrameHead {
    /// The head of a frame that is long enough to be one.
    ///
    /// # Errors
    /// [`Refused::Format`]
    pub fn decode(frame: &[u8]) -> Result<Self, Refused> {
        let (head, rest) = frame.split_first_chunk::<FRAME_HEAD>().ok_or(Refused::Format)?;
        let [kind, a, b, c, s0, s1, s2, s3, number @ ..] = *head;
        if [kind, a, b, c] != [KIND_PACKET, 0, 0, 0] || rest.len() < FRAME_TAG {
            return Err(Refused::Format);
        }
        let session = u32::from_be_bytes([s0, s1, s2, s3]);
        Ok(Self { session, number: u64::from_be_bytes(number) })
    }

    /// As it is sent.
    pub fn encode(&self) -> [u8; FRAME_HEAD] {
        let [a, b, c, d] = self.session.to_be_bytes();
        let [e, f, g, h, i, j, k, l] = self.number.to_be_bytes();
        [KIND_PACKET, 0, 0, 0, a, b, c, d, e, f, g, h, i, j, k, l]
    }

    fn nonce(&self) -> Nonce {
        let [_, _, _, _, nonce @ ..] = self.encode();
        Nonce::assume_unique_for_key(nonce)
    }
}

fn key(bytes: &[u8; KEY]) -> Result<LessSafeKey, Refused> {
    UnboundKey::new(&AES_256_GCM, bytes).map(LessSafeKey::new).map_err(|_| Refused::UsedUp)
}

/// Seals the frames of one direction.
#[derive(Debug)]
pub struct Sealer {
    key: LessSafeKey,
    next: FrameHead,
}

impl Sealer {
    /// Begins with number 0. The key must have sealed nothing before.
    ///
    /// # Errors
    /// [`Refused::UsedUp`] when the library fails.
    pub fn new(bytes: &[u8; KEY], session: u32) -> Result<Self, Refused> {
        Ok(Self { key: key(bytes)?, next: FrameHead { session, number: 0 } })
    }

    /// Appends a frame with this payload to `out`.
    ///
    /// # Errors
    /// [`Refused::UsedUp`]
    pub fn seal(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Refused> {
        let head = self.next;
        // The last number is never used, so that it never wraps.
        self.next.number = head.number.checked_add(1).ok_or(Refused::UsedUp)?;
        out.reserve(FRAME_HEAD + payload.len() + FRAME_TAG);
        let encoded = head.encode();
        out.extend_from_slice(&encoded);
        let start = out.len();
        out.extend_from_slice(payload);
        let body = out.get_mut(start..).ok_or(Refused::UsedUp)?;
        let sealed = self.key.seal_in_place_separate_tag(head.nonce(), Aad::from(encoded), body);
        out.extend_from_slice(sealed.map_err(|_| Refused::UsedUp)?.as_ref());
        Ok(())
    }
}

/// Opens what comes the same way.
#[derive(Debug)]
pub struct Opener {
    key: LessSafeKey,
    session: u32,
    replay: Replay,
    opened: u64,
}

impl Opener {
    /// Has seen no number.
    ///
    /// # Errors
    /// [`Refused::UsedUp`] when the library fails.
    pub fn new(bytes: &[u8; KEY], session: u32) -> Result<Self, Refused> {
        Ok(Self { key: key(bytes)?, session, replay: Replay::default(), opened: 0 })
    }

    /// The payload of a frame, opened where it lies.
    ///
    /// # Errors
    /// All of [`Refused`]. The number of a frame that is refused is not used up.
    pub fn open<'a>(&mut self, frame: &'a mut [u8]) -> Result<&'a mut [u8], Refused> {
        let head = FrameHead::decode(frame)?;
        if head.session != self.session {
            return Err(Refused::Session);
        }
        if !self.replay.is_new(head.number) {
            return Err(Refused::Replay);
        }
        let (clear, body) = frame.split_at_mut_checked(FRAME_HEAD).ok_or(Refused::Format)?;
        let opened = self.key.open_in_place(head.nonce(), Aad::from(&*clear), body);
        let payload = opened.map_err(|_| Refused::Forged)?;
        self.replay.take(head.number);
        self.opened += 1;
        Ok(payload)
    }

    /// Frames that were sealed before the newest one that came, and have not come.
    pub fn missing(&self) -> u64 {
        self.replay.end().saturating_sub(self.opened)
    }
}

#[cfg(test)]
mod tests;
