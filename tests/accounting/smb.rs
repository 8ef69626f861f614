//! The lab over SMB: its requests are the server's requests, client by client, those of the sign-in
//! and of preparation included, whatever protects them; by every breakdown.

use std::collections::BTreeMap;

use e2e::api;
use e2e::smb_share::{PASSWORD, SmbShare};

use super::{BREAKDOWNS, by_key, calls, parts_by_second, run_at, totals};

/// Clients of a run.
const CLIENTS: u64 = 8;
/// Requests that are of nobody yet: NEGOTIATE and the first SESSION_SETUP.
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
    /// Requests of each client, as it says.
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
        let wanted = total - NO_SHARE * CLIENTS - self.renewals().values().sum::<u64>();
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
