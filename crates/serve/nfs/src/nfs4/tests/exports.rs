//! Export rules: each admits, and each refuses.

use vfs::share::Service;
use vfs::share::rules::{Flavor, Lookup, Rules, Transport};

use super::*;

/// No names are known.
struct NoLookup;

impl Lookup for NoLookup {
    fn host(&self, _: &str) -> Result<Vec<std::net::IpAddr>, String> {
        Err("not found".to_owned())
    }

    fn netgroups(&self) -> String {
        String::new()
    }
}

fn with(rules: &str) -> World {
    let world = World::new(&["a"]);
    world.file(b"f", b"hello");
    set(&world, rules);
    world
}

fn set(world: &World, rules: &str) {
    let shares = world.nfs.shares.load();
    let share = shares.iter().next().expect("a share");
    share.rules_for(Service::Nfs).set(Rules::parse(rules, &NoLookup).expect(rules));
}

fn handle_of_share(world: &World) -> Vec<u8> {
    world.nfs.shares.load().iter().next().expect("a share").fs.root().as_bytes().to_vec()
}

#[test]
fn a_share_that_grants_nothing_is_not_there() {
    for rules in ["10.0.0.0/8(rw)", "*(rw,secure)"] {
        let world = with(rules);
        assert_eq!(world.at_share(&[]).status, Nfsstat4::NOENT, "{rules}");
        let export = [ArgOp::Putrootfh(()), lookup(b"export"), readdir(0, [0; 8], 4000)];
        assert_eq!(names_of(&world.run(0, &export)), []);
        // Nor does a handle open it that came from elsewhere.
        let handle = handle_of_share(&world);
        let ops = [ArgOp::Putfh(PutfhArgs4 { object: Fh4(&handle) }), getattr(&[attr4::SIZE])];
        assert_eq!(world.run(0, &ops).status, Nfsstat4::ACCESS);
        set(&world, "127.0.0.0/8(rw)");
        assert_eq!(world.run(0, &ops).status, Nfsstat4::OK);
        assert_eq!(world.at_share(&[lookup(b"f")]).status, Nfsstat4::OK);
    }
}

#[test]
fn where_only_reading_is_granted_nothing_changes() {
    let world = with("*(ro)");
    let write = WriteArgs4 { stateid: GOOD, offset: 0, stable: StableHow4::UNSTABLE, data: b"x" };
    for op in [mkdir(b"d"), ArgOp::Write(write)] {
        assert_eq!(world.at_share(&[lookup(b"f"), op]).status, Nfsstat4::ROFS);
    }
    let access = ArgOp::Access(AccessArgs4 { access: access4::READ | access4::MODIFY });
    let answer = world.at_share(&[lookup(b"f"), read(GOOD, 0, 9), access.clone()]);
    let ResOp::Access(Res4::Ok(ok)) = answer.last() else { panic!() };
    assert_eq!(ok.access, access4::READ);
    set(&world, "*(rw,no_root_squash)");
    let answer = world.at_share(&[lookup(b"f"), access]);
    let ResOp::Access(Res4::Ok(ok)) = answer.last() else { panic!() };
    assert_eq!(ok.access, access4::READ | access4::MODIFY);
}

#[test]
fn squashed_clients_are_anonymous() {
    let owner_of_new = |rules| {
        let world = with(rules);
        set(&world, "*(rw,no_root_squash)");
        let open_up = Attrs4 { mode: Some(0o777), ..Attrs4::default() };
        let obj_attributes = fattr(&open_up);
        let stateid = Stateid4::ANONYMOUS;
        let chmod = ArgOp::Setattr(SetattrArgs4 { stateid, obj_attributes });
        assert_eq!(world.at_share(&[chmod]).status, Nfsstat4::OK);
        set(&world, rules);
        attrs(&world.at_share(&[mkdir(b"d"), getattr(&[attr4::OWNER])])).owner.map(|o| o.0.to_vec())
    };
    assert_eq!(owner_of_new("*(rw,root_squash)"), Some(b"65534".to_vec()));
    assert_eq!(owner_of_new("*(rw,all_squash,anonuid=7,anongid=8)"), Some(b"7".to_vec()));
    assert_eq!(owner_of_new("*(rw,no_root_squash)"), Some(b"0".to_vec()));
}

#[test]
fn a_share_that_requires_tls_reports_it_to_clients_without() {
    let mut world = with("*(rw,xprtsec=tls)");
    let handle = handle_of_share(&world);
    let ops = [ArgOp::Putfh(PutfhArgs4 { object: Fh4(&handle) }), getattr(&[attr4::SIZE])];
    let export = [ArgOp::Putrootfh(()), lookup(b"export"), readdir(0, [0; 8], 4000)];
    assert_eq!(world.at_share(&[]).status, Nfsstat4::WRONGSEC);
    assert_eq!(world.run(0, &ops).status, Nfsstat4::WRONGSEC);
    assert_eq!(names_of(&world.run(0, &export)), []);
    for transport in [Transport::Tls, Transport::Mtls] {
        world.transport = transport;
        assert_eq!(world.at_share(&[lookup(b"f")]).status, Nfsstat4::OK);
        assert_eq!(world.run(0, &ops).status, Nfsstat4::OK);
    }
    set(&world, "*(rw,xprtsec=mtls)");
    world.transport = Transport::Tls;
    assert_eq!(world.run(0, &ops).status, Nfsstat4::WRONGSEC);
    // A client that matches no rule learns nothing.
    set(&world, "10.0.0.0/8(rw,xprtsec=tls)");
    assert_eq!(world.at_share(&[]).status, Nfsstat4::NOENT);
}

#[test]
fn a_share_lists_the_flavours_that_it_accepts() {
    const AUTH_NONE: u32 = 0;
    const AUTH_SYS: u32 = 1;
    let mut world = with("*(rw,sec=sys)");
    let handle = handle_of_share(&world);
    let ops = [ArgOp::Putfh(PutfhArgs4 { object: Fh4(&handle) }), getattr(&[attr4::SIZE])];
    let name = SecinfoArgs4 { name: Component4(b"a") };
    let asked = [ArgOp::Putrootfh(()), lookup(b"export"), ArgOp::Secinfo(name)];
    let flavors = |world: &World| match world.run(0, &asked).last() {
        ResOp::Secinfo(Res4::Ok(ok)) => ok.flavors.0.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(world.run(0, &ops).status, Nfsstat4::OK);
    world.flavor = Flavor::None;
    assert_eq!(world.run(0, &ops).status, Nfsstat4::WRONGSEC);
    assert_eq!(world.at_share(&[]).status, Nfsstat4::WRONGSEC);
    // A client with a refused flavor can list the accepted ones.
    assert_eq!(flavors(&world), [Secinfo4::Flavor(AUTH_SYS)]);
    set(&world, "*(rw,sec=none)");
    assert_eq!(world.run(0, &ops).status, Nfsstat4::OK);
    assert_eq!(flavors(&world), [Secinfo4::Flavor(AUTH_NONE)]);
    set(&world, "*(rw)");
    assert_eq!(flavors(&world), [Secinfo4::Flavor(AUTH_SYS), Secinfo4::Flavor(AUTH_NONE)]);
    set(&world, "10.0.0.0/8(rw,sec=sys)");
    assert_eq!(world.run(0, &asked).status, Nfsstat4::NOENT);
}
