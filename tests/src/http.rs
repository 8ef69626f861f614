//! The least of an HTTP client: one request on a connection of its own.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Asks; status, and head and body as text. `user` is what follows `Basic`; header fields are
/// lines.
///
/// # Panics
/// When there is no answer.
pub fn ask(at: SocketAddr, user: &str, line: &str, headers: &[&str], body: &[u8]) -> (u16, String) {
    let mut stream = begin(at, user, line, headers, body.len());
    stream.write_all(body).expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    (code, answer)
}

/// Sends a head that promises so many bytes.
///
/// # Panics
/// When it cannot be sent.
pub fn begin(at: SocketAddr, user: &str, line: &str, headers: &[&str], length: usize) -> TcpStream {
    let mut stream = TcpStream::connect(at).expect("HTTP");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time");
    let mut text = format!("{line} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n");
    text += &format!("Authorization: Basic {user}\r\nContent-Length: {length}\r\n");
    headers.iter().for_each(|header| text += &format!("{header}\r\n"));
    stream.write_all(format!("{text}\r\n").as_bytes()).expect("sent");
    stream
}

/// A header field of an answer of [`ask`].
///
/// # Panics
/// When it has none of this name, which is given in small letters.
pub fn field<'a>(answer: &'a str, name: &str) -> &'a str {
    let lines = answer.lines().filter_map(|line| line.split_once(": "));
    let mut found = lines.filter(|(one, _)| *one == name).map(|(_, value)| value);
    found.next().unwrap_or_else(|| panic!("no {name}: {answer}"))
}
