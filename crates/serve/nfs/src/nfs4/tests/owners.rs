//! Owners of files by name, where there is a domain.

use super::*;

fn world() -> World {
    let mut world = World::new(&["a"]);
    let idmap = IdMap::names("example.org");
    idmap.set(idmap::OwnerKind::User, "ann:x:1000:100::/:\n");
    idmap.set(idmap::OwnerKind::Group, "users:x:100:\n");
    world.nfs.idmap = Arc::new(idmap);
    world.file(b"f", b"");
    world
}

fn chown(owner: &'static [u8], group: &'static [u8]) -> ArgOp<'static> {
    let attrs = Attrs4 {
        owner: Some(Utf8str(owner)),
        owner_group: Some(Utf8str(group)),
        ..Attrs4::default()
    };
    let obj_attributes = fattr(&attrs);
    ArgOp::Setattr(SetattrArgs4 { stateid: Stateid4::ANONYMOUS, obj_attributes })
}

#[test]
fn a_file_is_assigned_to_a_name_and_shown_with_it() {
    let world = world();
    let query = getattr(&[attr4::OWNER, attr4::OWNER_GROUP]);
    for (set, seen) in [
        (
            (&b"ann@example.org"[..], &b"users@EXAMPLE.org"[..]),
            (&b"ann@example.org"[..], &b"users@example.org"[..]),
        ),
        ((b"31", b"32"), (b"31", b"32")),
        ((b"1000", b"100"), (b"ann@example.org", b"users@example.org")),
    ] {
        let answer = world.at_share(&[lookup(b"f"), chown(set.0, set.1), query.clone()]);
        let attrs = attrs(&answer);
        assert_eq!(
            (attrs.owner, attrs.owner_group),
            (Some(Utf8str(seen.0)), Some(Utf8str(seen.1)))
        );
    }
    let answer = world.at_share(&[lookup(b"f"), chown(b"bob@example.org", b"100")]);
    assert_eq!(answer.status, Nfsstat4::BADOWNER);
}
