//! Export rules of the real server: from a file, read again while a client works; mistakes are
//! reported and change nothing.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use e2e::process;
use e2e::server::{Options, Server, binary};
use wire::nfs3::{CreateHow, Nfsstat3};

use super::{Scene, mode, status};

/// Waits for an event that the server does not announce.
fn until(what: &str, mut happened: impl FnMut() -> bool) {
    let end = Instant::now() + e2e::patience(20);
    while !happened() {
        assert!(Instant::now() < end, "waited in vain until {what}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

#[test]
fn rules_of_a_file_are_read_again_at_sighup() {
    let scene = Scene::new("exports");
    let file = scene.scratch.path().join("exports");
    fs::write(&file, "# nobody else\n127.0.0.1(rw,no_root_squash)\n").expect("written");
    let args = vec!["--exports".into(), file.clone().into()];
    let mut server = Server::start(&Options { args, ..scene.options() });
    let (mut client, root) = server.mount(0, 0);
    let made = client.create(&root, "one", CreateHow::Guarded(mode(0o644))).expect("made");

    fs::write(&file, "127.0.0.0/8(ro,no_root_squash)\n").expect("written");
    process::signal(server.pid(), libc::SIGHUP);
    until("the share is read-only", || {
        let write = client.write(&made.handle, 0, b"data", wire::nfs3::StableHow::UNSTABLE);
        status(write) == Nfsstat3::ROFS
    });
    assert!(client.getattr(&made.handle).is_ok(), "the connection goes on");

    fs::write(&file, "127.0.0.0/8(rw)\n127.0.0.0/99(rw)\n").expect("written");
    process::signal(server.pid(), libc::SIGHUP);
    until("the mistake is told", || {
        let said = server.stderr_text();
        said.contains("line 2") && said.contains("127.0.0.0/99")
    });
    let create = client.create(&root, "two", CreateHow::Guarded(mode(0o644)));
    assert_eq!(status(create), Nfsstat3::ROFS, "the old rules go on");

    fs::write(&file, "127.0.0.2(rw)\n").expect("written");
    process::signal(server.pid(), libc::SIGHUP);
    until("the client is refused", || status(client.getattr(&made.handle)) == Nfsstat3::ACCES);
    let refused = client.mnt(&server.export()).expect_err("not any more");
    assert!(format!("{refused:?}").contains("MNT3ERR_ACCES"), "{refused:?}");
    assert!(server.stop().success());
}

#[test]
fn a_wrong_rule_is_refused_before_anything_is_served() {
    let scene = Scene::new("exports-wrong");
    let run = |args: &[&str]| {
        let mut command = Command::new(binary());
        command.arg("serve").arg(&scene.dir).arg("--state").arg(&scene.state).args(args);
        let out = process::run(&mut command, e2e::patience(20));
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let (code, said) = run(&["--export", "10.0.0.0/24(rw,rot_squash)"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("\"rot_squash\" is not an option; options are ro, rw"), "{said}");
    let (code, said) = run(&["--exports", "/nonexistent/exports"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("/nonexistent/exports") && said.contains("No such file"), "{said}");
    let (code, said) = run(&["--export", "*", "--exports", "/dev/null"]);
    assert_eq!(code, Some(2), "{said}");
}
