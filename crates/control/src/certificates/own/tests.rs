//! The server's own certificate: made, kept, renewed, and of no use elsewhere.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{ServerName, UnixTime};

use super::*;
use crate::state::tests::Scratch;

const DAY: u64 = 24 * 3600;
const NOW: u64 = 1_800_000_000;

fn names(more: &[&str]) -> Vec<String> {
    ["localhost", "127.0.0.1", "::1", "nas"].iter().chain(more).map(|n| (*n).to_owned()).collect()
}

fn open(scratch: &Scratch, more: &[&str], now: u64) -> Own {
    Own::open(scratch.path(), &names(more), now, false).unwrap()
}

/// Whether a client that trusts `authority` accepts `chain` for `name` at `now`.
fn trusts(authority: &str, chain: &str, name: &str, now: u64) -> Result<(), rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
    let all: Vec<_> =
        CertificateDer::pem_slice_iter(chain.as_bytes()).collect::<Result<_, _>>().unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let now = UnixTime::since_unix_epoch(Duration::from_secs(now));
    let verifier = verifier.build().unwrap();
    verifier.verify_server_cert(&all[0], &all[1..], &name, &[], now).map(drop)
}

#[test]
fn it_is_made_once_for_all_names_and_private() {
    let scratch = Scratch::new();
    let own = open(&scratch, &["192.0.2.7"], NOW);
    let authority = own.authority.clone().unwrap();
    for name in ["localhost", "127.0.0.1", "::1", "nas", "192.0.2.7"] {
        trusts(&authority, &own.identity.certificate_pem, name, NOW).expect(name);
    }
    assert!(own.facts.ends - own.facts.begins == 200 * DAY && !own.facts.authority);
    for file in ["certificate.pem", "key.pem", "authority.pem", "authority-key.pem"] {
        let mode = fs::metadata(scratch.path().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let again = open(&scratch, &["192.0.2.7"], NOW + DAY);
    assert!(again.identity == own.identity, "it stays");
}

#[test]
fn renewed_it_is_of_the_same_authority_which_clients_trust() {
    let scratch = Scratch::new();
    let first = open(&scratch, &[], NOW);
    let later = first.facts.renews();
    assert!(open(&scratch, &[], later - 1).identity == first.identity);
    let second = open(&scratch, &[], later);
    assert!(second.identity != first.identity && second.authority == first.authority);
    let authority = first.authority.unwrap();
    trusts(&authority, &second.identity.certificate_pem, "nas", later + 100 * DAY).unwrap();
    let fresh = Own::open(scratch.path(), &names(&[]), later, true).unwrap();
    assert!(fresh.identity != second.identity && fresh.authority == second.authority);
    // A clock that was set back: a certificate that becomes valid in the future is of no use.
    let back = open(&scratch, &[], NOW - 400 * DAY);
    assert!(back.facts.begins < NOW - 400 * DAY);
}

#[test]
fn new_private_addresses_need_no_new_trust_other_names_do() {
    let scratch = Scratch::new();
    let first = open(&scratch, &[], NOW);
    let private = open(&scratch, &["10.9.8.7", "fd00::7", "www.nas"], NOW);
    assert!(private.facts.is_for("10.9.8.7") && private.authority == first.authority);
    let authority = private.authority.clone().unwrap();
    for name in ["10.9.8.7", "fd00::7", "www.nas"] {
        trusts(&authority, &private.identity.certificate_pem, name, NOW).expect(name);
    }
    let other = open(&scratch, &["nas.example.org"], NOW);
    assert!(other.authority != first.authority);
    let authority = other.authority.unwrap();
    trusts(&authority, &other.identity.certificate_pem, "nas.example.org", NOW).unwrap();
}

#[test]
fn the_authority_is_of_no_use_against_other_sites() {
    let scratch = Scratch::new();
    let own = open(&scratch, &[], NOW);
    let authority = Authority::read(scratch.path()).unwrap().unwrap();
    let pem = own.authority.unwrap();
    for name in ["bank.example", "93.184.216.34", "2606:2800::1"] {
        let (chain, _) = authority.sign(&[name.to_owned()], NOW).unwrap();
        let refused = trusts(&pem, &chain, name, NOW).unwrap_err();
        assert!(format!("{refused:?}").contains("NameConstraintViolation"), "{name}: {refused:?}");
    }
    assert!(trusts(&pem, &authority.sign(&names(&[]), NOW).unwrap().0, "nas", NOW).is_ok());
}

#[test]
fn what_the_administrator_has_put_there_is_left_alone() {
    let scratch = Scratch::new();
    let ours = open(&scratch, &[], NOW);
    let (_, theirs) = ours.identity.certificate_pem.split_once('\n').unwrap();
    fs::write(scratch.path().join("certificate.pem"), theirs).unwrap();
    let own = Own::open(scratch.path(), &names(&["other"]), NOW + 900 * DAY, true).unwrap();
    assert!(own.identity.certificate_pem == theirs && own.authority.is_none());
    fs::write(scratch.path().join("certificate.pem"), "nothing").unwrap();
    let damaged = Own::open(scratch.path(), &names(&[]), NOW, false).map(drop).unwrap_err();
    assert!(matches!(damaged, StateError::Damaged { .. }), "{damaged}");
}

#[test]
fn one_of_an_older_version_is_replaced() {
    let scratch = Scratch::new();
    let key = KeyPair::generate().unwrap();
    let made = CertificateParams::new(names(&[])).unwrap().self_signed(&key).unwrap();
    let pem = format!("{NAMES}{}\n{}", names(&[]).join(" "), made.pem());
    fs::write(scratch.path().join("certificate.pem"), &pem).unwrap();
    fs::write(scratch.path().join("key.pem"), key.serialize_pem()).unwrap();
    let own = open(&scratch, &[], NOW);
    assert!(own.identity.certificate_pem != pem && own.authority.is_some());
}
