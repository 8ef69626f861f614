//! RPC with TLS (RFC 9289) on the real server: NFSv3 and NFSv4 through a session, certificates from
//! files and their renewal, shares that ask for TLS or for a client's certificate.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use e2e::api::Api;
use e2e::nfs3::{self, Failure};
use e2e::nfs4;
use e2e::process;
use e2e::scene::Scene;
use e2e::scratch::Scratch;
use e2e::server::binary;
use e2e::tls::{Authority, Pair, Tunnel, client, own_certificate, secure};
use serde_json::json;
use wire::nfs3::{CreateHow, Nfsstat3, Sattr3, StableHow};
use wire::nfs4::Nfsstat4;

/// Bytes that each version writes and reads.
const BYTES: usize = 9 << 20;

fn write_file(scene: &Scene, name: &str, text: &str) -> String {
    let path = scene.scratch.path().join(name);
    fs::write(&path, text).expect("written");
    path.display().to_string()
}

fn until(what: &str, mut happened: impl FnMut() -> bool) {
    let end = Instant::now() + e2e::patience(20);
    while !happened() {
        assert!(Instant::now() < end, "waited in vain until {what}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

fn pattern() -> Vec<u8> {
    (0..BYTES).map(|n| (n / 3 % 251) as u8).collect()
}

#[test]
fn both_versions_work_over_a_session_with_the_appliances_own_certificate() {
    let scene = Scene::new("tls-own");
    let mut server = scene.start(&["--export", "*(rw,no_root_squash,xprtsec=tls)"]);
    let tunnel = Tunnel::start(server.nfs(), client(&own_certificate(&scene.state), None));
    let data = pattern();

    let mut v3 = nfs3::Client::connect(tunnel.addr, 0, 0).expect("through the tunnel");
    let root = v3.mnt(&server.export()).expect("mounted");
    let how = CreateHow::Guarded(Sattr3 { mode: Some(0o644), ..Sattr3::default() });
    let made = v3.create(&root, "three", how).expect("made").handle;
    for (n, part) in data.chunks(1 << 20).enumerate() {
        v3.write(&made, (n as u64) << 20, part, StableHow::FILE_SYNC).expect("written");
    }
    assert!(v3.read_all(&made).expect("read") == data);
    assert!(fs::read(scene.dir.join("three")).expect("on disk") == data);

    let mut v4 = nfs4::Client::connect(tunnel.addr, (0, 0), "over tls", 1).expect("a session");
    v4.reclaim_complete().expect("nothing to reclaim");
    let root = v4.walk(&server.export()).expect("the share");
    let file = v4.open(&root, "four", "owner", true).expect("opened");
    for (n, part) in data.chunks(1 << 20).enumerate() {
        v4.write(&file, (n as u64) << 20, part).expect("written");
    }
    for (n, part) in data.chunks(1 << 20).enumerate() {
        assert!(v4.read(&file, (n as u64) << 20, 1 << 20).expect("read") == part);
    }
    v4.close(&file).expect("closed");
    assert!(fs::read(scene.dir.join("four")).expect("on disk") == data);

    // Unencrypted calls are refused by the share, with the status of each version.
    let mut plain = nfs3::Client::connect(server.nfs(), 0, 0).expect("a connection");
    assert_eq!(plain.getattr(&made).unwrap_err(), Failure::Status(Nfsstat3::ACCES));
    let refused = plain.mnt(&server.export()).expect_err("not in the clear");
    assert!(format!("{refused:?}").contains("MNT3ERR_ACCES"), "{refused:?}");
    let mut plain =
        nfs4::Client::connect(server.nfs(), (0, 0), "in the clear", 2).expect("a session");
    let refused = plain.walk(&server.export()).unwrap_err();
    assert!(format!("{refused:?}").contains(&format!("{:?}", Nfsstat4::WRONGSEC)), "{refused:?}");
    assert!(server.stop().success());
}

fn mounts(server: SocketAddr, export: &str, roots: &str, shown: Option<&Pair>) -> bool {
    let tunnel = Tunnel::start(server, client(roots, shown));
    let mut v3 = nfs3::Client::connect(tunnel.addr, 0, 0).expect("through the tunnel");
    v3.mnt(export).is_ok()
}

#[test]
fn certificates_come_from_files_and_are_renewed_at_sighup() {
    let scene = Scene::new("tls-files");
    let (first, second, stranger) =
        (Authority::new("first"), Authority::new("second"), Authority::new("stranger"));
    let (certificate, key) = first.sign().write(scene.scratch.path(), "server");
    let ca = write_file(&scene, "ca.pem", &first.pem());
    let (certificate, key) = (certificate.display().to_string(), key.display().to_string());
    let mut server = scene.start(&[
        "--nfs-tls-cert",
        &certificate,
        "--nfs-tls-key",
        &key,
        "--nfs-tls-client-ca",
        &ca,
        "--export",
        "*(rw,xprtsec=mtls)",
    ]);
    let (at, export) = (server.nfs(), server.export());
    assert!(mounts(at, &export, &first.pem(), Some(&first.sign())));
    assert!(!mounts(at, &export, &first.pem(), None), "without a certificate");
    assert!(secure(at, &client(&first.pem(), None)).is_ok(), "but there is a session");
    let unknown = client(&first.pem(), Some(&stranger.sign()));
    assert!(secure(at, &unknown).map_or(true, |stream| stream.is_over()), "refused at once");
    until("the failure is told", || server.stderr_text().contains("TLS connections to NFS failed"));
    assert!(
        server.stderr_text().contains("127.0.0.1: invalid peer certificate"),
        "{}",
        server.stderr_text()
    );
    for _ in 0..5 {
        assert!(secure(at, &unknown).map_or(true, |stream| stream.is_over()));
    }

    // What the options say cannot be set.
    let change = json!({ "set": "/configuration/services/nfs", "property": "certificate",
        "value": "self-signed" });
    let api = Api::new(&scene.state);
    let (code, said) = api.post("/api/v1/changes", &json!({ "changes": [change] }));
    assert!(code == 409 && said.to_string().contains("command line"), "{code} {said}");

    // A mistake changes nothing, and is reported.
    write_file(&scene, "server-key.pem", "no key");
    process::signal(server.pid(), libc::SIGHUP);
    until("the mistake is told", || server.stderr_text().contains("private key cannot be read"));
    assert!(mounts(at, &export, &first.pem(), Some(&first.sign())));

    second.sign().write(scene.scratch.path(), "server");
    write_file(&scene, "ca.pem", &second.pem());
    process::signal(server.pid(), libc::SIGHUP);
    until("the new one is shown", || secure(at, &client(&second.pem(), None)).is_ok());
    assert!(mounts(at, &export, &second.pem(), Some(&second.sign())));
    let old = client(&second.pem(), Some(&first.sign()));
    assert!(secure(at, &old).map_or(true, |stream| stream.is_over()), "no longer believed");
    assert_eq!(
        server.stderr_text().matches("TLS connections to NFS failed").count(),
        1,
        "one a minute"
    );
    assert!(server.stop().success());
}

#[test]
fn what_cannot_work_is_refused_before_anything_is_served() {
    let scene = Scene::new("tls-wrong");
    let run = |args: &[&str]| {
        let mut command = Command::new(binary());
        command.arg("serve").arg(&scene.dir).arg("--state").arg(&scene.state).args(args);
        let out = process::run(&mut command, e2e::patience(20));
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let (code, said) = run(&["--export", "*(rw,xprtsec=mtls)"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--nfs-tls-client-ca"), "{said}");
    let (code, said) = run(&["--nfs-tls-cert", "/dev/null"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--nfs-tls-key"), "{said}");
    let (one, other) = (Authority::new("a").sign(), Authority::new("b").sign());
    let certificate = write_file(&scene, "certificate.pem", &one.certificate);
    let key = write_file(&scene, "key.pem", &other.key);
    let (code, said) = run(&["--nfs-tls-cert", &certificate, "--nfs-tls-key", &key]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("does not match the key"), "{said}");
    let (code, said) = run(&["--nfs-tls-client-ca", "/dev/null"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("the file contains none"), "{said}");
}

/// CPU time of the server so far, in s.
fn cpu(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let behind_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = behind_name.split_whitespace().skip(11).take(2);
    // SAFETY: no memory is passed.
    let hz = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    ticks.filter_map(|t| t.parse::<f64>().ok()).sum::<f64>() / hz
}

/// Prints the figures of the cost in docs/protocols/nfs.md: `cargo test -p e2e --test nfs rpc_tls::
/// -- --ignored --nocapture`, best with `--release`.
#[test]
#[ignore = "measures, and proves nothing"]
fn cost_of_streams() {
    const ROUNDS: u64 = 2048;
    let scratch = Scratch::below(std::path::Path::new("/dev/shm"), "tls-cost");
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let scene = Scene { scratch, dir, state };
    let server = scene.start(&[]);
    let tunnel = Tunnel::start(server.nfs(), client(&own_certificate(&scene.state), None));
    let part: Vec<u8> = pattern().into_iter().take(1 << 20).collect();
    for (name, at) in [("plain", server.nfs()), ("tls", tunnel.addr)] {
        let mut v3 = nfs3::Client::connect(at, 0, 0).expect("a connection");
        let root = v3.mnt(&server.export()).expect("mounted");
        let how = CreateHow::Unchecked(Sattr3::default());
        let file = v3.create(&root, name, how).expect("made").handle;
        let gib = ROUNDS as f64 / 1024.0;
        let start = cpu(server.pid());
        for n in 0..ROUNDS {
            v3.write(&file, (n % 64) << 20, &part, StableHow::UNSTABLE).expect("written");
        }
        let written = cpu(server.pid());
        for n in 0..ROUNDS {
            assert_eq!(v3.read(&file, (n % 64) << 20, 1 << 20).expect("read").0.len(), 1 << 20);
        }
        let read = cpu(server.pid());
        println!(
            "{name}: writes {:.2} s/GiB, reads {:.2} s/GiB",
            (written - start) / gib,
            (read - written) / gib
        );
    }
}
