//! Accounts of this machine, as passwd(5) and group(5) have them. The files are read again when
//! they change; what cannot be read leaves what was read before.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base::limits::{NFS4_NAMES_FILE_MAX, USER_GROUPS_MAX};
use vfs::identity::Owners;

/// An account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub name: String,
    /// Its number.
    pub uid: u32,
    /// Its primary group.
    pub gid: u32,
}

/// The accounts.
pub struct Machine {
    passwd: Mutex<Names>,
    group: Mutex<Names>,
}

/// A file of names, as it was when it was last read.
pub struct Names {
    path: PathBuf,
    stamp: Option<Stamp>,
    text: String,
}

/// What distinguishes one state of a file from another: its number, size and time of change.
type Stamp = (u64, u64, i64, i64);

impl Default for Machine {
    fn default() -> Self {
        Self::at("/etc/passwd", "/etc/group")
    }
}

impl Machine {
    /// Those of these files.
    pub fn at(passwd: impl Into<PathBuf>, group: impl Into<PathBuf>) -> Self {
        Self { passwd: Mutex::new(Names::at(passwd)), group: Mutex::new(Names::at(group)) }
    }

    /// The account of this name.
    pub fn by_name(&self, name: &str) -> Option<Account> {
        accounts(current(&self.passwd).text()).find(|account| account.name == name)
    }

    /// The first account with this number.
    pub fn by_uid(&self, uid: u32) -> Option<Account> {
        accounts(current(&self.passwd).text()).find(|account| account.uid == uid)
    }

    /// The groups that name `user` as a member, at most [`USER_GROUPS_MAX`].
    pub fn groups(&self, user: &str) -> Vec<u32> {
        let names = current(&self.group);
        let number = |line: &str| {
            let mut fields = line.split(':').skip(2);
            let gid = fields.next()?.parse().ok()?;
            fields.next()?.split(',').any(|member| member.trim() == user).then_some(gid)
        };
        names.text().lines().filter_map(number).take(USER_GROUPS_MAX).collect()
    }
}

/// The names as they are now.
fn current(names: &Mutex<Names>) -> MutexGuard<'_, Names> {
    let mut names = names.lock().unwrap_or_else(PoisonError::into_inner);
    names.look();
    names
}

impl Owners for Machine {
    fn user(&self, uid: u32) -> Option<String> {
        self.by_uid(uid).map(|account| account.name)
    }

    /// The name of the first group with this number.
    fn group(&self, gid: u32) -> Option<String> {
        let names = current(&self.group);
        let name = |line: &str| {
            let mut fields = line.split(':');
            let name = fields.next().filter(|name| !name.is_empty())?;
            (fields.nth(1)?.parse() == Ok(gid)).then(|| name.to_owned())
        };
        names.text().lines().find_map(name)
    }
}

impl Names {
    /// Those of a file, which is read at the first [`Self::look`].
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), stamp: None, text: String::new() }
    }

    /// What was read of it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Reads it, at most [`NFS4_NAMES_FILE_MAX`] bytes, if it has changed since; returns whether it
    /// was read. A file that cannot be read leaves what was read before.
    pub fn look(&mut self) -> bool {
        let Ok(meta) = fs::metadata(&self.path) else { return false };
        let stamp = Some((meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec()));
        if self.stamp == stamp {
            return false;
        }
        let mut bytes = Vec::new();
        let file = File::open(&self.path);
        if file.and_then(|f| f.take(NFS4_NAMES_FILE_MAX).read_to_end(&mut bytes)).is_err() {
            return false;
        }
        (self.stamp, self.text) = (stamp, String::from_utf8_lossy(&bytes).into_owned());
        true
    }
}

/// The lines of a passwd(5) file that are whole.
fn accounts(passwd: &str) -> impl Iterator<Item = Account> {
    passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        Some(Account { name: name.to_owned(), uid, gid })
    })
}

#[cfg(test)]
mod tests;
