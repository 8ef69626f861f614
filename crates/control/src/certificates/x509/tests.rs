//! What is read from certificates as they are made, and from what is none.

use base::random::{Random, SeededRandom};
use rcgen::{CertificateParams, DnType, KeyPair};

use super::*;

fn made(change: impl FnOnce(&mut CertificateParams)) -> Vec<u8> {
    let names = ["nas.example", "*.wild.example", "192.0.2.7", "2001:db8::7"];
    let mut params = CertificateParams::new(names.map(str::to_owned)).unwrap();
    params.distinguished_name.push(DnType::CommonName, "Näs");
    params.not_before = rcgen::date_time_ymd(2026, 2, 28);
    params.not_after = rcgen::date_time_ymd(2026, 9, 5);
    change(&mut params);
    params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
}

#[test]
fn names_times_and_the_issuer() {
    let facts = Facts::read(&made(|_| {})).unwrap();
    assert_eq!((facts.subject.as_str(), facts.issuer.as_str()), ("Näs", "Näs"));
    assert_eq!(facts.names, ["nas.example", "*.wild.example", "192.0.2.7", "2001:db8::7"]);
    assert_eq!(facts.begins, 1_772_236_800, "2026-02-28");
    assert_eq!(facts.ends, 1_788_566_400, "2026-09-05");
    assert_eq!(facts.renews(), facts.ends - (facts.ends - facts.begins) / 3);
    assert!(!facts.authority && facts.is_from(&facts));
    assert_eq!(facts.fingerprint.len(), 32 * 3 - 1);
}

#[test]
fn an_authority_and_times_beyond_2049() {
    let facts = Facts::read(&made(|params| {
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Constrained(0));
        params.not_after = rcgen::date_time_ymd(4096, 1, 1);
    }));
    let facts = facts.unwrap();
    assert!(facts.authority);
    assert_eq!(base::units::utc(facts.ends.cast_signed()), "4096-01-01 00:00:00");
}

#[test]
fn stars_stand_for_one_label() {
    let facts = Facts::read(&made(|_| {})).unwrap();
    for host in ["nas.example", "NAS.example", "a.wild.example", "2001:db8::7"] {
        assert!(facts.is_for(host), "{host}");
    }
    for host in ["example", "wild.example", "a.b.wild.example", "192.0.2.8", "x.nas.example"] {
        assert!(!facts.is_for(host), "{host}");
    }
}

#[test]
fn what_is_damaged_is_read_without_harm() {
    let good = made(|_| {});
    for length in 0..good.len() {
        assert_eq!(Facts::read(&good[..length]), None, "cut at {length}");
    }
    let mut random = SeededRandom::new(7);
    let mut differ = 0;
    for _ in 0..4_000 {
        let mut bad = good.clone();
        let at = (random.next_u64() % bad.len() as u64) as usize;
        bad[at] ^= 1 << (random.next_u64() % 8);
        // Nothing is promised but an end.
        differ += usize::from(Facts::read(&bad) != Facts::read(&good));
    }
    assert!(differ > 3_000, "the fingerprint alone tells: {differ}");
}
