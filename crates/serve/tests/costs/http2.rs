//! Requests of HTTP/2: those of version 1, several at once, and header blocks that cost more than
//! their bytes say: tables that grow and shrink, fields that refer to large entries of the table,
//! blocks in many small pieces (RFC 7541, RFC 9113 §4.3).

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use base::limits::PEER_PATIENCE;
use base::random::{Random, SeededRandom};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use vfs::share::Service;

use crate::http::{HttpRequest, candidate};
use crate::scene::Scene;
use crate::search::worst_of;
use crate::stand::{Stand, open};
use crate::tree::{self, up_to};

/// Types of frames.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
/// Flags of frames: END_STREAM and ACK, END_HEADERS.
const END: u8 = 1;
const END_HEADERS: u8 = 4;
/// Largest frame.
const FRAME_MAX: usize = 16 << 10;
/// SETTINGS_INITIAL_WINDOW_SIZE, and its largest value.
const INITIAL_WINDOW: [u8; 6] = [0, 4, 0x7f, 0xff, 0xff, 0xff];
/// Bytes more that a connection may send.
const WINDOW: u32 = 0x7000_0000;

/// Candidates of the gate: with TLS each takes some 30 ms in the build for tests.
const CANDIDATES: usize = 1_000;

/// A connection.
struct Connection {
    stream: StreamOwned<ClientConnection, TcpStream>,
    next: u32,
}

fn frame(out: &mut Vec<u8>, (kind, flags): (u8, u8), stream: u32, payload: &[u8]) {
    out.extend(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
}

impl Connection {
    fn open(stand: &Stand) -> Self {
        let mut config = stand.believes();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let name = ServerName::try_from("localhost").expect("a name");
        let session = ClientConnection::new(Arc::new(config), name).expect("a session");
        let stream = TcpStream::connect(stand.secure).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
        let mut stream = StreamOwned::new(session, stream);
        let mut first = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        frame(&mut first, (SETTINGS, 0), 0, &INITIAL_WINDOW);
        frame(&mut first, (WINDOW_UPDATE, 0), 0, &WINDOW.to_be_bytes());
        stream.write_all(&first).expect("sent");
        Self { stream, next: 1 }
    }

    /// Sends frames and waits until this number of streams has ended. Gives how many were reset.
    fn exchange(&mut self, frames: &[u8], mut streams: usize) -> io::Result<usize> {
        self.stream.write_all(frames)?;
        let mut resets = 0;
        while streams > 0 {
            let mut head = [0; 9];
            self.stream.read_exact(&mut head)?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let mut payload = vec![0; length];
            self.stream.read_exact(&mut payload)?;
            let mut answer = Vec::new();
            match (head[3], head[4]) {
                (DATA | HEADERS, flags) if flags & END != 0 => streams -= 1,
                (RST_STREAM, _) => (streams, resets) = (streams - 1, resets + 1),
                (SETTINGS, 0) => frame(&mut answer, (SETTINGS, END), 0, &[]),
                (PING, 0) => frame(&mut answer, (PING, END), 0, &payload),
                (GOAWAY, _) => return Err(io::ErrorKind::ConnectionAborted.into()),
                _ => {}
            }
            if head[3] == DATA && length > 0 {
                let more = (length as u32).to_be_bytes();
                frame(&mut answer, (WINDOW_UPDATE, 0), 0, &more);
            }
            self.stream.write_all(&answer)?;
        }
        Ok(resets)
    }
}

/// An integer behind a prefix of this number of bits (RFC 7541 §5.1).
fn integer(out: &mut Vec<u8>, first: u8, bits: u32, number: usize) {
    let most = (1 << bits) - 1;
    if number < most {
        return out.push(first | number as u8);
    }
    out.push(first | most as u8);
    let mut rest = number - most;
    while rest >= 128 {
        out.push(rest as u8 | 128);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn text(out: &mut Vec<u8>, text: &[u8]) {
    integer(out, 0, 7, text.len());
    out.extend(text);
}

/// A field as it is, which enters the table with `0x40` and does not with `0`.
fn field(out: &mut Vec<u8>, kind: u8, name: &str, value: &[u8]) {
    out.push(kind);
    text(out, name.as_bytes());
    text(out, value);
}

/// A header block.
fn block((line, fields, _): &HttpRequest, random: &mut SeededRandom) -> Vec<u8> {
    let mut out = Vec::new();
    let kind = random.below(8);
    if kind == 1 {
        // The size of the table changes repeatedly.
        for n in 0..up_to(random, 4_000) {
            integer(&mut out, 0x20, 5, if n % 2 == 0 { 0 } else { 4096 });
        }
    }
    let (method, path) = line.split_once(' ').unwrap_or((line, "/"));
    for (name, value) in
        [(":method", method), (":scheme", "https"), (":path", path), (":authority", "localhost")]
    {
        field(&mut out, 0, name, value.as_bytes());
    }
    let enters = if kind == 2 { 0x40 } else { 0 };
    for (name, value) in fields.iter().filter_map(|field| field.split_once(": ")) {
        field(&mut out, enters, &name.to_lowercase(), value.as_bytes());
    }
    match kind {
        3 => {
            // One large entry of the table, and many fields that are it.
            field(&mut out, 0x40, "x-large", &vec![b'v'; up_to(random, 4_000) as usize]);
            let count = up_to(random, 60_000) as usize;
            out.resize(out.len() + count, 0xbe);
        }
        4 => {
            // Small entries that push each other out.
            for n in 0..up_to(random, 6_000) {
                field(&mut out, 0x40, "x", n.to_string().as_bytes());
            }
        }
        5 => {
            // Huffman-coded, with a code of 30 bits for each letter.
            out.push(0);
            text(&mut out, b"x-coded");
            let count = up_to(random, 60_000) as usize;
            integer(&mut out, 0x80, 7, count);
            out.resize(out.len() + count, 0xfe);
        }
        _ => {}
    }
    out
}

/// The frames of a request.
fn frames(out: &mut Vec<u8>, asked: &HttpRequest, stream: u32, random: &mut SeededRandom) {
    let (block, body) = (block(asked, random), &asked.2);
    let small = random.below(8) == 0 && block.len() < 8_000;
    let size = if small { 1 + up_to(random, 30) as usize } else { FRAME_MAX };
    let pieces = block.chunks(size).count();
    for (n, piece) in block.chunks(size).enumerate() {
        let kind = if n == 0 { HEADERS } else { CONTINUATION };
        let ends = if n == 0 && body.is_empty() { END } else { 0 };
        let last = if n + 1 == pieces { END_HEADERS } else { 0 };
        frame(out, (kind, ends | last), stream, piece);
    }
    let pieces = body.chunks(FRAME_MAX).count();
    for (n, piece) in body.chunks(FRAME_MAX).enumerate() {
        frame(out, (DATA, u8::from(n + 1 == pieces)), stream, piece);
    }
}

#[test]
fn of_http2() {
    let folder = tree::new();
    let scene = Scene::in_folder(Service::Http, &folder, PEER_PATIENCE);
    let stand = Stand::over(scene, open());
    let mut connection = Connection::open(&stand);
    worst_of(("http2", CANDIDATES), |random: &mut SeededRandom| {
        let (asked, mut out) = (candidate(random), Vec::new());
        let count = if random.below(8) == 0 { 1 + up_to(random, 3) } else { 1 };
        for _ in 0..count {
            frames(&mut out, &asked, connection.next, random);
            connection.next += 2;
        }
        let bytes = out.len();
        let ended = connection.exchange(&out, count as usize);
        if ended.is_err() {
            connection = Connection::open(&stand);
        }
        format!("{count} of {} {:?}, {bytes} bytes: {ended:?}", asked.0, asked.1)
    });
}
