//! Dead properties, which clients set and the server only stores (RFC 4918 §4): in one extended
//! attribute of the file (`docs/formats/dav-properties.md`), so that they move with it and change
//! all at once.

use std::collections::BTreeMap;

use base::limits::DAV_PROPS_BYTES_MAX;
use vfs::attr::Wcc;
use vfs::fs::{Change, Flush};
use vfs::fs::{Changed, Context, FileSystem, Result, SetXattr};
use vfs::handle::Handle;
use vfs::status::Status;
use wire::dav::body::Patch;
use wire::dav::xml::{Name, Writer};

/// The name of the attribute, without `user.`.
pub const XATTR: &[u8] = b"plimsoll.dav";

/// The first byte of the value: its version.
const VERSION: u8 = 1;

/// The dead properties of one file: each as XML that can stand anywhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dead(pub BTreeMap<Name, String>);

impl Dead {
    /// Reads the attribute's value; `None` if it is not in this format.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(&[VERSION])?;
        let mut all = BTreeMap::new();
        while !rest.is_empty() {
            let mut text = || {
                let (length, after) = rest.split_first_chunk()?;
                let (text, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
                rest = after;
                std::str::from_utf8(text).ok()
            };
            let (ns, local, xml) = (text()?, text()?, text()?);
            all.insert(Name::new(ns, local), xml.to_owned());
        }
        Some(Self(all))
    }

    /// The attribute's value.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        for (name, xml) in &self.0 {
            for text in [&*name.ns, &*name.local, xml.as_str()] {
                // Each is a part of a request's body, which is far shorter than this counts.
                out.extend((text.len() as u32).to_le_bytes());
                out.extend(text.as_bytes());
            }
        }
        out
    }

    /// Makes a change.
    pub fn apply(&mut self, patch: &Patch) {
        match patch {
            Patch::Set(element) => {
                let mut xml = String::new();
                Writer::new(&mut xml).element(element);
                self.0.insert(element.name.clone(), xml);
            }
            Patch::Remove(name) => drop(self.0.remove(name)),
        }
    }

    /// Those of a file; none where the file system keeps no extended attributes.
    ///
    /// # Errors
    /// As of GETXATTR.
    pub fn read(fs: &dyn FileSystem, cx: Context<'_>, file: &Handle) -> Result<Self> {
        Self::of(fs.get_xattr(cx, file, XATTR))
    }

    /// Those of an attribute that was read.
    ///
    /// # Errors
    /// The same.
    pub fn of(value: Result<Vec<u8>>) -> Result<Self> {
        match value {
            Ok(value) => Ok(Self::decode(&value).unwrap_or_default()),
            Err(Status::NotFound | Status::NotSupported | Status::Access | Status::NotOwner) => {
                Ok(Self::default())
            }
            Err(status) => Err(status),
        }
    }

    /// Puts them in the place of those that a file has.
    ///
    /// # Errors
    /// As of SETXATTR; [`Status::NoSpace`] if they are too many.
    pub fn write(&self, fs: &dyn FileSystem, cx: Context<'_>, file: &Handle) -> Change<()> {
        if self.0.is_empty() {
            return match fs.remove_xattr(cx, file, XATTR) {
                Err(failed) if matches!(failed.status, Status::NotFound | Status::NotSupported) => {
                    Ok(Changed { value: (), wcc: Wcc::default(), flush: Flush::NONE })
                }
                done => done,
            };
        }
        let value = self.encode();
        if value.len() > DAV_PROPS_BYTES_MAX {
            return Err(Status::NoSpace.into());
        }
        fs.set_xattr(cx, file, XATTR, &value, SetXattr::Either).map_err(|mut failed| {
            if failed.status == Status::TooLarge {
                failed.status = Status::NoSpace;
            }
            failed
        })
    }
}

#[cfg(test)]
mod tests;
