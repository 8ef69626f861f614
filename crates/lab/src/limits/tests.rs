//! Columns, cells and what is made of them: the same figures in each form.

use super::quick::fitted;
use super::summary::neutral;
use super::*;
use crate::client::{ClientError, Target};
use crate::conduct::RunOptions;
use crate::conduct::agents::Source;
use crate::conduct::roster::Roster;
use crate::limit::Limiter;
use crate::measure::Disturbed;
use crate::record::Steadiness;
use crate::record::cold::{ColdStep, DropReport};
use crate::report::tests::made_up;
use crate::verdict::cold::ColdEvidence;
use std::sync::Arc;
use std::time::Duration;

fn options(target: &str, source: Source) -> RunOptions {
    RunOptions {
        target: Target::parse(target).unwrap(),
        source,
        bind: true,
        subnets: Vec::new(),
        server_socket: None,
        server_pid: None,
        observe: Default::default(),
        clean: true,
        scratch: None,
        prove: Vec::new(),
        command: Vec::new(),
    }
}

fn here() -> Source {
    Source::Local { clients: 2, command: Vec::new() }
}

fn planned(targets: &[&str]) -> Vec<ColumnPlan> {
    let targets: Vec<String> = targets.iter().map(|t| (*t).to_owned()).collect();
    columns(&targets, |_, url| Ok::<_, ClientError>(options(url, here()))).unwrap()
}

/// A summary of one row, with these cells.
fn summary(cells: Vec<Cell>) -> Summary {
    let column = |n: usize| Column { name: format!("c{n}"), ..Column::default() };
    Summary {
        format: record::VERSION,
        columns: (0..cells.len()).map(column).collect(),
        rows: vec![Row {
            job: "iops-4k".into(),
            title: "Reads".into(),
            unit: "ops/s".into(),
            cells,
        }],
        ..Summary::default()
    }
}

#[test]
fn columns_have_names_and_folders_of_their_own() {
    let all = planned(&[
        "nfs3://nas/x",
        "nfs4://nas/x",
        "ganesha=nfs3://other/x?mountport=7",
        "nfs3://third/x",
        "null:",
    ]);
    let names: Vec<&str> = all.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["nfs3", "nfs4", "ganesha", "nfs3-2", "null"]);
    assert_eq!(all[2].asked().url, "nfs3://other:2049/x?mountport=7");
    let folder = &all[0].folder;
    assert!(folder.starts_with("plimsoll-limits-") && *folder != all[1].folder);
    assert_eq!(all[0].options.target.to_string(), format!("nfs3://nas:2049/x/{folder}"));
    assert_eq!(all[4].options.target, Target::Null);
    assert!(!all[0].options.clean, "the column removes its folder, not each row");
    assert_eq!(planned(&["nfs3://nas/x"])[0].folder, *folder, "the next time the same");
}

#[test]
fn a_single_column_of_nfs3_has_one_over_rdma() {
    let two = with_rdma(planned(&["nfs3://nas:12049/x"]), || Some("no RDMA device".into()));
    assert_eq!(two[1].name, "nfs3-rdma");
    assert_eq!(two[1].unavailable.as_deref(), Some("no RDMA device"));
    assert_eq!(two[1].folder, two[0].folder, "the same files");
    let url = two[1].options.target.to_string();
    assert!(url.starts_with("nfs3+rdma://nas:30049/x/plimsoll-limits-"), "{url}");
    for targets in [&["nfs4://nas/x"][..], &["nfs3+rdma://nas/x"], &["nfs3://a/x", "nfs3://b/x"]] {
        assert_eq!(with_rdma(planned(targets), || None).len(), targets.len(), "{targets:?}");
    }
    let any = "127.0.0.1:0".parse().unwrap();
    let (roster, _) = Roster::listen(any, 1, None, Duration::from_secs(60)).unwrap();
    let elsewhere = Source::Remote(Arc::new(roster));
    let one = vec!["nfs3://nas/x".to_owned()];
    let all = columns(&one, |_, url| Ok::<_, ClientError>(options(url, elsewhere.clone())));
    let two = with_rdma(all.unwrap(), || panic!("agents elsewhere have their own devices"));
    assert_eq!(two[1].unavailable, None);
}

#[test]
fn what_a_protocol_cannot_do_is_no_failure() {
    let shape = |name: &str| Job::load(name, &[]).unwrap().shape();
    let target = |url: &str| Target::parse(url).unwrap();
    let https = target("https://anna@nas/x?insecure");
    assert!(unsupported(&https, &shape("syncwrite-4k")).unwrap().contains("use seqwrite"));
    assert_eq!(unsupported(&https, &shape("iops-1b")), None);
    let disk = target("iscsi://nas:3260/iqn.2026-01.org:disk/0");
    assert!(unsupported(&disk, &shape("iops-1b")).unwrap().contains("whole blocks"));
    assert_eq!(unsupported(&disk, &shape("iops-4k")), None);
    assert_eq!(unsupported(&target("null:"), &shape("create")), None);
}

#[test]
fn a_column_fails_when_two_runs_come_to_nothing_for_the_same_reason() {
    let failed = |why: &str| {
        let mut run = made_up();
        run.steps.clear();
        run.failed = Some(why.into());
        run
    };
    assert_eq!(column_failed(&failed("a"), None), None);
    assert_eq!(column_failed(&failed("a"), Some(&failed("b"))), None);
    assert_eq!(column_failed(&failed("a"), Some(&made_up())), None);
    assert_eq!(column_failed(&failed("a"), Some(&failed("a"))).as_deref(), Some("a"));
    assert_eq!(column_failed(&made_up(), Some(&failed("a"))), None);
}

#[test]
fn a_cell_names_value_load_limiter_and_interval() {
    let cell = cell(&made_up(), "nfs3/iops-4k");
    assert_eq!((cell.clients, cell.threads, cell.text.as_str()), (8, 3, "1.2 K ops/s"));
    assert_eq!(cell.report.as_deref(), Some("nfs3/iops-4k/report.html"));
    assert!(cell.analytics.starts_with("/analytics?w=nfs3.ops%5Bclient%5D&w="));
    let command = &cell.command;
    assert!(command.starts_with("plimsoll analytics show 'nfs3.ops[client]' --from "), "{command}");
    assert!(command.ends_with('Z') && command.matches('Z').count() == 2, "{command}");
    assert_eq!(cell.doubts, ["lost client 1: <killed>"]);
}

#[test]
fn what_generator_or_schedule_ended_is_a_lower_bound() {
    for (limiter, bound) in
        [(Limiter::Generator, Bound::Generator), (Limiter::NotReached, Bound::Schedule)]
    {
        let mut result = made_up();
        result.limit.as_mut().expect("a verdict").limiter = limiter;
        let cell = cell(&result, "x");
        assert_eq!((cell.text.as_str(), cell.bound), ("≥ 1.2 K ops/s", Some(bound)));
    }
    let mut result = made_up();
    result.limit.as_mut().expect("a verdict").limiter = Limiter::Disk;
    assert_eq!(cell(&result, "x").bound, None);
}

#[test]
fn transport_bytes_come_from_the_connections_or_a_device_that_carried_them() {
    let mut result = made_up();
    result.steps[2].bytes_s = 1e6;
    let seen = |result: &RunResult| {
        let cell = cell(result, "x");
        (cell.transport_bytes_s, cell.transport_seen)
    };
    assert_eq!(seen(&result), (None, None));
    result.steps[2].evidence.link = Some(("eth0".into(), 5e5, None));
    assert_eq!(seen(&result), (None, None), "less than the data passed it");
    result.steps[2].evidence.link = Some(("lo".into(), 1.1e6, None));
    assert_eq!(seen(&result), (Some(1.1e6), Some("lo".into())));
    result.steps[2].transport_bytes_s = Some(1.2e6);
    assert_eq!(seen(&result), (Some(1.2e6), Some("connections".into())));
}

#[test]
fn the_disk_row_is_uncached_only_with_the_proof() {
    let mut result = made_up();
    result.degraded.clear();
    let evidence = |resident, bytes| ColdEvidence {
        resident: Some((resident, 1_000)),
        share_device: Some("vda".into()),
        device: Some(("vda".into(), bytes)),
        payload: 1_000_000,
        ..ColdEvidence::default()
    };
    let mut of = |evidence| {
        let report = DropReport { failed: vec!["not permitted".into()], ..DropReport::default() };
        result.steps[2].cold = Some(ColdStep::of(report, evidence, "observe it"));
        cell(&result, "x")
    };
    let proved = of(evidence(9, 950_000));
    assert!(proved.doubts.is_empty(), "{:?}", proved.doubts);
    let sentence = "uncached: 0.9 % of the pages were resident before, vda read 95.0 % of what \
        clients did";
    assert_eq!(proved.why[0], sentence);
    let doubts = |evidence, of: &mut dyn FnMut(ColdEvidence) -> Cell| of(evidence).doubts.join("|");
    let pretended = doubts(evidence(10, 940_000), &mut of);
    assert_eq!(
        pretended,
        "not proved to be uncached: 1.0 % of the pages were resident before: less than 1.0 % is \
         cold; vda read 94.0 % of what clients did: at least 95.0 % is cold; not permitted"
    );
    let unseen = doubts(ColdEvidence { payload: 1, ..ColdEvidence::default() }, &mut of);
    assert!(unseen.ends_with("`observe it` on the server's host shows it"), "{unseen}");
}

#[test]
fn a_step_that_is_not_steady_states_its_reason() {
    let of = |verdict| {
        let (range_percent, slope_percent) = (34.6, -12.2);
        Steadiness { verdict, range_percent, slope_percent, windows: 5 }.doubt()
    };
    assert_eq!(of(SteadyVerdict::Steady), None);
    let drifting = "throughput drifted by -12 % over 5 windows";
    assert_eq!(of(SteadyVerdict::Drifting).as_deref(), Some(drifting));
    let varied = "throughput varied by 35 % over 5 windows";
    assert_eq!(of(SteadyVerdict::Oscillating).as_deref(), Some(varied));
    assert_eq!(of(SteadyVerdict::NotReached).as_deref(), Some("it had 5 windows only"));
}

#[test]
fn a_repeat_takes_the_place_of_a_run_only_if_it_is_steady() {
    let run = |started: f64, verdict| {
        let mut run = made_up();
        run.started = started;
        run.steps.iter_mut().for_each(|step| step.steady.verdict = verdict);
        run
    };
    let first = || run(1.0, SteadyVerdict::Oscillating);
    assert!(unsettled(&first()));
    let kept = |again| better(first(), again).started;
    assert_eq!(kept(run(2.0, SteadyVerdict::Steady)), 2.0);
    assert_eq!(kept(run(2.0, SteadyVerdict::Drifting)), 1.0);
    let mut failed = run(2.0, SteadyVerdict::Steady);
    failed.failed = Some("client 1: the server closed the connection".into());
    assert_eq!(kept(failed.clone()), 1.0, "what was measured stays");
    failed.steps.clear();
    assert_eq!(kept(failed), 1.0);
    let mut nothing = run(2.0, SteadyVerdict::Steady);
    nothing.best = None;
    assert_eq!(kept(nothing), 1.0, "a repeat without a figure");
}

#[test]
fn reservations_stand_in_the_first_lines() {
    let mut good = cell(&made_up(), "x");
    good.doubts.clear();
    assert!(!summary(vec![good.clone()]).text().contains("Reservations"));
    let mut doubtful = good.clone();
    doubtful.doubts = vec!["the best step (8 × 3) was not steady".to_owned()];
    let text = summary(vec![good, doubtful]).text();
    let at = |what: &str| text.find(what).unwrap_or(usize::MAX);
    let reservation = "Reservations:\n  Reads, c1: the best step (8 × 3) was not steady\n";
    assert!(at(reservation) < at("1.2 K ops/s"), "{text}");
}

/// Cells of all sorts: measured, disturbed, a lower bound, not measured.
pub(crate) fn all_sorts() -> Summary {
    let mut result = made_up();
    let step = &mut result.steps[2];
    (step.bytes_s, step.transport_bytes_s) = (4_915_200.0, Some(5_300_000.0));
    (step.latency.p50, step.latency.p99) = (1_234_000, 5_678_000);
    let plain = cell(&result, "c0/iops-4k");
    let mut disturbed = plain.clone();
    disturbed.disturbed = Some(Disturbed { others: 0.43, repeated: 2, still: true });
    disturbed.text = value_of(&result, 999.0);
    disturbed.value = Some(999.0);
    result.limit.as_mut().expect("a verdict").limiter = Limiter::Generator;
    let bound = cell(&result, "c2/iops-4k");
    let failed = Cell::not_measured("connect to nas:2049: \"refused\", <again>", true);
    summary(vec![plain, disturbed, bound, failed])
}

fn value_of(result: &RunResult, figure: f64) -> String {
    record::figure_text(result.job.workload.is_stream(), figure)
}

/// The fields of a line of CSV without line breaks in fields.
fn fields(line: &str) -> Vec<String> {
    let (mut out, mut quoted) = (vec![String::new()], false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        let last = out.last_mut().expect("a field");
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => last.extend(letters.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => out.push(String::new()),
            letter => last.push(letter),
        }
    }
    out
}

#[test]
fn a_row_has_payload_and_transport_with_their_names() {
    let summary = all_sorts();
    let text = summary.text();
    assert!(text.contains("payload 4.69 MiB/s, transport 5.05 MiB/s"), "{text}");
    let markdown = summary.markdown();
    assert!(markdown.contains("| payload | transport |"), "{markdown}");
    assert!(markdown.contains("| 4.69 MiB/s | 5.05 MiB/s |"), "{markdown}");
    let csv = summary.table().csv();
    let head = csv.lines().next().map(fields).unwrap_or_default();
    let at = |name: &str| head.iter().position(|one| one == name).expect("a column");
    let first = csv.lines().nth(1).map(fields).unwrap_or_default();
    assert_eq!(first[at("payload_bytes_s")], "4915200");
    assert_eq!(first[at("transport_bytes_s")], "5300000");
}

#[test]
fn text_csv_markdown_page_and_json_show_the_same_figures() {
    let summary = all_sorts();
    let json: serde_json::Value = serde_json::to_value(&summary).unwrap();
    let (text, markdown) = (summary.text(), summary.markdown());
    let page = report::summary_page(&summary);
    let csv = summary.table().csv();
    let lines: Vec<Vec<String>> = csv.lines().skip(1).map(fields).collect();
    for (n, (_, _, cell)) in summary.cells().enumerate() {
        for figure in cell.figures().iter().filter(|figure| !figure.is_empty()) {
            assert!(text.contains(figure), "text: {figure}\n{text}");
            assert!(markdown.contains(figure), "Markdown: {figure}\n{markdown}");
            let escaped = report::table::escaped(figure);
            assert!(page.contains(&format!("<td>{escaped}</td>")), "page: {figure}");
            assert!(lines[n].contains(figure), "CSV: {figure} of {:?}", lines[n]);
        }
        let kept = &json["rows"][0]["cells"][n];
        assert_eq!(kept["text"], cell.text);
        let raw = cell.value.map_or(String::new(), |value| value.to_string());
        assert_eq!(lines[n][11], raw, "the number behind the figure");
        assert_eq!(kept["value"].as_f64(), cell.value);
    }
    assert_eq!(fields(csv.lines().next().unwrap())[11], "raw");
    let read = Summary::of(json).unwrap();
    assert_eq!(read, summary);
}

#[test]
fn a_mark_is_in_each_form() {
    let summary = all_sorts();
    let mark = "disturbed: other processes used 43 % of the CPU after 2 repeats";
    let forms =
        [summary.text(), summary.markdown(), summary.table().csv(), report::summary_page(&summary)];
    assert!(forms.iter().all(|form| form.contains(mark)), "{forms:?}");
    let json = serde_json::to_string(&summary).unwrap();
    assert!(json.contains(r#""disturbed":{"others":0.43,"repeated":2,"still":true}"#), "{json}");
    let matrix = summary.matrix().text();
    assert!(matrix.contains("999 ops/s *") && matrix.contains("≥ 1.2 K ops/s"), "{matrix}");
}

#[test]
fn a_summary_of_the_first_version_opens() {
    let text = include_str!("../../tests/data/summary-1.json");
    let value: serde_json::Value = serde_json::from_str(text).unwrap();
    let old = Summary::of(value.clone()).unwrap();
    assert_eq!((old.columns.len(), old.columns[0].name.as_str()), (1, "null"));
    let cell = &old.rows[0].cells[0];
    assert_eq!(cell.value, value["rows"][0]["value"].as_f64());
    assert!(old.text().contains(&cell.text) && report::summary_page(&old).contains(&cell.text));
    let mut value = value;
    value["rows"][0]["rdma"] = serde_json::json!({
        "value": null, "text": "not measured: no RDMA device", "report": null
    });
    let old = Summary::of(value.clone()).unwrap();
    assert_eq!(old.columns[1].name, "nfs3-rdma");
    assert_eq!(old.rows[0].cells[1].text, "not measured: no RDMA device");
    let change = report::compare_summaries(&old, &all_sorts());
    assert!(change.text().contains("not measured: no RDMA device"));
    value["format"] = 99.into();
    assert!(Summary::of(value).unwrap_err().contains("newer"));
}

#[test]
fn summaries_are_compared_cell_by_cell() {
    let (a, mut b) = (all_sorts(), all_sorts());
    b.rows[0].cells[0].value = Some(2400.0);
    b.rows[0].cells[0].text = "2.4 K ops/s".into();
    b.columns[1].target = "nfs3://other/x".into();
    b.columns[3].name = "new".into();
    let change = report::compare_summaries(&a, &b);
    assert_eq!(change.cells.len(), 5, "four columns, and one that only the second has");
    assert_eq!(change.cells[0].ratio, Some(2.0));
    assert_eq!(change.cells[3].texts.1, None);
    assert_eq!((change.cells[3].ratio, change.cells[4].ratio), (None, None));
    let why = |n: usize| change.cells[n].not_comparable.clone();
    assert_eq!(why(0), None);
    let gone = &a.rows[0].cells[3].text;
    assert_eq!(why(3), Some(format!("only the first has it: {gone}")));
    assert_eq!(why(4), Some(format!("only the second has it: {gone}")));
    let marks = &change.cells[1].marks;
    assert!(marks.0.starts_with("disturbed") && marks.0 == marks.1, "{marks:?}");
    assert_eq!(change.targets, [("c1".into(), String::new(), "nfs3://other/x".into())]);
    let text = change.text();
    assert!(text.contains("2.4 K ops/s") && text.contains("2.000"), "{text}");
}

#[test]
fn cells_that_are_not_comparable_state_their_reason() {
    let with = |change: &dyn Fn(&mut Summary)| {
        let (first, mut second) = (all_sorts(), all_sorts());
        change(&mut second);
        let made = report::compare_summaries(&first, &second);
        let cell = made.cells[0].clone();
        assert_eq!(cell.ratio.is_none(), cell.not_comparable.is_some());
        if let Some(why) = &cell.not_comparable {
            assert!(made.text().contains(&format!("not comparable: {why}")), "{}", made.text());
        }
        cell.not_comparable.unwrap_or_default()
    };
    assert_eq!(with(&|_| ()), "");
    assert_eq!(with(&|s| s.columns[0].target = "nfs3://other/x".into()), "", "a repeat elsewhere");
    assert_eq!(with(&|s| s.quick = true), "one is of --quick, the other is not");
    assert_eq!(with(&|s| s.rows[0].unit = "B/s".into()), "units differ: ops/s and B/s");
    let failed = Cell::not_measured("gone", true);
    assert_eq!(with(&|s| s.rows[0].cells[0] = failed.clone()), "the second was not measured: gone");
    let machine = |cores: u32, kernel: &str| serde_json::json!({"cores": cores, "kernel": kernel});
    let (mut first, mut second) = (all_sorts(), all_sorts());
    (first.machine, second.machine) = (machine(2, "6.18"), machine(2, "6.1"));
    let why = |first: &Summary, second: &Summary| {
        report::compare_summaries(first, second).cells[0].not_comparable.clone()
    };
    let differ = "load generators differ: kernel 6.18 and 6.1";
    assert_eq!(why(&first, &second).as_deref(), Some(differ));
    second.machine = machine(2, "6.18");
    first.columns[0].server.machine = Some(machine(2, "6.18"));
    assert_eq!(why(&first, &second), None, "one does not say");
    second.columns[0].server.machine = Some(machine(4, "6.18"));
    assert_eq!(why(&first, &second).as_deref(), Some("servers differ: cores 2 and 4"));
}

#[test]
fn titles_of_rows_leave_the_protocol_to_the_column() {
    assert_eq!(neutral("NFSv3 streaming write"), "Streaming write");
    assert_eq!(neutral("My own job"), "My own job");
}

#[test]
fn quick_jobs_fit_their_time() {
    let around = Duration::from_millis(1_500);
    for name in crate::job::SUMMARY {
        let job = Job::load(name, &[]).unwrap();
        // Six columns of nine rows.
        let time = quick::QUICK_MAX / 54;
        let short = fitted(&job, time, around).expect("it fits");
        let steps = short.steps(8).len() as u32;
        let most = Duration::from_millis(short.step_max_ms) * steps;
        assert!(most + Duration::from_millis(1_400) < time, "{name}: {most:?} of {time:?}");
        let most = if job.cold { 32 << 20 } else { 4 << 20 };
        assert!(short.check().is_ok() && short.file_size <= most);
        let ends = |job: &Job| (job.schedule[0], job.schedule[job.schedule.len() - 1]);
        assert_eq!(ends(&short), ends(&job), "{name}");
        let shorter = fitted(&job, Duration::from_millis(2_400), around).expect("with two steps");
        assert_eq!((shorter.schedule.len(), ends(&shorter)), (2, ends(&job)), "{name}");
        assert!(fitted(&job, Duration::from_secs(2), around).is_none(), "{name}");
    }
    let longest = quick::QUICK_MAX + Duration::from_secs(30);
    assert!(longest < Duration::from_secs(240), "less than four minutes with all around it");
}

#[test]
fn time_that_a_cell_leaves_is_for_those_after_it() {
    let mut budget = Budget::new(true, 3);
    let first = budget.next().expect("time is limited");
    assert!(first <= quick::QUICK_MAX / 3 && first > quick::QUICK_MAX / 4);
    let began = base::clock::monotonic_ns();
    assert!(budget.spares(began), "nothing was used yet");
    // A machine on which more is around the steps than planned: cells become shorter from then on.
    let job = Job::load("iops-4k", &[]).unwrap();
    let steps = |budget: &Budget| {
        let fitted = budget.fitted(&job, Some(Duration::from_millis(3_980))).unwrap();
        (fitted.schedule.len(), fitted.step_max_ms)
    };
    let mut busy = Budget::new(true, 54);
    let mut quiet = Budget::new(true, 54);
    assert_eq!(steps(&busy), (4, 620));
    let short = busy.fitted(&job, Some(Duration::from_millis(3_980))).unwrap();
    for _ in 0..10 {
        busy.took(&short, Duration::from_secs(7));
        quiet.took(&short, Duration::from_secs(3));
    }
    assert_eq!((steps(&busy).0, steps(&quiet)), (2, (4, 620)));
    // Two cells are left.
    assert!(budget.has_room(quick::QUICK_MAX / 7) && !budget.has_room(quick::QUICK_MAX / 6));
    assert!(Budget::new(false, 3).next().is_none() && Budget::new(false, 3).spares(0));
}
