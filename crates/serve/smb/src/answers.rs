//! From answers to a frame: headers, signatures, encryption.

use std::rc::Rc;

use base::limits::{SMB_CREDITS_MAX, SMB_UNSIGNED_CREDITS_MAX};
use vfs::fs::Extent;
use wire::smb::codec::{pad, patch};
use wire::smb::crypto::Signer;
use wire::smb::frame::{PREFIX, prefix};
use wire::smb::header::{Command, Header, TRANSFORM, flags, put_error};
use wire::smb::status::NtStatus;

use super::connection::{Answer, Connection};
use super::few::Few;
use super::reply::{START, buffer};
use super::state::session::Session;
use engine::exec::Span;
use engine::transport::buffers::ReplyBuf;

/// One answer.
pub(super) struct One {
    header: Header,
    /// The session with the key that signs it.
    pub signer: Option<Rc<Session>>,
    /// The key of a session that this connection does not have.
    pub key: Option<Signer>,
    /// The signature of the request, for a refusal that no key can sign: clients that require
    /// signatures take it only with one, and do not verify this (MS-SMB2 §3.2.5.1.3).
    pub echo: Option<[u8; 16]>,
    out: ReplyBuf,
    /// Data behind it, of the only answer of a frame that is neither signed nor encrypted.
    pub extent: Option<Extent>,
}

impl One {
    /// The answer to a request, with the credits that are granted.
    pub fn new(conn: &Connection, request: &Header, status: NtStatus, out: ReplyBuf) -> Self {
        let max = match conn.is_unsigned() {
            true => SMB_UNSIGNED_CREDITS_MAX,
            false => SMB_CREDITS_MAX,
        };
        let credits = conn.credits.borrow_mut().grant(request.credits, max);
        let flags = flags::RESPONSE | request.flags & flags::RELATED;
        let status = status.0;
        Self::of(Header { status, credits, flags, next: 0, signature: [0; 16], ..*request }, out)
    }

    /// The last answer to a request, perhaps after one of STATUS_PENDING, which has granted its
    /// credits.
    pub fn last(
        conn: &Connection,
        request: &Header,
        (status, out): (NtStatus, ReplyBuf),
        was_pending: bool,
    ) -> Self {
        if !was_pending {
            return Self::new(conn, request, status, out);
        }
        let (flags, id, status) = (flags::RESPONSE | flags::ASYNC, request.message_id, status.0);
        let signature = [0; 16];
        Self::of(Header { status, credits: 0, flags, next: 0, id, signature, ..*request }, out)
    }

    const fn of(header: Header, out: ReplyBuf) -> Self {
        Self { header, signer: None, key: None, echo: None, out, extent: None }
    }
}

/// A frame of answers.
pub(super) struct Sealed {
    /// Its bytes.
    reply: ReplyBuf,
    /// Where it begins.
    from: usize,
    /// Data behind them.
    extent: Option<Extent>,
}

impl Sealed {
    /// The messages, if they are not encrypted.
    pub fn messages(&self) -> &[u8] {
        self.reply.as_slice().get(START..).unwrap_or_default()
    }
}

impl Connection {
    /// Makes a frame of answers, signed and encrypted.
    pub fn seal(&self, ones: Few<One>, by: Option<&Rc<Session>>) -> Sealed {
        let last = ones.len().saturating_sub(1);
        let (mut whole, mut data) = (ReplyBuf::default(), None);
        for (number, one) in ones.into_iter().enumerate() {
            let One { mut header, signer, key, echo, mut out, extent } = one;
            data = extent.or(data);
            if number != last {
                pad(out.vec(), START, 8);
                header.next = (out.len() - START) as u32;
            }
            let signer = signer.filter(|_| by.is_none());
            let key = key.filter(|_| by.is_none() && signer.is_none());
            if signer.is_some() || key.is_some() {
                header.flags |= flags::SIGNED;
            } else if let Some(echo) = echo.filter(|_| by.is_none()) {
                header.flags |= flags::SIGNED;
                header.signature = echo;
            }
            patch(out.vec(), START, &header.encode());
            if let Some(key) = key
                && let Some(message) = out.vec().get_mut(START..)
            {
                let _ = key.seal(message);
            }
            if let Some(session) = signer
                && let Some(message) = out.vec().get_mut(START..)
            {
                // It fails for no message that has a header.
                let _ = self.with_signer(&session, |signer| signer.seal(message));
            }
            if number == 0 {
                whole = out;
            } else {
                whole.vec().extend_from_slice(out.as_slice().get(START..).unwrap_or_default());
                self.core.buffers.give_reply(out);
            }
        }
        let from = self.encrypt(&mut whole, by);
        let behind = data.as_ref().map_or(0, |extent: &Extent| extent.count);
        let length = whole.len().saturating_sub(from + PREFIX) + behind;
        patch(whole.vec(), from, &prefix(length).unwrap_or_default());
        Sealed { reply: whole, from, extent: data }
    }

    fn encrypt(&self, whole: &mut ReplyBuf, by: Option<&Rc<Session>>) -> usize {
        let sealer = by.and_then(|session| Some((session, session.keys.sealers.as_ref()?)));
        let Some((session, (sealer, _))) = sealer else { return TRANSFORM };
        let nonce = session.nonce.replace(session.nonce.get() + 1);
        if let Some(frame) = whole.vec().get_mut(PREFIX..)
            && sealer.seal(frame, session.id, nonce).is_err()
        {
            // Nothing may leave unencrypted.
            whole.truncate(PREFIX);
        }
        0
    }

    /// Posts a frame that is sealed.
    pub fn post_sealed(&self, sealed: Sealed, spans: Few<(Span, u16)>, held: usize) {
        let Sealed { reply, from, extent } = sealed;
        self.post(Answer { reply, from, extent, spans, held });
    }

    /// Seals and posts answers.
    pub fn send(
        &self,
        ones: Few<One>,
        by: Option<&Rc<Session>>,
        spans: Few<(Span, u16)>,
        held: usize,
    ) {
        let sealed = self.seal(ones, by);
        self.post_sealed(sealed, spans, held);
    }

    /// Sends STATUS_PENDING.
    pub fn pend(&self, request: &Header, session: &Rc<Session>, by: Option<&Rc<Session>>) {
        let mut out = buffer(&self.core);
        put_error(out.vec());
        let mut one = One::new(self, request, NtStatus::PENDING, out);
        one.header.flags |= flags::ASYNC;
        one.header.id = request.message_id;
        // Clients do not look at its signature (§3.2.5.1.3). The last answer has the same number.
        let twice = self.with_signer(session, Signer::signs_numbers_twice);
        let signs = session.signs && twice;
        one.signer = signs.then(|| Rc::clone(session));
        self.send(Few::one(one), by, Few::default(), 0);
    }

    /// Sends what no request has asked for (MS-SMB2 §3.3.4.6, §3.3.4.7): neither signed nor with
    /// credits.
    pub fn notify(&self, out: ReplyBuf, by: Option<&Rc<Session>>) {
        let header = Header {
            credit_charge: 0,
            status: 0,
            command: Command::OPLOCK_BREAK,
            credits: 0,
            flags: flags::RESPONSE,
            next: 0,
            message_id: u64::MAX,
            id: 0,
            session_id: 0,
            signature: [0; 16],
        };
        self.send(Few::one(One::of(header, out)), by, Few::default(), 0);
    }
}
