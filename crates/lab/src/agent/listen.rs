//! An agent that listens: peers prove themselves with the token before anything else, several at a
//! time and each with a deadline, so that a silent one holds up no controller.

use super::allow::Allowed;
use super::connection::Connection;
use super::proto::{self, FromAgent, ProtoError, ToAgent};
use super::token::Token;
use super::{AgentError, Origin, converse};
use base::clock::Deadline;
use base::limits::{
    LAB_AGENT_ACCEPT_PAUSE, LAB_AGENT_BUSY_MAX, LAB_AGENT_HELLO_MAX, LAB_AGENT_HELLO_TIME_MAX,
    LAB_AGENT_STRANGERS_MAX,
};
use base::out::note;
use std::collections::VecDeque;
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Connections that have not proved themselves, oldest first, and whether a controller is served.
#[derive(Default)]
struct State {
    strangers: VecDeque<(u64, Connection)>,
    next: u64,
    busy: bool,
}

/// What the threads of a listening agent share.
struct Admission {
    token: Token,
    state: Mutex<State>,
    left: Condvar,
}

/// The connection of a controller that has proved itself and was greeted.
type Proved = Connection;

/// Serves one controller at a time; with `once` the first one only, for which it waits that long.
pub(super) fn serve(
    listener: TcpListener,
    token: Token,
    allowed: Allowed,
    once: Option<Duration>,
) -> Result<(), AgentError> {
    let admission = Arc::new(Admission { token, state: Mutex::default(), left: Condvar::new() });
    let (sender, proved) = sync_channel(0);
    let (shared, origin) = (Arc::clone(&admission), Arc::new(Origin::Tcp(allowed)));
    std::thread::spawn(move || accept(&listener, &shared, &sender));
    loop {
        let connection = next(&proved, once)?;
        let ended = converse(connection, &origin);
        admission.leave();
        if once.is_some() {
            return ended.map_err(AgentError::from);
        }
        if let Err(error) = ended {
            note(&format!("controller: {error}"));
        }
    }
}

fn next(proved: &Receiver<Proved>, once: Option<Duration>) -> Result<Proved, AgentError> {
    let wait = once.unwrap_or(Duration::MAX);
    proved.recv_timeout(wait).map_err(|error| match error {
        RecvTimeoutError::Timeout => AgentError::Alone,
        RecvTimeoutError::Disconnected => AgentError::Ended,
    })
}

/// Accepts for as long as the agent serves.
fn accept(listener: &TcpListener, admission: &Arc<Admission>, sender: &SyncSender<Proved>) {
    loop {
        let accepted = listener.accept().and_then(|(stream, _)| Connection::tcp(stream));
        let entered =
            accepted.and_then(|connection| Ok((admission.enter(&connection)?, connection)));
        let Ok((number, connection)) = entered else {
            // No descriptors, or a peer that has gone already.
            std::thread::sleep(LAB_AGENT_ACCEPT_PAUSE);
            continue;
        };
        let (admission, sender) = (Arc::clone(admission), sender.clone());
        std::thread::spawn(move || {
            if let Some(connection) = admission.prove(number, connection)
                && sender.send(connection).is_err()
            {
                admission.leave();
            }
        });
    }
}

impl Admission {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a new connection; the oldest one that has not proved itself gives way if there are
    /// too many.
    fn enter(&self, connection: &Connection) -> std::io::Result<u64> {
        let copy = connection.try_clone()?;
        let mut state = self.state();
        if state.strangers.len() >= LAB_AGENT_STRANGERS_MAX
            && let Some((_, oldest)) = state.strangers.pop_front()
        {
            oldest.shutdown();
        }
        state.next += 1;
        let number = state.next;
        state.strangers.push_back((number, copy));
        Ok(number)
    }

    /// Reads the first message. The connection comes back if its peer has the token, and if no
    /// other controller is served.
    fn prove(&self, number: u64, mut connection: Connection) -> Option<Proved> {
        let deadline = Deadline::after(LAB_AGENT_HELLO_TIME_MAX);
        let hello = proto::receive::<ToAgent>(&mut connection.until(deadline, LAB_AGENT_HELLO_MAX));
        self.state().strangers.retain(|(n, _)| *n != number);
        let answer = self.judge(hello.ok()?);
        let taken = matches!(answer, FromAgent::Hello { .. });
        let sent = connection.set_read_timeout(None).is_ok()
            && proto::send(&mut connection, &answer).is_ok();
        if taken && !sent {
            self.leave();
        }
        (taken && sent).then_some(connection)
    }

    /// The answer to a first message: a peer without the token learns nothing of the agent.
    fn judge(&self, hello: ToAgent) -> FromAgent {
        let failed = |what: &dyn std::fmt::Display| FromAgent::Failed { what: what.to_string() };
        let ToAgent::Hello { versions, token } = hello else {
            return failed(&ProtoError::Order("hello"));
        };
        if !self.token.is(token.as_deref()) {
            return failed(&"wrong token; give the agent's token with --token-file");
        }
        match proto::agree(versions) {
            Err(error) => failed(&error),
            Ok(_) if !self.take() => failed(&"the agent is in use by another controller"),
            Ok(version) => proto::hello(version),
        }
    }

    /// Takes the one place of a controller, for which it waits a while.
    fn take(&self) -> bool {
        let waited = self.left.wait_timeout_while(self.state(), LAB_AGENT_BUSY_MAX, |s| s.busy);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !std::mem::replace(&mut state.busy, true)
    }

    fn leave(&self) {
        self.state().busy = false;
        self.left.notify_one();
    }
}

#[cfg(test)]
mod tests;
