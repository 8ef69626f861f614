//! What a share on a pool costs: ten rows of NFS on a directory of a btrfs and on a subvolume of it
//! in turn, as shares of one server, which has made the pool. Needs root, `losetup`, btrfs-progs.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use lab::client;
use lab::workload::Kind;

use crate::Cli;
use crate::load::Case;
use crate::ours;
use crate::pairs::{self, Extent, Outcome, Target, row};
use crate::servers::{self, Server, Version};

/// First port of the server.
const OFFSET: u16 = 29_000;
/// Size of the disk: files of both shares for a row, and those of the last row, of which the space
/// is free only some time after they were removed.
const DISK_BYTES: u64 = 6 << 30;
/// Where the server mounts pools.
const POOLS: &str = "/run/plimsoll-pools";
/// The share with which the server starts; its name is in the URLs that it announces.
const FIRST: &str = "first";
/// The two shares.
const SHARES: [&str; 2] = ["directory", "subvolume"];
/// What a subvolume may cost of a directory, at most.
const MOST: f64 = 1.03;

fn nfs_rows() -> Vec<(Version, Case)> {
    use Kind::{Create, Getattr, RandRead, SeqRead, SyncWrite};
    let of = |version| {
        [
            row(version, "GETATTR", Getattr, 1, 16),
            row(version, "READ 4K", RandRead, 4096, 16),
            row(version, "WRITE 4K stable", SyncWrite, 4096, 16),
            row(version, "CREATE+REMOVE", Create, 1, 16),
            row(version, "read 1M", SeqRead, 1 << 20, 5),
        ]
    };
    Version::ALL.into_iter().flat_map(of).collect()
}

/// Runs and prints the comparison.
///
/// # Errors
/// When the pool cannot be made, the server does not start, or a load fails.
pub fn run(cli: &Cli, extent: &Extent) -> io::Result<()> {
    isolate()?;
    println!("load average before: {}", load_average());
    let all = cli.in_scratch(|base| rows(cli, extent, base))?;
    pairs::print(&all, SHARES);
    println!("load average after: {}", load_average());
    pairs::judge(&all, MOST);
    pairs::write(&all, cli.out.as_deref())
}

fn rows(cli: &Cli, extent: &Extent, base: &Path) -> io::Result<Vec<Outcome>> {
    let disk = Disk::new(&base.join("disk"))?;
    // Declared after the disk: it ends before that goes.
    let server = serve(cli, base, &disk)?;
    let [directory, subvolume] = SHARES.map(|share| target(&server, share));
    let targets = [directory?, subvolume?];
    for target in &targets {
        servers::await_that("the share", || is_served(&target.nfs3))?;
    }
    pairs::nfs(extent, nfs_rows(), &targets)
}

/// A server with a pool on the disk, and the two shares on it.
fn serve(cli: &Cli, base: &Path, disk: &Disk) -> io::Result<Server> {
    let (first, state) = (base.join(FIRST), base.join("state"));
    fs::create_dir_all(&first)?;
    let server = servers::plimsoll(&cli.binary, &first, &state, OFFSET)?;
    let (pool, device, at) = (&disk.pool, &disk.device, disk.at().display().to_string());
    let [directory, subvolume] = SHARES;
    let lines = [
        format!("storage pools create_pool name={pool} profile=stripe disks={device}"),
        format!("shares default create {subvolume} pool={pool} root_mode=777"),
        format!(
            "shares default create {directory} directory={at}/{directory} make_directory=true \
             root_mode=777"
        ),
    ];
    ours::set(&cli.binary, &state.display().to_string(), &lines)?;
    Ok(server)
}

/// A share of the server as a target.
fn target(server: &Server, share: &str) -> io::Result<Target> {
    let (from, to) = (format!("/export/{FIRST}"), format!("/export/{share}"));
    let url = |version| {
        let url = server.url(version);
        let no_path = || io::Error::other(format!("no path {from} in {url}"));
        url.contains(&from).then(|| url.replacen(&from, &to, 1)).ok_or_else(no_path)
    };
    Ok(Target { nfs3: url(Version::V3)?, nfs4: url(Version::V41)?, pid: server.pid })
}

fn is_served(url: &str) -> bool {
    let options = client::Options { bind: None, seed: 1, check_one_in: 0, slots: 1 };
    client::Target::parse(url).is_ok_and(|target| client::open(&target, &options).is_ok())
}

/// Mounts of this process and its children alone: those of another server of this machine stay as
/// they are.
fn isolate() -> io::Result<()> {
    // SAFETY: a bare system call; no other thread runs yet.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        let why = io::Error::last_os_error();
        return Err(io::Error::new(why.kind(), format!("a namespace of mounts: {why}")));
    }
    tool("mount", &["--make-rprivate", "/"])?;
    tool("mount", &["-t", "tmpfs", "tmpfs", "/run"])?;
    Ok(())
}

/// Runs a tool; what it printed.
fn tool(program: &str, arguments: &[&str]) -> io::Result<String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|e| io::Error::new(e.kind(), format!("{program}: {e}")))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(io::Error::other(format!("{program}: {why}")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A loop device, and the name of the pool on it; both go with it.
struct Disk {
    device: String,
    pool: String,
}

impl Disk {
    fn new(image: &Path) -> io::Result<Self> {
        File::create(image)?.set_len(DISK_BYTES)?;
        let device = tool("losetup", &["--find", "--show", &image.display().to_string()])?;
        Ok(Self { device, pool: format!("bench{}", std::process::id()) })
    }

    /// Where the pool is mounted.
    fn at(&self) -> PathBuf {
        Path::new(POOLS).join(&self.pool)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A pool stays mounted when its server ends.
        let _ = tool("umount", &["-l", &self.at().display().to_string()]);
        let _ = tool("btrfs", &["device", "scan", "--forget", &self.device]);
        let _ = tool("losetup", &["--detach", &self.device]);
    }
}

/// Of one, five and fifteen minutes.
fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}
