//! Clients that mean harm, or know no better.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serve::ftp::Settings;
use socket2::{Domain, Socket, Type};
use wire::ftp::{Request, Verb, addr};

use crate::client::{Running, connect};

#[test]
fn data_goes_to_no_other_client() {
    let running = Running::with(Settings::default());
    let mut c = running.signed_in();
    c.put("file", b"x");
    for line in [
        "PORT 10,0,0,1,40,0",
        "PORT 127,0,0,2,40,0",
        "PORT 127,0,0,1,0,22",
        "EPRT |1|10.0.0.1|40000|",
        "EPRT |1|127.0.0.1|80|",
        "EPRT |2|::1|40000|",
        "PORT 1,2,3",
    ] {
        assert_eq!(c.code_of(line), 501, "{line}");
        assert_eq!(c.code_of("RETR file"), 425, "{line}");
    }
    assert_eq!(c.code_of("EPRT |3|x|1|"), 522);
    assert_eq!(c.code_of("EPSV 2"), 522);
    assert_eq!(c.code_of("EPSV ALL"), 200);
    assert_eq!(c.code_of("PASV"), 501);
    assert_eq!(c.get("file"), b"x");
}

#[test]
fn no_other_client_reaches_an_opened_port() {
    let running = Running::with(Settings::default());
    let mut c = running.signed_in();
    c.put("file", b"x");
    let at = c.passive();
    // Another address of this machine, which calls first.
    let thief = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let from = SocketAddr::from((Ipv4Addr::new(127, 0, 0, 2), 0));
    thief.bind(&from.into()).expect("an address of lo");
    thief.connect(&at.into()).expect("a connection");
    let data = connect(at);
    assert_eq!(c.code_of("RETR file"), 150);
    assert_eq!(crate::client::Stream::Plain(data).all(), b"x");
    assert_eq!(c.reply().code, 226);
    let mut stolen = Vec::new();
    let mut thief = std::net::TcpStream::from(thief);
    let _ = std::io::Read::read_to_end(&mut thief, &mut stolen);
    assert_eq!(stolen, b"");
}

#[test]
fn ports_are_of_the_range_and_the_address_is_the_one_set() {
    let settings = Settings {
        passive_ports: Some(31_900..=31_909),
        masquerade_address: Some(Ipv4Addr::new(192, 0, 2, 7)),
        ..Settings::default()
    };
    let running = Running::with(settings);
    let mut c = running.signed_in();
    for _ in 0..20 {
        assert!((31_900..=31_909).contains(&c.passive().port()));
        let reply = c.ask("PASV");
        let at = addr::pasv_reply(&reply.lines[0]).expect("an address");
        assert_eq!(IpAddr::V4(*at.ip()), IpAddr::from([192, 0, 2, 7]));
        assert!((31_900..=31_909).contains(&at.port()));
    }
}

#[test]
fn no_path_leads_out() {
    let running = Running::with(Settings::default());
    let mut c = running.signed_in();
    for path in ["../../etc/passwd", "/etc/passwd", "/share/../../etc", "/..", "//etc//passwd"] {
        assert_eq!(c.code_of(&format!("SIZE {path}")), 550, "{path}");
    }
    let deep = "x/".repeat(5_000);
    assert!(matches!(c.code_of(&format!("MKD {deep}")), 500 | 553));
    assert_eq!(c.request(&Request::Text(Verb::Mkd, &[b'n'; 300])).code, 553);
    c.send(b"SIZE a\0b\r\n");
    assert_eq!(c.reply().code, 501);
}

#[test]
fn lines_without_end_and_many_at_once() {
    let running = Running::with(Settings::default());
    let mut c = running.signed_in();
    c.send(&vec![b'x'; 200_000]);
    assert_eq!(c.reply().code, 500);
    c.send(b"\r\nNOOP\r\n");
    assert_eq!(c.reply().code, 200);
    c.send(&b"NOOP\r\n".repeat(1_000));
    for _ in 0..1_000 {
        assert_eq!(c.reply().code, 200);
    }
}

#[test]
fn idle_sessions_do_not_stop_others() {
    let running = Running::with(Settings::default());
    let idle: Vec<_> = (0..300).map(|_| running.client()).collect();
    let mut c = running.signed_in();
    c.put("file", &[7; 100_000]);
    assert_eq!(c.get("file"), [7; 100_000]);
    drop(idle);
}
