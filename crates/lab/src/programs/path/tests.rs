//! Programs on a directory: what is made, read, written and left.

use super::*;
use crate::client::Fault;
use crate::pattern::Content;
use crate::programs::drive::{Limit, Totals};
use crate::programs::run::on;
use crate::programs::set::FOLDER;
use lab_program::wml::read;
use std::fs;
use std::path::{Path, PathBuf};

/// More than any of these runs takes.
const LONG: f64 = 600.0;
const MAIL: &str = include_str!("../../../tests/programs/mail.f");

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let dir = Path::new("/dev/shm");
        let dir = if dir.is_dir() { dir.to_owned() } else { std::env::temp_dir() };
        let dir = dir.join(format!("plimsoll-test-programs-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        Self(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn plan(text: &str, settings: &[&str]) -> Arc<Plan> {
    let settings: Vec<String> = settings.iter().map(|s| (*s).to_owned()).collect();
    let program = read("p.f", text, &settings).unwrap_or_else(|error| panic!("{error}"));
    Arc::new(Plan::new(program, 5, 0, 1).expect("plan"))
}

fn one_thread(files: &str, flowops: &str) -> Arc<Plan> {
    plan(&format!("{files}\ndefine process name=p {{ thread name=t {{\n{flowops}\n}} }}\n"), &[])
}

fn run(dir: &Scratch, plan: &Arc<Plan>, calls: u64) -> Totals {
    let target = crate::client::Target::Path(dir.0.clone());
    on(&target, plan, Limit::of(LONG, calls), false).expect("a run")
}

fn files(dir: &Path) -> usize {
    fs::read_dir(dir).expect("a directory").count()
}

#[test]
fn a_mail_server_runs_without_a_failure() {
    let dir = Scratch::new("mail");
    let plan = plan(MAIL, &["$nfiles=400", "$nthreads=8"]);
    let totals = run(&dir, &plan, 1300);
    assert_eq!(totals.faults, [].into(), "{:?}", totals.reason);
    let calls = |name: &str| {
        let number = plan.program.acts.iter().position(|act| act.name == name).expect(name);
        totals.acts[number].calls
    };
    for name in ["delete", "deliver", "fill", "open2", "read3"] {
        assert!((792..=832).contains(&calls(name)), "{name}: {}", calls(name));
    }
    let opens = calls("deliver") + calls("open2") + calls("open3");
    assert_eq!(totals.during["close"], calls("close1") + calls("close2") + calls("close3"));
    assert_eq!(totals.during["fdatasync"], calls("settle") + calls("settle2"));
    assert!(totals.during["openat2"] >= opens);
}

#[test]
fn a_file_that_was_changed_is_found() {
    let dir = Scratch::new("corrupt");
    let plan = one_thread(
        "define file name=f,size=64k,prealloc,reuse",
        "flowop read name=r,filename=f,iosize=4k",
    );
    let totals = run(&dir, &plan, 17);
    assert!(totals.faults.is_empty());
    assert_eq!((totals.acts[0].calls, totals.acts[0].bytes), (16, 65536), "one opens the file");
    let path = dir.0.join(FOLDER).join("f");
    let file = fs::File::options().write(true).open(path).expect("the file");
    // In the middle: the set is used again when both ends are right.
    file.write_all_at(b"changed", 32768).expect("written");
    let totals = run(&dir, &plan, 17);
    assert_eq!(totals.faults[&0], Fault::Corrupt.to_string());
    assert_eq!(totals.acts[0].errors, 1);
}

#[test]
fn a_set_is_used_again_or_made_again() {
    let dir = Scratch::new("again");
    for (reuse, same) in [(",reuse", true), ("", false)] {
        let plan = one_thread(
            &format!("define fileset name=s,size=9000,entries=20,dirwidth=5,prealloc{reuse}"),
            "flowop statfile name=st,filesetname=s",
        );
        run(&dir, &plan, 20);
        let path = dir.0.join(FOLDER).join(plan.pools[0].tree.file_path(3));
        let inode = || std::os::unix::fs::MetadataExt::ino(&fs::metadata(&path).expect("a file"));
        let before = inode();
        fs::write(dir.0.join(FOLDER).join(plan.pools[0].tree.file_path(4)), b"x").expect("written");
        run(&dir, &plan, 20);
        assert_eq!(before == inode(), same, "{reuse}");
        let changed = dir.0.join(FOLDER).join(plan.pools[0].tree.file_path(4));
        assert_eq!(fs::metadata(changed).expect("a file").len(), 9000);
    }
}

#[test]
fn directories_are_made_removed_and_listed() {
    let dir = Scratch::new("dirs");
    let plan = one_thread(
        "define fileset name=d,entries=30,leafdirs=20,dirwidth=4,prealloc=50,size=10",
        "flowop makedir name=make,filesetname=d\nflowop listdir name=list,filesetname=d\n\
         flowop removedir name=gone,filesetname=d",
    );
    let totals = run(&dir, &plan, 300);
    assert!(totals.faults.is_empty(), "{:?}", totals.faults);
    let calls: Vec<u64> = totals.acts.iter().map(|act| act.calls).collect();
    assert_eq!(calls, [100, 100, 100]);
    assert_eq!((totals.during["mkdirat"], totals.during["rmdir"]), (100, 100));
    assert!(totals.acts[1].bytes > 0);
}

#[test]
fn each_write_can_be_stable_and_random() {
    let dir = Scratch::new("stable");
    let plan = one_thread(
        "define file name=f,size=1m,prealloc",
        "flowop write name=w,filename=f,iosize=8k,random,dsync,workingset=64k",
    );
    let totals = run(&dir, &plan, 101);
    assert!(totals.faults.is_empty(), "{:?}", totals.faults);
    assert_eq!((totals.during["pwrite64"], totals.during["fdatasync"]), (100, 100));
    let size = fs::metadata(dir.0.join(FOLDER).join("f")).expect("a file").len();
    assert_eq!(size, 1 << 20);
}

#[test]
fn what_was_made_is_removed_and_nothing_else() {
    let dir = Scratch::new("clean");
    fs::write(dir.0.join("another"), b"x").expect("written");
    let plan = plan(MAIL, &["$nfiles=50", "$nthreads=2"]);
    run(&dir, &plan, 13);
    assert_eq!(files(&dir.0), 2);
    remove(&dir.0, &plan).expect("removed");
    assert_eq!(files(&dir.0), 1);
}

#[test]
fn a_symbolic_link_is_not_followed() {
    let dir = Scratch::new("link");
    let elsewhere = Scratch::new("link-elsewhere");
    fs::create_dir(dir.0.join(FOLDER)).expect("a directory");
    std::os::unix::fs::symlink(&elsewhere.0, dir.0.join(FOLDER).join("box")).expect("a link");
    let plan = plan(MAIL, &["$nfiles=20", "$nthreads=2"]);
    run(&dir, &plan, 13);
    assert_eq!(files(&elsewhere.0), 0);
    fs::remove_dir_all(dir.0.join(FOLDER)).expect("removed");
    std::os::unix::fs::symlink(&elsewhere.0, dir.0.join(FOLDER)).expect("a link");
    let checker = Checker::new(Content::new(5), 1);
    prepare(&dir.0, &plan, &checker).expect_err("the folder is a link");
}
