//! A line of a listing as `ls -l` prints it: some clients show nothing else. Times are UTC.

use std::collections::HashMap;

use base::units::civil;
use vfs::attr::{Attr, Time};
use vfs::identity::Owners;

use files::list;

/// Names within one reply: each user and group is looked up once, and has the same name in all of
/// its lines.
pub(super) struct OwnerNames<'a> {
    owners: &'a dyn Owners,
    users: HashMap<u32, String>,
    groups: HashMap<u32, String>,
}

impl<'a> OwnerNames<'a> {
    /// None yet.
    pub(super) fn new(owners: &'a dyn Owners) -> Self {
        Self { owners, users: HashMap::new(), groups: HashMap::new() }
    }

    fn of(&mut self, uid: u32, gid: u32) -> (&str, &str) {
        let Self { owners, users, groups } = self;
        let user = || owners.user(uid).unwrap_or_else(|| uid.to_string());
        let group = || owners.group(gid).unwrap_or_else(|| gid.to_string());
        (users.entry(uid).or_insert_with(user), groups.entry(gid).or_insert_with(group))
    }
}

/// Half a year in seconds: what is older is shown with its year instead of the time of day.
const RECENT_S: i64 = 182 * 86_400;

fn when(time: Time, now_s: i64) -> String {
    let at = civil(time.sec);
    let (month, day) = (at.month_name(), at.day);
    if (now_s - RECENT_S..=now_s + 3_600).contains(&time.sec) {
        format!("{month} {day:2} {:02}:{:02}", at.hour, at.minute)
    } else {
        format!("{month} {day:2}  {}", at.year)
    }
}

/// The line for a name, `now_s` seconds after the epoch.
pub(super) fn line(name: &[u8], attr: &Attr, known: &mut OwnerNames<'_>, now_s: i64) -> Vec<u8> {
    let (user, group) = known.of(attr.uid, attr.gid);
    let (mode, time) = (list::mode_text(attr.kind, attr.mode), when(attr.mtime, now_s));
    let mode = String::from_utf8_lossy(&mode);
    let head = format!("{mode} {:>4} {user:<8} {group:<8} {:>8} {time} ", attr.nlink, attr.size);
    [head.as_bytes(), name].concat()
}

#[cfg(test)]
mod tests;
