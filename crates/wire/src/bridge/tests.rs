//! Frames: what is sealed opens once, and nothing else does.

use super::*;

const SECRET: [u8; KEY] = [7; KEY];

fn pair() -> (Sealer, Opener) {
    let (sealer, opener) = (Sealer::new(&SECRET, 9), Opener::new(&SECRET, 9));
    (sealer.expect("a sealer"), opener.expect("an opener"))
}

fn sealed(sealer: &mut Sealer, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    sealer.seal(payload, &mut frame).expect("a frame");
    frame
}

#[test]
fn what_is_sealed_opens_once() {
    let (mut sealer, mut opener) = pair();
    for payload in [&b"hello"[..], b"", &[0xaa; 9000]] {
        let frame = sealed(&mut sealer, payload);
        assert_eq!(frame.len(), FRAME_HEAD + payload.len() + FRAME_TAG);
        assert_eq!(opener.open(&mut frame.clone()), Ok(&mut payload.to_vec()[..]));
        assert_eq!(opener.open(&mut frame.clone()), Err(Refused::Replay));
    }
    assert_eq!(opener.missing(), 0);
}

#[test]
fn no_part_of_the_payload_can_be_read() {
    let (mut sealer, _) = pair();
    let frame = sealed(&mut sealer, &[0xaa; 64]);
    assert!(!frame.windows(4).any(|part| part == [0xaa; 4]), "{frame:?}");
    // The same once more is another frame.
    let again = sealed(&mut sealer, &[0xaa; 64]);
    assert_ne!(frame[FRAME_HEAD..], again[FRAME_HEAD..]);
}

#[test]
fn every_changed_bit_and_every_other_length_is_refused() {
    let (mut sealer, mut opener) = pair();
    let frame = sealed(&mut sealer, b"a packet");
    for bit in 0..8 * frame.len() {
        let mut changed = frame.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(opener.open(&mut changed).is_err(), "bit {bit}");
    }
    for length in 0..frame.len() {
        assert!(opener.open(&mut frame[..length].to_vec()).is_err(), "{length} bytes");
    }
    let longer = [&frame[..], &[0]].concat();
    assert!(opener.open(&mut longer.clone()).is_err());
    // Of all that nothing has used the number up.
    assert!(opener.open(&mut frame.clone()).is_ok());
}

#[test]
fn another_key_or_session_does_not_open() {
    let (mut sealer, _) = pair();
    let frame = sealed(&mut sealer, b"a packet");
    let mut other = Opener::new(&[8; KEY], 9).expect("an opener");
    assert_eq!(other.open(&mut frame.clone()), Err(Refused::Forged));
    let mut other = Opener::new(&SECRET, 10).expect("an opener");
    assert_eq!(other.open(&mut frame.clone()), Err(Refused::Session));
}

#[test]
fn frames_may_change_places_within_the_window_and_are_then_too_old() {
    let (mut sealer, mut opener) = pair();
    let window = base::limits::BRIDGE_REPLAY_WINDOW as usize;
    let frames: Vec<Vec<u8>> = (0..3 * window).map(|_| sealed(&mut sealer, b"x")).collect();
    let mut open = |at: usize| opener.open(&mut frames[at].clone()).map(|_| ());
    assert_eq!(open(window), Ok(()));
    assert_eq!(open(0), Err(Refused::Replay), "just outside");
    assert_eq!(open(1), Ok(()));
    assert_eq!(open(1), Err(Refused::Replay));
    assert_eq!(open(window - 1), Ok(()));
    // A jump beyond the window forgets nothing that it must know.
    assert_eq!(open(3 * window - 1), Ok(()));
    for at in 2 * window..3 * window - 1 {
        assert_eq!(open(at), Ok(()), "{at}");
        assert_eq!(open(at), Err(Refused::Replay), "{at}");
    }
    assert_eq!(open(2 * window - 1), Err(Refused::Replay));
    assert_eq!(open(window), Err(Refused::Replay));
}

#[test]
fn both_hosts_agree_on_keys_that_only_they_have() {
    let call = Greeted::call(&SECRET).expect("a call");
    let heard = Greeting::decode(&call.greeting()).expect("a greeting");
    let answer = Answered::to(&SECRET, &heard).expect("an answer");
    let said = Greeting::decode(&answer.greeting).expect("a greeting");
    let keys = call.answered(&SECRET, &said).expect("keys");
    assert_eq!(keys.session(), answer.keys.session());
    let (mut seals, mut opens) = keys.sides(Role::Caller).expect("a side");
    let (mut seals_too, mut opens_too) = answer.keys.sides(Role::Answerer).expect("a side");
    let there = sealed(&mut seals, b"there");
    assert_eq!(opens_too.open(&mut there.clone()), Ok(&mut b"there".to_vec()[..]));
    let back = sealed(&mut seals_too, b"back");
    assert_eq!(opens.open(&mut back.clone()), Ok(&mut b"back".to_vec()[..]));
    // What one has sent cannot be sent back to it.
    assert!(opens.open(&mut there.clone()).is_err());
    // The same call answered once more leads to other keys: no number is used twice under one.
    let again = Answered::to(&SECRET, &heard).expect("an answer");
    let (mut other, _) = again.keys.sides(Role::Answerer).expect("a side");
    assert_ne!(sealed(&mut other, b"back"), back);
}

#[test]
fn greetings_of_strangers_are_refused() {
    let call = Greeted::call(&SECRET).expect("a call");
    let bytes = call.greeting();
    let heard = Greeting::decode(&bytes).expect("a greeting");
    assert_eq!(heard.encode(), bytes);
    assert!(Answered::to(&[8; KEY], &heard).is_err());
    for bit in 0..8 * bytes.len() {
        let mut changed = bytes;
        changed[bit / 8] ^= 1 << (bit % 8);
        let taken = Greeting::decode(&changed).and_then(|call| Answered::to(&SECRET, &call));
        assert!(taken.is_err(), "bit {bit}");
    }
    // An answer to another call, and a call instead of an answer.
    let other = Greeted::call(&SECRET).expect("a call");
    let answer = Answered::to(&SECRET, &heard).expect("an answer");
    let said = Greeting::decode(&answer.greeting).expect("a greeting");
    assert!(matches!(other.answered(&SECRET, &said), Err(Refused::Session)));
    assert!(matches!(call.answered(&SECRET, &heard), Err(Refused::Session)));
    assert!(matches!(Answered::to(&SECRET, &said), Err(Refused::Format)));
}
