//! SSH and SFTP as far as the tests go: one channel, reads and writes answered in pairs that are
//! turned round, so that answers come out of turn.

use super::Store;
use base::random::SeededRandom;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use wire::sftp::packet::{Hello, cut};
use wire::sftp::reply::{Status, StatusCode};
use wire::sftp::{
    Attrs, Data, HandleBytes, Name, OpenFlags, PacketType, PathBytes, Reply, Request, Str,
    begin_packet, end_packet,
};
use wire::ssh::host_key::HostKey;
use wire::ssh::kex::Policy;
use wire::ssh::message::{AuthRequest, Message, Method, channel_data};
use wire::ssh::transport::{Received, ServerSetup, Side, Transport};
use wire::xdr::{Encode, Reader, Seq, Writer};

struct Open {
    path: String,
    names: Vec<String>,
}

struct Server<'a> {
    store: &'a Store,
    transport: Transport,
    data: Vec<u8>,
    handles: HashMap<u32, Open>,
    next: u32,
    /// An answer that waits for the one behind it to go first.
    held: Option<Vec<u8>>,
    window: u64,
    waiting: Vec<u8>,
}

pub(super) fn serve(mut socket: TcpStream, store: &Arc<Store>) {
    let key = HostKey::new_ed25519(&mut SeededRandom::new(7)).unwrap();
    let policy = Policy::modern();
    let setup = ServerSetup { software: "Test".into(), policy, host_keys: vec![key.into()] };
    let side = Side::Server(Arc::new(setup));
    let transport = Transport::new(side, Box::new(SeededRandom::new(1))).unwrap();
    let (data, handles, waiting) = (Vec::new(), HashMap::new(), Vec::new());
    let mut it =
        Server { store, transport, data, handles, next: 0, held: None, window: 0, waiting };
    let (mut input, mut part) = (Vec::new(), vec![0; 65_536]);
    loop {
        let out = it.transport.output().unwrap().to_vec();
        it.transport.sent(out.len());
        if socket.write_all(&out).is_err() {
            return;
        }
        let Ok(n @ 1..) = socket.read(&mut part) else { return };
        input.extend_from_slice(&part[..n]);
        let mut at = 0;
        loop {
            match it.transport.receive(&mut input[at..]) {
                Ok(Received::Need(_)) => break,
                Ok(Received::Handled(n)) => at += n,
                Ok(Received::Packet(n, payload)) => {
                    let payload = payload.to_vec();
                    at += n;
                    it.message(&payload);
                }
                Err(_) => return,
            }
        }
        input.drain(..at);
    }
}

impl Server<'_> {
    fn message(&mut self, payload: &[u8]) {
        if let Some((_, data)) = channel_data(payload) {
            self.data.extend_from_slice(data);
            let bytes = data.len() as u32;
            let grant = Message::ChannelWindowAdjust { recipient: 0, bytes };
            self.transport.send_message(&grant).unwrap();
            self.packets();
            return;
        }
        let answer = match Message::decode(payload).unwrap() {
            Message::ServiceRequest(name) => Message::ServiceAccept(name),
            Message::UserauthRequest(AuthRequest { user, method, .. }) => match method {
                Method::Password { password: b"a@b", .. } if user == "ann" => {
                    Message::UserauthSuccess
                }
                _ => Message::UserauthFailure {
                    methods: wire::ssh::codec::Names("password"),
                    partial: false,
                },
            },
            Message::ChannelOpen { sender, window, .. } => {
                self.window = window.into();
                // A small window, so that the client has to wait for it.
                Message::ChannelOpenConfirmation {
                    recipient: sender,
                    sender: 5,
                    window: 300_000,
                    packet_max: 32_768,
                }
            }
            Message::ChannelRequest { .. } => Message::ChannelSuccess { recipient: 0 },
            Message::ChannelWindowAdjust { bytes, .. } => {
                self.window += u64::from(bytes);
                return self.send(&[]);
            }
            _ => return,
        };
        self.transport.send_message(&answer).unwrap();
    }

    fn packets(&mut self) {
        loop {
            let (kind, body, consumed) = match cut(&self.data).unwrap() {
                Ok(packet) => (packet.kind, packet.body.to_vec(), packet.consumed),
                Err(_) => return self.let_go(),
            };
            self.data.drain(..consumed);
            let mut out = Vec::new();
            let w = &mut Writer::new(&mut out);
            if kind == PacketType::INIT {
                let begun = begin_packet(w, PacketType::VERSION);
                Hello { version: 3, extensions: Vec::new() }.encode(w);
                end_packet(w, begun, 0);
                self.send(&out);
                continue;
            }
            let r = &mut Reader::new(&body);
            let id = r.u32("id").unwrap();
            let request = Request::decode(kind, r).unwrap().unwrap();
            self.answer(&request, id, w);
            let turned = matches!(request, Request::Read(_) | Request::Write(_));
            match (turned, self.held.take()) {
                (true, None) => self.held = Some(out),
                (_, before) => {
                    self.send(&out);
                    self.send(&before.unwrap_or_default());
                }
            }
        }
    }

    fn let_go(&mut self) {
        let held = self.held.take().unwrap_or_default();
        self.send(&held);
    }

    fn send(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
        let n = self.waiting.len().min(self.window as usize);
        self.window -= n as u64;
        let now: Vec<u8> = self.waiting.drain(..n).collect();
        self.transport.send_data(0, 32_768, &now).unwrap();
    }

    fn handle(&mut self, path: &str, names: Vec<String>) -> u32 {
        self.next += 1;
        self.handles.insert(self.next, Open { path: path.to_owned(), names });
        self.next
    }

    fn answer(&mut self, request: &Request<'_>, id: u32, w: &mut Writer<'_>) {
        if let Some(reply) = self.metadata_reply(request) {
            return reply.put(w, id);
        }
        let store = self.store;
        let code = match request {
            Request::Mkdir(of) => done(store.make_folder(&text(&of.path)), StatusCode::FAILURE),
            Request::Remove(of) => gone(store.remove(&text(&of.path), false)),
            Request::Rmdir(of) => {
                let path = text(&of.path);
                let there = store.names(&path).is_some();
                let none = StatusCode::NO_SUCH_FILE;
                done(store.remove(&path, true), if there { StatusCode::FAILURE } else { none })
            }
            Request::Opendir(of) => match store.names(&text(&of.path)) {
                Some(names) => {
                    let handle = self.handle("", names).to_be_bytes();
                    return Reply::Handle(HandleBytes(&handle)).put(w, id);
                }
                None => StatusCode::NO_SUCH_FILE,
            },
            Request::Readdir(of) => {
                let open = self.handles.get_mut(&number(&of.handle)).unwrap();
                let names = std::mem::take(&mut open.names);
                if !names.is_empty() {
                    let list = names.iter().map(|name| Name {
                        filename: PathBytes(name.as_bytes()),
                        longname: Str(b""),
                        attrs: Attrs::default(),
                    });
                    return Reply::Name(Seq(list.collect())).put(w, id);
                }
                StatusCode::EOF
            }
            Request::Open(open) => {
                let path = text(&open.filename);
                let made = open.pflags.has(OpenFlags::CREAT) && store.put(&path, Vec::new());
                if made || store.files().contains_key(&path) {
                    let handle = self.handle(&path, Vec::new()).to_be_bytes();
                    return Reply::Handle(HandleBytes(&handle)).put(w, id);
                }
                StatusCode::NO_SUCH_FILE
            }
            Request::Read(read) => {
                let files = store.files();
                let bytes = &files[&self.handles[&number(&read.handle)].path];
                let from = (read.offset as usize).min(bytes.len());
                let most = read.len.min(store.short.load(Ordering::SeqCst)) as usize;
                let to = (from + most).min(bytes.len());
                if from < to {
                    return Reply::Data(Data(&bytes[from..to])).put(w, id);
                }
                StatusCode::EOF
            }
            Request::Write(write) => {
                let mut files = store.files();
                let path = &self.handles[&number(&write.handle)].path;
                put_at(files.get_mut(path).unwrap(), write.offset as usize, write.data.0);
                StatusCode::OK
            }
            Request::Close(of) => {
                let known = self.handles.remove(&number(&of.handle)).is_some();
                done(known, StatusCode::BAD_MESSAGE)
            }
            Request::Stat(_) => StatusCode::NO_SUCH_FILE,
            _ => StatusCode::OP_UNSUPPORTED,
        };
        Reply::Status(Status { code, message: Str(b"x"), language: Str(b"") }).put(w, id);
    }

    /// The reply to a request for names or attributes.
    fn metadata_reply(&self, request: &Request<'_>) -> Option<Reply<'static>> {
        match request {
            Request::Realpath(_) => {
                let (filename, longname) = (PathBytes(b"/"), Str(b"/"));
                let name = Name { filename, longname, attrs: Attrs::default() };
                Some(Reply::Name(Seq(vec![name])))
            }
            Request::Stat(of) => self.size(&text(&of.path)).map(Reply::Attrs),
            Request::Fstat(of) => {
                let path = &self.handles[&number(&of.handle)].path;
                Some(Reply::Attrs(self.size(path).unwrap()))
            }
            _ => None,
        }
    }

    fn size(&self, path: &str) -> Option<Attrs> {
        let file = self.store.files().get(path).map(|bytes| bytes.len() as u64);
        let folder = self.store.names(path).map(|_| 0);
        file.or(folder).map(|size| Attrs { size: Some(size), ..Attrs::default() })
    }
}

fn put_at(file: &mut Vec<u8>, at: usize, data: &[u8]) {
    file.resize(file.len().max(at + data.len()), 0);
    file[at..at + data.len()].copy_from_slice(data);
}

fn text(path: &PathBytes<'_>) -> String {
    String::from_utf8(path.0.to_vec()).unwrap().trim_end_matches('/').to_owned()
}

fn number(handle: &HandleBytes<'_>) -> u32 {
    u32::from_be_bytes(handle.0.try_into().unwrap())
}

fn done(good: bool, failure: StatusCode) -> StatusCode {
    if good { StatusCode::OK } else { failure }
}

fn gone(good: bool) -> StatusCode {
    done(good, StatusCode::NO_SUCH_FILE)
}
