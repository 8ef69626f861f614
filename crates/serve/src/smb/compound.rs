//! From requests to a frame: those of a compound are carried out one after the other, and answered
//! together (MS-SMB2 §3.3.5.2.7).

use std::pin::pin;
use std::rc::Rc;

use base::limits::{SMB_CREDITS_MAX, SMB_PENDING_AFTER, SMB_UNSIGNED_CREDITS_MAX};
use wire::smb::codec::{Field, pad, patch};
use wire::smb::create::FileId;
use wire::smb::frame::{PREFIX, prefix};
use wire::smb::header::{Command, HEADER, Header, Messages, TRANSFORM, flags, put_error};
use wire::smb::status::NtStatus;

use super::dispatch::{self, Outcome, Request};
use super::state::connection::{Answer, Cancel, Connection};
use super::state::session::Session;
use super::status;
use crate::exec::Span;
use crate::files::Core;
use crate::transport::buffers::ReplyBuf;

/// Where the first message of an answer begins: before it there is room for the length of the
/// frame, and for the header of an encrypted message.
pub(super) const START: usize = PREFIX + TRANSFORM;

/// A buffer for an answer, with room for all headers.
pub(super) fn reply(core: &Core) -> ReplyBuf {
    let mut reply = core.buffers.take_reply();
    reply.vec().resize(START + HEADER, 0);
    reply
}

/// A frame that came.
pub(super) struct Frame {
    /// Its bytes, decrypted.
    pub bytes: Vec<u8>,
    /// Where its messages begin.
    pub from: usize,
    /// The session whose keys have decrypted it.
    pub encrypted: Option<Rc<Session>>,
    /// When it came.
    pub arrived_ns: u64,
}

impl Frame {
    /// Its messages.
    pub fn messages(&self) -> &[u8] {
        self.bytes.get(self.from..).unwrap_or_default()
    }
}

/// One answer.
pub(super) struct One {
    header: Header,
    /// Whose key signs it.
    pub signer: Option<Rc<Session>>,
    out: ReplyBuf,
}

impl One {
    /// The answer to a request, with the credits that are granted.
    pub fn new(conn: &Connection, request: &Header, status: NtStatus, out: ReplyBuf) -> Self {
        let max = match conn.sessions.borrow().is_empty() {
            true => SMB_UNSIGNED_CREDITS_MAX,
            false => SMB_CREDITS_MAX,
        };
        let credits = conn.credits.borrow_mut().grant(request.credits, max);
        let header = Header {
            status: status.0,
            credits,
            flags: flags::RESPONSE | request.flags & flags::RELATED,
            next: 0,
            signature: [0; 16],
            ..*request
        };
        Self { header, signer: None, out }
    }
}

impl Connection {
    /// Makes a frame of answers, signed and encrypted; tells where it begins.
    pub fn seal(&self, ones: Vec<One>, by: Option<&Rc<Session>>) -> (ReplyBuf, usize) {
        let last = ones.len().saturating_sub(1);
        let mut whole = ReplyBuf::default();
        for (number, One { mut header, signer, mut out }) in ones.into_iter().enumerate() {
            if number != last {
                pad(out.vec(), START, 8);
                header.next = (out.len() - START) as u32;
            }
            let signer = signer.filter(|_| by.is_none());
            if signer.is_some() {
                header.flags |= flags::SIGNED;
            }
            let mut head = Vec::with_capacity(HEADER);
            header.put(&mut head);
            patch(out.vec(), START, &head);
            if let Some(session) = signer
                && let Some(message) = out.vec().get_mut(START..)
            {
                // It fails for no message that has a header.
                let _ = session.keys.signer.seal(message);
            }
            if number == 0 {
                whole = out;
            } else {
                whole.vec().extend_from_slice(out.as_slice().get(START..).unwrap_or_default());
                self.core.buffers.give_reply(out);
            }
        }
        let at = self.encrypt(&mut whole, by);
        let length = prefix(whole.len().saturating_sub(at + PREFIX)).unwrap_or_default();
        patch(whole.vec(), at, &length);
        (whole, at)
    }

    fn encrypt(&self, whole: &mut ReplyBuf, by: Option<&Rc<Session>>) -> usize {
        let sealer = by.and_then(|session| Some((session, session.keys.sealers.as_ref()?)));
        let Some((session, (sealer, _))) = sealer else { return TRANSFORM };
        let nonce = session.nonce.replace(session.nonce.get() + 1);
        if let Some(frame) = whole.vec().get_mut(PREFIX..)
            && sealer.seal(frame, session.id, nonce).is_err()
        {
            // Nothing may leave in the clear.
            whole.truncate(PREFIX);
        }
        0
    }

    /// Posts a frame that is sealed.
    pub fn post_sealed(
        &self,
        (reply, from): (ReplyBuf, usize),
        spans: Vec<(Span, u16)>,
        held: usize,
    ) {
        self.post(Answer { reply, from, spans, held });
    }

    /// Seals and posts answers.
    pub fn send(
        &self,
        ones: Vec<One>,
        by: Option<&Rc<Session>>,
        spans: Vec<(Span, u16)>,
        held: usize,
    ) {
        let sealed = self.seal(ones, by);
        self.post_sealed(sealed, spans, held);
    }

    /// Tells that an answer will take longer.
    fn pend(&self, request: &Header, session: &Rc<Session>, by: Option<&Rc<Session>>) {
        let mut out = reply(&self.core);
        put_error(out.vec());
        let mut one = One::new(self, request, NtStatus::PENDING, out);
        one.header.flags |= flags::ASYNC;
        one.header.id = request.message_id;
        one.signer = session.signs.then(|| Rc::clone(session));
        self.send(vec![one], by, Vec::new(), 0);
    }
}

/// What a request has left for those that are related to it (MS-SMB2 §3.3.5.2.7.2).
struct Before {
    session: u64,
    tree: u32,
    file: Option<FileId>,
    /// How requests fail that are related to one that has made no open, or had no session.
    failed: Option<NtStatus>,
    /// Nothing came before it.
    is_first: bool,
}

impl Before {
    /// Before the first request.
    const fn nothing() -> Self {
        Self { session: 0, tree: 0, file: None, failed: None, is_first: true }
    }

    /// A request that is related takes session and tree of the one before; another begins anew.
    fn relate(&mut self, header: &mut Header) -> bool {
        let related = header.has(flags::RELATED);
        if related {
            header.session_id = self.session;
            header.id = u64::from(self.tree) << 32 | header.id & 0xffff_ffff;
            if self.is_first {
                self.failed = Some(NtStatus::INVALID_PARAMETER);
            }
        } else {
            (self.failed, self.file) = (None, None);
        }
        (self.session, self.tree, self.is_first) = (header.session_id, header.tree_id(), false);
        related
    }
}

/// Carries out the requests of a frame, and posts the answers.
pub(super) async fn run(conn: Rc<Connection>, frame: Frame, held: usize) {
    let (mut ones, mut spans, mut before) = (Vec::new(), Vec::new(), Before::nothing());
    let single = Messages::new(frame.messages()).count() == 1;
    for message in Messages::new(frame.messages()) {
        let Ok((header, message)) = message else { break };
        let one = carry_out(&conn, &frame, (header, message), (&mut before, single)).await;
        ones.push(one.0);
        spans.push(one.1);
    }
    let by = frame.encrypted.clone();
    conn.core.engine.large.give(frame.bytes);
    conn.send(ones, by.as_ref(), spans, held);
}

async fn carry_out(
    conn: &Rc<Connection>,
    frame: &Frame,
    (mut header, message): (Header, &[u8]),
    (before, single): (&mut Before, bool),
) -> (One, (Span, u16)) {
    let op = (header.command.0 as u8).min(Command::OPLOCK_BREAK.0 as u8 + 1);
    let mut span = conn.core.begin_at(conn.peer.1, op, frame.arrived_ns);
    let related = before.relate(&mut header);
    let (mut is_pending, known) = (false, conn.session(header.session_id).ok());
    let done = match (before.failed.filter(|_| related), &known) {
        (Some(failed), _) => Err(failed),
        (None, None) if header.command == Command::ECHO && header.session_id == 0 => {
            Ok(dispatch::echo(&conn.core))
        }
        (None, None) => {
            before.failed = Some(NtStatus::INVALID_PARAMETER);
            Err(NtStatus::USER_SESSION_DELETED)
        }
        (None, Some(session)) => {
            span.by(&session.who);
            let by = frame.encrypted.as_ref();
            match conn.is_genuine(session, &header, message, by) {
                Err(refused) => Err(refused),
                Ok(()) => {
                    let cancel = Rc::new(Cancel::default());
                    let request = Request {
                        conn,
                        session,
                        message,
                        header,
                        before: before.file.filter(|_| related),
                        cancel: Rc::clone(&cancel),
                    };
                    let command = pin!(dispatch::run(&request));
                    let mut running = pin!(conn.core.engine.attempt_async(command));
                    let done = tokio::select! {
                        done = &mut running => done,
                        () = tokio::time::sleep(SMB_PENDING_AFTER), if single => {
                            conn.cancels.borrow_mut().insert(header.message_id, cancel);
                            conn.pend(&header, session, by);
                            is_pending = true;
                            let done = running.await;
                            conn.cancels.borrow_mut().remove(&header.message_id);
                            done
                        }
                    };
                    done.unwrap_or_else(|fault| Err(status::of(fault)))
                }
            }
        }
    };
    let (status, out, tree) = outcome(conn, done, &mut span, before);
    // What is related to a file that was not opened fails as that did; a CLOSE after something else
    // that has failed is done.
    if header.command == Command::CREATE && known.is_some() {
        before.failed = status.is_error().then_some(status);
    }
    if let Some(tree) = tree {
        before.tree = tree;
        header.id = u64::from(tree) << 32 | header.id & 0xffff_ffff;
    }
    let mut one = answer(conn, &header, status, out, is_pending);
    // Who has logged off is still told so under his key.
    one.signer = known.filter(|session| session.signs || header.has(flags::SIGNED));
    (one, (span, status::recorded(status)))
}

/// What a request has come to: its status, what is answered, and the tree that it has made.
fn outcome(
    conn: &Connection,
    done: Outcome,
    span: &mut Span,
    before: &mut Before,
) -> (NtStatus, ReplyBuf, Option<u32>) {
    match done {
        Ok(done) => {
            done.about.tell(span);
            before.file = done.file.or(before.file);
            (done.status, done.out, done.tree)
        }
        Err(status) => {
            let mut out = reply(&conn.core);
            put_error(out.vec());
            (status, out, None)
        }
    }
}

fn answer(
    conn: &Connection,
    header: &Header,
    status: NtStatus,
    out: ReplyBuf,
    is_pending: bool,
) -> One {
    if !is_pending {
        return One::new(conn, header, status, out);
    }
    // Credits were granted when it was told that it takes longer.
    let header = Header {
        status: status.0,
        credits: 0,
        flags: flags::RESPONSE | flags::ASYNC,
        next: 0,
        id: header.message_id,
        signature: [0; 16],
        ..*header
    };
    One { header, signer: None, out }
}
