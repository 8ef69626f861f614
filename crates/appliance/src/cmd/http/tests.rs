//! How the table of locks reads.

use control::nfs::Listing;

use super::*;

#[test]
fn locks_stand_in_columns() {
    let lock = DavLock {
        id: "0f3c2a11-7be4".into(),
        user: "anna".into(),
        client: Some("10.0.0.7".into()),
        label: "10.0.0.7".into(),
        file: "/tank/a".into(),
        share: "tank".into(),
        scope: "exclusive".into(),
        depth: "0".into(),
        owner: "anna at home".into(),
        since: Some(1_700_000_000),
        timeout_s: 600,
        left_s: 5,
    };
    let older = DavLock { id: "0f3c2a11-8be4".into(), since: None, ..lock.clone() };
    let text = table(&LOCKS, &Listing { rows: vec![lock, older], more: false }, NONE);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[1].starts_with("0f3c2a11-7be4  anna  10.0.0.7  exclusive  0      2023-11-14"));
    assert!(lines[1].ends_with("/tank/a  anna at home"), "{text}");
    assert_eq!(lines[1].find("/tank/a"), lines[2].find("/tank/a"));
    let none = table(&LOCKS, &Listing { rows: Vec::new(), more: false }, NONE);
    assert_eq!(none, "no WebDAV client holds a lock\n");
}
