//! Space of shares on pools: a quota as each protocol refuses what exceeds it, usage as the kernel
//! counts it, compression, a pool without space, and snapshots by schedule.

use std::io::Write;
use std::net::SocketAddr;

use base::random::{Random, SeededRandom};
use e2e::api::{self, Api, wait_for};
use e2e::ftp::Ftp;
use e2e::http::Http;
use e2e::iscsi::{Access, BLOCK, Initiator, io};
use e2e::server::Server;
use e2e::sftp::Sftp;
use e2e::smb::{Ask, Offer, Smb};
use e2e::tcp::HERE;
use e2e::{nfs3, nfs4, skip};
use serde_json::{Value, json};
use wire::nfs3::{CreateHow, Nfsstat3, StableHow};
use wire::nfs4::Nfsstat4;
use wire::scsi::{Asc, Cdb, SenseKey};
use wire::sftp::{OpenFlags, StatusCode};
use wire::smb::status::NtStatus;

use crate::pools::{Bed, MIB, PATIENCE, POOLS, Writer, act, change, cli, done, run, value};

const QUOTA: usize = 32 * MIB;
/// What is written to a share with the quota.
const TOO_MUCH: usize = 33 * MIB;
/// What a share with the quota takes at least: the kernel keeps some of it for metadata of changes
/// that are not written yet.
const TAKEN: usize = 24 * MIB;
const PIECE: usize = 64 << 10;
const PAGE: usize = 4 << 10;
const WHO: (&str, &str) = ("anna", "correct-horse-battery");

fn bytes(seed: u64, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    SeededRandom::new(seed).fill(&mut bytes);
    bytes
}

/// A server with a pool on one disk.
struct Stage {
    server: Server,
    api: Api,
    pool: String,
    at: String,
    bed: Bed,
}

impl Stage {
    fn new(mib: u64) -> Result<Self, String> {
        let bed = Bed::new(&[mib])?;
        let name = format!("space{mib}-{}", std::process::id());
        let (server, api) = bed.start();
        let disk = bed.disk(0);
        let create = format!("storage pools create_pool name={name} profile=stripe disks={disk}");
        cli(&bed, &[&create]);
        let (pool, at) = (format!("{POOLS}/{name}"), format!("/run/plimsoll-pools/{name}"));
        Ok(Self { server, api, pool, at, bed })
    }

    fn name(&self) -> &str {
        self.pool.rsplit('/').next().unwrap_or_default()
    }

    fn create(&self, share: &str, more: &Value) -> Value {
        let mut properties = json!({ "pool": self.name(), "root_mode": "777" });
        let more = more.as_object().cloned().unwrap_or_default();
        properties.as_object_mut().expect("an object").extend(more);
        json!({ "create": "/shares/default", "name": share, "properties": properties })
    }

    /// `btrfs qgroup show --raw`: what is referenced by a share, and its limit.
    fn qgroup(&self, share: &str) -> (u64, String) {
        run("btrfs", &["filesystem", "sync", &self.at]);
        let path = format!("{}/{share}", self.at);
        let id = run("btrfs", &["inspect-internal", "rootid", &path]);
        let all = run("btrfs", &["qgroup", "show", "--raw", "-r", &self.at]);
        let id = format!("0/{}", id.trim());
        let line = all.lines().find(|line| line.split_whitespace().next() == Some(&id));
        let line = line.unwrap_or_else(|| panic!("{id} is not in {all}"));
        let columns: Vec<&str> = line.split_whitespace().collect();
        (columns[1].parse().expect("a number"), columns[3].to_owned())
    }

    fn shown(&self, share: &str, property: &str) -> Value {
        value(&self.api, &format!("/shares/default/{share}"), property)
    }

    fn set(&self, share: &str, property: &str, value: &Value) {
        let set = json!({ "set": format!("/shares/default/{share}"), "property": property,
            "value": value });
        change(&self.api, &json!([set]));
    }
}

/// Writes pieces until one is refused: how many bytes were taken, and how the next was refused.
fn until_refused<E>(mut write: impl FnMut(u64, &[u8]) -> Result<(), E>) -> (usize, Option<E>) {
    let all = bytes(7, TOO_MUCH);
    for (n, piece) in all.chunks(PIECE).enumerate() {
        if let Err(refused) = write((n * PIECE) as u64, piece) {
            return (n * PIECE, Some(refused));
        }
    }
    (all.len(), None)
}

fn over_nfs3(server: &Server) -> (usize, String) {
    let mut writer = Writer::new(server, "nfs3");
    let made = writer.client.create(&writer.root, "f", CreateHow::Guarded(Default::default()));
    let file = made.expect("created").handle;
    let (taken, refused) = until_refused(|offset, piece| {
        writer.client.write(&file, offset, piece, StableHow::UNSTABLE).map(drop)
    });
    assert!(matches!(refused, Some(nfs3::Failure::Status(Nfsstat3::DQUOT))), "{refused:?}");
    (taken, format!("{refused:?}"))
}

fn over_nfs4(server: &Server) -> (usize, String) {
    let mut client = nfs4::Client::connect(server.nfs(), (0, 0), "quota", 1).expect("a client");
    client.reclaim_complete().expect("complete");
    let root = client.walk("/export/nfs4").expect("the share");
    let file = client.open(&root, "f", "o", true).expect("open");
    let (taken, refused) = until_refused(|offset, piece| {
        match client.write(&file, offset, piece) {
            // A part of it was taken: what is refused then is the rest, page by page.
            Err(nfs4::Failure::Broken(short)) if short.contains("WriteResOk4") => {
                let mut pages = (offset..).step_by(PAGE).zip(piece.chunks(PAGE));
                pages.try_for_each(|(offset, page)| client.write(&file, offset, page))
            }
            done => done,
        }
    });
    assert!(matches!(refused, Some(nfs4::Failure::Status(Nfsstat4::DQUOT))), "{refused:?}");
    (taken, format!("{refused:?}"))
}

fn over_smb(server: &Server) -> (usize, String) {
    let at = server.at(445);
    let mut smb = Smb::open((HERE, at), &Offer::default(), WHO, "smb").expect("let in");
    let file = smb.create(&Ask::make("f")).expect("an answer").expect("created");
    let (taken, refused) = until_refused(|offset, piece| {
        match smb.write(file, offset, piece, 0).expect("an answer") {
            NtStatus::SUCCESS => Ok(()),
            other => Err(other),
        }
    });
    assert_eq!(refused, Some(NtStatus::QUOTA_EXCEEDED));
    (taken, format!("{refused:?}"))
}

fn over_ftp(server: &Server) -> (usize, String) {
    let mut ftp = Ftp::connect(HERE, server.at(21)).expect("FTP");
    assert_eq!(ftp.sign_in(WHO.0, WHO.1).expect("signed in"), 230);
    let mut stream = ftp.begin("STOR /ftp/f").expect("begun").expect("accepted");
    // The server may end it before all is sent.
    let _ended = stream.write_all(&bytes(7, TOO_MUCH));
    drop(stream);
    let (code, text) = ftp.reply().expect("a reply");
    assert_eq!(code, 552, "{text}");
    (TAKEN, format!("{code} {text}"))
}

fn over_sftp(server: &Server) -> (usize, String) {
    let mut sftp = Sftp::connect(HERE, server.at(218), WHO).expect("SFTP");
    let flags = OpenFlags::WRITE.with(OpenFlags::CREAT);
    let file = sftp.open("/sftp/f", flags).expect("an answer").expect("open");
    let mut refused = None;
    let (taken, _) = until_refused(|offset, piece| {
        // Within what one message takes.
        for (n, part) in piece.chunks(PIECE / 4).enumerate() {
            let code = sftp.write(&file, offset + (n * PIECE / 4) as u64, part);
            let code = code.expect("an answer");
            if code != StatusCode::OK {
                refused = Some(code);
                return Err(());
            }
        }
        Ok(())
    });
    assert_eq!(refused, Some(StatusCode::FAILURE));
    (taken, format!("{refused:?}"))
}

fn over_webdav(server: &Server) -> (usize, String) {
    let mut http = Http::connect(HERE, server.at(80), WHO).expect("HTTP");
    let length = TOO_MUCH;
    http.begin(("PUT", b"/webdav/f"), b"", length, b"").expect("begun");
    let _ended = http.send(&bytes(7, TOO_MUCH));
    let (status, head, _) = http.answer("PUT").expect("an answer");
    assert_eq!(status, 507, "{head}");
    (TAKEN, status.to_string())
}

fn over_iscsi(stage: &Stage) -> (usize, String) {
    let state = stage.bed.scratch.path().join("state");
    let path = format!("{}/iscsi/unit", stage.at);
    let properties = json!({ "backing": "file", "path": path, "volsize": "64M", "sparse": true,
        "assignednumber": 3 });
    let lun = json!({ "create": "/shares/default/luns", "name": "unit", "properties": properties });
    change(&stage.api, &json!([lun]));
    let access = Access::of(&state);
    let at: SocketAddr = stage.server.at(3260);
    let mut initiator = Initiator::connect(at, &access, 1).expect("a session");
    initiator.select(3).expect("the unit");
    let (taken, refused) = until_refused(|offset, piece| {
        let write = Cdb::Write(io(offset / BLOCK as u64, (PIECE / BLOCK) as u32, false));
        let answer = initiator.run(&write, piece, 0).expect("an answer");
        if answer.is_good() { Ok(()) } else { Err(answer.sense) }
    });
    let sense = refused.flatten().expect("sense data");
    let expected = (SenseKey::DATA_PROTECT, Asc::SPACE_ALLOCATION_FAILED);
    assert_eq!((sense.key, sense.asc), expected);
    (taken, "DATA PROTECT, SPACE ALLOCATION FAILED WRITE PROTECT".to_owned())
}

const SHARES: [&str; 7] = ["nfs3", "nfs4", "smb", "ftp", "sftp", "webdav", "iscsi"];

#[test]
fn each_protocol_refuses_what_exceeds_a_quota_with_its_own_code() {
    let stage = match Stage::new(2_048) {
        Ok(stage) => stage,
        Err(why) => skip!("pools-quota", "{why}"),
    };
    let on = |service: &str, property: &str, value: Value| {
        let node = format!("/configuration/services/{service}");
        json!({ "set": node, "property": property, "value": value })
    };
    let services = [
        on("smb", "enabled", json!(true)),
        on("http", "webdav", json!(true)),
        on("http", "plain", json!("serve")),
        on("http", "basic_over_plain", json!(true)),
    ];
    change(&stage.api, &json!(services));
    let anna = json!({ "create": "/configuration/users", "name": WHO.0,
        "properties": { "password": WHO.1, "uid": 4321, "gid": 4322 } });
    // The hash that SMB needs is kept with passwords that are set from then on.
    change(&stage.api, &json!([anna]));
    let quota = json!({ "quota": QUOTA });
    let all = SHARES.map(|share| stage.create(share, &quota));
    change(&stage.api, &json!(all));
    let server = &stage.server;
    let over = [
        over_nfs3(server),
        over_nfs4(server),
        over_smb(server),
        over_ftp(server),
        over_sftp(server),
        over_webdav(server),
        over_iscsi(&stage),
    ];
    for (share, (taken, code)) in SHARES.into_iter().zip(over) {
        println!("{share}: {code} after {} MiB", taken / MIB);
        assert!((TAKEN..=QUOTA).contains(&taken), "{share}: {taken} bytes were taken");
        // Usage, after a sync, as another program reads it.
        let (used, limit) = stage.qgroup(share);
        assert_eq!(limit, QUOTA.to_string(), "{share}");
        assert_eq!(stage.shown(share, "used"), json!(used), "{share}");
        assert_eq!(stage.shown(share, "total"), json!(QUOTA), "{share}");
        assert!(used as usize <= QUOTA, "{share}: {used}");
    }
    more_is_taken_after_a_removal_and_with_a_larger_quota(&stage);
}

fn more_is_taken_after_a_removal_and_with_a_larger_quota(stage: &Stage) {
    let mut writer = Writer::new(&stage.server, "nfs3");
    writer.client.remove(&writer.root, "f", false).expect("removed from a full share");
    stage.qgroup("nfs3");
    writer.write("again", 1, 16 * MIB);
    let mut writer = Writer::new(&stage.server, "smb");
    stage.set("smb", "quota", &json!(2 * QUOTA));
    writer.write("more", 2, 16 * MIB);
    let (used, limit) = stage.qgroup("smb");
    assert_eq!((stage.shown("smb", "used"), limit), (json!(used), (2 * QUOTA).to_string()));
    // A restored revision has the old quota again, and none at all is none.
    let unset = json!([{ "unset": "/shares/default/smb", "property": "quota" }]);
    change(&stage.api, &unset);
    assert_eq!(stage.qgroup("smb").1, "none");
    writer.write("all", 3, 80 * MIB);
}

/// Fills a share over NFS until there is no space: names of the files.
fn fill(writer: &mut Writer) -> Vec<String> {
    let all = bytes(9, PIECE);
    let mut names = Vec::new();
    loop {
        let name = format!("fill{}", names.len());
        let made =
            writer.client.create(&writer.root, &name, CreateHow::Guarded(Default::default()));
        let file = match made {
            Ok(made) => made.handle,
            Err(nfs3::Failure::Status(Nfsstat3::NOSPC)) => return names,
            Err(other) => panic!("{name}: {other:?}"),
        };
        names.push(name);
        for n in 0..64 {
            let offset = (n * PIECE) as u64;
            let done = writer.client.write(&file, offset, &all, StableHow::UNSTABLE);
            match done {
                Ok(_) => {}
                Err(nfs3::Failure::Status(Nfsstat3::NOSPC)) => return names,
                Err(other) => panic!("{other:?}"),
            }
        }
        // Otherwise what is not written back is refused later.
        match writer.client.commit(&file) {
            Ok(_) => {}
            Err(nfs3::Failure::Status(Nfsstat3::NOSPC)) => return names,
            Err(other) => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_full_pool_still_removes_files_and_destroys_snapshots() {
    let stage = match Stage::new(256) {
        Ok(stage) => stage,
        Err(why) => skip!("pools-full", "{why}"),
    };
    change(&stage.api, &json!([stage.create("full", &json!({}))]));
    let mut writer = Writer::new(&stage.server, "full");
    writer.write("kept", 1, 16 * MIB);
    let snapshot = json!({ "share": "full", "name": "before" });
    done(&stage.api, &stage.pool, "create_snapshot", &snapshot);
    let alert = json!({ "create": "/configuration/alerts", "name": "full", "properties": {
        "statistic": format!("capacity.percent[pool={}]", stage.name()), "limit": 60, "for": 1,
        "clear_for": 1 } });
    change(&stage.api, &json!([alert]));
    let names = fill(&mut writer);
    assert!(names.len() > 5, "{names:?}");
    wait_for("the alert", PATIENCE, || alerted(&stage.api).then_some(()));
    for name in &names {
        writer.client.remove(&writer.root, name, false).unwrap_or_else(|e| panic!("{name}: {e:?}"));
    }
    // Full once more, by what is kept for the snapshot too.
    writer.client.remove(&writer.root, "kept", false).expect("removed");
    run("btrfs", &["filesystem", "sync", &stage.at]);
    let names = fill(&mut writer);
    let at = format!("{}/snapshots/full@before", stage.pool);
    done(&stage.api, &at, "destroy_snapshot", &json!({}));
    for name in &names {
        writer.client.remove(&writer.root, name, false).unwrap_or_else(|e| panic!("{name}: {e:?}"));
    }
    run("btrfs", &["subvolume", "sync", &stage.at]);
    run("btrfs", &["filesystem", "sync", &stage.at]);
    writer.write("after", 2, 16 * MIB);
    wait_for("the end of the alert", PATIENCE, || (!alerted(&stage.api)).then_some(()));
}

/// Whether an alert about capacity fires.
fn alerted(api: &Api) -> bool {
    let (_, status) = api.get("/api/v1/status");
    let mut problems = status["problems"].as_array().into_iter().flatten();
    problems.any(|one| one.as_str().is_some_and(|one| one.starts_with("alert full")))
}

fn snapshots(stage: &Stage, share: &str) -> Vec<String> {
    let (_, node) = stage.api.get(&format!("/api/v1/nodes{}/snapshots", stage.pool));
    let items = node["items"].as_array().cloned().unwrap_or_default();
    let names = items.iter().filter_map(|one| one["name"].as_str().or(one.as_str()));
    let of = format!("{share}@");
    let mut names: Vec<String> =
        names.filter_map(|name| name.strip_prefix(&of)).map(str::to_owned).collect();
    names.sort();
    names
}

/// Snapshots as an earlier run of the server has made them.
fn make_old(stage: &Stage, share: &str, names: &[&str]) {
    let folder = format!("{}/.snapshots/{share}", stage.at);
    std::fs::create_dir_all(&folder).expect("a folder");
    for name in names {
        let (from, to) = (format!("{}/{share}", stage.at), format!("{folder}/{name}"));
        run("btrfs", &["subvolume", "snapshot", "-r", &from, &to]);
    }
}

#[test]
fn snapshots_by_schedule_compression_and_full_accounting() {
    let stage = match Stage::new(1_024) {
        Ok(stage) => stage,
        Err(why) => skip!("pools-schedule", "{why}"),
    };
    change(&stage.api, &json!([stage.create("p", &json!({ "compression": "zstd" }))]));
    let mut writer = Writer::new(&stage.server, "p");
    let zeros = vec![0; PIECE];
    let made = writer.client.create(&writer.root, "text", CreateHow::Guarded(Default::default()));
    let file = made.expect("created").handle;
    for n in 0..256 {
        let offset = (n * PIECE) as u64;
        writer.client.write(&file, offset, &zeros, StableHow::UNSTABLE).expect("written");
    }
    writer.client.commit(&file).expect("stable");
    let (used, _) = stage.qgroup("p");
    assert!((used as usize) < 2 * MIB, "16 MiB of zeros take {used}");
    let how = run("btrfs", &["property", "get", &format!("{}/p", stage.at), "compression"]);
    assert_eq!(how.trim(), "compression=zstd");
    stage.set("p", "compression", &json!("off"));
    let how = run("btrfs", &["property", "get", &format!("{}/p", stage.at), "compression"]);
    assert_eq!(how.trim(), "");

    // Old ones, one by hand that looks alike but for its name, and a schedule.
    let old = ["hourly-2026-01-01-10-00", "hourly-2026-01-01-11-00", "hourly-2026-01-01-12-00"];
    make_old(&stage, "p", &old);
    let by_hand = json!({ "share": "p", "name": "hourly" });
    done(&stage.api, &stage.pool, "create_snapshot", &by_hand);
    let taken = json!({ "share": "p", "name": "hourly-2026-01-01-13-00" });
    let (code, answer) = act(&stage.api, &stage.pool, "create_snapshot", &taken);
    assert!(code == 409 && answer.to_string().contains("of a schedule"), "{code} {answer}");
    stage.set("p", "snapshots_hourly", &json!(2));
    stage.set("p", "snapshots_daily", &json!(7));
    let now = wait_for("two hourly and one daily", PATIENCE, || {
        let now = snapshots(&stage, "p");
        (now.len() == 4 && now[0].starts_with("daily-")).then_some(now)
    });
    // The hour may have changed meanwhile, and with it the older of the two.
    assert_eq!(now[1], "hourly", "{now:?}");
    assert!(now[2].starts_with("hourly-2") && now[3] > now[2], "{now:?}");
    assert!(!old[..2].contains(&now[2].as_str()), "{now:?}");
    a_schedule_that_fails_is_a_problem(&stage);
    snapshots_are_accounted(&stage, &mut writer);
    space_and_scrubs_are_statistics(&stage);
}

/// Drilled down to a pool and a share, statistics have what the pool shows.
fn space_and_scrubs_are_statistics(stage: &Stage) {
    let (name, began) = (stage.name(), api::now());
    done(&stage.api, &stage.pool, "scrub", &json!({}));
    let used = value(&stage.api, &stage.pool, "used").as_u64().expect("a number");
    let scrubs = format!("pool.scrub[pool={name}]");
    wait_for("the scrub", PATIENCE, || {
        let interval = (began - 1, api::now() + 1);
        // A scrub of btrfs leaves what changes meanwhile out.
        (stage.api.count(&scrubs, interval) >= used / 2).then_some(())
    });
    let last = |stat: &str| {
        let now = api::now();
        stage.api.wait_for_second(now);
        let data = stage.api.data(stat, (now, now + 1), "");
        data["total"][0].as_f64().unwrap_or_else(|| panic!("{stat}: {data}")) as u64
    };
    let parts = wait_for("the space in use", PATIENCE, || {
        let used = value(&stage.api, &stage.pool, "used").as_u64().expect("a number");
        let parts = ["data", "snapshots", "metadata"];
        let parts = parts.map(|way| last(&format!("capacity.bytes[pool={name}][use={way}]")));
        let is_all = parts.iter().sum::<u64>() == used;
        (is_all && last(&format!("capacity.used[pool={name}]")) == used).then_some(parts)
    });
    assert!(parts[1] as usize > 36 * MIB, "{parts:?}");
    let of_share = last(&format!("capacity.shares[pool={name}][share=p]"));
    assert_eq!(json!(of_share), stage.shown("p", "used"));
    let errors = format!("pool.scrub_errors[pool={name}]");
    assert_eq!(stage.api.count(&errors, (began, api::now())), 0);
}

fn a_schedule_that_fails_is_a_problem(stage: &Stage) {
    change(&stage.api, &json!([stage.create("q", &json!({ "snapshots_weekly": 1 }))]));
    let path = format!("{}/.snapshots/q", stage.at);
    wait_for("the first", PATIENCE, || (snapshots(stage, "q").len() == 1).then_some(()));
    let [made] = snapshots(stage, "q").try_into().expect("one");
    run("btrfs", &["subvolume", "delete", &format!("{path}/{made}")]);
    // Where its folder should be there is a file: nothing can be made.
    std::fs::remove_dir(&path).expect("empty");
    std::fs::write(&path, "in its place").expect("written");
    stage.set("q", "snapshots_monthly", &json!(1));
    let name = stage.name();
    let problem = format!("/maintenance/problems/snapshot-{name}-q");
    wait_for("the problem", PATIENCE, || {
        (value(&stage.api, &problem, "severity") == "minor").then_some(())
    });
    std::fs::remove_file(&path).expect("removed");
    // It is tried again at once when its schedules change.
    stage.set("q", "snapshots_monthly", &json!(2));
    wait_for("its end", PATIENCE, || {
        (value(&stage.api, &problem, "severity") == Value::Null).then_some(())
    });
    assert_eq!(snapshots(stage, "q").len(), 2);
}

/// After the change to full accounting what only snapshots keep counts for them, and quotas stay.
fn snapshots_are_accounted(stage: &Stage, writer: &mut Writer) {
    stage.set("p", "quota", &json!(64 * MIB));
    writer.write("kept", 5, 40 * MIB);
    let snapshot = json!({ "share": "p", "name": "with" });
    done(&stage.api, &stage.pool, "create_snapshot", &snapshot);
    writer.client.remove(&writer.root, "kept", false).expect("removed");
    let (used, _) = stage.qgroup("p");
    assert!(used as usize > 40 * MIB, "{used} are used, with what only a snapshot keeps");
    assert_eq!(value(&stage.api, &stage.pool, "accounting"), "simple");
    assert_eq!(value(&stage.api, &stage.pool, "used_snapshots"), Value::Null);
    cli(&stage.bed, &[&format!("storage pools {} account_snapshots", stage.name())]);
    wait_for("full accounting", PATIENCE, || {
        (value(&stage.api, &stage.pool, "accounting") == "full").then_some(())
    });
    let (used, limit) = stage.qgroup("p");
    assert_eq!(limit, (64 * MIB).to_string());
    assert_eq!(stage.shown("p", "used"), json!(used));
    assert!((used as usize) < 2 * MIB, "{used}");
    let kept = wait_for("what snapshots keep", PATIENCE, || {
        value(&stage.api, &stage.pool, "used_snapshots").as_u64().filter(|kept| *kept > 0)
    });
    assert!((36 * MIB..=44 * MIB).contains(&(kept as usize)), "{kept}");
}
