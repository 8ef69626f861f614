//! A client of SMB: its names are in UTF-16LE, as they were listed.

use std::net::{Ipv4Addr, SocketAddr};

use e2e::smb::{EVERYTHING, Offer, SHARED, Smb};
use e2e::tcp::HERE;
use serve::smb::{Server, Settings};
use serve::transport::listener::listen;
use wire::smb::class::file_class;
use wire::smb::codec::Field;
use wire::smb::create::{self, Disposition, FileId, access, options};
use wire::smb::dir::{Level, Request as QueryDirectory, entries, output};
use wire::smb::header::Command;
use wire::smb::status::NtStatus;
use wire::smb::utf16;

use super::{Opened, Path};
use crate::scene::{Scene, Serving};

/// Bytes of a response.
const COUNT: u32 = 4096;
const BACKSLASH: [u8; 2] = [b'\\', 0];

/// A running service.
pub struct Running {
    at: SocketAddr,
    _tasks: Serving,
    _scene: Scene,
}

impl Running {
    pub fn over(scene: Scene) -> Self {
        let socket = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a port");
        let at = socket.local_addr().expect("an address");
        let server = Server::new(Settings::default(), [7; 16]);
        let tasks = Serving(server.start(&scene.files, &scene.runtimes, vec![socket]));
        Self { at, _tasks: tasks, _scene: scene }
    }

    pub fn client(&self, share: &str) -> Client {
        let smb = Smb::open((HERE, self.at), &Offer::default(), ("alice", "secret"), share);
        Client(smb.expect("alice"))
    }
}

/// A client.
pub struct Client(Smb);

impl Client {
    fn create(&mut self, path: &Path, access: u32, options: u32) -> Result<FileId, NtStatus> {
        let name = path.join(&BACKSLASH[..]);
        let ask = create::Request {
            oplock: 0,
            impersonation: 2,
            access,
            attributes: 0,
            share: SHARED,
            disposition: Disposition::Open as u32,
            options,
            name: &name,
            contexts: &[],
        };
        let answer = self.0.call(Command::CREATE, 0, &|out| ask.put(out, 0)).expect("an answer");
        match answer.status() {
            NtStatus::SUCCESS => Ok(create::Response::decode(&answer.message).expect("one").file),
            refused => Err(refused),
        }
    }

    fn close(&mut self, file: FileId) {
        assert_eq!(self.0.close(file).expect("an answer"), NtStatus::SUCCESS);
    }
}

impl super::Client for Client {
    const FOLLOWS: bool = true;

    fn shown(&self, name: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        utf16::encode_name(name, &mut out);
        out
    }

    fn list(&mut self, dir: &Path) -> Vec<Vec<u8>> {
        let file = self.create(dir, access::READ, options::DIRECTORY).expect("a directory");
        let (pattern, level) = (utf16::encode("*"), Level::IdBoth);
        let ask = QueryDirectory {
            level: level as u8,
            flags: 0,
            file,
            pattern: &pattern,
            output_max: COUNT,
        };
        let mut names = Vec::new();
        loop {
            let answer = self.0.call(Command::QUERY_DIRECTORY, 0, &|out| ask.put(out));
            let answer = answer.expect("an answer");
            if answer.status() == NtStatus::NO_MORE_FILES {
                break;
            }
            assert_eq!(answer.status(), NtStatus::SUCCESS);
            let listed = entries(level, output(&answer.message).expect("entries"));
            names.extend(listed.expect("entries").into_iter().map(|entry| entry.name));
        }
        self.close(file);
        let own = [utf16::encode("."), utf16::encode("..")];
        names.retain(|name| !own.contains(name));
        names
    }

    fn open(&mut self, path: &Path) -> Opened {
        // Whatever it is, its attributes are there.
        let file = self.create(path, access::READ_ATTRIBUTES, 0);
        self.close(file.expect("its attributes"));
        if let Ok(dir) = self.create(path, access::READ, options::DIRECTORY) {
            self.close(dir);
            return Opened::Directory;
        }
        let file = match self.create(path, EVERYTHING, options::NON_DIRECTORY) {
            Ok(file) => file,
            Err(
                NtStatus::ACCESS_DENIED
                | NtStatus::OBJECT_NAME_NOT_FOUND
                | NtStatus::REPARSE_POINT_NOT_RESOLVED,
            ) => return Opened::Nothing,
            Err(other) => panic!("{other:?}: {path:x?}"),
        };
        let data = self.0.read(file, 0, COUNT).expect("an answer").expect("data");
        self.close(file);
        Opened::Data(data)
    }

    fn rename(&mut self, from: &Path, to: &Path) -> bool {
        let Ok(file) = self.create(from, access::DELETE, 0) else { return false };
        let (name, mut content) = (to.join(&BACKSLASH[..]), vec![0; 16]);
        (name.len() as u32).put(&mut content);
        content.extend(name);
        let renamed = self.0.set(file, file_class::RENAME, &content).expect("an answer");
        self.close(file);
        renamed == NtStatus::SUCCESS
    }

    fn remove(&mut self, path: &Path, _: bool) -> bool {
        match self.create(path, access::DELETE, options::DELETE_ON_CLOSE) {
            Ok(file) => {
                self.close(file);
                true
            }
            Err(_) => false,
        }
    }
}
