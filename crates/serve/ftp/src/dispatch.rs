//! Command → function, and what is noted of each command for the statistics.

use files::SpanFacts as _;
use std::cell::Cell;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU8};

use base::limits::FTP_END_LOOKS_MAX;
use wire::ftp::request::{Parsed, Site};
use wire::ftp::{Request, Verb};

use super::answer::Answer;
use super::list::{self, Form};
use super::session::Session;
use super::transfer::{self, Job};
use super::{about, auth, names};
use engine::transport::link::{Ear, Link};
use files::transfer::Outcome;
use files::upload::Condition;
use files::{Core, Span, Transfer};

/// What follows from a command.
pub(super) enum Next {
    /// Only its reply.
    Answer(Answer),
    /// The reply, then TLS.
    Secure(Answer),
    /// The reply, and the end.
    Leave(Answer),
    /// Data.
    Transfer(Box<Job>),
}

/// What flows in a transfer is counted while it does.
pub(super) struct Flow {
    core: Rc<Core>,
    span: Span,
    transfer: Transfer,
    bytes: Cell<u64>,
    client: Arc<Presence>,
}

/// Whether the client of an upload is there to hear how it ended. Threads of the pool ask that
/// right before a file takes its name.
struct Presence {
    /// Hears of the end of the control connection.
    ear: Ear,
    /// Whether the client has sent QUIT, and may end the control connection without giving up the
    /// transfer.
    may_leave: AtomicBool,
    /// One of [`OPEN`], [`NAMING`] and [`GIVEN_UP`].
    stage: AtomicU8,
}

/// Neither of the other two.
const OPEN: u8 = 0;
/// The file is taking its name: it is too late to give the transfer up.
const NAMING: u8 = 1;
/// The transfer was given up: the file must not take its name.
const GIVEN_UP: u8 = 2;

impl Presence {
    fn has_gone(&self) -> bool {
        !self.may_leave.load(Relaxed) && self.ear.hears_end()
    }

    /// Whether a file may take its name now.
    fn may_name(&self) -> bool {
        let open = |stage| (stage != GIVEN_UP).then_some(NAMING);
        !self.has_gone() && self.stage.fetch_update(AcqRel, Acquire, open).is_ok()
    }
}

impl Flow {
    pub(super) fn new(core: &Rc<Core>, (span, transfer): (Span, Transfer), ear: Ear) -> Self {
        let (may_leave, stage) = (AtomicBool::new(false), AtomicU8::new(OPEN));
        let client = Arc::new(Presence { ear, may_leave, stage });
        Self { core: Rc::clone(core), span, transfer, bytes: Cell::new(0), client }
    }

    /// The client may end the control connection now without giving up the transfer.
    pub(super) fn may_leave(&self) {
        self.client.may_leave.store(true, Relaxed);
    }

    /// The condition under which an upload takes its name: its client is there, and it was not
    /// given up. The data connection ends in the same way whether all was sent or the client was
    /// killed; the control connection ends before its reply only then. A killed client's kernel
    /// may end the data connection first: what counts is the moment before the name is taken.
    pub(super) fn condition(&self) -> Condition {
        let client = Arc::clone(&self.client);
        Arc::new(move || client.may_name())
    }

    /// That the client is there. If its end has come, what it sent before that, such as QUIT, is
    /// received first.
    ///
    /// # Errors
    /// 426: it has gone.
    pub(super) async fn has_client(&self) -> Result<(), Answer> {
        for _ in 0..FTP_END_LOOKS_MAX {
            if !self.client.has_gone() {
                return Ok(());
            }
            tokio::task::yield_now().await;
        }
        Err(Answer::of(426, "The client closed the connection."))
    }

    /// Gives the transfer up; false if it is too late, because a file is taking its name.
    pub(super) fn give_up(&self) -> bool {
        self.client.stage.compare_exchange(OPEN, GIVEN_UP, AcqRel, Acquire).is_ok()
    }

    /// A piece of a file has come or gone.
    pub(super) fn moved(&self, (offset, count): (u64, usize), inward: bool, since_ns: u64) {
        self.told(count);
        if count > 0 {
            self.transfer.moved(offset, count);
            self.core.flowed(&self.span, (offset, count), inward, since_ns);
        }
    }

    /// The data connection is there.
    pub(super) fn goes_over(&self, link: &Link) {
        self.transfer.secured(link.security());
    }

    /// This is said of how it ended.
    pub(super) fn ends(self, answer: &Answer) {
        end(&self.transfer, answer, true);
    }

    /// Bytes that are no file's.
    pub(super) fn told(&self, count: usize) {
        self.bytes.set(self.bytes.get() + count as u64);
    }

    /// Bytes so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.get()
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        // An operation of a transfer that was cut off may still be under way on the pool.
        self.give_up();
    }
}

/// A reply says how a transfer ended that had begun, or that it does not begin.
pub(super) fn end(transfer: &Transfer, answer: &Answer, begun: bool) {
    let outcome = match answer.code {
        200..300 => return transfer.completes(),
        421 | 425 | 426 | 522 => Outcome::Cut,
        _ if begun => Outcome::Failed,
        _ => Outcome::Refused,
    };
    transfer.ends(outcome, String::from_utf8_lossy(&answer.text).into_owned());
}

/// The number of a command in the statistics (`schema/ftp.toml`).
pub(super) fn op(verb: Option<Verb>) -> u8 {
    verb.map_or(0, Verb::number)
}

/// Answers a command.
pub(super) async fn answer(s: &mut Session, parsed: Parsed<'_>) -> Next {
    if let Some(who) = &s.who {
        s.span.by(who);
    }
    let done = match (parsed.request, parsed.verb) {
        (Ok(request), _) => {
            let core = Rc::clone(&s.core);
            let done = core.engine.attempt_async(pin!(permitted(s, request))).await;
            done.unwrap_or_else(|status| Err(status.into()))
        }
        (Err(error), None) => Err(error.into()),
        // Whoever has not signed in learns no more than that.
        (Err(error), Some(verb)) => {
            s.state.gate(verb, verb != Verb::Site, &s.settings).and(Err(error.into()))
        }
    };
    done.unwrap_or_else(Next::Answer)
}

async fn permitted(s: &mut Session, request: Request<'_>) -> Result<Next, Answer> {
    let verb = request.verb();
    let named = match request {
        Request::Site(what) => what != Site::Help,
        Request::Maybe(_, path) => path.is_some(),
        _ => false,
    };
    s.state.gate(verb, named, &s.settings)?;
    s.state.enter(verb);
    let job = match request {
        Request::Text(Verb::Retr, path) => transfer::retr(s, path).await?,
        Request::Text(Verb::Stor, path) => transfer::stor(s, path).await?,
        Request::Text(Verb::Appe, path) => transfer::appe(s, path).await?,
        Request::Maybe(Verb::Stou, path) => transfer::stou(s, path).await?,
        Request::Maybe(Verb::List, path) => list::begin(s, Form::People, path).await?,
        Request::Maybe(Verb::Nlst, path) => list::begin(s, Form::Names, path).await?,
        Request::Maybe(Verb::Mlsd, path) => {
            list::begin(s, Form::Facts(s.state.facts), path).await?
        }
        Request::Text(Verb::Pass, password) => return Ok(auth::pass(s, password).await),
        Request::Text(Verb::Auth, mechanism) => return Ok(auth::auth(s, mechanism)),
        Request::Bare(Verb::Quit) => return Ok(Next::Leave(Answer::of(221, "Goodbye."))),
        request => return Ok(Next::Answer(simple(s, request).await?)),
    };
    Ok(Next::Transfer(Box::new(job)))
}

/// Commands with nothing but a reply.
async fn simple(s: &mut Session, request: Request<'_>) -> Result<Answer, Answer> {
    match request {
        Request::Text(verb, text) => text_command(s, verb, text).await,
        Request::Bare(Verb::Cdup) => names::cwd(s, b"..").await,
        Request::Bare(Verb::Pwd) => names::pwd(s),
        Request::Bare(Verb::Pasv) => about::pasv(s),
        Request::Bare(Verb::Feat) => about::feat(s),
        Request::Bare(Verb::Rein) => auth::begin_anew(s),
        Request::Bare(Verb::Ccc) => auth::ccc(s),
        Request::Bare(Verb::Syst) => Ok(Answer::of(215, "UNIX Type: L8")),
        Request::Bare(Verb::Abor) => about::abor(s),
        Request::Maybe(Verb::Stat, Some(path)) => list::stat(s, path).await,
        Request::Maybe(Verb::Stat, None) => about::stat(s),
        Request::Maybe(Verb::Mlst, path) => list::mlst(s, path).await,
        Request::Maybe(Verb::Avbl, path) => names::avbl(s, path).await,
        Request::Maybe(Verb::Help, of) => about::help(of),
        Request::Maybe(Verb::Lang, language) => about::lang(language),
        Request::Maybe(..) => Ok(Answer::of(200, "Fine.")),
        Request::Number(Verb::Rest, offset) => about::rest(s, offset),
        Request::Number(Verb::Pbsz, size) => auth::pbsz(s, size),
        Request::Number(..) => Ok(Answer::of(202, "No space reservation needed.")),
        Request::Letter(Verb::Prot, level) => auth::prot(s, level),
        Request::Letter(Verb::Stru, letter) => about::only(letter, b'F'),
        Request::Letter(_, letter) => about::only(letter, b'S'),
        Request::Port(to) => about::port(s, SocketAddr::V4(to)),
        Request::Eprt(to) => about::port(s, to),
        Request::Epsv(what) => about::epsv(s, what),
        Request::Type(to) => about::set_type(s, to),
        Request::Rang(first, last) => names::rang(s, first, last),
        Request::Mfmt(time, path) => names::mfmt(s, time, path).await,
        Request::Site(what) => names::site(s, what).await,
        Request::Opts(what) => about::opts(s, what),
        Request::Bare(_) => Err(Answer::of(502, "Command not supported.")),
    }
}

async fn text_command(s: &mut Session, verb: Verb, text: &[u8]) -> Result<Answer, Answer> {
    match verb {
        Verb::User => auth::user(s, text),
        Verb::Cwd => names::cwd(s, text).await,
        Verb::Mkd => names::mkd(s, text).await,
        Verb::Rmd => names::rmd(s, text).await,
        Verb::Dele => names::dele(s, text).await,
        Verb::Rnfr => names::rnfr(s, text).await,
        Verb::Rnto => names::rnto(s, text).await,
        Verb::Size => names::size(s, text).await,
        Verb::Mdtm => names::mdtm(s, text).await,
        Verb::Hash => names::hash(s, text).await,
        Verb::Host => about::host(s),
        Verb::Acct => Ok(Answer::of(202, "Not needed.")),
        Verb::Clnt => Ok(Answer::of(200, "Noted.")),
        _ => Err(Answer::of(502, "Command not supported.")),
    }
}
