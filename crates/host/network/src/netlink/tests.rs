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
