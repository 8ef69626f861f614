//! An alert from end to end: a client drives load, the alert fires, and a web server, a mail server
//! and a syslog receiver of the test are notified; it clears, and fires again. While it fires, it
//! is a problem on the status page.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use base::clock::Deadline;
use e2e::api::Api;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use serde_json::{Value, json};

/// Longest wait for something that must happen.
const WAIT: Duration = e2e::patience(30);
/// A second of load has more calls than this, a second without has none.
const LIMIT: u64 = 5;

/// A server of the test: what each connection brought.
pub struct Sink {
    /// Its port.
    pub port: u16,
    brought: Receiver<String>,
}

impl Sink {
    /// Listens, and talks so with each client.
    pub fn start(talk: fn(TcpStream) -> std::io::Result<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its number").port();
        let (sender, brought) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                stream.set_read_timeout(Some(WAIT)).expect("a deadline");
                // A connection that breaks brought nothing, and the test misses it.
                let Ok(text) = talk(stream) else { continue };
                if sender.send(text).is_err() {
                    return;
                }
            }
        });
        Self { port, brought }
    }

    /// What the next connection brings.
    pub fn next(&self, what: &str) -> String {
        self.brought.recv_timeout(WAIT).unwrap_or_else(|_| panic!("no {what}"))
    }
}

/// Takes a request; its body.
fn web(stream: TcpStream) -> std::io::Result<String> {
    let mut stream = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        if let Some(n) = line.strip_prefix("Content-Length: ") {
            length = n.trim().parse().map_err(std::io::Error::other)?;
        }
        if line.trim_end().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    stream.get_mut().write_all(b"HTTP/1.1 204 No Content\r\n\r\n")?;
    String::from_utf8(body).map_err(std::io::Error::other)
}

/// Receives one mail over SMTP; the lines that the client sent before QUIT.
pub fn mail(stream: TcpStream) -> std::io::Result<String> {
    let mut stream = BufReader::new(stream);
    let mut said = String::new();
    stream.get_mut().write_all(b"220 sink\r\n")?;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 || line.starts_with("QUIT") {
            return Ok(said);
        }
        let mut answer: &[u8] = b"250 ok\r\n";
        if line.starts_with("DATA") {
            stream.get_mut().write_all(b"354 go on\r\n")?;
            while !line.ends_with("\r\n.\r\n") {
                stream.read_line(&mut line)?;
            }
            answer = b"250 taken\r\n";
        }
        said += &line;
        stream.get_mut().write_all(answer)?;
    }
}

/// Calls without end, until the value goes.
struct Load {
    over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Load {
    fn start(server: &Server) -> Self {
        let (mut client, root) = server.mount(0, 0);
        let over = Arc::new(AtomicBool::new(false));
        let end = over.clone();
        let thread = std::thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                client.getattr(&root).expect("attributes");
            }
        });
        Self { over, thread: Some(thread) }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ended = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

fn change(api: &Api, changes: Value) {
    let (code, answer) = api.post("/api/v1/changes", &json!({ "changes": changes }));
    assert_eq!(code, 200, "{answer}");
}

fn property(api: &Api, name: &str) -> Value {
    let (code, node) = api.get("/api/v1/nodes/configuration/alerts/calls");
    assert_eq!(code, 200, "{node}");
    let found = node["properties"].as_array().into_iter().flatten().find(|p| p["name"] == name);
    found.unwrap_or_else(|| panic!("no {name}"))["value"].clone()
}

fn problems(api: &Api) -> Vec<String> {
    let (_, status) = api.get("/api/v1/status");
    let all = status["problems"].as_array().into_iter().flatten();
    all.filter_map(|p| p.as_str().map(str::to_owned)).filter(|p| p.starts_with("alert ")).collect()
}

#[test]
fn an_alert_fires_clears_and_fires_again_and_all_are_notified() {
    let scratch = Scratch::new("alerts");
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let mut server = Server::start(&Options::new(&dir, &state));
    let api = Api::new(&state);
    let (web, mail) = (Sink::start(web), Sink::start(mail));
    let syslog = UdpSocket::bind("127.0.0.1:0").expect("a port");
    syslog.set_read_timeout(Some(WAIT)).expect("a deadline");
    let at = "/configuration/alerts";
    let set =
        |property: &str, value: Value| json!({ "set": at, "property": property, "value": value });
    change(
        &api,
        json!([
            set("smtp_host", json!("127.0.0.1")),
            set("smtp_port", json!(mail.port)),
            set("smtp_security", json!("none")),
            set("mail_from", json!("plimsoll@example.org")),
            { "create": at, "name": "calls", "properties": {
                "statistic": "nfs3.ops[op=getattr]", "limit": LIMIT, "for": 1, "clear_for": 1,
                "mail": ["ops@example.org"],
                "webhook": format!("http://127.0.0.1:{}/hook", web.port),
                "syslog": format!("udp://{}", syslog.local_addr().expect("its address")),
            } },
        ]),
    );
    assert_eq!(problems(&api), Vec::<String>::new());
    for round in 1..=2_u64 {
        let load = Load::start(&server);
        let fired: Value = serde_json::from_str(&web.next("webhook")).expect("JSON");
        assert_eq!((&fired["alert"], &fired["event"]), (&json!("calls"), &json!("fired")));
        assert!(fired["value"].as_f64().expect("a value") > LIMIT as f64, "{fired}");
        let problems = problems(&api);
        assert!(problems.len() == 1 && problems[0].contains("getattr"), "{problems:?}");
        assert_eq!(property(&api, "fired"), json!(round));
        let told = mail.next("mail");
        assert!(told.contains("RCPT TO:<ops@example.org>"), "{told}");
        assert!(told.contains("alert calls fired"), "{told}");
        drop(load);
        let cleared: Value = serde_json::from_str(&web.next("webhook")).expect("JSON");
        assert_eq!(cleared["event"], json!("cleared"));
        assert!(mail.next("mail").contains("alert calls has cleared"));
        for words in ["alert calls fired", "alert calls has cleared"] {
            let mut datagram = [0; 4096];
            let n = syslog.recv(&mut datagram).expect("a datagram");
            let text = String::from_utf8_lossy(&datagram[..n]).into_owned();
            assert!(text.starts_with('<') && text.contains(words), "{text}");
        }
    }
    let until = Deadline::after(WAIT);
    while property(&api, "delivered") != json!(12) {
        assert!(!until.passed(), "{}", property(&api, "delivery_error"));
        std::thread::yield_now();
    }
    assert_eq!(problems(&api), Vec::<String>::new());
    assert!(server.stop().success(), "SIGTERM ends it cleanly");
}
