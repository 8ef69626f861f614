//! A stand-in for etcd: as much of its JSON gateway as heads use, in one process, with faults.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base::base64;
use serde_json::{Value, json};

/// Longest body that is read.
const BODY_MAX: usize = 1 << 20;

#[derive(Debug, Clone)]
struct Entry {
    value: Vec<u8>,
    created: u64,
    modified: u64,
    lease: i64,
}

#[derive(Debug, Default)]
struct State {
    keys: BTreeMap<Vec<u8>, Entry>,
    leases: BTreeMap<i64, (Instant, Duration)>,
    revision: u64,
}

/// What can be broken.
#[derive(Debug, Default)]
pub struct Faults {
    /// No majority: requests are refused, leases do not end.
    pub no_quorum: AtomicBool,
    /// Connections are closed without a response.
    pub cut: AtomicBool,
    /// Each response is sent this number of milliseconds later.
    pub delay_ms: AtomicU64,
}

/// The stand-in; it serves until the process ends.
#[derive(Clone)]
pub struct StandIn {
    /// What is broken.
    pub faults: Arc<Faults>,
    /// Where it listens.
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl StandIn {
    /// Listens at an address of the calling thread's namespace.
    pub fn start(address: &str) -> Self {
        let listener = TcpListener::bind(address).expect("an address");
        let address = listener.local_addr().expect("an address");
        let this = Self { faults: Arc::default(), address, state: Arc::default() };
        let server = this.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = server.clone();
                std::thread::spawn(move || server.serve(stream));
            }
        });
        this
    }

    /// Loses the majority, or gets it back: then all leases begin again, as with a new leader.
    pub fn set_quorum(&self, there: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for (until, time) in state.leases.values_mut() {
            *until = Instant::now() + *time;
        }
        self.faults.no_quorum.store(!there, Ordering::SeqCst);
    }

    /// When the lease of a key ends, or has ended while nothing was asked.
    pub fn lease_end(&self, key: &str) -> Option<Instant> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = state.keys.get(key.as_bytes())?;
        state.leases.get(&entry.lease).map(|(until, _)| *until)
    }

    fn serve(&self, stream: TcpStream) -> Option<()> {
        let (path, body) = request(&stream)?;
        std::thread::sleep(Duration::from_millis(self.faults.delay_ms.load(Ordering::SeqCst)));
        if self.faults.cut.load(Ordering::SeqCst) {
            return None;
        }
        let (status, answer) = match self.faults.no_quorum.load(Ordering::SeqCst) {
            true => (503, json!({ "error": "etcdserver: request timed out", "code": 14 })),
            false => match self.answer(&path, &body) {
                Some(answer) => (200, answer),
                None => (400, json!({ "error": format!("the stand-in has no {path}"), "code": 3 })),
            },
        };
        // In one chunk, as the gateway does.
        let text = answer.to_string();
        let head = format!("HTTP/1.1 {status} Status\r\ntransfer-encoding: chunked\r\n\r\n");
        let all = format!("{head}{:x}\r\n{text}\r\n0\r\n\r\n", text.len());
        (&stream).write_all(all.as_bytes()).ok()
    }

    fn answer(&self, path: &str, body: &Value) -> Option<Value> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.expire();
        match path {
            "/v3/lease/grant" => {
                let time = Duration::from_secs(number(body, "TTL")?);
                let id = 7_587_840_000_000_000_000
                    + state.leases.len() as i64
                    + state.revision as i64 * 1000;
                state.leases.insert(id, (Instant::now() + time, time));
                state.revision += 1;
                Some(json!({ "ID": id.to_string(), "TTL": time.as_secs().to_string() }))
            }
            "/v3/lease/keepalive" => {
                let id = i64::try_from(number(body, "ID")?).ok()?;
                let result = match state.leases.get_mut(&id) {
                    Some((until, time)) => {
                        *until = Instant::now() + *time;
                        json!({ "ID": id.to_string(), "TTL": time.as_secs().to_string() })
                    }
                    // Zero is left out.
                    None => json!({ "ID": id.to_string() }),
                };
                Some(json!({ "result": result }))
            }
            "/v3/kv/range" => {
                let (from, to) = (bytes(body, "key")?, bytes(body, "range_end")?);
                let kvs: Vec<_> = state.keys.range(from..to).map(|(k, e)| entry(k, e)).collect();
                let header = json!({ "revision": state.revision.to_string() });
                match kvs.is_empty() {
                    true => Some(json!({ "header": header })),
                    false => Some(json!({ "header": header, "kvs": kvs })),
                }
            }
            "/v3/kv/txn" => state.transaction(body),
            _ => None,
        }
    }
}

impl State {
    fn expire(&mut self) {
        let now = Instant::now();
        self.leases.retain(|_, (until, _)| now < *until);
        let leases = &self.leases;
        self.keys.retain(|_, entry| entry.lease == 0 || leases.contains_key(&entry.lease));
    }

    fn transaction(&mut self, body: &Value) -> Option<Value> {
        for compare in body.get("compare")?.as_array()? {
            let entry = self.keys.get(&bytes(compare, "key")?);
            let (is, expected) = match compare.get("target")?.as_str()? {
                "CREATE" => (entry.map_or(0, |e| e.created), number(compare, "create_revision")?),
                "MOD" => (entry.map_or(0, |e| e.modified), number(compare, "mod_revision")?),
                _ => return None,
            };
            if is != expected {
                return Some(json!({ "header": { "revision": self.revision.to_string() } }));
            }
        }
        let next = self.revision + 1;
        for operation in body.get("success")?.as_array()? {
            if let Some(put) = operation.get("request_put") {
                let lease = i64::try_from(number(put, "lease")?).ok()?;
                if lease != 0 && !self.leases.contains_key(&lease) {
                    return None;
                }
                let key = bytes(put, "key")?;
                let created = self.keys.get(&key).map_or(next, |entry| entry.created);
                let value = bytes(put, "value")?;
                self.keys.insert(key, Entry { value, created, modified: next, lease });
            }
            if let Some(delete) = operation.get("request_delete_range") {
                self.keys.remove(&bytes(delete, "key")?);
            }
        }
        self.revision = next;
        Some(json!({ "header": { "revision": next.to_string() }, "succeeded": true }))
    }
}

fn entry(key: &[u8], entry: &Entry) -> Value {
    let mut value = json!({
        "key": base64::encode(key),
        "value": base64::encode(&entry.value),
        "create_revision": entry.created.to_string(),
        "mod_revision": entry.modified.to_string(),
    });
    if entry.lease != 0 {
        value["lease"] = json!(entry.lease.to_string());
    }
    value
}

fn bytes(value: &Value, name: &str) -> Option<Vec<u8>> {
    base64::decode(value.get(name)?.as_str()?.trim_end_matches('=').as_bytes())
}

fn number(value: &Value, name: &str) -> Option<u64> {
    value.get(name)?.as_str()?.parse().ok()
}

fn request(stream: &TcpStream) -> Option<(String, Value)> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let text = line.trim().to_ascii_lowercase();
        if text.is_empty() {
            break;
        }
        if let Some(value) = text.strip_prefix("content-length:") {
            length = value.trim().parse().ok().filter(|n| *n <= BODY_MAX)?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((path, serde_json::from_slice(&body).ok()?))
}
