//! `plimsoll dsync` as people run it: between directories, over a program that takes the place of
//! ssh, killed at any moment, as an ordinary user, on a full disk.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use base::random::{Random, SeededRandom};
use e2e::place::Memory;
use e2e::process::{DEADLINE, run, signal, wait};
use e2e::scratch::Scratch;
use e2e::server::binary;
use e2e::tree::{assert_same, code, output_text, plant};
use e2e::{NOBODY, is_root, skip};
use serde_json::Value;

/// Files of the tree that is killed at.
const FILES: usize = 400;

fn dsync(args: &[&OsStr]) -> Command {
    let mut command = Command::new(binary());
    command.arg("dsync").args(args);
    command
}

/// Source and destination, and options.
fn go(from: &Path, to: &Path, options: &[&str]) -> Output {
    let options: Vec<&OsStr> = options.iter().map(OsStr::new).collect();
    let mut args = vec![from.as_os_str(), to.as_os_str()];
    args.extend(options);
    run(&mut dsync(&args), DEADLINE)
}

/// What takes the place of ssh: runs the command here, and leaves its process's number in a file.
fn shell(scratch: &Scratch) -> PathBuf {
    let path = scratch.path().join("rsh");
    let pid = scratch.path().join("rsh.pid");
    let text = format!(
        "#!/bin/sh\n[ \"$1\" = -p ] && shift 2\n[ \"$1\" = nowhere ] && exit 255\nshift\n\
         echo $$ >'{}'\nexport SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22'\n\
         exec sh -c \"exec $*\"\n",
        pid.display()
    );
    fs::write(&path, text).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("making it runnable");
    path
}

/// Options that reach "another machine" through it.
fn through(shell: &Path) -> [String; 4] {
    let program = binary().display().to_string();
    let shell = shell.display().to_string();
    ["--rsh".to_owned(), shell, "--remote-program".to_owned(), program]
}

fn there(path: &Path) -> PathBuf {
    let mut place = std::ffi::OsString::from("host:");
    place.push(path);
    PathBuf::from(place)
}

#[test]
fn directories_here_and_over_a_shell_become_the_same() {
    let scratch = Scratch::new("dsync");
    let (from, shell) = (scratch.folder("from", None), shell(&scratch));
    plant(&from, 60);
    let over = through(&shell);
    let over: Vec<&str> = over.iter().map(String::as_str).collect();
    let place = |name: &str| scratch.path().join(name);
    let (here, pushed, pulled) = (place("here"), place("pushed"), place("pulled"));
    let runs = [
        (from.clone(), here.clone(), vec!["-v"]),
        (from.clone(), there(&pushed), [over.as_slice(), &["-v"]].concat()),
        (there(&from), pulled.clone(), [over.as_slice(), &["-v"]].concat()),
    ];
    let mut first: Option<Vec<String>> = None;
    for (from, to, options) in &runs {
        let dry = go(from, to, &[options.as_slice(), &["-n"]].concat());
        assert_eq!(code(&dry), 0, "{}", output_text(&dry));
        let done = go(from, to, options);
        assert_eq!(code(&done), 0, "{}", output_text(&done));
        let sorted = |output: &Output| {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            // The last line has the sums, which a dry run cannot have.
            lines.pop();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&dry), sorted(&done), "a dry run says what is done");
        assert!(sorted(&done).contains(&"create .".to_owned()), "{}", output_text(&done));
        assert_eq!(first.get_or_insert_with(|| sorted(&done)), &sorted(&done));
        let again = go(from, to, options);
        assert!(
            output_text(&again).starts_with("70 entries, 0 changed"),
            "{}",
            output_text(&again)
        );
    }
    for to in [&here, &pushed, &pulled] {
        assert_same(&from, to);
    }
    fs::remove_file(from.join("again")).expect("taking it away");
    let kept = go(&from, &here, &[]);
    assert!(code(&kept) == 0 && here.join("again").exists(), "{}", output_text(&kept));
    let gone = go(&from, &there(&here), &[over.as_slice(), &["--delete"]].concat());
    assert_eq!(code(&gone), 0, "{}", output_text(&gone));
    assert_same(&from, &here);
}

#[test]
fn wrong_usage_and_lost_sides_are_distinguished() {
    let scratch = Scratch::new("dsync-usage");
    let (from, shell) = (scratch.folder("from", None), shell(&scratch));
    let over = through(&shell);
    let over: Vec<&str> = over.iter().map(String::as_str).collect();
    let to = scratch.path().join("to");
    let with = |options: &[&str]| code(&go(&from, &to, options));
    assert_eq!(with(&["--bandwidth", "fast"]), 2);
    assert_eq!(with(&["--exclude", "**a**b**"]), 2);
    assert_eq!(with(&["--streams", "65"]), 2);
    assert_eq!(with(&["--data-port", "7010-7000"]), 2);
    assert_eq!(with(&["--exclude-from", "/nowhere/at/all"]), 2);
    assert_eq!(code(&go(&from, &from.join("within"), &[])), 2);
    assert_eq!(code(&go(&there(&from), &there(&to), &over)), 2);
    assert_eq!(code(&go(Path::new("-oProxyCommand=x:/a"), &to, &["--"])), 2);
    assert!(!to.exists(), "nothing was made");
    assert_eq!(code(&go(&from, &scratch.path().join("none/to"), &[])), 1);
    let none = go(&scratch.path().join("none"), &to, &[]);
    assert!(
        code(&none) == 1 && output_text(&none).contains("No such file"),
        "{}",
        output_text(&none)
    );
    let refused = go(&there(&scratch.path().join("none")), &to, &over);
    assert!(
        code(&refused) == 1 && output_text(&refused).contains("No such file"),
        "{}",
        output_text(&refused)
    );
    let unreached = go(Path::new("nowhere:/a"), &to, &over);
    assert!(output_text(&unreached).contains("not reached"), "{}", output_text(&unreached));
    let stranger =
        go(&there(&from), &to, &["--rsh", over[1], "--remote-program", "echo hello from;"]);
    assert!(output_text(&stranger).contains("is not dsync"), "{}", output_text(&stranger));
}

#[test]
fn events_are_json_and_rules_go_in_their_order() {
    let scratch = Scratch::new("dsync-json");
    let from = scratch.folder("from", None);
    for name in ["a.c", "b.o", "keep.o"] {
        fs::write(from.join(name), b"x").expect("a file");
    }
    fs::write(from.join(OsStr::from_bytes(b"\xff.c")), b"x").expect("a file");
    let list = scratch.path().join("list");
    fs::write(&list, "# not these\n*.o\n").expect("a list");
    let to = scratch.path().join("to");
    let list = list.display().to_string();
    let options = ["--json", "--include", "keep.o", "--exclude-from", &list];
    let done = go(&from, &to, &options);
    assert_eq!(code(&done), 0, "{}", output_text(&done));
    let text = String::from_utf8(done.stdout).expect("text");
    let events: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).expect(l)).collect();
    let of =
        |event: &str| -> Vec<&Value> { events.iter().filter(|e| e["event"] == event).collect() };
    let created: Vec<&str> = of("create").iter().filter_map(|e| e["path"].as_str()).collect();
    assert_eq!(created, ["", "a.c", "keep.o", "\u{fffd}.c"]);
    assert_eq!(of("create")[3]["path_base64"], "/y5j");
    let last = events.last().expect("a last one");
    assert!(last["event"] == "done" && last["failures"] == 0 && last["files_done"] == 3, "{last}");
    assert!(!to.join("b.o").exists());
    // The other way round the include comes too late.
    let late = scratch.path().join("late");
    let done = go(&from, &late, &["--exclude-from", &list, "--include", "keep.o"]);
    assert_eq!(code(&done), 0, "{}", output_text(&done));
    assert!(!late.join("keep.o").exists() && late.join("a.c").exists());
}

#[test]
fn data_goes_outside_ssh_unless_it_cannot_or_shall_not() {
    let scratch = Scratch::new("dsync-streams");
    let (from, shell) = (scratch.folder("from", None), shell(&scratch));
    plant(&from, 40);
    // What is small, or becomes it, may be there before a stream has come up.
    let mut bytes = vec![0; 5 << 20];
    SeededRandom::new(7).fill(&mut bytes);
    fs::write(from.join("large"), bytes).expect("a file");
    let over = through(&shell);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("it").port().to_string();
    // The options; how many streams may be used; the reported reason if none is.
    let cases: [(&[&str], std::ops::RangeInclusive<u64>, Option<&str>); 4] = [
        (&[], 1..=64, None),
        (&["--streams", "2"], 1..=2, None),
        (&["--streams", "0"], 0..=0, None),
        (&["--data-port", &port], 0..=0, Some("in use")),
    ];
    for (number, (options, streams, why)) in cases.into_iter().enumerate() {
        let to = scratch.path().join(format!("to{number}"));
        let mut all: Vec<&str> = over.iter().map(String::as_str).collect();
        all.extend(options);
        all.push("--json");
        let (source, destination) =
            if number % 2 == 0 { (from.clone(), there(&to)) } else { (there(&from), to.clone()) };
        let done = go(&source, &destination, &all);
        assert_eq!(code(&done), 0, "{}", output_text(&done));
        assert_same(&from, &to);
        let text = String::from_utf8(done.stdout).expect("text");
        let events: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).expect(l)).collect();
        let told: Vec<&Value> = events.iter().filter(|e| e["event"] == "streams").collect();
        let last = events.last().and_then(|done| done["streams"].as_u64()).unwrap_or(0);
        assert!(streams.contains(&last), "{options:?}: {told:?}");
        match why {
            _ if last > 0 => {
                assert!(told.iter().all(|e| e["rtt_ms"].as_f64().is_some_and(|ms| ms > 0.0)));
                assert!(told[0]["congestion"].as_str().is_some_and(|name| !name.is_empty()));
            }
            Some(why) => {
                let said = told.first().and_then(|e| e["why"].as_str()).unwrap_or_default();
                assert!(told.len() == 1 && said.contains(why), "{told:?}");
            }
            None => assert!(told.is_empty(), "{told:?}"),
        }
    }
}

/// Starts a run with its events as JSON, and kills a process at the first event for which `when`
/// returns true; it gets the number of the event and the event.
fn killed(
    (from, to): (&Path, &Path),
    options: &[&str],
    mut when: impl FnMut(usize, &Value) -> bool,
    victim: impl Fn(u32) -> u32,
) {
    let mut command = dsync(&[from.as_os_str(), to.as_os_str(), OsStr::new("--json")]);
    command.args(options).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("a run");
    let lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let mut lines = lines.map_while(Result::ok);
    let mut events = lines.by_ref().enumerate();
    let event = |line: &str| serde_json::from_str(line).expect("JSON");
    if events.any(|(at, line)| when(at, &event(&line))) {
        signal(victim(child.id()), libc::SIGKILL);
    }
    // The other side may still have something to say.
    let _rest = lines.count();
    assert!(wait(&mut child, DEADLINE).is_some(), "it goes on after its other side was killed");
}

#[test]
fn a_run_that_was_killed_is_made_good_by_the_next() {
    let scratch = Scratch::new("dsync-kill");
    let (from, shell) = (scratch.folder("from", None), shell(&scratch));
    plant(&from, FILES);
    let over = through(&shell);
    let over: Vec<&str> = over.iter().map(String::as_str).collect();
    let pid = scratch.path().join("rsh.pid");
    let other = |_| fs::read_to_string(&pid).expect("its number").trim().parse().expect("a number");
    let mut random = SeededRandom::new(11);
    for round in 0..12 {
        let to = scratch.path().join(format!("to{}", round % 4));
        let last = random.below(FILES as u64) as usize;
        let when = |at: usize, _: &Value| at == last;
        match round % 4 {
            0 => killed((&from, &to), &[], when, |own| own),
            1 => killed((&from, &there(&to)), &over, when, |own| own),
            2 => killed((&from, &there(&to)), &over, when, other),
            _ => killed((&there(&from), &to), &over, when, other),
        }
        if round >= 8 {
            // The killed side's other half may take a moment to see it, and holds the directory.
            let mut done = go(&from, &to, &["--delete"]);
            let until = std::time::Instant::now() + DEADLINE;
            while output_text(&done).contains("another dsync") && std::time::Instant::now() < until
            {
                done = go(&from, &to, &["--delete"]);
            }
            assert_eq!(code(&done), 0, "{}", output_text(&done));
            assert_same(&from, &to);
        }
    }
}

#[test]
fn a_large_file_continues_where_a_run_was_killed() {
    let scratch = Scratch::new("dsync-resume");
    let (from, shell) = (scratch.folder("from", None), shell(&scratch));
    let mut bytes = vec![0; 24 << 20];
    SeededRandom::new(5).fill(&mut bytes);
    fs::write(from.join("large"), &bytes).expect("a file");
    let over = through(&shell);
    // Slow enough to be killed within the file.
    let slow: Vec<&str> = over.iter().map(String::as_str).chain(["--bandwidth", "4MB/s"]).collect();
    let pid = scratch.path().join("rsh.pid");
    let other = |_| fs::read_to_string(&pid).expect("its number").trim().parse().expect("a number");
    for round in 0..4 {
        let to = scratch.path().join(format!("to{round}"));
        let (source, destination) =
            if round < 2 { (from.clone(), there(&to)) } else { (there(&from), to.clone()) };
        // A third has come; of that nearly all is written.
        let when = |_, event: &Value| event["bytes_received"].as_u64() >= Some(8 << 20);
        match round % 2 {
            0 => killed((&source, &destination), &slow, when, |own| own),
            _ => killed((&source, &destination), &slow, when, other),
        }
        let args: Vec<&str> = over.iter().map(String::as_str).chain(["--json"]).collect();
        let mut done = go(&source, &destination, &args);
        let until = std::time::Instant::now() + DEADLINE;
        while output_text(&done).contains("another dsync") && std::time::Instant::now() < until {
            done = go(&source, &destination, &args);
        }
        assert_eq!(code(&done), 0, "{}", output_text(&done));
        assert_same(&from, &to);
        let text = String::from_utf8(done.stdout).expect("text");
        let last: Value = serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
        let sent = last["bytes_received"].as_u64().unwrap_or(u64::MAX);
        assert!(sent < bytes.len() as u64 - (2 << 20), "round {round}: {sent} bytes again");
        let left = fs::read_dir(&to).expect("it").count();
        assert_eq!(left, 1, "nothing is left beside");
    }
}

#[test]
fn unreadable_files_of_an_ordinary_user_are_reported_and_remove_nothing() {
    if !is_root() {
        skip!("dsync-nobody", "needs root");
    }
    let scratch = Scratch::new("dsync-nobody");
    let place = scratch.folder("place", Some(NOBODY));
    let (from, to) = (place.join("from"), place.join("to"));
    for dir in [&from, &to] {
        fs::create_dir_all(dir.join("closed")).expect("folders");
        fs::write(dir.join("closed/kept"), b"kept").expect("a file");
        fs::write(dir.join("open"), b"open").expect("a file");
    }
    fs::write(from.join("secret"), b"secret").expect("a file");
    fs::write(to.join("extra"), b"extra").expect("a file");
    fs::set_permissions(from.join("secret"), fs::Permissions::from_mode(0o600)).expect("a mode");
    fs::set_permissions(from.join("closed"), fs::Permissions::from_mode(0o700)).expect("a mode");
    for path in ["", "closed", "closed/kept", "open", "extra"] {
        std::os::unix::fs::chown(to.join(path), Some(NOBODY), Some(NOBODY)).expect("giving it");
    }
    let mut command = dsync(&[from.as_os_str(), to.as_os_str(), OsStr::new("--delete")]);
    command.uid(NOBODY).gid(NOBODY);
    let done = run(&mut command, DEADLINE);
    assert_eq!(code(&done), 3, "{}", output_text(&done));
    for told in ["closed: at the source: Permission denied", "secret: at the source: Permission"] {
        assert!(output_text(&done).contains(told), "{told}: {}", output_text(&done));
    }
    assert!(to.join("closed/kept").exists(), "what was not listed is not taken for removed");
    assert!(!to.join("extra").exists() && !to.join("secret").exists());
    assert_eq!(fs::read(to.join("open")).expect("it"), b"open");
}

#[test]
fn a_full_disk_is_reported_and_leaves_nothing_half() {
    let memory = match Memory::new("size=2m") {
        Ok(memory) => memory,
        Err(why) => skip!("dsync-full", "{why}"),
    };
    let scratch = Scratch::new("dsync-full");
    let (from, to) = (scratch.folder("from", None), memory.path().join("to"));
    fs::write(from.join("a"), b"small").expect("a file");
    fs::write(from.join("large"), vec![7; 8 << 20]).expect("a file");
    let done = go(&from, &to, &["--no-xattrs"]);
    assert_eq!(code(&done), 3, "{}", output_text(&done));
    assert!(
        output_text(&done).contains("large: No space left on device"),
        "{}",
        output_text(&done)
    );
    let left: Vec<_> = fs::read_dir(&to).expect("it").flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["a"]);
    assert_eq!(fs::read(to.join("a")).expect("it"), b"small");
}
