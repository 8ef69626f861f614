//! URLs read and written, and the password that they keep to themselves.

use super::*;

#[test]
fn every_form_survives_a_round_trip() {
    for url in [
        "smb://anna@127.0.0.1:10445/box",
        "smb://anna@[::1]:445/my%20box/a/b?dialect=2.1&signing=hmac-sha256",
        "smb://anna@host:445/box?dialect=3.0&cipher=aes128-ccm&password-env=PASS",
        "smb://anna@host:445/box?signing=off&cipher=aes256-gcm&password-file=/run/secret",
    ] {
        let at = SmbAt::parse(url.strip_prefix("smb:").unwrap()).unwrap();
        assert_eq!((at.to_string(), at.url()), (url.to_owned(), url.to_owned()));
    }
    let at = SmbAt::parse("//an%40na:p%2Fw@host/box").unwrap();
    assert_eq!((at.user.as_str(), at.port), ("an@na", 445));
    assert_eq!(at.secret, Secret::Given("p/w".to_owned()));
    assert_eq!(at.to_string(), "smb://an%40na@host:445/box");
    assert_eq!(at.url(), "smb://an%40na:p%2Fw@host:445/box");
}

#[test]
fn errors_are_reported() {
    for (rest, why) in [
        ("anna@host/box", "needs //"),
        ("//anna@host", "name of a share"),
        ("//anna@host/", "name of a share"),
        ("//host/box", "needs a user"),
        ("//@host/box", "user and a host"),
        ("//anna@host:x/box", "not a number"),
        ("//anna@host/box/../x", "invalid path"),
        ("//anna@host/box?dialect=2.0.2", "dialect other than"),
        ("//anna@host/box?signing=md5", "signing other than"),
        ("//anna@host/box?cipher=rc4", "cipher other than"),
        ("//anna@host/box?dialect=2.1&cipher=aes128-gcm", "cipher that its dialect"),
        ("//anna@host/box?dialect=3.0&signing=aes-gmac", "signing that its dialect"),
        ("//anna@host/box?vers=3", "option other than"),
    ] {
        let said = SmbAt::parse(rest).unwrap_err();
        assert!(said.contains(why), "{rest}: {said}");
    }
}
