//! Two Linux initiators and persistent reservations of a unit: all six types, taken over, ended,
//! and kept over a kill of the server.

use e2e::{skip, uml};

use super::{PORT, Stage, portal, serve, unavailable};

/// The types (SPC-5 §6.16.3.4): number, whether initiators without a key may read; whether those
/// with a key may write, too.
const TYPES: [(u8, bool, bool); 6] = [
    (1, true, false),
    (3, false, false),
    (5, true, true),
    (6, false, true),
    (7, true, true),
    (8, false, true),
];
/// Keys of the two guests.
const KEYS: [&str; 2] = ["0xaaaa", "0xbbbb"];

/// `sg_persist` with these arguments. It fails on a unit attention, after which a kernel would
/// retry: pending ones are cleared first.
fn sg_persist(stage: &mut Stage, guest: usize, arguments: &str) -> String {
    let told = "until sg_turs /dev/sda >/dev/null 2>&1; do :; done";
    stage.run(guest, &format!("{told}\nsg_persist -n {arguments} /dev/sda"))
}

fn persist(stage: &mut Stage, guest: usize, arguments: &str) {
    sg_persist(stage, guest, &format!("--out {arguments}"));
}

/// Whether a guest may write a block, and read one.
fn may(stage: &mut Stage, guest: usize) -> (bool, bool) {
    let write = "dd if=/dev/zero of=/dev/sda bs=4096 count=1 oflag=direct";
    let read = "dd if=/dev/sda of=/dev/null bs=4096 count=1 iflag=direct";
    let can = |stage: &mut Stage, command: &str| {
        let (status, said) = stage.ends(guest, command);
        // Linux's error for RESERVATION CONFLICT is EBADE.
        assert!(status == 0 || said.contains("Invalid exchange"), "guest {guest}: {said}");
        status == 0
    };
    (can(stage, write), can(stage, read))
}

fn registered(stage: &mut Stage) -> String {
    sg_persist(stage, 1, "--in --read-keys")
}

fn reserved(stage: &mut Stage) -> String {
    sg_persist(stage, 0, "--in --read-reservation")
}

/// One type: its rights for an initiator without a key, and for one with a key.
fn excludes(stage: &mut Stage, (kind, readable, shared): (u8, bool, bool)) {
    let [ours, theirs] = KEYS;
    persist(stage, 0, &format!("--register --param-sark={ours}"));
    persist(stage, 0, &format!("--reserve --param-rk={ours} --prout-type={kind}"));
    assert_eq!(may(stage, 0), (true, true), "type {kind}: the holder");
    assert_eq!(may(stage, 1), (false, readable), "type {kind}: nobody");
    persist(stage, 1, &format!("--register --param-sark={theirs}"));
    assert_eq!(may(stage, 1), (shared, shared || readable), "type {kind}: registered");
    persist(stage, 0, &format!("--release --param-rk={ours} --prout-type={kind}"));
    assert_eq!(may(stage, 1), (true, true), "type {kind}: after it");
    persist(stage, 0, &format!("--clear --param-rk={ours}"));
    let keys = registered(stage);
    assert!(keys.contains("there are NO registered"), "type {kind}: {keys}");
}

/// The second guest takes over from the first, which is registered no more.
fn takes_over(stage: &mut Stage, how: &str) {
    let [ours, theirs] = KEYS;
    persist(stage, 0, &format!("--register --param-sark={ours}"));
    persist(stage, 1, &format!("--register --param-sark={theirs}"));
    persist(stage, 0, &format!("--reserve --param-rk={ours} --prout-type=1"));
    assert_eq!(may(stage, 1), (false, true), "{how}: before");
    persist(stage, 1, &format!("{how} --param-rk={theirs} --param-sark={ours} --prout-type=1"));
    assert_eq!(may(stage, 1), (true, true), "{how}: who took over");
    assert_eq!(may(stage, 0), (false, true), "{how}: who held it");
    let keys = registered(stage);
    assert!(keys.contains("0xbbbb") && !keys.contains("0xaaaa"), "{how}: {keys}");
    persist(stage, 1, &format!("--clear --param-rk={theirs}"));
    assert_eq!(may(stage, 0), (true, true), "{how}: all ended");
}

/// With APTPL the server may be killed.
fn outlives_a_kill(stage: &mut Stage) {
    let [ours, _] = KEYS;
    persist(stage, 0, &format!("--register --param-sark={ours} --param-aptpl"));
    persist(stage, 0, &format!("--reserve --param-rk={ours} --prout-type=1"));
    stage.server.kill();
    stage.server = serve(&stage.namespace, &stage.scratch);
    // Commands wait until the initiators have their sessions again.
    let held = reserved(stage);
    assert!(held.contains("Key=0xaaaa") && held.contains("Write Exclusive"), "{held}");
    assert_eq!(may(stage, 1), (false, true), "somebody else, after a kill");
    assert_eq!(may(stage, 0), (true, true), "the holder, after a kill");
    persist(stage, 0, &format!("--clear --param-rk={ours}"));
    assert_eq!(may(stage, 1), (true, true), "all ended, after a kill");
}

#[test]
fn two_initiators_exclude_each_other() {
    if let Some(why) = unavailable() {
        skip!("kernel-iscsi-reservations", "{why}");
    }
    let _turn = uml::turn();
    let mut stage = match Stage::new(2, 120) {
        Ok(stage) => stage,
        Err(why) => skip!("kernel-iscsi-reservations", "{why}"),
    };
    let at = portal(PORT);
    for guest in 0..2 {
        stage.run(guest, &format!("node {at} -o new\nnode {at} --login\ndisk sda"));
    }
    for kind in TYPES {
        excludes(&mut stage, kind);
    }
    takes_over(&mut stage, "--preempt");
    takes_over(&mut stage, "--preempt-abort");
    outlives_a_kill(&mut stage);
    assert!(stage.server.stop().success());
}
