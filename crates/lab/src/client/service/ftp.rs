//! FTP and FTPS (RFC 959, 2228, 2428, 4217): passive mode, image type, one data connection per
//! file. Data connections take up the TLS session of the control connection, which servers may
//! insist on.

use super::at::{Scheme, ServiceAt};
use super::socket::Stream;
use super::tls::Tls;
use super::{Failure, Session};
use crate::client::ClientError;
use base::limits::{LAB_LIST_MAX, LAB_STREAM_BUFFER};
use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream};
use wire::ftp::addr;
use wire::ftp::facts;
use wire::ftp::reply::{self, Reply};
use wire::ftp::request::{Epsv, Request, Type};
use wire::ftp::verb::Verb;

/// Bytes of replies received at a time.
const REPLY_BYTES: usize = 4096;
/// File unavailable: not there, or not allowed (RFC 959 §4.2.2).
const UNAVAILABLE: u16 = 550;

/// A control connection that is signed in.
pub struct FtpSession {
    control: Stream,
    held: Vec<u8>,
    tls: Option<Tls>,
    host: String,
    bind: Option<IpAddr>,
    /// The server does not know EPSV.
    pasv: bool,
    data: Option<Stream>,
    /// Nothing more came from the data connection.
    ended: bool,
    /// What agreed on the data connection that was open last.
    cipher: Option<String>,
}

impl FtpSession {
    /// Connects and signs in.
    ///
    /// # Errors
    /// The server cannot be reached, is not the one expected, or does not let the user in.
    pub fn open(at: &ServiceAt, bind: Option<IpAddr>) -> Result<Self, ClientError> {
        let tls = match at.scheme {
            Scheme::Ftps => Some(Tls::new(&at.host, &at.terms)?),
            _ => None,
        };
        let socket = Stream::connect(&at.host, at.port, bind)?;
        let control = match &tls {
            Some(tls) if at.terms.implicit => Stream::secured(socket, tls)?,
            _ => Stream::Plain(socket),
        };
        let host = at.host.clone();
        let (held, data, cipher) = (Vec::new(), None, None);
        let (pasv, ended) = (false, false);
        let mut it = Self { control, held, tls, host, bind, pasv, data, ended, cipher };
        it.begin(at)?;
        Ok(it)
    }

    fn begin(&mut self, at: &ServiceAt) -> Result<(), Failure> {
        let greeting = self.reply()?;
        good("be greeted", greeting)?;
        if let Some(tls) = self.tls.clone() {
            if !at.terms.implicit {
                self.ask("protect the connection", &Request::Text(Verb::Auth, b"TLS"))?;
                let plain = self.control.socket().try_clone();
                let plain = plain.map_err(Failure::io("keep the connection"))?;
                self.control = Stream::secured(plain, &tls)?;
                self.held.clear();
            }
            self.cipher = self.control.cipher();
        }
        let user = at.user.as_deref().unwrap_or("anonymous");
        let password = match (at.secret.read()?, &at.user) {
            (password, None) if password.is_empty() => "plimsoll-lab@".to_owned(),
            (password, _) => password,
        };
        let asked = self.ask("sign in", &Request::Text(Verb::User, user.as_bytes()))?;
        if asked.code == 331 {
            self.ask("sign in", &Request::Text(Verb::Pass, password.as_bytes()))?;
        }
        if self.tls.is_some() {
            self.ask("protect the data", &Request::Number(Verb::Pbsz, 0))?;
            self.ask("protect the data", &Request::Code(Verb::Prot, b'P'))?;
        }
        self.ask("send bytes as they are", &Request::Type(Type::Image)).map(drop)
    }

    fn send(&mut self, request: &Request<'_>) -> Result<(), Failure> {
        let mut line = Vec::new();
        request.encode(&mut line);
        let sent = self.control.write_all(&line).and_then(|()| self.control.flush());
        sent.map_err(Failure::io("send a command"))
    }

    fn reply(&mut self) -> Result<Reply, Failure> {
        loop {
            let decoded = reply::decode(&self.held);
            let decoded = decoded.map_err(|e| ClientError::Protocol(format!("FTP: {e}")))?;
            if let Some((reply, taken)) = decoded {
                self.held.drain(..taken);
                return Ok(reply);
            }
            let mut more = [0; REPLY_BYTES];
            match self.control.read(&mut more).map_err(Failure::io("wait for a reply"))? {
                0 => return Err(ClientError::Closed.into()),
                n => self.held.extend_from_slice(&more[..n]),
            }
        }
    }

    /// Asks and takes the answer, which must be a good one.
    fn ask(&mut self, what: &str, request: &Request<'_>) -> Result<Reply, Failure> {
        self.send(request)?;
        let reply = self.reply()?;
        good(what, reply)
    }

    /// Where the server waits for a data connection.
    fn passive(&mut self) -> Result<u16, Failure> {
        let wrong = |e: wire::ftp::Malformed| ClientError::Protocol(format!("FTP: {e}"));
        if !self.pasv {
            self.send(&Request::Epsv(Epsv::SameAddress))?;
            let reply = self.reply()?;
            if reply.code == 229 {
                return Ok(addr::epsv_reply(last_line(&reply)).map_err(wrong)?);
            }
            self.pasv = true;
        }
        let reply = self.ask("open a data connection", &Request::Bare(Verb::Pasv))?;
        // The address is not looked at: data goes where the control connection goes.
        Ok(addr::pasv_reply(last_line(&reply)).map_err(wrong)?.port())
    }

    /// Opens a data connection for a command; `restart` goes before it.
    fn transfer(&mut self, what: &str, restart: u64, request: &Request<'_>) -> Result<(), Failure> {
        let port = self.passive()?;
        let socket: TcpStream = Stream::connect(&self.host, port, self.bind)?;
        if restart > 0 {
            self.ask(what, &Request::Number(Verb::Rest, restart))?;
        }
        self.ask(what, request)?;
        let data = match &self.tls {
            Some(tls) => Stream::secured(socket, tls)?,
            None => Stream::Plain(socket),
        };
        self.cipher = data.cipher();
        (self.data, self.ended) = (Some(data), false);
        Ok(())
    }

    /// Whether one can go there.
    fn is_folder(&mut self, path: &str) -> Result<bool, Failure> {
        let gone = self.ask("go to a folder", &Request::Text(Verb::Cwd, path.as_bytes()));
        Ok(if_there(gone)?.is_some())
    }

    fn data(&mut self) -> Result<&mut Stream, Failure> {
        let none = || ClientError::Protocol("no file is open".into()).into();
        self.data.as_mut().ok_or_else(none)
    }

    fn whole_reply(&mut self, what: &str) -> Result<(), Failure> {
        let reply = self.reply()?;
        good(what, reply).map(drop)
    }
}

/// Codes below 400 are preliminary, completion or intermediate (RFC 959 §4.2.1).
fn good(what: &str, reply: Reply) -> Result<Reply, Failure> {
    if reply.code < 400 {
        return Ok(reply);
    }
    let text = String::from_utf8_lossy(last_line(&reply)).into_owned();
    Err(Failure::Answer { what: what.to_owned(), code: reply.code.into(), text })
}

fn last_line(reply: &Reply) -> &[u8] {
    reply.lines.last().map_or(&[], Vec::as_slice)
}

/// `None` when the answer is that there is no such file.
fn if_there<T>(done: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match done {
        Err(Failure::Answer { code, .. }) if code == u32::from(UNAVAILABLE) => Ok(None),
        done => done.map(Some),
    }
}

impl Session for FtpSession {
    fn null(&mut self) -> Result<(), Failure> {
        self.ask("do nothing", &Request::Maybe(Verb::Noop, None)).map(drop)
    }

    fn size(&mut self, path: &str) -> Result<Option<u64>, Failure> {
        let asked = self.ask("look at a file", &Request::Text(Verb::Size, path.as_bytes()));
        let Some(reply) = if_there(asked)? else { return Ok(None) };
        let text = String::from_utf8_lossy(last_line(&reply)).into_owned();
        let wrong = || ClientError::Protocol(format!("FTP: SIZE is answered with {text:?}"));
        Ok(Some(text.trim().parse().map_err(|_| wrong())?))
    }

    fn make_folder(&mut self, path: &str, new: bool) -> Result<(), Failure> {
        match self.ask("make a folder", &Request::Text(Verb::Mkd, path.as_bytes())) {
            // An existing folder is refused like any error; changing to it shows whether it exists.
            Err(refused @ Failure::Answer { .. }) if !new => match self.is_folder(path)? {
                true => Ok(()),
                false => Err(refused),
            },
            made => made.map(drop),
        }
    }

    fn remove(&mut self, path: &str, folder: bool) -> Result<(), Failure> {
        let verb = if folder { Verb::Rmd } else { Verb::Dele };
        let gone = self.ask("remove", &Request::Text(verb, path.as_bytes()));
        match gone {
            Err(Failure::Answer { what, code, text }) if code == u32::from(UNAVAILABLE) => {
                // The same code stands for "not there", "not allowed" and "not empty".
                let there = match folder {
                    true => self.is_folder(path)?,
                    false => self.size(path)?.is_some(),
                };
                if there { Err(Failure::Answer { what, code, text }) } else { Ok(()) }
            }
            gone => gone.map(drop),
        }
    }

    fn names(&mut self, path: &str) -> Result<Option<Vec<String>>, Failure> {
        let list = |verb| Request::Maybe(verb, Some(path.as_bytes()));
        let by_name = match self.transfer("list a folder", 0, &list(Verb::Mlsd)) {
            // Some servers still have nothing but names for programs.
            Err(Failure::Answer { code: 500 | 502, .. }) => {
                if !self.is_folder(path)? {
                    return Ok(None);
                }
                if_there(self.transfer("list a folder", 0, &list(Verb::Nlst)))?.map(|()| true)
            }
            listed => if_there(listed)?.map(|()| false),
        };
        let Some(by_name) = by_name else { return Ok(None) };
        let mut text = Vec::new();
        let limit = LAB_LIST_MAX as u64;
        let read = self.data()?.take(limit).read_to_end(&mut text);
        read.map_err(Failure::io("list a folder"))?;
        self.close_read()?;
        let lines = text.split(|b| *b == b'\n').map(|l| l.strip_suffix(b"\r").unwrap_or(l));
        let names = lines.filter_map(|line| {
            let name = if by_name { line } else { facts::entry(line).ok()?.name };
            // Servers that list a folder by its path put that path before each name.
            let name = String::from_utf8_lossy(name.rsplit(|b| *b == b'/').next()?).into_owned();
            (!matches!(name.as_str(), "" | "." | "..")).then_some(name)
        });
        Ok(Some(names.collect()))
    }

    fn open_read(&mut self, path: &str, offset: u64, _len: Option<u64>) -> Result<(), Failure> {
        self.transfer("read a file", offset, &Request::Text(Verb::Retr, path.as_bytes()))
    }

    fn read(&mut self, into: &mut [u8]) -> Result<usize, Failure> {
        let n = self.data()?.read(into).map_err(Failure::io("read a file"))?;
        self.ended |= n == 0 && !into.is_empty();
        Ok(n)
    }

    fn close_read(&mut self) -> Result<(), Failure> {
        let mut more = [0; 1];
        // At the end already? Then the server has not to be notified that reading ends here.
        if !self.ended && self.read(&mut more)? == 0 {
            self.ended = true;
        }
        let whole = self.ended;
        self.data = None;
        let reply = self.reply()?;
        // Cut off by us: 426, and for some servers more after it, which the next command settles.
        if whole { good("read a file", reply).map(drop) } else { Ok(()) }
    }

    fn open_write(&mut self, path: &str, _size: u64) -> Result<(), Failure> {
        self.transfer("write a file", 0, &Request::Text(Verb::Stor, path.as_bytes()))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let Err(error) = self.data()?.write_all(bytes) else { return Ok(()) };
        self.data = None;
        // A server that ends an upload sends the reason.
        self.whole_reply("write a file")?;
        Err(Failure::io("write a file")(error))
    }

    fn close_write(&mut self) -> Result<(), Failure> {
        let data = self.data()?;
        let done = data.flush().and_then(|()| data.finish());
        if done.is_ok() && matches!(data, Stream::Tls(_)) {
            // What the server sends at the beginning lets the next connection resume the session:
            // it must be read. An error here is reported by the reply.
            let _ = data.take(LAB_STREAM_BUFFER as u64).read_to_end(&mut Vec::new());
        }
        self.data = None;
        self.whole_reply("write a file")?;
        done.map_err(Failure::io("write a file"))
    }

    fn socket(&self) -> Option<&TcpStream> {
        self.data.as_ref().map(Stream::socket)
    }

    fn cipher(&self) -> Option<String> {
        self.cipher.clone()
    }
}

impl Drop for FtpSession {
    fn drop(&mut self) {
        // If the server has gone already, it needs no QUIT.
        let _ = self.send(&Request::Bare(Verb::Quit));
    }
}
