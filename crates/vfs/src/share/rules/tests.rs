//! Tables: clients that match a rule, the meaning of options, squashed identities, refused input.

use super::*;

/// Names of these tests' own.
struct Names;

impl Lookup for Names {
    fn host(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        match name {
            "alpha" => Ok(vec![ip("10.1.0.1"), ip("fd00::1")]),
            "beta" => Ok(vec![ip("10.1.0.2")]),
            _ => Err("not found".to_owned()),
        }
    }

    fn netgroups(&self) -> String {
        "# hosts\nlab (alpha,,) \\\n  (10.9.9.9,-,) more\nmore (beta,,) (-,ann,)\n\
         round about\nabout round\nempty \n"
            .to_owned()
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn rules(text: &str) -> Rules {
    Rules::parse(text, &Names).expect(text)
}

fn error(text: &str) -> String {
    Rules::parse(text, &Names).expect_err(text).to_string()
}

fn access(rules: &Rules, client: &str) -> Access {
    rules.grant(ip(client), 5000).access
}

#[test]
fn without_rules_everyone_may_do_everything() {
    assert_eq!(rules("# only a comment\n\n").grant(ip("1.2.3.4"), 60_000), Grant::ALL);
}

#[test]
fn the_first_rule_that_fits_decides() {
    let rules =
        rules("10.0.0.7(noaccess)\n10.0.0.0/24(rw)\nfd00:1::/32(rw)\nalpha(rw)\n@lab\n*(noaccess)");
    for (client, wanted) in [
        ("10.0.0.7", Access::None),
        ("10.0.0.8", Access::ReadWrite),
        ("10.0.1.8", Access::None),
        ("fd00:1:9::1", Access::ReadWrite),
        ("fd00:2::1", Access::None),
        ("10.1.0.1", Access::ReadWrite),
        ("fd00::1", Access::ReadWrite),
        ("10.1.0.2", Access::ReadOnly),
        ("10.9.9.9", Access::ReadOnly),
    ] {
        assert_eq!(access(&rules, client), wanted, "{client}");
    }
    let named: Vec<_> = rules.clients().collect();
    assert_eq!(named, ["10.0.0.0/24", "fd00:1::/32", "alpha", "@lab"]);
}

#[test]
fn a_client_without_a_matching_rule_gets_nothing() {
    assert_eq!(access(&rules("10.0.0.1(rw)"), "10.0.0.2"), Access::None);
}

#[test]
fn networks_of_all_lengths() {
    for (net, inside, outside) in [
        ("0.0.0.0/0", "255.0.0.1", "::1"),
        ("128.0.0.0/1", "255.0.0.1", "127.0.0.1"),
        ("10.0.0.1/32", "10.0.0.1", "10.0.0.0"),
        ("::/0", "ffff::", "1.1.1.1"),
        ("fd00::1/128", "fd00::1", "fd00::2"),
    ] {
        let rules = rules(&format!("{net}(rw)"));
        assert_eq!(access(&rules, inside), Access::ReadWrite, "{inside} in {net}");
        assert_eq!(access(&rules, outside), Access::None, "{outside} in {net}");
    }
}

#[test]
fn options_have_the_meaning_of_exports_5() {
    let grant = |options: &str| rules(&format!("*({options})")).grant(ip("::1"), 5000);
    let default = grant("");
    assert_eq!((default.access, default.squash), (Access::ReadOnly, Squash::Root));
    assert_eq!(default.anonymous, (NOBODY, NOBODY));
    let all = grant("rw, all_squash, anonuid=7, anongid=8, sec=sys");
    assert_eq!((all.access, all.squash, all.anonymous), (Access::ReadWrite, Squash::All, (7, 8)));
    assert_eq!(grant("all_squash,no_all_squash").squash, Squash::Root);
    assert_eq!(grant("no_root_squash").squash, Squash::None);
    let secure = rules("*(rw,secure)");
    assert_eq!(secure.grant(ip("::1"), 1024).access, Access::None);
    assert_eq!(secure.grant(ip("::1"), 1023).access, Access::ReadWrite);
}

#[test]
fn a_weaker_transport_than_the_rule_requires_gets_nothing() {
    let over = |options: &str, transport| {
        rules(&format!("*(rw,{options})")).grant_over(ip("::1"), 5000, transport)
    };
    let all = [Transport::Plain, Transport::Tls, Transport::Mtls];
    for (options, least) in [
        ("", Transport::Plain),
        ("xprtsec=none", Transport::Plain),
        ("xprtsec=none:tls:mtls", Transport::Plain),
        ("xprtsec=tls", Transport::Tls),
        ("xprtsec=mtls:tls", Transport::Tls),
        ("xprtsec=mtls", Transport::Mtls),
    ] {
        for transport in all {
            let grant = over(options, transport);
            assert_eq!(grant.access == Access::ReadWrite, transport >= least, "{options}");
            assert_eq!(grant.too_weak, transport < least, "{options}");
        }
    }
    assert_eq!(rules("*(rw,xprtsec=tls)").grant(ip("::1"), 1).access, Access::None);
    // A client that another rule refuses gets no hint that TLS would help.
    assert!(!over("noaccess,xprtsec=tls", Transport::Plain).too_weak);
    assert_eq!(rules("::1(ro,xprtsec=mtls)\n*(xprtsec=tls)").transport(), Transport::Mtls);
}

#[test]
fn a_rule_that_names_flavours_takes_no_other() {
    for (options, sys, none) in [
        ("rw", true, true),
        ("rw,sec=sys", true, false),
        ("rw,sec=none", false, true),
        ("rw,sec=sys:none", true, true),
    ] {
        let grant = rules(&format!("*({options})")).grant(ip("::1"), 5000);
        for (flavor, taken) in [(Flavor::Sys, sys), (Flavor::None, none)] {
            let with = grant.with(flavor);
            assert_eq!(with.access == Access::ReadWrite, taken, "{options} {flavor:?}");
            assert_eq!(with.too_weak, !taken, "{options} {flavor:?}");
        }
    }
    assert_eq!(Flavors::ALL.numbers().collect::<Vec<_>>(), [1, 0]);
    // A client that another rule refuses gets no hint that a flavour would help.
    let refused = rules("*(noaccess,sec=sys)").grant(ip("::1"), 5000);
    assert!(!refused.with(Flavor::None).too_weak);
}

#[test]
fn squashing_replaces_the_ids_of_its_mode() {
    let cred = |uid, gid, groups: &[u32]| Cred { uid, gid, groups: groups.to_vec() };
    let root = Grant { squash: Squash::Root, anonymous: (7, 8), ..Grant::ALL };
    assert_eq!(root.acting(&cred(0, 0, &[0, 5])), Some(cred(7, 8, &[8, 5])));
    assert_eq!(root.acting(&cred(1000, 100, &[0])), Some(cred(1000, 100, &[8])));
    assert_eq!(root.acting(&cred(1000, 100, &[5])), None);
    let all = Grant { squash: Squash::All, ..root };
    assert_eq!(all.acting(&cred(1000, 100, &[5])), Some(cred(7, 8, &[])));
    assert_eq!(Grant::ALL.acting(&cred(0, 0, &[])), None);
}

#[test]
fn errors_are_reported_with_their_line() {
    for (text, part) in [
        ("*(rw)\n10.0.0.0/33(rw)", "line 2: \"10.0.0.0/33\" is not a network"),
        ("10.0.0.0/x", "is not a network"),
        ("*(rw", "is not a rule"),
        ("(rw)", "is not a rule"),
        ("10.0.0.1 rw", "is not a rule"),
        ("*(readonly)", "\"readonly\" is not an option; options are ro, rw"),
        ("*(sec=krb5)", "\"sec=krb5\" is not a flavor"),
        ("*(sec=)", "is not a flavor"),
        ("*(xprtsec=ssl)", "is not a transport"),
        ("*(xprtsec=)", "is not a transport"),
        ("*(anonuid=bob)", "is not a numeric user"),
        ("*(anonuid=+5)", "is not a numeric user"),
        ("gamma(rw)", "the host \"gamma\" has no address: not found"),
        ("@nobody(rw)", "unknown netgroup \"nobody\""),
        ("@round(rw)", "nested more than"),
    ] {
        let error = error(text);
        assert!(error.contains(part), "{text}: {error}");
    }
    assert!(error(&"*\n".repeat(EXPORT_RULES_MAX + 1)).contains("more than"));
}

#[test]
fn rules_are_exchanged_while_they_are_used() {
    let current = Current::default();
    let before = current.generation();
    assert_eq!(current.get().grant(ip("::1"), 1), Grant::ALL);
    current.set(rules("*(noaccess)"));
    assert_ne!(current.generation(), before);
    assert_eq!(current.get().grant(ip("::1"), 1).access, Access::None);
}
