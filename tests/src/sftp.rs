//! A small SFTP client over SSH on the shared codec: one connection with one channel, one request
//! at a time. It sends the caller's requests unchanged.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::random::SystemRandom;
use wire::sftp::packet::{Hello, cut};
use wire::sftp::request::{self, OfHandle, OfPath, Open, SetByPath, Symlink, TwoPaths};
use wire::sftp::{
    Attrs, Data, Extended, HandleBytes, OpenFlags, PacketType, PathBytes, Reply, Request,
    StatusCode, begin_packet, end_packet,
};
use wire::ssh::codec::Put;
use wire::ssh::kex::Policy;
use wire::ssh::message::{AuthRequest, Message, Method};
use wire::ssh::transport::{ClientSetup, Received, Side, Transport};
use wire::xdr::{Encode, Reader, Writer};

use crate::tcp::connect_from;

mod dsync;

/// What the server may send without a window adjustment.
const WINDOW: u32 = 1 << 30;

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
    /// Bytes that the server has room for, and most in one message.
    room: (u32, u32),
    came: Vec<u8>,
    id: u32,
}

impl Sftp {
    /// A connection from an address of this machine: signs in with a password and begins SFTP.
    ///
    /// # Errors
    /// What the server, or the kernel, does instead of letting us in.
    pub fn connect(from: IpAddr, to: SocketAddr, who: (&str, &str)) -> io::Result<Self> {
        Self::sign_in(connect_from(from, to)?, who)?.begin()
    }

    fn sign_in(stream: TcpStream, (user, password): (&str, &str)) -> io::Result<Self> {
        let (software, policy) = ("Test".to_owned(), Policy::modern());
        let setup = ClientSetup { software, policy, host_key: None };
        let transport = Transport::new(Side::Client(Arc::new(setup)), Box::new(SystemRandom));
        let transport = transport.map_err(io::Error::other)?;
        let (input, came, room) = (Vec::new(), Vec::new(), (0, 0));
        let mut ssh = Self { stream, transport, input, channel: 0, room, came, id: 0 };
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

    /// Signs in and starts a subsystem on a channel; nothing is sent to it.
    ///
    /// # Errors
    /// What the server, or the kernel, does instead.
    pub fn subsystem(
        (from, to): (IpAddr, SocketAddr),
        user: (&str, &str),
        name: &str,
    ) -> io::Result<Self> {
        Self::sign_in(connect_from(from, to)?, user)?.channel(name)
    }

    /// Opens a channel with a subsystem.
    fn channel(mut self, name: &str) -> io::Result<Self> {
        let (kind, packet_max) = ("session", 32_768);
        let open = Message::ChannelOpen { kind, sender: 0, window: WINDOW, packet_max, data: b"" };
        self.send(&open)?;
        (self.channel, self.room) = self.until(|message| match message {
            Message::ChannelOpenConfirmation { sender, window, packet_max, .. } => {
                Some((*sender, (*window, *packet_max)))
            }
            _ => None,
        })?;
        let mut data = Vec::new();
        data.put_string(name.as_bytes());
        let (kind, want_reply) = ("subsystem", true);
        let recipient = self.channel;
        self.send(&Message::ChannelRequest { recipient, kind, want_reply, data: &data })?;
        let started = self.until(|message| match message {
            Message::ChannelSuccess { .. } => Some(true),
            Message::ChannelFailure { .. } => Some(false),
            _ => None,
        })?;
        if started { Ok(self) } else { Err(io::Error::other(format!("no subsystem {name}"))) }
    }

    /// Begins SFTP on a channel.
    fn begin(self) -> io::Result<Self> {
        let mut ssh = self.channel("sftp")?;
        let mut hello = Vec::new();
        let w = &mut Writer::new(&mut hello);
        let begun = begin_packet(w, PacketType::INIT);
        Hello { version: 3, extensions: Vec::new() }.encode(w);
        end_packet(w, begun, 0);
        ssh.put(&hello)?;
        let (kind, _) = ssh.packet()?;
        if kind == PacketType::VERSION { Ok(ssh) } else { Err(io::Error::other("no VERSION")) }
    }

    /// Signs in, opens `count` channels without a subsystem, and sends what the server takes on
    /// each of them.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn fill_channels(
        (from, to): (IpAddr, SocketAddr),
        who: (&str, &str),
        count: u32,
    ) -> io::Result<Self> {
        let mut ssh = Self::sign_in(connect_from(from, to)?, who)?;
        for sender in 0..count {
            let (kind, window, packet_max) = ("session", WINDOW, 32_768);
            ssh.send(&Message::ChannelOpen { kind, sender, window, packet_max, data: b"" })?;
            let opened = ssh.until(|message| match message {
                Message::ChannelOpenConfirmation { sender, window, packet_max, .. } => {
                    Some(Some((*sender, *window, *packet_max)))
                }
                Message::ChannelOpenFailure { .. } => Some(None),
                _ => None,
            })?;
            let Some((recipient, mut window, most)) = opened else { break };
            while window > 0 {
                let data = vec![7; window.min(most) as usize];
                window -= data.len() as u32;
                ssh.send(&Message::ChannelData { recipient, data: &data })?;
            }
        }
        Ok(ssh)
    }

    /// Sends a request, and does not wait for its reply.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn start(&mut self, request: &Request<'_>) -> io::Result<()> {
        self.id += 1;
        let mut bytes = Vec::new();
        request.put(&mut Writer::new(&mut bytes), self.id);
        self.put(&bytes)
    }

    /// Sends requests at once, and does not wait for their replies.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn start_all(&mut self, requests: &[Request<'_>]) -> io::Result<()> {
        let mut bytes = Vec::new();
        for request in requests {
            self.id += 1;
            request.put(&mut Writer::new(&mut bytes), self.id);
        }
        self.put(&bytes)
    }

    /// The stream below SSH.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends a request and takes its answer.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn call(&mut self, request: &Request<'_>) -> io::Result<Came> {
        self.start(request)?;
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

    /// OPEN: the handle, or how it is refused.
    ///
    /// # Errors
    /// The connection has ended, as with all that follow, or the answer is no answer to that.
    pub fn open(
        &mut self,
        path: impl AsRef<[u8]>,
        pflags: OpenFlags,
    ) -> io::Result<Result<Vec<u8>, StatusCode>> {
        let filename = PathBytes(path.as_ref());
        match self.call(&Request::Open(Open { filename, pflags, attrs: Attrs::default() }))? {
            Came::Handle(handle) => Ok(Ok(handle)),
            Came::Status(refused) => Ok(Err(refused)),
            Came::Other(other) => Err(io::Error::other(format!("{other:?}"))),
        }
    }

    /// A request that is answered with a status.
    fn status(&mut self, request: &Request<'_>) -> io::Result<StatusCode> {
        match self.call(request)? {
            Came::Status(code) => Ok(code),
            other => Err(io::Error::other(format!("{other:?}"))),
        }
    }

    /// WRITE.
    ///
    /// # Errors
    /// See [`Sftp::open`].
    pub fn write(&mut self, handle: &[u8], offset: u64, data: &[u8]) -> io::Result<StatusCode> {
        let (handle, data) = (HandleBytes(handle), Data(data));
        self.status(&Request::Write(request::Write { handle, offset, data }))
    }

    /// OPENDIR, and the first READDIR of it.
    ///
    /// # Errors
    /// See [`Sftp::open`]; or the directory is not listed.
    pub fn list(&mut self, path: &str) -> io::Result<Vec<u8>> {
        let path = OfPath { path: PathBytes(path.as_bytes()) };
        let handle = match self.call(&Request::Opendir(path))? {
            Came::Handle(handle) => handle,
            other => return Err(io::Error::other(format!("OPENDIR: {other:?}"))),
        };
        match self.call(&Request::Readdir(OfHandle { handle: HandleBytes(&handle) }))? {
            Came::Other(_) => Ok(handle),
            other => Err(io::Error::other(format!("READDIR: {other:?}"))),
        }
    }

    /// READ: what came, nothing at the end of the file; or how it is refused.
    ///
    /// # Errors
    /// See [`Sftp::open`].
    pub fn read(
        &mut self,
        handle: &[u8],
        offset: u64,
        len: u32,
    ) -> io::Result<Result<Vec<u8>, StatusCode>> {
        let handle = HandleBytes(handle);
        match self.call(&Request::Read(request::Read { handle, offset, len }))? {
            Came::Status(StatusCode::EOF) => Ok(Ok(Vec::new())),
            Came::Status(refused) => Ok(Err(refused)),
            // The request's id, and the length of the data (§7).
            Came::Other(body) => Ok(Ok(body.get(8..).unwrap_or_default().to_vec())),
            Came::Handle(_) => Err(io::Error::other("a handle")),
        }
    }

    /// Reads `count` times `len` bytes, `depth` READs at a time: how long each of them took.
    ///
    /// # Errors
    /// See [`Sftp::open`].
    pub fn read_at_once(
        &mut self,
        handle: &[u8],
        len: u32,
        (count, depth): (usize, usize),
    ) -> io::Result<Vec<Duration>> {
        let (first, mut begun, mut times) = (self.id + 1, Vec::new(), Vec::new());
        while times.len() < count {
            while begun.len() < count.min(times.len() + depth) {
                self.id += 1;
                let offset = u64::from(len) * (begun.len() % depth) as u64;
                let (mut bytes, handle) = (Vec::new(), HandleBytes(handle));
                let read = Request::Read(request::Read { handle, offset, len });
                read.put(&mut Writer::new(&mut bytes), self.id);
                begun.push(Instant::now());
                self.put(&bytes)?;
            }
            let (kind, body) = self.packet()?;
            let id = Reader::new(&body).u32("id").map_err(io::Error::other)?;
            let since = begun.get(id.wrapping_sub(first) as usize);
            match since.filter(|_| kind == PacketType::DATA) {
                Some(since) => times.push(since.elapsed()),
                None => return Err(io::Error::other(format!("not DATA: {kind:?}"))),
            }
        }
        Ok(times)
    }

    /// CLOSE.
    ///
    /// # Errors
    /// See [`Sftp::open`].
    pub fn close(&mut self, handle: &[u8]) -> io::Result<StatusCode> {
        self.status(&Request::Close(OfHandle { handle: HandleBytes(handle) }))
    }

    /// `fsync@openssh.com`.
    ///
    /// # Errors
    /// See [`Sftp::open`].
    pub fn fsync(&mut self, handle: &[u8]) -> io::Result<StatusCode> {
        let of = OfHandle { handle: HandleBytes(handle) };
        self.status(&Request::Extended(Extended::Fsync(of)))
    }

    /// SETSTAT of the permissions.
    ///
    /// # Errors
    /// See [`Sftp::open`].
    pub fn chmod(&mut self, path: &str, mode: u32) -> io::Result<StatusCode> {
        let attrs = Attrs { permissions: Some(mode), ..Attrs::default() };
        self.status(&Request::Setstat(SetByPath { path: PathBytes(path.as_bytes()), attrs }))
    }

    /// MKDIR.
    ///
    /// # Errors
    /// See [`Sftp::open`].
    pub fn mkdir(&mut self, path: &str) -> io::Result<StatusCode> {
        let (path, attrs) = (PathBytes(path.as_bytes()), Attrs::default());
        self.status(&Request::Mkdir(SetByPath { path, attrs }))
    }

    /// RMDIR.
    ///
    /// # Errors
    /// See [`Sftp::open`].
    pub fn rmdir(&mut self, path: &str) -> io::Result<StatusCode> {
        self.status(&Request::Rmdir(OfPath { path: PathBytes(path.as_bytes()) }))
    }

    /// REMOVE.
    ///
    /// # Errors
    /// See [`Sftp::open`].
    pub fn remove(&mut self, path: &str) -> io::Result<StatusCode> {
        self.status(&Request::Remove(OfPath { path: PathBytes(path.as_bytes()) }))
    }

    /// RENAME, which replaces nothing.
    ///
    /// # Errors
    /// See [`Sftp::open`].
    pub fn rename(&mut self, from: &str, to: &str) -> io::Result<StatusCode> {
        self.status(&Request::Rename(two(from, to)))
    }

    /// `posix-rename@openssh.com`.
    ///
    /// # Errors
    /// See [`Sftp::open`].
    pub fn posix_rename(&mut self, from: &str, to: &str) -> io::Result<StatusCode> {
        self.status(&Request::Extended(Extended::PosixRename(two(from, to))))
    }

    /// `hardlink@openssh.com`.
    ///
    /// # Errors
    /// See [`Sftp::open`].
    pub fn hardlink(&mut self, from: &str, to: &str) -> io::Result<StatusCode> {
        self.status(&Request::Extended(Extended::Hardlink(two(from, to))))
    }

    /// SYMLINK.
    ///
    /// # Errors
    /// See [`Sftp::open`].
    pub fn symlink(&mut self, target: &str, path: &str) -> io::Result<StatusCode> {
        let targetpath = PathBytes(target.as_bytes());
        self.status(&Request::Symlink(Symlink { targetpath, linkpath: PathBytes(path.as_bytes()) }))
    }

    /// Sends data as there is room for it (RFC 4254 §5.2).
    fn put(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            while self.room.0 == 0 {
                self.until(|_| Some(()))?;
            }
            let most = self.room.0.min(self.room.1).max(1) as usize;
            let (data, rest) = bytes.split_at(bytes.len().min(most));
            self.room.0 -= data.len() as u32;
            self.send(&Message::ChannelData { recipient: self.channel, data })?;
            bytes = rest;
        }
        Ok(())
    }

    /// The next packet: its type, and what follows it.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn packet(&mut self) -> io::Result<(PacketType, Vec<u8>)> {
        loop {
            if let Ok(packet) = cut(&self.came).map_err(io::Error::other)? {
                let (kind, body, consumed) = (packet.kind, packet.body.to_vec(), packet.consumed);
                self.came.drain(..consumed);
                return Ok((kind, body));
            }
            self.until(|message| matches!(message, Message::ChannelData { .. }).then_some(()))?;
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

    /// Takes messages until one is what is looked for; keeps the data that come meanwhile.
    fn until<T>(&mut self, mut look: impl FnMut(&Message<'_>) -> Option<T>) -> io::Result<T> {
        loop {
            let message = self.message()?;
            let message = Message::decode(&message).map_err(io::Error::other)?;
            match &message {
                Message::ChannelData { data, .. } => self.came.extend_from_slice(data),
                Message::ChannelWindowAdjust { bytes, .. } => self.room.0 += bytes,
                _ => {}
            }
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

fn two<'a>(from: &'a str, to: &'a str) -> TwoPaths<'a> {
    TwoPaths { oldpath: PathBytes(from.as_bytes()), newpath: PathBytes(to.as_bytes()) }
}
