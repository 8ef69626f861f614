//! NFS is disabled, enabled, restarted and kept from its port while the server runs: the API
//! continues, clients come back to what they had, and the reason of each state is reported.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use base::limits::DRAIN_TIME_MAX;
use e2e::api::{Api, wait_for};
use e2e::netns::Namespace;
use e2e::nfs3::{self, Client};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};
use e2e::{is_root, nfs4, skip, took_at_most};
use serde_json::{Value, json};
use wire::mount3::{MOUNT_PROGRAM, MOUNT_V3};
use wire::nfs3::{Fh3, NFS_PROGRAM, NFS_V3, Proc, ReadArgs, StableHow, WriteArgs};
use wire::nlm4::{NLM_PROGRAM, NLM_V4};
use wire::portmap::{self, IPPROTO_TCP, Mapping, PMAP_PROGRAM, PMAP_V2};

const NFS: &str = "/configuration/services/nfs";
/// Longer than a change of a service takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

struct Scene {
    server: Server,
    api: Api,
    dir: PathBuf,
    state: PathBuf,
    _scratch: Scratch,
}

impl Scene {
    fn new(name: &str) -> Self {
        let scratch = Scratch::with_space(name);
        let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
        let mut options = Options::new(&dir, &state);
        // Longer than coming back takes, shorter than any wait here.
        options.args.extend(["--nfs-lease".into(), "15".into()]);
        let server = Server::start(&options);
        let api = Api::new(&state);
        Self { server, api, dir, state, _scratch: scratch }
    }

    /// Commits a setting of NFS; what is noted.
    fn set(&self, property: &str, value: Value) -> String {
        let change = json!({"set": NFS, "property": property, "value": value});
        let (code, done) = self.api.post("/api/v1/changes", &json!({ "changes": [change] }));
        assert_eq!(code, 200, "{done}");
        done["notes"].to_string()
    }

    fn restart(&self) -> (u16, Value) {
        self.api.post(&format!("/api/v1/nodes{NFS}/actions/restart"), &json!({ "parameters": {} }))
    }

    /// A property of NFS as it is now.
    fn get(&self, property: &str) -> Value {
        let (code, node) = self.api.get(&format!("/api/v1/nodes{NFS}"));
        assert_eq!(code, 200, "{node}");
        let all = node["properties"].as_array().expect("properties");
        let one = all.iter().find(|one| one["name"] == property);
        one.map(|one| one["value"].clone()).unwrap_or_default()
    }

    fn is(&self, state: &str) -> bool {
        self.get("state") == state
    }

    fn listens(&self) -> bool {
        TcpStream::connect(self.server.nfs()).is_ok()
    }
}

/// Reads a file of ten bytes over NFSv3.
fn read(client: &mut Client, file: &nfs3::Handle) -> Result<Vec<u8>, nfs3::Failure> {
    client.read(file, 0, 10).map(|(data, _)| data)
}

#[test]
fn a_client_continues_when_nfs_was_disabled_for_a_while() {
    let scene = Scene::new("services-disable");
    let (mut client, root) = scene.server.mount(0, 0);
    let file = client.create(&root, "f", wire::nfs3::CreateHow::Guarded(Default::default()));
    let file = file.expect("a file").handle;
    client.write(&file, 0, b"0123456789", StableHow::FILE_SYNC).expect("written");
    wait_for("the connection", PATIENCE, || (scene.get("clients") == 1).then_some(()));

    // A dry run lists the clients that it would disconnect, and does nothing.
    let off = json!({"set": NFS, "property": "enabled", "value": false});
    let dry = json!({"dry_run": true, "changes": [off]});
    let (_, told) = scene.api.post("/api/v1/changes", &dry);
    assert!(
        told["notes"].to_string().contains("disconnected: 1 client with 1 connection"),
        "{told}"
    );
    assert_eq!(read(&mut client, &file).expect("the service accepts clients"), b"0123456789");

    scene.set("enabled", json!(false));
    assert!(read(&mut client, &file).is_err(), "the connection is closed");
    assert!(scene.is("disabled") && !scene.listens());
    let reason = scene.get("reason").to_string();
    assert!(reason.contains("disabled by ") && reason.contains(" UTC"), "{reason}");
    assert_eq!((scene.get("connections"), scene.get("clients")), (json!(0), json!(0)));
    // The administration continues, also with shares.
    let status = scene.api.status();
    assert_eq!(status["healthy"], true, "what somebody wants is no problem: {status}");
    assert_eq!(status["services"][0]["state"], "disabled", "{status}");
    let (code, refused) = scene.restart();
    assert_eq!(code, 409, "a disabled service is not restarted: {refused}");

    scene.set("enabled", json!(true));
    assert!(scene.is("online"));
    let mut client = Client::connect(scene.server.nfs(), 0, 0).expect("it listens again");
    assert_eq!(read(&mut client, &file).expect("under the same handle"), b"0123456789");
}

#[test]
fn what_an_nfs4_client_held_can_be_reclaimed_after_a_restart_of_the_service() {
    let scene = Scene::new("services-reclaim");
    let mut client =
        nfs4::Client::connect(scene.server.nfs(), (0, 0), "stays", 1).expect("a session");
    client.reclaim_complete().expect("nothing to reclaim");
    let root = client.walk(&scene.server.export()).expect("the share");
    let file = client.open(&root, "f", "o", true).expect("a file");
    client.write(&file, 0, b"0123456789").expect("written");
    let opens = || scene.api.get("/api/v1/services/nfs/opens").1["rows"].to_string();
    assert_ne!(opens(), "[]");

    let (code, answer) = scene.restart();
    assert_eq!(code, 200, "{answer}");
    assert!(scene.is("online"));
    assert_eq!(opens(), "[]", "nobody holds anything who has not come back");
    // Clients on record may reclaim, so no client gets anything new yet.
    let connect = |name, verifier| {
        let client = nfs4::Client::connect(scene.server.nfs(), (0, 0), name, verifier);
        client.expect("a session")
    };
    let mut other = connect("other", 2);
    other.reclaim_complete().expect("nothing to reclaim");
    assert!(other.open(&root, "f", "o", false).is_err(), "grace");
    let mut client = connect("stays", 1);
    let file = client.reclaim_open(&file.handle, "o").expect("what it held");
    client.reclaim_complete().expect("that was all");
    assert_eq!(client.read(&file, 0, 10).expect("its file"), b"0123456789");
    assert_ne!(opens(), "[]");
    // All clients that may reclaim have done so, or the grace period is over.
    wait_for("the end of grace", PATIENCE, || other.open(&root, "f", "o", false).ok());
}

#[test]
fn a_taken_port_is_maintenance_with_a_reason_until_it_is_free() {
    let scene = Scene::new("services-port");
    let at: SocketAddr = scene.server.nfs();
    scene.set("enabled", json!(false));
    let taken = TcpListener::bind(at).expect("the port is free while NFS is disabled");
    let notes = scene.set("enabled", json!(true));
    let why = format!("port {} is in use by another program", at.port());
    assert!(notes.contains(&why), "{notes}");
    assert!(scene.is("maintenance"));
    assert_eq!(scene.get("reason"), json!(why));
    let status = scene.api.status();
    assert!(status["problems"].to_string().contains(&why), "{status}");
    let (code, refused) = scene.restart();
    assert!(code == 409 && refused.to_string().contains(&why), "{code} {refused}");
    assert!(scene.get("log").to_string().contains(&why), "{}", scene.get("log"));
    drop(taken);
    let (code, answer) = scene.restart();
    assert_eq!(code, 200, "{answer}");
    assert!(scene.is("online") && scene.get("reason").is_null());
    assert_eq!(scene.api.status()["healthy"], true);
    scene.server.mount(0, 0);
}

#[test]
fn it_stays_disabled_over_a_start_of_the_server_and_names_the_user() {
    let mut scene = Scene::new("services-start");
    scene.set("enabled", json!(false));
    let reason = scene.get("reason");
    let text = reason.as_str().expect("a reason");
    assert!(text.starts_with("disabled by root at "), "{text}");
    assert!(scene.server.stop().success());
    scene.server = Server::start(&Options::new(&scene.dir, &scene.state));
    assert!(scene.is("disabled") && !scene.listens());
    assert_eq!(scene.get("reason"), reason);
    let note = scene.server.stderr_text();
    assert!(!note.contains("cannot"), "{note}");
    scene.set("enabled", json!(true));
    scene.server.mount(0, 0);
}

#[test]
fn settings_take_effect_as_their_notes_say() {
    let scene = Scene::new("services-settings");
    assert_eq!(scene.set("domain", json!("example.org")), "[]", "at once");
    let note = scene.set("delegations", json!(false));
    assert!(note.contains("takes effect when the service restarts"), "{note}");
    // The log level changes at once, too.
    let connected = || scene.get("log").to_string().contains("connected from port");
    scene.listens();
    assert!(!connected());
    assert_eq!(scene.set("log_level", json!("debug")), "[]");
    scene.listens();
    wait_for("a line on the connection", PATIENCE, || connected().then_some(()));
    let of = |query: &str| scene.api.get(&format!("/api/v1/logs?{query}")).1["rows"].to_string();
    assert!(of("service=nfs&level=debug").contains("connected from port"));
    assert!(!of("service=nfs&level=info").contains("connected from port"));
    assert_eq!(scene.api.get("/api/v1/logs?level=loud").0, 400);
}

/// The port that the port mapper at `at` has for a program; none if there is no port mapper.
fn mapped(at: SocketAddr, (prog, vers): (u32, u32)) -> Option<u16> {
    let mut client = Client::connect(at, 0, 0).ok()?;
    let wanted = Mapping { prog, vers, prot: IPPROTO_TCP, port: 0 };
    let answer = client.call((PMAP_PROGRAM, PMAP_V2), portmap::Proc::GETPORT.0, &wanted);
    let port = u32::from_be_bytes(answer.expect("an answer").try_into().expect("a port"));
    Some(u16::try_from(port).expect("a port"))
}

#[test]
fn the_port_mapper_comes_and_goes_while_nfs_serves() {
    let scene = Scene::new("services-portmap");
    let at = SocketAddr::from(([127, 0, 0, 1], 111 + scene.server.offset));
    let (mut client, root) = scene.server.mount(0, 0);
    let all = [(NFS_PROGRAM, NFS_V3), (MOUNT_PROGRAM, MOUNT_V3), (NLM_PROGRAM, NLM_V4)];
    let there = || all.map(|program| mapped(at, program));
    assert_eq!(there(), [Some(scene.server.nfs_port()); 3]);

    assert_eq!(scene.set("portmap", json!(false)), "[]", "nothing to be told");
    assert_eq!(there(), [None; 3]);
    drop(UdpSocket::bind(scene.server.nfs()).expect("NSM goes with it"));
    let taken = (TcpListener::bind(at), UdpSocket::bind(at));
    assert!(taken.0.is_ok() && taken.1.is_ok(), "its port is free: {taken:?}");
    client.getattr(&root).expect("NFS goes on, on the connection that is there");

    // The missing port mapper is reported, and everything else continues.
    let why = format!("no port mapper at {at}");
    let notes = scene.set("portmap", json!(true));
    assert!(notes.contains(&why), "{notes}");
    assert!(scene.is("online") && scene.get("log").to_string().contains(&why));
    drop(taken);
    let (code, answer) = scene.restart();
    assert_eq!(code, 200, "{answer}");
    assert_eq!(there(), [Some(scene.server.nfs_port()); 3], "a restart tries again");
    scene.set("portmap", json!(false));
    assert_eq!(scene.set("portmap", json!(true)), "[]");
    assert_eq!(there(), [Some(scene.server.nfs_port()); 3]);
    assert_eq!(scene.server.stderr_text().matches(&why).count(), 1);
}

/// At the standard port the absence of a port mapper shows in the mount commands.
#[test]
fn mount_commands_have_locks_as_long_as_there_is_a_port_mapper() {
    if !is_root() {
        skip!("port-mapper-111", "needs root");
    }
    let namespace = match Namespace::with("ip link set lo up") {
        Ok(namespace) => namespace,
        Err(why) => skip!("port-mapper-111", "{why}"),
    };
    let scratch = Scratch::new("services-111");
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let mut options = Options::new(&dir, &state);
    (options.namespace, options.offset) = (Some(&namespace), Some(0));
    let server = Server::start(&options);
    let api = Api::new(&state);
    let scene = Scene { server, api, dir: dir.clone(), state: state.clone(), _scratch: scratch };
    let locks = || {
        let status = scene.api.status();
        let access = status["shares"][0]["access"].as_array().expect("ways").clone();
        let mount = access.iter().find(|way| way["protocol"] == "nfs3").expect("by NFSv3");
        !mount["mount"].as_str().expect("a command").contains("nolock")
    };
    assert!(locks());
    scene.set("portmap", json!(false));
    assert!(!locks());
    scene.set("portmap", json!(true));
    assert!(locks());
    scene.set("enabled", json!(false));
    scene.set("enabled", json!(true));
    assert!(locks());
}

/// Looks that find as many bytes held, after which the server waits for its client.
const STEADY: u32 = 20;

/// A client that sends WRITE and READ calls in turn, for more data than the kernel buffers for it,
/// and reads no reply.
fn deaf(server: SocketAddr, file: &nfs3::Handle) -> TcpStream {
    const PART: u32 = 1 << 20;
    const LITTLE: [u8; 4096] = [1; 4096];
    let mut stream = TcpStream::connect(server).expect("a connection");
    let mut client = Client::over(stream.try_clone().expect("the same"), 0, 0).expect("a client");
    let (file, count, nfs) = (Fh3(file), LITTLE.len() as u32, (NFS_PROGRAM, NFS_V3));
    let stable = StableHow::FILE_SYNC;
    let write = WriteArgs { file, offset: 0, count, stable, data: &LITTLE };
    let read = ReadArgs { file, offset: 0, count: PART };
    let mut asked = Vec::new();
    for _ in 0..24 {
        asked.extend(client.record(nfs, Proc::WRITE.0, &write));
        asked.extend(client.record(nfs, Proc::READ.0, &read));
    }
    stream.write_all(&asked).expect("the server takes it");
    stream
}

#[test]
fn a_client_that_takes_no_answers_is_cut_off_in_the_end() {
    let scene = Scene::new("services-drain");
    let (mut client, root) = scene.server.mount(0, 0);
    let how = wire::nfs3::CreateHow::Guarded(Default::default());
    let file = client.create(&root, "f", how).expect("a file").handle;
    client.write(&file, 0, &vec![1; 1 << 20], StableHow::FILE_SYNC).expect("written");
    let deaf = deaf(scene.server.nfs(), &file);
    // Not the requests: a write may be complete, and its reply unsent.
    let held = || scene.api.bytes_in_flight();
    let mut looks = (0, 0);
    wait_for("replies that are not taken", PATIENCE, || {
        let now = held();
        looks = if now > 0 && now == looks.0 { (now, looks.1 + 1) } else { (now, 0) };
        (looks.1 >= STEADY).then_some(())
    });

    let begin = Instant::now();
    let notes = std::thread::scope(|scope| {
        // A client that never stops sending calls keeps no other client waiting.
        scope.spawn(|| while client.getattr(&root).is_ok() {});
        let disabling = scope.spawn(|| scene.set("enabled", json!(false)));
        wait_for("its way down", PATIENCE, || scene.is("offline").then_some(()));
        assert!(!disabling.is_finished(), "what was asked for is waited for");
        disabling.join().expect("it is disabled")
    });
    let took = begin.elapsed();
    assert!(took >= DRAIN_TIME_MAX, "{took:?}");
    took_at_most("the drain of a service", took, DRAIN_TIME_MAX + PATIENCE / 4);
    let told = format!("requests were not completed within {} s", DRAIN_TIME_MAX.as_secs());
    assert!(notes.contains(&told), "{notes}");
    assert!(scene.is("disabled") && scene.get("log").to_string().contains(&told));
    let reason = scene.get("reason").to_string();
    assert!(reason.contains("disabled by "), "{reason}");
    assert_eq!((scene.get("connections"), scene.get("clients")), (json!(0), json!(0)));
    wait_for("nothing is left of it", PATIENCE, || (held() == 0).then_some(()));
    drop(deaf);

    assert_eq!(scene.set("enabled", json!(true)), "[]");
    let (mut client, _) = scene.server.mount(0, 0);
    client.getattr(&file).expect("it serves again");
}
