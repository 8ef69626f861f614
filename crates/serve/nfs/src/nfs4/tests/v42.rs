//! What 4.2 adds: room and holes, copies, extended attributes; and access control lists.

use super::*;

/// A compound of 4.2 on the file `f` of the share.
fn on_file(world: &World, ops: &[ArgOp<'_>]) -> Answer {
    let way = [sequence(60_000), ArgOp::Putrootfh(()), lookup(b"export"), lookup(b"a")];
    let mut answer = world.run(2, &[&way[..], &[lookup(b"f")], ops].concat());
    answer.results.drain(..5.min(answer.results.len()));
    answer
}

fn set(option: u32, key: &'static [u8], value: &'static [u8]) -> ArgOp<'static> {
    ArgOp::Setxattr(SetxattrArgs4 { option, key: Component4(key), value })
}

fn get(name: &[u8]) -> ArgOp<'_> {
    ArgOp::Getxattr(GetxattrArgs4 { name: Component4(name) })
}

#[test]
fn extended_attributes_are_kept() {
    let world = World::new(&["a"]);
    world.file(b"f", b"hello");
    let answer = on_file(&world, &[set(setxattr4::EITHER, b"color", b"blue"), get(b"color")]);
    let ResOp::Getxattr(Res4::Ok(ok)) = answer.last() else { panic!() };
    assert_eq!(ok.value, b"blue");
    let remove = |name| ArgOp::Removexattr(RemovexattrArgs4 { name: Component4(name) });
    let cases = [
        (set(setxattr4::CREATE, b"color", b"red"), Nfsstat4::EXIST),
        (set(setxattr4::REPLACE, b"size", b"9"), Nfsstat4::NOXATTR),
        (set(7, b"size", b"9"), Nfsstat4::BADXDR),
        (get(b"size"), Nfsstat4::NOXATTR),
        (get(b""), Nfsstat4::INVAL),
        (remove(b"size"), Nfsstat4::NOXATTR),
        (remove(b"color"), Nfsstat4::OK),
        (get(b"color"), Nfsstat4::NOXATTR),
    ];
    for (op, status) in cases {
        assert_eq!(on_file(&world, std::slice::from_ref(&op)).status, status, "{op:?}");
    }
}

#[test]
fn extended_attributes_are_listed_in_pieces() {
    let world = World::new(&["a"]);
    world.file(b"f", b"hello");
    for name in [b"one".as_slice(), b"two", b"three"] {
        let set = SetxattrArgs4 { option: 0, key: Component4(name), value: b"v" };
        assert_eq!(on_file(&world, &[ArgOp::Setxattr(set)]).status, Nfsstat4::OK);
    }
    let (mut names, mut cookie) = (Vec::new(), 0);
    for _ in 0..9 {
        let list = ArgOp::Listxattrs(ListxattrsArgs4 { cookie, maxcount: 30 });
        let answer = on_file(&world, &[list]);
        let ResOp::Listxattrs(Res4::Ok(ok)) = answer.last() else { panic!() };
        names.extend(ok.names.0.iter().map(|name| name.0.to_vec()));
        cookie = ok.cookie;
        if ok.eof {
            break;
        }
    }
    names.sort();
    assert_eq!(names, [b"one".to_vec(), b"three".to_vec(), b"two".to_vec()]);
    for maxcount in [0, 16, 20] {
        let list = ArgOp::Listxattrs(ListxattrsArgs4 { cookie: 0, maxcount });
        assert_eq!(on_file(&world, &[list]).status, Nfsstat4::TOOSMALL);
    }
}

#[test]
fn rights_to_extended_attributes_come_with_those_to_data() {
    let world = World::new(&["a"]);
    world.file(b"f", b"hello");
    let ask = access4::XAREAD | access4::XAWRITE | access4::XALIST;
    let answer = on_file(&world, &[ArgOp::Access(AccessArgs4 { access: ask })]);
    let ResOp::Access(Res4::Ok(ok)) = answer.last() else { panic!() };
    assert_eq!((ok.supported, ok.access), (ask, ask));
    // 4.0 does not know them.
    let answer = world.at_share(&[ArgOp::Access(AccessArgs4 { access: ask })]);
    assert_eq!(answer.status, Nfsstat4::INVAL);
}

#[test]
fn holes_are_made_and_found() {
    let world = World::new(&["a"]);
    world.file(b"f", &[1; 65536]);
    let range = AllocateArgs4 { stateid: GOOD, offset: 0, length: 16384 };
    let seek = |offset, what| {
        let op = ArgOp::Seek(SeekArgs4 { stateid: GOOD, offset, what });
        let answer = on_file(&world, &[op]);
        match answer.results.last() {
            Some(ResOp::Seek(Res4::Ok(ok))) => Ok((ok.eof, ok.offset)),
            _ => Err(answer.status),
        }
    };
    assert_eq!(seek(0, content4::HOLE), Ok((true, 65536)));
    assert_eq!(on_file(&world, &[ArgOp::Deallocate(range)]).status, Nfsstat4::OK);
    assert_eq!(seek(0, content4::HOLE), Ok((false, 0)));
    assert_eq!(seek(0, content4::DATA), Ok((false, 16384)));
    assert_eq!(seek(65536, content4::DATA), Err(Nfsstat4::NXIO));
    assert_eq!(seek(0, 9), Err(Nfsstat4::UNION_NOTSUPP));
    let more = AllocateArgs4 { stateid: GOOD, offset: 65536, length: 4096 };
    let answer = on_file(&world, &[ArgOp::Allocate(more), getattr(&[attr4::SIZE])]);
    assert_eq!(attrs(&answer).size, Some(65536 + 4096));
    let none = AllocateArgs4 { stateid: GOOD, offset: u64::MAX, length: 2 };
    assert_eq!(on_file(&world, &[ArgOp::Allocate(none)]).status, Nfsstat4::INVAL);
}

#[test]
fn read_plus_distinguishes_holes_from_data() {
    let world = World::new(&["a"]);
    world.file(b"f", &[1; 49152]);
    for offset in [0, 32768] {
        let hole = AllocateArgs4 { stateid: GOOD, offset, length: 16384 };
        assert_eq!(on_file(&world, &[ArgOp::Deallocate(hole)]).status, Nfsstat4::OK);
    }
    let plus = |offset, count| {
        let answer =
            on_file(&world, &[ArgOp::ReadPlus(ReadPlusArgs4 { stateid: GOOD, offset, count })]);
        let ResOp::ReadPlus(Res4::Ok(ok)) = answer.last() else { panic!() };
        let piece = |piece: &ReadPlusContent4<'_>| match piece {
            ReadPlusContent4::Data(data) => ("data", data.offset, data.data.len() as u64),
            ReadPlusContent4::Hole(hole) => ("hole", hole.offset, hole.length),
        };
        (ok.eof, ok.contents.0.iter().map(piece).collect::<Vec<_>>())
    };
    let whole = vec![("hole", 0, 16384), ("data", 16384, 16384), ("hole", 32768, 16384)];
    assert_eq!(plus(0, 100_000), (true, whole));
    let middle = vec![("hole", 10_000, 6384), ("data", 16384, 3616)];
    assert_eq!(plus(10_000, 10_000), (false, middle));
    assert_eq!(plus(40_000, 1_000), (false, vec![("hole", 40_000, 1_000)]));
    assert_eq!(plus(49152, 10), (true, vec![]));
}

#[test]
fn a_file_is_copied_within_the_server() {
    let world = World::new(&["a"]);
    world.file(b"f", b"hello world");
    world.file(b"g", b"");
    let copy = |src_offset, count| {
        ArgOp::Copy(CopyArgs4 {
            src_stateid: GOOD,
            dst_stateid: GOOD,
            src_offset,
            dst_offset: 0,
            count,
            consecutive: true,
            synchronous: true,
            source_server: Seq(vec![]),
        })
    };
    let to_g =
        [ArgOp::Savefh(()), ArgOp::Putrootfh(()), lookup(b"export"), lookup(b"a"), lookup(b"g")];
    let run = |op, more: &[ArgOp<'static>]| on_file(&world, &[&to_g[..], &[op], more].concat());
    let answer = run(copy(6, 5), &[read(GOOD, 0, 100)]);
    let ResOp::Read(Res4::Ok(ok)) = answer.last() else { panic!() };
    assert_eq!(ok.data, b"world");
    let ResOp::Copy(CopyRes4::Ok(ok)) = &answer.results[5] else { panic!() };
    assert_eq!((ok.response.count, ok.response.committed), (5, StableHow4::FILE_SYNC));
    assert_eq!(run(copy(6, 6), &[]).status, Nfsstat4::INVAL, "beyond the end of the source");
    assert_eq!(on_file(&world, &[copy(0, 1)]).status, Nfsstat4::NOFILEHANDLE);
}

/// Otherwise a compound of 1 KiB could have 128 times as much copied as one COPY.
#[test]
fn the_copies_of_a_compound_share_the_limit_of_one() {
    use base::limits::COPY_TURN_MAX;
    let world = World::new(&["a"]);
    let size = COPY_TURN_MAX / 4 * 3;
    world.file(b"f", &vec![7; size as usize]);
    world.file(b"g", b"");
    let copy = ArgOp::Copy(CopyArgs4 {
        src_stateid: GOOD,
        dst_stateid: GOOD,
        src_offset: 0,
        dst_offset: 0,
        count: size,
        consecutive: true,
        synchronous: true,
        source_server: Seq(vec![]),
    });
    let way =
        [ArgOp::Savefh(()), ArgOp::Putrootfh(()), lookup(b"export"), lookup(b"a"), lookup(b"g")];
    let copies = vec![copy; 3];
    let answer = on_file(&world, &[&way[..], &copies].concat());
    let counts = answer.results.iter().filter_map(|result| match result {
        ResOp::Copy(CopyRes4::Ok(ok)) => Some(ok.response.count),
        _ => None,
    });
    assert_eq!(counts.collect::<Vec<_>>(), [size, COPY_TURN_MAX - size]);
    assert_eq!(answer.status, Nfsstat4::DELAY, "the third may come with the next compound");
}

/// A client's kernel reads a program to run it (RFC 1813 §4.4), by READ_PLUS too; COPY and CLONE
/// are no way to run one, and would give the caller a file that it may read.
#[test]
fn what_may_only_be_executed_is_read_and_not_copied() {
    let mut world = World::new(&["a"]);
    world.file_of(b"f", b"hello world", 0o711);
    world.file_of(b"g", b"", 0o666);
    world.cred = vfs::conformance::user(1000, 1000);
    let answer = on_file(&world, &[read(GOOD, 0, 100)]);
    let ResOp::Read(Res4::Ok(ok)) = answer.last() else { panic!("{:?}", answer.last()) };
    assert_eq!(ok.data, b"hello world");
    let plus = ReadPlusArgs4 { stateid: GOOD, offset: 0, count: 100 };
    let answer = on_file(&world, &[ArgOp::ReadPlus(plus)]);
    let ResOp::ReadPlus(Res4::Ok(ok)) = answer.last() else { panic!("{:?}", answer.last()) };
    let [ReadPlusContent4::Data(data)] = &ok.contents.0[..] else { panic!("{ok:?}") };
    assert_eq!((data.data, ok.eof), (&b"hello world"[..], true));
    let copy = CopyArgs4 {
        src_stateid: GOOD,
        dst_stateid: GOOD,
        src_offset: 0,
        dst_offset: 0,
        count: 11,
        consecutive: true,
        synchronous: true,
        source_server: Seq(vec![]),
    };
    let clone =
        CloneArgs4 { src_stateid: GOOD, dst_stateid: GOOD, src_offset: 0, dst_offset: 0, count: 0 };
    let way =
        [ArgOp::Savefh(()), ArgOp::Putrootfh(()), lookup(b"export"), lookup(b"a"), lookup(b"g")];
    let copied = on_file(&world, &[&way[..], &[ArgOp::Copy(copy)]].concat());
    assert_eq!(copied.status, Nfsstat4::ACCESS);
    let cloned = on_file(&world, &[&way[..], &[ArgOp::Clone(clone)]].concat());
    assert!(matches!(cloned.status, Nfsstat4::ACCESS | Nfsstat4::NOTSUPP), "{}", cloned.status);
}

#[test]
fn a_new_file_is_given_a_mode_and_a_mask() {
    let world = World::new(&["a"]);
    let masked = ModeUmask4 { mode: 0o777, umask: 0o022 };
    let both = Attrs4 { mode_umask: Some(masked), mode: Some(0o700), ..Attrs4::default() };
    let alone = Attrs4 { mode_umask: Some(masked), ..Attrs4::default() };
    let make = |attrs: &Attrs4<'_>| {
        let objtype = Createtype4::Other(Ftype4::DIR);
        let (objname, createattrs) = (Component4(b"d"), fattr(attrs));
        ArgOp::Create(CreateArgs4 { objtype, objname, createattrs })
    };
    let way = [sequence(60_000), ArgOp::Putrootfh(()), lookup(b"export"), lookup(b"a")];
    let run = |op| world.run(2, &[&way[..], &[op, getattr(&[attr4::MODE])]].concat());
    assert_eq!(run(make(&both)).status, Nfsstat4::INVAL);
    assert_eq!(attrs(&run(make(&alone))).mode, Some(0o755));
}

#[test]
fn access_control_entries_travel_both_ways() {
    use super::super::acl;
    use vfs::acl::nfs4::{Ace, IDENTIFIER_GROUP, Who};
    let ace = |allow, flags, who| Ace { allow, flags, mask: 7, who };
    let aces = [
        ace(true, 0, Who::Owner),
        ace(false, 0, Who::User(1000)),
        ace(true, IDENTIFIER_GROUP, Who::GroupId(4_000_000_000)),
        ace(true, 3, Who::Everyone),
        ace(true, 0, Who::Group),
    ];
    let mut bytes = Vec::new();
    let idmap = IdMap::numbers();
    acl::put(&mut Writer::new(&mut bytes), &aces, &idmap);
    let read = |bytes: &'static [u8]| {
        let list = <Acl4<'_> as wire::xdr::Item<'_>>::item(&mut Reader::new(bytes), "acl");
        acl::take(&list.expect("a list"), &idmap)
    };
    assert_eq!(read(bytes.clone().leak()), Ok(aces.to_vec()));
    // Entries that are made of a POSIX list are not marked as such.
    let (mut plain, mut again) = (aces, Vec::new());
    plain[2].flags = 0;
    acl::put(&mut Writer::new(&mut again), &plain, &idmap);
    assert_eq!(again, bytes);
    let mut audit = bytes.clone();
    audit[7] = 2;
    assert_eq!(read(audit.leak()), Err(Nfsstat4::ATTRNOTSUPP));
    let at = bytes.windows(4).position(|w| w == b"1000").expect("the user");
    bytes[at] = b'x';
    assert_eq!(read(bytes.leak()), Err(Nfsstat4::BADOWNER));
}
