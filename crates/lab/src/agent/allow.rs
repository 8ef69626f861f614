//! What a controller over TCP may use of the machine that an agent runs on, and put load on: the
//! directories, devices and targets that the owner of the agent has listed, and no other file.
//!
//! Without a list of targets every server may be one. Without a list of directories and devices
//! there are no `path:` and `block:` targets for it, and no target may name a file with a password
//! or certificates: the agent would send its content to a server that the controller chooses.

use super::observe::ObserveOptions;
use crate::client::Target;
use crate::client::service::at::PASSWORD_ENV;
use crate::client::target::LocalName;
use base::limits::LAB_AGENT_ALLOWED_MAX;
use rules::TargetRule;
use std::ffi::CString;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

mod rules;

/// What the owner of an agent lists for controllers.
#[derive(Debug, Clone, Default)]
pub struct Owner {
    /// Servers that may be targets, as networks, hosts or URLs; none: all.
    pub targets: Vec<String>,
    /// Directories, with all that is below them.
    pub paths: Vec<PathBuf>,
    /// Block devices, or files that stand for one, that may be overwritten.
    pub blocks: Vec<PathBuf>,
    /// Only observe the server of this machine, and where its data is.
    pub observe: Option<ObserveOptions>,
}

/// Why the list of an owner cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AllowError {
    /// The directory or device cannot be opened.
    #[error("cannot open {0}, which is listed for controllers")]
    Open(PathBuf, #[source] io::Error),
    /// It is something else.
    #[error("{0} is {1}")]
    Kind(PathBuf, &'static str),
    /// There are too many.
    #[error("more than {LAB_AGENT_ALLOWED_MAX} targets, directories and devices are listed")]
    Many,
    /// It is no target.
    #[error("--allow-target {0}: use a network (10.0.0.0/8), HOST[:PORT], or SCHEME://HOST[:PORT]")]
    Target(String),
}

/// One entry of the list: how it may be named, and a descriptor of what it was when the agent
/// started. A name that leads elsewhere later gives no access to that.
#[derive(Debug)]
struct Entry {
    names: [PathBuf; 2],
    file: File,
}

/// The list of an owner.
#[derive(Debug, Default)]
pub struct Allowed {
    targets: Vec<TargetRule>,
    directories: Vec<Entry>,
    devices: Vec<Entry>,
    /// Only observe, which makes no load on any target.
    pub observe: Option<ObserveOptions>,
}

/// A target as the agent opens it: files that it names are descriptors of this process.
#[derive(Debug)]
pub struct Granted {
    /// The target.
    pub target: Target,
    /// What it names, for as long as it is opened.
    held: Vec<(OwnedFd, PathBuf)>,
}

impl Granted {
    /// Any target, for a controller that has started the agent itself.
    pub fn any(target: Target) -> Self {
        Self { target, held: Vec::new() }
    }

    /// A message about it with the names that the controller knows.
    pub fn named(&self, mut text: String) -> String {
        for (fd, name) in &self.held {
            text = text.replace(&number(fd.as_raw_fd()), &name.display().to_string());
        }
        text
    }
}

impl Allowed {
    /// Opens what is listed.
    ///
    /// # Errors
    /// [`AllowError`]
    pub fn open(owner: &Owner) -> Result<Self, AllowError> {
        let Owner { targets, paths, blocks, observe } = owner;
        if targets.len() + paths.len() + blocks.len() > LAB_AGENT_ALLOWED_MAX {
            return Err(AllowError::Many);
        }
        let directory = |path: &PathBuf| Entry::of_kind(path, "not a directory", Metadata::is_dir);
        let is_device = |meta: &Metadata| meta.is_file() || meta.file_type().is_block_device();
        let device =
            |path: &PathBuf| Entry::of_kind(path, "neither a block device nor a file", is_device);
        Ok(Self {
            targets: targets.iter().map(|text| rule(text)).collect::<Result<_, _>>()?,
            directories: paths.iter().map(directory).collect::<Result<_, _>>()?,
            devices: blocks.iter().map(device).collect::<Result<_, _>>()?,
            observe: observe.clone(),
        })
    }

    /// Nothing but to observe the server of this machine.
    pub fn observing(options: ObserveOptions) -> Self {
        Self { observe: Some(options), ..Self::default() }
    }

    /// The target as the agent may open it.
    ///
    /// # Errors
    /// What it must not use, and how the owner permits that.
    pub fn grant(&self, target: Target) -> Result<Granted, String> {
        if self.observe.is_some() {
            return Err("this agent only observes; start one without --observe for load".to_owned());
        }
        self.target(&target)?;
        let mut granted = Granted::any(target);
        let Granted { target, held } = &mut granted;
        for name in target.local_names() {
            let (fd, path) = match name {
                LocalName::Directory(path) => {
                    (self.listed(path, &format!("path:{}", path.display()))?, path)
                }
                LocalName::Device(path) => (self.device(path)?, path),
                LocalName::File(path) => {
                    let what = format!("the target names the file {} of the agent", path.display());
                    (self.listed(path, &what)?, path)
                }
                LocalName::Variable(PASSWORD_ENV) => continue,
                LocalName::Variable(name) => {
                    return Err(format!(
                        "the target names the environment variable {name} of the agent; only \
                         {PASSWORD_ENV} may be used"
                    ));
                }
            };
            let name = std::mem::replace(path, number(fd.as_raw_fd()).into());
            held.push((fd, name));
        }
        Ok(granted)
    }

    /// Whether the other end of a network profile may be connected to.
    ///
    /// # Errors
    /// It is not listed, and how the owner permits it.
    pub fn peer(&self, host: &str, port: u16) -> Result<(), String> {
        if self.targets.is_empty() || self.targets.iter().any(|rule| rule.fits("net", host, port)) {
            return Ok(());
        }
        Err(format!(
            "net://{host}:{port}: not listed by the agent's owner; start the agent with \
             --allow-target {host}"
        ))
    }

    /// Whether the server of a target is listed.
    fn target(&self, target: &Target) -> Result<(), String> {
        let Some((host, port)) = target.server() else { return Ok(()) };
        let url = target.url();
        let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
        let fits = |port: &u16| self.targets.iter().any(|rule| rule.fits(scheme, host, *port));
        if self.targets.is_empty() || target.ports().iter().all(fits) {
            return Ok(());
        }
        Err(format!(
            "{scheme}://{host}:{port}: not listed by the agent's owner; start the agent with \
             --allow-target {host}:{port}, or name a server by its address in a listed network"
        ))
    }

    /// A file or directory below a listed directory; `what` names it in the refusal.
    fn listed(&self, path: &Path, what: &str) -> Result<OwnedFd, String> {
        let refused =
            |why: &str| format!("{what}: {why}; start the agent with --allow-path DIRECTORY");
        let found = self.below(path).ok_or_else(|| refused("not listed by the agent's owner"))?;
        found.map_err(|e| refused(&format!("not reached without symbolic links: {e}")))
    }

    fn device(&self, path: &Path) -> Result<OwnedFd, String> {
        let listed = self.devices.iter().find(|entry| entry.names.iter().any(|n| n == path));
        let entry = listed.ok_or_else(|| {
            let path = path.display();
            format!(
                "block:{path}: not listed by the agent's owner; start the agent with \
                 --allow-block DEVICE"
            )
        })?;
        entry.file.try_clone().map(Into::into).map_err(|e| format!("block:{}: {e}", path.display()))
    }

    /// What lies at a path below a listed directory; `None` if it lies below none.
    fn below(&self, path: &Path) -> Option<io::Result<OwnedFd>> {
        let within = |entry: &Entry| {
            let rest = entry.names.iter().find_map(|name| path.strip_prefix(name).ok())?;
            Some(beneath(&entry.file, rest))
        };
        self.directories.iter().find_map(within)
    }
}

impl Entry {
    /// Opens a path that must be of a kind; `otherwise` describes the mismatch in the error.
    fn of_kind(
        path: &Path,
        otherwise: &'static str,
        is_kind: impl Fn(&Metadata) -> bool,
    ) -> Result<Self, AllowError> {
        let entry = Self::open(path)?;
        let meta = entry.file.metadata().map_err(|e| AllowError::Open(path.to_owned(), e))?;
        if is_kind(&meta) {
            return Ok(entry);
        }
        Err(AllowError::Kind(path.to_owned(), otherwise))
    }

    fn open(path: &Path) -> Result<Self, AllowError> {
        let fail = |e| AllowError::Open(path.to_owned(), e);
        let real = path.canonicalize().map_err(fail)?;
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW);
        let file = options.open(&real).map_err(fail)?;
        let given = std::path::absolute(path).map_err(fail)?;
        Ok(Self { names: [given, real], file })
    }
}

fn rule(text: &str) -> Result<TargetRule, AllowError> {
    TargetRule::parse(text).ok_or_else(|| AllowError::Target(text.to_owned()))
}

fn number(fd: RawFd) -> String {
    format!("/proc/self/fd/{fd}")
}

/// Opens a path below a directory. No part of it may be a symbolic link or lead out (openat2(2)).
fn beneath(dir: &File, path: &Path) -> io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: plain data, for which all zeros is a value.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (libc::O_PATH | libc::O_CLOEXEC) as u64;
    how.resolve = libc::RESOLVE_BENEATH | libc::RESOLVE_NO_SYMLINKS | libc::RESOLVE_NO_MAGICLINKS;
    let size = size_of::<libc::open_how>();
    // SAFETY: the path ends with a zero, and `how` is of this size.
    let fd = unsafe {
        libc::syscall(libc::SYS_openat2, dir.as_raw_fd(), path.as_ptr(), &raw mut how, size)
    };
    match RawFd::try_from(fd) {
        // SAFETY: the kernel has just given this descriptor to us alone.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests;
