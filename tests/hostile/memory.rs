//! Many clients that ask for much and read nothing, in a control group of 1 GiB: the server stays
//! within what it may hold for them, and gives everything back when they have gone.

use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

use e2e::api::{now, wait_for};
use e2e::cgroup::Group;
use e2e::http::Http;
use e2e::nfs3;
use e2e::nfs4::pipe::{DEPTH, Pipe};
use e2e::nfs4::putfh;
use e2e::process::memory;
use e2e::sftp::Sftp;
use e2e::tcp::address;
use e2e::transfer::{PASSWORD, Scene};
use e2e::{measures, skip};
use wire::nfs4::{ArgOp, ReadArgs4, Stateid4};

use super::idle::{Http2, trusting};

/// Memory of the group.
const LIMIT: u64 = 1 << 30;
/// Clients of each kind at once.
const CLIENTS: usize = 64;
/// Clients of SFTP: each has to sign in.
const SFTP_CLIENTS: usize = 8;
/// Channels of each of them without a subsystem.
const CHANNELS: u32 = 10;
/// Requests of each client.
const REQUESTS: usize = 100;
/// Bytes of the file that they ask for.
const FILE: usize = 4 << 20;
/// Members of the directory that they list.
const MEMBERS: usize = 2000;
/// How often all come and go where memory is measured, and in the gate.
const ROUNDS: [usize; 2] = [5, 2];
/// What may be resident after the last round beyond what was after the first: 32 MiB. It depends on
/// how the allocator's heaps were used, so it is no matter of the gate.
const GROWN_MAX: u64 = 32 << 20;
/// How long the server may take to have given everything back.
const GONE: Duration = Duration::from_secs(120);

/// What is held while it exists.
type OpenConnections = Vec<Box<dyn std::any::Any>>;

fn from(n: usize) -> std::net::IpAddr {
    address(2 + (n % 32) as u8)
}

/// Asks over HTTP/1.1, many requests on each connection.
fn http(scene: &Scene, (method, target): (&str, &str), fields: &str) -> OpenConnections {
    let one = |n| {
        let mut http: Http = scene.http(from(n), PASSWORD).expect("HTTP");
        for _ in 0..REQUESTS {
            // When the server has stopped reading, the rest does not fit.
            if http.begin((method, target.as_bytes()), fields.as_bytes(), 0, b"").is_err() {
                break;
            }
        }
        Box::new(http) as Box<dyn std::any::Any>
    };
    (0..CLIENTS).map(one).collect()
}

fn http2(scene: &Scene) -> OpenConnections {
    let config = trusting(scene);
    let one = |_| {
        let mut conn = Http2::connect(scene, &config).expect("HTTP/2");
        let streams = (0..REQUESTS as u32).map(|n| 2 * n + 1);
        conn.get_all(streams, "/box/large", ("anna", PASSWORD)).expect("requests");
        Box::new(conn) as Box<dyn std::any::Any>
    };
    (0..CLIENTS).map(one).collect()
}

fn nfs(scene: &Scene, round: u64) -> OpenConnections {
    let (mut client, share) = scene.server.mount(0, 0);
    let dir = client.lookup(&share, "box").expect("the directory").handle;
    let file = client.lookup(&dir, "large").expect("the file").handle;
    let count = 1 << 20;
    let read3 = wire::nfs3::ReadArgs { file: wire::nfs3::Fh3(&file), offset: 0, count };
    let program = (wire::nfs3::NFS_PROGRAM, wire::nfs3::NFS_V3);
    let mut held: OpenConnections = Vec::new();
    for n in 0..CLIENTS {
        let mut v3 = nfs3::Client::connect(scene.server.nfs(), 0, 0).expect("NFSv3");
        let read = |_| v3.record(program, wire::nfs3::Proc::READ.0, &read3);
        let records: Vec<u8> = (0..REQUESTS).flat_map(read).collect();
        v3.send(&records).expect("requests");
        let name = format!("greedy {n}");
        let v4 = Pipe::connect_from(from(n), scene.server.nfs(), 1, &name, round);
        let mut v4 = v4.expect("NFSv4");
        let stateid = Stateid4::ANONYMOUS;
        let read = ArgOp::Read(ReadArgs4 { stateid, offset: 0, count });
        v4.send(&vec![vec![putfh(&file), read]; DEPTH]).expect("requests");
        held.push(Box::new((v3, v4)));
    }
    held
}

fn ssh(scene: &Scene) -> OpenConnections {
    let to = scene.server.at(218);
    let one = |n| {
        let ssh = Sftp::fill_channels((from(n), to), ("anna", PASSWORD), CHANNELS);
        Box::new(ssh.expect("SSH")) as Box<dyn std::any::Any>
    };
    (0..SFTP_CLIENTS).map(one).collect()
}

/// All kinds one after the other; each is let go when the server holds no more for it.
fn round(scene: &Scene, number: u64) {
    let kinds: [(&str, &dyn Fn() -> OpenConnections); 6] = [
        ("GET", &|| http(scene, ("GET", "/box/large"), "")),
        ("an archive", &|| http(scene, ("GET", "/box/?archive"), "")),
        ("PROPFIND", &|| http(scene, ("PROPFIND", "/box/"), "depth: 1\r\n")),
        ("HTTP/2", &|| http2(scene)),
        ("NFS", &|| nfs(scene, number)),
        ("SSH", &|| ssh(scene)),
    ];
    for (what, kind) in kinds {
        let began = Instant::now();
        let held = kind();
        let most = at_most(scene);
        println!(
            "{what}: {most} bytes, resident {} MiB, {:.1} s",
            memory(scene.server.pid(), "VmRSS") >> 20,
            began.elapsed().as_secs_f64()
        );
        drop(held);
    }
}

/// The account when it has not grown for a second.
fn at_most(scene: &Scene) -> u64 {
    let (mut before, mut same) = (0, false);
    while !same {
        let second = now() + 1;
        scene.api.wait_for_second(second);
        let used = scene.api.bytes_in_flight();
        same = used <= before;
        before = before.max(used);
    }
    before
}

#[test]
fn clients_that_read_nothing_cannot_take_the_memory() {
    let group = match Group::with_memory(LIMIT) {
        Ok(group) => group,
        Err(why) => skip!("hostile-memory", "{why}"),
    };
    let mut scene = Scene::new("hostile-memory");
    fs::write(scene.dir.join("box/large"), vec![7; FILE]).expect("a file");
    for n in 0..MEMBERS {
        let name = format!("box/{n:04}-{}", "long".repeat(50));
        fs::File::create(scene.dir.join(name)).and_then(|mut f| f.write_all(b"x")).expect("a file");
    }
    group.take(scene.server.pid());
    let idle = |scene: &Scene| scene.api.bytes_in_flight();
    let before = idle(&scene);
    let (mut resident, mut allocated) = (Vec::new(), Vec::new());
    for number in 0..ROUNDS[usize::from(!measures())] {
        round(&scene, number as u64);
        wait_for("the account as before", GONE, || (idle(&scene) == before).then_some(()));
        resident.push(memory(scene.server.pid(), "VmRSS"));
        allocated.push(scene.api.heap());
    }
    let mib = |all: &[u64]| all.iter().map(|bytes| bytes >> 20).collect::<Vec<_>>();
    println!("allocated MiB after each round: {:?}", mib(&allocated));
    let mib = mib(&resident);
    println!("resident MiB after each round: {mib:?}");
    let (first, last) = (resident.first(), resident.last());
    let grown = last.zip(first).map_or(0, |(last, first)| last.saturating_sub(*first));
    assert!(!measures() || grown <= GROWN_MAX, "{mib:?}");
    assert!(scene.server.stop().success(), "{}", scene.server.stderr_text());
}
