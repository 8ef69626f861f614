//! Pools through the tree: requests to the helper, which is a unit of its own, or a child of this
//! process if that is root.
//!
//! - [`capacity`]: statistics. [`schedules`]: snapshots by schedule.

pub mod capacity;
mod schedules;

use std::collections::BTreeMap;
use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use base::node::{Path, Value};
use control::access::Rights;
use control::state::effective_uid;
use control::tree::{Actor, Operational, Problem, Tree};
use host_helper::client::Client;
use host_helper::request::{Reply, Request};
use host_pools::disk::Disk;
use host_pools::keeper::{FILE, FOLDER};
use host_pools::pool::Offer;
use host_pools::profile::Profile;
use host_pools::request::{PoolReply, PoolRequest, PoolStatus, ShareSettings, Status};
use host_pools::zfs::Role;
use host_pools::zfs::layout::Options;
use parking_lot::Mutex;

use super::faults::faults;
use super::shown::{self, Bays, Shown};
use crate::hardware::pool::Member;
use crate::hardware::room::HardwareRoom;
use crate::network::link::{SOCKET, unexpected};
use crate::problems::{Fault, Source};
use crate::shares::node::shares_below;
use crate::shares::{Shares, Subvolumes};
use capacity::Read;
use schedules::Made;
pub(super) use schedules::check_name;

/// Where it is in the tree.
pub const PREFIX: [&str; 1] = ["storage"];
/// Its name as a source of problems.
pub const NAME: &str = "pools";
/// The folder of a helper that is a child, below the state directory.
const CHILD: &str = "pools";
/// How long a state is good: a page reads each of its nodes.
const GOOD: Duration = Duration::from_millis(300);
/// How long a list of disks is good: each disk that is not in use is read for it.
const DISKS_GOOD: Duration = Duration::from_secs(5);
/// How long the helper is waited for after a change: for another request that reads, which takes
/// milliseconds, and not for the next change, which may take minutes.
const BUSY: Duration = Duration::from_secs(3);

/// Disks of this machine, and pools on them.
type Disks = (Vec<Disk>, Vec<Offer>);
/// What was answered last, and when; without a time it is from before a change.
type Last<T> = Mutex<Option<(Option<Instant>, T)>>;

/// `/storage`.
pub struct PoolRoom {
    client: Mutex<Option<Client>>,
    folder: PathBuf,
    status: Last<Result<Status, String>>,
    disks: Last<Result<Disks, String>>,
    hardware: OnceLock<Weak<HardwareRoom>>,
    tree: OnceLock<Weak<Tree>>,
    shares: OnceLock<Weak<Shares>>,
    /// Snapshots by schedule.
    made: Made,
    /// The state that was read last for statistics.
    read: Read,
    /// Serves shares that were offline, after a pool was mounted.
    retry: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// Why there can be no helper, and what to do.
fn lacks() -> Option<String> {
    let is_there = FilePath::new(SOCKET).exists() || effective_uid() == 0;
    (!is_there).then(|| {
        "the server is not root and no helper runs: start the helper (systemctl enable --now \
         plimsoll-host), or start the server as root"
            .to_owned()
    })
}

impl PoolRoom {
    /// For a server with this state directory. Pools that were imported are mounted when it
    /// returns, or failed to be.
    pub fn new(state: &FilePath) -> Arc<Self> {
        let room = Self {
            client: Mutex::new(None),
            folder: state.join(CHILD),
            status: Mutex::default(),
            disks: Mutex::default(),
            hardware: OnceLock::new(),
            tree: OnceLock::new(),
            shares: OnceLock::new(),
            made: Made::default(),
            read: Read::default(),
            retry: OnceLock::new(),
        };
        let is_used = FilePath::new(SOCKET).exists() || room.folder.join(FILE).exists();
        if is_used && let Err(why) = room.status() {
            base::error!("pools", "{why}");
        }
        Arc::new(room)
    }

    /// With what it needs of the running server; `retry` serves shares that were offline.
    pub fn join(&self, tree: &Arc<Tree>, shares: &Arc<Shares>, retry: Box<dyn Fn() + Send + Sync>) {
        // Once, here.
        let _ = self.tree.set(Arc::downgrade(tree));
        let _ = self.shares.set(Arc::downgrade(shares));
        let _ = self.retry.set(retry);
    }

    pub(super) fn tree(&self) -> Option<Arc<Tree>> {
        self.tree.get().and_then(Weak::upgrade)
    }

    pub(super) fn shares(&self) -> Option<Arc<Shares>> {
        self.shares.get().and_then(Weak::upgrade)
    }

    /// Bays of disks are those of the hardware.
    pub fn with_bays(&self, hardware: &Arc<HardwareRoom>) {
        // Once, too.
        let _ = self.hardware.set(Arc::downgrade(hardware));
    }

    fn connect(&self) -> std::io::Result<Client> {
        let socket = FilePath::new(SOCKET);
        if socket.exists() {
            return Client::connect(socket);
        }
        Client::start_for_pools(&std::env::current_exe()?, &self.folder)
    }

    fn request_over(
        &self,
        client: &mut Option<Client>,
        of: PoolRequest,
    ) -> Result<PoolReply, String> {
        if let Some(why) = lacks() {
            return Err(why);
        }
        let failed = |e: std::io::Error| format!("the helper does not answer: {e}");
        let mut over = match client.take() {
            Some(client) => client,
            None => self.connect().map_err(failed)?,
        };
        let reply = over.ask(&Request::Pools(of)).map_err(failed)?;
        *client = Some(over);
        match reply {
            Reply::Pools(reply) => Ok(*reply),
            other => Err(unexpected(&other)),
        }
    }

    /// Whether a helper was ever used.
    fn is_used(&self) -> bool {
        // A helper that is busy is used.
        self.client.try_lock().is_none_or(|client| client.is_some())
    }

    /// Pools, if a helper was ever used: none is started for it.
    fn pools_if_used(&self) -> Vec<PoolStatus> {
        if self.is_used() { self.pools() } else { Vec::new() }
    }

    /// Requests a change, after which states are read again.
    fn request(&self, request: PoolRequest) -> Result<PoolReply, String> {
        let mut client = self.client.lock();
        let reply = self.request_over(&mut client, request);
        // As long as the helper is locked: no answer from before the change is stored afterwards.
        if let Some((at, _)) = self.status.lock().as_mut() {
            *at = None;
        }
        if let Some((at, _)) = self.disks.lock().as_mut() {
            *at = None;
        }
        reply
    }

    /// The answer to a request that reads: the last one if that is good, or if the helper is busy.
    /// Pools do not disappear while it is.
    fn read<T: Clone>(
        &self,
        (last, good): (&Last<Result<T, String>>, Duration),
        request: PoolRequest,
        of: fn(PoolReply) -> Option<T>,
    ) -> Result<T, String> {
        let is_good = |at: &Option<Instant>| at.is_some_and(|at| at.elapsed() < good);
        let known = || last.lock().clone();
        if let Some((_, answer)) = known().filter(|(at, _)| is_good(at)) {
            return answer;
        }
        let is_from_before = known().is_none_or(|(at, _)| at.is_none());
        let patience = if is_from_before { BUSY } else { Duration::ZERO };
        let Some(mut client) = self.client.try_lock_for(patience) else {
            let last = known().map(|(_, answer)| answer);
            return last.unwrap_or_else(|| Err("the helper is busy: try again".to_owned()));
        };
        // Another request may have read it meanwhile.
        if let Some((_, answer)) = known().filter(|(at, _)| is_good(at)) {
            return answer;
        }
        let reply = self.request_over(&mut client, request);
        let other = "the helper is of another version: restart both";
        let answer = reply.and_then(|reply| of(reply).ok_or_else(|| other.to_owned()));
        // Before the helper is free for a change.
        *last.lock() = Some((Some(Instant::now()), answer.clone()));
        drop(client);
        answer
    }

    /// The state of all pools.
    ///
    /// # Errors
    /// Why it is not known.
    pub fn status(&self) -> Result<Status, String> {
        self.read((&self.status, GOOD), PoolRequest::Status {}, |reply| match reply {
            PoolReply::Status(status) => Some(status),
            _ => None,
        })
    }

    fn disks(&self) -> Result<Disks, String> {
        self.read((&self.disks, DISKS_GOOD), PoolRequest::Disks {}, |reply| match reply {
            PoolReply::Disks { disks, offers } => Some((disks, offers)),
            _ => None,
        })
    }

    fn pools(&self) -> Vec<PoolStatus> {
        // Without a helper that was ever used none is started to find nothing.
        self.status().map(|status| status.pools).unwrap_or_default()
    }

    pub(super) fn pool(&self, name: &str) -> Option<PoolStatus> {
        self.pools().into_iter().find(|pool| pool.name == name)
    }

    fn bays(&self) -> Bays {
        let hardware = self.hardware.get().and_then(Weak::upgrade);
        let disks = hardware.map(|room| room.read().disks.clone()).unwrap_or_default();
        let of = disks.into_iter().filter_map(|disk| Some((disk.devices, disk.bay?)));
        of.flat_map(|(devices, bay)| devices.into_iter().map(move |device| (device, bay.clone())))
            .collect()
    }

    /// Disks of all pools, for the nodes of the hardware.
    pub fn members(&self) -> Vec<Member> {
        let of = |pool: PoolStatus| {
            let name = pool.name;
            pool.members.into_iter().map(move |one| Member {
                pool: name.clone(),
                device: one.identity.device,
                serial: one.identity.serial,
                id: one.identity.id,
                missing: one.member.missing,
            })
        };
        self.pools_if_used().into_iter().flat_map(of).collect()
    }

    /// Why nothing can be changed.
    fn reason(&self) -> Option<String> {
        lacks().or_else(|| match self.status() {
            // With one of both there are pools.
            Ok(Status { lacks: Some(why), lacks_zfs: Some(_), .. }) => Some(why),
            Ok(_) => None,
            Err(why) => Some(why),
        })
    }

    /// Shares of the configuration that are on a pool.
    fn is_unused(&self, name: &str) -> Result<(), String> {
        let tree = self.tree().ok_or("the server ends")?;
        let shares = shares_below(&tree.document(), &FilePath::new(FOLDER).join(name));
        if shares.is_empty() {
            return Ok(());
        }
        Err(format!("shares are on the pool {name}: {}; destroy them first", shares.join(", ")))
    }

    pub(super) fn done(&self, request: PoolRequest) -> Result<serde_json::Value, String> {
        match self.request(request)? {
            PoolReply::Done(sentence) => Ok(sentence.into()),
            _ => Err("the helper is of another version: restart both".to_owned()),
        }
    }

    fn act_now(
        &self,
        inside: &[&str],
        action: &str,
        of: &BTreeMap<String, Value>,
    ) -> Result<serde_json::Value, String> {
        let request = match inside {
            ["pools"] => on_all(action, of),
            ["pools", pool] => {
                if matches!(action, "export_pool" | "destroy_data") {
                    self.is_unused(pool)?;
                }
                if action == "create_snapshot" {
                    check_name(&text(of, "name"))?;
                }
                on_pool(pool, action, of)
            }
            _ => None,
        };
        let request = request.ok_or_else(|| format!("unknown action {action}"))?;
        let mounts = matches!(request, PoolRequest::Import { .. } | PoolRequest::Create { .. });
        let done = self.done(request)?;
        if mounts {
            self.serve_offline();
        }
        Ok(done)
    }

    fn serve_offline(&self) {
        if let Some(retry) = self.retry.get() {
            retry();
        }
    }
}

impl Subvolumes for PoolRoom {
    fn make(&self, pool: &str, share: &str) -> Result<bool, String> {
        let (pool, share) = (pool.to_owned(), share.to_owned());
        match self.request(PoolRequest::MakeShare { pool, share })? {
            PoolReply::Share { made } => Ok(made),
            _ => Err("the helper is of another version: restart both".to_owned()),
        }
    }

    fn take_back(&self, pool: &str, share: &str) {
        let (pool, share) = (pool.to_owned(), share.to_owned());
        if let Err(why) = self.request(PoolRequest::TakeBackShare { pool, share }) {
            base::error!("pools", "{why}");
        }
    }

    fn configure(&self, pool: &str, share: &str, settings: &ShareSettings) -> Result<(), String> {
        let (pool, share, settings) = (pool.to_owned(), share.to_owned(), *settings);
        self.done(PoolRequest::ConfigureShare { pool, share, settings }).map(drop)
    }
}

impl Source for PoolRoom {
    fn name(&self) -> &'static str {
        NAME
    }

    fn faults(&self) -> Vec<Fault> {
        let pools = self.pools_if_used();
        pools.iter().flat_map(faults).chain(self.made.faults()).collect()
    }
}

/// A text of an action's parameters.
pub(super) fn text(of: &BTreeMap<String, Value>, name: &str) -> String {
    of.get(name).and_then(Value::as_text).unwrap_or_default().to_owned()
}

/// A list of an action's parameters.
fn texts(of: &BTreeMap<String, Value>, name: &str) -> Vec<String> {
    let list = of.get(name).map(Value::as_texts).unwrap_or_default();
    list.into_iter().map(str::to_owned).collect()
}

/// What a new pool of ZFS has in addition to its data disks; none if it is to be of another kind.
fn options(of: &BTreeMap<String, Value>) -> Option<Options> {
    let bytes = of.get("record_size").and_then(Value::as_integer);
    let options = Options {
        log: texts(of, "log"),
        log_mirror: text(of, "log_profile") == "mirror",
        cache: texts(of, "cache"),
        spares: texts(of, "spares"),
        record_size: bytes.and_then(|bytes| u64::try_from(bytes).ok()),
    };
    (text(of, "kind") == "zfs").then_some(options)
}

/// What disks are added for, and whether they are a mirror.
fn role(of: &BTreeMap<String, Value>) -> (Role, bool) {
    match text(of, "role").as_str() {
        "log" => (Role::Log, false),
        "log_mirror" => (Role::Log, true),
        "cache" => (Role::Cache, false),
        "spare" => (Role::Spare, false),
        _ => (Role::Data, false),
    }
}

/// A switch of an action's parameters.
fn truth(of: &BTreeMap<String, Value>, name: &str) -> Option<bool> {
    of.get(name).and_then(Value::as_bool)
}

/// What an action of all pools requests.
fn on_all(action: &str, of: &BTreeMap<String, Value>) -> Option<PoolRequest> {
    let pool = text(of, "name");
    let degraded = truth(of, "degraded").unwrap_or_default();
    match action {
        "create_pool" => {
            let profile = Profile::of(&text(of, "profile")).unwrap_or(Profile::Mirror);
            let disks = texts(of, "disks");
            Some(PoolRequest::Create { pool, profile, disks, zfs: options(of) })
        }
        "import_pool" => Some(PoolRequest::Import { pool, degraded }),
        _ => None,
    }
}

/// What an action of a pool requests.
fn on_pool(pool: &str, action: &str, of: &BTreeMap<String, Value>) -> Option<PoolRequest> {
    let pool = pool.to_owned();
    let text = |name: &str| text(of, name);
    let days = of.get("scrub_every_days").and_then(Value::as_integer);
    Some(match action {
        "scrub" => PoolRequest::Scrub { pool },
        "stop" => PoolRequest::Stop { pool },
        "replace" => PoolRequest::Replace { pool, member: text("member"), disk: text("disk") },
        "add" => {
            let (role, mirror) = role(of);
            PoolRequest::Add { pool, disks: texts(of, "disks"), role, mirror }
        }
        "offline" => PoolRequest::Offline { pool, member: text("member") },
        "online" => PoolRequest::Online { pool, member: text("member") },
        "remove" => PoolRequest::Remove { pool, member: text("member") },
        "configure" => PoolRequest::Configure {
            pool,
            mount_degraded: truth(of, "mount_degraded"),
            scrub_every_days: days.and_then(|days| u32::try_from(days).ok()),
        },
        "create_snapshot" => {
            PoolRequest::Snapshot { pool, share: text("share"), snapshot: text("name") }
        }
        "account_snapshots" => PoolRequest::AccountSnapshots { pool },
        "mount" => {
            let degraded = truth(of, "degraded").unwrap_or_default();
            PoolRequest::Import { pool, degraded }
        }
        "export_pool" => PoolRequest::Export { pool },
        "destroy_data" => PoolRequest::DestroyData { pool, confirmation: text("confirm") },
        _ => return None,
    })
}

/// Names of a path below the branch.
fn inside(path: &Path) -> Vec<&str> {
    path.segments().iter().skip(PREFIX.len()).map(String::as_str).collect()
}

impl Operational for PoolRoom {
    fn state(&self, path: &Path) -> Shown {
        let reason = |reason: Option<String>| {
            reason.into_iter().map(|why| ("reason", Value::Text(why))).collect()
        };
        match inside(path).as_slice() {
            ["pools"] => {
                let mut shown: Shown = reason(self.reason());
                if let Ok(Status { lacks, lacks_zfs, .. }) = self.status() {
                    let both = [("reason_btrfs", lacks), ("reason_zfs", lacks_zfs)];
                    let both = both.into_iter().filter_map(|(name, why)| Some((name, why?)));
                    shown.extend(both.map(|(name, why)| (name, Value::Text(why))));
                }
                if let Ok((_, offers)) = self.disks() {
                    shown.push(("importable", Value::texts(offers.iter().map(shown::offer))));
                }
                shown
            }
            ["pools", pool] => self.pool(pool).as_ref().map(shown::pool).unwrap_or_default(),
            ["pools", pool, "disks", number] => {
                let pool = self.pool(pool);
                let members = pool.iter().flat_map(|pool| &pool.members);
                let mut members = members.filter(|one| one.identity.devid.to_string() == *number);
                members.next().map(|one| shown::member(one, &self.bays())).unwrap_or_default()
            }
            ["pools", pool, "snapshots", name] => {
                let pool = self.pool(pool);
                let snapshot = pool.as_ref().and_then(|pool| shown::snapshot(pool, name));
                snapshot.map_or_else(Vec::new, |(share, _, made)| {
                    vec![("share", Value::text(share)), ("created", Value::number(*made))]
                })
            }
            ["disks"] => reason(self.disks().err()),
            ["disks", name] => {
                let disks = self.disks().map(|(disks, _)| disks).unwrap_or_default();
                let disk = disks.iter().find(|disk| disk.name == *name);
                disk.map(|disk| shown::disk(disk, &self.bays())).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    fn items(&self, path: &Path) -> Vec<String> {
        match inside(path).as_slice() {
            ["pools"] => self.pools().into_iter().map(|pool| pool.name).collect(),
            ["pools", pool, "disks"] => {
                let members = self.pool(pool).map(|pool| pool.members).unwrap_or_default();
                members.iter().map(|one| one.identity.devid.to_string()).collect()
            }
            ["pools", pool, "snapshots"] => {
                let snapshots = self.pool(pool).map(|pool| pool.snapshots).unwrap_or_default();
                snapshots.iter().map(shown::snapshot_name).collect()
            }
            ["disks"] => {
                let disks = self.disks().map(|(disks, _)| disks).unwrap_or_default();
                disks.into_iter().map(|disk| disk.name).collect()
            }
            _ => Vec::new(),
        }
    }

    fn locked(&self) -> Option<String> {
        lacks()
    }

    fn why_not(&self, _path: &Path, action: &str, rights: &Rights) -> Option<String> {
        let creates_share = action == "clone" && !rights.are_all();
        creates_share.then(|| "creating a share on a pool requires the permission *".to_owned())
    }

    fn act(
        &self,
        path: &Path,
        action: &str,
        parameters: &BTreeMap<String, Value>,
        who: &Actor,
    ) -> Result<serde_json::Value, Problem> {
        if let ["pools", pool, "snapshots", name] = inside(path).as_slice() {
            return self.act_on_snapshot((pool, name), action, parameters, who);
        }
        let done = self.act_now(&inside(path), action, parameters);
        done.map_err(|why| Problem::conflict(path, &why, ""))
    }
}
