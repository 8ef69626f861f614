//! Pages stand alone, and what comes from outside cannot break out of its place.

pub(crate) mod schema;

use super::*;
use crate::job::Job;
use crate::limit::{Evidence, judge};
use crate::record::{Step, WindowRecord};

/// A run with three steps, made up.
pub(crate) fn made_up() -> RunResult {
    let step = |n: u32| Step {
        number: n,
        clients: 8,
        threads: n,
        window_s: 0.25,
        windows: vec![WindowRecord { ops: 100, heat: vec![(60, 100)], ..Default::default() }; 6],
        used: (1, 6),
        ops_s: 400.0 * f64::from(n),
        ..Default::default()
    };
    RunResult {
        format: record::VERSION,
        program: "plimsoll".into(),
        started: 1_700_000_000.25,
        ended: 1_700_000_030.0,
        job: Job::load("iops-4k", &[]).unwrap(),
        target: "nfs3://nas</script><b>/x".into(),
        command: vec!["plimsoll".into(), "lab".into()],
        conductor: serde_json::Value::Null,
        server: Default::default(),
        clients: vec![Default::default()],
        checked_share: 1.0,
        null_ops_s: Some(1e6),
        steps: vec![step(1), step(2), step(3)],
        best: Some(2),
        levelled: true,
        limit: Some(judge(&Evidence::default())),
        demands: None,
        scaling: None,
        operations: Default::default(),
        disturbed: None,
        over_runs: None,
        shape: Default::default(),
        proof: None,
        degraded: vec!["lost client 1: <killed>".into()],
        failed: None,
    }
}

#[test]
fn pages_load_nothing_from_other_hosts() {
    let result = made_up();
    let cell = crate::limits::cell(&result, "nfs3/iops-4k");
    let mut summary = Summary::default();
    summary.columns.push(Default::default());
    summary.rows.push(crate::limits::Row { cells: vec![cell], ..Default::default() });
    for page in [page(&result), summary_page(&summary)] {
        assert!(!page.contains("{{") && !page.contains("/*STYLE*/"));
        for outside in ["src=", "@import", "url(", "fetch(", "https://"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert_eq!(page.matches("</script>").count(), 2, "data cannot end its element");
    }
}

#[test]
fn the_page_carries_the_record() {
    let page = page(&made_up());
    let data = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let read: RunResult = serde_json::from_str(data).unwrap();
    assert_eq!(read.target, made_up().target);
    assert_eq!(read.steps.len(), 3);
}

#[test]
fn the_page_links_every_step_when_the_server_is_known() {
    let mut result = made_up();
    assert!(!page(&result).contains("\"analytics\":"));
    let services = serde_json::json!([{"name": "admin", "listen": "10.0.0.2:10215"}]);
    result.server.status = Some(serde_json::json!({"services": services}));
    let page = page(&result);
    assert_eq!(page.matches("https://10.0.0.2:10215/analytics?w=nfs3.ops%5Bclient%5D").count(), 3);
}

#[test]
fn text_names_steps_limiter_and_what_degrades() {
    let text = text(&made_up());
    for part in ["8 × 3", "1.2 K ops/s", "limit: ", "degraded: lost client 1"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn a_step_that_ran_out_of_uncached_data_has_no_figure_and_states_the_size() {
    let mut result = made_up();
    let asked = result.job.steady.windows;
    let set = &mut result.job;
    (set.cold, set.file_size, set.warmup_ms, set.window_ms) = (true, 100 << 20, 0, 100);
    set.step_max_ms = 1_600;
    assert_eq!(result.exhausted(), None, "{asked} windows of 6");
    let last = &mut result.steps[2];
    last.windows.clear();
    (last.used, last.ops_s) = ((0, 0), 0.0);
    // It ended within the first window: all windows take as many times as long.
    let sentence = result.exhausted().unwrap();
    let size = base::units::bytes((100u64 << 20) as f64 * f64::from(asked));
    assert!(sentence.contains("at 8 × 3: set file_size to at least"), "{sentence}");
    assert!(sentence.ends_with(&size), "{sentence}");
    assert_eq!(table(&result).rows()[2][1..6], ["–"; 5]);
    assert!(text(&result).contains(&sentence));
    result.job.cold = false;
    assert_eq!(result.exhausted(), None);
    (result.job.cold, result.job.step_max_ms) = (true, 100);
    assert_eq!(result.exhausted(), None, "it ended by its time");
}

#[test]
fn text_csv_markdown_page_and_json_of_a_run_show_the_same_figures() {
    let mut result = made_up();
    for (step, ns) in result.steps.iter_mut().zip([1_234_567, 23_456_789, 345_678_901]) {
        (step.latency.p50, step.latency.p99, step.latency.mean) = (ns, ns * 3, ns as f64 * 1.5);
    }
    let (text, markdown, page, csv) =
        (text(&result), markdown(&result), page(&result), table(&result).csv());
    let json = serde_json::to_value(&result).unwrap();
    for (n, row) in table(&result).rows().iter().enumerate() {
        for figure in row {
            let cell = format!("<td>{}</td>", escaped(figure));
            assert!(text.contains(figure), "text: {figure}");
            assert!(markdown.contains(figure), "Markdown: {figure}");
            assert!(csv.contains(figure), "CSV: {figure}");
            assert!(page.contains(&cell), "page: {figure}");
        }
        let step = &json["steps"][n];
        assert_eq!(row[1], figure_text(false, step["ops_s"].as_f64().unwrap()));
        assert_eq!(row[4], time_ns(step["latency"]["p99"].as_f64().unwrap()));
        assert!(csv.lines().nth(n + 1).unwrap().contains(&step["latency"]["p99"].to_string()));
    }
}

#[test]
fn marks_of_a_run_are_in_each_form() {
    let mut result = made_up();
    let disturbed = crate::measure::Disturbed { others: 0.43, repeated: 2, still: true };
    result.degraded.push(disturbed.sentence());
    result.disturbed = Some(disturbed);
    let until = crate::measure::Until { to: 0.03, rounds: 12 };
    result.over_runs = Some(crate::measure::OverRuns::of(&[1200.0; 7], until));
    let page = page(&result);
    for form in [text(&result), markdown(&result), page] {
        assert!(form.contains("other processes used 43 % of the CPU after 2 repeats"), "{form}");
        let over = "over 7 runs: 1.2 K ops/s (1.2 K ops/s to 1.2 K ops/s, 95 %)";
        assert!(form.contains(over), "{form}");
    }
}

#[test]
fn a_run_that_fails_before_its_first_step_has_a_reason_and_no_table() {
    let mut result = made_up();
    result.steps.clear();
    result.failed = Some("client 2: mount /export/a: the server returned MNT3ERR_ACCES".into());
    let text = text(&result);
    assert!(!text.contains("throughput"), "{text}");
    assert!(text.contains("do not admit the address of this client"), "{text}");
}

/// Runs with these figures, of a block.
fn runs(figures: &[f64], block: u32) -> Vec<RunResult> {
    let run = |figure: &f64| {
        let mut run = made_up();
        run.steps[2].ops_s = *figure;
        run.job.block = block;
        run
    };
    figures.iter().map(run).collect()
}

#[test]
fn one_run_of_each_decides_nothing() {
    let (a, b) = (runs(&[1000.0], 4096), runs(&[1500.0], 8192));
    let found = compare(&a, &b).unwrap();
    assert_eq!((found.distinction, found.interval), (Distinction::Undecided, None));
    assert!(!found.significant && found.ratio == 1.5);
    let text = found.text();
    assert!(text.contains("undecided: 1 and 1 runs") && text.contains("block: 4096 | 8192"));
    assert!(compare(&a, &[]).is_none());
}

#[test]
fn several_runs_of_each_have_an_interval_over_runs() {
    // As measured, of one build: windows within each run agreed to a few percent.
    let eight = [42e3, 154e3, 59e3, 58e3, 77e3, 131e3, 149e3, 128e3];
    let (a, b) = (runs(&eight[..4], 4096), runs(&eight[4..], 4096));
    let same = compare(&a, &b).unwrap();
    assert!(!same.significant && same.runs == (4, 4), "{}", same.text());
    let slow: Vec<f64> = (0..6).map(|n| 100e3 + 1e3 * f64::from(n)).collect();
    let fast: Vec<f64> = slow.iter().map(|f| f * 1.2).collect();
    let found = compare(&runs(&slow, 4096), &runs(&fast, 4096)).unwrap();
    let (low, high) = found.interval.unwrap();
    assert!(found.significant && low > 1.1 && low < 1.2 && high > 1.2, "{}", found.text());
    assert!(found.text().contains("they differ: +20.0 %"), "{}", found.text());
    let found = compare(&runs(&slow, 4096), &runs(&slow, 4096)).unwrap();
    assert_eq!(found.distinction, Distinction::Chance);
    assert!(found.text().contains("no more than chance: +0.0 %"), "{}", found.text());
}

#[test]
fn runs_are_read_from_the_directories_of_an_archive() {
    let dir = std::env::temp_dir().join(format!("plimsoll-compare-{}", std::process::id()));
    for (n, run) in runs(&[1e3, 2e3, 3e3], 4096).iter().enumerate() {
        run.write(&dir.join(format!("{n}-a"))).unwrap();
    }
    assert_eq!(read_runs(&dir).unwrap().len(), 3);
    assert_eq!(read_runs(&dir.join("1-a")).unwrap().len(), 1);
    let mut other = made_up();
    other.job.name = "other".into();
    other.write(&dir.join("3-a")).unwrap();
    assert!(read_runs(&dir).unwrap_err().to_string().contains("several jobs"));
    std::fs::remove_dir_all(dir).unwrap();
}
