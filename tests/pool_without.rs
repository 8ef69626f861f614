//! Servers of machines that cannot have pools: the programs are missing, the kernel has no btrfs,
//! or there are no rights. Each form has its reason (`tests/golden/pools`, written again with
//! `UPDATE_GOLDEN=1`), and shares on directories are as on any machine.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use e2e::scratch::Scratch;
use e2e::server::{Options, Server, binary};
use e2e::{NOBODY, has, is_root, netns, patience, process, skip};

use crate::pool_mount::Mounted;

/// How long a command may take.
const COMMAND: Duration = patience(30);
/// What each server has to answer: what it shows, and what it refuses.
const LINES: [&str; 5] = [
    "storage pools show",
    "storage disks show",
    "storage pools create_pool name=tank profile=mirror disks=a,b",
    "storage pools create_pool name=tank kind=zfs profile=mirror disks=a,b",
    "storage pools import_pool name=tank",
];
/// `mkfs.btrfs`, `zpool` and `zfs` are not installed.
const NO_PROGRAMS: &str = "mount -t tmpfs tmpfs /run && mkdir /run/all /run/some &&
    mount --bind /usr/sbin /run/all && cp -rs /run/all/. /run/some/ &&
    rm -f /run/some/mkfs.btrfs /run/some/zpool /run/some/zfs &&
    mount --bind /run/some /usr/sbin";
/// The kernel has no btrfs, and no daemon of ZFS runs.
const NO_KERNEL: &str = "mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /sys/module &&
    mkdir -p /run/lock &&
    grep -v btrfs /proc/filesystems >/run/filesystems &&
    mount --bind /run/filesystems /proc/filesystems";

/// The reasons that a server gives, as its command line prints them.
fn reasons(state: &Path) -> String {
    let mut text = String::new();
    for line in LINES {
        let mut command = Command::new(binary());
        command.args(["cli", "--state"]).arg(state).args(["-c", line]);
        let output = process::run(&mut command, COMMAND);
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        // What disks there are differs between machines.
        let is_reason = |one: &&str| one.contains("reason") || !line.ends_with("show");
        let printed: Vec<&str> = printed.lines().filter(is_reason).map(str::trim_end).collect();
        writeln!(text, "> {line}\n{}", printed.join("\n")).expect("written");
    }
    text
}

fn is_golden(name: &str, text: &str) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/pools").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(golden.parent().expect("a folder")).expect("made");
        fs::write(&golden, text).expect("written");
    }
    let there = fs::read_to_string(&golden).unwrap_or_default();
    assert!(there == text, "{name} differs; UPDATE_GOLDEN=1 accepts it:\n{text}");
}

/// Starts a server in the namespace of this thread, compares its reasons, and uses its share.
fn compare(name: &str, unprivileged: bool) {
    let owner = unprivileged.then_some(NOBODY);
    let scratch = Scratch::new(&format!("pools-{name}"));
    let (dir, state) = (scratch.folder("data", owner), scratch.folder("state", owner));
    let server = Server::start(&Options { unprivileged, ..Options::new(&dir, &state) });
    is_golden(&format!("{name}.txt"), &reasons(&state));
    let share = server.export().trim_start_matches("/export/").to_owned();
    let mut mounted = Mounted::new(&server, &share);
    let file = mounted.make("file", b"as before");
    assert_eq!(mounted.read(&file).expect("read"), b"as before");
}

#[test]
fn a_machine_without_the_programs_has_reasons() {
    if !is_root() || !has("unshare") {
        skip!("pools-without", "needs root and unshare");
    }
    if let Err(why) = netns::isolate(NO_PROGRAMS) {
        skip!("pools-without", "{why}");
    }
    compare("no-programs", false);
}

#[test]
fn a_machine_of_which_the_kernel_lacks_btrfs_has_reasons() {
    // Other tools of ZFS print something else.
    if !is_root() || !["unshare", "mkfs.btrfs", "zfs-fuse"].iter().all(|tool| has(tool)) {
        skip!("pools-without", "needs root, unshare, btrfs-progs and zfs-fuse");
    }
    if let Err(why) = netns::isolate(NO_KERNEL) {
        skip!("pools-without", "{why}");
    }
    compare("no-kernel", false);
}

#[test]
fn a_server_without_rights_has_reasons() {
    compare("no-rights", true);
}
