//! Guessing passwords, by all ways in at once.

use std::time::Duration;

use e2e::api::wait_for;
use e2e::http::field;
use e2e::tcp::address;
use e2e::transfer::{PASSWORD, Scene};

const PATIENCE: Duration = Duration::from_secs(60);

/// The wait that HTTP demands of a client, in seconds; `None` if the password was checked.
fn demanded_wait(scene: &Scene, n: u8) -> Option<u64> {
    let mut http = scene.http(address(n), "wrong").expect("HTTP");
    let (status, head, _) = http.ask(("GET", b"/box/"), b"", b"").expect("HTTP");
    assert!(matches!(status, 401 | 429), "{head}");
    (status == 429).then(|| field(&head, "retry-after").and_then(|s| s.parse().ok()))?
}

#[test]
fn guesses_at_one_client_take_longer_and_longer_by_whatever_protocol() {
    let scene = Scene::new("hostile-guesses");
    let mut waits = Vec::new();
    let mut guess = 0_u32;
    wait_for("a wait of some seconds", PATIENCE, || {
        // A wrong one by each protocol in turn, as soon as it is looked at.
        guess += 1;
        match guess % 3 {
            0 => drop(scene.sftp(address(7), "wrong").map(|_| panic!("let in"))),
            1 => assert_eq!(
                scene
                    .ftp(address(7))
                    .and_then(|mut ftp| ftp.sign_in("anna", "wrong"))
                    .expect("FTP"),
                530
            ),
            _ => {
                if let Some(wait) = demanded_wait(&scene, 7)
                    && waits.last() != Some(&wait)
                {
                    waits.push(wait);
                }
            }
        }
        waits.iter().any(|wait| *wait >= 4).then_some(())
    });
    let first = waits.iter().position(|wait| *wait >= 4).expect("one");
    assert!(waits[..first].iter().any(|wait| *wait < 4), "they grow: {waits:?}");
    // The right one has to wait at that client as well, by every way in, and at no other.
    let right = |n| scene.ftp(address(n)).and_then(|mut ftp| ftp.sign_in("anna", PASSWORD)).ok();
    assert_eq!(right(7), Some(530));
    assert!(scene.sftp(address(7), PASSWORD).is_err());
    assert_eq!(right(8), Some(230));
    assert!(scene.sftp(address(8), PASSWORD).is_ok());
    let mut http = scene.http(address(8), PASSWORD).expect("HTTP");
    assert_eq!(http.ask(("GET", b"/box/"), b"", b"").expect("HTTP").0, 200);
}

#[test]
fn guesses_at_one_name_from_many_clients_do_not_lock_out_earlier_clients() {
    let scene = Scene::new("hostile-names");
    let sign_in = |n, password: &str| {
        scene.ftp(address(n)).and_then(|mut ftp| ftp.sign_in("anna", password)).expect("FTP")
    };
    assert_eq!(sign_in(100, PASSWORD), 230);
    // Each client has a few guesses before it must wait; the name runs out of patience sooner.
    for n in 0..24 {
        assert_eq!(sign_in(110 + n, "wrong"), 530);
    }
    let wait = demanded_wait(&scene, 150);
    assert!(wait.is_some(), "a client that has not guessed yet waits for this name");
    assert_eq!(sign_in(100, PASSWORD), 230, "anna was here before");
    wait_for("the end of the wait", PATIENCE, || (sign_in(151, PASSWORD) == 230).then_some(()));
}
