//! One command measures our server over five protocols and another server, a column each. A column
//! that cannot be measured has the reason; a second summary is compared with it cell by cell.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use e2e::api::Api;
use e2e::ganesha::Ganesha;
use e2e::iscsi::Access;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::{ganesha, is_root, lab, patience, ports, process, skip};
use serde_json::{Value, json};

/// The columns of our server.
const OURS: [&str; 5] = ["nfs3", "nfs4", "smb", "iscsi", "https"];
/// What `--quick` may take.
const QUICK: Duration = Duration::from_secs(240);
/// The password of the user, by the environment alone.
const PASSWORD: &str = "sailing again";

/// A server with a share over NFS, SMB and HTTPS, and a logical unit.
struct PlimsollServer {
    server: Server,
    state: PathBuf,
    scratch: Scratch,
}

impl PlimsollServer {
    fn start(name: &str) -> Self {
        let scratch = Scratch::below(Path::new("/dev/shm"), name);
        let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
        let args = ["--lun", "disk=64M"].map(Into::into).to_vec();
        let server = Server::start(&Options { args, ..Options::new(&dir, &state) });
        let api = Api::new(&state);
        let smb =
            json!({"set": "/configuration/services/smb", "property": "enabled", "value": true});
        let share = json!({"create": "/shares/default", "name": "box", "properties":
            {"directory": dir.join("box"), "make_directory": true, "root_mode": "777"}});
        let anna = json!({"create": "/configuration/users", "name": "anna",
            "properties": {"password": PASSWORD, "uid": 4321, "gid": 4322}});
        // The hash that SMB needs is stored with passwords that are set from then on.
        for change in [smb, share, anna] {
            let (code, done) = api.post("/api/v1/changes", &json!({ "changes": [change] }));
            assert_eq!(code, 200, "{done}");
        }
        Self { server, state, scratch }
    }

    /// As in the documentation, in the order of [`OURS`].
    fn targets(&self) -> [String; 5] {
        let at = |port| self.server.at(port);
        [
            format!("nfs3://{}/export/box", self.server.nfs()),
            format!("nfs4://{}/export/box", self.server.nfs()),
            format!("smb://anna@{}/box", at(445)),
            Access::of(&self.state).url(at(3260), 0),
            format!("https://anna@{}/box?insecure", at(443)),
        ]
    }

    /// `lab limits --quick` with these columns and one more; its exit code and what it wrote.
    fn limits(&self, other: &str, out: &str, more: &[&str]) -> (i32, PathBuf, String) {
        let out = self.scratch.path().join(out);
        let mut command = lab::command();
        command.args(["limits", "--quick"]).args(more).env("PLIMSOLL_LAB_PASSWORD", PASSWORD);
        command.args(self.targets().iter().flat_map(|url| ["--target", url]));
        command.args(["--target", other, "--server-socket"]).arg(self.state.join("plimsoll.sock"));
        let output = process::run(command.arg("--out").arg(&out), patience(300));
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code().unwrap_or(-1), out, printed)
    }
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

/// `lab compare` of two summaries, as text and as JSON.
fn compared(first: &Path, second: &Path) -> (String, Value) {
    let compare = |more: &[&str]| {
        let mut command = lab::command();
        command.arg("compare").arg(first).arg(second).args(more);
        String::from_utf8(process::succeed(&mut command)).expect("text")
    };
    (compare(&[]), serde_json::from_str(&compare(&["--json"])).expect("JSON"))
}

fn names(summary: &Value) -> Vec<&str> {
    let columns = summary["columns"].as_array().expect("columns");
    columns.iter().map(|column| column["name"].as_str().expect("a name")).collect()
}

#[test]
fn a_column_that_is_not_there_states_its_reason_and_the_others_stand() {
    let ours = PlimsollServer::start("columns");
    let gone = ports::free_offset("127.0.0.1") + 2049;
    let other = format!("gone=nfs3://127.0.0.1:{gone}/x");
    let short = ["--rows", "iops-4k", "--clients", "1", "--retries", "0", "--quiet"];
    let sets = [
        "schedule=[[1,1],[1,4]]",
        "file_size=256k",
        "warmup_ms=50",
        // Long enough that a client gets a processor in each window while other tests run.
        "window_ms=250",
        "step_max_ms=750",
    ];
    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
    let more = [&short[..], &sets].concat();
    let (code, first, printed) = ours.limits(&other, "first", &more);
    assert_eq!(code, 3, "a column failed: {printed}");
    let (_, second, _) = ours.limits(&other, "second", &more);

    let summary = read(&first.join("summary.json"));
    assert_eq!(names(&summary), [&OURS[..], &["gone"]].concat());
    let why = summary["columns"][5]["failed"].as_str().expect("a reason");
    assert!(why.contains("refused"), "{why}");
    assert!(printed.contains(why), "{printed}");
    let cell = |column: usize| &summary["rows"][0]["cells"][column];
    for (n, name) in OURS.iter().enumerate() {
        let cell = cell(n);
        assert!(cell["value"].as_f64() > Some(0.0), "{name}: {cell:#}");
        let report = first.join(cell["report"].as_str().expect("a report"));
        assert!(report.exists(), "{name}");
        assert_eq!(summary["columns"][n]["failed"], Value::Null, "{name}");
        assert_eq!(summary["columns"][n]["server"]["seen"], "api", "{name}");
    }
    let reason = format!("not measured: {why}");
    assert_eq!((&cell(5)["text"], &cell(5)["failed"]), (&json!(reason), &json!(true)));
    for form in ["summary.md", "summary.csv", "index.html"] {
        let text = std::fs::read_to_string(first.join(form)).expect("a form");
        assert!(text.contains("refused"), "{form}");
        assert!(!text.contains(PASSWORD) && !text.contains("sailing%20again"), "{form}");
    }
    cell_by_cell(&first, &second, &reason);
}

/// Each row of each column has a ratio or the reason that there is none.
fn cell_by_cell(first: &Path, second: &Path, reason: &str) {
    let (text, change) = compared(first, second);
    let cells = change["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 6, "{text}");
    for cell in cells {
        let column = cell["column"].as_str().expect("a name");
        let (ratio, why) = (cell["ratio"].as_f64(), cell["not_comparable"].as_str());
        if column == "gone" {
            assert_eq!(why, Some(&*format!("both were {reason}")), "{cell:#}");
        } else {
            assert!(ratio > Some(0.0) && why.is_none(), "{cell:#}");
        }
        assert!(text.contains(column), "{text}");
        for mark in cell["marks"].as_array().expect("marks") {
            assert!(text.contains(mark.as_str().expect("text")), "{mark} in\n{text}");
        }
    }
    assert!(text.contains("not comparable: both were not measured"), "{text}");
}

/// All nine rows of six columns, twice; the sixth is nfs-ganesha.
#[test]
fn six_columns_with_ganesha_take_less_than_four_minutes() {
    if !is_root() {
        skip!("lab-columns", "needs root");
    }
    if let Some(what) = ganesha::missing() {
        skip!("lab-columns", "{what}");
    }
    let ours = PlimsollServer::start("columns-six");
    let other = Ganesha::start();
    let made = ["first", "second"].map(|name| {
        let began = Instant::now();
        let (code, out, printed) = ours.limits(&other.url, name, &[]);
        let took = began.elapsed();
        println!("{name}: {:.0} s, exit code {code}", took.as_secs_f64());
        assert!(matches!(code, 0 | 3), "{code}: {printed}");
        assert!(took < QUICK, "{took:?}");
        let summary = read(&out.join("summary.json"));
        assert_eq!(names(&summary), [&OURS[..], &["ganesha"]].concat());
        let mut measured = [0; 6];
        for row in summary["rows"].as_array().expect("rows") {
            for (n, cell) in row["cells"].as_array().expect("cells").iter().enumerate() {
                let text = cell["text"].as_str().expect("text");
                assert!(
                    cell["value"].is_number() || text.starts_with("not measured: "),
                    "{cell:#}"
                );
                measured[n] += usize::from(cell["value"].is_number());
            }
        }
        println!("{name}: rows measured by column: {measured:?}");
        assert!(measured.iter().all(|rows| *rows > 0), "{measured:?}");
        out
    });
    let (text, change) = compared(&made[0], &made[1]);
    println!("{text}");
    assert_eq!(change["cells"].as_array().map(Vec::len), Some(54));
    for cell in change["cells"].as_array().expect("cells") {
        assert_ne!(cell["ratio"].is_number(), cell["not_comparable"].is_string(), "{cell:#}");
    }
}
