//! LSTAT, STAT, FSTAT, SETSTAT, FSETSTAT, lsetstat: attributes.

use std::rc::Rc;

use vfs::attr::{Attr, FileType, SetAttr, SetTime, Time};
use wire::sftp::{Attrs, Owner, Times};

use super::state::{Open, OpenFile, Session};
use super::status::{Refusal, Result};
use files::{Links, Node, PathTarget, VPath};

/// The kind of file as `st_mode` has it.
const fn kind_bits(kind: FileType) -> u32 {
    match kind {
        FileType::Regular => libc::S_IFREG,
        FileType::Directory => libc::S_IFDIR,
        FileType::Symlink => libc::S_IFLNK,
        FileType::Block => libc::S_IFBLK,
        FileType::Character => libc::S_IFCHR,
        FileType::Fifo => libc::S_IFIFO,
        FileType::Socket => libc::S_IFSOCK,
    }
}

/// Seconds as the protocol has them: what is before 1970 or after 2106 is at that end.
fn seconds(time: Time) -> u32 {
    u32::try_from(time.sec).unwrap_or(if time.sec < 0 { 0 } else { u32::MAX })
}

/// Attributes in the format of the protocol.
pub(super) fn to_attrs(attr: &Attr) -> Attrs {
    Attrs {
        size: Some(attr.size),
        owner: Some(Owner { uid: attr.uid, gid: attr.gid }),
        permissions: Some(kind_bits(attr.kind) | attr.mode),
        times: Some(Times { atime: seconds(attr.atime), mtime: seconds(attr.mtime) }),
    }
}

/// What is to be changed.
pub(super) fn asked(attrs: &Attrs) -> SetAttr {
    let at = |seconds: u32| SetTime::At(Time { sec: i64::from(seconds), nsec: 0 });
    SetAttr {
        mode: attrs.permissions.map(|bits| bits & 0o7777),
        uid: attrs.owner.map(|owner| owner.uid),
        gid: attrs.owner.map(|owner| owner.gid),
        size: attrs.size,
        atime: attrs.times.map_or(SetTime::Keep, |times| at(times.atime)),
        mtime: attrs.times.map_or(SetTime::Keep, |times| at(times.mtime)),
        umask: None,
    }
}

/// What a path leads to, including uploads in progress at that path.
pub(super) async fn found(s: &Session, path: &VPath, links: Links) -> Result<PathTarget> {
    match s.uploading(path).filter(|_| !path.is_of_dir()) {
        Some(file) => {
            let attr = s.core.attr(&s.who, &file.node).await?;
            Ok(PathTarget::Node(Node { attr, ..file.node.clone() }))
        }
        None => Ok(s.core.find(&s.who, path, links).await?),
    }
}

/// STAT and LSTAT.
pub(super) async fn stat(
    s: &Session,
    path: &VPath,
    links: Links,
    seen: &mut Option<Node>,
) -> Result<Attrs> {
    match found(s, path, links).await? {
        PathTarget::Root => Ok(to_attrs(&Attr::of_shares())),
        PathTarget::Node(node) => Ok(to_attrs(&seen.insert(node).attr)),
    }
}

/// FSTAT.
pub(super) async fn of_handle(s: &Session, open: &Open) -> Result<Attrs> {
    let node = match open {
        Open::File(file) => file.node.clone(),
        Open::Dir(dir) => {
            let listing = dir.listing.borrow();
            match listing.as_ref() {
                Some(listing) => listing.dir().clone(),
                None => return Ok(to_attrs(&Attr::of_shares())),
            }
        }
    };
    Ok(to_attrs(&s.core.attr(&s.who, &node).await?))
}

/// SETSTAT and lsetstat.
pub(super) async fn set(
    s: &Session,
    path: &VPath,
    (links, attrs): (Links, &Attrs),
    seen: &mut Option<Node>,
) -> Result<()> {
    let node = match found(s, path, links).await? {
        PathTarget::Root => return Err(Refusal::from(vfs::status::Status::NotOwner)),
        PathTarget::Node(node) => seen.insert(node),
    };
    set_node(s, node, attrs).await
}

/// Changes attributes of a file.
pub(super) async fn set_node(s: &Session, node: &Node, attrs: &Attrs) -> Result<()> {
    let set = asked(attrs);
    if set == SetAttr::default() {
        return Ok(());
    }
    Ok(s.core.set_attr(&s.who, node, set).await?)
}

/// FSETSTAT.
pub(super) async fn set_handle(s: &Session, open: &Open, attrs: &Attrs) -> Result<()> {
    let node = match open {
        Open::File(file) => file.node.clone(),
        Open::Dir(dir) => {
            let dir = dir.listing.borrow().as_ref().map(|listing| listing.dir().clone());
            dir.ok_or(Refusal::from(vfs::status::Status::NotOwner))?
        }
    };
    set_node(s, &node, attrs).await
}

/// Gives uploads in progress to a path, or below it, their final names now: a request uses them by
/// those.
pub(super) async fn publish(s: &Session, path: &VPath) -> Result<()> {
    for file in s.uploading_below(path) {
        publish_file(&file).await?;
    }
    Ok(())
}

/// Gives an upload in progress its final name now.
pub(super) async fn publish_file(file: &OpenFile) -> Result<()> {
    let upload = file.upload.borrow_mut().take();
    let Some(mut upload) = upload else { return Ok(()) };
    let published = upload.publish().await;
    *file.upload.borrow_mut() = Some(upload);
    Ok(published?)
}

/// The path of a request, to be handed to a task of its own.
pub(super) type Path = Rc<VPath>;
