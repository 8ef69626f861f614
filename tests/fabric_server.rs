//! A server on a machine of a simulated fabric (ibsim, OpenSM): nodes, ports, links, problems and
//! statistics through its tree. Part of `make test-long NAME=fabric`.

#[path = "../crates/host/fabric/tests/ibsim/bed.rs"]
mod bed;

use std::fs;
use std::time::{Duration, Instant};

use e2e::api::{Api, now, wait_for};
use e2e::browser::{self, Browser, PASSWORD};
use e2e::netns::Namespace;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::{is_root, skip};
use serde_json::{Value, json};

use bed::Bed;

const FABRIC: &str = "/maintenance/fabric";
/// Two intervals of the monitor, on a busy machine.
const SEEN: Duration = Duration::from_secs(60);

/// A server as `host2` of a fabric.
struct Scene {
    server: Server,
    api: Api,
    bed: Bed,
    namespace: Namespace,
    _scratch: Scratch,
}

impl Drop for Scene {
    fn drop(&mut self) {
        // The preloaded library has left its files in the folder in which the server was started.
        let _ = fs::remove_dir_all(format!("sys-{}", self.server.pid()));
    }
}

impl Scene {
    fn start(test: &str, switches: usize, hosts: usize) -> Result<Self, String> {
        if !is_root() {
            return Err("needs root".to_owned());
        }
        let namespace = Namespace::with("ip link set lo up").map_err(|e| e.to_string())?;
        let bed = Bed::within(namespace.pid(), test, switches, hosts).ok_or("needs ibsim")?;
        let scratch = Scratch::new(test);
        let (dir, state) = (scratch.folder("data", None), scratch.path().join("state"));
        let options = Options {
            namespace: Some(&namespace),
            offset: Some(10_000),
            env: bed::environment("host2").into(),
            ..Options::new(&dir, &state)
        };
        let server = Server::start(&options);
        Ok(Self { server, api: Api::new(&state), bed, namespace, _scratch: scratch })
    }

    fn node(&self, path: &str) -> Value {
        let (code, node) = self.api.get(&format!("/api/v1/nodes{path}"));
        assert_eq!(code, 200, "{path}: {node:#}");
        node
    }

    fn value(&self, path: &str, property: &str) -> Value {
        let node = self.node(path);
        let all = node["properties"].as_array().cloned().unwrap_or_default();
        let one = all.into_iter().find(|one| one["name"] == property);
        one.map(|one| one["value"].clone()).unwrap_or_default()
    }

    fn items(&self, path: &str) -> Vec<String> {
        let node = self.node(path);
        let items = node["items"].as_array().into_iter().flatten();
        items
            .filter_map(|item| item.as_str().or(item["name"].as_str()).map(str::to_owned))
            .collect()
    }

    fn wait_for_problem(&self, id: &str, is_there: bool) {
        let ids = || self.items("/maintenance/problems");
        wait_for(id, SEEN, || (ids().iter().any(|one| one == id) == is_there).then_some(()));
    }

    /// Processor time of the thread of the monitor so far.
    fn monitor_time(&self) -> Duration {
        let tasks = format!("/proc/{}/task", self.server.pid());
        let mut tasks = fs::read_dir(tasks).expect("threads").flatten();
        let is_it = |comm: std::io::Result<String>| comm.is_ok_and(|name| name.trim() == "fabric");
        let task = tasks.find(|task| is_it(fs::read_to_string(task.path().join("comm"))));
        let stat = task.map(|task| fs::read_to_string(task.path().join("schedstat")));
        let stat = stat.expect("the thread of the monitor").expect("schedstat");
        let ns = stat.split(' ').next().and_then(|ns| ns.parse().ok());
        Duration::from_nanos(ns.expect("nanoseconds"))
    }

    fn resident_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.server.pid()));
        let status = status.expect("a process");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
        line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("kilobytes")
    }
}

#[test]
fn the_tree_has_the_fabric_and_its_problems() {
    let scene = match Scene::start("fabric-tree", 2, 10) {
        Ok(scene) => scene,
        Err(why) => skip!("fabric-tree", "{why}"),
    };
    let observed = || (scene.value(FABRIC, "state") == "observed").then_some(());
    wait_for("the fabric is read", SEEN, observed);
    assert_eq!(scene.value(FABRIC, "reason"), "");
    for (property, count) in [("nodes_found", 12), ("ports_linked", 24), ("links_found", 12)] {
        assert_eq!(scene.value(FABRIC, property), count, "{property}");
    }
    assert_eq!(scene.value(FABRIC, "pkeys"), json!(["0xffff (full) at host2:1"]));
    assert_eq!(scene.items(&format!("{FABRIC}/nodes")).len(), 12);
    assert_eq!(scene.value(&format!("{FABRIC}/nodes/sw1"), "kind"), "switch");
    let port = format!("{FABRIC}/ports/host7:1");
    assert_eq!(scene.value(&port, "peer"), "sw2:2");
    assert_eq!(scene.value(&port, "counters"), "64 bits");
    assert!(scene.items(&format!("{FABRIC}/links")).contains(&"sw1:33".to_owned()));

    // Until it ends: an interval without more errors.
    scene.bed.console("PerformanceSet \"host7\"[1] PortCounters.SymbolErrorCounter=9");
    scene.wait_for_problem("fabric-symbol-errors-host7:1", true);
    assert_eq!(scene.value(&port, "errors"), json!(["symbol: 9"]));
    scene.wait_for_problem("fabric-symbol-errors-host7:1", false);

    // A P_Key that the subnet manager gives is offered, until it is removed. (An open page:
    // `an_open_page_follows_the_partitions_of_the_subnet_manager`.)
    let datalinks = "/configuration/network/datalinks";
    let offers = || scene.value(datalinks, "offers").as_array().cloned().unwrap_or_default();
    assert_eq!(offers(), [] as [Value; 0]);
    let full = "Default=0x7fff, ipoib : ALL=full;\n";
    let began = Instant::now();
    scene.bed.partitions(&format!("{full}one=0x0001 : ALL=full;\n"));
    wait_for("an offer", SEEN, || (!offers().is_empty()).then_some(()));
    println!("0x8001 is offered after {} ms", began.elapsed().as_millis());
    let offer = offers()[0].as_str().map(str::to_owned).unwrap_or_default();
    assert!(offer.starts_with("0x8001 (full): port host2:1, GUID 0x"), "{offer}");
    let table = scene.bed.on("host2", &["smpquery", "pkeys", "-D", "0"]);
    assert!(table.contains("0x8001"), "{table}");
    scene.bed.partitions(full);
    wait_for("no offer", SEEN, || offers().is_empty().then_some(()));

    scene.bed.stop_manager();
    scene.wait_for_problem("fabric-no-subnet-manager-host2:1", true);
    let problem = "/maintenance/problems/fabric-no-subnet-manager-host2:1";
    assert_eq!(scene.value(problem, "severity"), "major");
    assert_eq!(scene.value(problem, "source"), "fabric");
}

/// The page of a real server on a fabric, with a port with errors and without a subnet manager, and
/// the pages of a node, a port and the problems.
#[test]
fn the_page_of_the_fabric_in_a_browser() {
    if let Some(what) = browser::missing() {
        skip!("fabric-looks", "{what}");
    }
    let scene = match Scene::start("fabric-looks", 2, 10) {
        Ok(scene) => scene,
        Err(why) => skip!("fabric-looks", "{why}"),
    };
    let observed = || (scene.value(FABRIC, "state") == "observed").then_some(());
    wait_for("the fabric is read", SEEN, observed);
    let mut page = Browser::within(&scene.namespace);
    page.open(&scene.server, "admin", PASSWORD);
    let mut looks = |path: &str, name: &str, words: &[&str]| {
        let looks = json!({ "do": "looks", "path": path, "name": name, "words": words });
        page.ask(&looks).unwrap_or_else(|why| panic!("{path}: {why}"));
    };
    looks(FABRIC, "fabric", &["sw1", "host7:1", "sw1:33"]);
    scene.bed.console("PerformanceSet \"host7\"[1] PortCounters.SymbolErrorCounter=9");
    scene.wait_for_problem("fabric-symbol-errors-host7:1", true);
    let port = format!("{FABRIC}/ports/host7:1");
    looks(&port, "fabric-port", &["sw2:2"]);
    looks(&format!("{FABRIC}/nodes/sw1"), "fabric-node", &["sw1"]);
    scene.bed.stop_manager();
    scene.wait_for_problem("fabric-no-subnet-manager-host2:1", true);
    let words = ["No subnet manager replies to host2:1"];
    looks(FABRIC, "fabric-problem", &words);
    looks("/maintenance/problems", "fabric-problems", &words);
    assert_eq!(page.ask(&json!({ "do": "complaints" })), Ok(json!([])));
}

/// How long an open page may take to show what the subnet manager has changed.
const PAGE: Duration = Duration::from_secs(5);

#[test]
fn an_open_page_follows_the_partitions_of_the_subnet_manager() {
    if let Some(what) = browser::missing() {
        skip!("fabric-page", "{what}");
    }
    let scene = match Scene::start("fabric-page", 1, 4) {
        Ok(scene) => scene,
        Err(why) => skip!("fabric-page", "{why}"),
    };
    let observed = || (scene.value(FABRIC, "state") == "observed").then_some(());
    wait_for("the fabric is read", SEEN, observed);
    let mut page = Browser::within(&scene.namespace);
    page.open(&scene.server, "admin", PASSWORD);
    page.ask(&json!({ "do": "stay", "path": "/configuration/network" })).expect("a page");
    let mut follows = |partitions: &str, is_there: bool| {
        let began = Instant::now();
        scene.bed.partitions(partitions);
        let listed = json!({ "do": "listed", "list": "Offered partitions",
            "text": "0x8001 (full)", "there": is_there });
        page.ask(&listed).expect("the list of the page");
        let took = began.elapsed();
        let what = if is_there { "offered" } else { "taken back" };
        println!("0x8001 is {what}: on the open page {} ms after SIGHUP", took.as_millis());
        e2e::took_at_most(&format!("a page that shows a partition {what}"), took, PAGE);
        let table = scene.bed.on("host2", &["smpquery", "pkeys", "-D", "0"]);
        assert_eq!(table.contains("0x8001"), is_there, "{table}");
    };
    let full = "Default=0x7fff, ipoib : ALL=full;\n";
    for _ in 0..3 {
        follows(&format!("{full}one=0x0001 : ALL=full;\n"), true);
        follows(full, false);
    }
}

#[test]
fn the_counters_of_a_port_are_a_statistic_next_to_nfs() {
    let scene = match Scene::start("fabric-statistics", 1, 4) {
        Ok(scene) => scene,
        Err(why) => skip!("fabric-statistics", "{why}"),
    };
    let port = format!("{FABRIC}/ports/host3:1");
    let counted = || (scene.value(&port, "counters") == "64 bits").then_some(());
    wait_for("the first reading", SEEN, counted);
    let panels = json!({ "panels": ["ib.kilobytes[port]", "nfs.bytes"], "span": "1h" });
    let create =
        json!({ "create": "/analytics/worksheets", "name": "fabric", "properties": panels });
    let (code, answer) = scene.api.post("/api/v1/changes", &json!({ "changes": [create] }));
    assert_eq!(code, 200, "{answer:#}");
    scene.bed.console("PerformanceSet \"host3\"[1] PortCountersExtended.PortXmitData=0");
    let before = scene.value(&port, "bytes_out");
    scene.bed.console("PerformanceSet \"host3\"[1] PortCountersExtended.PortXmitData=50000000");
    let more = |value: &Value| value.as_u64() >= before.as_u64().map(|b| b + 190_000_000);
    let rate = wait_for("the bytes are counted", SEEN, || {
        let node = scene.node(&port);
        let all = node["properties"].as_array().cloned().unwrap_or_default();
        let value =
            |name| all.iter().find(|one| one["name"] == name).map(|one| one["value"].clone());
        value("bytes_out").filter(more).and(value("rate_out")).and_then(|rate| rate.as_u64())
    });
    // The counter may have had some words before. 200 MB in an interval of 10 seconds or, on a
    // busy machine, a longer one.
    assert!((1_000_000..=20_100_000).contains(&rate), "{rate}");
    // Each panel of the worksheet has values for the same seconds.
    let panels = scene.value("/analytics/worksheets/fabric", "panels");
    // A second that began after the reading: the rate holds until the next one.
    let end = now() + 3;
    scene.api.wait_for_second(end);
    let nfs = scene.api.data(panels[1].as_str().expect("a panel"), (end - 2, end), "");
    assert_eq!(nfs["total"].as_array().map(Vec::len), Some(2), "{nfs}");
    let data = scene.api.data(panels[0].as_str().expect("a panel"), (end - 2, end), "");
    assert_eq!(data["total"].as_array().map(Vec::len), Some(2), "{data}");
    assert!(data.to_string().contains("host3:1"), "{data}");
    let port = scene.api.data("ib.kilobytes[port=host3:1]", (end - 2, end), "");
    let expected = rate as f64 / 1_024.0;
    let shown = port["total"][0].as_f64().unwrap_or_default();
    println!("{shown} KB/s, expected {expected}");
    assert!((shown - expected).abs() <= expected / 100.0, "{port}, expected {expected}");
}

#[test]
fn a_monitor_of_64_nodes_takes_little() {
    let scene = match Scene::start("fabric-costs", 4, 60) {
        Ok(scene) => scene,
        Err(why) => skip!("fabric-costs", "{why}"),
    };
    let observed = || (scene.value(FABRIC, "nodes_found") == 64).then_some(());
    wait_for("the fabric is read", SEEN, observed);
    let ignored = scene.value(FABRIC, "ignored");
    // Ports without traffic have a rate after the second reading.
    let rates = || scene.value(&format!("{FABRIC}/ports/host60:1"), "rate_out").as_u64();
    wait_for("a second reading", SEEN, || rates().filter(|rate| *rate > 0));
    let (began, before) = (Instant::now(), scene.monitor_time());
    let bytes = || scene.value(&format!("{FABRIC}/ports/host60:1"), "bytes_out");
    for _ in 0..3 {
        let last = bytes();
        wait_for("a reading", SEEN, || (bytes() != last).then_some(()));
    }
    let part = (scene.monitor_time() - before).as_secs_f64() / began.elapsed().as_secs_f64();
    let walk = scene.value(FABRIC, "walk");
    println!(
        "monitor of 64 nodes: {:.2} % of a core, walk {walk} ms, reading {} ms, ignored {ignored}, \
         server {} KiB resident",
        part * 100.0,
        scene.value(FABRIC, "reading"),
        scene.resident_kib()
    );
    assert!(part < 0.02, "{part}");
}
