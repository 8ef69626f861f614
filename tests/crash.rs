//! Nothing that was acknowledged as stable is lost: the server is killed at hundreds of seeded
//! moments on a file system that forgets what was not flushed. Leaving out any one flush must be
//! noticed.
//!
//! `PLIMSOLL_CRASH_SEED` and `PLIMSOLL_CRASH_ROUNDS` repeat or lengthen a run.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use e2e::crash::load::Op;
use e2e::crash::remote::Over;
use e2e::crash::{Trial, Trouble, Victim};
use e2e::scratch::{Scratch, make_folder};
use e2e::server::{Options, Server};
use e2e::{NOBODY, env_number, skip};
use sim::forget::{self, ForgetFs, Mounted};

/// Rounds of each of the two runs over version 3; `make test-long crash` has hundreds.
const ROUNDS: u64 = 15;
/// The same over version 4, which differs in how changes arrive, not in how they are flushed.
const ROUNDS_V4: u64 = 10;
/// Rounds within which the loss of a flush must be noticed.
const ROUNDS_TO_NOTICE: u64 = 40;
/// The uid of the clients of a privileged server.
const USER: u32 = 1000;

/// The server on a forgetful mount: share and state both lie there.
struct Plimsoll {
    /// Above `mounted`, so that it is still there when that is unmounted.
    server: Option<Server>,
    mounted: Mounted,
    _scratch: Scratch,
    unprivileged: bool,
    skip_flush: Option<&'static str>,
    offset: Option<u16>,
}

impl Plimsoll {
    fn new(name: &str, unprivileged: bool) -> Self {
        let scratch = Scratch::new(name);
        let mounted = ForgetFs::mount(&scratch.folder("mount", None)).expect("the forgetful mount");
        let owner = if unprivileged { NOBODY } else { USER };
        make_folder(&mounted.path().join("share"), Some(owner));
        make_folder(&mounted.path().join("state"), unprivileged.then_some(NOBODY));
        for dir in ["share", "state", ""] {
            let dir = File::open(mounted.path().join(dir)).expect("a directory");
            dir.sync_all().expect("making it durable");
        }
        let (server, skip_flush, offset) = (None, None, None);
        Self { server, mounted, _scratch: scratch, unprivileged, skip_flush, offset }
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.mounted.path().join(name)
    }
}

impl Victim for Plimsoll {
    fn start(&mut self) -> Result<SocketAddr, String> {
        let (share, state) = (self.folder("share"), self.folder("state"));
        let mut options = Options::new(&share, &state);
        options.unprivileged = self.unprivileged;
        options.offset = self.offset;
        if let Some(site) = self.skip_flush {
            options.env.push(("PLIMSOLL_TEST_SKIP_FLUSH", site.to_owned()));
        }
        let server = Server::try_start(&options)?;
        self.offset = Some(server.offset);
        let port = server.nfs_port();
        self.server = Some(server);
        Ok((Ipv4Addr::LOCALHOST, port).into())
    }

    fn crash(&mut self) {
        // Killed and reaped, so that none of its calls is still in progress.
        drop(self.server.take());
        self.mounted.crash();
    }

    fn export(&self) -> String {
        "/export/share".to_owned()
    }

    fn user(&self) -> u32 {
        if self.unprivileged { NOBODY } else { USER }
    }
}

fn many_crashes(name: &str, unprivileged: bool, over: Over) {
    let usual = if over == Over::V3 { ROUNDS } else { ROUNDS_V4 };
    let (seed, rounds) =
        (env_number("PLIMSOLL_CRASH_SEED", 1), env_number("PLIMSOLL_CRASH_ROUNDS", usual));
    let mut victim = Plimsoll::new(name, unprivileged);
    let mut trial = Trial::new(&mut victim, over, seed, &[]);
    for round in 0..rounds {
        trial.round(round).unwrap_or_else(|what| panic!("{what}"));
    }
    trial.all_again().unwrap_or_else(|what| panic!("{what}"));
    println!("{name}: {rounds} crashes, {} operations acknowledged, none lost", trial.acknowledged);
}

#[test]
fn nothing_acknowledged_is_lost_with_privilege() {
    if let Err(why) = forget::available() {
        skip!("crash-root", "{why}");
    }
    many_crashes("crash-root", false, Over::V3);
}

#[test]
fn nothing_acknowledged_is_lost_without_privilege() {
    if let Err(why) = forget::available() {
        skip!("crash-user", "{why}");
    }
    many_crashes("crash-user", true, Over::V3);
}

#[test]
fn nothing_acknowledged_over_version_4_is_lost_with_privilege() {
    if let Err(why) = forget::available() {
        skip!("crash-root-v4", "{why}");
    }
    many_crashes("crash-root-v4", false, Over::V4);
}

#[test]
fn nothing_acknowledged_over_version_4_is_lost_without_privilege() {
    if let Err(why) = forget::available() {
        skip!("crash-user-v4", "{why}");
    }
    many_crashes("crash-user-v4", true, Over::V4);
}

/// Every flush, by the name that `PLIMSOLL_TEST_SKIP_FLUSH` takes, and the operations that need it.
const FLUSHES: [(&str, &[Op]); 17] = [
    ("write-file-sync", &[Op::WriteFileSync]),
    ("write-data-sync", &[Op::WriteDataSync]),
    ("commit", &[Op::WriteUnstable, Op::Commit]),
    ("create-file", &[Op::Create]),
    ("create-directory", &[Op::Create]),
    ("mkdir-new", &[Op::Mkdir, Op::Rmdir]),
    ("mkdir-parent", &[Op::Mkdir, Op::Rmdir]),
    ("symlink-directory", &[Op::Symlink]),
    ("mknod-directory", &[Op::Mknod]),
    ("remove-directory", &[Op::Remove]),
    ("rmdir-directory", &[Op::Mkdir, Op::Rmdir]),
    ("rename-from", &[Op::RenameAcross]),
    ("rename-to", &[Op::RenameAcross]),
    ("link-file", &[Op::Link]),
    ("link-directory", &[Op::Link]),
    ("setattr", &[Op::Chmod, Op::Truncate]),
    ("handle-table", &[Op::RenameAcross, Op::Link]),
];

/// Rounds until the missing flush was noticed, and what was lost; `None` if it never was.
fn noticed(over: Over, site: &'static str, focus: &[Op]) -> Option<(u64, String)> {
    let mut victim = Plimsoll::new("crash-flush", false);
    victim.skip_flush = Some(site);
    let mut trial = Trial::new(&mut victim, over, 2, focus);
    for round in 0..ROUNDS_TO_NOTICE {
        match trial.round(round) {
            Ok(()) => {}
            Err(Trouble::Lost(what)) => return Some((round + 1, what)),
            Err(other) => panic!("without {site}: {other}"),
        }
    }
    None
}

#[test]
fn leaving_out_any_one_flush_is_noticed() {
    if let Err(why) = forget::available() {
        skip!("crash-each-flush", "{why}");
    }
    each_flush_is_needed(Over::V3);
}

#[test]
fn leaving_out_any_one_flush_is_noticed_over_version_4() {
    if let Err(why) = forget::available() {
        skip!("crash-each-flush-over-v4", "{why}");
    }
    each_flush_is_needed(Over::V4);
}

fn each_flush_is_needed(over: Over) {
    let mut unnoticed = Vec::new();
    for (site, focus) in FLUSHES {
        match noticed(over, site, focus) {
            Some((rounds, what)) => println!("without {site}: noticed in round {rounds}: {what}"),
            None => unnoticed.push(site),
        }
    }
    assert!(unnoticed.is_empty(), "nobody noticed that these flushes were left out: {unnoticed:?}");
}
