//! Archives: written, read, checked; a changed file is named, nothing secret is inside, and results
//! of the first version open.

use super::request::{Kind, NamedTarget};
use super::*;
use crate::ab::REPEATS;
use crate::hist;
use crate::measure::Until;
use crate::record::SecondRecord;
use crate::report::tests::made_up;
use std::fs;

/// A directory of a test, removed at its end.
struct TestFolder(PathBuf);

impl TestFolder {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("plimsoll-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        Self(dir)
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What was asked of the run that is made up.
pub(crate) fn asked() -> Request {
    let result = made_up();
    Request {
        format: request::VERSION,
        kind: Kind::Run,
        program: "plimsoll".into(),
        command: result.command.clone(),
        clients: 8,
        agents: Vec::new(),
        bind: true,
        subnets: Vec::new(),
        clean: false,
        scratch: None,
        server_socket: None,
        server: None,
        retries: REPEATS,
        quick: false,
        until: Some(Until { to: 0.03, rounds: 12 }),
        suite: None,
        ab: None,
        wml: None,
        iozone: None,
        targets: vec![NamedTarget { name: "nfs3".into(), url: result.target.clone() }],
        jobs: vec![result.job],
    }
}

/// A run with latencies by second.
fn run() -> RunResult {
    let mut hist = hist::new();
    hist.saturating_record(1_000_000);
    let mut run = made_up();
    run.steps[2].started = 1_700_000_010.0;
    run.steps[2].seconds = vec![SecondRecord {
        after_s: 0.0,
        length_s: 1.0,
        max_ns: hist.max(),
        histogram: hist::to_text(&hist),
    }];
    run
}

fn written(name: &str) -> TestFolder {
    let place = TestFolder::new(name);
    let run = run();
    let mut archive = Archive::begin(&place.0).unwrap();
    archive.put_run("", &run).unwrap();
    archive.put_run("runs/001", &run).unwrap();
    archive.seal(&asked(), &[&run]).unwrap();
    place
}

#[test]
fn what_was_asked_is_read_back_and_every_file_is_listed() {
    let place = written("archive-whole");
    assert_eq!(open(&place.0).unwrap(), asked());
    let sums = Sums::read(&place.0).unwrap().unwrap();
    let files: Vec<&str> = sums.files().map(|(file, _)| file).collect();
    for file in [
        "run.toml",
        "result.json",
        "report.html",
        "result.csv",
        "result.md",
        "machines.json",
        "hist/003.hlog",
        "runs/001/result.json",
    ] {
        assert!(files.contains(&file), "{file} of {files:?}");
    }
}

#[test]
fn a_changed_file_is_named() {
    let place = written("archive-changed");
    for (file, what) in [("result.json", "other content"), ("hist/003.hlog", "is missing")] {
        let path = place.0.join(file);
        let before = fs::read(&path).unwrap();
        match what {
            "is missing" => fs::remove_file(&path).unwrap(),
            _ => fs::write(&path, [before.as_slice(), b" "].concat()).unwrap(),
        }
        let why = open(&place.0).unwrap_err().to_string();
        assert!(why.contains(file) && why.contains(what), "{why}");
        assert_eq!(why.matches(", ").count(), 0, "no other file: {why}");
        fs::write(&path, before).unwrap();
    }
    open(&place.0).unwrap();
    // A list without the request would leave that unchecked.
    let sums = fs::read_to_string(place.0.join(SUMS)).unwrap();
    let short: String =
        sums.lines().filter(|l| !l.ends_with(REQUEST)).map(|l| format!("{l}\n")).collect();
    fs::write(place.0.join(SUMS), short).unwrap();
    assert!(open(&place.0).unwrap_err().to_string().contains("run.toml is not in"));
    fs::remove_file(place.0.join(SUMS)).unwrap();
    assert!(matches!(open(&place.0), Err(ArchiveError::NoSums(_))));
}

#[test]
fn links_that_others_planted_are_not_followed() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let place = written("archive-links");
    let outside = TestFolder::new("archive-outside");
    fs::create_dir_all(&outside.0).unwrap();
    fs::write(outside.0.join("003.hlog"), "not ours").unwrap();
    fs::remove_dir_all(place.0.join("hist")).unwrap();
    symlink(&outside.0, place.0.join("hist")).unwrap();
    // The checksums in a directory that other users can write to are not trusted.
    fs::set_permissions(&place.0, fs::Permissions::from_mode(0o777)).unwrap();
    let mut archive = Archive::begin(&place.0).unwrap();
    assert_eq!(fs::read_to_string(outside.0.join("003.hlog")).unwrap(), "not ours");
    let why = archive.put_run("", &run()).unwrap_err();
    assert!(crate::agent::with_sources(&why).contains("hist"), "{why}");
    assert_eq!(fs::read_to_string(outside.0.join("003.hlog")).unwrap(), "not ours");
}

#[test]
fn a_page_made_again_is_entered() {
    let place = written("archive-renew");
    fs::write(place.0.join("report.html"), "another page").unwrap();
    assert!(open(&place.0).is_err());
    renew(&place.0, "report.html").unwrap();
    open(&place.0).unwrap();
}

#[test]
fn an_older_archive_in_the_same_place_goes_and_other_files_stay() {
    let place = written("archive-again");
    fs::write(place.0.join("notes.txt"), "mine").unwrap();
    fs::write(place.0.join("hist/mine"), "mine").unwrap();
    let archive = Archive::begin(&place.0).unwrap();
    let left: Vec<_> =
        fs::read_dir(archive.dir()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(place.0.join("notes.txt").exists() && place.0.join("hist/mine").exists());
}

#[test]
fn the_log_of_latencies_is_one_that_readers_of_hdrhistogram_take() {
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    let log = seconds::log(&run().steps[2]);
    let mut intervals = 0;
    // The crate's reader does not take the head of columns that the Java processors write.
    let lines = log.lines().filter(|line| !line.starts_with('"')).map(|line| format!("{line}\n"));
    for entry in IntervalLogIterator::new(lines.collect::<String>().as_bytes()) {
        match entry.expect("an entry") {
            LogEntry::Interval(interval) => {
                intervals += 1;
                let bytes = base::base64::decode(
                    interval.encoded_histogram().trim_end_matches('=').as_bytes(),
                );
                let hist: hist::Hist =
                    Deserializer::new().deserialize(&mut bytes.unwrap().as_slice()).unwrap();
                assert_eq!((hist.len(), hist.max()), (1, hist.highest_equivalent(1_000_000)));
                assert!((interval.max() - 1.0).abs() < 0.01, "ms");
            }
            LogEntry::BaseTime(_) | LogEntry::StartTime(_) => {}
        }
    }
    assert_eq!(intervals, 1);
    let read = seconds::read(&log).expect("a log");
    assert_eq!((read[0].0, read[0].1, read[0].2.len()), (0.0, 1.0, 1));
    assert!(seconds::read("text").is_none());
}

#[test]
fn nothing_secret_is_in_an_archive() {
    use crate::client::Target;
    use crate::client::service::at::without_password;
    const PASSWORD: &str = "Pass-Word-7";
    let place = TestFolder::new("archive-secret");
    for url in [
        "https://anna:Pass-Word-7@nas:443/x?insecure",
        "smb://anna:Pass-Word-7@nas/box",
        "iscsi://anna%Pass-Word-7@nas:3260/iqn.2026-01.org:disk/0",
        "sftp://anna:Pass-Word-7@nas:22/x?insecure",
    ] {
        let Ok(target) = Target::parse(url) else { continue };
        let mut run = run();
        run.target = target.to_string();
        run.command = vec!["plimsoll".into(), "--target".into(), without_password(url)];
        let mut asked = asked();
        asked.targets[0].url = target.to_string();
        asked.command.clone_from(&run.command);
        let mut archive = Archive::begin(&place.0).unwrap();
        archive.put_run("", &run).unwrap();
        archive.seal(&asked, &[&run]).unwrap();
        let sums = Sums::read(&place.0).unwrap().unwrap();
        for (file, _) in sums.files() {
            let text = fs::read_to_string(place.0.join(file)).unwrap();
            assert!(!text.contains(PASSWORD), "{url}: {file}");
        }
    }
}

#[test]
fn a_result_of_the_first_version_opens() {
    let text = include_str!("../../tests/data/result-1.json");
    let place = TestFolder::new("archive-first");
    fs::create_dir_all(&place.0).unwrap();
    fs::write(place.0.join("result.json"), text).unwrap();
    let run = RunResult::read(&place.0).unwrap();
    assert_eq!((run.format, run.steps.len()), (1, 2));
    assert!(report::text(&run).contains("2 × 2"));
    assert!(report::page(&run).contains("2 × 2"));
    let both = report::compare(std::slice::from_ref(&run), std::slice::from_ref(&run))
        .expect("a comparison");
    assert_eq!(both.ratio, 1.0);
    assert_eq!(run.operations.common(&run.operations), None);
    assert!(matches!(open(&place.0), Err(ArchiveError::NoSums(_))), "it is no archive");
}

#[test]
fn a_comparison_has_two_sides() {
    let place = written("archive-sides");
    let ab = |targets: usize, builds: usize| {
        let mut request = asked();
        request.kind = Kind::Ab;
        request.targets = vec![request.targets[0].clone(); targets];
        let rule = crate::ab::Rule::default();
        let builds = vec!["/usr/bin/plimsoll".into(); builds];
        request.ab = Some(request::AbRequest { rule, builds, protocol: "nfs3".into() });
        fs::write(place.0.join(REQUEST), request.text().unwrap()).unwrap();
        renew(&place.0, REQUEST).unwrap();
        open(&place.0).map(|read| assert_eq!(read, request))
    };
    ab(2, 0).unwrap();
    ab(0, 2).unwrap();
    for (targets, builds) in [(1, 0), (0, 1), (0, 0)] {
        assert!(ab(targets, builds).is_err());
    }
}
