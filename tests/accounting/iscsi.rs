//! The lab over iSCSI: its commands are the server's commands, client by client, those of
//! preparation included; with CHAP both ways and with digests.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use e2e::api::{self, Api};
use e2e::iscsi::Access;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};

use super::{by_key, calls, phases_add_up, run_at};

/// All breakdowns of iSCSI.
const BREAKDOWNS: [&str; 6] = ["op", "client", "latency", "size", "offset", "status"];
/// Commands of a client outside its workload: two TEST UNIT READY, of which the first returns the
/// unit attention for power on, and one READ CAPACITY.
const BEGINNING: u64 = 3;
/// Commands that fill a file of 1 MiB: a look at its two ends, four writes, one flush.
const FILLING: u64 = 2 + 4 + 1;

/// Runs `job` over a new unit; `options` are more of its URL.
fn counts_as_it_says(job: &str, options: &str, main: &str) {
    let scratch = Scratch::below(Path::new("/dev/shm"), "lab-iscsi");
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let mut given = Options::new(&dir, &state);
    given.args = ["--lun", "disk=64M"].map(Into::into).to_vec();
    let mut server = Server::start(&given);
    let api = Api::new(&state);
    let from = api::now() + 1;
    api.wait_for_second(from - 1);
    let (user, own) = Access::own(&state);
    let file = scratch.path().join("own");
    fs::write(&file, own).expect("a secret file");
    let options = options.replace("USER", &user).replace("OWN", &file.display().to_string());
    let target = Access::of(&state).url(server.at(3260), 0) + &options;
    let out = scratch.path().join("out");
    let result = run_at(job, &target, &out, &["schedule=[[8,1],[8,2]]"]);
    let to = api::now() + 1;
    api.wait_for_second(to);
    let secret = Access::of(&state).secret;
    assert!(!result.to_string().contains(&secret), "the secret is in the record");

    let made = calls(&result);
    assert_eq!(made.len(), 8, "{made:?}");
    // Each has done some of its workload; how much of it depends on what else the machine does.
    assert!(made.values().all(|calls| *calls > BEGINNING + FILLING), "{made:?}");
    for source in ["&source=store", "&source=recorder"] {
        let rows = |stat: &str| by_key(&api.data(stat, (from, to), source));
        assert_eq!(rows("iscsi.ops[client]"), made, "{source}");
        let total: u64 = made.values().sum();
        for by in BREAKDOWNS {
            let sum: u64 = rows(&format!("iscsi.ops[{by}]")).values().sum();
            assert_eq!(sum, total, "iscsi.ops[{by}], {source}");
        }
        // Everything but what prepares is the workload, and the flushes of streams.
        let [mains, flushes] = [main, "synchronize cache(16)"]
            .map(|op| -> BTreeMap<String, u64> { rows(&format!("iscsi.ops[op={op}][client]")) });
        for (client, calls) in &made {
            let others = calls - mains[client] - flushes[client];
            assert!(others < BEGINNING + FILLING, "{client}: {others} of {calls}, {source}");
        }
    }
    assert_eq!(api.count("analytics.dropped", (from, to)), 0);
    phases_add_up(&api, (from, to), "iscsi", &["inline"]);
    assert!(server.stop().success());
}

#[test]
fn reads_of_eight_initiators() {
    let both = "?digests=header,data&target-user=USER&target-password-file=OWN";
    counts_as_it_says("iops-4k", both, "read(16)");
}

#[test]
fn durable_writes_of_eight_initiators() {
    counts_as_it_says("syncwrite-4k", "", "write(16)");
}

#[test]
fn streams_of_eight_initiators_end_with_flushes() {
    counts_as_it_says("write-stream", "?digests=none", "write(16)");
}
