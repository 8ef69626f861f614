//! CHAP (RFC 1994, RFC 7143 §12.1.3), of both sides: values as they are sent, responses, and the
//! checks that keep a peer from answering a challenge with our own answer (§9.2.1).

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base::limits::ISCSI_BINARY_MAX;
use md5::{Digest, Md5};
use thiserror::Error;

/// Shortest secret that may be used without IPsec (§9.2.1: 96 bits), in bytes.
pub const SECRET_MIN: usize = 12;
/// Longest secret, in bytes: open-iscsi takes 255.
pub const SECRET_MAX: usize = 255;
/// Bytes of our challenge, as many as the longest response has.
pub const CHALLENGE: usize = 32;

/// Why CHAP fails. The peer is at fault; it learns only that the authentication failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ChapError {
    /// No algorithm of the list is supported.
    #[error("no common algorithm for CHAP")]
    NoAlgorithm,
    /// A value that is not binary, or longer than one may be.
    #[error("{0} is not well formed")]
    BadValue(&'static str),
    /// A key that this step needs is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// The name is not the one that has the secret.
    #[error("wrong name")]
    WrongName,
    /// The response does not fit the secret.
    #[error("wrong response")]
    WrongResponse,
    /// The peer has sent our own challenge back.
    #[error("our challenge was reflected")]
    Reflected,
    /// Both directions have the same secret.
    #[error("both directions have the same secret")]
    SameSecret,
}

/// A hash (§12.1.3: CHAP_A).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// 5: every implementation has it.
    Md5 = 5,
    /// 7.
    Sha256 = 7,
}

impl Algorithm {
    /// Those that we have, the better one first.
    pub const ALL: [Self; 2] = [Self::Sha256, Self::Md5];

    /// The list that an initiator offers.
    pub const LIST: &'static str = "7,5";

    /// The first of a list that we have.
    ///
    /// # Errors
    /// [`ChapError::NoAlgorithm`].
    pub fn choose(list: &str) -> Result<Self, ChapError> {
        let known = |text: &str| Self::ALL.into_iter().find(|own| own.number() == text);
        list.split(',').find_map(known).ok_or(ChapError::NoAlgorithm)
    }

    /// As it is sent.
    pub const fn number(self) -> &'static str {
        match self {
            Self::Md5 => "5",
            Self::Sha256 => "7",
        }
    }

    /// The response (RFC 1994 §4.1): the hash over identifier, secret and challenge.
    pub fn response(self, identifier: u8, secret: &[u8], challenge: &[u8]) -> Vec<u8> {
        match self {
            Self::Md5 => {
                let hash = Md5::new().chain_update([identifier]).chain_update(secret);
                hash.chain_update(challenge).finalize().to_vec()
            }
            Self::Sha256 => {
                let mut hash = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA256);
                hash.update(&[identifier]);
                hash.update(secret);
                hash.update(challenge);
                hash.finish().as_ref().to_vec()
            }
        }
    }
}

/// A challenge that we have sent, until it is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// Hash of the response.
    pub algorithm: Algorithm,
    /// CHAP_I.
    pub identifier: u8,
    /// CHAP_C: random.
    pub challenge: [u8; CHALLENGE],
}

impl Challenge {
    /// Checks the answer, in a time that does not depend on it.
    ///
    /// # Errors
    /// [`ChapError::WrongResponse`], [`ChapError::BadValue`].
    pub fn check(&self, secret: &[u8], response: &str) -> Result<(), ChapError> {
        let got = decode_binary(response).ok_or(ChapError::BadValue("CHAP_R"))?;
        let want = self.algorithm.response(self.identifier, secret, &self.challenge);
        verify_slices_are_equal(&got, &want).map_err(|_| ChapError::WrongResponse)
    }

    /// Answers the peer's challenge to us, which came with the answer to ours.
    ///
    /// # Errors
    /// [`ChapError::Reflected`] if it is our own; [`ChapError::SameSecret`];
    /// [`ChapError::BadValue`].
    pub fn mutual_response(
        &self,
        theirs: &Received<'_>,
        secret: &[u8],
        their_secret: &[u8],
    ) -> Result<Vec<u8>, ChapError> {
        if verify_slices_are_equal(secret, their_secret).is_ok() {
            return Err(ChapError::SameSecret);
        }
        let challenge = theirs.challenge()?;
        if challenge == self.challenge {
            return Err(ChapError::Reflected);
        }
        Ok(self.algorithm.response(theirs.identifier()?, secret, &challenge))
    }
}

/// A challenge as the peer has sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received<'a> {
    /// CHAP_I.
    pub identifier: &'a str,
    /// CHAP_C.
    pub challenge: &'a str,
}

impl Received<'_> {
    /// The identifier: one byte.
    ///
    /// # Errors
    /// [`ChapError::BadValue`].
    pub fn identifier(&self) -> Result<u8, ChapError> {
        let number = super::keys::number(self.identifier);
        number.and_then(|n| u8::try_from(n).ok()).ok_or(ChapError::BadValue("CHAP_I"))
    }

    /// The challenge: 1 to 1024 bytes.
    ///
    /// # Errors
    /// [`ChapError::BadValue`].
    pub fn challenge(&self) -> Result<Vec<u8>, ChapError> {
        let bytes = decode_binary(self.challenge).filter(|bytes| !bytes.is_empty());
        bytes.ok_or(ChapError::BadValue("CHAP_C"))
    }
}

/// A binary value (§6.1) as hexadecimal text, which every implementation reads.
pub fn encode_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |at: u8| char::from(DIGITS[usize::from(at & 15)]);
    let mut text = String::with_capacity(2 + 2 * bytes.len());
    text.push_str("0x");
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(*byte));
    }
    text
}

/// A binary value as base64 text.
pub fn encode_base64(bytes: &[u8]) -> String {
    let mut text = String::from("0b");
    for group in bytes.chunks(3) {
        let mut padded = [0; 4];
        for (place, byte) in padded.iter_mut().skip(1).zip(group) {
            *place = *byte;
        }
        let bits = u32::from_be_bytes(padded);
        for i in 0..4 {
            let six = (bits >> (18 - 6 * i) & 63) as usize;
            text.push(if i <= group.len() { char::from(BASE64[six]) } else { '=' });
        }
    }
    text
}

/// The alphabet of RFC 4648 §4.
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The bytes of a binary value in either form; `None` if it is neither, or longer than 1024 bytes.
pub fn decode_binary(text: &str) -> Option<Vec<u8>> {
    let (prefix, digits) = text.split_at_checked(2)?;
    let bytes = match prefix {
        "0x" | "0X" => decode_hex(digits.as_bytes())?,
        "0b" | "0B" => decode_base64(digits.as_bytes())?,
        _ => return None,
    };
    (bytes.len() <= ISCSI_BINARY_MAX).then_some(bytes)
}

fn decode_hex(digits: &[u8]) -> Option<Vec<u8>> {
    let value = |byte: &u8| char::from(*byte).to_digit(16).map(|digit| digit as u8);
    // An odd digit stands alone at the front.
    let (odd, even) = digits.split_at_checked(digits.len() % 2)?;
    let mut bytes = Vec::with_capacity(digits.len().div_ceil(2).min(ISCSI_BINARY_MAX + 1));
    if let Some(digit) = odd.first() {
        bytes.push(value(digit)?);
    }
    for pair in even.chunks_exact(2) {
        let [high, low] = pair else { return None };
        bytes.push(value(high)? << 4 | value(low)?);
    }
    Some(bytes)
}

fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    let digits = text.get(..text.len() - padding)?;
    if padding > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity((text.len() / 4 * 3).min(ISCSI_BINARY_MAX + 3));
    for group in digits.chunks(4) {
        let mut bits = 0u32;
        for byte in group {
            let six = BASE64.iter().position(|digit| digit == byte)?;
            bits = bits << 6 | six as u32;
        }
        bits <<= 6 * (4 - group.len());
        let [_, whole @ ..] = bits.to_be_bytes();
        let (taken, spare) = whole.split_at_checked(group.len() * 3 / 4)?;
        if group.len() < 2 || spare.iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(taken);
    }
    Some(bytes)
}
