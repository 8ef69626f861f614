//! Rows are those of the sources; a suite that was ended continues with the next row; a folder of
//! others stays; what is written matches its schema.

use super::record::SuiteRow;
use super::rows::{Cache, FilebenchScale, SeqreadScale};
use super::*;
use crate::client::Target;
use crate::conduct::agents::{Source, own_command};
use crate::report::tests::{made_up, schema::all_faults};
use crate::workload::Kind;

const SCHEMA: &str = include_str!("../../../../docs/formats/suite.schema.json");

fn quick() -> FilebenchScale {
    FilebenchScale { clients: 18, set: 5 << 20, seconds: [30, 120], quick: true }
}

fn options(target: &str) -> RunOptions {
    RunOptions {
        target: Target::parse(target).expect("a target"),
        source: Source::Local { clients: 1, command: own_command() },
        bind: false,
        subnets: Vec::new(),
        server_socket: None,
        server_pid: None,
        observe: Default::default(),
        clean: false,
        scratch: None,
        prove: Vec::new(),
        command: vec!["test".into()],
    }
}

fn plan(rows: Vec<RowPlan>, target: &str) -> Plan {
    Plan {
        suite: "filebench-suite".into(),
        rows,
        options: options(target),
        folder: None,
        scale: quick().sentence(),
        retries: 0,
        clean: true,
    }
}

#[test]
fn rows_are_those_of_the_table() {
    let scale = FilebenchScale { set: 160 << 20, quick: false, ..quick() };
    let rows = rows::filebench(&scale, &[], &[]).expect("rows");
    let of = |row: &RowPlan| {
        let job = &row.job;
        (job.workload, job.schedule[0], job.block, job.fixed_ms.map(|ms| ms / 1_000), row.cache)
    };
    let (mb, kb) = (1 << 20, 8 << 10);
    let expected = [
        (Kind::SeqRead, (18, 1), mb, Some(30), Cache::Uncached),
        (Kind::SeqRead, (18, 1), mb, Some(30), Cache::Cached),
        (Kind::SeqRead, (18, 20), mb, Some(30), Cache::Uncached),
        (Kind::SeqRead, (18, 10), mb, Some(30), Cache::Cached),
        (Kind::SeqWrite, (18, 1), mb, Some(120), Cache::None),
        (Kind::SeqWrite, (18, 20), mb, Some(120), Cache::None),
        (Kind::RandRead, (18, 20), kb, Some(30), Cache::Uncached),
        (Kind::RandRead, (18, 128), kb, Some(30), Cache::Cached),
        (Kind::SyncWrite, (18, 128), kb, Some(120), Cache::None),
        (Kind::Create, (18, 16), kb, Some(30), Cache::None),
    ];
    assert_eq!(rows.iter().map(of).collect::<Vec<_>>(), expected);
    let aggregates: Vec<f64> = rows.iter().filter_map(|r| Some(r.source?.aggregate)).collect();
    let found = [871.0, 1012.6, 924.2, 1005.9, 461.5, 444.5, 6204.0, 7047.0, 24555.0];
    assert_eq!(aggregates, found);
    for row in &rows {
        assert_eq!(row.job.file_size * u64::from(row.job.files), scale.set, "{}", row.job.name);
        assert_eq!(row.job.cold, row.cache == Cache::Uncached);
        assert_eq!(row.job.own_files, row.job.workload.is_stream());
    }
    // "Same set" is the set of the row before, "different" is another one.
    let sets: String = rows.iter().map(|row| row.set).collect();
    assert_eq!(sets, "aabbaacccc");
    let sentence = scale.sentence();
    assert!(
        sentence.contains("18 clients (source: 18)") && sentence.contains("1/128"),
        "{sentence}"
    );
}

#[test]
fn names_and_settings_select_and_change_rows() {
    let names = ["create-16".to_owned()];
    let rows = rows::filebench(&quick(), &names, &["seed=7".to_owned()]).expect("a row");
    assert_eq!((rows.len(), rows[0].job.seed), (1, 7));
    let wrong = rows::filebench(&quick(), &["create".to_owned()], &[]).expect_err("no row");
    assert!(wrong.to_string().contains("create-16"), "{wrong}");
}

#[test]
fn every_thread_of_seqread_has_a_file() {
    let scale = SeqreadScale {
        sizes: rows::SIZES.to_vec(),
        threads: rows::THREADS.to_vec(),
        clients: 8,
        file_size: 1 << 20,
        quick: false,
    };
    let rows = rows::seqread(&scale, &[]).expect("rows");
    assert_eq!(rows.len(), 7);
    for row in rows {
        assert!(row.job.own_files && row.job.files == 5, "{}", row.job.name);
        assert_eq!(row.job.steps(8), [(8, 1), (8, 2), (8, 3), (8, 5)]);
        assert_eq!(row.job.plateau.min_steps, 4, "all of them are run");
    }
}

/// A run with figures, as a row would have it.
fn result(row: &RowPlan) -> RunResult {
    let mut result = made_up();
    (result.job, result.degraded) = (row.job.clone(), Vec::new());
    result
}

#[test]
fn a_suite_that_was_ended_continues_with_the_next_row() {
    let dir = std::env::temp_dir().join(format!("plimsoll-suite-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let rows = rows::filebench(&quick(), &[], &[]).expect("rows");
    let plan = plan(rows, "null:");
    let mut lines = Vec::new();
    let mut begin = |plan: &Plan| {
        plan.begin(&dir, &mut |news| lines.push(news.to_string())).expect("it is read")
    };
    let mut first = begin(&plan);
    assert!(first.rows.iter().all(|row| row.state == State::Pending));
    first.rows[0].enter(&result(&plan.rows[0]), "stream-read-1-uncached");
    first.rows[1].state = State::Failed;
    first.keep(&dir).unwrap();
    let states = |suite: &SuiteResult| -> Vec<State> {
        suite.rows.iter().take(3).map(|row| row.state).collect()
    };
    let next = begin(&plan);
    let expected = [State::Done, State::Pending, State::Pending];
    assert_eq!(states(&next), expected, "one that has no figures is run again");
    assert_eq!(next.rows[0], first.rows[0]);
    // Another request has nothing in common with it.
    let other = FilebenchScale { set: 10 << 20, ..quick() };
    let others = rows::filebench(&other, &[], &[]).expect("rows");
    assert_eq!(states(&begin(&super::tests::plan(others, "null:"))), [State::Pending; 3]);
    // A suite with all rows is not continued, but made again.
    first.rows.iter_mut().for_each(|row| row.state = State::Done);
    first.keep(&dir).unwrap();
    assert_eq!(states(&begin(&plan)), [State::Pending; 3]);
    assert!(lines.iter().any(|line| line.contains("1 rows are done")), "{lines:?}");
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_pair_without_proof_is_not_compared() {
    let rows = rows::filebench(&quick(), &[], &[]).expect("rows");
    let plan = plan(rows, "null:");
    let mut suite = plan.empty();
    for (row, plan) in suite.rows.iter_mut().zip(&plan.rows) {
        row.enter(&result(plan), &plan.job.name);
    }
    let pairs = suite.pairs();
    assert!(pairs[0].contains("not proved uncached"), "{pairs:?}");
    suite.rows[0].uncached = Some(true);
    let pairs = suite.pairs();
    assert!(pairs[0].starts_with("stream-read-1-cached against stream-read-1-uncached: "));
    assert!(suite.text().contains("not proved uncached"), "of the other rows");
}

#[test]
fn suites_match_their_schema() {
    let rows = rows::filebench(&quick(), &[], &[]).expect("rows");
    let plan = plan(rows, "null:");
    let mut suite = plan.empty();
    suite.rows[0].enter(&result(&plan.rows[0]), "a");
    let step = suite.rows[0].steps.first_mut().expect("a step");
    step.by_client.push(Default::default());
    step.by_interface.push(Default::default());
    step.by_subnet.push(Default::default());
    let mut value = serde_json::to_value(&suite).unwrap();
    assert_eq!(all_faults(SCHEMA, &value), [""; 0]);
    value["rows"][0]["state"] = "lost".into();
    value["rows"][1].as_object_mut().unwrap().remove("title");
    let found = all_faults(SCHEMA, &value).join("; ");
    assert!(found.contains("state: \"lost\"") && found.contains("no title"), "{found}");
    let forms = [suite.text(), suite.markdown(), suite.html(), suite.table().csv()];
    for form in forms {
        assert!(form.contains("20 threads 8K random reads"), "{form}");
        assert!(form.contains("6204 IOPS, 52 MB/s, 14 %"), "{form}");
    }
    let _: SuiteRow = serde_json::from_value(value["rows"][2].clone()).unwrap();
}
