//! Tests of text, negotiation, CHAP and the login of both sides.

use base::limits::{ISCSI_LOGIN_DATA_MAX, ISCSI_LOGIN_TEXT_MAX, ISCSI_NAME_MAX, ISCSI_PAIRS_MAX};
use proptest::prelude::*;

use super::chap::{
    Algorithm, CHALLENGE, Challenge, ChapError, Received, decode_binary, encode_base64, encode_hex,
};
use super::keys::{Key, number};
use super::login::{Isid, LoginRequest, LoginStatus, Stage, Stages};
use super::login_initiator::{InitiatorLogin, LoginError, Next, Proof};
use super::login_phase::{Access, Authentication, Credentials, Identity, Reply, Step, TargetLogin};
use super::negotiate::{Negotiation, NegotiationError, Parameters, Side, take_in_full_feature};
use super::pairs::{Collector, Pair, TextError, has_key_twice, parse, put, segments};
use super::{Digests, InitiatorSn, TargetSn};
use crate::iscsi::login::LoginResponse;

fn text(pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    pairs.iter().for_each(|(key, value)| put(&mut out, key, value));
    out
}

fn get<'t>(text: &'t [u8], key: &str) -> Option<&'t str> {
    let pairs = parse(text).expect("text");
    pairs.iter().find(|pair| pair.key == key).map(|pair| pair.value)
}

#[test]
fn pairs_are_parsed_and_bounded() {
    let pairs = parse(b"A=\0Bc.d-e+f@g_h=i=j\0\0X#a=1\0").expect("pairs");
    let expect = [("A", ""), ("Bc.d-e+f@g_h", "i=j"), ("X#a", "1")];
    assert!(pairs.iter().map(|pair| (pair.key, pair.value)).eq(expect));
    assert_eq!(parse(b""), Ok(vec![]));
    assert_eq!(parse(b"A=b"), Err(TextError::Unterminated));
    assert_eq!(parse(b"Ab\0"), Err(TextError::NoEquals));
    for key in ["", "1a", "a b", "\u{e9}", &"k".repeat(64)] {
        assert_eq!(parse(format!("{key}=1\0").as_bytes()), Err(TextError::BadKey), "{key}");
    }
    assert!(parse(format!("{}=1\0", "k".repeat(63)).as_bytes()).is_ok());
    assert_eq!(parse(b"A=\xff\0"), Err(TextError::BadValue));
    let long = "v".repeat(256);
    assert_eq!(parse(format!("A={long}\0").as_bytes()), Err(TextError::BadValue));
    assert!(parse(format!("CHAP_C=0x{long}\0").as_bytes()).is_ok());
    assert!(parse(format!("CHAP_C=0x{}\0", "0".repeat(2049)).as_bytes()).is_err());
    let many = "A=\0".repeat(ISCSI_PAIRS_MAX + 1);
    assert!(matches!(parse(many.as_bytes()), Err(TextError::TooManyPairs { .. })));
}

#[test]
fn text_goes_over_several_pdus() {
    let whole = text(&[("InitiatorName", "iqn.a"), ("SessionType", "Normal")]);
    for max in [1, 7, 1000] {
        let mut collector = Collector::new(100);
        let mut found = None;
        for (segment, goes_on) in segments(&whole, max) {
            assert!(segment.len() <= max && found.is_none());
            found = collector.push(segment, goes_on).expect("room").map(<[u8]>::to_vec);
        }
        assert_eq!(found.as_deref(), Some(&whole[..]));
    }
    assert_eq!(segments(b"", 10).collect::<Vec<_>>(), [(&b""[..], false)]);
    let mut collector = Collector::new(10);
    assert_eq!(collector.push(&[b'a'; 6], true), Ok(None));
    assert!(collector.is_open());
    assert_eq!(collector.push(&[b'a'; 6], true), Err(TextError::TooLong { max: 10, got: 12 }));
}

#[test]
fn keys_are_those_of_the_rfc() {
    assert_eq!(Key::ALL.len(), 34);
    for key in Key::ALL {
        assert_eq!(Key::of(key.name()), Some(*key));
    }
    assert_eq!(Key::of("headerdigest"), None);
    let numbers = [("0", Some(0)), ("0x1F", Some(31)), ("4294967296", None), ("-1", None)];
    for (text, value) in numbers.into_iter().chain([("", None), ("+1", None), ("0x", None)]) {
        assert_eq!(number(text), value, "{text}");
    }
}

/// What a target with these wishes answers to one key.
fn answer(wishes: Parameters, key: &str, value: &str) -> (Option<String>, Parameters) {
    let (mut target, mut out) = (Negotiation::new(Side::Target, wishes), Vec::new());
    target.take(Pair { key, value }, &mut out).expect("the login goes on");
    (get(&out, key).map(str::to_owned), target.result())
}

#[test]
fn each_rule_is_answered() {
    let wishes = Parameters::of_target();
    let cases = [
        ("HeaderDigest", "CRC32C,None", Some("CRC32C")),
        ("HeaderDigest", "None,CRC32C", Some("None")),
        ("DataDigest", "X-other", Some("Reject")),
        ("MaxConnections", "8", Some("1")),
        ("MaxConnections", "0", Some("Reject")),
        ("InitialR2T", "No", Some("No")),
        ("InitialR2T", "Yes", Some("Yes")),
        ("InitialR2T", "yes", Some("Reject")),
        ("ImmediateData", "No", Some("No")),
        ("MaxRecvDataSegmentLength", "65536", None),
        ("MaxBurstLength", "262144", Some("262144")),
        ("MaxBurstLength", "16777216", Some("Reject")),
        ("DefaultTime2Wait", "1", Some("2")),
        ("DefaultTime2Wait", "9", Some("9")),
        ("DefaultTime2Retain", "20", Some("0")),
        ("ErrorRecoveryLevel", "2", Some("0")),
        ("ErrorRecoveryLevel", "3", Some("Reject")),
        ("TaskReporting", "FastAbort,RFC3720", Some("RFC3720")),
        ("iSCSIProtocolLevel", "1", Some("1")),
        ("IFMarker", "No", Some("Reject")),
        ("OFMarkInt", "1~2", Some("Reject")),
        ("TargetAddress", "a:3260", Some("Reject")),
        ("X-com.example.a", "b", Some("NotUnderstood")),
        ("Nobody", "NotUnderstood", None),
    ];
    for (key, value, expect) in cases {
        assert_eq!(answer(wishes, key, value).0.as_deref(), expect, "{key}={value}");
    }
    assert!(answer(wishes, "DataDigest", "CRC32C").1.digests.data);
    assert_eq!(answer(wishes, "MaxRecvDataSegmentLength", "65536").1.max_send_data, 65_536);
    let none = Parameters { digests: Digests::default(), ..wishes };
    assert_eq!(answer(none, "HeaderDigest", "CRC32C,None").0.as_deref(), Some("None"));
    // Unsolicited data never exceeds a burst.
    let (_, result) = answer(wishes, "MaxBurstLength", "512");
    assert_eq!((result.max_burst, result.first_burst), (512, 512));
}

#[test]
fn a_key_comes_once() {
    let mut target = Negotiation::new(Side::Target, Parameters::of_target());
    let pair = Pair { key: "InitialR2T", value: "Yes" };
    assert_eq!(target.take(pair, &mut vec![]), Ok(()));
    assert_eq!(target.take(pair, &mut vec![]), Err(NegotiationError::Again(Key::InitialR2T)));
}

#[test]
fn answers_must_be_of_what_was_proposed() {
    let wishes = Parameters { max_burst: 1024, ..Parameters::default() };
    let take = |key, value| {
        let mut initiator = Negotiation::new(Side::Initiator, wishes);
        initiator.propose(&mut vec![]);
        let result = initiator.take(Pair { key, value }, &mut vec![]);
        result.map(|()| initiator.result())
    };
    let bad = |key: Key| Err(NegotiationError::BadAnswer(key));
    assert_eq!(take("MaxBurstLength", "2048"), bad(Key::MaxBurstLength));
    assert_eq!(take("MaxBurstLength", "512").map(|p| p.max_burst), Ok(512));
    assert_eq!(take("MaxBurstLength", "Reject").map(|p| p.max_burst), Ok(262_144));
    assert_eq!(take("DefaultTime2Wait", "1"), bad(Key::DefaultTime2Wait));
    assert_eq!(take("InitialR2T", "No"), bad(Key::InitialR2T));
    assert_eq!(take("HeaderDigest", "CRC32C"), bad(Key::HeaderDigest));
}

#[test]
fn discovery_makes_keys_irrelevant_and_full_feature_refuses_most() {
    let mut target = Negotiation::new(Side::Target, Parameters::of_target());
    target.set_discovery();
    let mut out = Vec::new();
    target.take(Pair { key: "MaxBurstLength", value: "512" }, &mut out).expect("goes on");
    assert_eq!(get(&out, "MaxBurstLength"), Some("Irrelevant"));
    out.clear();
    let length = Pair { key: "MaxRecvDataSegmentLength", value: "4096" };
    assert_eq!(take_in_full_feature(length, &mut out), Some(4096));
    assert_eq!(take_in_full_feature(Pair { key: "MaxBurstLength", value: "1" }, &mut out), None);
    assert_eq!(take_in_full_feature(Pair { key: "Zz", value: "1" }, &mut out), None);
    assert_eq!(out, text(&[("MaxBurstLength", "Reject"), ("Zz", "NotUnderstood")]));
}

/// Computed with another implementation (`hashlib`): identifier 13h, the secret, the challenge.
#[test]
fn golden_chap() {
    let (secret, challenge) = (b"abcdefghijklmnop", [0xab; 16]);
    let md5 = Algorithm::Md5.response(0x13, secret, &challenge);
    assert_eq!(encode_hex(&md5), MD5_OF_HASHLIB);
    let sha = Algorithm::Sha256.response(0x13, secret, &challenge);
    assert_eq!(encode_hex(&sha), SHA256_OF_HASHLIB);
    assert_eq!(Algorithm::choose("5"), Ok(Algorithm::Md5));
    assert_eq!(Algorithm::choose("6,7,5"), Ok(Algorithm::Sha256));
    assert_eq!(Algorithm::choose("6,8"), Err(ChapError::NoAlgorithm));
}

const MD5_OF_HASHLIB: &str = "0x5a8f0f6a487a035abfa7abfdecfd5445";
const SHA256_OF_HASHLIB: &str =
    "0x2ea4e9654cfd2fd92caff4f67daafdd6c7bb02843af7bdd38ce19f8e2f2a5849";

/// A login of libiscsi 1.19 at tgt 1.0.85, both ways, as it was on the network.
#[test]
fn golden_chap_of_others() {
    let answer = |secret: &[u8], identifier, challenge| {
        let received = Received { identifier, challenge };
        let (identifier, challenge) = (received.identifier(), received.challenge());
        Algorithm::Md5.response(identifier.expect("CHAP_I"), secret, &challenge.expect("CHAP_C"))
    };
    let of_target = "0xde49e0c31fdc9554614f365f62bbaf0f62c832eef352f40d473383e9a00a4165\
        aaa2366c0f99554912bbb72cbe79e7b806ad";
    let response = answer(b"twelvebytesormore", "2", of_target);
    assert_eq!(decode_binary("0x7765966B83F745348FA7E65B02AAA3A9"), Some(response));
    let of_initiator = "0x2607804E55AF5702B819396B9F3B2A6F7FD94BA250645D9491546EBFCF004DF6";
    let response = answer(b"othertwelvebytes", "1", of_initiator);
    assert_eq!(decode_binary("0xb52430da2091a101cfa23941bec97b9c"), Some(response));
}

#[test]
fn binaries_in_both_forms() {
    assert_eq!(encode_base64(b"foobar"), "0bZm9vYmFy");
    assert_eq!(encode_base64(b"fooba"), "0bZm9vYmE=");
    assert_eq!(encode_base64(b"foob"), "0bZm9vYg==");
    assert_eq!(decode_binary("0xABc"), Some(vec![0x0a, 0xbc]));
    for bad in ["", "0", "zz", "0xg0", "0bZg=", "0bZ===", "0bZh==", "0bZm9v=mFy", "0x\u{e9}"] {
        assert_eq!(decode_binary(bad), None, "{bad}");
    }
    assert_eq!(decode_binary(&encode_hex(&[5; 1024])).map(|b| b.len()), Some(1024));
    assert_eq!(decode_binary(&encode_hex(&[5; 1025])), None);
}

#[test]
fn our_own_challenge_and_a_common_secret_are_refused() {
    let ours = Challenge { algorithm: Algorithm::Md5, identifier: 1, challenge: [4; CHALLENGE] };
    let same = encode_hex(&[4; CHALLENGE]);
    let reflected = Received { identifier: "2", challenge: &same };
    let answer =
        |theirs: &Received<'_>, secret: &[u8]| ours.mutual_response(theirs, secret, b"theirs");
    assert_eq!(answer(&reflected, b"ours"), Err(ChapError::Reflected));
    let other = Received { identifier: "2", challenge: "0x05" };
    assert_eq!(answer(&other, b"theirs"), Err(ChapError::SameSecret));
    assert_eq!(answer(&other, b"ours"), Ok(Algorithm::Md5.response(2, b"ours", &[5])));
    for (identifier, challenge) in [("256", "0x05"), ("x", "0x05"), ("1", "0x"), ("1", "5")] {
        assert!(answer(&Received { identifier, challenge }, b"ours").is_err());
    }
    let response = encode_hex(&Algorithm::Md5.response(1, b"secret", &[4; CHALLENGE]));
    assert_eq!(ours.check(b"secret", &response), Ok(()));
    assert_eq!(ours.check(b"other", &response), Err(ChapError::WrongResponse));
    assert_eq!(ours.check(b"secret", &response[..32]), Err(ChapError::WrongResponse));
}

fn credentials(name: &str, secret: &str) -> Credentials {
    Credentials { name: name.to_owned(), secret: secret.as_bytes().to_vec() }
}

fn chap(target: Option<Credentials>) -> Access {
    let initiator = credentials("user", "twelve bytes and more");
    let random = [7; 1 + CHALLENGE];
    let authentication = Authentication::Chap { initiator, target, random };
    Access { authentication, portal_group: 5 }
}

const OPEN: Access = Access { authentication: Authentication::None, portal_group: 5 };

fn identity(is_discovery: bool) -> Identity {
    let target = (!is_discovery).then(|| "iqn.target".to_owned());
    Identity { initiator: "iqn.initiator".to_owned(), target, is_discovery }
}

const THREAD: (u32, Isid, u16) = (1, Isid([0x40, 0, 0, 0, 0, 1]), 0);

fn request(stages: Stages, data: &[u8]) -> LoginRequest<'_> {
    let (itt, isid, tsih) = THREAD;
    let sn = InitiatorSn::default();
    LoginRequest { stages, version_max: 0, version_min: 0, isid, tsih, itt, cid: 0, sn, data }
}

fn response(reply: &Reply) -> LoginResponse<'_> {
    LoginResponse {
        stages: reply.stages,
        version_max: 0,
        version_active: 0,
        isid: THREAD.1,
        tsih: 0,
        itt: THREAD.0,
        sn: TargetSn::default(),
        status: LoginStatus::SUCCESS,
        data: &reply.text,
    }
}

/// Both sides against each other: what they agreed on, and how many requests it took.
fn log_in(
    access: &Access,
    proof: Option<Proof>,
    is_discovery: bool,
) -> Result<(Parameters, Parameters, u32), String> {
    let mut target = TargetLogin::new(Parameters::of_target());
    let wishes = Parameters { max_burst: 1 << 20, ..Parameters::of_target() };
    let mut initiator = InitiatorLogin::new(identity(is_discovery), proof, wishes);
    let (mut stages, mut text) = initiator.begin();
    for count in 1.. {
        let refused = |status: LoginStatus| format!("{status:?}");
        let reply = match target.take(&request(stages, &text)).map_err(refused)? {
            Step::Identify(who) => {
                assert_eq!(who, identity(is_discovery));
                target.admit(access.clone()).map_err(refused)?
            }
            Step::Reply(reply) => reply,
        };
        match initiator.take(&response(&reply)).map_err(|error| format!("{error:?}"))? {
            Next::Send(next, more) => (stages, text) = (next, more),
            Next::Done => return Ok((target.parameters(), initiator.parameters(), count)),
        }
    }
    Err("without end".to_owned())
}

/// The reply of a target to the first text of an initiator.
fn first(pairs: &[u8]) -> Result<Reply, LoginStatus> {
    let (current, transit) = (Stage::LoginOperationalNegotiation, None);
    let stages = Stages { current, transit, to_be_continued: false };
    let mut target = TargetLogin::new(Parameters::of_target());
    match target.take(&request(stages, pairs))? {
        Step::Identify(_) => target.admit(OPEN),
        Step::Reply(reply) => Ok(reply),
    }
}

#[test]
fn a_name_that_would_be_something_else_elsewhere_is_refused() {
    let named = |name: &str| first(&text(&[("InitiatorName", name), ("TargetName", "iqn.t")]));
    for name in ["iqn.2026-01.test:i", "eui.02004567A425678D", "iqn.test:anna_2", "iqn.test:\u{e9}"]
    {
        assert!(named(name).is_ok(), "{name}");
    }
    let longest = "n".repeat(ISCSI_NAME_MAX + 1);
    for name in ["", "a b", "a\nb", "a\u{1b}[2J", "a\u{7f}", "iqn.a,i,0x000000000001", &longest] {
        assert_eq!(named(name).err(), Some(LoginStatus::INITIATOR_ERROR), "{name:?}");
    }
}

#[test]
fn a_response_fits_what_every_initiator_takes() {
    let names = [("InitiatorName", "iqn.i"), ("TargetName", "iqn.t")];
    let keys: Vec<String> = (0..ISCSI_LOGIN_DATA_MAX / 16).map(|n| format!("k{n}")).collect();
    let with = |count: usize| {
        let unknown = keys.iter().take(count).map(|key| (key.as_str(), ""));
        let pairs: Vec<_> = names.into_iter().chain(unknown).collect();
        first(&text(&pairs))
    };
    let reply = with(300).expect("as many as anybody has");
    assert!(reply.text.len() > 4096 && reply.text.len() <= ISCSI_LOGIN_DATA_MAX);
    assert_eq!(with(keys.len()).err(), Some(LoginStatus::INITIATOR_ERROR));
}

#[test]
fn both_sides_agree() {
    let (user, target) = (credentials("user", "twelve bytes and more"), credentials("t", "others"));
    let proof = |target| Proof { initiator: user.clone(), target, random: [9; 1 + CHALLENGE] };
    let both = chap(Some(target.clone()));
    for (access, proof, requests) in [
        (OPEN, None, 2),
        (chap(None), Some(proof(None)), 4),
        (both.clone(), Some(proof(None)), 4),
        (both.clone(), Some(proof(Some(target.clone()))), 4),
    ] {
        let (ours, theirs, count) = log_in(&access, proof.clone(), false).expect("a login");
        assert_eq!(count, requests);
        assert_eq!((ours.max_burst, theirs.max_burst), (1 << 20, 1 << 20));
        assert!(ours.digests.header && theirs.digests.data && !ours.initial_r2t);
        assert_eq!(ours.max_recv_data, theirs.max_send_data);
        assert_eq!(ours.max_send_data, theirs.max_recv_data);
        log_in(&access, proof, true).expect("a discovery");
    }
    let wrong = Proof { initiator: credentials("user", "something else"), ..proof(None) };
    let failure = format!("{:?}", LoginStatus::AUTHENTICATION_FAILURE);
    assert_eq!(log_in(&both, Some(wrong), false).as_ref(), Err(&failure));
    let wrong = Proof { initiator: credentials("other", "twelve bytes and more"), ..proof(None) };
    assert_eq!(log_in(&both, Some(wrong), false).as_ref(), Err(&failure));
    assert_eq!(log_in(&both, None, false).as_ref(), Err(&failure), "without CHAP");
    let proof_of = |target| Some(proof(Some(target)));
    assert_eq!(log_in(&chap(None), proof_of(target.clone()), false).as_ref(), Err(&failure));
    let impostor = log_in(&both, proof_of(credentials("t", "not it")), false);
    assert_eq!(impostor, Err(format!("{:?}", LoginError::Chap(ChapError::WrongResponse))));
}

const SECURITY: Stages =
    Stages { current: Stage::SecurityNegotiation, transit: None, to_be_continued: false };
const OPERATIONAL: Stages = Stages { current: Stage::LoginOperationalNegotiation, ..SECURITY };
const TO_FULL: Stages = Stages { transit: Some(Stage::FullFeaturePhase), ..OPERATIONAL };

#[test]
fn statuses_of_a_target() {
    let first = |stages, pairs: &[(&str, &str)]| {
        TargetLogin::new(Parameters::of_target()).take(&request(stages, &text(pairs)))
    };
    let (name, target) = (("InitiatorName", "a"), ("TargetName", "b"));
    assert_eq!(first(SECURITY, &[target]), Err(LoginStatus::MISSING_PARAMETER));
    assert_eq!(first(SECURITY, &[name]), Err(LoginStatus::MISSING_PARAMETER));
    let other = ("SessionType", "Other");
    assert_eq!(first(SECURITY, &[name, other]), Err(LoginStatus::SESSION_TYPE_NOT_SUPPORTED));
    let long = "n".repeat(224);
    assert_eq!(
        first(SECURITY, &[("InitiatorName", &long), target]),
        Err(LoginStatus::INITIATOR_ERROR)
    );
    assert!(matches!(first(TO_FULL, &[name, target]), Ok(Step::Identify(_))));
    let mut old = request(SECURITY, b"");
    old.version_min = 1;
    let mut login = TargetLogin::new(Parameters::of_target());
    assert_eq!(login.take(&old), Err(LoginStatus::UNSUPPORTED_VERSION));
    // Where CHAP is required, a login without security negotiation fails.
    let mut login = TargetLogin::new(Parameters::of_target());
    login.take(&request(TO_FULL, &text(&[name, target]))).expect("a step");
    assert_eq!(login.admit(chap(None)), Err(LoginStatus::AUTHENTICATION_FAILURE));
}

/// A login that has identified itself with this text, and what it is answered.
fn admitted(stages: Stages, pairs: &[(&str, &str)], access: Access) -> (TargetLogin, Reply) {
    let mut login = TargetLogin::new(Parameters::of_target());
    let all = [&[("InitiatorName", "a"), ("TargetName", "b")][..], pairs].concat();
    login.take(&request(stages, &text(&all))).expect("a step");
    let reply = login.admit(access).expect("a reply");
    (login, reply)
}

#[test]
fn stages_are_kept() {
    let (mut login, reply) = admitted(TO_FULL, &[("InitialR2T", "No")], OPEN);
    assert_eq!(reply.stages, TO_FULL);
    assert_eq!(get(&reply.text, "TargetPortalGroupTag"), Some("5"));
    assert_eq!(get(&reply.text, "MaxRecvDataSegmentLength"), Some("262144"));
    assert!(login.take(&request(TO_FULL, b"")).is_err(), "after the end");
    // The security stage cannot be left before CHAP has ended.
    let early = Stages { transit: Some(Stage::LoginOperationalNegotiation), ..SECURITY };
    let (mut login, reply) = admitted(early, &[("AuthMethod", "CHAP,None")], chap(None));
    assert_eq!((reply.stages, get(&reply.text, "AuthMethod")), (SECURITY, Some("CHAP")));
    let jump = login.take(&request(OPERATIONAL, b""));
    assert_eq!(jump, Err(LoginStatus::INITIATOR_ERROR));
    // Another tag, another connection.
    let (mut login, _) = admitted(SECURITY, &[], OPEN);
    let mut other = request(SECURITY, b"");
    other.itt = 99;
    assert_eq!(login.take(&other), Err(LoginStatus::INITIATOR_ERROR));
}

#[test]
fn a_challenge_is_answered_once_and_in_order() {
    let (mut login, _) = admitted(SECURITY, &[("AuthMethod", "CHAP")], chap(None));
    let response = text(&[("CHAP_N", "user"), ("CHAP_R", "0x00")]);
    let before = login.take(&request(SECURITY, &response));
    assert_eq!(before, Err(LoginStatus::INITIATOR_ERROR), "before a challenge");
    let (mut login, _) = admitted(SECURITY, &[("AuthMethod", "CHAP")], chap(None));
    let Ok(Step::Reply(reply)) = login.take(&request(SECURITY, &text(&[("CHAP_A", "5")]))) else {
        panic!("a challenge")
    };
    assert_eq!(get(&reply.text, "CHAP_I"), Some("7"));
    let wrong = login.take(&request(SECURITY, &response));
    assert_eq!(wrong, Err(LoginStatus::AUTHENTICATION_FAILURE));
    let again = login.take(&request(SECURITY, &response));
    assert_eq!(again, Err(LoginStatus::INITIATOR_ERROR), "a second try at one challenge");
}

#[test]
fn a_login_has_an_end() {
    let (mut login, _) = admitted(SECURITY, &[], OPEN);
    let last = (0..100).find_map(|_| login.take(&request(SECURITY, b"")).err());
    assert_eq!(last, Some(LoginStatus::INITIATOR_ERROR));
    let mut login = TargetLogin::new(Parameters::of_target());
    let more = Stages { to_be_continued: true, ..SECURITY };
    let (piece, mut taken) = ([b'a'; 4096], 0);
    while login.take(&request(more, &piece)).is_ok() {
        taken += piece.len();
    }
    assert!(taken <= ISCSI_LOGIN_TEXT_MAX);
}

proptest! {
    #[test]
    fn binaries_round_trip(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let (hex, base64) = (encode_hex(&bytes), encode_base64(&bytes));
        prop_assert_eq!(decode_binary(&hex), Some(bytes.clone()));
        prop_assert_eq!(decode_binary(&base64), Some(bytes));
    }

    #[test]
    fn numbers_agree_on_both_sides(ours in 512u32..1 << 24, theirs in 512u32..1 << 24) {
        let wish = |max_burst| Parameters { max_burst, ..Parameters::default() };
        let mut initiator = Negotiation::new(Side::Initiator, wish(ours));
        let mut target = Negotiation::new(Side::Target, wish(theirs));
        let (mut proposal, mut reply, mut nothing) = (vec![], vec![], vec![]);
        initiator.propose(&mut proposal);
        for pair in parse(&proposal).expect("text") {
            target.take(pair, &mut reply).expect("an answer");
        }
        prop_assert!(initiator.is_waiting());
        for pair in parse(&reply).expect("text") {
            initiator.take(pair, &mut nothing).expect("it fits");
        }
        prop_assert!(!initiator.is_waiting() && nothing.is_empty());
        prop_assert_eq!(initiator.result().max_burst, ours.min(theirs));
        prop_assert_eq!(target.result().max_burst, ours.min(theirs));
    }
}

/// What comes of a proposal of an initiator.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Outcome {
    /// This value is answered.
    Value(&'static str),
    /// It is a declaration: none is answered, and the login continues.
    Silent,
    /// The login fails.
    Fails,
}

/// Proposes values of keys to a target, as text of one request each; the outcome of the last.
fn propose(requests: &[(&str, &str)]) -> Outcome {
    let mut negotiation = Negotiation::new(Side::Target, Parameters::of_target());
    let mut outcome = Outcome::Silent;
    for (key, value) in requests {
        let mut out = Vec::new();
        let Ok(()) = negotiation.take(Pair { key, value }, &mut out) else {
            return Outcome::Fails;
        };
        let known = ["Reject", "NotUnderstood", "Irrelevant", "0", "1", "2", "8", "512", "1024"]
            .into_iter()
            .chain(["65536", "262144", "3600", "16776704", "Yes", "No", "None", "RFC3720"]);
        outcome = match get(&out, key) {
            None => Outcome::Silent,
            Some(answer) => Outcome::Value(
                known.into_iter().find(|known| *known == answer).unwrap_or("another value"),
            ),
        };
    }
    outcome
}

#[test]
fn each_key_has_its_range_and_its_relation_to_the_others() {
    use Outcome::{Fails, Silent, Value};
    let reject = Value("Reject");
    let table: &[(&[(&str, &str)], Outcome)] = &[
        (&[("MaxRecvDataSegmentLength", "0")], Fails),
        (&[("MaxRecvDataSegmentLength", "511")], Fails),
        (&[("MaxRecvDataSegmentLength", "512")], Silent),
        (&[("MaxRecvDataSegmentLength", "16777215")], Silent),
        (&[("MaxRecvDataSegmentLength", "16777216")], Fails),
        (&[("MaxRecvDataSegmentLength", "4294967296")], Fails),
        (&[("MaxRecvDataSegmentLength", "-1")], Fails),
        (&[("MaxRecvDataSegmentLength", "1k")], Fails),
        (&[("MaxRecvDataSegmentLength", "512"), ("MaxRecvDataSegmentLength", "512")], Fails),
        (&[("TargetPortalGroupTag", "1")], reject),
        (&[("MaxConnections", "0")], reject),
        (&[("MaxConnections", "65535")], Value("1")),
        (&[("MaxConnections", "65536")], reject),
        (&[("MaxBurstLength", "511")], reject),
        (&[("MaxBurstLength", "512")], Value("512")),
        (&[("MaxBurstLength", "16777215")], Value("16776704")),
        (&[("MaxBurstLength", "16777216")], reject),
        (&[("FirstBurstLength", "511")], reject),
        (&[("FirstBurstLength", "512")], Value("512")),
        (&[("FirstBurstLength", "16777216")], reject),
        (&[("MaxBurstLength", "512"), ("FirstBurstLength", "65536")], Value("512")),
        (&[("FirstBurstLength", "65536"), ("MaxBurstLength", "512")], reject),
        (&[("FirstBurstLength", "65536"), ("MaxBurstLength", "65536")], Value("65536")),
        (&[("MaxOutstandingR2T", "0")], reject),
        (&[("MaxOutstandingR2T", "1")], Value("1")),
        (&[("MaxOutstandingR2T", "65535")], Value("8")),
        (&[("MaxOutstandingR2T", "65536")], reject),
        (&[("DefaultTime2Wait", "0")], Value("2")),
        (&[("DefaultTime2Wait", "3600")], Value("3600")),
        (&[("DefaultTime2Wait", "3601")], reject),
        (&[("DefaultTime2Retain", "3600")], Value("0")),
        (&[("DefaultTime2Retain", "3601")], reject),
        (&[("ErrorRecoveryLevel", "2")], Value("0")),
        (&[("ErrorRecoveryLevel", "3")], reject),
        (&[("iSCSIProtocolLevel", "31")], Value("1")),
        (&[("iSCSIProtocolLevel", "32")], reject),
        (&[("InitialR2T", "yes")], reject),
        (&[("InitialR2T", "No")], Value("No")),
        (&[("ImmediateData", "1")], reject),
        (&[("DataPDUInOrder", "No")], Value("Yes")),
        (&[("DataSequenceInOrder", "maybe")], reject),
        (&[("HeaderDigest", "MD5")], reject),
        (&[("HeaderDigest", "MD5,None")], Value("None")),
        (&[("TaskReporting", "FastAbort")], reject),
        (&[("SendTargets", "All")], reject),
        (&[("OFMarker", "No")], reject),
        (&[("ErrorRecoveryLevel", "0"), ("ErrorRecoveryLevel", "0")], Fails),
    ];
    for (requests, expect) in table {
        assert_eq!(propose(requests), *expect, "{requests:?}");
    }
}

#[test]
fn a_key_comes_once_in_a_text() {
    let twice =
        |key| has_key_twice(&parse(&text(&[(key, "1"), ("X-a", "1"), (key, "1")])).unwrap());
    assert!(twice("InitiatorName") && twice("MaxRecvDataSegmentLength") && twice("SendTargets"));
    assert!(!twice("X-b"), "each is answered as not understood");
}
