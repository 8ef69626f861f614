//! Calls in the other direction: from this server to the peer of a connection, over a connection
//! that the peer has made (the back channel of NFSv4.1) or one from this server ([`super::dial`]).
//!
//! A call goes to the queue of the connection, which sends it between its replies; the reply
//! arrives among the peer's calls and is found by its xid. No thread waits: each call has a
//! continuation that runs then.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use base::limits::BACK_CALLS_MAX;
use base::lock_order::{OrderedGuard, OrderedMutex, ranks};
use wire::rpc::{Accepted, Auth, CallHeader, ReplyBody, ReplyHeader};
use wire::xdr::{Decode, Encode, Reader, Writer};

use super::completion::Completion;
use engine::exec::CompletionQueue;

/// What to call.
#[derive(Debug, Clone, Copy)]
pub struct BackCall<'a> {
    /// Program.
    pub program: u32,
    /// Its version.
    pub version: u32,
    /// Procedure.
    pub procedure: u32,
    /// The credential of the call.
    pub cred: Auth<'a>,
    /// The arguments, encoded.
    pub args: &'a [u8],
}

/// Why a call has no results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// The connection has ended, or could not be made.
    #[error("the peer cannot be reached")]
    Unreachable,
    /// Too many calls wait for their replies.
    #[error("the peer has too many calls to answer")]
    Busy,
    /// The peer does not serve the program, or not to us.
    #[error("the peer refused the call")]
    Refused,
}

/// What is done with the results; must be short, and wait for nothing.
pub type ReplyHandler = Box<dyn FnOnce(Result<&[u8], Unanswered>) + Send>;

/// The way back to a connection's peer.
pub struct Back {
    connection: u64,
    queue: Arc<CompletionQueue<Completion>>,
    calls: OrderedMutex<Calls>,
    ended: AtomicBool,
}

impl std::fmt::Debug for Back {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Back").field("connection", &self.connection).finish_non_exhaustive()
    }
}

struct Calls {
    open: bool,
    xid: u32,
    waiting: HashMap<u32, ReplyHandler>,
}

impl Back {
    /// The way back over the connection with this number, which takes them from this queue.
    pub(super) fn new(connection: u64, queue: Arc<CompletionQueue<Completion>>) -> Arc<Self> {
        // Any start will do: the peer distinguishes the calls by it and by nothing else.
        let calls = Calls { open: true, xid: connection as u32, waiting: HashMap::new() };
        let calls = OrderedMutex::new(ranks::BACK_CALLS, calls);
        Arc::new(Self { connection, queue, calls, ended: AtomicBool::new(false) })
    }

    /// A way back over no connection: what is called stays where it is.
    #[cfg(test)]
    pub(crate) fn alone(connection: u64) -> Arc<Self> {
        Self::new(connection, Arc::default())
    }

    fn lock(&self) -> OrderedGuard<'_, Calls> {
        self.calls.lock()
    }

    /// The connection's number.
    pub fn connection(&self) -> u64 {
        self.connection
    }

    /// Whether calls may still get replies.
    pub fn is_open(&self) -> bool {
        self.lock().open
    }

    /// Whether the connection has ended: neither calls nor replies reach the peer over it.
    #[inline]
    pub fn has_ended(&self) -> bool {
        self.ended.load(Relaxed)
    }

    /// Calls the peer; `then` runs with the reply, or at once if there cannot be one.
    pub fn call(&self, call: &BackCall<'_>, then: ReplyHandler) {
        let mut calls = self.lock();
        let refused = match (calls.open, calls.waiting.len() < BACK_CALLS_MAX) {
            (false, _) => Some(Unanswered::Unreachable),
            (_, false) => Some(Unanswered::Busy),
            _ => None,
        };
        if let Some(why) = refused {
            drop(calls);
            return then(Err(why));
        }
        calls.xid = calls.xid.wrapping_add(1);
        let xid = calls.xid;
        calls.waiting.insert(xid, then);
        drop(calls);
        self.queue.push(Completion::Call { message: message(call, xid) });
    }

    /// A reply has arrived. False if there is no such call: the peer has violated the protocol.
    pub(super) fn answered(&self, message: &[u8]) -> bool {
        let mut r = Reader::new(message);
        let Ok(header) = ReplyHeader::decode(&mut r) else { return false };
        let Some(then) = self.lock().waiting.remove(&header.xid) else { return false };
        match header.body {
            ReplyBody::Accepted { stat: Accepted::Success, .. } => then(Ok(r.rest())),
            _ => then(Err(Unanswered::Refused)),
        }
        true
    }

    /// The peer has refused a call without a reply (an error of its framing). False if there is no
    /// such call.
    pub(super) fn refused(&self, xid: u32) -> bool {
        let Some(then) = self.lock().waiting.remove(&xid) else { return false };
        then(Err(Unanswered::Refused));
        true
    }

    /// The connection has ended: no call gets a reply any more.
    pub(crate) fn close(&self) {
        self.ended.store(true, Relaxed);
        let waiting = {
            let mut calls = self.lock();
            calls.open = false;
            std::mem::take(&mut calls.waiting)
        };
        waiting.into_values().for_each(|then| then(Err(Unanswered::Unreachable)));
    }
}

/// The call's message.
fn message(call: &BackCall<'_>, xid: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut w = Writer::new(&mut bytes);
    let BackCall { program: prog, version: vers, procedure: proc, cred, args } = *call;
    CallHeader { xid, prog, vers, proc, cred, verf: Auth::None }.encode(&mut w);
    w.raw(args);
    bytes
}

#[cfg(test)]
mod tests;
