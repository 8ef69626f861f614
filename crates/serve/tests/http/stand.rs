//! A server in this process, and a client that sends exactly the given bytes.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use base::limits::PEER_PATIENCE;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serve::http::{Http, Plain, Port, Settings, SignIn, serve};
use serve::transport::Tasks;
use serve::transport::listener::listen;
use serve::transport::tls::{Credentials, Offer, Tls};
use vfs::share::Service;

use crate::scene::{Scene, Scratch};

/// A server with a plain and a secure port.
pub struct Stand {
    /// What it is made of.
    pub scene: Scene,
    /// The service.
    pub http: Arc<Http>,
    /// Where it is without TLS.
    pub plain: SocketAddr,
    /// Where it is with TLS.
    pub secure: SocketAddr,
    certificate: String,
    _tasks: Tasks,
}

/// Access without signing in, without TLS too.
pub fn open() -> Settings {
    Settings { plain: Plain::Serve, sign_in: SignIn::None, ..Settings::default() }
}

/// Access after signing in only, without TLS too.
pub fn closed() -> Settings {
    Settings { plain: Plain::Serve, basic_over_plain: true, ..Settings::default() }
}

impl Stand {
    /// A server with these settings.
    pub fn new(settings: Settings) -> Self {
        Self::over(Scene::in_memory(Service::Http), settings)
    }

    /// A server of a folder, with access without signing in.
    pub fn of(folder: &Scratch) -> Self {
        Self::over(Scene::in_folder(Service::Http, folder, PEER_PATIENCE), open())
    }

    /// A server of what a scene has.
    pub fn over(scene: Scene, settings: Settings) -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let certificate = made.cert.pem();
        let key = made.signing_key.serialize_pem();
        let shown = Credentials { certificate: certificate.clone(), key, client_ca: None };
        let tls = Tls::offering(&shown, Offer::HTTP).unwrap();
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let (plain, secure) = (listen(any).unwrap(), listen(any).unwrap());
        let at = (plain.local_addr().unwrap(), secure.local_addr().unwrap());
        let settings = Settings { secure_port: at.1.port(), ..settings };
        let http = Http::new(Arc::clone(&scene.files), Some(tls), settings);
        let sockets = vec![(plain, Port::Plain), (secure, Port::Secure)];
        let tasks = serve(&http, &scene.runtimes, sockets).unwrap();
        Self { scene, http, plain: at.0, secure: at.1, certificate, _tasks: tasks }
    }

    /// A connection without TLS.
    pub fn client(&self) -> Client {
        let stream = TcpStream::connect(self.plain).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Client { stream: Box::new(stream), came: Vec::new(), host: self.plain.to_string() }
    }

    /// What a client believes.
    pub fn believes(&self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        builder.with_root_certificates(roots).with_no_client_auth()
    }

    /// A connection with TLS.
    pub fn secure_client(&self) -> Client {
        let name = ServerName::try_from("localhost").unwrap();
        let session = ClientConnection::new(Arc::new(self.believes()), name).unwrap();
        let stream = TcpStream::connect(self.secure).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let host = format!("localhost:{}", self.secure.port());
        Client { stream: Box::new(StreamOwned::new(session, stream)), came: Vec::new(), host }
    }
}

trait Both: Read + Write {}
impl<T: Read + Write> Both for T {}

/// A connection.
pub struct Client {
    stream: Box<dyn Both>,
    came: Vec<u8>,
    /// What it calls the server.
    pub host: String,
}

/// A response.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    /// A header field, or nothing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value)
    }

    /// The body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

impl Client {
    /// Sends bytes as they are.
    pub fn raw(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
        self.stream.flush().unwrap();
    }

    /// Sends a request with a body.
    pub fn send(&mut self, line: &str, fields: &[&str], body: &[u8]) {
        let mut head = format!("{line} HTTP/1.1\r\nHost: {}\r\n", self.host);
        for field in fields {
            head.push_str(field);
            head.push_str("\r\n");
        }
        if !body.is_empty() || line.starts_with("PUT") {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        self.raw([head.as_bytes(), body].concat());
    }

    /// Sends a request and receives its response.
    pub fn ask(&mut self, line: &str, fields: &[&str], body: &[u8]) -> Reply {
        self.send(line, fields, body);
        self.reply(line.starts_with("HEAD"))
    }

    /// GET.
    pub fn get(&mut self, target: &str, fields: &[&str]) -> Reply {
        self.ask(&format!("GET {target}"), fields, b"")
    }

    /// PUT.
    pub fn put(&mut self, target: &str, fields: &[&str], body: &[u8]) -> Reply {
        self.ask(&format!("PUT {target}"), fields, body)
    }

    /// Receives something; false at the end.
    fn more(&mut self) -> bool {
        let mut part = vec![0; 1 << 16];
        let count = self.stream.read(&mut part).unwrap_or(0);
        self.came.extend_from_slice(&part[..count]);
        count > 0
    }

    fn line(&mut self) -> String {
        loop {
            if let Some(at) = self.came.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.came.drain(..=at).collect();
                return String::from_utf8(line).unwrap().trim_end().to_owned();
            }
            assert!(
                self.more(),
                "the connection ended in {:?}",
                String::from_utf8_lossy(&self.came)
            );
        }
    }

    fn take(&mut self, count: usize) -> Vec<u8> {
        while self.came.len() < count {
            assert!(self.more(), "the connection ended after {} of {count}", self.came.len());
        }
        self.came.drain(..count).collect()
    }

    /// Receives the head of the next response.
    pub fn begin(&mut self) {
        assert!(self.more(), "the connection has ended");
    }

    /// The next response; `bare` if it has no body.
    pub fn reply(&mut self, bare: bool) -> Reply {
        let line = self.line();
        let status = line.split(' ').nth(1).and_then(|s| s.parse().ok()).expect(&line);
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(": ").expect(&line);
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        let mut reply = Reply { status, headers, body: Vec::new() };
        if bare || matches!(status, 100 | 204 | 304) {
            return reply;
        }
        if reply.header("transfer-encoding") == "chunked" {
            loop {
                let size = usize::from_str_radix(&self.line(), 16).unwrap();
                reply.body.extend(self.take(size));
                assert_eq!(self.line(), "");
                if size == 0 {
                    break;
                }
            }
        } else if let Ok(length) = reply.header("content-length").parse() {
            reply.body = self.take(length);
        } else {
            while self.more() {}
            reply.body = std::mem::take(&mut self.came);
        }
        reply
    }

    /// That the server has closed the connection.
    pub fn is_over(&mut self) -> bool {
        self.came.is_empty() && !self.more()
    }
}
