//! A client that writes blocks one after the other, each on disk before its reply, and continues
//! after each loss of its server as NFS clients do: it connects again, and reclaims its open file.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use e2e::nfs3::Handle;
use e2e::{nfs3, patience};
use wire::nfs3::{CreateHow, Sattr3, StableHow};

use super::cluster::{Cluster, Resource};
use super::session::{Session, Trouble, connect, of_v3};

/// Bytes of a block.
const BLOCK: usize = 1024;
/// Blocks that count as progress.
const SOME: u64 = 20;
/// How long progress may take.
const SOON: Duration = patience(90);

/// A version of NFS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// NFSv3.
    V3,
    /// NFSv4.1 and later, with a session and an open file.
    V4,
}

#[derive(Default)]
struct Shared {
    ends: AtomicBool,
    /// Blocks that were acknowledged.
    acknowledged: AtomicU64,
    /// Longest time between two acknowledgements since it was last read, in milliseconds.
    outage_ms: AtomicU64,
    /// What went wrong, apart from lost connections.
    errors: Mutex<Vec<String>>,
    /// Connections that were lost.
    troubles: Mutex<Vec<String>>,
}

/// A client.
pub struct Writer {
    name: String,
    resource: &'static Resource,
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

/// A client with its file.
enum Connection {
    V3 { address: SocketAddr, export: String, rpc: Option<nfs3::Client>, file: Option<Handle> },
    V4(Box<Session>),
}

fn block(number: u64) -> Vec<u8> {
    let mut block = number.to_le_bytes().repeat(BLOCK / 8);
    block[0] = 0xa5;
    block
}

impl Writer {
    /// Starts a client of a resource.
    pub fn start(cluster: &Cluster, resource: &'static Resource, version: Version) -> Self {
        let name = format!("{version:?}").to_lowercase();
        let shared = Arc::new(Shared::default());
        let (address, export) = (resource.address(), resource.export());
        let (work, file) = (shared.clone(), name.clone());
        let thread = cluster.switch.spawn(move || run(&work, address, &export, &file, version));
        Self { name, resource, shared, thread }
    }

    /// Its name, which is that of its file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What has interrupted it so far: lost connections, and requests to try again.
    pub fn troubles(&self) -> Vec<String> {
        self.shared.troubles.lock().expect("a list").clone()
    }

    /// Waits for some more blocks; the longest wait for one since the last time.
    pub fn progress(&mut self) -> Duration {
        let (until, shared) = (Instant::now() + SOON, &self.shared);
        let goal = shared.acknowledged.load(Ordering::SeqCst) + SOME;
        while shared.acknowledged.load(Ordering::SeqCst) < goal {
            let errors = shared.errors.lock().expect("a list").clone();
            assert!(errors.is_empty(), "{}: {errors:?}", self.name);
            let troubles = self.troubles();
            assert!(
                Instant::now() < until,
                "{} has not written within {SOON:?}: {troubles:?}",
                self.name
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        Duration::from_millis(shared.outage_ms.swap(0, Ordering::SeqCst))
    }

    /// Ends it, and compares the file with what was acknowledged.
    pub fn check(self, cluster: &Cluster) {
        self.shared.ends.store(true, Ordering::SeqCst);
        self.thread.join().expect("the client");
        let errors = self.shared.errors.lock().expect("a list").clone();
        assert_eq!(errors, Vec::<String>::new(), "{}", self.name);
        let content = cluster.content(self.resource, &self.name);
        let acknowledged = self.shared.acknowledged.load(Ordering::SeqCst);
        assert!(
            content.len() as u64 >= acknowledged * BLOCK as u64,
            "{}: blocks are missing",
            self.name
        );
        for (number, found) in content.chunks(BLOCK).take(acknowledged as usize).enumerate() {
            assert_eq!(found, block(number as u64), "{}: block {number}", self.name);
        }
        println!("{}: {acknowledged} blocks, all there", self.name);
    }
}

fn run(shared: &Shared, address: SocketAddr, export: &str, name: &str, version: Version) {
    let mut connection = match version {
        Version::V3 => Connection::V3 { address, export: export.to_owned(), rpc: None, file: None },
        Version::V4 => Connection::V4(Box::new(Session::new(address, export, name, name))),
    };
    let mut last = Instant::now();
    while !shared.ends.load(Ordering::SeqCst) {
        let number = shared.acknowledged.load(Ordering::SeqCst);
        match connection.write(name, number) {
            Ok(()) => {
                shared.acknowledged.store(number + 1, Ordering::SeqCst);
                let waited = last.elapsed().as_millis() as u64;
                shared.outage_ms.fetch_max(waited, Ordering::SeqCst);
                last = Instant::now();
            }
            Err(trouble) => {
                note(shared, trouble);
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

fn note(shared: &Shared, trouble: Trouble) {
    let (list, text) = match trouble {
        Trouble::Away(why) => (&shared.troubles, why),
        Trouble::Lost(why) => (&shared.errors, why),
    };
    let mut list = list.lock().expect("a list");
    if list.last() != Some(&text) {
        list.push(text);
    }
}

impl Connection {
    /// One block, on disk before the reply.
    fn write(&mut self, name: &str, number: u64) -> Result<(), Trouble> {
        let (offset, data) = (number * BLOCK as u64, block(number));
        match self {
            Self::V4(session) => session.write(offset, &data),
            Self::V3 { address, export, rpc, file } => {
                let mut client = match rpc.take() {
                    Some(client) => client,
                    None => connect(*address)?,
                };
                // The handle, once the file has been made, must stay good.
                let handle = match file {
                    Some(handle) => handle,
                    None => {
                        let root = client.mnt(export).map_err(of_v3)?;
                        let how = CreateHow::Unchecked(Sattr3::default());
                        file.insert(client.create(&root, name, how).map_err(of_v3)?.handle)
                    }
                };
                let stable = StableHow::FILE_SYNC;
                client.write(handle, offset, &data, stable).map_err(of_v3)?;
                *rpc = Some(client);
                Ok(())
            }
        }
    }
}
