//! The strings of SSH (RFC 4251 §5): a length and as many bytes, without the padding of XDR.

use base::limits::{SFTP_HANDLE_MAX, SFTP_PACKET_MAX, SFTP_STRING_MAX};

use crate::xdr::{Decode, DecodeError, Encode, Reader, Writer};

/// Reads a string of at most `max` bytes.
///
/// # Errors
/// [`DecodeError::TooLong`] before anything else is looked at; [`DecodeError::Short`].
pub(super) fn string<'a>(
    r: &mut Reader<'a>,
    max: usize,
    what: &'static str,
) -> Result<&'a [u8], DecodeError> {
    let len = r.length(max, what)?;
    let (head, tail) = r.rest().split_at_checked(len).ok_or(DecodeError::Short { what })?;
    *r = Reader::new(tail);
    Ok(head)
}

/// Appends a string. No buffer exceeds the largest length.
pub(super) fn put_string(w: &mut Writer<'_>, bytes: &[u8]) {
    debug_assert!(u32::try_from(bytes.len()).is_ok());
    w.u32(bytes.len() as u32);
    w.raw(bytes);
}

macro_rules! strings {
    ($($(#[$meta:meta])* $name:ident, $max:expr, $what:literal;)*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $name<'a>(pub &'a [u8]);

        impl Encode for $name<'_> {
            #[inline]
            fn encode(&self, w: &mut Writer<'_>) {
                put_string(w, self.0);
            }
        }

        impl<'a> Decode<'a> for $name<'a> {
            #[inline]
            fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
                string(r, $max, $what).map(Self)
            }
        }

        #[cfg(test)]
        impl<'a> crate::arb::Arb<'a> for $name<'a> {
            fn arb(g: &mut crate::arb::Gen<'a>) -> Self {
                Self(g.bytes($max))
            }
        }
    )*};
}

strings! {
    /// A path or a name: bytes, not text.
    PathBytes, SFTP_STRING_MAX, "path";
    /// A handle of the server's.
    HandleBytes, SFTP_HANDLE_MAX, "handle";
    /// Data of a file: as much as a packet holds.
    Data, SFTP_PACKET_MAX, "data";
    /// Any other string: of an extension, a message, a language.
    Str, SFTP_STRING_MAX, "string";
}
