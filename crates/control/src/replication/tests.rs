//! Replication without its transfers: its schedule, the validity of places, the events of a run,
//! its history, and the checks of its node in the tree.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use base::clock::ManualClock;
use base::limits::{REPLICATION_EVENT_MAX, REPLICATION_FAILED_SHOWN, REPLICATION_HISTORY_MAX};
use base::node::{Context, Value};
use serde_json::{Value as Json, json};

use super::history::{FILE, History};
use super::place::{Endpoint, Opened};
use super::progress::{self, Progress};
use super::record::{Outcome, Record};
use super::schedule::Schedule;
use super::*;
use crate::appliance::ShareStatus;
use crate::state::tests::Scratch;
use crate::tree::store::{Disk, Folder};
use crate::tree::tests::disk::MemoryDisk;
use crate::tree::tests::{Holder, actor, commit, create, path, request, set};
use crate::tree::viewer::Everything;
use crate::tree::{Problem, Tree};

/// Friday, 15 January 2027, 00:00 UTC.
const MIDNIGHT: u64 = 1_800_000_000 - 1_800_000_000 % 86_400;
const HOUR: u64 = 3_600;
const DAY: u64 = 86_400;

fn utc(_: u64) -> i64 {
    0
}

#[test]
fn a_daily_run_is_due_once_each_day() {
    let at_two = Schedule::Daily(120);
    let next = |after| at_two.next(after, &utc).unwrap();
    assert_eq!(next(MIDNIGHT), MIDNIGHT + 2 * HOUR);
    // Across midnight, and not again in the second in which it was due.
    assert_eq!(next(MIDNIGHT - 1), MIDNIGHT + 2 * HOUR);
    assert_eq!(next(MIDNIGHT + 2 * HOUR - 1), MIDNIGHT + 2 * HOUR);
    assert_eq!(next(MIDNIGHT + 2 * HOUR), MIDNIGHT + DAY + 2 * HOUR);
    let at_midnight = Schedule::Daily(0);
    assert_eq!(at_midnight.next(MIDNIGHT - 1, &utc), Some(MIDNIGHT));
    assert_eq!(at_midnight.next(MIDNIGHT, &utc), Some(MIDNIGHT + DAY));
}

#[test]
fn a_day_is_that_of_the_zone() {
    let last = Schedule::Daily(23 * 60 + 30);
    let tokyo = |_| 9 * HOUR as i64;
    // 23:30 in Tokyo is 14:30 UTC.
    assert_eq!(last.next(MIDNIGHT, &tokyo), Some(MIDNIGHT + 14 * HOUR + 1_800));
    let honolulu = |_| -10 * HOUR as i64;
    assert_eq!(last.next(MIDNIGHT, &honolulu), Some(MIDNIGHT + 9 * HOUR + 1_800));
}

#[test]
fn clocks_that_are_set_forward_or_back_lose_no_day_and_gain_none() {
    // From 01:00 UTC on, clocks are an hour further ahead, or less far.
    for (before, after) in [(1, 2), (2, 1)] {
        let zone = |second: u64| {
            let hours = if second < MIDNIGHT + HOUR { before } else { after };
            hours * HOUR as i64
        };
        for minute in [0, 90, 120, 150, 180, 23 * 60] {
            let (mut at, mut times) = (MIDNIGHT - DAY, Vec::new());
            while let Some(next) = Schedule::Daily(minute).next(at, &zone) {
                if next >= MIDNIGHT + 3 * DAY {
                    break;
                }
                assert!(next > at);
                times.push(next);
                at = next;
            }
            let gaps: Vec<u64> = times.windows(2).map(|two| two[1] - two[0]).collect();
            assert!(gaps.iter().all(|gap| (22 * HOUR..=26 * HOUR).contains(gap)), "{gaps:?}");
            let day = |time: &u64| (*time as i64 + zone(*time)).div_euclid(DAY as i64);
            let days: Vec<i64> = times.iter().map(day).collect();
            assert!(days.len() >= 3 && days.windows(2).all(|two| two[1] == two[0] + 1), "{days:?}");
        }
    }
}

#[test]
fn after_a_long_standstill_one_run_is_due() {
    for schedule in [Schedule::Daily(120), Schedule::Every(900)] {
        let (looked, now) = (MIDNIGHT, MIDNIGHT + 40 * DAY + 60);
        assert!(schedule.is_due(looked, now, &utc), "{schedule:?}");
        assert!(!schedule.is_due(now, now, &utc), "{schedule:?}");
        assert!(schedule.next(now, &utc).is_some_and(|next| next <= now + DAY));
    }
    assert!(!Schedule::Off.is_due(0, u64::MAX, &utc));
    assert_eq!(Schedule::Every(900).next(MIDNIGHT + 1, &utc), Some(MIDNIGHT + 900));
    assert_eq!(Schedule::Every(900).next(MIDNIGHT + 900, &utc), Some(MIDNIGHT + 1_800));
    // The end of time is no reason to stop all else.
    assert_eq!(Schedule::Every(900).next(u64::MAX, &utc), None);
    assert_eq!(Schedule::Daily(0).next(u64::MAX, &utc), None);
}

#[test]
fn places_are_shares_and_other_machines() {
    let share = |name: &str, path: &[&str]| Endpoint::Share {
        name: name.to_owned(),
        path: path.iter().map(|name| (*name).to_owned()).collect(),
    };
    assert_eq!(Endpoint::parse("data"), Ok(share("data", &[])));
    assert_eq!(Endpoint::parse("data/a//b/"), Ok(share("data", &["a", "b"])));
    let host = |text: &str| Endpoint::parse(text).map(|place| place.host().map(str::to_owned));
    assert_eq!(host("dsync://ann@nas:218/lab/x"), Ok(Some("ann@nas".to_owned())));
    assert_eq!(host("ssh://[fd00::7]:22/srv"), Ok(Some("[fd00::7]".to_owned())));
    assert_eq!(host("ssh://10.0.0.7/srv"), Ok(Some("10.0.0.7".to_owned())));
    for wrong in [
        "",
        "/srv/data",
        "data/../etc",
        "data/./x",
        "nas:/srv",
        "http://nas/x",
        "dsync://nas",
        "dsync://nas/",
        "ssh:///srv",
        "ssh://-oProxyCommand=x/srv",
        "ssh://-x@nas/srv",
        "ssh://a b/srv",
        "ssh://nas:99999/srv",
        "ssh://@nas/srv",
        "ssh://a@b@c/srv",
    ] {
        assert!(Endpoint::parse(wrong).is_err(), "{wrong}");
    }
    let [a, ab, b] = ["data/a", "data/a/b", "data/b"].map(|text| Endpoint::parse(text).unwrap());
    assert!(a.overlaps(&ab) && ab.overlaps(&a) && a.overlaps(&a));
    assert!(!a.overlaps(&b) && !a.overlaps(&Endpoint::parse("other/a").unwrap()));
}

#[test]
fn no_way_into_a_share_leads_out_of_it() {
    let scratch = Scratch::new();
    let top = scratch.path().join("top");
    fs::create_dir_all(top.join("a/b")).unwrap();
    fs::write(top.join("file"), b"x").unwrap();
    symlink("/etc", top.join("out")).unwrap();
    symlink("a", top.join("in")).unwrap();
    let names = |text: &str| text.split('/').map(str::to_owned).collect::<Vec<_>>();
    let below = |text: &str, make| Opened::below(&top, "data", &names(text), make);
    let real = |opened: Opened| opened.real().unwrap();
    assert_eq!(real(below("a/b", false).unwrap()), top.canonicalize().unwrap().join("a/b"));
    for out in ["out", "out/ssh", "in", "in/b", "file", "none"] {
        let why = below(out, false).unwrap_err().to_string();
        assert!(why.starts_with("data/"), "{why}");
        assert!(out != "none" || why == "data/none does not exist", "{why}");
    }
    // Only the last is made, and a link in its place stays one.
    assert!(below("new/deep", true).is_err() && !top.join("new").exists());
    assert_eq!(real(below("a/new", true).unwrap()), top.canonicalize().unwrap().join("a/new"));
    assert!(below("out", true).is_err() && below("out/new", true).is_err());
}

#[test]
fn events_of_a_run_are_read_and_other_lines_are_not() {
    let mut progress = Progress::default();
    for line in [
        json!({"event": "streams", "streams": 2}),
        json!({"event": "failure", "path": "", "text": "Permission denied"}),
        json!({"event": "progress", "entries": 9, "files": 4, "files_done": 1, "bytes": 4096,
            "bytes_done": 1024, "rate": 512, "left_seconds": 5.5, "limiter": "the link"}),
    ] {
        progress.take(line.to_string().as_bytes());
    }
    progress.take(b"Last login: today\n");
    assert_eq!((progress.entries, progress.files_done, progress.left), (9, 1, Some(6)));
    assert_eq!(progress.failed, [".: Permission denied"]);
    let told = progress.sentence();
    assert_eq!(told, "9 entries, 1 of 4 files, 1 KiB, 512 B/s, 6 s left, limited by the link");
    for n in 0..99 {
        let event = json!({"event": "failure", "path": format!("f{n}"), "text": "gone\nquite"});
        progress.take(event.to_string().as_bytes());
    }
    assert_eq!(progress.failed.len(), REPLICATION_FAILED_SHOWN);
    assert_eq!(progress.failed[1], "f0: gone; quite");
}

#[test]
fn a_line_that_is_too_long_is_passed_over() {
    let long = [vec![b'x'; REPLICATION_EVENT_MAX + 7], b"\nshort\n".to_vec()].concat();
    let mut seen = Vec::new();
    progress::lines(&long[..], |line| seen.push(line.to_vec())).unwrap();
    assert_eq!(seen, [b"short\n"]);
    let said = [vec![b'a'; 1 << 20], b"the end".to_vec()].concat();
    let kept = progress::tail(&said[..]).unwrap();
    assert!(kept.len() <= base::limits::REPLICATION_SAID_MAX && kept.ends_with("the end"));
}

#[test]
fn a_reason_names_the_side_at_fault() {
    let reason = |said: &str| progress::reason(said, Some("ann@nas"));
    let starts = |said: &str, wanted: &str| {
        assert!(reason(said).starts_with(wanted), "{}", reason(said));
    };
    starts("ann@nas: Permission denied (publickey).\n", "ann@nas rejected the user");
    let file = "the other side: /copies/x: Permission denied (os error 13)";
    assert_eq!(reason(file), file);
    starts("Host key verification failed.\n", "ann@nas presented a host key that differs");
    starts("ssh: connect to host nas port 218: Connection refused\n", "ann@nas cannot be reached");
    let said = "plimsoll: cannot synchronise the directories: no space\n  make some\n";
    assert_eq!(reason(said), "no space");
    assert_eq!(progress::reason("", None), "it exited without a message");
}

fn result(action: &str, when: u64) -> Record {
    Record {
        action: action.to_owned(),
        when,
        ended: when + 5,
        by: "anna".to_owned(),
        outcome: Outcome::Failed,
        reason: "nas cannot be reached".to_owned(),
        entries: 3,
        changes: 2,
        files: 1,
        bytes: 2_048,
        sent: 10,
        devices_skipped: 0,
        set_id_dropped: 0,
        failures: 0,
        failed: Vec::new(),
        skipped: 1,
    }
}

#[test]
fn results_are_kept_over_restarts_and_are_not_too_many() {
    let disk = MemoryDisk::default();
    let open = || History::open(Arc::new(disk.clone())).unwrap();
    let history = open();
    for n in 0..4 * REPLICATION_HISTORY_MAX as u64 {
        history.add(&result("nightly", n)).unwrap();
    }
    history.add(&result("other", 7)).unwrap();
    let lines = disk.file(FILE).unwrap().lines().count();
    assert!(lines <= 3 * REPLICATION_HISTORY_MAX + 2, "{lines}");
    let history = open();
    let kept = history.of("nightly");
    assert_eq!(kept.len(), REPLICATION_HISTORY_MAX);
    assert_eq!(kept[0].when, 4 * REPLICATION_HISTORY_MAX as u64 - 1);
    // Two that exchange their names.
    history.rename(&[("nightly", "other"), ("other", "nightly")]).unwrap();
    assert_eq!((history.of("nightly").len(), open().of("nightly")[0].when), (1, 7));
    history.forget("nightly").unwrap();
    assert_eq!((open().of("nightly").len(), open().of("other").len()), (0, kept.len()));
    assert_eq!(
        result("nightly", MIDNIGHT).sentence(),
        "2027-01-15 00:00:00  nightly failed by anna: 3 entries, 2 changed, 1 files with 2 KiB in \
         5 s, 1 scheduled runs skipped meanwhile: nas cannot be reached"
    );
}

#[test]
fn a_disk_that_refuses_costs_no_result_once_it_takes_them_again() {
    let disk = MemoryDisk::default();
    let history = History::open(Arc::new(disk.clone())).unwrap();
    disk.fail(Some("replication"));
    history.add(&result("nightly", 1)).unwrap_err();
    disk.fail(None);
    disk.append(FILE, b"{\"action\":").unwrap();
    history.add(&result("nightly", 2)).unwrap();
    let again = History::open(Arc::new(disk)).unwrap();
    assert_eq!(again.of("nightly").len(), 2);
}

static CONFIGURATION: Context =
    Context::new("configuration", "Configuration", "All of it.", "configuration")
        .children(&[&node::REPLICATION]);
static ROOT: Context = Context::new("", "Test", "A tree.", "status").children(&[&CONFIGURATION]);

const AT: &str = "/configuration/replication";

struct Scene {
    tree: Arc<Tree>,
    all: Arc<Replication>,
    clock: Arc<ManualClock>,
    scratch: Arc<Scratch>,
}

impl Scene {
    /// Runs are those of another program.
    fn new(program: &str) -> Self {
        let scratch = Scratch::new();
        fs::create_dir_all(scratch.path().join("share/copy")).unwrap();
        Self::on(Arc::new(scratch), program, MIDNIGHT)
    }

    fn on(scratch: Arc<Scratch>, program: &str, now: u64) -> Self {
        let clock = Arc::new(ManualClock::at(now * 1_000_000_000));
        let state = scratch.path().join("state");
        fs::create_dir_all(&state).unwrap();
        let disk = Arc::new(crate::tree::store::Folder::new(&state));
        fs::create_dir_all(state.join("configuration")).unwrap();
        let tree = Arc::new(Tree::open(disk, &ROOT, clock.clone()).unwrap());
        let all = Replication::open(state, PathBuf::from(program), clock.clone()).unwrap();
        tree.join(vec![all.branch()]);
        let share = ShareStatus {
            name: "data".to_owned(),
            dir: scratch.path().join("share").display().to_string(),
            read_only: false,
            total_bytes: 1,
            available_bytes: 1,
            exports: Vec::new(),
            access: Vec::new(),
        };
        // No program of these tests uses the table of opens.
        let guard = || Ok(UnixStream::pair()?.0.into());
        let shares = Box::new(move || vec![share.clone()]);
        all.start(&tree, Served { shares, guard: Box::new(guard) }).unwrap();
        Self { tree, all, clock, scratch }
    }

    fn action(&self, name: &str, more: Json) -> Result<(), Vec<Problem>> {
        let mut all = json!({"source": "data/from", "destination": "ssh://nas/copy"});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        commit(&self.tree, json!([create(AT, name, all)])).map(drop)
    }

    fn act(&self, name: &str, action: &str) -> Result<Json, Problem> {
        let at = path(&format!("{AT}/{name}"));
        self.tree.act(&at, action, &BTreeMap::new(), &actor(), &Everything)
    }

    fn state(&self, name: &str, property: &str) -> Value {
        let branch = self.all.branch();
        let told = branch.live.unwrap().state(&path(&format!("{AT}/{name}")));
        told.into_iter().find(|(known, _)| *known == property).map(|(_, value)| value).unwrap()
    }

    /// Waits until an action has `count` results.
    fn results(&self, name: &str, count: usize) -> Vec<Record> {
        let mut inner = self.all.inner();
        while self.all.history.of(name).len() < count {
            let (now, waited) = self
                .all
                .changed
                .wait_timeout(inner, Duration::from_secs(60))
                .unwrap_or_else(PoisonError::into_inner);
            assert!(!waited.timed_out(), "no result of {name}");
            inner = now;
        }
        self.all.history.of(name)
    }

    fn left(&self) -> usize {
        fs::read_dir(self.scratch.path().join("state/replication")).unwrap().count()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.all.end();
    }
}

#[test]
fn an_action_is_between_here_and_elsewhere() {
    let scene = Scene::new("/bin/true");
    let refused = |more: Json, property: &str| {
        let problems = scene.action("wrong", more).unwrap_err();
        assert_eq!(problems[0].property.as_deref(), Some(property), "{problems:?}");
    };
    refused(json!({"source": "data/../x"}), "source");
    refused(json!({"source": "dsync://nas/x"}), "destination");
    refused(json!({"destination": "data/from/below"}), "destination");
    refused(json!({"schedule": "daily", "at": "25:00"}), "at");
    refused(json!({"schedule": "every", "every": 1}), "every");
    scene.action("good", json!({"schedule": "daily", "at": "23:30"})).unwrap();
    assert_eq!(scene.state("good", "state"), Value::text("idle"));
    assert_ne!(scene.state("good", "next"), Value::Integer(0));
    assert!(scene.act("good", "stop").is_err());
}

#[test]
fn the_password_of_an_action_stays_with_its_machine() {
    let scene = Scene::new("/bin/true");
    scene.action("copy", json!({"password": "not-to-be-seen"})).unwrap();
    let rename = json!({"rename": format!("{AT}/copy"), "to": "other"});
    let at = format!("{AT}/other");
    let change = |changes: Json| {
        let viewer = Holder(&["replication:change", "shares:change"]);
        scene.tree.commit(&request(changes), &actor(), &viewer)
    };
    let to = |place: &str| set(&at, "destination", place);
    change(json!([rename.clone(), to("ssh://elsewhere/copy")])).unwrap_err();
    change(json!([rename, to("ssh://nas/another"), set(&at, "source", "data/here")])).unwrap();
    for place in ["ssh://elsewhere/copy", "ssh://nas:2222/copy", "dsync://nas/data/copy"] {
        let problem = change(json!([to(place)])).unwrap_err().remove(0);
        assert_eq!(problem.property.as_deref(), Some("password"), "{problem:?}");
    }
    let again = set(&at, "password", "another");
    change(json!([to("ssh://elsewhere/copy"), again])).unwrap();
    commit(&scene.tree, json!([to("ssh://nas/copy")])).unwrap();
}

#[test]
fn what_is_due_is_started_once_and_leaves_nothing_but_its_result() {
    // No ssh is started: `/bin/true` exits with success.
    let scene = Scene::new("/bin/true");
    fs::create_dir(scene.scratch.path().join("share/from")).unwrap();
    let secrets = json!({"schedule": "every", "every": 900, "password": "not-to-be-seen"});
    scene.action("often", secrets).unwrap();
    scene.clock.advance(Duration::from_secs(40 * DAY));
    scene.all.changed.notify_all();
    let results = scene.results("often", 1);
    assert_eq!((results[0].outcome, &*results[0].by), (Outcome::Done, "schedule"));
    assert_eq!(scene.left(), 0, "files of a run are left");
    assert_eq!(scene.state("often", "last_outcome"), Value::text("done"));
    // Renamed, with its results; then gone, and another one of that name has none.
    let to = json!([{"rename": format!("{AT}/often"), "to": "seldom"}]);
    commit(&scene.tree, to).unwrap();
    assert_eq!(scene.all.history.of("seldom").len(), 1);
    let rows = scene.act("seldom", "runs").unwrap();
    assert_eq!(rows["rows"].as_array().unwrap().len(), 1, "{rows}");
    commit(&scene.tree, json!([{"destroy": format!("{AT}/seldom"), "confirm": true}])).unwrap();
    scene.action("seldom", json!({})).unwrap();
    assert_eq!(scene.all.history.of("seldom").len(), 0);
}

#[test]
fn a_change_that_is_rolled_back_costs_no_results() {
    let scene = Scene::new("/bin/true");
    for (when, name) in [(1, "old"), (2, "new")] {
        scene.action(name, json!({})).unwrap();
        scene.all.history.add(&result(name, when)).unwrap();
    }
    let log = scene.scratch.path().join("state/audit.log");
    fs::remove_file(&log).unwrap();
    fs::create_dir(&log).unwrap();
    let destroy = json!({"destroy": format!("{AT}/old"), "confirm": true});
    let rename = json!({"rename": format!("{AT}/new"), "to": "old"});
    for changes in [json!([destroy.clone()]), json!([destroy, rename])] {
        let problem = commit(&scene.tree, changes.clone()).unwrap_err().remove(0);
        assert!(problem.sentence.contains("audit log"), "{problem:?}");
        let again = History::open(Arc::new(Folder::new(&scene.scratch.path().join("state"))));
        for history in [&scene.all.history, &again.unwrap()] {
            let when = ["old", "new"].map(|name| history.last(name).map(|one| one.when));
            assert_eq!(when, [Some(1), Some(2)], "{changes}");
        }
    }
}

#[test]
fn an_action_does_not_take_over_results_with_a_name() {
    let scene = Scene::new("/bin/true");
    for name in ["old", "new"] {
        scene.action(name, json!({})).unwrap();
    }
    scene.all.history.add(&result("old", 1)).unwrap();
    let destroy = json!({"destroy": format!("{AT}/old"), "confirm": true});
    commit(&scene.tree, json!([destroy])).unwrap();
    commit(&scene.tree, json!([{"rename": format!("{AT}/new"), "to": "old"}])).unwrap();
    assert!(scene.all.history.last("old").is_none());
}

#[test]
fn one_run_makes_up_for_all_that_were_due_while_the_server_was_down() {
    let first = Scene::new("/bin/true");
    fs::create_dir(first.scratch.path().join("share/from")).unwrap();
    first.action("nightly", json!({"schedule": "daily", "at": "02:00"})).unwrap();
    first.action("by-hand", json!({})).unwrap();
    first.act("by-hand", "start").unwrap();
    first.results("by-hand", 1);
    first.clock.advance(Duration::from_secs(DAY));
    first.all.changed.notify_all();
    first.results("nightly", 1);
    let daily = json!([set(&format!("{AT}/by-hand"), "schedule", "daily")]);
    commit(&first.tree, daily).unwrap();
    let scratch = first.scratch.clone();
    drop(first);
    let second = Scene::on(scratch, "/bin/true", MIDNIGHT + 40 * DAY);
    let results = second.results("nightly", 2);
    assert_eq!((results[0].when, &*results[0].by), (MIDNIGHT + 40 * DAY, "schedule"));
    second.all.end();
    // What no schedule has ever started begins with its next time.
    let counts = ["nightly", "by-hand"].map(|name| second.all.history.of(name).len());
    assert_eq!(counts, [2, 1]);
}

#[test]
fn a_clock_that_was_ahead_does_not_stop_the_schedule() {
    let ahead = Scene::new("/bin/true");
    fs::create_dir(ahead.scratch.path().join("share/from")).unwrap();
    ahead.action("often", json!({"schedule": "every", "every": 900})).unwrap();
    ahead.clock.advance(Duration::from_secs(40 * DAY));
    ahead.all.changed.notify_all();
    ahead.results("often", 1);
    let scratch = ahead.scratch.clone();
    drop(ahead);
    let right = Scene::on(scratch, "/bin/true", MIDNIGHT);
    right.all.turn(&mut right.all.inner(), MIDNIGHT);
    assert_eq!(right.state("often", "next"), Value::number(MIDNIGHT + 900));
    right.clock.advance(Duration::from_secs(900));
    right.all.changed.notify_all();
    let results = right.results("often", 2);
    assert_eq!((results[0].when, &*results[0].by), (MIDNIGHT + 900, "schedule"));
    // A correction by seconds starts nothing again.
    right.all.turn(&mut right.all.inner(), MIDNIGHT + 850);
    assert_eq!(right.state("often", "next"), Value::number(MIDNIGHT + 1_800));
}

#[test]
fn a_failure_is_reported_until_a_run_succeeds() {
    let scene = Scene::new("/bin/false");
    scene.action("bad", json!({})).unwrap();
    scene.act("bad", "start").unwrap();
    let results = scene.results("bad", 1);
    assert_eq!(results[0].reason, "data/from does not exist");
    assert!(scene.all.problem().is_some_and(|why| why.contains("bad: data/from does not exist")));
    fs::create_dir(scene.scratch.path().join("share/from")).unwrap();
    scene.act("bad", "start").unwrap();
    let results = scene.results("bad", 2);
    assert_eq!(results[0].reason, "it exited without a message");
    commit(&scene.tree, json!([set(&format!("{AT}/bad"), "enabled", false)])).unwrap();
    assert_eq!(scene.all.problem(), None);
}

#[test]
fn a_run_is_ended_by_a_user_and_by_the_end_of_the_server() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path().join("share/from")).unwrap();
    // It starts another program, as dsync does, and waits for ever.
    let program = scratch.path().join("program");
    let text = "#!/bin/sh\necho '{\"event\":\"progress\",\"entries\":5}'\nsleep 1000 &\nwait\n";
    write_program(&program, text);
    let scene = Scene::on(Arc::new(scratch), &program.display().to_string(), MIDNIGHT);
    scene.action("long", json!({})).unwrap();
    scene.act("long", "start").unwrap();
    assert!(scene.act("long", "start").is_err(), "one at once");
    scene.act("long", "stop").unwrap();
    let results = scene.results("long", 1);
    assert_eq!((results[0].outcome, &*results[0].reason), (Outcome::Stopped, "anna stopped it"));
    scene.act("long", "start").unwrap();
    scene.all.end();
    let results = scene.all.history.of("long");
    assert_eq!((results.len(), &*results[0].reason), (2, "the server ended"));
    assert_eq!(scene.left(), 0);
}

/// Makes a program. A child that another test starts at the same time has the file open for
/// writing for a moment, unless it is written by another process.
fn write_program(at: &Path, text: &str) {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let mut writer = Command::new("/bin/sh")
        .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
        .arg(at)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    writer.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success());
}

#[test]
fn a_folder_that_lost_its_mode_in_a_power_cut_gets_it_back_and_what_runs_left_goes() {
    let scratch = Scratch::new();
    let kit = || run::Environment { program: PathBuf::new(), state: scratch.path().to_owned() };
    let folder = scratch.path().join("replication");
    // Nothing is made before there is a run.
    kit().prepare().unwrap();
    assert!(!folder.exists());
    fs::create_dir_all(folder.join("run-7/key")).unwrap();
    fs::write(folder.join("known_hosts"), b"x").unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o0)).unwrap();
    kit().prepare().unwrap();
    assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o7777, 0o700);
    assert!(!folder.join("run-7").exists() && folder.join("known_hosts").exists());
}
