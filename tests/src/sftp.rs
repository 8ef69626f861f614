//! A small SFTP client over SSH on the shared codec: one connection with one channel, one request
//! at a time. It sends what it is told.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use base::random::SystemRandom;
use socket2::{Domain, Socket, Type};
use wire::sftp::packet::{Hello, cut};
use wire::sftp::{PacketType, Reply, Request, StatusCode, begin_packet, end_packet};
use wire::ssh::codec::Put;
use wire::ssh::kex::Policy;
use wire::ssh::message::{AuthRequest, Message, Method};
use wire::ssh::transport::{ClientSetup, Received, Side, Transport};
use wire::xdr::{Encode, Reader, Writer};

/// Longest wait for one answer.
const ANSWER: Duration = Duration::from_secs(30);
/// What the server may send without being told that there is room for more.
const WINDOW: u32 = 1 << 30;

/// A connection from an address of this machine.
///
/// # Errors
/// What the kernel says.
pub fn connect_from(from: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, None)?;
    socket.bind(&SocketAddr::new(from, 0).into())?;
    socket.connect(&to.into())?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER))?;
    Ok(stream)
}

/// What a request came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Came {
    /// A status.
    Status(StatusCode),
    /// A handle.
    Handle(Vec<u8>),
    /// Anything else, as it came.
    Other(Vec<u8>),
}

/// A connection.
pub struct Sftp {
    stream: TcpStream,
    transport: Transport,
    input: Vec<u8>,
    channel: u32,
    came: Vec<u8>,
    id: u32,
}

impl Sftp {
    /// Signs in; no connection if the password is refused.
    ///
    /// # Errors
    /// What the server, or the kernel, does instead of letting us in.
    pub fn sign_in(stream: TcpStream, user: &str, password: &str) -> io::Result<Self> {
        let (software, policy) = ("Test".to_owned(), Policy::modern());
        let setup = ClientSetup { software, policy, host_key: None };
        let transport = Transport::new(Side::Client(Arc::new(setup)), Box::new(SystemRandom));
        let transport = transport.map_err(io::Error::other)?;
        let (input, came) = (Vec::new(), Vec::new());
        let mut ssh = Self { stream, transport, input, channel: 0, came, id: 0 };
        ssh.send(&Message::ServiceRequest("ssh-userauth"))?;
        ssh.until(|message| matches!(message, Message::ServiceAccept(_)).then_some(()))?;
        let method = Method::Password { password: password.as_bytes(), new: None };
        let service = "ssh-connection";
        ssh.send(&Message::UserauthRequest(AuthRequest { user, service, method }))?;
        let right = ssh.until(|message| match message {
            Message::UserauthSuccess => Some(true),
            Message::UserauthFailure { .. } => Some(false),
            _ => None,
        })?;
        if right { Ok(ssh) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }

    /// Begins SFTP on a channel.
    ///
    /// # Errors
    /// What the server, or the kernel, does instead.
    pub fn begin(mut self) -> io::Result<Self> {
        let (kind, packet_max) = ("session", 32_768);
        let open = Message::ChannelOpen { kind, sender: 0, window: WINDOW, packet_max, data: b"" };
        self.send(&open)?;
        let channel = self.until(|message| match message {
            Message::ChannelOpenConfirmation { sender, .. } => Some(*sender),
            _ => None,
        })?;
        self.channel = channel;
        let mut data = Vec::new();
        data.put_string(b"sftp");
        let (kind, want_reply) = ("subsystem", true);
        self.send(&Message::ChannelRequest { recipient: channel, kind, want_reply, data: &data })?;
        self.until(|message| matches!(message, Message::ChannelSuccess { .. }).then_some(()))?;
        let mut hello = Vec::new();
        let w = &mut Writer::new(&mut hello);
        let begun = begin_packet(w, PacketType::INIT);
        Hello { version: 3, extensions: Vec::new() }.encode(w);
        end_packet(w, begun, 0);
        self.put(&hello)?;
        let (kind, _) = self.packet()?;
        if kind == PacketType::VERSION { Ok(self) } else { Err(io::Error::other("no VERSION")) }
    }

    /// Sends a request and takes its answer.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn call(&mut self, request: &Request<'_>) -> io::Result<Came> {
        self.id += 1;
        let mut bytes = Vec::new();
        request.put(&mut Writer::new(&mut bytes), self.id);
        self.put(&bytes)?;
        let (kind, body) = self.packet()?;
        let mut r = Reader::new(&body);
        r.u32("id").map_err(io::Error::other)?;
        match Reply::decode(kind, &mut r) {
            Ok(Some(Reply::Status(status))) => Ok(Came::Status(status.code)),
            Ok(Some(Reply::Handle(handle))) => Ok(Came::Handle(handle.0.to_vec())),
            Ok(Some(_)) => Ok(Came::Other(body.clone())),
            other => Err(io::Error::other(format!("{other:?}"))),
        }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.send(&Message::ChannelData { recipient: self.channel, data: bytes })
    }

    /// The next packet: its type, and what follows it.
    fn packet(&mut self) -> io::Result<(PacketType, Vec<u8>)> {
        loop {
            if let Ok(packet) = cut(&self.came).map_err(io::Error::other)? {
                let (kind, body, consumed) = (packet.kind, packet.body.to_vec(), packet.consumed);
                self.came.drain(..consumed);
                return Ok((kind, body));
            }
            let data = self.until(|message| match message {
                Message::ChannelData { data, .. } => Some(data.to_vec()),
                _ => None,
            })?;
            self.came.extend_from_slice(&data);
        }
    }

    fn send(&mut self, message: &Message<'_>) -> io::Result<()> {
        self.transport.send_message(message).map_err(io::Error::other)?;
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        let bytes = self.transport.output().map_err(io::Error::other)?.to_vec();
        self.transport.sent(bytes.len());
        self.stream.write_all(&bytes)
    }

    /// Takes messages until one is what is looked for.
    fn until<T>(&mut self, mut look: impl FnMut(&Message<'_>) -> Option<T>) -> io::Result<T> {
        loop {
            let message = self.message()?;
            let message = Message::decode(&message).map_err(io::Error::other)?;
            if let Some(found) = look(&message) {
                return Ok(found);
            }
        }
    }

    fn message(&mut self) -> io::Result<Vec<u8>> {
        loop {
            let received = self.transport.receive(&mut self.input).map_err(io::Error::other)?;
            let received = match received {
                Received::Need(_) => None,
                Received::Handled(n) => Some((n, None)),
                Received::Packet(n, payload) => Some((n, Some(payload.to_vec()))),
            };
            self.flush()?;
            if let Some((n, payload)) = received {
                self.input.drain(..n);
                if let Some(payload) = payload {
                    return Ok(payload);
                }
                continue;
            }
            let mut piece = [0; 16 << 10];
            match self.stream.read(&mut piece)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                n => self.input.extend_from_slice(&piece[..n]),
            }
        }
    }
}
