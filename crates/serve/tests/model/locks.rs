//! `docs/protocols/locks.md`, row by row: what a client holds, and what each of the others may do
//! then, by the same path and by another one.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use base::clock::Deadline;
use base::limits::FILE_CLOCK_STEP;
use vfs::locks::{
    Break, Caching, ClientKey, FileKey, Kind, LockTable, Owner, Protocol, Range, Recall,
    SHARE_READ, SHARE_WRITE, Share,
};

use crate::op::{By, Op, SharePath, What};
use crate::world::{SIGNED_IN, World};

/// What a client holds on the file `f`, or on the directory around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holder {
    /// An open of NFSv4 with this deny mode.
    Open(u8),
    /// A SHARE of NLM with this deny mode.
    NlmShare(u8),
    /// A byte-range lock of the whole file, exclusive.
    Bytes(Protocol),
    /// A delegation, which is given back when it is recalled.
    Delegation(Caching),
    /// A WebDAV lock of the file.
    Dav { exclusive: bool, depth: &'static str },
    /// An exclusive one of the directory.
    DavDir { depth: &'static str },
}

/// A row of the table: by which protocols each is done; D WebDAV, F FTP, S SFTP, 3 and 4 NFS.
struct Row {
    holder: Holder,
    /// The file is read; asked over HTTP only.
    reads: bool,
    /// It is uploaded again; over NFSv3 written into.
    puts: &'static str,
    /// Its name is removed, changed, or given to another file.
    names: &'static str,
}

const ALL: &str = "DFS34";
const PUTS: &str = "DFS3";
const DENY_READ: u8 = SHARE_READ;
const DENY_WRITE: u8 = SHARE_WRITE;
const DENY_BOTH: u8 = SHARE_READ | SHARE_WRITE;

const fn row(holder: Holder, reads: bool, puts: &'static str, names: &'static str) -> Row {
    Row { holder, reads, puts, names }
}

const ROWS: &[Row] = &[
    row(Holder::Open(0), true, PUTS, ALL),
    row(Holder::Open(DENY_READ), false, "3", ALL),
    row(Holder::Open(DENY_WRITE), true, "3", ""),
    row(Holder::Open(DENY_BOTH), false, "3", ""),
    row(Holder::NlmShare(DENY_WRITE), true, "3", ALL),
    row(Holder::Bytes(Protocol::Nfs4), true, PUTS, ALL),
    row(Holder::Bytes(Protocol::Nlm), true, PUTS, ALL),
    row(Holder::Delegation(Caching::READ), true, PUTS, ALL),
    row(Holder::Delegation(Caching::READ_WRITE), true, PUTS, ALL),
    row(Holder::Dav { exclusive: true, depth: "0" }, true, "3", ""),
    row(Holder::Dav { exclusive: true, depth: "infinity" }, true, "3", ""),
    row(Holder::Dav { exclusive: false, depth: "0" }, true, "3", ""),
    row(Holder::DavDir { depth: "0" }, true, PUTS, "FS34"),
    row(Holder::DavDir { depth: "infinity" }, true, "FS3", "FS34"),
];

const BY: [(By, char); 5] =
    [(By::Dav, 'D'), (By::Ftp, 'F'), (By::Sftp, 'S'), (By::Nfs3, '3'), (By::Nfs4, '4')];

/// What is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Try {
    Put,
    Remove,
    Rename,
    Replace,
}

/// Gives a delegation back as soon as it is called.
struct GivesBack(Arc<LockTable>);

impl Recall for GivesBack {
    fn recall(&self, key: FileKey, owner: &Owner, _: Break) {
        self.0.end_lease(key, owner);
    }
}

/// The file, and the one that is to take its place, new.
fn plant(world: &World) {
    let dir = world.top.join("part");
    for entry in fs::read_dir(&dir).expect("a directory") {
        let at = entry.expect("an entry").path();
        if at.is_file() {
            fs::remove_file(at).expect("removed");
        }
    }
    fs::write(dir.join("f"), "held").expect("a file");
    fs::write(dir.join("g"), "other").expect("a file");
}

fn owner(protocol: Protocol) -> Owner {
    Owner::new(ClientKey { protocol, id: 77 }, b"holder").expect("short")
}

fn lock(world: &mut World, path: &str, exclusive: bool, depth: &str) -> String {
    let scope = if exclusive { "exclusive" } else { "shared" };
    let body = format!(
        "<D:lockinfo xmlns:D='DAV:'><D:lockscope><D:{scope}/></D:lockscope>\
         <D:locktype><D:write/></D:locktype></D:lockinfo>"
    );
    let depth = format!("Depth: {depth}");
    let reply = world.web.ask(&format!("LOCK {path}"), &[SIGNED_IN, &depth], body.as_bytes());
    assert_eq!(reply.status, 200, "LOCK {path}");
    reply.header("lock-token").to_owned()
}

/// How a holder lets go.
type Release = Box<dyn FnOnce(&mut World)>;

fn unlock(path: &'static str, token: String) -> Release {
    Box::new(move |world| {
        let fields = [SIGNED_IN, &*format!("Lock-Token: {token}")];
        let status = world.web.ask(&format!("UNLOCK {path}"), &fields, b"").status;
        assert_eq!(status, 204, "UNLOCK {path}");
    })
}

/// Has the holder take what it holds, on `/all/part/f`.
fn take(world: &mut World, holder: Holder) -> Release {
    let (file, attr) = world.attr_of(&["part", "f"]);
    let key = FileKey::from(&attr);
    let protocol = match holder {
        Holder::Open(deny) | Holder::NlmShare(deny) => {
            let nlm = matches!(holder, Holder::NlmShare(_));
            let protocol = if nlm { Protocol::Nlm } else { Protocol::Nfs4 };
            let share = Share { access: SHARE_READ, deny };
            world.locks.open(key, &owner(protocol), share).expect("free");
            protocol
        }
        Holder::Bytes(protocol) => {
            let all = Range::to_end(0);
            world.locks.lock(key, &owner(protocol), all, Kind::Write).expect("free");
            protocol
        }
        Holder::Delegation(kind) => {
            let notice = Arc::new(GivesBack(Arc::clone(&world.locks)));
            let (id, who) = (world.change_slot(&file), owner(Protocol::Nfs4));
            world.locks.grant(id, &attr, &who, kind, notice).expect("nobody writes");
            Protocol::Nfs4
        }
        Holder::Dav { exclusive, depth } => {
            let token = lock(world, "/all/part/f", exclusive, depth);
            return unlock("/all/part/f", token);
        }
        Holder::DavDir { depth } => {
            let token = lock(world, "/all/part", true, depth);
            return unlock("/all/part", token);
        }
    };
    Box::new(move |world| world.locks.release_client(owner(protocol).client))
}

fn op(by: By, what: Try, share: &'static str) -> Op {
    let place = |name: &str| {
        let dirs = if share == "all" { vec!["part".to_owned()] } else { Vec::new() };
        SharePath { share, path: dirs.into_iter().chain([name.to_owned()]).collect() }
    };
    let rename = |from, to| What::Rename { from: place(from), to: place(to), replaces: true };
    let what = match what {
        Try::Put => What::Put(place("f"), "new".to_owned()),
        Try::Remove => What::Remove(place("f")),
        Try::Rename => rename("f", "h"),
        Try::Replace => rename("g", "f"),
    };
    Op { by, what }
}

/// What is at `f` if the attempt was done.
fn after(what: Try) -> Option<&'static str> {
    match what {
        Try::Put => Some("new"),
        Try::Remove | Try::Rename => None,
        Try::Replace => Some("other"),
    }
}

/// One cell of the table.
fn attempt(world: &mut World, row: &Row, what: Try, (by, letter): (By, char), share: &'static str) {
    let said = format!("{:?}: {what:?} by {by:?} through {share}", row.holder);
    plant(world);
    let release = take(world, row.holder);
    let op = op(by, what, share);
    let mut done = world.perform(&op);
    if matches!(row.holder, Holder::Delegation(_)) && !done {
        // Clients of NFS come again after a recall.
        done = world.perform(&op);
    }
    let may = if what == Try::Put { row.puts } else { row.names };
    assert_eq!(done, may.contains(letter), "{said}");
    let left = fs::read_to_string(world.top.join("part/f")).ok();
    let expected = if done { after(what) } else { Some("held") };
    assert_eq!(left.as_deref(), expected, "{said}");
    release(world);
}

#[test]
fn locks_bind_other_protocols_as_documented() {
    let mut world = World::new();
    for row in ROWS {
        for share in ["all", "part"] {
            for what in [Try::Put, Try::Remove, Try::Rename, Try::Replace] {
                // NFSv4 writes with an open of its own: see the tests of its state.
                let by = BY.into_iter().filter(|(by, _)| what != Try::Put || *by != By::Nfs4);
                by.for_each(|by| attempt(&mut world, row, what, by, share));
            }
            plant(&world);
            let release = take(&mut world, row.holder);
            let path = if share == "all" { "/all/part/f" } else { "/part/f" };
            let status = world.web.ask(&format!("GET {path}"), &[SIGNED_IN], b"").status;
            assert_eq!(status, if row.reads { 200 } else { 423 }, "{:?}: GET {path}", row.holder);
            release(&mut world);
        }
    }
    assert!(world.locks.list(None, 1).is_empty(), "all was released");
}

/// Waits until files that are made from now on are younger than those that are there.
fn age(world: &World) {
    let born = |name: &str| {
        let meta = fs::metadata(world.top.join("part").join(name)).expect("a file");
        meta.created().expect("a time of birth")
    };
    let until = Deadline::after(Duration::from_secs(60));
    let step = FILE_CLOCK_STEP * 2;
    loop {
        let probe = world.top.join("part/age");
        fs::write(&probe, "").expect("a file");
        let aged = born("age") > born("f") + step && born("age") > born("g") + step;
        fs::remove_file(&probe).expect("removed");
        if aged {
            return;
        }
        assert!(!until.passed(), "the clock of the file system stands still");
        std::thread::yield_now();
    }
}

/// What clients of NFS may reclaim is neither replaced nor removed, by any protocol; what was made
/// since is, and everything can be read.
#[test]
fn in_grace_names_stay_as_documented() {
    for holder in [Protocol::Nfs4, Protocol::Nlm] {
        let mut world = World::new();
        for share in ["all", "part"] {
            for what in [Try::Put, Try::Remove, Try::Rename, Try::Replace] {
                for (by, _) in BY.into_iter().filter(|(by, _)| what != Try::Put || *by != By::Nfs4)
                {
                    let said = format!("{holder:?}: {what:?} by {by:?} through {share}");
                    plant(&world);
                    age(&world);
                    world.locks.set_grace_patience(Duration::ZERO);
                    world.locks.begin_grace(holder);
                    // NFSv3 writes: it meets no opens.
                    let may = what == Try::Put && by == By::Nfs3;
                    assert_eq!(world.perform(&op(by, what, share)), may, "{said}");
                    let left = fs::read_to_string(world.top.join("part/f")).ok();
                    assert_eq!(left.as_deref(), Some(if may { "new" } else { "held" }), "{said}");
                    let status = world.web.ask("GET /part/f", &[SIGNED_IN], b"").status;
                    assert_eq!(status, 200, "{said}: reading");
                    world.locks.end_grace(holder);
                    assert!(world.perform(&op(by, what, share)), "{said}: it is over");
                }
            }
        }
        let place = |name: &str| SharePath { share: "all", path: vec![name.to_owned()] };
        world.locks.begin_grace(holder);
        for (by, _) in BY.into_iter().filter(|(by, _)| *by != By::Nfs4) {
            if by == By::Nfs3 {
                fs::write(world.top.join("new"), "").expect("a file");
            }
            let mut done = |what| {
                let op = Op { by, what };
                assert!(world.perform(&op), "{holder:?}: {op:?}");
            };
            done(What::Put(place("new"), "new".to_owned()));
            let (from, to) = (place("new"), place("newer"));
            done(What::Rename { from, to, replaces: false });
            done(What::Remove(place("newer")));
        }
    }
}

/// What waits for the end of the grace period is done then.
#[test]
fn what_waits_for_the_end_of_grace_is_done_then() {
    let mut world = World::new();
    for what in [Try::Put, Try::Remove, Try::Rename, Try::Replace] {
        for by in [By::Dav, By::Ftp, By::Sftp] {
            plant(&world);
            age(&world);
            world.locks.set_grace_patience(Duration::from_secs(60));
            world.locks.begin_grace(Protocol::Nfs4);
            let locks = Arc::clone(&world.locks);
            let ends = std::thread::spawn(move || {
                let until = Deadline::after(Duration::from_secs(60));
                while locks.waiting_for_grace() == 0 && !until.passed() {
                    std::thread::yield_now();
                }
                let waits = locks.waiting_for_grace();
                locks.end_grace(Protocol::Nfs4);
                waits
            });
            assert!(world.perform(&op(by, what, "all")), "{what:?} by {by:?}");
            assert_eq!(ends.join().expect("ended"), 1, "{what:?} by {by:?}");
            let left = fs::read_to_string(world.top.join("part/f")).ok();
            assert_eq!(left.as_deref(), after(what), "{what:?} by {by:?}");
        }
    }
}

/// A directory that is locked over WebDAV is neither renamed nor removed.
#[test]
fn a_locked_directory_keeps_its_name() {
    let mut world = World::new();
    let dir = SharePath { share: "all", path: vec!["d".to_owned()] };
    let to = SharePath { share: "all", path: vec!["e".to_owned()] };
    fs::create_dir(world.top.join("d")).expect("a directory");
    lock(&mut world, "/all/d", true, "0");
    for (by, _) in BY {
        let remove = match by {
            By::Dav | By::Nfs4 => What::Remove(dir.clone()),
            _ => What::Rmdir(dir.clone()),
        };
        let rename = What::Rename { from: dir.clone(), to: to.clone(), replaces: false };
        for what in [remove, rename] {
            let op = Op { by, what };
            assert!(!world.perform(&op), "{op:?}");
            assert!(world.top.join("d").is_dir(), "{op:?}");
        }
    }
}
