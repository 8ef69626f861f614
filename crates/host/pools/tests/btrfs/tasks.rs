//! Tasks of pools on loop devices: how well the time that is left of a replacement is estimated,
//! and the repair of metadata that another program has left without copies.

use std::fs;
use std::time::{Duration, Instant};

use host_pools::request::{Kind, Phase, PoolRequest};
use host_pools::state::State;

use crate::bed::{Bed, forget, run};
use crate::keeper::{ask, create, export, keeper, status, wait_until};
use crate::{MIB, each_leg_alone_is_right, fill, pool_name};

/// Bytes that the kernel copies in a second: the replacement takes some 20 s on any machine.
const COPIED: &str = "20971520";

/// The time that was left by the state of the pool, and when.
struct Sample {
    at: Instant,
    thousandths: u64,
    left: Duration,
}

/// Samples of a replacement until its phase has ended, and that time.
fn samples(pool: &str, keeper: &host_pools::keeper::Keeper) -> (Vec<Sample>, Instant) {
    let mut samples = Vec::new();
    loop {
        let at = Instant::now();
        let now = status(keeper, pool);
        let task = now.task.filter(|task| task.phase == Phase::Replace);
        let Some(task) = task else { return (samples, at) };
        if let Some(left) = task.seconds_left.map(Duration::from_secs) {
            samples.push(Sample { at, thousandths: task.thousandths, left });
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn the_time_left_of_a_replacement_is_within_twice_from_a_fifth_on() {
    let Some(bed) = Bed::new("time_left", 3, 2_048) else { return };
    let (name, disks) = (pool_name("ktime"), bed.disks());
    let keeper = keeper(&bed);
    create(&keeper, &name, &disks[..2]);
    let at = keeper.at(&name);
    fill(&at.join("file"), 1, 400 * MIB);
    run("sync", &[]);
    let limit = format!("/sys/fs/btrfs/{}/devinfo/2/scrub_speed_max", status(&keeper, &name).uuid);
    if let Err(e) = fs::write(&limit, COPIED) {
        println!("SKIP pools_time_left: the kernel cannot limit a replacement: {e}");
        return;
    }
    let request =
        PoolRequest::Replace { pool: name.clone(), member: "2".to_owned(), disk: disks[2].clone() };
    ask(&keeper, request).expect("begun");
    let (samples, end) = samples(&name, &keeper);
    while status(&keeper, &name).task.is_some() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let last = status(&keeper, &name).history.pop().expect("a task");
    assert!(last.complete && last.kind == Kind::Replace, "{last:?}");
    // A fifth of its phase, which is four fifths of the task. The state has whole seconds.
    let later: Vec<&Sample> = samples.iter().filter(|one| one.thousandths >= 160).collect();
    let worst = later.iter().map(|one| {
        let (left, right) = (one.left.as_secs_f64(), (end - one.at).as_secs_f64());
        ((left - 1.0) / right).max((right - 1.0) / left.max(f64::MIN_POSITIVE))
    });
    let worst = worst.fold(0.0, f64::max);
    println!("time left: {} samples from a fifth on, at most {worst:.2} times wrong", later.len());
    assert!(later.len() >= 20, "{} samples", samples.len());
    assert!(worst <= 2.0, "{worst:.2} times wrong");
    export(&keeper, &name);
}

#[test]
fn metadata_without_copies_on_both_disks_is_mounted_and_converted() {
    let Some(bed) = Bed::new("single_metadata", 2, 768) else { return };
    let (name, disks) = (pool_name("ksingle"), bed.disks());
    let keeper = keeper(&bed);
    create(&keeper, &name, &disks);
    let at = keeper.at(&name);
    let at = at.to_str().expect("text");
    let bytes = fill(&keeper.at(&name).join("file"), 1, 40 * MIB);
    run("btrfs", &["balance", "start", "-f", "-dconvert=single", "-mconvert=single", at]);
    // As after a power cut: nothing was exported.
    run("umount", &[at]);
    let aside = bed.aside();
    fs::create_dir_all(&aside).expect("made");
    for disk in &disks {
        let all: Vec<&str> = disks.iter().map(String::as_str).collect();
        forget(&all);
        let alone = std::process::Command::new("mount")
            .args(["-o", "degraded,ro,rescue=nologreplay", disk])
            .arg(&aside)
            .output();
        assert!(!alone.expect("mount").status.success(), "{disk} can be read alone");
    }
    keeper.start().expect("started");
    let now = wait_until(&keeper, &name, State::Healthy);
    assert_eq!(now.without_copies, 0);
    export(&keeper, &name);
    let disks: Vec<&str> = disks.iter().map(String::as_str).collect();
    each_leg_alone_is_right(&aside, &disks, &[("file", &bytes)]);
}
