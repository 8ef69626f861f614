//! Thousands of sessions of all protocols that do nothing.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use e2e::api::wait_for;
use e2e::ftp::Ftp;
use e2e::http::Http;
use e2e::process::{memory, raise_descriptors};
use e2e::sftp::{Came, Sftp};
use e2e::tcp::{HERE, address, connect_from};
use e2e::transfer::{FTP, PASSWORD, Scene};
use e2e::{skip, tls};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use serde_json::json;
use wire::sftp::request::OfPath;
use wire::sftp::{PathBytes, Request};

const PATIENCE: Duration = Duration::from_secs(30);
/// Sessions of each kind: more than 5 000 in all. Those with a handshake are dear at both ends.
const FTPS: usize = 3_000;
const HTTPS: usize = 1_900;
const HTTP2S: usize = 100;
const SFTPS: usize = 100;
/// Most memory for one of each, in KiB. What is measured is in docs/security.md; a build without
/// optimisation takes more, and the allocator takes pages for many at once.
const KIB_MAX: [u64; 4] = [48, 48, 128, 128];

/// TLS that trusts the server's own certificate, for HTTP/2.
pub(super) fn trusting(scene: &Scene) -> Arc<ClientConfig> {
    let mut config = tls::client(&tls::own_certificate(&scene.state), None);
    config.alpn_protocols = vec![b"h2".to_vec()];
    Arc::new(config)
}

/// A frame of HTTP/2 (RFC 9113 §4.1) on the connection itself.
fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0, 0, payload.len() as u8, kind, flags, 0, 0, 0, 0];
    frame.extend_from_slice(payload);
    frame
}

/// A connection of HTTP/2.
pub(super) struct Http2(StreamOwned<ClientConnection, TcpStream>);

impl Http2 {
    pub(super) fn connect(scene: &Scene, config: &Arc<ClientConfig>) -> std::io::Result<Self> {
        Self::over(connect_from(HERE, scene.server.at(443))?, config)
    }

    pub(super) fn over(stream: TcpStream, config: &Arc<ClientConfig>) -> std::io::Result<Self> {
        let name = ServerName::try_from("localhost").expect("a name");
        let session = ClientConnection::new(Arc::clone(config), name).expect("a session");
        let mut conn = Self(StreamOwned::new(session, stream));
        let settings = frame(4, 0, &[]);
        conn.0.write_all(&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", settings.as_slice()].concat())?;
        conn.ping()?;
        Ok(conn)
    }

    /// Asks for one target on many streams, and takes no answer: the client permits all that there
    /// is (§6.5.2, §6.9), so that only the connection holds the server back.
    pub(super) fn get_all(
        &mut self,
        streams: impl Iterator<Item = u32>,
        target: &str,
        (user, password): (&str, &str),
    ) -> std::io::Result<()> {
        const WINDOW: u32 = 0x7fff_ffff;
        let initial = [&4_u16.to_be_bytes()[..], &WINDOW.to_be_bytes()].concat();
        let more = (WINDOW - 65_535).to_be_bytes();
        self.0.write_all(&[frame(4, 0, &initial), frame(8, 0, &more)].concat())?;
        let basic = base::base64::encode(format!("{user}:{password}").as_bytes());
        // RFC 7541: GET, https and names of the static table by their index, values as they are.
        let literal =
            |head: &[u8], value: &str| [head, &[value.len() as u8], value.as_bytes()].concat();
        let basic = format!("Basic {basic}");
        let fields = [
            vec![0x82, 0x87],
            literal(&[0x04], target),
            literal(&[0x01], "localhost"),
            literal(&[0x0f, 0x08], &basic),
        ];
        for stream in streams {
            let mut head = frame(1, 5, &fields.concat());
            head[5..9].copy_from_slice(&stream.to_be_bytes());
            self.0.write_all(&head)?;
        }
        Ok(())
    }

    /// Whether it is alive (§6.7).
    fn ping(&mut self) -> std::io::Result<()> {
        self.0.write_all(&frame(6, 0, b"abcdefgh"))?;
        loop {
            let mut head = [0; 9];
            self.0.read_exact(&mut head)?;
            let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
            self.0.read_exact(&mut payload)?;
            if (head[3], head[4]) == (6, 1) && payload == b"abcdefgh" {
                return Ok(());
            }
        }
    }
}

fn stat(sftp: &mut Sftp, path: &[u8]) -> std::io::Result<Came> {
    sftp.call(&Request::Stat(OfPath { path: PathBytes(path) }))
}

fn descriptors(scene: &Scene) -> usize {
    fs::read_dir(format!("/proc/{}/fd", scene.server.pid())).expect("its descriptors").count()
}

/// Makes `count` of something and prints the memory of each; at most `limit` KiB.
fn hold<T>(
    scene: &Scene,
    what: &str,
    count: usize,
    limit: u64,
    make: impl Fn(usize) -> T,
) -> Vec<T> {
    let (before, since) = (memory(scene.server.pid(), "VmRSS"), Instant::now());
    let held: Vec<T> = (0..count).map(make).collect();
    let taken = memory(scene.server.pid(), "VmRSS").saturating_sub(before);
    let each = taken / 1024 / count as u64;
    println!(
        "{count} idle {what}: {each} KiB each, made in {:.1} s",
        since.elapsed().as_secs_f32()
    );
    assert!(each <= limit, "{each} KiB for one of {what}");
    held
}

/// Other clients are served at once, however many are connected.
fn others_are_served(scene: &Scene) {
    let from = address(9);
    let mut ftp = scene.ftp(from).expect("FTP");
    assert_eq!(ftp.sign_in("anna", PASSWORD).expect("FTP"), 230);
    assert_eq!(ftp.data("STOR /box/one", Some(b"there")).expect("FTP").0, 226);
    let mut http = scene.http(from, PASSWORD).expect("HTTP");
    let (status, _, body) = http.ask(("GET", b"/box/one"), b"", b"").expect("HTTP");
    assert_eq!((status, body.as_slice()), (200, b"there".as_slice()));
    let mut sftp = scene.sftp(from, PASSWORD).expect("SFTP");
    assert!(matches!(stat(&mut sftp, b"/box/one"), Ok(Came::Other(_))));
    scene.server.mount(0, 0);
}

#[test]
fn thousands_of_idle_sessions_stop_no_client() {
    let all = FTPS + HTTPS + HTTP2S + SFTPS;
    if raise_descriptors() < 2 * all as u64 + 2_000 {
        skip!("hostile-idle", "too few descriptors");
    }
    let scene = Scene::new("hostile-idle");
    scene.change(&json!([
        {"set": FTP, "property": "anonymous", "value": true},
        {"set": FTP, "property": "connections_max", "value": 5_000},
        {"set": FTP, "property": "per_address_max", "value": 5_000},
    ]));
    others_are_served(&scene);
    let before = (descriptors(&scene), scene.api.budget("server.connections").0);
    // From several addresses: one alone does not get this number of connections.
    let from = |n: usize| address(2 + (n % 3) as u8);
    let [ftp, http, http2, sftp] = KIB_MAX;
    let mut ftps: Vec<Ftp> = hold(&scene, "FTP sessions", FTPS, ftp, |n| {
        let mut ftp = scene.ftp(from(n)).expect("FTP");
        assert_eq!(ftp.sign_in("anonymous", "guest").expect("FTP"), 230);
        ftp
    });
    let mut https: Vec<Http> = hold(&scene, "connections of HTTP/1.1", HTTPS, http, |n| {
        let mut http = scene.http(from(n), PASSWORD).expect("HTTP");
        assert_eq!(http.ask(("HEAD", b"/box/one"), b"", b"").expect("HTTP").0, 200);
        http
    });
    let config = trusting(&scene);
    let mut http2s: Vec<Http2> = hold(&scene, "connections of HTTP/2", HTTP2S, http2, |_| {
        Http2::connect(&scene, &config).expect("HTTP/2")
    });
    let mut sftps: Vec<Sftp> = hold(&scene, "SFTP sessions", SFTPS, sftp, |n| {
        scene.sftp(from(n), PASSWORD).expect("SFTP")
    });
    let counted = || {
        let (used, limit) = scene.api.budget("server.connections");
        assert!(used <= limit, "{used} of {limit}");
        (used >= all as u64).then_some(())
    };
    wait_for("all are counted", PATIENCE, counted);
    assert!(descriptors(&scene) >= all, "each has one");
    others_are_served(&scene);
    // They are alive: each can be used when it likes.
    assert!(ftps.iter_mut().step_by(100).all(|c| c.say("NOOP").is_ok_and(|r| r.0 == 200)));
    let head = |c: &mut Http| c.ask(("HEAD", b"/box/one"), b"", b"").is_ok_and(|r| r.0 == 200);
    assert!(https.iter_mut().step_by(100).all(head));
    assert!(http2s.iter_mut().step_by(10).all(|c| c.ping().is_ok()));
    assert!(sftps.iter_mut().step_by(10).all(|c| matches!(stat(c, b"/box"), Ok(Came::Other(_)))));
    drop((ftps, https, http2s, sftps));
    wait_for("they are gone", PATIENCE, || {
        let left = (descriptors(&scene), scene.api.budget("server.connections").0);
        (left.0 <= before.0 + 20 && left.1 <= before.1 + 4).then_some(())
    });
}
