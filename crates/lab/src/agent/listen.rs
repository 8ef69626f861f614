//! An agent that listens: one controller at a time, which has proved the join code; peers that have
//! not delay it no longer than the limits for them.

use super::allow::Allowed;
use super::code::{Codes, JoinCode, Role};
use super::connection::Connection;
use super::gate::{Gate, HalfOpen};
use super::join::{self, Arrival, Refusal};
use super::tls::Identity;
use super::{AgentError, Origin, converse, greet};
use base::clock::monotonic_ns;
use base::limits::{LAB_AGENT_BUSY_MAX, LAB_AGENT_STRANGERS_MAX};
use base::out::note;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What an agent listens with.
pub(super) struct Listening {
    /// Its certificate.
    pub identity: Identity,
    /// Its join codes.
    pub codes: Codes,
    /// What prints a code that follows a used one.
    pub renewed: fn(&JoinCode),
    /// A file that the agent has written the code to, which is removed when it was used.
    pub written: Option<PathBuf>,
}

/// What the threads of a listening agent share.
struct Admission {
    identity: Identity,
    codes: Mutex<Codes>,
    renewed: fn(&JoinCode),
    written: Option<PathBuf>,
    /// Whether a controller is served.
    busy: Mutex<bool>,
    left: Condvar,
}

/// Serves one controller at a time; with `once` the first one only, for which it waits that long.
pub(super) fn serve(
    listener: TcpListener,
    listening: Listening,
    allowed: Allowed,
    once: Option<Duration>,
) -> Result<(), AgentError> {
    let admission = Arc::new(Admission::new(listening));
    let (sender, proved) = sync_channel(0);
    let (shared, origin) = (Arc::clone(&admission), Arc::new(Origin::Tcp(allowed)));
    std::thread::spawn(move || {
        let never = AtomicBool::new(false);
        Gate::new(LAB_AGENT_STRANGERS_MAX).accept(&listener, &never, move |socket, half_open| {
            shared.prove(socket, half_open, &sender);
        });
    });
    loop {
        let mut connection = next(&proved, once)?;
        let ended = greet(&mut connection).and_then(|()| converse(connection, &origin));
        admission.leave();
        if once.is_some() {
            return ended.map_err(AgentError::from);
        }
        if let Err(error) = ended {
            note(&format!("controller: {error}"));
        }
    }
}

fn next(proved: &Receiver<Connection>, once: Option<Duration>) -> Result<Connection, AgentError> {
    let wait = once.unwrap_or(Duration::MAX);
    proved.recv_timeout(wait).map_err(|error| match error {
        RecvTimeoutError::Timeout => AgentError::NoController,
        RecvTimeoutError::Disconnected => AgentError::Ended,
    })
}

impl Admission {
    fn new(listening: Listening) -> Self {
        let Listening { identity, codes, renewed, written } = listening;
        let (codes, busy, left) = (Mutex::new(codes), Mutex::new(false), Condvar::new());
        Self { identity, codes, renewed, written, busy, left }
    }

    fn codes(&self) -> MutexGuard<'_, Codes> {
        self.codes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn busy(&self) -> MutexGuard<'_, bool> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the first message, and hands the connection on if its peer has the code and no other
    /// controller is served.
    fn prove(&self, socket: TcpStream, half_open: HalfOpen, sender: &SyncSender<Connection>) {
        let deadline = join::first_message();
        let arrival = Arrival::read(socket, &self.identity, deadline, || half_open.sends());
        drop(half_open);
        // A peer that is no controller gets no reply.
        let Ok(arrival) = arrival else { return };
        // The code before all else: a peer without it learns nothing of this agent.
        if !self.codes().recognises(|code| arrival.proves(code)) {
            return arrival.refuse_code(Refusal::WrongCode, Role::Agent);
        }
        if let Some((why, what)) = arrival.unfit(Role::Agent) {
            return arrival.refuse(why, what, true);
        }
        if !self.take() {
            let what = Refusal::Busy.sentence(Role::Agent).to_owned();
            return arrival.refuse(Refusal::Busy, what, true);
        }
        match self.redeem(&arrival) {
            Err(why) => {
                self.leave();
                arrival.refuse_code(why, Role::Agent);
            }
            Ok(code) => {
                let welcome = arrival.welcome(Role::Agent, &code);
                let connection = welcome.map(|joined| joined.connection());
                if connection.is_ok_and(|connection| sender.send(connection).is_ok()) {
                    return;
                }
                self.leave();
            }
        }
    }

    /// The code by which the peer is admitted.
    fn redeem(&self, arrival: &Arrival) -> Result<JoinCode, Refusal> {
        let proves = |code: &JoinCode| arrival.proves(code);
        let redeemed = self.codes().redeem(monotonic_ns(), arrival.peer, proves);
        let (result, renewed) = match redeemed {
            Ok(redeemed) => (Ok(redeemed.code), redeemed.renewed),
            Err((why, renewed)) => (Err(why.into()), renewed),
        };
        if let Some(code) = &renewed {
            (self.renewed)(code);
        }
        if let (Ok(_), Some(file)) = (&result, &self.written) {
            // The first time only; it may be gone already.
            let _gone = std::fs::remove_file(file);
        }
        result
    }

    /// Takes the one permit of a controller, for which it waits a while.
    fn take(&self) -> bool {
        let waited = self.left.wait_timeout_while(self.busy(), LAB_AGENT_BUSY_MAX, |busy| *busy);
        let (mut busy, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !std::mem::replace(&mut *busy, true)
    }

    fn leave(&self) {
        *self.busy() = false;
        self.left.notify_one();
    }
}

#[cfg(test)]
mod tests;
