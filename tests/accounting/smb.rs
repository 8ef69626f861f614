//! The lab over SMB: its requests are the server's requests, client by client, those of the sign-in
//! and of preparation included, whatever protects them; by every breakdown.

use std::collections::BTreeMap;

use e2e::api;
use e2e::smb::{Ask, Offer, Smb, set_info};
use e2e::smb_share::{PASSWORD, PORT, SmbShare};
use e2e::tcp::HERE;
use wire::smb::class::file_class;
use wire::smb::create::{CloseRequest, FileId, access};
use wire::smb::header::Command;
use wire::smb::info::QueryRequest;
use wire::smb::io::{FlushRequest, WriteRequest};
use wire::smb::ioctl::{self, code};
use wire::smb::lock::{Element, Request as Lock, lock_flags};
use wire::smb::status::NtStatus;
use wire::smb::{dir, session};

use super::{BREAKDOWNS, by_key, calls, parts_by_second, phases_add_up, run_at, totals};

/// Clients of a run.
const CLIENTS: u64 = 8;
/// Requests without a user: NEGOTIATE and the first SESSION_SETUP.
const NOBODY: u64 = 2;
/// Requests on no share: these, the second SESSION_SETUP and TREE_CONNECT.
const NO_SHARE: u64 = NOBODY + 2;
/// CREATE and CLOSE of the client's directory.
const DIRECTORY: u64 = 2;
/// Requests that make a file of 1 MiB: CREATE, a look at its ends, four WRITEs, SET_INFO, FLUSH.
const FILE: u64 = 1 + PROBES + 4 + 1 + 1;
/// READs among them.
const PROBES: u64 = 2;
/// The number of anna.
const ANNA: &str = "4321";

/// A run that is over.
struct Run {
    smb: SmbShare,
    /// Requests of each client, as it reports them.
    made: BTreeMap<String, u64>,
    interval: (i64, i64),
    source: &'static str,
}

impl Run {
    fn new(job: &str, options: &str) -> Self {
        let smb = SmbShare::start("lab-smb", &[]);
        let from = api::now() + 1;
        smb.api.wait_for_second(from - 1);
        let out = smb.scratch.path().join("out");
        let schedule = format!("schedule=[[8,1],[8,2]{}]", ",[8,16]".repeat(steps()));
        let result = run_at(job, &smb.url(options), &out, &[&schedule]);
        let to = api::now() + 1;
        smb.api.wait_for_second(to);
        assert!(!result.to_string().contains(PASSWORD), "the password is in the record");
        let made = calls(&result);
        assert_eq!(made.len() as u64, CLIENTS, "{made:?}");
        assert!(made.values().all(|calls| *calls > 50), "{made:?}");
        Self { smb, made, interval: (from, to), source: "" }
    }

    fn total(&self) -> u64 {
        self.made.values().sum()
    }

    /// ECHOs of each client, which sends one when it has nothing to do for long.
    fn renewals(&self) -> BTreeMap<String, u64> {
        self.rows("smb.ops[op=echo][client]")
    }

    fn rows(&self, stat: &str) -> BTreeMap<String, u64> {
        by_key(&self.smb.api.data(stat, self.interval, self.source))
    }

    /// What holds of every run.
    fn check(&self, metrics: &[&str]) {
        assert_eq!(self.rows("smb.ops[client]"), self.made, "{}", self.source);
        for metric in metrics {
            let raw = totals(&self.smb.api.data(metric, self.interval, self.source));
            for by in BREAKDOWNS {
                let stat = format!("{metric}[{by}]");
                let data = self.smb.api.data(&stat, self.interval, self.source);
                assert_eq!(totals(&data), raw, "{stat} {}", self.source);
                assert_eq!(parts_by_second(&data), raw, "{stat} {}", self.source);
            }
        }
        let (ops, total) = (self.rows("smb.ops[op]"), self.total());
        for (op, count) in [("negotiate", 1), ("session-setup", 2), ("tree-connect", 1)] {
            assert_eq!(ops[op], count * CLIENTS, "{op}: {ops:?}");
        }
        assert_eq!(self.rows("smb.ops[user]")[ANNA], total - NOBODY * CLIENTS, "{}", self.source);
        let wanted = total - NO_SHARE * CLIENTS;
        assert_eq!(self.rows("smb.ops[share]")["box"], wanted, "{}", self.source);
        assert_eq!(self.smb.api.count("analytics.dropped", self.interval), 0);
    }
}

/// Further steps: enough of them for as many operations as are asked for, in `make test-long`.
fn steps() -> usize {
    std::env::var("PLIMSOLL_ACCOUNTING_STEPS").ok().and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// The least number of operations of a run.
fn least() -> u64 {
    std::env::var("PLIMSOLL_ACCOUNTING_OPS").ok().and_then(|ops| ops.parse().ok()).unwrap_or(400)
}

fn counts_as_it_says(job: &str, options: &str, main: &str) {
    let mut run = Run::new(job, options);
    assert!(run.total() >= least(), "{} operations, too few", run.total());
    phases_add_up(&run.smb.api, run.interval, "smb", &["inline"]);
    for source in ["&source=store", "&source=recorder"] {
        run.source = source;
        run.check(&["smb.ops", "smb.bytes"]);
        let others = |main: &str| match main {
            "read" => NO_SHARE + DIRECTORY + FILE - PROBES,
            _ => NO_SHARE + DIRECTORY + FILE - 4,
        };
        let renewals = run.renewals();
        let of = |client: &str| renewals.get(client).copied().unwrap_or(0);
        let wanted =
            |(client, calls): (&String, &u64)| (client.clone(), calls - others(main) - of(client));
        let wanted: BTreeMap<String, u64> = run.made.iter().map(wanted).collect();
        assert_eq!(run.rows(&format!("smb.ops[op={main}][client]")), wanted, "{source}");
        let moved = wanted.values().sum::<u64>();
        let bytes = run.rows("smb.bytes[op]");
        match main {
            // The probes have found no data.
            "read" => assert_eq!(bytes["read"], (moved - PROBES * CLIENTS) * 4096, "{source}"),
            _ => assert_eq!(
                bytes["write"],
                (moved - 4 * CLIENTS) * 4096 + (CLIENTS << 20),
                "{source}"
            ),
        }
        let sizes = run.rows(&format!("smb.ops[op={main}][size=4096-4097][client]"));
        // The probes ask for as much; the file was made by larger WRITEs.
        let small = |calls: &u64| calls - if main == "read" { 0 } else { 4 };
        let small: BTreeMap<_, _> =
            wanted.iter().map(|(client, calls)| (client.clone(), small(calls))).collect();
        assert_eq!(sizes, small, "{source}");
        let files = run.rows(&format!("smb.ops[op={main}][file]"));
        let known: u64 = files.iter().filter(|(key, _)| *key != "other").map(|(_, n)| n).sum();
        assert_eq!(known, moved, "{files:?}");
    }
    assert!(run.smb.server.stop().success());
}

#[test]
fn signed_reads_of_eight_clients() {
    counts_as_it_says("iops-4k", "", "read");
}

#[test]
fn encrypted_writes_of_eight_clients() {
    counts_as_it_says("syncwrite-4k", "?cipher=aes128-gcm", "write");
}

#[test]
fn creations_of_eight_clients_over_the_oldest_dialect() {
    let mut run = Run::new("create", "?dialect=2.1");
    for source in ["&source=store", "&source=recorder"] {
        run.source = source;
        run.check(&["smb.ops"]);
        let ops = run.rows("smb.ops[op]");
        let renewals = run.renewals().values().sum::<u64>();
        let each = (run.total() - NO_SHARE * CLIENTS - renewals) / 2;
        assert_eq!((ops["create"], ops["close"]), (each, each), "{ops:?}");
    }
    assert!(run.smb.server.stop().success());
}

/// A request, its name in the statistics, and how it ends.
type NamedRequest = (&'static str, Command, Vec<u8>, NtStatus);

fn body(put: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut body = Vec::new();
    put(&mut body);
    body
}

fn control(code: u32, file: FileId) -> Vec<u8> {
    let (output_max, flags) = (100, ioctl::IS_FSCTL);
    body(|out| ioctl::Request { code, file, output_max, flags, input: &[] }.put(out))
}

/// Requests on an open that may only read, which are refused but for the last.
fn on_the_file(file: FileId) -> Vec<NamedRequest> {
    let (offset, flags, data) = (0, 0, &b"data"[..]);
    let (info_type, class, output_max, additional) = (1, 200, 100, 0);
    let query = QueryRequest { info_type, class, output_max, additional, flags, file, input: &[] };
    let (level, pattern) = (37, &b"*\0"[..]);
    let list = dir::Request { level, flags: 0, file, pattern, output_max };
    let unlock = Element { offset: 0, length: 9, flags: lock_flags::UNLOCK, reserved: 0 };
    let unlock = Lock { lock_sequence: 0, file, locks: vec![unlock] };
    let flush = FlushRequest { reserved: [0; 6], file };
    let write = body(|out| WriteRequest { offset, file, flags, data }.put(out));
    vec![
        ("write", Command::WRITE, write, NtStatus::ACCESS_DENIED),
        ("flush", Command::FLUSH, body(|out| flush.put_body(out)), NtStatus::ACCESS_DENIED),
        (
            "query-info",
            Command::QUERY_INFO,
            body(|out| query.put(out)),
            NtStatus::INVALID_INFO_CLASS,
        ),
        (
            "set-info",
            Command::SET_INFO,
            body(set_info(file, file_class::END_OF_FILE, &[0; 8])),
            NtStatus::ACCESS_DENIED,
        ),
        (
            "query-directory",
            Command::QUERY_DIRECTORY,
            body(|out| list.put(out)),
            NtStatus::INVALID_PARAMETER,
        ),
        ("lock", Command::LOCK, body(|out| unlock.put(out)), NtStatus::RANGE_NOT_LOCKED),
        ("ioctl", Command::IOCTL, control(0x0009_9999, file), NtStatus::INVALID_DEVICE_REQUEST),
        ("ioctl", Command::IOCTL, control(code::GET_COMPRESSION, file), NtStatus::SUCCESS),
    ]
}

/// Requests of the share that are about no file.
fn on_the_share() -> Vec<NamedRequest> {
    let close = CloseRequest { flags: 0, reserved: 0, file: FileId { persistent: 7, volatile: 7 } };
    vec![
        (
            "create",
            Command::CREATE,
            body(|out| Ask::open("none").put(out)),
            NtStatus::OBJECT_NAME_NOT_FOUND,
        ),
        ("close", Command::CLOSE, body(|out| close.put_body(out)), NtStatus::FILE_CLOSED),
        // What is no command, and must not be taken for CREATE.
        ("unknown", Command(0x105), body(empty), NtStatus::INVALID_PARAMETER),
    ]
}

fn empty(out: &mut Vec<u8>) {
    session::Empty { reserved: 0 }.put_body(out);
}

/// Sends the request and checks the status of its response.
fn ask(smb: &mut Smb, (_, command, body, status): &NamedRequest) {
    let answer = smb.call(*command, 0, &|out| out.extend_from_slice(body)).expect("an answer");
    assert_eq!(answer.status(), *status, "{command:?}");
}

#[test]
fn refusals_are_reported_with_share_file_and_status() {
    let mut smb = SmbShare::start("smb-refused", &[]);
    let from = api::now() + 1;
    smb.api.wait_for_second(from - 1);
    let at = (HERE, smb.server.at(PORT));
    let mut anna = Smb::open(at, &Offer::default(), ("anna", PASSWORD), "box").expect("let in");
    let reads = Ask { access: access::READ, ..Ask::make("f") };
    let file = anna.create(&reads).expect("an answer").expect("a file");
    let (of_file, of_share) = (on_the_file(file), on_the_share());
    of_file.iter().chain(&of_share).for_each(|told| ask(&mut anna, told));
    let to = api::now() + 1;
    smb.api.wait_for_second(to);
    for source in ["&source=store", "&source=recorder"] {
        let rows = |stat: &str| smb.api.data(stat, (from, to), source);
        for (told, has_file) in
            of_file.iter().map(|told| (told, true)).chain(of_share.iter().map(|told| (told, false)))
        {
            let (_, status) = NtStatus::ALL.iter().find(|one| one.0 == told.3.0).expect("a name");
            let what = format!("smb.ops[op={}][status={status}]", told.0);
            let shares = by_key(&rows(&format!("{what}[share]")));
            assert_eq!(shares, BTreeMap::from([("box".to_owned(), 1)]), "{what} {source}");
            let files = rows(&format!("{what}[file]"));
            let label = files["rows"][0]["label"].as_str().unwrap_or_default();
            assert_eq!(label.ends_with("/f"), has_file, "{what} {source}: {files:#}");
        }
    }
    assert!(smb.server.stop().success());
}
