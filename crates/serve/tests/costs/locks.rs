//! What the table of WebDAV's locks costs when it is full.

use serve::http::dav::state::{Lineage, Lock, Table, Touched};
use vfs::locks::FileKey;

use crate::clock;
use crate::search::MOST;

/// A table with as many locks as it takes, each on a file of its own below `/share/d`.
fn full() -> Table {
    let mut table = Table::default();
    let around = format!("/share/d/{}", "long/".repeat(100));
    for n in 0..10_000_u64 {
        let file = FileKey { fsid: 1, fileid: n, generation: 0 };
        let lock = Lock {
            token: format!("opaquelocktoken:{n}"),
            root: format!("{around}{n}").into_bytes(),
            file,
            above: vec![1 << 40; 100],
            user: format!("user{}", n / 2_000),
            client: String::new(),
            since_s: 0,
            exclusive: true,
            deep: false,
            owner: String::new(),
            timeout_s: 100,
            expires_s: 1_000,
        };
        table.add(lock).expect("there is room");
    }
    table
}

#[test]
fn of_a_tree_with_all_locks_below() {
    let table = full();
    let of =
        Lineage { file: Some(FileKey { fsid: 1, fileid: 1 << 40, generation: 0 }), above: vec![] };
    let touched = Touched { path: b"/share/d", of: &of, name: true, tree: true };
    let before = clock::process();
    let missing = table.missing(touched, |lock| lock.user == "user0");
    let cost = clock::process() - before;
    println!("{} locks missing: {cost:?}", missing.len());
    assert_eq!(missing.len(), 8_000);
    assert!(cost <= MOST, "{cost:?}");
}
