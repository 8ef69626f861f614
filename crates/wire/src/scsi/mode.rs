//! Mode parameters (SPC-5 §7.5, SBC-4 §6.5): headers, block descriptors and pages of MODE SENSE
//! and MODE SELECT.

use base::limits::SCSI_MODE_PAGES_MAX;

use super::cdb::Width;
use super::fields::{bit_at, put_at, set_at, slice_at, u8_at, u16_at, u24_at, u32_at, u64_at};
use super::{ResponseError, ScsiError};

/// How many blocks of which size a unit has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockDescriptor {
    /// How many; more than 32 bits (or 24 in old units) is all ones.
    pub count: u64,
    /// Bytes of a block.
    pub block: u32,
}

/// What comes before the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// WP: the medium is write protected.
    pub write_protected: bool,
    /// DPOFUA: commands may have DPO and FUA.
    pub dpo_fua: bool,
    /// LONGLBA: the block descriptor is the long one. Only in the form of 10 bytes.
    pub long_lba: bool,
    /// The block descriptor, if there is one.
    pub block: Option<BlockDescriptor>,
}

impl Header {
    /// Appends header and block descriptor; the answer is for [`end`]. `width` is the form of the
    /// command.
    pub fn put(&self, width: Width, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        let mut flags = [0];
        set_at(&mut flags, 0, 0x80, self.write_protected);
        set_at(&mut flags, 0, 0x10, self.dpo_fua);
        let is_long = self.long_lba && width != Width::Six;
        let descriptor = match (self.block, is_long) {
            (None, _) => 0,
            (Some(_), false) => 8,
            (Some(_), true) => 16,
        };
        if width == Width::Six {
            out.extend_from_slice(&[0, 0, flags[0], descriptor]);
        } else {
            out.extend_from_slice(&[0, 0, 0, flags[0], u8::from(is_long), 0, 0, descriptor]);
        }
        match self.block {
            None => {}
            Some(BlockDescriptor { count, block }) if is_long => {
                out.extend_from_slice(&count.to_be_bytes());
                out.extend_from_slice(&[0; 4]);
                out.extend_from_slice(&block.to_be_bytes());
            }
            Some(BlockDescriptor { count, block }) => {
                let count = u32::try_from(count).unwrap_or(u32::MAX);
                out.extend_from_slice(&count.to_be_bytes());
                out.extend_from_slice(&(block & 0xff_ffff).to_be_bytes());
            }
        }
        start
    }

    /// Reads header and block descriptor of an answer to MODE SENSE, as far as it goes, and gives
    /// where the pages begin: beyond the end of `data` if they were cut off.
    ///
    /// # Errors
    /// [`ResponseError::Short`] if the header is cut off; [`ResponseError::BadValue`] for a
    /// descriptor of a length that is none.
    pub fn decode(width: Width, data: &[u8]) -> Result<(Self, usize), ResponseError> {
        let (head, length) = match width {
            Width::Six => (4, usize::from(u8_at(data, 3))),
            _ => (8, usize::from(u16_at(data, 6))),
        };
        let start = head + length;
        if data.len() >= start {
            let got = length as u32;
            let bad = |_| ResponseError::BadValue { what: "block descriptor length", got };
            return Self::parse(width, data).map_err(bad);
        }
        let mut without = data
            .get(..head)
            .map(<[u8]>::to_vec)
            .ok_or(ResponseError::Short { what: "mode parameter header" })?;
        put_at(&mut without, if width == Width::Six { 3 } else { 6 }, &[0]);
        put_at(&mut without, head - 1, &[0]);
        let bad = |_| ResponseError::Short { what: "mode parameter header" };
        Self::parse(width, &without).map(|(header, _)| (header, start)).map_err(bad)
    }

    /// Reads header and block descriptor of what MODE SELECT brings, and gives where the pages
    /// begin. The length of all, which MODE SELECT leaves 0, is not looked at: it is that of
    /// `list`.
    ///
    /// # Errors
    /// [`ScsiError::ListLength`] if they are cut off; [`ScsiError::ListField`] for a descriptor of
    /// another length.
    pub fn parse(width: Width, list: &[u8]) -> Result<(Self, usize), ScsiError> {
        let (head, flags, length, length_at) = match width {
            Width::Six => (4, u8_at(list, 2), usize::from(u8_at(list, 3)), 3),
            _ => (8, u8_at(list, 3), usize::from(u16_at(list, 6)), 6),
        };
        if list.len() < head || list.len() < head + length {
            return Err(ScsiError::ListLength);
        }
        let long_lba = width != Width::Six && bit_at(list, 4, 1);
        let block = match (length, long_lba) {
            (0, _) => None,
            (8, false) => Some(BlockDescriptor {
                count: u64::from(u32_at(list, head)),
                block: u24_at(list, head + 5),
            }),
            (16, true) => {
                let (count, block) = (u64_at(list, head), u32_at(list, head + 12));
                Some(BlockDescriptor { count, block })
            }
            _ => return Err(ScsiError::list(length_at, 7)),
        };
        let (write_protected, dpo_fua) = (flags & 0x80 != 0, flags & 0x10 != 0);
        Ok((Self { write_protected, dpo_fua, long_lba, block }, head + length))
    }
}

/// Writes the length of all into the header, once the pages are there.
pub fn end(width: Width, start: usize, out: &mut [u8]) {
    let list = out.get_mut(start..).unwrap_or_default();
    let length = list.len();
    if width == Width::Six {
        put_at(list, 0, &[u8::try_from(length.saturating_sub(1)).unwrap_or(u8::MAX)]);
    } else {
        put_at(list, 0, &(length.saturating_sub(2) as u16).to_be_bytes());
    }
}

/// A page as it is: its code, and all of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawPage<'a> {
    /// Page code.
    pub code: u8,
    /// Subpage code; 0 without one.
    pub subpage: u8,
    /// The page from its first byte on.
    pub bytes: &'a [u8],
    /// Where it begins in the list.
    pub at: usize,
}

/// The pages from `at` on, which [`Header::parse`] gave.
///
/// # Errors
/// [`ScsiError::ListLength`] if one is cut off (SPC-5 §6.14); [`ScsiError::ListField`] for more
/// pages than there are codes.
pub fn pages(list: &[u8], mut at: usize) -> Result<Vec<RawPage<'_>>, ScsiError> {
    let mut pages = Vec::new();
    while at < list.len() {
        if pages.len() == SCSI_MODE_PAGES_MAX {
            return Err(ScsiError::list(at, 5));
        }
        let has_subpage = bit_at(list, at, 0x40);
        let (subpage, length) = if has_subpage {
            (u8_at(list, at + 1), 4 + usize::from(u16_at(list, at + 2)))
        } else {
            (0, 2 + usize::from(u8_at(list, at + 1)))
        };
        let bytes = slice_at(list, at, length);
        if bytes.len() < length {
            return Err(ScsiError::ListLength);
        }
        pages.push(RawPage { code: u8_at(list, at) & 0x3f, subpage, bytes, at });
        at += length;
    }
    Ok(pages)
}

/// Checks what MODE SELECT would change: `sent` must be as long as `current`, and differ from it
/// only in bits of `changeable`. PS, the highest bit of the first byte, is not looked at.
///
/// # Errors
/// [`ScsiError::ListField`] with the length, or the first bit that cannot be changed.
pub fn check_change(
    sent: &RawPage<'_>,
    current: &[u8],
    changeable: &[u8],
) -> Result<(), ScsiError> {
    if sent.bytes.len() != current.len() {
        return Err(ScsiError::list(sent.at + 1, 7));
    }
    let head = if bit_at(current, 0, 0x40) { 4 } else { 2 };
    let bytes = sent.bytes.iter().zip(current).enumerate().skip(head);
    for (at, (new, old)) in bytes {
        let extra = (new ^ old) & !u8_at(changeable, at);
        if extra != 0 {
            return Err(ScsiError::list(sent.at + at, 7 - extra.leading_zeros() as u8));
        }
    }
    Ok(())
}

/// Page codes.
pub mod page {
    /// Read-write error recovery (SBC-4 §6.5.10).
    pub const ERROR_RECOVERY: u8 = 0x01;
    /// Caching (SBC-4 §6.5.6).
    pub const CACHING: u8 = 0x08;
    /// Control (SPC-5 §7.5.8); with subpage 1 its extension (§7.5.9).
    pub const CONTROL: u8 = 0x0a;
    /// Informational exceptions control (SBC-4 §6.5.8).
    pub const EXCEPTIONS: u8 = 0x1c;
    /// All pages.
    pub const ALL: u8 = 0x3f;
}

/// Caching mode page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Caching {
    /// WCE: writes may stay in a volatile cache.
    pub write_cache: bool,
    /// RCD: reads come from the medium.
    pub no_read_cache: bool,
    /// DRA: nothing is read ahead.
    pub no_read_ahead: bool,
}

impl Caching {
    /// Appends the page.
    pub fn put(&self, out: &mut Vec<u8>) {
        let mut b = [0; 20];
        put_at(&mut b, 0, &[page::CACHING, 0x12]);
        set_at(&mut b, 2, 4, self.write_cache);
        set_at(&mut b, 2, 1, self.no_read_cache);
        set_at(&mut b, 12, 0x20, self.no_read_ahead);
        out.extend_from_slice(&b);
    }

    /// Reads the page; what is not there is off.
    pub fn parse(b: &[u8]) -> Self {
        Self {
            write_cache: bit_at(b, 2, 4),
            no_read_cache: bit_at(b, 2, 1),
            no_read_ahead: bit_at(b, 12, 0x20),
        }
    }
}

/// Control mode page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Control {
    /// TST (3 bits): 0 one task set for all nexuses, 1 one for each.
    pub task_sets: u8,
    /// D_SENSE: sense data is in the descriptor format.
    pub descriptor_sense: bool,
    /// QAM (4 bits): 0 tasks are not reordered at risk, 1 they are.
    pub queue_algorithm: u8,
    /// QERR (2 bits): what becomes of other tasks after an error.
    pub queue_error: u8,
    /// SWP: writes are refused.
    pub write_protect: bool,
    /// TAS: tasks aborted by another initiator end with TASK ABORTED.
    pub task_aborted_status: bool,
    /// UA_INTLCK_CTRL (2 bits).
    pub attention_interlock: u8,
    /// Longest time of BUSY, in units of 100 ms; 0 is not reported, FFFFh unlimited.
    pub busy_timeout: u16,
}

impl Control {
    /// Appends the page.
    pub fn put(&self, out: &mut Vec<u8>) {
        let mut b = [0; 12];
        put_at(&mut b, 0, &[page::CONTROL, 0x0a]);
        b[2] = self.task_sets << 5;
        set_at(&mut b, 2, 4, self.descriptor_sense);
        b[3] = self.queue_algorithm << 4 | (self.queue_error & 3) << 1;
        b[4] = (self.attention_interlock & 3) << 4;
        set_at(&mut b, 4, 8, self.write_protect);
        set_at(&mut b, 5, 0x40, self.task_aborted_status);
        put_at(&mut b, 8, &self.busy_timeout.to_be_bytes());
        out.extend_from_slice(&b);
    }

    /// Reads the page; what is not there is 0.
    pub fn parse(b: &[u8]) -> Self {
        Self {
            task_sets: u8_at(b, 2) >> 5,
            descriptor_sense: bit_at(b, 2, 4),
            queue_algorithm: u8_at(b, 3) >> 4,
            queue_error: u8_at(b, 3) >> 1 & 3,
            write_protect: bit_at(b, 4, 8),
            task_aborted_status: bit_at(b, 5, 0x40),
            attention_interlock: u8_at(b, 4) >> 4 & 3,
            busy_timeout: u16_at(b, 8),
        }
    }
}

/// Control extension mode page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ControlExtension {
    /// TCMOS: the time can be set by commands only.
    pub timestamp_by_commands: bool,
    /// SCSIP: the time of commands is preferred.
    pub timestamp_by_scsi: bool,
    /// IALUAE: implicit asymmetric access.
    pub implicit_access: bool,
    /// Most bytes of sense data; 0 for the 252 of SPC.
    pub sense_max: u8,
}

impl ControlExtension {
    /// Appends the page.
    pub fn put(&self, out: &mut Vec<u8>) {
        let mut b = [0; 32];
        put_at(&mut b, 0, &[0x40 | page::CONTROL, 1, 0, 0x1c]);
        set_at(&mut b, 4, 4, self.timestamp_by_commands);
        set_at(&mut b, 4, 2, self.timestamp_by_scsi);
        set_at(&mut b, 4, 1, self.implicit_access);
        b[6] = self.sense_max;
        out.extend_from_slice(&b);
    }

    /// Reads the page; what is not there is 0.
    pub fn parse(b: &[u8]) -> Self {
        Self {
            timestamp_by_commands: bit_at(b, 4, 4),
            timestamp_by_scsi: bit_at(b, 4, 2),
            implicit_access: bit_at(b, 4, 1),
            sense_max: u8_at(b, 6),
        }
    }
}

/// Read-write error recovery mode page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ErrorRecovery {
    /// AWRE: blocks are reallocated when they are written.
    pub reallocate_writes: bool,
    /// ARRE: blocks are reallocated when they are read.
    pub reallocate_reads: bool,
    /// Retries of a read.
    pub read_retries: u8,
    /// Retries of a write.
    pub write_retries: u8,
    /// Most time for recovery, in milliseconds; 0 is not reported.
    pub time_limit: u16,
}

impl ErrorRecovery {
    /// Appends the page.
    pub fn put(&self, out: &mut Vec<u8>) {
        let mut b = [0; 12];
        put_at(&mut b, 0, &[page::ERROR_RECOVERY, 0x0a]);
        set_at(&mut b, 2, 0x80, self.reallocate_writes);
        set_at(&mut b, 2, 0x40, self.reallocate_reads);
        b[3] = self.read_retries;
        b[8] = self.write_retries;
        put_at(&mut b, 10, &self.time_limit.to_be_bytes());
        out.extend_from_slice(&b);
    }

    /// Reads the page; what is not there is 0.
    pub fn parse(b: &[u8]) -> Self {
        Self {
            reallocate_writes: bit_at(b, 2, 0x80),
            reallocate_reads: bit_at(b, 2, 0x40),
            read_retries: u8_at(b, 3),
            write_retries: u8_at(b, 8),
            time_limit: u16_at(b, 10),
        }
    }
}

/// Informational exceptions control mode page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Exceptions {
    /// DEXCPT: nothing is reported.
    pub is_off: bool,
    /// EWASC: warnings are reported.
    pub warnings: bool,
    /// MRIE (4 bits): how it is reported.
    pub method: u8,
    /// Interval between reports, in units of 100 ms.
    pub interval: u32,
    /// Most reports; 0 for no limit.
    pub count: u32,
}

impl Exceptions {
    /// Appends the page.
    pub fn put(&self, out: &mut Vec<u8>) {
        let mut b = [0; 12];
        put_at(&mut b, 0, &[page::EXCEPTIONS, 0x0a]);
        set_at(&mut b, 2, 0x10, self.warnings);
        set_at(&mut b, 2, 8, self.is_off);
        b[3] = self.method & 0xf;
        put_at(&mut b, 4, &self.interval.to_be_bytes());
        put_at(&mut b, 8, &self.count.to_be_bytes());
        out.extend_from_slice(&b);
    }

    /// Reads the page; what is not there is 0.
    pub fn parse(b: &[u8]) -> Self {
        Self {
            is_off: bit_at(b, 2, 8),
            warnings: bit_at(b, 2, 0x10),
            method: u8_at(b, 3) & 0xf,
            interval: u32_at(b, 4),
            count: u32_at(b, 8),
        }
    }
}
