//! Clients that open connections to the administration, create records of NFSv4 clients and cause
//! key exchanges of SSH without end: clients from other addresses are served.

use std::io::{ErrorKind, Read};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use e2e::nfs4::pipe::{Pipe, exchange_ids};
use e2e::process::run;
use e2e::tcp::{address, connect_from};
use e2e::transfer::{PASSWORD, Scene};
use e2e::{nfs3, took_at_most};

/// How long each flood lasts in the gate; `make test-long` sets a minute.
const SECONDS: u64 = 4;
/// Longest wait of another client.
const WAIT: Duration = Duration::from_secs(2);
/// Idle connections at once.
const IDLE: usize = 300;
/// Requests of EXCHANGE_ID that are sent together.
const BATCH: u64 = 200;
/// How many addresses a flood comes from, if it is from many.
const ADDRESSES: u64 = 64;

/// The ways to flood a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flood {
    Idle,
    Records,
    KeyExchanges,
}

const ALL: [Flood; 3] = [Flood::Idle, Flood::Records, Flood::KeyExchanges];

/// Strangers at work, from one address or from many.
struct Strangers<'a> {
    scene: &'a Scene,
    many: bool,
    over: AtomicBool,
    number: AtomicU64,
}

impl Strangers<'_> {
    fn address(&self) -> IpAddr {
        let number = self.number.fetch_add(1, Relaxed);
        address(if self.many { 64 + (number % ADDRESSES) as u8 } else { 64 })
    }

    fn flood(&self, flood: Flood) {
        match flood {
            Flood::Idle => self.hold(self.scene.server.at(215)),
            Flood::Records => self.take_records(self.scene.server.nfs()),
            Flood::KeyExchanges => self.exchange_keys(),
        }
    }

    fn is_running(&self) -> bool {
        !self.over.load(Relaxed)
    }

    /// Holds connections, and opens each again that was closed.
    fn hold(&self, to: SocketAddr) {
        let mut held: Vec<TcpStream> = Vec::new();
        while self.is_running() {
            held.retain_mut(|stream| {
                let mut byte = [0];
                matches!(stream.read(&mut byte), Err(e) if e.kind() == ErrorKind::WouldBlock)
            });
            while held.len() < IDLE && self.is_running() {
                let Ok(stream) = connect_from(self.address(), to) else { break };
                stream.set_nonblocking(true).expect("a socket");
                held.push(stream);
            }
            std::thread::yield_now();
        }
    }

    fn take_records(&self, to: SocketAddr) {
        while self.is_running() {
            let stream = connect_from(self.address(), to);
            let client = stream.and_then(|stream| nfs3::Client::over(stream, 0, 0));
            let Ok(mut client) = client else { continue };
            let first = self.number.fetch_add(BATCH, Relaxed);
            let names = (first..first + BATCH).map(|n| format!("flood {n}")).collect::<Vec<_>>();
            // Refused or disconnected: the next connection continues.
            let _ = exchange_ids(&mut client, &names);
        }
    }

    fn exchange_keys(&self) {
        while self.is_running() {
            // A wrong password, after one key exchange.
            let _ = self.scene.sftp(self.address(), "wrong");
        }
    }
}

/// What other clients do meanwhile, each with its result.
fn others(scene: &Scene, round: u64) -> [(&'static str, Result<(), String>, Duration); 4] {
    let timed = |what: &'static str, run: &dyn Fn() -> Result<(), String>| {
        let began = Instant::now();
        let outcome = run();
        (what, outcome, began.elapsed())
    };
    [
        timed("the local socket", &|| match scene.api.get("/api/v1/status") {
            (200, _) => Ok(()),
            (code, body) => Err(format!("{code}: {body}")),
        }),
        timed("administration over HTTPS", &|| over_https(scene)),
        timed("a new NFSv4 client", &|| {
            let name = format!("honest {round}");
            let pipe = Pipe::connect_from(address(8), scene.server.nfs(), 1, &name, round);
            pipe.and_then(Pipe::leave).map(|_| ()).map_err(|e| format!("{e:?}"))
        }),
        timed("SFTP with a password", &|| {
            scene.sftp(address(9), PASSWORD).map(|_| ()).map_err(|e| e.to_string())
        }),
    ]
}

fn over_https(scene: &Scene) -> Result<(), String> {
    let url = format!("https://{}/api/v1/status", scene.server.at(215));
    let mut curl = Command::new("curl");
    curl.args(["-sk", "--interface", "127.0.0.7", "-o", "/dev/null", "-w", "%{http_code}", &url]);
    let out = run(&mut curl, Duration::from_secs(60));
    // No user has signed in: 401 is a response of the administration.
    match String::from_utf8_lossy(&out.stdout).as_ref() {
        "401" => Ok(()),
        other => Err(format!("{other:?}, {}", String::from_utf8_lossy(&out.stderr))),
    }
}

/// Ends the flood when it is dropped, also when the test has failed.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

fn no_client_is_kept_out(floods: &[Flood], many: bool) {
    let seconds = std::env::var("PLIMSOLL_FLOOD_S").ok().and_then(|s| s.parse().ok());
    let lasts = Duration::from_secs(seconds.unwrap_or(SECONDS));
    let scene = Scene::new("hostile-floods");
    let (over, number) = (AtomicBool::new(false), AtomicU64::new(0));
    let strangers = Strangers { scene: &scene, many, over, number };
    let mut longest = Duration::ZERO;
    std::thread::scope(|scope| {
        let end = End(&strangers.over);
        for flood in floods {
            let strangers = &strangers;
            scope.spawn(move || strangers.flood(*flood));
        }
        let (began, mut round, mut failed) = (Instant::now(), 0, None);
        while began.elapsed() < lasts && failed.is_none() {
            round += 1;
            for (what, outcome, took) in others(&scene, round) {
                longest = longest.max(took);
                failed = failed.or(outcome.err().map(|why| format!("{what}: {why}")));
            }
        }
        drop(end);
        println!("{floods:?}, many addresses: {many}: {round} rounds, longest {longest:?}");
        assert_eq!(failed, None, "{floods:?}, many addresses: {many}");
    });
    took_at_most("the slowest of the others", longest, WAIT);
}

#[test]
fn all_floods_from_one_address_keep_no_client_out() {
    no_client_is_kept_out(&ALL, false);
}

#[test]
fn all_floods_from_many_addresses_keep_no_client_out() {
    no_client_is_kept_out(&ALL, true);
}

/// Each flood separately; a part of `make test-long`.
#[test]
fn each_flood_keeps_no_client_out() {
    for flood in ALL {
        for many in [false, true] {
            no_client_is_kept_out(&[flood], many);
        }
    }
}
