//! Limits of the administration: connections, heads and bodies, sign-ins, sessions, queries, live
//! streams.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use base::limits::{ADMIN_CONNECTIONS_MAX, API_HEAD_MAX, API_STREAMS_MAX, SIGN_IN_WAITING_MAX};
use e2e::tcp::connect_from;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

use super::world::{ADMINISTRATOR, PASSWORD, World};
use super::{Attack, Got};

/// The administration.
const PORT: u16 = 215;
/// Threads that repeat something.
const THREADS: usize = 2;
/// How long a client that repeats something waits between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// A connection of HTTPS to the administration, with a session after [`Https::sign_in`].
pub(crate) struct Https {
    stream: BufReader<StreamOwned<ClientConnection, TcpStream>>,
    cookie: String,
}

impl Https {
    pub(crate) fn connect(from: IpAddr, world: &World) -> io::Result<Self> {
        let stream = connect_from(from, world.server.at(PORT))?;
        let mut config = world.tls.as_ref().clone();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
        let session = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(session, stream);
        stream.flush()?;
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(Self { stream: BufReader::new(stream), cookie: String::new() })
    }

    pub(crate) fn sign_in(&mut self, (user, password): (&str, &str)) -> io::Result<()> {
        let body = format!(r#"{{"user": "{user}", "password": "{password}"}}"#);
        self.post("/api/v1/session", &body).map(drop)
    }

    pub(crate) fn get(&mut self, path: &str) -> io::Result<Vec<u8>> {
        self.begin("GET", path, "")?;
        self.answer()
    }

    pub(crate) fn post(&mut self, path: &str, body: &str) -> io::Result<Vec<u8>> {
        self.begin("POST", path, body)?;
        self.answer()
    }

    /// A live stream: what follows its head.
    pub(crate) fn stream(
        mut self,
        path: &str,
    ) -> io::Result<BufReader<StreamOwned<ClientConnection, TcpStream>>> {
        self.begin("GET", path, "")?;
        match self.head()? {
            (200, _) => Ok(self.stream),
            other => Err(io::Error::other(format!("{other:?}"))),
        }
    }

    /// Sends a request.
    pub(crate) fn begin(&mut self, method: &str, path: &str, body: &str) -> io::Result<()> {
        let (cookie, length) = (&self.cookie, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\n{cookie}content-type: \
             application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        self.send(request.as_bytes())
    }

    /// Sends bytes as they are.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let stream = self.stream.get_mut();
        stream.write_all(bytes)?;
        stream.flush()
    }

    fn head(&mut self) -> io::Result<(u16, Vec<String>)> {
        let (mut lines, mut line) = (Vec::new(), String::new());
        loop {
            line.clear();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if line.trim().is_empty() {
                break;
            }
            lines.push(line.trim().to_owned());
        }
        let status = lines.first().and_then(|line| line.get(9..12)?.parse().ok());
        Ok((status.unwrap_or(0), lines))
    }

    fn answer(&mut self) -> io::Result<Vec<u8>> {
        let (status, head) = self.head()?;
        let of = |name: &str| {
            let mut fields = head.iter().filter_map(|line| line.split_once(": "));
            fields.find(|(one, _)| one.eq_ignore_ascii_case(name)).map(|(_, value)| value)
        };
        let length = of("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        if let Some(cookie) = of("set-cookie").and_then(|cookie| cookie.split(';').next()) {
            self.cookie = format!("cookie: {cookie}\r\n");
        }
        match status {
            200..300 => Ok(body),
            _ => Err(io::Error::other(format!("{status}: {}", String::from_utf8_lossy(&body)))),
        }
    }
}

fn signed_in(attack: &Attack<'_>) -> io::Result<Https> {
    let mut https = Https::connect(attack.from, attack.world)?;
    https.sign_in((ADMINISTRATOR, PASSWORD))?;
    Ok(https)
}

/// Live streams, on one session.
pub(crate) fn streams(attack: &Attack<'_>) -> Got {
    let session = signed_in(attack).expect("the administrator");
    let mut held = Vec::new();
    let refused = loop {
        let mut https = match Https::connect(attack.from, attack.world) {
            Ok(https) => https,
            Err(why) => break why,
        };
        https.cookie.clone_from(&session.cookie);
        match https.stream("/api/v1/changes/stream") {
            Ok(stream) => held.push(stream),
            Err(why) => break why,
        }
        assert!(held.len() <= API_STREAMS_MAX, "more streams than the limit");
    };
    Got::new(format!("{} streams, then {refused}", held.len()), (session, held))
}

/// Queries of statistics that take long; few responses are read.
pub(crate) fn queries(attack: &Attack<'_>) -> Got {
    let mut session = signed_in(attack).expect("the administrator");
    session.get("/api/v1/status").expect("a status");
    let cookie = session.cookie.clone();
    for _ in 0..THREADS {
        let (from, cookie) = (attack.from, cookie.clone());
        attack.repeat(move |world| {
            let now = e2e::api::now();
            let query = format!(
                "/api/v1/analytics/data?stat=nfs3.ops[op]&from={}&to={now}&top=1000\
                 &source=recorder",
                now - 86_400
            );
            if let Ok(mut https) = Https::connect(from, world) {
                https.cookie.clone_from(&cookie);
                // Many at once: requests of a connection may come before its responses.
                for _ in 0..8 {
                    let _ = https.begin("GET", &query, "");
                }
                let _ = https.answer();
            }
            std::thread::sleep(PAUSE);
        });
    }
    Got::new(format!("{THREADS} clients that ask all the time"), session)
}

/// Sign-ins with wrong passwords, of names that do not exist.
pub(crate) fn sign_ins(attack: &Attack<'_>) -> Got {
    let waiting = 2 * SIGN_IN_WAITING_MAX;
    let mut held = Vec::new();
    for n in 0..waiting {
        let Ok(mut https) = Https::connect(attack.from, attack.world) else { break };
        let user = if attack.all { format!("unknown-{n}") } else { "unknown".to_owned() };
        let body = format!(r#"{{"user": "{user}", "password": "not the password"}}"#);
        if https.begin("POST", "/api/v1/session", &body).is_ok() {
            held.push(https);
        }
    }
    Got::new(format!("{} sign-ins at once", held.len()), held)
}

/// Sessions.
pub(crate) fn sessions(attack: &Attack<'_>) -> Got {
    let mut https = signed_in(attack).expect("the administrator");
    let count = attack.count(20, 40);
    for _ in 0..count {
        https.sign_in((ADMINISTRATOR, PASSWORD)).expect("one more");
    }
    Got::new(format!("{count} sessions"), https)
}

/// Heads that do not end, and bodies.
pub(crate) fn halves(attack: &Attack<'_>) -> Got {
    let mut held = Vec::new();
    let head = format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n", "x".repeat(API_HEAD_MAX / 2));
    let body = "POST /api/v1/session HTTP/1.1\r\nhost: localhost\r\ncontent-type: \
                application/json\r\ncontent-length: 60000\r\n\r\n{";
    for half in [head.as_str(), body].repeat(8) {
        let Ok(mut https) = Https::connect(attack.from, attack.world) else { break };
        if https.send(half.as_bytes()).is_ok() {
            held.push(https);
        }
    }
    Got::new(format!("{} halves of requests", held.len()), held)
}

/// Connections, the last ones without a handshake.
pub(crate) fn connections(attack: &Attack<'_>) -> Got {
    attack.idle(attack.world.server.at(PORT), 2 * ADMIN_CONNECTIONS_MAX)
}
