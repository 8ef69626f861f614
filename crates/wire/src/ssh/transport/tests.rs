//! Both sides against each other, in any pieces, and what an attacker on the way may try.

use std::sync::Arc;

use base::random::{Random, SeededRandom};

use super::super::host_key::HostKey;
use super::super::kex::{Method, Policy};
use super::super::message::{Message, channel_data};
use super::super::packet::{Cipher, Mac};
use super::*;

pub(crate) fn setups(policy: Policy) -> (Side, Side) {
    let key = HostKey::new_ed25519(&mut SeededRandom::new(7)).unwrap();
    let blob = key.blob().to_vec();
    let server = ServerSetup {
        software: "Test_1".into(),
        policy: policy.clone(),
        host_keys: vec![Arc::new(key)],
    };
    let client = ClientSetup { software: "Client_1".into(), policy, host_key: Some(blob) };
    (Side::Server(Arc::new(server)), Side::Client(Arc::new(client)))
}

fn only(method: Method, cipher: Cipher, mac: Mac) -> Policy {
    Policy { kex: vec![method], ciphers: vec![cipher], macs: vec![mac] }
}

/// One end: its transport, and what it has received and not yet looked at.
struct End {
    transport: Transport,
    input: Vec<u8>,
    messages: Vec<Vec<u8>>,
}

impl End {
    fn new(side: Side, seed: u64) -> Self {
        let transport = Transport::new(side, Box::new(SeededRandom::new(seed))).unwrap();
        Self { transport, input: Vec::new(), messages: Vec::new() }
    }

    fn take_output(&mut self) -> Vec<u8> {
        let bytes = self.transport.output().unwrap().to_vec();
        self.transport.sent(bytes.len());
        bytes
    }

    /// Takes `bytes` in pieces of random sizes.
    fn feed(&mut self, bytes: &[u8], random: &mut dyn Random) -> Result<(), Error> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let most = if random.below(4) == 0 { 3 } else { 40_000 };
            let n = (1 + random.below(most) as usize).min(rest.len());
            let (piece, later) = rest.split_at(n);
            self.input.extend_from_slice(piece);
            rest = later;
            self.look()?;
        }
        Ok(())
    }

    fn look(&mut self) -> Result<(), Error> {
        let mut at = 0;
        loop {
            match self.transport.receive(&mut self.input[at..])? {
                Received::Need(n) => {
                    assert!(n > self.input.len() - at);
                    break;
                }
                Received::Handled(n) => at += n,
                Received::Packet(n, payload) => {
                    self.messages.push(payload.to_vec());
                    at += n;
                }
            }
        }
        self.input.drain(..at);
        Ok(())
    }
}

/// Carries bytes to and fro until neither has any left.
fn settle(a: &mut End, b: &mut End, random: &mut dyn Random) -> Result<(), Error> {
    loop {
        let (from_a, from_b) = (a.take_output(), b.take_output());
        if from_a.is_empty() && from_b.is_empty() {
            return Ok(());
        }
        b.feed(&from_a, random)?;
        a.feed(&from_b, random)?;
    }
}

fn connected(policy: Policy, seed: u64) -> (End, End, SeededRandom) {
    let (server, client) = setups(policy);
    let (mut server, mut client) = (End::new(server, seed), End::new(client, seed + 1));
    let mut random = SeededRandom::new(seed + 2);
    settle(&mut server, &mut client, &mut random).unwrap();
    assert!(server.transport.may_send_data() && client.transport.may_send_data());
    assert_eq!(server.transport.session(), client.transport.session());
    (server, client, random)
}

#[test]
fn every_cipher_carries_every_size_in_any_pieces() {
    for (i, cipher) in Cipher::ALL.into_iter().enumerate() {
        for mac in Mac::ALL {
            if cipher.is_aead() && mac != Mac::Sha256Etm {
                continue;
            }
            let method = Method::ALL[i % Method::ALL.len()];
            let (mut server, mut client, mut random) =
                connected(only(method, cipher, mac), 100 + i as u64);
            // The server's EXT_INFO is there first.
            assert!(matches!(Message::decode(&client.messages[0]), Ok(Message::ExtInfo(_))));
            client.messages.clear();
            for size in (0..70).chain([1000, 32_768, 65_535, 200_000]) {
                let data: Vec<u8> = (0..size).map(|i| (i * 7) as u8).collect();
                let message = Message::GlobalRequest { name: "x", want_reply: true, data: &data };
                client.transport.send_message(&message).unwrap();
                server.transport.send_message(&message).unwrap();
                settle(&mut server, &mut client, &mut random).unwrap();
                for end in [&mut server, &mut client] {
                    let got = end.messages.pop().unwrap();
                    assert_eq!(Message::decode(&got), Ok(message), "{cipher:?} {mac:?} {size}");
                    assert!(end.messages.is_empty());
                }
            }
        }
    }
}

#[test]
fn data_fills_packets_and_arrives_in_order() {
    let (mut server, mut client, mut random) = connected(Policy::modern(), 1);
    client.messages.clear();
    let mut all = Vec::new();
    for i in 0..200u32 {
        let piece = vec![i as u8; (i * 37 % 5000) as usize];
        server.transport.send_data(3, 4096, &piece).unwrap();
        all.extend_from_slice(&piece);
    }
    settle(&mut server, &mut client, &mut random).unwrap();
    let packets: Vec<_> = client.messages.iter().map(|m| channel_data(m).unwrap()).collect();
    assert!(packets.iter().all(|(recipient, _)| *recipient == 3));
    let full = packets.iter().filter(|(_, data)| data.len() == 4096).count();
    assert_eq!(full, packets.len() - 1, "only the last packet is not full");
    let got: Vec<u8> = packets.iter().flat_map(|(_, data)| data.iter().copied()).collect();
    assert!(got == all);
}

#[test]
fn keys_are_renewed_while_data_flows() {
    for by_server in [true, false] {
        let (mut server, mut client, mut random) = connected(Policy::modern(), 5);
        let before = *server.transport.session().unwrap();
        client.messages.clear();
        for round in 0..20u32 {
            let ender = if by_server { &mut server } else { &mut client };
            if round % 5 == 2 {
                ender.transport.renew_now().unwrap();
                assert!(!ender.transport.may_send_data());
            }
            // What is sent meanwhile waits, and nothing is lost.
            for end in [&mut server, &mut client] {
                let data = round.to_be_bytes();
                let message = Message::GlobalRequest { name: "n", want_reply: false, data: &data };
                end.transport.send_message(&message).unwrap();
            }
            settle(&mut server, &mut client, &mut random).unwrap();
        }
        for end in [&mut server, &mut client] {
            let rounds: Vec<u32> = end.messages.iter().map(|m| number_in(m)).collect();
            assert_eq!(rounds, (0..20).collect::<Vec<_>>());
            assert_eq!(*end.transport.session().unwrap(), before, "the session keeps its name");
            assert!(!end.transport.is_exchanging());
        }
    }
}

fn number_in(message: &[u8]) -> u32 {
    match Message::decode(message).unwrap() {
        Message::GlobalRequest { data, .. } => u32::from_be_bytes(data.try_into().unwrap()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn keys_are_renewed_by_time_and_by_bytes() {
    let (mut server, mut client, mut random) = connected(Policy::modern(), 6);
    server.transport.renew(10).unwrap();
    server.transport.renew(10 + SSH_REKEY_TIME.as_nanos() as u64 - 1).unwrap();
    assert!(!server.transport.is_exchanging());
    server.transport.renew(10 + SSH_REKEY_TIME.as_nanos() as u64).unwrap();
    assert!(server.transport.is_exchanging());
    settle(&mut server, &mut client, &mut random).unwrap();
    assert!(!server.transport.is_exchanging());
    server.transport.opener.used.1 = Cipher::Aes128Gcm.bytes_max();
    server.transport.renew(11).unwrap();
    assert!(server.transport.is_exchanging());
}

#[test]
fn a_changed_byte_ends_the_connection() {
    for cipher in Cipher::ALL {
        for mac in [Mac::Sha256Etm, Mac::Sha512] {
            for at in 0..60 {
                let policy = only(Method::Curve25519, cipher, mac);
                let (mut server, mut client, mut random) = connected(policy, 9);
                for _ in 0..2 {
                    let message = Message::GlobalRequest { name: "x", want_reply: true, data: b"" };
                    client.transport.send_message(&message).unwrap();
                }
                let mut bytes = client.take_output();
                let Some(byte) = bytes.get_mut(at) else { continue };
                *byte ^= 1 << (at % 8);
                // A length that was made larger waits for bytes; then the packet does not fit.
                bytes.extend(std::iter::repeat_n(0, SSH_PACKET));
                server.feed(&bytes, &mut random).unwrap_err();
                assert!(server.messages.len() < 2, "{cipher:?} {at}");
            }
        }
    }
}

const SSH_PACKET: usize = base::limits::SSH_PACKET_MAX + 128;

/// Two ends with their first bytes not delivered yet.
fn beginning() -> (End, End, SeededRandom) {
    let (server, client) = setups(Policy::modern());
    (End::new(server, 1), End::new(client, 2), SeededRandom::new(3))
}

/// A packet before there are keys.
fn plain(payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let start = super::super::packet::Sealer::begin(&mut out);
    out.extend_from_slice(payload);
    super::super::packet::Sealer::plain().finish(&mut out, start).unwrap();
    out
}

/// Terrapin (CVE-2023-48795): a packet inserted before there are keys, and one removed after.
#[test]
fn nothing_can_be_put_into_the_first_exchange() {
    let ignore = plain(&[2, 0, 0, 0, 0]);
    // Between the version and KEXINIT.
    let (mut server, mut client, mut random) = beginning();
    let bytes = client.take_output();
    let line = bytes.iter().position(|b| *b == b'\n').unwrap() + 1;
    let changed = [&bytes[..line], &ignore, &bytes[line..]].concat();
    let error = server.feed(&changed, &mut random).unwrap_err();
    assert_eq!(error, Error::Protocol("unexpected message before the first KEXINIT"));
    // After KEXINIT.
    let (mut server, mut client, mut random) = beginning();
    server.feed(&client.take_output(), &mut random).unwrap();
    let error = server.feed(&ignore, &mut random).unwrap_err();
    assert!(matches!(error, Error::Protocol(_)), "{error}");
    // Sequence numbers restart with the keys, so that the removed packet is detected.
    let (server, client, _) = connected(Policy::modern(), 3);
    assert_eq!(client.transport.opener.sequence, 1, "EXT_INFO is packet 0");
    assert_eq!(server.transport.opener.sequence, 0);
}

#[test]
fn a_changed_list_of_algorithms_is_noticed() {
    let (mut server, mut client, mut random) = beginning();
    let bytes = client.take_output();
    let wanted = b"mlkem768x25519-sha256,";
    let at = bytes.windows(wanted.len()).position(|w| w == wanted).unwrap();
    let mut changed = bytes.clone();
    changed[at] = b'M';
    server.feed(&changed, &mut random).unwrap();
    let error = settle(&mut server, &mut client, &mut random).unwrap_err();
    assert!(matches!(error, Error::KeyExchange | Error::HostKey(_)), "{error}");
}

#[test]
fn an_unknown_host_key_is_refused() {
    let (server, _) = setups(Policy::modern());
    let other = HostKey::new_ed25519(&mut SeededRandom::new(8)).unwrap();
    let setup = ClientSetup {
        software: "C".into(),
        policy: Policy::modern(),
        host_key: Some(other.blob().to_vec()),
    };
    let (mut server, mut client) =
        (End::new(server, 1), End::new(Side::Client(Arc::new(setup)), 2));
    let error = settle(&mut server, &mut client, &mut SeededRandom::new(3)).unwrap_err();
    assert!(matches!(error, Error::HostKey(_)), "{error}");
}

#[test]
fn messages_out_of_turn_end_the_connection() {
    let mut init = Vec::new();
    let message =
        Message::ChannelOpen { kind: "session", sender: 0, window: 1, packet_max: 1, data: b"" };
    message.encode(&mut init);
    for payload in [&init[..], &[21], &[5, 0, 0, 0, 0], &[50], &[30, 0, 0, 0, 0], &[6]] {
        let (mut server, mut client, mut random) = beginning();
        let bytes = client.take_output();
        let line = bytes.iter().position(|b| *b == b'\n').unwrap() + 1;
        server.feed(&bytes[..line], &mut random).unwrap();
        server.feed(&plain(payload), &mut random).unwrap_err();
    }
}

#[test]
fn a_wrong_guess_is_passed_over() {
    // A client that guesses sends its share at once; when the guess is wrong it sends another.
    let (mut server, mut client, mut random) = beginning();
    let bytes = client.take_output();
    let line = bytes.iter().position(|b| *b == b'\n').unwrap() + 1;
    let ours = client.transport.exchange.as_ref().unwrap().ours.clone();
    let Message::KexInit(init) = Message::decode(&ours).unwrap() else { panic!() };
    let kex = format!("curve25519-sha256,{}", init.kex.0);
    let init = super::super::message::KexInit {
        kex: super::super::codec::Names(&kex),
        follows: true,
        ..init
    };
    let mut guessed = Vec::new();
    Message::KexInit(init).encode(&mut guessed);
    server.feed(&[&bytes[..line], &plain(&guessed)].concat(), &mut random).unwrap();
    server.feed(&plain(&[30, 0, 0, 0, 1, 9]), &mut random).unwrap();
    // The guess was no share at all, but it was not looked at. This one is.
    let share = super::super::kex::initiate(Method::Curve25519).unwrap().share;
    let mut payload = Vec::new();
    Message::KexEcdhInit(&share).encode(&mut payload);
    server.feed(&plain(&payload), &mut random).unwrap();
    assert!(server.transport.session().is_some());
}

#[test]
fn data_other_than_ssh_is_refused_at_once() {
    for bytes in [&b"GET / HTTP/1.1\r\n"[..], b"SSH-1.5-old\n", b"SSX", &[b'S'; 300]] {
        let (mut server, _, mut random) = beginning();
        assert_eq!(server.feed(bytes, &mut random), Err(Error::Version));
    }
    // A client passes over lines that a server may send first, but not over any number of them.
    let (_, mut client, mut random) = beginning();
    client.feed(b"hello\r\nthere\r\nSSH-2.0-x\r\n", &mut random).unwrap();
    assert_eq!(client.transport.peer_version(), b"x");
    let (_, mut client, mut random) = beginning();
    assert_eq!(client.feed(&b"x\n".repeat(100), &mut random), Err(Error::Version));
}

#[test]
fn what_waits_for_an_exchange_is_bounded() {
    let (mut server, _, _) = connected(Policy::modern(), 4);
    server.transport.renew_now().unwrap();
    let data = [0; 1000];
    let message = Message::RequestSuccess(&data);
    let sent = (0..1000).take_while(|_| server.transport.send_message(&message).is_ok()).count();
    assert!((200..300).contains(&sent), "{sent}");
}

#[test]
fn the_peers_last_words_are_kept_short() {
    let (mut server, mut client, mut random) = connected(Policy::modern(), 4);
    client.transport.disconnect(11, &format!("bye\x1b[2J{}", "x".repeat(1000)));
    let error = server.feed(&client.take_output(), &mut random).unwrap_err();
    let Error::Disconnected { reason: 11, description } = error else { panic!("{error}") };
    assert!(description.starts_with("bye[2Jx") && description.len() == 200);
}
