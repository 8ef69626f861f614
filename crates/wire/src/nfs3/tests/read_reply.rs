//! Tests of READ replies that are patched when the data has been read: they must be byte for byte
//! what encoding the finished result gives.

use super::*;

fn reply(attr: PostOpAttr, data: &[u8], eof: bool) -> Vec<u8> {
    let (file_attributes, count) = (attr, data.len() as u32);
    encoded(&ReadRes::Ok(ReadResOk { file_attributes, count, eof, data }))
}

#[test]
fn patched_reply_is_the_encoded_one() {
    let data = b"0123456789abcdef";
    for attr in [None, Some(some_attr())] {
        for count in 0..=data.len() {
            let mut bytes = vec![0xaa; 3];
            let w = &mut Writer::new(&mut bytes);
            let head = ReadResOkHead { attr: attr.map(|_| Fattr3::default()), count_max: 16 };
            let open = head.begin(w);
            let room = w.slice_mut(open.data());
            assert_eq!(room.len(), 16);
            // What was read and then cut off must not show in the padding.
            room.fill(0xff);
            room[..count].copy_from_slice(&data[..count]);
            if let Some(attr) = &attr {
                assert!(open.set_attr(w, attr));
            } else {
                assert!(!open.set_attr(w, &some_attr()));
            }
            open.finish(w, count as u32, count == 5);
            assert_eq!(bytes[3..], reply(attr, &data[..count], count == 5));
        }
    }
}

#[test]
fn detached_reply_and_its_padding_are_the_encoded_one() {
    for count in 0..9usize {
        let data = vec![7; count];
        let mut bytes = Vec::new();
        let w = &mut Writer::new(&mut bytes);
        let attr = Some(some_attr());
        let pad = ReadResOkHead::encode_detached(w, attr, count as u32, false);
        w.raw(&data);
        w.raw(&vec![0; pad]);
        assert_eq!(bytes, reply(attr, &data, false));
    }
}

#[test]
fn aborted_reply_leaves_nothing() {
    let mut bytes = vec![1, 2, 3, 4];
    let w = &mut Writer::new(&mut bytes);
    let open = ReadResOkHead { attr: None, count_max: 1000 }.begin(w);
    open.abort(w);
    assert_eq!(bytes, [1, 2, 3, 4]);
}
