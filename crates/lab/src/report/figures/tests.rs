//! The same figures in text, CSV, Markdown, page and API, and in the JSON of the result.

use super::*;
use crate::ab::{Pair, Rule, Sample, Session};
use crate::limit::Limiter;
use crate::measure::{OverRuns, Until};
use crate::operations::Mark;
use crate::record::observed::{
    ClientStep, Comparison, Observed, ObservedDevice, ObservedInterface, OperationCount,
    ServerCounts,
};
use crate::record::{Latency, OpenStep, Step};
use crate::report::{self, tests::made_up};
use crate::shape::open::ArrivalCounts;
use crate::shape::outcome::CurvePoint;
use crate::verdict::demand::{Binding, Demand, Demands, Next};
use crate::verdict::evenness::{ClientShare, judge};
use crate::verdict::prove::{Finding, Intervention, Proof};
use host::observe::cache::Pages;

fn share(c: &ClientStep) -> ClientShare {
    ClientShare {
        number: c.client,
        done: c.ops as f64,
        source: c.source.clone(),
        interface: c.interface.clone(),
    }
}

/// What the server and its machine have shown in a step.
fn seen(step: &mut Step) {
    let client = |n: u32| ClientStep {
        client: n,
        ops: if n == 1 { 400 } else { 1_100 + u64::from(n) },
        bytes: 4096 * u64::from(n),
        errors: 0,
        source: Some(format!("10.0.11.{n}")),
        interface: Some("eth1".into()),
        seen_as: (n == 2).then(|| "192.0.2.7".into()),
        subnet: None,
    };
    step.by_client = (0..4).map(client).collect();
    step.evenness = judge(&step.by_client.iter().map(share).collect::<Vec<_>>());
    let device = ObservedDevice {
        name: "vda".into(),
        bytes: [3 << 20, 5 << 20],
        latency: [Some(1_500_000.0), None],
        busy: 0.37,
        ..Default::default()
    };
    let interface = ObservedInterface {
        name: "eth1".into(),
        rx: 1_000_000,
        tx: 9_000_000,
        payload: Some(8_000_000),
        headers_expected: Some(400_000),
        ..Default::default()
    };
    let pages = |resident| Some(Pages { all: 1 << 20, resident, dirty: 0 });
    step.observe = vec![Observed {
        role: "server".into(),
        seconds: 2.0,
        cpu: Some(1.5),
        cpu_by: Some("control-group".into()),
        processes: Some(3),
        memory: Some(64 << 20),
        devices: vec![device],
        pages_before: pages(5_242),
        pages_after: pages(1 << 19),
        interfaces: vec![interface],
        retransmitted: 17,
        cost: 0.012,
        ..Default::default()
    }];
    let read = OperationCount { op: "read".into(), count: 4_321, bytes: 7 << 20, latency_ns: 8e5 };
    step.server_counts = Some(ServerCounts {
        complete: true,
        operations: vec![read],
        compared: Some(Comparison::new("operations", 4_321, 4_320, 24)),
        ..Default::default()
    });
    step.evidence.server_latency_ns = Some(801_000.0);
    step.open = Some(OpenStep {
        rate: 5_000.0,
        counts: ArrivalCounts {
            offered: 999,
            started: 990,
            queued: 45,
            skipped: 9,
            completed: 980,
        },
        lateness: Latency { p99: 1_230_000, ..Default::default() },
        reservation: Some("9 arrivals were skipped".into()),
        ..Default::default()
    });
}

/// A run that has everything.
fn whole() -> RunResult {
    let mut run = made_up();
    seen(&mut run.steps[2]);
    if let Some(limit) = &mut run.limit {
        (limit.limiter, limit.why) = (Limiter::Generator, vec!["agents used 98 %".into()]);
    }
    run.steps[2].bytes_s = 5e6;
    run.steps[2].transport_bytes_s = Some(6e6);
    run.demands = Some(Demands {
        demands: vec![Demand {
            name: "CPU of the server".into(),
            seconds: 12.5e-6,
            seconds_error: 0.5e-6,
            idle: 0.03,
            users: vec![("generator".into(), 4e-6)],
            bound: 160_000.0,
            bound_low: 150_000.0,
            bound_high: 170_000.0,
            constant: true,
            sentence: "CPU of the server: in the table".into(),
        }],
        binding: Binding::Resource("CPU of the server".into()),
        next: Some(Next { name: "disk vda".into(), factor: 1.9, low: 1.7, high: 2.1 }),
        inconsistent: vec![],
        without: vec!["link eth1: it hardly changes".into()],
        unseen: vec![("disk".into(), "plimsoll lab agent --observe".into())],
    });
    let finding = Finding {
        intervention: Intervention::TwiceClients,
        ratio: 1.42,
        interval: (1.31, 1.55),
        refutes: vec![Limiter::Network],
        supports: vec![Limiter::Generator],
        at_least: true,
        at_most: false,
        reservations: vec!["in the sentence".into()],
        sentence: "in the table".into(),
    };
    let not_run = vec!["without encryption: the target has none".to_owned()];
    run.proof = Some(Proof { findings: vec![finding], not_run });
    let point =
        CurvePoint { percent: 80, rate: 4_000.0, ops_s: 3_990.0, skipped: 2, ..Default::default() };
    run.shape.curve = vec![point];
    run.over_runs = Some(OverRuns::of(&[1200.0; 7], Until { to: 0.03, rounds: 12 }));
    run.operations.hash = Some(Mark(0xabc));
    run
}

/// Every figure of every section.
fn all(figures: &Figures) -> Vec<String> {
    let of = |section: &Section| {
        let cells = section.rows.iter().flatten();
        cells.chain(&section.sentences).filter(|text| !text.is_empty()).cloned().collect()
    };
    figures.sections.iter().flat_map(|section| -> Vec<String> { of(section) }).collect()
}

fn same_everywhere(figures: &Figures) {
    let api = serde_json::to_value(figures).unwrap();
    let (text, csv, markdown, html) =
        (figures.text(), figures.csv(), figures.markdown(), figures.html());
    for figure in all(figures) {
        assert!(text.contains(&figure), "text: {figure}\n{text}");
        assert!(csv.contains(&field(&figure)), "CSV: {figure}\n{csv}");
        assert!(markdown.contains(&figure.replace('|', "\\|")), "Markdown: {figure}\n{markdown}");
        let shown = escaped(&figure);
        let places = [format!("<td>{shown}</td>"), format!("<li>{shown}</li>")];
        assert!(places.iter().any(|place| html.contains(place)), "page: {figure}\n{html}");
        let sections = api["sections"].as_array().unwrap();
        let texts = sections.iter().flat_map(|s| {
            let rows = s["rows"].as_array().unwrap().iter().flat_map(|r| r.as_array().unwrap());
            rows.chain(s["sentences"].as_array().unwrap())
        });
        assert!(texts.into_iter().any(|text| *text == *figure), "API: {figure}");
    }
}

#[test]
fn figures_of_a_run_are_the_same_in_each_form() {
    let run = whole();
    let figures = Figures::of_run(&run);
    let ids: Vec<&str> = figures.sections.iter().map(|section| section.id).collect();
    let wanted = [
        "result",
        "steps",
        "demands",
        "clients",
        "server",
        "interfaces",
        "counts",
        "proof",
        "open",
        "shape",
        "runs",
        "command",
    ];
    assert_eq!(ids, wanted);
    same_everywhere(&figures);
    // Page and Markdown of the run consist of these.
    let (page, markdown) = (report::page(&run), report::markdown(&run));
    assert!(page.contains(&figures.html()) && markdown.contains(&figures.markdown()));
    // And the JSON of the result, read again, has the same.
    let json = serde_json::to_value(&run).unwrap();
    assert_eq!(Figures::of_json(json).unwrap(), figures);
}

#[test]
fn the_new_figures_are_there() {
    let text = Figures::of_run(&whole()).text();
    for part in [
        "≥ 1.2 K ops/s",
        "disk vda, at 1.9 times the throughput (1.7 to 2.1)",
        "12.5 µs ± 500 ns",
        "150 K to 170 K",
        "generator 4 µs",
        "used up: CPU of the server",
        "plimsoll lab agent --observe",
        "client 1 from 10.0.11.1 over eth1 reached",
        "Jain's index",
        "0.75 cores, counted by control group",
        "3 with 64 MiB resident",
        "1.5 MiB/s read, 2.5 MiB/s written, 37 % busy; a read took 1.5 ms, a write –",
        "0.5 % of 1.05 M pages resident",
        "50.0 % of 1.05 M pages resident",
        "4.29 MiB/s",
        "counts of the server and of the clients agree: 4321 and 4320 operations",
        "mean latency: 801 µs at the server",
        "1.31 to 1.55",
        "not proved by without encryption: the target has none",
        "9 arrivals were skipped",
        "1.23 ms",
        "80 %",
        "over 7 runs: 1.2 K ops/s",
        "hash 0000000000000abc",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn figures_of_a_summary_and_of_a_comparison_are_the_same_in_each_form() {
    let summary = crate::limits::tests::all_sorts();
    let figures = Figures::of_summary(&summary);
    same_everywhere(&figures);
    assert!(figures.text().contains("≥ 1.2 K ops/s") && figures.text().contains("disturbed"));
    let json = serde_json::to_value(&summary).unwrap();
    assert_eq!(Figures::of_json(json).unwrap(), figures);

    let mut session = Session::new(&["iops-4k".into()], Rule { to: 0.03, rounds: 8 });
    let mut result = AbResult::new(["old".into(), "new".into()], Rule::default(), vec![]);
    while let Some(next) = session.next_run() {
        let figure = if next.side == crate::ab::Side::B { 1_200.0 } else { 1_000.0 };
        session.record(Sample { figure, others: 0.01 });
        result.take(&session);
    }
    let figures = Figures::of_ab(&result);
    same_everywhere(&figures);
    let text = figures.text();
    for part in ["B is faster: +20.0 %", "iops-4k, round 7", "1.2 K/s", "1.200"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let pair: &Pair = &result.rows[0].pairs[0];
    assert_eq!((pair.a.figure, pair.b.figure), (1_000.0, 1_200.0));
    let json = serde_json::to_value(&result).unwrap();
    assert_eq!(Figures::of_json(json).unwrap(), figures);
}

#[test]
fn what_is_no_result_is_refused() {
    let refused = |value: Value| Figures::of_json(value).expect_err("no result");
    assert!(refused(serde_json::json!({"format": 99, "job": {}})).contains("newer"));
    assert!(refused(serde_json::json!({"kind": "ab", "format": 99})).contains("newer"));
    assert!(refused(serde_json::json!({"kind": "sweep"})).contains("of its own"));
    assert!(
        refused(serde_json::json!([1])).contains("missing field")
            || !refused(Value::Null).is_empty()
    );
}

#[test]
fn an_archive_lists_its_files_and_what_was_changed() {
    let dir = std::env::temp_dir().join(format!("plimsoll-figures-{}", std::process::id()));
    let mut archive = crate::archive::Archive::begin(&dir).unwrap();
    archive.put_run("", &whole()).unwrap();
    archive.seal(&crate::archive::tests::asked(), &[]).unwrap();
    let section = |dir: &Path| Figures::read(dir).unwrap().sections.pop().unwrap();
    let whole = section(&dir);
    assert_eq!(whole.id, "archive");
    assert!(whole.sentences[0].contains("plimsoll lab repeat"), "{whole:?}");
    let line = |section: &Section, file: &str| {
        section.rows.iter().find(|row| row[0] == file).unwrap().clone()
    };
    let csv = line(&whole, "figures.csv");
    assert_eq!((csv[1].len(), csv[2].as_str()), (64, "unchanged"));
    std::fs::write(dir.join("figures.csv"), "x").unwrap();
    let changed = section(&dir);
    assert_eq!(line(&changed, "figures.csv")[2], "has other content");
    assert!(changed.sentences[0].contains("figures.csv has other content"), "{changed:?}");
    std::fs::remove_dir_all(dir).unwrap();
}
