//! What is answered: status, header fields and body, the same for HTTP/1.1 and HTTP/2.

use std::borrow::Cow;

use super::request::Local;
use files::reader::Reader;

/// The body broke off: what was promised does not come. The connection or the stream is reset.
#[derive(Debug, thiserror::Error)]
#[error("the response failed: {0}")]
pub struct Broken(pub String);

/// A body that is made while it is sent.
pub trait Produce {
    /// Appends the next part to `into`, some tens of kilobytes; false when that was the last.
    fn next<'a>(&'a mut self, into: &'a mut Vec<u8>) -> Local<'a, Result<bool, Broken>>;
}

/// Parts of a file.
pub struct FileParts {
    /// The file.
    pub reader: Reader,
    /// What comes before each part, and where it begins and ends in the file.
    pub parts: Vec<(Vec<u8>, u64, u64)>,
    /// What comes after the last one.
    pub after: Vec<u8>,
}

impl FileParts {
    /// How long all of it is.
    pub fn length(&self) -> u64 {
        let part = |(before, start, end): &(Vec<u8>, u64, u64)| before.len() as u64 + end - start;
        self.parts.iter().map(part).sum::<u64>() + self.after.len() as u64
    }
}

/// The body of an answer.
#[derive(Default)]
pub enum Payload {
    /// None.
    #[default]
    Empty,
    /// These bytes.
    Bytes(Cow<'static, [u8]>),
    /// Parts of a file.
    File(Box<FileParts>),
    /// Made while it is sent; the length is not known before.
    Stream(Box<dyn Produce>),
}

impl Payload {
    /// How long it is, if that is known.
    pub fn length(&self) -> Option<u64> {
        match self {
            Self::Empty => Some(0),
            Self::Bytes(bytes) => Some(bytes.len() as u64),
            Self::File(parts) => Some(parts.length()),
            Self::Stream(_) => None,
        }
    }
}

/// An answer.
#[derive(Default)]
pub struct Response {
    /// The status (RFC 9110 §15).
    pub status: u16,
    /// Header fields; names in lower case. Length, date and what concerns the connection are added
    /// by the connection.
    pub headers: Vec<(&'static str, Cow<'static, str>)>,
    /// What follows.
    pub payload: Payload,
}

impl Response {
    /// An answer without a body.
    pub fn new(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    /// With one more header field. A value with characters that none may have is left out.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        let value = value.into();
        if !value.bytes().any(|b| b < b' ' && b != b'\t' || b == 0x7f) {
            self.headers.push((name, value));
        }
        self
    }

    /// With a body of this type.
    #[must_use]
    pub fn bytes(mut self, kind: &'static str, body: impl Into<Cow<'static, [u8]>>) -> Self {
        self.payload = Payload::Bytes(body.into());
        self.with("content-type", kind)
    }

    /// With a body of this type that is made while it is sent.
    #[must_use]
    pub fn stream(mut self, kind: &'static str, body: impl Produce + 'static) -> Self {
        self.payload = Payload::Stream(Box::new(body));
        self.with("content-type", kind)
    }

    /// The value of a header field.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| *n == name).map(|(_, value)| value.as_ref())
    }
}
