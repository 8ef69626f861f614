//! A client of SFTP that waits for each response.

use std::sync::Arc;

use serve::files::VPath;
use serve::sftp::{Session, Settings, conn};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use wire::sftp::packet::{Hello, cut};
use wire::sftp::request::{OfHandle, OfPath, Open, SetByPath, Symlink, TwoPaths, Write};
use wire::sftp::{
    Attrs, Data, Extended, HandleBytes, OpenFlags, PacketType, PathBytes, Reply, Request,
    StatusCode, begin_packet, end_packet,
};
use wire::xdr::{Encode, Reader, Writer};

use crate::ends::{In, Out};
use crate::op::What;
use crate::scene::Scene;

/// A channel of `alice`.
pub struct Sftp {
    to: UnboundedSender<Vec<u8>>,
    from: UnboundedReceiver<Vec<u8>>,
    inbox: Vec<u8>,
    next: u32,
    _scene: Scene,
}

impl Sftp {
    /// A client after INIT and VERSION.
    pub fn over(scene: Scene) -> Self {
        let (to, requests) = unbounded_channel();
        let (answers, from) = unbounded_channel();
        let (who, files) = (scene.caller("alice"), Arc::clone(&scene.files));
        scene.runtimes.spawn_on(0, move || async move {
            let core = serve::files::Core::new(0, 2, files);
            let settings = Settings { root: VPath::ROOT, ..Settings::default() };
            let session = Session::new(core, who, Arc::new(settings));
            // The test that ends takes no notice.
            let _ = conn::serve(session, In(requests), Out(answers)).await;
        });
        let mut client = Self { to, from, inbox: Vec::new(), next: 1, _scene: scene };
        let mut bytes = Vec::new();
        let mut w = Writer::new(&mut bytes);
        let begun = begin_packet(&mut w, PacketType::INIT);
        Hello { version: 3, extensions: Vec::new() }.encode(&mut w);
        end_packet(&mut w, begun, 0);
        client.to.send(bytes).expect("the server listens");
        client.packet();
        client
    }

    /// The next packet, without its length.
    fn packet(&mut self) -> (PacketType, Vec<u8>) {
        loop {
            if let Ok(packet) = cut(&self.inbox).expect("a packet") {
                let (kind, body, consumed) = (packet.kind, packet.body.to_vec(), packet.consumed);
                self.inbox.drain(..consumed);
                return (kind, body);
            }
            let piece = self.from.blocking_recv().expect("the channel is open");
            self.inbox.extend_from_slice(&piece);
        }
    }

    /// Sends a request; the packet of its reply.
    pub fn exchange(&mut self, request: &Request<'_>) -> (PacketType, Vec<u8>) {
        let mut bytes = Vec::new();
        request.put(&mut Writer::new(&mut bytes), self.next);
        self.next += 1;
        self.to.send(bytes).expect("the server listens");
        self.packet()
    }

    /// Sends a request; returns a handle, or nothing, if it succeeds.
    pub fn ask(&mut self, request: &Request<'_>) -> Option<Vec<u8>> {
        let (kind, body) = self.exchange(request);
        let mut r = Reader::new(&body);
        r.u32("id").expect("an id");
        match Reply::decode(kind, &mut r).expect("a reply").expect("a known one") {
            Reply::Status(status) => (status.code == StatusCode::OK).then(Vec::new),
            Reply::Handle(handle) => Some(handle.0.to_vec()),
            other => panic!("{other:?}"),
        }
    }

    fn put(&mut self, path: &str, data: &[u8]) -> bool {
        let pflags = OpenFlags::WRITE.with(OpenFlags::CREAT).with(OpenFlags::TRUNC);
        let filename = PathBytes(path.as_bytes());
        let open = Request::Open(Open { filename, pflags, attrs: Attrs::default() });
        let Some(handle) = self.ask(&open) else { return false };
        let handle = HandleBytes(&handle);
        let write = Request::Write(Write { handle, offset: 0, data: Data(data) });
        assert!(self.ask(&write).is_some(), "{path} was opened for writing");
        self.ask(&Request::Close(OfHandle { handle })).is_some()
    }

    /// Sends a request; whether the response is OK.
    pub fn perform(&mut self, what: &What) -> bool {
        let texts =
            |from: &crate::op::SharePath, to: &crate::op::SharePath| (from.text(), to.text());
        let of = |path| OfPath { path: PathBytes(path) };
        match what {
            What::Put(at, data) => self.put(&at.text(), data.as_bytes()),
            What::Mkdir(at) => {
                let (path, attrs) = (at.text(), Attrs::default());
                let path = PathBytes(path.as_bytes());
                self.ask(&Request::Mkdir(SetByPath { path, attrs })).is_some()
            }
            What::Remove(at) => self.ask(&Request::Remove(of(at.text().as_bytes()))).is_some(),
            What::Rmdir(at) => self.ask(&Request::Rmdir(of(at.text().as_bytes()))).is_some(),
            What::Symlink(at, target) => {
                let (link, target) = (at.text(), PathBytes(target.as_bytes()));
                let linkpath = PathBytes(link.as_bytes());
                let asked = Request::Symlink(Symlink { targetpath: target, linkpath });
                self.ask(&asked).is_some()
            }
            What::Link(from, to) => {
                let (from, to) = texts(from, to);
                let paths = two(&from, &to);
                self.ask(&Request::Extended(Extended::Hardlink(paths))).is_some()
            }
            What::Rename { from, to, replaces } => {
                let (from, to) = texts(from, to);
                let paths = two(&from, &to);
                self.ask(&match replaces {
                    true => Request::Extended(Extended::PosixRename(paths)),
                    false => Request::Rename(paths),
                })
                .is_some()
            }
            What::Copy { .. } => panic!("not over SFTP: {what:?}"),
        }
    }
}

fn two<'a>(from: &'a str, to: &'a str) -> TwoPaths<'a> {
    TwoPaths { oldpath: PathBytes(from.as_bytes()), newpath: PathBytes(to.as_bytes()) }
}
