//! Which servers a rule covers.

use super::*;

fn fits(rule: &str, target: (&str, &str, u16)) -> bool {
    let (scheme, host, port) = target;
    TargetRule::parse(rule).unwrap().fits(scheme, host, port)
}

#[test]
fn a_rule_covers_what_it_names_and_nothing_else() {
    let nas = ("nfs3", "10.1.2.3", 2049);
    for rule in [
        "10.0.0.0/8",
        "10.1.2.3",
        "10.1.2.3:2049",
        "nfs3://10.1.2.3",
        "nfs3://10.1.2.3:2049/",
        "0.0.0.0/0",
        "::ffff:10.1.2.3",
    ] {
        assert!(fits(rule, nas), "{rule}");
    }
    for rule in [
        "11.0.0.0/8",
        "10.1.2.4",
        "10.1.2.3:2050",
        "nfs4://10.1.2.3",
        "nas",
        "::/0",
        "fd00::/8",
        "10.1.2.2/32",
    ] {
        assert!(!fits(rule, nas), "{rule}");
    }
    let six = ("https", "fd00::1", 443);
    for rule in ["fd00::/8", "fd00::1", "[fd00::1]:443", "https://[fd00::1]", "::/0"] {
        assert!(fits(rule, six), "{rule}");
    }
    assert!(fits("10.0.0.0/8", ("nfs3", "::ffff:10.1.2.3", 1)));
}

#[test]
fn names_are_compared_and_not_resolved() {
    assert!(fits("NAS", ("smb", "nas", 445)) && fits("nas:445", ("smb", "Nas", 445)));
    assert!(!fits("nas", ("smb", "nas.example", 445)));
    // `localhost` may lead anywhere.
    assert!(!fits("127.0.0.0/8", ("smb", "localhost", 445)));
}

#[test]
fn what_is_no_rule_is_refused() {
    for text in ["", ":", "nas:x", "10.0.0.0/33", "10.0.0/8", "://nas", "nas/x", "nfs3://nas/x/y"] {
        assert_eq!(TargetRule::parse(text), None, "{text}");
    }
}
