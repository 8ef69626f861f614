//! Messages against bytes that are written out here, and bytes that are none.

use base::random::{Random, SeededRandom};

use super::*;

const MAC: Mac = [2, 0, 0, 0, 0, 1];
const XID: u32 = 0x0102_0304;
const SERVER: [u8; 4] = [10, 0, 0, 1];
const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 7);

/// A reply with these options.
pub(crate) fn given(xid: u32, mac: Mac, address: Ipv4Addr, options: &[u8]) -> Vec<u8> {
    let mut bytes = vec![REPLY, ETHERNET, 6, 0];
    bytes.extend(xid.to_be_bytes());
    bytes.resize(16, 0);
    bytes.extend(address.octets());
    bytes.resize(28, 0);
    bytes.extend(mac);
    bytes.resize(FIXED, 0);
    bytes.extend(COOKIE);
    bytes.extend(options);
    bytes
}

fn ack(more: &[u8]) -> Vec<u8> {
    let mut options = vec![53, 1, 5, 54, 4];
    options.extend(SERVER);
    options.extend([1, 4, 255, 255, 255, 0, 51, 4, 0, 0, 0, 100]);
    options.extend(more);
    given(XID, MAC, ADDRESS, &options)
}

fn lease(bytes: &[u8]) -> super::super::Lease {
    match reply(bytes, MAC, XID) {
        Some(Reply::Given(lease)) => lease,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_extension_names_no_server() {
    let bytes = request(Query::Extend(ADDRESS), MAC, XID);
    assert_eq!(bytes[..12], [1, 1, 6, 0, 1, 2, 3, 4, 0, 0, 0, 0]);
    assert_eq!((&bytes[12..16], &bytes[28..34]), (&ADDRESS.octets()[..], &MAC[..]));
    let options = &bytes[FIXED + 4..];
    assert_eq!(options[..12], [53, 1, 3, 61, 7, 1, 2, 0, 0, 0, 0, 1]);
    // Neither option 50 nor 54 (RFC 2131, section 4.3.6).
    assert_eq!(options[12..18], [57, 2, 5, 220, 55, 10]);
    assert_eq!(bytes.len(), MESSAGE_MIN);
    let select = Query::Select { server: SERVER.into(), address: ADDRESS };
    let options = request(select, MAC, XID).split_off(FIXED + 4);
    assert_eq!(options[12..24], [50, 4, 10, 0, 0, 7, 54, 4, 10, 0, 0, 1]);
}

#[test]
fn a_packet_has_its_checksums_and_its_message() {
    let message = request(Query::Discover(None), MAC, XID);
    let mut bytes = packet(&message, Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST);
    // Over a header with its checksum the sum is 0 (RFC 1071).
    assert_eq!(checksum(&[&bytes[..20]]), 0);
    let pseudo = [&bytes[12..20], &[0, UDP], &bytes[24..26], &bytes[20..]].concat();
    assert_eq!(checksum(&[&pseudo]), 0);
    assert_eq!(payload(&bytes), None, "it is for a server");
    bytes.splice(20..24, [0, 67, 0, 68]);
    bytes.extend([0; 7]);
    assert_eq!(payload(&bytes), Some(&message[..]), "without the padding of a link");
    bytes[6] = 0x20;
    assert_eq!(payload(&bytes), None, "a fragment");
}

#[test]
fn a_reply_becomes_a_lease() {
    let plain =
        lease(&ack(&[3, 8, 10, 0, 0, 1, 10, 0, 0, 2, 6, 4, 10, 0, 0, 53, 26, 2, 5, 120, 255]));
    assert_eq!((plain.cidr.to_string(), plain.server.octets()), ("10.0.0.7/24".to_owned(), SERVER));
    assert_eq!((plain.renew_s, plain.rebind_s, plain.valid_s), (50, 88, 100));
    assert_eq!(plain.routes, [("0.0.0.0/0".parse().expect("it"), Some(SERVER.into()))]);
    assert_eq!((plain.mtu, plain.dns.servers[0].to_string()), (Some(1400), "10.0.0.53".to_owned()));
    let times = lease(&ack(&[58, 4, 0, 0, 0, 10, 59, 4, 0, 0, 0, 20, 255]));
    assert_eq!((times.renew_s, times.rebind_s), (10, 20));
    let times = lease(&ack(&[58, 4, 0, 0, 0, 20, 59, 4, 0, 0, 0, 10, 255]));
    assert_eq!((times.renew_s, times.rebind_s), (50, 88), "not in this order");
    // A domain in two parts; routes instead of the router, connected ones first.
    let parts = lease(&ack(&[
        15, 2, b'a', b'.', 15, 1, b'b', 3, 4, 10, 0, 0, 1, 121, 14, 8, 9, 10, 0, 0, 1, 24, 10, 0,
        1, 0, 0, 0, 0, 255,
    ]));
    assert_eq!(parts.dns.domains, ["a.b"]);
    let routes: Vec<String> = parts.routes.iter().map(|(to, by)| format!("{to} {by:?}")).collect();
    assert_eq!(routes, ["10.0.1.0/24 None", "9.0.0.0/8 Some(10.0.0.1)"]);
    // Names that share their end (RFC 3397), and one that is a circle.
    let names = lease(&ack(&[119, 8, 1, b'a', 1, b'b', 0, 1, b'c', 0xc0, 119, 1, 2, 255]));
    assert_eq!(names.dns.domains, ["a.b", "c.b"]);
    assert_eq!(lease(&ack(&[119, 2, 0xc0, 0, 255])).dns.domains, [""; 0]);
}

#[test]
fn what_is_no_reply_to_this_client_is_none() {
    let whole = ack(&[255]);
    assert!(reply(&whole, MAC, XID).is_some());
    assert_eq!(reply(&whole, MAC, XID + 1), None);
    assert_eq!(reply(&whole, [2, 0, 0, 0, 0, 2], XID), None);
    let gaps = given(
        XID,
        MAC,
        ADDRESS,
        &[53, 1, 5, 54, 4, 10, 0, 0, 1, 1, 4, 255, 0, 255, 0, 51, 4, 0, 0, 0, 9],
    );
    assert_eq!(reply(&gaps, MAC, XID), None, "a mask with gaps");
    let nak = given(XID, MAC, ADDRESS, &[53, 1, 6, 255]);
    assert_eq!(reply(&nak, MAC, XID), Some(Reply::Refused(None)));
    // In the field for a file, by option 52.
    let mut over = given(XID, MAC, ADDRESS, &[52, 1, 1, 255]);
    over.splice(108..111, [53, 1, 6]);
    assert_eq!(reply(&over, MAC, XID), Some(Reply::Refused(None)));
    for length in 0..whole.len() {
        let _ = reply(&whole[..length], MAC, XID);
        let _ = payload(&whole[..length]);
    }
}

#[test]
fn bytes_at_random_do_no_harm() {
    let mut random = SeededRandom::new(2131);
    let packed = packet(&ack(&[]), SERVER.into(), ADDRESS);
    for _ in 0..20_000 {
        let mut options = vec![0; random.below(300) as usize];
        random.fill(&mut options);
        let _ = reply(&ack(&options), MAC, XID);
        let mut bytes = packed.clone();
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] = random.next_u64() as u8;
        let _ = payload(&bytes);
    }
}
