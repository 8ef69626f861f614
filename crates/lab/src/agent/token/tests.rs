//! Tokens: compared as a whole, read from a file, never shown.

use super::*;

#[test]
fn only_the_same_token_is_accepted() {
    let token = Token("a token of some length".into());
    assert!(token.is(Some("a token of some length")));
    for wrong in [None, Some(""), Some("a token"), Some("a token of some length "), Some("A")] {
        assert!(!token.is(wrong), "{wrong:?}");
    }
    assert!(!Token(String::new()).is(None));
}

#[test]
fn made_tokens_differ_and_are_not_shown() {
    let (one, other) = (Token::made(), Token::made());
    assert!(one != other && one.text().len() == 2 * LAB_AGENT_TOKEN_BYTES);
    assert!(!format!("{one:?}").contains(one.text()));
}

#[test]
fn a_file_gives_a_token_and_an_empty_one_is_refused() {
    let file = std::env::temp_dir().join(format!("{}.token", Token::made().text()));
    std::fs::write(&file, "secret of a file\n").unwrap();
    assert_eq!(Token::given(Some(&file)).unwrap().unwrap().text(), "secret of a file");
    std::fs::write(&file, " \n").unwrap();
    assert!(matches!(Token::given(Some(&file)), Err(TokenError::Empty(_))));
    std::fs::remove_file(&file).unwrap();
    assert!(matches!(Token::given(Some(&file)), Err(TokenError::Read(..))));
}
