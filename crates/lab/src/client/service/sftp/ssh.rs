//! An SSH connection of a client (RFC 4252 to 4254) with one channel, on which the server's
//! subsystem `sftp` speaks: blocking, over the transport of [`wire::ssh`].

use super::super::at::{ServiceAt, Terms};
use super::super::socket::Stream;
use crate::client::ClientError;
use base::limits::{SSH_DATA_MAX, SSH_RECEIVE_BUFFER, SSH_SEND_BATCH, SSH_WINDOW};
use base::random::SystemRandom;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use wire::ssh::flow::Flow;
use wire::ssh::kex::Policy;
use wire::ssh::key;
use wire::ssh::message::{AuthRequest, InfoRequest, Message, Method};
use wire::ssh::message::{channel_data, put_info_response};
use wire::ssh::packet::Cipher;
use wire::ssh::transport::{ClientSetup, Received, Side, Transport};

/// The number that our only channel has with us.
const CHANNEL: u32 = 0;

/// A channel to a subsystem, and the connection below it.
pub struct Channel {
    socket: TcpStream,
    transport: Transport,
    /// Received and not looked at: `input[at..end]`.
    input: Vec<u8>,
    at: usize,
    end: usize,
    flow: Flow,
    /// The server's number of the channel.
    peer: u32,
    /// Data of the channel that is not taken, from `data_at` on.
    data: Vec<u8>,
    data_at: usize,
    closed: bool,
}

fn wrong(error: impl std::fmt::Display) -> ClientError {
    ClientError::Protocol(format!("SSH: {error}"))
}

fn policy(terms: &Terms) -> Result<Policy, ClientError> {
    let mut policy = Policy::compatible();
    if let Some(wanted) = &terms.cipher {
        // The short names of TLS are taken as well: aes128-gcm, chacha20.
        policy.ciphers.retain(|cipher: &Cipher| cipher.name().starts_with(wanted.as_str()));
        if policy.ciphers.is_empty() {
            let why = "is not an SSH cipher: use aes128-gcm, aes256-gcm, chacha20, aes128-ctr";
            return Err(ClientError::Target(wanted.clone(), why));
        }
    }
    Ok(policy)
}

impl Channel {
    /// Connects, signs in, and starts the subsystem `sftp`.
    ///
    /// # Errors
    /// The server cannot be reached, is not the one expected, or does not let the user in.
    pub fn open(at: &ServiceAt, bind: Option<IpAddr>) -> Result<Self, ClientError> {
        let setup = ClientSetup {
            software: "plimsoll_lab".into(),
            policy: policy(&at.terms)?,
            host_key: None,
        };
        let socket = Stream::connect(&at.host, at.port, bind)?;
        let side = Side::Client(Arc::new(setup));
        let transport = Transport::new(side, Box::new(SystemRandom)).map_err(wrong)?;
        let mut it = Self {
            socket,
            transport,
            input: vec![0; SSH_RECEIVE_BUFFER],
            at: 0,
            end: 0,
            flow: Flow::new(SSH_WINDOW),
            peer: 0,
            data: Vec::new(),
            data_at: 0,
            closed: false,
        };
        it.shake_hands(&at.terms)?;
        it.sign_in(at)?;
        it.start()?;
        Ok(it)
    }

    fn shake_hands(&mut self, terms: &Terms) -> Result<(), ClientError> {
        self.push()?;
        while self.transport.session().is_none() || self.transport.is_exchanging() {
            self.pull(|_| false)?;
            self.push()?;
        }
        let shown = key::fingerprint(self.transport.host_key());
        let known = terms.pin.as_deref().is_some_and(|pin| same_pin(pin, &shown));
        if known || terms.insecure {
            return Ok(());
        }
        Err(wrong(format_args!(
            "the host key does not match; its pin is {shown}, and ?insecure accepts any"
        )))
    }

    fn sign_in(&mut self, at: &ServiceAt) -> Result<(), ClientError> {
        self.send_message(&Message::ServiceRequest("ssh-userauth"))?;
        self.expect(|m| matches!(m, Message::ServiceAccept(_)).then_some(()))?;
        let (user, password) = (at.user.clone().unwrap_or_default(), at.secret.read()?);
        let request = |method| AuthRequest { user: &user, service: "ssh-connection", method };
        let by_password = Method::Password { password: password.as_bytes(), new: None };
        self.send_message(&Message::UserauthRequest(request(by_password)))?;
        let Err(methods) = self.judged()? else { return Ok(()) };
        if !methods.split(',').any(|m| m == "keyboard-interactive") {
            return Err(not_let_in(&user, &methods));
        }
        // Servers behind PAM may ask a person only: the one question is for the password.
        let asking = Method::KeyboardInteractive { language: b"", submethods: b"" };
        self.send_message(&Message::UserauthRequest(request(asking)))?;
        loop {
            let asked = self.expect(|m| match m {
                Message::Userauth60(body) => {
                    Some(Ok(Some(InfoRequest::decode(body).ok()?.prompt.is_some())))
                }
                Message::UserauthSuccess => Some(Ok(None)),
                Message::UserauthFailure { methods, .. } => Some(Err(methods.0.to_owned())),
                _ => None,
            })?;
            let Some(prompt) = asked.map_err(|methods| not_let_in(&user, &methods))? else {
                return Ok(());
            };
            let answers: &[&[u8]] = if prompt { &[password.as_bytes()] } else { &[] };
            self.transport.send(|out| put_info_response(out, answers)).map_err(wrong)?;
            self.push()?;
        }
    }

    /// Whether the server accepts the user; else the methods that are left.
    fn judged(&mut self) -> Result<Result<(), String>, ClientError> {
        self.expect(|m| match m {
            Message::UserauthSuccess => Some(Ok(())),
            Message::UserauthFailure { methods, .. } => Some(Err(methods.0.to_owned())),
            _ => None,
        })
    }

    fn start(&mut self) -> Result<(), ClientError> {
        self.send_message(&Message::ChannelOpen {
            kind: "session",
            sender: CHANNEL,
            window: SSH_WINDOW,
            packet_max: SSH_DATA_MAX,
            data: b"",
        })?;
        let opened = self.expect(|m| match m {
            Message::ChannelOpenConfirmation { sender, window, packet_max, .. } => {
                Some(Ok((*sender, *window, *packet_max)))
            }
            Message::ChannelOpenFailure { description, .. } => {
                Some(Err(String::from_utf8_lossy(description).into_owned()))
            }
            _ => None,
        })?;
        let (peer, window, packet_max) = opened.map_err(wrong)?;
        self.peer = peer;
        self.flow.opened(window, packet_max);
        let mut data = 4u32.to_be_bytes().to_vec();
        data.extend_from_slice(b"sftp");
        self.send_message(&Message::ChannelRequest {
            recipient: peer,
            kind: "subsystem",
            want_reply: true,
            data: &data,
        })?;
        let started = self.expect(|m| match m {
            Message::ChannelSuccess { .. } => Some(Ok(())),
            Message::ChannelFailure { .. } => Some(Err("the server has no subsystem sftp")),
            Message::ChannelWindowAdjust { .. } => None,
            _ => None,
        })?;
        started.map_err(wrong)
    }

    fn send_message(&mut self, message: &Message<'_>) -> Result<(), ClientError> {
        self.transport.send_message(message).map_err(wrong)?;
        self.push()
    }

    /// Waits for a message that `want` takes; others are as if they had not come, but for windows.
    fn expect<T>(&mut self, want: impl Fn(&Message<'_>) -> Option<T>) -> Result<T, ClientError> {
        let mut found = None;
        loop {
            self.pull(|message| {
                found = want(message);
                found.is_some()
            })?;
            self.push()?;
            if let Some(found) = found {
                return Ok(found);
            }
        }
    }

    /// The socket.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// What was agreed on, as `SSH aes128-gcm@openssh.com`.
    pub fn cipher(&self) -> Option<String> {
        let chosen = self.transport.chosen()?;
        let [_, incoming] = chosen.macs;
        let [outgoing, _] = chosen.ciphers;
        let mac = incoming.filter(|_| !outgoing.is_aead());
        let mac = mac.map(|mac| format!(" {}", mac.name())).unwrap_or_default();
        Some(format!("SSH {}{mac}", outgoing.name()))
    }

    /// Sends all of `bytes` on the channel, and takes what comes while there is no room.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = self.flow.window().min(rest.len());
            if room == 0 || !self.transport.may_send_data() {
                self.push()?;
                self.pull(|_| false)?;
                continue;
            }
            let room = room.min(SSH_SEND_BATCH);
            let (now, later) = rest.split_at(room);
            let most = self.flow.packet_max();
            self.transport.send_data(self.peer, most, now).map_err(wrong)?;
            self.flow.sent(room);
            rest = later;
            if self.transport.backlog() >= SSH_SEND_BATCH {
                self.push()?;
            }
        }
        Ok(())
    }

    /// Sends what waits.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn push(&mut self) -> Result<(), ClientError> {
        let bytes = self.transport.output().map_err(wrong)?;
        let sent = self.socket.write_all(bytes);
        let n = bytes.len();
        sent.map_err(ClientError::io("send to the server"))?;
        self.transport.sent(n);
        self.transport.renew(crate::agent::clock::mono_ns()).map_err(wrong)
    }

    /// Data of the channel that came and is not taken.
    pub fn data(&self) -> &[u8] {
        self.data.get(self.data_at..).unwrap_or_default()
    }

    /// The first `n` bytes of [`Channel::data`] were taken.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn taken(&mut self, n: usize) -> Result<(), ClientError> {
        self.data_at += n;
        if self.data_at >= self.data.len() {
            self.data.clear();
            self.data_at = 0;
        }
        if let Some(bytes) = self.flow.taken(n) {
            let recipient = self.peer;
            let grant = Message::ChannelWindowAdjust { recipient, bytes };
            self.transport.send_message(&grant).map_err(wrong)?;
            self.push()?;
        }
        Ok(())
    }

    /// Waits for more data of the channel.
    ///
    /// # Errors
    /// When the connection or the channel is gone.
    pub fn more(&mut self) -> Result<(), ClientError> {
        self.push()?;
        if self.data_at > 0 {
            self.data.drain(..self.data_at);
            self.data_at = 0;
        }
        let before = self.data.len();
        while self.data.len() == before {
            if self.closed {
                return Err(ClientError::Closed);
            }
            self.pull(|_| false)?;
            if self.transport.backlog() > 0 {
                self.push()?;
            }
        }
        Ok(())
    }

    /// One receive and all packets in it. Messages go to `other` until it has what it wants.
    fn pull(&mut self, mut other: impl FnMut(&Message<'_>) -> bool) -> Result<(), ClientError> {
        if !self.look(&mut other)? {
            return Ok(());
        }
        self.input.copy_within(self.at..self.end, 0);
        (self.end, self.at) = (self.end - self.at, 0);
        let space = self.input.get_mut(self.end..).unwrap_or_default();
        let n = self.socket.read(space).map_err(ClientError::io("receive from the server"))?;
        if n == 0 {
            return Err(ClientError::Closed);
        }
        self.end += n;
        self.look(&mut other).map(drop)
    }

    /// Looks at what is held; false when `other` stopped it.
    fn look(&mut self, other: &mut impl FnMut(&Message<'_>) -> bool) -> Result<bool, ClientError> {
        loop {
            let held = self.input.get_mut(self.at..self.end).unwrap_or_default();
            match self.transport.receive(held).map_err(wrong)? {
                Received::Need(_) => return Ok(true),
                Received::Handled(n) => self.at += n,
                Received::Packet(n, payload) => {
                    self.at += n;
                    if let Some((CHANNEL, data)) = channel_data(payload) {
                        self.flow.received(data.len()).map_err(wrong)?;
                        self.data.extend_from_slice(data);
                        continue;
                    }
                    match Message::decode(payload).map_err(|e| wrong(e.to_string()))? {
                        Message::ChannelWindowAdjust { bytes, .. } => {
                            self.flow.adjusted(bytes).map_err(wrong)?;
                        }
                        Message::ChannelClose { .. } | Message::ChannelEof { .. } => {
                            self.closed = true;
                        }
                        Message::GlobalRequest { want_reply: true, .. } => {
                            let no = Message::RequestFailure;
                            self.transport.send_message(&no).map_err(wrong)?;
                        }
                        message if other(&message) => return Ok(false),
                        _ => {}
                    }
                }
            }
        }
    }
}

fn not_let_in(user: &str, methods: &str) -> ClientError {
    let status = format!("no (remaining methods: {methods})");
    ClientError::Refused { what: format!("sign in as {user}"), status }
}

/// With or without the name of the hash and the padding.
fn same_pin(pin: &str, shown: &str) -> bool {
    let bare = |text: &str| text.trim_start_matches("SHA256:").trim_end_matches('=').to_owned();
    bare(pin) == bare(shown)
}
