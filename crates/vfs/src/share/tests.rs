//! Shares are found by path and by handle; a read-only one refuses every change.

use super::*;
use crate::acl::AclKind;
use crate::attr::SetAttr;
use crate::conformance::{cx, root};
use crate::fs::{CreateHow, SetXattr, Special, Stable, access};
use crate::mem::MemFs;
use crate::status::Status;

fn mem(name: &str) -> Arc<MemFs> {
    MemFs::new(tag(name), 1 << 20)
}

#[test]
fn found_by_path_and_handle() {
    let mut table = ShareTable::default();
    for name in ["home", "data"] {
        let share = table.add(name, mem(name), false).expect("new");
        assert_eq!(share.export_path(), format!("/export/{name}"));
    }
    for share in table.iter() {
        let path = share.export_path();
        let by = [
            table.by_path(path.as_bytes()),
            table.by_path(format!("{path}/").as_bytes()),
            table.by_handle(&share.fs.root()),
            table.by_id(share.id),
        ];
        assert!(by.iter().all(|found| found.is_some_and(|found| Arc::ptr_eq(found, share))));
    }
    assert!(table.by_path(b"/export/other").is_none() && table.by_path(b"/home").is_none());
    assert!(table.by_handle(&mem("other").root()).is_none() && table.by_id(0).is_none());
}

#[test]
fn wrong_shares_are_refused() {
    let mut table = ShareTable::default();
    table.add("home", mem("home"), false).expect("new");
    let again = table.add("home", mem("home"), false).err();
    assert_eq!(again, Some(ShareError::NameInUse("home".into())));
    let wrong = table.add("data", mem("home"), false).err();
    assert_eq!(wrong, Some(ShareError::WrongTag("data".into())));
}

#[test]
fn numbers_stay_when_others_go() {
    let mut table = ShareTable::default();
    for name in ["home", "data", "tank"] {
        table.add(name, mem(name), false).expect("new");
    }
    let gone = table.remove("home").expect("there");
    assert!(table.remove("home").is_none());
    assert!(table.by_handle(&gone.fs.root()).is_none() && has_form(&gone.fs.root()));
    assert!(table.by_id(gone.id).is_none() && table.by_path(b"/export/home").is_none());
    let numbers = |table: &ShareTable| table.iter().map(|share| share.id).collect::<Vec<_>>();
    assert_eq!(numbers(&table), [2, 3]);
    let new = |name, id| New {
        snapshots: None,
        tree: 0,
        name,
        fs: mem(name),
        read_only: false,
        id,
        rules: ServiceRules::default(),
    };
    for taken in [0, 3] {
        let error = table.put(new("home", taken)).err();
        assert_eq!(error, Some(ShareError::Number("home".into())));
    }
    let again = table.put(new("home", 1)).expect("new");
    // What was found out about the one before does not hold for it.
    let generation = |share: &Share| share.rules_for(Service::Nfs).generation();
    assert_ne!(generation(&again), generation(&gone));
    assert_eq!(numbers(&table), [1, 2, 3]);
}

#[test]
fn read_only_refuses_every_change() {
    let inner = mem("home");
    let who = root();
    let cx = cx(&who);
    let how = CreateHow::Unchecked(SetAttr::default());
    let made = inner.create(cx, &inner.root(), b"file", how).expect("made");
    let file = made.value.handle;
    let mut table = ShareTable::default();
    let fs = &table.add("home", inner, true).expect("new").fs;
    let (top, set) = (fs.root(), SetAttr::default());
    let special = Special { kind: crate::attr::FileType::Fifo, rdev: (0, 0) };
    let refused = [
        fs.setattr(cx, &file, &set, None).err(),
        fs.write(cx, &file, 0, b"x", Stable::Unstable).err(),
        fs.commit(cx, &file).err(),
        fs.create(cx, &top, b"new", how).err(),
        fs.mkdir(cx, &top, b"new", &set).err(),
        fs.symlink(cx, &top, b"new", b"x", &set).err(),
        fs.mknod(cx, &top, b"new", special, &set).err(),
        fs.remove(cx, &top, b"file").err(),
        fs.rmdir(cx, &top, b"file").err(),
        fs.rename(cx, (&top, b"file"), (&top, b"new")).err(),
        fs.link(cx, &file, &top, b"new").err(),
        fs.allocate(cx, &file, 0, 1).err(),
        fs.deallocate(cx, &file, 0, 1).err(),
        fs.copy_range(cx, (&file, 0), (&file, 0), 0).err(),
        fs.clone_range(cx, (&file, 0), (&file, 0), 0).err(),
        fs.set_xattr(cx, &file, b"a", b"1", SetXattr::Either).err(),
        fs.remove_xattr(cx, &file, b"a").err(),
        fs.set_acl(cx, &file, AclKind::Access, None).err(),
    ];
    for (n, failed) in refused.into_iter().enumerate() {
        let failed = failed.unwrap_or_else(|| panic!("change {n} was let through"));
        assert_eq!(failed.status, Status::ReadOnly);
        assert!(failed.wcc.after.is_some());
    }
    let want = access::READ | access::MODIFY | access::EXTEND;
    assert_eq!(fs.access(cx, &file, want).map(|a| a.0), Ok(access::READ));
    assert!(fs.lookup(cx, &top, b"file").is_ok() && fs.lookup(cx, &top, b"new").is_err());
}
