//! Target URLs: `nfs3://host:port/export/x[?mountport=P]`, the same over RDMA as `nfs3+rdma://`,
//! `nfs4://host:port/export/x`, `path:/dir`, `block:/dev/x`, `null:`; those of services that
//! transfer files are in [`super::service::at`], those of logical units in [`super::iscsi::at`],
//! those of SMB in [`super::smb::at`].

use super::ClientError;
#[cfg(feature = "test-services")]
use super::echo::EchoAt;
use super::iscsi::at::IscsiAt;
use super::service::at::{Scheme, Secret, ServiceAt, without_password};
use super::smb::at::{Sign, SmbAt};
use base::protocol::{Protocol, ports};
use base::text::decimal;
use std::fmt;
use std::path::PathBuf;

/// Where an NFSv3 share is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nfs3At {
    /// Name or address.
    pub host: String,
    /// Port of the NFS program.
    pub port: u16,
    /// Whether that is a port of RDMA.
    pub rdma: bool,
    /// TCP port of the MOUNT program. Without `?mountport=` it is `port`, or, if that is a port of
    /// RDMA, the TCP port that belongs to it.
    pub mount_port: u16,
    /// Path to mount.
    pub path: String,
}

/// Scheme of NFSv3 over RDMA.
const RDMA: &str = "nfs3+rdma";

impl Nfs3At {
    /// The port of MOUNT unless the URL specifies another one. A server with a port offset adds it
    /// to both ports of NFS.
    fn mount_port_of(port: u16, rdma: bool) -> u16 {
        let [tcp, over_rdma] = both_ports();
        if rdma { port.saturating_sub(over_rdma - tcp) } else { port }
    }

    /// The same share over RDMA; itself if it is. `None` if there is no such port.
    pub fn over_rdma(&self) -> Option<Self> {
        let [tcp, over_rdma] = both_ports();
        let port = if self.rdma { self.port } else { self.port.checked_add(over_rdma - tcp)? };
        Some(Self { port, rdma: true, ..self.clone() })
    }

    /// What comes before the host in a URL.
    fn scheme(&self) -> &'static str {
        if self.rdma { RDMA } else { "nfs3" }
    }
}

/// The ports of NFS over TCP and RDMA.
fn both_ports() -> [u16; 2] {
    [ports::NFS.number, ports::NFS_RDMA.number]
}

/// Where a directory is that NFSv4.1 serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nfs4At {
    /// Name or address.
    pub host: String,
    /// Port of the server.
    pub port: u16,
    /// Path from the root of the pseudo file system.
    pub path: String,
}

/// What load is put on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An NFSv3 share.
    Nfs3(Nfs3At),
    /// A directory served by NFSv4.1.
    Nfs4(Nfs4At),
    /// A folder of a service that transfers files.
    Service(ServiceAt),
    /// A share over SMB.
    Smb(SmbAt),
    /// A logical unit, which loses what is on it.
    Iscsi(IscsiAt),
    /// A block device of the machine that the agent runs on, which loses what is on it.
    Block(PathBuf),
    /// A directory of the machine that the agent runs on.
    Path(PathBuf),
    /// Nothing: every operation is done at once.
    Null,
    /// The test service.
    #[cfg(feature = "test-services")]
    Echo(EchoAt),
}

/// How a server counts what clients do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// Each operation is one call.
    Calls,
    /// Each transfer is one operation, others take several.
    Transfers,
    /// A whole file is one operation: bytes are what can be compared.
    Bytes,
}

impl Target {
    /// Reads a target URL.
    ///
    /// # Errors
    /// [`ClientError::Target`] with what is wrong with it.
    pub fn parse(url: &str) -> Result<Self, ClientError> {
        let wrong = |why| ClientError::Target(url.to_owned(), why);
        let (scheme, rest) = url.split_once(':').ok_or_else(|| wrong("has no scheme"))?;
        match scheme {
            "null" => Ok(Self::Null),
            "path" if rest.starts_with('/') => Ok(Self::Path(rest.into())),
            "path" => Err(wrong("needs an absolute directory, as in path:/dir")),
            "block" if rest.starts_with('/') => Ok(Self::Block(rest.into())),
            "block" => Err(wrong("needs an absolute name, as in block:/dev/sdx")),
            // The words of an error end up in results, where no secret belongs.
            "iscsi" => IscsiAt::parse(rest)
                .map(Self::Iscsi)
                .map_err(|why| ClientError::Target(without_password(url), why)),
            "smb" => SmbAt::parse(rest)
                .map(Self::Smb)
                .map_err(|why| ClientError::Target(without_password(url), why)),
            "nfs3" => parse_nfs3(rest, false).map(Self::Nfs3).map_err(wrong),
            RDMA => parse_nfs3(rest, true).map(Self::Nfs3).map_err(wrong),
            "nfs4" => parse_nfs4(rest).map(Self::Nfs4).map_err(wrong),
            #[cfg(feature = "test-services")]
            "echo" => EchoAt::parse(rest)
                .map(Self::Echo)
                .map_err(|why| ClientError::Target(without_password(url), why)),
            other => match Scheme::by_name(other) {
                // The words of an error end up in results, where no password belongs.
                Some(scheme) => ServiceAt::parse(scheme, rest)
                    .map(Self::Service)
                    .map_err(|why| ClientError::Target(without_password(url), why)),
                None => Err(wrong(
                    "has an unknown scheme (known: nfs3, nfs3+rdma, nfs4, ftp, ftps, sftp, http, \
                     https, webdav, webdavs, smb, iscsi, block, path, null)",
                )),
            },
        }
    }

    /// Omits encryption and signatures, if the client decides that.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn omit_cipher(&mut self) -> Result<(), &'static str> {
        match self {
            Self::Smb(at) if at.cipher.is_some() => (at.cipher, at.sign) = (None, Sign::Off),
            Self::Service(at) if at.scheme.is_secure() => *at = at.without_tls()?,
            _ => return Err("the target has no cipher that a client can omit"),
        }
        Ok(())
    }

    /// The group of statistics in which Plimsoll counts the operations of this target (a URL).
    pub fn protocol_of(url: &str) -> &'static str {
        let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
        let scheme = if scheme == RDMA { "nfs3" } else { scheme };
        let of_files = Scheme::by_name(scheme).map(Scheme::protocol);
        of_files.or_else(|| Protocol::by_id(scheme)).unwrap_or(Protocol::Nfs3).id()
    }

    /// As [`fmt::Display`] writes it, with a password that is in it: for an agent.
    pub fn url(&self) -> String {
        match self {
            Self::Service(at) => at.url(),
            Self::Smb(at) => at.url(),
            Self::Iscsi(at) => at.url(),
            #[cfg(feature = "test-services")]
            Self::Echo(at) => at.url(),
            other => other.to_string(),
        }
    }

    /// The path that is exported, of protocols in which it may be one of the server's machine.
    pub fn exported(&self) -> Option<&str> {
        match self {
            Self::Nfs3(at) => Some(&at.path),
            Self::Nfs4(at) => Some(&at.path),
            _ => None,
        }
    }

    /// Number of the unit, of a target that a server serves blocks from.
    pub fn unit(&self) -> Option<u16> {
        match self {
            Self::Iscsi(at) => Some(at.lun),
            _ => None,
        }
    }

    /// Whether closing a file is a call: NFSv3 has none.
    pub fn has_close(&self) -> bool {
        !matches!(self, Self::Nfs3(_))
    }

    /// Whether a server serves blocks here.
    pub fn is_blocks(&self) -> bool {
        matches!(self, Self::Iscsi(_))
    }

    /// How a server counts what this target (a URL) is asked for.
    pub fn counting(url: &str) -> Counting {
        match Self::parse(url) {
            Ok(Self::Service(_)) => Counting::Bytes,
            Ok(Self::Nfs3(_)) => Counting::Calls,
            _ => Counting::Transfers,
        }
    }

    /// Host and TCP port of the server, if it is one: over RDMA that of MOUNT.
    pub fn server(&self) -> Option<(&str, u16)> {
        match self {
            Self::Nfs3(at) if at.rdma => Some((&at.host, at.mount_port)),
            Self::Nfs3(at) => Some((&at.host, at.port)),
            Self::Nfs4(at) => Some((&at.host, at.port)),
            Self::Service(at) => Some((&at.host, at.port)),
            Self::Smb(at) => Some((&at.host, at.port)),
            Self::Iscsi(at) => Some((&at.host, at.port)),
            Self::Block(_) | Self::Path(_) | Self::Null => None,
            #[cfg(feature = "test-services")]
            Self::Echo(at) => Some((&at.host, at.port)),
        }
    }
}

impl Target {
    /// Ports of the server that its client connects to.
    pub fn ports(&self) -> Vec<u16> {
        match self {
            Self::Nfs3(at) => vec![at.port, at.mount_port],
            other => other.server().into_iter().map(|(_, port)| port).collect(),
        }
    }
}

/// What a target names on the machine that its client runs on.
pub enum LocalName<'a> {
    /// A directory that is worked in.
    Directory(&'a mut PathBuf),
    /// A block device, or a file that stands for one, that is overwritten.
    Device(&'a mut PathBuf),
    /// A file with a password or certificates.
    File(&'a mut PathBuf),
    /// An environment variable with a password.
    Variable(&'a str),
}

impl Target {
    /// What it names on the machine that its client runs on.
    pub fn local_names(&mut self) -> Vec<LocalName<'_>> {
        let (secret, file) = match self {
            Self::Path(dir) => return vec![LocalName::Directory(dir)],
            Self::Block(path) => return vec![LocalName::Device(path)],
            Self::Service(at) => (&mut at.secret, at.terms.ca.as_mut()),
            Self::Smb(at) => (&mut at.secret, None),
            Self::Iscsi(at) => (&mut at.secret, at.own.as_mut().map(|(_, file)| file)),
            Self::Nfs3(_) | Self::Nfs4(_) | Self::Null => return Vec::new(),
            #[cfg(feature = "test-services")]
            Self::Echo(_) => return Vec::new(),
        };
        let secret = match secret {
            Secret::File(file) => Some(LocalName::File(file)),
            Secret::Env(name) => Some(LocalName::Variable(name)),
            Secret::Given(_) | Secret::Unsaid => None,
        };
        secret.into_iter().chain(file.map(LocalName::File)).collect()
    }
}

/// What is common to all servers: host, port (or this one), and what follows the first slash.
fn parse_server(rest: &str, standard: u16) -> Result<(String, u16, &str), &'static str> {
    let rest = rest.strip_prefix("//").ok_or("needs // and a host")?;
    let (authority, path) = rest.split_once('/').ok_or("needs the path of a share")?;
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => {
            (host, decimal(port).ok_or("has a port that is not a number")?)
        }
        _ => (authority, standard),
    };
    let host = host.trim_matches(['[', ']']).to_owned();
    if host.is_empty() { Err("has no host") } else { Ok((host, port, path)) }
}

fn parse_nfs3(rest: &str, rdma: bool) -> Result<Nfs3At, &'static str> {
    let (host, port, path) = parse_server(rest, both_ports()[usize::from(rdma)])?;
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mount_port = Nfs3At::mount_port_of(port, rdma);
    let mut at = Nfs3At { host, port, rdma, mount_port, path: format!("/{path}") };
    for pair in query.split('&').filter(|p| !p.is_empty()) {
        match pair.split_once('=') {
            Some(("mountport", value)) => {
                at.mount_port = decimal(value).ok_or("has a mountport that is not a number")?;
            }
            _ => return Err("has an option other than mountport"),
        }
    }
    Ok(at)
}

fn parse_nfs4(rest: &str) -> Result<Nfs4At, &'static str> {
    let (host, port, path) = parse_server(rest, both_ports()[0])?;
    if path.contains('?') {
        return Err("has an option; nfs4 takes none");
    }
    Ok(Nfs4At { host, port, path: format!("/{path}") })
}

/// A host as it stands in a URL (RFC 3986 §3.2.2).
fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null:"),
            Self::Path(dir) => write!(f, "path:{}", dir.display()),
            Self::Block(path) => write!(f, "block:{}", path.display()),
            Self::Service(at) => at.fmt(f),
            Self::Smb(at) => at.fmt(f),
            Self::Iscsi(at) => at.fmt(f),
            #[cfg(feature = "test-services")]
            Self::Echo(at) => at.fmt(f),
            Self::Nfs4(at) => {
                write!(f, "nfs4://{}:{}{}", bracketed(&at.host), at.port, at.path)
            }
            Self::Nfs3(at) => {
                write!(f, "{}://{}:{}{}", at.scheme(), bracketed(&at.host), at.port, at.path)?;
                if at.mount_port != Nfs3At::mount_port_of(at.port, at.rdma) {
                    write!(f, "?mountport={}", at.mount_port)?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests;
