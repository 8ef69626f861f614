//! A service of `serve::files` in this process: shares in memory or in a folder, users, and a
//! core to call from. Other tests include this file by its path.

#![allow(dead_code, reason = "each test that includes it uses a part")]

use std::collections::HashMap;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use probe::hub::{Hub, HubOptions};
use serve::exec::Engine;
use serve::files::{Caller, Core, Files, SignIns};
use serve::pool::{Pool, PoolLimits};
use serve::transport::budget::Limits;
use serve::transport::pace::SlowPeerBudget;
use serve::transport::{Budgets, Runtimes, Tasks};
use vfs::cred::Cred;
use vfs::flush::FlushGroup;
use vfs::fs::FileSystem;
use vfs::host::{HostFs, HostOptions};
use vfs::identity::{Identity, Person, Refused};
use vfs::locks::LockTable;
use vfs::mem::MemFs;
use vfs::share::rules::{Lookup, Transport};
use vfs::share::{Service, ShareTable, Shares, tag};
use vfs::transfers::{Ended, Log};

/// How long something may take.
const PATIENCE: Duration = Duration::from_secs(80);
/// What a test does on a core has ended within this: trees of thousands of levels take half a
/// minute on a machine with nothing else to do.
const ENDS_WITHIN: Duration = Duration::from_secs(400);

/// Users for tests: `alice` with the password `secret`, and the added ones.
pub struct Users {
    people: Mutex<HashMap<String, (String, Arc<Person>)>>,
    keys: Mutex<HashMap<String, Vec<String>>>,
    /// How often a password was judged.
    pub judged: AtomicU64,
    generation: AtomicU64,
}

impl Default for Users {
    fn default() -> Self {
        let users = Self {
            people: Mutex::default(),
            keys: Mutex::default(),
            judged: AtomicU64::new(0),
            generation: AtomicU64::new(1),
        };
        users.add("alice", "secret", Cred::root());
        users
    }
}

impl Users {
    /// Adds a user.
    pub fn add(&self, name: &str, password: &str, cred: Cred) {
        let person = Person { name: name.to_owned(), cred, home: None, anonymous: false };
        let entry = (password.to_owned(), Arc::new(person));
        self.people.lock().expect("whole").insert(name.to_owned(), entry);
        self.generation.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds a user with a home directory.
    pub fn add_at_home(&self, name: &str, password: &str, home: &str) {
        self.add(name, password, Cred::root());
        let mut people = self.people.lock().expect("whole");
        if let Some((_, person)) = people.get_mut(name) {
            let home = Some(home.as_bytes().to_vec());
            *person = Arc::new(Person { home, ..Person::clone(person) });
        }
    }

    /// Removes a user.
    pub fn remove(&self, name: &str) {
        self.people.lock().expect("whole").remove(name);
        self.generation.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds a key to a user: a line of `authorized_keys`.
    pub fn add_key(&self, name: &str, line: &str) {
        self.keys.lock().expect("whole").entry(name.to_owned()).or_default().push(line.to_owned());
    }
}

impl Identity for Users {
    fn password(&self, _: IpAddr, name: &str, password: &str) -> Result<Arc<Person>, Refused> {
        self.judged.fetch_add(1, Ordering::Relaxed);
        let people = self.people.lock().expect("whole");
        match people.get(name) {
            Some((right, person)) if right == password => Ok(Arc::clone(person)),
            _ => Err(Refused::Wrong),
        }
    }

    fn must_wait(&self, _: IpAddr, _: &str) -> Option<Duration> {
        None
    }

    fn keys(&self, name: &str) -> Vec<String> {
        self.keys.lock().expect("whole").get(name).cloned().unwrap_or_default()
    }

    fn judged(&self, _: IpAddr, _: &str, _: bool) {}

    fn person(&self, name: &str) -> Option<Arc<Person>> {
        self.people.lock().expect("whole").get(name).map(|(_, person)| Arc::clone(person))
    }

    fn anonymous(&self) -> Arc<Person> {
        let cred = Cred { uid: 65_534, gid: 65_534, groups: Vec::new() };
        let name = "anonymous".to_owned();
        Arc::new(Person { name, cred, home: Some(b"/share".to_vec()), anonymous: true })
    }

    fn nt_hash(&self, name: &str) -> Option<[u8; 16]> {
        let people = self.people.lock().expect("whole");
        people.get(name).map(|(password, _)| wire::smb::ntlm::nt_hash(password))
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }
}

/// Knows no names of hosts.
pub struct NoLookup;

impl Lookup for NoLookup {
    fn host(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        Err(format!("{name} is unknown"))
    }

    fn netgroups(&self) -> String {
        String::new()
    }
}

/// The transfer log: its entries.
#[derive(Default)]
pub struct TransferLog {
    all: Mutex<Vec<Ended>>,
    more: Condvar,
}

impl Log for TransferLog {
    fn is_on(&self) -> bool {
        true
    }

    fn ended(&self, transfer: Ended) {
        self.all.lock().expect("whole").push(transfer);
        self.more.notify_all();
    }
}

impl TransferLog {
    /// Waits for this number of entries, and takes all: each as `PROTOCOL DIRECTION OUTCOME PATH
    /// BYTES@OFFSET`.
    pub fn take(&self, count: usize) -> Vec<String> {
        self.taken(count).iter().map(words).collect()
    }

    /// The same as they are.
    pub fn taken(&self, count: usize) -> Vec<Ended> {
        let all = self.all.lock().expect("whole");
        let few = |all: &mut Vec<Ended>| all.len() < count;
        let waited = self.more.wait_timeout_while(all, PATIENCE, few);
        let mut all = waited.expect("whole").0;
        assert!(all.len() >= count, "{count} transfers: {all:?}");
        std::mem::take(&mut *all)
    }
}

fn words(one: &Ended) -> String {
    let (protocol, way, outcome) = (one.protocol.name(), one.direction.name(), one.outcome.name());
    let path = String::from_utf8_lossy(&one.path);
    format!("{protocol} {way} {outcome} {path} {}@{}", one.bytes, one.offset)
}

/// A service's parts, and the runtimes that it is to run on.
pub struct Scene {
    /// The parts.
    pub files: Arc<Files>,
    /// The entries of the transfer log.
    pub transfers: Arc<TransferLog>,
    /// The users in them.
    pub users: Arc<Users>,
    /// Two cores.
    pub runtimes: Arc<Runtimes>,
}

/// The tasks of a service, which ends when this is dropped: before what is declared behind it.
pub struct Serving(pub Option<Tasks>);

impl Drop for Serving {
    fn drop(&mut self) {
        if let Some(tasks) = self.0.take() {
            tasks.end_blocking().expect("a timer");
        }
    }
}

impl Scene {
    /// The share `share`, in memory.
    pub fn in_memory(service: Service) -> Self {
        Self::over(service, &[("share", MemFs::new(tag("share"), 1 << 30))])
    }

    /// The share `share`, in memory, for peers that may be as slow as this.
    pub fn with_patience(service: Service, patience: Duration) -> Self {
        let share: Arc<dyn FileSystem> = MemFs::new(tag("share"), 1 << 30);
        let limits = Limits { pace: SlowPeerBudget::new(patience), ..Limits::default() };
        Self::within(service, &[("share", share)], limits)
    }

    /// The share `share`, in memory, with a limit on the bytes that may be held for peers.
    pub fn with_bytes(service: Service, bytes: usize) -> Self {
        let share: Arc<dyn FileSystem> = MemFs::new(tag("share"), 1 << 30);
        Self::within(service, &[("share", share)], Limits { bytes, ..Limits::default() })
    }

    /// The share `share`, in a folder of the machine, for peers that may be as slow as this.
    pub fn in_folder(service: Service, folder: &Scratch, patience: Duration) -> Self {
        let limits = Limits { pace: SlowPeerBudget::new(patience), ..Limits::default() };
        Self::within(service, &[("share", folder.share())], limits)
    }

    /// These shares.
    pub fn over(service: Service, shares: &[(&str, Arc<dyn FileSystem>)]) -> Self {
        Self::within(service, shares, Limits::default())
    }

    /// These shares, within these limits.
    pub fn within(
        service: Service,
        shares: &[(&str, Arc<dyn FileSystem>)],
        limits: Limits,
    ) -> Self {
        Self::with_pool(service, shares, limits, PoolLimits::default())
    }

    /// These shares, within these limits, with a pool of this size.
    pub fn with_pool(
        service: Service,
        shares: &[(&str, Arc<dyn FileSystem>)],
        limits: Limits,
        pool: PoolLimits,
    ) -> Self {
        let locks: Arc<LockTable> = Arc::default();
        let mut table = ShareTable::with_locks(Arc::clone(&locks));
        for (name, fs) in shares {
            table.add(name, Arc::clone(fs), false).expect("a share");
        }
        let runtimes = Arc::new(Runtimes::start(2).expect("threads"));
        let users: Arc<Users> = Arc::default();
        let transfers: Arc<TransferLog> = Arc::default();
        let files = Files {
            service,
            shares: Shares::new(table),
            locks,
            engine: Engine::new(
                Pool::start(pool).expect("threads"),
                Arc::new(FlushGroup::start().expect("threads")),
                Arc::new(Budgets::new(limits)),
                Hub::new(HubOptions { cores: 2, recorder_bytes: 1 << 20 }),
            ),
            identity: users.clone(),
            sign_ins: Arc::new(SignIns::default()),
            transfers: transfers.clone(),
        };
        Self { files: Arc::new(files), transfers, users, runtimes }
    }

    /// A user that has signed in from this machine.
    pub fn caller(&self, name: &str) -> Caller {
        let person = self.users.person(name).expect("a user");
        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 40_000));
        let client = self.files.engine.hub.clients().intern(peer.ip());
        Caller::new(person, (peer, client), Transport::Plain, self.files.service)
    }

    /// Runs `test` on a core, as a connection would run.
    pub fn run<F, T>(&self, test: F)
    where
        F: FnOnce(Rc<Core>) -> T + Send + 'static,
        T: Future<Output = ()> + 'static,
    {
        let (done, is_done) = std::sync::mpsc::channel();
        let files = Arc::clone(&self.files);
        self.runtimes.spawn_on(0, move || async move {
            let core = Core::new(0, 2, files);
            let outcome = tokio::task::spawn_local(test(core)).await;
            done.send(outcome).expect("somebody waits");
        });
        let outcome = is_done.recv_timeout(ENDS_WITHIN).expect("it ends in time");
        if let Err(e) = outcome {
            std::panic::resume_unwind(e.into_panic());
        }
    }
}

/// A folder of a test's own with the folder `share` in it, removed at its end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    /// The same, in memory.
    pub fn in_memory() -> Self {
        Self::below(std::path::Path::new("/dev/shm"))
    }

    fn below(folder: &std::path::Path) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("plimsoll-files-{}-{number}", std::process::id());
        let path = folder.join(name);
        std::fs::create_dir_all(path.join("share")).expect("a folder");
        let anybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(path.join("share"), anybody).expect("its mode");
        Self(path)
    }

    /// Its folder `share`, to be served.
    pub fn share(&self) -> Arc<dyn FileSystem> {
        let options = HostOptions::new(tag("share"), [7; 32]);
        HostFs::open(&self.0.join("share"), options).expect("a share")
    }

    /// A file with this content; its path.
    pub fn file(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).expect("written");
        path.to_str().expect("text").to_owned()
    }

    /// Makes a file longer, by a hole, or shorter; it is made if it is not there.
    pub fn set_len(&self, name: &str, len: u64) -> std::fs::File {
        let mut how = std::fs::File::options();
        let file = how.read(true).write(true).create(true).truncate(false);
        let file = file.open(self.0.join(name)).expect("opened");
        file.set_len(len).expect("its length");
        file
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.0.join(name)).expect("read")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left is in the system's folder for that.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
