//! Names of hosts, and what is none.

use super::*;

#[test]
fn a_host_is_a_name_or_an_address() {
    for (host, name) in [
        ("nas", Some("nas")),
        ("nas:443", Some("nas")),
        ("nas.example.org.:8080", Some("nas.example.org")),
        ("1.example", Some("1.example")),
        ("127.0.0.1", None),
        ("127.0.0.1:80", None),
        ("[::1]:80", None),
        ("::1", None),
        ("", None),
        (":80", None),
        (".", None),
    ] {
        assert_eq!(host_name(host), name, "{host}");
    }
}
