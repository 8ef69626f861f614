//! Attributes as Windows has them: those of the file system, what is stored in addition
//! ([`vfs::dos`]), and which times are shown of a file that is open.

use std::sync::Arc;

use base::clock::monotonic_ns;
use vfs::attr::{Attr, FileType, SetAttr, SetTime, Time};
use vfs::dos::{self, Dos};
use vfs::fs::{Context, FileSystem, access as unix};
use vfs::status::Status;
use wire::smb::class::attributes;
use wire::smb::create::{Facts, access};
use wire::smb::status::NtStatus;
use wire::smb::time;

use super::connection::Connection;
use super::state::opens::OpenFile;
use super::state::times::AskedTime;
use super::status;
use files::{Caller, Node};

fn filetime(time: Time) -> u64 {
    time::from_unix(time.sec, time.nsec)
}

/// Attributes that are kept of a file: a new one is to be archived.
pub(super) fn kept(attr: &Attr, dos: Option<&Dos>) -> u32 {
    let default = if attr.kind == FileType::Regular { attributes::ARCHIVE } else { 0 };
    dos.and_then(|dos| dos.attributes).unwrap_or(default) & attributes::KEPT
}

/// Attributes of a file. Without write permission it is read-only.
pub(super) fn attributes(attr: &Attr, dos: Option<&Dos>) -> u32 {
    let is_dir = attr.kind == FileType::Directory;
    let mut bits = kept(attr, dos);
    if is_dir {
        bits |= attributes::DIRECTORY;
    } else if attr.mode & 0o222 == 0 {
        bits |= attributes::READ_ONLY;
    }
    if bits == 0 { attributes::NORMAL } else { bits }
}

/// The attributes of a file as Windows has them.
pub(super) fn of(attr: &Attr, dos: Option<&Dos>) -> Facts {
    let birth = attr.birth.unwrap_or_else(|| attr.mtime.min(attr.ctime));
    let is_dir = attr.kind == FileType::Directory;
    let (allocation, size) = if is_dir { (0, 0) } else { (attr.used, attr.size) };
    Facts {
        created: dos.and_then(|dos| dos.created).unwrap_or_else(|| filetime(birth)),
        accessed: filetime(attr.atime),
        written: filetime(attr.mtime),
        changed: filetime(attr.ctime),
        allocation,
        size,
        attributes: attributes(attr, dos),
    }
}

/// A file as it is now, with what is kept of it.
///
/// # Errors
/// As of GETATTR.
pub(super) async fn look(
    conn: &Connection,
    who: &Caller,
    node: &Node,
) -> Result<(Attr, Option<Dos>), NtStatus> {
    conn.core.files.still_reach(who, &node.reached, false).map_err(status::of)?;
    let (fs, handle) = (Arc::clone(&node.reached.share.fs), node.handle);
    let look = move |cx: Context<'_>| Ok((fs.getattr(cx, &handle)?, dos::get(&*fs, cx, &handle)?));
    conn.core.look(who, &node.reached.cred, look).await.map_err(status::of)
}

/// The present attributes of an open file as Windows has them.
///
/// # Errors
/// As of GETATTR.
pub(super) async fn now(
    conn: &Connection,
    who: &Caller,
    file: &OpenFile,
) -> Result<(Attr, Facts), NtStatus> {
    let (attr, dos) = look(conn, who, &file.node).await?;
    let facts = of_open(conn, file, (&attr, dos.as_ref()));
    Ok((attr, facts))
}

/// Attributes of an open file that were looked at just now, as Windows has them.
pub(super) fn of_open(
    conn: &Connection,
    file: &OpenFile,
    (attr, dos): (&Attr, Option<&Dos>),
) -> Facts {
    let mut facts = of(attr, dos);
    show_times(conn, attr, &mut facts);
    if !file.node.is_dir() {
        facts.allocation = facts.allocation.max(file.reserved.get());
    }
    file.write_time.set(facts.written);
    facts
}

/// Keeps attributes and a time of creation; not where the file system has no place for them.
///
/// # Errors
/// As of SETXATTR.
pub(super) async fn keep(
    conn: &Connection,
    who: &Caller,
    node: &Node,
    dos: Dos,
) -> Result<(), NtStatus> {
    let handle = node.handle;
    let keep = move |fs: &dyn FileSystem, cx: Context<'_>| dos::set(fs, cx, &handle, &dos);
    match conn.core.alter(who, &node.reached, keep).await {
        Err(Status::NotSupported) => Ok(()),
        done => done.map_err(status::of),
    }
}

/// Shows the times of a file that may be open.
pub(super) fn show_times(conn: &Connection, attr: &Attr, facts: &mut Facts) {
    let show = |times: &mut super::state::times::Times| {
        times.show(facts, attr.ctime, monotonic_ns());
    };
    conn.server.open_files.times(attr.into(), show);
}

/// Something is written to an open file: its write time is shown a little later.
pub(super) fn written(conn: &Connection, file: &OpenFile) {
    let now_ns = monotonic_ns();
    if now_ns < file.write_time_until_ns.get() {
        return;
    }
    let shown = file.write_time.get();
    let until_ns =
        conn.server.open_files.times(file.entry.key, |times| times.written(shown, now_ns));
    file.write_time_until_ns.set(until_ns.unwrap_or(0));
}

/// Shows writes to an open file in its write time; returns whether they were not shown yet.
pub(super) fn settle(conn: &Connection, file: &OpenFile) -> bool {
    file.write_time_until_ns.set(0);
    let now_ns = monotonic_ns();
    conn.server.open_files.times(file.entry.key, |times| times.settle(now_ns)).unwrap_or(false)
}

/// The change of a time that a client requests.
///
/// # Errors
/// STATUS_INVALID_PARAMETER for negative numbers but -1 and -2 (MS-FSCC §2.4.7).
pub(super) fn asked_time(field: u64) -> Result<AskedTime, NtStatus> {
    AskedTime::of(field).ok_or(NtStatus::INVALID_PARAMETER)
}

/// A FILETIME as the file system has it.
pub(super) fn unix_time(filetime: u64) -> Time {
    let (sec, nsec) = time::to_unix(filetime);
    Time { sec, nsec }
}

/// Something was changed with an open: the times that it leaves alone are as they were.
///
/// # Errors
/// As of GETATTR and SETATTR.
pub(super) async fn leave_times(
    conn: &Connection,
    who: &Caller,
    file: &OpenFile,
) -> Result<(), NtStatus> {
    let held = file.user_times.get();
    if held.is_empty() {
        return Ok(());
    }
    if let Some(written) = held.written {
        settle(conn, file);
        let set = SetAttr { mtime: SetTime::At(written), ..SetAttr::default() };
        conn.core.set_attr(who, &file.node, set).await.map_err(status::of)?;
    }
    if let Some(changed) = held.changed {
        let attr = conn.core.attr(who, &file.node).await.map_err(status::of)?;
        conn.server.open_files.times(file.entry.key, |times| times.set_change(changed, attr.ctime));
    }
    Ok(())
}

/// Rights of a user, from what the file system grants.
pub(super) fn rights(granted: u32, attr: &Attr, (owns, may_delete): (bool, bool)) -> u32 {
    let mut mask = access::READ_ATTRIBUTES | access::READ_CONTROL | access::SYNCHRONIZE;
    mask |= access::READ_EA;
    if granted & unix::READ != 0 {
        mask |= access::READ_DATA;
    }
    let is_dir = attr.kind == FileType::Directory;
    if granted & (unix::MODIFY | unix::EXTEND) != 0 {
        mask |= access::WRITE_DATA | access::APPEND_DATA | access::WRITE_ATTRIBUTES;
        mask |= access::WRITE_EA;
        if !is_dir {
            // It has no meaning for a file, but is among all rights that a client requests.
            mask |= access::DELETE_CHILD;
        }
    }
    if is_dir && granted & unix::DELETE != 0 {
        mask |= access::DELETE_CHILD;
    }
    let runs = if is_dir { unix::LOOKUP } else { unix::EXECUTE };
    if granted & runs != 0 || (!is_dir && granted & unix::READ != 0) {
        // Windows runs programs that it may read: permission to execute is for Unix.
        mask |= access::EXECUTE;
    }
    if owns {
        mask |= access::WRITE_DAC | access::WRITE_OWNER | access::WRITE_ATTRIBUTES;
        mask |= access::WRITE_EA;
    }
    if may_delete {
        mask |= access::DELETE;
    }
    mask
}

/// Everything that is asked of the file system for [`rights`].
pub(super) const ALL_UNIX: u32 =
    unix::READ | unix::LOOKUP | unix::MODIFY | unix::EXTEND | unix::DELETE | unix::EXECUTE;

#[cfg(test)]
mod tests;
