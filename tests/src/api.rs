//! The API of a running server, asked through its local socket (docs/protocols/api.md).

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use base::text::percent;
use serde_json::Value;

use crate::deadline::Deadline;

/// Longest wait for one answer.
const ANSWER: Duration = crate::patience(30);
/// How often something is asked for that is not there yet; there is no event for it.
const AGAIN: Duration = Duration::from_millis(50);

/// A server's API.
#[derive(Debug, Clone)]
pub struct Api {
    socket: PathBuf,
}

impl Api {
    /// Of the server with this state directory.
    pub fn new(state: &Path) -> Self {
        Self { socket: state.join("plimsoll.sock") }
    }

    /// `GET path`: the HTTP status and the body.
    ///
    /// # Panics
    /// When there is no answer.
    pub fn get(&self, path: &str) -> (u16, Value) {
        self.ask("GET", path, None)
    }

    /// `POST path` with a JSON body: the HTTP status and the body of the answer.
    ///
    /// # Panics
    /// When there is no answer.
    pub fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.ask("POST", path, Some(body))
    }

    /// `DELETE path`: the HTTP status and the body.
    ///
    /// # Panics
    /// When there is no answer.
    pub fn delete(&self, path: &str) -> (u16, Value) {
        self.ask("DELETE", path, None)
    }

    /// `PUT path` with a text: the HTTP status and the body of the answer.
    ///
    /// # Panics
    /// When there is no answer.
    pub fn put_text(&self, path: &str, text: &str) -> (u16, Value) {
        let (code, answer) = self.exchange("PUT", path, "text/plain; charset=utf-8", text);
        (code, serde_json::from_slice(&answer).unwrap_or_default())
    }

    /// `GET path` of what is no JSON: the HTTP status and the body.
    ///
    /// # Panics
    /// When there is no answer, or it is no UTF-8.
    pub fn text(&self, path: &str) -> (u16, String) {
        let (code, answer) = self.exchange("GET", path, "", "");
        (code, String::from_utf8(answer).expect("a text"))
    }

    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let body = body.map(Value::to_string).unwrap_or_default();
        let (code, answer) = self.exchange(method, path, "application/json", &body);
        (code, serde_json::from_slice(&answer).unwrap_or_default())
    }

    fn exchange(&self, method: &str, path: &str, kind: &str, body: &str) -> (u16, Vec<u8>) {
        let mut stream = UnixStream::connect(&self.socket).expect("the local socket");
        stream.set_read_timeout(Some(ANSWER)).expect("a deadline");
        let about = match body.len() {
            0 => String::new(),
            n => format!("Content-Type: {kind}\r\nContent-Length: {n}\r\n"),
        };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: plimsoll\r\n{about}Connection: close\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).expect("the request");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("the answer");
        let end = answer.windows(4).position(|w| w == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
        assert!(!head.contains("transfer-encoding"), "{head}");
        let status = head.split_whitespace().nth(1).and_then(|s| s.parse().ok());
        (status.expect("a status"), answer.split_off(end + 4))
    }

    /// The status object.
    ///
    /// # Panics
    /// When it is refused.
    pub fn status(&self) -> Value {
        let (code, status) = self.get("/api/v1/status");
        assert_eq!(code, 200, "{status}");
        status
    }

    /// One entry of the budgets: used and limit.
    ///
    /// # Panics
    /// When there is none of this name.
    pub fn budget(&self, id: &str) -> (u64, u64) {
        let status = self.status();
        let budgets = status["budgets"].as_array().expect("budgets");
        let one = budgets.iter().find(|b| b["id"] == id).unwrap_or_else(|| panic!("{status}"));
        (one["used"].as_u64().expect("used"), one["limit"].as_u64().expect("a limit"))
    }

    /// Bytes of requests and replies that the service that holds most holds now.
    ///
    /// # Panics
    /// When they are more than may be.
    pub fn bytes_in_flight(&self) -> u64 {
        let (used, limit) = self.budget("server.bytes_in_flight");
        assert!(used <= limit, "{used} bytes are in flight, {limit} may be");
        used
    }

    /// Bytes that the server has allocated, in the first whole second from now.
    ///
    /// # Panics
    /// When the server does not count them.
    pub fn heap(&self) -> u64 {
        let second = now() + 1;
        self.wait_for_second(second);
        match self.count("server.heap_bytes", (second, second + 1)) {
            0 => panic!("the server does not count what it has allocated"),
            bytes => bytes,
        }
    }

    /// A data object; `more` is appended to the query, as in `&source=recorder`.
    ///
    /// # Panics
    /// When it is refused.
    pub fn data(&self, stat: &str, (from, to): (i64, i64), more: &str) -> Value {
        let stat = escape(stat);
        let path = format!("/api/v1/analytics/data?stat={stat}&from={from}&to={to}&top=1000{more}");
        let (code, data) = self.get(&path);
        assert_eq!(code, 200, "{path}: {data}");
        data
    }

    /// Sum of a counter over an interval: its seconds' values added up.
    pub fn count(&self, stat: &str, interval: (i64, i64)) -> u64 {
        sum(&self.data(stat, interval, "")["total"])
    }

    /// Waits until a counter of the server has counted exactly this much since `started`, a time
    /// before the server's start. Such counters are published by threads with a turn of their own
    /// and read when a second is put together: what moved one may stand in the second before, or
    /// in some later one.
    ///
    /// # Panics
    /// When it does not get there.
    pub fn wait_counter(&self, stat: &str, started: i64, count: u64) {
        let mut deadline = Deadline::after(crate::patience(30));
        let seen = || self.count(stat, (started, now() + 1));
        let mut last = seen();
        while last != count {
            assert!(!deadline.is_over(), "{stat}: {last}, and not {count}");
            std::thread::sleep(AGAIN);
            last = seen();
        }
    }

    /// Waits until the second `time` is over and can be asked for.
    ///
    /// # Panics
    /// When that does not happen.
    pub fn wait_for_second(&self, time: i64) {
        let there = || {
            let data = self.data("nfs3.ops", (time, time + 1), "");
            data["total"][0].is_number().then_some(())
        };
        wait_for("a second in the statistics", Duration::from_secs(30), there);
    }
}

/// Seconds since the epoch.
pub fn now() -> i64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0, |t| t.as_secs() as i64)
}

/// The sum of a list of numbers, nulls left out.
pub fn sum(values: &Value) -> u64 {
    let values = values.as_array().into_iter().flatten();
    values.filter_map(Value::as_f64).sum::<f64>().round() as u64
}

/// Asks until there is an answer; `limit` is that of a machine that has little else to do.
///
/// # Panics
/// When there is none by the deadline.
pub fn wait_for<T>(what: &str, limit: Duration, mut ask: impl FnMut() -> Option<T>) -> T {
    let limit = limit * crate::BUSY;
    let mut deadline = Deadline::after(limit);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(!deadline.is_over(), "not within {limit:?}: {what}");
        std::thread::sleep(AGAIN);
    }
}

fn escape(stat: &str) -> String {
    percent(stat.as_bytes(), b".-_/")
}
