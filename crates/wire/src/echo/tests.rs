//! Lines are cut at their ends and never longer than their limit; a sign-in means the same once
//! more; mutated seeds of the fuzz target do not panic.

use base::limits::ECHO_LINE_MAX;
use base::random::{Random, SeededRandom};

use super::*;

#[test]
fn lines_are_cut_at_their_ends() {
    assert_eq!(cut(b"one\r\ntwo"), Ok(Some(&b"one\r\n"[..])));
    assert_eq!(cut(b"one\ntwo\n").map(|line| line.map(text)), Ok(Some(&b"one"[..])));
    assert_eq!(cut(b"one"), Ok(None));
    assert_eq!(cut(b""), Ok(None));
}

#[test]
fn a_line_has_a_limit_with_and_without_its_end() {
    let mut line = vec![b'a'; ECHO_LINE_MAX];
    assert_eq!(cut(&line), Ok(None));
    line.push(b'\r');
    assert_eq!(cut(&line), Ok(None), "the end may follow");
    line.push(b'\n');
    assert_eq!(cut(&line), Ok(Some(&line[..])));
    let longer = [&b"a"[..], &line].concat();
    assert_eq!(cut(&longer), Err(Malformed::TooLong));
    assert_eq!(cut(&longer[..=ECHO_LINE_MAX + 1]), Err(Malformed::TooLong));
    let no_return = [&b"a"[..], &line[..ECHO_LINE_MAX], b"\n"].concat();
    assert_eq!(cut(&no_return), Err(Malformed::TooLong));
}

#[test]
fn a_sign_in_comes_back() {
    let sign_in = SignIn { user: "ann", password: "with a space" };
    let mut line = Vec::new();
    sign_in.encode(&mut line);
    assert_eq!(line, b"ann with a space\r\n");
    assert_eq!(SignIn::decode(text(&line)), Ok(sign_in));
    for wrong in [&b"ann"[..], b"", b" secret", b"\xff \xff"] {
        assert_eq!(SignIn::decode(wrong), Err(Malformed::SignIn));
    }
}

#[test]
fn mutated_seeds_do_not_panic() {
    let mut random = SeededRandom::new(862);
    for _ in 0..10_000 {
        let mut bytes = b"ann secret\r\none\ntwo\r\n".to_vec();
        for _ in 0..random.below(4) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.next_u64() as u8;
        }
        bytes.truncate(random.below(bytes.len() as u64 + 1) as usize);
        crate::fuzz::echo(&bytes);
    }
    assert!(crate::fuzz::echo(b"ann secret\r\none\n"));
}
