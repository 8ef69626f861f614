//! The client of etcd against the stand-in: leases, claims, what is refused, members that do not
//! answer.

#[path = "../../../tests/heads/etcd.rs"]
mod stand_in;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::Duration;

use head::etcd::{Etcd, Transport};
use head::keys::{Member, Record, View};
use head::machine::{Outcome, Request};
use stand_in::StandIn;

/// Requests over plain HTTP; responses in one chunk, as the stand-in sends them.
struct Plain;

impl Transport for Plain {
    fn post(
        &self,
        member: &str,
        path: &str,
        body: &str,
        time: Duration,
    ) -> std::io::Result<(u16, Vec<u8>)> {
        let broken = || std::io::Error::other("no response");
        let mut stream = TcpStream::connect(member.trim_start_matches("http://"))?;
        stream.set_read_timeout(Some(time))?;
        write!(stream, "POST {path} HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len())?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let status = text.split(' ').nth(1).and_then(|s| s.parse().ok()).ok_or_else(broken)?;
        let (_, chunk) = text.split_once("\r\n\r\n").ok_or_else(broken)?;
        let body = chunk.lines().nth(1).ok_or_else(broken)?;
        Ok((status, body.as_bytes().to_vec()))
    }
}

fn client(members: &[String]) -> Etcd {
    Etcd::new(members.to_vec(), "lab", Box::new(Plain))
}

fn url(server: &StandIn) -> String {
    format!("http://{}", server.address)
}

fn view(etcd: &Etcd) -> View {
    match etcd.request("left", &Request::Read).expect("a response") {
        Outcome::View(view) => view,
        other => panic!("{other:?}"),
    }
}

fn claim(lease: i64, seen: u64, number: u64) -> Request {
    let record = Record { number, target: "left".to_owned(), served: 0, last: None };
    Request::Claim { resource: "projects".to_owned(), lease, seen, record }
}

#[test]
fn one_claim_succeeds_and_its_number_stays() {
    let server = StandIn::start("127.0.0.1:0");
    let etcd = client(&[url(&server)]);
    assert_eq!(view(&etcd), View::default());
    let lease = etcd.grant(Duration::from_secs(600)).expect("a lease");
    assert!(etcd.renew(lease).expect("a response"));
    let Outcome::Done(revision) = etcd.request("left", &claim(lease, 0, 1)).expect("a response")
    else {
        panic!("the claim was refused");
    };
    let end = server.lease_end("/plimsoll/lab/owners/projects");
    assert!(end.is_some(), "the owner has the lease of its head");
    let second = etcd.request("right", &claim(lease, revision, 2)).expect("a response");
    assert_eq!(second, Outcome::Refused, "it has an owner");
    let seen = view(&etcd);
    assert_eq!(seen.owners["projects"].value.head, "left");
    assert_eq!(
        (seen.owners["projects"].lease, seen.owners["projects"].revision),
        (lease, revision)
    );
    let release = |revision| Request::Release { resource: "projects".to_owned(), revision };
    assert_eq!(etcd.request("left", &release(1)).expect("a response"), Outcome::Refused);
    assert!(matches!(etcd.request("left", &release(revision)), Ok(Outcome::Done(_))));
    let stale = etcd.request("right", &claim(lease, 0, 1)).expect("a response");
    assert_eq!(stale, Outcome::Refused, "the record is another one");
    let record = &view(&etcd).records["projects"];
    assert_eq!((record.value.number, record.lease), (1, 0));
    assert!(matches!(
        etcd.request("right", &claim(lease, record.revision, 2)),
        Ok(Outcome::Done(_))
    ));
}

#[test]
fn keys_end_with_their_lease() {
    let server = StandIn::start("127.0.0.1:0");
    let etcd = client(&[url(&server)]);
    let lease = etcd.grant(Duration::from_secs(1)).expect("a lease");
    let announce = Request::Announce(lease, Member { draining: true, ..Member::default() });
    assert!(matches!(etcd.request("left", &announce), Ok(Outcome::Done(_))));
    assert!(view(&etcd).members["left"].value.draining);
    // It is not renewed: both are gone at some time.
    while etcd.renew(lease + 1).expect("a response") || !view(&etcd).members.is_empty() {
        std::thread::yield_now();
    }
    assert!(!etcd.renew(lease).expect("a response"));
}

#[test]
fn another_member_is_asked_and_no_member_is_reported() {
    let (broken, works) = (StandIn::start("127.0.0.1:0"), StandIn::start("127.0.0.1:0"));
    broken.faults.cut.store(true, Ordering::SeqCst);
    let etcd = client(&[url(&broken), url(&works)]);
    assert_eq!(view(&etcd), View::default());
    works.set_quorum(false);
    let why = etcd.request("left", &Request::Read).expect_err("no member").to_string();
    assert!(why.contains("no member of etcd answers"), "{why}");
    works.set_quorum(true);
    // Whichever is asked first.
    assert_eq!(view(&etcd), View::default());
}
