//! What dsync has copied to a share survives a power cut once dsync has reported success; each
//! flush before that is needed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use e2e::process::{DEADLINE, run};
use e2e::server::binary;
use e2e::tree::{code, output_text};
use e2e::{has, skip};
use sim::forget;

use super::cases::{NEW, USER, big};
use super::world::World;

/// What is carried: some that fits into one message, and some that does not.
const FILES: [(&str, bool); 3] = [("copy/f", false), ("copy/big", true), ("copy/d/f", false)];
/// Flushes without which something of it is lost. That of a rename is not among them: its
/// directory is given its time after that, which is flushed too.
const NEEDED: [&str; 2] = ["setattr", "mkdir-parent"];

/// Writes an SSH_ASKPASS script that prints the password: ssh has no other source for it.
fn asked(scratch: &Path) -> std::path::PathBuf {
    let path = scratch.join("askpass");
    fs::write(&path, format!("#!/bin/sh\necho {}\n", USER.1)).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
    path
}

/// Pushes the files to the share; what of them a power cut right after would take.
fn lost(world: &World) -> Option<String> {
    let from = world.scratch.folder("from", None);
    fs::create_dir(from.join("d")).expect("a folder");
    for (name, large) in FILES {
        let data = if large { big() } else { NEW };
        fs::write(from.join(name.trim_start_matches("copy/")), data).expect("a file");
    }
    let server = world.server.as_ref().expect("a server");
    let port = server.at(218).port();
    let rsh = "ssh -F none -q -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
               -o PubkeyAuthentication=no";
    let mut command = Command::new(binary());
    command.arg("dsync").arg(&from).arg(format!("dsync://{}@127.0.0.1:{port}/share/copy", USER.0));
    command.args(["--rsh", rsh]).env("SSH_ASKPASS_REQUIRE", "force");
    let done = run(command.env("SSH_ASKPASS", asked(world.scratch.path())), DEADLINE);
    assert_eq!(code(&done), 0, "{}", output_text(&done));
    let image = world.mounted.image();
    FILES.iter().find_map(|(name, large)| {
        let Some(left) = image.look(&format!("share/{name}")) else {
            return Some(format!("{name} is not there"));
        };
        let whole = left.data == if *large { big() } else { NEW };
        (!whole).then(|| format!("{name} has {} bytes", left.data.len()))
    })
}

#[test]
fn what_dsync_has_brought_is_there_and_each_flush_is_needed() {
    if let Err(why) = forget::available() {
        skip!("crash-files-dsync", "{why}");
    }
    if !has("ssh") {
        skip!("crash-files-dsync", "ssh is not installed (openssh-client)");
    }
    for site in std::iter::once(None).chain(NEEDED.into_iter().map(Some)) {
        let mut world = World::new(site, false);
        world.start();
        match (site, lost(&world)) {
            (None, Some(what)) => panic!("lost: {what}"),
            (Some(site), None) => panic!("nobody noticed that {site} was left out"),
            (Some(site), Some(what)) => println!("without {site}: {what}"),
            (None, None) => {}
        }
    }
}
