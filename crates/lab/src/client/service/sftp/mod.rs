//! SFTP (draft-ietf-secsh-filexfer-02) over SSH: reads and writes of a file are in flight many at a
//! time, so that a distance does not count.

mod ssh;

use super::at::ServiceAt;
use super::{Failure, Session};
use crate::client::ClientError;
use base::limits::{LAB_SFTP_FLIGHT, LAB_SFTP_PIECE, LAB_SFTP_PIECE_COMMON};
use ssh::Channel;
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, TcpStream};
use wire::sftp::packet::{Hello, cut};
use wire::sftp::reply::{DATA_HEAD, StatusCode, data_begin};
use wire::sftp::request::{OfHandle, OfPath, Open, Read, SetByPath};
use wire::sftp::{Attrs, HandleBytes, OpenFlags, PacketType, PathBytes, Reply, Request};
use wire::sftp::{SFTP_VERSION, Str, begin_packet, end_packet};
use wire::xdr::{Decode, Encode, Reader, Writer};

/// Extension of OpenSSH that returns how large reads and writes may be (PROTOCOL, section 4.8).
const LIMITS: &[u8] = b"limits@openssh.com";

/// Bytes of an unwanted reply, discarded at a time.
const DISCARDED: usize = 4096;

/// A connection that is signed in.
pub struct SftpSession {
    channel: Channel,
    next_id: u32,
    out: Vec<u8>,
    /// Bytes of a read, of a write.
    pieces: (u32, u32),
    open: Option<File>,
    /// Handles of files of which parts are read: they are kept open.
    kept: HashMap<String, Vec<u8>>,
}

/// The file that is open.
struct File {
    handle: Vec<u8>,
    keep: Option<String>,
    /// The next byte that is asked for or written.
    at: u64,
    /// The byte behind the last that is wanted.
    end: u64,
    /// What is in flight, in order: the id, where, how much. Of writes only the id counts.
    flight: VecDeque<(u32, u64, u32)>,
    /// Answers that came out of turn.
    early: HashMap<u32, Vec<u8>>,
    /// What came out of turn and is not taken, from this byte on.
    ready: Vec<u8>,
    ready_at: usize,
    /// Bytes of the reply that is next in order which are still to come on the channel, or there.
    coming: usize,
    done: bool,
}

impl File {
    fn new(handle: Vec<u8>, at: u64, end: u64) -> Self {
        Self {
            handle,
            keep: None,
            at,
            end,
            flight: VecDeque::new(),
            early: HashMap::new(),
            ready: Vec::new(),
            ready_at: 0,
            coming: 0,
            done: false,
        }
    }

    /// What is left of an answer out of turn, or as much of it as there is room for.
    fn take_ready(&mut self, into: &mut [u8]) -> usize {
        let ready = self.ready.get(self.ready_at..).unwrap_or_default();
        let n = copy_front(ready, into);
        self.ready_at += n;
        n
    }
}

fn copy_front(from: &[u8], into: &mut [u8]) -> usize {
    let n = from.len().min(into.len());
    if let (Some(to), Some(from)) = (into.get_mut(..n), from.get(..n)) {
        to.copy_from_slice(from);
    }
    n
}

/// A reply that has outlived its packet.
enum OwnedReply {
    Status(StatusCode, String),
    Handle(Vec<u8>),
    Data(Vec<u8>),
    Names(Vec<String>),
    Size(Option<u64>),
    Extended(Vec<u8>),
}

fn wrong(why: impl std::fmt::Display) -> Failure {
    ClientError::Protocol(format!("SFTP: {why}")).into()
}

fn answer(what: &str, code: StatusCode, text: String) -> Failure {
    let name = format!("{code:?}");
    let text = if text.is_empty() { name } else { format!("{name}: {text}") };
    Failure::Answer { what: what.to_owned(), code: code.0, text }
}

impl SftpSession {
    /// Connects and signs in.
    ///
    /// # Errors
    /// The server cannot be reached, is not the one expected, or does not let the user in.
    pub fn open(at: &ServiceAt, bind: Option<IpAddr>) -> Result<Self, ClientError> {
        let channel = Channel::open(at, bind)?;
        let (out, kept) = (Vec::new(), HashMap::new());
        let pieces = (LAB_SFTP_PIECE_COMMON, LAB_SFTP_PIECE_COMMON);
        let mut it = Self { channel, next_id: 0, out, pieces, open: None, kept };
        it.begin()?;
        Ok(it)
    }

    fn begin(&mut self) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        let w = &mut Writer::new(&mut bytes);
        let begun = begin_packet(w, PacketType::INIT);
        Hello { version: SFTP_VERSION, extensions: Vec::new() }.encode(w);
        end_packet(w, begun, 0);
        self.channel.send(&bytes)?;
        let limits = self.packet(|kind, body| {
            if kind != PacketType::VERSION {
                return Err(wrong("the server does not begin with its version"));
            }
            let hello = Hello::decode(&mut Reader::new(body)).map_err(wrong)?;
            Ok(hello.extensions.iter().any(|(name, _)| name.0 == LIMITS))
        })?;
        if limits {
            self.ask_limits()?;
        }
        Ok(())
    }

    /// `max-packet-length`, `max-read-length`, `max-write-length`, `max-open-handles`.
    fn ask_limits(&mut self) -> Result<(), Failure> {
        let id = self.id();
        let mut bytes = Vec::new();
        let w = &mut Writer::new(&mut bytes);
        let begun = begin_packet(w, PacketType::EXTENDED);
        w.u32(id);
        Str(LIMITS).encode(w);
        end_packet(w, begun, 0);
        self.channel.send(&bytes)?;
        if let OwnedReply::Extended(body) = self.reply(id)? {
            let r = &mut Reader::new(&body);
            let numbers = [r.u64("packet"), r.u64("read"), r.u64("write")];
            let piece = |n: &Result<u64, _>| match n {
                Ok(n) if *n > 0 => u32::try_from(*n).unwrap_or(u32::MAX).min(LAB_SFTP_PIECE),
                _ => LAB_SFTP_PIECE_COMMON,
            };
            let [_, read, write] = &numbers;
            self.pieces = (piece(read), piece(write));
        }
        Ok(())
    }

    fn id(&mut self) -> u32 {
        self.next_id = self.next_id.wrapping_add(1);
        self.next_id
    }

    fn request(&mut self, request: &Request<'_>) -> Result<u32, Failure> {
        let id = self.id();
        self.out.clear();
        request.put(&mut Writer::new(&mut self.out), id);
        self.channel.send(&self.out)?;
        Ok(id)
    }

    /// The next packet, as `look` sees it.
    fn packet<T>(
        &mut self,
        look: impl FnOnce(PacketType, &[u8]) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        loop {
            if let Ok(packet) = cut(self.channel.data()).map_err(wrong)? {
                let consumed = packet.consumed;
                let seen = look(packet.kind, packet.body)?;
                self.channel.taken(consumed)?;
                return Ok(seen);
            }
            self.channel.more()?;
        }
    }

    /// The next reply: its id and its content.
    fn next(&mut self) -> Result<(u32, OwnedReply), Failure> {
        self.packet(|kind, body| {
            let r = &mut Reader::new(body);
            let id = r.u32("id").map_err(wrong)?;
            let reply = Reply::decode(kind, r).map_err(wrong)?;
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let received = match reply.ok_or_else(|| wrong("a packet that is not a reply"))? {
                Reply::Status(status) => OwnedReply::Status(status.code, text(status.message.0)),
                Reply::Handle(handle) => OwnedReply::Handle(handle.0.to_vec()),
                Reply::Data(data) => OwnedReply::Data(data.0.to_vec()),
                Reply::Name(names) => {
                    OwnedReply::Names(names.0.iter().map(|name| text(name.filename.0)).collect())
                }
                Reply::Attrs(attrs) => OwnedReply::Size(attrs.size),
                Reply::Extended(body) => OwnedReply::Extended(body.to_vec()),
            };
            Ok((id, received))
        })
    }

    /// The reply to the only request that is in flight.
    fn reply(&mut self, id: u32) -> Result<OwnedReply, Failure> {
        match self.next()? {
            (of, received) if of == id => Ok(received),
            _ => Err(wrong("a reply to nothing")),
        }
    }

    fn ask(&mut self, request: &Request<'_>) -> Result<OwnedReply, Failure> {
        let id = self.request(request)?;
        self.reply(id)
    }

    /// Asks for something that is answered by a status.
    fn done(&mut self, what: &str, request: &Request<'_>) -> Result<(), Failure> {
        match self.ask(request)? {
            OwnedReply::Status(StatusCode::OK, _) => Ok(()),
            OwnedReply::Status(code, text) => Err(answer(what, code, text)),
            _ => Err(wrong("a reply of the wrong kind")),
        }
    }

    fn handle(&mut self, what: &str, request: &Request<'_>) -> Result<Vec<u8>, Failure> {
        match self.ask(request)? {
            OwnedReply::Handle(handle) => Ok(handle),
            OwnedReply::Status(code, text) => Err(answer(what, code, text)),
            _ => Err(wrong("a reply of the wrong kind")),
        }
    }

    fn close(&mut self, handle: &[u8]) -> Result<(), Failure> {
        self.done("close a file", &Request::Close(OfHandle { handle: HandleBytes(handle) }))
    }

    fn file(&mut self) -> Result<File, Failure> {
        self.open.take().ok_or_else(|| wrong("no file is open"))
    }

    /// Asks ahead, as far as the file is wanted.
    fn ask_ahead(&mut self, file: &mut File) -> Result<(), Failure> {
        let most = (LAB_SFTP_FLIGHT / self.pieces.0 as usize).max(1);
        while file.flight.len() < most && file.at < file.end && !file.done {
            let len = u64::from(self.pieces.0).min(file.end - file.at) as u32;
            let id = self.read_at(&file.handle, file.at, len)?;
            file.flight.push_back((id, file.at, len));
            file.at += u64::from(len);
        }
        Ok(())
    }

    fn read_at(&mut self, handle: &[u8], offset: u64, len: u32) -> Result<u32, Failure> {
        self.request(&Request::Read(Read { handle: HandleBytes(handle), offset, len }))
    }

    /// The next piece of a file in its order: what came early becomes what is ready, what comes now
    /// is taken from the channel as it comes.
    fn next_piece(&mut self, file: &mut File) -> Result<(), Failure> {
        self.ask_ahead(file)?;
        let Some((id, offset, len)) = file.flight.pop_front() else {
            file.done = true;
            return Ok(());
        };
        let got = loop {
            if let Some(data) = file.early.remove(&id) {
                (file.ready, file.ready_at) = (data, 0);
                break file.ready.len();
            }
            if let Some(count) = self.begins(id)? {
                file.coming = count;
                break count;
            }
            self.keep_next(file, id)?;
        };
        let got = u32::try_from(got).ok().filter(|got| *got <= len);
        let got = got.ok_or_else(|| wrong("more data than was asked for"))?;
        if got == 0 {
            file.done = true;
        } else if got < len {
            // Fewer than asked for, before the end: what is missing comes next.
            let (offset, len) = (offset + u64::from(got), len - got);
            let id = self.read_at(&file.handle, offset, len)?;
            file.flight.push_front((id, offset, len));
        }
        Ok(())
    }

    /// Waits until it is known what comes next: the data of this READ, and how many bytes of it
    /// follow on the channel, or a whole packet with anything else.
    fn begins(&mut self, id: u32) -> Result<Option<usize>, Failure> {
        loop {
            let held = self.channel.data();
            if let Some((of, count)) = data_begin(held)
                && of == id
            {
                self.channel.taken(DATA_HEAD)?;
                return Ok(Some(count));
            }
            if cut(held).map_err(wrong)?.is_ok() {
                return Ok(None);
            }
            self.channel.more()?;
        }
    }

    /// Keeps the next answer, which must be to this READ or to one in flight.
    fn keep_next(&mut self, file: &mut File, id: u32) -> Result<(), Failure> {
        let (of, received) = self.next()?;
        let data = match received {
            OwnedReply::Data(data) => data,
            OwnedReply::Status(StatusCode::EOF, _) => Vec::new(),
            OwnedReply::Status(code, text) => return Err(answer("read a file", code, text)),
            _ => return Err(wrong("a reply of the wrong kind")),
        };
        if of != id && !file.flight.iter().any(|f| f.0 == of) {
            return Err(wrong("a reply to nothing"));
        }
        file.early.insert(of, data);
        Ok(())
    }

    /// Takes the received part of the reply that is next in order; waits for some of it.
    fn take_coming(&mut self, file: &mut File, into: &mut [u8]) -> Result<usize, Failure> {
        while self.channel.data().is_empty() {
            self.channel.more()?;
        }
        let held = self.channel.data();
        let n = copy_front(held.get(..file.coming).unwrap_or(held), into);
        self.channel.taken(n)?;
        file.coming -= n;
        Ok(n)
    }

    /// The answers to writes that are in flight, until no more than `most` are.
    fn settle(&mut self, file: &mut File, most: usize) -> Result<(), Failure> {
        while file.flight.len() > most {
            let (of, received) = self.next()?;
            let Some(at) = file.flight.iter().position(|f| f.0 == of) else {
                return Err(wrong("a reply to nothing"));
            };
            file.flight.remove(at);
            match received {
                OwnedReply::Status(StatusCode::OK, _) => {}
                OwnedReply::Status(code, text) => return Err(answer("write a file", code, text)),
                _ => return Err(wrong("a reply of the wrong kind")),
            }
        }
        Ok(())
    }

    fn put(&mut self, file: &mut File, bytes: &[u8]) -> Result<(), Failure> {
        let most = (LAB_SFTP_FLIGHT / self.pieces.1 as usize).max(1);
        for piece in bytes.chunks(self.pieces.1 as usize) {
            self.settle(file, most)?;
            let id = self.id();
            self.out.clear();
            let w = &mut Writer::new(&mut self.out);
            let begun = begin_packet(w, PacketType::WRITE);
            w.u32(id);
            HandleBytes(&file.handle).encode(w);
            w.u64(file.at);
            w.u32(piece.len() as u32);
            // The data follows from where it lies.
            end_packet(w, begun, piece.len());
            self.channel.send(&self.out)?;
            self.channel.send(piece)?;
            file.flight.push_back((id, file.at, piece.len() as u32));
            file.at += piece.len() as u64;
        }
        Ok(())
    }
}

fn path_of(path: &str) -> PathBytes<'_> {
    PathBytes(if path.is_empty() { b"/" } else { path.as_bytes() })
}

fn if_there<T>(done: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match done {
        Err(Failure::Answer { code, .. }) if code == StatusCode::NO_SUCH_FILE.0 => Ok(None),
        done => done.map(Some),
    }
}

impl Session for SftpSession {
    fn null(&mut self) -> Result<(), Failure> {
        match self.ask(&Request::Realpath(OfPath { path: path_of("") }))? {
            OwnedReply::Names(_) => Ok(()),
            OwnedReply::Status(code, text) => Err(answer("do nothing", code, text)),
            _ => Err(wrong("a reply of the wrong kind")),
        }
    }

    fn size(&mut self, path: &str) -> Result<Option<u64>, Failure> {
        match self.ask(&Request::Stat(OfPath { path: path_of(path) }))? {
            OwnedReply::Size(size) => Ok(Some(size.unwrap_or(0))),
            OwnedReply::Status(StatusCode::NO_SUCH_FILE, _) => Ok(None),
            OwnedReply::Status(code, text) => Err(answer("look at a file", code, text)),
            _ => Err(wrong("a reply of the wrong kind")),
        }
    }

    fn make_folder(&mut self, path: &str, new: bool) -> Result<(), Failure> {
        let args = SetByPath { path: path_of(path), attrs: Attrs::default() };
        match self.done("make a folder", &Request::Mkdir(args)) {
            // Version 3 has no status for what exists already; a look at the path shows it.
            Err(Failure::Answer { what, code, text }) => match new || self.size(path)?.is_none() {
                true => Err(Failure::Answer { what, code, text }),
                false => Ok(()),
            },
            made => made,
        }
    }

    fn remove(&mut self, path: &str, folder: bool) -> Result<(), Failure> {
        if let Some(handle) = self.kept.remove(path) {
            self.close(&handle)?;
        }
        let args = OfPath { path: path_of(path) };
        let request = if folder { Request::Rmdir(args) } else { Request::Remove(args) };
        if_there(self.done("remove", &request)).map(drop)
    }

    fn names(&mut self, path: &str) -> Result<Option<Vec<String>>, Failure> {
        let opened =
            self.handle("list a folder", &Request::Opendir(OfPath { path: path_of(path) }));
        let Some(handle) = if_there(opened)? else { return Ok(None) };
        let mut all = Vec::new();
        loop {
            match self.ask(&Request::Readdir(OfHandle { handle: HandleBytes(&handle) }))? {
                OwnedReply::Names(names) => all.extend(names),
                OwnedReply::Status(StatusCode::EOF, _) => break,
                OwnedReply::Status(code, text) => return Err(answer("list a folder", code, text)),
                _ => return Err(wrong("a reply of the wrong kind")),
            }
        }
        self.close(&handle)?;
        all.retain(|name| name != "." && name != "..");
        Ok(Some(all))
    }

    fn open_read(&mut self, path: &str, offset: u64, len: Option<u64>) -> Result<(), Failure> {
        let keep = len.map(|_| path.to_owned());
        let kept = keep.as_ref().and_then(|path| self.kept.remove(path));
        let handle = match kept {
            Some(handle) => handle,
            None => {
                let (filename, attrs) = (path_of(path), Attrs::default());
                let args = Open { filename, pflags: OpenFlags::READ, attrs };
                self.handle("read a file", &Request::Open(args))?
            }
        };
        let end = len.map_or(u64::MAX, |len| offset.saturating_add(len));
        let end = match len {
            // A file that is read whole is not requested beyond its end.
            None => match self.ask(&Request::Fstat(OfHandle { handle: HandleBytes(&handle) }))? {
                OwnedReply::Size(Some(size)) => size,
                _ => end,
            },
            Some(_) => end,
        };
        self.open = Some(File { keep, ..File::new(handle, offset, end) });
        Ok(())
    }

    fn read(&mut self, into: &mut [u8]) -> Result<usize, Failure> {
        let mut file = self.file()?;
        let n = loop {
            let n = match file.coming {
                0 => file.take_ready(into),
                _ => self.take_coming(&mut file, into)?,
            };
            if n > 0 || file.done || into.is_empty() {
                break n;
            }
            self.next_piece(&mut file)?;
        };
        self.open = Some(file);
        Ok(n)
    }

    fn close_read(&mut self) -> Result<(), Failure> {
        let mut file = self.file()?;
        while file.coming > 0 {
            self.take_coming(&mut file, &mut [0; DISCARDED])?;
        }
        // Whatever was asked ahead is answered, wanted or not.
        let waiting = file.flight.iter().filter(|f| !file.early.contains_key(&f.0)).count();
        for _ in 0..waiting {
            self.next()?;
        }
        match file.keep.take() {
            Some(path) if self.kept.len() < base::limits::LAB_SFTP_KEPT => {
                self.kept.insert(path, file.handle);
                Ok(())
            }
            _ => self.close(&file.handle),
        }
    }

    fn open_write(&mut self, path: &str, size: u64) -> Result<(), Failure> {
        let pflags = OpenFlags::WRITE.with(OpenFlags::CREAT).with(OpenFlags::TRUNC);
        let args = Open { filename: path_of(path), pflags, attrs: Attrs::default() };
        let handle = self.handle("write a file", &Request::Open(args))?;
        self.open = Some(File::new(handle, 0, size));
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let mut file = self.file()?;
        self.put(&mut file, bytes)?;
        self.open = Some(file);
        Ok(())
    }

    fn close_write(&mut self) -> Result<(), Failure> {
        let mut file = self.file()?;
        self.settle(&mut file, 0)?;
        self.close(&file.handle)
    }

    fn socket(&self) -> Option<&TcpStream> {
        Some(self.channel.socket())
    }

    fn cipher(&self) -> Option<String> {
        self.channel.cipher()
    }
}
