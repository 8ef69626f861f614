//! The keeper of pools on loop devices: from the creation over a lost and a returned leg to the
//! destruction of the data, by the requests that the helper gets.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use host_pools::keeper::Keeper;
use host_pools::profile::Profile;
use host_pools::request::{Kind, PoolReply, PoolRequest, PoolStatus};
use host_pools::state::State;
use host_pools::zfs::Role;

use crate::bed::{Bed, run};
use crate::{MIB, each_leg_alone_is_right, fill, pool_name};

pub fn keeper(bed: &Bed) -> Arc<Keeper> {
    Keeper::open(&bed.at(), &bed.other()).expect("opened")
}

pub fn ask(keeper: &Keeper, request: PoolRequest) -> Result<PoolReply, String> {
    keeper.answer(request).map_err(|failure| failure.to_string())
}

pub fn status(keeper: &Keeper, name: &str) -> PoolStatus {
    let pools = keeper.status().pools;
    pools.into_iter().find(|pool| pool.name == name).expect("imported")
}

/// Waits until a task has ended and the pool is in this state; progress never goes back.
pub fn wait_until(keeper: &Keeper, name: &str, state: State) -> PoolStatus {
    let deadline = Instant::now() + e2e::patience(300);
    let mut last = 0;
    loop {
        let now = status(keeper, name);
        if now.task.is_none() && now.state == state {
            return now;
        }
        if let Some(task) = &now.task {
            assert!(task.thousandths >= last, "went back from {last}: {task:?}");
            last = task.thousandths;
        }
        assert!(Instant::now() < deadline, "{now:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn create(keeper: &Keeper, name: &str, disks: &[String]) {
    let request = PoolRequest::Create {
        pool: name.to_owned(),
        profile: Profile::Mirror,
        disks: disks.to_vec(),
        zfs: None,
    };
    ask(keeper, request).expect("created");
}

fn add(pool: &str, disk: &str) -> PoolRequest {
    let (pool, disks) = (pool.to_owned(), vec![disk.to_owned()]);
    PoolRequest::Add { pool, disks, role: Role::Data, mirror: false }
}

fn import(keeper: &Keeper, name: &str, degraded: bool) -> Result<PoolReply, String> {
    ask(keeper, PoolRequest::Import { pool: name.to_owned(), degraded })
}

pub fn export(keeper: &Keeper, name: &str) {
    ask(keeper, PoolRequest::Export { pool: name.to_owned() }).expect("exported");
}

/// Has a pool written to without its second leg: what the files `before` and `after` hold.
fn write_without_second_leg(bed: &mut Bed, keeper: &Keeper, name: &str) -> [Vec<u8>; 2] {
    let before = fill(&keeper.at(name).join("before"), 1, 30 * MIB);
    export(keeper, name);
    bed.detach(1);
    import(keeper, name, true).expect("imported");
    [before, fill(&keeper.at(name).join("after"), 2, 50 * MIB)]
}

/// Imports the pool again with that leg: its device.
fn import_with_second_leg(bed: &mut Bed, keeper: &Keeper, name: &str) -> String {
    export(keeper, name);
    let back = bed.attach(1);
    import(keeper, name, false).expect("imported");
    back
}

#[test]
fn a_lost_leg_is_replaced_by_one_request() {
    let Some(mut bed) = Bed::new("keeper_replace", 3, 512) else { return };
    let (name, disks) = (pool_name("kreplace"), bed.disks());
    let keeper = keeper(&bed);
    create(&keeper, &name, &disks[..2]);
    let made = ask(&keeper, PoolRequest::MakeShare { pool: name.clone(), share: "a".to_owned() });
    assert_eq!(made, Ok(PoolReply::Share { made: true }));
    let at = keeper.at(&name).join("a");
    let before = fill(&at.join("before"), 1, 40 * MIB);
    assert_eq!(status(&keeper, &name).state, State::Healthy);
    export(&keeper, &name);
    bed.detach(1);
    let refused = import(&keeper, &name, false).expect_err("refused");
    assert!(refused.contains("1 of 2 disks"), "{refused}");
    import(&keeper, &name, true).expect("imported");
    keeper.start().expect("started");
    // More than fits into the chunks from before, of which each has some room.
    let after = fill(&at.join("after"), 2, 120 * MIB);
    run("sync", &[]);
    let now = status(&keeper, &name);
    assert_eq!(now.state, State::Degraded);
    assert!(now.without_copies > 0, "{now:?}");
    let lost = now.members.iter().find(|one| one.member.missing).expect("a missing one");
    let request = PoolRequest::Replace {
        pool: name.clone(),
        member: lost.identity.devid.to_string(),
        disk: disks[2].clone(),
    };
    ask(&keeper, request.clone()).expect("begun");
    let again = ask(&keeper, request).expect_err("refused");
    // Which of them depends on how far the first one is.
    let reasons = ["in use by the mounted pool", "runs", "opened exclusively"];
    assert!(reasons.iter().any(|reason| again.contains(reason)), "{again}");
    let now = wait_until(&keeper, &name, State::Healthy);
    assert_eq!(now.without_copies, 0);
    let last = now.history.last().expect("a task");
    assert!(last.complete && last.kind == Kind::Replace, "{last:?}");
    let usage = run("btrfs", &["filesystem", "df", at.to_str().expect("text")]);
    let mut single = usage.lines().filter(|line| line.contains("single"));
    assert!(single.all(|line| line.starts_with("GlobalReserve")), "{usage}");
    export(&keeper, &name);
    let files: [(&str, &[u8]); 2] = [("a/before", &before), ("a/after", &after)];
    each_leg_alone_is_right(&bed.aside(), &[&disks[0], &disks[2]], &files);
}

#[test]
fn a_leg_that_returns_is_repaired_without_a_request() {
    let Some(mut bed) = Bed::new("keeper_stale", 2, 512) else { return };
    let (name, disks) = (pool_name("kstale"), bed.disks());
    let keeper = keeper(&bed);
    create(&keeper, &name, &disks);
    let [before, after] = write_without_second_leg(&mut bed, &keeper, &name);
    let back = import_with_second_leg(&mut bed, &keeper, &name);
    assert_eq!(status(&keeper, &name).state, State::Degraded);
    keeper.start().expect("started");
    let now = wait_until(&keeper, &name, State::Healthy);
    let last = now.history.last().expect("a task");
    assert!(last.complete && last.kind == Kind::Repair, "{last:?}");
    assert!(last.result.contains("corrected"), "{last:?}");
    export(&keeper, &name);
    let files: [(&str, &[u8]); 2] = [("before", &before), ("after", &after)];
    each_leg_alone_is_right(&bed.aside(), &[&disks[0], &back], &files);
}

#[test]
fn a_leg_that_returns_is_repaired_also_after_the_other_one_was_replaced() {
    let Some(mut bed) = Bed::new("keeper_stale_replace", 3, 512) else { return };
    let (name, disks) = (pool_name("kstalereplace"), bed.disks());
    let keeper = keeper(&bed);
    create(&keeper, &name, &disks[..2]);
    let [before, after] = write_without_second_leg(&mut bed, &keeper, &name);
    let back = import_with_second_leg(&mut bed, &keeper, &name);
    let replace = PoolRequest::Replace {
        pool: name.clone(),
        member: disks[0].clone(),
        disk: disks[2].clone(),
    };
    ask(&keeper, replace).expect("begun");
    wait_until(&keeper, &name, State::Degraded);
    keeper.start().expect("started");
    let now = wait_until(&keeper, &name, State::Healthy);
    let kinds: Vec<Kind> = now.history.iter().map(|one| one.kind).collect();
    assert_eq!(kinds, [Kind::Replace, Kind::Repair], "{now:?}");
    export(&keeper, &name);
    let files: [(&str, &[u8]); 2] = [("before", &before), ("after", &after)];
    each_leg_alone_is_right(&bed.aside(), &[&disks[2], &back], &files);
}

#[test]
fn a_leg_that_returns_to_a_mounted_pool_takes_its_own_place() {
    let Some(mut bed) = Bed::new("keeper_returned", 3, 512) else { return };
    let (name, disks) = (pool_name("kreturned"), bed.disks());
    let keeper = keeper(&bed);
    create(&keeper, &name, &disks[..2]);
    let [before, after] = write_without_second_leg(&mut bed, &keeper, &name);
    let back = bed.attach(1);
    let replace = |member: &str, disk: &str| PoolRequest::Replace {
        pool: name.clone(),
        member: member.to_owned(),
        disk: disk.to_owned(),
    };
    // Only the missing one, and in its own place.
    let refused = ask(&keeper, replace("1", &back)).expect_err("refused");
    assert!(refused.contains("member of the pool"), "{refused}");
    ask(&keeper, replace("2", &back)).expect("begun");
    wait_until(&keeper, &name, State::Healthy);
    export(&keeper, &name);
    let files: [(&str, &[u8]); 2] = [("before", &before), ("after", &after)];
    each_leg_alone_is_right(&bed.aside(), &[&disks[0], &back], &files);
}

#[test]
fn a_pool_from_its_creation_to_its_end() {
    let Some(bed) = Bed::new("keeper_life", 3, 512) else { return };
    let (name, disks) = (pool_name("klife"), bed.disks());
    let keeper = keeper(&bed);
    create(&keeper, &name, &disks[..2]);
    let text = |text: &str| text.to_owned();
    let again = ask(
        &keeper,
        PoolRequest::Create {
            pool: name.clone(),
            profile: Profile::Stripe,
            disks: disks[2..3].to_vec(),
            zfs: None,
        },
    );
    assert!(again.is_err_and(|why| why.contains("there is a pool")));
    ask(&keeper, PoolRequest::MakeShare { pool: name.clone(), share: text("s") }).expect("made");
    fs::write(keeper.at(&name).join("s/file"), "one").expect("written");
    let snapshot = |as_: &str| PoolRequest::Snapshot {
        pool: name.clone(),
        share: text("s"),
        snapshot: text(as_),
    };
    ask(&keeper, snapshot("first")).expect("made");
    assert!(ask(&keeper, snapshot("first")).is_err(), "twice");
    assert!(ask(&keeper, snapshot("../first")).is_err(), "a path");
    fs::write(keeper.at(&name).join("s/file"), "two").expect("written");
    let now = status(&keeper, &name);
    assert_eq!(now.shares, ["s"]);
    assert_eq!((now.snapshots[0].0.as_str(), now.snapshots[0].1.as_str()), ("s", "first"));
    assert!(now.snapshots[0].2 > 1_600_000_000, "{:?}", now.snapshots);
    let kept = keeper.at(&name).join(".snapshots/s/first/file");
    assert_eq!(fs::read_to_string(&kept).expect("read"), "one");
    let share = PoolRequest::TakeBackShare { pool: name.clone(), share: text("s") };
    assert!(ask(&keeper, share).is_err(), "it is not empty");
    ask(
        &keeper,
        PoolRequest::DestroySnapshot {
            pool: name.clone(),
            share: text("s"),
            snapshot: text("first"),
        },
    )
    .expect("destroyed");
    assert!(!kept.exists());
}

#[test]
fn disks_are_added_and_removed_and_data_is_destroyed_by_name() {
    let Some(bed) = Bed::new("keeper_disks", 3, 512) else { return };
    let (name, disks) = (pool_name("kdisks"), bed.disks());
    let keeper = keeper(&bed);
    create(&keeper, &name, &disks[..2]);
    fs::write(keeper.at(&name).join("file"), "one").expect("written");
    ask(&keeper, add(&name, &disks[2])).expect("added");
    ask(&keeper, PoolRequest::Remove { pool: name.clone(), member: disks[0].clone() })
        .expect("begun");
    let now = wait_until(&keeper, &name, State::Healthy);
    let devices: Vec<&str> = now.members.iter().map(|one| one.member.device.as_str()).collect();
    assert_eq!(devices, [disks[1].as_str(), disks[2].as_str()]);
    let remove = PoolRequest::Remove { pool: name.clone(), member: disks[1].clone() };
    assert!(ask(&keeper, remove).is_err_and(|why| why.contains("needs 2 disks")));
    ask(&keeper, PoolRequest::Scrub { pool: name.clone() }).expect("begun");
    let now = wait_until(&keeper, &name, State::Healthy);
    let last = now.history.last().expect("a task");
    assert!(last.complete && last.kind == Kind::Scrub, "{last:?}");
    // In use, typed wrongly, and destroyed; not offered any more.
    let open = fs::File::open(keeper.at(&name).join("file")).expect("open");
    let destroy = |typed: &str| PoolRequest::DestroyData {
        pool: name.clone(),
        confirmation: typed.to_owned(),
    };
    let busy = ask(&keeper, destroy(&name)).expect_err("refused");
    assert!(busy.contains("in use"), "{busy}");
    drop(open);
    let wrong = ask(&keeper, destroy("other")).expect_err("refused");
    assert!(wrong.contains("must be typed"), "{wrong}");
    assert_eq!(status(&keeper, &name).state, State::Healthy);
    ask(&keeper, destroy(&name)).expect("destroyed");
    let refused = import(&keeper, &name, true).expect_err("refused");
    assert!(refused.contains("no pool"), "{refused}");
}

#[test]
fn what_is_imported_is_mounted_at_the_next_start() {
    let Some(mut bed) = Bed::new("keeper_start", 2, 256) else { return };
    let (name, disks) = (pool_name("kstart"), bed.disks());
    let first = keeper(&bed);
    create(&first, &name, &disks);
    fs::write(first.at(&name).join("file"), "kept").expect("written");
    drop(first);
    run("umount", &[bed.at().join(&name).to_str().expect("text")]);
    bed.detach(1);
    let second = keeper(&bed);
    second.mount_all();
    let now = status(&second, &name);
    assert_eq!(now.state, State::Failed);
    assert!(now.reason.as_ref().is_some_and(|why| why.contains("1 of 2 disks")), "{now:?}");
    // Only what the administrator has permitted is mounted without a disk.
    let request = PoolRequest::Configure {
        pool: name.clone(),
        mount_degraded: Some(true),
        scrub_every_days: None,
    };
    ask(&second, request).expect("set");
    second.mount_all();
    assert_eq!(status(&second, &name).state, State::Degraded);
    assert_eq!(fs::read_to_string(second.at(&name).join("file")).expect("read"), "kept");
    assert!(second.status().pools[0].members.iter().any(|one| one.member.missing));
    assert!(matches!(
        ask(&second, add(&name, "loop0")),
        Err(why) if why.contains("replace it instead")
    ));
    export(&second, &name);
}

#[test]
fn a_pool_of_an_interrupted_creation_is_imported_and_one_with_files_is_not() {
    let Some(bed) = Bed::new("keeper_interrupted", 2, 192) else { return };
    let (name, disks) = (pool_name("kinterrupted"), bed.disks());
    let keeper = keeper(&bed);
    let label = format!("plimsoll:{name}");
    let make = ["-q", "-f", "-d", "raid1", "-m", "raid1", "-L", &label, &disks[0], &disks[1]];
    run("mkfs.btrfs", &make);
    import(&keeper, &name, false).expect("imported");
    let now = status(&keeper, &name);
    assert_eq!((now.state, now.profile), (State::Healthy, Some(Profile::Mirror)), "{now:?}");
    // Files without a record are of another program.
    fs::write(keeper.at(&name).join("file"), b"x").expect("written");
    fs::remove_file(keeper.at(&name).join(".plimsoll-pool")).expect("removed");
    export(&keeper, &name);
    let refused = import(&keeper, &name, false).expect_err("refused");
    assert!(refused.contains("files, but no record"), "{refused}");
}
