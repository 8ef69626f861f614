//! Owners and groups by name: a source sends the names of its numbers, before the first entry that
//! has them, and a destination translates them to its own. Names that it does not have keep their
//! number, and so does root.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, RwLock};

use base::limits::{DSYNC_OWNER_MAX, DSYNC_OWNERS_MAX};
use wire::dsync::{Bytes, Message, Meta, Owner};

use crate::error::{SyncError, Why};
use crate::link::Out;
use crate::stop::lock;
use crate::tree::Tree;

#[cfg(test)]
mod tests;

/// Whether a number is a group's, and the number.
type Number = (bool, u32);

/// The names that a source has sent.
#[derive(Default)]
pub struct SentOwners(Mutex<HashSet<Number>>);

impl SentOwners {
    /// Sends the names of all numbers in an entry that were not sent before. The caller sends the
    /// entry afterwards.
    ///
    /// # Errors
    /// Why the run ends.
    pub fn send_names<T: Tree>(&self, tree: &T, out: &Out, meta: &Meta) -> Result<(), Why> {
        let mut numbers = vec![(false, meta.uid), (true, meta.gid)];
        for xattr in meta.xattrs.0.iter().filter(|xattr| is_acl(&xattr.name.0)) {
            numbers.extend(named(&xattr.value.0).map(|(_, number)| number));
        }
        // Held until all are sent, so that no other thread takes a name for sent that is not.
        let mut sent = lock(&self.0);
        for (group, number) in numbers {
            let known = number == 0 || sent.len() >= DSYNC_OWNERS_MAX;
            if known || !sent.insert((group, number)) {
                continue;
            }
            let name = tree.owner_name(group, number);
            if let Some(name) = name.filter(|name| (1..=DSYNC_OWNER_MAX).contains(&name.len())) {
                out.send(&Message::Owner(Owner { group, number, name: Bytes(name) }))?;
            }
        }
        Ok(())
    }
}

/// The names that a destination has received.
#[derive(Default)]
pub struct ReceivedOwners(RwLock<HashMap<Number, u32>>);

impl ReceivedOwners {
    /// Takes a name.
    ///
    /// # Errors
    /// [`SyncError::Broken`]: there are too many.
    pub fn learn<T: Tree>(&self, tree: &T, owner: &Owner) -> Result<(), SyncError> {
        let own = tree.owner_number(owner.group, &owner.name.0);
        let mut known = self.0.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        if known.len() >= DSYNC_OWNERS_MAX {
            return Err(SyncError::Broken("more names of owners than are taken"));
        }
        if owner.number != 0 {
            known.insert((owner.group, owner.number), own.unwrap_or(owner.number));
        }
        Ok(())
    }

    /// Translates an entry's numbers to this machine's.
    pub fn translate(&self, meta: &mut Meta) {
        let known = self.0.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        if known.is_empty() {
            return;
        }
        let of = |number: Number| known.get(&number).copied().unwrap_or(number.1);
        (meta.uid, meta.gid) = (of((false, meta.uid)), of((true, meta.gid)));
        for xattr in meta.xattrs.0.iter_mut().filter(|xattr| is_acl(&xattr.name.0)) {
            let value = &mut xattr.value.0;
            let found: Vec<_> = named(value).collect();
            for (at, number) in found {
                if let Some(bytes) = value.get_mut(at..at + 4) {
                    bytes.copy_from_slice(&of(number).to_le_bytes());
                }
            }
        }
    }
}

fn is_acl(name: &[u8]) -> bool {
    name == b"system.posix_acl_access" || name == b"system.posix_acl_default"
}

/// Bytes before the entries of an access control list, and of each.
const ACL_HEAD: usize = 4;
const ACL_ENTRY: usize = 8;
/// Tags of entries of one user, and of one group (acl(5)).
const ACL_USER: u16 = 0x02;
const ACL_GROUP: u16 = 0x08;

/// Where the numbers in an access control list are, and what they are: `struct
/// posix_acl_xattr_entry` is a tag, rights and a number, the lowest bytes first.
fn named(acl: &[u8]) -> impl Iterator<Item = (usize, Number)> {
    let entries = acl.get(ACL_HEAD..).unwrap_or_default().as_chunks::<ACL_ENTRY>().0;
    entries.iter().enumerate().filter_map(|(index, entry)| {
        let [tag, tag_high, _, _, number @ ..] = *entry;
        let group = match u16::from_le_bytes([tag, tag_high]) {
            ACL_USER => false,
            ACL_GROUP => true,
            _ => return None,
        };
        Some((ACL_HEAD + index * ACL_ENTRY + 4, (group, u32::from_le_bytes(number))))
    })
}
