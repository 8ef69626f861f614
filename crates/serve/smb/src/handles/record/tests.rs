//! Tests of records of persistent handles.

use super::*;

fn record() -> Record {
    Record {
        user: "alice".to_owned(),
        share: "share".to_owned(),
        path: b"/share/dir/f\xff".to_vec(),
        handle: Handle::new(&[7; 30]).expect("a handle"),
        file: FileKey { fsid: 1, fileid: 2, generation: 3 },
        address: IpAddr::from([192, 0, 2, 1]),
        client: [4; 16],
        guid: [5; 16],
        timeout_ms: 60_000,
        access: 0x12_0089,
        mode: Share { access: 3, deny: 7 },
        options: 2,
        delete_on_close: true,
        is_marked: false,
        lease: Some(([6; 16], true)),
        sequences: vec![None, Some(3)],
        ranges: vec![
            (Range { start: 0, end: 9 }, Kind::Write),
            (Range { start: 5, end: u64::MAX }, Kind::Read),
        ],
    }
}

#[test]
fn what_is_written_is_read() {
    let one = record();
    assert_eq!(Record::decode(&one.encode()), Some(one));
    let other = Record {
        address: "2001:db8::1".parse().expect("an address"),
        delete_on_close: false,
        is_marked: true,
        lease: None,
        sequences: Vec::new(),
        ranges: Vec::new(),
        ..record()
    };
    assert_eq!(Record::decode(&other.encode()), Some(other));
}

#[test]
fn what_is_cut_or_longer_or_of_another_version_is_none() {
    let whole = record().encode();
    for length in 0..whole.len() {
        assert_eq!(Record::decode(&whole[..length]), None, "{length} bytes");
    }
    assert_eq!(Record::decode(&[&whole[..], &[0]].concat()), None);
    let mut newer = whole.clone();
    newer[0] = LAYOUT + 1;
    assert_eq!(Record::decode(&newer), None);
    let mut wrong = whole;
    *wrong.last_mut().expect("a kind") = 2;
    assert_eq!(Record::decode(&wrong), None, "an unknown kind of lock");
}
