//! Client of the test service: `echo://USER[:PASSWORD]@HOST[:PORT]`. Each slot signs in and has
//! lines sent back; it has no files, so round trips are all that it can.

use super::service::at::{Secret, decoded, encoded};
use super::service::socket::Stream;
use super::threads::{Threads, Worker};
use super::{Client, ClientError, Completion, Fault, FileSet, Op, operations_through};
use crate::workload::{Kind, Shape};
use base::limits::ECHO_LINE_MAX;
use base::protocol::ports;
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::time::Duration;
use wire::echo::{SignIn, answer};

/// What is sent for each operation.
const LINE: &[u8] = b"0123456789\r\n";

/// Where the service is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EchoAt {
    /// The user.
    pub user: String,
    /// With what.
    pub secret: Secret,
    /// Name or address.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl EchoAt {
    /// Reads what follows `echo:`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(rest: &str) -> Result<Self, &'static str> {
        let rest = rest.strip_prefix("//").ok_or("needs // and a host")?;
        let (user, server) = rest.trim_end_matches('/').rsplit_once('@').ok_or("needs a user")?;
        let (user, secret) = match user.split_once(':') {
            Some((user, password)) => (user, Secret::Given(decoded(password)?)),
            None => (user, Secret::Unsaid),
        };
        let (host, port) = match server.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| "has a port that is not a number")?)
            }
            _ => (server, ports::ECHO.number),
        };
        let (user, host) = (decoded(user)?, host.trim_matches(['[', ']']).to_owned());
        if host.is_empty() || user.is_empty() || user.contains(' ') {
            return Err("needs a user without a space, and a host");
        }
        Ok(Self { user, secret, host, port })
    }

    /// The whole URL, with the password if that is in it: for an agent.
    pub fn url(&self) -> String {
        match &self.secret {
            Secret::Given(password) => self.written(&format!(":{}", encoded(password, false))),
            _ => self.written(""),
        }
    }

    fn written(&self, password: &str) -> String {
        let host = &self.host;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        format!("echo://{}{password}@{host}:{}", encoded(&self.user, false), self.port)
    }
}

/// Without the password: this is what results and messages say.
impl fmt::Display for EchoAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written(""))
    }
}

/// Client of the service, with a connection and a thread for each slot.
pub struct EchoClient {
    at: EchoAt,
    threads: Threads,
}

impl EchoClient {
    /// A client of `at`; each slot signs in when it is first used.
    ///
    /// # Errors
    /// Signing in fails.
    pub fn open(at: &EchoAt, bind: Option<IpAddr>) -> Result<Self, ClientError> {
        Session::open(at, bind)?;
        let place = at.clone();
        let threads = Threads::new(Box::new(move || Ok(Box::new(Session::open(&place, bind)?))));
        Ok(Self { at: at.clone(), threads })
    }
}

impl Client for EchoClient {
    fn begin(&mut self, shape: &Shape) -> Result<(), ClientError> {
        if shape.kind == Kind::Null {
            return Ok(());
        }
        let why = "has no files: null is the workload that it has";
        Err(ClientError::Target(self.at.to_string(), why))
    }

    fn prepare(&mut self, _set: &FileSet) -> Result<(), ClientError> {
        Ok(())
    }

    fn clean(&mut self, _set: &FileSet) -> Result<(), ClientError> {
        self.threads.end();
        Ok(())
    }

    operations_through!(threads);
}

/// A signed-in connection.
struct Session {
    stream: BufReader<TcpStream>,
    line: Vec<u8>,
}

impl Session {
    fn open(at: &EchoAt, bind: Option<IpAddr>) -> Result<Self, ClientError> {
        let socket = Stream::connect(&at.host, at.port, bind)?;
        let mut session = Self { stream: BufReader::new(socket), line: Vec::new() };
        let (password, mut first) = (at.secret.read()?, Vec::new());
        SignIn { user: &at.user, password: &password }.encode(&mut first);
        if session.exchange(&first)? == answer(true) {
            return Ok(session);
        }
        let status = String::from_utf8_lossy(&session.line).trim().to_owned();
        Err(ClientError::Refused { what: format!("sign in as {}", at.user), status })
    }

    /// Sends a line; the one that comes back.
    fn exchange(&mut self, line: &[u8]) -> Result<&[u8], ClientError> {
        let tried = || ClientError::io("exchange a line");
        self.stream.get_mut().write_all(line).map_err(tried())?;
        self.line.clear();
        let mut within = (&mut self.stream).take(ECHO_LINE_MAX as u64 + 2);
        let received = within.read_until(b'\n', &mut self.line).map_err(tried())?;
        if received == 0 { Err(ClientError::Closed) } else { Ok(&self.line) }
    }
}

impl Worker for Session {
    fn run(&mut self, _op: Op) -> Result<Result<u32, Fault>, ClientError> {
        let back = self.exchange(LINE)?;
        Ok(if back == LINE { Ok(0) } else { Err(Fault::Corrupt) })
    }
}
