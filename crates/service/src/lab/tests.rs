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
    room: LabNode,
    dir: PathBuf,
}

impl Scene {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("plimsoll-room-{name}-{}", std::process::id()));
        // The desk is not started: what is queued stays queued.
        let desk =
            RunQueue::open(dir.clone(), "plimsoll".into(), dir.join("socket")).expect("a desk");
        let room = LabNode { desk, serving: Box::new(Fake), jobs: Mutex::default() };
        Self { room, dir }
    }

    fn run(&self, parameters: &[(&str, Value)]) -> Result<Json, Problem> {
        let given = parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let path = Path::of(&["lab", "jobs", "iops-4k"]);
        self.room.act(&path, "run", &given.collect(), &Actor::new("anna", "local"))
    }
}

impl Scene {
    fn act(&self, action: &str, parameters: &[(&str, Value)]) -> Result<Json, Problem> {
        let given = parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let path = Path::of(&["lab"]);
        self.room.act(&path, action, &given.collect(), &Actor::new("anna", "local"))
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
fn what_cannot_be_run_is_refused_with_the_reason() {
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
fn a_summary_has_a_column_for_each_protocol_of_a_share() {
    let scene = Scene::new("limits");
    let other = "nfs3://10.0.0.7:2049/export/x";
    let done = scene.act(
        "limits",
        &[
            ("targets", Value::texts(["data", other])),
            ("protocols", Value::texts(["nfs3", "nfs4"])),
            ("rows", Value::texts(["iops-4k", "write-stream"])),
            ("settings", Value::texts(["files=3"])),
        ],
    );
    let done = done.expect("queued");
    let own = ["nfs3", "nfs4"].map(|p| format!("{p}://127.0.0.1:2049/export/data"));
    assert_eq!(done["targets"], json!([own[0], own[1], other]));
    let run = scene.room.desk.run("r1").expect("it is there");
    assert_eq!((run.kind, run.jobs, run.quick, run.prove), (Kind::Limits, 2, true, false));
    assert_eq!(run.all_targets().iter().map(|t| t.own).collect::<Vec<_>>(), [true, true, false]);
    let job = std::fs::read_to_string(scene.dir.join("runs/r1/job-2.toml")).expect("a job");
    assert!(job.contains("name = \"write-stream\"") && job.contains("files = 3"), "{job}");
}

#[test]
fn a_comparison_has_two_targets() {
    let scene = Scene::new("ab");
    let text = |name: &'static str, value: &str| (name, Value::text(value));
    let done = scene.act(
        "ab",
        &[
            text("a", "data"),
            text("b", "null:"),
            ("rounds", Value::Integer(7)),
            ("to", Value::Integer(5)),
        ],
    );
    assert_eq!(done.expect("queued")["targets"][1], "null:");
    let run = scene.room.desk.run("r1").expect("it is there");
    assert_eq!((run.kind, run.rule), (Kind::Ab, Rule { to: 0.05, rounds: 7 }));
}

#[test]
fn summaries_and_comparisons_that_cannot_be_made_are_refused() {
    let scene = Scene::new("refused-both");
    let text = |name: &'static str, value: &str| (name, Value::text(value));
    let targets = |all: &[&str]| ("targets", Value::texts(all));
    let many = vec!["null:"; COLUMNS_MAX + 1];
    let cases = [
        ("limits", vec![], "1 to 16 columns"),
        ("limits", vec![targets(&many)], "1 to 16 columns"),
        ("limits", vec![targets(&["nope"])], "is not served"),
        ("limits", vec![targets(&["old"])], "read-only"),
        ("limits", vec![targets(&["full"])], "would write"),
        ("limits", vec![targets(&["path:/etc"])], "is not served"),
        ("limits", vec![targets(&["path:///etc"])], "for `plimsoll lab run` alone"),
        ("limits", vec![targets(&["null:"]), ("rows", Value::texts(["x"]))], "no job \"x\""),
        ("limits", vec![targets(&["null:"]), ("settings", Value::texts(["x"]))], "KEY=VALUE"),
        ("ab", vec![text("a", "data")], "is not served"),
        ("ab", vec![text("a", "null:"), text("b", "http://x/y")], "for `plimsoll lab run` alone"),
    ];
    for (action, given, says) in cases {
        let refused = scene.act(action, &given).expect_err(says);
        assert!(refused.sentence.contains(says), "{says}: {refused:?}");
        assert!(!refused.hint.is_empty() && refused.property.is_some(), "{says}");
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

const MAIL: &str = "define fileset name=s,entries=100,size=4k,prealloc,dirwidth=10\n\
    define process name=p { thread name=t { flowop statfile name=a,filesetname=s } }\nrun 5\n";

#[test]
fn a_program_is_read_before_it_is_queued() {
    let scene = Scene::new("program");
    let share = || ("share", Value::text("data"));
    let program = |text: &str| ("text", Value::text(text));
    let done = scene.act("program", &[share(), program(MAIL), ("seconds", Value::Integer(3))]);
    let done = done.expect("queued");
    assert_eq!(done["bytes"], 100 * 4096, "{done}");
    let run = scene.room.desk.run("r1").expect("it is there");
    let wml = run.wml.as_ref().expect("a program");
    assert_eq!((wml.file.as_str(), wml.seconds, run.own), ("program.f", Some(3), true));
    let file = std::fs::read_to_string(scene.dir.join("runs/r1/program.f"));
    assert_eq!(file.expect("its text"), MAIL);
    let refused = |parameters: &[(&str, Value)]| {
        let problem = scene.act("program", parameters).expect_err("refused");
        (problem.property.unwrap_or_default().to_string(), problem.sentence)
    };
    let name = ("name", Value::text("bad.f"));
    let (property, why) = refused(&[share(), name, program("set $a=1\nsystem \"true\"\n")]);
    assert_eq!(property, "text");
    assert!(why.starts_with("bad.f:2: at 'system': "), "{why}");
    let (property, _) = refused(&[("share", Value::text("old")), program(MAIL)]);
    assert_eq!(property, "share");
}

#[test]
fn tests_of_iozone_are_queued_with_their_options() {
    let scene = Scene::new("iozone");
    let share = || ("share", Value::text("data"));
    let done = scene.act(
        "iozone",
        &[
            share(),
            ("children", Value::Integer(3)),
            ("file_size", Value::Integer(1 << 20)),
            ("tests", Value::List(vec![Value::Integer(0), Value::Integer(1)])),
            ("retest", Value::Bool(false)),
        ],
    );
    assert_eq!(done.expect("queued")["bytes"], 3 << 20);
    let run = scene.room.desk.run("r1").expect("it is there");
    let iozone = run.iozone.expect("tests");
    let settings = iozone.settings;
    assert_eq!((settings.threads, settings.record, settings.tests), (3, 64 << 10, vec![0, 1]));
    assert!(settings.no_retest && !settings.no_stonewall && iozone.seed == 1);
    let odd = [share(), ("file_size", Value::Integer(100 << 10))];
    let problem = scene.act("iozone", &odd).expect_err("refused");
    assert!(problem.sentence.contains("multiple of its records"), "{}", problem.sentence);
}

#[test]
fn suites_are_queued_with_their_options() {
    let scene = Scene::new("suite");
    let share = || ("share", Value::text("data"));
    let sizes = ("sizes", Value::List(vec![Value::Integer(1), Value::Integer(65_536)]));
    let threads = ("threads", Value::List(vec![Value::Integer(3)]));
    let done = scene.act("seqread", &[share(), sizes, threads]).expect("queued");
    assert_eq!(done["bytes"], (8 * 3) << 20, "{done}");
    let run = scene.room.desk.run("r1").expect("it is there");
    assert_eq!((run.kind, run.job.as_str(), run.clients), (Kind::Suite, "seqread", 8));
    let words = run.suite.expect("a suite").words().join(" ");
    assert_eq!(words, "seqread --sizes 1,65536 --threads 3 --quick");
    let done = scene.act("filebench", &[share(), ("quick", Value::Bool(false))]);
    assert_eq!(done.expect("queued")["bytes"].as_u64(), Some((3 * 18 * 160) << 20));
    let odd = [share(), ("rows", Value::texts(["nope"]))];
    let problem = scene.act("filebench", &odd).expect_err("refused");
    assert_eq!(problem.property.as_deref(), Some("rows"), "{}", problem.sentence);
}

#[test]
fn a_network_profile_has_values_for_its_variables() {
    let scene = Scene::new("net");
    let profile = |name: &str| ("profile", Value::text(name));
    let settings = |text: &str| ("settings", Value::texts([text]));
    let done = scene.act("net", &[profile("lso-many"), settings("connections=5")]);
    let note = done.expect("queued")["note"].to_string();
    assert!(note.contains("20 threads to 127.0.0.11, 127.0.0.12"), "{note}");
    let run = scene.room.desk.run("r1").expect("it is there");
    assert_eq!((run.kind, run.job.as_str()), (Kind::Net, "lso-many"));
    assert_eq!((run.settings, run.cleaned), (vec!["connections=5".to_owned()], true));
    for (given, says) in [
        (vec![profile("nope")], "there is no network profile \"nope\""),
        (vec![profile("stream"), settings("threads")], "NAME=VALUE"),
        (vec![profile("stream"), settings("threads=0")], "expected 1 to 4096"),
    ] {
        let refused = scene.act("net", &given).expect_err(says);
        assert!(refused.sentence.contains(says), "{says}: {refused:?}");
    }
}
