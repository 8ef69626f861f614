//! The desk without processes: what is stored, what a restart makes of it, which actions are
//! allowed in which state. Whole runs are in `tests/lab_runs.rs`.

use super::*;
use crate::job::BUILT_IN;

struct TestFolder(PathBuf);

impl TestFolder {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("plimsoll-desk-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        Self(dir)
    }

    fn open(&self) -> Arc<RunQueue> {
        // No such program: a run fails at once, and cleaning as well.
        let program = self.0.join("no-such-program");
        RunQueue::open(self.0.clone(), program, self.0.join("socket")).unwrap()
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn wanted() -> RunRequest {
    let (name, text) = BUILT_IN[3];
    RunRequest {
        kind: Kind::Run,
        jobs: vec![Job::parse(name, text, &[]).unwrap()],
        by: "anna".into(),
        from: "local".into(),
        targets: vec![RunTarget { url: "null:".into(), own: false }],
        share: None,
        folder: String::new(),
        clients: 2,
        quick: false,
        prove: false,
        rule: Rule::default(),
        wml: None,
        iozone: None,
        suite: None,
        profile: None,
    }
}

fn until(desk: &RunQueue, id: &str, state: State) -> Run {
    let deadline = base::clock::Deadline::after(Duration::from_secs(60));
    loop {
        let run = desk.run(id).unwrap();
        if run.state == state {
            return run;
        }
        assert!(!deadline.passed(), "{run:?}");
        std::thread::yield_now();
    }
}

#[test]
fn the_queue_is_bounded_and_what_waits_can_be_taken_back() {
    let place = TestFolder::new("queue");
    let desk = place.open();
    let ids: Vec<String> = (0..LAB_QUEUE_MAX).map(|_| desk.queue(&wanted()).unwrap().id).collect();
    assert!(matches!(desk.queue(&wanted()), Err(RunQueueError::Full(LAB_QUEUE_MAX))));
    assert!(matches!(desk.destroy(&ids[3]), Err(RunQueueError::State(..))), "it has not ended");
    desk.abort(&ids[3], "bert").unwrap();
    let run = desk.run(&ids[3]).unwrap();
    assert_eq!(
        (run.state, run.message.as_str()),
        (State::Aborted, "aborted by bert before the start")
    );
    assert!(matches!(desk.abort(&ids[3], "bert"), Err(RunQueueError::State(..))));
    assert!(desk.queue(&wanted()).is_ok(), "there is room again");
    assert!(matches!(desk.abort("r99", "bert"), Err(RunQueueError::Unknown(_))));
}

#[test]
fn a_restart_ends_runs_in_progress_and_keeps_the_rest() {
    let place = TestFolder::new("restart");
    let desk = place.open();
    let (first, second) = (desk.queue(&wanted()).unwrap(), desk.queue(&wanted()).unwrap());
    desk.abort(&second.id, "anna").unwrap();
    // As a server that is killed in a run leaves it.
    desk.lock().edit(1, Run::begin);
    desk.change(1, |_| {});
    drop(desk);
    let desk = place.open();
    // The browser's list is made of the changes.
    assert_eq!(desk.changes(0).0.len(), 2);
    let run = desk.run(&first.id).unwrap();
    assert_eq!((run.state, run.message.as_str()), (State::Aborted, RESTARTED));
    assert!(!run.cleaned && desk.lock().left == [1], "its folder may still be there");
    assert!(
        matches!(desk.destroy(&first.id), Err(RunQueueError::State(..))),
        "it is being removed"
    );
    assert_eq!(desk.run(&second.id).unwrap().message, "aborted by anna before the start");
    assert_eq!(desk.queue(&wanted()).unwrap().id, "r3", "no id comes twice");
}

#[test]
fn what_cannot_be_started_fails_and_can_be_destroyed() {
    let place = TestFolder::new("fails");
    let desk = place.open();
    let worker = desk.start("127.0.0.1:9".parse().unwrap());
    let id = desk.queue(&wanted()).unwrap().id;
    let run = until(&desk, &id, State::Failed);
    assert!(run.message.starts_with("its process cannot be started"), "{}", run.message);
    let (news, seen) = desk.changes(0);
    assert!(matches!(&news[..], [Change::Run(run)] if run.id == id), "{news:?}");
    assert!(desk.changes(seen).0.is_empty());
    desk.destroy(&id).unwrap();
    assert!(matches!(&desk.changes(seen).0[..], [Change::Gone(gone)] if *gone == id));
    assert!(!desk.store.place(&id).exists() && desk.run(&id).is_none());
    worker.end();
    assert!(matches!(desk.queue(&wanted()), Err(RunQueueError::Ending)));
}

#[test]
fn a_run_can_be_destroyed_as_soon_as_it_has_failed() {
    let place = TestFolder::new("destroyed");
    let desk = place.open();
    let worker = desk.start("127.0.0.1:9".parse().unwrap());
    for round in 0..50 {
        let id = desk.queue(&wanted()).unwrap().id;
        until(&desk, &id, State::Failed);
        // Its state may be seen before it is stored: the files are removed after that.
        desk.destroy(&id).unwrap();
        assert!(!desk.store.place(&id).exists(), "round {round}");
    }
    worker.end();
    let left: Vec<_> = std::fs::read_dir(place.0.join("runs")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn the_oldest_go_when_there_are_too_many() {
    let place = TestFolder::new("surplus");
    let desk = place.open();
    let ended: Vec<u64> = (1..=base::limits::LAB_RUNS_KEPT as u64 + 3).collect();
    assert_eq!(desk.store.surplus(&ended), [3, 2, 1]);
}
