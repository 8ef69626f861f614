//! Network profiles that take their time: those that uperf ships, unmodified, and the commands of
//! a page of the documents as they are printed. Long: `make test-long NAME=net`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use e2e::scratch::Scratch;
use e2e::{has, is_root, lab, process, server};
use serde_json::Value;

/// The page.
const PAGE: &str = include_str!("../docs/howto/segment-sizes.md");
/// How long its commands may take, as it states.
const TEN_MINUTES: Duration = Duration::from_secs(600);
/// A checkout of uperf/uperf.
const CHECKOUT: &str = "UPERF_CHECKOUT";

fn result(out: &Path) -> Value {
    let text = fs::read_to_string(out.join("result.json")).expect("result.json");
    serde_json::from_str(&text).expect("JSON")
}

/// The transaction that moves the bytes; both ends have the same.
fn main_of(result: &Value) -> &Value {
    let main = &result["transactions"][1];
    let degraded = &result["degraded"];
    let percent = main["bytes"]["difference_percent"].as_f64();
    let percent = percent.unwrap_or_else(|| panic!("{}: {degraded}", result["profile"]));
    assert!(percent <= 0.1, "{}: {}", result["profile"], main["bytes"]);
    main
}

/// Lines of code of a page, in the order of its blocks.
fn commands(page: &str) -> String {
    let code = page.lines().filter_map(|line| line.strip_prefix("    "));
    code.map(|line| format!("{line}\n")).collect()
}

/// Plain mean, mean by bytes, and the share of each context.
struct SegmentMeans {
    mean: f64,
    by_bytes: f64,
    shares: Vec<(String, f64)>,
}

impl SegmentMeans {
    fn of(out: &Path) -> Self {
        let result = result(out);
        let contexts = main_of(&result)["segments"]["contexts"].clone();
        let contexts = contexts.as_array().expect("contexts").clone();
        let sum = |name: &str| -> f64 { contexts.iter().filter_map(|c| c[name].as_f64()).sum() };
        let (segments, bytes) = (sum("segments"), sum("bytes"));
        let share = |c: &Value| {
            let share = c["segments"].as_f64().expect("segments") / segments * 100.0;
            (c["context"].as_str().expect("context").to_owned(), share)
        };
        let mut shares: Vec<_> = contexts.iter().map(share).collect();
        shares.sort_by(|a, b| b.1.total_cmp(&a.1));
        let seen = Self { mean: bytes / segments, by_bytes: sum("squares") / bytes, shares };
        println!("{}: {:.0} {:.0} {:?}", out.display(), seen.mean, seen.by_bytes, seen.shares);
        seen
    }

    fn first(&self) -> &str {
        &self.shares[0].0
    }
}

#[test]
#[ignore = "long: make test-long NAME=net"]
fn the_page_on_segment_sizes_does_what_it_prints() {
    let missing = ["ip", "tc", "unshare"].into_iter().find(|program| !has(program));
    if !is_root() || missing.is_some() {
        println!("SKIP net-page: needs root, ip, tc and unshare");
        return;
    }
    let out = Scratch::new("segment-sizes");
    let binary = server::binary();
    let folder = binary.parent().expect("a folder").display();
    // Its namespaces have names of this shell alone.
    let script = format!(
        "mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns\nPATH={folder}:$PATH\n{}",
        commands(PAGE)
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "-n", "--propagation", "private", "bash", "-ec", &script]);
    let begun = Instant::now();
    let output = process::run(command.current_dir(out.path()), TEN_MINUTES);
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{printed}\n{errors}", output.status);
    println!("{:.0?}\n{printed}", begun.elapsed());
    assert!(begun.elapsed() < TEN_MINUTES);
    let jobs = ["lso-stream-64k", "lso-request", "lso-request-1", "lso-stream-1k", "lso-many"];
    for job in jobs {
        let text = fs::read_to_string(out.path().join(job).join("result.md")).expect("result.md");
        assert!(text.contains("the source saw segments of"), "{job}: {text}");
        assert!(printed.contains(job) && PAGE.contains(&format!("| `{job}`:")), "{job}");
    }
    let [stream, request, single, small, many] =
        jobs.map(|job| SegmentMeans::of(&out.path().join(job)));
    assert!(stream.by_bytes < request.by_bytes, "by bytes: streams below requests");
    assert!(request.mean < stream.mean, "a reply of 64 KiB is 65,160 bytes and a rest");
    assert!(many.mean < small.mean && small.mean < stream.mean, "the order of the means");
    assert_eq!((stream.first(), many.first()), ("ack", "ack"));
    assert_eq!((request.first(), single.first()), ("sender", "sender"));
}

#[test]
#[ignore = "long: make test-long NAME=net"]
fn profiles_of_uperf_run_unmodified() {
    let Some(checkout) = std::env::var_os(CHECKOUT) else {
        println!("SKIP uperf-runs: {CHECKOUT} names no checkout of uperf/uperf");
        return;
    };
    let checkout = Path::new(&checkout);
    for (profile, settings, connections) in [
        ("manual/throughput.xml", &["proto=tcp"][..], 16),
        ("workloads/SpecWebSupport.xml", &[], 4 * 750),
    ] {
        let out = Scratch::new("uperf");
        let mut command = lab::command();
        command.arg("net").arg(checkout.join(profile)).arg("--out").arg(out.path());
        command.args(settings.iter().flat_map(|s| ["--set", s]));
        let output = process::run(&mut command, TEN_MINUTES);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{}: {errors}", output.status);
        let result = result(out.path());
        let main = main_of(&result);
        assert_eq!(main["connections"]["connections"], connections, "{profile}");
        println!("{profile}: {} bytes/s, {}", main["bytes_s"], main["bytes"]);
    }
}
