//! Data of files: RETR, STOR, STOU and APPE.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, ready};

use base::clock::{monotonic_ns, stamp};
use base::limits::{
    FTP_PIECE, FTP_UPLOAD_FIRST, POOL_PATIENCE, SEND_FILE_MIN, TRANSFER_SEND_PIECE,
};
use base::random::{Random, SystemRandom};
use tokio::io::ReadBuf;
use vfs::attr::SetAttr;
use vfs::share::rules::Transport;
use vfs::status::Status;
use wire::ftp::ascii::Ends;
use wire::ftp::request::Type;

use super::answer::Answer;
use super::flow::Flow;
use super::list::{self, Form};
use super::session::Session;
use super::settings::Uploads;
use super::status::{DONE, lost};
use engine::transport::budget::Need;
use engine::transport::buffers::ReplyBuf;
use engine::transport::link::Link;
use engine::transport::pace::SlowPeerBudget;
use engine::transport::send::SendError;
use files::append::WriteOffset;
use files::reader::Reader;
use files::transfer::Direction;
use files::upload::{Finished, How, Upload};
use files::{Caller, Core, Links, Spot};

/// A transfer that may begin.
pub(super) enum Work {
    /// To the client, from an offset on.
    Send(Reader, u64),
    /// From the client.
    Receive(Box<Incoming>),
    /// A listing.
    List(list::Job),
}

/// What waits for its data connection.
pub(super) struct Job {
    /// The preliminary reply.
    pub(super) opening: Answer,
    pub(super) work: Work,
    pub(super) ascii: bool,
}

/// An upload.
pub(super) struct Incoming {
    spot: Spot,
    set: SetAttr,
    /// Where its data goes in a file that is written in place.
    place: Option<(Upload, WriteOffset)>,
}

fn opening(s: &Session, what: &[u8], size: Option<u64>) -> Answer {
    let kind = if s.state.data_type == Type::Ascii { "ASCII" } else { "BINARY" };
    let size = size.map_or(String::new(), |n| format!(" ({n} bytes)"));
    let mut text = format!("Opening {kind} mode data connection for ").into_bytes();
    text.extend_from_slice(what);
    text.extend_from_slice(size.as_bytes());
    text.push(b'.');
    Answer::with(150, text)
}

fn is_ascii(s: &Session) -> bool {
    s.state.data_type == Type::Ascii
}

fn beyond(from: u64, size: u64) -> Result<(), Answer> {
    match from > size {
        true => Err(Answer::with(554, format!("REST position ({from}) > file size ({size})."))),
        false => Ok(()),
    }
}

/// LIST, NLST and MLSD.
pub(super) async fn list(s: &mut Session, form: Form, path: Option<&[u8]>) -> Result<Job, Answer> {
    let job = list::job(s, form, path).await?;
    let opening = Answer::of(150, "Listing follows.");
    Ok(Job { opening, work: Work::List(job), ascii: false })
}

/// RETR.
pub(super) async fn retr(s: &mut Session, path: &[u8]) -> Result<Job, Answer> {
    let from = s.state.take_rest();
    let (node, at) = (s.file(path).await?, s.state.resolve(path)?);
    s.asks_for(Direction::Download, (path, from))?;
    let reader = s.core.reader_at(s.caller()?, &at, node).await?;
    let size = reader.node().attr.size;
    beyond(from, size)?;
    s.span.range(from, size - from, false);
    let known = (!is_ascii(s)).then_some(size - from);
    Ok(Job { opening: opening(s, path, known), work: Work::Send(reader, from), ascii: is_ascii(s) })
}

/// STOR.
pub(super) async fn stor(s: &mut Session, path: &[u8]) -> Result<Job, Answer> {
    let from = s.state.take_rest();
    let spot = s.spot(path, Links::Follow).await?;
    s.asks_for(Direction::Upload, (path, from))?;
    let opening = opening(s, path, None);
    let incoming = match (from, s.settings.uploads) {
        (0, Uploads::Atomic) => atomic(s, spot).await?,
        (0, Uploads::InPlace) => in_place(s, spot, WriteOffset::At(0), Some(0)).await?,
        (from, _) => {
            beyond(from, spot.node()?.attr.size)?;
            in_place(s, spot, WriteOffset::At(from), None).await?
        }
    };
    s.span.range(from, 0, true);
    Ok(Job { opening, work: Work::Receive(Box::new(incoming)), ascii: is_ascii(s) })
}

/// APPE.
pub(super) async fn appe(s: &mut Session, path: &[u8]) -> Result<Job, Answer> {
    if s.state.take_rest() != 0 {
        return Err(Answer::of(450, "Can't APPE while REST request is pending."));
    }
    let spot = s.spot(path, Links::Follow).await?;
    let from = spot.entry.map_or(0, |entry| entry.attr.size);
    s.asks_for(Direction::Upload, (path, from))?;
    s.span.range(from, 0, true);
    let work = Work::Receive(Box::new(in_place(s, spot, WriteOffset::End, None).await?));
    Ok(Job { opening: opening(s, path, None), work, ascii: is_ascii(s) })
}

/// STOU: under a unique name, reported in the format of RFC 1123 §4.1.2.9.
pub(super) async fn stou(s: &mut Session, path: Option<&[u8]>) -> Result<Job, Answer> {
    if s.state.take_rest() != 0 {
        return Err(Answer::of(450, "Can't STOU while REST request is pending."));
    }
    let base = path.unwrap_or(b"ftp");
    let name = [base, format!(".{:016x}", SystemRandom.next_u64()).as_bytes()].concat();
    let spot = s.spot(&name, Links::Keep).await?;
    if spot.entry.is_some() {
        return Err(Answer::of(450, "No unused name found."));
    }
    s.asks_for(Direction::Upload, (name.as_slice(), 0))?;
    s.span.range(0, 0, true);
    let work = Work::Receive(Box::new(atomic(s, spot).await?));
    let opening = Answer::with(150, [b"FILE: ", name.as_slice()].concat());
    Ok(Job { opening, work, ascii: is_ascii(s) })
}

/// Reports errors that are known before data comes.
async fn atomic(s: &Session, spot: Spot) -> Result<Incoming, Answer> {
    s.core.may_upload(s.caller()?, &spot).await?;
    Ok(Incoming { set: s.fresh(0o666), spot, place: None })
}

async fn in_place(
    s: &Session,
    spot: Spot,
    place: WriteOffset,
    size: Option<u64>,
) -> Result<Incoming, Answer> {
    let set = SetAttr { size, ..s.fresh(0o666) };
    let upload = s.core.upload(s.caller()?, &spot, How::InPlace(set)).await?;
    Ok(Incoming { spot, set, place: Some((upload, place)) })
}

/// A failure after the transfer has begun: the file itself was right (RFC 959 §4.2.2, 451).
fn midway(status: Status) -> Answer {
    let answer = Answer::from(status);
    if answer.code == 550 { Answer { code: 451, ..answer } } else { answer }
}

/// Memory of a transfer, within the budget, until it is dropped.
struct TransferMemory<'a>(&'a Core, usize);

impl<'a> TransferMemory<'a> {
    async fn take(core: &'a Core, bytes: usize) -> Result<Self, Answer> {
        let take = || {
            let has_room = core.budget.has_bytes(bytes);
            has_room.then(|| core.budget.take_bytes(bytes))
        };
        let taken = core.room(Some(POOL_PATIENCE), Need::bytes(bytes), take).await;
        taken.ok_or(Answer::of(450, "Too many transfers; try again later."))?;
        Ok(Self(core, bytes))
    }
}

impl Drop for TransferMemory<'_> {
    fn drop(&mut self) {
        self.0.budget.give_bytes(self.1);
    }
}

/// Sends a file from `offset` on. Unencrypted the kernel sends it from the page cache.
pub(super) async fn send(
    (core, who): (&Core, &Caller),
    link: &mut Link,
    (reader, mut offset, ascii): (&Reader, u64, bool),
    flow: &Flow,
) -> Result<Answer, Answer> {
    let as_it_is = link.transport() == Transport::Plain && !ascii;
    let file_size = reader.node().attr.size;
    let _held = TransferMemory::take(core, FTP_PIECE).await?;
    let mut copying = Copying { buf: core.buffers.take_reply(), ends: ascii.then(Ends::default) };
    let done = loop {
        let since_ns = stamp();
        // Of the last few bytes a copy costs less than the calls that save it.
        let large = as_it_is && file_size.saturating_sub(offset) >= SEND_FILE_MIN as u64;
        let sent = match large {
            true => send_piece((core, who), link, (reader, offset)).await,
            false => Ok(None),
        };
        let sent = match sent {
            Ok(None) => copying.send((core, who), link, (reader, offset)).await,
            Ok(Some(sent)) => Ok(sent),
            Err(answer) => Err(answer),
        };
        let (count, eof) = match sent {
            Ok(sent) => sent,
            Err(answer) => break Err(answer),
        };
        if count > 0 {
            flow.moved((offset, count), false, since_ns);
        }
        offset += count as u64;
        if eof && offset < file_size {
            break Err(lost(core, &SendError::Shrunk));
        }
        if eof {
            break Ok(DONE);
        }
        tokio::task::yield_now().await;
    };
    core.buffers.give_reply(copying.buf);
    done
}

/// Has the kernel send what the socket takes now of the next piece: how many bytes, and whether the
/// file ends behind them. `None` if it must be read.
async fn send_piece(
    (core, who): (&Core, &Caller),
    link: &mut Link,
    (reader, offset): (&Reader, u64),
) -> Result<Option<(usize, bool)>, Answer> {
    let broke = |error| lost(core, &error);
    link.has_room().await.map_err(broke)?;
    let piece = (offset, TRANSFER_SEND_PIECE);
    let part = reader.sendfile_range(core, who, piece).await.map_err(midway)?;
    let Some(part) = part else { return Ok(None) };
    let sent = link.send_file(&part).map_err(broke)?;
    Ok(Some((sent, part.eof && sent == part.count)))
}

/// What is read before it is sent: what is encrypted, what is text, and small files.
struct Copying {
    buf: ReplyBuf,
    ends: Option<Ends>,
}

impl Copying {
    /// Sends the next piece: how many bytes of the file, and whether it ends behind them.
    async fn send(
        &mut self,
        (core, who): (&Core, &Caller),
        link: &mut Link,
        (reader, offset): (&Reader, u64),
    ) -> Result<(usize, bool), Answer> {
        self.buf.truncate(0);
        let read = reader.read(core, who, (offset, FTP_PIECE), &mut self.buf).await;
        let (count, eof) = read.map_err(midway)?;
        let eof = eof || count == 0;
        let mut text = Vec::new();
        let data = match &mut self.ends {
            Some(ends) => {
                ends.outward(self.buf.as_slice(), &mut text);
                &text
            }
            None => self.buf.as_slice(),
        };
        link.send(data, !eof, &core.buffers).await.map_err(|error| lost(core, &error))?;
        Ok((count, eof))
    }
}

/// A buffer of which a part is filled; all of it is initialised, so none of it is cleared twice.
struct Piece {
    bytes: Vec<u8>,
    filled: usize,
}

impl Piece {
    fn of(core: &Core, size: usize) -> Self {
        Self::again(core.engine.large.take(size), size)
    }

    fn again(mut bytes: Vec<u8>, size: usize) -> Self {
        bytes.resize(size, 0);
        Self { bytes, filled: 0 }
    }

    fn into_data(mut self) -> Vec<u8> {
        self.bytes.truncate(self.filled);
        self.bytes
    }

    /// Receives until it is full; true when there is no more.
    async fn fill(
        &mut self,
        core: &Core,
        link: &mut Link,
        pace: &mut SlowPeerBudget,
    ) -> Result<bool, Answer> {
        while let Some(room) = self.bytes.get_mut(self.filled..).filter(|room| !room.is_empty()) {
            match receive(core, link, room, pace).await? {
                0 => return Ok(true),
                n => self.filled += n,
            }
        }
        Ok(false)
    }
}

async fn receive(
    core: &Core,
    link: &mut Link,
    into: &mut [u8],
    pace: &mut SlowPeerBudget,
) -> Result<usize, Answer> {
    let came = poll_fn(|cx| {
        // Asked for always: an upload that has begun must be able to end.
        link.make_room((&core.buffers, &*core.budget), true);
        let mut buf = ReadBuf::new(into);
        match ready!(link.poll_receive(cx, &mut buf)) {
            Ok(()) => Poll::Ready(Ok(buf.filled().len())),
            Err(e) => Poll::Ready(Err(e)),
        }
    });
    let (left, since) = (pace.left().unwrap_or_default(), monotonic_ns());
    let came = tokio::time::timeout(left, came).await;
    pace.waited_since(since, came.as_ref().map_or(0, |c| *c.as_ref().unwrap_or(&0) as u64));
    match came {
        Ok(Ok(count)) => Ok(count),
        Ok(Err(e)) => Err(Answer::with(426, format!("The data connection broke: {e}."))),
        Err(_) => {
            core.engine.budgets.give_up();
            Err(Answer::of(426, "The transfer was too slow."))
        }
    }
}

impl Incoming {
    /// Takes everything that comes. Unless it comes to its end, nothing is there, or in place as
    /// much as had come.
    pub(super) async fn receive(
        self,
        (core, who): (&Rc<Core>, &Caller),
        (link, ascii): (&mut Link, bool),
        flow: &Flow,
    ) -> Result<Answer, Answer> {
        let size = FTP_PIECE;
        let _held = TransferMemory::take(core, 2 * size).await?;
        let mut piece = Piece::of(core, FTP_UPLOAD_FIRST);
        let mut pace = core.engine.budgets.limits().pace;
        let since_ns = stamp();
        let mut filled = piece.fill(core, link, &mut pace).await;
        let mut ends = ascii.then(Ends::default);
        let Self { spot, set, place } = self;
        let (mut upload, mut place) = match place {
            Some(place) => place,
            None if filled.as_ref().is_ok_and(|ended| *ended) => {
                // A small file is made, written and named with fewer steps.
                let data = convert(&mut ends, piece.into_data(), true);
                let count = data.len();
                flow.has_client().await?;
                let put = core.put_if(who, &spot, (data, set), &flow.condition()).await;
                if put.is_ok() {
                    flow.moved((0, count), true, since_ns);
                }
                return named(put, flow).await;
            }
            None if filled.is_err() => return filled.map(|_| DONE),
            None => {
                let upload = core.upload(who, &spot, How::Atomic(set)).await;
                (upload.map_err(midway)?, WriteOffset::At(0))
            }
        };
        let mut spare = None;
        while let Ok(false) = filled {
            // The next piece is received while this one is written.
            let since_ns = stamp();
            let data = convert(&mut ends, piece.into_data(), false);
            let count = data.len();
            let mut next = match spare.take() {
                Some(bytes) => Piece::again(bytes, size),
                None => Piece::of(core, size),
            };
            let both = tokio::join!(upload.write_to(place, data), next.fill(core, link, &mut pace));
            let (written, offset) = both.0.map_err(midway)?;
            spare = Some(written);
            flow.moved((offset, count), true, since_ns);
            place = place.behind(count as u64);
            (piece, filled) = (next, both.1);
        }
        core.engine.large.give(spare.unwrap_or_default());
        // Data received before a break is written as well: a client that resumes in place continues
        // after it.
        let since_ns = stamp();
        let data = convert(&mut ends, piece.into_data(), filled.is_ok());
        let count = data.len();
        let (written, offset) = upload.write_to(place, data).await.map_err(midway)?;
        core.engine.large.give(written);
        flow.moved((offset, count), true, since_ns);
        filled?;
        flow.has_client().await?;
        named(upload.finish_if(SetAttr::default(), &flow.condition()).await, flow).await
    }
}

/// Waits until an upload has its name. If that was withheld because the client seemed to have gone,
/// it is found out whether it has.
async fn named(finished: vfs::fs::Result<Finished>, flow: &Flow) -> Result<Answer, Answer> {
    let mut finished = finished.map_err(midway)?;
    while let Finished::Withheld(upload) = finished {
        flow.has_client().await?;
        finished = upload.name_if(&flow.condition()).await.map_err(midway)?;
    }
    Ok(DONE)
}

/// As it goes into the file.
fn convert(ends: &mut Option<Ends>, data: Vec<u8>, last: bool) -> Vec<u8> {
    let Some(ends) = ends else { return data };
    let mut out = Vec::with_capacity(data.len() + 1);
    ends.inward(&data, &mut out);
    if last {
        ends.finish(&mut out);
    }
    out
}
