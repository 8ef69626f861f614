//! Directories, names and attributes: CWD, MKD, RMD, DELE, RNFR and RNTO, SITE, and what is asked
//! of one file: SIZE, MDTM, MFMT, HASH, AVBL.

use files::SpanFacts as _;
use std::sync::Arc;

use aws_lc_rs::digest;
use base::limits::{FTP_ASCII_SIZE_MAX, FTP_PIECE};
use base::text::hex;
use vfs::attr::{SetAttr, SetTime, Time};
use vfs::fs::Context;
use vfs::status::Status;
use wire::ftp::ascii::Ends;
use wire::ftp::reply::quoted;
use wire::ftp::request::{Site, Type};
use wire::ftp::{Verb, date};

use super::answer::{Answer, Outcome};
use super::session::Session;
use super::state::Algorithm;
use files::{Core, Links, Node, PathTarget};

/// CWD.
pub(super) async fn cwd(s: &mut Session, path: &[u8]) -> Outcome {
    let found = s.found(path).await?;
    s.may_enter(s.caller()?, &found).await?;
    s.state.here = s.state.shown(path)?;
    let here = quoted(&s.state.here.to_bytes());
    Ok(Answer::with(250, [here.as_slice(), b" is the current directory."].concat()))
}

/// PWD.
pub(super) fn pwd(s: &Session) -> Outcome {
    let here = quoted(&s.state.here.to_bytes());
    Ok(Answer::with(257, [here.as_slice(), b" is the current directory."].concat()))
}

/// MKD.
pub(super) async fn mkd(s: &mut Session, path: &[u8]) -> Outcome {
    let spot = s.spot_for_dir(path).await?;
    let made = s.core.make_dir(s.caller()?, &spot, s.fresh(0o777)).await?;
    s.span.of(&made);
    let shown = quoted(&s.state.shown(path)?.to_bytes());
    Ok(Answer::with(257, [shown.as_slice(), b" created."].concat()))
}

/// RMD.
pub(super) async fn rmd(s: &mut Session, path: &[u8]) -> Outcome {
    let (spot, _) = s.there(path).await?;
    s.core.remove_dir(s.caller()?, &spot).await?;
    Ok(Answer::of(250, "Directory removed."))
}

/// DELE.
pub(super) async fn dele(s: &mut Session, path: &[u8]) -> Outcome {
    let (spot, _) = s.there(path).await?;
    s.core.remove(s.caller()?, &spot).await?;
    Ok(Answer::of(250, "Removed."))
}

/// RNFR.
pub(super) async fn rnfr(s: &mut Session, path: &[u8]) -> Outcome {
    let (spot, path) = s.there(path).await?;
    spot.node()?;
    s.state.renaming = Some(path);
    Ok(Answer::of(350, "RNTO, please."))
}

/// RNTO.
pub(super) async fn rnto(s: &mut Session, path: &[u8]) -> Outcome {
    let Some(from) = s.state.renaming.take() else {
        return Err(Answer::of(503, "Bad sequence of commands: use RNFR first."));
    };
    let from = s.core.spot(s.caller()?, &from, Links::Keep).await?;
    let to = match from.node()?.is_dir() {
        true => s.spot_for_dir(path).await?,
        false => s.spot(path, Links::Keep).await?,
    };
    s.core.rename(s.caller()?, &from, &to).await?;
    Ok(Answer::of(250, "Renamed."))
}

/// SIZE: how many bytes RETR would send now (RFC 3659 §4). In ASCII that takes reading the file,
/// which is done for small ones.
pub(super) async fn size(s: &mut Session, path: &[u8]) -> Outcome {
    let node = s.file(path).await?;
    if s.state.data_type == Type::Image {
        return Ok(Answer::with(213, node.attr.size.to_string()));
    }
    if node.attr.size > FTP_ASCII_SIZE_MAX {
        return Err(Answer::of(550, "SIZE of large files requires TYPE I."));
    }
    let end = node.attr.size;
    let length = sum(s, node, (0, end), Length::default()).await?;
    Ok(Answer::with(213, length.0.to_string()))
}

/// What is made of the bytes of a file.
trait Sum: Send + 'static {
    fn add(&mut self, piece: &[u8]);
}

impl Sum for digest::Context {
    fn add(&mut self, piece: &[u8]) {
        self.update(piece);
    }
}

/// The length of a text in its transmitted form, and the state to continue.
#[derive(Default)]
struct Length(u64, Ends);

impl Sum for Length {
    fn add(&mut self, piece: &[u8]) {
        self.0 += self.1.wire_len(piece);
    }
}

/// Computes a sum over a part of a file, piece by piece, on the pool. It ends with the connection,
/// its user and the service, as a transfer does: the reply could not be delivered.
async fn sum<S: Sum>(
    s: &Session,
    node: Node,
    (mut offset, end): (u64, u64),
    mut sum: S,
) -> Result<S, Answer> {
    let (core, who): (&Core, _) = (&s.core, s.caller()?);
    let reader = core.reader(who, node).await?;
    let node = reader.node();
    let mut piece = core.engine.large.take(FTP_PIECE);
    let begin = offset;
    while offset < end {
        // A client that sends what it has to say and shuts its side gets answers that are short.
        if offset > begin {
            s.may_continue()?;
        }
        core.files.still_reach(who, &node.reached, false)?;
        let (fs, file) = (Arc::clone(&node.reached.share.fs), node.handle);
        let count = (end - offset).min(FTP_PIECE as u64) as usize;
        let add = move |cx: Context<'_>| {
            piece.resize(count, 0);
            let done = fs.read(cx, &file, offset, &mut piece);
            if let Ok(done) = &done {
                sum.add(piece.get(..done.count).unwrap_or_default());
            }
            (sum, piece, done)
        };
        let (now, back, done) = core.pooled(who, &node.reached.cred, add).await?;
        (sum, piece) = (now, back);
        let done = done?;
        offset += done.count as u64;
        if done.eof || done.count == 0 {
            break;
        }
    }
    core.engine.large.give(piece);
    Ok(sum)
}

/// MDTM.
pub(super) async fn mdtm(s: &mut Session, path: &[u8]) -> Outcome {
    let node = s.file(path).await?;
    Ok(Answer::with(213, date::time_text(node.attr.mtime.sec)))
}

/// Changes attributes of a file; gives the file.
async fn set(s: &mut Session, path: &[u8], set: SetAttr) -> Result<Node, Answer> {
    let node = s.node(path).await?;
    s.core.set_attr(s.caller()?, &node, set).await?;
    Ok(node)
}

fn changed_at((sec, nsec): (i64, u32)) -> SetAttr {
    SetAttr { mtime: SetTime::At(Time { sec, nsec }), ..SetAttr::default() }
}

/// MFMT (draft-somers-ftp-mfxx-04 §3). The answer is the time that the file has now: file systems
/// do not keep every time.
pub(super) async fn mfmt(s: &mut Session, time: (i64, u32), path: &[u8]) -> Outcome {
    let node = set(s, path, changed_at(time)).await?;
    let now = s.core.attr(s.caller()?, &node).await?;
    let head = format!("Modify={}; ", date::time_text(now.mtime.sec)).into_bytes();
    Ok(Answer::with(213, [head.as_slice(), path].concat()))
}

/// SITE.
pub(super) async fn site(s: &mut Session, what: Site<'_>) -> Outcome {
    match what {
        Site::Chmod(mode, path) => {
            set(s, path, SetAttr { mode: Some(mode), ..SetAttr::default() }).await?;
            Ok(Answer::of(200, "Permissions changed."))
        }
        Site::Utime(time, path) => {
            set(s, path, changed_at(time)).await?;
            Ok(Answer::of(200, "Time changed."))
        }
        Site::Help => {
            let lines = ["CHMOD <mode> <path>", "UTIME <YYYYMMDDHHMMSS> <path>", "HELP"];
            let lines = lines.iter().map(|line| line.as_bytes().to_vec()).collect();
            Ok(Answer::lines(214, "SITE knows:", lines))
        }
    }
}

/// HASH (draft-bryan-ftpext-hash-02): of the part that RANG has named, or all of it.
pub(super) async fn hash(s: &mut Session, path: &[u8]) -> Outcome {
    let node = s.file(path).await?;
    let size = node.attr.size;
    let (first, last) = s.state.range.take().unwrap_or((0, size.saturating_sub(1)));
    if first > size {
        return Err(Answer::of(551, "The range is beyond the end of the file."));
    }
    let end = last.saturating_add(1).min(size);
    let context = digest::Context::new(match s.state.hash {
        Algorithm::Sha256 => &digest::SHA256,
        Algorithm::Sha512 => &digest::SHA512,
        Algorithm::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
    });
    let digest = sum(s, node, (first, end), context).await?.finish();
    let hex = hex(digest.as_ref());
    let last = end.saturating_sub(1).max(first);
    let head = format!("{} {first}-{last} {hex} ", s.state.hash.name()).into_bytes();
    Ok(Answer::with(213, [head.as_slice(), path].concat()))
}

/// RANG (draft-bryan-ftp-range-08).
pub(super) fn rang(s: &mut Session, first: u64, last: u64) -> Outcome {
    if last < first {
        s.state.range = None;
        return Ok(Answer::of(350, "The next HASH covers the whole file."));
    }
    s.state.range = Some((first, last));
    Ok(Answer::with(350, format!("The next HASH covers bytes {first} to {last}.")))
}

/// AVBL (draft-peterson-streamlined-ftp-command-extensions-10 §4).
pub(super) async fn avbl(s: &mut Session, path: Option<&[u8]>) -> Outcome {
    match s.found(path.unwrap_or(b".")).await? {
        PathTarget::Root => {
            Err(Answer::with(504, format!("{} requires a share.", Verb::Avbl.name())))
        }
        PathTarget::Node(node) if !node.is_dir() => Err(Status::NotDirectory.into()),
        PathTarget::Node(node) => {
            let space = s.core.space(s.caller()?, &node.reached).await?;
            Ok(Answer::with(213, space.avail_bytes.to_string()))
        }
    }
}
