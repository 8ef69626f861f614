//! Replies that are easily wrong: the attributes that OPEN changes of an existing file, the opens
//! that deny modes apply to, the statuses for clients and files that are gone.

use super::*;

fn attrs_of(attrs: &Attrs4<'_>) -> Fattr4<'static> {
    let mut bytes = Vec::new();
    attrs.encode(&mut Writer::new(&mut bytes));
    wire::xdr::decode_all(bytes.leak()).expect("attributes")
}

/// OPEN of "f" by the owner "o".
fn open_as(
    clientid: u64,
    seqid: u32,
    share: (u32, u32),
    openhow: Openflag4<'static>,
) -> ArgOp<'static> {
    ArgOp::Open(OpenArgs4 {
        seqid,
        share_access: share.0,
        share_deny: share.1,
        owner: StateOwner4 { clientid, owner: Opaque4(b"o") },
        openhow,
        claim: OpenClaim4::Null(Component4(b"f")),
    })
}

fn unchecked(attrs: &Attrs4<'_>) -> Openflag4<'static> {
    Openflag4::Create(Createhow4::Unchecked(attrs_of(attrs)))
}

fn size_and_mode(world: &World) -> (Option<u64>, Option<u32>) {
    let asked = GetattrArgs4 { attr_request: Bitmap4::of(&[attr4::SIZE, attr4::MODE]) };
    let (_, results) = world.at_root(&[file(), ArgOp::Getattr(asked)]);
    match results.last() {
        Some(ResOp::Getattr(Res4::Ok(ok))) => {
            let attrs: Attrs4<'_> = ok.obj_attributes.values().expect("attributes");
            (attrs.size, attrs.mode)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_unchecked_open_of_an_existing_file_sets_nothing_but_an_empty_size() {
    let world = World::new(Vec::new());
    let id = world.client40(b"a");
    let both = (share4::ACCESS_BOTH, 0);
    let how =
        |size, mode| unchecked(&Attrs4 { size: Some(size), mode: Some(mode), ..Attrs4::default() });
    assert_eq!(world.at_root(&[open_as(id, 1, both, how(32, 0o644))]).0, Nfsstat4::OK);
    assert_eq!(size_and_mode(&world), (Some(32), Some(0o644)), "as it was made");
    assert_eq!(world.at_root(&[open_as(id, 2, both, how(16, 0o600))]).0, Nfsstat4::OK);
    assert_eq!(size_and_mode(&world), (Some(32), Some(0o644)), "it was there");
    assert_eq!(world.at_root(&[open_as(id, 3, both, how(0, 0o600))]).0, Nfsstat4::OK);
    assert_eq!(size_and_mode(&world), (Some(0), Some(0o644)), "only emptied");
}

#[test]
fn an_owners_own_deny_mode_binds_its_next_open_too() {
    let world = World::new(Vec::new());
    let id = world.client40(b"a");
    let how = || unchecked(&Attrs4::default());
    let first = open_as(id, 1, (share4::ACCESS_BOTH, share4::DENY_READ), how());
    let (status, results) = world.at_root(&[first]);
    assert_eq!(status, Nfsstat4::OK);
    let confirm = OpenConfirmArgs4 { open_stateid: opened(&results).0, seqid: 2 };
    assert_eq!(world.at_root(&[file(), ArgOp::OpenConfirm(confirm)]).0, Nfsstat4::OK);
    let reading = open_as(id, 3, (share4::ACCESS_READ, 0), Openflag4::Nocreate(()));
    assert_eq!(world.at_root(&[reading]).0, Nfsstat4::SHARE_DENIED);
    let writing = open_as(id, 4, (share4::ACCESS_WRITE, 0), Openflag4::Nocreate(()));
    assert_eq!(world.at_root(&[writing]).0, Nfsstat4::OK, "that is not denied");
}

#[test]
fn a_special_file_cannot_be_opened_and_each_version_has_its_error() {
    let world = World::new(Vec::new());
    let create = ArgOp::Create(CreateArgs4 {
        objtype: Createtype4::Other(Ftype4::FIFO),
        objname: Component4(b"f"),
        createattrs: empty_attrs(),
    });
    assert_eq!(world.at_root(&[create]).0, Nfsstat4::OK);
    let id = world.client40(b"a");
    let opening = |id| open_as(id, 1, (share4::ACCESS_READ, 0), Openflag4::Nocreate(()));
    assert_eq!(world.at_root(&[opening(id)]).0, Nfsstat4::SYMLINK);
    let session = world.session(b"b");
    let done = ArgOp::ReclaimComplete(ReclaimCompleteArgs4 { one_fs: false });
    assert_eq!(world.run(1, &[sequence(session, 1), done]).0, Nfsstat4::OK);
    let ops = [&[sequence(session, 2)], &ROOT[..], &[opening(0)]].concat();
    assert_eq!(world.run(1, &ops).0, Nfsstat4::WRONG_TYPE);
}

#[test]
fn a_lock_owner_of_another_client_is_refused_in_40() {
    let world = World::new(Vec::new());
    let id = world.client40(b"a");
    let stateid = open_confirmed(&world, id);
    let (status, _) = world.at_root(&[file(), lock_new(id + 1, stateid, 3)]);
    assert_eq!(status, Nfsstat4::STALE_CLIENTID);
    assert_eq!(world.at_root(&[file(), lock_new(id, stateid, 3)]).0, Nfsstat4::OK);
}

/// What a local program may do with a descriptor, a client may do with its open.
#[test]
fn a_removed_file_stays_available_to_its_opens() {
    let world = World::new(Vec::new());
    let id = world.client40(b"a");
    let stateid = open_confirmed(&world, id);
    let ops = [file(), lock_new(id, stateid, 3), ArgOp::Getfh(())];
    let (_, results) = world.at_root(&ops);
    let [.., ResOp::Lock(LockRes4::Ok(locked)), ResOp::Getfh(Res4::Ok(fh))] = &results[..] else {
        panic!("{results:?}")
    };
    let remove = ArgOp::Remove(RemoveArgs4 { target: Component4(b"f") });
    assert_eq!(world.at_root(&[remove]).0, Nfsstat4::OK);
    let putfh = ArgOp::Putfh(PutfhArgs4 { object: fh.object });
    let size = ArgOp::Getattr(GetattrArgs4 { attr_request: Bitmap4::of(&[attr4::SIZE]) });
    let used = [putfh.clone(), size.clone(), write(stateid), size.clone()];
    assert_eq!(world.run(0, &used).0, Nfsstat4::OK);
    let unlock = ArgOp::Locku(LockuArgs4 {
        locktype: locktype4::WRITE,
        seqid: 2,
        lock_stateid: locked.stateid,
        offset: 0,
        length: u64::MAX,
    });
    assert_eq!(world.run(0, &[putfh.clone(), unlock]).0, Nfsstat4::OK);
    let close = ArgOp::Close(CloseArgs4 { seqid: 4, open_stateid: stateid });
    assert_eq!(world.run(0, &[putfh.clone(), close]).0, Nfsstat4::OK);
    assert_eq!(world.run(0, &[putfh, size]).0, Nfsstat4::STALE);
}

#[test]
fn a_request_larger_than_its_session_allows_is_refused_before_it_is_done() {
    let world = World::new(Vec::new());
    let session = world.session_of(b"a", 512);
    let long = ArgOp::Lookup(LookupArgs4 { objname: Component4(&[b'n'; 500]) });
    let ops = [sequence(session, 1), ArgOp::Putrootfh(()), long];
    let (status, results) = world.run(1, &ops);
    assert_eq!((status, results.len()), (Nfsstat4::REQ_TOO_BIG, 1));
    // The slot was not taken.
    let ops = [sequence(session, 1), ArgOp::Putrootfh(())];
    assert_eq!(world.run(1, &ops).0, Nfsstat4::OK);
}

/// The file system in memory has no lists: what cannot be kept is refused before a file is made.
#[test]
fn a_list_that_cannot_be_kept_makes_no_file() {
    let world = World::new(Vec::new());
    let id = world.client40(b"a");
    let how = unchecked(&Attrs4 { acl: Some(wire::xdr::Seq(Vec::new())), ..Attrs4::default() });
    let both = (share4::ACCESS_BOTH, 0);
    assert_eq!(world.at_root(&[open_as(id, 1, both, how)]).0, Nfsstat4::ATTRNOTSUPP);
    assert_eq!(world.at_root(&[file()]).0, Nfsstat4::NOENT);
}

/// A Linux client sets a new file's times only if `attrset` shows that the verifier took their
/// place (RFC 8881 §18.16.3).
#[test]
fn an_exclusive_create_names_the_attributes_that_hold_its_verifier() {
    let world = World::new(Vec::new());
    let times = [attr4::TIME_ACCESS, attr4::TIME_MODIFY];
    let attrset = |(status, results): (Nfsstat4, Vec<ResOp<'static>>)| {
        assert_eq!(status, Nfsstat4::OK);
        match results.last() {
            Some(ResOp::Open(Res4::Ok(ok))) => ok.attrset,
            other => panic!("{other:?}"),
        }
    };
    let both = (share4::ACCESS_BOTH, 0);
    let id = world.client40(b"a");
    let how = || Openflag4::Create(Createhow4::Exclusive(*b"verifier"));
    let made = attrset(world.at_root(&[open_as(id, 1, both, how())]));
    assert_eq!(made, Bitmap4::of(&times), "4.0");
    let remove = ArgOp::Remove(RemoveArgs4 { target: Component4(b"f") });
    assert_eq!(world.at_root(&[remove]).0, Nfsstat4::OK);

    let session = world.session(b"b");
    let done = ArgOp::ReclaimComplete(ReclaimCompleteArgs4 { one_fs: false });
    assert_eq!(world.run(1, &[sequence(session, 1), done]).0, Nfsstat4::OK);
    for (seq, minor) in [(2, 1), (3, 2)] {
        // The second is a retry of the first, with the same verifier.
        let attrs = attrs_of(&Attrs4 { mode: Some(0o640), ..Attrs4::default() });
        let how = Createhow4::Exclusive41(Creatverfattr { verf: *b"verifier", attrs });
        let op = open_as(0, 0, both, Openflag4::Create(how));
        let ops = [&[sequence(session, seq)], &ROOT[..], &[op]].concat();
        let made = attrset(world.run(minor, &ops));
        let union = Bitmap4::of(&[&times[..], &[attr4::MODE]].concat());
        assert_eq!(made, union, "4.{minor}");
        assert_eq!(size_and_mode(&world).1, Some(0o640), "4.{minor}");
    }
}

/// A refusal by the share has its own status: after ACCESS users look for missing permissions.
#[test]
fn a_file_of_a_read_only_share_is_not_opened_for_writing() {
    let world = World::new(Vec::new());
    let id = world.client40(b"a");
    let inner = MemFs::new(tag("s"), 1 << 30);
    let how = CreateHow::Guarded(SetAttr { mode: Some(0o644), ..SetAttr::default() });
    let root = vfs::fs::FileSystem::root(&*inner);
    assert!(vfs::fs::FileSystem::create(&*inner, cx(&world.cred), &root, b"f", how).is_ok());
    let mut shares = ShareTable::default();
    shares.add("s", inner, true).expect("a share");
    world.nfs.shares.replace(shares);
    let (read, write) = ((share4::ACCESS_READ, 0), (share4::ACCESS_WRITE, 0));
    let opening = |seqid, share, how| world.at_root(&[open_as(id, seqid, share, how)]).0;
    let there = || Openflag4::Nocreate(());
    let make = || unchecked(&Attrs4::default());
    assert_eq!(opening(1, write, there()), Nfsstat4::ROFS);
    assert_eq!(opening(2, (share4::ACCESS_BOTH, 0), there()), Nfsstat4::ROFS);
    assert_eq!(opening(3, write, make()), Nfsstat4::ROFS, "it is there");
    assert_eq!(opening(4, read, there()), Nfsstat4::OK);
}

/// A client reads a program to run it, and only its own kernel knows why it reads (RFC 1813 §4.4).
#[test]
fn execute_permission_allows_to_open_and_read_a_file() {
    let mut world = World::new(Vec::new());
    for (seqid, mode, expected) in [(1, 0o711, Nfsstat4::OK), (5, 0o600, Nfsstat4::ACCESS)] {
        world.cred = Cred::root();
        let maker = world.client40(b"maker");
        let how = unchecked(&Attrs4 { mode: Some(mode), ..Attrs4::default() });
        let making = open_as(maker, seqid, (share4::ACCESS_BOTH, 0), how);
        assert_eq!(world.at_root(&[making]).0, Nfsstat4::OK, "{mode:o}");
        world.cred = vfs::conformance::user(1000, 1000);
        let reader = world.client40(b"reader");
        let there = || Openflag4::Nocreate(());
        let both = open_as(reader, seqid, (share4::ACCESS_BOTH, 0), there());
        assert_eq!(world.at_root(&[both]).0, Nfsstat4::ACCESS, "{mode:o}");
        let read = open_as(reader, seqid + 1, (share4::ACCESS_READ, 0), there());
        assert_eq!(world.at_root(&[read]).0, expected, "{mode:o}");
        let (stateid, offset, count) = (Stateid4::ANONYMOUS, 0, 10);
        let read = ArgOp::Read(ReadArgs4 { stateid, offset, count });
        assert_eq!(world.at_root(&[file(), read]).0, expected, "{mode:o}");
        world.cred = Cred::root();
        let remove = ArgOp::Remove(RemoveArgs4 { target: Component4(b"f") });
        assert_eq!(world.at_root(&[remove]).0, Nfsstat4::OK);
    }
}
