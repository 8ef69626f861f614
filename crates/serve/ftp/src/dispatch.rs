//! Command → function, and what is noted of each command for the statistics.

use engine::exec::{Span, timed};
use files::{Core, SpanFacts as _};
use std::future::Future;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;

use vfs::status::Status;
use wire::ftp::request::{Parsed, Site};
use wire::ftp::{Request, Verb};

use super::answer::Answer;
use super::list::{self, Form};
use super::next::Next;
use super::session::Session;
use super::{about, auth, names, transfer};

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
            let mut span = s.span;
            let done = {
                let run = pin!(permitted(s, request));
                attempted(&core, &mut span, (run, false)).await
            };
            s.span.clock = span.clock;
            done.unwrap_or_else(|status| Err(status.into()))
        }
        (Err(error), None) => Err(error.into()),
        // Checked first: before sign-in a malformed command is refused like a valid one.
        (Err(error), Some(verb)) => {
            s.state.gate(verb, verb != Verb::Site, &s.settings).and(Err(error.into()))
        }
    };
    done.unwrap_or_else(Next::Answer)
}

/// Runs a command or a transfer, and counts what its time goes to: what `sends` was ready before.
///
/// # Errors
/// [`Status::Fault`] if it panics, which is counted.
pub(super) async fn attempted<F: Future>(
    core: &Core,
    span: &mut Span,
    (work, sends): (Pin<&mut F>, bool),
) -> Result<F::Output, Status> {
    let work = pin!(core.engine.attempt_async(work));
    match sends {
        false => timed::run(&mut span.clock, work).await,
        true => timed::sending(&mut span.clock, work).await,
    }
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
        Request::Maybe(Verb::List, path) => transfer::list(s, Form::People, path).await?,
        Request::Maybe(Verb::Nlst, path) => transfer::list(s, Form::Names, path).await?,
        Request::Maybe(Verb::Mlsd, path) => {
            transfer::list(s, Form::Facts(s.state.facts), path).await?
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
        Request::Bare(Verb::Rein) => auth::reinitialize(s),
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
        Request::Code(Verb::Prot, level) => auth::prot(s, level),
        Request::Code(Verb::Stru, letter) => about::only(letter, b'F'),
        Request::Code(_, letter) => about::only(letter, b'S'),
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
