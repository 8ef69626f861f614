//! Packets of many segments, cut: what comes out must be what a network card would send.

use super::*;

const MSS: usize = 1448;

/// A packet of TCP with options (12 bytes) over IPv4 or IPv6, with this payload, as TUN hands it
/// over: checksum left to hardware.
fn tcp(six: bool, payload: &[u8], size: usize, flags: u8) -> Vec<u8> {
    let transport = if six { HEADER_IP6 } else { HEADER_IP4 };
    let length = transport + 32 + payload.len();
    let mut ip = vec![0; transport + 32];
    if six {
        ip[0] = 0x60;
        put(&mut ip, 4, (length - HEADER_IP6) as u16);
        ip[6] = PROTOCOL_TCP;
        ip[8..40].copy_from_slice(&[0xfd; 32]);
    } else {
        ip[0] = 0x45;
        put(&mut ip, 2, length as u16);
        put(&mut ip, 4, 0xfffe);
        ip[8] = 64;
        ip[9] = PROTOCOL_TCP;
        ip[12..20].copy_from_slice(&[10, 9, 0, 1, 10, 9, 0, 2]);
        let check = !fold(sum(&ip[..HEADER_IP4]));
        put(&mut ip, 10, check);
    }
    ip[transport + 4..transport + 8].copy_from_slice(&0xffff_ff00_u32.to_be_bytes());
    ip[transport + 12] = 8 << 4;
    ip[transport + 13] = flags;
    let pseudo = pseudo_sum(&ip, PROTOCOL_TCP, (length - transport) as u16).expect("addresses");
    put(&mut ip, transport + 16, pseudo);
    ip.extend_from_slice(payload);
    let kind = match (payload.len() > size, six) {
        (false, _) => GSO_NONE,
        (true, false) => GSO_TCP4,
        (true, true) => GSO_TCP6,
    };
    let mut out = vec![NEEDS_CSUM, kind];
    let size = if kind == GSO_NONE { 0 } else { size };
    for field in [transport + 32, size, transport, 16] {
        out.extend_from_slice(&(field as u16).to_ne_bytes());
    }
    out.extend_from_slice(&ip);
    out
}

fn payload(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 + at / 251) as u8).collect()
}

/// Checks a piece as its receiver would, and takes its header apart: sequence, flags, payload.
fn received(piece: &[u8], six: bool) -> (u32, u8, Vec<u8>) {
    let mut piece = piece.to_vec();
    complete(&mut piece);
    let ip = &piece[HEADER..];
    let transport = if six { HEADER_IP6 } else { HEADER_IP4 };
    let length = ip.len() - transport;
    if six {
        assert_eq!(word(ip, 4), Some((ip.len() - HEADER_IP6) as u16), "length of IPv6");
    } else {
        assert_eq!(word(ip, 2), Some(ip.len() as u16), "length of IPv4");
        assert_eq!(fold(sum(&ip[..HEADER_IP4])), 0xffff, "checksum of IPv4");
    }
    let pseudo = pseudo_sum(ip, PROTOCOL_TCP, length as u16).expect("addresses");
    let all = sum(&ip[transport..]) + u64::from(pseudo);
    assert_eq!(fold(all), 0xffff, "checksum of TCP");
    let number = u32::from_be_bytes(ip[transport + 4..transport + 8].try_into().expect("four"));
    (number, ip[transport + 13], ip[transport + 32..].to_vec())
}

#[test]
fn single_segments_are_what_a_card_would_send() {
    for six in [false, true] {
        let data = payload(3 * MSS + 100);
        // ACK, PSH, FIN and CWR.
        let packet = Packet::new(tcp(six, &data, MSS, 0x99)).expect("a packet");
        assert_eq!(packet.segments(), 4);
        let (mut all, mut out) = (Vec::new(), Vec::new());
        for at in 0..4 {
            packet.piece(at, 1, &mut out);
            assert_eq!(out.len(), HEADER + packet.segment_bytes(at));
            assert_eq!(&out[..6], [NEEDS_CSUM, GSO_NONE, out[2], out[3], 0, 0]);
            let (number, flags, part) = received(&out, six);
            assert_eq!(number, 0xffff_ff00_u32.wrapping_add((at * MSS) as u32));
            let expected = [0x90, 0x10, 0x10, 0x19][at];
            assert_eq!(flags, expected, "flags of segment {at}");
            all.extend(part);
            if !six {
                let id = word(&out[HEADER..], 4);
                assert_eq!(id, Some(0xfffe_u16.wrapping_add(at as u16)));
            }
        }
        assert_eq!(all, data);
        let wire: usize = (0..4).map(|at| packet.segment_bytes(at)).sum();
        let headers = if six { 72 } else { 52 };
        assert_eq!(wire, data.len() + 4 * headers);
    }
}

#[test]
fn pieces_of_several_segments_can_be_cut_again() {
    let data = payload(10 * MSS);
    let packet = Packet::new(tcp(false, &data, MSS, 0x18)).expect("a packet");
    let mut out = Vec::new();
    packet.piece(2, 5, &mut out);
    assert_eq!((out[1], native(&out, 4)), (GSO_TCP4, Some(MSS)));
    let middle = Packet::new(out.clone()).expect("a packet");
    assert_eq!(middle.segments(), 5);
    // Cut in two steps or in one, a segment is the same.
    let (mut twice, mut once) = (Vec::new(), Vec::new());
    for at in 0..5 {
        middle.piece(at, 1, &mut twice);
        packet.piece(2 + at, 1, &mut once);
        assert_eq!(twice, once, "segment {at}");
    }
    packet.piece(0, 10, &mut out);
    assert_eq!(out, packet.whole());
}

#[test]
fn a_packet_of_one_segment_is_left_as_it_is() {
    let bytes = tcp(false, &payload(1000), MSS, 0x18);
    let packet = Packet::new(bytes.clone()).expect("a packet");
    let mut out = Vec::new();
    packet.piece(0, 1, &mut out);
    assert_eq!((packet.segments(), out), (1, bytes));
    assert_eq!(packet.segment_bytes(0), 1052);
}

#[test]
fn damage_is_noticed_by_the_checksum() {
    let packet = Packet::new(tcp(false, &payload(3000), MSS, 0x18)).expect("a packet");
    let mut whole = Vec::new();
    packet.piece(1, 1, &mut whole);
    complete(&mut whole);
    assert_eq!(whole[0] & NEEDS_CSUM, 0);
    let check = |piece: &[u8]| {
        let ip = &piece[HEADER..];
        let pseudo = pseudo_sum(ip, PROTOCOL_TCP, (ip.len() - HEADER_IP4) as u16);
        fold(sum(&ip[HEADER_IP4..]) + u64::from(pseudo.expect("addresses")))
    };
    assert_eq!(check(&whole), 0xffff);
    for bit in (8 * HEADER_IP4 as u64)..(8 * HEADER_IP4 as u64 + 400) {
        let mut damaged = whole.clone();
        turn_bit(behind_header(&mut damaged), bit);
        assert_ne!(check(&damaged), 0xffff, "bit {bit}");
    }
}

#[test]
fn whatever_comes_is_cut_within_its_bounds() {
    use base::random::{Random, SeededRandom};
    let mut random = SeededRandom::new(3);
    let good = tcp(false, &payload(5000), MSS, 0x18);
    let (mut out, mut cut) = (Vec::new(), 0);
    for _ in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(60) as usize;
            bytes[at] = random.next_u64() as u8;
        }
        bytes.truncate(HEADER + 1 + random.below(5052) as usize);
        let Some(packet) = Packet::new(bytes.clone()) else { continue };
        let segments = packet.segments();
        cut += usize::from(segments > 1);
        let wire: usize = (0..segments).map(|at| packet.segment_bytes(at)).sum();
        assert!(wire >= bytes.len() - HEADER && segments <= 5000 / BRIDGE_SEGMENT_MIN + 1);
        for at in 0..segments {
            packet.piece(at, 1, &mut out);
            assert_eq!(out.len(), HEADER + packet.segment_bytes(at));
            complete(&mut out);
        }
    }
    assert!(cut > 1_000, "only {cut} were cut");
    assert_eq!(Packet::new(vec![0; HEADER]), None);
}
