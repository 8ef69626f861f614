//! Tests of logins: authentication, negotiation, and the end of the session before.

use std::sync::atomic::Ordering::Relaxed;

use base::limits::SIGN_IN_FREE_FAILURES;
use wire::iscsi::chap::CHALLENGE;
use wire::iscsi::login::LoginStatus;
use wire::iscsi::login_initiator::Proof;
use wire::iscsi::login_phase::Credentials;
use wire::iscsi::logout::LogoutReason;
use wire::iscsi::pairs::{parse, put};
use wire::iscsi::{Digests, RESERVED_TAG};
use wire::scsi::Status;

use super::client::{Client, Got, How, read};
use super::{BLOCK, Bench, TARGET};
use crate::targets::SignIn;

fn credentials(name: &str, secret: &str) -> Credentials {
    Credentials { name: name.to_owned(), secret: secret.as_bytes().to_vec() }
}

fn proof(secret: &str, own: Option<&str>) -> How {
    let initiator = credentials("user", secret);
    let target = own.map(|own| credentials("target", own));
    How { proof: Some(Proof { initiator, target, random: [9; 1 + CHALLENGE] }), ..How::default() }
}

#[test]
fn secrets_are_asked_for_both_ways() {
    let sign_in = SignIn {
        common: Some(credentials("user", "a secret of ours")),
        own: Some(credentials("target", "another secret!!")),
        ..SignIn::default()
    };
    let bench = Bench::new(1, sign_in);
    for own in [None, Some("another secret!!")] {
        let mut client = Client::new(&bench, &proof("a secret of ours", own));
        client.settle(0);
    }
    let refused = |how: &How| Client::log_in(&bench, how).err();
    let failure = Some(LoginStatus::AUTHENTICATION_FAILURE);
    assert_eq!(refused(&proof("a secret of hers", None)), failure);
    assert_eq!(refused(&How::default()), failure, "without a secret");
    assert_eq!(bench.iscsi.logins.load(Relaxed), 2);
    assert_eq!(bench.iscsi.refusals.load(Relaxed), 2);
}

#[test]
fn an_address_that_sends_wrong_secrets_waits() {
    let common = Some(credentials("user", "a secret of ours"));
    let bench = Bench::new(1, SignIn { common, ..SignIn::default() });
    let refused = |secret| Client::log_in(&bench, &proof(secret, None)).err();
    for _ in 0..SIGN_IN_FREE_FAILURES {
        let wrong = refused("a secret of hers");
        assert_eq!(wrong, Some(LoginStatus::AUTHENTICATION_FAILURE));
    }
    let waits = Some(LoginStatus::SERVICE_UNAVAILABLE);
    assert_eq!(refused("a secret of hers"), waits, "it is not checked");
    assert_eq!(refused("a secret of ours"), waits);
}

#[test]
fn an_initiator_that_sees_nothing_does_not_get_in() {
    let bench = Bench::new(0, SignIn::default());
    let refused = Client::log_in(&bench, &How::default()).err();
    assert_eq!(refused, Some(LoginStatus::AUTHORIZATION_FAILURE));
    let how = How { discovery: true, ..How::default() };
    let mut client = Client::new(&bench, &how);
    let mut text = Vec::new();
    put(&mut text, "SendTargets", "All");
    assert_eq!(client.text(&text), Some(Got::Text(Vec::new())), "and finds nothing");
}

#[test]
fn discovery_lists_targets_and_portals() {
    let bench = Bench::new(1, SignIn::default());
    let mut client = Client::new(&bench, &How { discovery: true, ..How::default() });
    for which in ["All", TARGET, "iqn.2026-01.test:other"] {
        let mut text = Vec::new();
        put(&mut text, "SendTargets", which);
        let Some(Got::Text(answer)) = client.text(&text) else { panic!("text") };
        let pairs = parse(&answer).expect("pairs");
        let pairs: Vec<_> = pairs.iter().map(|pair| (pair.key, pair.value.to_owned())).collect();
        let portal = format!("{},1", bench.at);
        let expect = [("TargetName", TARGET.to_owned()), ("TargetAddress", portal)];
        assert_eq!(pairs, if which.ends_with("other") { &[][..] } else { &expect }, "{which}");
    }
    // An administrator knows better behind a translation of addresses.
    let portals = ["192.0.2.7:860", "[2001:db8::7]:3260"];
    let parsed = portals.iter().map(|text| text.parse().expect("an address")).collect();
    bench.iscsi.update(|settings| settings.portals = parsed);
    let mut text = Vec::new();
    put(&mut text, "SendTargets", "All");
    let Some(Got::Text(answer)) = client.text(&text) else { panic!("text") };
    let pairs = parse(&answer).expect("pairs");
    let addresses: Vec<_> = pairs.iter().skip(1).map(|pair| pair.value).collect();
    assert_eq!(addresses, portals.map(|portal| format!("{portal},1")));
    client.log_out();
    assert_eq!((client.next(), client.next()), (Some(Got::LoggedOut), None));
}

#[test]
fn targets_are_asked_for_once_in_an_exchange() {
    let bench = Bench::new(1, SignIn::default());
    let how = How { discovery: true, ..How::default() };
    let mut client = Client::new(&bench, &how);
    let mut text = Vec::new();
    (0..2).for_each(|_| put(&mut text, "SendTargets", "All"));
    assert_eq!(client.text(&text), Some(Got::Reject(4)), "protocol error");
    assert_eq!(client.next(), None);
    // An exchange continues until the initiator sets the F bit, whatever was answered by then.
    let mut client = Client::new(&bench, &How { isid: 2, ..how });
    let mut text = Vec::new();
    put(&mut text, "SendTargets", "All");
    let Some(Got::Text(answer)) = client.text_of(&text, false) else { panic!("text") };
    assert!(!answer.is_empty());
    assert_ne!(client.text_tag, RESERVED_TAG, "it is not over");
    assert_eq!(client.text(&[]), Some(Got::Text(Vec::new())));
    assert_eq!(client.text_tag, RESERVED_TAG);
}

#[test]
fn a_login_takes_the_place_of_its_session() {
    let bench = Bench::new(1, SignIn::default());
    let mut first = Client::new(&bench, &How::default());
    first.settle(0);
    let other = Client::new(&bench, &How { isid: 2, ..How::default() });
    assert_eq!(bench.iscsi.sessions.count(), 2);
    let mut again = Client::new(&bench, &How::default());
    assert_eq!(first.next(), None, "it was closed");
    again.settle(0);
    assert_eq!(bench.iscsi.sessions.count(), 2);
    assert_eq!(bench.unit(0).sessions(), 1);
    drop(other);
}

#[test]
fn a_session_with_an_initiator_that_takes_nothing_is_replaced() {
    let bench = Bench::new(1, SignIn::default());
    let mut first = Client::new(&bench, &How::default());
    first.settle(0);
    // Far more than the sockets take, whatever their buffers are.
    let blocks = (8 << 20) / BLOCK as u32;
    for _ in 0..16 {
        first.start(0, read(0, blocks), false, 8 << 20, &[]);
    }
    first.await_something();
    let mut again = Client::new(&bench, &How::default());
    assert_eq!(bench.iscsi.sessions.count(), 1, "not beside the other");
    again.settle(0);
    assert_eq!(bench.unit(0).sessions(), 1);
    drop(first);
}

#[test]
fn of_logins_at_once_with_one_name_one_session_is_left() {
    const LOGINS: usize = 8;
    let bench = Bench::new(1, SignIn::default());
    for _ in 0..8 {
        let clients: Vec<_> = std::thread::scope(|scope| {
            let log_in = || Client::log_in(&bench, &How::default());
            let threads: Vec<_> = (0..LOGINS).map(|_| scope.spawn(log_in)).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        let most = bench.iscsi.sessions.count();
        assert!(most <= 1, "{most} sessions have one name");
        drop(clients);
    }
}

#[test]
fn all_work_with_either_parameter_as_agreed_on() {
    let bench = Bench::new(1, SignIn::default());
    let data: Vec<u8> = (0..300 << 10).map(|n: u32| (n / 3) as u8).collect();
    let mut isid = 10;
    for digests in [Digests::default(), Digests { header: true, data: true }] {
        for (initial_r2t, immediate_data) in [(true, true), (false, false), (true, false)] {
            isid += 1;
            let mut how = How { isid, ..How::default() };
            how.wishes.digests = digests;
            (how.wishes.initial_r2t, how.wishes.immediate_data) = (initial_r2t, immediate_data);
            how.wishes.max_burst = 65_536;
            let mut client = Client::new(&bench, &how);
            assert_eq!(client.parameters.digests, digests);
            assert_eq!(client.parameters.immediate_data, immediate_data);
            client.settle(0);
            assert_eq!(client.write(0, 8, &data).status, Status::GOOD);
            let back = client.read(0, 8, (data.len() / super::BLOCK) as u32);
            assert!(back.data == data && back.status == Status::GOOD);
            client.log_out();
        }
    }
}

#[test]
fn only_its_own_connection_is_closed() {
    let bench = Bench::new(1, SignIn::default());
    let mut client = Client::new(&bench, &How::default());
    client.settle(0);
    for (reason, cid, refused) in
        [(LogoutReason::CloseConnection, 9, 1), (LogoutReason::RemoveForRecovery, 0, 2)]
    {
        client.log_out_of(reason, cid);
        assert_eq!(client.next(), Some(Got::Stays(refused)));
    }
    assert_eq!(client.read(0, 0, 1).status, Status::GOOD);
    client.log_out_of(LogoutReason::CloseConnection, 0);
    assert_eq!((client.next(), client.next()), (Some(Got::LoggedOut), None));
}

#[test]
fn the_service_asks_to_log_out_and_ends() {
    let bench = Bench::new(1, SignIn::default());
    let mut client = Client::new(&bench, &How::default());
    client.settle(0);
    assert!(bench.iscsi.sessions.log_out(bench.iscsi.sessions.rows()[0].tsih));
    assert_eq!(client.next(), Some(Got::Event(1)), "it is asked to log out");
    client.log_out();
    assert_eq!((client.next(), client.next()), (Some(Got::LoggedOut), None));
    let waiting = std::thread::spawn({
        let how = How { isid: 3, ..How::default() };
        let mut client = Client::new(&bench, &how);
        move || {
            assert_eq!(client.next(), Some(Got::Event(1)));
            client.log_out();
            client.next()
        }
    });
    assert!(bench.end(), "nothing was left undone");
    assert_eq!(waiting.join().expect("no panic"), Some(Got::LoggedOut));
}
