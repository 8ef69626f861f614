//! The suites of the sources: `lab seqread` and `lab filebench-suite` against this server; two
//! subnets in one run; a suite that is killed continues with its next row. The commands of
//! docs/howto/suites.md are run as printed. `make test-long NAME=suites`: eighteen clients in
//! namespaces on two subnets, of other servers too, and a subnet that is taken down.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

use e2e::api::Api;
use e2e::lab::Agent;
use e2e::netns::Namespace;
use e2e::scratch::Scratch;
use e2e::server::{self, Options, Server};
use e2e::{ganesha, has, is_root, lab, patience, process, skip};
use serde_json::{Value, json};

use super::planted_observed::{Ended, listens, smbd};

/// How long a quick suite may take here.
const SUITE: Duration = patience(120);
/// What `--quick` may take on a machine that does nothing else.
const QUICK: Duration = Duration::from_secs(60);

pub(super) fn read(dir: &Path) -> Value {
    let path = dir.join("suite.json");
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn ran(command: &mut Command, out: &Path) -> Output {
    process::run_with_stdin(command.arg("--out").arg(out), SUITE)
}

pub(super) fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("a list")
}

#[test]
fn two_subnets_in_one_run_each_with_its_clients_and_files() {
    let scratch = Scratch::below(Path::new("/dev/shm"), "suite-subnets");
    let (data, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let options = Options { address: "0.0.0.0", ..Options::new(&data, &state) };
    let server = Server::start(&options);
    let target = format!("nfs3://127.1.0.1:{}{}", server.nfs_port(), server.export());
    let out = scratch.path().join("out");
    let mut command = lab::command();
    command.args(["seqread", "--target", &target, "--quick", "--quiet"]);
    command.args(["--sizes", "1,64k", "--threads", "1,3", "--file-size", "256k"]);
    command.args(["--subnet", "127.1.0.0/24=127.1.0.1", "--subnet", "127.2.0.0/24=127.2.0.1"]);
    command.args(["--clients", "3", "--clean"]);
    let output = ran(&mut command, &out);
    let printed = text(&output.stdout) + &text(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{printed}");
    let suite = read(&out);
    assert_eq!(list(&suite["rows"]).len(), 2, "{suite:#}");
    for row in list(&suite["rows"]) {
        let loads: Vec<u64> =
            list(&row["steps"]).iter().filter_map(|step| step["threads"].as_u64()).collect();
        assert_eq!((&row["state"], loads), (&"done".into(), vec![1, 3]), "{printed}");
        list(&row["steps"]).iter().for_each(by_subnet);
    }
    for what in ["127.1.0.0/24", "127.2.0.0/24", "start skew at most", "Subnets", "Aggregate"] {
        assert!(printed.contains(what), "{what} in {printed}");
    }
    for file in ["suite.csv", "clients.csv", "subnets.csv", "interfaces.csv", "index.html"] {
        assert!(out.join(file).is_file(), "{file}");
    }
    let clients = fs::read_to_string(out.join("clients.csv")).expect("clients");
    assert!(clients.contains("127.2.0.12") && clients.contains("127.1.0.13"), "{clients}");
    let archived = Command::new("sha256sum").args(["-c", "SHA256SUMS"]).current_dir(&out).output();
    assert!(archived.expect("sha256sum").status.success(), "the archive is whole");
    let left = fs::read_dir(&data).expect("a folder").count();
    assert_eq!(left, 0, "--clean leaves nothing");
}

/// Clients of a step are in turn in both networks, and a network's figure is that of its clients.
fn by_subnet(step: &Value) {
    let subnets = list(&step["by_subnet"]);
    let of = |n: usize| (subnets[n]["clients"].as_u64(), subnets[n]["lost"].as_u64());
    assert_eq!((of(0), of(1)), ((Some(2), Some(0)), (Some(1), Some(0))), "{step:#}");
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for client in list(&step["by_client"]) {
        let network = client["subnet"].as_str().expect("a network");
        let number = client["client"].as_u64().expect("a number");
        let second = number % 2 + 1;
        assert_eq!(network, format!("127.{second}.0.0/24"));
        assert_eq!(client["source"], format!("127.{second}.0.{}", 11 + number));
        *sums.entry(network).or_default() += client["bytes"].as_f64().expect("bytes");
    }
    let seconds = step["seconds"].as_f64().expect("seconds");
    for subnet in subnets {
        let sum = sums[subnet["network"].as_str().expect("a network")] / seconds;
        let found = subnet["bytes_s"].as_f64().expect("a rate");
        assert!((sum - found).abs() <= found * 0.001 + 1.0, "{sum} {subnet:#}");
        assert!(found > 0.0, "{step:#}");
    }
}

/// Names below a directory with their times; nothing that a suite of the test has made.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("a directory");
    let mut names: Vec<String> =
        entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn modified(path: &Path) -> SystemTime {
    fs::metadata(path).and_then(|meta| meta.modified()).expect("a time")
}

#[test]
fn a_suite_that_is_killed_continues_and_cleans_its_own() {
    let scratch = Scratch::below(Path::new("/dev/shm"), "suite-killed");
    let data = scratch.folder("data", None);
    let out = scratch.path().join("out");
    fs::create_dir(data.join("theirs")).expect("made");
    fs::write(data.join("theirs/f0.4096"), "theirs").expect("written");
    fs::write(data.join("plimsoll-lab-theirs"), "theirs").expect("written");
    let theirs = names(&data);
    let suite = || {
        let mut command = lab::command();
        command.args(["filebench-suite", "--quick", "--quiet", "--clients", "2", "--clean"]);
        let target = format!("path:{}", data.display());
        command.args(["--target", &target, "--out"]).arg(&out);
        command
    };
    let mut child = suite().stdout(Stdio::null()).spawn().expect("started");
    let deadline = Instant::now() + SUITE;
    let first = loop {
        let rows = fs::read_to_string(out.join("suite.json")).ok();
        let rows = rows.and_then(|text| serde_json::from_str::<Value>(&text).ok());
        let done = rows.as_ref().map_or(0, |suite| {
            list(&suite["rows"]).iter().filter(|row| row["state"] == "done").count()
        });
        if done >= 2 {
            break rows.expect("rows");
        }
        assert!(Instant::now() < deadline, "no rows: {rows:?}");
        assert!(child.try_wait().expect("a child").is_none(), "it ended");
        std::thread::sleep(Duration::from_millis(20));
    };
    child.kill().expect("killed");
    child.wait().expect("ended");
    let done = list(&first["rows"]).iter().position(|row| row["state"] == "done").expect("a row");
    let kept = out.join(first["rows"][done]["job"].as_str().expect("a name")).join("result.json");
    let before = modified(&kept);
    assert!(names(&data).len() > theirs.len(), "its files are there");

    let output = process::run(&mut suite(), SUITE);
    let printed = text(&output.stdout) + &text(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{printed}");
    let second = read(&out);
    assert_eq!(second["starts"], 2, "{printed}");
    assert_eq!(second["rows"][done], first["rows"][done], "the row was not run again");
    assert_eq!(modified(&kept), before);
    for row in list(&second["rows"]) {
        // From memory a set may be read before the first window ends.
        let brief = row["cache"] == "uncached" && printed.contains("use a larger set");
        assert!(row["state"] == "done" || brief, "{row:#}");
    }
    assert_eq!(names(&data), theirs, "nothing of ours, all of theirs");
    assert_eq!(fs::read_to_string(data.join("theirs/f0.4096")).expect("there"), "theirs");
    for what in
        ["871 MB/s, 936 MB/s, 82 %", "20 threads 8K random reads", "1/4096", "rows of 2 starts"]
    {
        assert!(printed.contains(what), "{what} in {printed}");
    }
    // In memory there is no disk: no row may be called uncached.
    for row in list(&second["rows"]).iter().filter(|row| row["cache"] == "uncached") {
        assert_eq!(row["uncached"], false, "{row:#}");
    }
}

/// Commands of the page: those that begin with `plimsoll` in blocks for a shell.
fn commands(page: &str) -> Vec<String> {
    let joined = page.replace("\\\n", " ");
    let mut inside = false;
    let mut found = Vec::new();
    for line in joined.lines() {
        if line.starts_with("```") {
            inside = line == "```sh";
        } else if inside && line.starts_with("plimsoll ") {
            found.push(line.to_owned());
        }
    }
    found
}

#[test]
fn commands_of_the_page_do_what_it_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/howto/suites.md");
    let page = fs::read_to_string(page).expect("the page");
    let scratch = Scratch::below(Path::new("/dev/shm"), "suite-page");
    let (data, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let server = Server::start(&Options::new(&data, &state));
    let target = format!("nfs4://{}{}", server.nfs(), server.export());
    let bin = server::binary();
    let path = bin.parent().expect("a directory").display().to_string();
    let path = format!("{path}:{}", std::env::var("PATH").unwrap_or_default());
    let all = commands(&page);
    assert!(all.len() >= 4, "{all:?}");
    for printed in &all {
        let line = printed.replace("nfs4://server/export", &target);
        assert!(line.contains(&target) || !line.contains("--target"), "{printed}");
        let quick = line.contains("--quick") || !line.contains("--target");
        if !quick || line.contains("--agents") {
            continue;
        }
        let mut command = Command::new("sh");
        command.args(["-c", &line]).env("PATH", &path).current_dir(scratch.path());
        let output = process::run(&mut command, SUITE);
        let errors = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{line}: {errors}");
    }
    let result = scratch.path().join("filebench");
    for file in ["suite.json", "suite.md", "suite.csv", "index.html", "run.toml", "SHA256SUMS"] {
        assert!(result.join(file).is_file(), "{file}");
        assert!(page.contains(file), "{file} on the page");
    }
    for row in list(&read(&result)["rows"]) {
        let title = row["title"].as_str().expect("a title");
        assert!(page.contains(title), "{title} on the page");
    }
}

/// A server with two interfaces, and clients in namespaces of their own on two subnets.
struct Subnets {
    server: Namespace,
    clients: Vec<Namespace>,
}

fn shell(namespace: &Namespace, lines: &str) -> Result<(), String> {
    let mut command = Command::new("sh");
    namespace.enter(command.args(["-ec", lines]));
    let output = process::run(&mut command, SUITE);
    if output.status.success() { Ok(()) } else { Err(text(&output.stderr)) }
}

impl Subnets {
    /// With this number of clients, in turn on 10.1.0.0/24 and 10.2.0.0/24.
    fn new(clients: usize) -> Result<Self, String> {
        let end = || Namespace::with("ip link set lo up").map_err(|e| format!("no namespace: {e}"));
        let server = end()?;
        let mut setup = String::new();
        for net in [1, 2] {
            setup += &format!(
                "ip link add net{net} type bridge\nip addr add 10.{net}.0.1/24 dev net{net}\n\
                 ip link set net{net} up\n"
            );
        }
        shell(&server, &setup)?;
        let mut all = Self { server, clients: Vec::new() };
        for n in 0..clients {
            let (client, net, host) = (end()?, n % 2 + 1, n + 11);
            shell(
                &all.server,
                &format!(
                    "ip link add p{n} type veth peer name eth0 netns {}\n\
                     ip link set p{n} master net{net} up\n",
                    client.pid()
                ),
            )?;
            let up = format!("ip addr add 10.{net}.0.{host}/24 dev eth0\nip link set eth0 up\n");
            shell(&client, &up)?;
            all.clients.push(client);
        }
        Ok(all)
    }

    /// An agent in each namespace, and the options with which they are used.
    fn agents(&self) -> Vec<Agent> {
        let start = |(n, client): (usize, &Namespace)| {
            let at = format!("10.{}.0.{}:0", n % 2 + 1, n + 11);
            Agent::lasting_at(&at, |command| client.enter(command))
        };
        self.clients.iter().enumerate().map(start).collect()
    }
}

const NETWORKS: [&str; 4] =
    ["--subnet", "10.1.0.0/24=10.1.0.1", "--subnet", "10.2.0.0/24=10.2.0.1"];

/// What an interface of a namespace has sent and received: bytes, packets.
fn counters(namespace: &Namespace, interface: &str) -> [u64; 4] {
    let files = ["tx_bytes", "tx_packets", "rx_bytes", "rx_packets"];
    let paths = files.map(|file| format!("/sys/class/net/{interface}/statistics/{file}"));
    let mut command = Command::new("unshare");
    // The namespace's own view of /sys.
    command.args(["-m", "sh", "-ec"]);
    command.arg(format!("mount -t sysfs none /sys; cat {}", paths.join(" ")));
    namespace.enter(&mut command);
    let output = process::succeed(&mut command);
    let numbers: Vec<u64> = text(&output).lines().filter_map(|line| line.parse().ok()).collect();
    numbers.try_into().expect("four numbers")
}

pub(super) fn long() -> bool {
    std::env::var_os("PLIMSOLL_TEST_LONG").is_some()
}

/// A server of Plimsoll in the namespace with both addresses.
fn serve(scratch: &Scratch, networks: &Subnets) -> (Server, PathBuf) {
    let (data, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let options = Options {
        address: "0.0.0.0",
        namespace: Some(&networks.server),
        ..Options::new(&data, &state)
    };
    (Server::start(&options), data)
}

#[test]
fn a_subnet_that_is_taken_down_is_named_and_the_other_stands() {
    if !long() {
        return;
    }
    if !is_root() {
        skip!("lab-suites-down", "needs root");
    }
    let networks = match Subnets::new(4) {
        Ok(networks) => networks,
        Err(why) => skip!("lab-suites-down", "{why}"),
    };
    let scratch = Scratch::below(Path::new("/dev/shm"), "suite-down");
    let (server, _) = serve(&scratch, &networks);
    let agents = networks.agents();
    let target = format!("nfs3://10.1.0.1:{}{}", server.nfs_port(), server.export());
    let out = scratch.path().join("out");
    let mut command = lab::command();
    command.args(["filebench-suite", "--rows", "stream-read-1-cached", "--seconds", "12"]);
    command.args(["--set-size", "20m", "--target", &target, "--out"]).arg(&out).args(NETWORKS);
    Agent::used_by(&mut command, &agents);
    networks.server.enter(&mut command);
    command.stderr(Stdio::piped()).stdout(Stdio::piped());
    let child = command.spawn().expect("started");
    // The row runs when the interface has sent more than the files took.
    let deadline = Instant::now() + SUITE;
    while counters(&networks.server, "net2")[0] < 400 << 20 {
        assert!(Instant::now() < deadline, "it does not run");
        std::thread::sleep(Duration::from_millis(50));
    }
    shell(&networks.server, "ip link set net2 down").expect("taken down");
    let output = child.wait_with_output().expect("an end");
    let printed = text(&output.stdout) + &text(&output.stderr);
    println!("{printed}");
    assert_eq!(output.status.code(), Some(3), "{printed}");
    assert!(printed.contains("lost subnet 10.2.0.0/24 (server 10.2.0.1)"), "{printed}");
    let suite = read(&out);
    let step = &suite["rows"][0]["steps"][0];
    let of = |n: usize| {
        let subnet = &step["by_subnet"][n];
        (subnet["clients"].as_u64(), subnet["lost"].as_u64(), subnet["bytes_s"].as_f64())
    };
    assert_eq!((of(0).0, of(0).1), (Some(2), Some(0)), "{step:#}");
    assert_eq!((of(1).0, of(1).1), (Some(0), Some(2)), "{step:#}");
    assert!(of(0).2 > Some(1e6), "{step:#}");
}

/// Bytes that a segment of data has before it: Ethernet, IPv4, TCP with timestamps.
const SEGMENT: f64 = 66.0;
/// Payload of a network from which on a step is compared, bytes.
const LEAST: f64 = 4e6;
/// Data of the largest packet that the kernel hands to a virtual interface.
const PACKET: f64 = 65_160.0;

/// Eighteen clients in namespaces on two subnets; the payload of each interface, as the run states
/// it, against what the interface counted less headers.
#[test]
fn eighteen_clients_on_two_subnets_are_what_the_interfaces_carried() {
    if !long() {
        return;
    }
    if !is_root() {
        skip!("lab-suites-eighteen", "needs root");
    }
    let networks = match Subnets::new(18) {
        Ok(networks) => networks,
        Err(why) => skip!("lab-suites-eighteen", "{why}"),
    };
    let scratch = Scratch::below(Path::new("/dev/shm"), "suite-eighteen");
    let (server, data) = serve(&scratch, &networks);
    let nfs = format!("10.1.0.1:{}{}", server.nfs_port(), server.export());
    let mut wrong = Vec::new();
    let mut both = |name: &str, target: &str| {
        wrong.extend(both_suites(&scratch, &networks, name, target));
    };
    for scheme in ["nfs3", "nfs4"] {
        both(scheme, &format!("{scheme}://{nfs}"));
    }
    let api = Api::new(&scratch.path().join("state"));
    let smb = json!({"set": "/configuration/services/smb", "property": "enabled", "value": true});
    let anna = json!({"create": "/configuration/users", "name": "anna",
        "properties": {"password": "sailing-away", "uid": 4321, "gid": 4322}});
    let share = json!({"create": "/shares/default", "name": "box", "properties":
        {"directory": data.join("box"), "make_directory": true, "root_mode": "777"}});
    for changes in [vec![smb], vec![anna, share]] {
        let (code, done) = api.post("/api/v1/changes", &json!({ "changes": changes }));
        assert_eq!(code, 200, "{done}");
    }
    let port = server.at(445).port();
    both("smb", &format!("smb://anna:sailing-away@10.1.0.1:{port}/box"));
    assert_eq!(names(&data), ["box"], "nothing is left");
    foreign(&networks, &mut both);
    assert_eq!(wrong, [""; 0]);
}

/// The same for servers of others, if they are installed.
fn foreign(networks: &Subnets, both: &mut dyn FnMut(&str, &str)) {
    match ganesha::missing() {
        Some(what) => println!("SKIP lab-suites-ganesha: {what}"),
        None => {
            let at = Scratch::new("suite-ganesha");
            let data = at.folder("data", None);
            let mut command = ganesha::command(at.path(), &data, [2049, 20_048]);
            networks.server.enter(&mut command);
            let mut child = Ended::start(&mut command);
            listens("ganesha", &networks.server, 2049, &mut child.0);
            let url = format!("nfs3://10.1.0.1:2049{}?mountport=20048", data.display());
            both("ganesha-3", &url);
            both("ganesha-4", "nfs4://10.1.0.1:2049/x");
            ganesha::end_mapper(at.path());
        }
    }
    if !has("smbd") || !has("smbpasswd") {
        println!("SKIP lab-suites-smbd: smbd is not installed (samba)");
        return;
    }
    let at = Scratch::below(Path::new("/dev/shm"), "suite-smbd");
    let mut command = smbd(at.path(), 4450);
    networks.server.enter(&mut command);
    let mut child = Ended::start(&mut command);
    listens("smbd", &networks.server, 4450, &mut child.0);
    both("smbd", "smb://root:sailing@10.1.0.1:4450/box");
}

/// One command each for both suites, eighteen clients on two subnets: what is wrong with them.
fn both_suites(scratch: &Scratch, networks: &Subnets, name: &str, target: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let commands = [
        &["seqread", "--quick", "--sizes", "64k,1m", "--threads", "1,2,3,5"][..],
        &["filebench-suite", "--quick"],
    ];
    for words in commands {
        let agents = networks.agents();
        let out = scratch.path().join(format!("{name}-{}", words[0]));
        let mut command = lab::command();
        command.args(words).args(["--target", target, "--quiet", "--clean"]).args(NETWORKS);
        Agent::used_by(&mut command, &agents);
        networks.server.enter(&mut command);
        let began = Instant::now();
        let output = ran(&mut command, &out);
        let took = began.elapsed();
        let printed = text(&output.stdout) + &text(&output.stderr);
        println!("{name} {}: {took:?}\n{printed}", words[0]);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{printed}");
        let in_time = took < QUICK || words[0] == "seqread";
        wrong.extend((!in_time).then(|| format!("{name}: the quick suite took {took:?}")));
        assert!(printed.contains("start skew at most"), "{printed}");
        assert!(printed.contains("all clients active at least"), "{printed}");
        wrong.extend(judged(&read(&out)).into_iter().map(|what| format!("{name}: {what}")));
    }
    wrong
}

/// Steps that carried enough: payload within 3 % of the interface's bytes without headers, computed
/// from payload alone.
fn judged(suite: &Value) -> Vec<String> {
    let (mut compared, mut wrong) = (0, Vec::new());
    for row in list(&suite["rows"]) {
        // Small blocks: headers of the calls are a large part, and are not known here.
        if row["block"].as_u64() < Some(65_536) || row["state"] != "done" {
            continue;
        }
        for step in list(&row["steps"]) {
            for subnet in list(&step["by_subnet"]) {
                let whole = &subnet["whole"];
                let figure = |name: &str| whole[name].as_f64().expect("a count");
                let writes = row["job"].as_str().is_some_and(|job| job.contains("write"));
                let carried = figure(if writes { "rx" } else { "tx" });
                let payload = figure("payload");
                // Without a core for all of a short step, messages of agents are all there is.
                if payload < LEAST {
                    continue;
                }
                // A header for each packet that the kernel handed over, of the largest size.
                let ratio = (carried - payload / PACKET * SEGMENT) / payload;
                let name = &subnet["interface"];
                let line = format!("{} {name}: {carried} for {payload}, {ratio:.4}", row["job"]);
                println!("{line}");
                compared += 1;
                wrong.extend(((ratio - 1.0).abs() > 0.03).then_some(line));
            }
        }
    }
    assert!(compared >= 6, "{suite:#}");
    wrong
}
