//! Tasks of pools on loop devices: how well the time that is left of a replacement is estimated, a
//! replacement in a full pool, a conversion where free space is in pieces, and the repair of
//! metadata that another program has left without copies.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use host_pools::keeper::Keeper;
use host_pools::request::{Ended, Kind, Phase, PoolRequest};
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
fn samples(pool: &str, keeper: &Keeper) -> (Vec<Sample>, Instant) {
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

/// Writes files, each onto the disks, until there is no space.
fn fill_up(at: &Path) -> Vec<PathBuf> {
    let mut written = Vec::new();
    loop {
        let path = at.join(format!("fill{}", written.len()));
        let done = fs::File::create(&path).and_then(|mut file| {
            file.write_all(&vec![written.len() as u8; MIB])?;
            file.sync_all()
        });
        written.push(path);
        match done {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::StorageFull => return written,
            Err(e) => panic!("{}: {e}", written.len()),
        }
    }
}

/// Replacements of a pool that have ended.
fn replacements(keeper: &Keeper, pool: &str) -> Vec<Ended> {
    let ended = status(keeper, pool).history.into_iter();
    ended.filter(|one| one.kind == Kind::Replace).collect()
}

/// Begins a replacement, and waits for its end: its result.
fn replace(keeper: &Keeper, pool: &str, disk: &str) -> Ended {
    let before = replacements(keeper, pool).len();
    let (pool, member, disk) = (pool.to_owned(), "2".to_owned(), disk.to_owned());
    ask(keeper, PoolRequest::Replace { pool: pool.clone(), member, disk }).expect("begun");
    let deadline = Instant::now() + e2e::patience(300);
    loop {
        let mut ended = replacements(keeper, &pool);
        if ended.len() > before {
            return ended.pop().expect("one");
        }
        assert!(Instant::now() < deadline, "{:?}", status(keeper, &pool).task);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_full_pool_is_mounted_without_a_disk_which_is_replaced() {
    let Some(mut bed) = Bed::new("full_replace", 3, 384) else { return };
    let (name, disks) = (pool_name("kfull"), bed.disks());
    let keeper = keeper(&bed);
    create(&keeper, &name, &disks[..2]);
    let at = keeper.at(&name);
    let bytes = fill(&at.join("file"), 1, 16 * MIB);
    let filled = fill_up(&at);
    run("sync", &[]);
    export(&keeper, &name);
    bed.detach(1);
    // Both enter something in the record of the pool.
    ask(&keeper, PoolRequest::Import { pool: name.clone(), degraded: true }).expect("imported");
    let mut last = replace(&keeper, &name, &disks[2]);
    println!("a replacement in a full pool: {}", last.result);
    if !last.complete {
        assert!(last.result.contains("no room"), "{last:?}");
        assert_eq!(status(&keeper, &name).state, State::Degraded);
        for path in filled {
            fs::remove_file(path).expect("removed");
        }
        run("sync", &[]);
        last = replace(&keeper, &name, &disks[2]);
    }
    assert!(last.complete, "{last:?}");
    assert_eq!(status(&keeper, &name).state, State::Healthy);
    export(&keeper, &name);
    each_leg_alone_is_right(&bed.aside(), &[&disks[0], &disks[2]], &[("file", &bytes)]);
}

#[test]
fn data_without_copies_is_converted_where_free_space_is_in_pieces() {
    let Some(bed) = Bed::new("pieces", 2, 512) else { return };
    let (name, disks) = (pool_name("kpieces"), bed.disks());
    let keeper = keeper(&bed);
    create(&keeper, &name, &disks);
    // Files of one extent each, in several chunks, of which the last one loses its copy.
    let mut files = Vec::new();
    for at in 0..4 {
        let file = format!("large{at}");
        files.push((file.clone(), fill(&keeper.at(&name).join(file), at, 40 * MIB)));
    }
    run("sync", &[]);
    export(&keeper, &name);
    // Mounted by another program: no repair begins.
    let aside = bed.aside();
    fs::create_dir_all(&aside).expect("made");
    let at = aside.to_str().expect("text");
    let other = format!("device={}", disks[1]);
    run("mount", &["-o", &other, &disks[0], at]);
    run("btrfs", &["balance", "start", "-f", "-dconvert=single,limit=1", at]);
    let filled = fill_up(&aside);
    run("sync", &[]);
    // Much is free, some MiB at each place, and the extent has a place only in a new chunk.
    for (index, path) in filled.iter().enumerate() {
        match index % 4 {
            0 if index + 1 < filled.len() => {
                let file = path.file_name().and_then(|file| file.to_str()).expect("text");
                files.push((file.to_owned(), vec![index as u8; MIB]));
            }
            _ => fs::remove_file(path).expect("removed"),
        }
    }
    run("umount", &[at]);
    ask(&keeper, PoolRequest::Import { pool: name.clone(), degraded: false }).expect("imported");
    keeper.start().expect("started");
    let now = wait_until(&keeper, &name, State::Healthy);
    assert_eq!(now.without_copies, 0);
    assert!(now.history.iter().all(|one| one.complete), "{:?}", now.history);
    export(&keeper, &name);
    let disks: Vec<&str> = disks.iter().map(String::as_str).collect();
    let files: Vec<_> = files.iter().map(|(file, bytes)| (file.as_str(), &bytes[..])).collect();
    each_leg_alone_is_right(&aside, &disks, &files);
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
