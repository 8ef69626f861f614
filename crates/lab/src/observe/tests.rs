//! Servers of this machine, and which of them a target is.

use super::*;
use std::net::TcpListener;

#[test]
fn the_server_of_a_target() {
    let of = |url: &str| ObservedTarget::of(&Target::parse(url).unwrap());
    let found = of("nfs3://127.0.0.1:12049/export/x");
    assert_eq!((found.port, found.blocks), (Some(12_049), false));
    assert_eq!(found.addresses, [IpAddr::from([127, 0, 0, 1])]);
    assert_eq!(found.exported, Some("/export/x".into()));
    assert!(of("iscsi://127.0.0.1:3260/iqn.x/0").blocks);
    assert_eq!(of("path:/tmp"), ObservedTarget::default());
}

#[test]
fn a_server_is_found_by_its_address() {
    let listener = TcpListener::bind("127.0.0.2:0").unwrap();
    let port = Some(listener.local_addr().unwrap().port());
    let at = |address: [u8; 4]| ObservedTarget {
        addresses: vec![address.into()],
        port,
        ..Default::default()
    };
    let mut server = LocalServer::find(&at([127, 0, 0, 2]), None).unwrap();
    assert_eq!(server.identity.pids, [std::process::id()]);
    assert_eq!(server.identity.namespace, None);
    let sample = server.sample().unwrap();
    assert!(!sample.process.unwrap().threads.is_empty());
    assert!(sample.machine.nics.iter().any(|nic| nic.0 == "lo"));
    assert_eq!(LocalServer::find(&at([127, 0, 0, 3]), None).err(), Some(ServerNotFound::Elsewhere));
}

#[test]
fn a_machine_without_a_server() {
    let mut machine = LocalServer::machine(Some(Path::new("/proc")));
    let sample = machine.sample().unwrap();
    assert_eq!(sample.process, None);
    assert!(!sample.machine.cores.is_empty());
    let observed = sample.observed.unwrap();
    assert!(observed.no_device.unwrap().contains("proc"));
}

#[test]
fn where_a_client_leaves() {
    let target = Target::parse("nfs3://127.0.0.1:2049/x").unwrap();
    let source = ClientSource::of(&target, Some(IpAddr::from([127, 0, 0, 11]))).unwrap();
    assert_eq!((source.address.as_str(), source.interface.as_deref()), ("127.0.0.11", Some("lo")));
    let source = ClientSource::of(&target, None).unwrap();
    assert_eq!((source.address.as_str(), source.interface.as_deref()), ("127.0.0.1", Some("lo")));
    assert_eq!(ClientSource::of(&Target::Null, None), None);
}
