//! Owners as names: `user@domain` for a number, and back (RFC 7530 §5.9, RFC 8881 §5.9).
//!
//! Without a domain owners are decimal numbers, which clients with AUTH_SYS understand without any
//! setup. With one, numbers that have a name in the tables are sent as that name, and the others
//! stay numbers; both are accepted from clients.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use wire::nfs4::Nfsstat4;
use wire::xdr::Writer;

/// The kind of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerKind {
    /// A user's.
    User,
    /// A group's.
    Group,
}

/// Names and numbers of users, or of groups.
#[derive(Debug, Default)]
struct Names {
    by_id: HashMap<u32, Box<str>>,
    by_name: HashMap<Box<str>, u32>,
    /// They are names in this domain.
    domain: Box<str>,
}

impl Names {
    /// The lines of passwd(5) or group(5): the first field is the name, the third the number. Of
    /// several names for a number the first is sent; malformed lines are ignored.
    fn parse(text: &str, domain: &str) -> Self {
        let mut names = Self { domain: domain.into(), ..Self::default() };
        for line in text.lines() {
            let mut fields = line.split(':');
            let (Some(name), Some(id)) = (fields.next(), fields.nth(1)) else { continue };
            let Ok(id) = id.parse::<u32>() else { continue };
            if name.is_empty() || name.contains('@') || name.bytes().all(|b| b.is_ascii_digit()) {
                continue;
            }
            names.by_id.entry(id).or_insert_with(|| name.into());
            names.by_name.entry(name.into()).or_insert(id);
        }
        names
    }
}

/// Between owners on the wire and numbers.
#[derive(Debug, Default)]
pub struct IdMap {
    /// Whether there is a domain: owners that are numbers cost no lock.
    named: AtomicBool,
    domain: Mutex<Option<String>>,
    users: RwLock<Names>,
    groups: RwLock<Names>,
}

impl IdMap {
    /// Owners are numbers.
    pub fn numbers() -> Self {
        Self::default()
    }

    /// Owners are names in `domain`, once [`IdMap::set`] has set the table.
    pub fn names(domain: &str) -> Self {
        let map = Self::default();
        map.set_domain(Some(domain));
        map
    }

    /// From now on owners are names in this domain, once [`IdMap::set`] has set the table; without
    /// one they are numbers.
    pub fn set_domain(&self, domain: Option<&str>) {
        let mut ours = self.domain.lock().unwrap_or_else(PoisonError::into_inner);
        *ours = domain.map(str::to_owned);
        self.named.store(domain.is_some(), Ordering::Relaxed);
        for whose in [OwnerKind::User, OwnerKind::Group] {
            let names = Names { domain: domain.unwrap_or_default().into(), ..Names::default() };
            *self.table(whose).write().unwrap_or_else(PoisonError::into_inner) = names;
        }
    }

    /// Which users or groups there are from now on, in the form of passwd(5) or group(5).
    pub fn set(&self, whose: OwnerKind, text: &str) {
        let ours = self.domain.lock().unwrap_or_else(PoisonError::into_inner);
        // Without a domain no id has a name.
        let Some(domain) = &*ours else { return };
        let names = Names::parse(text, domain);
        *self.table(whose).write().unwrap_or_else(PoisonError::into_inner) = names;
    }

    fn table(&self, whose: OwnerKind) -> &RwLock<Names> {
        match whose {
            OwnerKind::User => &self.users,
            OwnerKind::Group => &self.groups,
        }
    }

    /// Writes an owner.
    pub(super) fn put(&self, w: &mut Writer<'_>, whose: OwnerKind, id: u32) {
        if self.named.load(Ordering::Relaxed) {
            let names = self.table(whose).read().unwrap_or_else(PoisonError::into_inner);
            if let Some(name) = names.by_id.get(&id) {
                let domain = &names.domain;
                return w.opaque(format!("{name}@{domain}").as_bytes());
            }
        }
        put_number(w, id);
    }

    /// The number of an owner.
    ///
    /// # Errors
    /// NFS4ERR_INVAL if it is empty or not UTF-8, NFS4ERR_BADOWNER if the name is unknown.
    pub(super) fn take(&self, whose: OwnerKind, text: &[u8]) -> Result<u32, Nfsstat4> {
        let text = std::str::from_utf8(text).map_err(|_| Nfsstat4::INVAL)?;
        if text.is_empty() {
            return Err(Nfsstat4::INVAL);
        }
        if text.bytes().all(|b| b.is_ascii_digit()) {
            return text.parse().map_err(|_| Nfsstat4::BADOWNER);
        }
        let (name, domain) = text.split_once('@').unwrap_or((text, ""));
        let names = self.table(whose).read().unwrap_or_else(PoisonError::into_inner);
        // Without a domain only "root" is known, and it is so everywhere.
        let ours = names.domain.is_empty() || domain.eq_ignore_ascii_case(&names.domain);
        let known = names.by_name.get(name).copied();
        let known = known.or((name == "root").then_some(0)).filter(|_| ours);
        known.ok_or(Nfsstat4::BADOWNER)
    }
}

/// A number as its decimal digits, which every client takes for an owner (RFC 8881 §5.9).
fn put_number(w: &mut Writer<'_>, mut id: u32) {
    let mut digits = [0; 10];
    let mut at = digits.len();
    loop {
        at -= 1;
        // At most ten digits.
        digits[at] = b'0' + (id % 10) as u8;
        id /= 10;
        if id == 0 {
            break;
        }
    }
    w.opaque(&digits[at..]);
}

#[cfg(test)]
mod tests;
