//! Servers that hold their state directory and do not answer yet, or do not answer any more.

use std::sync::mpsc;

use super::*;
use crate::state::StateDir;
use crate::state::tests::Scratch;

#[test]
fn the_lock_of_a_live_server_is_listed() {
    let scratch = Scratch::new();
    let path = scratch.path().join("state");
    assert!(!is_locked(&path), "there is no directory");
    let state = StateDir::open(&path).unwrap();
    assert!(is_locked(&path));
    drop(state);
    assert!(!is_locked(&path), "the file stays, the lock does not");
}

#[test]
fn a_server_that_starts_is_waited_for() {
    let scratch = Scratch::new();
    let state = StateDir::open(&scratch.path().join("state")).unwrap();
    let socket = state.socket();
    let (noticed, waits) = mpsc::channel();
    let client = {
        let socket = socket.clone();
        std::thread::spawn(move || {
            connect(&socket, || noticed.send(()).expect("the test waits")).map(drop)
        })
    };
    waits.recv().expect("the command reports that it waits");
    let _listener = local::bind(&socket).unwrap();
    client.join().unwrap().expect("a connection");
}

#[test]
fn without_a_server_it_fails_at_once() {
    let scratch = Scratch::new();
    let path = scratch.path().join("state");
    let fails = |why| {
        let failed = connect(&path.join("plimsoll.sock"), || panic!("waits: {why}"));
        assert!(is_absent(failed.expect_err(why).kind()), "{why}");
    };
    fails("there is no state directory");
    let state = StateDir::open(&path).unwrap();
    drop(local::bind(&state.socket()).unwrap());
    drop(state);
    fails("a killed server has left its socket");
}

#[test]
fn a_server_that_ends_is_not_waited_for() {
    let scratch = Scratch::new();
    let state = StateDir::open(&scratch.path().join("state")).unwrap();
    let socket = state.socket();
    let failed = connect(&socket, || drop(state));
    assert_eq!(failed.expect_err("no socket").kind(), ErrorKind::NotFound);
}
