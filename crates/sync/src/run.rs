//! Both sides together: in this process, or one of them answering elsewhere.

use std::fs::File;
use std::io::{Read, Write};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use base::limits::DSYNC_STREAM_PATIENCE;
use wire::dsync::{
    Bytes, Counts, Message, Options, Ready, Refused, Role, Start, StreamRequest, frame,
};

use crate::destination::{self, ReportTo};
use crate::error::{SyncError, Why};
use crate::events::{Carried, Event, Report};
use crate::guard::Guard;
use crate::index::Index;
use crate::lends::LocalFdTable;
use crate::link::{HELLO, Link, greet, read_frame, sentence, write_now};
use crate::rules::Rules;
use crate::source;
use crate::streams::DataStreams;
use crate::streams::connect::{Caller, Calling};
use crate::streams::listen::{Answerer, Reachable};
use crate::tree::Tree;
use crate::tree::host::HostTree;

pub mod ssh;

/// The tree at the destination: one that is written, or only looked at.
fn target(place: &Path, options: &Options) -> Result<HostTree, SyncError> {
    match options.dry_run {
        true => HostTree::open_for_dry_run(place),
        false => HostTree::open_for_change(place),
    }
}

/// Both ends of a link within this process.
///
/// # Errors
/// No sockets can be had.
pub fn pair() -> Result<(Link, Link), SyncError> {
    let (one, other) = UnixStream::pair().map_err(SyncError::Machine)?;
    Ok((of_socket(one)?, of_socket(other)?))
}

/// A link over a connected socket.
///
/// # Errors
/// No descriptors can be had.
pub fn of_socket(socket: UnixStream) -> Result<Link, SyncError> {
    let copy = || socket.try_clone().map_err(SyncError::Machine);
    let (read, write) = (copy()?, copy()?);
    // One that is closed already is as good.
    let close = move || drop(socket.shutdown(std::net::Shutdown::Both));
    let (read, write, close) = (Box::new(read), Box::new(write), Box::new(close));
    Ok(Link {
        read,
        write,
        close,
        closes: true,
        beside: DataStreams::Nothing,
        timeout: DSYNC_STREAM_PATIENCE,
        lends: None,
    })
}

/// What a run on this machine has in addition to its options.
#[derive(Clone, Copy, Default)]
pub struct With<'a> {
    /// What was kept of the run before, and is of this one for the next.
    pub index: Option<&'a Arc<Index>>,
    /// The server that shares the directories of this machine.
    pub guard: Option<&'a Arc<Guard>>,
}

/// Makes a directory of this machine the same as another of it.
///
/// # Errors
/// Why that was not done to its end.
pub fn local(from: &Path, to: &Path, options: &Options, report: &Report) -> Result<Counts, Why> {
    local_with(from, to, options, report, With::default())
}

/// As [`local`], with more.
///
/// # Errors
/// As [`local`]. That nothing could be kept for the next run is reported, and is none.
pub fn local_with(
    from: &Path,
    to: &Path,
    options: &Options,
    report: &Report,
    with: With<'_>,
) -> Result<Counts, Why> {
    Rules::new(&options.rules.0)?;
    let side = |role| with.index.map(|index| index.side(role));
    let source = HostTree::open(from)?.with_index(side(Role::SOURCE));
    let destination = target(to, options)?.with_index(side(Role::DESTINATION));
    if let Some(index) = with.index {
        index.begin(report);
    }
    let source = source.with_guard(with.guard.cloned());
    let destination = destination.with_guard(with.guard.cloned());
    let done = between(source, destination, options, report);
    keep(with.index, done, report)
}

/// Makes a tree of this machine the same as another of it.
///
/// # Errors
/// Why that was not done to its end.
pub fn between(
    source: HostTree,
    destination: HostTree,
    options: &Options,
    report: &Report,
) -> Result<Counts, Why> {
    let (mut near, mut far) = pair()?;
    let lends = Some(Arc::<LocalFdTable>::default());
    (near.lends, far.lends) = (lends.clone(), lends);
    // The source reports nothing: the destination reports all.
    let (silent, wanted): (Report, _) = (Arc::new(|_| {}), options.clone());
    let reads = thread::spawn(move || source::run(source, &wanted, near, &silent));
    // Comparing blocks would cost more than copying them.
    let done =
        destination::run(destination, options, far, ReportTo::Local(Arc::clone(report)), false);
    let read = reads.join();
    match (done, read) {
        (Err(why), Ok(Err(first))) if matches!(why.error(), SyncError::Gone) => Err(first),
        (done, _) => done,
    }
}

/// Has the index written for the next run, if this one has come to its end.
fn keep(
    index: Option<&Arc<Index>>,
    done: Result<Counts, Why>,
    report: &Report,
) -> Result<Counts, Why> {
    if let Some(index) = index.filter(|_| done.is_ok()) {
        index.end(report);
    }
    done
}

/// Starts a run with a side that answers; `role` is the part of this one.
///
/// # Errors
/// Why the run was not done to its end, or was refused.
pub fn start(
    link: Link,
    role: Role,
    ends: (&Path, &[u8]),
    options: &Options,
    calling: &Calling,
    report: &Report,
) -> Result<Counts, Why> {
    start_with(link, role, ends, options, (calling, report), With::default())
}

/// As [`start`], with more at this side.
///
/// # Errors
/// As [`start`]. That nothing could be kept for the next run is reported, and is none.
pub fn start_with(
    mut link: Link,
    role: Role,
    (here, there): (&Path, &[u8]),
    options: &Options,
    (calling, report): (&Calling, &Report),
    With { index, guard }: With<'_>,
) -> Result<Counts, Why> {
    Rules::new(&options.rules.0)?;
    // What this side cannot do is known before the other one begins.
    let theirs = if role == Role::SOURCE { Role::DESTINATION } else { Role::SOURCE };
    let tree = if role == Role::SOURCE { HostTree::open(here)? } else { target(here, options)? };
    let tree = tree.with_index(index.map(|index| index.side(role))).with_guard(guard.cloned());
    if let Some(index) = index {
        index.begin(report);
    }
    let (low, high) = (u32::from(calling.ports.0), u32::from(calling.ports.1));
    // A dry run sends no content.
    let most = if options.dry_run { 0 } else { calling.most() as u32 };
    let streams = (most > 0).then_some(StreamRequest { most, low, high });
    let place = Bytes(there.to_vec());
    let start = Start { role: theirs, place, options: options.clone(), streams };
    let asked = write_now(&mut link.write, &Message::Hello(HELLO))
        .and_then(|()| write_now(&mut link.write, &Message::Start(start)));
    let answer = |mut read: &mut dyn Read| {
        // The reason for a write error may be in the other side's reply.
        greet(&mut read)?;
        // If the request could not be sent, there is no reply to read.
        asked?;
        answered(&mut read, most, calling, report)
    };
    let done = match role == Role::SOURCE {
        // A source has what the other side needs before that has sent anything.
        true => source::run_ahead(tree, options, link, report, answer),
        false => {
            link.beside = answer(&mut *link.read)?;
            destination::run(tree, options, link, ReportTo::Local(Arc::clone(report)), true)
        }
    };
    keep(index, done, report)
}

/// Reads the reply of a side to its start; returns the streams, of which `most` are requested.
fn answered(
    read: &mut impl Read,
    most: u32,
    calling: &Calling,
    report: &Report,
) -> Result<DataStreams, SyncError> {
    let Some(answer) = read_frame(read)? else { return Err(SyncError::Gone) };
    match frame::message(&answer)? {
        Message::Ready(Ready { offer: Some(offer), .. }) if most > 0 => {
            Ok(DataStreams::Calls(Caller::new(&offer, calling, report)?))
        }
        Message::Ready(Ready { why, .. }) => {
            if most > 0 {
                let why = String::from_utf8_lossy(&why.0).into_owned();
                report(Event::Carried(Carried { why, ..Carried::default() }));
            }
            Ok(DataStreams::Nothing)
        }
        Message::Refused(Refused { why }) => {
            Err(SyncError::Refused(String::from_utf8_lossy(&why.0).into_owned()))
        }
        _ => Err(SyncError::Broken("an unexpected message instead of ready")),
    }
}

/// Answers a side that starts a run, and performs the role that it requests. `reached` is the
/// address by which it has reached this machine, if that is known.
///
/// # Errors
/// Why the run was not done to its end, or was refused.
pub fn answer(link: Link, reached: Option<IpAddr>) -> Result<Counts, Why> {
    answer_with(link, Reachable { address: reached, ports: None }, part)
}

/// As [`answer`], with the tree that `part` returns for the requested role, place and options.
///
/// # Errors
/// As [`answer`]; an error of `part` is sent to the other side.
pub fn answer_with<T: Tree>(
    mut link: Link,
    at: Reachable,
    part: impl FnOnce(Role, &[u8], &Options) -> Result<T, SyncError>,
) -> Result<Counts, Why> {
    write_now(&mut link.write, &Message::Hello(HELLO))?;
    greet(&mut link.read)?;
    let Some(body) = read_frame(&mut link.read)? else { return Err(SyncError::Gone.into()) };
    let Message::Start(start) = frame::message(&body).map_err(SyncError::from)? else {
        return Err(SyncError::Broken("an unexpected message instead of the job").into());
    };
    let Start { role, place, options, streams } = start;
    let rules = Rules::new(&options.rules.0);
    match rules.and_then(|_| part(role, &place.0, &options)) {
        Ok(tree) => {
            let (beside, ready) = offer(streams.as_ref(), at)?;
            link.beside = beside;
            write_now(&mut link.write, &Message::Ready(ready))?;
            match role == Role::SOURCE {
                true => source::run(tree, &options, link, &(Arc::new(|_| {}) as Report)),
                false => destination::run(tree, &options, link, ReportTo::Remote, true),
            }
        }
        Err(error) => {
            let why = sentence(&error_text(&error));
            write_now(&mut link.write, &Message::Refused(Refused { why }))?;
            Err(error.into())
        }
    }
}

/// Opens streams as requested, and the reply about them.
fn offer(wanted: Option<&StreamRequest>, at: Reachable) -> Result<(DataStreams, Ready), SyncError> {
    let Some(wanted) = wanted else {
        return Ok((DataStreams::Nothing, Ready { offer: None, why: Bytes(Vec::new()) }));
    };
    match Answerer::open_at(wanted, at) {
        Ok((answerer, offer)) => Ok((
            DataStreams::Answers(answerer),
            Ready { offer: Some(offer), why: Bytes(Vec::new()) },
        )),
        // Nothing that the run could not do without.
        Err(error @ SyncError::Machine(_)) => {
            Ok((DataStreams::Nothing, Ready { offer: None, why: sentence(&error_text(&error)) }))
        }
        Err(error) => Err(error),
    }
}

/// The tree for a part of a run.
fn part(role: Role, place: &[u8], options: &Options) -> Result<HostTree, SyncError> {
    use std::os::unix::ffi::OsStrExt;
    // A path without a slash at its begin starts where the program was started.
    let place = Path::new(std::ffi::OsStr::from_bytes(place));
    match role {
        Role::SOURCE => HostTree::open(place),
        Role::DESTINATION => target(place, options),
        _ => Err(SyncError::Broken("a part that does not exist")),
    }
}

/// An error with what caused it.
fn error_text(error: &SyncError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// A link over standard input and output, for a side that was started by the other.
///
/// # Errors
/// They are closed.
pub fn stdio() -> Result<Link, SyncError> {
    let copy = |fd: &dyn AsFd| fd.as_fd().try_clone_to_owned().map_err(SyncError::Machine);
    let read: Box<dyn Read + Send> = Box::new(File::from(copy(&std::io::stdin())?));
    let write: Box<dyn Write + Send> = Box::new(File::from(copy(&std::io::stdout())?));
    // A blocked read of a pipe cannot be ended; the process can.
    Ok(Link {
        read,
        write,
        close: Box::new(|| {}),
        closes: false,
        beside: DataStreams::Nothing,
        timeout: DSYNC_STREAM_PATIENCE,
        lends: None,
    })
}
