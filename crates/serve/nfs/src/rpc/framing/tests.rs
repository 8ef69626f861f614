//! A message becomes the same record by each of the ways.

use wire::rpc::{Framed, Framer};

use super::*;

fn message(record: &[u8]) -> Vec<u8> {
    match Framer::new().next(record) {
        Ok(Framed::Record { body, consumed }) if consumed == record.len() => body.to_vec(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn record_marks_are_the_same_by_each_way() {
    let (mut around, mut sealed, mut appended) = (Vec::new(), vec![0xff; HEADROOM], Vec::new());
    let mark = begin(&mut around);
    around.extend_from_slice(b"message!");
    end(&mut around, mark, 0);
    sealed.extend_from_slice(b"message!");
    seal(&mut sealed);
    append(&mut appended, b"message!");
    assert_eq!(message(&around), b"message!");
    assert_eq!((&sealed, &appended), (&around, &around));
}

#[test]
fn record_mark_counts_data_that_is_sent_from_elsewhere() {
    let mut record = Vec::new();
    let mark = begin(&mut record);
    record.extend_from_slice(b"head");
    end(&mut record, mark, 8);
    record.extend_from_slice(b"12345678");
    assert_eq!(message(&record), b"head12345678");
}
