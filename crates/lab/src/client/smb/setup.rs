//! How a session begins (MS-SMB2 §3.2.4.2): a dialect, the user, the share.

use super::at::{Sign, SmbAt};
use super::outstanding::{Outstanding, refused};
use super::session::Session;
use super::stream::Stream;
use crate::client::pipe::link::Link;
use crate::client::{Checker, ClientError, Options};
use base::clock::wall_ns;
use base::limits::SMB_IO_MAX;
use base::random::{Random, SystemRandom};
use wire::smb::codec::SmbError;
use wire::smb::crypto::rc4::Rc4;
use wire::smb::crypto::{Keys, Preauth};
use wire::smb::header::{Command, flags};
use wire::smb::negotiate::{
    Cipher, Contexts, Dialect, Request as Negotiate, Response as Negotiated, Signing, capabilities,
    security_mode,
};
use wire::smb::ntlm::{self, Authenticate, Challenge, Side, av, negotiate};
use wire::smb::session::{Request as Setup, Response as SetUp, session_flags};
use wire::smb::status::NtStatus;
use wire::smb::tree::{Request as TreeConnect, Response as Tree, share_flags};
use wire::smb::{spnego, time, utf16};

/// What is asked for of NTLM.
const NTLM: u32 = negotiate::UNICODE
    | negotiate::REQUEST_TARGET
    | negotiate::SIGN
    | negotiate::NTLM
    | negotiate::ALWAYS_SIGN
    | negotiate::EXTENDED
    | negotiate::TARGET_INFO
    | negotiate::VERSION
    | negotiate::BITS_128
    | negotiate::KEY_EXCHANGE;
/// Where the checksum of an AUTHENTICATE is.
const MIC_AT: usize = 72;
/// Bytes of our salt.
const SALT: usize = 32;
/// Bytes of the end of the facts of a challenge.
const EOL: usize = 4;

/// A session that is set up.
pub struct Opened {
    /// The session, with a tree of the share.
    pub session: Session,
    /// Most bytes of a READ and of a WRITE.
    pub io_max: (u32, u32),
}

/// Connects, signs in, and connects to the share.
///
/// # Errors
/// The server cannot be reached, or refuses.
pub fn open(at: &SmbAt, checker: Checker, options: &Options) -> Result<Opened, ClientError> {
    let stream = Stream::new(Link::open(&at.host, at.port, options.bind)?);
    let mut session = Session::new(stream, Outstanding::new(checker));
    let mut preauth = Preauth::default();
    let agreed = dialect(&mut session, at, &mut preauth)?;
    let algorithms = algorithms(at, &agreed)?;
    sign_in(&mut session, at, (&agreed, algorithms), preauth)?;
    tree(&mut session, at)?;
    let requires = agreed.security_mode & security_mode::REQUIRED != 0;
    // What is encrypted needs no signature (MS-SMB2 §3.3.5.2.4).
    if requires && at.sign == Sign::Off && !session.protection.seals {
        return Err(ClientError::Required {
            what: format!("use the share {} with signing=off", at.share),
            needs: "signing; omit signing=off, or encrypt with cipher=",
        });
    }
    let most = SMB_IO_MAX as u32;
    Ok(Opened { session, io_max: (agreed.max_read.min(most), agreed.max_write.min(most)) })
}

/// NEGOTIATE.
fn dialect(
    session: &mut Session,
    at: &SmbAt,
    preauth: &mut Preauth,
) -> Result<Negotiated, ClientError> {
    let (mut salt, mut client_guid) = ([0; SALT], [0; 16]);
    SystemRandom.fill(&mut salt);
    SystemRandom.fill(&mut client_guid);
    let signings = match at.sign {
        Sign::By(signing) => vec![signing as u16],
        Sign::Best | Sign::Off => Signing::ALL.map(|signing| signing as u16).to_vec(),
    };
    let ciphers = match at.cipher {
        Some(cipher) => vec![cipher as u16],
        None => Cipher::ALL.map(|cipher| cipher as u16).to_vec(),
    };
    let mut capabilities = 0;
    if at.dialect >= Dialect::SMB210 {
        capabilities |= capabilities::LARGE_MTU;
    }
    if at.dialect >= Dialect::SMB300 {
        capabilities |= capabilities::ENCRYPTION;
    }
    let contexts =
        Contexts { salt: Some(salt.to_vec()), ciphers: Some(ciphers), signings: Some(signings) };
    let request = Negotiate {
        security_mode: security_mode::ENABLED,
        capabilities,
        client_guid,
        dialects: vec![at.dialect],
        contexts,
    };
    let reply = session.exchange(Command::NEGOTIATE, |out, start| request.put(out, start))?;
    preauth.update(&reply.sent);
    preauth.update(&reply.message);
    let what = format!("negotiate SMB {}", at.dialect.name());
    let agreed = Negotiated::decode(reply.done(&what)?).map_err(broken)?;
    match agreed.dialect == at.dialect {
        true => Ok(agreed),
        false => Err(ClientError::Protocol(format!("it answers with {:?}", agreed.dialect))),
    }
}

/// What signs and what encrypts, as the server has chosen.
fn algorithms(at: &SmbAt, agreed: &Negotiated) -> Result<(Signing, Option<Cipher>), ClientError> {
    let first = |list: &Option<Vec<u16>>| list.as_ref().and_then(|list| list.first().copied());
    let (signing, cipher) = match agreed.dialect {
        Dialect::SMB311 => (
            first(&agreed.contexts.signings).and_then(Signing::of).unwrap_or(Signing::AesCmac),
            first(&agreed.contexts.ciphers).and_then(Cipher::of),
        ),
        Dialect::SMB210 => (Signing::HmacSha256, None),
        _ => {
            let encrypts = agreed.capabilities & capabilities::ENCRYPTION != 0;
            (Signing::AesCmac, encrypts.then_some(Cipher::Aes128Ccm))
        }
    };
    if matches!(at.sign, Sign::By(wanted) if wanted != signing) {
        return Err(not_had("the signing of the target"));
    }
    if at.cipher.is_some() && at.cipher != cipher {
        return Err(not_had("the cipher of the target"));
    }
    Ok((signing, cipher))
}

fn not_had(what: &str) -> ClientError {
    let status = "an algorithm that it does not have".to_owned();
    ClientError::Refused { what: format!("agree on {what}"), status }
}

/// SESSION_SETUP, twice: NTLM version 2 within SPNEGO.
fn sign_in(
    session: &mut Session,
    at: &SmbAt,
    (agreed, algorithms): (&Negotiated, (Signing, Option<Cipher>)),
    mut preauth: Preauth,
) -> Result<(), ClientError> {
    let setup = |session: &mut Session, blob: &[u8]| {
        let security_mode = security_mode::ENABLED as u8;
        let (flags, previous_session) = (0, 0);
        let capabilities = 0;
        let request = Setup { flags, security_mode, capabilities, previous_session, blob };
        session.exchange(Command::SESSION_SETUP, |out, _| request.put(out))
    };
    let what = format!("sign in as {}", at.user);
    let first = ntlm::put_negotiate(NTLM);
    let reply = setup(session, &spnego::begin(&first))?;
    if reply.status() != NtStatus::MORE_PROCESSING_REQUIRED {
        return Err(refused(&what, reply.status()));
    }
    preauth.update(&reply.sent);
    preauth.update(&reply.message);
    session.protection.session_id = reply.header.session_id;
    let answer = SetUp::decode(&reply.message).map_err(broken)?;
    let token = spnego::answered(answer.blob).map_err(broken)?;
    let challenge = token.token.ok_or_else(|| ClientError::Protocol("no challenge".into()))?;
    let (proof, key) = prove(at, &first, challenge)?;
    let reply = setup(session, &proof)?;
    preauth.update(&reply.sent);
    let mut message = reply.done(&what)?.to_vec();
    let keys = Keys::new(&key, agreed.dialect, algorithms, &preauth)
        .map_err(|error| ClientError::Protocol(error.to_string()))?;
    let answer = SetUp::decode(&message).map_err(broken)?;
    let encrypts = at.cipher.is_some() || answer.flags & session_flags::ENCRYPT != 0;
    // An attacker that has changed the negotiation does not know the key that this is signed by.
    let is_signed = reply.header.has(flags::SIGNED);
    if is_signed && keys.signer.verify(&mut message).is_err() || !is_signed && at.sign != Sign::Off
    {
        return Err(ClientError::Protocol("the sign-in is not signed by the server".to_owned()));
    }
    if encrypts && keys.sealers.is_none() {
        return Err(not_had("a cipher"));
    }
    session.protection.keys = Some(keys);
    session.protection.signs = at.sign != Sign::Off;
    session.protection.seals = encrypts;
    Ok(())
}

/// The answer to a challenge, and the key of the session.
fn prove(at: &SmbAt, negotiate: &[u8], encoded: &[u8]) -> Result<(Vec<u8>, [u8; 16]), ClientError> {
    let challenge = Challenge::decode(encoded).map_err(broken)?;
    let (mut nonce, mut key) = ([0; 8], [0; 16]);
    SystemRandom.fill(&mut nonce);
    SystemRandom.fill(&mut key);
    let ntowf = ntlm::ntowf_v2(&ntlm::nt_hash(&at.secret.read()?), &at.user, "");
    // The facts of the server, and that there is a checksum over all messages.
    let facts = challenge.info.get(..challenge.info.len().saturating_sub(EOL));
    let mut info = facts.unwrap_or_default().to_vec();
    for (id, value) in [(av::FLAGS, &2u32.to_le_bytes()[..]), (av::EOL, &[])] {
        info.extend_from_slice(&id.to_le_bytes());
        info.extend_from_slice(&(value.len() as u16).to_le_bytes());
        info.extend_from_slice(value);
    }
    let now = wall_ns();
    let now = time::from_unix((now / 1_000_000_000) as i64, (now % 1_000_000_000) as u32);
    let (response, base) = ntlm::respond(&ntowf, &challenge.challenge, (&nonce, now, &info));
    let mut exchanged = key;
    Rc4::new(&base).apply(&mut exchanged);
    let flags = NTLM & challenge.flags | negotiate::KEY_EXCHANGE;
    let user = utf16::encode(&at.user);
    let auth = Authenticate {
        lm: &[0; 24],
        nt: &response,
        domain: &[],
        user: &user,
        workstation: &[],
        session_key: &exchanged,
        flags,
        mic: None,
    };
    let mut message = auth.encode();
    let mic = ntlm::mic(&key, negotiate, encoded, &message);
    wire::smb::codec::patch(&mut message, MIC_AT, &mic);
    let list = ntlm::mech_list_mic(&key, flags, Side::Client, &spnego::own_mechanisms());
    Ok((spnego::next_token(&message, Some(&list)), key))
}

/// TREE_CONNECT.
fn tree(session: &mut Session, at: &SmbAt) -> Result<(), ClientError> {
    let path = utf16::encode(&format!("\\\\{}\\{}", at.host, at.share));
    let request = TreeConnect { flags: 0, path: &path };
    // It is signed in any case, which shows that the negotiation was not changed in transit
    // (MS-SMB2 §3.3.5.7).
    let signs = std::mem::replace(&mut session.protection.signs, true);
    let reply = session.exchange(Command::TREE_CONNECT, |out, _| request.put(out));
    session.protection.signs = signs;
    let reply = reply?;
    let what = format!("connect to the share {}", at.share);
    let encrypts = session.protection.keys.as_ref().is_some_and(|keys| keys.sealers.is_some());
    if reply.status() == NtStatus::ACCESS_DENIED && !encrypts {
        let status = "STATUS_ACCESS_DENIED; the user may lack rights, or the server requires \
                      encryption, which this dialect or cipher= does not provide";
        return Err(ClientError::Refused { what, status: status.to_owned() });
    }
    let tree = Tree::decode(reply.done(&what)?);
    let tree = tree.map_err(broken)?;
    session.tree = reply.header.tree_id();
    if tree.flags & share_flags::ENCRYPT != 0 {
        session.protection.seals = true;
    }
    Ok(())
}

pub fn broken(error: SmbError) -> ClientError {
    ClientError::Protocol(error.to_string())
}
