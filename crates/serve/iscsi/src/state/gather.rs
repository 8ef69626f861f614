//! The data of a write as it comes (RFC 7143 §4.2.5.2, §11.7, §11.8): immediate, unsolicited, and
//! solicited by R2Ts. Pure: it returns what to request and where received data belongs.

use std::collections::VecDeque;

use wire::iscsi::data::DataOut;
use wire::iscsi::negotiate::Parameters;
use wire::iscsi::{RESERVED_TAG, Serial};

/// Something that the initiator was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataRequest {
    /// Target transfer tag.
    pub tag: u32,
    /// R2TSN.
    pub number: Serial,
    /// First byte.
    pub offset: u32,
    /// Bytes.
    pub length: u32,
}

/// A sequence of Data-Outs in progress: the unsolicited one, or the response to an R2T.
#[derive(Debug, Clone, Copy)]
struct Sequence {
    tag: u32,
    /// Where its next byte belongs.
    offset: u32,
    /// The byte after its last.
    end: u32,
    data_sn: Serial,
}

/// What is wrong with a Data-Out: the initiator is at fault, and its command fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It answers nothing that was asked, or comes when nothing may.
    Unexpected,
    /// Its number is not the next (§11.7.5).
    Number,
    /// It is not where the one before it ended, or goes beyond what may come.
    Offset,
    /// The sequence ends before everything has come.
    Short,
}

/// How much of each a session allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Unsolicited bytes of a command, immediate ones included (FirstBurstLength).
    pub first: u32,
    /// Bytes of a sequence (MaxBurstLength).
    pub burst: u32,
    /// R2Ts at once (MaxOutstandingR2T).
    pub asks: usize,
}

impl From<&Parameters> for Bounds {
    fn from(of: &Parameters) -> Self {
        let asks = of.max_outstanding_r2t as usize;
        Self { first: of.first_burst, burst: of.max_burst, asks }
    }
}

/// The data of one command.
#[derive(Debug)]
pub struct Gather {
    /// Bytes that the command needs of those that the initiator has.
    wanted: u32,
    /// The first `wanted` bytes, as far as they have come.
    data: Vec<u8>,
    unsolicited: Option<Sequence>,
    solicited: VecDeque<Sequence>,
    /// Where the next R2T begins.
    next: u32,
    asked: u32,
}

impl Gather {
    /// The data of a command that needs `wanted` of the `expected` bytes that the initiator has,
    /// into `buffer`. `immediate` came with it; more comes unasked if `goes_on`.
    ///
    /// # Errors
    /// [`Fault`] if there is more immediate data than may come.
    pub fn new(
        (wanted, expected): (u32, u32),
        immediate: &[u8],
        goes_on: bool,
        bounds: Bounds,
        mut buffer: Vec<u8>,
    ) -> Result<Self, Fault> {
        let came = u32::try_from(immediate.len()).unwrap_or(u32::MAX);
        let first = bounds.first.min(expected);
        if came > first {
            return Err(Fault::Offset);
        }
        let wanted = wanted.min(expected);
        buffer.clear();
        buffer.extend_from_slice(immediate.get(..wanted as usize).unwrap_or(immediate));
        let unsolicited = goes_on.then_some(Sequence {
            tag: RESERVED_TAG,
            offset: came,
            end: first,
            data_sn: Serial(0),
        });
        // What comes unasked is not asked for.
        let next = if goes_on { first } else { came };
        let solicited = VecDeque::new();
        Ok(Self { wanted, data: buffer, unsolicited, solicited, next, asked: 0 })
    }

    /// Takes a Data-Out: its number must be the next of its sequence, its data where that has come
    /// to.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn take(&mut self, pdu: &DataOut<'_>) -> Result<(), Fault> {
        let sequence = match &mut self.unsolicited {
            Some(sequence) if pdu.ttt == RESERVED_TAG => sequence,
            _ => match self.solicited.front_mut() {
                // Sequences come in order (DataSequenceInOrder).
                Some(sequence) if sequence.tag == pdu.ttt => sequence,
                _ => return Err(Fault::Unexpected),
            },
        };
        if pdu.data_sn != sequence.data_sn {
            return Err(Fault::Number);
        }
        let length = u32::try_from(pdu.data.len()).map_err(|_| Fault::Offset)?;
        let fits = length <= sequence.end.saturating_sub(sequence.offset);
        if pdu.offset != sequence.offset || !fits {
            return Err(Fault::Offset);
        }
        sequence.data_sn = sequence.data_sn.next();
        sequence.offset += length;
        let is_solicited = pdu.ttt != RESERVED_TAG;
        let is_whole = sequence.offset == sequence.end;
        // What was asked for comes whole; what comes unasked may end early (§11.3.4.2), and all of
        // it has come when its room is used up.
        if is_solicited && pdu.is_final != is_whole {
            return Err(Fault::Short);
        }
        let end = sequence.offset;
        if pdu.is_final {
            if is_solicited {
                self.solicited.pop_front();
            } else {
                self.unsolicited = None;
                self.next = end;
            }
        }
        let room = (self.wanted as usize).saturating_sub(pdu.offset as usize);
        debug_assert!(room == 0 || self.data.len() == pdu.offset as usize);
        self.data.extend_from_slice(pdu.data.get(..room).unwrap_or(pdu.data));
        Ok(())
    }

    /// What to ask for now, if anything, under this tag.
    pub fn ask(&mut self, bounds: Bounds, tag: u32) -> Option<DataRequest> {
        let left = self.wanted.saturating_sub(self.next);
        if left == 0 || self.unsolicited.is_some() || self.solicited.len() >= bounds.asks.max(1) {
            return None;
        }
        let (offset, length) = (self.next, left.min(bounds.burst));
        self.next += length;
        let sequence = Sequence { tag, offset, end: self.next, data_sn: Serial(0) };
        self.solicited.push_back(sequence);
        let number = Serial(self.asked);
        self.asked += 1;
        Some(DataRequest { tag, number, offset, length })
    }

    /// Whether everything has come.
    pub fn is_whole(&self) -> bool {
        self.unsolicited.is_none() && self.solicited.is_empty() && self.next >= self.wanted
    }

    /// Whether something has to come that was asked for, or that comes unasked.
    pub fn expects_data(&self) -> bool {
        self.unsolicited.is_some() || !self.solicited.is_empty()
    }

    /// Makes room for all of the data.
    pub fn make_room(&mut self) {
        self.data.reserve_exact((self.wanted as usize).saturating_sub(self.data.len()));
    }

    /// R2Ts sent so far: the ExpDataSN of the response.
    pub const fn asked(&self) -> u32 {
        self.asked
    }

    /// Bytes of memory that the data has or will have.
    pub const fn wanted(&self) -> u32 {
        self.wanted
    }

    /// The data.
    pub fn into_data(self) -> Vec<u8> {
        self.data
    }
}

#[cfg(test)]
mod tests;
