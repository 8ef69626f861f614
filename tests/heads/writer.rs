//! A client that writes blocks one after the other, each on disk before its reply, and continues
//! after each loss of its server as NFS clients do: it connects again, and reclaims its open file.

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use e2e::nfs4::files::Opened;
use e2e::{nfs3, nfs4, patience};
use wire::nfs3::{CreateHow, Sattr3, StableHow};
use wire::nfs4::Nfsstat4;

use super::cluster::{Cluster, RESOURCE};

/// Bytes of a block.
const BLOCK: usize = 1024;
/// How long an answer is waited for, before the client connects again.
const ANSWER: Duration = Duration::from_secs(1);
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
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

/// A connection with its file.
enum Connection {
    V3(nfs3::Client, nfs3::Handle),
    V4(nfs4::Client, Opened),
}

/// Why there is no connection.
enum Trouble {
    /// The server is away, or asks to try again.
    Away(String),
    /// Something is lost.
    Lost(String),
}

fn block(number: u64) -> Vec<u8> {
    let mut block = number.to_le_bytes().repeat(BLOCK / 8);
    block[0] = 0xa5;
    block
}

impl Writer {
    /// Starts a client of the resource.
    pub fn start(cluster: &Cluster, version: Version) -> Self {
        let name = format!("{version:?}").to_lowercase();
        let shared = Arc::new(Shared::default());
        let (address, export) = (cluster.address(), format!("/export/{RESOURCE}"));
        let (work, file) = (shared.clone(), name.clone());
        let thread = cluster.switch.spawn(move || run(&work, address, &export, &file, version));
        Self { name, shared, thread }
    }

    /// Its name, which is that of its file.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn troubles(&self) -> Vec<String> {
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
        let content = cluster.content(&self.name);
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
    let mut connection: Option<Connection> = None;
    // The file's handle, once it has been opened: it must stay good.
    let mut handle = None;
    let mut last = Instant::now();
    while !shared.ends.load(Ordering::SeqCst) {
        let number = shared.acknowledged.load(Ordering::SeqCst);
        let mut current = match connection.take() {
            Some(current) => current,
            None => match connect(address, export, name, version, &mut handle) {
                Ok(current) => current,
                Err(trouble) => {
                    note(shared, trouble);
                    std::thread::sleep(Duration::from_millis(20));
                    continue;
                }
            },
        };
        match write(&mut current, number) {
            Ok(()) => {
                shared.acknowledged.store(number + 1, Ordering::SeqCst);
                let waited = last.elapsed().as_millis() as u64;
                shared.outage_ms.fetch_max(waited, Ordering::SeqCst);
                last = Instant::now();
                connection = Some(current);
            }
            Err(trouble) => note(shared, trouble),
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

/// One block, on disk before the reply.
fn write(connection: &mut Connection, number: u64) -> Result<(), Trouble> {
    let (offset, data) = (number * BLOCK as u64, block(number));
    match connection {
        Connection::V3(client, file) => {
            client.write(file, offset, &data, StableHow::FILE_SYNC).map(drop).map_err(of_v3)
        }
        Connection::V4(client, file) => client.write(file, offset, &data).map_err(of_v4),
    }
}

fn of_v3(failure: nfs3::Failure) -> Trouble {
    match failure {
        nfs3::Failure::Broken(why) => Trouble::Away(why),
        // JUKEBOX.
        nfs3::Failure::Status(status) if status.0 == 10_008 => Trouble::Away(status.to_string()),
        nfs3::Failure::Status(status) => Trouble::Lost(status.to_string()),
    }
}

fn of_v4(failure: nfs4::Failure) -> Trouble {
    // After these a client connects again, or waits.
    const AGAIN: [Nfsstat4; 5] = [
        Nfsstat4::BADSESSION,
        Nfsstat4::STALE_CLIENTID,
        Nfsstat4::GRACE,
        Nfsstat4::DELAY,
        Nfsstat4::DEADSESSION,
    ];
    match failure {
        nfs4::Failure::Broken(why) => Trouble::Away(why),
        nfs4::Failure::Status(status) if AGAIN.contains(&status) => {
            Trouble::Away(status.to_string())
        }
        nfs4::Failure::Status(status) => Trouble::Lost(status.to_string()),
    }
}

fn connect(
    address: SocketAddr,
    export: &str,
    name: &str,
    version: Version,
    handle: &mut Option<nfs3::Handle>,
) -> Result<Connection, Trouble> {
    let away = |e: std::io::Error| Trouble::Away(e.to_string());
    let stream = TcpStream::connect_timeout(&address, ANSWER).map_err(away)?;
    let mut rpc = nfs3::Client::over(stream, 0, 0).map_err(away)?;
    rpc.stream().set_read_timeout(Some(ANSWER)).map_err(away)?;
    if version == Version::V3 {
        let file = match handle {
            Some(file) => file.clone(),
            None => {
                let root = rpc.mnt(export).map_err(of_v3)?;
                let how = CreateHow::Unchecked(Sattr3::default());
                rpc.create(&root, name, how).map_err(of_v3)?.handle
            }
        };
        *handle = Some(file.clone());
        return Ok(Connection::V3(rpc, file));
    }
    // The same verifier: the client has not restarted.
    let mut client = nfs4::Client::over(rpc, 1, name, 1).map_err(of_v4)?;
    let file = match handle {
        None => {
            client.reclaim_complete().map_err(of_v4)?;
            let root = client.walk(export).map_err(of_v4)?;
            client.open(&root, name, "writer", true).map_err(of_v4)?
        }
        Some(handle) => {
            let file = client.reclaim_open(handle, "writer").map_err(of_v4)?;
            client.reclaim_complete().map_err(of_v4)?;
            file
        }
    };
    *handle = Some(file.handle.clone());
    Ok(Connection::V4(client, file))
}
