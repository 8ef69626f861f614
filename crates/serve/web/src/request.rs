//! A request: method, target, header fields and body, the same for HTTP/1.1 and HTTP/2.

use std::future::Future;
use std::pin::Pin;

pub use wire::http::fields::{Headers, Method};
pub use wire::http::target::{
    Target, TargetError, authority, decode_path, form_value, percent_decode, percent_encode,
    put_percent_encoded,
};

/// A future that stays on its core's thread.
pub type Local<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Why a body did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The framing is invalid: the peer's fault.
    #[error("the body is malformed")]
    Malformed,
    /// Idle timeout: no command received.
    #[error("timeout waiting for the body")]
    TooSlow,
    /// The peer went away in the middle of it.
    #[error("the connection ended within the body")]
    Gone,
    /// It is longer than the caller has room for.
    #[error("the body is too long")]
    TooLong,
}

/// Where the bytes of a body come from: one of the two versions, or a test.
pub trait Incoming {
    /// Appends to `into` what has come, up to a length of `upto`, waiting until there is something.
    /// Returns how many bytes that were; 0 is the end of the body.
    fn read<'a>(
        &'a mut self,
        into: &'a mut Vec<u8>,
        upto: usize,
    ) -> Local<'a, Result<usize, BodyError>>;
}

/// The same as an asynchronous function: what a version of HTTP has.
pub(super) trait Take {
    /// As [`Incoming::read`].
    async fn take(&mut self, into: &mut Vec<u8>, upto: usize) -> Result<usize, BodyError>;
}

impl<T: Take> Incoming for T {
    fn read<'a>(
        &'a mut self,
        into: &'a mut Vec<u8>,
        upto: usize,
    ) -> Local<'a, Result<usize, BodyError>> {
        Box::pin(self.take(into, upto))
    }
}

/// A body in memory.
impl Take for &[u8] {
    async fn take(&mut self, into: &mut Vec<u8>, upto: usize) -> Result<usize, BodyError> {
        let fits = self.len().min(upto.saturating_sub(into.len()));
        let (now, later) = self.split_at_checked(fits).unwrap_or_default();
        into.extend_from_slice(now);
        *self = later;
        Ok(fits)
    }
}

/// The body of a request, which comes as it is read.
pub struct Body<'a> {
    source: &'a mut dyn Incoming,
    length: Option<u64>,
}

impl<'a> Body<'a> {
    /// A body from `source`; its length may be known.
    pub fn new(source: &'a mut dyn Incoming, length: Option<u64>) -> Self {
        Self { source, length }
    }

    /// Its length, if stated. `Some(0)` without a body.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// Appends to `into` what has come, up to a length of `upto`, waiting until there is something.
    /// Returns how many bytes that were; 0 is the end.
    ///
    /// # Errors
    /// It does not come to its end.
    pub async fn read(&mut self, into: &mut Vec<u8>, upto: usize) -> Result<usize, BodyError> {
        self.source.read(into, upto).await
    }

    /// Fills `into` up to a length of `upto`, or to the end of the body: true if that was reached.
    ///
    /// # Errors
    /// It does not come to its end.
    pub async fn fill(&mut self, into: &mut Vec<u8>, upto: usize) -> Result<bool, BodyError> {
        while into.len() < upto {
            if self.source.read(into, upto).await? == 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The whole body, of `max` bytes at most.
    ///
    /// # Errors
    /// [`BodyError::TooLong`] if it is longer, or it does not come to its end.
    pub async fn read_all(&mut self, max: usize) -> Result<Vec<u8>, BodyError> {
        if self.length.is_some_and(|length| length > max as u64) {
            return Err(BodyError::TooLong);
        }
        let mut all = Vec::new();
        if self.fill(&mut all, max + 1).await? { Ok(all) } else { Err(BodyError::TooLong) }
    }
}

/// A request.
pub struct Request<'a> {
    /// What is wanted.
    pub method: Method,
    /// Of what.
    pub target: Target,
    /// Host and port as the client calls us, from the target or `Host`.
    pub host: String,
    /// Whether TLS protects it.
    pub secure: bool,
    /// Header fields.
    pub headers: Headers,
    /// What follows.
    pub body: Body<'a>,
}

#[cfg(test)]
mod tests;
