//! Names in certificates as they are made, and in what is none.

use base::random::{Random, SeededRandom};
use rcgen::{CertificateParams, DnType, KeyPair};

use super::*;

fn certificate(names: &[(DnType, &str)]) -> Vec<u8> {
    let mut params = CertificateParams::new(vec!["alternative.example".to_owned()]).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    names.iter().for_each(|(kind, name)| params.distinguished_name.push(kind.clone(), *name));
    params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
}

#[test]
fn the_common_name_is_found_among_others() {
    let both = [(DnType::OrganizationName, "Org"), (DnType::CommonName, "host.example")];
    assert_eq!(common_name(&certificate(&both)), Some(&b"host.example"[..]));
    assert_eq!(common_name(&certificate(&both[1..])), Some(&b"host.example"[..]));
    assert_eq!(common_name(&certificate(&both[..1])), None);
    assert_eq!(common_name(&certificate(&[])), None);
}

#[test]
fn a_name_that_cannot_be_shown_is_none() {
    let long = "x".repeat(65);
    for name in ["with a space", "line\nend", "", long.as_str()] {
        assert_eq!(common_name(&certificate(&[(DnType::CommonName, name)])), None, "{name:?}");
    }
}

#[test]
fn what_is_no_certificate_has_no_name_and_does_no_harm() {
    let good = certificate(&[(DnType::CommonName, "host.example")]);
    for end in 0..good.len() {
        // Cut short: the outermost length is more than the bytes that remain.
        assert_eq!(common_name(&good[..end]), None);
    }
    let mut random = SeededRandom::new(3);
    for _ in 0..20_000 {
        let mut bad = good.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(bad.len() as u64) as usize;
            bad[at] = random.next_u64() as u8;
        }
        let found = common_name(&bad);
        assert!(found.is_none_or(|name| name.len() <= NAME_MAX));
    }
}
