//! REMOVE, MKDIR, RMDIR, RENAME, SYMLINK, READLINK, REALPATH and their extensions: names.

use vfs::attr::FileType;
use vfs::status::Status;
use wire::sftp::Attrs;

use super::attr::{self, Path};
use super::open::for_new;
use super::state::Session;
use super::status::{Refusal, Result};
use files::{Links, Node, Spot, VPath};

/// Permission bits of a new directory if the client does not state them.
const DIR_MODE: u32 = 0o777;

/// What is at a name itself, for requests that change it.
async fn spot(s: &Session, path: &VPath, seen: &mut Option<Node>) -> Result<Spot> {
    let spot = s.core.spot(&s.who, path, Links::Keep).await?;
    *seen = spot.node().ok();
    Ok(spot)
}

/// REMOVE.
pub(super) async fn remove(s: &Session, path: Path, seen: &mut Option<Node>) -> Result<()> {
    attr::publish(s, &path).await?;
    let spot = spot(s, &path, seen).await?;
    match spot.entry.ok_or(Status::NotFound)?.attr.kind {
        FileType::Directory => Err(Status::IsDirectory.into()),
        _ => Ok(s.core.remove(&s.who, &spot).await?),
    }
}

/// RMDIR.
pub(super) async fn rmdir(s: &Session, path: Path, seen: &mut Option<Node>) -> Result<()> {
    // Uploads in progress into the directory keep it from being empty.
    attr::publish(s, &path).await?;
    let spot = spot(s, &path, seen).await?;
    match spot.entry.ok_or(Status::NotFound)?.attr.kind {
        FileType::Directory => Ok(s.core.remove_dir(&s.who, &spot).await?),
        _ => Err(Status::NotDirectory.into()),
    }
}

/// MKDIR.
pub(super) async fn mkdir(
    s: &Session,
    (path, attrs): (Path, Attrs),
    seen: &mut Option<Node>,
) -> Result<()> {
    attr::publish(s, &path).await?;
    let spot = s.core.spot_for_dir(&s.who, &path, Links::Keep).await;
    let spot = spot.map_err(|status| match status {
        // A share, or the list of them: it is there.
        Status::NotOwner => Status::Exists,
        status => status,
    })?;
    if spot.entry.is_some() {
        return Err(Status::Exists.into());
    }
    let set = for_new(s, &attrs, DIR_MODE);
    *seen = Some(s.core.make_dir(&s.who, &spot, set).await?);
    Ok(())
}

/// RENAME, which takes no name that is in use, and posix-rename, which replaces what is there.
pub(super) async fn rename(
    s: &Session,
    (from, to): (Path, Path),
    replace: bool,
    seen: &mut Option<Node>,
) -> Result<()> {
    attr::publish(s, &from).await?;
    attr::publish(s, &to).await?;
    let old = spot(s, &from, seen).await?;
    let there = old.entry.ok_or(Status::NotFound)?;
    let new = match there.attr.kind {
        FileType::Directory => s.core.spot_for_dir(&s.who, &to, Links::Keep).await?,
        _ => s.core.spot(&s.who, &to, Links::Keep).await?,
    };
    if replace {
        s.core.rename(&s.who, &old, &new).await?;
    } else {
        take_free_name(s, &old, &new).await?;
    }
    s.moved(&from, &to);
    Ok(())
}

/// Renames to a name at which nothing is.
async fn take_free_name(s: &Session, old: &Spot, new: &Spot) -> vfs::fs::Result<()> {
    if new.entry.is_some() {
        return Err(Status::Exists);
    }
    let node = old.node()?;
    // A link never replaces a name that was created meanwhile; not all file types can have one.
    if node.is_file() {
        // The link would be made, but the old name could not be removed.
        s.core.may_take_name(&s.who, old)?;
        match s.core.link(&s.who, &node, new).await {
            Ok(()) => {
                let removed = s.core.remove(&s.who, old).await;
                if removed.is_err() {
                    // As far as what was in the way of the one is not in that of the other.
                    let _ = s.core.remove(&s.who, new).await;
                }
                return removed;
            }
            Err(Status::Exists) => return Err(Status::Exists),
            Err(_) => {}
        }
    }
    let is_free = new.now(|there| there.is_none());
    if s.core.rename_if(&s.who, (old, new), &is_free).await? { Ok(()) } else { Err(Status::Exists) }
}

/// hardlink@openssh.com.
pub(super) async fn link(
    s: &Session,
    (from, to): (Path, Path),
    seen: &mut Option<Node>,
) -> Result<()> {
    attr::publish(s, &from).await?;
    attr::publish(s, &to).await?;
    let node = s.core.find(&s.who, &from, Links::Keep).await?.node()?;
    *seen = Some(node.clone());
    let spot = s.core.spot(&s.who, &to, Links::Keep).await?;
    Ok(s.core.link(&s.who, &node, &spot).await?)
}

/// SYMLINK: the target is kept as it was sent.
pub(super) async fn symlink(s: &Session, path: Path, target: &[u8]) -> Result<()> {
    attr::publish(s, &path).await?;
    let spot = s.core.spot(&s.who, &path, Links::Keep).await?;
    Ok(s.core.symlink(&s.who, &spot, target).await?)
}

/// READLINK.
pub(super) async fn readlink(s: &Session, path: Path, seen: &mut Option<Node>) -> Result<Vec<u8>> {
    let node = s.core.find(&s.who, &path, Links::Keep).await?.node()?;
    let node = seen.insert(node);
    match node.attr.kind {
        FileType::Symlink => Ok(s.core.read_link(&s.who, node).await?),
        _ => Err(Status::Invalid.into()),
    }
}

/// REALPATH: lexical; the existence of the path is not checked.
pub(super) fn realpath(s: &Session, path: &[u8]) -> Result<Vec<u8>> {
    Ok(s.seen(path)?.to_bytes())
}

/// expand-path@openssh.com: REALPATH, with `~` for the caller's home. Homes of other users are not
/// revealed.
pub(super) fn expand(s: &Session, path: &[u8]) -> Result<Vec<u8>> {
    let Some(rest) = path.strip_prefix(b"~") else { return realpath(s, path) };
    let end = rest.iter().position(|b| *b == b'/').unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    let home = home(s, name)?;
    let below = rest.strip_prefix(b"/").unwrap_or(rest);
    Ok(home.join(below).map_err(Refusal::from)?.to_bytes())
}

/// home-directory: an empty name is the caller's own.
pub(super) fn home<'s>(s: &'s Session, name: &[u8]) -> Result<&'s VPath> {
    match name.is_empty() || name == s.who.person.name.as_bytes() {
        true => Ok(s.home()),
        false => Err(Status::NotFound.into()),
    }
}
