//! Errors of 4.1 and later versions against the table of RFC 8881, section 15.2: each result
//! of every test in this crate is looked up in it ([`check`]).

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::*;

/// The table: operation → errors.
static TABLE: LazyLock<HashMap<Opnum4, HashSet<Nfsstat4>>> = LazyLock::new(|| {
    let text = include_str!("errors.txt");
    let lines = text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
    let rows = lines.replace("\n ", " ");
    let row = |line: &str| {
        let (op, errors) = line.split_once(':').expect("an operation");
        let status = |name: &str| {
            let name = format!("NFS4ERR_{name}");
            statuses().find(|s| s.known_name() == Some(&*name)).unwrap_or_else(|| panic!("{name}"))
        };
        let op = operations().find(|number| number.known_name() == Some(&*op.to_lowercase()));
        Some((op?, errors.split_whitespace().map(status).collect()))
    };
    rows.lines().filter_map(row).collect()
});

fn statuses() -> impl Iterator<Item = Nfsstat4> {
    (0..100).chain(10_000..10_100).map(Nfsstat4)
}

fn operations() -> impl Iterator<Item = Opnum4> {
    (0..80).chain([Opnum4::ILLEGAL.0]).map(Opnum4)
}

/// That a result is one that RFC 8881 allows for the operation. Operations of 4.2 are not in its
/// table, but for them too there is no NFS4ERR_RESOURCE.
pub fn check(minor: u32, op: u8, status: Nfsstat4) {
    if minor == 0 || status.is_ok() {
        return;
    }
    assert_ne!(status, Nfsstat4::RESOURCE, "operation {op}");
    let op = Opnum4(op.into());
    let Some(allowed) = TABLE.get(&op) else { return };
    assert!(allowed.contains(&status), "{op:?}: {status:?}");
}

#[test]
fn a_reached_limit_is_an_error_that_the_table_allows() {
    for (op, allowed) in &*TABLE {
        // Only what adds or splits state can be short of room.
        let adds = [Opnum4::OPEN, Opnum4::LOCK, Opnum4::LOCKU, Opnum4::LOCKT];
        if adds.contains(op) {
            assert!(allowed.contains(&exhausted(*op)), "{op:?}: {:?}", exhausted(*op));
        }
        assert!(!allowed.contains(&Nfsstat4::RESOURCE), "{op:?}");
    }
    assert!(TABLE.len() > 50, "the whole table: {}", TABLE.len());
}
