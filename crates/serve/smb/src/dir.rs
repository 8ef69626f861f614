//! QUERY_DIRECTORY: what is in a directory, as much at a time as a message takes. CHANGE_NOTIFY:
//! that it has changed.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use base::limits::{
    SMB_SCAN_ENOUGH, SMB_TRANSACT_MAX, SMB_WORK_ENTRY, SMB_WORK_UNITS, TRANSFER_LIST_BATCH,
};
use vfs::attr::{Attr, FileType};
use vfs::dos::{self, Dos};
use vfs::fs::Context;
use vfs::notice::{Changes, Interest};
use vfs::status::Status;
use wire::smb::create::access;
use wire::smb::dir::{Entries, Entry, Level, Pattern, Request as Asks, put_output, query_flags};
use wire::smb::notify::{ChangeNotify, filter, notify_flags};
use wire::smb::status::NtStatus;
use wire::smb::utf16;

use super::dispatch::{Handled, Reply, Request};
use super::state::listings::{Counted, Listed};
use super::state::notices::NoticedDir;
use super::state::opens::{Open, OpenFile};
use super::{facts, names, status};
use files::Links;
use files::held::ReadAhead;
use files::list::{Filter, ListOptions, Listed as One, Listing};
use files::walk::{self, Within};

/// What must be left of a frame's work for another batch to be read.
const WORK_BATCH: usize = SMB_WORK_ENTRY * TRANSFER_LIST_BATCH;

/// QUERY_DIRECTORY.
pub(super) async fn run(request: Rc<Request>) -> Handled {
    let asked = Asks::decode(request.message()).map_err(status::of_wire)?;
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
    // Two requests at once on one open get different entries.
    let mut listing = open.listing.lock().await;
    let (restarts, reopens) = (query_flags::RESTART | query_flags::REOPEN, query_flags::REOPEN);
    // A scan that is restarted has the pattern of the one before unless it brings another, and is
    // no first one (MS-FSA §2.1.5.6.3).
    let before = listing.as_ref().map(|one| (one.asked.clone(), one.answered));
    let before = before.filter(|_| asked.flags & reopens == 0);
    if listing.is_none() || asked.flags & restarts != 0 {
        let (pattern, answered) = before.unwrap_or_default();
        let pattern = if asked.pattern.is_empty() { &pattern } else { asked.pattern };
        *listing = Some(begin(&request, file, pattern).await?);
        if let Some(listing) = &mut *listing {
            listing.answered = answered;
        }
    }
    let listed = listing.as_mut().ok_or(NtStatus::INTERNAL_ERROR)?;
    let mut entries = Entries::new(level, asked.output_max as usize);
    let single = asked.flags & query_flags::SINGLE != 0;
    let filled = fill(&request, file, listed, &mut entries, single).await;
    listed.ready.rest();
    filled?;
    if entries.is_empty() {
        if !listed.first.is_empty() || !listed.ready.is_empty() {
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
    request.done(Reply { file: Some(request.file_id(asked.file)), ..Reply::new(out) })
}

fn entry(request: &Request, name: &[u8], (attr, dos): (&Attr, Option<&Dos>)) -> Entry {
    let mut encoded = Vec::new();
    utf16::encode_name(name, &mut encoded);
    let mut facts = facts::of(attr, dos);
    facts::show_times(&request.conn, attr, &mut facts);
    Entry { facts, fileid: attr.fileid, name: encoded }
}

/// What is shown of an entry.
type Shown = (Option<Attr>, Option<Dos>);

/// What is shown of entries: of a link what it leads to, which is what CREATE opens; of one that
/// leads nowhere itself. With what is stored in addition to that. Of links there may
/// be more than the request may look at: what it returns is of those before,
/// with `at_least_one` of that one itself.
async fn shown(
    request: &Request,
    dir: &OpenFile,
    (entries, at_least_one): (&[One], bool),
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
        let mut all = Vec::with_capacity(looked_at.len());
        for (name, attr, target) in &looked_at {
            let target = target.as_ref().map(|at| walk::find(&share, cx, at, Links::Follow));
            all.push(match target {
                Some(Ok((handle, attr))) => {
                    (Some(attr), dos::get(&*share.fs, cx, &handle).unwrap_or_default())
                }
                Some(Err(Status::Busy)) if !all.is_empty() || !at_least_one => break,
                Some(Err(_)) => (*attr, None),
                None if !has_dos => (*attr, None),
                None => (*attr, dos::get_at(&*share.fs, cx, (&dir, name)).unwrap_or_default()),
            });
        }
        all
    };
    core.pooled_look(who, &reached.cred, look).await.map_err(status::of)
}

/// The directory itself and the one above come first.
async fn begin(request: &Request, file: &OpenFile, name: &[u8]) -> Result<Listed, NtStatus> {
    if !names::is_pattern(name) {
        return Err(NtStatus::OBJECT_NAME_INVALID);
    }
    let asked = name.to_vec();
    let pattern = match name {
        [] => Pattern::decode(&utf16::encode("*")),
        pattern => Pattern::decode(pattern),
    };
    let pattern = pattern.map_err(|_| NtStatus::OBJECT_NAME_INVALID)?;
    let mut first = VecDeque::new();
    if pattern.has_wildcards() {
        let (own, dos) = facts::look(&request.conn, &request.session.who, &file.node).await?;
        let both = [&b"."[..], b".."].map(|name| entry(request, name, (&own, dos.as_ref())));
        first.extend(both.into_iter().filter(|one| pattern.matches(&one.name)));
    }
    let mut done = false;
    if !pattern.has_wildcards()
        && let Some(entry) = exact(request, file, name).await?
    {
        first.extend(entry);
        done = true;
    }
    let (node, is_all) = (file.node.clone(), pattern.is_all());
    let units = (!is_all).then_some(name.len() / 2);
    let compared_bytes = Arc::<AtomicUsize>::default();
    let bytes = Arc::clone(&compared_bytes);
    let matches = move |name: &[u8]| {
        bytes.fetch_add(name.len(), Relaxed);
        let mut encoded = Vec::with_capacity(2 * name.len());
        utf16::encode_name(name, &mut encoded);
        pattern.matches(&encoded)
    };
    let filter = (!is_all).then(|| Arc::new(matches) as Filter);
    let listing = Listing::of(node, ListOptions { filter, names_only: false });
    let counted = Some(Counted::new(&request.conn.listings)?);
    let ready = ReadAhead::default();
    let answered = false;
    Ok(Listed { asked, listing, units, compared_bytes, first, ready, answered, done, counted })
}

/// The entry of a name without wildcards, which needs no search of the directory: the outer `None`
/// if it does all the same, the inner one if there is none.
async fn exact(
    request: &Request,
    file: &OpenFile,
    name: &[u8],
) -> Result<Option<Option<Entry>>, NtStatus> {
    let Ok(name) = utf16::decode_name(name) else { return Ok(None) };
    if matches!(&name[..], b"" | b"." | b"..") || name.contains(&b'/') || name.contains(&0) {
        return Ok(None);
    }
    let (core, who, reached) = (&request.conn.core, &request.session.who, &file.node.reached);
    let (share, dir) = (Arc::clone(&reached.share), file.node.handle);
    let (index, work) = (Arc::clone(&request.conn.server.folds), Arc::clone(request.work()));
    let look = move |cx: Context<'_>| match share.fs.lookup(cx, &dir, &name) {
        Ok((entry, _)) => Ok(Some((name.clone(), entry))),
        Err(failed) if failed.status == Status::NotFound => {
            vfs::fold::find(&*share.fs, cx, (&dir, &name), (&index, &work))
        }
        Err(failed) => Err(failed.status),
    };
    core.files.still_reach(who, reached, false).map_err(status::of)?;
    let (name, found) = match core.look(who, &reached.cred, look).await {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(Some(None)),
        // What another file system has there is found by a search only.
        Err(Status::Access) => return Ok(None),
        Err(why) => return Err(status::of(why)),
    };
    let one = [One::new(name, Some((found.handle, found.attr)))];
    let facts = shown(request, file, (&one, true)).await?;
    let entry = one
        .iter()
        .zip(&facts)
        .find_map(|(one, (attr, dos))| Some(entry(request, &one.name, (&(*attr)?, dos.as_ref()))));
    Ok(Some(entry))
}

async fn fill(
    request: &Request,
    dir: &OpenFile,
    listed: &mut Listed,
    entries: &mut Entries,
    single: bool,
) -> Result<(), NtStatus> {
    if let Some(cookie) = listed.ready.begin() {
        listed.listing.resume(cookie);
        listed.done = false;
    }
    let before = listed.listing.looked();
    loop {
        while let Some(next) = listed.first.front() {
            if !entries.add(next) {
                return Ok(());
            }
            listed.first.pop_front();
            if single {
                return Ok(());
            }
        }
        while let Some(fits) = listed.ready.take_if(|next| entries.add(next)) {
            if !fits || single {
                return Ok(());
            }
        }
        let looked = listed.listing.looked() - before;
        if listed.done || looked >= SMB_SCAN_ENOUGH && !entries.is_empty() {
            return Ok(());
        }
        // A compound can ask for many listings: what they look at is bounded together.
        if request.work().left() < WORK_BATCH {
            return match entries.is_empty() {
                true => Err(NtStatus::INSUFFICIENT_RESOURCES),
                false => Ok(()),
            };
        }
        if !read_ahead(request, dir, listed, entries.is_empty()).await? {
            return Ok(());
        }
    }
}

/// What names count that were compared with a pattern: each for itself, and for their bytes and the
/// units of the pattern, of which one takes as long as three bytes.
fn work_of(compared: usize, (bytes, units): (usize, usize)) -> usize {
    compared + (bytes + 3 * units * compared) / SMB_WORK_UNITS
}

/// Reads the next entries; false if the request is to return what it has.
async fn read_ahead(
    request: &Request,
    dir: &OpenFile,
    listed: &mut Listed,
    at_least_one: bool,
) -> Result<bool, NtStatus> {
    let Listed { listing, units, compared_bytes, ready, done, .. } = listed;
    let before = listing.looked();
    let (core, who, from) = (&request.conn.core, &request.session.who, listing.cookie());
    let Some(batch) = listing.next(core, who).await.map_err(status::of)? else {
        *done = true;
        return Ok(false);
    };
    let mut held = listing.take_held();
    let compared = listing.looked() - before;
    let spent = match *units {
        None => 0,
        Some(units) => work_of(compared, (compared_bytes.swap(0, Relaxed), units)),
    };
    let spent = spent + SMB_WORK_ENTRY * batch.len();
    // What one batch takes too much is not refused.
    request.work().take(spent.min(request.work().left())).map_err(status::of)?;
    let facts = shown(request, dir, (&batch, at_least_one)).await;
    let facts = facts.inspect_err(|_| listing.resume(from))?;
    if facts.len() < batch.len() {
        let last = facts.len().checked_sub(1).and_then(|last| batch.get(last));
        listing.resume(last.map_or(from, One::cookie));
    }
    let entry = |(one, (attr, dos)): (&One, &Shown)| {
        Some((one.cookie(), entry(request, &one.name, (&(*attr)?, dos.as_ref()))))
    };
    let more: Vec<_> = batch.iter().zip(&facts).filter_map(entry).collect();
    let bytes = more.iter().map(|(_, entry)| size_of::<(u64, Entry)>() + entry.name.capacity());
    if let Some(held) = &mut held {
        held.set(bytes.sum());
    }
    ready.put(more.into_iter(), held);
    Ok(batch.is_empty() || !facts.is_empty())
}

/// CHANGE_NOTIFY (MS-SMB2 §3.3.5.19): the answer comes when something has changed, without a list
/// of the changes (STATUS_NOTIFY_ENUM_DIR): the client lists the directory again.
pub(super) async fn notify(request: Rc<Request>) -> Handled {
    let asked = ChangeNotify::decode(request.message()).map_err(status::of_wire)?;
    let open = request.open(asked.file)?;
    let file = open.file()?;
    if !file.node.is_dir() || asked.output_max as usize > SMB_TRANSACT_MAX {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    open.may(access::READ_DATA)?;
    if !request.is_single {
        // The answers to the others would wait for it, and STATUS_PENDING is sent for one alone.
        return Err(NtStatus::NOT_SUPPORTED);
    }
    // From now on: it may be closed before the directory is watched.
    let closed = open.closed.notified();
    let changed = async {
        let noticed = noticed(&request, &open, file, &asked).await?;
        wait_for_change(&request, &noticed).await
    };
    tokio::select! {
        biased;
        () = closed => return Err(NtStatus::NOTIFY_CLEANUP),
        done = changed => done?,
    }
    let mut out = request.reply();
    put_output(out.vec(), &[]);
    let (status, file) = (NtStatus::NOTIFY_ENUM_DIR, Some(request.file_id(asked.file)));
    request.done(Reply { status, file, ..Reply::new(out) })
}

/// What is noted for an open: its first request states which changes count.
async fn noticed(
    request: &Request,
    open: &Open,
    file: &OpenFile,
    asked: &ChangeNotify,
) -> Result<Rc<NoticedDir>, NtStatus> {
    if let Some(noticed) = &*open.noticed.borrow() {
        return Ok(Rc::clone(noticed));
    }
    let kinds = notified_kinds(asked.filter)?;
    let seat = request.reserve_open(0)?;
    let (fs, handle) = (Arc::clone(&file.node.reached.share.fs), file.node.handle);
    let who = &request.session.who;
    let watch = move |cx: Context<'_>| fs.watch(cx, &handle);
    let watch = request.conn.core.look(who, &file.node.reached.cred, watch).await;
    let watch = watch.map_err(status::of)?;
    let interest = Interest {
        dir: file.entry.key,
        kinds,
        below: asked.flags & notify_flags::WATCH_TREE != 0,
        is_watched: watch.sees_changes(),
    };
    let noticed = NoticedDir::new(file.entry.locks.notices(), interest, (watch, seat));
    // Two requests may have come at once.
    let mut there = open.noticed.borrow_mut();
    Ok(Rc::clone(there.get_or_insert_with(|| Rc::new(noticed))))
}

/// Which changes are meant by a CompletionFilter. There are no streams that could change.
fn notified_kinds(asked: u32) -> Result<Changes, NtStatus> {
    let all = [
        (filter::NAMES, Changes::NAMES),
        (filter::ATTRIBUTES, Changes::ATTRIBUTES),
        (filter::DATA, Changes::DATA),
        (filter::STREAMS, Changes::NONE),
    ];
    if all.iter().all(|(bits, _)| asked & bits == 0) {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let meant = all.into_iter().filter(|(bits, _)| asked & bits != 0);
    Ok(meant.fold(Changes::NONE, |all, (_, kind)| all.with(kind)))
}

/// Waits with STATUS_PENDING for a change, until the request is cancelled.
async fn wait_for_change(request: &Request, noticed: &NoticedDir) -> Result<(), NtStatus> {
    let Some(_waits) = request.wait_permit() else { return Err(NtStatus::INSUFFICIENT_RESOURCES) };
    request.pend();
    tokio::select! {
        () = noticed.changed() => Ok(()),
        () = request.cancel().cancelled() => Err(NtStatus::CANCELLED),
    }
}
