//! How the tables read.

use control::nfs::{Listing, NfsFile};

use super::*;

fn client() -> NfsClient {
    NfsClient {
        id: "nfs4-0000000300000001".into(),
        protocol: "nfs4".into(),
        version: "4.2".into(),
        addresses: vec!["10.0.0.7".into()],
        label: "10.0.0.7 (anna)".into(),
        name: "Linux NFSv4.2 anna".into(),
        principal: "root".into(),
        state: "active".into(),
        silent_s: Some(1.5),
        sessions: 1,
        opens: 12,
        locks: 3,
        waiting: 2,
        delegations: 0,
    }
}

#[test]
fn clients_stand_in_columns() {
    let short = NfsClient { label: "::1".into(), silent_s: Some(0.0), waiting: 0, ..client() };
    let text = table(&CLIENTS, &Listing { rows: vec![client(), short], more: true }, NO_CLIENT);
    let expected = "\
id                     client           version  state   silent  sessions  opens  locks  \
delegations  user  name
nfs4-0000000300000001  10.0.0.7 (anna)  4.2      active   1.5 s         1     12    3+2            \
0  root  Linux NFSv4.2 anna
nfs4-0000000300000001  ::1              4.2      active    0 ns         1     12      3            \
0  root  Linux NFSv4.2 anna
# first 2 only
";
    assert_eq!(text, expected);
    let none = table(&CLIENTS, &Listing { rows: Vec::new(), more: false }, NO_CLIENT);
    assert!(none.contains("no NFS client") && none.ends_with('\n'));
}

#[test]
fn locks_show_where_and_whether_they_are_held() {
    let lock = NfsLock {
        client: "nlm-0000000000000001".into(),
        protocol: "nlm".into(),
        label: "10.0.0.8".into(),
        file: NfsFile { file: "/export/tank/a".into(), share: Some("tank".into()) },
        kind: "write".into(),
        offset: 100,
        length: None,
        waiting: true,
        owner: "x".into(),
    };
    let held = NfsLock { length: Some(7), waiting: false, ..lock.clone() };
    let text = table(&LOCKS, &Listing { rows: vec![lock, held], more: false }, "none");
    let lines: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split("  ").filter(|cell| !cell.is_empty()).collect())
        .collect();
    assert_eq!(lines.len(), 3);
    let cells = |n: usize| lines[n].iter().map(|cell| cell.trim()).collect::<Vec<_>>();
    assert_eq!(cells(1)[3..6], ["100", "to the end", "waits"]);
    assert_eq!(cells(2)[3..7], ["100", "7", "held", "/export/tank/a"]);
}
