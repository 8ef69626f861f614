//! Refused clients: by protocol, version, certificate; and by the rules of a share.

use std::sync::atomic::Ordering::Relaxed;

use wire::mount3::{Dirpath, MntRes, Mountstat3};
use wire::nfs3::*;

use super::certificates::{Authority, Shown};
use super::peer::{Secured, probed};
use super::{World, counted};
use crate::procedures::{create, getattr};
use crate::server::Server;

fn mount(client: &mut crate::client::Client<impl std::io::Read + std::io::Write>) -> Mountstat3 {
    let reply = client.mount_call(wire::mount3::Proc::MNT, &Dirpath(b"/export/t"));
    match reply.results::<MntRes<'_>>() {
        MntRes::Ok(_) => Mountstat3::OK,
        MntRes::Fail(status) => status,
    }
}

#[test]
fn without_the_protocol_sunrpc_there_is_no_session() {
    let world = World::new();
    for names in [vec![], vec![b"h2".to_vec()], vec![b"sunrpc2".to_vec(), b"".to_vec()]] {
        let mut config = world.authority.client(&Shown::Nothing);
        config.alpn_protocols = names.into_iter().filter(|name| !name.is_empty()).collect();
        world.fails(&["sunrpc", "known protocol"], || {
            let session = Secured::session(world.server.addr, config);
            assert!(session.is_err() || session.is_ok_and(|mut client| client.is_over()));
        });
    }
    // Among others it is found.
    let mut config = world.authority.client(&Shown::Nothing);
    config.alpn_protocols = vec![b"h2".to_vec(), b"sunrpc".to_vec()];
    let client = Secured::session(world.server.addr, config).expect("a session");
    assert_eq!(client.stream.conn.alpn_protocol(), Some(&b"sunrpc"[..]));
}

#[test]
fn tls_1_2_is_refused() {
    let world = World::new();
    let config = world.authority.client_over(&Shown::Nothing, &rustls::version::TLS12);
    world
        .fails(&["incompatible"], || assert!(Secured::session(world.server.addr, config).is_err()));
    assert_eq!(world.budgets().tls_sessions.load(Relaxed), 0);
}

#[test]
fn certificates_that_do_not_hold_are_refused() {
    let world = World::new();
    let stranger = Authority::new("stranger");
    for shown in [Shown::Expired, Shown::ForServers, Shown::Of(&stranger)] {
        let config = world.authority.client(&shown);
        world.fails(&["invalid peer certificate"], || {
            // The client is done first, and learns of the refusal when it reads.
            let session = Secured::session(world.server.addr, config);
            assert!(session.is_err() || session.is_ok_and(|mut client| client.is_over()));
        });
    }
    assert_eq!(world.budgets().tls_sessions.load(Relaxed), 0);
    let mut good = world.connect(&Shown::Good);
    assert_eq!(mount(&mut good), Mountstat3::OK);
    counted(&world.budgets().tls_sessions, 1);
    world.has_no_panics();
}

#[test]
fn a_server_with_another_authority_is_not_believed() {
    let world = World::new();
    let config = Authority::new("another").client(&Shown::Nothing);
    world.fails(&["UnknownCA", "alert"], || {
        assert!(Secured::session(world.server.addr, config).is_err())
    });
}

#[test]
fn a_share_admits_by_transport() {
    let world = World::new();
    let server = &world.server;
    let (mut plain, root) = server.client();
    let (mut tls, _) = world.client();
    let mut mtls = world.connect(&Shown::Good);
    mtls.xid += 1000;
    let file = create(&mut plain, &root, "f");
    let allowed = [Ok(()), Err(Nfsstat3::ACCES)];
    for (rule, admitted) in [
        ("*(rw,no_root_squash)", [true, true, true]),
        ("*(rw,no_root_squash,xprtsec=none:tls)", [true, true, true]),
        ("*(rw,no_root_squash,xprtsec=tls:mtls)", [false, true, true]),
        ("*(rw,no_root_squash,xprtsec=tls)", [false, true, true]),
        ("*(rw,no_root_squash,xprtsec=mtls)", [false, false, true]),
        ("10.0.0.0/8(rw,xprtsec=tls)", [false, false, false]),
    ] {
        server.set_rules(rule);
        let got = [
            getattr(&mut plain, &file).map(drop),
            getattr(&mut tls, &file).map(drop),
            getattr(&mut mtls, &file).map(drop),
        ];
        assert_eq!(got, admitted.map(|yes| allowed[usize::from(!yes)]), "{rule}");
        let got = [mount(&mut plain), mount(&mut tls), mount(&mut mtls)];
        let status = |yes| if yes { Mountstat3::OK } else { Mountstat3::ACCES };
        assert_eq!(got, admitted.map(status), "{rule}");
    }
}

#[test]
fn rights_come_with_the_session_not_before() {
    let world = World::new();
    world.server.set_rules("*(rw,no_root_squash,xprtsec=tls)");
    let mut plain = probed(world.server.addr);
    // After the probe nothing unencrypted is accepted any more, refused or not.
    plain.send(&[0; 4]);
    assert!(plain.is_closed());
    let (mut client, root) = world.client();
    assert!(getattr(&mut client, &root).is_ok());
}

#[test]
fn a_certificate_that_is_exchanged_holds_for_the_next() {
    let first = Authority::new("first");
    let second = Authority::new("second");
    let tls = first.server();
    let options = crate::server::Options { tls: Some(tls.clone()), ..Default::default() };
    let server = Server::start(crate::server::directory(), options);
    let mut old = Secured::session(server.addr, first.client(&Shown::Nothing)).expect("a session");
    let root = old.mount("/export/t");
    tls.set(&second.credentials()).expect("good ones");
    assert!(Secured::session(server.addr, first.client(&Shown::Nothing)).is_err());
    let new = Secured::session(server.addr, second.client(&Shown::Nothing));
    assert!(getattr(&mut new.expect("a session"), &root).is_ok());
    assert!(getattr(&mut old, &root).is_ok(), "a session stays what it was");
    let bad = serve::transport::tls::Credentials { key: String::new(), ..first.credentials() };
    assert!(tls.set(&bad).is_err());
    assert!(Secured::session(server.addr, second.client(&Shown::Nothing)).is_ok());
}

#[test]
fn statistics_show_the_name_that_was_verified() {
    let world = World::new();
    let mut client = world.connect(&Shown::Good);
    let root = client.mount("/export/t");
    assert!(getattr(&mut client, &root).is_ok());
    let clients = world.server.hub.clients();
    let shown = world.server.records(2)[0].client;
    assert_eq!(clients.label_of(shown).as_deref(), Some("127.0.0.1 (host.example)"));
}
