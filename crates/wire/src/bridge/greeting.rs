//! How two hosts that share a secret agree on the keys of a session.
//!
//! Each makes a pair of keys for X25519 (RFC 7748) that it uses once. The one that calls sends its
//! public half, the other answers with its own and with the one that it answers; both messages are
//! under HMAC-SHA-256 with the shared secret, so that only a holder of the secret can greet. The
//! keys of the session are derived by HKDF (RFC 5869) from the X25519 result and the secret; an
//! attacker that learns the secret later cannot decrypt earlier sessions. As both halves are new,
//! so are the keys: a replayed greeting leads to keys that were never used.
//!
//! A greeting is `kind (1) | version (1) | zero (2) | own half (32) | half answered (32) |
//! HMAC (32)`.

use aws_lc_rs::agreement::{PrivateKey, UnparsedPublicKey, X25519, agree};
use aws_lc_rs::{hkdf, hmac};

use super::{KEY, Opener, Refused, Sealer};

/// Bytes of a greeting.
pub const GREETING: usize = 4 + 3 * PART;

const KIND_CALL: u8 = 2;
const KIND_ANSWER: u8 = 3;
const VERSION: u8 = 1;
const PART: usize = 32;
const NOBODY: [u8; PART] = [0; PART];

/// Which side of a session this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The one that called.
    Caller,
    /// The one that answered.
    Answerer,
}

/// A greeting that was read; it is unauthenticated until its HMAC was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Greeting {
    /// Whether it answers one.
    pub answer: bool,
    /// The sender's public half.
    pub half: [u8; PART],
    /// The half that it answers, or zeros.
    pub answered: [u8; PART],
    code: [u8; PART],
}

impl Greeting {
    /// A greeting.
    ///
    /// # Errors
    /// [`Refused::Format`]
    pub fn decode(bytes: &[u8]) -> Result<Self, Refused> {
        let [kind, version, 0, 0, parts @ ..] = bytes else { return Err(Refused::Format) };
        let (halves, rest) = parts.as_chunks::<PART>();
        let ([half, answered, code], []) = (halves, rest) else { return Err(Refused::Format) };
        let answer = *kind == KIND_ANSWER;
        let known = *version == VERSION && (answer || *kind == KIND_CALL);
        // A call answers no greeting.
        if !known || !answer && *answered != NOBODY {
            return Err(Refused::Format);
        }
        Ok(Self { answer, half: *half, answered: *answered, code: *code })
    }

    /// As it is sent.
    pub fn encode(&self) -> [u8; GREETING] {
        let kind = if self.answer { KIND_ANSWER } else { KIND_CALL };
        let mut out = [0; GREETING];
        let parts = [&[kind, VERSION, 0, 0][..], &self.half, &self.answered, &self.code];
        for (to, from) in out.iter_mut().zip(parts.into_iter().flatten()) {
            *to = *from;
        }
        out
    }

    fn made(secret: &[u8; KEY], half: [u8; PART], answers: Option<[u8; PART]>) -> Self {
        let (answer, answered) = (answers.is_some(), answers.unwrap_or(NOBODY));
        let mut new = Self { answer, half, answered, code: NOBODY };
        let code = hmac::sign(&code_key(secret), &new.covered());
        if let Some(code) = code.as_ref().first_chunk() {
            new.code = *code;
        }
        new
    }

    /// What the HMAC covers: everything before it.
    fn covered(&self) -> Vec<u8> {
        let mut bytes = self.encode().to_vec();
        bytes.truncate(GREETING - PART);
        bytes
    }

    fn check(&self, secret: &[u8; KEY]) -> Result<(), Refused> {
        let checked = hmac::verify(&code_key(secret), &self.covered(), &self.code);
        checked.map_err(|_| Refused::Forged)
    }
}

/// The secret is never used itself.
fn code_key(secret: &[u8; KEY]) -> hmac::Key {
    let own = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let derived = hmac::sign(&own, b"plimsoll bridge 1: greetings");
    hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref())
}

/// A call that waits for its answer.
pub struct Greeted {
    private: PrivateKey,
    greeting: Greeting,
}

/// An answer that was given, and the keys it led to.
pub struct Answered {
    /// What to send.
    pub greeting: [u8; GREETING],
    /// The keys, good once the caller has used them.
    pub keys: SessionKeys,
}

fn own_half() -> Result<(PrivateKey, [u8; PART]), Refused> {
    let private = PrivateKey::generate(&X25519).map_err(|_| Refused::UsedUp)?;
    let public = private.compute_public_key().map_err(|_| Refused::UsedUp)?;
    let half = *public.as_ref().first_chunk().ok_or(Refused::UsedUp)?;
    Ok((private, half))
}

impl Greeted {
    /// Calls.
    ///
    /// # Errors
    /// [`Refused::UsedUp`] when the library fails.
    pub fn call(secret: &[u8; KEY]) -> Result<Self, Refused> {
        let (private, half) = own_half()?;
        Ok(Self { private, greeting: Greeting::made(secret, half, None) })
    }

    /// What to send, repeatedly until there is an answer.
    pub fn greeting(&self) -> [u8; GREETING] {
        self.greeting.encode()
    }

    /// The keys, from an answer to this call.
    ///
    /// # Errors
    /// [`Refused::Forged`], or [`Refused::Session`] when it answers another call.
    pub fn answered(&self, secret: &[u8; KEY], answer: &Greeting) -> Result<SessionKeys, Refused> {
        answer.check(secret)?;
        if !answer.answer || answer.answered != self.greeting.half {
            return Err(Refused::Session);
        }
        SessionKeys::agreed(secret, &self.private, &answer.half, [self.greeting.half, answer.half])
    }
}

impl Answered {
    /// Answers a call.
    ///
    /// # Errors
    /// [`Refused::Forged`], or [`Refused::Format`] when it is no call.
    pub fn to(secret: &[u8; KEY], call: &Greeting) -> Result<Self, Refused> {
        call.check(secret)?;
        if call.answer {
            return Err(Refused::Format);
        }
        let (private, half) = own_half()?;
        let keys = SessionKeys::agreed(secret, &private, &call.half, [call.half, half])?;
        Ok(Self { greeting: Greeting::made(secret, half, Some(call.half)).encode(), keys })
    }
}

/// The keys of a session.
pub struct SessionKeys {
    session: u32,
    from_caller: [u8; KEY],
    from_answerer: [u8; KEY],
}

impl SessionKeys {
    fn agreed(
        secret: &[u8; KEY],
        private: &PrivateKey,
        theirs: &[u8; PART],
        halves: [[u8; PART]; 2],
    ) -> Result<Self, Refused> {
        let theirs = UnparsedPublicKey::new(&X25519, &theirs[..]);
        let shared: [u8; PART] = agree(private, theirs, Refused::Forged, |shared| {
            shared.first_chunk().copied().ok_or(Refused::Forged)
        })?;
        // Of a point of small order (RFC 7748, section 6.1).
        if shared == NOBODY {
            return Err(Refused::Forged);
        }
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, halves.as_flattened());
        let both = [&shared[..], secret].concat();
        let root = salt.extract(&both);
        let part = |label: &[u8]| {
            let mut key = [0; KEY];
            let info = [b"plimsoll bridge 1: ", label];
            let okm = root.expand(&info, hkdf::HKDF_SHA256).map_err(|_| Refused::UsedUp)?;
            okm.fill(&mut key).map_err(|_| Refused::UsedUp)?;
            Ok(key)
        };
        let [a, b, c, d, ..] = part(b"session")?;
        Ok(Self {
            session: u32::from_be_bytes([a, b, c, d]),
            from_caller: part(b"from the caller")?,
            from_answerer: part(b"from the answerer")?,
        })
    }

    /// The session number, which frames carry.
    pub fn session(&self) -> u32 {
        self.session
    }

    /// What seals and opens at this side.
    ///
    /// # Errors
    /// [`Refused::UsedUp`] when the library fails.
    pub fn sides(&self, role: Role) -> Result<(Sealer, Opener), Refused> {
        let (out, back) = match role {
            Role::Caller => (&self.from_caller, &self.from_answerer),
            Role::Answerer => (&self.from_answerer, &self.from_caller),
        };
        Ok((Sealer::new(out, self.session)?, Opener::new(back, self.session)?))
    }
}
