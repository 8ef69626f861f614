//! Target of the link emulator: what reaches the port of a bridge between two hosts.

use crate::bridge::{FRAME_HEAD, FrameHead, Greeting, KEY, Opener};

/// A key that no bridge has; seeds are sealed with it, so that opening is reached.
pub const SECRET: [u8; KEY] = [7; KEY];
/// Their session.
pub const SESSION: u32 = 9;

/// A frame or a greeting: it must say the same once more, and a frame opens once at most.
pub fn bridge(data: &[u8]) -> bool {
    if let Ok(greeting) = Greeting::decode(data) {
        assert_eq!(greeting.encode(), data);
        return true;
    }
    let Ok(head) = FrameHead::decode(data) else { return false };
    assert_eq!(Some(&head.encode()), data.first_chunk::<FRAME_HEAD>());
    let Ok(mut opener) = Opener::new(&SECRET, SESSION) else { return false };
    let mut frame = data.to_vec();
    if let Ok(payload) = opener.open(&mut frame) {
        assert!(payload.len() < data.len());
        assert!(opener.open(&mut data.to_vec()).is_err());
    }
    true
}
