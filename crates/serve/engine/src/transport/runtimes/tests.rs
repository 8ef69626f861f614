//! What is held runs when it is released, on all cores, and not before.

use std::sync::mpsc::channel;

use super::*;

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn nothing_runs_before_it_is_released() {
    let runtimes = Runtimes::start_held(2).expect("threads");
    let (sender, receiver) = channel();
    for core in 0..2 {
        let sender = sender.clone();
        assert!(runtimes.spawn_on(core, move || async move { sender.send(core).expect("heard") }));
    }
    // Others run meanwhile.
    let others = Runtimes::start(2).expect("threads");
    for core in [0, 1, 0, 1] {
        let (sender, receiver) = channel();
        assert!(others.spawn_on(core, move || async move { sender.send(()).expect("heard") }));
        receiver.recv_timeout(PATIENCE).expect("it runs");
    }
    assert!(receiver.try_recv().is_err());
    runtimes.release();
    let mut cores = [(); 2].map(|()| receiver.recv_timeout(PATIENCE).expect("released"));
    cores.sort_unstable();
    assert_eq!(cores, [0, 1]);
    assert!(runtimes.spawn_on(0, move || async move { sender.send(7).expect("heard") }));
    assert_eq!(receiver.recv_timeout(PATIENCE), Ok(7), "later ones at once");
    assert!(runtimes.shutdown(PATIENCE));
}

#[test]
fn what_is_never_released_ends() {
    let runtimes = Runtimes::start_held(1).expect("threads");
    assert!(runtimes.spawn_on(0, std::future::pending::<()>));
    assert!(runtimes.shutdown(PATIENCE));
}
