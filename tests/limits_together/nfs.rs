//! Limits of NFS that do not depend on its version, of NFSv3 and of NLM: calls in flight, records,
//! data that is not taken, the duplicate request cache, listings, hosts, locks.

use base::limits::{
    CONNECTION_REQUESTS_MAX, DIR_STREAMS_MAX, NLM_HOSTS_PER_ADDRESS_MAX, NLM_MESSAGES_PER_HOST_MAX,
    REPLAY_ENTRIES_MAX, RPC_RECORD_MAX,
};
use e2e::nfs3::Client;
use e2e::nfs4::pipe::exchange;
use wire::nfs3::{
    DiropArgs, Fh3, Filename3, LookupArgs, MkdirArgs, Proc, ReadArgs, ReaddirArgs, Sattr3,
};
use wire::nlm4::{HostName, LockArgs, NLM_PROGRAM, NLM_V4, Netobj, Nlm4Lock, TestArgs};

use super::attack::fill;
use super::world::{GID, UID};
use super::{Attack, Got};

/// Connections that hold bytes.
const LARGE: usize = 16;
/// Calls that are sent together.
const BATCH: usize = 256;
/// Calls for the duplicate request cache: more than it has entries for.
const REPLAYED: u64 = REPLAY_ENTRIES_MAX as u64 + 1_024;
/// Names of a directory: its listing takes several replies.
const NAMES: usize = 16;
/// Procedures of NLM (`nlm4.x`).
const LOCK: u32 = 2;
const TEST_MSG: u32 = 6;

pub(crate) fn connect(attack: &Attack<'_>, n: usize) -> std::io::Result<Client> {
    let uid = UID + 1 + (n % attack.users().len()) as u32;
    Client::over(attack.connect(attack.world.server.nfs())?, uid, GID)
}

/// Calls on a file system that stands still.
pub(crate) fn pool(attack: &Attack<'_>) -> Got {
    if !attack.world.stand_still(true) {
        return Got::new("no file system of FUSE", ());
    }
    let root = &attack.world.handles.slow;
    let mut held = Vec::new();
    for n in 0..attack.count(1, 70) {
        let mut client = connect(attack, n).expect("a connection");
        let mut bytes = Vec::new();
        for call in 0..CONNECTION_REQUESTS_MAX {
            let name = format!("n{n}-{call}");
            let what = DiropArgs { dir: Fh3(root), name: Filename3(name.as_bytes()) };
            bytes.extend(client.nfs_record(Proc::LOOKUP, &LookupArgs { what }));
        }
        fill(client.stream(), &bytes);
        held.push(client);
    }
    Got::new(format!("{} calls", held.len() * CONNECTION_REQUESTS_MAX), held)
}

/// Records that do not end, and data that is not taken.
pub(crate) fn bytes(attack: &Attack<'_>) -> Got {
    let mut held = Vec::new();
    for n in 0..attack.count(LARGE, 3 * LARGE) {
        let half = connect(attack, n).expect("a connection");
        let head = (RPC_RECORD_MAX as u32 | 1 << 31).to_be_bytes();
        fill(half.stream(), &[&head[..], &vec![0; RPC_RECORD_MAX - 1_000]].concat());
        held.push(half);
        let mut reader = connect(attack, n).expect("a connection");
        let read = ReadArgs { file: Fh3(&attack.world.handles.large), offset: 0, count: 1 << 20 };
        let reads: Vec<_> = (0..64).flat_map(|_| reader.nfs_record(Proc::READ, &read)).collect();
        fill(reader.stream(), &reads);
        held.push(reader);
    }
    Got::new(format!("{} connections", held.len()), held)
}

/// Calls for the duplicate request cache.
pub(crate) fn replies(attack: &Attack<'_>) -> Got {
    let calls = e2e::env_number("PLIMSOLL_LIMITS_REPLIES", REPLAYED) as usize;
    let mut client = connect(attack, 0).expect("a connection");
    let what = DiropArgs { dir: Fh3(&attack.world.handles.share), name: Filename3(b"long") };
    let make = MkdirArgs { where_: what, attributes: Sattr3::default() };
    for _ in 0..calls / BATCH {
        let batch: Vec<_> = (0..BATCH).map(|_| client.nfs_record(Proc::MKDIR, &make)).collect();
        exchange(&mut client, &batch).expect("replies");
    }
    Got::new(format!("{calls} calls"), client)
}

/// Listings that do not end.
pub(crate) fn listings(attack: &Attack<'_>) -> Got {
    let mut client = connect(attack, 0).expect("a connection");
    let (top, count) = (attack.world.share.join("many"), DIR_STREAMS_MAX + 64);
    if !top.exists() {
        for n in 0..count {
            let dir = top.join(n.to_string());
            std::fs::create_dir_all(&dir).expect("a directory");
            for name in 0..NAMES {
                std::fs::File::create(dir.join(name.to_string())).expect("a file");
            }
        }
    }
    let top = client.lookup(&attack.world.handles.share, "many").expect("LOOKUP").handle;
    let names: Vec<_> = (0..count).map(|n| n.to_string()).collect();
    for names in names.chunks(BATCH) {
        let handles: Vec<_> =
            names.iter().map(|n| client.lookup(&top, n).expect("LOOKUP").handle).collect();
        let list = |handle: &Vec<u8>| {
            let args = ReaddirArgs { dir: Fh3(handle), cookie: 0, cookieverf: [0; 8], count: 512 };
            client.nfs_record(Proc::READDIR, &args)
        };
        let batch: Vec<_> = handles.iter().map(list).collect();
        exchange(&mut client, &batch).expect("replies");
    }
    Got::new(format!("{count} listings"), client)
}

fn args<'a>(host: &'a str, file: &'a [u8], offset: u64) -> LockArgs<'a> {
    LockArgs {
        cookie: Netobj(b"cookie"),
        block: true,
        exclusive: true,
        alock: Nlm4Lock {
            caller_name: HostName(host.as_bytes()),
            fh: Netobj(file),
            oh: Netobj(host.as_bytes()),
            svid: 7,
            l_offset: offset,
            l_len: 1,
        },
        reclaim: false,
        state: 1,
    }
}

/// Hosts of NLM with a lock each, and requests that wait for a lock.
pub(crate) fn locks(attack: &Attack<'_>) -> Got {
    let mut client = connect(attack, 0).expect("a connection");
    let file = &attack.world.handles.common;
    let program = (NLM_PROGRAM, NLM_V4);
    let hosts = attack.count(1, NLM_HOSTS_PER_ADDRESS_MAX + 64);
    let mut calls = 0;
    let first = attack.name("first", 0);
    // The first lock is the one that all others wait for.
    let mut records = vec![client.record(program, LOCK, &args(&first, file, 1 << 50))];
    for host in 0..hosts {
        let host = attack.name("host", host);
        let each = if attack.all { 4 } else { 1_100 };
        for n in 0..each {
            let offset = if n % 2 == 0 { 1 << 50 } else { 1 << 49 | (calls << 2) };
            records.push(client.record(program, LOCK, &args(&host, file, offset)));
            calls += 1;
        }
    }
    for batch in records.chunks(BATCH) {
        exchange(&mut client, batch).expect("replies");
    }
    Got::new(format!("{calls} locks of {hosts} hosts"), client)
}

/// Calls that are replied to by calls to the host.
pub(crate) fn messages(attack: &Attack<'_>) -> Got {
    let mut client = connect(attack, 0).expect("a connection");
    let lock = args("messages", &attack.world.handles.common, 5).alock;
    let test = TestArgs { cookie: Netobj(b"cookie"), exclusive: true, alock: lock };
    let count = 2 * NLM_MESSAGES_PER_HOST_MAX;
    let messages = (0..count).flat_map(|_| client.record((NLM_PROGRAM, NLM_V4), TEST_MSG, &test));
    let messages: Vec<u8> = messages.collect();
    fill(client.stream(), &messages);
    Got::new(format!("{count} messages"), client)
}

/// Idle connections of the port mapper and of NFS.
pub(crate) fn connections(attack: &Attack<'_>) -> Got {
    let mapper = attack.idle(attack.world.server.at(111), 600);
    let nfs = attack.idle(attack.world.server.nfs(), 2_000);
    Got::new(format!("{}; port mapper: {}", nfs.amount, mapper.amount), (mapper, nfs))
}
