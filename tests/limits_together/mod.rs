//! Clients of one address take as much as they can get of every limit of docs/security.md at once;
//! another client from another address signs in or mounts, opens, locks, lists, reads and writes
//! with every service meanwhile, each within two seconds.
//!
//! [`table`] has an entry for each limit of that document. Each test takes those of one service:
//! first one client, then all clients of an address.

use std::time::{Duration, Instant};

use e2e::process::raise_descriptors;

use self::other::Step;
use self::table::{LIMITS, Taker};
use self::world::World;

mod admin;
mod attack;
mod constants;
mod ftp;
mod http;
mod iscsi;
mod nfs;
mod nfs4;
mod other;
mod sftp;
mod smb;
mod table;
mod world;

pub(crate) use self::attack::{Attack, Got};

/// Longest time of one step of the other client.
const STEP_MAX: Duration = Duration::from_secs(2);
/// On a machine that is slow or busy: this number of times what the slowest step takes without an
/// attack, in the same run.
const STEP_TIMES: u32 = 4;

/// A service with limits that are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    Smb,
    Nfs3,
    Nfs4,
    Iscsi,
    Http,
    Sftp,
    Ftp,
    Administration,
}

/// Takes of one limit, or some, as much as it can.
pub(crate) type Take = fn(&Attack<'_>) -> Got;

/// What takes the limits of a service, in the order of the table, each once.
fn takers(of: Service) -> Vec<(&'static str, Take)> {
    let mut all: Vec<(&'static str, Take)> = Vec::new();
    for (limit, taker) in LIMITS {
        let Taker::Takes(takes) = taker else { continue };
        for (service, take) in *takes {
            if *service == of && !all.iter().any(|(_, one)| std::ptr::fn_addr_eq(*one, *take)) {
                all.push((limit, *take));
            }
        }
    }
    // What prevents the next ones: opens and bytes that are refused, a file
    // system that stands still, waiting times after wrong passwords, connections that are refused.
    all.sort_by_key(|(limit, _)| match *limit {
        "OPENS_MAX" | "BUFFERED_BYTES_MAX" => 1,
        "POOL_QUEUE_MAX" | "CONNECTION_REQUESTS_MAX" | "LUN_THREADS" | "SIGN_IN_THREADS" => 2,
        "SIGN_IN_FREE_FAILURES" | "SIGN_IN_WAITING_MAX" => 3,
        "CONNECTIONS_MAX" | "ADMIN_CONNECTIONS_CLIENT_MAX" => 4,
        _ => 0,
    });
    all
}

/// What is wrong with the steps of the other client.
fn faults(steps: &[Step], limit: Duration) -> Vec<String> {
    let mut faults = Vec::new();
    for step in steps {
        let why = match &step.outcome {
            Ok(took) if *took <= limit => continue,
            Ok(took) => format!("{took:.1?}"),
            Err(why) => why.clone(),
        };
        faults.push(format!("{}: {}: {why}", step.service, step.what));
    }
    faults
}

fn slowest(steps: &[Step]) -> Duration {
    steps.iter().filter_map(|step| step.outcome.as_ref().ok()).max().copied().unwrap_or_default()
}

/// Takes all limits of a service; the other client must be served.
fn others_are_served(of: Service) {
    raise_descriptors();
    let world = World::new(of);
    let reference = other::run(&world, 0);
    let without: Vec<_> = faults(&reference, Duration::MAX);
    assert!(without.is_empty(), "without an attack: {without:?}");
    let limit = STEP_MAX.max(STEP_TIMES * slowest(&reference));
    let (mut wrong, mut threads) = (Vec::new(), Vec::new());
    for (round, all) in [(1, false), (2, true)] {
        let clients = if all { "all clients of an address" } else { "one client" };
        let attack = Attack::new(&world, all);
        let held: Vec<Got> = takers(of)
            .into_iter()
            .map(|(limit, take)| {
                let began = Instant::now();
                let got = take(&attack);
                println!("{of:?}, {clients}: {limit}: {}, {:.1?}", got.amount, began.elapsed());
                got
            })
            .collect();
        let steps = other::run(&world, round);
        println!("{of:?}, {clients}: slowest {:.1?} of {limit:.1?}", slowest(&steps));
        for fault in faults(&steps, limit) {
            println!("{of:?}, {clients}: {fault}");
            wrong.push(format!("{clients}: {fault}"));
        }
        threads.extend(attack.end());
        world.stand_still(false);
        drop(held);
    }
    let output = world.server.stderr_text();
    // What still waits for an answer ends with the server; then everything is removed.
    e2e::process::signal(world.server.pid(), libc::SIGKILL);
    threads.into_iter().for_each(|thread| drop(thread.join()));
    drop(world);
    assert!(wrong.is_empty(), "{of:?}:\n{}\n{output}", wrong.join("\n"));
}

#[test]
fn of_smb() {
    others_are_served(Service::Smb);
}

#[test]
fn of_nfsv3() {
    others_are_served(Service::Nfs3);
}

#[test]
fn of_nfsv4() {
    others_are_served(Service::Nfs4);
}

#[test]
fn of_iscsi() {
    others_are_served(Service::Iscsi);
}

#[test]
fn of_http() {
    others_are_served(Service::Http);
}

#[test]
fn of_sftp() {
    others_are_served(Service::Sftp);
}

#[test]
fn of_ftp() {
    others_are_served(Service::Ftp);
}

#[test]
fn of_the_administration() {
    others_are_served(Service::Administration);
}
