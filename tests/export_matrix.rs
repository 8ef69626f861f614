//! Every kind of export rule against clients of NFSv3, 4.0 and 4.1 at several addresses: which
//! clients it admits and refuses, with which access, as which user, and with which status. One
//! server; its rules are exchanged from case to case.
//!
//! The test's thread has a network of its own, where it can have every address, and its own `/etc`
//! with the names of hosts and groups that the rules use.

#[path = "export_matrix/cases.rs"]
mod cases;
#[path = "export_matrix/probe.rs"]
mod probe;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use e2e::api::{Api, wait_for};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::tls::{Authority, Tunnel, client, own_certificate};
use e2e::{is_root, netns, process, skip};

use probe::{ClientAddress, Files, Target};

/// How long new rules may take to be read.
const READ: Duration = Duration::from_secs(20);

/// Hosts and groups by name.
const HOSTS: &str = "127.0.0.1 localhost\n10.1.0.7 alpha\nfd00:a::7 alpha\n10.1.0.8 beta\n";
const NETGROUPS: &str = "lab (beta,,) more\nmore (10.2.0.1,,)\n";
const RESOLVER: &str = "hosts: files\n";

/// A folder to be seen as `/etc`.
fn etc(scratch: &Scratch) -> std::path::PathBuf {
    let etc = scratch.folder("etc", None);
    for (name, text) in [
        ("hosts", HOSTS),
        ("netgroup", NETGROUPS),
        ("nsswitch.conf", RESOLVER),
        // A name may stand in more than one line, as Debian has it.
        ("host.conf", "multi on\n"),
        ("passwd", "root:x:0:0::/root:/bin/sh\n"),
        ("group", "root:x:0:\n"),
    ] {
        fs::write(etc.join(name), text).expect("written");
    }
    etc
}

/// Files that the clients try to read: one readable by all users, one by root only.
fn files(dir: &Path) {
    fs::set_permissions(dir, fs::Permissions::from_mode(0o777)).expect("open to all");
    for (name, mode) in [("open", 0o644), ("private", 0o600)] {
        fs::write(dir.join(name), name).expect("written");
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(dir.join(name), mode).expect("a mode");
    }
}

/// Writes the rules, and waits until the server shows that they hold.
fn set(server: &Server, api: &Api, file: &Path, rules: &str) {
    fs::write(file, rules).expect("written");
    process::signal(server.pid(), libc::SIGHUP);
    wait_for(rules, READ, || {
        let status = api.status();
        let shown = status["shares"][0]["exports"].as_array().expect("rules").iter();
        let shown: Vec<_> = shown.filter_map(|rule| rule.as_str()).collect();
        (shown == rules.lines().collect::<Vec<_>>()).then_some(())
    });
}

fn all_cases(scratch: &Scratch) {
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    files(&dir);
    let rules = scratch.path().join("exports");
    fs::write(&rules, "*(rw,no_root_squash)").expect("written");
    let authority = Authority::new("clients");
    let roots = scratch.path().join("clients.pem");
    fs::write(&roots, authority.pem()).expect("written");
    let args: [&std::ffi::OsStr; 4] = [
        "--exports".as_ref(),
        rules.as_os_str(),
        "--nfs-tls-client-ca".as_ref(),
        roots.as_os_str(),
    ];
    let mut options = Options::new(&dir, &state);
    options.address = "::";
    options.args = args.map(Into::into).to_vec();
    let mut server = Server::start(&options);
    let api = Api::new(&state);

    let shown = own_certificate(&state);
    let tls = Tunnel::start(server.nfs(), client(&shown, None));
    let mtls = Tunnel::start(server.nfs(), client(&shown, Some(&authority.sign())));
    let target = Target {
        port: server.nfs_port(),
        tunnels: [tls.addr, mtls.addr],
        export: server.export(),
        files: Files::of(&server),
        dir,
    };
    for (rules_now, clients) in cases::ALL {
        set(&server, &api, &rules, rules_now);
        for (from, who, meets) in *clients {
            for version in probe::VERSIONS {
                let what = format!("{rules_now:?}: {from:?} as {who:?} over {version:?}");
                probe::check(&target, ClientAddress::of(from), *who, version, *meets, &what);
            }
        }
    }
    assert!(server.stop().success(), "SIGTERM ends it cleanly");
}

#[test]
fn each_rule_admits_and_refuses_over_every_version() {
    if !is_root() {
        skip!("export-matrix", "needs root");
    }
    let scratch = Scratch::new("export-matrix");
    let setup = format!("{}\nmount --bind {} /etc", cases::ADDRESSES, etc(&scratch).display());
    // The namespaces are this thread's, and end with it.
    let run = std::thread::spawn(move || match netns::isolate(&setup) {
        Ok(()) => all_cases(&scratch),
        Err(why) => skip!("export-matrix", "no namespaces: {why}"),
    });
    if let Err(panic) = run.join() {
        std::panic::resume_unwind(panic);
    }
}
