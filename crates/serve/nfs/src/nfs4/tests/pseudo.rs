//! The pseudo file system, and file handles.

use super::*;

#[test]
fn the_root_leads_to_every_share() {
    let world = World::new(&["alpha", "beta"]);
    let answer = world.run(0, &[ArgOp::Putrootfh(()), readdir(0, [0; 8], 4000)]);
    assert_eq!(names_of(&answer), [(3, "export".to_owned())]);
    let export = [ArgOp::Putrootfh(()), lookup(b"export")];
    let answer = world.run(0, &[&export[..], &[readdir(0, [0; 8], 4000)]].concat());
    assert_eq!(names_of(&answer), [(3, "alpha".to_owned()), (4, "beta".to_owned())]);
    let fsid = |path: &[ArgOp<'_>]| {
        let answer = world.run(0, &[path, &[getattr(&[attr4::FSID, attr4::FILEID])]].concat());
        attrs(&answer).fsid
    };
    let share = [&export[..], &[lookup(b"alpha")]].concat();
    assert_ne!(fsid(&export), fsid(&share), "a share is another file system");
    let missing = world.run(0, &[&export[..], &[lookup(b"gamma")]].concat());
    assert_eq!(missing.status, Nfsstat4::NOENT);
}

#[test]
fn a_share_shows_what_it_is_mounted_on() {
    let world = World::new(&["alpha", "beta"]);
    let export = [ArgOp::Putrootfh(()), lookup(b"export")];
    let answer = world.run(0, &[&export[..], &[readdir(0, [0; 8], 4000)]].concat());
    let ResOp::Readdir(Res4::Ok(ok)) = answer.last() else { panic!() };
    let listed: Vec<_> =
        ok.entries.iter().map(|e| e.attrs.values().unwrap().mounted_on_fileid).collect();
    for (name, listed) in [b"alpha".as_slice(), b"beta"].into_iter().zip(listed) {
        let share = [lookup(name), getattr(&[attr4::MOUNTED_ON_FILEID])];
        let answer = world.run(0, &[&export[..], &share].concat());
        assert_eq!(attrs(&answer).mounted_on_fileid, listed);
    }
}

#[test]
fn nothing_can_be_made_above_the_shares() {
    let world = World::new(&["a"]);
    assert_eq!(world.run(0, &[ArgOp::Putrootfh(()), mkdir(b"x")]).status, Nfsstat4::ROFS);
}

#[test]
fn the_way_up_ends_at_the_root() {
    let world = World::new(&["a"]);
    let up = ArgOp::Lookupp(());
    let fileid = getattr(&[attr4::FILEID]);
    let answer = world.at_share(&[mkdir(b"d"), up.clone(), up.clone(), up.clone(), fileid]);
    assert_eq!(attrs(&answer).fileid, Some(1));
    let answer = world.at_share(&[up.clone(), up.clone(), up]);
    assert_eq!(answer.status, Nfsstat4::NOENT);
}

#[test]
fn handles_come_back() {
    let world = World::new(&["a"]);
    for path in [&[][..], &[lookup(b"export")], &[lookup(b"export"), lookup(b"a")]] {
        let here = [&[ArgOp::Putrootfh(())], path, &[ArgOp::Getfh(())]].concat();
        let answer = world.run(0, &here);
        let ResOp::Getfh(Res4::Ok(ok)) = answer.last() else { panic!() };
        let back = [ArgOp::Putfh(PutfhArgs4 { object: ok.object }), ArgOp::Getfh(())];
        assert_eq!(world.run(0, &back).last(), answer.last());
    }
    let cases: [(&[u8], Nfsstat4); 3] = [
        (b"", Nfsstat4::BADHANDLE),
        (b"nonsense", Nfsstat4::BADHANDLE),
        (&[7; 128], Nfsstat4::BADHANDLE),
    ];
    for (handle, status) in cases {
        let answer = world.run(0, &[ArgOp::Putfh(PutfhArgs4 { object: Fh4(handle) })]);
        assert_eq!(answer.status, status);
    }
}

#[test]
fn the_saved_handle_is_restored() {
    let world = World::new(&["a"]);
    let (save, restore) = (ArgOp::Savefh(()), ArgOp::Restorefh(()));
    let there =
        [ArgOp::Putrootfh(()), save.clone(), lookup(b"export"), restore.clone(), lookup(b"export")];
    assert_eq!(world.run(0, &there).status, Nfsstat4::OK);
    assert_eq!(world.run(0, std::slice::from_ref(&restore)).status, Nfsstat4::RESTOREFH);
    assert_eq!(world.run(1, &[sequence(9000), restore]).status, Nfsstat4::NOFILEHANDLE);
    assert_eq!(world.run(0, &[save]).status, Nfsstat4::NOFILEHANDLE);
    assert_eq!(world.run(0, &[ArgOp::Getfh(())]).status, Nfsstat4::NOFILEHANDLE);
}

#[test]
fn security_is_returned() {
    let world = World::new(&["a"]);
    let secinfo = ArgOp::Secinfo(SecinfoArgs4 { name: Component4(b"export") });
    let answer = world.run(0, &[ArgOp::Putrootfh(()), secinfo.clone()]);
    let ResOp::Secinfo(Res4::Ok(ok)) = answer.last() else { panic!() };
    assert_eq!(seq_of(&ok.flavors), [1, 0]);
    // From 4.1 on it uses the current file handle up.
    let ops = [sequence(9000), ArgOp::Putrootfh(()), secinfo, ArgOp::Getfh(())];
    assert_eq!(world.run(1, &ops).status, Nfsstat4::NOFILEHANDLE);
    let no_name = ArgOp::SecinfoNoName(SecinfoNoNameArgs4 { style: 1 });
    let ops = [sequence(9000), ArgOp::Putrootfh(()), no_name];
    assert_eq!(world.run(1, &ops).status, Nfsstat4::NOENT);
}
