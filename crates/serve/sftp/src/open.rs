//! OPEN and CLOSE.

use std::cell::RefCell;
use std::rc::Rc;

use vfs::attr::{FileType, SetAttr};
use vfs::status::Status;
use wire::sftp::{Attrs, OpenFlags};

use super::Uploads;
use super::attr::{self, Path};
use super::state::{Open, OpenFile, Session};
use super::status::{Refusal, Result};
use files::reader::Reader;
use files::transfer::{Direction, Outcome, Scheme};
use files::upload::{How, Upload};
use files::{Links, Node, Spot, Transfer, VPath};

/// Ends of names under which clients write what is not whole yet: WinSCP, rclone, browsers, rsync
/// over sshfs. They rename it themselves, and want to find what is there of it after a connection
/// was lost.
const PARTIAL: [&[u8]; 4] = [b".filepart", b".partial", b".part", b".tmp"];

/// Permission bits of a new file if the client does not state them.
const FILE_MODE: u32 = 0o666;

/// Attributes of a file that is made.
pub(super) fn for_new(s: &Session, attrs: &Attrs, mode: u32) -> SetAttr {
    let mode = attrs.permissions.map_or(mode, |bits| bits & 0o7777);
    SetAttr { mode: Some(mode), umask: Some(s.settings.umask), ..SetAttr::default() }
}

/// How an upload with these flags begins.
fn how(s: &Session, flags: OpenFlags, (spot, attrs): (&Spot, &Attrs)) -> Result<How> {
    let mut set = for_new(s, attrs, FILE_MODE);
    let create = flags.has(OpenFlags::CREAT);
    if create && flags.has(OpenFlags::EXCL) {
        return match spot.entry {
            Some(_) => Err(Status::Exists.into()),
            None => Ok(How::New(set)),
        };
    }
    if !create && spot.entry.is_none() {
        return Err(Status::NotFound.into());
    }
    if !flags.has(OpenFlags::TRUNC) {
        return Ok(How::InPlace(set));
    }
    let alone = !flags.has(OpenFlags::READ) && !flags.has(OpenFlags::APPEND);
    let partial = PARTIAL.iter().any(|end| spot.name.ends_with(end));
    // A file with other names stays one file, and what is in it is seen under all of them.
    let linked = spot.entry.is_some_and(|there| there.attr.nlink > 1);
    if s.settings.uploads == Uploads::Atomic && alone && !partial && !linked {
        return Ok(How::Atomic(set));
    }
    set.size = Some(0);
    Ok(How::InPlace(set))
}

impl Session {
    fn transfer(&self, direction: Direction, path: &VPath) -> Transfer {
        self.core.transfer(&self.who, (Scheme::Sftp, direction), path)
    }
}

/// Opens for reading what was found at a path, or the file that an upload is made in.
async fn read(
    s: &Session,
    path: &VPath,
    (node, is_upload): (Node, bool),
) -> vfs::fs::Result<Reader> {
    match is_upload {
        true => s.core.reader(&s.who, node).await,
        false => s.core.reader_at(&s.who, path, node).await,
    }
}

/// OPEN.
pub(super) async fn open(
    s: &Session,
    path: Path,
    (flags, attrs): (OpenFlags, Attrs),
    seen: &mut Option<Node>,
) -> Result<u32> {
    // An OPEN of a path that the same channel is uploading refers to that upload.
    attr::publish(s, &path).await?;
    let append = flags.has(OpenFlags::APPEND);
    let writes = flags.has(OpenFlags::WRITE) || append;
    let reads = flags.has(OpenFlags::READ);
    if !writes && !reads {
        return Err(Refusal::bad("Neither read nor write access requested"));
    }
    let (mut down, mut up) = Default::default();
    let (mut node, upload) = if writes || flags.has(OpenFlags::CREAT) {
        let links = if flags.has(OpenFlags::EXCL) { Links::Keep } else { Links::Follow };
        let spot = s.core.spot(&s.who, &path, links).await?;
        if let Some(there) = spot.entry
            && there.attr.kind == FileType::Directory
        {
            return Err(Status::IsDirectory.into());
        }
        if writes {
            up = s.transfer(Direction::Upload, &path);
        }
        let how = how(s, flags, (&spot, &attrs)).inspect_err(|why| {
            up.ends(Outcome::Refused, why.message.clone());
        })?;
        let upload = up.begins(s.core.upload(&s.who, &spot, how).await)?;
        // An OPEN of an existing file without TRUNC has not sent data yet.
        if spot.entry.is_some() && !flags.has(OpenFlags::TRUNC) {
            up.keep_silent();
        }
        (upload.node().clone(), Some(upload))
    } else {
        (s.core.find(&s.who, &path, Links::Follow).await?.node()?, None)
    };
    *seen = Some(node.clone());
    let reader = match reads {
        true => {
            down = s.transfer(Direction::Download, &path);
            let reader = down.begins(read(s, &path, (node, upload.is_some())).await)?;
            node = reader.node().clone();
            // It may have been opened to look at it.
            down.keep_silent();
            Some(reader)
        }
        false => None,
    };
    let (path, upload) = (RefCell::new(path), RefCell::new(upload));
    let (read_up, closing, failed) = Default::default();
    s.add(Open::File(Rc::new(OpenFile {
        path,
        node,
        reader,
        upload,
        writes,
        append,
        down,
        up,
        read_up,
        closing,
        failed,
    })))
}

/// CLOSE: what was written is on disk and at its name, or the answer reports the failure.
pub(super) async fn close(s: &Session, (handle, open): (u32, Open)) -> Result<()> {
    s.forget(handle);
    let Open::File(file) = open else { return Ok(()) };
    let upload = file.upload.borrow_mut().take();
    let finished = match upload {
        Some(mut upload) => {
            if let Some(why) = file.failed.get() {
                upload.fails(why);
            }
            finish(upload).await
        }
        None => Ok(()),
    };
    file.note_closed(&finished);
    finished
}

async fn finish(upload: Upload) -> Result<()> {
    let aside = upload.is_aside();
    match upload.finish(SetAttr::default()).await {
        // It was removed while it was open: there is nothing that could be kept.
        Err(Status::Stale | Status::NotFound) if !aside => Ok(()),
        done => Ok(done.map(|_| ())?),
    }
}
