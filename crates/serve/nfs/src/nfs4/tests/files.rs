//! Attributes, reading, writing, listing.

use super::*;

#[test]
fn attributes_are_returned() {
    let world = World::new(&["a"]);
    world.file(b"f", b"hello");
    let want = [
        attr4::SUPPORTED_ATTRS,
        attr4::TYPE,
        attr4::SIZE,
        attr4::MODE,
        attr4::OWNER,
        attr4::LEASE_TIME,
        attr4::FILEHANDLE,
        attr4::FILEID,
        attr4::MOUNTED_ON_FILEID,
        attr4::SPACE_TOTAL,
        attr4::HIDDEN,
    ];
    let answer = world.at_share(&[lookup(b"f"), ArgOp::Getfh(()), getattr(&want)]);
    let attrs = attrs(&answer);
    let ResOp::Getfh(Res4::Ok(fh)) = &answer.results[1] else { panic!() };
    assert_eq!(attrs.filehandle, Some(fh.object));
    assert_eq!((attrs.kind, attrs.size, attrs.mode), (Some(Ftype4::REG), Some(5), Some(0o644)));
    assert_eq!((attrs.owner, attrs.lease_time), (Some(Utf8str(b"0")), Some(90)));
    assert_eq!(attrs.fileid, attrs.mounted_on_fileid);
    assert!(attrs.space_total.is_some_and(|bytes| bytes > 0));
    // What is not supported is left out.
    assert_eq!(attrs.hidden, None);
    assert!(
        attrs.supported_attrs.is_some_and(|set| set.has(attr4::SIZE) && !set.has(attr4::HIDDEN))
    );
}

#[test]
fn every_supported_attribute_has_a_value() {
    let world = World::new(&["a"]);
    let all: Vec<u32> = attr4::ALL.iter().map(|(number, _)| *number).collect();
    let readable: Vec<u32> = all.iter().copied().filter(|n| ![48, 54, 81].contains(n)).collect();
    for minor in 0..3 {
        let mut ops = vec![ArgOp::Putrootfh(()), getattr(&readable)];
        if minor > 0 {
            ops.insert(0, sequence(9000));
        }
        let returned = attrs(&world.run(minor, &ops));
        let supported = returned.supported_attrs.expect("supported_attrs");
        assert_eq!(returned.mask(), supported.without(&Bitmap4::of(&[48, 54, 81])));
    }
}

#[test]
fn attributes_that_can_only_be_set_are_not_returned() {
    let world = World::new(&["a"]);
    let answer = world.at_share(&[getattr(&[attr4::TIME_MODIFY_SET])]);
    assert_eq!(answer.status, Nfsstat4::INVAL);
}

#[test]
fn attributes_are_set() {
    let world = World::new(&["a"]);
    world.file(b"f", b"hello");
    let set = |stateid, attrs: Attrs4<'_>| {
        ArgOp::Setattr(SetattrArgs4 { stateid, obj_attributes: fattr(&attrs) })
    };
    let mode = Attrs4 { mode: Some(0o600), owner: Some(Utf8str(b"7")), ..Attrs4::default() };
    let size = Attrs4 { size: Some(2), ..Attrs4::default() };
    let answer = world.at_share(&[
        lookup(b"f"),
        set(Stateid4::ANONYMOUS, mode),
        set(GOOD, size.clone()),
        getattr(&[attr4::MODE, attr4::OWNER, attr4::SIZE]),
    ]);
    let returned = attrs(&answer);
    assert_eq!(
        (returned.mode, returned.owner, returned.size),
        (Some(0o600), Some(Utf8str(b"7")), Some(2))
    );
    let ResOp::Setattr(res) = &answer.results[1] else { panic!() };
    assert_eq!(res.attrsset, Bitmap4::of(&[attr4::MODE, attr4::OWNER]));
    let bad = Stateid4 { seqid: 9, other: [9; 12] };
    let cases = [
        (set(bad, size), Nfsstat4::BAD_STATEID),
        (set(GOOD, Attrs4 { fileid: Some(1), ..Attrs4::default() }), Nfsstat4::INVAL),
        (set(GOOD, Attrs4 { hidden: Some(true), ..Attrs4::default() }), Nfsstat4::ATTRNOTSUPP),
        (set(GOOD, Attrs4 { mode: Some(0o10000), ..Attrs4::default() }), Nfsstat4::INVAL),
        (
            set(GOOD, Attrs4 { owner: Some(Utf8str(b"who")), ..Attrs4::default() }),
            Nfsstat4::BADOWNER,
        ),
    ];
    for (op, status) in cases {
        assert_eq!(world.at_share(&[lookup(b"f"), op]).status, status);
    }
}

#[test]
fn attributes_are_compared() {
    let world = World::new(&["a"]);
    world.file(b"f", b"hello");
    let with = |size| {
        let attrs = Attrs4 { kind: Some(Ftype4::REG), size: Some(size), ..Attrs4::default() };
        VerifyArgs4 { obj_attributes: fattr(&attrs) }
    };
    let cases = [
        (ArgOp::Verify(with(5)), Nfsstat4::OK),
        (ArgOp::Verify(with(6)), Nfsstat4::NOT_SAME),
        (ArgOp::Nverify(with(5)), Nfsstat4::SAME),
        (ArgOp::Nverify(with(6)), Nfsstat4::OK),
    ];
    for (op, status) in cases {
        assert_eq!(world.at_share(&[lookup(b"f"), op]).status, status);
    }
}

#[test]
fn data_is_read_and_written() {
    let world = World::new(&["a"]);
    world.file(b"f", b"hello");
    let write = |stateid| {
        let stable = StableHow4::UNSTABLE;
        ArgOp::Write(WriteArgs4 { stateid, offset: 5, stable, data: b" world" })
    };
    let commit = ArgOp::Commit(CommitArgs4 { offset: 0, count: 0 });
    let answer = world.at_share(&[lookup(b"f"), write(GOOD), commit, read(GOOD, 3, 6)]);
    let ResOp::Read(Res4::Ok(ok)) = answer.last() else { panic!() };
    assert_eq!((ok.data, ok.eof), (&b"lo wor"[..], false));
    let (ResOp::Write(Res4::Ok(w)), ResOp::Commit(Res4::Ok(c))) =
        (&answer.results[1], &answer.results[2])
    else {
        panic!()
    };
    assert_eq!((w.count, w.writeverf), (6, c.writeverf));
    let answer = world.at_share(&[lookup(b"f"), read(Stateid4::BYPASS, 9, 100)]);
    let ResOp::Read(Res4::Ok(ok)) = answer.last() else { panic!() };
    assert_eq!((ok.data, ok.eof), (&b"ld"[..], true));
    let bad = Stateid4 { seqid: 0, other: [1; 12] };
    assert_eq!(world.at_share(&[lookup(b"f"), write(bad)]).status, Nfsstat4::BAD_STATEID);
    assert_eq!(world.at_share(&[read(Stateid4::BYPASS, 0, 1)]).status, Nfsstat4::ISDIR);
    assert_eq!(world.run(0, &[read(Stateid4::BYPASS, 0, 1)]).status, Nfsstat4::NOFILEHANDLE);
}

#[test]
fn read_plus_returns_data_and_the_end() {
    let world = World::new(&["a"]);
    world.file(b"f", b"hello");
    let plus = |offset| {
        let args = ReadPlusArgs4 { stateid: Stateid4::ANONYMOUS, offset, count: 100 };
        let names = [lookup(b"export"), lookup(b"a"), lookup(b"f"), ArgOp::ReadPlus(args)];
        let answer = world.run(2, &[&[sequence(9000), ArgOp::Putrootfh(())][..], &names].concat());
        let ResOp::ReadPlus(Res4::Ok(ok)) = answer.last() else { panic!() };
        ok.clone()
    };
    let data = ReadPlusContent4::Data(Data4 { offset: 2, data: b"llo" });
    assert_eq!(plus(2), ReadPlusResOk4 { eof: true, contents: Seq(vec![data]) });
    assert_eq!(plus(9), ReadPlusResOk4 { eof: true, contents: Seq(vec![]) });
}

#[test]
fn listings_continue_where_they_stopped() {
    let world = World::new(&["a"]);
    let names: Vec<String> = (0..30).map(|i| format!("name-{i:02}")).collect();
    names.iter().for_each(|name| world.file(name.as_bytes(), b""));
    for maxcount in [120, 300, 60_000] {
        let mut listed = list_all(&world, maxcount);
        listed.sort();
        assert_eq!(listed, names);
    }
    assert_eq!(world.at_share(&[readdir(0, [0; 8], 40)]).status, Nfsstat4::TOOSMALL);
    assert_eq!(world.at_share(&[readdir(2, [0; 8], 400)]).status, Nfsstat4::BAD_COOKIE);
    let file = world.at_share(&[lookup(b"name-00"), readdir(0, [0; 8], 400)]);
    assert_eq!(file.status, Nfsstat4::NOTDIR);
}
