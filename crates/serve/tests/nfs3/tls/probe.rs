//! The probe (RFC 9289 §4.1): when it is answered, when it is refused.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use wire::nfs3::*;
use wire::rpc::{AUTH_TLS, Auth, AuthStat, Denied, ReplyBody};

use super::certificates::{Authority, Shown};
use super::peer::{PROBE, Secured, call, offers_starttls, probe, probed};
use super::{World, counted};
use crate::client::{Client, record};
use crate::procedures::{create, getattr};
use crate::scripted::Scripted;
use crate::server::{Options, Server, directory};

fn refusal(client: &mut Client<impl std::io::Read + std::io::Write>) -> AuthStat {
    match client.receive().open().0 {
        ReplyBody::Denied(Denied::AuthError(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_reply_is_as_the_rfc_has_it_byte_for_byte() {
    let world = World::new();
    let mut client = Client::connect(world.server.addr);
    let words = [0x8000_0028_u32, 0xabcd, 0, 2, 100_003, 3, 0, 7, 0, 0, 0];
    client.send(&words.iter().flat_map(|w| w.to_be_bytes()).collect::<Vec<_>>());
    let reply = client.receive();
    let words = [0xabcd_u32, 1, 0, 0, 8, 0x5354_4152, 0x5454_4c53, 0];
    assert_eq!(reply.bytes, words.iter().flat_map(|w| w.to_be_bytes()).collect::<Vec<_>>());
}

#[test]
fn auth_tls_on_anything_but_a_bare_null_is_refused() {
    let world = World::new();
    let (mut client, root) = world.server.client();
    let garnished = Auth::Raw { flavor: AUTH_TLS, body: b"more" };
    let wrong_verf = Auth::Raw { flavor: 6, body: b"" };
    for bad in [
        call(1, 1, PROBE, Auth::None),
        call(2, 0, garnished, Auth::None),
        call(3, 0, PROBE, wrong_verf),
        call(4, 0, PROBE, PROBE),
        {
            let header = wire::rpc::CallHeader {
                xid: 5,
                prog: NFS_PROGRAM,
                vers: NFS_V3,
                proc: 0,
                cred: PROBE,
                verf: Auth::None,
            };
            record(header, &7_u32)
        },
    ] {
        client.send(&bad);
        assert_eq!(refusal(&mut client), AuthStat::BADCRED, "{bad:x?}");
    }
    // The connection continues unencrypted, and a valid probe is still accepted.
    assert!(getattr(&mut client, &root).is_ok());
    client.send(&probe(9));
    assert!(offers_starttls(&client.receive()));
}

#[test]
fn a_server_without_tls_does_not_announce_it() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    client.send(&probe(9));
    assert!(!offers_starttls(&client.receive()));
    assert!(getattr(&mut client, &root).is_ok());
}

#[test]
fn a_probe_within_a_session_is_refused_and_the_session_continues() {
    let world = World::new();
    let (mut client, root) = world.client();
    client.send(&probe(9));
    assert_eq!(refusal(&mut client), AuthStat::BADCRED);
    assert!(getattr(&mut client, &root).is_ok());
}

#[test]
fn a_connection_that_was_used_unencrypted_may_switch_to_tls() {
    let world = World::new();
    let (mut client, root) = world.server.client();
    // In one send after a call: the reply to that comes first.
    let null = client.nfs(Proc::NULL, &());
    let (first, last) = (client.xid, 9);
    client.send(&[null, probe(last)].concat());
    assert_eq!(client.receive().xid, first);
    let reply = client.receive();
    assert_eq!(reply.xid, last);
    assert!(offers_starttls(&reply));
    let config = world.authority.client(&Shown::Nothing);
    let mut client = Secured::over(client, config).expect("a session");
    assert!(getattr(&mut client, &root).is_ok());
    counted(&world.budgets().tls_sessions, 1);
}

#[test]
fn a_probe_while_a_call_is_in_progress_is_refused() {
    let script = Scripted::over(directory());
    let tls = Some(Authority::new("a").server());
    let server = Server::start(script.clone() as _, Options { tls, ..Options::default() });
    let (mut client, root) = server.client();
    let file = create(&mut client, &root, "f");
    script.blocks.store(true, SeqCst);
    script.close_gate();
    let slow = client.nfs(Proc::READ, &ReadArgs { file: Fh3(&file), offset: 0, count: 10 });
    let slow_xid = client.xid;
    client.send(&slow);
    script.wait_begun(1);
    client.send(&probe(9));
    assert_eq!(refusal(&mut client), AuthStat::BADCRED);
    script.open_gate();
    assert_eq!(client.receive().xid, slow_xid);
    client.send(&probe(10));
    assert!(offers_starttls(&client.receive()));
    assert_eq!(server.service().budgets().tls_failures.load(Relaxed), 0);
}

#[test]
fn data_behind_the_probe_ends_the_connection() {
    let world = World::new();
    let null = call(10, 0, Auth::None, Auth::None);
    let hello = [0x16, 3, 1, 2, 0];
    for behind in [&null[..], &hello[..]] {
        world.fails(&["between the probe and its reply"], || {
            let mut client = Client::connect(world.server.addr);
            client.send(&[&probe(9), behind].concat());
            assert!(client.is_closed());
        });
    }
}

#[test]
fn what_is_no_handshake_after_the_reply_ends_the_connection() {
    let world = World::new();
    let plain_call = call(10, 0, Auth::None, Auth::None);
    let long_record = [&[0x16, 3, 3, 0xff, 0xff][..], &[0; 66_000]].concat();
    // A ClientHello that is announced with 65 520 bytes, in records that are each valid.
    let mut endless = [&[0x16, 3, 1, 0x40, 0, 1, 0, 0xff, 0xf0][..], &[0; 16_380]].concat();
    for _ in 0..6 {
        endless.extend([&[0x16, 3, 1, 0x40, 0][..], &[0; 16_384]].concat());
    }
    let data_first = [0x17, 3, 3, 0, 4, 1, 2, 3, 4].to_vec();
    let get = b"GET / HTTP/1.1\r\n\r\n".to_vec();
    for bytes in [plain_call, vec![0; 100], get, data_first, long_record, endless] {
        world.fails(&["message", "handshake", "TLS"], || {
            let mut client = probed(world.server.addr);
            // The server may have closed it before all is sent.
            let _ = std::io::Write::write_all(&mut client.stream, &bytes);
            assert!(client.is_closed(), "{:x?}", &bytes[..8]);
        });
    }
    world.has_no_panics();
}
