//! Listening at the ports of the registry: where, and what to do if it cannot be.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};

use super::Port;
use crate::failure::Failure;

impl Port {
    /// Where it listens.
    ///
    /// # Errors
    /// Wrong usage if the offset leads beyond the last port.
    pub fn address(self, address: IpAddr, offset: u16) -> Result<SocketAddr, Failure> {
        let port = self.number.checked_add(offset).ok_or_else(|| {
            let failed = format!("port {} + {offset} is above 65535", self.number);
            let hint = format!("--port-offset is at most {}", u16::MAX - Port::highest().number);
            Failure::usage(&format!("listen for {}", self.name), &failed, &hint)
        })?;
        Ok(SocketAddr::new(address, port))
    }

    /// The failure to listen there.
    pub fn refused(self, at: SocketAddr, error: &std::io::Error) -> Failure {
        let tried = format!("listen on {at} for {}", self.name);
        let (failed, hint) = match error.kind() {
            ErrorKind::AddrInUse => (
                format!("port {} is in use by another program", at.port()),
                "stop that program, or choose other ports with --port-offset N",
            ),
            ErrorKind::PermissionDenied => (
                format!("this user may not bind port {}", at.port()),
                "ports below 1024 need root; --port-offset 10000 does not",
            ),
            ErrorKind::AddrNotAvailable => (
                format!("{} is not an address of this machine", at.ip()),
                "--address 0.0.0.0 listens on all of them",
            ),
            _ => return Failure::of(&tried, error),
        };
        Failure::new(&tried, &failed, hint)
    }
}

#[cfg(test)]
mod tests;
