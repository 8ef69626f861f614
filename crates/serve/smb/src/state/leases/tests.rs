//! Keys of leases, and mail.

use vfs::locks::{Caching, ClientKey, Protocol};

use super::*;

fn owner(id: u8) -> Owner {
    let client = ClientKey { protocol: Protocol::Smb, id: 1 };
    Owner::new(client, &[id]).expect("short")
}

fn file(fileid: u64) -> FileKey {
    FileKey { fsid: 1, fileid, generation: 0 }
}

#[test]
fn a_key_is_for_one_file_of_a_client() {
    let keys = Arc::<LeaseKeys>::default();
    let key = ([1; 16], [2; 16]);
    let first = keys.take(key, file(1), (&owner(1), true)).expect("free");
    let second = keys.take(key, file(1), (&owner(1), false)).expect("the same file");
    assert!(second.has_epoch, "its version stays");
    assert!(keys.take(key, file(2), (&owner(1), true)).is_none(), "another file");
    assert!(keys.take(([3; 16], [2; 16]), file(2), (&owner(2), true)).is_some(), "another client");
    drop(first);
    assert_eq!(keys.find(key), Some((file(1), owner(1))));
    drop(second);
    assert_eq!(keys.find(key), None);
    assert!(keys.take(key, file(2), (&owner(1), true)).is_some(), "free again");
}

#[test]
fn mail_is_taken_once_and_in_order() {
    let mailbox = Arc::<Mailbox>::default();
    assert!(mailbox.take().is_empty());
    let form = Form::Lease([2; 16], true);
    let route = Route::Mail { mailbox: Arc::clone(&mailbox), session: 5, form };
    let notice = Notice(Arc::new(Mutex::new(route)));
    assert!(notice.is_reachable());
    for epoch in 1..=2 {
        let (from, to) = (Caching::ALL, Caching::READ);
        notice.recall(file(1), &owner(1), Break { from, to, epoch, must_acknowledge: true });
    }
    let epochs: Vec<_> = mailbox.take().iter().map(|mail| mail.what.epoch).collect();
    assert_eq!(epochs, [1, 2]);
    assert!(mailbox.take().is_empty());
}
