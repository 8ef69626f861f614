//! External Data Representation (RFC 4506): a bounded reader, an appending writer, and the traits
//! that every message implements in both directions.

use base::limits::RPC_RECORD_MAX;
use thiserror::Error;

#[macro_use]
mod macros;
mod writer;

pub use writer::{Writer, padding};

#[cfg(test)]
mod tests;

/// Why bytes are not the message that they should be. The peer is at fault in every case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The bytes end before the item does.
    #[error("message ends within {what}")]
    Short {
        /// The item that was being read.
        what: &'static str,
    },
    /// A variable-length item is longer than we take.
    #[error("{what} has {got} elements, the maximum is {max}")]
    TooLong {
        /// The item.
        what: &'static str,
        /// Most elements (bytes, for opaques and strings).
        max: usize,
        /// What the peer announced.
        got: usize,
    },
    /// A discriminant or boolean has a value that leaves the rest without meaning.
    #[error("{what} has the invalid value {got}")]
    BadValue {
        /// The item.
        what: &'static str,
        /// What the peer sent.
        got: u32,
    },
    /// Bytes follow the end of the message.
    #[error("bytes follow the end of the message")]
    Trailing,
}

/// Something that can be written as XDR. Writing cannot fail: what a type can hold can be sent.
pub trait Encode {
    /// Appends the XDR form.
    fn encode(&self, w: &mut Writer<'_>);
}

/// Something that can be read from XDR, borrowing from the message.
pub trait Decode<'a>: Sized {
    /// Reads one from the front of what is left.
    ///
    /// # Errors
    /// [`DecodeError`], naming the item; the reader is then somewhere inside the message.
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError>;
}

/// A member of a structure: like [`Decode`], but primitives learn the member's name for errors.
pub trait Item<'a>: Sized {
    /// Reads one; `what` names it where its own type does not.
    ///
    /// # Errors
    /// As [`Decode::decode`].
    fn item(r: &mut Reader<'a>, what: &'static str) -> Result<Self, DecodeError>;
}

impl<'a, T: Decode<'a>> Item<'a> for T {
    #[inline]
    fn item(r: &mut Reader<'a>, _: &'static str) -> Result<Self, DecodeError> {
        T::decode(r)
    }
}

/// Reads exactly one message from `bytes`.
///
/// # Errors
/// What `T` finds wrong, or [`DecodeError::Trailing`].
pub fn decode_all<'a, T: Decode<'a>>(bytes: &'a [u8]) -> Result<T, DecodeError> {
    let mut r = Reader::new(bytes);
    let value = T::decode(&mut r)?;
    r.finish()?;
    Ok(value)
}

/// Takes XDR items from the front of a byte slice. Opaques are borrowed, never copied.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What has not been read yet.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Ends the message.
    ///
    /// # Errors
    /// [`DecodeError::Trailing`] if bytes are left.
    #[inline]
    pub fn finish(self) -> Result<(), DecodeError> {
        if self.rest.is_empty() { Ok(()) } else { Err(DecodeError::Trailing) }
    }

    /// Exactly `N` bytes, for items with a size that is a multiple of four: no padding is read.
    ///
    /// # Errors
    /// [`DecodeError::Short`].
    #[inline]
    pub fn array<const N: usize>(
        &mut self,
        what: &'static str,
    ) -> Result<&'a [u8; N], DecodeError> {
        let Some((head, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(DecodeError::Short { what });
        };
        self.rest = rest;
        Ok(head)
    }

    /// Unsigned 32-bit integer (RFC 4506 §4.2).
    ///
    /// # Errors
    /// [`DecodeError::Short`].
    #[inline]
    pub fn u32(&mut self, what: &'static str) -> Result<u32, DecodeError> {
        Ok(u32::from_be_bytes(*self.array(what)?))
    }

    /// Unsigned 64-bit integer, "unsigned hyper" (§4.5).
    ///
    /// # Errors
    /// [`DecodeError::Short`].
    #[inline]
    pub fn u64(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        Ok(u64::from_be_bytes(*self.array(what)?))
    }

    /// Boolean (§4.4).
    ///
    /// # Errors
    /// [`DecodeError::Short`]; [`DecodeError::BadValue`] for anything but 0 and 1.
    #[inline]
    pub fn bool(&mut self, what: &'static str) -> Result<bool, DecodeError> {
        match self.u32(what)? {
            0 => Ok(false),
            1 => Ok(true),
            got => Err(DecodeError::BadValue { what, got }),
        }
    }

    /// Fixed-length opaque of `len` bytes and its padding (§4.9).
    ///
    /// # Errors
    /// [`DecodeError::Short`], also when only padding is missing. Its value is not looked at.
    #[inline]
    pub fn fixed(&mut self, len: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let short = DecodeError::Short { what };
        let padded = len.checked_next_multiple_of(4).ok_or(short)?;
        let (item, rest) = self.rest.split_at_checked(padded).ok_or(short)?;
        self.rest = rest;
        item.get(..len).ok_or(short)
    }

    /// Variable-length opaque or string of at most `max` bytes (§4.10, §4.11).
    ///
    /// # Errors
    /// [`DecodeError::TooLong`] before anything else is looked at; [`DecodeError::Short`].
    #[inline]
    pub fn opaque(&mut self, max: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let len = self.length(max, what)?;
        self.fixed(len, what)
    }

    /// The length of a variable-length item with at most `max` elements (§4.13).
    ///
    /// # Errors
    /// [`DecodeError::TooLong`], [`DecodeError::Short`].
    #[inline]
    pub fn length(&mut self, max: usize, what: &'static str) -> Result<usize, DecodeError> {
        let got = self.u32(what)? as usize;
        if got > max { Err(DecodeError::TooLong { what, max, got }) } else { Ok(got) }
    }

    /// A linked list of optional items (§4.19), as most lists of MOUNT and port mapper are.
    ///
    /// # Errors
    /// [`DecodeError::TooLong`] after `max` items; what an item finds wrong.
    pub fn list<T: Decode<'a>>(
        &mut self,
        max: usize,
        what: &'static str,
    ) -> Result<Vec<T>, DecodeError> {
        let mut items = Vec::new();
        while self.bool(what)? {
            if items.len() == max {
                return Err(DecodeError::TooLong { what, max, got: max + 1 });
            }
            items.push(T::decode(self)?);
        }
        Ok(items)
    }
}

impl Encode for () {
    #[inline]
    fn encode(&self, _: &mut Writer<'_>) {}
}

impl Decode<'_> for () {
    #[inline]
    fn decode(_: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(())
    }
}

/// Optional data (§4.19): also `post_op_attr` and its kin of RFC 1813, which look the same.
impl<T: Encode> Encode for Option<T> {
    #[inline]
    fn encode(&self, w: &mut Writer<'_>) {
        w.bool(self.is_some());
        if let Some(value) = self {
            value.encode(w);
        }
    }
}

impl<'a, T: Item<'a>> Decode<'a> for Option<T> {
    #[inline]
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(if r.bool("presence flag")? { Some(T::item(r, "optional item")?) } else { None })
    }
}

macro_rules! primitive {
    ($($type:ident)*) => {$(
        impl Encode for $type {
            #[inline]
            fn encode(&self, w: &mut Writer<'_>) {
                w.$type(*self);
            }
        }

        impl Item<'_> for $type {
            #[inline]
            fn item(r: &mut Reader<'_>, what: &'static str) -> Result<Self, DecodeError> {
                r.$type(what)
            }
        }
    )*};
}
primitive!(u32 u64 bool);

/// Signed 64-bit integer, "hyper" (§4.5).
impl Encode for i64 {
    #[inline]
    fn encode(&self, w: &mut Writer<'_>) {
        w.u64(self.cast_unsigned());
    }
}

impl Item<'_> for i64 {
    #[inline]
    fn item(r: &mut Reader<'_>, what: &'static str) -> Result<Self, DecodeError> {
        r.u64(what).map(u64::cast_signed)
    }
}

/// Fixed-length opaques without padding: verifiers (8 bytes), the `other` of a stateid (12),
/// session ids (16), hashes (32).
macro_rules! fixed_opaque {
    ($($length:literal)*) => {$(
        impl Encode for [u8; $length] {
            #[inline]
            fn encode(&self, w: &mut Writer<'_>) {
                w.raw(self);
            }
        }

        impl Item<'_> for [u8; $length] {
            #[inline]
            fn item(r: &mut Reader<'_>, what: &'static str) -> Result<Self, DecodeError> {
                r.array(what).copied()
            }
        }
    )*};
}
fixed_opaque!(8 12 16 32);

/// A counted list (§4.13) of at most `MAX` items, each at least four bytes long, so that what it
/// takes of memory is bounded by the message that brings it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seq<T, const MAX: usize>(pub Vec<T>);

impl<T, const MAX: usize> Default for Seq<T, MAX> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Encode, const MAX: usize> Encode for Seq<T, MAX> {
    fn encode(&self, w: &mut Writer<'_>) {
        debug_assert!(self.0.len() <= MAX, "a list longer than the RFC or we allow");
        w.u32(self.0.len() as u32);
        self.0.iter().for_each(|item| item.encode(w));
    }
}

impl<'a, T: Item<'a>, const MAX: usize> Item<'a> for Seq<T, MAX> {
    fn item(r: &mut Reader<'a>, what: &'static str) -> Result<Self, DecodeError> {
        let count = r.length(MAX, what)?;
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(T::item(r, what)?);
        }
        Ok(Self(items))
    }
}

/// Variable-length opaque without a maximum of its own, such as file data: the record that brings
/// it is the limit.
impl Encode for &[u8] {
    #[inline]
    fn encode(&self, w: &mut Writer<'_>) {
        w.opaque(self);
    }
}

impl<'a> Item<'a> for &'a [u8] {
    #[inline]
    fn item(r: &mut Reader<'a>, what: &'static str) -> Result<Self, DecodeError> {
        r.opaque(RPC_RECORD_MAX, what)
    }
}
