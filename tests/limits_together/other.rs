//! The other client: from another address, another user; it uses every service.

use std::fmt::Debug;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use e2e::ftp::Ftp;
use e2e::http::{Http, field};
use e2e::iscsi::{BLOCK, Initiator, io, reserve};
use e2e::nfs3;
use e2e::sftp::Sftp;
use e2e::smb::{Ask, Offer, Smb};
use e2e::tcp::{address, connect_from};
use serde_json::json;
use wire::nfs3::{CreateHow, Sattr3, StableHow};
use wire::nfs4::{ArgOp, Bitmap4, ReaddirArgs4, attr4};
use wire::nlm4::{HostName, LockArgs, NLM_PROGRAM, NLM_V4, Netobj, Nlm4Lock, Nlm4Res, Nlm4Stat};
use wire::scsi::Cdb;
use wire::scsi::cdb::ReserveOut;
use wire::sftp::{OpenFlags, StatusCode};
use wire::smb::create::{Disposition, FileId, access};
use wire::smb::header::Command;
use wire::smb::lock::{Element, Request as Lock, lock_flags};
use wire::smb::status::NtStatus;
use wire::smb::{dir, utf16};

use super::admin::Https;
use super::world::{GID, OTHER, PASSWORD, UID, World};

/// A step that takes this long has no end, and those after it are not tried.
const STANDSTILL: Duration = Duration::from_secs(20);
/// What it writes.
const DATA: &[u8] = b"what the other client writes";

/// One step and its time, or how it failed.
#[derive(Debug)]
pub(crate) struct Step {
    pub service: &'static str,
    pub what: &'static str,
    pub outcome: Result<Duration, String>,
}

enum Event {
    Begins(&'static str),
    Ends(Result<Duration, String>),
}

/// Reports the steps of one service.
struct Steps(Sender<Event>, u32);

/// The steps after one that failed are not tried.
type Outcome<T> = Result<T, ()>;

impl Steps {
    fn step<T, E: Debug>(
        &self,
        what: &'static str,
        act: impl FnOnce() -> Result<T, E>,
    ) -> Outcome<T> {
        let _ = self.0.send(Event::Begins(what));
        let began = Instant::now();
        let (outcome, value) = match act() {
            Ok(value) => (Ok(began.elapsed()), Ok(value)),
            Err(why) => (Err(format!("{why:?} after {:.1?}", began.elapsed())), Err(())),
        };
        let _ = self.0.send(Event::Ends(outcome));
        value
    }

    /// A name that no earlier round had.
    fn name(&self, service: &str) -> String {
        format!("other-{service}-{}", self.1)
    }
}

type Client = fn(&World, &Steps) -> Outcome<()>;

const SERVICES: [(&str, Client); 9] = [
    ("SMB", smb),
    ("NFSv3", nfs3),
    ("NFSv4", nfs4),
    ("iSCSI", iscsi),
    ("HTTP", http),
    ("SFTP", sftp),
    ("FTP", ftp),
    ("administration", administration),
    ("local socket", local_socket),
];

fn from() -> IpAddr {
    address(3)
}

/// Uses all services.
pub(crate) fn run(world: &Arc<World>, round: u32) -> Vec<Step> {
    let mut steps = Vec::new();
    for (service, client) in SERVICES {
        let (events, received) = mpsc::channel();
        let at = Arc::clone(world);
        std::thread::spawn(move || client(&at, &Steps(events, round)));
        let mut what = "start";
        loop {
            match received.recv_timeout(STANDSTILL) {
                Ok(Event::Begins(next)) => what = next,
                Ok(Event::Ends(outcome)) => steps.push(Step { service, what, outcome }),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    let outcome = Err(format!("no reply within {STANDSTILL:?}"));
                    steps.push(Step { service, what, outcome });
                    break;
                }
            }
        }
    }
    steps
}

/// An error unless a value is the expected one.
fn is<T: PartialEq + Debug>(value: T, expected: T) -> Result<(), String> {
    if value == expected { Ok(()) } else { Err(format!("{value:?}")) }
}

fn text(error: impl Debug) -> String {
    format!("{error:?}")
}

fn smb(world: &World, steps: &Steps) -> Outcome<()> {
    let at = world.server.at(445);
    let mut smb = steps.step("sign-in and tree", || {
        Smb::open((from(), at), &Offer::default(), (OTHER, PASSWORD), "box")
    })?;
    let name = steps.name("smb");
    let mut create =
        |what, ask: Ask<'_>| steps.step(what, || smb.create(&ask).map_err(text)?.map_err(text));
    let file = create("CREATE", Ask::make(&name))?;
    let common = create("open of a common file", Ask::open("common"))?;
    let root = Ask { access: access::READ, disposition: Disposition::Open, ..Ask::open("") };
    let root = create("open of the directory", root.dir())?;
    steps.step("LOCK", || lock(&mut smb, common, steps.1))?;
    steps.step("QUERY_DIRECTORY", || list(&mut smb, root))?;
    steps.step("WRITE", || is(smb.write(file, 0, DATA, 0).map_err(text)?, NtStatus::SUCCESS))?;
    steps
        .step("READ", || is(smb.read(file, 0, 99).map_err(text)?.map_err(text)?, DATA.to_vec()))?;
    steps.step("FLUSH", || is(smb.flush(file).map_err(text)?, NtStatus::SUCCESS))?;
    steps.step("CLOSE", || is(smb.close(file).map_err(text)?, NtStatus::SUCCESS))
}

fn lock(smb: &mut Smb, file: FileId, round: u32) -> Result<(), String> {
    let flags = lock_flags::EXCLUSIVE | lock_flags::FAIL_IMMEDIATELY;
    let offset = (1 << 40) + u64::from(round);
    let lock = Lock {
        lock_sequence: 0,
        file,
        locks: vec![Element { offset, length: 1, flags, reserved: 0 }],
    };
    let answer = smb.call(Command::LOCK, 0, &|out| lock.put(out)).map_err(text)?;
    is(answer.status(), NtStatus::SUCCESS)
}

fn list(smb: &mut Smb, file: FileId) -> Result<(), String> {
    let pattern = utf16::encode("*");
    let query = dir::Request { level: 37, flags: 0, file, pattern: &pattern, output_max: 60_000 };
    let answer = smb.call(Command::QUERY_DIRECTORY, 60_000, &|out| query.put(out)).map_err(text)?;
    is(answer.status(), NtStatus::SUCCESS)
}

fn nfs3(world: &World, steps: &Steps) -> Outcome<()> {
    steps.step("port mapper", || port_mapper(world))?;
    let (mut client, root) = steps.step("mount", || {
        let stream = connect_from(from(), world.server.nfs()).map_err(text)?;
        let mut client = nfs3::Client::over(stream, UID, GID).map_err(text)?;
        let root = client.mnt("/export/box").map_err(text)?;
        Ok::<_, String>((client, root))
    })?;
    let name = steps.name("nfs3");
    let file = steps
        .step("CREATE", || client.create(&root, &name, CreateHow::Guarded(Sattr3::default())))?;
    let file = file.handle;
    let common = steps.step("LOOKUP", || client.lookup(&root, "common"))?.handle;
    steps.step("NLM LOCK", || nlm_lock(&mut client, &common, steps.1))?;
    steps.step("READDIR", || client.names(&root))?;
    steps.step("WRITE", || client.write(&file, 0, DATA, StableHow::FILE_SYNC))?;
    steps.step("READ", || is(client.read(&file, 0, 99).map_err(text)?.0, DATA.to_vec()))?;
    steps.step("REMOVE", || client.remove(&root, &name, false))
}

/// A call of the port mapper (NULL), as a client that mounts makes.
fn port_mapper(world: &World) -> Result<(), String> {
    let stream = connect_from(from(), world.server.at(111)).map_err(text)?;
    let mut rpc = nfs3::Client::over(stream, UID, GID).map_err(text)?;
    rpc.call((100_000, 2), 0, &()).map(drop).map_err(text)
}

fn nlm_lock(rpc: &mut nfs3::Client, file: &[u8], round: u32) -> Result<(), String> {
    let lock = LockArgs {
        cookie: Netobj(b"other"),
        block: false,
        exclusive: true,
        alock: Nlm4Lock {
            caller_name: HostName(b"other"),
            fh: Netobj(file),
            oh: Netobj(b"other"),
            svid: 7,
            l_offset: (1 << 41) + u64::from(round),
            l_len: 1,
        },
        reclaim: false,
        state: 1,
    };
    let reply = rpc.call((NLM_PROGRAM, NLM_V4), 2, &lock).map_err(text)?;
    let result: Nlm4Res<'_> = wire::xdr::decode_all(&reply).map_err(text)?;
    is(result.stat, Nlm4Stat::GRANTED)
}

fn nfs4(world: &World, steps: &Steps) -> Outcome<()> {
    let name = steps.name("nfs4");
    let (mut client, root) = steps.step("mount", || {
        let stream = connect_from(from(), world.server.nfs()).map_err(text)?;
        let rpc = nfs3::Client::over(stream, UID, GID).map_err(text)?;
        let mut client = e2e::nfs4::Client::over(rpc, 1, &name, 1).map_err(text)?;
        client.reclaim_complete().map_err(text)?;
        let root = client.walk("/export/box").map_err(text)?;
        Ok::<_, String>((client, root))
    })?;
    let file = steps.step("OPEN", || client.open(&root, &name, "owner", true))?;
    let common =
        steps.step("OPEN of a common file", || client.open(&root, "common", "owner", false))?;
    let range = ((1 << 42) + u64::from(steps.1), 1);
    steps.step("LOCK", || client.lock(&common, "locker", range, false))?;
    steps.step("READDIR", || {
        let attr_request = Bitmap4::of(&[attr4::FILEID]);
        let (cookie, cookieverf, dircount, maxcount) = (0, [0; 8], 0, 8192);
        let readdir = ReaddirArgs4 { cookie, cookieverf, dircount, maxcount, attr_request };
        client.at(&root, &[ArgOp::Readdir(readdir)])
    })?;
    steps.step("WRITE", || client.write(&file, 0, DATA))?;
    steps.step("READ", || is(client.read(&file, 0, 99).map_err(text)?, DATA.to_vec()))?;
    steps.step("CLOSE", || client.close(&file))
}

fn iscsi(world: &World, steps: &Steps) -> Outcome<()> {
    let mut initiator = steps.step("login", || {
        let stream = connect_from(from(), world.server.at(3260)).map_err(text)?;
        Initiator::over(stream, &world.access, 60_000 + steps.1 as u16).map_err(text)
    })?;
    let mut run = |what, cdb: &Cdb, out: &[u8], expect| {
        steps.step(what, || match initiator.run(cdb, out, expect) {
            Ok(answer) if answer.is_good() => Ok(answer.data),
            other => Err(format!("{other:?}")),
        })
    };
    run("REPORT LUNS", &Cdb::ReportLuns { select: 0, allocation: 256 }, &[], 256)?;
    let (cdb, list) = reserve(ReserveOut::RegisterAndIgnore, 0, 0, 77, false);
    run("register", &cdb, &list, 0)?;
    run("WRITE", &Cdb::Write(io(8, 1, true)), &[5; BLOCK], 0)?;
    let data = run("READ", &Cdb::Read(io(8, 1, false)), &[], BLOCK as u32)?;
    steps.step("what was read", || is(data, vec![5; BLOCK]))
}

fn http(world: &World, steps: &Steps) -> Outcome<()> {
    let at = world.server.at(80);
    let mut http = steps.step("connection", || Http::connect(from(), at, (OTHER, PASSWORD)))?;
    let target = format!("/box/{}", steps.name("http"));
    let mut ask = |what, (method, target): (&str, &str), fields: &str, body: &[u8], expected| {
        steps.step(what, || {
            let asked = (method, target.as_bytes());
            let (status, head, body) = http.ask(asked, fields.as_bytes(), body).map_err(text)?;
            if status == expected { Ok((head, body)) } else { Err(head) }
        })
    };
    ask("sign-in", ("HEAD", "/box/common"), "", b"", 200)?;
    ask("PUT", ("PUT", &target), "", DATA, 201)?;
    let lock = b"<D:lockinfo xmlns:D='DAV:'><D:lockscope><D:exclusive/></D:lockscope>\
                 <D:locktype><D:write/></D:locktype></D:lockinfo>";
    let (head, _) = ask("LOCK", ("LOCK", &target), "depth: 0\r\n", lock, 200)?;
    ask("PROPFIND", ("PROPFIND", "/box/"), "depth: 1\r\n", b"", 207)?;
    ask("page", ("GET", "/box/"), "", b"", 200)?;
    let (_, body) = ask("GET", ("GET", &target), "", b"", 200)?;
    steps.step("what was read", || is(body, DATA.to_vec()))?;
    let token = format!("lock-token: {}\r\n", field(&head, "lock-token").unwrap_or_default());
    ask("UNLOCK", ("UNLOCK", &target), &token, b"", 204)?;
    ask(
        "upload in parts",
        ("POST", &format!("{target}-parts?upload")),
        "upload-length: 9\r\n",
        b"",
        201,
    )
    .map(drop)
}

fn sftp(world: &World, steps: &Steps) -> Outcome<()> {
    let at = world.server.at(218);
    let mut sftp = steps.step("sign-in", || Sftp::connect(from(), at, (OTHER, PASSWORD)))?;
    let name = format!("/box/{}", steps.name("sftp"));
    let flags = [OpenFlags::READ, OpenFlags::WRITE, OpenFlags::CREAT];
    let flags = OpenFlags(flags.iter().fold(0, |all, one| all | one.0));
    let file = steps.step("OPEN", || sftp.open(&name, flags).map_err(text)?.map_err(text))?;
    steps.step("READDIR", || sftp.list("/box"))?;
    steps.step("WRITE", || is(sftp.write(&file, 0, DATA).map_err(text)?, StatusCode::OK))?;
    steps.step("READ", || {
        is(sftp.read(&file, 0, 99).map_err(text)?.map_err(text)?, DATA.to_vec())
    })?;
    steps.step("CLOSE", || is(sftp.close(&file).map_err(text)?, StatusCode::OK))?;
    let place = format!("/box/{}", steps.name("dsync"));
    steps.step("dsync", || {
        let mut run = Sftp::subsystem((from(), at), (OTHER, PASSWORD), "dsync").map_err(text)?;
        run.begin_dsync(&place, 1).map_err(text)
    })
}

fn ftp(world: &World, steps: &Steps) -> Outcome<()> {
    let mut ftp = steps.step("connection", || Ftp::connect(from(), world.server.at(21)))?;
    steps.step("sign-in", || is(ftp.sign_in(OTHER, PASSWORD).map_err(text)?, 230))?;
    let name = format!("/box/{}", steps.name("ftp"));
    let mut data = |what, line: String, up, expected: Option<&[u8]>| {
        steps.step(what, || {
            let (code, came) = ftp.data(line, up).map_err(text)?;
            is(code, 226)?;
            expected.map_or(Ok(()), |expected| is(&came[..], expected))
        })
    };
    data("STOR", format!("STOR {name}"), Some(DATA), None)?;
    data("LIST", "LIST /box".to_owned(), None, None)?;
    data("RETR", format!("RETR {name}"), None, Some(DATA))
}

fn administration(world: &World, steps: &Steps) -> Outcome<()> {
    let mut https = steps.step("connection", || Https::connect(from(), world))?;
    let user = ("admin", "only-for-this-test");
    steps.step("sign-in", || https.sign_in(user))?;
    steps.step("status", || https.get("/api/v1/status"))?;
    let now = e2e::api::now();
    let query = format!("/api/v1/analytics/data?stat=nfs3.ops&from={}&to={now}", now - 60);
    steps.step("query of statistics", || https.get(&query))?;
    let name = steps.name("administration");
    let change = json!({"set": "/configuration/users/olga", "property": "full_name",
        "value": name});
    let change = json!({ "changes": [change] }).to_string();
    steps.step("change", || https.post("/api/v1/changes", &change))?;
    steps.step("live stream", || https.stream("/api/v1/changes/stream")).map(drop)
}

fn local_socket(world: &World, steps: &Steps) -> Outcome<()> {
    steps.step("status", || match world.api.get("/api/v1/status") {
        (200, _) => Ok(()),
        (code, body) => Err(format!("{code}: {body}")),
    })
}
