//! A session that is used over both transports: a slot is replayed whichever way the repeat comes,
//! and a recall goes over the connection that was made for it.

use std::net::TcpStream;

use wire::nfs4::*;

use crate::scene::{Client, Scene, Wire, in_root, open};

const BOTH: u32 = share4::ACCESS_BOTH;

fn tcp(scene: &Scene) -> Wire {
    Wire::over(TcpStream::connect(scene.addr).expect("connect"))
}

#[test]
fn a_slot_is_replayed_over_the_other_transport() {
    let scene = Scene::new();
    let mut client = Client::new(scene.addr, b"one", vec![CallbackSec4::None(())]);
    for over_tcp in [true, false] {
        let mut other = if over_tcp { tcp(&scene) } else { Wire::connect(scene.addr) };
        let make = |name: &'static [u8]| {
            let objtype = Createtype4::Other(Ftype4::DIR);
            let (objname, createattrs) = (Component4(name), Fattr4::NONE);
            in_root(&[ArgOp::Create(CreateArgs4 { objtype, objname, createattrs })])
        };
        let ops = make(if over_tcp { b"a" } else { b"b" });
        let first = client.run(&ops);
        assert_eq!(first.0, Nfsstat4::OK, "{first:?}");
        std::mem::swap(&mut client.wire, &mut other);
        assert_eq!(client.again(&ops), first, "over tcp: {over_tcp}");
        // Done again it finds what is there.
        assert_eq!(client.run(&ops).0, Nfsstat4::EXIST);
        // The next round begins over the other transport.
    }
}

#[test]
fn a_delegation_is_recalled_over_the_connection_by_rdma() {
    let scene = Scene::new();
    let mut holder = Client::new(scene.addr, b"holder", vec![CallbackSec4::None(())]);
    let made = holder.open(share4::ACCESS_READ, true).expect("made");
    let id = crate::scene::read_delegation(&made).expect("a delegation");
    // The other one is on TCP.
    let mut other = Client::new(scene.addr, b"other", vec![CallbackSec4::None(())]);
    other.wire = tcp(&scene);
    let args = in_root(&[open(other.id, 0, BOTH, false)]);
    assert_eq!(other.run(&args).0, Nfsstat4::DELAY);
    let called = holder.wire.called();
    assert_eq!(called.recalled(), id);
    holder.wire.answer(&called, &called.done());
    assert_eq!(holder.give_back(id), Nfsstat4::OK);
    assert_eq!(other.run(&args).0, Nfsstat4::OK);
}
