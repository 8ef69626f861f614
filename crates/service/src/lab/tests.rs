//! What may be run, and on what.

use std::path::PathBuf;

use super::*;

struct Fake;

impl Serving for Fake {
    fn shares(&self) -> Vec<ShareStatus> {
        let share = |name: &str, read_only, available_bytes| ShareStatus {
            name: name.into(),
            dir: "/d".into(),
            read_only,
            total_bytes: 1 << 40,
            available_bytes,
            exports: Vec::new(),
            access: Vec::new(),
        };
        vec![share("data", false, 1 << 40), share("old", true, 1 << 40), share("full", false, 5)]
    }

    fn nfs(&self) -> SocketAddr {
        "0.0.0.0:2049".parse().expect("an address")
    }
}

struct Scene {
    room: Room,
    dir: PathBuf,
}

impl Scene {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("plimsoll-room-{name}-{}", std::process::id()));
        // The desk is not started: what is queued stays queued.
        let desk =
            RunQueue::open(dir.clone(), "plimsoll".into(), dir.join("socket")).expect("a desk");
        let room = Room { desk, serving: Box::new(Fake), jobs: Mutex::default() };
        Self { room, dir }
    }

    fn run(&self, parameters: &[(&str, Value)]) -> Result<Json, Problem> {
        let given = parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let path = Path::of(&["lab", "jobs", "iops-4k"]);
        self.room.act(&path, "run", &given.collect(), &Who::new("anna", "local"))
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn a_run_works_in_a_folder_of_its_own() {
    let scene = Scene::new("own");
    let share = ("share", Value::text("data"));
    let done = scene.run(&[
        share,
        ("folder", Value::text("/a/b/")),
        ("clients", Value::Integer(3)),
        ("file_size", Value::Integer(1 << 20)),
        ("schedule", Value::List(vec![Value::text("1x1"), Value::text("3x8")])),
    ]);
    let done = done.expect("queued");
    assert_eq!(done["target"], "nfs3://127.0.0.1:2049/export/data/a/b");
    assert_eq!(done["bytes"], 3 << 20);
    assert!(done["folder"].as_str().is_some_and(|f| f.starts_with("plimsoll-lab-r1-")), "{done}");
    let run = scene.room.desk.run("r1").expect("it is there");
    assert_eq!((run.planned, run.by.as_str()), (vec![(1, 1), (3, 8)], "anna"));
}

#[test]
fn what_cannot_be_run_is_told_why() {
    let scene = Scene::new("refused");
    let text = |name: &'static str, value: &str| (name, Value::text(value));
    let steps = |step: &str| ("schedule", Value::List(vec![Value::text(step)]));
    let cases = [
        (vec![], "neither a share nor a target"),
        (vec![text("share", "data"), text("target", "null:")], "a share and a target"),
        (vec![text("share", "nope")], "is not served"),
        (vec![text("share", "old")], "read-only"),
        (vec![text("share", "full")], "would write"),
        (vec![text("share", "data"), text("folder", "a/../..")], "is not inside the share"),
        (vec![text("target", "path:/etc")], "for `plimsoll lab run` alone"),
        (vec![text("target", "http://x/y")], "for `plimsoll lab run` alone"),
        (vec![text("target", "gopher://x/y")], "unknown scheme"),
        (vec![text("target", "null:"), steps("8")], "CLIENTSxTHREADS"),
        (vec![text("target", "null:"), steps("0x1")], "at least one client"),
        (vec![text("target", "null:"), ("step", Value::Integer(0))], "longer than its warm-up"),
    ];
    for (given, says) in cases {
        let refused = scene.run(&given).expect_err(says);
        assert!(refused.sentence.contains(says), "{says}: {refused:?}");
        assert!(!refused.hint.is_empty(), "{says}");
    }
    assert!(scene.room.desk.runs().is_empty());
}

#[test]
fn definitions_are_checked() {
    let (_, good) = BUILT_IN[0];
    assert!(checked("mine", good).is_ok());
    let cases = [
        (good.replace("block", "blokc"), "blokc"),
        (good.replace("\"seqread\"", "\"sequread\""), "sequread"),
        ("title = ".to_owned(), "not well formed"),
        (good.replace("schedule = [", "schedule = [] # ["), "schedule needs steps"),
        (good.replace("answers = \"", "answers = \"\" # "), "question"),
    ];
    for (text, says) in cases {
        let why = checked("mine", &text).expect_err(says);
        assert!(why.contains(says), "{says}: {why}");
    }
}
