//! SESSION_SETUP by NTLM within SPNEGO: as it is done today, and in the ways of old that no server
//! should take.

use std::io;

use wire::smb::codec::patch;
use wire::smb::crypto::{Keys, Preauth};
use wire::smb::header::Command;
use wire::smb::negotiate::{Cipher, Dialect, Signing};
use wire::smb::ntlm::{self, Authenticate, Challenge, av, negotiate};
use wire::smb::session;
use wire::smb::status::NtStatus;
use wire::smb::{spnego, utf16};

use super::{Answer, Protection, Smb};

/// Where NTLM's AUTHENTICATE has its checksum.
const MIC_AT: usize = 72;
/// Flags of a current client: without KEY_EXCHANGE, so the key is the one its response proves.
const FLAGS: u32 = negotiate::UNICODE
    | negotiate::REQUEST_TARGET
    | negotiate::SIGN
    | negotiate::NTLM
    | negotiate::ALWAYS_SIGN
    | negotiate::EXTENDED
    | negotiate::TARGET_INFO
    | negotiate::BITS_128;

/// What a client answers a challenge with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// Version 2, with a checksum of all messages.
    V2,
    /// Version 2 with a checksum that is wrong.
    V2Altered,
    /// Version 1: 24 bytes.
    V1,
    /// Lan Manager, and nothing else.
    LanManager,
    /// A name and no response.
    Empty,
    /// Neither name nor response.
    Anonymous,
    /// Version 2 of nothing.
    V2OfNothing,
}

/// A sign-in that has begun.
pub struct Begun {
    session: u64,
    previous: u64,
    preauth: Preauth,
    first: Vec<u8>,
    second: Vec<u8>,
}

/// The session that a sign-in has come to, before it is used.
struct Signed {
    answer: Answer,
    key: [u8; 16],
}

impl Smb {
    /// Signs in. Requests are signed from then on.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn sign_in(&mut self, user: &str, password: &str) -> io::Result<NtStatus> {
        self.sign_in_by(Proof::V2, user, password, 0)
    }

    /// The same by another proof, in place of a session that was before (0: of none).
    ///
    /// # Errors
    /// The connection has ended.
    pub fn sign_in_by(
        &mut self,
        proof: Proof,
        user: &str,
        password: &str,
        previous: u64,
    ) -> io::Result<NtStatus> {
        match self.begin_sign_in(previous)? {
            Ok(begun) => self.end_sign_in(begun, proof, (user, password)),
            Err(refused) => Ok(refused),
        }
    }

    /// The first half of a sign-in.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn begin_sign_in(&mut self, previous: u64) -> io::Result<Result<Begun, NtStatus>> {
        let before = std::mem::replace(&mut self.protection, Protection::None);
        (self.session, self.tree, self.keys) = (0, 0, None);
        let mut preauth = self.preauth;
        let first = ntlm::put_negotiate(FLAGS);
        let answer = self.leg(&spnego::begin(&first), previous, Some(&mut preauth))?;
        if answer.status() != NtStatus::MORE_PROCESSING_REQUIRED {
            self.protection = before;
            return Ok(Err(answer.status()));
        }
        let session = answer.header.session_id;
        let response = session::Response::decode(&answer.message).map_err(io::Error::other)?;
        let token = spnego::answered(response.blob).map_err(io::Error::other)?;
        let second = token.token.ok_or_else(|| io::Error::other("no challenge"))?.to_vec();
        Ok(Ok(Begun { session, previous, preauth, first, second }))
    }

    /// The second half.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn end_sign_in(
        &mut self,
        begun: Begun,
        proof: Proof,
        who: (&str, &str),
    ) -> io::Result<NtStatus> {
        let Begun { session, previous, mut preauth, first, second } = begun;
        (self.session, self.tree, self.keys) = (session, 0, None);
        self.protection = Protection::None;
        let (third, key) = answer_to(&first, &second, proof, who)?;
        let request = self.setup(&spnego::next_token(&third, None), previous);
        preauth.update(&request);
        self.send(&[request])?;
        let answer = self.receive()?.pop().ok_or_else(|| io::Error::other("no answer"))?;
        let status = answer.status();
        if status == NtStatus::SUCCESS {
            self.use_session(&Signed { answer, key }, &preauth)?;
        }
        Ok(status)
    }

    /// Signs in again in the session that there is, protected by its keys, which stay.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn sign_in_again(&mut self, proof: Proof, who: (&str, &str)) -> io::Result<NtStatus> {
        let first = ntlm::put_negotiate(FLAGS);
        let answer = self.leg(&spnego::begin(&first), 0, None)?;
        if answer.status() != NtStatus::MORE_PROCESSING_REQUIRED {
            return Ok(answer.status());
        }
        let response = session::Response::decode(&answer.message).map_err(io::Error::other)?;
        let token = spnego::answered(response.blob).map_err(io::Error::other)?;
        let second = token.token.ok_or_else(|| io::Error::other("no challenge"))?.to_vec();
        let (third, _) = answer_to(&first, &second, proof, who)?;
        Ok(self.leg(&spnego::next_token(&third, None), 0, None)?.status())
    }

    /// One word of a sign-in, and the answer to it.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn leg(
        &mut self,
        blob: &[u8],
        previous: u64,
        preauth: Option<&mut Preauth>,
    ) -> io::Result<Answer> {
        let request = self.setup(blob, previous);
        self.send(std::slice::from_ref(&request))?;
        let answer = self.receive()?.pop().ok_or_else(|| io::Error::other("no answer"))?;
        if let Some(preauth) = preauth {
            preauth.update(&request);
            preauth.update(&answer.message);
        }
        Ok(answer)
    }

    /// A SESSION_SETUP with this word of SPNEGO.
    pub fn setup(&mut self, blob: &[u8], previous_session: u64) -> Vec<u8> {
        let setup = session::Request {
            flags: 0,
            security_mode: 1,
            capabilities: 0,
            previous_session,
            blob,
        };
        self.request(Command::SESSION_SETUP, 0, &|out| setup.put(out))
    }

    fn use_session(&mut self, signed: &Signed, preauth: &Preauth) -> io::Result<()> {
        let (dialect, contexts) = (self.negotiated.dialect, &self.negotiated.contexts);
        let first = |list: &Option<Vec<u16>>| list.as_ref().and_then(|list| list.first().copied());
        let (signing, cipher) = match dialect {
            Dialect::SMB311 => (
                first(&contexts.signings).and_then(Signing::of).unwrap_or(Signing::AesCmac),
                first(&contexts.ciphers).and_then(Cipher::of),
            ),
            Dialect::SMB202 | Dialect::SMB210 => (Signing::HmacSha256, None),
            _ => (Signing::AesCmac, Some(Cipher::Aes128Ccm)),
        };
        let keys = Keys::new(&signed.key, dialect, (signing, cipher), preauth);
        let keys = keys.map_err(io::Error::other)?;
        // The server signs its last response: a man in the middle cannot.
        let is_signed = signed.answer.header.has(wire::smb::header::flags::SIGNED);
        if !self.trusts && !is_signed {
            return Err(io::Error::other("the last word is not signed"));
        }
        if !self.trusts {
            let mut message = signed.answer.message.clone();
            keys.signer.verify(&mut message).map_err(io::Error::other)?;
        }
        self.keys = Some(keys);
        self.nonce = 0;
        let response = session::Response::decode(&signed.answer.message);
        let flags = response.map_err(io::Error::other)?.flags;
        let seals = flags & session::session_flags::ENCRYPT != 0;
        self.protection = if seals { Protection::Sealed } else { Protection::Signed };
        Ok(())
    }
}

/// NTLM's third message, and the key that belongs to it.
fn answer_to(
    first: &[u8],
    second: &[u8],
    proof: Proof,
    (user, password): (&str, &str),
) -> io::Result<(Vec<u8>, [u8; 16])> {
    let challenge = Challenge::decode(second).map_err(io::Error::other)?;
    let ntowf = match proof {
        Proof::V2OfNothing => ntlm::ntowf_v2(&ntlm::nt_hash(""), user, ""),
        _ => ntlm::ntowf_v2(&ntlm::nt_hash(password), user, ""),
    };
    // That there is a checksum is a flag among the AV pairs of the response.
    let mut facts = challenge.info.clone();
    facts.truncate(facts.len().saturating_sub(4));
    facts.extend(
        [av::FLAGS.to_le_bytes(), 4u16.to_le_bytes(), [2, 0], [0, 0], [0, 0], [0, 0]].concat(),
    );
    let (response, key) = ntlm::respond(&ntowf, &challenge.challenge, (&[9; 8], 1, &facts));
    let user = match proof {
        Proof::Anonymous => Vec::new(),
        _ => utf16::encode(user),
    };
    let (lm, nt): (&[u8], &[u8]) = match proof {
        Proof::V2 | Proof::V2Altered | Proof::V2OfNothing => (&[], &response),
        Proof::V1 => (&[3; 24], &[4; 24]),
        Proof::LanManager => (&[3; 24], &[]),
        Proof::Empty => (&[], &[]),
        Proof::Anonymous => (&[0], &[]),
    };
    let flags = match proof {
        Proof::Anonymous => FLAGS | negotiate::ANONYMOUS,
        _ => FLAGS,
    };
    let auth = Authenticate {
        lm,
        nt,
        domain: &[],
        user: &user,
        workstation: &[],
        session_key: &[],
        flags,
        mic: None,
    };
    let mut third = auth.encode();
    let mut mic = ntlm::mic(&key, first, second, &third);
    if proof == Proof::V2Altered {
        mic[0] ^= 1;
    }
    patch(&mut third, MIC_AT, &mic);
    // The key of an anonymous session is known.
    let key = if proof == Proof::Anonymous { [0; 16] } else { key };
    Ok((third, key))
}
