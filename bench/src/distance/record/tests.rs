//! What a run continues with, what is refused, and what is not started.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use clap::Parser;

use super::super::{Wanted, hopeless};
use super::*;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    wanted: Wanted,
}

fn wanted(words: &[&str]) -> Wanted {
    Cli::parse_from(["distance"].iter().chain(words)).wanted
}

fn point(rtt_ms: f64, kind: Kind) -> Point {
    Point { rtt_ms, kind }
}

fn empty(points: Vec<Point>) -> Outcome {
    Outcome {
        points,
        jobs: vec![Job::Tree],
        rows: BTreeMap::new(),
        gaps: BTreeMap::new(),
        condemned: 0,
        rate: 1e9,
        bytes: BTreeMap::new(),
        programs: vec![("dsync", "1".to_owned())],
        notes: Vec::new(),
    }
}

fn late() -> Gap {
    Gap { why: "not done after 300 s".to_owned(), late: true }
}

/// A file, gone with the value.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("bench-record-{name}-{}", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_run_continues_with_the_results_of_an_earlier_one() {
    let file = Scratch::new("goes-on");
    let mut earlier = empty(vec![point(2.0, Kind::Plain), point(200.0, Kind::Loss)]);
    earlier.programs.push(("scp", "9".to_owned()));
    earlier.condemned = 3;
    let figure = Figure { seconds: 7.5, line_bytes: [1, 2], ..Figure::default() };
    earlier.rows.insert((1, Job::Tree, "dsync"), vec![figure]);
    earlier.gaps.insert((0, Job::Tree, "scp"), late());
    let wanted = wanted(&[]);
    fs::write(&file.0, as_json(&wanted, &earlier).to_string()).unwrap();

    let mut outcome = empty(vec![point(0.0, Kind::Plain), point(2.0, Kind::Plain)]);
    resume(&file.0, &wanted, &mut outcome).unwrap();
    assert_eq!(outcome.points.len(), 3);
    assert_eq!(outcome.points[2], point(200.0, Kind::Loss));
    assert_eq!(outcome.rows[&(2, Job::Tree, "dsync")][0].seconds, 7.5);
    assert!(outcome.gaps[&(1, Job::Tree, "scp")].late);
    assert_eq!(outcome.programs.len(), 2);
    assert_eq!(outcome.condemned, 3);
}

#[test]
fn figures_of_other_settings_or_versions_are_not_gone_on_with() {
    let file = Scratch::new("other");
    resume(&file.0, &wanted(&[]), &mut empty(Vec::new())).unwrap();
    fs::write(&file.0, as_json(&wanted(&["--size", "1G"]), &empty(Vec::new())).to_string())
        .unwrap();
    let why = resume(&file.0, &wanted(&[]), &mut empty(Vec::new())).unwrap_err().to_string();
    assert!(why.contains("another settings"), "{why}");

    let mut newer = empty(Vec::new());
    newer.programs[0].1 = "2".to_owned();
    fs::write(&file.0, as_json(&wanted(&[]), &newer).to_string()).unwrap();
    let why = resume(&file.0, &wanted(&[]), &mut empty(Vec::new())).unwrap_err().to_string();
    assert!(why.contains("has dsync \"2\", not \"1\""), "{why}");

    fs::write(&file.0, "{").unwrap();
    assert!(resume(&file.0, &wanted(&[]), &mut empty(Vec::new())).is_err());
}

#[test]
fn a_tool_that_exceeded_its_time_is_not_run_over_a_worse_link() {
    let points = vec![
        point(2.0, Kind::Plain),
        point(0.0, Kind::Plain),
        point(20.0, Kind::Plain),
        point(2.0, Kind::Loss),
        point(0.0, Kind::Loss),
    ];
    let mut outcome = empty(points);
    outcome.gaps.insert((0, Job::Tree, "scp"), late());
    let skipped = |outcome: &Outcome, n| hopeless(outcome, &(n, Job::Tree, "scp"));
    assert!(skipped(&outcome, 1).is_none());
    assert!(skipped(&outcome, 4).is_none());
    assert!(hopeless(&outcome, &(2, Job::Tree, "rsync")).is_none());
    assert!(hopeless(&outcome, &(2, Job::Big, "scp")).is_none());
    let gap = skipped(&outcome, 3).unwrap();
    assert_eq!(gap.why, "not done after 300 s over 2 ms, plain");
    // A row that was not started for that reason refers to the link where the program was tried.
    outcome.gaps.insert((3, Job::Tree, "scp"), gap);
    assert_eq!(skipped(&outcome, 2).unwrap().why, "not done after 300 s over 2 ms, plain");
    // Other failures are no reason.
    outcome.gaps.insert((1, Job::Tree, "rsync"), Gap { why: "failed".to_owned(), late: false });
    assert!(hopeless(&outcome, &(2, Job::Tree, "rsync")).is_none());
}
