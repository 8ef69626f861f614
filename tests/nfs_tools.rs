//! libnfs' tools (`nfs-ls`, `nfs-cp`, `nfs-cat`) against the real server, run by root and by an
//! ordinary user.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use base::random::{Random, SeededRandom};
use e2e::process::{DEADLINE, run, succeed};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::{NOBODY, has, is_root, skip};

/// Bytes copied: several of the largest transfers, and not a multiple of one.
const SIZE: usize = (20 << 20) + 12_345;

fn missing() -> Option<&'static str> {
    ["nfs-ls", "nfs-cp", "nfs-cat"].into_iter().find(|tool| !has(tool))
}

fn random_file(path: &Path) -> Vec<u8> {
    let mut data = vec![0; SIZE];
    SeededRandom::new(7).fill(&mut data);
    fs::write(path, &data).expect("a local file");
    data
}

fn tools_work(scratch: &Scratch, unprivileged: bool) {
    let owner = unprivileged.then_some(NOBODY);
    let (dir, state) = (scratch.folder("data", owner), scratch.folder("state", owner));
    let mut server = Server::start(&Options { unprivileged, ..Options::new(&dir, &state) });
    let local = scratch.path().join("local");
    let data = random_file(&local);

    succeed(Command::new("nfs-cp").arg(&local).arg(server.libnfs_url("copy")));
    assert!(fs::read(dir.join("copy")).expect("the copy") == data, "what the host sees");
    if unprivileged {
        assert_eq!(fs::metadata(dir.join("copy")).expect("the copy").uid(), NOBODY);
    }

    fs::create_dir(dir.join("below")).expect("a directory");
    fs::write(dir.join("below/note"), "from the host\n").expect("a file");
    let note = succeed(Command::new("nfs-cat").arg(server.libnfs_url("below/note")));
    assert_eq!(note, b"from the host\n");

    let list = succeed(Command::new("nfs-ls").arg("-R").arg(server.libnfs_url("")));
    let list = String::from_utf8_lossy(&list).into_owned();
    for name in ["copy", "below", "note"] {
        assert!(list.contains(name), "{name} is missing in:\n{list}");
    }

    let back = scratch.path().join("back");
    succeed(Command::new("nfs-cp").arg(server.libnfs_url("copy")).arg(&back));
    assert!(fs::read(&back).expect("the copy of the copy") == data, "what comes back");

    let gone = run(Command::new("nfs-cat").arg(server.libnfs_url("no-such-file")), DEADLINE);
    assert!(!gone.status.success(), "a missing file is an error");
    assert!(server.stop().success(), "SIGTERM ends it cleanly");
}

#[test]
fn libnfs_tools_served_by_root() {
    if !is_root() {
        skip!("libnfs-tools-root", "needs root");
    }
    if let Some(tool) = missing() {
        skip!("libnfs-tools-root", "{tool} is not installed (libnfs-utils)");
    }
    tools_work(&Scratch::new("tools-root"), false);
}

#[test]
fn libnfs_tools_served_by_an_ordinary_user() {
    if let Some(tool) = missing() {
        skip!("libnfs-tools-user", "{tool} is not installed (libnfs-utils)");
    }
    tools_work(&Scratch::new("tools-user"), is_root());
}

#[test]
fn a_read_only_server_takes_no_writes() {
    if let Some(tool) = missing() {
        skip!("libnfs-tools-read-only", "{tool} is not installed (libnfs-utils)");
    }
    let scratch = Scratch::new("tools-ro");
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    fs::write(dir.join("note"), "still here\n").expect("a file");
    let mut options = Options::new(&dir, &state);
    options.args = vec!["--read-only".into()];
    let server = Server::start(&options);
    let note = succeed(Command::new("nfs-cat").arg(server.libnfs_url("note")));
    assert_eq!(note, b"still here\n");
    let url = server.libnfs_url("new");
    let copy = run(Command::new("nfs-cp").arg(dir.join("note")).arg(url), DEADLINE);
    assert!(!copy.status.success(), "a write must fail");
    assert!(!dir.join("new").exists());
}
