//! Statistics over heads: what a client has done is the same at each head, exactly what the client
//! has counted, before and after a takeover; and seconds without data are named by head.

use std::net::SocketAddr;

use e2e::api::{now, sum};
use e2e::{is_root, nfs3, skip};
use serde_json::Value;

use super::cluster::{ACCOUNTS, Cluster, LEFT, PROJECTS, RIGHT};
use super::session::connect;

/// Operations of a client, each time.
const CALLS: u64 = 137;
/// The client.
const CLIENT: &str = "10.77.0.1";
const STATISTIC: &str = "nfs.ops[client]";

/// Does [`CALLS`] operations of NFSv3 and nothing else.
fn operations(cluster: &Cluster, address: SocketAddr, export: String) -> u64 {
    let work = move || {
        let mut client: nfs3::Client = connect(address).expect("a connection");
        let root = client.mnt(&export).expect("the share");
        for _ in 0..CALLS {
            client.getattr(&root).expect("attributes");
        }
        CALLS
    };
    cluster.switch.spawn(work).join().expect("a client")
}

/// The operations of the client in an interval, asked at a head; and the gaps.
fn asked(cluster: &Cluster, head: usize, (from, to): (i64, i64)) -> (u64, Vec<Value>) {
    let (from, to) = (from.to_string(), to.to_string());
    let args =
        ["analytics", "show", STATISTIC, "--json", "--step", "1", "--from", &from, "--to", &to];
    let text = cluster.output(head, &args);
    let data: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {text}"));
    let rows = data["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["key"] == CLIENT);
    let gaps = data["gaps"].as_array().expect("gaps").clone();
    (row.map_or(0, |row| sum(&row["values"])), gaps)
}

#[test]
fn each_head_answers_for_all_resources_exactly_and_names_gaps() {
    if !is_root() {
        skip!("heads-statistics", "network namespaces and loop devices need root");
    }
    let mut cluster = match Cluster::start(&[ACCOUNTS, PROJECTS]) {
        Ok(cluster) => cluster,
        Err(why) => skip!("heads-statistics", "{why}"),
    };
    cluster.command(RIGHT, &["failback", PROJECTS.name]);
    cluster.wait_for_owner(PROJECTS, RIGHT);
    let start = now();
    let mut expected = 0;
    let both = |cluster: &Cluster| {
        let one = operations(cluster, ACCOUNTS.address(), ACCOUNTS.export());
        one + operations(cluster, PROJECTS.address(), PROJECTS.export())
    };
    expected += both(&cluster);
    for head in [LEFT, RIGHT] {
        cluster.wait("the count is that of the client", || {
            asked(&cluster, head, (start, now() + 1)).0 == expected
        });
    }
    // Both are at one head now, which has only the second part of one of them in memory.
    cluster.command(RIGHT, &["takeover", ACCOUNTS.name]);
    cluster.wait_for_owner(ACCOUNTS, RIGHT);
    let taken = now();
    expected += both(&cluster);
    for head in [LEFT, RIGHT] {
        cluster.wait("the count is that of the client after the takeover", || {
            let (count, _) = asked(&cluster, head, (start, now() + 1));
            assert!(count <= expected, "{count} operations, {expected} were done");
            count == expected
        });
    }

    // A head that vanishes has no data until the other one serves.
    let server = cluster.process(ACCOUNTS, RIGHT);
    cluster.kill(RIGHT);
    e2e::process::signal(server, libc::SIGKILL);
    cluster.wait_for_owner(ACCOUNTS, LEFT);
    cluster.wait("the gap is named", || {
        let (_, gaps) = asked(&cluster, LEFT, (taken, now() - 1));
        gaps.iter().any(|gap| {
            gap["resource"] == "accounts"
                && gap["head"] == "right"
                && gap["why"] == "taken over by left"
        })
    });
    cluster.start_head(RIGHT);
    cluster.wait_for_member(LEFT, RIGHT);
    cluster.end();
}
