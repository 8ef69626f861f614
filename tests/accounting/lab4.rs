//! The lab over NFSv4.1: its reads are the server's reads, client by client, and so are all other
//! operations of its compounds, those of leaving included.

use std::collections::BTreeMap;
use std::path::Path;

use e2e::api::{self, Api};
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};

use super::{by_key, calls, run_at};

/// Operations of a client's preparation with a new file of 1 MiB, without READs: EXCHANGE_ID and
/// CREATE_SESSION; SEQUENCE, RECLAIM_COMPLETE; the walk to the share (5); the lookup (3) and the
/// creation (4) of its directory; OPEN (4); two probes without their READs (4); four WRITEs (12);
/// SETATTR (3); COMMIT (3).
const PREPARING: u64 = 2 + 2 + 5 + 3 + 4 + 4 + 4 + 12 + 3 + 3;
/// READs of the two probes.
const PROBES: u64 = 2;
/// SEQUENCEs of these, one a compound, and of the probes; and of leaving.
const SEQUENCES: u64 = 1 + 1 + 1 + 1 + 1 + 2 + 4 + 1 + 1 + 1;
/// Operations with which it leaves: SEQUENCE, PUTFH, CLOSE; DESTROY_SESSION; DESTROY_CLIENTID.
const LEAVING: u64 = 5;

#[test]
fn reads_of_eight_clients_over_version_4() {
    let scratch = Scratch::below(Path::new("/dev/shm"), "lab4");
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let mut server = Server::start(&Options::new(&dir, &state));
    let api = Api::new(&state);
    let from = api::now() + 1;
    api.wait_for_second(from - 1);
    let target = format!("nfs4://127.0.0.1:{}{}", server.nfs_port(), server.export());
    let out = scratch.path().join("out");
    let result = run_at("iops-4k", &target, &out, &["schedule=[[8,1],[8,2]]"]);
    let to = api::now() + 1;
    api.wait_for_second(to);

    let made = calls(&result);
    assert_eq!(made.len(), 8, "{made:?}");
    assert!(made.values().all(|calls| *calls > 50), "{made:?}");
    let sequences =
        by_key(&api.data("nfs4.ops[op=sequence][client]", (from, to), "&source=recorder"));
    // A READ under load is three operations: SEQUENCE, PUTFH, READ. A client that had nothing to do
    // for long has renewed its lease, by SEQUENCE.
    let reads = |client: &str, calls: u64| {
        (calls - PREPARING - PROBES - (sequences[client] - SEQUENCES)) / 2 + PROBES
    };
    let reads: BTreeMap<String, u64> =
        made.iter().map(|(client, calls)| (client.clone(), reads(client, *calls))).collect();
    let all: BTreeMap<String, u64> =
        made.iter().map(|(client, calls)| (client.clone(), calls + LEAVING)).collect();
    for source in ["&source=store", "&source=recorder"] {
        let rows = |stat: &str| by_key(&api.data(stat, (from, to), source));
        assert_eq!(rows("nfs4.ops[client]"), all, "{source}");
        if source == "&source=recorder" {
            assert_eq!(rows("nfs4.ops[op=read][client]"), reads, "{source}");
        }
        assert_eq!(rows("nfs4.ops[op]")["read"], reads.values().sum::<u64>(), "{source}");
        assert_eq!(rows("nfs4.ops[op]")["close"], 8, "{source}");
    }
    assert_eq!(api.count("nfs4.replays", (from, to)), 0);
    assert!(result["degraded"].as_array().is_none_or(|all| {
        all.iter().all(|why| !why.as_str().unwrap_or_default().contains("slots"))
    }));
    assert!(server.stop().success());
}
