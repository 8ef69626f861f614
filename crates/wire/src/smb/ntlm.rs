//! NTLM (MS-NLMP): messages, and what both sides compute. Only version 2 of the responses.

use super::codec::{Field, Reader, Result, SmbError, buffer};
use super::crypto::{hmac_md5, md5, rc4::Rc4};
use super::{time, utf16};

/// How a message begins.
const SIGNATURE: [u8; 8] = *b"NTLMSSP\0";
/// Most bytes of one field of a message.
const FIELD_MAX: usize = 16 << 10;

/// NegotiateFlags (§2.2.2.5).
pub mod negotiate {
    /// UTF-16.
    pub const UNICODE: u32 = 1;
    /// The challenge is to contain the name of the target.
    pub const REQUEST_TARGET: u32 = 4;
    /// Messages can be signed.
    pub const SIGN: u32 = 0x10;
    /// Messages can be encrypted.
    pub const SEAL: u32 = 0x20;
    /// NTLM.
    pub const NTLM: u32 = 0x200;
    /// Anonymous authentication.
    pub const ANONYMOUS: u32 = 0x800;
    /// Always sign.
    pub const ALWAYS_SIGN: u32 = 0x8000;
    /// The target is a server.
    pub const TARGET_SERVER: u32 = 0x2_0000;
    /// Keys of version 2.
    pub const EXTENDED: u32 = 0x8_0000;
    /// Facts on the target are there.
    pub const TARGET_INFO: u32 = 0x80_0000;
    /// Versions are there.
    pub const VERSION: u32 = 0x200_0000;
    /// Keys of 128 bits.
    pub const BITS_128: u32 = 0x2000_0000;
    /// The client chooses the key of the session.
    pub const KEY_EXCHANGE: u32 = 0x4000_0000;
    /// Keys of 56 bits.
    pub const BITS_56: u32 = 0x8000_0000;
}

/// Pairs of the facts on a target (§2.2.2.1).
pub mod av {
    /// The end.
    pub const EOL: u16 = 0;
    /// The name of the server.
    pub const NB_COMPUTER: u16 = 1;
    /// The name of the domain.
    pub const NB_DOMAIN: u16 = 2;
    /// The name of the server in the DNS.
    pub const DNS_COMPUTER: u16 = 3;
    /// The domain in the DNS.
    pub const DNS_DOMAIN: u16 = 4;
    /// 2: there is a checksum over the messages.
    pub const FLAGS: u16 = 6;
    /// FILETIME.
    pub const TIMESTAMP: u16 = 7;
}

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The client's first.
    Negotiate = 1,
    /// The server's.
    Challenge = 2,
    /// The client's second.
    Authenticate = 3,
}

/// The kind of a message.
///
/// # Errors
/// [`SmbError::Value`] if it is none.
pub fn kind(msg: &[u8]) -> Result<Kind> {
    let mut r = Reader::new(msg, "NTLM");
    if r.array()? != SIGNATURE {
        return Err(SmbError::Value("NTLM"));
    }
    match r.get::<u32>()? {
        1 => Ok(Kind::Negotiate),
        2 => Ok(Kind::Challenge),
        3 => Ok(Kind::Authenticate),
        _ => Err(SmbError::Value("NTLM")),
    }
}

fn field<'a>(msg: &'a [u8], r: &mut Reader<'_>) -> Result<&'a [u8]> {
    let (len, _max, at): (u16, u16, u32) = (r.get()?, r.get()?, r.get()?);
    buffer(msg, (at as usize, len.into()), FIELD_MAX, "NTLM")
}

/// The flags of NEGOTIATE.
///
/// # Errors
/// [`SmbError`].
pub fn negotiate_flags(msg: &[u8]) -> Result<u32> {
    Reader::at(msg, 12, "NTLM NEGOTIATE")?.get()
}

/// A client's first message.
pub fn put_negotiate(flags: u32) -> Vec<u8> {
    let mut out = SIGNATURE.to_vec();
    1u32.put(&mut out);
    flags.put(&mut out);
    // No domain and no workstation.
    [0u8; 16].put(&mut out);
    out
}

/// What a server challenges with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// [`negotiate`].
    pub flags: u32,
    /// Random.
    pub challenge: [u8; 8],
    /// The name of the server, in UTF-16LE.
    pub target: Vec<u8>,
    /// Facts on it, as pairs.
    pub info: Vec<u8>,
}

impl Challenge {
    /// The answer to a client with these flags.
    pub fn new(asked: u32, challenge: [u8; 8], name: &str, now: u64) -> Self {
        use negotiate::*;
        let always = UNICODE | NTLM | EXTENDED | TARGET_INFO | TARGET_SERVER | REQUEST_TARGET;
        let asked =
            asked & (SIGN | SEAL | ALWAYS_SIGN | BITS_128 | BITS_56 | KEY_EXCHANGE | VERSION);
        let upper = utf16::encode(&name.to_uppercase());
        let lower = utf16::encode(&name.to_lowercase());
        let mut info = Vec::new();
        let mut pair = |id: u16, value: &[u8]| {
            id.put(&mut info);
            (value.len() as u16).put(&mut info);
            info.extend_from_slice(value);
        };
        pair(av::NB_DOMAIN, &upper);
        pair(av::NB_COMPUTER, &upper);
        pair(av::DNS_DOMAIN, &[]);
        pair(av::DNS_COMPUTER, &lower);
        pair(av::TIMESTAMP, &now.to_le_bytes());
        pair(av::EOL, &[]);
        Self { flags: always | asked, challenge, target: upper, info }
    }

    /// Reads it.
    ///
    /// # Errors
    /// [`SmbError`].
    pub fn decode(msg: &[u8]) -> Result<Self> {
        let mut r = Reader::at(msg, 12, "NTLM CHALLENGE")?;
        let target = field(msg, &mut r)?.to_vec();
        let (flags, challenge) = (r.get()?, r.get()?);
        let _reserved: u64 = r.get()?;
        let info = field(msg, &mut r)?.to_vec();
        Ok(Self { flags, challenge, target, info })
    }

    /// The message.
    pub fn encode(&self) -> Vec<u8> {
        const HEAD: usize = 56;
        let mut out = SIGNATURE.to_vec();
        2u32.put(&mut out);
        put_place(&mut out, HEAD, self.target.len());
        self.flags.put(&mut out);
        self.challenge.put(&mut out);
        0u64.put(&mut out);
        put_place(&mut out, HEAD + self.target.len(), self.info.len());
        VERSION.put(&mut out);
        out.extend_from_slice(&self.target);
        out.extend_from_slice(&self.info);
        out
    }
}

/// Windows 6.1, at revision 15 (§2.2.2.10): its NTLM has all that is used here.
const VERSION: [u8; 8] = [6, 1, 0, 0, 0, 0, 0, 15];

fn put_place(out: &mut Vec<u8>, at: usize, len: usize) {
    (len as u16).put(out);
    (len as u16).put(out);
    (at as u32).put(out);
}

/// How a client answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authenticate<'a> {
    /// The response of version 1, or of Lan Manager: never looked at.
    pub lm: &'a [u8],
    /// The response.
    pub nt: &'a [u8],
    /// Domain as the client has it, in UTF-16LE or bytes, by the flags.
    pub domain: &'a [u8],
    /// The user, the same way.
    pub user: &'a [u8],
    /// The machine of the client, the same way.
    pub workstation: &'a [u8],
    /// The key of the session, encrypted; empty unless it is exchanged.
    pub session_key: &'a [u8],
    /// [`negotiate`].
    pub flags: u32,
    /// The checksum over all three messages, if there is room for one.
    pub mic: Option<[u8; 16]>,
}

/// Where the checksum is.
const MIC_AT: usize = 72;
/// Bytes with it.
const AUTHENTICATE_HEAD: usize = 88;

impl<'a> Authenticate<'a> {
    /// Reads it.
    ///
    /// # Errors
    /// [`SmbError`].
    pub fn decode(msg: &'a [u8]) -> Result<Self> {
        let mut r = Reader::at(msg, 12, "NTLM AUTHENTICATE")?;
        let mut next = || field(msg, &mut r);
        let (lm, nt, domain) = (next()?, next()?, next()?);
        let (user, workstation, session_key) = (next()?, next()?, next()?);
        let flags = r.get()?;
        let mic = msg.get(MIC_AT..AUTHENTICATE_HEAD).and_then(|mic| mic.try_into().ok());
        Ok(Self { lm, nt, domain, user, workstation, session_key, flags, mic })
    }

    /// The message; `mic` is zero until it is known.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = SIGNATURE.to_vec();
        3u32.put(&mut out);
        let fields = [self.lm, self.nt, self.domain, self.user, self.workstation, self.session_key];
        let mut at = AUTHENTICATE_HEAD;
        for field in fields {
            put_place(&mut out, at, field.len());
            at += field.len();
        }
        self.flags.put(&mut out);
        VERSION.put(&mut out);
        self.mic.unwrap_or_default().put(&mut out);
        fields.iter().for_each(|field| out.extend_from_slice(field));
        out
    }

    /// Its text.
    ///
    /// # Errors
    /// [`SmbError::Value`] if it is none.
    pub fn text(&self, field: &[u8]) -> Result<String> {
        match self.flags & negotiate::UNICODE {
            0 => String::from_utf8(field.to_vec()).map_err(|_| SmbError::Value("NTLM")),
            _ => utf16::decode(field),
        }
    }

    /// Whether it has neither a user name nor a response.
    pub fn is_anonymous(&self) -> bool {
        self.user.is_empty() && self.nt.is_empty()
    }
}

/// The NT hash of a password: MD4 of it in UTF-16 (NTOWFv1). It suffices to sign in, like the
/// password.
pub fn nt_hash(password: &str) -> [u8; 16] {
    base::md4::digest(&utf16::encode(password))
}

/// NTOWFv2 (§3.3.2).
pub fn ntowf_v2(nt_hash: &[u8; 16], user: &str, domain: &str) -> [u8; 16] {
    let who = utf16::encode(&format!("{}{domain}", user.to_uppercase()));
    hmac_md5(nt_hash, &[&who])
}

/// Values in the AV pairs of a response of version 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResponseFacts {
    /// The messages have a checksum.
    pub has_mic: bool,
    /// FILETIME of the client, or the server's that it has taken over.
    pub time: u64,
}

/// Bytes of a response before the client's facts.
const RESPONSE_HEAD: usize = 16;

/// The facts of a response of version 2.
///
/// # Errors
/// [`SmbError`] if it is of version 1, or too short.
pub fn response_facts(nt: &[u8]) -> Result<ResponseFacts> {
    let mut r = Reader::at(nt, RESPONSE_HEAD, "NTLMv2 response")?;
    if r.get::<u16>()? != 0x0101 {
        return Err(SmbError::Value("NTLMv2 response"));
    }
    let _reserved: [u8; 6] = r.get()?;
    let (time, _challenge): (u64, u64) = (r.get()?, r.get()?);
    let _reserved: u32 = r.get()?;
    let mut facts = ResponseFacts { has_mic: false, time };
    loop {
        let (id, len): (u16, u16) = (r.get()?, r.get()?);
        let value = r.take(len.into())?;
        match id {
            av::EOL => return Ok(facts),
            av::FLAGS => facts.has_mic = value.first().is_some_and(|flags| flags & 2 != 0),
            _ => {}
        }
    }
}

/// What a response proves: the key that both sides know if it is right. `None` if it is wrong.
pub fn verify(ntowf: &[u8; 16], challenge: &[u8; 8], nt: &[u8]) -> Option<[u8; 16]> {
    let (proof, facts) = nt.split_first_chunk::<16>()?;
    let expected = hmac_md5(ntowf, &[challenge, facts]);
    aws_lc_rs::constant_time::verify_slices_are_equal(proof, &expected).ok()?;
    Some(hmac_md5(ntowf, &[proof]))
}

/// A response, and the key that belongs to it. `info` are the facts of the challenge.
pub fn respond(
    ntowf: &[u8; 16],
    challenge: &[u8; 8],
    (client, now, info): (&[u8; 8], u64, &[u8]),
) -> (Vec<u8>, [u8; 16]) {
    let mut facts = vec![1, 1, 0, 0, 0, 0, 0, 0];
    now.put(&mut facts);
    client.put(&mut facts);
    0u32.put(&mut facts);
    facts.extend_from_slice(info);
    0u32.put(&mut facts);
    let proof = hmac_md5(ntowf, &[challenge, &facts]);
    (([&proof[..], &facts]).concat(), hmac_md5(ntowf, &[&proof]))
}

/// The key of the session: as exchanged, or the one that the response has proved.
pub fn session_key(base: [u8; 16], auth: &Authenticate<'_>) -> Result<[u8; 16]> {
    if auth.flags & negotiate::KEY_EXCHANGE == 0 {
        return Ok(base);
    }
    let mut key: [u8; 16] =
        auth.session_key.try_into().map_err(|_| SmbError::Value("session key"))?;
    Rc4::new(&base).apply(&mut key);
    Ok(key)
}

/// The checksum over all three messages, for which that of the third is taken as zero.
pub fn mic(key: &[u8; 16], negotiate: &[u8], challenge: &[u8], authenticate: &[u8]) -> [u8; 16] {
    let mut third = authenticate.to_vec();
    super::codec::patch(&mut third, MIC_AT, &[0; 16]);
    hmac_md5(key, &[negotiate, challenge, &third])
}

/// Which side signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The client.
    Client,
    /// The server.
    Server,
}

/// The checksum over the list of mechanisms of SPNEGO (§3.4.4.2), the first that this side makes.
pub fn mech_list_mic(key: &[u8; 16], flags: u32, side: Side, list: &[u8]) -> [u8; 16] {
    let name = match side {
        Side::Client => "client-to-server",
        Side::Server => "server-to-client",
    };
    let magic = |what: &str| format!("session key to {name} {what} key magic constant\0");
    let sign = md5(&[key, magic("signing").as_bytes()]);
    let short = match flags {
        flags if flags & negotiate::BITS_128 != 0 => 16,
        flags if flags & negotiate::BITS_56 != 0 => 7,
        _ => 5,
    };
    let part = key.get(..short).unwrap_or_default();
    let seal = md5(&[part, magic("sealing").as_bytes()]);
    let sequence = [0u8; 4];
    let mut sum = [0; 8];
    let whole = hmac_md5(&sign, &[&sequence, list]);
    sum.copy_from_slice(whole.first_chunk::<8>().unwrap_or(&[0; 8]));
    if flags & negotiate::KEY_EXCHANGE != 0 {
        Rc4::new(&seal).apply(&mut sum);
    }
    let mut mic = [0; 16];
    super::codec::patch(&mut mic, 0, &1u32.to_le_bytes());
    super::codec::patch(&mut mic, 4, &sum);
    super::codec::patch(&mut mic, 12, &sequence);
    mic
}

/// The difference of two FILETIMEs in seconds: an estimate of a client's clock error.
pub fn seconds_between(a: u64, b: u64) -> u64 {
    time::to_unix(a).0.abs_diff(time::to_unix(b).0)
}
