//! Rows say where to look, as a URL path and as a command.

use super::*;
use crate::conduct::roster::Roster;
use crate::record::Steadiness;
use crate::report::tests::made_up;
use std::sync::Arc;
use std::time::Duration;

fn options(target: &str, source: Source) -> RunOptions {
    RunOptions {
        target: Target::parse(target).unwrap(),
        source,
        bind: true,
        server_socket: None,
        server_pid: None,
        observe: Default::default(),
        clean: true,
        scratch: None,
        command: Vec::new(),
    }
}

/// The column of a target, of runs from this machine, where this is missing.
fn column(target: &str, missing: Option<&str>) -> RdmaColumn {
    let here = Source::Local { clients: 2, command: Vec::new() };
    RdmaColumn::of(&options(target, here), || missing.map(str::to_owned))
}

/// The cell of a run that was made.
fn cell(column: &RdmaColumn, result: &RunResult) -> Option<OverRdma> {
    let (job, nowhere) = (Job::load("iops-4k", &[]).unwrap(), Path::new("/dev/null"));
    column.cell(&job, result, nowhere, &mut |_| ()).unwrap()
}

#[test]
fn without_a_device_the_column_of_rdma_says_so() {
    let column = column("nfs3://nas/x", Some("no RDMA device"));
    let cell = cell(&column, &made_up()).expect("a cell");
    assert_eq!((cell.value, cell.report), (None, None));
    assert_eq!(cell.text, "not measured: no RDMA device");
    let mut summary = summarise(&[made_up()]);
    assert!(!summary.text().contains("RDMA"), "no column without cells");
    summary.rows[0].rdma = Some(OverRdma::not_measured("no RDMA device"));
    let text = summary.text();
    let lines: Vec<&str> = text.lines().collect();
    let ends = |word: &str, at: usize| lines[at].find(word).map(|start| start + word.len());
    let head = lines.iter().position(|line| line.contains("over RDMA")).expect("a head");
    // Letters of the value before it are more than one byte each.
    let end = ends("over RDMA", head).map(|end| end + 1);
    assert_eq!(ends("no RDMA device", head + 1), end, "{text}");
}

#[test]
fn nfs3_is_measured_over_rdma_too() {
    let RdmaColumn::Runs(options) = column("nfs3://nas:12049/x?mountport=7", None) else {
        panic!()
    };
    assert_eq!(options.target.to_string(), "nfs3+rdma://nas:30049/x?mountport=7");
    assert!(options.clean);
    for other in ["nfs4://nas/x", "path:/srv", "null:"] {
        let column = column(other, None);
        assert!(matches!(column, RdmaColumn::None), "{other}");
        assert_eq!(cell(&column, &made_up()), None);
    }
}

#[test]
fn a_target_over_rdma_has_its_own_figure_in_the_column() {
    let mut result = made_up();
    let same = column("nfs3+rdma://nas/x", Some("no RDMA device"));
    let found = cell(&same, &result).expect("a cell");
    assert_eq!((found.value, found.text.as_str()), (Some(1200.0), "1.2 K ops/s"));
    assert_eq!(found.report.as_deref(), Some("iops-4k/report.html"));
    result.failed = Some("connect to nas:20049 over RDMA: no route".into());
    let found = cell(&same, &result).expect("a cell");
    assert_eq!(found.text, "not measured: connect to nas:20049 over RDMA: no route");
}

#[test]
fn agents_elsewhere_have_their_own_devices() {
    let any = "127.0.0.1:0".parse().unwrap();
    let (roster, _) = Roster::listen(any, 1, None, Duration::from_secs(60)).unwrap();
    let elsewhere = Source::Remote(Arc::new(roster));
    let found = RdmaColumn::of(&options("nfs3://nas/x", elsewhere), || panic!("it is not asked"));
    assert!(matches!(found, RdmaColumn::Runs(_)));
}

#[test]
fn a_summary_of_an_earlier_version_has_no_column() {
    let mut row = serde_json::to_value(row(&made_up())).unwrap();
    row.as_object_mut().unwrap().remove("rdma");
    let read: Row = serde_json::from_value(row).unwrap();
    assert_eq!(read.rdma, None);
}

#[test]
fn a_row_names_value_load_limiter_and_interval() {
    let row = row(&made_up());
    assert_eq!((row.clients, row.threads, row.text.as_str()), (8, 3, "1.2 K ops/s"));
    assert_eq!(row.report, "iops-4k/report.html");
    assert!(row.analytics.starts_with("/analytics?w=nfs3.ops%5Bclient%5D&w="));
    let command = &row.command;
    assert!(command.starts_with("plimsoll analytics show 'nfs3.ops[client]' --from "), "{command}");
    assert!(command.ends_with('Z') && command.matches("Z").count() == 2, "{command}");
    assert_eq!(row.doubts, ["lost client 1: <killed>"]);
}

#[test]
fn the_text_has_a_line_for_each_row() {
    let text = summarise(&[made_up(), made_up()]).text();
    assert_eq!(text.matches("8 × 3").count(), 2);
}

#[test]
fn reservations_stand_in_the_first_lines() {
    let mut steady = made_up();
    steady.degraded.clear();
    assert!(!summarise(&[steady.clone()]).text().contains("Reservations"));
    let mut unsteady = made_up();
    unsteady.degraded = vec!["the best step (8 × 3) was not steady".to_owned()];
    let text = summarise(&[steady, unsteady]).text();
    let lines: Vec<&str> = text.lines().take(4).collect();
    let title = made_up().job.title;
    let reservation = format!("  {title}: the best step (8 × 3) was not steady");
    assert_eq!(lines[1..], ["", "Reservations:", reservation.as_str()], "{text}");
    assert_eq!(text.matches("was not steady").count(), 1, "once");
}

#[test]
fn a_step_that_is_not_steady_says_why() {
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
fn what_the_generator_limits_is_a_lower_bound() {
    let mut result = made_up();
    if let Some(limit) = &mut result.limit {
        limit.limiter = Limiter::Generator;
    }
    assert_eq!(row(&result).text, "at least 1.2 K ops/s");
}
