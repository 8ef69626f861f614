//! Data types, messages, keys and certificates. What OpenSSH has made is in `vectors`.

use aws_lc_rs::digest::{SHA256, SHA512, digest};
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base::random::SeededRandom;

use super::authorized::{AuthorizedKey, matches_list};
use super::cert::{Certificate, Kind};
use super::codec::{Malformed, Put, Reader};
use super::flow::{Flow, Overrun};
use super::host_key::{HostKey, KeyError};
use super::kex;
use super::key::{BadSignature, PublicKey, from_base64};
use super::message::{
    AuthRequest, InfoRequest, Message, Method, PkOk, channel_data, put_ext_info, put_info_response,
};

mod vectors;

/// RFC 4251, section 5, has these as examples (all that are not negative).
#[test]
fn numbers_of_any_size() {
    let cases: [(&[u8], &[u8]); 3] = [
        (&[], &[0, 0, 0, 0]),
        (
            &[0x09, 0xa3, 0x78, 0xf9, 0xb2, 0xe3, 0x32, 0xa7],
            &[0, 0, 0, 8, 0x09, 0xa3, 0x78, 0xf9, 0xb2, 0xe3, 0x32, 0xa7],
        ),
        (&[0x80], &[0, 0, 0, 2, 0, 0x80]),
    ];
    for (number, bytes) in cases {
        let mut out = Vec::new();
        out.put_mpint(&[&[0, 0], number].concat());
        assert_eq!(out, bytes);
        assert_eq!(Reader::new(bytes).mpint("n"), Ok(number));
    }
    // Negative ones, and such with needless zeros.
    for bytes in [&[0, 0, 0, 1, 0x80][..], &[0, 0, 0, 2, 0, 1], &[0, 0, 0, 1, 0]] {
        assert_eq!(Reader::new(bytes).mpint("n"), Err(Malformed::Value("n")));
    }
}

#[test]
fn lists_of_names() {
    let r = Reader::new(b"\x00\x00\x00\x09zlib,none");
    let names = r.clone().names("l").unwrap();
    assert_eq!(names.iter().collect::<Vec<_>>(), ["zlib", "none"]);
    assert!(names.has("none") && !names.has("non") && names.first() == Some("zlib"));
    assert_eq!(Reader::new(b"\x00\x00\x00\x01\xff").names("l"), Err(Malformed::Value("l")));
}

#[test]
fn keys_as_text() {
    for (text, bytes) in [("Zm9v\r\nYmE=\n", &b"fooba"[..]), ("Zm9vYmE==", b"fooba"), ("", b"")] {
        assert_eq!(from_base64(text).as_deref(), Some(bytes), "{text}");
    }
    for wrong in ["a", "=a", "Zm9v!", "Zg==Zg=="] {
        assert_eq!(from_base64(wrong), None, "{wrong}");
    }
}

fn round_trip(message: &Message<'_>) {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    assert_eq!(Message::decode(&bytes).as_ref(), Ok(message));
    // Nothing that is cut off is taken for whole, but for the language of a text, which some leave
    // out.
    use Message::{ChannelOpenFailure, Debug, Disconnect};
    let language = matches!(message, Disconnect { .. } | Debug { .. } | ChannelOpenFailure { .. });
    for cut in 1..bytes.len() - if language { 4 } else { 0 } {
        assert_ne!(Message::decode(&bytes[..cut]).as_ref(), Ok(message));
    }
}

/// One of each message, but for those that are put together by functions of their own.
fn each() -> Vec<Message<'static>> {
    let (recipient, data) = (7, b"data".as_slice());
    let request = |method| {
        Message::UserauthRequest(AuthRequest { user: "alice", service: "ssh-connection", method })
    };
    vec![
        Message::Disconnect { reason: 2, description: b"why" },
        Message::Ignore(data),
        Message::Unimplemented { sequence: 3 },
        Message::Debug { display: true, message: data },
        Message::ServiceRequest("ssh-userauth"),
        Message::ServiceAccept("ssh-userauth"),
        Message::NewKeys,
        Message::KexEcdhInit(data),
        Message::KexEcdhReply { host_key: b"k", share: b"s", signature: b"g" },
        request(Method::None),
        request(Method::Password { password: data, new: None }),
        request(Method::Password { password: data, new: Some(b"new") }),
        request(Method::PublicKey { algorithm: "a", key: data, signature: None }),
        request(Method::PublicKey { algorithm: "a", key: data, signature: Some(b"s") }),
        request(Method::KeyboardInteractive { language: b"", submethods: b"" }),
        request(Method::Other("hostbased")),
        Message::UserauthFailure { methods: super::codec::Names("a,b"), partial: true },
        Message::UserauthSuccess,
        Message::UserauthBanner { message: data, language: b"en" },
        Message::Userauth60(data),
        Message::GlobalRequest { name: "keepalive@openssh.com", want_reply: true, data },
        Message::RequestSuccess(data),
        Message::RequestFailure,
        Message::ChannelOpen { kind: "session", sender: 1, window: 2, packet_max: 3, data },
        Message::ChannelOpenConfirmation { recipient, sender: 1, window: 2, packet_max: 3 },
        Message::ChannelOpenFailure { recipient, reason: 1, description: data },
        Message::ChannelWindowAdjust { recipient, bytes: 9 },
        Message::ChannelData { recipient, data },
        Message::ChannelExtendedData { recipient, kind: 1, data },
        Message::ChannelEof { recipient },
        Message::ChannelClose { recipient },
        Message::ChannelRequest { recipient, kind: "subsystem", want_reply: true, data },
        Message::ChannelSuccess { recipient },
        Message::ChannelFailure { recipient },
        Message::Unknown(200),
    ]
}

/// Messages for the corpus.
pub(crate) fn examples() -> Vec<Vec<u8>> {
    let bytes = |message: Message<'_>| {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        bytes
    };
    each().into_iter().map(bytes).collect()
}

/// Keys, a certificate and a line for the corpus, each after the byte that selects it.
pub(crate) fn example_keys() -> Vec<Vec<u8>> {
    let keys = [
        vectors::ED25519_KEY,
        vectors::RSA_KEY,
        vectors::P256_KEY,
        vectors::P384_KEY,
        vectors::P521_KEY,
    ];
    let tagged =
        |which: u8, text: &str| [vec![which], from_base64(text).unwrap_or_default()].concat();
    let mut all: Vec<_> = keys.iter().map(|key| tagged(0, key)).collect();
    all.push(tagged(1, vectors::CERTIFICATE));
    let options = r#"from="10.0.0.*,!10.0.0.7",cert-authority,principals="a,b",expiry-time="2027""#;
    for options in ["", options] {
        let line = format!("{options} ssh-ed25519 {} alice@laptop", vectors::ED25519_KEY);
        all.push([b"\x02", line.as_bytes()].concat());
    }
    all
}

#[test]
fn messages_and_back() {
    each().iter().for_each(round_trip);
}

#[test]
fn messages_with_lists_and_back() {
    let mut bytes = Vec::new();
    put_ext_info(&mut bytes, &[("server-sig-algs", b"ssh-ed25519"), ("x", b"")]);
    let message = Message::decode(&bytes).unwrap();
    round_trip(&message);
    let Message::ExtInfo(list) = message else { panic!() };
    let pairs: Vec<_> = list.iter().collect();
    assert_eq!(pairs, [("server-sig-algs", b"ssh-ed25519".as_slice()), ("x", b"")]);
    bytes.clear();
    put_info_response(&mut bytes, &[b"secret", b""]);
    let Ok(Message::UserauthInfoResponse(list)) = Message::decode(&bytes) else { panic!() };
    assert_eq!(list.iter().collect::<Vec<_>>(), [b"secret".as_slice(), b""]);
    // A number of strings that are not there.
    assert!(Message::decode(&[61, 0xff, 0xff, 0xff, 0xff]).is_err());
    let question = InfoRequest { name: b"n", instruction: b"i", prompt: Some((b"P: ", false)) };
    bytes.clear();
    question.encode(&mut bytes);
    assert_eq!(InfoRequest::decode(&bytes[1..]), Ok(question));
    let ok = PkOk { algorithm: "a", key: b"k" };
    bytes.clear();
    ok.encode(&mut bytes);
    assert_eq!(PkOk::decode(&bytes[1..]), Ok(ok));
}

#[test]
fn the_short_way_to_data_is_the_same() {
    let mut bytes = Vec::new();
    Message::ChannelData { recipient: 258, data: b"abc" }.encode(&mut bytes);
    assert_eq!(channel_data(&bytes), Some((258, b"abc".as_slice())));
    bytes.push(0);
    assert_eq!(channel_data(&bytes), None);
    assert_eq!(channel_data(&bytes[..8]), None);
}

/// What `ssh-keygen -Y` signs (OpenSSH, PROTOCOL.sshsig), and the signature in the file.
fn sshsig(armoured: &str) -> (Vec<u8>, Vec<u8>) {
    let bytes = from_base64(armoured).unwrap();
    let mut r = Reader::new(bytes.strip_prefix(b"SSHSIG").unwrap());
    r.u32("version").unwrap();
    r.string("key").unwrap();
    let mut signed = b"SSHSIG".to_vec();
    signed.put_string(r.string("namespace").unwrap());
    signed.put_string(r.string("reserved").unwrap());
    let hash = r.string("hash").unwrap();
    assert_eq!(hash, b"sha512");
    signed.put_string(hash);
    signed.put_string(digest(&SHA512, b"message").as_ref());
    (signed, r.string("signature").unwrap().to_vec())
}

#[test]
fn signatures_of_openssh_fit() {
    for (key, signature, algorithm) in [
        (vectors::ED25519_KEY, vectors::ED25519_SIGNATURE, "ssh-ed25519"),
        (vectors::RSA_KEY, vectors::RSA_SIGNATURE, "rsa-sha2-512"),
        (vectors::P256_KEY, vectors::P256_SIGNATURE, "ecdsa-sha2-nistp256"),
        (vectors::P384_KEY, vectors::P384_SIGNATURE, "ecdsa-sha2-nistp384"),
        (vectors::P521_KEY, vectors::P521_SIGNATURE, "ecdsa-sha2-nistp521"),
    ] {
        let blob = from_base64(key).unwrap();
        let key = PublicKey::decode(&blob).unwrap();
        let mut again = Vec::new();
        key.encode(&mut again);
        assert_eq!(again, blob);
        let (mut message, signature) = sshsig(signature);
        assert_eq!(key.verify(algorithm, &message, &signature), Ok(()), "{algorithm}");
        assert_eq!(key.verify("ssh-rsa", &message, &signature), Err(BadSignature));
        for at in 0..signature.len() {
            let mut wrong = signature.clone();
            wrong[at] ^= 1;
            assert_eq!(key.verify(algorithm, &message, &wrong), Err(BadSignature), "{at}");
        }
        message[0] ^= 1;
        assert_eq!(key.verify(algorithm, &message, &signature), Err(BadSignature));
    }
}

#[test]
fn tokens_must_have_been_touched() {
    let pair = Ed25519KeyPair::from_seed_unchecked(&[5; 32]).unwrap();
    let key = PublicKey::SkEd25519(pair.public_key().as_ref(), b"ssh:");
    for flags in [0u8, 1, 5] {
        let mut signed = digest(&SHA256, b"ssh:").as_ref().to_vec();
        signed.put_byte(flags);
        signed.put_u32(9);
        signed.put_raw(digest(&SHA256, b"message").as_ref());
        let mut signature = Vec::new();
        signature.put_string(key.kind().as_bytes());
        signature.put_string(pair.sign(&signed).as_ref());
        signature.put_byte(flags);
        signature.put_u32(9);
        let verified = key.verify(key.kind(), b"message", &signature);
        assert_eq!(verified.is_ok(), flags & 1 == 1, "{flags}");
        assert!(key.verify(key.kind(), b"massage", &signature).is_err());
    }
}

#[test]
fn a_certificate_of_openssh_is_read_and_checked() {
    let blob = from_base64(vectors::CERTIFICATE).unwrap();
    let certificate = Certificate::decode(&blob).unwrap();
    assert_eq!((certificate.kind, certificate.serial), (Kind::User, 42));
    assert_eq!(certificate.id, b"alice's laptop");
    assert_eq!(certificate.principals, ["alice", "bob"]);
    assert_eq!(certificate.authority, from_base64(vectors::AUTHORITY).unwrap());
    let (name, value) = certificate.critical[0];
    assert_eq!(name, "source-address");
    assert_eq!(Reader::new(value).text("v"), Ok("10.0.0.0/8,192.168.1.1"));
    let [from, until] = [1_767_225_600, 1_798_761_600];
    assert!(certificate.is_current(from) && certificate.is_current(until - 1));
    assert!(!certificate.is_current(from - 1) && !certificate.is_current(until));
    assert_eq!(certificate.check(), Ok(()));
    // Whatever is changed, it does not fit any more, or cannot be read.
    for at in 0..blob.len() {
        let mut wrong = blob.clone();
        wrong[at] ^= 1;
        assert!(
            Certificate::decode(&wrong).is_err()
                || Certificate::decode(&wrong).unwrap().check().is_err()
        );
    }
}

#[test]
fn lines_of_authorized_keys() {
    let plain = format!("ssh-ed25519 {} alice@laptop of hers", vectors::ED25519_KEY);
    let key = AuthorizedKey::parse(&plain).unwrap();
    assert_eq!(key.comment, "alice@laptop of hers");
    assert_eq!(key.blob, from_base64(vectors::ED25519_KEY).unwrap());
    let line = format!(
        "restrict,from=\"10.0.0.*,!10.0.0.7\",cert-authority,principals=\"a b,c\",\
         expiry-time=\"20270101\",command=\"say \\\"hi, you\\\"\"\tssh-ed25519   {} x",
        vectors::ED25519_KEY
    );
    let key = AuthorizedKey::parse(&line).unwrap();
    assert!(key.authority && key.command);
    assert_eq!(key.from.as_deref(), Some("10.0.0.*,!10.0.0.7"));
    assert_eq!(key.principals.as_deref(), Some("a b,c"));
    assert_eq!(key.expiry.as_deref(), Some("20270101"));
    for wrong in [
        "",
        "# a comment",
        "ssh-ed25519",
        "ssh-ed25519 !!!!",
        "verify-required ssh-ed25519 AAAA",
        &plain.replace("ssh-ed25519 ", "ssh-rsa "),
        &format!("from=10.0.0.1 {plain}"),
    ] {
        assert_eq!(AuthorizedKey::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn patterns_of_addresses() {
    for (text, list, expected) in [
        ("10.0.0.1", "10.0.0.*", true),
        ("10.0.0.1", "*", true),
        ("10.0.0.1", "!10.0.0.1,*", false),
        ("10.0.0.1", "!10.0.0.2", false),
        ("host.lab", "*.lab,x", true),
        ("host.lab", "h?st.lab", true),
        ("host.lab", "h?t.lab", false),
        ("", "", true),
        ("aaaaaaaaaaaaaaaaaaaaaaaaaaaaab", "*a*a*a*a*a*a*a*a*c", false),
    ] {
        assert_eq!(matches_list(text, list), expected, "{text} {list}");
    }
}

#[test]
fn host_keys_are_kept_and_sign() {
    let key = HostKey::new_ed25519(&mut SeededRandom::new(1)).unwrap();
    let again = HostKey::from_pem(&key.to_pem().unwrap()).unwrap();
    assert_eq!(key.blob(), again.blob());
    assert!(key.fingerprint().starts_with("SHA256:") && key.fingerprint().len() == 50);
    assert!(key.public_line().starts_with("ssh-ed25519 AAAA"));
    let rsa = HostKey::new_rsa().unwrap();
    let rsa = HostKey::from_pem(&rsa.to_pem().unwrap()).unwrap();
    for (key, algorithm) in
        [(&again, "ssh-ed25519"), (&rsa, "rsa-sha2-256"), (&rsa, "rsa-sha2-512")]
    {
        let signature = key.sign(algorithm, b"message").unwrap();
        let public = PublicKey::decode(key.blob()).unwrap();
        assert_eq!(public.verify(algorithm, b"message", &signature), Ok(()));
        assert_eq!(key.sign("ssh-rsa", b"message"), Err(KeyError::Library));
    }
    assert_eq!(HostKey::from_pem("nothing").unwrap_err(), KeyError::Format);
}

/// RFC 7748, section 6.1, has the points of small order that give nothing but zeros.
#[test]
fn shares_that_are_none_are_refused() {
    for method in kex::Method::ALL {
        assert!(kex::respond(method, &[]).is_err());
        assert!(kex::respond(method, &[9; 31]).is_err());
        let asked = kex::initiate(method).unwrap();
        let mut share = asked.share.clone();
        let end = share.len();
        share[end - 32..].fill(0);
        assert!(kex::respond(method, &share).is_err(), "{method:?}");
        let (answer, _) = kex::respond(method, &asked.share).unwrap();
        assert!(asked.finish(&answer[1..]).is_err());
    }
    // Coefficients of a key that are no coefficients (FIPS 203, section 7.2).
    let mut share = kex::initiate(kex::Method::Mlkem768X25519).unwrap().share;
    share[..1152].fill(0xff);
    assert!(kex::respond(kex::Method::Mlkem768X25519, &share).is_err());
}

#[test]
fn windows_are_kept() {
    let mut flow = Flow::new(1000);
    flow.opened(500, 100);
    assert_eq!((flow.sendable(), flow.window()), (100, 500));
    flow.sent(450);
    assert_eq!(flow.sendable(), 50);
    assert_eq!(flow.adjusted(u32::MAX - 50), Ok(()));
    assert_eq!(flow.adjusted(1), Err(Overrun::Window));
    assert_eq!(flow.received(1000), Ok(()));
    assert_eq!(flow.received(1), Err(Overrun::Data));
    assert_eq!(flow.taken(249), None);
    assert_eq!(flow.taken(1), Some(250));
    assert_eq!(flow.received(250), Ok(()));
    assert_eq!(flow.received(1), Err(Overrun::Data));
}
