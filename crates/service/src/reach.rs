//! How a share is reached: URLs for programs, and commands that people can copy.

use std::net::{IpAddr, SocketAddr};

use base::protocol::Port;
use base::text::{UNRESERVED, percent};
use control::appliance::Access;

/// One way to a share.
pub struct AccessMethod {
    /// Its name in the API.
    pub name: &'static str,
    /// How a URL begins.
    pub scheme: &'static str,
    /// At which port.
    pub at: Port,
    /// A command, from a URL, the address, and the name of a share.
    pub command: Command,
    /// What to know about it.
    pub note: Option<&'static str>,
    /// What it is called on other systems; instead of the note.
    pub others: Option<Command>,
    /// Its UNC path.
    pub unc: Option<Command>,
}

type Command = fn(&str, SocketAddr, &str) -> String;

impl AccessMethod {
    /// Under the name of the port.
    pub fn to(at: Port, command: Command) -> Self {
        Self { name: at.name, scheme: at.name, at, command, note: None, others: None, unc: None }
    }

    /// To a share at the address of its port.
    pub fn access(&self, at: SocketAddr, share: &str) -> Access {
        let url = format!("{}://{}/{}", self.scheme, host(at), url_encode(share.as_bytes()));
        let others = self.others.map(|others| others(&url, at, share));
        Access {
            protocol: self.name.to_owned(),
            mount: (self.command)(&url, at, share),
            note: others.or(self.note.map(str::to_owned)),
            unc: self.unc.map(|unc| unc(&url, at, share)),
            url,
        }
    }
}

/// A widely available client of FTP; it prompts for the password.
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
    let what = shell_quote(&format!("USER@{}:/{share}", host_name(at.ip())));
    format!("sftp -P {} {what}", at.port())
}

/// An address that another machine can use: the host's name in place of "all addresses".
pub fn host(at: SocketAddr) -> String {
    format!("{}:{}", host_name(at.ip()), at.port())
}

/// The host part alone; a v6 address in brackets, as URLs and mount commands have it.
pub fn host_name(ip: IpAddr) -> String {
    match ip {
        ip if ip.is_unspecified() => machine_name(),
        IpAddr::V6(ip) => format!("[{ip}]"),
        IpAddr::V4(ip) => ip.to_string(),
    }
}

/// The host's name, which is the appliance's.
pub fn machine_name() -> String {
    Some(::lab::proc::host_name()).filter(|name| !name.is_empty()).unwrap_or("localhost".into())
}

/// A word as a shell needs it.
pub fn shell_quote(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-:,=@+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A path segment of a URL (RFC 3986 §3.3): everything but unreserved characters is escaped.
pub fn url_encode(bytes: &[u8]) -> String {
    percent(bytes, UNRESERVED)
}

#[cfg(test)]
mod tests;
