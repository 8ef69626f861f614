//! statvfs, fstatvfs, limits, users-groups-by-id: extensions that query the server.

use std::collections::HashMap;

use base::limits::{SFTP_HANDLES_MAX, SFTP_IDS_LOOKED_MAX, SFTP_IO_MAX, SFTP_PACKET_MAX};
use vfs::status::Status;
use wire::sftp::Str;
use wire::sftp::extended::{
    Limits, STATVFS_NOSUID, STATVFS_RDONLY, Statvfs, UserGroupNames, UsersGroups,
};
use wire::xdr::{Encode, Writer};

use super::attr::{Path, found};
use super::state::{Open, Session};
use super::status::{Refusal, Result};
use files::{Links, Node, PathTarget};

/// The block size of STATVFS replies, in bytes.
const BLOCK: u64 = 4096;

fn encoded(value: &impl Encode) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut Writer::new(&mut bytes));
    bytes
}

/// limits@openssh.com.
pub(super) fn limits() -> Vec<u8> {
    encoded(&Limits {
        max_packet_length: SFTP_PACKET_MAX as u64,
        max_read_length: SFTP_IO_MAX as u64,
        max_write_length: SFTP_IO_MAX as u64,
        max_open_handles: SFTP_HANDLES_MAX as u64,
    })
}

/// statvfs@openssh.com.
pub(super) async fn by_path(s: &Session, path: Path, seen: &mut Option<Node>) -> Result<Vec<u8>> {
    match found(s, &path, Links::Follow).await? {
        PathTarget::Root => Ok(encoded(&Statvfs {
            bsize: BLOCK,
            frsize: BLOCK,
            flag: STATVFS_RDONLY | STATVFS_NOSUID,
            namemax: base::limits::NAME_MAX as u64,
            ..Statvfs::default()
        })),
        PathTarget::Node(node) => of_node(s, seen.insert(node)).await,
    }
}

/// fstatvfs@openssh.com.
pub(super) async fn by_handle(s: &Session, open: &Open) -> Result<Vec<u8>> {
    let node = match open {
        Open::File(file) => Some(file.node.clone()),
        Open::Dir(dir) => dir.listing.borrow().as_ref().map(|listing| listing.dir().clone()),
    };
    of_node(s, &node.ok_or(Refusal::from(Status::NotSupported))?).await
}

async fn of_node(s: &Session, node: &Node) -> Result<Vec<u8>> {
    let space = s.core.space(&s.who, &node.reached).await?;
    let abilities = node.reached.share.fs.abilities();
    let flag = if node.reached.writable { 0 } else { STATVFS_RDONLY };
    Ok(encoded(&Statvfs {
        bsize: BLOCK,
        frsize: BLOCK,
        blocks: space.total_bytes / BLOCK,
        bfree: space.free_bytes / BLOCK,
        bavail: space.avail_bytes / BLOCK,
        files: space.total_files,
        ffree: space.free_files,
        favail: space.avail_files,
        fsid: node.attr.fsid,
        flag: flag | STATVFS_NOSUID,
        namemax: u64::from(abilities.name_max),
    }))
}

/// users-groups-by-id@openssh.com.
pub(super) fn names(s: &Session, asked: &UsersGroups) -> Vec<u8> {
    let owners = &s.settings.owners;
    let users = looked_up(&asked.uids.0, |id| owners.user(id));
    let groups = looked_up(&asked.gids.0, |id| owners.group(id));
    encoded(&UserGroupNames { users: borrowed(&users), groups: borrowed(&groups) })
}

/// The names of ids, each looked up once, and those of [`SFTP_IDS_LOOKED_MAX`] at most.
fn looked_up(ids: &[u32], look: impl Fn(u32) -> Option<String>) -> Vec<Option<String>> {
    let mut known: HashMap<u32, Option<String>> = HashMap::new();
    let mut name = |id: &u32| {
        if !known.contains_key(id) && known.len() < SFTP_IDS_LOOKED_MAX {
            known.insert(*id, look(*id));
        }
        known.get(id).cloned().flatten()
    };
    ids.iter().map(&mut name).collect()
}

fn borrowed(names: &[Option<String>]) -> Vec<Str<'_>> {
    names.iter().map(|name| Str(name.as_deref().unwrap_or("").as_bytes())).collect()
}
