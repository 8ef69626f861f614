//! How a controller and an agent authenticate each other, after the TLS handshake and before any
//! other message: the side that connects sends a proof of the join code; the side that listens
//! admits it and sends its own proof, or sends the reason for the refusal. A peer without the code
//! learns only that reason.

use super::binding::{Binding, Fingerprint};
use super::code::{CodeRefusal, JoinCode, Role};
use super::connection::Connection;
use super::proto::{self, FromAgent, ProtoError};
use super::tls::{Bound, Channel, Identity};
use base::clock::Deadline;
use base::limits::{
    LAB_AGENT_HELLO_MAX, LAB_AGENT_HELLO_TIME_MAX, LAB_AGENT_REPLY_MAX, LAB_AGENT_RETRY_PAUSE,
};
use base::text::hex;
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// This program, as the other side names it.
pub const PROGRAM: &str = concat!("plimsoll ", env!("CARGO_PKG_VERSION"));
/// For tests only: versions of the protocol to speak instead, `LOW-HIGH`.
pub const TEST_VERSIONS: &str = "PLIMSOLL_TEST_AGENT_VERSIONS";
/// First byte of a message of a version before TLS: that of its length. A TLS record with a
/// handshake begins with 22 (RFC 8446 §5.1).
const BEFORE_TLS: u8 = 0;

/// Why a listener refuses a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The proof is of another code.
    WrongCode,
    /// The code was used.
    UsedCode,
    /// The time of the code is over.
    ExpiredCode,
    /// There is no common version.
    Version,
    /// Another controller is served.
    Busy,
    /// The peer is the same as the listener: two agents or two controllers.
    Role,
    /// Another reason, of a later version.
    #[serde(other)]
    Other,
}

impl From<CodeRefusal> for Refusal {
    fn from(why: CodeRefusal) -> Self {
        match why {
            CodeRefusal::Wrong => Self::WrongCode,
            CodeRefusal::Used => Self::UsedCode,
            CodeRefusal::Expired => Self::ExpiredCode,
        }
    }
}

impl Refusal {
    /// What to do, for the other side's user.
    pub fn sentence(self, listener: Role) -> &'static str {
        match (self, listener) {
            (Self::WrongCode, Role::Agent) => {
                "wrong join code; give the code that the agent has printed with --code-file"
            }
            (Self::WrongCode, Role::Controller) => {
                "wrong join code; give the code of the controller with --code-file"
            }
            (Self::UsedCode, Role::Agent) => {
                "the join code has been used; give the next one that the agent has printed, or \
                 restart the agent"
            }
            (Self::UsedCode, Role::Controller) => {
                "the join code has been used by as many agents as the run has"
            }
            (Self::ExpiredCode, Role::Agent) => {
                "the join code has expired; give the next one that the agent has printed, or \
                 restart the agent"
            }
            (Self::ExpiredCode, Role::Controller) => {
                "the join code has expired; restart the run, or give it more time with --code-life"
            }
            (Self::Version, _) => "no common version of the protocol",
            (Self::Busy, _) => "the agent is in use by another controller",
            (Self::Role, Role::Agent) => "an agent listens there, not a controller",
            (Self::Role, Role::Controller) => "a controller listens there, not an agent",
            (Self::Other, _) => "another reason",
        }
    }
}

/// The first message of the side that calls.
#[derive(Debug, Serialize, Deserialize)]
pub struct Greeting {
    /// What it is.
    pub role: Role,
    /// Its program.
    pub program: String,
    /// Lowest and highest supported version of the protocol.
    pub versions: (u32, u32),
    /// Proof of the join code, hexadecimal.
    pub proof: String,
}

/// The reply of the side that listens.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Reply {
    /// The peer is admitted.
    Welcome {
        /// The program of the listener.
        program: String,
        /// Its proof, hexadecimal.
        proof: String,
    },
    /// It is not.
    Refused {
        /// Why.
        why: Refusal,
        /// The same in a sentence, with what to do.
        what: String,
        /// The program of the listener, if the peer has proved itself.
        program: Option<String>,
    },
}

/// Why two sides did not join.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// There is no connection.
    #[error("cannot connect to {0}: {1}")]
    Connect(String, #[source] io::Error),
    /// Nothing came in time.
    #[error(
        "{0} does not reply within {1:?}: it is paused, too busy, or not a load agent or controller"
    )]
    Silent(String, Duration),
    /// The connection ended before the first message of the other side.
    #[error("{0} closed the connection before its first message")]
    Closed(String),
    /// It is something else, or a version without TLS.
    #[error(
        "{0} does not speak this protocol: it is another service, or a version of the program \
         before TLS; update it ({1})"
    )]
    Foreign(String, #[source] io::Error),
    /// The listener refuses.
    #[error("{at}{program}: {what}", program = program.as_deref().map(named).unwrap_or_default())]
    Refused {
        /// Its address.
        at: String,
        /// Why.
        why: Refusal,
        /// In a sentence.
        what: String,
        /// Its program.
        program: Option<String>,
    },
    /// The listener has no proof of the code.
    #[error("{0} has no proof of the join code: another program listens there, or is in between")]
    Impostor(String),
    /// The listener is another process than before.
    #[error("{0} has another certificate than at the run before: the agent was restarted")]
    Changed(String),
    /// The exchange failed.
    #[error("{0}: {1}")]
    Proto(String, ProtoError),
}

fn named(program: &str) -> String {
    format!(" ({program})")
}

/// The other side of a connection on which both have proved themselves.
#[derive(Debug)]
pub struct Joined {
    /// The connection.
    pub channel: Channel,
    /// Certificate of the other side.
    pub peer: Fingerprint,
    /// Its program.
    pub program: String,
}

/// Versions of the protocol that this program speaks.
pub fn versions() -> (u32, u32) {
    let test = std::env::var(TEST_VERSIONS).ok();
    let other = test.as_deref().and_then(|text| text.split_once('-'));
    let read = |(low, high): (&str, &str)| Some((low.parse().ok()?, high.parse().ok()?));
    other.and_then(read).unwrap_or(proto::VERSIONS)
}

/// What the side that calls brings along.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// What it is.
    pub role: Role,
    /// Its certificate.
    pub identity: &'a Identity,
    /// The code of the listener.
    pub code: &'a JoinCode,
    /// The certificate of the listener, if it is known already.
    pub pinned: Option<Fingerprint>,
}

impl Caller<'_> {
    /// Connects to `address` and joins. A connection that ends before anything came is tried again
    /// within the time for a reply: a listener that strangers flood ends the oldest ones.
    ///
    /// # Errors
    /// [`JoinError`]
    pub fn call(&self, address: &str) -> Result<Joined, JoinError> {
        let deadline = Deadline::after(LAB_AGENT_REPLY_MAX);
        loop {
            match self.once(address, deadline) {
                Err(JoinError::Closed(_)) if !deadline.passed() => {
                    std::thread::sleep(LAB_AGENT_RETRY_PAUSE);
                }
                other => return other,
            }
        }
    }

    fn once(&self, address: &str, deadline: Deadline) -> Result<Joined, JoinError> {
        let at = || address.to_owned();
        let connect = |e| JoinError::Connect(at(), e);
        let socket = connect_within(address, deadline).map_err(connect)?;
        let mut bound = Bound { deadline, left: LAB_AGENT_HELLO_MAX };
        let opened = Channel::open(socket, self.identity, false, &mut bound);
        let (channel, binding, peer) = opened.map_err(|e| broken(address, e))?;
        let greeting = Greeting {
            role: self.role,
            program: PROGRAM.to_owned(),
            versions: versions(),
            proof: hex(&self.code.proof(self.role, &binding)),
        };
        let failed = |e| match e {
            ProtoError::Ended => JoinError::Closed(at()),
            ProtoError::Io(e) => broken(address, e),
            e => JoinError::Proto(at(), e),
        };
        proto::send(&mut &channel, &greeting).map_err(failed)?;
        let reply = proto::receive(&mut channel.within(&mut bound)).map_err(failed)?;
        let (program, proof) = match reply {
            Reply::Welcome { program, proof } => (program, proof),
            Reply::Refused { why, what, program } => {
                return Err(JoinError::Refused { at: at(), why, what, program });
            }
        };
        let theirs = if self.role == Role::Agent { Role::Controller } else { Role::Agent };
        if !self.code.proves(theirs, &binding, &unhex(&proof).unwrap_or_default()) {
            return Err(JoinError::Impostor(at()));
        }
        if self.pinned.is_some_and(|pinned| pinned != peer) {
            return Err(JoinError::Changed(at()));
        }
        let open = |e: io::Error| JoinError::Proto(at(), e.into());
        channel.set_read_timeout(None).map_err(open)?;
        Ok(Joined { channel, peer, program })
    }
}

fn connect_within(address: &str, deadline: Deadline) -> io::Result<TcpStream> {
    let mut last = io::Error::new(ErrorKind::NotFound, "no address");
    for at in address.to_socket_addrs()? {
        let left = deadline.left().ok_or(ErrorKind::TimedOut)?;
        match TcpStream::connect_timeout(&at, left) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// What a connection that broke before the reply shows.
fn broken(address: &str, error: io::Error) -> JoinError {
    let at = address.to_owned();
    match error.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => JoinError::Silent(at, LAB_AGENT_REPLY_MAX),
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
            JoinError::Closed(at)
        }
        _ => JoinError::Foreign(at, error),
    }
}

/// A greeting that has come, and how it can be answered.
#[derive(Debug)]
pub struct Arrival {
    /// The greeting.
    pub greeting: Greeting,
    /// Certificate of the peer.
    pub peer: Fingerprint,
    channel: Channel,
    binding: Binding,
}

impl Arrival {
    /// Reads the first message of a connection that was accepted, within the limits for strangers.
    ///
    /// # Errors
    /// It is no such message, or does not come in time. A controller of a version before TLS gets
    /// the reason in its own form. `sends` is called when the first byte has come.
    pub fn read(
        socket: TcpStream,
        identity: &Identity,
        deadline: Deadline,
        sends: impl FnOnce(),
    ) -> io::Result<Self> {
        let mut first = [0];
        socket.set_read_timeout(Some(deadline.left().ok_or(ErrorKind::TimedOut)?))?;
        let some = socket.peek(&mut first)? == 1;
        sends();
        if some && first[0] == BEFORE_TLS {
            let what = format!("this agent ({PROGRAM}) requires TLS; update the controller");
            let _gone = proto::send(&mut &socket, &FromAgent::Failed { what });
            return Err(io::Error::new(ErrorKind::InvalidData, "a peer without TLS"));
        }
        let mut bound = Bound { deadline, left: LAB_AGENT_HELLO_MAX };
        let (channel, binding, peer) = Channel::open(socket, identity, true, &mut bound)?;
        let greeting = proto::receive(&mut channel.within(&mut bound)).map_err(io::Error::other)?;
        Ok(Self { greeting, peer, channel, binding })
    }

    /// Whether the peer has this code.
    pub fn proves(&self, code: &JoinCode) -> bool {
        let proof = unhex(&self.greeting.proof).unwrap_or_default();
        code.proves(self.greeting.role, &self.binding, &proof)
    }

    /// What is wrong with the peer apart from its code, for a listener that is `own`.
    pub fn unfit(&self, own: Role) -> Option<(Refusal, String)> {
        if self.greeting.role == own {
            return Some((Refusal::Role, Refusal::Role.sentence(own).to_owned()));
        }
        let (theirs, (low, high)) = (self.greeting.versions, versions());
        let common = theirs.1.min(high) >= theirs.0.max(low);
        (!common).then(|| {
            let (program, sentence) = (&self.greeting.program, Refusal::Version.sentence(own));
            let what = format!(
                "{sentence}: {program} speaks {} to {}, {PROGRAM} speaks {low} to {high}; use the \
                 same version of the program on all machines",
                theirs.0, theirs.1
            );
            (Refusal::Version, what)
        })
    }

    /// Admits the peer.
    ///
    /// # Errors
    /// It is gone.
    pub fn welcome(self, own: Role, code: &JoinCode) -> Result<Joined, ProtoError> {
        let proof = hex(&code.proof(own, &self.binding));
        let welcome = Reply::Welcome { program: PROGRAM.to_owned(), proof };
        proto::send(&mut &self.channel, &welcome)?;
        self.channel.set_read_timeout(None)?;
        Ok(Joined { channel: self.channel, peer: self.peer, program: self.greeting.program })
    }

    /// Refuses the peer because of its code.
    pub fn refuse_code(self, why: Refusal, own: Role) {
        self.refuse(why, why.sentence(own).to_owned(), why != Refusal::WrongCode);
    }

    /// Refuses the peer; only one that has `proved` itself learns which program this is.
    pub fn refuse(self, why: Refusal, what: String, proved: bool) {
        let program = proved.then(|| PROGRAM.to_owned());
        // It may be gone already.
        let _gone = proto::send(&mut &self.channel, &Reply::Refused { why, what, program });
    }
}

impl Joined {
    /// The connection for messages.
    pub fn connection(self) -> Connection {
        Connection::tls(self.channel)
    }
}

/// The deadline of a connection that was accepted now.
pub fn first_message() -> Deadline {
    Deadline::after(LAB_AGENT_HELLO_TIME_MAX)
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    text.as_bytes().chunks(2).map(byte).collect()
}

#[cfg(test)]
mod tests;
