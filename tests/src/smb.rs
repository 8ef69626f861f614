//! A client of SMB: blocking, one connection. It sends the caller's requests, whether a client may
//! or not; and a relay between a client and a server that alters what passes.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use wire::smb::codec::{Field, pad, patch};
use wire::smb::create::{self, CloseRequest, Disposition, FileId, access, options, share_access};
use wire::smb::crypto::{Keys, Preauth};
use wire::smb::frame::{PREFIX, length, prefix};
use wire::smb::header::{
    Command, HEADER, Header, MAGIC_TRANSFORM, Messages, SIGNATURE, TRANSFORM, flags,
};
use wire::smb::negotiate::{self, Cipher, Contexts, Dialect, Signing, capabilities};
use wire::smb::status::NtStatus;
use wire::smb::{class, info, io as data, ioctl, session, tree, utf16};

use crate::tcp::connect_from;

pub mod caching;
pub mod relay;
pub mod scene;
pub mod sign_in;

/// Most bytes of a frame.
const FRAME_MAX: usize = 16 << 20;
/// Bytes that one credit is good for.
const CREDIT: usize = 64 << 10;
/// CreditRequest of each request.
const CREDITS: u16 = 64;

/// What a client offers in NEGOTIATE.
#[derive(Debug, Clone)]
pub struct Offer {
    /// Versions.
    pub dialects: Vec<Dialect>,
    /// Ciphers, the best first; without any there is no context of ciphers.
    pub ciphers: Vec<Cipher>,
    /// Algorithms that sign, the best first.
    pub signings: Vec<Signing>,
    /// ClientGuid.
    pub client: [u8; 16],
}

impl Default for Offer {
    /// Everything.
    fn default() -> Self {
        let dialects = Dialect::SERVED.to_vec();
        let (ciphers, signings) = (Cipher::ALL.to_vec(), Signing::ALL.to_vec());
        Self { dialects, ciphers, signings, client: [7; 16] }
    }
}

impl Offer {
    /// One version only.
    pub fn only(dialect: Dialect) -> Self {
        Self { dialects: vec![dialect], ..Self::default() }
    }

    fn request(&self) -> negotiate::Request {
        let numbers = |list: Vec<u16>| (!list.is_empty()).then_some(list);
        negotiate::Request {
            security_mode: negotiate::security_mode::ENABLED,
            capabilities: capabilities::LARGE_MTU | capabilities::ENCRYPTION,
            client_guid: self.client,
            dialects: self.dialects.clone(),
            contexts: Contexts {
                salt: Some(vec![5; 32]),
                ciphers: numbers(self.ciphers.iter().map(|cipher| *cipher as u16).collect()),
                signings: numbers(self.signings.iter().map(|signing| *signing as u16).collect()),
            },
        }
    }
}

/// How requests are protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// Not at all.
    None,
    /// Signed.
    Signed,
    /// Encrypted.
    Sealed,
}

/// A response.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Its header.
    pub header: Header,
    /// It, from its header on.
    pub message: Vec<u8>,
}

impl Answer {
    /// Its status.
    pub fn status(&self) -> NtStatus {
        NtStatus(self.header.status)
    }
}

/// A body, to be appended to a message that begins at the first byte.
pub type Body<'a> = &'a dyn Fn(&mut Vec<u8>);

/// A connection.
pub struct Smb {
    stream: TcpStream,
    input: Vec<u8>,
    /// The number of the next request.
    pub next_id: u64,
    /// The session that requests are of.
    pub session: u64,
    /// The tree that requests are of.
    pub tree: u32,
    /// How requests are protected.
    pub protection: Protection,
    /// Whether the server's signature under a sign-in is not looked at.
    pub trusts: bool,
    /// The server's response to NEGOTIATE.
    pub negotiated: negotiate::Response,
    offer: negotiate::Request,
    preauth: Preauth,
    keys: Option<Keys>,
    nonce: u64,
}

impl Smb {
    /// Connects from an address of this machine and negotiates.
    ///
    /// # Errors
    /// The connection ends, or the server refuses the offer.
    pub fn connect(from: IpAddr, to: SocketAddr, offer: &Offer) -> io::Result<Self> {
        let mut stream = connect_from(from, to)?;
        let offer = offer.request();
        let mut request = message(Command::NEGOTIATE, (0, 0), (0, 0));
        offer.put(&mut request, 0);
        stream.write_all(&framed(&request))?;
        let mut input = Vec::new();
        let response = frame(&mut stream, &mut input)?;
        let header = Header::decode(&response).map_err(io::Error::other)?;
        if header.status != NtStatus::SUCCESS.0 {
            return Err(io::Error::other(format!("NEGOTIATE: {:x}", header.status)));
        }
        let mut preauth = Preauth::default();
        preauth.update(&request);
        preauth.update(&response);
        let negotiated = negotiate::Response::decode(&response).map_err(io::Error::other)?;
        Ok(Self {
            stream,
            input,
            next_id: 1,
            session: 0,
            tree: 0,
            protection: Protection::None,
            trusts: false,
            negotiated,
            offer,
            preauth,
            keys: None,
            nonce: 0,
        })
    }

    /// Connects, signs in, and connects to a share.
    ///
    /// # Errors
    /// Something of that is refused.
    pub fn open(
        (from, to): (IpAddr, SocketAddr),
        offer: &Offer,
        (user, password): (&str, &str),
        share: &str,
    ) -> io::Result<Self> {
        let mut smb = Self::connect(from, to, offer)?;
        match smb.sign_in(user, password)? {
            NtStatus::SUCCESS => {}
            refused => return Err(io::Error::other(format!("sign-in: {refused:?}"))),
        }
        match smb.connect_tree(share)? {
            Ok(_) => Ok(smb),
            Err(refused) => Err(io::Error::other(format!("TREE_CONNECT: {refused:?}"))),
        }
    }

    /// A request with the next number, not protected yet. Its charge is that of `size` bytes.
    pub fn request(&mut self, command: Command, size: usize, body: Body<'_>) -> Vec<u8> {
        let charge = size.div_ceil(CREDIT).max(1) as u16;
        let ids = (self.next_id, charge);
        self.next_id = self.next_id.wrapping_add(u64::from(charge));
        let mut request = message(command, ids, (self.session, self.tree));
        body(&mut request);
        request
    }

    /// Sends requests as one compound, protected.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn send(&mut self, requests: &[Vec<u8>]) -> io::Result<()> {
        let whole = self.protect(requests);
        self.stream.write_all(&framed(&whole))
    }

    /// A compound, protected, as it is sent but for its length.
    ///
    /// # Panics
    /// When it is to be protected and there are no keys.
    pub fn protect(&mut self, requests: &[Vec<u8>]) -> Vec<u8> {
        let mut whole = Vec::new();
        for (number, request) in requests.iter().enumerate() {
            let mut one = request.clone();
            if number + 1 < requests.len() {
                pad(&mut one, 0, 8);
                let next = one.len() as u32;
                patch(&mut one, 20, &next.to_le_bytes());
            }
            if self.protection == Protection::Signed {
                one[16] |= flags::SIGNED as u8;
                let keys = self.keys.as_ref().expect("keys");
                keys.signer.seal(&mut one).expect("a signature");
            }
            whole.extend(one);
        }
        if self.protection == Protection::Sealed {
            let mut sealed = vec![0; TRANSFORM];
            sealed.extend(whole);
            self.nonce += 1;
            let keys = self.keys.as_ref().expect("keys");
            let (_, ours) = keys.sealers.as_ref().expect("a cipher");
            ours.seal(&mut sealed, self.session, self.nonce).expect("a sealed message");
            return sealed;
        }
        whole
    }

    /// The connection itself.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends what the connection takes now of these bytes, as they are.
    pub fn write_some(&mut self, bytes: &[u8]) {
        let _ = self.stream.set_nonblocking(true);
        let mut rest = bytes;
        let until = Instant::now() + Duration::from_secs(5);
        while !rest.is_empty() && Instant::now() < until {
            match self.stream.write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => std::thread::yield_now(),
                Err(_) => break,
            }
        }
        let _ = self.stream.set_nonblocking(false);
    }

    /// The responses of the next frame; their signatures must be right.
    ///
    /// # Errors
    /// The connection has ended, or what came is no answer.
    pub fn receive(&mut self) -> io::Result<Vec<Answer>> {
        let mut bytes = frame(&mut self.stream, &mut self.input)?;
        let mut from = 0;
        if bytes.starts_with(&MAGIC_TRANSFORM) {
            let keys = self.keys.as_ref().ok_or_else(|| io::Error::other("sealed"))?;
            let (theirs, _) = keys.sealers.as_ref().ok_or_else(|| io::Error::other("sealed"))?;
            theirs.open(&mut bytes).map_err(io::Error::other)?;
            from = TRANSFORM;
        }
        let mut answers = Vec::new();
        for one in Messages::new(&bytes[from..]) {
            let (header, message) = one.map_err(io::Error::other)?;
            // The refusal of a session that is gone has no key.
            let is_refused = header.status == NtStatus::USER_SESSION_DELETED.0;
            if header.has(flags::SIGNED)
                && !is_refused
                && let Some(keys) = &self.keys
            {
                keys.signer.verify(&mut message.to_vec()).map_err(io::Error::other)?;
            }
            answers.push(Answer { header, message: message.to_vec() });
        }
        Ok(answers)
    }

    /// Sends a request and takes its answer; that it takes longer is none.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn call(&mut self, command: Command, size: usize, body: Body<'_>) -> io::Result<Answer> {
        let request = self.request(command, size, body);
        self.send(&[request])?;
        self.answer()
    }

    /// Sends this number of ECHO requests, each of which is answered with more credits.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn earn_credits(&mut self, echoes: usize) -> io::Result<()> {
        (0..echoes).try_for_each(|_| self.echo().map(drop))
    }

    /// The next answer; that a request takes longer is none.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn answer(&mut self) -> io::Result<Answer> {
        loop {
            let answer = self.receive()?.pop().ok_or_else(|| io::Error::other("no answer"))?;
            if answer.status() != NtStatus::PENDING {
                return Ok(answer);
            }
        }
    }

    /// Waits for the end of the connection; answers that come before it are lost.
    ///
    /// # Errors
    /// It does not end in time.
    pub fn ends(&mut self) -> io::Result<()> {
        loop {
            match frame(&mut self.stream, &mut self.input) {
                Ok(_) => {}
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock) => return Err(e),
                Err(_) => return Ok(()),
            }
        }
    }

    /// The server's answer to VALIDATE_NEGOTIATE (MS-SMB2 §3.2.5.5).
    ///
    /// # Errors
    /// The connection has ended.
    pub fn validate(&mut self) -> io::Result<Answer> {
        let mut input = Vec::new();
        self.offer.capabilities.put(&mut input);
        self.offer.client_guid.put(&mut input);
        self.offer.security_mode.put(&mut input);
        (self.offer.dialects.len() as u16).put(&mut input);
        self.offer.dialects.iter().for_each(|dialect| dialect.0.put(&mut input));
        self.control(ioctl::code::VALIDATE_NEGOTIATE, FileId::RELATED, &input, 24)
    }

    /// IOCTL.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn control(
        &mut self,
        code: u32,
        file: FileId,
        input: &[u8],
        output_max: u32,
    ) -> io::Result<Answer> {
        let flags = ioctl::IS_FSCTL;
        let request = ioctl::Request { code, file, output_max, flags, input };
        self.call(Command::IOCTL, output_max as usize, &|out| request.put(out))
    }

    /// TREE_CONNECT; requests are of it from then on.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn connect_tree(&mut self, share: &str) -> io::Result<Result<tree::Response, NtStatus>> {
        let path = utf16::encode(&format!("\\\\server\\{share}"));
        let answer = self.call(Command::TREE_CONNECT, 0, &|out| {
            tree::Request { flags: 0, path: &path }.put(out)
        })?;
        if answer.status() != NtStatus::SUCCESS {
            return Ok(Err(answer.status()));
        }
        self.tree = answer.header.tree_id();
        Ok(Ok(tree::Response::decode(&answer.message).map_err(io::Error::other)?))
    }

    /// CREATE.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn create(&mut self, ask: &Ask<'_>) -> io::Result<Result<FileId, NtStatus>> {
        let answer = self.call(Command::CREATE, 0, &|out| ask.put(out))?;
        if answer.status() != NtStatus::SUCCESS {
            return Ok(Err(answer.status()));
        }
        let response = create::Response::decode(&answer.message).map_err(io::Error::other)?;
        Ok(Ok(response.file))
    }

    /// CLOSE.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn close(&mut self, file: FileId) -> io::Result<NtStatus> {
        let close = CloseRequest { flags: 0, reserved: 0, file };
        Ok(self.call(Command::CLOSE, 0, &|out| close.put_body(out))?.status())
    }

    /// WRITE; with [`data::WRITE_THROUGH`] it is on disk then.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn write(
        &mut self,
        file: FileId,
        offset: u64,
        bytes: &[u8],
        flags: u32,
    ) -> io::Result<NtStatus> {
        let write = data::WriteRequest { offset, file, flags, data: bytes };
        Ok(self.call(Command::WRITE, bytes.len(), &|out| write.put(out))?.status())
    }

    /// READ.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn read(
        &mut self,
        file: FileId,
        offset: u64,
        length: u32,
    ) -> io::Result<Result<Vec<u8>, NtStatus>> {
        let read = data::ReadRequest { length, offset, file, minimum: 0 };
        let answer = self.call(Command::READ, length as usize, &|out| read.put(out))?;
        if answer.status() != NtStatus::SUCCESS {
            return Ok(Err(answer.status()));
        }
        Ok(Ok(data::read_data(&answer.message).map_err(io::Error::other)?.to_vec()))
    }

    /// FLUSH.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn flush(&mut self, file: FileId) -> io::Result<NtStatus> {
        let flush = data::FlushRequest { reserved: [0; 6], file };
        Ok(self.call(Command::FLUSH, 0, &|out| flush.put_body(out))?.status())
    }

    /// SET_INFO of a class of files.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn set(&mut self, file: FileId, class: u8, content: &[u8]) -> io::Result<NtStatus> {
        let body = set_info(file, class, content);
        Ok(self.call(Command::SET_INFO, content.len(), &body)?.status())
    }

    /// ECHO.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn echo(&mut self) -> io::Result<NtStatus> {
        let empty = session::Empty { reserved: 0 };
        Ok(self.call(Command::ECHO, 0, &|out| empty.put_body(out))?.status())
    }
}

/// A body of SET_INFO.
pub fn set_info(file: FileId, class: u8, content: &[u8]) -> impl Fn(&mut Vec<u8>) {
    let content = content.to_vec();
    move |out| {
        let info_type = info::info_type::FILE;
        let set = info::SetRequest { info_type, class, additional: 0, file, data: &content };
        set.put(out);
    }
}

/// What FileRenameInformation and FileLinkInformation carry.
pub fn new_name(path: &str, replace: bool) -> Vec<u8> {
    let (name, mut content) = (utf16::encode(path), Vec::new());
    class::NewName { replace, name: &name }.put(&mut content);
    content
}

/// What is asked of CREATE.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// The path in the share, with `\`.
    pub path: &'a str,
    /// Rights.
    pub access: u32,
    /// What others may.
    pub share: u32,
    /// What to do if it is there, or not.
    pub disposition: Disposition,
    /// CreateOptions.
    pub options: u32,
}

/// Rights to do everything with a file.
pub const EVERYTHING: u32 = access::READ | access::WRITE | access::DELETE;
/// Others may do everything.
pub const SHARED: u32 = share_access::READ | share_access::WRITE | share_access::DELETE;

impl<'a> Ask<'a> {
    /// For all access, shared with others; it must be there.
    pub const fn open(path: &'a str) -> Self {
        let disposition = Disposition::Open;
        Self { path, access: EVERYTHING, share: SHARED, disposition, options: 0 }
    }

    /// The same; it must not be there.
    pub const fn make(path: &'a str) -> Self {
        Self { disposition: Disposition::Create, ..Self::open(path) }
    }

    /// With these CreateOptions.
    pub const fn with(self, options: u32) -> Self {
        Self { options, ..self }
    }

    /// A directory.
    pub const fn dir(self) -> Self {
        Self { options: self.options | options::DIRECTORY, ..self }
    }

    /// Appends the body.
    pub fn put(&self, out: &mut Vec<u8>) {
        let name = utf16::encode(self.path);
        let request = create::Request {
            oplock: 0,
            impersonation: 2,
            access: self.access,
            attributes: 0,
            share: self.share,
            disposition: self.disposition as u32,
            options: self.options,
            name: &name,
            contexts: &[],
        };
        request.put(out, 0);
    }
}

/// A request's header; its number and charge, its session and tree.
pub fn message(
    command: Command,
    (message_id, credit_charge): (u64, u16),
    (session_id, tree): (u64, u32),
) -> Vec<u8> {
    let header = Header {
        credit_charge,
        status: 0,
        command,
        credits: CREDITS,
        flags: 0,
        next: 0,
        message_id,
        id: u64::from(tree) << 32,
        session_id,
        signature: [0; 16],
    };
    let mut out = Vec::with_capacity(HEADER);
    header.put(&mut out);
    out
}

/// Makes a request one that is related to the one before it.
pub fn related(request: &mut [u8]) {
    request[16] |= flags::RELATED as u8;
}

/// A message behind its length.
///
/// # Panics
/// When it is too long for one.
pub fn framed(message: &[u8]) -> Vec<u8> {
    let head = prefix(message.len()).expect("a length of 24 bits");
    [&head[..], message].concat()
}

/// The next frame.
fn frame(stream: &mut TcpStream, input: &mut Vec<u8>) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        if let Some((head, rest)) = input.split_first_chunk::<PREFIX>() {
            let size = length(*head, FRAME_MAX).map_err(io::Error::other)?;
            if let Some(frame) = rest.get(..size) {
                let frame = frame.to_vec();
                input.drain(..PREFIX + size);
                return Ok(frame);
            }
        }
        match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => input.extend_from_slice(&buffer[..count]),
        }
    }
}

/// Where the signature of a message is, for tests that alter it.
pub const SIGNATURE_AT: usize = SIGNATURE.start;
