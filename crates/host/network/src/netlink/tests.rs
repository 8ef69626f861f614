//! Sentences of the kernel, cut anywhere.

use super::*;

/// A reply `File exists` with these attributes, which does not repeat the request's payload.
fn refused(attributes: &[u8]) -> Vec<u8> {
    let mut message = vec![0; 36];
    message[6..8].copy_from_slice(&0x300_u16.to_ne_bytes());
    message[16..20].copy_from_slice(&(-17_i32).to_ne_bytes());
    message[20..24].copy_from_slice(&64_u32.to_ne_bytes());
    message.extend(attributes);
    message
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = (4 + value.len()) as u16;
    let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

#[test]
fn the_sentence_is_found_behind_other_attributes() {
    let message = refused(&[attribute(2, &[0; 4]), attribute(1, b"no VLAN here\0")].concat());
    assert_eq!(sentence(&message).as_deref(), Some("no VLAN here"));
    let error = io::Error::from_raw_os_error(libc::EEXIST);
    assert_eq!(reason(&error, &message), "no VLAN here (File exists (os error 17))");
    assert_eq!(reason(&error, &refused(&[])), "File exists (os error 17)");
}

#[test]
fn a_message_that_is_cut_has_no_sentence() {
    let message = refused(&attribute(1, b"words\0"));
    for length in 0..46 {
        assert_eq!(sentence(&message[..length]), None, "{length}");
    }
    let mut long = message.clone();
    long[20..24].fill(0xff);
    long[6..8].copy_from_slice(&0x200_u16.to_ne_bytes());
    assert_eq!(sentence(&long), None, "the repeated request has no end");
    let mut empty = refused(&[0; 8]);
    empty[6..8].copy_from_slice(&0x300_u16.to_ne_bytes());
    assert_eq!(sentence(&empty), None, "an attribute of no length");
}

/// What iproute2 6.1 sends for `ip link add ib0.8001 link e0 mtu 2044 group 215 type ipoib pkey
/// 0x8001 mode datagram`, where e0 has the index 3; strace(1), with a sequence number of 0.
const IPOIB: &str = "6c00000010000506 0000000000000000 0000000000000000 0000000000000000 \
                     08000400fc070000 08001b00d7000000 0800050003000000 0d0003006962302e \
                     3830303100000000 2400120009000100 69706f6962000000 1400020006000100 \
                     0180000006000200 00000000";

#[test]
#[cfg(target_endian = "little")]
fn the_request_for_a_partition_is_that_of_iproute2() {
    for number in [0x8001, 0x0001] {
        let pkey = Pkey::new(number).expect("a P_Key");
        let kind = Kind::Partition { on: "ib0".to_owned(), pkey, mode: LinkMode::Datagram };
        let link = new_link("ib0.8001", &kind, 2044, Some(3));
        let bytes = encode(Message::NewLink(link), NLM_F_ACK | MAKE, 0);
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text, IPOIB.replace(' ', ""), "{number:#06x}");
    }
}
