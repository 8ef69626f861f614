//! The class of the caller decides alone, even if another class has more.

use super::*;
use crate::attr::Time;

fn file(kind: FileType, mode: u32) -> Attr {
    let time = Time::default();
    Attr {
        kind,
        mode,
        nlink: 1,
        uid: 10,
        gid: 20,
        size: 0,
        used: 0,
        rdev: (0, 0),
        fsid: 1,
        fileid: 1,
        generation: 0,
        atime: time,
        mtime: time,
        ctime: time,
        change: 0,
        birth: None,
    }
}

fn cred(uid: u32, gid: u32, groups: &[u32]) -> Cred {
    Cred { uid, gid, groups: groups.to_vec() }
}

#[test]
fn first_class_that_fits_decides() {
    let attr = file(FileType::Regular, 0o046);
    assert_eq!(granted(&attr, &cred(10, 20, &[])), 0, "the owner is no longer group or other");
    assert_eq!(granted(&attr, &cred(11, 20, &[])), R);
    assert_eq!(granted(&attr, &cred(11, 5, &[7, 20])), R);
    assert_eq!(granted(&attr, &cred(11, 5, &[7])), R | W);
}

#[test]
fn root_may_do_all_but_execute_files_without_execute_bits() {
    assert_eq!(granted(&file(FileType::Regular, 0), &Cred::root()), R | W);
    assert_eq!(granted(&file(FileType::Regular, 0o010), &Cred::root()), R | W | X);
    assert_eq!(granted(&file(FileType::Directory, 0), &Cred::root()), R | W | X);
}

#[test]
fn access_bits() {
    let dir = FileType::Directory;
    assert_eq!(to_access(dir, W), 0, "names cannot be added without searching");
    let all = access::READ | access::LOOKUP | access::MODIFY | access::EXTEND | access::DELETE;
    assert_eq!(to_access(dir, 7), all);
    let all = access::READ | access::MODIFY | access::EXTEND | access::EXECUTE;
    assert_eq!(to_access(FileType::Regular, 7), all);
}
