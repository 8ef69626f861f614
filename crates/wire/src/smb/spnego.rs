//! SPNEGO (RFC 4178) with NTLM as its one mechanism, in DER.

use base::der::{self, OBJECT, OCTETS, SEQUENCE};

use super::codec::{Result, SmbError};

/// SPNEGO, 1.3.6.1.5.5.2.
const SPNEGO: &[u8] = &[0x2b, 6, 1, 5, 5, 2];
/// NTLMSSP, 1.3.6.1.4.1.311.2.2.10.
pub const NTLMSSP: &[u8] = &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 2, 2, 10];
/// Application 0: the first token of GSS-API.
const INITIAL: u8 = 0x60;
/// NegTokenInit and NegTokenResp, and their fields by number.
const CONTEXT: u8 = 0xa0;
const ENUMERATED: u8 = 0x0a;

/// How far the negotiation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NegState {
    /// It is done.
    Completed = 0,
    /// More is to come.
    Incomplete = 1,
    /// It has failed.
    Rejected = 2,
    /// Not without a checksum of the list of mechanisms.
    RequestMic = 3,
}

/// What a client sends, or a server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Token<'a> {
    /// The list of mechanisms as it was encoded, in the first one: what its checksum is made of.
    pub mechanisms: Option<&'a [u8]>,
    /// Whether NTLM is the mechanism that it prefers; in a later one, of no meaning.
    pub prefers_ntlm: bool,
    /// Whether NTLM is among them.
    pub has_ntlm: bool,
    /// A token of the mechanism.
    pub token: Option<&'a [u8]>,
    /// The checksum of the list.
    pub mic: Option<&'a [u8]>,
}

const BROKEN: SmbError = SmbError::Value("SPNEGO");

/// The content of the one value of this tag.
fn one(bytes: &[u8], tag: u8) -> Result<&[u8]> {
    match der::next(bytes) {
        Some((found, content, _)) if found == tag => Ok(content),
        _ => Err(BROKEN),
    }
}

/// Reads what a client sends.
///
/// # Errors
/// [`SmbError::Value`].
pub fn client(bytes: &[u8]) -> Result<Token<'_>> {
    match bytes.first() {
        Some(&INITIAL) => {
            let content = one(bytes, INITIAL)?;
            let (OBJECT, SPNEGO, rest) = der::next(content).ok_or(BROKEN)? else {
                return Err(BROKEN);
            };
            initial(one(one(rest, CONTEXT)?, SEQUENCE)?)
        }
        _ => later(one(one(bytes, CONTEXT | 1)?, SEQUENCE)?),
    }
}

fn initial(fields: &[u8]) -> Result<Token<'_>> {
    let mut token = Token::default();
    for (tag, content) in der::values(fields) {
        match tag ^ CONTEXT {
            0 => {
                let list = one(content, SEQUENCE)?;
                let mut kinds = der::values(list).map(|(_, kind)| kind == NTLMSSP).take(16);
                token.prefers_ntlm = kinds.next().unwrap_or(false);
                token.has_ntlm = token.prefers_ntlm || kinds.any(|is| is);
                token.mechanisms = Some(content);
            }
            2 => token.token = Some(one(content, OCTETS)?),
            3 => token.mic = one(content, OCTETS).ok(),
            _ => {}
        }
    }
    Ok(token)
}

fn later(fields: &[u8]) -> Result<Token<'_>> {
    let mut token = Token::default();
    for (tag, content) in der::values(fields) {
        match tag ^ CONTEXT {
            2 => token.token = Some(one(content, OCTETS)?),
            3 => token.mic = Some(one(content, OCTETS)?),
            _ => {}
        }
    }
    Ok(token)
}

/// A value in DER.
fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match content.len() {
        len @ 0..0x80 => out.push(len as u8),
        len @ 0x80..0x100 => out.extend([0x81, len as u8]),
        len => {
            out.push(0x82);
            out.extend_from_slice(&(len as u16).to_be_bytes());
        }
    }
    out.extend_from_slice(content);
    out
}

fn mechanisms() -> Vec<u8> {
    value(CONTEXT, &value(SEQUENCE, &value(OBJECT, NTLMSSP)))
}

fn whole(fields: &[u8]) -> Vec<u8> {
    let token = value(CONTEXT, &value(SEQUENCE, fields));
    value(INITIAL, &[value(OBJECT, SPNEGO), token].concat())
}

/// The first token of a server: it offers NTLM.
pub fn offer() -> Vec<u8> {
    whole(&mechanisms())
}

/// The first token of a client.
pub fn begin(token: &[u8]) -> Vec<u8> {
    whole(&[mechanisms(), value(CONTEXT | 2, &value(OCTETS, token))].concat())
}

/// The next token of a client (NegTokenResp).
pub fn next_token(token: &[u8], mic: Option<&[u8]>) -> Vec<u8> {
    let mut fields = value(CONTEXT | 2, &value(OCTETS, token));
    if let Some(mic) = mic {
        fields.extend(value(CONTEXT | 3, &value(OCTETS, mic)));
    }
    value(CONTEXT | 1, &value(SEQUENCE, &fields))
}

/// The list of mechanisms as [`begin`] encodes it, for its checksum.
pub fn own_mechanisms() -> Vec<u8> {
    value(SEQUENCE, &value(OBJECT, NTLMSSP))
}

/// A token of a server. `names` adds the selected mechanism, for the first one.
pub fn answer(state: NegState, names: bool, token: Option<&[u8]>, mic: Option<&[u8]>) -> Vec<u8> {
    let mut fields = value(CONTEXT, &value(ENUMERATED, &[state as u8]));
    if names {
        fields.extend(value(CONTEXT | 1, &value(OBJECT, NTLMSSP)));
    }
    for (number, content) in [(2, token), (3, mic)] {
        if let Some(content) = content {
            fields.extend(value(CONTEXT | number, &value(OCTETS, content)));
        }
    }
    value(CONTEXT | 1, &value(SEQUENCE, &fields))
}

/// The answer of a server: its token of the mechanism, and its checksum.
///
/// # Errors
/// [`SmbError::Value`].
pub fn answered(bytes: &[u8]) -> Result<Token<'_>> {
    later(one(one(bytes, CONTEXT | 1)?, SEQUENCE)?)
}
