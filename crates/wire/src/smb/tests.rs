//! Sign-in by the example of MS-NLMP §4.2, text, times, patterns, and round trips of messages.

use super::codec::SmbError;
use super::contexts::Context;
use super::create::{CloseRequest, Facts, FileId, access};
use super::dir::{Entries, Entry, Level, Pattern};
use super::header::{Command, Header, Messages};
use super::negotiate::{Contexts, Dialect};
use super::ntlm::{self, Authenticate, Challenge, negotiate as flags};
use super::rpc::{Association, Server, ShareInfo};
use super::security::{Ace, Descriptor, mode_of};
use super::sid::Sid;
use super::*;

fn hex(text: &str) -> Vec<u8> {
    let text: String = text.split_whitespace().collect();
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

// --- NTLM ----------------------------------------------------------------------------------------

const CHALLENGE: [u8; 8] = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef];

/// MS-NLMP §4.2.1 and §4.2.4.
#[test]
fn ntlm_version_2_of_the_specification() {
    let nt_hash = ntlm::nt_hash("Password");
    assert_eq!(nt_hash[..], hex("a4f49c406510bdcab6824ee7c30fd852"));
    let ntowf = ntlm::ntowf_v2(&nt_hash, "User", "Domain");
    assert_eq!(ntowf[..], hex("0c868a403bfd7a93a3001ef22ef02e3f"));
    let info = hex("02000c0044006f006d00610069006e0001000c005300650072007600650072000000 0000");
    let (response, base) = ntlm::respond(&ntowf, &CHALLENGE, (&[0xaa; 8], 0, &info));
    assert_eq!(response[..16], hex("68cd0ab851e51c96aabc927bebef6a1c"));
    assert_eq!(base[..], hex("8de40ccadbc14a82f15cb0ad0de95ca3"));
    assert_eq!(ntlm::verify(&ntowf, &CHALLENGE, &response), Some(base));
    let mut key = [0x55; 16];
    crypto::rc4::Rc4::new(&base).apply(&mut key);
    assert_eq!(key[..], hex("c5dad2544fc9799094ce1ce90bc9d03e"));
    let auth = Authenticate {
        lm: &[],
        nt: &response,
        domain: &[],
        user: &[],
        workstation: &[],
        session_key: &key,
        flags: flags::KEY_EXCHANGE,
        mic: None,
    };
    assert_eq!(ntlm::session_key(base, &auth), Ok([0x55; 16]));
}

#[test]
fn a_wrong_password_and_version_1_prove_nothing() {
    let right = ntlm::ntowf_v2(&ntlm::nt_hash("Password"), "User", "Domain");
    let wrong = ntlm::ntowf_v2(&ntlm::nt_hash("password"), "User", "Domain");
    let (response, _) = ntlm::respond(&wrong, &CHALLENGE, (&[1; 8], 0, &[0; 4]));
    assert_eq!(ntlm::verify(&right, &CHALLENGE, &response), None);
    for short in [0, 15, 16, 24] {
        assert_eq!(ntlm::verify(&right, &CHALLENGE, &[0; 24][..short]), None);
        assert!(ntlm::response_facts(&[0; 24][..short]).is_err());
    }
}

#[test]
fn ntlm_messages_round_trip() {
    let challenge = Challenge::new(flags::SIGN | flags::KEY_EXCHANGE, CHALLENGE, "host", 42);
    assert_eq!(Challenge::decode(&challenge.encode()), Ok(challenge.clone()));
    let (response, _) = ntlm::respond(&[7; 16], &CHALLENGE, (&[1; 8], 5, &challenge.info));
    assert_eq!(ntlm::response_facts(&response).unwrap().time, 5);
    let user = utf16::encode("Alice");
    let auth = Authenticate {
        lm: &[0; 24],
        nt: &response,
        domain: &[],
        user: &user,
        workstation: &[],
        session_key: &[9; 16],
        flags: flags::UNICODE,
        mic: Some([3; 16]),
    };
    let message = auth.encode();
    let decoded = Authenticate::decode(&message).unwrap();
    assert_eq!(decoded, auth);
    assert_eq!(decoded.text(decoded.user).unwrap(), "Alice");
    let mic = ntlm::mic(&[1; 16], b"one", b"two", &message);
    let zero = Authenticate { mic: None, ..auth }.encode();
    assert_eq!(ntlm::mic(&[1; 16], b"one", b"two", &zero), mic);
}

#[test]
fn spnego_round_trip() {
    let offer = spnego::offer();
    let token = spnego::client(&offer).unwrap();
    assert!(token.prefers_ntlm && token.token.is_none());
    let begin = spnego::begin(b"NTLMSSP\0one");
    let token = spnego::client(&begin).unwrap();
    assert_eq!(token.token, Some(&b"NTLMSSP\0one"[..]));
    assert_eq!(token.mechanisms, Some(&spnego::own_mechanisms()[..]));
    let later = spnego::next_token(&[5; 300], Some(&[6; 16]));
    let token = spnego::client(&later).unwrap();
    assert_eq!((token.token, token.mic), (Some(&[5; 300][..]), Some(&[6; 16][..])));
    let answer = spnego::answer(spnego::NegState::Completed, true, None, Some(&[8; 16]));
    assert_eq!(spnego::answered(&answer).unwrap().mic, Some(&[8; 16][..]));
    for cut in 0..later.len() {
        assert!(spnego::client(&later[..cut]).is_err());
    }
}

// --- names and times -----------------------------------------------------------------------------

#[test]
fn names_round_trip() {
    for name in [
        &b"plain.txt"[..],
        b"a:b*c?d\"e<f>g|h",
        b"end.",
        b"end ",
        b".hidden",
        b"\x01\x1f",
        "größe €😀".as_bytes(),
        // A surrogate that stands alone.
        b"\xed\xa0\xbd!",
    ] {
        let mut sent = Vec::new();
        utf16::encode_name(name, &mut sent);
        assert_eq!(utf16::decode_name(&sent).unwrap(), name, "{name:?}");
    }
    let mut sent = Vec::new();
    utf16::encode_name(b"a:b", &mut sent);
    assert_eq!(sent, [0x61, 0, 0x22, 0xf0, 0x62, 0]);
    assert!(utf16::decode_name(&[0x61]).is_err());
    assert_eq!(utf16::decode_name(&[0x26, 0xf0]).unwrap(), b"\\");
}

#[test]
fn times_round_trip() {
    assert_eq!(time::from_unix(0, 0), 116_444_736_000_000_000);
    for (sec, nsec) in [(0, 0), (1_700_000_000, 123_456_700), (-11_644_473_600, 0)] {
        assert_eq!(time::to_unix(time::from_unix(sec, nsec)), (sec, nsec));
    }
    assert_eq!(time::from_unix(i64::MIN, 0), 0);
    assert_eq!(time::to_unix(u64::MAX), time::to_unix(i64::MAX as u64));
}

#[test]
fn patterns_match_as_in_windows() {
    let matches = |pattern: &str, name: &str| {
        Pattern::decode(&utf16::encode(pattern)).unwrap().matches(&utf16::encode(name))
    };
    for (pattern, name, expected) in [
        ("*", "anything", true),
        ("*.TXT", "a.txt", true),
        ("*.txt", "a.txt.bak", false),
        ("a?c", "abc", true),
        ("a?c", "ac", false),
        ("Größe", "größe", true),
        // What Windows makes of `*.` and of `?` at the end of `*.?`.
        ("<", "noext", true),
        ("<.x", "a.b.x", true),
        ("<\"txt", "a.txt", true),
        ("<\"*", "noext", true),
        ("<.*", "a.b.c", true),
        (">>>.txt", "a.txt", true),
        (">>>.txt", "abcd.txt", false),
        ("", "x", false),
        ("**", "", true),
    ] {
        assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
    }
}

// --- messages ------------------------------------------------------------------------------------

fn header(command: Command) -> Vec<u8> {
    let header = Header {
        credit_charge: 1,
        status: 0,
        command,
        credits: 2,
        flags: 0,
        next: 0,
        message_id: 3,
        id: 4 << 32,
        session_id: 5,
        signature: [6; 16],
    };
    let mut message = Vec::new();
    codec::Field::put(&header, &mut message);
    assert_eq!(Header::decode(&message), Ok(header));
    message
}

const FACTS: Facts = Facts {
    created: 1,
    accessed: 2,
    written: 3,
    changed: 4,
    allocation: 4096,
    size: 6,
    attributes: 0x20,
};
const FILE: FileId = FileId { persistent: 1, volatile: 2 };

#[test]
fn negotiation_round_trip() {
    let contexts =
        Contexts { salt: Some(vec![7; 32]), ciphers: Some(vec![2, 1]), signings: Some(vec![2, 1]) };
    let request = negotiate::Request {
        security_mode: 1,
        capabilities: 0x7f,
        client_guid: [3; 16],
        dialects: vec![Dialect::SMB210, Dialect::SMB311],
        contexts: contexts.clone(),
    };
    let mut message = header(Command::NEGOTIATE);
    request.put(&mut message, 0);
    assert_eq!(negotiate::Request::decode(&message), Ok(request));
    let response = negotiate::Response {
        security_mode: 3,
        dialect: Dialect::SMB311,
        server_guid: [4; 16],
        capabilities: 4,
        max_transact: 5,
        max_read: 6,
        max_write: 7,
        system_time: 8,
        blob: spnego::offer(),
        contexts,
    };
    let mut message = header(Command::NEGOTIATE);
    response.put(&mut message, 0);
    assert_eq!(negotiate::Response::decode(&message), Ok(response));
    for cut in 64..message.len() {
        assert!(negotiate::Response::decode(&message[..cut]).is_err());
    }
}

#[test]
fn create_round_trip() {
    let mut contexts = Vec::new();
    let list = [
        Context { name: contexts::MAXIMAL_ACCESS, data: &[] },
        Context { name: contexts::ON_DISK_ID, data: &[1, 2, 3] },
    ];
    contexts::put(&list, &mut contexts);
    assert_eq!(contexts::decode(&contexts), Ok(list.to_vec()));
    let name = utf16::encode("a\\b");
    let request = create::Request {
        oplock: 0,
        impersonation: 2,
        access: create::access::GENERIC_READ,
        attributes: 0,
        share: 7,
        disposition: 1,
        options: 0,
        name: &name,
        contexts: &contexts,
    };
    let mut message = header(Command::CREATE);
    request.put(&mut message, 0);
    assert_eq!(create::Request::decode(&message), Ok(request));
    let response =
        create::Response { oplock: 0, action: 1, facts: FACTS, file: FILE, contexts: &contexts };
    let mut message = header(Command::CREATE);
    response.put(&mut message);
    assert_eq!(create::Response::decode(&message), Ok(response));
    let close = CloseRequest { flags: 1, reserved: 0, file: FILE };
    let mut message = header(Command::CLOSE);
    close.put_body(&mut message);
    assert_eq!(CloseRequest::decode(&message), Ok(close));
}

#[test]
fn data_round_trip() {
    let write = io::WriteRequest { offset: 9, file: FILE, flags: 1, data: &[1, 2, 3] };
    let mut message = header(Command::WRITE);
    write.put(&mut message);
    assert_eq!(io::WriteRequest::decode(&message), Ok(write));
    let read = io::ReadRequest { length: 5, offset: 6, file: FILE, minimum: 0 };
    let mut message = header(Command::READ);
    read.put(&mut message);
    assert_eq!(io::ReadRequest::decode(&message), Ok(read));
    let mut message = header(Command::READ);
    io::put_read_head(&mut message, 3);
    message.extend_from_slice(b"abc");
    assert_eq!(io::read_data(&message), Ok(&b"abc"[..]));
    message.pop();
    assert_eq!(io::read_data(&message), Err(SmbError::Short("READ response")));
}

#[test]
fn listings_round_trip() {
    for level in
        [Level::Directory, Level::Full, Level::Both, Level::Names, Level::IdBoth, Level::IdFull]
    {
        let names = ["a", "longer", "Übel"];
        let mut entries = Entries::new(level, 1000);
        let has_facts = level != Level::Names;
        let none = Facts::default();
        let has_id = matches!(level, Level::IdBoth | Level::IdFull);
        let of = |name: &&str| Entry {
            facts: if has_facts { FACTS } else { none },
            fileid: if has_id { 77 } else { 0 },
            name: utf16::encode(name),
        };
        let all: Vec<_> = names.iter().map(of).collect();
        assert!(all.iter().all(|entry| entries.add(entry)));
        let bytes = entries.finish();
        assert_eq!(dir::entries(level, &bytes), Ok(all.clone()), "{level:?}");
        let mut few = Entries::new(level, bytes.len() - 1);
        assert!(few.add(&all[0]) && few.add(&all[1]) && !few.add(&all[2]));
        assert_eq!(dir::entries(level, &few.finish()), Ok(all[..2].to_vec()));
    }
}

#[test]
fn descriptors_round_trip() {
    let descriptor = Descriptor::of_mode(1000, 100, 0o754, false);
    let mut bytes = Vec::new();
    descriptor.put(&mut bytes);
    assert_eq!(Descriptor::decode(&bytes), Ok(descriptor.clone()));
    assert_eq!(descriptor.owner.unwrap().to_string(), "S-1-22-1-1000");
    for cut in 0..bytes.len() {
        assert!(Descriptor::decode(&bytes[..cut]).is_err());
    }
}

#[test]
fn compounds_are_cut() {
    let mut frame = header(Command::ECHO);
    frame.extend_from_slice(&[4, 0, 0, 0, 0, 0, 0, 0]);
    let next = frame.len() as u32;
    codec::patch(&mut frame, 20, &next.to_le_bytes());
    frame.extend(header(Command::CLOSE));
    let commands: Vec<_> =
        Messages::new(&frame).map(|one| one.map(|(head, _)| head.command)).collect();
    assert_eq!(commands, [Ok(Command::ECHO), Ok(Command::CLOSE)]);
    codec::patch(&mut frame, 20, &8u32.to_le_bytes());
    assert!(Messages::new(&frame).any(|one| one.is_err()));
}

#[test]
fn shares_are_listed_in_pieces() {
    let share = |number: u32| ShareInfo {
        name: format!("share{number}"),
        kind: 0,
        remark: "something".repeat(number as usize % 5),
    };
    let server = Server { name: "host".into(), shares: (0..300).map(share).collect() };
    let mut pipe = Association::default();
    let bound = pipe.answer(&rpc::bind(1), &server).unwrap();
    assert_eq!(bound[2], 12);
    let answer = pipe.answer(&rpc::list_shares(2, "\\\\host"), &server).unwrap();
    assert!(answer.len() > 3 * base::limits::SMB_RPC_FRAGMENT);
    assert_eq!(rpc::shares(&answer), Ok(server.shares));
}

#[test]
fn permissions_that_a_list_comes_to() {
    let ace = |kind, mask, sid| Ace { kind, flags: 0, mask, sid };
    let (uid, gid) = (1_000, 100);
    let owner = || Sid::user(uid);
    // What Windows calls full control, of the owner alone.
    let private = [ace(0, access::ALL, owner())];
    assert_eq!(mode_of(&private, uid, gid), Some(0o700));
    let generic = [ace(0, access::GENERIC_READ, Sid::world()), ace(0, access::ALL, owner())];
    assert_eq!(mode_of(&generic, uid, gid), Some(0o744));
    // A first entry that denies takes precedence over later ones.
    let denied = [ace(1, access::WRITE_DATA, Sid::group(gid)), ace(0, access::ALL, Sid::world())];
    assert_eq!(mode_of(&denied, uid, gid), Some(0o757));
    let system = Sid::new(5, &[18]);
    assert_eq!(mode_of(&[ace(0, access::ALL, system)], uid, gid), Some(0));
    // A mode cannot represent other users.
    assert_eq!(mode_of(&[ace(0, access::READ, Sid::user(7))], uid, gid), None);
    for mode in [0o700, 0o750, 0o644, 0o664, 0o755] {
        let dacl = Descriptor::of_mode(uid, gid, mode, false).dacl.expect("a list");
        assert_eq!(mode_of(&dacl, uid, gid), Some(mode), "{mode:o}");
    }
}

#[test]
fn names_of_contexts_have_four_bytes() {
    let mut bytes = Vec::new();
    contexts::put(&[Context { name: b"FooO", data: &[] }], &mut bytes);
    assert!(contexts::decode(&bytes).is_ok());
    let mut bytes = Vec::new();
    contexts::put(&[Context { name: b"Foo", data: &[] }], &mut bytes);
    assert!(contexts::decode(&bytes).is_err());
}
