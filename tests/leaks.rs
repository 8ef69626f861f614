//! A client that came and went leaves no memory behind, whatever it spoke: some thousands of short
//! lives of each kind, and what the server has allocated before and after.

use std::io;
use std::time::Instant;

use e2e::api::Api;
use e2e::nfs3;
use e2e::nfs4::pipe::Pipe;
use e2e::smb::caching::{self, RWH};
use e2e::smb::{Ask, Offer, scene as smb_scene};
use e2e::tcp::HERE;
use e2e::transfer::{PASSWORD, Scene};
use wire::smb::create::Disposition;
use wire::smb::status::NtStatus;

/// Lives of each kind that are measured.
const LIVES: u64 = 2048;
/// Lives before that, which fill what is kept up to a limit.
const WARM: u64 = 256;
/// What may stay allocated for each life, in bytes: half of the least leak that must be found.
const LEFT_MAX: u64 = 512;
/// What the five minutes of statistics in memory may grow by in a second, in bytes. All kinds
/// together, their statistics included, grew by 20 to 110 bytes a life.
const HISTORY: f64 = 0.1 * (1 << 20) as f64;

/// One client's life; the number makes its name unique.
type Life = fn(&Scene, u64) -> Result<(), String>;

fn nfs3(scene: &Scene, _number: u64) -> Result<(), String> {
    let client = nfs3::Client::connect(scene.server.nfs(), 0, 0);
    let mut client = client.map_err(|e| e.to_string())?;
    client.mnt(&scene.server.export()).map(|_| ()).map_err(|e| format!("{e:?}"))
}

fn nfs41(scene: &Scene, number: u64) -> Result<(), String> {
    let pipe = Pipe::connect(scene.server.nfs(), 1, &format!("life {number}"), number);
    pipe.and_then(Pipe::leave).map(|_| ()).map_err(|e| format!("{e:?}"))
}

fn ftp(scene: &Scene, _number: u64) -> Result<(), String> {
    let mut ftp = scene.ftp(HERE).map_err(|e| e.to_string())?;
    let bye = ftp.say("QUIT").map_err(|e| e.to_string())?;
    if bye.0 == 221 { Ok(()) } else { Err(format!("{bye:?}")) }
}

fn http(scene: &Scene, _number: u64) -> Result<(), String> {
    let mut http = scene.http(HERE, PASSWORD).map_err(|e| e.to_string())?;
    match http.ask(("GET", b"/box/"), b"", b"") {
        Ok((200, ..)) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

fn administration(scene: &Scene, _number: u64) -> Result<(), String> {
    let (code, body) = scene.api.get("/api/v1/status");
    if code == 200 { Ok(()) } else { Err(body.to_string()) }
}

/// What lives leave behind, after those that fill what is kept up to a limit.
fn leaves_nothing(api: &Api, name: &str, mut live: impl FnMut(u64)) {
    (0..WARM).for_each(&mut live);
    let (began, before) = (Instant::now(), api.heap());
    (WARM..WARM + LIVES).for_each(live);
    let (after, seconds) = (api.heap(), began.elapsed().as_secs_f64());
    let grown = after.saturating_sub(before);
    let most = LIVES * LEFT_MAX + (HISTORY * seconds) as u64;
    println!("{name}: {before} bytes, {after} after {LIVES} lives in {seconds:.1} s");
    assert!(grown <= most, "{name}: {grown} bytes for {LIVES} lives, at most {most}");
}

#[test]
fn a_client_that_has_gone_leaves_no_memory_behind() {
    let scene = Scene::new("leaks");
    let kinds: [(&str, Life); 5] = [
        ("NFSv3", nfs3),
        ("NFSv4.1", nfs41),
        ("FTP", ftp),
        ("HTTP", http),
        ("administration", administration),
    ];
    for (kind, (name, life)) in kinds.into_iter().enumerate() {
        // Unique over all kinds.
        let first = kind as u64 * (WARM + LIVES);
        leaves_nothing(&scene.api, name, |number| {
            let life = life(&scene, first + number);
            life.unwrap_or_else(|why| panic!("{name}, life {number}: {why}"));
        });
    }
}

/// A client of SMB that loses its connection, and continues its durable handle over another one.
fn smb(scene: &smb_scene::Scene, number: u64) -> io::Result<NtStatus> {
    let mut key = [1; 16];
    key[..8].copy_from_slice(&number.to_le_bytes());
    let ask = Ask { disposition: Disposition::OpenIf, ..Ask::open("file") };
    let offer = Offer { client: key, ..Offer::default() };
    let mut first = scene.anna_from(HERE, &offer)?;
    let named = [caching::lease(key, RWH), caching::durable(key)];
    let (file, _) = caching::opened(&first.create_with(&ask, &named)?).map_err(refused)?;
    drop(first);
    let mut again = scene.anna_from(HERE, &offer)?;
    let named = [caching::reconnect(file, key), caching::lease(key, RWH)];
    let (file, _) = caching::opened(&again.create_with(&ask, &named)?).map_err(refused)?;
    again.close(file)
}

fn refused(status: NtStatus) -> io::Error {
    io::Error::other(format!("{status:?}"))
}

#[test]
fn a_client_of_smb_that_has_gone_leaves_no_memory_behind() {
    let scene = smb_scene::Scene::new("leaks-smb", &[]);
    leaves_nothing(&scene.api, "SMB", |number| {
        let closed = smb(&scene, number).unwrap_or_else(|why| panic!("life {number}: {why}"));
        assert_eq!(closed, NtStatus::SUCCESS);
    });
}
