//! QUERY_DIRECTORY: what is in a directory, as much at a time as a message takes.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use base::limits::{SMB_LISTINGS_MAX, SMB_TRANSACT_MAX};
use vfs::attr::{Attr, FileType};
use vfs::dos::{self, Dos};
use vfs::fs::Context;
use wire::smb::create::access;
use wire::smb::dir::{Entries, Entry, Level, Pattern, Request as Asks, put_output, query_flags};
use wire::smb::status::NtStatus;
use wire::smb::utf16;

use super::dispatch::{About, Outcome, Reply, Request};
use super::state::opens::OpenFile;
use super::{facts, names, status};
use files::Links;
use files::list::{Listed as One, Listing};
use files::walk::{self, Within};

/// A listing under way.
pub(super) struct Listed {
    /// The pattern as the client has sent it.
    asked: Vec<u8>,
    pattern: Pattern,
    listing: Listing,
    /// Entries that have not been told.
    ready: VecDeque<Entry>,
    /// Whether a request was answered, with entries or without.
    answered: bool,
    done: bool,
    /// It counts among those of its connection, until all is told.
    counted: Option<Counted>,
}

/// One of the listings of a connection.
struct Counted(Rc<Cell<usize>>);

impl Counted {
    fn new(all: &Rc<Cell<usize>>) -> Result<Self, NtStatus> {
        if all.get() >= SMB_LISTINGS_MAX {
            return Err(NtStatus::INSUFFICIENT_RESOURCES);
        }
        all.set(all.get() + 1);
        Ok(Self(Rc::clone(all)))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

/// QUERY_DIRECTORY.
pub(super) async fn run(request: &Request<'_>) -> Outcome {
    let asked = Asks::decode(request.message).map_err(status::of_wire)?;
    let open = request.open(asked.file)?;
    let file = open.file()?;
    if !file.node.is_dir() {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    open.may(access::READ_DATA)?;
    let level = Level::of(asked.level).ok_or(NtStatus::INVALID_INFO_CLASS)?;
    if asked.output_max as usize > SMB_TRANSACT_MAX {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    // Two at once on one open are told different entries.
    let mut listing = file.listing.lock().await;
    let (restarts, reopens) = (query_flags::RESTART | query_flags::REOPEN, query_flags::REOPEN);
    // A scan that is restarted has the pattern of the one before unless it brings another, and is
    // no first one (MS-FSA §2.1.5.6.3).
    let before = listing.as_ref().map(|one| (one.asked.clone(), one.answered));
    let before = before.filter(|_| asked.flags & reopens == 0);
    if listing.is_none() || asked.flags & restarts != 0 {
        let (pattern, answered) = before.unwrap_or_default();
        let pattern = if asked.pattern.is_empty() { &pattern } else { asked.pattern };
        *listing = Some(begin(request, file, pattern).await?);
        if let Some(listing) = &mut *listing {
            listing.answered = answered;
        }
    }
    let listed = listing.as_mut().ok_or(NtStatus::INTERNAL_ERROR)?;
    let mut entries = Entries::new(level, asked.output_max as usize);
    let single = asked.flags & query_flags::SINGLE != 0;
    fill(request, file, listed, &mut entries, single).await?;
    if entries.is_empty() {
        if !listed.ready.is_empty() {
            return Err(NtStatus::INFO_LENGTH_MISMATCH);
        }
        let is_first = !std::mem::replace(&mut listed.answered, true);
        return Err(if is_first { NtStatus::NO_SUCH_FILE } else { NtStatus::NO_MORE_FILES });
    }
    listed.answered = true;
    if listed.done && listed.ready.is_empty() {
        listed.counted = None;
    }
    let mut out = request.reply();
    put_output(out.vec(), &entries.finish());
    let about = About::file(&file.node);
    Ok(Reply { file: Some(request.file_id(asked.file)), ..Reply::new(out).about(about) })
}

fn entry(request: &Request<'_>, name: &[u8], (attr, dos): (&Attr, Option<&Dos>)) -> Entry {
    let mut encoded = Vec::new();
    utf16::encode_name(name, &mut encoded);
    let mut facts = facts::of(attr, dos);
    facts::show_times(request.conn, attr, &mut facts);
    Entry { facts, fileid: attr.fileid, name: encoded }
}

/// What is shown of an entry.
type Shown = (Option<Attr>, Option<Dos>);

/// What is shown of entries: of a link what it leads to, which is what CREATE opens; of one that
/// leads nowhere itself. With what is kept besides what the file system knows.
async fn shown(
    request: &Request<'_>,
    dir: &OpenFile,
    entries: &[One],
) -> Result<Vec<Shown>, NtStatus> {
    let (core, who) = (&request.conn.core, &request.caller());
    let reached = &dir.node.reached;
    let has_dos = reached.share.fs.features().xattrs;
    let is_link = |one: &One| one.attr().is_some_and(|attr| attr.kind == FileType::Symlink);
    if !has_dos && !entries.iter().any(is_link) {
        return Ok(entries.iter().map(|one| (one.attr(), None)).collect());
    }
    let path = dir.path.borrow().clone();
    let target = |one: &One| {
        let path = path.with(&one.name);
        Within::of(who, &path).ok().flatten().map(|(_, within)| within)
    };
    let looked_at = |one: &One| {
        let target = if is_link(one) { target(one) } else { None };
        (one.name.clone(), one.attr(), target)
    };
    let looked_at: Vec<_> = entries.iter().map(looked_at).collect();
    let (share, dir) = (Arc::clone(&reached.share), dir.node.handle);
    let look = move |cx: Context<'_>| {
        let of = |(name, attr, target): &(Vec<u8>, Option<Attr>, Option<Within>)| -> Shown {
            let target = target.as_ref().map(|at| walk::find(&share, cx, at, Links::Follow));
            match target {
                Some(Ok((handle, attr))) => {
                    (Some(attr), dos::get(&*share.fs, cx, &handle).unwrap_or_default())
                }
                Some(Err(_)) => (*attr, None),
                None if !has_dos => (*attr, None),
                None => (*attr, dos::get_at(&*share.fs, cx, (&dir, name)).unwrap_or_default()),
            }
        };
        looked_at.iter().map(of).collect()
    };
    core.pooled(who, &reached.cred, look).await.map_err(status::of)
}

/// The directory itself and the one above come first.
async fn begin(request: &Request<'_>, file: &OpenFile, pattern: &[u8]) -> Result<Listed, NtStatus> {
    if !names::is_pattern(pattern) {
        return Err(NtStatus::OBJECT_NAME_INVALID);
    }
    let asked = pattern.to_vec();
    let pattern = match pattern {
        [] => Pattern::decode(&utf16::encode("*")),
        pattern => Pattern::decode(pattern),
    };
    let pattern = pattern.map_err(|_| NtStatus::OBJECT_NAME_INVALID)?;
    let mut ready = VecDeque::new();
    if pattern.has_wildcards() {
        let (own, dos) = facts::look(request.conn, &request.session.who, &file.node).await?;
        let both = [&b"."[..], b".."].map(|name| entry(request, name, (&own, dos.as_ref())));
        ready.extend(both.into_iter().filter(|one| pattern.matches(&one.name)));
    }
    let listing = Listing::new(file.node.clone());
    let counted = Counted::new(&request.conn.listings)?;
    Ok(Listed {
        asked,
        pattern,
        listing,
        ready,
        answered: false,
        done: false,
        counted: Some(counted),
    })
}

async fn fill(
    request: &Request<'_>,
    dir: &OpenFile,
    listed: &mut Listed,
    entries: &mut Entries,
    single: bool,
) -> Result<(), NtStatus> {
    let (core, who) = (&request.conn.core, &request.session.who);
    loop {
        while let Some(next) = listed.ready.front() {
            if !entries.add(next) {
                return Ok(());
            }
            listed.ready.pop_front();
            if single {
                return Ok(());
            }
        }
        if listed.done {
            return Ok(());
        }
        let batch = listed.listing.next(core, who).await.map_err(status::of)?;
        let Some(batch) = batch else {
            listed.done = true;
            return Ok(());
        };
        let Listed { pattern, ready, .. } = &mut *listed;
        let matches = |one: &One| {
            let mut name = Vec::new();
            utf16::encode_name(&one.name, &mut name);
            pattern.matches(&name)
        };
        let batch: Vec<One> = batch.into_iter().filter(matches).collect();
        let facts = shown(request, dir, &batch).await?;
        let entry = |(one, (attr, dos)): (&One, &Shown)| {
            Some(entry(request, &one.name, (&(*attr)?, dos.as_ref())))
        };
        ready.extend(batch.iter().zip(&facts).filter_map(entry));
    }
}
