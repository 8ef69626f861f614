//! Export rules on the wire: accepted clients, their access and identity; and rules that change
//! under a client.

use std::net::{IpAddr, SocketAddr, TcpStream};

use wire::mount3::{Dirpath, ExportRes, MntRes, Mountstat3};
use wire::nfs3::*;

use crate::client::stream::{Stream, by_rdma};
use crate::client::{Client, PATIENCE};
use crate::procedures::{create, getattr, read, write};
use crate::server::Server;

/// A client at another address of this machine.
fn client_at(server: &Server, address: &str) -> Client {
    let address: IpAddr = address.parse().unwrap();
    // Calls of its own, not repeats of another's.
    let xid = 1_000_000 + u32::from(address.to_string().len() as u16);
    let stream = match by_rdma() {
        true => Stream::connect_rdma_from(address, server.addr, PATIENCE),
        false => Stream::over(tcp_from(address, server.addr), PATIENCE),
    };
    Client { stream, xid, uid: 0, gid: 0 }
}

fn tcp_from(address: IpAddr, to: SocketAddr) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::new(address, 0).into()).unwrap();
    socket.connect(&to.into()).unwrap();
    TcpStream::from(socket)
}

fn mount(client: &mut Client) -> Result<Vec<u8>, Mountstat3> {
    let reply = client.mount_call(wire::mount3::Proc::MNT, &Dirpath(b"/export/t"));
    match reply.results::<MntRes<'_>>() {
        MntRes::Ok(ok) => Ok(ok.fhandle.0.to_vec()),
        MntRes::Fail(status) => Err(status),
    }
}

fn made(client: &mut Client, dir: &[u8], name: &str) -> Result<(), Nfsstat3> {
    let how = CreateHow::Unchecked(Sattr3::default());
    let where_ = DiropArgs { dir: Fh3(dir), name: Filename3(name.as_bytes()) };
    let reply = client.call(Proc::CREATE, &CreateArgs { where_, how });
    reply.results::<CreateRes<'_>>().into_result().map(drop)
}

#[test]
fn a_client_that_no_rule_names_gets_nothing() {
    let server = Server::fresh();
    let (mut inside, root) = server.client();
    let file = create(&mut inside, &root, "f");
    server.set_rules("127.0.0.1(rw,no_root_squash)");
    let mut outside = client_at(&server, "127.0.0.9");
    assert_eq!(mount(&mut outside), Err(Mountstat3::ACCES));
    // A handle from somewhere else opens nothing.
    assert_eq!(getattr(&mut outside, &file).unwrap_err(), Nfsstat3::ACCES);
    assert_eq!(made(&mut outside, &root, "g"), Err(Nfsstat3::ACCES));
    assert!(getattr(&mut inside, &file).is_ok());

    server.set_rules("127.0.0.0/8(rw,no_root_squash)");
    assert!(getattr(&mut outside, &file).is_ok(), "the same connection, other rules");
    assert_eq!(mount(&mut outside), Ok(root));
}

#[test]
fn a_read_only_client_reads_and_changes_nothing() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let file = create(&mut client, &root, "f");
    write(&mut client, &file, 0, b"hello");
    server.set_rules("127.0.0.9(rw)\n*(ro,no_root_squash)");
    assert_eq!(read(&mut client, &file, 0, 10).0, b"hello");
    assert_eq!(made(&mut client, &root, "g"), Err(Nfsstat3::ROFS));
    let data = b"x";
    let args =
        WriteArgs { file: Fh3(&file), offset: 0, count: 1, stable: StableHow::FILE_SYNC, data };
    let failed = client.call(Proc::WRITE, &args).results::<WriteRes>().into_result();
    assert_eq!(failed.unwrap_err(), Nfsstat3::ROFS);
    let ask = AccessArgs { object: Fh3(&file), access: 0x3f };
    let ok = client.call(Proc::ACCESS, &ask).results::<AccessRes>().into_result().unwrap();
    assert_eq!(ok.access & 0x1c, 0, "nothing that changes: {:x}", ok.access);
    assert_eq!(ok.access & 1, 1);
    assert_eq!(read(&mut client, &file, 0, 10).0, b"hello");
}

#[test]
fn squashed_users_act_as_the_anonymous_one() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    let file = create(&mut client, &root, "private");
    let new_attributes = Sattr3 { mode: Some(0o600), ..Sattr3::default() };
    let args = SetattrArgs { object: Fh3(&file), new_attributes, guard: None };
    assert!(client.call(Proc::SETATTR, &args).results::<SetattrRes>().into_result().is_ok());
    // SAFETY: no arguments, cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return println!("SKIP export-squash: needs root");
    }
    let open = Sattr3 { mode: Some(0o777), ..Sattr3::default() };
    let args = SetattrArgs { object: Fh3(&root), new_attributes: open, guard: None };
    assert!(client.call(Proc::SETATTR, &args).results::<SetattrRes>().into_result().is_ok());

    server.set_rules("*(rw,root_squash,anonuid=4321,anongid=4322)");
    let args = ReadArgs { file: Fh3(&file), offset: 0, count: 10 };
    let reply = client.call(Proc::READ, &args);
    assert_eq!(reply.results::<ReadRes<'_>>().into_result().unwrap_err(), Nfsstat3::ACCES);
    let theirs = create(&mut client, &root, "theirs");
    let attr = getattr(&mut client, &theirs).unwrap();
    assert_eq!((attr.uid, attr.gid), (4321, 4322));
    client.uid = 1000;
    client.gid = 1000;
    let own = create(&mut client, &root, "own");
    assert_eq!(getattr(&mut client, &own).unwrap().uid, 1000);

    server.set_rules("*(rw,all_squash,anonuid=4321,anongid=4322)");
    let all = create(&mut client, &root, "all");
    let attr = getattr(&mut client, &all).unwrap();
    assert_eq!((attr.uid, attr.gid), (4321, 4322));
    // Statistics still show the uid of the call.
    assert!(server.records(8).iter().any(|r| r.user == 1000));
}

#[test]
fn an_unprivileged_port_is_refused_where_a_share_requires_it() {
    let server = Server::fresh();
    let (mut client, root) = server.client();
    server.set_rules("*(rw,secure)");
    assert_eq!(getattr(&mut client, &root).unwrap_err(), Nfsstat3::ACCES);
    assert_eq!(mount(&mut client), Err(Mountstat3::ACCES));
}

#[test]
fn export_names_the_clients() {
    let server = Server::fresh();
    let (mut client, _) = server.client();
    let listed = |client: &mut Client| -> Vec<Vec<u8>> {
        let reply = client.mount_call(wire::mount3::Proc::EXPORT, &());
        let list = reply.results::<ExportRes<'_>>();
        assert_eq!(list.0[0].dir.0, b"/export/t");
        list.0[0].groups.0.iter().map(|name| name.0.to_vec()).collect()
    };
    assert!(listed(&mut client).is_empty(), "everyone");
    server.set_rules("10.0.0.0/8(rw)\n10.9.0.1(noaccess)\nfd00::/8(ro)");
    assert_eq!(listed(&mut client), [b"10.0.0.0/8".to_vec(), b"fd00::/8".to_vec()]);
}
