//! Results of programs: the same from the file, in its schema, and in every table.

use super::*;
use crate::client::Target;
use crate::programs::drive::Limit;
use crate::programs::run::on;
use crate::report::{self, Figures};
use lab_program::wml::read;
use std::sync::Arc;

const MAIL: &str = include_str!("../../../tests/programs/mail.f");
const SCHEMA: &str = include_str!("../../../../../docs/formats/program.schema.json");

fn result() -> ProgramResult {
    let settings = ["$nthreads=4".to_owned()];
    let program = read("mail.f", MAIL, &settings).expect("a program");
    let plan = Arc::new(Plan::new(program, 3, 0, 1).expect("a plan"));
    let limit = Limit::of(600.0, 1300);
    let totals = on(&Target::Null, &plan, limit, false).expect("a run");
    let request = Request {
        file: "mail.f",
        settings: &settings,
        target: "null:".into(),
        command: vec!["plimsoll".into(), "lab".into(), "run".into(), "mail.f".into()],
        notes: vec!["mail.f:3: nice has no effect".into()],
        started: crate::record::provenance::now(),
    };
    ProgramResult::new(request, &plan, &totals)
}

#[test]
fn a_result_adds_up() {
    let result = result();
    let calls: u64 = result.acts.iter().map(|act| act.calls).sum();
    let shares: f64 = result.acts.iter().map(|act| act.share_percent).sum();
    assert!((shares - 100.0).abs() < 1e-9);
    assert!(result.operations <= calls && result.operations >= 5200, "{}", result.operations);
    assert!(result.bytes_read > 0 && result.bytes_written > 0 && result.errors == 0);
    assert_eq!((result.threads, result.agents, result.repeatable), (4, 1, true));
    assert_eq!(result.sequence.as_ref().map(|s| (s.first, s.marks.len())), Some((1024, 6)));
    assert!(result.failed.is_none() && result.degraded.is_empty());
}

#[test]
fn calls_of_a_run_in_which_a_thread_made_none_are_not_compared() {
    let whole = result();
    let starved = ProgramResult { sequence: None, ..whole.clone() };
    assert_eq!(whole.common(&starved), None);
    assert_eq!(whole.incomparable(&starved), "at least one thread made no call");
    let stated = "no hash of calls: at least one thread made no call".to_owned();
    assert!(starved.sentences().contains(&stated) && !whole.sentences().contains(&stated));
    let by_speed = ProgramResult { repeatable: false, ..whole.clone() };
    assert_eq!(by_speed.common(&whole), None);
    assert_eq!(by_speed.incomparable(&whole), "they depend on the speed of threads");
}

#[test]
fn a_result_is_read_as_it_was_written() {
    let dir = std::env::temp_dir().join(format!("plimsoll-test-program-{}", std::process::id()));
    let result = result();
    let files = report::program_files(&result).expect("files");
    for (name, text) in files {
        crate::record::write_file(&dir, name, &text).expect("written");
    }
    let read = ProgramResult::read(&dir).expect("a result").expect("of a program");
    // Numbers with a point may differ in their last digit.
    let counts = |result: &ProgramResult| -> Vec<(String, u64, u64)> {
        result.acts.iter().map(|act| (act.name.clone(), act.calls, act.bytes)).collect()
    };
    assert_eq!(counts(&read), counts(&result));
    assert_eq!((&read.sequence, read.seed), (&result.sequence, 3));
    let figures = Figures::read(&dir).expect("figures");
    assert_eq!(figures, Figures::of_program(&read));
    for name in ["report.html", "figures.csv", "result.csv", "result.md"] {
        let text = std::fs::read_to_string(dir.join(name)).expect(name);
        assert!(text.contains("deliver") && text.contains("createfile"), "{name}: {text}");
    }
    let table = std::fs::read_to_string(dir.join("result.csv")).expect("a table");
    assert_eq!(table.lines().count(), 14, "{table}");
    std::fs::remove_dir_all(dir).expect("removed");
}

#[test]
fn a_later_format_is_refused() {
    let mut value = serde_json::to_value(result()).expect("JSON");
    value["format"] = 99.into();
    assert!(Figures::of_json(value).is_err_and(|why| why.contains("is newer")));
}

#[test]
fn a_result_matches_its_schema() {
    let value = serde_json::to_value(result()).expect("JSON");
    let faults = crate::report::tests::schema::all_faults(SCHEMA, &value);
    assert_eq!(faults, [""; 0]);
}

#[test]
fn sentences_state_what_has_no_effect() {
    let text = result().sentences().join("\n");
    assert!(text.contains("4 threads") && text.contains("nice has no effect"), "{text}");
    assert!(text.contains("the first 1024 calls of each thread: hash "), "{text}");
}
