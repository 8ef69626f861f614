//! Shares are added, changed, renamed and removed through the API while clients of NFSv3 and NFSv4
//! read and write another one at full speed: those notice nothing. What is configured is served
//! again after a start, under the same handles.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use e2e::api::{Api, wait_for};
use e2e::nfs3::{self, Failure};
use e2e::nfs4;
use e2e::scene::Scene;
use e2e::scratch::Scratch;
use e2e::server::Server;
use e2e::{skip, took_at_most};
use serde_json::{Value, json};
use sim::forget::{self, ForgetFs};
use wire::nfs3::{Nfsstat3, StableHow};
use wire::nfs4::Nfsstat4;

/// Longest pause that a client may see.
const PAUSE_MAX: Duration = Duration::from_millis(100);
/// How often each of the four kinds of changes is made; `PLIMSOLL_SHARES_ROUNDS` has another
/// number.
const ROUNDS: usize = 25;
/// How long clients are watched before the first change: what they wait for then is the machine's.
const BEFORE: Duration = Duration::from_secs(2);
/// How long a share may take to be another one.
const PATIENCE: Duration = e2e::patience(30);
/// Bytes of a read or write.
const BLOCK: usize = 4096;

fn start(scene: &Scene) -> (Server, Api) {
    (scene.start(&[]), Api::new(&scene.state))
}

/// Commits changes, which must succeed.
fn change(api: &Api, changes: &Value) {
    let (code, answer) = api.post("/api/v1/changes", &json!({ "changes": changes }));
    assert_eq!(code, 200, "{changes}: {answer}");
}

/// Tries changes; the status, and the error message.
fn refused(api: &Api, changes: &Value) -> (u16, String) {
    let (code, answer) = api.post("/api/v1/changes", &json!({ "changes": changes }));
    let said = answer["error"]["failed"].as_str().unwrap_or_default().to_owned();
    (code, if said.is_empty() { answer.to_string() } else { said })
}

/// What clients have open, as text.
fn opens(api: &Api) -> String {
    api.get("/api/v1/services/nfs/opens").1.to_string()
}

fn create(name: &str, dir: &std::path::Path) -> Value {
    json!({"create": "/shares/default", "name": name, "properties": {"directory": dir}})
}

fn destroy(name: &str) -> Value {
    json!({"destroy": format!("/shares/default/{name}"), "confirm": true})
}

/// Longest times between two answers, before the first change and from then on, and their number.
type Gaps = ([Duration; 2], u64);

/// Repeats a call until the end.
fn gaps((changing, end): (&AtomicBool, &AtomicBool), mut call: impl FnMut(u64)) -> Gaps {
    let (mut longest, mut calls) = ([Duration::ZERO; 2], 0);
    let mut last = Instant::now();
    while !end.load(Ordering::Relaxed) {
        let phase = usize::from(changing.load(Ordering::Relaxed));
        call(calls);
        let now = Instant::now();
        longest[phase] = longest[phase].max(now - last);
        last = now;
        calls += 1;
    }
    (longest, calls)
}

/// For how long this processor has kept a thread waiting that wanted to run: no server's fault. A
/// host that takes one processor away need not take the others.
fn stall(processor: usize, end: &AtomicBool) -> Duration {
    const NAP: Duration = Duration::from_millis(1);
    // SAFETY: a set of processors is plain bits; the calls get its address and its size.
    unsafe {
        let mut only: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut only);
        // Where it may not choose, it watches whichever it is on.
        let _may = libc::sched_setaffinity(0, size_of_val(&only), &raw const only);
    }
    let mut longest = Duration::ZERO;
    while !end.load(Ordering::Relaxed) {
        let before = Instant::now();
        thread::sleep(NAP);
        longest = longest.max(before.elapsed().saturating_sub(NAP));
    }
    longest
}

fn of_v3(server: &Server, phases: (&AtomicBool, &AtomicBool)) -> Gaps {
    let (mut client, root) = server.mount(0, 0);
    let file = client.create(&root, "v3", wire::nfs3::CreateHow::Guarded(Default::default()));
    let file = file.expect("a file").handle;
    let data = [3; BLOCK];
    gaps(phases, |n| {
        let at = n % 64 * BLOCK as u64;
        client.write(&file, at, &data, StableHow::UNSTABLE).expect("no error on a write");
        assert_eq!(client.read(&file, at, BLOCK as u32).expect("no error on a read").0, data);
    })
}

fn of_v4(server: &Server, phases: (&AtomicBool, &AtomicBool)) -> Gaps {
    let mut client = nfs4::Client::connect(server.nfs(), (0, 0), "live", 1).expect("a session");
    client.reclaim_complete().expect("nothing to reclaim");
    let root = client.walk(&server.export()).expect("the share");
    let file = client.open(&root, "v4", "o", true).expect("a file");
    let data = [4; BLOCK];
    gaps(phases, |n| {
        let at = n % 64 * BLOCK as u64;
        client.write(&file, at, &data).expect("no error on a write");
        assert_eq!(client.read(&file, at, BLOCK as u32).expect("no error on a read"), data);
    })
}

/// Adds, changes, renames and removes shares `b` to `k`.
fn disturb(scene: &Scene, api: &Api, rounds: usize) {
    let names: Vec<String> = ('b'..='k').map(String::from).collect();
    let dirs: Vec<PathBuf> = names.iter().map(|name| scene.scratch.folder(name, None)).collect();
    for round in 0..rounds {
        let (name, dir) = (&names[round % names.len()], &dirs[round % names.len()]);
        let at = format!("/shares/default/{name}");
        change(api, &json!([create(name, dir)]));
        change(
            api,
            &json!([
                {"set": at, "property": "nfs_exceptions", "value": ["10.0.0.0/8(ro)"]},
                {"set": at, "property": "read_only", "value": round % 2 == 0},
            ]),
        );
        change(api, &json!([{"rename": at, "to": format!("{name}2")}]));
        change(api, &json!([destroy(&format!("{name}2"))]));
    }
}

#[test]
fn no_other_client_notices_that_shares_come_and_go() {
    let scene = Scene::new("shares-live");
    let (server, api) = start(&scene);
    let rounds = std::env::var("PLIMSOLL_SHARES_ROUNDS").ok().and_then(|n| n.parse().ok());
    let rounds = rounds.unwrap_or(ROUNDS);
    let (changing, end) = (AtomicBool::new(false), AtomicBool::new(false));
    let phases = (&changing, &end);
    let (old, new, machine) = thread::scope(|scope| {
        let old = scope.spawn(|| of_v3(&server, phases));
        let new = scope.spawn(|| of_v4(&server, phases));
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let end = &end;
        let machine: Vec<_> =
            (0..processors).map(|cpu| scope.spawn(move || stall(cpu, end))).collect();
        // Ends the others if it fails, too.
        let disturbed = scope.spawn(|| {
            thread::sleep(BEFORE);
            changing.store(true, Ordering::Relaxed);
            disturb(&scene, &api, rounds);
        });
        let disturbed = disturbed.join();
        end.store(true, Ordering::Relaxed);
        disturbed.expect("all changes are made");
        let machine = machine.into_iter().map(|one| one.join().expect("no panic")).max();
        (old.join().expect("v3"), new.join().expect("v4"), machine.unwrap_or_default())
    });
    println!("{} changes; the machine kept a thread waiting for {machine:?} at most", rounds * 4);
    for (version, ([before, during], calls)) in [("v3", old), ("v4", new)] {
        println!(
            "{version}: {} calls; longest pause {before:?} before, {during:?} during",
            calls * 2
        );
        assert!(calls > 0, "nothing was asked");
        // On a busy machine there are pauses without any change, which client and server meet each.
        let allowed = PAUSE_MAX + before.max(2 * machine);
        took_at_most(&format!("{version}: a pause ({before:?} without changes)"), during, allowed);
    }
    let shares = api.status()["shares"].clone();
    assert_eq!(shares.as_array().map(Vec::len), Some(1), "{shares}");
}

#[test]
fn what_a_share_had_ends_with_it_and_comes_again_with_the_server() {
    let scene = Scene::new("shares-ends");
    let (mut server, api) = start(&scene);
    let dir = scene.scratch.folder("b", None);
    change(&api, &json!([create("b", &dir)]));
    let mut v3 = nfs3::Client::connect(server.nfs(), 0, 0).expect("a connection");
    let handle = v3.mnt("/export/b").expect("mounted");

    // It is served again after a start, and its handles are good.
    server.stop();
    drop(server);
    let (server, api) = start(&scene);
    let mut v3 = nfs3::Client::connect(server.nfs(), 0, 0).expect("a connection");
    v3.getattr(&handle).expect("the same handle");

    let mut v4 = nfs4::Client::connect(server.nfs(), (0, 0), "holder", 1).expect("a session");
    v4.reclaim_complete().expect("nothing to reclaim");
    let root = v4.walk("/export/b").expect("the share");
    let open = v4.open(&root, "f", "o", true).expect("a file");
    let (_, node) = api.get("/api/v1/nodes/shares/default/b");
    let holders = node["properties"].as_array().into_iter().flatten();
    let holders: Vec<&Value> = holders.filter(|one| one["name"] == "holders").collect();
    assert_eq!(holders[0]["value"], json!(["127.0.0.1"]), "{node}");

    assert!(opens(&api).contains("/export/b/f"), "{}", opens(&api));
    let (code, said) = refused(&api, &json!([{"destroy": "/shares/default/b"}]));
    assert!(code == 409 && said.contains('1'), "{code} {said}");
    change(&api, &json!([destroy("b")]));
    assert_eq!(v3.getattr(&handle).err(), Some(Failure::Status(Nfsstat3::STALE)));
    let gone = v4.read(&open, 0, 1).err();
    assert_eq!(gone, Some(nfs4::Failure::Status(Nfsstat4::STALE)));
    assert!(!opens(&api).contains("/export/b/f"), "{}", opens(&api));
    assert!(dir.join("f").exists(), "files stay");
    // The client continues elsewhere.
    v4.walk("/export/data").expect("the other share");
}

/// A property of a share as the tree shows it.
fn property(api: &Api, share: &str, name: &str) -> String {
    let (_, node) = api.get(&format!("/api/v1/nodes/shares/default/{share}"));
    let all = node["properties"].as_array().into_iter().flatten();
    let found = all.into_iter().find(|one| one["name"] == name);
    found.and_then(|one| one["value"].as_str()).unwrap_or_default().to_owned()
}

#[test]
fn a_share_without_its_directory_is_offline_until_it_is_back() {
    let scene = Scene::new("shares-lost");
    let (server, api) = start(&scene);
    let dir = scene.scratch.folder("b", None);
    change(&api, &json!([create("b", &dir)]));
    let mut v3 = nfs3::Client::connect(server.nfs(), 0, 0).expect("a connection");
    let aside = scene.scratch.path().join("aside");
    // The share of the command line as well as one that is configured.
    for (share, dir) in [("b", &dir), ("data", &scene.dir)] {
        let handle = v3.mnt(&format!("/export/{share}")).expect("mounted");
        std::fs::rename(dir, &aside).expect("moved away");
        std::fs::create_dir(dir).expect("another one");
        let is = |state: &str| (property(&api, share, "state") == state).then_some(());
        wait_for("the share is offline", PATIENCE, || is("offline"));
        let reason = property(&api, share, "reason");
        assert!(reason.contains("is not the directory"), "{reason}");
        let status = api.status();
        assert!(status["problems"].to_string().contains(&reason), "{status}");
        assert_eq!(v3.getattr(&handle).err(), Some(Failure::Status(Nfsstat3::STALE)));
        // A change of another share does not bring it back where it is not.
        change(&api, &json!([{"create": "/shares", "name": format!("p{share}")}]));
        assert_eq!(property(&api, share, "state"), "offline");
        std::fs::remove_dir(dir).expect("nothing was written there");
        std::fs::rename(&aside, dir).expect("moved back");
        wait_for("the share is online", PATIENCE, || is("online"));
        v3.getattr(&handle).expect("the same handle");
    }
}

#[test]
fn errors_are_reported_in_one_sentence() {
    let scene = Scene::new("shares-wrong");
    let (_server, api) = start(&scene);
    let dir = scene.scratch.folder("b", None);
    change(&api, &json!([create("b", &dir), {"create": "/shares", "name": "p"}]));
    let elsewhere = json!({"create": "/shares/p", "name": "b", "properties": {"directory": dir}});
    let none = scene.scratch.path().join("none");
    let given = "/shares/default/data";
    let wrong = [
        (json!([create("b", &dir)]), 409, "b"),
        (json!([elsewhere]), 409, "a share named b already exists, in /shares/default/b"),
        (json!([create("data", &dir)]), 409, "data"),
        (json!([create("x", &none)]), 400, "the directory"),
        (json!([create("x", &scene.state)]), 400, "is inside the state directory"),
        (json!([create("a b", &dir)]), 400, "a name"),
        (json!([create("x", &dir), create("y", &none)]), 400, "the directory"),
        (json!([{"set": given, "property": "read_only", "value": true}]), 409, "command line"),
    ];
    for (changes, code, says) in wrong {
        let (found, said) = refused(&api, &changes);
        assert!(said.contains(says), "{changes}: {found} {said}");
        assert_eq!(found, code, "{changes}: {said}");
    }
    let (_, node) = api.get("/api/v1/nodes/shares/default");
    assert_eq!(node["items"], json!(["b", "data"]), "{node}");
}

#[test]
fn a_share_that_does_not_respond_keeps_no_other_from_being_watched() {
    if let Err(why) = forget::available() {
        skip!("shares-stuck", "{why}");
    }
    let scene = Scene::new("shares-stuck");
    let (server, api) = start(&scene);
    let scratch = Scratch::new("shares-stuck-mount");
    let place = ForgetFs::mount(&scratch.folder("mount", None)).expect("the mount");
    let dir = scratch.folder("dir", None);
    // The first one that is looked at does not respond.
    change(&api, &json!([create("0-stuck", place.path()), create("other", &dir)]));
    place.set_stuck(true);
    let elsewhere = scratch.path().join("elsewhere");
    std::fs::rename(&dir, &elsewhere).expect("moved");
    let logged =
        |line: &str| wait_for(line, PATIENCE, || server.stderr_text().contains(line).then_some(()));
    logged("other is offline");
    std::fs::rename(&elsewhere, &dir).expect("moved back");
    logged("other is online again");
    place.set_stuck(false);
}
