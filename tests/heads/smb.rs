//! SMB over a takeover: a durable handle is continued or refused in time, and a new connection
//! works at once.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;

use e2e::api::Api;
use e2e::smb::caching::{self, RWH};
use e2e::smb::scene::{NODE, PASSWORD, SMB, UID, USER};
use e2e::smb::{Ask, Offer, Smb};
use e2e::{is_root, process, skip};
use serde_json::json;
use wire::smb::create::{Disposition, FileId};
use wire::smb::lease::LeaseKey;
use wire::smb::status::NtStatus;

use super::cluster::{ACCOUNTS, Cluster, LEFT, RIGHT};

const KEY: LeaseKey = [0x11; 16];
const GUID: [u8; 16] = [0x22; 16];
const DATA: &[u8] = b"written before the takeover";

/// Enables SMB, and makes the user; passwords that SMB can use are those set after that.
pub fn set_up(api: &Api) {
    let enable = json!({ "set": NODE, "property": "enabled", "value": true });
    let user = json!({ "create": "/configuration/users", "name": USER,
        "properties": { "password": PASSWORD, "uid": UID, "gid": 4322 } });
    for change in [enable, user] {
        let (code, done) = api.post("/api/v1/changes", &json!({ "changes": [change] }));
        assert_eq!(code, 200, "{done}");
    }
}

/// The user at the share of the resource, from the host of the clients.
fn client(cluster: &Cluster) -> Smb {
    let at = SocketAddr::new(ACCOUNTS.address().ip(), SMB);
    let from: IpAddr = "10.77.0.1".parse().expect("an address");
    let open = move || Smb::open((from, at), &Offer::default(), (USER, PASSWORD), ACCOUNTS.name);
    cluster.switch.spawn(open).join().expect("a client").expect("a session")
}

/// The file with a lease and a durable handle, which is reclaimed over each takeover.
fn ask() -> Ask<'static> {
    Ask { disposition: Disposition::OpenIf, ..Ask::open("f") }
}

/// A new connection works, and the handle of the former is continued or refused.
fn continues(cluster: &Cluster, what: &str, file: FileId) {
    let mut smb = client(cluster);
    let claim = [caching::reconnect(file, GUID), caching::lease(KEY, RWH)];
    let answer = smb.create_with(&ask(), &claim).expect("an answer");
    println!("{what}: the durable handle is answered with {:?}", answer.status());
    assert!(
        [NtStatus::SUCCESS, NtStatus::OBJECT_NAME_NOT_FOUND].contains(&answer.status()),
        "{what}: {:?}",
        answer.status()
    );
    let file = match caching::opened(&answer) {
        Ok((file, _)) => file,
        Err(_) => {
            let answer = smb.create_with(&Ask::open("f"), &[]).expect("an answer");
            caching::opened(&answer).unwrap_or_else(|status| panic!("{what}: {status:?}")).0
        }
    };
    let read = smb.read(file, 0, DATA.len() as u32).expect("an answer");
    assert_eq!(read.expect("data"), DATA, "{what}");
}

#[test]
fn durable_handles_are_continued_or_refused_after_a_takeover() {
    if !is_root() {
        skip!("heads-smb", "network namespaces and loop devices need root");
    }
    let mut cluster = match Cluster::start(&[ACCOUNTS]) {
        Ok(cluster) => cluster,
        Err(why) => skip!("heads-smb", "{why}"),
    };
    set_up(&cluster.api(ACCOUNTS));
    let directory = cluster.directory(ACCOUNTS);
    fs::set_permissions(directory, fs::Permissions::from_mode(0o777)).expect("a mode");

    let durable = |cluster: &Cluster| {
        let mut smb = client(cluster);
        let named = [caching::lease(KEY, RWH), caching::durable(GUID)];
        let answer = smb.create_with(&ask(), &named).expect("an answer");
        let (file, _) = caching::opened(&answer).expect("the file");
        let written = smb.write(file, 0, DATA, 0).expect("an answer");
        assert_eq!(written, NtStatus::SUCCESS);
        (smb, file)
    };
    let (former, file) = durable(&cluster);
    cluster.command(RIGHT, &["takeover", ACCOUNTS.name]);
    cluster.wait_for_owner(ACCOUNTS, RIGHT);
    continues(&cluster, "planned", file);
    drop(former);

    let (former, file) = durable(&cluster);
    let server = cluster.process(ACCOUNTS, RIGHT);
    cluster.kill(RIGHT);
    process::signal(server, libc::SIGKILL);
    cluster.wait_for_owner(ACCOUNTS, LEFT);
    continues(&cluster, "kill -9", file);
    drop(former);

    cluster.start_head(RIGHT);
    cluster.wait_for_member(LEFT, RIGHT);
    cluster.end();
}
