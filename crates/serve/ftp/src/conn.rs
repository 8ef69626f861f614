//! One client: commands are received and replies sent, during a transfer both at once (RFC 959
//! §4.1.3: ABOR and STAT come while data flows). The only file of this folder that reads the
//! control connection.

pub(super) mod data;

use files::SpanFacts as _;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Poll, ready};
use std::time::Duration;

use base::clock::{Deadline, stamp};
use base::limits::{
    DRAIN_TIME_MAX, FTP_COMMANDS_HELD, FTP_COMMANDS_PER_TURN, FTP_HANDSHAKE_TIME_MAX, FTP_RECEIVE,
    FTP_SIGN_IN_TIME_MAX, FTP_USER_LOOK,
};
use base::permits::{AccountPermit, PermitLimits};
use socket2::SockRef;
use tokio::io::ReadBuf;
use tokio::net::TcpStream;
use wire::ftp::line::Lines;
use wire::ftp::{Malformed, Verb, request};

use self::data::{Maker, Sent};
use super::answer::Answer;
use super::dispatch;
use super::flow::{self, Flow};
use super::next::Next;
use super::session::{ENDING, NO_USER, Session};
use super::status::DONE;
use super::transfer::{self, Job, Work};
use super::{Entry, Server};
use engine::exec::accept;
use engine::transport::link::Link;
use engine::transport::listener::Accepted;
use engine::transport::tasks::{Ending, common_interval};
use files::{Caller, Core, Transfer};

/// The control connection has ended, or is of no use any more.
struct Disconnected;

type Line = Result<Vec<u8>, Malformed>;

/// The control connection.
struct Control {
    core: Rc<Core>,
    link: Link,
    lines: Lines,
    /// When something was received last: all commands before that were cut from it.
    received_ns: u64,
    /// Commands that came while a transfer went on, and when.
    held: VecDeque<(Line, u64)>,
    /// What goes out next.
    out: Vec<u8>,
}

impl Control {
    /// The next command, and when it had come.
    async fn line(&mut self) -> Result<(Line, u64), Disconnected> {
        if let Some(held) = self.held.pop_front() {
            return Ok(held);
        }
        let line = self.fresh_line().await?;
        Ok((line, self.received_ns))
    }

    /// The next command that has not come yet.
    async fn fresh_line(&mut self) -> Result<Line, Disconnected> {
        loop {
            if let Some(line) = self.lines.cut() {
                return Ok(line);
            }
            self.receive().await?;
        }
    }

    /// Receives something. Cancel safe.
    async fn receive(&mut self) -> Result<(), Disconnected> {
        let core = (&self.core.buffers, &*self.core.budget);
        self.link.rest(core);
        poll_fn(|cx| self.link.poll_ready(cx)).await.map_err(|_| Disconnected)?;
        let link = &mut self.link;
        let take = || link.make_room(core, false).then_some(());
        self.core.room(None, Link::NEED, take).await.ok_or(Disconnected)?;
        let (link, lines) = (&mut self.link, &mut self.lines);
        poll_fn(|cx| {
            let mut room = [0; FTP_RECEIVE];
            let mut buf = ReadBuf::new(&mut room);
            let received = ready!(link.poll_receive_past_mark(cx, &mut buf));
            lines.push(buf.filled());
            self.received_ns = stamp();
            let came = received.is_ok() && !buf.filled().is_empty();
            Poll::Ready(if came { Ok(()) } else { Err(Disconnected) })
        })
        .await
    }

    async fn answer(&mut self, answer: &Answer) -> Result<(), Disconnected> {
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        answer.encode(&mut out);
        let sent = self.link.send(&out, false, &self.core.buffers).await;
        // A long listing leaves nothing behind.
        out.shrink_to(FTP_RECEIVE);
        self.out = out;
        sent.map_err(|_| Disconnected)
    }
}

/// The control connection of a client.
struct Conn {
    control: Control,
    session: Session,
    permit: AccountPermit,
    /// Deadline of the sign-in.
    sign_in: Deadline,
    ending: Ending,
}

/// Serves one client until its connection ends.
pub(super) async fn serve(
    core: Rc<Core>,
    accepted: Accepted,
    (server, entry): (Arc<Server>, Entry),
    ending: Ending,
) {
    let Accepted { stream, peer, permit: _permit } = accepted;
    let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
    // What is sent as urgent (ABOR with Telnet's Synch, RFC 959 §4.1.3) comes in its place.
    let _ = SockRef::from(&stream).set_out_of_band_inline(true);
    let Ok(stream) = TcpStream::from_std(stream) else { return };
    let Ok(local) = stream.local_addr() else { return };
    let local = SocketAddr::new(local.ip().to_canonical(), local.port());
    let (link, lines) = (Link::new(stream, core.engine.budgets.limits().pace), Lines::new());
    let (held, out) = (VecDeque::new(), Vec::new());
    let mut control = Control { core: Rc::clone(&core), link, lines, received_ns: 0, held, out };
    let settings = server.settings();
    let limits = PermitLimits::new(settings.connections_max, settings.per_address_max);
    let permit = server.permits.take(peer.ip(), limits, core.budget.revoke_signal());
    let Some(permit) = permit else {
        core.engine.budgets.refuse();
        let _ = control.answer(&Answer::of(421, "Too many connections; try again later.")).await;
        return;
    };
    let client = core.engine.hub.clients().intern(peer.ip());
    let span = core.begin(client, 0);
    let session = Session {
        core: Rc::clone(&core),
        server,
        settings,
        state: Default::default(),
        who: None,
        users: 0,
        plan: Default::default(),
        peer,
        local,
        client,
        tls: None,
        disconnect_watch: None,
        ending: ending.clone(),
        span,
        transfer: Transfer::default(),
    };
    let sign_in = Deadline::after(FTP_SIGN_IN_TIME_MAX);
    let mut conn = Conn { control, session, permit, sign_in, ending };
    // The connection has ended: nothing is left to do.
    let _ = conn.run(entry).await;
    conn.control.link.close((&core.buffers, &*core.budget));
}

impl Conn {
    async fn run(&mut self, entry: Entry) -> Result<(), Disconnected> {
        if entry == Entry::Implicit {
            let tls = self.session.server.tls.as_ref().ok_or(Disconnected)?;
            self.session.tls = Some(tls.for_one_client());
            self.secure().await?;
            // Clients of the implicit TLS port expect it (draft-murray-auth-ftp-ssl-07 §2).
            (self.session.state.sized, self.session.state.protect) = (true, true);
        }
        let greeting = Answer::with(220, self.session.settings.greeting.clone());
        self.control.answer(&greeting).await?;
        for turn in 1.. {
            let line = self.next().await?;
            if !self.session.is_welcome() {
                return self.control.answer(&NO_USER).await;
            }
            // Apart from what is kept between two commands: most sessions wait for one.
            if !Box::pin(self.command(line)).await? {
                break;
            }
            if turn % FTP_COMMANDS_PER_TURN == 0 {
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    /// The next command. A timeout, or the end of the service, closes the connection with a reply.
    async fn next(&mut self) -> Result<(Line, u64), Disconnected> {
        let patience = match self.session.state.signed_in {
            true => self.session.settings.idle,
            false => self.sign_in.left().unwrap_or(Duration::ZERO),
        };
        let why = tokio::select! {
            biased;
            line = tokio::time::timeout(patience, self.control.line()) => match line {
                Ok(line) => return line,
                Err(_) => {
                    self.session.core.engine.budgets.give_up();
                    Answer::of(421, "Idle timeout: no command received.")
                }
            },
            _ = self.ending.wait_for(|end| *end) => ENDING,
        };
        self.control.answer(&why).await?;
        Err(Disconnected)
    }

    /// Answers one command; false if it was the last.
    async fn command(&mut self, (line, arrived_ns): (Line, u64)) -> Result<bool, Disconnected> {
        let parsed = match &line {
            Ok(line) => request::parse(line),
            Err(error) => request::Parsed { verb: None, request: Err(*error) },
        };
        if parsed.request.is_err() {
            self.session.core.engine.budgets.bad_records.fetch_add(1, Relaxed);
        }
        let s = &mut self.session;
        s.span = s.core.begin_at(s.client, dispatch::op(parsed.verb), arrived_ns);
        // The detection of the client's end uses a descriptor, as a connection does.
        let long = matches!(parsed.verb, Some(Verb::Hash | Verb::Size | Verb::Stat));
        let place = if long { data::place(&s.core, s.peer.ip()).ok() } else { None };
        s.disconnect_watch = place.as_ref().and_then(|_| self.control.link.disconnect_watch().ok());
        let next = dispatch::answer(s, parsed).await;
        s.disconnect_watch = None;
        drop(place);
        if s.state.signed_in && !s.core.budget.is_connection_kept() {
            s.core.budget.keep_connection();
            // One that has lost its permit is closed a moment later.
            let _ = self.permit.keep();
        }
        let (answer, goes_on) = match next {
            // RFC 959 §5.4: 421 closes the control connection.
            Next::Answer(answer) if answer.code == 421 => (answer, false),
            Next::Answer(answer) => (answer, true),
            Next::Leave(answer) => (answer, false),
            Next::Secure(answer) => return self.begin_tls(&answer).await,
            Next::Transfer(job) => return self.transfer(*job).await.map(|()| true),
        };
        self.finish(&answer).await?;
        Ok(goes_on)
    }

    /// Sends the reply, and writes the command down.
    async fn finish(&mut self, answer: &Answer) -> Result<(), Disconnected> {
        self.finish_with(answer, None).await
    }

    /// The same of a transfer, which ends when its data has arrived: the reply does not wait for
    /// that.
    async fn finish_with(
        &mut self,
        answer: &Answer,
        data: Option<Sent>,
    ) -> Result<(), Disconnected> {
        // A transfer that has begun is logged by its flow.
        flow::end(&std::mem::take(&mut self.session.transfer), answer, false);
        let sent = self.control.answer(answer).await;
        let ended = [(self.session.span, answer.code)];
        let core = &self.session.core;
        let Some(Sent { stream, acks, permit }) = data else {
            core.all_sent(ended, None);
            return sent;
        };
        core.all_sent(ended, Some(acks.get()));
        core.acks().close(stream, acks, Box::new(permit));
        sent
    }

    /// AUTH: nothing that came unencrypted before may count as received under TLS.
    async fn begin_tls(&mut self, answer: &Answer) -> Result<bool, Disconnected> {
        if self.control.lines.holds() || !self.control.held.is_empty() {
            let early = Answer::of(421, "Unexpected data between AUTH and TLS.");
            self.finish(&early).await?;
            return Ok(false);
        }
        self.finish(answer).await?;
        self.secure().await?;
        Ok(true)
    }

    async fn secure(&mut self) -> Result<(), Disconnected> {
        let core = Rc::clone(&self.session.core);
        let peer = self.session.peer.ip();
        let config = self.session.tls.clone().ok_or(Disconnected)?;
        let handshake = self.control.link.secure_as(config, (&core.buffers, &*core.budget));
        let secured = accept::secure(&core.engine, handshake, FTP_HANDSHAKE_TIME_MAX).await;
        let Err(failure) = secured else {
            self.session.state.secure = true;
            return Ok(());
        };
        core.engine.budgets.tls_failures.fetch_add(1, Relaxed);
        if let Some(tls) = &self.session.server.tls {
            tls.note_failure(peer, failure.to_string());
        }
        Err(Disconnected)
    }

    /// Transfers the data, and handles the commands that come meanwhile.
    async fn transfer(&mut self, job: Job) -> Result<(), Disconnected> {
        let s = &mut self.session;
        let uploads = matches!(job.work, Work::Receive(_));
        let secure =
            |tls| (if uploads { data::silent(tls) } else { tls }, s.settings.session_reuse);
        let maker = Maker {
            plan: std::mem::take(&mut s.plan),
            client: s.peer.ip(),
            local: s.local.ip(),
            tls: s.tls.clone().filter(|_| s.state.protect).map(secure),
        };
        if maker.is_unplanned() {
            return self.finish(&Answer::of(425, "PASV, EPSV, PORT or EPRT first.")).await;
        }
        let (core, span, mut counted) = (Rc::clone(&s.core), s.span, s.span);
        // The detection of the client's end uses a descriptor, as a connection does.
        let _place = match data::place(&core, s.peer.ip()) {
            Ok(place) => place,
            Err(answer) => return self.finish(&answer).await,
        };
        let Ok(who) = s.caller().cloned() else { return Err(Disconnected) };
        // Without it an upload of a client that is gone could not be distinguished from a complete
        // one.
        let Ok(disconnect_watch) = self.control.link.disconnect_watch() else {
            return self.finish(&Answer::of(425, "Too many open files; try again later.")).await;
        };
        self.control.answer(&job.opening).await?;
        let transfer = std::mem::take(&mut self.session.transfer);
        let flow = Flow::new(&core, (span, transfer), disconnect_watch);
        let mut abort = false;
        let outcome = {
            let work = pin!(run(&core, &who, maker, (job.work, job.ascii), &flow));
            let mut run = pin!(dispatch::attempted(&core, &mut counted, (work, !uploads)));
            let mut over = pin!(must_end(&core, &who, self.ending.clone()));
            let mut is_over = false;
            loop {
                tokio::select! {
                    biased;
                    next = self.control.next_command(), if self.control.listens() => match next? {
                        TransferCommand::Abort if flow.give_up() => break None,
                        TransferCommand::Abort => abort = true,
                        TransferCommand::Status => self.control.answer(&progress(&flow)).await?,
                        TransferCommand::Deferred if self.control.has_quit() => flow.may_leave(),
                        TransferCommand::Deferred => {}
                    },
                    answer = &mut over, if !is_over => match flow.give_up() {
                        true => break Some(answer),
                        // The file is taking its name: that does not take long.
                        false => is_over = true,
                    },
                    answer = &mut run => break Some(answer.unwrap_or_else(Answer::from)),
                }
            }
        };
        self.session.span.clock = counted.clock;
        self.transferred(outcome, (flow, &who), abort).await
    }

    /// Says how a transfer has ended, `None` if it was aborted, and answers an ABOR that came.
    async fn transferred(
        &mut self,
        outcome: Option<Answer>,
        (flow, who): (Flow, &Caller),
        abort: bool,
    ) -> Result<(), Disconnected> {
        let abort = abort || outcome.is_none();
        let mut answer = outcome.unwrap_or(Answer::of(426, "Transfer aborted."));
        if answer.code >= 400 && !self.session.core.files.is_welcome(who) {
            answer = NO_USER;
        }
        let data = flow.data.take();
        flow.ends(&answer);
        self.finish_with(&answer, data).await?;
        match answer.code {
            // RFC 959 §5.4: 421 closes the control connection.
            421 => Err(Disconnected),
            _ if abort => self.answer_abort(who).await,
            _ => Ok(()),
        }
    }

    /// The reply to ABOR, behind that of the transfer (RFC 959 §4.1.3).
    async fn answer_abort(&mut self, who: &Caller) -> Result<(), Disconnected> {
        let abort = dispatch::op(Some(Verb::Abor));
        self.session.span = self.session.core.begin(self.session.client, abort);
        self.session.span.by(who);
        self.finish(&Answer::of(226, "ABOR done.")).await
    }
}

/// A command received during a transfer.
enum TransferCommand {
    /// ABOR.
    Abort,
    /// STAT.
    Status,
    /// Something that is done after the transfer.
    Deferred,
}

impl Control {
    /// Whether it has room for what is done later. After QUIT nothing more can be of interest.
    fn listens(&self) -> bool {
        self.held.len() < FTP_COMMANDS_HELD && !self.has_quit()
    }

    /// Whether QUIT is to be done later.
    fn has_quit(&self) -> bool {
        let is_quit =
            |(line, _): &(Line, u64)| line.as_ref().is_ok_and(|l| l.eq_ignore_ascii_case(b"QUIT"));
        self.held.iter().any(is_quit)
    }

    /// The next command during a transfer. The end of the connection is the end of the transfer
    /// (RFC 959 §4.1.1, QUIT): a client that is gone does not receive its result.
    async fn next_command(&mut self) -> Result<TransferCommand, Disconnected> {
        let line = self.fresh_line().await?;
        let verb = line.as_ref().ok().map(|line| request::parse(line).request);
        Ok(match verb {
            Some(Ok(request::Request::Bare(Verb::Abor))) => TransferCommand::Abort,
            Some(Ok(request::Request::Maybe(Verb::Stat, None))) => TransferCommand::Status,
            _ => {
                self.held.push_back((line, self.received_ns));
                TransferCommand::Deferred
            }
        })
    }
}

/// Waits until a transfer must end although both sides would continue: its user is no longer valid,
/// or the service has been ending for longer than it grants to running transfers.
async fn must_end(core: &Core, who: &Caller, mut ending: Ending) -> Answer {
    let mut look = common_interval(FTP_USER_LOOK);
    loop {
        tokio::select! {
            _ = ending.wait_for(|end| *end) => break,
            _ = look.tick() => if !core.files.is_welcome(who) {
                return NO_USER;
            },
        }
    }
    // Leaves time to send the reply.
    tokio::time::sleep(DRAIN_TIME_MAX / 2).await;
    ENDING
}

fn progress(flow: &Flow) -> Answer {
    Answer::with(213, format!("{} bytes so far.", flow.bytes()))
}

/// Makes the data connection, does the work, and ends the connection.
async fn run(
    core: &Rc<Core>,
    who: &Caller,
    maker: Maker,
    (work, ascii): (Work, bool),
    flow: &Flow,
) -> Answer {
    let (mut link, permit) = match maker.open(core).await {
        Ok((link, place)) => (Closing { core, link: Some(link) }, place),
        Err(answer) => return answer,
    };
    let Some(open) = &mut link.link else { return DONE };
    flow.goes_over(open);
    let uploads = matches!(work, Work::Receive(_));
    let done = match work {
        Work::Send(reader, from) => {
            transfer::send((core, who), open, (&reader, from, ascii), flow).await
        }
        Work::Receive(incoming) => incoming.receive((core, who), (open, ascii), flow).await,
        Work::List(job) => job.send((core, who), open, flow).await,
    };
    if done.is_ok()
        && !uploads
        && let Some(link) = link.link.take()
    {
        let (stream, acks) = link.into_closing((&core.buffers, &*core.budget));
        flow.data.set(Some(Sent { stream, acks, permit }));
    }
    done.unwrap_or_else(|answer| answer)
}

/// A data connection, which gives its buffers back also when a transfer is aborted.
struct Closing<'a> {
    core: &'a Core,
    link: Option<Link>,
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        if let Some(link) = self.link.take() {
            data::close(link, self.core);
        }
    }
}
