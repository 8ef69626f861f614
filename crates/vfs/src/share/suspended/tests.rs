//! A suspended share has its handles, and each call on it is to be repeated.

use super::*;
use crate::conformance::{cx, root};
use crate::mem::MemFs;

#[test]
fn calls_on_a_suspended_share_are_to_be_repeated() {
    let files = MemFs::new(crate::share::tag("home"), 1 << 20);
    let suspended = Suspended::new(&*files);
    let (cred, top) = (root(), files.root());
    // On a connection's thread as on the pool: nothing is to be waited for.
    for cx in [cx(&cred), Context { may_block: false, ..cx(&cred) }] {
        assert_eq!(suspended.root(), top);
        assert_eq!(suspended.getattr(cx, &top).err(), Some(Status::Busy));
        assert_eq!(suspended.file_key(cx, &top).err(), Some(Status::Busy));
        let found = suspended.lookup(cx, &top, b"x");
        assert_eq!(found.map_err(|failed| failed.status).err(), Some(Status::Busy));
        let removed = suspended.remove(cx, &top, b"x");
        assert_eq!(removed.map_err(|failed| failed.status).err(), Some(Status::Busy));
    }
}
