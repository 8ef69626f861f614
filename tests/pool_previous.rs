//! Previous versions over SMB of a share on a pool, with Samba's smbclient and with requests of our
//! own.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::SystemTime;

use e2e::api::wait_for;
use e2e::nfs3::Client;
use e2e::pool_disk::{PoolDisk, change};
use e2e::server::Server;
use e2e::smb::{Ask, Offer, Smb};
use e2e::{has, patience, process, skip};
use serde_json::json;
use wire::nfs3::{CreateHow, Sattr3, StableHow};
use wire::smb::create::access;
use wire::smb::ioctl::code;
use wire::smb::snapshot;
use wire::smb::status::NtStatus;

const SHARE: &str = "work";
const USER: &str = "anna";
const PASSWORD: &str = "correct horse battery";
/// The standard port of SMB.
const PORT: u16 = 445;

fn seconds() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.expect("after 1970").as_secs()
}

/// Waits until the clock shows another second: names of times have no more.
fn next_second() {
    let now = seconds();
    wait_for("another second", patience(5), || (seconds() > now).then_some(()));
}

fn smbclient(server: &Server, folder: &Path, commands: &str) -> Output {
    let mut command = Command::new("smbclient");
    let user = format!("{USER}%{PASSWORD}");
    let port = server.at(PORT).port().to_string();
    command.args([&format!("//127.0.0.1/{SHARE}"), "-p", &port, "-U", &user, "-c", commands]);
    process::run(command.current_dir(folder), patience(60))
}

fn text_of(output: &Output) -> String {
    [&output.stdout[..], &output.stderr[..]].map(String::from_utf8_lossy).concat()
}

#[test]
fn clients_of_smb_find_previous_versions() {
    if !has("smbclient") {
        skip!("pool-previous-versions", "smbclient is not installed");
    }
    let bed = match PoolDisk::new("previous", 256) {
        Ok(bed) => bed,
        Err(why) => skip!("pool-previous-versions", "{why}"),
    };
    let (server, api) = bed.start();
    bed.create(&api, SHARE);
    let smb = "/configuration/services/smb";
    change(&api, &json!([{ "set": smb, "property": "enabled", "value": true }]));
    change(
        &api,
        &json!([{ "create": "/configuration/users", "name": USER,
            "properties": { "password": PASSWORD, "uid": 4321, "gid": 4322 } }]),
    );
    let mut client = Client::connect(server.nfs(), 0, 0).expect("a connection");
    let root = client.mnt(&format!("/export/{SHARE}")).expect("mounted").to_vec();
    let mode = Sattr3 { mode: Some(0o666), ..Sattr3::default() };
    let file = client.create(&root, "file", CreateHow::Guarded(mode)).expect("created").handle;
    for (name, content) in [("first", "one"), ("second", "three")] {
        client.write(&file, 0, content.as_bytes(), StableHow::FILE_SYNC).expect("written");
        bed.snapshot(&api, SHARE, name);
        next_second();
    }
    client.write(&file, 0, b"the present", StableHow::FILE_SYNC).expect("written");
    let (tokens, folder) = (listed(&server), bed.scratch.path());
    assert_eq!(tokens.len(), 2, "{tokens:?}");
    // Newest first.
    assert!(tokens[0] > tokens[1], "{tokens:?}");
    for (token, content) in tokens.iter().zip(["three", "one"]) {
        let commands = format!("get {token}\\file got; cd {token}; ls; get file other; pwd");
        let text = text_of(&smbclient(&server, folder, &commands));
        for copy in ["got", "other"] {
            let read = fs::read_to_string(folder.join(copy));
            assert_eq!(read.unwrap_or_default(), content, "{text}");
            let _gone = fs::remove_file(folder.join(copy));
        }
        let put =
            text_of(&smbclient(&server, folder, &format!("cd {token}; put disk0 file; rm file")));
        assert!(!put.is_empty());
        of_token(&server, token, content);
    }
    let live = client.read_all(&file).expect("read");
    assert_eq!(live, b"the present");
}

fn anna(server: &Server) -> Smb {
    let here = "127.0.0.1".parse().expect("an address");
    let to = (here, server.at(PORT));
    Smb::open(to, &Offer::default(), (USER, PASSWORD), SHARE).expect("signed in")
}

/// FSCTL_SRV_ENUMERATE_SNAPSHOTS as clients do it: how much room, then all.
fn listed(server: &Server) -> Vec<String> {
    let mut smb = anna(server);
    let ask = Ask { access: access::READ_ATTRIBUTES, ..Ask::open("file") };
    let file = smb.create(&ask).expect("a response").expect("opened");
    let mut output = |max: u32| {
        let answer = smb.control(code::ENUMERATE_SNAPSHOTS, file, &[], max).expect("a response");
        if answer.status() != NtStatus::SUCCESS {
            return Err(answer.status());
        }
        // The output begins after the body of the response.
        Ok(answer.message[64 + 48..].to_vec())
    };
    assert_eq!(output(15).err(), Some(NtStatus::INVALID_PARAMETER));
    let short = output(16).expect("a short list");
    let number = |at: usize| u32::from_le_bytes(short[at..at + 4].try_into().expect("four bytes"));
    assert_eq!((number(0), number(4), short.len()), (2, 0, 16));
    let all = output(12 + number(8)).expect("a list");
    let units = all[12..].chunks(2).map(|unit| char::from(unit[0])).collect::<String>();
    units.split('\0').filter(|token| !token.is_empty()).map(str::to_owned).collect()
}

/// For reading.
fn look(path: &str) -> Ask<'_> {
    Ask { access: access::READ_DATA | access::READ_ATTRIBUTES, ..Ask::open(path) }
}

/// Paths with a token in any place; one only, of the time of a snapshot, and nothing is written.
fn of_token(server: &Server, token: &str, content: &str) {
    let mut smb = anna(server);
    let path = format!("{token}\\file");
    let file = smb.create(&look(&path)).expect("a response").expect("opened");
    let read = smb.read(file, 0, 64).expect("a response").expect("read");
    assert_eq!(read, content.as_bytes());
    let mut refused = |ask: &Ask<'_>| smb.create(ask).expect("a response").err();
    let twice = format!("{token}\\{token}\\file");
    assert_eq!(refused(&look(&twice)), Some(NtStatus::OBJECT_NAME_INVALID));
    let other = snapshot::token(0).expect("a token");
    let nowhere = format!("{other}\\file");
    assert_eq!(refused(&look(&nowhere)), Some(NtStatus::OBJECT_NAME_NOT_FOUND));
    let new = format!("{token}\\new");
    assert!(refused(&Ask::make(&new)).is_some());
    assert!(refused(&Ask::open(&path)).is_some(), "opened for changes");
    assert_eq!(refused(&look(&format!("{token}\\..\\file"))), Some(NtStatus::OBJECT_NAME_INVALID));
}
