//! The service manager that started this process, if one did: it is told when the server is ready
//! and when it ends (sd_notify(3)).

use std::ffi::{OsStr, OsString};
use std::io::Result;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use crate::out;

/// The variable by which a service manager says where it listens.
const SOCKET: &str = "NOTIFY_SOCKET";

/// The variable that says that standard output is kept in a log, where no service manager is.
const LOGGED: &str = "PLIMSOLL_LOGGED";

fn set(variable: &str) -> Option<OsString> {
    std::env::var_os(variable).filter(|value| !value.is_empty())
}

/// Whether a service manager waits to hear of us.
pub fn there() -> bool {
    set(SOCKET).is_some()
}

/// Whether standard output is kept, and read by others than who started us.
pub fn logged() -> bool {
    there() || set(LOGGED).is_some()
}

/// Tells it, as `READY=1`. That it does not listen is no reason not to serve.
pub fn tell(what: &str) {
    let Some(name) = set(SOCKET) else { return };
    if let Err(e) = send(&name, what) {
        out::note(&format!("plimsoll: cannot notify the service manager ({what}): {e}"));
    }
}

/// A name that begins with @ is in the abstract name space (unix(7)).
fn send(name: &OsStr, what: &str) -> Result<()> {
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    UnixDatagram::unbound()?.send_to_addr(what.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests;
