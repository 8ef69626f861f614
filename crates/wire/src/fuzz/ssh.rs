//! Targets of SSH: messages, keys, and the input of a transport before authentication.

use std::sync::{Arc, LazyLock};

use base::random::SeededRandom;

use crate::ssh::authorized::{AuthorizedKey, matches_list};
use crate::ssh::cert::Certificate;
use crate::ssh::host_key::HostKey;
use crate::ssh::kex::Policy;
use crate::ssh::key::PublicKey;
use crate::ssh::message::{InfoRequest, Message, PkOk, channel_data};
use crate::ssh::transport::{ClientSetup, Error, Received, ServerSetup, Side, Transport};

/// A message: it must mean the same once more.
pub fn ssh_message(data: &[u8]) -> bool {
    let short = channel_data(data);
    if let Some(body) = data.get(1..) {
        // The meaning of message 60 depends on the method.
        let mut again = Vec::new();
        if let Ok(ok) = PkOk::decode(body) {
            ok.encode(&mut again);
            assert_eq!(PkOk::decode(again.get(1..).unwrap_or_default()), Ok(ok));
        }
        if let Ok(request) = InfoRequest::decode(body) {
            again.clear();
            request.encode(&mut again);
            assert_eq!(InfoRequest::decode(again.get(1..).unwrap_or_default()), Ok(request));
        }
    }
    let Ok(message) = Message::decode(data) else {
        assert_eq!(short, None);
        return false;
    };
    let long = match message {
        Message::ChannelData { recipient, data } => Some((recipient, data)),
        _ => None,
    };
    assert_eq!(short, long);
    if let Message::ExtInfo(list) = &message {
        assert!(list.iter().count() <= data.len());
    }
    let mut again = Vec::new();
    message.encode(&mut again);
    assert_eq!(Message::decode(&again), Ok(message));
    true
}

/// A key, a certificate, or a line of authorized keys, selected by the first byte.
pub fn ssh_key(data: &[u8]) -> bool {
    let Some((which, rest)) = data.split_first() else { return false };
    match which {
        0 => {
            let Ok(key) = PublicKey::decode(rest) else { return false };
            let mut again = Vec::new();
            key.encode(&mut again);
            assert_eq!(again, rest);
            // Whatever is taken for a signature, it fits nothing.
            assert!(key.verify(key.kind(), b"message", rest).is_err());
            true
        }
        1 => {
            let Ok(certificate) = Certificate::decode(rest) else { return false };
            let _ = certificate.check();
            true
        }
        2 => {
            let Ok(line) = std::str::from_utf8(rest) else { return false };
            let Some(key) = AuthorizedKey::parse(line) else { return false };
            let patterns = key.from.unwrap_or_default();
            let _ = matches_list("192.0.2.1", &patterns);
            true
        }
        _ => false,
    }
}

static SIDES: LazyLock<Option<(Side, Side)>> = LazyLock::new(|| {
    let key = HostKey::new_ed25519(&mut SeededRandom::new(1)).ok()?;
    let (software, policy) = ("Fuzz".to_owned(), Policy::compatible());
    let setup = ServerSetup { software, policy, host_keys: vec![Arc::new(key)] };
    let server = Side::Server(Arc::new(setup));
    let (software, policy) = ("Fuzz".to_owned(), Policy::compatible());
    let client = ClientSetup { software, policy, host_key: None };
    Some((server, Side::Client(Arc::new(client))))
});

/// The first bytes of a peer, to a server or a client as the first byte selects: they are accepted,
/// whole or in pieces, with the same outcome, and the output stays in proportion to them. True if
/// all of them are accepted.
pub fn ssh_transport(data: &[u8]) -> bool {
    let (Some((which, rest)), Some((server, client))) = (data.split_first(), SIDES.as_ref()) else {
        return false;
    };
    let side = if which & 1 == 0 { server } else { client };
    let Ok(whole) = feed(side, rest, rest.len().max(1)) else { return false };
    let pieces = feed(side, rest, 1 + usize::from(which >> 1));
    assert_eq!(Ok(whole), pieces);
    whole == rest.len()
}

/// Returns how many bytes were taken.
fn feed(side: &Side, data: &[u8], piece: usize) -> Result<usize, Error> {
    let mut transport = Transport::new(side.clone(), Box::new(SeededRandom::new(1)))?;
    let (mut input, mut taken) = (Vec::new(), 0);
    for piece in data.chunks(piece) {
        input.extend_from_slice(piece);
        let mut at = 0;
        loop {
            match transport.receive(input.get_mut(at..).unwrap_or_default())? {
                Received::Need(n) => {
                    assert!(n > input.len() - at);
                    break;
                }
                Received::Handled(n) | Received::Packet(n, _) => at += n,
            }
        }
        taken += at;
        input.drain(..at);
        // Two packets for a key share, and one for each unknown packet.
        assert!(transport.backlog() <= 8192 + 2 * data.len());
    }
    Ok(taken)
}
