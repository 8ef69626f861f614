//! Requests that were sent and are not answered yet, and what is expected of their responses.

use super::protection::Protection;
use crate::client::{Checker, ClientError, Completion, Fault, FileSet, Op, content_key};
use wire::smb::header::{Header, Messages};
use wire::smb::io::{WriteResponse, read_data};
use wire::smb::status::NtStatus;

/// Numbers of requests that may be open from the lowest one on: more than any server grants
/// credits for.
const NUMBERS: usize = 8192;
/// MessageId of what was not asked for: an oplock or lease is to be given back.
const NOT_ASKED_FOR: u64 = u64::MAX;

/// What a response belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// An operation in a slot.
    Slot(u32),
    /// A request that runs alone.
    Single,
}

/// The response to a request that ran alone.
#[derive(Debug)]
pub struct Reply {
    /// The request as it was sent, but for its signature.
    pub sent: Vec<u8>,
    /// The header of the response.
    pub header: Header,
    /// The response, from its header on.
    pub message: Vec<u8>,
}

impl Reply {
    /// How it ended.
    pub fn status(&self) -> NtStatus {
        NtStatus(self.header.status)
    }

    /// That it went well.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with `what` was tried.
    pub fn done(&self, what: &str) -> Result<&[u8], ClientError> {
        match self.status() {
            NtStatus::SUCCESS => Ok(&self.message),
            status => Err(refused(what, status)),
        }
    }
}

/// A refusal with the name of its status.
pub fn refused(what: &str, status: NtStatus) -> ClientError {
    ClientError::Refused { what: what.to_owned(), status: status_name(status) }
}

/// The name of a status, or its number.
pub fn status_name(status: NtStatus) -> String {
    status.name().map_or_else(|| format!("{:#010x}", status.0), str::to_owned)
}

/// An operation in flight in a slot.
#[derive(Debug, Clone, Copy)]
struct Running {
    op: Op,
    /// Responses that are still to come.
    left: u8,
    outcome: Result<u32, Fault>,
}

/// What was sent and not answered yet.
pub struct Outstanding {
    /// What files hold.
    pub checker: Checker,
    /// Number of the client.
    pub client: u32,
    /// The files of the client.
    pub set: FileSet,
    /// The response to a request that runs alone.
    pub alone: Option<Reply>,
    /// Operations that have ended.
    pub ready: Vec<Completion>,
    /// Requests that were answered.
    pub answered: u64,
    /// Credits that are left.
    pub credits: u32,
    numbers: Vec<Option<(u64, Owner)>>,
    running: Vec<Option<Running>>,
}

impl Outstanding {
    /// Nothing yet; there is one credit, for the negotiation.
    pub fn new(checker: Checker) -> Self {
        Self {
            checker,
            client: 0,
            set: FileSet { client: 0, files: 0, size: 0 },
            alone: None,
            ready: Vec::new(),
            answered: 0,
            credits: 1,
            numbers: vec![None; NUMBERS],
            running: Vec::new(),
        }
    }

    /// Whether a request of the number `id` may be sent that takes `charge` credits.
    #[inline]
    pub fn has_room(&self, id: u64, charge: u16) -> bool {
        let is_free = self.numbers.get(id as usize % NUMBERS).is_some_and(Option::is_none);
        is_free && self.credits >= u32::from(charge)
    }

    /// An operation begins that ends after `responses` responses.
    #[inline]
    pub fn begin(&mut self, slot: u32, op: Op, responses: u8) {
        let at = slot as usize;
        if self.running.len() <= at {
            self.running.resize(at + 1, None);
        }
        if let Some(place) = self.running.get_mut(at) {
            *place = Some(Running { op, left: responses, outcome: Ok(0) });
        }
    }

    /// A request of this number was sent.
    #[inline]
    pub fn sent(&mut self, id: u64, charge: u16, owner: Owner) {
        self.credits = self.credits.saturating_sub(charge.into());
        if let Some(number) = self.numbers.get_mut(id as usize % NUMBERS) {
            *number = Some((id, owner));
        }
    }

    /// Takes in a frame.
    ///
    /// # Errors
    /// The server breaks the protocol, or its message was changed in transit.
    pub fn take(&mut self, frame: &mut [u8], by: &Protection) -> Result<(), ClientError> {
        let broken = |e: wire::smb::codec::SmbError| ClientError::Protocol(e.to_string());
        let (mut rest, was_sealed) = by.open(frame)?;
        loop {
            let first = Messages::new(rest).next();
            let (header, message) = match first {
                Some(Ok((header, message))) => (header, message.len()),
                Some(Err(error)) => return Err(broken(error)),
                None => return Ok(()),
            };
            let (message, behind) = rest.split_at_mut(message);
            by.check(&header, message, was_sealed)?;
            self.response(header, message)?;
            if header.next == 0 {
                return Ok(());
            }
            rest = behind;
        }
    }

    #[inline]
    fn response(&mut self, header: Header, message: &[u8]) -> Result<(), ClientError> {
        self.credits += u32::from(header.credits);
        if header.message_id == NOT_ASKED_FOR || header.status == NtStatus::PENDING.0 {
            return Ok(());
        }
        let number = self.numbers.get_mut(header.message_id as usize % NUMBERS);
        let owner = match number {
            Some(number) if number.is_some_and(|(id, _)| id == header.message_id) => number.take(),
            _ => None,
        };
        let Some((_, owner)) = owner else {
            return Err(ClientError::Protocol("a response to no request".to_owned()));
        };
        self.answered += 1;
        match owner {
            Owner::Single => {
                let (sent, message) = (Vec::new(), message.to_vec());
                self.alone = Some(Reply { sent, header, message });
            }
            Owner::Slot(slot) => self.part(slot, &header, message)?,
        }
        Ok(())
    }

    /// A response to one of the requests of an operation.
    #[inline]
    fn part(&mut self, slot: u32, header: &Header, message: &[u8]) -> Result<(), ClientError> {
        let Some(place) = self.running.get_mut(slot as usize) else { return Ok(()) };
        let Some(mut running) = place.take() else {
            return Err(ClientError::Protocol("a response to no operation".to_owned()));
        };
        running.left = running.left.saturating_sub(1);
        let outcome = match (running.op, NtStatus(header.status)) {
            (Op::Read { .. }, NtStatus::END_OF_FILE) => Err(Fault::Short),
            (Op::Read { file, offset, len }, NtStatus::SUCCESS) => {
                let data = read_data(message);
                let data = data.map_err(|error| ClientError::Protocol(error.to_string()))?;
                let key = content_key(self.client, file);
                match data.len() < len as usize {
                    true => Err(Fault::Short),
                    false if self.checker.is_right(key, offset, len.into(), 0, data) => Ok(len),
                    false => Err(Fault::Corrupt),
                }
            }
            (Op::Write { len, .. }, NtStatus::SUCCESS) => {
                let written = WriteResponse::decode(message);
                let written = written.map_err(|error| ClientError::Protocol(error.to_string()))?;
                if written.count < len { Err(Fault::Short) } else { Ok(len) }
            }
            (_, NtStatus::SUCCESS) => Ok(0),
            (_, status) => Err(Fault::Status(status.0)),
        };
        // Of several requests, the first that fails determines the outcome.
        running.outcome = running.outcome.and(outcome);
        match running.left {
            0 => self.ready.push(Completion { slot, outcome: running.outcome }),
            _ => *place = Some(running),
        }
        Ok(())
    }
}
