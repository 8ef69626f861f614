//! What the administrator sees of NFSv4 clients is what they hold: statistics, API and command line
//! against scripted clients that know what they have opened and locked; and a client that is
//! expired holds nothing, and learns it.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use e2e::api::{self, Api};
use e2e::nfs3;
use e2e::nfs4::files::Opened;
use e2e::nfs4::{Client, Failure, Outcome};
use e2e::process;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server, binary};
use serde_json::Value;
use wire::nfs4::locktype4::{READ, WRITE};
use wire::nfs4::{
    ArgOp, LockArgs4, LockRes4, Locker4, Nfsstat4, Opaque4, OpenToLockOwner4, ResOp, StateOwner4,
};
use wire::nlm4::{HostName, LockArgs, NLM_PROGRAM, NLM_V4, Netobj, Nlm4Lock, Nlm4Res, Nlm4Stat};

/// The procedure LOCK of NLM.
const NLM_LOCK: u32 = 2;
/// Time limit of a `plimsoll` command for a server on this machine.
const COMMAND: Duration = e2e::patience(20);
/// To the end of the file, however it grows.
const TO_END: u64 = u64::MAX;

struct Scene {
    server: Server,
    api: Api,
    state: PathBuf,
    _scratch: Scratch,
}

impl Scene {
    fn new() -> Self {
        Self::with("counts", &[])
    }

    /// With further arguments of the server.
    fn with(name: &str, args: &[&str]) -> Self {
        let scratch = Scratch::new(name);
        let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
        let args = args.iter().map(Into::into).collect();
        let server = Server::start(&Options { args, ..Options::new(&dir, &state) });
        let api = Api::new(&state);
        Self { server, api, state, _scratch: scratch }
    }

    fn client(&self, name: &str) -> Client {
        let address: SocketAddr = (Ipv4Addr::LOCALHOST, self.server.nfs_port()).into();
        let mut client = Client::connect(address, (0, 0), name, 1).expect("a session");
        client.reclaim_complete().expect("RECLAIM_COMPLETE");
        client
    }

    /// A level by its rows, and as a whole, at the end of a second that begins after now.
    fn levels(&self, stats: &[&str]) -> Vec<(BTreeMap<String, u64>, u64)> {
        let second = api::now() + 1;
        self.api.wait_for_second(second);
        let level = |stat: &&str| {
            let data = self.api.data(stat, (second, second + 1), "");
            let rows = data["rows"].as_array().into_iter().flatten();
            let row = |row: &Value| {
                let key = row["key"].as_str().expect("a key").to_owned();
                (key, api::sum(&row["values"]))
            };
            let some = rows.map(row).filter(|(_, value)| *value > 0);
            assert!(data["total"][0].is_number(), "{stat}: {data}");
            (some.collect(), api::sum(&data["total"]))
        };
        stats.iter().map(level).collect()
    }

    fn nfs(&self, args: &[&str]) -> Output {
        let mut command = Command::new(binary());
        command.arg("nfs").args(args).arg("--state").arg(&self.state);
        process::run(&mut command, COMMAND)
    }

    fn nfs_output(&self, args: &[&str]) -> String {
        let output = self.nfs(args);
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {why}");
        String::from_utf8(output.stdout).expect("text")
    }

    fn rows(&self, path: &str) -> Vec<Value> {
        let (code, answer) = self.api.get(&format!("/api/v1/services/nfs/{path}"));
        assert_eq!((code, &answer["more"]), (200, &Value::Bool(false)), "{path}: {answer}");
        answer["rows"].as_array().expect("rows").clone()
    }

    /// The client that calls itself so, if it is there.
    fn shown(&self, name: &str) -> Option<Value> {
        self.rows("clients").into_iter().find(|c| c["name"] == name)
    }
}

/// LOCK under an open by an owner that is new.
fn lock(
    client: &mut Client,
    file: &Opened,
    owner: &str,
    kind: u32,
    (offset, length): (u64, u64),
) -> Outcome<()> {
    let locker = Locker4::New(OpenToLockOwner4 {
        open_seqid: 0,
        open_stateid: file.stateid,
        lock_seqid: 0,
        lock_owner: StateOwner4 { clientid: client.id, owner: Opaque4(owner.as_bytes()) },
    });
    let lock = LockArgs4 { locktype: kind, reclaim: false, offset, length, locker };
    match client.at(&file.handle, &[ArgOp::Lock(lock)])?.last()? {
        ResOp::Lock(LockRes4::Ok(_)) => Ok(()),
        other => panic!("{other:?}"),
    }
}

fn map<const N: usize>(rows: [(&str, u64); N]) -> BTreeMap<String, u64> {
    rows.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

const STATS: [&str; 7] = [
    "nfs4.clients[state]",
    "nfs4.sessions",
    "nfs4.opens[client]",
    "nfs4.locks[kind]",
    "nfs4.locks[client=127.0.0.1][kind]",
    "nfs4.waiting",
    "nfs4.delegations",
];
const HERE: &str = "127.0.0.1";
const DENIED: Outcome<()> = Err(Failure::Status(Nfsstat4::DENIED));
const BADSESSION: Outcome<()> = Err(Failure::Status(Nfsstat4::BADSESSION));

/// Three files open, two locks for reading and one for writing.
fn hold(anna: &mut Client, root: &[u8]) {
    let files = ["a", "b", "c"].map(|name| anna.open(root, name, "anna", true).expect("OPEN"));
    lock(anna, &files[0], "one", READ, (0, 10)).expect("LOCK");
    lock(anna, &files[0], "two", READ, (20, 10)).expect("LOCK");
    lock(anna, &files[1], "one", WRITE, (5, TO_END)).expect("LOCK");
}

fn check_lists(scene: &Scene, id: &str) {
    let opens = scene.rows(&format!("opens?client={id}"));
    let files: Vec<&str> = opens.iter().filter_map(|open| open["file"].as_str()).collect();
    let mut sorted = files.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, ["/export/data/a", "/export/data/b", "/export/data/c"]);
    for open in &opens {
        let kind = (&open["kind"], &open["access"], &open["deny"], &open["owner"]);
        assert_eq!(kind, (&"open".into(), &"both".into(), &"none".into(), &"anna".into()));
        assert_eq!((&open["client"], &open["share"]), (&id.into(), &"data".into()));
    }
    let locks = scene.rows(&format!("locks?client={id}"));
    let mut found: Vec<_> = locks
        .iter()
        .map(|l| (l["kind"].as_str(), l["offset"].as_u64(), l["length"].as_u64()))
        .collect();
    found.sort_unstable();
    let (read, write) = (Some("read"), Some("write"));
    let held = [(read, Some(0), Some(10)), (read, Some(20), Some(10)), (write, Some(5), None)];
    assert_eq!(found, held, "{locks:?}");
    assert!(locks.iter().all(|l| l["waiting"] == false && l["protocol"] == "nfs4"), "{locks:?}");
    assert_eq!(scene.rows("locks").len(), 4, "of all clients");
    let text = scene.nfs_output(&["locks", id]);
    assert!(text.contains("to the end") && text.contains("/export/data/b"), "{text}");
    assert_eq!(scene.nfs_output(&["opens", id]).lines().count(), 4);
}

#[test]
fn what_is_shown_is_what_is_held_and_expired_is_gone() {
    let scene = Scene::new();
    let (mut anna, mut bert) = (scene.client("anna \u{1b}[31m"), scene.client("bert"));
    let root = anna.walk("/export/data").expect("the share");
    hold(&mut anna, &root);
    let file = bert.open(&root, "a", "bert", false).expect("OPEN");
    lock(&mut bert, &file, "shared", READ, (0, 10)).expect("LOCK");
    assert_eq!(lock(&mut bert, &file, "writer", WRITE, (0, 30)), DENIED);

    let levels = scene.levels(&STATS);
    let kinds = map([("read", 3), ("write", 1)]);
    assert_eq!(levels[0], (map([("active", 2)]), 2));
    assert_eq!(levels[1].1, 2);
    assert_eq!(levels[2], (map([(HERE, 4)]), 4));
    assert_eq!(levels[3], (kinds.clone(), 4));
    assert_eq!(levels[4], (kinds, 4));
    assert_eq!((levels[5].1, levels[6].1), (0, 0));

    let shown = scene.shown(r"anna \x1b[31m").expect("shown, and safely");
    let id = shown["id"].as_str().expect("an id").to_owned();
    assert_eq!((&shown["opens"], &shown["locks"]), (&3.into(), &3.into()));
    assert_eq!((&shown["version"], &shown["principal"]), (&"4.2".into(), &"root".into()));
    assert_eq!((&shown["state"], &shown["addresses"][0]), (&"active".into(), &HERE.into()));
    check_lists(&scene, &id);
    expire(&scene, &id, (&mut anna, &root));

    let levels = scene.levels(&STATS);
    assert_eq!(levels[0], (map([("active", 1)]), 1));
    assert_eq!((levels[1].1, levels[2].1, levels[3].1), (1, 1, 1));
    lock(&mut bert, &file, "writer", WRITE, (10, 20)).expect("nobody is in the way");
    let bert_id = scene.shown("bert").expect("shown")["id"].as_str().expect("an id").to_owned();
    let was: Value =
        serde_json::from_str(&scene.nfs_output(&["expire", &bert_id, "--json"])).expect("JSON");
    assert_eq!((&was["opens"], &was["locks"]), (&1.into(), &2.into()));
    let none = (BTreeMap::new(), 0);
    assert!(scene.levels(&STATS).iter().all(|level| *level == none));
    assert!(scene.nfs_output(&["clients"]).contains("no NFS client holds state"));
    assert!(scene.server.stderr_text().contains(&format!("expired the NFS client {id}")));
}

fn expire(scene: &Scene, id: &str, (anna, root): (&mut Client, &[u8])) {
    let text = scene.nfs_output(&["expire", id]);
    assert!(text.contains(id) && text.contains("3 opens, 3 locks"), "{text}");
    assert_eq!(anna.lookup(root, "a").map(|_| ()), BADSESSION, "it learns it");
    for args in [["expire", id], ["opens", id], ["locks", "nfs4-77"]] {
        let output = scene.nfs(&args);
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {why}");
        assert!(
            why.contains("this client does not exist") && why.contains("plimsoll nfs clients"),
            "{why}"
        );
    }
    let nowhere = "/nowhere/at/all";
    let mut command = Command::new(binary());
    command.args(["nfs", "clients", "--state", nowhere]);
    let output = process::run(&mut command, COMMAND);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot reach the server"));
}

/// LOCK for writing of the first ten bytes by a host of NFSv3, which waits if it must.
fn nlm_lock(rpc: &mut nfs3::Client, host: &str, file: &[u8]) -> Nlm4Stat {
    let lock = LockArgs {
        cookie: Netobj(b"cookie"),
        block: true,
        exclusive: true,
        alock: Nlm4Lock {
            caller_name: HostName(host.as_bytes()),
            fh: Netobj(file),
            oh: Netobj(host.as_bytes()),
            svid: 7,
            l_offset: 0,
            l_len: 10,
        },
        reclaim: false,
        state: 1,
    };
    let reply = rpc.call((NLM_PROGRAM, NLM_V4), NLM_LOCK, &lock).expect("an answer");
    wire::xdr::decode_all::<Nlm4Res<'_>>(&reply).expect("nlm4_res").stat
}

#[test]
fn locks_of_nfsv3_are_rows_of_the_same_table() {
    let scene = Scene::new();
    let mut anna = scene.client("anna");
    let root = anna.walk("/export/data").expect("the share");
    let opened = anna.open(&root, "a", "anna", true).expect("OPEN");
    let (mut rpc, root) = scene.server.mount(0, 0);
    let file = rpc.lookup(&root, "a").expect("LOOKUP").handle;
    assert_eq!(nlm_lock(&mut rpc, "old", &file), Nlm4Stat::GRANTED);
    assert_eq!(nlm_lock(&mut rpc, "older", &file), Nlm4Stat::BLOCKED);
    assert_eq!(lock(&mut anna, &opened, "one", READ, (5, 1)), DENIED);

    let stats = ["nlm.locks[client]", "nlm.locks[kind]", "nlm.waiting[client]", "nfs4.locks"];
    let levels = scene.levels(&stats);
    assert_eq!(levels[0], (map([(HERE, 1)]), 1));
    assert_eq!(levels[1], (map([("write", 1)]), 1));
    assert_eq!((&levels[2], levels[3].1), (&(map([(HERE, 1)]), 1), 0));
    let (old, older) = (scene.shown("old").expect("shown"), scene.shown("older").expect("shown"));
    assert_eq!((&old["protocol"], &old["version"]), (&"nlm".into(), &"3".into()));
    assert_eq!((&old["locks"], &old["silent_s"]), (&1.into(), &Value::Null));
    assert_eq!((&older["locks"], &older["waiting"]), (&0.into(), &1.into()));
    let rows = scene.rows("locks");
    let shown = |row: &Value| (row["client"].clone(), row["waiting"].clone());
    let held: Vec<_> = rows.iter().map(shown).collect();
    assert!(held.contains(&(old["id"].clone(), false.into())), "{rows:?}");
    assert!(held.contains(&(older["id"].clone(), true.into())), "{rows:?}");
    assert!(rows.iter().all(|row| row["file"] == "/export/data/a" && row["protocol"] == "nlm"));

    for host in [older, old] {
        scene.nfs_output(&["expire", host["id"].as_str().expect("an id")]);
    }
    assert!(scene.rows("locks").is_empty() && scene.shown("old").is_none());
    lock(&mut anna, &opened, "one", READ, (5, 1)).expect("nobody is in the way");
}

/// Long enough for what is done within it, and not too long to wait for its end.
const LEASE: u64 = 6;
const DELAY: Failure = Failure::Status(Nfsstat4::DELAY);

/// Opens a file for writing until the server lets it.
fn insist(client: &mut Client, root: &[u8], name: &str) {
    api::wait_for("an open for writing", Duration::from_secs(30), || {
        match client.open(root, name, "writer", false) {
            Ok(_) => Some(()),
            Err(failure) => {
                assert_eq!(failure, DELAY, "{name}");
                None
            }
        }
    });
}

#[test]
fn delegations_recalls_and_silent_clients_are_counted() {
    let lease = LEASE.to_string();
    let scene = Scene::with("recalls", &["--nfs-lease", &lease]);
    let data = scene.state.with_file_name("data");
    for name in ["a", "b", "c"] {
        std::fs::write(data.join(name), "before").expect("a file");
    }
    let first = api::now();
    let mut anna = Client::connect_both_ways(scene.server.nfs(), "anna").expect("a session");
    let mut bert = scene.client("bert");
    let root = anna.walk("/export/data").expect("the share");
    let held = ["a", "b", "c"].map(|name| {
        let (file, delegation) = anna.open_delegated(&root, name).expect("OPEN");
        (file, delegation.expect("a delegation"))
    });
    let stats = ["nfs4.delegations[client]", "nfs4.clients[state]"];
    let levels = scene.levels(&stats);
    assert_eq!(levels[0], (map([(HERE, 3)]), 3));
    assert_eq!(levels[1], (map([("active", 2)]), 2));

    for (name, (file, delegation)) in ["a", "b"].into_iter().zip(&held) {
        let denied = bert.open(&root, name, "writer", false);
        assert_eq!(denied.err(), Some(DELAY), "{name}");
        assert_eq!(anna.recalled(), Ok(*delegation), "{name}");
        anna.give_back(&file.handle, *delegation).expect("DELEGRETURN");
        insist(&mut bert, &root, name);
    }
    let levels = scene.levels(&stats);
    assert_eq!(levels[0], (map([(HERE, 1)]), 1));
    let recalls = || scene.api.count("nfs4.recalls", (first, api::now()));
    assert_eq!(recalls(), 2);

    // Anna is silent: her state is retained until another client needs it.
    drop(anna);
    api::wait_for("one who is silent", Duration::from_secs(30 + LEASE), || {
        bert.lookup(&root, "a").expect("he is there");
        (scene.shown("anna")?["state"] == "courtesy").then_some(())
    });
    let shown = scene.shown("anna").expect("shown");
    assert!(shown["silent_s"].as_f64() >= Some(LEASE as f64), "{shown}");
    let levels = scene.levels(&stats);
    assert_eq!(levels[0], (map([(HERE, 1)]), 1));
    assert_eq!(levels[1], (map([("active", 1), ("courtesy", 1)]), 2));
    insist(&mut bert, &root, "c");
    // The delegation was in the way; what she has open is not.
    let levels = scene.levels(&stats);
    assert_eq!(levels[0], (BTreeMap::new(), 0));
    assert_eq!(levels[1], (map([("active", 1), ("courtesy", 1)]), 2));
    assert_eq!(recalls(), 3);
    scene.nfs_output(&["expire", shown["id"].as_str().expect("an id")]);
    assert_eq!(scene.levels(&stats)[1], (map([("active", 1)]), 1));
}
