//! Limits of NFSv4: clients, sessions, opens, locks, delegations, connections for callbacks.

use std::fs::Permissions;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use base::limits::{
    DIALS_PER_ADDRESS_MAX, NFS4_CLIENTS_PER_ADDRESS_MAX, NFS4_SESSIONS_PER_CLIENT_MAX,
};
use e2e::nfs4::pipe::{DEPTH, Pipe, exchange_ids};
use e2e::nfs4::{Client, lookup, putfh};
use wire::nfs4::{
    ArgOp, CbClient4, Clientaddr4, Component4, ExistLockOwner4, LockArgs4, LockRes4, Locker4,
    NfsClientId4, Nfsstat4, Opaque4, OpenArgs4, OpenClaim4, OpenToLockOwner4, Openflag4, ReadArgs4,
    Res4, ResOp, SetclientidArgs4, SetclientidConfirmArgs4, SetclientidRes4, StateOwner4, Stateid4,
    Utf8str, locktype4, share4,
};

use super::nfs::connect;
use super::{Attack, Got};

/// Requests of EXCHANGE_ID that are sent together.
const BATCH: usize = 256;
/// Opens of a compound.
const OPENS: usize = 24;
/// Opens at most, in the gate: the limit is in proportion to a million.
const OPENS_MAX: usize = 12_000;
/// Files with ranges: the part of one client takes 123, a million 230.
const RANGE_FILES: u64 = 128;
/// Files for delegations.
const FILES: usize = 600;

/// Clients that were never heard of.
pub(crate) fn clients(attack: &Attack<'_>) -> Got {
    let mut rpc = connect(attack, 0).expect("a connection");
    let names: Vec<_> =
        (0..NFS4_CLIENTS_PER_ADDRESS_MAX + BATCH).map(|n| attack.name("client", n)).collect();
    let names = &names[..attack.count(BATCH, names.len())];
    for batch in names.chunks(BATCH) {
        exchange_ids(&mut rpc, batch).expect("replies");
    }
    Got::new(format!("{} clients", names.len()), rpc)
}

/// Sessions of a client.
pub(crate) fn sessions(attack: &Attack<'_>) -> Got {
    let mut held = Vec::new();
    for client in 0..attack.count(1, 3) {
        let name = attack.name("sessions", client);
        for n in 0..NFS4_SESSIONS_PER_CLIENT_MAX + 1 {
            let rpc = connect(attack, 0).expect("a connection");
            match Client::over(rpc, 1, &name, 1) {
                Ok(client) => held.push(client),
                Err(refused) => {
                    assert!(n > 1, "{refused:?}");
                    break;
                }
            }
        }
    }
    Got::new(format!("{} sessions", held.len()), held)
}

fn open<'a>(id: u64, owner: &'a str, name: &'a str, access: u32) -> ArgOp<'a> {
    ArgOp::Open(OpenArgs4 {
        seqid: 0,
        share_access: access,
        share_deny: share4::DENY_NONE,
        owner: StateOwner4 { clientid: id, owner: Opaque4(owner.as_bytes()) },
        openhow: Openflag4::Nocreate(()),
        claim: OpenClaim4::Null(Component4(name.as_bytes())),
    })
}

fn pipe(attack: &Attack<'_>, name: &str) -> Pipe {
    Pipe::connect_from(attack.from, attack.world.server.nfs(), 1, name, 1).expect("a session")
}

/// Opens of a file by owners of their own, until that is refused.
pub(crate) fn opens(attack: &Attack<'_>) -> Got {
    let share = &attack.world.handles.share;
    let (mut opened, mut refused, mut held) = (0, Vec::new(), Vec::new());
    for client in 0..attack.count(1, 3) {
        let mut pipe = pipe(attack, &attack.name("opens", client));
        let access = share4::ACCESS_READ | share4::WANT_NO_DELEG;
        'all: for round in 0..OPENS_MAX / (DEPTH * OPENS) {
            let owners: Vec<_> = (0..DEPTH * OPENS).map(|n| format!("{round}-{n}")).collect();
            let id = pipe.id;
            let compounds: Vec<Vec<ArgOp<'_>>> = owners
                .chunks(OPENS)
                .map(|owners| {
                    let opens = owners.iter();
                    opens.flat_map(|one| [putfh(share), open(id, one, "common", access)]).collect()
                })
                .collect();
            for reply in pipe.batch(&compounds).expect("replies") {
                let opens = |result: &&ResOp<'_>| matches!(result, ResOp::Open(Res4::Ok(_)));
                opened += reply.results().expect("results").iter().filter(opens).count();
                if reply.status != Nfsstat4::OK {
                    refused.push(reply.status);
                    break 'all;
                }
            }
        }
        held.push(pipe);
    }
    Got::new(format!("{opened} opens, {refused:?}"), held)
}

/// Ranges of a file, by owners of their own, until that is refused.
pub(crate) fn locks(attack: &Attack<'_>) -> Got {
    let (mut locked, mut held, mut from) = (0, Vec::new(), 0);
    for client in 0..attack.count(1, 3) {
        let mut pipe = pipe(attack, &attack.name("locks", client));
        let handles = &attack.world.handles;
        let access = share4::ACCESS_BOTH | share4::WANT_NO_DELEG;
        let reply = pipe.one(&[putfh(&handles.share), open(pipe.id, "opener", "common", access)]);
        let reply = reply.expect("a reply");
        let Ok(ResOp::Open(Res4::Ok(opened))) = reply.last() else {
            held.push(pipe);
            continue;
        };
        let stateid = opened.stateid;
        'all: loop {
            let named: Vec<_> = (from..from + DEPTH * OPENS)
                .map(|n| ((1_u64 << 30) + 2 * n as u64, n.to_string()))
                .collect();
            from += named.len();
            let id = pipe.id;
            let compounds: Vec<Vec<ArgOp<'_>>> = named
                .chunks(OPENS)
                .map(|chunk| {
                    let mut ops = vec![putfh(&handles.common)];
                    ops.extend(chunk.iter().map(|(offset, owner)| {
                        ArgOp::Lock(LockArgs4 {
                            locktype: locktype4::WRITE,
                            reclaim: false,
                            offset: *offset,
                            length: 1,
                            locker: Locker4::New(OpenToLockOwner4 {
                                open_seqid: 0,
                                open_stateid: stateid,
                                lock_seqid: 0,
                                lock_owner: StateOwner4 {
                                    clientid: id,
                                    owner: Opaque4(owner.as_bytes()),
                                },
                            }),
                        })
                    }));
                    ops
                })
                .collect();
            let mut all_refused = true;
            for reply in pipe.batch(&compounds).expect("replies") {
                let results = reply.results().expect("results");
                let good = results.iter().filter(|one| is_lock(one)).count();
                locked += good;
                all_refused &= good == 0;
            }
            if all_refused {
                break 'all;
            }
        }
        held.push(pipe);
    }
    Got::new(format!("{locked} ranges"), held)
}

/// Ranges of an owner of each of some files: as many as a file has, or this client may have.
pub(crate) fn ranges(attack: &Attack<'_>) -> Got {
    let files = e2e::env_number("PLIMSOLL_LIMITS_RANGE_FILES", RANGE_FILES) as usize;
    let dir = attack.world.share.join("ranges");
    if !dir.exists() {
        std::fs::create_dir(&dir).expect("a directory");
        for n in 0..files {
            let file = dir.join(n.to_string());
            std::fs::write(&file, b"x").expect("a file");
            std::fs::set_permissions(&file, Permissions::from_mode(0o666)).expect("a mode");
        }
    }
    let (mut locked, mut held) = (0, Vec::new());
    for client in 0..attack.count(1, 3) {
        let mut pipe = pipe(attack, &attack.name("ranges", client));
        for file in 0..files {
            let from = (1 << 50) + ((client as u64) << 32);
            let more = ranges_of(&mut pipe, attack, &file.to_string(), from);
            locked += more;
            if more == 0 {
                break;
            }
        }
        held.push(pipe);
    }
    assert!(locked > 4_000, "{locked}");
    Got::new(format!("{locked} ranges of {files} files"), held)
}

/// Ranges of one file, from this offset on, until one is refused.
fn ranges_of(pipe: &mut Pipe, attack: &Attack<'_>, name: &str, from: u64) -> usize {
    let access = share4::ACCESS_BOTH | share4::WANT_NO_DELEG;
    let at = [putfh(&attack.world.handles.share), lookup("ranges")];
    let opens = [&at[..], &[open(pipe.id, "opener", name, access)]].concat();
    let Ok(reply) = pipe.one(&opens) else { return 0 };
    let Ok(ResOp::Open(Res4::Ok(opened))) = reply.last() else { return 0 };
    let lock = |offset, locker| {
        let (locktype, reclaim, length) = (locktype4::WRITE, false, 1);
        ArgOp::Lock(LockArgs4 { locktype, reclaim, offset, length, locker })
    };
    let lock_owner = StateOwner4 { clientid: pipe.id, owner: Opaque4(name.as_bytes()) };
    let open_stateid = opened.stateid;
    let new = OpenToLockOwner4 { open_seqid: 0, open_stateid, lock_seqid: 0, lock_owner };
    let file = [&at[..], &[lookup(name)]].concat();
    let first = [&file[..], &[lock(from, Locker4::New(new))]].concat();
    let Ok(reply) = pipe.one(&first) else { return 0 };
    let Ok(ResOp::Lock(LockRes4::Ok(first))) = reply.last() else { return 0 };
    // The current one (RFC 8881 §8.2.2).
    let lock_stateid = Stateid4 { seqid: 0, ..first.stateid };
    let mut locked = 1;
    loop {
        let before = locked;
        let one = |n| {
            let locker = Locker4::Existing(ExistLockOwner4 { lock_stateid, lock_seqid: 0 });
            lock(from + 2 * n as u64, locker)
        };
        let numbers: Vec<_> = (locked..locked + DEPTH * OPENS).collect();
        let locks = |chunk: &[usize]| chunk.iter().map(|n| one(*n)).collect::<Vec<_>>();
        let compounds: Vec<_> =
            numbers.chunks(OPENS).map(|chunk| [file.clone(), locks(chunk)].concat()).collect();
        for reply in pipe.batch(&compounds).expect("replies") {
            locked += reply.results().expect("results").iter().filter(|one| is_lock(one)).count();
        }
        if locked < before + numbers.len() {
            return locked;
        }
    }
}

fn is_lock(result: &ResOp<'_>) -> bool {
    matches!(result, ResOp::Lock(wire::nfs4::LockRes4::Ok(_)))
}

/// Delegations.
pub(crate) fn delegations(attack: &Attack<'_>) -> Got {
    let dir = attack.world.share.join("delegated");
    if !dir.exists() {
        std::fs::create_dir(&dir).expect("a directory");
        for n in 0..FILES {
            std::fs::write(dir.join(n.to_string()), b"x").expect("a file");
        }
    }
    let (mut given, mut held) = (0, Vec::new());
    for n in 0..attack.users().len() {
        // A connection that is a back channel as well.
        let rpc = connect(attack, n).expect("a connection");
        let name = attack.name("delegations", n);
        let mut client = Client::over_both_ways(rpc, &name).expect("a session");
        let dir = client.walk("/export/box/delegated").expect("the directory");
        for file in 0..FILES {
            let opened = client.open_delegated(&dir, &file.to_string()).expect("OPEN");
            given += usize::from(opened.1.is_some());
        }
        held.push(client);
    }
    Got::new(format!("{given} delegations"), held)
}

/// Clients of 4.0 that do not accept connections for callbacks.
pub(crate) fn callbacks(attack: &Attack<'_>) -> Got {
    let listener = TcpListener::bind((attack.from, 0)).expect("a listener");
    let port = listener.local_addr().expect("an address").port();
    let universal = format!("{}.{}.{}", attack.from, port >> 8, port & 0xff);
    let mut rpc = Client::over(connect(attack, 0).expect("a connection"), 0, "", 0).expect("4.0");
    let clients = attack.count(1, 2 * DIALS_PER_ADDRESS_MAX);
    for n in 0..clients {
        let name = attack.name("callbacks", n);
        let location = Clientaddr4 { netid: Utf8str(b"tcp"), addr: Utf8str(universal.as_bytes()) };
        let reply = rpc.compound(&[ArgOp::Setclientid(SetclientidArgs4 {
            client: NfsClientId4 { verifier: [1; 8], id: Opaque4(name.as_bytes()) },
            callback: CbClient4 { program: 0x4000_0000, location },
            callback_ident: 1,
        })]);
        let reply = reply.expect("a reply");
        let Ok(ResOp::Setclientid(SetclientidRes4::Ok(ok))) = reply.last() else { break };
        let confirm = SetclientidConfirmArgs4 { clientid: ok.clientid, confirm: ok.confirm };
        rpc.compound(&[ArgOp::SetclientidConfirm(confirm)]).expect("a reply");
    }
    Got::new(format!("{clients} clients of 4.0"), (listener, rpc))
}

/// Reads without a reader of the replies.
pub(crate) fn bytes(attack: &Attack<'_>) -> Got {
    let mut held = Vec::new();
    for n in 0..attack.count(8, 32) {
        let mut pipe = pipe(attack, &attack.name("bytes", n));
        let read =
            ArgOp::Read(ReadArgs4 { stateid: Stateid4::ANONYMOUS, offset: 0, count: 1 << 20 });
        pipe.send(&vec![vec![putfh(&attack.world.handles.large), read]; DEPTH]).expect("sent");
        held.push(pipe);
    }
    Got::new(format!("{} reads that are not taken", held.len() * DEPTH), held)
}

/// Compounds on a file system that stands still.
pub(crate) fn pool(attack: &Attack<'_>) -> Got {
    let mut held: Vec<_> =
        (0..attack.count(2, 40)).map(|n| pipe(attack, &attack.name("pool", n))).collect();
    if !attack.world.stand_still(true) {
        return Got::new("no file system of FUSE", ());
    }
    for (n, pipe) in held.iter_mut().enumerate() {
        let names: Vec<_> = (0..DEPTH).map(|slot| format!("v4-{n}-{slot}")).collect();
        let slow = &attack.world.handles.slow;
        let compounds: Vec<_> = names.iter().map(|name| vec![putfh(slow), lookup(name)]).collect();
        pipe.send(&compounds).expect("sent");
    }
    Got::new(format!("{} compounds", held.len() * DEPTH), held)
}
