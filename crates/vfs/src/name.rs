//! Names in a directory: bytes, checked once where they come in, ready for a system call.

use std::ffi::CStr;

use base::limits::NAME_MAX;

use crate::fs::Result;
use crate::status::Status;

/// A checked name: not empty, at most 255 bytes, without `/` and NUL. Ends with its own NUL, so
/// that passing it to the kernel needs no allocation.
pub struct Name {
    bytes: [u8; NAME_MAX + 1],
    len: usize,
}

impl Name {
    /// Checks a name that is looked up: `.` and `..` are allowed.
    pub fn any(name: &[u8]) -> Result<Self> {
        if name.len() > NAME_MAX {
            return Err(Status::NameTooLong);
        }
        if name.is_empty() || name.iter().any(|b| matches!(b, 0 | b'/')) {
            return Err(Status::Invalid);
        }
        let mut bytes = [0; NAME_MAX + 1];
        bytes[..name.len()].copy_from_slice(name);
        Ok(Self { bytes, len: name.len() })
    }

    /// Checks a name that is made: `.` and `..` exist in every directory.
    pub fn made(name: &[u8]) -> Result<Self> {
        match name {
            b"." | b".." => Err(Status::Exists),
            _ => Self::any(name),
        }
    }

    /// Checks a name that is removed or renamed: `.` and `..` cannot be (RFC 1813 §3.3.12–14).
    pub fn removed(name: &[u8]) -> Result<Self> {
        match name {
            b"." | b".." => Err(Status::Invalid),
            _ => Self::any(name),
        }
    }

    /// The name itself.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// The name for a system call.
    pub fn as_cstr(&self) -> &CStr {
        // The bytes before the closing NUL hold none, so this is the whole name.
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}
