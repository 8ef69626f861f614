//! A directory that goes while it is served, and what comes in its place.

use std::fs;
use std::path::Path;
use std::process::Command;

use vfs::cred::Cred;
use vfs::fs::{Context, CreateHow};

use super::super::rollback::Exchange;
use super::super::tests::World;
use super::*;

/// Makes a file through the share, if it is served.
fn write(shares: &Shares, name: &str, file: &str) -> bool {
    let table = shares.table().load();
    let Some(share) = table.by_name(name) else { return false };
    let cred = Cred::root();
    let cx = Context { cred: &cred, may_block: true };
    let how = CreateHow::Guarded(Default::default());
    share.fs.create(cx, &share.fs.root(), file.as_bytes(), how).is_ok()
}

fn reason(shares: &Shares) -> String {
    let lost = shares.lost();
    assert_eq!(lost.len(), 1, "{lost:?}");
    lost[0].1.sentence.clone()
}

fn files(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("a directory").flatten();
    let mut names: Vec<_> = entries.map(|e| e.file_name().into_string().expect("text")).collect();
    names.sort();
    names
}

fn world() -> (World, [ShareConfig; 2]) {
    let world = World::new();
    let both = [world.share("a", "a"), world.share("b", "b")];
    world.shares.apply(&[], &both).expect("served");
    world.shares.look();
    assert!(world.shares.lost().is_empty());
    (world, both)
}

#[test]
fn one_that_was_moved_away_is_served_when_it_is_back() {
    let (world, both) = world();
    let root = world.shares.table().load().by_name("a").expect("served").fs.root();
    fs::rename(world.dir("a"), world.dir("elsewhere")).expect("moved");
    world.shares.look();
    assert!(!write(&world.shares, "a", "f") && write(&world.shares, "b", "f"));
    assert!(reason(&world.shares).contains("does not exist"), "{}", reason(&world.shares));
    // Another one in its place gets nothing, whatever else is changed meanwhile.
    fs::create_dir(world.dir("a")).expect("another");
    world.shares.look();
    let more = [&both[..], &[world.share("c", "c")]].concat();
    world.shares.apply(&both, &more).expect("another share comes");
    assert!(!write(&world.shares, "a", "f") && write(&world.shares, "c", "f"));
    assert!(reason(&world.shares).contains("is not the directory"), "{}", reason(&world.shares));
    assert!(files(&world.dir("a")).is_empty() && files(&world.dir("elsewhere")).is_empty());
    fs::remove_dir(world.dir("a")).expect("the other one goes");
    fs::rename(world.dir("elsewhere"), world.dir("a")).expect("moved back");
    world.shares.look();
    assert!(world.shares.lost().is_empty() && write(&world.shares, "a", "f"));
    assert_eq!(world.shares.table().load().by_name("a").expect("served").fs.root(), root);
    assert_eq!(files(&world.dir("a")), ["f"]);
}

#[test]
fn a_look_without_a_free_descriptor_takes_no_share_away() {
    let (world, _) = world();
    let one = world.shares.served.lock().get("a").cloned().expect("served");
    let lost = |code| loss(&one, &Err(io::Error::from_raw_os_error(code))).is_some();
    // EMFILE, ENFILE, ENOMEM; ENOENT, EIO, EACCES.
    assert_eq!([24, 23, 12].map(lost), [false; 3]);
    assert_eq!([2, 5, 13].map(lost), [true; 3]);
    assert!(loss(&one, &DirectoryIdentity::of(&world.dir("a"))).is_none());
    assert!(loss(&one, &DirectoryIdentity::of(&world.dir("b"))).is_some());
}

#[test]
fn one_that_was_removed_and_made_again_is_served() {
    let (world, _) = world();
    fs::remove_dir(world.dir("a")).expect("removed");
    world.shares.look();
    assert!(!write(&world.shares, "a", "f"));
    assert!(reason(&world.shares).contains("does not exist"));
    fs::create_dir(world.dir("a")).expect("made");
    world.shares.look();
    assert!(world.shares.lost().is_empty() && write(&world.shares, "a", "f"));
    assert_eq!(files(&world.dir("a")), ["f"]);
    // Between two looks.
    fs::remove_dir_all(world.dir("a")).expect("removed");
    fs::create_dir(world.dir("a")).expect("made");
    world.shares.look();
    assert!(world.shares.lost().is_empty() && write(&world.shares, "a", "g"));
    assert_eq!(files(&world.dir("a")), ["g"]);
}

#[test]
fn one_that_is_changed_serves_what_is_there_now() {
    let (world, both) = world();
    fs::rename(world.dir("a"), world.dir("elsewhere")).expect("moved");
    fs::create_dir(world.dir("a")).expect("another");
    world.shares.look();
    let why = reason(&world.shares);
    assert!(why.contains("is not the directory that was served"), "{why}");
    let changed = [ShareConfig { project: "other".into(), ..both[0].clone() }, both[1].clone()];
    world.shares.apply(&both, &changed).expect("changed");
    assert!(world.shares.lost().is_empty() && write(&world.shares, "a", "f"));
    assert_eq!(files(&world.dir("a")), ["f"]);
}

#[test]
fn one_that_is_destroyed_while_it_is_lost_does_not_come_back() {
    let (world, both) = world();
    fs::rename(world.dir("a"), world.dir("elsewhere")).expect("moved");
    world.shares.look();
    world.shares.apply(&both, &both[1..]).expect("destroyed");
    fs::rename(world.dir("elsewhere"), world.dir("a")).expect("moved back");
    world.shares.look();
    assert!(world.shares.lost().is_empty() && !write(&world.shares, "a", "f"));
}

fn mount(args: &[&str], at: &Path) -> bool {
    Command::new(args[0]).args(&args[1..]).arg(at).status().is_ok_and(|status| status.success())
}

/// What a rollback leaves of which the answer did not come.
#[test]
fn one_that_was_exchanged_by_a_request_that_failed_is_served() {
    let world = World::new();
    let dir = world.dir("a");
    let is_mounted = || mount(&["mount", "-t", "tmpfs", "plimsoll-test"], &dir);
    if !is_mounted() {
        println!("SKIP exchanged-share: a tmpfs cannot be mounted here");
        return;
    }
    let config = ShareConfig { snapshots: Some(world.dir("b")), ..world.share("a", "a") };
    world.shares.apply(&[], std::slice::from_ref(&config)).expect("served");
    let exchange = |work: &dyn Fn()| {
        let work = || {
            work();
            Err("no answer".to_owned())
        };
        let ended = world.shares.exchange_directory(&dir, Exchange::Subvolume, work);
        (ended.is_done, ended.result)
    };
    let before = exchange(&|| {});
    let after = exchange(&|| assert!(mount(&["umount", "-l"], &dir) && is_mounted()));
    world.shares.look();
    let (lost, written) = (world.shares.lost().len(), write(&world.shares, "a", "f"));
    let there = files(&dir);
    assert!(mount(&["umount", "-l"], &dir));
    assert_eq!(before, (false, Err("no answer".to_owned())));
    let sentence = "no answer; other files came to the share all the same, and are served";
    assert_eq!(after, (true, Err(sentence.to_owned())));
    assert_eq!((lost, written, there), (0, true, vec!["f".to_owned()]));
}

#[test]
fn nothing_is_written_below_a_file_system_that_was_unmounted() {
    let world = World::new();
    let dir = world.dir("a");
    if !mount(&["mount", "-t", "tmpfs", "plimsoll-test"], &dir) {
        println!("SKIP unmounted-share: a tmpfs cannot be mounted here");
        return;
    }
    let config = world.share("a", "a");
    world.shares.apply(&[], std::slice::from_ref(&config)).expect("served");
    assert!(write(&world.shares, "a", "f"));
    assert!(mount(&["umount", "-l"], &dir));
    world.shares.look();
    let lost = reason(&world.shares);
    assert!(lost.contains("a different file system"), "{lost}");
    assert!(!write(&world.shares, "a", "g") && files(&dir).is_empty(), "{lost}");
    // Another file system there is another place.
    assert!(mount(&["mount", "-t", "tmpfs", "plimsoll-test"], &dir));
    world.shares.look();
    let written = write(&world.shares, "a", "g");
    let there = files(&dir);
    assert!(mount(&["umount", "-l"], &dir));
    assert!(!written && there.is_empty());
}
