//! Runs of load jobs that the server makes: a small one through the API, over both versions of NFS,
//! one that is aborted in the middle, one that a killed server leaves behind, and one that a server
//! ends with. Nothing stays in the share, and nothing that others have there goes.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use e2e::api::Api;
use e2e::process;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use serde_json::{Value, json};

/// How long anything here may take on a busy machine.
const PATIENCE: Duration = e2e::patience(60);

struct Scene {
    dir: PathBuf,
    state: PathBuf,
    _scratch: Scratch,
}

impl Scene {
    fn new(name: &str) -> Self {
        let scratch = Scratch::new(name);
        let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
        fs::create_dir(dir.join("place")).expect("a folder");
        // Named as the lab's own folders are, but not to be removed.
        fs::create_dir(dir.join("plimsoll-lab.0")).expect("a folder");
        fs::write(dir.join("plimsoll-lab.0/f0.1"), b"x").expect("a file");
        Self { dir, state, _scratch: scratch }
    }

    fn start(&self) -> (Server, Api) {
        let mut options = Options::new(&self.dir, &self.state);
        options.args.push("--no-portmap".into());
        (Server::start(&options), Api::new(&self.state))
    }

    /// What is in the share, and in the folder in which runs work.
    fn names(&self) -> Vec<String> {
        let list = |dir: PathBuf| fs::read_dir(dir).expect("a folder").flatten();
        let all = list(self.dir.clone()).chain(list(self.dir.join("place")));
        let mut names: Vec<String> =
            all.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn only_ours_is_there(&self) {
        assert_eq!(self.names(), ["place", "plimsoll-lab.0"]);
        assert!(self.dir.join("plimsoll-lab.0/f0.1").exists());
    }
}

/// Steps of less than a second.
fn short(more: &Value) -> Value {
    let mut parameters = json!({
        "share": "data", "folder": "place", "clients": 2, "file_size": 1 << 20,
        "schedule": ["1x1", "2x1"], "step": 1,
    });
    for (name, value) in more.as_object().expect("parameters") {
        parameters[name] = value.clone();
    }
    parameters
}

/// A run that lasts until it is ended.
fn long() -> Value {
    let steps: Vec<String> = (1..=60).map(|n| format!("2x{n}")).collect();
    short(&json!({ "schedule": steps, "step": 600 }))
}

fn act(api: &Api, path: &str, action: &str, parameters: &Value) -> (u16, Value) {
    let path = format!("/api/v1/nodes{path}/actions/{action}");
    api.post(&path, &json!({ "parameters": parameters }))
}

/// Queues a run; its id.
fn run(api: &Api, job: &str, parameters: &Value) -> String {
    let (code, answer) = act(api, &format!("/lab/jobs/{job}"), "run", parameters);
    assert_eq!(code, 200, "{answer}");
    answer["result"]["run"].as_str().expect("an id").to_owned()
}

fn of(api: &Api, id: &str) -> Value {
    let (code, runs) = api.get("/api/v1/lab/runs");
    assert_eq!(code, 200, "{runs}");
    let mut runs = runs.as_array().expect("runs").iter();
    runs.find(|run| run["id"] == id).expect("the run").clone()
}

/// Waits until a run is as wanted.
fn until(api: &Api, id: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let end = Instant::now() + PATIENCE;
    loop {
        let run = of(api, id);
        if wanted(&run) {
            return run;
        }
        assert!(Instant::now() < end, "{run}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn in_state(state: &'static str) -> impl Fn(&Value) -> bool {
    move |run| {
        let ended = ["failed", "aborted", "done"].iter().any(|end| run["state"] == *end);
        assert!(!ended || run["state"] == state, "not {state}: {run}");
        run["state"] == state
    }
}

#[test]
fn a_run_shows_its_progress_and_leaves_a_result_and_nothing_else() {
    let scene = Scene::new("lab-run");
    let (mut server, api) = scene.start();
    let first = run(&api, "iops-4k", &short(&json!({})));
    let second = run(&api, "create", &short(&json!({ "protocol": "nfs4" })));
    let third = run(&api, "iops-4k", &short(&json!({})));
    let (code, _) = act(&api, &format!("/lab/runs/{third}"), "abort", &json!({}));
    assert_eq!(code, 200, "what waits can be taken back");
    let seen = until(&api, &first, in_state("running"));
    assert!(seen["planned"].as_array().is_some_and(|all| all.len() == 2), "{seen}");
    for id in [&first, &second] {
        let ended = until(&api, id, in_state("done"));
        let steps = ended["steps"].as_array().expect("steps");
        assert!(!steps.is_empty() && steps.len() <= 2, "{ended}");
        assert!(ended["value"].is_string() && ended["limiter"].is_string(), "{ended}");
        let (code, result) = api.get(&format!("/api/v1/lab/runs/{id}/result"));
        assert_eq!((code, &result["server"]["seen"]), (200, &json!("api")), "seen by its own API");
        assert_eq!(result["steps"][0]["errors"], 0, "{}", result["steps"][0]["first_error"]);
    }
    scene.only_ours_is_there();
    let (code, node) = api.get(&format!("/api/v1/nodes/lab/runs/{first}"));
    let report = |p: &Value| p["name"] == "report" && p["value"].is_string();
    assert!(code == 200 && node["properties"].as_array().expect("all").iter().any(report));
    let (code, _) = api.get(&format!("/api/v1/lab/compare?a={first}&b={second}"));
    assert_eq!(code, 200);
    assert_eq!(act(&api, &format!("/lab/runs/{first}"), "destroy", &json!({})).0, 200);
    assert_eq!(api.get(&format!("/api/v1/nodes/lab/runs/{first}")).0, 404);
    assert!(!scene.state.join("lab/runs").join(&first).exists());
    assert!(server.stop().success());
}

#[test]
fn a_run_can_be_aborted_in_the_middle() {
    let scene = Scene::new("lab-abort");
    let (_server, api) = scene.start();
    let id = run(&api, "write-stream", &long());
    until(&api, &id, in_state("running"));
    assert_eq!(scene.names().len(), 3, "its folder is there: {:?}", scene.names());
    let path = format!("/lab/runs/{id}");
    assert_eq!(act(&api, &path, "destroy", &json!({})).0, 409, "it is under way");
    assert_eq!(act(&api, &path, "abort", &json!({})).0, 200);
    let ended = until(&api, &id, |run| run["state"] == "aborted" && run["cleaned"] == true);
    assert!(ended["message"].as_str().is_some_and(|m| m.starts_with("aborted by")), "{ended}");
    scene.only_ours_is_there();
}

#[test]
fn a_restart_in_the_middle_is_reported_and_leaves_nothing() {
    let scene = Scene::new("lab-restart");
    let (server, api) = scene.start();
    let killed = run(&api, "iops-4k", &long());
    until(&api, &killed, in_state("running"));
    process::signal(server.pid(), libc::SIGKILL);
    drop(server);
    let (mut server, api) = scene.start();
    let told = until(&api, &killed, |run| run["cleaned"] == true);
    assert_eq!((&told["state"], &told["message"]), (&json!("aborted"), &json!(RESTARTED)));
    scene.only_ours_is_there();
    // Ended in order, it removes what is there while it is still served.
    let ended = run(&api, "iops-4k", &long());
    until(&api, &ended, in_state("running"));
    assert!(server.stop().success());
    scene.only_ours_is_there();
    let (_server, api) = scene.start();
    let told = of(&api, &ended);
    assert_eq!((&told["state"], &told["message"]), (&json!("aborted"), &json!(RESTARTED)));
}

const RESTARTED: &str = "the server restarted";

#[test]
fn jobs_of_users_are_checked_and_run() {
    let scene = Scene::new("lab-jobs");
    let (_server, api) = scene.start();
    let good = "title = \"Reads\"\nanswers = \"How many?\"\nexpect = \"the CPU\"\n\
                workload = \"randread\"\nfile_size = 65536\nschedule = [[1, 1]]\n\
                warmup_ms = 50\nwindow_ms = 50\nstep_max_ms = 400\n";
    let create = |text: &str| {
        let properties = json!({ "definition": text });
        let change = json!({"create": "/lab/jobs", "name": "mine", "properties": properties});
        api.post("/api/v1/changes", &json!({ "changes": [change] }))
    };
    let (code, answer) = create(&good.replace("randread", "rondread"));
    assert_eq!(code, 400, "{answer}");
    assert_eq!(answer["error"]["property"], "definition", "{answer}");
    assert!(answer["error"]["failed"].as_str().is_some_and(|s| s.contains("rondread")), "{answer}");
    assert_eq!(create(good).0, 200);
    let fixed = json!({"set": "/lab/jobs/iops-4k", "property": "definition", "value": good});
    let (code, answer) = api.post("/api/v1/changes", &json!({ "changes": [fixed] }));
    assert_ne!(code, 200, "it comes with the program: {answer}");
    let (code, answer) = act(&api, "/lab/jobs/mine", "run", &json!({ "target": "path:/etc" }));
    assert_eq!((code, &answer["error"]["property"]), (400, &json!("target")), "{answer}");
    let id = run(&api, "mine", &json!({ "target": "null:", "clients": 1 }));
    let ended = until(&api, &id, in_state("done"));
    assert_eq!(ended["job"], "mine");
}

/// Queues a summary, a comparison or a network profile; its id.
fn several(api: &Api, action: &str, parameters: &Value) -> String {
    let (code, answer) = act(api, "/lab", action, parameters);
    assert_eq!(code, 200, "{answer}");
    answer["result"]["run"].as_str().expect("an id").to_owned()
}

/// Values of jobs for steps of less than a second.
const SMALL: [&str; 5] =
    ["schedule=[[1,1],[2,1]]", "file_size=1m", "warmup_ms=50", "window_ms=50", "step_max_ms=500"];

#[test]
fn a_summary_and_a_comparison_leave_results_and_nothing_else() {
    let scene = Scene::new("lab-several");
    let (mut server, api) = scene.start();
    let summary = several(
        &api,
        "limits",
        &json!({"targets": ["data"], "protocols": ["nfs3", "nfs4"], "quick": false,
            "rows": ["iops-4k"], "clients": 2, "settings": SMALL}),
    );
    let comparison = several(
        &api,
        "ab",
        &json!({"a": "data", "b": "data", "jobs": ["iops-4k"], "rounds": 1, "clients": 2,
            "settings": SMALL}),
    );
    let stopped = several(
        &api,
        "ab",
        &json!({"a": "data", "b": "data", "jobs": ["iops-4k"], "rounds": 500, "clients": 2,
            "settings": SMALL}),
    );
    let part = |run: &Value| run["part"].as_str().unwrap_or_default().to_owned();
    until(&api, &summary, |run| part(run).starts_with("column 2 of 2: nfs4; row 1 of 1: "));
    let ended = until(&api, &summary, in_state("done"));
    assert_eq!(ended["value"], "2 of 2 cells measured", "{ended}");
    let (code, result) = api.get(&format!("/api/v1/lab/runs/{summary}/result"));
    let columns = result["columns"].as_array().expect("columns");
    assert_eq!((code, columns.len()), (200, 2), "{result}");
    for column in columns {
        assert_eq!(column["server"]["seen"], "api", "{column}");
    }
    let (code, page) = api.text(&format!("/api/v1/lab/runs/{summary}/report"));
    assert!(code == 200 && page.contains("Performance Limit Summary"));
    let (_, figures) = api.get(&format!("/api/v1/lab/runs/{summary}/figures"));
    assert_eq!(figures["kind"], "summary");

    let ended = until(&api, &comparison, in_state("done"));
    assert!(ended["why"][0].as_str().is_some_and(|why| why.contains("undecided")), "{ended}");
    let (_, figures) = api.get(&format!("/api/v1/lab/runs/{comparison}/figures"));
    assert_eq!(figures["kind"], "ab");
    let file = |what: &str| api.get(&format!("/api/v1/lab/runs/{comparison}/{what}")).0;
    assert_eq!((file("result"), file("report")), (200, 404));

    until(&api, &stopped, |run| part(run).contains("round 1 of 500: "));
    assert_eq!(act(&api, &format!("/lab/runs/{stopped}"), "abort", &json!({})).0, 200);
    until(&api, &stopped, in_state("aborted"));
    until(&api, &stopped, |run| run["cleaned"] == true);
    scene.only_ours_is_there();
    assert!(server.stop().success());
}

#[test]
fn a_network_profile_is_made_and_stopped() {
    let scene = Scene::new("lab-net");
    let (mut server, api) = scene.start();
    let start = |profile: &str, settings: &[&str]| {
        several(&api, "net", &json!({ "profile": profile, "settings": settings }))
    };
    let stream = start("stream", &["duration=1s", "threads=2"]);
    let long = start("lso-many", &["duration=10m"]);
    let ended = until(&api, &stream, in_state("done"));
    let value = ended["value"].as_str().expect("a value");
    assert!(value.contains("/s of payload, "), "{ended}");
    let (code, result) = api.get(&format!("/api/v1/lab/runs/{stream}/result"));
    assert_eq!((code, &result["kind"], &result["threads"]), (200, &json!("net"), &json!(2)));
    let (code, page) = api.text(&format!("/api/v1/lab/runs/{stream}/report"));
    assert!(code == 200 && page.contains("Both ends"), "{page}");
    let (_, figures) = api.get(&format!("/api/v1/lab/runs/{stream}/figures"));
    assert_eq!(figures["kind"], "net");
    // What is stopped leaves no agent.
    let part = |run: &Value| run["part"].as_str().unwrap_or_default().to_owned();
    until(&api, &long, |run| part(run).starts_with("transaction 1: "));
    assert_eq!(act(&api, &format!("/lab/runs/{long}"), "abort", &json!({})).0, 200);
    until(&api, &long, in_state("aborted"));
    let (code, answer) = act(&api, "/lab", "net", &json!({ "profile": "nope" }));
    assert!(code == 400 || code == 422, "{code}: {answer}");
    assert!(server.stop().success());
    scene.only_ours_is_there();
}
