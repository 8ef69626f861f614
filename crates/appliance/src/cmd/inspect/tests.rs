//! What is recognised by its content, and what is not.

use super::*;

fn of(name: &str, bytes: &[u8]) -> Option<String> {
    recognise(Path::new(name), bytes).map(|found| found.text)
}

#[test]
fn secrets_are_described_and_not_shown() {
    let text = of("api-token", b"0123456789abcdef\n").expect("a token");
    assert!(text.contains("bearer token") && !text.contains("0123"), "{text}");
    let once = b"  sign in   https://x/l?t=1  (works once)\n  user admin, password geheim\n";
    let text = of("first-sign-in", once).expect("a first sign-in");
    assert!(text.contains("admin") && !text.contains("geheim") && !text.contains("t=1"), "{text}");
    let text = of("users.json", br#"{"anna": "$argon2id$v=19$secret"}"#).expect("users");
    assert!(text.contains("anna") && !text.contains("secret"), "{text}");
}

#[test]
fn the_configurations_files_are_read() {
    let head = "# A configuration of Plimsoll: docs/formats/configuration.md\nformat = 1\n";
    let good = format!("{head}[\"/configuration/services/nfs\"]\nlease = 60\n");
    let found = recognise(Path::new("000001.toml"), good.as_bytes()).expect("a configuration");
    assert_eq!(found.value["nodes"]["/configuration/services/nfs"]["lease"], 60);
    let text =
        of("x.toml", format!("{head}[\"/nowhere\"]\n").as_bytes()).expect("one with a fault");
    assert!(text.contains("# problem: /nowhere: line 3: / has no \"nowhere\""), "{text}");
    let kept =
        br#"{"next":2,"secrets":{"1":{"path":"/users/a","property":"password","value":"$x"}}}"#;
    let text = of("secrets.json", kept).expect("secrets");
    assert!(text.contains("/users/a password") && !text.contains("$x"), "{text}");
    let line =
        br#"{"when":0,"who":"a","from":"b","action":"set","path":"/x","property":"p","after":1}"#;
    let text = of("audit.log", line).expect("an audit log");
    assert!(text.contains("1970-01-01 00:00:00  a from b: set /x p null -> 1"), "{text}");
}

#[test]
fn the_history_of_replication_is_read() {
    let line = br#"{"action":"nightly","when":0,"ended":5,"by":"anna","outcome":"partial",
        "reason":"why","entries":3,"changes":2,"files":1,"bytes":9,"sent":9,"failures":1,
        "failed":["a/b: Permission denied"]}"#;
    let line = String::from_utf8_lossy(line).replace('\n', "");
    let text = of("replication.log", format!("{line}\n{{\"action\"").as_bytes()).expect("one");
    assert!(text.contains("1970-01-01 00:00:00  nightly partial by anna: 3 entries"), "{text}");
    assert!(text.contains("    a/b: Permission denied\n"), "{text}");
    assert!(text.ends_with("lines that are not whole: 1\n"), "{text}");
    assert!(of("replication.log", b"nothing of ours").is_none());
}

#[test]
fn a_summary_is_read_from_its_page_too() {
    let summary = ::lab::limits::Summary { format: 2, ..Default::default() };
    let json = serde_json::to_string(&summary).expect("JSON");
    assert!(of("summary.json", json.as_bytes()).expect("a summary").starts_with("Performance"));
    let page = ::lab::report::summary_page(&summary);
    let text = of("index.html", page.as_bytes()).expect("a page");
    assert!(text.starts_with("report of a Performance Limit Summary"), "{text}");
}

#[test]
fn files_of_an_archive_are_read() {
    let sums = format!("{}  result.json\n", "0".repeat(64));
    assert!(of("SHA256SUMS", sums.as_bytes()).expect("checksums").contains("of 1 files"));
    let step = ::lab::record::Step::default();
    let log = ::lab::archive::seconds::log(&step);
    assert!(of("000.hlog", log.as_bytes()).expect("a log").starts_with("latencies of 0 seconds"));
    assert!(of("result.csv", b"load,throughput\r\n").is_some());
    assert!(of("result.md", b"# Reads\n").is_some() && of("result.md", b"x").is_none());
    assert!(of("machines.json", br#"{"format":1,"conductor":{"name":"a"}}"#).is_some());
    assert!(of("nfs3.ops-by-op.json", br#"{"total":[1]}"#).is_some());
}

#[test]
fn a_comparison_is_read() {
    let (_, plan) = ::lab::transfer::plan::BUILT_IN[0];
    let plan = ::lab::transfer::Plan::parse("p", plan, &[]).expect("a plan");
    let plan = serde_json::to_string(&plan).expect("JSON");
    let result = format!(
        r#"{{"kind":"comparison","format":1,"program":"p","started":0,"ended":0,"plan":{plan},
        "command":[],"client":null,"lines":[],"degraded":["by hand"],"failed":null}}"#
    );
    let text = of("result.json", result.as_bytes()).expect("a comparison");
    assert!(text.starts_with("lab comparison, format 1"), "{text}");
    assert!(text.contains("Secure protocols: 1 file of 256 MiB") && text.contains("by hand"));
}

#[test]
fn a_run_and_its_job_are_read() {
    let run = br#"{"format":1,"id":"r7","job":"create","title":"T","by":"anna","from":"local",
        "target":"null:","share":null,"folder":"","scratch":"plimsoll-lab-r7-1","cleaned":true,
        "own":false,"clients":2,"state":"aborted","queued":0,"started":null,"ended":60,
        "planned":[[1,1]],"steps":[],"message":"anna aborted it","value":null,"best":null,
        "limiter":null,"confidence":null,"why":[],"degraded":[]}"#;
    let text = of("run.json", run).expect("a run");
    assert!(text.starts_with("run r7 of the job create") && text.contains("anna aborted it"));
    assert!(text.contains("plimsoll-lab-r7-1, removed") && text.contains("00:01:00"), "{text}");
    let (_, job) = ::lab::job::BUILT_IN[0];
    assert!(of("job.toml", job.as_bytes()).expect("a job").contains("dram-read-stream"));
}

#[test]
fn a_damaged_table_of_handles_is_reported() {
    let text = of("handles-00000001-table.redb", b"redb and nothing else").expect("recognised");
    assert!(text.contains("damaged"), "{text}");
}

#[test]
fn the_identity_of_a_server_is_shown() {
    let digits = "0123456789abcdef0123456789abcdef";
    let text = of("server-id", format!("{digits}\n").as_bytes()).expect("an identity");
    assert!(text.contains(&format!("plimsoll {digits}")), "{text}");
    let before = format!("{digits}\nplimsoll m /var/lib/s/clients");
    let text = of("server-id", before.as_bytes()).expect("an identity");
    assert!(text.contains("plimsoll m /var/lib/s/clients"), "{text}");
}

#[test]
fn the_identity_of_a_file_system_is_shown() {
    let text =
        of("file-system-0000000a", b"id 00000000000000ff 1 0 fuse.x host:/a\nentry 2 0 6162\n");
    let text = text.expect("an identity");
    assert!(text.contains("00000000000000ff") && text.contains("host:/a"), "{text}");
    assert!(text.contains("\"ab\""), "{text}");
}

#[test]
fn other_files_are_not_recognised() {
    for (name, bytes) in [
        ("notes.txt", &b"hello"[..]),
        ("page.html", b"<!doctype html><p>hello"),
        ("package.json", b"{\"name\": \"x\", \"steps\": 3}"),
        ("handle-secret", b"short"),
        ("server-id", b"short"),
        ("file-system-0000000a", b"short"),
        ("other.redb", b"redb of somebody else"),
    ] {
        assert!(of(name, bytes).is_none(), "{name}");
    }
}
