//! Reads from the disk, with the proof: of a Plimsoll server that drops its cache, of any server
//! through an observer, of a directory. What is planted makes the proof fail: a drop that does
//! nothing, a mapping that stays, counters of another disk.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use e2e::api::Api;
use e2e::iscsi::Access;
use e2e::lab::{self, Agent, Target};
use e2e::loops::LoopDisk;
use e2e::nfs3::Failure;
use e2e::scene::Scene;
use e2e::scratch::{Scratch, make_folder};
use e2e::server::{Options, Server, binary};
use e2e::{has, is_root, patience, process, skip};
use serde_json::{Value, json};
use sim::forget::{self, ForgetFs};
use wire::nfs3::{CreateHow, Nfsstat3, Sattr3, StableHow};

/// Bytes that each client reads in a step.
const FILE: u64 = 24 << 20;
/// Two cold steps, of one client and of two. None ends before all is read: it is steady only after
/// the time that it may take.
const COLD: [&str; 7] = [
    "steady.windows=1200",
    "cold=true",
    "file_size=24m",
    "warmup_ms=0",
    "window_ms=50",
    "step_max_ms=60000",
    "schedule=[[1,1],[2,2]]",
];

/// Runs the disk row against `url`; its files stay.
fn run(url: &str, sets: &[&str], prepare: impl FnOnce(&mut Command)) -> (String, Value) {
    let out = Scratch::new("cold");
    run_to(out.path(), url, sets, prepare)
}

/// The same into a folder that stays.
fn run_to(
    out: &Path,
    url: &str,
    sets: &[&str],
    prepare: impl FnOnce(&mut Command),
) -> (String, Value) {
    let mut command = lab::command();
    command.args(["run", "disk-read-stream", "--target", url, "--clients", "2", "--quiet"]);
    command.args(["--retries", "0", "--out"]).arg(out);
    command.args(COLD.iter().chain(sets).flat_map(|set| ["--set", set]));
    prepare(&mut command);
    let output = process::run_with_stdin(&mut command, patience(120));
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{url}: {}: {printed}", output.status);
    let text = std::fs::read_to_string(out.join("result.json")).expect("a result");
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    (shown, serde_json::from_str(&text).expect("JSON"))
}

/// Has a run ask the server itself.
fn with_socket(command: &mut Command, socket: &Path) {
    command.arg("--server-socket").arg(socket);
}

/// A disk, or why there is none here.
fn disk() -> Result<LoopDisk, String> {
    if !is_root() || !has("losetup") || !has("mkfs.ext4") {
        return Err("needs root, losetup and mkfs.ext4".to_owned());
    }
    LoopDisk::new()
}

/// The steps' judgements; there are two.
fn judged(result: &Value) -> Vec<&Value> {
    let steps = result["steps"].as_array().expect("steps");
    assert_eq!(steps.len(), 2, "{:#}", result["failed"]);
    steps.iter().map(|step| &step["cold"]).collect()
}

/// That each step is proved to be from this disk.
fn is_uncached(what: &str, shown: &str, result: &Value, disk: &LoopDisk) {
    for (n, cold) in judged(result).into_iter().enumerate() {
        let evidence = &cold["evidence"];
        println!("{what}: {evidence}");
        assert_eq!(cold["uncached"], true, "{what}: {cold:#}");
        let pages = |at: usize| evidence["resident"][at].as_f64().expect("pages");
        assert!(pages(0) < pages(1) / 100.0, "{what}: {evidence}");
        assert_eq!(evidence["device"][0], disk.name(), "{what}: {evidence}");
        let (read, payload) = (&evidence["device"][1], &evidence["payload"]);
        assert_eq!(payload.as_u64(), Some((n as u64 + 1) * FILE), "each byte once: {evidence}");
        assert!(read.as_f64() >= payload.as_f64().map(|all| all * 0.95), "{what}: {evidence}");
    }
    assert!(shown.contains("uncached: 0."), "{what}: {shown}");
}

/// That a step is not proved, for this reason.
fn doubted(what: &str, result: &Value, step: usize, why: &str) {
    let cold = judged(result)[step];
    println!("{what}: {}", cold["doubts"]);
    assert_eq!(cold["uncached"], false, "{what}: {cold:#}");
    assert!(cold["doubts"].to_string().contains(why), "{what}: no {why:?} in {cold:#}");
}

fn files(below: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(below).into_iter().flatten().flatten();
    let of = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
    entries.flat_map(|entry| of(entry.path())).collect()
}

/// Maps a file, with all of its pages.
fn map(path: &Path) -> *mut libc::c_void {
    let file = File::open(path).expect("a test file");
    let (read, flags) = (libc::PROT_READ, libc::MAP_SHARED | libc::MAP_POPULATE);
    let length = usize::try_from(FILE).expect("a length");
    // SAFETY: a new mapping, placed by the kernel; it is never looked at.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), length, read, flags, file.as_raw_fd(), 0) };
    assert_ne!(at, libc::MAP_FAILED);
    at
}

#[test]
fn a_plimsoll_server_drops_its_cache() {
    let disk = match disk() {
        Ok(disk) => disk,
        Err(why) => skip!("cold-server", "{why}"),
    };
    let target = Target::start(disk.path(), "127.0.0.1", None);
    let own = |command: &mut Command| with_socket(command, &target.socket());
    let (shown, result) = run(&target.url, &[], own);
    is_uncached("nfs3", &shown, &result, &disk);
    for cold in judged(&result) {
        let report = &cold["dropped"]["server"];
        assert_eq!((&report["complete"], &report["kept"]), (&json!(true), &json!(0)), "{report}");
        assert_eq!(report["resident_after"], 0, "{report}");
    }
    // Large reads leave from mappings, which an observer alone cannot remove.
    let (_, result) = run(&target.url, &[], |_| ());
    doubted("no drop by the server", &result, 1, "of the pages were resident before");

    // Another process maps the files: nothing that the server does drops them.
    let mappings: Vec<_> = files(disk.path()).iter().map(|path| map(path)).collect();
    assert!(!mappings.is_empty());
    let (_, result) = run(&target.url, &[], own);
    doubted("a kept mapping", &result, 0, "of the pages were resident before");
    let length = usize::try_from(FILE).expect("a length");
    for at in mappings {
        // SAFETY: one of the mappings above, once.
        assert_eq!(unsafe { libc::munmap(at, length) }, 0);
    }

    let (shown, result) = run(&target.url, &[], own);
    is_uncached("without the mapping", &shown, &result, &disk);
}

/// Files with a token of this role, and the certificate next to it.
fn token(api: &Api, state: &Path, folder: &Scratch, role: &str) -> (PathBuf, String) {
    let create = json!({"create": "/configuration/tokens", "name": role,
        "properties": {"role": role}});
    let (code, answer) = api.post("/api/v1/changes", &json!({"changes": [create]}));
    assert_eq!(code, 200, "{answer}");
    let issue = format!("/api/v1/nodes/configuration/tokens/{role}/actions/issue");
    let (_, answer) = api.post(&issue, &json!({"parameters": {}}));
    let text = answer["result"]["token"].as_str().expect("a token").to_owned();
    let file = folder.path().join(role);
    std::fs::write(&file, &text).expect("written");
    let certificate = folder.path().join("certificate.pem");
    std::fs::copy(state.join("certificate.pem"), certificate).expect("copied");
    (file, text)
}

/// Looks for a text in the arguments and the environment of all processes until `stop`, at least
/// once.
fn in_processes(text: &str, stop: Arc<AtomicBool>) -> JoinHandle<Vec<PathBuf>> {
    let text = text.as_bytes().to_vec();
    std::thread::spawn(move || {
        let mut found = Vec::new();
        loop {
            let ended = stop.load(Ordering::Relaxed);
            let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
            for entry in entries.flat_map(|e| ["cmdline", "environ"].map(|n| e.path().join(n))) {
                let shown = std::fs::read(&entry).unwrap_or_default();
                if shown.windows(text.len()).any(|part| part == text) {
                    found.push(entry);
                }
            }
            if ended {
                return found;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    })
}

#[test]
fn a_plimsoll_server_on_another_machine_drops_its_cache_for_a_token() {
    let disk = match disk() {
        Ok(disk) => disk,
        Err(why) => skip!("cold-server", "{why}"),
    };
    let target = Target::start(disk.path(), "127.0.0.1", None);
    let (api, folder) = (Api::new(target.state()), Scratch::new("cold-token"));
    let cold = json!({"create": "/configuration/roles", "name": "cold", "properties":
        {"permissions": ["status:read", "analytics:read", "shares:change"]}});
    let (code, answer) = api.post("/api/v1/changes", &json!({"changes": [cold]}));
    assert_eq!(code, 200, "{answer}");
    let with = |file: &Path| {
        let (url, file) = (target.admin_url(), file.to_owned());
        move |command: &mut Command| {
            command.args(["--server", &url, "--token-file"]).arg(&file);
        }
    };
    let (file, text) = token(&api, target.state(), &folder, "cold");
    let stop = Arc::new(AtomicBool::new(false));
    let watched = in_processes(&text, stop.clone());
    let out = Scratch::new("cold-archive");
    let (shown, result) = run_to(out.path(), &target.url, &[], with(&file));
    stop.store(true, Ordering::Relaxed);
    assert_eq!(watched.join().expect("a reader"), [] as [PathBuf; 0]);
    assert_eq!(result["server"]["seen"], "remote-api");
    is_uncached("a token", &shown, &result, &disk);
    for (cold, step) in judged(&result).into_iter().zip(result["steps"].as_array().expect("steps"))
    {
        assert_eq!(cold["dropped"]["server"]["complete"], true, "{cold:#}");
        assert_eq!(
            step["server_counts"]["compared"]["agrees"], true,
            "{:#}",
            step["server_counts"]
        );
    }
    let archive = files(out.path());
    assert!(archive.iter().any(|path| path.ends_with("run.toml")), "{archive:?}");
    assert!(archive.iter().any(|path| path.parent().is_some_and(|p| p.ends_with("analytics"))));
    for path in archive {
        let bytes = std::fs::read(&path).expect("a file");
        let has = bytes.windows(text.len()).any(|part| part == text.as_bytes());
        assert!(!has, "the token is in {}", path.display());
    }

    // The built-in role that may look and not change.
    let (file, _) = token(&api, target.state(), &folder, "operator");
    let (_, result) = run(&target.url, &[], with(&file));
    doubted("a role that may not", &result, 1, "of the pages were resident before");
    let failed = judged(&result)[1]["dropped"]["failed"].to_string();
    assert!(failed.contains("has no role with shares:change"), "{failed}");

    std::fs::write(&file, "plimsoll_wrong").expect("written");
    let mut command = lab::command();
    command.args(["run", "disk-read-stream", "--target", &target.url, "--out"]).arg(out.path());
    with(&file)(&mut command);
    let output = process::run(&mut command, patience(30));
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("the server refused: "), "{printed}");
}

#[test]
fn other_servers_by_an_observer() {
    let (disk, other) = match disk().and_then(|disk| Ok((disk, LoopDisk::new()?))) {
        Ok(disks) => disks,
        Err(why) => skip!("cold-observer", "{why}"),
    };
    let (shown, result) = run(&format!("path:{}", disk.path().display()), &[], |_| ());
    is_uncached("path", &shown, &result, &disk);

    // Small reads are copied: this server has no mappings, as most others.
    let small = ["block=32k"];
    let target = Target::start(disk.path(), "127.0.0.1", None);
    let agent = Agent::start(|command| {
        command.arg("--observe");
    });
    let (shown, result) = run(&target.url, &small, |command| agent.observes_for(command));
    assert_eq!(result["server"]["seen"], "observer");
    is_uncached("an observer", &shown, &result, &disk);

    // A directory that the server of the socket does not use.
    let folder = disk.path().join("folder");
    std::fs::create_dir(&folder).expect("a folder");
    let url = format!("path:{}", folder.display());
    let (shown, result) = run(&url, &[], |command| with_socket(command, &target.socket()));
    is_uncached("path, and a server", &shown, &result, &disk);

    // Copies of the files elsewhere are not what is read.
    for path in files(disk.path()) {
        let copy = other.path().join(path.strip_prefix(disk.path()).expect("below"));
        std::fs::create_dir_all(copy.parent().expect("a folder")).expect("made");
        std::fs::copy(&path, copy).expect("copied");
    }
    let elsewhere = |command: &mut Command| {
        command.arg("--share-path").arg(other.path());
    };
    let (_, result) = run(&target.url, &small, elsewhere);
    let why = format!("{} read 0.0 % of what clients did", other.name());
    doubted("another disk's counters", &result, 1, &why);
}

#[test]
fn a_drop_that_does_nothing() {
    // What is in memory alone stays there, whatever is asked for.
    let dir = Scratch::below(Path::new("/dev/shm"), "cold");
    let target = Target::start(dir.path(), "127.0.0.1", None);
    let own = |command: &mut Command| with_socket(command, &target.socket());
    let (shown, result) = run(&target.url, &["file_size=4m"], own);
    doubted("memory", &result, 0, "100.0 % of the pages were resident before");
    doubted("memory", &result, 0, "the device below the share was not observed");
    assert!(shown.contains("not proved to be uncached"), "{shown}");
}

#[test]
fn a_logical_unit_drops_its_cache() {
    let disk = match disk() {
        Ok(disk) => disk,
        Err(why) => skip!("cold-unit", "{why}"),
    };
    let scene = Scene::new("cold-unit");
    let server = scene.start(&[]);
    let api = Api::new(&scene.state);
    let path = "/shares/default/luns";
    let directory = disk.path().display().to_string();
    let changes = json!({"changes": [
        {"set": path, "property": "directory", "value": directory},
        {"create": path, "name": "disk", "properties": {"volsize": "128M"}}]});
    let (code, answer) = api.post("/api/v1/changes", &changes);
    assert_eq!(code, 200, "{answer}");
    let url = Access::of(&scene.state).url(server.at(3260), 0);
    let socket = scene.state.join("plimsoll.sock");
    let size = |path: &PathBuf| path.metadata().map_or(0, |meta| meta.len());
    let unit = files(disk.path()).into_iter().max_by_key(size).expect("its file");
    let (shown, result) = run(&url, &[], |command| {
        with_socket(command, &socket);
        command.arg("--share-path").arg(&unit);
    });
    is_uncached("iscsi", &shown, &result, &disk);
}

#[test]
fn a_drop_writes_back_first() {
    if let Err(why) = forget::available() {
        skip!("cold-forget", "{why}");
    }
    let scratch = Scratch::new("cold-forget");
    let place = ForgetFs::mount(&scratch.folder("mount", None)).expect("the forgetful mount");
    let share = place.path().join("share");
    make_folder(&share, None);
    for folder in [place.path(), &share] {
        File::open(folder).and_then(|folder| folder.sync_all()).expect("on the disk");
    }
    let state = scratch.folder("state", None);
    let mut server = Server::start(&Options::new(&share, &state));
    let api = Api::new(&state);
    let drop_cache = || {
        let path = "/api/v1/nodes/shares/default/share/actions/drop_cache";
        let (code, answer) = api.post(path, &json!({}));
        assert_eq!(code, 200, "{answer}");
        answer["result"].clone()
    };
    let (mut client, root) = server.mount(0, 0);
    let block = [b'x'; 64 << 10];
    let mut make = |name: &str, stable| {
        let how = CreateHow::Unchecked(Sattr3::default());
        let file = client.create(&root, name, how).expect("CREATE").handle;
        client.write(&file, 0, &block, stable).expect("WRITE");
        file
    };
    make("stable", StableHow::FILE_SYNC);
    let lost = make("unstable", StableHow::UNSTABLE);
    // A flush that fails is reported of its file, and by the next COMMIT.
    place.set_flush_failure(true);
    let found = drop_cache();
    assert_eq!((&found["failed"], &found["files"]), (&json!(1), &json!(2)), "{found}");
    assert!(found["failures"][0].to_string().contains("writing it back failed"), "{found}");
    place.set_flush_failure(false);
    let refused = client.commit(&lost).expect_err("its data may be lost");
    assert!(matches!(refused, Failure::Status(Nfsstat3::IO)), "{refused:?}");

    client.write(&lost, 0, &block, StableHow::UNSTABLE).expect("WRITE");
    let found = drop_cache();
    assert_eq!(found["failed"], 0, "{found}");
    server.kill();
    place.crash();
    for name in ["stable", "unstable"] {
        let left = std::fs::read(share.join(name)).expect("there");
        assert!(left == block, "{name} has {} bytes", left.len());
    }
}

#[test]
fn a_drop_requires_the_right_to_change_shares() {
    let scene = Scene::new("drop-rights");
    let server = scene.start(&[]);
    let api = Api::new(&scene.state);
    let token = json!({"create": "/configuration/tokens", "name": "looks",
        "properties": {"role": "operator"}});
    let (code, answer) = api.post("/api/v1/changes", &json!({"changes": [token]}));
    assert_eq!(code, 200, "{answer}");
    let issue = "/api/v1/nodes/configuration/tokens/looks/actions/issue";
    let (_, answer) = api.post(issue, &json!({"parameters": {}}));
    let folder = Scratch::new("token");
    let file = folder.path().join("token");
    std::fs::write(&file, answer["result"]["token"].as_str().expect("a token")).expect("written");
    let share = server.export().trim_start_matches("/export/").to_owned();
    let node = format!("/shares/default/{share}");
    let mut command = Command::new(binary());
    let url = server.announced["admin"].as_str().expect("a URL").trim_end_matches('/');
    command.args(["cli", "-c", &format!("{node} drop_cache"), "--server", url, "--token-file"]);
    command.arg(&file).arg("--ca").arg(scene.state.join("certificate.pem"));
    let output = process::run(&mut command, process::DEADLINE);
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("has no role with shares:change"), "{printed}");
    let audited = || {
        let (_, answer) = api.get("/api/v1/audit");
        let rows = answer["rows"].as_array().cloned().unwrap_or_default();
        rows.into_iter().filter(|row| row["action"] == "drop_cache").collect::<Vec<_>>()
    };
    assert!(audited().is_empty(), "nothing was done");

    let act = |parameters: Value| {
        let path = format!("/api/v1/nodes{node}/actions/drop_cache");
        api.post(&path, &json!({ "parameters": parameters }))
    };
    let (code, answer) = act(json!({}));
    assert_eq!((code, &answer["result"]["complete"]), (200, &json!(true)), "{answer}");
    let rows = audited();
    assert_eq!((rows.len(), &rows[0]["path"]), (1, &json!(node)), "{rows:?}");
    let (code, answer) = act(json!({"directory": "../.."}));
    assert_eq!(code, 409, "{answer}");
    let (code, answer) = act(json!({"directory": "none"}));
    assert_eq!(code, 409, "{answer}");
    let (_, shown) = api.get(&format!("/api/v1/nodes{node}"));
    assert!(shown.to_string().contains("there is no such directory"), "{shown}");
}
