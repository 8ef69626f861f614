//! The service manager that started this process, if one did: it is notified when the server is
//! ready and when it ends (sd_notify(3)).

use std::ffi::{OsStr, OsString};
use std::io::Result;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use crate::out;

/// The variable with the socket of the service manager.
const SOCKET: &str = "NOTIFY_SOCKET";

/// The variable that marks standard output as a log where no service manager runs.
const LOGGED: &str = "PLIMSOLL_LOGGED";

fn set(variable: &str) -> Option<OsString> {
    std::env::var_os(variable).filter(|value| !value.is_empty())
}

/// Whether a service manager waits for notifications.
pub fn there() -> bool {
    set(SOCKET).is_some()
}

/// Whether standard output is retained, and read by others than the user that started the server.
pub fn logged() -> bool {
    there() || set(LOGGED).is_some()
}

/// Notifies the service manager, for example with `READY=1`. An error is logged and does not stop
/// the server.
pub fn notify(what: &str) {
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
