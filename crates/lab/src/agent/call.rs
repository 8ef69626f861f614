//! An agent that calls its controller: the form for queues and clusters, where no port of the agent
//! needs to be known. It calls again for the next run of the same controller, and ends when that
//! one has ended.

use super::allow::Allowed;
use super::binding::Fingerprint;
use super::code::{CodeError, CodeFile, JoinCode, Role};
use super::join::{Caller, JoinError, Joined};
use super::tls::Identity;
use super::{AgentError, Origin, converse, greet};
use base::clock::Deadline;
use base::limits::{LAB_AGENT_CALL_MAX, LAB_AGENT_RETRY_PAUSE, LAB_AGENT_RETURN_MAX};
use base::out::note;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// Calls the controller at `address` with the code of `file`; with `once` for one run.
pub(super) fn serve(
    address: &str,
    file: &Path,
    allowed: Allowed,
    once: bool,
) -> Result<(), AgentError> {
    let (identity, origin) = (Identity::new().map_err(AgentError::Tls)?, Origin::Tcp(allowed));
    let (origin, deadline) = (Arc::new(origin), Deadline::after(LAB_AGENT_CALL_MAX));
    let code = code_of(file, address, deadline)?;
    let mut pinned = None;
    loop {
        let within = if pinned.is_none() { LAB_AGENT_CALL_MAX } else { LAB_AGENT_RETURN_MAX };
        let called = call(address, &identity, &code, pinned, Deadline::after(within));
        let joined = match called {
            // After a run that is its end, whatever shows it.
            Err(JoinError::Connect(..) | JoinError::Closed(_)) if pinned.is_some() => return Ok(()),
            called => called?,
        };
        pinned = Some(joined.peer);
        let mut connection = joined.connection();
        let ended = greet(&mut connection).and_then(|()| converse(connection, &origin));
        if once {
            return ended.map_err(AgentError::from);
        }
        if let Err(error) = ended {
            note(&format!("controller: {error}"));
        }
    }
}

/// The code of a file that a controller may still have to write.
fn code_of(file: &Path, address: &str, deadline: Deadline) -> Result<JoinCode, CodeError> {
    loop {
        match CodeFile::read(file) {
            Err(CodeError::Read(_, e)) if e.kind() == ErrorKind::NotFound && !deadline.passed() => {
                std::thread::sleep(LAB_AGENT_RETRY_PAUSE);
            }
            read => return read?.code(address),
        }
    }
}

/// Calls until the controller listens, or the deadline has passed. One that has been reached before
/// and does not listen any more has ended.
fn call(
    address: &str,
    identity: &Identity,
    code: &JoinCode,
    pinned: Option<Fingerprint>,
    deadline: Deadline,
) -> Result<Joined, JoinError> {
    let caller = Caller { role: Role::Agent, identity, code, pinned };
    loop {
        let error = match caller.call(address) {
            Ok(joined) => return Ok(joined),
            Err(error) => error,
        };
        let again = match &error {
            JoinError::Connect(_, e) => {
                pinned.is_none() || e.kind() != ErrorKind::ConnectionRefused
            }
            JoinError::Closed(_) | JoinError::Silent(..) => true,
            _ => false,
        };
        if !again || deadline.passed() {
            return Err(error);
        }
        std::thread::sleep(LAB_AGENT_RETRY_PAUSE);
    }
}
