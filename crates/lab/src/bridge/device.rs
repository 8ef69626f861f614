//! The ends of a link: TUN devices, each in the network namespace where it is wanted.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use base::limits::{BRIDGE_DEVICE_QUEUE, BRIDGE_NAME_MAX};
use base::text::decimal;

use super::sys;

/// Where named namespaces are, as `ip netns` keeps them.
const NAMED: &str = "/run/netns";

/// A network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkNamespace {
    /// That of this program.
    Local,
    /// A named one.
    Named(String),
    /// That of a process.
    Process(u32),
}

/// An end as it is asked for: `PLACE[,DEVICE]@ADDRESS/PREFIX`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// In which namespace.
    pub place: NetworkNamespace,
    /// Name of the device, if not the bridge's.
    pub device: Option<String>,
    /// Its address.
    pub address: IpAddr,
    /// Bits of the address that name the network.
    pub prefix: u8,
}

/// What is wrong with an end, a name, or with making it.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// Not an end.
    #[error(
        "{text:?} is not a valid end: {why}; expected PLACE[,DEVICE]@ADDRESS/PREFIX, for example \
         ns:a@10.9.0.1/24, with PLACE ns:NAME, pid:PID or here"
    )]
    End {
        /// What was given.
        text: String,
        /// What about it.
        why: &'static str,
    },
    /// Not a name.
    #[error("{0:?} is not a valid name: use at most {BRIDGE_NAME_MAX} letters, digits, - and _")]
    Name(String),
    /// The machine does not let us.
    #[error("cannot {what}")]
    Refused {
        /// What was tried.
        what: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

fn refused(what: impl Into<String>) -> impl FnOnce(io::Error) -> DeviceError {
    let what = what.into();
    |source| DeviceError::Refused { what, source }
}

/// Checks a name of a bridge, device or namespace: it becomes a file's and a device's.
///
/// # Errors
/// [`DeviceError::Name`].
pub fn check_name(name: &str) -> Result<(), DeviceError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > BRIDGE_NAME_MAX || !name.chars().all(plain) {
        return Err(DeviceError::Name(name.to_owned()));
    }
    Ok(())
}

impl FromStr for End {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, DeviceError> {
        let wrong = |why| DeviceError::End { text: text.to_owned(), why };
        let (at, network) = text.split_once('@').ok_or(wrong("it has no address"))?;
        let (place, device) = match at.split_once(',') {
            Some((place, device)) => (place, Some(device.to_owned())),
            None => (at, None),
        };
        let place = match place.split_once(':') {
            None if place == "here" => NetworkNamespace::Local,
            Some(("ns", name)) => NetworkNamespace::Named(name.to_owned()),
            Some(("pid", pid)) => NetworkNamespace::Process(
                decimal(pid).ok_or(wrong("the process id is not a number"))?,
            ),
            _ => return Err(wrong("unknown PLACE")),
        };
        if let NetworkNamespace::Named(name) = &place {
            // Names of namespaces may be longer than those of devices.
            let known = name.split(['-', '_', '.']).all(|part| part.len() <= BRIDGE_NAME_MAX);
            if name.is_empty() || name.contains('/') || name.starts_with('.') || !known {
                return Err(wrong("the namespace has no valid name"));
            }
        }
        if let Some(device) = &device {
            check_name(device)?;
        }
        let (address, prefix) = network.split_once('/').ok_or(wrong("it has no /PREFIX"))?;
        let address: IpAddr = address.parse().map_err(|_| wrong("the address is not valid"))?;
        let prefix: u8 = decimal(prefix).ok_or(wrong("the prefix is not a number"))?;
        if prefix == 0 || prefix > if address.is_ipv4() { 32 } else { 128 } {
            return Err(wrong("its prefix is out of range"));
        }
        Ok(Self { place, device, address, prefix })
    }
}

impl NetworkNamespace {
    fn path(&self) -> PathBuf {
        match self {
            Self::Local => PathBuf::from("/proc/self/ns/net"),
            Self::Named(name) => Path::new(NAMED).join(name),
            Self::Process(pid) => PathBuf::from(format!("/proc/{pid}/ns/net")),
        }
    }

    /// Runs `work` in this namespace, on a separate thread. Sockets that it makes belong there,
    /// wherever they are used; so do programs that it starts.
    ///
    /// # Errors
    /// No such namespace, no permission to enter it, or the error of `work`.
    pub fn within<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, DeviceError> + Send,
    ) -> Result<T, DeviceError> {
        let path = self.path();
        let open = || format!("open the network namespace {}", path.display());
        let namespace = File::open(&path).map_err(refused(open()))?;
        let enter = || {
            if *self != Self::Local {
                let what = format!("enter the network namespace {}", path.display());
                sys::enter(&namespace).map_err(refused(what))?;
            }
            work()
        };
        std::thread::scope(|scope| scope.spawn(enter).join()).unwrap_or_else(|_| {
            Err(refused("set a device up")(io::Error::other("the thread has panicked")))
        })
    }
}

impl std::fmt::Display for NetworkNamespace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Local => f.write_str("here"),
            Self::Named(name) => write!(f, "ns:{name}"),
            Self::Process(pid) => write!(f, "pid:{pid}"),
        }
    }
}

/// A named namespace that was made for a bridge, and goes with it.
#[derive(Debug)]
pub struct OwnNamespace {
    path: PathBuf,
}

impl OwnNamespace {
    /// Makes the namespace of this place; `None` when it is there, or has no name.
    ///
    /// # Errors
    /// No right to it.
    pub fn make(place: &NetworkNamespace) -> Result<Option<Self>, DeviceError> {
        let path = place.path();
        if !matches!(place, NetworkNamespace::Named(_)) || path.exists() {
            return Ok(None);
        }
        let what = || format!("make the network namespace {}", path.display());
        std::fs::create_dir_all(NAMED).map_err(refused(what()))?;
        File::create_new(&path).map_err(refused(what()))?;
        let make = || sys::make_namespace(&path);
        let made = std::thread::scope(|scope| scope.spawn(make).join());
        if let Err(error) = made.unwrap_or_else(|_| Err(io::Error::other("a thread panicked"))) {
            let _empty = std::fs::remove_file(&path);
            return Err(refused(what())(error));
        }
        Ok(Some(Self { path }))
    }
}

impl Drop for OwnNamespace {
    fn drop(&mut self) {
        // Its users keep it; only its name goes.
        let _gone = sys::drop_namespace(&self.path);
    }
}

/// A device that is up.
#[derive(Debug)]
pub struct Device {
    /// Where its packets are read and written; never waits.
    pub file: File,
    /// Its name.
    pub name: String,
    /// `/proc/net/dev` of its namespace.
    counters: Mutex<File>,
}

impl Device {
    /// Makes the device of an end, named `name` unless the end specifies another name.
    ///
    /// # Errors
    /// What the machine does not let us.
    pub fn open(end: &End, name: &str, mtu: u32) -> Result<Self, DeviceError> {
        let name = end.device.as_deref().unwrap_or(name).to_owned();
        end.place.within(|| {
            let what = |verb: &str| format!("{verb} the device {name} ({})", end.place);
            let file = sys::open_tun(&name).map_err(refused(what("make")))?;
            let at = (end.address, end.prefix);
            sys::set_up(&name, mtu, BRIDGE_DEVICE_QUEUE, at).map_err(refused(what("set up")))?;
            // A file opened in a namespace continues to show that one.
            let counters = File::open("/proc/thread-self/net/dev");
            let counters = Mutex::new(counters.map_err(refused(what("watch")))?);
            Ok(Self { file, name: name.clone(), counters })
        })
    }

    /// Packets that the kernel has dropped because the queue was full.
    pub fn overrun(&self) -> u64 {
        let mut file = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        let read = file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_string(&mut text));
        if read.is_err() {
            return 0;
        }
        dropped_sending(&text, &self.name).unwrap_or(0)
    }
}

/// Packets that a device dropped when it was to send them, from the text of `/proc/net/dev`.
fn dropped_sending(text: &str, device: &str) -> Option<u64> {
    let row = text.lines().find_map(|line| {
        let (name, row) = line.split_once(':')?;
        (name.trim() == device).then_some(row)
    })?;
    // Eight columns of what was received, then bytes, packets, errs, drop of what was sent.
    row.split_whitespace().nth(11)?.parse().ok()
}

/// Whether a device took a packet; one that was damaged so that it is none is not taken.
pub fn written(device: &File, packet: &[u8]) -> bool {
    let mut device = device;
    device.write(packet).is_ok()
}

#[cfg(test)]
mod tests;
