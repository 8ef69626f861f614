//! A client against servers that are these functions, at times that are given.

use super::super::message::tests::given;
use super::*;

const MAC: Mac = [2, 0, 0, 0, 0, 1];
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 7);
const OFFER: u8 = 2;
const ACK: u8 = 5;
const NAK: u8 = 6;
/// A lease of 100 s: T1 after 50 s, T2 after 88 s.
const VALID_S: u8 = 100;

/// A reply to the last message of the client.
fn reply(client: &Client, kind: u8, server: Ipv4Addr) -> Vec<u8> {
    let mut options = vec![53, 1, kind, 1, 4, 255, 255, 255, 0, 51, 4, 0, 0, 0, VALID_S, 54, 4];
    options.extend(server.octets());
    given(client.xid, MAC, ADDRESS, &options)
}

fn begin() -> Client {
    Client::new(MAC, 1, None, 0)
}

/// Takes its turn when that is due.
fn next(client: &mut Client) -> (u64, Effect) {
    let now = client.due();
    (now, client.turn(now))
}

fn bound() -> Client {
    let mut client = begin();
    let sent = next(&mut client).1.send.expect("a message");
    assert_eq!((sent.from, sent.to), (Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST));
    assert_eq!(client.receive(&reply(&client, OFFER, SERVER), 0, 1_000), None);
    assert!(next(&mut client).1.send.is_some(), "at once");
    let event = client.receive(&reply(&client, ACK, SERVER), 0, 1_000);
    assert!(matches!(event, Some(Event::Given(lease)) if lease.obtained == 1_000));
    assert!(!client.is_waiting() && client.due() == 50_000);
    client
}

#[test]
fn a_lease_is_extended_by_its_server_and_then_by_any() {
    let mut client = bound();
    let (now, turn) = next(&mut client);
    assert_eq!((now, turn.event), (50_000, Some(Event::Renewing)));
    let sent = turn.send.expect("a message");
    assert_eq!((sent.from, sent.to), (ADDRESS, SERVER));
    assert!(matches!(
        client.receive(&reply(&client, ACK, SERVER), 51_000, 1_051),
        Some(Event::Given(_))
    ));
    assert_eq!(client.due(), 101_000);
    // Without an answer it repeats the request, and then sends it to all servers.
    let mut events = Vec::new();
    let (mut asked, mut last) = (0, None);
    while events.last() != Some(&Event::Rebinding) {
        let (now, turn) = next(&mut client);
        last = turn.send.map(|sent| (sent.from, sent.to));
        asked += u32::from(last == Some((ADDRESS, SERVER)));
        events.extend(turn.event);
        assert!(now <= 139_000, "{now}");
    }
    assert_eq!(events, [Event::Renewing, Event::Rebinding]);
    assert!(asked > 1, "{asked}");
    assert_eq!(last, Some((ADDRESS, Ipv4Addr::BROADCAST)));
    let event = client.receive(&reply(&client, ACK, OTHER), 140_000, 1_140);
    assert!(matches!(event, Some(Event::Given(lease)) if lease.server == OTHER));
    assert_eq!(client.release().map(|release| release.to), Some(OTHER));
}

#[test]
fn a_lease_that_no_server_extends_ends() {
    let mut client = bound();
    let mut last = 0;
    let ended = loop {
        let (now, turn) = next(&mut client);
        assert!(now > last, "time passes between messages");
        last = now;
        if turn.event == Some(Event::Ended) {
            break now;
        }
    };
    assert_eq!((ended, client.release()), (100_000, None));
    // It searches for the same address, more and more rarely.
    let times: Vec<u64> = (0..10).map(|_| next(&mut client).0).collect();
    let waits: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(waits.iter().all(|wait| (3_000..=65_000).contains(wait)), "{waits:?}");
    assert!(waits[5..].iter().all(|wait| *wait >= 63_000), "{waits:?}");
}

#[test]
fn a_refusal_ends_a_lease_in_each_stage() {
    for until in [50_000, 88_000] {
        let mut client = bound();
        while client.due() <= until {
            next(&mut client);
        }
        let event = client.receive(&reply(&client, NAK, SERVER), until, 1_000);
        assert_eq!((event, client.due()), (Some(Event::Refused), until), "a search at once");
        assert_eq!(client.receive(&reply(&client, OFFER, OTHER), until, 1_000), None);
        next(&mut client);
        let event = client.receive(&reply(&client, ACK, OTHER), until, 1_000);
        assert!(matches!(event, Some(Event::Given(_))), "{event:?}");
    }
    // At a renewal only the server of the lease can refuse it.
    let mut client = bound();
    next(&mut client);
    assert_eq!(client.receive(&reply(&client, NAK, OTHER), 50_001, 1_000), None);
    // An offer that is refused is not asked for again at once.
    let mut client = begin();
    next(&mut client);
    client.receive(&reply(&client, OFFER, SERVER), 0, 1_000);
    next(&mut client);
    assert_eq!(client.receive(&reply(&client, NAK, SERVER), 0, 1_000), None);
    assert_eq!(client.due(), REFUSED_MS);
}

#[test]
fn a_known_lease_is_verified() {
    let mut first = bound();
    next(&mut first);
    let Some(Event::Given(lease)) = first.receive(&reply(&first, ACK, SERVER), 50_000, 1_050)
    else {
        panic!("no lease");
    };
    let mut client = Client::new(MAC, 2, Some(&lease), 0);
    next(&mut client);
    let event = client.receive(&reply(&client, ACK, OTHER), 10, 1_060);
    assert!(matches!(event, Some(Event::Given(_))), "by any server");
    let mut client = Client::new(MAC, 2, Some(&lease), 0);
    next(&mut client);
    assert_eq!(client.receive(&reply(&client, NAK, OTHER), 10, 1_060), Some(Event::Refused));
    // Without an answer the lease stays while a server is searched for.
    let mut client = Client::new(MAC, 2, Some(&lease), 0);
    let events: Vec<Event> = (0..5).filter_map(|_| next(&mut client).1.event).collect();
    assert_eq!(events, [Event::Searching]);
}

#[test]
fn answers_to_other_messages_are_none() {
    let mut client = begin();
    next(&mut client);
    let late = reply(&client, ACK, SERVER);
    assert_eq!(client.receive(&late, 0, 0), None, "no offer came before");
    let offer = reply(&client, OFFER, SERVER);
    client.receive(&offer, 0, 0);
    next(&mut client);
    assert_eq!(client.receive(&late, 0, 0), None, "of another stage");
    assert_eq!(client.receive(&reply(&client, ACK, OTHER), 0, 0), None, "of another server");
    assert!(client.receive(&reply(&client, ACK, SERVER), 0, 0).is_some());
}
