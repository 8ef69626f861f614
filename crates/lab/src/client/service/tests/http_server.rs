//! HTTP/1.1 and WebDAV as far as the tests go.

use super::{Both, Store};
use std::sync::atomic::Ordering;

struct ReceivedRequest {
    method: String,
    path: String,
    depth: bool,
    range: Option<(usize, Option<usize>)>,
    signed_in: bool,
    body: Vec<u8>,
}

pub(super) fn serve(mut stream: Box<dyn Both>, store: &Store) {
    while let Some(asked) = receive(&mut *stream) {
        let closes = store.closes.load(Ordering::SeqCst);
        let (status, fields, body) = answer(&asked, store);
        let mut head = format!("HTTP/1.1 {status} x\r\n{fields}");
        // Both ways of saying how long a body is.
        let chunked = closes && asked.method != "HEAD" && !body.is_empty();
        head += &match chunked {
            true => "Transfer-Encoding: chunked\r\n".to_owned(),
            false => format!("Content-Length: {}\r\n", body.len()),
        };
        head += if closes { "Connection: close\r\n\r\n" } else { "\r\n" };
        let mut bytes = head.into_bytes();
        if chunked {
            for piece in body.chunks(70_000) {
                bytes.extend(format!("{:x};x=y\r\n", piece.len()).into_bytes());
                bytes.extend([piece, b"\r\n"].concat());
            }
            bytes.extend(b"0\r\nTrailer: x\r\n\r\n");
        } else if asked.method != "HEAD" {
            bytes.extend(body);
        }
        if stream.write_all(&bytes).and_then(|()| stream.flush()).is_err() || closes {
            return;
        }
    }
}

fn receive(stream: &mut dyn Both) -> Option<ReceivedRequest> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let field = |name: &str| {
        let line = head.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(": "));
        line.map(str::to_owned)
    };
    let mut words = head.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?);
    let range = field("Range").map(|range| {
        let (from, to) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        (from.parse().unwrap(), to.parse().ok())
    });
    let mut body = vec![0; field("Content-Length").map_or(0, |n| n.parse().unwrap())];
    stream.read_exact(&mut body).ok()?;
    Some(ReceivedRequest {
        method,
        path: super::super::at::decoded(path).unwrap().trim_end_matches('/').to_owned(),
        depth: field("Depth").is_some_and(|d| d == "1"),
        range,
        // ann:a@b
        signed_in: field("Authorization").is_some_and(|a| a == "Basic YW5uOmFAYg=="),
        body,
    })
}

fn answer(asked: &ReceivedRequest, store: &Store) -> (u16, &'static str, Vec<u8>) {
    let path = &asked.path;
    let plain = |status: u16| (status, "", Vec::new());
    if !asked.signed_in {
        return plain(401);
    }
    match asked.method.as_str() {
        "OPTIONS" => plain(200),
        "HEAD" | "GET" => match (store.files().get(path), asked.range) {
            (None, _) => (404, "", b"there is none".to_vec()),
            (Some(bytes), None) => (200, "", bytes.clone()),
            (Some(bytes), Some((from, to))) => {
                let end = to.map_or(bytes.len(), |to| (to + 1).min(bytes.len()));
                (206, "", bytes[from..end].to_vec())
            }
        },
        "PUT" => plain(if store.put(path, asked.body.clone()) { 201 } else { 409 }),
        "MKCOL" => plain(if store.make_folder(path) { 201 } else { 405 }),
        "DELETE" => {
            let folder = store.names(path).is_some();
            let gone = store.remove(path, folder);
            plain(if gone {
                204
            } else if folder {
                409
            } else {
                404
            })
        }
        "PROPFIND" => properties(asked, store),
        _ => plain(405),
    }
}

fn properties(asked: &ReceivedRequest, store: &Store) -> (u16, &'static str, Vec<u8>) {
    let path = &asked.path;
    let one = |path: &str, size: Option<usize>| {
        let href = super::super::at::encoded(path, true);
        let size = size.map(|n| format!("<D:getcontentlength>{n}</D:getcontentlength>"));
        format!(
            "<D:response><D:href>http://x{href}</D:href><D:propstat><D:prop>{}</D:prop>\
             </D:propstat></D:response>",
            size.unwrap_or_default()
        )
    };
    let all = match (store.names(path), store.files().get(path)) {
        (Some(names), _) => {
            let below = names.iter().map(|name| one(&format!("{path}/{name}"), Some(0)));
            let below: String = below.filter(|_| asked.depth).collect();
            one(&format!("{path}/"), None) + &below
        }
        (None, Some(bytes)) => one(path, Some(bytes.len())),
        (None, None) => return (404, "", Vec::new()),
    };
    let text = format!("<D:multistatus xmlns:D=\"DAV:\">{all}</D:multistatus>");
    (207, "Content-Type: application/xml\r\n", text.into_bytes())
}
