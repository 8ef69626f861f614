//! The books balance: after a run of eight clients has drained, each has exactly as many operations
//! in the statistics as it made, every breakdown of a second sums to the same, store and recorder
//! agree, and so do API and command line.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use e2e::api::{self, Api, sum};
use e2e::process;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server, binary};
use serde_json::Value;
use wire::nfs3::{CreateHow, DiropArgs, Fh3, Filename3, Proc, RemoveArgs, Sattr3};

#[path = "accounting/iscsi.rs"]
mod iscsi;
#[path = "accounting/lab4.rs"]
mod lab4;
#[path = "accounting/smb.rs"]
mod smb;
#[path = "accounting/versions.rs"]
mod versions;

/// All breakdowns of NFSv3, and of NFSv4.
const BREAKDOWNS: [&str; 9] =
    ["op", "client", "user", "share", "file", "latency", "size", "offset", "status"];
/// How long a run may take on a busy machine.
const RUN: Duration = e2e::patience(60);

/// A server, and a run against it that is over.
struct Scene {
    server: Server,
    api: Api,
    state: PathBuf,
    result: Value,
    /// Whole seconds around the run.
    interval: (i64, i64),
    _scratch: Scratch,
}

impl Scene {
    /// Runs `job` with eight clients, and waits until its last second is in the statistics.
    fn new(job: &str, settings: &[&str]) -> Self {
        let scratch = Scratch::below(Path::new("/dev/shm"), job);
        let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
        let server = Server::start(&Options::new(&dir, &state));
        let api = Api::new(&state);
        // The recorder answers for whole seconds of its life only.
        let from = api::now() + 1;
        api.wait_for_second(from - 1);
        let result = run(job, &server, &scratch.path().join("out"), settings);
        let to = api::now() + 1;
        api.wait_for_second(to);
        Self { server, api, state, result, interval: (from, to), _scratch: scratch }
    }

    fn data(&self, stat: &str, more: &str) -> Value {
        self.api.data(stat, self.interval, more)
    }

    /// The sum over the run of each row, by key.
    fn rows(&self, stat: &str, more: &str) -> BTreeMap<String, u64> {
        by_key(&self.data(stat, more))
    }
}

fn run(job: &str, server: &Server, out: &Path, settings: &[&str]) -> Value {
    let target = format!("nfs3://127.0.0.1:{}{}", server.nfs_port(), server.export());
    run_at(job, &target, out, settings)
}

fn run_at(job: &str, target: &str, out: &Path, settings: &[&str]) -> Value {
    let common = ["warmup_ms=200", "window_ms=200", "step_max_ms=1600", "file_size=1m"];
    let mut command = Command::new(binary());
    command.args(["lab", "run", job, "--target", target, "--clients", "8", "--json"]);
    // A run that was disturbed counts, and one more would be counted too.
    command.args(["--retries", "0", "--out"]);
    command.arg(out).args(common.iter().chain(settings).flat_map(|s| ["--set", s]));
    let output = process::run(&mut command, RUN);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // 3: a step that was not steady changes nothing of what is counted.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}\n{said}", output.status);
    let text = fs::read_to_string(out.join("result.json")).expect("result.json");
    serde_json::from_str(&text).expect("JSON")
}

/// Rows or buckets of a data object: key to sum over all seconds. What is in neither is "other".
fn by_key(data: &Value) -> BTreeMap<String, u64> {
    let list = |name: &str| data[name].as_array().cloned().unwrap_or_default();
    let rows = list("rows").into_iter().map(|row| {
        let key = row["key"].as_str().expect("a key").to_owned();
        (key, sum(&row["values"]))
    });
    let buckets = list("buckets")
        .into_iter()
        .map(|b| (format!("{}-{}", b["low"], b["high"]), sum(&b["values"])));
    let other = std::iter::once(("other".to_owned(), sum(&data["other"]["values"])));
    rows.chain(buckets).chain(other).filter(|(_, n)| *n > 0).collect()
}

/// The sum of all rows, buckets and the rest, for each second; `None` where there are no data.
fn parts_by_second(data: &Value) -> Vec<Option<u64>> {
    let lists = ["rows", "buckets"].into_iter().filter_map(|name| data[name].as_array()).flatten();
    let values: Vec<&Value> = lists.chain(std::iter::once(&data["other"])).collect();
    let seconds = data["total"].as_array().expect("a total");
    let second = |at: usize| {
        let parts = values.iter().filter_map(|part| part["values"][at].as_f64());
        seconds[at].is_number().then(|| parts.sum::<f64>().round() as u64)
    };
    (0..seconds.len()).map(second).collect()
}

fn totals(data: &Value) -> Vec<Option<u64>> {
    let total = data["total"].as_array().expect("a total");
    total.iter().map(|value| value.as_f64().map(|n| n.round() as u64)).collect()
}

/// Each client of the run by its address, with the calls that it reports.
fn calls(result: &Value) -> BTreeMap<String, u64> {
    let clients = result["clients"].as_array().expect("clients");
    let one = |client: &Value| {
        assert!(client["lost"].is_null(), "{client:#}");
        let address = client["bind"].as_str().expect("an address").to_owned();
        (address, client["calls"].as_u64().expect("calls"))
    };
    clients.iter().map(one).collect()
}

fn each_client_counts_as_it_says(scene: &Scene) {
    let made = calls(&scene.result);
    assert_eq!(made.len(), 8, "{made:?}");
    assert!(made.values().all(|calls| *calls > 50), "{made:?}");
    assert_eq!(scene.rows("nfs3.ops[client]", ""), made, "statistics and agents");
    assert_eq!(scene.api.count("nfs3.replays", scene.interval), 0);
    assert_eq!(scene.api.count("analytics.dropped", scene.interval), 0);
}

fn every_breakdown_sums_to_the_same(scene: &Scene, metrics: &[&str]) {
    for metric in metrics {
        for source in ["store", "recorder"] {
            let more = format!("&source={source}");
            let raw = totals(&scene.data(metric, &more));
            let busy = raw.iter().flatten().filter(|n| **n > 0).count();
            assert!(busy >= 2, "{metric} from the {source}: {raw:?}");
            for by in BREAKDOWNS {
                let data = scene.data(&format!("{metric}[{by}]"), &more);
                assert_eq!(totals(&data), raw, "total of {metric}[{by}] from the {source}");
                assert_eq!(parts_by_second(&data), raw, "{metric}[{by}] from the {source}");
            }
        }
    }
}

fn store_and_recorder_agree(scene: &Scene) {
    for metric in ["nfs3.ops", "nfs3.bytes"] {
        for by in BREAKDOWNS {
            let stat = format!("{metric}[{by}]");
            let store = scene.data(&stat, "&source=store");
            let recorder = scene.data(&stat, "&source=recorder");
            assert_eq!(store["source"], "store");
            assert_eq!(recorder["source"], "recorder");
            assert_eq!(by_key(&store), by_key(&recorder), "{stat}");
            assert_eq!(totals(&store), totals(&recorder), "{stat} by second");
            assert_eq!(store["exact"], true, "{stat}");
            assert_eq!(recorder["exact"], true, "{stat}");
        }
    }
}

/// The phases of a protocol's operations: together they are all operations, and their times the
/// mean latency that the records have. Whatever the operations waited for.
fn phases_add_up(api: &Api, interval: (i64, i64), group: &str, busy: &[&str]) {
    let (from, to) = interval;
    let path = format!("/api/v1/analytics/counts?group={group}&from={from}&to={to}");
    let (code, counts) = api.get(&path);
    assert_eq!((code, &counts["complete"]), (200, &Value::Bool(true)), "{counts}");
    let sum_of = |what: &str| -> f64 {
        let rows = counts["rows"].as_array().expect("rows").iter();
        rows.map(|row| row[what].as_f64().expect("a number")).sum()
    };
    let latency = sum_of("latency_ns") / sum_of("count");
    for source in ["store", "recorder"] {
        let more = format!("&source={source}");
        let raw = api.data(&format!("{group}.ops"), interval, &more);
        let data = api.data(&format!("{group}.ops[phase]"), interval, &more);
        assert_eq!(data["source"], source);
        assert_eq!(totals(&data), totals(&raw), "{group} from the {source}");
        assert_eq!(parts_by_second(&data), totals(&raw), "{group} from the {source}");
        let rows = data["rows"].as_array().expect("rows");
        let sum = |what: &str| -> f64 {
            rows.iter().map(|row| row["time"][what].as_f64().expect("a time")).sum()
        };
        let (mean, shares) = (sum("average_ns"), sum("share"));
        assert!((mean / latency - 1.0).abs() < 0.02, "{group}, {source}: {mean} of {latency}");
        assert!((shares - 1.0).abs() < 1e-6, "{group}, {source}: {shares}");
        for phase in busy {
            let row = rows.iter().find(|row| row["key"] == *phase);
            let time = row.and_then(|row| row["time"]["average_ns"].as_f64());
            assert!(time.is_some_and(|ns| ns > 0.0), "{group} from the {source}: no {phase}");
        }
    }
}

fn the_command_line_agrees(scene: &Scene, stat: &str) {
    let (from, to) = (scene.interval.0.to_string(), scene.interval.1.to_string());
    let mut command = Command::new(binary());
    command.args(["analytics", "show", stat, "--from", &from, "--to", &to, "--top", "1000"]);
    command.arg("--json").arg("--state").arg(&scene.state);
    let printed = process::succeed(&mut command);
    let printed: Value = serde_json::from_slice(&printed).expect("JSON");
    assert_eq!(printed, scene.data(stat, ""), "{stat}");
}

/// People read the time of each phase, and its share.
fn the_phases_are_a_table(scene: &Scene) {
    let (from, to) = (scene.interval.0.to_string(), scene.interval.1.to_string());
    let mut command = Command::new(binary());
    command.args(["analytics", "show", "nfs.ops[phase]", "--from", &from, "--to", &to]);
    command.arg("--state").arg(&scene.state);
    let printed = String::from_utf8(process::succeed(&mut command)).expect("text");
    let has = |words: &[&str]| printed.lines().any(|line| words.iter().all(|w| line.contains(w)));
    assert!(has(&["broken down by phase"]), "{printed}");
    assert!(has(&["average", "latency", "share"]), "{printed}");
    assert!(has(&["µs", "%", "inline"]) || has(&["ms", "%", "inline"]), "{printed}");
}

/// A client's figures by several filters at once.
fn drill_downs_answer(scene: &Scene, op: &str) {
    let one = "127.0.0.11";
    let by_op = scene.rows(&format!("nfs3.ops[client={one}][op]"), "");
    let wanted = by_op[op];
    assert!(wanted > 50, "{by_op:?}");

    let latency = scene.data(&format!("nfs3.ops[op={op}][client={one}][latency]"), "");
    assert_eq!(by_key(&latency).values().sum::<u64>(), wanted, "{latency:#}");
    let title = latency["title"].as_str().expect("a title");
    assert!(title.contains(op) && title.contains(one), "{title}");

    let files = scene.data(&format!("nfs3.ops[client={one}][op={op}][file]"), "");
    let rows = files["rows"].as_array().expect("rows");
    assert_eq!(by_key(&files).values().sum::<u64>(), wanted, "{files:#}");
    assert!(!rows.is_empty(), "{files:#}");
    for row in rows {
        let label = row["label"].as_str().expect("a label");
        assert!(label.contains('/') && !label.contains("inode"), "not a path: {label}");
        // And back: the file's key as a filter gives its client.
        let key = row["key"].as_str().expect("a key");
        let back = scene.rows(&format!("nfs3.ops[op={op}][file={key}][client]"), "");
        assert_eq!(back.get(one), Some(&sum(&row["values"])), "{label}: {back:?}");
    }

    // Three parts by size (files are prepared in larger pieces), two by place and by time.
    let parts = |stat: &str, ranges: &[&str]| -> Vec<u64> {
        let part =
            |range: &&str| scene.rows(&stat.replace('*', range), "").get(one).copied().unwrap_or(0);
        ranges.iter().map(part).collect()
    };
    let size = format!("nfs3.ops[op={op}][size=*][client]");
    let by_size = parts(&size, &["0-4096", "4096-4097", "4097-2000000"]);
    assert!(by_size[0] == 0 && by_size[1] > 50, "{by_size:?}");
    assert_eq!(by_size.iter().sum::<u64>(), wanted, "{by_size:?}");
    let offset = format!("nfs3.ops[op={op}][offset=*][client]");
    let by_offset = parts(&offset, &["0-524288", "524288-1048576"]);
    assert!(by_offset.iter().all(|n| *n > 0), "{by_offset:?}");
    assert_eq!(by_offset.iter().sum::<u64>(), wanted, "{by_offset:?}");
    let latency = format!("nfs3.ops[op={op}][latency=*][client]");
    let by_latency = parts(&latency, &["0-300000", "300000-60000000000"]);
    assert_eq!(by_latency.iter().sum::<u64>(), wanted, "{by_latency:?}");
}

#[test]
fn reads_of_eight_clients() {
    let mut scene = Scene::new("iops-4k", &["schedule=[[8,1],[8,2]]"]);
    each_client_counts_as_it_says(&scene);
    every_breakdown_sums_to_the_same(&scene, &["nfs3.ops", "nfs3.bytes"]);
    store_and_recorder_agree(&scene);
    drill_downs_answer(&scene, "read");
    phases_add_up(&scene.api, scene.interval, "nfs3", &["inline", "send"]);
    the_command_line_agrees(&scene, "nfs3.ops[op=read][phase]");
    the_phases_are_a_table(&scene);
    for stat in ["nfs3.ops", "nfs3.ops[client]", "nfs3.ops[op=read][client=127.0.0.12][latency]"] {
        the_command_line_agrees(&scene, stat);
    }
    assert!(scene.server.stop().success());
}

#[test]
fn synchronous_writes_of_eight_clients() {
    let mut scene = Scene::new("syncwrite-4k", &["schedule=[[8,1],[8,2]]"]);
    each_client_counts_as_it_says(&scene);
    every_breakdown_sums_to_the_same(&scene, &["nfs3.ops", "nfs3.bytes"]);
    store_and_recorder_agree(&scene);
    drill_downs_answer(&scene, "write");
    phases_add_up(&scene.api, scene.interval, "nfs3", &["send"]);
    assert!(scene.server.stop().success());
}

#[test]
fn creations_of_eight_clients() {
    let mut scene = Scene::new("create", &["schedule=[[8,1],[8,2]]"]);
    each_client_counts_as_it_says(&scene);
    every_breakdown_sums_to_the_same(&scene, &["nfs3.ops"]);
    // The run has more files than one second retains separately. The store and the recorder must
    // agree on all other breakdowns.
    for by in BREAKDOWNS.into_iter().filter(|by| *by != "file") {
        let stat = format!("nfs3.ops[{by}]");
        let store = scene.rows(&stat, "&source=store");
        assert_eq!(store, scene.rows(&stat, "&source=recorder"), "{stat}");
    }
    assert!(scene.server.stop().success());
}

#[test]
fn replays_are_counted_apart() {
    let scratch = Scratch::new("replays");
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let started = api::now();
    let server = Server::start(&Options::new(&dir, &state));
    let api = Api::new(&state);
    let from = api::now();
    let (mut client, root) = server.mount(0, 0);
    client.create(&root, "f", CreateHow::Guarded(Sattr3::default())).expect("a file");
    let object = DiropArgs { dir: Fh3(&root), name: Filename3(b"f") };
    let record = client.nfs_record(Proc::REMOVE, &RemoveArgs { object });
    let mut answers = Vec::new();
    for _ in 0..3 {
        client.send(&record).expect("sent");
        answers.push(client.receive().expect("an answer"));
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    let to = api::now() + 1;
    api.wait_for_second(to);
    let interval = (from, to);
    assert_eq!(api.count("nfs3.ops[op=remove]", interval), 1);
    assert_eq!(api.count("nfs3.ops", interval), 2);
    assert_eq!(api.count("nfs3.replays", interval), 2);
    assert_eq!(by_key(&api.data("nfs3.replays[op]", interval, ""))["remove"], 2);
    assert_eq!(by_key(&api.data("nfs3.replays[client]", interval, ""))["127.0.0.1"], 2);
    api.wait_counter("server.drc_replays", started, 2);
}
