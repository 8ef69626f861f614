//! Harness for tests that start the real binary: scratch folders, the server, other programs with
//! a deadline, network namespaces, forgetful disks, and small clients of NFSv3, NFSv4.2, FTP, SFTP,
//! HTTP, SMB and iSCSI.
//!
//! Everything waits for events with a deadline, ends processes by id, and cleans up after itself.
//! A check that cannot run on this machine reports it with [`skip!`].

pub mod api;
pub mod bridge;
pub mod browser;
pub mod cgroup;
pub mod crash;
pub mod deadline;
pub mod disk;
pub mod ftp;
pub mod ganesha;
pub mod http;
pub mod iscsi;
pub mod lab;
pub mod link;
pub mod loops;
pub mod netns;
pub mod nfs3;
pub mod nfs4;
pub mod place;
pub mod pool_disk;
pub mod ports;
pub mod process;
pub mod scene;
pub mod scratch;
pub mod server;
pub mod sftp;
pub mod smb;
pub mod smb_share;
pub mod sshd;
pub mod tcp;
pub mod tls;
pub mod transfer;
pub mod tree;
pub mod uml;

/// How often what takes a while on a machine of its own may take that long on one that is shared:
/// a host that is busy takes half of the processor away and keeps a disk waiting for seconds.
const BUSY: u32 = 4;

/// How long a test waits for what takes up to `seconds` on a machine of its own.
pub const fn patience(seconds: u64) -> std::time::Duration {
    std::time::Duration::from_secs(seconds * BUSY as u64)
}

/// A time after which something stands still, on whatever machine.
const STANDSTILL: std::time::Duration = patience(30);

/// A number that the environment sets, such as the rounds of a part of `make test-long`.
pub fn env_number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Whether this run measures the machine: some parts of `make test-long` set `PLIMSOLL_MEASURES`.
/// The gate, which may run on a busy machine, does not.
pub fn measures() -> bool {
    std::env::var_os("PLIMSOLL_MEASURES").is_some()
}

/// Checks that something took no longer than `limit`, in a run that measures the machine. The gate
/// only checks that nothing stood still.
///
/// # Panics
/// When it took longer.
pub fn took_at_most(what: &str, took: std::time::Duration, limit: std::time::Duration) {
    let limit = if measures() { limit } else { limit.max(STANDSTILL) };
    assert!(took <= limit, "{what}: {took:?}, limit {limit:?}");
}

/// What all but one of a hundred took at most.
///
/// # Panics
/// When there is none.
pub fn p99(mut all: Vec<std::time::Duration>) -> std::time::Duration {
    all.sort_unstable();
    all[all.len() * 99 / 100]
}

/// Says that a check cannot run here and why, and returns from the test. `make test` compares the
/// names with `tests/golden/skips.txt`.
#[macro_export]
macro_rules! skip {
    ($name:expr, $($reason:tt)*) => {{
        println!("SKIP {}: {}", $name, format_args!($($reason)*));
        return;
    }};
}

/// The ordinary user that stands for "not root": `nobody`.
pub const NOBODY: u32 = 65_534;

/// Whether this process is root.
pub fn is_root() -> bool {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Whether `program` is on the path (or in the system folders that an ordinary path lacks).
pub fn has(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    path.split(':').any(|dir| std::path::Path::new(dir).join(program).exists())
}

/// Whether users can sign in to a share here with the ssh of this machine; if not, the check `name`
/// prints the reason.
pub fn ssh_for_users(name: &str) -> bool {
    let lacks = match (is_root(), has("ssh")) {
        (false, _) => "only root can act for a user",
        (true, false) => "ssh is not installed (openssh-client)",
        (true, true) => return true,
    };
    println!("SKIP {name}: {lacks}");
    false
}
