//! Agents on other machines: called by the controller, or calling it. The join codes are used at
//! the first run; for the next one of the same process both sides recognise each other by their
//! certificates.

use crate::agent::binding::Fingerprint;
use crate::agent::code::{CodeError, CodeFile, Codes, JoinCode, ListenerCode, Role};
use crate::agent::gate::{Gate, HalfOpen};
use crate::agent::join::{self, Arrival, Caller, JoinError, Joined, Refusal};
use crate::agent::tls::Identity;
use base::clock::{Deadline, monotonic_ns};
use base::limits::{
    LAB_AGENT_CALLS_MAX, LAB_AGENT_JOIN_MAX, LAB_AGENT_RETURN_MAX, LAB_AGENTS_MAX,
    LAB_CONTROLLER_STRANGERS_MAX,
};
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Why there are no agents.
#[derive(Debug, thiserror::Error)]
pub enum RosterError {
    /// There are no codes.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// There is no certificate.
    #[error("cannot use TLS")]
    Tls(#[source] io::Error),
    /// Nothing can be listened on.
    #[error("cannot listen for agents on {0}")]
    Listen(SocketAddr, #[source] io::Error),
    /// There are none or too many.
    #[error("the number of agents is from 1 to {LAB_AGENTS_MAX}")]
    Number,
    /// One did not join.
    #[error("agent {0}: {1}")]
    Join(u32, JoinError),
    /// Some have not called.
    #[error("{joined} of {agents} agents have called {at} within {within:?}")]
    Missing {
        /// How many have.
        joined: usize,
        /// How many there are to be.
        agents: u32,
        /// Where the controller listens.
        at: SocketAddr,
        /// How long it has waited.
        within: Duration,
    },
}

/// The agents of a controller, in their order.
pub struct Roster {
    identity: Identity,
    meeting: Meeting,
}

enum Meeting {
    Call { agents: Vec<(String, JoinCode)>, pinned: Mutex<Vec<Option<Fingerprint>>> },
    Listen(Arc<Listening>),
}

impl fmt::Debug for Roster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.meeting {
            Meeting::Call { agents, .. } => {
                f.debug_list().entries(agents.iter().map(|(address, _)| address)).finish()
            }
            Meeting::Listen(listening) => write!(f, "Roster({})", listening.at),
        }
    }
}

/// One agent that has joined, and where it was reached or called from.
pub type Member = (String, Joined);

impl Roster {
    /// Agents that listen at these addresses, with their codes.
    ///
    /// # Errors
    /// [`RosterError`]
    pub fn call(addresses: &[String], codes: &CodeFile) -> Result<Self, RosterError> {
        if addresses.is_empty() || addresses.len() > LAB_AGENTS_MAX as usize {
            return Err(RosterError::Number);
        }
        let with_code = |address: &String| Ok((address.clone(), codes.code(address)?));
        let agents = addresses.iter().map(with_code).collect::<Result<Vec<_>, CodeError>>()?;
        let pinned = Mutex::new(vec![None; agents.len()]);
        let identity = Identity::new().map_err(RosterError::Tls)?;
        Ok(Self { identity, meeting: Meeting::Call { agents, pinned } })
    }

    /// A number of agents that call this address, with the code of a file or a new one, which is
    /// returned, and written to the file.
    ///
    /// # Errors
    /// [`RosterError`]
    pub fn listen(
        at: SocketAddr,
        agents: u32,
        file: Option<&Path>,
        life: Duration,
    ) -> Result<(Self, ListenerCode), RosterError> {
        if agents == 0 || agents > LAB_AGENTS_MAX {
            return Err(RosterError::Number);
        }
        let fail = |e| RosterError::Listen(at, e);
        let listener = TcpListener::bind(at).map_err(fail)?;
        let at = listener.local_addr().map_err(fail)?;
        let code = ListenerCode::new(file)?;
        let identity = Identity::new().map_err(RosterError::Tls)?;
        let listening = Arc::new(Listening {
            identity: identity.clone(),
            at,
            agents,
            codes: Mutex::new(Codes::new(code.code.clone(), agents, life, false)),
            waiting: Mutex::default(),
            came: Condvar::new(),
            ended: AtomicBool::new(false),
            gathered: AtomicBool::new(false),
            written: code.written.clone(),
        });
        let shared = Arc::clone(&listening);
        std::thread::spawn(move || {
            let handler = Arc::clone(&shared);
            let gate = Gate::new(LAB_CONTROLLER_STRANGERS_MAX);
            gate.accept(&listener, &shared.ended, move |socket, half_open| {
                handler.admit(socket, half_open);
            });
        });
        Ok((Self { identity, meeting: Meeting::Listen(listening) }, code))
    }

    /// Where the controller listens, if it does.
    pub fn listens_at(&self) -> Option<SocketAddr> {
        match &self.meeting {
            Meeting::Call { .. } => None,
            Meeting::Listen(listening) => Some(listening.at),
        }
    }

    /// A connection to each agent, in their order.
    ///
    /// # Errors
    /// The first agent that does not join.
    pub fn gather(&self) -> Result<Vec<Member>, RosterError> {
        match &self.meeting {
            Meeting::Call { agents, pinned } => call_all(&self.identity, agents, pinned),
            Meeting::Listen(listening) => listening.gather(),
        }
    }
}

impl Drop for Roster {
    fn drop(&mut self) {
        let Meeting::Listen(listening) = &self.meeting else { return };
        listening.ended.store(true, Ordering::SeqCst);
        listening.forget_code();
        // Wakes the thread that accepts; if that fails it ends with the next agent.
        let _woken = TcpStream::connect_timeout(&listening.at, Duration::from_secs(1));
    }
}

/// Calls agents, some at a time.
fn call_all(
    identity: &Identity,
    agents: &[(String, JoinCode)],
    pinned: &Mutex<Vec<Option<Fingerprint>>>,
) -> Result<Vec<Member>, RosterError> {
    let next = AtomicUsize::new(0);
    let known = lock(pinned).clone();
    let results: Mutex<Vec<Option<Result<Joined, JoinError>>>> =
        Mutex::new(agents.iter().map(|_| None).collect());
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::SeqCst);
            let Some((address, code)) = agents.get(number) else { return };
            let pinned = known.get(number).copied().flatten();
            let caller = Caller { role: Role::Controller, identity, code, pinned };
            let joined = caller.call(address);
            lock(&results)[number] = Some(joined);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..agents.len().min(LAB_AGENT_CALLS_MAX) {
            scope.spawn(work);
        }
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut members = Vec::new();
    let mut first = None;
    for (number, (result, (address, _))) in results.into_iter().zip(agents).enumerate() {
        match result {
            Some(Ok(joined)) => {
                // Those that have joined are recognised later, also if others have not.
                lock(pinned)[number] = Some(joined.peer);
                members.push((address.clone(), joined));
            }
            Some(Err(error)) => {
                first.get_or_insert(RosterError::Join(number as u32, error));
            }
            None => {}
        }
    }
    first.map_or(Ok(members), Err)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A controller that agents call.
struct Listening {
    identity: Identity,
    at: SocketAddr,
    agents: u32,
    codes: Mutex<Codes>,
    /// Agents that have joined and are in no run yet.
    waiting: Mutex<Vec<Member>>,
    came: Condvar,
    ended: AtomicBool,
    /// Whether there was a run.
    gathered: AtomicBool,
    written: Option<PathBuf>,
}

impl Listening {
    /// Removes the file that the code was written to.
    fn forget_code(&self) {
        // It is gone already once all agents have joined.
        let _gone = self.written.as_ref().map(std::fs::remove_file);
    }

    fn admit(&self, socket: TcpStream, half_open: HalfOpen) {
        let from = socket.peer_addr().map(|at| at.to_string()).unwrap_or_default();
        let deadline = join::first_message();
        let arrival = Arrival::read(socket, &self.identity, deadline, || half_open.sends());
        drop(half_open);
        let Ok(arrival) = arrival else { return };
        let proves = |code: &JoinCode| arrival.proves(code);
        if !lock(&self.codes).recognises(proves) {
            return arrival.refuse_code(Refusal::WrongCode, Role::Controller);
        }
        if let Some((why, what)) = arrival.unfit(Role::Controller) {
            return arrival.refuse(why, what, true);
        }
        let redeemed = lock(&self.codes).redeem(monotonic_ns(), arrival.peer, proves);
        let code = match redeemed {
            Ok(redeemed) => redeemed.code,
            Err((why, _)) => return arrival.refuse_code(why.into(), Role::Controller),
        };
        if lock(&self.codes).used_up() {
            self.forget_code();
        }
        let Ok(joined) = arrival.welcome(Role::Controller, &code) else { return };
        let mut waiting = lock(&self.waiting);
        // A newer connection of the same agent: the earlier one has ended.
        waiting.retain(|(_, earlier)| earlier.peer != joined.peer);
        waiting.push((from, joined));
        self.came.notify_all();
    }

    fn gather(&self) -> Result<Vec<Member>, RosterError> {
        let first = !self.gathered.load(Ordering::SeqCst);
        let within = if first { LAB_AGENT_JOIN_MAX } else { LAB_AGENT_RETURN_MAX };
        let deadline = Deadline::after(within);
        let mut waiting = lock(&self.waiting);
        while waiting.len() < self.agents as usize {
            let Some(left) = deadline.left() else {
                let (joined, agents, at) = (waiting.len(), self.agents, self.at);
                return Err(RosterError::Missing { joined, agents, at, within });
            };
            let waited = self.came.wait_timeout(waiting, left);
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        self.gathered.store(true, Ordering::SeqCst);
        let order: Vec<Fingerprint> = lock(&self.codes).admitted().collect();
        let mut members = std::mem::take(&mut *waiting);
        members.sort_by_key(|(_, joined)| order.iter().position(|peer| *peer == joined.peer));
        Ok(members)
    }
}

#[cfg(test)]
mod tests;
