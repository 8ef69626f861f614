//! The clients of an interleaved run: uploads that continue step by step over each way to the
//! directory, and what they list and remove.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use base::random::{Random, SeededRandom};
use e2e::ftp::Ftp;
use e2e::http::Http;
use e2e::server::{Server, binary};
use e2e::sftp::Sftp;
use e2e::tcp::HERE;
use wire::sftp::packet::{Hello, cut};
use wire::sftp::request::{OfHandle, OfPath, Open, Write as WriteArgs};
use wire::sftp::{
    Attrs, Data, HandleBytes, OpenFlags, PacketType, PathBytes, Reply, Request, StatusCode,
    begin_packet, end_packet,
};
use wire::xdr::{Encode, Reader, Writer};

/// Largest WRITE.
const WRITE_MAX: usize = 32_768;

/// The ways to the directory: its servers, its path, and the password.
pub struct Clients<'a> {
    pub servers: [&'a Server; 2],
    pub dir: &'a Path,
    pub password: &'a str,
}

/// A way on which a file goes.
enum Transport {
    Http(Http),
    Ftp(Ftp, TcpStream),
    Sftp(Box<Sftp>, Vec<u8>),
    Subsystem(Subsystem, Vec<u8>),
}

/// A file that is being uploaded.
pub struct Upload {
    name: String,
    data: Vec<u8>,
    sent: usize,
    way: Transport,
    server: Option<usize>,
    /// What was made for it when it began.
    pub temporary: Vec<String>,
}

impl fmt::Display for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = match &self.way {
            Transport::Http(_) => "HTTP",
            Transport::Ftp(..) => "FTP",
            Transport::Sftp(..) => "SFTP",
            Transport::Subsystem(..) => "the subsystem",
        };
        let Self { name, sent, data, server, .. } = self;
        write!(f, "{name} over {way} of {server:?}: {sent} of {}", data.len())
    }
}

fn new_file() -> OpenFlags {
    OpenFlags::WRITE.with(OpenFlags::CREAT).with(OpenFlags::TRUNC)
}

impl Clients<'_> {
    pub fn http(&self, server: usize) -> Http {
        let who = ("anna", self.password);
        Http::connect(HERE, self.servers[server].at(80), who).expect("HTTP")
    }

    fn ftp(&self, server: usize) -> Ftp {
        let mut ftp = Ftp::connect(HERE, self.servers[server].at(21)).expect("FTP");
        assert_eq!(ftp.sign_in("anna", self.password).expect("FTP"), 230);
        assert_eq!(ftp.code("CWD /box"), 250);
        assert_eq!(ftp.code("TYPE I"), 200);
        ftp
    }

    pub fn sftp(&self, server: usize) -> Sftp {
        let who = ("anna", self.password);
        Sftp::connect(HERE, self.servers[server].at(218), who).expect("SFTP")
    }

    /// Begins to upload a file.
    pub fn begin(&self, random: &mut SeededRandom, name: &str, data: Vec<u8>) -> Upload {
        let server = random.below(2) as usize;
        let (mut at, path) = (Some(server), format!("/box/{name}"));
        let way = match random.below(4) {
            0 => {
                let mut http = self.http(server);
                let begun = http.begin(("PUT", path.as_bytes()), b"", data.len(), b"");
                begun.expect("a request");
                Transport::Http(http)
            }
            1 => {
                let mut ftp = self.ftp(server);
                let stream = ftp.begin(format!("STOR {name}")).expect("FTP").expect("begun");
                Transport::Ftp(ftp, stream)
            }
            2 => {
                let mut sftp = self.sftp(server);
                let handle = sftp.open(&path, new_file()).expect("SFTP").expect("opened");
                Transport::Sftp(Box::new(sftp), handle)
            }
            _ => {
                at = None;
                let mut subsystem = Subsystem::start(self.dir);
                let handle = subsystem.open(name);
                Transport::Subsystem(subsystem, handle)
            }
        };
        Upload { name: name.to_owned(), data, sent: 0, way, server: at, temporary: Vec::new() }
    }

    /// Lists the directory over some way; which, and the names.
    pub fn list(&self, random: &mut SeededRandom) -> (&'static str, Vec<String>) {
        let server = random.below(2) as usize;
        match random.below(3) {
            0 => ("HTTP", self.propfind(server)),
            1 => ("FTP", self.list_by(server)),
            _ => ("the subsystem", Subsystem::start(self.dir).list()),
        }
    }

    fn propfind(&self, server: usize) -> Vec<String> {
        let asked = self.http(server).ask(("PROPFIND", b"/box/"), b"depth: 1\r\n", b"");
        let (status, _, body) = asked.expect("an answer");
        assert_eq!(status, 207);
        let body = String::from_utf8(body).expect("text");
        let hrefs = body.split("href>/box/").skip(1);
        let names = hrefs.map(|rest| rest.split('<').next().unwrap_or_default().to_owned());
        names.filter(|name| !name.is_empty()).collect()
    }

    /// What a server lists over FTP.
    pub fn list_by(&self, server: usize) -> Vec<String> {
        let (code, names) = self.ftp(server).data("NLST", None).expect("FTP");
        assert_eq!(code, 226);
        String::from_utf8(names).expect("text").lines().map(str::to_owned).collect()
    }

    /// Removes a file over some way.
    pub fn remove(&self, random: &mut SeededRandom, name: &str) {
        let (server, path) = (random.below(2) as usize, format!("/box/{name}"));
        match random.below(3) {
            0 => {
                let asked = self.http(server).ask(("DELETE", path.as_bytes()), b"", b"");
                assert_eq!(asked.expect("an answer").0, 204);
            }
            1 => assert_eq!(self.ftp(server).code(format!("DELE {name}")), 250),
            _ => {
                let removed = self.sftp(server).remove(&path).expect("SFTP");
                assert_eq!(removed, StatusCode::OK);
            }
        }
    }
}

impl Upload {
    /// Through which server it goes.
    pub fn server(&self) -> Option<usize> {
        self.server
    }

    /// Sends some more of it, but not all.
    pub fn send_more(&mut self, count: usize) {
        let end = (self.sent + count).min(self.data.len() - 1);
        self.send(end);
    }

    fn send(&mut self, end: usize) {
        while self.sent < end {
            let (at, part) = (self.sent as u64, (end - self.sent).min(WRITE_MAX));
            let data = &self.data[self.sent..self.sent + part];
            match &mut self.way {
                Transport::Http(http) => http.send(data).expect("taken"),
                Transport::Ftp(_, stream) => stream.write_all(data).expect("taken"),
                Transport::Sftp(sftp, handle) => {
                    assert_eq!(sftp.write(handle, at, data).expect("SFTP"), StatusCode::OK);
                }
                Transport::Subsystem(subsystem, handle) => {
                    let (handle, data) = (HandleBytes(handle), Data(data));
                    let write = Request::Write(WriteArgs { handle, offset: at, data });
                    assert!(subsystem.ask(&write).is_some(), "written");
                }
            }
            self.sent += part;
        }
    }

    /// Sends the rest, and hears that it is there; the name, and what it has.
    pub fn finish(mut self) -> (String, Vec<u8>) {
        self.send(self.data.len());
        match self.way {
            Transport::Http(mut http) => {
                let status = http.answer("PUT").expect("an answer").0;
                assert!(matches!(status, 201 | 204), "{status}");
            }
            Transport::Ftp(mut ftp, stream) => {
                drop(stream);
                assert_eq!(ftp.reply().expect("a reply").0, 226);
            }
            Transport::Sftp(mut sftp, handle) => {
                assert_eq!(sftp.close(&handle).expect("SFTP"), StatusCode::OK);
            }
            Transport::Subsystem(mut subsystem, handle) => {
                let close = Request::Close(OfHandle { handle: HandleBytes(&handle) });
                assert!(subsystem.ask(&close).is_some(), "closed");
            }
        }
        (self.name, self.data)
    }

    /// Goes away; what stays if its process was killed.
    pub fn lose(self) -> Vec<String> {
        match self.way {
            // The other way round it would be the end of a file: FTP has no other word for that.
            Transport::Ftp(ftp, stream) => {
                drop(ftp);
                drop(stream);
            }
            Transport::Subsystem(mut subsystem, _) if self.sent.is_multiple_of(2) => {
                subsystem.kill();
                return self.temporary;
            }
            _ => {}
        }
        Vec::new()
    }
}

/// The program that an sshd runs, as a child.
struct Subsystem {
    child: Child,
    to: Option<ChildStdin>,
    from: ChildStdout,
    inbox: Vec<u8>,
    next: u32,
}

impl Subsystem {
    /// With this directory as `/`.
    fn start(root: &Path) -> Self {
        let mut command = Command::new(binary());
        command.args(["sftp-server", "-d", "/", "--root"]).arg(root);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // An sshd starts it as the user, here as anna.
        if e2e::is_root() {
            command.uid(4321).gid(4322);
        }
        let mut child = command.spawn().expect("the subsystem");
        let to = child.stdin.take();
        let from = child.stdout.take().expect("its output");
        let mut subsystem = Self { child, to, from, inbox: Vec::new(), next: 0 };
        let mut hello = Vec::new();
        let w = &mut Writer::new(&mut hello);
        let begun = begin_packet(w, PacketType::INIT);
        Hello { version: 3, extensions: Vec::new() }.encode(w);
        end_packet(w, begun, 0);
        subsystem.send(&hello).expect("taken");
        assert_eq!(subsystem.packet().0, PacketType::VERSION);
        subsystem
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let to = self.to.as_mut().expect("its input");
        to.write_all(bytes)?;
        to.flush()
    }

    fn packet(&mut self) -> (PacketType, Vec<u8>) {
        loop {
            if let Ok(packet) = cut(&self.inbox).expect("a packet") {
                let (kind, body, consumed) = (packet.kind, packet.body.to_vec(), packet.consumed);
                self.inbox.drain(..consumed);
                return (kind, body);
            }
            let mut part = [0; 65_536];
            let got = self.from.read(&mut part).expect("it is there");
            assert!(got > 0, "the subsystem has ended");
            self.inbox.extend_from_slice(&part[..got]);
        }
    }

    /// Asks; a handle, or nothing, if it is done.
    fn ask(&mut self, request: &Request<'_>) -> Option<Vec<u8>> {
        let (kind, body) = self.call(request);
        let mut r = Reader::new(&body);
        r.u32("id").expect("an id");
        match Reply::decode(kind, &mut r).expect("a reply").expect("a known one") {
            Reply::Status(status) => (status.code == StatusCode::OK).then(Vec::new),
            Reply::Handle(handle) => Some(handle.0.to_vec()),
            other => panic!("{other:?}"),
        }
    }

    fn call(&mut self, request: &Request<'_>) -> (PacketType, Vec<u8>) {
        let mut bytes = Vec::new();
        self.next += 1;
        request.put(&mut Writer::new(&mut bytes), self.next);
        self.send(&bytes).expect("taken");
        self.packet()
    }

    fn open(&mut self, name: &str) -> Vec<u8> {
        let filename = PathBytes(name.as_bytes());
        let open = Open { filename, pflags: new_file(), attrs: Attrs::default() };
        self.ask(&Request::Open(open)).expect("opened")
    }

    fn list(&mut self) -> Vec<String> {
        let handle = self.ask(&Request::Opendir(OfPath { path: PathBytes(b"/") }));
        let handle = handle.expect("opened");
        let mut names = Vec::new();
        loop {
            let (kind, body) =
                self.call(&Request::Readdir(OfHandle { handle: HandleBytes(&handle) }));
            let mut r = Reader::new(&body);
            r.u32("id").expect("an id");
            let Ok(Some(Reply::Name(some))) = Reply::decode(kind, &mut r) else { break };
            let name = |name: &wire::sftp::Name<'_>| name.filename.0.to_vec();
            names.extend(some.0.iter().map(|one| String::from_utf8(name(one)).expect("text")));
        }
        names.retain(|name| name != "." && name != "..");
        names
    }

    /// As a power cut would.
    fn kill(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

impl Drop for Subsystem {
    /// The connection is lost: the process ends without a signal.
    fn drop(&mut self) {
        drop(self.to.take());
        let _ended = self.child.wait();
    }
}
