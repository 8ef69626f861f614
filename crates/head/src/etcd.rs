//! A client of etcd by its JSON gateway (`/v3/…`): leases, and the few transactions of heads. Keys
//! and values are base 64, numbers are strings. Requests go to one member until it fails, then to
//! the next one; how they are sent is the affair of a [`Transport`].

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base::base64;
use serde::Serialize;
use serde_json::{Value, json};

use crate::keys::{self, Kind, LeaseId, View};
use crate::limits::{HEAD_ETCD_TIMEOUT, HEAD_RESOURCES_MAX, HEADS_MAX};
use crate::machine::{Outcome, Request};

/// Most keys of a cluster: its heads, and two for each resource.
const KEYS_MAX: usize = HEADS_MAX + 2 * HEAD_RESOURCES_MAX;

/// Sends requests.
pub trait Transport: Send + Sync {
    /// Posts JSON to a path of a member; status and body of the response, which is bounded. The
    /// time is for all of it.
    ///
    /// # Errors
    /// There is no whole response in that time.
    fn post(
        &self,
        member: &str,
        path: &str,
        body: &str,
        time: Duration,
    ) -> std::io::Result<(u16, Vec<u8>)>;
}

/// Why etcd has not done something.
#[derive(Debug, thiserror::Error)]
pub enum EtcdError {
    /// No member has answered.
    #[error("no member of etcd answers; the last one, {member}: {why}")]
    Unanswered {
        /// The member that was tried last.
        member: String,
        /// What it did instead.
        why: String,
    },
    /// A response that is not understood.
    #[error("etcd sent a response without {0}")]
    Response(&'static str),
}

/// etcd, for the keys of one cluster.
pub struct Etcd {
    members: Vec<String>,
    cluster: String,
    transport: Box<dyn Transport>,
    /// The member that has answered last.
    current: AtomicUsize,
}

impl Etcd {
    /// The members, as URLs, and the cluster of heads.
    pub fn new(members: Vec<String>, cluster: &str, transport: Box<dyn Transport>) -> Self {
        Self { members, cluster: cluster.to_owned(), transport, current: AtomicUsize::new(0) }
    }

    /// Asks one member, or another one.
    fn ask(&self, path: &str, body: &Value) -> Result<Value, EtcdError> {
        let (text, first) = (body.to_string(), self.current.load(Ordering::Relaxed));
        let mut last = (String::new(), "no member is configured".to_owned());
        // Two members at most: a third answer would come after the end of the lease.
        for n in 0..self.members.len().min(2) {
            let index = (first + n) % self.members.len();
            let Some(member) = self.members.get(index) else { continue };
            let why = match self.transport.post(member, path, &text, HEAD_ETCD_TIMEOUT) {
                Ok((200, body)) => match serde_json::from_slice(&body) {
                    Ok(value) => {
                        self.current.store(index, Ordering::Relaxed);
                        return Ok(value);
                    }
                    Err(e) => e.to_string(),
                },
                Ok((status, body)) => {
                    let text: String = String::from_utf8_lossy(&body).chars().take(200).collect();
                    format!("status {status}: {}", text.trim())
                }
                Err(e) => e.to_string(),
            };
            last = (member.clone(), why);
        }
        self.current.store((first + 1) % self.members.len().max(1), Ordering::Relaxed);
        Err(EtcdError::Unanswered { member: last.0, why: last.1 })
    }

    /// A lease of at least that time.
    ///
    /// # Errors
    /// [`EtcdError`].
    pub fn grant(&self, time: Duration) -> Result<LeaseId, EtcdError> {
        let answer = self.ask("/v3/lease/grant", &json!({ "TTL": time.as_secs().to_string() }))?;
        let granted = integer(&answer, "TTL").unwrap_or(0);
        let id = integer(&answer, "ID").filter(|id| *id != 0);
        match id {
            Some(id) if granted >= time.as_secs() as i64 => Ok(id),
            Some(_) => Err(EtcdError::Response("a lease that is long enough")),
            None => Err(EtcdError::Response("a lease")),
        }
    }

    /// Renews a lease; false if etcd does not have it.
    ///
    /// # Errors
    /// [`EtcdError`].
    pub fn renew(&self, id: LeaseId) -> Result<bool, EtcdError> {
        let answer = self.ask("/v3/lease/keepalive", &json!({ "ID": id.to_string() }))?;
        // A stream of one message.
        let result = answer.get("result").ok_or(EtcdError::Response("a result"))?;
        if integer(result, "ID") != Some(id) {
            return Err(EtcdError::Response("the lease"));
        }
        Ok(integer(result, "TTL").unwrap_or(0) > 0)
    }

    /// Does a request on keys.
    ///
    /// # Errors
    /// [`EtcdError`]; it may have been done then.
    pub fn request(&self, head: &str, request: &Request) -> Result<Outcome, EtcdError> {
        match request {
            Request::Read => self.read().map(Outcome::View),
            Request::Announce(lease, member) => {
                let put = self.put(Kind::Members, head, member, *lease);
                self.transaction(Vec::new(), vec![put])
            }
            Request::Claim { resource, lease, seen, record } => {
                let absent = self.created(Kind::Owners, resource);
                let same = self.modified(Kind::Resources, resource, *seen);
                let owner = keys::Owner { head: head.to_owned(), number: record.number };
                let owner = self.put(Kind::Owners, resource, &owner, *lease);
                let record = self.put(Kind::Resources, resource, record, 0);
                self.transaction(vec![absent, same], vec![owner, record])
            }
            Request::Release { resource, revision } => {
                let same = self.modified(Kind::Owners, resource, *revision);
                let key = self.key(Kind::Owners, resource);
                self.transaction(
                    vec![same],
                    vec![json!({ "request_delete_range": { "key": key } })],
                )
            }
            Request::Target { resource, seen, record }
            | Request::Report { resource, seen, record } => {
                let same = self.modified(Kind::Resources, resource, *seen);
                let record = self.put(Kind::Resources, resource, record, 0);
                self.transaction(vec![same], vec![record])
            }
        }
    }

    fn read(&self) -> Result<View, EtcdError> {
        let prefix = keys::prefix(&self.cluster);
        // What follows the slash in ASCII ends the range.
        let end = format!("{}0", prefix.trim_end_matches('/'));
        let (key, range_end) = (encoded(&prefix), encoded(&end));
        let body = json!({ "key": key, "range_end": range_end, "limit": KEYS_MAX.to_string() });
        let answer = self.ask("/v3/kv/range", &body)?;
        let mut view = View::default();
        // Without keys there is no list.
        let list = answer.get("kvs").and_then(Value::as_array);
        for entry in list.into_iter().flatten().take(KEYS_MAX) {
            let key = text(entry, "key").ok_or(EtcdError::Response("a key"))?;
            let key = String::from_utf8(key).map_err(|_| EtcdError::Response("a key of text"))?;
            let value = text(entry, "value").unwrap_or_default();
            let revision = integer(entry, "mod_revision").and_then(|n| u64::try_from(n).ok());
            let revision = revision.ok_or(EtcdError::Response("a revision"))?;
            let lease = integer(entry, "lease").unwrap_or(0);
            view.enter(&self.cluster, &key, &value, (revision, lease));
        }
        Ok(view)
    }

    fn key(&self, kind: Kind, name: &str) -> String {
        encoded(&keys::key(&self.cluster, kind, name))
    }

    fn put(&self, kind: Kind, name: &str, value: &impl Serialize, lease: LeaseId) -> Value {
        let value = json!(value).to_string();
        json!({ "request_put": {
            "key": self.key(kind, name), "value": encoded(&value), "lease": lease.to_string(),
        } })
    }

    /// Condition: the key does not exist.
    fn created(&self, kind: Kind, name: &str) -> Value {
        json!({ "key": self.key(kind, name), "target": "CREATE", "result": "EQUAL",
            "create_revision": "0" })
    }

    /// Condition: the key has this revision (0: does not exist).
    fn modified(&self, kind: Kind, name: &str, revision: u64) -> Value {
        json!({ "key": self.key(kind, name), "target": "MOD", "result": "EQUAL",
            "mod_revision": revision.to_string() })
    }

    fn transaction(&self, compare: Vec<Value>, success: Vec<Value>) -> Result<Outcome, EtcdError> {
        let answer = self.ask("/v3/kv/txn", &json!({ "compare": compare, "success": success }))?;
        // What is false is left out of a response.
        if answer.get("succeeded").and_then(Value::as_bool) != Some(true) {
            return Ok(Outcome::Refused);
        }
        let revision = answer.get("header").and_then(|header| integer(header, "revision"));
        let revision = revision.and_then(|n| u64::try_from(n).ok());
        revision.map(Outcome::Done).ok_or(EtcdError::Response("a revision"))
    }
}

fn encoded(text: &str) -> String {
    base64::encode(text.as_bytes())
}

fn text(value: &Value, name: &str) -> Option<Vec<u8>> {
    base64::decode(value.get(name)?.as_str()?.trim_end_matches('=').as_bytes())
}

/// A number of 64 bits, which the gateway writes as a string.
fn integer(value: &Value, name: &str) -> Option<i64> {
    match value.get(name)? {
        Value::String(text) => text.parse().ok(),
        number => number.as_i64(),
    }
}
