//! Trees with every kind of file, link and name, over every protocol, on both back ends: what is
//! listed is opened where it can be, renamed and removed by the names that the client was listed;
//! nothing that is no file is ever opened. The trees of a seed are the same for all protocols.
//!
//! `PLIMSOLL_KINDS_TREES` is how many trees there are, `PLIMSOLL_KINDS_SEED` the first seed.

use std::sync::Arc;

use base::random::SeededRandom;
use serve::pool::{Pool, PoolLimits};
use serve::rpc::RpcService;
use vfs::flush::FlushGroup;
use vfs::fs::FileSystem;
use vfs::host::{HostFs, HostOptions};
use vfs::mem::MemFs;
use vfs::share::{Service, ShareTable, Shares, tag};

use crate::scene::{Scene, Scratch};
use crate::{setting, world};
use grow::{Entry, Kind, Tree};

mod files;
mod grow;
mod nfs;
mod smb;

/// Trees in the gate, half of them on each back end.
const TREES: u64 = 2_000;
/// Names of the shares, and of the directory in which a tree grows.
const SHARES: [&str; 2] = ["host", "memory"];
const TOP: &[u8] = b"t";

/// A path as the client knows it, from the share on.
type Path = Vec<Vec<u8>>;

/// What a client finds where it opens something.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Opened {
    /// A file with this data.
    Data(Vec<u8>),
    Directory,
    /// A link with this target, which the client follows itself.
    Link(Vec<u8>),
    /// It is refused, or there is nothing to read.
    Nothing,
}

/// A client of one protocol. Its names are as it was listed them.
trait Client {
    /// Whether the server follows links for it.
    const FOLLOWS: bool;

    /// How a name of the file system is listed.
    fn shown(&self, name: &[u8]) -> Vec<u8> {
        name.to_vec()
    }

    fn list(&mut self, dir: &Path) -> Vec<Vec<u8>>;
    fn open(&mut self, path: &Path) -> Opened;
    fn rename(&mut self, from: &Path, to: &Path) -> bool;
    fn remove(&mut self, path: &Path, is_dir: bool) -> bool;
}

/// Both shares.
struct Ground {
    shares: [Arc<dyn FileSystem>; 2],
    _folder: Scratch,
}

impl Ground {
    fn new() -> Self {
        let folder = Scratch::in_memory();
        let host = HostFs::open(&folder.0.join("share"), HostOptions::new(tag("host"), [7; 32]));
        let host: Arc<dyn FileSystem> = host.expect("a share");
        Self { shares: [host, MemFs::new(tag("memory"), 1 << 30)], _folder: folder }
    }

    fn scene(&self, service: Service) -> Scene {
        let [host, memory] = &self.shares;
        Scene::over(service, &[(SHARES[0], Arc::clone(host)), (SHARES[1], Arc::clone(memory))])
    }

    fn rpc(&self) -> RpcService {
        let mut table = ShareTable::default();
        for (name, fs) in SHARES.iter().zip(&self.shares) {
            table.add(name, Arc::clone(fs), false).expect("a share");
        }
        let flush = Arc::new(FlushGroup::start().expect("threads"));
        let limits = PoolLimits { threads: 4, queue: 100, per_client: 100 };
        world::rpc(Shares::new(table), flush, Pool::start(limits).expect("threads"))
    }
}

/// A tree that a client goes through.
struct Walk<'a, C> {
    client: &'a mut C,
    tree: &'a Tree,
    names: SeededRandom,
    /// Names given so far.
    given: usize,
    seed: u64,
}

impl<C: Client> Walk<'_, C> {
    /// What is listed is what is there; each is opened where that can be done.
    fn look(&mut self, dir: &Path, entries: &[Entry]) {
        self.is_listed(dir, entries);
        for entry in entries {
            let path = self.below(dir, &entry.name);
            let (found, wanted) = (self.client.open(&path), self.wanted(entry, entries));
            assert_eq!(found, wanted, "{self}: {entry:?}");
            if let Kind::Directory(inside) = &entry.kind {
                self.look(&path, inside);
            }
        }
    }

    fn is_listed(&mut self, dir: &Path, entries: &[Entry]) {
        let mut listed = self.client.list(dir);
        let mut wanted: Vec<_> = entries.iter().map(|one| self.client.shown(&one.name)).collect();
        listed.sort();
        wanted.sort();
        assert_eq!(listed, wanted, "{self}: {dir:?}");
    }

    fn below(&self, dir: &Path, name: &[u8]) -> Path {
        [dir.as_slice(), &[self.client.shown(name)]].concat()
    }

    fn wanted(&self, entry: &Entry, around: &[Entry]) -> Opened {
        match &entry.kind {
            Kind::File(data) => Opened::Data(data.clone()),
            Kind::Directory(_) => Opened::Directory,
            Kind::Special(_) => Opened::Nothing,
            Kind::Link(target) if !C::FOLLOWS => Opened::Link(target.clone()),
            Kind::Link(_) => match self.tree.follow(entry, around) {
                Some(Kind::File(data)) => Opened::Data(data.clone()),
                Some(Kind::Directory(_)) => Opened::Directory,
                _ => Opened::Nothing,
            },
        }
    }

    /// Each gets another name, which it is listed by then.
    fn rename(&mut self, dir: &Path, entries: &mut [Entry]) {
        for entry in &mut *entries {
            let from = self.below(dir, &entry.name);
            if let Kind::Directory(inside) = &mut entry.kind {
                self.rename(&from, inside);
            }
            self.given += 1;
            let name = grow::another(&mut self.names, self.given);
            let to = self.below(dir, &name);
            let renamed = self.client.rename(&from, &to);
            assert!(renamed, "{self}: {entry:?} to {name:x?}");
            entry.name = name;
        }
        self.is_listed(dir, entries);
    }

    fn empty(&mut self, dir: &Path, entries: &[Entry]) {
        for entry in entries {
            let path = self.below(dir, &entry.name);
            if let Kind::Directory(inside) = &entry.kind {
                self.empty(&path, inside);
            }
            let is_dir = matches!(entry.kind, Kind::Directory(_));
            assert!(self.client.remove(&path, is_dir), "{self}: {entry:?}");
        }
        self.is_listed(dir, &[]);
    }
}

impl<C> std::fmt::Display for Walk<'_, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PLIMSOLL_KINDS_SEED={} PLIMSOLL_KINDS_TREES=1", self.seed)
    }
}

/// Takes clients of both shares through the trees.
fn every_kind<C: Client>(ground: &Ground, mut clients: [C; 2]) {
    let first = setting("PLIMSOLL_KINDS_SEED", 1);
    for seed in first..first + setting("PLIMSOLL_KINDS_TREES", TREES) {
        let backend = (seed % 2) as usize;
        let (fs, client) = (&*ground.shares[backend], &mut clients[backend]);
        let tree = Tree::new(seed);
        let at = tree.plant(fs, TOP);
        let (names, mut entries) = (SeededRandom::new(!seed), tree.entries.clone());
        let mut walk = Walk { client, tree: &tree, names, given: 0, seed };
        let top: Path = vec![walk.client.shown(TOP)];
        walk.look(&top, &tree.entries);
        walk.rename(&top, &mut entries);
        walk.empty(&top, &entries);
        at.is_empty(fs, TOP);
    }
}

#[test]
fn every_kind_of_file_over_nfs3() {
    let ground = Ground::new();
    let rpc = ground.rpc();
    let clients = SHARES.map(|share| nfs::Nfs3::connect(rpc.local_addr(), share));
    every_kind(&ground, clients);
}

#[test]
fn every_kind_of_file_over_nfs4() {
    let ground = Ground::new();
    let rpc = ground.rpc();
    let clients = SHARES.map(|share| nfs::Nfs4::connect(rpc.local_addr(), share));
    every_kind(&ground, clients);
}

#[test]
fn every_kind_of_file_over_smb() {
    let ground = Ground::new();
    let running = smb::Running::over(ground.scene(Service::Smb));
    every_kind(&ground, SHARES.map(|share| running.client(share)));
}

#[test]
fn every_kind_of_file_over_ftp() {
    let ground = Ground::new();
    let running = crate::ftp::Running::over(ground.scene(Service::Ftp), Default::default());
    every_kind(&ground, SHARES.map(|share| files::Ftp::new(running.client(), share)));
}

#[test]
fn every_kind_of_file_over_sftp() {
    let ground = Ground::new();
    let client = |share| files::Sftp::new(ground.scene(Service::Sftp), share);
    every_kind(&ground, SHARES.map(client));
}

#[test]
fn every_kind_of_file_over_webdav() {
    let ground = Ground::new();
    let settings = serve::http::Settings { webdav: true, ..crate::stand::closed() };
    let stand = crate::stand::Stand::over(ground.scene(Service::Http), settings);
    every_kind(&ground, SHARES.map(|share| files::Dav::new(stand.client(), share)));
}
