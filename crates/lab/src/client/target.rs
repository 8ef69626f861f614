//! Target URLs: `nfs3://host:port/export/x[?mountport=P]`, `path:/dir`, `null:`.

use super::ClientError;
use std::fmt;
use std::path::PathBuf;

/// Standard NFS port (registered as 2049; RFC 1813 §2.1).
pub const NFS_PORT: u16 = 2049;

/// Where an NFSv3 share is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nfs3At {
    /// Name or address.
    pub host: String,
    /// Port of the NFS program.
    pub port: u16,
    /// Port of the MOUNT program; the same one unless `?mountport=` says otherwise.
    pub mount_port: u16,
    /// Path to mount.
    pub path: String,
}

/// What load is put on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An NFSv3 share.
    Nfs3(Nfs3At),
    /// A directory of the machine that the agent runs on.
    Path(PathBuf),
    /// Nothing: every operation is done at once.
    Null,
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
            "nfs3" => parse_nfs3(rest).map(Self::Nfs3).map_err(wrong),
            _ => Err(wrong("is of a kind this program has no client for (nfs3, path, null)")),
        }
    }

    /// Host and port of the server, if it is one.
    pub fn server(&self) -> Option<(&str, u16)> {
        match self {
            Self::Nfs3(at) => Some((&at.host, at.port)),
            Self::Path(_) | Self::Null => None,
        }
    }
}

fn parse_nfs3(rest: &str) -> Result<Nfs3At, &'static str> {
    let rest = rest.strip_prefix("//").ok_or("needs // and a host")?;
    let (authority, path) = rest.split_once('/').ok_or("needs the path of a share")?;
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => {
            (host, port.parse().map_err(|_| "has a port that is not a number")?)
        }
        _ => (authority, NFS_PORT),
    };
    let mut at = Nfs3At {
        host: host.trim_matches(['[', ']']).to_owned(),
        port,
        mount_port: port,
        path: format!("/{path}"),
    };
    for pair in query.split('&').filter(|p| !p.is_empty()) {
        match pair.split_once('=') {
            Some(("mountport", value)) => {
                at.mount_port = value.parse().map_err(|_| "has a mountport that is no number")?;
            }
            _ => return Err("has an option other than mountport"),
        }
    }
    if at.host.is_empty() { Err("has no host") } else { Ok(at) }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null:"),
            Self::Path(dir) => write!(f, "path:{}", dir.display()),
            Self::Nfs3(at) => {
                let v6 = at.host.contains(':');
                let (open, close) = if v6 { ("[", "]") } else { ("", "") };
                write!(f, "nfs3://{open}{}{close}:{}{}", at.host, at.port, at.path)?;
                if at.mount_port != at.port {
                    write!(f, "?mountport={}", at.mount_port)?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests;
