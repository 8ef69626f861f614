//! QUERY_DIRECTORY: what is in a directory, as much at a time as a message takes.

use std::collections::VecDeque;

use base::limits::SMB_TRANSACT_MAX;
use vfs::attr::Attr;
use wire::smb::create::access;
use wire::smb::dir::{Entries, Entry, Level, Pattern, Request as Asks, put_output, query_flags};
use wire::smb::status::NtStatus;
use wire::smb::utf16;

use super::dispatch::{About, Outcome, Reply, Request};
use super::state::opens::OpenFile;
use super::{facts, status};
use crate::files::list::{Listed as One, Listing};

/// A listing under way.
pub(super) struct Listed {
    pattern: Pattern,
    listing: Listing,
    /// Entries that have not been told.
    ready: VecDeque<Entry>,
    /// Whether any entry was told.
    told: bool,
    done: bool,
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
    let restarts = asked.flags & (query_flags::RESTART | query_flags::REOPEN) != 0;
    if listing.is_none() || restarts {
        *listing = Some(begin(request, file, asked.pattern).await?);
    }
    let listed = listing.as_mut().ok_or(NtStatus::INTERNAL_ERROR)?;
    let mut entries = Entries::new(level, asked.output_max as usize);
    let single = asked.flags & query_flags::SINGLE != 0;
    fill(request, listed, &mut entries, single).await?;
    if entries.is_empty() {
        if !listed.ready.is_empty() {
            return Err(NtStatus::INFO_LENGTH_MISMATCH);
        }
        return Err(if listed.told { NtStatus::NO_MORE_FILES } else { NtStatus::NO_SUCH_FILE });
    }
    listed.told = true;
    let mut out = request.reply();
    put_output(out.vec(), &entries.finish());
    let about = About::file(&file.node);
    Ok(Reply { file: Some(request.file_id(asked.file)), ..Reply::new(out).about(about) })
}

fn entry(name: &[u8], attr: &Attr) -> Entry {
    let mut encoded = Vec::new();
    utf16::encode_name(name, &mut encoded);
    Entry { facts: facts::of(attr), fileid: attr.fileid, name: encoded }
}

/// The directory itself and the one above come first.
async fn begin(request: &Request<'_>, file: &OpenFile, pattern: &[u8]) -> Result<Listed, NtStatus> {
    let pattern = match pattern {
        [] => Pattern::decode(&utf16::encode("*")),
        pattern => Pattern::decode(pattern),
    };
    let pattern = pattern.map_err(|_| NtStatus::OBJECT_NAME_INVALID)?;
    let (core, who) = (&request.conn.core, &request.session.who);
    let mut ready = VecDeque::new();
    if pattern.has_wildcards() {
        let own = core.attr(who, &file.node).await.map_err(status::of)?;
        let both = [&b"."[..], b".."].map(|name| entry(name, &own));
        ready.extend(both.into_iter().filter(|one| pattern.matches(&one.name)));
    }
    let listing = Listing::new(file.node.clone());
    Ok(Listed { pattern, listing, ready, told: false, done: false })
}

async fn fill(
    request: &Request<'_>,
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
        let shown = |one: &One| Some(entry(&one.name, &one.attr()?));
        ready.extend(batch.iter().filter_map(shown).filter(|one| pattern.matches(&one.name)));
    }
}
