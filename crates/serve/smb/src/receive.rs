//! From a frame to requests: encryption, credits, signatures; and what is answered in order, before
//! anything else is looked at: NEGOTIATE and SESSION_SETUP.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use base::clock::stamp;
use base::limits::SMB_COMPOUND_MAX;
use probe::phases::Phase;
use wire::smb::codec::Reader;
use wire::smb::crypto::Signer;
use wire::smb::header::{Command, Header, MAGIC_1, MAGIC_TRANSFORM, TRANSFORM, Transform, flags};
use wire::smb::negotiate::smb1_request;
use wire::smb::session::{self, BINDING};
use wire::smb::status::NtStatus;

use super::answers::One;
use super::auth::Setting;
use super::broken::Broken;
use super::connection::Connection;
use super::few::Few;
use super::frame::{Frame, Located, Requests};
use super::reply;
use super::state::session::{Session, find as session_of_core};
use super::state::sessions::End;
use files::SpanFacts as _;

/// What is to be done with a frame.
pub(super) enum FrameOutcome {
    /// Nothing more.
    Done,
    /// Its requests are to be carried out.
    Frame(Frame),
    /// The connection is continued on another core, with this NEGOTIATE.
    HandOver(usize, Vec<u8>),
}

impl Connection {
    /// Takes a frame.
    ///
    /// # Errors
    /// The connection is to be ended.
    pub fn take(
        &self,
        bytes: Arc<Vec<u8>>,
        begin: usize,
        arrived_ns: u64,
    ) -> Result<FrameOutcome, Broken> {
        let mut frame = self.open(bytes, begin, arrived_ns)?;
        if frame.encrypted.is_none() && frame.messages().starts_with(&MAGIC_1) {
            return self.take_smb1(frame.messages()).map(|()| FrameOutcome::Done);
        }
        self.find_requests(&mut frame);
        for (number, one) in frame.requests.iter().enumerate() {
            let (header, message) = (&one.header, frame.message(one));
            if number >= SMB_COMPOUND_MAX || header.has(flags::RESPONSE) {
                return Err(Broken::Order);
            }
            if header.command == Command::CANCEL {
                self.cancel(&frame, one);
                return Ok(FrameOutcome::Done);
            }
            if !self.credits.borrow_mut().use_up(header.message_id, header.credit_charge) {
                return Err(Broken::Credits);
            }
            let alone = number == 0 && header.next == 0;
            match header.command {
                Command::NEGOTIATE if alone => {
                    if self.negotiated.borrow().is_none()
                        && let Some(core) = self.other_core(message)
                    {
                        return Ok(FrameOutcome::HandOver(core, frame.messages().to_vec()));
                    }
                    return self.take_negotiate(header, message).map(|()| FrameOutcome::Done);
                }
                Command::SESSION_SETUP if alone => {
                    return self.take_setup(&frame, one).map(|()| FrameOutcome::Done);
                }
                Command::NEGOTIATE | Command::SESSION_SETUP => return Err(Broken::Order),
                _ => {}
            }
            self.agreed().map_err(|_| Broken::Order)?;
        }
        frame.requests.are_whole()?;
        Ok(FrameOutcome::Frame(frame))
    }

    /// A frame, decrypted if it was encrypted. Its requests are not looked for yet.
    fn open(
        &self,
        mut bytes: Arc<Vec<u8>>,
        begin: usize,
        arrived_ns: u64,
    ) -> Result<Frame, Broken> {
        let (mut from, mut encrypted) = (begin, None);
        let messages = Arc::get_mut(&mut bytes).and_then(|bytes| bytes.get_mut(begin..));
        let messages = messages.unwrap_or_default();
        if messages.starts_with(&MAGIC_TRANSFORM) {
            let transform: Transform = Reader::new(messages, "transform header").get()?;
            let session = self.session(transform.session_id).map_err(|_| Broken::Order)?;
            // No client encrypts before a user has signed in: nothing is decrypted.
            if self.is_unsigned() {
                return Err(Broken::Order);
            }
            let (_, opener) = session.keys.sealers.as_ref().ok_or(Broken::Order)?;
            opener.open(messages)?;
            (from, encrypted) = (begin + TRANSFORM, Some(session));
        }
        let requests = Requests::default();
        Ok(Frame { bytes, from, requests, encrypted, arrived_ns })
    }

    /// Finds the requests of a frame, and which of them are signed by the session that they name.
    /// The signature is taken out of the message for a moment: it is found out before anything else
    /// refers to the frame.
    fn find_requests(&self, frame: &mut Frame) {
        frame.requests = Requests::find(frame.messages());
        let Frame { bytes, from, requests, encrypted, .. } = frame;
        if encrypted.is_some() {
            return;
        }
        let bytes = Arc::get_mut(bytes).map(Vec::as_mut_slice).unwrap_or_default();
        let session_id = Cell::new(0);
        requests.verify(bytes.get_mut(*from..).unwrap_or_default(), |header, message| {
            if !header.has(flags::RELATED) {
                session_id.set(header.session_id);
            }
            header.has(flags::SIGNED) && self.verifies(session_id.get(), message)
        });
    }

    /// Whether a message is signed by a session, also by one that this connection does not have: it
    /// may be to be bound to that.
    fn verifies(&self, id: u64, message: &mut [u8]) -> bool {
        match self.session(id) {
            Ok(session) => self.with_signer(&session, |signer| signer.verify(message).is_ok()),
            Err(_) => {
                let signer = self.server.sessions.signer(id);
                signer.is_some_and(|signer| signer.verify(message).is_ok())
            }
        }
    }

    /// What signs the refusal of a request that is signed by a session which this connection does
    /// not have. GMAC does not: its numbers are those of another connection.
    pub fn other_signer(&self, id: u64, is_of_other: bool) -> Option<Signer> {
        let signer = is_of_other.then(|| self.server.sessions.signer(id)).flatten();
        signer.filter(Signer::signs_numbers_twice)
    }

    /// Whether a request may be looked at: signed as it must be, or encrypted.
    pub fn is_genuine(
        &self,
        session: &Session,
        header: &Header,
        is_signed: bool,
        encrypted: Option<&Rc<Session>>,
    ) -> Result<(), NtStatus> {
        if session.listed.has_ended() {
            return Err(NtStatus::USER_SESSION_DELETED);
        }
        if let Some(by) = encrypted {
            return if by.id == session.id { Ok(()) } else { Err(NtStatus::ACCESS_DENIED) };
        }
        if session.encrypts {
            return Err(NtStatus::ACCESS_DENIED);
        }
        if header.has(flags::SIGNED) {
            if is_signed {
                return Ok(());
            }
            // An attacker would try again (§3.3.5.2.4 leaves the end to the server). The signature
            // of an anonymous session protects no user.
            if !session.is_null {
                self.end(Broken::Signature);
            }
            return Err(NtStatus::ACCESS_DENIED);
        }
        if session.signs { Err(NtStatus::ACCESS_DENIED) } else { Ok(()) }
    }

    /// CANCEL is not answered, so one that is not genuine is ignored.
    fn cancel(&self, frame: &Frame, Located { header, is_signed, .. }: &Located) {
        let genuine = self
            .session(header.session_id)
            .and_then(|one| self.is_genuine(&one, header, *is_signed, frame.encrypted.as_ref()));
        if genuine.is_err() {
            return;
        }
        let id = if header.has(flags::ASYNC) { header.id } else { header.message_id };
        // One that is done already cannot be cancelled.
        if let Some(cancel) = self.cancels.borrow().get(&id) {
            cancel.set();
        }
    }

    fn take_smb1(&self, message: &[u8]) -> Result<(), Broken> {
        let is_first = self.credits.borrow_mut().use_up(0, 1);
        let dialect = smb1_request(message).filter(|_| is_first).ok_or(Broken::Order)?;
        let header = Header {
            credit_charge: 0,
            status: 0,
            command: Command::NEGOTIATE,
            credits: 1,
            flags: 0,
            next: 0,
            message_id: 0,
            id: 0,
            session_id: 0,
            signature: [0; 16],
        };
        let mut out = reply::buffer(&self.core);
        self.again(dialect).put(out.vec(), reply::START);
        let one = One::new(self, &header, NtStatus::SUCCESS, out);
        self.send(Few::one(one), None, Few::default(), 0);
        Ok(())
    }

    fn take_negotiate(&self, header: &Header, message: &[u8]) -> Result<(), Broken> {
        if self.negotiated.borrow().is_some() {
            return Err(Broken::Order);
        }
        let mut span = self.core.begin(self.peer.1, Command::NEGOTIATE.0 as u8);
        let mut preauth = self.preauth.get();
        preauth.update(message);
        let mut out = reply::buffer(&self.core);
        let status = match self.negotiate(message) {
            Ok(response) => {
                response.put(out.vec(), reply::START);
                NtStatus::SUCCESS
            }
            Err(status) => {
                wire::smb::header::put_error(out.vec());
                status
            }
        };
        let one = One::new(self, header, status, out);
        let answer = self.seal(Few::one(one), None);
        preauth.update(answer.messages());
        self.preauth.set(preauth);
        span.clock.spent(Phase::Inline, stamp());
        self.post_sealed(answer, Few::one((span, super::status::recorded(status))), 0);
        Ok(())
    }

    fn take_setup(&self, frame: &Frame, one: &Located) -> Result<(), Broken> {
        let (header, message, is_signed) = (&one.header, frame.message(one), one.is_signed);
        let mut span =
            self.core.begin_at(self.peer.1, Command::SESSION_SETUP.0 as u8, frame.arrived_ns);
        span.clock.resume(self.now_ns.get());
        self.agreed().map_err(|_| Broken::Order)?;
        let known = self.session(header.session_id).ok();
        let binds = session::Request::decode(message).is_ok_and(|one| one.flags & BINDING != 0);
        // Reauthentication is signed with the present keys. A wrong signature is that of a client
        // which takes the connection for another one of its session.
        let is_forged = known.is_some() && header.has(flags::SIGNED) && !is_signed;
        let is_covered = header.has(flags::SIGNED) || frame.encrypted.is_some();
        let bound = match binds {
            true if is_forged => Err(NtStatus::ACCESS_DENIED),
            true => self.bound_session(header, is_signed).map(Some),
            false => Ok(None),
        };
        let done = match (bound, &known) {
            (Err(status), _) => Err(status),
            (Ok(None), Some(_)) if is_forged && frame.encrypted.is_none() => {
                Err(NtStatus::ACCESS_DENIED)
            }
            (Ok(None), Some(session)) if is_covered => self
                .is_genuine(session, header, is_signed, frame.encrypted.as_ref())
                .and_then(|()| self.session_setup(header, message, None)),
            (Ok(None), Some(session)) if session.signs => Err(NtStatus::ACCESS_DENIED),
            (Ok(bound), _) => self.session_setup(header, message, bound),
        };
        if let (Err(NtStatus::LOGON_FAILURE), Some(session), false) = (&done, &known, binds) {
            // A client that fails to sign in again has no session any more (§3.3.5.5.3).
            self.server.sessions.end(session.id, None, End::Closed);
        }
        let mut out = reply::buffer(&self.core);
        let mut answered = *header;
        let (status, signer) = match &done {
            Ok(Setting { blob, flags, session, id }) => {
                session::Response { flags: *flags, blob }.put(out.vec());
                answered.session_id = *id;
                let status = match session {
                    Some(_) => NtStatus::SUCCESS,
                    None => NtStatus::MORE_PROCESSING_REQUIRED,
                };
                (status, session.clone().filter(|session| !session.is_null))
            }
            Err(status) => {
                wire::smb::header::put_error(out.vec());
                (*status, None)
            }
        };
        if let Some(session) = &signer {
            span.by(&session.who);
        }
        // The answers to a connection that is to be bound are signed, too.
        let to_bind = self.to_bind(header, binds && is_signed && known.is_none());
        let signer = signer.or(to_bind);
        let mut one = One::new(self, &answered, status, out);
        one.key = self.other_signer(header.session_id, known.is_none() && is_signed);
        one.signer = signer;
        one.echo = (done.is_err() && header.has(flags::SIGNED)).then_some(header.signature);
        let answer = self.seal(Few::one(one), frame.encrypted.as_ref());
        if status == NtStatus::MORE_PROCESSING_REQUIRED
            && let Some(setup) = self.setups.borrow_mut().get_mut(&answered.session_id)
        {
            setup.preauth.update(answer.messages());
        }
        span.clock.spent(Phase::Inline, stamp());
        self.post_sealed(answer, Few::one((span, super::status::recorded(status))), 0);
        Ok(())
    }

    /// The session to which this connection requests to be bound, if it does, and that signs the
    /// answers. Their numbers are those of another connection: GMAC signs them only if an
    /// administrator has permitted that.
    fn to_bind(&self, header: &Header, binds: bool) -> Option<Rc<Session>> {
        let session = session_of_core(header.session_id).filter(|_| binds)?;
        let may_sign = self.settings.multichannel || session.keys.signer.signs_numbers_twice();
        may_sign.then_some(session)
    }
}
