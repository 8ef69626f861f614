//! The other side on another machine, started there through ssh: messages go over its standard
//! input and output.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use base::limits::DSYNC_STREAM_PATIENCE;
use base::text::decimal;

use crate::error::{SyncError, Why};
use crate::link::Link;
use crate::stop::lock;
use crate::streams::DataStreams;

#[cfg(test)]
mod tests;

/// Where a tree is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// On this machine.
    Local(PathBuf),
    /// On another.
    Remote(RemoteDirectory),
}

/// A directory of another machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteDirectory {
    /// The machine as ssh takes it, with the user if one was named.
    pub host: String,
    /// The port, if one was named.
    pub port: Option<u16>,
    /// The directory there; what does not begin with `/` begins in the user's home.
    pub path: Vec<u8>,
    /// Whether it is on a share of a server, which answers as the subsystem `dsync` of its SSH.
    pub share: bool,
}

/// The default port of a server's SSH.
const SHARE_PORT: u16 = 218;

/// Takes `ssh://[user@]host[:port]/path`, `[user@]host:path` and, for a share of a server,
/// `dsync://[user@]host[:port]/share/path`; all else is on this machine. A
/// path here that has a colon before its first slash is written with `./` before it.
///
/// # Errors
/// What cannot be meant, as a sentence.
pub fn place(text: &[u8]) -> Result<Location, String> {
    use std::os::unix::ffi::OsStrExt;
    let here = || Ok(Location::Local(PathBuf::from(std::ffi::OsStr::from_bytes(text))));
    if let Some(rest) = text.strip_prefix(b"dsync://") {
        let there = url(rest)?;
        let port = Some(there.port.unwrap_or(SHARE_PORT));
        return Ok(Location::Remote(RemoteDirectory { port, share: true, ..there }));
    }
    if let Some(rest) = text.strip_prefix(b"ssh://") {
        return url(rest).map(Location::Remote);
    }
    // An address of IPv6 has colons itself, and is written in brackets.
    let at = text.iter().position(|b| *b == b']').unwrap_or(0);
    let colon = text.iter().skip(at).position(|b| *b == b':').map(|n| at + n);
    let slash = text.iter().position(|b| *b == b'/').unwrap_or(text.len());
    match colon.filter(|colon| *colon < slash && *colon > 0) {
        Some(colon) => {
            let host =
                std::str::from_utf8(&text[..colon]).map_err(|_| "the host is not valid UTF-8")?;
            there(host, None, &text[colon + 1..]).map(Location::Remote)
        }
        None => here(),
    }
}

/// What follows `ssh://`.
fn url(rest: &[u8]) -> Result<RemoteDirectory, String> {
    let slash = rest.iter().position(|b| *b == b'/').ok_or("it has no path")?;
    let (host, path) = rest.split_at(slash);
    let host = std::str::from_utf8(host).map_err(|_| "the host is not valid UTF-8")?;
    let colon = host.rfind(':').filter(|at| !host[*at..].contains(']'));
    let (host, port) = match colon {
        Some(at) => {
            let port = decimal(&host[at + 1..]).ok_or("the port is not a number")?;
            (&host[..at], Some(port))
        }
        None => (host, None),
    };
    there(host, port, path)
}

fn there(host: &str, port: Option<u16>, path: &[u8]) -> Result<RemoteDirectory, String> {
    let bare = host.replace(['[', ']'], "");
    // What begins with a dash would be an option of ssh.
    if bare
        .split('@')
        .any(|part| part.is_empty() || part.starts_with('-') || part.contains(char::is_whitespace))
    {
        return Err(format!("{host:?} is not a host"));
    }
    let path = if path.is_empty() { b"." } else { path };
    Ok(RemoteDirectory { host: bare, port, path: path.to_vec(), share: false })
}

impl RemoteDirectory {
    /// The machine's name or address, without the user; a name that only ssh knows may lead
    /// nowhere.
    pub fn machine(&self) -> &str {
        self.host.rsplit_once('@').map_or(self.host.as_str(), |(_, machine)| machine)
    }
}

/// How the other side is started.
#[derive(Debug, Clone)]
pub struct Shell {
    /// The program that reaches another machine, with its options.
    pub rsh: Vec<String>,
    /// The program there, as the shell there takes it.
    pub program: String,
}

/// The program that reaches the other machine.
pub struct Reached {
    child: Arc<Mutex<Child>>,
}

impl Shell {
    /// Starts the other side.
    ///
    /// # Errors
    /// The program that reaches it does not start.
    pub fn reach(&self, there: &RemoteDirectory) -> Result<(Reached, Link), SyncError> {
        let (program, options) = self.rsh.split_first().ok_or(SyncError::Broken("no program"))?;
        let mut command = Command::new(program);
        command.args(options);
        if let Some(port) = there.port {
            command.arg("-p").arg(port.to_string());
        }
        match there.share {
            true => command.arg("-s").arg(&there.host).arg("dsync"),
            false => command.arg(&there.host).arg(format!("{} dsync --answer", self.program)),
        };
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let place = |source| SyncError::Place { place: program.clone(), source };
        let mut child = started.map_err(place)?;
        let (Some(write), Some(read)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(SyncError::Gone);
        };
        let child = Arc::new(Mutex::new(child));
        let killed = Arc::clone(&child);
        // One that has ended already is as good.
        let close = move || drop(lock(&killed).kill());
        let (read, write, close) = (Box::new(read), Box::new(write), Box::new(close));
        Ok((
            Reached { child },
            Link {
                read,
                write,
                close,
                closes: true,
                beside: DataStreams::Nothing,
                timeout: DSYNC_STREAM_PATIENCE,
                lends: None,
            },
        ))
    }
}

impl Reached {
    /// Waits for its end; what is known better than `done` about why there was none that is good.
    pub fn end<R>(self, done: Result<R, Why>) -> Result<R, Why> {
        let mut child = lock(&self.child);
        // One that has sent nothing exits without a signal, and its exit code is the reason. The
        // exit of any other is of no interest: it may read nothing any more and still not exit.
        let tells = |why: &Why| matches!(why.error(), SyncError::Silent);
        if done.as_ref().is_err_and(|why| !tells(why)) {
            // It has nothing more to do; one that has ended already is as good.
            let _ended = child.kill();
        }
        let status = child.wait().ok().and_then(|status| status.code());
        match (done, status) {
            (Err(why), Some(code)) if matches!(why.error(), SyncError::Silent) && code != 0 => {
                Err(SyncError::Unreached(code).into())
            }
            (done, _) => done,
        }
    }
}
