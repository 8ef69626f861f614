//! A server in a control group with little memory serves within it, and reports what is reduced.

use std::process::Command;

use e2e::cgroup::Group;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server, binary};
use e2e::skip;
use wire::nfs3::{CreateHow, Sattr3, StableHow};

const LIMIT: u64 = 256 << 20;
/// Data that the server reads and writes: as much as the limit, so that its cache must give way.
const PIECES: u64 = 256;
const PIECE: usize = 1 << 20;

#[test]
fn a_server_with_a_limit_of_256_mib_serves_and_reports_what_is_reduced() {
    let group = match Group::with_memory(LIMIT) {
        Ok(group) => group,
        Err(why) => skip!("memory limit", "{why}"),
    };
    let (share, state) = (Scratch::new("memory-share"), Scratch::new("memory-state"));
    let options = Options { group: Some(&group), ..Options::new(share.path(), state.path()) };
    let mut server = Server::start(&options);
    let said = server.stderr_text();
    for part in [
        "memory is 256 MiB, the limit of the control group",
        "the flight recorder has 32 MiB instead of 256 MiB",
        "the request buffers of each service have 16 MiB instead of 256 MiB",
    ] {
        assert!(said.contains(part), "{part:?} is missing in {said}");
    }
    let (mut client, root) = server.mount(0, 0);
    let made = client.create(&root, "large", CreateHow::Guarded(Sattr3::default()));
    let (file, piece) = (made.expect("a file").handle, vec![7; PIECE]);
    for n in 0..PIECES {
        let written = client.write(&file, n * PIECE as u64, &piece, StableHow::UNSTABLE);
        assert_eq!(written.expect("a WRITE").0 as usize, PIECE);
    }
    assert!(server.stop().success(), "{}", server.stderr_text());

    let mut doctor = Command::new(binary());
    doctor.arg("doctor").arg(share.path());
    group.enter(&mut doctor);
    let said = doctor.output().expect("doctor");
    let said = String::from_utf8_lossy(&said.stdout);
    assert!(said.contains("the flight recorder has 32 MiB instead of 256 MiB"), "{said}");
}
