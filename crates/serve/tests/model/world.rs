//! All services over the same shares in this process, each with a client that has signed in.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::random::Random;
use probe::hub::{Hub, HubOptions};
use serve::exec::Engine;
use serve::files::{Files, SignIns};
use serve::http::Settings;
use serve::nfs3;
use serve::nfs4::{self, Nfs4, NoState};
use serve::pool::{Pool, PoolLimits};
use serve::rpc::{RpcConfig, RpcService};
use serve::transport::budget::Limits;
use serve::transport::{Budgets, Runtimes};
use vfs::attr::Attr;
use vfs::cred::Cred;
use vfs::flush::FlushGroup;
use vfs::fs::Context;
use vfs::handle::Handle;
use vfs::host::{HostFs, HostOptions};
use vfs::locks::LockTable;
use vfs::share::{Service, ShareTable, Shares, tag};
use wire::ftp::{Request, Verb};

use crate::ftp;
use crate::nfs::stream::rdma::config;
use crate::nfs_calls::Nfs;
use crate::op::{self, By, Op, SharePath, What};
use crate::scene::{Scene, Scratch};
use crate::sftp::Sftp;
use crate::stand::{self, Stand, closed};
use crate::tree::{SHARES, Tree, holds_share};

/// `alice:secret`.
pub const SIGNED_IN: &str = "Authorization: Basic YWxpY2U6c2VjcmV0";
/// Entries that a sequence begins with.
const PLANTED: usize = 14;

/// The services, their clients, and the directory.
pub struct World {
    /// Where the shares are.
    pub top: PathBuf,
    /// The one table of opens and locks.
    pub locks: Arc<LockTable>,
    shares: Arc<Shares>,
    /// HTTP and WebDAV.
    pub web: stand::Client,
    ftp: ftp::Client,
    sftp: Sftp,
    nfs: Nfs,
    _stand: Stand,
    _running: ftp::Running,
    _rpc: RpcService,
    _folder: Scratch,
}

/// What all services share.
struct SharedState {
    shares: Arc<Shares>,
    locks: Arc<LockTable>,
    flush: Arc<FlushGroup>,
    pool: Arc<Pool>,
}

impl SharedState {
    fn scene(&self, service: Service) -> Scene {
        let users: Arc<crate::scene::Users> = Arc::default();
        let transfers: Arc<crate::scene::TransferLog> = Arc::default();
        let files = Files {
            service,
            shares: Arc::clone(&self.shares),
            locks: Arc::clone(&self.locks),
            engine: Engine::new(
                Arc::clone(&self.pool),
                Arc::clone(&self.flush),
                Arc::new(Budgets::new(Limits::default())),
                Hub::new(HubOptions { cores: 2, recorder_bytes: 1 << 20 }),
            ),
            identity: users.clone(),
            sign_ins: Arc::new(SignIns::default()),
            transfers: transfers.clone(),
        };
        let runtimes = Arc::new(Runtimes::start(2).expect("threads"));
        Scene { files: Arc::new(files), transfers, users, runtimes }
    }

    fn rpc(&self) -> RpcService {
        rpc(Arc::clone(&self.shares), Arc::clone(&self.flush), Arc::clone(&self.pool))
    }
}

/// NFSv3 and NFSv4 over these shares.
pub fn rpc(shares: Arc<Shares>, flush: Arc<FlushGroup>, pool: Arc<Pool>) -> RpcService {
    let mut programs = nfs3::programs(Arc::clone(&shares));
    programs.push(nfs4::program(Arc::new(Nfs4 {
        shares,
        verifier: [1; 8],
        lease: Duration::from_secs(90),
        idmap: Arc::default(),
        state: Arc::new(NoState),
    })));
    let socket = serve::rpc::listen(([127, 0, 0, 1], 0).into()).expect("a port");
    RpcService::start(RpcConfig {
        rdma: config(socket.local_addr().expect("an address")),
        socket,
        runtimes: Arc::new(Runtimes::start(2).expect("threads")),
        programs,
        hub: Hub::new(HubOptions { cores: 2, recorder_bytes: 1 << 20 }),
        flush,
        pool,
        budgets: Arc::new(Budgets::new(Limits::default())),
        tls: None,
    })
    .expect("a service")
}

impl World {
    /// The shares, empty.
    pub fn new() -> Self {
        let folder = Scratch::in_memory();
        let top = folder.0.join("share");
        let locks: Arc<LockTable> = Arc::default();
        let mut table = ShareTable::with_locks(Arc::clone(&locks));
        for (name, root) in SHARES {
            let root = root.iter().fold(top.clone(), |at, part| at.join(part));
            fs::create_dir_all(&root).expect("a directory");
            let options = HostOptions::new(tag(name), [7; 32]);
            let fs = HostFs::open(&root, options).expect("a file system");
            table.add(name, fs, false).expect("a share");
        }
        let parts = SharedState {
            shares: Shares::new(table),
            locks,
            flush: Arc::new(FlushGroup::start().expect("threads")),
            pool: Pool::start(PoolLimits { threads: 4, queue: 100, per_client: 100 })
                .expect("threads"),
        };
        let rpc = parts.rpc();
        let stand = Stand::over(parts.scene(Service::Http), Settings { webdav: true, ..closed() });
        let running = ftp::Running::over(parts.scene(Service::Ftp), Default::default());
        let mut ftp = running.client();
        ftp.sign_in("alice", "secret");
        assert_eq!(ftp.code_of("TYPE I"), 200);
        let (web, nfs) = (stand.client(), Nfs::connect(rpc.local_addr()));
        let sftp = Sftp::over(parts.scene(Service::Sftp));
        let SharedState { shares, locks, .. } = parts;
        Self {
            top,
            locks,
            shares,
            web,
            ftp,
            sftp,
            nfs,
            _stand: stand,
            _running: running,
            _rpc: rpc,
            _folder: folder,
        }
    }

    /// The handle and the attributes of what is at a path of the share `all`.
    pub fn attr_of(&self, path: &[&str]) -> (Handle, Attr) {
        let table = self.shares.load();
        let fs = &table.by_name("all").expect("a share").fs;
        let cred = Cred::root();
        let cx = Context { cred: &cred, may_block: true };
        let top = fs.getattr(cx, &fs.root()).expect("a directory");
        path.iter().fold((fs.root(), top), |(dir, _), name| {
            let found = fs.lookup(cx, &dir, name.as_bytes());
            let (entry, _) = found.expect("an entry");
            (entry.handle, entry.attr)
        })
    }

    /// As leases know a file.
    pub fn change_slot(&self, file: &Handle) -> u64 {
        self.shares.load().by_name("all").expect("a share").fs.change_slot(file)
    }

    /// The tree on disk.
    pub fn read(&self) -> Tree {
        Tree::read(&self.top)
    }

    /// Takes everything away but the directories of the shares, and plants a few things.
    pub fn plant(&self, random: &mut impl Random) {
        for (path, _) in self.read().paths(&[]).into_iter().rev() {
            let at = path.iter().fold(self.top.clone(), |at, part| at.join(part));
            if holds_share(&path) {
                continue;
            }
            let meta = fs::symlink_metadata(&at).expect("there");
            let removed = if meta.is_dir() { fs::remove_dir(&at) } else { fs::remove_file(&at) };
            removed.expect("removed");
        }
        let mut dirs: Vec<PathBuf> = SHARES
            .iter()
            .map(|(_, root)| root.iter().fold(self.top.clone(), |at, part| at.join(part)))
            .collect();
        let mut files = Vec::new();
        for _ in 0..PLANTED {
            let dir = dirs[random.below(dirs.len() as u64) as usize].clone();
            let at = dir.join(op::name(random));
            if at.symlink_metadata().is_ok() {
                continue;
            }
            match random.below(6) {
                0 | 1 => {
                    fs::create_dir(&at).expect("a directory");
                    dirs.push(at);
                }
                2 => symlink(op::target(random), &at).expect("a link"),
                3 if !files.is_empty() => {
                    let file: &PathBuf = &files[random.below(files.len() as u64) as usize];
                    fs::hard_link(file, &at).expect("a name");
                }
                _ => {
                    fs::write(&at, op::data(random)).expect("a file");
                    files.push(at);
                }
            }
        }
    }

    /// Has a client do it; whether the reply reports success.
    pub fn perform(&mut self, op: &Op) -> bool {
        match op.by {
            By::Dav => self.dav(&op.what),
            By::Ftp => self.ftp(&op.what),
            By::Sftp => self.sftp.perform(&op.what),
            By::Nfs3 => self.nfs.perform(&op.what).unwrap_or(false),
            By::Nfs4 => self.nfs.perform4(&op.what),
        }
    }

    fn dav(&mut self, what: &What) -> bool {
        let mut ask = |line: &str, at: &SharePath, fields: &[&str], body: &[u8]| {
            let fields = [&[SIGNED_IN][..], fields].concat();
            let reply = self.web.ask(&format!("{line} {}", at.text()), &fields, body);
            // 207 means a part was done: that must not happen to a user with all rights.
            assert_ne!(reply.status, 207, "{what:?}: {}", reply.text());
            (200..300).contains(&reply.status)
        };
        let overwrite = |replaces| if replaces { "Overwrite: T" } else { "Overwrite: F" };
        match what {
            What::Put(at, data) => ask("PUT", at, &[], data.as_bytes()),
            What::Mkdir(at) => ask("MKCOL", at, &[], b""),
            What::Remove(at) => ask("DELETE", at, &[], b""),
            What::Rename { from, to, replaces } => {
                let to = format!("Destination: {}", to.text());
                ask("MOVE", from, &[&to, overwrite(*replaces)], b"")
            }
            What::Copy { from, to, replaces, deep } => {
                let to = format!("Destination: {}", to.text());
                let depth = if *deep { "Depth: infinity" } else { "Depth: 0" };
                ask("COPY", from, &[&to, overwrite(*replaces), depth], b"")
            }
            other => panic!("not over WebDAV: {other:?}"),
        }
    }

    fn ftp(&mut self, what: &What) -> bool {
        let mut say = |line: String| (200..300).contains(&self.ftp.code_of(&line));
        match what {
            What::Put(at, data) => self.ftp_put(&at.text(), data.as_bytes()),
            What::Mkdir(at) => say(format!("MKD {}", at.text())),
            What::Remove(at) => say(format!("DELE {}", at.text())),
            What::Rmdir(at) => say(format!("RMD {}", at.text())),
            What::Rename { from, to, .. } => {
                let begun = self.ftp.code_of(&format!("RNFR {}", from.text())) == 350;
                begun && self.ftp.code_of(&format!("RNTO {}", to.text())) == 250
            }
            other => panic!("not over FTP: {other:?}"),
        }
    }

    fn ftp_put(&mut self, path: &str, data: &[u8]) -> bool {
        use std::io::Write;
        let to = ftp::connect(self.ftp.passive());
        let reply = self.ftp.request(&Request::Text(Verb::Stor, path.as_bytes()));
        if reply.code != 150 {
            return false;
        }
        let mut stream = ftp::Stream::Plain(to);
        stream.write_all(data).expect("taken");
        stream.finish();
        self.ftp.reply().code == 226
    }
}
