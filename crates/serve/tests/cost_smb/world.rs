//! A service over a folder in memory with what makes requests expensive: large directories, long
//! names, links through them, deep paths, files with many holes.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{FileExt, symlink};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use e2e::api::wait_for;
use serve::smb::{Server, Settings};
use serve::transport::listener::listen;
use vfs::share::Service;

use crate::scene::{Scene, Scratch, Serving};

/// Names of the large directory.
pub const MANY: usize = 20_000;
/// Long names.
pub const LONG: usize = 5_000;
/// Directories one in the other.
pub const DEEP: usize = 60;
/// Bytes of the large file, as much as one request copies.
pub const BIG: u64 = 16 << 20;
/// Symbolic links in one directory.
const LINKS: usize = 600;
/// Pieces of data between holes.
const PIECES: u64 = 4_000;

/// The service, and what is in its share.
pub struct World {
    _tasks: Serving,
    scene: Scene,
    server: Arc<Server>,
    /// Where it listens.
    pub at: SocketAddr,
    folder: Scratch,
    touched: AtomicU64,
}

impl World {
    pub fn new() -> Self {
        let folder = Scratch::in_memory();
        make(&folder.0.join("share"));
        let share = folder.share();
        let scene = Scene::over(Service::Smb, &[("share", share)]);
        let socket = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a port");
        let at = socket.local_addr().expect("an address");
        let server = Server::new(Settings::default(), [7; 16]);
        let tasks = Serving(server.start(&scene.files, &scene.runtimes, vec![socket]));
        Self { _tasks: tasks, scene, server, at, folder, touched: AtomicU64::new(0) }
    }

    /// Changes the large directory otherwise than over SMB: what is known of it is not any more.
    pub fn touch(&self) {
        let n = self.touched.fetch_add(1, Relaxed);
        let path = self.share().join("many").join(format!("t{}", n % 2));
        let _ = fs::remove_file(&path);
        File::create(path).expect("a file");
    }

    /// How often an operation had to wait for a place or for memory.
    pub fn stalls(&self) -> u64 {
        self.scene.files.engine.budgets.stalls.load(Relaxed)
    }

    fn share(&self) -> PathBuf {
        self.folder.0.join("share")
    }

    /// Waits until no session is there and nothing runs.
    pub fn wait_idle(&self) {
        let pool = &self.scene.files.engine.pool;
        wait_for("an idle server", Duration::from_secs(60), || {
            let is_idle = pool.busy() == 0 && pool.queued() == 0;
            (is_idle && self.server.sessions.rows_now().is_empty()).then_some(())
        });
    }
}

fn make(share: &std::path::Path) {
    let dir = |name: &str| {
        let path = share.join(name);
        fs::create_dir_all(&path).expect("a directory");
        path
    };
    let (many, long, links) = (dir("many"), dir("long"), dir("links"));
    (0..MANY).for_each(|n| drop(File::create(many.join(format!("f{n:07}"))).expect("a file")));
    fs::create_dir(many.join("a")).expect("a directory");
    for n in 0..LONG {
        drop(File::create(long.join(format!("{}{n:07}", "a".repeat(240)))).expect("a file"));
    }
    for k in 0..4 {
        let rest = if k < 3 { format!("../links/c{}", k + 1) } else { "a".to_owned() };
        let target = format!("../many/{}{rest}", "A/../".repeat(122));
        symlink(target, links.join(format!("c{k}"))).expect("a link");
    }
    (0..LINKS).for_each(|n| symlink("c0", links.join(format!("l{n:04}"))).expect("a link"));
    symlink("loop", links.join("loop")).expect("a link");
    let mut path = share.join("deep");
    for _ in 0..DEEP {
        path.push("D");
    }
    fs::create_dir_all(path).expect("directories");
    File::create(share.join("big")).expect("a file").set_len(BIG).expect("a length");
    fs::write(share.join("file"), vec![7; 1 << 20]).expect("a file");
    let holes = File::create(share.join("holes")).expect("a file");
    for n in 0..PIECES {
        holes.write_all_at(&[1; 512], n * (64 << 10)).expect("data");
    }
}
