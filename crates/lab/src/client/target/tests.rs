//! Target URLs read and written.

use super::*;

#[test]
fn every_form_survives_a_round_trip() {
    for url in [
        "null:",
        "path:/srv/data",
        "block:/dev/sdx",
        "iscsi://anna@127.0.0.1:3260/iqn.2026-01.test:t/0?digests=header,data",
        "smb://anna@127.0.0.1:445/box/folder?dialect=3.0&cipher=aes128-ccm",
        "nfs3://127.0.0.1:12049/export/data",
        "nfs3://host:24100/dev/shm/x?mountport=24101",
        "nfs3://[::1]:2049/x",
        "nfs3+rdma://127.0.0.1:30049/export/data",
        "nfs3+rdma://[::1]:20049/x?mountport=635",
        "nfs4://127.0.0.1:12049/export/data",
        "nfs4://[::1]:2049/",
    ] {
        assert_eq!(Target::parse(url).unwrap().to_string(), url);
    }
    let Target::Nfs3(at) = Target::parse("nfs3://nas/export").unwrap() else { panic!() };
    assert_eq!((at.port, at.mount_port, at.path.as_str()), (2049, 2049, "/export"));
}

#[test]
fn mount_is_asked_over_tcp_at_the_port_that_belongs_to_that_of_rdma() {
    for (url, port, mount_port) in [
        ("nfs3+rdma://nas/export", 20049, 2049),
        ("nfs3+rdma://nas:30049/export", 30049, 12049),
        ("nfs3+rdma://nas:30049/export?mountport=9", 30049, 9),
    ] {
        let Target::Nfs3(at) = Target::parse(url).unwrap() else { panic!("{url}") };
        assert_eq!((at.rdma, at.port, at.mount_port), (true, port, mount_port), "{url}");
        assert_eq!(at.over_rdma(), Some(at.clone()));
        assert_eq!(Target::protocol_of(url), "nfs3");
    }
    let Target::Nfs3(at) = Target::parse("nfs3://nas:12049/x?mountport=7").unwrap() else {
        panic!()
    };
    let over = Target::Nfs3(at.over_rdma().expect("a port")).to_string();
    assert_eq!(over, "nfs3+rdma://nas:30049/x?mountport=7");
}

#[test]
fn errors_are_reported() {
    for (url, why) in [
        ("nfs3", "no scheme"),
        ("path:dir", "absolute"),
        ("block:sdx", "absolute"),
        ("iscsi://h/iqn.2026-01.test:t", "number of a unit"),
        ("smb://h/box", "needs a user"),
        ("nfs3://host", "path of a share"),
        ("nfs3+rdma://host", "path of a share"),
        ("nfs4+rdma://host/x", "unknown scheme"),
        ("nfs3://host:x/y", "not a number"),
        ("nfs3://:1/y", "no host"),
        ("nfs3://h/y?vers=4", "mountport"),
        ("nfs4://h/y?minor=2", "takes none"),
        ("nfs4://:1/y", "no host"),
        ("gopher://h/y", "unknown scheme"),
    ] {
        let error = Target::parse(url).unwrap_err().to_string();
        assert!(error.contains(why), "{url}: {error}");
    }
}

#[test]
fn a_cipher_is_omitted_where_the_client_decides_that() {
    let omitted = |url: &str| {
        let mut target = Target::parse(url).unwrap();
        target.omit_cipher().map(|()| target.to_string())
    };
    let smb = omitted("smb://ann@127.0.0.1:445/box?cipher=aes128-gcm").unwrap();
    assert!(smb.contains("signing=off") && !smb.contains("cipher"), "{smb}");
    assert_eq!(omitted("https://127.0.0.1:443/x").as_deref(), Ok("http://127.0.0.1:80/x"));
    for url in ["smb://ann@127.0.0.1:445/box", "nfs3://127.0.0.1:2049/x", "http://127.0.0.1:80/x"] {
        assert!(omitted(url).is_err(), "{url}");
    }
}
