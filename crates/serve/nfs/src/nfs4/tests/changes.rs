//! CREATE, REMOVE, RENAME, LINK, and the names that they refuse.

use super::*;

fn rename<'a>(oldname: &'a [u8], newname: &'a [u8]) -> ArgOp<'a> {
    let (oldname, newname) = (Component4(oldname), Component4(newname));
    ArgOp::Rename(RenameArgs4 { oldname, newname })
}

fn remove(target: &[u8]) -> ArgOp<'_> {
    ArgOp::Remove(RemoveArgs4 { target: Component4(target) })
}

fn link(newname: &[u8]) -> ArgOp<'_> {
    ArgOp::Link(LinkArgs4 { newname: Component4(newname) })
}

#[test]
fn directories_links_and_special_files_are_made() {
    let world = World::new(&["a"]);
    fn make<'a>(objtype: Createtype4<'a>, name: &'a [u8]) -> ArgOp<'a> {
        let objname = Component4(name);
        ArgOp::Create(CreateArgs4 { objtype, objname, createattrs: Fattr4::NONE })
    }
    let kinds = [
        (Createtype4::Other(Ftype4::DIR), Ftype4::DIR),
        (Createtype4::Link(Linktext4(b"where")), Ftype4::LNK),
        (Createtype4::Other(Ftype4::FIFO), Ftype4::FIFO),
        (Createtype4::Other(Ftype4::SOCK), Ftype4::SOCK),
    ];
    for (how, kind) in kinds {
        let name = kind.to_string();
        let answer = world.at_share(&[make(how, name.as_bytes()), getattr(&[attr4::TYPE])]);
        assert_eq!(attrs(&answer).kind, Some(kind));
    }
    let answer = world.at_share(&[lookup(b"NF4LNK"), ArgOp::Readlink(())]);
    let ResOp::Readlink(Res4::Ok(ok)) = answer.last() else { panic!() };
    assert_eq!(ok.link, Linktext4(b"where"));
    let answer = world.at_share(&[lookup(b"NF4LNK"), lookup(b"x")]);
    assert_eq!(answer.status, Nfsstat4::SYMLINK);
    let again = world.at_share(&[make(Createtype4::Other(Ftype4::DIR), b"NF4DIR")]);
    assert_eq!(again.status, Nfsstat4::EXIST);
    let regular = world.at_share(&[make(Createtype4::Other(Ftype4::REG), b"r")]);
    assert_eq!(regular.status, Nfsstat4::BADTYPE);
}

#[test]
fn names_are_checked() {
    let world = World::new(&["a"]);
    let long = [b'n'; 256];
    let cases: [(&[u8], Nfsstat4); 6] = [
        (b"", Nfsstat4::INVAL),
        (b".", Nfsstat4::BADNAME),
        (b"..", Nfsstat4::BADNAME),
        (b"a/b", Nfsstat4::BADCHAR),
        (b"a\0b", Nfsstat4::BADCHAR),
        (&long, Nfsstat4::NAMETOOLONG),
    ];
    for (name, status) in cases {
        for op in [lookup(name), mkdir(name), remove(name)] {
            assert_eq!(world.at_share(&[op]).status, status, "{name:?}");
        }
        let both = world.at_share(&[ArgOp::Savefh(()), rename(b"x", name)]);
        assert_eq!(both.status, status, "{name:?}");
    }
    // Bytes that are no text are a name like any other.
    assert_eq!(world.at_share(&[mkdir(b"\xff\xfe")]).status, Nfsstat4::OK);
    assert_eq!(world.at_share(&[lookup(b"\xff\xfe")]).status, Nfsstat4::OK);
}

#[test]
fn names_are_moved_linked_and_removed() {
    let world = World::new(&["a", "b"]);
    world.file(b"f", b"hello");
    let moved = [mkdir(b"d"), ArgOp::Putrootfh(()), lookup(b"export"), lookup(b"a")];
    assert_eq!(world.at_share(&moved).status, Nfsstat4::OK);
    let answer = world.at_share(&[ArgOp::Savefh(()), lookup(b"d"), rename(b"f", b"g")]);
    assert_eq!(answer.status, Nfsstat4::OK);
    assert_eq!(world.at_share(&[lookup(b"f")]).status, Nfsstat4::NOENT);
    let linked = [lookup(b"d"), lookup(b"g"), ArgOp::Savefh(()), ArgOp::Lookupp(())];
    // A file has no directory above it that LOOKUPP could find.
    assert_eq!(world.at_share(&linked).status, Nfsstat4::NOTDIR);
    let linked = [
        lookup(b"d"),
        lookup(b"g"),
        ArgOp::Savefh(()),
        ArgOp::Putrootfh(()),
        lookup(b"export"),
        lookup(b"a"),
        link(b"h"),
        lookup(b"h"),
        getattr(&[attr4::NUMLINKS]),
    ];
    assert_eq!(attrs(&world.at_share(&linked)).numlinks, Some(2));
    assert_eq!(world.at_share(&[remove(b"d")]).status, Nfsstat4::NOTEMPTY);
    assert_eq!(world.at_share(&[lookup(b"d"), remove(b"g")]).status, Nfsstat4::OK);
    assert_eq!(world.at_share(&[remove(b"d")]).status, Nfsstat4::OK);
    let across = [
        ArgOp::Savefh(()),
        ArgOp::Putrootfh(()),
        lookup(b"export"),
        lookup(b"b"),
        rename(b"h", b"h"),
    ];
    assert_eq!(world.at_share(&across).status, Nfsstat4::XDEV);
    assert_eq!(world.at_share(&[rename(b"h", b"i")]).status, Nfsstat4::NOFILEHANDLE);
}

#[test]
fn the_change_attribute_of_a_directory_changes() {
    let world = World::new(&["a"]);
    let before = attrs(&world.at_share(&[getattr(&[attr4::CHANGE])])).change;
    let answer = world.at_share(&[mkdir(b"d")]);
    let ResOp::Create(Res4::Ok(ok)) = answer.last() else { panic!() };
    let after = attrs(&world.at_share(&[getattr(&[attr4::CHANGE])])).change;
    assert_eq!((Some(ok.cinfo.before), Some(ok.cinfo.after)), (before, after));
    assert_ne!(before, after);
}
