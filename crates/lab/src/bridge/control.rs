//! Queries and changes to a running bridge: one line of JSON in each direction over a local socket
//! that only its user may use.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use base::limits::{BRIDGE_ASK_MAX, BRIDGE_LINE_MAX};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A request to a bridge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Request {
    /// Requests its status.
    Show,
    /// Requests these changes, all or none, as `delay=50ms`.
    Set(Vec<String>),
    /// Requests its end.
    Stop,
}

/// The response of a bridge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Its current status.
    Status(Value),
    /// The reason why it refuses the request.
    Refused(String),
}

/// Why a bridge cannot be queried.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No link listens there.
    #[error("no running link at {path}")]
    Nobody {
        /// Its socket.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The reply is not understood.
    #[error("the link at {0} uses another protocol version")]
    Language(String),
    /// It does not do that.
    #[error("{0}")]
    Refused(String),
}

/// Asks the bridge with this socket; its status.
///
/// # Errors
/// [`AskError`]
pub fn ask(socket: &Path, request: &Request) -> Result<Value, AskError> {
    let path = || socket.display().to_string();
    let line = exchange(socket, request);
    let line = line.map_err(|source| AskError::Nobody { path: path(), source })?;
    match serde_json::from_str(&line) {
        Ok(Answer::Status(status)) => Ok(status),
        Ok(Answer::Refused(why)) => Err(AskError::Refused(why)),
        Err(_) => Err(AskError::Language(path())),
    }
}

fn exchange(socket: &Path, request: &Request) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(BRIDGE_ASK_MAX))?;
    stream.write_all(format!("{}\n", serde_json::to_string(request)?).as_bytes())?;
    read_line(&stream)
}

fn read_line(stream: &UnixStream) -> io::Result<String> {
    let mut line = String::new();
    BufReader::new(stream.take(BRIDGE_LINE_MAX as u64)).read_line(&mut line)?;
    if line.ends_with('\n') { Ok(line) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Where a bridge is asked. The socket goes with this value.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
    /// Readable when a request has arrived.
    pub listener: UnixListener,
}

impl Control {
    /// Listens at `path`; folders above are made for this user alone.
    ///
    /// # Errors
    /// A bridge that answers there already, or no right to it.
    pub fn listen(path: &Path) -> io::Result<Self> {
        if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
            // A link is its owner's, wherever it leads.
            let owner = fs::symlink_metadata(dir)?.uid();
            if owner != super::sys::user() {
                let why = format!("{} belongs to user {owner}", dir.display());
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
            }
        }
        let is_socket = fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
        if is_socket {
            if UnixStream::connect(path).is_ok() {
                let why = "a link with this name is already running";
                return Err(io::Error::new(io::ErrorKind::AddrInUse, why));
            }
            // Left over by one that was killed.
            fs::remove_file(path)?;
        }
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(Self { path: path.to_owned(), listener })
    }

    /// Serves one waiting connection, if there is one; a client that sends nothing has a short
    /// timeout.
    pub fn serve(&self, answer: impl FnOnce(Request) -> Answer) {
        let Ok((mut stream, _)) = self.listener.accept() else { return };
        // Between its creation and its mode the socket may have had the umask's.
        if !super::sys::peer_user(&stream).is_ok_and(|user| [0, super::sys::user()].contains(&user))
        {
            return;
        }
        let ready = stream
            .set_nonblocking(false)
            .and_then(|()| stream.set_read_timeout(Some(BRIDGE_ASK_MAX)))
            .and_then(|()| stream.set_write_timeout(Some(BRIDGE_ASK_MAX)));
        let Ok(line) = ready.and_then(|()| read_line(&stream)) else { return };
        let said = match serde_json::from_str(&line) {
            Ok(request) => answer(request),
            Err(_) => Answer::Refused("unknown request".to_owned()),
        };
        let text = serde_json::to_string(&said).unwrap_or_default() + "\n";
        // A client that is gone does not need the reply.
        let _gone = stream.write_all(text.as_bytes());
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _gone = fs::remove_file(&self.path);
    }
}
