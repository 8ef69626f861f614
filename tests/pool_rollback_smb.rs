//! A rollback of a share on a pool while a client of SMB has files open that it denies to all
//! others: the opens end with their denials, and no client reads or writes what it had open.

use e2e::pool_disk::{PoolDisk, change, done};
use e2e::server::Server;
use e2e::skip;
use e2e::smb::{Ask, Offer, Smb};
use e2e::tcp::HERE;
use serde_json::json;
use wire::nfs3::{CreateHow, Sattr3, StableHow};
use wire::smb::status::NtStatus;

use crate::pool_mount::Mounted;

const SHARE: &str = "work";
const USER: (&str, &str) = ("anna", "correct horse battery");

fn anna(server: &Server) -> Smb {
    Smb::open((HERE, server.at(445)), &Offer::default(), USER, SHARE).expect("signed in")
}

/// Everything, and nothing for others.
fn alone(path: &str) -> Ask<'_> {
    Ask { share: 0, ..Ask::open(path) }
}

fn make(mounted: &mut Mounted, name: &str) -> Vec<u8> {
    let mode = Sattr3 { mode: Some(0o666), ..Sattr3::default() };
    let root = mounted.root.clone();
    let made = mounted.client.create(&root, name, CreateHow::Guarded(mode));
    let file = made.expect("created").handle;
    mounted.client.write(&file, 0, b"old", StableHow::FILE_SYNC).expect("written");
    file
}

#[test]
fn a_rollback_ends_opens_of_smb_that_deny_others() {
    let bed = match PoolDisk::new("rollback-smb", 256) {
        Ok(bed) => bed,
        Err(why) => skip!("pool-rollback-smb", "{why}"),
    };
    let (server, api) = bed.start();
    bed.create(&api, SHARE);
    let smb = "/configuration/services/smb";
    change(&api, &json!([{ "set": smb, "property": "enabled", "value": true }]));
    let user = json!({ "create": "/configuration/users", "name": USER.0,
        "properties": { "password": USER.1, "uid": 4321, "gid": 4322 } });
    change(&api, &json!([user]));
    let mut mounted = Mounted::new(&server, SHARE);
    let held = make(&mut mounted, "held");
    bed.snapshot(&api, SHARE, "good");
    mounted.client.write(&held, 0, b"new", StableHow::FILE_SYNC).expect("written");
    make(&mut mounted, "later");
    let (mut holder, mut other) = (anna(&server), anna(&server));
    let opens = ["held", "later"]
        .map(|name| holder.create(&alone(name)).expect("a response").expect("opened"));
    let refused = other.create(&Ask::open("held")).expect("a response").err();
    assert_eq!(refused, Some(NtStatus::SHARING_VIOLATION));
    let at = format!("{}/snapshots/{SHARE}@good", bed.node());
    done(&api, &at, "rollback", &json!({ "confirm": SHARE }));
    for open in opens {
        let wrote = holder.write(open, 0, b"lost", 0).expect("a response");
        let read = holder.read(open, 0, 16).expect("a response");
        assert!(wrote != NtStatus::SUCCESS && read.is_err(), "{wrote:?} {read:?}");
    }
    // Nothing is denied any more.
    assert_eq!(mounted.read(&held).expect("read"), b"old");
    let mut next = anna(&server);
    let open = next.create(&Ask::open("held")).expect("a response").expect("opened");
    assert_eq!(next.read(open, 0, 16).expect("a response").expect("read"), b"old");
    assert_eq!(next.write(open, 0, b"now", 0).expect("a response"), NtStatus::SUCCESS);
    let gone = next.create(&Ask::open("later")).expect("a response").err();
    assert_eq!(gone, Some(NtStatus::OBJECT_NAME_NOT_FOUND));
    assert_eq!(mounted.read(&held).expect("read"), b"now");
}
