//! One run at a time, joined by the same question, ended by a stop; a run that panics ends.

use std::sync::mpsc::channel;

use super::*;

fn path(name: &str) -> Path {
    Path::of(&["shares", "p", name])
}

fn asked(directory: &str, seconds: i64) -> BTreeMap<String, Value> {
    BTreeMap::from([
        ("directory".to_owned(), Value::text(directory)),
        ("seconds".to_owned(), Value::Integer(seconds)),
    ])
}

fn files(files: u64) -> CacheDrop {
    CacheDrop { files, ..CacheDrop::default() }
}

#[test]
fn a_run_is_joined_and_stopped() {
    let drops = CacheDrops::default();
    let (begun, wait) = channel();
    let until_stopped = move |more: ShouldContinue<'_>| {
        while more(&files(7)) {
            // What was counted can be seen from here on.
            let _heard = begun.send(());
            std::thread::yield_now();
        }
        Ok((files(7), false))
    };
    let first = drops.run(&path("a"), &asked("", 0), until_stopped).expect("begun");
    assert_eq!((&first["running"], &first["complete"]), (&json!(true), &json!(false)));
    wait.recv().expect("seven files");
    let joined = drops.run(&path("a"), &asked("", 0), |_| panic!("not begun")).expect("joined");
    assert_eq!(joined["files"], 7);
    assert!(drops.line(&path("a")).is_some_and(|line| line.starts_with("running: 7 files")));
    let other = drops.run(&path("a"), &asked("below", 0), |_| panic!("not begun"));
    assert!(other.is_err(), "another directory");
    drops.stop(&path("a")).expect("it runs");
    let ended = drops.run(&path("a"), &asked("", 60), |_| Ok((files(9), true))).expect("ended");
    // Either the stopped one, or the next.
    assert_eq!(ended["running"], false);
    assert!([json!(7), json!(9)].contains(&ended["files"]), "{ended}");
    assert!(drops.stop(&path("a")).is_err(), "none is running");
    drops.retain(|_| false);
    assert_eq!(drops.line(&path("a")), None);
}

#[test]
fn a_run_that_panics_ends() {
    let drops = CacheDrops::default();
    let failed = drops.run(&path("a"), &asked("", 60), |_| panic!("planted"));
    assert!(failed.is_err_and(|problem| problem.sentence.contains("fault")));
    let next = drops.run(&path("a"), &asked("", 60), |_| Ok((files(1), true))).expect("begun");
    assert_eq!(next["complete"], true);
}

#[test]
fn a_run_that_fails_has_a_reason_and_few_run_at_once() {
    let drops = CacheDrops::default();
    let failed = drops.run(&path("a"), &asked("", 60), |_| Err("it is offline".to_owned()));
    assert!(failed.is_err_and(|problem| problem.sentence.contains("it is offline")));
    let (end, ends) = channel::<()>();
    let ends = Arc::new(Mutex::new(ends));
    for n in 0..RUNS_MAX {
        let ends = Arc::clone(&ends);
        let held = move |_: ShouldContinue<'_>| {
            // Ends with the sender.
            let _ended = ends.lock().recv();
            Ok((files(1), true))
        };
        drops.run(&path(&format!("s{n}")), &asked("", 0), held).expect("begun");
    }
    let fifth = drops.run(&path("fifth"), &asked("", 0), |_| panic!("not begun"));
    assert!(fifth.is_err_and(|problem| problem.sentence.contains("4 runs")));
    drop(end);
    let done = drops.run(&path("s0"), &asked("", 60), |_| Ok((files(1), true))).expect("ends");
    assert_eq!((&done["running"], &done["complete"]), (&json!(false), &json!(true)));
}
