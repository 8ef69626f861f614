//! Requests for what does not exist: attributes, rights, data beyond the end.

use super::*;

/// GETATTR of attribute 1 000, as it is sent.
struct Attribute1000;

impl Encode for Attribute1000 {
    fn encode(&self, w: &mut Writer<'_>) {
        Opnum4::GETATTR.encode(w);
        w.u32(32);
        (0..32).for_each(|word| w.u32(if word == 1000 / 32 { 1 << (1000 % 32) } else { 0 }));
    }
}

#[test]
fn getattr_passes_over_unknown_attributes() {
    let world = World::new(&["one"]);
    let mut message = Vec::new();
    let mut w = Writer::new(&mut message);
    CompoundArgs { tag: Tag4(b""), minorversion: 0, count: 2 }.encode(&mut w);
    ArgOp::Putrootfh(()).encode(&mut w);
    Attribute1000.encode(&mut w);
    let answer = world.raw(&message);
    let ResOp::Getattr(Res4::Ok(ok)) = answer.last() else { panic!() };
    assert!(ok.obj_attributes.attrmask.is_empty());
}

#[test]
fn rights_without_effect_for_a_kind_of_file_are_neither_granted_nor_denied() {
    let world = World::new(&["one"]);
    world.file(b"f", b"data");
    let ask = || ArgOp::Access(AccessArgs4 { access: 0x3f });
    let supported = |answer: &Answer| match answer.last() {
        ResOp::Access(Res4::Ok(ok)) => {
            assert_eq!(ok.access & !ok.supported, 0);
            ok.supported
        }
        other => panic!("{other:?}"),
    };
    let not = |bits: u32| 0x3f & !bits;
    let dir = supported(&world.at_share(&[ask()]));
    assert_eq!(dir, not(access4::EXECUTE), "a directory");
    let file = supported(&world.at_share(&[lookup(b"f"), ask()]));
    assert_eq!(file, not(access4::LOOKUP | access4::DELETE), "a file");
    let pseudo = supported(&world.run(0, &[ArgOp::Putrootfh(()), ask()]));
    assert_eq!(pseudo, not(access4::EXECUTE), "the pseudo file system");
}

#[test]
fn reading_beyond_what_any_file_can_hold_meets_its_end() {
    let world = World::new(&["one"]);
    world.file(b"f", b"data");
    for offset in [i64::MAX as u64 - 3, i64::MAX as u64, u64::MAX - 1, u64::MAX] {
        let answer = world.at_share(&[lookup(b"f"), read(Stateid4::ANONYMOUS, offset, 10)]);
        let ResOp::Read(Res4::Ok(ok)) = answer.last() else { panic!("{offset}") };
        assert_eq!((ok.eof, ok.data.len()), (true, 0), "{offset}");
    }
}
