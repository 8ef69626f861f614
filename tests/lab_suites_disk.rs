//! Rows of a suite on a disk of their own: which is called uncached, with what is planted against
//! it; processor and disk of rows against what the kernel counts. `make test-long NAME=suites` runs
//! what takes more than seconds.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use e2e::lab::{self, Target};
use e2e::loops::LoopDisk;
use e2e::scratch::Scratch;
use e2e::{has, is_root, patience, process, skip};
use serde_json::Value;

use super::lab_suites::{list, long, read, text};
use super::planted_observed::{Control, Watched, number};

/// How long a command may take.
const SUITE: Duration = patience(240);

/// Time of a row in which reads of a busy disk end, seconds.
const LONGER: &str = "3";

/// A disk with XFS, or why there is none here.
fn disk() -> Result<LoopDisk, String> {
    if !is_root() || !has("losetup") || !has("mkfs.xfs") {
        return Err("needs root, losetup and mkfs.xfs".to_owned());
    }
    LoopDisk::with("xfs")
}

/// Rows of the suite for two clients, with the server's own cooperation.
fn suite(target: &Target, rows: &str, words: &[&str]) -> Command {
    let mut command = lab::command();
    command.args(["filebench-suite", "--clients", "2", "--target", &target.url, "--rows", rows]);
    command.args(words).arg("--server-socket").arg(target.socket());
    command
}

/// Runs it; what it printed, and its rows.
fn run(mut command: Command, out: &Path) -> (String, Value) {
    let output: Output = process::run_with_stdin(command.arg("--out").arg(out), SUITE);
    let printed = text(&output.stdout) + &text(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{printed}");
    (printed, read(out)["rows"].clone())
}

/// That the first row is uncached, or is not for a reason with these words.
fn is_uncached(rows: &Value, printed: &str, why: Option<&str>) {
    let row = &rows[0];
    assert_eq!(row["state"], "done", "{printed}");
    assert_eq!(row["uncached"], why.is_none(), "{row:#}");
    assert_eq!(printed.contains("not proved uncached"), why.is_some(), "{printed}");
    let doubts = row["cell"]["doubts"].to_string();
    println!("{}: {doubts}", row["job"]);
    assert!(why.is_none_or(|why| doubts.contains(why)), "no {why:?} in {doubts}");
}

fn files(below: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(below).into_iter().flatten().flatten();
    let of = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
    entries.flat_map(|entry| of(entry.path())).collect()
}

/// A file in memory, which no drop takes out as long as it is mapped.
struct Mapped(*mut libc::c_void, usize);

impl Mapped {
    fn new(path: &Path) -> Self {
        let file = File::open(path).expect("a test file");
        let length = usize::try_from(file.metadata().expect("its size").len()).expect("a length");
        let (read, flags) = (libc::PROT_READ, libc::MAP_SHARED | libc::MAP_POPULATE);
        // SAFETY: a new mapping, placed by the kernel; it is never looked at.
        let at =
            unsafe { libc::mmap(std::ptr::null_mut(), length, read, flags, file.as_raw_fd(), 0) };
        assert_ne!(at, libc::MAP_FAILED);
        Self(at, length)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping of this value, once.
        assert_eq!(unsafe { libc::munmap(self.0, self.1) }, 0);
    }
}

#[test]
fn a_row_is_uncached_with_the_proof_alone() {
    let disk = match disk() {
        Ok(disk) => disk,
        Err(why) => skip!("lab-suites-disk", "{why}"),
    };
    let target = Target::start(disk.path(), "127.0.0.1", None);
    let out = Scratch::new("suites-disk");
    let rows = "stream-read-1-uncached,stream-read-1-cached";
    let once = |name: &str| {
        let row = |words: &[&str], out: PathBuf| {
            let (printed, found) = run(suite(&target, rows, words), &out);
            (printed, found, out)
        };
        let quick = row(&["--quick", "--set-size", "60m"], out.path().join(name));
        if !quick.0.contains("use longer rows") {
            return quick;
        }
        // On a busy machine no read may end within half a second.
        row(&["--seconds", LONGER, "--set-size", "60m"], out.path().join(format!("{name}-longer")))
    };
    let (printed, found, control) = once("control");
    is_uncached(&found, &printed, None);
    let pair = &found[1];
    assert_eq!((&pair["cache"], &pair["uncached"]), (&"cached".into(), &Value::Null), "{pair:#}");
    let result = control.join("stream-read-1-uncached/result.json");
    let result: Value =
        serde_json::from_slice(&std::fs::read(result).expect("a result")).expect("JSON");
    let evidence = &result["steps"][0]["cold"]["evidence"];
    assert_eq!(evidence["device"][0], disk.name(), "{evidence}");

    // A drop that does nothing: another process has the files in its memory.
    let mapped: Vec<Mapped> = files(disk.path()).iter().map(|path| Mapped::new(path)).collect();
    assert!(mapped.len() >= 40, "{} files", mapped.len());
    let (printed, found, _) = once("mapped");
    is_uncached(&found, &printed, Some("of the pages were resident before"));
    drop(mapped);
    let (printed, found, _) = once("again");
    is_uncached(&found, &printed, None);
}

/// Limits what the members of a group read from a disk, bytes per second.
fn limit(group: &Control, disk: &LoopDisk, bytes_s: u64) {
    group.set("blkio.throttle.read_bps_device", &format!("{} {bytes_s}", disk.number()));
}

/// Bytes that a device has read and written.
fn device(name: &str) -> [f64; 2] {
    let stat = std::fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap_or_default();
    let all: Vec<f64> = stat.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    [2, 6].map(|sectors| all.get(sectors).copied().unwrap_or(0.0) * 512.0)
}

/// Lets the page cache have files while a row reads them: begins when the device has read
/// something after the row has begun.
fn warm(child: &mut Child, disk: &LoopDisk) {
    let lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let mut lines = lines.map_while(Result::ok);
    // Nothing else of a row is reported between its start and its end.
    assert!(lines.any(|line| line.contains("running") || line.contains("Running")), "no row");
    let begun = device(&disk.name())[0];
    let deadline = Instant::now() + SUITE;
    while device(&disk.name())[0] < begun + 262_144.0 {
        assert!(Instant::now() < deadline, "the row reads nothing");
        std::thread::sleep(Duration::from_millis(5));
    }
    for path in files(disk.path()) {
        let _pages = std::fs::read(&path).expect("a test file");
    }
    lines.for_each(drop);
}

/// Random reads of which few are of the same block: of a set that is ten times as large as what a
/// capped device reads meanwhile.
#[test]
fn what_is_read_ahead_is_no_proof() {
    if !long() {
        return;
    }
    let found = disk().and_then(|disk| Ok((Control::new("blkio")?, disk)));
    let (group, disk) = match found {
        Ok(found) => found,
        Err(why) => skip!("lab-suites-ahead", "{why}"),
    };
    let target = Target::start(disk.path(), "127.0.0.1", None);
    group.take(target.pid());
    let out = Scratch::new("suites-ahead");
    let words = ["--set-size", "80m", "--seconds", "3", "--progress", "json"];
    let command = || suite(&target, "random-read-20-uncached", &words);
    let made = run(command(), &out.path().join("made"));
    println!("{}", made.0);
    limit(&group, &disk, 3_000_000);
    let (printed, found) = run(command(), &out.path().join("control"));
    is_uncached(&found, &printed, None);

    let place = out.path().join("warmed");
    let mut planted = command();
    planted.arg("--out").arg(&place).stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = planted.stderr(Stdio::piped()).spawn().expect("started");
    warm(&mut child, &disk);
    let code = process::wait(&mut child, SUITE).and_then(|status| status.code());
    assert_eq!(code, Some(3), "a row without its proof is a reservation");
    let row = &read(&place)["rows"][0];
    println!("{}", row["cell"]["doubts"]);
    assert_eq!(row["uncached"], false, "{row:#}");
    let doubts = row["cell"]["doubts"].to_string();
    assert!(doubts.contains("what was read ahead has warmed it"), "{doubts}");
}

/// What the kernel counts of a control group and of a device, while a suite runs.
#[test]
fn processor_and_disk_of_rows_are_what_the_kernel_counts() {
    if !long() {
        return;
    }
    let groups = || Ok::<_, String>((Control::new("cpuacct")?, Control::new("blkio")?));
    let found = disk().and_then(|disk| Ok((groups()?, disk)));
    let ((group, slow), disk) = match found {
        Ok(found) => found,
        Err(why) => skip!("lab-suites-kernel", "{why}"),
    };
    let target = Target::start(disk.path(), "127.0.0.1", None);
    group.take(target.pid());
    slow.take(target.pid());
    // Rows last long enough that the moments of a reading are little of them.
    limit(&slow, &disk, 50_000_000);
    let out = Scratch::new("suites-kernel");
    let usage = group.path().join("cpuacct.usage");
    let cpu = Watched::new(move || number(&usage) / 1e9);
    let [reads, writes] = [0, 1].map(|n| {
        let name = disk.name();
        Watched::new(move || device(&name)[n])
    });
    let rows = "stream-read-1-uncached,stream-read-1-cached,stream-write-1,random-read-20-uncached,\
                random-read-128-cached,sync-write-128,create-16";
    let words = ["--set-size", "80m", "--seconds", "3", "--write-seconds", "3"];
    let (printed, found) = run(suite(&target, rows, &words), out.path());
    println!("{printed}");
    let (cpu, reads, writes) = (cpu.end(), reads.end(), writes.end());
    let cores = std::thread::available_parallelism().expect("processors").get() as f64;
    let (mut wrong, mut disks) = (Vec::new(), 0);
    for row in list(&found) {
        let job = row["job"].as_str().expect("a name");
        let result = std::fs::read_to_string(out.path().join(job).join("result.json"));
        let result: Value = serde_json::from_str(&result.expect("a result")).expect("JSON");
        let observed = &result["steps"][0]["observe"][0];
        let figure = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{job}: {row:#}"));
        let (from, seconds) = (figure(&observed["started"]), figure(&observed["seconds"]));
        let (step, to) = (&row["steps"][0], from + seconds);
        let percent = cpu.between(from, to) / seconds / cores * 100.0;
        let off = figure(&step["server_cpu_percent"]) - percent;
        println!("{job}: CPU {percent:.2} %, {off:+.2} points");
        wrong.extend((off.abs() > 3.0).then(|| format!("{job}: CPU {off:+.2} points")));
        for (what, own, counted) in [
            ("read", &step["disk_read_bytes_s"], &reads),
            ("write", &step["disk_write_bytes_s"], &writes),
        ] {
            let counted = counted.between(from, to) / seconds;
            // Of less than a megabyte, the moment of a reading is a large part.
            if counted * seconds < 4e6 {
                continue;
            }
            disks += 1;
            let off = (figure(own) / counted - 1.0) * 100.0;
            println!("{job}: disk {what} {:.2} MB/s, {off:+.2} %", counted / 1e6);
            wrong.extend((off.abs() > 3.0).then(|| format!("{job}: disk {what} {off:+.2} %")));
        }
    }
    assert!(disks >= 3, "{disks} rows that used the disk");
    assert_eq!(wrong, [""; 0]);
}

/// All rows with the times of the source, in less than fourteen minutes.
#[test]
fn the_scaled_suite_ends_within_fourteen_minutes() {
    const ALL: Duration = Duration::from_secs(14 * 60);
    if !long() {
        return;
    }
    let dir = Scratch::below(Path::new("/dev/shm"), "suites-scaled");
    let target = Target::start(dir.path(), "127.0.0.1", None);
    let out = Scratch::new("suites-scaled");
    let mut command = lab::command();
    command.args(["filebench-suite", "--target", &target.url, "--set-size", "20m", "--clean"]);
    command.arg("--server-socket").arg(target.socket()).arg("--out").arg(out.path());
    let began = Instant::now();
    let output = process::run_with_stdin(&mut command, ALL + SUITE);
    let took = began.elapsed();
    let printed = text(&output.stdout) + &text(&output.stderr);
    println!("{took:?}\n{printed}");
    assert!(matches!(output.status.code(), Some(0 | 3)), "{printed}");
    for row in list(&read(out.path())["rows"]) {
        // From memory a set may be read before the first window ends.
        let brief = row["cache"] == "uncached" && printed.contains("use a larger set");
        assert!(row["state"] == "done" || brief, "{row:#}");
    }
    assert!(took < ALL, "{took:?}");
}
