//! Forms that Samba has written, and what is no form at all.

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at| u8::from_str_radix(hex.get(at..at + 2).expect("digits"), 16).expect("a byte");
    (0..hex.len()).step_by(2).map(digit).collect()
}

#[test]
fn what_samba_4_17_writes() {
    // A file that was made by smbd 4.17.12, hidden and read-only.
    let written = bytes("00000500050000001100000003000000349a397b437ddd01");
    let dos = Dos { attributes: Some(3), created: Some(0x01dd_7d43_7b39_9a34) };
    assert_eq!(Dos::decode(&written), Some(dos));
    assert_eq!(dos.encode(), written);
}

#[test]
fn older_forms() {
    assert_eq!(Dos::decode(b"0x22\0"), Some(Dos { attributes: Some(0x22), created: None }));
    let created = 0x01dd_7d43_7b39_9a34_u64;
    let put = |version: u8, fields: &[u32], times: &[u64]| {
        let mut out = vec![0, 0, version, 0, version, 0, 0, 0];
        fields.iter().for_each(|field| out.extend_from_slice(&field.to_le_bytes()));
        times.iter().for_each(|time| out.extend_from_slice(&time.to_le_bytes()));
        out
    };
    let dos = Some(Dos { attributes: Some(0x20), created: Some(created) });
    let sizes = [7, 0, 7, 0];
    let one = put(1, &[&[0x20, 0][..], &sizes].concat(), &[created, 1]);
    let two = put(2, &[&[0, 0x20, 0][..], &sizes].concat(), &[created, 1, 1]);
    let three = put(3, &[&[0x11, 0x20, 0][..], &sizes].concat(), &[created, 1]);
    let four = put(4, &[0x51, 0x20], &[1, created]);
    for form in [one, two, three, four] {
        assert_eq!(Dos::decode(&form), dos, "{form:?}");
    }
    let no_time = put(5, &[1, 0x20], &[created]);
    assert_eq!(Dos::decode(&no_time), Some(Dos { attributes: Some(0x20), created: None }));
}

#[test]
fn what_is_no_form() {
    let whole = Dos { attributes: Some(1), created: Some(2) }.encode();
    for end in 0..whole.len() {
        assert_eq!(Dos::decode(whole.get(..end).expect("a part")), None, "{end}");
    }
    for wrong in [&b"hidden"[..], b"0x", b"0xzz\0", &[0, 0, 9, 0, 9, 0, 0, 0, 1, 2, 3]] {
        assert_eq!(Dos::decode(wrong), None, "{wrong:?}");
    }
}
