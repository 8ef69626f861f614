//! PDUs cut out of a stream of bytes, and what goes around them when they are sent: basic header,
//! additional headers, header digest, data, padding, data digest (RFC 7143 §11.2).
//!
//! The caller's receive buffer holds a PDU until all of it is there; nothing is copied. A caller
//! that receives large data segments straight into their place decodes the head alone.

use base::limits::{ISCSI_AHS_MAX, ISCSI_DATA_MAX};
use thiserror::Error;

use super::bhs::{BHS, Bhs, Opcode};
use super::digest::{DIGEST, Digests, data_digest, digest, pad};

/// Why a stream can no longer be cut into PDUs: where the next one begins is unknown or cannot be
/// trusted, so the connection must end (§7.3, error recovery level 0). The peer or the network is
/// at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CutError {
    /// The header digest does not fit the header (§7.8): the lengths in it may be wrong.
    #[error("header digest is {got:02x?}, {want:02x?} was expected")]
    HeaderDigest {
        /// What the peer sent.
        got: [u8; DIGEST],
        /// What the header has.
        want: [u8; DIGEST],
    },
    /// More additional headers than we take.
    #[error("additional headers of {got} bytes exceed the maximum of {max}")]
    AhsTooLong {
        /// Most bytes.
        max: usize,
        /// What the peer announced.
        got: usize,
    },
    /// A data segment longer than we have declared to take.
    #[error("data segment of {got} bytes exceeds the maximum of {max}")]
    DataTooLong {
        /// Most bytes.
        max: usize,
        /// What the peer announced.
        got: usize,
    },
}

/// The data digest does not match the data. Where the next PDU begins is known: the command fails,
/// the connection may continue (§7.8: Reject with "data digest error", then the data is not used).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("data digest is {got:02x?}, {want:02x?} was expected")]
pub struct DataDigestError {
    /// What the peer sent.
    pub got: [u8; DIGEST],
    /// What the data has.
    pub want: [u8; DIGEST],
}

/// The head of a PDU: all before its data segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head<'a> {
    /// Its basic header segment.
    pub bhs: Bhs,
    /// Its additional header segments, padding included.
    pub ahs: &'a [u8],
    /// Bytes of the input that the head took, its digest included.
    pub consumed: usize,
    /// Bytes that follow for the data segment: data, padding and digest.
    pub data_consumed: usize,
}

/// A PDU, whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pdu<'a> {
    /// All before the data.
    pub head: Head<'a>,
    /// The data segment without padding, if its digest fits.
    pub data: Result<&'a [u8], DataDigestError>,
    /// Bytes of the input that the PDU took.
    pub consumed: usize,
}

/// What is at the front of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framed<T> {
    /// Ask again when the input, from the same start, has at least this many bytes. More may be
    /// needed then.
    Need(usize),
    /// It is there.
    Complete(T),
}

/// Cuts PDUs out of what was received on one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Framer {
    digests: Digests,
    data_max: usize,
}

impl Framer {
    /// For a connection that has these digests and takes data segments of at most `data_max`
    /// bytes, but never more than [`ISCSI_DATA_MAX`].
    pub fn new(digests: Digests, data_max: usize) -> Self {
        Self { digests, data_max: data_max.min(ISCSI_DATA_MAX) }
    }

    /// Most bytes of input that one PDU can take: what a receive buffer must be able to hold.
    pub const fn input_max(&self) -> usize {
        BHS + ISCSI_AHS_MAX + DIGEST + self.data_max.next_multiple_of(4) + DIGEST
    }

    /// The head of the PDU at the front of `input`; its header digest is checked.
    ///
    /// # Errors
    /// [`CutError`], as soon as the basic header shows it.
    pub fn head<'a>(&self, input: &'a [u8]) -> Result<Framed<Head<'a>>, CutError> {
        let Some((bhs, rest)) = input.split_first_chunk::<BHS>() else {
            return Ok(Framed::Need(BHS));
        };
        let bhs = Bhs(*bhs);
        let got = bhs.ahs_length();
        if got > ISCSI_AHS_MAX {
            return Err(CutError::AhsTooLong { max: ISCSI_AHS_MAX, got });
        }
        let head = BHS + got;
        let consumed = head + if self.digests.header { DIGEST } else { 0 };
        let (Some((ahs, rest)), Some(covered)) = (rest.split_at_checked(got), input.get(..head))
        else {
            return Ok(Framed::Need(consumed));
        };
        if self.digests.header {
            let Some(got) = rest.first_chunk::<DIGEST>() else {
                return Ok(Framed::Need(consumed));
            };
            let want = digest(covered);
            if *got != want {
                return Err(CutError::HeaderDigest { got: *got, want });
            }
        }
        let (got, max) = (bhs.data_length(), self.data_max);
        if got > max {
            return Err(CutError::DataTooLong { max, got });
        }
        let data_consumed = segment_length(got, self.digests.data);
        Ok(Framed::Complete(Head { bhs, ahs, consumed, data_consumed }))
    }

    /// The PDU at the front of `input`.
    ///
    /// # Errors
    /// [`CutError`], as soon as the header shows it. A data digest that does not match is no such
    /// error: it is the `data` of the PDU.
    pub fn next<'a>(&self, input: &'a [u8]) -> Result<Framed<Pdu<'a>>, CutError> {
        let head = match self.head(input)? {
            Framed::Need(bytes) => return Ok(Framed::Need(bytes)),
            Framed::Complete(head) => head,
        };
        let consumed = head.consumed + head.data_consumed;
        let Some(segment) = input.get(head.consumed..consumed) else {
            return Ok(Framed::Need(consumed));
        };
        let data = self.data(head.bhs.data_length(), segment);
        Ok(Framed::Complete(Pdu { head, data, consumed }))
    }

    /// The data of a segment: `segment` is data, padding and digest, with the length in the head.
    ///
    /// # Errors
    /// [`DataDigestError`] if the digest does not fit.
    pub fn data<'a>(&self, length: usize, segment: &'a [u8]) -> Result<&'a [u8], DataDigestError> {
        let (data, rest) = segment.split_at_checked(length).unwrap_or((segment, &[]));
        if !self.digests.data || data.is_empty() {
            return Ok(data);
        }
        let got = rest.last_chunk().copied().unwrap_or_default();
        // Padding is what was sent, which need not be zero.
        let padded = segment.get(..segment.len().saturating_sub(DIGEST)).unwrap_or_default();
        let want = digest(padded);
        if got == want { Ok(data) } else { Err(DataDigestError { got, want }) }
    }
}

/// Bytes that a data segment of this many bytes takes, padding and digest included.
pub const fn segment_length(data: usize, with_digest: bool) -> usize {
    if data == 0 {
        return 0;
    }
    data.next_multiple_of(4) + if with_digest { DIGEST } else { 0 }
}

/// Something that is sent as one PDU.
pub trait PutPdu {
    /// What it is.
    fn opcode(&self) -> Opcode;

    /// Writes its fields, opcode and lengths apart.
    fn fields(&self, bhs: &mut Bhs);

    /// Bytes of the data segment, padding apart; less than 2^24.
    fn data_len(&self) -> usize;

    /// Appends the data segment, without padding.
    fn put_data(&self, out: &mut Vec<u8>);

    /// Appends additional header segments, padded to a multiple of four.
    fn put_ahs(&self, _: &mut Vec<u8>) {}

    /// Appends the whole PDU.
    fn put(&self, out: &mut Vec<u8>, digests: Digests) {
        let length = self.data_len();
        self.put_head(out, digests, length);
        let start = out.len();
        self.put_data(out);
        debug_assert_eq!(out.len() - start, length);
        out.extend_from_slice(pad(length));
        if digests.data && length > 0 {
            let digest = digest(out.get(start..).unwrap_or_default());
            out.extend_from_slice(&digest);
        }
    }

    /// Appends all before the data segment, of which the `length` bytes are sent from elsewhere,
    /// followed by [`tail`].
    fn put_head(&self, out: &mut Vec<u8>, digests: Digests, length: usize) {
        let start = out.len();
        let mut bhs = Bhs::of(self.opcode());
        self.fields(&mut bhs);
        bhs.set_data_length(length);
        out.extend_from_slice(&bhs.0);
        self.put_ahs(out);
        let ahs = out.len() - start - BHS;
        if ahs > 0 {
            bhs.set_ahs_length(ahs);
            if let Some(head) = out.get_mut(start..start + BHS) {
                head.copy_from_slice(&bhs.0);
            }
        }
        if digests.header {
            let digest = digest(out.get(start..).unwrap_or_default());
            out.extend_from_slice(&digest);
        }
    }
}

/// What follows data that is sent from elsewhere: padding, and the digest if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    bytes: [u8; 3 + DIGEST],
    length: u8,
}

impl Tail {
    /// The bytes to send.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

/// What follows this data on a connection with these digests.
pub fn tail(data: &[u8], digests: Digests) -> Tail {
    let padding = pad(data.len()).len();
    let mut tail = Tail { bytes: [0; 3 + DIGEST], length: padding as u8 };
    if digests.data
        && !data.is_empty()
        && let Some(place) = tail.bytes.get_mut(padding..padding + DIGEST)
    {
        place.copy_from_slice(&data_digest(data));
        tail.length += DIGEST as u8;
    }
    tail
}
