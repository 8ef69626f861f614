//! A connection: what was negotiated, its sessions, and requests that can be cancelled.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use base::limits::{SMB_WAITING_BYTES, SMB_WAITING_MAX};
use tokio::sync::Notify;
use vfs::fs::Extent;
use vfs::locks::Owner;
use wire::smb::crypto::{Preauth, Signer};
use wire::smb::negotiate::{Cipher, Dialect, Signing};
use wire::smb::status::NtStatus;

use super::broken::Broken;
use super::few::Few;
use super::server::Server;
use super::settings::Settings;
use super::state::clients::{ChannelFacts, ClientConnection};
use super::state::credits::Credits;
use super::state::leases::{Mail, Mailbox};
use super::state::mail_order::MailPermit;
use super::state::opens::{Open, OpenOf};
use super::state::session::Session;
use super::state::setup::Setup;
use engine::exec::Span;
use engine::transport::buffers::ReplyBuf;
use files::Core;

/// What client and server have agreed on.
#[derive(Debug, Clone)]
pub(crate) struct Negotiated {
    /// The version.
    pub dialect: Dialect,
    /// What signs.
    pub signing: Signing,
    /// What encrypts.
    pub cipher: Option<Cipher>,
    /// What the client has sent, to be repeated under a signature.
    pub client: ([u8; 16], u32, u16, Vec<u16>),
    /// Our capabilities.
    pub capabilities: u32,
}

impl Negotiated {
    /// What connections of one session have in common.
    pub const fn facts(&self) -> ChannelFacts {
        let Self { dialect, signing, cipher, client, .. } = self;
        ChannelFacts { dialect: *dialect, signing: *signing, cipher: *cipher, client: client.0 }
    }
}

/// What is to be sent, from where on in the buffer, and what is measured when it has left.
pub(crate) struct Answer {
    /// The frame, with room before it.
    pub reply: ReplyBuf,
    /// Where it begins.
    pub from: usize,
    /// Data that is sent behind it, from the file.
    pub extent: Option<Extent>,
    /// What to write down then, with the status.
    pub spans: Few<(Span, u16)>,
    /// Bytes that are free then.
    pub held: usize,
}

impl Answer {
    /// What is sent of the buffer.
    pub fn bytes(&self) -> &[u8] {
        self.reply.as_slice().get(self.from..).unwrap_or_default()
    }
}

/// Ends the waiting of one request.
#[derive(Default)]
pub(crate) struct Cancel {
    is_set: Cell<bool>,
    notify: Notify,
}

impl Cancel {
    /// Ends it.
    pub fn set(&self) {
        self.is_set.set(true);
        self.notify.notify_waiters();
    }

    /// Whether it is to end.
    pub const fn is_set(&self) -> bool {
        self.is_set.get()
    }

    /// Waits for that.
    pub async fn cancelled(&self) {
        while !self.is_set.get() {
            self.notify.notified().await;
        }
    }
}

/// A connection.
pub(crate) struct Connection {
    /// Its core.
    pub core: Rc<Core>,
    /// The service.
    pub server: Arc<Server>,
    /// How that was set when it began.
    pub settings: Arc<Settings>,
    /// The address of the client, and its number in the statistics.
    pub peer: (SocketAddr, u32),
    /// The local address of the connection.
    pub local: SocketAddr,
    /// What was agreed on.
    pub negotiated: RefCell<Option<Rc<Negotiated>>>,
    /// The integrity of the negotiation.
    pub preauth: Cell<Preauth>,
    /// Authentications in progress, by session.
    pub setups: RefCell<HashMap<u64, Setup>>,
    /// Sessions.
    pub sessions: RefCell<HashMap<u64, Rc<Session>>>,
    /// Keys of sessions that it was bound to: what signs here.
    pub channels: RefCell<HashMap<u64, Signer>>,
    /// It is one of a client that may bind several to a session.
    pub client: RefCell<Option<ClientConnection>>,
    /// Sessions that are none any more, until what they have open is closed.
    pub leaving: RefCell<Vec<Rc<Session>>>,
    /// Credits.
    pub credits: RefCell<Credits>,
    /// Requests that can be cancelled, by number.
    pub cancels: RefCell<HashMap<u64, Rc<Cancel>>>,
    /// Answers that wait to be sent.
    pub outbox: RefCell<Vec<Answer>>,
    /// Bytes of them.
    pub outgoing: Cell<usize>,
    /// Requests are being taken: answers need no notification.
    pub in_turn: Cell<bool>,
    /// When the last request of this turn was tried.
    pub now_ns: Cell<u64>,
    /// There is something in the outbox, or a session was ended from outside.
    pub has_mail: Arc<Notify>,
    /// Breaks of leases that are held here.
    pub mailbox: Arc<Mailbox>,
    /// By its sessions: it is one of their clients, for breaks of leases.
    pub mail_places: RefCell<HashMap<u64, MailPermit>>,
    /// Leases that were granted by requests that are not answered yet.
    pub granting: RefCell<Vec<Owner>>,
    /// Breaks of those, until that is so.
    pub held_mail: RefCell<Vec<Mail>>,
    /// Bytes that requests hold.
    pub held: Cell<usize>,
    /// Requests that wait for another client, and the bytes that these hold.
    pub waiting: Cell<(usize, usize)>,
    /// Listings that have entries in memory.
    pub listings: Rc<Cell<usize>>,
    /// Why the connection is to be ended, once what is answered has left.
    pub broken: Cell<Option<Broken>>,
}

impl Connection {
    /// What was agreed on.
    ///
    /// # Errors
    /// STATUS_INVALID_PARAMETER if nothing was.
    pub fn agreed(&self) -> Result<Rc<Negotiated>, NtStatus> {
        self.negotiated.borrow().clone().ok_or(NtStatus::INVALID_PARAMETER)
    }

    /// A session of this connection.
    ///
    /// # Errors
    /// STATUS_USER_SESSION_DELETED.
    pub fn session(&self, id: u64) -> Result<Rc<Session>, NtStatus> {
        let session = self.sessions.borrow().get(&id).cloned();
        session.ok_or(NtStatus::USER_SESSION_DELETED)
    }

    /// Whether no user has signed in.
    pub fn is_unsigned(&self) -> bool {
        self.sessions.borrow().values().all(|session| session.is_null)
    }

    /// What signs messages of a session on this connection.
    pub fn with_signer<R>(&self, session: &Session, with: impl FnOnce(&Signer) -> R) -> R {
        let channels = self.channels.borrow();
        with(channels.get(&session.id).unwrap_or(&session.keys.signer))
    }

    /// The connection is to be ended.
    pub fn end(&self, why: Broken) {
        self.broken.set(self.broken.get().or(Some(why)));
        self.has_mail.notify_one();
    }

    /// Takes out sessions that an administrator has ended, and those of removed users.
    pub fn take_ended(&self) -> Vec<Rc<Session>> {
        let files = &self.core.files;
        let ended =
            |session: &Session| session.listed.has_ended() || !files.is_welcome(&session.who);
        let mut sessions = self.sessions.borrow_mut();
        let gone = sessions.extract_if(|_, session| ended(session));
        let gone: Vec<_> = gone.map(|(_, session)| session).collect();
        self.leaving.borrow_mut().extend(gone.iter().cloned());
        gone
    }

    /// Takes out opens of shares that their sessions may not use any more, by session.
    pub fn take_lost(&self) -> Vec<(Rc<Session>, Vec<Rc<Open>>)> {
        let sessions = self.sessions.borrow();
        let lost = sessions.values().map(|session| {
            let stands = |open: &Open| match &open.of {
                OpenOf::File(file) => {
                    let reached = &file.node.reached;
                    self.core.files.still_reach(&session.who, reached, false).is_ok()
                }
                OpenOf::Pipe(_) => true,
            };
            (Rc::clone(session), session.take_opens(|open| !stands(open)))
        });
        lost.filter(|(_, opens)| !opens.is_empty()).collect()
    }

    /// Waits until there is something to send, or a session was ended.
    pub async fn has_something(&self) {
        tokio::select! {
            () = self.has_mail.notified() => {}
            () = self.mailbox.rung() => {}
        }
    }

    /// Puts an answer where it is sent from.
    pub fn post(&self, answer: Answer) {
        let data = answer.extent.as_ref().map_or(0, |extent| extent.count);
        self.outgoing.set(self.outgoing.get() + answer.bytes().len() + data);
        self.outbox.borrow_mut().push(answer);
        if !self.in_turn.get() {
            self.has_mail.notify_one();
        }
    }

    /// A request holds `bytes` bytes.
    pub fn hold(&self, bytes: usize) {
        self.held.set(self.held.get() + bytes);
        self.core.budget.take_bytes(bytes);
    }

    /// They are free again.
    pub fn release(&self, bytes: usize) {
        self.held.set(self.held.get().saturating_sub(bytes));
        self.core.budget.give_bytes(bytes);
    }
}

/// A request that waits for another client, until it is dropped: meanwhile others are taken as if
/// it were not there.
pub(crate) struct WaitPermit<'a> {
    conn: &'a Connection,
    bytes: usize,
}

impl Connection {
    /// That a request, which holds `bytes` bytes, waits for another client; `None` if too many do.
    pub fn wait_permit(&self, bytes: usize) -> Option<WaitPermit<'_>> {
        let (count, held) = self.waiting.get();
        if count >= SMB_WAITING_MAX || held.saturating_add(bytes) > SMB_WAITING_BYTES {
            return None;
        }
        self.waiting.set((count + 1, held + bytes));
        Some(WaitPermit { conn: self, bytes })
    }
}

impl Drop for WaitPermit<'_> {
    fn drop(&mut self) {
        let (count, held) = self.conn.waiting.get();
        self.conn.waiting.set((count.saturating_sub(1), held.saturating_sub(self.bytes)));
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.core.budget.give_bytes(self.held.get());
    }
}
