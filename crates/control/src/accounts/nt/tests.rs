//! The round trip of both hashes through one secret.

use super::*;

#[test]
fn a_secret_holds_both_hashes() {
    let hash = NtHash::of("Password");
    assert_eq!(hex(&hash.0), "a4f49c406510bdcab6824ee7c30fd852");
    let secret = join("$argon2id$v=19$m=1", hash);
    assert_eq!(split(&secret), ("$argon2id$v=19$m=1", Some(hash)));
    assert_eq!(split("$argon2id$v=19$m=1"), ("$argon2id$v=19$m=1", None));
    assert_eq!(split("x nt=zz"), ("x", None));
    assert_eq!(split("x nt=a4f49c406510bdcab6824ee7c30fd85€"), ("x", None));
    assert!(!format!("{hash:?}").contains("a4"));
}
