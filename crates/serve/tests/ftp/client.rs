//! A service, and a client of it that waits for every reply.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::ServerName;
use rustls::{
    ALL_VERSIONS, ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    SupportedProtocolVersion,
};
use serve::files::{Links, VPath};
use serve::ftp::{Entry, Server, Settings};
use serve::transport::listener::listen;
use serve::transport::tls::{Credentials, Tls};
use vfs::share::Service;
use wire::ftp::reply::{self, Reply};
use wire::ftp::{Request, Verb, addr};

use crate::scene::{Scene, Serving};

/// Time limit for replies of the server.
pub const PATIENCE: Duration = Duration::from_secs(80);

/// A running service.
pub struct Running {
    tasks: Serving,
    pub scene: Scene,
    pub server: Arc<Server>,
    pub explicit: SocketAddr,
    pub implicit: SocketAddr,
    pub config: Arc<ClientConfig>,
    roots: RootCertStore,
}

impl Running {
    /// The share `share` in memory, with these settings.
    pub fn with(settings: Settings) -> Self {
        Self::over(Scene::in_memory(Service::Ftp), settings)
    }

    /// What is in the scene.
    pub fn over(scene: Scene, settings: Settings) -> Self {
        let (tls, roots) = certificates();
        let config = trusting(&roots, ALL_VERSIONS);
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let sockets = [Entry::Explicit, Entry::Implicit];
        let sockets = sockets.map(|entry| (listen(any).expect("a port"), entry));
        let [explicit, implicit] =
            [&sockets[0].0, &sockets[1].0].map(|socket| socket.local_addr().expect("an address"));
        let server = Server::new(settings, Some(tls));
        let tasks = Serving(server.start(&scene.files, &scene.runtimes, sockets.into()));
        Self { tasks, scene, server, explicit, implicit, config, roots }
    }

    /// Ends the service, which takes as long as it lets running transfers continue.
    pub fn end(&mut self) -> std::thread::JoinHandle<()> {
        let tasks = self.tasks.0.take().expect("it runs");
        std::thread::spawn(move || {
            tasks.end_blocking().expect("a timer");
        })
    }

    /// What a client with sessions of its own speaks TLS with.
    pub fn config_of(&self, version: &'static SupportedProtocolVersion) -> Arc<ClientConfig> {
        trusting(&self.roots, &[version])
    }

    /// A client that has read the greeting.
    pub fn client(&self) -> Client {
        let mut client = Client::to(self.explicit);
        assert_eq!(client.reply().code, 220);
        client
    }

    /// A client that has signed in, and is in the share.
    pub fn signed_in(&self) -> Client {
        let mut client = self.client();
        client.sign_in("alice", "secret");
        assert_eq!(client.code_of("CWD /share"), 250);
        assert_eq!(client.code_of("TYPE I"), 200);
        client
    }
}

impl Running {
    /// Makes a symbolic link in the share, as a client of another protocol would.
    pub fn link(&self, at: &str, target: &str) {
        let who = self.scene.caller("alice");
        let path = VPath::parse(format!("/share/{at}").as_bytes()).expect("a path");
        let target = target.as_bytes().to_vec();
        self.scene.run(move |core| async move {
            let spot = core.spot(&who, &path, Links::Keep).await.expect("a place");
            core.symlink(&who, &spot, &target).await.expect("a link");
        });
    }
}

/// The server's certificate, and the roots of a client that trusts it.
fn certificates() -> (Arc<Tls>, RootCertStore) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let (certificate, key) = (cert.pem(), signing_key.serialize_pem());
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).expect("a root");
    let tls = Tls::for_ftp(&Credentials { certificate, key, client_ca: None });
    (tls.expect("credentials"), roots)
}

fn trusting(
    roots: &RootCertStore,
    versions: &[&'static SupportedProtocolVersion],
) -> Arc<ClientConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .expect("versions")
        .with_root_certificates(roots.clone())
        .with_no_client_auth();
    Arc::new(config)
}

/// A connection, unencrypted or with TLS.
pub enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    pub fn secure(self, config: &Arc<ClientConfig>) -> Self {
        let Self::Plain(socket) = self else { panic!("secured twice") };
        let name = ServerName::try_from("localhost").expect("a name");
        let session = ClientConnection::new(Arc::clone(config), name).expect("a session");
        Self::Tls(Box::new(StreamOwned::new(session, socket)))
    }

    pub fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(tls) => &tls.sock,
        }
    }

    /// Ends the sending direction, if the server has not gone before.
    pub fn try_finish(&self) {
        let _ = self.socket().shutdown(Shutdown::Write);
    }

    /// Ends the sending direction.
    pub fn finish(&mut self) {
        if let Self::Tls(tls) = self {
            tls.conn.send_close_notify();
            tls.flush().expect("sent");
        }
        self.socket().shutdown(Shutdown::Write).expect("a connection");
    }

    /// Everything that comes.
    pub fn all(mut self) -> Vec<u8> {
        let mut all = Vec::new();
        self.read_to_end(&mut all).expect("everything");
        all
    }
}

impl Read for Stream {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buf),
            Self::Tls(tls) => tls.read(buf),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(buf),
            Self::Tls(tls) => tls.write(buf),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(tls) => tls.flush(),
        }
    }
}

/// A client.
pub struct Client {
    pub stream: Option<Stream>,
    came: Vec<u8>,
    /// With what data connections are secured.
    pub protect: Option<Arc<ClientConfig>>,
}

pub fn connect(to: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(to).expect("a connection");
    socket.set_read_timeout(Some(PATIENCE)).expect("a time");
    socket.set_write_timeout(Some(PATIENCE)).expect("a time");
    socket
}

impl Client {
    pub fn to(at: SocketAddr) -> Self {
        Self { stream: Some(Stream::Plain(connect(at))), came: Vec::new(), protect: None }
    }

    pub fn stream(&mut self) -> &mut Stream {
        self.stream.as_mut().expect("a stream")
    }

    /// Puts TLS over the control connection.
    pub fn secure(&mut self, config: &Arc<ClientConfig>) {
        let stream = self.stream.take().expect("a stream");
        self.stream = Some(stream.secure(config));
    }

    /// The next reply; `None` at the end of the connection.
    pub fn next(&mut self) -> Option<Reply> {
        loop {
            if let Some((reply, taken)) = reply::decode(&self.came).expect("a reply") {
                self.came.drain(..taken);
                return Some(reply);
            }
            let mut room = [0; 4096];
            match self.stream().read(&mut room) {
                Ok(0) => return None,
                Ok(n) => self.came.extend_from_slice(&room[..n]),
                // The connection was reset while data of this client was in flight.
                Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => return None,
                Err(e) => panic!("no reply: {e}"),
            }
        }
    }

    pub fn reply(&mut self) -> Reply {
        self.next().expect("a reply")
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream().write_all(bytes).expect("sent");
        self.stream().flush().expect("sent");
    }

    /// Sends a line; the code of the reply.
    pub fn code_of(&mut self, line: &str) -> u16 {
        self.ask(line).code
    }

    /// Sends a line; the reply.
    pub fn ask(&mut self, line: &str) -> Reply {
        self.send(format!("{line}\r\n").as_bytes());
        self.reply()
    }

    /// The text in the last line of the reply.
    pub fn text(&mut self, line: &str) -> String {
        let reply = self.ask(line);
        String::from_utf8(reply.lines.last().expect("a line").clone()).expect("text")
    }

    /// Sends a request with any bytes in it.
    pub fn request(&mut self, request: &Request<'_>) -> Reply {
        let mut out = Vec::new();
        request.encode(&mut out);
        self.send(&out);
        self.reply()
    }

    pub fn sign_in(&mut self, name: &str, password: &str) {
        assert_eq!(self.code_of(&format!("USER {name}")), 331);
        assert_eq!(self.code_of(&format!("PASS {password}")), 230);
    }

    /// Where the server waits for a data connection.
    pub fn passive(&mut self) -> SocketAddr {
        let reply = self.ask("EPSV");
        assert_eq!(reply.code, 229);
        let port = addr::epsv_reply(&reply.lines[0]).expect("a port");
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    }

    /// Begins a transfer; its data connection.
    pub fn begin(&mut self, request: &Request<'_>) -> Stream {
        let at = self.passive();
        let data = Stream::Plain(connect(at));
        let reply = self.request(request);
        assert_eq!(reply.code, 150, "{:?}", String::from_utf8_lossy(&reply.lines[0]));
        match &self.protect {
            Some(config) => data.secure(&Arc::clone(config)),
            None => data,
        }
    }

    /// All data of a transfer to here.
    pub fn fetch(&mut self, request: &Request<'_>) -> Vec<u8> {
        let data = self.begin(request).all();
        assert_eq!(self.reply().code, 226);
        data
    }

    pub fn get(&mut self, path: &str) -> Vec<u8> {
        self.fetch(&Request::Text(Verb::Retr, path.as_bytes()))
    }

    /// Sends data; the code at the end.
    pub fn store(&mut self, request: &Request<'_>, data: &[u8]) -> u16 {
        let mut stream = self.begin(request);
        stream.write_all(data).expect("taken");
        stream.finish();
        self.reply().code
    }

    pub fn put(&mut self, path: &str, data: &[u8]) {
        let request = Request::Text(Verb::Stor, path.as_bytes());
        assert_eq!(self.store(&request, data), 226);
    }

    /// Names in the directory where it is.
    pub fn names(&mut self) -> Vec<String> {
        let text = self.fetch(&Request::Maybe(Verb::Nlst, None));
        String::from_utf8(text).expect("text").lines().map(str::to_owned).collect()
    }
}

/// A listener on an address of this machine.
pub fn listener(at: IpAddr) -> TcpListener {
    TcpListener::bind((at, 0)).expect("a port")
}
