//! PDUs over a socket: what is to be sent is gathered, what comes is cut in place.

use crate::client::ClientError;
use crate::client::pipe::link::Link;
use crate::client::pipe::outgoing::Outgoing;
use std::time::Duration;
use wire::iscsi::{Digests, Framed, Framer, Request, Response};

/// Bytes received at once.
const RECEIVE: usize = 512 << 10;

/// A connection.
pub struct Stream {
    /// The socket.
    pub link: Link,
    digests: Digests,
    framer: Framer,
    out: Outgoing,
    input: Vec<u8>,
    /// What of the input is still to be looked at.
    from: usize,
    to: usize,
}

impl Stream {
    /// A connection in its login: no digests, short data segments.
    pub fn new(link: Link) -> Self {
        let framer = Framer::new(Digests::default(), 8192);
        let input = vec![0; RECEIVE];
        let (digests, out) = (Digests::default(), Outgoing::default());
        Self { link, digests, framer, out, input, from: 0, to: 0 }
    }

    /// What was agreed on holds from now on.
    pub fn set(&mut self, digests: Digests, data_max: usize) {
        (self.digests, self.framer) = (digests, Framer::new(digests, data_max));
    }

    /// Appends a PDU.
    pub fn put(&mut self, request: &Request<'_>) {
        request.put(self.out.bytes(), self.digests);
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

    /// Sends all of it; nothing large may come meanwhile.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn send_all(&mut self) -> Result<(), ClientError> {
        while !self.send_some()? {
            self.link.wait_both()?;
        }
        Ok(())
    }

    /// One receive; false when nothing came within the link's timeout.
    ///
    /// # Errors
    /// The connection is gone.
    pub fn receive(&mut self) -> Result<bool, ClientError> {
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        }
        if self.to == self.input.len() {
            // The rest of a PDU: as much as fits behind it once it is at the front.
            self.input.copy_within(self.from.., 0);
            (self.from, self.to) = (0, self.to - self.from);
            let need = self.framer.input_max();
            if self.input.len() < need {
                self.input.resize(need, 0);
            }
        }
        let got = self.link.receive(self.input.get_mut(self.to..).unwrap_or_default())?;
        self.to += got;
        Ok(got > 0)
    }

    /// Looks at the next PDU, if all of it is there.
    ///
    /// # Errors
    /// The target breaks the protocol, or a digest does not fit.
    pub fn next<T>(
        &mut self,
        look: impl FnOnce(Response<'_>) -> T,
    ) -> Result<Option<T>, ClientError> {
        let broken = |what: String| ClientError::Protocol(what);
        let rest = self.input.get(self.from..self.to).unwrap_or_default();
        match self.framer.next(rest).map_err(|error| broken(error.to_string()))? {
            Framed::Need(_) => Ok(None),
            Framed::Complete(pdu) => {
                let data = pdu.data.map_err(|error| broken(error.to_string()))?;
                let response = Response::decode(&pdu.head, data);
                let looked = look(response.map_err(|error| broken(error.to_string()))?);
                self.from += pdu.consumed;
                Ok(Some(looked))
            }
        }
    }

    /// Looks at the next PDU, for which it waits.
    ///
    /// # Errors
    /// As [`Stream::next`], and when none comes in time.
    pub fn next_within<T>(
        &mut self,
        timeout: Duration,
        look: impl FnOnce(Response<'_>) -> T,
    ) -> Result<T, ClientError> {
        self.link.set_timeout(timeout)?;
        let mut look = Some(look);
        loop {
            let looked = self.next(|response| look.take().map(|look| look(response)))?;
            if let Some(looked) = looked.flatten() {
                return Ok(looked);
            }
            if !self.receive()? {
                return Err(ClientError::Silent("a login", timeout));
            }
        }
    }
}
