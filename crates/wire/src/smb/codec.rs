//! Little-endian fields at fixed places, and buffers that a body points to by offset and length.

use thiserror::Error;

/// What is wrong with a message: the peer's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SmbError {
    /// It ends before what it must hold.
    #[error("{0}: the message is too short")]
    Short(&'static str),
    /// A field has a value that it cannot have.
    #[error("{0}: a value that there is not")]
    Value(&'static str),
    /// A length or count is above its limit.
    #[error("{0}: more than the limit")]
    Limit(&'static str),
}

/// What decoding comes to.
pub type Result<T> = std::result::Result<T, SmbError>;

/// A field of a fixed size.
pub trait Field: Sized {
    /// Bytes that it takes.
    const SIZE: usize;
    /// Reads it.
    ///
    /// # Errors
    /// [`SmbError`].
    fn get(r: &mut Reader<'_>) -> Result<Self>;
    /// Appends it.
    fn put(&self, out: &mut Vec<u8>);
}

/// Takes bytes from the front.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// What is read, for errors.
    what: &'static str,
}

impl<'a> Reader<'a> {
    /// Reads `bytes`, which are `what`.
    pub const fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { rest: bytes, what }
    }

    /// From the byte at `at` of a message on.
    ///
    /// # Errors
    /// [`SmbError::Short`] if there is none.
    pub fn at(msg: &'a [u8], at: usize, what: &'static str) -> Result<Self> {
        Ok(Self { rest: msg.get(at..).ok_or(SmbError::Short(what))?, what })
    }

    /// What is left.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// What is read, for errors.
    pub const fn what(&self) -> &'static str {
        self.what
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// [`SmbError::Short`].
    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(count).ok_or(SmbError::Short(self.what))?;
        self.rest = rest;
        Ok(head)
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// [`SmbError::Short`].
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(SmbError::Short(self.what))?;
        self.rest = rest;
        Ok(*head)
    }

    /// The next field.
    ///
    /// # Errors
    /// [`SmbError`].
    pub fn get<T: Field>(&mut self) -> Result<T> {
        T::get(self)
    }

    /// The structure size at the head of a body, which must be this.
    ///
    /// # Errors
    /// [`SmbError::Value`] if it is another.
    pub fn size(&mut self, size: u16) -> Result<()> {
        if self.get::<u16>()? == size { Ok(()) } else { Err(SmbError::Value(self.what)) }
    }
}

macro_rules! number {
    ($($type:ty)*) => {$(
        impl Field for $type {
            const SIZE: usize = size_of::<$type>();
            fn get(r: &mut Reader<'_>) -> Result<Self> {
                Ok(<$type>::from_le_bytes(r.array()?))
            }
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}
number!(u8 u16 u32 u64);

impl<const N: usize> Field for [u8; N] {
    const SIZE: usize = N;
    fn get(r: &mut Reader<'_>) -> Result<Self> {
        r.array()
    }
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
}

/// A buffer of a message by its offset from `base` and its length. An empty one may be anywhere.
///
/// # Errors
/// [`SmbError::Short`] if it is not all there; [`SmbError::Limit`] beyond `max`.
pub fn buffer<'a>(
    msg: &'a [u8],
    (offset, len): (usize, usize),
    max: usize,
    what: &'static str,
) -> Result<&'a [u8]> {
    if len > max {
        return Err(SmbError::Limit(what));
    }
    if len == 0 {
        return Ok(&[]);
    }
    let end = offset.checked_add(len).ok_or(SmbError::Short(what))?;
    msg.get(offset..end).ok_or(SmbError::Short(what))
}

/// Appends zeros until the length from `start` on is a multiple of `to`.
pub fn pad(out: &mut Vec<u8>, start: usize, to: usize) {
    let len = out.len().saturating_sub(start);
    out.resize(start + len.next_multiple_of(to), 0);
}

/// Writes over bytes that are there.
pub fn patch(out: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = out.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

/// A structure with fields of fixed sizes, one after the other.
macro_rules! fixed {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$fmeta:meta])* pub $field:ident: $type:ty,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name {
            $($(#[$fmeta])* pub $field: $type,)*
        }

        impl $crate::smb::codec::Field for $name {
            const SIZE: usize = 0 $(+ <$type as $crate::smb::codec::Field>::SIZE)*;
            fn get(
                r: &mut $crate::smb::codec::Reader<'_>,
            ) -> $crate::smb::codec::Result<Self> {
                Ok(Self { $($field: r.get()?,)* })
            }
            fn put(&self, out: &mut Vec<u8>) {
                $($crate::smb::codec::Field::put(&self.$field, out);)*
            }
        }
    };
}

/// A body that has a structure size and fixed fields only.
macro_rules! body {
    ($(#[$meta:meta])* pub struct $name:ident = $size:literal {
        $($(#[$fmeta:meta])* pub $field:ident: $type:ty,)*
    }) => {
        fixed! {
            $(#[$meta])*
            pub struct $name {
                $($(#[$fmeta])* pub $field: $type,)*
            }
        }

        impl $name {
            /// Reads the body of a message.
            ///
            /// # Errors
            /// [`SmbError`](crate::smb::codec::SmbError).
            pub fn decode(msg: &[u8]) -> $crate::smb::codec::Result<Self> {
                use $crate::smb::header::HEADER;
                let mut r = $crate::smb::codec::Reader::at(msg, HEADER, stringify!($name))?;
                r.size($size)?;
                r.get()
            }

            /// Appends the body.
            pub fn put_body(&self, out: &mut Vec<u8>) {
                let size: u16 = $size;
                out.extend_from_slice(&size.to_le_bytes());
                $crate::smb::codec::Field::put(self, out);
            }
        }
    };
}
