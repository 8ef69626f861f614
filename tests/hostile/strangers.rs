//! Clients that cause key exchanges of SSH and disconnect.

use std::io::Read;
use std::time::Duration;

use e2e::api::wait_for;
use e2e::tcp::{address, connect_from};
use e2e::transfer::{PASSWORD, Scene};

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn connections_without_sign_in_are_refused_for_a_while() {
    let scene = Scene::new("hostile-strangers");
    let mut let_in = 0;
    // As ssh-audit looks for CVE-2002-20001: what is greeted as by an SSH server counts.
    wait_for("the first that is turned away", PATIENCE, || {
        let mut stream = connect_from(address(5), scene.server.at(218)).expect("a connection");
        let mut greeting = Vec::new();
        let mut byte = [0];
        while !greeting.ends_with(b"\n") && matches!(stream.read(&mut byte), Ok(1)) {
            greeting.push(byte[0]);
        }
        let_in += 1;
        assert!(let_in < 10_000, "never turned away");
        (!greeting.starts_with(b"SSH-")).then_some(())
    });
    assert!(let_in > 10, "{let_in}: a few are nobody's business");
    assert!(scene.sftp(address(5), PASSWORD).is_err(), "nothing is computed for it");
    assert!(scene.sftp(address(6), PASSWORD).is_ok(), "others are not held responsible");
    // After a second it may try once more, and a successful sign-in clears its record.
    wait_for("its turn", PATIENCE, || scene.sftp(address(5), PASSWORD).ok());
}
