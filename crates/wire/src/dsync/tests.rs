//! Round trips of messages, and what a hostile side may send.

use base::limits::{DSYNC_ENTRIES_MAX, DSYNC_FRAME_MAX, NAME_MAX};
use proptest::prelude::*;

use super::frame::{self, HEAD};
use super::{Directory, Entries, Message, Refused};
use crate::arb::Gen;
use crate::dsync::Bytes;
use crate::xdr::{DecodeError, Encode, Seq, Writer};

proptest! {
    #[test]
    fn messages_come_back(entropy in proptest::collection::vec(any::<u8>(), 0..600)) {
        let message: Message<'_> = Gen::new(&entropy).arb();
        let mut bytes = Vec::new();
        frame::put(&message, &mut bytes);
        let head = *bytes.first_chunk::<HEAD>().expect("a head");
        prop_assert_eq!(frame::length(head), Ok(bytes.len() - HEAD));
        prop_assert_eq!(frame::message(&bytes[HEAD..]), Ok(message));
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _refused = frame::message(&bytes);
    }
}

fn encoded(value: &impl Encode) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut Writer::new(&mut bytes));
    bytes
}

#[test]
fn a_frame_beyond_the_limit_is_refused_by_its_head() {
    let head = (DSYNC_FRAME_MAX as u32 + 1).to_be_bytes();
    let too_long =
        DecodeError::TooLong { what: "frame", max: DSYNC_FRAME_MAX, got: DSYNC_FRAME_MAX + 1 };
    assert_eq!(frame::length(head), Err(too_long));
    assert_eq!(frame::length((DSYNC_FRAME_MAX as u32).to_be_bytes()), Ok(DSYNC_FRAME_MAX));
}

#[test]
fn a_name_beyond_the_limit_is_refused() {
    let mut bytes = 10u32.to_be_bytes().to_vec();
    Writer::new(&mut bytes).opaque(&[b'a'; NAME_MAX + 1]);
    let got = NAME_MAX + 1;
    let too_long = DecodeError::TooLong { what: "string", max: NAME_MAX, got };
    assert_eq!(frame::message(&bytes), Err(too_long));
}

#[test]
fn a_list_that_is_announced_and_not_there_takes_no_memory() {
    let mut bytes = 11u32.to_be_bytes().to_vec();
    bytes.extend_from_slice(&(DSYNC_ENTRIES_MAX as u32).to_be_bytes());
    assert!(matches!(frame::message(&bytes), Err(DecodeError::Short { .. })));
    bytes.truncate(4);
    bytes.extend_from_slice(&(DSYNC_ENTRIES_MAX as u32 + 1).to_be_bytes());
    assert!(matches!(frame::message(&bytes), Err(DecodeError::TooLong { .. })));
}

#[test]
fn unknown_messages_and_trailing_bytes_are_refused() {
    let unknown = DecodeError::BadValue { what: "message", got: 99 };
    assert_eq!(frame::message(&99u32.to_be_bytes()), Err(unknown));
    let mut bytes = encoded(&Message::ScanEnd(()));
    assert_eq!(frame::message(&bytes), Ok(Message::ScanEnd(())));
    bytes.extend_from_slice(&[0; 4]);
    assert_eq!(frame::message(&bytes), Err(DecodeError::Trailing));
}

#[test]
fn numbers_of_messages_stay_what_they_are() {
    let first = |message: Message<'_>| encoded(&message)[..4].to_vec();
    let directory = Directory { name: Bytes::default(), meta: None };
    assert_eq!(first(Message::Directory(directory)), 10u32.to_be_bytes());
    assert_eq!(first(Message::Entries(Entries { entries: Seq::default() })), 11u32.to_be_bytes());
    assert_eq!(first(Message::Refused(Refused { why: Bytes::default() })), 4u32.to_be_bytes());
}
