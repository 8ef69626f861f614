//! What a source or a destination can be, and the way into a share.

use base::text::decimal;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A source or a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A directory of a share of this server.
    Share {
        /// The share.
        name: String,
        /// The directory in it, its names; none: the share as a whole.
        path: Vec<String>,
    },
    /// A directory of another machine, as `plimsoll dsync` takes it.
    Remote {
        /// The text.
        url: String,
        /// User and host, as ssh takes them.
        host: String,
    },
}

/// Why a text is no place: a sentence.
type Wrong = String;

impl Endpoint {
    /// Takes `SHARE/PATH`, `dsync://[USER@]HOST[:PORT]/SHARE/PATH` and
    /// `ssh://[USER@]HOST[:PORT]/PATH`.
    ///
    /// # Errors
    /// What cannot be meant.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        if let Some((scheme, rest)) = text.split_once("://") {
            return far(text, scheme, rest);
        }
        let mut names = text.split('/');
        let name = names.next().unwrap_or_default();
        if name.is_empty() {
            return Err("it does not start with the name of a share".to_owned());
        }
        if name.contains(':') {
            // Of another machine, as a shell would take it: one way to write that is enough.
            return Err(format!(
                "{name:?} is not a share; for another machine use ssh://HOST/PATH"
            ));
        }
        let path: Vec<String> = names.filter(|name| !name.is_empty()).map(str::to_owned).collect();
        if path.iter().any(|name| name == "." || name == "..") {
            return Err("it leads out of the share".to_owned());
        }
        Ok(Self::Share { name: name.to_owned(), path })
    }

    /// Whether one is the other, or lies within it.
    pub fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Share { name, path }, Self::Share { name: theirs, path: there }) => {
                name == theirs && (path.starts_with(there) || there.starts_with(path))
            }
            _ => false,
        }
    }

    /// Protocol, user, host and port of another machine.
    pub fn server(&self) -> Option<&str> {
        match self {
            Self::Share { .. } => None,
            Self::Remote { url, .. } => {
                let (scheme, rest) = url.split_once("://")?;
                let (at, _) = rest.split_once('/')?;
                url.get(..scheme.len() + "://".len() + at.len())
            }
        }
    }

    /// User and host of another machine.
    pub fn host(&self) -> Option<&str> {
        match self {
            Self::Share { .. } => None,
            Self::Remote { host, .. } => Some(host),
        }
    }
}

fn far(text: &str, scheme: &str, rest: &str) -> Result<Endpoint, Wrong> {
    if !["dsync", "ssh"].contains(&scheme) {
        return Err(format!("{scheme:?} is neither dsync nor ssh"));
    }
    let Some((at, path)) = rest.split_once('/') else {
        return Err("it has no directory".to_owned());
    };
    if scheme == "dsync" && path.trim_matches('/').is_empty() {
        return Err("it has no share of the other server".to_owned());
    }
    let (host, port) = match at.rsplit_once(':') {
        // An address of IPv6 has its colons in brackets.
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (at, None),
    };
    if port.is_some_and(|port| decimal::<u16>(port).is_none()) {
        return Err("the port is not a number".to_owned());
    }
    let (user, machine) = host.rsplit_once('@').unwrap_or(("-", host));
    let machine = machine.strip_prefix('[').and_then(|m| m.strip_suffix(']')).unwrap_or(machine);
    let named = host.rsplit_once('@').is_some();
    // What begins with a dash would be an option of ssh.
    let bad = |word: &str| {
        word.is_empty() || word.starts_with('-') || word.contains(|c: char| c.is_whitespace())
    };
    if bad(machine) || base::node::Shape::Host.check(machine).is_err() {
        return Err(format!("{machine:?} is not a host"));
    }
    if named && (bad(user) || user.contains(['@', ':'])) {
        return Err(format!("{user:?} is not a user name"));
    }
    Ok(Endpoint::Remote { url: text.to_owned(), host: host.to_owned() })
}

/// Why the way into a share does not lead to a directory.
#[derive(Debug, thiserror::Error)]
#[error("{at} {why}")]
pub struct PathError {
    /// Where it ends, as people write it.
    at: String,
    /// Why, as the end of a sentence.
    why: String,
}

/// An open directory of a share: exchanging a name on the path to it does not redirect a run out of
/// the share.
#[derive(Debug)]
pub struct Opened(File);

impl Opened {
    /// Opens a directory below `top`, the directory of the share `name`. No name on the way may be
    /// a symbolic link. With `make` the last one is made if it is not there.
    ///
    /// # Errors
    /// What is in the way.
    pub fn below(top: &Path, name: &str, path: &[String], make: bool) -> Result<Self, PathError> {
        let no = |at: &str, e: &io::Error| PathError { at: at.to_owned(), why: why(e) };
        // The way to the share itself is the administrator's, links and all.
        let mut dir = open(top, 0).map_err(|e| no(name, &e))?;
        let mut at = name.to_owned();
        for (n, name) in path.iter().enumerate() {
            at = format!("{at}/{name}");
            let there = of(&dir).join(name);
            if make && n + 1 == path.len() {
                match fs::create_dir(&there) {
                    Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(no(&at, &e)),
                    _ => {}
                }
            }
            dir = open(&there, libc::O_NOFOLLOW).map_err(|e| no(&at, &e))?;
        }
        Ok(Self(dir))
    }

    /// The descriptor.
    pub fn fd(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// A name for it in this process, and in a child that has the descriptor too.
    pub fn name(&self) -> PathBuf {
        of(&self.0)
    }

    /// Where it is now.
    ///
    /// # Errors
    /// The system does not report it.
    pub fn real(&self) -> io::Result<PathBuf> {
        fs::read_link(self.name())
    }
}

fn of(dir: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd()))
}

fn open(path: &Path, flags: i32) -> io::Result<File> {
    File::options().read(true).custom_flags(libc::O_DIRECTORY | flags).open(path)
}

fn why(e: &io::Error) -> String {
    match e.raw_os_error() {
        Some(libc::ELOOP) => "is a symbolic link, which might lead out of the share".to_owned(),
        Some(libc::ENOTDIR) => "is not a directory, or is a symbolic link".to_owned(),
        _ if e.kind() == ErrorKind::NotFound => "does not exist".to_owned(),
        _ => format!("cannot be opened: {e}"),
    }
}
