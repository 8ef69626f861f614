//! EXTENDED COPY(LID1) from block to block (SPC-4 §6.3) and RECEIVE COPY RESULTS (SPC-4 §6.24).

use base::limits::{SCSI_COPY_SEGMENTS_MAX, SCSI_COPY_TARGETS_MAX};

use super::fields::{
    bit_at, bytes_at, end_list_u32, put_at, set_at, slice_at, u8_at, u16_at, u24_at, u32_at, u64_at,
};
use super::{ResponseError, ScsiError};

/// Bytes before the descriptors.
const HEAD: usize = 16;
/// Bytes of a descriptor of a target.
const TARGET: usize = 32;
/// Bytes of a segment from block to block.
const SEGMENT: usize = 28;
/// Type of a descriptor: identification by a designator (SPC-4 §6.3.6.3).
pub const BY_IDENTIFICATION: u8 = 0xe4;
/// Type of a segment: from block to block (SPC-4 §6.3.7.5).
pub const BLOCK_TO_BLOCK: u8 = 0x02;

/// A unit that takes part in a copy (a CSCD), named by a designator of its VPD page 83h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyTarget {
    /// NUL: nothing is there.
    pub is_null: bool,
    /// Peripheral device type: 0 for a disk.
    pub device_type: u8,
    /// Code set of the designator (4 bits).
    pub code_set: u8,
    /// Association of the designator (2 bits): 0 for a unit.
    pub association: u8,
    /// Type of the designator (4 bits).
    pub kind: u8,
    /// The designator: 20 bytes, of which this many count.
    pub length: u8,
    /// See `length`.
    pub designator: [u8; 20],
    /// PAD: what is left of a block is filled up.
    pub pad: bool,
    /// Bytes of a block: 24 bits.
    pub block: u32,
}

impl CopyTarget {
    /// The designator.
    pub fn designator(&self) -> &[u8] {
        self.designator.get(..usize::from(self.length)).unwrap_or(&self.designator)
    }

    fn put(&self, out: &mut Vec<u8>) {
        let mut b = [0; TARGET];
        b[0] = BY_IDENTIFICATION;
        b[1] = self.device_type & 0x1f;
        set_at(&mut b, 1, 0x20, self.is_null);
        b[4] = self.code_set & 0xf;
        b[5] = (self.association & 3) << 4 | self.kind & 0xf;
        b[7] = self.length;
        put_at(&mut b, 8, &self.designator);
        put_at(&mut b, 28, &(self.block & 0xff_ffff).to_be_bytes());
        set_at(&mut b, 28, 4, self.pad);
        out.extend_from_slice(&b);
    }

    /// `at` is where it is in the list.
    fn parse(b: &[u8], at: usize) -> Result<Self, ScsiError> {
        if u8_at(b, 0) != BY_IDENTIFICATION {
            return Err(ScsiError::TargetDescriptor);
        }
        // LU ID TYPE, the upper bits of byte 1, is ignored since SPC-4 (§6.3.6.1).
        let length = u8_at(b, 7);
        if length > 20 {
            return Err(ScsiError::list(at + 7, 7));
        }
        Ok(Self {
            is_null: bit_at(b, 1, 0x20),
            device_type: u8_at(b, 1) & 0x1f,
            code_set: u8_at(b, 4) & 0xf,
            association: u8_at(b, 5) >> 4 & 3,
            kind: u8_at(b, 5) & 0xf,
            length,
            designator: bytes_at(b, 8),
            pad: bit_at(b, 28, 4),
            block: u24_at(b, 29),
        })
    }
}

/// Blocks to copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// DC: the count is of blocks of the destination, not of the source.
    pub counts_destination: bool,
    /// CAT: the residual of a block continues in the next segment.
    pub concatenate: bool,
    /// Index of the source in the list of targets.
    pub source: u16,
    /// Index of the destination.
    pub destination: u16,
    /// How many blocks; 0 is none.
    pub count: u16,
    /// First block of the source.
    pub source_lba: u64,
    /// First block of the destination.
    pub destination_lba: u64,
}

impl Segment {
    fn put(&self, out: &mut Vec<u8>) {
        let mut b = [0; SEGMENT];
        b[0] = BLOCK_TO_BLOCK;
        set_at(&mut b, 1, 2, self.counts_destination);
        set_at(&mut b, 1, 1, self.concatenate);
        b[3] = SEGMENT as u8 - 4;
        put_at(&mut b, 4, &self.source.to_be_bytes());
        put_at(&mut b, 6, &self.destination.to_be_bytes());
        put_at(&mut b, 10, &self.count.to_be_bytes());
        put_at(&mut b, 12, &self.source_lba.to_be_bytes());
        put_at(&mut b, 20, &self.destination_lba.to_be_bytes());
        out.extend_from_slice(&b);
    }
}

/// Parameters of EXTENDED COPY(LID1).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Copy {
    /// Name of the copy, for RECEIVE COPY RESULTS.
    pub list_id: u8,
    /// STR: sequential striped.
    pub is_striped: bool,
    /// What of the copy is kept: 0 all, 2 nothing but its status, 3 nothing.
    pub id_usage: u8,
    /// Priority (3 bits).
    pub priority: u8,
    /// Units that take part.
    pub targets: Vec<CopyTarget>,
    /// What is copied, in this order.
    pub segments: Vec<Segment>,
}

impl Copy {
    /// Appends the parameters.
    pub fn put(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let mut head = [0; HEAD];
        head[0] = self.list_id;
        head[1] = (self.id_usage & 3) << 3 | self.priority & 7;
        set_at(&mut head, 1, 0x20, self.is_striped);
        put_at(&mut head, 2, &((self.targets.len() * TARGET) as u16).to_be_bytes());
        out.extend_from_slice(&head);
        self.targets.iter().for_each(|target| target.put(out));
        let segments = out.len() - start;
        self.segments.iter().for_each(|segment| segment.put(out));
        end_list_u32(out.get_mut(start..).unwrap_or_default(), 8, segments);
    }

    /// Reads the parameters. `list` is all that the initiator has sent; nothing at all is a copy of
    /// nothing.
    ///
    /// # Errors
    /// [`ScsiError`]: a length that does not fit, a descriptor that we do not have, too many of
    /// them, a segment that names a target that is not there, inline data.
    pub fn parse(list: &[u8]) -> Result<Self, ScsiError> {
        if list.is_empty() {
            return Ok(Self::default());
        }
        let (targets, segments) = (usize::from(u16_at(list, 2)), u32_at(list, 8) as usize);
        if u32_at(list, 12) != 0 {
            return Err(ScsiError::list(12, 7));
        }
        let end = HEAD.saturating_add(targets).saturating_add(segments);
        if list.len() < HEAD || end > list.len() {
            return Err(ScsiError::ListLength);
        }
        if !targets.is_multiple_of(TARGET) {
            return Err(ScsiError::list(2, 7));
        }
        if targets / TARGET > SCSI_COPY_TARGETS_MAX {
            return Err(ScsiError::TooManyTargets);
        }
        let mut copy = Self {
            list_id: u8_at(list, 0),
            is_striped: bit_at(list, 1, 0x20),
            id_usage: u8_at(list, 1) >> 3 & 3,
            priority: u8_at(list, 1) & 7,
            ..Self::default()
        };
        for (i, one) in slice_at(list, HEAD, targets).chunks_exact(TARGET).enumerate() {
            copy.targets.push(CopyTarget::parse(one, HEAD + i * TARGET)?);
        }
        copy.parse_segments(slice_at(list, HEAD + targets, segments), HEAD + targets)?;
        Ok(copy)
    }

    fn parse_segments(&mut self, mut rest: &[u8], mut at: usize) -> Result<(), ScsiError> {
        while !rest.is_empty() {
            if self.segments.len() == SCSI_COPY_SEGMENTS_MAX {
                return Err(ScsiError::TooManySegments);
            }
            if u8_at(rest, 0) != BLOCK_TO_BLOCK {
                return Err(ScsiError::SegmentDescriptor);
            }
            let Some((b, after)) = rest.split_at_checked(SEGMENT) else {
                return Err(ScsiError::ListLength);
            };
            if usize::from(u16_at(b, 2)) != SEGMENT - 4 {
                return Err(ScsiError::list(at + 2, 7));
            }
            let (source, destination) = (u16_at(b, 4), u16_at(b, 6));
            if usize::from(source.max(destination)) >= self.targets.len() {
                return Err(ScsiError::UnreachableTarget);
            }
            self.segments.push(Segment {
                counts_destination: bit_at(b, 1, 2),
                concatenate: bit_at(b, 1, 1),
                source,
                destination,
                count: u16_at(b, 10),
                source_lba: u64_at(b, 12),
                destination_lba: u64_at(b, 20),
            });
            (rest, at) = (after, at + SEGMENT);
        }
        Ok(())
    }
}

/// Capabilities of copies (RECEIVE COPY RESULTS, OPERATING PARAMETERS).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OperatingParameters {
    /// SNLID: a copy without a list identifier is supported.
    pub without_list_id: bool,
    /// Most targets.
    pub targets_max: u16,
    /// Most segments.
    pub segments_max: u16,
    /// Most bytes of descriptors.
    pub descriptors_max: u32,
    /// Most bytes of a segment.
    pub segment_max: u32,
    /// Most copies at once.
    pub concurrent_max: u8,
    /// Power of two of bytes that segments are best multiples of.
    pub granularity: u8,
    /// Types of descriptors that there are, in order.
    pub types: Vec<u8>,
}

impl OperatingParameters {
    /// Appends the data.
    pub fn put(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let mut b = [0; 44];
        set_at(&mut b, 4, 1, self.without_list_id);
        put_at(&mut b, 8, &self.targets_max.to_be_bytes());
        put_at(&mut b, 10, &self.segments_max.to_be_bytes());
        put_at(&mut b, 12, &self.descriptors_max.to_be_bytes());
        put_at(&mut b, 16, &self.segment_max.to_be_bytes());
        put_at(&mut b, 34, &u16::from(self.concurrent_max).to_be_bytes());
        b[36] = self.concurrent_max;
        b[37] = self.granularity;
        b[43] = self.types.len() as u8;
        out.extend_from_slice(&b);
        out.extend_from_slice(&self.types);
        end_list_u32(out.get_mut(start..).unwrap_or_default(), 0, 4);
    }

    /// Reads the data.
    ///
    /// # Errors
    /// [`ResponseError::Short`].
    pub fn decode(b: &[u8]) -> Result<Self, ResponseError> {
        if b.len() < 44 {
            return Err(ResponseError::Short { what: "copy parameters" });
        }
        Ok(Self {
            without_list_id: bit_at(b, 4, 1),
            targets_max: u16_at(b, 8),
            segments_max: u16_at(b, 10),
            descriptors_max: u32_at(b, 12),
            segment_max: u32_at(b, 16),
            concurrent_max: u8_at(b, 36),
            granularity: u8_at(b, 37),
            types: slice_at(b, 44, usize::from(u8_at(b, 43))).to_vec(),
        })
    }
}

/// How far a copy is (RECEIVE COPY RESULTS, COPY STATUS).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyStatus {
    /// 0 in progress, 1 ended well, 2 ended with errors (7 bits).
    pub status: u8,
    /// Segments that were handled.
    pub segments: u16,
    /// Unit of `count`: 0 bytes, 1 KiB, 2 MiB, and so on; F1h blocks.
    pub unit: u8,
    /// How much was written.
    pub count: u32,
}

impl CopyStatus {
    /// Appends the data.
    pub fn put(&self, out: &mut Vec<u8>) {
        let [high, low] = self.segments.to_be_bytes();
        out.extend_from_slice(&[0, 0, 0, 8, self.status & 0x7f, high, low, self.unit]);
        out.extend_from_slice(&self.count.to_be_bytes());
    }

    /// Reads the data.
    ///
    /// # Errors
    /// [`ResponseError::Short`].
    pub fn decode(b: &[u8]) -> Result<Self, ResponseError> {
        if b.len() < 12 {
            return Err(ResponseError::Short { what: "copy status" });
        }
        let (status, segments) = (u8_at(b, 4) & 0x7f, u16_at(b, 5));
        Ok(Self { status, segments, unit: u8_at(b, 7), count: u32_at(b, 8) })
    }
}

/// Why a copy failed (RECEIVE COPY FAILURE DETAILS(LID1), SPC-4 §6.24.5).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FailureDetails {
    /// SCSI status that the EXTENDED COPY ended with.
    pub status: u8,
    /// Sense data that it ended with, as it was sent.
    pub sense: Vec<u8>,
}

impl FailureDetails {
    /// Appends the data.
    pub fn put(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let mut b = [0; 60];
        b[56] = self.status;
        put_at(&mut b, 58, &(self.sense.len() as u16).to_be_bytes());
        out.extend_from_slice(&b);
        out.extend_from_slice(&self.sense);
        end_list_u32(out.get_mut(start..).unwrap_or_default(), 0, 4);
    }

    /// Reads the data.
    ///
    /// # Errors
    /// [`ResponseError::Short`].
    pub fn decode(b: &[u8]) -> Result<Self, ResponseError> {
        if b.len() < 60 {
            return Err(ResponseError::Short { what: "failure details" });
        }
        let sense = slice_at(b, 60, usize::from(u16_at(b, 58))).to_vec();
        Ok(Self { status: u8_at(b, 56), sense })
    }
}
