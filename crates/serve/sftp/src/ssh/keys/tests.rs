//! Which keys and certificates sign in, and which do not.

use base::random::SeededRandom;
use wire::ssh::codec::Put;
use wire::ssh::host_key::HostKey;

use super::*;

const NOW: u64 = 1_800_000_000;

fn key(seed: u64) -> HostKey {
    HostKey::new_ed25519(&mut SeededRandom::new(seed)).unwrap()
}

/// A certificate of key 1 by authority 2, for `alice` and now, and what may be changed about it.
struct Made {
    kind: u32,
    principals: Vec<&'static str>,
    valid: (u64, u64),
    critical: Vec<(&'static str, &'static str)>,
}

impl Default for Made {
    fn default() -> Self {
        let principals = vec!["alice"];
        Self { kind: 1, principals, valid: (NOW - 10, NOW + 10), critical: Vec::new() }
    }
}

impl Made {
    fn blob(&self) -> Vec<u8> {
        let (subject, authority) = (key(1), key(2));
        let mut out = Vec::new();
        out.put_string(b"ssh-ed25519-cert-v01@openssh.com");
        out.put_string(b"nonce");
        // The key without its type.
        out.put_raw(&subject.blob()[15..]);
        out.put_u64(1);
        out.put_u32(self.kind);
        out.put_string(b"id");
        let (mut names, mut critical) = (Vec::new(), Vec::new());
        self.principals.iter().for_each(|name| names.put_string(name.as_bytes()));
        for (name, value) in &self.critical {
            let mut inner = Vec::new();
            inner.put_string(value.as_bytes());
            critical.put_string(name.as_bytes());
            critical.put_string(&inner);
        }
        out.put_string(&names);
        out.put_u64(self.valid.0);
        out.put_u64(self.valid.1);
        out.put_string(&critical);
        out.put_string(b"");
        out.put_string(b"");
        out.put_string(authority.blob());
        let signature = authority.sign("ssh-ed25519", &out).unwrap();
        out.put_string(&signature);
        out
    }
}

struct World {
    from: &'static str,
    lines: Vec<String>,
    authorities: Vec<String>,
}

impl World {
    fn takes(&self, algorithm: &str, blob: &[u8]) -> bool {
        let from = self.from.parse().unwrap();
        let (lines, authorities) = (&self.lines, &self.authorities);
        let offer = Offer { user: "alice", from, now_s: NOW, lines, authorities };
        offer.judge(algorithm, blob).is_some()
    }

    fn takes_certificate(&self, made: &Made) -> bool {
        self.takes("ssh-ed25519-cert-v01@openssh.com", &made.blob())
    }
}

fn lines(lines: &[String]) -> World {
    World { from: "10.1.2.3", lines: lines.to_vec(), authorities: Vec::new() }
}

#[test]
fn lines_are_good_under_their_conditions() {
    let line = key(1).public_line();
    for (options, expected) in [
        ("", true),
        ("restrict,no-pty ", true),
        ("from=\"10.1.*\" ", true),
        ("from=\"10.0.0.0/8,fe80::/10\" ", true),
        ("from=\"10.2.0.0/16\" ", false),
        ("from=\"!10.1.2.3,10.0.0.0/8\" ", false),
        ("from=\"10.1.2.3/33\" ", false),
        ("expiry-time=\"20270116\" ", true),
        ("expiry-time=\"20270115080001Z\" ", true),
        ("expiry-time=\"202701150800\" ", false),
        ("expiry-time=\"tomorrow\" ", false),
        ("command=\"ls\" ", false),
        ("cert-authority ", false),
        ("what-is-new ", false),
    ] {
        let world = lines(&[format!("{options}{line}")]);
        assert_eq!(world.takes("ssh-ed25519", key(1).blob()), expected, "{options}");
        assert!(!world.takes("ssh-ed25519", key(2).blob()));
        assert!(!world.takes("ssh-rsa", key(1).blob()));
    }
    // One line that does not hold leaves the others alone.
    let world = lines(&[format!("from=\"1.1.1.1\" {line}"), "# no key".to_owned(), line]);
    assert!(world.takes("ssh-ed25519", key(1).blob()));
}

#[test]
fn times_are_those_of_the_calendar() {
    for (text, seconds) in [
        ("19700101", 0),
        ("20000229", 951_782_400),
        ("20240301", 1_709_251_200),
        ("20270115080000", NOW),
    ] {
        assert_eq!(expiry_s(text), Some(seconds), "{text}");
    }
    for wrong in ["", "2027", "20271301", "20270100", "202701010060", "2027010124", "2027é101"] {
        assert_eq!(expiry_s(wrong), None, "{wrong}");
    }
}

#[test]
fn certificates_of_authorities_for_all() {
    let authorities = vec![key(2).public_line()];
    let world = World { authorities, ..lines(&[]) };
    let good = Made::default();
    assert!(world.takes_certificate(&good));
    for (bad, why) in [
        (Made { kind: 2, ..Made::default() }, "for hosts"),
        (Made { principals: vec!["bob"], ..Made::default() }, "for another"),
        (Made { principals: vec![], ..Made::default() }, "for nobody"),
        (Made { valid: (NOW + 1, NOW + 2), ..Made::default() }, "not yet"),
        (Made { valid: (NOW - 2, NOW), ..Made::default() }, "not any more"),
        (Made { critical: vec![("force-command", "ls")], ..Made::default() }, "a command"),
        (Made { critical: vec![("new@example.com", "")], ..Made::default() }, "unknown"),
        (Made { critical: vec![("source-address", "10.2.0.0/16")], ..Made::default() }, "address"),
    ] {
        assert!(!world.takes_certificate(&bad), "{why}");
    }
    let near = Made { critical: vec![("source-address", "10.1.0.0/16")], ..Made::default() };
    assert!(world.takes_certificate(&near));
    // Not the authority's key itself, not the plain key, and nothing that was changed.
    assert!(!world.takes("ssh-ed25519", key(2).blob()));
    assert!(!world.takes("ssh-ed25519", key(1).blob()));
    let blob = good.blob();
    for at in 0..blob.len() {
        let mut changed = blob.clone();
        changed[at] ^= 4;
        assert!(!world.takes("ssh-ed25519-cert-v01@openssh.com", &changed), "byte {at}");
    }
    let stranger = World { authorities: vec![key(3).public_line()], ..lines(&[]) };
    assert!(!stranger.takes_certificate(&good));
}

#[test]
fn certificates_of_a_users_own_authorities() {
    let line = key(2).public_line();
    let world = lines(&[format!("cert-authority {line}")]);
    assert!(world.takes_certificate(&Made::default()));
    assert!(world.takes_certificate(&Made { principals: vec![], ..Made::default() }));
    assert!(!world.takes_certificate(&Made { principals: vec!["bob"], ..Made::default() }));
    let world = lines(&[format!("cert-authority,principals=\"bob,carol\" {line}")]);
    assert!(!world.takes_certificate(&Made::default()));
    assert!(world.takes_certificate(&Made { principals: vec!["carol"], ..Made::default() }));
    let world = lines(&[format!("cert-authority,from=\"1.1.1.1\" {line}")]);
    assert!(!world.takes_certificate(&Made::default()));
    assert!(!lines(&[line]).takes_certificate(&Made::default()), "no authority");
}
