//! Limits of HTTP and WebDAV: connections, heads, bodies, streams, archives, uploads, locks.

use base::limits::{DAV_LOCKS_PER_USER_MAX, HTTP_UPLOADS_PER_USER, HTTP2_STREAMS_MAX};
use e2e::http::Http;

use super::attack::fill;
use super::world::PASSWORD;
use super::{Attack, Got};
use crate::hostile::idle::Http2;

/// Unencrypted HTTP.
const PORT: u16 = 80;
/// Connections of each kind that take or send nothing more.
const EACH: usize = 12;
/// Locks that are asked for in one go.
const BATCH: usize = 50;
/// Locks that one user takes in the gate.
const LOCKS: u64 = 400;

fn connect(attack: &Attack<'_>, n: usize) -> std::io::Result<Http> {
    let users = attack.users();
    let user = (users[n % users.len()], PASSWORD);
    Http::connect(attack.from, attack.world.server.at(PORT), user)
}

/// Data that is not taken, bodies and heads that do not end, archives, pages.
pub(crate) fn bytes(attack: &Attack<'_>) -> Got {
    let mut held = Vec::new();
    for n in 0..EACH {
        let requests: [(&str, &str, &str); 4] = [
            ("GET", "/box/large", ""),
            ("GET", "/box/?archive", ""),
            ("PROPFIND", "/box/long/", "depth: 1\r\n"),
            ("GET", "/box/long/", ""),
        ];
        for (method, target, fields) in requests {
            let mut http = connect(attack, n).expect("a connection");
            for _ in 0..16 {
                // When the server has stopped reading, the rest does not fit.
                let asked = (method, target.as_bytes());
                if http.begin(asked, fields.as_bytes(), 0, b"").is_err() {
                    break;
                }
            }
            held.push(http);
        }
        let mut http = connect(attack, n).expect("a connection");
        let target = format!("/box/half-{n}");
        let begun = http.begin(("PUT", target.as_bytes()), b"", 64 << 20, &vec![1; 1 << 20]);
        begun.expect("sent");
        held.push(http);
        let http = connect(attack, n).expect("a connection");
        fill(http.stream(), format!("GET /{} HTTP/1.1\r\n", "x".repeat(16_000)).as_bytes());
        held.push(http);
    }
    Got::new(format!("{} requests", held.len()), held)
}

/// Streams of HTTP/2 that take no data.
pub(crate) fn streams(attack: &Attack<'_>) -> Got {
    let mut config = attack.world.tls.as_ref().clone();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let config = std::sync::Arc::new(config);
    let mut held = Vec::new();
    for n in 0..attack.count(2, 8) {
        let stream = attack.connect(attack.world.server.at(443)).expect("a connection");
        let mut http = Http2::over(stream, &config).expect("HTTP/2");
        let streams = (0..HTTP2_STREAMS_MAX).map(|n| 2 * n + 1);
        let users = attack.users();
        let user = (users[n % users.len()], PASSWORD);
        http.get_all(streams, "/box/large", user).expect("requests");
        held.push(http);
    }
    Got::new(format!("{} streams", held.len() * HTTP2_STREAMS_MAX as usize), held)
}

/// Uploads in parts, until that is refused.
pub(crate) fn uploads(attack: &Attack<'_>) -> Got {
    let (mut begun, mut refused) = (0, 0);
    for (user, name) in attack.users().iter().enumerate() {
        let mut http = connect(attack, user).expect("a connection");
        for n in 0..=HTTP_UPLOADS_PER_USER {
            let target = format!("/box/{}?upload", attack.name(name, n));
            let asked = ("POST", target.as_bytes());
            match http.ask(asked, b"upload-length: 100\r\n", b"").expect("a response").0 {
                201 => begun += 1,
                _ => refused += 1,
            }
        }
    }
    assert!(refused > 0, "{begun}");
    Got::new(format!("{begun} uploads, {refused} refused"), ())
}

/// Locks of WebDAV on names that do not exist.
pub(crate) fn locks(attack: &Attack<'_>) -> Got {
    let each = e2e::env_number("PLIMSOLL_LIMITS_LOCKS", LOCKS) as usize;
    let each = each.min(DAV_LOCKS_PER_USER_MAX + BATCH);
    let (mut locked, mut refused) = (0, 0);
    let body = b"<D:lockinfo xmlns:D='DAV:'><D:lockscope><D:exclusive/></D:lockscope>\
                 <D:locktype><D:write/></D:locktype></D:lockinfo>";
    for (user, name) in attack.users().iter().enumerate() {
        let mut http = connect(attack, user).expect("a connection");
        for first in (0..each).step_by(BATCH) {
            for n in first..first + BATCH {
                let target = format!("/box/lock-{}", attack.name(name, n));
                let asked = ("LOCK", target.as_bytes());
                http.begin(asked, b"depth: 0\r\n", body.len(), body).expect("sent");
            }
            for _ in 0..BATCH {
                match http.answer("LOCK").expect("a response").0 {
                    200 | 201 => locked += 1,
                    _ => refused += 1,
                }
            }
        }
    }
    Got::new(format!("{locked} locks, {refused} refused"), ())
}

/// Wrong passwords.
pub(crate) fn guesses(attack: &Attack<'_>) -> Got {
    let to = attack.world.server.at(PORT);
    let count = attack.count(8, 32);
    let mut held = Vec::new();
    for n in 0..count {
        let user = format!("unknown-{n}");
        let user = if attack.all { user.as_str() } else { "anna" };
        let mut http = Http::connect(attack.from, to, (user, "wrong")).expect("a connection");
        http.begin(("GET", b"/box/"), b"", 0, b"").expect("sent");
        held.push(http);
    }
    Got::new(format!("{count} wrong passwords at once"), held)
}

/// Requests on a file system that stands still.
pub(crate) fn pool(attack: &Attack<'_>) -> Got {
    if !attack.world.stand_still(true) {
        return Got::new("no file system of FUSE", ());
    }
    let mut held = Vec::new();
    for n in 0..attack.count(80, 200) {
        let Ok(mut http) = connect(attack, n) else { break };
        let target = format!("/slow/n{n}");
        http.begin(("GET", target.as_bytes()), b"", 0, b"").expect("sent");
        held.push(http);
    }
    Got::new(format!("{} requests", held.len()), held)
}

/// Idle connections.
pub(crate) fn connections(attack: &Attack<'_>) -> Got {
    let encrypted = attack.idle(attack.world.server.at(443), 200);
    let idle = attack.idle(attack.world.server.at(PORT), 2_000);
    Got::new(format!("{}; with TLS: {}", idle.amount, encrypted.amount), (idle, encrypted))
}
