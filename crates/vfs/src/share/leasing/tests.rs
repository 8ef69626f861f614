//! Each change through a share recalls the delegation that is in its way, and nothing else does.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::conformance::{self, Bench};
use crate::cred::Cred;
use crate::locks::{
    Break, ByClient, ByOwners, Caching, ClientKey, Looked, Owner, Protocol, Recall, SHARE_DELETE,
    SHARE_READ, SHARE_WRITE, Share, Unflushed,
};
use crate::mem::MemFs;

#[derive(Default)]
struct RecallCount(AtomicU64);

impl Recall for RecallCount {
    fn recall(&self, _: FileKey, _: &Owner, _: Break) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

const HOLDER: ClientKey = ClientKey { protocol: Protocol::Nfs4, id: 1 };

struct Scene {
    fs: Leasing,
    locks: Arc<LockTable>,
    cred: Cred,
}

impl Scene {
    fn new() -> Self {
        let locks = Arc::<LockTable>::default();
        let inner = MemFs::new(crate::share::tag("test"), 1 << 30);
        Self { fs: Leasing::new(inner, Arc::clone(&locks)), locks, cred: Cred::root() }
    }
    fn cx(&self) -> Context<'_> {
        Context { cred: &self.cred, may_block: true }
    }
    fn file(&self, name: &str) -> Entry {
        let how = CreateHow::Guarded(SetAttr::default());
        self.fs.create(self.cx(), &self.fs.root(), name.as_bytes(), how).expect("made").value
    }
    /// Checks the result of `change` while another client has a lease on `file`, the number of
    /// recalls sent, and the result after the lease was returned.
    fn under_lease(
        &self,
        what: &str,
        kind: Caching,
        file: &Handle,
        change: &dyn Fn() -> std::result::Result<(), Status>,
    ) {
        let (recalls, owner) =
            (Arc::<RecallCount>::default(), Owner::new(HOLDER, b"o").expect("short"));
        let attr = self.fs.getattr(self.cx(), file).expect("there");
        let id = self.fs.change_slot(file);
        self.locks.grant(id, &attr, &owner, kind, recalls.clone()).expect("nobody writes");
        assert_eq!(change(), Err(Status::Busy), "{what}");
        assert_eq!(change(), Err(Status::Busy), "{what} again");
        assert_eq!(recalls.0.load(Ordering::Relaxed), 1, "{what}: told once");
        assert!(self.locks.end_lease(FileKey::from(&attr), &owner));
        assert_eq!(change(), Ok(()), "{what} after it was given back");
    }
}

fn ok<T>(change: Change<T>) -> std::result::Result<(), Status> {
    change.map(drop).map_err(|failed| failed.status)
}

#[test]
fn each_change_recalls() {
    let s = Scene::new();
    let (root, file, other) = (s.fs.root(), s.file("file").handle, s.file("other").handle);
    let read = Caching::READ;
    let under = |what, change: &dyn Fn() -> _| s.under_lease(what, read, &file, change);
    let acl = Acl::from_mode(0o600);
    under("WRITE", &|| ok(s.fs.write(s.cx(), &file, 0, b"x", Stable::Unstable)));
    under("SETATTR", &|| ok(s.fs.setattr(s.cx(), &file, &SetAttr::default(), None)));
    under("ALLOCATE", &|| ok(s.fs.allocate(s.cx(), &file, 0, 10)));
    under("DEALLOCATE", &|| ok(s.fs.deallocate(s.cx(), &file, 0, 10)));
    under("COPY", &|| ok(s.fs.copy_range(s.cx(), (&other, 0), (&file, 0), 0)));
    under("SETXATTR", &|| ok(s.fs.set_xattr(s.cx(), &file, b"a", b"1", SetXattr::Either)));
    under("REMOVEXATTR", &|| ok(s.fs.remove_xattr(s.cx(), &file, b"a")));
    // What the back end cannot do it refuses once the way is free.
    under("an ACL", &|| match ok(s.fs.set_acl(s.cx(), &file, AclKind::Access, Some(&acl))) {
        Err(Status::NotSupported) => Ok(()),
        other => other,
    });
    let cut = CreateHow::Unchecked(SetAttr { size: Some(0), ..SetAttr::default() });
    under("CREATE that cuts", &|| ok(s.fs.create(s.cx(), &root, b"file", cut)));
    under("RENAME", &|| ok(s.fs.rename(s.cx(), (&root, b"file"), (&root, b"renamed"))));
    under("RENAME over it", &|| ok(s.fs.rename(s.cx(), (&root, b"other"), (&root, b"renamed"))));
    let file = s.file("file").handle;
    let under = |what, change: &dyn Fn() -> _| s.under_lease(what, read, &file, change);
    under("LINK", &|| ok(s.fs.link(s.cx(), &file, &root, b"second")));
    let third = s.file("third").handle;
    s.under_lease("REMOVE", read, &third, &|| ok(s.fs.remove(s.cx(), &root, b"third")));
}

#[test]
fn looks_recall_only_what_is_kept_back() {
    let s = Scene::new();
    let file = s.file("file").handle;
    let using = Using::fresh();
    let read = || s.fs.read(s.cx(), &file, 0, &mut [0]).map(drop);
    s.under_lease("READ", Caching::READ_WRITE, &file, &read);
    let attributes = || s.fs.getattr(s.cx(), &file).map(drop);
    s.under_lease("GETATTR", Caching::READ_WRITE, &file, &attributes);
    let (recalls, owner) =
        (Arc::<RecallCount>::default(), Owner::new(HOLDER, b"o").expect("short"));
    let attr = s.fs.getattr(s.cx(), &file).expect("there");
    let id = s.fs.change_slot(&file);
    s.locks.grant(id, &attr, &owner, Caching::READ, recalls.clone()).expect("free");
    assert_eq!((read(), attributes()), (Ok(()), Ok(())));
    let acting = ByClient::acting(HOLDER);
    assert_eq!(ok(s.fs.write(s.cx(), &file, 0, b"x", Stable::Unstable)), Ok(()), "its own");
    drop(acting);
    assert_eq!(recalls.0.load(Ordering::Relaxed), 0);
    let stranger = ok(s.fs.write(s.cx(), &file, 0, b"x", Stable::Unstable));
    assert_eq!(stranger, Err(Status::Busy), "it acts for nobody again");
    drop(using);
}

/// A holder that reports this.
struct Holder(std::sync::Mutex<Looked>, RecallCount);

impl Recall for Holder {
    fn recall(&self, key: FileKey, owner: &Owner, what: Break) {
        self.1.recall(key, owner, what);
    }
    fn look(&self, uses: bool) -> Looked {
        let mut says = self.0.lock().expect("no panic");
        let said = *says;
        if let Looked::Reported(unflushed) = &mut *says {
            unflushed.is_new &= !uses;
        }
        said
    }
}

#[test]
fn a_lease_of_another_file_with_the_same_slot_is_not_met() {
    let s = Scene::new();
    let (held, file) = (s.file("held"), s.file("file").handle);
    let (recalls, owner) =
        (Arc::<RecallCount>::default(), Owner::new(HOLDER, b"o").expect("short"));
    let slot = s.fs.change_slot(&file);
    let all = Caching::READ_WRITE;
    s.locks.grant(slot, &held.attr, &owner, all, recalls.clone()).expect("it is not open");
    assert!(s.locks.is_leased(slot) && s.locks.is_written_back(slot));
    let _fresh = Using::fresh();
    let attr = s.fs.getattr(s.cx(), &file).expect("as it is stored");
    assert_eq!(FileKey::from(&attr), s.fs.file_key(s.cx(), &file).expect("its key"));
    assert_eq!(ok(s.fs.write(s.cx(), &file, 0, b"x", Stable::Unstable)), Ok(()));
    assert_eq!(s.fs.read(s.cx(), &file, 0, &mut [0; 1]).map(|done| done.count), Ok(1));
    assert_eq!(recalls.0.load(Ordering::Relaxed), 0);
}

#[test]
fn attributes_are_those_that_the_holder_reports_with_a_new_change_each_time() {
    let s = Scene::new();
    let file = s.file("file").handle;
    let attr = s.fs.getattr(s.cx(), &file).expect("there");
    let holder = Arc::new(Holder(std::sync::Mutex::new(Looked::Pending), RecallCount::default()));
    let owner = Owner::new(HOLDER, b"o").expect("short");
    let id = s.fs.change_slot(&file);
    s.locks.grant(id, &attr, &owner, Caching::READ_WRITE, holder.clone()).expect("free");
    let look = || s.fs.getattr(s.cx(), &file);
    assert_eq!(look().map(|attr| attr.size), Ok(0), "who opens files has met it before");
    let _using = Using::fresh();
    let inline = Context { may_block: false, ..s.cx() };
    assert_eq!(look().err(), Some(Status::Busy), "it was asked");
    let say = |size, change| {
        let granted_change = attr.change;
        let known = Unflushed { size, change, granted_change, is_new: true };
        *holder.0.lock().expect("no panic") = Looked::Reported(known);
    };
    say(0, attr.change);
    assert_eq!(look(), Ok(attr), "nothing was written");
    say(5, attr.change + 1);
    assert_eq!(s.fs.getattr(inline, &file).err(), Some(Status::WouldBlock), "times are to be set");
    let first = look().expect("known");
    assert_eq!(first.size, 5);
    assert!(first.change > attr.change);
    assert_eq!(look().map(|attr| (attr.size, attr.change)), Ok((5, first.change)), "one answer");
    say(5, attr.change + 1);
    let second = look().expect("known");
    assert!(second.change > first.change);
    let own = ByClient::acting(HOLDER);
    assert_eq!(look().map(|attr| attr.size), Ok(0), "the holder sees what is stored");
    drop(own);
    assert_eq!(holder.1.0.load(Ordering::Relaxed), 0, "nothing was recalled");
    *holder.0.lock().expect("no panic") = Looked::Unknown;
    assert_eq!(look().err(), Some(Status::Busy));
    assert_eq!(holder.1.0.load(Ordering::Relaxed), 1, "it must return it");
    assert!(s.locks.end_lease(FileKey::from(&attr), &owner));
    assert_eq!(look().map(|attr| attr.size), Ok(0));
}

#[test]
fn what_the_holder_writes_is_no_change_by_a_local_program() {
    let s = Scene::new();
    let file = s.file("file").handle;
    let attr = s.fs.getattr(s.cx(), &file).expect("there");
    let (recalls, owner) =
        (Arc::<RecallCount>::default(), Owner::new(HOLDER, b"o").expect("short"));
    let key = FileKey::from(&attr);
    let id = s.fs.change_slot(&file);
    s.locks.grant(id, &attr, &owner, Caching::READ_WRITE, recalls.clone()).expect("free");
    let acting = ByClient::acting(HOLDER);
    assert_eq!(ok(s.fs.write(s.cx(), &file, 0, b"x", Stable::Unstable)), Ok(()));
    drop(acting);
    s.locks.changed_on_host(key);
    assert_eq!(recalls.0.load(Ordering::Relaxed), 0);
    assert!(s.locks.end_lease(key, &owner));
    s.locks.grant(id, &attr, &owner, Caching::READ, recalls.clone()).expect("free");
    s.locks.changed_on_host(key);
    assert_eq!(recalls.0.load(Ordering::Relaxed), 1, "one for reading has no such writes");
}

#[test]
fn changes_are_noticed_where_clients_wait_for_them() {
    use crate::notice::Interest;
    let s = Scene::new();
    let (root, calls) = (s.fs.root(), Arc::<AtomicU64>::default());
    let register = |dir: &Handle, kinds, below| {
        let calls = Arc::clone(&calls);
        let dir = s.fs.file_key(s.cx(), dir).expect("there");
        let interest = Interest { dir, kinds, below, is_watched: false };
        let notify = Box::new(move || {
            calls.fetch_add(1, Ordering::Relaxed);
        });
        s.locks.notices().register(interest, notify)
    };
    let noticed = |what: &str, change: std::result::Result<(), Status>, expected: u64| {
        assert_eq!(change, Ok(()), "{what}");
        s.locks.notices().sweep();
        assert_eq!(calls.swap(0, Ordering::Relaxed), expected, "{what}");
    };
    let how = || CreateHow::Guarded(SetAttr::default());
    let dir = s.fs.mkdir(s.cx(), &root, b"dir", &SetAttr::default()).expect("made").value.handle;
    let (names, data) = (Changes::NAMES, Changes::DATA);
    let watch = register(&dir, names, false);
    noticed("a name", ok(s.fs.create(s.cx(), &dir, b"a", how())), 1);
    noticed("elsewhere", ok(s.fs.create(s.cx(), &root, b"b", how())), 0);
    noticed("moved in", ok(s.fs.rename(s.cx(), (&root, b"b"), (&dir, b"b"))), 1);
    let file = s.fs.lookup(s.cx(), &dir, b"a").expect("there").0.handle;
    let write = || ok(s.fs.write(s.cx(), &file, 0, b"x", Stable::Unstable));
    noticed("data is another kind", write(), 0);
    noticed("removed", ok(s.fs.remove(s.cx(), &dir, b"b")), 1);
    drop(watch);
    noticed("nobody waits", ok(s.fs.create(s.cx(), &dir, b"c", how())), 0);
    let _below = register(&root, names.with(data), true);
    noticed("data below", write(), 1);
    noticed("a name below", ok(s.fs.create(s.cx(), &dir, b"d", how())), 1);
    noticed("attributes", ok(s.fs.setattr(s.cx(), &file, &SetAttr::default(), None)), 0);
    let cut = SetAttr { size: Some(0), ..SetAttr::default() };
    noticed("a size", ok(s.fs.setattr(s.cx(), &file, &cut, None)), 1);
}

#[test]
fn a_name_that_an_open_keeps_stays() {
    let s = Scene::new();
    let root = s.fs.root();
    s.file("other");
    let dir = s.fs.mkdir(s.cx(), &root, b"dir", &SetAttr::default()).expect("made").value;
    let file = s.file("file");
    let remove = || ok(s.fs.remove(s.cx(), &root, b"file"));
    let rename = || ok(s.fs.rename(s.cx(), (&root, b"file"), (&root, b"new")));
    let replace = || ok(s.fs.rename(s.cx(), (&root, b"other"), (&root, b"file")));
    let rmdir = || ok(s.fs.rmdir(s.cx(), &root, b"dir"));
    let client = |protocol| ClientKey { protocol, id: 9 };
    let (file, dir) = (FileKey::from(&file.attr), FileKey::from(&dir.attr));
    for (protocol, deny, keeps) in [
        (Protocol::Nfs4, SHARE_WRITE, true),
        (Protocol::Nfs4, SHARE_READ, false),
        (Protocol::Nfs4, 0, false),
        (Protocol::Nlm, SHARE_WRITE, false),
        (Protocol::Http, SHARE_DELETE, true),
        (Protocol::Http, SHARE_WRITE, false),
        (Protocol::Http, SHARE_DELETE, true),
    ] {
        let what = format!("{protocol:?} denies {deny}");
        let owner = Owner::new(client(protocol), b"o").expect("short");
        let share = Share { access: SHARE_READ, deny };
        s.locks.open(file, &owner, share).expect("free");
        s.locks.open(dir, &owner, share).expect("free");
        assert_eq!(s.locks.has_name_keepers(), keeps, "{what}");
        if keeps {
            for change in [&remove as &dyn Fn() -> _, &rename, &replace, &rmdir] {
                assert_eq!(change(), Err(Status::InUse), "{what}");
            }
            let acting = ByClient::acting(client(protocol));
            assert!(s.locks.may_rename(file), "{what}: its own");
            drop(acting);
            let acting = ByOwners::acting(std::slice::from_ref(&owner));
            assert!(s.locks.may_rename(file), "{what}: its own");
            drop(acting);
            assert_eq!(remove(), Err(Status::InUse), "{what}: it acts for nobody again");
        } else {
            assert!(s.locks.may_rename(file) && s.locks.may_rename(dir), "{what}");
        }
        s.locks.close(file, &owner);
        s.locks.release_client(client(protocol));
        assert!(!s.locks.has_name_keepers(), "{what}");
    }
    assert_eq!((rename(), rmdir()), (Ok(()), Ok(())));
}

#[test]
fn is_otherwise_the_same_tree() {
    let inner = MemFs::new(crate::share::tag("test"), 1 << 30);
    let fs = Arc::new(Leasing::new(inner, Arc::default()));
    conformance::run(&Bench { fs, privileged: true, reopen: None });
}
