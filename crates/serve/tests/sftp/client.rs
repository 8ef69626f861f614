//! A client for tests: it sends the given packets and matches responses to requests.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use serve::files::{Core, VPath};
use serve::sftp::conn::Ended;
use serve::sftp::{Session, Settings, Uploads, conn};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use wire::sftp::packet::{Hello, LENGTH_BYTES, cut};
use wire::sftp::request::{
    OfHandle, OfPath, Open, Read, SetByHandle, SetByPath, Symlink, TwoPaths, Write,
};
use wire::sftp::{
    Attrs, Data, Extended, HandleBytes, OpenFlags, PacketType, PathBytes, Reply, Request,
    StatusCode, begin_packet, end_packet,
};
use wire::xdr::{Encode, Reader, Writer, decode_all};

use crate::ends::{In, Out};
use crate::scene::Scene;

/// The time limit for a response.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// A response, owned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Got {
    /// STATUS.
    Status(StatusCode),
    /// HANDLE.
    Handle(Vec<u8>),
    /// DATA.
    Data(Vec<u8>),
    /// NAME: names, lines and attributes.
    Names(Vec<(Vec<u8>, Vec<u8>, Attrs)>),
    /// ATTRS.
    Attrs(Attrs),
    /// EXTENDED_REPLY.
    Extended(Vec<u8>),
}

impl Got {
    fn of(reply: &Reply<'_>) -> Self {
        match reply {
            Reply::Status(status) => {
                assert!(!status.message.0.is_empty(), "{reply:?} has no words");
                Self::Status(status.code)
            }
            Reply::Handle(handle) => Self::Handle(handle.0.to_vec()),
            Reply::Data(data) => Self::Data(data.0.to_vec()),
            Reply::Name(names) => {
                let one = |name: &wire::sftp::Name<'_>| {
                    (name.filename.0.to_vec(), name.longname.0.to_vec(), name.attrs)
                };
                Self::Names(names.0.iter().map(one).collect())
            }
            Reply::Attrs(attrs) => Self::Attrs(*attrs),
            Reply::Extended(bytes) => Self::Extended(bytes.to_vec()),
        }
    }

    /// The handle.
    pub fn handle(self) -> Vec<u8> {
        match self {
            Self::Handle(handle) => handle,
            other => panic!("no handle: {other:?}"),
        }
    }

    /// The attributes.
    pub fn attrs(self) -> Attrs {
        match self {
            Self::Attrs(attrs) => attrs,
            other => panic!("no attributes: {other:?}"),
        }
    }
}

/// A channel, with a server at its other end.
pub struct Client {
    to: UnboundedSender<Vec<u8>>,
    from: UnboundedReceiver<Vec<u8>>,
    inbox: Vec<u8>,
    answers: HashMap<u32, Got>,
    next: u32,
    /// Bytes of requests that were not sent yet.
    batch: Vec<u8>,
    server: JoinHandle<Result<(), Ended>>,
    /// The extensions of VERSION.
    pub extensions: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The settings of most tests.
pub fn atomic_settings() -> Settings {
    Settings { umask: 0o022, uploads: Uploads::Atomic, root: VPath::ROOT, ..Settings::default() }
}

impl Client {
    /// A channel of `alice` after INIT and VERSION.
    pub async fn hello(core: &Rc<Core>, who: serve::files::Caller, settings: Settings) -> Self {
        let (to, requests) = unbounded_channel();
        let (answers, from) = unbounded_channel();
        let session = Session::new(Rc::clone(core), who, Arc::new(settings));
        let served = conn::serve(session, In(requests), Out(answers));
        let server = tokio::task::spawn_local(served);
        let mut client = Self {
            to,
            from,
            inbox: Vec::new(),
            answers: HashMap::new(),
            next: 1,
            batch: Vec::new(),
            server,
            extensions: Vec::new(),
        };
        let mut bytes = Vec::new();
        let mut w = Writer::new(&mut bytes);
        let begun = begin_packet(&mut w, PacketType::INIT);
        Hello { version: 3, extensions: Vec::new() }.encode(&mut w);
        end_packet(&mut w, begun, 0);
        client.raw(&bytes);
        client.version().await;
        client
    }

    async fn version(&mut self) {
        loop {
            if let Ok(Ok(packet)) = cut(&self.inbox) {
                assert_eq!(packet.kind, PacketType::VERSION);
                let hello: Hello<'_> = decode_all(packet.body).expect("VERSION");
                assert_eq!(hello.version, 3);
                let own = |(name, data): &(wire::sftp::Str<'_>, wire::sftp::Str<'_>)| {
                    (name.0.to_vec(), data.0.to_vec())
                };
                self.extensions = hello.extensions.iter().map(own).collect();
                let consumed = packet.consumed;
                self.inbox.drain(..consumed);
                return;
            }
            self.receive().await;
        }
    }

    async fn receive(&mut self) {
        let piece = tokio::time::timeout(PATIENCE, self.from.recv()).await.expect("in time");
        self.inbox.extend_from_slice(&piece.expect("the channel is open"));
    }

    /// Sends bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.to.send(bytes.to_vec()).expect("the server listens");
    }

    /// Adds a request to those that [`Client::flush`] will send; its id.
    pub fn put(&mut self, request: &Request<'_>) -> u32 {
        let id = self.next;
        self.next += 1;
        request.put(&mut Writer::new(&mut self.batch), id);
        id
    }

    /// Sends what was put, cut into pieces of `piece` bytes.
    pub fn flush(&mut self, piece: usize) {
        let batch = std::mem::take(&mut self.batch);
        batch.chunks(piece).for_each(|piece| self.raw(piece));
    }

    /// The response to a request.
    pub async fn answer(&mut self, id: u32) -> Got {
        loop {
            if let Some(got) = self.answers.remove(&id) {
                return got;
            }
            match cut(&self.inbox).expect("a packet") {
                Err(_) => self.receive().await,
                Ok(packet) => {
                    let mut r = Reader::new(packet.body);
                    let id = r.u32("id").expect("an id");
                    let reply = Reply::decode(packet.kind, &mut r).expect("a reply");
                    let got = Got::of(&reply.expect("a known reply"));
                    assert!(r.rest().is_empty(), "{got:?} is longer than it should be");
                    assert_eq!(self.answers.insert(id, got), None, "two answers to {id}");
                    let consumed = packet.consumed;
                    assert!(consumed > LENGTH_BYTES);
                    self.inbox.drain(..consumed);
                }
            }
        }
    }

    /// A request and its response.
    pub async fn call(&mut self, request: Request<'_>) -> Got {
        let id = self.put(&request);
        self.flush(usize::MAX);
        self.answer(id).await
    }

    /// A request that must succeed without bringing anything.
    pub async fn done(&mut self, request: Request<'_>) {
        let shown = format!("{request:?}");
        assert_eq!(self.call(request).await, Got::Status(StatusCode::OK), "{shown}");
    }

    /// Ends the requests; how the server has ended.
    pub async fn end(self) -> Result<(), Ended> {
        drop(self.to);
        tokio::time::timeout(PATIENCE, self.server).await.expect("in time").expect("no panic")
    }

    /// The connection is lost: whatever the server was doing for it is dropped.
    pub async fn lose(self) {
        self.server.abort();
        let _ = self.server.await;
    }

    /// Waits for the end of the server; its result.
    pub async fn ended(&mut self) -> Result<(), Ended> {
        let server = &mut self.server;
        tokio::time::timeout(PATIENCE, server).await.expect("in time").expect("no panic")
    }

    /// All names of a directory but `.` and `..`, sorted.
    pub async fn list(&mut self, path: &[u8]) -> Vec<Vec<u8>> {
        let handle = self.call(opendir(path)).await.handle();
        let mut names = Vec::new();
        loop {
            let request = Request::Readdir(OfHandle { handle: HandleBytes(&handle) });
            match self.call(request).await {
                Got::Names(some) => names.extend(some.into_iter().map(|(name, ..)| name)),
                Got::Status(StatusCode::EOF) => break,
                other => panic!("no names: {other:?}"),
            }
        }
        self.done(close(&handle)).await;
        names.retain(|name| name != b"." && name != b"..");
        names.sort();
        names
    }

    /// Writes a whole file.
    pub async fn put_file(&mut self, path: &[u8], data: &[u8]) {
        let handle = self.call(open(path, new_file())).await.handle();
        self.done(write(&handle, 0, data)).await;
        self.done(close(&handle)).await;
    }

    /// What is in a file.
    pub async fn get_file(&mut self, path: &[u8]) -> Vec<u8> {
        let handle = self.call(open(path, OpenFlags::READ)).await.handle();
        let mut data = Vec::new();
        loop {
            match self.call(read(&handle, data.len() as u64, 100_000)).await {
                Got::Data(some) => data.extend(some),
                Got::Status(StatusCode::EOF) => break,
                other => panic!("no data: {other:?}"),
            }
        }
        self.done(close(&handle)).await;
        data
    }
}

/// Flags of an upload.
pub fn new_file() -> OpenFlags {
    OpenFlags::WRITE.with(OpenFlags::CREAT).with(OpenFlags::TRUNC)
}

/// OPEN.
pub fn open(path: &[u8], pflags: OpenFlags) -> Request<'_> {
    Request::Open(Open { filename: PathBytes(path), pflags, attrs: Attrs::default() })
}

/// CLOSE.
pub fn close(handle: &[u8]) -> Request<'_> {
    Request::Close(OfHandle { handle: HandleBytes(handle) })
}

/// READ.
pub fn read(handle: &[u8], offset: u64, len: u32) -> Request<'_> {
    Request::Read(Read { handle: HandleBytes(handle), offset, len })
}

/// WRITE.
pub fn write<'a>(handle: &'a [u8], offset: u64, data: &'a [u8]) -> Request<'a> {
    Request::Write(Write { handle: HandleBytes(handle), offset, data: Data(data) })
}

/// STAT.
pub fn stat(path: &[u8]) -> Request<'_> {
    Request::Stat(OfPath { path: PathBytes(path) })
}

/// LSTAT.
pub fn lstat(path: &[u8]) -> Request<'_> {
    Request::Lstat(OfPath { path: PathBytes(path) })
}

/// FSTAT.
pub fn fstat(handle: &[u8]) -> Request<'_> {
    Request::Fstat(OfHandle { handle: HandleBytes(handle) })
}

/// SETSTAT.
pub fn setstat(path: &[u8], attrs: Attrs) -> Request<'_> {
    Request::Setstat(SetByPath { path: PathBytes(path), attrs })
}

/// FSETSTAT.
pub fn fsetstat(handle: &[u8], attrs: Attrs) -> Request<'_> {
    Request::Fsetstat(SetByHandle { handle: HandleBytes(handle), attrs })
}

/// OPENDIR.
pub fn opendir(path: &[u8]) -> Request<'_> {
    Request::Opendir(OfPath { path: PathBytes(path) })
}

/// REMOVE.
pub fn remove(path: &[u8]) -> Request<'_> {
    Request::Remove(OfPath { path: PathBytes(path) })
}

/// MKDIR.
pub fn mkdir(path: &[u8]) -> Request<'_> {
    Request::Mkdir(SetByPath { path: PathBytes(path), attrs: Attrs::default() })
}

/// RMDIR.
pub fn rmdir(path: &[u8]) -> Request<'_> {
    Request::Rmdir(OfPath { path: PathBytes(path) })
}

/// RENAME.
pub fn rename<'a>(from: &'a [u8], to: &'a [u8]) -> Request<'a> {
    Request::Rename(TwoPaths { oldpath: PathBytes(from), newpath: PathBytes(to) })
}

/// posix-rename.
pub fn replace<'a>(from: &'a [u8], to: &'a [u8]) -> Request<'a> {
    let paths = TwoPaths { oldpath: PathBytes(from), newpath: PathBytes(to) };
    Request::Extended(Extended::PosixRename(paths))
}

/// SYMLINK.
pub fn symlink<'a>(target: &'a [u8], at: &'a [u8]) -> Request<'a> {
    Request::Symlink(Symlink { targetpath: PathBytes(target), linkpath: PathBytes(at) })
}

/// Runs a test with a channel of `alice` on the share `share` in memory.
pub fn with_client<F, T>(scene: &Scene, test: F)
where
    F: FnOnce(Rc<Core>, Client, serve::files::Caller) -> T + Send + 'static,
    T: Future<Output = ()> + 'static,
{
    let who = scene.caller("alice");
    scene.run(move |core| async move {
        let client = Client::hello(&core, who.clone(), atomic_settings()).await;
        test(core, client, who).await;
    });
}
