//! How a share is reached over the services whose users sign in: URLs for programs, and a command
//! that people can copy.

use std::net::SocketAddr;

use base::protocol::Port;
use control::appliance::Access;

use super::{Condition, FileService};
use crate::cmd::serve::announce::{host, host_name};
use crate::out;

/// One way to a share.
pub struct Way {
    /// Its name in the API.
    pub name: &'static str,
    /// How a URL begins.
    pub scheme: &'static str,
    /// At which port.
    pub at: Port,
    /// A command, from a URL, the address, and the name of a share.
    pub command: fn(&str, SocketAddr, &str) -> String,
    /// What to know about it.
    pub note: Option<&'static str>,
}

/// The ways of a service to a share; none while it does not serve.
pub fn ways(service: &FileService, share: &str) -> Vec<Access> {
    if !matches!(service.condition(), Condition::Online(_)) {
        return Vec::new();
    }
    let one = |way: Way| {
        let at = service.address(way.at);
        let url = format!("{}://{}/{}", way.scheme, host(at), out::url_encode(share.as_bytes()));
        Access {
            protocol: way.name.to_owned(),
            mount: (way.command)(&url, at, share),
            url,
            note: way.note.map(str::to_owned),
        }
    };
    service.protocol.ways().into_iter().map(one).collect()
}

/// A client of FTP that can be had everywhere; it asks for the password.
pub fn lftp(url: &str, _at: SocketAddr, _share: &str) -> String {
    format!("lftp -u USER {url}")
}

/// As a directory of the client's machine.
pub fn davfs(url: &str, _at: SocketAddr, _share: &str) -> String {
    let (_, rest) = url.split_once(':').unwrap_or_default();
    format!("mount -t davfs https:{rest}/ /mnt")
}

/// One file.
pub fn curl(url: &str, _at: SocketAddr, _share: &str) -> String {
    format!("curl -u USER {url}/")
}

/// OpenSSH's client.
pub fn sftp(_url: &str, at: SocketAddr, share: &str) -> String {
    let what = out::shell_quote(&format!("USER@{}:/{share}", host_name(at.ip())));
    format!("sftp -P {} {what}", at.port())
}

#[cfg(test)]
mod tests;
