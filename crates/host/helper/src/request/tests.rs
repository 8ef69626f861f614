//! Requests and answers survive their way, and what is too long or too much is refused.

use host_network::configuration::{Class, Datalink, Interface, RouteItem};
use host_network::pkey::Pkey;
use host_network::state::{Dns, LinkMode, Mode, Policy, Timer};

use super::*;

fn wanted() -> Proposal {
    let mut configuration = Configuration::default();
    let mode = Mode::Lacp { policy: Policy::Layer34, timer: Timer::Fast };
    let class = Class::Aggregation { links: vec!["e0".to_owned()], mode };
    configuration.datalinks.insert("g0".to_owned(), Datalink { class, mtu: Some(9000) });
    let pkey = Pkey::new(0x8001).expect("a P_Key").full();
    let class = Class::Partition { link: "ib0".to_owned(), pkey, mode: LinkMode::Datagram };
    configuration.datalinks.insert("p0".to_owned(), Datalink { class, mtu: None });
    let addresses = ["10.0.0.1/24", "2001:db8::1/64"].map(|a| a.parse().expect("an address"));
    configuration.interfaces.insert("lan".to_owned(), Interface::on("g0", &addresses));
    let destination = "0.0.0.0/0".parse().expect("a network");
    let gateway = "10.0.0.9".parse().expect("an address");
    let route = RouteItem { destination, gateway, metric: 7 };
    configuration.routes.insert("default".to_owned(), route);
    configuration.dns = Some(Dns { servers: vec![gateway], domains: Vec::new() });
    Proposal { configuration, administration: vec![gateway], successor: Some(gateway) }
}

#[test]
fn requests_survive_their_way() {
    let requests = [
        Request::NetworkStatus {},
        Request::NetworkPlan(wanted()),
        Request::NetworkApply { wanted: wanted(), seconds: 60 },
        Request::NetworkConfirm { change: u64::MAX },
        Request::NetworkTakeBack { change: 1 },
    ];
    let mut bytes = Vec::new();
    for request in &requests {
        send(&mut bytes, request).expect("a vector takes it");
    }
    let mut from = bytes.as_slice();
    for request in &requests {
        let message = receive(&mut from, REQUEST_MAX).expect("a message").expect("one more");
        assert_eq!(Request::parse(&message).as_ref(), Ok(request));
    }
    assert_eq!(receive(&mut from, REQUEST_MAX).expect("the end"), None);
}

#[test]
fn a_message_over_its_length_is_refused_before_it_is_read() {
    let mut bytes = u32::MAX.to_be_bytes().to_vec();
    bytes.extend([b' '; 16]);
    let mut from = bytes.as_slice();
    let why = receive(&mut from, REQUEST_MAX).expect_err("too long").to_string();
    assert_eq!(why, "a message of 4294967295 bytes; the limit is 524288");
    assert_eq!(from.len(), 16);
    let long = vec![b' '; REQUEST_MAX + 1];
    assert_eq!(Request::parse(&long), Err("a request has at most 524288 bytes".to_owned()));
}

#[test]
fn a_message_that_is_cut_is_an_error() {
    let mut bytes = 10u32.to_be_bytes().to_vec();
    bytes.extend(*b"{}");
    let e = receive(&mut bytes.as_slice(), REQUEST_MAX).expect_err("cut");
    assert_eq!(e.kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn too_many_items_are_refused() {
    let mut wanted = wanted();
    for at in 0..=ITEMS_MAX {
        let datalink = Datalink { class: Class::Device, mtu: None };
        wanted.configuration.datalinks.insert(format!("d{at}"), datalink);
    }
    let bytes = serde_json::to_vec(&Request::NetworkPlan(wanted)).expect("JSON");
    let why = "at most 256 items of a kind, 64 in each list".to_owned();
    assert_eq!(Request::parse(&bytes), Err(why));
}

/// Nothing that a request has is a path or a program; a field that is not declared is refused.
#[test]
fn unknown_requests_and_fields_are_refused() {
    for text in [
        r#"{"Run": {"program": "/bin/sh"}}"#,
        r#"{"NetworkStatus": {"path": "/etc/shadow"}}"#,
        r#"{"NetworkConfirm": {"change": 1, "path": "/etc/shadow"}}"#,
        r#""NetworkStatus""#,
        "",
    ] {
        let why = Request::parse(text.as_bytes()).expect_err(text);
        assert!(why.starts_with("not a request: "), "{text}: {why}");
    }
}

#[test]
fn requests_on_pools_survive_their_way_and_name_no_more_disks_than_a_pool_has() {
    let of = |disks: usize| {
        let disks = (0..disks).map(|at| format!("wwn-{at}")).collect();
        let profile = host_pools::profile::Profile::Mirror;
        Request::Pools(PoolRequest::Create { pool: "tank".to_owned(), profile, disks, zfs: None })
    };
    let parse = |request: &Request| Request::parse(&serde_json::to_vec(request).expect("JSON"));
    assert_eq!(parse(&of(DISKS_MAX)), Ok(of(DISKS_MAX)));
    assert!(parse(&of(DISKS_MAX + 1)).is_err_and(|why| why.contains("at most")));
    let field = br#"{"Pools":{"Export":{"pool":"tank","at":"/etc"}}}"#;
    assert!(Request::parse(field).is_err_and(|why| why.contains("unknown field")));
}
