//! Frames over a socket: what is to be sent is gathered, what comes is cut in place.

use crate::client::ClientError;
use crate::client::pipe::link::Link;
use crate::client::pipe::outgoing::Outgoing;
use wire::smb::frame::{PREFIX, length};

/// Bytes received at once.
const RECEIVE: usize = 256 << 10;

/// A connection.
pub struct Stream {
    /// The socket.
    pub link: Link,
    out: Outgoing,
    input: Vec<u8>,
    /// What of the input is still to be looked at.
    from: usize,
    to: usize,
}

impl Stream {
    /// A connection on which nothing was sent yet.
    pub fn new(link: Link) -> Self {
        Self { link, out: Outgoing::default(), input: vec![0; RECEIVE], from: 0, to: 0 }
    }

    /// What is to be sent, to append a frame to.
    pub fn out(&mut self) -> &mut Vec<u8> {
        self.out.bytes()
    }

    /// Bytes that wait to be sent.
    pub fn waiting(&self) -> usize {
        self.out.waiting()
    }

    /// Sends what the socket takes now; false when it is full.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn send_some(&mut self) -> Result<bool, ClientError> {
        self.out.send_some(&self.link)
    }

    /// One receive; false when nothing came within the link's timeout.
    ///
    /// # Errors
    /// The connection is gone, or the server sends what is no frame.
    pub fn receive(&mut self) -> Result<bool, ClientError> {
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        }
        let need = self.size()?.unwrap_or(PREFIX);
        if self.from + need > self.input.len() || self.to == self.input.len() {
            self.input.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
            if self.input.len() < need {
                self.input.resize(need, 0);
            }
        }
        let got = self.link.receive(self.input.get_mut(self.to..).unwrap_or_default())?;
        self.to += got;
        Ok(got > 0)
    }

    /// Bytes of the next frame with its prefix, if so much is there.
    fn size(&self) -> Result<Option<usize>, ClientError> {
        let rest = self.input.get(self.from..self.to).unwrap_or_default();
        let Some(prefix) = rest.first_chunk::<PREFIX>() else { return Ok(None) };
        // What has 24 bits needs no lower limit from a server that was chosen.
        let size = length(*prefix, usize::MAX);
        size.map(|size| Some(PREFIX + size)).map_err(|e| ClientError::Protocol(e.to_string()))
    }

    /// Takes the next frame, if all of it is there.
    ///
    /// # Errors
    /// The server sends what is no frame.
    pub fn frame(&mut self) -> Result<Option<&mut [u8]>, ClientError> {
        let Some(size) = self.size()?.filter(|size| *size <= self.to - self.from) else {
            return Ok(None);
        };
        let begin = self.from;
        self.from += size;
        Ok(self.input.get_mut(begin + PREFIX..begin + size))
    }
}
