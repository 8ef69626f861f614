//! Chains and keys: in order, belonging together, and the errors for others.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, PKCS_ED25519,
};

use super::*;

/// The CA of certificates for tests.
pub type Authority = CertifiedIssuer<'static, KeyPair>;

/// A new CA.
pub fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A chain of two and the key, for these names, good until a year.
pub fn signed(by: &Authority, names: &[&str], until: i32) -> Identity {
    let key = KeyPair::generate().unwrap();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name.push(DnType::CommonName, "host");
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(until, 1, 1);
    let made = params.signed_by(&key, by).unwrap();
    Identity { certificate_pem: made.pem() + &by.pem(), key_pem: key.serialize_pem() }
}

fn why(chain: &str, key: &str) -> Wrong {
    Pair::read(chain, key).map(drop).unwrap_err()
}

#[test]
fn a_chain_in_order_with_its_key_is_good() {
    let good = signed(&authority("CA"), &["nas.example"], 2100);
    let pair = Pair::read(&good.certificate_pem, &good.key_pem).map_err(|e| e.sentence).unwrap();
    assert_eq!((pair.facts.issuer.as_str(), pair.facts.names[0].as_str()), ("CA", "nas.example"));
    assert_eq!(pair.certified.cert.len(), 2);
    let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    let own = CertificateParams::new(["x".to_owned()]).unwrap().self_signed(&key).unwrap();
    assert!(Pair::read(&own.pem(), &key.serialize_pem()).is_ok(), "Ed25519");
}

#[test]
fn a_key_of_another_certificate_is_reported() {
    let ca = authority("CA");
    let (one, two) = (signed(&ca, &["a"], 2100), signed(&ca, &["a"], 2100));
    let wrong = why(&one.certificate_pem, &two.key_pem);
    assert!(wrong.key && wrong.sentence.contains("does not match"), "{wrong}");
    let wrong = why(&one.certificate_pem, &one.certificate_pem);
    assert!(wrong.key && wrong.sentence.contains("cannot be read"), "{wrong}");
}

#[test]
fn an_invalid_chain_is_reported() {
    let (ca, other) = (authority("CA"), authority("Other"));
    let good = signed(&ca, &["a"], 2100);
    let (leaf, _) = good.certificate_pem.split_at(good.certificate_pem.len() - ca.pem().len());
    let cases = [
        (format!("{}{leaf}", ca.pem()), "not in order"),
        (format!("{leaf}{}", other.pem()), "not signed by \"Other\""),
        (leaf.repeat(9), "the maximum is"),
        (String::new(), "no certificate"),
        (good.key_pem.clone(), "no certificate"),
        (ca.pem(), "no subject alternative names"),
        ("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n".into(), "damaged"),
        ("-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n".into(), "be read"),
    ];
    for (chain, told) in cases {
        let wrong = why(&chain, &good.key_pem);
        assert!(!wrong.key && wrong.sentence.contains(told), "{told}: {wrong}");
    }
}
