//! NFSv4 is counted operation by operation, exactly as a scripted client counts, and together with
//! NFSv3 it is `nfs`.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use e2e::api::{self, Api};
use e2e::nfs4::Client;
use e2e::scratch::Scratch;
use e2e::server::{Options, Server};

use super::{BREAKDOWNS, by_key, parts_by_second, totals};

/// Bytes of a WRITE and of a READ.
const BLOCK: u32 = 8192;
/// How often each is done.
const TIMES: u64 = 20;

fn work(client: &mut Client) {
    let root = client.walk("/export/data").expect("the share");
    let file = client.open(&root, "file", "owner", true).expect("a file");
    for n in 0..TIMES {
        let offset = n * u64::from(BLOCK);
        client.write(&file, offset, &vec![7; BLOCK as usize]).expect("WRITE");
        let read = client.read(&file, offset, BLOCK).expect("READ");
        assert_eq!(read.len(), BLOCK as usize);
    }
    client.lookup(&root, "nothing").expect_err("no such file");
    client.close(&file).expect("CLOSE");
}

#[test]
fn version_4_is_counted_as_its_client_counts() {
    let scratch = Scratch::new("versions");
    let (dir, state) = (scratch.folder("data", None), scratch.folder("state", None));
    let server = Server::start(&Options::new(&dir, &state));
    let api = Api::new(&state);
    let from = api::now() + 1;
    api.wait_for_second(from - 1);
    let address: SocketAddr = (Ipv4Addr::LOCALHOST, server.nfs_port()).into();
    let mut client = Client::connect(address, (0, 0), "counter", 1).expect("a session");
    client.reclaim_complete().expect("RECLAIM_COMPLETE");
    work(&mut client);
    let (mut older, root) = server.mount(0, 0);
    let calls = (0..TIMES).filter(|_| older.getattr(&root).is_ok()).count() as u64;
    let to = api::now() + 1;
    api.wait_for_second(to);

    let interval = (from, to);
    let rows = |stat: &str, more: &str| by_key(&api.data(stat, interval, more));
    for source in ["&source=store", "&source=recorder"] {
        assert_eq!(rows("nfs4.ops[op]", source), client.answered, "{source}");
        let moved = u64::from(BLOCK) * TIMES;
        let bytes = BTreeMap::from([("read".to_owned(), moved), ("write".to_owned(), moved)]);
        assert_eq!(rows("nfs4.bytes[op]", source), bytes, "{source}");
        let failed = rows("nfs4.ops[status]", source);
        assert_eq!(failed.get("NFS4ERR_NOENT"), Some(&1), "{failed:?}");
        for by in BREAKDOWNS {
            let raw = totals(&api.data("nfs4.ops", interval, source));
            let data = api.data(&format!("nfs4.ops[{by}]"), interval, source);
            assert_eq!(totals(&data), raw, "nfs4.ops[{by}] from the {source}");
            assert_eq!(parts_by_second(&data), raw, "nfs4.ops[{by}] from the {source}");
        }
        let made: u64 = client.answered.values().sum();
        let both = BTreeMap::from([("nfs3".to_owned(), calls), ("nfs4".to_owned(), made)]);
        assert_eq!(rows("nfs.ops[protocol]", source), both, "{source}");
        assert_eq!(rows("nfs.ops[client]", source).values().sum::<u64>(), calls + made);
    }
    let files = rows("nfs4.ops[op=write][file]", "");
    assert_eq!(files.values().copied().collect::<Vec<_>>(), [TIMES], "{files:?}");
}
