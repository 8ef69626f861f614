//! OPENDIR and READDIR.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use base::clock::wall_ns;
use base::limits::SFTP_READDIR_BYTES;
use vfs::attr::Attr;
use vfs::fs::access;
use vfs::status::Status;
use wire::sftp::{Name, NamesEncoder, PathBytes, Str};
use wire::xdr::Writer;

use super::attr::{self, Path};
use super::longname::{self, OwnerNames};
use super::state::{Open, OpenDir, Session};
use super::status::{Refusal, Result};
use engine::transport::buffers::ReplyBuf;
use files::held::ReadAhead;
use files::list::{Listed, Listing};
use files::{Links, Node, PathTarget, VPath};

/// OPENDIR.
pub(super) async fn open(s: &Session, path: Path, seen: &mut Option<Node>) -> Result<u32> {
    let (mut ready, mut listing) = (VecDeque::new(), None);
    let dots = |handle: vfs::handle::Handle, attr: Attr| {
        let dot = |name: &[u8]| Listed::new(name.to_vec(), Some((handle, attr)));
        [dot(b"."), dot(b"..")]
    };
    match s.core.find(&s.who, &path, Links::Follow).await? {
        PathTarget::Root => {
            for share in s.core.shares(&s.who) {
                let root = share.fs.root();
                let path = path.with(share.name.as_bytes());
                let found = s.core.find(&s.who, &path, Links::Follow).await;
                let Ok(PathTarget::Node(node)) = found else { continue };
                let name = share.name.clone().into_bytes();
                if ready.is_empty() {
                    ready.extend(dots(root, Attr::of_shares()));
                }
                ready.push_back(Listed::new(name, Some((root, node.attr))));
            }
        }
        PathTarget::Node(node) => {
            let node = seen.insert(node);
            if !node.is_dir() {
                return Err(Status::NotDirectory.into());
            }
            if s.core.access(&s.who, node, access::READ).await? & access::READ == 0 {
                return Err(Status::Access.into());
            }
            ready.extend(dots(node.handle, node.attr));
            add_uploads(s, &path, &mut ready).await;
            listing = Some(Listing::new(node.clone()));
        }
    }
    let (key, done) = (s.dir_key(), Cell::new(listing.is_none()));
    let (listing, first) = (RefCell::new(listing), RefCell::new(ready));
    let ahead = ReadAhead::default();
    s.add(Open::Dir(Rc::new(OpenDir { path, key, listing, first, ahead, done })))
}

/// Files of the same channel that are on their way to a directory are seen in it.
async fn add_uploads(s: &Session, path: &VPath, ready: &mut VecDeque<Listed>) {
    for file in s.uploading_below(path) {
        let at = Rc::clone(&file.path.borrow());
        let Some(name) = at.name().filter(|_| at.parent() == *path) else { continue };
        let there = s.core.find(&s.who, &at, Links::Keep).await;
        let attr = s.core.attr(&s.who, &file.node).await;
        if let (Err(Status::NotFound), Ok(attr)) = (there, attr) {
            let entry = Some((file.node.handle, attr));
            ready.push_back(Listed::new(name.to_vec(), entry));
        }
    }
}

/// READDIR: the whole answer.
pub(super) async fn read(s: &Session, dir: &OpenDir, id: u32) -> Result<ReplyBuf> {
    // What is ready was looked at before.
    if let Some(listing) = dir.listing.borrow().as_ref() {
        s.core.files.still_reach(&s.who, &listing.dir().reached, false)?;
    }
    if let Some(cookie) = dir.ahead.begin()
        && let Some(listing) = &mut *dir.listing.borrow_mut()
    {
        listing.resume(cookie);
        dir.done.set(false);
    }
    let filled = fill(s, dir).await;
    let answer = filled.and_then(|()| answer(s, dir, id));
    dir.ahead.rest();
    answer
}

/// Reads names, unless there are some.
async fn fill(s: &Session, dir: &OpenDir) -> Result<()> {
    // A batch may consist of names that are not shown.
    while dir.first.borrow().is_empty() && dir.ahead.is_empty() && !dir.done.get() {
        let Some(mut listing) = dir.listing.borrow_mut().take() else { break };
        let batch = listing.next(&s.core, &s.who).await;
        let held = listing.take_held();
        *dir.listing.borrow_mut() = Some(listing);
        match batch? {
            Some(listed) => {
                let listed = listed.into_iter().map(|listed| (listed.cookie(), listed));
                dir.ahead.put(listed, held);
            }
            None => dir.done.set(true),
        }
    }
    Ok(())
}

/// The names that there are, as many as an answer has room for.
fn answer(s: &Session, dir: &OpenDir, id: u32) -> Result<ReplyBuf> {
    let mut first = dir.first.borrow_mut();
    if first.is_empty() && dir.ahead.is_empty() {
        return Err(Refusal::EOF);
    }
    let now_s = (wall_ns() / base::clock::NS_PER_S) as i64;
    let mut reply = s.core.buffers.take_reply();
    let mut w = Writer::new(reply.vec());
    let mut names = NamesEncoder::begin(&mut w, id, SFTP_READDIR_BYTES);
    let mut known = OwnerNames::new(&*s.settings.owners);
    while let Some(listed) = first.front()
        && add(&mut names, listed, &mut known, now_s)
    {
        first.pop_front();
    }
    if first.is_empty() {
        let mut adds = |listed: &Listed| add(&mut names, listed, &mut known, now_s);
        while dir.ahead.take_if(&mut adds) == Some(true) {}
    }
    names.finish();
    Ok(reply)
}

/// Adds a name; one that was removed before its attributes were read is omitted.
fn add(
    names: &mut NamesEncoder<'_, '_>,
    listed: &Listed,
    known: &mut OwnerNames<'_>,
    now_s: i64,
) -> bool {
    let Some(attr) = &listed.attr() else { return true };
    let line = longname::line(&listed.name, attr, known, now_s);
    names.add(&Name {
        filename: PathBytes(&listed.name),
        longname: Str(&line),
        attrs: attr::to_attrs(attr),
    })
}
