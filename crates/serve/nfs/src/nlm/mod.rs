//! NLM version 4 and NSM version 1 (X/Open XNFS, chapters 14 and 11; RFC 1813, appendix II): locks
//! and shares of NFSv3 clients, in the table that all protocols share.
//!
//! - [`dispatch`]: procedures; [`lock`], [`share`]: the operations. [`nsm`]: restart notifications.
//! - [`hosts`]: hosts with locks or shares; [`blocks`]: requests that wait, and grants that are not
//!   acknowledged yet. Both pure.
//! - [`conn`]: calls to clients: GRANTED, the replies to `*_MSG`, SM_NOTIFY.
//! - [`status`]: errors on the wire.
//!
//! A lock belongs to a host (its address and `caller_name`), and there to `svid` and `oh`. It is
//! released by UNLOCK or FREE_ALL, or when the host reports a restart: NLM has no leases.
//!
//! *A request that must wait* gets NLM4_BLOCKED; when its turn comes, the table holds the lock for
//! it and the host receives GRANTED. A host that rejects the lock, or cannot be reached for a
//! while, loses it again; one that may have received the call keeps it.
//!
//! *After a restart* of the server the hosts on record are notified, and may reclaim for one lease.

mod blocks;
mod conn;
mod dispatch;
mod hosts;
mod lock;
pub mod nsm;
mod request;
mod share;
mod status;

use std::collections::{BTreeSet, HashSet};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use base::clock::Clock;
use base::limits::{NLM_MESSAGES_MAX, NLM_MESSAGES_PER_HOST_MAX, NLM_SWEEP_EVERY};
use base::lock_order::{OrderedMutex, ranks};
use base::peer::network;
use base::refusals::Limit;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use vfs::handle::Handle;
use vfs::locks::{LockTable, Owner, Protocol};
use vfs::recovery::{ClientId, ClientRecords};
use vfs::share::{Shares, tag_of};
use wire::nlm4::Nlm4Stat;

use self::blocks::Blocks;
use self::conn::Message;
use self::hosts::{Gate, HeldFile, Host, Hosts, STATE_UNKNOWN};
use self::status::Refusal;
use crate::rpc::Program;
use engine::transport::small::Answers;
use engine::transport::tally::{AddressPermit, AddressPermits};
use engine::transport::{Runtimes, Tasks};

/// The number of NLM in the records of clients.
const RECORDED_AS: u8 = 3;
/// Where rpcbind is on every client.
pub const PORTMAP_PORT: u16 = 111;

/// What the service is made of.
pub struct Config {
    /// The shares.
    pub shares: Arc<Shares>,
    /// The table that all protocols share.
    pub locks: Arc<LockTable>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// The hosts that held locks when the server last ended.
    pub records: Arc<dyn ClientRecords>,
    /// Until when (monotonic) they may reclaim.
    pub grace_until_ns: u64,
    /// Ends the client of an owner of another protocol if it has gone away; false if not.
    pub evict_expired: Box<dyn Fn(&Owner) -> bool + Send + Sync>,
    /// The name of this machine, in addition to its addresses.
    pub name: String,
    /// The address of the service, if it is one of several of this machine: clients know it by that
    /// one, and believe calls from it alone.
    pub address: Option<IpAddr>,
    /// The port of the clients' port mappers: [`PORTMAP_PORT`] but in tests.
    pub portmap_port: u16,
    /// How long a host that cannot be reached may keep a lock that it waited for:
    /// [`NLM_GRANT_TIME_MAX`](base::limits::NLM_GRANT_TIME_MAX) but in tests.
    pub grant_time: Duration,
    /// Whether a host is believed that it has restarted only from a reserved port, which none but
    /// its privileged programs have: always but in tests, which need not be root.
    pub reserved_ports: bool,
}

/// The service.
pub struct Nlm {
    shares: Arc<Shares>,
    locks: Arc<LockTable>,
    clock: Arc<dyn Clock>,
    records: Arc<dyn ClientRecords>,
    evict_expired: Box<dyn Fn(&Owner) -> bool + Send + Sync>,
    name: String,
    address: Option<IpAddr>,
    portmap_port: u16,
    grant_time: Duration,
    reserved_ports: bool,
    grace_until_ns: u64,
    grace_may_be_on: AtomicBool,
    /// Our NSM state: odd, another one after each start.
    state: u32,
    /// Held while records of hosts change on disk: never on a connection's thread.
    paper: OrderedMutex<()>,
    hosts: OrderedMutex<Hosts>,
    blocks: OrderedMutex<Blocks>,
    outbox: mpsc::UnboundedSender<Message>,
    /// Replies to `*_MSG` that wait to be sent.
    messages: Arc<AddressPermits>,
    /// Itself, for what outlives a call.
    me: Weak<Self>,
    swept_ns: Mutex<u64>,
    /// What sends messages, while it runs.
    tasks: Mutex<Option<Tasks>>,
}

/// A host, for the administrator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostInfo {
    /// Its number among the clients of the lock table.
    pub id: u64,
    /// What it calls itself.
    pub name: Vec<u8>,
    /// Its address.
    pub address: IpAddr,
}

/// Locks what no panic leaves half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Nlm {
    /// Starts the service on `runtimes`: notifies the hosts on record of the restart, and lets them
    /// reclaim. Reads and writes the records, and waits for that.
    pub fn start(config: Config, runtimes: &Runtimes) -> Arc<Self> {
        let (nlm, messages) = Self::new(config);
        let service = Arc::clone(&nlm);
        let mut tasks = Tasks::default();
        // That the runtimes end ends it, too.
        tasks.spawn(runtimes, 0, move |ending| conn::run(service, messages, ending));
        *lock(&nlm.tasks) = Some(tasks);
        nlm
    }

    /// Ends the service: no more clients are notified, and all locks of hosts are released. Hosts
    /// on record stay there, and may reclaim after the next start. To be called when no call can
    /// come in; waits.
    pub fn end(&self) {
        let tasks = lock(&self.tasks).take();
        // Without a timer they end all the same.
        let _ = tasks.map(Tasks::end_blocking);
        for host in self.locks.clients(Protocol::Nlm) {
            self.locks.release_client(host);
            self.blocks.lock().remove_host(host);
        }
        self.locks.end_grace(Protocol::Nlm);
    }

    /// The service, and its messages to hosts.
    fn new(config: Config) -> (Arc<Self>, UnboundedReceiver<Message>) {
        // Bounded by the requests that wait and, for messages, by their own limit.
        let (outbox, messages) = mpsc::unbounded_channel();
        let known: Vec<ClientId> = config.records.known();
        let known: Vec<_> = known.into_iter().filter(|c| c.protocol == RECORDED_AS).collect();
        let state = nsm::next_state(&*config.records, &known, config.clock.wall_ns());
        let addresses: BTreeSet<_> =
            known.iter().filter_map(hosts::recorded).map(|(address, _)| address).collect();
        let Config { shares, locks, clock, records, evict_expired, name, .. } = config;
        if !addresses.is_empty() {
            locks.begin_grace(Protocol::Nlm);
        }
        let nlm = Arc::new_cyclic(|me| Self {
            shares,
            locks,
            clock,
            records,
            evict_expired,
            name,
            address: config.address,
            portmap_port: config.portmap_port,
            grant_time: config.grant_time,
            reserved_ports: config.reserved_ports,
            grace_until_ns: config.grace_until_ns,
            grace_may_be_on: AtomicBool::new(!addresses.is_empty()),
            state,
            paper: OrderedMutex::new(ranks::NLM_RECORDS, ()),
            hosts: OrderedMutex::new(ranks::NLM_HOSTS, Hosts::default()),
            blocks: OrderedMutex::new(ranks::NLM_BLOCKS, Blocks::default()),
            outbox,
            messages: Arc::default(),
            me: Weak::clone(me),
            swept_ns: Mutex::default(),
            tasks: Mutex::default(),
        });
        for address in addresses {
            nlm.send(Message::Restarted { address });
        }
        (nlm, messages)
    }

    /// Both programs, for connections.
    pub fn programs(self: &Arc<Self>) -> Vec<Arc<dyn Program>> {
        vec![Arc::new(dispatch::Nlm4(Arc::clone(self))), Arc::new(nsm::Nsm(Arc::clone(self)))]
    }

    /// NSM for datagrams: Linux clients send their restart notifications by these.
    pub fn datagrams(self: &Arc<Self>) -> Arc<dyn Answers> {
        Arc::new(nsm::Datagrams(Arc::clone(self)))
    }

    /// To be called every second, on a thread that may wait for the disk: ends the grace period,
    /// and forgets hosts that hold nothing.
    pub fn sweep(&self) {
        let now = self.clock.monotonic_ns();
        if self.grace_may_be_on.load(Ordering::Relaxed) && now >= self.grace_until_ns {
            // Hosts that have not reclaimed must not reclaim after the next restart: until that is
            // on disk, grace does not end.
            if self.records.end_of_grace().is_ok() {
                self.grace_may_be_on.store(false, Ordering::Relaxed);
                self.locks.end_grace(Protocol::Nlm);
            }
        }
        if self.grace_may_be_on.load(Ordering::Relaxed) {
            // A host that holds nothing yet, or nothing any more, may have more to reclaim.
            return;
        }
        let mut swept = lock(&self.swept_ns);
        if now.saturating_sub(*swept) >= NLM_SWEEP_EVERY.as_nanos() as u64 {
            *swept = now;
            self.forget_idle();
        }
    }

    /// The hosts that hold something, or did lately.
    pub fn hosts(&self) -> Vec<HostInfo> {
        let info = |host: &Arc<Host>| HostInfo {
            id: host.key.id,
            name: host.name.clone(),
            address: host.address,
        };
        self.hosts.lock().iter().map(info).collect()
    }

    /// Requests that wait, and grants that are not acknowledged.
    pub fn blocked(&self) -> usize {
        self.blocks.lock().len()
    }

    /// Our state number (NSM).
    pub fn state(&self) -> u32 {
        self.state
    }

    /// Takes everything from a host. False if there is none of this number. May wait for the disk.
    pub fn expire(&self, id: u64) -> bool {
        let found = self.hosts.lock().iter().find(|host| host.key.id == id).map(Arc::clone);
        found.inspect(|host| self.release(host)).is_some()
    }

    /// Whether only reclaims are taken now.
    fn in_grace(&self) -> bool {
        self.locks.in_grace()
    }

    /// A permit for a reply to a `*_MSG` of this address, if there is one.
    fn message_place(&self, address: IpAddr) -> Option<AddressPermit> {
        let limits = (NLM_MESSAGES_MAX, NLM_MESSAGES_PER_HOST_MAX);
        let permit = self.messages.take(network(address), limits);
        if permit.is_none() {
            Limit::NlmMessages.count();
        }
        permit
    }

    /// Has a message sent. If the runtimes are ending it is lost, as on the way.
    fn send(&self, message: Message) {
        let _ = self.outbox.send(message);
    }

    /// Ends a host with all that it holds. May wait for the disk.
    fn release(&self, host: &Host) {
        self.release_before(host, STATE_UNKNOWN);
    }

    /// Ends what a host holds that it has locked before it was in this state (NSM): it has
    /// restarted. Whether it has locked something in that state, which stays, and the host on
    /// record with it. May wait for the disk.
    fn release_before(&self, host: &Host, state: u32) -> bool {
        let _paper = self.paper.lock();
        let was_recorded = {
            let mut gate = host.gate.lock();
            if gate.holds_in(state) {
                self.release_files(host, &mut gate, |_, file| file.state != state);
                return true;
            }
            self.locks.release_client(host.key);
            self.blocks.lock().remove_host(host.key);
            gate.files.clear();
            std::mem::replace(&mut gate.recorded, false)
        };
        if was_recorded {
            // If it stays on record it may reclaim what it does not want any more.
            let _ = self.records.forget(&host.record());
        }
        false
    }

    /// Ends what a host holds on these files: locks, and waiting for them. A file that it knows by
    /// another handle too is left to it. Gives on how many files there was something.
    fn release_files(
        &self,
        host: &Host,
        gate: &mut Gate,
        mut these: impl FnMut(&Handle, HeldFile) -> bool,
    ) -> usize {
        let gone: Vec<_> = gate.files.extract_if(|handle, file| these(handle, *file)).collect();
        let left: HashSet<_> = gate.files.values().map(|file| file.key).collect();
        let mut files = 0;
        for key in gone.iter().map(|(_, file)| file.key).filter(|key| !left.contains(key)) {
            self.locks.release_on(key, host.key);
            self.blocks.lock().remove_file(key, host.key);
            files += 1;
        }
        files
    }

    /// Addresses of the hosts that hold something through the share with this tag.
    pub fn holders(&self, tag: u32) -> Vec<IpAddr> {
        let hosts: Vec<_> = self.hosts.lock().iter().map(Arc::clone).collect();
        let holds = |host: &&Arc<Host>| {
            host.gate.lock().files.keys().any(|handle| tag_of(handle) == Some(tag))
        };
        hosts.iter().filter(holds).map(|host| host.address).collect()
    }

    /// Ends what hosts hold through the share with this tag, which is not served any more: locks,
    /// and waiting for them. A file that a host knows through another share too is left to it.
    /// Gives on how many files there was something.
    pub fn release_share(&self, tag: u32) -> usize {
        let hosts: Vec<_> = self.hosts.lock().iter().map(Arc::clone).collect();
        let of_host = |host: &Arc<Host>| {
            let mut gate = host.gate.lock();
            // The same file may be there under another handle, through another share.
            self.release_files(host, &mut gate, |handle, _| tag_of(handle) == Some(tag))
        };
        hosts.iter().map(of_host).sum()
    }

    /// Removes the hosts that hold nothing: they need no notification of the next restart.
    fn forget_idle(&self) {
        let hosts: Vec<_> = self.hosts.lock().iter().map(Arc::clone).collect();
        hosts.iter().for_each(|host| host.gate.lock().used = false);
        let busy = self.locks.clients(Protocol::Nlm);
        let _paper = self.paper.lock();
        for host in hosts.iter().filter(|host| !busy.contains(&host.key)) {
            let was_recorded = {
                let mut gate = host.gate.lock();
                // It may have taken a lock since the table was looked through.
                if gate.used {
                    continue;
                }
                gate.gone = true;
                gate.recorded
            };
            self.hosts.lock().remove(host);
            if was_recorded {
                // If it stays on record it gets a needless notification of the next restart.
                let _ = self.records.forget(&host.record());
            }
        }
    }

    /// Does something for a host, which nothing else is done for meanwhile. With `record` the host
    /// is on record first, which may wait for the disk.
    fn with_host<R>(
        &self,
        (address, name): (IpAddr, &[u8]),
        record: bool,
        may_block: bool,
        act: impl FnOnce(&Arc<Host>, &mut Gate) -> R,
    ) -> Result<R, Refusal> {
        let find = || self.hosts.lock().find_or_add(address, name).ok_or(Nlm4Stat::DENIED_NOLOCKS);
        let host = find()?;
        {
            let mut gate = host.gate.lock();
            if !gate.gone && (gate.recorded || !record) {
                gate.used = true;
                return Ok(act(&host, &mut gate));
            }
        }
        if !may_block {
            return Err(Refusal::WouldBlock);
        }
        // From here on no host is forgotten, and its gate is not held while the disk is waited for.
        let _paper = self.paper.lock();
        let host = find()?;
        if record {
            self.records.record(&host.record()).map_err(|_| Nlm4Stat::DENIED_NOLOCKS)?;
        }
        let mut gate = host.gate.lock();
        gate.recorded |= record;
        gate.used = true;
        Ok(act(&host, &mut gate))
    }
}

#[cfg(test)]
mod tests;
