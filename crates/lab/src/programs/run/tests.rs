//! Workloads like those that Filebench ships, against what Filebench counted
//! (`tests/programs/recorded.txt`); what is refused, and where.

use super::*;
use crate::conduct::RunEvent;
use crate::programs::set::Figures;
use lab_program::program::Op;
use lab_program::tree::Tree;
use std::path::PathBuf;

const RECORDED: &str = include_str!("../../../tests/programs/recorded.txt");
/// Points by which shares may differ.
const POINTS: f64 = 1.0;
/// More than any of these runs takes.
const LONG: f64 = 600.0;

/// A workload, with less of it than its text states, and calls of each thread.
const WORKLOADS: [(&str, &str, &[&str], u64); 7] = [
    ("mail", include_str!("../../../tests/programs/mail.f"), &["$nfiles=800"], 130),
    (
        "files",
        include_str!("../../../tests/programs/files.f"),
        &["$nfiles=1000", "$nthreads=10", "$sizes=9k"],
        220,
    ),
    (
        "web",
        include_str!("../../../tests/programs/web.f"),
        &["$nfiles=200", "$nthreads=10"],
        // One opens the log.
        311,
    ),
    (
        "proxy",
        include_str!("../../../tests/programs/proxy.f"),
        &["$nfiles=800", "$nthreads=10"],
        190,
    ),
    ("random", include_str!("../../../tests/programs/random.f"), &["$size=1m"], 500),
    ("posts", include_str!("../../../tests/programs/posts.f"), &["$nfiles=300"], u64::MAX),
    ("listing", include_str!("../../../tests/programs/listing.f"), &["$nfiles=300"], 50),
];

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let dir = Path::new("/dev/shm");
        let dir = if dir.is_dir() { dir.to_owned() } else { std::env::temp_dir() };
        let dir = dir.join(format!("plimsoll-test-program-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory");
        Self(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Shares of calls in percent.
fn shares(calls: &[u64]) -> Vec<f64> {
    let all: u64 = calls.iter().sum();
    calls.iter().map(|calls| *calls as f64 * 100.0 / all as f64).collect()
}

#[test]
fn shares_of_operations_are_those_of_filebench() {
    for (name, text, settings, calls) in WORKLOADS {
        let settings: Vec<String> = settings.iter().map(|s| (*s).to_owned()).collect();
        let program = read(name, text, &settings).unwrap_or_else(|error| panic!("{error}"));
        let plan = Arc::new(Plan::new(program, 1, 0, 1).expect("a plan"));
        let dir = Scratch::new(name);
        let target = Target::Path(dir.0.clone());
        let totals = on(&target, &plan, Limit::of(LONG, calls), false).expect("a run");
        assert!(totals.faults.is_empty(), "{name}: {:?}", totals.faults);
        let ours: Vec<u64> = totals.acts.iter().map(|act| act.calls).collect();
        let line = RECORDED.lines().find(|line| line.starts_with(&format!("{name} ")));
        let theirs = line.expect(name).split(' ').skip(2).map(|n| n.parse().expect("a count"));
        let theirs: Vec<u64> = theirs.collect();
        assert_eq!(ours.len(), theirs.len(), "{name}");
        let ops: Vec<Op> = plan.program.acts.iter().map(|act| act.op).collect();
        if ops == [Op::Read, Op::Write] {
            // Two threads that are as fast as they can: what each does, not how often.
            assert!(ours.iter().all(|calls| *calls > 0), "{ours:?}");
            continue;
        }
        for (n, (ours, theirs)) in shares(&ours).iter().zip(shares(&theirs)).enumerate() {
            assert!((ours - theirs).abs() < POINTS, "{name}, flowop {n}: {ours:.2} {theirs:.2}");
        }
    }
}

/// A set that Filebench made: files that existed, mean size, mean files of a directory that had
/// any, mean depth (`find`).
const SET: (f64, f64, f64, f64) = (39_923.0, 16_443.58, 16.579, 8.845);

#[test]
fn a_set_is_like_the_one_that_filebench_makes() {
    let text = "set $size=cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5)\n\
                define fileset name=s,size=$size,entries=50000,dirwidth=20,prealloc=80\n\
                define process name=p { thread name=t { flowop statfile name=a,filesetname=s } }\n";
    let spec = &read("s.f", text, &[]).expect("a program").sets[0];
    let seeds = 0..20;
    let figures: Vec<Figures> =
        seeds.map(|seed| Figures::of(&Tree::new(spec.clone(), seed).expect("a tree"))).collect();
    let mean = |of: fn(&Figures) -> f64| figures.iter().map(of).sum::<f64>() / 20.0;
    let within = |what: &str, ours: f64, theirs: f64| {
        println!(
            "{what}: {ours:.3}, Filebench {theirs:.3}: {:+.2} %",
            (ours / theirs - 1.0) * 100.0
        );
        (ours / theirs - 1.0).abs() < 0.02
    };
    assert!(within("existing", mean(|f| f.existing as f64), SET.0));
    assert!(within("size", mean(|f| f.size_mean), SET.1));
    assert!(within("width", mean(|f| f.width_mean), SET.2));
    assert!(within("depth", mean(|f| f.depth_mean), SET.3));
}

fn refused(text: &str, target: &str) -> String {
    let dir = Scratch::new("refused");
    let file = dir.0.join("p.f");
    std::fs::write(&file, text).expect("written");
    let request = ProgramRequest {
        file: &file,
        settings: &[],
        target,
        seconds: None,
        seed: 1,
        clean: false,
        scratch: None,
        command: Vec::new(),
    };
    let error = Checked::new(&request).expect_err("refused");
    assert!(error.is_usage());
    error.to_string().replace(&dir.0.display().to_string(), "")
}

#[test]
fn what_is_refused_is_named_by_file_line_and_token() {
    let error = refused("set $a=1\nsystem \"rm -rf /\"\n", "null:");
    assert!(error.starts_with("/p.f:2: at 'system': "), "{error}");
    let text = "define process name=p {\nthread name=t {\nflowop fly name=f\n} }\n";
    assert_eq!(refused(text, "null:"), "/p.f:3: at 'fly': there is no such operation");
    let error = refused(include_str!("../../../tests/programs/mail.f"), "ftp://u:p@h/x");
    assert!(error.contains("cannot carry out delete (flowop deletefile)"), "{error}");
    assert!(refused("", "null:").contains("no process is defined"));
    assert!(refused(include_str!("../../../tests/programs/mail.f"), "far:").contains("scheme"));
}

#[test]
fn files_that_cannot_be_removed_degrade_the_result() {
    let dir = Scratch::new("not-removed");
    let (file, place, moved) = (dir.0.join("p.f"), dir.0.join("data"), dir.0.join("moved"));
    std::fs::create_dir(&place).expect("a directory");
    let text = "define fileset name=s,size=4k,entries=4,dirwidth=4,prealloc\n\
                define process name=p { thread name=t {\n\
                flowop statfile name=a,filesetname=s\n\
                flowop finishoncount name=f,value=20 } }\n";
    std::fs::write(&file, text).expect("written");
    let request = ProgramRequest {
        file: &file,
        settings: &[],
        target: &format!("path:{}", place.display()),
        seconds: None,
        seed: 1,
        clean: true,
        scratch: None,
        command: Vec::new(),
    };
    let checked = Checked::new(&request).unwrap_or_else(|error| panic!("{error}"));
    // The threads have opened the directory; what removes their files finds it by its name.
    let result = checked.run(&request, &mut Watch::none(), &mut |event| {
        if matches!(event, RunEvent::Running) {
            std::fs::rename(&place, &moved).expect("moved");
            std::fs::write(&place, "").expect("a file");
        }
    });
    let result = result.expect("a result");
    assert!(result.operations > 0 && result.errors == 0, "{:?}", result.acts);
    assert_eq!(result.failed, None);
    let [left] = result.degraded.as_slice() else { panic!("{:?}", result.degraded) };
    assert!(left.starts_with("the files were not removed: "), "{left}");
}

#[test]
fn a_program_is_named_by_its_ending() {
    assert!(is_program("dir/varmail.f") && !is_program("iops-4k") && !is_program("a.toml"));
}
