//! MS-RPC over a named pipe (C706, MS-RPCE), as far as `srvsvc` needs it (MS-SRVS): which shares
//! there are. NDR with 32-bit offsets, little-endian, no security of its own.

use base::limits::{SMB_RPC_CONTEXTS_MAX, SMB_RPC_FRAGMENT};

use super::codec::{Field, Reader, Result, SmbError, pad, patch};
use super::utf16;

/// `4b324fc8-1670-01d3-1278-5a47bf6ee188`, version 3.
pub const SRVSVC: [u8; 20] = [
    0xc8, 0x4f, 0x32, 0x4b, 0x70, 0x16, 0xd3, 0x01, 0x12, 0x78, 0x5a, 0x47, 0xbf, 0x6e, 0xe1, 0x88,
    3, 0, 0, 0,
];
/// NDR, `8a885d04-1ceb-11c9-9fe8-08002b104860`, version 2.
pub const NDR: [u8; 20] = [
    0x04, 0x5d, 0x88, 0x8a, 0xeb, 0x1c, 0xc9, 0x11, 0x9f, 0xe8, 0x08, 0x00, 0x2b, 0x10, 0x48, 0x60,
    2, 0, 0, 0,
];

/// Kinds of PDUs.
mod kind {
    pub(super) const REQUEST: u8 = 0;
    pub(super) const RESPONSE: u8 = 2;
    pub(super) const FAULT: u8 = 3;
    pub(super) const BIND: u8 = 11;
    pub(super) const BIND_ACK: u8 = 12;
    pub(super) const ALTER_CONTEXT: u8 = 14;
    pub(super) const ALTER_CONTEXT_RESPONSE: u8 = 15;
}

/// Bytes of the header of a PDU.
const HEAD: usize = 16;
/// Bytes of a response before its stub.
const RESPONSE_HEAD: usize = 24;
const FIRST: u8 = 1;
const LAST: u8 = 2;
/// There is no such procedure.
const OP_RANGE_ERROR: u32 = 0x1c01_0002;
/// What came cannot be read.
const BAD_STUB: u32 = 0x0000_06f7;
/// Errors of Windows.
const INVALID_LEVEL: u32 = 124;
const NET_NAME_NOT_FOUND: u32 = 2310;

/// Procedures of `srvsvc`.
mod procedure {
    pub(super) const SHARE_ENUM: u16 = 15;
    pub(super) const SHARE_GET_INFO: u16 = 16;
    pub(super) const SERVER_GET_INFO: u16 = 21;
}

/// A share as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareInfo {
    /// Its name.
    pub name: String,
    /// STYPE: 0 for files, 0x80000003 for IPC$.
    pub kind: u32,
    /// What it is.
    pub remark: String,
}

/// What clients may query: the server and its shares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// The server's name.
    pub name: String,
    /// Its shares, as the caller may see them.
    pub shares: Vec<ShareInfo>,
}

/// One pipe: what was agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Association {
    /// Most bytes of a PDU to the client.
    fragment: usize,
}

impl Default for Association {
    fn default() -> Self {
        Self { fragment: SMB_RPC_FRAGMENT }
    }
}

fn head(out: &mut Vec<u8>, kind: u8, flags: u8, call: u32) -> usize {
    let at = out.len();
    out.extend_from_slice(&[5, 0, kind, flags, 0x10, 0, 0, 0]);
    0u32.put(out);
    call.put(out);
    at
}

fn finish(out: &mut [u8], at: usize) {
    let length = (out.len() - at) as u16;
    patch(out, at + 8, &length.to_le_bytes());
}

impl Association {
    /// Answers one PDU; there may be several then.
    ///
    /// # Errors
    /// [`SmbError`] if it is none: the pipe is of no use any more.
    pub fn answer(&mut self, pdu: &[u8], server: &Server) -> Result<Vec<u8>> {
        let mut r = Reader::new(pdu, "RPC");
        let [5, 0, kind, flags] = r.array::<4>()? else { return Err(SmbError::Value("RPC")) };
        let [0x10, ..] = r.array::<4>()? else { return Err(SmbError::Value("RPC")) };
        let (length, auth): (u16, u16) = (r.get()?, r.get()?);
        let call = r.get()?;
        if auth != 0 || flags & (FIRST | LAST) != FIRST | LAST || usize::from(length) < HEAD {
            return Err(SmbError::Value("RPC"));
        }
        let body = pdu.get(HEAD..length.into()).ok_or(SmbError::Short("RPC"))?;
        match kind {
            kind::BIND => self.bind(body, call, kind::BIND_ACK),
            kind::ALTER_CONTEXT => self.bind(body, call, kind::ALTER_CONTEXT_RESPONSE),
            kind::REQUEST => self.request(body, call, server),
            _ => Err(SmbError::Value("RPC")),
        }
    }

    fn bind(&mut self, body: &[u8], call: u32, answer: u8) -> Result<Vec<u8>> {
        let mut r = Reader::new(body, "bind");
        let (_send, receive, _group): (u16, u16, u32) = (r.get()?, r.get()?, r.get()?);
        let [count, ..] = r.array::<4>()?;
        if usize::from(count) > SMB_RPC_CONTEXTS_MAX {
            return Err(SmbError::Limit("bind"));
        }
        self.fragment = usize::from(receive).clamp(1024, SMB_RPC_FRAGMENT);
        let mut out = Vec::new();
        let at = head(&mut out, answer, FIRST | LAST, call);
        (SMB_RPC_FRAGMENT as u16).put(&mut out);
        (SMB_RPC_FRAGMENT as u16).put(&mut out);
        0x53f0u32.put(&mut out);
        let pipe = b"\\PIPE\\srvsvc\0";
        (pipe.len() as u16).put(&mut out);
        out.extend_from_slice(pipe);
        pad(&mut out, at, 4);
        out.extend_from_slice(&[count, 0, 0, 0]);
        for _ in 0..count {
            let (_id, syntaxes, _zero): (u16, u8, u8) = (r.get()?, r.get()?, r.get()?);
            let is_known = r.array::<20>()? == SRVSVC;
            let mut has_ndr = false;
            for _ in 0..syntaxes {
                has_ndr |= r.array::<20>()? == NDR;
            }
            // Refused: no such interface, or no such syntax.
            let (result, reason, syntax) = match (is_known, has_ndr) {
                (true, true) => (0u16, 0u16, NDR),
                (false, _) => (2, 1, [0; 20]),
                (true, false) => (2, 2, [0; 20]),
            };
            result.put(&mut out);
            reason.put(&mut out);
            out.extend_from_slice(&syntax);
        }
        finish(&mut out, at);
        Ok(out)
    }

    fn request(&self, body: &[u8], call: u32, server: &Server) -> Result<Vec<u8>> {
        let mut r = Reader::new(body, "request");
        let _hint: u32 = r.get()?;
        let (context, procedure): (u16, u16) = (r.get()?, r.get()?);
        let stub = r.rest();
        let done = match procedure {
            procedure::SHARE_ENUM => share_enum(stub, server),
            procedure::SHARE_GET_INFO => share_get_info(stub, server),
            procedure::SERVER_GET_INFO => server_get_info(stub, server),
            _ => return Ok(fault(call, context, OP_RANGE_ERROR)),
        };
        match done {
            Ok(stub) => Ok(self.response(call, context, &stub)),
            Err(_) => Ok(fault(call, context, BAD_STUB)),
        }
    }

    fn response(&self, call: u32, context: u16, stub: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let size = (self.fragment - RESPONSE_HEAD) & !7;
        let pieces: Vec<_> = stub.chunks(size).collect();
        let last = pieces.len().saturating_sub(1);
        for (number, piece) in pieces.into_iter().enumerate() {
            let flags = if number == 0 { FIRST } else { 0 } | if number == last { LAST } else { 0 };
            let at = head(&mut out, kind::RESPONSE, flags, call);
            (piece.len() as u32).put(&mut out);
            context.put(&mut out);
            0u16.put(&mut out);
            out.extend_from_slice(piece);
            finish(&mut out, at);
        }
        out
    }
}

fn fault(call: u32, context: u16, status: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let at = head(&mut out, kind::FAULT, FIRST | LAST, call);
    32u32.put(&mut out);
    context.put(&mut out);
    0u16.put(&mut out);
    status.put(&mut out);
    0u32.put(&mut out);
    finish(&mut out, at);
    out
}

// --- NDR -----------------------------------------------------------------------------------------

/// Reads values, each aligned.
struct Ndr<'a> {
    r: Reader<'a>,
    total: usize,
}

impl<'a> Ndr<'a> {
    fn new(stub: &'a [u8]) -> Self {
        Self { r: Reader::new(stub, "NDR"), total: stub.len() }
    }

    fn align(&mut self) -> Result<()> {
        let at = self.total - self.r.rest().len();
        self.r.take(at.next_multiple_of(4) - at).map(|_| ())
    }

    fn u32(&mut self) -> Result<u32> {
        self.align()?;
        self.r.get()
    }

    /// A conformant varying string, without its NUL.
    fn string(&mut self) -> Result<String> {
        let (_max, offset, count) = (self.u32()?, self.u32()?, self.u32()?);
        if offset != 0 {
            return Err(SmbError::Value("NDR"));
        }
        let bytes = (count as usize).checked_mul(2).ok_or(SmbError::Limit("NDR"))?;
        let mut text = utf16::decode(self.r.take(bytes)?)?;
        if text.ends_with('\0') {
            text.pop();
        }
        Ok(text)
    }

    /// A string behind a pointer that may be none.
    fn pointed(&mut self) -> Result<Option<String>> {
        match self.u32()? {
            0 => Ok(None),
            _ => self.string().map(Some),
        }
    }
}

fn put_string(out: &mut Vec<u8>, text: &str) {
    let text = utf16::encode(&format!("{text}\0"));
    let count = (text.len() / 2) as u32;
    count.put(out);
    0u32.put(out);
    count.put(out);
    out.extend_from_slice(&text);
    pad(out, 0, 4);
}

/// What a pointer that leads somewhere is.
const POINTER: u32 = 0x0002_0000;

fn share_enum(stub: &[u8], server: &Server) -> Result<Vec<u8>> {
    let mut ndr = Ndr::new(stub);
    let _server = ndr.pointed()?;
    let (level, _switch) = (ndr.u32()?, ndr.u32()?);
    let mut out = Vec::new();
    level.put(&mut out);
    level.put(&mut out);
    let count = server.shares.len() as u32;
    if level > 1 {
        0u32.put(&mut out);
        0u32.put(&mut out);
        0u32.put(&mut out);
        INVALID_LEVEL.put(&mut out);
        return Ok(out);
    }
    POINTER.put(&mut out);
    count.put(&mut out);
    POINTER.put(&mut out);
    count.put(&mut out);
    for share in &server.shares {
        put_share_head(&mut out, level, share);
    }
    for share in &server.shares {
        put_share_text(&mut out, level, share);
    }
    count.put(&mut out);
    // All of them: there is nothing to resume.
    0u32.put(&mut out);
    0u32.put(&mut out);
    Ok(out)
}

fn put_share_head(out: &mut Vec<u8>, level: u32, share: &ShareInfo) {
    POINTER.put(out);
    if level == 1 {
        share.kind.put(out);
        POINTER.put(out);
    }
}

fn put_share_text(out: &mut Vec<u8>, level: u32, share: &ShareInfo) {
    put_string(out, &share.name);
    if level == 1 {
        put_string(out, &share.remark);
    }
}

fn share_get_info(stub: &[u8], server: &Server) -> Result<Vec<u8>> {
    let mut ndr = Ndr::new(stub);
    let _server = ndr.pointed()?;
    let (name, level) = (ndr.string()?, ndr.u32()?);
    let mut out = Vec::new();
    level.put(&mut out);
    let share = server.shares.iter().find(|share| share.name.eq_ignore_ascii_case(&name));
    let error = match share {
        _ if level > 1 => INVALID_LEVEL,
        None => NET_NAME_NOT_FOUND,
        Some(share) => {
            POINTER.put(&mut out);
            put_share_head(&mut out, level, share);
            put_share_text(&mut out, level, share);
            0u32.put(&mut out);
            return Ok(out);
        }
    };
    0u32.put(&mut out);
    error.put(&mut out);
    Ok(out)
}

fn server_get_info(stub: &[u8], server: &Server) -> Result<Vec<u8>> {
    let mut ndr = Ndr::new(stub);
    let _server = ndr.pointed()?;
    let level = ndr.u32()?;
    let mut out = Vec::new();
    level.put(&mut out);
    if level != 100 && level != 101 {
        0u32.put(&mut out);
        INVALID_LEVEL.put(&mut out);
        return Ok(out);
    }
    POINTER.put(&mut out);
    // Of the kind of Windows NT.
    500u32.put(&mut out);
    POINTER.put(&mut out);
    if level == 101 {
        // Version 10.0; a workstation and a server.
        10u32.put(&mut out);
        0u32.put(&mut out);
        3u32.put(&mut out);
        POINTER.put(&mut out);
    }
    put_string(&mut out, &server.name);
    if level == 101 {
        put_string(&mut out, "");
    }
    0u32.put(&mut out);
    Ok(out)
}

// --- the other direction -----------------------------------------------------------------

/// BIND of a client to `srvsvc`.
pub fn bind(call: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let at = head(&mut out, kind::BIND, FIRST | LAST, call);
    (SMB_RPC_FRAGMENT as u16).put(&mut out);
    (SMB_RPC_FRAGMENT as u16).put(&mut out);
    0u32.put(&mut out);
    out.extend_from_slice(&[1, 0, 0, 0, 0, 0, 1, 0]);
    out.extend_from_slice(&SRVSVC);
    out.extend_from_slice(&NDR);
    finish(&mut out, at);
    out
}

/// NetrShareEnum of a client, at level 1.
pub fn list_shares(call: u32, server: &str) -> Vec<u8> {
    let mut stub = Vec::new();
    POINTER.put(&mut stub);
    put_string(&mut stub, server);
    for word in [1, 1, POINTER, 0, 0, u32::MAX, 0] {
        word.put(&mut stub);
    }
    let mut out = Vec::new();
    let at = head(&mut out, kind::REQUEST, FIRST | LAST, call);
    (stub.len() as u32).put(&mut out);
    0u16.put(&mut out);
    procedure::SHARE_ENUM.put(&mut out);
    out.extend_from_slice(&stub);
    finish(&mut out, at);
    out
}

/// The shares in an answer to [`list_shares`], which may be several PDUs.
///
/// # Errors
/// [`SmbError`].
pub fn shares(mut pdus: &[u8]) -> Result<Vec<ShareInfo>> {
    let mut stub = Vec::new();
    while !pdus.is_empty() {
        let mut r = Reader::at(pdus, 8, "RPC")?;
        let length = usize::from(r.get::<u16>()?);
        if length < RESPONSE_HEAD || pdus.get(2) != Some(&kind::RESPONSE) {
            return Err(SmbError::Value("RPC"));
        }
        let (pdu, behind) = pdus.split_at_checked(length).ok_or(SmbError::Short("RPC"))?;
        stub.extend_from_slice(pdu.get(RESPONSE_HEAD..).unwrap_or_default());
        pdus = behind;
    }
    let mut ndr = Ndr::new(&stub);
    let (level, _switch, _container) = (ndr.u32()?, ndr.u32()?, ndr.u32()?);
    let (count, _buffer, _max) = (ndr.u32()?, ndr.u32()?, ndr.u32()?);
    if level != 1 || count as usize > stub.len() / 12 {
        return Err(SmbError::Value("NDR"));
    }
    let mut kinds = Vec::new();
    for _ in 0..count {
        let (_name, kind, _remark) = (ndr.u32()?, ndr.u32()?, ndr.u32()?);
        kinds.push(kind);
    }
    let one = |kind| Ok(ShareInfo { kind, name: ndr.string()?, remark: ndr.string()? });
    kinds.into_iter().map(one).collect()
}
