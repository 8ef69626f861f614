//! A mail server and a web server that record the requests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::state::tests::Scratch;

const WAIT: Duration = Duration::from_secs(40);

/// A mail.
#[derive(Debug, Default, Clone)]
pub struct Mail {
    pub from: String,
    pub to: Vec<String>,
    pub auth: String,
    pub data: String,
}

/// A mail server that takes everything.
pub struct Mailbox {
    pub port: u16,
    mails: Receiver<Mail>,
}

impl Mailbox {
    /// One without encryption.
    pub fn start() -> Self {
        Self::serve(None)
    }

    /// One with STARTTLS, and the folder with its CA in `ca`.
    pub fn secure() -> (Self, Scratch) {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let scratch = Scratch::new();
        std::fs::write(scratch.path().join("ca"), made.cert.pem()).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        (Self::serve(Some(Arc::new(config))), scratch)
    }

    fn serve(tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, mails) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                stream.set_read_timeout(Some(WAIT)).unwrap();
                // A client that goes early is the client's matter.
                drop(session(stream, tls.clone(), &sender));
            }
        });
        Self { port, mails }
    }

    pub fn next(&self) -> Mail {
        self.mails.recv_timeout(WAIT).expect("a mail")
    }
}

fn session(
    mut stream: TcpStream,
    tls: Option<Arc<ServerConfig>>,
    mails: &Sender<Mail>,
) -> std::io::Result<()> {
    stream.write_all(b"220 test\r\n")?;
    let Some(config) = tls else { return talk(stream, mails, false).map(drop) };
    let plain = stream.try_clone()?;
    if talk(plain, mails, true)? {
        let connection = ServerConnection::new(config).map_err(std::io::Error::other)?;
        talk(StreamOwned::new(connection, stream), mails, false)?;
    }
    Ok(())
}

/// Serves a connection until its end, or until TLS must begin.
fn talk(stream: impl Read + Write, mails: &Sender<Mail>, offers: bool) -> std::io::Result<bool> {
    let mut stream = BufReader::with_capacity(1, stream);
    let mut mail = Mail::default();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(false);
        }
        let line = line.trim_end();
        let inside = |line: &str| line.split(['<', '>']).nth(1).unwrap_or_default().to_owned();
        let answer = match line.split([' ', ':']).next().unwrap_or_default() {
            "EHLO" if offers => "250-test\r\n250 STARTTLS\r\n",
            "EHLO" => "250-test\r\n250 AUTH PLAIN LOGIN\r\n",
            "STARTTLS" if offers => {
                stream.get_mut().write_all(b"220 begin\r\n")?;
                return Ok(true);
            }
            "AUTH" => {
                mail.auth = line["AUTH ".len()..].to_owned();
                "235 welcome\r\n"
            }
            "MAIL" => {
                mail.from = inside(line);
                "250 ok\r\n"
            }
            "RCPT" => {
                mail.to.push(inside(line));
                "250 ok\r\n"
            }
            "DATA" => {
                stream.get_mut().write_all(b"354 go on\r\n")?;
                while !mail.data.ends_with("\r\n.\r\n") {
                    stream.read_line(&mut mail.data)?;
                }
                drop(mails.send(std::mem::take(&mut mail)));
                "250 taken\r\n"
            }
            "QUIT" => return Ok(false),
            _ => "500 what\r\n",
        };
        stream.get_mut().write_all(answer.as_bytes())?;
        stream.get_mut().flush()?;
    }
}

/// A request.
#[derive(Debug)]
pub struct Post {
    pub line: String,
    pub head: String,
    pub body: String,
}

/// A web server that answers with these codes in turn.
pub struct Web {
    port: u16,
    posts: Receiver<Post>,
    taken: Arc<AtomicUsize>,
}

impl Web {
    pub fn start(codes: &[u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, posts) = channel();
        let (codes, taken) = (codes.to_vec(), Arc::new(AtomicUsize::new(0)));
        let count = taken.clone();
        std::thread::spawn(move || {
            for (stream, code) in listener.incoming().flatten().zip(codes) {
                stream.set_read_timeout(Some(WAIT)).unwrap();
                let mut stream = BufReader::new(stream);
                let post = read(&mut stream);
                count.fetch_add(1, Ordering::SeqCst);
                drop(sender.send(post));
                let answer = format!("HTTP/1.1 {code} So\r\nContent-Length: 0\r\n\r\n");
                stream.get_mut().write_all(answer.as_bytes()).unwrap();
            }
        });
        Self { port, posts, taken }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub fn next(&self) -> Post {
        self.posts.recv_timeout(WAIT).expect("a request")
    }

    /// How many requests came.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::SeqCst)
    }
}

fn read(stream: &mut BufReader<TcpStream>) -> Post {
    let (mut line, mut head) = (String::new(), String::new());
    stream.read_line(&mut line).unwrap();
    while !head.ends_with("\r\n\r\n") {
        stream.read_line(&mut head).unwrap();
    }
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let mut body = vec![0; length.unwrap().parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    Post { line: line.trim_end().to_owned(), head, body: String::from_utf8(body).unwrap() }
}
