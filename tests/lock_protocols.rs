//! The table of locks over all protocols of the real server, where SMB takes part: what may be
//! removed and renamed while it is held (the table in `docs/protocols/locks.md`, cell by cell),
//! what is marked for deletion and renamed, and what is not granted in the grace period.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use e2e::ftp::Ftp;
use e2e::http::{Http, field};
use e2e::nfs4::files::Opened;
use e2e::nfs4::{self, Failure, Outcome};
use e2e::server::{Options, Server};
use e2e::sftp::Sftp;
use e2e::smb::scene::{PASSWORD, SHARE, Scene, UID, USER};
use e2e::smb::{Ask, SHARED, Smb, new_name};
use e2e::tcp::HERE;
use e2e::{api::Api, nfs3};
use serde_json::{Value, json};
use wire::nfs4::{
    ArgOp, Component4, Nfsstat4, Opaque4, OpenArgs4, OpenClaim4, Openflag4, RemoveArgs4,
    RenameArgs4, Res4, ResOp, StateOwner4, share4,
};
use wire::sftp::StatusCode;
use wire::smb::class::file_class;
use wire::smb::create::{FileId, access, options, share_access};
use wire::smb::header::Command;
use wire::smb::lock::{Element, Request as Lock, lock_flags};
use wire::smb::status::NtStatus;

const EXPORT: &str = "/export/box";
/// The row of columns in the document.
const COLUMNS: &str = "| Held | SMB disposition |";

/// Settings of HTTP with which methods that change files are done without TLS.
fn http() -> [Value; 3] {
    const NODE: &str = "/configuration/services/http";
    let set = |name: &str, value: Value| json!({"set": NODE, "property": name, "value": value});
    [set("webdav", json!(true)), set("plain", json!("serve")), set("basic_over_plain", json!(true))]
}

fn nfs4(at: SocketAddr, name: &str) -> nfs4::Client {
    let mut client = nfs4::Client::connect(at, (UID, 4322), name, 7).expect("a session");
    client.reclaim_complete().expect("RECLAIM_COMPLETE");
    client
}

/// Opens `name` in `dir` with a deny mode.
fn open_denying(client: &mut nfs4::Client, dir: &[u8], name: &str, deny: u32) -> Outcome<Opened> {
    let open = ArgOp::Open(OpenArgs4 {
        seqid: 0,
        share_access: share4::ACCESS_READ | share4::WANT_NO_DELEG,
        share_deny: deny,
        owner: StateOwner4 { clientid: client.id, owner: Opaque4(b"holder") },
        openhow: Openflag4::Nocreate(()),
        claim: OpenClaim4::Null(Component4(name.as_bytes())),
    });
    let reply = client.at(dir, &[open, ArgOp::Getfh(())])?;
    let stateid = match reply.results()?.get(2) {
        Some(ResOp::Open(Res4::Ok(ok))) => ok.stateid,
        other => return Err(Failure::Broken(format!("{other:?}"))),
    };
    Ok(Opened { handle: nfs4::handle(&reply)?, stateid })
}

/// One of each client.
struct Clients {
    smb: Smb,
    other_smb: Smb,
    nfs3: (nfs3::Client, Vec<u8>),
    nfs4: nfs4::Client,
    other_nfs4: nfs4::Client,
    root: Vec<u8>,
    ftp: Ftp,
    sftp: Sftp,
    http: Http,
}

impl Clients {
    fn new(scene: &Scene) -> Self {
        let server = &scene.server;
        let mut nfs3 = nfs3::Client::connect(server.nfs(), UID, 4322).expect("NFSv3");
        let root3 = nfs3.mnt(EXPORT).expect("a mount");
        let mut nfs4 = self::nfs4(server.nfs(), "one");
        let root = nfs4.walk(EXPORT).expect("the share");
        let mut ftp = Ftp::connect(HERE, server.at(21)).expect("FTP");
        assert_eq!(ftp.sign_in(USER, PASSWORD).expect("a reply"), 230);
        let who = (USER, PASSWORD);
        Self {
            smb: scene.anna().expect("SMB"),
            other_smb: scene.anna().expect("SMB"),
            nfs3: (nfs3, root3),
            other_nfs4: self::nfs4(server.nfs(), "two"),
            nfs4,
            root,
            ftp,
            sftp: Sftp::connect(HERE, server.at(218), who).expect("SFTP"),
            http: Http::connect(HERE, server.at(80), who).expect("HTTP"),
        }
    }

    fn ask(&mut self, method: &str, name: &str, fields: &str, body: &str) -> (u16, String) {
        let target = format!("/{SHARE}/{name}");
        let asked = (method, target.as_bytes());
        let (status, head, _) =
            self.http.ask(asked, fields.as_bytes(), body.as_bytes()).expect("a response");
        (status, head)
    }

    /// Whether a method changes `f`; if not, it must be locked.
    fn changes(&mut self, method: &str, fields: &str) -> bool {
        match self.ask(method, "f", fields, "") {
            (200..300, _) => true,
            (423, _) => false,
            other => panic!("{method}: {other:?}"),
        }
    }
}

/// What a holder has, to be given back.
enum HeldLock {
    Nfs4(Opened),
    Smb(FileId),
    Dav(String),
}

/// Takes the lock that the first column of a row names, on the file `f`.
fn take(clients: &mut Clients, row: &str) -> HeldLock {
    let deny = |clients: &mut Clients, deny| {
        let root = clients.root.clone();
        HeldLock::Nfs4(open_denying(&mut clients.nfs4, &root, "f", deny).expect("an open"))
    };
    let smb = |clients: &mut Clients, share| {
        let ask = Ask { access: access::READ_DATA, share, ..Ask::open("f") };
        HeldLock::Smb(clients.other_smb.create(&ask).expect("an answer").expect("an open"))
    };
    match row {
        "NFSv4 open, DENY_NONE" => deny(clients, share4::DENY_NONE),
        "NFSv4 open, DENY_READ" => deny(clients, share4::DENY_READ),
        "NFSv4 open, DENY_WRITE" => deny(clients, share4::DENY_WRITE),
        "NFSv4 open, DENY_BOTH" => deny(clients, share4::DENY_BOTH),
        "SMB open with FILE_SHARE_DELETE" => smb(clients, SHARED),
        "SMB open without FILE_SHARE_DELETE" => smb(clients, SHARED & !share_access::DELETE),
        "WebDAV lock" => {
            let body = "<D:lockinfo xmlns:D='DAV:'><D:lockscope><D:exclusive/></D:lockscope>\
                        <D:locktype><D:write/></D:locktype></D:lockinfo>";
            let (status, head) = clients.ask("LOCK", "f", "depth: 0\r\n", body);
            assert_eq!(status, 200, "LOCK: {head}");
            HeldLock::Dav(field(&head, "lock-token").expect("a token").to_owned())
        }
        other => panic!("no test for the row {other}"),
    }
}

fn give_back(clients: &mut Clients, held: HeldLock) {
    match held {
        HeldLock::Nfs4(open) => clients.nfs4.close(&open).expect("CLOSE"),
        HeldLock::Smb(file) => {
            clients.other_smb.close(file).expect("CLOSE");
        }
        HeldLock::Dav(token) => {
            // It has ended with a file that was removed.
            clients.ask("UNLOCK", "f", &format!("lock-token: {token}\r\n"), "");
        }
    }
}

/// SMB's three ways; whether the call that matters was done. What was opened is closed.
fn over_smb(smb: &mut Smb, column: &str) -> bool {
    let ask = Ask { access: access::DELETE | access::READ_ATTRIBUTES, ..Ask::open("f") };
    let ask = match column {
        "SMB delete on close" => ask.with(options::DELETE_ON_CLOSE),
        _ => ask,
    };
    let file = match smb.create(&ask).expect("an answer") {
        Ok(file) => file,
        Err(refused) => {
            assert_eq!(refused, NtStatus::SHARING_VIOLATION, "{column}");
            return false;
        }
    };
    let status = match column {
        "SMB disposition" => smb.set(file, file_class::DISPOSITION, &[1]),
        "SMB rename" => smb.set(file, file_class::RENAME, &new_name("g", true)),
        _ => Ok(NtStatus::SUCCESS),
    };
    let status = status.expect("an answer");
    assert!(matches!(status, NtStatus::SUCCESS | NtStatus::SHARING_VIOLATION), "{status:?}");
    smb.close(file).expect("CLOSE");
    status == NtStatus::SUCCESS
}

fn remove4(client: &mut nfs4::Client, root: &[u8], name: &str) -> Outcome<()> {
    let args = RemoveArgs4 { target: Component4(name.as_bytes()) };
    client.at(root, &[ArgOp::Remove(args)]).map(drop)
}

fn rename4(client: &mut nfs4::Client, root: &[u8], (from, to): (&str, &str)) -> Outcome<()> {
    let (oldname, newname) = (Component4(from.as_bytes()), Component4(to.as_bytes()));
    let args = RenameArgs4 { oldname, newname };
    client.at(root, &[ArgOp::Savefh(()), ArgOp::Rename(args)]).map(drop)
}

/// Does what a column names; whether it was done.
fn act(clients: &mut Clients, column: &str) -> bool {
    let done = |outcome: Outcome<()>| match outcome {
        Ok(()) => true,
        Err(Failure::Status(Nfsstat4::FILE_OPEN)) => false,
        other => panic!("{column}: {other:?}"),
    };
    let root = clients.root.clone();
    let (v3, root3) = &mut clients.nfs3;
    match column {
        "NFSv3 REMOVE" => v3.remove(root3, "f", false).is_ok(),
        "NFSv3 RENAME" => v3.rename((root3, "f"), (root3, "g")).is_ok(),
        "NFSv4 REMOVE" => done(remove4(&mut clients.other_nfs4, &root, "f")),
        "NFSv4 RENAME" => done(rename4(&mut clients.other_nfs4, &root, ("f", "g"))),
        "FTP DELE" => clients.ftp.code("DELE /box/f") == 250,
        "FTP RNTO" => {
            clients.ftp.code("RNFR /box/f") == 350 && clients.ftp.code("RNTO /box/g") == 250
        }
        "SFTP remove" => clients.sftp.remove("/box/f").expect("a reply") == StatusCode::OK,
        "SFTP rename" => {
            clients.sftp.posix_rename("/box/f", "/box/g").expect("a reply") == StatusCode::OK
        }
        "HTTP DELETE" => clients.changes("DELETE", ""),
        "HTTP MOVE" => clients.changes("MOVE", &format!("destination: /{SHARE}/g\r\n")),
        _ => over_smb(&mut clients.smb, column),
    }
}

fn plant(share: &Path) {
    for entry in fs::read_dir(share).expect("a directory") {
        fs::remove_file(entry.expect("an entry").path()).expect("removed");
    }
    fs::write(share.join("f"), "held").expect("a file");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    fs::set_permissions(share.join("f"), mode).expect("a mode");
}

/// Columns, and rows of cells, of the table in the document.
fn table() -> (Vec<String>, Vec<Vec<String>>) {
    let text = include_str!("../docs/protocols/locks.md");
    let lines = text.lines().skip_while(|line| !line.starts_with(COLUMNS));
    let lines = lines.take_while(|line| line.starts_with('|'));
    let cells = |line: &str| -> Vec<String> {
        let line = line.trim_matches('|');
        line.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let mut lines = lines.map(cells);
    let columns = lines.next().expect("the table");
    (columns, lines.skip(1).collect())
}

#[test]
fn what_is_held_is_removed_as_documented() {
    let scene = Scene::new("lock-table", &http());
    let mut clients = Clients::new(&scene);
    let (columns, rows) = table();
    assert!(columns.len() > 12 && rows.len() > 6, "{columns:?}: {rows:?}");
    for row in &rows {
        for (column, cell) in columns.iter().zip(row).skip(1) {
            let tried = format!("{}: {column}", row[0]);
            plant(&scene.share);
            let held = take(&mut clients, &row[0]);
            if column == "SFTP rename" && cell == "no" {
                // Also the request that takes no name which is in use.
                let plain = clients.sftp.rename("/box/f", "/box/g").expect("a reply");
                assert_ne!(plain, StatusCode::OK, "{tried}");
                assert!(!scene.share.join("g").exists(), "{tried}");
            }
            assert_eq!(act(&mut clients, column), cell == "yes", "{tried}");
            give_back(&mut clients, held);
            assert_eq!(scene.share.join("f").exists(), cell == "no", "{tried}");
        }
    }
}

/// Marks the file `f` for deletion; gives the open that does.
fn mark(smb: &mut Smb) -> FileId {
    let file = smb.create(&Ask::open("f")).expect("an answer").expect("an open");
    let marked = smb.set(file, file_class::DISPOSITION, &[1]).expect("an answer");
    assert_eq!(marked, NtStatus::SUCCESS);
    file
}

#[test]
fn what_is_marked_is_removed_under_any_name() {
    let scene = Scene::new("lock-marked", &http());
    let mut clients = Clients::new(&scene);
    for column in ["NFSv3 RENAME", "NFSv4 RENAME", "FTP RNTO", "SFTP rename", "HTTP MOVE"] {
        plant(&scene.share);
        let file = mark(&mut clients.smb);
        assert!(act(&mut clients, column), "{column}");
        assert!(scene.share.join("g").exists(), "{column}");
        clients.smb.close(file).expect("CLOSE");
        let left: Vec<_> = fs::read_dir(&scene.share).expect("a directory").collect();
        assert!(left.is_empty(), "{column}: {left:?}");
        // Also one that is marked after it was renamed.
        plant(&scene.share);
        let file = clients.smb.create(&Ask::open("f")).expect("an answer").expect("an open");
        assert!(act(&mut clients, column), "{column}");
        clients.smb.set(file, file_class::DISPOSITION, &[1]).expect("an answer");
        clients.smb.close(file).expect("CLOSE");
        assert!(!scene.share.join("g").exists(), "{column}");
    }
    plant(&scene.share);
    let file = mark(&mut clients.smb);
    let root = clients.root.clone();
    let denied = open_denying(&mut clients.nfs4, &root, "f", share4::DENY_WRITE).err();
    assert_eq!(denied, Some(Failure::Status(Nfsstat4::SHARE_DENIED)), "it is to be removed");
    open_denying(&mut clients.nfs4, &root, "f", share4::DENY_NONE).expect("keeps no name");
    clients.smb.close(file).expect("CLOSE");
    assert!(!scene.share.join("f").exists());
}

/// Sends a request, and waits until it is answered that it takes longer.
fn pends(smb: &mut Smb, command: Command, body: &dyn Fn(&mut Vec<u8>)) -> u64 {
    let request = smb.request(command, 0, body);
    smb.send(&[request]).expect("sent");
    let answer = smb.receive().expect("an answer").pop().expect("one");
    assert_eq!(answer.status(), NtStatus::PENDING, "{command:?}");
    answer.header.id
}

fn answered(smb: &mut Smb) -> NtStatus {
    smb.receive().expect("an answer").pop().expect("one").status()
}

#[test]
fn nothing_is_taken_that_a_client_reclaims() {
    let mut scene = Scene::new("lock-grace", &[]);
    fs::write(scene.share.join("f"), "first").expect("a file");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    fs::set_permissions(scene.share.join("f"), mode).expect("a mode");
    let mut holder = nfs4(scene.server.nfs(), "holder");
    let root = holder.walk(EXPORT).expect("the share");
    let file = holder.open(&root, "f", "owner", false).expect("an open");
    holder.lock(&file, "locker", (0, 100), false).expect("LOCK");

    scene.server.kill();
    let dir = scene.share.parent().expect("a directory").to_path_buf();
    scene.server = Server::start(&Options::new(&dir, &scene.state));
    scene.api = Api::new(&scene.state);

    let [mut all, mut ranges, mut names, mut cancelled] =
        [(); 4].map(|()| scene.anna().expect("SMB"));
    let reads = Ask { access: access::READ_DATA, ..Ask::open("f") };
    let reader = ranges.create(&reads).expect("an answer").expect("reading is permitted");
    assert_eq!(ranges.read(reader, 0, 5).expect("an answer").expect("READ"), b"first");
    let new = names.create(&Ask::make("new")).expect("an answer").expect("a new file");
    assert_eq!(names.write(new, 0, b"data", 0).expect("an answer"), NtStatus::SUCCESS);
    names.close(new).expect("CLOSE");

    let denies = Ask { share: 0, ..Ask::open("f") };
    pends(&mut all, Command::CREATE, &|out| denies.put(out));
    let flags = lock_flags::EXCLUSIVE | lock_flags::FAIL_IMMEDIATELY;
    let locks = vec![Element { offset: 200, length: 1, flags, reserved: 0 }];
    let lock = Lock { lock_sequence: 0, file: reader, locks };
    pends(&mut ranges, Command::LOCK, &|out| lock.put(out));
    let removes = Ask { access: access::DELETE, ..Ask::open("f") };
    let removes = removes.with(options::DELETE_ON_CLOSE);
    pends(&mut names, Command::CREATE, &|out| removes.put(out));
    pends(&mut cancelled, Command::CREATE, &|out| denies.put(out));
    drop(cancelled);

    let mut holder =
        nfs4::Client::connect(scene.server.nfs(), (UID, 4322), "holder", 7).expect("a session");
    let file = holder.reclaim_open(&file.handle, "owner").expect("what was open");
    holder.lock(&file, "locker", (0, 100), true).expect("what was locked");
    holder.write(&file, 0, b"other").expect("WRITE");
    holder.reclaim_complete().expect("RECLAIM_COMPLETE");

    assert_eq!(answered(&mut all), NtStatus::SHARING_VIOLATION, "the client has it open");
    assert_eq!(answered(&mut ranges), NtStatus::SUCCESS, "it is not locked");
    assert_eq!(answered(&mut names), NtStatus::SUCCESS, "it keeps no name");
    assert_eq!(fs::read(scene.share.join("f")).expect("a file"), b"other");
}
