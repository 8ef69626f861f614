//! The loop itself.

use super::*;

#[test]
fn nothing_asked_for_is_answered() {
    let answer = World::new(&["a"]).run(0, &[]);
    assert_eq!((answer.status, answer.results.len()), (Nfsstat4::OK, 0));
}

#[test]
fn minor_versions_beyond_ours_are_refused() {
    let world = World::new(&["a"]);
    let answer = world.run(3, &[ArgOp::Putrootfh(())]);
    assert_eq!((answer.status, answer.results.len()), (Nfsstat4::MINOR_VERS_MISMATCH, 0));
}

#[test]
fn a_tag_must_be_text() {
    let mut message = World::message(0, &[ArgOp::Putrootfh(())]);
    message[4..8].copy_from_slice(&[0xff; 4]);
    let answer = World::new(&["a"]).raw(&message);
    assert_eq!((answer.status, answer.results.len()), (Nfsstat4::INVAL, 0));
}

#[test]
fn what_is_no_operation_ends_the_compound() {
    let world = World::new(&["a"]);
    for number in [0, 2, 40, 76, 4711] {
        let ops = [ArgOp::Putrootfh(()), ArgOp::Illegal(number), ArgOp::Getfh(())];
        let answer = world.run(0, &ops);
        assert_eq!(answer.status, Nfsstat4::OP_ILLEGAL);
        let expected = [ResOp::Putrootfh(Res4::Ok(())), ResOp::Illegal(Nfsstat4::OP_ILLEGAL)];
        assert_eq!(answer.results, expected);
    }
    // An operation of 4.1 is none of 4.0.
    let answer = world.run(0, &[ArgOp::DestroyClientid(ClientidArgs4 { clientid: 1 })]);
    assert_eq!(answer.status, Nfsstat4::OP_ILLEGAL);
}

#[test]
fn garbled_arguments_do_not_touch_what_came_before() {
    let mut message = World::message(0, &[ArgOp::Putrootfh(()), ArgOp::Getfh(()), mkdir(b"x")]);
    let short = message.len() - 8;
    message.truncate(short);
    let answer = World::new(&["a"]).raw(&message);
    assert_eq!((answer.status, answer.results.len()), (Nfsstat4::BADXDR, 3));
    assert_eq!(answer.results[2].status(), Nfsstat4::BADXDR);
    assert_eq!(answer.facts.len(), 3);
}

#[test]
fn too_many_operations_are_refused() {
    let ops = vec![ArgOp::Putrootfh(()); 129];
    let world = World::new(&["a"]);
    assert_eq!(world.run(0, &ops).status, Nfsstat4::RESOURCE);
    assert_eq!(world.run(1, &ops).status, Nfsstat4::TOO_MANY_OPS);
    assert_eq!(world.run(0, &ops[1..]).status, Nfsstat4::OK);
}

#[test]
fn sessions_determine_where_operations_may_stand() {
    let world = World::new(&["a"]);
    let root = ArgOp::Putrootfh(());
    let destroy = ArgOp::DestroyClientid(ClientidArgs4 { clientid: 1 });
    let renew = ArgOp::Renew(ClientidArgs4 { clientid: 1 });
    let seq = sequence(9000);
    let cases = [
        (vec![root.clone()], Nfsstat4::OP_NOT_IN_SESSION),
        (vec![seq.clone(), seq.clone()], Nfsstat4::SEQUENCE_POS),
        (vec![destroy, root.clone()], Nfsstat4::NOT_ONLY_OP),
        (vec![seq.clone(), renew], Nfsstat4::NOTSUPP),
        (vec![seq, root], Nfsstat4::OK),
    ];
    for (ops, status) in cases {
        assert_eq!(world.run(1, &ops).status, status, "{ops:?}");
    }
}

#[test]
fn results_end_at_what_the_session_allows() {
    let world = World::new(&["a"]);
    world.file(b"f", &[1; 1000]);
    let ops = |max| {
        let bypass = Stateid4::BYPASS;
        let file = [lookup(b"export"), lookup(b"a"), lookup(b"f"), read(bypass, 0, 1000)];
        let mut ops = vec![sequence(max), ArgOp::Putrootfh(())];
        ops.extend(file);
        ops
    };
    assert_eq!(world.run(1, &ops(2000)).status, Nfsstat4::OK);
    let answer = world.run(1, &ops(1000));
    assert_eq!((answer.status, answer.results.len()), (Nfsstat4::REP_TOO_BIG, 6));
}

#[test]
fn every_operation_is_counted() {
    let world = World::new(&["a"]);
    world.file(b"f", b"hello");
    let answer = world.at_share(&[lookup(b"f"), read(Stateid4::ANONYMOUS, 1, 100)]);
    let ops: Vec<u8> = answer.facts.iter().map(|f| f.op).collect();
    assert_eq!(ops, [24, 15, 15, 15, 25]);
    let last = answer.facts.last().expect("facts");
    assert_eq!((last.offset, last.size, last.bytes, last.status), (1, 100, 4, 0));
    assert_ne!(last.file, 0);
    let answer = world.at_share(&[lookup(b"none")]);
    assert_eq!(answer.facts.last().expect("facts").status, 2);
}

#[test]
fn a_failed_flush_takes_back_what_it_concerns() {
    let world = World::new(&["a"]);
    world.file(b"f", b"hello");
    let write = ArgOp::Write(WriteArgs4 {
        stateid: GOOD,
        offset: 0,
        stable: StableHow4::FILE_SYNC,
        data: b"world",
    });
    let ops = [lookup(b"export"), lookup(b"a"), lookup(b"f"), write, ArgOp::Getfh(())];
    let message = World::message(0, &[&[ArgOp::Putrootfh(())][..], &ops].concat());
    let peer = Peer {
        cred: &world.cred,
        address: ADDRESS,
        transport: Default::default(),
        flavor: Default::default(),
        facts: OpRecord::default(),
        connection: 1,
        back: None,
        budgets: &engine::transport::Budgets::default(),
    };
    let mut out = ReplyBuf::default();
    let Ok(Some(mut progress)) = world.nfs.begin(&message, &mut out) else { panic!() };
    assert_eq!(world.nfs.run(&mut progress, peer, true, &message, &mut out, 0), Poll::Ready(()));
    // A file system in memory has nothing to flush: the WRITE is marked as a change here. Before it
    // come the header with a tag of four bytes, PUTROOTFH and three LOOKUPs of eight bytes each.
    progress.first_change = Some((16 + 4 * 8, 4, progress.facts[4].op));
    let mut results = out.into_vec();
    world.nfs.flushed(&mut progress, Err(vfs::status::Status::Io), &mut results, 0);
    let answer = decode(&results, progress.facts);
    assert_eq!((answer.status, answer.results.len()), (Nfsstat4::IO, 5));
    assert_eq!(answer.results[4], ResOp::Write(Res4::Fail(Nfsstat4::IO, ())));
    assert_eq!(answer.facts.last().map(|f| (f.status, f.bytes)), Some((5, 0)));
}
