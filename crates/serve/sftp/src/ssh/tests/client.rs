//! A client for the tests: the transport of `wire` on a socket.

use std::net::SocketAddr;
use std::sync::Arc;

use base::random::SystemRandom;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use wire::ssh::codec::{Put, Reader};
use wire::ssh::flow::Flow;
use wire::ssh::kex::Policy;
use wire::ssh::message::Message;
use wire::ssh::transport::{ClientSetup, Error, Received, Side, Transport};

pub(super) struct Client {
    pub(super) transport: Transport,
    stream: TcpStream,
    input: Vec<u8>,
    /// Number of messages between two key exchanges.
    pub(super) renew_every: Option<usize>,
    seen: usize,
    flow: Flow,
    windows: (u32, u32),
    next: u32,
}

/// A channel that is open.
#[derive(Clone, Copy)]
pub(super) struct Open {
    pub(super) remote: u32,
}

/// What came back on a channel.
#[derive(Default)]
pub(super) struct Got {
    pub(super) data: Vec<u8>,
    pub(super) status: Option<u32>,
    pub(super) largest: usize,
}

impl Client {
    pub(super) async fn connect(address: SocketAddr, host_key: Vec<u8>) -> Self {
        let (software, policy) = ("Client".to_owned(), Policy::modern());
        let setup = ClientSetup { software, policy, host_key: Some(host_key) };
        let side = Side::Client(Arc::new(setup));
        let transport = Transport::new(side, Box::new(SystemRandom)).unwrap();
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let mut client = Self {
            transport,
            stream,
            input: Vec::new(),
            renew_every: None,
            seen: 0,
            flow: Flow::new(0),
            windows: (0, 0),
            next: 0,
        };
        // The first message is what the server is able to.
        let message = client.message().await;
        assert!(matches!(Message::decode(&message), Ok(Message::ExtInfo(_))));
        client
    }

    async fn flush(&mut self) -> Result<(), Error> {
        let bytes = self.transport.output().unwrap().to_vec();
        self.transport.sent(bytes.len());
        // The server may have hung up; then reading reports it.
        let _ = self.stream.write_all(&bytes).await;
        Ok(())
    }

    pub(super) async fn send(&mut self, message: &Message<'_>) {
        self.transport.send_message(message).unwrap();
        self.flush().await.unwrap();
    }

    pub(super) async fn send_raw(&mut self, message: &[u8]) {
        self.transport.send(|out| out.extend_from_slice(message)).unwrap();
        self.flush().await.unwrap();
    }

    async fn next_message(&mut self) -> Result<Vec<u8>, Error> {
        loop {
            let received = match self.transport.receive(&mut self.input)? {
                Received::Need(_) => None,
                Received::Handled(n) => Some((n, None)),
                Received::Packet(n, payload) => Some((n, Some(payload.to_vec()))),
            };
            self.flush().await?;
            match received {
                Some((n, payload)) => {
                    self.input.drain(..n);
                    if let Some(payload) = payload {
                        return Ok(payload);
                    }
                }
                None => {
                    let n = self.stream.read_buf(&mut self.input).await.unwrap_or(0);
                    if n == 0 {
                        let description = "hung up".to_owned();
                        return Err(Error::Disconnected { reason: 0, description });
                    }
                }
            }
        }
    }

    pub(super) async fn message(&mut self) -> Vec<u8> {
        self.next_message().await.expect("a message")
    }

    /// The reason with which the server ends the connection; messages before that are skipped.
    pub(super) async fn farewell(&mut self) -> Option<u32> {
        loop {
            match self.next_message().await {
                Ok(_) => {}
                Err(Error::Disconnected { reason: 0, .. }) => return None,
                Err(Error::Disconnected { reason, .. }) => return Some(reason),
                Err(other) => panic!("{other}"),
            }
        }
    }

    /// Asks for the service, and sees the banner.
    pub(super) async fn service(&mut self) {
        self.send(&Message::ServiceRequest("ssh-userauth")).await;
        let message = self.message().await;
        assert_eq!(Message::decode(&message), Ok(Message::ServiceAccept("ssh-userauth")));
        let message = self.message().await;
        assert!(matches!(
            Message::decode(&message),
            Ok(Message::UserauthBanner { message: b"Hello\n", .. })
        ));
    }

    pub(super) async fn open(&mut self, kind: &str, window: u32, packet_max: u32) {
        let sender = self.next;
        self.next += 1;
        self.windows = (window, packet_max);
        self.send(&Message::ChannelOpen { kind, sender, window, packet_max, data: b"" }).await;
    }

    pub(super) async fn open_sftp(&mut self, window: u32, packet_max: u32) -> Open {
        self.open("session", window, packet_max).await;
        let mut message = self.message().await;
        // Windows of channels that were opened before grow when their servers begin.
        while matches!(Message::decode(&message), Ok(Message::ChannelWindowAdjust { .. })) {
            message = self.message().await;
        }
        let Ok(Message::ChannelOpenConfirmation { sender: recipient, window, packet_max, .. }) =
            Message::decode(&message)
        else {
            panic!("{message:?}")
        };
        self.flow = Flow::new(self.windows.0);
        self.flow.opened(window, packet_max);
        let mut data = Vec::new();
        data.put_string(b"sftp");
        let (kind, want_reply) = ("subsystem", true);
        self.send(&Message::ChannelRequest { recipient, kind, want_reply, data: &data }).await;
        let message = self.message().await;
        assert!(matches!(Message::decode(&message), Ok(Message::ChannelSuccess { .. })));
        Open { remote: recipient }
    }

    /// Sends `data` and its end, and takes what comes until the channel is closed.
    pub(super) async fn echo(&mut self, channel: Open, data: &[u8]) -> Got {
        let (recipient, mut rest, mut got) = (channel.remote, data, Got::default());
        let mut ended = false;
        loop {
            while self.transport.may_send_data() && self.flow.window() > 0 && !rest.is_empty() {
                let n = rest.len().min(self.flow.sendable());
                let (now, later) = rest.split_at(n);
                self.flow.sent(n);
                self.transport.send_data(recipient, self.flow.packet_max(), now).unwrap();
                rest = later;
            }
            if rest.is_empty() && !std::mem::replace(&mut ended, true) {
                self.transport.send_message(&Message::ChannelEof { recipient }).unwrap();
            }
            self.flush().await.unwrap();
            let message = self.message().await;
            self.seen += 1;
            if self.renew_every.is_some_and(|n| self.seen.is_multiple_of(n)) {
                self.transport.renew_now().unwrap();
            }
            match Message::decode(&message).unwrap() {
                Message::ChannelData { data, .. } => {
                    self.flow.received(data.len()).expect("within the window");
                    got.largest = got.largest.max(data.len());
                    got.data.extend_from_slice(data);
                    if let Some(bytes) = self.flow.taken(data.len()) {
                        let adjust = Message::ChannelWindowAdjust { recipient, bytes };
                        self.transport.send_message(&adjust).unwrap();
                    }
                }
                Message::ChannelWindowAdjust { bytes, .. } => self.flow.adjusted(bytes).unwrap(),
                Message::ChannelRequest { kind: "exit-status", data, .. } => {
                    got.status = Reader::new(data).u32("status").ok();
                }
                Message::ChannelEof { .. } => {}
                Message::ChannelClose { .. } => {
                    self.send(&Message::ChannelClose { recipient }).await;
                    return got;
                }
                other => panic!("{other:?}"),
            }
        }
    }
}
