//! Byte-range locks over takeovers: one client of NFSv4.1 and one of NLM hold them, others of both
//! protocols request them continuously. Two clients never hold one lock, and each lock is held
//! after each takeover until its holder unlocks it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use e2e::nfs3::{self, Handle};
use e2e::patience;
use wire::nfs3::{CreateHow, Sattr3};
use wire::nlm4::{
    self, HostName, LockArgs, NLM_PROGRAM, NLM_V4, Netobj, Nlm4Lock, Nlm4Res, Nlm4Stat, UnlockArgs,
};
use wire::xdr::decode_all;

use super::cluster::{Cluster, Resource};
use super::monitor::{Monitor, Notification};
use super::session::{Attempt, Session, Trouble, connect, of_v3};

/// The files with the locks: of the holder by NFSv4.1, and of the one by NLM.
const FILES: [&str; 2] = ["locked4", "locked3"];
/// What is locked.
const OFFSET: u64 = 100;
const LENGTH: u64 = 50;
/// How often each client does something.
const EVERY: Duration = Duration::from_millis(20);
/// Refusals of each contender that count as progress.
const SOME: u64 = 3;
/// How long progress may take.
const SOON: Duration = patience(90);

/// A program and its version.
const NLM: (u32, u32) = (NLM_PROGRAM, NLM_V4);

#[derive(Default)]
struct Shared {
    /// Holders unlock and end.
    unlocks: AtomicBool,
    /// Contenders end.
    ends: AtomicBool,
    /// Whether the holder of each file has its lock.
    holds: [AtomicBool; 2],
    /// How often each contender was refused, and how often it got a lock; by protocol, then file.
    denied: [AtomicU64; 4],
    granted: [AtomicU64; 4],
    /// What went wrong.
    errors: Mutex<Vec<String>>,
    /// The last interruption of each client.
    troubles: Mutex<Vec<String>>,
}

impl Shared {
    fn note(&self, what: &str, trouble: Trouble) {
        let (list, text) = match trouble {
            Trouble::Away(why) => (&self.troubles, format!("{what}: {why}")),
            Trouble::Lost(why) => (&self.errors, format!("{what}: {why}")),
        };
        let mut list = list.lock().expect("a list");
        if !list.contains(&text) {
            list.push(text);
        }
    }
}

/// The clients.
pub struct Locks {
    resource: &'static Resource,
    monitor: Monitor,
    shared: Arc<Shared>,
    holders: Vec<JoinHandle<()>>,
    contenders: Vec<JoinHandle<()>>,
}

impl Locks {
    /// Starts the holders, and once they have their locks the contenders.
    pub fn start(cluster: &Cluster, resource: &'static Resource) -> Self {
        let monitor = Monitor::start(&cluster.switch);
        let (shared, at, export) =
            (Arc::<Shared>::default(), resource.address(), resource.export());
        let mut this = Self {
            resource,
            monitor,
            shared: shared.clone(),
            holders: Vec::new(),
            contenders: Vec::new(),
        };
        let session = Session::new(at, &export, "holder", FILES[0]);
        let work = shared.clone();
        this.holders.push(cluster.switch.spawn(move || hold_by_v4(&work, session)));
        let (work, list) = (shared.clone(), this.monitor.list());
        let host = Host::new(at, &export, "holder", FILES[1]);
        this.holders.push(cluster.switch.spawn(move || hold_by_nlm(&work, host, &list)));
        this.wait("the locks", |shared| {
            shared.holds.iter().all(|holds| holds.load(Ordering::SeqCst))
        });
        for (n, file) in FILES.into_iter().enumerate() {
            let session = Session::new(at, &export, &format!("contender {file}"), file);
            let work = shared.clone();
            this.contenders.push(cluster.switch.spawn(move || contend_by_v4(&work, n, session)));
            let (work, host) = (shared.clone(), Host::new(at, &export, "contender", file));
            this.contenders.push(cluster.switch.spawn(move || contend_by_nlm(&work, n, host)));
        }
        this
    }

    fn wait(&self, what: &str, is_so: impl Fn(&Shared) -> bool) {
        let (until, shared) = (Instant::now() + SOON, &self.shared);
        while !is_so(shared) {
            let errors = shared.errors.lock().expect("a list").clone();
            assert!(errors.is_empty(), "{what}: {errors:?}");
            let troubles = shared.troubles.lock().expect("a list").clone();
            assert!(Instant::now() < until, "{what}: not within {SOON:?}: {troubles:?}");
            std::thread::sleep(EVERY);
        }
    }

    /// Waits until the current server has refused all contenders: both locks are held.
    pub fn progress(&self, what: &str) {
        let counts = |shared: &Shared| -> Vec<u64> {
            shared.denied.iter().map(|count| count.load(Ordering::SeqCst)).collect()
        };
        let before = counts(&self.shared);
        self.wait(what, |shared| {
            counts(shared).iter().zip(&before).all(|(now, before)| *now >= before + SOME)
        });
        let troubles = std::mem::take(&mut *self.shared.troubles.lock().expect("a list"));
        println!("{what}: both locks are held; interruptions of clients: {}", troubles.len());
    }

    /// Waits for a notification from the resource since there were `before`.
    pub fn wait_for_notification(&self, before: usize) {
        let address = self.resource.address().ip();
        self.wait("SM_NOTIFY", |_| {
            self.monitor
                .notifications()
                .iter()
                .skip(before)
                .any(|(from, name)| *from == address && *name == address.to_string())
        });
    }

    /// How many notifications there were.
    pub fn notifications(&self) -> usize {
        self.monitor.notifications().len()
    }

    /// Lets the holders unlock: only then contenders get the locks.
    pub fn end(mut self) {
        for granted in &self.shared.granted {
            assert_eq!(granted.load(Ordering::SeqCst), 0, "a lock was held by two");
        }
        self.shared.unlocks.store(true, Ordering::SeqCst);
        self.wait("locks that are free", |shared| {
            shared.granted.iter().all(|granted| granted.load(Ordering::SeqCst) > 0)
        });
        self.shared.ends.store(true, Ordering::SeqCst);
        for thread in self.holders.drain(..).chain(self.contenders.drain(..)) {
            thread.join().expect("a client");
        }
        let errors = self.shared.errors.lock().expect("a list").clone();
        assert_eq!(errors, Vec::<String>::new());
        let denied: Vec<_> =
            self.shared.denied.iter().map(|count| count.load(Ordering::SeqCst)).collect();
        println!("attempts that were refused, by protocol and file: {denied:?}");
    }
}

/// Repeats what is interrupted.
fn until_done(shared: &Shared, what: &str, mut work: impl FnMut() -> Result<bool, Trouble>) {
    while !shared.ends.load(Ordering::SeqCst) {
        match work() {
            Ok(true) => return,
            Ok(false) => {}
            Err(trouble) => shared.note(what, trouble),
        }
        std::thread::sleep(EVERY);
    }
}

fn hold_by_v4(shared: &Shared, mut session: Session) {
    const WHAT: &str = "holder by NFSv4.1";
    until_done(shared, WHAT, || Ok(session.lock((OFFSET, LENGTH))? == Attempt::Granted));
    shared.holds[0].store(true, Ordering::SeqCst);
    until_done(shared, WHAT, || {
        session.renew()?;
        Ok(shared.unlocks.load(Ordering::SeqCst))
    });
    shared.holds[0].store(false, Ordering::SeqCst);
    until_done(shared, WHAT, || session.unlock().map(|()| true));
}

fn hold_by_nlm(shared: &Shared, mut host: Host, notifications: &Mutex<Vec<Notification>>) {
    const WHAT: &str = "holder by NLM";
    until_done(shared, WHAT, || Ok(host.lock(false)? == Nlm4Stat::GRANTED));
    shared.holds[1].store(true, Ordering::SeqCst);
    let mut seen = notifications.lock().expect("a list").len();
    while !shared.unlocks.load(Ordering::SeqCst) {
        let count = notifications.lock().expect("a list").len();
        if count > seen {
            seen = count;
            until_done(shared, WHAT, || match host.lock(true)? {
                Nlm4Stat::GRANTED => Ok(true),
                // The server has been taken over again before it was asked.
                Nlm4Stat::DENIED_GRACE_PERIOD => Ok(false),
                other => Err(Trouble::Lost(format!("a reclaim: {other}"))),
            });
        }
        std::thread::sleep(EVERY);
    }
    shared.holds[1].store(false, Ordering::SeqCst);
    until_done(shared, WHAT, || Ok(host.unlock()? == Nlm4Stat::GRANTED));
}

/// One attempt has ended; a lock that was got is unlocked by the caller.
fn judge(shared: &Shared, what: &str, contender: usize, attempt: Attempt) {
    match attempt {
        Attempt::Denied => shared.denied[contender].fetch_add(1, Ordering::SeqCst),
        Attempt::Granted => {
            if shared.holds[contender % 2].load(Ordering::SeqCst) {
                shared.note(what, Trouble::Lost("it got a lock that is held".to_owned()));
            }
            shared.granted[contender].fetch_add(1, Ordering::SeqCst)
        }
    };
}

fn contend_by_v4(shared: &Shared, file: usize, mut session: Session) {
    let what = format!("contender by NFSv4.1 for {}", FILES[file]);
    until_done(shared, &what, || {
        let attempt = session.lock((OFFSET, LENGTH))?;
        judge(shared, &what, file, attempt);
        session.unlock()?;
        Ok(false)
    });
}

fn contend_by_nlm(shared: &Shared, file: usize, mut host: Host) {
    let what = format!("contender by NLM for {}", FILES[file]);
    until_done(shared, &what, || {
        match host.lock(false)? {
            Nlm4Stat::DENIED => judge(shared, &what, 2 + file, Attempt::Denied),
            Nlm4Stat::GRANTED => {
                judge(shared, &what, 2 + file, Attempt::Granted);
                host.unlock()?;
            }
            Nlm4Stat::DENIED_GRACE_PERIOD => {}
            other => return Err(Trouble::Lost(other.to_string())),
        }
        Ok(false)
    });
}

/// A host that locks by NLM.
struct Host {
    address: SocketAddr,
    export: String,
    name: &'static str,
    file: &'static str,
    handle: Option<Handle>,
    rpc: Option<nfs3::Client>,
}

impl Host {
    fn new(address: SocketAddr, export: &str, name: &'static str, file: &'static str) -> Self {
        Self { address, export: export.to_owned(), name, file, handle: None, rpc: None }
    }

    fn lock(&mut self, reclaim: bool) -> Result<Nlm4Stat, Trouble> {
        self.call(Some(reclaim))
    }

    fn unlock(&mut self) -> Result<Nlm4Stat, Trouble> {
        self.call(None)
    }

    /// LOCK, which reclaims or does not, or UNLOCK.
    fn call(&mut self, lock: Option<bool>) -> Result<Nlm4Stat, Trouble> {
        let mut rpc = match self.rpc.take() {
            Some(rpc) => rpc,
            None => connect(self.address)?,
        };
        // The handle, once the file has been made, must stay good.
        let handle = match &self.handle {
            Some(handle) => handle.clone(),
            None => {
                let root = rpc.mnt(&self.export).map_err(of_v3)?;
                let how = CreateHow::Unchecked(Sattr3::default());
                rpc.create(&root, self.file, how).map_err(of_v3)?.handle
            }
        };
        self.handle = Some(handle.clone());
        let alock = Nlm4Lock {
            caller_name: HostName(self.name.as_bytes()),
            fh: Netobj(&handle),
            oh: Netobj(b"owner"),
            svid: 1,
            l_offset: OFFSET,
            l_len: LENGTH,
        };
        let cookie = Netobj(b"cookie");
        let reply = match lock {
            Some(reclaim) => {
                let (block, exclusive, state) = (false, true, 1);
                let args = LockArgs { cookie, block, exclusive, alock, reclaim, state };
                rpc.call(NLM, nlm4::Proc::LOCK.0, &args)
            }
            None => rpc.call(NLM, nlm4::Proc::UNLOCK.0, &UnlockArgs { cookie, alock }),
        };
        let reply = reply.map_err(of_v3)?;
        let reply = decode_all::<Nlm4Res<'_>>(&reply).map_err(|e| Trouble::Lost(e.to_string()))?;
        self.rpc = Some(rpc);
        Ok(reply.stat)
    }
}
