//! The one list of services: their names and standard ports.

use std::net::{IpAddr, SocketAddr};

use crate::out::Failure;

/// A service of the appliance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Service {
    /// Its name, everywhere.
    pub name: &'static str,
    /// Its standard port, before the offset.
    pub port: u16,
}

/// NFS, with MOUNT on the same port.
pub const NFS: Service = Service { name: "nfs", port: 2049 };
/// FTP, and FTPS where a client asks for it.
pub const FTP: Service = Service { name: "ftp", port: 21 };
/// FTPS where TLS comes first.
pub const FTPS: Service = Service { name: "ftps", port: 990 };
/// SFTP.
pub const SFTP: Service = Service { name: "sftp", port: 218 };
/// HTTP with WebDAV.
pub const HTTP: Service = Service { name: "http", port: 80 };
/// The same over TLS.
pub const HTTPS: Service = Service { name: "https", port: 443 };
/// The port mapper, where NFSv3 clients ask for NLM.
pub const PORTMAP: Service = Service { name: "portmap", port: 111 };
/// The API and the browser interface, over HTTPS.
pub const ADMIN: Service = Service { name: "admin", port: 215 };

impl Service {
    /// Where it listens.
    ///
    /// # Errors
    /// Wrong usage if the offset leads beyond the last port.
    pub fn address(self, address: IpAddr, offset: u16) -> Result<SocketAddr, Failure> {
        let port = self.port.checked_add(offset).ok_or_else(|| {
            let failed = format!("port {} + {offset} is beyond 65535", self.port);
            let hint = format!("--port-offset is at most {}", u16::MAX - NFS.port);
            Failure::usage(&format!("listen for {}", self.name), &failed, &hint)
        })?;
        Ok(SocketAddr::new(address, port))
    }

    /// The failure to listen there.
    pub fn refused(self, at: SocketAddr, error: &std::io::Error) -> Failure {
        let tried = format!("listen on {at} for {}", self.name);
        match error.kind() {
            std::io::ErrorKind::AddrInUse => Failure::new(
                &tried,
                &format!("port {} is in use by another program", at.port()),
                "end that program, or choose other ports with --port-offset N",
            ),
            std::io::ErrorKind::PermissionDenied => Failure::new(
                &tried,
                &format!("this user may not take port {}", at.port()),
                "ports below 1024 need root; --port-offset 10000 does not",
            ),
            std::io::ErrorKind::AddrNotAvailable => Failure::new(
                &tried,
                &format!("{} is no address of this machine", at.ip()),
                "--address 0.0.0.0 listens on all of them",
            ),
            _ => Failure::of(&tried, error),
        }
    }
}

#[cfg(test)]
mod tests;
