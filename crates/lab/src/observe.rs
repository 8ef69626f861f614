//! The server as its machine shows it, sample by sample: for the controller if that is this
//! machine, else by an agent that only observes.

use crate::agent::clock;
use crate::client::Target;
use crate::proc::{self, MachineCounters, ProcessCpu};
use crate::record::cold::CacheDropped;
use host::Root;
use host::observe::netns::{self, ServerNotFound};
use host::observe::storage::Hints;
use host::observe::{Observer, Sample};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::{Path, PathBuf};

/// Cumulative counters of the server at one moment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ServerSample {
    /// Monotonic clock of the machine that took it, ns.
    pub at_ns: u64,
    /// Its processes, if there are any.
    pub process: Option<ProcessCpu>,
    /// Its machine.
    pub machine: MachineCounters,
    /// Bytes per connection waiting at the server: to be sent, to be read; and how many
    /// connections.
    pub queues: Option<(f64, f64, u32)>,
    /// Its processes, network and devices.
    #[serde(default)]
    pub observed: Option<Sample>,
}

/// Which server is observed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ObservedTarget {
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// Its TCP port; `None`: there is no server, only a machine.
    pub port: Option<u16>,
    /// The path that it exports.
    pub exported: Option<PathBuf>,
    /// The folder of the run, below the data of the share.
    #[serde(default)]
    pub below: Option<PathBuf>,
    /// Whether it serves blocks.
    pub blocks: bool,
}

/// How the names of the folders begin that the laboratory makes.
const FOLDERS: &str = "plimsoll-l";

impl ObservedTarget {
    /// The server of a target. Names that have no address have none here either.
    pub fn of(target: &Target) -> Self {
        let mut found = Self::default();
        if let Some((host, port)) = target.server() {
            found.port = Some(port);
            let addresses = (host, port).to_socket_addrs().into_iter().flatten();
            found.addresses = addresses.map(|address| address.ip()).collect();
        }
        found.exported = target.exported().map(PathBuf::from);
        found.blocks = target.is_blocks();
        found.below = folder_of(&target.to_string());
        found
    }

    /// The same in a folder of the run.
    pub fn in_folder(mut self, name: &str) -> Self {
        if let Some(exported) = &mut self.exported {
            exported.push(name);
        }
        self.below.get_or_insert_default().push(name);
        self
    }

    fn hints(&self, share_path: Option<&Path>) -> Hints {
        Hints {
            path: share_path.map(Path::to_owned),
            exported: self.exported.clone(),
            below: self.below.clone(),
            blocks: self.blocks,
        }
    }
}

/// The folders of the laboratory at the end of a URL.
fn folder_of(url: &str) -> Option<PathBuf> {
    let path = url.split_once('?').map_or(url, |(path, _)| path);
    let last = path.rsplit('/').take_while(|name| name.starts_with(FOLDERS));
    let mut names: Vec<&str> = last.collect();
    names.reverse();
    (!names.is_empty()).then(|| names.iter().collect())
}

/// What is known of a server that is observed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Identity {
    /// Its processes that listen.
    pub pids: Vec<u32>,
    /// Its network namespace, if that is not the observer's.
    pub namespace: Option<String>,
    /// Its machine.
    pub machine: serde_json::Value,
    /// What of it is not observed, in words.
    pub missing: Option<String>,
}

/// A server of this machine.
pub struct LocalServer {
    /// What is known of it.
    pub identity: Identity,
    port: Option<u16>,
    network_of: Option<u32>,
    observer: Observer,
}

impl LocalServer {
    /// Finds the server of a target; `share_path` is where its data is, if that is stated.
    ///
    /// # Errors
    /// Why it is not seen.
    pub fn find(
        target: &ObservedTarget,
        share_path: Option<&Path>,
    ) -> Result<Self, ServerNotFound> {
        let Some(port) = target.port else { return Ok(Self::machine(share_path)) };
        match netns::find(&Root::default(), &target.addresses, port) {
            Ok(found) => {
                let mut server = Self::of(&found.pids, Some(found.network_of), target, share_path);
                let namespace = format!("net:[{}]", found.namespace);
                server.identity.namespace = (!found.own_namespace).then_some(namespace);
                Ok(server)
            }
            // The machine shows all that it does.
            Err(ServerNotFound::Kernel) => {
                let mut server = Self::of(&[], None, target, share_path);
                server.identity.missing = Some(ServerNotFound::Kernel.to_string());
                Ok(server)
            }
            Err(why) => Err(why),
        }
    }

    /// The server that consists of these processes and of all that they start.
    pub fn of(
        pids: &[u32],
        network_of: Option<u32>,
        target: &ObservedTarget,
        share_path: Option<&Path>,
    ) -> Self {
        let network_of = network_of.or(pids.first().copied());
        let hints = target.hints(share_path);
        let observer = Observer::new(Root::default(), pids, network_of, hints);
        let identity =
            Identity { pids: pids.to_vec(), machine: proc::machine(), ..Default::default() };
        Self { identity, port: target.port, network_of, observer }
    }

    /// No server, but this machine.
    pub fn machine(share_path: Option<&Path>) -> Self {
        Self::of(&[], None, &ObservedTarget::default(), share_path)
    }

    /// Takes its test files out of the page cache, and counts what stayed.
    ///
    /// # Errors
    /// Why they are not known.
    pub fn drop_cache(&mut self) -> Result<CacheDropped, String> {
        let (pages, device) = self.observer.drop_cache()?;
        Ok(CacheDropped { pages, device })
    }

    /// Its counters now; `None` when it has ended.
    pub fn sample(&mut self) -> Option<ServerSample> {
        let queues =
            self.port.zip(self.network_of).and_then(|(port, pid)| proc::socket_queues(pid, port));
        let observed = self.observer.sample()?;
        let process = observed.family.as_ref().map(|family| {
            let group = self.identity.pids.first().copied().unwrap_or_default();
            proc::family_process(&family.processes, family.cpu_ns as f64 / 1e9, group)
        });
        let mut machine = proc::counters();
        let links = observed.interfaces.iter();
        machine.nics = links.map(|i| (i.name.clone(), i.bytes[0], i.bytes[1])).collect();
        machine.tcp = (observed.tcp.sent, observed.tcp.retransmitted);
        let at_ns = clock::mono_ns();
        Some(ServerSample { at_ns, process, machine, queues, observed: Some(observed) })
    }
}

/// Where the connections of a client leave its machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClientSource {
    /// The address that they come from.
    pub address: String,
    /// The interface that has it.
    pub interface: Option<String>,
}

impl ClientSource {
    /// Of a client of this target, which binds to this address if one is given. `None` for targets
    /// without a server.
    pub fn of(target: &Target, bind: Option<IpAddr>) -> Option<Self> {
        let (host, port) = target.server()?;
        let own = match bind {
            Some(bind) => bind,
            None => (host, port).to_socket_addrs().ok()?.find_map(route)?,
        };
        let interface = netns::interface_of(own);
        Some(Self { address: own.to_string(), interface })
    }
}

/// The address from which this machine reaches another one: connecting a datagram socket sends
/// nothing.
pub(crate) fn route(to: SocketAddr) -> Option<IpAddr> {
    let any: SocketAddr =
        if to.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(to).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
mod tests;
