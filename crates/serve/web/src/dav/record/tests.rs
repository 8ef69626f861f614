//! A record contains all of a lock; a damaged one decodes to none.

use super::*;

#[test]
fn a_record_holds_what_the_lock_was() {
    let lock = Lock {
        token: "opaquelocktoken:1".into(),
        root: b"/share/a\xff".to_vec(),
        file: FileKey { fsid: 1, fileid: u64::MAX, generation: 1 << 63 },
        above: vec![7, 1 << 40],
        user: "anna".into(),
        client: "192.0.2.7".into(),
        since_s: 1_699_999_000,
        exclusive: true,
        deep: false,
        owner: "<owner xmlns=\"DAV:\"/>".into(),
        timeout_s: 600,
        expires_s: 1_700_000_000,
    };
    let shared = Lock { exclusive: false, deep: true, owner: String::new(), ..lock.clone() };
    for lock in [lock, shared] {
        let value = encode(&lock);
        assert_eq!(decode(lock.token.as_bytes(), &value), Some(lock.clone()));
        let alone = value.len() - (4 + 2 * 8);
        let unnumbered = alone - 8;
        let before = unnumbered - (4 + lock.client.len() + 8);
        for cut in (0..value.len()).filter(|cut| ![before, unnumbered, alone].contains(cut)) {
            assert_eq!(decode(lock.token.as_bytes(), &value[..cut]), None);
        }
        // The format before client and time were added.
        let file = FileKey { generation: 0, ..lock.file };
        let above = Vec::new();
        let older = Lock { client: String::new(), since_s: 0, file, above, ..lock.clone() };
        assert_eq!(decode(lock.token.as_bytes(), &value[..before]), Some(older));
        // The format before the generation was added.
        let older = Lock { file, above: Vec::new(), ..lock.clone() };
        assert_eq!(decode(lock.token.as_bytes(), &value[..unnumbered]), Some(older));
        // The format before the directories above were added.
        let older = Lock { above: Vec::new(), ..lock.clone() };
        assert_eq!(decode(lock.token.as_bytes(), &value[..alone]), Some(older));
        let mut longer = value.clone();
        longer.push(0);
        assert_eq!(decode(lock.token.as_bytes(), &longer), None);
    }
}
